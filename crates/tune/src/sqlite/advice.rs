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
            recommend("after", format!("Apply these changes: {}.", times(c)))
        }
        None => {
            let (small, large) = (ByteSize(c.default_page_size.page_bytes), ByteSize(c.after.page_bytes));
            let reason = format!(
                "Keep pages of {small}: {}. If your database needs pages of {large} for another reason, such \
                 as large rows or scans, apply the changes.",
                times(c)
            );
            recommend("default_page_size", reason)
        }
    }
}

/// What the workload takes by default and with the changes.
fn times(c: &Comparison) -> String {
    let clock = match c.profile.device.clock {
        flashwise_block::Clock::Virtual => "drive time",
        flashwise_block::Clock::Wall => "time",
    };
    let time = |run: &RunMeasurement| Nanos(run.drive_time_ns);
    let (default, after) = (&c.default_page_size, &c.after);
    let (before, now) = (time(default), time(after));
    format!(
        "the workload takes {before} of {clock} unchanged ({}) and {now} with the changes ({})",
        default.label, after.label
    )
}
