//! A binary heap of entries whose keys may change, and that can be walked in order without being taken apart.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::directory::Entry;

/// What is compared: first the rank (a count, a time), then the age of the entry's place in its list.
pub(crate) type Key = (u64, u64);

const NOWHERE: u32 = u32::MAX;
/// Children of a place: four of them are beside each other in memory, and the heap is half as high as with two.
const CHILDREN: usize = 4;

/// An entry with its key, so that comparing asks no other memory.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    entry: Entry,
}

/// Entries, the one with the smallest key first.
#[derive(Clone, Debug)]
pub(crate) struct Heap {
    heap: Vec<Node>,
    /// By entry: its place in the heap.
    places: Vec<u32>,
}

impl Heap {
    pub(crate) fn new(entries: usize) -> Self {
        Self { heap: Vec::with_capacity(entries), places: vec![NOWHERE; entries] }
    }

    #[inline]
    pub(crate) fn contains(&self, entry: Entry) -> bool {
        self.places[entry.at()] != NOWHERE
    }

    /// Of an entry that is in it.
    pub(crate) fn key(&self, entry: Entry) -> Key {
        self.key_at(self.places[entry.at()] as usize)
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<Entry> {
        self.heap.first().map(|node| node.entry)
    }

    /// Puts an entry in, or changes its key.
    pub(crate) fn set(&mut self, entry: Entry, key: Key) {
        let node = Node { key, entry };
        let mut place = self.places[entry.at()] as usize;
        if !self.contains(entry) {
            place = self.heap.len();
            self.heap.push(node);
        }
        self.settle(place, node);
    }

    pub(crate) fn remove(&mut self, entry: Entry) {
        let place = std::mem::replace(&mut self.places[entry.at()], NOWHERE) as usize;
        if place >= self.heap.len() {
            return;
        }
        self.heap.swap_remove(place);
        if let Some(&moved) = self.heap.get(place) {
            self.settle(place, moved);
        }
    }

    fn key_at(&self, place: usize) -> Key {
        self.heap[place].key
    }

    fn children(&self, place: usize) -> std::ops::Range<usize> {
        (CHILDREN * place + 1)..self.heap.len().min(CHILDREN * place + 1 + CHILDREN)
    }

    fn put(&mut self, place: usize, node: Node) {
        self.heap[place] = node;
        self.places[node.entry.at()] = place as u32;
    }

    /// Puts a node where it belongs, above or below a place that is free for it.
    fn settle(&mut self, mut place: usize, node: Node) {
        while place > 0 && node.key < self.key_at((place - 1) / CHILDREN) {
            let parent = (place - 1) / CHILDREN;
            self.put(place, self.heap[parent]);
            place = parent;
        }
        while let Some(least) = self.children(place).min_by_key(|&child| self.key_at(child)) {
            if self.key_at(least) >= node.key {
                break;
            }
            self.put(place, self.heap[least]);
            place = least;
        }
        self.put(place, node);
    }

    /// The entries in the order of their keys, n of them in n log n steps; `scratch` is room to work in.
    pub(crate) fn sorted<'a>(&'a self, scratch: &'a mut Scratch) -> Sorted<'a> {
        scratch.0.clear();
        if !self.heap.is_empty() {
            scratch.0.push(Reverse((self.key_at(0), 0)));
        }
        Sorted { heap: self, open: &mut scratch.0 }
    }
}

/// Room for [`Heap::sorted`], kept so that it is not allocated anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch(BinaryHeap<Reverse<(Key, usize)>>);

/// See [`Heap::sorted`].
pub(crate) struct Sorted<'a> {
    heap: &'a Heap,
    /// Places whose parent was given out.
    open: &'a mut BinaryHeap<Reverse<(Key, usize)>>,
}

impl Iterator for Sorted<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let Reverse((_, place)) = self.open.pop()?;
        for child in self.heap.children(place) {
            self.open.push(Reverse((self.heap.key_at(child), child)));
        }
        Some(self.heap.heap[place].entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_walked_in_the_order_of_the_keys_whatever_was_changed(
            changes in prop::collection::vec((0_u32..20, prop::option::of(0_u64..10)), 0..200),
        ) {
            let (mut heap, mut model) = (Heap::new(20), std::collections::BTreeMap::new());
            for (age, (entry, rank)) in (0..).zip(changes) {
                match rank {
                    Some(rank) => {
                        heap.set(Entry(entry), (rank, age));
                        model.insert(entry, (rank, age));
                    }
                    None => {
                        heap.remove(Entry(entry));
                        model.remove(&entry);
                    }
                }
                let mut expected: Vec<_> = model.iter().map(|(&entry, &key)| (key, entry)).collect();
                expected.sort_unstable();
                let mut scratch = Scratch::default();
                let sorted: Vec<_> = heap.sorted(&mut scratch).map(|entry| (heap.key(entry), entry.0)).collect();
                prop_assert_eq!(heap.first().map(|entry| entry.0), expected.first().map(|&(_, entry)| entry));
                prop_assert_eq!(sorted, expected);
            }
        }
    }
}
