//! CFLRU, clean-first LRU: of the w pages that are evicted next, the oldest clean one; if all of them are dirty, the
//! oldest page.
//!
//! A dirty page costs a write when it is evicted, a clean one nothing, so a dirty one may stay until it is old enough.
//! Source: S. Park, D. Jung, J. Kang, J. Kim, J. Lee, *CFLRU: A Replacement Algorithm for Flash Memory*, CASES 2006.
//!
//! Left open there, a parameter here: `window`, w as a share of the frames. Default 0.5, that of the public simulators;
//! the demonstration of the ACE authors has a third. The paper's window that adapts itself is another policy.

use super::clean_first::{CleanFirst, Rank};
use super::{Parameters, Policy, PolicyError, Shape, Taker};
use crate::directory::{Directory, Entry, Page};

/// See the module.
pub(crate) struct Cflru {
    lists: CleanFirst,
}

/// Dirty pages have no rank but their age.
struct ByAge;

impl Rank for ByAge {
    fn rank_in(&self, _: usize, _: Entry) -> u64 {
        0
    }

    fn group(&self, _: Entry) -> usize {
        0
    }

    fn new_rank(&self) -> u64 {
        0
    }

    fn expect(&self, _: Entry) {}
}

impl Policy for Cflru {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        Ok(Self { lists: CleanFirst::new(shape, parameters, 0)? })
    }

    #[inline]
    fn hit(&mut self, entry: Entry, is_write: bool, _: &Directory) {
        self.lists.hit(entry, is_write, &ByAge);
    }

    #[inline]
    fn expect(&self, _: Page, entry: Entry) {
        self.lists.expect(entry);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        self.lists.victim(&ByAge, pages)
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.lists.remove(entry, &ByAge);
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, is_write: bool, _: &mut Directory) {
        self.lists.push_front(entry, is_write, &ByAge);
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.lists.push_back(entry, &ByAge);
    }

    fn written(&mut self, entry: Entry, _: &Directory) {
        self.lists.written(entry);
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        self.lists.order(&ByAge, pages, take);
    }
}
