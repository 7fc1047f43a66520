//! Means of repeated runs, with Student's 95 % interval.

use flashwise_report::study::Measured;

use crate::StudyError;

/// 97.5 % quantiles of Student's t for 1, 2, … degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_964;

/// The 97.5 % quantile of Student's t. Beyond the table, the expansion in 1 / degrees of freedom to its second term,
/// which is right to four digits there (Abramowitz, Stegun, Handbook of Mathematical Functions, 26.7.5).
fn quantile(degrees_of_freedom: usize) -> f64 {
    let further = |n: f64| {
        let (first, second) = (Z.powi(3) + Z, 5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z);
        Z + first / (4.0 * n) + second / (96.0 * n * n)
    };
    T.get(degrees_of_freedom.saturating_sub(1)).copied().unwrap_or_else(|| further(degrees_of_freedom as f64))
}

/// How often a run is repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repetition {
    /// At least.
    pub(crate) runs_min: usize,
    /// At most.
    pub(crate) runs_max: usize,
    /// Until half of the interval is within this share of the mean.
    pub(crate) error_max: f64,
}

/// The mean of values with its interval.
pub(crate) fn mean(values: &[f64]) -> Measured {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    let half = quantile(values.len().saturating_sub(1)) * (variance / n).sqrt();
    Measured { value: mean, low: mean - half, high: mean + half }
}

/// What is done a second, of batches of equally much, each told by how long it took: the whole divided by the whole
/// time.
///
/// The interval is Student's over the batches, which are taken as independent: they have to be longer than what makes
/// them alike. Where a long batch is followed by a short one, as with collection in bursts, it is wider than it had to
/// be.
pub(crate) fn rate(batches_s: &[f64], batch: f64) -> Measured {
    let time_s = mean(batches_s);
    let (value, relative) = (batch / time_s.value, (time_s.high - time_s.value) / time_s.value);
    Measured { value, low: value * (1.0 - relative), high: value * (1.0 + relative) }
}

impl Repetition {
    /// Repeats a run, told its number, until its mean is known well enough.
    pub(crate) fn repeat(self, mut run: impl FnMut(u64) -> Result<f64, StudyError>) -> Result<Measured, StudyError> {
        let mut values = Vec::with_capacity(self.runs_min);
        loop {
            values.push(run(values.len() as u64)?);
            let known = mean(&values);
            let half = (known.high - known.low) / 2.0;
            let enough = values.len() >= self.runs_min.max(2) && half <= self.error_max * known.value.abs();
            if enough || values.len() >= self.runs_max {
                return Ok(known);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        let known = mean(&[1.0, 2.0, 3.0]);
        assert!((known.value - 2.0).abs() < 1e-12);
        assert!((known.high - known.value - 4.303 / 3_f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_rate_is_all_that_was_done_over_all_the_time_that_it_took() {
        let known = rate(&[1.0, 2.0, 3.0], 100.0);
        assert!((known.value - 50.0).abs() < 1e-9, "not the mean of 100, 50 and 33: {known:?}");
        // Half of the interval of the time is 4.303 / √3 of 2.
        assert!((known.high - 50.0 * (1.0 + 4.303 / 3_f64.sqrt() / 2.0)).abs() < 1e-9);
        assert!((known.low + known.high - 100.0).abs() < 1e-9);
    }

    #[test]
    fn beyond_its_table_the_quantile_goes_on_without_a_step() {
        assert!((quantile(30) - 2.042).abs() < 1e-9);
        assert!((quantile(31) - 2.0395).abs() < 1e-4);
        assert!((quantile(60) - 2.0003).abs() < 1e-4);
        assert!((quantile(1000) - 1.9623).abs() < 1e-4);
    }

    #[test]
    fn a_run_is_repeated_until_its_mean_is_known_and_no_longer() {
        let (mut runs, repetition) = (0, Repetition { runs_min: 3, runs_max: 100, error_max: 0.05 });
        repetition
            .repeat(|_| {
                runs += 1;
                Ok(1.0)
            })
            .unwrap();
        assert_eq!(runs, 3);
        runs = 0;
        repetition
            .repeat(|n| {
                runs += 1;
                Ok(if n % 2 == 0 { 1.0 } else { 1.4 })
            })
            .unwrap();
        // Of n values, n even, half of the interval is t · 0.2 / √(n - 1), which is to be 0.05 · 1.2 at most: n ≥
        // 46.07, with 2.014 for t; of an odd number, the mean is a little lower.
        assert_eq!(runs, 47);
    }
}
