//! The flash translation layer: where data goes, where it is, what becomes free.
//!
//! There are several kinds of it, behind one trait ([`Ftl`]):
//!
//! | kind | write path | where |
//! |---|---|---|
//! | page map, log-structured | the write buffer | [`page_map`], with the policies beside it: [`placement`], [`streams`], [`gc`], [`wear`] |
//! | block maps: replacement blocks, FAST | steps | [`blocks`] |
//! | elements, each a log-structured drive | their own time | [`element`] |
//! | in place, for media without erase | granules in their place | [`in_place`] |
//!
//! The *write path* ([`WritePath`](crate::config::WritePath)) is what the controller does with a write of such an FTL.
//! What every kind is asked is in the trait: where a page is, that it is forgotten, what the wear is, and whether the
//! FTL's invariants hold. The page map is the kind of nearly all drives and on the path of every request of theirs; it
//! is called by its own methods, the others through the trait.
//!
//! # Adding an FTL
//!
//! 1. A file of its own in this folder, `ftl/mine.rs`, and `pub(crate) mod mine;` below. In it, a type that keeps the
//!    map:
//!    - `impl` [`Ftl`] for it: how it is built for a drive, where a page is, how it is forgotten, whether anything is
//!      mapped, how it is filled at once, its P/E cycles, its invariants;
//!    - `impl` [`StepFtl`] for it: what a write does, as [`Step`]s that the controller turns into flash commands. An
//!      FTL that maps blocks implements [`blocks::BlockFtl`] instead of both, three methods over a
//!      [`blocks::BlockSpace`];
//!    - [`state!`](crate::state) says what of it is saved with the drive.
//! 2. One line in the list of FTLs, `ftl_kinds!` in `config/ftl.rs`: its name in a drive's description, what it is (for
//!    the reference and the schema), its write path and type: `[Steps, mine::Mine]`.
//!
//! The list makes the configuration's `ftl.mapping`, the drive's FTL and the form of saved drives; every place that
//! depends on the kind asks for the write path. `FLASHWISE_BLESS=1 cargo test -p flashwise-ssd reference` writes the
//! reference anew. Keys of its own belong to `config/ftl.rs`; `ftl.log_blocks` is how many blocks of a unit an FTL of
//! steps has beside the data, unless it says otherwise there. `tests/every_drive.rs` runs each kind under load with all
//! invariants: add a drive of the new one to its list.
//!
//! An FTL that needs another way to flash than those that there are adds a write path: a variant of
//! [`WritePath`](crate::config::WritePath) and of [`AnyFtl`], and what the controller does with it
//! (`controller/requests.rs`, `start_translated`).

pub(crate) mod blocks;
pub(crate) mod element;
pub mod gc;
pub(crate) mod geometry;
pub(crate) mod in_place;
mod kinds;
pub(crate) mod mapping;
pub(crate) mod mapping_cache;
mod min_tree;
pub(crate) mod page_map;
pub(crate) mod placement;
pub(crate) mod sectors;
pub(crate) mod streams;
pub(crate) mod superblock;
pub(crate) mod translator;
mod unplaced;
pub(crate) mod wear;

use std::collections::BTreeMap;

pub use gc::count_lists::CountLists;
pub(crate) use kinds::AnyFtl;
pub(crate) use page_map::{Cause, PageMap, Placement, Relocation, Retirement};
pub(crate) use streams::Stream;

use crate::config::DeviceConfig;
use crate::flash::FlashAddress;
use crate::state::{Layout, State};
use geometry::Geometry;
pub use mapping::KeptAs;

/// Where a logical page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// Nobody wrote it.
    Nowhere,
    /// In this slot, which is still in the write buffer.
    Buffer(u32),
    /// In this slot on flash.
    Flash(u32),
}

/// A flash translation layer.
///
/// A *slot* is the place of one logical page; what a drive carries is kept by slot.
pub(crate) trait Ftl: State + Send {
    /// The FTL of an empty drive; `seed` drives what is left to chance.
    fn build(config: &DeviceConfig, geometry: &Geometry, seed: u64) -> Self
    where
        Self: Sized;

    /// Adds what is saved of it to the description of a saved drive.
    fn describe(layout: &mut Layout)
    where
        Self: Sized,
    {
        Self::layout(layout);
    }

    /// The slot that holds a logical page; `None` when nobody wrote it.
    fn slot_of(&self, logical_page: u32) -> Option<u32>;

    /// Where a logical page is.
    fn locate(&self, logical_page: u32) -> Location {
        self.slot_of(logical_page).map_or(Location::Nowhere, Location::Flash)
    }

    /// Where a slot is, with everything that is sensed by one command with it.
    fn address_of(&self, slot: u32, geometry: &Geometry) -> FlashAddress {
        geometry.address_of(slot)
    }

    /// Forgets a logical page, which was trimmed; gives the slot whose bytes go with it.
    fn forget(&mut self, logical_page: u32) -> Option<u32>;

    /// Whether no logical page has a place yet.
    fn is_empty(&self) -> bool;

    /// Maps the logical pages below `pages` as one sequential write would, in no time; `kept` says how.
    fn fill_in_order(&mut self, pages: u32, kept: KeptAs);

    /// How many superblocks, or blocks, have gone through how many P/E cycles; empty for media that need no erase.
    fn erase_histogram(&self) -> BTreeMap<u32, u64>;

    /// Logical pages that are mapped, in slots, and the sum of what the blocks count as valid, where both are counted:
    /// the same number.
    fn mapped_and_valid_pages(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Checks what must hold between any two events: each logical page maps to one valid slot and back, valid counts
    /// are those of the map. Takes time proportional to the size of the drive.
    ///
    /// # Errors
    /// Says which invariant is broken.
    fn check(&self) -> Result<(), String>;
}

/// An FTL that decides at once what a write does, and hands it out as flash work.
///
/// All steps of a write concern one unit, hence one die, which does them in the order in which they are given (reads
/// may go first: what they give is in the controller's memory before it is programmed elsewhere).
pub(crate) trait StepFtl: Ftl {
    /// Finds a place for a new version of a logical page and appends the flash work to `steps`; exactly one of them is
    /// a [`Step::Program`].
    fn write(&mut self, logical_page: u32, steps: &mut Vec<Step>);

    /// P/E cycles of each block, unit by unit.
    fn erase_counts(&self) -> Vec<u32>;

    /// Blocks of a unit that may wear out before the drive takes no more writes.
    fn spare_blocks(&self) -> u32;

    /// Whether more than these are worn out.
    fn is_worn_out(&self) -> bool;
}

/// Flash work that a write causes, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Read a slot and program its content into another.
    Copy {
        /// Where the page is.
        from: u32,
        /// Where it goes.
        to: u32,
    },
    /// Program the host's page.
    Program {
        /// Where it goes.
        slot: u32,
    },
    /// Erase a block, counted over the drive.
    Erase {
        /// The block.
        block: u32,
    },
}

/// How often each number comes. Equal neighbours, the rule on a drive that is young, are counted together.
pub(crate) fn histogram(numbers: impl Iterator<Item = u32>) -> BTreeMap<u32, u64> {
    let mut histogram = BTreeMap::new();
    let (mut number, mut run) = (0, 0);
    for next in numbers {
        if next != number && run > 0 {
            *histogram.entry(number).or_default() += run;
            run = 0;
        }
        (number, run) = (next, run + 1);
    }
    if run > 0 {
        *histogram.entry(number).or_default() += run;
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_histogram_counts_every_number_however_often_it_comes_again(numbers in prop::collection::vec(0_u32..4, 0..40)) {
            let mut expected = BTreeMap::new();
            numbers.iter().for_each(|&number| *expected.entry(number).or_default() += 1);
            prop_assert_eq!(histogram(numbers.into_iter()), expected);
        }
    }
}
