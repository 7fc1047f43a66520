//! What must hold of the FTL between any two events and after it was restored, and what of it is saved.

use super::reclaim::EarlyRow;
use super::{Cause, PageMap, Stream, Superpage, WritePoint};
use crate::ftl::gc::{Candidate, VictimPolicy};
use crate::ftl::superblock::BlockState;
use crate::list::NONE;

impl PageMap {
    /// Checks what must hold between any two events.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.mapping.check()?;
        let per_block = self.geometry.slots_per_superblock();
        for (block, state) in self.superblocks.blocks.iter().enumerate() {
            let first = self.geometry.first_slot(block as u32, 0);
            let pages = (first..first + per_block).filter_map(|slot| Some((slot, self.mapping.page_in(slot)?)));
            let begins = |&(slot, _): &(u32, u32)| self.next_slot(slot, slot + 1) == Some(slot);
            let valid = pages.filter(begins).map(|(_, page)| self.slots_of(page)).sum::<u32>();
            if valid != state.valid {
                return Err(format!("superblock {block} counts {} valid slots and holds {valid}", state.valid));
            }
            if matches!(state.state, BlockState::Free | BlockState::Bad) && valid != 0 {
                return Err(format!("superblock {block} is {:?} and holds {valid} valid pages", state.state));
            }
        }
        self.check_extents()?;
        self.check_candidates()?;
        self.check_units()
    }

    /// Checks that no page of several slots reaches into another one, or out of its superblock.
    fn check_extents(&self) -> Result<(), String> {
        let Some(extents) = &self.extents else { return Ok(()) };
        let (slots, mut free_from) = (self.geometry.total_slots(), 0);
        let mut at = extents.next(0, slots as u32);
        while let Some(slot) = at {
            let Some(page) = self.mapping.page_in(slot) else {
                return Err(format!("slot {slot} has no page, but one should start there"));
            };
            let last = u64::from(slot) + u64::from(extents.of(page)) - 1;
            let superblock = |slot: u64| slot / u64::from(self.geometry.slots_per_superblock());
            if u64::from(slot) < free_from || last >= slots || superblock(last) != superblock(slot.into()) {
                return Err(format!(
                    "logical page {page} has the slots {slot} to {last}, not all of which belong to it"
                ));
            }
            free_from = last + 1;
            at = extents.next(slot + 1, slots as u32);
        }
        Ok(())
    }

    /// Checks that the candidates of collection are the sealed superblocks, with their valid pages.
    fn check_candidates(&self) -> Result<(), String> {
        let candidates = self.policy.candidates();
        let sealed = self.superblocks.blocks.iter().filter(|block| block.state == BlockState::Sealed).count();
        if sealed != candidates.len() {
            return Err(format!("collection has {} candidates, and {sealed} superblocks are sealed", candidates.len()));
        }
        for Candidate { block, valid } in candidates {
            let Some(state) = self.superblocks.blocks.get(block as usize) else {
                return Err(format!("collection has superblock {block} as a candidate, but it does not exist"));
            };
            // Where pages take slots, a policy counts neither.
            let is_counted = self.extents.is_some() || valid.is_none_or(|valid| valid == state.valid);
            if state.state != BlockState::Sealed || !is_counted {
                let found = (state.state, state.valid);
                return Err(format!(
                    "collection has superblock {block} with {valid:?} valid pages, and it is {found:?}"
                ));
            }
        }
        Ok(())
    }

    /// What follows from what was restored is brought up to that; then everything must lead somewhere.
    fn go_on(&mut self) -> Result<(), String> {
        if let Some(extents) = &mut self.extents {
            self.mapping.iter().for_each(|(page, slot)| extents.found(page, slot));
        }
        self.check_restored()
    }

    fn check_restored(&self) -> Result<(), String> {
        for (block, state) in (0..).zip(self.superblocks.blocks.iter()) {
            let rows = self.geometry.rows_in(state.mode);
            if state.programmed_rows > state.allocated_rows || state.allocated_rows > rows {
                return Err(format!("superblock {block} is written beyond its {rows} rows"));
            }
        }
        let live: Vec<u32> = self.superpages.used();
        for &index in &live {
            self.check_superpage(index)?;
        }
        let is_live = |superpage: u32| live.binary_search(&superpage).is_ok();
        for (unit, state) in (0..).zip(&self.units) {
            for (nth, &point) in (0..).zip(state.points.iter()) {
                self.check_point(unit, Stream::numbered(nth), point, is_live(point.superpage))?;
            }
            let early = |row: &EarlyRow| self.is_row_of(unit, row.block, row.row);
            let folding = state.folding_dedicated.is_none_or(|block| self.geometry.unit_of(block) == unit);
            if !state.early.iter().all(early) || !folding {
                return Err(format!("unit {unit} knows of a superblock that it does not have"));
            }
        }
        let mut hosts = (0..).zip(&self.host_superpages);
        let is_known =
            |(position, &superpage): (u32, &u32)| is_live(superpage) && self.superpages[superpage].position == position;
        let of_host = live.iter().filter(|&&index| self.superpages[index].stream.is_host()).count();
        if !hosts.all(is_known) || of_host != self.host_superpages.len() {
            return Err("the host's superpages are not those that are there".to_owned());
        }
        if self.opened.iter().any(|&unit| unit >= self.geometry.units) {
            return Err("a superblock was opened in no unit".to_owned());
        }
        Ok(())
    }

    /// Whether a unit has a superblock with such a row.
    fn is_row_of(&self, unit: u32, block: u32, row: u32) -> bool {
        unit < self.geometry.units && self.geometry.unit_of(block) == unit && row < self.geometry.rows
    }

    fn check_superpage(&self, index: u32) -> Result<(), String> {
        let record = &self.superpages[index];
        let Superpage { live, unit, block, row, filled, programs_left, issued, .. } = *record;
        let is_possible = live && self.is_row_of(unit, block, row) && filled <= self.geometry.slots;
        // At rest nothing is being programmed; what is issued and not done has failed, and waits to be moved.
        if is_possible && programs_left <= self.geometry.dies_per_unit && (issued || programs_left == 0) {
            return Ok(());
        }
        Err(format!("superpage {index} is at row {row} of superblock {block}, filled with {filled} slots: impossible"))
    }

    fn check_point(&self, unit: u32, stream: Stream, point: WritePoint, is_live: bool) -> Result<(), String> {
        let WritePoint { block, superpage } = point;
        let wrong = || Err(format!("a stream of unit {unit} writes to superpage {superpage} of superblock {block}"));
        if block != NONE && !self.is_row_of(unit, block, 0) || superpage != NONE && (block == NONE || !is_live) {
            return wrong();
        }
        if superpage != NONE {
            let record = &self.superpages[superpage];
            let is_its = (record.unit, record.block, record.stream) == (unit, block, stream);
            return if is_its && !record.issued { Ok(()) } else { wrong() };
        }
        let state = if block == NONE { return Ok(()) } else { &self.superblocks[block] };
        let has_room = state.allocated_rows < self.geometry.rows_in(state.mode);
        if state.state == BlockState::Open && has_room { Ok(()) } else { wrong() }
    }

    /// Checks that the victims of a unit are those that are being emptied.
    pub(crate) fn check_victims(&self, unit: u32, victims: &[u32]) -> Result<(), String> {
        let is_victim = |&block: &u32| self.superblocks[block].state == BlockState::Victim;
        if victims.iter().all(is_victim) && self.units[unit as usize].victims_are(victims.len()) {
            return Ok(());
        }
        Err(format!("unit {unit} empties other superblocks than it counts"))
    }
}

crate::state::state_names! { Cause { Gc = 0, WearLevelling = 1, Retirement = 2, Folding = 3 } }

crate::state::optional_values!(Cause);

crate::state::state! { WritePoint { saved { block, superpage } } }

crate::state::state! {
    Superpage {
        saved {
            live, stream, unit, block, row, filled, held_bytes, moved, has_host_data, last_moved, has_failed,
            programs_left, issued, generation, position,
        }
        empty { waiters }
    }
}

/// The name that the page map has in a saved drive.
type Ftl = PageMap;

crate::state::state! {
    Ftl {
        saved {
            mapping, extents, superblocks, policy, streams, units, slc_cache, clock, random, superpages, generation,
            placement,
        }
        lists { host_superpages, opened }
        built { replaces_in_buffer, geometry, slot_bytes, reclaiming, full }
    }
    checked go_on
}
