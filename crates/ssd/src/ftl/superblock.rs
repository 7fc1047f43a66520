//! State of every superblock: how much of it is valid, how far it is programmed, how often it was erased, how many bits
//! its cells hold.
//!
//! ```text
//!   Free ─▶ Open ─▶ Sealed ─▶ Victim ─▶ erased ─▶ Free
//!            ├─▶ Cached ───┘                             with one bit a cell
//!            └────────┴▶ Failing ─▶ Victim ─▶ Bad       a program failed, or it is retired by hand
//!                                    Victim ─▶ Bad       its erase failed, or it is worn out
//! ```

use zerocopy::FromZeros;

use super::geometry::Geometry;
use super::streams::Stream;
use crate::memory::{Records, Touched};

/// The life of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
#[repr(u8)]
pub(crate) enum BlockState {
    /// Erased, all pages clean.
    Free = 0,
    /// Being filled.
    Open,
    /// Fully written; garbage collection may take it.
    Sealed,
    /// Fully written with one bit a cell; it is emptied when the drive has time, or no space.
    Cached,
    /// Nothing more is written to it; it waits until what is valid in it can be moved.
    Failing,
    /// Being emptied.
    Victim,
    /// Not usable any more, or never was.
    Bad,
}

/// How many bits a superblock's cells hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
#[repr(u8)]
pub(crate) enum CellMode {
    /// All that they can.
    AllBits = 0,
    /// One.
    Slc,
}

/// One superblock; all zeros is one that was never written.
#[derive(Clone, Copy, Debug, FromZeros)]
pub(crate) struct Superblock {
    pub(crate) state: BlockState,
    /// When it is emptied it is not used again.
    pub(crate) is_failing: bool,
    /// How it is written, while it holds anything.
    pub(crate) mode: CellMode,
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

/// All superblocks of a drive.
pub(crate) struct Superblocks {
    pub(crate) blocks: Records<Superblock>,
}

impl Superblocks {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let count = geometry.units as usize * geometry.superblocks as usize;
        Self { blocks: Records::new(count, Touched::Densely) }
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

crate::state::state_names! {
    BlockState { Free = 0, Open = 1, Sealed = 2, Cached = 3, Failing = 4, Victim = 5, Bad = 6 }
}

crate::state::state_names! { CellMode { AllBits = 0, Slc = 1 } }

crate::state::state! {
    Superblock {
        saved { state, is_failing, mode, stream, valid, programmed_rows, allocated_rows, erase_count }
    }
}

crate::state::state! { Superblocks { saved { blocks } } }
