//! Block mapping: each logical block has its data block, where each page has its place.
//!
//! A page is written into its place while that is clean. Otherwise the logical block gets a *replacement block*, which
//! is filled in ascending order: pages in front of the written one are copied from the data block, those behind stay
//! where they are until they are written, too, or until the replacement is closed. Closing copies the rest and erases
//! the data block; after a sequential overwrite nothing is left to copy. A unit has a few open replacements
//! (`replacement_blocks`); the one that was not written for longest is closed when another logical block needs one.
//!
//! Source: the replacement blocks of Ban's NFTL as described in Kim et al., "A Space-Efficient Flash Translation Layer
//! for CompactFlash Systems", IEEE TCE 48(2), 2002, section 2, with one replacement a block and in-order programming.

use super::{BlockFtl, BlockSpace};
use crate::config::DeviceConfig;
use crate::ftl::Step;
use crate::list::NONE;
use crate::state::{Carried, Carrier, Layout, State, StateError};

/// A logical block that is in two places.
#[derive(Clone, Copy, Default)]
struct Open {
    logical_block: u32,
    block: u32,
}

/// Block mapping with replacement blocks.
pub(crate) struct Replacement {
    space: BlockSpace,
    /// Open replacements of each unit, the one written last at the end.
    open: Vec<Vec<Open>>,
    open_max: usize,
}

impl Replacement {
    /// An empty drive; a unit has at most `open_max` replacements at a time.
    pub(crate) fn new(space: BlockSpace, open_max: u32) -> Self {
        let open = (0..space.units()).map(|_| Vec::with_capacity(open_max as usize)).collect();
        Self { space, open, open_max: open_max as usize }
    }

    /// Copies the pages `from..to` of a logical block to their places in `block`.
    fn copy(&mut self, logical_block: u32, block: u32, from: u32, to: u32, steps: &mut Vec<Step>) {
        for offset in from..to {
            if let Some((page, from)) = self.space.newest(logical_block, offset) {
                let to = self.space.program(block, offset, page);
                steps.push(Step::Copy { from, to });
            }
        }
    }

    /// Brings a logical block together in its replacement.
    fn close(&mut self, open: Open, steps: &mut Vec<Step>) {
        let from = self.space.pointer(open.block);
        self.copy(open.logical_block, open.block, from, self.space.pages_per_block(), steps);
        if let Some(old) = self.space.data_block(open.logical_block) {
            self.space.erase(old);
            steps.push(Step::Erase { block: old });
        }
        self.space.set_data_block(open.logical_block, open.block);
    }

    /// The replacement of a logical block, moved to the end of its unit's list.
    fn open_replacement(&mut self, unit: u32, logical_block: u32) -> Option<Open> {
        let list = &mut self.open[unit as usize];
        let at = list.iter().position(|open| open.logical_block == logical_block)?;
        let open = list.remove(at);
        list.push(open);
        Some(open)
    }

    fn new_replacement(&mut self, unit: u32, logical_block: u32, steps: &mut Vec<Step>) -> u32 {
        if self.open[unit as usize].len() == self.open_max {
            let oldest = self.open[unit as usize].remove(0);
            self.close(oldest, steps);
        }
        let block = self.space.take_free(unit);
        self.open[unit as usize].push(Open { logical_block, block });
        block
    }
}

impl BlockFtl for Replacement {
    fn over(space: BlockSpace, config: &DeviceConfig) -> Self {
        Self::new(space, config.ftl.replacement_blocks)
    }

    fn space(&self) -> &BlockSpace {
        &self.space
    }

    fn space_mut(&mut self) -> &mut BlockSpace {
        &mut self.space
    }

    fn write(&mut self, logical_page: u32, steps: &mut Vec<Step>) {
        let at = self.space.address(logical_page);
        let mut block = NONE;
        if let Some(open) = self.open_replacement(at.unit, at.logical_block) {
            if at.offset >= self.space.pointer(open.block) {
                block = open.block;
            } else {
                self.open[at.unit as usize].pop();
                self.close(open, steps);
            }
        } else {
            let data = self.space.data_block(at.logical_block).unwrap_or_else(|| {
                let block = self.space.take_free(at.unit);
                self.space.set_data_block(at.logical_block, block);
                block
            });
            if at.offset >= self.space.pointer(data) {
                let slot = self.space.program(data, at.offset, logical_page);
                return steps.push(Step::Program { slot });
            }
        }
        if block == NONE {
            block = self.new_replacement(at.unit, at.logical_block, steps);
        }
        let from = self.space.pointer(block);
        self.copy(at.logical_block, block, from, at.offset, steps);
        let slot = self.space.program(block, at.offset, logical_page);
        steps.push(Step::Program { slot });
    }
}

crate::state::state! { Open { saved { logical_block, block } } }

impl State for Replacement {
    fn layout(layout: &mut Layout) {
        layout.word("Replacement { space open");
        BlockSpace::layout(layout);
        Open::layout(layout);
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let Self { space, open, open_max } = self;
        space.carry(carrier)?;
        for open in open {
            carrier.list(open)?;
            let wrong = open.iter().any(|open| !space.has(open.block) || !space.has_logical(open.logical_block));
            if carrier.is_restoring() && (wrong || open.len() > *open_max) {
                return Err(StateError::damaged("replacement blocks that no drive has"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::blocks::model::Model;
    use crate::ftl::geometry::Geometry;
    use proptest::prelude::*;

    /// Two units of 8 blocks of 4 pages; 40 logical pages are 5 logical blocks a unit.
    fn ftl(open_max: u32) -> Replacement {
        Replacement::new(BlockSpace::new(&Geometry::pages(2, 8, 4), 40), open_max)
    }

    #[test]
    fn a_sequential_overwrite_copies_nothing_and_erases_each_block_once() {
        let (mut ftl, mut model) = (ftl(1), Model::default());
        for _ in 0..3 {
            (0..40).for_each(|page| model.write(&mut ftl, page));
        }
        model.check(&ftl);
        assert_eq!(model.copies, 0);
        assert_eq!(model.erases, 2 * 10 - 2, "the last replacement of each unit is still open");
    }

    #[test]
    fn an_overwrite_in_the_middle_copies_what_stands_before_and_later_what_stands_behind() {
        let (mut ftl, mut model) = (ftl(1), Model::default());
        (0..40).for_each(|page| model.write(&mut ftl, page));
        model.write(&mut ftl, 4);
        assert_eq!((model.copies, model.erases), (2, 0), "pages 0 and 2 stand before page 4 in unit 0");
        model.write(&mut ftl, 8);
        assert_eq!((model.copies, model.erases), (3, 1), "page 6 stood behind");
        model.check(&ftl);
    }

    proptest! {
        #[test]
        fn every_page_is_found_in_its_last_version(
            pages in prop::collection::vec(0_u32..40, 1..600),
            open_max in 1_u32..=2,
        ) {
            let (mut ftl, mut model) = (ftl(open_max), Model::default());
            pages.iter().for_each(|&page| model.write(&mut ftl, page));
            model.check(&ftl);
        }
    }
}
