//! Random greedy, or d choices: the emptiest of `choices` different superblocks drawn at random.
//!
//! Source: Van Houdt, "A mean field model for a class of garbage collection algorithms in flash-based solid state
//! drives", SIGMETRICS 2013; the RGA of Li et al., SIGMETRICS 2013. Among equals, the one drawn first.

use super::sealed_set::SealedSet;
use super::{Candidate, Choice, Context, Origin, Shape, VictimPolicy};
use crate::config::GcConfig;

/// The random greedy policy.
pub(crate) struct RandomGreedy {
    sealed: SealedSet,
    choices: u32,
}

impl RandomGreedy {
    pub(super) fn new(gc: &GcConfig, shape: Shape) -> Self {
        Self { sealed: SealedSet::new(shape.units, shape.superblocks), choices: gc.choices }
    }
}

impl VictimPolicy for RandomGreedy {
    fn candidates(&self) -> Vec<Candidate> {
        self.sealed.members().into_iter().map(Candidate::from).collect()
    }

    fn sealed(&mut self, block: u32, _: u32, _: Origin, _: u64) {
        self.sealed.insert(block);
    }

    fn invalidated(&mut self, _: u32, _: u32, _: u64) {}

    fn removed(&mut self, block: u32) {
        self.sealed.remove(block);
    }

    fn take_victim(&mut self, unit: u32, context: &mut Context<'_>) -> Option<Choice> {
        let mut best: Option<(u32, u32)> = None;
        let superblocks = context.superblocks;
        self.sealed.draw(unit, self.choices, context.random, |block| {
            let valid = superblocks[block].valid;
            if best.is_none_or(|(_, least)| valid < least) {
                best = Some((block, valid));
            }
        });
        let (block, _) = best?;
        self.sealed.remove(block);
        Some(block.into())
    }
}

crate::state::state! { RandomGreedy { saved { sealed } built { choices } } }

#[cfg(test)]
mod tests {
    use super::super::naive::{Bench, agrees, steps};
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape { units: 1, superblocks: 8, pages: 6 };

    #[test]
    fn of_two_among_four_it_takes_each_as_often_as_counting_pairs_says() {
        // Of the six pairs, the emptiest superblock is in three, the next is the emptier one of two, the third of one.
        let mut bench = Bench::new(RandomGreedy::new(&GcConfig { choices: 2, ..GcConfig::default() }, SHAPE), SHAPE);
        let mut taken = [0; 4];
        (0..4).for_each(|block| bench.seal(block, block + 1));
        for _ in 0..6_000 {
            let block = bench.take(0).unwrap();
            taken[block as usize] += 1;
            bench.seal(block, block + 1);
        }
        let near = |n: i32, expected: i32| (n - expected).abs() < 150;
        assert!(near(taken[0], 3000) && near(taken[1], 2000) && near(taken[2], 1000) && taken[3] == 0, "{taken:?}");
    }

    proptest! {
        #[test]
        fn with_as_many_choices_as_superblocks_it_is_greedy(steps in steps()) {
            let lowest = |sealed: &[super::super::naive::Seen]| sealed.iter().map(|s| s.valid).min();
            let mut bench = Bench::new(RandomGreedy::new(&GcConfig { choices: 8, ..GcConfig::default() }, SHAPE), SHAPE);
            for &step in &steps {
                let before = bench.sealed.clone();
                if let Some(choice) = bench.play(step, SHAPE.pages) {
                    let valid = choice.and_then(|block| before.iter().find(|s| s.block == block)).map(|s| s.valid);
                    prop_assert_eq!(valid, lowest(&before));
                }
            }
            agrees(RandomGreedy::new(&GcConfig { choices: 1, ..GcConfig::default() }, SHAPE), SHAPE, &[], |_, _| None)?;
        }
    }
}
