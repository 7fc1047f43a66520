//! Greedy: the sealed superblock with the fewest valid pages; among equals, the one that came to that count first.
//!
//! Source: Agrawal et al., "Design Tradeoffs for SSD Performance", USENIX ATC 2008, section 3.4. The choice that it
//! leaves open, equal counts, goes to the superblock that has been at that count longest.
//!
//! For each unit and each count of valid pages there is a doubly linked list of superblocks; a lower bound of the
//! smallest non-empty count makes finding the victim constant time, amortised over invalidations.

use super::VictimPolicy;
use crate::list::NONE;

#[derive(Clone, Copy)]
struct Links {
    previous: u32,
    next: u32,
    valid: u32,
}

#[derive(Clone, Copy)]
struct Bucket {
    first: u32,
    last: u32,
}

/// The greedy policy.
pub(crate) struct Greedy {
    links: Vec<Links>,
    /// `unit · counts + valid`.
    buckets: Vec<Bucket>,
    /// For each unit: no bucket below this count is filled.
    lowest: Vec<u32>,
    blocks_per_unit: u32,
    counts: u32,
}

impl Greedy {
    /// A policy for `units` units of `blocks_per_unit` superblocks of `slots_per_block` logical pages.
    pub(crate) fn new(units: u32, blocks_per_unit: u32, slots_per_block: u32) -> Self {
        let counts = slots_per_block + 1;
        Self {
            links: vec![Links { previous: NONE, next: NONE, valid: 0 }; (units * blocks_per_unit) as usize],
            buckets: vec![Bucket { first: NONE, last: NONE }; units as usize * counts as usize],
            lowest: vec![counts; units as usize],
            blocks_per_unit,
            counts,
        }
    }

    fn bucket(&mut self, unit: u32, valid: u32) -> &mut Bucket {
        &mut self.buckets[unit as usize * self.counts as usize + valid as usize]
    }

    fn append(&mut self, block: u32, valid: u32) {
        let unit = block / self.blocks_per_unit;
        let last = std::mem::replace(&mut self.bucket(unit, valid).last, block);
        self.links[block as usize] = Links { previous: last, next: NONE, valid };
        match last {
            NONE => self.bucket(unit, valid).first = block,
            last => self.links[last as usize].next = block,
        }
        let lowest = &mut self.lowest[unit as usize];
        *lowest = valid.min(*lowest);
    }

    fn remove(&mut self, block: u32) {
        let unit = block / self.blocks_per_unit;
        let Links { previous, next, valid } = self.links[block as usize];
        match previous {
            NONE => self.bucket(unit, valid).first = next,
            previous => self.links[previous as usize].next = next,
        }
        match next {
            NONE => self.bucket(unit, valid).last = previous,
            next => self.links[next as usize].previous = previous,
        }
    }
}

impl VictimPolicy for Greedy {
    fn sealed(&mut self, block: u32, valid: u32) {
        self.append(block, valid);
    }

    fn invalidated(&mut self, block: u32, valid: u32) {
        self.remove(block);
        self.append(block, valid);
    }

    fn take_victim(&mut self, unit: u32) -> Option<u32> {
        let mut valid = self.lowest[unit as usize];
        while valid < self.counts && self.bucket(unit, valid).first == NONE {
            valid += 1;
        }
        self.lowest[unit as usize] = valid;
        if valid == self.counts {
            return None;
        }
        let block = self.bucket(unit, valid).first;
        self.remove(block);
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_emptiest_superblock_goes_first_and_the_longest_waiting_one_among_equals() {
        let mut greedy = Greedy::new(1, 4, 10);
        for (block, valid) in [(0, 5), (1, 3), (2, 5), (3, 3)] {
            greedy.sealed(block, valid);
        }
        greedy.invalidated(2, 4);
        let order: Vec<_> = std::iter::from_fn(|| greedy.take_victim(0)).collect();
        assert_eq!(order, [1, 3, 2, 0]);
    }

    #[test]
    fn units_do_not_mix() {
        let mut greedy = Greedy::new(2, 2, 10);
        greedy.sealed(0, 9);
        greedy.sealed(3, 1);
        assert_eq!([greedy.take_victim(0), greedy.take_victim(0), greedy.take_victim(1)], [Some(0), None, Some(3)]);
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_scan_over_all_superblocks(steps in prop::collection::vec((0_u32..8, 0_u32..4), 1..200)) {
            let mut greedy = Greedy::new(1, 8, 6);
            let mut sealed: Vec<(u32, u32)> = Vec::new();
            for (block, action) in steps {
                let at = sealed.iter().position(|&(b, _)| b == block);
                match (action, at) {
                    (0, None) => {
                        greedy.sealed(block, 6);
                        sealed.push((block, 6));
                    }
                    (1 | 2, Some(at)) if sealed[at].1 > 0 => {
                        let (block, valid) = sealed.remove(at);
                        greedy.invalidated(block, valid - 1);
                        sealed.push((block, valid - 1));
                    }
                    (3, _) => {
                        let least = sealed.iter().map(|&(_, valid)| valid).min();
                        let expected = sealed.iter().position(|&(_, valid)| Some(valid) == least);
                        prop_assert_eq!(greedy.take_victim(0), expected.map(|at| sealed.remove(at).0));
                    }
                    _ => {}
                }
            }
        }
    }
}
