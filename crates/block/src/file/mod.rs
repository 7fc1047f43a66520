//! A real drive, reached with `O_DIRECT` through a scratch file or as a raw device.
//!
//! ```text
//!   submit ─▶ host queue ─▶ slots (queue_depth of them) ─▶ engine: io_uring, or threads where that is forbidden
//!   wait   ◀─ ready      ◀─ stamped when the host sees it ◀─┘
//! ```
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | [`FileDevice`]: bookkeeping, times, counters, the meaning of results |
//! | `scratch.rs` | [`ScratchFile`]: the only file that flashwise ever writes to for a measurement |
//! | `direct.rs` | [`DirectFile`]: a file of the program's own, not protected |
//! | `medium.rs` | the target of the I/O: one of these files or a raw drive ([`crate::raw`]) |
//! | `engine.rs` | the interface between both: start a job, reap completed jobs |
//! | `ring.rs`, `threads.rs` | the two engines |
//! | `fiemap.rs` | where a file is on the drive |
//! | `statfs.rs` | whether its file system overwrites in place |
//! | `statx.rs` | its file system, and the alignment of direct I/O to it |
//! | `memory.rs` | payloads for requests that carry none |
//!
//! # Rules
//!
//! - **Memory outlives I/O.** A slot owns its request's memory until the engine has reported the job as done. Dropping
//!   the device waits for every job in flight; the memory of a job that does not complete in time is leaked, never
//!   freed.
//! - **Nothing waits for ever.** A request that does not complete within [`FileDevice::TIME_LIMIT`] after the engine
//!   got it ends the device: this call and every later one fail with [`BlockError::TimedOut`]. Linux waits that long
//!   for one command before it resets a drive (`nvme_core.io_timeout` and the SCSI disks' `timeout` are 30 s), so a
//!   working drive is never given up. The kernel itself cannot drop the request: the program may not end before it
//!   completes.
//! - **A failed flush is final.** After a flush or a FUA write has failed, the kernel may report the next flush as
//!   successful although data is lost, so every later flush and FUA write of the same device fails too.
//! - **Times** are `CLOCK_MONOTONIC`, zero when the device was opened. A request is stamped when it is submitted, so
//!   its time in the host queue counts, and when the host first sees its completion: inside [`BlockDevice::submit`],
//!   [`BlockDevice::wait`] or [`BlockDevice::pause`]. A caller that computes for long between those calls sees long
//!   latencies.
//!
//! # What a file cannot do
//!
//! A file system is between this device and the drive, with visible effects:
//!
//! - The file system completes reads of data that was never written (or was trimmed) without the drive. Write a region
//!   before measuring reads from it. The first write to a block also updates the file system's own data.
//! - A trim punches a hole (`fallocate`). The drive sees it only if the file system is mounted with `discard`, and the
//!   next write there may fail if the file system has become full meanwhile.
//! - A file has extents: neighbours in the file are mostly, but not always, neighbours on the drive, and the file
//!   system chooses where the first one starts: see [`BlockDevice::extents`]. The kernel splits requests that are
//!   larger than the drive accepts.
//! - Some file systems accept `O_DIRECT` but serve from memory (tmpfs since Linux 6.6, ZFS before 2.3): see the type in
//!   [`DeviceInfo::name`].

mod direct;
mod engine;
mod fiemap;
mod medium;
mod memory;
mod placement;
mod registered;
mod ring;
mod scratch;
mod statfs;
mod statx;
mod threads;
mod title;
mod write_back;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::mem;
use std::path::Path;
use std::time::{Duration, Instant};

pub use self::direct::DirectFile;
use self::engine::{Done, Engine, Job, Patience};
use self::medium::Medium;
use self::memory::{Noise, Pool};
pub use self::placement::Placement;
pub use self::registered::RegisteredFile;
use self::ring::Ring;
pub use self::scratch::ScratchFile;
use self::threads::Threads;
pub use self::title::FileTitle;
pub use self::write_back::start_write_back;
use crate::atomic::of_drive_below;
use crate::raw::{RawDrive, WriteConsent};
use crate::{
    BlockDevice, BlockError, ByteSize, Clock, Completion, DeviceCounters, DeviceInfo, ExtentMap, IoBuffer, Nanos,
    Operation, PlacementUnknown, Request,
};
pub use fiemap::file_extents;
pub use statfs::is_on_ext_or_xfs;

/// Largest request. The kernel splits it if the drive accepts less.
const MAX_TRANSFER: ByteSize = ByteSize::mib(8);

/// A real drive behind a [`ScratchFile`], or a raw one, on the machine's monotonic clock.
///
/// I/O goes through io_uring, up to 256 requests in flight. If io_uring is forbidden (many containers) or too old, 64
/// threads replace it, and [`DeviceInfo::name`] says so. A write without a buffer carries random bytes, so that a drive
/// that compresses gains nothing; a read without a buffer is carried out and its data discarded.
///
/// ```no_run
/// use flashwise_block::{BlockDevice, ByteSize, FileDevice, Request, execute};
/// # fn main() -> Result<(), flashwise_block::BlockError> {
/// let mut device = FileDevice::scratch("/var/tmp".as_ref(), ByteSize::gib(1))?;
/// let written = execute(&mut device, Request::write(ByteSize(0), ByteSize::kib(64)))?;
/// println!("{} on {}", written.latency(), device.info().name);
/// # Ok(())
/// # }
/// ```
pub struct FileDevice {
    /// Error of every later call.
    info: DeviceInfo,
    /// Zero of the clock.
    opened: Instant,
    /// Submitted, and waiting for a free slot.
    host_queue: VecDeque<InFlight>,
    /// One slot for each request that the engine can have at once; its index is the job's name there.
    slots: Vec<Option<InFlight>>,
    /// Indices of the empty slots.
    free: Vec<usize>,
    /// Completed, not yet given back.
    ready: VecDeque<Completion>,
    /// Scratch space of [`FileDevice::collect`].
    done: Vec<Done>,
    counters: DeviceCounters,
    noise: Option<Noise>,
    pool: Pool,
    /// The first failed flush or FUA write: nothing is known to be durable from then on.
    failed_flush: Option<BlockError>,
    /// When the engine got the job of each slot, in nanoseconds; [`EMPTY`] for a free slot. Separate from the slots, so
    /// that the search for the oldest reads only 2 KiB.
    started_ns: Vec<u64>,
    time_limit: Nanos,
    /// Why the device is lost as a whole.
    lost: Option<BlockError>,
    engine: Box<dyn Engine>,
    medium: Medium,
}

/// Nothing has started in this slot.
const EMPTY: u64 = u64::MAX;

/// A request on its way, and the memory that it moves.
struct InFlight {
    request: Request,
    submitted_at: Nanos,
    /// When the engine got it.
    started_at: Nanos,
    /// Where a read without a buffer of its own goes, or the zeros of a write of zeros.
    sink: Option<IoBuffer>,
}

impl FileDevice {
    /// Default time limit of a request; see [`FileDevice::with_time_limit`].
    pub const TIME_LIMIT: Nanos = Nanos::secs(30);

    /// The same device with another time limit for each request.
    pub fn with_time_limit(mut self, limit: Nanos) -> Self {
        self.time_limit = limit;
        self
    }

    /// A device over a new scratch file in `directory`: [`ScratchFile::create`], then [`FileDevice::on_scratch_file`].
    ///
    /// # Errors
    /// Those of the two.
    pub fn scratch(directory: &Path, wanted: ByteSize) -> Result<Self, BlockError> {
        Self::on_scratch_file(ScratchFile::create(directory, wanted)?)
    }

    /// A device over `scratch`, which is deleted when the device is dropped.
    ///
    /// # Errors
    /// [`BlockError::Refused`] if the file system has no suitable direct I/O; [`BlockError::Os`] when the drive fails
    /// or no engine can be started.
    pub fn on_scratch_file(scratch: ScratchFile) -> Result<Self, BlockError> {
        Self::on(Medium::Scratch(scratch))
    }

    /// A device over a block device that is only read: opened `O_RDONLY`; writes, writes of zeros and trims are refused
    /// ([`BlockError::Refused`]).
    ///
    /// # Errors
    /// [`BlockError::Refused`] when `path` is no block device; [`BlockError::Os`] when it cannot be opened.
    pub fn raw_read_only(path: &Path) -> Result<Self, BlockError> {
        Self::on(Medium::Raw(RawDrive::read_only(path)?))
    }

    /// A device over a block device whose first bytes may be overwritten within `consent`: opened `O_EXCL`, and only if
    /// there is no objection ([`crate::RawPlan`]).
    ///
    /// # Errors
    /// [`BlockError::Refused`] with the gravest objection; [`BlockError::Os`] when it cannot be opened.
    pub fn raw_destructive(path: &Path, consent: &WriteConsent) -> Result<Self, BlockError> {
        Self::on(Medium::Raw(RawDrive::destructive(path, consent)?))
    }

    /// A device over a file of the program's own. Each such device has an engine of its own, so that several threads
    /// may have one each on the same file.
    ///
    /// # Errors
    /// [`BlockError::Os`] when no engine can be started.
    pub fn on_direct_file(file: &DirectFile) -> Result<Self, BlockError> {
        Self::on(Medium::Own(file.clone()))
    }

    fn on(medium: Medium) -> Result<Self, BlockError> {
        match Ring::new(medium.file()) {
            Ok(ring) => Self::with_engine(medium, Box::new(ring), None),
            Err(why) => Self::over_threads(medium, &why),
        }
    }

    /// The fallback for a machine without io_uring; `why` ends up in the device's name.
    fn over_threads(medium: Medium, why: &io::Error) -> Result<Self, BlockError> {
        let threads = Threads::new(medium.file());
        let note = title::threads_instead_of_ring(threads.depth(), why);
        Self::with_engine(medium, Box::new(threads), Some(&note))
    }

    fn with_engine(medium: Medium, engine: Box<dyn Engine>, note: Option<&str>) -> Result<Self, BlockError> {
        let depth = engine.depth();
        let info = DeviceInfo {
            name: medium.title(note),
            capacity: medium.capacity(),
            logical_block: medium.logical_block()?,
            max_transfer: MAX_TRANSFER,
            queue_depth: depth as u32,
            clock: Clock::Wall,
            atomic_write: of_drive_below(medium.path()),
        };
        Ok(Self {
            info,
            opened: Instant::now(),
            host_queue: VecDeque::new(),
            slots: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            ready: VecDeque::new(),
            done: Vec::with_capacity(depth),
            counters: DeviceCounters::default(),
            noise: None,
            pool: Pool::default(),
            failed_flush: None,
            started_ns: vec![EMPTY; depth],
            time_limit: Self::TIME_LIMIT,
            lost: None,
            engine,
            medium,
        })
    }

    /// Requests that the engine has.
    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Advances everything by one step: requests from the host queue into free slots, completed jobs into `ready`. An
    /// error means that the device is lost, and is remembered.
    fn turn(&mut self, patience: Patience) -> Result<(), BlockError> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        let result = self.try_turn(patience).map_err(|error| {
            let place = self.medium.place();
            BlockError::os(format!("{place}: the kernel accepts no more I/O; open the device again"), &error)
        });
        if let Err(error) = &result {
            self.lost = Some(error.clone());
        }
        result
    }

    /// The same, waiting for a completion until the oldest request exceeds its time limit. Then the device is lost;
    /// requests completed meanwhile are still returned.
    fn turn_in_time(&mut self) -> Result<(), BlockError> {
        let until = self.deadline();
        loop {
            self.turn(Patience::Until(until))?;
            let is_overdue = Instant::now() >= until;
            if is_overdue && self.in_flight() > 0 && self.deadline() == until {
                break;
            }
            if is_overdue || !self.ready.is_empty() {
                return Ok(());
            }
        }
        let error = BlockError::TimedOut { device: self.medium.place(), limit: self.time_limit };
        Err(self.lost.insert(error).clone())
    }

    /// When the oldest request in flight has taken too long.
    fn deadline(&self) -> Instant {
        let oldest = self.started_ns.iter().copied().min().filter(|&oldest| oldest != EMPTY);
        let started = oldest.map_or_else(Instant::now, |oldest| self.opened + Duration::from_nanos(oldest));
        started + Duration::from_nanos(self.time_limit.0)
    }

    fn try_turn(&mut self, patience: Patience) -> io::Result<()> {
        self.dispatch();
        self.collect(patience)?;
        if self.dispatch() { self.collect(Patience::Now) } else { Ok(()) }
    }

    /// Starts as much of the host queue as there are free slots; whether it was anything.
    fn dispatch(&mut self) -> bool {
        let mut any = false;
        while let Some(&slot) = self.free.last() {
            let Some(mut flight) = self.host_queue.pop_front() else { break };
            flight.started_at = self.now();
            self.started_ns[slot] = flight.started_at.0;
            self.free.pop();
            let job = Self::job(self.slots[slot].insert(flight), &mut self.pool, &mut self.noise);
            // SAFETY: the job points into the slot's own buffer or sink, which is neither touched nor dropped until the
            // engine has reported the slot as done (`finish`, `drop`), or into the noise, which is only read and lives
            // as long as the device.
            if let Err(error) = unsafe { self.engine.start(slot, job) } {
                let result = -error.raw_os_error().unwrap_or(libc::EAGAIN);
                self.finish(Done { slot, result, at: Instant::now() });
            }
            any = true;
        }
        any
    }

    /// The job for a request; its memory is the request's own or comes from `pool` or `noise`.
    fn job(flight: &mut InFlight, pool: &mut Pool, noise: &mut Option<Noise>) -> Job {
        let InFlight { request, sink, .. } = flight;
        let (offset, length) = (request.offset.0, request.length.0 as u32);
        match request.operation {
            Operation::Read => {
                let memory = match &mut request.buffer {
                    Some(buffer) => buffer,
                    None => sink.insert(pool.take(length as usize)),
                };
                Job::Read { start: memory.as_mut_ptr(), length, offset }
            }
            Operation::Write => {
                let start = match &request.buffer {
                    Some(buffer) => buffer.as_ptr(),
                    None => noise.get_or_insert_with(|| Noise::new(MAX_TRANSFER)).at(offset),
                };
                Job::Write { start, length, offset, durable: request.fua }
            }
            Operation::WriteZeroes => {
                let zeros = sink.insert(pool.take(length as usize));
                zeros.fill(0);
                Job::Write { start: zeros.as_ptr(), length, offset, durable: request.fua }
            }
            Operation::Trim => Job::Punch { offset, length: request.length.0 },
            Operation::Flush => Job::Sync,
        }
    }

    /// Takes completed jobs from the engine, waiting as long as `patience` allows.
    fn collect(&mut self, patience: Patience) -> io::Result<()> {
        let mut done = mem::take(&mut self.done);
        let result = self.engine.reap(patience, &mut done);
        done.drain(..).for_each(|done| self.finish(done));
        self.done = done;
        result
    }

    /// Turns the engine's result for a slot into a completion, and frees the slot.
    fn finish(&mut self, Done { slot, result, at }: Done) {
        let Some(InFlight { request, submitted_at, started_at, sink }) = self.slots[slot].take() else {
            debug_assert!(false, "slot {slot} is done twice");
            return;
        };
        self.free.push(slot);
        self.started_ns[slot] = EMPTY;
        if let Some(sink) = sink {
            self.pool.give_back(sink);
        }
        let mut result = self.outcome(&request, result);
        let durable = request.operation == Operation::Flush || request.operation.writes() && request.fua;
        match (&result, &self.failed_flush) {
            (Ok(()), Some(earlier)) if durable => result = Err(earlier.clone()),
            (Err(error), None) if durable => self.failed_flush = Some(after_failed_flush(error)),
            _ => {}
        }
        if result.is_ok() {
            count(&mut self.counters, &request);
        }
        self.ready.push_back(Completion {
            tag: request.tag,
            operation: request.operation,
            submitted_at,
            started_at,
            completed_at: self.nanos_at(at),
            result,
            buffer: request.buffer,
        });
    }

    /// The meaning of the kernel's return value for `request`.
    fn outcome(&self, request: &Request, result: i32) -> Result<(), BlockError> {
        let context = || {
            let what = match request.operation {
                Operation::Read => "read",
                Operation::Write => "write",
                Operation::Trim => "trim",
                Operation::WriteZeroes => "write of zeros",
                Operation::Flush => return format!("flush of {}", self.medium.place()),
            };
            format!("{what} of {} at byte {} of {}", request.length, request.offset.0, self.medium.place())
        };
        let moves_bytes = request.operation == Operation::Read || request.operation.writes();
        if result >= 0 && (!moves_bytes || result as u64 == request.length.0) {
            return Ok(());
        }
        if let Some(size) = self.shrunk_to() {
            let message =
                format!("it has shrunk from {} to {size}; the bytes beyond that are gone", self.info.capacity);
            return Err(BlockError::Os { context: context(), message, errno: (-result).max(0) });
        }
        if result >= 0 {
            let message =
                format!("only {result} of {} bytes were transferred; see the kernel log (dmesg)", request.length.0);
            return Err(BlockError::Os { context: context(), message, errno: 0 });
        }
        let error = io::Error::from_raw_os_error(-result);
        let is_trim = request.operation == Operation::Trim;
        let advice = match (-result, &self.medium) {
            (libc::EIO, _) => "; the drive failed: see the kernel log (dmesg)",
            (libc::ENODEV | libc::ENXIO, _) => "; the drive is gone: see the kernel log (dmesg)",
            (libc::ENOSPC, Medium::Scratch(_) | Medium::Own(_)) => "; free some space on this file system",
            (libc::ENOSPC, Medium::Raw(_)) => "; the storage below this device is full",
            (libc::EOPNOTSUPP, Medium::Scratch(_) | Medium::Own(_)) if is_trim => {
                "; this file system cannot free space within a file; use ext4, XFS, btrfs or f2fs"
            }
            (libc::EOPNOTSUPP, Medium::Raw(_)) if is_trim => "; this drive does not return zeros after a trim",
            _ => "",
        };
        Err(BlockError::Os { context: context(), message: format!("{error}{advice}"), errno: -result })
    }

    /// How large the medium is now, where that is less than it was when it was opened.
    fn shrunk_to(&self) -> Option<ByteSize> {
        self.medium.size_now().ok().filter(|&size| size < self.info.capacity)
    }

    fn nanos_at(&self, at: Instant) -> Nanos {
        Nanos(at.saturating_duration_since(self.opened).as_nanos() as u64)
    }
}

/// The result of every flush and FUA write after a failed one.
fn after_failed_flush(first: &BlockError) -> BlockError {
    let errno = if let BlockError::Os { errno, .. } = first { *errno } else { 0 };
    BlockError::Os {
        context: "an earlier flush or FUA write failed, so nothing written since is known to be durable; open the \
                  device again"
            .into(),
        message: first.to_string(),
        errno,
    }
}

fn count(counters: &mut DeviceCounters, request: &Request) {
    match request.operation {
        Operation::Read => {
            counters.host_reads += 1;
            counters.host_bytes_read += request.length;
        }
        Operation::Write => {
            counters.host_writes += 1;
            counters.host_bytes_written += request.length;
        }
        Operation::Trim => counters.trims += 1,
        Operation::WriteZeroes => {
            counters.zero_writes += 1;
            counters.bytes_zeroed += request.length;
        }
        Operation::Flush => counters.flushes += 1,
    }
}

impl BlockDevice for FileDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.nanos_at(Instant::now())
    }

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        self.info.check(&request)?;
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        self.medium.allow(&request)?;
        if request.operation == Operation::Write && request.buffer.is_none() {
            // Here, so that no latency contains the making.
            self.noise.get_or_insert_with(|| Noise::new(MAX_TRANSFER));
        }
        let submitted_at = self.now();
        self.host_queue.push_back(InFlight { request, submitted_at, started_at: submitted_at, sink: None });
        self.turn(Patience::Now)
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        let must_block = self.ready.is_empty() && self.outstanding() > 0;
        let turned = if must_block { self.turn_in_time() } else { self.turn(Patience::Now) };
        match self.ready.pop_front() {
            Some(completion) => Ok(Some(completion)),
            None => turned.map(|()| None),
        }
    }

    fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
        self.wait_until(Nanos(0))
    }

    fn wait_until(&mut self, deadline: Nanos) -> Result<Option<Completion>, BlockError> {
        let until = self.opened + Duration::from_nanos(deadline.0);
        loop {
            let is_over = Instant::now() >= until;
            let is_idle = self.in_flight() + self.host_queue.len() == 0;
            let must_block = !is_over && !is_idle && self.ready.is_empty();
            let turned = self.turn(if must_block { Patience::Until(until) } else { Patience::Now });
            if let Some(completion) = self.ready.pop_front() {
                return Ok(Some(completion));
            }
            turned?;
            if is_over {
                return Ok(None);
            }
            if is_idle {
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
            }
        }
    }

    fn outstanding(&self) -> usize {
        self.host_queue.len() + self.in_flight() + self.ready.len()
    }

    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        let until = Instant::now() + Duration::from_nanos(duration.0);
        while Instant::now() < until {
            if self.in_flight() + self.host_queue.len() > 0 {
                self.turn(Patience::Until(until))?;
            } else {
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
            }
        }
        Ok(())
    }

    fn counters(&self) -> DeviceCounters {
        self.counters
    }

    fn writable(&self) -> ByteSize {
        self.medium.writable()
    }

    fn extents(&self) -> Result<ExtentMap, PlacementUnknown> {
        self.medium.extents()
    }
}

impl Drop for FileDevice {
    fn drop(&mut self) {
        self.host_queue.clear();
        while self.in_flight() > 0 {
            let before = self.in_flight();
            let until = if self.lost.is_some() { Instant::now() } else { self.deadline() };
            if self.collect(Patience::Until(until)).is_err() || self.in_flight() == before {
                // The kernel may still write to this memory: leaking it is safer than reusing it.
                mem::forget((mem::take(&mut self.slots), self.noise.take()));
                return;
            }
        }
    }
}

impl fmt::Debug for FileDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileDevice")
            .field("info", &self.info)
            .field("outstanding", &self.outstanding())
            .field("medium", &self.medium)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
