//! The host's side of the drive: the queues of commands ([`queues`]), requests in progress ([`active`]), and firmware
//! and link ([`interface`], [`link`]).
//!
//! ```text
//!   submission queues ─ arbitration ─▶ fetched over the link ─▶ firmware ─▶ (a write's data over the link) ─▶ controller
//!   completion posted over the link ◀─ (a read's data over the link) ◀─────────────────────────────────────── controller
//! ```
//!
//! The firmware takes one command at a time (`command_issue_ns`, which limits IOPS), and a command has its first
//! effect `command_latency_ns` after it was taken. The link is a server for each direction (NVMe) or for both together
//! (SATA). How a read's data crosses is `host.data_transfer`; when reads are cut through, data leaves over the link
//! while it is still coming in from the flash.
//!
//! A drive of elements carries whole requests over its link instead ([`whole_request_link`]). What the host may say of
//! requests before they come is in [`hints`]; where requests spend their time, in [`stages`].

mod active;
mod hints;
mod interface;
mod queues;
mod stages;
mod whole_request_link;

use flashwise_block::{
    BlockError, ByteSize, Clock as ClockKind, Completion, DeviceCounters, DeviceInfo, Nanos, Operation, Request,
};

pub(crate) use active::Active;
pub(crate) use hints::{Hint, PrefetchHints};
pub(crate) use interface::HostInterface;
pub(crate) use queues::SubmissionQueues;
pub use stages::StageTimes;
pub(crate) use whole_request_link::WholeRequestLink;

use crate::clock::Clock;
use crate::config::{DataTransfer, DeviceConfig};
use crate::event::Event;
use crate::list::{Fifo, Slab};
use crate::pages::{ByteRange, PageSize};

/// What the host sees of a drive, and its requests.
pub(crate) struct Host {
    pub(crate) info: DeviceInfo,
    pub(crate) page: PageSize,
    pub(crate) data_transfer: DataTransfer,
    /// The bits of an address inside a logical block; all of them where its length is no power of two.
    pub(crate) in_logical_block: u64,
    pub(crate) interface: HostInterface,
    /// Requests that wait for a place in the drive.
    pub(crate) queues: SubmissionQueues,
    pub(crate) active: Slab<Active>,
    /// Requests that the drive has taken and not completed.
    pub(crate) in_drive: u32,
    /// While so many are in the drive, it takes no further one; 0 while as many writes wait for the buffer as may.
    pub(crate) in_drive_max: u32,
    /// Writes in the drive that are not wholly in the write buffer, and how many there may be; not counted, and 0,
    /// without a limit.
    pub(crate) awaiting_buffer: u32,
    pub(crate) awaiting_buffer_max: u32,
    /// Requests that are completed and not given back, in the order of their completion, and how many there are.
    pub(crate) completed: Fifo,
    pub(crate) completions: u32,
    /// Requests that are submitted and not given back.
    pub(crate) outstanding: u64,
    pub(crate) hints: PrefetchHints,
    /// The link of a drive of elements.
    pub(crate) link: WholeRequestLink,
    pub(crate) counters: DeviceCounters,
    pub(crate) stage_times: [StageTimes; 2],
}

impl Host {
    /// The host of a new drive: it has submitted nothing.
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let logical_block = config.host.logical_block_bytes;
        Self {
            info: DeviceInfo {
                name: config.name.clone(),
                capacity: ByteSize(config.capacity_bytes),
                logical_block: ByteSize(logical_block),
                max_transfer: ByteSize(config.host.max_transfer_bytes),
                queue_depth: config.host.queue_depth,
                clock: ClockKind::Virtual,
                atomic_write: config.host.atomic_write_bytes.map(ByteSize),
            },
            page: PageSize::new(config.ftl.logical_page_bytes),
            data_transfer: config.host.data_transfer,
            in_logical_block: if logical_block.is_power_of_two() { logical_block - 1 } else { u64::MAX },
            interface: HostInterface::new(&config.host),
            queues: SubmissionQueues::new(&config.host),
            active: Slab::default(),
            in_drive: 0,
            in_drive_max: config.host.queue_depth,
            awaiting_buffer: 0,
            awaiting_buffer_max: config.controller.waiting_writes.unwrap_or(0),
            completed: Fifo::default(),
            completions: 0,
            outstanding: 0,
            hints: PrefetchHints::default(),
            link: WholeRequestLink::default(),
            counters: DeviceCounters::default(),
            stage_times: [StageTimes::default(); 2],
        }
    }

    /// Whether a request is plainly one that [`DeviceInfo::check`] accepts; most are.
    #[inline(always)]
    pub(crate) fn is_plain(&self, request: &Request) -> bool {
        let (offset, length) = (request.offset.0, request.length.0);
        let limit = self.info.capacity.0;
        (offset | length) & self.in_logical_block == 0
            && length.wrapping_sub(1) < self.info.max_transfer.0
            && offset <= limit
            && length <= limit - offset
            && request.buffer.is_none()
    }

    /// Whether only so many writes may wait for the write buffer.
    #[inline(always)]
    pub(crate) fn limits_writes(&self) -> bool {
        self.awaiting_buffer_max > 0
    }

    /// The drive has taken a write.
    #[inline(always)]
    pub(crate) fn write_is_taken(&mut self, request: u32) {
        if self.limits_writes() {
            self.active[request].awaits_buffer = true;
            self.count_awaiting(self.awaiting_buffer + 1);
        }
    }

    /// A request is wholly in the write buffer, or has ended.
    #[inline(always)]
    pub(crate) fn write_is_in(&mut self, request: u32) {
        if self.limits_writes() && std::mem::take(&mut self.active[request].awaits_buffer) {
            self.count_awaiting(self.awaiting_buffer - 1);
        }
    }

    #[inline(never)]
    fn count_awaiting(&mut self, count: u32) {
        self.awaiting_buffer = count;
        self.in_drive_max = if count < self.awaiting_buffer_max { self.info.queue_depth } else { 0 };
    }

    /// Whether the drive has nothing to do for the host.
    pub(crate) fn is_resting(&self) -> bool {
        self.in_drive == 0 && self.queues.waiting() == 0
    }

    /// The bytes that an active request names.
    pub(crate) fn range_of(&self, request: u32) -> Option<ByteRange> {
        self.active[request].request.as_ref().map(|request| ByteRange::of(request, self.page))
    }

    /// Whether a request writes zeros.
    pub(crate) fn writes_zeroes(&self, request: u32) -> bool {
        self.active[request].request.as_ref().is_some_and(|r| r.operation == Operation::WriteZeroes)
    }

    pub(crate) fn is_read(&self, request: u32) -> bool {
        self.active[request].request.as_ref().is_some_and(|r| r.operation == Operation::Read)
    }

    /// What the host is told of a request that is completed; its record is free from then on.
    #[inline(always)]
    pub(crate) fn completion_of(&mut self, request: u32) -> Option<Completion> {
        let active = &mut self.active[request];
        let done = active.request.take()?;
        let completion = Completion {
            tag: done.tag,
            operation: done.operation,
            submitted_at: active.submitted_at,
            started_at: Nanos(active.taken_ns),
            completed_at: Nanos(active.completed_ns),
            result: if active.failed || active.is_refused { Err(failure(active, &done)) } else { Ok(()) },
            buffer: done.buffer,
        };
        self.active.give_back(request);
        Some(completion)
    }

    #[inline(always)]
    pub(crate) fn answer_of(&mut self, request: u32) -> Option<CompletionRecord> {
        let active = &mut self.active[request];
        let done = active.request.as_ref()?;
        let record = CompletionRecord {
            tag: done.tag,
            operation: done.operation,
            submitted_ns: active.submitted_at.0,
            taken_ns: active.taken_ns,
            completed_ns: active.completed_ns,
            error: if active.failed || active.is_refused { Some(Box::new(failure(active, done))) } else { None },
        };
        active.request = None;
        self.active.give_back(request);
        Some(record)
    }

    /// Whether a request's part in DRAM takes longer than the rest; then its end is told by an event, so that nothing
    /// that comes before it finds the link taken.
    #[inline(always)]
    pub(crate) fn waits_for_dram(&mut self, request: u32, clock: &mut Clock) -> bool {
        let ready_ns = self.active[request].finish_ns;
        let waits = ready_ns > clock.now_ns;
        if waits {
            self.wait_for_dram(request, ready_ns, clock);
        }
        waits
    }

    #[inline(never)]
    fn wait_for_dram(&self, request: u32, ready_ns: u64, clock: &mut Clock) {
        clock.schedule(ready_ns, Event::InMemory { request });
    }

    /// All of a read's data is there: what is not with the host yet goes over the link, and the completion behind it.
    #[inline(always)]
    pub(crate) fn send_read(&mut self, request: u32, clock: &mut Clock) {
        let Active { finish_ns, request: Some(r), .. } = &self.active[request] else { return };
        let (ready_ns, bytes) = (*finish_ns, r.length.bytes());
        let sent_ns = match self.data_transfer {
            DataTransfer::WholeRequest => self.interface.send(ready_ns, 0, bytes),
            _ => ready_ns,
        };
        let posted_ns = self.interface.post_completion(sent_ns);
        clock.schedule(posted_ns, Event::Completed { request });
    }

    /// A part of what a read asks for has come in from the flash, over `transfer_ns` until now: it goes over the link.
    /// Gives whether it was the last.
    #[inline(always)]
    pub(crate) fn read_part_arrived(&mut self, request: u32, transfer_ns: u64, bytes: u64, now_ns: u64) -> bool {
        let sent_ns = match self.data_transfer {
            DataTransfer::CutThrough => self.interface.send(now_ns, transfer_ns, bytes),
            DataTransfer::StoreAndForward => self.interface.send(now_ns, 0, bytes),
            DataTransfer::WholeRequest => now_ns,
        };
        let active = &mut self.active[request];
        active.finish_ns = active.finish_ns.max(sent_ns);
        active.pending -= 1;
        active.pending == 0
    }

    /// Gives the link of a drive of elements to a request.
    pub(crate) fn occupy_link(&mut self, request: u32, clock: &mut Clock) {
        self.link.is_busy = true;
        let with_data = self.active[request].request.as_ref().filter(|r| r.operation != Operation::WriteZeroes);
        let bytes = with_data.map_or(0, |r| r.length.bytes());
        clock.schedule(clock.now_ns + self.interface.link_ns(bytes), Event::LinkFree { request });
    }
}

/// The drive has nothing left to do, and has not completed everything.
pub const LOST: BlockError = BlockError::Protocol("the simulated drive lost a request");

/// A [`Completion`] without a buffer, in as few bytes as possible.
pub struct CompletionRecord {
    /// The tag of the request.
    pub tag: u64,
    /// The operation.
    pub operation: Operation,
    /// When it was submitted.
    pub submitted_ns: u64,
    /// When the drive fetched it.
    pub taken_ns: u64,
    /// When it was completed.
    pub completed_ns: u64,
    /// Why it failed.
    pub error: Option<Box<BlockError>>,
}

/// Why a request was not done.
#[cold]
fn failure(active: &Active, request: &Request) -> BlockError {
    let Request { operation, offset, length, .. } = *request;
    match (active.failed, active.has_no_space) {
        (true, _) => BlockError::Uncorrectable { operation, offset, length },
        (false, true) => BlockError::NoSpace,
        (false, false) => BlockError::ReadOnly,
    }
}
