//! LRU: evicts the page that has not been requested the longest.
//!
//! One list. A hit moves to the front, a load comes in at the front, the victim is the oldest page that nobody holds.
//! Source: folklore; P. J. Denning, *The Working Set Model for Program Behavior*, CACM 11(5), 1968, compares with it.

use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry, Page};
use crate::lists::Lists;

/// See the module.
pub(crate) struct Lru {
    list: Lists,
}

impl Policy for Lru {
    fn new(shape: &Shape, _: &mut Parameters) -> Result<Self, PolicyError> {
        Ok(Self { list: Lists::new(shape.frames + 1, 1) })
    }

    #[inline]
    fn hit(&mut self, entry: Entry, _: bool, _: &Directory) {
        self.list.move_to_front(0, entry);
    }

    #[inline]
    fn expect(&self, _: Page, entry: Entry) {
        self.list.expect(entry);
    }

    #[inline]
    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        self.list.oldest(0, pages)
    }

    #[inline]
    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.list.remove(0, entry);
        pages.forget(entry);
    }

    #[inline]
    fn load(&mut self, entry: Entry, _: bool, _: &mut Directory) {
        self.list.push_front(0, entry);
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.list.push_back(0, entry);
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        let _ = hand_out(self.list.iter(0), pages, take);
    }
}
