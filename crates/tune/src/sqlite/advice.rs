//! Recommends one of the measured runs.
//!
//! All runs do the same work, so the one with the least drive time is the best for it. A technique that needs another
//! page size can be a gain at that page size and still a loss compared with the default one; then the default is
//! recommended, together with the conditions for the technique.

use flashwise_block::{ByteSize, Nanos};

use super::plan::Obstacle;
use crate::{Comparison, Recommendation, RunMeasurement};

/// Recommends a run.
pub(crate) fn recommend(c: &Comparison, obstacle: Option<&Obstacle>) -> Recommendation {
    let recommend = |run: &str, reason: String| Recommendation { run: run.to_owned(), reason };
    match obstacle {
        Some(Obstacle::NothingToGain(why)) => {
            recommend("default_page_size", format!("{why}: keep the database unmodified."))
        }
        Some(Obstacle::NotCertain(why)) => recommend("none", format!("{why}: no recommendation is possible.")),
        None if c.after.drive_time_ns < c.default_page_size.drive_time_ns => {
            recommend("after", format!("Recommended for this workload: {}.", times(c, &c.after, &c.default_page_size)))
        }
        None => {
            let (small, large) = (ByteSize(c.default_page_size.page_bytes), ByteSize(c.after.page_bytes));
            let times = times(c, &c.default_page_size, &c.after);
            let reason = format!(
                "For this workload keep pages of {small}: {times}. If your database has pages of {large} for another \
                 reason, such as large rows or scans, apply it."
            );
            recommend("default_page_size", reason)
        }
    }
}

fn times(c: &Comparison, best: &RunMeasurement, other: &RunMeasurement) -> String {
    let clock = match c.profile.device.clock {
        flashwise_block::Clock::Virtual => "drive time",
        flashwise_block::Clock::Wall => "time",
    };
    let time = |run: &RunMeasurement| Nanos(run.drive_time_ns);
    format!("{} of {clock} with {}, {} with {}", time(best), best.label, time(other), other.label)
}
