//! Tables of a drive, and memory that will be needed soon.
//!
//! The page map of a large drive fits no cache, and every request looks at a random place in it. Two things hide the
//! way to memory. What a request will look at is known long before the simulation comes to it, and is named to the
//! processor ([`prefetch`]). And tables are on the processor's large pages ([`Numbers`], [`Records`]), where the system
//! has them: on pages of 4 KiB every look-up at a random place also walks through the system's page tables, and every
//! page that is touched for the first time interrupts the program. On MQSim's default drive of 550 GB that was half of
//! the time of a random read.
//!
//! What the system gives is zeros. A table whose records are at first all zeros ([`Records`]) need not be filled: that
//! of the superblocks of the same drive, 5 MB, cost 1,280 interruptions before anything was simulated.

use std::alloc::{Layout, LayoutError, handle_alloc_error};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};

use memmap2::MmapMut;
use zerocopy::FromZeros;

use crate::state::{self, Carried, Carrier, State};

/// What a large page has on the machines that this was measured on (x86-64; AArch64 with pages of 4 KiB).
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// How the places of a table are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    /// Most of it, sooner or later: it is on large pages.
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
        Self { memory: zeros(Layout::array::<u32>(count), touched), count }
    }

    #[inline]
    fn entries(&self) -> &[[u8; 4]] {
        self.memory.as_chunks().0
    }

    #[inline]
    fn entries_mut(&mut self) -> &mut [[u8; 4]] {
        self.memory.as_chunks_mut().0
    }

    /// Numbers of the table.
    pub(crate) fn length(&self) -> usize {
        self.count
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

/// A table of records, at first all zeros, which is what a record of zeros means; what nobody touches takes no memory.
pub(crate) struct Records<T> {
    memory: MmapMut,
    count: usize,
    of: PhantomData<T>,
}

impl<T: FromZeros + Copy> Records<T> {
    /// So many records of zeros.
    pub(crate) fn new(count: usize, touched: Touched) -> Self {
        const { assert!(align_of::<T>() <= SMALLEST_PAGE_BYTES) };
        Self { memory: zeros(Layout::array::<T>(count), touched), count, of: PhantomData }
    }
}

impl<T: FromZeros + Copy> Deref for Records<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping is this table's alone, lives as long as it, starts at a page and so at a multiple of T's
        // alignment, and has space for `count` of T. Each of them is either all zeros as the system gave it, which
        // `FromZeros` says is a T, or was written as a T through `deref_mut`; `Copy` says that none needs to be
        // dropped.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.count) }
    }
}

impl<T: FromZeros + Copy> DerefMut for Records<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `&mut self` makes it the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), self.count) }
    }
}

/// No system has shorter pages.
const SMALLEST_PAGE_BYTES: usize = 4096;

/// Memory of zeros for a table.
fn zeros(layout: Result<Layout, LayoutError>, touched: Touched) -> MmapMut {
    let Ok(layout) = layout else { handle_alloc_error(Layout::new::<u64>()) };
    let bytes = layout.size().max(1);
    let is_large = touched == Touched::Densely && bytes >= LARGE_PAGE_BYTES / 4;
    let bytes = if is_large { bytes.next_multiple_of(LARGE_PAGE_BYTES) } else { bytes };
    let Ok(memory) = MmapMut::map_anon(bytes) else { handle_alloc_error(layout) };
    // Advice only: where the system does not take it, the table is slower and the same.
    #[cfg(target_os = "linux")]
    if is_large {
        let _ = memory.advise(memmap2::Advice::HugePage);
    }
    memory
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

impl<T: FromZeros + Copy + State> State for Records<T> {
    fn layout(layout: &mut state::Layout) {
        layout.word("table");
        T::layout(layout);
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        carrier.known(self.count as u64, "records")?;
        for (nth, record) in self.iter_mut().enumerate() {
            record.carry(carrier).map_err(|error| error.inside(format_args!("[{nth}]")))?;
        }
        Ok(())
    }
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

    #[test]
    fn records_are_zeros_until_they_are_written_and_keep_what_was() {
        #[derive(Clone, Copy, Debug, PartialEq, FromZeros)]
        struct Record(u32, bool, u64);
        for touched in [Touched::Densely, Touched::Sparsely] {
            let mut records = Records::new(1 << 16, touched);
            assert!(records.len() == 1 << 16 && records.iter().all(|record| *record == Record(0, false, 0)));
            records[40] = Record(1, true, u64::MAX);
            assert_eq!(records[39..42], [Record(0, false, 0), Record(1, true, u64::MAX), Record(0, false, 0)]);
        }
        assert!(Records::<Record>::new(0, Touched::Densely).is_empty());
    }
}
