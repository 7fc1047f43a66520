//! Which pages a pool knows: those in its frames, and those that the policy only remembers (ghosts).
//!
//! A page that is known has an entry, a small number that policies index their own arrays with. Entries are used again,
//! so that memory is bounded by frames and ghosts, and nothing is allocated or hashed on an access:
//!
//! ```text
//!   page ── table ──▶ entry, with a bit for ghosts ──▶ page, dirty bit, pins; lists and counts of the policy
//! ```

use crate::memory::prefetch;

/// A page, numbered densely from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Page(pub u32);

/// Place of a known page in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry(pub u32);

impl Entry {
    #[inline]
    pub(crate) const fn at(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is in a frame.
    Resident(Entry),
    /// The policy remembers it.
    Ghost(Entry),
    /// Nothing.
    Unknown,
}

const NONE: u32 = u32::MAX;
const GHOST: u32 = 1 << 31;

const RESIDENT: u32 = 1;
const PREFETCHED: u32 = 2;
/// One user that holds the page; they are counted above the flags.
const PIN: u32 = 4;

/// What an entry stands for.
#[derive(Clone, Copy, Debug)]
struct Record {
    page: u32,
    /// [`RESIDENT`], [`PREFETCHED`], and [`PIN`] times how many users hold it.
    state: u32,
}

/// The pages that a pool knows.
#[derive(Clone, Debug)]
pub struct Directory {
    /// By page: its entry, with [`GHOST`] where it has no frame.
    table: Vec<u32>,
    /// By entry.
    records: Vec<Record>,
    /// By entry: a bit for changes that are not on the drive. All that a hit touches of an entry: together they stay in
    /// the fastest cache.
    dirty_bits: Vec<u64>,
    free: Vec<u32>,
    frames: usize,
    resident: usize,
    pinned: usize,
    dirty: usize,
}

impl Directory {
    /// For a pool of so many frames over so many pages, whose policy remembers at most `ghosts` pages.
    pub(crate) fn new(frames: usize, pages: usize, ghosts: usize) -> Self {
        // One more than there are frames and ghosts: a page that comes in has its entry before its ghost is dropped.
        let entries = frames + ghosts + 1;
        Self {
            table: vec![NONE; pages],
            records: vec![Record { page: NONE, state: 0 }; entries],
            dirty_bits: vec![0; entries.div_ceil(64)],
            free: (0..entries as u32).rev().collect(),
            frames,
            resident: 0,
            pinned: 0,
            dirty: 0,
        }
    }

    /// Where a page is.
    #[inline]
    pub fn find(&self, page: Page) -> Found {
        match self.table.get(page.0 as usize) {
            Some(&entry) if entry < GHOST => Found::Resident(Entry(entry)),
            Some(&entry) if entry != NONE => Found::Ghost(Entry(entry & !GHOST)),
            _ => Found::Unknown,
        }
    }

    /// Says that a page is going to be looked up.
    #[inline]
    pub(crate) fn expect(&self, page: Page) {
        prefetch(&self.table, page.0 as usize);
    }

    /// Says that what an entry stands for is going to be requested.
    #[inline]
    pub(crate) fn expect_entry(&self, entry: Entry) {
        prefetch(&self.records, entry.at());
    }

    /// The entry of a page; of one that nobody knows some number that is no entry.
    #[inline]
    pub(crate) fn probable_entry(&self, page: Page) -> Entry {
        Entry(self.table.get(page.0 as usize).map_or(NONE, |&entry| entry) & !GHOST)
    }

    #[inline]
    fn state(&self, entry: Entry) -> u32 {
        self.records[entry.at()].state
    }

    /// Pages that there are, numbered from 0.
    pub(crate) fn pages(&self) -> usize {
        self.table.len()
    }

    /// The page of an entry.
    #[inline]
    pub fn page(&self, entry: Entry) -> Page {
        Page(self.records[entry.at()].page)
    }

    /// Whether the page has changes that are not on the drive.
    #[inline]
    pub fn is_dirty(&self, entry: Entry) -> bool {
        self.dirty_bits[entry.at() / 64] >> (entry.at() % 64) & 1 != 0
    }

    /// Whether the page is in a frame.
    pub fn is_resident(&self, entry: Entry) -> bool {
        self.state(entry) & RESIDENT != 0
    }

    /// Whether nobody holds the page, so that it may be evicted.
    #[inline]
    pub fn is_free(&self, entry: Entry) -> bool {
        self.pinned == 0 || self.state(entry) < PIN
    }

    /// Frames of the pool.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Pages in frames.
    pub fn resident(&self) -> usize {
        self.resident
    }

    /// Dirty pages.
    pub fn dirty(&self) -> usize {
        self.dirty
    }

    pub(crate) fn is_full(&self) -> bool {
        self.resident >= self.frames
    }

    /// Whether every page in a frame is pinned.
    pub(crate) fn is_all_pinned(&self) -> bool {
        self.resident == self.pinned
    }

    /// Gives a page a frame, which is known as is said; a ghost keeps its entry. `None` where there is no space, which
    /// a policy that keeps to its ghosts never causes.
    #[inline]
    pub(crate) fn admit(&mut self, page: Page, known: Found) -> Option<Entry> {
        let entry = match known {
            Found::Ghost(entry) => entry,
            Found::Resident(_) => return None,
            Found::Unknown => Entry(self.free.pop()?),
        };
        self.table[page.0 as usize] = entry.0;
        self.records[entry.at()] = Record { page: page.0, state: RESIDENT };
        self.resident += 1;
        Some(entry)
    }

    #[inline]
    fn leave(&mut self, entry: Entry) {
        let Record { page, state } = self.records[entry.at()];
        if state & RESIDENT != 0 {
            debug_assert!(!self.is_dirty(entry), "changes of page {page} would be lost");
            debug_assert!(state < PIN, "page {page} is pinned");
            self.records[entry.at()].state = 0;
            self.resident -= 1;
        }
    }

    /// For policies: the page leaves its frame and stays a ghost.
    #[inline]
    pub fn remember(&mut self, entry: Entry) {
        self.leave(entry);
        let page = self.page(entry);
        self.table[page.0 as usize] = entry.0 | GHOST;
    }

    /// For policies: the page leaves its frame, or stops being a ghost, and its entry is free.
    #[inline]
    pub fn forget(&mut self, entry: Entry) {
        self.leave(entry);
        let page = self.page(entry);
        self.table[page.0 as usize] = NONE;
        self.records[entry.at()].page = NONE;
        self.free.push(entry.0);
    }

    /// Marks a page that is written; nothing branches on what nobody can guess.
    #[inline]
    pub(crate) fn mark_dirty_if(&mut self, entry: Entry, is_write: bool) {
        let (bits, shift) = (&mut self.dirty_bits[entry.at() / 64], entry.at() % 64);
        self.dirty += (u64::from(is_write) & !(*bits >> shift)) as usize;
        *bits |= u64::from(is_write) << shift;
    }

    #[inline]
    pub(crate) fn mark_clean(&mut self, entry: Entry) {
        let (bits, shift) = (&mut self.dirty_bits[entry.at() / 64], entry.at() % 64);
        self.dirty -= (*bits >> shift & 1) as usize;
        *bits &= !(1 << shift);
    }

    pub(crate) fn mark_prefetched(&mut self, entry: Entry) {
        self.records[entry.at()].state |= PREFETCHED;
    }

    /// Whether it was prefetched and is used for the first time.
    pub(crate) fn take_prefetched(&mut self, entry: Entry) -> bool {
        let state = &mut self.records[entry.at()].state;
        let was = *state & PREFETCHED != 0;
        *state &= !PREFETCHED;
        was
    }

    pub(crate) fn pin(&mut self, entry: Entry) {
        let state = &mut self.records[entry.at()].state;
        self.pinned += usize::from(*state < PIN);
        *state += PIN;
    }

    /// False where nobody held it.
    pub(crate) fn unpin(&mut self, entry: Entry) -> bool {
        let state = &mut self.records[entry.at()].state;
        if *state < PIN {
            return false;
        }
        *state -= PIN;
        self.pinned -= usize::from(*state < PIN);
        true
    }
}
