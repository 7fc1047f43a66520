//! Folding: what is in the SLC cache is moved to where cells hold all their bits.
//!
//! ```text
//!   nothing to do for idle_ns  ─┐
//!   when_full = "fold", no room ─┼─▶ the oldest cached superblock is emptied as a victim of garbage collection is
//!   too few superblocks free   ─┘    (one at a time in a unit, behind what garbage collection needs)
//! ```
//!
//! When the cache is empty and the drive still has nothing to do, superblocks that hold garbage are collected until the
//! cache could have all its dynamic superblocks ([`Ftl::take_for_room_in_slc_cache`](crate::ftl::PageMap)): data that is written
//! over leaves garbage and no free superblocks, and the cache would have room only once.
//!
//! A superblock that is being emptied when the host comes back is emptied to its end; no further one is begun.

/// What the drive knows of its rests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Folding {
    /// When the drive had nothing to do any more.
    pub(crate) rest_began_ns: u64,
    /// An event will tell whether it still has nothing to do.
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

crate::state::state! { Folding { saved { rest_began_ns, is_watched, is_quiet } } }

crate::state::state! { SlcCacheCounters { saved { dedicated_bytes, dynamic_bytes, bypassed_bytes } } }
