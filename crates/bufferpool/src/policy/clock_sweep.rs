//! Clock Sweep: PostgreSQL's clock, whose pages have a usage count in place of a bit.
//!
//! A load sets the count to 1, a hit adds 1, up to `most`. The hand passes over pages that is pinned, takes 1 off those
//! whose count is not 0, and takes the first whose count is 0. Source: PostgreSQL 11.5,
//! `src/backend/storage/buffer/README`.
//!
//! Parameter: `most`, default 5 (PostgreSQL's `BM_MAX_USAGE_COUNT`).

use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry};

/// The frame is empty.
const EMPTY: u8 = u8::MAX;

/// See the module.
pub(crate) struct ClockSweep {
    /// By entry, which is the frame: how often it was used, or empty.
    usage: Vec<u8>,
    hand: usize,
    most: u8,
}

impl Policy for ClockSweep {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let most = parameters.count("most", 5, 1..=250)? as u8;
        Ok(Self { usage: vec![EMPTY; shape.frames + 1], hand: 0, most })
    }

    #[inline]
    fn hit(&mut self, entry: Entry, _: bool, _: &Directory) {
        let usage = &mut self.usage[entry.at()];
        *usage = (*usage + 1).min(self.most);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        for _ in 0..=(usize::from(self.most) + 1) * self.usage.len() {
            let entry = Entry(self.hand as u32);
            if pages.is_free(entry) {
                match self.usage[self.hand] {
                    0 => return Some(entry),
                    EMPTY => {}
                    _ => self.usage[self.hand] -= 1,
                }
            }
            self.hand = (self.hand + 1) % self.usage.len();
        }
        None
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.usage[entry.at()] = EMPTY;
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, _: bool, _: &mut Directory) {
        self.usage[entry.at()] = 1;
        if entry.at() == self.hand {
            self.hand = (self.hand + 1) % self.usage.len();
        }
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.usage[entry.at()] = 0;
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        let (behind, ahead) = self.usage.split_at(self.hand);
        // A page is evicted in the lap after as many as its count.
        for lap in 0..=self.most {
            let ring = (self.hand..).zip(ahead).chain((0..).zip(behind));
            let victims = ring.filter(|&(_, &usage)| usage == lap).map(|(frame, _)| Entry(frame as u32));
            if hand_out(victims, pages, take).is_break() {
                return;
            }
        }
    }
}
