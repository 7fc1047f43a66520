//! Power cuts: what becomes durable when, and the drive by default up again ([`crate::power`]).

use flashwise_block::BlockError;

use crate::device::SimulatedSsd;
use crate::error::SsdError;
use crate::ftl::Location;
use crate::pages::PageSpan;

impl SimulatedSsd {
    /// Makes power cuts possible from now on; costs memory for a second copy of what the drive carries.
    ///
    /// # Errors
    /// When something is outstanding or not flushed yet.
    pub fn allow_power_cuts(&mut self) -> Result<(), SsdError> {
        let is_flushed = self.ftl.pages.host_superpages().is_empty()
            && self.cache.write.as_ref().is_none_or(|cache| cache.is_empty());
        let settled = self.is_idle() && (is_flushed || !self.has_volatile_memory());
        if !settled {
            let reason = "some written data is not on flash yet; flush first".to_owned();
            return Err(SsdError::Precondition { state: "power cuts", reason });
        }
        self.power.allow(&self.config, &self.ftl, &self.flash.payload);
        Ok(())
    }

    /// A part of a logical page became zeros where it is; durable if the page is on flash as it was.
    pub(crate) fn zeros_are_durable(&mut self, span: PageSpan) {
        // What is on its way to flash takes the zeros there with it.
        let is_programming =
            |ssd: &mut Self| ssd.cache.write.as_mut().is_some_and(|cache| cache.zero_programming(span));
        if self.power.may_be_cut() && !is_programming(self) && self.cache.is_on_flash(span.logical_page, &self.ftl) {
            self.power.page_is_durable(span.logical_page, &self.ftl, &self.flash.payload);
        }
    }

    /// Cuts the power and brings the drive up again. Requests in flight are lost without a completion; every page is
    /// what it was when it became durable last. The clock continues to the end of what was in progress.
    ///
    /// # Errors
    /// When power cuts were not allowed before ([`SimulatedSsd::allow_power_cuts`]).
    pub fn power_cut(&mut self) -> Result<(), BlockError> {
        if !self.power.may_be_cut() {
            return Err(BlockError::Protocol("power cuts are not enabled on this drive"));
        }
        self.power.set_power(false);
        self.drop_requests();
        if let Some(cache) = &mut self.cache.write {
            cache.forget_programming(None);
        }
        if self.has_volatile_memory() {
            for page in 0..self.config.logical_pages() as u32 {
                // Most pages of a large drive are like that, and all that there is to do for them is to find out.
                let is_cached = self.cache.write.as_ref().is_some_and(|cache| cache.entry_of(page).is_some());
                if self.power.knows(page) || is_cached || self.ftl.slot_of(page).is_some() {
                    self.restore_page(page);
                }
            }
        }
        self.power.set_power(true);
        self.power.forget_superseded(&self.ftl);
        Ok(())
    }

    /// Brings a page back to its durable version.
    fn restore_page(&mut self, logical_page: u32) {
        self.drop_cached(logical_page);
        self.cache.forget_read(logical_page);
        if !self.power.knows(logical_page) {
            return self.deallocate(logical_page);
        }
        let content = self.power.content_of(logical_page);
        match self.ftl.locate(logical_page) {
            Location::Buffer(slot) | Location::Flash(slot) => self.flash.payload.put(slot, content),
            Location::Nowhere => debug_assert!(false, "page {logical_page} is durable and nowhere"),
        }
    }
}
