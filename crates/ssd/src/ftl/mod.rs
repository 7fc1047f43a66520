//! The flash translation layer: where data goes, where it is, what becomes free.
//!
//! A placement policy ([`placement`]) names the parallel unit that a written page goes to. Inside the unit, data fills
//! the open superpage in the order of arrival. A superpage is programmed when it is full, or padded when a flush or a
//! forced write cannot wait.

pub(crate) mod blocks;
pub(crate) mod gc;
pub(crate) mod geometry;
pub(crate) mod mapping;
pub(crate) mod mapping_cache;
pub(crate) mod placement;
pub(crate) mod prefill;
pub(crate) mod sectors;
pub(crate) mod superblock;

use std::collections::VecDeque;

use crate::config::{DeviceConfig, GcPolicy};
use crate::list::{NONE, Slab};
use gc::{Greedy, VictimPolicy};
use geometry::Geometry;
use mapping::Mapping;
use placement::{AnyPlacement, PlacementPolicy};
use superblock::{BlockState, Superblocks};

/// Free superblocks that only garbage collection may open, so that it can always finish.
const GC_RESERVE: usize = 1;

/// Whose data a superpage holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Written by the host.
    #[default]
    Host,
    /// Moved by garbage collection.
    Gc,
}

/// A superpage between its first slot and the end of its program command.
#[derive(Debug, Default)]
pub(crate) struct Superpage {
    pub(crate) live: bool,
    pub(crate) stream: Stream,
    pub(crate) unit: u32,
    pub(crate) block: u32,
    pub(crate) row: u32,
    /// Slots in use.
    pub(crate) filled: u32,
    /// Room that its pages take in the write buffer, bytes.
    pub(crate) held_bytes: u32,
    /// Program commands that have not ended; zero also before they are issued.
    pub(crate) programs_left: u32,
    /// Handed to the flash: nothing may change in it any more.
    pub(crate) issued: bool,
    /// Distinguishes this use of the record from later ones.
    pub(crate) generation: u64,
    /// Where it stands in the list of the host's superpages.
    position: u32,
    /// Requests that complete only when this is on flash.
    pub(crate) waiters: Vec<u32>,
}

/// Where one stream of a unit writes.
#[derive(Clone, Copy)]
struct WritePoint {
    block: u32,
    superpage: u32,
}

const CLOSED: WritePoint = WritePoint { block: NONE, superpage: NONE };

/// A parallel unit.
struct Unit {
    /// Erased superblocks, first erased first used.
    free: VecDeque<u32>,
    host: WritePoint,
    gc: WritePoint,
}

impl Unit {
    /// The free superblock that is due to be written.
    fn take_free(&mut self) -> Option<u32> {
        self.free.pop_front()
    }
}

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

/// Where a written logical page was put.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    /// Its slot.
    pub(crate) slot: u32,
    /// The superpage record that the slot is in.
    pub(crate) superpage: u32,
    /// The slot is new; otherwise a page that was still in the open superpage is overwritten there.
    pub(crate) new_slot: bool,
    /// The superpage is full now.
    pub(crate) full: bool,
}

/// What became of a page that garbage collection wanted to move.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Relocation {
    /// It was overwritten or trimmed meanwhile.
    NotValid,
    /// No superblock is free.
    NoRoom,
    /// It is there now; with its logical page.
    Moved(Placement, u32),
}

/// The page-mapping FTL of a drive.
pub(crate) struct Ftl {
    pub(crate) geometry: Geometry,
    mapping: Mapping,
    pub(crate) superblocks: Superblocks,
    policy: Box<dyn VictimPolicy + Send>,
    units: Vec<Unit>,
    pub(crate) superpages: Slab<Superpage>,
    generation: u64,
    /// Superpages with host data that are not on flash yet, in no order.
    host_superpages: Vec<u32>,
    placement: AnyPlacement,
    gc_free_superblocks: usize,
}

impl Ftl {
    /// An empty drive.
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let geometry = Geometry::new(config);
        let Geometry { units, superblocks, .. } = geometry;
        let policy = match config.ftl.gc_policy {
            GcPolicy::Greedy => Box::new(Greedy::new(units, superblocks, geometry.slots_per_superblock())),
        };
        let logical_pages = config.logical_pages() + u64::from(config.translation_pages());
        let placement = AnyPlacement::new(config, &geometry);
        Self::with(geometry, logical_pages, policy, placement, config.ftl.gc_free_superblocks as usize)
    }

    fn with(
        geometry: Geometry,
        logical_pages: u64,
        policy: Box<dyn VictimPolicy + Send>,
        placement: AnyPlacement,
        gc_free_superblocks: usize,
    ) -> Self {
        let Geometry { units, superblocks, .. } = geometry;
        let unit = |u: u32| Unit { free: (u * superblocks..(u + 1) * superblocks).collect(), host: CLOSED, gc: CLOSED };
        Self {
            geometry,
            mapping: Mapping::new(logical_pages, geometry.total_slots()),
            superblocks: Superblocks::new(&geometry),
            policy,
            units: (0..units).map(unit).collect(),
            superpages: Slab::default(),
            generation: 0,
            host_superpages: Vec::new(),
            placement,
            gc_free_superblocks,
        }
    }

    /// Stands in where something else maps the logical pages.
    pub(crate) fn idle(config: &DeviceConfig, geometry: Geometry) -> Self {
        let mut ftl =
            Self::with(Geometry::trivial(), 0, Box::new(Greedy::new(1, 1, 1)), AnyPlacement::new(config, &geometry), 0);
        ftl.geometry = geometry;
        ftl
    }

    /// Where a logical page is.
    pub(crate) fn locate(&self, logical_page: u32) -> Location {
        let Some(slot) = self.mapping.slot_of(logical_page) else { return Location::Nowhere };
        let (block, row) = self.geometry.block_and_row(slot);
        if row < self.superblocks[block].programmed_rows { Location::Flash(slot) } else { Location::Buffer(slot) }
    }

    /// Finds the host's page a slot; `None` when no unit that may take it has room. `n` is its place in a write of
    /// `pages` pages, `commands_of_die` the work that each die has.
    pub(crate) fn place(
        &mut self,
        logical_page: u32,
        (n, pages): (u32, u32),
        commands_of_die: &[u32],
    ) -> Option<Placement> {
        let mut attempt = 0;
        let unit = loop {
            let unit = self.placement.unit(logical_page, attempt, commands_of_die)?;
            if self.has_room(unit) {
                break unit;
            }
            attempt += 1;
        };
        self.placement.placed(unit, n, pages);
        self.append(unit, Stream::Host, logical_page)
    }

    /// The one unit that a logical page is bound to; `None` where any unit may take it.
    pub(crate) fn bound_unit(&self, logical_page: u32) -> Option<u32> {
        self.placement.bound_unit(logical_page)
    }

    /// Overwrites a page that is in a superpage which is still open; it needs no new slot.
    pub(crate) fn overwrite_in_buffer(&mut self, logical_page: u32, (n, pages): (u32, u32)) -> Option<Placement> {
        let slot = self.mapping.slot_of(logical_page)?;
        let (block, row) = self.geometry.block_and_row(slot);
        let superpage = self.units[(block / self.geometry.superblocks) as usize].host.superpage;
        if superpage == NONE {
            return None;
        }
        let open = &self.superpages[superpage];
        if open.block != block || open.row != row {
            return None;
        }
        self.placement.overwritten(n, pages);
        Some(Placement { slot, superpage, new_slot: false, full: false })
    }

    fn has_room(&self, unit: u32) -> bool {
        let state = &self.units[unit as usize];
        state.host.superpage != NONE || state.host.block != NONE || state.free.len() > GC_RESERVE
    }

    /// Moves a page of a victim.
    pub(crate) fn relocate(&mut self, from: u32) -> Relocation {
        let Some(logical_page) = self.mapping.page_in(from) else { return Relocation::NotValid };
        let unit = self.geometry.block_and_row(from).0 / self.geometry.superblocks;
        match self.append(unit, Stream::Gc, logical_page) {
            Some(placement) => Relocation::Moved(placement, logical_page),
            None => Relocation::NoRoom,
        }
    }

    /// Puts a logical page into the next slot of a unit's stream.
    fn append(&mut self, unit: u32, stream: Stream, logical_page: u32) -> Option<Placement> {
        let superpage = self.open_superpage(unit, stream)?;
        let slots = self.geometry.slots;
        let open = &mut self.superpages[superpage];
        let slot = self.geometry.first_slot(open.block, open.row) + open.filled;
        open.filled += 1;
        let (block, full) = (open.block, open.filled == slots);
        self.superblocks[block].valid += 1;
        if let Some(old) = self.mapping.map(logical_page, slot) {
            self.lose_valid_page(old);
        }
        Some(Placement { slot, superpage, new_slot: true, full })
    }

    /// Forgets a logical page; gives the slot that held it.
    pub(crate) fn trim(&mut self, logical_page: u32) -> Option<u32> {
        let slot = self.mapping.unmap(logical_page)?;
        self.lose_valid_page(slot);
        Some(slot)
    }

    /// Whether nobody has written anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.mapping.mapped() == 0
    }

    /// The slot that holds a page now; `None` when nobody wrote it.
    pub(crate) fn slot_of(&self, logical_page: u32) -> Option<u32> {
        self.mapping.slot_of(logical_page)
    }

    /// The logical page that a slot validly holds.
    pub(crate) fn page_in(&self, slot: u32) -> Option<u32> {
        self.mapping.page_in(slot)
    }

    fn lose_valid_page(&mut self, slot: u32) {
        let (block, _) = self.geometry.block_and_row(slot);
        let state = &mut self.superblocks[block];
        state.valid -= 1;
        if state.state == BlockState::Sealed {
            let valid = state.valid;
            self.policy.invalidated(block, valid);
        }
    }

    fn point(&mut self, unit: u32, stream: Stream) -> &mut WritePoint {
        let unit = &mut self.units[unit as usize];
        match stream {
            Stream::Host => &mut unit.host,
            Stream::Gc => &mut unit.gc,
        }
    }

    /// The superpage that a stream fills, opened if need be.
    fn open_superpage(&mut self, unit: u32, stream: Stream) -> Option<u32> {
        let point = *self.point(unit, stream);
        if point.superpage != NONE {
            return Some(point.superpage);
        }
        let block = if point.block == NONE { self.open_superblock(unit, stream)? } else { point.block };
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
        if stream == Stream::Host {
            record.position = self.host_superpages.len() as u32;
            self.host_superpages.push(superpage);
        }
        self.point(unit, stream).superpage = superpage;
        Some(superpage)
    }

    fn open_superblock(&mut self, unit: u32, stream: Stream) -> Option<u32> {
        let free = &mut self.units[unit as usize].free;
        if stream == Stream::Host && free.len() <= GC_RESERVE {
            return None;
        }
        let block = free.pop_front()?;
        let state = &mut self.superblocks[block];
        debug_assert_eq!((state.state, state.valid), (BlockState::Free, 0));
        (state.state, state.allocated_rows, state.programmed_rows) = (BlockState::Open, 0, 0);
        self.point(unit, stream).block = block;
        Some(block)
    }

    /// The superpage that garbage collection of a unit has begun to fill.
    pub(crate) fn open_gc_superpage(&self, unit: u32) -> Option<u32> {
        let superpage = self.units[unit as usize].gc.superpage;
        (superpage != NONE).then_some(superpage)
    }

    /// Every superpage with host data that is not on flash yet, being filled or being programmed.
    pub(crate) fn host_superpages(&self) -> &[u32] {
        &self.host_superpages
    }

    /// Closes a superpage: from now on it is programmed and nothing is added to it.
    pub(crate) fn close_superpage(&mut self, superpage: u32) {
        let record = &mut self.superpages[superpage];
        debug_assert!(record.live && !record.issued);
        record.issued = true;
        record.programs_left = self.geometry.dies_per_unit;
        let (unit, stream, block) = (record.unit, record.stream, record.block);
        let block_is_full = self.superblocks[block].allocated_rows == self.geometry.rows;
        let point = self.point(unit, stream);
        debug_assert_eq!(point.superpage, superpage);
        point.superpage = NONE;
        if block_is_full {
            point.block = NONE;
        }
    }

    /// A superpage is on flash; gives its record back. A superblock whose last row this was can be collected.
    pub(crate) fn superpage_programmed(&mut self, superpage: u32) {
        let record = &mut self.superpages[superpage];
        record.live = false;
        let (block, row, stream, position) = (record.block, record.row, record.stream, record.position);
        self.superpages.give_back(superpage);
        if stream == Stream::Host {
            self.host_superpages.swap_remove(position as usize);
            if let Some(&moved) = self.host_superpages.get(position as usize) {
                self.superpages[moved].position = position;
            }
        }
        self.row_programmed(block, row);
    }

    /// A row is on flash; with the last one the superblock is sealed.
    fn row_programmed(&mut self, block: u32, row: u32) {
        let state = &mut self.superblocks[block];
        debug_assert_eq!(state.programmed_rows, row, "the pages of a block are programmed in order");
        state.programmed_rows = row + 1;
        if state.programmed_rows == self.geometry.rows {
            state.state = BlockState::Sealed;
            let valid = state.valid;
            self.policy.sealed(block, valid);
        }
    }

    /// Whether a unit has fewer free superblocks than garbage collection keeps, those `soon_free` included.
    pub(crate) fn wants_collection(&self, unit: u32, soon_free: usize) -> bool {
        self.units[unit as usize].free.len() + soon_free < self.gc_free_superblocks
    }

    /// Free superblocks of a unit once garbage collection keeps up: it starts when one more is taken.
    fn free_in_steady_state(&self) -> u32 {
        (self.gc_free_superblocks as u32).saturating_sub(1)
    }

    /// The superblock to collect next; `None` when collecting the best one would free nothing.
    pub(crate) fn take_victim(&mut self, unit: u32) -> Option<u32> {
        let block = self.policy.take_victim(unit)?;
        let valid = self.superblocks[block].valid;
        if valid == self.geometry.slots_per_superblock() {
            self.policy.sealed(block, valid);
            return None;
        }
        self.superblocks[block].state = BlockState::Victim;
        Some(block)
    }

    /// The slots of a superblock's row that are valid.
    pub(crate) fn valid_slots(&self, block: u32, row: u32) -> impl Iterator<Item = u32> {
        let first = self.geometry.first_slot(block, row);
        (first..first + self.geometry.slots).filter(|&slot| self.mapping.page_in(slot).is_some())
    }

    /// A collected superblock is erased.
    pub(crate) fn superblock_erased(&mut self, block: u32) {
        let state = &mut self.superblocks[block];
        debug_assert_eq!((state.state, state.valid), (BlockState::Victim, 0), "nothing valid is ever erased");
        state.state = BlockState::Free;
        state.erase_count += 1;
        let unit = block / self.geometry.superblocks;
        self.units[unit as usize].free.push_back(block);
    }

    /// Checks what must hold between any two events.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.mapping.check()?;
        let per_block = self.geometry.slots_per_superblock();
        for (block, state) in self.superblocks.blocks.iter().enumerate() {
            let first = self.geometry.first_slot(block as u32, 0);
            let pages = (first..first + per_block).filter(|&slot| self.mapping.page_in(slot).is_some());
            let valid = pages.count() as u32;
            if valid != state.valid {
                return Err(format!("superblock {block} counts {} valid pages and holds {valid}", state.valid));
            }
            if state.state == BlockState::Free && valid != 0 {
                return Err(format!("superblock {block} is free and holds {valid} valid pages"));
            }
        }
        Ok(())
    }
}
