//! Medians, their intervals, and whether a curve repeats itself.

use flashwise_profile::{Figure, MedianNs};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// Share of resampled estimates that must agree before a figure is certain.
const AGREEMENT: f64 = 0.95;
/// How often an estimate is repeated on resampled data.
const RESAMPLES: usize = 200;
/// How often a curve is shuffled to see what chance makes of it.
const PERMUTATIONS: usize = 500;
/// A period is real if chance does as well in less than this share of the permutations.
const CHANCE: f64 = 0.01;

/// The samples of one point, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<u64>);

impl Samples {
    pub(crate) fn new(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        Self(values)
    }

    /// Median; 0 of nothing.
    pub(crate) fn median(&self) -> f64 {
        let n = self.0.len();
        match n {
            0 => 0.0,
            _ if n.is_multiple_of(2) => (self.0[n / 2 - 1] + self.0[n / 2]) as f64 / 2.0,
            _ => self.0[n / 2] as f64,
        }
    }

    /// Median with its 95 % interval from order statistics: ranks n/2 ± 1.96·√n/2.
    pub(crate) fn interval(&self) -> MedianNs {
        let n = self.0.len();
        if n == 0 {
            return MedianNs { median: 0, low: 0, high: 0 };
        }
        let half_width = 1.96 * (n as f64).sqrt() / 2.0;
        let low = (n as f64 / 2.0 - half_width).floor().max(0.0) as usize;
        let high = ((n as f64 / 2.0 + half_width).ceil() as usize).min(n - 1);
        MedianNs { median: self.median().round() as u64, low: self.0[low], high: self.0[high] }
    }

    /// As many values drawn from these with replacement.
    pub(crate) fn resampled(&self, random: &mut Pcg64Mcg) -> Self {
        let draw = |_| self.0[random.random_range(0..self.0.len())];
        Self::new((0..self.0.len()).map(draw).collect())
    }
}

/// Standard error of a median, from its 95 % interval.
pub(crate) fn standard_error(median: &MedianNs) -> f64 {
    (median.high - median.low) as f64 / (2.0 * 1.96)
}

/// Median of some numbers.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n.is_multiple_of(2) => (values[n / 2 - 1] + values[n / 2]) / 2.0,
        n => values[n / 2],
    }
}

/// The `low` and `high` quantiles of 95 % of some numbers.
pub(crate) fn interval95(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    if values.is_empty() { (0.0, 0.0) } else { (at(0.025), at(0.975)) }
}

/// Turns an estimate into a figure: the same estimate on resampled points says how far it can be trusted.
///
/// `estimate` gives `None` where the points show nothing. Without a first estimate the figure is absent if
/// `would_be_seen`, and unknown otherwise.
pub(crate) fn figure<T: Copy + PartialOrd>(
    points: &[Samples],
    random: &mut Pcg64Mcg,
    would_be_seen: bool,
    estimate: impl Fn(&[Samples]) -> Option<T>,
) -> Figure<T> {
    let first = estimate(points);
    let again: Vec<Option<T>> = (0..RESAMPLES)
        .map(|_| {
            let resampled: Vec<Samples> = points.iter().map(|point| point.resampled(random)).collect();
            estimate(&resampled)
        })
        .collect();
    let agreeing = again.iter().filter(|other| **other == first).count() as f64 / RESAMPLES as f64;
    let mut values: Vec<T> = again.into_iter().flatten().collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    match first {
        None if agreeing >= AGREEMENT && would_be_seen => Figure::absent(),
        None => Figure::unknown(),
        Some(value) => {
            let at = |share: f64| values.get((values.len().saturating_sub(1) as f64 * share).round() as usize);
            let (low, high) = (*at(0.025).unwrap_or(&value), *at(0.975).unwrap_or(&value));
            if agreeing >= AGREEMENT {
                Figure::certain(value, low, high)
            } else {
                Figure::inconclusive(value, low, high)
            }
        }
    }
}

/// How well a curve repeats with a period: adjusted share of its variance that the phase explains.
fn explained(curve: &[f64], period: usize) -> f64 {
    let n = curve.len() / period * period;
    let curve = &curve[..n];
    let mean = curve.iter().sum::<f64>() / n as f64;
    let total: f64 = curve.iter().map(|y| (y - mean).powi(2)).sum();
    let folded = fold(curve, period);
    let within: f64 = curve.iter().enumerate().map(|(i, y)| (y - folded[i % period]).powi(2)).sum();
    if total <= f64::EPSILON * mean * mean {
        return 0.0;
    }
    1.0 - (within / (n - period) as f64) / (total / (n - 1) as f64)
}

/// Mean of a curve of medians at each phase of a period.
pub(crate) fn fold(curve: &[f64], period: usize) -> Vec<f64> {
    let cycles = curve.len() / period;
    (0..period)
        .map(|phase| (0..cycles).map(|cycle| curve[cycle * period + phase]).sum::<f64>() / cycles as f64)
        .collect()
}

/// Whole cycles that a curve must hold before it can be said to repeat.
const CYCLES: usize = 4;

/// The periods that a curve of `points` can show.
fn candidates(points: usize) -> std::ops::RangeInclusive<usize> {
    2..=points / CYCLES
}

/// A period explains nearly as much as the best one if it falls short by at most this share: its multiples do as well.
const NEARLY: f64 = 0.1;

/// The smallest period that explains nearly as much of a curve as the best one, with what it explains.
pub(crate) fn best_period(curve: &[f64]) -> (usize, f64) {
    let scores: Vec<(usize, f64)> = candidates(curve.len()).map(|p| (p, explained(curve, p))).collect();
    let best = scores.iter().map(|s| s.1).fold(f64::MIN, f64::max);
    scores.into_iter().find(|s| s.1 >= best - NEARLY * best.abs()).unwrap_or((curve.len(), 0.0))
}

/// A curve repeats only if its period explains at least this share of its variance.
const EXPLAINED: f64 = 0.5;

/// Whether a curve does not repeat: its best period explains little, or chance does as well.
pub(crate) fn period_is_chance(curve: &[f64], random: &mut Pcg64Mcg) -> bool {
    let (_, observed) = best_period(curve);
    if observed < EXPLAINED {
        return true;
    }
    let mut shuffled = curve.to_vec();
    let as_good = (0..PERMUTATIONS)
        .filter(|_| {
            shuffled.shuffle(random);
            candidates(curve.len()).map(|p| explained(&shuffled, p)).fold(f64::MIN, f64::max) >= observed
        })
        .count();
    as_good as f64 >= CHANCE * PERMUTATIONS as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;

    fn noisy(period: usize, points: usize, signal: f64, seed: u64) -> Vec<f64> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let wave = |i: usize| if i.is_multiple_of(period) { -signal } else { 0.0 };
        (0..points).map(|i| 100.0 + wave(i) + random.random_range(-1.0..1.0)).collect()
    }

    #[test]
    fn a_period_is_found_in_noise_and_not_its_multiples() {
        for period in [2, 3, 4, 8, 16] {
            let curve = noisy(period, 64, 5.0, period as u64);
            assert_eq!(best_period(&curve).0, period);
            assert!(!period_is_chance(&curve, &mut Pcg64Mcg::seed_from_u64(1)));
        }
    }

    #[test]
    fn noise_alone_is_taken_for_a_period_in_about_one_case_of_a_hundred() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let alarms = (0..100).filter(|&seed| !period_is_chance(&noisy(7, 64, 0.0, seed), &mut random)).count();
        assert!(alarms <= 4, "{alarms} false alarms in 100");
    }

    #[test]
    fn an_estimate_that_resampling_changes_is_inconclusive() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let clear = [Samples::new(vec![10; 30]), Samples::new(vec![20; 30])];
        let unclear = [Samples::new((0..30).collect()), Samples::new((0..30).collect())];
        let faster = |p: &[Samples]| Some(u64::from(p[0].median() >= p[1].median()));
        assert_eq!(figure(&clear, &mut random, true, faster), Figure::certain(0, 0, 0));
        assert_eq!(figure(&unclear, &mut random, true, faster).verdict, flashwise_profile::Verdict::Inconclusive);
        assert_eq!(figure(&clear, &mut random, true, |_| None::<u64>), Figure::absent());
        assert_eq!(figure(&clear, &mut random, false, |_| None::<u64>), Figure::unknown());
    }

    proptest! {
        #[test]
        fn the_interval_of_a_median_contains_it(values in prop::collection::vec(0_u64..1_000_000, 1..200)) {
            let interval = Samples::new(values).interval();
            prop_assert!(interval.low <= interval.median && interval.median <= interval.high);
        }
    }
}
