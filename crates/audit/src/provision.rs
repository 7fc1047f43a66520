//! Which provisioning of a cloud volume a workload needs: the smallest IOPS and bandwidth with which its requests, sent
//! at the times of the trace, are completed within a goal.
//!
//! ```text
//!   trace ─▶ requests at their times ─▶ simulated volume with (IOPS, bandwidth) ─▶ percentile of their latencies
//!                                            ▲                                          │
//!                                            └──────────── smaller or larger ◀──────────┘
//! ```
//!
//! The latency includes the wait in the volume's queue: a request that comes too early for the limits waits for them. A
//! mean rate says nothing of that; a workload with a mean of 1,000 IOPS in bursts may need 10,000.
//!
//! **Search.** No latency grows with more IOPS or bandwidth, so the smallest value of each, with the other one at its
//! maximum, is found by bisection. Both together are raised until they meet the goal, then each is lowered again.
//!
//! **Not modelled.** Requests come when the trace says, whatever the volume's latency is; a program that waits for each
//! request would slow down instead. Several volumes on an instance with limits of its own.

use flashwise_block::{BlockDevice, BlockError, ByteSize, LatencySummary, Nanos, Operation, Request};
use flashwise_ssd::SsdError;
use flashwise_trace::TraceRecord;
use flashwise_volume::{Counts, SimulatedVolume, Volume};
use serde::Serialize;

/// What can be bought of one kind of volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Product {
    /// Name of the volume's preset.
    pub name: &'static str,
    /// Included.
    pub base: Provisioning,
    /// At most.
    pub most: Provisioning,
    /// Bytes a second that each provisioned operation a second permits at most.
    pub bandwidth_per_iops: u64,
}

/// IOPS and bandwidth of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Provisioning {
    /// Requests a second.
    pub iops: u64,
    /// Bytes a second.
    pub bandwidth_bytes_per_s: u64,
}

const MIB: u64 = 1 << 20;

/// Products whose IOPS and bandwidth are chosen by the buyer.
pub const PRODUCTS: [Product; 2] = [
    // "Amazon EBS General Purpose SSD volumes": 3,000 IOPS and 125 MiB/s, up to 16,000 and 1,000; 0.25 MiB/s for each.
    Product {
        name: "gp3",
        base: Provisioning { iops: 3_000, bandwidth_bytes_per_s: 125 * MIB },
        most: Provisioning { iops: 16_000, bandwidth_bytes_per_s: 1_000 * MIB },
        bandwidth_per_iops: MIB / 4,
    },
    // "Azure managed disk types": 3,000 IOPS and 125 MB/s, up to 80,000 and 1,200; 0.25 MB/s for each.
    Product {
        name: "azure-premium-ssd-v2",
        base: Provisioning { iops: 3_000, bandwidth_bytes_per_s: 125_000_000 },
        most: Provisioning { iops: 80_000, bandwidth_bytes_per_s: 1_200_000_000 },
        bandwidth_per_iops: 250_000,
    },
];

/// Precision of what is needed: finer steps than the provisioning that follows from it.
const IOPS_STEP: u64 = 100;
const BANDWIDTH_STEP: u64 = 5 * MIB;
/// What is bought is a multiple of these, above the need ÷ [`flashwise_block::RateLimits::SHARE_OF_LIMIT`]: the need is
/// that of one trace.
const IOPS_BOUGHT: u64 = 500;
const BANDWIDTH_BOUGHT: u64 = 25 * MIB;
/// Demand is counted in windows of this length, as the volumes' own metrics do at their finest.
const WINDOW: Nanos = Nanos::secs(1);
/// Requests that are replayed: more than an hour of a gp3's base, and half a second for each trial.
pub const REQUESTS_MAX: usize = 500_000;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// The trace has no requests, or all at one time.
    #[error("the trace has no times: only a trace with the times of its requests shows what they need")]
    NoTimes,
    /// The volume cannot be simulated.
    #[error(transparent)]
    Volume(#[from] SsdError),
    /// A request failed.
    #[error(transparent)]
    Replay(#[from] BlockError),
}

/// A request and when it comes.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Nanos,
    is_write: bool,
    offset: u64,
    bytes: u64,
}

/// The demand of a trace, in windows of a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Demand {
    /// Reads and writes.
    pub requests: u64,
    /// From the first to the last.
    pub duration_ns: u64,
    /// Requests a second: the mean of all windows, what 95 % of them do not exceed, the most of any.
    pub iops: [f64; 3],
    /// Bytes a second: the same.
    pub bandwidth_bytes_per_s: [f64; 3],
}

/// A provisioning and what it brings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// IOPS and bandwidth.
    #[serde(flatten)]
    pub provisioning: Provisioning,
    /// Latency at the goal's percentile, ns.
    pub latency_ns: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProvisionReport {
    /// Always `flashwise.provision`.
    pub schema: &'static str,
    /// 1.
    pub schema_version: u32,
    /// The trace.
    pub trace: String,
    /// The volume.
    pub product: Product,
    /// Percentile of the goal.
    pub percentile: f64,
    /// Latency that it must not exceed, ns.
    pub goal_ns: u64,
    /// What the trace asks for.
    pub demand: Demand,
    /// What is included brings.
    pub base: Trial,
    /// The smallest that meets the goal; `None` where the largest does not.
    pub needed: Option<Trial>,
    /// What to buy.
    pub bought: Option<Trial>,
    /// The largest brings.
    pub most: Trial,
}

/// Finds the smallest provisioning of a product whose latencies meet a goal. `volume` is the product's preset; requests
/// beyond [`REQUESTS_MAX`] are left out.
///
/// # Errors
/// When the trace has no times, or the volume does not carry it.
pub fn provision(
    trace: &str,
    records: &[TraceRecord],
    volume: &Volume,
    product: Product,
    percentile: f64,
    goal: Nanos,
) -> Result<ProvisionReport, ProvisionError> {
    let arrivals = arrivals(records, volume);
    let demand = demand(&arrivals).ok_or(ProvisionError::NoTimes)?;
    let trial = |provisioning: Provisioning| -> Result<Trial, ProvisionError> {
        Ok(Trial { provisioning, latency_ns: replayed(&arrivals, volume, provisioning, percentile)?.0 })
    };
    let (base, most) = (trial(product.base)?, trial(product.most)?);
    let meets = |trial: &Trial| trial.latency_ns <= goal.0;
    let mut report = ProvisionReport {
        schema: "flashwise.provision",
        schema_version: 1,
        trace: trace.to_owned(),
        product,
        percentile,
        goal_ns: goal.0,
        demand,
        base,
        needed: None,
        bought: None,
        most,
    };
    if !meets(&most) {
        return Ok(report);
    }
    let ok = |iops: u64, bandwidth: u64| -> Result<bool, ProvisionError> {
        Ok(meets(&trial(Provisioning { iops, bandwidth_bytes_per_s: bandwidth })?))
    };
    let Provisioning { iops: iops_most, bandwidth_bytes_per_s: bandwidth_most } = product.most;
    let least_iops = |bandwidth: u64, from: u64| least(IOPS_STEP, from, iops_most, |iops| ok(iops, bandwidth));
    let least_bandwidth = |iops: u64, from: u64| least(BANDWIDTH_STEP, from, bandwidth_most, |bytes| ok(iops, bytes));
    let (mut iops, mut bandwidth) = (least_iops(bandwidth_most, 0)?, least_bandwidth(iops_most, 0)?);
    if !ok(iops, bandwidth)? {
        // Waits for both add up: raise both by the same factor, in 64ths of the way to the largest, then lower each.
        let way = |share: u64, from: u64, most: u64| from + (most - from) * share / 64;
        let both = |share: u64| (way(share, iops, iops_most), way(share, bandwidth, bandwidth_most));
        let share = least(1, 0, 64, |share| ok(both(share).0, both(share).1))?;
        let (low_iops, low_bandwidth) = (iops, bandwidth);
        (iops, bandwidth) = both(share);
        iops = least_iops(bandwidth, low_iops)?.min(iops);
        bandwidth = least_bandwidth(iops, low_bandwidth)?.min(bandwidth);
    }
    let needed = Provisioning { iops, bandwidth_bytes_per_s: bandwidth };
    report.needed = Some(trial(needed)?);
    report.bought = Some(trial(bought(product, needed))?);
    Ok(report)
}

/// What to buy for a need: with a margin, in round figures, within the product's rules.
fn bought(product: Product, needed: Provisioning) -> Provisioning {
    let with_margin = |value: u64, step: u64| {
        ((value as f64 / flashwise_block::RateLimits::SHARE_OF_LIMIT) as u64).next_multiple_of(step)
    };
    let bandwidth = with_margin(needed.bandwidth_bytes_per_s, BANDWIDTH_BOUGHT)
        .clamp(product.base.bandwidth_bytes_per_s, product.most.bandwidth_bytes_per_s);
    let permitting = bandwidth.div_ceil(product.bandwidth_per_iops).next_multiple_of(IOPS_BOUGHT);
    let iops = with_margin(needed.iops, IOPS_BOUGHT).max(permitting).clamp(product.base.iops, product.most.iops);
    Provisioning { iops, bandwidth_bytes_per_s: bandwidth }
}

/// The least multiple of `step` from `low` to `high` that is good enough, if `high` is.
fn least<E>(step: u64, low: u64, high: u64, is_enough: impl Fn(u64) -> Result<bool, E>) -> Result<u64, E> {
    // `enough` always is, `short` never.
    let (mut short, mut enough) = (low / step, high.div_ceil(step));
    if short > 0 && is_enough(short * step)? {
        return Ok(short * step);
    }
    while enough - short > 1 {
        let middle = short + (enough - short) / 2;
        if is_enough(middle * step)? { enough = middle } else { short = middle }
    }
    Ok((enough * step).min(high))
}

/// The reads and writes of a trace, placed on the volume and no longer than it accepts.
fn arrivals(records: &[TraceRecord], volume: &Volume) -> Vec<Arrival> {
    let (block, transfer) = (volume.config.logical_block_bytes, volume.config.max_transfer_bytes);
    let moved = records.iter().filter(|record| record.operation == Operation::Read || record.operation.writes());
    let moved = moved.filter(|record| record.length.0 > 0);
    let pieces = moved.flat_map(|record| {
        let length = record.length.0.next_multiple_of(block);
        let start = record.offset.0 / block * block;
        (0..length.div_ceil(transfer)).map(move |n| {
            let bytes = transfer.min(length - n * transfer);
            // Where it is matters only for what continues it.
            let offset = (start + n * transfer) % (volume.config.capacity_bytes - transfer) / block * block;
            Arrival { at: record.at, is_write: record.operation.writes(), offset, bytes }
        })
    });
    pieces.take(REQUESTS_MAX).collect()
}

fn demand(arrivals: &[Arrival]) -> Option<Demand> {
    let (first, last) = (arrivals.first()?.at, arrivals.last()?.at);
    let duration = last.since(first);
    if duration == Nanos(0) {
        return None;
    }
    let windows = (duration.0 / WINDOW.0 + 1) as usize;
    let (mut requests, mut bytes) = (vec![0_u64; windows], vec![0_u64; windows]);
    for arrival in arrivals {
        let window = (arrival.at.since(first).0 / WINDOW.0) as usize;
        if let (Some(requests), Some(bytes)) = (requests.get_mut(window), bytes.get_mut(window)) {
            *requests += 1;
            *bytes += arrival.bytes;
        }
    }
    let figures = |mut counts: Vec<u64>| {
        let mean = counts.iter().sum::<u64>() as f64 / duration.as_secs_f64().max(WINDOW.as_secs_f64());
        counts.sort_unstable();
        let p95 = counts[(counts.len() * 95).div_ceil(100) - 1];
        [mean, p95 as f64, counts.last().copied().unwrap_or(0) as f64]
    };
    Some(Demand {
        requests: arrivals.len() as u64,
        duration_ns: duration.0,
        iops: figures(requests),
        bandwidth_bytes_per_s: figures(bytes),
    })
}

/// The latency at a percentile when the requests come at their times.
fn replayed(
    arrivals: &[Arrival],
    volume: &Volume,
    provisioning: Provisioning,
    percentile: f64,
) -> Result<Nanos, ProvisionError> {
    let mut device = SimulatedVolume::new(provisioned(volume, provisioning), 1)?;
    let mut latencies = LatencySummary::new();
    let first = arrivals.first().map_or(Nanos(0), |arrival| arrival.at);
    for arrival in arrivals {
        let due = arrival.at.since(first);
        while let Some(done) = device.wait_until(due)? {
            done.result.clone()?;
            latencies.record(done.latency());
        }
        let (offset, bytes) = (ByteSize(arrival.offset), ByteSize(arrival.bytes));
        device.submit(if arrival.is_write { Request::write(offset, bytes) } else { Request::read(offset, bytes) })?;
    }
    while let Some(done) = device.wait()? {
        done.result.clone()?;
        latencies.record(done.latency());
    }
    Ok(latencies.percentile(percentile))
}

/// A volume with other rates; each bucket holds the same time of its refill.
fn provisioned(volume: &Volume, provisioning: Provisioning) -> Volume {
    let mut volume = volume.clone();
    // What the host sends at once is the trace's, not the volume's.
    volume.config.queue_depth = 1 << 20;
    for limit in &mut volume.config.limits {
        let rate = match limit.counts {
            Counts::Requests => provisioning.iops,
            Counts::Bytes => provisioning.bandwidth_bytes_per_s,
            Counts::Cost => continue,
        };
        limit.size = (limit.size as f64 * rate as f64 / limit.rate_per_s.max(1) as f64).ceil() as u64;
        limit.rate_per_s = rate.max(1);
    }
    volume
}

#[cfg(test)]
mod tests {
    use flashwise_volume::VolumeConfig;

    use super::*;

    /// gp3 without its spread of latencies, so that a plain computation gives each of them.
    fn volume() -> Volume {
        let text = "\
            name = \"plain\"\ncapacity_bytes = 1073741824\n\
            limits = [{ name = \"IOPS\", counts = \"requests\", rate_per_s = 3000, size = 30 },\n\
            { name = \"bandwidth\", counts = \"bytes\", rate_per_s = 131072000, size = 1310720 }]\n\
            medium.plain = { read_ns = 500000, write_ns = 500000 }\n";
        let config: VolumeConfig = toml::from_str(text).unwrap();
        Volume::new(config).unwrap()
    }

    fn record(at: u64, kib: u64) -> TraceRecord {
        TraceRecord::new(Nanos(at), Operation::Read, ByteSize(0), ByteSize::kib(kib))
    }

    /// 400 pages at once every 200 ms, and a few long reads: 2,000 a second on average.
    fn bursts() -> Vec<TraceRecord> {
        let burst =
            |n: u64| (0..400).map(move |i| record(n * 200_000_000 + i * 10_000, if i % 20 == 0 { 128 } else { 8 }));
        (0..10).flat_map(burst).collect()
    }

    fn found(records: &[TraceRecord], goal: Nanos) -> ProvisionReport {
        provision("trace", records, &volume(), PRODUCTS[0], 99.0, goal).unwrap()
    }

    /// Latency at 99 % by a plain computation of two buckets in a row.
    fn plain(records: &[TraceRecord], iops: f64, bandwidth: f64) -> f64 {
        let mut buckets =
            [(iops, iops * 0.01, 0.0_f64, f64::INFINITY), (bandwidth, bandwidth * 0.01, 0.0, f64::INFINITY)];
        let mut latencies: Vec<f64> = records
            .iter()
            .map(|record| {
                let arrived = record.at.as_secs_f64();
                let mut now = arrived;
                for (index, (rate, depth, last, tokens)) in buckets.iter_mut().enumerate() {
                    let cost = if index == 0 { 1.0 } else { record.length.0 as f64 };
                    now = now.max(*last);
                    *tokens = (*tokens + (now - *last) * *rate).min(*depth);
                    let wait = ((cost - *tokens) / *rate).max(0.0);
                    *tokens += wait * *rate - cost;
                    now += wait;
                    *last = now;
                }
                now - arrived + 0.0005
            })
            .collect();
        latencies.sort_by(f64::total_cmp);
        latencies[(latencies.len() as f64 * 0.99).ceil() as usize - 1]
    }

    #[test]
    fn the_need_is_the_smallest_that_meets_the_goal_by_trying_every_one() {
        let records = bursts();
        let goal = Nanos::millis(20);
        let needed = found(&records, goal).needed.unwrap().provisioning;
        let meets = |iops: u64, bytes: u64| plain(&records, iops as f64, bytes as f64) <= goal.as_secs_f64();
        assert!(meets(needed.iops, needed.bandwidth_bytes_per_s), "{needed:?}");
        // Each step smaller is too small.
        let smaller = [
            (needed.iops - IOPS_STEP, needed.bandwidth_bytes_per_s),
            (needed.iops, needed.bandwidth_bytes_per_s - BANDWIDTH_STEP),
        ];
        assert!(smaller.iter().all(|&(iops, bytes)| !meets(iops, bytes)), "{needed:?}");
        // And no pair with less of both meets the goal.
        let iops = (1..needed.iops / IOPS_STEP).map(|n| n * IOPS_STEP);
        let pairs = iops.flat_map(|iops| {
            (1..needed.bandwidth_bytes_per_s / BANDWIDTH_STEP).map(move |n| (iops, n * BANDWIDTH_STEP))
        });
        assert_eq!(pairs.filter(|&(iops, bytes)| meets(iops, bytes)).count(), 0, "{needed:?}");
    }

    #[test]
    fn bursts_need_more_than_their_mean_and_a_longer_goal_needs_less() {
        let records = bursts();
        let [short, long] = [Nanos::millis(20), Nanos::millis(60)].map(|goal| found(&records, goal));
        let iops = |report: &ProvisionReport| report.needed.unwrap().provisioning.iops;
        assert!(iops(&short) > iops(&long) && iops(&long) as f64 > short.demand.iops[0], "{short:?} {long:?}");
        assert!((short.demand.iops[0] / 2_222.0 - 1.0).abs() < 0.1, "{:?}", short.demand);
    }

    #[test]
    fn what_is_bought_has_a_margin_and_keeps_the_rules_of_the_product() {
        let of = |iops, mib| {
            let needed = Provisioning { iops, bandwidth_bytes_per_s: mib * MIB };
            let bought = bought(PRODUCTS[0], needed);
            (bought.iops, bought.bandwidth_bytes_per_s / MIB)
        };
        assert_eq!(of(4_100, 95), (4_500, 125));
        assert_eq!(of(100, 5), (3_000, 125), "no less than what is included");
        assert_eq!(of(1_000, 900), (4_000, 950), "0.25 MiB/s for each operation a second");
        assert_eq!(of(15_900, 990), (16_000, 1_000));
    }

    #[test]
    fn a_goal_below_the_latency_of_the_volume_is_not_met_and_a_trace_without_times_has_no_answer() {
        let report = found(&bursts(), Nanos::micros(400));
        assert!(report.needed.is_none() && report.most.latency_ns >= 500_000);
        let at_once = [record(5, 8), record(5, 8)];
        let none = provision("trace", &at_once, &volume(), PRODUCTS[0], 99.0, Nanos::millis(2));
        assert!(matches!(none, Err(ProvisionError::NoTimes)));
    }
}
