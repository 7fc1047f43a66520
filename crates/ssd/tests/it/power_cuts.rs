//! What must be there after a power cut, what may be, and what never.
use crate::support;

use flashwise_block::{BlockDevice, ByteSize, IoBuffer, Nanos, Operation, Request, execute};
use flashwise_ssd::config::{
    CacheFlush, CachePolicy, CellType, DomainConfig, Mapping, PartialPages, Placement, ReliabilityConfig,
    SlcCacheConfig, SlcCacheFull, SlcModeConfig, StreamPolicy, StreamsConfig, WriteCacheConfig, WritePolicy,
};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use support::tiny;

const SECTOR: u64 = 512;

/// Few pages, so that the same ones are written again and again.
const SECTORS: u64 = 1024;

fn small() -> DeviceConfig {
    let mut config = tiny("samsung-960-evo", ByteSize::mib(7), 13, 4);
    config.ftl.placement = Placement::Static;
    config.ftl.superpage_planes = Some(1);
    config.ftl.logical_page_bytes = config.flash.page_bytes;
    config.controller.write_buffer_bytes = ByteSize::kib(64).bytes();
    config
}

fn cached(mut config: DeviceConfig, flush: CacheFlush) -> DeviceConfig {
    config.controller.write_cache = Some(WriteCacheConfig {
        bytes: 12 * config.ftl.logical_page_bytes,
        policy: CachePolicy::Lru,
        flush,
        high_watermark: 0.7,
        low_watermark: 0.2,
        hot_window_ns: None,
    });
    (config.controller.dram_ns_per_access, config.controller.dram_bytes_per_s) = (26, 200_000_000);
    config
}

/// With a cache of few superblocks, dedicated ones and others, that hold one bit a cell.
fn slc_cached(mut config: DeviceConfig, when_full: SlcCacheFull) -> DeviceConfig {
    config.flash.cell = Some(CellType::Mlc);
    config.flash.slc_mode = Some(SlcModeConfig {
        read_ns: 20_000,
        program_ns: 200_000,
        erase_ns: None,
        pe_cycles: None,
        rber_factor: None,
    });
    config.flash.blocks_per_plane += 8;
    config.ftl.slc_cache =
        Some(SlcCacheConfig { dedicated_superblocks: 2, dynamic_superblocks: 3, when_full, idle_ns: 1_000_000 });
    config
}

/// A third of the capacity on the first channel, and the rest on all of them.
fn in_domains(mut config: DeviceConfig) -> DeviceConfig {
    (config.ftl.placement, config.ftl.superpage_channels, config.ftl.superpage_ways) = (Placement::Static, 1, 1);
    config.flash.blocks_per_plane += 16;
    let first = config.capacity_bytes / 3 / config.superpage_bytes() * config.superpage_bytes();
    config.ftl.domains = vec![
        DomainConfig { capacity_bytes: first, channels: Some(vec![0]), ..DomainConfig::default() },
        DomainConfig { capacity_bytes: config.capacity_bytes - first, ..DomainConfig::default() },
    ];
    config
}

fn drives() -> Vec<DeviceConfig> {
    let with = |change: fn(&mut DeviceConfig)| {
        let mut config = small();
        change(&mut config);
        config
    };
    let streams = |config: DeviceConfig, policy| {
        let mut config = config;
        (config.flash.blocks_per_plane, config.controller.write_buffer_bytes) = (24, 4 << 20);
        config.ftl.streams = StreamsConfig { policy, streams: 3, decay_share: 0.2, ..StreamsConfig::default() };
        config
    };
    let drives = vec![
        tiny("samsung-960-evo", ByteSize::mib(7), 13, 4),
        tiny("toshiba-xg5", ByteSize::mib(7), 13, 4),
        cached(small(), CacheFlush::WhenFull),
        cached(with(|c| c.ftl.partial_pages = PartialPages::Sectors), CacheFlush::Watermark),
        cached(small(), CacheFlush::Immediate),
        with(|c| c.controller.write_policy = WritePolicy::Through),
        cached(with(|c| c.controller.power_loss_protection = true), CacheFlush::WhenFull),
        with(|c| (c.ftl.mapping, c.capacity_bytes) = (Mapping::Block, 4 << 20)),
        with(|c| (c.ftl.mapping, c.ftl.log_blocks, c.capacity_bytes) = (Mapping::Fast, 2, 2 << 20)),
        with(|c| {
            (c.flash.chips_per_channel, c.flash.dies_per_chip, c.flash.array_time_jitter) = (1, 1, 0.0);
            (c.ftl.mapping, c.ftl.superpage_ways, c.ftl.element.lifetime_erasures) = (Mapping::Element, 1, 100_000);
            c.capacity_bytes = 8 * c.ftl.element.row_bytes(c);
        }),
        streams(tiny("samsung-960-evo", ByteSize::mib(7), 13, 4), StreamPolicy::Hint),
        streams(tiny("toshiba-xg5", ByteSize::mib(7), 13, 4), StreamPolicy::SepBit),
        streams(cached(small(), CacheFlush::WhenFull), StreamPolicy::Hint),
        streams(small(), StreamPolicy::BloomFilters),
        slc_cached(tiny("samsung-960-evo", ByteSize::mib(7), 13, 4), SlcCacheFull::Bypass),
        slc_cached(cached(small(), CacheFlush::WhenFull), SlcCacheFull::Fold),
        with(|c| (c.flash.blocks_per_plane, c.flash.reliability) = (40, failures(0.005, 0.01))),
        streams(with(|c| c.flash.reliability = failures(0.005, 0.01)), StreamPolicy::SepBit),
        cached(with(|c| (c.ftl.mapping, c.capacity_bytes) = (Mapping::Block, 4 << 20)), CacheFlush::WhenFull),
        cached(with(|c| (c.ftl.mapping, c.capacity_bytes) = (Mapping::Block, 4 << 20)), CacheFlush::Immediate),
        cached(
            with(|c| (c.ftl.mapping, c.ftl.log_blocks, c.capacity_bytes) = (Mapping::Fast, 2, 2 << 20)),
            CacheFlush::Watermark,
        ),
        in_domains(small()),
        cached(in_domains(small()), CacheFlush::WhenFull),
    ];
    drives.iter().for_each(|config| config.check("power cuts").unwrap());
    drives
}

#[derive(Clone, Debug)]
struct Step {
    operation: Operation,
    fua: bool,
    sector: u64,
    sectors: u64,
    /// Waits for everything before the next step.
    drains: bool,
    rests: bool,
    cuts: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let operation = prop_oneof![
        8 => Just(Operation::Write),
        1 => Just(Operation::Trim),
        1 => Just(Operation::WriteZeroes),
        1 => Just(Operation::Flush),
    ];
    let chance = |percent: u8| (0_u8..100).prop_map(move |n| n < percent);
    (operation, chance(20), 0..SECTORS, 1_u64..100, (chance(40), chance(10)), chance(8)).prop_map(
        |(operation, fua, sector, sectors, (drains, rests), cuts)| {
            let sectors = sectors.min(SECTORS - sector);
            Step { operation, fua, sector, sectors, drains, rests, cuts }
        },
    )
}

/// A drive beside the versions that each of its pages may have after a power cut; the last is the present one.
struct Pair {
    drive: SimulatedSsd,
    sectors_per_page: u64,
    versions: Vec<Vec<Vec<u8>>>,
    /// Pages of requests in flight, with what becomes durable by their completion.
    in_flight: Vec<(std::ops::RangeInclusive<usize>, bool)>,
    completions_are_durable: bool,
    fill: u8,
}

impl Pair {
    fn new(config: &DeviceConfig) -> Self {
        let mut drive = SimulatedSsd::new(config.clone(), 3).unwrap();
        drive.allow_power_cuts().unwrap();
        let sectors_per_page = config.ftl.logical_page_bytes / SECTOR;
        let zeros = vec![vec![0; sectors_per_page as usize]];
        let pages = (SECTORS / sectors_per_page) as usize;
        let completions_are_durable = config.controller.power_loss_protection
            || config.controller.write_policy == WritePolicy::Through
            || (config.ftl.mapping != Mapping::Page && config.controller.write_cache.is_none());
        let (versions, in_flight) = (vec![zeros; pages], vec![]);
        Self { drive, sectors_per_page, versions, in_flight, completions_are_durable, fill: 0 }
    }

    fn apply(&mut self, step: &Step) {
        let pages = (step.sector / self.sectors_per_page) as usize
            ..=((step.sector + step.sectors - 1) / self.sectors_per_page) as usize;
        let overlaps = |(other, _): &(std::ops::RangeInclusive<usize>, bool)| {
            pages.start() <= other.end() && other.start() <= pages.end()
        };
        if step.operation == Operation::Flush || self.in_flight.iter().any(overlaps) {
            self.drain();
        }
        let (offset, length) = (ByteSize(step.sector * SECTOR), ByteSize(step.sectors * SECTOR));
        self.fill = self.fill % 250 + 1;
        let (request, fill) = match step.operation {
            Operation::Write => {
                let mut buffer = IoBuffer::zeroed(length.bytes() as usize);
                buffer.fill(self.fill);
                let stream = (step.sector / 100) as u16;
                (Request::write(offset, length).with_buffer(buffer).in_stream(stream), self.fill)
            }
            Operation::Trim => (Request::trim(offset, length), 0),
            Operation::WriteZeroes => (Request::write_zeroes(offset, length), 0),
            _ => return self.flush(),
        };
        for sector in step.sector..step.sector + step.sectors {
            let page = (sector / self.sectors_per_page) as usize;
            if sector == step.sector || sector.is_multiple_of(self.sectors_per_page) {
                let present = self.versions[page].last().unwrap().clone();
                self.versions[page].push(present);
            }
            self.versions[page].last_mut().unwrap()[(sector % self.sectors_per_page) as usize] = fill;
        }
        let fua = step.fua && step.operation.writes();
        let durable = fua || (self.completions_are_durable && step.operation.writes());
        self.in_flight.push((pages, durable));
        self.drive.submit(if fua { request.with_fua() } else { request }).unwrap();
        if step.drains {
            self.drain();
        }
        if step.rests {
            self.drain();
            self.drive.pause(Nanos::millis(20)).unwrap();
        }
    }

    fn flush(&mut self) {
        execute(&mut self.drive, Request::flush()).unwrap();
        self.versions.iter_mut().for_each(|versions| drop(versions.drain(..versions.len() - 1)));
    }

    fn drain(&mut self) {
        while let Some(done) = self.drive.wait().unwrap() {
            done.result.unwrap();
        }
        for (pages, durable) in self.in_flight.drain(..).filter(|(_, durable)| *durable) {
            assert!(durable);
            for page in pages {
                let versions = &mut self.versions[page];
                versions.drain(..versions.len() - 1);
            }
        }
    }

    /// Reads everything: each page is one of its versions, and that one is the only one from now on.
    fn check(&mut self, after_cut: bool) {
        self.drive.check_invariants().unwrap();
        for page in 0..self.versions.len() {
            let bytes = ByteSize(self.sectors_per_page * SECTOR);
            let buffer = IoBuffer::zeroed(bytes.bytes() as usize);
            let read = execute(&mut self.drive, Request::read(bytes * page as u64, bytes).with_buffer(buffer)).unwrap();
            let found = read.buffer.unwrap();
            let is = |version: &&Vec<u8>| {
                version.iter().zip(found.chunks(SECTOR as usize)).all(|(fill, sector)| sector.iter().all(|b| b == fill))
            };
            let versions = &mut self.versions[page];
            let possible = if after_cut { &versions[..] } else { &versions[versions.len() - 1..] };
            let Some(version) = possible.iter().rfind(is).cloned() else {
                panic!("page {page} is none of its {} versions", possible.len());
            };
            if after_cut {
                *versions = vec![version];
            }
        }
    }

    fn play(mut self, steps: &[Step]) {
        for step in steps {
            self.apply(step);
            if step.cuts {
                self.cut();
            }
        }
        self.drain();
        self.check(false);
        self.cut();
    }

    fn cut(&mut self) {
        self.drive.power_cut().unwrap();
        assert_eq!(self.drive.outstanding(), 0);
        self.in_flight.clear();
        self.check(true);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(std::env::var("PC_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(24)))]

    #[test]
    fn after_a_power_cut_flushed_pages_are_there_and_others_are_one_of_their_versions(
        steps in prop::collection::vec(step(), 1..200),
    ) {
        for config in drives() {
            Pair::new(&config).play(&steps);
        }
    }
}

/// A drive that is nearly full, so that its victims hold much that has to move.
fn nearly_full(programs_in_order: bool) -> DeviceConfig {
    let mut config = small();
    (config.flash.channels, config.flash.chips_per_channel, config.flash.dies_per_chip) = (2, 1, 1);
    (config.flash.planes_per_die, config.flash.blocks_per_plane, config.flash.pages_per_block) = (2, 40, 8);
    (config.flash.programs_in_order, config.flash.multi_plane) = (programs_in_order, true);
    (config.ftl.gc.concurrent_victims, config.ftl.gc.reads_in_flight) = (2, 3);
    config.capacity_bytes = 4 * 24 * 8 * config.ftl.logical_page_bytes;
    config.check("nearly full").unwrap();
    config
}

/// Programs fail, and erases, however few the cycles.
fn failures(of_a_program: f64, of_an_erase: f64) -> Option<ReliabilityConfig> {
    Some(ReliabilityConfig {
        program_failure_probability: of_a_program,
        erase_failure_probability: of_an_erase,
        failure_exponent: 0.0,
        ..ReliabilityConfig::default()
    })
}

/// The same, where one program in 1,000 fails and one erase in 500; some superblocks more may go.
fn failing(programs_in_order: bool) -> DeviceConfig {
    let mut config = nearly_full(programs_in_order);
    config.flash.blocks_per_plane += 8;
    // Of a unit's superblocks several may fail one after the other, before others are free again.
    config.ftl.gc.free_superblocks = Some(4);
    config.flash.reliability = failures(0.001, 0.002);
    config.check("failing").unwrap();
    config
}

/// Overwrites single pages of a full drive at random, and cuts its power at the end. Superblocks are retired on the way
/// if it says so.
fn overwrite_and_cut(config: &DeviceConfig, seed: u64, retires: bool) -> Result<(), TestCaseError> {
    let superblocks = config.units() as u32 * config.flash.blocks_per_plane;
    let mut drive = SimulatedSsd::new(config.clone(), seed).unwrap();
    drive.fill_at_once().unwrap();
    drive.allow_power_cuts().unwrap();
    let (page, pages) = (config.ftl.logical_page_bytes, config.capacity_bytes / config.ftl.logical_page_bytes);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    for n in 0..6 * pages {
        drive.submit(Request::write(ByteSize(random.random_range(0..pages) * page), ByteSize(page))).unwrap();
        while drive.outstanding() > 8 {
            drive.wait().unwrap();
        }
        if retires && n % 512 == 0 {
            drive.retire_block(random.random_range(0..superblocks));
        }
        if n % 16 == 0 {
            prop_assert_eq!(drive.check_invariants(), Ok(()), "after {} writes", n);
        }
    }
    prop_assert!(!drive.is_read_only(), "it has spares left: {:?}", drive.end_of_life());
    let flash = drive.counters().flash.unwrap();
    prop_assert!(flash.gc_pages_moved > pages / 2, "victims held {} pages of {pages}", flash.gc_pages_moved);
    drive.power_cut().unwrap();
    prop_assert_eq!(drive.check_invariants(), Ok(()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(std::env::var("PC_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(24)))]

    #[test]
    fn a_victim_is_erased_only_when_what_was_moved_of_it_is_on_flash(seed: u64, in_order: bool) {
        overwrite_and_cut(&nearly_full(in_order), seed, false)?;
    }

    #[test]
    fn a_victim_is_erased_only_then_also_where_the_program_of_what_was_moved_fails(seed: u64, in_order: bool) {
        overwrite_and_cut(&failing(in_order), seed, false)?;
    }

    #[test]
    fn a_victim_is_erased_only_then_also_where_a_superblock_is_retired_that_is_being_filled(seed: u64, in_order: bool) {
        let mut config = failing(in_order);
        config.flash.reliability = None;
        overwrite_and_cut(&config, seed, true)?;
    }
}

#[test]
fn what_was_not_flushed_is_lost_where_nothing_protects_it() {
    for config in [small(), cached(small(), CacheFlush::WhenFull)] {
        let mut pair = Pair::new(&config);
        let step = |sector, fua| Step {
            operation: Operation::Write,
            fua,
            sector,
            sectors: 1,
            drains: true,
            rests: false,
            cuts: false,
        };
        [step(0, true), step(1, false), step(100, false)].iter().for_each(|step| pair.apply(step));
        pair.drive.power_cut().unwrap();
        let buffer = IoBuffer::zeroed(1024);
        let read = Request::read(ByteSize(0), ByteSize(1024)).with_buffer(buffer);
        let bytes = execute(&mut pair.drive, read).unwrap().buffer.unwrap();
        if config.controller.write_cache.is_some() {
            assert!(bytes[..512] == [1; 512] && bytes[512..] == [0; 512]);
        }
        pair.in_flight.clear();
        pair.check(true);
        assert!(pair.versions[3].last().unwrap().iter().all(|&b| b == 0) || config.controller.write_cache.is_none());
    }
}

#[test]
fn what_a_flush_has_promised_is_there_although_it_was_written_again_while_the_flush_was_under_way() {
    let page = small().ftl.logical_page_bytes;
    let filled = |fill: u8| {
        let mut buffer = IoBuffer::zeroed(page as usize);
        buffer.fill(fill);
        Request::write(ByteSize(0), ByteSize(page)).with_buffer(buffer)
    };
    let mut drive = SimulatedSsd::new(small(), 3).unwrap();
    drive.allow_power_cuts().unwrap();
    execute(&mut drive, filled(1)).unwrap();
    drive.submit(Request::flush().tagged(7)).unwrap();
    drive.pause(flashwise_block::Nanos::micros(50)).unwrap();
    drive.submit(filled(2).with_fua()).unwrap();
    let flushed = drive.wait().unwrap().unwrap();
    assert_eq!((flushed.tag, drive.outstanding()), (7, 1), "the write is still on its way");
    drive.power_cut().unwrap();
    let read = Request::read(ByteSize(0), ByteSize(page)).with_buffer(IoBuffer::zeroed(page as usize));
    let found = execute(&mut drive, read).unwrap().buffer.unwrap();
    assert!(found.iter().all(|&byte| byte == 1), "{}", found[0]);
}

/// Writes units that the drive promises to write whole, several at a time, and cuts the power again and again; gives
/// how many units were then of more than one version.
fn torn_units(config: &DeviceConfig, cuts: u64) -> usize {
    let mut drive = SimulatedSsd::new(config.clone(), 3).unwrap();
    drive.allow_power_cuts().unwrap();
    let page = ByteSize(config.ftl.logical_page_bytes);
    let (unit, units) = (drive.info().atomic_write.unwrap(), 16);
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let (mut torn, mut next) = (0, 0);
    for _ in 0..cuts {
        for _ in 0..random.random_range(20..60) {
            // In turn: no two writes of a unit are under way.
            next = (next + 1) % units;
            let mut buffer = IoBuffer::zeroed(unit.bytes() as usize);
            buffer.fill(random.random());
            drive.submit(Request::write(unit * next, unit).with_buffer(buffer)).unwrap();
            // A block of a journal between them: otherwise units lie at the ends of programs, which are not torn.
            if random.random_ratio(1, 3) {
                drive.submit(Request::write(unit * units, page)).unwrap();
            }
            while drive.outstanding() > 8 {
                drive.wait().unwrap();
            }
        }
        drive.power_cut().unwrap();
        let mut is_torn = |number| {
            let read = Request::read(unit * number, unit).with_buffer(IoBuffer::zeroed(unit.bytes() as usize));
            let found = execute(&mut drive, read).unwrap().buffer.unwrap();
            found.iter().any(|&byte| byte != found[0])
        };
        torn += (0..units).filter(|&number| is_torn(number)).count();
    }
    torn
}

/// That a drive writes a database's page whole or not at all is its maker's promise (AWUPF of NVMe): whether it is
/// kept, only a power cut shows.
#[test]
fn capacitors_keep_the_promise_of_atomic_writes_and_without_them_units_are_torn() {
    let with = |has_capacitors| {
        let mut config = small();
        config.host.atomic_write_bytes = Some(4 * config.ftl.logical_page_bytes);
        config.controller.power_loss_protection = has_capacitors;
        torn_units(&config, 50)
    };
    let (keeps, breaks) = (with(true), with(false));
    assert_eq!(keeps, 0);
    assert!(breaks > 0, "of 50 cuts none tore a unit");
}

#[test]
fn a_drive_tells_when_it_cannot_keep_a_durable_state() {
    let mut drive = SimulatedSsd::new(cached(small(), CacheFlush::WhenFull), 1).unwrap();
    assert!(drive.power_cut().is_err());
    support::write(&mut drive, 0, 4096);
    assert!(drive.allow_power_cuts().unwrap_err().to_string().contains("flush first"));
    support::flush(&mut drive);
    drive.allow_power_cuts().unwrap();
    drive.power_cut().unwrap();
}

/// Random steps found this one: the trim went to both versions that were on their way, and the older one alone was on
/// flash when the power went.
#[test]
fn a_trim_of_a_part_of_a_page_goes_to_its_newest_version_alone() {
    let step = |operation, sector, sectors| {
        let (drains, rests) = (true, false);
        Step { operation, fua: false, sector, sectors, drains, rests, cuts: false }
    };
    let forced = |sector| Step { fua: true, ..step(Operation::Write, sector, 1) };
    let steps = [
        Step { cuts: true, ..forced(0) },
        step(Operation::Write, 32, 83),
        step(Operation::Write, 80, 49),
        Step { drains: false, ..forced(160) },
        Step { cuts: true, ..step(Operation::Trim, 85, 12) },
        Step { cuts: true, ..forced(0) },
    ];
    for config in drives() {
        Pair::new(&config).play(&steps);
    }
}
