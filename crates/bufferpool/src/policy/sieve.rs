//! SIEVE: FIFO with a hand that passes over pages that were requested, and leaves them where they are.
//!
//! A hit sets a page's bit. The hand goes from the oldest page to the newest, clears bits that are set, and takes the
//! first page whose bit is not; there it stays. Behind the newest page it starts again with the oldest. Source: Y.
//! Zhang, J. Yang, Y. Yue, Y. Vigfusson, K. V. Rashmi, *SIEVE is Simpler than LRU*, NSDI 2024.
//!
//! **Order.** What was not requested, from the hand to the newest page. If that is more than the victim, new pages come
//! in ahead of the hand as fast as it takes them, and it never starts again; else it goes around once more.

use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry};
use crate::lists::Lists;

/// See the module.
pub(crate) struct Sieve {
    list: Lists,
    /// By entry.
    visited: Vec<bool>,
    /// The page that is examined next; none for the oldest one.
    hand: Option<Entry>,
}

impl Policy for Sieve {
    fn new(shape: &Shape, _: &mut Parameters) -> Result<Self, PolicyError> {
        let entries = shape.frames + 1;
        Ok(Self { list: Lists::new(entries, 1), visited: vec![false; entries], hand: None })
    }

    #[inline]
    fn hit(&mut self, entry: Entry, _: bool, _: &Directory) {
        self.visited[entry.at()] = true;
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        // Twice around: the first time clears the bits of whatever is not held.
        for _ in 0..=2 * self.list.len(0) {
            let entry = self.hand.or_else(|| self.list.back(0))?;
            self.hand = Some(entry);
            if pages.is_free(entry) && !std::mem::take(&mut self.visited[entry.at()]) {
                return Some(entry);
            }
            self.hand = self.list.newer(entry);
        }
        None
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        if self.hand == Some(entry) {
            self.hand = self.list.newer(entry);
        }
        self.list.remove(0, entry);
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, _: bool, _: &mut Directory) {
        self.visited[entry.at()] = false;
        self.list.push_front(0, entry);
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.visited[entry.at()] = false;
        match self.hand {
            // Right where the hand looks next.
            Some(hand) => self.list.push_after(0, entry, self.list.older(hand)),
            None => self.list.push_back(0, entry),
        }
        self.hand = Some(entry);
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        let Some(hand) = self.hand else { return };
        let is_visited = |&entry: &Entry| self.visited[entry.at()];
        let ahead = || std::iter::successors(self.list.newer(hand), |&entry| self.list.newer(entry));
        let behind = || self.list.iter(0).take_while(|&entry| entry != hand);
        if take(hand).is_break() {
            return;
        }
        // What the hand clears on its way is evicted the next time around; it goes around again if nothing was evicted.
        let mut has_fallen = false;
        let mut fall = |entry| {
            has_fallen = true;
            take(entry)
        };
        let first = hand_out(ahead().filter(|entry| !is_visited(entry)), pages, &mut fall);
        if first.is_break() || has_fallen {
            return;
        }
        let mut fall = |entry| {
            has_fallen = true;
            take(entry)
        };
        let again = behind().filter(|entry| !is_visited(entry)).chain(ahead().filter(is_visited));
        if hand_out(again, pages, &mut fall).is_break() || has_fallen {
            return;
        }
        let _ = hand_out(behind().filter(is_visited), pages, take);
    }
}
