//! Rule 19: no bulk data in the first allocation unit of a card that keeps it open beside the others.
//!
//! Some cards keep their first unit open for the tables of a FAT file system, which are small and written again and
//! again. What is written there goes to a log, which is merged each time it is full: bulk data costs a merge for each
//! unit of it, where elsewhere it would become the unit itself. Bulk is what is longer than a cluster of such a file
//! system, 32 KiB at most.

use flashwise_block::{ByteSize, Nanos};
use flashwise_profile::DeviceProfile;

use super::keep_units_open::{hides_places, on_card};
use super::{Check, known, known_size};
use crate::play::Step;
use crate::request::{Facts, ObservedRequest};
use crate::system::Shown;
use crate::tally::Tally;

/// The longest cluster of FAT32 that all systems read (Microsoft, FAT specification 1.03).
const CLUSTER_MAX: u64 = 32 << 10;

struct SpareFirstUnit {
    unit: u64,
    merge: Nanos,
}

impl SpareFirstUnit {
    fn is_bulk(&self, offset: u64, length: u64) -> bool {
        offset < self.unit && length > CLUSTER_MAX
    }

    fn is_broken(&self, step: &Step) -> bool {
        step.is_write() && on_card(step.space).is_some() && self.is_bulk(step.offset, step.length)
    }
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let card = &profile.card;
    let unit = known_size(&card.allocation_unit_bytes, "allocation unit")?;
    if !known(&card.special_first_unit, "first unit")? {
        return Err("the card's first unit is as the others".to_owned());
    }
    let merge = known(&card.merge_ns, "time of a merge")?;
    Ok(Box::new(SpareFirstUnit { unit, merge: Nanos(merge) }))
}

impl Check for SpareFirstUnit {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
        let offset = seen.record.offset.0;
        if on_card(seen.space()).is_none() || !seen.is_write() || offset >= self.unit {
            return;
        }
        tally.speaks();
        if self.is_bulk(offset, seen.record.length.0) {
            tally.breaks(seen);
        }
    }

    fn hidden(&self, facts: &Facts) -> Option<String> {
        hides_places(facts)
    }

    fn statement(&self) -> String {
        format!("bulk data should not be in the card's first {}, which it keeps for small writes", ByteSize(self.unit))
    }

    fn remedy(&self, _: &Shown) -> String {
        format!("start the partition of the data at {} or behind", ByteSize(self.unit))
    }

    /// The same data one unit further on.
    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        let move_on = |step: &Step| match self.is_broken(step) {
            true => Step { offset: step.offset + self.unit, ..*step },
            false => *step,
        };
        steps.iter().map(move_on).collect()
    }

    fn budget_time(&self, steps: &[Step]) -> Option<Nanos> {
        let bulk: u64 = steps.iter().filter(|step| self.is_broken(step)).map(|step| step.length).sum();
        Some(Nanos((bulk as f64 / self.unit as f64 * self.merge.0 as f64) as u64))
    }

    fn is_paid_in_merges(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;
    use crate::tests::golden::golden;
    use crate::tests::{card, check, exactly, on_device, one_by_one, why_open};

    const MIB: u64 = 1 << 20;

    fn profile() -> DeviceProfile {
        let mut profile = card();
        profile.card.special_first_unit = exactly(true);
        profile
    }

    #[test]
    fn bulk_data_is_what_is_longer_than_a_cluster() {
        let table = on_device(MIB, 32 << 10);
        let bulk = on_device(MIB, 64 << 10);
        let elsewhere = on_device(4 * MIB, MIB);
        check(Rule::SpareFirstUnit, &profile(), &[(&[table, bulk, elsewhere], 1, 2)]);
        let why = why_open(Rule::SpareFirstUnit, &card(), &[]);
        assert_eq!(why, "the card's first unit is as the others");
    }

    #[test]
    fn a_unit_of_bulk_data_costs_a_merge() {
        let bulk =
            |from: u64| one_by_one(&(0..16).map(|n| on_device(from + n % 8 * MIB / 2, MIB / 2)).collect::<Vec<_>>());
        let found = golden(Rule::SpareFirstUnit, &profile(), &bulk(0), &bulk(4 * MIB));
        assert_eq!((found.violations, found.cost.time_ns), (16, Some(2 * 430_000_000)));
    }
}
