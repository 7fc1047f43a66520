//! How long requests take, to the nanosecond: what the presets took before, and what closed forms say.
use crate::support;

use flashwise_block::{BlockDevice, ByteSize, Completion, Nanos, Request, execute};
use flashwise_ssd::config::{
    CacheFlush, CachePolicy, DataTransfer, Placement, UnwrittenReads, WriteCacheConfig, WritePolicy,
};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use support::flush;

/// A hash over the tags and times of 4,000 mixed requests, and the time at the end.
fn fingerprint(preset: &str) -> (u64, u64) {
    let mut drive = SimulatedSsd::new(DeviceConfig::preset(preset).unwrap(), 5).unwrap();
    let (mut state, mut hash) = (9_u64, 0xcbf2_9ce4_8422_2325_u64);
    let mut fold = |done: Completion| {
        for x in [done.tag, done.completed_at.0] {
            hash = (hash ^ x).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for n in 0..4000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (at, length) = (ByteSize((state >> 33) % (1 << 14) * 512), ByteSize(512 * (1 + (state >> 20) % 200)));
        let request = match (state >> 8) % 16 {
            0..=6 => Request::read(at, length),
            7..=12 => Request::write(at, length),
            13 => Request::write(at, length).with_fua(),
            14 => Request::trim(at, length),
            _ => Request::flush(),
        };
        drive.submit(request.tagged(n)).unwrap();
        while drive.outstanding() > 20 {
            fold(drive.wait().unwrap().unwrap());
        }
    }
    while let Some(done) = drive.wait().unwrap() {
        fold(done);
    }
    (hash, drive.now().0)
}

#[test]
fn the_presets_take_the_times_that_they_took_before_there_were_caches() {
    // In what order simultaneous events of different sorts come is the event queue's rule; all but the first of these
    // are younger than that rule, which changed which of two equal completions comes first and what jitter each draws.
    let before = [
        ("samsung-960-evo", 0xe5ed_dfb4_dc5b_f74a, 219_157_960),
        ("intel-optane-905p", 0xcca0_4419_c645_0904, 37_929_914),
        ("toshiba-xg5", 0x29ee_b505_ce7b_6a3f, 152_163_041),
        ("micron-m500", 0x3f38_7220_6f50_989e, 889_925_649),
    ];
    for (preset, hash, end) in before {
        assert_eq!(fingerprint(preset), (hash, end), "{preset}");
    }
}

/// A drive with pages of 4 KiB, 3 ns a byte on the channel, 1,248 ns for a page on the link, 49 ns to fetch a command,
/// 8 ns to ask for its data, 11 ns to post a completion.
fn simple() -> DeviceConfig {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    let host = &mut config.host;
    (host.command_latency_ns, host.command_issue_ns) = (0, 0);
    (host.command_fetch_ns, host.data_request_ns, host.completion_ns) = (49, 8, 11);
    (host.link_bytes_per_s, host.data_transfer) = (Some(3_282_051_282), DataTransfer::WholeRequest);
    let flash = &mut config.flash;
    (flash.page_bytes, flash.channel_bytes_per_s, flash.array_time_jitter) = (4096, 333_333_333, 0.0);
    (flash.read_ns, flash.program_ns) = (75_310, 750_361);
    (flash.blocks_per_plane, flash.pages_per_block) = (64, 64);
    config.ftl.placement = Placement::Static;
    config.ftl.superpage_planes = Some(1);
    config.capacity_bytes = 64 << 20;
    config.check("simple").unwrap();
    config
}

fn drive(change: impl FnOnce(&mut DeviceConfig)) -> SimulatedSsd {
    let mut config = simple();
    change(&mut config);
    SimulatedSsd::new(config, 1).unwrap()
}

fn ns(drive: &mut SimulatedSsd, request: Request) -> u64 {
    execute(drive, request).unwrap().latency().0
}

const PAGE: ByteSize = ByteSize(4096);

fn read(page: u64, pages: u64) -> Request {
    Request::read(PAGE * page, PAGE * pages)
}

fn write(page: u64, pages: u64) -> Request {
    Request::write(PAGE * page, PAGE * pages)
}

#[test]
fn a_read_takes_fetch_sense_channel_link_and_completion() {
    let mut drive = drive(|_| {});
    execute(&mut drive, write(0, 1)).unwrap();
    flush(&mut drive);
    assert_eq!(ns(&mut drive, read(0, 1)), 49 + 75_310 + 12_288 + 1_248 + 11);
}

#[test]
fn a_write_through_takes_fetch_data_channel_program_and_completion() {
    let mut drive = drive(|c| c.controller.write_policy = WritePolicy::Through);
    assert_eq!(ns(&mut drive, write(0, 1)), 49 + 8 + 1_248 + 12_288 + 750_361 + 11);
    let before = drive.now();
    flush(&mut drive);
    assert_eq!(drive.now().since(before), Nanos(49 + 11), "nothing is left to flush");
}

#[test]
fn a_write_into_the_cache_takes_fetch_data_dram_and_completion() {
    let mut drive = drive(|c| {
        (c.controller.dram_ns_per_access, c.controller.dram_bytes_per_s) = (26, 200_000_000);
        c.controller.write_cache = Some(WriteCacheConfig {
            bytes: 1 << 20,
            policy: CachePolicy::Lru,
            flush: CacheFlush::Immediate,
            high_watermark: 0.8,
            low_watermark: 0.5,
            hot_window_ns: Some(1_000_000_000),
        });
    });
    assert_eq!(ns(&mut drive, write(0, 1)), 49 + 8 + 1_248 + 20_506 + 11);
    assert_eq!(ns(&mut drive, read(0, 1)), 49 + 20_506 + 1_248 + 11, "it is still in DRAM");
    drive.pause(Nanos::millis(1)).unwrap();
    assert_eq!(ns(&mut drive, read(0, 1)), 49 + 75_310 + 12_288 + 1_248 + 11, "it was written back at once");
}

#[test]
fn a_read_crosses_the_link_cut_through_page_by_page_or_as_a_whole() {
    // Two pages on one die, one after the other.
    let latency = |how| {
        let mut drive = drive(|c| {
            (c.flash.channels, c.flash.dies_per_chip, c.flash.planes_per_die) = (1, 1, 1);
            (c.flash.blocks_per_plane, c.capacity_bytes) = (1024, 64 << 20);
            (c.host.data_transfer, c.host.link_bytes_per_s) = (how, Some(250_000_000));
        });
        execute(&mut drive, write(0, 2)).unwrap();
        flush(&mut drive);
        ns(&mut drive, read(0, 2)) - 49 - 11
    };
    let (page, link) = (75_310 + 12_288, 16_384);
    assert_eq!(latency(DataTransfer::StoreAndForward), 2 * page + link);
    assert_eq!(latency(DataTransfer::WholeRequest), 2 * page + 2 * link);
    assert_eq!(latency(DataTransfer::CutThrough), 2 * page + link, "the last page leaves behind its transfer");
}

#[test]
fn a_page_that_nobody_has_written_costs_a_flash_read_where_that_is_asked_for() {
    let mut zeros = drive(|_| {});
    assert_eq!(ns(&mut zeros, read(7, 1)), 49 + 1_248 + 11);
    let mut flash = drive(|c| c.controller.unwritten_reads = UnwrittenReads::Flash);
    assert_eq!(ns(&mut flash, read(7, 1)), 49 + 75_310 + 12_288 + 1_248 + 11);
    assert_eq!(flash.counters().flash.unwrap().unwritten_pages_read, 1);
}

#[test]
fn a_write_of_zeros_sends_no_data_and_programs_no_page_that_it_covers() {
    let mut drive = drive(|_| {});
    execute(&mut drive, write(0, 4)).unwrap();
    flush(&mut drive);
    let programmed = drive.counters().flash.unwrap().bytes_programmed;
    assert_eq!(ns(&mut drive, Request::write_zeroes(PAGE, PAGE * 2).with_fua()), 49 + 11);
    let counters = drive.counters();
    assert_eq!((counters.flash.unwrap().bytes_programmed, counters.zero_writes), (programmed, 1));
    assert_eq!(counters.bytes_zeroed, PAGE * 2);
    assert_eq!(ns(&mut drive, read(1, 1)), 49 + 1_248 + 11, "the page is forgotten");
    let part = Request::write_zeroes(ByteSize(512), ByteSize(512)).with_fua();
    let fill_and_program = 75_310 + 12_288 + 12_288 + 750_361;
    assert_eq!(ns(&mut drive, part), 49 + fill_and_program + 11, "a part of a page is written, durably");
}

#[test]
fn the_stages_of_a_request_add_up() {
    let mut drive = drive(|c| (c.host.queue_depth, c.host.command_latency_ns) = (1, 1_000));
    execute(&mut drive, write(0, 1)).unwrap();
    flush(&mut drive);
    let (before, _) = drive.stage_times();
    (0..2).for_each(|_| drive.submit(read(0, 1)).unwrap());
    let done: Vec<_> = std::iter::from_fn(|| drive.wait().unwrap()).collect();
    let each = 49 + 1_000 + 75_310 + 12_288 + 1_248 + 11;
    assert_eq!(done.iter().map(|d| (d.waiting().0, d.service().0)).collect::<Vec<_>>(), [(0, each), (each, each)]);
    let (reads, _) = drive.stage_times();
    assert_eq!((before.requests, reads.requests, reads.with_flash), (0, 2, 2));
    assert_eq!((reads.waiting.0, reads.arriving.0, reads.service.0), (each, 2 * (49 + 1_000), 2 * each));
    assert_eq!(reads.before_flash, Nanos(0));
}

/// The latency of a read, in µs, that comes behind so many writes when the write buffer is full.
fn read_behind_writes_us(waiting_writes: Option<u32>, writes: u64) -> f64 {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    config.flash.array_time_jitter = 0.0;
    config.controller.waiting_writes = waiting_writes;
    config.check("full buffer").unwrap();
    let page = 16_384;
    let buffered = config.controller.write_buffer_bytes / page;
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    support::write(&mut drive, 1 << 30, page);
    support::flush(&mut drive);
    for n in 0..buffered + writes {
        drive.submit(Request::write(ByteSize(n * page), ByteSize(page)).tagged(n)).unwrap();
    }
    drive.submit(Request::read(ByteSize(1 << 30), ByteSize(4096)).tagged(u64::MAX)).unwrap();
    loop {
        let done = drive.wait().unwrap().unwrap();
        if done.tag == u64::MAX {
            return done.latency().0 as f64 / 1e3;
        }
    }
}

#[test]
fn reads_pass_writes_that_wait_for_the_buffer_unless_only_so_many_may_wait() {
    let passing = read_behind_writes_us(None, 200);
    let behind = |limit| read_behind_writes_us(Some(limit), 200);
    assert!(behind(8) > 2.0 * passing, "{} µs behind writes, {passing} µs past them", behind(8));
    assert!(behind(150) < behind(8), "the more writes may wait, the sooner a read is taken");
    assert_eq!(behind(10_000), passing, "a limit that is not reached changes nothing");
}
