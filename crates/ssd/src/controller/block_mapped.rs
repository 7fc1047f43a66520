//! Writes to a drive whose FTL maps blocks: the FTL's steps as flash commands.
//!
//! There is no write buffer: a write completes when its pages are on flash, behind the merges that they cause. A flush
//! therefore has nothing to wait for. With a write cache (`controller.write_cache`) a write completes when its pages are
//! there. A page that leaves the cache takes room in the write buffer until its program has ended, which bounds how many
//! merges are under way.

use flashwise_block::Operation;

use crate::controller::PageSpan;
use crate::device::SimulatedSsd;
use crate::flash::{FlashOp, FlashOpKind, OpClass, Owner};
use crate::ftl::blocks::Step;

impl SimulatedSsd {
    /// Writes every page of a request; partial pages are read already.
    pub(crate) fn write_block_mapped(&mut self, request: u32) {
        let Some(range) = self.range_of(request) else { return };
        let mut steps = std::mem::take(&mut self.scratch_steps);
        let dram_ns = self.dram.access(self.now_ns, self.bytes_sent(request));
        // One more than the pages, so that nothing completes the request before the last page is on its way.
        let active = &mut self.active[request];
        (active.pending, active.finish_ns) = (1, active.finish_ns.max(dram_ns));
        for span in range.spans() {
            self.forget_read(span.logical_page);
            if self.writes_zeroes(request) && self.is_settled_zeros(span) {
                continue;
            }
            let mut old = self.slot_of(span.logical_page);
            steps.clear();
            let Some(ftl) = &mut self.blocks else { break };
            ftl.write(span.logical_page, &mut steps);
            for &step in &steps {
                if let Step::Program { .. } = step {
                    self.active[request].pending += 1;
                    self.active[request].flash_begins(self.now_ns);
                }
                self.issue_step(step, Owner::InPlace { request });
                match step {
                    // A merge may move the old version before the new one is written.
                    Step::Copy { from, to } if old == Some(from) => old = Some(to),
                    Step::Program { slot } => self.store_at(request, slot, span, old),
                    _ => {}
                }
            }
        }
        self.scratch_steps = steps;
        self.one_less_pending(request);
    }

    /// Bytes that a write brings with it: none where it writes zeros.
    pub(crate) fn bytes_sent(&self, request: u32) -> u64 {
        let write = self.active[request].request.as_ref().filter(|r| r.operation == Operation::Write);
        write.map_or(0, |r| r.length.bytes())
    }

    /// Writes a page that leaves the write cache, with its content. The end of its program is `owner`'s.
    pub(crate) fn write_cached_page(&mut self, logical_page: u32, mut content: Option<Box<[u8]>>, owner: Owner) {
        let mut steps = std::mem::take(&mut self.scratch_steps);
        steps.clear();
        if let Some(old) = self.slot_of(logical_page) {
            self.payload.discard(old);
        }
        if let Some(ftl) = &mut self.blocks {
            ftl.write(logical_page, &mut steps);
        }
        for &step in &steps {
            self.issue_step(step, owner);
            if let Step::Program { slot } = step {
                self.payload.put(slot, content.take());
            }
        }
        self.scratch_steps = steps;
    }

    /// Brings a page's content to its new slot: the old version, and over it what the host wrote.
    pub(crate) fn store_at(&mut self, request: u32, slot: u32, span: PageSpan, old: Option<u32>) {
        self.payload.discard(slot);
        match old {
            Some(old) if span.is_whole() => self.payload.discard(old),
            Some(old) => self.payload.relocate(old, slot),
            None => {}
        }
        if let Some(r) = &self.active[request].request {
            self.payload.store(slot, span, r);
        }
    }

    /// Issues the flash commands of a step; the end of the host's program is `owner`'s.
    fn issue_step(&mut self, step: Step, owner: Owner) {
        let page = self.page.bytes();
        match step {
            Step::Copy { from, to } => {
                self.flash_counters.bytes_read.0 += page;
                self.flash_counters.gc_bytes_moved.0 += page;
                self.flash_counters.gc_pages_moved += 1;
                self.flash_counters.bytes_programmed.0 += page;
                self.payload.relocate(from, to);
                self.issue_at(FlashOpKind::Read, Owner::None, OpClass::GcRead, from, page as u32);
                self.issue_at(FlashOpKind::Program, Owner::None, OpClass::GcProgram, to, page as u32);
            }
            Step::Program { slot } => {
                self.flash_counters.bytes_programmed.0 += page;
                self.issue_at(FlashOpKind::Program, owner, OpClass::HostProgram, slot, page as u32);
            }
            Step::Erase { block } => {
                self.flash_counters.erases += 1;
                self.flash_counters.gc_runs += 1;
                let first = self.ftl.geometry.first_slot(block, 0);
                self.issue_at(FlashOpKind::Erase, Owner::None, OpClass::Erase, first, 0);
            }
        }
    }

    fn issue_at(&mut self, kind: FlashOpKind, owner: Owner, class: OpClass, slot: u32, bytes: u32) {
        let op = FlashOp::new(kind, owner, self.ftl.geometry.address_of(slot), bytes).of_class(class);
        let op = self.flash.prepare(op);
        self.flash.issue(op, self.now_ns, &mut self.events);
    }
}
