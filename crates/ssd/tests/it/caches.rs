//! What the caches save, whom they keep waiting, and who gets how much of the drive.
use crate::support;

use flashwise_block::{BlockDevice, ByteSize, Nanos, Request, execute};
use flashwise_ssd::config::{
    Arbitration, ArbitrationWeights, CacheFlush, CachePolicy, Mapping, PartialPages, Placement, QueuePriority,
    ReadAheadConfig, ReadCacheConfig, WriteCacheConfig,
};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use support::{fill, flush};

const PAGE: ByteSize = ByteSize(16384);

/// A small drive of 4 units, pages of 16 KiB that are programmed one by one, and a write buffer of `buffer` pages.
fn small(buffer: u64) -> DeviceConfig {
    let mut config = support::tiny("samsung-960-evo", ByteSize::mib(16), 32, 16);
    config.flash.array_time_jitter = 0.0;
    (config.flash.channels, config.flash.dies_per_chip, config.flash.planes_per_die) = (4, 1, 1);
    config.ftl.placement = Placement::Static;
    config.ftl.logical_page_bytes = PAGE.bytes();
    config.controller.write_buffer_bytes = buffer * PAGE.bytes();
    config.check("small").unwrap();
    config
}

fn cached(pages: u64, flush: CacheFlush, policy: CachePolicy) -> DeviceConfig {
    let mut config = small(4);
    let bytes = pages * PAGE.bytes();
    let (high_watermark, low_watermark, hot_window_ns) = (0.75, 0.25, None);
    config.controller.write_cache =
        Some(WriteCacheConfig { bytes, policy, flush, high_watermark, low_watermark, hot_window_ns });
    config.check("cached").unwrap();
    config
}

fn drive(config: DeviceConfig) -> SimulatedSsd {
    SimulatedSsd::new(config, 1).unwrap()
}

fn write(page: u64) -> Request {
    Request::write(PAGE * page, PAGE)
}

fn read(page: u64) -> Request {
    Request::read(PAGE * page, PAGE)
}

fn run(drive: &mut SimulatedSsd, requests: impl IntoIterator<Item = Request>) {
    requests.into_iter().for_each(|request| drop(execute(drive, request).unwrap()));
}

fn programmed_pages(drive: &SimulatedSsd) -> u64 {
    drive.counters().flash.unwrap().bytes_programmed.bytes() / PAGE.bytes()
}

#[test]
fn overwrites_of_a_cached_page_never_reach_the_flash() {
    let mut drive = drive(cached(8, CacheFlush::WhenFull, CachePolicy::Lru));
    run(&mut drive, (0..100).map(|n| write(n % 8)));
    assert_eq!(programmed_pages(&drive), 0);
    let counters = drive.write_cache_counters().unwrap();
    assert_eq!((counters.write_hits, counters.write_misses, counters.pages_written_back), (92, 8, 0));
    run(&mut drive, [read(3)]);
    assert_eq!(drive.write_cache_counters().unwrap().read_hits, 1);
    flush(&mut drive);
    assert_eq!(programmed_pages(&drive), 8);
    drive.check_invariants().unwrap();
}

#[test]
fn the_page_that_makes_room_is_the_least_recently_used_or_the_first_that_came() {
    for (policy, kept) in [(CachePolicy::Lru, 0), (CachePolicy::Fifo, 1)] {
        let mut drive = drive(cached(4, CacheFlush::WhenFull, policy));
        run(&mut drive, [0, 1, 2, 3, 0, 4].map(write));
        drive.pause(Nanos::millis(5)).unwrap();
        let hits = |drive: &SimulatedSsd| drive.write_cache_counters().unwrap().read_hits;
        run(&mut drive, [read(1 - kept)]);
        assert_eq!(hits(&drive), 0, "{policy:?}: it is on flash");
        run(&mut drive, [read(kept)]);
        assert_eq!(hits(&drive), 1, "{policy:?}");
    }
}

#[test]
fn a_watermark_keeps_room_free_and_immediate_writing_back_keeps_nothing() {
    let mut watermark = drive(cached(8, CacheFlush::Watermark, CachePolicy::Lru));
    run(&mut watermark, (0..5).map(write));
    watermark.pause(Nanos::millis(20)).unwrap();
    assert_eq!(programmed_pages(&watermark), 0);
    run(&mut watermark, [write(5)]);
    watermark.pause(Nanos::millis(20)).unwrap();
    assert_eq!(programmed_pages(&watermark), 4, "from 6 of 8 down to 2");
    let mut immediate = drive(cached(8, CacheFlush::Immediate, CachePolicy::Lru));
    run(&mut immediate, (0..5).map(write));
    immediate.pause(Nanos::millis(20)).unwrap();
    assert_eq!(programmed_pages(&immediate), 5);
}

#[test]
fn pages_written_twice_within_a_window_stay_in_the_cache() {
    let mut config = cached(8, CacheFlush::Immediate, CachePolicy::Lru);
    config.controller.write_cache.as_mut().unwrap().hot_window_ns = Some(1_000_000_000);
    let mut drive = drive(config);
    run(&mut drive, [write(7), write(0)]);
    drive.pause(Nanos::millis(5)).unwrap();
    run(&mut drive, [write(0), write(0), write(1)]);
    drive.pause(Nanos::millis(5)).unwrap();
    assert_eq!(programmed_pages(&drive), 3, "7, 0 and 1 once; the second 0 is hot and takes the third");
    drive.pause(Nanos::secs(1)).unwrap();
    run(&mut drive, [write(2), write(1)]);
    drive.pause(Nanos::millis(5)).unwrap();
    assert_eq!(programmed_pages(&drive), 5, "the window of 1 is over");
}

#[test]
fn a_full_cache_keeps_writes_waiting_in_their_order_at_the_pace_of_the_flash() {
    let mut drive = drive(cached(4, CacheFlush::WhenFull, CachePolicy::Lru));
    for n in 0..40 {
        drive.submit(write(4 * n).tagged(n)).unwrap(); // all on one unit
    }
    let done: Vec<_> = std::iter::from_fn(|| drive.wait().unwrap()).collect();
    assert!(done.iter().map(|d| d.tag).eq(0..40));
    assert!(done[7].latency() < Nanos::micros(200), "4 in the cache, 4 in the buffer");
    for pair in done[9..].windows(2) {
        let step = pair[1].completed_at.since(pair[0].completed_at);
        assert_eq!(step, Nanos(660_000 + 40_960), "one program and its transfer");
    }
}

#[test]
fn a_forced_write_drives_its_page_out_and_a_flush_everything() {
    let mut drive = drive(cached(8, CacheFlush::WhenFull, CachePolicy::Lru));
    run(&mut drive, (0..6).map(write));
    let forced = execute(&mut drive, write(2).with_fua()).unwrap();
    assert!(forced.latency() > Nanos(660_000) && programmed_pages(&drive) == 1);
    flush(&mut drive);
    assert_eq!(programmed_pages(&drive), 6);
    let mut config = cached(8, CacheFlush::WhenFull, CachePolicy::Lru);
    config.controller.power_loss_protection = true;
    let mut protected = SimulatedSsd::new(config, 1).unwrap();
    run(&mut protected, [write(0), write(1).with_fua(), Request::flush()]);
    assert_eq!(programmed_pages(&protected), 0);
}

#[test]
fn a_trim_takes_pages_out_of_the_cache_also_on_their_way() {
    let mut drive = drive(cached(8, CacheFlush::WhenFull, CachePolicy::Lru));
    run(&mut drive, (0..6).map(write));
    drive.submit(Request::flush()).unwrap();
    drive.submit(Request::trim(ByteSize(0), PAGE * 6)).unwrap();
    while drive.wait().unwrap().is_some() {}
    drive.check_invariants().unwrap();
    run(&mut drive, (0..6).map(write));
    run(&mut drive, [Request::trim(ByteSize(0), PAGE * 6), Request::flush()]);
    drive.check_invariants().unwrap();
    assert!(programmed_pages(&drive) <= 6);
}

#[test]
fn a_partial_write_reads_only_what_it_leaves_uncovered() {
    let read_for = |partial_pages, parts: &[(u64, u64)]| {
        let mut config = small(8);
        config.ftl.partial_pages = partial_pages;
        let mut drive = drive(config);
        for &(from, to) in parts {
            let part = Request::write(ByteSize(from), ByteSize(to - from)).with_fua();
            run(&mut drive, [part]);
        }
        drive.counters().flash.unwrap().bytes_read.bytes()
    };
    assert_eq!(read_for(PartialPages::Fill, &[(0, 4096), (0, 8192)]), 16384);
    assert_eq!(read_for(PartialPages::Sectors, &[(0, 4096), (0, 8192)]), 0);
    assert_eq!(read_for(PartialPages::Sectors, &[(0, 4096), (2048, 8192)]), 2048);
    assert_eq!(read_for(PartialPages::Sectors, &[(0, 16384), (2048, 8192)]), 10240);
}

fn reading_ahead(pages: u32) -> SimulatedSsd {
    let mut config = small(8);
    config.controller.read_cache = Some(ReadCacheConfig { bytes: 64 * PAGE.bytes(), policy: CachePolicy::Lru });
    if pages > 0 {
        config.controller.read_ahead = Some(ReadAheadConfig { pages, streams: 2, trigger: 2 });
    }
    config.check("reading ahead").unwrap();
    let mut drive = drive(config);
    fill(&mut drive, 0, 8 << 20);
    drive
}

#[test]
fn a_page_that_was_read_stays_until_it_is_written() {
    let mut drive = reading_ahead(0);
    let flash = |drive: &SimulatedSsd| drive.counters().flash.unwrap().bytes_read;
    run(&mut drive, [read(9)]);
    let once = flash(&drive);
    run(&mut drive, [read(9)]);
    assert_eq!(flash(&drive), once);
    run(&mut drive, [write(9), Request::flush(), read(9)]);
    assert_eq!(flash(&drive), once + PAGE);
    let counters = drive.read_cache_counters().unwrap();
    assert_eq!((counters.hits, counters.misses), (1, 2));
    run(&mut drive, (100..164).map(read));
    run(&mut drive, [read(9)]);
    assert_eq!(drive.read_cache_counters().unwrap().hits, 1, "64 others have driven it out");
}

#[test]
fn reading_ahead_hides_the_flash_from_a_sequential_stream() {
    let time = |pages| {
        let mut drive = reading_ahead(pages);
        let start = drive.now();
        run(&mut drive, (0..200).map(read));
        (drive.now().since(start), drive.read_cache_counters().unwrap())
    };
    let ((without, _), (with, counters)) = (time(0), time(8));
    assert!(with.0 * 2 < without.0, "{with} {without}");
    assert_eq!((counters.misses, counters.hits), (2, 198));
    assert_eq!((counters.pages_read_ahead, counters.read_ahead_useful), (206, 198));
}

#[test]
fn queues_share_a_busy_drive_by_the_weights_of_their_classes() {
    let mut config = small(8);
    config.host.submission_queues = 3;
    config.host.arbitration = Arbitration::WeightedRoundRobin;
    config.host.queue_priorities = vec![QueuePriority::High, QueuePriority::Medium, QueuePriority::Low];
    config.host.arbitration_weights = ArbitrationWeights { high: 8, medium: 3, low: 1 };
    config.host.queue_depth = 4;
    let mut drive = drive(config);
    fill(&mut drive, 0, 8 << 20);
    let mut completed = [0; 3];
    let mut submit = |drive: &mut SimulatedSsd, queue: u64| {
        drive.submit(read(completed.iter().sum::<u64>() % 512).on_queue(queue as u16).tagged(queue)).unwrap();
        completed[queue as usize] += 1;
    };
    (0..3).for_each(|queue| (0..8).for_each(|_| submit(&mut drive, queue)));
    for _ in 0..1200 {
        let done = drive.wait().unwrap().unwrap();
        submit(&mut drive, done.tag);
    }
    let shares = completed.map(|n| n - 8);
    assert!(shares.iter().zip([800, 300, 100]).all(|(&n, share)| n.abs_diff(share) <= 12), "{shares:?}");
    while drive.wait().unwrap().is_some() {}
}

/// The same cache before an FTL that maps blocks.
fn cached_blocks(mapping: Mapping, pages: u64, flush: CacheFlush) -> DeviceConfig {
    let mut config = cached(pages, flush, CachePolicy::Lru);
    (config.ftl.mapping, config.ftl.log_blocks) = (mapping, 4);
    config.check("cached blocks").unwrap();
    config
}

#[test]
fn before_an_ftl_of_blocks_the_cache_absorbs_overwrites_and_with_them_merges() {
    for mapping in [Mapping::Block, Mapping::Fast] {
        let mut with_cache = drive(cached_blocks(mapping, 16, CacheFlush::WhenFull));
        let mut without = cached_blocks(mapping, 16, CacheFlush::WhenFull);
        without.controller.write_cache = None;
        let mut without = drive(without);
        for drive in [&mut with_cache, &mut without] {
            drive.fill_at_once().unwrap();
            run(drive, (0..2_000).map(|n| write(n * 7 % 12 * 5)));
            flush(drive);
            drive.check_invariants().unwrap();
        }
        assert_eq!(programmed_pages(&with_cache) - moved_pages(&with_cache), 12, "{mapping:?}: each page once");
        assert_eq!(programmed_pages(&without) - moved_pages(&without), 2_000, "{mapping:?}");
        assert!(moved_pages(&without) > 100 * moved_pages(&with_cache).max(1), "{mapping:?}");
    }
}

fn moved_pages(drive: &SimulatedSsd) -> u64 {
    drive.counters().flash.unwrap().gc_bytes_moved.bytes() / PAGE.bytes()
}

#[test]
fn before_an_ftl_of_blocks_a_write_is_answered_from_the_cache_and_a_forced_one_from_flash() {
    for mapping in [Mapping::Block, Mapping::Fast] {
        let mut drive = drive(cached_blocks(mapping, 16, CacheFlush::WhenFull));
        let program_ns = drive.config().flash.program_ns;
        let latency = |drive: &mut SimulatedSsd, request| execute(drive, request).unwrap().latency().0;
        assert!(latency(&mut drive, write(1)) < program_ns / 2);
        assert!(latency(&mut drive, write(2).with_fua()) > program_ns);
        assert_eq!(programmed_pages(&drive), 1, "{mapping:?}: the other one stays");
        assert!(latency(&mut drive, Request::flush()) > program_ns);
        assert_eq!(programmed_pages(&drive), 2);
        assert!(latency(&mut drive, Request::flush()) < program_ns / 2, "nothing is left to flush");
    }
}

#[test]
fn before_an_ftl_of_blocks_pages_that_leave_take_no_more_room_than_the_write_buffer_has() {
    let mut config = cached_blocks(Mapping::Fast, 8, CacheFlush::WhenFull);
    config.controller.write_buffer_bytes = 2 * PAGE.bytes();
    let mut drive = drive(config);
    for n in 0..64 {
        drive.submit(write(n)).unwrap();
    }
    let mut answered = 0;
    while let Some(completion) = drive.wait().unwrap() {
        completion.result.unwrap();
        answered += 1;
        assert!(drive.buffered_bytes() <= (8 + 2) * PAGE.bytes());
        // Of what was taken, eight pages are in the cache and two in progress.
        assert!(answered <= programmed_pages(&drive) + 8 + 2 + 1, "{answered}");
    }
    assert_eq!(answered, 64);
    drive.check_invariants().unwrap();
}
