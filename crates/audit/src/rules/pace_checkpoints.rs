//! Rule 17: checkpoints leave reads their part of a budget that both share.
//!
//! Where a volume charges reads and writes to one budget, a checkpoint that writes as fast as it can takes what queries
//! need to read. In a second whose requests exceed the budget, each write to the database from there on keeps a read
//! waiting; writes of the log are commits, and are not counted. Fixed: such a write waits for the first second in which
//! the budget has something left. The cost is the time that reads wait for the budget.

use flashwise_block::{Budget, Cost as Charge, Nanos, Operation, RateLimits, TokenBuckets, grouped};
use flashwise_profile::DeviceProfile;

use super::{Check, Seconds, known};
use crate::play::Step;
use crate::request::{Facts, ObservedRequest};
use crate::system::{DatabaseSystem, Shown};
use crate::tally::Tally;

/// The requests that a budget is counted in.
const BLOCK: u64 = 4096;
/// What the budget grants at once, as a time of its refill: none of the public volumes that share one has a longer
/// burst.
const BURST: Nanos = Nanos::millis(10);

struct PaceCheckpoints {
    budget: Budget,
    /// What a write of 4 KiB takes, in reads.
    write_cost: f64,
    seconds: Seconds,
    /// The second of the last read.
    reads: Option<u64>,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let limits = &profile.limits;
    if !known(&limits.shared_budget, "budget that reads and writes share")? {
        return Err("reads and writes do not share a budget".to_owned());
    }
    let per_second = known(&limits.shared_iops_limit, "limit of the shared budget")?.max(1) as f64;
    let write_cost = known(&limits.shared_write_cost, "cost of a write")?;
    let write = limits.shared_cost_of_write(BLOCK).unwrap_or(Charge::per_request(write_cost));
    let budget = Budget { per_second, read: Charge::per_request(1.0), write };
    Ok(Box::new(PaceCheckpoints { budget, write_cost, seconds: Seconds::default(), reads: None }))
}

impl PaceCheckpoints {
    fn cost(&self, is_write: bool, bytes: u64) -> f64 {
        if is_write { self.budget.write.of(bytes) } else { self.budget.read.of(bytes) }
    }
}

impl Check for PaceCheckpoints {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
        let record = &seen.record;
        let is_read = record.operation == Operation::Read && record.length.0 > 0;
        if !is_read && !seen.is_write() {
            return;
        }
        let taken = self.seconds.take(record.at, self.cost(seen.is_write(), record.length.0));
        let second = self.seconds.second(record.at);
        if is_read {
            self.reads = Some(second);
        } else if seen.is_of_database() {
            tally.speaks();
            if taken > self.budget.per_second && self.reads == Some(second) {
                tally.breaks(seen);
            }
        }
    }

    fn hidden(&self, facts: &Facts) -> Option<String> {
        self.seconds.hidden(facts)
    }

    fn statement(&self) -> String {
        format!(
            "checkpoints should leave reads their part of the volume's {} a second, of which a write of 4 KiB takes \
             {:.1}",
            grouped(self.budget.per_second as u64),
            self.write_cost
        )
    }

    fn remedy(&self, shown: &Shown) -> String {
        let settings = shown.settings([
            (DatabaseSystem::Sqlite, "a smaller wal_autocheckpoint"),
            (
                DatabaseSystem::Postgres,
                "checkpoint_completion_target=0.9, a longer checkpoint_timeout with a larger max_wal_size, \
                 checkpoint_flush_after",
            ),
            (
                DatabaseSystem::MariaDb,
                "innodb_io_capacity and innodb_io_capacity_max below the volume's limit, innodb_adaptive_flushing=ON",
            ),
        ]);
        format!("write back more slowly, and put the log on a volume with a budget of its own ({settings})")
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        let first = steps.first().map_or(Nanos(0), |step| step.at);
        let second = |at: Nanos| (at.since(first).0 / Nanos::secs(1).0) as usize;
        let cost = |step: &Step| match step.operation {
            Operation::Read => self.cost(false, step.length),
            _ if step.is_write() => self.cost(true, step.length),
            _ => 0.0,
        };
        let seconds = steps.iter().map(|step| second(step.at)).max().unwrap_or(0) + 1;
        let mut others = vec![0.0; seconds];
        for step in steps.iter().filter(|step| !step.is_broken) {
            others[second(step.at)] += cost(step);
        }
        let mut paced = vec![0.0; seconds];
        let mut earliest = 0;
        let delayed = |step: &Step| {
            if !step.is_broken {
                return *step;
            }
            earliest = earliest.max(second(step.at));
            let left = |second: usize| self.budget.per_second - others.get(second).copied().unwrap_or(0.0);
            while paced.get(earliest).is_some_and(|paced| paced + cost(step) > left(earliest)) {
                earliest += 1;
            }
            if earliest == paced.len() {
                paced.push(0.0);
            }
            // Evenly over the second, as a paced checkpoint is.
            let within = (paced[earliest] / left(earliest)).clamp(0.0, 1.0);
            paced[earliest] += cost(step);
            let at = first.0 + earliest as u64 * Nanos::secs(1).0 + (within * 1e9) as u64;
            Step { at: Nanos(at.max(step.at.0)), ..*step }
        };
        let mut fixed: Vec<Step> = steps.iter().map(delayed).collect();
        fixed.sort_by_key(|step| step.at);
        fixed
    }

    fn budget_time(&self, steps: &[Step]) -> Option<Nanos> {
        let limits = RateLimits { share_of_limit: 1.0, burst: BURST, ..RateLimits::new(vec![self.budget]) };
        let mut buckets = TokenBuckets::new(&limits);
        let (mut now, mut waited) = (Nanos(0), 0_u64);
        for step in steps.iter().filter(|step| step.is_write() || step.operation == Operation::Read) {
            now = now.max(step.at).max(buckets.due(step.is_write(), step.length));
            buckets.take(now, step.is_write(), step.length);
            if !step.is_write() {
                waited = waited.saturating_add(now.since(step.at).0);
            }
        }
        Some(Nanos(waited))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;
    use crate::tests::{check, exactly, log, read, samsung, why_open, write};
    use flashwise_trace::TraceRecord;

    fn profile() -> DeviceProfile {
        let mut profile = samsung();
        profile.limits.shared_budget = exactly(true);
        profile.limits.shared_iops_limit = exactly(100);
        profile.limits.shared_write_cost = exactly(2.0);
        profile
    }

    /// So many of a kind, evenly over a second from `start` on.
    fn evenly(count: u64, start: u64, of: impl Fn(u64) -> TraceRecord) -> Vec<TraceRecord> {
        (0..count)
            .map(|n| TraceRecord { at: Nanos(start * 1_000_000_000 + n * 1_000_000_000 / count), ..of(n) })
            .collect()
    }

    fn by_time(parts: &[Vec<TraceRecord>]) -> Vec<TraceRecord> {
        let mut all = parts.concat();
        all.sort_by_key(|record| record.at);
        all
    }

    #[test]
    fn writes_beyond_the_budget_of_a_second_with_reads_are_counted() {
        let reads = evenly(50, 0, |n| read(n * 40, 8));
        let (storm, calm) = (evenly(100, 0, |n| write(n * 8, 8)), evenly(25, 0, |n| write(n * 8, 8)));
        let storm_of_log = evenly(100, 0, |n| log(n * 8192, 8192));
        // 50 reads and twice 25 writes are the budget. Of 100 writes and 50 reads, the first 40 % fill it.
        check(
            Rule::PaceCheckpoints,
            &profile(),
            &[
                (&by_time(&[reads.clone(), calm]), 0, 25),
                (&by_time(&[reads.clone(), storm.clone()]), 60, 100),
                (&by_time(&[reads, storm_of_log]), 0, 0),
                (&storm, 0, 100),
            ],
        );
    }

    #[test]
    fn separate_budgets_have_no_such_rule() {
        let mut profile = profile();
        profile.limits.shared_budget = exactly(false);
        assert_eq!(why_open(Rule::PaceCheckpoints, &profile, &[]), "reads and writes do not share a budget");
    }

    #[test]
    fn paced_writes_let_reads_pass() {
        let step = |record: &TraceRecord| {
            let seen = ObservedRequest {
                number: 0,
                record: *record,
                kind: Default::default(),
                in_flight: None,
                file_start: None,
            };
            Step { is_broken: seen.is_write(), ..Step::of(&seen) }
        };
        let records = by_time(&[evenly(50, 0, |n| read(n * 40, 8)), evenly(100, 0, |n| write(n * 8, 8))]);
        let steps: Vec<Step> = records.iter().map(step).collect();
        let check = prepare(&profile()).unwrap();
        let fixed = check.fix(&steps);
        assert_eq!(fixed.len(), steps.len());
        let waits = |steps: &[Step]| check.budget_time(steps).unwrap();
        // 2.5 seconds of budget come in one: the last read waits for a second and a half.
        assert!(
            waits(&steps) > Nanos::secs(30) && waits(&fixed) < Nanos::secs(1),
            "{} {}",
            waits(&steps),
            waits(&fixed)
        );
    }
}
