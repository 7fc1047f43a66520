//! Which pages a pool knows: those in its frames, and those that the policy only remembers (ghosts).
//!
//! A page that is known has an entry, a small number that policies index their own arrays with. Entries are used again,
//! so that memory is bounded by frames and ghosts, and nothing is allocated or hashed on an access:
//!
//! ```text
//!   page ── table ──▶ entry, with a bit for ghosts ──▶ page, dirty bit, pins; lists and counts of the policy
//! ```

use crate::policy::Shape;

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

const DIRTY: u8 = 1;
const RESIDENT: u8 = 2;
const PREFETCHED: u8 = 4;

/// The pages that a pool knows.
#[derive(Clone, Debug)]
pub struct Directory {
    /// By page: its entry, with [`GHOST`] where it has no frame.
    table: Vec<u32>,
    /// By entry: its page.
    pages: Vec<u32>,
    /// By entry: [`DIRTY`], [`RESIDENT`], [`PREFETCHED`].
    flags: Vec<u8>,
    /// By entry: how many users hold it.
    pins: Vec<u32>,
    free: Vec<u32>,
    frames: usize,
    resident: usize,
    pinned: usize,
    dirty: usize,
}

impl Directory {
    /// For a pool of that shape whose policy remembers at most `ghosts` pages.
    pub(crate) fn new(shape: &Shape, ghosts: usize) -> Self {
        // One more than there are frames and ghosts: a page that comes in has its entry before its ghost is let go.
        let entries = shape.frames + ghosts + 1;
        Self {
            table: vec![NONE; shape.pages],
            pages: vec![NONE; entries],
            flags: vec![0; entries],
            pins: vec![0; entries],
            free: (0..entries as u32).rev().collect(),
            frames: shape.frames,
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

    /// Whether there is such a page at all.
    pub(crate) fn has_number(&self, page: Page) -> bool {
        (page.0 as usize) < self.table.len()
    }

    /// The page of an entry.
    #[inline]
    pub fn page(&self, entry: Entry) -> Page {
        Page(self.pages[entry.at()])
    }

    /// Whether the page has changes that are not on the drive.
    #[inline]
    pub fn is_dirty(&self, entry: Entry) -> bool {
        self.flags[entry.at()] & DIRTY != 0
    }

    /// Whether the page is in a frame.
    pub fn is_resident(&self, entry: Entry) -> bool {
        self.flags[entry.at()] & RESIDENT != 0
    }

    /// Whether nobody holds the page, so that it may fall.
    #[inline]
    pub fn is_free(&self, entry: Entry) -> bool {
        self.pinned == 0 || self.pins[entry.at()] == 0
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

    /// Whether every page in a frame is held.
    pub(crate) fn is_all_pinned(&self) -> bool {
        self.resident == self.pinned
    }

    /// Gives a page a frame, which is known as is said; a ghost keeps its entry. `None` where there is no room, which a
    /// policy that keeps to its ghosts never causes.
    #[inline]
    pub(crate) fn admit(&mut self, page: Page, known: Found) -> Option<Entry> {
        let entry = match known {
            Found::Ghost(entry) => entry,
            Found::Resident(_) => return None,
            Found::Unknown => Entry(self.free.pop()?),
        };
        self.table[page.0 as usize] = entry.0;
        self.pages[entry.at()] = page.0;
        self.flags[entry.at()] = RESIDENT;
        self.resident += 1;
        Some(entry)
    }

    fn leave(&mut self, entry: Entry) {
        if self.is_resident(entry) {
            debug_assert!(!self.is_dirty(entry), "changes of page {} would be lost", self.pages[entry.at()]);
            debug_assert!(self.pins[entry.at()] == 0, "page {} is held", self.pages[entry.at()]);
            self.flags[entry.at()] = 0;
            self.resident -= 1;
        }
    }

    /// For policies: the page leaves its frame and stays a ghost.
    pub fn remember(&mut self, entry: Entry) {
        self.leave(entry);
        self.table[self.pages[entry.at()] as usize] = entry.0 | GHOST;
    }

    /// For policies: the page leaves its frame, or stops being a ghost, and its entry is free.
    #[inline]
    pub fn forget(&mut self, entry: Entry) {
        self.leave(entry);
        self.table[self.pages[entry.at()] as usize] = NONE;
        self.pages[entry.at()] = NONE;
        self.free.push(entry.0);
    }

    #[inline]
    pub(crate) fn mark_dirty(&mut self, entry: Entry) {
        let flags = &mut self.flags[entry.at()];
        self.dirty += usize::from(*flags & DIRTY == 0);
        *flags |= DIRTY;
    }

    pub(crate) fn mark_clean(&mut self, entry: Entry) {
        let flags = &mut self.flags[entry.at()];
        self.dirty -= usize::from(*flags & DIRTY != 0);
        *flags &= !DIRTY;
    }

    pub(crate) fn mark_prefetched(&mut self, entry: Entry) {
        self.flags[entry.at()] |= PREFETCHED;
    }

    /// Whether it was prefetched and is used for the first time.
    pub(crate) fn take_prefetched(&mut self, entry: Entry) -> bool {
        let was = self.flags[entry.at()] & PREFETCHED != 0;
        self.flags[entry.at()] &= !PREFETCHED;
        was
    }

    pub(crate) fn pin(&mut self, entry: Entry) {
        self.pins[entry.at()] += 1;
        self.pinned += usize::from(self.pins[entry.at()] == 1);
    }

    /// False where nobody held it.
    pub(crate) fn unpin(&mut self, entry: Entry) -> bool {
        let pins = &mut self.pins[entry.at()];
        if *pins == 0 {
            return false;
        }
        *pins -= 1;
        self.pinned -= usize::from(*pins == 0);
        true
    }
}
