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

    /// Adds one latency.
    pub fn record(&mut self, latency: Nanos) {
        // `record` grows the histogram as needed; `saturating_record` alone would cut everything at its first 2 µs.
        if self.histogram.record(latency.0).is_err() {
            self.histogram.saturating_record(latency.0);
        }
    }

    /// How many were added.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The latency that `percent` of all do not exceed; zero when there is none.
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
