//! The dirty pages of a window, of which the one with the smallest rank falls, of equal ones the oldest.
//!
//! Pages that always have the same rank, those of one flash block or those of one count, are a group: a queue by age, linked
//! by the numbers that the window gives. Only the groups are in a heap, by their rank and the age of their oldest page.
//!
//! Nobody tells of pages that leave or of ranks that grow. A group's place in the heap is what it was when it was last looked
//! at: as keys only grow, the first group whose key is still right is the first of all. What a queue begins with is dropped
//! when it is found to be gone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;

use super::window::Window;
use crate::directory::{Directory, Entry};
use crate::heap::{self, Heap, Key};

/// The number is in no queue.
const UNLINKED: u32 = u32::MAX;
/// The number is the last of its queue.
const LAST: u32 = u32::MAX - 1;

/// The first and the last number; of an empty one nothing.
#[derive(Clone, Copy)]
struct Queue {
    first: u32,
    last: u32,
}

const EMPTY: Queue = Queue { first: UNLINKED, last: UNLINKED };

/// Pages in groups.
pub(super) struct Ranked {
    /// By number: the next one of its group.
    next: Vec<u32>,
    /// By group.
    queues: Vec<Queue>,
    /// Groups whose queue is not empty, as if they were entries.
    groups: Heap,
}

impl Ranked {
    /// Of a window whose pages have such numbers.
    pub(super) fn new(numbers: usize, groups: usize) -> Self {
        Self { next: vec![UNLINKED; numbers], queues: vec![EMPTY; groups], groups: Heap::new(groups) }
    }

    /// A dirty page has entered the window, above all others.
    pub(super) fn add(&mut self, group: usize, number: u32, rank: u64) {
        if self.next[number as usize] != UNLINKED {
            // It was in the window before, and nobody has found it gone.
            return;
        }
        self.next[number as usize] = LAST;
        let queue = &mut self.queues[group];
        if queue.first == UNLINKED {
            queue.first = number;
            self.groups.set(Entry(group as u32), (rank, u64::from(number)));
        } else {
            self.next[queue.last as usize] = number;
        }
        queue.last = number;
    }

    /// Nothing is in any group.
    pub(super) fn clear(&mut self) {
        self.next.fill(UNLINKED);
        while let Some(group) = self.groups.first() {
            self.queues[group.at()] = EMPTY;
            self.groups.remove(group);
        }
    }

    /// Drops what a queue begins with and is gone; the number of its oldest page then.
    fn first_of(&mut self, group: Entry, window: &Window) -> Option<u32> {
        let queue = &mut self.queues[group.at()];
        while !window.is_dirty_inside(queue.first) {
            let next = std::mem::replace(&mut self.next[queue.first as usize], UNLINKED);
            if next == LAST {
                *queue = EMPTY;
                return None;
            }
            queue.first = next;
        }
        Some(queue.first)
    }

    /// The page that falls next.
    pub(super) fn victim(
        &mut self,
        pages: &Directory,
        window: &Window,
        rank: impl Fn(Entry) -> u64,
        scratch: &mut Scratch,
    ) -> Option<Entry> {
        while let Some(group) = self.groups.first() {
            let Some(first) = self.first_of(group, window) else {
                self.groups.remove(group);
                continue;
            };
            let entry = window.entry(first);
            let key = (rank(entry), u64::from(first));
            if self.groups.key(group) != key {
                self.groups.set(group, key);
            } else if pages.is_free(entry) {
                return Some(entry);
            } else {
                break;
            }
        }
        self.sorted(window, rank, scratch).map(|(_, entry)| entry).find(|&entry| pages.is_free(entry))
    }

    /// All pages in the order of their ranks and ages.
    pub(super) fn sorted<'a, R: Fn(Entry) -> u64>(
        &'a self,
        window: &'a Window,
        rank: R,
        scratch: &'a mut Scratch,
    ) -> Sorted<'a, R> {
        scratch.open.clear();
        let groups = self.groups.sorted(&mut scratch.groups).peekable();
        Sorted { ranked: self, window, rank, groups, open: &mut scratch.open }
    }
}

/// Room for [`Ranked::sorted`], kept so that it is not allocated anew.
#[derive(Default)]
pub(super) struct Scratch {
    groups: heap::Scratch,
    open: BinaryHeap<Reverse<Key>>,
}

/// See [`Ranked::sorted`].
pub(super) struct Sorted<'a, R> {
    ranked: &'a Ranked,
    window: &'a Window,
    rank: R,
    /// Groups of which nothing was given out, by keys that may be too small.
    groups: Peekable<heap::Sorted<'a>>,
    /// The next page of each other group.
    open: &'a mut BinaryHeap<Reverse<Key>>,
}

impl<R: Fn(Entry) -> u64> Sorted<'_, R> {
    /// Looks for the next page of a group, from a number of its queue on.
    fn open(&mut self, mut number: u32) {
        while number != LAST && !self.window.is_dirty_inside(number) {
            number = self.ranked.next[number as usize];
        }
        if number != LAST {
            self.open.push(Reverse(((self.rank)(self.window.entry(number)), u64::from(number))));
        }
    }
}

impl<R: Fn(Entry) -> u64> Iterator for Sorted<'_, R> {
    type Item = (Key, Entry);

    fn next(&mut self) -> Option<(Key, Entry)> {
        while let Some(&group) = self.groups.peek() {
            if self.open.peek().is_some_and(|&Reverse(key)| key < self.ranked.groups.key(group)) {
                break;
            }
            self.groups.next();
            self.open(self.ranked.queues[group.at()].first);
        }
        let Reverse(key) = self.open.pop()?;
        let number = key.1 as u32;
        self.open(self.ranked.next[number as usize]);
        Some((key, self.window.entry(number)))
    }
}
