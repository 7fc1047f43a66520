//! Pages of which the one with the smallest rank falls, of equal ones the oldest.
//!
//! Pages that always have the same rank, those of one flash block or those of one count, are a group: a list by age. Only
//! the groups are in a heap, by their rank and the age of their oldest page. So a rank that changes for a whole group is one
//! step in the heap, and a page that is not the oldest of its group comes and goes without any.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;

use super::window::Window;
use crate::directory::{Directory, Entry};
use crate::heap::{self, Heap, Key};
use crate::lists::Lists;

/// Pages in groups.
pub(super) struct Ranked {
    /// A list a group.
    members: Lists,
    /// Groups that have members, as if they were entries.
    groups: Heap,
}

impl Ranked {
    pub(super) fn new(entries: usize, groups: usize) -> Self {
        Self { members: Lists::new(entries, groups), groups: Heap::new(groups) }
    }

    /// Puts in a page that is newer than any other of its group.
    pub(super) fn add(&mut self, group: usize, entry: Entry, key: Key) {
        self.members.push_front(group, entry);
        if self.members.len(group) == 1 {
            self.groups.set(Entry(group as u32), key);
        }
    }

    /// Takes a page out of its group; `window` knows the ages.
    pub(super) fn remove(&mut self, group: usize, entry: Entry, window: &Window) {
        let was_oldest = self.members.back(group) == Some(entry);
        self.members.remove(group, entry);
        if !was_oldest {
            return;
        }
        let number = Entry(group as u32);
        match self.members.back(group) {
            Some(oldest) => self.groups.set(number, (self.groups.key(number).0, window.age_key(oldest))),
            None => self.groups.remove(number),
        }
    }

    /// The rank of a group has changed.
    pub(super) fn rerank(&mut self, group: usize, rank: u64) {
        let number = Entry(group as u32);
        if self.groups.contains(number) {
            self.groups.set(number, (rank, self.groups.key(number).1));
        }
    }

    /// The page that falls next.
    pub(super) fn victim(&self, pages: &Directory, window: &Window, scratch: &mut Scratch) -> Option<Entry> {
        let first = self.groups.first().and_then(|group| self.members.back(group.at()))?;
        if pages.is_free(first) {
            return Some(first);
        }
        self.sorted(window, scratch).map(|(_, entry)| entry).find(|&entry| pages.is_free(entry))
    }

    /// All pages in the order of their ranks and ages.
    pub(super) fn sorted<'a>(&'a self, window: &'a Window, scratch: &'a mut Scratch) -> Sorted<'a> {
        scratch.open.clear();
        let groups = self.groups.sorted(&mut scratch.groups).peekable();
        Sorted { ranked: self, window, groups, open: &mut scratch.open }
    }
}

/// Room for [`Ranked::sorted`], kept so that it is not allocated anew.
#[derive(Default)]
pub(super) struct Scratch {
    groups: heap::Scratch,
    open: BinaryHeap<Reverse<(Key, Entry)>>,
}

/// See [`Ranked::sorted`].
pub(super) struct Sorted<'a> {
    ranked: &'a Ranked,
    window: &'a Window,
    /// Groups of which nothing was given out.
    groups: Peekable<heap::Sorted<'a>>,
    /// The next page of each other group.
    open: &'a mut BinaryHeap<Reverse<(Key, Entry)>>,
}

impl Sorted<'_> {
    fn first_of_groups(&mut self) -> Option<(Key, Entry)> {
        let &group = self.groups.peek()?;
        Some((self.ranked.groups.key(group), self.ranked.members.back(group.at())?))
    }
}

impl Iterator for Sorted<'_> {
    type Item = (Key, Entry);

    fn next(&mut self) -> Option<(Key, Entry)> {
        let (opened, closed) = (self.open.peek().map(|&Reverse(next)| next), self.first_of_groups());
        let next = opened.into_iter().chain(closed).min()?;
        if Some(next) == opened {
            self.open.pop();
        } else {
            self.groups.next();
        }
        let (key, entry) = next;
        if let Some(newer) = self.ranked.members.newer(entry) {
            self.open.push(Reverse(((key.0, self.window.age_key(newer)), newer)));
        }
        Some(next)
    }
}
