//! Garbage collection of one superblock: read what is valid, program it elsewhere, erase.
//!
//! ```text
//!   victim ─▶ row by row: read valid pages ─▶ fill the unit's GC superpage ─▶ program when full
//!                                              └─ last one padded ─▶ all on flash ─▶ erase ─▶ free
//! ```
//!
//! Each parallel unit collects by itself, in the background, while the host's commands go on; a die's reads go before
//! its programs and erases. The victim is erased only when all that was valid in it is on flash elsewhere, so that a
//! power cut loses nothing.

use crate::device::SimulatedSsd;
use crate::flash::{FlashOp, FlashOpKind, Owner};

/// A collection that is under way in one unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collection {
    victim: u32,
    row: u32,
    /// Flash commands of the present step that have not ended.
    ops_left: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The valid pages of `row` are being read.
    Reading,
    /// Everything is read; programs of moved data are under way.
    Programming,
    /// The victim is being erased.
    Erasing,
}

/// Garbage collection of one unit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnitCollector {
    present: Option<Collection>,
    /// Superpages with moved data whose program has not ended.
    programs_in_flight: u32,
}

impl SimulatedSsd {
    /// Starts a collection where free superblocks run low.
    pub(crate) fn collect_if_needed(&mut self, unit: u32) {
        if self.collectors[unit as usize].present.is_some() || !self.ftl.wants_collection(unit) {
            return;
        }
        let Some(victim) = self.ftl.take_victim(unit) else { return };
        self.flash_counters.gc_runs += 1;
        self.read_next_row(unit, Collection { victim, row: 0, ops_left: 0, state: State::Reading });
    }

    /// Reads the next row that holds something valid, or ends the collection.
    fn read_next_row(&mut self, unit: u32, mut collection: Collection) {
        let geometry = self.ftl.geometry;
        while collection.row < geometry.rows {
            self.issue_row_reads(unit, &mut collection);
            if collection.ops_left > 0 {
                self.collectors[unit as usize].present = Some(collection);
                return;
            }
            collection.row += 1;
        }
        collection.state = State::Programming;
        self.collectors[unit as usize].present = Some(collection);
        if let Some(superpage) = self.ftl.open_gc_superpage(unit) {
            self.program_moved(unit, superpage);
        }
        self.erase_when_moved(unit);
    }

    fn issue_row_reads(&mut self, unit: u32, collection: &mut Collection) {
        let geometry = self.ftl.geometry;
        let page_bytes = crate::LOGICAL_PAGE_BYTES as u32;
        self.bytes_of_die.fill(0);
        for slot in self.ftl.valid_slots(collection.victim, collection.row) {
            self.bytes_of_die[geometry.die_index(slot) as usize] += page_bytes;
        }
        for n in 0..geometry.dies_per_unit {
            let bytes = self.bytes_of_die[n as usize];
            if bytes > 0 {
                self.flash_counters.bytes_read.0 += u64::from(bytes);
                collection.ops_left += 1;
                self.issue_collection_op(unit, FlashOpKind::Read, n, bytes);
            }
        }
    }

    fn issue_collection_op(&mut self, unit: u32, kind: FlashOpKind, n: u32, bytes: u32) {
        let die = self.ftl.geometry.die_in_unit(unit, n);
        let op = self.flash.prepare(FlashOp::new(kind, Owner::Gc { unit }, die, bytes));
        self.flash.issue(op, self.now_ns, &mut self.events);
    }

    /// A read or an erase of a unit's collection has ended.
    pub(crate) fn collection_op_finished(&mut self, unit: u32) {
        let Some(mut collection) = self.collectors[unit as usize].present else { return };
        collection.ops_left -= 1;
        self.collectors[unit as usize].present = Some(collection);
        if collection.ops_left > 0 {
            return;
        }
        if collection.state == State::Erasing {
            self.victim_erased(unit, collection.victim);
            return;
        }
        self.move_row(unit, collection);
        collection.row += 1;
        self.read_next_row(unit, collection);
    }

    /// Moves what is still valid in the row that was read.
    fn move_row(&mut self, unit: u32, collection: Collection) {
        let geometry = self.ftl.geometry;
        let first = geometry.first_slot(collection.victim, collection.row);
        for from in first..first + geometry.slots {
            let Some(placement) = self.ftl.relocate(from) else { continue };
            self.payload.relocate(from, placement.slot);
            if placement.full {
                self.program_moved(unit, placement.superpage);
            }
        }
    }

    fn program_moved(&mut self, unit: u32, superpage: u32) {
        self.collectors[unit as usize].programs_in_flight += 1;
        self.program_superpage(superpage);
    }

    /// A superpage of moved data is on flash.
    pub(crate) fn moved_data_is_on_flash(&mut self, unit: u32) {
        self.collectors[unit as usize].programs_in_flight -= 1;
        self.erase_when_moved(unit);
    }

    fn erase_when_moved(&mut self, unit: u32) {
        let UnitCollector { present: Some(mut collection), programs_in_flight: 0 } = self.collectors[unit as usize]
        else {
            return;
        };
        if collection.state != State::Programming {
            return;
        }
        let dies = self.ftl.geometry.dies_per_unit;
        (collection.state, collection.ops_left) = (State::Erasing, dies);
        self.collectors[unit as usize].present = Some(collection);
        for n in 0..dies {
            self.issue_collection_op(unit, FlashOpKind::Erase, n, 0);
        }
    }

    fn victim_erased(&mut self, unit: u32, victim: u32) {
        self.ftl.superblock_erased(victim);
        self.flash_counters.erases += 1;
        self.collectors[unit as usize].present = None;
        self.collect_if_needed(unit);
        self.admit_writes();
    }
}
