//! A drive of elements: one link for commands' data, whole requests over it, and the elements behind it.
//!
//! ```text
//!   write   waits for the link ─▶ all of its data crosses ─▶ its pages go to their elements ─▶ completes
//!   read    its pages go to their elements ─▶ waits for the link ─▶ all of its data crosses ─▶ completes
//! ```
//!
//! The link carries one request at a time. When it becomes free, requests that the elements have done go first, in their
//! order; then the next command is taken, reads without any time on the link. So a read behind a write's transfer waits
//! for it. There is no buffer: a write completes when its last page is programmed, and a flush has nothing to wait for.
//!
//! Source: the SSD model of DiskSim 4.0 (see [`crate::ftl::element`]).

use flashwise_block::Operation;

use crate::controller::PageSpan;
use crate::device::SimulatedSsd;
use crate::event::Event;
use crate::ftl::element::Effects;
use crate::list::Fifo;
use crate::state::AtRest;

/// Who has the link and who waits for it.
#[derive(Default)]
pub(crate) struct WholeRequestLink {
    /// A request's data crosses.
    is_busy: bool,
    /// Commands that nothing was done for yet.
    commands: Fifo,
    /// Requests that the elements have done.
    done: Fifo,
}

impl SimulatedSsd {
    /// A read or write has come.
    pub(crate) fn element_command(&mut self, request: u32) {
        self.link.commands.push(&mut self.active, request);
        self.serve_link();
    }

    /// The elements have done a request.
    pub(crate) fn elements_done(&mut self, request: u32) {
        self.link.done.push(&mut self.active, request);
        self.serve_link();
    }

    /// A request's data has crossed the link.
    pub(crate) fn link_free(&mut self, request: u32) {
        self.link.is_busy = false;
        if self.is_read(request) {
            self.complete(request);
        } else {
            self.hand_over(request);
        }
        self.serve_link();
    }

    fn is_read(&self, request: u32) -> bool {
        self.active[request].request.as_ref().is_some_and(|r| r.operation == Operation::Read)
    }

    /// Gives the link to whose turn it is, as long as it is free.
    fn serve_link(&mut self) {
        while !self.link.is_busy {
            if let Some(request) = self.link.done.pop(&mut self.active) {
                if self.is_read(request) { self.occupy_link(request) } else { self.complete(request) }
            } else if let Some(request) = self.link.commands.pop(&mut self.active) {
                if self.is_read(request) { self.hand_over(request) } else { self.occupy_link(request) }
            } else {
                return;
            }
        }
    }

    fn occupy_link(&mut self, request: u32) {
        self.link.is_busy = true;
        let with_data = self.active[request].request.as_ref().filter(|r| r.operation != Operation::WriteZeroes);
        let bytes = with_data.map_or(0, |r| r.length.bytes());
        self.events.schedule(self.now_ns + self.host.link_ns(bytes), Event::LinkFree { request });
        if !self.is_read(request) {
            self.expect_element_write(request);
        }
    }

    /// The pages of a write go to their elements when its data has crossed the link: what is known of their old copies,
    /// anywhere in tables of several MB, is on its way to the processor meanwhile.
    fn expect_element_write(&self, request: u32) {
        if let (Some(range), Some(elements)) = (self.range_of(request), &self.elements) {
            range.spans().for_each(|span| elements.expect_old_copy(span.logical_page));
        }
    }

    /// Hands all pages of a request to their elements.
    fn hand_over(&mut self, request: u32) {
        let Some(range) = self.range_of(request) else { return };
        let is_read = self.is_read(request);
        self.active[request].flash_begins(self.now_ns);
        let mut end_ns = self.now_ns;
        for span in range.spans() {
            let page_end_ns = if is_read { Some(self.read_element(span)) } else { self.write_element(request, span) };
            self.active[request].is_refused |= page_end_ns.is_none();
            end_ns = end_ns.max(page_end_ns.unwrap_or(0));
        }
        if is_read {
            self.fill_buffer(request, range);
        }
        self.events.schedule(end_ns, Event::ElementsDone { request });
    }

    fn read_element(&mut self, span: PageSpan) -> u64 {
        let Some(elements) = self.elements.as_mut() else { return self.now_ns };
        let (payload, counters) = (&mut self.payload, &mut self.flash_counters);
        let mut effects = Effects { payload, counters, statistics: self.flash.statistics_mut() };
        let end_ns = elements.read(span.logical_page, self.now_ns, &mut effects);
        match elements.slot_of(span.logical_page) {
            Some(_) => self.flash_counters.bytes_read.0 += self.page.bytes(),
            None => self.flash_counters.unwritten_pages_read += 1,
        }
        end_ns
    }

    fn write_element(&mut self, request: u32, span: PageSpan) -> Option<u64> {
        let elements = self.elements.as_mut()?;
        let (payload, counters) = (&mut self.payload, &mut self.flash_counters);
        let mut effects = Effects { payload, counters, statistics: self.flash.statistics_mut() };
        let (end_ns, slot, old) = elements.write(span.logical_page, self.now_ns, &mut effects)?;
        self.store_at(request, slot, span, old);
        Some(end_ns)
    }
}

impl AtRest for WholeRequestLink {
    fn is_at_rest(&self) -> bool {
        !self.is_busy && self.commands.is_at_rest() && self.done.is_at_rest()
    }
}
