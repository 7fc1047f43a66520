//! A table with a number for each logical page, most of which nobody has ever named.
//!
//! A drive of 500 GB has 60 million logical pages and several tables of them. A run of a few hundred thousand requests
//! touches them here and there; in plain arrays every one of these touches would bring 4 KiB of memory to life, which
//! costs more than the simulation of the request. Here the numbers live in *leaves* of one cache line, which are made
//! one after the other as they are needed:
//!
//! ```text
//!   leaf_of[page ÷ 16]  = number of the leaf, 0 for the one that is all zeros
//!   leaves[leaf]        = 16 numbers of four bytes, a cache line
//! ```
//!
//! That is a page table of two levels. A table that is small, or whose larger part is named at once, as by a fill, is a
//! plain array instead: the way through the upper level would cost more than it saves.

use crate::memory::{Numbers, Touched};
use crate::state::{Carried, Carrier, Layout, State};

/// Numbers of a table that is always a plain array: 16 MiB of them.
const SMALL: usize = 4 << 20;

/// Numbers of a leaf.
const LEAF: usize = 16;
const SHIFT: u32 = LEAF.trailing_zeros();

/// A number, at first 0, for each logical page.
pub(crate) struct SparseTable {
    /// Absent where the leaves are an array of all pages.
    leaf_of: Option<Numbers>,
    pages: usize,
    /// One leaf behind the other, with room for those of all pages.
    leaves: Numbers,
    /// Leaves that have been made, the one that is all zeros among them.
    made: u32,
}

impl SparseTable {
    /// Zeros for so many pages.
    pub(crate) fn new(pages: usize) -> Self {
        Self::of_kind(pages, pages > SMALL)
    }

    fn of_kind(pages: usize, is_sparse: bool) -> Self {
        let leaf_of = is_sparse.then(|| Numbers::new(pages.div_ceil(LEAF), Touched::Densely));
        let room = if is_sparse { pages.next_multiple_of(LEAF) + LEAF } else { pages };
        Self { leaf_of, pages, leaves: Numbers::new(room, Touched::Densely), made: 1 }
    }

    /// The number of a page; 0 for one behind the table.
    #[inline]
    pub(crate) fn get(&self, page: u32) -> u32 {
        self.leaves.get(self.place(page))
    }

    /// Whether what nobody names takes no memory.
    pub(crate) fn is_sparse(&self) -> bool {
        self.leaf_of.is_some()
    }

    /// Numbers of the table.
    pub(crate) fn length(&self) -> u64 {
        self.pages as u64
    }

    /// Whether a page is in the table.
    pub(crate) fn covers(&self, page: u32) -> bool {
        (page as usize) < self.pages
    }

    /// Where the number of a page is.
    #[inline]
    fn place(&self, page: u32) -> usize {
        let Some(leaf_of) = &self.leaf_of else { return page as usize };
        let leaf = leaf_of.get(page as usize >> SHIFT);
        ((leaf as usize) << SHIFT) + page as usize % LEAF
    }

    /// Changes the number of a page, which is in the table; gives the one before.
    #[inline]
    pub(crate) fn replace(&mut self, page: u32, number: u32) -> u32 {
        let place = self.place(page);
        if place < LEAF && self.leaf_of.is_some() {
            return self.make_leaf(page, number);
        }
        self.leaves.replace(place, number)
    }

    /// Gives a page whose leaf is the one of zeros a leaf of its own, if it needs one; gives 0.
    fn make_leaf(&mut self, page: u32, number: u32) -> u32 {
        if number != 0
            && let Some(leaf_of) = &mut self.leaf_of
        {
            leaf_of.set(page as usize >> SHIFT, self.made);
            self.made += 1;
            self.leaves.set(self.place(page), number);
        }
        0
    }

    /// Changes the number of a page, which is in the table.
    #[inline]
    pub(crate) fn set(&mut self, page: u32, number: u32) {
        self.replace(page, number);
    }

    /// Gives successive pages the numbers that belong to them; none of these is 0.
    pub(crate) fn set_run(&mut self, first_page: u32, count: u32, number_of: impl Fn(u32) -> u32) {
        let (mut page, end) = (first_page, first_page + count);
        if self.made == 1 && count as usize > self.pages / 2 {
            *self = Self::of_kind(self.pages, false);
        }
        if self.leaf_of.is_none() {
            return self.leaves.set_run(page as usize..end as usize, |page| number_of(page as u32));
        }
        while page < end {
            let in_leaf = (LEAF as u32 - page % LEAF as u32).min(end - page);
            self.set(page, number_of(page));
            let from = self.place(page);
            self.leaves.set_run(from..from + in_leaf as usize, |place| number_of(page + (place - from) as u32));
            page += in_leaf;
        }
    }

    /// All pages whose number is not 0, with it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        let upper = self.leaf_of.iter().flat_map(|leaf_of| leaf_of.iter_from(0));
        let sparse = (0..).zip(upper).filter(|&(_, leaf)| leaf != 0);
        let all = if self.leaf_of.is_none() { self.pages.div_ceil(LEAF) as u32 } else { 0 };
        let of_leaf = |(n, leaf): (u32, u32)| {
            let numbers = self.leaves.iter_from((leaf as usize) << SHIFT).take(LEAF);
            (n << SHIFT..).zip(numbers)
        };
        sparse.chain((0..all).map(|n| (n, n))).flat_map(of_leaf).filter(|&(_, entry)| entry != 0)
    }

    /// Says that the number of a page will be needed some time, first where it is: known beforehand in an array.
    #[inline]
    pub(crate) fn prefetch_place(&self, page: u32) {
        if let Some(leaf_of) = &self.leaf_of {
            leaf_of.prefetch(page as usize >> SHIFT);
        }
    }

    /// Says that the number of a page will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, page: u32) {
        self.leaves.prefetch(self.place(page));
    }
}

impl State for SparseTable {
    fn layout(layout: &mut Layout) {
        layout.word("SparseTable");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let length = self.length();
        if carrier.is_restoring() {
            return carrier.numbers(length, std::iter::empty(), |page, number| {
                self.set(page as u32, number);
                Ok(())
            });
        }
        let numbers = self.iter().map(|(page, number)| (u64::from(page), number));
        carrier.numbers(length, numbers, |_, _| Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_table_of_a_large_drive_holds_only_the_lines_that_were_touched() {
        let mut table = SparseTable::new(1 << 28);
        for page in [0, 15, 16, 1 << 20, (1 << 28) - 1] {
            table.set(page, page + 7);
        }
        assert_eq!(table.made, 1 + 4);
        assert_eq!((table.get(1 << 20), table.get(1), table.get(u32::MAX)), ((1 << 20) + 7, 0, 0));
    }

    #[test]
    fn setting_nothing_to_zero_makes_no_leaf() {
        let mut table = SparseTable::new(SMALL + 1);
        table.set(40, 0);
        assert_eq!(table.made, 1);
    }

    #[test]
    fn a_table_most_of_whose_pages_are_named_at_once_is_an_array() {
        let pages = SMALL as u32 + 100;
        let mut table = SparseTable::new(pages as usize);
        table.set_run(0, pages - 1, |page| page + 1);
        assert!(table.leaf_of.is_none());
        assert_eq!((table.get(7), table.get(pages - 1), table.get(pages)), (8, 0, 0));
        assert_eq!(table.iter().count(), pages as usize - 1);
    }

    /// A table that is sparse or an array whatever its length.
    fn table(pages: usize, sparse: bool) -> SparseTable {
        // It would become an array if it knew its length.
        SparseTable { pages: if sparse { usize::MAX } else { pages }, ..SparseTable::of_kind(pages, sparse) }
    }

    proptest! {
        #[test]
        fn it_gives_what_an_array_gives(sparse: bool, steps in prop::collection::vec((0_u32..500, 0_u32..3, 1_u32..40), 0..100)) {
            let (mut table, mut array) = (table(500, sparse), vec![0_u32; 500]);
            for (page, number, count) in steps {
                let count = count.min(500 - page);
                if number == 2 {
                    table.set_run(page, count, |page| 1_000 + page);
                    (0..count).for_each(|n| array[(page + n) as usize] = 1_000 + page + n);
                } else {
                    prop_assert_eq!(table.replace(page, number), std::mem::replace(&mut array[page as usize], number));
                }
            }
            let all: Vec<u32> = (0..500).map(|page| table.get(page)).collect();
            prop_assert_eq!(&all, &array);
            let named: Vec<_> = (0..).zip(array).filter(|&(_, entry)| entry != 0).collect();
            prop_assert_eq!(table.iter().collect::<Vec<_>>(), named);
        }
    }
}
