//! Means of repeated runs, with Student's 95 % interval.

use flashwise_report::study::Measured;

use crate::StudyError;

/// 97.5 % quantiles of Student's t for 1, 2, … degrees of freedom; beyond them the normal one is 3 % too small at most.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

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
    let t = T.get(values.len().saturating_sub(2)).copied().unwrap_or(1.96);
    let half = t * (variance / n).sqrt();
    Measured { value: mean, low: mean - half, high: mean + half }
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
    fn a_run_is_repeated_until_its_mean_is_known_and_no_longer() {
        let (mut runs, repetition) = (0, Repetition { runs_min: 3, runs_max: 30, error_max: 0.05 });
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
        assert!((4..30).contains(&runs), "{runs}");
    }
}
