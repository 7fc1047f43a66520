//! When the SLC cache is emptied, and what is counted of it ([`crate::collector::Folding`]).

use crate::collector::{SlcCacheCounters, SlcCacheUse};
use crate::device::SimulatedSsd;
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

    /// Starts to empty a superblock of the cache, if that is wanted and the unit has space for it beside its
    /// collection; when the cache is empty and the drive has time, one that is full of garbage, so that the cache has
    /// room. Otherwise, those that were emptied wait no longer for another one to fill the superpage that their last
    /// data is in.
    pub(super) fn fold_if_wanted(&mut self, unit: u32) {
        if !self.ftl.pages.has_slc_cache() || !self.collector.units[unit as usize].has_no_victim() {
            return;
        }
        let has_room =
            self.ftl.pages.has_room_to_fold(unit) && !self.collector.collects_in_vain(&self.ftl.pages, self.is_idle());
        if has_room
            && self.collector.wants_folding(unit, &self.ftl.pages, self.host.is_resting())
            && let Some(victim) = self.ftl.pages.take_cached(unit, true)
        {
            self.fold(unit, victim);
        } else if has_room
            && self.collector.makes_room_in_cache(unit, &self.ftl.pages, self.host.is_resting())
            && let Some(victim) = self.ftl.pages.take_for_room_in_slc_cache(unit)
        {
            self.flash.counters.gc_runs += 1;
            self.empty(unit, victim, Cause::Gc);
        } else if self.collector.awaits_folded(unit, &self.ftl.pages) {
            self.pad_awaited(unit);
        }
    }

    /// Empties a superblock of the cache.
    pub(super) fn fold(&mut self, unit: u32, victim: u32) {
        self.flash.counters.folding_runs += 1;
        self.empty(unit, victim, Cause::Folding);
    }

    /// The drive may have had nothing to do for so long that its SLC cache is emptied.
    pub(crate) fn look_at_rest(&mut self) {
        if self.collector.has_rested(self.host.is_resting(), &mut self.clock) {
            (0..self.ftl.pages.geometry.units).for_each(|unit| self.collect_if_needed(unit));
        }
    }
}
