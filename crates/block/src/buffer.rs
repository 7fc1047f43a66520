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

    #[allow(clippy::expect_used, reason = "only lengths beyond isize::MAX fail, and no such slice can exist")]
    fn layout(length: usize) -> Layout {
        Layout::from_size_align(length.max(ALIGNMENT), ALIGNMENT).expect("a buffer length beyond the address space")
    }
}

impl Drop for IoBuffer {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with this very layout, and nobody else owns it.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.length)) }
    }
}

// SAFETY: the buffer owns its memory alone, as a `Vec<u8>` does.
unsafe impl Send for IoBuffer {}

impl Deref for IoBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` points to at least `length` initialised bytes that live as long as `self`.
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
}
