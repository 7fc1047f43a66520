//! Memory that will be needed soon.
//!
//! Where a page is, is looked up at a random place of a table that fits no fast cache, and what depends on it can only
//! be guessed until it is there. Whoever replays a trace knows the places beforehand and names them to the processor.

/// Starts to bring an entry of a table into the cache. Behind the table it names the last one: that needs no branch,
/// which the processor would have to guess as well.
#[inline]
pub(crate) fn prefetch<T>(table: &[T], index: usize) {
    prefetch_at(table.as_ptr().wrapping_add(index.min(table.len().wrapping_sub(1))));
}

/// The same of a place, whatever is there.
#[inline]
pub(crate) fn prefetch_at<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
