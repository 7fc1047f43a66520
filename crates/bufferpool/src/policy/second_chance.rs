//! Second Chance: FIFO, but a page that was requested goes to the front once more instead of victims.
//!
//! One list and a bit a page. A hit sets the bit. The victim is the oldest page whose bit is 0; those before it whose
//! bit is 1 go to the front with the bit 0. Pages that is pinned go to the front as they are. Source: A. S. Tanenbaum,
//! *Modern Operating Systems*, chapter on page replacement.
//!
//! Left open there, a parameter here: `bit`, that of a page that was just loaded. Default 0 (libCacheSim's); 1 is the
//! textbooks', where loading counts as a reference. Victims are those of [`super::clock`].

use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry};
use crate::lists::Lists;

/// See the module.
pub(crate) struct SecondChance {
    list: Lists,
    /// By entry: whether it was requested.
    referenced: Vec<bool>,
    at_load: bool,
}

impl Policy for SecondChance {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let at_load = parameters.count("bit", 0, 0..=1)? == 1;
        let entries = shape.frames + 1;
        Ok(Self { list: Lists::new(entries, 1), referenced: vec![false; entries], at_load })
    }

    #[inline]
    fn hit(&mut self, entry: Entry, _: bool, _: &Directory) {
        self.referenced[entry.at()] = true;
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        // Twice around: the first time clears the bits of whatever is not held.
        for _ in 0..=2 * self.list.len(0) {
            let oldest = self.list.back(0)?;
            if pages.is_free(oldest) && !std::mem::take(&mut self.referenced[oldest.at()]) {
                return Some(oldest);
            }
            self.list.move_to_front(0, oldest);
        }
        None
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.list.remove(0, entry);
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, _: bool, _: &mut Directory) {
        self.referenced[entry.at()] = self.at_load;
        self.list.push_front(0, entry);
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.referenced[entry.at()] = false;
        self.list.push_back(0, entry);
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        // A referenced page is evicted the second time around.
        for referenced in [false, true] {
            let victims = self.list.iter(0).filter(|entry| self.referenced[entry.at()] == referenced);
            if hand_out(victims, pages, take).is_break() {
                return;
            }
        }
    }
}
