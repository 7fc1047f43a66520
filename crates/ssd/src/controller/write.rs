//! Writes and trims: the write buffer, and what the FTL makes of it.
//!
//! A write completes when all of it is in the write buffer; a forced write when it is on flash. The buffer is counted
//! in logical pages: a page takes room from its placement to the end of its superpage's program command. Writes that
//! find no room wait in the order of arrival.

use crate::controller::{ByteRange, PageSpan};
use crate::device::SimulatedSsd;
use crate::flash::{FlashOp, FlashOpKind, Owner};
use crate::ftl::{Location, Placement, Stream};
use crate::list::Fifo;

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
            self.enqueue_write(request);
        }
    }

    /// Reads a whole logical page of which only a part is written.
    pub(crate) fn read_for_fill(&mut self, request: u32, slot: u32) {
        let bytes = crate::LOGICAL_PAGE_BYTES as u32;
        let (die, _) = self.die_and_row(slot);
        self.flash_counters.bytes_read.0 += u64::from(bytes);
        self.active[request].pending += 1;
        let op = self.flash.prepare(FlashOp::new(FlashOpKind::Read, Owner::Fill { request }, die, bytes));
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
            self.write_admitted(request);
        }
    }

    /// Places the pages of a write; `false` when it has to wait for room with the rest.
    fn admit(&mut self, request: u32) -> bool {
        let Some(range) = self.range_of(request) else { return true };
        let pages = range.pages();
        while self.active[request].placed < pages {
            let n = self.active[request].placed;
            let span = range.span(n);
            let has_room = self.buffer.used_pages < self.buffer.capacity_pages;
            let old = self.ftl.slot_of(span.logical_page);
            let Some(placement) = self.ftl.place(span.logical_page, has_room) else {
                return false;
            };
            self.active[request].placed += 1;
            self.ftl.placed_in_write(n, pages);
            self.store(request, span, old, placement);
            self.remember_for_fua(request, placement.superpage);
            if placement.new_slot {
                self.buffer.used_pages += 1;
            }
            if placement.full {
                self.program_superpage(placement.superpage);
            }
        }
        true
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
        let geometry = self.ftl.geometry;
        let page = crate::LOGICAL_PAGE_BYTES;
        let padding = (u64::from(geometry.slots) - filled) * page;
        self.flash_counters.bytes_programmed.0 += u64::from(geometry.slots) * page;
        self.flash_counters.padding_bytes.0 += padding;
        if stream == Stream::Gc {
            self.flash_counters.gc_bytes_moved.0 += filled * page;
        }
        for n in 0..geometry.dies_per_unit {
            let die = geometry.die_in_unit(unit, n);
            let (owner, bytes) = (Owner::Superpage { superpage }, geometry.program_bytes_per_die);
            let op = self.flash.prepare(FlashOp::new(FlashOpKind::Program, owner, die, bytes));
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
        const ZEROS: [u8; crate::LOGICAL_PAGE_BYTES as usize] = [0; crate::LOGICAL_PAGE_BYTES as usize];
        for span in range.spans().filter(|span| !span.is_whole()) {
            if let Some(slot) = self.slot_of(span.logical_page) {
                self.payload.write(slot, span.from, &ZEROS[..span.len()]);
            }
        }
    }
}
