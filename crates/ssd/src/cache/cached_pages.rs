//! What the write cache knows of each logical page, whether it holds it or not.
//!
//! ```text
//!   2 · page        the page's entry in the cache, plus one; 0 where it has none
//!   2 · page + 1    the window of time in which the page was written last
//! ```
//!
//! A write asks for both, so they stand side by side: one way to memory instead of two. Where nobody asks for the
//! window there is only the first, at `page`.

use crate::sparse::SparseTable;

/// Entries and windows of all logical pages.
pub(crate) struct CachedPages {
    numbers: SparseTable,
    /// 1 where windows are kept.
    shift: u32,
}

impl CachedPages {
    /// Nothing is known of so many pages.
    pub(crate) fn new(pages: usize, with_windows: bool) -> Self {
        let shift = u32::from(with_windows);
        Self { numbers: SparseTable::new(pages << shift), shift }
    }

    /// The entry of a page.
    #[inline]
    pub(crate) fn entry(&self, logical_page: u32) -> Option<u32> {
        self.numbers.get(logical_page << self.shift).checked_sub(1)
    }

    /// A page has an entry from now on.
    #[inline]
    pub(crate) fn enter(&mut self, logical_page: u32, entry: u32) {
        self.numbers.set(logical_page << self.shift, entry + 1);
    }

    /// A page has no entry any more.
    #[inline]
    pub(crate) fn leave(&mut self, logical_page: u32) {
        self.numbers.set(logical_page << self.shift, 0);
    }

    /// A page is written in a window; gives the one before, 0 for none. Windows must be kept.
    #[inline]
    pub(crate) fn written_in(&mut self, logical_page: u32, window: u32) -> u32 {
        debug_assert_eq!(self.shift, 1);
        self.numbers.replace((logical_page << 1) + 1, window)
    }

    /// Pages that have an entry.
    pub(crate) fn entered(&self) -> usize {
        let windows = self.shift;
        self.numbers.iter().filter(|(place, _)| place & windows == 0).count()
    }

    /// Says that the place of what is known of a page will be asked for soon.
    #[inline]
    pub(crate) fn prefetch_place(&self, logical_page: u32) {
        self.numbers.prefetch_place(logical_page << self.shift);
    }

    /// Says that what is known of a page will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, logical_page: u32) {
        self.numbers.prefetch(logical_page << self.shift);
    }
}

crate::state::state! {
    CachedPages {
        saved { numbers }
        built { shift }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_windows_of_neighbours_do_not_meet() {
        let mut pages = CachedPages::new(10, true);
        pages.enter(3, 7);
        pages.enter(4, 0);
        assert_eq!([2, 3, 4, 5].map(|page| pages.entry(page)), [None, Some(7), Some(0), None]);
        assert_eq!([(3, 5), (3, 6), (9, 6)].map(|(page, window)| pages.written_in(page, window)), [0, 5, 0]);
        assert_eq!((pages.entry(3), pages.entry(9), pages.entered()), (Some(7), None, 2));
        pages.leave(3);
        assert_eq!((pages.entry(3), pages.written_in(3, 8), pages.entered()), (None, 6, 1));
    }

    #[test]
    fn without_windows_a_page_has_an_entry_only() {
        let mut pages = CachedPages::new(10, false);
        (0..10).for_each(|page| pages.enter(page, page));
        assert_eq!((pages.entry(9), pages.entered()), (Some(9), 10));
    }
}
