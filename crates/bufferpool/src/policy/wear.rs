//! How worn the flash block of a page is, as far as a host can tell: the write-backs so far of its 64 neighbours.
//!
//! A drive does not tell a host where its pages are or how often a block was erased, so the policies that ask for erase
//! counts get this in their place.

use std::sync::Arc;

use super::Shape;
use crate::directory::{Directory, Entry};
use crate::lists::Lists;

/// Pages of a block.
pub(crate) const BLOCK_PAGES: u64 = 64;

/// Write-backs by block, and the pages of each block that are in frames.
pub(super) struct Wear {
    /// By page.
    blocks: Arc<[u32]>,
    /// By block.
    writes: Vec<u64>,
    /// A list a block.
    members: Lists,
}

impl Wear {
    pub(super) fn new(shape: &Shape) -> Self {
        let number = |page: usize| (page as u64 / BLOCK_PAGES) as u32;
        let blocks: Arc<[u32]> = match shape.blocks.len() == shape.pages {
            true => Arc::clone(&shape.blocks),
            false => (0..shape.pages).map(number).collect(),
        };
        let count = blocks.iter().max().map_or(0, |&last| last as usize + 1);
        Self { blocks, writes: vec![0; count], members: Lists::new(shape.frames + 1, count) }
    }

    fn block(&self, entry: Entry, pages: &Directory) -> usize {
        self.blocks[pages.page(entry).0 as usize] as usize
    }

    pub(super) fn of(&self, entry: Entry, pages: &Directory) -> u64 {
        self.writes[self.block(entry, pages)]
    }

    pub(super) fn add(&mut self, entry: Entry, pages: &Directory) {
        self.members.push_front(self.block(entry, pages), entry);
    }

    pub(super) fn remove(&mut self, entry: Entry, pages: &Directory) {
        self.members.remove(self.block(entry, pages), entry);
    }

    /// A page was written: whose wear has changed with it, and to what.
    pub(super) fn written(&mut self, entry: Entry, pages: &Directory) -> (u64, impl Iterator<Item = Entry> + '_) {
        let block = self.block(entry, pages);
        self.writes[block] += 1;
        (self.writes[block], self.members.iter(block))
    }
}
