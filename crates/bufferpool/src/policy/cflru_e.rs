//! CFLRU/E: as [CFLRU](super::cflru), but if the window has no clean page, its dirty page whose flash block was erased
//! least often is evicted.
//!
//! Of equal ones the oldest page is evicted. A host cannot see erase counts; see [`super::wear`] for what is in for
//! them. Source: Y.-S. Yoo, H. Lee, Y. Ryu, H. Bahn, *Page Replacement Algorithms for NAND Flash Memory Storages*,
//! ICCSA 2007.
//!
//! Parameters: `window`, as CFLRU's; `order`.
//!
//! **Order.** By age, as the published models of ACE take it, which has the dirty pages cleaned in another order than
//! they would be evicted in. With `order=rank` they are taken as they would be evicted: the victim's rank decides for
//! the others too, and a page that enters the window waits for its turn.

use super::clean_first::{CleanFirst, Rank};
use super::wear::Wear;
use super::{Parameters, Policy, PolicyError, Shape, Taker};
use crate::directory::{Directory, Entry, Page};

/// See the module.
pub(crate) struct CflruE {
    lists: CleanFirst,
    wear: Wear,
}

impl Policy for CflruE {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let wear = Wear::new(shape);
        Ok(Self { lists: CleanFirst::new(shape, parameters, wear.blocks())?, wear })
    }

    #[inline]
    fn hit(&mut self, entry: Entry, is_write: bool, _: &Directory) {
        self.lists.hit(entry, is_write, &self.wear);
    }

    #[inline]
    fn expect(&self, page: Page, entry: Entry) {
        self.lists.expect(entry);
        self.wear.expect_page(page);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        self.lists.victim(&self.wear, pages)
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.lists.remove(entry, &self.wear);
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, is_write: bool, pages: &mut Directory) {
        self.wear.add(entry, pages);
        self.lists.push_front(entry, is_write, &self.wear);
    }

    fn prefetch(&mut self, entry: Entry, pages: &mut Directory) {
        self.wear.add(entry, pages);
        self.lists.push_back(entry, &self.wear);
    }

    fn written(&mut self, entry: Entry, _: &Directory) {
        self.lists.written(entry);
        self.wear.written(entry);
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        let Self { lists, wear } = self;
        lists.order(wear, pages, &mut |entry| {
            // It is written soon.
            wear.expect_group(wear.group(entry));
            take(entry)
        });
    }
}
