//! A part of the flash written with one bit a cell: how fast it is, where that ends, what comes of it later.
use crate::support;

use flashwise_block::{BlockDevice, BlockError, ByteSize, Nanos, Request, execute};
use flashwise_ssd::config::{
    CellType, EnduranceConfig, Placement, SlcCacheConfig, SlcCacheFull, SlcModeConfig, StaticOrder,
};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use support::tiny;

const MIB: u64 = 1 << 20;
const PAGE: u64 = 16 << 10;
const ROWS: u32 = 48;
const DIES: u64 = 4;
/// Over the channel, for a page.
const TRANSFER_NS: u64 = 40_960;
const SLC_READ_NS: u64 = 25_000;
const SLC_PROGRAM_NS: u64 = 150_000;
const PROGRAM_NS: u64 = 660_000;
const READ_NS: u64 = 60_000;
const ERASE_NS: u64 = 3_500_000;

/// Two channels of two dies of TLC cells, each die a unit of 64 blocks of 48 pages: 192 MiB. In SLC mode a block has
/// 16.
fn drive(cache: SlcCacheConfig) -> DeviceConfig {
    let mut config = tiny("samsung-960-evo", ByteSize::mib(96), 64, ROWS);
    let flash = &mut config.flash;
    (flash.channels, flash.chips_per_channel, flash.dies_per_chip, flash.planes_per_die) = (2, 1, 2, 1);
    (flash.page_bytes, flash.array_time_jitter, flash.channel_bytes_per_s) = (PAGE, 0.0, 400_000_000);
    (flash.read_ns, flash.program_ns, flash.erase_ns) = (READ_NS, PROGRAM_NS, ERASE_NS);
    flash.cell = Some(CellType::Tlc);
    flash.slc_mode = Some(SlcModeConfig {
        read_ns: SLC_READ_NS,
        program_ns: SLC_PROGRAM_NS,
        erase_ns: None,
        pe_cycles: None,
        rber_factor: None,
    });
    (config.ftl.superpage_planes, config.ftl.placement) = (Some(1), Placement::Static);
    (config.ftl.superpage_channels, config.ftl.superpage_ways) = (1, 1);
    (config.ftl.logical_page_bytes, config.ftl.static_order) = (PAGE, StaticOrder::default());
    (config.controller.write_buffer_bytes, config.ftl.gc.free_superblocks) = (16 * PAGE, Some(4));
    config.ftl.slc_cache = Some(cache);
    config.check("drive").unwrap();
    config
}

fn dedicated(superblocks: u32) -> SlcCacheConfig {
    SlcCacheConfig { dedicated_superblocks: superblocks, ..SlcCacheConfig::default() }
}

fn dynamic(superblocks: u32) -> SlcCacheConfig {
    SlcCacheConfig { dynamic_superblocks: superblocks, ..SlcCacheConfig::default() }
}

/// Bytes of so many superblocks of every unit in SLC mode.
fn slc_bytes(superblocks: u64) -> u64 {
    superblocks * DIES * u64::from(ROWS / 3) * PAGE
}

fn new(config: &DeviceConfig) -> SimulatedSsd {
    SimulatedSsd::new(config.clone(), 1).unwrap()
}

/// Writes `[start, end)` in order, 16 requests of 64 KiB at a time; gives when each was done, ns.
fn stream(drive: &mut SimulatedSsd, start: u64, end: u64) -> Vec<u64> {
    let step = 4 * PAGE;
    let mut done = Vec::new();
    for at in (start..end).step_by(step as usize) {
        drive.submit(Request::write(ByteSize(at), ByteSize(step))).unwrap();
        while drive.outstanding() >= 16 {
            done.push(drive.wait().unwrap().unwrap().completed_at.0);
        }
    }
    while let Some(completion) = drive.wait().unwrap() {
        completion.result.unwrap();
        done.push(completion.completed_at.0);
    }
    done
}

/// Bytes a second of the part of a stream between two offsets from its start.
fn rate(done: &[u64], from: u64, to: u64) -> f64 {
    let step = 4 * PAGE;
    let at = |offset: u64| done[(offset / step) as usize - 1];
    (to - from) as f64 * 1e9 / (at(to) - at(from)) as f64
}

/// What all dies program together when a page takes each of them so long.
fn rate_of_page(page_ns: u64) -> f64 {
    (DIES * PAGE) as f64 * 1e9 / page_ns as f64
}

fn assert_about(measured: f64, expected: f64, tolerance: f64) {
    assert!((measured / expected - 1.0).abs() < tolerance, "{measured} instead of {expected}");
}

/// The dies are what limits: each takes a page over its channel, which has time for two, and programs it. 2 %: a
/// superblock ends at other times in other dies.
#[test]
fn writes_are_as_fast_as_slc_until_the_cache_is_full_and_as_slow_as_the_cells_from_then_on() {
    let (size, mut drive) = (slc_bytes(8), new(&drive(dedicated(8))));
    assert_eq!(drive.config().slc_cache_bytes(), size);
    let done = stream(&mut drive, 0, 3 * size);
    assert_about(rate(&done, MIB, size - MIB), rate_of_page(TRANSFER_NS + SLC_PROGRAM_NS), 0.02);
    assert_about(rate(&done, size + MIB, 3 * size), rate_of_page(TRANSFER_NS + PROGRAM_NS), 0.02);
    // The cliff is where the cache ends, and what is in the write buffer beside it.
    let halfway = rate_of_page(TRANSFER_NS + (SLC_PROGRAM_NS + PROGRAM_NS) / 2);
    let slow = (MIB..2 * size).step_by(4 * PAGE as usize).find(|&at| rate(&done, at, at + MIB / 2) < halfway).unwrap();
    assert!((size - MIB / 2..size + MIB).contains(&slow), "slow from {slow} on, the cache has {size}");
    execute(&mut drive, Request::flush()).unwrap();
    let (cached, flash) = (drive.slc_cache_counters().unwrap(), drive.counters().flash.unwrap());
    assert_eq!((cached.dedicated_bytes, cached.bypassed_bytes), (size, 2 * size));
    assert_eq!((flash.folding_runs, flash.folding_bytes_moved), (0, ByteSize(0)), "the drive never had time");
    drive.check_invariants().unwrap();
}

#[test]
fn a_rest_empties_the_cache_and_the_next_writes_are_fast_again() {
    let idle_ns = 50_000_000;
    let (size, mut drive) = (slc_bytes(8), new(&drive(SlcCacheConfig { idle_ns, ..dedicated(8) })));
    stream(&mut drive, 0, size);
    execute(&mut drive, Request::flush()).unwrap();
    drive.pause(Nanos(idle_ns - 1_000_000)).unwrap();
    assert_eq!(drive.counters().flash.unwrap().folding_runs, 0, "too short a rest");
    assert_eq!(drive.slc_cache_use().unwrap().valid_bytes, size);
    drive.pause(Nanos::secs(5)).unwrap();
    let flash = drive.counters().flash.unwrap();
    assert_eq!((flash.folding_bytes_moved, flash.gc_bytes_moved), (ByteSize(size), ByteSize(0)));
    assert_eq!((flash.folding_runs, flash.erases), (8 * DIES, 8 * DIES));
    assert_eq!(drive.slc_cache_use().unwrap().valid_bytes, 0);
    let done = stream(&mut drive, size, 2 * size);
    assert_about(rate(&done, MIB, size - MIB), rate_of_page(TRANSFER_NS + SLC_PROGRAM_NS), 0.02);
    drive.check_invariants().unwrap();
}

#[test]
fn a_drive_that_is_asked_again_before_it_has_rested_long_enough_moves_nothing() {
    let idle_ns = 50_000_000;
    let mut drive = new(&drive(SlcCacheConfig { idle_ns, ..dedicated(8) }));
    stream(&mut drive, 0, slc_bytes(4));
    for _ in 0..20 {
        drive.pause(Nanos(idle_ns - 10_000_000)).unwrap();
        execute(&mut drive, Request::read(ByteSize(0), ByteSize(PAGE))).unwrap();
    }
    assert_eq!(drive.counters().flash.unwrap().folding_runs, 0);
    drive.pause(Nanos(idle_ns + 10_000_000)).unwrap();
    assert!(drive.counters().flash.unwrap().folding_runs > 0);
}

#[test]
fn what_was_overwritten_in_the_cache_is_never_moved() {
    let mut drive = new(&drive(dedicated(8)));
    (0..4).for_each(|_| drop(stream(&mut drive, 0, slc_bytes(2))));
    execute(&mut drive, Request::flush()).unwrap();
    drive.pause(Nanos::secs(5)).unwrap();
    let flash = drive.counters().flash.unwrap();
    assert_eq!(flash.slc_bytes_programmed, ByteSize(slc_bytes(8)));
    assert_eq!(flash.folding_bytes_moved, ByteSize(slc_bytes(2)));
}

/// Per page a die programs it twice and reads it once, and per superblock of 16 of them erases once. 5 %: some of what
/// follows one another in a die waits for the channel.
#[test]
fn a_cache_that_makes_the_host_wait_falls_below_what_the_cells_could_do() {
    let (size, mut drive) =
        (slc_bytes(4), new(&drive(SlcCacheConfig { when_full: SlcCacheFull::Fold, ..dedicated(4) })));
    let done = stream(&mut drive, 0, 6 * size);
    let moved_ns = SLC_READ_NS + TRANSFER_NS + TRANSFER_NS + PROGRAM_NS + ERASE_NS / u64::from(ROWS / 3);
    let expected = rate_of_page(TRANSFER_NS + SLC_PROGRAM_NS + moved_ns);
    assert_about(rate(&done, 2 * size, 6 * size), expected, 0.05);
    assert!(expected < 0.7 * rate_of_page(TRANSFER_NS + PROGRAM_NS));
    execute(&mut drive, Request::flush()).unwrap();
    let cached = drive.slc_cache_counters().unwrap();
    assert_eq!((cached.dedicated_bytes, cached.bypassed_bytes), (6 * size, 0));
    drive.check_invariants().unwrap();
}

#[test]
fn a_page_is_read_as_fast_as_the_cells_that_hold_it() {
    let mut drive = new(&drive(dedicated(4)));
    stream(&mut drive, 0, slc_bytes(4));
    execute(&mut drive, Request::flush()).unwrap();
    let mut read_ns = || execute(&mut drive, Request::read(ByteSize(0), ByteSize(PAGE))).unwrap().latency().0;
    let in_slc = read_ns();
    assert_eq!(read_ns(), in_slc);
    drive.pause(Nanos::secs(5)).unwrap();
    let moved = execute(&mut drive, Request::read(ByteSize(0), ByteSize(PAGE))).unwrap().latency().0;
    assert_eq!(moved - in_slc, READ_NS - SLC_READ_NS);
}

#[test]
fn a_dynamic_cache_is_as_large_as_the_free_space_allows_and_gives_way_to_data() {
    let config = drive(dynamic(20));
    let taken = |filled: u64| {
        let mut drive = new(&config);
        stream(&mut drive, 0, filled);
        execute(&mut drive, Request::flush()).unwrap();
        drive.pause(Nanos::secs(20)).unwrap();
        let before = drive.slc_cache_counters().unwrap().dynamic_bytes;
        stream(&mut drive, 0, slc_bytes(20));
        execute(&mut drive, Request::flush()).unwrap();
        drive.check_invariants().unwrap();
        drive.slc_cache_counters().unwrap().dynamic_bytes - before
    };
    let (empty, full) = (taken(slc_bytes(20)), taken(config.capacity_bytes));
    assert_eq!(empty, slc_bytes(20));
    assert!((slc_bytes(1)..slc_bytes(20)).contains(&full), "{full}");
    // A drive that is written over and over has no time to fold, and no superblock that collection could spare.
    let mut busy = new(&config);
    (0..3).for_each(|_| drop(stream(&mut busy, 0, config.capacity_bytes)));
    let flash = busy.counters().flash.unwrap();
    assert!(flash.folding_runs > 0 && busy.slc_cache_counters().unwrap().bypassed_bytes > config.capacity_bytes);
    busy.check_invariants().unwrap();
}

/// Each superblock of the cache takes 40 rounds, of which the drive lives to take more without it.
#[test]
fn a_dedicated_cache_wears_out_by_its_own_limit_and_leaves_the_drive_without_it() {
    let mut config = drive(SlcCacheConfig { idle_ns: 0, ..dedicated(1) });
    config.flash.endurance = Some(EnduranceConfig { pe_cycles: Some(1000), ..EnduranceConfig::default() });
    config.flash.slc_mode.as_mut().unwrap().pe_cycles = Some(40);
    config.check("worn").unwrap();
    let mut drive = new(&config);
    let round = slc_bytes(1);
    let mut cached = Vec::new();
    for _ in 0..60 {
        let before = drive.slc_cache_counters().unwrap().dedicated_bytes;
        stream(&mut drive, 0, round);
        execute(&mut drive, Request::flush()).unwrap();
        drive.pause(Nanos::secs(1)).unwrap();
        cached.push(drive.slc_cache_counters().unwrap().dedicated_bytes - before);
    }
    // The erase behind the last cycle is the one that fails.
    assert_eq!(cached.iter().position(|&bytes| bytes == 0), Some(41));
    assert!(cached[..41].iter().all(|&bytes| bytes == round) && cached[41..].iter().all(|&bytes| bytes == 0));
    assert_eq!((drive.is_read_only(), drive.counters().flash.unwrap().retired_superblocks), (false, DIES));
    drive.check_invariants().unwrap();
}

/// The drive dies when the cells are worn, whatever wore them: a cycle in SLC mode as the share of a life that it
/// takes. 8 %: superblocks die one by one, and the last that the drive can spare decides.
#[test]
fn cycles_in_slc_mode_take_less_of_a_blocks_life() {
    let limit = 6;
    let life = |slc: u32| {
        let mut config = drive(SlcCacheConfig { idle_ns: 0, ..dynamic(60) });
        config.capacity_bytes = 16 * MIB;
        config.flash.endurance = Some(EnduranceConfig { pe_cycles: Some(limit), ..EnduranceConfig::default() });
        config.flash.slc_mode.as_mut().unwrap().pe_cycles = Some(slc);
        config.check("worn").unwrap();
        let mut drive = new(&config);
        let mut writes = 0_u64;
        loop {
            let request = Request::write(ByteSize(writes % 64 * 4 * PAGE), ByteSize(4 * PAGE));
            match execute(&mut drive, request) {
                Err(BlockError::ReadOnly) => break,
                other => drop(other.unwrap()),
            }
            drive.pause(Nanos::millis(20)).unwrap();
            writes += 1;
        }
        drive.check_invariants().unwrap();
        let flash = drive.counters().flash.unwrap();
        let in_slc_mode = flash.folding_runs as f64;
        let worn = flash.erases as f64 - in_slc_mode + in_slc_mode * f64::from(limit) / f64::from(slc);
        (writes as f64, worn, drive.erase_counts().1)
    };
    let (short, long) = (life(limit), life(3 * limit));
    assert_about(long.1, short.1, 0.08);
    assert!(long.0 > 1.3 * short.0, "{long:?} {short:?}");
    assert!(short.2 == limit + 1 && long.2 > 2 * limit, "{} and {} cycles at most", short.2, long.2);
}
