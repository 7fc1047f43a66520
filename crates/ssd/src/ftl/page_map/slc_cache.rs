//! Superblocks in SLC mode: which ones the host's data goes to first, and which one is emptied (folded) next.
//!
//! ```text
//!   dedicated, erased ─┐                                                     ┌─▶ dedicated, erased
//!                      ├─▶ open, host's data ─▶ cached ─▶ victim ─▶ erased ──┤
//!   free, if enough ───┘                        oldest first                 └─▶ free
//! ```
//!
//! A superblock that a stream of the host's opens is one of the cache while the cache has room, and one that holds all
//! bits otherwise. In SLC mode only the first `geometry.slc_rows` rows are used; slots are numbered as ever. What a
//! superblock of the cache holds is moved to where garbage collection moves data, at the latest when its unit runs low
//! on free superblocks ([`PageMap::take_cached`]); a cached superblock holds less than a superblock can, so that
//! emptying one always gains room.
//!
//! That collection can always finish rests on what `reclaim` says: superblocks of the cache count as neither free nor
//! sealed; dedicated ones are no space for data, and others are taken only while more are free than collection keeps.
//!
//! Keys and sources: [`SlcCacheConfig`](crate::config::SlcCacheConfig).

use std::collections::VecDeque;

use super::{PageMap, Stream};
use crate::config::{DeviceConfig, SlcCacheConfig, SlcCacheFull};
use crate::ftl::geometry::Geometry;
use crate::ftl::streams::StreamPolicy;
use crate::ftl::superblock::{BlockState, CellMode, Superblock};

/// The cache's superblocks of one unit, counted over the whole drive.
#[derive(Clone, Default)]
struct CacheOfUnit {
    /// Dedicated ones that are erased; the next is the one that has waited longest.
    erased: VecDeque<u32>,
    /// Those that are full, the oldest first.
    cached: VecDeque<u32>,
    /// Superblocks that no stream writes to any more, from the last page that is put there to their erase: one of them
    /// becomes free in time.
    held: u32,
    /// Superblocks in SLC mode that are not dedicated.
    dynamic: u32,
}

/// The SLC cache of a drive.
pub(super) struct SlcCache {
    config: SlcCacheConfig,
    units: Vec<CacheOfUnit>,
    /// By superblock: P/E cycles in SLC mode.
    cycles: Vec<u32>,
    /// By superblock.
    is_dedicated: Vec<bool>,
    /// A cycle in SLC mode wears a block as much as so many that it holds all bits in.
    wear_of_cycle: f64,
    /// Nothing goes to the cache.
    is_passed_by: bool,
}

impl SlcCache {
    /// An empty one, whose dedicated superblocks are still to be chosen.
    pub(super) fn new(config: &DeviceConfig, geometry: &Geometry) -> Option<Box<Self>> {
        let superblocks = (geometry.units * geometry.superblocks) as usize;
        Some(Box::new(Self {
            config: config.ftl.slc_cache?,
            units: vec![CacheOfUnit::default(); geometry.units as usize],
            cycles: vec![0; superblocks],
            is_dedicated: vec![false; superblocks],
            wear_of_cycle: config.wear_of_slc_cycle(),
            is_passed_by: false,
        }))
    }

    fn unit(&self, unit: u32) -> &CacheOfUnit {
        &self.units[unit as usize]
    }

    /// Whether the host may open a superblock of the cache in a unit with so many free ones, of which collection keeps
    /// some.
    fn has_room(&self, unit: u32, free: u32, kept: u32) -> bool {
        let CacheOfUnit { erased, dynamic, .. } = self.unit(unit);
        !self.is_passed_by && (!erased.is_empty() || *dynamic < self.config.dynamic_superblocks && free > kept)
    }
}

impl PageMap {
    /// Sets the dedicated superblocks of every unit apart.
    pub(super) fn dedicate_superblocks(&mut self, config: &DeviceConfig) {
        let Some(cache) = &mut self.slc_cache else { return };
        for unit in 0..self.geometry.units {
            for _ in 0..config.dedicated_superblocks() {
                let Some(index) = self.units[unit as usize].free.take() else { return };
                let block = unit * self.geometry.superblocks + index;
                cache.is_dedicated[block as usize] = true;
                cache.units[unit as usize].erased.push_back(block);
            }
        }
    }

    /// Superblocks of a unit that are only ever written in SLC mode.
    pub(super) fn dedicated_of_unit(&self, unit: u32) -> u32 {
        let Some(cache) = &self.slc_cache else { return 0 };
        let superblocks = self.geometry.superblocks as usize;
        let of_unit = &cache.is_dedicated[unit as usize * superblocks..][..superblocks];
        of_unit.iter().filter(|&&dedicated| dedicated).count() as u32
    }

    /// Lets the host's data go to superblocks that hold all bits, or to the cache again.
    pub(super) fn pass_slc_cache_by(&mut self, passes: bool) {
        if let Some(cache) = &mut self.slc_cache {
            cache.is_passed_by = passes;
        }
    }

    /// Rows of a superblock in its present mode.
    #[inline(always)]
    pub(crate) fn rows_of(&self, block: u32) -> u32 {
        self.geometry.rows_in(self.superblocks[block].mode)
    }

    /// Whether a superblock is written with one bit a cell.
    pub(crate) fn is_slc(&self, block: u32) -> bool {
        self.superblocks[block].mode == CellMode::Slc
    }

    /// Whether there is an SLC cache.
    #[inline(always)]
    pub(crate) fn has_slc_cache(&self) -> bool {
        self.slc_cache.is_some()
    }

    fn slc_cache_has_room(&self, cache: &SlcCache, unit: u32) -> bool {
        cache.has_room(unit, self.free_superblocks(unit), self.slc_cache_leaves(unit))
    }

    /// Free superblocks of a unit that the cache leaves: with one less, the unit would collect, or the host would wait.
    fn slc_cache_leaves(&self, unit: u32) -> u32 {
        self.collection_keeps().max(self.reserve(unit))
    }

    /// Whether a stream of the host's may open a superblock in a unit that has `enough` free ones for data as it is, or
    /// not.
    #[cold]
    #[inline(never)]
    pub(super) fn has_room_beside_slc_cache(&self, unit: u32, enough: bool) -> bool {
        let Some(cache) = &self.slc_cache else { return enough };
        let waits = cache.config.when_full == SlcCacheFull::Fold && !cache.is_passed_by && cache.unit(unit).held > 0;
        self.slc_cache_has_room(cache, unit) || enough && !waits
    }

    /// Takes the superblock of the cache that a stream of the host's writes next; `None` where the cache has no space.
    pub(super) fn take_for_slc_cache(&mut self, unit: u32, stream: Stream) -> Option<u32> {
        let leaves = self.slc_cache_leaves(unit);
        let free = self.free_superblocks(unit);
        let cache = self.slc_cache.as_mut()?;
        if !stream.is_host() || !cache.has_room(unit, free, leaves) {
            return None;
        }
        let of_unit = &mut cache.units[unit as usize];
        let block = match of_unit.erased.pop_front() {
            Some(block) => block,
            None => {
                let index = self.units[unit as usize].free.take()?;
                of_unit.dynamic += 1;
                unit * self.geometry.superblocks + index
            }
        };
        self.superblocks[block].mode = CellMode::Slc;
        Some(block)
    }

    /// A superblock of the cache is fully written.
    pub(super) fn seal_cached(&mut self, block: u32) {
        let unit = self.geometry.unit_of(block) as usize;
        let state = &mut self.superblocks[block];
        state.state = BlockState::Cached;
        self.units[unit].cached += state.valid;
        if let Some(cache) = &mut self.slc_cache {
            cache.units[unit].cached.push_back(block);
        }
    }

    /// A stream of a unit has filled a superblock, which may be one of the cache.
    #[inline(always)]
    pub(super) fn cached_is_filled(&mut self, unit: u32, block: u32) {
        let is_slc = self.is_slc(block);
        if let Some(cache) = &mut self.slc_cache {
            cache.units[unit as usize].held += u32::from(is_slc);
        }
    }

    /// A full superblock of the cache has lost a valid page of so many slots.
    #[cold]
    pub(super) fn lost_cached_page(&mut self, block: u32, slots: u32) {
        self.units[self.geometry.unit_of(block) as usize].cached -= slots;
    }

    /// Whether a unit has data in the cache that is to be moved: the drive has nothing else to do, or the host waits,
    /// or is about to, until the cache has room.
    pub(crate) fn wants_folding(&self, unit: u32, is_quiet: bool) -> bool {
        let Some(cache) = &self.slc_cache else { return false };
        let waits = || cache.config.when_full == SlcCacheFull::Fold && !self.slc_cache_has_room(cache, unit);
        !cache.unit(unit).cached.is_empty() && (is_quiet || waits())
    }

    /// The superblock of the cache that is emptied next, the oldest of all or, where a free one is to come of it, of
    /// those that are not dedicated.
    pub(crate) fn take_cached(&mut self, unit: u32, with_dedicated: bool) -> Option<u32> {
        let cache = self.slc_cache.as_mut()?;
        let of_unit = &mut cache.units[unit as usize];
        let is_meant = |&block: &u32| with_dedicated || !cache.is_dedicated[block as usize];
        let at = of_unit.cached.iter().position(is_meant)?;
        let block = of_unit.cached.remove(at)?;
        let state = &mut self.units[unit as usize];
        state.cached -= self.superblocks[block].valid;
        // Another one may be taken beside a dedicated one.
        if cache.is_dedicated[block as usize] {
            state.folding_dedicated = Some(block);
        }
        self.streams.collected(block, self.superblocks[block].stream, self.clock);
        self.become_victim(block);
        Some(block)
    }

    /// Whether garbage keeps a unit from having all the dynamic superblocks that its cache may have.
    pub(crate) fn lacks_room_for_slc_cache(&self, unit: u32) -> bool {
        let Some(cache) = &self.slc_cache else { return false };
        let wanted = cache.config.dynamic_superblocks.saturating_sub(cache.unit(unit).dynamic);
        wanted > 0 && self.free_superblocks(unit) < self.slc_cache_leaves(unit) + wanted
    }

    /// The superblock of a unit that is collected so that its cache has room: the one with the most garbage, if that is
    /// at least as much as fits into a superblock in SLC mode. To move more would wear more than the cache gains.
    pub(crate) fn take_for_room_in_slc_cache(&mut self, unit: u32) -> Option<u32> {
        let first = unit * self.geometry.superblocks;
        let sealed = (first..first + self.geometry.superblocks)
            .filter(|&block| self.superblocks[block].state == BlockState::Sealed);
        let block = sealed.min_by_key(|&block| self.superblocks[block].valid)?;
        let garbage = self.geometry.slots_per_superblock() - self.superblocks[block].valid;
        (garbage >= self.geometry.slc_rows * self.geometry.slots).then(|| self.take_sealed(block))
    }

    /// A superblock that is about to be retired leaves the lists of the cache that it is in.
    pub(super) fn retire_cached(&mut self, block: u32) {
        let unit = self.geometry.unit_of(block) as usize;
        let Superblock { state, valid, mode, .. } = self.superblocks[block];
        let is_written = self.units[unit].points.iter().any(|point| point.block == block);
        let Some(cache) = &mut self.slc_cache else { return };
        let of_unit = &mut cache.units[unit];
        match state {
            BlockState::Open if mode == CellMode::Slc && is_written => of_unit.held += 1,
            BlockState::Cached => {
                of_unit.cached.retain(|&cached| cached != block);
                self.units[unit].cached -= valid;
            }
            BlockState::Free if cache.is_dedicated[block as usize] => of_unit.erased.retain(|&erased| erased != block),
            _ => {}
        }
    }

    /// Whether a unit has a free superblock for what is in one of the cache, and one that collection can continue with
    /// when none comes of it, because the one that is emptied is dedicated.
    pub(crate) fn has_room_to_fold(&self, unit: u32) -> bool {
        self.free_superblocks(unit) >= 2
    }

    /// A superblock that may be one of the cache is emptied.
    pub(super) fn cached_is_emptied(&mut self, block: u32) {
        self.units[self.geometry.unit_of(block) as usize].folding_dedicated.take_if(|folding| *folding == block);
    }

    /// A superblock is erased, or not used any more: one in SLC mode is in none, until it is written again.
    pub(super) fn leave_slc_mode(&mut self, block: u32, is_erased: bool) {
        let unit = self.geometry.unit_of(block) as usize;
        if std::mem::replace(&mut self.superblocks[block].mode, CellMode::AllBits) == CellMode::AllBits {
            return;
        }
        let Some(cache) = &mut self.slc_cache else { return };
        cache.cycles[block as usize] += u32::from(is_erased);
        let of_unit = &mut cache.units[unit];
        of_unit.held -= 1;
        of_unit.dynamic -= u32::from(!cache.is_dedicated[block as usize]);
    }

    /// A dedicated superblock is erased.
    pub(super) fn return_dedicated(&mut self, block: u32) {
        let unit = self.geometry.unit_of(block) as usize;
        self.superblocks[block].state = BlockState::Free;
        if let Some(cache) = &mut self.slc_cache {
            cache.units[unit].erased.push_back(block);
        }
    }

    /// Whether a superblock is only ever written in SLC mode.
    pub(crate) fn is_dedicated(&self, block: u32) -> bool {
        self.slc_cache.as_ref().is_some_and(|cache| cache.is_dedicated[block as usize])
    }

    /// What a superblock has gone through, in cycles in which it holds all bits
    /// ([`DeviceConfig::wear_of_slc_cycle`]).
    pub(crate) fn worn_cycles(&self, block: u32) -> f64 {
        let all = f64::from(self.superblocks[block].erase_count);
        let Some(cache) = &self.slc_cache else { return all };
        let slc = f64::from(cache.cycles[block as usize]);
        all - slc + slc * cache.wear_of_cycle
    }

    /// Superblocks in SLC mode that hold data, and valid slots in those that are full.
    pub(crate) fn slc_cache_use(&self) -> (u32, u64) {
        let Some(cache) = &self.slc_cache else { return (0, 0) };
        let open =
            self.units.iter().flat_map(|unit| unit.points.iter()).filter(|point| point.block != crate::list::NONE);
        let open = open.filter(|point| self.is_slc(point.block)).count() as u32;
        let held: u32 = cache.units.iter().map(|unit| unit.held).sum();
        (open + held, self.units.iter().map(|unit| u64::from(unit.cached)).sum())
    }

    /// Checks the counts of the cache in a unit.
    pub(super) fn check_slc_cache(&self, unit: u32) -> Result<(), String> {
        let Some(cache) = &self.slc_cache else { return Ok(()) };
        let of_unit = cache.unit(unit);
        let first = unit * self.geometry.superblocks;
        let blocks = || (first..first + self.geometry.superblocks).map(|block| (block, &self.superblocks[block]));
        let cached: Vec<u32> =
            blocks().filter(|(_, s)| s.state == BlockState::Cached).map(|(block, _)| block).collect();
        let mut counted: Vec<u32> = of_unit.cached.iter().copied().collect();
        counted.sort_unstable();
        if counted != cached {
            return Err(format!("unit {unit} counts superblocks {counted:?} as cached, and {cached:?} are"));
        }
        let valid: u32 = cached.iter().map(|&block| self.superblocks[block].valid).sum();
        let slc = || blocks().filter(|(_, s)| s.mode == CellMode::Slc);
        let dynamic = slc().filter(|&(block, _)| !cache.is_dedicated[block as usize]).count();
        let is_written = |block: u32| self.units[unit as usize].points.iter().any(|point| point.block == block);
        let held = slc().filter(|&(block, _)| !is_written(block)).count();
        let counted = [self.units[unit as usize].cached, of_unit.dynamic, of_unit.held].map(|n| n as usize);
        if counted != [valid as usize, dynamic, held] {
            return Err(format!(
                "unit {unit} counts {counted:?} valid slots, dynamic and held superblocks of its cache and has \
                 {:?}",
                [valid as usize, dynamic, held]
            ));
        }
        let erased = blocks().filter(|&(b, s)| cache.is_dedicated[b as usize] && s.state == BlockState::Free).count();
        if of_unit.erased.len() != erased {
            return Err(format!(
                "unit {unit} counts {} erased dedicated superblocks and has {erased}",
                of_unit.erased.len()
            ));
        }
        Ok(())
    }
}

crate::state::state! {
    CacheOfUnit {
        saved { held, dynamic }
        lists { erased, cached }
    }
}

crate::state::state! {
    SlcCache {
        saved { units, cycles, is_dedicated, is_passed_by }
        built { config, wear_of_cycle }
    }
    checked check_restored
}

impl SlcCache {
    fn check_restored(&self) -> Result<(), String> {
        let listed = self.units.iter().flat_map(|unit| unit.erased.iter().chain(&unit.cached));
        match listed.copied().find(|&block| block as usize >= self.cycles.len()) {
            Some(block) => Err(format!("superblock {block} does not exist")),
            None => Ok(()),
        }
    }
}
