//! The controller: what happens between a command's arrival and its completion.
//!
//! ```text
//!   read    locate every logical page → one flash command for each (die, row) → dispatched run by run → link
//!   write   link → (fill up partial pages) → (write cache) → write buffer → placed by the FTL → completes
//!                                                └─ full superpages are programmed behind the host's back
//!   flush   pads and programs what is open, completes when all of it is on flash
//!   trim    forgets whole logical pages
//! ```
//!
//! Reads are in [`mod@read`], what they leave behind and what is read ahead in [`read_cache`] and [`read_ahead`]; the
//! write cache in [`write_cache`]; the write buffer, writes and trims in [`mod@write`]; flushes and forced writes in
//! [`flush`]; garbage collection in [`collection`], with the host waiting for it in [`hold`]; bad superblocks in
//! [`mod@retirement`]; media without erase in [`in_place`]; FTLs that map blocks in
//! [`block_mapped`], of elements in [`element`]; pages that are compressed or shared in [`reduced`]; the look-up of a page map that does not fit memory in [`translate`].

pub mod block_mapped;
mod cached_pages;
pub mod collection;
pub(crate) mod dram;
pub mod element;
pub mod flush;
pub mod hold;
pub mod in_place;
pub mod read;
pub mod read_ahead;
pub mod read_cache;
pub mod reduced;
pub mod retirement;
pub mod slc_cache;
pub mod translate;
mod unplaced;
mod unprogrammed;
pub mod write;
pub mod write_cache;

use flashwise_block::{Nanos, Request};

use crate::list::{Fifo, Linked, NONE};

/// A request that the drive has taken.
#[derive(Default)]
pub(crate) struct Active {
    pub(crate) request: Option<Request>,
    pub(crate) submitted_at: Nanos,
    /// The submission queue that it came from.
    pub(crate) queue: u16,
    /// The stream that a write names.
    pub(crate) stream: u16,
    /// When the drive took it, when it had its first effect, and when the flash began to work for it.
    pub(crate) taken_ns: u64,
    pub(crate) ready_ns: u64,
    /// When it was answered; what the host is told of it stays here until the host asks.
    pub(crate) completed_ns: u64,
    pub(crate) flash_ns: Option<u64>,
    /// Flash commands, or superpages, that it waits for.
    pub(crate) pending: u32,
    /// When the last byte of a read will be with the host, or a write's data in DRAM, as far as known.
    pub(crate) finish_ns: u64,
    /// Flash commands that the firmware has not issued yet.
    pub(crate) to_dispatch: Fifo,
    /// Logical pages of a write that are in the write buffer.
    pub(crate) taken: u32,
    /// A flash read for it could not be corrected.
    pub(crate) failed: bool,
    /// It is answered with an error, because the drive is read-only.
    pub(crate) is_refused: bool,
    /// The error is that the drive has no room for what it wrote.
    pub(crate) has_no_space: bool,
    /// Bytes of a read that come compressed from flash.
    pub(crate) compressed_bytes: u32,
    /// Superpages that a forced write's pages are in, with their generation.
    pub(crate) touched: Vec<(u32, u64)>,
    next: u32,
}

impl Linked for Active {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl Active {
    /// Takes a request into a slot that another one has left.
    ///
    /// Its parts go to their places one by one: moved as a whole, bytes that are just written would be read as words, for
    /// which a processor waits until they are in its cache.
    #[inline(always)]
    pub(crate) fn start(&mut self, request: Request, submitted_at: Nanos) {
        let Request { tag, operation, offset, length, fua, queue, stream, buffer } = request;
        let place = self.request.get_or_insert_with(Request::flush);
        (place.tag, place.operation, place.offset, place.length) = (tag, operation, offset, length);
        (place.fua, place.queue, place.stream, place.buffer) = (fua, queue, stream, buffer);
        (self.queue, self.stream) = (queue, stream);
        self.submitted_at = submitted_at;
        (self.pending, self.finish_ns, self.taken, self.next) = (0, 0, 0, NONE);
        self.failed = false;
        (self.is_refused, self.has_no_space, self.compressed_bytes) = (false, false, 0);
        self.to_dispatch = Fifo::default();
        self.touched.clear();
        self.flash_ns = None;
    }

    /// Whether the request has a buffer.
    #[inline]
    pub(crate) fn carries_bytes(&self) -> bool {
        self.request.as_ref().is_some_and(|request| request.buffer.is_some())
    }

    /// The flash begins to work for the request.
    pub(crate) fn flash_begins(&mut self, now_ns: u64) {
        self.flash_ns.get_or_insert(now_ns);
    }
}

/// The length of a logical page, a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageSize {
    shift: u32,
}

impl PageSize {
    /// `bytes` must be a power of two.
    pub(crate) fn new(bytes: u64) -> Self {
        debug_assert!(bytes.is_power_of_two());
        Self { shift: bytes.trailing_zeros() }
    }

    /// The logical page that a byte is on.
    #[inline]
    pub(crate) fn of_byte(self, byte: u64) -> u32 {
        (byte >> self.shift) as u32
    }

    pub(crate) fn bytes(self) -> u64 {
        1 << self.shift
    }
}

/// The bytes of a request, page by page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageSpan {
    pub(crate) logical_page: u32,
    /// First byte inside the logical page.
    pub(crate) from: usize,
    /// First byte behind.
    pub(crate) to: usize,
    /// Where the span starts in the request's buffer.
    pub(crate) in_buffer: usize,
    page: PageSize,
}

impl PageSpan {
    /// Whether the whole logical page is meant.
    pub(crate) fn is_whole(&self) -> bool {
        self.from == 0 && self.to as u64 == self.page.bytes()
    }

    pub(crate) fn len(&self) -> usize {
        self.to - self.from
    }
}

/// The range of bytes that a request names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteRange {
    start: u64,
    end: u64,
    page: PageSize,
}

impl ByteRange {
    pub(crate) fn of(request: &Request, page: PageSize) -> Self {
        let start = request.offset.bytes();
        Self { start, end: start + request.length.bytes(), page }
    }

    /// Whether every logical page touched is covered wholly.
    #[inline]
    pub(crate) fn is_whole_pages(self) -> bool {
        (self.start | self.end) & (self.page.bytes() - 1) == 0
    }

    /// Logical pages touched.
    pub(crate) fn pages(self) -> u32 {
        let shift = self.page.shift;
        (((self.end + self.page.bytes() - 1) >> shift) - (self.start >> shift)) as u32
    }

    /// The `n`th logical page touched.
    pub(crate) fn span(self, n: u32) -> PageSpan {
        let page = (self.start >> self.page.shift) + u64::from(n);
        let page_start = page << self.page.shift;
        let from = self.start.max(page_start);
        let to = self.end.min(page_start + self.page.bytes());
        PageSpan {
            logical_page: page as u32,
            from: (from - page_start) as usize,
            to: (to - page_start) as usize,
            in_buffer: (from - self.start) as usize,
            page: self.page,
        }
    }

    /// All logical pages touched.
    pub(crate) fn spans(self) -> impl Iterator<Item = PageSpan> {
        (0..self.pages()).map(move |n| self.span(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_split_at_logical_pages() {
        let page = PageSize::new(4096);
        let spans: Vec<_> = ByteRange { start: 3_584, end: 8_704, page }.spans().collect();
        let span = |logical_page, from, to, in_buffer| PageSpan { logical_page, from, to, in_buffer, page };
        assert_eq!(spans, [span(0, 3_584, 4_096, 0), span(1, 0, 4_096, 512), span(2, 0, 512, 4_608)]);
        assert!(spans[1].is_whole() && !spans[0].is_whole());
    }
}
