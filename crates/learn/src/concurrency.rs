//! How many requests a drive serves at once, and how much dearer a write is than a read.
//!
//! Random requests of one length are kept in flight by one job, at depths from 1 to 256 in random order, several times
//! over. The *plateau* is the largest median throughput; k is the smallest depth that reaches 95 % of it; α is the
//! plateau of reads over the plateau of writes. Before each batch of writes as many bytes are written as a write buffer
//! may swallow, so that the flash is measured and not the buffer.
//!
//! Source: Papon and Athanassoulis, DaMoN 2021 (fio, more and more jobs at depth 1; the knee read from the plot). Here
//! one job and growing depth; the 95 % rule stands in for the eye.

use flashwise_block::{ByteSize, Operation, Progress, Request};
use flashwise_profile::{Figure, ThroughputCurve, ThroughputPoint};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::prober::Prober;
use crate::stats::{interval95, median};
use crate::{Effort, LearnError};

/// How thoroughly throughput is measured.
struct Scale {
    /// Depths that are tried.
    depths: &'static [u32],
    /// Batches at each depth.
    batches: usize,
    /// Bytes written before each batch of writes: several times a write buffer of a few MiB, because the flash empties
    /// it while it is being filled.
    settle: ByteSize,
}

const THOROUGH: Scale = Scale {
    depths: &[1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 160, 192, 256],
    batches: 7,
    settle: ByteSize::mib(24),
};

const QUICK: Scale = Scale { depths: &[1, 2, 4, 8, 16, 32, 64, 128], batches: 5, settle: ByteSize::mib(8) };

impl Scale {
    fn of(effort: Effort) -> &'static Self {
        match effort {
            Effort::Thorough => &THOROUGH,
            Effort::Quick => &QUICK,
        }
    }
}

/// Reads in a batch: at least so many, and so many for each one in flight.
const BATCH_READS: (usize, usize) = (1024, 24);
/// Writes in a batch: many write-buffer refills, which come in bursts.
const BATCH_WRITES: usize = 1536;
/// k is where throughput reaches this share of the plateau.
const KNEE_SHARE: f64 = 0.95;
/// Resampled knees.
const RESAMPLES: usize = 200;
/// A knee is certain if its interval spans at most this factor.
const NARROW: f64 = 2.0;

/// Throughput of one operation.
pub struct Concurrency {
    /// Throughput by depth.
    pub curve: ThroughputCurve,
    /// The knee.
    pub concurrency: Figure<u64>,
    /// Requests a second of each batch, depth by depth.
    batches: Vec<Vec<f64>>,
}

/// α, k_r and k_w at one request length.
pub struct Asymmetry {
    /// Read throughput ÷ write throughput.
    pub alpha: Figure<f64>,
    /// Reads.
    pub read: Concurrency,
    /// Writes.
    pub write: Concurrency,
}

/// Measures reads and writes of one length.
pub(crate) fn probe(
    prober: &mut Prober<'_>,
    length: ByteSize,
    progress: &mut dyn Progress,
) -> Result<Asymmetry, LearnError> {
    let read = measure(prober, Operation::Read, length, progress)?;
    let write = measure(prober, Operation::Write, length, progress)?;
    let alpha = alpha(&read.batches, &write.batches, &mut prober.random);
    Ok(Asymmetry { alpha, read, write })
}

fn measure(
    prober: &mut Prober<'_>,
    operation: Operation,
    length: ByteSize,
    progress: &mut dyn Progress,
) -> Result<Concurrency, LearnError> {
    let stage = format!("throughput, {length} {}", if operation == Operation::Read { "reads" } else { "writes" });
    let scale = Scale::of(prober.effort);
    let depths = scale.depths;
    let mut batches = vec![Vec::with_capacity(scale.batches); depths.len()];
    let visits = (0..scale.batches).flat_map(|_| 0..depths.len());
    let visits = prober.shuffled(visits);
    for (n, &i) in visits.iter().enumerate() {
        progress.advance(&stage, n as f64 / visits.len() as f64)?;
        batches[i].push(batch(prober, operation, length, depths[i] as usize)?);
    }
    prober.flush()?;
    let points = std::iter::zip(depths, &batches).map(|(&in_flight, rates)| {
        let (low, high) = interval95(rates.clone());
        ThroughputPoint { in_flight, iops: median(rates.clone()), low, high }
    });
    let curve = ThroughputCurve { operation, request_bytes: length.bytes(), points: points.collect() };
    let concurrency = knee_figure(depths, &batches, &mut prober.random);
    Ok(Concurrency { curve, concurrency, batches })
}

/// Requests a second of one batch at one depth, in the running state.
fn batch(prober: &mut Prober<'_>, operation: Operation, length: ByteSize, depth: usize) -> Result<f64, LearnError> {
    let (settle, requests) = match operation {
        Operation::Write => ((Scale::of(prober.effort).settle / length) as usize, BATCH_WRITES),
        _ => (2 * depth, BATCH_READS.0.max(BATCH_READS.1 * depth)),
    };
    run(prober, operation, length, depth, settle)?;
    let started = prober.now();
    run(prober, operation, length, depth, requests)?;
    let seconds = prober.now().since(started).as_secs_f64();
    while prober.wait()? {}
    Ok(requests as f64 / seconds.max(1e-9))
}

/// Lets `completions` requests complete while `depth` are kept in flight; they stay in flight at the end.
fn run(
    prober: &mut Prober<'_>,
    operation: Operation,
    length: ByteSize,
    depth: usize,
    completions: usize,
) -> Result<(), LearnError> {
    for _ in 0..completions {
        while prober.in_flight() < depth {
            let offset = prober.random_offset(length);
            let request = match operation {
                Operation::Write => Request::write(offset, length),
                _ => Request::read(offset, length),
            };
            prober.submit(request)?;
        }
        prober.wait()?;
    }
    Ok(())
}

/// The smallest depth that reaches the knee's share of the plateau.
fn knee(medians: &[f64]) -> usize {
    let plateau = medians.iter().copied().fold(0.0, f64::max);
    medians.iter().position(|&iops| iops >= KNEE_SHARE * plateau).unwrap_or(0)
}

fn resampled(batches: &[Vec<f64>], random: &mut Pcg64Mcg) -> Vec<f64> {
    let draw = |rates: &Vec<f64>, random: &mut Pcg64Mcg| {
        median((0..rates.len()).map(|_| rates[random.random_range(0..rates.len())]).collect())
    };
    batches.iter().map(|rates| draw(rates, random)).collect()
}

fn medians(batches: &[Vec<f64>]) -> Vec<f64> {
    batches.iter().map(|rates| median(rates.clone())).collect()
}

fn knee_figure(depths: &[u32], batches: &[Vec<f64>], random: &mut Pcg64Mcg) -> Figure<u64> {
    let value = knee(&medians(batches));
    let again = (0..RESAMPLES).map(|_| f64::from(depths[knee(&resampled(batches, random))])).collect();
    let (low, high) = interval95(again);
    let depth = u64::from(depths[value]);
    let (low, high) = ((low as u64).min(depth), (high as u64).max(depth));
    let narrow = high as f64 <= NARROW * low as f64;
    if narrow && value + 1 < depths.len() {
        Figure::certain(depth, low, high)
    } else {
        Figure::inconclusive(depth, low, high)
    }
}

fn plateau(medians: &[f64]) -> f64 {
    medians.iter().copied().fold(0.0, f64::max)
}

fn alpha(reads: &[Vec<f64>], writes: &[Vec<f64>], random: &mut Pcg64Mcg) -> Figure<f64> {
    let value = plateau(&medians(reads)) / plateau(&medians(writes));
    let again =
        (0..RESAMPLES).map(|_| plateau(&resampled(reads, random)) / plateau(&resampled(writes, random))).collect();
    let (low, high) = interval95(again);
    let (low, high) = (low.min(value), high.max(value));
    if high <= 1.2 * low { Figure::certain(value, low, high) } else { Figure::inconclusive(value, low, high) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_the_smallest_depth_within_five_percent_of_the_plateau() {
        assert_eq!(knee(&[100.0, 200.0, 380.0, 391.0, 400.0]), 2);
        assert_eq!(knee(&[400.0, 399.0]), 0);
    }
}
