//! Writes and trims: the write buffer, and what the FTL makes of it.
//!
//! A write completes when all of it is in the write buffer; a forced write when it is on flash. The buffer is counted
//! in logical pages: a page takes room from its admission to the end of its superpage's program command. Writes that
//! find no room wait in the order of arrival. A page that is bound to a unit without a free superblock is parked: it
//! holds its room in the buffer and does not keep others, bound for other units, from theirs.

use crate::controller::{ByteRange, PageSpan};
use crate::device::SimulatedSsd;
use crate::flash::{FlashOp, FlashOpKind, Owner};
use crate::ftl::{Cause, Location, Placement, Stream};
use crate::list::{Fifo, Linked};

/// A page in the write buffer whose unit has no room for it yet.
#[derive(Clone, Copy, Default)]
pub(crate) struct ParkedPage {
    request: u32,
    n: u32,
    next: u32,
}

impl ParkedPage {
    /// The request that wrote it.
    pub(crate) fn request(&self) -> u32 {
        self.request
    }

    fn set(&mut self, request: u32, n: u32) {
        (self.request, self.n) = (request, n);
    }
}

impl Linked for ParkedPage {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// How full the write buffer is.
pub(crate) struct WriteBuffer {
    pub(crate) capacity_pages: u64,
    pub(crate) used_pages: u64,
    /// Writes that wait for room.
    pub(crate) waiting: Fifo,
    /// Writes are being let in.
    pub(crate) is_admitting: bool,
    /// There may be more room than when the first waiting write was last tried.
    pub(crate) has_changed: bool,
}

impl SimulatedSsd {
    /// A write's data is in the drive: partial pages are filled up first.
    pub(crate) fn start_write(&mut self, request: u32) {
        let Some(range) = self.range_of(request) else { return };
        let last = range.pages() - 1;
        let ends = [range.span(0), range.span(last)];
        let partial = if last == 0 { &ends[..1] } else { &ends[..] };
        for span in partial.iter().filter(|span| !span.is_whole()) {
            if let Location::Flash(slot) = self.locate(span.logical_page) {
                self.read_for_fill(request, slot);
            }
        }
        if self.active[request].pending == 0 {
            self.enqueue_write(request);
        }
    }

    /// Reads a whole logical page of which only a part is written.
    pub(crate) fn read_for_fill(&mut self, request: u32, slot: u32) {
        let bytes = self.page.bytes() as u32;
        let at = self.address_of(slot);
        self.flash_counters.bytes_read.0 += u64::from(bytes);
        self.active[request].pending += 1;
        let op = self.flash.prepare(FlashOp::new(FlashOpKind::Read, Owner::Fill { request }, at, bytes));
        self.issue_host_read(op);
    }

    /// A write waits for room in the buffer, behind those that came before.
    pub(crate) fn enqueue_write(&mut self, request: u32) {
        if self.is_read_only() {
            return self.refuse(request);
        }
        self.buffer.waiting.push(&mut self.active, request);
        self.admit_writes();
    }

    /// Lets waiting writes into the buffer for as long as there is room. Placing a page may make room for others; they
    /// are let in here then, not in the midst of that page.
    pub(crate) fn admit_writes(&mut self) {
        self.buffer.has_changed = true;
        if self.buffer.is_admitting {
            return;
        }
        self.buffer.is_admitting = true;
        while let Some(request) = self.buffer.waiting.peek() {
            self.buffer.has_changed = false;
            if self.admit(request) {
                self.buffer.waiting.pop(&mut self.active);
                self.all_pages_taken(request);
            } else if !self.buffer.has_changed {
                break;
            }
        }
        self.buffer.is_admitting = false;
    }

    /// Takes the pages of a write into the buffer and places them; `false` when it has to wait with the rest.
    fn admit(&mut self, request: u32) -> bool {
        let Some(range) = self.range_of(request) else { return true };
        let pages = range.pages();
        while self.active[request].taken < pages {
            let n = self.active[request].taken;
            if !self.take_page(request, range.span(n), (n, pages)) {
                return false;
            }
            self.active[request].taken += 1;
        }
        true
    }

    /// Takes one page of a write into the buffer; `false` when it has to wait for room.
    fn take_page(&mut self, request: u32, span: PageSpan, nth: (u32, u32)) -> bool {
        let old = self.ftl.slot_of(span.logical_page);
        if let Some(placement) = self.ftl.overwrite_in_buffer(span.logical_page, nth) {
            self.store(request, span, old, placement);
            self.remember_for_fua(request, placement.superpage);
            return true;
        }
        if self.buffer.used_pages >= self.buffer.capacity_pages {
            return false;
        }
        self.clean_before_write(span.logical_page);
        if let Some(placement) = self.ftl.place(span.logical_page, nth, self.flash.commands_of_die()) {
            self.buffer.used_pages += 1;
            self.page_placed(request, span, old, placement);
            return true;
        }
        let Some(unit) = self.ftl.bound_unit(span.logical_page) else { return false };
        self.buffer.used_pages += 1;
        self.active[request].pending += 1;
        let page = self.parked_pages.take();
        self.parked_pages[page].set(request, nth.0);
        self.parked[unit as usize].push(&mut self.parked_pages, page);
        true
    }

    /// A page has its slot: its content goes there, and a superpage that it fills is programmed.
    fn page_placed(&mut self, request: u32, span: PageSpan, old: Option<u32>, placement: Placement) {
        self.store(request, span, old, placement);
        self.remember_for_fua(request, placement.superpage);
        if placement.full {
            self.program_superpage(placement.superpage);
        }
    }

    /// A unit has room again: the pages that waited for it are placed in the order in which they came.
    pub(crate) fn place_parked(&mut self, unit: u32) {
        while let Some(page) = self.parked[unit as usize].peek() {
            let ParkedPage { request, n, .. } = self.parked_pages[page];
            let Some(range) = self.range_of(request) else { return };
            let span = range.span(n);
            let nth = (n, range.pages());
            self.clean_before_write(span.logical_page);
            let old = self.ftl.slot_of(span.logical_page);
            let Some(placement) = self.ftl.place(span.logical_page, nth, self.flash.commands_of_die()) else { return };
            self.parked[unit as usize].pop(&mut self.parked_pages);
            self.parked_pages.give_back(page);
            self.page_placed(request, span, old, placement);
            self.active[request].pending -= 1;
            if self.active[request].pending == 0 && self.active[request].taken == nth.1 {
                self.write_placed(request);
            }
        }
    }

    /// All of a write is in the buffer; what has its place may complete.
    fn all_pages_taken(&mut self, request: u32) {
        if self.active[request].pending == 0 {
            self.write_placed(request);
        }
    }

    /// Brings a page's content to its new slot.
    fn store(&mut self, request: u32, span: PageSpan, old: Option<u32>, placement: Placement) {
        let buffer = self.active[request].request.as_ref().and_then(|r| r.buffer.as_ref());
        if let Some(old) = old.filter(|_| placement.new_slot) {
            if span.is_whole() {
                self.payload.discard(old);
            } else {
                self.payload.relocate(old, placement.slot);
            }
        }
        match buffer {
            Some(buffer) => {
                let bytes = &buffer[span.in_buffer..span.in_buffer + span.len()];
                self.payload.write(placement.slot, span.from, bytes);
            }
            None if span.is_whole() => self.payload.discard(placement.slot),
            None => {}
        }
    }

    /// Programs a superpage that is full or that cannot wait for more.
    pub(crate) fn program_superpage(&mut self, superpage: u32) {
        self.ftl.close_superpage(superpage);
        let record = &self.ftl.superpages[superpage];
        let (unit, block, row, stream) = (record.unit, record.block, record.row, record.stream);
        let (filled, moved) = (record.filled, record.moved);
        let geometry = self.ftl.geometry;
        self.count_programmed(filled, moved);
        let copies_back = self.config.ftl.gc.copy_back && moved.iter().sum::<u32>() == filled;
        let bytes = if copies_back { 0 } else { geometry.program_bytes_per_die };
        for n in 0..geometry.dies_per_unit {
            let (at, owner) = (geometry.address(block, row, n), Owner::Superpage { superpage });
            let op = FlashOp::new(FlashOpKind::Program, owner, at, bytes);
            if stream == Stream::Host {
                let op = self.flash.prepare(op);
                self.flash.issue(op, self.now_ns, &mut self.events);
            } else {
                self.issue_collecting(unit, op);
            }
        }
        self.collect_if_needed(unit);
    }

    /// Counts a programmed superpage with so many slots filled, and those of them that were moved by cause.
    fn count_programmed(&mut self, filled: u32, moved: [u32; Cause::COUNT]) {
        let page = self.page.bytes();
        let slots = self.ftl.geometry.slots;
        let counters = &mut self.flash_counters;
        counters.bytes_programmed.0 += u64::from(slots) * page;
        counters.padding_bytes.0 += u64::from(slots - filled) * page;
        let bytes = |cause: Cause| u64::from(moved[cause as usize]) * page;
        counters.gc_bytes_moved.0 += bytes(Cause::Gc);
        counters.gc_pages_moved += u64::from(moved[Cause::Gc as usize]);
        counters.wear_levelling_bytes_moved.0 += bytes(Cause::WearLevelling);
        counters.retirement_bytes_moved.0 += bytes(Cause::Retirement);
    }

    /// One of a superpage's program commands has ended.
    pub(crate) fn program_op_finished(&mut self, superpage: u32, failed: bool) {
        let record = &mut self.ftl.superpages[superpage];
        record.programs_left -= 1;
        record.has_failed |= failed;
        if record.programs_left > 0 {
            return;
        }
        let (unit, stream, generation) = (record.unit, record.stream, record.generation);
        let (has_failed, has_moved_data) = (record.has_failed, record.moved_pages() > 0);
        self.ftl.row_programmed(superpage);
        if has_failed {
            self.program_failed(unit, superpage);
        } else {
            self.superpage_saved(superpage);
        }
        if has_moved_data {
            self.moved_data_is_on_flash(unit, stream, generation);
        }
        self.collect_if_needed(unit);
        self.release_if_clean(unit);
        self.place_cleaned(unit);
        self.give_up_if_stuck(unit);
    }

    /// What a superpage holds is on flash, there or elsewhere.
    pub(crate) fn superpage_saved(&mut self, superpage: u32) {
        let record = &mut self.ftl.superpages[superpage];
        let (stream, host_pages) = (record.stream, record.host_pages());
        let mut waiters = std::mem::take(&mut record.waiters);
        self.ftl.release_superpage(superpage);
        waiters.drain(..).for_each(|request| self.one_less_pending(request));
        self.ftl.superpages[superpage].waiters = waiters;
        if stream == Stream::Host {
            self.buffer.used_pages -= u64::from(host_pages);
            self.admit_writes();
        }
    }

    /// Something that a write or a flush waited for has happened.
    pub(crate) fn one_less_pending(&mut self, request: u32) {
        self.active[request].pending -= 1;
        if self.active[request].pending == 0 {
            self.complete(request);
        }
    }

    /// Forgets the logical pages that a trim covers wholly.
    pub(crate) fn trim(&mut self, request: u32) {
        if self.is_read_only() {
            return self.refuse(request);
        }
        let Some(range) = self.range_of(request) else { return };
        for span in range.spans().filter(PageSpan::is_whole) {
            if let Some(slot) = self.forget(span.logical_page) {
                self.payload.discard(slot);
            }
        }
        self.zero_partial_pages(range);
        self.complete(request);
    }

    /// A trim of a part of a page keeps the page but its bytes read as zeros.
    fn zero_partial_pages(&mut self, range: ByteRange) {
        for span in range.spans().filter(|span| !span.is_whole()) {
            if let Some(slot) = self.slot_of(span.logical_page) {
                self.payload.zero(slot, span.from, span.to);
            }
        }
    }
}
