//! A request between its submission and its completion, and the slot that it is in.

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
    /// When the drive took it, when it had its first effect, and when the flash started to work for it.
    pub(crate) taken_ns: u64,
    pub(crate) ready_ns: u64,
    /// When it was completed; what the host is told of it stays here until the host asks.
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
    /// It counts among the writes that are not in the write buffer yet.
    pub(crate) awaits_buffer: bool,
    /// A flash read for it could not be corrected.
    pub(crate) failed: bool,
    /// It is completed with an error, because the drive is read-only.
    pub(crate) is_refused: bool,
    /// The error is that the drive has no space for what it wrote.
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
    /// Its parts go to their places one by one: moved as a whole, bytes that are just written would be read as words,
    /// for which a processor waits until they are in its cache.
    #[inline(always)]
    pub(crate) fn start(&mut self, request: Request, submitted_at: Nanos) {
        let Request { tag, operation, offset, length, fua, queue, stream, buffer } = request;
        let place = self.request.get_or_insert_with(Request::flush);
        (place.tag, place.operation, place.offset, place.length) = (tag, operation, offset, length);
        (place.fua, place.queue, place.stream, place.buffer) = (fua, queue, stream, buffer);
        (self.queue, self.stream) = (queue, stream);
        self.submitted_at = submitted_at;
        (self.pending, self.finish_ns, self.taken, self.next) = (0, 0, 0, NONE);
        (self.failed, self.awaits_buffer) = (false, false);
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

    /// The flash starts to work for the request.
    pub(crate) fn flash_begins(&mut self, now_ns: u64) {
        self.flash_ns.get_or_insert(now_ns);
    }
}
