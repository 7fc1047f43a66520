//! The state of one page in one word: where it is, who holds it, whether it is dirty or on its way.
//!
//! ```text
//!              begin_load            loaded                    evict (clean, nobody holds it)
//!   absent ───────────────▶ busy ──────────────▶ resident ──────────────────────────────▶ absent
//!     ▲                      │ ▲                  │   ▲
//!     └── abandon ───────────┘ └──── take_out ────┘   │ out_failed: a dirty page without a place in the policy
//!     └── out_written ─────────(dirty, nobody holds)──┘
//! ```
//!
//! A word for each page of the store and no table of frames: a hit is one compare-and-exchange on a word that only
//! users of the same page touch. V. Leis et al., *Virtual-Memory Assisted Buffer Management*, SIGMOD 2023, section 3.2,
//! has such words.
//!
//! While a page's image is being written it is *writing*, and not dirty until somebody changes it again, so that a
//! write that fails can make it dirty again and a write of the same page never overtakes another one.
//!
//! Readers of a page that were never written for a while do not even do that: they announce themselves
//! ([`super::readers`]). Who wants to write the page or take it out of its frame first forbids that, then looks whether
//! somebody did.
//!
//! This file knows nothing but `crate::sync` and `super::readers`, so that a model checker can run it:
//! `tests/page_words.rs`.

use super::readers::{ReaderSlot, Readers};
use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, SHARDS, SPINS, THREADS, pause};

const FRAME_BITS: u32 = 28;
const FRAME: u64 = (1 << FRAME_BITS) - 1;
/// One shared latch.
const READER: u64 = 1 << FRAME_BITS;
const READERS: u64 = 0x3fff << FRAME_BITS;
/// One holder, with a latch or without.
const PIN: u64 = 1 << 42;
const PINS: u64 = 0x3fff << 42;
/// Readers may announce themselves instead of being counted here; nobody writes the page, and it is in a frame.
const ANNOUNCED: u64 = 1 << 56;
const EXCLUSIVE: u64 = 1 << 57;
const DIRTY: u64 = 1 << 58;
const WRITING: u64 = 1 << 59;
const RESIDENT: u64 = 1 << 60;
const BUSY: u64 = 1 << 61;
const WAITERS: u64 = 1 << 62;
const ORPHAN: u64 = 1 << 63;

/// Frames that a word can name.
pub const FRAMES_MAX: u64 = FRAME + 1;

/// How a page is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It stays in its frame; others may read and write it.
    Pinned,
    /// It stays, and nobody writes it.
    Shared,
    /// It stays, nobody else reads or writes it, and it is dirty.
    Exclusive,
}

impl Hold {
    const fn units(self) -> u64 {
        match self {
            Self::Pinned => PIN,
            Self::Shared => PIN | READER,
            Self::Exclusive => PIN | EXCLUSIVE,
        }
    }

    /// Bits that must be clear for it.
    const fn excluded_by(self) -> u64 {
        match self {
            Self::Pinned => 0,
            Self::Shared => EXCLUSIVE,
            Self::Exclusive => EXCLUSIVE | READERS,
        }
    }
}

/// What came of wanting to hold a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fix {
    /// It is held, in this frame.
    Held(u32),
    /// It has no frame.
    Absent,
    /// Somebody else is in the way, as the word says.
    Blocked(u64),
    /// Readers are in the way, who tell nobody when they are done.
    Announced,
}

/// What is seen of a page that nobody need hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Whether it has a frame and is neither read nor written out of it.
    pub is_resident: bool,
    /// Its frame.
    pub frame: u32,
    /// Whether somebody holds it, or it is on its way.
    pub is_held: bool,
    /// Whether it has changes that no write in progress has.
    pub is_dirty: bool,
    /// Whether its image is being written.
    pub is_writing: bool,
    /// Whether the policy does not know it.
    pub is_orphan: bool,
}

/// One page's word.
#[derive(Debug)]
pub struct PageWord(AtomicU64);

impl PageWord {
    /// Of a page without a frame.
    pub fn absent() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Changes the word by `change` until that is done or it says no; the old word and whether it was changed.
    #[inline]
    fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let Some(new) = change(word) else { return Err(word) };
            match self.0.compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(word),
                Err(now) => word = now,
            }
        }
    }

    /// Changes the word as [`Self::update`] does and wakes who waits for it.
    fn update_and_wake(&self, waiters: &Waiters, change: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let old = self.update(|word| change(word).map(|new| new & !WAITERS)).ok()?;
        if old & WAITERS != 0 {
            waiters.wake(self);
        }
        Some(old)
    }

    /// Its frame, if it has one; some frame else.
    #[inline]
    pub fn probable_frame(&self) -> u32 {
        (self.0.load(Ordering::Relaxed) & FRAME) as u32
    }

    /// What readers announce: where the word is, which is nobody else's.
    fn key(&self) -> u64 {
        std::ptr::from_ref(self).addr() as u64
    }

    /// Reads the page without a trace in the word, where that is allowed: its frame, and where the reader has announced
    /// itself, to be left afterwards.
    #[inline]
    pub fn announce<'a>(&self, thread: usize, waiters: &'a Waiters) -> Option<(u32, &'a ReaderSlot)> {
        if self.0.load(Ordering::Relaxed) & ANNOUNCED == 0 {
            return None;
        }
        let place = waiters.readers.announce(thread, self.key())?;
        let word = self.0.load(Ordering::SeqCst);
        if word & ANNOUNCED == 0 {
            place.leave();
            return None;
        }
        Some(((word & FRAME) as u32, place))
    }

    /// Lets readers announce themselves from now on, where nobody writes the page.
    pub fn let_announce(&self) {
        let may = |word: u64| word & (RESIDENT | EXCLUSIVE | BUSY) == RESIDENT;
        let _ = self.update(|word| may(word).then_some(word | ANNOUNCED));
    }

    /// Holds the page where it is in a frame and nobody is in the way.
    #[inline]
    pub fn try_hold(&self, hold: Hold, waiters: &Waiters) -> Fix {
        let is_full = |word: u64| word & PINS == PINS || word & READERS == READERS;
        let held = self.update(|word| {
            let may = word & RESIDENT != 0 && word & hold.excluded_by() == 0 && !is_full(word);
            // Whether the page is dirty then is only known when nobody is found to read it.
            let (dirty, forbidden) = match hold {
                Hold::Exclusive if word & ANNOUNCED == 0 => (DIRTY, 0),
                Hold::Exclusive => (0, ANNOUNCED),
                _ => (0, 0),
            };
            may.then(|| (word + hold.units()) & !forbidden | dirty)
        });
        match held {
            Ok(word) if hold == Hold::Exclusive && word & ANNOUNCED != 0 => self.after_readers(word, waiters),
            Ok(word) => Fix::Held((word & FRAME) as u32),
            Err(word) if word & (RESIDENT | BUSY) == 0 => Fix::Absent,
            Err(word) => Fix::Blocked(word),
        }
    }

    /// Holds a page exclusively that readers could announce until now, if none of them is still there.
    #[cold]
    fn after_readers(&self, word: u64, waiters: &Waiters) -> Fix {
        if waiters.readers.has(self.key()) {
            self.update_and_wake(waiters, |word| Some((word - Hold::Exclusive.units()) | ANNOUNCED));
            return Fix::Announced;
        }
        self.0.fetch_or(DIRTY, Ordering::AcqRel);
        Fix::Held((word & FRAME) as u32)
    }

    /// Holds the page as soon as nobody is in the way; [`Fix::Absent`] where it has no frame.
    pub fn hold(&self, hold: Hold, waiters: &Waiters) -> Fix {
        for _ in 0..SPINS {
            match self.try_hold(hold, waiters) {
                Fix::Blocked(_) | Fix::Announced => std::hint::spin_loop(),
                fixed => return fixed,
            }
        }
        let mut nth = 0;
        loop {
            let fixed = waiters.until(self, || match self.try_hold(hold, waiters) {
                Fix::Blocked(word) => Err(word),
                fixed => Ok(fixed),
            });
            if fixed != Fix::Announced {
                return fixed;
            }
            pause(nth);
            nth = nth.saturating_add(1);
        }
    }

    /// Lets go.
    #[inline]
    pub fn release(&self, hold: Hold, waiters: &Waiters) {
        let word = self.0.fetch_sub(hold.units(), Ordering::AcqRel) - hold.units();
        if word & WAITERS != 0 && word & (EXCLUSIVE | READERS) == 0 {
            self.update_and_wake(waiters, Some);
        }
    }

    /// Takes an absent page for reading it into a frame; `false` where somebody else was first.
    pub fn begin_load(&self) -> bool {
        self.update(|word| (word & (RESIDENT | BUSY) == 0).then_some(word | BUSY)).is_ok()
    }

    /// The page that was taken for reading is in this frame, and held so.
    pub fn loaded(&self, frame: u32, hold: Option<Hold>, waiters: &Waiters) {
        let held = hold.map_or(0, Hold::units);
        let dirty = if hold == Some(Hold::Exclusive) { DIRTY } else { 0 };
        self.update_and_wake(waiters, |_| Some(RESIDENT | u64::from(frame) | held | dirty));
    }

    /// The page that was taken for reading has no frame.
    pub fn abandon(&self, waiters: &Waiters) {
        self.update_and_wake(waiters, |_| Some(0));
    }

    /// Takes a clean page that nobody holds out of its frame, which it gives.
    pub fn evict(&self, waiters: &Waiters) -> Option<u32> {
        let frame = self.take(RESIDENT, waiters)?;
        self.update_and_wake(waiters, |_| Some(0));
        Some(frame)
    }

    /// Takes a dirty page that nobody holds out of everybody's reach for writing it; it keeps its frame, which it
    /// gives.
    pub fn take_out(&self, waiters: &Waiters) -> Option<u32> {
        self.take(RESIDENT | DIRTY, waiters)
    }

    /// Takes a page that nobody holds or reads out of everybody's reach.
    fn take(&self, state: u64, waiters: &Waiters) -> Option<u32> {
        let free = |word: u64| word & (RESIDENT | PINS | DIRTY | WRITING) == state;
        let out = |word: u64| (word & (FRAME | WAITERS)) | BUSY;
        let old = self.update(|word| free(word).then(|| out(word))).ok()?;
        if old & ANNOUNCED != 0 && waiters.readers.has(self.key()) {
            // Nobody changes a busy word, but who starts to wait for it.
            self.update_and_wake(waiters, |_| Some(old));
            return None;
        }
        Some((old & FRAME) as u32)
    }

    /// The page that was taken out is written: it has no frame any more.
    pub fn out_written(&self, waiters: &Waiters) {
        self.update_and_wake(waiters, |_| Some(0));
    }

    /// The page that was taken out could not be written: it is dirty in its frame, and the policy does not know it.
    pub fn out_failed(&self, waiters: &Waiters) {
        self.update_and_wake(waiters, |word| Some((word & FRAME) | RESIDENT | DIRTY | ORPHAN));
    }

    /// Takes a dirty page's image for writing, with a shared latch until that is copied; it gives the frame. `None`
    /// where there is nothing to write or somebody else writes it, to the page or to the store.
    pub fn begin_write(&self) -> Option<u32> {
        let may = |word: u64| {
            word & (RESIDENT | DIRTY | EXCLUSIVE | WRITING) == RESIDENT | DIRTY
                && word & PINS != PINS
                && word & READERS != READERS
        };
        let write = |word: u64| ((word & !DIRTY) | WRITING) + Hold::Shared.units();
        self.update(|word| may(word).then(|| write(word))).ok().map(|word| (word & FRAME) as u32)
    }

    /// The write of the image has ended.
    pub fn end_write(&self, has_failed: bool, waiters: &Waiters) {
        let dirty = if has_failed { DIRTY } else { 0 };
        self.update_and_wake(waiters, |word| Some((word & !WRITING) | dirty));
    }

    /// Waits until nobody changes the page or writes it to the store.
    pub fn wait_until_quiet(&self, waiters: &Waiters) {
        let is_quiet = |word: u64| word & (EXCLUSIVE | WRITING | BUSY) == 0;
        waiters
            .until(self, || Some(self.0.load(Ordering::Acquire)).filter(|&word| !is_quiet(word)).map_or(Ok(()), Err));
    }

    /// What is to be seen of it now.
    #[inline]
    pub fn view(&self) -> View {
        let word = self.0.load(Ordering::Acquire);
        View {
            is_resident: word & RESIDENT != 0,
            frame: (word & FRAME) as u32,
            is_held: word & (PINS | BUSY | WRITING) != 0,
            is_dirty: word & DIRTY != 0,
            is_writing: word & WRITING != 0,
            is_orphan: word & ORPHAN != 0,
        }
    }
}

/// Where threads wait for pages. Several pages share a place: who is woken for another one looks and sleeps again.
#[derive(Debug)]
pub struct Waiters {
    shards: Vec<(Mutex<()>, Condvar)>,
    /// Those who read without a trace in the words.
    readers: Readers,
}

impl Waiters {
    /// Nobody waits.
    pub fn new() -> Self {
        let shards = (0..SHARDS).map(|_| (Mutex::new(()), Condvar::new())).collect();
        Self { shards, readers: Readers::new(THREADS) }
    }

    fn shard(&self, word: &PageWord) -> &(Mutex<()>, Condvar) {
        // Words are eight bytes apart.
        &self.shards[(std::ptr::from_ref(word).addr() >> 3) % self.shards.len()]
    }

    /// Waits until `done` does not say any more that this word is in the way.
    fn until<T>(&self, word: &PageWord, done: impl Fn() -> Result<T, u64>) -> T {
        let (lock, changed) = self.shard(word);
        let mut guard = lock.lock().unwrap_or_else(|broken| broken.into_inner());
        loop {
            let in_the_way = match done() {
                Ok(done) => return done,
                Err(word) => word,
            };
            // The word says that somebody waits only while it is in the way, and who reads that needs the lock to wake:
            // so from here until the sleep nobody can wake in vain. Any word but the very one that was in the way would
            // not do: it may have been there before and be there again, with nobody left to wake.
            let told = word.0.compare_exchange(in_the_way, in_the_way | WAITERS, Ordering::AcqRel, Ordering::Acquire);
            if told.is_ok() {
                guard = changed.wait(guard).unwrap_or_else(|broken| broken.into_inner());
            }
        }
    }

    fn wake(&self, word: &PageWord) {
        let (lock, changed) = self.shard(word);
        drop(lock.lock().unwrap_or_else(|broken| broken.into_inner()));
        changed.notify_all();
    }
}

impl Default for Waiters {
    fn default() -> Self {
        Self::new()
    }
}
