//! How space is reclaimed: no byte is lost by any policy, wear levelling or failing superblock, and each of them does
//! what it is for.
use crate::support;

use std::collections::VecDeque;

use flashwise_block::{BlockDevice, BlockError, ByteSize, IoBuffer, Nanos, Operation, Request, execute};
use flashwise_ssd::config::{
    DynamicWearLevelling, GcConfig, GcMode, GcPolicy, Placement, ReliabilityConfig, StaticWearLevelling,
};
use flashwise_ssd::ftl::gc::{Candidate, Choice, Context, Origin, Shape, VictimPolicy};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use proptest::prelude::*;
use support::tiny;

const PAGE: u64 = 4096;

/// A drive of 16 dies with room for failures: `planes` program by themselves, or a die as a whole.
fn drive(by_plane: bool) -> DeviceConfig {
    let mut config = tiny("samsung-960-evo", ByteSize::mib(5), 26, 4);
    config.flash.channels = 2;
    config.flash.array_time_jitter = 0.0;
    if by_plane {
        config.ftl.placement = Placement::Static;
        config.ftl.superpage_planes = Some(1);
        config.flash.page_bytes = PAGE;
        config.capacity_bytes = ByteSize::mib(2).bytes();
    }
    config.host.max_transfer_bytes = ByteSize::kib(64).bytes();
    config.controller.write_buffer_bytes = ByteSize::kib(512).bytes();
    config
}

/// Every policy with every way to pace it and to level wear.
fn any_drive() -> impl Strategy<Value = DeviceConfig> {
    let modes = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let wear = (any::<bool>(), any::<bool>(), prop::option::of(5_u32..60), any::<bool>());
    let pace = prop::option::of(1.0_f64..4.0);
    (prop::sample::select(&GcPolicy::ALL[..]), modes, wear, 1_u32..=3, (1_u32..=4, pace)).prop_map(
        |(policy, (by_plane, foreground, preemptible, shared, copy_back), wear, victims, (rows, pace))| {
            let mut config = drive(by_plane);
            config.ftl.gc = GcConfig {
                policy,
                free_superblocks: Some(3),
                mode: if foreground { GcMode::Foreground } else { GcMode::Background },
                preemptible,
                separate_open_block: !shared,
                copy_back: copy_back && by_plane,
                concurrent_victims: victims,
                reads_in_flight: rows,
                pace,
                lifetime_erasures: 20,
                migration_ratio: wear.3.then_some(0.85),
                ..GcConfig::default()
            };
            if wear.0 {
                config.ftl.wear_levelling.dynamic = DynamicWearLevelling::LeastErased;
            }
            if wear.1 {
                (config.ftl.wear_levelling.static_, config.ftl.wear_levelling.threshold) =
                    (StaticWearLevelling::Threshold, 2);
            }
            config.ftl.bad_blocks.erasures_max = wear.2;
            config.check("any drive").unwrap();
            config
        },
    )
}

/// The byte that a page is filled with, page by page.
struct Model {
    drive: SimulatedSsd,
    bytes: Vec<u8>,
    /// Pages whose last write was refused: old or new.
    unsure: Vec<bool>,
}

impl Model {
    fn new(config: DeviceConfig) -> Self {
        let pages = (config.capacity_bytes / PAGE) as usize;
        let drive = SimulatedSsd::new(config, 5).unwrap();
        Self { drive, bytes: vec![0; pages], unsure: vec![false; pages] }
    }

    fn pages(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn write(&mut self, page: u64, byte: u8, forced: bool) {
        let mut buffer = IoBuffer::zeroed(PAGE as usize);
        buffer.fill(byte);
        let request = Request::write(ByteSize(page * PAGE), ByteSize(PAGE)).with_buffer(buffer).tagged(page);
        self.drive.submit(if forced { request.with_fua() } else { request }).unwrap();
        self.bytes[page as usize] = byte;
        while self.drive.outstanding() > 15 {
            self.wait();
        }
    }

    fn wait(&mut self) {
        let done = self.drive.wait().unwrap().unwrap();
        match done.result {
            Ok(()) => {}
            Err(BlockError::ReadOnly) => {
                assert!(self.drive.is_read_only() && done.operation != Operation::Read);
                self.unsure[done.tag as usize] = true;
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn drain(&mut self) {
        while self.drive.outstanding() > 0 {
            self.wait();
        }
    }

    fn read_back_everything(&mut self) {
        self.drain();
        self.drive.check_invariants().unwrap();
        for page in 0..self.pages() {
            let request = Request::read(ByteSize(page * PAGE), ByteSize(PAGE));
            let done = execute(&mut self.drive, request.with_buffer(IoBuffer::zeroed(PAGE as usize))).unwrap();
            let is_right = done.buffer.unwrap().iter().all(|&byte| byte == self.bytes[page as usize]);
            assert!(is_right || self.unsure[page as usize], "page {page} is not what was written last");
        }
    }
}

/// Pages in an order that hits a tenth of them half of the time.
fn page_of(n: u64, pages: u64) -> u64 {
    let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20;
    if n.is_multiple_of(2) { random % (pages / 10) } else { random % pages }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_policy_loses_a_byte_nor_does_a_superblock_that_is_retired(
        config in any_drive(), retired in prop::collection::vec(0_u32..800, 0..12), seed in any::<u32>(),
    ) {
        let mut model = Model::new(config);
        let (pages, mut retired) = (model.pages(), retired.into_iter());
        let writes = 6 * pages;
        for n in 0..writes {
            model.write(page_of(n + u64::from(seed), pages), n as u8, n.is_multiple_of(17));
            if n % (writes / 12) == writes / 24 {
                retired.next().into_iter().for_each(|superblock| model.drive.retire_block(superblock));
            }
        }
        model.read_back_everything();
    }

    #[test]
    fn a_program_or_an_erase_that_fails_loses_nothing(config in any_drive(), per_mille in 0_u32..20) {
        let probability = f64::from(per_mille) / 10_000.0;
        let mut config = config;
        config.flash.reliability = Some(ReliabilityConfig {
            program_failure_probability: probability,
            erase_failure_probability: 10.0 * probability,
            failure_exponent: 0.0,
            ..ReliabilityConfig::default()
        });
        let mut model = Model::new(config);
        let pages = model.pages();
        for n in 0..5 * pages {
            model.write(page_of(n, pages), n as u8, n.is_multiple_of(13));
        }
        model.read_back_everything();
    }
}

/// Fills a drive and then writes single pages, all of them to its first tenth.
fn overwrite_first_tenth(config: DeviceConfig, overwrites: u64) -> SimulatedSsd {
    overwrite(config, overwrites, |n, pages| page_of(2 * n, pages))
}

/// Fills a drive and then writes single pages, half of them to its first tenth.
fn overwrite_skewed(config: DeviceConfig, overwrites: u64) -> SimulatedSsd {
    overwrite(config, overwrites, page_of)
}

fn overwrite(config: DeviceConfig, overwrites: u64, page_of: impl Fn(u64, u64) -> u64) -> SimulatedSsd {
    overwrite_on(SimulatedSsd::new(config, 1).unwrap(), overwrites, page_of)
}

fn overwrite_on(mut drive: SimulatedSsd, overwrites: u64, page_of: impl Fn(u64, u64) -> u64) -> SimulatedSsd {
    let pages = drive.info().capacity.bytes() / PAGE;
    support::fill(&mut drive, 0, pages * PAGE);
    for n in 0..overwrites * pages {
        let page = page_of(n, pages);
        drive.submit(Request::write(ByteSize(page * PAGE), ByteSize(PAGE))).unwrap();
        while drive.outstanding() > 15 {
            drive.wait().unwrap().unwrap().result.unwrap();
        }
    }
    while drive.wait().unwrap().is_some() {}
    drive.check_invariants().unwrap();
    drive
}

/// Erasures between the most and the least worn superblock.
fn spread(drive: &SimulatedSsd) -> u32 {
    let (least, most) = drive.erase_counts();
    most - least
}

#[test]
fn static_wear_levelling_keeps_superblocks_close_and_its_cost_is_told_apart() {
    let config = |static_, dynamic| {
        let mut config = drive(true);
        config.ftl.wear_levelling.static_ = static_;
        config.ftl.wear_levelling.dynamic = dynamic;
        config.ftl.wear_levelling.threshold = 4;
        config
    };
    let fifo = DynamicWearLevelling::Fifo;
    let without = overwrite_first_tenth(config(StaticWearLevelling::None, fifo), 60);
    let with = overwrite_first_tenth(config(StaticWearLevelling::Threshold, DynamicWearLevelling::LeastErased), 60);
    assert!(spread(&without) > 90, "cold data stays where it is: {:?}", without.erase_histogram());
    // The superblocks of a unit are a few erasures apart, and so are the units, because no data goes from one to
    // another.
    assert!(spread(&with) < 15, "{:?}", with.erase_histogram());
    let [without, with] = [without, with].map(|drive| drive.counters().flash.unwrap());
    assert_eq!((without.wear_levelling_bytes_moved, without.wear_levelling_runs), (ByteSize(0), 0));
    assert!(with.wear_levelling_runs > 0 && with.wear_levelling_bytes_moved > ByteSize(0));
    assert_eq!(with.gc_pages_moved * PAGE, with.gc_bytes_moved.bytes());
}

#[test]
fn taking_the_least_erased_free_superblock_wears_them_more_evenly_than_taking_the_oldest() {
    let after = |dynamic| {
        let mut config = drive(true);
        config.capacity_bytes /= 2;
        (config.ftl.gc.policy, config.ftl.gc.free_superblocks) = (GcPolicy::Random, Some(8));
        config.ftl.wear_levelling.dynamic = dynamic;
        let drive = overwrite_first_tenth(config, 60);
        let histogram = drive.erase_histogram();
        let blocks: u64 = histogram.values().sum();
        let mean = histogram.iter().map(|(&n, &k)| u64::from(n) * k).sum::<u64>() as f64 / blocks as f64;
        histogram.iter().map(|(&n, &k)| k as f64 * (f64::from(n) - mean).powi(2)).sum::<f64>() / blocks as f64
    };
    let [oldest, least] = [DynamicWearLevelling::Fifo, DynamicWearLevelling::LeastErased].map(after);
    assert!(least < oldest, "variance {least} of the least erased, {oldest} of the oldest");
}

#[test]
fn migration_moves_cold_data_onto_worn_superblocks() {
    let after = |migration_ratio| {
        let mut config = drive(true);
        config.ftl.gc.policy = GcPolicy::WearAware;
        (config.ftl.gc.migration_ratio, config.ftl.gc.lifetime_erasures) = (migration_ratio, 200);
        overwrite_first_tenth(config, 60)
    };
    let (without, with) = (after(None), after(Some(0.85)));
    assert!(with.counters().flash.unwrap().wear_levelling_runs > 0);
    assert!(spread(&with) < spread(&without), "{} {}", spread(&with), spread(&without));
}

#[test]
fn superblocks_bad_from_the_factory_are_never_written() {
    let mut config = drive(false);
    config.ftl.bad_blocks.initial_share = 0.1;
    let units = config.units();
    let drive = overwrite_first_tenth(config, 60);
    // 10 % of 26, rounded up, in each unit.
    assert!(drive.erase_histogram()[&0] >= 3 * units);
    assert_eq!(drive.counters().flash.unwrap().retired_superblocks, 0);
}

#[test]
fn a_drive_without_spares_refuses_writes_and_still_reads() {
    let mut model = Model::new(drive(true));
    let pages = model.pages();
    (0..pages).for_each(|page| model.write(page, page as u8, false));
    (0..).map(|n| n * 7).take_while(|&n| n < 26 * 8).for_each(|superblock| model.drive.retire_block(superblock));
    for superblock in 0..20 {
        model.drive.retire_block(superblock);
    }
    assert!(model.drive.is_read_only());
    model.drain();
    let refused = execute(&mut model.drive, Request::write(ByteSize(0), ByteSize(PAGE))).unwrap_err();
    assert_eq!(refused, BlockError::ReadOnly);
    let refused = execute(&mut model.drive, Request::trim(ByteSize(0), ByteSize(PAGE))).unwrap_err();
    assert_eq!(refused, BlockError::ReadOnly);
    model.read_back_everything();
}

#[test]
fn what_moves_out_of_a_retired_superblock_is_told_apart() {
    let mut drive = SimulatedSsd::new(drive(false), 1).unwrap();
    support::fill(&mut drive, 0, 1 << 20);
    drive.retire_block(0);
    drive.pause(Nanos::millis(100)).unwrap();
    let flash = drive.counters().flash.unwrap();
    assert_eq!(flash.retired_superblocks, 1);
    assert!(flash.retirement_bytes_moved > ByteSize(0) && flash.gc_bytes_moved == ByteSize(0));
    drive.check_invariants().unwrap();
}

/// The drive of one plane, small pages and long erases, written until it is low on free superblocks.
fn low_drive(mode: GcMode) -> SimulatedSsd {
    let mut config = drive(true);
    (config.flash.channels, config.flash.dies_per_chip, config.flash.planes_per_die) = (1, 1, 1);
    config.capacity_bytes = 40 * PAGE;
    (config.ftl.gc.mode, config.ftl.gc.free_superblocks) = (mode, Some(3));
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    let mut n = 0;
    // The 24th superblock opened leaves two free: with the next command, the unit has to be cleaned.
    while n < 4 * 23 + 1 {
        support::durable_write_us(&mut drive, n % 40 * PAGE, PAGE);
        n += 1;
    }
    drive
}

#[test]
fn in_the_foreground_a_read_waits_until_its_die_is_clean_and_nothing_is_collected_before() {
    let mut foreground = low_drive(GcMode::Foreground);
    assert_eq!(foreground.counters().flash.unwrap().erases, 0);
    foreground.pause(Nanos::millis(100)).unwrap();
    assert_eq!(foreground.counters().flash.unwrap().erases, 0, "an idle drive cleans nothing");
    let first = support::read_us(&mut foreground, 0, PAGE);
    assert_eq!(foreground.counters().flash.unwrap().erases, 1);
    let second = support::read_us(&mut foreground, 0, PAGE);
    assert!(first >= second + 3_500.0, "the first read waits for an erase of 3.5 ms: {first} µs, then {second} µs");

    let mut background = low_drive(GcMode::Background);
    background.pause(Nanos::millis(100)).unwrap();
    assert!(background.counters().flash.unwrap().erases > 0, "collected as soon as it was low");
}

/// Units that hold nothing but valid data, beside units of garbage that the same pages may go to: pages written one by
/// one alternate between two channels, so that every second unit of each channel gets all of them, and then more than
/// it holds.
#[test]
fn in_the_foreground_a_page_whose_unit_has_nothing_to_gain_makes_another_unit_collect() {
    let mut config = drive(true);
    (config.ftl.placement, config.ftl.stripe_bytes) = (Placement::Stripe, PAGE);
    (config.ftl.gc.mode, config.capacity_bytes) = (GcMode::Foreground, 300 * PAGE);
    config.flash.planes_per_die = 1;
    config.check("skewed").unwrap();
    let pages = config.capacity_bytes / PAGE;
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    let last = pages - pages / 16..pages;
    for page in (0..pages).chain((0..60).flat_map(|_| last.clone())) {
        support::write(&mut drive, page * PAGE, PAGE);
    }
    assert!(drive.counters().flash.unwrap().erases > 0);
    assert_eq!((drive.check_invariants(), drive.is_read_only()), (Ok(()), false));
}

/// Mean latency of reads in µs while random writes keep garbage collection going.
fn reads_beside_collection(preemptible: bool) -> f64 {
    let mut config = drive(true);
    config.ftl.gc.preemptible = preemptible;
    config.ftl.gc.free_superblocks = Some(6);
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    let pages = drive.info().capacity.bytes() / PAGE;
    support::fill(&mut drive, 0, pages * PAGE);
    let (mut total_us, mut reads) = (0.0, 0.0);
    for n in 0..8 * pages {
        drive.submit(Request::write(ByteSize(page_of(2 * n + 1, pages) * PAGE), ByteSize(PAGE))).unwrap();
        drive.submit(Request::read(ByteSize(page_of(2 * n + 3, pages) * PAGE), ByteSize(PAGE))).unwrap();
        while drive.outstanding() > 2 {
            let done = drive.wait().unwrap().unwrap();
            if done.operation == Operation::Read && n > 2 * pages {
                (total_us, reads) = (total_us + done.latency().0 as f64 / 1e3, reads + 1.0);
            }
        }
        drive.pause(Nanos::micros(100)).unwrap();
    }
    total_us / reads
}

#[test]
fn a_preemptible_collection_delays_reads_less() {
    let (patient, polite) = (reads_beside_collection(false), reads_beside_collection(true));
    assert!(polite < patient, "{polite} µs with preemption, {patient} µs without");
}

/// The latency below which 99 of 100 random writes stay, in µs, of a drive of two dies that is nearly as busy as it can
/// be; a victim of it has 64 rows, and the write buffer has space for 12.
fn writes_beside_collection(pace: Option<f64>) -> f64 {
    let mut config = tiny("samsung-960-evo", ByteSize::mib(80), 26, 64);
    (config.flash.channels, config.flash.chips_per_channel) = (1, 1);
    (config.ftl.superpage_channels, config.ftl.superpage_ways) = (1, 1);
    (config.ftl.gc.pace, config.ftl.gc.free_superblocks) = (pace, Some(4));
    config.controller.write_buffer_bytes = 12 * config.superpage_bytes();
    config.capacity_bytes = config.raw_bytes() * 11 / 16;
    config.check("two dies").unwrap();
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    let pages = drive.info().capacity.bytes() / PAGE;
    support::fill(&mut drive, 0, pages * PAGE);
    let mut latencies = Vec::new();
    let start = drive.now();
    for n in 0..2 * pages {
        let due = start + Nanos::micros(165 * n);
        while let Some(done) = drive.wait_until(due).unwrap() {
            latencies.push(done.latency().0);
        }
        drive.submit(Request::write(ByteSize(page_of(2 * n + 1, pages) * PAGE), ByteSize(PAGE))).unwrap();
    }
    latencies.drain(..latencies.len() / 4);
    latencies.sort_unstable();
    latencies[latencies.len() * 99 / 100] as f64 / 1e3
}

#[test]
fn a_paced_collection_delays_writes_less() {
    let (burst, paced) = (writes_beside_collection(None), writes_beside_collection(Some(1.0)));
    assert!(paced < burst / 10.0, "{paced} µs at the host's pace, {burst} µs as fast as the flash allows");
}

#[test]
fn reading_rows_ahead_makes_a_collection_shorter_where_a_row_is_on_few_dies() {
    let end = |rows| {
        let mut config = drive(false);
        config.ftl.superpage_channels = 2;
        config.ftl.stripe_bytes = config.superpage_bytes();
        (config.ftl.gc.reads_in_flight, config.flash.read_ns) = (rows, 500_000);
        config.check("rows").unwrap();
        overwrite_skewed(config, 12).now().0
    };
    let (one, four) = (end(1), end(4));
    assert!(four < one, "{four} ns with four rows in flight, {one} ns with one");
}

#[test]
fn copying_back_keeps_moved_pages_off_the_channel() {
    let end = |copy_back| {
        let mut config = drive(true);
        (config.flash.channel_bytes_per_s, config.ftl.gc.copy_back) = (10_000_000, copy_back);
        overwrite_skewed(config, 6).now().0
    };
    let (across, back) = (end(false), end(true));
    assert!(back < across, "{back} ns with copy-back, {across} ns without");
}

#[test]
fn the_share_of_free_superblocks_is_rounded_as_disksim_does() {
    let mut config = drive(false);
    config.ftl.gc.free_superblocks = None;
    for (share, threshold) in [(0.05, 2), (0.1, 3), (0.2, 6)] {
        config.ftl.gc.free_share = Some(share);
        // At ⌊share × 26⌋ free superblocks or fewer.
        assert_eq!(config.gc_threshold(), threshold);
    }
    config.ftl.gc.free_superblocks = Some(3);
    assert!(config.check("both").unwrap_err().to_string().contains("free_share"));
}

/// FIFO, as somebody outside would write it.
struct OwnFifo {
    sealed: Vec<VecDeque<u32>>,
    superblocks: u32,
}

impl OwnFifo {
    fn boxed(shape: Shape) -> Box<dyn VictimPolicy + Send> {
        let sealed = vec![VecDeque::new(); shape.units as usize];
        Box::new(Self { sealed, superblocks: shape.superblocks })
    }
}

impl VictimPolicy for OwnFifo {
    fn candidates(&self) -> Vec<Candidate> {
        self.sealed.iter().flatten().map(|&block| block.into()).collect()
    }

    fn sealed(&mut self, block: u32, _: u32, _: Origin, _: u64) {
        self.sealed[(block / self.superblocks) as usize].push_back(block);
    }

    fn invalidated(&mut self, _: u32, _: u32, _: u64) {}

    fn removed(&mut self, block: u32) {
        self.sealed[(block / self.superblocks) as usize].retain(|&other| other != block);
    }

    fn take_victim(&mut self, unit: u32, context: &mut Context<'_>) -> Option<Choice> {
        let victim = self.sealed[unit as usize].pop_front()?;
        assert!(f64::from(context.erase_count(victim)) <= context.mean_erase_count() + 2.0 && context.clock() > 0);
        Some(victim.into())
    }
}

#[test]
fn a_policy_of_the_callers_collects_as_the_same_one_of_the_list() {
    let mut config = drive(true);
    config.ftl.gc.policy = GcPolicy::Fifo;
    let listed = overwrite_skewed(config, 12);
    let own = SimulatedSsd::with_victim_policy(drive(true), 1, OwnFifo::boxed).unwrap();
    assert!(own.has_own_victim_policy() && !listed.has_own_victim_policy());
    let mut own = overwrite_on(own, 12, page_of);
    assert_eq!((own.now(), own.counters()), (listed.now(), listed.counters()));
    assert_eq!(own.erase_histogram(), listed.erase_histogram());
    own.shut_down().unwrap();
    let refused = own.save(serde_json::Value::Null, &mut Vec::new()).unwrap_err().to_string();
    let reason = "its garbage-collection policy is not built in";
    assert_eq!(refused, format!("cannot save the state of this drive: {reason}"));
}

#[test]
fn a_policy_for_a_drive_that_does_not_map_pages_is_refused() {
    let optane = DeviceConfig::preset("intel-optane-905p").unwrap();
    let refused = SimulatedSsd::with_victim_policy(optane, 1, OwnFifo::boxed).map(|_| ()).unwrap_err().to_string();
    assert!(
        refused.contains("ftl.mapping = \"in-place\"") && refused.contains("requires mapping = \"page\""),
        "{refused}"
    );
}

#[test]
#[should_panic(expected = "is not a candidate: it is not sealed")]
fn a_policy_that_names_what_is_not_sealed_is_stopped() {
    /// Always the first superblock of the unit.
    struct First(OwnFifo);
    impl VictimPolicy for First {
        fn candidates(&self) -> Vec<Candidate> {
            self.0.candidates()
        }
        fn sealed(&mut self, block: u32, valid: u32, origin: Origin, clock: u64) {
            self.0.sealed(block, valid, origin, clock);
        }
        fn invalidated(&mut self, _: u32, _: u32, _: u64) {}
        fn removed(&mut self, block: u32) {
            self.0.removed(block);
        }
        fn take_victim(&mut self, unit: u32, _: &mut Context<'_>) -> Option<Choice> {
            Some((unit * self.0.superblocks).into())
        }
    }
    let policy = |shape: Shape| {
        let sealed = vec![VecDeque::new(); shape.units as usize];
        Box::new(First(OwnFifo { sealed, superblocks: shape.superblocks })) as Box<_>
    };
    overwrite_on(SimulatedSsd::with_victim_policy(drive(true), 1, policy).unwrap(), 12, page_of);
}
