//! Page mapping inside elements: each flash package is a log-structured drive of its own.
//!
//! The address of a page says in which element it lies; the element's own rules say in which of its planes, and when a
//! plane is cleaned. An element does one page operation at a time, in the order of arrival, array time and transfer one
//! after the other:
//!
//! ```text
//!   page ─▶ element = page ÷ stride mod elements
//!             │   while a plane has too few free blocks: clean a block of it        cleaning.rs
//!             ▼
//!           plane with the most free pages, behind the old copy in the order of blocks
//!             ▼
//!           next page of its active block ─▶ the last one: summary page, block sealed
//! ```
//!
//! Since nothing that comes later changes what an element does with an operation, the end of each operation is known
//! when it arrives: an element is a time at which it is free, not a queue.
//!
//! A move that cleaning makes stays in its plane and needs no transfer (copy-back). A page is written whole whatever
//! part of it the host writes, without being read before. Blocks are opened in the order of their rows, round and
//! round, each with the next sequence number of its element.
//!
//! Source: Agrawal et al., "Design Tradeoffs for SSD Performance", USENIX ATC 2008; the rules are those of its
//! simulator, the SSD model of DiskSim 4.0, with one parallel unit an element and copy-back.

mod block_order;
mod cleaning;
mod fullness;

use std::collections::BTreeMap;

use flashwise_block::FlashCounters;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::geometry::Geometry;
use super::mapping::Mapping;
use super::{Ftl, KeptAs, histogram};
use crate::config::{AllocationPool, BlockOrder, CleaningMode, DeviceConfig};
use crate::flash::{KnownOp, OpClass, Statistics};
use crate::memory::prefetch;
use crate::payload::Payload;
use crate::reciprocal::Divisor;
use crate::state::{Layout, State as Saved};
use block_order::BlocksInOrder;
use cleaning::CleaningRules;
use fullness::Fullness;

/// What a block is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Erased.
    #[default]
    Free,
    /// Being written, or left half-written.
    Open,
    /// Full, summary page included.
    Sealed,
}

/// A block.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// When it was opened, counted over the element's blocks; 0 when it is erased.
    sequence: u32,
    valid: u16,
    state: State,
}

/// How worn a block is.
#[derive(Clone, Copy, Debug)]
struct Wear {
    /// P/E cycles that are left.
    life: u32,
    erased_at_ns: u64,
}

/// A plane.
#[derive(Clone, Copy, Debug)]
struct Plane {
    /// The block that is written, counted over the drive.
    active: u32,
    /// Its sequence number, 0 when it has been erased meanwhile.
    sequence: u32,
    /// The page of it that is written next; its data pages when it is full.
    next_page: u32,
    /// Free blocks.
    free: u32,
    /// The row from which the next free block is looked for.
    cursor: u32,
    /// Sum of what its blocks have left of life.
    life: u64,
}

/// An element.
#[derive(Clone, Copy, Debug, Default)]
struct Element {
    /// When it has done all that was asked of it.
    free_at_ns: u64,
    /// The plane from which the choice for a write starts.
    write_cursor: u32,
    /// The plane from which the search for one to clean starts.
    clean_cursor: u32,
    /// Planes with too few free blocks.
    low_planes: u32,
    /// The next sequence number.
    sequence: u32,
}

/// How many there are of everything.
#[derive(Clone, Copy, Debug)]
struct Shape {
    elements: u32,
    /// Planes of an element.
    planes: u32,
    /// Blocks of a plane.
    blocks: u32,
    /// Pages of a block, and those of them that hold data.
    pages: u32,
    data_pages: u32,
    /// Successive pages in one element.
    stride: u32,
    /// Blocks of a plane that a full drive fills.
    data_rows: u32,
    by: Divisors,
}

/// What is divided by on the path of every page.
#[derive(Clone, Copy, Debug)]
struct Divisors {
    elements: Divisor,
    planes: Divisor,
    blocks: Divisor,
    pages: Divisor,
    stride: Divisor,
}

impl Shape {
    /// A plane, counted over the drive, behind its element.
    fn element_and_plane(&self, plane: u32) -> (u32, u32) {
        (self.by.planes.quotient(plane), plane)
    }

    /// The block of a slot.
    fn block_of(&self, slot: u32) -> u32 {
        self.by.pages.quotient(slot)
    }

    /// The plane of a block, and its row there.
    fn plane_and_row(&self, block: u32) -> (u32, u32) {
        self.by.blocks.divide(block)
    }
}

/// How long an element's steps take, ns.
#[derive(Clone, Copy, Debug)]
struct Times {
    sense_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    /// A page on the way between its plane and the controller.
    page_ns: u64,
    /// What is transferred of a summary page.
    summary_ns: u64,
    /// Summary pages of a block.
    summary_pages: u32,
}

/// Bytes of a summary page that are transferred.
const SUMMARY_BYTES: u64 = 512;

/// What an operation does outside the FTL.
pub(crate) struct Effects<'a> {
    pub(crate) payload: &'a mut Payload,
    pub(crate) counters: &'a mut FlashCounters,
    pub(crate) statistics: &'a mut Statistics,
}

impl Effects<'_> {
    /// An element's array does an operation; gives the time that it takes.
    fn in_array(&mut self, at: (u32, u32), class: OpClass, array_ns: u64) -> u64 {
        self.statistics.done(KnownOp { at, class, waiting_ns: 0, array_ns, transfer_ns: 0, bytes: 0 });
        array_ns
    }
}

/// What cleaning has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleaningStatistics {
    /// Blocks cleaned.
    pub cleans: u64,
    /// Valid pages moved out of them.
    pub pages_moved: u64,
    /// Times that cold data was brought to a worn block.
    pub migrations: u64,
    /// Pages moved so.
    pub pages_migrated: u64,
    /// Blocks filled, each with its summary pages.
    pub blocks_sealed: u64,
}

/// The elements of a drive.
pub(crate) struct Elements {
    shape: Shape,
    times: Times,
    low_blocks: u32,
    /// Erasures that a new block has before it.
    lifetime: u32,
    page_bytes: u64,
    pool: AllocationPool,
    order: BlockOrder,
    background: bool,
    rules: CleaningRules,
    mapping: Mapping,
    elements: Vec<Element>,
    planes: Vec<Plane>,
    blocks: Vec<Block>,
    wear: Vec<Wear>,
    /// Free blocks of each plane, as bits.
    free: Vec<u64>,
    fullness: Fullness,
    random: Pcg64Mcg,
    statistics: CleaningStatistics,
}

impl Elements {
    /// An empty drive; `seed` drives what wear-aware cleaning draws.
    pub(crate) fn new(config: &DeviceConfig, seed: u64) -> Self {
        let (flash, element) = (&config.flash, &config.ftl.element);
        let shape = Shape {
            elements: flash.channels,
            planes: flash.planes_per_die,
            blocks: flash.blocks_per_plane,
            pages: flash.pages_per_block,
            data_pages: flash.pages_per_block - element.summary_pages_per_block,
            stride: element.stride_pages,
            data_rows: element.data_rows(config),
            by: Divisors {
                elements: Divisor::new(flash.channels),
                planes: Divisor::new(flash.planes_per_die),
                blocks: Divisor::new(flash.blocks_per_plane),
                pages: Divisor::new(flash.pages_per_block),
                stride: Divisor::new(element.stride_pages),
            },
        };
        let planes = shape.elements * shape.planes;
        let blocks = planes as usize * shape.blocks as usize;
        let words = shape.blocks.div_ceil(64) as usize;
        let plane = Plane { active: 0, sequence: 0, next_page: shape.data_pages, free: 0, cursor: 0, life: 0 };
        let mut elements = Self {
            shape,
            times: Times::new(config),
            low_blocks: element.low_blocks(flash.blocks_per_plane),
            lifetime: element.lifetime_erasures,
            page_bytes: flash.page_bytes,
            pool: element.allocation_pool,
            order: element.block_order,
            background: element.cleaning_mode == CleaningMode::Background,
            rules: CleaningRules::new(element),
            mapping: Mapping::new(config.logical_pages(), blocks as u64 * u64::from(shape.pages)),
            elements: vec![
                Element { sequence: 1, low_planes: shape.planes, ..Element::default() };
                shape.elements as usize
            ],
            planes: vec![plane; planes as usize],
            blocks: vec![Block::default(); blocks],
            wear: vec![Wear { life: element.lifetime_erasures, erased_at_ns: 0 }; blocks],
            free: vec![0; planes as usize * words],
            fullness: Fullness::new(planes, shape.blocks, shape.data_pages),
            random: Pcg64Mcg::seed_from_u64(seed),
            statistics: CleaningStatistics::default(),
        };
        for plane in 0..planes {
            elements.planes[plane as usize].life = u64::from(shape.blocks) * u64::from(element.lifetime_erasures);
            (0..shape.blocks).for_each(|row| elements.set_free(plane, row, true));
        }
        (0..shape.elements).for_each(|element| elements.open_in_every_plane(element));
        elements
    }

    fn open_in_every_plane(&mut self, element: u32) {
        let first = element * self.shape.planes;
        (first..first + self.shape.planes).for_each(|plane| self.open_block(plane));
    }

    /// Fills the drive in the order of blocks ([`block_order`]). The last of these blocks counts as still being
    /// written, which is how the model has it.
    pub(crate) fn fill_in_block_order(&mut self, kept: KeptAs) {
        let Shape { elements, planes, data_rows, data_pages, .. } = self.shape;
        let order = BlocksInOrder::new(self.shape, self.order);
        for element in 0..elements {
            self.close_empty_blocks(element);
            for n in 0..data_rows * planes {
                let (plane, row) = order.block(element, n);
                let block = plane * self.shape.blocks + row;
                self.set_free(plane, row, false);
                self.blocks[block as usize] = Block { sequence: n + 1, valid: data_pages as u16, state: State::Open };
                if n + 1 < data_rows * planes {
                    self.seal(plane, block);
                }
            }
            self.elements[element as usize].sequence = data_rows * planes + 1;
            self.open_in_every_plane(element);
            (element * planes..(element + 1) * planes).for_each(|plane| self.planes[plane as usize].cursor = 0);
        }
        self.mapping.fill(order.pages(), Box::new(order), kept);
        self.statistics = CleaningStatistics::default();
    }

    /// Gives the blocks back that were opened for an empty drive.
    fn close_empty_blocks(&mut self, element: u32) {
        for plane in element * self.shape.planes..(element + 1) * self.shape.planes {
            let active = self.planes[plane as usize].active;
            self.blocks[active as usize] = Block::default();
            self.set_free(plane, active % self.shape.blocks, true);
            self.planes[plane as usize].next_page = self.shape.data_pages;
            self.planes[plane as usize].cursor = self.shape.data_rows;
        }
    }

    /// The element of a logical page.
    fn element_of(&self, page: u32) -> u32 {
        self.shape.by.elements.divide(self.shape.by.stride.quotient(page)).1
    }

    /// Says that the entry of a page will be needed soon.
    pub(crate) fn prefetch_page(&self, page: u32) {
        self.mapping.prefetch(page);
    }

    /// Says that a page is about to be written: what belongs to its old copy will be needed.
    pub(crate) fn prefetch_old_copy(&self, page: u32) {
        let Some(slot) = self.mapping.slot_of(page) else { return };
        let block = self.shape.block_of(slot) as usize;
        self.mapping.prefetch_slot(slot);
        prefetch(&self.blocks, block);
        prefetch(&self.wear, block);
    }

    /// The slot that holds a page.
    pub(crate) fn slot_of(&self, page: u32) -> Option<u32> {
        self.mapping.slot_of(page)
    }

    /// What cleaning has done so far.
    pub(crate) fn statistics(&self) -> CleaningStatistics {
        self.statistics
    }

    /// What each block has left of its life.
    pub(crate) fn lives(&self) -> impl Iterator<Item = u32> + Clone {
        self.wear.iter().map(|wear| wear.life)
    }

    /// Does a read; gives its end. A page that were never written takes no time.
    pub(crate) fn read(&mut self, page: u32, now_ns: u64, effects: &mut Effects<'_>) -> u64 {
        if self.mapping.slot_of(page).is_none() {
            return now_ns;
        }
        let element = self.element_of(page);
        let at_ns = self.begin(element, now_ns, effects);
        // After cleaning: it may have moved the page, if only inside its plane.
        let Some(slot) = self.mapping.slot_of(page) else { return now_ns };
        let (plane, _) = self.shape.plane_and_row(self.shape.block_of(slot));
        let end_ns = at_ns + self.page_op(plane, OpClass::HostRead, at_ns - now_ns, effects);
        self.elements[element as usize].free_at_ns = end_ns;
        end_ns
    }

    /// Does a write; gives its end, the new slot and the one that held the page before. `None` when the element has no
    /// block left that it can erase.
    pub(crate) fn write(
        &mut self,
        page: u32,
        now_ns: u64,
        effects: &mut Effects<'_>,
    ) -> Option<(u64, u32, Option<u32>)> {
        let element = self.element_of(page);
        let mut at_ns = self.begin(element, now_ns, effects);
        // After cleaning: it may have moved the old copy.
        let old = self.mapping.slot_of(page);
        let plane = match self.choose_plane(element, old) {
            Some(plane) => plane,
            None => self.force_room(element, &mut at_ns, effects)?,
        };
        let (slot, summary_ns) = self.append(plane, page, effects);
        at_ns += self.page_op(plane, OpClass::HostProgram, at_ns - now_ns, effects) + summary_ns;
        self.elements[element as usize].free_at_ns = at_ns;
        Some((at_ns, slot, old))
    }

    /// Reads or programs a page of the host's, which waited before; gives the time that it takes.
    fn page_op(&self, plane: u32, class: OpClass, waiting_ns: u64, effects: &mut Effects<'_>) -> u64 {
        let Times { sense_ns, program_ns, page_ns: transfer_ns, .. } = self.times;
        let array_ns = if class == OpClass::HostRead { sense_ns } else { program_ns };
        let (at, bytes) = (self.shape.element_and_plane(plane), self.page_bytes);
        effects.statistics.done(KnownOp { at, class, waiting_ns, array_ns, transfer_ns, bytes });
        array_ns + transfer_ns
    }

    /// Programs the summary pages of a block; gives the time that it takes.
    fn program_summary(&self, plane: u32, effects: &mut Effects<'_>) -> u64 {
        let Times { program_ns: array_ns, summary_ns: transfer_ns, summary_pages, .. } = self.times;
        let (class, bytes) = (OpClass::MappingProgram, SUMMARY_BYTES);
        let op =
            KnownOp { at: self.shape.element_and_plane(plane), class, waiting_ns: 0, array_ns, transfer_ns, bytes };
        (0..summary_pages).for_each(|_| effects.statistics.done(op));
        u64::from(summary_pages) * (array_ns + transfer_ns)
    }

    /// The plane that a write goes to.
    fn choose_plane(&mut self, element: u32, old: Option<u32>) -> Option<u32> {
        let planes = self.shape.planes;
        let first = element * planes;
        let old_block = old.map(|slot| self.shape.block_of(slot));
        if let (AllocationPool::Plane, Some(block)) = (self.pool, old_block) {
            return Some(self.shape.plane_and_row(block).0)
                .filter(|&plane| self.has_room(&self.planes[plane as usize]));
        }
        let behind = |plane: &Plane| match (old, old_block) {
            (Some(slot), Some(block)) if plane.active == block => {
                plane.sequence > 0 && plane.next_page > slot - block * self.shape.pages
            }
            (_, Some(block)) => plane.sequence > self.blocks[block as usize].sequence,
            _ => true,
        };
        let cursor = self.elements[element as usize].write_cursor;
        let chosen = self.roomiest(first, cursor, behind).or_else(|| self.roomiest(first, cursor, |_| true))?;
        self.elements[element as usize].write_cursor = if chosen + 1 == planes { 0 } else { chosen + 1 };
        Some(first + chosen)
    }

    /// The plane with the most free pages among those that qualify, the first one from `cursor` on among equals.
    fn roomiest(&self, first: u32, cursor: u32, qualifies: impl Fn(&Plane) -> bool) -> Option<u32> {
        let planes = &self.planes[first as usize..(first + self.shape.planes) as usize];
        let (mut best, mut most) = (None, 0);
        for n in (cursor as usize..planes.len()).chain(0..cursor as usize) {
            let plane = &planes[n];
            let free_pages = plane.free * self.shape.pages + self.shape.pages - plane.next_page;
            if free_pages > most && self.has_room(plane) && qualifies(plane) {
                (best, most) = (Some(n as u32), free_pages);
            }
        }
        best
    }

    /// Whether the host may write to a plane: the last free block is for cleaning.
    fn has_room(&self, plane: &Plane) -> bool {
        plane.next_page < self.shape.data_pages || plane.free > 1
    }

    /// Writes a page to a plane's active block; gives its slot and the time of the summary pages if it was the last
    /// one.
    fn append(&mut self, plane: u32, page: u32, effects: &mut Effects<'_>) -> (u32, u64) {
        if self.planes[plane as usize].next_page == self.shape.data_pages {
            self.open_block(plane);
        }
        let state = &mut self.planes[plane as usize];
        let block = state.active;
        let slot = block * self.shape.pages + state.next_page;
        state.next_page += 1;
        let full = state.next_page == self.shape.data_pages;
        self.blocks[block as usize].valid += 1;
        if let Some(old) = self.mapping.map(page, slot) {
            self.lose_valid_page(old);
        }
        effects.counters.bytes_programmed.0 += self.page_bytes;
        if !full {
            return (slot, 0);
        }
        let summary_bytes = u64::from(self.shape.pages - self.shape.data_pages) * self.page_bytes;
        effects.counters.bytes_programmed.0 += summary_bytes;
        effects.counters.mapping_bytes.0 += summary_bytes;
        self.seal(plane, block);
        (slot, self.program_summary(plane, effects))
    }

    fn seal(&mut self, plane: u32, block: u32) {
        let state = &mut self.blocks[block as usize];
        state.state = State::Sealed;
        self.statistics.blocks_sealed += 1;
        if self.wear[block as usize].life > 0 {
            self.fullness.insert(plane, self.shape.plane_and_row(block).1, u32::from(state.valid));
        }
    }

    fn lose_valid_page(&mut self, slot: u32) {
        let block = self.shape.block_of(slot);
        let state = &mut self.blocks[block as usize];
        state.valid -= 1;
        if state.state == State::Sealed && self.wear[block as usize].life > 0 {
            let ((plane, row), valid) = (self.shape.plane_and_row(block), u32::from(state.valid));
            self.fullness.remove(plane, row, valid + 1);
            self.fullness.insert(plane, row, valid);
        }
    }

    /// Takes the plane's next free block to write.
    fn open_block(&mut self, plane: u32) {
        let state = &self.planes[plane as usize];
        debug_assert!(state.free > 0, "plane {plane} has no free block");
        let Some(row) = self.free_row_from(plane, state.cursor) else { return };
        self.set_free(plane, row, false);
        let element = &mut self.elements[self.shape.element_and_plane(plane).0 as usize];
        let sequence = element.sequence;
        element.sequence += 1;
        let block = plane * self.shape.blocks + row;
        self.blocks[block as usize] = Block { sequence, valid: 0, state: State::Open };
        let state = &mut self.planes[plane as usize];
        (state.active, state.sequence, state.next_page) = (block, sequence, 0);
        state.cursor = if row + 1 == self.shape.blocks { 0 } else { row + 1 };
    }

    fn free_words(&self, plane: u32) -> std::ops::Range<usize> {
        let words = self.shape.blocks.div_ceil(64) as usize;
        plane as usize * words..(plane as usize + 1) * words
    }

    /// The first free row from `cursor` on, round the plane.
    fn free_row_from(&self, plane: u32, cursor: u32) -> Option<u32> {
        let words = &self.free[self.free_words(plane)];
        let (at, bit) = (cursor as usize / 64, cursor % 64);
        let row = |at: usize, word: u64| at as u32 * 64 + word.trailing_zeros();
        let here = words[at] >> bit << bit;
        if here != 0 {
            return Some(row(at, here));
        }
        let behind = (at + 1..words.len()).chain(0..=at).find(|&n| words[n] != 0)?;
        Some(row(behind, words[behind]))
    }

    /// Marks a block as free or taken.
    fn set_free(&mut self, plane: u32, row: u32, free: bool) {
        let word = self.free_words(plane).start + row as usize / 64;
        let bit = 1 << (row % 64);
        debug_assert_eq!(self.free[word] & bit == 0, free, "row {row} of plane {plane}");
        self.free[word] ^= bit;
        let state = &mut self.planes[plane as usize];
        let element = &mut self.elements[self.shape.element_and_plane(plane).0 as usize];
        if free {
            state.free += 1;
            element.low_planes -= u32::from(state.free == self.low_blocks + 1);
        } else {
            element.low_planes += u32::from(state.free == self.low_blocks + 1);
            state.free -= 1;
        }
    }
}

impl Ftl for Elements {
    fn build(config: &DeviceConfig, _: &Geometry, seed: u64) -> Self {
        Self::new(config, seed)
    }

    fn describe(layout: &mut Layout) {
        layout.word("elements");
        layout.word("if there");
        Self::layout(layout);
    }

    fn slot_of(&self, page: u32) -> Option<u32> {
        self.slot_of(page)
    }

    fn forget(&mut self, page: u32) -> Option<u32> {
        let slot = self.mapping.unmap(page)?;
        self.lose_valid_page(slot);
        Some(slot)
    }

    fn is_empty(&self) -> bool {
        self.mapping.mapped() == 0
    }

    /// Fills the drive whole, in the order of blocks, as the model does.
    fn fill_in_order(&mut self, _: u32, kept: KeptAs) {
        self.fill_in_block_order(kept);
    }

    fn erase_histogram(&self) -> BTreeMap<u32, u64> {
        histogram(self.lives().map(|life| self.lifetime - life))
    }

    fn mapped_and_valid_pages(&self) -> (u64, u64) {
        let valid = self.blocks.iter().map(|block| u64::from(block.valid)).sum();
        (u64::from(self.mapping.mapped()), valid)
    }

    fn check(&self) -> Result<(), String> {
        self.mapping.check()?;
        for (block, state) in self.blocks.iter().enumerate() {
            let first = block as u32 * self.shape.pages;
            let valid = (first..first + self.shape.pages).filter(|&slot| self.mapping.page_in(slot).is_some()).count();
            if valid != usize::from(state.valid) {
                return Err(format!("block {block} counts {} valid pages and holds {valid}", state.valid));
            }
        }
        for (plane, state) in self.planes.iter().enumerate() {
            let first = plane * self.shape.blocks as usize;
            let blocks = &self.blocks[first..first + self.shape.blocks as usize];
            let free = blocks.iter().filter(|block| block.state == State::Free).count();
            let bits: u32 = self.free[self.free_words(plane as u32)].iter().map(|word| word.count_ones()).sum();
            if free != state.free as usize || bits != state.free {
                return Err(format!("plane {plane} counts {} free blocks and has {free}", state.free));
            }
        }
        Ok(())
    }
}

impl Times {
    fn new(config: &DeviceConfig) -> Self {
        let (flash, element) = (&config.flash, &config.ftl.element);
        let transfer_ns = |bytes: u64| {
            let with_spare = u128::from(bytes) * u128::from(512 + element.spare_bytes_per_512);
            (with_spare * 1_000_000_000 / (512 * u128::from(flash.channel_bytes_per_s))) as u64
        };
        Self {
            sense_ns: flash.read_ns,
            program_ns: flash.program_ns,
            erase_ns: flash.erase_ns,
            page_ns: transfer_ns(flash.page_bytes),
            summary_ns: transfer_ns(SUMMARY_BYTES),
            summary_pages: element.summary_pages_per_block,
        }
    }
}

crate::state::state_names! { State { Free = 0, Open = 1, Sealed = 2 } }

crate::state::state! { Block { saved { sequence, valid, state } } }

crate::state::state! { Wear { saved { life, erased_at_ns } } }

crate::state::state! { Plane { saved { active, sequence, next_page, free, cursor, life } } }

crate::state::state! { Element { saved { free_at_ns, write_cursor, clean_cursor, low_planes, sequence } } }

crate::state::state! {
    CleaningStatistics { saved { cleans, pages_moved, migrations, pages_migrated, blocks_sealed } }
}

crate::state::state! {
    Elements {
        saved { mapping, elements, planes, blocks, wear, free, fullness, random, statistics }
        built { shape, times, low_blocks, lifetime, page_bytes, pool, order, background, rules }
    }
    checked check_restored
}

impl Elements {
    fn check_restored(&self) -> Result<(), String> {
        let Shape { planes, blocks, data_pages, .. } = self.shape;
        for (nth, plane) in (0..).zip(&self.planes) {
            if plane.active / blocks != nth || plane.next_page > data_pages || plane.cursor >= blocks {
                return Err(format!("plane {nth} writes where it cannot"));
            }
        }
        let cursors = |element: &Element| element.write_cursor < planes && element.clean_cursor < planes;
        if self.elements.iter().all(cursors) {
            self.check()
        } else {
            Err("an element is at no plane of its".to_owned())
        }
    }
}
