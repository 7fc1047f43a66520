//! DL-CFLRU/E: clean and dirty pages in two LRU lists; clean ones fall first, wherever they are; then, of the last w dirty
//! ones, that whose flash block was erased least often.
//!
//! A page that is read goes to the front of its own list, one that is written to the front of the dirty list. Of equal
//! blocks the oldest page falls. A host cannot see erase counts; see [`super::wear`] for what stands in for them.
//! Source: Y.-S. Yoo, H. Lee, Y. Ryu, H. Bahn, *Page Replacement Algorithms for NAND Flash Memory Storages*, ICCSA 2007.
//!
//! Left open there, chosen here: `window`, w as a share of the frames, default 0.5. A page that was written back and
//! stays goes to the front of the clean list.
//!
//! **Order.** Clean pages by age, then dirty ones by age, as the published models of ACE take them. With `order=rank` the
//! dirty ones are taken as they would fall: by wear, each that falls lets the next one into the window.

use super::parameters::share_of;
use super::ranked::{Ranked, Scratch};
use super::wear::Wear;
use super::window::Window;
use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry, Page};
use crate::heap::Key;
use crate::lists::Lists;

/// See the module.
pub(crate) struct DlCflruE {
    clean: Lists,
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
    fn enter(&mut self, entry: Option<Entry>) {
        if let Some(entry) = entry {
            let key = (self.wear.of(entry), self.dirty.age_key(entry));
            self.ranked.add(self.wear.block(entry), entry, key);
        }
    }

    fn remove(&mut self, entry: Entry) {
        if self.is_dirty[entry.at()] {
            if self.dirty.contains(entry) {
                self.ranked.remove(self.wear.block(entry), entry, &self.dirty);
            }
            let entering = self.dirty.remove(entry);
            self.enter(entering);
        } else {
            self.clean.remove(0, entry);
        }
    }

    fn push_front(&mut self, entry: Entry, is_dirty: bool) {
        self.is_dirty[entry.at()] = is_dirty;
        if is_dirty {
            let entering = self.dirty.push_front(entry);
            self.enter(entering);
        } else {
            self.clean.push_front(0, entry);
        }
    }
}

impl Policy for DlCflruE {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let size = share_of(shape.frames, parameters.share("window", 0.5, 1.0)?);
        let by_rank = parameters.choice("order", &["age", "rank"])? == 1;
        let (entries, wear) = (shape.frames + 1, Wear::new(shape));
        Ok(Self {
            clean: Lists::new(entries, 1),
            dirty: Window::new(entries, size),
            ranked: Ranked::new(entries, wear.blocks()),
            is_dirty: vec![false; entries],
            wear,
            scratch: Scratch::default(),
            entering: Vec::new(),
            by_rank,
        })
    }

    fn hit(&mut self, entry: Entry, is_write: bool, _: &Directory) {
        let was_dirty = self.is_dirty[entry.at()];
        if was_dirty && !self.dirty.contains(entry) {
            return self.dirty.move_to_front(entry);
        }
        self.remove(entry);
        self.push_front(entry, was_dirty || is_write);
    }

    #[inline]
    fn expect(&self, _: Page, entry: Entry) {
        self.dirty.expect(entry);
        self.clean.expect(entry);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        let Self { clean, dirty, ranked, scratch, .. } = self;
        clean
            .oldest(0, pages)
            .or_else(|| ranked.victim(pages, dirty, scratch))
            .or_else(|| dirty.iter().find(|&entry| pages.is_free(entry)))
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
        self.clean.push_back(0, entry);
    }

    fn written(&mut self, entry: Entry, _: &Directory) {
        self.remove(entry);
        self.push_front(entry, false);
        let wear = self.wear.written(entry);
        self.ranked.rerank(self.wear.block(entry), wear);
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        let Self { clean, dirty, ranked, wear, scratch, entering, by_rank, .. } = self;
        if hand_out(clean.iter(0), pages, take).is_break() {
            return;
        }
        if !*by_rank {
            let _ = hand_out(dirty.iter(), pages, take);
            return;
        }
        let mut inside = ranked.sorted(dirty, scratch).filter(|&(_, entry)| pages.is_free(entry)).peekable();
        let mut beyond = dirty.beyond();
        entering.clear();
        let mut has_new = false;
        loop {
            let next = entering.iter().copied().min();
            let own = inside.peek().copied();
            let Some(falling) = next.into_iter().chain(own).min() else { break };
            if has_new && falling.0.0 > 0 {
                // New pages, of blocks that were never written, are in the window and fall for ever.
                return;
            }
            if Some(falling) == own {
                inside.next();
            }
            entering.retain(|&other| other != falling);
            if take(falling.1).is_break() {
                return;
            }
            match beyond.next() {
                None => has_new = true,
                Some(entry) if pages.is_free(entry) => {
                    entering.push(((wear.of(entry), dirty.age_key(entry)), entry));
                }
                Some(_) => {}
            }
        }
        // Whatever is left in the window is held.
        let _ = hand_out(beyond, pages, take);
    }
}
