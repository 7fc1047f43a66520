//! Rule 18: writes stay within the allocation units that a memory card keeps open.
//!
//! A card that maps whole units keeps a few of them open, of which some may be written in any order. A write to another
//! one makes it merge the unit that was not written for longest: as long as programming a whole unit, whatever the
//! length of the write. Whether a unit is open follows from the writes before; at the start of a trace none is, and the
//! first writes are not counted until as many units were written as stay open.
//!
//! Source: the model of Kim et al. and Bergmann that `ftl.mapping = "block"` simulates, which the learner's figures are
//! of.

use flashwise_block::{ByteSize, Nanos};
use flashwise_profile::DeviceProfile;

use super::{Check, known, known_size};
use crate::play::Step;
use crate::request::{Facts, ObservedRequest, Space};
use crate::system::{DatabaseSystem, Shown};
use crate::tally::Tally;

/// Units that are open, as the card keeps them.
#[derive(Clone, Debug)]
pub(super) struct Units {
    size: u64,
    open_max: usize,
    random_max: usize,
    /// Device, unit, where the next write in order starts, and whether it was written in another order; the one written
    /// last at the end.
    open: Vec<(Option<u32>, u64, u64, bool)>,
}

impl Units {
    fn new(size: u64, open_max: usize, random_max: usize) -> Self {
        Self { size, open_max, random_max, open: Vec::new() }
    }

    /// Writes one unit's part of a request; returns whether that merged a unit.
    fn write_part(&mut self, device: Option<u32>, unit: u64, from: u64, to: u64) -> bool {
        let mut merges = false;
        let open = self.open.iter().position(|&(of, open, ..)| (of, open) == (device, unit));
        let open = open.map(|at| self.open.remove(at));
        let goes_on = open.is_some_and(|(_, _, next, _)| next == from);
        let is_random = match open {
            Some((.., is_random)) => is_random || !goes_on,
            None => self.random_max > 0 && !from.is_multiple_of(self.size),
        };
        // A card that takes nothing out of order closes the unit and opens it again.
        merges |= is_random && open.is_some() && self.random_max == 0;
        let is_random = is_random && self.random_max > 0;
        let was_random = open.is_some_and(|(.., is_random)| is_random);
        if is_random && !was_random {
            merges |= self.close_oldest(self.random_max, true);
        }
        if open.is_none() {
            merges |= self.close_oldest(self.open_max, false);
        }
        self.open.push((device, unit, to, is_random));
        merges
    }

    /// Closes the unit that was not written for longest, where there are as many already.
    fn close_oldest(&mut self, most: usize, random_only: bool) -> bool {
        let is_candidate = |&(.., is_random): &(Option<u32>, u64, u64, bool)| is_random || !random_only;
        let is_full = self.open.iter().filter(|open| is_candidate(open)).count() >= most;
        let oldest = self.open.iter().position(is_candidate).filter(|_| is_full);
        oldest.map(|at| self.open.remove(at)).is_some()
    }

    /// Writes; returns how many units that merged.
    pub(super) fn write(&mut self, device: Option<u32>, offset: u64, length: u64) -> u64 {
        let (mut from, end, mut merges) = (offset, offset.saturating_add(length), 0);
        while from < end {
            let unit = from / self.size;
            let to = end.min((unit + 1).saturating_mul(self.size));
            merges += u64::from(self.write_part(device, unit, from, to));
            from = to;
        }
        merges
    }

    /// Whether a merge is known to be one: so many units were written that others must have been closed for them.
    fn is_full(&self) -> bool {
        self.open.len() >= self.open_max
    }
}

struct KeepUnitsOpen {
    units: Units,
    merge: Nanos,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let card = &profile.card;
    let size = known_size(&card.allocation_unit_bytes, "allocation unit")?;
    let open = known(&card.open_units_linear, "number of open units")?;
    let random = card.random_units().ok_or("the drive's number of open units in any order is inconclusive")?;
    let merge = known(&card.merge_ns, "time of a merge")?;
    let count = |units: u64| usize::try_from(units).unwrap_or(usize::MAX).min(UNITS_MAX);
    Ok(Box::new(KeepUnitsOpen { units: Units::new(size, count(open).max(1), count(random)), merge: Nanos(merge) }))
}

/// Open units that are tracked; no card is known to keep more.
const UNITS_MAX: usize = 256;

/// The device of a request and its offset there; `None` of a file.
pub(super) fn on_card(space: Space) -> Option<Option<u32>> {
    match space {
        Space::Device(device) => Some(device),
        _ => None,
    }
}

/// Why a trace does not show where on a card its requests are.
pub(super) fn hides_places(facts: &Facts) -> Option<String> {
    (facts.requests > 0 && facts.unplaced == facts.requests)
        .then(|| "the trace has file offsets, not offsets on the card: capture one with --block".to_owned())
}

impl Check for KeepUnitsOpen {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
        let Some(device) = on_card(seen.space()).filter(|_| seen.is_write()) else { return };
        let is_full = self.units.is_full();
        let merges = self.units.write(device, seen.record.offset.0, seen.record.length.0);
        if is_full {
            tally.speaks();
            if merges > 0 {
                tally.breaks(seen);
            }
        }
    }

    fn hidden(&self, facts: &Facts) -> Option<String> {
        hides_places(facts)
    }

    fn statement(&self) -> String {
        let Units { size, open_max, random_max, .. } = self.units;
        format!(
            "writes should stay within {open_max} units of {}, {random_max} of them written in any order: a write to \
             another one takes {} for a merge",
            ByteSize(size),
            self.merge
        )
    }

    fn remedy(&self, shown: &Shown) -> String {
        let sqlite = match shown.is_sqlite_in_wal_mode() {
            true => "a longer wal_autocheckpoint, one database file",
            false => "journal_mode=WAL, a longer wal_autocheckpoint, one database file",
        };
        let settings = shown.settings([
            (DatabaseSystem::Sqlite, sqlite),
            (DatabaseSystem::Postgres, "a longer checkpoint_timeout and max_wal_size"),
            (DatabaseSystem::MariaDb, "a larger innodb_log_file_size"),
        ]);
        format!(
            "write less at random between two checkpoints, and each checkpoint in the order of the addresses \
             ({settings}); only an administrator can put the data on F2FS, which writes in order"
        )
    }

    /// Between two flushes, writes in the order of the addresses.
    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        let mut fixed: Vec<Step> = Vec::with_capacity(steps.len());
        for group in steps.split_inclusive(Step::is_flush) {
            let mut group = group.to_vec();
            let mut writes: Vec<Step> = group.iter().copied().filter(Step::is_write).collect();
            writes.sort_by_key(|step| (step.space, step.offset));
            let mut writes = writes.into_iter();
            for step in group.iter_mut().filter(|step| step.is_write()) {
                *step = writes.next().unwrap_or(*step);
            }
            fixed.extend(group);
        }
        fixed
    }

    fn budget_time(&self, steps: &[Step]) -> Option<Nanos> {
        let mut units = Units { open: Vec::new(), ..self.units.clone() };
        let mut merges = 0;
        for step in steps.iter().filter(|step| step.is_write()) {
            let Some(device) = on_card(step.space) else { continue };
            let is_full = units.is_full();
            let merged = units.write(device, step.offset, step.length);
            merges += if is_full { merged } else { 0 };
        }
        Some(self.merge * merges)
    }

    fn is_paid_in_merges(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::golden::golden;
    use crate::tests::{card, check, exactly, flush, on_device, one_by_one, samsung, why_open, write};
    use crate::{Judgement, Rule};

    const MIB: u64 = 1 << 20;

    /// So many blocks of each of so many units in rotation, in order.
    fn rotation(units: u64, blocks: u64) -> Vec<flashwise_trace::TraceRecord> {
        let all = (0..blocks).flat_map(|block| (0..units).map(move |unit| (unit, block)));
        all.map(|(unit, block)| on_device(unit * 4 * MIB + block * 16384, 16384)).collect()
    }

    #[test]
    fn only_writes_beyond_the_open_units_are_counted() {
        // Three units of 4 MiB stay open; the first three writes open them.
        check(Rule::KeepUnitsOpen, &card(), &[(&rotation(3, 4), 0, 9), (&rotation(4, 4), 13, 13)]);
    }

    #[test]
    fn a_card_that_writes_in_order_alone_merges_for_each_write_backwards() {
        let mut profile = card();
        profile.card.open_units_random = flashwise_profile::Figure::absent();
        let backwards: Vec<_> = (0..8).rev().map(|block| on_device(block * 16384, 16384)).collect();
        let all = [rotation(3, 2), backwards].concat();
        check(Rule::KeepUnitsOpen, &profile, &[(&all, 8, 11)]);
        profile.card.open_units_random = exactly(1);
        check(Rule::KeepUnitsOpen, &profile, &[(&all, 0, 11)]);
    }

    #[test]
    fn a_window_over_too_many_units_costs_a_merge_a_write_and_sorted_it_costs_one_a_unit() {
        let mut scattered = rotation(6, 20);
        scattered.push(flush());
        let found = golden(Rule::KeepUnitsOpen, &card(), &one_by_one(&scattered), &one_by_one(&rotation(3, 40)));
        // 117 of 120 writes merge a unit; in the order of the addresses the last three units do.
        assert_eq!((found.violations, found.cost.time_ns), (117, Some((117 - 3) * 430_000_000)));
        assert!(found.cost.is_of_merges && found.judgement == Judgement::Violation, "{found:?}");
    }

    #[test]
    fn without_offsets_on_the_card_or_its_units_nothing_is_judged() {
        let why = why_open(Rule::KeepUnitsOpen, &card(), &[write(0, 4)]);
        assert_eq!(why, "the trace has file offsets, not offsets on the card: capture one with --block");
        assert_eq!(why_open(Rule::KeepUnitsOpen, &samsung(), &[]), "the profile has no allocation unit");
    }
}
