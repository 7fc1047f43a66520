//! Bad superblocks: what is valid in a failing one moves, and a drive without spares becomes read-only.
//!
//! ```text
//!   program fails ─┐
//!   retire_block ──┴▶ nothing more is written to the superblock ─▶ its last commands end ─▶ it is emptied ─▶ bad
//!   erase fails, P/E limit reached ───────────────────────────────────────────────────────────────────────▶ bad
//! ```
//!
//! What a failed program should have brought to flash, or the superpage that was being filled, is still in the write
//! buffer. It is the first to move, without being read: it is written to the open superblock of garbage collection at
//! once, padded. Until that is on flash it keeps its room in the buffer, the flushes and forced writes that wait for it
//! continue waiting, and the victims that some of it was moved from are not erased, as a power cut would lose it. A
//! buffer with power-loss protection is as good as flash; there it moves with the rest of its superblock. A block that
//! fails takes its whole superblock with it. The P/E limit waits while the unit needs the superblock for victims in
//! progress.
//!
//! A unit has as many spare superblocks as it does not need for its share of the capacity, for what garbage collection
//! keeps free and for what is open. Where the last free ones are lost before a victim is emptied, it goes to what is
//! left of the host's open superblock. When one more is lost than there are spares, or a unit has nowhere to move what
//! it must, the drive is read-only: writes and trims, also those that wait, complete with [`BlockError::ReadOnly`];
//! reads and flushes are served. NVMe Base Specification 2.0, section 5.16.1.2, calls this "media placed in read only
//! mode".
//!
//! [`BlockError::ReadOnly`]: flashwise_block::BlockError::ReadOnly

use flashwise_block::BlockDevice;

use crate::cache::Parked;
use crate::collector::{EndOfLife, Unsaved};
use crate::device::SimulatedSsd;
use crate::ftl::{Cause, Retirement, Stream};

impl SimulatedSsd {
    /// Retires a superblock, counted over the drive: what is valid in it moves elsewhere in its unit, and it is not
    /// used again. Does nothing where there is none of that number, or where the mapping is not by page.
    pub fn retire_block(&mut self, superblock: u32) {
        let all = self.ftl.pages.geometry.units * self.ftl.pages.geometry.superblocks;
        if superblock >= all || !self.ftl.is_page_map() {
            return;
        }
        let unit = superblock / self.ftl.pages.geometry.superblocks;
        let before = self.ftl.pages.superblocks[superblock].is_failing;
        let retirement = self.ftl.pages.retire(superblock);
        if let Retirement::Empty { open_superpage } = retirement {
            let collector = &mut self.collector.units[unit as usize];
            collector.failing.push(superblock);
            collector.unsaved.extend(open_superpage.map(Unsaved::new));
            if let Some(superpage) = open_superpage {
                self.program_is_not_done(superpage);
            }
        }
        if before != self.ftl.pages.superblocks[superblock].is_failing {
            self.superblock_lost(unit);
        }
        self.space_changed(unit);
    }

    /// Whether the drive has run out of spare superblocks.
    pub fn is_read_only(&self) -> bool {
        self.collector.read_only
    }

    /// When the drive became read-only, and what it had taken by then; `None` while it takes writes.
    pub fn end_of_life(&self) -> Option<EndOfLife> {
        self.collector.end_of_life
    }

    /// A superpage was programmed, but a command failed: its superblock is retired, what it holds stays in the buffer.
    pub(super) fn program_failed(&mut self, unit: u32, superpage: u32) {
        self.collector.units[unit as usize].unsaved.push(Unsaved::new(superpage));
        let block = self.ftl.pages.superpages[superpage].block;
        self.program_is_not_done(superpage);
        self.retire_block(block);
        self.rescue_unsaved(unit);
    }

    /// A superpage will not be on flash; victims that were emptied into it wait for where its content goes, unless the
    /// buffer is as good as flash.
    fn program_is_not_done(&mut self, superpage: u32) {
        if self.config.controller.power_loss_protection {
            let record = &self.ftl.pages.superpages[superpage];
            self.moved_data_is_on_flash(record.unit, record.stream, record.generation);
        }
    }

    /// Moves what is in the write buffer only, and belongs to retired superblocks of a unit, as far as there is room.
    #[inline]
    pub(super) fn rescue_unsaved(&mut self, unit: u32) {
        if !self.collector.units[unit as usize].unsaved.is_empty() && !self.config.controller.power_loss_protection {
            self.move_unsaved(unit);
        }
    }

    #[cold]
    fn move_unsaved(&mut self, unit: u32) {
        while let Some(unsaved) = self.collector.units[unit as usize].unsaved.last_mut() {
            // It stays in the list meanwhile, so that nothing else starts to empty its superblock.
            let (superpage, mut moved_to) = (unsaved.superpage, std::mem::take(&mut unsaved.moved_to));
            let is_moved = self.move_superpage(unit, superpage, &mut moved_to);
            let collector = &mut self.collector.units[unit as usize];
            moved_to.retain(|&place| collector.not_programmed.contains(place));
            let Some(mut unsaved) = collector.unsaved.pop() else { return };
            unsaved.moved_to = moved_to;
            if !is_moved {
                return collector.unsaved.push(unsaved);
            }
            collector.rescued.push(unsaved);
        }
        self.settle_rescued(unit);
    }

    /// A superpage of moved data is on flash; perhaps it was the last that held what another one should have.
    pub(super) fn rescued_data_is_on_flash(&mut self, unit: u32, stream: Stream, generation: u64) {
        for rescued in &mut self.collector.units[unit as usize].rescued {
            rescued.moved_to.retain(|&place| place != (stream, generation));
        }
        self.settle_rescued(unit);
    }

    /// Releases the superpages whose content is on flash elsewhere.
    fn settle_rescued(&mut self, unit: u32) {
        let rescued = &mut self.collector.units[unit as usize].rescued;
        if let Some(at) = rescued.iter().position(|rescued| rescued.moved_to.is_empty()) {
            let superpage = rescued.swap_remove(at).superpage;
            self.saved_elsewhere(unit, superpage);
            self.settle_rescued(unit);
        }
    }

    /// What a superpage should have held is on flash elsewhere.
    fn saved_elsewhere(&mut self, unit: u32, superpage: u32) {
        let record = &self.ftl.pages.superpages[superpage];
        let (stream, generation) = (record.stream, record.generation);
        self.superpage_saved(superpage);
        self.moved_data_is_on_flash(unit, stream, generation);
    }

    /// Starts to empty the superblocks of a unit that are retired.
    pub(super) fn empty_failing_superblocks(&mut self, unit: u32) {
        while let Some(&block) = self.collector.units[unit as usize].failing.first() {
            if self.collector.has_unsaved(unit, block, &self.ftl.pages) || !self.ftl.pages.take_failing_victim(block) {
                return;
            }
            self.collector.units[unit as usize].failing.remove(0);
            self.empty(unit, block, Cause::Retirement);
        }
    }

    /// A retired superblock's data is on flash elsewhere.
    pub(super) fn retirement_finished(&mut self, unit: u32, block: u32) {
        self.ftl.pages.superblock_retired(block);
        self.collector.units[unit as usize].has_retired = true;
        let unsaved = std::mem::take(&mut self.collector.units[unit as usize].unsaved);
        let (saved, unsaved): (Vec<_>, _) =
            unsaved.into_iter().partition(|unsaved| self.ftl.pages.superpages[unsaved.superpage].block == block);
        self.collector.units[unit as usize].unsaved = unsaved;
        saved.into_iter().for_each(|saved| self.saved_elsewhere(unit, saved.superpage));
    }

    /// A superblock was lost: without spares, the drive is read-only.
    pub(super) fn superblock_lost(&mut self, unit: u32) {
        self.flash.counters.retired_superblocks += 1;
        if !self.collector.read_only && self.ftl.pages.has_no_spares(unit) {
            self.become_read_only();
        }
    }

    pub(super) fn become_read_only(&mut self) {
        self.collector.read_only = true;
        let host_bytes_written = self.counters().host_bytes_written.0;
        self.collector.end_of_life = Some(EndOfLife { at_ns: self.clock.now_ns, host_bytes_written });
        self.refuse_waiting_writes();
        // Other FTLs collect nothing.
        let units = if self.ftl.is_page_map() { self.ftl.pages.geometry.units } else { 0 };
        for unit in 0..units {
            self.collect_if_needed(unit);
            self.release_if_clean(unit);
        }
    }

    /// Answers the writes that wait for room, now that there will be none.
    fn refuse_waiting_writes(&mut self) {
        while let Some(request) = self.cache.buffer.waiting.pop(&mut self.host.active) {
            // What the rest of it waits for, as a comparison with a stored page, ends with nothing left to take.
            if let Some(range) = self.host.range_of(request) {
                self.host.active[request].taken = range.pages();
            }
            self.refuse(request);
        }
        for unit in 0..self.cache.buffer.parked.len() {
            while let Some(page) = self.cache.buffer.parked[unit].pop(&mut self.cache.buffer.parked_pages) {
                let what = self.cache.buffer.parked_pages[page].what;
                self.cache.buffer.parked_pages.give_back(page);
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
        self.cache.buffer.used_bytes -= u64::from(charge);
        self.cache.buffer.parked_bytes -= u64::from(charge);
        self.host.active[request].is_refused = true;
        self.host.active[request].pending -= 1;
        if self.host.active[request].pending == 0 {
            self.complete(request);
        }
    }

    /// Answers a request that a read-only drive does not do, or lets it be answered when its last page is on flash.
    pub(crate) fn refuse(&mut self, request: u32) {
        self.host.active[request].is_refused = true;
        if self.host.active[request].pending == 0 {
            self.complete(request);
        }
    }

    /// When a unit has no superblock left for what has to move, and none will become free, the drive is read-only, and
    /// those who wait for what is still in its buffer are told.
    #[inline(always)]
    pub(super) fn give_up_if_stuck(&mut self, unit: u32) {
        let collector = &self.collector.units[unit as usize];
        if !collector.failing.is_empty() || !collector.is_idle() {
            self.give_up_if_collector_is_stuck(unit);
        }
    }

    #[inline(never)]
    fn give_up_if_collector_is_stuck(&mut self, unit: u32) {
        if self.collector.is_stuck(unit, &self.ftl.pages) && !self.goes_on_in_borrowed_room(unit) {
            self.give_up(unit);
        }
    }

    /// Lets the victims of a unit that is stuck go to the host's open superblocks; gives whether that helps.
    fn goes_on_in_borrowed_room(&mut self, unit: u32) -> bool {
        self.ftl.pages.lend_room(unit, true);
        self.resume_stalled(unit);
        self.ftl.pages.lend_room(unit, false);
        !self.collector.is_stuck(unit, &self.ftl.pages)
    }

    fn give_up(&mut self, unit: u32) {
        let collector = &self.collector.units[unit as usize];
        let is_running = |&block: &u32| {
            let state = &self.ftl.pages.superblocks[block];
            state.programmed_rows < state.allocated_rows
        };
        if collector.failing.iter().any(is_running) {
            return;
        }
        if !self.collector.read_only {
            self.become_read_only();
        }
        for Unsaved { superpage, .. } in std::mem::take(&mut self.collector.units[unit as usize].unsaved) {
            let waiters = &self.ftl.pages.superpages[superpage].waiters;
            waiters.iter().for_each(|&request| self.host.active[request].is_refused = true);
            self.superpage_saved(superpage);
        }
    }
}
