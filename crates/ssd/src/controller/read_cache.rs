//! What reads leave in the read cache ([`crate::cache::ReadCache`]), and what writes take out of it.

use crate::device::SimulatedSsd;
use crate::pages::PageSpan;

impl SimulatedSsd {
    /// A page changes: what was read of it is old.
    #[inline]
    pub(crate) fn forget_read(&mut self, logical_page: u32) {
        if let Some(cache) = &mut self.cache.read {
            cache.forget(logical_page);
        }
    }

    /// A read has ended: what it had from flash stays in the cache.
    pub(crate) fn keep_read_pages(&mut self, request: u32) {
        let Some(range) = self.host.range_of(request) else { return };
        for span in range.spans() {
            self.keep_read_page(span);
        }
    }

    fn keep_read_page(&mut self, span: PageSpan) {
        if !self.is_on_flash(span.logical_page) {
            return;
        }
        let unit = self.config.flash.transfer_unit_bytes as usize;
        let (from, to) = (span.from / unit * unit, span.to.next_multiple_of(unit));
        let covered = self.ftl.sectors.covered(span.part(from, to));
        if let Some(cache) = self.cache.read.as_mut().filter(|_| covered != 0) {
            cache.insert(span.logical_page, covered);
        }
    }
}
