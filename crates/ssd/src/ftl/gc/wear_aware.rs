//! Wear-aware: greedy as DiskSim's SSD model does it, sparing superblocks that have less life left than the others.
//!
//! From the last candidate ([`super::disksim_greedy`]) back to the first: one whose remaining life is below
//! `skip_ratio` of the unit's average is passed over with probability 1 − (life ÷ average) ÷ `skip_ratio`; the one
//! where the walk ends, the first, is always taken. Where `migration_ratio` is given, a candidate whose life is below
//! that share of the average is taken, and the coldest data of the unit moves to a worn superblock.
//!
//! Life is `lifetime_erasures` less the P/E cycles so far, and never below zero; a unit whose superblocks are all worn
//! out spares none. What is coldest is said by [`crate::ftl::wear`].
//!
//! Source: Agrawal et al., "Design Tradeoffs for SSD Performance", USENIX ATC 2008, section 3.5, and the SSD add-on to
//! DiskSim 4.0.

use rand::RngExt;

use super::disksim_greedy::Candidates;
use super::{Candidate, Choice, Context, Origin, Shape, VictimPolicy};
use crate::config::GcConfig;

/// The wear-aware policy.
pub(crate) struct WearAware {
    candidates: Candidates,
    lifetime: u32,
    skip_ratio: f64,
    migration_ratio: f64,
}

impl WearAware {
    pub(super) fn new(gc: &GcConfig, shape: Shape) -> Self {
        Self {
            candidates: Candidates::new(shape),
            lifetime: gc.lifetime_erasures,
            skip_ratio: gc.skip_ratio,
            migration_ratio: gc.migration_ratio.unwrap_or(0.0),
        }
    }

    /// A superblock's remaining life as a share of the unit's average.
    fn relative_life(&self, block: u32, context: &Context<'_>) -> f64 {
        let average = f64::from(self.lifetime) - context.wear.mean_erasures();
        let life = self.lifetime.saturating_sub(context.superblocks[block].erase_count);
        if average > 0.0 { f64::from(life) / average } else { 1.0 }
    }

    fn walk(&self, unit: u32, context: &mut Context<'_>) -> Option<Choice> {
        let mut block = self.candidates.last(unit)?;
        while let Some(before) = self.candidates.before(unit, block) {
            let life = self.relative_life(block, context);
            if life < self.migration_ratio {
                return Some(Choice { block, migrates: true });
            }
            let spared = life < self.skip_ratio && context.random.random::<f64>() < 1.0 - life / self.skip_ratio;
            if !spared {
                break;
            }
            block = before;
        }
        Some(block.into())
    }
}

impl VictimPolicy for WearAware {
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

    fn take_victim(&mut self, unit: u32, context: &mut Context<'_>) -> Option<Choice> {
        let choice = self.walk(unit, context)?;
        self.candidates.remove(choice.block);
        Some(choice)
    }
}

crate::state::state! { WearAware { saved { candidates } built { lifetime, skip_ratio, migration_ratio } } }

#[cfg(test)]
mod tests {
    use super::super::naive::{Bench, chain, steps};
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape { units: 1, superblocks: 8, pages: 6 };

    fn policy(migration_ratio: Option<f64>) -> WearAware {
        WearAware::new(&GcConfig { lifetime_erasures: 20, migration_ratio, ..GcConfig::default() }, SHAPE)
    }

    #[test]
    fn a_superblock_without_life_is_spared_while_there_is_another_candidate() {
        let mut bench = Bench::new(policy(None), SHAPE);
        bench.wear(1, 20);
        bench.seal(0, 3);
        bench.seal(1, 1);
        assert_eq!([bench.take(0), bench.take(0)], [Some(0), Some(1)]);
    }

    #[test]
    fn with_migration_a_worn_superblock_is_taken_and_cold_data_asked_for() {
        let mut bench = Bench::new(policy(Some(0.85)), SHAPE);
        bench.wear(1, 10);
        bench.seal(0, 3);
        bench.seal(1, 1);
        assert_eq!(bench.choose(0), Some(Choice { block: 1, migrates: true }));
        assert_eq!(bench.choose(0), Some(Choice { block: 0, migrates: false }));
    }

    proptest! {
        #[test]
        fn it_walks_back_through_the_candidates_as_the_scan_does(
            steps in steps(), wear in prop::collection::vec(0_u32..25, 8),
        ) {
            let mut bench = Bench::new(policy(None), SHAPE);
            (0..8).for_each(|block| bench.wear(block, wear[block as usize]));
            for &step in &steps {
                let (before, mut chance) = (bench.sealed.clone(), bench.chance());
                let average = 20.0 - bench.wear.mean_erasures();
                if let Some(choice) = bench.play(step, SHAPE.pages) {
                    let mut walk = chain(&before);
                    while walk.len() > 1 && average > 0.0 {
                        let worn = walk[walk.len() - 1].erase_count;
                        let share = f64::from(20_u32.saturating_sub(worn)) / average;
                        if share >= 0.8 || chance.random::<f64>() >= 1.0 - share / 0.8 {
                            break;
                        }
                        walk.pop();
                    }
                    prop_assert_eq!(choice, walk.last().map(|s| s.block));
                }
            }
        }
    }
}
