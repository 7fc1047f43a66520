//! Writes to a drive whose FTL hands out steps, as those that map blocks do: the steps as flash commands.
//!
//! There is no write buffer: a write completes when its pages are on flash, behind the merges that they cause, and a
//! flush has nothing to wait for; unless there is a write cache ([`super::write_cache`]), whose pages come here when
//! they leave it.
//!
//! A block that is worn out is set aside at its erase, until none can be spared: then the drive is read-only.

use crate::device::SimulatedSsd;
use crate::flash::{FlashOp, FlashOpKind, OpClass, Owner};
use crate::ftl::{AnyFtl, Step};
use crate::pages::PageSpan;

impl SimulatedSsd {
    /// Writes every page of a request; partial pages are read already.
    pub(crate) fn write_by_steps(&mut self, request: u32) {
        if self.is_read_only() {
            return self.refuse(request);
        }
        let Some(range) = self.host.range_of(request) else { return };
        // One more than the pages, so that nothing completes the request before the last page is on its way.
        self.host.active[request].pending = 1;
        for span in range.spans() {
            self.cache.forget_read(span.logical_page);
            if self.host.writes_zeroes(request) && self.is_settled_zeros(span) {
                continue;
            }
            self.host.active[request].pending += 1;
            self.host.active[request].flash_begins(self.clock.now_ns);
            let owner = Owner::InPlace { request };
            self.write_page_by_steps(span.logical_page, owner, |ssd, slot, old| {
                ssd.store_at(request, slot, span, old);
            });
        }
        self.one_less_pending(request);
    }

    /// Writes one page, whose program belongs to `owner`; `store` brings the content to its slot, and is told of the
    /// slot of the old version.
    pub(crate) fn write_page_by_steps(
        &mut self,
        logical_page: u32,
        owner: Owner,
        store: impl FnOnce(&mut Self, u32, Option<u32>),
    ) {
        let mut steps = std::mem::take(&mut self.ftl.steps);
        let (mut old, mut store) = (self.ftl.slot_of(logical_page), Some(store));
        steps.clear();
        if let AnyFtl::Steps(ftl) = &mut self.ftl.kind {
            ftl.write(logical_page, &mut steps);
        }
        for &step in &steps {
            self.issue_step(owner, step);
            match (step, store.take()) {
                (Step::Program { slot }, Some(store)) => store(self, slot, old),
                (Step::Copy { from, to }, kept) => {
                    // A merge may move the old version before the new one is written.
                    old = if old == Some(from) { Some(to) } else { old };
                    store = kept;
                }
                (_, kept) => store = kept,
            }
        }
        self.ftl.steps = steps;
    }

    /// A page has been programmed: where blocks have worn out that cannot be spared, the drive takes no other one. Not
    /// while the page is placed, which happens in the midst of the writes that wait.
    pub(crate) fn end_life_if_worn_out(&mut self) {
        let is_worn_out = matches!(&self.ftl.kind, AnyFtl::Steps(ftl) if ftl.is_worn_out());
        if is_worn_out && !self.is_read_only() {
            self.become_read_only();
        }
    }

    /// Brings a page's content to its new slot: the old version, and over it what the host wrote.
    pub(crate) fn store_at(&mut self, request: u32, slot: u32, span: PageSpan, old: Option<u32>) {
        self.flash.payload.discard(slot);
        match old {
            Some(old) if span.is_whole() => self.flash.payload.discard(old),
            Some(old) => self.flash.payload.relocate(old, slot),
            None => {}
        }
        if let Some(r) = &self.host.active[request].request {
            self.flash.payload.store(slot, span, r);
        }
    }

    /// Issues the flash commands of a step.
    fn issue_step(&mut self, owner: Owner, step: Step) {
        let page = self.page.bytes();
        match step {
            Step::Copy { from, to } => {
                self.flash.counters.bytes_read.0 += page;
                self.flash.counters.gc_bytes_moved.0 += page;
                self.flash.counters.gc_pages_moved += 1;
                self.flash.counters.bytes_programmed.0 += page;
                self.flash.payload.relocate(from, to);
                self.issue_at(FlashOpKind::Read, Owner::None, OpClass::GcRead, from, page as u32);
                self.issue_at(FlashOpKind::Program, Owner::None, OpClass::GcProgram, to, page as u32);
            }
            Step::Program { slot } => {
                self.flash.counters.bytes_programmed.0 += page;
                self.issue_at(FlashOpKind::Program, owner, OpClass::HostProgram, slot, page as u32);
            }
            Step::Erase { block } => {
                self.flash.counters.erases += 1;
                self.flash.counters.gc_runs += 1;
                let first = self.ftl.pages.geometry.first_slot(block, 0);
                self.issue_at(FlashOpKind::Erase, Owner::None, OpClass::Erase, first, 0);
            }
        }
    }

    fn issue_at(&mut self, kind: FlashOpKind, owner: Owner, class: OpClass, slot: u32, bytes: u32) {
        let op = FlashOp::new(kind, owner, self.ftl.pages.geometry.address_of(slot), bytes).of_class(class);
        let op = self.flash.array.prepare(op);
        self.flash.issue(op, &mut self.clock);
    }
}
