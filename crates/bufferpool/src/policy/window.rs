//! The w pages at the end of an LRU list that fall first, kept up to date as the list changes.
//!
//! Each change of the list lets at most one page enter: the one above the window's edge.

use crate::directory::Entry;
use crate::lists::Lists;

/// An LRU list and its last pages.
pub(super) struct Window {
    list: Lists,
    /// By entry: whether it is among them.
    inside: Vec<bool>,
    /// By entry: when it came to the front, counted in moves.
    moved: Vec<u64>,
    moves: u64,
    size: usize,
    len: usize,
    /// The newest of them.
    edge: Option<Entry>,
}

impl Window {
    /// The last `size` of a list of up to `entries`.
    pub(super) fn new(entries: usize, size: usize) -> Self {
        let (inside, moved) = (vec![false; entries], vec![0; entries]);
        // 2^63: pages at the end count down from here, those at the front up.
        Self { list: Lists::new(entries, 1), inside, moved, moves: 1 << 63, size, len: 0, edge: None }
    }

    pub(super) fn contains(&self, entry: Entry) -> bool {
        self.inside[entry.at()]
    }

    /// Whether it has no room for any page.
    pub(super) fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// The larger, the newer.
    pub(super) fn age_key(&self, entry: Entry) -> u64 {
        self.moved[entry.at()]
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

    /// Puts a page at the front; the page that enters the window, if any.
    pub(super) fn push_front(&mut self, entry: Entry) -> Option<Entry> {
        self.moves += 1;
        self.moved[entry.at()] = self.moves;
        self.list.push_front(0, entry);
        self.fill()
    }

    /// Puts a page where it falls next; it enters the window, which another page may leave.
    pub(super) fn push_back(&mut self, entry: Entry) -> (bool, Option<Entry>) {
        let oldest = self.list.back(0).map_or(self.moves, |oldest| self.moved[oldest.at()]);
        self.moved[entry.at()] = oldest - 1;
        self.list.push_back(0, entry);
        if self.size == 0 {
            return (false, None);
        }
        self.inside[entry.at()] = true;
        self.len += 1;
        self.edge = self.edge.or(Some(entry));
        let over = self.edge.filter(|_| self.len > self.size);
        if let Some(leaving) = over {
            self.inside[leaving.at()] = false;
            self.len -= 1;
            self.edge = self.list.older(leaving);
        }
        (true, over)
    }

    /// Takes a page out; the page that enters the window, if any.
    pub(super) fn remove(&mut self, entry: Entry) -> Option<Entry> {
        if std::mem::take(&mut self.inside[entry.at()]) {
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
        self.inside[entering.at()] = true;
        self.len += 1;
        self.edge = Some(entering);
        Some(entering)
    }
}
