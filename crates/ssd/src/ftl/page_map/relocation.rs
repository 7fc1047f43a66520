//! What is valid in a victim, and where it goes.
//!
//! ```text
//!   victim's row ─▶ for_valid_slots, count_bytes_of_extents: what its reads fetch
//!              └─▶ next_slot ─▶ relocate_run: the rest of the open superpage at once, where a slot is a page
//!                           └─▶ relocate: page by page ─▶ relocate_elsewhere, where its class has no room
//! ```

use std::ops::Range;

use super::{Cause, PageMap, Placement, Stream};
use crate::ftl::superblock::BlockState;

/// What became of a page that garbage collection wanted to move.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Relocation {
    /// It was overwritten or trimmed meanwhile.
    NotValid,
    /// No superblock is free.
    NoRoom,
    /// It is there now; with its logical page.
    Moved(Placement, u32),
}

/// Pages of a victim that were moved to one superpage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// The slot behind the last of them.
    pub(crate) end: u32,
    pub(crate) superpage: u32,
    pub(crate) generation: u64,
    /// The superpage is full now.
    pub(crate) is_full: bool,
}

impl PageMap {
    /// Moves a page of a victim; `only` is the stream that all of it goes to, if there is but one
    /// ([`PageMap::only_stream`]).
    #[inline]
    pub(crate) fn relocate(&mut self, from: u32, cause: Cause, only: Option<Stream>) -> Relocation {
        let Some(logical_page) = self.mapping.page_in(from) else { return Relocation::NotValid };
        let block = self.geometry.block_and_row(from).0;
        let unit = self.geometry.unit_of(block);
        let stream = only.unwrap_or_else(|| self.stream_of_moved(logical_page, self.superblocks[block].stream));
        match self.append(unit, stream, logical_page, Some(cause)) {
            Some(placement) => Relocation::Moved(placement, logical_page),
            None => self.relocate_elsewhere(unit, stream, logical_page, cause),
        }
    }

    /// Moves what is valid in some slots of a victim, one page behind the other, to the superpage that a stream fills,
    /// until that is full, as [`Self::relocate`] does page by page; `moved` takes each page, where it was and where it
    /// is. `None` where nothing valid is left, or where it takes more than this: there is no room, or the superblock is
    /// not a victim yet, or pages take more or less than a slot.
    #[inline(always)]
    pub(crate) fn relocate_run(
        &mut self,
        (unit, stream): (u32, Stream),
        mut slots: Range<u32>,
        cause: Cause,
        mut moved: impl FnMut(u32, u32, u32),
    ) -> Option<Run> {
        let mut from = slots.find(|&slot| self.mapping.page_in(slot).is_some())?;
        let victim = self.geometry.block_and_row(from).0;
        if self.extents.is_some() || self.superblocks[victim].state != BlockState::Victim {
            return None;
        }
        let superpage = self.open_superpage(unit, stream, false)?;
        let open = &mut self.superpages[superpage];
        let first = self.geometry.first_slot(open.block, open.row);
        let (mut to, end) = (first + open.filled, first + self.geometry.slots);
        while from < slots.end && to < end {
            if let Some(logical_page) = self.mapping.page_in(from) {
                self.mapping.map(logical_page, to);
                moved(logical_page, from, to);
                to += 1;
            }
            from += 1;
        }
        let count = to - first - open.filled;
        open.filled += count;
        open.moved[cause as usize] += count;
        let (block, generation) = (open.block, open.generation);
        self.superblocks[block].valid += count;
        self.superblocks[victim].valid -= count;
        Some(Run { end: from, superpage, generation, is_full: to == end })
    }

    /// Puts a moved page where the open superblock of another class of moved pages has room, because none is free for
    /// its own; at worst where the host's has.
    #[cold]
    fn relocate_elsewhere(&mut self, unit: u32, stream: Stream, logical_page: u32, cause: Cause) -> Relocation {
        let others = self.gc_streams().filter(|&other| other != stream && stream != Stream::COLD);
        let mut open = others.filter(|&other| self.units[unit as usize].points[other].is_open());
        let mut other = open.next();
        if other.is_none() && self.may_borrow_room(unit, cause) {
            other = self.open_host_streams(unit).next();
        }
        match other.and_then(|other| self.append(unit, other, logical_page, Some(cause))) {
            Some(placement) => Relocation::Moved(placement, logical_page),
            None => Relocation::NoRoom,
        }
    }

    /// Names the slots of a superblock's row that are valid, and the logical pages in them, on a drive whose pages take
    /// one each; their entries will be needed soon.
    #[inline(always)]
    pub(crate) fn for_valid_slots(&self, block: u32, row: u32, mut each: impl FnMut(u32, u32)) {
        let first = self.geometry.first_slot(block, row);
        for slot in first..first + self.geometry.slots {
            if let Some(logical_page) = self.mapping.page_in(slot) {
                self.mapping.prefetch(logical_page);
                each(slot, logical_page);
            }
        }
    }

    /// The next slot from one on, before an end, in which something valid may start.
    #[inline(always)]
    pub(crate) fn next_slot(&self, from: u32, end: u32) -> Option<u32> {
        match &self.extents {
            Some(extents) => extents.next(from, end),
            None => (from < end).then_some(from),
        }
    }

    /// The first slot in which a page may start that ends in a row.
    pub(crate) fn first_slot_of_pages_in(&self, block: u32, row: u32) -> u32 {
        let before = if row == 0 { 0 } else { self.longest() - 1 };
        self.geometry.first_slot(block, row) - before
    }

    /// Whether a page that ends in a row starts in a slot.
    pub(crate) fn ends_in_row(&self, slot: u32, row: u32) -> bool {
        let page = self.mapping.page_in(slot);
        page.is_some_and(|page| self.geometry.block_and_row(self.last_slot(page, slot)).1 == row)
    }

    /// The slots from one on, before an end, in which pages start, and the pages.
    fn pages_in(&self, start: u32, end: u32) -> impl Iterator<Item = (u32, u32)> {
        let slots = std::iter::successors(self.next_slot(start, end), move |slot| self.next_slot(slot + 1, end));
        slots.filter_map(|slot| Some((slot, self.mapping.page_in(slot)?)))
    }

    /// Adds, for each die, the bytes that valid pages have in a row, those among them that end or start in another.
    pub(crate) fn count_bytes_of_extents(&self, block: u32, row: u32, bytes_of_die: &mut [u32]) {
        let first = self.geometry.first_slot(block, row);
        let end = first + self.geometry.slots;
        let start = self.first_slot_of_pages_in(block, row);
        // The lengths lie anywhere: all of them are on their way before the first is needed.
        self.pages_in(start, end).for_each(|(_, page)| self.prefetch_page(page));
        for (slot, page) in self.pages_in(start, end) {
            let (from, to) = (slot.max(first), (slot + self.slots_of(page)).min(end));
            for (run, slots) in self.geometry.runs(from, to.saturating_sub(from)) {
                bytes_of_die[self.geometry.die_index(run) as usize] += slots * self.slot_bytes;
            }
        }
    }
}
