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
use super::wear::Wear;
use super::window::Window;
use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry};
use crate::heap::{Heap, Scratch};
use crate::lists::Lists;

/// See the module.
pub(crate) struct DlCflruE {
    clean: Lists,
    /// The dirty list with its window.
    dirty: Window,
    /// Dirty pages of the window.
    ranked: Heap,
    /// By entry: whether it is in the dirty list.
    is_dirty: Vec<bool>,
    wear: Wear,
    scratch: Scratch,
    entering: Vec<(u64, u64, Entry)>,
    by_rank: bool,
}

impl DlCflruE {
    fn enter(&mut self, entry: Option<Entry>, pages: &Directory) {
        if let Some(entry) = entry {
            self.ranked.set(entry, (self.wear.of(entry, pages), self.dirty.age_key(entry)));
        }
    }

    fn remove(&mut self, entry: Entry, pages: &Directory) {
        if self.is_dirty[entry.at()] {
            self.ranked.remove(entry);
            let entering = self.dirty.remove(entry);
            self.enter(entering, pages);
        } else {
            self.clean.remove(0, entry);
        }
    }

    fn push_front(&mut self, entry: Entry, is_dirty: bool, pages: &Directory) {
        self.is_dirty[entry.at()] = is_dirty;
        if is_dirty {
            let entering = self.dirty.push_front(entry);
            self.enter(entering, pages);
        } else {
            self.clean.push_front(0, entry);
        }
    }
}

impl Policy for DlCflruE {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let size = share_of(shape.frames, parameters.share("window", 0.5, 1.0)?);
        let by_rank = parameters.choice("order", &["age", "rank"])? == 1;
        let entries = shape.frames + 1;
        Ok(Self {
            clean: Lists::new(entries, 1),
            dirty: Window::new(entries, size),
            ranked: Heap::new(entries),
            is_dirty: vec![false; entries],
            wear: Wear::new(shape),
            scratch: Scratch::default(),
            entering: Vec::new(),
            by_rank,
        })
    }

    fn hit(&mut self, entry: Entry, is_write: bool, pages: &Directory) {
        let was_dirty = self.is_dirty[entry.at()];
        self.remove(entry, pages);
        self.push_front(entry, was_dirty || is_write, pages);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        let free = |&entry: &Entry| pages.is_free(entry);
        let ranked = |heap: &Heap, scratch: &mut Scratch| heap.sorted(scratch).find(free);
        self.clean
            .iter(0)
            .find(free)
            .or_else(|| ranked(&self.ranked, &mut self.scratch))
            .or_else(|| self.dirty.iter().find(free))
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.remove(entry, pages);
        self.wear.remove(entry, pages);
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, is_write: bool, pages: &mut Directory) {
        self.wear.add(entry, pages);
        self.push_front(entry, is_write, pages);
    }

    fn prefetch(&mut self, entry: Entry, pages: &mut Directory) {
        self.wear.add(entry, pages);
        self.is_dirty[entry.at()] = false;
        self.clean.push_back(0, entry);
    }

    fn written(&mut self, entry: Entry, pages: &Directory) {
        self.remove(entry, pages);
        self.push_front(entry, false, pages);
        let (wear, members) = self.wear.written(entry, pages);
        for member in members {
            if self.ranked.contains(member) {
                self.ranked.set(member, (wear, self.ranked.key(member).1));
            }
        }
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
        let mut inside = ranked.sorted(scratch).filter(|&entry| pages.is_free(entry)).peekable();
        let mut beyond = dirty.beyond();
        entering.clear();
        let mut has_new = false;
        loop {
            let next = entering.iter().copied().min();
            let own = inside.peek().map(|&entry| (ranked.key(entry).0, ranked.key(entry).1, entry));
            let Some(falling) = next.into_iter().chain(own).min() else { break };
            if has_new && falling.0 > 0 {
                // New pages, of blocks that were never written, are in the window and fall for ever.
                return;
            }
            if Some(falling) == own {
                inside.next();
            }
            entering.retain(|&other| other != falling);
            if take(falling.2).is_break() {
                return;
            }
            match beyond.next() {
                None => has_new = true,
                Some(entry) if pages.is_free(entry) => {
                    entering.push((wear.of(entry, pages), dirty.age_key(entry), entry));
                }
                Some(_) => {}
            }
        }
        // Whatever is left in the window is held.
        let _ = hand_out(beyond, pages, take);
    }
}
