//! What was learned about a drive beside what it is built of.
//!
//! | figure | right where |
//! |---|---|
//! | sizes of the layout, counts of units and volumes, yes and no | equal to the truth |
//! | hot locations | the period equal to the truth, and reads there as fast as from the fastest place |
//! | what has a graded size: ratios, times, speeds, knees, buffers, the over-provisioning | the truth within the interval, and the value within 10 % of it (a count: or one beside it) |
//! | something that the drive does not have | told as absent |
//!
//! A figure for which the drive has no defined truth is left out.

use flashwise_profile::{Card, DeviceProfile, Entry, Figure, HotLocation, Limits, Parameters, Quantity, Verdict};
use serde::Serialize;

/// Distance from the truth that is still right for graded figures, as a share of it.
const TOLERANCE_SHARE: f64 = 0.10;
/// Knees are whole numbers: one beside the truth is as near as they can tell.
const COUNT_TOLERANCE: f64 = 1.0;
/// Figures that are sizes of the layout or counts, and so either right or wrong.
const EXACT: [&str; 12] = [
    "write_unit_bytes",
    "stripe_bytes",
    "chunk_bytes",
    "page_bytes",
    "parallel_units",
    "internal_volumes",
    "internal_volume_bits",
    "superblock_bytes",
    "request_unit_bytes",
    "allocation_unit_bytes",
    "open_units_linear",
    "open_units_random",
];

/// One figure of the score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureScore {
    /// Key in the profile's `parameters`.
    pub figure: &'static str,
    /// The name for people.
    #[serde(skip)]
    pub title: &'static str,
    /// The two below, with their units.
    #[serde(skip)]
    pub quantities: (Option<Quantity>, Option<Quantity>),
    /// What the drive is built for; `None` where it has no such thing.
    pub truth: Option<serde_json::Value>,
    /// What was learned.
    pub value: Option<serde_json::Value>,
    /// How sure that was.
    pub verdict: Verdict,
    /// Whether the two agree; an inconclusive figure is right if its best guess is.
    pub correct: bool,
}

/// The score of one profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// Figure by figure; those without a defined truth are left out.
    pub figures: Vec<FigureScore>,
    /// Figures scored.
    pub scored: usize,
    /// Of those, right.
    pub correct: usize,
    /// Verdicts `certain` or `absent`.
    pub settled: usize,
    /// Of those, right.
    pub settled_correct: usize,
    /// Features that the drive does not have and that were told as certain.
    pub false_features: usize,
}

/// Holds a profile against the truth, whose figures are certain, absent, or (not defined) inconclusive.
pub fn score(profile: &DeviceProfile, truth: &Parameters) -> Score {
    of_entries(profile.parameters.entries(), truth.entries())
}

/// The same of the limits of a volume.
pub fn score_limits(profile: &DeviceProfile, truth: &Limits) -> Score {
    of_entries(profile.limits.entries(), truth.entries())
}

/// The same of a memory card.
pub fn score_card(profile: &DeviceProfile, truth: &Card) -> Score {
    of_entries(profile.card.entries(), truth.entries())
}

fn of_entries(learned: Vec<Entry>, truth: Vec<Entry>) -> Score {
    let pairs = std::iter::zip(learned, truth);
    let defined = pairs.filter(|(_, truth)| truth.figure.verdict != Verdict::Inconclusive);
    let figures: Vec<FigureScore> = defined.map(|(learned, truth)| score_figure(&learned, &truth.figure)).collect();
    let count = |which: &dyn Fn(&FigureScore) -> bool| figures.iter().filter(|figure| which(figure)).count();
    let is_settled = |figure: &FigureScore| figure.verdict != Verdict::Inconclusive;
    Score {
        scored: figures.len(),
        correct: count(&|figure| figure.correct),
        settled: count(&is_settled),
        settled_correct: count(&|figure| is_settled(figure) && figure.correct),
        false_features: count(&|figure| {
            figure.truth.is_none() && figure.verdict == Verdict::Certain && !figure.correct
        }),
        figures,
    }
}

fn score_figure(learned: &Entry, truth: &Figure<Quantity>) -> FigureScore {
    let (figure, truth_figure) = (&learned.figure, truth);
    let correct = match (truth.value.filter(|_| truth.verdict == Verdict::Certain), figure.value) {
        // What costs nothing is as good as absent.
        (Some(truth), None) => figure.verdict == Verdict::Absent && number(truth) == Some(0.0),
        (None, None) => figure.verdict == Verdict::Absent,
        (None, Some(value)) => figure.verdict != Verdict::Certain && number(value) == Some(0.0),
        (Some(Quantity::Location(truth)), Some(Quantity::Location(value))) => is_as_hot(value, truth, truth_figure),
        (Some(truth), Some(value)) if EXACT.contains(&learned.key) => truth == value,
        (Some(truth), Some(value)) => agrees(truth, value, figure),
    };
    let truth = truth.value.filter(|_| truth.verdict == Verdict::Certain);
    FigureScore {
        figure: learned.key,
        title: learned.title,
        quantities: (truth, figure.value),
        truth: truth.map(json),
        value: figure.value.map(json),
        verdict: figure.verdict,
        correct,
    }
}

/// Whether a place is among those around the truth's that are as fast; they may go over the end of the period.
fn is_as_hot(value: HotLocation, truth: HotLocation, figure: &Figure<Quantity>) -> bool {
    let offset = |end: Option<Quantity>| match end {
        Some(Quantity::Location(hot)) => hot.offset_bytes,
        _ => truth.offset_bytes,
    };
    let (low, high, at) = (offset(figure.low), offset(figure.high), value.offset_bytes);
    let inside = if low <= high { (low..=high).contains(&at) } else { at >= low || at <= high };
    value.period_bytes == truth.period_bytes && (inside || at == truth.offset_bytes)
}

fn agrees(truth: Quantity, value: Quantity, figure: &Figure<Quantity>) -> bool {
    let (Some(truth_number), Some(value_number)) = (number(truth), number(value)) else { return truth == value };
    let end = |quantity: Option<Quantity>| quantity.and_then(number).unwrap_or(value_number);
    let inside = (end(figure.low)..=end(figure.high)).contains(&truth_number);
    let off = (truth_number - value_number).abs();
    let near =
        off <= TOLERANCE_SHARE * truth_number.abs() || matches!(truth, Quantity::Count(_)) && off <= COUNT_TOLERANCE;
    inside && near
}

pub(crate) fn number(quantity: Quantity) -> Option<f64> {
    match quantity {
        Quantity::Bytes(n)
        | Quantity::Count(n)
        | Quantity::Nanos(n)
        | Quantity::BytesPerSecond(n)
        | Quantity::PerSecond(n) => Some(n as f64),
        Quantity::Ratio(x) | Quantity::Share(x) | Quantity::Years(x) => Some(x),
        Quantity::AddressBits(_) | Quantity::Flag(_) | Quantity::Location(_) => None,
    }
}

pub(crate) fn json(quantity: Quantity) -> serde_json::Value {
    match quantity {
        Quantity::Bytes(n)
        | Quantity::Count(n)
        | Quantity::Nanos(n)
        | Quantity::BytesPerSecond(n)
        | Quantity::PerSecond(n)
        | Quantity::AddressBits(n) => n.into(),
        Quantity::Ratio(x) | Quantity::Share(x) | Quantity::Years(x) => x.into(),
        Quantity::Flag(flag) => flag.into(),
        Quantity::Location(hot) => {
            serde_json::json!({ "period_bytes": hot.period_bytes, "offset_bytes": hot.offset_bytes })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &'static str, figure: Figure<Quantity>) -> Entry {
        Entry { key, title: "", figure }
    }

    fn exactly(quantity: Quantity) -> Figure<Quantity> {
        Figure::certain(quantity, quantity, quantity)
    }

    fn is_correct(key: &'static str, learned: Figure<Quantity>, truth: Figure<Quantity>) -> bool {
        score_figure(&entry(key, learned), &truth).correct
    }

    #[test]
    fn a_size_of_the_layout_is_right_or_wrong() {
        let kib = |n: u64| exactly(Quantity::Bytes(n << 10));
        assert!(is_correct("stripe_bytes", kib(64), kib(64)));
        assert!(!is_correct("stripe_bytes", kib(60), kib(64)));
    }

    #[test]
    fn a_ratio_is_right_within_its_interval_and_a_tenth() {
        let truth = exactly(Quantity::Ratio(3.0));
        let learned =
            |value, low, high| Figure::certain(Quantity::Ratio(value), Quantity::Ratio(low), Quantity::Ratio(high));
        assert!(is_correct("asymmetry_4k", learned(2.8, 2.7, 3.0), truth));
        assert!(!is_correct("asymmetry_4k", learned(2.8, 2.7, 2.9), truth), "outside the interval");
        assert!(!is_correct("asymmetry_4k", learned(2.6, 2.0, 4.0), truth), "too far away");
    }

    #[test]
    fn a_hot_location_is_right_where_reads_are_as_fast() {
        let at = |offset_bytes| Quantity::Location(HotLocation { period_bytes: 131_072, offset_bytes });
        let is_right = |offset, truth| is_correct("hot_location", exactly(at(offset)), truth);
        let flat = Figure::certain(at(28_672), at(28_672), at(98_304));
        assert!(is_right(28_672, flat) && is_right(32_768, flat) && is_right(98_304, flat));
        assert!(!is_right(24_576, flat) && !is_right(102_400, flat));
        let over_the_end = Figure::certain(at(0), at(126_976), at(4_096));
        assert!(is_right(126_976, over_the_end) && is_right(4_096, over_the_end) && !is_right(8_192, over_the_end));
    }

    #[test]
    fn what_is_not_there_must_be_told_as_absent() {
        let absent = Figure::absent();
        assert!(is_correct("page_bytes", absent, absent));
        assert!(!is_correct("page_bytes", Figure::unknown(), absent));
        assert!(!is_correct("page_bytes", exactly(Quantity::Bytes(4096)), absent));
        assert!(is_correct("flush_ns", absent, exactly(Quantity::Nanos(0))));
    }
}
