//! Folding: what is in the SLC cache is moved to where cells hold all their bits.
//!
//! ```text
//!   nothing to do for idle_ns  ─┐
//!   when_full = "fold", no room ─┼─▶ the oldest cached superblock is emptied as a victim of garbage collection is
//!   too few superblocks free   ─┘    (one at a time in a unit, behind what garbage collection needs)
//! ```
//!
//! When the cache is empty and the drive still has nothing to do, superblocks that hold garbage are collected until the
//! cache could have all its dynamic superblocks ([`Ftl::take_for_room_in_slc_cache`](crate::ftl::Ftl)): data that is written
//! over leaves garbage and no free superblocks, and the cache would have room only once.
//!
//! A superblock that is being emptied when the host comes back is emptied to its end; no further one is begun.

use crate::config::SlcCacheFull;
use crate::device::SimulatedSsd;
use crate::event::Event;
use crate::ftl::Cause;

/// What the drive knows of its rests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Folding {
    /// When the drive had nothing to do any more.
    rest_began_ns: u64,
    /// An event will tell whether it still has nothing to do.
    is_watched: bool,
    /// It has had nothing to do for as long as it takes.
    is_quiet: bool,
}

/// What an SLC cache has done and holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlcCacheCounters {
    /// Bytes programmed with one bit a cell into superblocks that are never written otherwise.
    pub dedicated_bytes: u64,
    /// The same of other superblocks.
    pub dynamic_bytes: u64,
    /// Bytes of the host's superpages that went past the cache.
    pub bypassed_bytes: u64,
}

impl SlcCacheCounters {
    /// What two drives have counted together.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self {
            dedicated_bytes: self.dedicated_bytes + other.dedicated_bytes,
            dynamic_bytes: self.dynamic_bytes + other.dynamic_bytes,
            bypassed_bytes: self.bypassed_bytes + other.bypassed_bytes,
        }
    }
}

/// What is in an SLC cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlcCacheUse {
    /// Superblocks that hold one bit a cell, full or being filled.
    pub superblocks: u32,
    /// Bytes that it can hold at most.
    pub capacity_bytes: u64,
    /// Bytes of valid pages in those that are full.
    pub valid_bytes: u64,
}

impl SimulatedSsd {
    /// What the SLC cache has done; `None` where there is none.
    pub fn slc_cache_counters(&self) -> Option<SlcCacheCounters> {
        self.ftl.has_slc_cache().then_some(self.slc_counters)
    }

    /// What is in the SLC cache; `None` where there is none.
    pub fn slc_cache_use(&self) -> Option<SlcCacheUse> {
        let (superblocks, valid) = self.ftl.slc_cache_use();
        let valid_bytes = valid * self.config.slot_bytes();
        let capacity_bytes = self.config.slc_cache_bytes();
        self.ftl.has_slc_cache().then_some(SlcCacheUse { superblocks, capacity_bytes, valid_bytes })
    }

    /// A request has ended: if it leaves the drive with nothing to do, the cache is emptied after a while.
    #[cold]
    pub(crate) fn watch_rest(&mut self) {
        if !self.is_resting() {
            return;
        }
        let Some(cache) = self.config.ftl.slc_cache else { return };
        (self.folding.rest_began_ns, self.folding.is_quiet) = (self.now_ns, false);
        if !std::mem::replace(&mut self.folding.is_watched, true) {
            self.events.schedule(self.now_ns + cache.idle_ns, Event::Idle { drive: 0 });
        }
    }

    /// A while has gone by since the drive began to rest, or since another rest that has ended.
    pub(crate) fn look_at_rest(&mut self) {
        self.folding.is_watched = false;
        let Some(cache) = self.config.ftl.slc_cache else { return };
        if !self.is_resting() {
            return;
        }
        let due_ns = self.folding.rest_began_ns + cache.idle_ns;
        if due_ns > self.now_ns {
            self.folding.is_watched = true;
            return self.events.schedule(due_ns, Event::Idle { drive: 0 });
        }
        self.folding.is_quiet = true;
        (0..self.ftl.geometry.units).for_each(|unit| self.collect_if_needed(unit));
    }

    /// Whether a unit has data in the cache that is to be moved now.
    #[inline]
    pub(super) fn wants_folding(&self, unit: u32) -> bool {
        self.ftl.has_slc_cache() && self.ftl.wants_folding(unit, self.folding.is_quiet && self.is_resting())
    }

    /// Whether there is anything to be done for the cache of a unit.
    #[inline(always)]
    pub(super) fn has_to_fold(&self, unit: u32) -> bool {
        self.ftl.has_slc_cache()
            && (self.wants_folding(unit) || self.awaits_folded(unit) || self.makes_room_in_cache(unit))
    }

    /// Whether the drive has time to collect garbage so that its cache has room.
    fn makes_room_in_cache(&self, unit: u32) -> bool {
        self.folding.is_quiet && self.is_resting() && self.ftl.lacks_room_for_slc_cache(unit)
    }

    /// Begins to empty a superblock of the cache, if that is wanted and the unit has room for it beside its collection; when
    /// the cache is empty and the drive has time, one that is full of garbage, so that the cache has room. Otherwise, those
    /// that were emptied wait no longer for another one to fill the superpage that their last data is in.
    pub(super) fn fold_if_wanted(&mut self, unit: u32) {
        if !self.ftl.has_slc_cache() || !self.collectors[unit as usize].has_no_victim() {
            return;
        }
        let has_room = self.ftl.has_room_to_fold(unit) && !self.collects_in_vain();
        if has_room
            && self.wants_folding(unit)
            && let Some(victim) = self.ftl.take_cached(unit, true)
        {
            self.fold(unit, victim);
        } else if has_room
            && self.makes_room_in_cache(unit)
            && let Some(victim) = self.ftl.take_for_room_in_slc_cache(unit)
        {
            self.flash_counters.gc_runs += 1;
            self.empty(unit, victim, Cause::Gc);
        } else if self.awaits_folded(unit) {
            self.pad_awaited(unit);
        }
    }

    /// Whether somebody waits for a superblock of the cache that is emptied and not erased yet.
    pub(super) fn awaits_folded(&self, unit: u32) -> bool {
        let folds = self.config.ftl.slc_cache.is_some_and(|cache| cache.when_full == SlcCacheFull::Fold);
        (folds || self.folding.is_quiet)
            && self.collectors[unit as usize].emptied_blocks().any(|block| self.ftl.is_slc(block))
    }

    /// Empties a superblock of the cache.
    pub(super) fn fold(&mut self, unit: u32, victim: u32) {
        self.flash_counters.folding_runs += 1;
        self.empty(unit, victim, Cause::Folding);
    }

    /// Counts the bytes of a superpage that the host's data went to.
    pub(super) fn count_cached(&mut self, block: u32, bytes: u64, is_host: bool) {
        let counters = &mut self.slc_counters;
        if self.ftl.is_slc(block) {
            self.flash_counters.slc_bytes_programmed.0 += bytes;
            match self.ftl.is_dedicated(block) {
                true => counters.dedicated_bytes += bytes,
                false => counters.dynamic_bytes += bytes,
            }
        } else if is_host {
            counters.bypassed_bytes += bytes;
        }
    }
}

crate::state::state! { Folding { saved { rest_began_ns, is_watched, is_quiet } } }

crate::state::state! { SlcCacheCounters { saved { dedicated_bytes, dynamic_bytes, bypassed_bytes } } }
