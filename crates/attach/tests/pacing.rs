//! What a client measures is what the drive takes, but for the error that the run itself states.
//!
//! Nothing here depends on how fast the machine is or who else uses it: whatever the client measures lies between two
//! figures that the server reports of the same requests. It runs in a process of its own all the same: beside other
//! tests, the error that a run states would be theirs.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]
#![allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]

#[path = "it/support/mod.rs"]
mod support;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use flashwise_attach::nbd::measure_round_trip;
use flashwise_attach::{AttachReport, Engine, Pace};
use flashwise_block::{LatencySummary, Nanos};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use support::{Client, READ, Served, WRITE};

/// Bytes that are written first and read at random.
const PAGES: u64 = 1024;

/// Random reads, so many always under way, by a client that asks again as soon as it is answered: what it measured, and
/// what the drive tells.
fn measured(scale: f64, depth: u64, requests: u64) -> (LatencySummary, AttachReport) {
    let config = DeviceConfig::preset("samsung-960-evo").unwrap();
    let round_trip = measure_round_trip(&config, Pace::Scaled(scale)).unwrap();
    let drive = SimulatedSsd::new(config, 1).unwrap();
    let engine = Engine::new(drive, Pace::Scaled(scale), round_trip, None, Instant::now()).unwrap();
    let served = Served::of(engine);
    let mut client = Client::connect(&served.socket);
    let mut times = LatencySummary::new();
    let mut asked = HashMap::new();
    let ask = |client: &mut Client, asked: &mut HashMap<u64, Instant>, n: u64| {
        let at = Instant::now();
        let offset = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % PAGES * 4096;
        asked.insert(client.ask(0, READ, offset, 4096, &[]), at);
    };
    (0..depth).for_each(|n| ask(&mut client, &mut asked, n));
    for n in depth..requests + depth {
        let (error, cookie) = client.reply();
        let _ = client.data(4096);
        assert_eq!(error, 0);
        times.record(Nanos(asked.remove(&cookie).unwrap().elapsed().as_nanos() as u64));
        if n < requests {
            ask(&mut client, &mut asked, n);
        }
    }
    drop(client);
    (times, served.end())
}

/// Holds what a client measured against what is stated of it; the drive's median on the machine's clock.
fn assert_as_stated(scale: f64, depth: u64, requests: u64) -> Duration {
    let (times, report) = measured(scale, depth, requests);
    let (client, pacing) = (times.percentile(50.0).0 as f64, report.pacing.unwrap());
    let drive = report.latency.reads.p50_ns as f64 * scale;
    let told = format!("depth {depth}: the client {client} ns, the drive {drive} ns, {pacing:?}");
    // Histograms are exact to three digits, and the client's own steps are some microseconds.
    let slack = drive / 100.0 + 5_000.0;
    assert!(client >= drive - pacing.round_trip_ns as f64 - slack, "no answer is earlier than the way takes: {told}");
    // The same times are put together in another way: their sum is the same, and the median where they are alike.
    let most = (pacing.at_once.p50_ns + pacing.error.p50_ns) as f64;
    assert!(client <= most + slack, "nor later than is told: {told}");
    assert!(pacing.at_once.count + depth >= requests, "{told}");
    if pacing.spoils_the_result {
        let enough = pacing.enough_time_scale.expect("what would be enough is told");
        assert!(enough > scale, "{told}");
        eprintln!("the machine is too slow today: {told}");
    } else {
        assert!((client - drive).abs() <= drive * 0.05 + slack, "it says that it is the drive's: {told}");
    }
    Duration::from_nanos(drive as u64)
}

#[test]
fn a_client_at_depth_one_and_at_depth_32_measures_what_the_drive_takes() {
    // A hundred times slower than real, so that most machines keep up.
    let alone = assert_as_stated(100.0, 1, 400);
    assert!(alone > Duration::from_millis(1), "{alone:?}");
    assert_as_stated(100.0, 32, 3000);
}

/// The drive is faster than any way to it: the answer cannot come earlier than its request, and that is told.
#[test]
fn a_way_that_takes_longer_than_the_drive_is_told_with_what_helps() {
    let (times, report) = measured(0.01, 1, 2000);
    let pacing = report.pacing.unwrap();
    let drive_ns = report.latency.reads.p50_ns as f64 * 0.01;
    let client_ns = times.percentile(50.0).0 as f64;
    assert!(pacing.spoils_the_result, "{client_ns} ns instead of {drive_ns}: {pacing:?}");
    // What it waits too long for is the way that was measured, at least, but for what the drive takes.
    assert!(pacing.error.p50_ns as f64 + drive_ns + 1000.0 >= pacing.round_trip_ns as f64, "{pacing:?}");
    let enough = pacing.enough_time_scale.unwrap();
    let error_then = (client_ns - drive_ns) / (drive_ns / 0.01 * enough);
    assert!(error_then < 0.1, "{enough} is enough for {client_ns} ns instead of {drive_ns}: {pacing:?}");
}

/// A client that thinks between its requests is not taken for a slow way.
#[test]
fn what_a_client_does_between_its_requests_spoils_nothing() {
    let served = Served::start(Pace::Scaled(100.0), None);
    let mut client = Client::connect(&served.socket);
    for n in 0..20 {
        assert_eq!(client.execute(0, WRITE, n * 4096, 4096, &[1; 4096]), 0);
        std::thread::sleep(Duration::from_millis(20));
    }
    let report = served.end();
    let pacing = report.pacing.unwrap();
    assert!(pacing.at_once.p50_ns > 20_000_000, "{pacing:?}");
    let drive_ns = report.latency.writes.p50_ns as f64 * 100.0;
    let late = pacing.error.p50_ns as f64 * 20.0 > drive_ns || pacing.error.p99_ns as f64 * 2.0 > drive_ns;
    assert!(!pacing.spoils_the_result || late, "{drive_ns} ns, {pacing:?}");
}
