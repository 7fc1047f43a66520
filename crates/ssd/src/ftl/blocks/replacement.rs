//! Block mapping: each logical block has its data block, where each page has its place.
//!
//! A page is written into its place while that is clean. Otherwise the logical block gets a *replacement block*, of
//! which a unit has a few (`replacement_blocks`):
//!
//! ```text
//!   linear   0 1 2 3 . . . .   pages at their own offsets, in ascending order; the rest is copied behind them when it
//!                              is closed, and it becomes the data block
//!   random   5 0 3 5 . . . .   pages in the order in which they came, each mapped; closing it, or filling its log,
//!                              *merges*: the newest copy of every page goes to a clean block
//! ```
//!
//! A replacement starts linear at the first page of a logical block and stays so while pages follow one another. With
//! `random_replacement_blocks` any other page makes it random, up to that many. Without it, the pages in front of a
//! later one are copied first, and an earlier one closes the replacement and starts another. Where no replacement is
//! left, the one that was not written for longest is closed. Each way, a write beyond the open ones costs as much as
//! programming one block, however short it is.
//!
//! With `first_block_log`, the first logical block of a unit has a random replacement of its own, which is not counted
//! and is closed by no other block's write: space for the tables of a FAT file system.
//!
//! Source: the replacement blocks of Ban's NFTL as described in Kim et al., "A Space-Efficient Flash Translation Layer
//! for CompactFlash Systems", IEEE TCE 48(2), 2002, section 2, with one replacement a block and in-order programming.
//! Random ones and the first block are how Bergmann reads the measurements of memory cards in "Optimizing Linux with
//! cheap flash drives" (LWN, 2011); what the cards do inside is not published.

use super::{BlockFtl, BlockSpace};
use crate::config::DeviceConfig;
use crate::ftl::Step;
use crate::state::{Carried, Carrier, Layout, State, StateError};

/// A logical block that is in two places.
#[derive(Clone, Copy, Default)]
struct Open {
    logical_block: u32,
    block: u32,
    /// Whether its pages are in the order in which they came.
    is_random: bool,
}

/// How many logical blocks of a unit are open, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replacements {
    /// Replacements.
    pub(crate) open_max: u32,
    /// Of these, how many may be random.
    pub(crate) random_max: u32,
    /// Pages of a random one; by default those of a block.
    pub(crate) log_pages: Option<u32>,
    /// Whether the first logical block has one of its own.
    pub(crate) first_block_log: bool,
}

impl Replacements {
    /// Linear ones alone.
    #[cfg(test)]
    pub(crate) fn linear(open_max: u32) -> Self {
        Self { open_max, random_max: 0, log_pages: None, first_block_log: false }
    }
}

/// Block mapping with replacement blocks.
pub(crate) struct Replacement {
    space: BlockSpace,
    /// Open replacements of each unit, the one written last at the end.
    open: Vec<Vec<Open>>,
    rules: Replacements,
}

/// Where a page is programmed: a block, and a page in it.
type Place = (u32, u32);

impl Replacement {
    /// An empty drive.
    pub(crate) fn new(space: BlockSpace, rules: Replacements) -> Self {
        let open = (0..space.units()).map(|_| Vec::with_capacity(rules.open_max as usize + 1)).collect();
        Self { space, open, rules }
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

    fn erase(&mut self, block: u32, steps: &mut Vec<Step>) {
        self.space.erase(block);
        steps.push(Step::Erase { block });
    }

    /// Brings a logical block together: in its replacement where that is in order, else in a clean block.
    fn close(&mut self, unit: u32, open: Open, steps: &mut Vec<Step>) {
        let (data, from) = match open.is_random {
            true => (self.space.take_free(unit), 0),
            false => (open.block, self.space.pointer(open.block)),
        };
        self.copy(open.logical_block, data, from, self.space.pages_per_block(), steps);
        if open.is_random {
            self.erase(open.block, steps);
        }
        if let Some(old) = self.space.data_block(open.logical_block) {
            self.erase(old, steps);
        }
        self.space.set_data_block(open.logical_block, data);
    }

    /// Whether a logical block has a replacement that is not counted.
    fn has_own_log(&self, logical_block: u32) -> bool {
        self.rules.first_block_log && self.space.is_first_of_unit(logical_block)
    }

    /// Closes the replacement that was not written for longest, among all that are counted or among the random ones,
    /// where there are `most` already.
    fn make_space(&mut self, unit: u32, most: u32, random_only: bool, steps: &mut Vec<Step>) {
        let is_candidate = |open: &Open| (open.is_random || !random_only) && !self.has_own_log(open.logical_block);
        let list = &self.open[unit as usize];
        let oldest = list.iter().position(is_candidate);
        let candidates = list.iter().filter(|open| is_candidate(open)).count();
        if let Some(oldest) = oldest.filter(|_| candidates >= most as usize) {
            let open = self.open[unit as usize].remove(oldest);
            self.close(unit, open, steps);
        }
    }

    /// A new replacement for a logical block, of which `offset` is written first, and the place of that page.
    fn open_new(&mut self, unit: u32, logical_block: u32, offset: u32, steps: &mut Vec<Step>) -> Place {
        let has_own_log = self.has_own_log(logical_block);
        let is_random = has_own_log || (self.rules.random_max > 0 && offset > 0);
        if !has_own_log {
            if is_random {
                self.make_space(unit, self.rules.random_max, true, steps);
            }
            self.make_space(unit, self.rules.open_max, false, steps);
        }
        let block = self.space.take_free(unit);
        self.open[unit as usize].push(Open { logical_block, block, is_random });
        if is_random {
            return (block, 0);
        }
        self.copy(logical_block, block, 0, offset, steps);
        (block, offset)
    }

    /// The replacement of a logical block, moved to the end of its unit's list.
    fn replacement_of(&mut self, unit: u32, logical_block: u32) -> Option<Open> {
        let list = &mut self.open[unit as usize];
        let at = list.iter().position(|open| open.logical_block == logical_block)?;
        let open = list.remove(at);
        list.push(open);
        Some(open)
    }

    /// The next page of a replacement, which is the last in its unit's list; another replacement where this one cannot
    /// take the page.
    fn place_in(&mut self, unit: u32, open: Open, offset: u32, steps: &mut Vec<Step>) -> Place {
        let pointer = self.space.pointer(open.block);
        let becomes_random = !open.is_random && offset != pointer && self.rules.random_max > 0;
        let is_full = pointer >= self.rules.log_pages.unwrap_or(u32::MAX).min(self.space.pages_per_block());
        if open.is_random || becomes_random {
            if is_full {
                self.open[unit as usize].pop();
                self.close(unit, open, steps);
                return self.open_new(unit, open.logical_block, offset, steps);
            }
            if becomes_random {
                self.make_space(unit, self.rules.random_max, true, steps);
                if let Some(last) = self.open[unit as usize].last_mut() {
                    last.is_random = true;
                }
            }
            return (open.block, pointer);
        }
        if offset >= pointer {
            self.copy(open.logical_block, open.block, pointer, offset, steps);
            return (open.block, offset);
        }
        self.open[unit as usize].pop();
        self.close(unit, open, steps);
        self.open_new(unit, open.logical_block, offset, steps)
    }

    /// Where a page goes whose logical block has no replacement.
    fn place_unopened(&mut self, unit: u32, logical_block: u32, offset: u32, steps: &mut Vec<Step>) -> Place {
        let data = self.space.data_block(logical_block).unwrap_or_else(|| {
            let block = self.space.take_free(unit);
            self.space.set_data_block(logical_block, block);
            block
        });
        match offset >= self.space.pointer(data) {
            true => (data, offset),
            false => self.open_new(unit, logical_block, offset, steps),
        }
    }
}

impl BlockFtl for Replacement {
    fn over(space: BlockSpace, config: &DeviceConfig) -> Self {
        let ftl = &config.ftl;
        let rules = Replacements {
            open_max: ftl.replacement_blocks,
            random_max: ftl.random_replacement_blocks,
            log_pages: ftl.random_log_pages,
            first_block_log: ftl.first_block_log,
        };
        Self::new(space, rules)
    }

    fn space(&self) -> &BlockSpace {
        &self.space
    }

    fn space_mut(&mut self) -> &mut BlockSpace {
        &mut self.space
    }

    fn write(&mut self, logical_page: u32, steps: &mut Vec<Step>) {
        let at = self.space.address(logical_page);
        let (block, offset) = match self.replacement_of(at.unit, at.logical_block) {
            Some(open) => self.place_in(at.unit, open, at.offset, steps),
            None => self.place_unopened(at.unit, at.logical_block, at.offset, steps),
        };
        let slot = self.space.program(block, offset, logical_page);
        steps.push(Step::Program { slot });
    }
}

crate::state::state! { Open { saved { logical_block, block, is_random } } }

impl State for Replacement {
    fn layout(layout: &mut Layout) {
        layout.word("Replacement { space open");
        BlockSpace::layout(layout);
        Open::layout(layout);
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let Self { space, open, rules } = self;
        let open_max = (rules.open_max + u32::from(rules.first_block_log)) as usize;
        space.carry(carrier)?;
        for open in open {
            carrier.list(open)?;
            let wrong = open.iter().any(|open| !space.has(open.block) || !space.has_logical(open.logical_block));
            if carrier.is_restoring() && (wrong || open.len() > open_max) {
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
        Replacement::new(BlockSpace::new(&Geometry::pages(2, 8, 4), 40), Replacements::linear(open_max))
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

    /// One unit of blocks of 8 pages, all 6 logical blocks written.
    fn card(rules: Replacements) -> (Replacement, Model) {
        let mut ftl = Replacement::new(BlockSpace::new(&Geometry::pages(1, 16, 8), 48), rules);
        let mut model = Model::default();
        (0..48).for_each(|page| model.write(&mut ftl, page));
        (model.copies, model.erases) = (0, 0);
        (ftl, model)
    }

    fn random(open_max: u32, random_max: u32) -> Replacements {
        Replacements { random_max, ..Replacements::linear(open_max) }
    }

    #[test]
    fn a_random_replacement_takes_a_blocks_pages_in_any_order_before_it_is_merged() {
        let (mut ftl, mut model) = card(random(2, 2));
        let order = [5, 0, 3, 5, 7, 1, 2, 6];
        order.iter().for_each(|&page| model.write(&mut ftl, page));
        assert_eq!((model.copies, model.erases), (0, 0));
        model.write(&mut ftl, 4);
        assert_eq!((model.copies, model.erases), (8, 2), "the log is full: all eight pages go to a clean block");
        model.check(&ftl);
    }

    #[test]
    fn a_write_beyond_the_open_blocks_costs_one_merge_however_long_it_is() {
        for (pages, rules) in [(1, random(2, 2)), (3, random(2, 2)), (1, random(2, 0)), (3, random(2, 0))] {
            let (mut ftl, mut model) = card(rules);
            // Three logical blocks in rotation where two may be open: each write closes the block of the one before
            // the last, and from its second round on each costs the programs of one block, eight pages.
            for offset in (0..8 / pages).map(|n| n * pages) {
                for logical_block in [0, 2, 4] {
                    (0..pages).for_each(|n| model.write(&mut ftl, logical_block * 8 + offset + n));
                }
            }
            let rounds = u64::from(8 / pages);
            // Where a closed block is merged, the host's pages are programmed twice.
            let once = if rules.random_max > 0 { 0 } else { rounds * 3 * u64::from(pages) };
            let programs = model.copies + once;
            // The first two find a free replacement, and the last two are not closed yet.
            let closed = rounds * 3 - 2;
            assert!(programs.abs_diff(closed * 8) <= 16, "{pages}: {programs} programs, {closed} merges");
            model.check(&ftl);
        }
    }

    #[test]
    fn linear_blocks_stay_open_beside_the_few_that_may_be_random() {
        let (mut ftl, mut model) = card(random(4, 1));
        for offset in 0..8 {
            [0, 1, 2, 3].iter().for_each(|logical_block| model.write(&mut ftl, logical_block * 8 + offset));
        }
        assert_eq!(model.copies, 0, "four blocks are written in order");
        for offset in [3, 1] {
            [0, 1].iter().for_each(|logical_block| model.write(&mut ftl, logical_block * 8 + offset));
        }
        assert_eq!(model.copies, 3 * 8, "of two in another order, each write merges the other's");
        model.check(&ftl);
    }

    #[test]
    fn the_first_block_has_a_log_that_no_other_block_closes() {
        let mut rules = random(1, 0);
        let writes = [0, 8, 3, 9, 1, 10, 5];
        let (mut ftl, mut model) = card(rules);
        writes.iter().for_each(|&page| model.write(&mut ftl, page));
        assert!(model.copies > 0);
        rules.first_block_log = true;
        let (mut ftl, mut model) = card(rules);
        writes.iter().for_each(|&page| model.write(&mut ftl, page));
        assert_eq!(model.copies, 0);
        (0..8).for_each(|page| model.write(&mut ftl, page));
        assert_eq!(model.copies, 8, "bulk data fills the log, which is merged although it is in order");
        model.check(&ftl);
    }

    /// What the rules on this file's first page cost, without blocks and maps: one unit, all of it written.
    struct Rules {
        pages: u32,
        rules: Replacements,
        /// Logical block, pages of it that were programmed, and whether it is random; the one written last at the end.
        open: Vec<(u32, Vec<u32>, bool)>,
        copies: u64,
        erases: u64,
    }

    impl Rules {
        fn close(&mut self, at: usize) {
            let (_, written, is_random) = self.open.remove(at);
            let end = written.last().map_or(0, |last| last + 1);
            self.copies += u64::from(if is_random { self.pages } else { self.pages - end });
            self.erases += if is_random { 2 } else { 1 };
        }

        fn close_oldest(&mut self, most: u32, random_only: bool) {
            let own = self.rules.first_block_log;
            let of: Vec<usize> = (0..self.open.len())
                .filter(|&n| !(own && self.open[n].0 == 0) && (self.open[n].2 || !random_only))
                .collect();
            if of.len() >= most as usize {
                self.close(of[0]);
            }
        }

        fn write(&mut self, page: u32) {
            let (block, offset) = (page / self.pages, page % self.pages);
            let own = self.rules.first_block_log && block == 0;
            let log = self.rules.log_pages.unwrap_or(self.pages);
            if let Some(at) = self.open.iter().position(|open| open.0 == block) {
                let (_, mut written, is_random) = self.open.remove(at);
                let next = if is_random { written.len() as u32 } else { written.last().map_or(0, |last| last + 1) };
                let in_order = offset == next || (self.rules.random_max == 0 && offset > next);
                if !is_random && in_order {
                    self.copies += u64::from(offset - next);
                    written.push(offset);
                    return self.open.push((block, written, false));
                }
                let may_be_random = is_random || self.rules.random_max > 0;
                if may_be_random && next < log {
                    if !is_random {
                        self.close_oldest(self.rules.random_max, true);
                        written = (0..next).collect();
                    }
                    written.push(offset);
                    return self.open.push((block, written, true));
                }
                self.open.push((block, written, is_random));
                self.close(self.open.len() - 1);
            }
            let is_random = own || (self.rules.random_max > 0 && offset > 0);
            if !own {
                if is_random {
                    self.close_oldest(self.rules.random_max, true);
                }
                self.close_oldest(self.rules.open_max, false);
            }
            self.copies += if is_random { 0 } else { u64::from(offset) };
            self.open.push((block, vec![offset], is_random));
        }
    }

    proptest! {
        #[test]
        fn every_page_is_found_in_its_last_version_at_the_cost_that_the_rules_give(
            pages in prop::collection::vec(0_u32..48, 1..400),
            runs in 1_u32..6,
            (open_max, random_max, log_pages) in (1_u32..=4, 0_u32..=4, prop::option::of(1_u32..=8)),
            first_block_log: bool,
        ) {
            let rules = Replacements { open_max, random_max: random_max.min(open_max), log_pages, first_block_log };
            let (mut ftl, mut model) = card(rules);
            let mut naive = Rules { pages: 8, rules, open: Vec::new(), copies: 0, erases: 0 };
            for page in pages.iter().flat_map(|&page| page..(page + runs).min(48)) {
                model.write(&mut ftl, page);
                naive.write(page);
                prop_assert_eq!((model.copies, model.erases), (naive.copies, naive.erases));
            }
            model.check(&ftl);
        }

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
