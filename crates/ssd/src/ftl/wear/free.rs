//! Free superblocks of a unit: which one is opened next.
//!
//! A tree of minima over (P/E cycles, when it became free), without the former where the oldest goes first; a second
//! one over the cycles from most to least where cold data moves to worn superblocks.
//!
//! Superblocks that nobody has ever written are *fresh*: a range of numbers, in no tree. They became free before all
//! others and are worn least, so that the first of them is always the next one, and a drive of a terabyte is made
//! without a look at each of its superblocks.

use std::ops::Range;

use crate::config::DynamicWearLevelling;
use crate::ftl::min_tree::{ABSENT, MinTree};
use crate::state::{Carried, Carrier, Layout, State, StateError};

/// Bits of a key that say when a superblock became free.
const TIME_BITS: u32 = 40;

/// The free superblocks of a unit, numbered in the unit.
pub(crate) struct FreeBlocks {
    /// Free and never used.
    fresh: Range<u32>,
    next: MinTree,
    worn: Option<MinTree>,
    dynamic: DynamicWearLevelling,
    len: u32,
    freed: u64,
}

impl FreeBlocks {
    /// None of `superblocks` superblocks; `by_wear` tells whether [`FreeBlocks::take_most_worn`] is ever asked.
    pub(crate) fn new(superblocks: u32, dynamic: DynamicWearLevelling, by_wear: bool) -> Self {
        let worn = by_wear.then(|| MinTree::new(superblocks));
        Self { fresh: 0..0, next: MinTree::new(superblocks), worn, dynamic, len: 0, freed: 0 }
    }

    /// All of `superblocks` superblocks, none of which was ever used.
    pub(crate) fn all(superblocks: u32, dynamic: DynamicWearLevelling, by_wear: bool) -> Self {
        let none = Self::new(superblocks, dynamic, by_wear);
        Self { fresh: 0..superblocks, len: superblocks, freed: u64::from(superblocks), ..none }
    }

    /// Those that were never used.
    pub(crate) fn fresh(&self) -> Range<u32> {
        self.fresh.clone()
    }

    /// How many are free.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// A superblock became free.
    pub(crate) fn insert(&mut self, index: u32, erase_count: u32) {
        self.enter(index, erase_count, self.freed);
        (self.freed, self.len) = (self.freed + 1, self.len + 1);
    }

    fn enter(&mut self, index: u32, erase_count: u32, freed: u64) {
        let wear = match self.dynamic {
            DynamicWearLevelling::Fifo => 0,
            DynamicWearLevelling::LeastErased => u64::from(erase_count.min((1 << (63 - TIME_BITS)) - 1)),
        };
        self.next.set(index, wear << TIME_BITS | freed & ((1 << TIME_BITS) - 1));
        if let Some(worn) = &mut self.worn {
            worn.set(index, u64::from(u32::MAX - erase_count));
        }
    }

    /// Takes the superblock that is written next.
    pub(crate) fn take(&mut self) -> Option<u32> {
        if let Some(index) = self.fresh.next() {
            self.len -= 1;
            return Some(index);
        }
        let index = self.next.first_min()?;
        self.remove(index);
        Some(index)
    }

    /// Takes the superblock with the most P/E cycles.
    pub(crate) fn take_most_worn(&mut self) -> Option<u32> {
        let Some(index) = self.worn.as_ref().and_then(MinTree::first_min) else { return self.take() };
        self.remove(index);
        Some(index)
    }

    /// Takes a superblock that is free.
    pub(crate) fn remove(&mut self, index: u32) {
        if self.fresh.contains(&index) {
            self.enter_fresh();
        }
        self.len -= 1;
        self.next.set(index, ABSENT);
        if let Some(worn) = &mut self.worn {
            worn.set(index, ABSENT);
        }
    }

    /// Lets the fresh superblocks take their places among the others, because one of them leaves out of its turn.
    #[cold]
    fn enter_fresh(&mut self) {
        let fresh = std::mem::take(&mut self.fresh);
        fresh.for_each(|index| self.enter(index, 0, u64::from(index)));
    }
}

crate::state::parts_of_some_drives!(MinTree);

impl State for FreeBlocks {
    fn layout(layout: &mut Layout) {
        layout.word("FreeBlocks { fresh next worn len freed }");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let Self { fresh, next, worn, dynamic: _, len, freed } = self;
        let all = fresh.end;
        fresh.start.carry(carrier)?;
        fresh.end.carry(carrier)?;
        next.carry(carrier)?;
        worn.carry(carrier)?;
        len.carry(carrier)?;
        freed.carry(carrier)?;
        // That of a new drive ends at its last superblock.
        if carrier.is_restoring() && (fresh.start > fresh.end || fresh.end > all) {
            return Err(StateError::damaged(format!("superblocks {fresh:?} of {all} were never used")));
        }
        Ok(())
    }
}

impl FreeBlocks {
    /// Those that are free, in no order.
    pub(crate) fn members(&self) -> impl Iterator<Item = u32> {
        self.fresh().chain(self.next.members())
    }

    /// Checks that the orders are of the same superblocks.
    pub(crate) fn check(&self) -> Result<(), String> {
        let used: Vec<u32> = self.next.members().collect();
        let by_wear: Option<Vec<u32>> = self.worn.as_ref().map(|worn| worn.members().collect());
        let twice = used.iter().any(|index| self.fresh.contains(index));
        if twice || by_wear.is_some_and(|by_wear| by_wear != used) || used.len() + self.fresh.len() != self.len as usize
        {
            return Err("the free superblocks are not the same in all orders".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCKS: u32 = 8;

    /// Free superblocks with their P/E cycles, in the order in which they became free.
    type Model = Vec<(u32, u32)>;

    /// Does one thing to both: frees a superblock, or takes one out in one of the ways; the same one must leave.
    fn step(free: &mut FreeBlocks, model: &mut Model, (index, action, erase_count): (u32, u32, u32), by_wear: bool) {
        let wear = |&(_, wear): &(u32, u32)| if by_wear { wear } else { 0 };
        let at = model.iter().position(|&(i, _)| i == index);
        let (taken, expected) = match (action, at) {
            (0 | 1, None) => {
                free.insert(index, erase_count);
                return model.push((index, erase_count));
            }
            (1, Some(_)) => {
                free.remove(index);
                (Some(index), Some(index))
            }
            (2, _) => (free.take(), model.iter().min_by_key(|&b| wear(b)).map(|&(i, _)| i)),
            (3, _) => {
                let worn = model.iter().max_by_key(|&&(i, wear)| (wear, std::cmp::Reverse(i)));
                (free.take_most_worn(), worn.map(|&(i, _)| i))
            }
            _ => return,
        };
        assert_eq!(taken, expected);
        model.retain(|&(i, _)| Some(i) != expected);
    }

    proptest! {
        #[test]
        fn the_oldest_the_least_erased_or_the_most_worn_goes_as_a_scan_says(
            steps in prop::collection::vec((0..BLOCKS, 0_u32..4, 0_u32..6), 1..100),
            by_wear in any::<bool>(),
            is_new in any::<bool>(),
        ) {
            let dynamic = if by_wear { DynamicWearLevelling::LeastErased } else { DynamicWearLevelling::Fifo };
            let (mut free, mut model) = (FreeBlocks::new(BLOCKS, dynamic, true), Model::new());
            if is_new {
                free = FreeBlocks::all(BLOCKS, dynamic, true);
                model.extend((0..BLOCKS).map(|index| (index, 0)));
            }
            for (index, action, erase_count) in steps {
                // On a new drive, whatever becomes free was erased.
                step(&mut free, &mut model, (index, action, erase_count + u32::from(is_new)), by_wear);
                prop_assert_eq!(free.len() as usize, model.len());
            }
        }
    }
}
