//! The page map: where data goes, where it is, what becomes free.
//!
//! A placement policy ([`crate::ftl::placement`]) names the parallel unit that a written page goes to. Inside the unit,
//! data fills the open superpage in the order of arrival. A superpage is programmed when it is full, or padded when a
//! flush or a forced write cannot wait.

mod checks;
pub(crate) mod extents;
mod placed;
mod prefill;
mod reclaim;
mod relocation;
mod row_order;
mod slc_cache;
mod superpage;

use std::collections::BTreeMap;

use flashwise_block::FlashCounters;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::gc::{AnyPolicy, Own, Shape, VictimPolicy};
use super::geometry::Geometry;
use super::mapping::Mapping;
use super::placement::{AnyPlacement, PlacementPolicy};
use super::streams::foresight::Foresight;
use super::streams::{AnyStreams, Stream, StreamPolicy};
use super::superblock::{BlockState, Superblocks};
use super::{Ftl, KeptAs, Location, histogram};
use crate::config::DeviceConfig;
use crate::list::{NONE, Slab};
use crate::memory::prefetch;
use crate::state::Layout;
use extents::Extents;
pub(crate) use placed::Placement;
pub(crate) use reclaim::Retirement;
use reclaim::{EarlyRow, Reclaiming, Unit};
pub(crate) use relocation::Relocation;
use slc_cache::SlcCache;
pub(crate) use superpage::Cause;
use superpage::{CLOSED, Superpage, WritePoint};

/// Slots whose entries share a cache line, and lines of a row that are fetched ahead: of a long row the processor
/// fetches the rest by itself, as its lines follow one another.
const SLOTS_FETCHED: usize = 16;
const ROW_FETCHES: usize = 4;

/// Superpages for which memory is taken beforehand, however large the write buffer: each is a flash command in
/// progress.
const MOST_RESERVED: u64 = 1024;

/// Makes the FTL's chance another than that of the flash, which has the same seed.
const CHANCE: u64 = 0x6c62_272e_07bb_0142;

/// The page map of a drive.
pub(crate) struct PageMap {
    pub(crate) geometry: Geometry,
    mapping: Mapping,
    /// How many slots pages take, where that is not one each.
    extents: Option<Box<Extents>>,
    /// Bytes of a slot.
    slot_bytes: u32,
    pub(crate) superblocks: Superblocks,
    policy: AnyPolicy,
    streams: AnyStreams,
    units: Vec<Unit>,
    reclaiming: Reclaiming,
    slc_cache: Option<Box<SlcCache>>,
    /// Logical pages that the host has written.
    clock: u64,
    random: Pcg64Mcg,
    pub(crate) superpages: Slab<Superpage>,
    generation: u64,
    /// Superpages with host data that are not on flash yet, in no order.
    host_superpages: Vec<u32>,
    placement: AnyPlacement,
    /// A page that is overwritten in an open superpage stays in its slot.
    replaces_in_buffer: bool,
    /// The stream for which no unit has room, since one was looked for in all of them: whoever waits for room asks
    /// again and again. `None` again as soon as a unit may have some.
    full: Option<Stream>,
    /// Units in which one of several streams of the host's has opened a superblock and collection has not heard of it.
    opened: Vec<u32>,
}

impl PageMap {
    /// An empty drive; `seed` drives what is left to chance.
    pub(crate) fn new(config: &DeviceConfig, seed: u64) -> Self {
        let logical_pages = config.logical_pages() + u64::from(config.translation_pages());
        Self::with(Geometry::new(config), logical_pages, config, seed)
    }

    fn with(geometry: Geometry, logical_pages: u64, config: &DeviceConfig, seed: u64) -> Self {
        let mut ftl = Self {
            mapping: Mapping::new(logical_pages, geometry.total_slots()),
            extents: Extents::new(config, logical_pages, geometry.total_slots()),
            slot_bytes: config.slot_bytes() as u32,
            superblocks: Superblocks::new(&geometry),
            policy: AnyPolicy::new(config, &geometry),
            streams: AnyStreams::new(config, &geometry, logical_pages),
            units: (0..geometry.units).map(|_| Unit::new(config, &geometry)).collect(),
            reclaiming: Reclaiming::new(config, &geometry, logical_pages),
            slc_cache: SlcCache::new(config, &geometry),
            clock: 0,
            random: Pcg64Mcg::seed_from_u64(seed ^ CHANCE),
            superpages: Slab::default(),
            generation: 0,
            host_superpages: Vec::new(),
            placement: AnyPlacement::new(config, &geometry),
            replaces_in_buffer: config.ftl.replaces_in_buffer,
            full: None,
            opened: Vec::new(),
            geometry,
        };
        ftl.take_factory_bad_superblocks(config);
        ftl.dedicate_superblocks(config);
        ftl
    }

    /// Stands in where something else maps the logical pages.
    pub(crate) fn idle(config: &DeviceConfig, geometry: Geometry) -> Self {
        let mut ftl = Self::with(Geometry::trivial(), 0, config, 0);
        ftl.geometry = geometry;
        ftl
    }

    /// Lets another policy choose victims, while the drive is new.
    pub(crate) fn choose_victims_by(
        &mut self,
        config: &DeviceConfig,
        policy: impl FnOnce(Shape) -> Box<dyn VictimPolicy + Send>,
    ) {
        self.policy = AnyPolicy::Own(Own::new(policy(Shape::new(config, &self.geometry))));
    }

    /// Whether victims are chosen by a policy that is not one of the configuration's.
    pub fn has_own_victim_policy(&self) -> bool {
        matches!(self.policy, AnyPolicy::Own(_))
    }

    /// Tells how data is told apart when pages die.
    pub(crate) fn foresee(&mut self, foresight: Foresight) {
        self.streams.foresee(foresight);
    }

    /// Where a logical page is.
    #[inline(always)]
    pub(crate) fn locate(&self, logical_page: u32) -> Location {
        let Some(slot) = self.mapping.slot_of(logical_page) else { return Location::Nowhere };
        let (block, row) = self.geometry.block_and_row(self.last_slot(logical_page, slot));
        if row < self.superblocks[block].programmed_rows { Location::Flash(slot) } else { Location::Buffer(slot) }
    }

    /// Whether a slot that has been given out is not on flash.
    pub(crate) fn is_in_buffer(&self, slot: u32) -> bool {
        let (block, row) = self.geometry.block_and_row(slot);
        row >= self.superblocks[block].programmed_rows
    }

    /// Bytes of a slot.
    #[inline(always)]
    pub(crate) fn slot_bytes(&self) -> u64 {
        u64::from(self.slot_bytes)
    }

    /// Slots that a logical page takes.
    #[inline(always)]
    pub(crate) fn slots_of(&self, logical_page: u32) -> u32 {
        self.extents.as_ref().map_or(1, |extents| extents.of(logical_page))
    }

    /// The last slot of a logical page that starts in `slot`.
    #[inline(always)]
    fn last_slot(&self, logical_page: u32, slot: u32) -> u32 {
        slot + self.slots_of(logical_page) - 1
    }

    /// Slots of a logical page that is stored as it is.
    #[inline(always)]
    fn longest(&self) -> u32 {
        self.extents.as_ref().map_or(1, |extents| extents.longest())
    }

    /// Says that the place of a logical page's entry will be asked for soon.
    #[inline]
    pub(crate) fn prefetch_place(&self, logical_page: u32) {
        self.mapping.prefetch_place(logical_page);
    }

    /// Says that the entry of a logical page will be needed soon.
    #[inline]
    pub(crate) fn prefetch_page(&self, logical_page: u32) {
        self.mapping.prefetch(logical_page);
        if let Some(extents) = &self.extents {
            extents.prefetch(logical_page);
        }
    }

    /// Says that what belongs to the slot of a logical page will be needed soon, its entry being here by now: the
    /// superblock, and where the page is about to be written, what the slot holds.
    #[inline]
    pub(crate) fn prefetch_slot_of(&self, logical_page: u32, writes: bool) {
        let Some(slot) = self.mapping.slot_of(logical_page) else { return };
        let (block, _) = self.geometry.block_and_row(slot);
        prefetch(&self.superblocks.blocks, block as usize);
        if writes {
            self.mapping.prefetch_slot(slot);
            if let Some(extents) = &self.extents {
                extents.prefetch_slot(slot);
            }
        }
    }

    /// Says that what the slots of a superblock's row hold will be needed soon.
    #[inline]
    pub(crate) fn prefetch_row(&self, block: u32, row: u32) {
        let first = self.geometry.first_slot(block, row);
        for slot in (first..first + self.geometry.slots).step_by(SLOTS_FETCHED).take(ROW_FETCHES) {
            self.mapping.prefetch_slot(slot);
        }
    }

    /// Finds the host's page a slot; `None` when no unit that may take it has room. `n` is its place in a write of
    /// `pages` pages, `hint` the stream that the write names, `commands_of_die` the work that each die has.
    pub(crate) fn place(
        &mut self,
        logical_page: u32,
        (n, pages): (u32, u32),
        hint: u16,
        commands_of_die: &[u32],
    ) -> Option<Placement> {
        let (unit, stream) = self.choose_unit(logical_page, (n, pages), hint, commands_of_die)?;
        self.append(unit, stream, logical_page, None)
    }

    /// The same for a page that takes so many slots.
    pub(crate) fn place_extent(
        &mut self,
        logical_page: u32,
        slots: u32,
        nth: (u32, u32),
        hint: u16,
        commands_of_die: &[u32],
    ) -> Option<Placement> {
        let (unit, stream) = self.choose_unit(logical_page, nth, hint, commands_of_die)?;
        self.append_extent(unit, stream, logical_page, slots, None)
    }

    /// Chooses the unit and the stream that a page of the host's goes to.
    #[inline(always)]
    fn choose_unit(
        &mut self,
        logical_page: u32,
        (n, pages): (u32, u32),
        hint: u16,
        commands_of_die: &[u32],
    ) -> Option<(u32, Stream)> {
        let stream = Stream::host(self.streams.class_of_written(logical_page, hint, self.clock));
        if self.full == Some(stream) {
            debug_assert!(self.first_fit(logical_page, stream, commands_of_die).is_none(), "{stream:?} is not full");
            return None;
        }
        let Some(unit) = self.first_fit(logical_page, stream, commands_of_die) else {
            // A drive with an SLC cache has space for other reasons, too.
            self.full = (self.placement.may_take_any() && self.slc_cache.is_none()).then_some(stream);
            return None;
        };
        self.placement.placed(unit, n, pages);
        self.clock += 1;
        self.streams.written(logical_page, self.clock);
        Some((unit, stream))
    }

    /// The unit for a page of one of the host's streams.
    #[inline(always)]
    fn first_fit(&self, logical_page: u32, stream: Stream, commands_of_die: &[u32]) -> Option<u32> {
        let fit = |unit| self.has_room(unit, stream) && !self.is_overfull(unit, stream);
        self.placement.first_fit(logical_page, commands_of_die, fit)
    }

    /// Gives a page that were never written a slot in which it counts as being on flash, as if it had been there
    /// before; gives the slot and its unit, or `None` when no unit that may take it has room. Superpages must have one
    /// slot.
    pub(crate) fn place_on_flash(&mut self, logical_page: u32, commands_of_die: &[u32]) -> Option<(u32, u32)> {
        debug_assert_eq!(self.geometry.slots, 1);
        let (unit, stream) = self.choose_unit(logical_page, (0, 1), 0, commands_of_die)?;
        let block = match self.units[unit as usize].points[stream].block {
            NONE => self.open_superblock(unit, stream, true)?,
            block => block,
        };
        debug_assert!(self.extents.is_none());
        let state = &mut self.superblocks[block];
        let row = state.allocated_rows;
        (state.allocated_rows, state.valid) = (row + 1, state.valid + 1);
        let slot = self.geometry.first_slot(block, row);
        let old = self.mapping.map(logical_page, slot);
        debug_assert!(old.is_none(), "logical page {logical_page} has a slot");
        if row + 1 == self.geometry.rows {
            self.point(unit, stream).block = NONE;
            self.superblock_filled(unit, stream);
        }
        self.row_is_done(unit, EarlyRow { block, row, stream });
        Some((slot, unit))
    }

    /// The unit that is due for a logical page, or with an `attempt` above 0 one that is asked when those before it
    /// have no space; `None` when there are no more.
    pub(crate) fn candidate_unit(&self, logical_page: u32, attempt: u32, commands_of_die: &[u32]) -> Option<u32> {
        self.placement.unit(logical_page, attempt, commands_of_die)
    }

    /// The one unit that a logical page is bound to; `None` where any unit may take it.
    pub(crate) fn bound_unit(&self, logical_page: u32) -> Option<u32> {
        self.placement.bound_unit(logical_page)
    }

    /// The set of units that a logical page may go to, as a number below that of units.
    pub(crate) fn set_of_units(&self, logical_page: u32) -> u32 {
        self.placement.set_of_units(logical_page)
    }

    /// The slot of a page that is in a superpage of the host's which is still open, and that superpage.
    #[inline(always)]
    fn open_superpage_that_holds(&self, logical_page: u32) -> Option<(u32, u32)> {
        if self.geometry.slots == 1 || !self.replaces_in_buffer {
            // A superpage is full with its first page, or its pages are as good as on flash.
            return None;
        }
        let slot = self.mapping.slot_of(logical_page)?;
        let (block, row) = self.geometry.block_and_row(slot);
        let unit = self.geometry.unit_of(block);
        let stream = self.stream_to_overwrite(block)?;
        let superpage = self.units[unit as usize].points[stream].superpage;
        if superpage == NONE {
            return None;
        }
        let open = &self.superpages[superpage];
        (open.block == block && open.row == row).then_some((slot, superpage))
    }

    /// Whether a page is in a superpage of the host's that is still open.
    pub(crate) fn is_in_open_superpage(&self, logical_page: u32) -> bool {
        self.open_superpage_that_holds(logical_page).is_some()
    }

    /// Overwrites a page that is in a superpage which is still open; it needs no new slot.
    #[inline(always)]
    pub(crate) fn overwrite_in_buffer(&mut self, logical_page: u32, (n, pages): (u32, u32)) -> Option<Placement> {
        let (slot, superpage) = self.open_superpage_that_holds(logical_page)?;
        let Superpage { unit, stream, has_host_data, .. } = self.superpages[superpage];
        if !has_host_data && !self.has_room(unit, stream) {
            return None;
        }
        self.superpages[superpage].has_host_data = true;
        self.streams.overwritten(logical_page);
        self.placement.overwritten(n, pages);
        Some(Placement::over(slot, superpage))
    }

    /// The same for a page that takes so many slots now: it must fit into those that it has, and all of these must be
    /// in the open superpage. What it does not need any more stays empty.
    pub(crate) fn overwrite_extent_in_buffer(
        &mut self,
        logical_page: u32,
        slots: u32,
        nth: (u32, u32),
    ) -> Option<Placement> {
        let slot = self.mapping.slot_of(logical_page)?;
        let before = self.slots_of(logical_page);
        let row_of = |slot| self.geometry.block_and_row(slot);
        if slots > before || row_of(slot) != row_of(self.last_slot(logical_page, slot)) {
            return None;
        }
        let placement = self.overwrite_in_buffer(logical_page, nth)?;
        if let Some(extents) = &mut self.extents {
            extents.set(logical_page, slots, true);
        }
        let block = self.geometry.block_and_row(slot).0;
        self.superblocks[block].valid -= before - slots;
        Some(placement)
    }

    /// Puts a logical page into the next slot of a unit's stream; `moved` tells why, if not because the host writes it.
    #[inline(always)]
    fn append(&mut self, unit: u32, stream: Stream, logical_page: u32, moved: Option<Cause>) -> Option<Placement> {
        if self.extents.is_some() {
            let slots = self.slots_of(logical_page);
            return self.append_extent(unit, stream, logical_page, slots, moved);
        }
        let superpage = self.open_superpage(unit, stream, moved.is_none())?;
        let slots = self.geometry.slots;
        let open = &mut self.superpages[superpage];
        match moved {
            Some(cause) => open.moved[cause as usize] += 1,
            None => open.has_host_data = true,
        }
        let slot = self.geometry.first_slot(open.block, open.row) + open.filled;
        open.filled += 1;
        let (block, full) = (open.block, open.filled == slots);
        self.superblocks[block].valid += 1;
        if let Some(old) = self.mapping.map(logical_page, slot) {
            self.lose_valid_slots(old, 1);
        }
        Some(Placement::new(slot, superpage, full, false))
    }

    /// Puts a logical page into the next slots of a unit's stream. What does not fit into the open superpage counts
    /// there until that is closed, and goes to the next one then ([`Self::close_superpage`]).
    #[inline(never)]
    fn append_extent(
        &mut self,
        unit: u32,
        stream: Stream,
        logical_page: u32,
        slots: u32,
        moved: Option<Cause>,
    ) -> Option<Placement> {
        let superpage = self.open_superpage(unit, stream, moved.is_none())?;
        let (row_slots, longest) = (self.geometry.slots, self.longest());
        let rows = self.rows_of(self.superpages[superpage].block);
        let open = &mut self.superpages[superpage];
        match moved {
            Some(cause) => open.moved[cause as usize] += slots,
            None => open.has_host_data = true,
        }
        open.last_moved = moved;
        let slot = self.geometry.first_slot(open.block, open.row) + open.filled;
        open.filled += slots;
        let (block, filled, is_last) = (open.block, open.filled, open.row + 1 == rows);
        debug_assert!(filled <= row_slots || !is_last, "a page spans two superblocks");
        let full = filled >= row_slots || is_last && row_slots - filled < longest;
        self.superblocks[block].valid += slots;
        let old = self.mapping.map(logical_page, slot);
        let mut before = 1;
        if let Some(extents) = &mut self.extents {
            before = extents.set(logical_page, slots, old.is_some());
            extents.begin(slot);
            old.inspect(|&old| extents.end(old));
        }
        if let Some(old) = old {
            self.lose_valid_slots(old, before);
        }
        Some(Placement::new(slot, superpage, full, filled > row_slots))
    }

    /// Forgets a logical page; gives the slot that held it.
    pub(crate) fn trim(&mut self, logical_page: u32) -> Option<u32> {
        let slot = self.mapping.unmap(logical_page)?;
        let slots = self.slots_of(logical_page);
        if let Some(extents) = &mut self.extents {
            extents.forget(logical_page);
            extents.end(slot);
        }
        self.lose_valid_slots(slot, slots);
        Some(slot)
    }

    /// The slot that holds a page now; `None` when nobody wrote it.
    pub(crate) fn slot_of(&self, logical_page: u32) -> Option<u32> {
        self.mapping.slot_of(logical_page)
    }

    /// The logical page that a slot validly holds.
    pub(crate) fn page_in(&self, slot: u32) -> Option<u32> {
        self.mapping.page_in(slot)
    }

    /// The page that starts in a slot is not there any more.
    #[inline(always)]
    fn lose_valid_slots(&mut self, slot: u32, slots: u32) {
        let (block, _) = self.geometry.block_and_row(slot);
        let state = &mut self.superblocks[block];
        state.valid -= slots;
        if state.state == BlockState::Sealed {
            let valid = state.valid;
            self.lost_sealed_page(block, valid, slots);
        } else if state.state == BlockState::Cached {
            self.lost_cached_page(block, slots);
        }
    }

    fn point(&mut self, unit: u32, stream: Stream) -> &mut WritePoint {
        &mut self.units[unit as usize].points[stream]
    }

    /// The superpage that a stream fills, opened if need be.
    #[inline(always)]
    fn open_superpage(&mut self, unit: u32, stream: Stream, for_host: bool) -> Option<u32> {
        match *self.point(unit, stream) {
            WritePoint { superpage: NONE, block } => self.open_next_superpage(unit, stream, block, for_host),
            WritePoint { superpage, .. } => Some(superpage),
        }
    }

    /// Opens a superpage in the superblock that a stream fills, which is opened if there is none.
    #[inline(never)]
    fn open_next_superpage(&mut self, unit: u32, stream: Stream, block: u32, for_host: bool) -> Option<u32> {
        let block = if block == NONE { self.open_superblock(unit, stream, for_host)? } else { block };
        let row = self.superblocks[block].allocated_rows;
        self.superblocks[block].allocated_rows += 1;
        let superpage = self.superpages.take();
        self.generation += 1;
        let record = &mut self.superpages[superpage];
        debug_assert!(!record.live && record.waiters.is_empty());
        (record.live, record.issued, record.stream) = (true, false, stream);
        (record.unit, record.block, record.row) = (unit, block, row);
        (record.filled, record.programs_left, record.generation) = (0, 0, self.generation);
        record.held_bytes = 0;
        (record.moved, record.has_host_data, record.has_failed) = ([0; Cause::COUNT], false, false);
        if stream.is_host() {
            record.position = self.host_superpages.len() as u32;
            self.host_superpages.push(superpage);
            self.full = None;
        }
        self.point(unit, stream).superpage = superpage;
        Some(superpage)
    }

    #[inline(never)]
    fn open_superblock(&mut self, unit: u32, stream: Stream, for_host: bool) -> Option<u32> {
        let cached = if self.slc_cache.is_some() { self.take_for_slc_cache(unit, stream) } else { None };
        let block = match cached {
            Some(block) => block,
            None => self.take_free(unit, stream, for_host)?,
        };
        let state = &mut self.superblocks[block];
        debug_assert_eq!((state.state, state.valid), (BlockState::Free, 0));
        (state.state, state.allocated_rows, state.programmed_rows) = (BlockState::Open, 0, 0);
        state.stream = stream;
        self.streams.opened(block, self.clock);
        if for_host && self.has_several_host_classes() {
            self.opened.push(unit);
        }
        self.point(unit, stream).block = block;
        self.full = None;
        Some(block)
    }

    /// Whether [`Self::take_opened`] has a unit to name.
    #[inline]
    pub(crate) fn has_opened(&self) -> bool {
        !self.opened.is_empty()
    }

    /// A unit in which one of several streams of the host's has opened a superblock since the last call.
    #[inline]
    pub(crate) fn take_opened(&mut self) -> Option<u32> {
        self.opened.pop()
    }

    /// The superpage that a stream of a unit has started to fill.
    pub(crate) fn open_superpage_of(&self, unit: u32, stream: Stream) -> Option<u32> {
        let superpage = self.units[unit as usize].points[stream].superpage;
        (superpage != NONE).then_some(superpage)
    }

    /// Every superpage that host data may go to and that is not on flash yet, being filled or being programmed.
    pub(crate) fn host_superpages(&self) -> &[u32] {
        &self.host_superpages
    }

    /// Takes memory for the superpages that a write buffer of so many pages can be divided into, each with room for so
    /// many requests that wait for it. Gives their number.
    pub(crate) fn reserve_superpages(&mut self, buffer_pages: u64, waiters: usize) -> usize {
        let open = self.units.len() * Stream::COUNT;
        let superpages = open + buffer_pages.min(MOST_RESERVED) as usize;
        self.superpages.reserve(superpages, |superpage| superpage.waiters.reserve(waiters));
        self.host_superpages.reserve(superpages);
        superpages
    }

    /// Closes a superpage: from now on it is programmed and nothing is added to it.
    pub(crate) fn close_superpage(&mut self, superpage: u32) {
        let slots = self.geometry.slots;
        let record = &mut self.superpages[superpage];
        debug_assert!(record.live && !record.issued);
        record.issued = true;
        record.programs_left = self.geometry.dies_per_unit;
        let beyond = record.filled.saturating_sub(slots);
        let (unit, stream, block) = (record.unit, record.stream, record.block);
        let state = &self.superblocks[block];
        let block_is_full = state.allocated_rows == self.geometry.rows_in(state.mode);
        let point = self.point(unit, stream);
        debug_assert_eq!(point.superpage, superpage);
        point.superpage = NONE;
        if block_is_full {
            point.block = NONE;
            self.cached_is_filled(unit, block);
            self.superblock_filled(unit, stream);
        }
        if beyond > 0 {
            self.carry_over(superpage, beyond);
        }
    }

    /// The last page of a superpage that is closed ends in the next one of its superblock, with so many slots.
    #[cold]
    #[inline(never)]
    fn carry_over(&mut self, superpage: u32, beyond: u32) {
        let record = &mut self.superpages[superpage];
        record.filled -= beyond;
        let (unit, stream, last_moved) = (record.unit, record.stream, record.last_moved);
        // Of the host's pages alone, the space in the write buffer is counted.
        let held_bytes = if last_moved.is_none() { beyond * self.slot_bytes } else { 0 };
        record.held_bytes -= held_bytes;
        if let Some(cause) = last_moved {
            record.moved[cause as usize] -= beyond;
        }
        // The superblock has another row, so this takes no free one.
        let Some(next) = self.open_superpage(unit, stream, false) else { return };
        let record = &mut self.superpages[next];
        (record.filled, record.held_bytes) = (beyond, held_bytes);
        record.last_moved = last_moved;
        match last_moved {
            Some(cause) => record.moved[cause as usize] = beyond,
            None => record.has_host_data = true,
        }
    }

    /// The program commands of a superpage have ended. A superblock whose last row this was can be collected.
    pub(crate) fn row_programmed(&mut self, superpage: u32) {
        let Superpage { unit, block, row, stream, .. } = self.superpages[superpage];
        self.row_is_done(unit, EarlyRow { block, row, stream });
    }

    /// A row of a stream's superblock is on flash; with the last one the superblock is sealed.
    #[inline(always)]
    fn row_is_on_flash(&mut self, block: u32, row: u32, stream: Stream) {
        let state = &mut self.superblocks[block];
        let rows = self.geometry.rows_in(state.mode);
        debug_assert_eq!(state.programmed_rows, row, "the pages of a block are programmed in order");
        state.programmed_rows = row + 1;
        if state.programmed_rows == rows && state.state == BlockState::Open {
            self.seal(block, stream);
        }
    }

    /// What a superpage holds is on flash, there or elsewhere; gives its record back.
    pub(crate) fn release_superpage(&mut self, superpage: u32) {
        let record = &mut self.superpages[superpage];
        record.live = false;
        let (stream, position) = (record.stream, record.position);
        self.superpages.give_back(superpage);
        if stream.is_host() {
            self.leave_host_superpages(position);
        }
    }

    fn leave_host_superpages(&mut self, position: u32) {
        self.host_superpages.swap_remove(position as usize);
        if let Some(&moved) = self.host_superpages.get(position as usize) {
            self.superpages[moved].position = position;
        }
    }

    /// A row is done: it is on flash when those before it are.
    fn row_is_done(&mut self, unit: u32, done: EarlyRow) {
        if self.superblocks[done.block].programmed_rows != done.row {
            return self.units[unit as usize].early.push(done);
        }
        let EarlyRow { block, row, stream } = done;
        self.row_is_on_flash(block, row, stream);
        if !self.units[unit as usize].early.is_empty() {
            self.rows_behind_are_on_flash(unit, block, row);
        }
    }

    /// Those rows behind one that is on flash are there too whose programs ended before its own.
    #[inline(never)]
    fn rows_behind_are_on_flash(&mut self, unit: u32, block: u32, mut row: u32) {
        loop {
            let early = &mut self.units[unit as usize].early;
            let Some(at) = early.iter().position(|early| early.block == block && early.row == row + 1) else { return };
            let next = early.remove(at);
            self.row_is_on_flash(block, next.row, next.stream);
            row = next.row;
        }
    }

    /// Whether pages take more or less than a slot.
    #[inline(always)]
    pub(crate) fn has_extents(&self) -> bool {
        self.extents.is_some()
    }

    /// Slots that pages take.
    pub(crate) fn stored_slots(&self) -> u64 {
        self.extents.as_ref().map_or(u64::from(self.mapping.mapped()), |extents| extents.stored())
    }

    /// The superpage that a page which spans two rows ends in, once the one that it starts in is closed.
    pub(crate) fn superpage_behind(&self, placement: Placement) -> Option<u32> {
        let Superpage { unit, stream, .. } = self.superpages[placement.superpage()];
        self.open_superpage_of(unit, stream)
    }

    /// How many logical pages are mapped.
    pub(crate) fn mapped_pages(&self) -> u64 {
        u64::from(self.mapping.mapped())
    }

    /// Counts a programmed superpage with so many slots filled, and those of them that were moved by cause.
    pub(crate) fn count_programmed(&self, filled: u32, moved: [u32; Cause::COUNT], counters: &mut FlashCounters) {
        let slot_bytes = self.slot_bytes();
        let slots = self.geometry.slots;
        counters.bytes_programmed.0 += self.geometry.program_bytes();
        counters.padding_bytes.0 += u64::from(slots - filled) * slot_bytes;
        if moved == [0; Cause::COUNT] {
            return;
        }
        let bytes = |cause: Cause| u64::from(moved[cause as usize]) * slot_bytes;
        counters.gc_bytes_moved.0 += bytes(Cause::Gc);
        if !self.has_extents() {
            counters.gc_pages_moved += u64::from(moved[Cause::Gc as usize]);
        }
        counters.wear_levelling_bytes_moved.0 += bytes(Cause::WearLevelling);
        counters.retirement_bytes_moved.0 += bytes(Cause::Retirement);
        counters.folding_bytes_moved.0 += bytes(Cause::Folding);
    }
}

/// On the path of requests the page map is called by its own methods of these names, which the compiler sees through.
impl Ftl for PageMap {
    fn build(config: &DeviceConfig, _: &Geometry, seed: u64) -> Self {
        Self::new(config, seed)
    }

    /// Every drive has a page map, if an idle one, which stands elsewhere in a saved drive.
    fn describe(_: &mut Layout) {}

    fn slot_of(&self, logical_page: u32) -> Option<u32> {
        self.slot_of(logical_page)
    }

    fn locate(&self, logical_page: u32) -> Location {
        self.locate(logical_page)
    }

    fn forget(&mut self, logical_page: u32) -> Option<u32> {
        self.trim(logical_page)
    }

    fn is_empty(&self) -> bool {
        self.mapping.mapped() == 0
    }

    fn fill_in_order(&mut self, pages: u32, kept: KeptAs) {
        self.fill_in_order(pages, kept);
    }

    fn erase_histogram(&self) -> BTreeMap<u32, u64> {
        let mut histogram = histogram(self.used_superblocks().map(|block| block.erase_count));
        if let fresh @ 1.. = self.fresh_superblocks() {
            *histogram.entry(0).or_default() += fresh;
        }
        histogram
    }

    fn mapped_and_valid_pages(&self) -> (u64, u64) {
        let valid = self.used_superblocks().map(|block| u64::from(block.valid)).sum();
        (self.stored_slots(), valid)
    }

    fn check(&self) -> Result<(), String> {
        self.check()
    }
}
