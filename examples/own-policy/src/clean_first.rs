//! Clean first: evicts the least recently used clean page, or the least recently used page if all are dirty.
//!
//! A scan over the pages in frames, which is simple and slow; the built-in policies keep lists instead.

use flashwise_bufferpool::policy::{Parameters, Policy, Taker};
use flashwise_bufferpool::{Directory, Entry, PolicyError, Shape};

/// The time of the last access to each page in a frame.
pub struct CleanFirst {
    last_use: Vec<(Entry, u64)>,
    clock: u64,
}

impl CleanFirst {
    fn touch(&mut self, entry: Entry) {
        self.clock += 1;
        match self.last_use.iter_mut().find(|(other, _)| *other == entry) {
            Some((_, at)) => *at = self.clock,
            None => self.last_use.push((entry, self.clock)),
        }
    }

    /// The pages that nobody holds, the next victim first.
    fn in_order(&self, pages: &Directory) -> Vec<Entry> {
        let mut order: Vec<_> = self.last_use.iter().filter(|(entry, _)| pages.is_free(*entry)).collect();
        order.sort_by_key(|(entry, at)| (pages.is_dirty(*entry), *at));
        order.into_iter().map(|&(entry, _)| entry).collect()
    }
}

impl Policy for CleanFirst {
    fn new(shape: &Shape, _: &mut Parameters) -> Result<Self, PolicyError> {
        Ok(Self { last_use: Vec::with_capacity(shape.frames), clock: 0 })
    }

    fn hit(&mut self, entry: Entry, _: bool, _: &Directory) {
        self.touch(entry);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        let free = self.last_use.iter().filter(|(entry, _)| pages.is_free(*entry));
        free.min_by_key(|(entry, at)| (pages.is_dirty(*entry), *at)).map(|&(entry, _)| entry)
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.last_use.retain(|(other, _)| *other != entry);
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, _: bool, _: &mut Directory) {
        self.touch(entry);
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.last_use.push((entry, 0));
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        // Pages that come in are written, so that these are the first of the dirty ones, in the order of their last
        // use.
        for entry in self.in_order(pages) {
            if take(entry).is_break() {
                return;
            }
        }
    }
}
