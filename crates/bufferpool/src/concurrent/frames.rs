//! The memory of the frames: one piece, aligned for direct I/O.
//!
//! Who may touch a frame is said by the word of the page in it ([`super::word`]) and by nothing here.

use std::ptr::NonNull;

use memmap2::{Advice, MmapMut};

use crate::memory::prefetch_at;

/// All frames.
#[derive(Debug)]
pub struct Frames {
    /// Zeros at first, and on a page's boundary. It is reached through `start` alone.
    memory: MmapMut,
    start: NonNull<u8>,
    page_bytes: usize,
}

// SAFETY: the memory is owned by `Frames` alone, and given out by raw pointer only; that a frame's bytes are not
// written by one thread while another one touches them is the promise of those who call the unsafe functions below.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frames {
    /// `frames` frames of `page_bytes` zeros; `None` where the system has no space for them.
    pub fn new(frames: usize, page_bytes: usize) -> Option<Self> {
        let bytes = frames.checked_mul(page_bytes).filter(|&bytes| bytes > 0)?;
        let mut memory = MmapMut::map_anon(bytes).ok()?;
        // On small pages a pool of many frames spends more time in the system's page tables than in itself. The system
        // may take the advice or leave it.
        let _ = memory.advise(Advice::HugePage);
        let start = NonNull::new(memory.as_mut_ptr())?;
        Some(Self { memory, start, page_bytes })
    }

    fn at(&self, frame: u32) -> *mut u8 {
        let offset = frame as usize * self.page_bytes;
        assert!(offset + self.page_bytes <= self.memory.len(), "frame {frame} does not exist");
        // SAFETY: the frame is within the memory, as was just checked.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Says that a frame is going to be read from its start; there need be no such frame.
    #[inline]
    pub fn expect(&self, frame: u32) {
        prefetch_at(self.start.as_ptr().wrapping_add(frame as usize * self.page_bytes));
    }

    /// A frame's bytes.
    ///
    /// # Safety
    /// Nobody may write the frame for as long as the slice is used: its page is pinned shared or exclusively by the
    /// caller, or the caller has taken it for loading or writing it.
    pub unsafe fn bytes(&self, frame: u32) -> &[u8] {
        // SAFETY: the memory is there and initialised (zeros at first), and nobody writes it, as the caller promises.
        unsafe { std::slice::from_raw_parts(self.at(frame), self.page_bytes) }
    }

    /// A frame's bytes, to be written.
    ///
    /// # Safety
    /// Nobody else may touch the frame for as long as the slice is used: its page is pinned exclusively by the caller,
    /// or the caller has taken it for loading it.
    #[allow(clippy::mut_from_ref, reason = "each frame is guarded by its page's word, as a lock's content is")]
    pub unsafe fn bytes_mut(&self, frame: u32) -> &mut [u8] {
        // SAFETY: the memory is there and initialised, and nobody else touches it, as the caller promises.
        unsafe { std::slice::from_raw_parts_mut(self.at(frame), self.page_bytes) }
    }
}
