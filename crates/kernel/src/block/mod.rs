//! The block layer: from a bio to requests that the drive sees.
//!
//! Linux 6.18:
//! - `block/blk-merge.c` `bio_split_to_limits`, `blk_attempt_plug_merge`: a bio is split at the queue's largest
//!   request; a bio that continues the last request of the plug, behind or before it, becomes part of it, within the
//!   limits of bytes and segments. Only the last request is tried, and never one that has left the plug.
//! - `block/blk-mq.c` `blk_add_rq_to_plug`: a plug is emptied when it holds 32 requests, or when its last request has
//!   reached 128 KiB and another one comes. There is no I/O scheduler ("none", the default of NVMe drives).
//! - `block/blk-flush.c` `blk_insert_flush`: a write with PREFLUSH is a flush before it; one with FUA is a flush behind
//!   it where the drive has no FUA; both disappear where the drive has no volatile cache. The waiting for one another
//!   is the commit's here (`fs/commit.rs`).
//! - `block/blk-mq-tag.c` `blk_mq_get_tag`: who finds no tag sleeps until a request completes.

use std::collections::VecDeque;

use flashwise_block::{BlockDevice, BlockError, ByteSize, Completion, IoBuffer, Nanos, Operation, Request};

use crate::config::QueueLimits;
use crate::fs::inode::Ino;

/// `BLK_MAX_REQUEST_COUNT`
const PLUG_REQUESTS: usize = 32;
/// `BLK_PLUG_FLUSH_SIZE`
const PLUG_FLUSH_BYTES: u64 = 128 << 10;

/// Whose request it was: what is to be done when it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Pages of a file are read.
    ReadPages { ino: Ino, index: u64, pages: u32 },
    /// Pages of a file are written back.
    WritePages { ino: Ino, index: u64, pages: u32 },
    /// Someone waits for a number of requests: metadata, flushes.
    Ticket(u64),
    /// Bytes of direct I/O, from byte `at` of the caller's on.
    Direct { ticket: u64, at: u64 },
    /// Blocks are trimmed, and free when that is done.
    Discard { first: u64, blocks: u64 },
    /// The file system's commit goes on.
    Commit,
    /// Nobody waits: metadata that is written in the background.
    Nothing,
}

/// A piece of a request, with the part of its bytes that is its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) purpose: Purpose,
    pub(crate) bytes: u64,
}

/// The pieces of a request, in the order of the drive's bytes; most have one.
#[derive(Debug)]
pub(crate) struct Parts {
    first: Part,
    more: Option<VecDeque<Part>>,
}

impl Parts {
    fn one(part: Part) -> Self {
        Self { first: part, more: None }
    }

    fn push_back(&mut self, part: Part) {
        self.more.get_or_insert_default().push_back(part);
    }

    fn push_front(&mut self, part: Part) {
        let second = std::mem::replace(&mut self.first, part);
        self.more.get_or_insert_default().push_front(second);
    }
}

impl IntoIterator for Parts {
    type Item = Part;
    type IntoIter = PartsIter;

    fn into_iter(self) -> Self::IntoIter {
        PartsIter { first: Some(self.first), more: self.more }
    }
}

/// The pieces one after another.
pub(crate) struct PartsIter {
    first: Option<Part>,
    more: Option<VecDeque<Part>>,
}

impl Iterator for PartsIter {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        self.first.take().or_else(|| self.more.as_mut()?.pop_front())
    }
}

/// What is handed to the block layer.
#[derive(Debug)]
pub(crate) struct Bio {
    pub(crate) operation: Operation,
    /// First byte on the drive.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) fua: bool,
    /// Pieces of memory.
    pub(crate) segments: u32,
    pub(crate) purpose: Purpose,
    /// What is written, where files have bytes.
    pub(crate) data: Option<Vec<u8>>,
}

impl Bio {
    pub(crate) fn new(operation: Operation, offset: u64, bytes: u64, purpose: Purpose) -> Self {
        Self { operation, offset, bytes, fua: false, segments: 1, purpose, data: None }
    }

    pub(crate) fn flush(purpose: Purpose) -> Self {
        Self::new(Operation::Flush, 0, 0, purpose)
    }
}

/// A request in the plug, or on its way.
#[derive(Debug)]
struct Pending {
    operation: Operation,
    offset: u64,
    bytes: u64,
    fua: bool,
    segments: u32,
    parts: Parts,
    data: Option<Vec<u8>>,
}

/// A request that has completed.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) operation: Operation,
    pub(crate) parts: Parts,
    pub(crate) result: Result<(), BlockError>,
    pub(crate) data: Option<IoBuffer>,
}

/// The queue of one drive.
#[derive(Debug)]
pub(crate) struct Queue<D> {
    device: D,
    limits: QueueLimits,
    data: bool,
    plugged: u32,
    plug: Vec<Pending>,
    /// By tag.
    in_flight: Vec<Option<Parts>>,
    free_tags: Vec<usize>,
    /// Completed while someone waited for a tag.
    done: VecDeque<Done>,
    /// Time of the processor that the drive's clock has not been moved by yet.
    owed: Nanos,
}

impl<D: BlockDevice> Queue<D> {
    pub(crate) fn new(device: D, limits: QueueLimits, data: bool) -> Self {
        let info = device.info();
        let largest = (limits.max_request.0.min(info.max_transfer.0) / crate::PAGE * crate::PAGE).max(crate::PAGE);
        let depth = limits.nr_requests.min(info.queue_depth.max(1));
        let limits = QueueLimits { max_request: ByteSize(largest), nr_requests: depth, ..limits };
        Self {
            device,
            limits,
            data,
            plugged: 0,
            plug: Vec::new(),
            in_flight: Vec::new(),
            free_tags: Vec::new(),
            done: VecDeque::new(),
            owed: Nanos(0),
        }
    }

    pub(crate) fn limits(&self) -> &QueueLimits {
        &self.limits
    }

    pub(crate) fn device(&self) -> &D {
        &self.device
    }

    pub(crate) fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    pub(crate) fn into_device(self) -> D {
        self.device
    }

    /// The time, with what the processor has done since the drive was last called.
    pub(crate) fn now(&self) -> Nanos {
        Nanos(self.device.now().0.saturating_add(self.owed.0))
    }

    /// The processor works; the drive's clock follows before its next request.
    pub(crate) fn charge(&mut self, cost: Nanos) {
        self.owed = Nanos(self.owed.0.saturating_add(cost.0));
    }

    pub(crate) fn settle(&mut self) -> Result<(), BlockError> {
        let owed = std::mem::take(&mut self.owed);
        if owed.0 > 0 { self.device.pause(owed) } else { Ok(()) }
    }

    /// Requests that the drive has, and those that wait in the plug.
    pub(crate) fn outstanding(&self) -> usize {
        self.device.outstanding() + self.done.len() + self.plug.len()
    }

    pub(crate) fn has_free_tag(&self) -> bool {
        self.device.outstanding() < self.limits.nr_requests as usize
    }

    /// `blk_start_plug`
    pub(crate) fn plug(&mut self) {
        self.plugged += 1;
    }

    /// `blk_finish_plug`
    pub(crate) fn unplug(&mut self) -> Result<(), BlockError> {
        self.plugged = self.plugged.saturating_sub(1);
        if self.plugged == 0 { self.flush_plug() } else { Ok(()) }
    }

    /// Sends what is plugged, as a task does before it sleeps.
    fn flush_plug(&mut self) -> Result<(), BlockError> {
        match self.plug.len() {
            0 => return Ok(()),
            1 => return self.plug.pop().map_or(Ok(()), |pending| self.dispatch(pending)),
            _ => {}
        }
        let mut plug = std::mem::take(&mut self.plug);
        let sent = plug.drain(..).try_for_each(|pending| self.dispatch(pending));
        // It keeps its memory.
        self.plug = plug;
        sent
    }

    /// `submit_bio`
    pub(crate) fn submit(&mut self, bio: Bio) -> Result<(), BlockError> {
        if bio.operation == Operation::Flush || bio.operation == Operation::Trim {
            self.flush_plug()?;
            let part = Part { purpose: bio.purpose, bytes: bio.bytes };
            let Bio { operation, offset, bytes, .. } = bio;
            let parts = Parts::one(part);
            return self.dispatch(Pending { operation, offset, bytes, fua: false, segments: 0, parts, data: None });
        }
        let mut rest = bio;
        if self.data && rest.operation == Operation::Write && rest.data.is_none() {
            // Metadata has a place and no bytes.
            rest.data = Some(vec![0; rest.bytes as usize]);
        }
        while rest.bytes > self.limits.max_request.0 || rest.segments > self.limits.max_segments {
            let first = self.split(&mut rest);
            self.add(first)?;
        }
        self.add(rest)
    }

    /// Cuts the first request off a bio that is too long, at a whole page.
    fn split(&self, bio: &mut Bio) -> Bio {
        let Bio { operation, fua, .. } = *bio;
        let segment = (bio.bytes / u64::from(bio.segments.max(1))).max(1);
        let by_segments = segment.saturating_mul(u64::from(self.limits.max_segments)) / crate::PAGE * crate::PAGE;
        let bytes = self.limits.max_request.0.min(by_segments.max(crate::PAGE)).min(bio.bytes);
        let segments = u32::try_from(bytes.div_ceil(segment)).unwrap_or(u32::MAX).min(bio.segments);
        let purpose = match bio.purpose {
            Purpose::ReadPages { ino, index, .. } => {
                Purpose::ReadPages { ino, index, pages: (bytes / crate::PAGE) as u32 }
            }
            Purpose::WritePages { ino, index, .. } => {
                Purpose::WritePages { ino, index, pages: (bytes / crate::PAGE) as u32 }
            }
            other => other,
        };
        let tail = bio.data.as_mut().map(|data| data.split_off((bytes as usize).min(data.len())));
        let data = std::mem::replace(&mut bio.data, tail);
        let first = Bio { operation, offset: bio.offset, bytes, fua, segments, purpose, data };
        (bio.offset, bio.bytes) = (bio.offset + bytes, bio.bytes - bytes);
        bio.segments = bio.segments.saturating_sub(segments).max(1);
        if let Purpose::ReadPages { index, pages, .. } | Purpose::WritePages { index, pages, .. } = &mut bio.purpose {
            *index += bytes / crate::PAGE;
            *pages = pages.saturating_sub((bytes / crate::PAGE) as u32);
        }
        if let Purpose::Direct { at, .. } = &mut bio.purpose {
            *at += bytes;
        }
        first
    }

    fn add(&mut self, bio: Bio) -> Result<(), BlockError> {
        let Bio { operation, offset, bytes, fua, segments, purpose, data } = bio;
        if let Some(last) = self.plug.last_mut() {
            let limits = &self.limits;
            let fits = last.operation == operation
                && last.fua == fua
                && last.bytes + bytes <= limits.max_request.0
                && last.segments + segments <= limits.max_segments;
            let part = Part { purpose, bytes };
            if fits && last.offset + last.bytes == offset {
                last.parts.push_back(part);
                if let (Some(all), Some(data)) = (&mut last.data, data) {
                    all.extend_from_slice(&data);
                }
                (last.bytes, last.segments) = (last.bytes + bytes, last.segments + segments);
                return Ok(());
            }
            if fits && offset + bytes == last.offset {
                last.parts.push_front(part);
                if let (Some(all), Some(mut data)) = (&mut last.data, data) {
                    data.append(all);
                    *all = data;
                }
                (last.offset, last.bytes, last.segments) = (offset, last.bytes + bytes, last.segments + segments);
                return Ok(());
            }
            let is_long = last.bytes >= PLUG_FLUSH_BYTES;
            if is_long || self.plug.len() >= PLUG_REQUESTS {
                self.flush_plug()?;
            }
        }
        let parts = Parts::one(Part { purpose, bytes });
        let pending = Pending { operation, offset, bytes, fua, segments, parts, data };
        if self.plugged > 0 {
            self.plug.push(pending);
            return Ok(());
        }
        self.dispatch(pending)
    }

    fn dispatch(&mut self, pending: Pending) -> Result<(), BlockError> {
        while !self.has_free_tag() {
            let Some(done) = self.next_completion()? else { break };
            self.done.push_back(done);
        }
        self.settle()?;
        let tag = self.free_tags.pop().unwrap_or_else(|| {
            self.in_flight.push(None);
            self.in_flight.len() - 1
        });
        let length = ByteSize(pending.bytes);
        let mut request = match pending.operation {
            Operation::Flush => Request::flush(),
            Operation::Trim => Request::trim(ByteSize(pending.offset), length),
            Operation::WriteZeroes => Request::write_zeroes(ByteSize(pending.offset), length),
            Operation::Read => Request::read(ByteSize(pending.offset), length),
            Operation::Write => Request::write(ByteSize(pending.offset), length),
        };
        request.fua = pending.fua;
        if self.data {
            request.buffer = match pending.operation {
                Operation::Read => Some(IoBuffer::zeroed(pending.bytes as usize)),
                Operation::Write => pending.data.as_deref().map(IoBuffer::copy_of),
                _ => None,
            };
        }
        self.in_flight[tag] = Some(pending.parts);
        self.device.submit(request.tagged(tag as u64))
    }

    fn next_completion(&mut self) -> Result<Option<Done>, BlockError> {
        self.settle()?;
        self.device.wait()?.map(|completion| self.finish(completion)).transpose()
    }

    fn finish(&mut self, completion: Completion) -> Result<Done, BlockError> {
        let Completion { tag, operation, result, buffer, .. } = completion;
        let tag = usize::try_from(tag).unwrap_or(usize::MAX);
        let parts = self.in_flight.get_mut(tag).and_then(Option::take);
        let parts = parts.ok_or(BlockError::Protocol("the drive completed a request that it never got"))?;
        self.free_tags.push(tag);
        Ok(Done { operation, parts, result, data: buffer })
    }

    /// The next completion, however late; what is plugged goes out first. `None` where nothing is on its way.
    pub(crate) fn wait(&mut self) -> Result<Option<Done>, BlockError> {
        self.flush_plug()?;
        match self.done.pop_front() {
            Some(done) => Ok(Some(done)),
            None => self.next_completion(),
        }
    }

    /// A completion that has happened already.
    pub(crate) fn poll(&mut self) -> Result<Option<Done>, BlockError> {
        if let Some(done) = self.done.pop_front() {
            return Ok(Some(done));
        }
        if self.device.outstanding() == 0 {
            return Ok(None);
        }
        self.settle()?;
        self.device.poll()?.map(|completion| self.finish(completion)).transpose()
    }

    /// Lets time pass.
    pub(crate) fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        self.flush_plug()?;
        self.settle()?;
        self.device.pause(duration)
    }
}
