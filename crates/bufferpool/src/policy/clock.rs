//! Clock: the frames in a ring, a bit each, and a hand that looks for a bit that is 0 and clears those that are not.
//!
//! A hit sets the bit. The hand takes the first page whose bit is 0 and that nobody holds, and stays behind it, where
//! the new page comes in.
//! Source: F. J. Corbató, *A Paging Experiment with the Multics System*, 1968.
//!
//! Left open there, a parameter here: `bit`, that of a page that was just loaded. Default 0 (libCacheSim's
//! `n-bit-counter=1`); 1 is the textbooks'. It is [`super::second_chance`] without moving anything.

use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry};

/// The frame is empty.
const EMPTY: u8 = u8::MAX;

/// See the module.
pub(crate) struct Clock {
    /// By entry, which is the frame: 0, 1, or empty.
    bits: Vec<u8>,
    hand: usize,
    at_load: u8,
}

impl Policy for Clock {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let at_load = parameters.count("bit", 0, 0..=1)? as u8;
        Ok(Self { bits: vec![EMPTY; shape.frames + 1], hand: 0, at_load })
    }

    #[inline]
    fn hit(&mut self, entry: Entry, _: bool, _: &Directory) {
        self.bits[entry.at()] = 1;
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        for _ in 0..=2 * self.bits.len() {
            let entry = Entry(self.hand as u32);
            if pages.is_free(entry) {
                match self.bits[self.hand] {
                    0 => return Some(entry),
                    EMPTY => {}
                    _ => self.bits[self.hand] -= 1,
                }
            }
            self.hand = (self.hand + 1) % self.bits.len();
        }
        None
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.bits[entry.at()] = EMPTY;
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, _: bool, _: &mut Directory) {
        self.bits[entry.at()] = self.at_load;
        if entry.at() == self.hand {
            self.hand = (self.hand + 1) % self.bits.len();
        }
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.bits[entry.at()] = 0;
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        let (behind, ahead) = self.bits.split_at(self.hand);
        // A referenced page is evicted the second time around.
        for bit in [0, 1] {
            let ring = (self.hand..).zip(ahead).chain((0..).zip(behind));
            let victims = ring.filter(|&(_, &own)| own == bit).map(|(frame, _)| Entry(frame as u32));
            if hand_out(victims, pages, take).is_break() {
                return;
            }
        }
    }
}
