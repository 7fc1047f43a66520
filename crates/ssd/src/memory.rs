//! Tables of a drive, and memory that will be needed soon.
//!
//! The page map of a large drive fits no cache, and every request looks at a random place in it. Two things hide the way
//! to memory. What a request will look at is known long before the simulation comes to it, and is named to the processor
//! ([`prefetch`]). And tables stand on the processor's large pages ([`Numbers`]), where the system has them: on pages of
//! 4 KiB every look-up at a random place also walks through the system's page tables, and every page that is touched for
//! the first time interrupts the program. On MQSim's default drive of 550 GB that was half of the time of a random read.

use std::alloc::{Layout, handle_alloc_error};
use std::ops::Range;

use memmap2::MmapMut;

/// What a large page has on the machines that this was measured on (x86-64; AArch64 with pages of 4 KiB).
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// How the places of a table are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    /// Most of it, sooner or later: it stands on large pages.
    Densely,
    /// A few bytes here and there, between which nothing should come to life.
    Sparsely,
}

/// A table of numbers of four bytes, at first zeros; what nobody touches takes no memory.
pub(crate) struct Numbers {
    memory: MmapMut,
    count: usize,
}

impl Numbers {
    /// So many zeros.
    pub(crate) fn new(count: usize, touched: Touched) -> Self {
        let bytes = count.max(1) * size_of::<u32>();
        let is_large = touched == Touched::Densely && bytes >= LARGE_PAGE_BYTES / 4;
        let bytes = if is_large { bytes.next_multiple_of(LARGE_PAGE_BYTES) } else { bytes };
        let Ok(memory) = MmapMut::map_anon(bytes) else { out_of_memory(count) };
        // Advice only: where the system does not take it, the table is slower and the same.
        #[cfg(target_os = "linux")]
        if is_large {
            let _ = memory.advise(memmap2::Advice::HugePage);
        }
        Self { memory, count }
    }

    #[inline]
    fn entries(&self) -> &[[u8; 4]] {
        self.memory.as_chunks().0
    }

    #[inline]
    fn entries_mut(&mut self) -> &mut [[u8; 4]] {
        self.memory.as_chunks_mut().0
    }

    /// A number; 0 behind the table.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> u32 {
        self.entries().get(index).map_or(0, |&bytes| u32::from_ne_bytes(bytes))
    }

    /// Changes a number.
    #[inline]
    pub(crate) fn set(&mut self, index: usize, number: u32) {
        self.entries_mut()[index] = number.to_ne_bytes();
    }

    /// Changes a number; gives the one before.
    #[inline]
    pub(crate) fn replace(&mut self, index: usize, number: u32) -> u32 {
        u32::from_ne_bytes(std::mem::replace(&mut self.entries_mut()[index], number.to_ne_bytes()))
    }

    /// Changes a run of numbers, each to what belongs to its place.
    pub(crate) fn set_run(&mut self, range: Range<usize>, number_of: impl Fn(usize) -> u32) {
        let places = range.clone().zip(&mut self.entries_mut()[range]);
        places.for_each(|(place, entry)| *entry = number_of(place).to_ne_bytes());
    }

    /// The numbers from one on.
    pub(crate) fn iter_from(&self, index: usize) -> impl Iterator<Item = u32> {
        self.entries()[index..self.count].iter().map(|&bytes| u32::from_ne_bytes(bytes))
    }

    /// Says that a number will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, index: usize) {
        prefetch(self.entries(), index);
    }
}

#[cold]
fn out_of_memory(count: usize) -> ! {
    handle_alloc_error(Layout::array::<u32>(count).unwrap_or(Layout::new::<u32>()))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_zero_until_they_are_set_and_zero_behind_the_table() {
        for touched in [Touched::Densely, Touched::Sparsely] {
            let mut numbers = Numbers::new(1 << 19, touched);
            assert_eq!((numbers.iter_from(0).count(), numbers.get(7), numbers.get(usize::MAX / 8)), (1 << 19, 0, 0));
            numbers.set((1 << 19) - 1, 5);
            assert_eq!(numbers.replace((1 << 19) - 1, u32::MAX), 5);
            numbers.set_run(10..13, |place| place as u32 + 30);
            assert_eq!((9..14).map(|index| numbers.get(index)).collect::<Vec<_>>(), [0, 40, 41, 42, 0]);
            assert_eq!(numbers.iter_from((1 << 19) - 2).collect::<Vec<_>>(), [0, u32::MAX]);
        }
        assert_eq!(Numbers::new(0, Touched::Densely).iter_from(0).count(), 0);
    }
}
