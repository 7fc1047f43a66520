//! A file as a device: what a program sees that opened it with `O_DIRECT` and has many requests under way, as with
//! io_uring.
//!
//! A request becomes those of the file's extents ([`Kernel`], `fs/direct_io.rs`), and completes when they have. A flush
//! is `fdatasync`, a trim punches a hole once all requests before it have completed; both are waited for when they are
//! submitted, so they never overlap with what comes later. The file is allocated at once and has never been written, as
//! a scratch file of `flashwise learn` has: the first write of a block makes it part of the file, which the journal
//! takes note of.

use std::collections::VecDeque;

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Clock, Completion, DeviceCounters, DeviceInfo, ExtentMap, Nanos, Operation,
    PlacementUnknown, Request,
};

use crate::fs::inode::Ino;
use crate::{Allocate, FileHandle, Kernel, KernelError, OpenOptions, PAGE, QueueLimits, ReadInto, WriteFrom};

/// The file's name.
const FILE: &str = "scratch";
/// What io_uring accepts at once: as `flashwise learn` on a directory.
const QUEUE_DEPTH: u32 = 256;

/// The largest power of two that reaches the drive as one request, whatever memory it is in: each page of scattered
/// memory is a segment of its own, so an NVMe drive's 127 segments are 508 KiB, and a request of 1 MiB is cut there,
/// within a chunk.
fn largest_whole(limits: &QueueLimits) -> ByteSize {
    let longest = limits.max_request.0.min(u64::from(limits.max_segments).saturating_mul(PAGE)).max(PAGE);
    ByteSize(1 << longest.ilog2())
}

/// A request that is under way.
#[derive(Debug)]
struct UnderWay {
    ticket: u64,
    request: Request,
    submitted_at: Nanos,
}

/// A file of a kernel.
#[derive(Debug)]
pub struct KernelFile<D> {
    kernel: Kernel<D>,
    file: FileHandle,
    ino: Ino,
    info: DeviceInfo,
    under_way: Vec<UnderWay>,
    ready: VecDeque<Completion>,
    counters: DeviceCounters,
}

impl<D: BlockDevice> KernelFile<D> {
    /// Makes a new file of a size, which is a multiple of 4 KiB.
    ///
    /// # Errors
    /// When there is no space for it, or the drive fails.
    pub fn create(mut kernel: Kernel<D>, size: ByteSize) -> Result<Self, KernelError> {
        if size.0 == 0 || !size.0.is_multiple_of(PAGE) {
            return Err(KernelError::Invalid(format!("a scratch file of {size}; it needs a multiple of 4 KiB")));
        }
        let file = kernel.open(FILE, OpenOptions::read_write().create(true).direct(true))?;
        kernel.fallocate(file, ByteSize(0), size, Allocate::Grow)?;
        kernel.fsync(file)?;
        let ino = kernel.handle(file)?.ino;
        let drive = kernel.device().info();
        let info = DeviceInfo {
            name: format!("a file on {}", drive.name),
            capacity: size,
            logical_block: drive.logical_block,
            max_transfer: largest_whole(kernel.queue.limits()),
            queue_depth: QUEUE_DEPTH,
            clock: Clock::Virtual,
            atomic_write: drive.atomic_write,
        };
        let (under_way, ready, counters) = (Vec::new(), VecDeque::new(), DeviceCounters::default());
        Ok(Self { kernel, file, ino, info, under_way, ready, counters })
    }

    /// The kernel below.
    pub fn kernel(&self) -> &Kernel<D> {
        &self.kernel
    }

    /// The kernel below, for what comes after this device. Completions that were not taken are lost.
    pub fn into_kernel(self) -> Kernel<D> {
        self.kernel
    }

    fn start(&mut self, request: &Request) -> Result<u64, KernelError> {
        let costs = self.kernel.config().costs;
        let (offset, end) = (request.offset.0, request.offset.0 + request.length.0);
        match request.operation {
            Operation::Read => {
                self.kernel.enter(costs.read)?;
                self.kernel.start_direct_read(self.ino, offset, end)
            }
            Operation::Write => {
                self.kernel.enter_to_write(costs.write)?;
                let from = match &request.buffer {
                    Some(bytes) => WriteFrom::Bytes(bytes),
                    None => WriteFrom::Nothing(request.length),
                };
                if request.fua && !self.kernel.is_durable_by_fua(self.ino, offset, end) {
                    // It needs a commit or a flush behind it, which the writer waits for, as with `RWF_DSYNC`.
                    self.kernel.direct_write(self.ino, offset, end, &from, Some(true))?;
                    return Ok(self.kernel.new_ticket());
                }
                let is_whole = offset.is_multiple_of(PAGE) && end.is_multiple_of(PAGE);
                if !is_whole && !self.kernel.overwrites(self.ino, offset, end) {
                    // Linux takes the page cache for a part of a block that was never written, and waits.
                    self.kernel.pwrite(self.file, request.offset, from)?;
                    return Ok(self.kernel.new_ticket());
                }
                let fua = request.fua && self.kernel.queue.limits().volatile_cache;
                self.kernel.start_direct_write(self.ino, offset, end, &from, fua)
            }
            Operation::Flush => {
                self.kernel.fdatasync(self.file)?;
                Ok(self.kernel.new_ticket())
            }
            Operation::Trim | Operation::WriteZeroes => {
                self.wait_for_direct_io()?;
                self.kernel.fallocate(self.file, request.offset, request.length, Allocate::PunchHole)?;
                Ok(self.kernel.new_ticket())
            }
        }
    }

    /// `inode_dio_wait`, as `ext4_fallocate` and `xfs_file_fallocate` do: blocks that are punched out may belong to
    /// another file before a request to them would have completed.
    fn wait_for_direct_io(&mut self) -> Result<(), KernelError> {
        loop {
            self.reap();
            if self.under_way.is_empty() {
                return Ok(());
            }
            if !self.kernel.wait_for_any()? {
                return Err(BlockError::Protocol("the file system lost a request").into());
            }
        }
    }

    /// Takes what has completed, in the order of submission.
    fn reap(&mut self) {
        let kernel = &self.kernel;
        let (done, rest) = self.under_way.drain(..).partition(|one| kernel.is_redeemable(one.ticket));
        self.under_way = rest;
        let done: Vec<UnderWay> = done;
        for one in done {
            let outcome = self.kernel.redeem(one.ticket);
            self.complete(one, outcome);
        }
    }

    fn complete(&mut self, one: UnderWay, outcome: Result<crate::kernel::Ticket, KernelError>) {
        let UnderWay { mut request, submitted_at, .. } = one;
        let result = match outcome {
            Ok(ticket) => {
                if let (Operation::Read, Some(buffer)) = (request.operation, &mut request.buffer) {
                    ticket.fill(request.length.0 as usize, &mut ReadInto::Bytes(buffer));
                }
                Ok(())
            }
            Err(error) => Err(block_error(error)),
        };
        if request.operation == Operation::Write {
            let (first, last) = (request.offset.0 / PAGE, (request.offset.0 + request.length.0).div_ceil(PAGE));
            self.kernel.end_io(self.ino, first, last, &result);
        }
        if result.is_ok() {
            self.counters.count(request.operation, request.length);
        }
        self.ready.push_back(Completion {
            tag: request.tag,
            operation: request.operation,
            submitted_at,
            started_at: submitted_at,
            completed_at: self.kernel.now(),
            result,
            buffer: request.buffer,
        });
    }
}

fn block_error(error: KernelError) -> BlockError {
    match error {
        KernelError::Io(error) => error,
        KernelError::NoSpace => BlockError::NoSpace,
        other => BlockError::Os { context: "the file".to_owned(), message: other.to_string(), errno: 5 },
    }
}

impl<D: BlockDevice> BlockDevice for KernelFile<D> {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.kernel.now()
    }

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        self.info.check(&request)?;
        let submitted_at = self.kernel.now();
        match self.start(&request) {
            Ok(ticket) => self.under_way.push(UnderWay { ticket, request, submitted_at }),
            Err(error) => self.complete(UnderWay { ticket: 0, request, submitted_at }, Err(error)),
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        let mut slept = false;
        loop {
            if let Some(done) = self.ready.pop_front() {
                if slept {
                    let wake_up = self.kernel.config().costs.wake_up;
                    self.kernel.compute(wake_up);
                }
                return Ok(Some(done));
            }
            if self.under_way.is_empty() {
                return Ok(None);
            }
            self.reap();
            if self.ready.is_empty() {
                slept = true;
                if !self.kernel.wait_for_any().map_err(block_error)? {
                    return Err(BlockError::Protocol("the file system lost a request"));
                }
            }
        }
    }

    fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
        if self.ready.is_empty() {
            self.kernel.background().map_err(block_error)?;
            self.reap();
        }
        Ok(self.ready.pop_front())
    }

    fn outstanding(&self) -> usize {
        self.under_way.len() + self.ready.len()
    }

    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        let paused = self.kernel.pause(duration).map_err(block_error);
        self.reap();
        paused
    }

    fn counters(&self) -> DeviceCounters {
        self.counters
    }

    fn extents(&self) -> Result<ExtentMap, PlacementUnknown> {
        let status = self.kernel.status(FILE).map_err(|error| PlacementUnknown(error.to_string()))?;
        status.map(&self.kernel.device().info().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelConfig;
    use flashwise_ssd::{DeviceConfig, SimulatedSsd};

    /// Takes what space there is, in ever smaller pieces.
    fn fill(kernel: &mut Kernel<SimulatedSsd>, file: FileHandle) {
        let mut piece = 1 << 36;
        while piece >= PAGE {
            let end = kernel.size(file).unwrap();
            if kernel.fallocate(file, end, ByteSize(piece), Allocate::Grow).is_err() {
                piece /= 2;
            }
        }
    }

    #[test]
    fn a_write_of_which_a_part_has_no_space_leaves_no_request_behind() {
        for file_system in [crate::FileSystemKind::Ext4, crate::FileSystemKind::Xfs] {
            let drive = SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo").unwrap(), 1).unwrap();
            let kernel = Kernel::new(drive, KernelConfig { file_system, ..KernelConfig::default() }).unwrap();
            let mut file = KernelFile::create(kernel, ByteSize::mib(4)).unwrap();
            let other = file.kernel.open("other", OpenOptions::read_write().create(true)).unwrap();
            fill(&mut file.kernel, other);
            file.submit(Request::trim(ByteSize::mib(2), ByteSize::mib(2))).unwrap();
            assert!(file.wait().unwrap().unwrap().result.is_ok());
            file.kernel.sync().unwrap();
            fill(&mut file.kernel, other);
            let half = ByteSize::kib(128);
            let before = file.kernel.device_counters().host_bytes_written;
            file.submit(Request::write(ByteSize::mib(2) - half, half + half)).unwrap();
            assert_eq!(file.kernel.queue.outstanding(), 0, "requests of the first half");
            assert!(file.kernel.tickets.is_empty(), "a ticket that nobody redeems");
            assert!(file.kernel.device_counters().host_bytes_written >= before + half, "the first half was submitted");
            assert_eq!(file.wait().unwrap().unwrap().result, Err(BlockError::NoSpace), "{file_system:?}");
        }
    }
}
