//! What has been found so far: figures, the curves they came from, and how each came about.

use flashwise_block::ByteSize;
use flashwise_profile::{AtSize, Curves, Evidence, Figure, Parameters, ProbeCurve, ProbePoint, Verdict};

use crate::probes::sweep::Level;
use crate::probes::throughput::Reads;
use crate::probes::units::Conflicts;
use crate::stats::holm;
use crate::stats::{interval95, median};

/// Family-wise probability that any of the features told as present is chance.
const CHANCE_OF_ANY: f64 = 0.05;

/// A profile in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) parameters: Parameters,
    pub(crate) at_sizes: Vec<AtSize>,
    /// Sizes that the step under way is asked for.
    pub(crate) sizes_to_ask: Vec<ByteSize>,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) curves: Curves,
    /// How much the place of a read matters, as a share of its latency, where it does.
    pub(crate) location_effect: Option<f64>,
    /// By which share of its latency the hot location is faster than the mean of all, by each level of it.
    pub(crate) hot_leads: Vec<(f64, Level)>,
    /// Saturated 4 KiB writes a second of the fresh drive.
    pub(crate) saturated_writes_per_s: Option<f64>,
    /// Reads at 4 and at 8 KiB.
    pub(crate) reads: Vec<Reads>,
    /// Flash bytes that a drive programs for each host byte of random 4 KiB writes when nothing is collected.
    pub(crate) padding: Option<f64>,
    /// Whether data was moved for writes that should have shown the fresh drive.
    pub(crate) fresh_writes_moved: bool,
    /// Whether the first fill of the drive got slower where it began to erase.
    pub(crate) slc_cache_ends_with_first_erases: bool,
    /// Whether the drive told, of its first fill in order, that much of it was programmed twice, where no cache was found.
    pub(crate) writes_in_order_are_moved: bool,
    /// What pairs of reads have shown.
    pub(crate) conflicts: Option<Conflicts>,
    /// Figures that say that something is there, with the probability that it is chance.
    chances: Vec<(&'static str, f64)>,
}

/// How a figure came about, in the making.
pub(crate) struct Because<'a> {
    /// What was done to the drive.
    pub(crate) recipe: &'a str,
    /// What was read off.
    pub(crate) reason: String,
    /// The curve among [`Curves::probes`].
    pub(crate) curve: Option<&'a str>,
}

impl Findings {
    /// Notes how the figure `key` came about; what was noted about it before is replaced.
    pub(crate) fn because(&mut self, key: &str, because: Because<'_>) {
        self.evidence.retain(|evidence| evidence.figure != key);
        self.evidence.push(Evidence {
            figure: key.to_owned(),
            recipe: because.recipe.to_owned(),
            reason: because.reason,
            left_out: false,
            curve: because.curve.map(str::to_owned),
        });
    }

    /// Adds to what was read off a figure.
    pub(crate) fn add_to_reason(&mut self, key: &str, more: &str) {
        if let Some(evidence) = self.evidence.iter_mut().find(|evidence| evidence.figure == key) {
            evidence.reason.push_str("; ");
            evidence.reason.push_str(more);
        }
    }

    /// Notes that nobody looked for a figure, and why; `unasked` if that was not for a budget that somebody gave.
    pub(crate) fn leave_out(&mut self, key: &str, probe: &str, why: &str, unasked: bool) {
        self.because(key, Because { recipe: probe, reason: why.to_owned(), curve: None });
        if let Some(evidence) = self.evidence.last_mut() {
            evidence.left_out = unasked;
        }
    }

    /// Notes that a feature was told as present by a test in which chance does as well with probability `p`.
    pub(crate) fn present_unless_chance(&mut self, key: &'static str, p: f64) {
        self.chances.push((key, p));
    }

    /// Keeps a curve; one of the same name is replaced.
    pub(crate) fn keep(&mut self, curve: ProbeCurve) {
        self.curves.probes.retain(|other| other.name != curve.name);
        self.curves.probes.push(curve);
    }

    /// Holm's correction over all features that were told as present: one that fails it is no longer certain.
    pub(crate) fn correct_for_many_tests(&mut self) {
        let probabilities: Vec<f64> = self.chances.iter().map(|(_, p)| *p).collect();
        let stands = holm::stands(&probabilities, CHANCE_OF_ANY);
        let doubtful: Vec<&str> =
            self.chances.iter().zip(stands).filter_map(|((key, _), stands)| (!stands).then_some(*key)).collect();
        for key in doubtful {
            self.parameters.doubt(key);
            self.add_to_reason(key, "not certain after correction for the number of tests");
        }
    }
}

/// A point of a curve from its samples.
pub(crate) fn point(x: f64, samples: &[f64]) -> ProbePoint {
    let (low, high) = median_interval(samples);
    ProbePoint { x, y: median(samples.to_vec()), low, high }
}

/// 95 % interval of a median from order statistics: ranks n/2 ± 1.96·√n/2.
pub(crate) fn median_interval(samples: &[f64]) -> (f64, f64) {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 {
        return (0.0, 0.0);
    }
    let half_width = 1.96 * (n as f64).sqrt() / 2.0;
    let low = (n as f64 / 2.0 - half_width).floor().max(0.0) as usize;
    let high = ((n as f64 / 2.0 + half_width).ceil() as usize).min(n - 1);
    (sorted[low], sorted[high])
}

/// What every interval of a graded figure is widened by on either side, as a share of the value: resampling knows the
/// noise of the samples, and not that bursts, batches and queues of another length would have shown a little less or
/// more. Simulated drives that were measured in two ways differ by up to this.
pub(crate) const OTHER_WAYS: f64 = 0.04;

/// A figure from the same estimate on resampled data: certain where these lie within `tolerance` of the value.
pub(crate) fn measured(value: f64, again: Vec<f64>, tolerance: f64) -> Figure<f64> {
    measured_by_ways(value, again, tolerance, OTHER_WAYS)
}

/// The same of a figure that other ways to measure it move by up to a share of it.
pub(crate) fn measured_by_ways(value: f64, again: Vec<f64>, tolerance: f64, other_ways: f64) -> Figure<f64> {
    let (low, high) = interval95(again);
    let (low, high) = (low.min(value), high.max(value));
    let figure = narrow_enough(value, low, high, tolerance);
    let more = other_ways * value.abs();
    Figure { low: Some(low - more), high: Some(high + more), ..figure }
}

/// An interval with that on either side.
pub(crate) fn widened(value: f64, low: f64, high: f64) -> (f64, f64) {
    (low - OTHER_WAYS * value.abs(), high + OTHER_WAYS * value.abs())
}

fn narrow_enough(value: f64, low: f64, high: f64, tolerance: f64) -> Figure<f64> {
    let narrow = value > 0.0 && high - value <= tolerance * value && value - low <= tolerance * value;
    if narrow { Figure::certain(value, low, high) } else { Figure::inconclusive(value, low, high) }
}

/// The same figure in whole units.
pub(crate) fn whole(figure: Figure<f64>) -> Figure<u64> {
    let round = |x: f64| x.round().max(0.0) as u64;
    Figure {
        value: figure.value.map(round),
        low: figure.low.map(|x| x.floor().max(0.0) as u64),
        high: figure.high.map(|x| x.ceil().max(0.0) as u64),
        verdict: figure.verdict,
    }
}

/// Yes or no, settled.
pub(crate) fn settled(flag: bool) -> Figure<bool> {
    Figure { value: Some(flag), low: Some(flag), high: Some(flag), verdict: Verdict::Certain }
}
