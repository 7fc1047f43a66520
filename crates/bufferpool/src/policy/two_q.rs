//! 2Q, the full version: a page that is requested again soon after it was evicted is a hot one; one burst of references
//! is not.
//!
//! ```text
//!   new page ─▶ A1in (FIFO, Kin) ─is evicted─▶ A1out (ghosts, FIFO, Kout) ─requested again─▶ Am (LRU)
//! ```
//!
//! A hit in A1in changes nothing, one in Am moves to its front. The victim is the oldest of A1in if it holds more than
//! Kin pages, else the oldest of Am, which leaves no ghost.
//! Source: T. Johnson, D. Shasha, *2Q: A Low Overhead High Performance Buffer Management Replacement Algorithm*, VLDB
//! 1994.
//!
//! Parameters: `in`, Kin as a share of the frames, default 0.25; `out`, Kout, default 0.5 (both the paper's). Left open
//! there: whether a page that is requested is taken out of A1out before the victim goes in (`ghost=early`,
//! libCacheSim's, the default), or looked up there afterwards, when the victim may have pushed it out (`ghost=late`).
//!
//! **Order.** New pages go to A1in. While it holds at most Kin, pages of Am are evicted; from then on those of A1in,
//! and then new ones for ever; what Am has left comes last. With `order=lists`: what A1in has too many, Am, the rest of
//! A1in.

use super::parameters::share_of;
use super::{Parameters, Policy, PolicyError, Shape, Taker, fall_of_two, hand_out};
use crate::directory::{Directory, Entry, Page};
use crate::lists::Lists;
use crate::marked::Marked;

const A1IN: usize = 0;
const A1OUT: usize = 1;
const AM: usize = 2;

/// Where an entry is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    A1in,
    A1out,
    /// It was a ghost and is requested.
    Expected,
    Am,
}

/// See the module.
pub(crate) struct TwoQ {
    lists: Lists,
    place: Vec<Place>,
    /// The dirty pages of A1in. While Am gives the victims, batches clean A1in far ahead, and all of that would be
    /// passed for the next one.
    dirty: Marked,
    k_in: usize,
    k_out: usize,
    looks_late: bool,
    by_lists: bool,
}

impl TwoQ {
    fn oldest(&self, list: usize, pages: &Directory) -> Option<Entry> {
        self.lists.oldest(list, pages)
    }
}

impl Policy for TwoQ {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let k_in = share_of(shape.frames, parameters.share("in", 0.25, 1.0)?);
        let k_out = parameters.ghosts(shape.frames, "out", 0.5)?;
        let looks_late = parameters.choice("ghost", &["early", "late"])? == 1;
        let by_lists = parameters.choice("order", &["miss", "lists"])? == 1;
        let entries = shape.frames + k_out + 2;
        let place = vec![Place::Nowhere; entries];
        Ok(Self { lists: Lists::new(entries, 3), place, dirty: Marked::not_begun(), k_in, k_out, looks_late, by_lists })
    }

    fn ghosts(&self) -> usize {
        self.k_out + 1
    }

    #[inline]
    fn hit(&mut self, entry: Entry, is_write: bool, _: &Directory) {
        if self.place[entry.at()] == Place::Am {
            self.lists.move_to_front(AM, entry);
        } else if is_write {
            self.dirty.mark(entry, true);
        }
    }

    fn miss(&mut self, ghost: Option<Entry>, _: &mut Directory) {
        if let Some(ghost) = ghost.filter(|_| !self.looks_late) {
            self.lists.remove(A1OUT, ghost);
            self.place[ghost.at()] = Place::Expected;
        }
    }

    #[inline]
    fn expect(&self, _: Page, entry: Entry) {
        self.lists.expect(entry);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        let (first, second) = if self.lists.len(A1IN) > self.k_in { (A1IN, AM) } else { (AM, A1IN) };
        self.oldest(first, pages).or_else(|| self.oldest(second, pages))
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        if self.place[entry.at()] == Place::Am {
            self.lists.remove(AM, entry);
            self.place[entry.at()] = Place::Nowhere;
            pages.forget(entry);
            return;
        }
        self.lists.remove(A1IN, entry);
        self.lists.push_front(A1OUT, entry);
        self.place[entry.at()] = Place::A1out;
        pages.remember(entry);
        if self.lists.len(A1OUT) > self.k_out
            && let Some(oldest) = self.lists.back(A1OUT)
        {
            self.drop_ghost(oldest, pages);
        }
    }

    fn load(&mut self, entry: Entry, is_write: bool, _: &mut Directory) {
        let (list, place) = match self.place[entry.at()] {
            Place::A1out => {
                self.lists.remove(A1OUT, entry);
                (AM, Place::Am)
            }
            Place::Expected => (AM, Place::Am),
            _ => (A1IN, Place::A1in),
        };
        if place == Place::A1in {
            self.dirty.push_front(&self.lists, A1IN, entry, is_write);
        }
        self.lists.push_front(list, entry);
        self.place[entry.at()] = place;
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.dirty.push_back(&self.lists, A1IN, entry);
        self.lists.push_back(A1IN, entry);
        self.place[entry.at()] = Place::A1in;
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        let of = |list| self.lists.iter(list).filter(|&entry| pages.is_free(entry));
        let (mut a1in, am) = (of(A1IN), of(AM));
        let length = self.lists.len(A1IN);
        if self.by_lists {
            let over = length.saturating_sub(self.k_in);
            let naive = a1in.by_ref().take(over).chain(am).chain(of(A1IN).skip(over));
            let _ = hand_out(naive, pages, take);
            return;
        }
        let _ = fall_of_two(a1in, am, length, |length, _| length > self.k_in, take);
    }

    fn written(&mut self, entry: Entry, _: &Directory) {
        if self.place[entry.at()] == Place::A1in {
            self.dirty.mark(entry, false);
        }
    }

    fn order_of_dirty(&mut self, pages: &Directory, take: Taker<'_>) {
        if self.by_lists {
            return self.order(pages, take);
        }
        self.dirty.begin(&self.lists, A1IN, self.place.len(), |entry| pages.is_dirty(entry));
        // Each page of Am that is evicted lets A1in grow by one, until it is too long.
        let grows = (self.k_in + 1).saturating_sub(self.lists.len(A1IN));
        let free = |&entry: &Entry| pages.is_free(entry);
        let mut am = self.lists.iter(AM).filter(free);
        if hand_out(am.by_ref().take(grows), pages, take).is_break()
            || hand_out(self.dirty.iter(&self.lists, A1IN), pages, take).is_break()
        {
            return;
        }
        let _ = hand_out(am, pages, take);
    }

    fn drop_ghost(&mut self, entry: Entry, pages: &mut Directory) {
        if self.place[entry.at()] == Place::A1out {
            self.lists.remove(A1OUT, entry);
        }
        self.place[entry.at()] = Place::Nowhere;
        pages.forget(entry);
    }
}
