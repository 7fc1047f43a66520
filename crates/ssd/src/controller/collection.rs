//! Garbage collection: read what is valid in a superblock, program it elsewhere, erase.
//!
//! ```text
//!   victim ─▶ row by row: read valid pages ─▶ fill the unit's GC superpage ─▶ program when full
//!          └─▶ emptied: waits until the last of its data is on flash ─▶ erase ─▶ free
//! ```
//!
//! Each parallel unit collects by itself, in the background, while the host's commands go on; a die's reads go before
//! its programs and erases. A victim is erased only when all that was valid in it is on flash elsewhere, so that a
//! power cut loses nothing. Where superblocks have few rows, an emptied victim whose last data is in a GC superpage that
//! is not full yet waits for the next victim to fill it; the superpage is padded when `EMPTIED_MAX` victims wait or no
//! other victim is left. Where they have many, padding one row costs less than holding a superblock back. When no superblock is free for moved data, moving waits for the next erase.

use crate::config::EMPTIED_MAX;
use crate::device::SimulatedSsd;
use crate::flash::{FlashOp, FlashOpKind, Owner};
use crate::ftl::Relocation;

/// From so many rows on, a victim waits for no other: half a row of padding is less than 1 % of what it frees.
const MANY_ROWS: u32 = 128;

/// A victim that is being emptied.
#[derive(Clone, Copy, Debug)]
struct Collection {
    victim: u32,
    /// The row that is being read or moved.
    row: u32,
    /// The slot of the row that is moved next.
    slot: u32,
    /// Reads of the row that have not ended.
    reads_left: u32,
    /// The row is read, but no superblock is free to move it to.
    stalled: bool,
}

/// A superblock that is being erased.
#[derive(Clone, Copy, Debug)]
struct Erasing {
    block: u32,
    ops_left: u32,
}

/// Garbage collection of one unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnitCollector {
    present: Option<Collection>,
    /// Victims without valid pages, with the generation of the superpage that their last data is in.
    emptied: Vec<(u32, u64)>,
    erasing: Vec<Erasing>,
    /// Generation of the last superpage that moved data went to.
    filled_generation: u64,
    /// Generation of the last such superpage that is on flash; they are programmed in order.
    programmed_generation: u64,
}

impl SimulatedSsd {
    /// Starts a collection where free superblocks run low.
    pub(crate) fn collect_if_needed(&mut self, unit: u32) {
        let waiting = self.waiting_for_open_superpage(unit);
        let collector = &self.collectors[unit as usize];
        let soon_free = collector.erasing.len() + collector.emptied.len() - waiting;
        if collector.present.is_some() || !self.ftl.wants_collection(unit, soon_free) {
            return;
        }
        match self.ftl.take_victim(unit) {
            Some(victim) => {
                self.flash_counters.gc_runs += 1;
                self.read_next_row(unit, Collection { victim, row: 0, slot: 0, reads_left: 0, stalled: false });
            }
            None if waiting > 0 => self.pad_moved(unit),
            None => {}
        }
    }

    /// Emptied victims whose last data is in the GC superpage that is still being filled.
    fn waiting_for_open_superpage(&self, unit: u32) -> usize {
        let Some(superpage) = self.ftl.open_gc_superpage(unit) else { return 0 };
        let open = self.ftl.superpages[superpage].generation;
        self.collectors[unit as usize].emptied.iter().filter(|&&(_, generation)| generation == open).count()
    }

    /// Reads the next row that holds something valid, or ends the victim.
    fn read_next_row(&mut self, unit: u32, mut collection: Collection) {
        while collection.row < self.ftl.geometry.rows {
            collection.reads_left = self.issue_row_reads(unit, collection);
            if collection.reads_left > 0 {
                self.collectors[unit as usize].present = Some(collection);
                return;
            }
            collection.row += 1;
        }
        self.victim_emptied(unit, collection.victim);
    }

    /// Reads the valid pages of a row; gives the number of flash commands.
    fn issue_row_reads(&mut self, unit: u32, collection: Collection) -> u32 {
        let geometry = self.ftl.geometry;
        self.bytes_of_die.fill(0);
        for slot in self.ftl.valid_slots(collection.victim, collection.row) {
            self.bytes_of_die[geometry.die_index(slot) as usize] += self.page.bytes() as u32;
        }
        let mut reads = 0;
        for n in 0..geometry.dies_per_unit {
            let bytes = self.bytes_of_die[n as usize];
            if bytes > 0 {
                self.flash_counters.bytes_read.0 += u64::from(bytes);
                reads += 1;
                let (at, owner) = (geometry.address(collection.victim, collection.row, n), Owner::Gc { unit });
                let op = self.flash.prepare(FlashOp::new(FlashOpKind::Read, owner, at, bytes));
                self.flash.issue(op, self.now_ns, &mut self.events);
            }
        }
        reads
    }

    /// One read of a row has ended; with the last one the row is moved.
    pub(crate) fn collection_read_finished(&mut self, unit: u32) {
        let Some(collection) = &mut self.collectors[unit as usize].present else { return };
        collection.reads_left -= 1;
        if collection.reads_left == 0 {
            self.move_row(unit);
        }
    }

    /// Moves what is still valid in the row that was read, as far as there is room, and goes on with the next row.
    fn move_row(&mut self, unit: u32) {
        let Some(mut collection) = self.collectors[unit as usize].present else { return };
        let geometry = self.ftl.geometry;
        let first = geometry.first_slot(collection.victim, collection.row);
        while collection.slot < geometry.slots {
            let from = first + collection.slot;
            match self.ftl.relocate(from) {
                Relocation::NotValid => {}
                Relocation::Moved(placement, logical_page) => {
                    self.mapping_moved(logical_page);
                    self.payload.relocate(from, placement.slot);
                    let generation = self.ftl.superpages[placement.superpage].generation;
                    self.collectors[unit as usize].filled_generation = generation;
                    if placement.full {
                        self.program_superpage(placement.superpage);
                    }
                }
                Relocation::NoRoom => {
                    collection.stalled = true;
                    self.collectors[unit as usize].present = Some(collection);
                    return;
                }
            }
            collection.slot += 1;
        }
        (collection.row, collection.slot) = (collection.row + 1, 0);
        self.read_next_row(unit, collection);
    }

    fn victim_emptied(&mut self, unit: u32, victim: u32) {
        let collector = &mut self.collectors[unit as usize];
        collector.present = None;
        collector.emptied.push((victim, collector.filled_generation));
        self.erase_emptied(unit);
        let may_wait = if self.ftl.geometry.rows >= MANY_ROWS { 1 } else { EMPTIED_MAX };
        if self.waiting_for_open_superpage(unit) >= may_wait {
            self.pad_moved(unit);
        }
        self.collect_if_needed(unit);
    }

    /// Programs the GC superpage that is being filled as it is.
    fn pad_moved(&mut self, unit: u32) {
        if let Some(superpage) = self.ftl.open_gc_superpage(unit) {
            self.program_superpage(superpage);
        }
    }

    /// A superpage of moved data is on flash.
    pub(crate) fn moved_data_is_on_flash(&mut self, unit: u32, generation: u64) {
        self.collectors[unit as usize].programmed_generation = generation;
        self.erase_emptied(unit);
    }

    /// Erases the victims whose data is all on flash elsewhere.
    fn erase_emptied(&mut self, unit: u32) {
        let geometry = self.ftl.geometry;
        let collector = &mut self.collectors[unit as usize];
        let programmed = collector.programmed_generation;
        while let Some(at) = collector.emptied.iter().position(|&(_, generation)| generation <= programmed) {
            let (block, _) = collector.emptied.remove(at);
            collector.erasing.push(Erasing { block, ops_left: geometry.dies_per_unit });
            for n in 0..geometry.dies_per_unit {
                let owner = Owner::Erase { unit, block };
                let op = FlashOp::new(FlashOpKind::Erase, owner, geometry.address(block, 0, n), 0);
                let op = self.flash.prepare(op);
                self.flash.issue(op, self.now_ns, &mut self.events);
            }
        }
    }

    /// One die has erased its part of a superblock.
    pub(crate) fn erase_finished(&mut self, unit: u32, block: u32) {
        let collector = &mut self.collectors[unit as usize];
        let Some(at) = collector.erasing.iter().position(|erasing| erasing.block == block) else { return };
        collector.erasing[at].ops_left -= 1;
        if collector.erasing[at].ops_left > 0 {
            return;
        }
        collector.erasing.remove(at);
        let stalled = collector.present.as_mut().is_some_and(|c| std::mem::take(&mut c.stalled));
        self.ftl.superblock_erased(block);
        self.flash_counters.erases += 1;
        if stalled {
            self.move_row(unit);
        }
        self.collect_if_needed(unit);
        self.place_parked(unit);
        self.place_waiting_translation_pages();
        self.admit_writes();
    }
}
