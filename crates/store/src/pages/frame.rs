//! A page in the cache.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::image::{LoadedPage, PageId};
use super::page::{PageRef, Segments};
use crate::error::{Result, StoreError};

/// A page's bytes, and how they differ from the medium.
pub(crate) struct Page {
    /// Head and foot are those of the image; what is between them is the page.
    pub bytes: Box<[u8]>,
    /// The last group that changed it.
    pub lsn: u64,
    /// Changed since it was last written.
    pub dirty: bool,
    /// The slot with its image; `None` where nothing on the medium counts.
    pub slot: Option<u8>,
    /// The image's checksum.
    pub base: u64,
    /// Which block has the last delta.
    pub delta: Option<u8>,
    /// Segments that differ from the image.
    pub changed: Segments,
    /// How many of them the last write had.
    pub written: usize,
}

impl Page {
    /// A page without content on the medium.
    pub(crate) fn new(page_bytes: usize, segments: usize) -> Self {
        Self {
            bytes: vec![0; page_bytes].into_boxed_slice(),
            lsn: 0,
            dirty: false,
            slot: None,
            base: 0,
            delta: None,
            changed: Segments::all(segments),
            written: 0,
        }
    }

    pub(crate) fn loaded(page: LoadedPage) -> Self {
        let LoadedPage { bytes, lsn, slot, base, changed, delta } = page;
        Self { bytes, lsn, dirty: false, slot: Some(slot), base, delta, changed, written: changed.count() }
    }

    pub(crate) fn view(&self) -> PageRef<'_> {
        PageRef(&self.bytes)
    }
}

/// What is in a frame. A frame that is being loaded is latched until it is ready.
pub(crate) enum State {
    Loading,
    Failed(StoreError),
    Ready(Page),
}

/// A page's place in the cache. Whoever has an `Arc` of it keeps it there.
pub(crate) struct Frame {
    pub id: PageId,
    recent: AtomicBool,
    state: RwLock<State>,
}

impl Frame {
    pub(crate) fn new(id: PageId, state: State) -> Arc<Self> {
        Arc::new(Self { id, recent: AtomicBool::new(true), state: RwLock::new(state) })
    }

    /// Notes a use, for the replacement.
    pub(crate) fn touch(&self) {
        // A line that is written only when it changes is shared by all readers' cores.
        if !self.recent.load(Ordering::Relaxed) {
            self.recent.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was used since the replacement came by.
    pub(crate) fn is_recent(&self) -> bool {
        self.recent.load(Ordering::Relaxed)
    }

    /// The same; the replacement comes by.
    pub(crate) fn take_recent(&self) -> bool {
        self.recent.swap(false, Ordering::Relaxed)
    }

    /// The state, latched for changes.
    pub(crate) fn latch(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, if nobody has it latched.
    pub(crate) fn try_share(&self) -> Option<RwLockReadGuard<'_, State>> {
        self.state.try_read().ok()
    }

    /// Reads the page.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&Page) -> R) -> Result<R> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Ready(page) => Ok(read(page)),
            other => Err(other.error(self.id)),
        }
    }

    /// Changes the page.
    pub(crate) fn write<R>(&self, write: impl FnOnce(&mut Page) -> R) -> Result<R> {
        match &mut *self.latch() {
            State::Ready(page) => Ok(write(page)),
            other => Err(other.error(self.id)),
        }
    }
}

impl State {
    fn error(&self, page: PageId) -> StoreError {
        match self {
            Self::Failed(error) => error.clone(),
            _ => StoreError::corrupt(format!("page {page}"), "loading it was interrupted"),
        }
    }
}
