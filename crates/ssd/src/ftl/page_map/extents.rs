//! How many slots each logical page takes, where pages are compressed.
//!
//! ```text
//!   row r      | page 9 | page 4      | page 7   |      a slot is a granule; a page takes the next slots of its stream
//!   row r + 1  | page 7 | page 1 |               |      page 7 spans two rows of its superblock
//! ```
//!
//! The slots of a superblock are numbered row by row, so a page that spans two rows is a run of slots all the same. The
//! map names its first slot. A page never spans two superblocks: the last row of one is full when the longest page
//! would not fit any more.

use zerocopy::FromZeros;

use crate::config::DeviceConfig;
use crate::memory::{Records, Touched, prefetch};
use crate::state::{Carried, Carrier, Layout, State, StateError};

/// The slots of a page less one; a page of zeros here has one slot.
#[derive(Clone, Copy, FromZeros)]
struct Length(u8);

/// The length of every page, in slots.
pub(crate) struct Extents {
    lengths: Records<Length>,
    /// One bit a slot, set where a page starts: what a row holds is found without a look at each of its slots.
    begins: Records<u64>,
    /// Slots of a page that is not compressed.
    longest: u32,
    /// The power of two that `longest` is.
    shift: u32,
    /// Slots that all pages that are there take.
    stored: u64,
}

impl Extents {
    /// For so many pages of a drive that compresses, and its slots; `None` for other drives.
    pub(crate) fn new(config: &DeviceConfig, pages: u64, slots: u64) -> Option<Box<Self>> {
        config.compression()?;
        let longest = (config.ftl.logical_page_bytes / config.slot_bytes()) as u32;
        let lengths = Records::new(pages as usize, Touched::Densely);
        let begins = Records::new(slots.div_ceil(u64::from(u64::BITS)) as usize, Touched::Densely);
        Some(Box::new(Self { lengths, begins, longest, shift: longest.trailing_zeros(), stored: 0 }))
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

    /// Says that the length of a page will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, page: u32) {
        prefetch(&self.lengths, page as usize);
    }

    /// Says that a page will soon start in a slot, or the one that starts there end.
    #[inline]
    pub(crate) fn prefetch_slot(&self, slot: u32) {
        prefetch(&self.begins, (slot / u64::BITS) as usize);
    }

    /// A page that was there is not there any more.
    pub(crate) fn forget(&mut self, page: u32) {
        let before = std::mem::replace(&mut self.lengths[page as usize], Length(0));
        self.stored -= u64::from(before.0) + 1;
    }

    /// A page whose length was restored starts in a slot.
    pub(crate) fn found(&mut self, page: u32, slot: u32) {
        self.begin(slot);
        self.stored += u64::from(self.of(page));
    }

    /// A page starts in a slot.
    pub(crate) fn begin(&mut self, slot: u32) {
        self.begins[(slot / u64::BITS) as usize] |= 1 << (slot % u64::BITS);
    }

    /// The page that started in a slot is not there any more.
    pub(crate) fn end(&mut self, slot: u32) {
        self.begins[(slot / u64::BITS) as usize] &= !(1 << (slot % u64::BITS));
    }

    /// The first slot from one on, before an end, in which a page starts.
    pub(crate) fn next(&self, from: u32, end: u32) -> Option<u32> {
        let mut word = (from / u64::BITS) as usize;
        let mut bits = self.begins.get(word)? & (u64::MAX << (from % u64::BITS));
        while bits == 0 {
            word += 1;
            if word as u32 * u64::BITS >= end {
                return None;
            }
            bits = *self.begins.get(word)?;
        }
        Some(word as u32 * u64::BITS + bits.trailing_zeros()).filter(|&slot| slot < end)
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

/// The lengths alone are saved: where pages start, the map tells ([`Extents::found`]).
impl State for Extents {
    fn layout(layout: &mut Layout) {
        layout.word("Extents");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let Self { lengths, longest, .. } = self;
        let pages = lengths.len() as u64;
        if !carrier.is_restoring() {
            let longer = (0..).zip(lengths.iter()).filter(|(_, length)| length.0 > 0);
            return carrier.numbers(pages, longer.map(|(page, length)| (page, u32::from(length.0))), |_, _| Ok(()));
        }
        carrier.numbers(pages, std::iter::empty(), |page, more| {
            if more >= *longest {
                return Err(StateError::damaged(format!("logical page {page} takes {more} slots and one")));
            }
            lengths[page as usize] = Length(more as u8);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CompressionConfig, ReductionConfig};

    #[test]
    fn a_page_takes_from_one_slot_to_all_of_its_own() {
        let mut config = DeviceConfig::preset("toshiba-xg5").unwrap();
        assert!(Extents::new(&config, 4, 4096).is_none());
        let compression = CompressionConfig { granule_bytes: 16, ..CompressionConfig::default() };
        config.reduction = Some(ReductionConfig { compression: Some(compression), ..ReductionConfig::default() });
        let mut extents = Extents::new(&config, 4, 4096).unwrap();
        extents.set(3, 256, false);
        assert_eq!((extents.longest(), extents.set(3, 7, true), extents.of(3), extents.stored()), (256, 256, 7, 7));
        extents.set(0, 2, false);
        extents.forget(3);
        assert_eq!(extents.stored(), 2);
        assert_eq!([0, 1, 256, 257].map(|slots| extents.in_pages(slots)), [0, 1, 1, 2]);
    }

    #[test]
    fn the_slots_in_which_pages_begin_are_found_in_order() {
        let mut config = DeviceConfig::preset("toshiba-xg5").unwrap();
        config.reduction =
            Some(ReductionConfig { compression: Some(CompressionConfig::default()), ..ReductionConfig::default() });
        let mut extents = Extents::new(&config, 4, 200).unwrap();
        [3, 63, 64, 130, 199].iter().for_each(|&slot| extents.begin(slot));
        extents.end(64);
        let mut from = 0;
        let found: Vec<u32> = std::iter::from_fn(|| {
            let slot = extents.next(from, 199)?;
            from = slot + 1;
            Some(slot)
        })
        .collect();
        assert_eq!((found, extents.next(199, 200), extents.next(199, 199)), (vec![3, 63, 130], Some(199), None));
    }
}
