//! How many slots each logical page takes, where pages are compressed.
//!
//! ```text
//!   row r      | page 9 | page 4      | page 7   |      a slot is a granule; a page takes the next slots of its stream
//!   row r + 1  | page 7 | page 1 |               |      page 7 spans two rows of its superblock
//! ```
//!
//! The slots of a superblock are numbered row by row, so a page that spans two rows is a run of slots all the same. The
//! map names its first slot. A page never spans two superblocks: the last row of one is full when the longest page would
//! not fit any more.

use zerocopy::FromZeros;

use crate::config::DeviceConfig;
use crate::memory::{Records, Touched};

/// The slots of a page less one; a page of zeros here has one slot.
#[derive(Clone, Copy, FromZeros)]
struct Length(u8);

/// The length of every page, in slots.
pub(crate) struct Extents {
    lengths: Records<Length>,
    /// Slots of a page that is not compressed.
    longest: u32,
    /// The power of two that `longest` is.
    shift: u32,
    /// Slots that all pages that are there take.
    stored: u64,
}

impl Extents {
    /// For the pages of a drive that compresses; `None` for others.
    pub(crate) fn new(config: &DeviceConfig, pages: u64) -> Option<Box<Self>> {
        config.compression()?;
        let longest = (config.ftl.logical_page_bytes / config.slot_bytes()) as u32;
        let lengths = Records::new(pages as usize, Touched::Densely);
        Some(Box::new(Self { lengths, longest, shift: longest.trailing_zeros(), stored: 0 }))
    }

    /// Slots of a page that is not compressed, the most that any page takes.
    pub(crate) fn longest(&self) -> u32 {
        self.longest
    }

    /// Slots that a page takes.
    pub(crate) fn of(&self, page: u32) -> u32 {
        u32::from(self.lengths[page as usize].0) + 1
    }

    /// A page takes so many slots from now on; `was_there` tells whether it took any before. Gives how many these were.
    pub(crate) fn set(&mut self, page: u32, slots: u32, was_there: bool) -> u32 {
        debug_assert!((1..=self.longest).contains(&slots), "a page of {slots} slots");
        let before = u32::from(std::mem::replace(&mut self.lengths[page as usize], Length((slots - 1) as u8)).0) + 1;
        self.stored += u64::from(slots);
        self.stored -= if was_there { u64::from(before) } else { 0 };
        before
    }

    /// A page that was there is not there any more.
    pub(crate) fn forget(&mut self, page: u32) {
        self.stored -= u64::from(self.of(page));
    }

    /// Slots that all pages that are there take.
    pub(crate) fn stored(&self) -> u64 {
        self.stored
    }

    /// So many slots in whole logical pages, which is what victims are chosen by.
    pub(crate) fn in_pages(&self, slots: u32) -> u32 {
        slots.div_ceil(1 << self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CompressionConfig, ReductionConfig};

    #[test]
    fn a_page_takes_from_one_slot_to_all_of_its_own() {
        let mut config = DeviceConfig::preset("toshiba-xg5").unwrap();
        assert!(Extents::new(&config, 4).is_none());
        let compression = CompressionConfig { granule_bytes: 16, ..CompressionConfig::default() };
        config.reduction = Some(ReductionConfig { compression: Some(compression), ..ReductionConfig::default() });
        let mut extents = Extents::new(&config, 4).unwrap();
        extents.set(3, 256, false);
        assert_eq!((extents.longest(), extents.set(3, 7, true), extents.of(3), extents.stored()), (256, 256, 7, 7));
        extents.set(0, 2, false);
        extents.forget(3);
        assert_eq!(extents.stored(), 2);
        assert_eq!([0, 1, 256, 257].map(|slots| extents.in_pages(slots)), [0, 1, 1, 2]);
    }
}
