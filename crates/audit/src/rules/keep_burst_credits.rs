//! Rule 15: commits do not spend the I/O credits of a volume.
//!
//! A volume with credits serves more than its long-run rate until they are spent, half an hour of it on a full gp2
//! bucket, and then no more than that rate. A commit that is flushed alone takes an operation for some KiB. In a second
//! whose requests exceed the long-run rate, each such commit spends credits that a burst of queries will need. Counted
//! in whole seconds, in which volumes account for credits. The rate is the first thing that a user pays for, so what is
//! within it is not counted.

use flashwise_block::{Nanos, Operation, grouped};
use flashwise_profile::DeviceProfile;

use super::{Check, Seconds, charged, known, refill_time};
use crate::fix::{flush_by, join};
use crate::play::Step;
use crate::request::{Facts, ObservedRequest};
use crate::system::{DatabaseSystem, Shown};
use crate::tally::Tally;

/// A flush that closes no more than this is that of one small transaction: one page of InnoDB, whose pages are the
/// longest of the three databases.
const COMMIT_MAX: u64 = 16 << 10;

struct KeepBurstCredits {
    credits: u64,
    per_second: u64,
    unit: Option<u64>,
    seconds: Seconds,
    /// Bytes written since the last flush; `None` before the first.
    written: Option<u64>,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let limits = &profile.limits;
    let credits = known(&limits.burst_operations, "I/O credits")?;
    let per_second = known(&limits.write_iops_limit, "limit of write IOPS")?.max(1);
    let unit = limits.request_unit_bytes.known();
    Ok(Box::new(KeepBurstCredits { credits, per_second, unit, seconds: Seconds::default(), written: None }))
}

impl Check for KeepBurstCredits {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
        let record = &seen.record;
        let moves_data = record.operation == Operation::Read || seen.is_write();
        let units = if moves_data { charged(record.length.0, self.unit) } else { 0 };
        let taken = self.seconds.take(record.at, units as f64);
        if seen.is_write() {
            self.written = self.written.map(|bytes| bytes.saturating_add(record.length.0));
        }
        if record.operation != Operation::Flush && !(seen.is_write() && record.fua) {
            return;
        }
        if let Some(bytes) = self.written.replace(0) {
            tally.speaks();
            if bytes <= COMMIT_MAX && taken > self.per_second as f64 {
                tally.breaks(seen);
            }
        }
    }

    fn hidden(&self, facts: &Facts) -> Option<String> {
        self.seconds.hidden(facts)
    }

    fn statement(&self) -> String {
        format!(
            "commits should not spend the volume's {} I/O credits: beyond {} requests a second, each flush of a small \
             transaction takes one",
            grouped(self.credits),
            grouped(self.per_second)
        )
    }

    fn remedy(&self, shown: &Shown) -> String {
        let settings = shown.settings([
            (DatabaseSystem::Sqlite, "longer transactions, or with that risk synchronous=NORMAL in WAL mode"),
            (DatabaseSystem::Postgres, "commit_delay and commit_siblings, or with that risk synchronous_commit=off"),
            (
                DatabaseSystem::MariaDb,
                "binlog_commit_wait_count and binlog_commit_wait_usec, or with that risk \
                 innodb_flush_log_at_trx_commit=2",
            ),
        ]);
        format!("commit several transactions with one flush, or put the log on a volume of its own ({settings})")
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        let unit = self.unit.unwrap_or(COMMIT_MAX).max(COMMIT_MAX);
        let all: Vec<Step> =
            flush_by(steps, unit).into_iter().map(|step| Step { is_broken: step.is_write(), ..step }).collect();
        join(&all, unit)
    }

    fn budget_time(&self, steps: &[Step]) -> Option<Nanos> {
        let moved = steps.iter().filter(|step| step.is_write() || step.operation == Operation::Read);
        let units: u64 = moved.map(|step| charged(step.length, self.unit)).sum();
        Some(refill_time(units as f64, self.per_second as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;
    use crate::tests::{check, exactly, flush, log, samsung, why_open};
    use flashwise_block::ByteSize;
    use flashwise_trace::TraceRecord;

    fn profile() -> DeviceProfile {
        let mut profile = samsung();
        profile.limits.burst_operations = exactly(1_000);
        profile.limits.write_iops_limit = exactly(10);
        profile
    }

    /// Commits so many ms apart.
    fn commits(count: u64, ms: u64) -> Vec<TraceRecord> {
        let commit =
            |n: u64| [log(n * 4096, 4096), flush()].map(|record| TraceRecord { at: Nanos::millis(n * ms), ..record });
        (0..count).flat_map(commit).collect()
    }

    #[test]
    fn only_commits_beyond_the_long_run_rate_of_their_second_are_counted() {
        // 50 in each of two seconds, ten of each within the rate; the first flush of a trace is not judged.
        check(Rule::KeepBurstCredits, &profile(), &[(&commits(100, 20), 80, 99), (&commits(20, 100), 0, 19)]);
        let large: Vec<_> = commits(100, 20);
        let large: Vec<_> = large.into_iter().map(|r| TraceRecord { length: ByteSize(r.length.0 * 16), ..r }).collect();
        check(Rule::KeepBurstCredits, &profile(), &[(&large, 0, 99)]);
    }

    #[test]
    fn without_times_or_credits_nothing_is_judged() {
        let why = why_open(Rule::KeepBurstCredits, &profile(), &commits(5, 0));
        assert_eq!(why, "the trace has no times");
        let why = why_open(Rule::KeepBurstCredits, &samsung(), &commits(5, 1));
        assert_eq!(why, "the profile has no I/O credits");
    }
}
