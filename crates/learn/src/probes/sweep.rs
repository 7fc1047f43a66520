//! A sweep of reads: one length, the start moved in steps from random aligned bases, all in random order.
//!
//! ```text
//!   samples of each start ──▶ levels ──▶ the best period ──▶ its effect, and whether chance does as well
//!                               └ less what the pages themselves cost, where pages have several speeds
//! ```
//!
//! A sweep tells by which level it repeats best, and whether it would have shown the smallest effect that counts. What
//! is read from it is the business of the probes: chunk and hot locations, flash page.

use flashwise_block::{ByteSize, Progress};
use flashwise_profile::{HotLocation, LocationCurve};

use crate::LearnError;
use crate::prober::Prober;
use crate::stats::{Samples, best_period, explained, fold, median, period_test};

/// A family of reads: one length, starts at all multiples of `step` below `window`.
#[derive(Clone, Copy)]
pub(super) struct Sweep {
    pub(super) read: ByteSize,
    pub(super) step: ByteSize,
    pub(super) window: ByteSize,
    /// Length after which places of the drive are taken for the same. Bases are multiples of a mebibyte: of that, only
    /// what divides it repeats in the window itself.
    pub(super) turn: ByteSize,
    pub(super) reads_a_start: usize,
    /// A period counts only if its best and worst phase differ by this share of the latency.
    pub(super) smallest_effect: f64,
}

impl Sweep {
    fn starts(&self) -> usize {
        (self.window / self.step) as usize
    }

    /// Places that are told apart.
    pub(super) fn places(&self) -> usize {
        (self.turn / self.step) as usize
    }
}

/// The sweep of reads of several blocks.
pub(super) const fn coarse(read: ByteSize) -> Sweep {
    let window = ByteSize::mib(1);
    Sweep { read, step: ByteSize::kib(4), window, turn: window, reads_a_start: 40, smallest_effect: 0.02 }
}

/// The same for chunks that need not repeat in a mebibyte.
pub(super) fn coarse_of_chunk(chunk: ByteSize, read: ByteSize) -> Sweep {
    let sweep = coarse(read);
    Sweep { turn: turn_of_period(chunk, sweep.window), ..sweep }
}

/// The longest turn of a period within a window: the period, doubled as often as it fits.
pub(super) fn turn_of_period(period: ByteSize, window: ByteSize) -> ByteSize {
    let doublings = (window / period).max(1).ilog2();
    period * (1 << doublings)
}

/// The sweep of reads of one block, start moved logical block by logical block.
pub(super) fn fine(logical_block: ByteSize) -> Sweep {
    let (read, window) = (ByteSize::kib(4).max(logical_block), logical_block * 128);
    Sweep { read, step: logical_block, window, turn: window, reads_a_start: 100, smallest_effect: 0.005 }
}

/// Chunks this long show in reads of whole blocks of 4 KiB.
pub(super) const SHORTEST_CHUNK: u64 = 4096;

/// One read of a sweep.
#[derive(Clone, Copy, Debug)]
struct Read {
    /// Where it started on the drive, in steps.
    at: u64,
    latency_ns: u64,
}

/// How much the place matters.
#[derive(Clone, Copy)]
pub(super) struct Effect {
    /// Share of the latency.
    pub(super) share: f64,
    /// Probability that chance does as well.
    pub(super) p: f64,
}

/// What stands for the samples of one start. No one of them shows a period on every drive: where pages of several
/// speeds are mixed, a median takes now one and now the other, and the fastest of them tell most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Midmean,
    Median,
    Fastest,
}

impl Level {
    pub(super) const ALL: [Self; 3] = [Self::Midmean, Self::Median, Self::Fastest];

    pub(super) fn of(self, samples: &Samples) -> f64 {
        match self {
            Self::Midmean => samples.midmean(),
            Self::Median => samples.median(),
            Self::Fastest => samples.quantile(0.1),
        }
    }

    pub(super) fn of_all(self, points: &[Samples]) -> Vec<f64> {
        points.iter().map(|samples| self.of(samples)).collect()
    }
}

/// One way to look at the samples of a sweep: by a level, with what the pages themselves cost taken off, or not.
struct Way {
    level: Level,
    own: Vec<f64>,
    /// The best period, and how much of the variance it explains.
    period: usize,
    explains: f64,
}

impl Way {
    /// Whether this way, without what the pages cost, tells more than one with it. Two pages on one channel take less
    /// than what both add, so what pages cost is only taken off where it must be: where what is left repeats much
    /// better, or where it repeats at all, and more often, and the period before was one of single reads as well.
    fn is_better(&self, with: &Self, single: &Swept) -> bool {
        let of_pages = explained(&single.levels(), with.period.min(single.points.len() / 2).max(1)) >= OF_PAGES_SHARE;
        self.explains > with.explains + CLEARER_SHARE
            || (of_pages && self.explains >= REPEATS_SHARE && self.period < with.period)
    }
}

/// Share of the variance of single reads that a period explains, from which on it is a period of pages: single reads
/// are on one channel each, so that nothing else makes them repeat.
pub(super) const OF_PAGES_SHARE: f64 = 0.3;

/// Share of the variance that a period must explain of a curve without what its pages cost, where that period is
/// shorter.
const REPEATS_SHARE: f64 = 0.5;

/// Share of the variance by which a period must explain more of a curve without what its pages cost than with it.
const CLEARER_SHARE: f64 = 0.1;

/// Share of the median within which eight in ten reads of pages of one speed lie; it allows for a standard deviation
/// of a tenth of it.
const SEVERAL_SPEEDS_SHARE: f64 = 0.25;

/// Share of their latency by which the slower ones of single reads take longer than the faster ones, where pages
/// differ in speed; less is noise of the levels.
pub(super) const PAGES_DIFFER_SHARE: f64 = 0.08;

/// The samples of one sweep.
pub(super) struct Swept {
    pub(super) sweep: Sweep,
    /// Every read, in the order in which they were made.
    reads: Vec<Read>,
    /// The reads of each place.
    pub(super) points: Vec<Samples>,
    /// The level by which the curve repeats best.
    pub(super) level: Level,
    /// What the pages themselves add at each start, by that level, ns.
    pub(super) own: Vec<f64>,
}

impl Swept {
    /// `single` is the sweep of reads of single blocks of the same starts: where these depend on the place, it is
    /// because pages differ in speed, and not because of how they are beside each other.
    fn new(sweep: Sweep, reads: Vec<Read>, single: Option<&Self>) -> Self {
        let mut samples = vec![Vec::new(); sweep.places()];
        for read in &reads {
            samples[(read.at % sweep.places() as u64) as usize].push(read.latency_ns);
        }
        let points: Vec<Samples> = samples.into_iter().map(Samples::new).collect();
        let with = |level: Level, own: Vec<f64>| {
            let curve: Vec<f64> = std::iter::zip(level.of_all(&points), &own).map(|(y, own)| y - own).collect();
            let (period, explains) = best_period(&curve);
            Way { level, own, period, explains }
        };
        let best = |of: &dyn Fn(Level) -> Vec<f64>| {
            Level::ALL.into_iter().map(|level| with(level, of(level))).max_by(|a, b| a.explains.total_cmp(&b.explains))
        };
        let nothing = |_| vec![0.0; points.len()];
        let as_they_are = best(&nothing);
        let without_pages = single.and_then(|single| best(&|level| single.costs_of_pages(sweep, level)));
        let takes_off = match (&as_they_are, &without_pages, single) {
            (Some(with), Some(without), Some(single)) => without.is_better(with, single),
            _ => false,
        };
        let way = if takes_off { without_pages } else { as_they_are };
        let nothing = || with(Level::Midmean, vec![0.0; points.len()]);
        let Way { level, own, .. } = way.unwrap_or_else(nothing);
        Self { sweep, reads, points, level, own }
    }

    /// The same reads, with places a `turn` apart taken for the same.
    pub(super) fn turned(&self, turn: ByteSize, single: Option<&Self>) -> Self {
        Self::new(Sweep { turn, ..self.sweep }, self.reads.clone(), single)
    }

    /// Of latencies by where reads started on the drive, in steps.
    #[cfg(test)]
    pub(super) fn of_starts(sweep: Sweep, samples: Vec<Vec<u64>>, single: Option<&Self>) -> Self {
        let reads = samples.into_iter().enumerate().flat_map(|(at, latencies)| {
            latencies.into_iter().map(move |latency_ns| Read { at: at as u64, latency_ns })
        });
        Self::new(sweep, reads.collect(), single)
    }

    pub(super) fn levels(&self) -> Vec<f64> {
        self.levels_of(&self.points)
    }

    /// Levels of these points, or of what was drawn from them.
    pub(super) fn levels_of(&self, points: &[Samples]) -> Vec<f64> {
        std::iter::zip(self.level.of_all(points), &self.own).map(|(y, own)| y - own).collect()
    }

    /// What the slowest page that a read of another sweep touches adds at each start, ns; nothing where single reads
    /// are alike.
    fn costs_of_pages(&self, other: Sweep, level: Level) -> Vec<f64> {
        let levels = level.of_all(&self.points);
        let (steps, n) = ((other.read / self.sweep.step) as usize, levels.len());
        let (low, high) = ends_of_most(&levels);
        if other.step != self.sweep.step || other.turn != self.sweep.turn || high < low * (1.0 + PAGES_DIFFER_SHARE) {
            return vec![0.0; other.places()];
        }
        let slowest = |from: usize| levels[from..(from + steps).min(n)].iter().copied().fold(low, f64::max) - low;
        (0..n).map(slowest).collect()
    }

    /// Whether some reads take as long as a fast page and others as long as a slow one: of those from one start, or
    /// where rows of pages repeat with the starts, of one start and another.
    pub(super) fn has_several_speeds(&self) -> bool {
        let spread = |samples: &Samples| (samples.quantile(0.9) - samples.quantile(0.1)) / samples.median().max(1.0);
        let (low, high) = ends_of_most(&self.levels());
        median(self.points.iter().map(spread).collect()) > SEVERAL_SPEEDS_SHARE
            || high >= low * (1.0 + PAGES_DIFFER_SHARE)
    }

    pub(super) fn curve(&self) -> LocationCurve {
        LocationCurve {
            read_bytes: self.sweep.read.bytes(),
            step_bytes: self.sweep.step.bytes(),
            latency_ns: self.points.iter().map(Samples::interval).collect(),
        }
    }

    /// Difference of the best and the worst phase of the curve's best period, as a share of the latency, with the
    /// probability that chance does as well; `None` where that is likely, or the difference is too small to matter.
    pub(super) fn effect(&self, random: &mut rand_pcg::Pcg64Mcg) -> Option<Effect> {
        self.effect_from(self.sweep.smallest_effect, random)
    }

    pub(super) fn effect_from(&self, smallest: f64, random: &mut rand_pcg::Pcg64Mcg) -> Option<Effect> {
        let levels = self.levels();
        let (period, _) = best_period(&levels);
        let share = relative_range(&fold(&levels, period));
        // One of several levels shows it by chance more often.
        let p = (period_test(&levels, random)? * Level::ALL.len() as f64).min(1.0);
        (share >= smallest).then_some(Effect { share, p })
    }

    /// By which share of its latency a place is faster than the mean, by each level: the fastest reads come last, since
    /// what is written in another order also meets other pages.
    pub(super) fn leads_of(&self, hot: HotLocation) -> Vec<(f64, Level)> {
        let step = self.sweep.step.bytes();
        let (period, phase) = ((hot.period_bytes / step) as usize, (hot.offset_bytes / step) as usize);
        if !(1..=self.points.len()).contains(&period) {
            return Vec::new();
        }
        let levels = |level: Level| if level == self.level { self.levels() } else { level.of_all(&self.points) };
        Level::ALL.into_iter().map(|level| (lead(&levels(level), period, phase), level)).collect()
    }

    /// The same sweep taken again, with so many times as many reads.
    pub(super) fn with_more_reads(
        &self,
        times: usize,
        prober: &mut Prober<'_>,
        single: Option<&Self>,
        progress: &mut dyn Progress,
    ) -> Result<Self, LearnError> {
        let sweep = Sweep { reads_a_start: self.sweep.reads_a_start * times, ..self.sweep };
        measure(prober, sweep, single, &format!("location profile, {}, more reads", sweep.read), progress)
    }

    /// Whether a period of the smallest effect that counts would have stood out from the noise.
    pub(super) fn would_show(&self) -> bool {
        let share = self.sweep.smallest_effect;
        // A phase is seen in at least four cycles, and in most cases in many. The fastest may be what a cache answers.
        [Level::Midmean, Level::Median].into_iter().any(|level| {
            let levels = level.of_all(&self.points);
            scatter(&levels, best_period(&levels).0) / 2.0 < share
        })
    }
}

/// The lowest and the highest of some levels, without a tenth at either end.
fn ends_of_most(levels: &[f64]) -> (f64, f64) {
    let mut sorted = levels.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 { (0.0, 0.0) } else { (sorted[n / 10], sorted[n - 1 - n / 10]) }
}

/// How far noise moves a level, as a share of it: from levels a period apart, which differ by nothing else but where
/// the speed of pages changes.
pub(super) fn scatter(levels: &[f64], period: usize) -> f64 {
    let apart = std::iter::zip(levels, levels.get(period..).unwrap_or_default()).map(|(a, b)| (a - b).abs());
    // Of normal noise the median deviation is 0.6745 of the standard deviation; differences have twice the variance.
    median(apart.collect()) / 0.6745 / std::f64::consts::SQRT_2 / median(levels.to_vec()).max(1.0)
}

fn relative_range(folded: &[f64]) -> f64 {
    let (low, high) = ends(folded);
    (high - low) / low.max(1.0)
}

pub(super) fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::MAX, f64::MIN), |(low, high), &y| (low.min(y), high.max(y)))
}

/// Measures a sweep, all its reads in random order.
pub(super) fn measure(
    prober: &mut Prober<'_>,
    sweep: Sweep,
    single: Option<&Swept>,
    stage: &str,
    progress: &mut dyn Progress,
) -> Result<Swept, LearnError> {
    let starts = sweep.starts();
    let visits = prober.shuffled((0..starts).flat_map(|start| std::iter::repeat_n(start, sweep.reads_a_start)));
    let mut reads = Vec::with_capacity(visits.len());
    for (n, &start) in visits.iter().enumerate() {
        if n.is_multiple_of(200) {
            prober.advance(progress, stage, n as f64 / visits.len() as f64)?;
        }
        let (base, on_drive) = prober.random_section_of_drive(sweep.window + sweep.read);
        let offset = sweep.step * start as u64;
        let latency_ns = prober.read(base + offset, sweep.read)?.0;
        reads.push(Read { at: (on_drive + offset) / sweep.step, latency_ns });
    }
    Ok(Swept::new(sweep, reads, single))
}

/// Standard deviation of the reads from one start, as most starts have it, ns.
pub(super) fn usual_deviation(swept: &Swept) -> f64 {
    let deviation = |samples: &Samples| (samples.quantile(0.75) - samples.quantile(0.25)) / 1.349;
    median(swept.points.iter().map(deviation).collect())
}

/// How many times as many reads are taken where a figure stays open.
pub(super) const MORE_READS: usize = 4;

/// By which share of its latency a phase of a curve is faster than the mean of all.
pub(super) fn lead(levels: &[f64], period: usize, phase: usize) -> f64 {
    let folded = fold(levels, period);
    let mean = folded.iter().sum::<f64>() / folded.len().max(1) as f64;
    folded.get(phase).map_or(0.0, |&hot| mean / hot - 1.0)
}
