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

use crate::memory::prefetch;

/// Numbers of a table that is always a plain array: 16 MiB of them.
const SMALL: usize = 4 << 20;

/// Numbers of a leaf.
const LEAF: usize = 16;
const SHIFT: u32 = LEAF.trailing_zeros();

/// A number, at first 0, for each logical page.
pub(crate) struct SparseTable {
    /// Empty where the leaves are an array of all pages.
    leaf_of: Vec<u32>,
    pages: usize,
    /// One leaf behind the other. A list of plain numbers grows without being copied, because the allocator moves large
    /// ones page by page.
    leaves: Vec<u32>,
}

impl SparseTable {
    /// Zeros for so many pages.
    pub(crate) fn new(pages: usize) -> Self {
        let sparse = pages > SMALL;
        let leaf_of = vec![0; if sparse { pages.div_ceil(LEAF) } else { 0 }];
        Self { leaf_of, pages, leaves: vec![0; if sparse { LEAF } else { pages }] }
    }

    /// The number of a page; 0 for one behind the table.
    #[inline]
    pub(crate) fn get(&self, page: u32) -> u32 {
        self.leaves.get(self.place(page)).copied().unwrap_or(0)
    }

    #[inline]
    fn is_array(&self) -> bool {
        self.leaf_of.is_empty()
    }

    /// Where the number of a page is.
    #[inline]
    fn place(&self, page: u32) -> usize {
        if self.is_array() {
            return page as usize;
        }
        let leaf = self.leaf_of.get(page as usize >> SHIFT).copied().unwrap_or(0);
        ((leaf as usize) << SHIFT) + page as usize % LEAF
    }

    /// Changes the number of a page, which is in the table; gives the one before.
    #[inline]
    pub(crate) fn replace(&mut self, page: u32, number: u32) -> u32 {
        if self.is_array() {
            return std::mem::replace(&mut self.leaves[page as usize], number);
        }
        let leaf = &mut self.leaf_of[page as usize >> SHIFT];
        if *leaf == 0 {
            if number == 0 {
                return 0;
            }
            *leaf = (self.leaves.len() >> SHIFT) as u32;
            self.leaves.extend_from_slice(&[0; LEAF]);
        }
        std::mem::replace(&mut self.leaves[((*leaf as usize) << SHIFT) + page as usize % LEAF], number)
    }

    /// Changes the number of a page, which is in the table.
    #[inline]
    pub(crate) fn set(&mut self, page: u32, number: u32) {
        self.replace(page, number);
    }

    /// Gives successive pages the numbers that belong to them; none of these is 0.
    pub(crate) fn set_run(&mut self, first_page: u32, count: u32, number_of: impl Fn(u32) -> u32) {
        let (mut page, end) = (first_page, first_page + count);
        if self.leaves.len() == LEAF && count as usize > self.pages / 2 {
            (self.leaf_of, self.leaves) = (Vec::new(), vec![0; self.pages]);
        }
        if self.is_array() {
            let entries = &mut self.leaves[page as usize..end as usize];
            return (page..).zip(entries).for_each(|(page, entry)| *entry = number_of(page));
        }
        while page < end {
            let in_leaf = (LEAF as u32 - page % LEAF as u32).min(end - page);
            self.set(page, number_of(page));
            let from = self.place(page);
            let entries = &mut self.leaves[from..from + in_leaf as usize];
            (page..).zip(entries).for_each(|(page, entry)| *entry = number_of(page));
            page += in_leaf;
        }
    }

    /// All pages whose number is not 0, with it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        let sparse = (0..).zip(&self.leaf_of).filter(|&(_, &leaf)| leaf != 0).map(|(n, &leaf)| (n, leaf));
        let array = (0..if self.is_array() { self.pages.div_ceil(LEAF) as u32 } else { 0 }).map(|n| (n, n));
        let of_leaf = |(n, leaf): (u32, u32)| {
            let numbers = self.leaves[(leaf as usize) << SHIFT..].iter().take(LEAF);
            (n << SHIFT..).zip(numbers.copied())
        };
        sparse.chain(array).flat_map(of_leaf).filter(|&(_, entry)| entry != 0)
    }

    /// Says that the number of a page will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, page: u32) {
        prefetch(&self.leaves, self.place(page));
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
        assert_eq!(table.leaves.len(), LEAF * (1 + 4));
        assert_eq!((table.get(1 << 20), table.get(1), table.get(u32::MAX)), ((1 << 20) + 7, 0, 0));
    }

    #[test]
    fn setting_nothing_to_zero_makes_no_leaf() {
        let mut table = SparseTable::new(SMALL + 1);
        table.set(40, 0);
        assert_eq!(table.leaves.len(), LEAF);
    }

    #[test]
    fn a_table_most_of_whose_pages_are_named_at_once_is_an_array() {
        let pages = SMALL as u32 + 100;
        let mut table = SparseTable::new(pages as usize);
        table.set_run(0, pages - 1, |page| page + 1);
        assert!(table.is_array());
        assert_eq!((table.get(7), table.get(pages - 1), table.get(pages)), (8, 0, 0));
        assert_eq!(table.iter().count(), pages as usize - 1);
    }

    /// A table that is sparse or an array whatever its length.
    fn table(pages: usize, sparse: bool) -> SparseTable {
        let (upper, lower) = if sparse { (pages.div_ceil(LEAF), LEAF) } else { (0, pages) };
        // It would become an array if it knew its length.
        SparseTable { leaf_of: vec![0; upper], pages: if sparse { usize::MAX } else { pages }, leaves: vec![0; lower] }
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
