//! Address translation where the page map does not fit controller memory: requests wait for their translation pages.
//!
//! ```text
//!   request ─▶ every logical page looked up ─▶ all entries there: continues
//!                                          └▶ translation pages read; the request continues with the last of them
//!   page leaves the write cache ─▶ looked up in the same way; the write that brought it is long answered
//!   entry leaves dirty ─▶ translation page read, changed, placed like a page of the host, programmed
//! ```
//!
//! What is decided, and by whom: [`crate::ftl::mapping_cache`].

use super::unplaced::Unplaced;
use crate::ftl::mapping_cache::{Counters, MappingCache};
use crate::list::{Fifo, Linked, NONE, Slab};
use crate::memory::prefetch;

/// Who waits for a translation page.
#[derive(Clone, Copy)]
pub(crate) enum Waiter {
    Request(u32),
    /// A page that leaves the write cache.
    Cached(u32),
}

/// Someone who waits for a translation page, for the sake of one logical page.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) waiter: Waiter,
    pub(crate) logical_page: u32,
    pub(crate) next: u32,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { waiter: Waiter::Request(NONE), logical_page: 0, next: NONE }
    }
}

impl Linked for Waiting {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// The map's cache and who waits for it.
pub(crate) struct Translator {
    pub(crate) cache: MappingCache,
    /// Number of the first translation page among the logical pages.
    pub(crate) first_page: u32,
    /// Bytes of a translation page that a look-up needs from flash.
    pub(crate) load_bytes: u32,
    pub(crate) waiting: Slab<Waiting>,
    /// Who waits, translation page by translation page.
    pub(crate) waiting_for: Vec<Fifo>,
    /// Changed translation pages for which no unit had room.
    pub(crate) unplaced: Unplaced,
}

impl Translator {
    /// A translator for the logical pages below `first_page`, which are in so many units; its translation pages are
    /// those behind.
    pub(crate) fn new(cache: MappingCache, first_page: u32, load_bytes: u32, units: u32) -> Self {
        let waiting_for = vec![Fifo::default(); cache.translation_pages() as usize];
        Self { cache, first_page, load_bytes, waiting: Slab::default(), waiting_for, unplaced: Unplaced::new(units) }
    }

    /// The drive has been filled: every translation page is on flash.
    pub(crate) fn all_stored(&mut self) {
        self.cache.all_stored();
    }

    /// Says that the place of a logical page's entry will be asked for soon.
    #[inline]
    pub(crate) fn prefetch_place(&self, logical_page: u32) {
        self.cache.prefetch_place(logical_page);
    }

    /// Says that the entry of a logical page will be needed soon.
    #[inline]
    pub(crate) fn prefetch_page(&self, logical_page: u32) {
        self.cache.prefetch_page(logical_page);
        prefetch(&self.waiting_for, self.cache.translation_page(logical_page) as usize);
    }

    /// Says that what is cached of the entry of a logical page will be needed soon, when the page moves.
    #[inline]
    pub(crate) fn prefetch_moved(&self, logical_page: u32) {
        if logical_page < self.first_page {
            self.cache.prefetch_page(logical_page);
        }
    }

    /// How often an entry was found in memory, and how often not.
    pub(crate) fn counters(&self) -> Counters {
        self.cache.counters
    }
}

crate::state::state! {
    Translator {
        saved { cache, unplaced }
        at_rest { waiting, waiting_for }
        built { first_page, load_bytes }
    }
    checked check_restored
}

crate::state::parts_of_some_drives!(Translator);

impl Translator {
    fn check_restored(&self) -> Result<(), String> {
        self.unplaced.check_restored(self.cache.translation_pages())
    }
}
