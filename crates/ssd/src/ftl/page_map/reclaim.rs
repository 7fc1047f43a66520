//! Superblocks on their way from full to free: sealing, victims, wear, retirement, and what the host may take.
//!
//! ```text
//!   free ──▶ host, gc, cold write points ──▶ sealed ──▶ victim ──▶ erased ──▶ free
//!    │                                                     │
//!    └─ the last ones only for what is moved               └─▶ bad, when it fails or is worn out
//! ```
//!
//! That a collection can always finish rests on two counts. Before a victim is taken beside others, there is a free
//! superblock for each of them; and the host may take a free superblock only while one for each victim in progress, and
//! one in any case, stays behind. Where the host and collection fill the same superblock, padding on behalf of a flush
//! may cost a row of it, so one more stays behind. Where moved pages have several classes, a page whose class has no
//! room goes to another class that has, so that the counts are the same.

use rand::RngExt;

use super::{CLOSED, Cause, PageMap, Stream, WritePoint};
use crate::config::{DeviceConfig, GcTrigger, StaticUnits, StaticWearLevelling};
use crate::ftl::gc::{Choice, Context, Origin, VictimPolicy};
use crate::ftl::geometry::Geometry;
use crate::ftl::placement;
use crate::ftl::streams::{ByStream, StreamPolicy, StreamSet};
use crate::ftl::superblock::{BlockState, Superblock};
use crate::ftl::wear::{ColdBlocks, FreeBlocks, UnitWear};
use crate::list::NONE;

/// A row that is done before its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EarlyRow {
    pub(super) block: u32,
    pub(super) row: u32,
    pub(super) stream: Stream,
}

/// A parallel unit.
pub(super) struct Unit {
    pub(super) free: FreeBlocks,
    /// Where each [`Stream`] writes.
    pub(super) points: ByStream<WritePoint>,
    wear: UnitWear,
    /// Sealed superblocks by wear; only where cold data is ever moved.
    cold: Option<ColdBlocks>,
    sealed: u32,
    /// Invalid pages in them.
    invalid: u32,
    /// Valid slots in the full superblocks of the SLC cache.
    pub(super) cached: u32,
    /// The dedicated superblock of the SLC cache that is being emptied, if any: its data takes a free one, and none
    /// comes of it.
    pub(super) folding_dedicated: Option<u32>,
    /// Victims in progress.
    victims: u32,
    /// Superblocks that are bad or about to be.
    pub(super) bad: u32,
    /// The host has to wait until the units on its dies are clean.
    is_held: bool,
    /// The victim policy asked for cold data to be moved.
    migrates: bool,
    /// What is moved may go to the host's open superblocks, as there is no other room.
    pub(super) lends_room: bool,
    /// Superblocks filled that collection has not heard of.
    filled: u32,
    /// Rows that are on flash, or never will be, before those ahead of them.
    pub(super) early: Vec<EarlyRow>,
}

impl Unit {
    pub(super) fn new(config: &DeviceConfig, geometry: &Geometry) -> Self {
        let (superblocks, cold) = (geometry.superblocks, config.moves_cold_data());
        Self {
            free: FreeBlocks::all(superblocks, config.ftl.wear_levelling.dynamic, cold),
            points: ByStream::all(CLOSED),
            wear: UnitWear::new(superblocks),
            cold: cold.then(|| ColdBlocks::new(superblocks)),
            sealed: 0,
            invalid: 0,
            cached: 0,
            folding_dedicated: None,
            victims: 0,
            bad: 0,
            is_held: false,
            migrates: false,
            lends_room: false,
            filled: 0,
            early: Vec::new(),
        }
    }
}

/// What the configuration says of reclaiming.
pub(super) struct Reclaiming {
    /// A unit with fewer free superblocks is low.
    threshold: u32,
    /// Free superblocks that the host leaves to collection while no victim is in progress.
    reserve: u32,
    /// Fewer free superblocks than this keep the host's writes waiting.
    host_reserve: u32,
    /// A superblock that is filled makes place for a free one at once.
    replaces_at_once: bool,
    /// Moved data goes to the superblock that the host fills.
    shares_open_block: bool,
    /// Classes of moved pages.
    gc_classes: u8,
    /// Classes of the host's pages.
    host_classes: u8,
    /// Erasures that the superblocks of a unit may be apart; `None` without static wear levelling.
    wear_apart_max: Option<u32>,
    erasures_max: u32,
    /// Bad superblocks that a unit can bear.
    bad_max: u32,
    /// Valid pages in sealed superblocks of a unit beyond which the host's pages go to another one, where they may.
    valid_max: u32,
}

impl Reclaiming {
    pub(super) fn new(config: &DeviceConfig, geometry: &Geometry, logical_pages: u64) -> Self {
        let shares_open_block = !config.ftl.gc.separate_open_block;
        let levelling = &config.ftl.wear_levelling;
        let is_static = levelling.static_ == StaticWearLevelling::Threshold;
        let spans_rows = config.compression().is_some();
        let kept = config.superblocks_kept() - u64::from(config.factory_bad_superblocks());
        let stored_slots = stored_slots(config, logical_pages);
        let in_fullest = match &config.ftl.domains[..] {
            [] => stored_slots.div_ceil(u64::from(geometry.units)),
            _ => StaticUnits::fullest(config).1,
        };
        let needed = in_fullest.div_ceil(u64::from(geometry.slots_per_superblock())) + kept;
        Self {
            threshold: config.gc_threshold(),
            reserve: 1 + u32::from(shares_open_block && geometry.slots > 1) + u32::from(spans_rows),
            host_reserve: config.ftl.gc.host_reserve_superblocks.unwrap_or(0),
            replaces_at_once: config.ftl.gc.trigger == GcTrigger::SuperblockFilled,
            shares_open_block,
            gc_classes: config.ftl.streams.gc_classes() as u8,
            host_classes: config.ftl.streams.host_classes() as u8,
            wear_apart_max: is_static.then_some(levelling.threshold),
            erasures_max: config.ftl.bad_blocks.erasures_max.unwrap_or(u32::MAX),
            bad_max: u64::from(geometry.superblocks).saturating_sub(needed) as u32,
            valid_max: valid_max(config, geometry, stored_slots),
        }
    }
}

/// Slots that what is stored may take.
fn stored_slots(config: &DeviceConfig, logical_pages: u64) -> u64 {
    match &config.reduction {
        Some(_) => config.physical_bytes() / config.slot_bytes(),
        None => logical_pages,
    }
}

/// Valid slots that a unit may hold before the host's go elsewhere, where they may: an even share, and what chance
/// makes of it, which is an eighth of the space that is spare, or a superblock.
fn valid_max(config: &DeviceConfig, geometry: &Geometry, stored_slots: u64) -> u32 {
    if placement::binds_addresses(config, geometry) {
        return u32::MAX;
    }
    let slots = geometry.slots_per_superblock();
    let even_share = stored_slots.div_ceil(u64::from(geometry.units)) as u32;
    let kept = config.superblocks_kept() as u32;
    let spare = (geometry.superblocks.saturating_sub(kept)).saturating_mul(slots).saturating_sub(even_share);
    even_share.saturating_add(slots.max(spare / SPARE_PARTS))
}

/// See [`valid_max`].
const SPARE_PARTS: u32 = 8;

/// What has to be done with a superblock that is retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retirement {
    /// Nothing.
    Done,
    /// What is valid in it moves; the superpage that was being filled in it, if any, is not programmed.
    Empty {
        /// The superpage, as an index of its record.
        open_superpage: Option<u32>,
    },
}

impl PageMap {
    /// Takes the superblocks that are bad from the factory away from every unit.
    pub(super) fn take_factory_bad_superblocks(&mut self, config: &DeviceConfig) {
        let bad = config.factory_bad_superblocks();
        let superblocks = self.geometry.superblocks;
        for unit in 0..self.geometry.units {
            let mut still_bad = bad;
            for index in 0..superblocks {
                if still_bad == 0 {
                    break;
                }
                // Each of those left is bad with the probability that makes their number come out.
                if self.random.random_range(0..superblocks - index) < still_bad {
                    self.superblocks[unit * superblocks + index].state = BlockState::Bad;
                    self.units[unit as usize].free.remove(index);
                    still_bad -= 1;
                }
            }
            self.units[unit as usize].bad = bad - still_bad;
        }
    }

    /// Where everything goes that is moved for a reason; `None` where it is told apart.
    pub(crate) fn only_stream(&self, cause: Cause) -> Option<Stream> {
        match cause {
            Cause::WearLevelling => Some(Stream::COLD),
            _ if self.reclaiming.shares_open_block => Some(Stream::HOST),
            _ => (self.reclaiming.gc_classes == 1).then_some(Stream::gc(0)),
        }
    }

    /// Where a page of a superblock of `from` goes that garbage collection moves.
    pub(super) fn stream_of_moved(&self, logical_page: u32, from: Stream) -> Stream {
        Stream::gc(self.streams.class_of_moved(logical_page, from, self.clock))
    }

    /// The stream of the host's that may be filling a superblock; `None` where none is. With a single one, the
    /// superblock need not be examined.
    #[inline]
    pub(super) fn stream_to_overwrite(&self, block: u32) -> Option<Stream> {
        match self.reclaiming.host_classes {
            1 => Some(Stream::HOST),
            _ => Some(self.superblocks[block].stream).filter(|stream| stream.is_host()),
        }
    }

    /// Whether the host's pages are told apart.
    pub(super) fn has_several_host_classes(&self) -> bool {
        self.reclaiming.host_classes > 1
    }

    /// Where garbage collection moves pages to, class by class.
    pub(super) fn gc_streams(&self) -> impl Iterator<Item = Stream> + use<> {
        let shared = self.reclaiming.shares_open_block.then_some(Stream::HOST);
        let classes = 0..if shared.is_some() { 0 } else { self.reclaiming.gc_classes };
        shared.into_iter().chain(classes.map(Stream::gc))
    }

    /// Lets what is moved in a unit go to the host's open superblocks, or no longer.
    pub(crate) fn lend_room(&mut self, unit: u32, lends: bool) {
        self.units[unit as usize].lends_room = lends;
    }

    /// Whether a page that is moved may go to one of the host's open superblocks.
    pub(crate) fn may_borrow_room(&self, unit: u32, cause: Cause) -> bool {
        cause == Cause::Retirement || self.units[unit as usize].lends_room
    }

    /// The host's superblocks that are open in a unit and may take a moved page where there is no other room for it.
    pub(super) fn open_host_streams(&self, unit: u32) -> impl Iterator<Item = Stream> {
        let takes_moved = self.extents.is_none() && !self.has_slc_cache();
        let streams = (0..if takes_moved { self.reclaiming.host_classes } else { 0 }).map(Stream::host);
        streams.filter(move |&stream| self.units[unit as usize].points[stream].is_open())
    }

    /// The streams that a victim counts as having data in before any of it is moved: where there is but one that its
    /// data can go to, that one, so that the victim waits for what others have put there.
    pub(crate) fn streams_of_victim(&self, cause: Cause) -> StreamSet {
        self.only_stream(cause).map_or(StreamSet::EMPTY, StreamSet::from)
    }

    /// Classes of moved pages.
    pub(crate) fn gc_classes(&self) -> u32 {
        u32::from(self.reclaiming.gc_classes)
    }

    /// Free superblocks of a unit that collection keeps.
    pub(super) fn collection_keeps(&self) -> u32 {
        self.reclaiming.threshold
    }

    /// Free superblocks that the host leaves to collection.
    #[inline(always)]
    pub(super) fn reserve(&self, unit: u32) -> u32 {
        self.reserve_of(&self.units[unit as usize])
    }

    #[inline(always)]
    fn reserve_of(&self, Unit { victims, folding_dedicated, .. }: &Unit) -> u32 {
        self.reclaiming.reserve + victims.saturating_sub(1) + u32::from(folding_dedicated.is_some())
    }

    /// Whether the host may write to a stream of a unit.
    #[inline(always)]
    pub(super) fn has_room(&self, unit: u32, stream: Stream) -> bool {
        let state = &self.units[unit as usize];
        let (free, reserve) = (state.free.len(), self.reserve_of(state));
        let may_open = free > reserve;
        let may_fill = state.points[stream].is_open() && (!self.reclaiming.shares_open_block || free >= reserve);
        let has_room = match self.slc_cache.is_some() {
            false => may_fill || may_open,
            true => may_fill || self.has_room_beside_slc_cache(unit, may_open),
        };
        has_room && free >= self.reclaiming.host_reserve && !state.is_held
    }

    /// Whether a unit has so much valid data that the next superpage of a stream of the host's should go to another
    /// one: what one unit has too much is room that its collection lacks, while another has more of it than it needs.
    #[inline]
    pub(super) fn is_overfull(&self, unit: u32, stream: Stream) -> bool {
        let Unit { sealed, invalid, cached, points, .. } = &self.units[unit as usize];
        points[stream].superpage == NONE
            && sealed * self.geometry.slots_per_superblock() - invalid + cached > self.reclaiming.valid_max
    }

    /// A unit has so many valid slots less: it may not be overfull any more.
    #[inline]
    fn lost_valid(&mut self, unit: u32, slots: u32) {
        let Unit { sealed, invalid, cached, .. } = &self.units[unit as usize];
        let valid = sealed * self.geometry.slots_per_superblock() - invalid + cached;
        if (valid..valid + slots).contains(&self.reclaiming.valid_max) {
            self.full = None;
        }
    }

    /// One of a unit's superblocks is filled: where that makes it take a victim, it is noted, and a free superblock
    /// takes its place.
    pub(super) fn superblock_filled(&mut self, unit: u32, stream: Stream) {
        if self.reclaiming.replaces_at_once {
            self.units[unit as usize].filled += 1;
            self.open_superblock(unit, stream, false);
        }
    }

    /// Whether a superblock of a unit was filled since [`Self::take_filled`].
    #[inline]
    pub(crate) fn has_filled(&self, unit: u32) -> bool {
        self.units[unit as usize].filled > 0
    }

    /// How many superblocks of a unit were filled since the last call.
    pub(crate) fn take_filled(&mut self, unit: u32) -> u32 {
        std::mem::take(&mut self.units[unit as usize].filled)
    }

    /// Whether the host's writes to a unit wait for free superblocks.
    pub(crate) fn blocks_host(&self, unit: u32) -> bool {
        self.is_below_host_reserve(unit) || self.free_superblocks(unit) <= self.reserve(unit)
    }

    /// Whether a unit has fewer free superblocks than the host leaves in any case.
    pub(crate) fn is_below_host_reserve(&self, unit: u32) -> bool {
        self.free_superblocks(unit) < self.reclaiming.host_reserve
    }

    /// Takes the free superblock that a stream writes next.
    pub(super) fn take_free(&mut self, unit: u32, stream: Stream, for_host: bool) -> Option<u32> {
        if for_host && self.units[unit as usize].free.len() <= self.reserve(unit) {
            return None;
        }
        let free = &mut self.units[unit as usize].free;
        let index = if stream == Stream::COLD { free.take_most_worn() } else { free.take() }?;
        Some(unit * self.geometry.superblocks + index)
    }

    /// Free superblocks of a unit.
    pub(crate) fn free_superblocks(&self, unit: u32) -> u32 {
        self.units[unit as usize].free.len()
    }

    /// Whether a unit has fewer free superblocks than garbage collection keeps, those `soon_free` included.
    pub(crate) fn wants_collection(&self, unit: u32, soon_free: usize) -> bool {
        (self.free_superblocks(unit) as usize + soon_free) < self.reclaiming.threshold as usize
    }

    /// Free superblocks of a unit once garbage collection keeps up: it starts when one more is taken.
    pub(super) fn free_in_steady_state(&self) -> u32 {
        self.reclaiming.threshold.saturating_sub(1)
    }

    /// Makes the host wait for a unit, or no longer.
    pub(crate) fn hold(&mut self, unit: u32, held: bool) {
        self.units[unit as usize].is_held = held;
        self.full = None;
    }

    /// Whether the host waits for a unit.
    pub(crate) fn is_held(&self, unit: u32) -> bool {
        self.units[unit as usize].is_held
    }

    /// A superblock is fully written.
    #[inline(never)]
    pub(super) fn seal(&mut self, block: u32, stream: Stream) {
        if self.is_slc(block) {
            return self.seal_cached(block);
        }
        let (unit, index) = self.geometry.unit_and_index(block);
        let state = &mut self.superblocks[block];
        state.state = BlockState::Sealed;
        let (valid, erase_count) = (state.valid, state.erase_count);
        let origin = if stream.is_host() { Origin::Host } else { Origin::Moved };
        let unit = &mut self.units[unit as usize];
        unit.sealed += 1;
        unit.invalid += self.geometry.slots_per_superblock() - valid;
        if let Some(cold) = &mut unit.cold {
            cold.insert(index, erase_count);
        }
        self.policy.sealed(block, self.in_pages(valid), origin, self.clock);
    }

    /// So many slots in whole logical pages, which is what victims are chosen by.
    #[inline(always)]
    fn in_pages(&self, slots: u32) -> u32 {
        self.extents.as_ref().map_or(slots, |extents| extents.in_pages(slots))
    }

    /// A sealed superblock has lost a valid page of so many slots and has `valid` slots left.
    #[inline]
    pub(super) fn lost_sealed_page(&mut self, block: u32, valid: u32, slots: u32) {
        let unit = self.geometry.unit_of(block);
        self.units[unit as usize].invalid += slots;
        self.lost_valid(unit, slots);
        // A page is no longer than one, so this is one less or the same.
        let pages = self.in_pages(valid);
        if self.extents.is_none() || pages < self.in_pages(valid + slots) {
            self.policy.invalidated(block, pages, self.clock);
        }
    }

    /// A superblock is not sealed any more.
    fn unseal(&mut self, block: u32, into: BlockState) {
        let (unit, index) = self.geometry.unit_and_index(block);
        let state = &mut self.superblocks[block];
        state.state = into;
        let invalid = self.geometry.slots_per_superblock() - state.valid;
        let unit = &mut self.units[unit as usize];
        unit.sealed -= 1;
        unit.invalid -= invalid;
        self.full = None;
        if let Some(cold) = &mut unit.cold {
            cold.remove(index);
        }
    }

    /// Whether collecting can gain a superblock: the invalid pages of sealed ones, and the clean ones that moved data
    /// can go to, whatever its class, are as many. Without that, pages would be moved round and round.
    fn has_something_to_gain(&self, unit: u32) -> bool {
        let room = self.gc_streams().map(|stream| self.room_of(unit, stream)).min().unwrap_or(0);
        let state = &self.units[unit as usize];
        state.invalid + room >= self.geometry.slots_per_superblock() + self.waste_of(state.sealed)
    }

    /// Slots that are lost at the ends of superblocks, twice at most, when what so many of them hold is moved: a
    /// superblock is full when the longest page would not fit any more.
    fn waste_of(&self, superblocks: u32) -> u32 {
        self.extents.as_ref().map_or(0, |extents| 2 * extents.longest() * superblocks)
    }

    /// Clean slots of a stream's open superblock.
    fn room_of(&self, unit: u32, stream: Stream) -> u32 {
        let WritePoint { block, superpage } = self.units[unit as usize].points[stream];
        let open_rows = if block == NONE { 0 } else { self.geometry.rows - self.superblocks[block].allocated_rows };
        let open_slots = if superpage == NONE { 0 } else { self.geometry.slots - self.superpages[superpage].filled };
        open_rows * self.geometry.slots + open_slots
    }

    /// The superblock to collect next; `None` when collecting would gain nothing.
    pub(crate) fn take_victim(&mut self, unit: u32) -> Option<u32> {
        if !self.has_something_to_gain(unit) {
            return None;
        }
        let state = &self.units[unit as usize];
        let (superblocks, wear, clock) = (&self.superblocks, &state.wear, self.clock);
        let mut context = Context { superblocks, wear, clock, random: &mut self.random };
        let Choice { block, migrates } = self.policy.take_victim(unit, &mut context)?;
        self.streams.collected(block, self.superblocks[block].stream, self.clock);
        self.unseal(block, BlockState::Victim);
        let state = &mut self.units[unit as usize];
        state.victims += 1;
        state.migrates |= migrates;
        Some(block)
    }

    /// The superblock whose data wear levelling moves now; `None` when the unit is level enough.
    pub(crate) fn take_cold_victim(&mut self, unit: u32) -> Option<u32> {
        let state = &mut self.units[unit as usize];
        let (index, erase_count) = state.cold.as_ref()?.coldest()?;
        let apart = state.wear.most - erase_count;
        let is_due = self.reclaiming.wear_apart_max.is_some_and(|most| apart > most);
        if !std::mem::take(&mut state.migrates) && !is_due {
            return None;
        }
        let block = unit * self.geometry.superblocks + index;
        self.policy.removed(block);
        self.unseal(block, BlockState::Victim);
        self.units[unit as usize].victims += 1;
        Some(block)
    }

    /// Makes a sealed superblock a victim of garbage collection that its policy did not choose.
    pub(super) fn take_sealed(&mut self, block: u32) -> u32 {
        self.policy.removed(block);
        self.streams.collected(block, self.superblocks[block].stream, self.clock);
        self.unseal(block, BlockState::Victim);
        self.units[self.geometry.unit_of(block) as usize].victims += 1;
        block
    }

    /// Nothing valid is left in a victim.
    pub(crate) fn victim_emptied(&mut self, block: u32) {
        debug_assert_eq!((self.superblocks[block].state, self.superblocks[block].valid), (BlockState::Victim, 0));
        self.units[self.geometry.unit_of(block) as usize].victims -= 1;
        self.full = None;
        self.cached_is_emptied(block);
    }

    /// A victim is erased, or its erase has failed; gives whether it can be used again.
    pub(crate) fn superblock_erased(&mut self, block: u32, failed: bool) -> bool {
        let (unit, index) = self.geometry.unit_and_index(block);
        let state = &mut self.superblocks[block];
        debug_assert_eq!((state.state, state.valid), (BlockState::Victim, 0), "nothing valid is ever erased");
        state.erase_count += 1;
        self.leave_slc_mode(block, true);
        if self.is_dedicated(block) {
            return self.dedicated_erased(block, failed);
        }
        let worn_cycles = self.worn_cycles(block);
        let (unit, state) = (&mut self.units[unit as usize], &mut self.superblocks[block]);
        unit.wear.erased(state.erase_count);
        // The superblocks that victims in progress need to go to are used beyond the limit, or these could never end.
        let is_worn = worn_cycles >= f64::from(self.reclaiming.erasures_max) && unit.free.len() > unit.victims;
        if failed || state.is_failing || is_worn {
            unit.bad += u32::from(!state.is_failing);
            state.state = BlockState::Bad;
            return false;
        }
        state.state = BlockState::Free;
        unit.free.insert(index, state.erase_count);
        self.full = None;
        true
    }

    /// A dedicated superblock of the SLC cache is erased, or its erase has failed.
    fn dedicated_erased(&mut self, block: u32, failed: bool) -> bool {
        let is_usable = !failed && !self.superblocks[block].is_failing;
        match is_usable {
            true => self.return_dedicated(block),
            false => self.superblocks[block].state = BlockState::Bad,
        }
        is_usable
    }

    /// A superblock is not to be used any more.
    pub(crate) fn retire(&mut self, block: u32) -> Retirement {
        let (unit, index) = self.geometry.unit_and_index(block);
        let is_dedicated = self.is_dedicated(block);
        if self.superblocks[block].state == BlockState::Bad || self.superblocks[block].is_failing {
            return Retirement::Done;
        }
        self.retire_cached(block);
        let state = &mut self.superblocks[block];
        state.is_failing = true;
        self.units[unit as usize].bad += u32::from(!is_dedicated);
        match state.state {
            BlockState::Open => {
                state.state = BlockState::Failing;
                Retirement::Empty { open_superpage: self.leave_open_superblock(unit, block) }
            }
            BlockState::Sealed => {
                self.policy.removed(block);
                self.unseal(block, BlockState::Failing);
                Retirement::Empty { open_superpage: None }
            }
            BlockState::Cached => {
                state.state = BlockState::Failing;
                Retirement::Empty { open_superpage: None }
            }
            BlockState::Free => {
                state.state = BlockState::Bad;
                if !is_dedicated {
                    self.units[unit as usize].free.remove(index);
                }
                Retirement::Done
            }
            BlockState::Victim | BlockState::Failing | BlockState::Bad => Retirement::Done,
        }
    }

    /// Lets no stream write to a superblock any more; gives the superpage that was being filled there.
    fn leave_open_superblock(&mut self, unit: u32, block: u32) -> Option<u32> {
        let points = &mut self.units[unit as usize].points;
        let point = points.iter_mut().find(|point| point.block == block)?;
        let superpage = std::mem::replace(point, CLOSED).superpage;
        if superpage == NONE {
            return None;
        }
        // Its row was never handed to the flash: what it holds counts as being in the write buffer.
        self.superblocks[block].allocated_rows -= 1;
        self.superpages[superpage].issued = true;
        Some(superpage)
    }

    /// Starts emptying a superblock that is retired; `false` while its last program commands run or no superblock is
    /// free for what it holds.
    pub(crate) fn take_failing_victim(&mut self, block: u32) -> bool {
        let unit = self.geometry.unit_of(block);
        let state = &self.superblocks[block];
        let is_quiet = state.programmed_rows == state.allocated_rows;
        let has_room = self.units[unit as usize].free.len() > self.units[unit as usize].victims;
        if is_quiet && (has_room || state.valid == 0) {
            self.become_victim(block);
            return true;
        }
        false
    }

    /// A superblock that is not sealed starts to be emptied.
    pub(super) fn become_victim(&mut self, block: u32) {
        self.superblocks[block].state = BlockState::Victim;
        self.units[self.geometry.unit_of(block) as usize].victims += 1;
    }

    /// A retired superblock is emptied.
    pub(crate) fn superblock_retired(&mut self, block: u32) {
        debug_assert!(self.superblocks[block].is_failing);
        self.leave_slc_mode(block, false);
        self.superblocks[block].state = BlockState::Bad;
    }

    /// Superblocks that each unit of a new drive can lose.
    pub(crate) fn spare_superblocks(&self, config: &DeviceConfig) -> u32 {
        self.reclaiming.bad_max.saturating_sub(config.factory_bad_superblocks())
    }

    /// Whether a unit has more bad superblocks than it can bear.
    pub(crate) fn has_no_spares(&self, unit: u32) -> bool {
        self.units[unit as usize].bad > self.reclaiming.bad_max
    }

    /// All superblocks but those that were never used, which are free, empty and not worn: on a large drive in a short
    /// run nearly all of them.
    pub(crate) fn used_superblocks(&self) -> impl Iterator<Item = &Superblock> + Clone {
        let units = self.units.iter().zip(self.superblocks.blocks.chunks(self.geometry.superblocks as usize));
        units.flat_map(|(unit, blocks)| {
            let fresh = unit.free.fresh();
            blocks[..fresh.start as usize].iter().chain(&blocks[fresh.end as usize..])
        })
    }

    /// How many were never used.
    pub(crate) fn fresh_superblocks(&self) -> u64 {
        self.units.iter().map(|unit| unit.free.fresh().len() as u64).sum()
    }

    /// Checks the counts of every unit.
    pub(super) fn check_units(&self) -> Result<(), String> {
        let superblocks = self.geometry.superblocks as usize;
        for (n, (unit, blocks)) in self.units.iter().zip(self.superblocks.blocks.chunks(superblocks)).enumerate() {
            let fresh = unit.free.fresh();
            let is_used = |block: &Superblock| block.state != BlockState::Free || block.valid + block.erase_count > 0;
            if blocks[fresh.start as usize..fresh.end as usize].iter().any(is_used) {
                return Err(format!("unit {n} counts a superblock as never used that was"));
            }
            let first = n as u32 * self.geometry.superblocks;
            unit.free.check()?;
            if unit.free.members().any(|index| blocks.get(index as usize).is_none_or(|b| b.state != BlockState::Free)) {
                return Err(format!("unit {n} counts a superblock as free that is not"));
            }
            let is_cold = |(index, erase_count): (u32, u32)| {
                let block = blocks.get(index as usize).filter(|block| block.state == BlockState::Sealed);
                block.is_some_and(|block| block.erase_count == erase_count)
            };
            if !unit.cold.iter().flat_map(|cold| cold.members()).all(is_cold) {
                return Err(format!("unit {n} would move cold data of a superblock that is not sealed"));
            }
            let of_pool =
                || (first..).zip(blocks).filter(|&(block, _)| !self.is_dedicated(block)).map(|(_, block)| block);
            let count = |state| of_pool().filter(|block| block.state == state).count();
            let bad = of_pool().filter(|block| block.state == BlockState::Bad || block.is_failing).count();
            let counted = [unit.free.len(), unit.sealed, unit.bad].map(|n| n as usize);
            let held = [count(BlockState::Free), count(BlockState::Sealed), bad];
            if counted != held {
                return Err(format!("unit {n} counts {counted:?} free, sealed and bad superblocks and has {held:?}"));
            }
            self.check_slc_cache(n as u32)?;
        }
        Ok(())
    }
}

impl Unit {
    /// Whether so many victims are in progress.
    pub(super) fn victims_are(&self, count: usize) -> bool {
        self.victims as usize == count
    }
}

crate::state::state! { EarlyRow { saved { block, row, stream } } }

crate::state::state! {
    Unit {
        saved {
            free, points, wear, cold, sealed, invalid, cached, folding_dedicated, victims, bad, is_held, migrates,
            lends_room, filled,
        }
        lists { early }
    }
}
