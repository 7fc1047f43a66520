//! NRU, not recently used: pages are in four classes, and the lowest one that is not empty loses its oldest member.
//!
//! ```text
//!   0  not referenced, clean     1  not referenced, dirty     2  referenced, clean     3  referenced, dirty
//! ```
//!
//! Being requested or loaded sets the referenced bit; all of these bits are cleared every `interval` accesses. Source:
//! A. S. Tanenbaum, *Modern Operating Systems*, chapter on page replacement.
//!
//! Left open there, chosen here: which page of a class is evicted: the one that has been in it the longest; classes
//! that are cleared go behind those that were not referenced anyway. `interval`: default one access for each frame.

use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry, Page};
use crate::lists::Lists;

const REFERENCED: usize = 2;
const CLASSES: usize = 4;

/// See the module.
pub(crate) struct Nru {
    /// A list a class.
    classes: Lists,
    /// By entry: its class, if the bits have not been cleared since.
    class: Vec<u8>,
    /// By entry: how often the bits had been cleared when it got its class.
    epoch: Vec<u32>,
    now: u32,
    interval: u64,
    accesses: u64,
}

impl Nru {
    fn class(&self, entry: Entry) -> usize {
        let class = usize::from(self.class[entry.at()]);
        if self.epoch[entry.at()] == self.now { class } else { class % REFERENCED }
    }

    fn enter(&mut self, class: usize, entry: Entry) {
        (self.class[entry.at()], self.epoch[entry.at()]) = (class as u8, self.now);
        self.classes.push_front(class, entry);
    }

    /// Counts an access, after which the bits may be cleared.
    fn tick(&mut self) {
        self.accesses += 1;
        if self.accesses.is_multiple_of(self.interval) {
            (0..REFERENCED).for_each(|class| self.classes.append(class + REFERENCED, class));
            self.now = self.now.wrapping_add(1);
        }
    }
}

impl Policy for Nru {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let entries = shape.frames + 1;
        let interval = parameters.count("interval", shape.frames as u64, 1..=u64::MAX)?;
        let classes = Lists::new(entries, CLASSES);
        Ok(Self { classes, class: vec![0; entries], epoch: vec![0; entries], now: 0, interval, accesses: 0 })
    }

    fn hit(&mut self, entry: Entry, is_write: bool, pages: &Directory) {
        let (from, to) = (self.class(entry), REFERENCED + usize::from(is_write || pages.is_dirty(entry)));
        if from != to {
            self.classes.remove(from, entry);
            self.enter(to, entry);
        }
        self.tick();
    }

    #[inline]
    fn expect(&self, _: Page, entry: Entry) {
        self.classes.expect(entry);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        (0..CLASSES).find_map(|class| self.classes.oldest(class, pages))
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.classes.remove(self.class(entry), entry);
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, is_write: bool, _: &mut Directory) {
        self.enter(REFERENCED + usize::from(is_write), entry);
        self.tick();
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        (self.class[entry.at()], self.epoch[entry.at()]) = (0, self.now);
        self.classes.push_back(0, entry);
    }

    fn written(&mut self, entry: Entry, _: &Directory) {
        let class = self.class(entry);
        self.classes.remove(class, entry);
        self.enter(class & REFERENCED, entry);
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        let _ = hand_out((0..CLASSES).flat_map(|class| self.classes.iter(class)), pages, take);
    }
}
