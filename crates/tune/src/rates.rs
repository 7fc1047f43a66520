//! Rates over rounds and ratios between runs, with their intervals.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::{Gain, Rate};

/// Resamples for an interval.
const RESAMPLES: usize = 2_000;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n.is_multiple_of(2) => (values[n / 2 - 1] + values[n / 2]) / 2.0,
        n => values[n / 2],
    }
}

/// Median of some rounds with its 95 % bootstrap interval.
fn median_with_interval(rounds: &[f64]) -> (f64, f64, f64) {
    let mut random = Pcg64Mcg::seed_from_u64(rounds.len() as u64);
    let mut resample = || median((0..rounds.len()).map(|_| rounds[random.random_range(0..rounds.len())]).collect());
    let mut medians: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
    medians.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| medians[((RESAMPLES - 1) as f64 * share).round() as usize];
    (median(rounds.to_vec()), at(0.025), at(0.975))
}

/// Median rate of the rounds; zero where nothing of the kind was done.
pub(crate) fn rate(rounds: &[f64]) -> Rate {
    if rounds.is_empty() {
        return Rate { per_s: 0.0, low: 0.0, high: 0.0 };
    }
    let (per_s, low, high) = median_with_interval(rounds);
    Rate { per_s, low, high }
}

/// Median ratio of paired rounds; `None` where there is nothing to compare.
pub(crate) fn gain(metric: &str, (from, before): (&str, &[f64]), (to, after): (&str, &[f64])) -> Option<Gain> {
    let ratios: Vec<f64> = std::iter::zip(before, after).map(|(b, a)| a / b).filter(|r| r.is_finite()).collect();
    if ratios.is_empty() {
        return None;
    }
    let (ratio, low, high) = median_with_interval(&ratios);
    Some(Gain { metric: metric.into(), from: from.into(), to: to.into(), ratio, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_the_median_ratio_of_paired_rounds_with_its_interval() {
        let before = [100.0, 50.0, 200.0, 80.0];
        let after = before.map(|rate| rate * 1.3);
        let gain = gain("select_per_s", ("before", &before), ("after", &after)).unwrap();
        assert!([gain.ratio, gain.low, gain.high].iter().all(|r| (r - 1.3).abs() < 1e-12), "{gain:?}");
    }

    #[test]
    fn nothing_measured_is_no_rate_and_no_gain() {
        assert_eq!(rate(&[]).per_s, 0.0);
        assert_eq!(gain("x", ("a", &[]), ("b", &[1.0])), None);
    }

    #[test]
    fn the_interval_holds_the_median_and_widens_with_scatter() {
        let narrow = rate(&[99.0, 100.0, 101.0, 100.0]);
        let wide = rate(&[50.0, 100.0, 150.0, 100.0]);
        assert!(narrow.low <= narrow.per_s && narrow.per_s <= narrow.high);
        assert!(wide.high - wide.low > narrow.high - narrow.low);
    }
}
