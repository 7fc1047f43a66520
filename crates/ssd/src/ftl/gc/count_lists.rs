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
use crate::state::{Carried, Carrier, Layout, State, carry_members};

#[derive(Clone, Copy)]
struct Links {
    previous: u32,
    next: u32,
    /// The list that it is in: `group · counts + valid`.
    bucket: u32,
    group: u32,
}

#[derive(Clone, Copy)]
struct Bucket {
    first: u32,
    last: u32,
}

/// The lists of some groups of superblocks.
pub struct CountLists {
    links: Vec<Links>,
    /// `group · counts + valid`.
    buckets: Vec<Bucket>,
    /// For each group: no bucket below this one is filled.
    lowest: Vec<u32>,
    counts: u32,
}

impl CountLists {
    /// Empty lists of `groups` groups for `superblocks` superblocks of `pages` logical pages.
    pub fn new(groups: u32, superblocks: u32, pages: u32) -> Self {
        let counts = pages + 1;
        Self {
            links: vec![Links { previous: NONE, next: NONE, bucket: 0, group: 0 }; superblocks as usize],
            buckets: vec![Bucket { first: NONE, last: NONE }; groups as usize * counts as usize],
            lowest: (1..=groups).map(|group| group * counts).collect(),
            counts,
        }
    }

    /// Appends a superblock to the list of its count.
    pub fn append(&mut self, group: u32, block: u32, valid: u32) {
        self.append_to(group * self.counts + valid, group, block);
    }

    fn append_to(&mut self, bucket: u32, group: u32, block: u32) {
        let last = std::mem::replace(&mut self.buckets[bucket as usize].last, block);
        self.links[block as usize] = Links { previous: last, next: NONE, bucket, group };
        match last {
            NONE => self.buckets[bucket as usize].first = block,
            last => self.links[last as usize].next = block,
        }
        let lowest = &mut self.lowest[group as usize];
        *lowest = bucket.min(*lowest);
    }

    /// Takes a superblock out of its list; gives its count.
    pub fn remove(&mut self, block: u32) -> u32 {
        let Links { bucket, group, .. } = self.unlink(block);
        bucket - group * self.counts
    }

    fn unlink(&mut self, block: u32) -> Links {
        let links = self.links[block as usize];
        let Links { previous, next, bucket, .. } = links;
        match previous {
            NONE => self.buckets[bucket as usize].first = next,
            previous => self.links[previous as usize].next = next,
        }
        match next {
            NONE => self.buckets[bucket as usize].last = previous,
            next => self.links[next as usize].previous = previous,
        }
        links
    }

    /// Moves a superblock that has lost one valid page to the end of the next lower count's list.
    #[inline]
    pub fn decrement(&mut self, block: u32) {
        let Links { bucket, group, .. } = self.unlink(block);
        self.append_to(bucket - 1, group, block);
    }

    /// The group that a superblock is in.
    pub fn group_of(&self, block: u32) -> u32 {
        self.links[block as usize].group
    }

    /// The superblock that has been at the group's lowest count longest, and that count.
    pub fn emptiest(&mut self, group: u32) -> Option<(u32, u32)> {
        let found = self.from(group, self.lowest[group as usize] - group * self.counts);
        self.lowest[group as usize] = group * self.counts + found.map_or(self.counts, |(_, valid)| valid);
        found
    }

    /// The first superblock of the lowest filled count from `valid` on, and that count.
    pub fn from(&self, group: u32, valid: u32) -> Option<(u32, u32)> {
        let first = group as usize * self.counts as usize;
        let filled = |&valid: &u32| self.buckets[first + valid as usize].first != NONE;
        let valid = (valid..self.counts).find(filled)?;
        Some((self.buckets[first + valid as usize].first, valid))
    }
}

/// The members of each list in their order; the links follow from them.
impl State for CountLists {
    fn layout(layout: &mut Layout) {
        layout.word("CountLists");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let (members, superblocks) = (self.members(), self.links.len());
        carry_members(carrier, members, superblocks, |bucket, block| {
            let is_there = (bucket as usize) < self.buckets.len();
            if is_there {
                self.append_to(bucket, bucket / self.counts, block);
            }
            is_there
        })
    }
}

impl CountLists {
    /// Lists and superblocks, each list from its first on.
    fn members(&self) -> Vec<(u32, u32)> {
        let mut members = Vec::new();
        for (number, bucket) in (0..).zip(&self.buckets) {
            let mut block = bucket.first;
            while block != NONE {
                members.push((number, block));
                block = self.links[block as usize].next;
            }
        }
        members
    }

    /// Superblocks with their group and count.
    pub fn counts(&self) -> Vec<(u32, u32, u32)> {
        let split = |(bucket, block)| (block, bucket / self.counts, bucket % self.counts);
        self.members().into_iter().map(split).collect()
    }
}
