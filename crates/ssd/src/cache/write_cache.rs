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
//! `controller.write_cache.flush` says. From the moment it is chosen it takes space in the write buffer, no longer in
//! the cache; where the buffer is full, the choice waits, and so do the writes that need the page's room, in their
//! order. A write that hits a page which has not been placed yet overwrites it where it is.
//!
//! Where the FTL maps blocks there is no write buffer behind the cache. A page then takes its room there, which bounds
//! how many are in progress, until it is programmed.
//!
//! Only one version of a page is in the cache, and every write goes through it, so that what the cache holds is always
//! newer than what the FTL knows.
//!
//! Source: the cache of MQSim (Tavakkol et al., FAST 2018, section 4.4), of which `flush = "immediate"` with
//! `hot_window_ns` is the behaviour; write-back with watermarks as in Gal and Toledo, "Algorithms and Data Structures
//! for Flash Memories", ACM Computing Surveys 37(2), 2005, section 3.

use super::cached_pages::CachedPages;
use crate::config::{CacheFlush, CachePolicy, DeviceConfig};
use crate::list::{Fifo, Linked, Slab};
use crate::pages::PageSpan;
use crate::payload::Payload;
use crate::recency::{Links, Ranked, Recency};

/// Where a page of the cache stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
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
    /// Stays for good, because the drive has become read-only and has no space for it.
    Kept,
}

impl State {
    /// In a slot of an FTL of blocks, and not on flash yet.
    pub(crate) fn is_programming(self) -> bool {
        matches!(self, Self::Programming | Self::Outdated)
    }
}

/// A page of the cache.
#[derive(Default)]
pub(crate) struct Entry {
    pub(crate) logical_page: u32,
    pub(crate) state: State,
    /// Granules that hold data wholly, and at all.
    pub(crate) covered: u16,
    pub(crate) touched: u16,
    /// The stream that the last write of it named.
    pub(crate) stream: u16,
    /// It continues while its data arrives, so that it need not be read from DRAM again.
    pub(crate) arriving: bool,
    /// Room that it takes in the write buffer, bytes.
    pub(crate) charge: u32,
    /// Its place in the write that brought it, and the length of that write.
    pub(crate) nth: (u32, u32),
    /// Requests that wait until it is placed.
    pub(crate) waiters: Vec<u32>,
    pub(crate) links: Links,
    pub(crate) next: u32,
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
pub(crate) struct HotPages {
    pub(crate) window_ns: u64,
    /// The window ends with the first write after this.
    pub(crate) end_ns: u64,
    pub(crate) window: u32,
}

impl HotPages {
    /// Notes a write; `true` when the page was written in this window before.
    pub(crate) fn written(&self, pages: &mut CachedPages, logical_page: u32) -> bool {
        pages.written_in(logical_page, self.window) == self.window
    }

    pub(crate) fn turn(&mut self, now_ns: u64) {
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
    pub(crate) capacity: u32,
    pub(crate) high: u32,
    pub(crate) low: u32,
    pub(crate) policy: CachePolicy,
    pub(crate) flush: CacheFlush,
    pub(crate) hot: Option<HotPages>,
    pub(crate) pages: CachedPages,
    pub(crate) entries: Slab<Entry>,
    pub(crate) dirty: Recency,
    pub(crate) queue: Fifo,
    pub(crate) dirty_pages: u32,
    /// Pages that take space in the cache: dirty, and queued unless dropped.
    pub(crate) held: u32,
    /// Pages in the queue, dropped ones included.
    pub(crate) queued: u32,
    /// Room that leaving pages take in the write buffer.
    pub(crate) leaving_bytes: u64,
    pub(crate) contents: Payload,
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
    pub(crate) fn prefetch_place(&self, logical_page: u32) {
        if self.was_used() {
            self.pages.prefetch_place(logical_page);
        }
    }

    /// Says that what is known of a page will be needed soon.
    #[inline]
    pub(crate) fn prefetch_page(&self, logical_page: u32) {
        if self.was_used() {
            self.pages.prefetch(logical_page);
        }
    }

    /// Whether there was ever a page in the cache; as long as there was none, nobody looks for one.
    #[inline]
    pub(crate) fn was_used(&self) -> bool {
        self.entries.slots() > 0
    }

    /// The entry of a page, if it has one.
    pub(crate) fn entry_of(&self, logical_page: u32) -> Option<u32> {
        self.pages.entry(logical_page)
    }

    /// Pages that take space in the cache.
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
    pub(crate) fn programming(&self, logical_page: u32) -> Option<u32> {
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

    /// Brings a page in; one that continues at once, while it arrives, is queued.
    pub(crate) fn insert(&mut self, logical_page: u32, nth: (u32, u32), covered: u16, goes_on: bool) -> u32 {
        let entry = self.entries.take();
        self.pages.enter(logical_page, entry);
        let record = &mut self.entries[entry];
        debug_assert!(record.state == State::Unused && record.waiters.is_empty());
        (record.logical_page, record.nth) = (logical_page, nth);
        (record.covered, record.touched) = (covered, covered);
        self.held += 1;
        debug_assert!(self.held <= self.capacity, "{} pages in a cache of {}", self.held, self.capacity);
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
    pub(crate) fn hit(&mut self, entry: u32) {
        if self.entries[entry].state == State::Dirty && self.policy == CachePolicy::Lru {
            self.dirty.remove(&mut self.entries, entry);
            self.dirty.push(&mut self.entries, entry);
        }
    }

    /// A dirty page is to be written back.
    pub(crate) fn queue(&mut self, entry: u32, arriving: bool) {
        if self.entries[entry].state != State::Dirty {
            return;
        }
        self.dirty.remove(&mut self.entries, entry);
        let record = &mut self.entries[entry];
        (record.state, record.arriving) = (State::Queued, arriving);
        self.queue.push(&mut self.entries, entry);
        (self.dirty_pages, self.queued) = (self.dirty_pages - 1, self.queued + 1);
        debug_assert!(self.dirty_pages <= self.held, "{} of {} pages are dirty", self.dirty_pages, self.held);
    }

    /// The next page to be written back leaves the cache.
    pub(crate) fn pop_queued(&mut self) -> Option<u32> {
        let entry = self.queue.pop(&mut self.entries)?;
        self.queued -= 1;
        let (state, page) = (self.entries[entry].state, self.entries[entry].logical_page);
        debug_assert!(matches!(state, State::Queued | State::Dropped), "page {page} is queued and {state:?}");
        debug_assert!(state == State::Dropped || self.pages.entry(page) == Some(entry), "page {page} is not found");
        if self.entries[entry].state == State::Queued {
            self.entries[entry].state = State::Leaving;
            self.held -= 1;
        }
        Some(entry)
    }

    /// Queues the oldest dirty page.
    pub(crate) fn queue_oldest(&mut self) -> bool {
        let oldest = self.dirty.oldest();
        oldest.inspect(|&entry| self.queue(entry, false)).is_some()
    }

    /// Queues dirty pages down to the low watermark once the high one is passed.
    pub(crate) fn keep_below_watermark(&mut self) {
        if self.flush != CacheFlush::Watermark || self.dirty_pages < self.high {
            return;
        }
        while self.dirty_pages > self.low && self.queue_oldest() {}
    }

    /// A page's slot is free for another page.
    pub(crate) fn release(&mut self, entry: u32) {
        let record = &mut self.entries[entry];
        debug_assert_eq!(record.charge, 0, "a released page takes space in the write buffer");
        debug_assert!(record.waiters.is_empty(), "{:?} wait for a page that is released", record.waiters);
        record.state = State::Unused;
        self.contents.discard(entry);
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

    /// What is being programmed of a page, or of all, will not be what a power cut leaves: it was trimmed, or the power
    /// has been cut.
    pub(crate) fn forget_programming(&mut self, logical_page: Option<u32>) {
        for entry in 0..self.entries.slots() {
            let record = &mut self.entries[entry];
            let is_meant = logical_page.is_none_or(|page| page == record.logical_page);
            if is_meant && record.state.is_programming() {
                record.state = State::Dropped;
                self.contents.discard(entry);
            }
        }
    }

    /// A logical page is no longer needed; gives whether it was there.
    pub(crate) fn drop_page(&mut self, logical_page: u32) -> bool {
        let Some(entry) = self.entry_of(logical_page) else { return false };
        self.pages.leave(logical_page);
        match self.entries[entry].state {
            State::Dirty => {
                self.dirty.remove(&mut self.entries, entry);
                (self.dirty_pages, self.held) = (self.dirty_pages - 1, self.held - 1);
                self.release(entry);
            }
            State::Kept => self.release(entry),
            // A request may wait for it: it goes the way of the others, and ends without a slot.
            state => {
                self.held -= u32::from(state == State::Queued);
                self.entries[entry].state = State::Dropped;
                self.contents.discard(entry);
            }
        }
        true
    }

    /// Queues everything for being written back; a request waits for all that is not on flash yet. Gives for how many
    /// pages, and whether some have no place there.
    pub(crate) fn drain_for(&mut self, request: u32) -> (u32, bool) {
        while self.queue_oldest() {}
        let (mut waited_for, mut has_kept) = (0, false);
        for entry in 0..self.entries.slots() {
            let record = &mut self.entries[entry];
            has_kept |= record.state == State::Kept;
            if matches!(record.state, State::Queued | State::Leaving) || record.state.is_programming() {
                record.waiters.push(request);
                waited_for += 1;
            }
        }
        (waited_for, has_kept)
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
