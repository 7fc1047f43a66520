//! Requests that wait for their translation pages, and translation pages that are read, changed and placed.
//!
//! Who waits for what is kept by the [`Translator`](crate::ftl::translator::Translator).

use flashwise_block::Operation;

use crate::config::UnwrittenReads;
use crate::device::SimulatedSsd;
use crate::flash::Owner;
use crate::ftl::Location;
use crate::ftl::mapping_cache::Lookup;
use crate::ftl::translator::{Waiter, Waiting};

impl SimulatedSsd {
    /// Looks up all logical pages of a request; `false` when it has to wait, [`Self::translated`] is called then.
    pub(crate) fn translate(&mut self, request: u32) -> bool {
        if self.ftl.translator.is_none() {
            return true;
        }
        let Some(range) = self.host.range_of(request) else { return true };
        // One more than the pages, so that nothing continues before the last page is looked up.
        self.host.active[request].pending += 1;
        for span in range.spans() {
            self.translate_page(Waiter::Request(request), span.logical_page);
        }
        self.host.active[request].pending -= 1;
        self.host.active[request].pending == 0
    }

    /// Looks up the page that leaves the write cache; `false` when it has to wait, [`Self::cached_page_translated`] is
    /// called then.
    pub(crate) fn translate_cached(&mut self, entry: u32, logical_page: u32) -> bool {
        self.ftl.translator.is_none() || self.translate_page(Waiter::Cached(entry), logical_page)
    }

    /// Looks up a page; `false` when its translation page has to be read, which may have happened already when it is in
    /// the write buffer.
    fn translate_page(&mut self, waiter: Waiter, logical_page: u32) -> bool {
        let Some(translator) = &mut self.ftl.translator else { return true };
        let page = translator.cache.translation_page(logical_page);
        let lookup = translator.cache.look_up(logical_page);
        if lookup == Lookup::Ready {
            self.make_entry(waiter, logical_page);
            return true;
        }
        let waiting = translator.waiting.take();
        translator.waiting[waiting] = Waiting { waiter, logical_page, ..Waiting::default() };
        translator.waiting_for[page as usize].push(&mut translator.waiting, waiting);
        if let Waiter::Request(request) = waiter {
            self.host.active[request].pending += 1;
        }
        if lookup == Lookup::Load {
            let bytes = translator.load_bytes;
            self.read_translation_page(page, Owner::MapLoad { page }, bytes);
        }
        false
    }

    /// Makes or renews an entry for a request: a write makes it dirty, and so does a read that gives its page a place.
    fn make_entry(&mut self, waiter: Waiter, logical_page: u32) {
        let is_write = match waiter {
            Waiter::Request(index) => {
                self.host.active[index].request.as_ref().is_some_and(|r| r.operation != Operation::Read)
            }
            Waiter::Cached(_) => true,
        };
        let allocates = self.config.controller.unwritten_reads == UnwrittenReads::Allocate;
        let is_write = is_write || (allocates && self.ftl.locate(logical_page) == Location::Nowhere);
        let Some(translator) = &mut self.ftl.translator else { return };
        if let Some(page) = translator.cache.insert(logical_page, is_write) {
            self.update_translation_page(page);
        }
    }

    /// A translation page has arrived for the requests that wait for it.
    pub(crate) fn translation_page_loaded(&mut self, page: u32) {
        let Some(translator) = &mut self.ftl.translator else { return };
        translator.cache.loaded(page);
        let mut waiting_for = std::mem::take(&mut translator.waiting_for[page as usize]);
        while let Some(translator) = &mut self.ftl.translator {
            let Some(index) = waiting_for.pop(&mut translator.waiting) else { break };
            let Waiting { waiter, logical_page, .. } = translator.waiting[index];
            translator.waiting.give_back(index);
            self.make_entry(waiter, logical_page);
            match waiter {
                Waiter::Request(request) => {
                    self.host.active[request].pending -= 1;
                    if self.host.active[request].pending == 0 {
                        self.translated(request);
                    }
                }
                Waiter::Cached(entry) => self.cached_page_translated(entry),
            }
        }
    }

    /// Garbage collection has moved a logical page.
    pub(crate) fn mapping_moved(&mut self, logical_page: u32) {
        let Some(translator) = &mut self.ftl.translator else { return };
        if logical_page >= translator.first_page {
            let waits = !translator.unplaced.is_empty();
            translator.unplaced.may_be_in_buffer |= waits && self.ftl.pages.is_in_open_superpage(logical_page);
            return;
        }
        if let Some(page) = translator.cache.moved(logical_page) {
            self.update_translation_page(page);
        }
    }

    /// Brings a translation page up to date: its old version is read first.
    fn update_translation_page(&mut self, page: u32) {
        let Some(translator) = &self.ftl.translator else { return };
        if translator.cache.is_stored(page) {
            let bytes = translator.load_bytes;
            self.read_translation_page(page, Owner::MapUpdate { page }, bytes);
        } else {
            self.place_translation_page(page);
        }
    }

    /// A changed translation page goes where the host's pages go, and like one of these lets a unit that is low collect
    /// first: nothing else might, when all of the host's requests wait for this page. Where a drive that has become
    /// read-only has no space, it stays in memory.
    pub(crate) fn place_translation_page(&mut self, page: u32) {
        if !self.place_where(page, true)
            && let Some(translator) = &mut self.ftl.translator
        {
            let set = self.ftl.pages.set_of_units(translator.first_page + page);
            translator.unplaced.push(set, page);
        }
    }

    /// The same; where no unit has room, only over what is in the buffer. Gives whether the page has a place.
    fn place_where(&mut self, page: u32, is_there_room: bool) -> bool {
        let Some(translator) = &mut self.ftl.translator else { return true };
        if translator.cache.is_deferred() {
            translator.cache.updated(page);
            return true;
        }
        let logical_page = translator.first_page + page;
        let placement = match self.ftl.pages.overwrite_in_buffer(logical_page, (0, 1)) {
            None if is_there_room => {
                self.clean_before_write(logical_page);
                self.place_written(logical_page, (0, 1), 0)
            }
            placement => placement,
        };
        let Some(translator) = &mut self.ftl.translator else { return true };
        let Some(placement) = placement else {
            match self.collector.read_only {
                true => translator.cache.updated(page),
                false => translator.unplaced.may_be_in_buffer |= self.ftl.pages.is_in_open_superpage(logical_page),
            }
            return self.collector.read_only;
        };
        translator.cache.updated(page);
        if placement.new_slot() {
            self.cache.buffer.take_room(placement.superpage(), self.page.bytes() as u32, &mut self.ftl.pages);
            self.flash.counters.mapping_bytes.0 += self.page.bytes();
        }
        if placement.full() {
            self.program_superpage(placement.superpage());
        }
        true
    }

    /// Room has become free: translation pages that had none try again.
    pub(crate) fn place_waiting_translation_pages(&mut self) {
        let Some(translator) = &mut self.ftl.translator else { return };
        if translator.unplaced.is_empty() {
            return;
        }
        let may_be_in_buffer = std::mem::take(&mut translator.unplaced.may_be_in_buffer);
        for set in 0..self.ftl.pages.geometry.units {
            if !self.place_first_in_line(set) && may_be_in_buffer {
                self.place_in_buffer(set);
            }
        }
    }

    /// Places those that wait for a set of units until one finds no space; gives whether all have found some.
    fn place_first_in_line(&mut self, set: u32) -> bool {
        while let Some(page) = self.first_in_line(set) {
            if !self.place_where(page, true) {
                if let Some(translator) = &mut self.ftl.translator {
                    translator.unplaced.push_front(set, page);
                }
                return false;
            }
        }
        true
    }

    /// Of those that wait for a set of units, places those that need no space.
    fn place_in_buffer(&mut self, set: u32) {
        let waiting = self.ftl.translator.as_ref().map_or(0, |translator| translator.unplaced.len(set));
        for _ in 0..waiting {
            let Some(page) = self.first_in_line(set) else { return };
            if !self.place_where(page, false)
                && let Some(translator) = &mut self.ftl.translator
            {
                translator.unplaced.push(set, page);
            }
        }
    }

    /// Takes the translation page that has waited longest for a set of units.
    fn first_in_line(&mut self, set: u32) -> Option<u32> {
        self.ftl.translator.as_mut()?.unplaced.pop(set)
    }

    fn read_translation_page(&mut self, page: u32, owner: Owner, bytes: u32) {
        let Some(translator) = &self.ftl.translator else { return };
        let logical_page = translator.first_page + page;
        let at = match self.ftl.locate(logical_page) {
            Location::Flash(slot) => self.ftl.address_of(slot),
            // In the write buffer: nothing to sense.
            Location::Buffer(_) => return self.translation_page_read(owner),
            Location::Nowhere => self.ftl.pages.geometry.address_of(self.ftl.nominal_slot(logical_page)),
        };
        self.flash.read(owner, at, bytes, &mut self.clock);
    }

    /// A read of a translation page has ended.
    pub(crate) fn translation_page_read(&mut self, owner: Owner) {
        match owner {
            Owner::MapLoad { page } => self.translation_page_loaded(page),
            Owner::MapUpdate { page } => self.place_translation_page(page),
            _ => {}
        }
    }
}
