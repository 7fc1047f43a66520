//! Doubly linked lists of entries in one array: an entry is in at most one of them, and nothing is allocated after the
//! start.
//!
//! ```text
//!   front (newest) ◄─ newer ─ entry ─ older ─▶ back (oldest, is evicted first)
//! ```
//!
//! Each list is a ring through a node of its own behind those of the entries, so that taking out and putting in have no
//! branches.

use crate::directory::{Directory, Entry};
use crate::memory::prefetch;

/// Neighbours of an entry.
#[derive(Clone, Copy, Debug)]
struct Node {
    newer: u32,
    older: u32,
}

/// Several lists over the same entries.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    /// One for each entry, then one for each list.
    nodes: Vec<Node>,
    entries: u32,
    lengths: Vec<u32>,
}

impl Lists {
    /// `lists` empty lists over `entries` entries.
    pub(crate) fn new(entries: usize, lists: usize) -> Self {
        let entries = entries as u32;
        let nodes = (0..entries + lists as u32).map(|node| Node { newer: node, older: node }).collect();
        Self { nodes, entries, lengths: vec![0; lists] }
    }

    #[inline]
    fn ring(&self, list: usize) -> u32 {
        self.entries + list as u32
    }

    #[inline]
    fn entry(&self, node: u32) -> Option<Entry> {
        (node < self.entries).then_some(Entry(node))
    }

    #[inline]
    fn link(&mut self, newer: u32, older: u32) {
        self.nodes[newer as usize].older = older;
        self.nodes[older as usize].newer = newer;
    }

    #[inline]
    fn insert(&mut self, newer: u32, entry: Entry, older: u32) {
        self.link(newer, entry.0);
        self.link(entry.0, older);
    }

    /// How many entries a list has.
    #[inline]
    pub(crate) fn len(&self, list: usize) -> usize {
        self.lengths[list] as usize
    }

    /// Puts an entry that is in no list at the front.
    #[inline]
    pub(crate) fn push_front(&mut self, list: usize, entry: Entry) {
        let ring = self.ring(list);
        self.insert(ring, entry, self.nodes[ring as usize].older);
        self.lengths[list] += 1;
    }

    /// Puts an entry that is in no list at the back.
    #[inline]
    pub(crate) fn push_back(&mut self, list: usize, entry: Entry) {
        let ring = self.ring(list);
        self.insert(self.nodes[ring as usize].newer, entry, ring);
        self.lengths[list] += 1;
    }

    /// Puts an entry that is in no list on the newer side of one of this list, or at its back.
    pub(crate) fn push_after(&mut self, list: usize, entry: Entry, older: Option<Entry>) {
        match older {
            None => self.push_back(list, entry),
            Some(older) => {
                self.insert(self.nodes[older.at()].newer, entry, older.0);
                self.lengths[list] += 1;
            }
        }
    }

    /// Takes an entry out of the list that it is in.
    #[inline]
    pub(crate) fn remove(&mut self, list: usize, entry: Entry) {
        let Node { newer, older } = self.nodes[entry.at()];
        self.link(newer, older);
        self.lengths[list] -= 1;
    }

    /// Moves an entry of a list to its front.
    #[inline]
    pub(crate) fn move_to_front(&mut self, list: usize, entry: Entry) {
        let Node { newer, older } = self.nodes[entry.at()];
        self.link(newer, older);
        let ring = self.ring(list);
        self.insert(ring, entry, self.nodes[ring as usize].older);
    }

    /// Puts all of `from` at the front of `to`, in their order.
    pub(crate) fn append(&mut self, from: usize, to: usize) {
        if self.lengths[from] == 0 {
            return;
        }
        let (source, ring) = (self.ring(from), self.ring(to));
        let Node { newer: oldest, older: newest } = self.nodes[source as usize];
        let front = self.nodes[ring as usize].older;
        self.link(ring, newest);
        self.link(oldest, front);
        self.link(source, source);
        self.lengths[to] += self.lengths[from];
        self.lengths[from] = 0;
    }

    /// The oldest entry.
    #[inline]
    pub(crate) fn back(&self, list: usize) -> Option<Entry> {
        self.entry(self.nodes[self.ring(list) as usize].newer)
    }

    /// The oldest entry whose page nobody holds. The one behind it will be requested soon, and is named to the
    /// processor.
    #[inline]
    pub(crate) fn oldest(&self, list: usize, pages: &Directory) -> Option<Entry> {
        let oldest = self.iter(list).find(|&entry| pages.is_free(entry))?;
        let next = Entry(self.nodes[oldest.at()].newer);
        self.expect(next);
        pages.expect_entry(next);
        Some(oldest)
    }

    /// Says that an entry is going to be moved.
    #[inline]
    pub(crate) fn expect(&self, entry: Entry) {
        prefetch(&self.nodes, entry.at());
    }

    /// The newest entry.
    pub(crate) fn front(&self, list: usize) -> Option<Entry> {
        self.entry(self.nodes[self.ring(list) as usize].older)
    }

    /// The neighbour on the way to the front.
    #[inline]
    pub(crate) fn newer(&self, entry: Entry) -> Option<Entry> {
        self.entry(self.nodes[entry.at()].newer)
    }

    /// The neighbour on the way to the back.
    #[inline]
    pub(crate) fn older(&self, entry: Entry) -> Option<Entry> {
        self.entry(self.nodes[entry.at()].older)
    }

    /// From the back to the front.
    #[inline]
    pub(crate) fn iter(&self, list: usize) -> impl Iterator<Item = Entry> + '_ {
        std::iter::successors(self.back(list), |&entry| self.newer(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(lists: &Lists, list: usize) -> Vec<u32> {
        lists.iter(list).map(|entry| entry.0).collect()
    }

    #[test]
    fn entries_go_in_at_both_ends_and_out_anywhere() {
        let mut lists = Lists::new(6, 2);
        [0, 1, 2].into_iter().for_each(|entry| lists.push_front(0, Entry(entry)));
        lists.push_back(0, Entry(3));
        lists.push_after(0, Entry(4), Some(Entry(0)));
        assert_eq!((order(&lists, 0), lists.len(0)), (vec![3, 0, 4, 1, 2], 5));
        lists.move_to_front(0, Entry(0));
        lists.remove(0, Entry(1));
        assert_eq!((order(&lists, 0), lists.len(0)), (vec![3, 4, 2, 0], 4));
        assert_eq!((lists.front(0), lists.back(0)), (Some(Entry(0)), Some(Entry(3))));
        assert_eq!((lists.older(Entry(3)), lists.newer(Entry(0)), lists.back(1)), (None, None, None));
    }

    #[test]
    fn a_list_is_put_before_another_one_whole() {
        let mut lists = Lists::new(4, 2);
        lists.append(0, 1);
        [0, 1].into_iter().for_each(|entry| lists.push_front(0, Entry(entry)));
        [2, 3].into_iter().for_each(|entry| lists.push_front(1, Entry(entry)));
        lists.append(0, 1);
        assert_eq!((order(&lists, 0), order(&lists, 1)), (vec![], vec![2, 3, 0, 1]));
        assert_eq!((lists.len(0), lists.len(1)), (0, 4));
    }
}
