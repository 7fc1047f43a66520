//! FIFO: evicts the page that has been in its frame the longest.
//!
//! One list. A hit changes nothing; a load comes in at the front; the victim is the oldest page that nobody holds.
//! Source: L. A. Belady, *A Study of Replacement Algorithms for a Virtual-Storage Computer*, IBM Systems Journal 5(2),
//! 1966.

use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry};
use crate::lists::Lists;

/// See the module.
pub(crate) struct Fifo {
    list: Lists,
}

impl Policy for Fifo {
    fn new(shape: &Shape, _: &mut Parameters) -> Result<Self, PolicyError> {
        Ok(Self { list: Lists::new(shape.frames + 1, 1) })
    }

    #[inline]
    fn hit(&mut self, _: Entry, _: bool, _: &Directory) {}

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
