//! When pages die, and predictions of it of a given quality.
//!
//! A write's page *dies* with the next write of the same page: found by one look at the trace from its end.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The page of a write is never written again.
pub const NEVER: u32 = u32::MAX;

/// For each write, the number of the next write of the same page, or [`NEVER`].
pub fn deaths(pages: &[u32]) -> Vec<u32> {
    let highest = pages.iter().max().map_or(0, |&page| page as usize + 1);
    let mut next = vec![NEVER; highest];
    let mut deaths = vec![NEVER; pages.len()];
    for (time, &page) in pages.iter().enumerate().rev() {
        deaths[time] = std::mem::replace(&mut next[page as usize], time as u32);
    }
    deaths
}

/// How wrong predictions are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PredictionError {
    /// A predicted life is the true one times e^(σ·z), z from the standard normal distribution.
    pub sigma: f64,
    /// Share of the writes whose lives, after that, are dealt out anew among themselves.
    pub swapped: f64,
}

impl PredictionError {
    /// Predicted deaths for true ones. A page that is never written again is predicted so, unless it is among the
    /// swapped.
    pub fn predictions(&self, deaths: &[u32], seed: u64) -> Vec<u32> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let lives = (0_u32..).zip(deaths).map(|(time, &death)| match death {
            NEVER => NEVER,
            death if self.sigma > 0.0 => {
                let factor = libm::exp(self.sigma * normal(&mut random));
                (f64::from(death - time) * factor).clamp(1.0, f64::from(NEVER - 1)) as u32
            }
            death => death - time,
        });
        let mut lives: Vec<u32> = lives.collect();
        let mut wrong: Vec<usize> =
            (0..lives.len()).filter(|_| self.swapped > 0.0 && random.random::<f64>() < self.swapped).collect();
        // Fisher and Yates: `wrong[n]` gets the life of one not dealt out yet.
        for n in (1..wrong.len()).rev() {
            let other = random.random_range(0..=n);
            lives.swap(wrong[n], wrong[other]);
        }
        wrong.clear();
        (0_u32..).zip(lives).map(|(time, life)| time.saturating_add(life)).collect()
    }
}

/// A draw from the standard normal distribution (Box and Muller), by `libm`: the same on every machine.
fn normal(random: &mut Pcg64Mcg) -> f64 {
    let (radius, turn): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(2.0 * std::f64::consts::PI * turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_dies_with_its_next_write() {
        assert_eq!(deaths(&[0, 1, 0, 2, 1, 0]), [2, 4, 5, NEVER, NEVER, NEVER]);
        assert_eq!(deaths(&[]), [0; 0]);
    }

    #[test]
    fn predictions_without_error_are_the_truth() {
        let truth = deaths(&[0, 1, 0, 2, 1, 0]);
        assert_eq!(PredictionError::default().predictions(&truth, 7), truth);
    }

    #[test]
    fn predicted_lives_are_off_by_the_factor_that_was_asked_for() {
        // Each page lives for 1000 writes; ln(predicted ÷ true) has mean 0 and standard deviation σ. Of 100,000 draws
        // the mean is within 4 σ ÷ √n and the deviation within 4 σ ÷ √2n.
        let (sigma, n) = (0.5, 100_000);
        let truth: Vec<u32> = (0..n).map(|time| time + 1000).collect();
        let predicted = PredictionError { sigma, swapped: 0.0 }.predictions(&truth, 3);
        let logs: Vec<f64> = (0..n).zip(&predicted).map(|(t, &p)| (f64::from(p - t) / 1000.0).ln()).collect();
        let mean = logs.iter().sum::<f64>() / f64::from(n);
        let deviation = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / f64::from(n)).sqrt();
        // A life is cut to whole writes: up to 1/400 off for lives of 400 and more, 1/800 on average.
        assert!(mean.abs() < 4.0 * sigma / f64::from(n).sqrt() + 1.0 / 800.0, "{mean}");
        assert!((deviation - sigma).abs() < 4.0 * sigma / (2.0 * f64::from(n)).sqrt() + 1.0 / 800.0, "{deviation}");
    }

    #[test]
    fn swapped_predictions_are_others_lives_and_as_many_as_asked_for() {
        let n = 100_000_u32;
        // Life of write t is t + 1: all different.
        let truth: Vec<u32> = (0..n).map(|time| 2 * time + 1).collect();
        let predicted = PredictionError { sigma: 0.0, swapped: 0.3 }.predictions(&truth, 3);
        let mut lives: Vec<u32> = (0..n).zip(&predicted).map(|(t, &p)| p - t).collect();
        let wrong = predicted.iter().zip(&truth).filter(|(p, t)| p != t).count();
        // Binomial: 30,000 with a standard deviation of 145.
        assert!(wrong.abs_diff(30_000) < 600, "{wrong}");
        lives.sort_unstable();
        assert_eq!(lives, (1..=n).collect::<Vec<_>>());
    }
}
