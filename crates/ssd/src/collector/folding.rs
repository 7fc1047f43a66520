//! Folding: what is in the SLC cache is moved to where cells hold all their bits.
//!
//! ```text
//!   nothing to do for idle_ns  ─┐
//!   when_full = "fold", no space ─┼─▶ the oldest cached superblock is emptied as a victim of garbage collection is
//!   too few superblocks free   ─┘    (one at a time in a unit, behind what garbage collection needs)
//! ```
//!
//! When the cache is empty and the drive still has nothing to do, superblocks that hold garbage are collected until the
//! cache could have all its dynamic superblocks ([`Ftl::take_for_room_in_slc_cache`](crate::ftl::PageMap)): data that
//! is written over leaves garbage and no free superblocks, and the cache would have room only once.
//!
//! A superblock that is being emptied when the host comes back is emptied to its end; no further one is started.

use flashwise_block::FlashCounters;

use super::Collector;
use crate::clock::Clock;
use crate::config::SlcCacheFull;
use crate::event::Event;
use crate::ftl::PageMap;

/// What the drive knows of its rests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Folding {
    /// When the drive had nothing to do any more.
    pub(crate) rest_began_ns: u64,
    /// An event is scheduled that checks whether it still has nothing to do.
    pub(crate) is_watched: bool,
    /// It has had nothing to do for as long as it takes.
    pub(crate) is_quiet: bool,
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
    pub fn and(&self, other: &Self) -> Self {
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

crate::state::state! { Folding { saved { rest_began_ns, is_watched, is_quiet } } }

crate::state::state! { SlcCacheCounters { saved { dedicated_bytes, dynamic_bytes, bypassed_bytes } } }

impl Collector {
    /// Whether a unit has data in the cache that is to be moved now.
    #[inline]
    pub(crate) fn wants_folding(&self, unit: u32, ftl: &PageMap, is_resting: bool) -> bool {
        ftl.has_slc_cache() && ftl.wants_folding(unit, self.folding.is_quiet && is_resting)
    }

    /// Whether there is anything to be done for the cache of a unit.
    #[inline(always)]
    pub(crate) fn has_to_fold(&self, unit: u32, ftl: &PageMap, is_resting: bool) -> bool {
        ftl.has_slc_cache()
            && (self.wants_folding(unit, ftl, is_resting)
                || self.awaits_folded(unit, ftl)
                || self.makes_room_in_cache(unit, ftl, is_resting))
    }

    /// Whether the drive has time to collect garbage so that its cache has room.
    pub(crate) fn makes_room_in_cache(&self, unit: u32, ftl: &PageMap, is_resting: bool) -> bool {
        self.folding.is_quiet && is_resting && ftl.lacks_room_for_slc_cache(unit)
    }

    /// Whether somebody waits for a superblock of the cache that is emptied and not erased yet.
    pub(crate) fn awaits_folded(&self, unit: u32, ftl: &PageMap) -> bool {
        let folds = self.rules.slc_cache.is_some_and(|cache| cache.when_full == SlcCacheFull::Fold);
        (folds || self.folding.is_quiet) && self.units[unit as usize].emptied_blocks().any(|block| ftl.is_slc(block))
    }

    /// A request has ended: if it leaves the drive with nothing to do, the cache is emptied after a while.
    #[cold]
    pub(crate) fn watch_rest(&mut self, clock: &mut Clock) {
        let Some(cache) = self.rules.slc_cache else { return };
        (self.folding.rest_began_ns, self.folding.is_quiet) = (clock.now_ns, false);
        if !std::mem::replace(&mut self.folding.is_watched, true) {
            clock.schedule(clock.now_ns + cache.idle_ns, Event::Idle { drive: 0 });
        }
    }

    /// A while has gone by since the drive started to rest, or since another rest that has ended. Gives whether it has
    /// rested for long enough.
    pub(crate) fn has_rested(&mut self, is_resting: bool, clock: &mut Clock) -> bool {
        self.folding.is_watched = false;
        let Some(cache) = self.rules.slc_cache.filter(|_| is_resting) else { return false };
        let due_ns = self.folding.rest_began_ns + cache.idle_ns;
        if due_ns > clock.now_ns {
            self.folding.is_watched = true;
            clock.schedule(due_ns, Event::Idle { drive: 0 });
            return false;
        }
        self.folding.is_quiet = true;
        true
    }

    /// Counts the bytes of a superpage that the host's data went to.
    pub(crate) fn count_cached(
        &mut self,
        block: u32,
        bytes: u64,
        is_host: bool,
        ftl: &PageMap,
        flash_counters: &mut FlashCounters,
    ) {
        let counters = &mut self.slc_counters;
        if ftl.is_slc(block) {
            flash_counters.slc_bytes_programmed.0 += bytes;
            match ftl.is_dedicated(block) {
                true => counters.dedicated_bytes += bytes,
                false => counters.dynamic_bytes += bytes,
            }
        } else if is_host {
            counters.bypassed_bytes += bytes;
        }
    }
}
