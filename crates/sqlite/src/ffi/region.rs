//! A piece of memory that connections share: SQLite alone reads and writes it.

use std::ffi::c_void;
use std::ptr::NonNull;

/// Memory of whole 8-byte words, zeroed, that stays where it is until it is dropped.
pub(crate) struct Region {
    start: NonNull<u64>,
    words: usize,
}

// SAFETY: this side never reads or writes the memory after its creation; SQLite, which does, orders its accesses by
// locks and barriers of its own and may use it from any thread.
unsafe impl Send for Region {}

impl Region {
    pub(crate) fn zeroed(bytes: usize) -> Self {
        let words = bytes.div_ceil(size_of::<u64>()).max(1);
        // No reference to the box remains: writes of C code through the pointer alias nothing.
        let memory = NonNull::from(Box::leak(vec![0_u64; words].into_boxed_slice()));
        Self { start: memory.cast(), words }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words * size_of::<u64>()
    }

    pub(crate) fn as_ptr(&self) -> *mut c_void {
        self.start.as_ptr().cast()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let memory = NonNull::slice_from_raw_parts(self.start, self.words);
        // SAFETY: the memory is that of a boxed slice of that many words, leaked in `zeroed` and freed only here.
        drop(unsafe { Box::from_raw(memory.as_ptr()) });
    }
}
