//! The pages of one file by their index, with the marks that writing back looks for.
//!
//! Linux 6.18: `lib/xarray.c`, `include/linux/xarray.h`: nodes of 64 slots with a bitmap for each mark; a slot holds a
//! folio or a shadow entry of one that was evicted (`mm/workingset.c`). Here the nodes are found in a table by their
//! number instead of through a tree, or by a hash where a file has few of them; the numbers of those that exist, and of
//! those with a mark, are kept in order beside them, as a tree's upper nodes have the marks of all below.

use std::collections::{BTreeSet, HashMap, VecDeque};

use rustc_hash::FxBuildHasher;

const SLOTS: u64 = 64;
const SHADOW: u32 = 1 << 31;

/// A folio's number in the page cache.
pub(crate) type FolioId = u32;

/// What is at an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Empty,
    Folio(FolioId),
    /// Evicted; the low bits of the eviction counter at that time.
    Shadow(u32),
}

/// `PAGECACHE_TAG_DIRTY` and `PAGECACHE_TAG_WRITEBACK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Dirty = 0,
    Writeback = 1,
}

#[derive(Debug)]
struct Node {
    /// 0 for empty, a folio's number plus 1, or a shadow with the highest bit.
    slots: [u32; SLOTS as usize],
    used: u32,
    marks: [u64; 2],
}

impl Node {
    #[inline]
    fn has_folio(&self, slot: u64) -> bool {
        let value = self.slots[slot as usize];
        value != 0 && value & SHADOW == 0
    }
}

/// What a slot holds.
#[inline]
fn entry_of(slot: u32) -> Entry {
    match slot {
        0 => Entry::Empty,
        shadow if shadow & SHADOW != 0 => Entry::Shadow(shadow & !SHADOW),
        folio => Entry::Folio(folio - 1),
    }
}

/// `xas_load`: the slot of its node that holds a page. In a folio of several pages that is the first one's, and
/// `xas_next` and `xas_prev` go on from there while they count from the page: they lag until they leave the node.
fn head_slot(node: Option<&Node>, index: u64) -> u64 {
    let slot = index % SLOTS;
    let Some(node) = node.filter(|node| node.has_folio(slot)) else { return slot };
    let folio = node.slots[slot as usize];
    (0..slot).rev().take_while(|&at| node.slots[at as usize] == folio).last().unwrap_or(slot)
}

/// Numbers in order. Marks come and go with each write: behind the last one, from the first one on, or one alone; so a
/// queue that keeps its memory takes half the time of a tree.
#[derive(Debug, Default)]
struct Numbers(VecDeque<u64>);

impl Numbers {
    fn insert(&mut self, number: u64) {
        if let Err(at) = self.0.binary_search(&number) {
            self.0.insert(at, number);
        }
    }

    fn remove(&mut self, number: u64) {
        if let Ok(at) = self.0.binary_search(&number) {
            self.0.remove(at);
        }
    }

    fn from(&self, first: u64) -> impl Iterator<Item = u64> {
        let at = self.0.partition_point(|&number| number < first);
        self.0.range(at..).copied()
    }
}

/// Nodes by their number.
#[derive(Debug, Default)]
struct Nodes {
    /// Of the first pages.
    table: Vec<Option<Box<Node>>>,
    /// Others.
    far: HashMap<u64, Box<Node>, FxBuildHasher>,
    count: u64,
}

impl Nodes {
    /// The table has this many places in any case: 4 KiB, the pages of the first 128 MiB of a file.
    const PLACES: u64 = 512;
    /// Further ones only where one in so many is used, so that a page far behind the others costs no memory.
    const PLACES_PER_NODE: u64 = 16;

    #[inline]
    fn get(&self, number: u64) -> Option<&Node> {
        match self.table.get(number as usize) {
            Some(Some(node)) => Some(node),
            _ if self.far.is_empty() => None,
            _ => self.far.get(&number).map(Box::as_ref),
        }
    }

    #[inline]
    fn get_mut(&mut self, number: u64) -> Option<&mut Node> {
        match self.table.get_mut(number as usize) {
            Some(Some(node)) => Some(node),
            _ if self.far.is_empty() => None,
            _ => self.far.get_mut(&number).map(Box::as_mut),
        }
    }

    /// Makes a node that does not exist yet.
    fn insert(&mut self, number: u64) {
        let node = Box::new(Node { slots: [0; SLOTS as usize], used: 0, marks: [0; 2] });
        self.count += 1;
        if number < Self::PLACES.max(self.count.saturating_mul(Self::PLACES_PER_NODE)) {
            let at = number as usize;
            if self.table.len() <= at {
                self.table.resize_with(at + 1, || None);
            }
            self.table[at] = Some(node);
        } else {
            self.far.insert(number, node);
        }
    }

    fn remove(&mut self, number: u64) {
        let node = self.table.get_mut(number as usize).and_then(Option::take);
        if node.or_else(|| self.far.remove(&number)).is_some() {
            self.count -= 1;
        }
        if self.count == 0 {
            self.table = Vec::new();
        }
    }
}

/// One file's pages.
#[derive(Debug, Default)]
pub(crate) struct XArray {
    nodes: Nodes,
    numbers: BTreeSet<u64>,
    /// Numbers of the nodes that have a mark.
    with_mark: [Numbers; 2],
    marked: [u64; 2],
}

impl XArray {
    #[inline]
    pub(crate) fn get(&self, index: u64) -> Entry {
        let Some(node) = self.nodes.get(index / SLOTS) else { return Entry::Empty };
        entry_of(node.slots[(index % SLOTS) as usize])
    }

    #[inline]
    pub(crate) fn folio(&self, index: u64) -> Option<FolioId> {
        if let Entry::Folio(folio) = self.get(index) { Some(folio) } else { None }
    }

    /// Puts an entry at an index; marks stay what they are.
    pub(crate) fn set(&mut self, index: u64, entry: Entry) {
        self.replace(index, entry);
    }

    /// The same, and gives the entry before.
    pub(crate) fn replace(&mut self, index: u64, entry: Entry) -> Entry {
        let value = match entry {
            Entry::Empty => 0,
            Entry::Folio(folio) => folio + 1,
            Entry::Shadow(counter) => SHADOW | counter & !SHADOW,
        };
        if self.nodes.get(index / SLOTS).is_none() {
            if value == 0 {
                return Entry::Empty;
            }
            self.numbers.insert(index / SLOTS);
            self.nodes.insert(index / SLOTS);
        }
        let Some(node) = self.nodes.get_mut(index / SLOTS) else { return Entry::Empty };
        let slot = &mut node.slots[(index % SLOTS) as usize];
        node.used = node.used + u32::from(value != 0) - u32::from(*slot != 0);
        let before = std::mem::replace(slot, value);
        if node.used == 0 {
            let marks = node.marks;
            self.forget_node(index / SLOTS, marks);
        }
        entry_of(before)
    }

    fn forget_node(&mut self, number: u64, marks: [u64; 2]) {
        self.nodes.remove(number);
        self.numbers.remove(&number);
        for (numbers, marks) in self.with_mark.iter_mut().zip(marks) {
            if marks != 0 {
                numbers.remove(number);
            }
        }
    }

    /// Sets or takes away a mark; whether that changed anything.
    #[inline]
    pub(crate) fn mark(&mut self, mark: Mark, index: u64, on: bool) -> bool {
        let Some(node) = self.nodes.get_mut(index / SLOTS) else { return false };
        let bit = 1 << (index % SLOTS);
        let marks = &mut node.marks[mark as usize];
        let changes = (*marks & bit != 0) != on;
        if changes {
            let before = std::mem::replace(marks, *marks ^ bit);
            if before == 0 {
                self.with_mark[mark as usize].insert(index / SLOTS);
            } else if before == bit {
                self.with_mark[mark as usize].remove(index / SLOTS);
            }
            let count = &mut self.marked[mark as usize];
            *count = if on { *count + 1 } else { *count - 1 };
        }
        changes
    }

    #[inline]
    pub(crate) fn is_marked(&self, mark: Mark, index: u64) -> bool {
        self.nodes.get(index / SLOTS).is_some_and(|node| node.marks[mark as usize] >> (index % SLOTS) & 1 != 0)
    }

    /// How many pages have a mark.
    #[inline]
    pub(crate) fn marked(&self, mark: Mark) -> u64 {
        self.marked[mark as usize]
    }

    /// The first page at or behind `from` that has a mark.
    #[inline]
    pub(crate) fn next_marked(&self, mark: Mark, from: u64) -> Option<u64> {
        if self.marked[mark as usize] == 0 {
            return None;
        }
        for number in self.with_mark[mark as usize].from(from / SLOTS) {
            let skip = if number == from / SLOTS { from % SLOTS } else { 0 };
            let marks = self.nodes.get(number).map_or(0, |node| node.marks[mark as usize] >> skip << skip);
            if marks != 0 {
                return Some(number * SLOTS + u64::from(marks.trailing_zeros()));
            }
        }
        None
    }

    /// The first index at or behind `from` that holds a folio.
    pub(crate) fn next_folio(&self, from: u64) -> Option<(u64, FolioId)> {
        for &number in self.numbers.range(from / SLOTS..) {
            let Some(node) = self.nodes.get(number) else { continue };
            let skip = if number == from / SLOTS { from % SLOTS } else { 0 };
            let slots = node.slots.iter().enumerate().skip(skip as usize);
            for (slot, &value) in slots {
                if value != 0 && value & SHADOW == 0 {
                    return Some((number * SLOTS + slot as u64, value - 1));
                }
            }
        }
        None
    }

    /// `page_cache_next_miss`: the first index from `from` on without a folio; `from + most` where there is none. It is
    /// too large by as much as `from` lies behind the start of its folio, as Linux's is.
    pub(crate) fn next_miss(&self, from: u64, most: u64) -> u64 {
        let mut node = self.nodes.get(from / SLOTS);
        let mut slot = head_slot(node, from);
        for index in from..from.saturating_add(most) {
            if !node.is_some_and(|node| node.has_folio(slot)) {
                return index;
            }
            slot += 1;
            if slot == SLOTS {
                slot = (index + 1) % SLOTS;
                node = self.nodes.get((index + 1) / SLOTS);
            }
        }
        from.saturating_add(most)
    }

    /// `page_cache_prev_miss`: going down from `from`, the first index without a folio, with the lag of [`head_slot`].
    /// `None` where the file is cached from its beginning.
    pub(crate) fn prev_miss(&self, from: u64, most: u64) -> Option<u64> {
        let mut number = from / SLOTS;
        let mut node = self.nodes.get(number);
        let mut slot = head_slot(node, from);
        let mut index = from;
        for _ in 0..most {
            if !node.is_some_and(|node| node.has_folio(slot)) {
                return Some(index);
            }
            index = index.checked_sub(1)?;
            if slot > 0 {
                slot -= 1;
            } else if number == 0 {
                // There is no node before the first one.
                return Some(index);
            } else {
                number -= 1;
                node = self.nodes.get(number);
                slot = index % SLOTS;
            }
        }
        Some(index)
    }

    /// Forgets shadow entries at or behind `from`.
    pub(crate) fn forget_shadows(&mut self, from: u64) {
        let behind: Vec<u64> = self.numbers.range(from / SLOTS..).copied().collect();
        for number in behind {
            let Some(node) = self.nodes.get_mut(number) else { continue };
            let skip = if number == from / SLOTS { from % SLOTS } else { 0 };
            for value in node.slots.iter_mut().skip(skip as usize).filter(|value| **value & SHADOW != 0) {
                *value = 0;
                node.used -= 1;
            }
            if node.used == 0 {
                let marks = node.marks;
                self.forget_node(number, marks);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_in_order_and_counted_once() {
        let mut pages = XArray::default();
        for index in [3, 64, 200] {
            pages.set(index, Entry::Folio(index as u32));
            assert!(pages.mark(Mark::Dirty, index, true));
            assert!(!pages.mark(Mark::Dirty, index, true));
        }
        assert_eq!(pages.next_marked(Mark::Dirty, 0), Some(3));
        assert_eq!(pages.next_marked(Mark::Dirty, 4), Some(64));
        assert_eq!(pages.next_marked(Mark::Dirty, 65), Some(200));
        assert_eq!(pages.next_marked(Mark::Dirty, 201), None);
        assert_eq!(pages.marked(Mark::Dirty), 3);
        assert_eq!(pages.marked(Mark::Writeback), 0);
    }

    #[test]
    fn misses_count_shadows_as_missing() {
        let mut pages = XArray::default();
        (0..10).for_each(|index| pages.set(index, Entry::Folio(index as u32)));
        assert_eq!(pages.prev_miss(9, 32), None);
        pages.set(4, Entry::Shadow(7));
        assert_eq!(pages.prev_miss(9, 32), Some(4));
        assert_eq!(pages.prev_miss(9, 3), Some(6));
        assert_eq!(pages.next_miss(0, 32), 4);
        assert_eq!(pages.get(4), Entry::Shadow(7));
        pages.forget_shadows(0);
        assert_eq!(pages.get(4), Entry::Empty);
    }

    /// Traced (`events/readahead`): two streams in one file, folios of 4, 8 and 4 pages from page 0 on.
    #[test]
    fn misses_lag_behind_in_folios_of_several_pages() {
        let mut pages = XArray::default();
        (0..4).for_each(|index| pages.set(index, Entry::Folio(index as u32)));
        for (folio, range) in [(10, 4..8), (11, 8..12), (12, 12..16)] {
            range.for_each(|index| pages.set(index, Entry::Folio(folio)));
        }
        assert_eq!(pages.next_miss(13, 32), 17);
        assert_eq!(pages.prev_miss(15, 32), Some(2));
    }

    #[test]
    fn an_empty_array_holds_no_nodes() {
        let mut pages = XArray::default();
        pages.set(5, Entry::Folio(1));
        pages.set(5, Entry::Empty);
        pages.set(5, Entry::Empty);
        assert_eq!((pages.nodes.count, pages.nodes.table.len()), (0, 0));
    }

    #[test]
    fn a_page_far_behind_the_others_costs_no_table() {
        let mut pages = XArray::default();
        let far = 1 << 40;
        for (folio, index) in [far, 3, far + 64, Nodes::PLACES * SLOTS, 5000].into_iter().enumerate() {
            pages.set(index, Entry::Folio(folio as u32));
        }
        assert!(pages.nodes.table.len() as u64 <= Nodes::PLACES && pages.nodes.far.len() == 3);
        // A file that fills up has its later nodes in the table, and finds those that came before.
        (0..2000).for_each(|number| pages.set(number * SLOTS, Entry::Folio(7)));
        assert_eq!(pages.nodes.table.len(), 2000);
        assert_eq!([far, far + 64, 5000].map(|index| pages.folio(index)), [Some(0), Some(2), Some(4)]);
        assert_eq!(pages.next_folio(Nodes::PLACES * SLOTS), Some((Nodes::PLACES * SLOTS, 7)));
        for index in [far, far + 64] {
            pages.set(index, Entry::Empty);
            assert_eq!(pages.folio(index), None);
        }
        assert_eq!(pages.next_folio(2000 * SLOTS), None);
    }
}
