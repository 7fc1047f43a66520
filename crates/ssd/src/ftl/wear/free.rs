//! Free superblocks of a unit: which one is opened next.
//!
//! A tree of minima over (P/E cycles, when it became free), without the former where the oldest goes first; a second one
//! over the cycles from most to least where cold data moves to worn superblocks.

use crate::config::DynamicWearLevelling;
use crate::ftl::min_tree::{ABSENT, MinTree};

/// Bits of a key that say when a superblock became free.
const TIME_BITS: u32 = 40;

/// The free superblocks of a unit, numbered in the unit.
pub(crate) struct FreeBlocks {
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
        Self { next: MinTree::new(superblocks), worn, dynamic, len: 0, freed: 0 }
    }

    /// How many are free.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// A superblock became free.
    pub(crate) fn insert(&mut self, index: u32, erase_count: u32) {
        let wear = match self.dynamic {
            DynamicWearLevelling::Fifo => 0,
            DynamicWearLevelling::LeastErased => u64::from(erase_count.min((1 << (63 - TIME_BITS)) - 1)),
        };
        self.next.set(index, wear << TIME_BITS | self.freed & ((1 << TIME_BITS) - 1));
        if let Some(worn) = &mut self.worn {
            worn.set(index, u64::from(u32::MAX - erase_count));
        }
        (self.freed, self.len) = (self.freed + 1, self.len + 1);
    }

    /// Takes the superblock that is written next.
    pub(crate) fn take(&mut self) -> Option<u32> {
        let index = self.next.first_min()?;
        self.remove(index);
        Some(index)
    }

    /// Takes the superblock with the most P/E cycles.
    pub(crate) fn take_most_worn(&mut self) -> Option<u32> {
        let index = self.worn.as_ref().unwrap_or(&self.next).first_min()?;
        self.remove(index);
        Some(index)
    }

    /// Takes a superblock that is free.
    pub(crate) fn remove(&mut self, index: u32) {
        self.len -= 1;
        self.next.set(index, ABSENT);
        if let Some(worn) = &mut self.worn {
            worn.set(index, ABSENT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_oldest_the_least_erased_or_the_most_worn_goes_as_a_scan_says(
            steps in prop::collection::vec((0_u32..8, 0_u32..4, 0_u32..6), 1..100),
            least_erased in any::<bool>(),
        ) {
            let dynamic =
                if least_erased { DynamicWearLevelling::LeastErased } else { DynamicWearLevelling::Fifo };
            let mut free = FreeBlocks::new(8, dynamic, true);
            let mut model: Vec<(u32, u32)> = Vec::new();
            for (index, action, erase_count) in steps {
                let at = model.iter().position(|&(i, _)| i == index);
                match (action, at) {
                    (0 | 1, None) => {
                        free.insert(index, erase_count);
                        model.push((index, erase_count));
                    }
                    (2, _) => {
                        let wear = |&(_, wear): &(u32, u32)| if least_erased { wear } else { 0 };
                        let expected = model.iter().min_by_key(|&b| wear(b)).map(|&(i, _)| i);
                        prop_assert_eq!(free.take(), expected);
                        model.retain(|&(i, _)| Some(i) != expected);
                    }
                    (3, _) => {
                        let worn = model.iter().max_by_key(|&&(i, wear)| (wear, std::cmp::Reverse(i)));
                        let expected = worn.map(|&(i, _)| i);
                        prop_assert_eq!(free.take_most_worn(), expected);
                        model.retain(|&(i, _)| Some(i) != expected);
                    }
                    _ => {}
                }
                prop_assert_eq!(free.len() as usize, model.len());
            }
        }
    }
}
