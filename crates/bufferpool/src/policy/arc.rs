//! ARC: two LRU lists, of pages that were requested once and of the others, whose sizes follow the ghosts that come
//! back.
//!
//! ```text
//!   new page ─▶ T1 ─is evicted─▶ B1 (ghosts)        hit, or requested again as a ghost ─▶ T2 ─is evicted─▶ B2 (ghosts)
//! ```
//!
//! `target` is how long T1 should be. A page found in B1 raises it by max(1, |B2|/|B1|), one found in B2 lowers it by
//! max(1, |B1|/|B2|), between 0 and c. The victim is the oldest of T1 if that is longer than `target`, or as long and
//! the page was found in B2; else the oldest of T2. T1 and B1 together have at most c pages, all four lists at most 2c.
//! Source: N. Megiddo, D. S. Modha, *ARC: A Self-Tuning, Low Overhead Replacement Cache*, FAST 2003, figure 4. The
//! steps are not rounded.
//!
//! **Order.** The list from which the next victim comes once this one is gone, to its end, and then the other one: T1
//! if it has `target` pages or more. That is the order of the published model of reads and writes. It leaves out that
//! new pages go to T1, which grows while pages of T2 are evicted. With
//!
//! - `order=miss` that counts: while T1 is no longer than `target`, pages of T2 are evicted; from then on those of T1,
//!   and then new ones for ever; what T2 has left comes last. Where T2 is long this writes fewer pages that would stay;
//! - `order=lists` what T1 has too many, T2, the rest of T1.

use super::{Parameters, Policy, PolicyError, Shape, Taker, fall_of_two, hand_out};
use crate::directory::{Directory, Entry, Page};
use crate::lists::Lists;
use crate::marked::Marked;

const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;
const NOWHERE: u8 = 4;

/// What the page that missed was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Incoming {
    Unknown,
    /// Unknown, and T1 is full of pages without ghosts: the victim leaves none.
    WithoutGhost,
    InB1,
    InB2,
}

/// In which order pages are written together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    NextList,
    Miss,
    Lists,
}

impl Order {
    fn of(parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let orders = [Self::NextList, Self::Miss, Self::Lists];
        Ok(orders[parameters.choice("order", &["next-list", "miss", "lists"])?])
    }
}

/// See the module.
pub(crate) struct Arc {
    lists: Lists,
    /// By entry: its list.
    list: Vec<u8>,
    /// The dirty pages of T1 and of T2. Batches clean each far ahead of what is evicted, and all of that would be
    /// passed for the next one.
    dirty: [Marked; 2],
    target: f64,
    incoming: Incoming,
    frames: usize,
    order: Order,
}

impl Arc {
    fn oldest(&self, list: usize, pages: &Directory) -> Option<Entry> {
        self.lists.oldest(list, pages)
    }

    /// Whether T1, of that length, gives the victim.
    fn falls_from_t1(&self, length: usize, incoming: Incoming) -> bool {
        let length = length as f64;
        incoming == Incoming::WithoutGhost
            || length > self.target
            || (incoming == Incoming::InB2 && length == self.target)
    }

    /// Whether T1 gives a victim when new pages have made it so long; the first one is evicted for the page that
    /// missed.
    fn is_t1_large(&self, length: usize, is_start: bool) -> bool {
        let without_ghost = if length == self.frames { Incoming::WithoutGhost } else { Incoming::Unknown };
        self.falls_from_t1(length, if is_start { self.incoming } else { without_ghost })
    }

    fn adapt(&mut self, ghost: Entry) -> Incoming {
        let (b1, b2) = (self.lists.len(B1) as f64, self.lists.len(B2) as f64);
        if self.list[ghost.at()] == B1 as u8 {
            self.target = (self.target + (b2 / b1).max(1.0)).min(self.frames as f64);
            Incoming::InB1
        } else {
            self.target = (self.target - (b1 / b2).max(1.0)).max(0.0);
            Incoming::InB2
        }
    }

    fn first_to_fall(&self, pages: &Directory) -> Option<Entry> {
        let from_t1 = self.falls_from_t1(self.lists.len(T1), self.incoming);
        let (first, second) = if from_t1 { (T1, T2) } else { (T2, T1) };
        self.oldest(first, pages).or_else(|| self.oldest(second, pages))
    }

    fn drop_oldest(&mut self, list: usize, pages: &mut Directory) {
        if let Some(ghost) = self.lists.back(list) {
            self.drop_ghost(ghost, pages);
        }
    }

    /// Holds the lists to their lengths, which only evictions of several pages at once exceed.
    fn shorten(&mut self, pages: &mut Directory) {
        while self.lists.len(T1) + self.lists.len(B1) > self.frames && self.lists.len(B1) > 0 {
            self.drop_oldest(B1, pages);
        }
        let total = |lists: &Lists| (T1..=B2).map(|list| lists.len(list)).sum::<usize>();
        while total(&self.lists) > 2 * self.frames && self.lists.len(B2) > 0 {
            self.drop_oldest(B2, pages);
        }
    }

    /// Puts a page that has a frame at the front of T1 or T2.
    #[inline]
    fn put(&mut self, list: usize, entry: Entry, is_dirty: bool) {
        self.dirty[list].push_front(&self.lists, list, entry, is_dirty);
        self.lists.push_front(list, entry);
        self.list[entry.at()] = list as u8;
    }

    /// The list from which the next victim comes once this one is gone, and the other one.
    fn next_lists(&self, pages: &Directory) -> [usize; 2] {
        let victim_is_in_t1 = self.first_to_fall(pages).is_some_and(|victim| self.list[victim.at()] == T1 as u8);
        let left = self.lists.len(T1) - usize::from(victim_is_in_t1);
        if left as f64 >= self.target { [T1, T2] } else { [T2, T1] }
    }
}

impl Policy for Arc {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let order = Order::of(parameters)?;
        let (frames, entries) = (shape.frames, 2 * shape.frames + 2);
        let (lists, list) = (Lists::new(entries, 4), vec![NOWHERE; entries]);
        let dirty = [Marked::not_begun(), Marked::not_begun()];
        Ok(Self { lists, list, dirty, target: 0.0, incoming: Incoming::Unknown, frames, order })
    }

    fn ghosts(&self) -> usize {
        self.frames + 1
    }

    #[inline]
    fn hit(&mut self, entry: Entry, is_write: bool, _: &Directory) {
        let list = usize::from(self.list[entry.at()]);
        let was_dirty = self.dirty[list].unmark(entry);
        if list == T2 {
            self.dirty[T2].push_front(&self.lists, T2, entry, is_write | was_dirty);
            self.lists.move_to_front(T2, entry);
        } else {
            self.lists.remove(T1, entry);
            self.put(T2, entry, is_write | was_dirty);
        }
    }

    fn miss(&mut self, ghost: Option<Entry>, pages: &mut Directory) {
        if let Some(ghost) = ghost {
            self.incoming = self.adapt(ghost);
            self.lists.remove(usize::from(self.list[ghost.at()]), ghost);
            self.list[ghost.at()] = NOWHERE;
            return;
        }
        self.incoming = Incoming::Unknown;
        let [t1, t2, b1, b2] = [T1, T2, B1, B2].map(|list| self.lists.len(list));
        if t1 + b1 == self.frames {
            if b1 > 0 {
                self.drop_oldest(B1, pages);
            } else {
                self.incoming = Incoming::WithoutGhost;
            }
        } else if t1 + t2 + b1 + b2 == 2 * self.frames {
            self.drop_oldest(B2, pages);
        }
    }

    #[inline]
    fn expect(&self, _: Page, entry: Entry) {
        self.lists.expect(entry);
        self.dirty[T2].expect(entry);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        self.first_to_fall(pages)
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        let list = usize::from(self.list[entry.at()]);
        self.lists.remove(list, entry);
        if list == T1 && self.incoming == Incoming::WithoutGhost {
            self.list[entry.at()] = NOWHERE;
            pages.forget(entry);
            return;
        }
        let ghosts = if list == T1 { B1 } else { B2 };
        self.lists.push_front(ghosts, entry);
        self.list[entry.at()] = ghosts as u8;
        pages.remember(entry);
        self.shorten(pages);
    }

    fn load(&mut self, entry: Entry, is_write: bool, pages: &mut Directory) {
        let was_ghost = matches!(self.incoming, Incoming::InB1 | Incoming::InB2);
        self.put(if was_ghost { T2 } else { T1 }, entry, is_write);
        self.shorten(pages);
    }

    fn prefetch(&mut self, entry: Entry, pages: &mut Directory) {
        self.dirty[T1].push_back(&self.lists, T1, entry);
        self.lists.push_back(T1, entry);
        self.list[entry.at()] = T1 as u8;
        self.shorten(pages);
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        let of = |list| self.lists.iter(list).filter(|&entry| pages.is_free(entry));
        let length = self.lists.len(T1);
        let _ = match self.order {
            Order::Miss => {
                fall_of_two(of(T1), of(T2), length, |length, is_start| self.is_t1_large(length, is_start), take)
            }
            Order::NextList => {
                let [first, second] = self.next_lists(pages);
                hand_out(of(first).chain(of(second)), pages, take)
            }
            Order::Lists => {
                let over = (length as f64 - self.target).max(0.0).floor() as usize;
                hand_out(of(T1).take(over).chain(of(T2)).chain(of(T1).skip(over)), pages, take)
            }
        };
    }

    fn written(&mut self, entry: Entry, _: &Directory) {
        self.dirty[usize::from(self.list[entry.at()])].mark(entry, false);
    }

    fn order_of_dirty(&mut self, pages: &Directory, take: Taker<'_>) {
        if self.order != Order::NextList {
            return self.order(pages, take);
        }
        for (list, dirty) in self.dirty.iter_mut().enumerate() {
            dirty.begin(&self.lists, list, self.list.len(), |entry| pages.is_dirty(entry));
        }
        let [first, second] = self.next_lists(pages).map(|list| self.dirty[list].iter(&self.lists, list));
        let _ = hand_out(first.chain(second), pages, take);
    }

    fn drop_ghost(&mut self, entry: Entry, pages: &mut Directory) {
        let list = std::mem::replace(&mut self.list[entry.at()], NOWHERE);
        if list != NOWHERE {
            self.lists.remove(usize::from(list), entry);
        }
        pages.forget(entry);
    }
}
