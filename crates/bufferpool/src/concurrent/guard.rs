//! What a user of a page holds: a pin, a shared latch, or an exclusive one. Letting go is dropping it.

use std::ops::{Deref, DerefMut};

use super::frames::Frames;
use super::readers::ReaderSlot;
use super::word::{Fix, Hold, PageWord, Waiters};
use crate::directory::Page;

/// A page in its frame, held.
#[derive(Debug)]
pub(super) struct Held<'a> {
    pub(super) page: Page,
    pub(super) word: &'a PageWord,
    pub(super) waiters: &'a Waiters,
    pub(super) frames: &'a Frames,
    pub(super) frame: u32,
    pub(super) hold: Hold,
    /// Where a reader has announced itself, that the word does not know.
    pub(super) place: Option<&'a ReaderSlot>,
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        match self.place {
            Some(place) => place.leave(),
            None => self.word.release(self.hold, self.waiters),
        }
    }
}

impl<'a> Held<'a> {
    /// The same page, held so besides.
    fn besides(&self, hold: Hold) -> Held<'a> {
        let Self { page, word, waiters, frames, frame, .. } = *self;
        // A page that is pinned has a frame.
        let fixed = word.hold(hold, waiters);
        debug_assert_eq!(fixed, Fix::Held(frame), "page {} is pinned", page.0);
        Held { page, word, waiters, frames, frame, hold, place: None }
    }
}

/// A page that stays in its frame. It is not latched: take [`read`](Self::read) or [`write`](Self::write) of it for so
/// long as its bytes are needed.
#[derive(Debug)]
pub struct PinnedPage<'a>(pub(super) Held<'a>);

impl<'a> PinnedPage<'a> {
    /// Which page.
    pub fn page(&self) -> Page {
        self.0.page
    }

    /// Latches it for reading; waits for who writes it.
    pub fn read(&self) -> ReadPage<'a> {
        ReadPage(self.0.besides(Hold::Shared))
    }

    /// Latches it for writing; waits for everybody else. The page is dirty from now on.
    pub fn write(&self) -> WritePage<'a> {
        WritePage(self.0.besides(Hold::Exclusive))
    }
}

/// A page that is read: it stays in its frame, and nobody writes it.
#[derive(Debug)]
pub struct ReadPage<'a>(pub(super) Held<'a>);

impl ReadPage<'_> {
    /// Which page.
    pub fn page(&self) -> Page {
        self.0.page
    }
}

impl Deref for ReadPage<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the page is pinned shared until `self` is dropped, so nobody writes its frame.
        unsafe { self.0.frames.bytes(self.0.frame) }
    }
}

/// A page that is written: it stays in its frame, nobody else reads or writes it, and it is dirty.
#[derive(Debug)]
pub struct WritePage<'a>(pub(super) Held<'a>);

impl WritePage<'_> {
    /// Which page.
    pub fn page(&self) -> Page {
        self.0.page
    }
}

impl Deref for WritePage<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the page is pinned exclusively until `self` is dropped, so nobody writes its frame but through
        // `self`.
        unsafe { self.0.frames.bytes(self.0.frame) }
    }
}

impl DerefMut for WritePage<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the page is pinned exclusively until `self` is dropped, and `self` is borrowed exclusively.
        unsafe { self.0.frames.bytes_mut(self.0.frame) }
    }
}
