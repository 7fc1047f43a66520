//! `effective_io_concurrency` and `maintenance_io_concurrency`: reads that are kept in flight.
//!
//! ```text
//!   enough                       the depth that reaches 90 % of the drive's random reads of 8 KiB, at least k_r
//!   effective_io_concurrency     enough ÷ sessions that read at once, at most 1000
//!   maintenance_io_concurrency   enough, at most 1000
//! ```
//!
//! On a volume with limits, enough is its long-run rate × the latency of a single read (Little's law): more in flight
//! only wait in its queue, and the curve may be that of a burst.
//!
//! The first is each session's own, so sessions share what is enough; the second is of maintenance "done on behalf of
//! many client sessions". From 18 on, a server with `io_method = worker` has no more reads in flight than workers
//! (`io_workers.rs`).
//!
//! Source: PostgreSQL documentation, "Asynchronous Behavior": "if the database is often busy with multiple queries
//! issued in concurrent sessions, lower values may be sufficient"; both range from 0 to 1000.

use flashwise_block::Operation;

use super::super::settings::{PAGE, Setting};
use super::io_workers::Workers;
use super::{Change, Facts, Ruling};
use crate::Gain;
use crate::servers::figures::{DEEP_ENOUGH, Measure, certain, depth_reaching, iops, reach, share_at};
use crate::servers::granted::{Granted, granted};

const MOST: f64 = 1000.0;

pub(super) fn of_a_session(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    let mut ruling = for_sessions(facts, now, facts.sessions)?;
    if let Ruling::Change(change) = &mut ruling
        && let Some(gain) = deeper(facts, now, &change.value)
    {
        let together = if Workers::of(facts.settings).is_some() { ", together with the workers" } else { "" };
        change.expected_gain = at_most(&gain, together);
        change.expected = Some(gain);
    }
    Ok(ruling)
}

pub(super) fn of_maintenance(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    for_sessions(facts, now, 1)
}

/// The volume's long-run rate of reads of a page, and how many in flight it takes: rate × latency of a single read;
/// `None` where the profile has no limit of reads.
fn of_volume(facts: &Facts<'_>) -> Result<Option<(Granted, Measure)>, String> {
    let Some(granted) = granted(facts.profile, Operation::Read, PAGE)? else { return Ok(None) };
    let single =
        iops(facts.profile, Operation::Read, PAGE, 1.0).ok_or("the profile has no latency of reads of 8 KiB")?;
    let reads = granted.rate.over(single);
    Ok(Some((granted, reads)))
}

/// Reads of a page in flight that are enough for the drive, with k_r, or for the volume.
pub(super) fn enough(facts: &Facts<'_>) -> Result<(f64, Measure), String> {
    if let Some((_, reads)) = of_volume(facts)? {
        return Ok((reads.value.ceil().max(1.0), reads));
    }
    let k = certain(&facts.profile.parameters.read_concurrency_8k, "k_r at 8 KiB")?;
    let depth = depth_reaching(facts.profile, Operation::Read, PAGE, DEEP_ENOUGH);
    Ok((depth.unwrap_or(k.value).max(k.value), k))
}

/// Whether so many reads in flight are enough: by the drive's curve, or k_r where the profile has none.
pub(super) fn is_enough(facts: &Facts<'_>, in_flight: f64, k: Measure) -> bool {
    if let Ok(Some(_)) = of_volume(facts) {
        return in_flight >= k.low;
    }
    match share_at(facts.profile, Operation::Read, PAGE, in_flight) {
        Some(share) => share >= DEEP_ENOUGH,
        None => in_flight >= k.low,
    }
}

fn for_sessions(facts: &Facts<'_>, now: &Setting, sessions: u32) -> Result<Ruling, String> {
    let (enough, k) = enough(facts)?;
    let sessions = f64::from(sessions.max(1));
    let wanted = (enough / sessions).ceil().clamp(1.0, MOST);
    let present = now.value.parse::<f64>().map_err(|_| format!("{} is not a number", now.value))?;
    // Of all sessions together.
    let [present, in_flight] = [present, wanted].map(|reads| (reads * sessions).max(1.0));
    let among = if sessions > 1.0 { format!(", shared by {sessions} sessions") } else { String::new() };
    let reached = reach(facts.profile, Operation::Read, PAGE, &[present, in_flight]);
    let reached = reached.map_or_else(String::new, |words| format!("; {words}"));
    let (reason, evidence) = match of_volume(facts)? {
        Some((granted, reads)) => (
            format!(
                "the volume grants {:.0} reads of 8 KiB per second in the long run; at the latency of a single read, \
                 {:.1} in flight take them all ({:.1} to {:.1}){among}",
                granted.rate.value, reads.value, reads.low, reads.high
            ),
            vec![granted.evidence],
        ),
        None => (
            format!(
                "the drive serves k_r = {} reads of 8 KiB concurrently ({} to {}){among}{reached}",
                k.value, k.low, k.high
            ),
            vec![k.evidence("read_concurrency_8k", "reads in flight")],
        ),
    };
    if is_enough(facts, present, k) {
        return Ok(Ruling::Fits(reason));
    }
    Ok(Ruling::Change(Change::unmeasured(format!("{wanted}"), reason, evidence)))
}

/// The gain in throughput of one session with that many reads ahead.
fn deeper(facts: &Facts<'_>, now: &Setting, wanted: &str) -> Option<Gain> {
    // The curve of a volume may be that of its burst.
    if of_volume(facts).ok()?.is_some() {
        return None;
    }
    let ahead = |text: &str| text.parse::<f64>().ok();
    let (before, after) = match Workers::of(facts.settings) {
        // The one that is waited for is read by the session itself.
        None => (ahead(&now.value)? + 1.0, ahead(wanted)? + 1.0),
        Some(workers) => (ahead(&now.value)?.min(workers.now), ahead(wanted)?.min(workers.wanted(facts).ok()?)),
    };
    gain(facts, before.max(1.0), after)
}

/// Reads a second with so many in flight, after beside before.
pub(super) fn gain(facts: &Facts<'_>, before: f64, after: f64) -> Option<Gain> {
    let rate = |depth| iops(facts.profile, Operation::Read, PAGE, depth);
    let ratio = rate(after)?.over(rate(before)?);
    Some(Gain {
        metric: "pages_per_s".to_owned(),
        from: "before".to_owned(),
        to: "after".to_owned(),
        ratio: ratio.value,
        low: ratio.low,
        high: ratio.high,
    })
}

/// A gain in words.
pub(super) fn at_most(gain: &Gain, condition: &str) -> String {
    format!(
        "at most {:.1} times as many pages per second ({:.1} to {:.1}) in an uncached bitmap heap scan{condition}",
        gain.ratio, gain.low, gain.high
    )
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
    fn a_volume_gets_its_rate_times_the_latency_of_a_read() {
        let mut bench = Bench::new();
        // 12,000 reads a second one at a time; a limit of 40,000 takes 3.3 of them.
        bench.profile.limits.read_iops_limit = flashwise_profile::Figure::certain(40_000, 40_000, 40_000);
        let change = changed(of_maintenance(
            &bench.facts(),
            &Setting { value: "1".into(), ..bench.setting("effective_io_concurrency").clone() },
        ));
        assert_eq!((change.value.as_str(), change.evidence[0].figure.as_str()), ("4", "read_iops_limit"));
        let session = of_a_session(&bench.facts(), bench.setting("effective_io_concurrency"));
        assert_eq!(changed(session).expected, None, "nothing is promised from the curve of a burst");
        bench.profile.limits.read_iops_limit = flashwise_profile::Figure::inconclusive(40_000, 0, 40_000);
        let why = untold(of_a_session(&bench.facts(), bench.setting("effective_io_concurrency")));
        assert!(why.contains("may be a burst"), "{why}");
    }

    #[test]
    fn a_doubtful_k_r_changes_nothing() {
        let mut bench = Bench::new();
        bench.profile.parameters.doubt("read_concurrency_8k");
        assert!(untold(of_a_session(&bench.facts(), bench.setting("effective_io_concurrency"))).contains("k_r"));
    }
}
