//! `effective_io_concurrency` and `maintenance_io_concurrency`: reads that are kept in flight.
//!
//! ```text
//!   effective_io_concurrency     k_r at 8 KiB ÷ sessions that read at once, at most 1000
//!   maintenance_io_concurrency   k_r at 8 KiB, at most 1000
//! ```
//!
//! k_r is where more reads in flight bring no more throughput. The first is each session's own, so sessions share k_r;
//! the second is of maintenance "done on behalf of many client sessions".
//!
//! Source: PostgreSQL documentation, "Asynchronous Behavior": "if the database is often busy with multiple queries
//! issued in concurrent sessions, lower values may be sufficient"; both range from 0 to 1000.

use flashwise_block::Operation;

use super::super::settings::{PAGE, Setting};
use super::{Change, Facts, Ruling, UNKNOWN};
use crate::Gain;
use crate::servers::figures::{Measure, certain, iops, reach};

const MOST: f64 = 1000.0;

pub(super) fn of_a_session(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    let mut ruling = for_sessions(facts, now, facts.sessions)?;
    if let Ruling::Change(change) = &mut ruling
        && let Some(gain) = deeper(facts, now, &change.value)
    {
        change.expected_gain = format!(
            "at most {:.1} times as many pages per second ({:.1} to {:.1}) in an uncached bitmap heap scan",
            gain.ratio, gain.low, gain.high
        );
        change.expected = Some(gain);
    }
    Ok(ruling)
}

pub(super) fn of_maintenance(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    for_sessions(facts, now, 1)
}

fn for_sessions(facts: &Facts<'_>, now: &Setting, sessions: u32) -> Result<Ruling, String> {
    let k = certain(&facts.profile.parameters.read_concurrency_8k, "k_r at 8 KiB")?;
    let share = |reads: f64| (reads / f64::from(sessions.max(1))).ceil().clamp(1.0, MOST);
    let wanted = Measure { value: share(k.value), low: share(k.low), high: share(k.high) };
    let among = if sessions > 1 { format!(", shared by {sessions} sessions") } else { String::new() };
    let present = now.value.parse::<f64>().map_err(|_| format!("{} is not a number", now.value))?;
    // Of all sessions together.
    let depths = [present, wanted.value].map(|reads| (reads * f64::from(sessions.max(1))).max(1.0));
    let reach =
        reach(facts.profile, Operation::Read, PAGE, &depths).map_or_else(String::new, |words| format!("; {words}"));
    let reason = format!(
        "the drive serves k_r = {} reads of 8 KiB concurrently ({} to {}){among}{reach}",
        k.value, k.low, k.high
    );
    if wanted.contains(present) {
        return Ok(Ruling::Fits(reason));
    }
    Ok(Ruling::Change(Change {
        value: format!("{}", wanted.value),
        reason,
        evidence: vec![k.evidence("read_concurrency_8k", "reads in flight")],
        expected: None,
        expected_gain: UNKNOWN.to_owned(),
    }))
}

/// The gain in throughput with that many reads ahead in flight, besides the one that is waited for.
fn deeper(facts: &Facts<'_>, now: &Setting, wanted: &str) -> Option<Gain> {
    let reads = |text: &str| text.parse::<f64>().ok().map(|ahead| ahead + 1.0);
    let rate = |depth| iops(facts.profile, Operation::Read, PAGE, depth);
    let ratio = rate(reads(wanted)?)?.over(rate(reads(&now.value)?)?);
    Some(Gain {
        metric: "pages_per_s".to_owned(),
        from: "before".to_owned(),
        to: "after".to_owned(),
        ratio: ratio.value,
        low: ratio.low,
        high: ratio.high,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn one_session_gets_all_of_k_r_and_several_share_it() {
        let bench = Bench::new();
        let change = changed(of_a_session(&bench.facts(), bench.setting("effective_io_concurrency")));
        assert_eq!(change.value, "16");
        let figures = "depth 1 reaches 9 % of the drive's random reads of 8 KiB, 16 91 %, 32 100 %";
        assert!(change.reason.ends_with(figures), "{}", change.reason);
        let shared = Facts { sessions: 5, ..bench.facts() };
        assert_eq!(changed(of_a_session(&shared, bench.setting("effective_io_concurrency"))).value, "4");
        assert_eq!(changed(of_maintenance(&shared, bench.setting("maintenance_io_concurrency"))).value, "16");
        let many = Facts { sessions: 500, ..bench.facts() };
        assert!(fits(of_a_session(&many, bench.setting("effective_io_concurrency"))).contains("500 sessions"));
    }

    #[test]
    fn what_it_brings_at_most_is_read_off_the_curve() {
        let bench = Bench::new();
        let gain = changed(of_a_session(&bench.facts(), bench.setting("effective_io_concurrency"))).expected.unwrap();
        // One ahead is two in flight: on the line from 12,000 at 1 to 128,000 at 16; 17 are beyond it, 17/… of 16 to
        // 32.
        let two = 12_000.0 + 116_000.0 / 15.0;
        let seventeen = 128_000.0 + 12_000.0 / 16.0;
        assert!((gain.ratio - seventeen / two).abs() < 1e-9 && gain.low < gain.ratio && gain.ratio < gain.high);
    }

    #[test]
    fn a_doubtful_k_r_changes_nothing() {
        let mut bench = Bench::new();
        bench.profile.parameters.doubt("read_concurrency_8k");
        assert!(untold(of_a_session(&bench.facts(), bench.setting("effective_io_concurrency"))).contains("k_r"));
    }
}
