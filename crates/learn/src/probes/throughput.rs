//! How many requests a drive serves at once, and how much dearer a write is than a read.
//!
//! Random requests of one length are kept in flight by one job, at growing depths in random order, several times over.
//! Two segments are fitted to the medians ([`knee`]): k is where they meet, the *plateau* is the flat one, and α is the
//! plateau of reads over that of writes. Before each batch of writes as many bytes are written as the write buffer
//! swallows, and more, so that the flash is measured and not the buffer. Where the drive as a whole may be written over
//! and over, all of its flash is used once before, so that writes cost what they cost on a drive in use: a program, and
//! their share of an erase.
//!
//! More batches are added until the intervals are narrow, or there are enough.
//!
//! Source: Papon and Athanassoulis, DaMoN 2021 (fio, more and more jobs at depth 1; the knee read from the plot). Here
//! one job and growing depth; the fit is in for the eye.

use std::f64::consts::SQRT_2;

use flashwise_block::{ByteSize, Clock, Operation, Progress};
use flashwise_profile::{AtSize, Figure, ThroughputCurve, ThroughputPoint, Verdict};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::draft::{Because, ProfileDraft, key};
use crate::evidence::Evidence;
use crate::prober::{Prober, anywhere};
use crate::stats::graded::{INTERVAL_SHARE_MAX, OTHER_WAYS_SHARE, both, measured, measured_by_ways, whole};
use crate::stats::knee::{self, Knee};
use crate::stats::{interval95, joined_rate, median};
use crate::step::Step;
use crate::verdict::{Doubt, Wording, applying, doubt};
use crate::{Effort, LearnError};

use super::buffer::WriteBuffer;
use super::latency;
use super::small_writes::Padding;

pub(crate) const READS: Step =
    Step::new("reads", &["read_concurrency_4k", "read_concurrency_8k"]).layout().reads_alone();
pub(crate) const WRITES: Step =
    Step::new("writes", &["asymmetry_4k", "write_concurrency_4k", "asymmetry_8k", "write_concurrency_8k"]).layout();
pub(crate) const OTHER_SIZES: Step = Step { at_sizes: true, ..Step::new("other sizes", &[]).layout() };

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
/// Resampled knees.
const RESAMPLES: usize = 200;
/// The share of its depth within which the interval of a certain knee lies, and by which it is widened: another way to
/// fit it, or depths in between, find it a little elsewhere.
const KNEE_SHARE_MAX: f64 = 0.08;

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

    /// The median of reads. Writes pay for erases, which come in bursts that a median would not see, or see alone:
    /// their batches are joined.
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

    /// Saturated requests a second, of the levels of all depths: of reads the largest. The levels of writes vary with
    /// the erases that fall to them, so that the largest is the luckiest: those from the `first` depth on are joined.
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
            if joined_rate(here) < joined_rate(&behind) - SLOWER_STANDARD_ERRORS * noise {
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
        let figure = measured_by_ways(knee.depth(), again.collect(), KNEE_SHARE_MAX, KNEE_SHARE_MAX);
        let (low, high) = (figure.low.unwrap_or(0.0).floor().max(1.0), figure.high.unwrap_or(0.0).ceil());
        let (near, far) = self.rivals().unwrap_or((knee.depth(), knee.depth()));
        let (low, high) = (low.min(near.floor()), high.max(far.ceil()));
        let figure = Figure { low: Some(low), high: Some(high), ..figure };
        if high - low <= 1.0 {
            // A knee of two or three is a whole number within less than a tenth of itself.
            return whole(Figure { verdict: Verdict::Certain, ..figure });
        }
        let evidence = KneeEvidence { depth: knee.depth(), near, far };
        whole(applying(&CONCURRENCY_DOUBTS, &evidence).judge(figure))
    }

    /// Saturated requests a second.
    pub(crate) fn plateau(&self) -> f64 {
        self.saturated(&self.levels(), self.plateau_starts())
    }

    fn plateau_figure(&self, random: &mut Pcg64Mcg) -> Figure<f64> {
        let first = self.plateau_starts();
        let again = (0..RESAMPLES).map(|_| self.saturated(&self.resampled(random), first)).collect();
        measured(self.plateau(), again, INTERVAL_SHARE_MAX / 2.0)
    }
}

/// Standard errors by which a depth is slower than those behind it, if it is no part of their plateau.
const SLOWER_STANDARD_ERRORS: f64 = 3.0;

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
    measured_by_ways(value, again, INTERVAL_SHARE_MAX, OTHER_WAYS_SHARE * SQRT_2)
}

/// What the verdict of a concurrency rests on, beside its interval on resampled batches.
struct KneeEvidence {
    /// The depth at which the two fitted segments meet.
    depth: f64,
    /// The nearest and the farthest depth at which segments meet that fit no worse.
    near: f64,
    far: f64,
}

/// Why a concurrency may be inconclusive, beside an interval wider than [`KNEE_SHARE_MAX`].
const CONCURRENCY_DOUBTS: [Doubt<KneeEvidence>; 2] = [
    doubt("an earlier knee fits no worse", Wording::Nothing, |knee| knee.near < knee.depth * (1.0 - KNEE_SHARE_MAX)),
    doubt("a later knee fits no worse", Wording::Nothing, |knee| knee.far > knee.depth * (1.0 + KNEE_SHARE_MAX)),
];

const LENGTHS: [ByteSize; 2] = [ByteSize::kib(4), ByteSize::kib(8)];
const KNEE: &str = "the depth at which the two fitted segments meet";

/// k_r at 4 and 8 KiB.
pub(crate) fn probe_reads(
    prober: &mut Prober<'_>,
    sizes: &[ByteSize],
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<Reads, LearnError> {
    let mut reads = Reads::default();
    reads.complete(prober, sizes, progress)?;
    let recipe = "random reads of one length over the filled region, one job, 1 to 256 in flight, depths in random \
                  order";
    for (length, key) in std::iter::zip(LENGTHS, [key!(read_concurrency_4k), key!(read_concurrency_8k)]) {
        if let Some(reads) = reads.of(length) {
            let concurrency = reads.throughput.concurrency(&mut prober.random);
            draft.settle(key, concurrency, Because { recipe, reason: KNEE.to_owned(), curve: None });
        }
    }
    reads.0.iter().for_each(|reads| keep_curve(draft, reads.throughput.curve()));
    Ok(reads)
}

/// Reads of one length over a region that was written in order.
#[derive(Clone, Debug)]
pub(crate) struct ReadsOfLength {
    length: ByteSize,
    pub(crate) throughput: Throughput,
    /// Latencies, one at a time, ns.
    pub(crate) latencies: Vec<f64>,
}

impl ReadsOfLength {
    fn measure(prober: &mut Prober<'_>, length: ByteSize, progress: &mut dyn Progress) -> Result<Self, LearnError> {
        prober.fill_region(progress)?;
        let throughput = measure(prober, Operation::Read, length, ByteSize(0), progress)?;
        let latencies = latency::read_latencies(prober, prober.region(), length, progress)?;
        Ok(Self { length, throughput, latencies })
    }
}

/// Evidence of reads, length by length; none where an earlier run made them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads(Vec<ReadsOfLength>);

impl Evidence for Reads {
    fn recorded(_: &ProfileDraft) -> Self {
        Self::default()
    }
}

impl Reads {
    /// Those of a length.
    pub(crate) fn of(&self, length: ByteSize) -> Option<&ReadsOfLength> {
        self.0.iter().find(|reads| reads.length == length)
    }

    /// Measures reads of 4 and 8 KiB and of other sizes, unless that was done.
    pub(crate) fn complete(
        &mut self,
        prober: &mut Prober<'_>,
        sizes: &[ByteSize],
        progress: &mut dyn Progress,
    ) -> Result<(), LearnError> {
        if !self.0.is_empty() {
            return Ok(());
        }
        let others = sizes.iter().copied().filter(|size| !LENGTHS.contains(size));
        for length in LENGTHS.into_iter().chain(others) {
            self.0.push(ReadsOfLength::measure(prober, length, progress)?);
        }
        Ok(())
    }
}

/// Evidence of writes to a drive on which no garbage collection ran yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreshWrites {
    /// Saturated 4 KiB writes a second.
    pub(crate) saturated_per_s: Option<f64>,
    /// Whether the drive moved data for them all the same.
    pub(crate) are_moved_for: bool,
}

impl Evidence for FreshWrites {
    fn recorded(draft: &ProfileDraft) -> Self {
        let is_writes = |curve: &&ThroughputCurve| curve.operation.writes() && curve.request_bytes == 4096;
        let curve = draft.curves.throughput.iter().find(is_writes);
        let iops = curve.into_iter().flat_map(|curve| &curve.points).map(|point| point.iops);
        Self { saturated_per_s: iops.max_by(f64::total_cmp), are_moved_for: false }
    }
}

/// What the verdict of α rests on, beside its interval on resampled batches.
struct AsymmetryEvidence {
    /// Whether the drive moved data for the writes.
    is_moved_for: bool,
}

/// Why α may be inconclusive, beside an interval wider than [`INTERVAL_SHARE_MAX`].
const ASYMMETRY_DOUBTS: [Doubt<AsymmetryEvidence>; 1] = [doubt(
    "garbage collection ran",
    Wording::Then(", but garbage collection ran: the drive has no fresh state"),
    |evidence| evidence.is_moved_for,
)];

/// α and k_w at 4 and 8 KiB.
pub(crate) fn probe_writes(
    prober: &mut Prober<'_>,
    (reads, buffer, padding): (&Reads, WriteBuffer, Padding),
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<FreshWrites, LearnError> {
    if prober.may_wear {
        prober.use_all_flash(progress)?;
    }
    let settle = buffer.settling(prober.effort);
    let mut fresh = FreshWrites { saturated_per_s: None, are_moved_for: false };
    let keys = [(key!(asymmetry_4k), key!(write_concurrency_4k)), (key!(asymmetry_8k), key!(write_concurrency_8k))];
    for (length, (asymmetry_key, concurrency_key)) in std::iter::zip(LENGTHS, keys) {
        let Some(reads) = reads.of(length) else { continue };
        let before = (prober.programmed(), prober.written());
        let writes = measure(prober, Operation::Write, length, settle, progress)?;
        let evidence = AsymmetryEvidence { is_moved_for: is_moved_for(prober, before, padding) };
        let doubts = applying(&ASYMMETRY_DOUBTS, &evidence);
        let mut ratio = doubts.judge(asymmetry(&reads.throughput, &writes, &mut prober.random));
        if prober.clock() == Clock::Wall {
            // Neighbours of a real drive come and go: what reads reach afterwards is in the interval as well.
            prober.fill_region(progress)?;
            let reads = measure(prober, Operation::Read, length, ByteSize(0), progress)?;
            ratio = both(ratio, asymmetry(&reads, &writes, &mut prober.random));
        }
        let concurrency = writes.concurrency(&mut prober.random);
        keep_curve(draft, writes.curve());
        if length == LENGTHS[0] {
            fresh.saturated_per_s = Some(writes.plateau());
        }
        fresh.are_moved_for |= evidence.is_moved_for;
        let reason = doubts.reason("saturated read IOPS ÷ saturated write IOPS");
        draft.settle(asymmetry_key, ratio, Because { recipe: WRITES_RECIPE, reason, curve: None });
        let because = Because { recipe: WRITES_RECIPE, reason: KNEE.to_owned(), curve: None };
        draft.settle(concurrency_key, concurrency, because);
    }
    Ok(fresh)
}

/// α and k at the other sizes that were requested, as at 4 and 8 KiB.
pub(crate) fn probe_other_sizes(
    prober: &mut Prober<'_>,
    (reads, buffer): (&Reads, WriteBuffer),
    sizes: &[ByteSize],
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let settle = buffer.settling(prober.effort);
    for &length in sizes {
        let reads = match reads.of(length) {
            Some(reads) => reads.clone(),
            None => ReadsOfLength::measure(prober, length, progress)?,
        };
        let writes = measure(prober, Operation::Write, length, settle, progress)?;
        let writes_ns =
            latency::write_latencies(prober, prober.region(), length, (settle, latency::TURNOVERS_MAX), progress)?;
        let mut saturated = asymmetry(&reads.throughput, &writes, &mut prober.random);
        let mut single = latency::ratio(&writes_ns, &reads.latencies, &mut prober.random);
        if prober.clock() == Clock::Wall {
            // Neighbours of a real drive come and go: what reads reach afterwards is in the intervals as well.
            let again = ReadsOfLength::measure(prober, length, progress)?;
            saturated = both(saturated, asymmetry(&again.throughput, &writes, &mut prober.random));
            single = both(single, latency::ratio(&writes_ns, &again.latencies, &mut prober.random));
        }
        draft.at_sizes.push(AtSize {
            request_bytes: length.bytes(),
            asymmetry: saturated,
            latency_asymmetry: single,
            read_concurrency: reads.throughput.concurrency(&mut prober.random),
            write_concurrency: writes.concurrency(&mut prober.random),
        });
        draft.at_sizes.sort_by_key(|at| at.request_bytes);
        [reads.throughput, writes].iter().for_each(|throughput| keep_curve(draft, throughput.curve()));
    }
    Ok(())
}

/// Whether a drive that counts what it programs moved data for the writes since then, though there was space: with a
/// victim policy that takes what is valid, a drive does so from the first erase on.
fn is_moved_for(prober: &Prober<'_>, before: (Option<u64>, ByteSize), padding: Padding) -> bool {
    let Some((now, then)) = prober.programmed().zip(before.0) else { return false };
    let written = (prober.written().bytes() - before.1.bytes()).max(1);
    (now - then) as f64 / written as f64 > MOVED_FACTOR * padding.0.unwrap_or(f64::MAX / MOVED_FACTOR).max(1.0)
}

/// Factor on what small writes program on a fresh drive from which on data is moved for them.
const MOVED_FACTOR: f64 = 1.03;

/// Keeps a curve; one of the same requests, from a run that this one continues from, is replaced.
fn keep_curve(draft: &mut ProfileDraft, curve: ThroughputCurve) {
    let same =
        |other: &ThroughputCurve| (other.operation, other.request_bytes) == (curve.operation, curve.request_bytes);
    draft.curves.throughput.retain(|other| !same(other));
    draft.curves.throughput.push(curve);
}

const WRITES_RECIPE: &str = "random writes of one length over the region, one job, 1 to 256 in flight, depths in \
                             random order, with the write buffer filled (and, with --whole-drive, all flash used) \
                             before";

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
