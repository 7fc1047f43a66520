//! Reads: from the write cache or the write buffer where the data still is, from the read cache, from flash otherwise.
//!
//! All pages of one row on one die are sensed by one command (a multi-plane read), and what is asked of them goes over
//! the channel in multiples of the transfer unit. The firmware issues the commands of one run, that is of successive
//! commands to one channel, together, and the next run `dispatch_ns` later.

use crate::cache::AtOnce;
use crate::config::{DataTransfer, UnwrittenReads};
use crate::device::SimulatedSsd;
use crate::event::Event;
use crate::flash::{Finished, FlashAddress, Owner, RowRead};
use crate::ftl::Location;
use crate::pages::{ByteRange, PageSpan};

impl SimulatedSsd {
    /// Takes a read apart and issues its first flash commands.
    /// `is_alone` tells that nothing else happens in the same event.
    #[inline(always)]
    pub(crate) fn start_read(&mut self, request: u32, is_alone: bool) {
        let Some(range) = self.host.range_of(request) else { return };
        if self.cache.is_passed_by_reads && range.pages() == 1 && !self.host.active[request].carries_bytes() {
            let span = range.span(0);
            if let Some(at) = self.only_on_flash(span) {
                return self.start_page_read(request, span, at, is_alone);
            }
        }
        self.start_any_read(request, range, is_alone);
    }

    /// Where a page is read that is nowhere but on flash; `None` where it is in the buffer, or nobody has written it
    /// and that needs no flash.
    #[inline(always)]
    fn only_on_flash(&mut self, span: PageSpan) -> Option<FlashAddress> {
        let slot = match self.ftl.pages.locate(span.logical_page) {
            Location::Flash(slot) => slot,
            Location::Nowhere if self.config.controller.unwritten_reads != UnwrittenReads::Zeros => {
                self.slot_of_unwritten(span)?
            }
            _ => return None,
        };
        Some(self.ftl.pages.geometry.address_of(slot))
    }

    /// Starts a read of one page, or of a part of it, as [`Self::start_any_read`] would: most reads are such.
    #[inline(always)]
    fn start_page_read(&mut self, request: u32, span: PageSpan, at: FlashAddress, is_alone: bool) {
        let bytes = self.bytes_on_channel(span);
        let op = self.flash.prepare_read(Owner::Read { request }, at, bytes);
        let active = &mut self.host.active[request];
        active.pending += 1;
        active.finish_ns = self.clock.now_ns;
        active.flash_begins(self.clock.now_ns);
        if is_alone { self.issue_only_host_read(op) } else { self.issue_host_read(op) }
    }

    #[inline(never)]
    fn start_any_read(&mut self, request: u32, range: ByteRange, is_alone: bool) {
        let mut at_once = AtOnce::default();
        self.flash.row_reads.clear();
        for span in range.spans() {
            self.read_page(request, span, &mut at_once);
        }
        if self.host.active[request].carries_bytes() {
            self.fill_buffer(request, range);
        }
        let ops = self.flash.row_reads.len() as u32;
        let dram_ns = self.cache.dram.access(self.clock.now_ns, at_once.dram_bytes);
        let finish_ns = match self.config.host.data_transfer {
            DataTransfer::WholeRequest => dram_ns,
            _ if at_once.bytes > 0 => self.host.interface.send(dram_ns, 0, at_once.bytes),
            _ => self.clock.now_ns,
        };
        let active = &mut self.host.active[request];
        active.pending += ops;
        active.finish_ns = finish_ns;
        match (active.pending, &self.flash.row_reads[..]) {
            (0, _) => self.read_ends(request),
            (_, []) => {}
            (_, &[RowRead { op, .. }]) => {
                active.flash_begins(self.clock.now_ns);
                if is_alone { self.issue_only_host_read(op) } else { self.issue_host_read(op) }
            }
            (_, reads) => {
                reads.iter().for_each(|read| active.to_dispatch.push(self.flash.array.prepared(), read.op));
                self.dispatch(request);
            }
        }
        if self.cache.ahead.is_some() {
            self.cache.read_ahead(range, self.page, &self.ftl, &mut self.flash, &mut self.clock);
        }
    }

    /// Finds the bytes of one page: in a cache, in the write buffer, or on flash.
    #[inline]
    fn read_page(&mut self, request: u32, span: PageSpan, at_once: &mut AtOnce) {
        let location = self.ftl.locate(span.logical_page);
        let from_flash = match self.cache.caches_reads() {
            true => self.cache.read_page(request, span, location, at_once, &self.ftl, &mut self.host),
            false => Some(span),
        };
        let Some(span) = from_flash else { return };
        let at = match location {
            Location::Flash(slot) if self.ftl.pages.has_extents() => return self.read_extent(request, slot, span),
            Location::Flash(slot) => self.ftl.address_of(slot),
            Location::Buffer(_) => return at_once.add_dram(span),
            Location::Nowhere => match self.slot_of_unwritten(span) {
                Some(slot) => self.ftl.pages.geometry.address_of(slot),
                None => return at_once.bytes += span.len() as u64,
            },
        };
        self.read_at(request, at, span);
    }

    /// The slot that is read for a page that were never written; `None` where it is zeros.
    #[inline(never)]
    fn slot_of_unwritten(&mut self, span: PageSpan) -> Option<u32> {
        self.flash.counters.unwritten_pages_read += 1;
        match self.config.controller.unwritten_reads {
            UnwrittenReads::Zeros => None,
            UnwrittenReads::Flash => Some(self.ftl.nominal_slot(span.logical_page)),
            UnwrittenReads::Allocate => {
                Some(self.allocate_unwritten(span).unwrap_or_else(|| self.ftl.nominal_slot(span.logical_page)))
            }
        }
    }

    /// Gives a page that were never written its place.
    fn allocate_unwritten(&mut self, span: PageSpan) -> Option<u32> {
        if self.ftl.pages.geometry.slots != 1 {
            return None;
        }
        let (slot, unit) = self.ftl.pages.place_on_flash(span.logical_page, self.flash.array.commands_of_die())?;
        let touched = self.ftl.sectors.touched(span);
        self.ftl.sectors.write(span.logical_page, touched, false);
        self.collect_if_needed(unit);
        Some(slot)
    }

    /// What of a page goes over the channel, in whole transfer units.
    #[inline(always)]
    fn bytes_on_channel(&self, span: PageSpan) -> u32 {
        let in_unit = self.config.flash.transfer_unit_bytes as usize - 1;
        (((span.to + in_unit) & !in_unit) - (span.from & !in_unit)) as u32
    }

    /// Adds a part of a page to the command that senses its row, or prepares that command.
    #[inline(always)]
    fn read_at(&mut self, request: u32, at: FlashAddress, span: PageSpan) {
        self.flash.read_bytes_at(request, at, self.bytes_on_channel(span));
    }

    /// Copies the data of a read that carries a buffer.
    pub(crate) fn fill_buffer(&mut self, request: u32, range: ByteRange) {
        let Some(mut buffer) = self.host.active[request].request.as_mut().and_then(|r| r.buffer.take()) else { return };
        for span in range.spans() {
            let part = &mut buffer[span.in_buffer..span.in_buffer + span.len()];
            if self.cache.write.as_ref().is_some_and(|cache| cache.read(span, part)) {
                continue;
            }
            match (self.ftl.slot_of(span.logical_page), &mut self.ftl.reduction) {
                (Some(slot), Some(reduction)) => reduction.read(&self.flash.payload, slot, span.from, part),
                (Some(slot), None) => self.flash.payload.read(slot, span.from, part),
                (None, _) => part.fill(0),
            }
        }
        if let Some(r) = self.host.active[request].request.as_mut() {
            r.buffer = Some(buffer);
        }
    }

    /// Issues the next run of a read's flash commands.
    pub(crate) fn dispatch(&mut self, request: u32) {
        let mut run_channel = None;
        self.host.active[request].flash_begins(self.clock.now_ns);
        while let Some(op) = self.host.active[request].to_dispatch.peek() {
            let channel = self.flash.array.channel_of(op);
            if *run_channel.get_or_insert(channel) != channel {
                let next_ns = self.clock.now_ns + self.config.controller.dispatch_ns;
                self.clock.schedule(next_ns, Event::Dispatch { request });
                return;
            }
            self.host.active[request].to_dispatch.pop(self.flash.array.prepared());
            self.issue_host_read(op);
        }
    }

    /// One flash command of a read has ended: its data goes over the link.
    #[inline(always)]
    pub(crate) fn read_op_finished(&mut self, request: u32, finished: &Finished) {
        if self.ftl.pages.has_extents() {
            return self.compressed_part_arrived(request);
        }
        self.read_part_arrived(request, finished.transfer_ns, u64::from(finished.transfer_bytes));
    }

    /// All of a read's data has left the flash.
    #[inline(always)]
    pub(crate) fn read_ends(&mut self, request: u32) {
        match self.cache.read {
            None => self.answer_read(request),
            Some(_) => self.keep_and_answer_read(request),
        }
    }

    #[inline(never)]
    fn keep_and_answer_read(&mut self, request: u32) {
        self.keep_read_pages(request);
        self.answer_read(request);
    }

    /// What was read goes to the host, by way of the DRAM where requests cross the link as a whole.
    #[inline(always)]
    fn answer_read(&mut self, request: u32) {
        let whole = self.config.host.data_transfer == DataTransfer::WholeRequest;
        if !whole || !self.host.waits_for_dram(request, &mut self.clock) {
            self.host.send_read(request, &mut self.clock);
        }
    }

    /// A part of what a read asks for has come in from the flash, over `transfer_ns` until now.
    #[inline]
    pub(crate) fn read_part_arrived(&mut self, request: u32, transfer_ns: u64, bytes: u64) {
        if self.host.read_part_arrived(request, transfer_ns, bytes, self.clock.now_ns) {
            self.read_ends(request);
        }
    }

    /// A read has ended: what it had from flash stays in the cache.
    pub(crate) fn keep_read_pages(&mut self, request: u32) {
        let Some(range) = self.host.range_of(request) else { return };
        for span in range.spans() {
            self.cache.keep_read_page(span, &self.ftl);
        }
    }

    /// A command that read ahead has ended.
    pub(crate) fn load_finished(&mut self, load: u32, transfer_ns: u64) {
        let (Some(ahead), Some(cache)) = (&mut self.cache.ahead, &mut self.cache.read) else { return };
        ahead.loads[load].entries.drain(..).for_each(|entry| cache.loaded(entry));
        let mut waiting = std::mem::take(&mut ahead.loads[load].waiting);
        waiting.drain(..).for_each(|(request, bytes)| self.read_part_arrived(request, transfer_ns, bytes));
        if let Some(ahead) = &mut self.cache.ahead {
            ahead.loads[load].waiting = waiting;
            ahead.loads.give_back(load);
        }
    }
}
