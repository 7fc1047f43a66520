//! Writes that go through the write cache, and pages that leave it: looked up, filled up, placed, programmed.
//!
//! The cache itself, with the way of a page through it, is [`crate::cache::WriteCache`].

use flashwise_block::Operation;

use crate::cache::{Entry, Parked, State};
use crate::config::CacheFlush;
use crate::device::SimulatedSsd;
use crate::event::Event;
use crate::flash::Owner;
use crate::ftl::{Location, Placement};
use crate::pages::PageSpan;

impl SimulatedSsd {
    /// Takes one page of a write into the cache; `false` when it has to wait for room.
    pub(crate) fn cache_page(&mut self, request: u32, span: PageSpan, nth: (u32, u32)) -> bool {
        if self.cache.buffer.is_full() && self.cache.hands_on() {
            return false;
        }
        let Some(cache) = &mut self.cache.write else { return false };
        let found = cache.entry_of(span.logical_page);
        if found.is_none() && !self.make_room_in_cache() {
            return false;
        }
        let covered = self.ftl.sectors.covered_before();
        let keeps_old = !span.is_whole() && !self.flash.payload.is_empty();
        let old = if keeps_old { self.ftl.slot_of(span.logical_page) } else { None };
        let (covers, touches) = (self.ftl.sectors.covered(span), self.ftl.sectors.touched(span));
        let forced = self.is_forced(request);
        let Some(cache) = &mut self.cache.write else { return false };
        let was_hot = cache.hot.as_ref().is_some_and(|hot| hot.written(&mut cache.pages, span.logical_page));
        let at_once =
            cache.flush == CacheFlush::Immediate && if cache.hot.is_some() { !was_hot } else { found.is_none() };
        let goes_on = forced || at_once;
        let entry = match found {
            Some(entry) => {
                cache.counters.write_hits += 1;
                cache.hit(entry);
                if goes_on {
                    cache.queue(entry, true);
                }
                self.flash.counters.absorbed_bytes.0 += span.len() as u64;
                entry
            }
            None => {
                cache.counters.write_misses += 1;
                let entry = cache.insert(span.logical_page, nth, covered, goes_on);
                if let Some(copy) = old.and_then(|old| self.flash.payload.copy_of(old)) {
                    cache.contents.put(entry, Some(copy));
                }
                entry
            }
        };
        let record = &mut cache.entries[entry];
        record.stream = self.host.active[request].stream;
        record.covered |= covers;
        record.touched |= touches;
        if let Some(r) = &self.host.active[request].request {
            cache.contents.store(entry, span, r);
        }
        if forced {
            cache.entries[entry].waiters.push(request);
            self.host.active[request].pending += 1;
        }
        cache.keep_below_watermark();
        self.write_back_queued();
        true
    }

    /// Makes room for one page; `false` when the write buffer cannot take another one out.
    fn make_room_in_cache(&mut self) -> bool {
        while let Some(cache) = &mut self.cache.write {
            if cache.held < cache.capacity {
                return true;
            }
            if self.cache.buffer.is_full() || (cache.queued == 0 && !cache.queue_oldest()) {
                return false;
            }
            cache.counters.pages_evicted += 1;
            self.write_back_next();
        }
        false
    }

    /// Writes queued pages back for as long as the write buffer has room.
    pub(crate) fn write_back_queued(&mut self) {
        while self.cache.write.as_ref().is_some_and(|cache| cache.has_queued()) && !self.cache.buffer.is_full() {
            self.write_back_next();
        }
    }

    /// The next queued page takes space in the write buffer and is on its way.
    fn write_back_next(&mut self) {
        let Some(cache) = &mut self.cache.write else { return };
        let Some(entry) = cache.pop_queued() else { return };
        let record = &mut cache.entries[entry];
        let is_leaving = record.state == State::Leaving;
        record.charge = if is_leaving { self.ftl.sectors.written_bytes(record.touched) } else { 0 };
        let (charge, arriving) = (u64::from(record.charge), record.arriving);
        cache.leaving_bytes += charge;
        cache.counters.pages_written_back += u64::from(is_leaving);
        self.cache.buffer.used_bytes += charge;
        let read_ns = if arriving { self.clock.now_ns } else { self.cache.dram.access(self.clock.now_ns, charge) };
        if read_ns > self.clock.now_ns {
            self.clock.schedule(read_ns, Event::WriteBack { entry });
        } else {
            self.fill_cached(entry);
        }
    }

    /// A page that leaves the cache has been read from DRAM.
    pub(crate) fn cached_page_read(&mut self, entry: u32) {
        self.fill_cached(entry);
        self.admit_writes();
    }

    /// What a page that leaves the cache lacked has been read from flash.
    pub(crate) fn cached_page_filled(&mut self, entry: u32) {
        self.place_cached(entry);
        self.admit_writes();
    }

    /// The map's entry of a page that leaves the cache has been read from flash.
    pub(crate) fn cached_page_translated(&mut self, entry: u32) {
        self.fill_translated(entry);
        self.admit_writes();
    }

    /// A page that leaves the cache is out of DRAM: its entry of the map is looked up.
    #[inline(always)]
    fn fill_cached(&mut self, entry: u32) {
        let Some(cache) = &self.cache.write else { return };
        let Entry { logical_page, state, .. } = cache.entries[entry];
        if state != State::Leaving || self.translate_cached(entry, logical_page) {
            self.fill_translated(entry);
        }
    }

    /// What a page that leaves the cache lacks is read from flash.
    #[inline(always)]
    fn fill_translated(&mut self, entry: u32) {
        let Some(cache) = &self.cache.write else { return };
        let (page, covered) = (cache.entries[entry].logical_page, cache.entries[entry].covered);
        let missing = self.ftl.sectors.missing_bytes(page, covered);
        let is_leaving = cache.entries[entry].state == State::Leaving;
        if missing > 0
            && is_leaving
            && let Location::Flash(slot) = self.ftl.locate(page)
        {
            self.read_missing(entry, slot, missing);
        } else {
            self.place_cached(entry);
        }
    }

    /// Reads what a page that leaves the cache lacks.
    #[inline(never)]
    fn read_missing(&mut self, entry: u32, slot: u32, bytes: u32) {
        let at = self.ftl.address_of(slot);
        self.flash.read(Owner::CacheFill { entry }, at, bytes, &mut self.clock);
    }

    /// A page that leaves the cache is whole: it gets its slot, or waits for room in its unit.
    fn place_cached(&mut self, entry: u32) {
        if self.try_to_place_cached(entry) {
            return;
        }
        if self.is_read_only() {
            return self.lose_cached(entry);
        }
        let Some(cache) = &self.cache.write else { return };
        let unit = self.ftl.pages.bound_unit(cache.entries[entry].logical_page);
        self.cache.buffer.park(Parked::Cached { entry }, unit);
    }

    /// Places a page that leaves the cache; `false` when no unit that may take it has room.
    pub(crate) fn try_to_place_cached(&mut self, entry: u32) -> bool {
        let Some(cache) = &self.cache.write else { return true };
        let Entry { logical_page, state, nth, touched, stream, .. } = cache.entries[entry];
        if state == State::Dropped {
            self.release_cached(entry, None);
            return true;
        }
        if self.ftl.hands_out_steps() {
            self.program_cached(entry, logical_page);
            return true;
        }
        self.clean_before_write(logical_page);
        let old = self.ftl.pages.slot_of(logical_page);
        let placement = match self.ftl.pages.overwrite_in_buffer(logical_page, nth) {
            Some(placement) => placement,
            None => match self.place_written(logical_page, nth, stream) {
                Some(placement) => placement,
                None => return false,
            },
        };
        self.ftl.sectors.write(logical_page, touched, old.is_some());
        if let Some(old) = old {
            if placement.new_slot() {
                self.power.page_is_superseded(logical_page, old, &self.ftl, &self.flash.payload);
            }
            self.flash.payload.discard(old);
        }
        let Some(cache) = &mut self.cache.write else { return true };
        self.flash.payload.put(placement.slot(), cache.contents.take(entry));
        cache.pages.leave(logical_page);
        if placement.new_slot() {
            let charge = cache.entries[entry].charge;
            cache.leaving_bytes -= u64::from(charge);
            cache.entries[entry].charge = 0;
            self.ftl.pages.superpages[placement.superpage()].held_bytes += charge;
        } else {
            // The version that it replaces in the open superpage is never programmed.
            self.flash.counters.absorbed_bytes.0 += u64::from(cache.entries[entry].charge);
        }
        self.release_cached(entry, Some(placement));
        true
    }

    /// An FTL of blocks gives a page that leaves the cache its slot, behind what has to be merged for it.
    #[cold]
    fn program_cached(&mut self, entry: u32, logical_page: u32) {
        let Some(cache) = &mut self.cache.write else { return };
        cache.pages.leave(logical_page);
        let content = cache.contents.take(entry);
        if self.power.may_be_cut() {
            if let Some(older) = cache.programming(logical_page) {
                cache.entries[older].state = State::Outdated;
            }
            // What a power cut leaves is this version, from the end of its program on.
            cache.contents.put(entry, content.clone());
        }
        cache.entries[entry].state = State::Programming;
        self.write_page_by_steps(logical_page, Owner::CachedPage { entry }, |ssd, slot, old| {
            ssd.flash.payload.discard(slot);
            if let Some(old) = old {
                ssd.flash.payload.discard(old);
            }
            ssd.flash.payload.put(slot, content);
        });
    }

    /// A page that left the cache has been programmed where an FTL of blocks put it.
    pub(crate) fn cached_page_programmed(&mut self, entry: u32) {
        let Some(cache) = &mut self.cache.write else { return };
        let logical_page = cache.entries[entry].logical_page;
        if cache.entries[entry].state.is_programming() && self.power.may_be_cut() {
            let content = cache.contents.take(entry);
            self.power.version_is_durable(logical_page, content);
        }
        let waiters = self.cache.leave_buffer(entry, State::Unused);
        if !waiters.is_empty() {
            self.answer_cache_waiters(entry, waiters);
        }
        if let Some(cache) = &mut self.cache.write {
            cache.release(entry);
        }
        self.admit_writes();
    }

    /// A page has left the cache: its slot and unused room are given back, and who waited for it continues.
    #[inline(always)]
    fn release_cached(&mut self, entry: u32, placement: Option<Placement>) {
        let waiters = self.cache.leave_buffer(entry, State::Leaving);
        if let Some(superpage) = placement.map(Placement::superpage) {
            waiters.iter().for_each(|&request| self.remember_for_fua(request, superpage));
        }
        if let Some(superpage) = placement.filter(|placement| placement.full()).map(Placement::superpage) {
            self.program_superpage(superpage);
        }
        if !waiters.is_empty() {
            self.answer_cache_waiters(entry, waiters);
        }
        if let Some(cache) = &mut self.cache.write {
            cache.release(entry);
        }
    }

    /// A page on its way from the cache will find no space any more: it stays in the cache, where it can be read, and
    /// those who wait for it on flash are refused.
    pub(crate) fn lose_cached(&mut self, entry: u32) {
        let Some(cache) = &self.cache.write else { return };
        cache.entries[entry].waiters.iter().for_each(|&request| self.host.active[request].is_refused = true);
        if cache.entries[entry].state == State::Dropped {
            return self.release_cached(entry, None);
        }
        let waiters = self.cache.leave_buffer(entry, State::Kept);
        if !waiters.is_empty() {
            self.answer_cache_waiters(entry, waiters);
        }
    }

    /// Those who waited for a page of the cache continue; gives the list back to its owner.
    fn answer_cache_waiters(&mut self, entry: u32, mut waiters: Vec<u32>) {
        waiters.drain(..).for_each(|request| self.cached_page_placed(request));
        if let Some(cache) = &mut self.cache.write {
            cache.entries[entry].waiters = waiters;
        }
    }

    /// A page that a forced write or a flush waited for has its place.
    fn cached_page_placed(&mut self, request: u32) {
        self.host.active[request].pending -= 1;
        if self.host.active[request].pending > 0 {
            return;
        }
        let Some(r) = &self.host.active[request].request else { return };
        match (r.operation, self.host.range_of(request)) {
            (Operation::Flush, _) => self.flush_buffer(request),
            (_, Some(range)) if self.host.active[request].taken == range.pages() => self.write_placed(request),
            _ => {}
        }
    }

    /// A logical page is no longer needed.
    pub(crate) fn drop_cached(&mut self, logical_page: u32) {
        let Some(cache) = &mut self.cache.write else { return };
        if self.ftl.hands_out_steps() && self.power.may_be_cut() {
            cache.forget_programming(Some(logical_page));
        }
        if cache.drop_page(logical_page) {
            self.flash.counters.absorbed_bytes.0 += self.page.bytes();
        }
    }

    /// Makes a flush wait for everything that is in the cache.
    pub(crate) fn flush_cache(&mut self, request: u32) {
        let Some(cache) = &mut self.cache.write else { return };
        let (waited_for, has_kept) = cache.drain_for(request);
        self.host.active[request].pending += waited_for;
        self.host.active[request].is_refused |= has_kept;
        self.write_back_queued();
    }
}
