//! How many requests a drive serves at once, and how much dearer a write is than a read.
//!
//! Random requests of one length are kept in flight by one job, at growing depths in random order, several times over.
//! Two segments are fitted to the medians ([`knee`]): k is where they meet, the *plateau* is the
//! flat one, and α is the plateau of reads over that of writes. Before each batch of writes as many bytes are written as
//! the write buffer swallows, and more, so that the flash is measured and not the buffer. Where the drive as a whole may
//! be written over and over, all of its flash is used once before, so that writes cost what they cost on a drive in use:
//! a program, and their share of an erase.
//!
//! More batches are added until the intervals are narrow, or there are enough.
//!
//! Source: Papon and Athanassoulis, DaMoN 2021 (fio, more and more jobs at depth 1; the knee read from the plot). Here
//! one job and growing depth; the fit stands in for the eye.

use std::f64::consts::SQRT_2;

use flashwise_block::{ByteSize, Clock, Operation, Progress};
use flashwise_profile::{AtSize, Figure, ThroughputCurve, ThroughputPoint, Verdict};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::findings::{Because, Findings, OTHER_WAYS, measured, measured_by_ways, whole};
use crate::prober::{Prober, anywhere};
use crate::stats::knee::{self, Knee};
use crate::stats::{interval95, joined_rate, median};
use crate::{Effort, LearnError};

use super::latency;

/// Depths that are tried, as far as the drive takes so many at once.
const THOROUGH: &[u32] = &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
const QUICK: &[u32] = &[1, 2, 4, 8, 16, 32, 64, 128];
/// Batches at each depth: at first, and added where the interval is too wide, up to the second.
const BATCHES: (usize, usize) = (5, 15);

/// Reads in a batch: at least so many, and so many for each one in flight.
const BATCH_READS: (usize, usize) = (1024, 24);
/// Writes in a batch: many bursts of programs, all dies at once.
const fn batch_writes(effort: Effort) -> usize {
    match effort {
        Effort::Thorough => 6144,
        Effort::Quick => 1536,
    }
}
/// Bytes written before each batch of writes at least.
const fn settle_min(effort: Effort) -> ByteSize {
    match effort {
        Effort::Thorough => ByteSize::mib(16),
        Effort::Quick => ByteSize::mib(2),
    }
}
/// And in multiples of the write buffer: the flash empties it while it is being filled.
const SETTLE_BUFFERS: u64 = 2;
/// No more than this, however large the buffer.
const fn settle_max(effort: Effort) -> ByteSize {
    match effort {
        Effort::Thorough => ByteSize::mib(256),
        Effort::Quick => ByteSize::mib(16),
    }
}
/// Resampled knees.
const RESAMPLES: usize = 200;
/// A figure is certain if its interval is within this share of it.
pub(crate) const TOLERANCE: f64 = 0.1;
/// The same of a knee, and what its interval is widened by: another way to fit it, or depths in between, find it a little
/// elsewhere.
const KNEE_TOLERANCE: f64 = 0.08;

/// Throughput of one operation at one length.
#[derive(Clone, Debug)]
pub(crate) struct Throughput {
    operation: Operation,
    length: ByteSize,
    depths: Vec<u32>,
    /// Requests a second of each batch, depth by depth.
    batches: Vec<Vec<f64>>,
}

/// Measures one operation at one length on the region.
pub(crate) fn measure(
    prober: &mut Prober<'_>,
    operation: Operation,
    length: ByteSize,
    settle: ByteSize,
    progress: &mut dyn Progress,
) -> Result<Throughput, LearnError> {
    let ladder = if prober.effort == Effort::Quick { QUICK } else { THOROUGH };
    let depths: Vec<u32> = ladder.iter().copied().filter(|&depth| depth <= prober.queue_depth().max(3)).collect();
    let batches = vec![Vec::new(); depths.len()];
    let mut throughput = Throughput { operation, length, depths, batches };
    let stage = format!("throughput, {length} {}", if operation == Operation::Read { "reads" } else { "writes" });
    loop {
        let done = throughput.batches[0].len();
        let visits = prober.shuffled((0..BATCHES.0).flat_map(|_| 0..throughput.depths.len()));
        for (n, &i) in visits.iter().enumerate() {
            prober.advance(progress, &stage, n as f64 / visits.len() as f64)?;
            let rate = throughput.batch(prober, throughput.depths[i] as usize, settle)?;
            prober.sample(throughput.name(), f64::from(throughput.depths[i]), rate);
            throughput.batches[i].push(rate);
        }
        prober.flush()?;
        let narrow = throughput.plateau_figure(&mut prober.random).known().is_some()
            && throughput.concurrency(&mut prober.random).known().is_some();
        if narrow || done + BATCHES.0 >= BATCHES.1 || prober.effort == Effort::Quick {
            return Ok(throughput);
        }
    }
}

/// Bytes to write before writes are measured in the long run.
pub(crate) fn settling(effort: Effort, buffer: Option<u64>) -> ByteSize {
    ByteSize(SETTLE_BUFFERS * buffer.unwrap_or(0)).max(settle_min(effort)).min(settle_max(effort))
}

impl Throughput {
    fn name(&self) -> &'static str {
        if self.operation == Operation::Read { "read throughput" } else { "write throughput" }
    }

    /// Requests a second of one batch at one depth, in the running state.
    fn batch(&self, prober: &mut Prober<'_>, depth: usize, settle: ByteSize) -> Result<f64, LearnError> {
        let (settle, requests) = match self.operation {
            Operation::Write => ((settle / self.length) as usize, batch_writes(prober.effort)),
            _ => (2 * depth, BATCH_READS.0.max(BATCH_READS.1 * depth)),
        };
        let mut place = anywhere(prober.region(), self.length);
        prober.keep_in_flight(self.operation, self.length, depth, settle, &mut place)?;
        let rate = prober.rate(self.operation, self.length, depth, requests, &mut place)?;
        while prober.wait()?.is_some() {}
        Ok(rate)
    }

    /// The curve for the profile.
    pub(crate) fn curve(&self) -> ThroughputCurve {
        let points = std::iter::zip(&self.depths, &self.batches).map(|(&in_flight, rates)| {
            let (low, high) = interval95(rates.clone());
            ThroughputPoint { in_flight, iops: self.level(rates.clone()), low, high }
        });
        ThroughputCurve { operation: self.operation, request_bytes: self.length.bytes(), points: points.collect() }
    }

    fn fit(&self, medians: &[f64]) -> Option<Knee> {
        knee::fit(&self.depths_of_points(), medians)
    }

    fn depths_of_points(&self) -> Vec<f64> {
        self.depths.iter().map(|&depth| f64::from(depth)).collect()
    }

    /// Depths of the knees that the curve has if it is split elsewhere, and no worse.
    fn rivals(&self) -> Option<(f64, f64)> {
        knee::rivals(&self.depths_of_points(), &self.levels())
    }

    /// What stands for the batches of each depth.
    fn levels(&self) -> Vec<f64> {
        self.batches.iter().map(|rates| self.level(rates.clone())).collect()
    }

    /// The median of reads. Writes pay for erases, which come in bursts that a median would not see, or see alone: their
    /// batches are joined.
    fn level(&self, rates: Vec<f64>) -> f64 {
        match self.operation {
            Operation::Write => joined_rate(&rates),
            _ => median(rates),
        }
    }

    fn resampled(&self, random: &mut Pcg64Mcg) -> Vec<f64> {
        let draw = |rates: &Vec<f64>| {
            self.level((0..rates.len()).map(|_| rates[random.random_range(0..rates.len())]).collect())
        };
        self.batches.iter().map(draw).collect()
    }

    /// Saturated requests a second, of the levels of all depths: of reads the largest. The levels of writes vary with the
    /// erases that fall to them, so that the largest is the luckiest: those from the `first` depth on are joined.
    fn saturated(&self, levels: &[f64], first: usize) -> f64 {
        match self.operation {
            Operation::Write => joined_rate(&levels[first..]),
            _ => levels.iter().copied().fold(0.0, f64::max),
        }
    }

    /// The first of the depths at the end that are as fast as those behind them, as far as their batches tell.
    fn plateau_starts(&self) -> usize {
        let last = self.batches.len() - 1;
        let mut behind = self.batches[last].clone();
        for first in (0..last).rev() {
            let here = &self.batches[first];
            let noise = standard_error(here).hypot(standard_error(&behind));
            if joined_rate(here) < joined_rate(&behind) - SLOWER_ERRORS * noise {
                return first + 1;
            }
            behind.extend(here);
        }
        0
    }

    /// k: where the segments meet; a lower bound where throughput still grows at the largest depth.
    pub(crate) fn concurrency(&self, random: &mut Pcg64Mcg) -> Figure<u64> {
        let last = u64::from(self.depths.last().copied().unwrap_or(1));
        let Some(knee) = self.fit(&self.levels()) else {
            return Figure::inconclusive(last, last, last);
        };
        let again = (0..RESAMPLES).filter_map(|_| self.fit(&self.resampled(random))).map(|knee| knee.depth());
        let figure = measured_by_ways(knee.depth(), again.collect(), KNEE_TOLERANCE, KNEE_TOLERANCE);
        let (low, high) = (figure.low.unwrap_or(0.0).floor().max(1.0), figure.high.unwrap_or(0.0).ceil());
        let (near, far) = self.rivals().unwrap_or((knee.depth(), knee.depth()));
        let no_rival = near >= knee.depth() * (1.0 - KNEE_TOLERANCE) && far <= knee.depth() * (1.0 + KNEE_TOLERANCE);
        let (low, high) = (low.min(near.floor()), high.max(far.ceil()));
        // A knee of two or three is a whole number within less than a tenth of itself.
        let verdict = match figure.verdict {
            _ if high - low <= 1.0 => Verdict::Certain,
            Verdict::Certain if !no_rival => Verdict::Inconclusive,
            verdict => verdict,
        };
        whole(Figure { low: Some(low), high: Some(high), verdict, ..figure })
    }

    /// Saturated requests a second.
    pub(crate) fn plateau(&self) -> f64 {
        self.saturated(&self.levels(), self.plateau_starts())
    }

    fn plateau_figure(&self, random: &mut Pcg64Mcg) -> Figure<f64> {
        let first = self.plateau_starts();
        let again = (0..RESAMPLES).map(|_| self.saturated(&self.resampled(random), first)).collect();
        measured(self.plateau(), again, TOLERANCE / 2.0)
    }
}

/// Standard errors by which a depth is slower than those behind it, if it is no part of their plateau.
const SLOWER_ERRORS: f64 = 3.0;

/// Standard error of the mean of some rates.
fn standard_error(rates: &[f64]) -> f64 {
    let n = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / n;
    (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0) / n).sqrt()
}

/// Saturated reads ÷ saturated writes.
pub(crate) fn asymmetry(reads: &Throughput, writes: &Throughput, random: &mut Pcg64Mcg) -> Figure<f64> {
    let value = reads.plateau() / writes.plateau();
    let first = (reads.plateau_starts(), writes.plateau_starts());
    let mut saturated = |of: &Throughput, first| of.saturated(&of.resampled(random), first);
    let again = (0..RESAMPLES).map(|_| saturated(reads, first.0) / saturated(writes, first.1)).collect();
    // Each of the two may be moved by as much.
    measured_by_ways(value, again, TOLERANCE, OTHER_WAYS * SQRT_2)
}

const LENGTHS: [ByteSize; 2] = [ByteSize::kib(4), ByteSize::kib(8)];
const KNEE: &str = "where the two fitted segments meet";

/// k_r at 4 and 8 KiB.
pub(crate) fn probe_reads(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    read_throughput(prober, findings, progress)?;
    let four = findings.reads[0].throughput.concurrency(&mut prober.random);
    let eight = findings.reads[1].throughput.concurrency(&mut prober.random);
    (findings.parameters.read_concurrency_4k, findings.parameters.read_concurrency_8k) = (four, eight);
    let curves: Vec<ThroughputCurve> = findings.reads.iter().map(|reads| reads.throughput.curve()).collect();
    curves.into_iter().for_each(|curve| keep_curve(findings, curve));
    let recipe = "random reads of one length over the filled region, one job, 1 to 256 in flight in random order";
    for key in ["read_concurrency_4k", "read_concurrency_8k"] {
        findings.because(key, Because { recipe, reason: KNEE.to_owned(), curve: None });
    }
    Ok(())
}

/// Reads of one length over a region that was written in order.
#[derive(Clone, Debug)]
pub(crate) struct Reads {
    pub(crate) length: ByteSize,
    pub(crate) throughput: Throughput,
    /// Latencies, one at a time, ns.
    pub(crate) latencies: Vec<f64>,
}

impl Reads {
    fn measure(prober: &mut Prober<'_>, length: ByteSize, progress: &mut dyn Progress) -> Result<Self, LearnError> {
        prober.fill_region(progress)?;
        let throughput = measure(prober, Operation::Read, length, ByteSize(0), progress)?;
        let latencies = latency::read_latencies(prober, prober.region(), length, progress)?;
        Ok(Self { length, throughput, latencies })
    }
}

/// Measures reads of both lengths and those that were asked for, unless that was done.
fn read_throughput(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    if !findings.reads.is_empty() {
        return Ok(());
    }
    let others = findings.sizes_to_ask.clone().into_iter().filter(|size| !LENGTHS.contains(size));
    for length in LENGTHS.into_iter().chain(others) {
        let reads = Reads::measure(prober, length, progress)?;
        findings.reads.push(reads);
    }
    Ok(())
}

/// α and k_w at 4 and 8 KiB.
pub(crate) fn probe_writes(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    read_throughput(prober, findings, progress)?;
    if prober.may_wear {
        prober.use_all_flash(progress)?;
    }
    let settle = settling(prober.effort, findings.parameters.write_buffer_bytes.known());
    for (i, length) in LENGTHS.into_iter().enumerate() {
        let before = (prober.programmed(), prober.written());
        let writes = measure(prober, Operation::Write, length, settle, progress)?;
        let is_collected_for = is_collected_for(prober, before, findings.padding);
        let mut ratio = asymmetry(&findings.reads[i].throughput, &writes, &mut prober.random);
        if is_collected_for && ratio.verdict == Verdict::Certain {
            ratio.verdict = Verdict::Inconclusive;
        }
        if prober.clock() == Clock::Wall {
            // Neighbours of a real drive come and go: what reads reach afterwards is in the interval as well.
            prober.fill_region(progress)?;
            let reads = measure(prober, Operation::Read, length, ByteSize(0), progress)?;
            ratio = latency::both(ratio, asymmetry(&reads, &writes, &mut prober.random));
        }
        let concurrency = writes.concurrency(&mut prober.random);
        keep_curve(findings, writes.curve());
        let p = &mut findings.parameters;
        let keys = if length == ByteSize::kib(4) {
            (p.asymmetry_4k, p.write_concurrency_4k) = (ratio, concurrency);
            findings.saturated_writes_per_s = Some(writes.plateau());
            ["asymmetry_4k", "write_concurrency_4k"]
        } else {
            (p.asymmetry_8k, p.write_concurrency_8k) = (ratio, concurrency);
            ["asymmetry_8k", "write_concurrency_8k"]
        };
        findings.fresh_writes_moved |= is_collected_for;
        let asymmetry = match is_collected_for {
            true => "saturated read IOPS ÷ saturated write IOPS, which the drive collects for: it has no fresh state",
            false => "saturated read IOPS ÷ saturated write IOPS",
        };
        for (key, reason) in std::iter::zip(keys, [asymmetry, KNEE]) {
            findings.because(key, Because { recipe: WRITES, reason: reason.to_owned(), curve: None });
        }
    }
    Ok(())
}

/// α and k at the other sizes that were asked for, as at 4 and 8 KiB.
pub(crate) fn probe_other_sizes(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let settle = settling(prober.effort, findings.parameters.write_buffer_bytes.known());
    for length in findings.sizes_to_ask.clone() {
        let known = findings.reads.iter().find(|reads| reads.length == length).cloned();
        let reads = match known {
            Some(reads) => reads,
            None => Reads::measure(prober, length, progress)?,
        };
        let writes = measure(prober, Operation::Write, length, settle, progress)?;
        let writes_ns =
            latency::write_latencies(prober, prober.region(), length, (settle, latency::TURNOVERS_MAX), progress)?;
        let mut saturated = asymmetry(&reads.throughput, &writes, &mut prober.random);
        let mut single = latency::ratio(&writes_ns, &reads.latencies, &mut prober.random);
        if prober.clock() == Clock::Wall {
            // Neighbours of a real drive come and go: what reads reach afterwards is in the intervals as well.
            let again = Reads::measure(prober, length, progress)?;
            saturated = latency::both(saturated, asymmetry(&again.throughput, &writes, &mut prober.random));
            single = latency::both(single, latency::ratio(&writes_ns, &again.latencies, &mut prober.random));
        }
        findings.at_sizes.push(AtSize {
            request_bytes: length.bytes(),
            asymmetry: saturated,
            latency_asymmetry: single,
            read_concurrency: reads.throughput.concurrency(&mut prober.random),
            write_concurrency: writes.concurrency(&mut prober.random),
        });
        findings.at_sizes.sort_by_key(|at| at.request_bytes);
        [reads.throughput, writes].iter().for_each(|throughput| keep_curve(findings, throughput.curve()));
    }
    Ok(())
}

/// Whether a drive that tells what it programs moved data for the writes since then, though there was room: with a
/// policy that takes what is valid, a drive does so from the first erase on.
fn is_collected_for(prober: &Prober<'_>, before: (Option<u64>, ByteSize), padding: Option<f64>) -> bool {
    let Some((now, then)) = prober.programmed().zip(before.0) else { return false };
    let written = (prober.written().bytes() - before.1.bytes()).max(1);
    (now - then) as f64 / written as f64 > MOVED * padding.unwrap_or(f64::MAX / MOVED).max(1.0)
}

/// Flash bytes for each written one, beyond what small writes waste, from which on data is moved.
const MOVED: f64 = 1.03;

/// Keeps a curve; one of the same requests, from a run that this one goes on from, is replaced.
fn keep_curve(findings: &mut Findings, curve: ThroughputCurve) {
    let same =
        |other: &ThroughputCurve| (other.operation, other.request_bytes) == (curve.operation, curve.request_bytes);
    findings.curves.throughput.retain(|other| !same(other));
    findings.curves.throughput.push(curve);
}

const WRITES: &str = "random writes of one length over the region, one job, 1 to 256 in flight in random order, after \
                      the write buffer was filled, and where the whole drive may be worn, all of its flash was used";

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(levels: &[f64], spread: f64) -> Throughput {
        let batches =
            levels.iter().map(|level| [-1.0, -0.5, 0.0, 0.5, 1.0].map(|n| level + n * spread).to_vec()).collect();
        let depths = (0..levels.len() as u32).map(|n| 1 << n).collect();
        Throughput { operation: Operation::Write, length: ByteSize::kib(4), depths, batches }
    }

    #[test]
    fn writes_that_still_get_faster_are_taken_at_the_largest_depth() {
        assert_eq!(writes(&[1000.0, 1900.0, 3000.0, 3300.0], 30.0).plateau_starts(), 3);
    }

    #[test]
    fn the_luckiest_depth_of_a_plateau_is_not_taken_for_all_of_it() {
        let lucky = writes(&[1000.0, 3000.0, 3100.0, 3700.0, 2900.0], 600.0);
        assert_eq!(lucky.plateau_starts(), 1);
        assert!((2900.0..3200.0).contains(&lucky.plateau()), "{}", lucky.plateau());
    }
}
