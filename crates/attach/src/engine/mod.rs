//! All timing of an attached drive: when a command arrived, and when its completion is due.
//!
//! ```text
//!   submit(command, arrived)     the drive's clock is advanced to `arrived`, the command's requests start there
//!   next_wake()                  when there is work again
//!   poll(now)                    events up to now happen; finished commands complete
//! ```
//!
//! The engine has no thread and no clock of its own: its owner passes the time. So it can be tested without a clock.
//!
//! **The way to the client** takes time that is not the drive's. A completion is therefore sent early by the time of
//! the way there and back, the *head start*: the drive's events may happen up to it before their time. A command that
//! arrives meanwhile starts at the last event that has happened, at most the head start late, and its own completion is
//! early by the same.
//!
//! Commands to the running drive have files of their own: [`snapshot`], [`power`]; injected faults are in
//! [`crate::fault`], a drive's bytes in a file in [`file_content`].

mod file_content;
mod memory_limit;
mod power;
mod snapshot;
mod times;
mod turnaround;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flashwise_block::{
    BlockError, ByteSize, Completion, DeviceCounters, DeviceInfo, IoBuffer, Nanos, Operation, Request,
};
use flashwise_ssd::flash::Statistics;
use flashwise_trace::TraceRecord;

use crate::attached::Attached;
use crate::buffer_pool::BufferPool;
use crate::capture::Capture;
use crate::fault::{FaultCommand, FaultState, Faults};
use crate::kernel_times::{KernelBaseline, KernelTimes, TimeSum};
use crate::pace::{Clocks, Pace, Span};
use crate::slab::Slab;
use crate::{AttachError, AttachReport};
use file_content::FileContent;
use memory_limit::MemoryLimit;
pub use power::PowerCut;
pub(crate) use times::Times;
pub use times::{KindLatencies, KindLatency};
use turnaround::Turnarounds;

/// The client that stands for the kernel; connections are numbered from 1 on.
pub(crate) const KERNEL_CLIENT: u32 = 0;

/// Initial capacity for commands in flight.
const COMMANDS: usize = 1024;

/// A client's command.
#[derive(Debug)]
pub struct HostRequest {
    /// The client's connection; handed back untouched.
    pub client: u32,
    /// The client's own mark; handed back untouched.
    pub cookie: u64,
    /// The client's process, for the capture.
    pub process: Option<u32>,
    /// The operation.
    pub operation: Operation,
    /// First byte on the drive.
    pub offset: ByteSize,
    /// How many bytes; 0 for a flush.
    pub length: ByteSize,
    /// Durable when it completes.
    pub fua: bool,
    /// The bytes of a write, exactly `length`.
    pub payload: Option<IoBuffer>,
}

/// The completion for the client.
#[derive(Debug)]
pub struct HostCompletion {
    /// The command's connection.
    pub client: u32,
    /// The command's mark.
    pub cookie: u64,
    /// The command.
    pub operation: Operation,
    /// From where on.
    pub offset: ByteSize,
    /// Of how many bytes.
    pub length: ByteSize,
    /// Whether it is done.
    pub result: Result<(), BlockError>,
    /// The bytes of a read.
    pub payload: Option<IoBuffer>,
}

impl HostRequest {
    /// Its completion.
    fn completed(&self, result: Result<(), BlockError>, payload: Option<IoBuffer>) -> HostCompletion {
        let Self { client, cookie, operation, offset, length, .. } = *self;
        HostCompletion { client, cookie, operation, offset, length, result, payload }
    }
}

/// When [`Engine::poll`] has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Now.
    Now,
    /// At a moment of the machine's.
    At(Instant),
    /// Not before the next command.
    Never,
}

/// A command in flight.
#[derive(Debug)]
struct Active {
    command: HostRequest,
    arrived: Instant,
    submitted: Nanos,
    /// Its place in the capture.
    captured: u64,
    /// Requests that are not done; a command that is longer than the drive's longest request is several.
    pending: u32,
    /// When the last of those that are done was.
    completed: Nanos,
    /// Delay of the completion after the drive has done the command.
    delay: Nanos,
    result: Result<(), BlockError>,
    /// The bytes of a read.
    read: Option<IoBuffer>,
    /// The number of a flush, where bytes are in a file.
    flush: u64,
}

/// A drive that follows the machine's clock.
pub struct Engine {
    drive: Attached,
    /// `None` if completions are sent at once.
    clocks: Option<Clocks>,
    round_trips: RoundTrips,
    turnarounds: Turnarounds,
    /// Time of each command in the server, recorded on request.
    service_times: Option<Vec<Span>>,
    /// Memory for the bytes of commands.
    buffers: BufferPool,
    active: Slab<Active>,
    /// Completed by the drive while its clock was brought forward, with when.
    ready: VecDeque<Completion>,
    /// Commands that make no sense to the drive.
    refused: Vec<HostCompletion>,
    /// Commands that the drive has done and whose completions are delayed, with their due times.
    delayed: BTreeSet<(Nanos, u32)>,
    capture: Option<Capture>,
    /// Since the last snapshot.
    times: Box<Times>,
    /// Before that. The taker of a snapshot adds the times since then; the engine waits for that only at its end.
    reported_times: Arc<Mutex<Times>>,
    faults: Faults,
    power_cuts: u64,
    /// `None` where as much may be written as there is memory.
    memory_limit: Option<MemoryLimit>,
    /// Where bytes are in a file, and not in the drive.
    bytes: Option<FileContent>,
    /// The drive at the start.
    baseline: Baseline,
    /// Requests that came through the kernel, and what the drive took for them.
    kernel: TimeSum,
    /// How long programs on the mounted drive waited.
    kernel_times: Option<KernelTimes>,
}

/// Round-trip times between clients and the server.
#[derive(Clone, Copy, Debug)]
struct RoundTrips {
    /// Through a socket.
    socket: Duration,
    /// Through the kernel, where that is another one.
    kernel: Option<Duration>,
    /// How much earlier than the drive's time completions are sent: the shortest of the round trips in use.
    head_start: Duration,
}

impl RoundTrips {
    fn of(&self, client: u32) -> Duration {
        self.kernel.filter(|_| client == KERNEL_CLIENT).unwrap_or(self.socket)
    }
}

/// The drive's counters when it was attached.
#[derive(Debug)]
struct Baseline {
    at: Nanos,
    counters: DeviceCounters,
    flash: Statistics,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("drive", &self.info().name).finish_non_exhaustive()
    }
}

/// Pages that are examined for BLOCK_STATUS requests before other requests are served; bounds the delay of others.
pub(crate) const ALLOCATION_STEPS: usize = 16_384;
/// Most extents of a reply.
const ALLOCATION_RANGES: usize = 1024;

impl Engine {
    /// A drive whose clock starts at `began`. `round_trip` is the time of the way to the client and back.
    ///
    /// # Errors
    /// [`AttachError::TimeScale`] for an impossible pace.
    pub fn new(
        drive: impl Into<Attached>,
        pace: Pace,
        round_trip: Duration,
        capture: Option<Capture>,
        began: Instant,
    ) -> Result<Self, AttachError> {
        let drive = drive.into();
        let clocks = match pace {
            Pace::Free => None,
            Pace::Scaled(scale) => {
                Pace::scaled(scale)?;
                Some(Clocks::new(began, drive.now(), scale))
            }
        };
        let baseline = Baseline { at: drive.now(), counters: drive.counters(), flash: drive.flash_statistics() };
        Ok(Self {
            baseline,
            drive,
            clocks,
            round_trips: RoundTrips { socket: round_trip, kernel: None, head_start: round_trip },
            turnarounds: Turnarounds::default(),
            service_times: None,
            buffers: BufferPool::default(),
            active: Slab::with_capacity(COMMANDS),
            ready: VecDeque::with_capacity(COMMANDS),
            refused: Vec::with_capacity(COMMANDS),
            delayed: BTreeSet::new(),
            capture,
            times: Box::default(),
            reported_times: Arc::default(),
            faults: Faults::default(),
            power_cuts: 0,
            memory_limit: None,
            bytes: None,
            kernel: TimeSum::default(),
            kernel_times: None,
        })
    }

    /// Properties of the drive.
    pub fn info(&self) -> &DeviceInfo {
        self.drive.info()
    }

    /// The parts of a range, in order, each with whether it is a hole, which reads as zeros; at least the first part,
    /// and as much as `steps` pages allow, from which the examined ones are subtracted. `None` if the range is not on
    /// the drive.
    ///
    /// # Errors
    /// When the data file cannot be read.
    pub(crate) fn allocation(
        &self,
        offset: u64,
        length: u32,
        one: bool,
        steps: &mut usize,
    ) -> Result<Option<Vec<(u32, bool)>>, AttachError> {
        let capacity = self.info().capacity.0;
        let Some(end) = offset.checked_add(length.into()).filter(|&end| end <= capacity) else { return Ok(None) };
        let mut ranges: Vec<(u32, bool)> = Vec::new();
        let mut at = offset;
        while at < end && (*steps > 0 || ranges.is_empty()) {
            let (until, is_hole) = self.part_at(at, end)?;
            let (part, count) = ((until - at) as u32, ranges.len());
            match ranges.last_mut() {
                Some((length, is_same)) if *is_same == is_hole => *length += part,
                Some(_) if one || count == ALLOCATION_RANGES => break,
                _ => ranges.push((part, is_hole)),
            }
            (at, *steps) = (until, steps.saturating_sub(1));
        }
        Ok(Some(ranges))
    }

    /// Where the extent that starts at `at` ends, as far as one lookup shows, and whether it is a hole.
    fn part_at(&self, at: u64, end: u64) -> Result<(u64, bool), AttachError> {
        if let Some(bytes) = &self.bytes {
            return bytes.part_at(at, end);
        }
        let page = self.drive.page_bytes();
        let until = (at / page * page).saturating_add(page).min(end);
        Ok((until, self.drive.is_hole(ByteSize(at))))
    }

    /// Limits the memory for written data, of which the drive keeps that many `copies`: two if power cuts are enabled.
    /// Writes of further pages fail with [`BlockError::NoSpace`].
    pub fn limit_memory(&mut self, limit: ByteSize, copies: u64) {
        let drive = &self.drive;
        let page_bytes = drive.page_bytes();
        let mut limit = MemoryLimit::new(drive.info().capacity, page_bytes, copies.max(1), limit);
        if drive.carries_bytes() {
            limit.hold(|byte| drive.carries_bytes_of(byte));
        }
        self.memory_limit = Some(limit);
    }

    /// Buffers for the bytes of commands; callers return those of completed reads.
    pub(crate) fn buffers(&self) -> BufferPool {
        self.buffers.clone()
    }

    /// Allocates memory in advance: for that many bytes of content, within the limit, and for that many requests in
    /// flight.
    pub fn reserve(&mut self, content: ByteSize, requests: usize) {
        let room = self.room().unwrap_or(u64::MAX);
        self.drive.reserve(requests, ByteSize(content.0.min(room)));
    }

    /// How much more memory may hold, bytes; `None` where there is no limit.
    pub(crate) fn room(&self) -> Option<u64> {
        let in_file_alone = self.bytes.is_some() && !self.drive.depends_on_content();
        self.memory_limit.as_ref().map(MemoryLimit::room).or(in_file_alone.then_some(0))
    }

    /// Whether writes have been refused because of the limit; reported once. Returns the bytes held.
    pub(crate) fn take_memory_full(&mut self) -> Option<u64> {
        self.memory_limit.as_mut().and_then(MemoryLimit::take_report)
    }

    /// Seconds on the machine's clock per second on the drive's; 1 if completions are sent at once.
    pub fn time_scale(&self) -> f64 {
        self.clocks.map_or(1.0, |clocks| clocks.scale())
    }

    /// Whether completions are sent at the drive's times.
    pub(crate) fn is_paced(&self) -> bool {
        self.clocks.is_some()
    }

    /// The way through the kernel and back is known; whether there are sockets too.
    pub(crate) fn set_kernel_round_trip(&mut self, takes: Duration, has_sockets: bool) {
        self.round_trips.kernel = Some(takes);
        self.round_trips.head_start = if has_sockets { takes.min(self.round_trips.socket) } else { takes };
    }

    /// Keeps from now on how long each command is in the server, which takes memory.
    pub(crate) fn keep_service_times(&mut self) {
        self.service_times = Some(Vec::new());
    }

    /// Time of each command in the server, from its arrival to its completion, in the order of completion.
    pub(crate) fn service_times(&self) -> &[Span] {
        self.service_times.as_deref().unwrap_or_default()
    }

    /// A client has disconnected.
    pub(crate) fn forget_client(&mut self, client: u32) {
        self.turnarounds.forget(client);
    }

    /// Commands in flight.
    pub fn outstanding(&self) -> usize {
        self.active.len() + self.refused.len()
    }

    /// Accepts a command with its time of arrival, not before that of an earlier one.
    ///
    /// # Errors
    /// When the drive is lost as a whole. An invalid command completes with its error.
    pub fn submit(&mut self, command: HostRequest, arrived: Instant) -> Result<(), AttachError> {
        if let Err(error) = self.check(&command).and_then(|()| self.make_room(&command)) {
            self.refused.push(command.completed(Err(error), None));
            command.payload.into_iter().for_each(|payload| self.buffers.give(payload));
            return Ok(());
        }
        self.catch_up(arrived)?;
        let index = self.take(command, arrived);
        if let Err(error) = self.send(index) {
            // The check above rejects invalid commands; a refusal now is due to the drive's state.
            self.reject(index, error);
        }
        Ok(())
    }

    /// Brings the drive's clock to a moment of the machine's.
    fn catch_up(&mut self, at: Instant) -> Result<(), BlockError> {
        let Some(clocks) = self.clocks else { return Ok(()) };
        let now = clocks.simulated(at);
        while let Some(completion) = self.drive.wait_until(now)? {
            self.ready.push_back(completion);
        }
        Ok(())
    }

    /// Whether the drive can do it, as a whole.
    fn check(&self, command: &HostRequest) -> Result<(), BlockError> {
        let HostRequest { operation, offset, length, ref payload, .. } = *command;
        let reject =
            |reason: &str| Err(BlockError::InvalidRequest { operation, offset, length, reason: reason.to_owned() });
        let info = self.info();
        if operation == Operation::Flush {
            return Ok(());
        }
        if !offset.is_multiple_of(info.logical_block) || !length.is_multiple_of(info.logical_block) || length.0 == 0 {
            return reject("offset and length must be multiples of the logical block, and not zero");
        }
        if offset.0.checked_add(length.0).is_none_or(|end| end > info.capacity.0) {
            return reject("it ends beyond the drive");
        }
        if self.faults.refuses(operation) {
            return Err(BlockError::ReadOnly);
        }
        match (operation, payload) {
            (Operation::Write, Some(payload)) if payload.len() as u64 == length.0 => Ok(()),
            (Operation::Write, _) => reject("a write without data"),
            _ => Ok(()),
        }
    }

    /// Records the effect of a command on memory.
    fn make_room(&mut self, command: &HostRequest) -> Result<(), BlockError> {
        let Some(limit) = &mut self.memory_limit else { return Ok(()) };
        limit.admit(command.operation, command.offset, command.length).then_some(()).ok_or(BlockError::NoSpace)
    }

    fn take(&mut self, command: HostRequest, arrived: Instant) -> u32 {
        let submitted = self.drive.now();
        self.turnarounds.submitted(command.client, arrived, &mut self.times.at_once);
        let flush = self.prepare_transfer(&command);
        let HostRequest { operation, offset, length, fua, process, .. } = command;
        let record = TraceRecord { fua, process, ..TraceRecord::new(submitted, operation, offset, length) };
        let captured = self.capture.as_mut().map_or(0, |capture| capture.submitted(record));
        let in_pieces = self.bytes.is_none() && length > self.info().max_transfer;
        let read = (operation == Operation::Read && in_pieces).then(|| self.buffers.take(length));
        let delay = self.faults.delay(submitted);
        let (pending, completed, result) = (0, submitted, Ok(()));
        let active = Active { command, arrived, submitted, captured, pending, completed, delay, result, read, flush };
        self.active.insert(active)
    }

    /// Hands the drive the requests of a command.
    fn send(&mut self, index: u32) -> Result<(), BlockError> {
        let longest = self.info().max_transfer.0.max(1);
        let Some(active) = self.active.get_mut(index) else { return Ok(()) };
        let HostRequest { operation, offset, length, fua, .. } = active.command;
        let whole = matches!(operation, Operation::Flush | Operation::Trim) || length.0 <= longest;
        // In a file, bytes are moved when the drive has done its part; a drive that compresses needs them before.
        let carries = self.bytes.is_none();
        let looks = self.drive.depends_on_content();
        let mut payload = if carries { active.command.payload.take() } else { None };
        let pieces = if whole { 1 } else { length.0.div_ceil(longest) };
        for piece in 0..pieces {
            let from = piece * longest;
            let size = if whole { length.0 } else { longest.min(length.0 - from) };
            let mut request = match operation {
                Operation::Flush => Request::flush(),
                Operation::Read if !carries => Request::read(offset, ByteSize(size)),
                Operation::Write if !carries && !looks => Request::write(offset, ByteSize(size)),
                Operation::Read => Request::read(offset, length).with_buffer(self.buffers.take(ByteSize(size))),
                Operation::Write if carries && whole => {
                    Request { buffer: payload.take(), ..Request::write(offset, length) }
                }
                Operation::Write => {
                    let bytes = payload.as_deref().or(active.command.payload.as_deref());
                    let bytes = bytes.and_then(|bytes| bytes.get(from as usize..(from + size) as usize));
                    Request::write(offset, length).with_buffer(self.buffers.copy_of(bytes.unwrap_or_default()))
                }
                Operation::Trim => Request::trim(offset, length),
                Operation::WriteZeroes => Request::write_zeroes(offset, ByteSize(size)),
            };
            if operation != Operation::Flush {
                request.offset = ByteSize(offset.0 + from);
            }
            request.fua = fua && operation.writes();
            self.drive.submit(request.tagged(piece << 32 | u64::from(index)))?;
            active.pending += 1;
        }
        payload.into_iter().for_each(|payload| self.buffers.give(payload));
        Ok(())
    }

    /// A command that the drive did not accept completes with the error, once its accepted part is done.
    fn reject(&mut self, index: u32, error: BlockError) {
        let Some(active) = self.active.get_mut(index) else { return };
        active.result = Err(error);
        if active.pending == 0 {
            let Some(active) = self.active.remove(index) else { return };
            if let Some(capture) = &mut self.capture {
                capture.answered(active.captured, Nanos(0));
            }
            self.turnarounds.lost(active.command.client);
            self.refused.push(active.command.completed(active.result, None));
        }
    }

    /// Injects or clears faults; returns the active ones.
    ///
    /// # Errors
    /// [`AttachError::Refused`] for faults that this drive does not support; when the drive is lost as a whole.
    pub fn fault(&mut self, order: &FaultCommand, at: Instant) -> Result<FaultState, AttachError> {
        order.check(self.info()).map_err(AttachError::Refused)?;
        self.catch_up(at)?;
        let now = self.drive.now();
        self.faults.apply(order, now);
        Ok(self.faults.state(now))
    }

    /// When there is something to do again.
    pub fn next_wake(&self) -> Wake {
        if !self.ready.is_empty() || !self.refused.is_empty() {
            return Wake::Now;
        }
        let due = self.delayed.first().map(|&(due, _)| due);
        match (self.clocks, self.drive.next_event().into_iter().chain(due).min()) {
            _ if self.outstanding() == 0 => Wake::Never,
            (Some(clocks), Some(event)) => {
                let at = clocks.machine(event);
                Wake::At(at.checked_sub(self.round_trips.head_start).unwrap_or(at))
            }
            _ => Wake::Now,
        }
    }

    /// Advances the drive up to `now`, and puts completions into `answers`.
    ///
    /// # Errors
    /// When the drive is lost as a whole, or the capture cannot be written.
    pub fn poll(&mut self, now: Instant, answers: &mut Vec<HostCompletion>) -> Result<(), AttachError> {
        answers.append(&mut self.refused);
        while let Some(completion) = self.ready.pop_front() {
            self.completed(completion, now, answers);
        }
        match self.clocks {
            None => {
                self.poll_all(now, answers)?;
                while let Some((due, index)) = self.delayed.pop_first() {
                    let _ = self.drive.wait_until(due)?;
                    self.answer(index, now, answers);
                }
            }
            Some(clocks) => {
                let head_start = clocks.simulated_span(self.round_trips.head_start);
                let until = Nanos(clocks.simulated(now).0.saturating_add(head_start.0));
                while let Some(completion) = self.drive.wait_within(until)? {
                    self.completed(completion, now, answers);
                }
                while let Some((_, index)) = self.delayed.first().copied().filter(|&(due, _)| due <= until) {
                    self.delayed.pop_first();
                    self.answer(index, now, answers);
                }
                if self.drive.outstanding() > 0 && self.drive.next_event().is_none() {
                    return Err(BlockError::Protocol("the simulated drive lost a request").into());
                }
            }
        }
        if let Some(capture) = &mut self.capture {
            capture.flush()?;
        }
        Ok(())
    }

    /// Lets the drive do all requests in flight.
    fn poll_all(&mut self, now: Instant, answers: &mut Vec<HostCompletion>) -> Result<(), BlockError> {
        while let Some(completion) = self.ready.pop_front() {
            self.completed(completion, now, answers);
        }
        while let Some(completion) = self.drive.wait()? {
            self.completed(completion, now, answers);
        }
        Ok(())
    }

    /// A request is done; with the last of a command's, the command is.
    fn completed(&mut self, completion: Completion, now: Instant, answers: &mut Vec<HostCompletion>) {
        let (index, piece) = (completion.tag as u32, completion.tag >> 32);
        let longest = self.info().max_transfer.0;
        let Some(active) = self.active.get_mut(index) else { return };
        active.pending -= 1;
        active.completed = active.completed.max(completion.completed_at);
        if let (Err(error), true) = (completion.result, active.result.is_ok()) {
            active.result = Err(error);
        }
        match (active.command.operation, &mut active.read, completion.buffer) {
            (Operation::Read, Some(read), Some(bytes)) => {
                let from = (piece * longest) as usize;
                read[from..from + bytes.len()].copy_from_slice(&bytes);
                self.buffers.give(bytes);
            }
            (Operation::Read, read @ None, bytes) => *read = bytes,
            (_, _, Some(bytes)) => self.buffers.give(bytes),
            (_, _, None) => {}
        }
        if active.pending > 0 {
            return;
        }
        if active.delay > Nanos(0) {
            active.completed = Nanos(active.completed.0.saturating_add(active.delay.0));
            self.delayed.insert((active.completed, index));
        } else {
            self.answer(index, now, answers);
        }
    }

    /// Completes a command.
    fn answer(&mut self, index: u32, now: Instant, answers: &mut Vec<HostCompletion>) {
        let Some(mut active) = self.active.remove(index) else { return };
        let HostRequest { operation, offset, length, .. } = active.command;
        if active.result.is_ok() {
            active.result = self.faults.done(operation, offset, length);
        }
        if active.result.is_ok() {
            active.result = self.transfer(&mut active);
        }
        self.account(&active, now);
        let Active { result, read, command, .. } = active;
        let (payload, unread) = if result.is_ok() { (read, None) } else { (None, read) };
        answers.push(command.completed(result, payload));
        command.payload.into_iter().chain(unread).for_each(|buffer| self.buffers.give(buffer));
    }

    /// Records the latency of a command, and the delay of its completion.
    fn account(&mut self, active: &Active, now: Instant) {
        let latency = active.completed.since(active.submitted);
        if let Some(capture) = &mut self.capture {
            capture.answered(active.captured, latency);
        }
        let client = active.command.client;
        let resided = now.saturating_duration_since(active.arrived);
        self.turnarounds.completed(client, now, resided);
        if let Some(service_times) = &mut self.service_times {
            service_times.push(Span { from: active.arrived, takes: resided });
        }
        if active.result.is_err() {
            self.times.failed += 1;
            return;
        }
        self.times.record(active.command.operation, latency);
        if client == KERNEL_CLIENT {
            self.kernel.add(latency.0);
        }
        let way = self.round_trips.of(client);
        self.times.machine.record(nanos(resided + way));
        if let Some(clocks) = self.clocks {
            // The client receives it after the way back. If the drive is faster than the way, that is late however
            // early the completion is sent.
            let due = clocks.machine(active.completed);
            self.times.late.record(nanos((now + way).saturating_duration_since(due)));
        }
    }

    /// Requests that came through the kernel, and what the drive took for them, on its own clock.
    pub(crate) fn kernel_requests(&self) -> TimeSum {
        self.kernel
    }

    /// Compares what programs waited, as the kernel counts it now, with what the drive took.
    pub(crate) fn compare_with_kernel(&mut self, baseline: &KernelBaseline, device: TimeSum) {
        let scale = self.clocks.map(|clocks| clocks.scale());
        self.kernel_times = scale.and_then(|scale| baseline.times(device, self.kernel, scale));
    }

    /// The report from the start to now; ends the capture.
    ///
    /// # Errors
    /// When the capture cannot be written to its end.
    pub fn finish(self) -> Result<AttachReport, AttachError> {
        let captured = self.capture.map(Capture::finish).transpose()?;
        let mut times = self.reported_times.lock().unwrap_or_else(PoisonError::into_inner);
        times.merge(&self.times);
        let drive = &self.drive;
        let (info, counters) = (drive.info(), drive.counters().since(&self.baseline.counters));
        Ok(AttachReport {
            schema: "flashwise.attach",
            schema_version: 1,
            device: info.name.clone(),
            capacity_bytes: info.capacity.0,
            simulated_ns: drive.now().since(self.baseline.at).0,
            write_amplification: counters.write_amplification(),
            space: drive.space_use(),
            counters,
            latency: times.requests(),
            failed: times.failed,
            pacing: self.clocks.map(|clocks| times.pacing(self.round_trips.head_start, clocks.scale())),
            kernel: self.kernel_times,
            capture: captured,
        })
    }
}

pub(crate) fn nanos(duration: Duration) -> Nanos {
    Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
