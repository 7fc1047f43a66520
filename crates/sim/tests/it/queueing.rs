//! Time in the simulator against what follows from its parts: the latency of a request to the nanosecond, queues
//! against the Pollaczek–Khinchine formula, throughput against the server that bounds it.
//!
//! Tolerances, set before the first run: none where one or two requests are in progress, 3 % for mean waiting under
//! Poisson arrivals, 1 % for throughput and for Little's law.
use flashwise_block::{BlockDevice, ByteSize, Nanos, Request, execute};
use flashwise_ssd::config::{DataTransfer, Placement, WritePolicy};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_theory::{waiting_md1, waiting_mg1};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const PAGE: u64 = 4096;
const SENSE: u64 = 50_000;
const PROGRAM: u64 = 700_000;
/// A page over the channel of 400 MB/s.
const TRANSFER: u64 = 10_240;
/// A page over the link of 1 GB/s.
const LINK: u64 = 4_096;
const READ_COMMAND: u64 = 290;
const PROGRAM_COMMAND: u64 = 310;
const FETCH: u64 = 49;
const LATENCY: u64 = 1_000;
const DATA_REQUEST: u64 = 8;
const POST: u64 = 11;

/// A drive of dies of one plane, whose every part takes a known time; pages go over channels first, then over dies.
fn parts(channels: u32, dies: u32) -> DeviceConfig {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    let host = &mut config.host;
    (host.command_latency_ns, host.command_issue_ns, host.command_fetch_ns) = (LATENCY, 0, FETCH);
    (host.data_request_ns, host.completion_ns) = (DATA_REQUEST, POST);
    (host.link_bytes_per_s, host.data_transfer) = (Some(1_000_000_000), DataTransfer::StoreAndForward);
    (config.controller.dispatch_ns, config.controller.write_policy) = (0, WritePolicy::Through);
    let flash = &mut config.flash;
    (flash.channels, flash.chips_per_channel, flash.dies_per_chip, flash.planes_per_die) = (channels, 1, dies, 1);
    (flash.blocks_per_plane, flash.pages_per_block, flash.page_bytes) = (64, 64, PAGE);
    (flash.channel_bytes_per_s, flash.array_time_jitter) = (400_000_000, 0.0);
    (flash.read_ns, flash.program_ns) = (SENSE, PROGRAM);
    (flash.command.read_ns, flash.command.program_ns) = (READ_COMMAND, PROGRAM_COMMAND);
    config.ftl.placement = Placement::Static;
    config.capacity_bytes = u64::from(channels * dies) * 32 * 64 * PAGE;
    config
}

/// The same with nothing on the way to the flash and back, but for a link that is as good as free.
fn bare(channels: u32, dies: u32) -> DeviceConfig {
    let mut config = parts(channels, dies);
    let host = &mut config.host;
    (host.command_latency_ns, host.command_fetch_ns, host.data_request_ns, host.completion_ns) = (0, 0, 0, 0);
    host.link_bytes_per_s = Some(1_000_000_000_000);
    (config.flash.command.read_ns, config.flash.command.program_ns) = (0, 0);
    config
}

fn filled(config: DeviceConfig) -> SimulatedSsd {
    let mut drive = empty(config);
    drive.fill_at_once().unwrap();
    drive
}

fn empty(config: DeviceConfig) -> SimulatedSsd {
    config.check("parts").unwrap();
    SimulatedSsd::new(config, 1).unwrap()
}

fn read(page: u64) -> Request {
    Request::read(ByteSize(page * PAGE), ByteSize(PAGE))
}

fn write(page: u64) -> Request {
    Request::write(ByteSize(page * PAGE), ByteSize(PAGE))
}

/// Latencies of requests that are submitted at the same time, in the order of their completion.
fn together<const N: usize>(drive: &mut SimulatedSsd, requests: [Request; N]) -> [u64; N] {
    requests.into_iter().for_each(|request| drive.submit(request).unwrap());
    std::array::from_fn(|_| drive.wait().unwrap().unwrap().latency().0)
}

const ARRIVE: u64 = FETCH + LATENCY;
const READ_ON_DIE: u64 = READ_COMMAND + SENSE + TRANSFER;
const WRITE_ON_DIE: u64 = PROGRAM_COMMAND + TRANSFER + PROGRAM;

#[test]
fn a_read_takes_the_sum_of_its_parts() {
    let latency = execute(&mut filled(parts(1, 1)), read(5)).unwrap().latency();
    assert_eq!(latency, Nanos(ARRIVE + READ_COMMAND + SENSE + TRANSFER + LINK + POST));
}

#[test]
fn a_write_takes_the_sum_of_its_parts() {
    let latency = execute(&mut filled(parts(1, 1)), write(5)).unwrap().latency();
    assert_eq!(latency, Nanos(ARRIVE + DATA_REQUEST + LINK + PROGRAM_COMMAND + TRANSFER + PROGRAM + POST));
}

#[test]
fn of_two_reads_on_one_die_the_second_waits_for_the_first() {
    let [first, second] = together(&mut filled(parts(1, 1)), [read(0), read(1)]);
    assert_eq!(first, ARRIVE + READ_ON_DIE + LINK + POST);
    assert_eq!(second, first + READ_ON_DIE);
}

#[test]
fn of_two_reads_on_one_channel_the_second_waits_for_command_and_transfer_of_the_first() {
    let [first, second] = together(&mut filled(parts(1, 2)), [read(0), read(1)]);
    assert_eq!(first, ARRIVE + READ_ON_DIE + LINK + POST);
    assert_eq!(second, first + TRANSFER, "both have sensed when the first one's data leaves");
}

#[test]
fn two_reads_on_two_channels_share_the_link_alone() {
    let [first, second] = together(&mut filled(parts(2, 1)), [read(0), read(1)]);
    assert_eq!(first, ARRIVE + READ_ON_DIE + LINK + POST);
    assert_eq!(second, first + LINK + POST, "the first one's completion goes before the second one's data");
}

#[test]
fn of_two_writes_on_one_die_the_second_waits_for_the_first() {
    let [first, second] = together(&mut filled(parts(1, 1)), [write(0), write(1)]);
    assert_eq!(first, ARRIVE + DATA_REQUEST + LINK + WRITE_ON_DIE + POST);
    assert_eq!(second, first + WRITE_ON_DIE);
}

#[test]
fn of_two_writes_on_one_channel_the_second_waits_for_the_transfer_of_the_first() {
    let [first, second] = together(&mut filled(parts(1, 2)), [write(0), write(1)]);
    assert_eq!(second, first + PROGRAM_COMMAND + TRANSFER);
}

#[test]
fn a_read_behind_a_write_on_one_die_waits_for_its_program() {
    let mut drive = filled(parts(1, 1));
    drive.submit(write(0)).unwrap();
    drive.pause(Nanos(ARRIVE + DATA_REQUEST + LINK)).unwrap();
    drive.submit(read(1)).unwrap();
    let [written, fetched] = std::array::from_fn(|_| drive.wait().unwrap().unwrap());
    assert_eq!(fetched.completed_at.0 - written.completed_at.0, READ_ON_DIE + LINK);
}

/// Mean time of `count` reads that arrive as a Poisson process, beyond the time of one that comes alone.
fn mean_waiting(mut drive: SimulatedSsd, service_ns: f64, utilisation: f64, count: u64) -> f64 {
    let pages = drive.config().logical_pages();
    let mut random = Pcg64::seed_from_u64(3);
    let alone_ns = execute(&mut drive, read(0)).unwrap().latency().0 as f64;
    let (mut at_ns, mut sum_ns) = (drive.now().0 as f64, 0.0);
    let mut submitted = 0;
    while submitted < count || drive.outstanding() > 0 {
        let until = if submitted < count { Nanos(at_ns as u64) } else { Nanos(u64::MAX) };
        if let Some(done) = drive.wait_until(until).unwrap() {
            sum_ns += done.latency().0 as f64;
        } else {
            drive.submit(read(random.random_range(0..pages))).unwrap();
            submitted += 1;
            at_ns += -(1.0 - random.random::<f64>()).ln() * service_ns / utilisation;
        }
    }
    sum_ns / count as f64 - alone_ns
}

const UTILISATIONS: [f64; 3] = [0.3, 0.6, 0.8];
const ARRIVALS: u64 = 1_000_000;

fn agree(what: &str, utilisation: f64, measured: f64, expected: f64) {
    println!(
        "{what} at {utilisation}: {measured:.0} ns for {expected:.0}, {:+.2} %",
        100.0 * (measured / expected - 1.0)
    );
    assert!((measured / expected - 1.0).abs() < 0.03, "{what} at {utilisation}: {measured} for {expected}");
}

#[test]
fn reads_that_arrive_at_one_die_by_chance_wait_as_in_m_d_1() {
    let service = (SENSE + TRANSFER) as f64;
    for utilisation in UTILISATIONS {
        let measured = mean_waiting(filled(bare(1, 1)), service, utilisation, ARRIVALS);
        agree("die", utilisation, measured, waiting_md1(utilisation, service));
    }
}

#[test]
fn reads_whose_sensing_varies_wait_as_in_m_g_1() {
    let (share, service) = (0.5, (SENSE + TRANSFER) as f64);
    let variation = (share * SENSE as f64 / service).powi(2) / 3.0;
    for utilisation in UTILISATIONS {
        let mut config = bare(1, 1);
        config.flash.array_time_jitter = share;
        // The one that comes alone is subtracted with its own jitter; what is asked for is beyond the mean.
        let mut alone = filled(config.clone());
        let luck = execute(&mut alone, read(0)).unwrap().latency().0 as f64 - service;
        let measured = mean_waiting(filled(config), service, utilisation, ARRIVALS) + luck;
        agree("die with jitter", utilisation, measured, waiting_mg1(utilisation, service, variation));
    }
}

#[test]
fn data_that_arrives_at_the_link_by_chance_waits_as_in_m_d_1() {
    for utilisation in UTILISATIONS {
        let mut config = bare(1, 1);
        config.host.link_bytes_per_s = Some(1_000_000_000);
        // Nothing was written: the reads cross the link and touch nothing else.
        let measured = mean_waiting(empty(config), LINK as f64, utilisation, ARRIVALS);
        agree("link", utilisation, measured, waiting_md1(utilisation, LINK as f64));
    }
}

#[test]
fn commands_that_arrive_at_the_firmware_by_chance_wait_as_in_m_d_1() {
    for utilisation in UTILISATIONS {
        let mut config = bare(1, 1);
        config.host.command_issue_ns = 2_500;
        let measured = mean_waiting(empty(config), 2_500.0, utilisation, ARRIVALS);
        agree("firmware", utilisation, measured, waiting_md1(utilisation, 2_500.0));
    }
}

/// What a host gets that always has `depth` requests in progress.
struct Loop {
    iops: f64,
    mean_latency_s: f64,
}

fn closed_loop(mut drive: SimulatedSsd, depth: usize, count: u64, request: impl Fn(u64) -> Request) -> Loop {
    let begun = drive.now();
    let mut latency_ns = 0;
    for n in 0..count {
        drive.submit(request(n)).unwrap();
        if drive.outstanding() >= depth {
            latency_ns += drive.wait().unwrap().unwrap().latency().0;
        }
    }
    while let Some(done) = drive.wait().unwrap() {
        latency_ns += done.latency().0;
    }
    let elapsed_s = drive.now().since(begun).0 as f64 * 1e-9;
    let measured = Loop { iops: count as f64 / elapsed_s, mean_latency_s: latency_ns as f64 * 1e-9 / count as f64 };
    let under_way = measured.iops * measured.mean_latency_s;
    assert!((under_way / depth as f64 - 1.0).abs() < 0.01, "Little's law: {under_way} for {depth}");
    measured
}

fn bounded(what: &str, measured: &Loop, ceiling: f64) {
    let share = measured.iops / ceiling;
    println!("{what}: {:.0} IOPS for {ceiling:.0}, {:+.2} %", measured.iops, 100.0 * (share - 1.0));
    assert!((0.99..=1.000_001).contains(&share), "{what}: {} for {ceiling}", measured.iops);
}

const REQUESTS: u64 = 100_000;

#[test]
fn where_the_channels_bound_reads_each_is_always_moving_data() {
    for channels in [1, 2, 4] {
        let config = bare(channels, 8);
        let pages = config.logical_pages();
        let measured = closed_loop(filled(config), 32 * channels as usize, REQUESTS, |n| read(n % pages));
        bounded("channels", &measured, f64::from(channels) * 1e9 / TRANSFER as f64);
    }
}

#[test]
fn where_the_dies_bound_reads_each_is_always_sensing_or_moving_data() {
    for (channels, dies) in [(1, 1), (1, 4), (4, 1), (4, 2)] {
        let config = bare(channels, dies);
        let pages = config.logical_pages();
        let depth = 16 * (channels * dies) as usize;
        let measured = closed_loop(filled(config), depth, REQUESTS, |n| read(n % pages));
        bounded("dies", &measured, f64::from(channels * dies) * 1e9 / (SENSE + TRANSFER) as f64);
    }
}

#[test]
fn where_the_dies_bound_writes_each_is_always_receiving_or_programming() {
    for (channels, dies) in [(1, 1), (1, 4), (4, 2)] {
        let config = bare(channels, dies);
        // A third of the drive, so that garbage collection is far.
        let count = config.logical_pages() / 3;
        let depth = 4 * (channels * dies) as usize;
        let measured = closed_loop(empty(config), depth, count, write);
        bounded("programs", &measured, f64::from(channels * dies) * 1e9 / (TRANSFER + PROGRAM) as f64);
    }
}

#[test]
fn where_the_link_bounds_reads_it_is_always_moving_data() {
    for pages_each in [1, 16] {
        let mut config = bare(4, 8);
        config.host.link_bytes_per_s = Some(200_000_000);
        let slots = config.logical_pages() / pages_each;
        let request = |n| Request::read(ByteSize(n % slots * pages_each * PAGE), ByteSize(pages_each * PAGE));
        let measured = closed_loop(filled(config), 64, REQUESTS / pages_each, request);
        bounded("link", &measured, 200e6 / (pages_each * PAGE) as f64);
    }
}

#[test]
fn where_the_firmware_bounds_it_takes_one_command_after_the_other() {
    let mut config = bare(8, 8);
    config.host.command_issue_ns = 2_500;
    let pages = config.logical_pages();
    let measured = closed_loop(filled(config), 128, REQUESTS, |n| read(n % pages));
    bounded("firmware", &measured, 1e9 / 2_500.0);
}

#[test]
fn with_one_request_under_way_throughput_is_the_inverse_of_latency() {
    let config = parts(4, 2);
    let pages = config.logical_pages();
    let measured = closed_loop(filled(config), 1, REQUESTS, |n| read(n * 7 % pages));
    bounded("one at a time", &measured, 1e9 / (ARRIVE + READ_ON_DIE + LINK + POST) as f64);
}
