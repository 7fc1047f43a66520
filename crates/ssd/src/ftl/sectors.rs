//! Which parts of a logical page hold data, so that a partial write need not read what it replaces.
//!
//! A page has sixteen *granules*, or fewer where they would be shorter than 512 bytes, one bit each:
//!
//! ```text
//!   a write      covers 0b0000_0011_1100 (wholly), touches 0b0000_0111_1100
//!   the page has        0b0000_0000_1100 → nothing is missing, no read
//!                       0b1000_0000_1100 → the granule of bit 11 is missing: the page is read first
//! ```
//!
//! The table, two bytes a logical page, exists only with `ftl.partial_pages = "sectors"`; without it every page that
//! was written counts as full. It says what a page *lacks*, and only of pages that were written: of a drive that is
//! written in whole pages it is all zeros, and takes no memory.

use crate::config::{DeviceConfig, PartialPages};
use crate::pages::PageSpan;
use crate::sparse::SparseTable;

/// The parts of every logical page that hold data.
pub(crate) struct Sectors {
    /// The length of a granule is 2 to this power.
    granule_shift: u32,
    page_bytes: u32,
    /// Every granule of a page.
    all: u16,
    /// The granules that pages which were written lack, two pages a number; absent where pages are always full.
    lacking: Option<SparseTable>,
    /// A page lacked something once; until then the table is not examined.
    is_used: bool,
}

impl Sectors {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let page = config.ftl.logical_page_bytes;
        let lacking = (config.ftl.partial_pages == PartialPages::Sectors)
            .then(|| SparseTable::new(config.logical_pages().div_ceil(2) as usize));
        let granule_shift = (page / 16).max(512).trailing_zeros();
        let all = Self::bits(0, page as usize >> granule_shift);
        Self { granule_shift, page_bytes: page as u32, all, lacking, is_used: false }
    }

    /// Says that the place of what is known of a page will be asked for soon.
    #[inline]
    pub(crate) fn prefetch_place(&self, logical_page: u32) {
        if let Some(lacking) = self.lacking.as_ref().filter(|_| self.is_used) {
            lacking.prefetch_place(logical_page / 2);
        }
    }

    /// Says that what is known of a page will be needed soon.
    #[inline]
    pub(crate) fn prefetch_page(&self, logical_page: u32) {
        if let Some(lacking) = self.lacking.as_ref().filter(|_| self.is_used) {
            lacking.prefetch(logical_page / 2);
        }
    }

    /// Whether parts of pages are remembered.
    pub(crate) fn are_known(&self) -> bool {
        self.lacking.is_some()
    }

    /// Granules `from..to` as bits.
    fn bits(from: usize, to: usize) -> u16 {
        if from >= to { 0 } else { (((1_u32 << to) - 1) & !((1_u32 << from) - 1)) as u16 }
    }

    /// Granules that a span touches.
    pub(crate) fn touched(&self, span: PageSpan) -> u16 {
        if span.is_whole() {
            return self.all;
        }
        Self::bits(span.from >> self.granule_shift, span.to.div_ceil(1 << self.granule_shift))
    }

    /// Granules that a span covers wholly.
    pub(crate) fn covered(&self, span: PageSpan) -> u16 {
        Self::bits(span.from.div_ceil(1 << self.granule_shift), span.to >> self.granule_shift)
    }

    /// Every granule of a page.
    pub(crate) fn all(&self) -> u16 {
        self.all
    }

    /// Bytes of some granules.
    pub(crate) fn bytes(&self, granules: u16) -> u32 {
        if granules == self.all {
            return self.page_bytes;
        }
        granules.count_ones() << self.granule_shift
    }

    /// The part of a page from the first to the last of some granules; `None` where there are none.
    pub(crate) fn extent(&self, granules: u16) -> Option<(usize, usize)> {
        let (first, last) = (granules.trailing_zeros(), 16 - granules.leading_zeros());
        (granules != 0).then_some(((first as usize) << self.granule_shift, (last as usize) << self.granule_shift))
    }

    /// Bytes to be read before a page that was written, and of which `covered` is written again, can be written whole.
    pub(crate) fn missing_bytes(&self, logical_page: u32, covered: u16) -> u32 {
        let uncovered = self.all() & !covered;
        if uncovered == 0 {
            return 0;
        }
        match &self.lacking {
            Some(lacking) if self.is_used => {
                self.bytes(uncovered & !granules(lacking.get(logical_page / 2), logical_page))
            }
            Some(_) => self.bytes(uncovered),
            None => self.page_bytes,
        }
    }

    /// Room that a write of some granules takes in the write buffer, and what it moves to the flash.
    pub(crate) fn written_bytes(&self, touched: u16) -> u32 {
        if self.are_known() { self.bytes(touched) } else { self.page_bytes }
    }

    /// A page's granules are written; `was_written` tells whether it held anything before.
    #[inline(always)]
    pub(crate) fn write(&mut self, logical_page: u32, touched: u16, was_written: bool) {
        if self.is_used || touched != self.all() {
            self.write_part(logical_page, touched, was_written);
        }
    }

    #[inline(never)]
    fn write_part(&mut self, logical_page: u32, touched: u16, was_written: bool) {
        let all = self.all();
        let Some(lacking) = &mut self.lacking else { return };
        let pair = lacking.get(logical_page / 2);
        let before = if was_written { granules(pair, logical_page) } else { all };
        let after = pair & !in_pair(u16::MAX, logical_page) | in_pair(before & !touched, logical_page);
        // Zeros are there already; not to write them spares their memory.
        if after != pair {
            lacking.set(logical_page / 2, after);
            self.is_used = true;
        }
    }

    /// A page holds nothing any more.
    pub(crate) fn forget(&mut self, logical_page: u32) {
        if let Some(lacking) = self.lacking.as_mut().filter(|_| self.is_used) {
            let pair = lacking.get(logical_page / 2);
            lacking.set(logical_page / 2, pair & !in_pair(u16::MAX, logical_page));
        }
    }

    /// What counts as there of a page that is about to come into the cache: all of it, where it was filled up before or
    /// is zeros elsewhere; nothing, where parts of pages are known.
    pub(crate) fn covered_before(&self) -> u16 {
        if self.are_known() { 0 } else { self.all() }
    }
}

/// A page's granules among those of its pair.
fn granules(pair: u32, logical_page: u32) -> u16 {
    (pair >> (logical_page % 2 * 16)) as u16
}

/// Granules of a page at their place among those of its pair.
fn in_pair(granules: u16, logical_page: u32) -> u32 {
    u32::from(granules) << (logical_page % 2 * 16)
}

crate::state::parts_of_some_drives!(SparseTable);

crate::state::state! {
    Sectors {
        saved { lacking, is_used }
        built { granule_shift, page_bytes, all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::{ByteRange, PageSize};
    use flashwise_block::{ByteSize, Request};

    fn sectors(page: u64, partial: PartialPages) -> Sectors {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        (config.ftl.logical_page_bytes, config.ftl.partial_pages) = (page, partial);
        config.capacity_bytes = 16 * page;
        Sectors::new(&config)
    }

    fn span(page: u64, from: u64, to: u64) -> PageSpan {
        ByteRange::of(&Request::write(ByteSize(from), ByteSize(to - from)), PageSize::new(page)).span(0)
    }

    #[test]
    fn a_span_touches_granules_in_part_and_covers_those_that_are_inside() {
        let map = sectors(16384, PartialPages::Sectors);
        assert_eq!(map.touched(span(16384, 512, 3072)), 0b111);
        assert_eq!(map.covered(span(16384, 512, 3072)), 0b110);
        assert_eq!(map.covered(span(16384, 512, 1024)), 0);
        assert_eq!((map.all(), map.extent(0b0110)), (u16::MAX, Some((1024, 3072))));
        assert_eq!(sectors(4096, PartialPages::Sectors).all(), 0xFF);
    }

    #[test]
    fn only_what_a_write_leaves_uncovered_has_to_be_read() {
        let mut map = sectors(4096, PartialPages::Sectors);
        map.write(2, 0xFF, false);
        assert_eq!((map.missing_bytes(2, 0xFE), map.missing_bytes(2, 0)), (512, 4096));
        map.write(3, 0b1100, false);
        assert_eq!((map.missing_bytes(3, 0b1100), map.missing_bytes(3, 0b0111)), (0, 512));
        map.write(3, 0b0110, true);
        assert_eq!((map.missing_bytes(3, 0), map.missing_bytes(2, 0)), (3 * 512, 4096));
        map.forget(3);
        map.write(3, 0b1, false);
        assert_eq!(map.missing_bytes(3, 0), 512, "what was there before it was forgotten does not count");
        let full = sectors(4096, PartialPages::Fill);
        assert_eq!((full.missing_bytes(3, 0b1100), full.missing_bytes(3, 0xFF)), (4096, 0));
    }
}
