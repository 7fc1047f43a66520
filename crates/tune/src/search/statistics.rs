//! Means and intervals of logarithms of ratios.

use super::Costs;

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) ratio: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Interval {
    /// The ratio alone, from a single run.
    pub(crate) fn unknown(ratio: f64) -> Self {
        Self { ratio, low: 0.0, high: f64::INFINITY }
    }
}

/// Quantiles of Student's t for 1, 2, … degrees of freedom; beyond the last they hardly fall, and the last is used.
///
/// Two-sided 99.5 %.
const T_995: [f64; 20] = [
    127.321, 14.089, 7.453, 5.598, 4.773, 4.317, 4.029, 3.833, 3.690, 3.581, 3.497, 3.428, 3.372, 3.326, 3.286, 3.252,
    3.222, 3.197, 3.174, 3.153,
];
/// Two-sided 99 %.
const T_99: [f64; 20] = [
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947, 2.921,
    2.898, 2.878, 2.861, 2.845,
];
/// Two-sided 80 %: one-sided 90 %.
const T_80: [f64; 20] = [
    3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372, 1.363, 1.356, 1.350, 1.345, 1.341, 1.337,
    1.333, 1.330, 1.328, 1.325,
];

/// The logarithm of the ratio of costs, positive where the second are lower.
pub(crate) fn log_gain(stock: Costs, own: Costs) -> Costs {
    // A cost of nothing is that of one unit: flash bytes of work that writes nothing.
    std::array::from_fn(|n| stock[n].max(1.0).ln() - own[n].max(1.0).ln())
}

pub(super) fn means(of: &[Costs]) -> Costs {
    std::array::from_fn(|n| of.iter().map(|costs| costs[n]).sum::<f64>() / of.len() as f64)
}

/// The confidence of intervals that are announced, by the number of objectives, each of which is tested.
pub(crate) fn confidence(objectives: usize) -> f64 {
    if objectives == 1 { 0.99 } else { 0.995 }
}

/// The mean ratio with its interval at that confidence, from logarithms.
pub(crate) fn confident(logs: &[f64], objectives: usize) -> Interval {
    interval(logs, if objectives == 1 { &T_99 } else { &T_995 })
}

/// The same at 80 %, to choose by.
pub(crate) fn likely(logs: &[f64]) -> Interval {
    interval(logs, &T_80)
}

/// How many values there have to be for the 80 % interval of their mean to reach no further than `half` to either side,
/// by the scatter of these, of which there are two at least (C. Stein, A Two-Sample Test for a Linear Hypothesis Whose
/// Power Is Independent of the Variance, 1945).
pub(super) fn runs_for(logs: &[f64], half: f64) -> usize {
    let (_, variance) = mean_and_variance(logs);
    (quantile(&T_80, logs.len()).powi(2) * variance / half.powi(2)).ceil() as usize
}

fn mean_and_variance(logs: &[f64]) -> (f64, f64) {
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    (mean, logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0))
}

/// For a mean of so many values.
fn quantile(quantiles: &[f64; 20], count: usize) -> f64 {
    quantiles[(count - 2).min(quantiles.len() - 1)]
}

fn interval(logs: &[f64], quantiles: &[f64; 20]) -> Interval {
    let count = logs.len();
    let (mean, variance) = mean_and_variance(logs);
    if count < 2 {
        return Interval::unknown(mean.exp());
    }
    let half = quantile(quantiles, count) * (variance / count as f64).sqrt();
    Interval { ratio: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_that_of_students_t_on_logarithms() {
        // Mean 0.2, standard deviation 0.1, five values: 0.2 ± 4.604 · 0.1 / √5.
        let logs = [0.1, 0.1, 0.2, 0.3, 0.3];
        let Interval { ratio, low, high } = confident(&logs, 1);
        let half = 4.604 * 0.1 / 5_f64.sqrt();
        for (found, log) in [(ratio, 0.2), (low, 0.2 - half), (high, 0.2 + half)] {
            assert!((found.ln() - log).abs() < 1e-9, "{found}");
        }
        assert!(likely(&logs).low > low);
        let wider = confident(&logs, 2);
        assert!((wider.low.ln() - (0.2 - 5.598 * 0.1 / 5_f64.sqrt())).abs() < 1e-9, "{wider:?}");
        assert_eq!(confident(&[0.0], 1).high, f64::INFINITY, "one run has no interval");
    }

    #[test]
    fn the_number_of_runs_follows_from_their_scatter_and_not_from_where_they_are() {
        // Standard deviation 0.1, five values: (1.533 · 0.1 / 0.02)² = 58.75.
        let logs = [0.1, 0.1, 0.2, 0.3, 0.3];
        assert_eq!(runs_for(&logs, 0.02), 59);
        assert_eq!(runs_for(&logs.map(|log| log - 7.0), 0.02), 59);
        assert_eq!(runs_for(&[0.5, 0.5], 0.02), 0, "equal");
    }
}
