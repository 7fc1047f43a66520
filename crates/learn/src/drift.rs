//! Whether a drive has changed since it was learned: its firmware, its wear, its neighbours.
//!
//! ```text
//!   both certain, a place, address bits, yes or no  changed if they differ
//!   both certain, a size or a count                 changed if they are further apart than chance allows
//!   both certain, a time, a speed, a ratio, a share the same, and by 1 %
//!   certain then and absent now, or the reverse     changed
//!   was or is inconclusive, or is a counter's       not compared
//! ```
//!
//! What chance allows follows from both intervals, of which a size that was read exactly has none. An interval of 95 %
//! is 1.96 standard errors wide to each side. Two runs on the same drive differ by chance, and with that limit one
//! figure in twenty would, two in each pair of profiles. So the limit is Bonferroni's for all figures of a profile.
//!
//! Source: Montgomery, *Design and Analysis of Experiments*, 9th edition, 3.5.7 (comparing many pairs of means).

use flashwise_profile::{DeviceProfile, Entry, Figure, Quantity, Verdict};
use serde::Serialize;

use crate::score::{json, number};

/// Standard errors from the middle of an interval of 95 % to its end.
const INTERVAL_ERRORS: f64 = 1.96;
/// Standard errors of the difference beyond which two values differ: by chance one pair in 1,280 does (the normal
/// distribution's two tails), and so one pair of profiles in twenty, with 63 figures each; those of a memory card have
/// five others and no more.
const LIMIT_ERRORS: f64 = 3.36;
/// Changes below this share are of no use to anybody; two runs on a drive without noise differ by it where both have
/// intervals of no width.
const SMALLEST_SHARE: f64 = 0.01;

/// A figure that has changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Changed {
    /// Key in the profile's `parameters`.
    pub figure: &'static str,
    /// The figure in the earlier profile, and now.
    #[serde(skip)]
    pub figures: (Figure<Quantity>, Figure<Quantity>),
    /// Value in the earlier profile; `None` if the feature was absent.
    pub before: Option<serde_json::Value>,
    /// Value now; `None` if the feature is absent.
    pub now: Option<serde_json::Value>,
}

/// What has changed between two profiles of one drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Drift {
    /// Figures that were compared.
    pub compared: usize,
    /// Of those, what has changed.
    pub changed: Vec<Changed>,
    /// Keys of the figures that were inconclusive and are not any more, or the reverse.
    pub not_compared: Vec<&'static str>,
}

/// Compares an earlier profile of a drive with one of now.
pub fn drift(before: &DeviceProfile, now: &DeviceProfile) -> Drift {
    let mut drift = Drift::default();
    // Counters advance: that they differ is no change of the drive.
    let figures = |of: &DeviceProfile| [of.parameters.entries(), of.limits.entries(), of.card.entries()].concat();
    for (before, now) in std::iter::zip(figures(before), figures(now)) {
        let is_open = |entry: &Entry| entry.figure.verdict == Verdict::Inconclusive;
        match (is_open(&before), is_open(&now)) {
            (true, true) => {}
            (false, false) => {
                drift.compared += 1;
                if has_changed(&before.figure, &now.figure) {
                    drift.changed.push(Changed {
                        figure: now.key,
                        figures: (before.figure, now.figure),
                        before: before.figure.known().map(json),
                        now: now.figure.known().map(json),
                    });
                }
            }
            _ => drift.not_compared.push(now.key),
        }
    }
    drift
}

fn has_changed(before: &Figure<Quantity>, now: &Figure<Quantity>) -> bool {
    let (Some(then), Some(value)) = (before.known(), now.known()) else { return before.verdict != now.verdict };
    let (Some(from), Some(to)) = (number(then), number(value)) else { return then != value };
    let distance = (to - from).abs();
    // Each half of the interval that looks at the other value.
    let half = |figure: &Figure<Quantity>, middle: f64, other: f64| {
        let end = if other > middle { figure.high } else { figure.low };
        end.and_then(number).map_or(0.0, |end| (end - middle).abs())
    };
    let error = half(before, from, to).hypot(half(now, to, from)) / INTERVAL_ERRORS;
    let is_measured = !matches!(value, Quantity::Bytes(_) | Quantity::Count(_));
    let least = if is_measured { SMALLEST_SHARE * from.abs() } else { 0.0 };
    distance > LIMIT_ERRORS * error && distance > least
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(value: f64, low: f64, high: f64) -> Figure<Quantity> {
        Figure::certain(Quantity::Ratio(value), Quantity::Ratio(low), Quantity::Ratio(high))
    }

    fn size(kib: u64) -> Figure<Quantity> {
        let size = Quantity::Bytes(kib << 10);
        Figure::certain(size, size, size)
    }

    #[test]
    fn a_size_has_changed_if_it_differs_beyond_its_interval() {
        assert!(has_changed(&size(64), &size(32)));
        assert!(!has_changed(&size(64), &size(64)));
        let count = |n, low, high| Figure::certain(Quantity::Count(n), Quantity::Count(low), Quantity::Count(high));
        assert!(!has_changed(&count(20, 16, 24), &count(26, 22, 30)));
        assert!(has_changed(&count(20, 16, 24), &count(40, 36, 44)));
    }

    #[test]
    fn at_most_one_pair_of_profiles_in_twenty_differs_by_chance() {
        let figures =
            [flashwise_profile::Parameters::default().entries(), flashwise_profile::Limits::default().entries()]
                .concat();
        let by_chance = figures.len() as f64 / 1280.0;
        assert!(by_chance <= 0.05, "{by_chance}: with so many figures LIMIT_ERRORS has to be greater");
    }

    #[test]
    fn a_measured_value_has_changed_if_both_intervals_are_far_apart() {
        let before = measured(100.0, 95.0, 105.0);
        assert!(!has_changed(&before, &measured(111.0, 106.0, 116.0)), "apart, as one pair in many is by chance");
        assert!(has_changed(&before, &measured(120.0, 115.0, 125.0)));
        assert!(has_changed(&measured(120.0, 115.0, 125.0), &before));
    }

    #[test]
    fn the_half_of_an_interval_on_the_other_side_says_nothing() {
        let skewed = measured(100.0, 20.0, 101.0);
        assert!(has_changed(&skewed, &measured(110.0, 109.0, 111.0)));
        assert!(!has_changed(&skewed, &measured(50.0, 49.0, 51.0)));
    }

    #[test]
    fn without_noise_a_hundredth_is_no_change() {
        assert!(!has_changed(&measured(100.0, 100.0, 100.0), &measured(100.9, 100.9, 100.9)));
        assert!(has_changed(&measured(100.0, 100.0, 100.0), &measured(102.0, 102.0, 102.0)));
    }

    #[test]
    fn a_feature_that_comes_or_goes_is_a_change() {
        assert!(has_changed(&Figure::absent(), &size(64)));
        assert!(has_changed(&size(64), &Figure::absent()));
        assert!(!has_changed(&Figure::absent(), &Figure::absent()));
    }
}
