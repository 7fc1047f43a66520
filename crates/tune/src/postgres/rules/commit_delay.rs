//! `commit_delay`: how long a commit waits for others to share its flush.
//!
//! ```text
//!   commit_delay   half of the time of a flush, in µs
//! ```
//!
//! It applies only while `commit_siblings` other transactions are active (5 by default), so a single session does not
//! wait.
//!
//! Source: PostgreSQL documentation, "WAL Configuration": "A value of half of the average time the program reports it
//! takes to flush after a single 8kB write operation is often the most effective setting for commit_delay"; the program
//! is `pg_test_fsync`, and the profile's `flush_ns` is the same time without a file system, a lower bound.

use super::super::settings::Setting;
use super::{Change, Facts, Ruling};
use crate::servers::figures::certain;

/// The most that may be set, µs.
const MOST: f64 = 100_000.0;

pub(super) fn judge(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    let flush = &facts.profile.parameters.flush_ns;
    let present = now.value.parse::<f64>().map_err(|_| format!("{} is not a number", now.value))?;
    if flush.verdict == flashwise_profile::Verdict::Absent && present == 0.0 {
        return Ok(Ruling::Fits("a flush of this drive takes no time".to_owned()));
    }
    let flush = certain(flush, "time of a flush")?.times(1e-3);
    let half = flush.times(0.5);
    let reason = format!(
        "a flush takes {:.0} µs on this drive ({:.0} to {:.0}); a delay of half of that is usually the most effective",
        flush.value, flush.low, flush.high
    );
    let wanted = half.value.round().min(MOST);
    if half.contains(present) || wanted == present {
        return Ok(Ruling::Fits(reason));
    }
    Ok(Ruling::Change(Change::unmeasured(format!("{wanted}"), reason, vec![flush.evidence("flush_ns", "µs")])))
}

#[cfg(test)]
mod tests {
    use flashwise_profile::Figure;

    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn it_is_half_a_flush() {
        let mut bench = Bench::new();
        assert_eq!(changed(judge(&bench.facts(), bench.setting("commit_delay"))).value, "370");
        bench.set("commit_delay", "360");
        assert!(fits(judge(&bench.facts(), bench.setting("commit_delay"))).contains("740 µs"));
        bench.profile.parameters.flush_ns = Figure::certain(10_000_000_000, 9_000_000_000, 11_000_000_000);
        assert_eq!(changed(judge(&bench.facts(), bench.setting("commit_delay"))).value, "100000");
    }

    #[test]
    fn a_drive_whose_flushes_take_no_time_needs_none_and_a_doubtful_one_tells_nothing() {
        let mut bench = Bench::new();
        bench.profile.parameters.flush_ns = Figure::absent();
        assert!(fits(judge(&bench.facts(), bench.setting("commit_delay"))).contains("no time"));
        bench.profile.parameters.flush_ns = Figure::inconclusive(1, 1, 1);
        assert!(untold(judge(&bench.facts(), bench.setting("commit_delay"))).contains("no certain time"));
    }
}
