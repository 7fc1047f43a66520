//! FTLs that map whole blocks: block mapping with replacement blocks, and FAST's log blocks.
//!
//! They keep a small table (one entry a block) and pay with *merges*: a logical block whose pages are in two places is
//! brought together again in a clean block. Logical pages go round the parallel units, so that successive pages work
//! side by side; inside a unit, [`space::Address`] says which logical block a page belongs to and where it is in it.
//!
//! ```text
//!   logical page ─▶ unit = page mod units ─▶ logical block, offset
//!                                               │
//!            data block ◄── mapped ─────────────┤
//!            replacement / log blocks ◄─────────┘     newest copy wins
//! ```
//!
//! An FTL decides at once and hands the flash work out as [`Step`]s ([`StepFtl`]), so a merge takes the time of its
//! reads, programs and erases, and the host's page is programmed behind them.

mod fast;
mod replacement;
mod space;

pub(crate) use fast::Fast;
pub(crate) use replacement::Replacement;
#[cfg(test)]
pub(crate) use replacement::Replacements;
pub(crate) use space::BlockSpace;

use std::collections::BTreeMap;

use super::geometry::Geometry;
use super::{Ftl, KeptAs, Step, StepFtl, histogram};
use crate::config::DeviceConfig;
use crate::state::State;

/// An FTL that maps blocks: a page whose place in its data block is clean is written there.
pub(crate) trait BlockFtl: State + Send {
    /// The FTL of an empty drive over these blocks.
    fn over(space: BlockSpace, config: &DeviceConfig) -> Self
    where
        Self: Sized;

    /// The maps and the blocks.
    fn space(&self) -> &BlockSpace;

    /// The same, for changing.
    fn space_mut(&mut self) -> &mut BlockSpace;

    /// See [`StepFtl::write`].
    fn write(&mut self, logical_page: u32, steps: &mut Vec<Step>);
}

/// Methods that are the same for every FTL that maps blocks.
impl<T: BlockFtl> Ftl for T {
    fn build(config: &DeviceConfig, geometry: &Geometry, _: u64) -> Self {
        let logical_pages = config.capacity_bytes / config.ftl.logical_page_bytes;
        T::over(BlockSpace::new(geometry, logical_pages), config)
    }

    fn slot_of(&self, logical_page: u32) -> Option<u32> {
        self.space().slot_of(logical_page)
    }

    fn forget(&mut self, logical_page: u32) -> Option<u32> {
        self.space_mut().trim(logical_page)
    }

    fn is_empty(&self) -> bool {
        self.space().is_empty()
    }

    /// Every page has a clean place in the data block of its logical block.
    fn fill_in_order(&mut self, pages: u32, kept: KeptAs) {
        self.space_mut().fill_in_order(pages, kept);
    }

    fn erase_histogram(&self) -> BTreeMap<u32, u64> {
        histogram(self.space().erase_counts())
    }

    fn check(&self) -> Result<(), String> {
        self.space().check()
    }
}

impl<T: BlockFtl> StepFtl for T {
    fn write(&mut self, logical_page: u32, steps: &mut Vec<Step>) {
        BlockFtl::write(self, logical_page, steps);
    }
}

/// A naive host that writes pages through an FTL and keeps what each slot holds.
#[cfg(test)]
pub(crate) mod model {
    use std::collections::BTreeMap;

    use super::*;

    /// Contents by slot, and what each page should hold.
    #[derive(Default)]
    pub(crate) struct Model {
        contents: BTreeMap<u32, u64>,
        expected: BTreeMap<u32, u64>,
        version: u64,
        pub(crate) copies: u64,
        pub(crate) erases: u64,
        pub(crate) writes: u64,
    }

    impl Model {
        /// Writes a page and does what the FTL asks for; every rule of the flash is checked on the way.
        pub(crate) fn write(&mut self, ftl: &mut dyn BlockFtl, logical_page: u32) {
            let pages = ftl.space().pages_per_block();
            let mut steps = Vec::new();
            ftl.write(logical_page, &mut steps);
            self.version += 1;
            self.writes += 1;
            let programs = steps.iter().filter(|step| matches!(step, Step::Program { .. })).count();
            assert_eq!(programs, 1, "one program for one page");
            for step in steps {
                match step {
                    Step::Copy { from, to } => {
                        let version = self.contents[&from];
                        self.program(to, version, pages);
                        self.copies += 1;
                    }
                    Step::Program { slot } => self.program(slot, self.version, pages),
                    Step::Erase { block } => {
                        self.contents.retain(|slot, _| slot / pages != block);
                        self.erases += 1;
                    }
                }
            }
            self.expected.insert(logical_page, self.version);
        }

        fn program(&mut self, slot: u32, version: u64, pages: u32) {
            let behind = (slot / pages + 1) * pages;
            let later = self.contents.range(slot..behind).next();
            assert!(later.is_none(), "slot {slot} is programmed behind {later:?}");
            self.contents.insert(slot, version);
        }

        /// Every page is where the FTL says, in its last version.
        pub(crate) fn check(&self, ftl: &dyn BlockFtl) {
            ftl.space().check().unwrap();
            for (&page, version) in &self.expected {
                let slot = ftl.space().slot_of(page).unwrap();
                assert_eq!(self.contents.get(&slot), Some(version), "page {page} in slot {slot}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is known of the blocks, and where every page and what every slot holds.
    #[derive(Debug, PartialEq)]
    struct Seen {
        blocks: Vec<(u32, u32)>,
        slot_of: Vec<Option<u32>>,
        page_in: Vec<Option<u32>>,
    }

    fn seen(space: &BlockSpace, pages: u32) -> Seen {
        let blocks = 0..space.blocks();
        let slots = 0..blocks.end * space.pages_per_block();
        Seen {
            blocks: blocks.map(|block| (space.pointer(block), space.valid(block))).collect(),
            slot_of: (0..pages).map(|page| space.slot_of(page)).collect(),
            page_in: slots.map(|slot| space.page_in(slot)).collect(),
        }
    }

    proptest! {
        #[test]
        fn an_empty_drive_is_filled_as_it_is_written_in_order(
            (units, pages_per_block) in (1_u32..4, 1_u32..6),
            (pages, kept) in (1_u32..60, prop::sample::select(vec![KeptAs::Rule, KeptAs::Entries])),
        ) {
            let space = || {
                let geometry = Geometry::pages(units, pages.div_ceil(units).div_ceil(pages_per_block) + 4, pages_per_block);
                BlockSpace::new(&geometry, u64::from(pages))
            };
            let ftls = || -> [Box<dyn BlockFtl>; 2] { [Box::new(Fast::new(space(), 2)), Box::new(Replacement::new(space(), Replacements::linear(2)))] };
            for (mut written, mut filled) in ftls().into_iter().zip(ftls()) {
                (0..pages).for_each(|page| written.write(page, &mut Vec::new()));
                filled.space_mut().fill_in_order(pages, kept);
                filled.space().check().unwrap();
                prop_assert_eq!(seen(filled.space(), pages), seen(written.space(), pages));
                // The free blocks and the data blocks, by what comes next.
                for page in (0..pages).rev().chain((0..pages).step_by(3)) {
                    let mut steps = [Vec::new(), Vec::new()];
                    written.write(page, &mut steps[0]);
                    filled.write(page, &mut steps[1]);
                    prop_assert_eq!(&steps[0], &steps[1]);
                }
                filled.space().check().unwrap();
                prop_assert_eq!(seen(filled.space(), pages), seen(written.space(), pages));
            }
        }
    }
}
