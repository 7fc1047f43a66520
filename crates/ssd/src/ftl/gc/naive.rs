//! What the policies' tests share: a bench that plays the FTL, and a scan over all sealed superblocks beside it.
#![allow(clippy::unwrap_used, reason = "a failed test should panic where it fails")]

use proptest::prelude::*;
use rand::SeedableRng;

use super::super::superblock::BlockState;
use super::*;
use crate::memory::{Records, Touched};

/// What a scan sees of a sealed superblock.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) block: u32,
    pub(super) valid: u32,
    pub(super) origin: Origin,
    pub(super) erase_count: u32,
    /// The step at which it was sealed.
    pub(super) sealed_step: u64,
    /// The step at which it was sealed or last lost a valid page.
    pub(super) changed_step: u64,
    /// The clock then.
    pub(super) changed: u64,
}

/// A policy with the superblocks that it is told of.
pub(super) struct Bench<P> {
    pub(super) policy: P,
    pub(super) sealed: Vec<Seen>,
    superblocks: Superblocks,
    pub(super) wear: UnitWear,
    random: Pcg64Mcg,
    pub(super) clock: u64,
    step: u64,
}

/// What a proptest does to a bench: (superblock, action, argument).
pub(super) fn steps() -> impl Strategy<Value = Vec<(u32, u32, u32)>> {
    prop::collection::vec((0_u32..8, 0_u32..8, 0_u32..64), 1..250)
}

impl<P: VictimPolicy> Bench<P> {
    pub(super) fn new(policy: P, shape: Shape) -> Self {
        let all = shape.units * shape.superblocks;
        let superblocks = Superblocks { blocks: Records::new(all as usize, Touched::Sparsely) };
        let (wear, random) = (UnitWear::new(shape.superblocks), Pcg64Mcg::seed_from_u64(1));
        Self { policy, sealed: Vec::new(), superblocks, wear, random, clock: 0, step: 0 }
    }

    pub(super) fn seal(&mut self, block: u32, valid: u32) {
        self.seal_as(block, valid, Origin::Host);
    }

    pub(super) fn seal_as(&mut self, block: u32, valid: u32, origin: Origin) {
        self.step += 1;
        let (step, changed) = (self.step, self.clock);
        let state = &mut self.superblocks[block];
        (state.valid, state.state) = (valid, BlockState::Sealed);
        let erase_count = state.erase_count;
        let seen = Seen { block, valid, origin, erase_count, sealed_step: step, changed_step: step, changed };
        self.sealed.push(seen);
        self.policy.sealed(block, valid, origin, self.clock);
    }

    fn find(&self, block: u32) -> Option<usize> {
        self.sealed.iter().position(|s| s.block == block)
    }

    pub(super) fn invalidate(&mut self, block: u32) {
        self.step += 1;
        let at = self.find(block).unwrap();
        let seen = &mut self.sealed[at];
        seen.valid -= 1;
        (seen.changed_step, seen.changed) = (self.step, self.clock);
        let valid = seen.valid;
        self.superblocks[block].valid = valid;
        self.policy.invalidated(block, valid, self.clock);
    }

    /// Lets the policy choose, and counts an erasure of its choice.
    pub(super) fn take(&mut self, unit: u32) -> Option<u32> {
        self.choose(unit).map(|choice| choice.block)
    }

    pub(super) fn choose(&mut self, unit: u32) -> Option<Choice> {
        let (superblocks, wear) = (&self.superblocks, &self.wear);
        let mut context = Context { superblocks, wear, clock: self.clock, random: &mut self.random };
        let choice = self.policy.take_victim(unit, &mut context)?;
        let at = self.find(choice.block).expect("a policy names only what is sealed");
        self.sealed.remove(at);
        self.wear(choice.block, 1);
        Some(choice)
    }

    /// Adds erasures to a superblock.
    pub(super) fn wear(&mut self, block: u32, erasures: u32) {
        for _ in 0..erasures {
            self.superblocks[block].erase_count += 1;
            self.wear.erased(self.superblocks[block].erase_count);
        }
    }

    /// The same chance as the policy will have at its next choice.
    pub(super) fn chance(&self) -> Pcg64Mcg {
        self.random.clone()
    }

    /// One step of a proptest; gives what the policy chose, if it was asked.
    pub(super) fn play(&mut self, (block, action, argument): (u32, u32, u32), pages: u32) -> Option<Option<u32>> {
        self.clock += u64::from(argument % 5);
        match (action, self.find(block)) {
            (0 | 1, None) => {
                let origin = if argument % 2 == 0 { Origin::Host } else { Origin::Moved };
                self.seal_as(block, pages - argument % (pages / 2 + 1), origin);
            }
            (2..=5, Some(at)) if self.sealed[at].valid > 0 => self.invalidate(block),
            (6, Some(at)) => {
                self.sealed.remove(at);
                self.policy.removed(block);
            }
            (7, _) => return Some(self.take(0)),
            _ => {}
        }
        None
    }
}

/// Plays steps and holds each choice of a policy for the only unit against that of a scan.
pub(super) fn agrees<P: VictimPolicy>(
    policy: P,
    shape: Shape,
    steps: &[(u32, u32, u32)],
    scan: impl Fn(&[Seen], u64) -> Option<u32>,
) -> Result<(), TestCaseError> {
    let mut bench = Bench::new(policy, shape);
    for &step in steps {
        let (before, clock) = (bench.sealed.clone(), bench.clock + u64::from(step.2 % 5));
        if let Some(choice) = bench.play(step, shape.pages) {
            prop_assert_eq!(choice, scan(&before, clock), "of {:?}", before);
        }
    }
    Ok(())
}

/// The candidates of DiskSim's SSD model, by the scan in the order of numbers that it describes.
pub(super) fn chain(sealed: &[Seen]) -> Vec<Seen> {
    let mut sealed = sealed.to_vec();
    sealed.sort_by_key(|s| s.block);
    let mut least = u32::MAX;
    sealed.retain(|s| {
        let kept = s.valid <= least;
        least = least.min(s.valid);
        kept
    });
    sealed
}
