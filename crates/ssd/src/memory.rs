//! Memory that will be needed soon.
//!
//! The page map of a large drive fits no cache, and every request looks at a random place in it. What a request will
//! look at is known long before the simulation comes to it: naming it to the processor then hides the way to memory.
//! On a drive of 6 GiB, whose maps take 14 MB, this gives a third more random reads a second.

/// Starts to bring an entry of a table into the cache; a place behind the table is ignored.
#[inline]
pub(crate) fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(entry) = table.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing, and the pointer comes from a reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, index);
}
