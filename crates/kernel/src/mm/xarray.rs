//! The pages of one file by their index, with the marks that writing back looks for.
//!
//! Linux 6.18: `lib/xarray.c`, `include/linux/xarray.h`: nodes of 64 slots with a bitmap for each mark; a slot holds a
//! folio or a shadow entry of one that was evicted (`mm/workingset.c`). Here the nodes are in one ordered map instead
//! of a tree of nodes.

use std::collections::BTreeMap;

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

/// One file's pages.
#[derive(Debug, Default)]
pub(crate) struct XArray {
    nodes: BTreeMap<u64, Box<Node>>,
    marked: [u64; 2],
}

impl XArray {
    pub(crate) fn get(&self, index: u64) -> Entry {
        let Some(node) = self.nodes.get(&(index / SLOTS)) else { return Entry::Empty };
        match node.slots[(index % SLOTS) as usize] {
            0 => Entry::Empty,
            shadow if shadow & SHADOW != 0 => Entry::Shadow(shadow & !SHADOW),
            folio => Entry::Folio(folio - 1),
        }
    }

    pub(crate) fn folio(&self, index: u64) -> Option<FolioId> {
        if let Entry::Folio(folio) = self.get(index) { Some(folio) } else { None }
    }

    /// Puts an entry at an index; marks stay what they are.
    pub(crate) fn set(&mut self, index: u64, entry: Entry) {
        let value = match entry {
            Entry::Empty => 0,
            Entry::Folio(folio) => folio + 1,
            Entry::Shadow(counter) => SHADOW | counter & !SHADOW,
        };
        if value == 0 && !self.nodes.contains_key(&(index / SLOTS)) {
            return;
        }
        let empty = || Box::new(Node { slots: [0; SLOTS as usize], used: 0, marks: [0; 2] });
        let node = self.nodes.entry(index / SLOTS).or_insert_with(empty);
        let slot = &mut node.slots[(index % SLOTS) as usize];
        node.used = node.used + u32::from(value != 0) - u32::from(*slot != 0);
        *slot = value;
        if node.used == 0 {
            self.nodes.remove(&(index / SLOTS));
        }
    }

    /// Sets or takes away a mark; whether that changed anything.
    pub(crate) fn mark(&mut self, mark: Mark, index: u64, on: bool) -> bool {
        let Some(node) = self.nodes.get_mut(&(index / SLOTS)) else { return false };
        let bit = 1 << (index % SLOTS);
        let marks = &mut node.marks[mark as usize];
        let changes = (*marks & bit != 0) != on;
        if changes {
            *marks ^= bit;
            let count = &mut self.marked[mark as usize];
            *count = if on { *count + 1 } else { *count - 1 };
        }
        changes
    }

    pub(crate) fn is_marked(&self, mark: Mark, index: u64) -> bool {
        self.nodes.get(&(index / SLOTS)).is_some_and(|node| node.marks[mark as usize] >> (index % SLOTS) & 1 != 0)
    }

    /// How many pages have a mark.
    pub(crate) fn marked(&self, mark: Mark) -> u64 {
        self.marked[mark as usize]
    }

    /// The first page at or behind `from` that has a mark.
    pub(crate) fn next_marked(&self, mark: Mark, from: u64) -> Option<u64> {
        if self.marked[mark as usize] == 0 {
            return None;
        }
        for (&number, node) in self.nodes.range(from / SLOTS..) {
            let skip = if number == from / SLOTS { from % SLOTS } else { 0 };
            let marks = node.marks[mark as usize] >> skip << skip;
            if marks != 0 {
                return Some(number * SLOTS + u64::from(marks.trailing_zeros()));
            }
        }
        None
    }

    /// The first index at or behind `from` that holds a folio.
    pub(crate) fn next_folio(&self, from: u64) -> Option<(u64, FolioId)> {
        for (&number, node) in self.nodes.range(from / SLOTS..) {
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

    /// `xas_load`: the slot that holds a page. In a folio of several pages that is the first one's, and `xas_next` and
    /// `xas_prev` go on from there while they count from the page: until they leave the node they lag behind.
    fn head_slot(&self, index: u64) -> u64 {
        let Some(folio) = self.folio(index) else { return index };
        let first = index / SLOTS * SLOTS;
        (first..index).rev().take_while(|&at| self.folio(at) == Some(folio)).last().unwrap_or(index)
    }

    /// `page_cache_next_miss`: the first index from `from` on without a folio; `from + most` where there is none. It is
    /// too large by as much as `from` lies behind the start of its folio, as Linux's is.
    pub(crate) fn next_miss(&self, from: u64, most: u64) -> u64 {
        let mut slot = self.head_slot(from);
        for index in from..from.saturating_add(most) {
            if self.folio(slot).is_none() {
                return index;
            }
            slot = if slot % SLOTS == SLOTS - 1 { index + 1 } else { slot + 1 };
        }
        from.saturating_add(most)
    }

    /// `page_cache_prev_miss`: going down from `from`, the first index without a folio, with the lag of
    /// [`Self::head_slot`]. `None` where the file is cached from its beginning.
    pub(crate) fn prev_miss(&self, from: u64, most: u64) -> Option<u64> {
        let mut slot = self.head_slot(from);
        let mut index = from;
        for _ in 0..most {
            if self.folio(slot).is_none() {
                return Some(index);
            }
            index = index.checked_sub(1)?;
            if !slot.is_multiple_of(SLOTS) {
                slot -= 1;
            } else if slot == 0 {
                // There is no node before the first one.
                return Some(index);
            } else {
                slot = (slot / SLOTS - 1) * SLOTS + index % SLOTS;
            }
        }
        Some(index)
    }

    /// Forgets shadow entries at or behind `from`.
    pub(crate) fn forget_shadows(&mut self, from: u64) {
        self.nodes.retain(|&number, node| {
            for slot in 0..SLOTS {
                let value = &mut node.slots[slot as usize];
                if number * SLOTS + slot >= from && *value & SHADOW != 0 {
                    *value = 0;
                    node.used -= 1;
                }
            }
            node.used > 0
        });
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
        assert!(pages.nodes.is_empty());
    }
}
