//! Bad superblocks: what is valid in a failing one moves, and a drive without spares becomes read-only.
//!
//! ```text
//!   program fails ─┐
//!   retire_block ──┴▶ nothing more is written to the superblock ─▶ its last commands end ─▶ it is emptied ─▶ bad
//!   erase fails, P/E limit reached ───────────────────────────────────────────────────────────────────────▶ bad
//! ```
//!
//! What a failed program should have brought to flash is still in the write buffer: it keeps its room there, and the
//! flushes and forced writes that wait for it go on waiting, until the superblock is emptied and its data is on flash
//! elsewhere. A block that fails takes its whole superblock with it. The P/E limit waits while the unit needs the
//! superblock for victims under way.
//!
//! A unit has as many spare superblocks as it does not need for its share of the capacity, for what garbage collection
//! keeps free and for what is open. When one more is lost, or a unit that placement filled beyond its share has nowhere
//! to move what it must, the drive is read-only: writes and trims, also those that wait, complete with [`BlockError::ReadOnly`]; reads and flushes are served. NVMe Base Specification 2.0, section
//! 5.16.1.2, calls this "media placed in read only mode".
//!
//! [`BlockError::ReadOnly`]: flashwise_block::BlockError::ReadOnly

use flashwise_block::BlockDevice;

use crate::config::Mapping;
use crate::controller::write::Parked;
use crate::device::SimulatedSsd;
use crate::ftl::{Cause, Retirement};
use crate::life::EndOfLife;

impl SimulatedSsd {
    /// Retires a superblock, counted over the drive: what is valid in it moves elsewhere in its unit, and it is not used
    /// again. Does nothing where there is none of that number, or where the mapping is not by page.
    pub fn retire_block(&mut self, superblock: u32) {
        let all = self.ftl.geometry.units * self.ftl.geometry.superblocks;
        if superblock >= all || self.config.ftl.mapping != Mapping::Page {
            return;
        }
        let unit = superblock / self.ftl.geometry.superblocks;
        let before = self.ftl.superblocks[superblock].is_failing;
        let retirement = self.ftl.retire(superblock);
        if let Retirement::Empty { open_superpage } = retirement {
            let collector = &mut self.collectors[unit as usize];
            collector.failing.push(superblock);
            collector.unsaved.extend(open_superpage);
            if let Some(superpage) = open_superpage {
                // Victims that were emptied into it wait for it no longer: it will not be programmed.
                let record = &self.ftl.superpages[superpage];
                self.moved_data_is_on_flash(unit, record.stream, record.generation);
            }
        }
        if before != self.ftl.superblocks[superblock].is_failing {
            self.superblock_lost(unit);
        }
        self.space_changed(unit);
    }

    /// Whether the drive has run out of spare superblocks.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// When the drive became read-only, and what it had taken by then; `None` while it takes writes.
    pub fn end_of_life(&self) -> Option<EndOfLife> {
        self.end_of_life
    }

    /// A superpage was programmed, but a command failed: its superblock is retired, what it holds stays in the buffer.
    pub(super) fn program_failed(&mut self, unit: u32, superpage: u32) {
        self.collectors[unit as usize].unsaved.push(superpage);
        let block = self.ftl.superpages[superpage].block;
        self.retire_block(block);
    }

    /// Begins to empty the superblocks of a unit that are retired.
    pub(super) fn empty_failing_superblocks(&mut self, unit: u32) {
        while let Some(&block) = self.collectors[unit as usize].failing.first() {
            if !self.ftl.take_failing_victim(block) {
                return;
            }
            self.collectors[unit as usize].failing.remove(0);
            self.empty(unit, block, Cause::Retirement);
        }
    }

    /// A retired superblock's data is on flash elsewhere.
    pub(super) fn retirement_finished(&mut self, unit: u32, block: u32) {
        self.ftl.superblock_retired(block);
        self.collectors[unit as usize].has_retired = true;
        let unsaved = std::mem::take(&mut self.collectors[unit as usize].unsaved);
        let (saved, unsaved) = unsaved.into_iter().partition(|&s| self.ftl.superpages[s].block == block);
        self.collectors[unit as usize].unsaved = unsaved;
        let saved: Vec<u32> = saved;
        saved.into_iter().for_each(|superpage| self.superpage_saved(superpage));
    }

    /// A superblock was lost: without spares, the drive is read-only.
    pub(super) fn superblock_lost(&mut self, unit: u32) {
        self.flash_counters.retired_superblocks += 1;
        if !self.read_only && self.ftl.has_no_spares(unit) {
            self.become_read_only();
        }
    }

    pub(super) fn become_read_only(&mut self) {
        self.read_only = true;
        let host_bytes_written = self.counters().host_bytes_written.0;
        self.end_of_life = Some(EndOfLife { at_ns: self.now_ns, host_bytes_written });
        self.refuse_waiting_writes();
        for unit in 0..self.ftl.geometry.units {
            self.collect_if_needed(unit);
            self.release_if_clean(unit);
        }
    }

    /// Answers the writes that wait for room, now that there will be none.
    fn refuse_waiting_writes(&mut self) {
        while let Some(request) = self.buffer.waiting.pop(&mut self.active) {
            self.refuse(request);
        }
        for unit in 0..self.parked.len() {
            while let Some(page) = self.parked[unit].pop(&mut self.parked_pages) {
                let what = self.parked_pages[page].what;
                self.parked_pages.give_back(page);
                match what {
                    Parked::Written { request, charge, .. } => self.refuse_parked(request, charge),
                    Parked::Cached { entry } => self.lose_cached(entry),
                }
            }
        }
        self.place_waiting_translation_pages();
    }

    /// A page of a write that waited for room in its unit will have none; it held `charge` bytes of the buffer.
    fn refuse_parked(&mut self, request: u32, charge: u32) {
        self.buffer.used_bytes -= u64::from(charge);
        self.buffer.parked_bytes -= u64::from(charge);
        self.active[request].is_refused = true;
        self.active[request].pending -= 1;
        if self.active[request].pending == 0 {
            self.complete(request);
        }
    }

    /// Answers a request that a read-only drive does not do, or lets it be answered when its last page is on flash.
    pub(crate) fn refuse(&mut self, request: u32) {
        self.active[request].is_refused = true;
        if self.active[request].pending == 0 {
            self.complete(request);
        }
    }

    /// When a unit has no superblock left for what has to move, and none will become free, the drive is read-only, and
    /// those who wait for what is still in its buffer are told.
    #[inline(always)]
    pub(super) fn give_up_if_stuck(&mut self, unit: u32) {
        let collector = &self.collectors[unit as usize];
        if !collector.failing.is_empty() || !collector.is_idle() {
            self.give_up_if_collector_is_stuck(unit);
        }
    }

    #[inline(never)]
    fn give_up_if_collector_is_stuck(&mut self, unit: u32) {
        if self.collectors[unit as usize].is_stuck() {
            self.give_up(unit);
        }
    }

    fn give_up(&mut self, unit: u32) {
        let collector = &self.collectors[unit as usize];
        let is_running = |&block: &u32| {
            let state = &self.ftl.superblocks[block];
            state.programmed_rows < state.allocated_rows
        };
        if collector.failing.iter().any(is_running) {
            return;
        }
        if !self.read_only {
            self.become_read_only();
        }
        for superpage in std::mem::take(&mut self.collectors[unit as usize].unsaved) {
            let waiters = &self.ftl.superpages[superpage].waiters;
            waiters.iter().for_each(|&request| self.active[request].is_refused = true);
            self.superpage_saved(superpage);
        }
    }
}
