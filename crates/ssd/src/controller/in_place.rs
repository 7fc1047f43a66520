//! Media that are written in place, such as 3D XPoint: no erase, no mapping, no garbage collection.
//!
//! Where pages stand says [`crate::ftl::in_place`]. A write programs the granules that it covers, one after
//! the other, directly in their place; where it covers a granule only in part, the page is read first. There is no
//! volatile buffer: a write completes when the medium has it, and a flush has nothing to wait for.
//!
//! Where the medium has a limit (`flash.endurance`), writes to each page are counted
//! ([`InPlaceWear`](crate::ftl::wear::InPlaceWear)).

use crate::device::SimulatedSsd;
use crate::flash::{FlashOp, FlashOpKind, Owner};
use crate::pages::PageSpan;

/// Granules that a span touches, and whether it covers all of them wholly.
fn granules(span: PageSpan, granule: usize) -> (u32, bool) {
    let count = span.to.div_ceil(granule) - span.from / granule;
    (count as u32, span.from.is_multiple_of(granule) && span.to.is_multiple_of(granule))
}

impl SimulatedSsd {
    /// Takes a write's data and, where granules are covered in part only, reads their pages.
    pub(crate) fn start_write_in_place(&mut self, request: u32) {
        if self.is_read_only() {
            return self.refuse(request);
        }
        let Some(range) = self.host.range_of(request) else { return };
        let granule = self.config.flash.write_granule_bytes as usize;
        let page_bytes = self.page.bytes() as u32;
        for span in range.spans() {
            self.cache.forget_read(span.logical_page);
            if self.host.writes_zeroes(request) && self.is_settled_zeros(span) {
                continue;
            }
            if let Some(r) = &self.host.active[request].request {
                self.flash.payload.store(span.logical_page, span, r);
            }
            if !granules(span, granule).1 {
                self.read_for_fill(request, span.logical_page, page_bytes);
            }
        }
        if self.host.active[request].pending == 0 {
            self.program_in_place(request);
        }
    }

    /// Programs every granule that a write touches.
    pub(crate) fn program_in_place(&mut self, request: u32) {
        let Some(range) = self.host.range_of(request) else { return };
        let granule = self.config.flash.write_granule_bytes;
        // One more than the pages, so that nothing completes the request before the last page is on its way.
        self.host.active[request].pending = 1;
        for span in range.spans() {
            if self.host.writes_zeroes(request) && span.is_whole() {
                continue;
            }
            self.host.active[request].pending += 1;
            let (steps, _) = granules(span, granule as usize);
            let bytes = steps * granule as u32;
            debug_assert!(u64::from(bytes) <= self.page.bytes());
            self.flash.counters.bytes_programmed.0 += u64::from(bytes);
            self.flash.counters.padding_bytes.0 += u64::from(bytes) - span.len() as u64;
            let at = self.ftl.address_of(span.logical_page);
            let mut op = FlashOp::new(FlashOpKind::Program, Owner::InPlace { request }, at, bytes);
            op.array_steps = steps;
            let op = self.flash.array.prepare(op);
            self.host.active[request].flash_begins(self.clock.now_ns);
            self.flash.issue(op, &mut self.clock);
            if self.collector.in_place_wear.as_mut().is_some_and(|wear| wear.written(span.logical_page))
                && !self.collector.read_only
            {
                self.become_read_only();
            }
        }
        self.one_less_pending(request);
    }
}

#[cfg(test)]
mod tests {
    use flashwise_block::{ByteSize, Request};

    use super::*;
    use crate::pages::{ByteRange, PageSize};

    #[test]
    fn granules_are_counted_as_touched_and_known_as_covered() {
        let range = |from, to| ByteRange::of(&Request::write(ByteSize(from), ByteSize(to - from)), PageSize::new(4096));
        let span = |from, to| range(from, to).span(0);
        assert_eq!(granules(span(0, 1024), 1024), (1, true));
        assert_eq!(granules(span(0, 512), 1024), (1, false));
        assert_eq!(granules(span(512, 2560), 1024), (3, false));
        assert_eq!(granules(span(0, 4096), 1024), (4, true));
    }
}
