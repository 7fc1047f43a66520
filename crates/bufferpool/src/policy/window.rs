//! The w pages at the end of an LRU list that fall first, kept up to date as the list changes.
//!
//! Each change of the list lets at most one page enter: the one above the window's edge.

use crate::directory::Entry;
use crate::lists::Lists;
use crate::memory::prefetch;

/// What the window knows of an entry.
#[derive(Clone, Copy)]
struct Place {
    /// When it came to the front, counted in moves.
    moved: u64,
    /// Whether it is among the last.
    is_inside: bool,
}

/// An LRU list and its last pages.
pub(super) struct Window {
    list: Lists,
    /// By entry.
    places: Vec<Place>,
    moves: u64,
    size: usize,
    len: usize,
    /// The newest of them.
    edge: Option<Entry>,
}

impl Window {
    /// The last `size` of a list of up to `entries`.
    pub(super) fn new(entries: usize, size: usize) -> Self {
        let places = vec![Place { moved: 0, is_inside: false }; entries];
        // 2^63: pages at the end count down from here, those at the front up.
        Self { list: Lists::new(entries, 1), places, moves: 1 << 63, size, len: 0, edge: None }
    }

    /// Says that a page is going to be moved.
    #[inline]
    pub(super) fn expect(&self, entry: Entry) {
        self.list.expect(entry);
        prefetch(&self.places, entry.at());
    }

    #[inline]
    pub(super) fn contains(&self, entry: Entry) -> bool {
        self.places[entry.at()].is_inside
    }

    /// Whether it has no room for any page.
    pub(super) fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// The larger, the newer.
    pub(super) fn age_key(&self, entry: Entry) -> u64 {
        self.places[entry.at()].moved
    }

    /// From the end of the list.
    pub(super) fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        self.list.iter(0)
    }

    /// Pages beyond the window, the next one to enter first.
    pub(super) fn beyond(&self) -> impl Iterator<Item = Entry> + '_ {
        let next = match self.edge {
            Some(edge) => self.list.newer(edge),
            None => self.list.back(0),
        };
        std::iter::successors(next, |&entry| self.list.newer(entry))
    }

    /// Moves a page that is not in the window to the front, which changes nothing in the window.
    #[inline]
    pub(super) fn move_to_front(&mut self, entry: Entry) {
        debug_assert!(!self.contains(entry));
        self.moves += 1;
        self.places[entry.at()].moved = self.moves;
        self.list.move_to_front(0, entry);
    }

    /// Puts a page at the front; the page that enters the window, if any.
    pub(super) fn push_front(&mut self, entry: Entry) -> Option<Entry> {
        self.moves += 1;
        self.places[entry.at()].moved = self.moves;
        self.list.push_front(0, entry);
        self.fill()
    }

    /// Puts a page where it falls next; it enters the window, which another page may leave.
    pub(super) fn push_back(&mut self, entry: Entry) -> (bool, Option<Entry>) {
        let oldest = self.list.back(0).map_or(self.moves, |oldest| self.places[oldest.at()].moved);
        self.places[entry.at()].moved = oldest - 1;
        self.list.push_back(0, entry);
        if self.size == 0 {
            return (false, None);
        }
        self.places[entry.at()].is_inside = true;
        self.len += 1;
        self.edge = self.edge.or(Some(entry));
        let over = self.edge.filter(|_| self.len > self.size);
        if let Some(leaving) = over {
            self.places[leaving.at()].is_inside = false;
            self.len -= 1;
            self.edge = self.list.older(leaving);
        }
        (true, over)
    }

    /// Takes a page out; the page that enters the window, if any.
    pub(super) fn remove(&mut self, entry: Entry) -> Option<Entry> {
        if std::mem::take(&mut self.places[entry.at()].is_inside) {
            self.len -= 1;
            if self.edge == Some(entry) {
                self.edge = self.list.older(entry);
            }
        }
        self.list.remove(0, entry);
        self.fill()
    }

    fn fill(&mut self) -> Option<Entry> {
        if self.len >= self.size {
            return None;
        }
        let entering = self.beyond().next()?;
        self.places[entering.at()].is_inside = true;
        self.len += 1;
        self.edge = Some(entering);
        if let Some(next) = self.list.newer(entering) {
            self.expect(next);
        }
        Some(entering)
    }
}
