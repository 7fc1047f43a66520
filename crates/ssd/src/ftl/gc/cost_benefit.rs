//! Cost-benefit: the superblock with the largest (1 − u) ÷ 2u × age.
//!
//! u is the share of its pages that is valid: 2u is what reading and writing them costs, 1 − u what is gained. Its age
//! is the number of pages that the host has written since the superblock was sealed or last lost a valid page. One
//! without valid pages goes first; among equals, the one with fewer valid pages, then the one that came to its count
//! first.
//!
//! At one count of valid pages the oldest superblock is the best, and it is the first of the count's list: a choice
//! compares the fronts of the lists, at most one for each page of a superblock.
//!
//! Source: Kawaguchi, Nishioka and Motoda, "A Flash-Memory Based File System", USENIX 1995, section 3.

use super::count_lists::CountLists;
use super::{Candidate, Choice, Context, Origin, Shape, VictimPolicy};
use crate::config::GcConfig;

/// The cost-benefit policy.
pub(crate) struct CostBenefit {
    lists: CountLists,
    /// When each superblock was sealed or last lost a valid page.
    changed: Vec<u64>,
    superblocks: u32,
    pages: u32,
}

impl CostBenefit {
    pub(super) fn new(_: &GcConfig, shape: Shape) -> Self {
        let Shape { units, superblocks, pages } = shape;
        let all = units * superblocks;
        Self { lists: CountLists::new(units, all, pages), changed: vec![0; all as usize], superblocks, pages }
    }

    fn best(&self, unit: u32, clock: u64) -> Option<u32> {
        let (mut block, mut valid) = self.lists.from(unit, 0)?;
        let benefit =
            |block: u32, valid: u32| u128::from(self.pages - valid) * u128::from(clock - self.changed[block as usize]);
        let (mut best, mut cost) = (block, valid);
        while cost > 0 {
            let Some((next, count)) = self.lists.from(unit, valid + 1) else { break };
            (block, valid) = (next, count);
            if benefit(block, valid) * u128::from(cost) > benefit(best, cost) * u128::from(valid) {
                (best, cost) = (block, valid);
            }
        }
        Some(best)
    }
}

impl VictimPolicy for CostBenefit {
    fn candidates(&self) -> Vec<Candidate> {
        self.lists.counts().into_iter().map(|(block, _, valid)| Candidate { block, valid: Some(valid) }).collect()
    }

    fn sealed(&mut self, block: u32, valid: u32, _: Origin, clock: u64) {
        self.changed[block as usize] = clock;
        self.lists.append(block / self.superblocks, block, valid);
    }

    #[inline]
    fn invalidated(&mut self, block: u32, _: u32, clock: u64) {
        self.changed[block as usize] = clock;
        self.lists.decrement(block);
    }

    fn removed(&mut self, block: u32) {
        self.lists.remove(block);
    }

    fn take_victim(&mut self, unit: u32, context: &mut Context<'_>) -> Option<Choice> {
        let block = self.best(unit, context.clock)?;
        self.lists.remove(block);
        Some(block.into())
    }
}

crate::state::state! { CostBenefit { saved { lists, changed } built { superblocks, pages } } }

#[cfg(test)]
mod tests {
    use super::super::naive::{Bench, agrees, steps};
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape { units: 1, superblocks: 8, pages: 6 };

    #[test]
    fn an_older_superblock_goes_before_one_that_is_a_little_emptier_but_not_before_an_empty_one() {
        let mut bench = Bench::new(CostBenefit::new(&GcConfig::default(), SHAPE), SHAPE);
        bench.seal(0, 4);
        bench.clock = 90;
        bench.seal(1, 3);
        bench.seal(2, 0);
        bench.clock = 100;
        assert_eq!([bench.take(0), bench.take(0), bench.take(0)], [Some(2), Some(0), Some(1)]);
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_scan_over_all_superblocks(steps in steps()) {
            agrees(CostBenefit::new(&GcConfig::default(), SHAPE), SHAPE, &steps, |sealed, clock| {
                // The values are ratios with denominators up to 6: times 5040 they are whole.
                let value = |valid: u32, age: u64| match valid {
                    0 => u64::MAX,
                    valid => u64::from(6 - valid) * age * 5040 / u64::from(valid),
                };
                let key = |s: &super::super::naive::Seen| {
                    (std::cmp::Reverse(value(s.valid, clock - s.changed)), s.valid, s.changed_step)
                };
                sealed.iter().min_by_key(|s| key(s)).map(|s| s.block)
            })?;
        }
    }
}
