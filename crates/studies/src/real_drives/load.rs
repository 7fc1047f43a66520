//! Latencies under load, as the public measurements have them: requests of 4 KiB arrive as Poisson processes on a
//! drive in its steady state. One thread's, 5,000 reads and 5,000 writes a second, are measured; those of six others,
//! 99 % writes, make up the rest of the target. A thread has 64 requests in flight; what waits before its submission
//! is not counted.

use flashwise_block::{BlockDevice, ByteSize, LatencySummary, Nanos, Operation, Request};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::bed::{drain, shrink, submit};
use crate::StudyError;

const PAGE: u64 = 4096;
/// Reads and writes a second of the thread that is measured, each.
const MEASURED_PER_S: f64 = 5_000.0;
const IN_FLIGHT: usize = 64;
const LOADING_THREADS: usize = 6;
const LOADING_WRITES: f64 = 0.99;
/// Drive writes, uniform, before the first target: write amplification is then its last to 1 %.
const DRIVE_WRITES: f64 = 2.0;
/// Requests of a target, and how many of them are not counted.
const REQUESTS: u64 = 160_000;
const FIRST: u64 = 30_000;

/// Median, 99 % and 99.9 %, µs.
pub(super) type Latencies = [f64; 3];

/// What was seen at a target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Writes a second that were intended.
    pub(super) target: f64,
    /// Writes a second that completed.
    pub(super) writes_per_s: f64,
    pub(super) writes: Latencies,
    pub(super) reads: Latencies,
}

/// Requests of one or several threads.
struct Flow {
    per_s: f64,
    share_of_writes: f64,
    limit: usize,
    in_flight: usize,
    /// When its next request arrives, ns.
    next_ns: f64,
}

fn latencies(summary: &LatencySummary) -> Latencies {
    [50.0, 99.0, 99.9].map(|percent| summary.percentile(percent).0 as f64 / 1e3)
}

/// A drive at these targets, one after the other.
pub(super) fn run(mut config: DeviceConfig, rows: u32, targets: &[f64], seed: u64) -> Result<Vec<Point>, StudyError> {
    shrink(&mut config, rows);
    config.check(&config.name)?;
    let pages = config.capacity_bytes / PAGE;
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut drive = SimulatedSsd::new(config, seed)?;
    drive.fill_at_once()?;
    for _ in 0..(DRIVE_WRITES * pages as f64) as u64 {
        let page = ByteSize(random.random_range(0..pages) * PAGE);
        submit(&mut drive, Request::write(page, ByteSize(PAGE)), IN_FLIGHT * (LOADING_THREADS + 1))?;
    }
    drain(&mut drive)?;
    targets.iter().map(|&target| at(&mut drive, pages, target, &mut random)).collect()
}

fn at(drive: &mut SimulatedSsd, pages: u64, target: f64, random: &mut Pcg64Mcg) -> Result<Point, StudyError> {
    let start = drive.now().0 as f64;
    let flow = |per_s: f64, share_of_writes, threads: usize| Flow {
        per_s,
        share_of_writes,
        limit: threads * IN_FLIGHT,
        in_flight: 0,
        next_ns: start,
    };
    let mut flows =
        [flow(2.0 * MEASURED_PER_S, 0.5, 1), flow(target - MEASURED_PER_S, LOADING_WRITES, LOADING_THREADS)];
    let (mut writes, mut reads) = (LatencySummary::new(), LatencySummary::new());
    let (mut submitted, mut completed_writes, mut from) = (0, 0_u64, drive.now());
    while submitted < REQUESTS {
        let free = (0..flows.len()).filter(|&n| flows[n].in_flight < flows[n].limit);
        let next = free.min_by(|&a, &b| flows[a].next_ns.total_cmp(&flows[b].next_ns));
        let until = next.map_or(u64::MAX, |n| (flows[n].next_ns as u64).max(drive.now().0));
        if let Some(done) = drive.wait_until(Nanos(until))? {
            flows[done.tag as usize].in_flight -= 1;
            if submitted >= FIRST {
                let is_write = done.operation == Operation::Write;
                completed_writes += u64::from(is_write);
                (if is_write { &mut writes } else { &mut reads }).record(done.latency());
            }
            continue;
        }
        let Some(n) = next else { return Err(StudyError::Lost) };
        let flow = &mut flows[n];
        flow.next_ns += -libm::log(1.0 - random.random::<f64>()) / flow.per_s * 1e9;
        flow.in_flight += 1;
        let page = ByteSize(random.random_range(0..pages) * PAGE);
        let request = match random.random::<f64>() < flow.share_of_writes {
            true => Request::write(page, ByteSize(PAGE)),
            false => Request::read(page, ByteSize(PAGE)),
        };
        drive.submit(request.tagged(n as u64))?;
        submitted += 1;
        if submitted == FIRST {
            from = drive.now();
        }
    }
    let writes_per_s = completed_writes as f64 / drive.now().since(from).as_secs_f64();
    drain(drive)?;
    Ok(Point { target, writes_per_s, writes: latencies(&writes), reads: latencies(&reads) })
}
