//! Where each logical page is, and what each physical slot holds.
//!
//! Two tables of four bytes an entry, zero where there is nothing; memory that is never touched is never committed, so
//! an empty 500 GB drive costs next to nothing. The first is asked for pages all over the drive, and is sparse; the
//! second fills up block by block. A *slot* is the part of a flash page that holds one logical page.
//!
//! ```text
//!   slot_of[logical page]  = slot + 1
//!   page_in[slot]          = logical page + 1        valid
//!                          = 0                       invalid, or clean behind the write pointer
//! ```

use crate::memory::{Numbers, Touched};
use crate::sparse::SparseTable;
use crate::state::{Carried, Carrier, Layout, State, StateError};

/// Slots of a drive whose superblocks lie close together: 8 MiB of page numbers.
const SMALL: usize = 2 << 20;

/// The page map and its inverse.
pub(crate) struct Mapping {
    slot_of: SparseTable,
    page_in: Numbers,
    /// Logical pages that have a slot.
    mapped: u32,
}

impl Mapping {
    pub(crate) fn new(logical_pages: u64, slots: u64) -> Self {
        // The open superblocks of a large drive lie far apart.
        let touched = if slots as usize > SMALL { Touched::Sparsely } else { Touched::Densely };
        let page_in = Numbers::new(slots as usize, touched);
        Self { slot_of: SparseTable::new(logical_pages as usize), page_in, mapped: 0 }
    }

    /// The slot that holds a logical page.
    pub(crate) fn slot_of(&self, logical_page: u32) -> Option<u32> {
        self.slot_of.get(logical_page).checked_sub(1)
    }

    /// The logical page that a slot validly holds.
    pub(crate) fn page_in(&self, slot: u32) -> Option<u32> {
        self.page_in.get(slot as usize).checked_sub(1)
    }

    /// Says that the place of a logical page's entry will be asked for soon.
    #[inline]
    pub(crate) fn prefetch_place(&self, logical_page: u32) {
        self.slot_of.prefetch_place(logical_page);
    }

    /// Says that a logical page's entry will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, logical_page: u32) {
        self.slot_of.prefetch(logical_page);
    }

    /// Says that what a slot holds will be needed soon.
    #[inline]
    pub(crate) fn prefetch_slot(&self, slot: u32) {
        self.page_in.prefetch(slot as usize);
    }

    /// Maps a logical page to a clean slot; gives the slot that became invalid.
    pub(crate) fn map(&mut self, logical_page: u32, slot: u32) -> Option<u32> {
        debug_assert_eq!(self.page_in.get(slot as usize), 0, "slot {slot} is not clean");
        self.page_in.set(slot as usize, logical_page + 1);
        let old = self.slot_of.replace(logical_page, slot + 1).checked_sub(1);
        match old {
            Some(old) => self.page_in.set(old as usize, 0),
            None => self.mapped += 1,
        }
        old
    }

    /// Maps successive logical pages that were never written to successive clean slots.
    pub(crate) fn map_run(&mut self, first_page: u32, first_slot: u32, count: u32) {
        let slot = first_slot as usize;
        self.mapped += count;
        self.slot_of.set_run(first_page, count, |page| first_slot + 1 + (page - first_page));
        self.page_in.set_run(slot..slot + count as usize, |place| first_page + (place - slot) as u32 + 1);
    }

    /// All logical pages that have a slot, each with that.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.slot_of.iter().map(|(page, entry)| (page, entry - 1))
    }

    /// Logical pages that have a slot.
    pub(crate) fn mapped(&self) -> u32 {
        self.mapped
    }

    /// Forgets a logical page; gives the slot that became invalid.
    pub(crate) fn unmap(&mut self, logical_page: u32) -> Option<u32> {
        let slot = self.slot_of.replace(logical_page, 0).checked_sub(1)?;
        self.page_in.set(slot as usize, 0);
        self.mapped -= 1;
        Some(slot)
    }

    /// Checks that each map is the other's inverse.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mapped = self.slot_of.iter().count();
        let valid = self.page_in.iter_from(0).filter(|&page| page != 0).count();
        if mapped != self.mapped as usize {
            return Err(format!("{mapped} logical pages are mapped, but {} are counted", self.mapped));
        }
        if mapped != valid {
            return Err(format!("{mapped} logical pages are mapped, but {valid} slots are valid"));
        }
        for (page, entry) in self.slot_of.iter() {
            let back = self.page_in.get(entry as usize - 1);
            if back != page + 1 {
                return Err(format!("logical page {page} maps to slot {}, which holds entry {back}", entry - 1));
            }
        }
        Ok(())
    }
}

/// The map alone is saved: its inverse and the count follow from it.
impl State for Mapping {
    fn layout(layout: &mut Layout) {
        layout.word("Mapping");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let Self { slot_of, page_in, mapped } = self;
        let length = slot_of.length();
        if !carrier.is_restoring() {
            let entries = slot_of.iter().map(|(page, entry)| (u64::from(page), entry));
            return carrier.numbers(length, entries, |_, _| Ok(()));
        }
        let slots = page_in.length() as u64;
        carrier.numbers(length, std::iter::empty(), |page, entry| {
            let is_free = |slot: u32| u64::from(slot) < slots && page_in.get(slot as usize) == 0;
            let Some(slot) = entry.checked_sub(1).filter(|&slot| is_free(slot)) else {
                let reason = format!("logical page {page} maps to entry {entry}: no slot, or that of another page");
                return Err(StateError::damaged(reason));
            };
            page_in.set(slot as usize, page as u32 + 1);
            slot_of.set(page as u32, entry);
            *mapped += 1;
            Ok(())
        })
    }
}
