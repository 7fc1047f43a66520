//! CFLRU/C: as [CFLRU](super::cflru), but if the window has no clean page, its dirty page that was requested least
//! often is evicted.
//!
//! The count is 1 at load and grows with each hit; of equal ones the oldest page is evicted. Source: Y.-S. Yoo, H. Lee,
//! Y. Ryu, H. Bahn, *Page Replacement Algorithms for NAND Flash Memory Storages*, ICCSA 2007.
//!
//! Parameters: `window`, as CFLRU's; `order`.
//!
//! **Order.** By age, as the published models of ACE take it, which has the dirty pages cleaned in another order than
//! they would be evicted in. With `order=rank` they are taken as they would be evicted: the victim's rank decides for
//! the others too, and a page that enters the window waits for its turn. By age, ACE turns this policy into CFLRU: what
//! was cleaned is evicted first, whatever its count.

use super::clean_first::{CleanFirst, Rank};
use super::{Parameters, Policy, PolicyError, Shape, Taker};
use crate::directory::{Directory, Entry, Page};
use crate::memory::prefetch;

/// See the module.
pub(crate) struct CflruC {
    lists: CleanFirst,
    counts: Counts,
}

/// By entry: how often the page was requested.
struct Counts(Vec<u64>);

/// Counts below it have a group each; a page with more is a group of its own.
const SHARED_COUNTS: usize = 4096;

impl Rank for Counts {
    #[inline]
    fn rank_in(&self, _: usize, entry: Entry) -> u64 {
        self.0[entry.at()]
    }

    #[inline]
    fn group(&self, entry: Entry) -> usize {
        let count = self.0[entry.at()];
        if count < SHARED_COUNTS as u64 { count as usize } else { SHARED_COUNTS + entry.at() }
    }

    fn new_rank(&self) -> u64 {
        1
    }

    #[inline]
    fn expect(&self, entry: Entry) {
        prefetch(&self.0, entry.at());
    }
}

impl Policy for CflruC {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let lists = CleanFirst::new(shape, parameters, SHARED_COUNTS + shape.frames + 1)?;
        Ok(Self { lists, counts: Counts(vec![0; shape.frames + 1]) })
    }

    #[inline]
    fn hit(&mut self, entry: Entry, is_write: bool, _: &Directory) {
        self.counts.0[entry.at()] += 1;
        self.lists.hit(entry, is_write, &self.counts);
    }

    #[inline]
    fn expect(&self, _: Page, entry: Entry) {
        self.lists.expect(entry);
        prefetch(&self.counts.0, entry.at());
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        self.lists.victim(&self.counts, pages)
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.lists.remove(entry, &self.counts);
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, is_write: bool, _: &mut Directory) {
        self.counts.0[entry.at()] = 1;
        self.lists.push_front(entry, is_write, &self.counts);
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.counts.0[entry.at()] = 0;
        self.lists.push_back(entry, &self.counts);
    }

    fn written(&mut self, entry: Entry, _: &Directory) {
        self.lists.written(entry);
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        self.lists.order(&self.counts, pages, take);
    }
}
