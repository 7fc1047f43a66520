//! Greedy as DiskSim's SSD model does it: among the superblocks with the fewest valid pages, the one with the highest
//! number.
//!
//! That model goes through the blocks of a plane in the order of their numbers and keeps each one that is at least as
//! empty as all before it; these are the candidates, and greedy takes the last one. A tree of minima finds it, and the
//! candidates before it, in O(log n) each: the last candidate before block n is the last minimum of the blocks before
//! n.
//!
//! Source: Agrawal et al., "Design Tradeoffs for SSD Performance", USENIX ATC 2008, and the SSD add-on to DiskSim 4.0.

use super::{Candidate, Choice, Context, Origin, Shape, VictimPolicy};
use crate::config::GcConfig;
use crate::ftl::min_tree::{ABSENT, MinTree};

/// The candidates of each unit.
pub(super) struct Candidates {
    trees: Vec<MinTree>,
    superblocks: u32,
}

impl Candidates {
    pub(super) fn new(shape: Shape) -> Self {
        let trees = (0..shape.units).map(|_| MinTree::new(shape.superblocks)).collect();
        Self { trees, superblocks: shape.superblocks }
    }

    fn set(&mut self, block: u32, key: u64) {
        self.trees[(block / self.superblocks) as usize].set(block % self.superblocks, key);
    }

    /// A sealed superblock has so many valid pages.
    pub(super) fn count(&mut self, block: u32, valid: u32) {
        self.set(block, u64::from(valid));
    }

    /// A superblock is not sealed any more.
    pub(super) fn remove(&mut self, block: u32) {
        self.set(block, ABSENT);
    }

    /// The last candidate of a unit.
    pub(super) fn last(&self, unit: u32) -> Option<u32> {
        self.before(unit, (unit + 1) * self.superblocks)
    }

    /// The last candidate of a unit before a superblock.
    pub(super) fn before(&self, unit: u32, block: u32) -> Option<u32> {
        let first = unit * self.superblocks;
        self.trees[unit as usize].last_min_before(block - first).map(|at| first + at)
    }
}

/// DiskSim's greedy policy.
pub(crate) struct DisksimGreedy {
    candidates: Candidates,
}

impl DisksimGreedy {
    pub(super) fn new(_: &GcConfig, shape: Shape) -> Self {
        Self { candidates: Candidates::new(shape) }
    }
}

impl VictimPolicy for DisksimGreedy {
    fn candidates(&self) -> Vec<Candidate> {
        self.candidates.all()
    }

    fn sealed(&mut self, block: u32, valid: u32, _: Origin, _: u64) {
        self.candidates.count(block, valid);
    }

    fn invalidated(&mut self, block: u32, valid: u32, _: u64) {
        self.candidates.count(block, valid);
    }

    fn removed(&mut self, block: u32) {
        self.candidates.remove(block);
    }

    fn take_victim(&mut self, unit: u32, _: &mut Context<'_>) -> Option<Choice> {
        let block = self.candidates.last(unit)?;
        self.candidates.remove(block);
        Some(block.into())
    }
}

crate::state::state! { Candidates { saved { trees } built { superblocks } } }

impl Candidates {
    /// All candidates with their counts.
    pub(super) fn all(&self) -> Vec<Candidate> {
        let of_unit = |(unit, tree): (u32, &MinTree)| -> Vec<Candidate> {
            let candidate = |at| Candidate { block: unit * self.superblocks + at, valid: Some(tree.key(at) as u32) };
            tree.members().map(candidate).collect()
        };
        (0..).zip(&self.trees).flat_map(of_unit).collect()
    }
}

crate::state::state! { DisksimGreedy { saved { candidates } } }

#[cfg(test)]
mod tests {
    use super::super::naive::{agrees, chain, steps};
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape { units: 1, superblocks: 8, pages: 6 };

    proptest! {
        #[test]
        fn it_takes_the_last_of_the_candidates_that_a_scan_in_the_order_of_numbers_keeps(steps in steps()) {
            agrees(DisksimGreedy::new(&GcConfig::default(), SHAPE), SHAPE, &steps, |sealed, _| chain(sealed).last().map(|s| s.block))?;
        }
    }
}
