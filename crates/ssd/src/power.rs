//! Power cuts: what a drive still knows when it comes up again.
//!
//! ```text
//!   write cache ─▶ write buffer ─▶ program ends ─▶ durable state: the content of each logical page, as programmed last
//!   power cut:  requests that wait are lost · what was under way ends unanswered · every page is as in the durable state
//! ```
//!
//! A page is durable when the program command of its superpage has ended. A cut loses everything newer: the page is what
//! it was when it was programmed last, or zeros. Pages are never mixed: each is one version of itself as a whole. A trim
//! is durable when it is done. With power-loss protection what is in the cache and in the buffer is durable too, and so
//! are, without any protection, writes on media and mappings without a buffer.
//!
//! The durable state is kept beside the FTL, by logical page, and only for drives that ask for it. The older version of
//! a page survives there also when garbage collection has erased it since, while the newer one was still in the buffer:
//! a drive does not erase the last durable copy of a page, and what holding it back would cost is not simulated.

use flashwise_block::BlockError;

use crate::config::Mapping;
use crate::controller::PageSpan;
use crate::device::SimulatedSsd;
use crate::error::SsdError;
use crate::ftl::Location;
use crate::payload::Payload;

/// What every logical page would be after a power cut.
pub(crate) struct DurableState {
    /// Whether the page is known at all.
    known: Vec<bool>,
    /// Contents, by logical page.
    contents: Payload,
    /// The power is off: nothing becomes durable.
    is_off: bool,
}

impl SimulatedSsd {
    /// Makes power cuts possible from now on; costs memory for a second copy of what the drive carries.
    ///
    /// # Errors
    /// When something is outstanding or not flushed yet.
    pub fn allow_power_cuts(&mut self) -> Result<(), SsdError> {
        let settled = self.is_idle() && self.ftl.host_superpages().is_empty() && self.cache_is_empty();
        if !settled {
            let reason = "not all that was written is on flash; flush first".to_owned();
            return Err(SsdError::Precondition { state: "power cuts", reason });
        }
        let pages = self.config.logical_pages() as u32;
        let known = vec![false; pages as usize];
        let contents = Payload::new(self.page.bytes());
        self.durable = Some(Box::new(DurableState { known, contents, is_off: false }));
        (0..pages).for_each(|page| self.page_is_durable(page));
        Ok(())
    }

    fn cache_is_empty(&self) -> bool {
        self.write_cache.as_ref().is_none_or(|cache| cache.is_empty())
    }

    /// A logical page is durable as it is now.
    fn page_is_durable(&mut self, logical_page: u32) {
        let slot = self.slot_of(logical_page);
        let Some(durable) = &mut self.durable else { return };
        let Some(known) = durable.known.get_mut(logical_page as usize) else { return };
        if durable.is_off {
            return;
        }
        *known = slot.is_some();
        let content = slot.and_then(|slot| self.payload.copy_of(slot));
        durable.contents.put(logical_page, content);
    }

    /// A superpage is on flash, and with it what is valid in it.
    pub(crate) fn row_is_durable(&mut self, block: u32, row: u32) {
        let first = self.ftl.geometry.first_slot(block, row);
        for slot in first..first + self.ftl.geometry.slots {
            let Some(logical_page) = self.ftl.page_in(slot) else { continue };
            let content = self.payload.copy_of(slot);
            let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_off) else { return };
            // Translation pages stand behind the host's pages and carry nothing.
            if let Some(known) = durable.known.get_mut(logical_page as usize) {
                *known = true;
                durable.contents.put(logical_page, content);
            }
        }
    }

    /// A logical page is forgotten for good.
    pub(crate) fn trim_is_durable(&mut self, logical_page: u32) {
        let Some(durable) = &mut self.durable else { return };
        durable.known[logical_page as usize] = false;
        durable.contents.discard(logical_page);
    }

    /// A part of a logical page became zeros where it is; durable if the page is on flash as it was.
    pub(crate) fn zeros_are_durable(&mut self, span: PageSpan) {
        if self.durable.is_some() && self.is_on_flash(span.logical_page) {
            self.page_is_durable(span.logical_page);
        }
    }

    /// Cuts the power and brings the drive up again. Requests that were outstanding are gone without an answer; every
    /// page is what it was when it became durable last. The clock goes on to the end of what was under way.
    ///
    /// # Errors
    /// When power cuts were not allowed before ([`SimulatedSsd::allow_power_cuts`]).
    pub fn power_cut(&mut self) -> Result<(), BlockError> {
        if self.durable.is_none() {
            return Err(BlockError::Protocol("power cuts were not allowed on this drive"));
        }
        self.set_power(false);
        self.drop_requests();
        let has_volatile_buffer = self.config.ftl.mapping == Mapping::Page;
        if has_volatile_buffer && !self.config.controller.power_loss_protection {
            (0..self.config.logical_pages() as u32).for_each(|page| self.restore_page(page));
        }
        self.set_power(true);
        Ok(())
    }

    fn set_power(&mut self, on: bool) {
        if let Some(durable) = &mut self.durable {
            durable.is_off = !on;
        }
    }

    /// Brings a page back to its durable version.
    fn restore_page(&mut self, logical_page: u32) {
        self.drop_cached(logical_page);
        self.forget_read(logical_page);
        let Some(durable) = &self.durable else { return };
        if !durable.known[logical_page as usize] {
            return self.deallocate(logical_page);
        }
        let content = durable.contents.copy_of(logical_page);
        match self.locate(logical_page) {
            Location::Buffer(slot) | Location::Flash(slot) => self.payload.put(slot, content),
            Location::Nowhere => debug_assert!(false, "page {logical_page} is durable and nowhere"),
        }
    }
}
