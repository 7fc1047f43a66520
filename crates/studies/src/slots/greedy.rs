//! Greedy: one open block; when no clean block is left but the one kept for moves, the sealed block with the fewest
//! valid pages is emptied into it.
//!
//! # What it can cost at most
//! Let *M* be the number of blocks, *B* the slots of a block, *U* the pages, and `v* = ⌊U ÷ (M − 1)⌋`. A block is
//! emptied only when the open one is full and one block is clean: the *U* valid pages, or fewer, are then in *M* − 1
//! sealed blocks, so that the emptiest has `v*` at most, and `v* < B` because `U < (M − 1)·B` ([`Shape::new`]). The
//! clean block takes these pages; at least `B − v*` of its slots stay clean, all of which the host writes to before a
//! block is emptied again. So with *g* blocks emptied in *n* writes, `(g − 1)·(B − v*) ≤ n`, and
//!
//! ```text
//!   rewrites ≤ g·v* ≤ v*·(1 + ⌊n ÷ (B − v*)⌋)              per write, about ρ ÷ (1 − ρ)
//! ```
//!
//! from *any* state in which nothing else is open. The abstract of Lange, Naor and Yadgar says that no deterministic
//! algorithm without knowledge of the future has a better guarantee. [`adversary`](super::adversary) shows here that
//! greedy's cannot be better: it writes a page of the fullest block each time, and greedy comes to the bound.

use super::frontier::Frontier;
use super::{Algorithm, Drive, Shape};

/// The greedy algorithm.
pub struct Greedy {
    frontier: Frontier,
}

impl Greedy {
    /// For a drive; it knows nothing of the writes to come.
    pub fn new(_: Shape) -> Self {
        Self { frontier: Frontier::new(vec![0]) }
    }
}

impl Algorithm for Greedy {
    #[inline]
    fn write(&mut self, drive: &mut Drive, _: u32, page: u32) {
        let block = loop {
            if let Some(block) = self.frontier.block(drive, 0, 1) {
                break block;
            }
            let Some((victim, _)) = drive.emptiest(0) else { unreachable!("all blocks but one are sealed") };
            self.frontier.empty(drive, victim, |_| 0, |_, _, _| {});
        };
        drive.write(page, block);
        self.frontier.seal_full(drive, 0);
    }
}
