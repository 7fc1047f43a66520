//! When the SLC cache is emptied, and what is counted of it ([`crate::collector::Folding`]).

use crate::collector::{SlcCacheCounters, SlcCacheUse};
use crate::config::SlcCacheFull;
use crate::device::SimulatedSsd;
use crate::event::Event;
use crate::ftl::Cause;

impl SimulatedSsd {
    /// What the SLC cache has done; `None` where there is none.
    pub fn slc_cache_counters(&self) -> Option<SlcCacheCounters> {
        self.ftl.pages.has_slc_cache().then_some(self.collector.slc_counters)
    }

    /// What is in the SLC cache; `None` where there is none.
    pub fn slc_cache_use(&self) -> Option<SlcCacheUse> {
        let (superblocks, valid) = self.ftl.pages.slc_cache_use();
        let valid_bytes = valid * self.config.slot_bytes();
        let capacity_bytes = self.config.slc_cache_bytes();
        self.ftl.pages.has_slc_cache().then_some(SlcCacheUse { superblocks, capacity_bytes, valid_bytes })
    }

    /// A request has ended: if it leaves the drive with nothing to do, the cache is emptied after a while.
    #[cold]
    pub(crate) fn watch_rest(&mut self) {
        if !self.host.is_resting() {
            return;
        }
        let Some(cache) = self.config.ftl.slc_cache else { return };
        (self.collector.folding.rest_began_ns, self.collector.folding.is_quiet) = (self.clock.now_ns, false);
        if !std::mem::replace(&mut self.collector.folding.is_watched, true) {
            self.clock.schedule(self.clock.now_ns + cache.idle_ns, Event::Idle { drive: 0 });
        }
    }

    /// A while has gone by since the drive began to rest, or since another rest that has ended.
    pub(crate) fn look_at_rest(&mut self) {
        self.collector.folding.is_watched = false;
        let Some(cache) = self.config.ftl.slc_cache else { return };
        if !self.host.is_resting() {
            return;
        }
        let due_ns = self.collector.folding.rest_began_ns + cache.idle_ns;
        if due_ns > self.clock.now_ns {
            self.collector.folding.is_watched = true;
            return self.clock.schedule(due_ns, Event::Idle { drive: 0 });
        }
        self.collector.folding.is_quiet = true;
        (0..self.ftl.pages.geometry.units).for_each(|unit| self.collect_if_needed(unit));
    }

    /// Whether a unit has data in the cache that is to be moved now.
    #[inline]
    pub(super) fn wants_folding(&self, unit: u32) -> bool {
        self.ftl.pages.has_slc_cache()
            && self.ftl.pages.wants_folding(unit, self.collector.folding.is_quiet && self.host.is_resting())
    }

    /// Whether there is anything to be done for the cache of a unit.
    #[inline(always)]
    pub(super) fn has_to_fold(&self, unit: u32) -> bool {
        self.ftl.pages.has_slc_cache()
            && (self.wants_folding(unit) || self.awaits_folded(unit) || self.makes_room_in_cache(unit))
    }

    /// Whether the drive has time to collect garbage so that its cache has room.
    fn makes_room_in_cache(&self, unit: u32) -> bool {
        self.collector.folding.is_quiet && self.host.is_resting() && self.ftl.pages.lacks_room_for_slc_cache(unit)
    }

    /// Begins to empty a superblock of the cache, if that is wanted and the unit has room for it beside its collection; when
    /// the cache is empty and the drive has time, one that is full of garbage, so that the cache has room. Otherwise, those
    /// that were emptied wait no longer for another one to fill the superpage that their last data is in.
    pub(super) fn fold_if_wanted(&mut self, unit: u32) {
        if !self.ftl.pages.has_slc_cache() || !self.collector.units[unit as usize].has_no_victim() {
            return;
        }
        let has_room = self.ftl.pages.has_room_to_fold(unit) && !self.collects_in_vain();
        if has_room
            && self.wants_folding(unit)
            && let Some(victim) = self.ftl.pages.take_cached(unit, true)
        {
            self.fold(unit, victim);
        } else if has_room
            && self.makes_room_in_cache(unit)
            && let Some(victim) = self.ftl.pages.take_for_room_in_slc_cache(unit)
        {
            self.flash.counters.gc_runs += 1;
            self.empty(unit, victim, Cause::Gc);
        } else if self.awaits_folded(unit) {
            self.pad_awaited(unit);
        }
    }

    /// Whether somebody waits for a superblock of the cache that is emptied and not erased yet.
    pub(super) fn awaits_folded(&self, unit: u32) -> bool {
        let folds = self.config.ftl.slc_cache.is_some_and(|cache| cache.when_full == SlcCacheFull::Fold);
        (folds || self.collector.folding.is_quiet)
            && self.collector.units[unit as usize].emptied_blocks().any(|block| self.ftl.pages.is_slc(block))
    }

    /// Empties a superblock of the cache.
    pub(super) fn fold(&mut self, unit: u32, victim: u32) {
        self.flash.counters.folding_runs += 1;
        self.empty(unit, victim, Cause::Folding);
    }

    /// Counts the bytes of a superpage that the host's data went to.
    pub(super) fn count_cached(&mut self, block: u32, bytes: u64, is_host: bool) {
        let counters = &mut self.collector.slc_counters;
        if self.ftl.pages.is_slc(block) {
            self.flash.counters.slc_bytes_programmed.0 += bytes;
            match self.ftl.pages.is_dedicated(block) {
                true => counters.dedicated_bytes += bytes,
                false => counters.dynamic_bytes += bytes,
            }
        } else if is_host {
            counters.bypassed_bytes += bytes;
        }
    }
}
