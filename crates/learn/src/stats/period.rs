//! Whether a curve repeats itself, and with which period.
//!
//! Source: epoch folding, the share of variance explained adjusted for the number of phases; the null distribution by
//! permutation of the points. Medians only: a mean follows its outliers.

use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// Probability that chance repeats as well, below which a period is real: share of the permutations.
const CHANCE_PROBABILITY: f64 = 0.01;
/// How often a curve is shuffled to see what chance makes of it.
const PERMUTATIONS: usize = 1000;
/// How well a curve repeats with a period: adjusted share of its variance that the phase explains.
pub(crate) fn explained(curve: &[f64], period: usize) -> f64 {
    // Points behind the last whole cycle count: what is odd there must not be left out by the choice of a period.
    let n = curve.len();
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

/// Of a period and one that divides it the shorter one counts, since multiples explain as much by chance alone,
/// unless the longer one leaves less than this share of the variance that the shorter leaves,
const LEAVES_SHARE: f64 = 0.67;
/// and explains this share of the whole variance more.
const EXPLAINS_MORE_SHARE: f64 = 0.03;

/// The period that explains most of a curve, or the smallest one that divides it and explains nearly as much, with what
/// it explains.
pub(crate) fn best_period(curve: &[f64]) -> (usize, f64) {
    let scores: Vec<(usize, f64)> = candidates(curve.len()).map(|p| (p, explained(curve, p))).collect();
    let Some(&(longest, best)) = scores.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { return (curve.len(), 0.0) };
    let is_as_good = |score: f64| 1.0 - best >= LEAVES_SHARE * (1.0 - score) || best - score < EXPLAINS_MORE_SHARE;
    let divides = |s: &&(usize, f64)| longest.is_multiple_of(s.0) && s.1 > 0.0 && is_as_good(s.1);
    scores.iter().find(divides).copied().unwrap_or((longest, best))
}

/// Share of its variance that a period explains of a curve that repeats, at least: more than noise beside it.
const EXPLAINED_SHARE_MIN: f64 = 0.5;

/// Probability that chance repeats as well as this curve does; `None` where that is likely, or its best period explains
/// little.
pub(crate) fn period_test(curve: &[f64], random: &mut Pcg64Mcg) -> Option<f64> {
    let (_, observed) = best_period(curve);
    if observed < EXPLAINED_SHARE_MIN {
        return None;
    }
    let mut shuffled = curve.to_vec();
    let as_good = (0..PERMUTATIONS)
        .filter(|_| {
            shuffled.shuffle(random);
            candidates(curve.len()).map(|p| explained(&shuffled, p)).fold(f64::MIN, f64::max) >= observed
        })
        .count();
    let p = (as_good + 1) as f64 / (PERMUTATIONS + 1) as f64;
    (p <= CHANCE_PROBABILITY).then_some(p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

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
            assert!(period_test(&curve, &mut Pcg64Mcg::seed_from_u64(1)).is_some());
        }
    }

    #[test]
    fn a_long_smooth_wave_is_not_taken_for_one_a_little_shorter() {
        let valley = |i: usize| (i % 64).abs_diff(32) as f64;
        let curve: Vec<f64> = (0..256).map(|i| 100.0 + valley(i)).collect();
        assert_eq!(best_period(&curve).0, 64);
    }

    #[test]
    fn a_period_with_a_coarser_structure_of_its_own_is_not_taken_for_that() {
        // Pages of two within chunks of sixteen, of which the last start is shared.
        let curve: Vec<f64> =
            (0..256).map(|i| 100.0 + [0.0, 60.0][i % 2] - if i % 16 == 15 { 30.0 } else { 0.0 }).collect();
        assert_eq!(best_period(&curve).0, 16);
    }

    #[test]
    fn what_is_odd_at_the_end_of_a_curve_is_not_left_out_by_the_choice_of_a_period() {
        let odd = |i: usize| if i >= 122 { -7_000.0 } else { 0.0 };
        let curve: Vec<f64> = (0..128).map(|i| 128_920.0 + [0.0, 2_560.0][i % 2] + odd(i)).collect();
        assert_eq!(period_test(&curve, &mut Pcg64Mcg::seed_from_u64(1)), None);
    }

    #[test]
    fn noise_alone_is_taken_for_a_period_in_about_one_case_of_a_hundred() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let alarms = (0..100).filter(|&seed| period_test(&noisy(7, 64, 0.0, seed), &mut random).is_some()).count();
        assert!(alarms <= 4, "{alarms} false alarms in 100");
    }
}
