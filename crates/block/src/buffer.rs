//! Memory that a drive can read and write directly.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Alignment of every buffer: a page, which satisfies `O_DIRECT` on every drive.
const ALIGNMENT: usize = 4096;

/// A page-aligned, zero-initialised buffer, owned by whoever holds it.
///
/// ```
/// let mut buffer = flashwise_block::IoBuffer::zeroed(4096);
/// buffer[..5].copy_from_slice(b"hello");
/// assert_eq!(&buffer[..6], b"hello\0");
/// ```
pub struct IoBuffer {
    start: NonNull<u8>,
    length: usize,
}

impl IoBuffer {
    /// `length` zero bytes.
    ///
    /// # Panics
    /// When `length` overflows the address space; aborts when memory runs out, as every Rust allocation does.
    pub fn zeroed(length: usize) -> Self {
        let layout = Self::layout(length);
        // SAFETY: the layout has a non-zero size (`layout` rounds an empty buffer up to one page).
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, length }
    }

    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut buffer = Self::zeroed(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }

    /// Bytes allocated for a buffer of a length: a power of two, so that buffers of similar lengths can be reused.
    pub fn allocation_size(length: usize) -> usize {
        length.max(ALIGNMENT).checked_next_power_of_two().unwrap_or(usize::MAX)
    }

    /// Changes the length within the same [allocation](Self::allocation_size); the bytes are kept. `false`, with the
    /// length unchanged, if the allocation is too small.
    pub fn set_length(&mut self, length: usize) -> bool {
        let fits = Self::allocation_size(length) == Self::allocation_size(self.length);
        if fits {
            self.length = length;
        }
        fits
    }

    #[allow(clippy::expect_used, reason = "only lengths beyond 2⁶² fail, and no machine has such memory")]
    fn layout(length: usize) -> Layout {
        Layout::from_size_align(Self::allocation_size(length), ALIGNMENT)
            .expect("a buffer length beyond the address space")
    }
}

impl Drop for IoBuffer {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with this very layout, which a change of length keeps, and has no
        // other owner.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.length)) }
    }
}

// SAFETY: the buffer owns its memory alone, as a `Vec<u8>` does.
unsafe impl Send for IoBuffer {}

impl Deref for IoBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` points to `allocation_size(length)` initialised bytes, at least `length`, that live as long
        // as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for IoBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` makes the borrow exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl fmt::Debug for IoBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IoBuffer({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_for_direct_io_zeroed_and_as_long_as_asked() {
        for length in [0, 1, 512, 4096, 70_000] {
            let buffer = IoBuffer::zeroed(length);
            assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
            assert_eq!(&*buffer, vec![0; length]);
        }
    }

    #[test]
    fn a_buffer_can_be_as_long_as_its_allocation_and_keeps_its_bytes() {
        let mut buffer = IoBuffer::zeroed(9000);
        buffer.fill(7);
        assert!(buffer.set_length(16_384) && buffer.len() == 16_384);
        assert!(buffer[..9000].iter().all(|&byte| byte == 7) && buffer[9000..].iter().all(|&byte| byte == 0));
        assert!(!buffer.set_length(8192) && !buffer.set_length(16_385) && buffer.len() == 16_384);
        assert!(buffer.set_length(8193) && buffer.len() == 8193);
    }
}
