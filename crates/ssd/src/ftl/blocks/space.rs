//! Blocks, their write pointers and the maps that all block-mapping FTLs share.

use std::collections::VecDeque;

use crate::ftl::KeptAs;
use crate::ftl::geometry::Geometry;
use crate::ftl::mapping::{FillRule, Mapping};
use crate::list::NONE;
use crate::reciprocal::Divisor;
use crate::state::{Carried, Carrier, Layout, State, StateError};

/// Where a logical page belongs inside its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Parallel unit.
    pub(crate) unit: u32,
    /// Logical block, counted over the drive: unit by unit.
    pub(crate) logical_block: u32,
    /// Page in the logical block.
    pub(crate) offset: u32,
}

/// One physical block.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// The first page that may still be programmed: pages are programmed in ascending order.
    pointer: u32,
    /// Valid pages.
    valid: u32,
    erase_count: u32,
}

/// How many erases the blocks of a unit take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Endurance {
    /// P/E cycles after which the next erase of a block fails; `None` where none does.
    pub(crate) limit: Option<u32>,
    /// Blocks of a unit that may fail before it takes no more writes: those which neither data nor merges need.
    pub(crate) spares: u32,
}

/// Blocks and maps of a drive whose FTL maps blocks; a slot is a page, `block · pages + offset`.
pub(crate) struct BlockSpace {
    units: u32,
    blocks_per_unit: u32,
    pages: u32,
    logical_blocks_per_unit: u32,
    mapping: Mapping,
    blocks: Vec<Block>,
    /// Erased blocks of each unit, first erased first used.
    free: Vec<VecDeque<u32>>,
    /// The data block of each logical block; `NONE` where nothing was written.
    data_block: Vec<u32>,
    endurance: Endurance,
    /// Blocks of each unit that failed and are set aside.
    failed: Vec<u32>,
    is_worn_out: bool,
}

impl BlockSpace {
    /// An empty drive of `logical_pages` pages.
    pub(crate) fn new(geometry: &Geometry, logical_pages: u64) -> Self {
        let (units, blocks_per_unit, pages) = (geometry.units, geometry.superblocks, geometry.rows);
        let pages_of_unit = logical_pages.div_ceil(u64::from(units));
        let logical_blocks_per_unit = pages_of_unit.div_ceil(u64::from(pages)) as u32;
        Self {
            units,
            blocks_per_unit,
            pages,
            logical_blocks_per_unit,
            mapping: Mapping::new(logical_pages, geometry.total_slots()),
            blocks: vec![Block::default(); (units * blocks_per_unit) as usize],
            free: (0..units).map(|unit| (unit * blocks_per_unit..(unit + 1) * blocks_per_unit).collect()).collect(),
            data_block: vec![NONE; (units * logical_blocks_per_unit) as usize],
            endurance: Endurance::default(),
            failed: vec![0; units as usize],
            is_worn_out: false,
        }
    }

    /// The same, with blocks that wear out after `limit` P/E cycles; a unit needs `kept` of them beside those of data.
    pub(crate) fn wearing_out(mut self, limit: Option<u32>, kept: u32) -> Self {
        let spares = self.blocks_per_unit.saturating_sub(self.logical_blocks_per_unit + kept);
        self.endurance = Endurance { limit, spares };
        self
    }

    pub(crate) fn units(&self) -> u32 {
        self.units
    }

    /// Blocks of the drive.
    #[cfg(test)]
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    pub(crate) fn pages_per_block(&self) -> u32 {
        self.pages
    }

    /// Where a logical page belongs.
    pub(crate) fn address(&self, logical_page: u32) -> Address {
        let (unit, index) = (logical_page % self.units, logical_page / self.units);
        Address {
            unit,
            logical_block: unit * self.logical_blocks_per_unit + index / self.pages,
            offset: index % self.pages,
        }
    }

    /// Whether a logical block is the first of its unit.
    pub(crate) fn is_first_of_unit(&self, logical_block: u32) -> bool {
        logical_block.is_multiple_of(self.logical_blocks_per_unit)
    }

    /// The logical page at an offset of a logical block.
    pub(crate) fn page_at(&self, logical_block: u32, offset: u32) -> u32 {
        let (unit, block) =
            (logical_block / self.logical_blocks_per_unit, logical_block % self.logical_blocks_per_unit);
        (block * self.pages + offset) * self.units + unit
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mapping.mapped() == 0
    }

    pub(crate) fn slot_of(&self, logical_page: u32) -> Option<u32> {
        self.mapping.slot_of(logical_page)
    }

    /// The newest copy of the page at an offset of a logical block.
    pub(crate) fn newest(&self, logical_block: u32, offset: u32) -> Option<(u32, u32)> {
        let page = self.page_at(logical_block, offset);
        // The last logical block of a unit may reach behind the drive.
        let slot = self.mapping.slot_of(page)?;
        Some((page, slot))
    }

    pub(crate) fn page_in(&self, slot: u32) -> Option<u32> {
        self.mapping.page_in(slot)
    }

    pub(crate) fn data_block(&self, logical_block: u32) -> Option<u32> {
        Some(self.data_block[logical_block as usize]).filter(|&block| block != NONE)
    }

    pub(crate) fn set_data_block(&mut self, logical_block: u32, block: u32) {
        self.data_block[logical_block as usize] = block;
    }

    /// The first page of a block that may still be programmed.
    pub(crate) fn pointer(&self, block: u32) -> u32 {
        self.blocks[block as usize].pointer
    }

    pub(crate) fn valid(&self, block: u32) -> u32 {
        self.blocks[block as usize].valid
    }

    pub(crate) fn erase_counts(&self) -> impl Iterator<Item = u32> + Clone {
        self.blocks.iter().map(|block| block.erase_count)
    }

    pub(crate) fn endurance(&self) -> Endurance {
        self.endurance
    }

    /// Whether a unit has lost more blocks than it can spare.
    pub(crate) fn is_worn_out(&self) -> bool {
        self.is_worn_out
    }

    /// A clean block of a unit; the check of the configuration leaves every FTL enough of them.
    pub(crate) fn take_free(&mut self, unit: u32) -> u32 {
        let block = self.free[unit as usize].pop_front();
        debug_assert!(block.is_some(), "unit {unit} has no clean block left");
        block.unwrap_or(NONE)
    }

    /// Programs the newest copy of a logical page at an offset of a block; gives the slot.
    pub(crate) fn program(&mut self, block: u32, offset: u32, logical_page: u32) -> u32 {
        let slot = block * self.pages + offset;
        let state = &mut self.blocks[block as usize];
        debug_assert!(offset >= state.pointer, "the pages of a block are programmed in order");
        state.pointer = offset + 1;
        state.valid += 1;
        if let Some(old) = self.mapping.map(logical_page, slot) {
            self.blocks[(old / self.pages) as usize].valid -= 1;
        }
        slot
    }

    /// Forgets a logical page; gives the slot that held it.
    pub(crate) fn trim(&mut self, logical_page: u32) -> Option<u32> {
        let slot = self.mapping.unmap(logical_page)?;
        self.blocks[(slot / self.pages) as usize].valid -= 1;
        Some(slot)
    }

    /// Erases a block that holds nothing valid; it is clean and free again, unless it is worn out.
    pub(crate) fn erase(&mut self, block: u32) {
        let state = &mut self.blocks[block as usize];
        debug_assert_eq!(state.valid, 0, "nothing valid is ever erased");
        state.pointer = 0;
        state.erase_count += 1;
        let unit = (block / self.blocks_per_unit) as usize;
        if self.endurance.limit.is_some_and(|limit| state.erase_count > limit) {
            if self.failed[unit] < self.endurance.spares {
                self.failed[unit] += 1;
                return;
            }
            // What is being written still needs the block; the drive takes no other write.
            self.is_worn_out = true;
        }
        self.free[unit].push_back(block);
    }

    /// Writes the logical pages below `pages` of an empty drive, each into its place in its data block.
    pub(crate) fn fill_in_order(&mut self, pages: u32, kept: KeptAs) {
        for logical_block in 0..self.units * self.logical_blocks_per_unit {
            let first = self.page_at(logical_block, 0);
            if first >= pages {
                continue;
            }
            let block = self.take_free(logical_block / self.logical_blocks_per_unit);
            self.set_data_block(logical_block, block);
            let filled = (pages - first).div_ceil(self.units).min(self.pages);
            let state = &mut self.blocks[block as usize];
            (state.pointer, state.valid) = (filled, filled);
        }
        let order = DataBlocks {
            filled: pages,
            blocks_per_unit: Divisor::new(self.blocks_per_unit),
            units: Divisor::new(self.units),
            pages: Divisor::new(self.pages),
        };
        self.mapping.fill(pages, Box::new(order), kept);
    }

    /// Checks the maps against each other and the counts against the maps.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.mapping.check()?;
        for (block, state) in self.blocks.iter().enumerate() {
            let first = block as u32 * self.pages;
            let valid = (first..first + self.pages).filter(|&slot| self.mapping.page_in(slot).is_some()).count() as u32;
            if valid != state.valid {
                return Err(format!("block {block} counts {} valid pages and holds {valid}", state.valid));
            }
        }
        Ok(())
    }
}

/// Where the pages of an empty drive are when they were written in order: the data blocks of a unit are its blocks, one
/// after the other.
struct DataBlocks {
    /// Logical pages that were written.
    filled: u32,
    /// What numbers are divided by.
    blocks_per_unit: Divisor,
    units: Divisor,
    pages: Divisor,
}

impl FillRule for DataBlocks {
    fn slot_of(&self, logical_page: u32) -> Option<u32> {
        let (index, unit) = self.units.divide(logical_page);
        let slots_of_unit = self.blocks_per_unit.value() * self.pages.value();
        (logical_page < self.filled).then(|| unit * slots_of_unit + index)
    }

    fn page_in(&self, slot: u32) -> Option<u32> {
        let (block, offset) = self.pages.divide(slot);
        let (unit, nth) = self.blocks_per_unit.divide(block);
        let index = u64::from(nth) * u64::from(self.pages.value()) + u64::from(offset);
        let page = index * u64::from(self.units.value()) + u64::from(unit);
        (page < u64::from(self.filled)).then_some(page as u32)
    }

    /// Successive pages are in successive units.
    fn run_from(&self, _: u32) -> u32 {
        1
    }
}

crate::state::state! { Block { saved { pointer, valid, erase_count } } }

impl State for BlockSpace {
    fn layout(layout: &mut Layout) {
        layout.word("BlockSpace { mapping blocks free data_block }");
        Block::layout(layout);
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let Self {
            units: _,
            blocks_per_unit: _,
            pages: _,
            logical_blocks_per_unit: _,
            mapping,
            blocks,
            free,
            data_block,
            endurance: _,
            failed: _,
            is_worn_out: _,
        } = self;
        mapping.carry(carrier)?;
        blocks.carry(carrier)?;
        free.iter_mut().try_for_each(|free| carrier.list(free))?;
        data_block.carry(carrier)?;
        if carrier.is_restoring() {
            self.count_failed();
            self.check_restored().map_err(StateError::damaged)?;
        }
        Ok(())
    }
}

impl BlockSpace {
    /// Failed blocks, as the erase counts have them.
    fn count_failed(&mut self) {
        let Endurance { limit, spares } = self.endurance;
        for (failed, blocks) in self.failed.iter_mut().zip(self.blocks.chunks(self.blocks_per_unit as usize)) {
            let worn =
                blocks.iter().filter(|block| limit.is_some_and(|limit| block.erase_count > limit)).count() as u32;
            *failed = worn.min(spares);
            self.is_worn_out |= worn > spares;
        }
    }

    fn check_restored(&self) -> Result<(), String> {
        let all = self.blocks.len() as u32;
        let broken = |block: u32| format!("block {block} is free twice, both used and free, or does not exist");
        let mut is_free = vec![false; self.blocks.len()];
        for (unit, free) in (0..).zip(&self.free) {
            for &block in free {
                let is_here = block / self.blocks_per_unit == unit && block < all;
                if !is_here || self.pointer(block) > 0 || std::mem::replace(&mut is_free[block as usize], true) {
                    return Err(broken(block));
                }
            }
        }
        let mut is_data = is_free;
        for &block in self.data_block.iter().filter(|&&block| block != NONE) {
            if block >= all || std::mem::replace(&mut is_data[block as usize], true) {
                return Err(broken(block));
            }
        }
        match self.blocks.iter().find(|block| block.pointer > self.pages) {
            Some(block) => Err(format!("a block is written up to page {} of {}", block.pointer, self.pages)),
            None => self.check(),
        }
    }

    /// Whether a logical block is there.
    pub(super) fn has_logical(&self, logical_block: u32) -> bool {
        (logical_block as usize) < self.data_block.len()
    }

    /// Whether a block is there.
    pub(super) fn has(&self, block: u32) -> bool {
        (block as usize) < self.blocks.len()
    }
}
