//! How worn the flash block of a page is, as far as a host can tell: the write-backs so far of its 64 neighbours.
//!
//! A drive does not tell a host where its pages are or how often a block was erased, so the policies that ask for erase
//! counts get this in their place.

use std::sync::Arc;

use super::Shape;
use super::ranked::Rank;
use crate::directory::{Directory, Entry, Page};
use crate::memory::prefetch;

/// Pages of a block.
pub(crate) const BLOCK_PAGES: u64 = 64;

/// Write-backs by block.
pub(super) struct Wear {
    /// By page.
    blocks: Arc<[u32]>,
    /// By entry: the block of its page.
    block: Vec<u32>,
    /// By block; where they end, no block is more worn than another.
    writes: Vec<u32>,
}

impl Wear {
    pub(super) fn new(shape: &Shape) -> Self {
        let number = |page: usize| (page as u64 / BLOCK_PAGES) as u32;
        let blocks: Arc<[u32]> = match shape.blocks.len() == shape.pages {
            true => Arc::clone(&shape.blocks),
            false => (0..shape.pages).map(number).collect(),
        };
        let count = blocks.iter().max().map_or(0, |&last| last as usize + 1);
        Self { blocks, block: vec![0; shape.frames + 1], writes: vec![0; count] }
    }

    /// How many blocks there are, at least one.
    pub(super) fn blocks(&self) -> usize {
        self.writes.len().max(1)
    }

    /// The block of an entry that was added.
    #[inline]
    fn block(&self, entry: Entry) -> usize {
        self.block[entry.at()] as usize
    }

    /// Says that an entry may get that page soon.
    #[inline]
    pub(super) fn expect_page(&self, page: Page) {
        prefetch(&self.blocks, page.0 as usize);
    }

    /// An entry has got its page.
    pub(super) fn add(&mut self, entry: Entry, pages: &Directory) {
        self.block[entry.at()] = self.blocks[pages.page(entry).0 as usize];
    }

    /// A page was written.
    pub(super) fn written(&mut self, entry: Entry) {
        let block = self.block(entry);
        self.writes[block] = self.writes[block].saturating_add(1);
    }
}

/// The page of the least worn block is evicted first.
impl Rank for Wear {
    #[inline]
    fn rank_in(&self, block: usize, _: Entry) -> u64 {
        u64::from(self.writes[block])
    }

    #[inline]
    fn group(&self, entry: Entry) -> usize {
        self.block(entry)
    }

    fn new_rank(&self) -> u64 {
        0
    }

    #[inline]
    fn expect(&self, entry: Entry) {
        prefetch(&self.block, entry.at());
    }

    #[inline]
    fn expect_group(&self, block: usize) {
        prefetch(&self.writes, block);
    }
}
