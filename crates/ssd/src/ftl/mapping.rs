//! Where each logical page is, and what each physical slot holds.
//!
//! Two tables of four bytes an entry; memory that is never touched is never committed, so an empty 500 GB drive costs
//! next to nothing. The first is asked for pages all over the drive, and is sparse; the second fills up block by block.
//! A *slot* is the part of a flash page that holds one logical page.
//!
//! ```text
//!   slot_of[logical page]  = slot + 2            page_in[slot]  = logical page + 2     valid
//!                          = 1   nothing                        = 1                    invalid
//!                          = 0   as a fill left it              = 0                    as a fill left it
//! ```
//!
//! What a fill leaves is a rule ([`FillRule`]), and nothing on a drive that was not filled at once. So a drive of any
//! size is filled without an entry being written, and an entry comes to life when its page is written or moved. Of a
//! slot that is as the fill left it, the map itself says whether the page is still there: it is as long as the page's
//! own entry is 0.

use crate::memory::{Numbers, Touched};
use crate::sparse::SparseTable;
use crate::state::{Carried, Carrier, Layout, State, StateError};

/// Slots of a drive whose superblocks lie close together: 8 MiB of page numbers.
const SMALL: usize = 2 << 20;

/// An entry that nobody has changed since the drive was new or was filled at once.
const UNTOUCHED: u32 = 0;
/// The entry of a page without a slot, or of a slot without a page. One less than the entry of slot or page 0: with at
/// most 2³¹ of either both fit.
const NOTHING: u32 = 1;
/// The entry of slot or page 0.
const FIRST: u32 = 2;

/// Where a fill at once has put logical pages, one in each slot.
pub(crate) trait FillRule: Send {
    /// The slot of a logical page; `None` of one that was not filled.
    fn slot_of(&self, logical_page: u32) -> Option<u32>;

    /// The logical page in a slot; `None` of one that was not filled.
    fn page_in(&self, slot: u32) -> Option<u32>;

    /// So many logical pages from one on are in successive slots, at least 1.
    fn run_from(&self, logical_page: u32) -> u32;
}

/// How what a fill has left is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptAs {
    /// As a rule on a large drive. On a small one, whose table is an array in any case, as entries: they are written in
    /// milliseconds, and looked up for less than the rule costs.
    #[default]
    BySize,
    /// As a rule, whatever the size of the drive.
    Rule,
    /// As entries, whatever the size of the drive.
    Entries,
}

/// The page map and its inverse.
pub(crate) struct Mapping {
    slot_of: SparseTable,
    page_in: Numbers,
    /// What untouched entries mean, where that is not nothing.
    filled: Option<Box<dyn FillRule>>,
    /// Logical pages that have a slot.
    mapped: u32,
}

impl Mapping {
    pub(crate) fn new(logical_pages: u64, slots: u64) -> Self {
        // The open superblocks of a large drive lie far apart.
        let touched = if slots as usize > SMALL { Touched::Sparsely } else { Touched::Densely };
        let page_in = Numbers::new(slots as usize, touched);
        Self { slot_of: SparseTable::new(logical_pages as usize), page_in, filled: None, mapped: 0 }
    }

    /// The slot that holds a logical page.
    #[inline(always)]
    pub(crate) fn slot_of(&self, logical_page: u32) -> Option<u32> {
        match self.slot_of.get(logical_page) {
            UNTOUCHED => self.slot_as_filled(logical_page),
            entry => entry.checked_sub(FIRST),
        }
    }

    /// The slot that a fill gave a logical page.
    #[inline]
    fn slot_as_filled(&self, logical_page: u32) -> Option<u32> {
        self.filled.as_ref()?.slot_of(logical_page)
    }

    /// The logical page that a slot validly holds.
    #[inline]
    pub(crate) fn page_in(&self, slot: u32) -> Option<u32> {
        match self.page_in.get(slot as usize) {
            UNTOUCHED => self.page_as_filled(slot),
            entry => entry.checked_sub(FIRST),
        }
    }

    /// The logical page that a fill put into a slot, if it is still there.
    #[inline]
    fn page_as_filled(&self, slot: u32) -> Option<u32> {
        let page = self.filled.as_ref()?.page_in(slot)?;
        (self.slot_of.get(page) == UNTOUCHED).then_some(page)
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
    #[inline(always)]
    pub(crate) fn map(&mut self, logical_page: u32, slot: u32) -> Option<u32> {
        debug_assert_eq!(self.page_in(slot), None, "slot {slot} is not clean");
        self.page_in.set(slot as usize, logical_page + FIRST);
        let old = match self.slot_of.replace(logical_page, slot + FIRST) {
            UNTOUCHED => self.slot_as_filled(logical_page),
            entry => self.invalidate(entry),
        };
        if old.is_none() {
            self.mapped += 1;
        }
        old
    }

    /// The slot of a logical page's entry before holds nothing any more, if it is one; gives it.
    #[inline]
    fn invalidate(&mut self, entry: u32) -> Option<u32> {
        let slot = entry.checked_sub(FIRST)?;
        self.page_in.set(slot as usize, NOTHING);
        Some(slot)
    }

    /// Maps successive logical pages that were never written to successive clean slots.
    pub(crate) fn map_run(&mut self, first_page: u32, first_slot: u32, count: u32) {
        let slot = first_slot as usize;
        self.mapped += count;
        self.slot_of.set_run(first_page, count, |page| first_slot + FIRST + (page - first_page));
        self.page_in.set_run(slot..slot + count as usize, |place| first_page + (place - slot) as u32 + FIRST);
    }

    /// Maps the logical pages below `pages`, none of which was ever written, by a rule.
    pub(crate) fn fill(&mut self, pages: u32, rule: Box<dyn FillRule>, kept: KeptAs) {
        debug_assert_eq!(self.mapped, 0, "something was written");
        if kept == KeptAs::Rule || kept == KeptAs::BySize && self.slot_of.is_sparse() {
            (self.mapped, self.filled) = (pages, Some(rule));
            return;
        }
        let mut page = 0;
        while page < pages {
            let (slot, count) = (rule.slot_of(page), rule.run_from(page).min(pages - page));
            slot.inspect(|&slot| self.map_run(page, slot, count));
            page += count;
        }
    }

    /// All logical pages that have a slot, each with that.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        // Where untouched entries mean something, all have to be asked; elsewhere most need not.
        let (asked, written) = if self.filled.is_some() { (self.slot_of.length() as u32, 0) } else { (0, usize::MAX) };
        let touched = self.slot_of.iter().take(written);
        let of_entry = |(page, entry): (u32, u32)| Some((page, entry.checked_sub(FIRST)?));
        touched.filter_map(of_entry).chain((0..asked).filter_map(|page| Some((page, self.slot_of(page)?))))
    }

    /// Logical pages that have a slot.
    pub(crate) fn mapped(&self) -> u32 {
        self.mapped
    }

    /// Forgets a logical page; gives the slot that became invalid.
    pub(crate) fn unmap(&mut self, logical_page: u32) -> Option<u32> {
        let slot = self.slot_of(logical_page)?;
        let entry = self.slot_of.replace(logical_page, NOTHING);
        self.invalidate(entry);
        self.mapped -= 1;
        Some(slot)
    }

    /// Checks that each map is the other's inverse.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mapped = self.iter().count();
        let valid = match &self.filled {
            Some(_) => (0..self.page_in.length() as u32).filter(|&slot| self.page_in(slot).is_some()).count(),
            None => self.page_in.iter_from(0).filter(|&entry| entry >= FIRST).count(),
        };
        if mapped != self.mapped as usize {
            return Err(format!("{mapped} logical pages are mapped, but {} are counted", self.mapped));
        }
        if mapped != valid {
            return Err(format!("{mapped} logical pages are mapped, but {valid} slots are valid"));
        }
        for (page, slot) in self.iter() {
            let back = self.page_in(slot);
            if back != Some(page) {
                return Err(format!("logical page {page} maps to slot {slot}, which holds {back:?}"));
            }
        }
        Ok(())
    }
}

/// The map alone is saved, as a slot and 1 for each page, whatever became of a fill: the rest follows from it.
impl State for Mapping {
    fn layout(layout: &mut Layout) {
        layout.word("Mapping");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let length = self.slot_of.length();
        if !carrier.is_restoring() {
            let slots = self.iter().map(|(page, slot)| (u64::from(page), slot + 1));
            return carrier.numbers(length, slots, |_, _| Ok(()));
        }
        let Self { slot_of, page_in, filled: _, mapped } = self;
        let slots = page_in.length() as u64;
        carrier.numbers(length, std::iter::empty(), |page, number| {
            let is_free = |slot: u32| u64::from(slot) < slots && page_in.get(slot as usize) == UNTOUCHED;
            let Some(slot) = number.checked_sub(1).filter(|&slot| is_free(slot)) else {
                let reason = format!("logical page {page} maps to entry {number}: no slot, or that of another page");
                return Err(StateError::damaged(reason));
            };
            page_in.set(slot as usize, page as u32 + FIRST);
            slot_of.set(page as u32, slot + FIRST);
            *mapped += 1;
            Ok(())
        })
    }
}
