//! Latencies of many requests, without keeping every one.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Count, mean and percentiles of a set of latencies, exact to three significant digits.
///
/// ```
/// use flashwise_block::{LatencySummary, Nanos};
/// let mut latencies = LatencySummary::new();
/// (1..=100).for_each(|us| latencies.record(Nanos::micros(us)));
/// assert_eq!(latencies.count(), 100);
/// assert!(latencies.percentile(50.0).0.abs_diff(50_000) <= 50);
/// ```
#[derive(Clone, Debug)]
pub struct LatencySummary {
    histogram: Histogram<u64>,
}

/// The figures of a [`LatencySummary`], as they are printed and saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Number of latencies.
    pub count: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Largest, ns.
    pub max_ns: u64,
}

impl Default for LatencySummary {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencySummary {
    /// An empty summary.
    ///
    /// # Panics
    /// Never: three significant digits are always accepted.
    #[allow(clippy::expect_used, reason = "three significant digits are always accepted")]
    pub fn new() -> Self {
        Self { histogram: Histogram::new(3).expect("three significant digits are allowed") }
    }

    /// An empty summary with space for every latency up to `longest`: recording one of these allocates no memory.
    /// Longer ones are recorded too.
    pub fn up_to(longest: Nanos) -> Self {
        let histogram = Histogram::new_with_bounds(1, longest.0.max(2), 3);
        histogram.map_or_else(
            |_| Self::new(),
            |mut histogram| {
                histogram.auto(true);
                Self { histogram }
            },
        )
    }

    /// Adds one latency.
    pub fn record(&mut self, latency: Nanos) {
        // `record` grows the histogram as needed; `saturating_record` alone would cut everything at its first 2 µs.
        if self.histogram.record(latency.0).is_err() {
            self.histogram.saturating_record(latency.0);
        }
    }

    /// Adds all latencies of another summary.
    pub fn merge(&mut self, other: &Self) {
        // It fails only if the other one has a value beyond the limit of this one, and both have the same limit.
        let _ = self.histogram.add(&other.histogram);
    }

    /// How many were added.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The latency that `percent` of all do not exceed; zero if there are none.
    pub fn percentile(&self, percent: f64) -> Nanos {
        Nanos(self.histogram.value_at_quantile(percent / 100.0))
    }

    /// The figures that reports show.
    pub fn percentiles(&self) -> Percentiles {
        Percentiles {
            count: self.count(),
            p50_ns: self.percentile(50.0).0,
            p99_ns: self.percentile(99.0).0,
            max_ns: self.histogram.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_that_was_made_before_changes_no_figure() {
        let (mut plain, mut roomy) = (LatencySummary::new(), LatencySummary::up_to(Nanos::millis(1)));
        for ns in [0, 1, 999, 20_481, 1_000_000, 7_777_777_777] {
            plain.record(Nanos(ns));
            roomy.record(Nanos(ns));
        }
        assert_eq!(plain.percentiles(), roomy.percentiles());
        plain.merge(&roomy);
        roomy.merge(&LatencySummary::new());
        assert_eq!((plain.count(), roomy.percentile(90.0)), (12, plain.percentile(90.0)));
    }

    #[test]
    fn two_summaries_together_are_one_of_all_latencies() {
        let of = |latencies: &[u64]| {
            let mut summary = LatencySummary::new();
            latencies.iter().for_each(|&ns| summary.record(Nanos(ns)));
            summary
        };
        let mut merged = of(&[5, 70_000]);
        merged.merge(&of(&[3_000_000_000, 7]));
        assert_eq!(merged.percentiles(), of(&[5, 70_000, 3_000_000_000, 7]).percentiles());
        merged.merge(&LatencySummary::new());
        assert_eq!(merged.count(), 4);
    }
}
