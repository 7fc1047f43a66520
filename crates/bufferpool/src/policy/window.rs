//! The w pages at the end of an LRU list that are evicted first, kept up to date as the list changes.
//!
//! The list is a [`Timeline`], so that the window is everything below a number: its edge. Each change of the list lets
//! at most one page enter, the next one above the edge. Clean pages are the marked ones.

use crate::directory::{Directory, Entry};
use crate::timeline::Timeline;

/// An LRU list and its last pages.
pub(super) struct Window {
    list: Timeline,
    size: usize,
    len: usize,
    /// Pages with lower numbers are in the window.
    edge: u32,
}

impl Window {
    /// The last `size` of a list of up to `entries`.
    pub(super) fn new(entries: usize, size: usize) -> Self {
        Self { list: Timeline::new(entries), size, len: 0, edge: 0 }
    }

    /// Says that a page is going to be moved.
    #[inline]
    pub(super) fn expect(&self, entry: Entry) {
        self.list.expect(entry);
    }

    /// How many numbers there are.
    pub(super) fn numbers(&self) -> usize {
        self.list.numbers()
    }

    /// Makes room for one page more; says whether all pages have other numbers now.
    #[inline]
    pub(super) fn make_room(&mut self) -> bool {
        let is_full = !self.list.has_room();
        if is_full {
            let last = self.list.last_present_before(self.edge).map(|number| self.list.entry(number));
            self.list.number_anew();
            self.edge = last.map_or(0, |last| self.list.number(last) + 1);
        }
        is_full
    }

    #[inline]
    pub(super) fn contains(&self, entry: Entry) -> bool {
        self.list.number(entry) < self.edge
    }

    /// Whether it has no space for any page.
    pub(super) fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// The larger, the newer; until room is made for another page.
    #[inline]
    pub(super) fn number(&self, entry: Entry) -> u32 {
        self.list.number(entry)
    }

    /// Whose number it is.
    #[inline]
    pub(super) fn entry(&self, number: u32) -> Entry {
        self.list.entry(number)
    }

    /// Who has a number or had it last.
    #[inline]
    pub(super) fn last_entry(&self, number: u32) -> Entry {
        self.list.last_entry(number)
    }

    /// Whether a dirty page of the window has that number.
    #[inline]
    pub(super) fn is_dirty_inside(&self, number: u32) -> bool {
        number < self.edge && self.list.is_unmarked(number)
    }

    /// The page at the end of the list that nobody holds.
    #[inline]
    pub(super) fn oldest(&mut self, pages: &Directory) -> Option<Entry> {
        self.list.oldest(pages)
    }

    /// From the end of the list.
    pub(super) fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        self.list.iter()
    }

    /// Pages of the window, that at the end of the list first.
    pub(super) fn inside(&self) -> impl Iterator<Item = Entry> + '_ {
        self.list.iter().take(self.len)
    }

    /// Pages beyond the window, the next one to enter first.
    pub(super) fn beyond(&self) -> impl Iterator<Item = Entry> + '_ {
        self.list.iter_from(self.edge)
    }

    /// The oldest clean page of the window that nobody holds.
    #[inline]
    pub(super) fn oldest_clean(&mut self, pages: &Directory) -> Option<Entry> {
        self.list.oldest_marked(self.edge, pages)
    }

    /// Moves a page to the front, for which there is room; it is dirty now if it was or if it is written. Gives the
    /// page that enters the window, if any.
    #[inline]
    pub(super) fn move_to_front(&mut self, entry: Entry, is_write: bool) -> Option<Entry> {
        let was_inside = self.contains(entry);
        self.list.move_to_newest(entry, !is_write);
        if !was_inside {
            return None;
        }
        self.len -= 1;
        self.fill()
    }

    /// Puts a page at the front, for which there is room; the page that enters the window, if any.
    #[inline]
    pub(super) fn push_front(&mut self, entry: Entry, is_dirty: bool) -> Option<Entry> {
        self.list.push_newest(entry, !is_dirty);
        self.fill()
    }

    /// Puts a clean page where it is evicted next, for which there is room; it enters the window, which another page
    /// may leave.
    pub(super) fn push_back(&mut self, entry: Entry) {
        self.list.push_oldest(entry, true);
        if self.size == 0 {
            return;
        }
        self.len += 1;
        self.edge = self.edge.max(self.list.number(entry) + 1);
        if self.len > self.size
            && let Some(leaving) = self.list.last_present_before(self.edge)
        {
            self.len -= 1;
            self.edge = leaving;
        }
    }

    /// Takes a page out; the page that enters the window, if any.
    #[inline]
    pub(super) fn remove(&mut self, entry: Entry) -> Option<Entry> {
        self.len -= usize::from(self.contains(entry));
        self.list.remove(entry);
        self.fill()
    }

    /// A dirty page has become clean.
    pub(super) fn written(&mut self, entry: Entry) {
        self.list.mark(entry, true);
    }

    #[inline]
    fn fill(&mut self) -> Option<Entry> {
        if self.len >= self.size {
            return None;
        }
        let entering = self.list.next_present(self.edge)?;
        self.len += 1;
        self.edge = entering + 1;
        Some(self.list.entry(entering))
    }
}
