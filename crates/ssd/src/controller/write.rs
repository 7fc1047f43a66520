//! Writes and trims: the write buffer, and what the FTL makes of it.
//!
//! A write completes when all of it is in the write buffer, or in the write cache in front of it
//! ([`super::write_cache`]); a forced write, and with `write_policy = "through"` every write, when it is on flash. A
//! page takes space in the buffer from its admission, or from its leaving the cache, to the end of its superpage's
//! program command: all of its length, or where the FTL remembers the parts of pages that hold data
//! (`ftl.partial_pages`), the parts that were written. Writes that find no space wait in the order of arrival. A page
//! that is bound to a unit without a free superblock is parked: it holds its room in the buffer and does not keep
//! others, bound for other units, from theirs.

use crate::cache::Parked;
use crate::device::SimulatedSsd;
use crate::flash::{FlashOp, FlashOpKind, OpClass, Owner};
use crate::ftl::Placement;
use crate::ftl::geometry::Geometry;
use crate::pages::{ByteRange, PageSpan};

impl SimulatedSsd {
    /// A write's data is in the drive: partial pages are filled up first.
    pub(crate) fn start_write(&mut self, request: u32) {
        let Some(range) = self.host.range_of(request) else { return };
        if !range.is_whole_pages() && !self.cache.fills_up(&self.ftl) {
            return self.start_partial_write(request, range);
        }
        self.write_filled(request);
    }

    /// Reads what a write lacks of its pages, before it continues.
    #[inline(never)]
    fn start_partial_write(&mut self, request: u32, range: ByteRange) {
        self.fill_partial_pages(request, range);
        if self.host.active[request].pending == 0 {
            self.write_filled(request);
        }
    }

    /// Reads what a write lacks of its first and its last page.
    fn fill_partial_pages(&mut self, request: u32, range: ByteRange) {
        let last = range.pages() - 1;
        let ends = [range.span(0), range.span(last)];
        let partial = if last == 0 { &ends[..1] } else { &ends[..] };
        for span in partial.iter().filter(|span| !span.is_whole()) {
            match self.cache.missing_on_flash(*span, &self.ftl) {
                Some((slot, _)) if self.ftl.pages.has_extents() => {
                    self.read_extent_for_fill(request, span.logical_page, slot)
                }
                Some((slot, bytes)) => self.read_for_fill(request, slot, bytes),
                None => {}
            }
        }
    }

    /// Reads of a logical page of which only a part is written what is missing.
    pub(crate) fn read_for_fill(&mut self, request: u32, slot: u32, bytes: u32) {
        self.host.active[request].flash_begins(self.clock.now_ns);
        let at = self.ftl.address_of(slot);
        self.host.active[request].pending += 1;
        let op = self.flash.prepare_read(Owner::Fill { request }, at, bytes);
        self.issue_host_read(op);
    }

    /// A write waits for room in the buffer, behind those that came before.
    pub(crate) fn enqueue_write(&mut self, request: u32) {
        if self.is_read_only() {
            return self.refuse(request);
        }
        self.cache.buffer.waiting.push(&mut self.host.active, request);
        self.admit_writes();
    }

    /// Lets waiting writes into the buffer for as long as there is room, behind what the cache has to write back.
    /// Placing a page may make room for others; they are let in here then, not in the midst of that page.
    #[inline]
    pub(crate) fn admit_writes(&mut self) {
        self.cache.buffer.has_changed = true;
        let has_queued = self.cache.write.as_ref().is_some_and(|cache| cache.has_queued());
        if !self.cache.buffer.is_admitting && (has_queued || self.cache.buffer.waiting.peek().is_some()) {
            self.admit_waiting();
        }
    }

    fn admit_waiting(&mut self) {
        self.cache.buffer.is_admitting = true;
        self.write_back_queued();
        while let Some(request) = self.cache.buffer.waiting.peek() {
            self.cache.buffer.has_changed = false;
            if self.cache.takes_no_page(request, &self.host) {
                self.cache.end_admission(self.clock.now_ns);
                break;
            }
            if self.admit(request) {
                self.cache.buffer.waiting.pop(&mut self.host.active);
                self.host.write_is_in(request);
                self.all_pages_taken(request);
            } else if !self.cache.buffer.has_changed {
                break;
            }
        }
        self.cache.buffer.is_admitting = false;
        if self.host.limits_writes() && self.host.queues.waiting() > 0 {
            self.take_commands();
        }
    }

    /// Takes the pages of a write into the buffer and places them; `false` when it has to wait with the rest.
    fn admit(&mut self, request: u32) -> bool {
        let Some(range) = self.host.range_of(request) else { return true };
        let (pages, zeroes) = (range.pages(), self.host.writes_zeroes(request));
        let (mut n, mut bytes) = (self.host.active[request].taken, 0);
        while n < pages {
            let span = range.span(n);
            if !(zeroes && self.is_settled_zeros(span) || self.take_page(request, span, (n, pages))) {
                break;
            }
            n += 1;
            self.host.active[request].taken = n;
            bytes += span.len() as u64;
        }
        if zeroes {
            bytes = 0;
        }
        let active = &mut self.host.active[request];
        active.finish_ns = active.finish_ns.max(self.cache.dram.access(self.clock.now_ns, bytes));
        if self.cache.write.is_some() {
            self.cache.end_admission(self.clock.now_ns);
        }
        n == pages
    }

    /// Takes one page of a write into the cache or the buffer; `false` when it has to wait for room.
    #[inline(always)]
    fn take_page(&mut self, request: u32, span: PageSpan, nth: (u32, u32)) -> bool {
        if self.ftl.reduction.is_some() {
            return self.take_page_to_reduce(request, nth);
        }
        self.cache.forget_read(span.logical_page);
        if self.cache.write.is_some() {
            return self.cache_page(request, span, nth);
        }
        let touched = self.ftl.sectors.touched(span);
        let old = self.ftl.pages.slot_of(span.logical_page);
        if let Some(placement) = self.ftl.pages.overwrite_in_buffer(span.logical_page, nth) {
            self.flash.counters.absorbed_bytes.0 += span.len() as u64;
            self.store(request, span, old, placement);
            self.ftl.sectors.write(span.logical_page, touched, old.is_some());
            self.remember_for_fua(request, placement.superpage());
            return true;
        }
        if self.cache.buffer.is_full() {
            return false;
        }
        let charge = self.ftl.sectors.written_bytes(touched);
        self.clean_before_write(span.logical_page);
        let hint = self.host.active[request].stream;
        if let Some(placement) = self.place_written(span.logical_page, nth, hint) {
            self.cache.buffer.take_room(placement.superpage(), charge, &mut self.ftl.pages);
            self.page_placed(request, span, old, placement);
            return true;
        }
        let Some(unit) = self.ftl.pages.bound_unit(span.logical_page) else { return false };
        self.cache.buffer.used_bytes += u64::from(charge);
        self.cache.buffer.parked_bytes += u64::from(charge);
        self.host.active[request].pending += 1;
        self.cache.buffer.park(Parked::Written { request, n: nth.0, charge }, Some(unit));
        true
    }

    /// The same of a drive that reduces what it stores; apart, so that the way of others is short.
    #[cold]
    #[inline(never)]
    fn take_page_to_reduce(&mut self, request: u32, nth: (u32, u32)) -> bool {
        let Some(range) = self.host.range_of(request) else { return true };
        self.take_reduced_page(request, range.span(nth.0), nth)
    }

    /// A page has its slot: its content goes there, and a superpage that it fills is programmed.
    #[inline(always)]
    fn page_placed(&mut self, request: u32, span: PageSpan, old: Option<u32>, placement: Placement) {
        self.store(request, span, old, placement);
        self.ftl.sectors.write(span.logical_page, self.ftl.sectors.touched(span), old.is_some());
        self.remember_for_fua(request, placement.superpage());
        if placement.full() {
            self.program_superpage(placement.superpage());
        }
    }

    /// A unit has room again: the pages that waited for it are placed in the order in which they came.
    pub(crate) fn place_parked(&mut self, unit: u32) {
        for list in [unit as usize, self.cache.buffer.parked.len() - 1] {
            while let Some(page) = self.cache.buffer.parked[list].peek() {
                let placed = match self.cache.buffer.parked_pages[page].what {
                    Parked::Written { request, n, charge } => self.place_parked_page(request, n, charge),
                    Parked::Cached { entry } => self.try_to_place_cached(entry),
                };
                if !placed {
                    break;
                }
                self.cache.buffer.parked[list].pop(&mut self.cache.buffer.parked_pages);
                self.cache.buffer.parked_pages.give_back(page);
            }
        }
    }

    /// Places a parked page of a write; `false` when its unit has no space.
    fn place_parked_page(&mut self, request: u32, n: u32, charge: u32) -> bool {
        let Some(range) = self.host.range_of(request) else { return true };
        let span = range.span(n);
        let nth = (n, range.pages());
        self.clean_before_write(span.logical_page);
        let old = self.ftl.pages.slot_of(span.logical_page);
        let hint = self.host.active[request].stream;
        let Some(placement) = self.place_written(span.logical_page, nth, hint) else { return false };
        self.cache.buffer.parked_bytes -= u64::from(charge);
        self.ftl.pages.superpages[placement.superpage()].held_bytes += charge;
        self.page_placed(request, span, old, placement);
        self.host.active[request].pending -= 1;
        if self.host.active[request].pending == 0 && self.host.active[request].taken == nth.1 {
            self.write_placed(request);
        }
        true
    }

    /// All of a write is in the buffer; what has its place may complete.
    fn all_pages_taken(&mut self, request: u32) {
        if self.host.active[request].pending == 0 {
            self.write_placed(request);
        }
    }

    /// Brings a page's content to its new slot.
    #[inline(always)]
    fn store(&mut self, request: u32, span: PageSpan, old: Option<u32>, placement: Placement) {
        if let Some(old) = old.filter(|_| placement.new_slot()) {
            self.power.page_is_superseded(span.logical_page, old, &self.ftl, &self.flash.payload);
            if span.is_whole() {
                self.flash.payload.discard(old);
            } else {
                self.flash.payload.relocate(old, placement.slot());
            }
        }
        if let Some(r) = &self.host.active[request].request {
            self.flash.payload.store(placement.slot(), span, r);
        }
    }

    /// Programs a superpage that is full or that cannot wait for more.
    pub(crate) fn program_superpage(&mut self, superpage: u32) {
        self.ftl.pages.close_superpage(superpage);
        let record = &self.ftl.pages.superpages[superpage];
        let (unit, block, row, stream) = (record.unit, record.block, record.row, record.stream);
        let (filled, moved, held_bytes) = (record.filled, record.moved, record.held_bytes);
        let Geometry { dies_per_unit, program_bytes_per_die, .. } = self.ftl.pages.geometry;
        let all_moved = match moved {
            [0, 0, 0, 0] => filled == 0,
            moved => moved.iter().sum::<u32>() == filled,
        };
        let bytes = match stream {
            _ if all_moved && self.config.ftl.gc.copy_back => 0,
            // The die gets what was written, and no padding.
            _ if stream.is_host() && !all_moved && self.ftl.sectors.are_known() && dies_per_unit == 1 => {
                held_bytes.min(program_bytes_per_die)
            }
            _ => program_bytes_per_die,
        };
        if self.ftl.pages.has_slc_cache() {
            self.flash.array.set_slc_mode(block, self.ftl.pages.is_slc(block));
        }
        let class = if all_moved { OpClass::GcProgram } else { OpClass::HostProgram };
        for n in 0..dies_per_unit {
            let (at, owner) = (self.ftl.pages.geometry.address(block, row, n), Owner::Superpage { superpage });
            let op = self.flash.array.prepare(FlashOp::new(FlashOpKind::Program, owner, at, bytes).of_class(class));
            if stream.is_host() {
                self.flash.issue(op, &mut self.clock);
            } else {
                self.collector.issue(unit, op, &self.ftl.pages, &mut self.flash, &mut self.clock);
            }
        }
        self.collect_if_needed(unit);
        if self.config.ftl.gc.pace.is_some() && !all_moved {
            self.earn_pace(unit, filled - moved.iter().sum::<u32>());
        }
    }

    /// One of a superpage's program commands has ended.
    pub(crate) fn program_op_finished(&mut self, superpage: u32, failed: bool) {
        let record = &mut self.ftl.pages.superpages[superpage];
        record.programs_left -= 1;
        record.has_failed |= failed;
        if record.programs_left > 0 {
            return;
        }
        let (unit, stream, generation) = (record.unit, record.stream, record.generation);
        let (has_failed, has_moved_data) = (record.has_failed, record.moved_pages() > 0);
        let (block, row) = (record.block, record.row);
        let (filled, moved) = (record.filled, record.moved);
        self.ftl.pages.count_programmed(filled, moved, &mut self.flash.counters);
        if self.ftl.pages.has_slc_cache() {
            self.collector.count_cached(
                block,
                self.ftl.pages.geometry.program_bytes(),
                stream.is_host(),
                &self.ftl.pages,
                &mut self.flash.counters,
            );
        }
        self.ftl.pages.row_programmed(superpage);
        if has_failed {
            self.program_failed(unit, superpage);
        } else {
            if self.power.may_be_cut() {
                self.power.row_is_durable(block, row, &self.ftl.pages, &self.flash.payload);
            }
            self.superpage_saved(superpage);
        }
        if has_moved_data && !has_failed {
            self.moved_data_is_on_flash(unit, stream, generation);
        }
        self.collect_if_needed(unit);
        self.release_if_clean(unit);
        self.place_cleaned(unit);
        self.settle(unit);
    }

    /// What a superpage holds is on flash, there or elsewhere.
    pub(crate) fn superpage_saved(&mut self, superpage: u32) {
        let record = &mut self.ftl.pages.superpages[superpage];
        let (stream, held_bytes) = (record.stream, record.held_bytes);
        let has_waiters = !record.waiters.is_empty();
        self.ftl.pages.release_superpage(superpage);
        if has_waiters {
            self.superpage_waiters_go_on(superpage);
        }
        if stream.is_host() {
            self.cache.buffer.used_bytes -= u64::from(held_bytes);
            if self.collector.idle_collections > 0 && self.cache.held_bytes() < self.cache.buffer.least_bytes {
                self.collect_for_what_leaves_the_buffer();
            }
            self.admit_writes();
        }
    }

    /// Those who waited for a superpage continue; the list stays, with its room, in the record.
    #[inline(never)]
    fn superpage_waiters_go_on(&mut self, superpage: u32) {
        let waiters = &mut self.ftl.pages.superpages[superpage].waiters;
        if let [only] = waiters[..] {
            waiters.clear();
            return self.one_less_pending(only);
        }
        // Who continues may come to need the record anew.
        let mut waiters = std::mem::take(waiters);
        waiters.drain(..).for_each(|request| self.one_less_pending(request));
        self.ftl.pages.superpages[superpage].waiters = waiters;
    }

    /// Something that a write or a flush waited for has happened.
    pub(crate) fn one_less_pending(&mut self, request: u32) {
        self.host.active[request].pending -= 1;
        if self.host.active[request].pending == 0 {
            self.finish(request);
        }
    }

    /// Forgets the logical pages that a trim covers wholly.
    pub(crate) fn trim(&mut self, request: u32) {
        if self.is_read_only() {
            return self.refuse(request);
        }
        let Some(range) = self.host.range_of(request) else { return };
        for span in range.spans().filter(PageSpan::is_whole) {
            self.deallocate(span.logical_page);
        }
        self.zero_partial_pages(range);
        if self.cache.write.is_some() {
            self.admit_writes();
        }
        self.finish(request);
    }

    /// Forgets a logical page, wherever it is.
    pub(crate) fn deallocate(&mut self, logical_page: u32) {
        self.power.trim_is_durable(logical_page);
        self.drop_cached(logical_page);
        self.cache.forget_read(logical_page);
        self.ftl.sectors.forget(logical_page);
        if let Some(slot) = self.ftl.forget(logical_page) {
            self.flash.payload.discard(slot);
        }
    }

    /// Does what a write of zeros does to a page where nothing needs to be written: a page that it covers wholly is
    /// forgotten, and one that were never written is zeros already. `false` where the page has to be written.
    pub(crate) fn is_settled_zeros(&mut self, span: PageSpan) -> bool {
        if span.is_whole() {
            self.deallocate(span.logical_page);
            return true;
        }
        let is_cached = self.cache.write.as_ref().is_some_and(|cache| cache.covered(span.logical_page).is_some());
        !is_cached && self.ftl.slot_of(span.logical_page).is_none()
    }

    /// A trim of a part of a page keeps the page but its bytes read as zeros.
    fn zero_partial_pages(&mut self, range: ByteRange) {
        for span in range.spans().filter(|span| !span.is_whole()) {
            // What the cache holds is all of the page; its older version on flash stays as it is.
            if self.cache.write.as_mut().is_some_and(|cache| cache.zero(span)) {
                continue;
            }
            if let Some(slot) = self.ftl.slot_of(span.logical_page) {
                match &mut self.ftl.reduction {
                    Some(reduction) => {
                        if reduction.zero(&mut self.flash.payload, slot, span) {
                            self.deallocate(span.logical_page);
                        }
                    }
                    None => self.flash.payload.zero(slot, span.from, span.to),
                }
            }
            self.zeros_are_durable(span);
        }
    }
}
