//! Victims: when a unit needs one, how it is read row by row, where what it holds has gone.

use flashwise_block::FlashCounters;

use super::{Collection, Collector, Emptied, Pace, Unsaved};
use crate::cache::Cache;
use crate::clock::Clock;
use crate::config::{GcReads, GcTrigger};
use crate::flash::{FlashOp, FlashOpKind, Medium, Owner};
use crate::ftl::superblock::BlockState;
use crate::ftl::{Cause, PageMap, Placement, Stream};
use crate::translation::Translation;

impl Collector {
    /// Whether a unit has superblocks enough, and none to get rid of.
    #[inline(always)]
    pub(crate) fn needs_no_collection(&self, unit: u32, ftl: &PageMap, is_resting: bool) -> bool {
        let gc = &self.rules.gc;
        let collector = &self.units[unit as usize];
        if gc.preemptible || self.read_only || !collector.failing.is_empty() || !collector.unsaved.is_empty() {
            return false;
        }
        match gc.trigger {
            GcTrigger::SuperblockFilled => !ftl.has_filled(unit) && !ftl.blocks_host(unit),
            _ => !ftl.wants_collection(unit, 0) && !self.has_to_fold(unit, ftl, is_resting),
        }
    }

    /// Whether the drive has emptied as many superblocks as it has since the host asked for anything, or anything that
    /// it had written left the buffer: more would gain nothing.
    pub(crate) fn collects_in_vain(&self, ftl: &PageMap, is_idle: bool) -> bool {
        let geometry = &ftl.geometry;
        self.idle_collections >= geometry.units * geometry.superblocks && is_idle
    }

    /// Emptied victims whose last data is in a superpage that is still being filled.
    pub(crate) fn waiting_for_open_superpage(&self, unit: u32, ftl: &PageMap) -> usize {
        let waits = |emptied: &&Emptied| {
            emptied.streams.into_iter().any(|stream| {
                let open = ftl.open_superpage_of(unit, stream);
                open.is_some_and(|open| ftl.superpages[open].generation == emptied.generation[stream])
            })
        };
        self.units[unit as usize].emptied.iter().filter(waits).count()
    }

    pub(crate) fn victim(&mut self, unit: u32, victim: u32) -> Option<&mut Collection> {
        self.units[unit as usize].present.iter_mut().find(|c| c.victim == victim)
    }

    /// Counts for each read of a row what is valid in it.
    fn count_bytes_of_row(&mut self, victim: u32, row: u32, ftl: &Translation) {
        self.bytes_of_read.fill(0);
        ftl.pages.prefetch_row(victim, row + 1);
        if ftl.pages.has_extents() {
            return ftl.pages.count_bytes_of_extents(victim, row, &mut self.bytes_of_read);
        }
        let (geometry, page_bytes) = (&ftl.pages.geometry, self.rules.page_bytes);
        match (&mut self.bytes_of_read[..], &ftl.translator) {
            ([all], None) => ftl.pages.for_valid_slots(victim, row, |_, _| *all += page_bytes),
            (bytes_of_read, translator) => ftl.pages.for_valid_slots(victim, row, |slot, logical_page| {
                let read = match self.rules.gc.reads {
                    GcReads::Die => geometry.die_index(slot),
                    GcReads::Page => geometry.page_in_superpage(slot),
                };
                bytes_of_read[read as usize] += page_bytes;
                if let Some(translator) = translator {
                    translator.prefetch_moved(logical_page);
                }
            }),
        }
    }

    /// Reads the valid pages of a row; gives the number of flash commands.
    pub(crate) fn issue_row_reads(
        &mut self,
        (unit, victim, row): (u32, u32, u32),
        ftl: &Translation,
        flash: &mut Medium,
        clock: &mut Clock,
    ) -> u32 {
        self.count_bytes_of_row(victim, row, ftl);
        let mut reads = 0;
        for n in 0..self.bytes_of_read.len() as u32 {
            let bytes = self.bytes_of_read[n as usize];
            if bytes > 0 {
                flash.counters.bytes_read.0 += u64::from(bytes);
                reads += 1;
                let at = match self.rules.gc.reads {
                    GcReads::Die => ftl.pages.geometry.address(victim, row, n),
                    GcReads::Page => ftl.pages.geometry.address_of_page(victim, row, n),
                };
                let owner = Owner::Gc { unit };
                let transfer = if self.rules.gc.copy_back { 0 } else { bytes };
                let op = flash.array.prepare(FlashOp::new(FlashOpKind::Read, owner, at, transfer));
                self.issue(unit, op, &ftl.pages, flash, clock);
            }
        }
        reads
    }

    /// Whether a victim that has a pace continues with its next row, which is then taken, or waits until the host has
    /// written more.
    pub(crate) fn goes_on(&mut self, unit: u32, victim: u32, ftl: &PageMap) -> bool {
        let needs_none = self.needs_no_credit(unit, ftl);
        let Some(collection) = self.victim(unit, victim) else { return false };
        let Some(pace) = &mut collection.pace else { return false };
        let waits = pace.is_used_up() && !needs_none;
        let waited = std::mem::replace(&mut pace.waits, waits);
        collection.next_row += u32::from(!waits);
        self.waiting_for_credit = self.waiting_for_credit + u32::from(waits) - u32::from(waited);
        !waits
    }

    /// The host cannot write to the unit, so GC does not wait for its writes.
    fn needs_no_credit(&self, unit: u32, ftl: &PageMap) -> bool {
        self.read_only || ftl.blocks_host(unit) || ftl.is_held(unit)
    }

    /// The host's writes have filled so many pages of a unit; its victims share the credit.
    pub(crate) fn earn(&mut self, unit: u32, pages: u32) {
        let present = &mut self.units[unit as usize].present;
        let shares = present.iter().filter(|collection| collection.pace.is_some()).count();
        let pages = f64::from(pages) / shares.max(1) as f64;
        present.iter_mut().filter_map(|collection| collection.pace.as_mut()).for_each(|pace| pace.earn(pages));
    }

    /// A victim that waits may move so many pages without the host writing any.
    pub(crate) fn forgive(&mut self, unit: u32, victim: u32, pages: u32) {
        if let Some(pace) = self.victim(unit, victim).and_then(|collection| collection.pace.as_mut()) {
            pace.forgive(pages);
        }
    }

    /// The pages of the row that was counted last are on their way to elsewhere.
    pub(crate) fn spend_row(&mut self, unit: u32, victim: u32) {
        let pages = self.bytes_of_read.iter().sum::<u32>() / self.rules.page_bytes;
        if let Some(pace) = self.victim(unit, victim).and_then(|collection| collection.pace.as_mut()) {
            pace.spend(pages);
        }
    }

    /// A victim of a unit that waits for credit.
    pub(crate) fn waiting_victim(&self, unit: u32) -> Option<u32> {
        self.victim_with(unit, |pace| pace.waits)
    }

    /// A victim of a unit that waits for credit, and has some by now or needs none.
    pub(crate) fn victim_that_goes_on(&self, unit: u32, ftl: &PageMap) -> Option<u32> {
        self.victim_with(unit, |pace| pace.waits && (!pace.is_used_up() || self.needs_no_credit(unit, ftl)))
    }

    fn victim_with(&self, unit: u32, wanted: impl Fn(&Pace) -> bool) -> Option<u32> {
        let is_wanted = |collection: &&Collection| collection.pace.as_ref().is_some_and(&wanted);
        self.units[unit as usize].present.iter().find(is_wanted).map(|collection| collection.victim)
    }

    /// The drive is at rest: victims that are left, which wait for superblocks, will not wait for the host's writes.
    pub(crate) fn forget_paces(&mut self) {
        if self.rules.gc.pace.is_some() {
            self.units.iter_mut().flat_map(|unit| &mut unit.present).for_each(|collection| collection.pace = None);
        }
    }

    /// Issues a prepared flash command of a collection.
    pub(crate) fn issue(&self, unit: u32, op: u32, ftl: &PageMap, flash: &mut Medium, clock: &mut Clock) {
        if self.rules.gc.preemptible {
            let is_hard = self.is_hard(unit, ftl);
            let prepared = &mut flash.array.prepared()[op];
            prepared.yields = !is_hard;
            let die = prepared.at.die;
            if is_hard {
                // The pages of a block stay in order: what was issued before goes before.
                flash.array.stop_yielding(die);
            }
        }
        flash.issue(op, clock);
    }

    /// Whether a preemptible collection gives way no longer.
    fn is_hard(&self, unit: u32, ftl: &PageMap) -> bool {
        ftl.free_superblocks(unit) <= self.rules.gc.hard_free_superblocks
    }

    /// Lets collection's waiting commands give way no longer where too few superblocks are free.
    pub(crate) fn promote_if_hard(&self, unit: u32, ftl: &PageMap, flash: &mut Medium) {
        if self.is_hard(unit, ftl) {
            let geometry = &ftl.geometry;
            (0..geometry.dies_per_unit).for_each(|n| flash.array.stop_yielding(geometry.die_in_unit(unit, n)));
        }
    }

    /// Moved data is in a superpage of a stream.
    #[inline]
    pub(crate) fn note_filled(&mut self, unit: u32, stream: Stream, generation: u64) {
        let collector = &mut self.units[unit as usize];
        if std::mem::replace(&mut collector.filled_generation[stream], generation) != generation {
            collector.not_programmed.push(stream, generation);
        }
    }

    /// A page that takes some slots is moved; it may end in the superpage behind the one that it starts in.
    pub(crate) fn extent_moved(
        &mut self,
        unit: u32,
        stream: Stream,
        cause: Cause,
        placement: Placement,
        ftl: &PageMap,
        counters: &mut FlashCounters,
    ) {
        counters.gc_pages_moved += u64::from(cause == Cause::Gc);
        if let (true, Some(next)) = (placement.spans_rows(), ftl.superpage_behind(placement)) {
            self.note_filled(unit, stream, ftl.superpages[next].generation);
        }
    }

    /// A victim of a unit is to be emptied from now on; what is not on flash yet is noted where the host has nothing
    /// outstanding.
    pub(crate) fn take_victim(
        &mut self,
        unit: u32,
        victim: u32,
        cause: Cause,
        ftl: &PageMap,
        idle_cache: Option<&mut Cache>,
    ) {
        if let Some(cache) = idle_cache {
            if self.idle_collections == 0 {
                cache.buffer.least_bytes = cache.held_bytes();
            }
            self.idle_collections = self.idle_collections.saturating_add(1);
        }
        let valid = ftl.superblocks[victim].valid;
        let invalid = ftl.geometry.slots_per_superblock() - valid;
        let relative = self.rules.gc.pace.filter(|_| cause == Cause::Gc);
        let pace = relative.map(|relative| Pace::of_victim(relative, valid, invalid));
        let streams = ftl.streams_of_victim(cause);
        let collector = &mut self.units[unit as usize];
        debug_assert!(collector.present.iter().all(|other| other.victim != victim), "{victim} is a victim already");
        let rows = collector.spare_rows.pop().unwrap_or_default();
        let frees_a_row = invalid >= ftl.geometry.slots;
        debug_assert!(rows.is_empty() && ftl.superblocks[victim].state == BlockState::Victim, "superblock {victim}");
        collector.present.push(Collection {
            victim,
            cause: Some(cause),
            next_row: 0,
            rows,
            streams,
            frees_a_row,
            pace,
        });
        debug_assert!(collector.is_consistent(), "{collector:?}");
    }

    /// Whether a unit is not low, or nothing can be done about it.
    pub(crate) fn is_clean(&self, unit: u32, ftl: &PageMap) -> bool {
        !ftl.wants_collection(unit, 0) || self.units[unit as usize].is_idle() || self.read_only
    }

    /// Whether something of a superblock found no space yet that is in the write buffer only.
    pub(crate) fn has_unsaved(&self, unit: u32, block: u32, ftl: &PageMap) -> bool {
        let is_of = |unsaved: &Unsaved| ftl.superpages[unsaved.superpage].block == block;
        !self.rules.is_protected && self.units[unit as usize].unsaved.iter().any(is_of)
    }

    /// Whether no victim of a unit can continue and nothing is in progress that could help.
    pub(crate) fn is_stuck(&self, unit: u32, ftl: &PageMap) -> bool {
        let collector = &self.units[unit as usize];
        if !collector.is_stalled() || !collector.rescued.is_empty() {
            return false;
        }
        // What a retired superblock has in the write buffer, and could not leave to another one, helps no victim.
        let place_of = |unsaved: &Unsaved| {
            let record = &ftl.superpages[unsaved.superpage];
            (record.stream, record.generation)
        };
        let unsaved: Vec<_> = collector.unsaved.iter().map(place_of).collect();
        !collector.awaits_others_than(&unsaved)
    }
}
