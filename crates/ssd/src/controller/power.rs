//! Power cuts: what becomes durable when, and the drive as it comes up again ([`crate::power`]).

use flashwise_block::BlockError;

use crate::device::SimulatedSsd;
use crate::error::SsdError;
use crate::ftl::Location;
use crate::pages::PageSpan;
use crate::payload::Payload;
use crate::power::{Copies, DurableState, Superseded};

impl SimulatedSsd {
    /// Makes power cuts possible from now on; costs memory for a second copy of what the drive carries.
    ///
    /// # Errors
    /// When something is outstanding or not flushed yet.
    pub fn allow_power_cuts(&mut self) -> Result<(), SsdError> {
        let is_flushed = self.ftl.pages.host_superpages().is_empty() && self.cache_is_empty();
        let settled = self.is_idle() && (is_flushed || !self.has_volatile_memory());
        if !settled {
            let reason = "not all that was written is on flash; flush first".to_owned();
            return Err(SsdError::Precondition { state: "power cuts", reason });
        }
        let pages = self.config.logical_pages() as u32;
        let known = vec![false; pages as usize];
        let contents = Payload::new(self.page.bytes());
        let (copies, superseded) = (Copies::default(), Superseded::default());
        self.durable = Some(Box::new(DurableState { known, contents, is_off: false, copies, superseded }));
        (0..pages).for_each(|page| self.page_is_durable(page));
        self.note_copies();
        Ok(())
    }

    /// All that is durable is on flash where it is.
    fn note_copies(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        let lost = durable.copies.lost;
        durable.copies = Copies { lost, ..Copies::default() };
        if !self.ftl.is_page_map() {
            return;
        }
        let known = durable.known.iter().zip(0..).filter(|&(&known, _)| known);
        for (slot, page) in known.filter_map(|(_, page)| Some((self.ftl.pages.slot_of(page)?, page))) {
            durable.copies.programmed(page, slot);
        }
    }

    /// Collection has moved a page.
    #[inline]
    pub(crate) fn page_is_moved(&mut self, page: u32, from: u32, to: u32) {
        if let Some(durable) = &mut self.durable {
            durable.copies.moved(page, from, to);
        }
    }

    /// A superblock is erased.
    #[inline]
    pub(crate) fn superblock_is_erased(&mut self, block: u32) {
        // Without power nothing is erased: the simulation only comes to rest.
        let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_off) else { return };
        let first = self.ftl.pages.geometry.first_slot(block, 0);
        let slots = first..first + self.ftl.pages.geometry.slots_per_superblock();
        slots.for_each(|slot| durable.copies.erased(slot, |page| self.ftl.pages.slot_of(page)));
    }

    /// Checks that nothing durable was erased while its only other copy was not on flash.
    pub(crate) fn check_copies(&self) -> Result<(), String> {
        match self.durable.as_ref().and_then(|durable| durable.copies.lost) {
            Some(page) => Err(format!("logical page {page} was erased before what was moved of it was on flash")),
            None => Ok(()),
        }
    }

    fn cache_is_empty(&self) -> bool {
        self.cache.write.as_ref().is_none_or(|cache| cache.is_empty())
    }

    /// A logical page is durable as it is now.
    fn page_is_durable(&mut self, logical_page: u32) {
        let slot = self.ftl.slot_of(logical_page);
        let Some(durable) = &mut self.durable else { return };
        let Some(known) = durable.known.get_mut(logical_page as usize) else { return };
        if durable.is_off {
            return;
        }
        *known = slot.is_some();
        durable.superseded.forget(logical_page);
        let content = slot.and_then(|slot| self.flash.payload.copy_of(slot));
        durable.contents.put(logical_page, content);
    }

    /// This version of a logical page is on flash, whatever the host has written since.
    pub(crate) fn version_is_durable(&mut self, logical_page: u32, content: Option<Box<[u8]>>) {
        let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_off) else { return };
        if let Some(known) = durable.known.get_mut(logical_page as usize) {
            *known = true;
            durable.contents.put(logical_page, content);
        }
    }

    /// A superpage is on flash, and with it what is valid in it.
    pub(crate) fn row_is_durable(&mut self, block: u32, row: u32) {
        let first = self.ftl.pages.geometry.first_slot(block, row);
        for slot in first..first + self.ftl.pages.geometry.slots {
            self.superseded_is_durable(slot);
            let Some(logical_page) = self.ftl.pages.page_in(slot) else { continue };
            let content = self.flash.payload.copy_of(slot);
            let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_off) else { return };
            // Translation pages stand behind the host's pages and carry nothing.
            if let Some(known) = durable.known.get_mut(logical_page as usize) {
                *known = true;
                durable.superseded.forget(logical_page);
                durable.copies.programmed(logical_page, slot);
                durable.contents.put(logical_page, content);
            }
        }
    }

    /// A slot is on flash; where its version of a page was replaced on the way, that one is durable nevertheless.
    fn superseded_is_durable(&mut self, slot: u32) {
        let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_off) else { return };
        let Some((page, content)) = durable.superseded.programmed(slot) else { return };
        if let Some(known) = durable.known.get_mut(page as usize) {
            *known = true;
            durable.contents.put(page, content);
        }
    }

    /// A version of a page that is in the write buffer is about to be replaced by another one.
    #[inline]
    pub(crate) fn page_is_superseded(&mut self, logical_page: u32, old: u32) {
        if self.durable.is_some() {
            self.keep_superseded(logical_page, old);
        }
    }

    #[cold]
    fn keep_superseded(&mut self, logical_page: u32, old: u32) {
        if !self.ftl.is_page_map() || !self.ftl.pages.is_in_buffer(old) {
            return;
        }
        let content = self.flash.payload.copy_of(old);
        if let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_off) {
            durable.superseded.add(logical_page, old, content);
        }
    }

    /// A logical page is forgotten for good.
    pub(crate) fn trim_is_durable(&mut self, logical_page: u32) {
        let Some(durable) = &mut self.durable else { return };
        durable.known[logical_page as usize] = false;
        durable.superseded.forget(logical_page);
        durable.contents.discard(logical_page);
        durable.copies.of_page.remove(&logical_page);
    }

    /// A part of a logical page became zeros where it is; durable if the page is on flash as it was.
    pub(crate) fn zeros_are_durable(&mut self, span: PageSpan) {
        // What is on its way to flash takes the zeros there with it.
        let is_programming =
            |ssd: &mut Self| ssd.cache.write.as_mut().is_some_and(|cache| cache.zero_programming(span));
        if self.durable.is_some() && !is_programming(self) && self.is_on_flash(span.logical_page) {
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
        self.forget_programming(None);
        if self.has_volatile_memory() {
            for page in 0..self.config.logical_pages() as u32 {
                // Most pages of a large drive are like that, and all that there is to do for them is to find out.
                if !self.is_untouched(page) {
                    self.restore_page(page);
                }
            }
        }
        self.set_power(true);
        if let Some(durable) = &mut self.durable {
            durable.superseded = Superseded::default();
        }
        self.note_copies();
        Ok(())
    }

    /// Whether there is nothing of a page, neither durable nor volatile.
    fn is_untouched(&self, logical_page: u32) -> bool {
        let is_known = self.durable.as_ref().is_some_and(|durable| durable.known[logical_page as usize]);
        let is_cached = || self.cache.write.as_ref().is_some_and(|cache| cache.entry_of(logical_page).is_some());
        !is_known && self.ftl.slot_of(logical_page).is_none() && !is_cached()
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
        match self.ftl.locate(logical_page) {
            Location::Buffer(slot) | Location::Flash(slot) => self.flash.payload.put(slot, content),
            Location::Nowhere => debug_assert!(false, "page {logical_page} is durable and nowhere"),
        }
    }
}
