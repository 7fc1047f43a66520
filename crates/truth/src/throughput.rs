//! How fast the drive is: asymmetry and concurrency.
//!
//! *Fresh* is a drive of which only the first 256 MiB hold data, written in order; random requests go there. Reads are
//! measured when it was written once; writes when all flash is in use, so that they pay for erases, and what is
//! collected has nothing left to move, and when the buffers are full. *Collecting* is the steady state of uniform
//! random writes over all of it.
//!
//! Concurrency is the knee of the throughput over the depth: of all pairs of a slope *a* and a plateau *P* the one that
//! minimises Σ (ln y − min(ln a + ln d, ln P))², and then *k* = *P* ÷ *a*. So a curve that bends gently has its knee
//! where the two straight lines that describe it best meet. Saturated throughput is the largest of the curve of reads.
//! That of writes varies with the erases that fall to a point: there it is the mean over the depths at the end of the
//! curve, down to the first that is slower than those behind it by more than that.
//!
//! Source of the quantities: Papon and Athanassoulis, DaMoN 2021.

use flashwise_block::{ByteSize, Request};
use flashwise_profile::{Figure, Parameters};

use super::bench::{Bench, Past, Span, median, one_at_a_time};
use super::reclaiming::{Overwritten, Steady};
use super::{DEPENDS_ON_PAST, Reasons, TWO_MEDIANS, buffers, exactly, has_two_medians, of_both};
use flashwise_sim::SimulationError;
use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::WritePolicy;

/// Requests in flight.
const DEPTHS: [usize; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
/// The region that a fresh drive is measured in.
pub(super) const REGION: u64 = 256 << 20;
/// Requests of a point.
const REQUESTS: u64 = 10_000;
/// Latencies of a median.
const LATENCIES: usize = 3_000;

/// Requests a second over the depth.
struct Curve {
    depths: Vec<usize>,
    iops: Vec<f64>,
    /// Standard errors of these.
    errors: Vec<f64>,
}

/// Where a throughput curve stops growing.
#[derive(Debug, PartialEq)]
struct Knee {
    /// Requests in flight.
    depth: f64,
}

impl Curve {
    fn largest(&self) -> f64 {
        self.iops.iter().copied().fold(0.0, f64::max)
    }

    /// The mean over the plateau at the end, in requests over time.
    fn plateau(&self) -> f64 {
        let points = || std::iter::zip(&self.iops, &self.errors).rev();
        let (mut n, mut seconds, mut squares) = (0.0, 0.0, 0.0);
        for (iops, error) in points() {
            let noise = f64::hypot(*error, f64::sqrt(squares) / f64::max(n, 1.0));
            if n > 0.0 && *iops < n / seconds - SLOWER_ERRORS * noise {
                break;
            }
            (n, seconds, squares) = (n + 1.0, seconds + 1.0 / iops, squares + error.powi(2));
        }
        n / seconds
    }

    /// `None` where the curve has no plateau.
    fn knee(&self) -> Option<Knee> {
        let points: Vec<(f64, f64)> =
            self.depths.iter().zip(&self.iops).map(|(&d, &y)| ((d as f64).ln(), y.ln())).collect();
        let n = points.len();
        let mean =
            |part: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| part.iter().map(of).sum::<f64>() / part.len() as f64;
        let fit = |split: usize| {
            let slope = mean(&points[..split], |(d, y)| y - d);
            let plateau = if split < n { mean(&points[split..], |(_, y)| *y) } else { f64::MAX };
            let residual: f64 = points.iter().map(|(d, y)| (y - (slope + d).min(plateau)).powi(2)).sum();
            (residual, slope, plateau)
        };
        let best = (1..=n).map(fit).min_by(|a, b| a.0.total_cmp(&b.0))?;
        // A plateau of one point fits a slope as well, but for rounding.
        let grows_to_the_end = fit(n).0 <= best.0 + 1e-12;
        (!grows_to_the_end && best.2 < f64::MAX).then(|| Knee { depth: (best.2 - best.1).exp() })
    }
}

/// Depths that the drive takes.
fn depths(config: &DeviceConfig) -> Vec<usize> {
    DEPTHS.into_iter().filter(|&depth| depth <= config.host.queue_depth as usize).collect()
}

fn region(config: &DeviceConfig) -> Span {
    Span { start: 0, bytes: REGION.min(config.capacity_bytes) }
}

/// Fills in the figures of a fresh drive; gives its saturated 4 KiB writes a second, where they do not depend on its
/// past.
pub(super) fn fresh(
    config: &DeviceConfig,
    parameters: &mut Parameters,
    reasons: &mut Reasons,
) -> Result<Option<f64>, SimulationError> {
    let p = parameters;
    let four = fresh_at(config, 4096, FOUR, reasons)?;
    let eight = fresh_at(config, 8192, EIGHT, reasons)?;
    (p.asymmetry_4k, p.read_concurrency_4k, p.write_concurrency_4k) = four.0;
    (p.asymmetry_8k, p.read_concurrency_8k, p.write_concurrency_8k) = eight.0;
    p.latency_asymmetry_4k = latency_asymmetry(config, 4096, "latency_asymmetry_4k", reasons)?;
    p.latency_asymmetry_8k = latency_asymmetry(config, 8192, "latency_asymmetry_8k", reasons)?;
    Ok(four.1)
}

/// Keys of α, and of the reads' and the writes' concurrency at a length.
type Keys = [&'static str; 3];
const FOUR: Keys = ["asymmetry_4k", "read_concurrency_4k", "write_concurrency_4k"];
const EIGHT: Keys = ["asymmetry_8k", "read_concurrency_8k", "write_concurrency_8k"];
/// α and both concurrencies.
type Speeds = (Figure<f64>, Figure<u64>, Figure<u64>);

/// The figures at one length, and the saturated writes a second, where they do not depend on the past.
fn fresh_at(
    config: &DeviceConfig,
    length: u64,
    [asymmetry, read_concurrency, write_concurrency]: Keys,
    reasons: &mut Reasons,
) -> Result<(Speeds, Option<f64>), SimulationError> {
    let (reads, writes) = (read_curve(config, length)?, write_curve(config, length, Past::None)?);
    let k_r = concurrency(&reads, read_concurrency, reasons);
    let k_w = concurrency(&writes, write_concurrency, reasons);
    let per_s = match Past::may_matter(config) {
        true => of_both(writes.plateau(), write_curve(config, length, Past::Lively)?.plateau()),
        false => Some(writes.plateau()),
    };
    let speeds = match per_s {
        Some(per_s) => (exactly(reads.largest() / per_s), k_r, k_w),
        None => (reasons.unknown(asymmetry, DEPENDS_ON_PAST), k_r, reasons.unknown(write_concurrency, DEPENDS_ON_PAST)),
    };
    Ok((speeds, per_s))
}

fn concurrency(curve: &Curve, key: &'static str, reasons: &mut Reasons) -> Figure<u64> {
    match curve.knee() {
        Some(knee) => exactly(knee.depth.round().max(1.0) as u64),
        None => reasons.unknown(key, "throughput grows up to the drive's queue depth"),
    }
}

/// A drive that was written in order, whose read cache, if any, holds what it holds in the long run.
fn ready_to_read(config: &DeviceConfig, length: u64) -> Result<Bench, SimulationError> {
    let mut bench = Bench::written(config, region(config).bytes)?;
    let cache = config.controller.read_cache.as_ref().map_or(0, |cache| cache.bytes);
    let depth = 32.min(config.host.queue_depth as usize);
    let mut map = 0;
    if config.ftl.mapping_cache.is_some() {
        bench.read_in_order(region(config))?;
        map = REGION / 8;
    }
    bench.read(region(config), length, depth, 100 + (2 * cache).max(map) / length)?;
    bench.settle()?;
    Ok(bench)
}

fn read_curve(config: &DeviceConfig, length: u64) -> Result<Curve, SimulationError> {
    let mut bench = ready_to_read(config, length)?;
    let depths = depths(config);
    let mut iops = Vec::with_capacity(depths.len());
    for &depth in &depths {
        bench.read(region(config), length, depth, 4 * depth as u64)?;
        iops.push(bench.read(region(config), length, depth, REQUESTS)?.per_s);
        bench.settle()?;
    }
    let errors = vec![0.0; iops.len()];
    Ok(Curve { depths, iops, errors })
}

/// Writes until the buffers are full, and then to be measured.
fn write_counts(config: &DeviceConfig, length: u64, depth: usize) -> (u64, u64) {
    let through = config.controller.write_policy == WritePolicy::Through;
    let fill = (buffers::acknowledged_bytes(config) + config.controller.write_buffer_bytes / 4) / length;
    let settle = if through { 0 } else { fill } + 2 * depth as u64;
    // Erases come in bursts where units are few: some of each.
    let superblock = config.superpage_bytes() * u64::from(config.flash.pages_per_block);
    let turns = (TURNS * config.units() * superblock / length).min(TURNS_MAX);
    (settle, REQUESTS.max(fill).max(turns))
}

/// Superblocks that each unit fills while writes are measured, and writes that are made for it at most.
const TURNS: u64 = 6;
const TURNS_MAX: u64 = 50_000;
/// Parts of a point of writes, which tell how far it may be from what it would be in the long run.
const PARTS: usize = 5;
/// Standard errors by which a depth is slower than those behind it, if it is no part of their plateau.
const SLOWER_ERRORS: f64 = 3.0;

fn write_curve(config: &DeviceConfig, length: u64, past: Past) -> Result<Curve, SimulationError> {
    let depths = depths(config);
    let (mut iops, mut errors) = (Vec::with_capacity(depths.len()), Vec::with_capacity(depths.len()));
    let mut bench = Bench::fresh(config, region(config).bytes, past)?;
    // Until what collection kept ready is used up, and writes pay for their erases.
    bench.write(region(config), length, 32.min(config.host.queue_depth as usize), region(config).bytes / length)?;
    for &depth in &depths {
        let (settle, count) = write_counts(config, length, depth);
        // In a shallow queue a buffer fills slowly where the flash is nearly as fast.
        let settle = if depth < 8 { 6 * settle } else { settle };
        // No pause in between: a buffer that has emptied takes long to fill where the flash is nearly as fast as it.
        bench.write(region(config), length, depth, settle)?;
        let mut parts = [0.0; PARTS];
        for part in &mut parts {
            *part = bench.write(region(config), length, depth, count / PARTS as u64)?.per_s;
        }
        let joined = PARTS as f64 / parts.iter().map(|rate| 1.0 / rate).sum::<f64>();
        let squares: f64 = parts.iter().map(|rate| (rate - joined).powi(2)).sum();
        iops.push(joined);
        errors.push((squares / (PARTS * (PARTS - 1)) as f64).sqrt());
    }
    Ok(Curve { depths, iops, errors })
}

/// Median latency of a write ÷ that of a read on a fresh drive, one at a time without a pause.
fn latency_asymmetry(
    config: &DeviceConfig,
    length: u64,
    key: &'static str,
    reasons: &mut Reasons,
) -> Result<Figure<f64>, SimulationError> {
    if has_unclear_medians(config) {
        return Ok(reasons.unknown(key, TWO_MEDIANS));
    }
    let mut bench = ready_to_read(config, length)?;
    let reads = read_latency(&mut bench, region(config), length)?;
    let mut bench = Bench::fresh(config, region(config).bytes, Past::None)?;
    let (settle, count) = write_counts(config, length, 1);
    // Where the flash is nearly as fast as one request at a time, a buffer takes long to fill.
    bench.write(region(config), length, 1, (6 * settle).max(SETTLED_BYTES / length))?;
    let writes = write_latency(&mut bench, region(config), length, LATENCIES.min(count as usize))?;
    Ok(ratio(writes, reads).map_or_else(|| reasons.unknown(key, TWO_HEAPS), exactly))
}

/// Writes over reads, where both have a latency that most requests are near.
fn ratio(writes: Option<f64>, reads: Option<f64>) -> Option<f64> {
    Some(writes? / reads?)
}

/// Bytes written one at a time before latencies count.
const SETTLED_BYTES: u64 = 96 << 20;
const TWO_HEAPS: &str = "some requests are served by a buffer and some wait, and the median is between";
/// Latencies have a median to speak of where a tenth of them above it, and a tenth below, are near it by this share.
const NEAR: f64 = 0.1;

/// Median latency; `None` where the latencies around it are far apart.
fn usual(mut latencies: Vec<u64>) -> Option<f64> {
    latencies.sort_unstable();
    let at = |tenths: usize| latencies[(latencies.len() - 1) * tenths / 10] as f64;
    (at(6) <= at(4) * (1.0 + NEAR)).then(|| median(latencies.clone()))
}

fn has_unclear_medians(config: &DeviceConfig) -> bool {
    let through = config.controller.write_policy == WritePolicy::Through;
    has_two_medians(config, &config.flash.read_ns_by_page_type)
        || (through && has_two_medians(config, &config.flash.program_ns_by_page_type))
}

fn read_latency(bench: &mut Bench, span: Span, length: u64) -> Result<Option<f64>, SimulationError> {
    Ok(usual(one_at_a_time(bench, LATENCIES, |bench| Request::read(bench.place(span, length), ByteSize(length)))?))
}

fn write_latency(bench: &mut Bench, span: Span, length: u64, count: usize) -> Result<Option<f64>, SimulationError> {
    Ok(usual(one_at_a_time(bench, count, |bench| Request::write(bench.place(span, length), ByteSize(length)))?))
}

/// Fills in the figures of a drive that collects all the time.
pub(super) fn collecting(
    config: &DeviceConfig,
    overwritten: Overwritten,
    parameters: &mut Parameters,
    reasons: &mut Reasons,
) -> Result<(), SimulationError> {
    let p = parameters;
    let Steady { pasts, depth } = match overwritten {
        Overwritten::Steady(steady) => *steady,
        Overwritten::Unknown(why) => {
            p.asymmetry_4k_collecting = reasons.unknown("asymmetry_4k_collecting", why);
            p.asymmetry_8k_collecting = reasons.unknown("asymmetry_8k_collecting", why);
            p.latency_asymmetry_4k_collecting = reasons.unknown("latency_asymmetry_4k_collecting", why);
            p.latency_asymmetry_8k_collecting = reasons.unknown("latency_asymmetry_8k_collecting", why);
            return Ok(());
        }
        Overwritten::CollectsNothing => {
            (p.asymmetry_4k_collecting, p.asymmetry_8k_collecting) = (Figure::absent(), Figure::absent());
            (p.latency_asymmetry_4k_collecting, p.latency_asymmetry_8k_collecting) =
                (Figure::absent(), Figure::absent());
            return Ok(());
        }
    };
    let of_past = |(mut bench, iops): (Bench, f64)| {
        let four = collecting_at(config, &mut bench, (4096, depth), Some(iops))?;
        Ok::<_, SimulationError>((four, collecting_at(config, &mut bench, (8192, depth), None)?))
    };
    let [first, second] = pasts.map(of_past);
    let (first, second) = (first?, second?);
    let unclear = has_unclear_medians(config);
    let by_throughput = |first: &Ratios, second: &Ratios, key, reasons: &mut Reasons| {
        of_both(first.0, second.0).map_or_else(|| reasons.unknown(key, DEPENDS_ON_PAST), exactly)
    };
    p.asymmetry_4k_collecting = by_throughput(&first.0, &second.0, "asymmetry_4k_collecting", reasons);
    p.asymmetry_8k_collecting = by_throughput(&first.1, &second.1, "asymmetry_8k_collecting", reasons);
    let by_latency = |first: &Ratios, second: &Ratios, key, reasons: &mut Reasons| match (first.1, second.1) {
        _ if unclear => reasons.unknown(key, TWO_MEDIANS),
        (Some(first), Some(second)) => {
            of_both(first, second).map_or_else(|| reasons.unknown(key, DEPENDS_ON_PAST), exactly)
        }
        _ => reasons.unknown(key, TWO_HEAPS),
    };
    p.latency_asymmetry_4k_collecting = by_latency(&first.0, &second.0, "latency_asymmetry_4k_collecting", reasons);
    p.latency_asymmetry_8k_collecting = by_latency(&first.1, &second.1, "latency_asymmetry_8k_collecting", reasons);
    Ok(())
}

/// α by throughput and by latency.
type Ratios = (f64, Option<f64>);

/// α by throughput and by latency in the steady state; saturated writes a second where they are known already.
fn collecting_at(
    config: &DeviceConfig,
    bench: &mut Bench,
    (length, depth): (u64, usize),
    known: Option<f64>,
) -> Result<Ratios, SimulationError> {
    let all = bench.everywhere();
    let half = config.capacity_bytes / length.max(config.ftl.logical_page_bytes) / 2;
    let writes = match known {
        Some(iops) => iops,
        None => {
            bench.write(all, length, depth, half)?;
            bench.write(all, length, depth, half)?.per_s
        }
    };
    let settle = 2_000 + buffers::acknowledged_bytes(config) / length;
    bench.write(all, length, 1, settle)?;
    let write_ns = write_latency(bench, all, length, 5 * LATENCIES)?;
    bench.settle()?;
    // What is dirty in a cache would be written in the midst of the reads that take its place.
    bench.alone(Request::flush())?;
    bench.settle()?;
    let cache = config.controller.read_cache.as_ref().map_or(0, |cache| cache.bytes);
    bench.read(all, length, depth, 1_000 + 2 * cache / length)?;
    let reads = bench.read(all, length, depth, 2 * REQUESTS)?.per_s;
    bench.settle()?;
    let read_ns = read_latency(bench, all, length)?;
    Ok((reads / writes, ratio(write_ns, read_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(throughput: impl Fn(f64) -> f64) -> Curve {
        let iops = DEPTHS.map(|depth| throughput(depth as f64)).to_vec();
        Curve { depths: DEPTHS.to_vec(), errors: vec![0.0; iops.len()], iops }
    }

    #[test]
    fn the_knee_is_where_the_slope_meets_the_plateau() {
        for k in [1.0, 5.0, 16.0, 70.0] {
            let knee = curve(|d| 10_000.0 * d.min(k)).knee().unwrap();
            assert!((knee.depth / k - 1.0).abs() < 0.01, "{k}: {knee:?}");
        }
        assert_eq!(curve(|d| 500.0 * d).knee(), None);
    }

    #[test]
    fn a_plateau_reaches_down_to_the_first_depth_that_is_slower_by_more_than_chance() {
        let with = |iops: &[f64], error: f64| {
            let (depths, errors) = (DEPTHS[..iops.len()].to_vec(), vec![error; iops.len()]);
            Curve { depths, iops: iops.to_vec(), errors }.plateau()
        };
        assert_eq!(with(&[100.0, 200.0, 390.0, 400.0], 0.0), 400.0, "it still grows");
        let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.005, "{found} {expected}");
        near(with(&[100.0, 200.0, 390.0, 400.0], 8.0), 395.0);
        near(with(&[100.0, 405.0, 395.0, 450.0, 350.0], 30.0), 397.0);
        near(with(&[100.0, 420.0, 400.0, 400.0], 1.0), 406.5);
    }

    #[test]
    fn a_curve_that_bends_has_its_knee_between_its_straight_parts() {
        // 32 servers, of which requests that go anywhere meet 32 (1 − (31/32)^d).
        let knee = curve(|d| 32.0 * (1.0 - (31.0_f64 / 32.0).powf(d))).knee().unwrap().depth;
        assert!((20.0..40.0).contains(&knee), "{knee}");
    }
}
