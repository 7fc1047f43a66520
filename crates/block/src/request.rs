//! One command to a drive, and its completion.

use serde::{Deserialize, Serialize};

use crate::{BlockError, ByteSize, IoBuffer, Nanos};

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Read bytes.
    Read,
    /// Write bytes; durable after the next completed [`Operation::Flush`], or at completion with `fua`.
    Write,
    /// The bytes are no longer needed (deallocate, discard). They read as zeros afterwards.
    Trim,
    /// Make the bytes zeros without sending any (NVMe's Write Zeroes); durable like a write.
    #[serde(rename = "write_zeroes")]
    WriteZeroes,
    /// Make every write that completed before this request durable.
    Flush,
}

impl Operation {
    /// Whether it changes bytes and is durable only after a flush or with FUA.
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::WriteZeroes)
    }
}

/// One command to a drive.
///
/// `offset` and `length` must be multiples of the device's logical block; a flush has neither. `buffer` carries the
/// payload of a write, or receives that of a read; without one a simulated device moves no bytes but takes the same
/// time. The buffer comes back in the [`Completion`].
#[derive(Debug)]
pub struct Request {
    /// The caller's own mark; handed back untouched.
    pub tag: u64,
    /// The operation.
    pub operation: Operation,
    /// First byte on the device.
    pub offset: ByteSize,
    /// How many bytes.
    pub length: ByteSize,
    /// Force unit access: a write, of bytes or of zeros, completes only when it is durable.
    pub fua: bool,
    /// The submission queue that the host puts it in; a device with fewer queues takes this modulo their number.
    pub queue: u16,
    /// For a write, the stream of its data, 0 for none (NVMe's Streams directive): data that is overwritten at the same
    /// time should be in one stream. A device without streams ignores it.
    pub stream: u16,
    /// Payload; if present, of exactly `length` bytes.
    pub buffer: Option<IoBuffer>,
}

impl Request {
    /// A read without payload.
    pub fn read(offset: ByteSize, length: ByteSize) -> Self {
        Self::new(Operation::Read, offset, length)
    }

    /// A write without payload.
    pub fn write(offset: ByteSize, length: ByteSize) -> Self {
        Self::new(Operation::Write, offset, length)
    }

    /// A trim.
    pub fn trim(offset: ByteSize, length: ByteSize) -> Self {
        Self::new(Operation::Trim, offset, length)
    }

    /// A write of zeros, which carries no payload.
    pub fn write_zeroes(offset: ByteSize, length: ByteSize) -> Self {
        Self::new(Operation::WriteZeroes, offset, length)
    }

    /// A flush.
    pub fn flush() -> Self {
        Self::new(Operation::Flush, ByteSize(0), ByteSize(0))
    }

    fn new(operation: Operation, offset: ByteSize, length: ByteSize) -> Self {
        Self { tag: 0, operation, offset, length, fua: false, queue: 0, stream: 0, buffer: None }
    }

    /// The same request with the caller's mark.
    pub fn tagged(mut self, tag: u64) -> Self {
        self.tag = tag;
        self
    }

    /// The same request in another submission queue.
    pub fn on_queue(mut self, queue: u16) -> Self {
        self.queue = queue;
        self
    }

    /// The same request with its data in a stream; 0 is none.
    pub fn in_stream(mut self, stream: u16) -> Self {
        self.stream = stream;
        self
    }

    /// The same request, durable at completion.
    pub fn with_fua(mut self) -> Self {
        self.fua = true;
        self
    }

    /// The same request with a payload; its length becomes the buffer's.
    pub fn with_buffer(mut self, buffer: IoBuffer) -> Self {
        self.length = ByteSize(buffer.len() as u64);
        self.buffer = Some(buffer);
        self
    }

    /// First byte after the request, or `None` if the addition overflows.
    pub fn end(&self) -> Option<ByteSize> {
        self.offset.0.checked_add(self.length.0).map(ByteSize)
    }
}

/// The completion of one request.
#[derive(Debug)]
pub struct Completion {
    /// The request's mark.
    pub tag: u64,
    /// The request.
    pub operation: Operation,
    /// When it was submitted, on the device's clock.
    pub submitted_at: Nanos,
    /// When the device took it from its queue, on the device's clock; until then it waited, from then on it was served.
    pub started_at: Nanos,
    /// When it completed, on the device's clock.
    pub completed_at: Nanos,
    /// Whether the device did it.
    pub result: Result<(), BlockError>,
    /// The request's buffer, filled by a read.
    pub buffer: Option<IoBuffer>,
}

impl Completion {
    /// Time from submission to completion.
    pub fn latency(&self) -> Nanos {
        self.completed_at.since(self.submitted_at)
    }

    /// Time from submission until the device took it.
    pub fn waiting(&self) -> Nanos {
        self.started_at.since(self.submitted_at)
    }

    /// Time from when the device took it to completion.
    pub fn service(&self) -> Nanos {
        self.completed_at.since(self.started_at)
    }
}
