//! Figures with a graded size, from an estimate and the same estimate on resampled data.

use flashwise_profile::{Figure, ProbePoint};

use super::{interval95, median};

/// A graded figure is certain if its interval is within this share of its value: as near as databases need ratios and
/// speeds, and as near as the score asks for.
pub(crate) const INTERVAL_SHARE_MAX: f64 = 0.1;

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
pub(crate) const OTHER_WAYS_SHARE: f64 = 0.04;

/// A figure from the same estimate on resampled data: certain where these are within `tolerance` of the value.
pub(crate) fn measured(value: f64, again: Vec<f64>, tolerance: f64) -> Figure<f64> {
    measured_by_ways(value, again, tolerance, OTHER_WAYS_SHARE)
}

/// The same of a figure that other ways to measure it move by up to a share of it.
pub(crate) fn measured_by_ways(value: f64, again: Vec<f64>, tolerance: f64, other_ways_share: f64) -> Figure<f64> {
    let (low, high) = interval95(again);
    let (low, high) = (low.min(value), high.max(value));
    let figure = narrow_enough(value, low, high, tolerance);
    let more = other_ways_share * value.abs();
    Figure { low: Some(low - more), high: Some(high + more), ..figure }
}

/// An interval with that on either side.
pub(crate) fn widened(value: f64, low: f64, high: f64) -> (f64, f64) {
    (low - OTHER_WAYS_SHARE * value.abs(), high + OTHER_WAYS_SHARE * value.abs())
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

/// One figure measured twice: its interval holds both.
pub(crate) fn both(first: Figure<f64>, second: Figure<f64>) -> Figure<f64> {
    let ends = [first.low, first.high, second.low, second.high].into_iter().flatten().collect();
    match first.value {
        Some(value) => measured(value, ends, INTERVAL_SHARE_MAX),
        None => second,
    }
}

/// The one power of two in an interval.
pub(crate) fn power_of_two_within(low: f64, high: f64) -> Option<u64> {
    let power = 1_u64 << (high.max(1.0).log2().floor() as u32).min(62);
    (power as f64 >= low).then_some(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_of_two_is_taken_only_within_the_interval() {
        assert_eq!(power_of_two_within(4.0e6, 4.3e6), Some(4 << 20));
        assert_eq!(power_of_two_within(4.3e6, 5.0e6), None);
    }
}
