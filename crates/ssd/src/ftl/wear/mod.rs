//! Wear: how P/E cycles are spread over the superblocks of a unit.
//!
//! - *Dynamic* wear levelling chooses among free superblocks ([`free`]): the one that is written next is the one that
//!   became free first, or the one that was erased least often.
//! - *Static* wear levelling sees that data which never changes does not keep a superblock young for ever ([`cold`]):
//!   when a unit's superblocks are too far apart, the data of the least worn sealed one moves to the most worn free
//!   one, and the young superblock is used again.
//! - Media that are written in place have no superblocks; writes to their pages are counted ([`in_place`]).
//!
//! Source: Chang, "On efficient wear leveling for large-scale flash-memory storage systems", SAC 2007, for the swap of
//! cold data into worn blocks; the threshold is that of MQSim (Tavakkol et al., FAST 2018).

mod cold;
mod free;
mod in_place;

pub(crate) use cold::ColdBlocks;
pub(crate) use free::FreeBlocks;
pub use in_place::InPlaceWear;

/// P/E cycles of a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitWear {
    /// Of the most worn superblock that ever was in use.
    pub(crate) most: u32,
    total: u64,
    superblocks: u32,
}

impl UnitWear {
    /// A unit of `superblocks` superblocks that nobody has erased.
    pub(crate) fn new(superblocks: u32) -> Self {
        Self { most: 0, total: 0, superblocks }
    }

    /// A superblock was erased, its `erase_count`th time.
    pub(crate) fn erased(&mut self, erase_count: u32) {
        self.most = self.most.max(erase_count);
        self.total += 1;
    }

    /// P/E cycles of a superblock on average.
    pub(crate) fn mean_erasures(&self) -> f64 {
        self.total as f64 / f64::from(self.superblocks)
    }
}

crate::state::state! {
    UnitWear {
        saved { most, total }
        built { superblocks }
    }
}
