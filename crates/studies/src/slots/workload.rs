//! Which pages are written: uniform, hot and cold, Zipf.
//!
//! A workload writes each page once, in order, and continues at random. Any sequence of pages is a trace of the model;
//! these are those that published curves are of.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::Shape;

/// How random writes are spread over the pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// All pages alike.
    Uniform,
    /// Two zones: the share `traffic` of the writes goes to the share `size` of the pages, uniformly in each.
    TwoZones {
        /// Share of the writes.
        traffic: f64,
        /// Share of the pages.
        size: f64,
    },
    /// The `k`-th page is written with a probability in proportion to `k^-theta`.
    Zipf {
        /// The exponent.
        theta: f64,
    },
}

impl Workload {
    /// The pages of a drive once in order, and then so many random writes.
    pub fn trace(&self, shape: Shape, random_writes: usize, seed: u64) -> Vec<u32> {
        let pages = shape.pages();
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut trace: Vec<u32> = (0..pages).collect();
        match *self {
            Self::Uniform => trace.extend((0..random_writes).map(|_| random.random_range(0..pages))),
            Self::TwoZones { traffic, size } => {
                let hot = ((f64::from(pages) * size) as u32).clamp(1, pages - 1);
                trace.extend((0..random_writes).map(|_| match random.random::<f64>() < traffic {
                    true => random.random_range(0..hot),
                    false => random.random_range(hot..pages),
                }));
            }
            Self::Zipf { theta } => {
                let ranks = Alias::new((1..=pages).map(|k| libm::pow(f64::from(k), -theta)).collect());
                trace.extend((0..random_writes).map(|_| ranks.draw(&mut random)));
            }
        }
        trace
    }
}

/// Draws from any distribution in constant time: A. J. Walker's alias method, 1977, in M. D. Vose's form, 1991.
struct Alias {
    /// Of each column: its own share, and whose the rest is.
    columns: Vec<(f64, u32)>,
}

impl Alias {
    fn new(mut weights: Vec<f64>) -> Self {
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        weights.iter_mut().for_each(|weight| *weight /= mean);
        let mut columns: Vec<(f64, u32)> = (0..weights.len() as u32).map(|n| (1.0, n)).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..weights.len() as u32).partition(|&n| weights[n as usize] < 1.0);
        while let (Some(low), Some(&high)) = (small.pop(), large.last()) {
            columns[low as usize] = (weights[low as usize], high);
            weights[high as usize] -= 1.0 - weights[low as usize];
            if weights[high as usize] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        Self { columns }
    }

    fn draw(&self, random: &mut Pcg64Mcg) -> u32 {
        let column = random.random_range(0..self.columns.len() as u32);
        let (own, other) = self.columns[column as usize];
        if random.random::<f64>() < own { column } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(workload: Workload, pages: std::ops::Range<u32>) -> f64 {
        let trace = workload.trace(Shape::new(12, 100, 1000).unwrap(), 100_000, 5);
        assert_eq!(trace[..1000], (0..1000).collect::<Vec<_>>());
        trace[1000..].iter().filter(|page| pages.contains(page)).count() as f64 / 100_000.0
    }

    // Of 100,000 draws a share is within four standard deviations, 4 · √(p·(1 − p) ÷ 100,000) < 0.0064.
    #[test]
    fn writes_are_spread_as_the_workload_says() {
        let two = Workload::TwoZones { traffic: 0.9, size: 0.1 };
        assert!((share(Workload::Uniform, 0..250) - 0.25).abs() < 0.0064);
        assert!((share(two, 0..100) - 0.9).abs() < 0.0064);
        assert!((share(two, 0..50) - 0.45).abs() < 0.0064);
        // Harmonic numbers: H(10) ÷ H(1000) = 2.92897 ÷ 7.48547.
        assert!((share(Workload::Zipf { theta: 1.0 }, 0..10) - 0.39129).abs() < 0.0064);
        assert!((share(Workload::Zipf { theta: 0.0 }, 0..250) - 0.25).abs() < 0.0064);
    }
}
