//! What a reader should know to read the numbers right.

use flashwise_block::{ByteSize, Clock};

use crate::Comparison;

/// SELECT throughput that the seed paper reports for SQLite with use-hot-locations on this class of drive.
const PUBLISHED_SELECT_GAIN: f64 = 1.29;

/// The notes of a comparison.
pub(crate) fn notes(c: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    if c.applied.is_empty() {
        notes.push("Nothing was applied: default, before and after are one and the same run.".into());
    }
    if c.workload.rows > 0 {
        notes.extend(published(c));
    }
    notes.extend(page_size(c));
    notes.push(clock(c));
    if c.before.select_latency.count > 0 && c.before.select_latency.p99_ns == 0 {
        notes
            .push("At least 99 % of the SELECTs were served from SQLite's page cache; the drive was not asked.".into());
    }
    notes
}

fn ratio<'a>(c: &'a Comparison, from: &str, to: &str, metric: &str) -> Option<&'a crate::Gain> {
    c.gains.iter().find(|gain| gain.from == from && gain.to == to && gain.metric == metric)
}

fn published(c: &Comparison) -> Option<String> {
    let measured = ratio(c, "before", "after", "select_per_s")?;
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    Some(format!(
        "Published for SQLite with use-hot-locations on this class of drive, at equal page size: {:+.0} % SELECT \
         throughput. Measured here: {:+.0} % ({:+.0} to {:+.0} %). The published figure includes SQLite's CPU time; the \
         rates here are of the drive alone.",
        percent(PUBLISHED_SELECT_GAIN),
        percent(measured.ratio),
        percent(measured.low),
        percent(measured.high)
    ))
}

/// Whether the page size that the technique needs is itself a gain or a loss.
fn page_size(c: &Comparison) -> Option<String> {
    let gain = ratio(c, "default_page_size", "after", "select_per_s")?;
    let (small, large) = (ByteSize(c.default_page_size.page_bytes), ByteSize(c.after.page_bytes));
    if small == large {
        return None;
    }
    Some(format!(
        "Against pages of {small}, SELECT throughput with pages of {large} at hot locations is {:.2} times ({:.2} to \
         {:.2}): a point SELECT that misses the cache reads a whole page.",
        gain.ratio, gain.low, gain.high
    ))
}

fn clock(c: &Comparison) -> String {
    match c.profile.device.clock {
        Clock::Virtual => "Rates and latencies are drive time on the simulated drive's clock, exact from run to run; \
                           SQLite's CPU time is counted beside them. The drive starts empty: write amplification here is \
                           padding, not yet garbage collection."
            .into(),
        Clock::Wall => "Rates and latencies are wall-clock time on this machine, SQLite's CPU time included. The \
                        operating system is told to forget the database before each SELECT and each transaction, so that \
                        the drive is asked; the file system decides where an offset lies on it."
            .into(),
    }
}
