//! LRU-K: the page falls whose K-th last reference is the longest ago; pages with fewer than K references before all others.
//!
//! Pages with fewer references fall by their last one (LRU). The times of a page's references are kept for a while after
//! it has fallen.
//! Source: E. J. O'Neil, P. E. O'Neil, G. Weikum, *The LRU-K Page Replacement Algorithm for Database Disk Buffering*,
//! SIGMOD 1993.
//!
//! Parameters: `k`, default 2; `history`, pages whose times are kept after they fell, as a share of the frames, default 1
//! (the paper keeps them for a time instead); `correlated`, accesses within which another reference to a page counts as
//! the same one, default 0.
//!
//! K-th last references only become younger. So the heap holds them as they were when they were last looked at, and only
//! what stands first in it is brought up to date: a hit costs no step in it.
//!
//! **Order.** Pages with fewer than K references by their last one; a new page falls before any other, so nothing follows.

use super::parameters::share_of;
use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry, Page};
use crate::heap::Heap;
use crate::lists::Lists;
use crate::memory::prefetch;

/// Pages in frames with fewer than K references.
const FEW: usize = 0;
/// Pages without frames.
const GHOST: usize = 1;
/// Most references that are remembered.
const K_MAX: usize = 8;

/// See the module.
pub(crate) struct LruK {
    lists: Lists,
    /// Pages in frames with K references, by the K-th last as it was.
    many: Heap,
    /// K of each entry: times of its last references, the last first; 0 for none.
    times: Vec<u64>,
    k: usize,
    ghosts: usize,
    correlated: u64,
    now: u64,
    held: Vec<Entry>,
    /// The ghost that is asked for and in no list.
    expected: Option<Entry>,
}

impl LruK {
    fn kth(&self, entry: Entry) -> u64 {
        self.times[entry.at() * self.k + self.k - 1]
    }

    fn refer(&mut self, entry: Entry) {
        self.now += 1;
        let times = &mut self.times[entry.at() * self.k..][..self.k];
        if times[0] == 0 || self.now - times[0] > self.correlated {
            // The K-th last is lost. A loop, because K is small and mostly 2.
            (1..times.len()).rev().for_each(|older| times[older] = times[older - 1]);
        }
        times[0] = self.now;
    }

    /// The page with the oldest K-th last reference that nobody holds.
    fn oldest_of_many(&mut self, pages: &Directory) -> Option<Entry> {
        let mut found = None;
        while let Some(first) = self.many.first() {
            let kth = self.kth(first);
            if self.many.key(first).0 != kth {
                self.many.set(first, (kth, 0));
            } else if pages.is_free(first) {
                found = Some(first);
                break;
            } else {
                self.many.remove(first);
                self.held.push(first);
            }
        }
        while let Some(held) = self.held.pop() {
            self.many.set(held, (self.kth(held), 0));
        }
        found
    }

    fn enter(&mut self, entry: Entry) {
        match self.kth(entry) {
            0 => self.lists.push_front(FEW, entry),
            kth => self.many.set(entry, (kth, 0)),
        }
    }
}

impl Policy for LruK {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let k = parameters.count("k", 2, 1..=K_MAX as u64)? as usize;
        let ghosts = share_of(shape.frames, parameters.share("history", 1.0, 8.0)?);
        let correlated = parameters.count("correlated", 0, 0..=u64::from(u32::MAX))?;
        let entries = shape.frames + ghosts + 2;
        Ok(Self {
            lists: Lists::new(entries, 2),
            many: Heap::new(entries),
            times: vec![0; k * entries],
            k,
            ghosts,
            correlated,
            now: 0,
            held: Vec::new(),
            expected: None,
        })
    }

    fn ghosts(&self) -> usize {
        self.ghosts + 1
    }

    #[inline]
    fn hit(&mut self, entry: Entry, _: bool, _: &Directory) {
        let had_few = self.kth(entry) == 0;
        self.refer(entry);
        if had_few {
            self.lists.remove(FEW, entry);
            self.enter(entry);
        }
    }

    fn miss(&mut self, ghost: Option<Entry>, _: &mut Directory) {
        self.expected = ghost;
        if let Some(ghost) = ghost {
            self.lists.remove(GHOST, ghost);
        }
    }

    #[inline]
    fn expect(&self, _: Page, entry: Entry) {
        prefetch(&self.times, entry.at().wrapping_mul(self.k));
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        let few = self.lists.oldest(FEW, pages);
        few.or_else(|| self.oldest_of_many(pages))
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        match self.kth(entry) {
            0 => self.lists.remove(FEW, entry),
            _ => self.many.remove(entry),
        }
        self.lists.push_front(GHOST, entry);
        pages.remember(entry);
        if self.lists.len(GHOST) > self.ghosts
            && let Some(oldest) = self.lists.back(GHOST)
        {
            self.drop_ghost(oldest, pages);
        }
    }

    fn load(&mut self, entry: Entry, _: bool, _: &mut Directory) {
        self.expected = None;
        self.refer(entry);
        self.enter(entry);
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.lists.push_back(FEW, entry);
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        let _ = hand_out(self.lists.iter(FEW), pages, take);
    }

    fn drop_ghost(&mut self, entry: Entry, pages: &mut Directory) {
        if self.expected != Some(entry) {
            self.lists.remove(GHOST, entry);
        }
        self.expected = None;
        self.times[entry.at() * self.k..][..self.k].fill(0);
        pages.forget(entry);
    }
}
