//! What must hold whatever is asked of a drive: no byte lost, no request lost, every count right.
use crate::support;

use std::collections::BTreeMap;

use flashwise_block::{BlockDevice, ByteSize, IoBuffer, Nanos, Operation, Request, execute};
use flashwise_ssd::config::{
    AllocationPool, CacheFlush, CachePolicy, CleaningPolicy, DataTransfer, GcReads, Mapping, MappingCacheConfig,
    PartialPages, Placement, ReadAheadConfig, ReadCacheConfig, StreamPolicy, StreamsConfig, WriteCacheConfig,
    WritePolicy,
};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use proptest::prelude::*;
use support::tiny;

const SECTOR: u64 = 512;

/// The drives that the properties are tried on: every structure, little space.
fn small_drives() -> Vec<DeviceConfig> {
    let mut xpoint = DeviceConfig::preset("intel-optane-905p").unwrap();
    xpoint.capacity_bytes = ByteSize::mib(4).bytes();
    vec![
        tiny("samsung-960-evo", ByteSize::mib(7), 13, 4),
        tiny("toshiba-xg5", ByteSize::mib(7), 13, 4),
        plane_by_plane(Placement::Static),
        plane_by_plane(Placement::LeastLoaded),
        caching_the_map(Placement::Stripe),
        caching_the_map(Placement::Static),
        mapping_blocks(Mapping::Block),
        mapping_blocks(Mapping::Fast),
        with_write_cache(tiny("samsung-960-evo", ByteSize::mib(7), 13, 4), CacheFlush::WhenFull),
        with_write_cache(tiny("toshiba-xg5", ByteSize::mib(7), 13, 4), CacheFlush::Watermark),
        with_write_cache(knowing_sectors(plane_by_plane(Placement::Static)), CacheFlush::Immediate),
        with_write_cache(caching_the_map(Placement::Static), CacheFlush::WhenFull),
        with_write_cache(knowing_sectors(plane_by_plane(Placement::RoundRobin)), CacheFlush::Watermark),
        writing_through(knowing_sectors(plane_by_plane(Placement::LeastLoaded))),
        reading_ahead(tiny("toshiba-xg5", ByteSize::mib(7), 13, 4)),
        reading_ahead(with_write_cache(plane_by_plane(Placement::Static), CacheFlush::WhenFull)),
        with_streams(tiny("samsung-960-evo", ByteSize::mib(7), 13, 4), StreamPolicy::Hint),
        with_streams(tiny("toshiba-xg5", ByteSize::mib(7), 13, 4), StreamPolicy::BloomFilters),
        with_streams(caching_the_map(Placement::Static), StreamPolicy::SepBit),
        with_streams(with_write_cache(plane_by_plane(Placement::Static), CacheFlush::WhenFull), StreamPolicy::Hint),
        with_parity(tiny("toshiba-xg5", ByteSize::mib(5), 13, 4)),
        with_parity(with_streams(tiny("samsung-960-evo", ByteSize::mib(3), 15, 4), StreamPolicy::SepBit)),
        of_elements(CleaningPolicy::Greedy, AllocationPool::Element),
        of_elements(CleaningPolicy::WearAware, AllocationPool::Element),
        of_elements(CleaningPolicy::WearAware, AllocationPool::Plane),
        tiny("micron-m500", ByteSize(3 << 20), 12, 8),
        xpoint,
    ]
}

/// A drive whose planes program by themselves, one logical page of 16 KiB at a time.
fn plane_by_plane(placement: Placement) -> DeviceConfig {
    let mut config = tiny("samsung-960-evo", ByteSize::mib(7), 13, 4);
    config.ftl.placement = placement;
    config.ftl.superpage_planes = Some(1);
    config.ftl.logical_page_bytes = config.flash.page_bytes;
    config.controller.write_buffer_bytes = ByteSize::kib(64).bytes();
    config.check("plane by plane").unwrap();
    config
}

/// Of every superpage a flash page holds parity; pages are collected one by one, and not replaced in the buffer.
fn with_parity(mut config: DeviceConfig) -> DeviceConfig {
    (config.ftl.parity_pages, config.ftl.replaces_in_buffer) = (1, false);
    (config.ftl.gc.reads, config.ftl.stripe_bytes) = (GcReads::Page, config.superpage_bytes());
    config.check("parity").unwrap();
    config
}

/// The drive with a write cache of 40 pages and DRAM that takes its time.
fn with_write_cache(mut config: DeviceConfig, flush: CacheFlush) -> DeviceConfig {
    config.controller.write_cache = Some(WriteCacheConfig {
        bytes: 40 * config.ftl.logical_page_bytes,
        policy: if flush == CacheFlush::Watermark { CachePolicy::Fifo } else { CachePolicy::Lru },
        flush,
        high_watermark: 0.7,
        low_watermark: 0.2,
        hot_window_ns: (flush == CacheFlush::Immediate).then_some(2_000_000),
    });
    (config.controller.dram_ns_per_access, config.controller.dram_bytes_per_s) = (26, 200_000_000);
    config.check("write cache").unwrap();
    config
}

/// The drive with room for the open superblocks of streams.
fn with_streams(mut config: DeviceConfig, policy: StreamPolicy) -> DeviceConfig {
    (config.flash.blocks_per_plane, config.controller.write_buffer_bytes) = (24, 4 << 20);
    config.ftl.streams = StreamsConfig { policy, streams: 3, decay_share: 0.2, ..StreamsConfig::default() };
    config.check("streams").unwrap();
    config
}

/// The drive, remembering which parts of a page hold data.
fn knowing_sectors(mut config: DeviceConfig) -> DeviceConfig {
    config.ftl.partial_pages = PartialPages::Sectors;
    config
}

/// The drive, whose writes complete when they are on flash.
fn writing_through(mut config: DeviceConfig) -> DeviceConfig {
    config.controller.write_policy = WritePolicy::Through;
    config.host.data_transfer = DataTransfer::StoreAndForward;
    config.check("writing through").unwrap();
    config
}

/// The drive with a read cache of 64 pages, reading 16 pages ahead.
fn reading_ahead(mut config: DeviceConfig) -> DeviceConfig {
    config.controller.read_cache =
        Some(ReadCacheConfig { bytes: 64 * config.ftl.logical_page_bytes, policy: CachePolicy::Lru });
    config.controller.read_ahead = Some(ReadAheadConfig { pages: 16, streams: 2, trigger: 2 });
    config.host.data_transfer = DataTransfer::WholeRequest;
    config.check("reading ahead").unwrap();
    config
}

/// A drive that holds a hundred entries of its page map in memory and the rest on flash.
fn caching_the_map(placement: Placement) -> DeviceConfig {
    let mut config = if placement == Placement::Stripe {
        tiny("samsung-960-evo", ByteSize::mib(7), 13, 4)
    } else {
        plane_by_plane(placement)
    };
    config.ftl.mapping_cache = Some(MappingCacheConfig {
        capacity_bytes: 800,
        cached_entry_bytes: 8,
        stored_entry_bytes: 64,
        load_bytes: None,
        stored_at_start: false,
        deferred_write_back: false,
        partitions: 2,
        write_back_renews: false,
    });
    config.check("caching the map").unwrap();
    config
}

/// The same with an FTL that maps blocks.
fn mapping_blocks(mapping: Mapping) -> DeviceConfig {
    let mut config = plane_by_plane(Placement::Static);
    config.ftl.mapping = mapping;
    config.check("mapping blocks").unwrap();
    config
}

/// A drive of three elements with 24 blocks each that clean by themselves and wear visibly.
fn of_elements(policy: CleaningPolicy, pool: AllocationPool) -> DeviceConfig {
    let mut config = DeviceConfig::preset("disksim-msr").unwrap();
    (config.flash.channels, config.flash.planes_per_die) = (3, 2);
    (config.flash.blocks_per_plane, config.flash.pages_per_block) = (12, 5);
    config.host.max_transfer_bytes = ByteSize::kib(256).bytes();
    config.host.command_latency_ns = 1_000;
    config.ftl.element.min_free_share = 0.1;
    (config.ftl.element.cleaning_policy, config.ftl.element.allocation_pool) = (policy, pool);
    config.ftl.element.lifetime_erasures = 3_000;
    config.capacity_bytes = 8 * config.ftl.element.row_bytes(&config);
    config.check("of elements").unwrap();
    config
}

#[derive(Clone, Debug)]
struct Step {
    operation: Operation,
    fua: bool,
    sector: u64,
    sectors: u64,
    fill: u8,
    /// Requests submitted together before anything is waited for.
    together: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let operation = prop_oneof![
        5 => Just(Operation::Write),
        3 => Just(Operation::Read),
        1 => Just(Operation::Trim),
        1 => Just(Operation::WriteZeroes),
        1 => Just(Operation::Flush),
    ];
    (operation, any::<bool>(), 0_u64..4096, 1_u64..300, any::<u8>(), any::<bool>()).prop_map(
        |(operation, fua, sector, sectors, fill, together)| Step { operation, fua, sector, sectors, fill, together },
    )
}

/// A drive beside the naive model of one: a map from sector to its fill byte.
struct Pair {
    drive: SimulatedSsd,
    model: BTreeMap<u64, u8>,
    /// What each read in flight must give, by tag.
    expected: BTreeMap<u64, Vec<u8>>,
    /// Sectors of the requests in flight, and whether they change them. A drive may do requests in any order, so a
    /// request waits for those that touch the same sectors, unless both are reads.
    busy: Vec<(u64, u64, bool)>,
    tag: u64,
    last_completion: Nanos,
}

impl Pair {
    fn apply(&mut self, step: &Step) {
        let capacity = self.drive.info().capacity.bytes() / SECTOR;
        let sector = step.sector % capacity;
        let sectors = step.sectors.min(capacity - sector);
        let overlaps = self.busy.iter().any(|&(from, to, changes)| {
            sector < to && from < sector + sectors && (changes || step.operation != Operation::Read)
        });
        if overlaps || !step.together || step.operation == Operation::Flush {
            self.drain();
        }
        self.tag += 1;
        let (offset, length) = (ByteSize(sector * SECTOR), ByteSize(sectors * SECTOR));
        let request = match step.operation {
            Operation::Write => {
                self.remember(sector, sectors, Some(step.fill));
                let mut buffer = IoBuffer::zeroed(length.bytes() as usize);
                buffer.fill(step.fill);
                let request = Request::write(offset, length).with_buffer(buffer);
                if step.fua { request.with_fua() } else { request }
            }
            Operation::Trim => {
                self.remember(sector, sectors, None);
                Request::trim(offset, length)
            }
            Operation::Read => {
                let byte_of = |s: u64| self.model.get(&s).copied().unwrap_or(0);
                let bytes = (sector..sector + sectors).flat_map(|s| [byte_of(s); SECTOR as usize]).collect();
                self.expected.insert(self.tag, bytes);
                Request::read(offset, length).with_buffer(IoBuffer::zeroed(length.bytes() as usize))
            }
            Operation::WriteZeroes => {
                self.remember(sector, sectors, None);
                let request = Request::write_zeroes(offset, length);
                if step.fua { request.with_fua() } else { request }
            }
            Operation::Flush => Request::flush(),
        };
        self.busy.push((sector, sector + sectors, step.operation != Operation::Read));
        self.drive.submit(request.tagged(self.tag)).unwrap();
    }

    fn remember(&mut self, sector: u64, sectors: u64, fill: Option<u8>) {
        for s in sector..sector + sectors {
            match fill {
                Some(fill) => self.model.insert(s, fill),
                None => self.model.remove(&s),
            };
        }
    }

    fn drain(&mut self) {
        while let Some(completion) = self.drive.wait().unwrap() {
            assert!(completion.completed_at >= self.last_completion, "time never runs back");
            self.last_completion = completion.completed_at;
            completion.result.unwrap();
            if let Some(expected) = self.expected.remove(&completion.tag) {
                assert!(*completion.buffer.unwrap() == *expected, "a read gave other bytes than were written");
            }
        }
        self.busy.clear();
        assert!(self.expected.is_empty(), "a read was lost");
        assert_eq!(self.drive.outstanding(), 0);
    }

    fn check_everything(&mut self) {
        self.drain();
        self.drive.check_invariants().unwrap();
        let capacity = self.drive.info().capacity.bytes() / SECTOR;
        let all = Step { operation: Operation::Read, fua: false, sector: 0, sectors: 256, fill: 0, together: false };
        (0..capacity).step_by(256).for_each(|sector| self.apply(&Step { sector, ..all.clone() }));
        self.drain();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn data_read_equals_data_last_written_through_gc_trim_and_partial_pages(
        steps in prop::collection::vec(step(), 1..400),
    ) {
        for config in small_drives() {
            let drive = SimulatedSsd::new(config, 7).unwrap();
            let (model, expected) = (BTreeMap::new(), BTreeMap::new());
            let mut pair = Pair { drive, model, expected, busy: vec![], tag: 0, last_completion: Nanos(0) };
            steps.iter().for_each(|step| pair.apply(step));
            pair.check_everything();
            let name = pair.drive.info().name.clone();
            let counters = pair.drive.counters();
            prop_assert!(counters.write_amplification().is_none_or(|_| counters.flash.is_some()), "{}", name);
        }
    }
}

/// Overwrites a drive at random, a queue of 32 deep, and gives the write amplification of the last half.
fn steady_write_amplification(config: DeviceConfig, overwrites: u64) -> (SimulatedSsd, f64) {
    let mut drive = SimulatedSsd::new(config, 3).unwrap();
    let pages = drive.info().capacity.bytes() / 4096;
    support::fill(&mut drive, 0, pages * 4096);
    let mut before = drive.counters();
    let mut state = 12345_u64;
    let total = pages * overwrites;
    for n in 0..total {
        if n == total / 2 {
            before = drive.counters();
        }
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let page = (state >> 33) % pages;
        drive.submit(Request::write(ByteSize(page * 4096), ByteSize(4096))).unwrap();
        while drive.outstanding() >= 32 {
            drive.wait().unwrap();
        }
    }
    while drive.wait().unwrap().is_some() {}
    let amplification = drive.counters().since(&before).write_amplification().unwrap();
    (drive, amplification)
}

/// W₀, by Newton's method.
fn lambert_w(x: f64) -> f64 {
    (0..100).fold(-0.3, |w: f64, _| w - (w * w.exp() - x) / (w.exp() * (w + 1.0)))
}

#[test]
fn in_steady_state_greedy_gc_writes_as_much_as_theory_says_for_uniform_random_writes() {
    let mut config = tiny("samsung-960-evo", ByteSize::mib(64), 250, 64);
    config.flash.channels = 1;
    config.flash.array_time_jitter = 0.0;
    // A free superblock, and on average a half of each of the two open ones, hold no valid data.
    let usable = config.raw_bytes() as f64 * (250.0 - 2.0) / 250.0;
    config.capacity_bytes = (usable * 0.80) as u64 / 65536 * 65536;
    let alpha = usable / config.capacity_bytes as f64;
    let theory = alpha / (alpha + lambert_w(-alpha * (-alpha).exp()));
    let (drive, measured) = steady_write_amplification(config, 6);
    drive.check_invariants().unwrap();
    println!("measured {measured:.3}, theory {theory:.3}");
    assert!((measured / theory - 1.0).abs() < 0.02, "measured {measured}, theory {theory}");
    let (least, most) = drive.erase_counts();
    assert!(most > least && drive.counters().flash.unwrap().erases > 0);
}

#[test]
fn the_same_seed_gives_the_same_times_and_another_seed_others() {
    let run = |seed| {
        let mut drive = SimulatedSsd::new(DeviceConfig::preset("toshiba-xg5").unwrap(), seed).unwrap();
        support::fill(&mut drive, 0, 1 << 22);
        support::read_us(&mut drive, 4096, 65536)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_flush_waits_for_what_is_in_the_buffer_and_padding_is_counted() {
    let mut drive = support::exact("samsung-960-evo");
    support::write(&mut drive, 0, 4096);
    assert_eq!(drive.counters().flash.unwrap().bytes_programmed, ByteSize(0));
    let flush = execute(&mut drive, Request::flush()).unwrap();
    assert!(flush.latency() > Nanos::micros(660), "{}", flush.latency());
    let flash = drive.counters().flash.unwrap();
    assert_eq!((flash.bytes_programmed, flash.padding_bytes), (ByteSize::kib(32), ByteSize::kib(28)));
}

#[test]
fn power_loss_protection_makes_flushes_and_forced_writes_as_cheap_as_others() {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    config.controller.power_loss_protection = true;
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    assert!(support::durable_write_us(&mut drive, 0, 4096) < 50.0);
    assert!(execute(&mut drive, Request::flush()).unwrap().latency() < Nanos::micros(50));
}

#[test]
fn a_sata_drive_takes_no_more_than_32_commands_at_once_and_loses_none() {
    let mut drive = support::exact("micron-m500");
    support::fill(&mut drive, 0, 1 << 22);
    for n in 0..1000 {
        drive.submit(Request::read(ByteSize(n % 1024 * 4096), ByteSize(4096)).tagged(n)).unwrap();
    }
    let mut tags: Vec<u64> = std::iter::from_fn(|| drive.wait().unwrap().map(|c| c.tag)).collect();
    tags.sort_unstable();
    assert_eq!(tags, (0..1000).collect::<Vec<_>>());
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let mut drive = support::exact("micron-m500");
    let end = drive.info().capacity.bytes();
    for (offset, length) in [(end, 512), (end - 512, 1024), (1, 512), (0, 0), (0, 100), (0, 1 << 30)] {
        let error = drive.submit(Request::write(ByteSize(offset), ByteSize(length))).unwrap_err();
        assert!(error.to_string().starts_with("Write of"), "{error}");
    }
    assert_eq!(drive.outstanding(), 0);
}
