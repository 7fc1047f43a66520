//! FAST: data blocks in place, and log blocks that all logical blocks of a unit share.
//!
//! ```text
//!   write ─▶ its place in the data block is clean? ─▶ there
//!         ─▶ first page of a logical block          ─▶ a new sequential log block (the present one is merged first)
//!         ─▶ next page of the sequential log block  ─▶ there
//!         ─▶ anything else                          ─▶ end of the random log; the oldest log block is merged when full
//! ```
//!
//! The sequential log block ends as a *switch merge* when it is full (it becomes the data block) or a *partial merge*
//! (the rest is copied behind it first). A random log block ends in *full merges*: each logical block that still has a
//! valid page in it is brought together in a clean block.
//!
//! Source: Lee et al., "A Log Buffer-Based Flash Translation Layer Using Fully-Associative Sector Translation", ACM
//! TECS 6(3), 2007, sections 3 and 4.

use std::collections::VecDeque;

use super::{BlockFtl, BlockSpace};
use crate::config::DeviceConfig;
use crate::ftl::Step;
use crate::list::NONE;

/// The log blocks of one unit.
#[derive(Clone, Default)]
struct Log {
    /// The logical block that the sequential log block belongs to, and that log block.
    sequential: Option<(u32, u32)>,
    /// Random log blocks, oldest first; the last one is being filled.
    random: VecDeque<u32>,
}

/// The FAST FTL.
pub(crate) struct Fast {
    space: BlockSpace,
    logs: Vec<Log>,
    random_max: usize,
}

impl Fast {
    /// An empty drive; a unit has one sequential and at most `random_max` random log blocks.
    pub(crate) fn new(space: BlockSpace, random_max: u32) -> Self {
        let logs = vec![Log::default(); space.units() as usize];
        Self { space, logs, random_max: random_max as usize }
    }

    /// Copies the newest version of the pages `from..` of a logical block to their places in `block`.
    fn copy_rest(&mut self, logical_block: u32, block: u32, from: u32, steps: &mut Vec<Step>) {
        for offset in from..self.space.pages_per_block() {
            if let Some((page, from)) = self.space.newest(logical_block, offset) {
                let to = self.space.program(block, offset, page);
                steps.push(Step::Copy { from, to });
            }
        }
    }

    /// Makes `block` the data block of a logical block; the one before holds nothing valid any more.
    fn replace_data_block(&mut self, logical_block: u32, block: u32, steps: &mut Vec<Step>) {
        if let Some(old) = self.space.data_block(logical_block) {
            self.space.erase(old);
            steps.push(Step::Erase { block: old });
        }
        self.space.set_data_block(logical_block, block);
    }

    /// Ends the sequential log block of a unit: it becomes a data block, with the rest copied behind it.
    ///
    /// A page of it that was overwritten in the random log meanwhile has left a hole, which only a full merge closes.
    fn merge_sequential(&mut self, unit: u32, steps: &mut Vec<Step>) {
        let Some((logical_block, block)) = self.logs[unit as usize].sequential.take() else { return };
        let pointer = self.space.pointer(block);
        if self.space.valid(block) == pointer {
            self.copy_rest(logical_block, block, pointer, steps);
            self.replace_data_block(logical_block, block, steps);
        } else {
            self.full_merge(unit, logical_block, steps);
            self.space.erase(block);
            steps.push(Step::Erase { block });
        }
    }

    /// Brings a logical block together in a clean block.
    fn full_merge(&mut self, unit: u32, logical_block: u32, steps: &mut Vec<Step>) {
        let block = self.space.take_free(unit);
        self.copy_rest(logical_block, block, 0, steps);
        self.replace_data_block(logical_block, block, steps);
    }

    /// Merges every logical block that has a valid page in a unit's oldest random log block, and erases that.
    fn merge_random(&mut self, unit: u32, steps: &mut Vec<Step>) {
        let Some(victim) = self.logs[unit as usize].random.pop_front() else { return };
        let first = victim * self.space.pages_per_block();
        for slot in first..first + self.space.pages_per_block() {
            let Some(page) = self.space.page_in(slot) else { continue };
            let logical_block = self.space.address(page).logical_block;
            let sequential = self.logs[unit as usize].sequential;
            self.full_merge(unit, logical_block, steps);
            // The sequential log block of the same logical block has lost all that was valid.
            if let Some((_, block)) = sequential.filter(|&(owner, _)| owner == logical_block) {
                self.logs[unit as usize].sequential = None;
                self.space.erase(block);
                steps.push(Step::Erase { block });
            }
        }
        self.space.erase(victim);
        steps.push(Step::Erase { block: victim });
    }

    /// The place of a page that starts or continues with a sequential log block.
    fn sequential_place(&mut self, unit: u32, logical_block: u32, offset: u32, steps: &mut Vec<Step>) -> Option<u32> {
        if offset == 0 {
            self.merge_sequential(unit, steps);
            let block = self.space.take_free(unit);
            self.logs[unit as usize].sequential = Some((logical_block, block));
            return Some(block);
        }
        let (owner, block) = self.logs[unit as usize].sequential?;
        (owner == logical_block && self.space.pointer(block) == offset).then_some(block)
    }

    /// The random log block that has room.
    fn random_place(&mut self, unit: u32, steps: &mut Vec<Step>) -> u32 {
        if let Some(&last) = self.logs[unit as usize].random.back()
            && self.space.pointer(last) < self.space.pages_per_block()
        {
            return last;
        }
        if self.logs[unit as usize].random.len() == self.random_max {
            self.merge_random(unit, steps);
        }
        let block = self.space.take_free(unit);
        self.logs[unit as usize].random.push_back(block);
        block
    }

    /// The data block of a logical block, if a page's place in it is clean.
    fn clean_place(&mut self, unit: u32, logical_block: u32, offset: u32) -> Option<u32> {
        let block = self.space.data_block(logical_block).unwrap_or(NONE);
        if block != NONE {
            return (offset >= self.space.pointer(block)).then_some(block);
        }
        let block = self.space.take_free(unit);
        self.space.set_data_block(logical_block, block);
        Some(block)
    }
}

impl BlockFtl for Fast {
    fn over(space: BlockSpace, config: &DeviceConfig) -> Self {
        Self::new(space, config.ftl.log_blocks)
    }

    fn space(&self) -> &BlockSpace {
        &self.space
    }

    fn space_mut(&mut self) -> &mut BlockSpace {
        &mut self.space
    }

    fn write(&mut self, logical_page: u32, steps: &mut Vec<Step>) {
        let at = self.space.address(logical_page);
        let place = self.clean_place(at.unit, at.logical_block, at.offset);
        let slot = if let Some(block) = place {
            self.space.program(block, at.offset, logical_page)
        } else if let Some(block) = self.sequential_place(at.unit, at.logical_block, at.offset, steps) {
            self.space.program(block, at.offset, logical_page)
        } else {
            let block = self.random_place(at.unit, steps);
            let offset = self.space.pointer(block);
            self.space.program(block, offset, logical_page)
        };
        steps.push(Step::Program { slot });
    }
}

crate::state::state! {
    Log {
        saved { sequential }
        lists { random }
    }
}

crate::state::state! {
    Fast {
        saved { space, logs }
        built { random_max }
    }
    checked check_restored
}

impl Fast {
    fn check_restored(&self) -> Result<(), String> {
        for log in &self.logs {
            let sequential = log.sequential.iter().map(|&(_, block)| block);
            if sequential.chain(log.random.iter().copied()).any(|block| !self.space.has(block)) {
                return Err("a log block that does not exist".to_owned());
            }
            if log.random.len() > self.random_max {
                return Err(format!("{} random log blocks of {}", log.random.len(), self.random_max));
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

    /// One unit of 10 blocks of 4 pages; 20 logical pages are 5 logical blocks.
    fn ftl(random_max: u32) -> Fast {
        Fast::new(BlockSpace::new(&Geometry::pages(1, 10, 4), 20), random_max)
    }

    fn filled(random_max: u32) -> (Fast, Model) {
        let (mut ftl, mut model) = (ftl(random_max), Model::default());
        (0..20).for_each(|page| model.write(&mut ftl, page));
        assert_eq!((model.copies, model.erases), (0, 0));
        (ftl, model)
    }

    #[test]
    fn a_sequential_overwrite_ends_in_switch_merges() {
        let (mut ftl, mut model) = filled(2);
        (0..20).for_each(|page| model.write(&mut ftl, page));
        model.check(&ftl);
        assert_eq!((model.copies, model.erases), (0, 4), "the last sequential log block is still open");
    }

    #[test]
    fn a_half_sequential_overwrite_ends_in_a_partial_merge() {
        let (mut ftl, mut model) = filled(2);
        [0, 1, 4].iter().for_each(|&page| model.write(&mut ftl, page));
        model.check(&ftl);
        assert_eq!((model.copies, model.erases), (2, 1), "pages 2 and 3 are copied behind pages 0 and 1");
    }

    #[test]
    fn random_overwrites_share_log_blocks_and_end_in_full_merges() {
        let (mut ftl, mut model) = filled(1);
        [1, 5, 9, 13].iter().for_each(|&page| model.write(&mut ftl, page));
        assert_eq!((model.copies, model.erases), (0, 0), "they share one log block");
        model.write(&mut ftl, 17);
        model.check(&ftl);
        assert_eq!((model.copies, model.erases), (16, 5), "four logical blocks are merged, then the log is erased");
    }

    proptest! {
        #[test]
        fn every_page_is_found_in_its_last_version(
            pages in prop::collection::vec(0_u32..20, 1..600),
            random_max in 1_u32..=2,
        ) {
            let (mut ftl, mut model) = (ftl(random_max), Model::default());
            pages.iter().for_each(|&page| model.write(&mut ftl, page));
            model.check(&ftl);
        }

        #[test]
        fn sequential_runs_of_any_length_keep_every_page(
            runs in prop::collection::vec((0_u32..20, 1_u32..12), 1..60),
            random_max in 1_u32..=2,
        ) {
            let (mut ftl, mut model) = (ftl(random_max), Model::default());
            for (start, length) in runs {
                (start..(start + length).min(20)).for_each(|page| model.write(&mut ftl, page));
            }
            model.check(&ftl);
        }
    }
}
