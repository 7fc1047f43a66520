//! Rule 16: adjacent requests fill the unit that a volume charges.
//!
//! A volume charges a request of up to its unit as one operation, however short it is. A request that starts where the
//! one of its kind before it ended, and that fits the same unit with it, could have been made with it for nothing. A
//! write behind a flush could not: the flush had to be waited for.

use flashwise_block::{ByteSize, Nanos, Operation};
use flashwise_profile::DeviceProfile;

use super::{Check, charged, hides_charges, in_brackets, known_size, refill_time};
use crate::fix::join;
use crate::play::Step;
use crate::request::{Facts, ObservedRequest, Space};
use crate::system::{DatabaseSystem, Shown};
use crate::tally::Tally;

/// Requests that could have been one.
#[derive(Clone, Copy)]
struct Run {
    space: Space,
    end: u64,
    bytes: u64,
}

struct FillRequestUnits {
    unit: u64,
    /// Operations a second of reads and writes; `None` where no limit of them is certain.
    per_second: [Option<u64>; 2],
    runs: [Option<Run>; 2],
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let limits = &profile.limits;
    let unit = known_size(&limits.request_unit_bytes, "unit of a charged request")?;
    let shared = limits.shared_iops_limit.known();
    let per_second = [&limits.read_iops_limit, &limits.write_iops_limit].map(|limit| limit.known().or(shared));
    if per_second == [None; 2] {
        return Err("the profile has no certain limit of IOPS".to_owned());
    }
    Ok(Box::new(FillRequestUnits { unit, per_second, runs: [None; 2] }))
}

impl Check for FillRequestUnits {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
        if seen.record.operation == Operation::Flush {
            self.runs[1] = None;
        }
        let kind = usize::from(seen.is_write());
        let moves_data = seen.is_write() || seen.record.operation == Operation::Read;
        if !moves_data || seen.record.length.0 == 0 || self.per_second[kind].is_none() {
            return;
        }
        tally.speaks();
        let bytes = seen.record.length.0;
        let run = self.runs[kind].filter(|run| {
            run.space == seen.space() && run.end == seen.record.offset.0 && run.bytes + bytes <= self.unit
        });
        if run.is_some() {
            tally.breaks(seen);
        }
        let run = Run { space: seen.space(), end: seen.end(), bytes: bytes + run.map_or(0, |run| run.bytes) };
        self.runs[kind] = (!seen.record.fua).then_some(run);
    }

    fn hidden(&self, facts: &Facts) -> Option<String> {
        hides_charges(facts)
    }

    fn statement(&self) -> String {
        let unit = ByteSize(self.unit);
        format!("adjacent requests should be one of up to {unit}: the volume charges each as one operation")
    }

    fn remedy(&self, shown: &Shown) -> String {
        let larger = if shown.has_longest_pages() { "" } else { "a larger page_size" };
        let settings = shown.settings([
            (DatabaseSystem::Sqlite, larger),
            (DatabaseSystem::Postgres, "io_combine_limit for reads, checkpoint_flush_after and wal_writer_flush_after"),
            (DatabaseSystem::MariaDb, "innodb_read_ahead_threshold for reads, innodb_flush_neighbors=1 for writes"),
        ]);
        format!("read and write adjacent pages in requests of up to {}{}", ByteSize(self.unit), in_brackets(&settings))
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        join(steps, self.unit)
    }

    fn budget_time(&self, steps: &[Step]) -> Option<Nanos> {
        let of = |is_write: bool, per_second: Option<u64>| {
            let kind = steps.iter().filter(|step| match is_write {
                true => step.is_write(),
                false => step.operation == Operation::Read,
            });
            let units: u64 = kind.map(|step| charged(step.length, Some(self.unit))).sum();
            per_second.map_or(Nanos(0), |rate| refill_time(units as f64, rate.max(1) as f64))
        };
        Some(of(false, self.per_second[0]) + of(true, self.per_second[1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;
    use crate::tests::{check, exactly, flush, read, samsung, why_open, write};

    fn profile() -> DeviceProfile {
        let mut profile = samsung();
        profile.limits.request_unit_bytes = exactly(64 << 10);
        profile.limits.read_iops_limit = exactly(3_000);
        profile
    }

    #[test]
    fn what_continues_a_request_within_the_unit_is_counted() {
        let scan: Vec<_> = (0..16).map(|n| read(n * 8, 8)).collect();
        let jumps: Vec<_> = (0..16).map(|n| read(n * 24, 8)).collect();
        // Of a unit of 64 KiB the first of eight pages is needed.
        check(Rule::FillRequestUnits, &profile(), &[(&scan, 14, 16), (&jumps, 0, 16)]);
        // No limit of writes is known, so nothing is said of them.
        let writes: Vec<_> = (0..16).map(|n| write(n * 8, 8)).collect();
        check(Rule::FillRequestUnits, &profile(), &[(&writes, 0, 0)]);
        let mut both = profile();
        both.limits.write_iops_limit = exactly(3_000);
        let flushed: Vec<_> = (0..16).flat_map(|n| [write(n * 8, 8), flush()]).collect();
        check(Rule::FillRequestUnits, &both, &[(&writes, 14, 16), (&flushed, 0, 16)]);
    }

    #[test]
    fn a_volume_without_such_a_unit_has_no_such_rule() {
        let mut profile = profile();
        profile.limits.request_unit_bytes = flashwise_profile::Figure::absent();
        let why = why_open(Rule::FillRequestUnits, &profile, &[]);
        assert_eq!(why, "the drive has no unit of a charged request");
        profile.limits.request_unit_bytes = exactly(64 << 10);
        profile.limits.read_iops_limit.doubt();
        let why = why_open(Rule::FillRequestUnits, &profile, &[]);
        assert_eq!(why, "the profile has no certain limit of IOPS");
    }
}
