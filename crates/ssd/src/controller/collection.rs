//! The steps of garbage collection: which unit starts, rows read and moved, superblocks erased.
//!
//! What is in progress in a unit is its [`UnitCollector`](crate::collector::UnitCollector).

use std::ops::Range;

use crate::collector::{Collection, Emptied, Erasing, Row};
use crate::config::{EMPTIED_MAX, GcMode, GcTrigger};
use crate::device::SimulatedSsd;
use crate::flash::{FlashAddress, FlashOp, FlashOpKind, Owner};
use crate::ftl::streams::StreamSet;
use crate::ftl::{Cause, Relocation, Stream};

/// From so many rows on, a victim waits for no other: half a row of padding is less than 1 % of what it frees.
const MANY_ROWS: u32 = 128;

impl SimulatedSsd {
    /// Starts collections where free superblocks run low.
    #[inline(always)]
    pub(crate) fn collect_if_needed(&mut self, unit: u32) {
        if !self.collector.needs_no_collection(unit, &self.ftl.pages, self.host.is_resting()) {
            self.collect_needed(unit);
        }
    }

    #[inline(never)]
    fn collect_needed(&mut self, unit: u32) {
        if self.config.ftl.gc.preemptible {
            self.collector.promote_if_hard(unit, &self.ftl.pages, &mut self.flash);
        }
        if self.collector.waiting_for_credit > 0 {
            self.continue_paced(unit);
        }
        self.empty_failing_superblocks(unit);
        if self.is_read_only() {
            return self.pad_where_no_victim_is(unit);
        }
        if self.config.ftl.gc.trigger == GcTrigger::SuperblockFilled {
            return self.collect_for_filled(unit);
        }
        let in_background = self.config.ftl.gc.mode == GcMode::Background;
        let is_needed =
            in_background || self.ftl.pages.is_held(unit) || !self.collector.units[unit as usize].failing.is_empty();
        while is_needed && self.collect_one(unit) {}
        self.fold_if_wanted(unit);
    }

    /// Nothing is in progress, and the host waits for room. A unit that is low looks for victims when a superpage of it
    /// is programmed; one that had nothing to gain then may have by now, because its pages were written again in other
    /// units, and as a full one it gets no page that would let it look again. Where the host's commands make units
    /// collect, those that wait ask them again. Gives whether there is anything to wait for, or more than `completed`
    /// requests have ended.
    #[cold]
    pub(crate) fn collect_at_rest(&mut self, completed: u32) -> bool {
        if self.is_idle() || !self.ftl.is_page_map() {
            return false;
        }
        self.let_units_look_again();
        !self.clock.events.is_empty() || self.host.completions > completed
    }

    fn let_units_look_again(&mut self) {
        (0..self.ftl.pages.geometry.units).for_each(|unit| self.collect_if_needed(unit));
        (0..self.ftl.pages.geometry.units).for_each(|unit| self.place_cleaned(unit));
        (0..self.ftl.pages.geometry.units).for_each(|unit| self.place_parked(unit));
        self.admit_writes();
        self.collect_where_opened();
        self.flash.settle(&mut self.clock);
    }

    /// Pages that left a protected write cache may wait for space in their unit while the host waits for nothing: its
    /// units look for victims once more, as in [`Self::collect_at_rest`]. Gives whether anything comes of it.
    #[cold]
    pub(crate) fn places_parked_at_rest(&mut self) -> bool {
        if !self.ftl.is_page_map() || self.cache.buffer.parked.iter().all(|parked| parked.peek().is_none()) {
            return false;
        }
        self.let_units_look_again();
        !self.clock.events.holds_timers_alone()
    }

    /// A stream has opened a superblock. Another one may wait for the next, and this one for pages that fill its first
    /// superpage: whether too few are free is not found out when that is programmed, but now.
    #[inline(always)]
    pub(crate) fn collect_where_opened(&mut self) {
        if self.ftl.pages.has_opened() {
            self.collect_opened();
        }
    }

    #[inline(never)]
    fn collect_opened(&mut self) {
        while let Some(unit) = self.ftl.pages.take_opened() {
            self.collect_if_needed(unit);
        }
    }

    /// The host asks for something while superblocks were emptied unasked.
    #[cold]
    pub(crate) fn collect_when_asked(&mut self) {
        self.collect_again(0);
    }

    /// The write buffer and the write cache hold less than ever since superblocks are emptied unasked: what the host
    /// had written leaves them, and room for that is asked for.
    #[cold]
    pub(super) fn collect_for_what_leaves_the_buffer(&mut self) {
        self.cache.buffer.least_bytes = self.cache.held_bytes();
        self.collect_again(1);
    }

    /// Superblocks may be emptied again, of which so many count as emptied unasked.
    fn collect_again(&mut self, unasked: u32) {
        let geometry = &self.ftl.pages.geometry;
        let units = geometry.units;
        let was_in_vain =
            std::mem::replace(&mut self.collector.idle_collections, unasked) >= units * geometry.superblocks;
        if was_in_vain {
            (0..units).for_each(|unit| self.collect_if_needed(unit));
            self.collect_where_opened();
            self.flash.settle(&mut self.clock);
        }
    }

    /// Starts one collection for each superblock that was filled, and one where the host could not continue without.
    fn collect_for_filled(&mut self, unit: u32) {
        for _ in 0..self.ftl.pages.take_filled(unit) {
            self.collect_beside_others(unit);
        }
        let collector = &self.collector.units[unit as usize];
        let is_quiet = collector.present.is_empty() && collector.erasing.is_empty();
        if is_quiet
            && self.ftl.pages.blocks_host(unit)
            && collector.emptied.len() == self.collector.waiting_for_open_superpage(unit, &self.ftl.pages)
        {
            self.collect_one(unit);
        }
    }

    /// Starts one collection if the unit is low, whatever is in progress.
    fn collect_beside_others(&mut self, unit: u32) {
        let collector = &self.collector.units[unit as usize];
        let under_way = collector.present.len() + collector.emptied.len() + collector.erasing.len();
        let (victims, most) = (collector.present.len(), self.config.ftl.gc.concurrent_victims as usize);
        // A victim needs a superblock of its own to go to.
        let has_room = victims == 0 || self.ftl.pages.free_superblocks(unit) as usize > victims;
        if under_way < most
            && has_room
            && self.ftl.pages.wants_collection(unit, 0)
            && !self.collector.collects_in_vain(&self.ftl.pages, self.is_idle())
            && let Some(victim) = self.ftl.pages.take_victim(unit)
        {
            self.flash.counters.gc_runs += 1;
            self.empty(unit, victim, Cause::Gc);
        }
    }

    /// Starts one collection if it is needed; gives whether another one may be.
    fn collect_one(&mut self, unit: u32) -> bool {
        if !self.ftl.pages.wants_collection(unit, 0) {
            return false;
        }
        let waiting = self.collector.waiting_for_open_superpage(unit, &self.ftl.pages);
        let collector = &self.collector.units[unit as usize];
        let (victims, most) = (collector.present.len(), self.config.ftl.gc.concurrent_victims as usize);
        let soon_free = victims + collector.erasing.len() + collector.emptied.len() - waiting;
        if victims >= most || !self.ftl.pages.wants_collection(unit, soon_free) {
            return false;
        }
        // Beside others, a victim needs a superblock of its own to go to.
        if victims > 0 && self.ftl.pages.free_superblocks(unit) as usize <= victims {
            return false;
        }
        if self.collector.collects_in_vain(&self.ftl.pages, self.is_idle()) {
            self.pad_where_no_victim_is(unit);
            return false;
        }
        // A superblock of the cache holds less than any other may, and gives way first.
        if let Some(victim) = self.ftl.pages.take_cached(unit, false) {
            self.fold(unit, victim);
            return most > 1;
        }
        match self.ftl.pages.take_victim(unit) {
            Some(victim) => {
                self.flash.counters.gc_runs += 1;
                self.empty(unit, victim, Cause::Gc);
                most > 1
            }
            None => {
                self.pad_where_no_victim_is(unit);
                false
            }
        }
    }

    /// There is no other victim that could fill the superpage which emptied ones wait for.
    fn pad_where_no_victim_is(&mut self, unit: u32) {
        if self.collector.units[unit as usize].present.is_empty()
            && self.collector.waiting_for_open_superpage(unit, &self.ftl.pages) > 0
        {
            self.pad_awaited(unit);
        }
    }

    /// Moves cold data to a worn superblock when the superblocks of a unit are too far apart.
    fn level_wear_if_needed(&mut self, unit: u32) {
        let is_free =
            self.collector.units[unit as usize].present.is_empty() && self.ftl.pages.free_superblocks(unit) > 1;
        if !is_free || self.is_read_only() || self.collector.collects_in_vain(&self.ftl.pages, self.is_idle()) {
            return;
        }
        if let Some(victim) = self.ftl.pages.take_cold_victim(unit) {
            self.flash.counters.wear_levelling_runs += 1;
            self.empty(unit, victim, Cause::WearLevelling);
        }
    }

    /// Reads the next rows that hold something valid, or ends the victim.
    fn read_victim_ahead(&mut self, unit: u32, victim: u32) {
        let most = self.config.ftl.gc.reads_in_flight as usize;
        let rows = self.ftl.pages.rows_of(victim);
        loop {
            let Some(collection) = self.collector.victim(unit, victim) else { return };
            let row = collection.next_row;
            if row == rows || collection.rows.len() >= most {
                if collection.rows.is_empty() {
                    self.victim_emptied(unit, victim);
                }
                return;
            }
            let has_pace = collection.pace.is_some();
            if !has_pace {
                collection.next_row += 1;
            } else if !self.collector.goes_on(unit, victim, &self.ftl.pages) {
                return;
            }
            let is_buffered = row >= self.ftl.pages.superblocks[victim].programmed_rows;
            let reads_left = if is_buffered {
                0
            } else {
                self.collector.issue_row_reads((unit, victim, row), &self.ftl, &mut self.flash, &mut self.clock)
            };
            if reads_left == 0 && !is_buffered {
                continue;
            }
            if has_pace && !is_buffered {
                self.collector.spend_row(unit, victim);
            }
            if let Some(collection) = self.collector.victim(unit, victim) {
                collection.rows.push(Row { row, slot: 0, reads_left });
                debug_assert!(collection.rows.len() <= most, "more rows of {victim} than may be in flight");
            }
            if is_buffered && !self.move_row(unit, victim, row) {
                return;
            }
        }
    }

    /// The host's writes have filled so many pages of a unit: its victims may move more.
    #[inline(never)]
    pub(crate) fn earn_pace(&mut self, unit: u32, pages: u32) {
        self.collector.earn(unit, pages);
        self.continue_paced(unit);
    }

    /// Victims that waited for credit continue if they have any, or need none.
    fn continue_paced(&mut self, unit: u32) {
        while let Some(victim) = self.collector.victim_that_goes_on(unit, &self.ftl.pages) {
            self.read_victim_ahead(unit, victim);
        }
    }

    /// Where the drive has nothing else to do, victims that wait for the host's writes continue, a row at a time. While
    /// it empties its SLC cache, they go on to their end, as what it folds. Gives whether anything comes of it.
    #[inline(never)]
    pub(crate) fn collects_unpaced_at_rest(&mut self) -> bool {
        let mut continues = false;
        let slots = self.ftl.pages.geometry.slots;
        while self.collector.waiting_for_credit > 0 && self.clock.events.holds_timers_alone() {
            continues = true;
            let is_quiet = self.collector.folding.is_quiet && self.host.is_resting();
            for unit in 0..self.ftl.pages.geometry.units {
                if let Some(victim) = self.collector.waiting_victim(unit) {
                    self.collector.forgive(unit, victim, if is_quiet { u32::MAX } else { slots });
                    self.read_victim_ahead(unit, victim);
                    self.settle(unit);
                }
            }
            self.flash.settle(&mut self.clock);
        }
        continues && !self.clock.events.holds_timers_alone()
    }

    /// One read of a row has ended; with the last one the row is moved.
    pub(crate) fn collection_read_finished(&mut self, unit: u32, at: FlashAddress) {
        let (victim, row) = (at.block, u32::from(at.row));
        let Some(collection) = self.collector.victim(unit, victim) else { return };
        let Some(reading) = collection.rows.iter_mut().find(|r| r.row == row) else { return };
        reading.reads_left -= 1;
        if reading.reads_left == 0 {
            if self.move_row(unit, victim, row) {
                self.read_victim_ahead(unit, victim);
            }
            self.settle(unit);
        }
    }

    /// Moves what is still valid in a row that was read, as far as there is room; gives whether all of it.
    fn move_row(&mut self, unit: u32, victim: u32, row: u32) -> bool {
        let Some(collection) = self.collector.victim(unit, victim) else { return false };
        let cause = collection.cause();
        let Some(at) = collection.rows.iter().position(|r| r.row == row) else { return false };
        let first_slot = collection.rows[at].slot;
        let first_of_row = self.ftl.pages.first_slot_of_pages_in(victim, row);
        let slots = self.ftl.pages.geometry.first_slot(victim, row) + self.ftl.pages.geometry.slots - first_of_row;
        let mut streams = StreamSet::EMPTY;
        let slots = first_of_row + first_slot..first_of_row + slots;
        let no_room = self.relocate(unit, slots, row, cause, &mut streams, None);
        let Some(collection) = self.collector.victim(unit, victim) else { return no_room.is_none() };
        collection.streams = collection.streams.union(streams);
        match no_room {
            None => drop(collection.rows.remove(at)),
            Some(slot) => {
                collection.rows[at].slot = slot - first_of_row;
                self.collector.units[unit as usize].has_stalled = true;
                // Moving waits for a free superblock.
                self.pad_awaited(unit);
            }
        }
        no_room.is_none()
    }

    /// Moves what is valid in some slots, as far as there is room; gives the first slot that found none. `row` is that
    /// which was read. The streams that something went to are added to `streams`, those and the generations of the
    /// superpages to `moved_to`. One function for both of its callers: it takes in what they would call.
    fn relocate(
        &mut self,
        unit: u32,
        slots: Range<u32>,
        row: u32,
        cause: Cause,
        streams: &mut StreamSet,
        mut moved_to: Option<&mut Vec<(Stream, u64)>>,
    ) -> Option<u32> {
        let only = self.ftl.pages.only_stream(cause);
        let known = only.filter(|_| !self.ftl.pages.may_borrow_room(unit, cause));
        let mut next = slots.start;
        // A changed part of the page map may take the next slot of the same superpage.
        if let (Some(stream), None) = (only, &self.ftl.translator) {
            while let Some(run) =
                self.ftl.pages.relocate_run((unit, stream), next..slots.end, cause, |logical_page, from, to| {
                    self.flash.payload.relocate(from, to);
                    self.power.page_is_moved(logical_page, from, to);
                })
            {
                next = run.end;
                streams.insert(stream);
                if let Some(moved_to) = &mut moved_to
                    && moved_to.last() != Some(&(stream, run.generation))
                {
                    moved_to.push((stream, run.generation));
                }
                self.collector.note_filled(unit, stream, run.generation);
                if run.is_full {
                    self.program_superpage(run.superpage);
                }
            }
        }
        while let Some(from) = self.ftl.pages.next_slot(next, slots.end) {
            next = from + 1;
            if self.ftl.pages.has_extents() && !self.ftl.pages.ends_in_row(from, row) {
                continue;
            }
            match self.ftl.pages.relocate(from, cause, only) {
                Relocation::NotValid => {}
                Relocation::Moved(placement, logical_page) => {
                    self.flash.payload.relocate(from, placement.slot());
                    self.power.page_is_moved(logical_page, from, placement.slot());
                    let superpage = &self.ftl.pages.superpages[placement.superpage()];
                    let (stream, generation) = (known.unwrap_or(superpage.stream), superpage.generation);
                    streams.insert(stream);
                    if let Some(moved_to) = &mut moved_to
                        && moved_to.last() != Some(&(stream, generation))
                    {
                        moved_to.push((stream, generation));
                    }
                    self.collector.note_filled(unit, stream, generation);
                    if placement.full() {
                        self.program_superpage(placement.superpage());
                    }
                    if self.ftl.pages.has_extents() {
                        self.collector.extent_moved(
                            unit,
                            stream,
                            cause,
                            placement,
                            &self.ftl.pages,
                            &mut self.flash.counters,
                        );
                    }
                    // Only now: a changed part of the page map may take the next slot of the same superpage.
                    self.mapping_moved(logical_page);
                }
                Relocation::NoRoom => return Some(from),
            }
        }
        None
    }

    /// Moves what is valid in a superpage that is still in the write buffer, as far as there is room, and programs
    /// where it goes as it is; gives whether all of it. Streams and generations of those superpages are added to
    /// `moved_to`.
    #[cold]
    pub(super) fn move_superpage(&mut self, unit: u32, superpage: u32, moved_to: &mut Vec<(Stream, u64)>) -> bool {
        let record = &self.ftl.pages.superpages[superpage];
        let (block, row) = (record.block, record.row);
        let first = self.ftl.pages.geometry.first_slot(block, row);
        let slots = first..first + self.ftl.pages.geometry.slots;
        let mut streams = StreamSet::EMPTY;
        let no_room = self.relocate(unit, slots, row, Cause::Retirement, &mut streams, Some(moved_to));
        // Others may wait for a superblock that becomes free only when this is on flash.
        moved_to.iter().for_each(|&(stream, _)| self.pad_moved(unit, stream));
        no_room.is_none()
    }

    /// Continues with the rows that wait for a free superblock.
    pub(super) fn resume_stalled(&mut self, unit: u32) {
        let is_stalled = |row: &&Row| row.reads_left == 0;
        let present = &self.collector.units[unit as usize].present;
        let next = |c: &Collection| c.rows.iter().find(is_stalled).map(|row| (c.victim, row.row));
        let mut stalled = present.iter().find_map(next);
        while let Some((victim, row)) = stalled {
            if !self.move_row(unit, victim, row) {
                return;
            }
            self.read_victim_ahead(unit, victim);
            stalled = self.collector.units[unit as usize].present.iter().find_map(next);
        }
        self.collector.units[unit as usize].has_stalled = false;
    }

    fn victim_emptied(&mut self, unit: u32, victim: u32) {
        let collector = &mut self.collector.units[unit as usize];
        let Some(at) = collector.present.iter().position(|c| c.victim == victim) else { return };
        let mut ended = collector.present.remove(at);
        ended.rows.clear();
        let (streams, cause) = (ended.streams, ended.cause());
        let is_retired = self.ftl.pages.superblocks[victim].is_failing;
        debug_assert_eq!(self.ftl.pages.superblocks[victim].valid, 0, "superblock {victim} is not empty");
        self.ftl.pages.victim_emptied(victim);
        let generation = collector.filled_generation;
        collector.emptied.push(Emptied { block: victim, streams, generation, is_retired });
        let many_rows = self.ftl.pages.geometry.rows >= MANY_ROWS * self.ftl.pages.gc_classes() && ended.frees_a_row;
        collector.spare_rows.push(ended.rows);
        let pads = is_retired || cause == Cause::WearLevelling;
        self.erase_emptied(unit);
        let may_wait = if many_rows || pads { 1 } else { EMPTIED_MAX };
        if self.collector.waiting_for_open_superpage(unit, &self.ftl.pages) >= may_wait {
            streams.for_each(|stream| self.pad_moved(unit, stream));
        }
        self.collect_if_needed(unit);
    }

    /// Programs the superpage that moved data is filling as it is.
    pub(super) fn pad_moved(&mut self, unit: u32, stream: Stream) {
        if let Some(superpage) = self.ftl.pages.open_superpage_of(unit, stream) {
            self.program_superpage(superpage);
        }
    }

    /// Emptied victims wait for company no longer: what they wait for is programmed as it is.
    pub(super) fn pad_awaited(&mut self, unit: u32) {
        let emptied = self.collector.units[unit as usize].emptied.iter();
        for stream in emptied.fold(StreamSet::EMPTY, |streams, emptied| streams.union(emptied.streams)) {
            if self.collector.waiting_for_open_superpage(unit, &self.ftl.pages) > 0 {
                self.pad_moved(unit, stream);
            }
        }
    }

    /// A superpage of moved data is on flash, or in a write buffer that is as good.
    pub(crate) fn moved_data_is_on_flash(&mut self, unit: u32, stream: Stream, generation: u64) {
        let collector = &mut self.collector.units[unit as usize];
        collector.not_programmed.remove(stream, generation);
        if !collector.rescued.is_empty() {
            self.rescued_data_is_on_flash(unit, stream, generation);
        }
        if !self.collector.units[unit as usize].emptied.is_empty() {
            self.erase_emptied(unit);
        }
    }

    /// Erases the victims whose data is all on flash elsewhere, or sets them aside if they are retired.
    fn erase_emptied(&mut self, unit: u32) {
        let dies = self.ftl.pages.geometry.dies_per_unit;
        loop {
            let collector = &mut self.collector.units[unit as usize];
            let waited_for = &collector.not_programmed;
            let is_done = |emptied: &Emptied| !waited_for.holds_up(emptied.streams, &emptied.generation);
            let Some(at) = collector.emptied.iter().position(is_done) else { return };
            let Emptied { block, is_retired, .. } = collector.emptied.remove(at);
            if is_retired {
                self.retirement_finished(unit, block);
                continue;
            }
            collector.erasing.push(Erasing { block, ops_left: dies, has_failed: false });
            debug_assert!(collector.is_consistent(), "{collector:?}");
            debug_assert_eq!(self.ftl.pages.superblocks[block].valid, 0, "nothing valid is erased");
            for n in 0..dies {
                let (owner, at) = (Owner::Erase { unit, block }, self.ftl.pages.geometry.address(block, 0, n));
                let op = self.flash.array.prepare(FlashOp::new(FlashOpKind::Erase, owner, at, 0));
                self.collector.issue(unit, op, &self.ftl.pages, &mut self.flash, &mut self.clock);
            }
        }
    }

    /// One die has erased its part of a superblock, or failed to.
    pub(crate) fn erase_finished(&mut self, unit: u32, block: u32, failed: bool) {
        let collector = &mut self.collector.units[unit as usize];
        let Some(at) = collector.erasing.iter().position(|erasing| erasing.block == block) else { return };
        let erasing = &mut collector.erasing[at];
        erasing.ops_left -= 1;
        erasing.has_failed |= failed;
        if erasing.ops_left > 0 {
            return;
        }
        let failed = collector.erasing.remove(at).has_failed;
        self.flash.counters.erases += 1;
        self.power.superblock_is_erased(block, &self.ftl.pages);
        if !self.ftl.pages.superblock_erased(block, failed) {
            self.superblock_lost(unit);
        }
        if self.config.ftl.gc.trigger == GcTrigger::SuperblockFilled && self.ftl.pages.is_below_host_reserve(unit) {
            self.collect_beside_others(unit);
        }
        self.space_changed(unit);
    }

    /// A superblock has become free, or will not: continues with all that may have waited for it.
    pub(super) fn space_changed(&mut self, unit: u32) {
        self.rescue_unsaved(unit);
        self.resume_stalled(unit);
        self.level_wear_if_needed(unit);
        self.collect_if_needed(unit);
        self.release_if_clean(unit);
        self.place_parked(unit);
        self.place_waiting_translation_pages();
        self.admit_writes();
        self.settle(unit);
    }

    /// Ends the handling of an event: tells who waits for room that a retirement has ended, or that there will be none.
    pub(super) fn settle(&mut self, unit: u32) {
        if std::mem::take(&mut self.collector.units[unit as usize].has_retired) {
            return self.space_changed(unit);
        }
        self.give_up_if_stuck(unit);
    }

    /// Starts to empty a victim.
    pub(super) fn empty(&mut self, unit: u32, victim: u32, cause: Cause) {
        let idle_cache = if self.is_idle() { Some(&mut self.cache) } else { None };
        self.collector.take_victim(unit, victim, cause, &self.ftl.pages, idle_cache);
        self.read_victim_ahead(unit, victim);
    }
}
