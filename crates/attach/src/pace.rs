//! How simulated time follows the machine's, and how well it did.

use std::time::{Duration, Instant};

use flashwise_block::{LatencySummary, Nanos, Percentiles};
use serde::{Deserialize, Serialize};

use crate::AttachError;

/// How simulated time follows the machine's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// Seconds on the machine's clock per second of simulated time: 1 is real time, 10 is ten times slower.
    Scaled(f64),
    /// Completions are sent at once; simulated time advances with the drive's work alone.
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
    /// The machine's time when both started.
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

    /// The drive's time at a time of the machine's; the start's for earlier times.
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

/// Seconds of error for a second of a request's time from which on a result is spoilt.
const TOLERATED: f64 = 0.05;
/// A client that takes no longer than this many round trips, for each request that it has in flight, from a completion
/// to its next request, at the median, does nothing in between.
const AT_ONCE: f64 = 8.0;
/// The shortest round trip for this rule, ns: a shorter one says little about a machine that others use too.
const SHORT_NS: u64 = 20_000;

/// The error of clients' measurements, on the machine's clock.
///
/// ```text
///   client     sends ┐                     ┌ receives   sends again ┐
///   server           └▶ arrived ─ completed ┘                        └▶ arrived
///                       ├── a request's time in the server ──┤
///                       ├── upper bound for a client that sends again at once ──▶┤
/// ```
///
/// The error of a completion is how much longer its client waits than the drive takes, if the way there and back takes
/// the measured round trip: the completion is late, or the drive is faster than the way, and no completion can come
/// before its request. The server does not see the real time of the way. It sees when the next request comes: for a
/// client that sends its next request on each completion, as a benchmark does, that bounds the client's measurement
/// ([`Self::at_once`]). For a client that thinks in between it says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pacing {
    /// The error of each completion.
    pub error: Percentiles,
    /// Time subtracted from each latency for the way to the client and back, ns; the shorter one of two ways.
    pub round_trip_ns: u64,
    /// From the arrival of a request to that of the one that follows its completion: the most that a client that sends
    /// again at once measures.
    pub at_once: Percentiles,
    /// The median error is more than 5 % of the median time of a request, or one error in a hundred is more than half
    /// of it: then a client measures the machine rather than the drive.
    pub spoils_the_result: bool,
    /// The time scale with which that would not be so, for this load on this machine; `null` where this one is enough.
    pub enough_time_scale: Option<f64>,
}

/// Facts about the completions of a drive, on the machine's clock.
pub(crate) struct ReplyTimes<'a> {
    /// Of each, how much longer its client waits than the drive takes.
    pub(crate) errors: &'a LatencySummary,
    /// Of each, how long the client waits, the round trip with it.
    pub(crate) latencies: &'a LatencySummary,
    /// Of those that are followed by another request, how long until that arrives.
    pub(crate) at_once: &'a LatencySummary,
    /// Mean requests of a client in flight.
    pub(crate) depth: f64,
}

impl Pacing {
    pub(crate) fn new(answers: &ReplyTimes<'_>, round_trip: Duration, scale: f64) -> Self {
        let error = answers.errors.percentiles();
        let (latency_ns, at_once) = (answers.latencies.percentile(50.0).0, answers.at_once.percentiles());
        let round_trip_ns = u64::try_from(round_trip.as_nanos()).unwrap_or(u64::MAX);
        // The drive's part of a request's time.
        let drive_ns = latency_ns.saturating_sub(error.p50_ns).max(1) as f64;
        let share = |error_ns: u64| error_ns as f64 / drive_ns;
        let of_server = (share(error.p50_ns) / TOLERATED).max(share(error.p99_ns) * 2.0);
        // Clients that think between two requests look like a slow way.
        let pause_ns = at_once.p50_ns.saturating_sub(latency_ns.saturating_sub(round_trip_ns));
        let asks_at_once = at_once.count > 0
            && pause_ns as f64 <= AT_ONCE * answers.depth.max(1.0) * round_trip_ns.max(SHORT_NS) as f64;
        let beyond_ns = if asks_at_once { at_once.p50_ns.saturating_sub(drive_ns as u64) } else { 0 };
        let of_clients = share(beyond_ns) / TOLERATED;
        let spoils_the_result =
            error.p50_ns * 20 > latency_ns || error.p99_ns * 2 > latency_ns || (asks_at_once && of_clients > 1.0);
        let spoils_the_result = error.count > 0 && spoils_the_result;
        let enough = rounded_up(scale * of_server.max(of_clients));
        Self {
            error,
            round_trip_ns,
            at_once,
            spoils_the_result,
            enough_time_scale: (spoils_the_result && enough > scale).then_some(enough),
        }
    }
}

/// The next of 1, 2, 5, 10, 20, 50, ….
pub(crate) fn rounded_up(scale: f64) -> f64 {
    let decade = 10_f64.powf(scale.max(1e-3).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    steps.into_iter().find(|&step| step >= scale * (1.0 - 1e-9)).unwrap_or(scale)
}

/// A time interval: a client's wait for a request, or the server's time for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from: Instant,
    pub(crate) takes: Duration,
}

impl Span {
    /// From then until now.
    pub(crate) fn since(from: Instant) -> Self {
        Self { from, takes: from.elapsed() }
    }

    fn holds(&self, other: &Self) -> bool {
        other.from >= self.from && other.from + other.takes <= self.from + self.takes
    }
}

/// The time of the way from a client to the server and back, from how long the client waited for each of its requests,
/// one after the other, and how long the server had it: the lower quartile of the differences. The two times of the
/// same request are compared, as other work on the machine makes both longer, and never makes the way shorter. An
/// overestimated round trip would complete requests before the drive's time; an underestimated one is reported as an
/// error. Requests of others are left out; `None` if no more are left.
pub(crate) fn estimate_round_trip(waited: &[Span], had: &[Span]) -> Option<Duration> {
    let mut had = had.iter().peekable();
    let mut ways: Vec<Duration> = waited
        .iter()
        .filter_map(|waited| {
            while had.next_if(|had| had.from < waited.from).is_some() {}
            let had = had.next_if(|had| waited.holds(had))?;
            Some(waited.takes - had.takes)
        })
        .collect();
    ways.sort_unstable();
    ways.get(ways.len() / 4).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_is_the_lower_quartile_of_what_each_request_took_beyond_the_server_and_others_are_left_out() {
        let began = Instant::now();
        let span = |from_us, takes_us| Span {
            from: began + Duration::from_micros(from_us),
            takes: Duration::from_micros(takes_us),
        };
        // The machine was busy at the second and the fourth: in the server at one, outside of it at the other.
        let waited = [span(0, 130), span(1_000, 5_030), span(7_000, 128), span(8_000, 9_000), span(20_000, 140)];
        let had = [span(10, 100), span(1_010, 5_000), span(7_010, 100), span(8_010, 100), span(20_010, 100)];
        assert_eq!(estimate_round_trip(&waited, &had), Some(Duration::from_micros(30)));
        let others = [span(600, 50), span(7_050, 500), span(30_000, 1)];
        let mut all = [&had[..], &others].concat();
        all.sort_unstable_by_key(|span| span.from);
        assert_eq!(estimate_round_trip(&waited, &all), Some(Duration::from_micros(30)));
        assert_eq!(estimate_round_trip(&waited, &others), None);
    }

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

    fn of(ns: u64) -> LatencySummary {
        let mut summary = LatencySummary::new();
        (0..1000).for_each(|_| summary.record(Nanos(ns)));
        summary
    }

    /// Completions that are so late, of requests that take so long for their clients, and how long until the next one
    /// comes.
    fn pacing(error_us: u64, latency_us: u64, at_once_us: u64, scale: f64) -> Pacing {
        pacing_at(1.0, error_us, latency_us, at_once_us, scale)
    }

    fn pacing_at(depth: f64, error_us: u64, latency_us: u64, at_once_us: u64, scale: f64) -> Pacing {
        let [errors, latencies, at_once] = [error_us, latency_us, at_once_us].map(|us| of(us * 1000));
        let answers = ReplyTimes { errors: &errors, latencies: &latencies, at_once: &at_once, depth };
        Pacing::new(&answers, Duration::from_micros(15), scale)
    }

    #[test]
    fn an_error_of_a_tenth_of_the_latency_spoils_the_result() {
        assert!(pacing(10, 100, 100, 1.0).spoils_the_result);
        assert!(!pacing(1, 100, 100, 1.0).spoils_the_result);
        let none = LatencySummary::new();
        let answers = ReplyTimes { errors: &none, latencies: &none, at_once: &none, depth: 0.0 };
        assert!(!Pacing::new(&answers, Duration::from_micros(15), 1.0).spoils_the_result);
    }

    #[test]
    fn a_way_that_is_longer_than_the_drive_takes_is_told_with_the_scale_that_is_enough() {
        // A drive of 13 µs behind a way of 45 µs, of which 15 µs were known: completions are sent as early as possible.
        let told = pacing(4, 17, 45, 1.0);
        assert!(told.spoils_the_result && told.enough_time_scale == Some(50.0), "{told:?}");
        // With it, 650 µs of the drive's and the same way.
        let told = pacing(4, 654, 680, 50.0);
        assert!(!told.spoils_the_result && told.enough_time_scale.is_none(), "{told:?}");
        // A client that thinks for 10 ms says nothing about the way.
        assert!(!pacing(1, 100, 10_000, 1.0).spoils_the_result);
        // But 32 requests that it handles one by one show that the machine takes 10 µs for each.
        let told = [1.0, 32.0].map(|depth| pacing_at(depth, 1, 51, 300, 1.0).enough_time_scale);
        assert_eq!(told, [None, Some(100.0)]);
    }

    #[test]
    fn scales_are_round_numbers() {
        let rounded = [0.002, 0.7, 1.0, 1.1, 3.0, 5.1, 10.0, 46.0, 99.0, 4e5].map(rounded_up);
        assert_eq!(rounded, [0.002, 1.0, 1.0, 2.0, 5.0, 10.0, 10.0, 50.0, 100.0, 5e5]);
    }
}
