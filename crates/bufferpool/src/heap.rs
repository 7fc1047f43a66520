//! A binary heap of entries whose keys may change, and that can be walked in order without being taken apart.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::directory::Entry;

/// What is compared: first the rank (a count, a time), then the age of the entry's place in its list.
pub(crate) type Key = (u64, u64);

const NOWHERE: u32 = u32::MAX;

/// Entries, the one with the smallest key first.
#[derive(Clone, Debug)]
pub(crate) struct Heap {
    heap: Vec<Entry>,
    /// By entry.
    keys: Vec<Key>,
    /// By entry: its place in the heap.
    places: Vec<u32>,
}

impl Heap {
    pub(crate) fn new(entries: usize) -> Self {
        Self { heap: Vec::with_capacity(entries), keys: vec![(0, 0); entries], places: vec![NOWHERE; entries] }
    }

    pub(crate) fn contains(&self, entry: Entry) -> bool {
        self.places[entry.at()] != NOWHERE
    }

    pub(crate) fn key(&self, entry: Entry) -> Key {
        self.keys[entry.at()]
    }

    pub(crate) fn first(&self) -> Option<Entry> {
        self.heap.first().copied()
    }

    /// Puts an entry in, or changes its key.
    pub(crate) fn set(&mut self, entry: Entry, key: Key) {
        self.keys[entry.at()] = key;
        if !self.contains(entry) {
            self.places[entry.at()] = self.heap.len() as u32;
            self.heap.push(entry);
        }
        self.settle(self.places[entry.at()] as usize);
    }

    pub(crate) fn remove(&mut self, entry: Entry) {
        let place = std::mem::replace(&mut self.places[entry.at()], NOWHERE);
        if place == NOWHERE {
            return;
        }
        let place = place as usize;
        self.heap.swap_remove(place);
        if let Some(moved) = self.heap.get(place) {
            self.places[moved.at()] = place as u32;
            self.settle(place);
        }
    }

    fn key_at(&self, place: usize) -> Key {
        self.keys[self.heap[place].at()]
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.places[self.heap[a].at()] = a as u32;
        self.places[self.heap[b].at()] = b as u32;
    }

    /// Moves what is at a place up or down to where it belongs.
    fn settle(&mut self, mut place: usize) {
        while place > 0 && self.key_at(place) < self.key_at((place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        loop {
            let children = (2 * place + 1)..self.heap.len().min(2 * place + 3);
            let Some(least) = children.min_by_key(|&child| self.key_at(child)) else { return };
            if self.key_at(least) >= self.key_at(place) {
                return;
            }
            self.swap(place, least);
            place = least;
        }
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
        for child in (2 * place + 1)..self.heap.heap.len().min(2 * place + 3) {
            self.open.push(Reverse((self.heap.key_at(child), child)));
        }
        Some(self.heap.heap[place])
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
