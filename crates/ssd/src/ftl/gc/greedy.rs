//! Greedy: the sealed superblock with the fewest valid pages; among equals, the one that came to that count first.
//!
//! Source: Agrawal et al., "Design Tradeoffs for SSD Performance", USENIX ATC 2008, section 3.4. The choice that it
//! leaves open, equal counts, goes to the superblock that has been at that count longest.

use super::count_lists::CountLists;
use super::{Candidate, Choice, Context, Origin, Shape, VictimPolicy};
use crate::config::GcConfig;

/// The greedy policy.
pub(crate) struct Greedy {
    lists: CountLists,
    superblocks: u32,
}

impl Greedy {
    pub(super) fn new(_: &GcConfig, shape: Shape) -> Self {
        let Shape { units, superblocks, pages } = shape;
        Self { lists: CountLists::new(units, units * superblocks, pages), superblocks }
    }
}

impl VictimPolicy for Greedy {
    fn candidates(&self) -> Vec<Candidate> {
        self.lists.counts().into_iter().map(|(block, _, valid)| Candidate { block, valid: Some(valid) }).collect()
    }

    fn sealed(&mut self, block: u32, valid: u32, _: Origin, _: u64) {
        self.lists.append(block / self.superblocks, block, valid);
    }

    #[inline]
    fn invalidated(&mut self, block: u32, _: u32, _: u64) {
        self.lists.decrement(block);
    }

    fn removed(&mut self, block: u32) {
        self.lists.remove(block);
    }

    fn take_victim(&mut self, unit: u32, _: &mut Context<'_>) -> Option<Choice> {
        let (block, _) = self.lists.emptiest(unit)?;
        self.lists.remove(block);
        Some(block.into())
    }
}

crate::state::state! { Greedy { saved { lists } built { superblocks } } }

#[cfg(test)]
mod tests {
    use super::super::naive::{Bench, agrees};
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape { units: 1, superblocks: 8, pages: 6 };

    #[test]
    fn the_emptiest_superblock_goes_first_and_the_longest_waiting_one_among_equals() {
        let mut bench = Bench::new(Greedy::new(&GcConfig::default(), SHAPE), SHAPE);
        for (block, valid) in [(0, 5), (1, 3), (2, 5), (3, 3)] {
            bench.seal(block, valid);
        }
        bench.invalidate(2);
        let order: Vec<_> = std::iter::from_fn(|| bench.take(0)).collect();
        assert_eq!(order, [1, 3, 2, 0]);
    }

    #[test]
    fn units_do_not_mix() {
        let shape = Shape { units: 2, superblocks: 2, pages: 10 };
        let mut bench = Bench::new(Greedy::new(&GcConfig::default(), shape), shape);
        bench.seal(0, 9);
        bench.seal(3, 1);
        assert_eq!([bench.take(0), bench.take(0), bench.take(1)], [Some(0), None, Some(3)]);
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_scan_over_all_superblocks(steps in super::super::naive::steps()) {
            agrees(Greedy::new(&GcConfig::default(), SHAPE), SHAPE, &steps, |sealed, _| {
                let best = sealed.iter().min_by_key(|s| (s.valid, s.changed_step));
                best.map(|s| s.block)
            })?;
        }
    }
}
