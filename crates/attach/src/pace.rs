//! How simulated time follows the machine's, and how well it did.

use std::time::{Duration, Instant};

use flashwise_block::{LatencySummary, Nanos, Percentiles};
use serde::{Deserialize, Serialize};

use crate::AttachError;

/// How simulated time follows the machine's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// A second of simulated time takes so many seconds: 1 is real time, 10 is ten times slower.
    Scaled(f64),
    /// Answers come at once; simulated time goes by what the drive does alone.
    Free,
}

impl Pace {
    /// Simulated time at a pace.
    ///
    /// # Errors
    /// [`AttachError::TimeScale`] outside 0.001 to 1,000,000.
    pub fn scaled(scale: f64) -> Result<Self, AttachError> {
        if (1e-3..=1e6).contains(&scale) { Ok(Self::Scaled(scale)) } else { Err(AttachError::TimeScale(scale)) }
    }
}

/// The two clocks beside each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// The machine's time when both began.
    began: Instant,
    /// The drive's time then.
    base: Nanos,
    /// Seconds of the machine for a simulated one.
    scale: f64,
}

impl Clocks {
    pub(crate) fn new(began: Instant, base: Nanos, scale: f64) -> Self {
        Self { began, base, scale }
    }

    /// Seconds of the machine for a simulated one.
    pub(crate) fn scale(&self) -> f64 {
        self.scale
    }

    /// The drive's time at a moment of the machine's; the start's for what lies before it.
    pub(crate) fn simulated(&self, at: Instant) -> Nanos {
        let passed = at.saturating_duration_since(self.began).as_nanos();
        Nanos(self.base.0.saturating_add((passed as f64 / self.scale) as u64))
    }

    /// A duration of the machine's in simulated time.
    pub(crate) fn simulated_span(&self, span: Duration) -> Nanos {
        Nanos((span.as_nanos() as f64 / self.scale) as u64)
    }

    /// The machine's time at a time of the drive's.
    pub(crate) fn machine(&self, at: Nanos) -> Instant {
        let passed = at.since(self.base).0 as f64 * self.scale;
        self.began + Duration::from_nanos(passed as u64)
    }
}

/// How much later than they should have answers were given, on the machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pacing {
    /// The error of each answer.
    pub error: Percentiles,
    /// What was taken off each answer for the way to the client and back, ns.
    pub round_trip_ns: u64,
    /// The median error is more than 5 % of the median time of a request, or one error in a hundred is more than half of
    /// it: what was measured from outside is the machine's rather than the drive's.
    pub spoils_the_result: bool,
}

impl Pacing {
    /// `latencies` are those of the same requests, on the machine's clock.
    pub(crate) fn new(errors: &LatencySummary, latencies: &LatencySummary, round_trip: Duration) -> Self {
        let (error, latency) = (errors.percentiles(), latencies.percentiles());
        let spoils_the_result = error.p50_ns * 20 > latency.p50_ns || error.p99_ns * 2 > latency.p50_ns;
        Self {
            error,
            round_trip_ns: u64::try_from(round_trip.as_nanos()).unwrap_or(u64::MAX),
            spoils_the_result: error.count > 0 && spoils_the_result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_seconds_of_the_machine_are_one_of_the_drive_where_the_scale_is_ten() {
        let began = Instant::now();
        let clocks = Clocks::new(began, Nanos(500), 10.0);
        let later = began + Duration::from_secs(10);
        assert_eq!(clocks.simulated(later), Nanos(500 + 1_000_000_000));
        assert_eq!(clocks.machine(Nanos(500 + 1_000_000_000)), later);
        assert_eq!(clocks.simulated_span(Duration::from_micros(20)), Nanos(2_000));
        assert_eq!(clocks.machine(Nanos(3)), began, "before the start there is nothing");
    }

    #[test]
    fn only_a_scale_that_makes_sense_is_taken() {
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e7] {
            assert!(Pace::scaled(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Pace::scaled(10.0).unwrap(), Pace::Scaled(10.0));
    }

    #[test]
    fn an_error_of_a_tenth_of_the_latency_spoils_the_result() {
        let of = |ns: u64| {
            let mut summary = LatencySummary::new();
            (0..1000).for_each(|_| summary.record(Nanos(ns)));
            summary
        };
        let trip = Duration::from_micros(15);
        assert!(Pacing::new(&of(10_000), &of(100_000), trip).spoils_the_result);
        assert!(!Pacing::new(&of(1_000), &of(100_000), trip).spoils_the_result);
        assert!(!Pacing::new(&LatencySummary::new(), &LatencySummary::new(), trip).spoils_the_result);
    }
}
