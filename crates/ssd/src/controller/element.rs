//! Requests to a drive of elements: over its link as a whole, and page by page to their elements.
//!
//! Who has the link is kept by [`crate::host::WholeRequestLink`].

use crate::device::SimulatedSsd;
use crate::event::Event;
use crate::ftl::AnyFtl;
use crate::ftl::element::Effects;
use crate::pages::PageSpan;

impl SimulatedSsd {
    /// A read or write has come.
    pub(crate) fn element_command(&mut self, request: u32) {
        self.host.link.commands.push(&mut self.host.active, request);
        self.serve_link();
    }

    /// The elements have done a request.
    pub(crate) fn elements_done(&mut self, request: u32) {
        self.host.link.done.push(&mut self.host.active, request);
        self.serve_link();
    }

    /// A request's data has crossed the link.
    pub(crate) fn link_free(&mut self, request: u32) {
        self.host.link.is_busy = false;
        if self.host.is_read(request) {
            self.complete(request);
        } else {
            self.hand_over(request);
        }
        self.serve_link();
    }

    /// Gives the link to whose turn it is, as long as it is free.
    fn serve_link(&mut self) {
        while !self.host.link.is_busy {
            if let Some(request) = self.host.link.done.pop(&mut self.host.active) {
                if self.host.is_read(request) { self.occupy_link(request) } else { self.complete(request) }
            } else if let Some(request) = self.host.link.commands.pop(&mut self.host.active) {
                if self.host.is_read(request) { self.hand_over(request) } else { self.occupy_link(request) }
            } else {
                return;
            }
        }
    }

    /// The pages of a write go to their elements when its data has crossed the link: what is known of their old copies,
    /// anywhere in tables of several MB, is on its way to the processor meanwhile.
    fn prefetch_element_write(&self, request: u32) {
        if let (Some(range), AnyFtl::Elements(elements)) = (self.host.range_of(request), &self.ftl.kind) {
            range.spans().for_each(|span| elements.prefetch_old_copy(span.logical_page));
        }
    }

    /// Hands all pages of a request to their elements.
    fn hand_over(&mut self, request: u32) {
        let Some(range) = self.host.range_of(request) else { return };
        let is_read = self.host.is_read(request);
        self.host.active[request].flash_begins(self.clock.now_ns);
        let mut end_ns = self.clock.now_ns;
        for span in range.spans() {
            let page_end_ns = if is_read { Some(self.read_element(span)) } else { self.write_element(request, span) };
            self.host.active[request].is_refused |= page_end_ns.is_none();
            end_ns = end_ns.max(page_end_ns.unwrap_or(0));
        }
        if is_read {
            self.fill_buffer(request, range);
        }
        self.clock.schedule(end_ns, Event::ElementsDone { request });
    }

    fn read_element(&mut self, span: PageSpan) -> u64 {
        let AnyFtl::Elements(elements) = &mut self.ftl.kind else { return self.clock.now_ns };
        let (payload, counters) = (&mut self.flash.payload, &mut self.flash.counters);
        let mut effects = Effects { payload, counters, statistics: self.flash.array.statistics_mut() };
        let end_ns = elements.read(span.logical_page, self.clock.now_ns, &mut effects);
        match elements.slot_of(span.logical_page) {
            Some(_) => self.flash.counters.bytes_read.0 += self.page.bytes(),
            None => self.flash.counters.unwritten_pages_read += 1,
        }
        end_ns
    }

    fn write_element(&mut self, request: u32, span: PageSpan) -> Option<u64> {
        let AnyFtl::Elements(elements) = &mut self.ftl.kind else { return None };
        let (payload, counters) = (&mut self.flash.payload, &mut self.flash.counters);
        let mut effects = Effects { payload, counters, statistics: self.flash.array.statistics_mut() };
        let (end_ns, slot, old) = elements.write(span.logical_page, self.clock.now_ns, &mut effects)?;
        self.store_at(request, slot, span, old);
        Some(end_ns)
    }

    fn occupy_link(&mut self, request: u32) {
        self.host.occupy_link(request, &mut self.clock);
        if !self.host.is_read(request) {
            self.prefetch_element_write(request);
        }
    }
}
