//! Superblocks by their number of valid pages: one list for each group of superblocks and each count.
//!
//! ```text
//!   group 0   count 0 ─▶ block ⇄ block        the front of a list came to its count first
//!             count 1 ─▶ –
//!             count 2 ─▶ block                lowest filled count: kept as a lower bound
//! ```
//!
//! The lower bound of the smallest filled count makes finding the emptiest superblock constant time, amortised over
//! invalidations.

use crate::list::NONE;

#[derive(Clone, Copy)]
struct Links {
    previous: u32,
    next: u32,
    valid: u32,
    group: u32,
}

#[derive(Clone, Copy)]
struct Bucket {
    first: u32,
    last: u32,
}

/// The lists of some groups of superblocks.
pub(crate) struct CountLists {
    links: Vec<Links>,
    /// `group · counts + valid`.
    buckets: Vec<Bucket>,
    /// For each group: no bucket below this count is filled.
    lowest: Vec<u32>,
    counts: u32,
}

impl CountLists {
    /// Empty lists of `groups` groups for `superblocks` superblocks of `pages` logical pages.
    pub(crate) fn new(groups: u32, superblocks: u32, pages: u32) -> Self {
        let counts = pages + 1;
        Self {
            links: vec![Links { previous: NONE, next: NONE, valid: 0, group: 0 }; superblocks as usize],
            buckets: vec![Bucket { first: NONE, last: NONE }; groups as usize * counts as usize],
            lowest: vec![counts; groups as usize],
            counts,
        }
    }

    fn bucket(&mut self, group: u32, valid: u32) -> &mut Bucket {
        &mut self.buckets[group as usize * self.counts as usize + valid as usize]
    }

    /// Appends a superblock to the list of its count.
    pub(crate) fn append(&mut self, group: u32, block: u32, valid: u32) {
        let last = std::mem::replace(&mut self.bucket(group, valid).last, block);
        self.links[block as usize] = Links { previous: last, next: NONE, valid, group };
        match last {
            NONE => self.bucket(group, valid).first = block,
            last => self.links[last as usize].next = block,
        }
        let lowest = &mut self.lowest[group as usize];
        *lowest = valid.min(*lowest);
    }

    /// Takes a superblock out of its list; gives its count.
    pub(crate) fn remove(&mut self, block: u32) -> u32 {
        let Links { previous, next, valid, group } = self.links[block as usize];
        match previous {
            NONE => self.bucket(group, valid).first = next,
            previous => self.links[previous as usize].next = next,
        }
        match next {
            NONE => self.bucket(group, valid).last = previous,
            next => self.links[next as usize].previous = previous,
        }
        valid
    }

    /// Moves a superblock to the end of another count's list.
    pub(crate) fn update(&mut self, block: u32, valid: u32) {
        let group = self.links[block as usize].group;
        self.remove(block);
        self.append(group, block, valid);
    }

    /// The group that a superblock is in.
    pub(crate) fn group_of(&self, block: u32) -> u32 {
        self.links[block as usize].group
    }

    /// The superblock that has been at the group's lowest count longest, and that count.
    pub(crate) fn emptiest(&mut self, group: u32) -> Option<(u32, u32)> {
        let found = self.from(group, self.lowest[group as usize]);
        self.lowest[group as usize] = found.map_or(self.counts, |(_, valid)| valid);
        found
    }

    /// The first superblock of the lowest filled count from `valid` on, and that count.
    pub(crate) fn from(&self, group: u32, valid: u32) -> Option<(u32, u32)> {
        let first = group as usize * self.counts as usize;
        let filled = |&valid: &u32| self.buckets[first + valid as usize].first != NONE;
        let valid = (valid..self.counts).find(filled)?;
        Some((self.buckets[first + valid as usize].first, valid))
    }
}
