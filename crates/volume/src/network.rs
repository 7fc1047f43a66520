//! What the network adds to a request, drawn from a seed.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::config::{DelayConfig, PercentileConfig};

/// The 99th percentile of the standard normal distribution.
const Z99: f64 = 2.326_347_874_040_841;

/// A distribution of delays.
pub(crate) enum Delay {
    /// Always the same.
    Fixed(u64),
    /// A fixed part, and one whose logarithm is normal.
    LogNormal { fixed_ns: u64, mu: f64, sigma: f64 },
    /// A fixed part, and one between points of its distribution.
    Points { fixed_ns: u64, points: Vec<PercentileConfig> },
}

impl Delay {
    pub(crate) fn new(config: &DelayConfig) -> Self {
        let fixed_ns = config.fixed_ns;
        if !config.percentiles.is_empty() {
            return Self::Points { fixed_ns, points: config.percentiles.clone() };
        }
        if config.median_ns == 0 {
            return Self::Fixed(fixed_ns);
        }
        let (mu, p99) = (libm::log(config.median_ns as f64), libm::log(config.p99_ns as f64));
        Self::LogNormal { fixed_ns, mu, sigma: (p99 - mu) / Z99 }
    }

    /// One delay, ns.
    pub(crate) fn draw(&self, random: &mut Pcg64Mcg) -> u64 {
        match self {
            Self::Fixed(ns) => *ns,
            Self::LogNormal { fixed_ns, mu, sigma } => {
                fixed_ns + libm::exp(mu + sigma * standard_normal(random)).round() as u64
            }
            Self::Points { fixed_ns, points } => fixed_ns + between(points, random.random()),
        }
    }
}

/// The delay that a share of requests stays below, between two points on a line.
fn between(points: &[PercentileConfig], share: f64) -> u64 {
    let above = points.iter().position(|point| point.share >= share).unwrap_or(points.len() - 1).max(1);
    let (low, high) = (points[above - 1], points[above]);
    let part = (share - low.share) / (high.share - low.share);
    low.delay_ns + (part * (high.delay_ns - low.delay_ns) as f64).round() as u64
}

/// Box and Muller's method, of whose two values one is used.
fn standard_normal(random: &mut Pcg64Mcg) -> f64 {
    let (radius, angle): (f64, f64) = (random.random(), random.random());
    libm::sqrt(-2.0 * libm::log(1.0 - radius)) * libm::cos(core::f64::consts::TAU * angle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn quantiles(config: &DelayConfig) -> [u64; 3] {
        let (delay, mut random) = (Delay::new(config), Pcg64Mcg::seed_from_u64(3));
        let mut drawn: Vec<u64> = (0..100_000).map(|_| delay.draw(&mut random)).collect();
        drawn.sort_unstable();
        [drawn[50_000], drawn[90_000], drawn[99_000]]
    }

    #[test]
    fn the_log_normal_part_has_the_configured_median_and_percentile() {
        let config = DelayConfig { fixed_ns: 100_000, median_ns: 50_000, p99_ns: 400_000, ..DelayConfig::default() };
        let [median, _, p99] = quantiles(&config);
        assert!(median.abs_diff(150_000) < 1_500 && p99.abs_diff(500_000) < 15_000, "{median} {p99}");
    }

    #[test]
    fn points_of_a_distribution_are_met() {
        let at = |share, delay_ns| PercentileConfig { share, delay_ns };
        let percentiles = vec![at(0.0, 100), at(0.5, 1_000), at(0.95, 5_000), at(1.0, 50_000)];
        let [median, p90, p99] = quantiles(&DelayConfig { fixed_ns: 10, percentiles, ..DelayConfig::default() });
        // Nine tenths are 40 parts of 45 from the median to the 95th percentile, 99 % four fifths beyond that.
        assert!(median.abs_diff(1_010) < 50 && p90.abs_diff(4_566) < 50, "{median} {p90}");
        assert!(p99.abs_diff(41_010) < 1_500, "{p99}");
    }
}
