//! 2R: greedy in two regions, one of what the host wrote and one of what was moved.
//!
//! Moved data is colder than fresh data. The policy works on one region until it has gained a superblock's worth of
//! invalid pages there, and then chooses again: the region with the emptiest superblock, among those with that much to
//! gain; the moved data's at equal counts. It needs moved data in superblocks of its own (`separate_open_block`).
//!
//! Source: Haas et al., "SSD-iq: Uncovering the Hidden Side of SSD Performance", PVLDB 18(11), 2025, in its greedy form.

use super::count_lists::CountLists;
use super::{Choice, Context, Origin, Shape, VictimPolicy};

/// The 2R policy.
pub(crate) struct TwoR {
    /// Group `2 · unit + region`.
    lists: CountLists,
    /// Invalid pages of each region.
    invalid: Vec<u64>,
    units: Vec<Work>,
    superblocks: u32,
    pages: u32,
}

/// What a unit is working on.
#[derive(Clone, Copy)]
struct Work {
    region: u32,
    gained: u32,
}

const HOST: u32 = 0;
const MOVED: u32 = 1;

impl TwoR {
    pub(super) fn new(shape: Shape) -> Self {
        let Shape { units, superblocks, pages } = shape;
        Self {
            lists: CountLists::new(2 * units, units * superblocks, pages),
            invalid: vec![0; 2 * units as usize],
            units: vec![Work { region: HOST, gained: pages }; units as usize],
            superblocks,
            pages,
        }
    }

    /// Takes a superblock out; gives the invalid pages in it.
    fn remove(&mut self, block: u32) -> u32 {
        let group = self.lists.group_of(block);
        let invalid = self.pages - self.lists.remove(block);
        self.invalid[group as usize] -= u64::from(invalid);
        invalid
    }

    /// The region that is worked on next.
    fn choose_region(&mut self, unit: u32) -> u32 {
        let [host, moved] = [HOST, MOVED].map(|region| {
            let emptiest = self.lists.emptiest(2 * unit + region).map_or(self.pages, |(_, valid)| valid);
            let enough = self.invalid[(2 * unit + region) as usize] >= u64::from(self.pages);
            (!enough, emptiest)
        });
        if moved <= host { MOVED } else { HOST }
    }
}

impl VictimPolicy for TwoR {
    fn sealed(&mut self, block: u32, valid: u32, origin: Origin, _: u64) {
        let region = if origin == Origin::Moved { MOVED } else { HOST };
        let group = block / self.superblocks * 2 + region;
        self.lists.append(group, block, valid);
        self.invalid[group as usize] += u64::from(self.pages - valid);
    }

    #[inline]
    fn invalidated(&mut self, block: u32, _: u32, _: u64) {
        self.lists.decrement(block);
        self.invalid[self.lists.group_of(block) as usize] += 1;
    }

    fn removed(&mut self, block: u32) {
        self.remove(block);
    }

    fn take_victim(&mut self, unit: u32, _: &mut Context<'_>) -> Option<Choice> {
        let Work { region, gained } = self.units[unit as usize];
        if gained >= self.pages || self.invalid[(2 * unit + region) as usize] == 0 {
            self.units[unit as usize] = Work { region: self.choose_region(unit), gained: 0 };
        }
        let region = self.units[unit as usize].region;
        let found = self.lists.emptiest(2 * unit + region).or_else(|| self.lists.emptiest(2 * unit + 1 - region));
        let (block, _) = found?;
        self.units[unit as usize].gained += self.remove(block);
        Some(block.into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{Bench, Seen, steps};
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape { units: 1, superblocks: 8, pages: 6 };

    #[test]
    fn it_stays_in_a_region_until_a_superblock_is_gained() {
        let mut bench = Bench::new(TwoR::new(SHAPE), SHAPE);
        for (block, valid, origin) in
            [(0, 2, Origin::Host), (1, 4, Origin::Host), (2, 3, Origin::Moved), (3, 3, Origin::Moved)]
        {
            bench.seal_as(block, valid, origin);
        }
        let order: Vec<_> = std::iter::from_fn(|| bench.take(0)).collect();
        assert_eq!(order, [0, 1, 2, 3]);
    }

    proptest! {
        #[test]
        fn it_takes_the_emptiest_of_the_region_that_a_scan_chooses(steps in steps()) {
            let mut bench = Bench::new(TwoR::new(SHAPE), SHAPE);
            let (mut region, mut gained) = (Origin::Host, 6);
            for &step in &steps {
                let before = bench.sealed.clone();
                let Some(choice) = bench.play(step, SHAPE.pages) else { continue };
                let of = |origin: Origin| before.iter().filter(move |s: &&Seen| s.origin == origin);
                let invalid = |origin| of(origin).map(|s| 6 - s.valid).sum::<u32>();
                if gained >= 6 || invalid(region) == 0 {
                    let rank = |origin| (invalid(origin) < 6, of(origin).map(|s| s.valid).min().unwrap_or(6));
                    region = if rank(Origin::Moved) <= rank(Origin::Host) { Origin::Moved } else { Origin::Host };
                    gained = 0;
                }
                let other = if region == Origin::Host { Origin::Moved } else { Origin::Host };
                let emptiest = |origin| of(origin).min_by_key(|s| (s.valid, s.changed_step));
                let expected = emptiest(region).or_else(|| emptiest(other));
                gained += expected.map_or(0, |s| 6 - s.valid);
                prop_assert_eq!(choice, expected.map(|s| s.block));
            }
        }
    }
}
