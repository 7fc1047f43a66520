//! Two regions of sealed superblocks: of what the host wrote, and of what was moved, which is colder.
//!
//! A policy works on one region until it has gained a superblock's worth of invalid pages there, and then chooses
//! again: the region with the emptiest superblock, among those with that much to gain; the moved data's at equal
//! counts. It needs moved data in superblocks of its own (`separate_open_block`).
//!
//! Source: Haas et al., "SSD-iq: Uncovering the Hidden Side of SSD Performance", PVLDB 18(11), 2025.

use super::count_lists::CountLists;
use super::{Candidate, Origin, Shape};

/// The sealed superblocks of each region of each unit; region `r` of unit `u` is group `2 · u + r`.
pub(super) struct Regions {
    lists: CountLists,
    /// Invalid pages of each group.
    invalid: Vec<u64>,
    /// What each unit is working on.
    work: Vec<Work>,
    superblocks: u32,
    pages: u32,
}

#[derive(Clone, Copy)]
struct Work {
    region: u32,
    gained: u32,
}

const HOST: u32 = 0;
const MOVED: u32 = 1;

impl Regions {
    pub(super) fn new(shape: Shape) -> Self {
        let Shape { units, superblocks, pages } = shape;
        Self {
            lists: CountLists::new(2 * units, units * superblocks, pages),
            invalid: vec![0; 2 * units as usize],
            work: vec![Work { region: HOST, gained: pages }; units as usize],
            superblocks,
            pages,
        }
    }

    /// A superblock was fully written; gives its group.
    pub(super) fn sealed(&mut self, block: u32, valid: u32, origin: Origin) -> u32 {
        let region = if origin == Origin::Moved { MOVED } else { HOST };
        let group = block / self.superblocks * 2 + region;
        self.lists.append(group, block, valid);
        self.invalid[group as usize] += u64::from(self.pages - valid);
        group
    }

    /// A superblock lost one valid page.
    #[inline]
    pub(super) fn invalidated(&mut self, block: u32) {
        self.lists.decrement(block);
        self.invalid[self.lists.group_of(block) as usize] += 1;
    }

    /// Takes a superblock out; gives the invalid pages in it.
    pub(super) fn remove(&mut self, block: u32) -> u32 {
        let group = self.lists.group_of(block);
        let invalid = self.pages - self.lists.remove(block);
        self.invalid[group as usize] -= u64::from(invalid);
        invalid
    }

    /// The group of a superblock.
    pub(super) fn group_of(&self, block: u32) -> u32 {
        self.lists.group_of(block)
    }

    /// The group that a unit is working on, and whether it has just been chosen.
    pub(super) fn group_to_clean(&mut self, unit: u32) -> (u32, bool) {
        let Work { region, gained } = self.work[unit as usize];
        let is_over = gained >= self.pages || self.invalid[(2 * unit + region) as usize] == 0;
        if is_over {
            self.work[unit as usize] = Work { region: self.choose_region(unit), gained: 0 };
        }
        (2 * unit + self.work[unit as usize].region, is_over)
    }

    /// A victim of a unit; it is taken out.
    pub(super) fn take(&mut self, unit: u32, block: u32) {
        let gained = self.remove(block);
        self.work[unit as usize].gained += gained;
    }

    /// The emptiest superblock of a group, or else of the unit's other one.
    pub(super) fn emptiest(&mut self, group: u32) -> Option<u32> {
        let found = self.lists.emptiest(group).or_else(|| self.lists.emptiest(group ^ 1));
        found.map(|(block, _)| block)
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

/// The same by scans over all sealed superblocks, for the tests of both forms of 2R.
#[cfg(test)]
pub(super) mod by_scan {
    use super::super::Origin;
    use super::super::naive::Seen;

    pub(in super::super) struct Regions {
        region: Origin,
        gained: u32,
        pages: u32,
    }

    impl Regions {
        pub(in super::super) fn new(pages: u32) -> Self {
            Self { region: Origin::Host, gained: pages, pages }
        }

        /// The region to be worked on, and whether it has just been chosen.
        pub(in super::super) fn region_to_clean(&mut self, sealed: &[Seen]) -> (Origin, bool) {
            let of = |origin: Origin| sealed.iter().filter(move |seen| seen.origin == origin);
            let invalid = |origin| of(origin).map(|seen| self.pages - seen.valid).sum::<u32>();
            let is_over = self.gained >= self.pages || invalid(self.region) == 0;
            if is_over {
                let least = |origin| of(origin).map(|seen| seen.valid).min().unwrap_or(self.pages);
                let rank = |origin| (invalid(origin) < self.pages, least(origin));
                let moved_goes = rank(Origin::Moved) <= rank(Origin::Host);
                (self.region, self.gained) = (if moved_goes { Origin::Moved } else { Origin::Host }, 0);
            }
            (self.region, is_over)
        }

        /// The emptiest superblock of the region, or else of the other one.
        pub(in super::super) fn emptiest<'a>(&self, sealed: &'a [Seen]) -> Option<&'a Seen> {
            sealed.iter().min_by_key(|seen| (seen.origin != self.region, seen.valid, seen.changed_step))
        }

        /// A victim; gives its number.
        pub(in super::super) fn take(&mut self, victim: Option<&Seen>) -> Option<u32> {
            self.gained += victim.map_or(0, |seen| self.pages - seen.valid);
            victim.map(|seen| seen.block)
        }
    }
}

crate::state::state! { Work { saved { region, gained } } }

crate::state::state! {
    Regions {
        saved { lists, invalid, work }
        built { superblocks, pages }
    }
    checked check_restored
}

impl Regions {
    /// All candidates with their counts.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let candidate = |(block, _, valid)| Candidate { block, valid: Some(valid) };
        self.lists.counts().into_iter().map(candidate).collect()
    }

    /// Superblocks with their groups.
    pub(super) fn groups(&self) -> Vec<(u32, u32)> {
        self.lists.counts().into_iter().map(|(block, group, _)| (block, group)).collect()
    }

    fn check_restored(&self) -> Result<(), String> {
        let mut invalid = vec![0_u64; self.invalid.len()];
        for (block, group, valid) in self.lists.counts() {
            if group / 2 != block / self.superblocks {
                return Err(format!("superblock {block} is in the regions of another unit"));
            }
            invalid[group as usize] += u64::from(self.pages - valid);
        }
        if invalid != self.invalid || self.work.iter().any(|work| work.region > MOVED) {
            return Err("the regions count other invalid pages than they hold".to_owned());
        }
        Ok(())
    }
}
