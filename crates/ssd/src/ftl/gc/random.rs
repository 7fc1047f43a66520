//! Random: any sealed superblock, with equal probability.
//!
//! Source: the random cleaning of Bux and Iliadis, "Performance of greedy garbage collection in flash-based solid-state
//! drives", Performance Evaluation 67(11), 2010; its write amplification under uniform random writes is 1 ÷ (1 − ρ).

use super::sealed_set::SealedSet;
use super::{Candidate, Choice, Context, Origin, Shape, VictimPolicy};
use crate::config::GcConfig;

/// The random policy.
pub(crate) struct Random {
    sealed: SealedSet,
}

impl Random {
    pub(super) fn new(_: &GcConfig, shape: Shape) -> Self {
        Self { sealed: SealedSet::new(shape.units, shape.superblocks) }
    }
}

impl VictimPolicy for Random {
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
        let mut victim = None;
        self.sealed.draw(unit, 1, context.random, |block| victim = Some(block));
        self.sealed.remove(victim?);
        victim.map(Choice::from)
    }
}

crate::state::state! { Random { saved { sealed } } }

#[cfg(test)]
mod tests {
    use super::super::naive::{Bench, steps};
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape { units: 1, superblocks: 8, pages: 6 };

    #[test]
    fn each_superblock_is_taken_equally_often() {
        let mut bench = Bench::new(Random::new(&GcConfig::default(), SHAPE), SHAPE);
        let mut taken = [0; 8];
        (0..8).for_each(|block| bench.seal(block, block % 6));
        for _ in 0..8_000 {
            let block = bench.take(0).unwrap();
            taken[block as usize] += 1;
            bench.seal(block, 3);
        }
        assert!(taken.iter().all(|n| (900..1100).contains(n)), "{taken:?}");
    }

    proptest! {
        #[test]
        fn it_takes_what_is_sealed_and_nothing_else(steps in steps()) {
            let mut bench = Bench::new(Random::new(&GcConfig::default(), SHAPE), SHAPE);
            for step in steps {
                let sealed = bench.sealed.len();
                if let Some(choice) = bench.play(step, SHAPE.pages) {
                    prop_assert_eq!(choice.is_some(), sealed > 0);
                }
            }
        }
    }
}
