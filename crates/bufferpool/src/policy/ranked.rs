//! The dirty pages of a window, of which the one with the smallest rank is evicted, of equal ones the oldest.
//!
//! Pages that always have the same rank, those of one flash block or those of one count, are a group: a queue by age,
//! linked by the numbers that the window gives. Only the groups are in a heap, by their rank and the age of their
//! oldest page.
//!
//! Nobody tells of pages that leave or of ranks that grow. A group's place in the heap is what it was when it was last
//! examined: as keys only grow, the first group whose key is still right is the first of all. What a queue starts with
//! is dropped when it is found to be gone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;

use super::window::Window;
use crate::directory::{Directory, Entry};
use crate::heap::{self, Heap, Key, Node};
use crate::memory::prefetch;

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

/// What decides between dirty pages.
pub(super) trait Rank {
    /// The page with the smallest rank is evicted.
    fn rank(&self, entry: Entry) -> u64 {
        self.rank_in(self.group(entry), entry)
    }

    /// The same of a page whose group is known.
    fn rank_in(&self, group: usize, entry: Entry) -> u64;

    /// A number for all pages that have this one's rank as long as they have theirs, below that which [`Ranked::new`]
    /// was told.
    fn group(&self, entry: Entry) -> usize;

    /// The rank that a page has when it is new.
    fn new_rank(&self) -> u64;

    /// Says that the group of a page is going to be requested.
    fn expect(&self, entry: Entry);

    /// Says that the rank of a group is going to be requested.
    fn expect_group(&self, _group: usize) {}
}

/// How many numbers ahead the group of a page is named to the processor, and what belongs to it.
const PAGE_AHEAD: u32 = 32;
const GROUP_AHEAD: u32 = 16;

/// Pages in groups.
pub(super) struct Ranked {
    /// By number: the next one of its group.
    next: Vec<u32>,
    /// By group.
    queues: Vec<Queue>,
    /// Groups whose queue is not empty.
    groups: Heap,
}

/// Puts a number at the end of a queue; whether it is the first.
#[inline]
fn link(next: &mut [u32], queue: &mut Queue, number: u32) -> bool {
    next[number as usize] = LAST;
    let is_first = queue.first == UNLINKED;
    if is_first {
        queue.first = number;
    } else {
        next[queue.last as usize] = number;
    }
    queue.last = number;
    is_first
}

/// Names what the pages above a number will need when they enter the window: it is anywhere in tables that fit no fast
/// cache.
#[inline]
fn expect_next(queues: &[Queue], number: u32, window: &Window, rank: &impl Rank) {
    for near in 0..2 {
        rank.expect(window.last_entry(number + PAGE_AHEAD + near));
        let group = rank.group(window.last_entry(number + GROUP_AHEAD + near));
        prefetch(queues, group);
        rank.expect_group(group);
    }
}

impl Ranked {
    /// Of a window whose pages have such numbers.
    pub(super) fn new(numbers: usize, groups: usize) -> Self {
        Self { next: vec![UNLINKED; numbers], queues: vec![EMPTY; groups], groups: Heap::new(groups) }
    }

    /// A dirty page has entered the window, above all others.
    #[inline]
    pub(super) fn enter(&mut self, entry: Entry, window: &Window, rank: &impl Rank) {
        let number = window.number(entry);
        expect_next(&self.queues, number, window, rank);
        if self.next[number as usize] != UNLINKED {
            // It was in the window before, and nobody has found it gone.
            return;
        }
        let group = rank.group(entry);
        if link(&mut self.next, &mut self.queues[group], number) {
            self.groups.push(Node::new(rank.rank_in(group, entry), number, group as u32));
        }
    }

    /// All pages have other numbers now.
    pub(super) fn rank_anew(&mut self, window: &Window, rank: &impl Rank) {
        let Self { next, queues, groups } = self;
        next.fill(UNLINKED);
        groups.iter().for_each(|node| queues[node.group()] = EMPTY);
        groups.fill(window.inside().filter_map(|entry| {
            let number = window.number(entry);
            expect_next(queues, number, window, rank);
            let group = window.is_dirty_inside(number).then(|| rank.group(entry))?;
            let is_first = link(next, &mut queues[group], number);
            is_first.then(|| Node::new(rank.rank_in(group, entry), number, group as u32))
        }));
    }

    /// Drops what a queue starts with and is gone; the number of its oldest page then.
    #[inline]
    fn first_of(&mut self, group: usize, window: &Window) -> Option<u32> {
        let queue = &mut self.queues[group];
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

    /// The page that is evicted next.
    pub(super) fn victim(
        &mut self,
        pages: &Directory,
        window: &Window,
        rank: &impl Rank,
        scratch: &mut Scratch,
    ) -> Option<Entry> {
        while let Some(node) = self.groups.first() {
            let group = node.group();
            let Some(first) = self.first_of(group, window) else {
                self.groups.remove_first();
                continue;
            };
            let entry = window.entry(first);
            let now = Node::new(rank.rank_in(group, entry), first, group as u32);
            if now != node {
                self.groups.replace_first(now);
            } else if pages.is_free(entry) {
                self.expect_second(pages, window, rank);
                return Some(entry);
            } else {
                break;
            }
        }
        self.sorted(window, rank, scratch).map(|(_, entry)| entry).find(|&entry| pages.is_free(entry))
    }

    /// Names what the groups need of which one is the first when this page has been evicted.
    #[inline]
    fn expect_second(&self, pages: &Directory, window: &Window, rank: &impl Rank) {
        for node in self.groups.second() {
            prefetch(&self.queues, node.group());
            rank.expect_group(node.group());
            let entry = window.last_entry(node.age());
            window.expect(entry);
            pages.expect_entry(entry);
        }
    }

    /// All pages in the order of their ranks and ages.
    pub(super) fn sorted<'a, R: Rank>(
        &'a self,
        window: &'a Window,
        rank: &'a R,
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
    open: BinaryHeap<Reverse<Node>>,
}

/// See [`Ranked::sorted`].
pub(super) struct Sorted<'a, R> {
    ranked: &'a Ranked,
    window: &'a Window,
    rank: &'a R,
    /// Groups of which nothing was given out, by keys that may be too small.
    groups: Peekable<heap::Sorted<'a>>,
    /// The next page of each other group.
    open: &'a mut BinaryHeap<Reverse<Node>>,
}

impl<R: Rank> Sorted<'_, R> {
    /// Looks for the next page of a group, from a number of its queue on.
    fn open(&mut self, group: usize, mut number: u32) {
        while number != LAST && !self.window.is_dirty_inside(number) {
            number = self.ranked.next[number as usize];
        }
        if number != LAST {
            let rank = self.rank.rank_in(group, self.window.entry(number));
            self.open.push(Reverse(Node::new(rank, number, group as u32)));
        }
    }
}

impl<R: Rank> Iterator for Sorted<'_, R> {
    type Item = (Key, Entry);

    fn next(&mut self) -> Option<(Key, Entry)> {
        while let Some(&node) = self.groups.peek() {
            if self.open.peek().is_some_and(|&Reverse(open)| open.key() < node.key()) {
                break;
            }
            self.groups.next();
            self.open(node.group(), self.ranked.queues[node.group()].first);
        }
        let Reverse(node) = self.open.pop()?;
        self.open(node.group(), self.ranked.next[node.age() as usize]);
        Some((node.key(), self.window.entry(node.age())))
    }
}
