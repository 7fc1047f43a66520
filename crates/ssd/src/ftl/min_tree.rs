//! A tree of minima over the superblocks of a unit: the smallest key, and where it stands, in O(log n).
//!
//! ```text
//!   keys[1]             smallest of all
//!   keys[2] keys[3]     smallest of the left half, of the right half
//!   …
//!   keys[leaves + i]    key of superblock i; ABSENT where it takes no part
//! ```
//!
//! A tree in which nothing ever took part has no memory yet: a drive of a terabyte has hundreds of them.

use crate::state::{Carried, Carrier, Layout, State, StateError};

/// The key of a superblock that takes no part.
pub(crate) const ABSENT: u64 = u64::MAX;

/// A key for each of a number of superblocks, with their minima.
pub(crate) struct MinTree {
    leaves: usize,
    /// Empty until a superblock takes part.
    keys: Vec<u64>,
}

impl MinTree {
    /// A tree over `len` superblocks, none of which takes part.
    pub(crate) fn new(len: u32) -> Self {
        let leaves = (len as usize).next_power_of_two();
        Self { leaves, keys: Vec::new() }
    }

    /// The key of a superblock.
    pub(crate) fn key(&self, index: u32) -> u64 {
        self.at(self.leaves + index as usize)
    }

    #[inline]
    fn at(&self, node: usize) -> u64 {
        self.keys.get(node).copied().unwrap_or(ABSENT)
    }

    /// Gives a superblock a key.
    pub(crate) fn set(&mut self, index: u32, key: u64) {
        if self.keys.is_empty() {
            self.keys = vec![ABSENT; 2 * self.leaves];
        }
        let mut node = self.leaves + index as usize;
        self.keys[node] = key;
        while node > 1 {
            node /= 2;
            let least = self.keys[2 * node].min(self.keys[2 * node + 1]);
            if self.keys[node] == least {
                return;
            }
            self.keys[node] = least;
        }
    }

    /// The first superblock with the smallest key.
    pub(crate) fn first_min(&self) -> Option<u32> {
        self.descend(1, |left, right| left <= right)
    }

    /// The last superblock with the smallest key among those before `end`.
    pub(crate) fn last_min_before(&self, end: u32) -> Option<u32> {
        if end as usize >= self.leaves {
            return self.descend(1, |left, right| left < right);
        }
        let mut node = self.leaves + end as usize;
        let (mut best, mut least) = (0, ABSENT);
        while node > 1 {
            // A right child's sibling holds what is just before it; sibling after sibling goes further left.
            if node % 2 == 1 && self.at(node - 1) < least {
                (best, least) = (node - 1, self.at(node - 1));
            }
            node /= 2;
        }
        if least == ABSENT { None } else { self.descend(best, |left, right| left < right) }
    }

    /// Follows the smallest key below a node down to its superblock.
    fn descend(&self, mut node: usize, left_goes_first: impl Fn(u64, u64) -> bool) -> Option<u32> {
        if self.at(node) == ABSENT {
            return None;
        }
        while node < self.leaves {
            let (left, right) = (self.at(2 * node), self.at(2 * node + 1));
            node = 2 * node + usize::from(!left_goes_first(left, right));
        }
        Some((node - self.leaves) as u32)
    }
}

/// The keys of those that take part; the minima follow from them.
impl State for MinTree {
    fn layout(layout: &mut Layout) {
        layout.word("MinTree");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let members: Vec<u32> = self.members().collect();
        let mut count = members.len() as u64;
        carrier.number(&mut count)?;
        if !carrier.is_restoring() {
            return members.into_iter().try_for_each(|index| (index, self.key(index)).carry(carrier));
        }
        // Superblocks that are bad from the factory have put a new drive's in order already.
        self.keys.clear();
        for _ in 0..count {
            let mut member = (0_u32, 0_u64);
            member.carry(carrier)?;
            let (index, key) = member;
            if index as usize >= self.leaves || key == ABSENT || self.key(index) != ABSENT {
                return Err(StateError::damaged(format!("superblock {index} is in the tree twice, or does not exist")));
            }
            self.set(index, key);
        }
        Ok(())
    }
}

impl MinTree {
    /// The superblocks that take part.
    pub(crate) fn members(&self) -> impl Iterator<Item = u32> {
        let keys = self.keys.get(self.leaves..).unwrap_or_default();
        (0..).zip(keys).filter(|&(_, &key)| key != ABSENT).map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_finds_what_a_scan_finds(
            len in 1_u32..20,
            steps in prop::collection::vec((0_u32..20, prop::option::of(0_u64..5), 0_u32..40), 1..60),
        ) {
            let mut tree = MinTree::new(len);
            let mut keys = vec![None; len as usize];
            for (index, key, end) in steps {
                let index = index % len;
                tree.set(index, key.unwrap_or(ABSENT));
                keys[index as usize] = key;
                let least = keys.iter().flatten().min();
                let first = keys.iter().position(|key| key.is_some() && key.as_ref() == least);
                prop_assert_eq!(tree.first_min(), first.map(|at| at as u32));
                let before = &keys[..keys.len().min(end as usize)];
                let least = before.iter().flatten().min();
                let last = before.iter().rposition(|key| key.is_some() && key.as_ref() == least);
                prop_assert_eq!(tree.last_min_before(end), last.map(|at| at as u32));
            }
        }
    }
}
