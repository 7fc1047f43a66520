//! Superblocks in the order in which they were sealed: a doubly linked list a unit.

use crate::list::NONE;
use crate::state::{Carried, Carrier, Layout, State, carry_members};

#[derive(Clone, Copy)]
struct Links {
    previous: u32,
    next: u32,
}

/// A list of superblocks for each unit, oldest first.
pub(crate) struct Order {
    links: Vec<Links>,
    ends: Vec<Links>,
}

impl Order {
    /// Empty lists of `units` units for `superblocks` superblocks.
    pub(crate) fn new(units: u32, superblocks: u32) -> Self {
        let none = Links { previous: NONE, next: NONE };
        Self { links: vec![none; superblocks as usize], ends: vec![none; units as usize] }
    }

    /// The oldest superblock of a unit.
    pub(crate) fn first(&self, unit: u32) -> Option<u32> {
        let first = self.ends[unit as usize].next;
        (first != NONE).then_some(first)
    }

    /// The superblock sealed after this one, [`NONE`] behind the last.
    pub(crate) fn next(&self, block: u32) -> u32 {
        self.links[block as usize].next
    }

    /// The superblock sealed before this one, [`NONE`] before the first.
    pub(crate) fn previous(&self, block: u32) -> u32 {
        self.links[block as usize].previous
    }

    /// Appends a superblock.
    pub(crate) fn append(&mut self, unit: u32, block: u32) {
        let last = std::mem::replace(&mut self.ends[unit as usize].previous, block);
        self.links[block as usize] = Links { previous: last, next: NONE };
        match last {
            NONE => self.ends[unit as usize].next = block,
            last => self.links[last as usize].next = block,
        }
    }

    /// Takes a superblock out.
    pub(crate) fn remove(&mut self, unit: u32, block: u32) {
        let Links { previous, next } = self.links[block as usize];
        match previous {
            NONE => self.ends[unit as usize].next = next,
            previous => self.links[previous as usize].next = next,
        }
        match next {
            NONE => self.ends[unit as usize].previous = previous,
            next => self.links[next as usize].previous = previous,
        }
    }
}

/// The members of each list in their order; the links follow from them.
impl State for Order {
    fn layout(layout: &mut Layout) {
        layout.word("Order");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let (members, superblocks) = (self.members(), self.links.len());
        carry_members(carrier, members, superblocks, |unit, block| {
            let is_there = (unit as usize) < self.ends.len();
            if is_there {
                self.append(unit, block);
            }
            is_there
        })
    }
}

impl Order {
    /// Lists and superblocks, each list from its oldest on.
    pub(crate) fn members(&self) -> Vec<(u32, u32)> {
        let mut members = Vec::new();
        for (unit, ends) in (0..).zip(&self.ends) {
            let mut block = ends.next;
            while block != NONE {
                members.push((unit, block));
                block = self.next(block);
            }
        }
        members
    }
}
