//! DL-CFLRU/E: clean and dirty pages in two LRU lists; clean ones are evicted first, wherever they are; then, of the
//! last w dirty ones, that whose flash block was erased least often.
//!
//! A page that is read goes to the front of its own list, one that is written to the front of the dirty list. Of equal
//! blocks the oldest page is evicted. A host cannot see erase counts; see [`super::wear`] for what is in for them.
//! Source: Y.-S. Yoo, H. Lee, Y. Ryu, H. Bahn, *Page Replacement Algorithms for NAND Flash Memory Storages*, ICCSA
//! 2007.
//!
//! Left open there, chosen here: `window`, w as a share of the frames, default 0.5. A page that was written back and
//! stays goes to the front of the clean list.
//!
//! **Order.** Clean pages by age, then dirty ones by age, as the published models of ACE take them. With `order=rank`
//! the dirty ones are taken as they would be evicted: by wear, each that is evicted lets the next one into the window.

use super::parameters::share_of;
use super::ranked::{Rank, Ranked, Scratch};
use super::wear::Wear;
use super::window::Window;
use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry, Page};
use crate::heap::Key;
use crate::timeline::Timeline;

/// See the module.
pub(crate) struct DlCflruE {
    clean: Timeline,
    /// The dirty list with its window.
    dirty: Window,
    /// Dirty pages of the window.
    ranked: Ranked,
    /// By entry: whether it is in the dirty list.
    is_dirty: Vec<bool>,
    wear: Wear,
    scratch: Scratch,
    entering: Vec<(Key, Entry)>,
    by_rank: bool,
}

impl DlCflruE {
    /// Makes room for one dirty page more. Where these have other numbers then, they are ranked anew.
    #[inline]
    fn make_room(&mut self) {
        if self.dirty.make_room() {
            self.ranked.rank_anew(&self.dirty, &self.wear);
        }
    }

    #[inline]
    fn enter(&mut self, entry: Option<Entry>) {
        if let Some(entry) = entry {
            self.ranked.enter(entry, &self.dirty, &self.wear);
        }
    }

    fn remove(&mut self, entry: Entry) {
        if self.is_dirty[entry.at()] {
            let entering = self.dirty.remove(entry);
            self.enter(entering);
        } else {
            self.clean.remove(entry);
        }
    }

    fn push_front(&mut self, entry: Entry, is_dirty: bool) {
        self.is_dirty[entry.at()] = is_dirty;
        if is_dirty {
            self.make_room();
            let entering = self.dirty.push_front(entry, true);
            self.enter(entering);
        } else {
            self.clean.push_newest(entry, false);
        }
    }
}

impl Policy for DlCflruE {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let size = share_of(shape.frames, parameters.share("window", 0.5, 1.0)?);
        let by_rank = parameters.choice("order", &["age", "rank"])? == 1;
        let (entries, wear) = (shape.frames + 1, Wear::new(shape));
        let dirty = Window::new(entries, size);
        Ok(Self {
            clean: Timeline::new(entries),
            ranked: Ranked::new(dirty.numbers(), wear.blocks()),
            dirty,
            is_dirty: vec![false; entries],
            wear,
            scratch: Scratch::default(),
            entering: Vec::new(),
            by_rank,
        })
    }

    #[inline]
    fn hit(&mut self, entry: Entry, is_write: bool, _: &Directory) {
        if self.is_dirty[entry.at()] {
            self.make_room();
            let entering = self.dirty.move_to_front(entry, true);
            self.enter(entering);
        } else if is_write {
            self.clean.remove(entry);
            self.push_front(entry, true);
        } else {
            self.clean.move_to_newest(entry, false);
        }
    }

    #[inline]
    fn expect(&self, page: Page, entry: Entry) {
        self.dirty.expect(entry);
        self.clean.expect(entry);
        self.wear.expect_page(page);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        let Self { clean, dirty, ranked, wear, scratch, .. } = self;
        clean.oldest(pages).or_else(|| ranked.victim(pages, dirty, wear, scratch)).or_else(|| dirty.oldest(pages))
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.remove(entry);
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, is_write: bool, pages: &mut Directory) {
        self.wear.add(entry, pages);
        self.push_front(entry, is_write);
    }

    fn prefetch(&mut self, entry: Entry, pages: &mut Directory) {
        self.wear.add(entry, pages);
        self.is_dirty[entry.at()] = false;
        self.clean.push_oldest(entry, false);
    }

    fn written(&mut self, entry: Entry, _: &Directory) {
        self.remove(entry);
        self.push_front(entry, false);
        self.wear.written(entry);
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        // Where a list starts is only known once somebody has looked.
        let _ = self.dirty.oldest(pages);
        let Self { clean, dirty, ranked, wear, scratch, entering, by_rank, .. } = self;
        if hand_out(clean.iter(), pages, take).is_break() {
            return;
        }
        if !*by_rank {
            let _ = hand_out(dirty.iter(), pages, take);
            return;
        }
        let mut inside = ranked.sorted(dirty, wear, scratch).filter(|&(_, entry)| pages.is_free(entry)).peekable();
        let mut beyond = dirty.beyond();
        entering.clear();
        let mut has_new = false;
        loop {
            let next = entering.iter().copied().min();
            let own = inside.peek().copied();
            let Some(candidate) = next.into_iter().chain(own).min() else { break };
            if has_new && candidate.0.0 > 0 {
                // New pages, of blocks that were never written, are in the window and are evicted for ever.
                return;
            }
            if Some(candidate) == own {
                inside.next();
            }
            entering.retain(|&other| other != candidate);
            if take(candidate.1).is_break() {
                return;
            }
            match beyond.next() {
                None => has_new = true,
                Some(entry) if pages.is_free(entry) => {
                    entering.push(((wear.rank(entry), u64::from(dirty.number(entry))), entry));
                }
                Some(_) => {}
            }
        }
        // Whatever is left in the window is held.
        let _ = hand_out(beyond, pages, take);
    }
}
