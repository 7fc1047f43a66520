//! Which sealed superblock is the coldest: the one with the fewest P/E cycles, because data that changes would have let
//! it be collected. Among equals, the one with the lowest number.

use crate::ftl::min_tree::{ABSENT, MinTree};

/// The sealed superblocks of a unit by their P/E cycles.
pub(crate) struct ColdBlocks {
    tree: MinTree,
}

impl ColdBlocks {
    /// None of `superblocks` superblocks.
    pub(crate) fn new(superblocks: u32) -> Self {
        Self { tree: MinTree::new(superblocks) }
    }

    /// A superblock, numbered in its unit, was sealed.
    pub(crate) fn insert(&mut self, index: u32, erase_count: u32) {
        self.tree.set(index, u64::from(erase_count));
    }

    /// A superblock is not sealed any more.
    pub(crate) fn remove(&mut self, index: u32) {
        self.tree.set(index, ABSENT);
    }

    /// The coldest superblock and its P/E cycles.
    pub(crate) fn coldest(&self) -> Option<(u32, u32)> {
        self.tree.first_min().map(|index| (index, self.tree.key(index) as u32))
    }
}

crate::state::state! { ColdBlocks { saved { tree } } }

crate::state::parts_of_some_drives!(ColdBlocks);

impl ColdBlocks {
    /// The sealed superblocks with their P/E cycles.
    pub(crate) fn members(&self) -> impl Iterator<Item = (u32, u32)> {
        self.tree.members().map(|index| (index, self.tree.key(index) as u32))
    }
}
