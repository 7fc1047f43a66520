//! Notes for interpreting the numbers.

use flashwise_block::{ByteSize, Clock};

use crate::Comparison;

/// SELECT throughput that the seed paper reports for SQLite with use-hot-locations on this class of drive.
const PUBLISHED_SELECT_GAIN: f64 = 1.29;

/// The notes of a comparison.
pub(crate) fn notes(c: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    if c.applied.is_empty() {
        notes.push("Nothing was applied: default, before and after are the same run.".into());
    }
    if c.workload.rows > 0 {
        notes.extend(published(c));
    }
    notes.extend(page_size(c));
    notes.push(clock(c));
    if c.before.select_latency.count > 0 && c.before.select_latency.p99_ns == 0 {
        notes.push(
            "At least 99 % of the SELECTs were served from SQLite's page cache and did not reach the drive.".into(),
        );
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
         throughput. Measured here: {:+.0} % ({:+.0} to {:+.0} %). The published figure includes SQLite's CPU time; \
         the rates here are those of the drive alone.",
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
        "Compared with pages of {small}, pages of {large} at hot locations give {:.2} times the SELECT throughput \
         ({:.2} to {:.2}): a point SELECT that misses the cache reads a whole page.",
        gain.ratio, gain.low, gain.high
    ))
}

fn clock(c: &Comparison) -> String {
    match c.profile.device.clock {
        Clock::Virtual => "Rates and latencies are on the simulated drive's clock and repeat exactly; SQLite's CPU \
                           time is counted separately. The drive starts empty: write amplification here comes from \
                           padding, not from garbage collection."
            .into(),
        Clock::Wall => "Rates and latencies are wall-clock time on this machine, SQLite's CPU time included. The \
                        database is dropped from the system's page cache before each SELECT and each transaction, so \
                        that requests reach the drive; the file system decides where an offset is on the drive."
            .into(),
    }
}
