//! Readers that do not touch the word of their page: each says which page it reads in a place of its own thread.
//!
//! ```text
//!   reader                                    who writes the page or takes it out of its frame
//!   1 announces the page in its own place     1 changes the word, so that nobody may announce any more
//!   2 looks at the word: may it?              2 looks at all places: does anybody read it?
//!   3 reads, and clears the place             3 changes the word back, if so
//! ```
//!
//! Between 1 and 2 each of them has a full fence, so at least one sees the other. A hit then writes nothing that other
//! threads write: they take each other's lines only where somebody writes or a page is evicted.
//!
//! Sources: D. Dice, A. Kogan, *BRAVO: Biased Locking for Reader-Writer Locks*, USENIX ATC 2019, for readers that
//! announce themselves until somebody writes; M. M. Michael, *Hazard Pointers*, IEEE TPDS 15(6), 2004, for the places.
//!
//! This file knows nothing but `crate::sync`, so that a model checker can run it: `tests/page_words.rs`.

use crate::sync::{AtomicU64, Ordering, PLACES, full_fence, publish};

/// What one reader reads: the key of a page, or 0.
#[derive(Debug)]
pub struct ReaderSlot(AtomicU64);

impl ReaderSlot {
    /// The page is read no more.
    #[inline]
    pub fn leave(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// The places of one thread, on cache lines that no other thread's are on: pages that it reads so at a time. Further
/// ones are counted in their words.
#[derive(Debug)]
#[repr(align(128))]
struct Own([ReaderSlot; PLACES]);

/// The places of all threads.
#[derive(Debug)]
pub struct Readers(Box<[Own]>);

impl Readers {
    /// For so many threads; others have no places.
    pub fn new(threads: usize) -> Self {
        let own = |_| Own(std::array::from_fn(|_| ReaderSlot(AtomicU64::new(0))));
        Self((0..threads).map(own).collect())
    }

    /// Announces that a thread reads a page; `None` where it has no place left. Whatever the caller loads afterwards is
    /// not older than the announcement.
    #[inline]
    pub fn announce(&self, thread: usize, key: u64) -> Option<&ReaderSlot> {
        let own = self.0.get(thread)?;
        // Only its own thread takes a place.
        let place = own.0.iter().find(|place| place.0.load(Ordering::Relaxed) == 0)?;
        publish(&place.0, key);
        Some(place)
    }

    /// Whether somebody has announced that page, or did so before the caller changed its word.
    pub fn has(&self, key: u64) -> bool {
        full_fence();
        self.0.iter().flat_map(|own| &own.0).any(|place| place.0.load(Ordering::Acquire) == key)
    }
}
