//! CCF-LRU, cold-clean-first: pages that are clean and were requested once are evicted first; then cold dirty ones; hot
//! pages get a second chance.
//!
//! ```text
//!   read miss ─▶ CC (cold, clean)      write miss, or a hit in either list ─▶ MX (mixed)      both LRU lists
//! ```
//!
//! A hit clears the cold flag. The victim is the oldest of CC. If CC is empty, the oldest of MX is examined: cold, it
//! is evicted; hot and dirty, it becomes cold and goes to the front of MX; hot and clean, it becomes cold and goes to
//! CC. Source: Z. Li, P. Jin, X. Su, K. Cui, L. Yue, *CCF-LRU: A New Buffer Replacement Algorithm for Flash Memory*,
//! IEEE TCE 55(3), 2009.
//!
//! Left open there, a parameter here: `cold`, the flag of a page that is written on its miss. Default 1.
//!
//! **Order.** CC by age; of MX what is cold or clean by age, then the hot dirty ones, which have become cold by then.

use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry, Page};
use crate::lists::Lists;

const CC: usize = 0;
const MX: usize = 1;

/// See the module.
pub(crate) struct CcfLru {
    lists: Lists,
    /// By entry: its list.
    list: Vec<u8>,
    /// By entry.
    cold: Vec<bool>,
    cold_at_write: bool,
}

impl CcfLru {
    fn put(&mut self, list: usize, entry: Entry) {
        self.lists.push_front(list, entry);
        self.list[entry.at()] = list as u8;
    }

    fn take(&mut self, entry: Entry) {
        self.lists.remove(usize::from(self.list[entry.at()]), entry);
    }
}

impl Policy for CcfLru {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let cold_at_write = parameters.count("cold", 1, 0..=1)? == 1;
        let entries = shape.frames + 1;
        Ok(Self { lists: Lists::new(entries, 2), list: vec![0; entries], cold: vec![false; entries], cold_at_write })
    }

    #[inline]
    fn hit(&mut self, entry: Entry, _: bool, _: &Directory) {
        self.cold[entry.at()] = false;
        self.take(entry);
        self.put(MX, entry);
    }

    #[inline]
    fn expect(&self, _: Page, entry: Entry) {
        self.lists.expect(entry);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        // Each page of MX is moved once at most.
        for _ in 0..=self.lists.len(MX) {
            if let Some(oldest) = self.lists.oldest(CC, pages) {
                return Some(oldest);
            }
            let oldest = self.lists.oldest(MX, pages)?;
            if self.cold[oldest.at()] {
                return Some(oldest);
            }
            self.cold[oldest.at()] = true;
            self.take(oldest);
            self.put(if pages.is_dirty(oldest) { MX } else { CC }, oldest);
        }
        None
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.take(entry);
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, is_write: bool, _: &mut Directory) {
        self.cold[entry.at()] = !is_write || self.cold_at_write;
        self.put(if is_write { MX } else { CC }, entry);
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.cold[entry.at()] = true;
        self.lists.push_back(CC, entry);
        self.list[entry.at()] = CC as u8;
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        if hand_out(self.lists.iter(CC), pages, take).is_break() {
            return;
        }
        for waits in [false, true] {
            let waiting = |entry: Entry| pages.is_dirty(entry) && !self.cold[entry.at()];
            let victims = self.lists.iter(MX).filter(|&entry| waiting(entry) == waits);
            if hand_out(victims, pages, take).is_break() {
                return;
            }
        }
    }
}
