//! Drives that compress and share what they store: no byte is lost and no room leaks, through garbage collection, power
//! cuts and drives that run out of room.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]

mod support;

use flashwise_block::{BlockDevice, BlockError, ByteSize, IoBuffer, Nanos, Operation, Request, execute};
use flashwise_ssd::config::{
    Codec, CompressionConfig, DeduplicationConfig, GcMode, GcPolicy, Placement, ReductionConfig, StaticWearLevelling,
    StreamPolicy, StreamsConfig,
};
use flashwise_ssd::{ContentModel, DeviceConfig, SimulatedSsd};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use support::tiny;

const PAGE: u64 = 4096;

/// A small drive that reduces nothing yet.
fn plain(preset: &str) -> DeviceConfig {
    let mut config = tiny(preset, ByteSize::mib(6), 13, 4);
    config.controller.power_loss_protection = true;
    config.controller.write_buffer_bytes = ByteSize::mib(2).bytes();
    config.ftl.gc.free_superblocks = Some(4);
    config.flash.blocks_per_plane = 20;
    config
}

fn compression(codec: Codec, granule_bytes: u64) -> Option<CompressionConfig> {
    Some(CompressionConfig { codec, granule_bytes, level: 1, ..CompressionConfig::default() })
}

fn reducing(
    preset: &str,
    compression: Option<CompressionConfig>,
    deduplication: Option<DeduplicationConfig>,
) -> DeviceConfig {
    let mut config = plain(preset);
    if deduplication.is_some() {
        config.host.logical_block_bytes = PAGE;
    }
    config.reduction = Some(ReductionConfig { physical_bytes: None, compression, deduplication });
    config.check("reducing").unwrap();
    config
}

/// Every kind of drive that reduces what it stores.
fn drives() -> Vec<DeviceConfig> {
    let with = |mut config: DeviceConfig, change: fn(&mut DeviceConfig)| {
        change(&mut config);
        config.check("reducing").unwrap();
        config
    };
    let deduplication = DeduplicationConfig::default;
    let out_of_line = || DeduplicationConfig { in_line: false, out_of_line: true, idle_ns: 1000, ..deduplication() };
    let frugal = || DeduplicationConfig {
        fingerprints: 5,
        sampling: true,
        pre_hash: true,
        compare_on_hit: true,
        out_of_line: true,
        idle_ns: 50_000,
        ..deduplication()
    };
    vec![
        reducing("samsung-960-evo", compression(Codec::Zlib, 64), None),
        reducing("toshiba-xg5", compression(Codec::Lz4, 512), None),
        reducing("samsung-960-evo", None, Some(deduplication())),
        reducing("toshiba-xg5", compression(Codec::Zstd, 16), Some(deduplication())),
        reducing("samsung-960-evo", None, Some(out_of_line())),
        reducing("samsung-960-evo", compression(Codec::Zlib, 4096), Some(frugal())),
        with(reducing("samsung-960-evo", compression(Codec::Zlib, 256), None), |config| {
            config.ftl.gc.mode = GcMode::Foreground;
            config.ftl.gc.separate_open_block = false;
            config.ftl.gc.policy = GcPolicy::Fifo;
        }),
        with(reducing("samsung-960-evo", compression(Codec::Lz4, 128), Some(frugal())), |config| {
            config.flash.blocks_per_plane = 30;
            config.controller.write_buffer_bytes = ByteSize::mib(3).bytes();
            config.ftl.streams = StreamsConfig { policy: StreamPolicy::Hint, streams: 3, decay_share: 0.2 };
            config.ftl.wear_levelling.static_ = StaticWearLevelling::Threshold;
            config.ftl.wear_levelling.threshold = 2;
        }),
        with(reducing("samsung-960-evo", compression(Codec::Lz4, 64), Some(deduplication())), |config| {
            config.ftl.placement = Placement::RoundRobin;
            config.reduction.as_mut().unwrap().physical_bytes = Some(1 << 20);
        }),
    ]
}

#[derive(Clone, Debug)]
struct Step {
    operation: Operation,
    sector: u64,
    sectors: u64,
    /// What is written: of so many kinds, each with so many bytes of noise at the start of a page.
    kind: u8,
    drains: bool,
    pauses: bool,
    cuts: bool,
}

const SECTORS: u64 = 1536;
const PAGES: u64 = SECTORS * 512 / PAGE;

fn step() -> impl Strategy<Value = Step> {
    let operation = prop_oneof![
        16 => Just(Operation::Write),
        1 => Just(Operation::Trim),
        1 => Just(Operation::WriteZeroes),
        1 => Just(Operation::Flush),
    ];
    let chance = |percent: u8| (0_u8..100).prop_map(move |n| n < percent);
    (operation, 0..SECTORS, 1_u64..200, 0_u8..40, chance(30), chance(10), chance(4)).prop_map(
        |(operation, sector, sectors, kind, drains, pauses, cuts)| {
            let sectors = sectors.min(SECTORS - sector);
            Step { operation, sector, sectors, kind, drains, pauses, cuts }
        },
    )
}

/// A drive beside the bytes that it should hold.
struct Pair {
    drive: SimulatedSsd,
    /// The versions that each page may have; the last is the present one.
    pages: Vec<Vec<Vec<u8>>>,
    in_flight: Vec<std::ops::Range<usize>>,
    random: Pcg64Mcg,
    sectors_per_block: u64,
    /// Pages behind those, which nobody looks at.
    others: u64,
}

impl Pair {
    fn new(config: &DeviceConfig) -> Self {
        let mut drive = SimulatedSsd::new(config.clone(), 3).unwrap();
        // What else is on the drive keeps garbage collection busy.
        let others = if config.physical_bytes() < config.capacity_bytes { 0 } else { config.logical_pages() - PAGES };
        drive.allow_power_cuts().unwrap();
        for page in PAGES..PAGES + others {
            support::write(&mut drive, page * PAGE, PAGE);
        }
        let pages = vec![vec![vec![0; PAGE as usize]]; PAGES as usize];
        let sectors_per_block = config.host.logical_block_bytes / 512;
        Self { drive, pages, in_flight: vec![], random: Pcg64Mcg::seed_from_u64(5), sectors_per_block, others }
    }

    /// The bytes of a write: pages of noise, of noise and zeros, of one of a few patterns, of zeros.
    fn bytes(&mut self, kind: u8, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        for page in bytes.chunks_mut(PAGE as usize) {
            match kind % 4 {
                0 => page.fill(kind / 4),
                1 => page.iter_mut().for_each(|byte| *byte = self.random.random()),
                2 => {
                    let noise = usize::from(kind) * 100;
                    page.iter_mut().take(noise).for_each(|byte| *byte = self.random.random());
                }
                _ => page.iter_mut().enumerate().for_each(|(n, byte)| *byte = (n as u8).wrapping_mul(kind)),
            }
        }
        bytes
    }

    fn apply(&mut self, step: &Step) {
        let block = self.sectors_per_block;
        let (sector, sectors) = (step.sector / block * block, step.sectors.next_multiple_of(block));
        let sectors = sectors.min(SECTORS - sector);
        let pages = (sector * 512 / PAGE) as usize..((sector + sectors) * 512).div_ceil(PAGE) as usize;
        let overlaps = |other: &std::ops::Range<usize>| pages.start < other.end && other.start < pages.end;
        if step.operation == Operation::Flush || self.in_flight.iter().any(overlaps) {
            self.drain();
        }
        let (offset, length) = (sector * 512, sectors * 512);
        let bytes = self.bytes(if step.operation == Operation::Write { step.kind } else { 0 }, length);
        let at = (ByteSize(offset), ByteSize(length));
        let request = match step.operation {
            Operation::Write => {
                let mut buffer = IoBuffer::zeroed(bytes.len());
                buffer.copy_from_slice(&bytes);
                Request::write(at.0, at.1).with_buffer(buffer).in_stream(u16::from(step.kind))
            }
            Operation::Trim => Request::trim(at.0, at.1),
            Operation::WriteZeroes => Request::write_zeroes(at.0, at.1),
            _ => {
                execute(&mut self.drive, Request::flush()).unwrap();
                return;
            }
        };
        for page in pages.clone() {
            let start = page as u64 * PAGE;
            let mut version = self.pages[page].last().unwrap().clone();
            let (from, to) = (offset.max(start), (offset + length).min(start + PAGE));
            version[(from - start) as usize..(to - start) as usize]
                .copy_from_slice(&bytes[(from - offset) as usize..(to - offset) as usize]);
            self.pages[page].push(version);
        }
        self.in_flight.push(pages);
        self.drive.submit(request).unwrap();
        if step.drains {
            self.drain();
        }
        if step.pauses {
            self.drive.pause(Nanos::millis(20)).unwrap();
        }
    }

    /// Waits for everything; of what was refused for want of room, each page is as it was or as it was to be.
    fn drain(&mut self) {
        let mut was_refused = false;
        while let Some(done) = self.drive.wait().unwrap() {
            match done.result {
                Err(BlockError::NoSpace) => was_refused = true,
                other => other.unwrap(),
            }
        }
        for page in self.in_flight.drain(..).flatten().collect::<Vec<_>>() {
            if was_refused {
                self.settle(page);
            } else {
                let versions = &mut self.pages[page];
                versions.drain(..versions.len() - 1);
            }
        }
    }

    /// Finds out which of its versions a page has.
    fn settle(&mut self, page: usize) {
        let found = self.read(page);
        let is_known = self.pages[page].contains(&found);
        assert!(is_known, "page {page} is none of its {} versions", self.pages[page].len());
        self.pages[page] = vec![found];
    }

    fn read(&mut self, page: usize) -> Vec<u8> {
        let buffer = IoBuffer::zeroed(PAGE as usize);
        let request = Request::read(ByteSize(page as u64 * PAGE), ByteSize(PAGE)).with_buffer(buffer);
        execute(&mut self.drive, request).unwrap().buffer.unwrap().to_vec()
    }

    fn cut(&mut self) {
        self.drive.power_cut().unwrap();
        self.in_flight.clear();
        self.drive.check_invariants().unwrap();
        (0..self.pages.len()).for_each(|page| self.settle(page));
    }

    /// The bytes are those that were written, and take no more and no less room than they need.
    fn check(&mut self) {
        self.drain();
        self.drive.check_invariants().unwrap();
        for page in 0..self.pages.len() {
            let found = self.read(page);
            assert!(found == *self.pages[page].last().unwrap(), "page {page} is not what was written");
        }
        let mut space = self.drive.space_use().unwrap();
        space.logical_bytes -= self.others * PAGE;
        space.physical_bytes -= self.others * PAGE;
        let held: Vec<&Vec<u8>> =
            self.pages.iter().map(|versions| &versions[0]).filter(|page| page.iter().any(|&byte| byte != 0)).collect();
        assert_eq!(space.logical_bytes, held.len() as u64 * PAGE);
        let distinct: std::collections::BTreeSet<_> = held.iter().collect();
        let copies = if self.drive.config().deduplication().is_some() { distinct.len() } else { held.len() } as u64;
        let reduction = self.drive.config().reduction.clone().unwrap();
        match reduction {
            // All fingerprints are in memory and every page is looked up: each content is stored once.
            ReductionConfig { compression: None, deduplication: Some(d), .. } if d.in_line && !d.sampling => {
                assert_eq!(space.physical_bytes, copies * PAGE);
            }
            ReductionConfig { compression: None, .. } => assert!(space.physical_bytes >= copies * PAGE),
            ReductionConfig { compression: Some(c), .. } => {
                assert!(space.physical_bytes >= copies * c.granule_bytes);
                assert!(space.physical_bytes <= held.len() as u64 * PAGE);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_byte_comes_back_and_no_room_leaks_whatever_is_written_trimmed_and_cut(
        steps in prop::collection::vec(step(), 1..150),
    ) {
        for config in drives() {
            let mut pair = Pair::new(&config);
            for step in &steps {
                pair.apply(step);
                if step.cuts {
                    pair.cut();
                }
            }
            pair.check();
            pair.drive.pause(Nanos::secs(1)).unwrap();
            pair.check();
            pair.cut();
            pair.check();
        }
    }

    #[test]
    fn garbage_collection_of_pages_of_unequal_length_never_comes_to_a_halt(
        seed: u64,
        share in 0.02_f64..1.0,
        spread in 0.0_f64..1.0,
        duplicates in 0.0_f64..0.9,
        drive in 0..drives().len(),
    ) {
        let config = drives()[drive].clone();
        let mut drive = SimulatedSsd::new(config.clone(), seed).unwrap();
        drive.set_content_model(ContentModel {
            compressed_share: share,
            compressed_spread: spread,
            zero_share: 0.05,
            duplicate_share: duplicates,
            duplicate_window: 1000,
        });
        let pages = config.logical_pages();
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut refused = 0;
        for n in 0..6 * pages {
            // First everything once, in order, then one page or a few anywhere.
            let page = if n < pages { n } else { random.random_range(0..pages) };
            let count = random.random_range(1..=4).min(pages - page);
            let request = match random.random_range(0..60) {
                0 => Request::trim(ByteSize(page * PAGE), ByteSize(PAGE * count)),
                1 => Request::flush(),
                2 => Request::read(ByteSize(page * PAGE), ByteSize(PAGE * count)),
                _ => Request::write(ByteSize(page * PAGE), ByteSize(PAGE * count)).in_stream(page as u16 % 3),
            };
            drive.submit(request).unwrap();
            while drive.outstanding() > 8 {
                match drive.wait().unwrap().unwrap().result {
                    Err(BlockError::NoSpace) => refused += 1,
                    other => prop_assert_eq!(other, Ok(())),
                }
            }
            if n % 64 == 0 {
                prop_assert_eq!(drive.check_invariants(), Ok(()), "after {} requests", n);
            }
        }
        while let Some(done) = drive.wait().unwrap() {
            refused += u64::from(done.result.is_err());
        }
        prop_assert_eq!(drive.check_invariants(), Ok(()));
        let space = drive.space_use().unwrap();
        let is_thin = space.physical_capacity_bytes < config.capacity_bytes;
        prop_assert!(refused == 0 || is_thin, "{} requests were refused", refused);
        // No leak: with all pages trimmed, nothing takes room.
        for page in 0..pages {
            execute(&mut drive, Request::trim(ByteSize(page * PAGE), ByteSize(PAGE))).unwrap();
        }
        prop_assert_eq!(drive.space_use().unwrap().physical_bytes, 0);
        prop_assert_eq!(drive.check_invariants(), Ok(()));
    }
}

fn noise(pages: u64, seed: u64) -> IoBuffer {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut buffer = IoBuffer::zeroed((pages * PAGE) as usize);
    buffer.iter_mut().for_each(|byte| *byte = random.random());
    buffer
}

#[test]
fn a_thin_drive_that_is_full_says_so_reads_on_and_recovers_when_something_is_trimmed() {
    let mut config = reducing("samsung-960-evo", compression(Codec::Lz4, 64), None);
    config.ftl.placement = Placement::RoundRobin;
    (config.capacity_bytes, config.reduction.as_mut().unwrap().physical_bytes) = (64 << 20, Some(2 << 20));
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    let room = (2 << 20) / PAGE;
    let write = |drive: &mut SimulatedSsd, page: u64| {
        let request = Request::write(ByteSize(page * PAGE), ByteSize(PAGE)).with_buffer(noise(1, page));
        drive.submit(request).unwrap();
        drive.wait().unwrap().unwrap().result
    };
    (0..room).for_each(|page| write(&mut drive, page * 7).unwrap());
    assert_eq!(write(&mut drive, 3), Err(BlockError::NoSpace));
    // What is there can be read, written anew with as much, or with less.
    let read = Request::read(ByteSize(7 * PAGE), ByteSize(PAGE)).with_buffer(IoBuffer::zeroed(PAGE as usize));
    assert_eq!(execute(&mut drive, read).unwrap().buffer.unwrap()[..], noise(1, 7)[..]);
    write(&mut drive, 7).unwrap();
    execute(&mut drive, Request::trim(ByteSize(0), ByteSize(PAGE))).unwrap();
    write(&mut drive, 3).unwrap();
    assert_eq!(write(&mut drive, 4), Err(BlockError::NoSpace));
    let zeros = Request::write(ByteSize(14 * PAGE), ByteSize(PAGE)).with_buffer(IoBuffer::zeroed(PAGE as usize));
    execute(&mut drive, zeros).unwrap();
    write(&mut drive, 4).unwrap();
    // Garbage of all this is collected for as long as there is any: the drive can be written for ever.
    for n in 0..20 * room {
        write(&mut drive, (n % (room - 3) + 3) * 7).unwrap();
    }
    drive.check_invariants().unwrap();
    assert_eq!(drive.space_use().unwrap().physical_bytes, 2 << 20);
    assert_eq!(drive.reduction_counters().unwrap().refused_pages, 2);
}
