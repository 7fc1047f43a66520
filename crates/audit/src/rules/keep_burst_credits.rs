//! Rule 15: commits do not spend the I/O credits of a volume.
//!
//! A volume with credits serves more than its long-run rate until they are spent, half an hour of it on a full gp2
//! bucket, and then no more than that rate. A commit that is flushed alone takes an operation for some KiB. In a second
//! whose requests exceed the long-run rate, each such commit spends credits that a burst of queries will need. Counted
//! in whole seconds, in which volumes account for credits. The rate is the first thing that a user pays for, so what is
//! within it is not counted. Where writes have credits of their own, reads do not count.

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
    /// Whether reads take credits too.
    with_reads: bool,
    unit: Option<u64>,
    seconds: Seconds,
    /// Bytes written since the last flush; `None` before the first.
    written: Option<u64>,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let limits = &profile.limits;
    let of_writes = limits.write_burst_operations.known();
    if of_writes.is_none() && limits.shared_budget.known() == Some(false) {
        return Err("the profile has no I/O credits of writes".to_owned());
    }
    let credits = of_writes.map_or_else(|| known(&limits.burst_operations, "I/O credits"), Ok)?;
    let with_reads = of_writes.is_none();
    let per_second = known(&limits.write_iops_limit, "limit of write IOPS")?.max(1);
    let unit = limits.request_unit_bytes.known();
    let seconds = Seconds::default();
    Ok(Box::new(KeepBurstCredits { credits, per_second, with_reads, unit, seconds, written: None }))
}

impl KeepBurstCredits {
    /// What a request of so many bytes takes.
    fn credits_of(&self, operation: Operation, length: u64) -> u64 {
        let takes_credits = match operation {
            Operation::Write => length > 0,
            Operation::Read => self.with_reads,
            _ => false,
        };
        if takes_credits { charged(length, self.unit) } else { 0 }
    }
}

impl Check for KeepBurstCredits {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
        let record = &seen.record;
        let units = self.credits_of(record.operation, record.length.0);
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
        let sqlite = match shown.is_sqlite_in_wal_mode() {
            true => "longer transactions, or with that risk synchronous=NORMAL",
            false => "longer transactions, or with that risk journal_mode=WAL and synchronous=NORMAL",
        };
        let settings = shown.settings([
            (DatabaseSystem::Sqlite, sqlite),
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
        let units: u64 = steps.iter().map(|step| self.credits_of(step.operation, step.length)).sum();
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
    fn reads_take_no_credits_of_writes() {
        let read = |write: &TraceRecord| TraceRecord { operation: Operation::Read, ..*write };
        let all: Vec<_> = commits(100, 100);
        let both: Vec<_> = all.chunks(2).flat_map(|commit| [read(&commit[0]), commit[0], commit[1]]).collect();
        // Ten reads and ten writes a second: the last five commits of each are beyond ten.
        check(Rule::KeepBurstCredits, &profile(), &[(&both, 50, 99)]);
        let mut own = profile();
        own.limits.write_burst_operations = exactly(1_000);
        check(Rule::KeepBurstCredits, &own, &[(&both, 0, 99)]);
        own.limits.write_burst_operations = flashwise_profile::Figure::unknown();
        own.limits.shared_budget = exactly(false);
        assert_eq!(why_open(Rule::KeepBurstCredits, &own, &both), "the profile has no I/O credits of writes");
    }

    #[test]
    fn without_times_or_credits_nothing_is_judged() {
        let why = why_open(Rule::KeepBurstCredits, &profile(), &commits(5, 0));
        assert_eq!(why, "the trace has no times");
        let why = why_open(Rule::KeepBurstCredits, &samsung(), &commits(5, 1));
        assert_eq!(why, "the profile has no I/O credits");
    }
}
