//! What the rate of a load did over time: one level, or a burst and what came after it.
//!
//! ```text
//!   requests completed
//!        ▲              ▁▁▁▁▔▔▔▔▔▔  slope: the rate in the long run
//!        │         ▁▁▔▔▔▔
//!        │       ╱
//!        │     ╱                    the line of the last level, extended back to the start, meets the axis at the
//!        │   ╱                      credits: what was granted beyond that rate
//!        └─╱──────────────────▶ time
//! ```
//!
//! A limiter grants what it grants by the clock: beyond a second's noise, requests completed are a straight line. So
//! the slope of a few seconds is exact to a few requests, and the intercept is the bucket, no matter when exactly it
//! ran dry.

use super::load::Run;
use crate::stats::{median, pelt};

/// Windows in which changes are looked for.
const BINS: usize = 240;
/// Requests that a window has at least on average; of fewer, the noise of one more or less hides the level.
const REQUESTS_MIN: u64 = 20;
/// Share of a rate by which a later one must be below it to be another level. A limiter's rate is flat to some
/// thousandths; a caps' tolerance is three hundredths.
const CHANGE_SHARE: f64 = 0.02;

/// A burst lasts so long, s; what is granted beyond the rate in less is slack: a surplus without a level.
const BURST_SECONDS: f64 = 1.0;

/// The levels of one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    /// Requests a second at the end.
    pub(super) rate: f64,
    /// Half of an interval of `rate`, as a share of it.
    pub(super) error: f64,
    /// Seconds at that rate.
    pub(super) seconds: f64,
    /// The level before, if it was higher.
    pub(super) burst: Option<Burst>,
    /// Requests beyond those that `rate` grants in the same time; negative where the start was slower.
    pub(super) surplus: f64,
    /// Whether counts of long windows differ by no more than those of short ones: what is granted by the clock.
    pub(super) is_by_the_clock: bool,
}

/// A first level above the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    pub(super) rate: f64,
    pub(super) seconds: f64,
}

/// The levels of a stream of a run; `latency` is what a request takes that does not wait, s. `None` where too little
/// was completed.
pub(super) fn levels(run: &Run, stream: usize, latency: f64) -> Option<Levels> {
    let series = &run.series[stream];
    let bins = (series.total() / REQUESTS_MIN).clamp(8, BINS as u64) as usize;
    let (counts, width) = series.rebinned(run.elapsed.0, bins);
    if counts.len() < 4 || series.total() < 2 * REQUESTS_MIN {
        return None;
    }
    // The first window has the time until the first completion in it, and what a small bucket grants at once.
    let settled = &counts[1..];
    let cuts: Vec<usize> = pelt::confirmed(settled, CHANGE_SHARE).into_iter().map(|cut| cut + 1).collect();
    let start = cuts.last().map_or(1, |&cut| (cut + 1).min(counts.len() - 1));
    let last = &counts[start..];
    let seconds = last.len() as f64 * width;
    let rate = last.iter().sum::<f64>() / seconds;
    let roughness = step(last);
    let long: Vec<f64> = last.chunks_exact(LONG).map(|bins| bins.iter().sum()).collect();
    let is_by_the_clock = long.len() >= LONG_MIN
        && step(&long) <= (GROWTH_MAX * roughness).max(CHANCE_REQUESTS + (rate * latency).sqrt());
    let burst = cuts.first().and_then(|&cut| {
        let before = median(counts[1..cut].to_vec()) / width;
        let is_burst = before > rate * (1.0 + CHANGE_SHARE) && cut as f64 * width >= BURST_SECONDS;
        is_burst.then_some(Burst { rate: before, seconds: cut as f64 * width })
    });
    let counted: f64 = counts.iter().sum();
    let surplus = counted - rate * (counts.len() as f64 * width - latency);
    // A count has an end on either side, each late or early by as much as neighbouring windows differ, and by one.
    let slack = (roughness + 1.0) / last.iter().sum::<f64>().max(1.0);
    Some(Levels { rate, error: slack.max(ERROR_SHARE_MIN), seconds, burst, surplus, is_by_the_clock })
}

/// Mean absolute difference of neighbours.
fn step(counts: &[f64]) -> f64 {
    let steps = counts.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    steps.sum::<f64>() / (counts.len().max(2) - 1) as f64
}

/// Windows in a long one, and how many of these there must be.
const LONG: usize = 10;
const LONG_MIN: usize = 6;
/// What a limiter's step may grow by from short windows to long ones. That of independent services grows by √10 = 3.2.
const GROWTH_MAX: f64 = 1.8;
/// A step of a limiter that chance makes: one request more or less at either end of two windows; and what varies of
/// those that are on their way.
const CHANCE_REQUESTS: f64 = 2.5;

/// What an interval of a rate has at least on either side: clocks of drives and hosts differ by less, and what is
/// granted is known to no more by anybody.
const ERROR_SHARE_MIN: f64 = 0.002;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::limits::load::Series;
    use flashwise_block::Nanos;

    /// A run whose n-th request completes at a time, s.
    fn run(seconds: f64, at: impl Fn(u64) -> f64) -> Run {
        let times = (0..).map(|n| (at(n) * 1e9) as u64).take_while(|&at| at < (seconds * 1e9) as u64);
        Run::of(Nanos((seconds * 1e9) as u64), Series::of(times))
    }

    #[test]
    fn a_constant_rate_has_one_level_and_no_surplus() {
        let levels = levels(&run(10.0, |n| n as f64 / 3000.0), 0, 0.0).unwrap();
        assert!((levels.rate - 3000.0).abs() < 6.0 && levels.burst.is_none(), "{levels:?}");
        assert!(levels.surplus.abs() < 5.0, "{levels:?}");
    }

    #[test]
    fn a_bucket_that_runs_dry_shows_both_rates_and_its_size() {
        // 3,000 a second while 6,000 credits last, of which 2,000 more a second are spent than come in.
        let at = |n: u64| if n < 9000 { n as f64 / 3000.0 } else { 3.0 + (n - 9000) as f64 / 1000.0 };
        let levels = levels(&run(10.0, at), 0, 0.0).unwrap();
        let burst = levels.burst.unwrap();
        assert!((levels.rate - 1000.0).abs() < 3.0 && (burst.rate - 3000.0).abs() < 30.0, "{levels:?}");
        assert!((burst.seconds - 3.0).abs() < 0.1 && (levels.surplus - 6000.0).abs() < 20.0, "{levels:?}");
    }

    #[test]
    fn a_bucket_that_is_spent_at_once_is_a_surplus_without_a_level() {
        let levels = levels(&run(10.0, |n| n.saturating_sub(500) as f64 / 1000.0), 0, 0.0).unwrap();
        assert!(levels.burst.is_none() && (levels.surplus - 500.0).abs() < 5.0, "{levels:?}");
    }
}
