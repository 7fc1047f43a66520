//! The steps of an access one by one, for a pool that does its I/O between them and lets others continue meanwhile.
//!
//! ```text
//!   hit ─▶ hit
//!   miss ─▶ miss ─▶ victim ─clean─▶ evict ─────────────────────────────────────────▶ load
//!                       └─dirty─▶ plan_eviction ─▶ write_started ─▶ evict (n_e of them) ─▶ load, load_prefetched
//! ```
//!
//! Done in this order they decide as [`Pool::access`] does, and count the same.

use super::{Counts, Pool};
use crate::directory::{Found, Page};
use crate::error::PoolError;
use crate::policy::Policy;

/// What an eviction writes, evicts and reads beside the page that missed.
#[derive(Clone, Debug, Default)]
pub struct EvictionPlan {
    /// Dirty pages that are written together, the victim first.
    pub batch: Vec<Page>,
    /// Pages to evict, in this order; the victim is one of them.
    pub victims: Vec<Page>,
    /// Pages to read, the one that missed first; empty for that one alone.
    pub reading: Vec<Page>,
}

/// Decides for a pool whose bytes are elsewhere.
pub trait Steps {
    /// A page was requested. Does nothing where it has no frame any more.
    fn hit(&mut self, page: Page, is_write: bool);

    /// A page without a frame is requested.
    ///
    /// # Errors
    /// When there is no such page.
    fn miss(&mut self, page: Page) -> Result<(), PoolError>;

    /// The next victim and whether it is dirty; `None` while there are free frames.
    ///
    /// # Errors
    /// When every page in a frame is pinned.
    fn victim(&mut self) -> Result<Option<(Page, bool)>, PoolError>;

    /// Plans the eviction of a dirty victim for `missing`; pages that the caller `may` not take are left out.
    fn plan_eviction(
        &mut self,
        victim: Page,
        missing: Page,
        may: &mut dyn FnMut(Page) -> bool,
        plan: &mut EvictionPlan,
    );

    /// The write of a batch has started: its pages count as clean from now on.
    fn write_started(&mut self, batch: &[Page]);

    /// Whether a page has changes, whatever was known of it.
    fn set_dirty(&mut self, page: Page, is_dirty: bool);

    /// Evicts a page from its frame.
    fn evict(&mut self, page: Page);

    /// The page that missed has a frame; so many pages are read together.
    ///
    /// # Errors
    /// When there is no free frame, which never happens after an eviction.
    fn load(&mut self, page: Page, is_write: bool, together: usize) -> Result<(), PoolError>;

    /// A prefetched page has a frame.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    fn load_prefetched(&mut self, page: Page) -> Result<(), PoolError>;

    /// A page could not be read: it has no frame, and nothing is remembered of it.
    fn unload(&mut self, page: Page);

    /// Cancels the load of the page that missed.
    fn cancel_load(&mut self, page: Page);
}

impl<P: Policy> Steps for Pool<P> {
    fn hit(&mut self, page: Page, is_write: bool) {
        if let Found::Resident(entry) = self.pages.find(page) {
            Pool::hit(self, entry, super::Access::new(page, is_write));
        }
    }

    fn miss(&mut self, page: Page) -> Result<(), PoolError> {
        self.check_number(page)?;
        self.announce(page);
        Ok(())
    }

    fn victim(&mut self) -> Result<Option<(Page, bool)>, PoolError> {
        if !self.pages.is_full() {
            return Ok(None);
        }
        if self.pages.is_all_pinned() {
            return Err(self.all_pinned());
        }
        let victim = self.policy.victim(&self.pages).ok_or_else(|| self.all_pinned())?;
        Ok(Some((self.pages.page(victim), self.pages.is_dirty(victim))))
    }

    fn plan_eviction(
        &mut self,
        victim: Page,
        missing: Page,
        may: &mut dyn FnMut(Page) -> bool,
        plan: &mut EvictionPlan,
    ) {
        let Found::Resident(victim) = self.pages.find(victim) else { return };
        self.reading.clear();
        self.reading.push(missing);
        self.victims.clear();
        self.victims.push(victim);
        self.collect(victim, may);
        let pages_of = |entries: &[crate::directory::Entry], into: &mut Vec<Page>| {
            into.clear();
            into.extend(entries.iter().map(|&entry| self.pages.page(entry)));
        };
        pages_of(&self.batch, &mut plan.batch);
        pages_of(&self.victims, &mut plan.victims);
        plan.reading.clear();
        plan.reading.extend_from_slice(&self.reading);
        // As in `make_room`.
        if self.policy.ghosts() == 0 {
            plan.victims.reverse();
        }
    }

    fn write_started(&mut self, batch: &[Page]) {
        for &page in batch {
            if let Found::Resident(entry) = self.pages.find(page) {
                self.pages.mark_clean(entry);
                self.policy.written(entry, &self.pages);
            }
        }
        count_batch(&mut self.counts, batch.len());
    }

    fn set_dirty(&mut self, page: Page, is_dirty: bool) {
        if let Found::Resident(entry) = self.pages.find(page) {
            match is_dirty {
                // Only a hit tells a policy that a page is dirty.
                true if !self.pages.is_dirty(entry) => {
                    self.policy.hit(entry, true, &self.pages);
                    self.pages.mark_dirty_if(entry, true);
                }
                false if self.pages.is_dirty(entry) => {
                    self.pages.mark_clean(entry);
                    self.policy.written(entry, &self.pages);
                }
                _ => {}
            }
        }
    }

    fn evict(&mut self, page: Page) {
        if let Found::Resident(entry) = self.pages.find(page) {
            self.evict(entry, &mut ());
        }
    }

    fn load(&mut self, page: Page, is_write: bool, together: usize) -> Result<(), PoolError> {
        let known = self.pages.find(page);
        self.place(super::Access::new(page, is_write), known)?;
        if let Some(reads) = self.counts.reads.get_mut(together) {
            *reads += 1;
        }
        Ok(())
    }

    fn load_prefetched(&mut self, page: Page) -> Result<(), PoolError> {
        self.place_prefetched(page)
    }

    fn unload(&mut self, page: Page) {
        self.set_dirty(page, false);
        if let Found::Resident(entry) = self.pages.find(page) {
            self.policy.evict(entry, &mut self.pages);
        }
        Pool::cancel_load(self, page);
    }

    fn cancel_load(&mut self, page: Page) {
        Pool::cancel_load(self, page);
    }
}

fn count_batch(counts: &mut Counts, size: usize) {
    counts.dirty_evictions += 1;
    counts.write_back_operations += 1;
    counts.pages_written += size as u64;
    if let Some(batches) = counts.batches.get_mut(size) {
        *batches += 1;
    }
}
