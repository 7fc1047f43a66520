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
        let before = config.flash.reliability.map_or(0, |reliability| reliability.initial_pe_cycles);
        let limit = config.pe_cycles_limit().map(|limit| limit.saturating_sub(before));
        let space = BlockSpace::new(geometry, logical_pages).wearing_out(limit, config.ftl.spare_blocks());
        T::over(space, config)
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

    fn erase_counts(&self) -> Vec<u32> {
        self.space().erase_counts().collect()
    }

    fn spare_blocks(&self) -> u32 {
        self.space().endurance().spares
    }

    fn is_worn_out(&self) -> bool {
        self.space().is_worn_out()
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
        /// By block.
        pub(crate) erases_of: BTreeMap<u32, u32>,
        /// P/E cycles that a block endures.
        pub(crate) limit: Option<u32>,
        /// Whether a page was programmed into a block that was erased more often.
        pub(crate) has_used_a_failed_block: bool,
    }

    impl Model {
        pub(crate) fn of_blocks_that_endure(limit: u32) -> Self {
            Self { limit: Some(limit), ..Self::default() }
        }

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
                        *self.erases_of.entry(block).or_default() += 1;
                    }
                }
            }
            self.expected.insert(logical_page, self.version);
        }

        fn program(&mut self, slot: u32, version: u64, pages: u32) {
            let behind = (slot / pages + 1) * pages;
            let later = self.contents.range(slot..behind).next();
            assert!(later.is_none(), "slot {slot} is programmed behind {later:?}");
            let erases = self.erases_of.get(&(slot / pages)).copied().unwrap_or(0);
            self.has_used_a_failed_block |= self.limit.is_some_and(|limit| erases > limit);
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
        fn wear_is_counted_as_the_flash_counts_it_and_a_block_beyond_its_limit_is_set_aside(
            pages in prop::collection::vec(0_u32..40, 1..800),
            (limit, blocks) in (1_u32..8, 8_u32..12),
            is_fast: bool,
        ) {
            // Two units of five logical blocks; both FTLs need three more blocks each.
            let space = BlockSpace::new(&Geometry::pages(2, blocks, 4), 40).wearing_out(Some(limit), 3);
            let spares = blocks - 8;
            let mut ftl: Box<dyn BlockFtl> = match is_fast {
                true => Box::new(Fast::new(space, 1)),
                false => Box::new(Replacement::new(space, Replacements::linear(2))),
            };
            let mut model = model::Model::of_blocks_that_endure(limit);
            for page in pages {
                model.write(&mut *ftl, page);
                let counted: Vec<u32> = ftl.space().erase_counts().collect();
                let erases: Vec<u32> =
                    (0..2 * blocks).map(|block| model.erases_of.get(&block).copied().unwrap_or(0)).collect();
                prop_assert_eq!(&counted, &erases);
                let failed = |of: &[u32]| of.iter().filter(|&&erases| erases > limit).count();
                let is_worn_out = erases.chunks(blocks as usize).any(|unit| failed(unit) > spares as usize);
                prop_assert_eq!(ftl.space().is_worn_out(), is_worn_out);
                prop_assert!(is_worn_out || !model.has_used_a_failed_block);
                if is_worn_out {
                    break;
                }
            }
            model.check(&*ftl);
        }

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
