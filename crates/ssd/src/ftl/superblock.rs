//! State of every superblock: how much of it is valid, how far it is programmed, how often it was erased.

use super::geometry::Geometry;

/// The life of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockState {
    /// Erased, all pages clean.
    Free,
    /// Being filled.
    Open,
    /// Fully written; garbage collection may take it.
    Sealed,
    /// Being collected.
    Victim,
}

/// One superblock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Superblock {
    pub(crate) state: BlockState,
    /// Valid logical pages in it.
    pub(crate) valid: u32,
    /// Rows whose program command has ended; the rows behind are still in the write buffer.
    pub(crate) programmed_rows: u32,
    /// Rows that the write pointer has passed.
    pub(crate) allocated_rows: u32,
    /// P/E cycles so far.
    pub(crate) erase_count: u32,
}

/// All superblocks of a drive.
pub(crate) struct Superblocks {
    pub(crate) blocks: Vec<Superblock>,
}

impl Superblocks {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let clean =
            Superblock { state: BlockState::Free, valid: 0, programmed_rows: 0, allocated_rows: 0, erase_count: 0 };
        Self { blocks: vec![clean; (geometry.units * geometry.superblocks) as usize] }
    }
}

impl std::ops::Index<u32> for Superblocks {
    type Output = Superblock;
    fn index(&self, block: u32) -> &Superblock {
        &self.blocks[block as usize]
    }
}

impl std::ops::IndexMut<u32> for Superblocks {
    fn index_mut(&mut self, block: u32) -> &mut Superblock {
        &mut self.blocks[block as usize]
    }
}
