//! LRU-WSR, write sequence reordering: LRU in which a dirty page is evicted only the second time that it is the oldest.
//!
//! Each page has a cold flag, 0 at load and after a hit. The oldest page is evicted if it is clean, or dirty and cold;
//! if it is dirty and not cold, it becomes cold and goes to the front, and the next one is examined. Source: H. Jung,
//! H. Shim, S. Park, S. Kang, J. Cha, *LRU-WSR: Integration of LRU and Writes Sequence Reordering for Flash Memory*,
//! IEEE TCE 54(3), 2008.
//!
//! Parameter: `as-simulator=1` does two things as the public simulator of the ACE authors does: a page that is hit
//! while it is at the front keeps its flag, and collecting a batch makes the dirty pages cold that it passes. Default
//! 0.
//!
//! **Order.** What is clean or cold by age, then the others, which have become cold by then.

use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry, Page};
use crate::lists::Lists;

/// See the module.
pub(crate) struct LruWsr {
    list: Lists,
    /// By entry.
    cold: Vec<bool>,
    is_simulator: bool,
}

impl LruWsr {
    /// Takes what is clean or cold, and gives everything else that it passes its second chance.
    fn collect(&mut self, pages: &Directory, take: Taker<'_>) {
        let mut next = self.list.back(0);
        // Each page is moved once at most, and met once more then.
        for _ in 0..2 * self.list.len(0) {
            let Some(entry) = next else { return };
            next = self.list.newer(entry);
            if !pages.is_free(entry) {
                continue;
            }
            if pages.is_dirty(entry) && !self.cold[entry.at()] {
                self.cold[entry.at()] = true;
                self.list.move_to_front(0, entry);
                next = next.or(Some(entry));
            } else if take(entry).is_break() {
                return;
            }
        }
    }
}

impl Policy for LruWsr {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let is_simulator = parameters.count("as-simulator", 0, 0..=1)? == 1;
        let entries = shape.frames + 1;
        Ok(Self { list: Lists::new(entries, 1), cold: vec![false; entries], is_simulator })
    }

    #[inline]
    fn hit(&mut self, entry: Entry, _: bool, _: &Directory) {
        if self.is_simulator && self.list.front(0) == Some(entry) {
            return;
        }
        self.cold[entry.at()] = false;
        self.list.move_to_front(0, entry);
    }

    #[inline]
    fn expect(&self, _: Page, entry: Entry) {
        self.list.expect(entry);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        // Each page is moved once at most.
        for _ in 0..=self.list.len(0) {
            let oldest = self.list.oldest(0, pages)?;
            if !pages.is_dirty(oldest) || self.cold[oldest.at()] {
                return Some(oldest);
            }
            self.cold[oldest.at()] = true;
            self.list.move_to_front(0, oldest);
        }
        None
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.list.remove(0, entry);
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, _: bool, _: &mut Directory) {
        self.cold[entry.at()] = false;
        self.list.push_front(0, entry);
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.cold[entry.at()] = false;
        self.list.push_back(0, entry);
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        if self.is_simulator {
            return self.collect(pages, take);
        }
        for waits in [false, true] {
            let waiting = |entry: Entry| pages.is_dirty(entry) && !self.cold[entry.at()];
            let victims = self.list.iter(0).filter(|&entry| waiting(entry) == waits);
            if hand_out(victims, pages, take).is_break() {
                return;
            }
        }
    }
}
