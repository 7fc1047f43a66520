//! Drives that compress and share what they store: no byte is lost and no space leaks, through garbage collection,
//! power cuts and drives that run out of room.
use crate::support;

use flashwise_block::{BlockDevice, BlockError, ByteSize, IoBuffer, Nanos, Operation, Request, execute};
use flashwise_ssd::config::{
    CellType, Codec, CompressionConfig, DeduplicationConfig, GcMode, GcPolicy, Placement, ReductionConfig,
    ReliabilityConfig, SlcCacheConfig, SlcModeConfig, StaticWearLevelling, StreamPolicy, StreamsConfig,
};
use flashwise_ssd::{ContentModel, DeviceConfig, SimulatedSsd};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use support::{cases, tiny};

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
            config.ftl.streams =
                StreamsConfig { policy: StreamPolicy::Hint, streams: 3, decay_share: 0.2, ..StreamsConfig::default() };
            config.ftl.wear_levelling.static_ = StaticWearLevelling::Threshold;
            config.ftl.wear_levelling.threshold = 2;
        }),
        // Pages of unequal length in superblocks of unequal length.
        with(reducing("samsung-960-evo", compression(Codec::Zlib, 64), Some(deduplication())), |config| {
            config.flash.blocks_per_plane += 2;
            config.flash.cell = Some(CellType::Mlc);
            config.flash.slc_mode = Some(SlcModeConfig {
                read_ns: 20_000,
                program_ns: 200_000,
                erase_ns: None,
                pe_cycles: None,
                rber_factor: None,
            });
            config.ftl.slc_cache = Some(SlcCacheConfig {
                dedicated_superblocks: 2,
                dynamic_superblocks: 4,
                idle_ns: 1_000_000,
                ..SlcCacheConfig::default()
            });
        }),
        // Programs fail now and then: what was to be in a superpage is still in the buffer, pages that start in it and
        // end in the next one among it.
        with(reducing("samsung-960-evo", compression(Codec::Zlib, 64), Some(deduplication())), |config| {
            config.flash.blocks_per_plane = 60;
            config.flash.reliability = Some(ReliabilityConfig {
                program_failure_probability: 0.004,
                failure_pe_cycles: 1,
                failure_exponent: 0.0,
                ..ReliabilityConfig::default()
            });
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
    #![proptest_config(cases(10))]

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
        // No leak: with all pages trimmed, nothing takes space.
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
    // What is there can be read, written again with as much, or with less.
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

#[test]
fn a_write_that_is_compared_and_waits_for_room_when_the_drive_turns_read_only_is_answered() {
    let sharing = DeduplicationConfig { compare_on_hit: true, ..DeduplicationConfig::default() };
    let config = reducing("samsung-960-evo", None, Some(sharing));
    let unlike = |n: u64| Request::write(ByteSize((16 + 32 * n) * PAGE), ByteSize(32 * PAGE)).with_buffer(noise(32, n));
    for microseconds in 0..60 {
        let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
        execute(&mut drive, unlike(0)).unwrap();
        (1..20).for_each(|n| _ = execute(&mut drive, unlike(n)).unwrap());
        drive.pause(Nanos::millis(50)).unwrap();
        // More than the buffer takes, each start with a page that is on flash.
        for n in 20..44 {
            let mut content = noise(32, n);
            content[..PAGE as usize].copy_from_slice(&noise(32, 0)[..PAGE as usize]);
            let at = ByteSize(n % 40 * 32 * PAGE);
            drive.submit(Request::write(at, ByteSize(32 * PAGE)).with_buffer(content)).unwrap();
        }
        drive.pause(Nanos::micros(20 * microseconds)).unwrap();
        (0..1000).for_each(|superblock| drive.retire_block(superblock));
        assert!(drive.is_read_only());
        while let Some(completion) = drive.wait().unwrap() {
            assert!(matches!(completion.result, Ok(()) | Err(BlockError::ReadOnly)), "{:?}", completion.result);
        }
        drive.check_invariants().unwrap();
    }
}

/// Overwrites a full drive at random, 32 pages in flight; gives flash bytes programmed a byte written, and the time.
fn overwrite(config: &DeviceConfig, content: ContentModel) -> (f64, f64, SimulatedSsd) {
    let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
    drive.set_content_model(content);
    let pages = config.logical_pages();
    let mut random = Pcg64Mcg::seed_from_u64(9);
    (0..pages).for_each(|page| support::write(&mut drive, page * PAGE, PAGE));
    let (before, begun) = (drive.counters(), drive.now());
    for _ in 0..12 * pages {
        drive.submit(Request::write(ByteSize(random.random_range(0..pages) * PAGE), ByteSize(PAGE))).unwrap();
        while drive.outstanding() > 32 {
            drive.wait().unwrap();
        }
    }
    while drive.wait().unwrap().is_some() {}
    let done = drive.counters().since(&before);
    let elapsed_s = drive.now().since(begun).0 as f64 / 1e9;
    (done.write_amplification().unwrap(), elapsed_s, drive)
}

fn content(compressed_share: f64, duplicate_share: f64) -> ContentModel {
    ContentModel { compressed_share, duplicate_share, ..ContentModel::default() }
}

/// Longer superblocks, of which a page is a small part.
fn longer(mut config: DeviceConfig) -> DeviceConfig {
    config.flash.pages_per_block = 24;
    config.flash.array_time_jitter = 0.0;
    config.ftl.placement = Placement::RoundRobin;
    config.capacity_bytes = config.raw_bytes() / 2 / PAGE * PAGE;
    config
}

#[test]
fn a_drive_of_random_data_gains_nothing_and_loses_little_by_compression() {
    let config = longer(reducing("samsung-960-evo", compression(Codec::Zlib, 64), None));
    let as_it_comes = DeviceConfig { reduction: None, ..config.clone() };
    let (compressed, time, drive) = overwrite(&config, content(1.0, 0.0));
    let (plain, plain_time, _) = overwrite(&as_it_comes, content(1.0, 0.0));
    // One more superblock of each unit is kept free; of 20, that is what collection loses, and no more.
    assert!(compressed >= plain * 0.99 && compressed < plain * 1.12, "{compressed} against {plain}");
    assert!(time >= plain_time * 0.95 && time < plain_time * 1.15, "{time} against {plain_time}");
    assert_eq!(drive.space_use().unwrap().physical_bytes, config.capacity_bytes);
}

#[test]
fn what_takes_half_the_room_costs_less_than_half_the_flash_because_collection_has_more_room_too() {
    let config = longer(reducing("samsung-960-evo", compression(Codec::Zlib, 64), None));
    let (whole, ..) = overwrite(&config, content(1.0, 0.0));
    let (half, _, drive) = overwrite(&config, content(0.5, 0.0));
    assert!(half < 0.5 * whole, "{half} against {whole}");
    // Each byte that is stored is programmed at least once.
    assert!(half >= 0.5, "{half}");
    assert_eq!(drive.space_use().unwrap().physical_bytes, config.capacity_bytes / 2);
}

#[test]
fn a_page_that_is_shared_is_stored_once_and_moved_once() {
    let config = longer(reducing("samsung-960-evo", None, Some(DeduplicationConfig::default())));
    let (unique, _, all) = overwrite(&config, content(1.0, 0.0));
    let (shared, _, drive) = overwrite(&config, content(1.0, 0.5));
    let counters = drive.reduction_counters().unwrap();
    let share = counters.duplicate_bytes as f64 / counters.written_bytes as f64;
    // Half of the pages are equal to one of the last 65,536, of which some have been overwritten since.
    assert!((0.2..=0.5).contains(&share), "{share}");
    assert!(shared < unique * (1.0 - share), "{shared} against {unique}, {share}");
    let moved = |drive: &SimulatedSsd| drive.counters().flash.unwrap().gc_pages_moved;
    // So many writes fewer make collection work, and its victims hold less.
    assert!((moved(&drive) as f64) < moved(&all) as f64 * (1.0 - share));
    drive.check_invariants().unwrap();
}

#[test]
fn engines_take_their_time_for_each_page_and_hashes_theirs() {
    let timed = |change: &dyn Fn(&mut DeviceConfig)| {
        let coding = CompressionConfig { granule_bytes: 64, ..CompressionConfig::default() };
        let mut config = reducing("samsung-960-evo", Some(coding), Some(DeduplicationConfig::default()));
        config.flash.array_time_jitter = 0.0;
        change(&mut config);
        let mut drive = SimulatedSsd::new(config, 1).unwrap();
        drive.set_content_model(content(0.3, 0.0));
        let write = execute(&mut drive, Request::write(ByteSize(0), ByteSize(2 * PAGE))).unwrap().latency().0;
        support::fill(&mut drive, 1 << 20, 4 << 20);
        drive.pause(Nanos::millis(50)).unwrap();
        let read = execute(&mut drive, Request::read(ByteSize(0), ByteSize(2 * PAGE))).unwrap().latency().0;
        (write, read)
    };
    let coding = |change: fn(&mut CompressionConfig)| {
        timed(&move |config| change(config.reduction.as_mut().unwrap().compression.as_mut().unwrap()))
    };
    let sharing = |change: fn(&mut DeduplicationConfig)| {
        timed(&move |config| change(config.reduction.as_mut().unwrap().deduplication.as_mut().unwrap()))
    };
    let (write, read) = timed(&|_| {});
    let slower = coding(|c| (c.compress_ns, c.decompress_ns) = (10_000, 7_000));
    // Both run while the host's last bytes come and go, up to what these take.
    assert!(slower.0 > write + 15_000 && slower.0 <= write + 20_000, "{} {write}", slower.0);
    assert!(slower.1 > read + 10_000 && slower.1 <= read + 14_000, "{} {read}", slower.1);
    let hashed = sharing(|d| d.fingerprint_ns = 10_000).0;
    assert!(hashed > write + 15_000 && hashed <= write + 20_000, "{hashed} {write}");
    // The short hash of a new page is unknown, so its fingerprint keeps nobody waiting.
    let pre_hashed = sharing(|d| (d.pre_hash, d.pre_hash_ns, d.fingerprint_ns) = (true, 1_000, 10_000)).0;
    assert!(pre_hashed <= write + 2_000, "{pre_hashed} {write}");
}

#[test]
fn pages_that_were_not_looked_up_are_merged_when_the_drive_has_nothing_to_do() {
    let out_of_line =
        DeduplicationConfig { in_line: false, out_of_line: true, idle_ns: 1_000_000, ..DeduplicationConfig::default() };
    let mut drive = SimulatedSsd::new(reducing("samsung-960-evo", None, Some(out_of_line)), 1).unwrap();
    let bytes = noise(1, 4);
    for page in 0..1000 {
        let mut buffer = IoBuffer::zeroed(PAGE as usize);
        buffer.copy_from_slice(&bytes);
        buffer[0] = page as u8 % 10;
        execute(&mut drive, Request::write(ByteSize(page * PAGE), ByteSize(PAGE)).with_buffer(buffer)).unwrap();
    }
    assert_eq!(drive.space_use().unwrap().physical_bytes, 1000 * PAGE);
    let read = drive.counters().flash.unwrap().bytes_read;
    drive.pause(Nanos::micros(900)).unwrap();
    assert_eq!(drive.space_use().unwrap().physical_bytes, 1000 * PAGE, "it was not quiet for long enough");
    drive.pause(Nanos::secs(1)).unwrap();
    assert_eq!(drive.space_use().unwrap().physical_bytes, 10 * PAGE);
    let counters = drive.reduction_counters().unwrap();
    assert_eq!((counters.merged_bytes, counters.lookups), (990 * PAGE, 1000));
    assert!(drive.counters().flash.unwrap().bytes_read > read, "pages on flash are read before they are merged");
    drive.check_invariants().unwrap();
}

#[test]
fn a_sample_of_each_write_decides_whether_the_rest_is_looked_up() {
    let sampling = DeduplicationConfig { sampling: true, ..DeduplicationConfig::default() };
    let mut drive = SimulatedSsd::new(reducing("samsung-960-evo", None, Some(sampling)), 1).unwrap();
    let write = |drive: &mut SimulatedSsd, page: u64, buffer: IoBuffer| {
        let length = ByteSize(buffer.len() as u64);
        execute(drive, Request::write(ByteSize(page * PAGE), length).with_buffer(buffer)).unwrap();
        drive.reduction_counters().unwrap()
    };
    assert_eq!(write(&mut drive, 0, noise(8, 1)).lookups, 1);
    // The first page is known, so the others are looked up; they never were before, and are written again.
    let again = write(&mut drive, 100, noise(8, 1));
    assert_eq!((again.duplicate_bytes, again.lookups), (PAGE, 1 + 8));
    // Now all of them are known.
    let before = drive.reduction_counters().unwrap().duplicate_bytes;
    assert_eq!(write(&mut drive, 300, noise(8, 1)).duplicate_bytes - before, 8 * PAGE);
    drive.check_invariants().unwrap();
}
