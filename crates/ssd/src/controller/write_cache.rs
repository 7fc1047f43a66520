//! The write cache: dirty logical pages in controller DRAM, in front of placement.
//!
//! ```text
//!             ┌──────────── write cache ────────────┐
//!   write ──▶ │ dirty ──▶ queued ─┬─────────────────┼─▶ write buffer ──▶ placed by the FTL, programmed
//!     hit:    │ by age    to be   └▶ leaving: DRAM  │   (controller/write.rs)
//!   in place  │           written     and fill read │
//!             │           back                      │
//!             └─────────────────────────────────────┘
//! ```
//!
//! A page is dirty until its room is needed, a watermark is passed, a flush comes, or at once, as
//! `controller.write_cache.flush` says. From the moment it is chosen it takes room in the write buffer, no longer in the
//! cache; where the buffer is full, the choice waits, and so do the writes that need the page's room, in their order.
//! A write that hits a page which has not been placed yet overwrites it where it is.
//!
//! Where the FTL maps blocks there is no write buffer behind the cache. A page then takes its room there, which bounds how
//! many are under way, until it is programmed.
//!
//! Only one version of a page is in the cache, and every write goes through it, so that what the cache holds is always
//! newer than what the FTL knows.
//!
//! Source: the cache of MQSim (Tavakkol et al., FAST 2018, section 4.4), of which `flush = "immediate"` with
//! `hot_window_ns` is the behaviour; write-back with watermarks as in Gal and Toledo, "Algorithms and Data Structures
//! for Flash Memories", ACM Computing Surveys 37(2), 2005, section 3.

use flashwise_block::Operation;

use crate::config::{CacheFlush, CachePolicy, DeviceConfig};
use crate::controller::PageSpan;
use crate::controller::cached_pages::CachedPages;
use crate::device::SimulatedSsd;
use crate::event::Event;
use crate::flash::{FlashOp, FlashOpKind, Owner};
use crate::ftl::{Location, Placement};
use crate::list::{Fifo, Linked, Slab};
use crate::payload::Payload;
use crate::recency::{Links, Ranked, Recency};

/// Where a page of the cache stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The slot is not in use.
    #[default]
    Unused,
    /// Stays until its room is needed.
    Dirty,
    /// To be written back as soon as the write buffer has room.
    Queued,
    /// Has room in the write buffer; on its way to its slot.
    Leaving,
    /// In the slot that an FTL of blocks has given it, and being programmed there; nobody finds it here any more.
    Programming,
    /// Like that, with a newer version of the page behind it; told apart only where power cuts are possible.
    Outdated,
    /// Trimmed while it was queued or leaving.
    Dropped,
    /// Stays for good, because the drive has become read-only and has no room for it.
    Kept,
}

impl State {
    /// In a slot of an FTL of blocks, and not on flash yet.
    fn is_programming(self) -> bool {
        matches!(self, Self::Programming | Self::Outdated)
    }
}

/// A page of the cache.
#[derive(Default)]
struct Entry {
    logical_page: u32,
    state: State,
    /// Granules that hold data wholly, and at all.
    covered: u16,
    touched: u16,
    /// The stream that the last write of it named.
    stream: u16,
    /// It goes on while its data arrives, so that it need not be read from DRAM again.
    arriving: bool,
    /// Room that it takes in the write buffer, bytes.
    charge: u32,
    /// Its place in the write that brought it, and the length of that write.
    nth: (u32, u32),
    /// Requests that wait until it is placed.
    waiters: Vec<u32>,
    links: Links,
    next: u32,
}

impl Ranked for Entry {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Linked for Entry {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// Which pages were written twice within a window of time.
struct HotPages {
    window_ns: u64,
    /// The window ends with the first write after this.
    end_ns: u64,
    window: u32,
}

impl HotPages {
    /// Notes a write; `true` when the page was written in this window before.
    fn written(&self, pages: &mut CachedPages, logical_page: u32) -> bool {
        pages.written_in(logical_page, self.window) == self.window
    }

    fn turn(&mut self, now_ns: u64) {
        if now_ns > self.end_ns {
            (self.window, self.end_ns) = (self.window + 1, now_ns.saturating_add(self.window_ns));
        }
    }
}

/// What the write cache did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteCacheCounters {
    /// Page writes that overwrote a page in the cache.
    pub write_hits: u64,
    /// Page writes that brought a page into the cache.
    pub write_misses: u64,
    /// Page reads that found all they asked for in the cache.
    pub read_hits: u64,
    /// Pages written back.
    pub pages_written_back: u64,
    /// Of those, pages that had to make room for others.
    pub pages_evicted: u64,
}

/// The write cache.
pub(crate) struct WriteCache {
    capacity: u32,
    high: u32,
    low: u32,
    policy: CachePolicy,
    flush: CacheFlush,
    hot: Option<HotPages>,
    pages: CachedPages,
    entries: Slab<Entry>,
    dirty: Recency,
    queue: Fifo,
    dirty_pages: u32,
    /// Pages that take room in the cache: dirty, and queued unless dropped.
    held: u32,
    /// Pages in the queue, dropped ones included.
    queued: u32,
    /// Room that leaving pages take in the write buffer.
    pub(crate) leaving_bytes: u64,
    contents: Payload,
    pub(crate) counters: WriteCacheCounters,
}

impl WriteCache {
    /// The cache that a configuration has.
    pub(crate) fn new(config: &DeviceConfig) -> Option<Box<Self>> {
        let cache = config.controller.write_cache.as_ref()?;
        let pages = config.logical_pages() as usize;
        let capacity = (cache.bytes / config.ftl.logical_page_bytes) as u32;
        let share = |share: f64| ((f64::from(capacity) * share) as u32).max(1);
        let hot = cache.hot_window_ns.map(|window_ns| HotPages { window_ns, end_ns: 0, window: 1 });
        Some(Box::new(Self {
            capacity,
            high: share(cache.high_watermark),
            low: (f64::from(capacity) * cache.low_watermark) as u32,
            policy: cache.policy,
            flush: cache.flush,
            pages: CachedPages::new(pages, hot.is_some()),
            hot,
            entries: Slab::default(),
            dirty: Recency::default(),
            queue: Fifo::default(),
            dirty_pages: 0,
            held: 0,
            queued: 0,
            leaving_bytes: 0,
            contents: Payload::new(config.ftl.logical_page_bytes),
            counters: WriteCacheCounters::default(),
        }))
    }

    /// Says that the place of what is known of a page will be asked for soon.
    #[inline]
    pub(crate) fn expect_place(&self, logical_page: u32) {
        if self.was_used() {
            self.pages.prefetch_place(logical_page);
        }
    }

    /// Says that what is known of a page will be needed soon.
    #[inline]
    pub(crate) fn expect_page(&self, logical_page: u32) {
        if self.was_used() {
            self.pages.prefetch(logical_page);
        }
    }

    /// Whether there was ever a page in the cache; as long as there was none, nobody looks for one.
    #[inline]
    fn was_used(&self) -> bool {
        self.entries.slots() > 0
    }

    /// The entry of a page, if it has one.
    pub(crate) fn entry_of(&self, logical_page: u32) -> Option<u32> {
        self.pages.entry(logical_page)
    }

    /// Pages that take room in the cache.
    pub(crate) fn held_pages(&self) -> u32 {
        self.held
    }

    /// Granules of a logical page that are in the cache wholly; `None` when the page is not there.
    pub(crate) fn covered(&self, logical_page: u32) -> Option<u16> {
        if self.entries.taken() == 0 {
            return None;
        }
        self.entry_of(logical_page).map(|entry| self.entries[entry].covered)
    }

    /// Whether pages wait for being written back.
    #[inline]
    pub(crate) fn has_queued(&self) -> bool {
        self.queued > 0
    }

    /// Whether nothing is dirty, nor on its way to flash.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.taken() == 0
    }

    /// Copies a page's bytes; `false` when the page is not in the cache.
    pub(crate) fn read(&self, span: PageSpan, into: &mut [u8]) -> bool {
        let Some(entry) = self.entry_of(span.logical_page) else { return false };
        self.contents.read(entry, span.from, into);
        true
    }

    /// Makes a part of a page zeros; `false` when the page is not in the cache.
    pub(crate) fn zero(&mut self, span: PageSpan) -> bool {
        let Some(entry) = self.entry_of(span.logical_page) else { return false };
        self.contents.zero(entry, span.from, span.to);
        true
    }

    /// The newest version of a page that is being programmed.
    fn programming(&self, logical_page: u32) -> Option<u32> {
        let is_it = |entry: &u32| {
            let record = &self.entries[*entry];
            record.state == State::Programming && record.logical_page == logical_page
        };
        (0..self.entries.slots()).find(is_it)
    }

    /// Makes a part of the newest version of a page zeros that is being programmed; `false` when none is. Older ones on
    /// the way stay as they are: they may be what a power cut leaves, each as a whole.
    pub(crate) fn zero_programming(&mut self, span: PageSpan) -> bool {
        let entry = self.programming(span.logical_page);
        entry.into_iter().for_each(|entry| self.contents.zero(entry, span.from, span.to));
        entry.is_some()
    }

    /// Brings a page in; one that goes on at once, while it arrives, is queued.
    fn insert(&mut self, logical_page: u32, nth: (u32, u32), covered: u16, goes_on: bool) -> u32 {
        let entry = self.entries.take();
        self.pages.enter(logical_page, entry);
        let record = &mut self.entries[entry];
        debug_assert!(record.state == State::Unused && record.waiters.is_empty());
        (record.logical_page, record.nth) = (logical_page, nth);
        (record.covered, record.touched) = (covered, covered);
        self.held += 1;
        if goes_on {
            (record.state, record.arriving) = (State::Queued, true);
            self.queue.push(&mut self.entries, entry);
            self.queued += 1;
        } else {
            record.state = State::Dirty;
            self.dirty.push(&mut self.entries, entry);
            self.dirty_pages += 1;
        }
        entry
    }

    /// A write hits a page.
    fn hit(&mut self, entry: u32) {
        if self.entries[entry].state == State::Dirty && self.policy == CachePolicy::Lru {
            self.dirty.remove(&mut self.entries, entry);
            self.dirty.push(&mut self.entries, entry);
        }
    }

    /// A dirty page is to be written back.
    fn queue(&mut self, entry: u32, arriving: bool) {
        if self.entries[entry].state != State::Dirty {
            return;
        }
        self.dirty.remove(&mut self.entries, entry);
        let record = &mut self.entries[entry];
        (record.state, record.arriving) = (State::Queued, arriving);
        self.queue.push(&mut self.entries, entry);
        (self.dirty_pages, self.queued) = (self.dirty_pages - 1, self.queued + 1);
    }

    /// The next page to be written back leaves the cache.
    fn pop_queued(&mut self) -> Option<u32> {
        let entry = self.queue.pop(&mut self.entries)?;
        self.queued -= 1;
        if self.entries[entry].state == State::Queued {
            self.entries[entry].state = State::Leaving;
            self.held -= 1;
        }
        Some(entry)
    }

    /// Queues the oldest dirty page.
    fn queue_oldest(&mut self) -> bool {
        let oldest = self.dirty.oldest();
        oldest.inspect(|&entry| self.queue(entry, false)).is_some()
    }

    /// Queues dirty pages down to the low watermark once the high one is passed.
    fn keep_below_watermark(&mut self) {
        if self.flush != CacheFlush::Watermark || self.dirty_pages < self.high {
            return;
        }
        while self.dirty_pages > self.low && self.queue_oldest() {}
    }

    /// A page's slot is free for another page.
    fn release(&mut self, entry: u32) {
        self.contents.discard(entry);
        self.entries[entry].state = State::Unused;
        self.entries.give_back(entry);
    }

    /// Checks what must hold between any two events.
    pub(crate) fn check(&self) -> Result<(), String> {
        let states = |state| (0..self.entries.slots()).filter(move |&e| self.entries[e].state == state);
        let held = states(State::Dirty).chain(states(State::Queued)).count();
        if held != self.held as usize || self.held > self.capacity {
            return Err(format!("the write cache counts {} of {} pages and holds {held}", self.held, self.capacity));
        }
        let live = held + states(State::Leaving).chain(states(State::Kept)).count();
        let indexed = self.pages.entered();
        if live != indexed {
            return Err(format!("the write cache has {live} pages and finds {indexed}"));
        }
        Ok(())
    }
}

impl SimulatedSsd {
    /// Takes one page of a write into the cache; `false` when it has to wait for room.
    pub(crate) fn cache_page(&mut self, request: u32, span: PageSpan, nth: (u32, u32)) -> bool {
        if self.buffer.is_full() && self.cache_hands_on() {
            return false;
        }
        let Some(cache) = &mut self.write_cache else { return false };
        let found = cache.entry_of(span.logical_page);
        if found.is_none() && !self.make_room_in_cache() {
            return false;
        }
        let covered = self.covered_before();
        let keeps_old = !span.is_whole() && !self.payload.is_empty();
        let old = if keeps_old { self.slot_of(span.logical_page) } else { None };
        let (covers, touches) = (self.sectors.covered(span), self.sectors.touched(span));
        let forced = self.is_forced(request);
        let Some(cache) = &mut self.write_cache else { return false };
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
                self.flash_counters.absorbed_bytes.0 += span.len() as u64;
                entry
            }
            None => {
                cache.counters.write_misses += 1;
                let entry = cache.insert(span.logical_page, nth, covered, goes_on);
                if let Some(copy) = old.and_then(|old| self.payload.copy_of(old)) {
                    cache.contents.put(entry, Some(copy));
                }
                entry
            }
        };
        let record = &mut cache.entries[entry];
        record.stream = self.active[request].stream;
        record.covered |= covers;
        record.touched |= touches;
        if let Some(r) = &self.active[request].request {
            cache.contents.store(entry, span, r);
        }
        if forced {
            cache.entries[entry].waiters.push(request);
            self.active[request].pending += 1;
        }
        cache.keep_below_watermark();
        self.write_back_queued();
        true
    }

    /// Whether there is a cache that hands every page on at once, so that it takes one only where the write buffer does.
    #[inline]
    pub(crate) fn cache_hands_on(&self) -> bool {
        self.write_cache.as_ref().is_some_and(|cache| cache.flush == CacheFlush::Immediate)
    }

    /// What counts as there of a page that is about to come into the cache: all of it, where it was filled up before or
    /// is zeros elsewhere; nothing, where parts of pages are known.
    fn covered_before(&self) -> u16 {
        if self.sectors.are_known() { 0 } else { self.sectors.all() }
    }

    /// The pages of a write are in: a window of hot pages may end.
    pub(crate) fn end_cache_admission(&mut self) {
        if let Some(hot) = self.write_cache.as_mut().and_then(|cache| cache.hot.as_mut()) {
            hot.turn(self.now_ns);
        }
    }

    /// Makes room for one page; `false` when the write buffer cannot take another one out.
    fn make_room_in_cache(&mut self) -> bool {
        while let Some(cache) = &mut self.write_cache {
            if cache.held < cache.capacity {
                return true;
            }
            if self.buffer.is_full() || (cache.queued == 0 && !cache.queue_oldest()) {
                return false;
            }
            cache.counters.pages_evicted += 1;
            self.write_back_next();
        }
        false
    }

    /// Writes queued pages back for as long as the write buffer has room.
    pub(crate) fn write_back_queued(&mut self) {
        while self.write_cache.as_ref().is_some_and(|cache| cache.has_queued()) && !self.buffer.is_full() {
            self.write_back_next();
        }
    }

    /// The next queued page takes room in the write buffer and is on its way.
    fn write_back_next(&mut self) {
        let Some(cache) = &mut self.write_cache else { return };
        let Some(entry) = cache.pop_queued() else { return };
        let record = &mut cache.entries[entry];
        let is_leaving = record.state == State::Leaving;
        record.charge = if is_leaving { self.sectors.written_bytes(record.touched) } else { 0 };
        let (charge, arriving) = (u64::from(record.charge), record.arriving);
        cache.leaving_bytes += charge;
        cache.counters.pages_written_back += u64::from(is_leaving);
        self.buffer.used_bytes += charge;
        let read_ns = if arriving { self.now_ns } else { self.dram.access(self.now_ns, charge) };
        if read_ns > self.now_ns {
            self.events.schedule(read_ns, Event::WriteBack { entry });
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
        let Some(cache) = &self.write_cache else { return };
        let Entry { logical_page, state, .. } = cache.entries[entry];
        if state != State::Leaving || self.translate_cached(entry, logical_page) {
            self.fill_translated(entry);
        }
    }

    /// What a page that leaves the cache lacks is read from flash.
    #[inline(always)]
    fn fill_translated(&mut self, entry: u32) {
        let Some(cache) = &self.write_cache else { return };
        let (page, covered) = (cache.entries[entry].logical_page, cache.entries[entry].covered);
        let missing = self.sectors.missing_bytes(page, covered);
        let is_leaving = cache.entries[entry].state == State::Leaving;
        if missing > 0
            && is_leaving
            && let Location::Flash(slot) = self.locate(page)
        {
            self.read_missing(entry, slot, missing);
        } else {
            self.place_cached(entry);
        }
    }

    /// Reads what a page that leaves the cache lacks.
    #[inline(never)]
    fn read_missing(&mut self, entry: u32, slot: u32, bytes: u32) {
        self.flash_counters.bytes_read.0 += u64::from(bytes);
        let (at, owner) = (self.address_of(slot), Owner::CacheFill { entry });
        let op = self.flash.prepare(FlashOp::new(FlashOpKind::Read, owner, at, bytes));
        self.flash.issue(op, self.now_ns, &mut self.events);
    }

    /// A page that leaves the cache is whole: it gets its slot, or waits for room in its unit.
    fn place_cached(&mut self, entry: u32) {
        if self.try_to_place_cached(entry) {
            return;
        }
        if self.is_read_only() {
            return self.lose_cached(entry);
        }
        let Some(cache) = &self.write_cache else { return };
        let unit = self.ftl.bound_unit(cache.entries[entry].logical_page);
        self.park_cached(entry, unit);
    }

    /// Places a page that leaves the cache; `false` when no unit that may take it has room.
    pub(crate) fn try_to_place_cached(&mut self, entry: u32) -> bool {
        let Some(cache) = &self.write_cache else { return true };
        let Entry { logical_page, state, nth, touched, stream, .. } = cache.entries[entry];
        if state == State::Dropped {
            self.release_cached(entry, None);
            return true;
        }
        if self.blocks.is_some() {
            self.program_cached(entry, logical_page);
            return true;
        }
        self.clean_before_write(logical_page);
        let old = self.ftl.slot_of(logical_page);
        let placement = match self.ftl.overwrite_in_buffer(logical_page, nth) {
            Some(placement) => placement,
            None => match self.place_written(logical_page, nth, stream) {
                Some(placement) => placement,
                None => return false,
            },
        };
        self.sectors.write(logical_page, touched, old.is_some());
        if let Some(old) = old {
            if placement.new_slot() {
                self.page_is_superseded(logical_page, old);
            }
            self.payload.discard(old);
        }
        let Some(cache) = &mut self.write_cache else { return true };
        self.payload.put(placement.slot(), cache.contents.take(entry));
        cache.pages.leave(logical_page);
        if placement.new_slot() {
            let charge = cache.entries[entry].charge;
            cache.leaving_bytes -= u64::from(charge);
            cache.entries[entry].charge = 0;
            self.ftl.superpages[placement.superpage()].held_bytes += charge;
        } else {
            // The version that it replaces in the open superpage is never programmed.
            self.flash_counters.absorbed_bytes.0 += u64::from(cache.entries[entry].charge);
        }
        self.release_cached(entry, Some(placement));
        true
    }

    /// An FTL of blocks gives a page that leaves the cache its slot, behind what has to be merged for it.
    #[cold]
    fn program_cached(&mut self, entry: u32, logical_page: u32) {
        let Some(cache) = &mut self.write_cache else { return };
        cache.pages.leave(logical_page);
        let content = cache.contents.take(entry);
        if self.durable.is_some() {
            if let Some(older) = cache.programming(logical_page) {
                cache.entries[older].state = State::Outdated;
            }
            // What a power cut leaves is this version, from the end of its program on.
            cache.contents.put(entry, content.clone());
        }
        cache.entries[entry].state = State::Programming;
        self.write_page_block_mapped(logical_page, Owner::CachedPage { entry }, |ssd, slot, old| {
            ssd.payload.discard(slot);
            if let Some(old) = old {
                ssd.payload.discard(old);
            }
            ssd.payload.put(slot, content);
        });
    }

    /// A page that left the cache has been programmed where an FTL of blocks put it.
    pub(crate) fn cached_page_programmed(&mut self, entry: u32) {
        let Some(cache) = &mut self.write_cache else { return };
        let logical_page = cache.entries[entry].logical_page;
        if cache.entries[entry].state.is_programming() && self.durable.is_some() {
            let content = cache.contents.take(entry);
            self.version_is_durable(logical_page, content);
        }
        let waiters = self.leave_buffer(entry, State::Unused);
        if !waiters.is_empty() {
            self.answer_cache_waiters(entry, waiters);
        }
        if let Some(cache) = &mut self.write_cache {
            cache.release(entry);
        }
        self.admit_writes();
    }

    /// A page has left the cache: its slot and unused room are given back, and who waited for it goes on.
    #[inline(always)]
    fn release_cached(&mut self, entry: u32, placement: Option<Placement>) {
        let waiters = self.leave_buffer(entry, State::Leaving);
        if let Some(superpage) = placement.map(Placement::superpage) {
            waiters.iter().for_each(|&request| self.remember_for_fua(request, superpage));
        }
        if let Some(superpage) = placement.filter(|placement| placement.full()).map(Placement::superpage) {
            self.program_superpage(superpage);
        }
        if !waiters.is_empty() {
            self.answer_cache_waiters(entry, waiters);
        }
        if let Some(cache) = &mut self.write_cache {
            cache.release(entry);
        }
    }

    /// A page on its way from the cache will find no room any more: it stays in the cache, where it can be read, and
    /// those who wait for it on flash are refused.
    pub(crate) fn lose_cached(&mut self, entry: u32) {
        let Some(cache) = &self.write_cache else { return };
        cache.entries[entry].waiters.iter().for_each(|&request| self.active[request].is_refused = true);
        if cache.entries[entry].state == State::Dropped {
            return self.release_cached(entry, None);
        }
        let waiters = self.leave_buffer(entry, State::Kept);
        if !waiters.is_empty() {
            self.answer_cache_waiters(entry, waiters);
        }
    }

    /// A page that was on its way from the cache takes no room in the write buffer any more; gives who waits for it.
    fn leave_buffer(&mut self, entry: u32, state: State) -> Vec<u32> {
        let Some(cache) = &mut self.write_cache else { return Vec::new() };
        let record = &mut cache.entries[entry];
        let charge = u64::from(std::mem::take(&mut record.charge));
        record.state = state;
        cache.leaving_bytes -= charge;
        self.buffer.used_bytes -= charge;
        // A list without anybody in it stays, with its room, where it is.
        if record.waiters.is_empty() { Vec::new() } else { std::mem::take(&mut record.waiters) }
    }

    /// Those who waited for a page of the cache go on; gives the list back to its owner.
    fn answer_cache_waiters(&mut self, entry: u32, mut waiters: Vec<u32>) {
        waiters.drain(..).for_each(|request| self.cached_page_placed(request));
        if let Some(cache) = &mut self.write_cache {
            cache.entries[entry].waiters = waiters;
        }
    }

    /// A page that a forced write or a flush waited for has its place.
    fn cached_page_placed(&mut self, request: u32) {
        self.active[request].pending -= 1;
        if self.active[request].pending > 0 {
            return;
        }
        let Some(r) = &self.active[request].request else { return };
        match (r.operation, self.range_of(request)) {
            (Operation::Flush, _) => self.flush_buffer(request),
            (_, Some(range)) if self.active[request].taken == range.pages() => self.write_placed(request),
            _ => {}
        }
    }

    /// Makes a flush wait for everything that is in the cache.
    pub(crate) fn flush_cache(&mut self, request: u32) {
        let Some(cache) = &mut self.write_cache else { return };
        while cache.queue_oldest() {}
        for entry in 0..cache.entries.slots() {
            let record = &mut cache.entries[entry];
            self.active[request].is_refused |= record.state == State::Kept;
            if matches!(record.state, State::Queued | State::Leaving) || record.state.is_programming() {
                record.waiters.push(request);
                self.active[request].pending += 1;
            }
        }
        self.write_back_queued();
    }

    /// What is being programmed of a page, or of all, will not be what a power cut leaves: it was trimmed, or the power has
    /// been cut.
    pub(crate) fn forget_programming(&mut self, logical_page: Option<u32>) {
        let Some(cache) = self.write_cache.as_mut().filter(|_| self.durable.is_some()) else { return };
        for entry in 0..cache.entries.slots() {
            let record = &mut cache.entries[entry];
            let is_meant = logical_page.is_none_or(|page| page == record.logical_page);
            if is_meant && record.state.is_programming() {
                record.state = State::Dropped;
                cache.contents.discard(entry);
            }
        }
    }

    /// A logical page is no longer needed.
    pub(crate) fn drop_cached(&mut self, logical_page: u32) {
        if self.blocks.is_some() {
            self.forget_programming(Some(logical_page));
        }
        let Some(cache) = &mut self.write_cache else { return };
        let Some(entry) = cache.entry_of(logical_page) else { return };
        self.flash_counters.absorbed_bytes.0 += self.page.bytes();
        cache.pages.leave(logical_page);
        match cache.entries[entry].state {
            State::Dirty => {
                cache.dirty.remove(&mut cache.entries, entry);
                (cache.dirty_pages, cache.held) = (cache.dirty_pages - 1, cache.held - 1);
                cache.release(entry);
            }
            State::Kept => cache.release(entry),
            // A request may wait for it: it goes the way of the others, and ends without a slot.
            state => {
                cache.held -= u32::from(state == State::Queued);
                cache.entries[entry].state = State::Dropped;
                cache.contents.discard(entry);
            }
        }
    }
}

crate::state::state_names! {
    State { Unused = 0, Dirty = 1, Queued = 2, Leaving = 3, Dropped = 4, Kept = 5, Programming = 6, Outdated = 7 }
}

crate::state::state! {
    Entry {
        saved { logical_page, state, covered, touched, stream, arriving, charge, nth, links, next }
        empty { waiters }
    }
}

crate::state::state! {
    HotPages {
        saved { end_ns, window }
        built { window_ns }
    }
}

crate::state::parts_of_some_drives!(HotPages);

crate::state::state! {
    WriteCache {
        saved { hot, pages, entries, dirty, queue, dirty_pages, held, queued, leaving_bytes, counters }
        at_rest { contents }
        built { capacity, high, low, policy, flush }
    }
    checked check_restored
}

crate::state::state! {
    WriteCacheCounters { saved { write_hits, write_misses, read_hits, pages_written_back, pages_evicted } }
}

impl WriteCache {
    /// Checks that lists and index lead to the pages of the cache, and to nothing else.
    fn check_restored(&mut self) -> Result<(), String> {
        let (dirty, queue) = (self.dirty, self.queue);
        let (dirty, queue) = (dirty.members(&mut self.entries)?, queue.members(&mut self.entries)?);
        let states = |list: &[u32], wanted: &[State]| list.iter().all(|&e| wanted.contains(&self.entries[e].state));
        let counted = (self.dirty_pages as usize, self.queued as usize) == (dirty.len(), queue.len());
        if !counted || !states(&dirty, &[State::Dirty]) || !states(&queue, &[State::Queued, State::Dropped]) {
            return Err("the lists of the write cache are not those of its pages".to_owned());
        }
        if self.entries.used().into_iter().any(|entry| self.entries[entry].state.is_programming()) {
            return Err("a page of the write cache is being programmed in a drive at rest".to_owned());
        }
        let is_live = |state| !matches!(state, State::Unused | State::Dropped);
        let live = self.entries.used().into_iter().filter(|&entry| is_live(self.entries[entry].state));
        let lost = live.filter(|&entry| self.pages.entry(self.entries[entry].logical_page) != Some(entry)).count();
        if lost > 0 {
            return Err(format!("{lost} pages of the write cache are not found where they are"));
        }
        self.check()
    }
}
