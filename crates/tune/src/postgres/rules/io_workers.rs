//! `io_workers` (18), `io_max_workers` and `io_min_workers` (from 19 on): processes that read for all sessions.
//!
//! ```text
//!   io_workers, io_max_workers   reads in flight that are enough for the drive (io_concurrency.rs), at most 32
//! ```
//!
//! With `io_method = worker` a worker has one read in flight, so 3 of them, the default of 18, are the depth of the
//! whole server, whatever `effective_io_concurrency` is. From 19 on their number follows the demand between two limits.
//!
//! Source: PostgreSQL documentation, "Asynchronous Behavior"; `src/backend/storage/aio/method_worker.c`, and
//! `MAX_IO_WORKERS` in `src/include/storage/proc.h`.

use flashwise_block::Operation;

use super::super::settings::{PAGE, Setting, Settings};
use super::io_concurrency::{at_most, enough, gain, is_enough};
use super::{Change, Facts, Ruling};
use crate::servers::figures::reach;

/// The most that a server accepts.
const MOST: f64 = 32.0;

/// The workers of a server whose sessions leave reads to them.
pub(super) struct Workers {
    /// The most that there are.
    pub(super) now: f64,
}

impl Workers {
    /// `None` where sessions read themselves.
    pub(super) fn of(settings: &Settings) -> Option<Self> {
        let reads = settings.get("io_method").is_some_and(|method| method.value == "worker");
        let now = settings.number("io_workers").or_else(|| settings.number("io_max_workers"))?;
        reads.then_some(Self { now })
    }

    /// How many are right for the drive.
    pub(super) fn wanted(&self, facts: &Facts<'_>) -> Result<f64, String> {
        let (enough, k) = enough(facts)?;
        Ok(if is_enough(facts, self.now, k) { self.now } else { enough.min(MOST).max(self.now) })
    }
}

/// For the largest number of workers.
pub(super) fn judge(facts: &Facts<'_>, _: &Setting) -> Result<Ruling, String> {
    let Some(workers) = Workers::of(facts.settings) else {
        return Ok(Ruling::Fits("sessions read themselves: io_method is not worker".to_owned()));
    };
    let (_, k) = enough(facts)?;
    let wanted = workers.wanted(facts)?;
    let reached = reach(facts.profile, Operation::Read, PAGE, &[workers.now, wanted]);
    let reached = reached.map_or_else(String::new, |words| format!(": {words}"));
    let reason = format!("each worker has one read in flight for all sessions{reached}");
    if wanted <= workers.now {
        return Ok(Ruling::Fits(reason));
    }
    let ahead = facts.settings.number("effective_io_concurrency").unwrap_or(wanted);
    let mut change = Change::unmeasured(wanted, reason, vec![k.evidence("read_concurrency_8k", "reads in flight")]);
    if let Some(gain) = gain(facts, workers.now.min(ahead).max(1.0), wanted) {
        change.expected_gain = at_most(&gain, ", together with effective_io_concurrency");
        change.expected = Some(gain);
    }
    Ok(Ruling::Change(change))
}

/// For the smallest number of workers.
pub(super) fn least(facts: &Facts<'_>, _: &Setting) -> Result<Ruling, String> {
    Ok(Ruling::Fits(match Workers::of(facts.settings) {
        Some(_) => "workers are started on demand, one each io_worker_launch_interval".to_owned(),
        None => "sessions read themselves: io_method is not worker".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::io_concurrency::of_a_session;
    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn workers_are_as_many_as_the_drive_serves_reads() {
        let bench = Bench::of(18);
        let change = changed(judge(&bench.facts(), bench.setting("io_workers")));
        assert_eq!(change.value, "16");
        let figures = "depth 3 reaches 20 % of the drive's random reads of 8 KiB, 16 91 %, 32 100 %";
        assert!(change.reason.ends_with(figures), "{}", change.reason);
        // Three workers are on the line from 12,000 at 1 to 128,000 at 16.
        let three = 12_000.0 + 116_000.0 * 2.0 / 15.0;
        assert!((change.expected.unwrap().ratio - 128_000.0 / three).abs() < 1e-9);
    }

    #[test]
    fn from_19_on_the_limit_of_the_pool_is_proposed() {
        let mut bench = Bench::of(19);
        assert_eq!(changed(judge(&bench.facts(), bench.setting("io_max_workers"))).value, "16");
        assert!(fits(least(&bench.facts(), bench.setting("io_min_workers"))).contains("on demand"));
        bench.set("io_max_workers", "32");
        assert!(fits(judge(&bench.facts(), bench.setting("io_max_workers"))).contains("32 100 %"));
    }

    #[test]
    fn a_server_takes_32_workers_at_most() {
        let mut bench = Bench::of(18);
        bench.profile.parameters.read_concurrency_8k = flashwise_profile::Figure::certain(64, 60, 70);
        bench.profile.curves.throughput[0].points[1].in_flight = 64;
        bench.profile.curves.throughput[0].points[2].in_flight = 128;
        assert_eq!(changed(judge(&bench.facts(), bench.setting("io_workers"))).value, "32");
    }

    #[test]
    fn reads_ahead_of_a_session_bring_no_more_than_there_are_workers() {
        let mut bench = Bench::of(18);
        bench.set("effective_io_concurrency", "1");
        let change = changed(of_a_session(&bench.facts(), bench.setting("effective_io_concurrency")));
        assert_eq!(change.value, "16");
        assert!(change.expected_gain.ends_with("together with the workers"), "{}", change.expected_gain);
        // One in flight before, 16 workers after.
        assert!((change.expected.unwrap().ratio - 128.0 / 12.0).abs() < 1e-9);
    }

    #[test]
    fn where_sessions_read_themselves_workers_change_nothing() {
        let mut bench = Bench::of(18);
        bench.set("io_method", "io_uring");
        assert!(fits(judge(&bench.facts(), bench.setting("io_workers"))).contains("not worker"));
    }

    #[test]
    fn a_doubtful_k_r_changes_nothing() {
        let mut bench = Bench::of(18);
        bench.profile.parameters.doubt("read_concurrency_8k");
        assert!(untold(judge(&bench.facts(), bench.setting("io_workers"))).contains("k_r"));
    }
}
