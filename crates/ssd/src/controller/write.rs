//! Writes and trims: the write buffer, and what the FTL makes of it.
//!
//! A write completes when all of it is in the write buffer; a forced write when it is on flash. The buffer is counted
//! in logical pages: a page takes room from its admission to the end of its superpage's program command. Writes that
//! find no room wait in the order of arrival. A page that is bound to a unit without a free superblock is parked: it
//! holds its room in the buffer and does not keep others, bound for other units, from theirs.

use crate::controller::{ByteRange, PageSpan};
use crate::device::SimulatedSsd;
use crate::flash::{FlashOp, FlashOpKind, OpClass, Owner};
use crate::ftl::{Location, Placement, Stream};
use crate::list::{Fifo, Linked};

/// A page in the write buffer whose unit has no room for it yet.
#[derive(Clone, Copy, Default)]
pub(crate) struct ParkedPage {
    request: u32,
    n: u32,
    next: u32,
}

impl ParkedPage {
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
            self.write_filled(request);
        }
    }

    /// Reads a whole logical page of which only a part is written.
    pub(crate) fn read_for_fill(&mut self, request: u32, slot: u32) {
        let bytes = self.page.bytes() as u32;
        let at = self.address_of(slot);
        self.flash_counters.bytes_read.0 += u64::from(bytes);
        self.active[request].pending += 1;
        let op = self.flash.prepare(FlashOp::new(FlashOpKind::Read, Owner::Fill { request }, at, bytes));
        self.flash.issue(op, self.now_ns, &mut self.events);
    }

    /// A write waits for room in the buffer, behind those that came before.
    pub(crate) fn enqueue_write(&mut self, request: u32) {
        self.buffer.waiting.push(&mut self.active, request);
        self.admit_writes();
    }

    /// Lets waiting writes into the buffer for as long as there is room.
    pub(crate) fn admit_writes(&mut self) {
        while let Some(request) = self.buffer.waiting.peek() {
            if !self.admit(request) {
                return;
            }
            self.buffer.waiting.pop(&mut self.active);
            self.all_pages_taken(request);
        }
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
            self.flash_counters.absorbed_bytes.0 += span.len() as u64;
            self.store(request, span, old, placement);
            self.remember_for_fua(request, placement.superpage);
            return true;
        }
        if self.buffer.used_pages >= self.buffer.capacity_pages {
            return false;
        }
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
        let (unit, stream, filled) = (record.unit, record.stream, u64::from(record.filled));
        let (block, row) = (record.block, record.row);
        let geometry = self.ftl.geometry;
        let page = self.page.bytes();
        let padding = (u64::from(geometry.slots) - filled) * page;
        self.flash_counters.bytes_programmed.0 += u64::from(geometry.slots) * page;
        self.flash_counters.padding_bytes.0 += padding;
        let class = match stream {
            Stream::Host => OpClass::HostProgram,
            Stream::Gc => OpClass::GcProgram,
        };
        if stream == Stream::Gc {
            self.flash_counters.gc_bytes_moved.0 += filled * page;
        }
        for n in 0..geometry.dies_per_unit {
            let at = geometry.address(block, row, n);
            let (owner, bytes) = (Owner::Superpage { superpage }, geometry.program_bytes_per_die);
            let op = FlashOp::new(FlashOpKind::Program, owner, at, bytes).of_class(class);
            let op = self.flash.prepare(op);
            self.flash.issue(op, self.now_ns, &mut self.events);
        }
        self.collect_if_needed(unit);
    }

    /// One of a superpage's program commands has ended.
    pub(crate) fn program_op_finished(&mut self, superpage: u32) {
        let record = &mut self.ftl.superpages[superpage];
        record.programs_left -= 1;
        if record.programs_left > 0 {
            return;
        }
        let (unit, stream, filled, generation) = (record.unit, record.stream, record.filled, record.generation);
        let mut waiters = std::mem::take(&mut record.waiters);
        self.ftl.superpage_programmed(superpage);
        waiters.drain(..).for_each(|request| self.one_less_pending(request));
        self.ftl.superpages[superpage].waiters = waiters;
        match stream {
            Stream::Host => {
                self.buffer.used_pages -= u64::from(filled);
                self.admit_writes();
            }
            Stream::Gc => self.moved_data_is_on_flash(unit, generation),
        }
        self.collect_if_needed(unit);
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
