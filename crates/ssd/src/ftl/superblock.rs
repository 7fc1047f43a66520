//! State of every superblock: how much of it is valid, how far it is programmed, how often it was erased.
//!
//! ```text
//!   Free ─▶ Open ─▶ Sealed ─▶ Victim ─▶ erased ─▶ Free
//!            └────────┴▶ Failing ─▶ Victim ─▶ Bad       a program failed, or it is retired by hand
//!                                    Victim ─▶ Bad       its erase failed, or it is worn out
//! ```

use super::geometry::Geometry;
use super::streams::Stream;

/// The life of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockState {
    /// Erased, all pages clean.
    Free,
    /// Being filled.
    Open,
    /// Fully written; garbage collection may take it.
    Sealed,
    /// Nothing more is written to it; it waits until what is valid in it can be moved.
    Failing,
    /// Being emptied.
    Victim,
    /// Not usable any more, or never was.
    Bad,
}

/// One superblock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Superblock {
    pub(crate) state: BlockState,
    /// When it is emptied it is not used again.
    pub(crate) is_failing: bool,
    /// What it was opened for last.
    pub(crate) stream: Stream,
    /// Valid logical pages in it.
    pub(crate) valid: u32,
    /// Rows whose program command has ended; the rows behind are still in the write buffer.
    pub(crate) programmed_rows: u32,
    /// Rows that the write pointer has passed.
    pub(crate) allocated_rows: u32,
    /// P/E cycles so far.
    pub(crate) erase_count: u32,
}

impl Superblock {
    /// One that was never written.
    pub(crate) fn clean() -> Self {
        Self {
            state: BlockState::Free,
            is_failing: false,
            stream: Stream::HOST,
            valid: 0,
            programmed_rows: 0,
            allocated_rows: 0,
            erase_count: 0,
        }
    }
}

/// All superblocks of a drive.
pub(crate) struct Superblocks {
    pub(crate) blocks: Vec<Superblock>,
}

impl Superblocks {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self { blocks: vec![Superblock::clean(); (geometry.units * geometry.superblocks) as usize] }
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
