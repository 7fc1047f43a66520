//! A program that works on one file, call after call, as fio's `psync` engine does.
//!
//! ```text
//!   Flow ── FlowSource: what, where ──▶ run ── pread, pwrite, fsync ──▶ Kernel ──▶ drive
//!                                        └──▶ FileRun: latencies as the program sees them, what the cache did, what
//!                                             reached the drive
//! ```
//!
//! The file is laid out first, as fio does: written in order, synced, and dropped from the page cache. The job has one
//! call under way at a time; a flow's queue depth is no matter to it, its think time is.

use std::path::Path;

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, DeviceCounters, LatencySummary, Nanos, Operation, Percentiles, Progress,
};
use flashwise_trace::workload::{Flow, FlowRequest, FlowSource, SourcePacing, WorkloadError};
use serde::{Deserialize, Serialize};

use crate::{FileHandle, Kernel, KernelCounters, KernelError, OpenOptions, PAGE};

/// `schema` of a [`FileRun`].
pub const FILE_RUN_SCHEMA: &str = "flashwise.file-run";
/// `schema_version` of a [`FileRun`].
pub const FILE_RUN_SCHEMA_VERSION: u32 = 1;

/// The file's name.
const FILE: &str = "job";
/// Bytes of one write while the file is laid out.
const LAYOUT_WRITE: ByteSize = ByteSize::mib(1);
/// Calls between two reports of the progress.
const CALLS_BETWEEN_PROGRESS: u64 = 1024;

/// What a job does beside its flow; the names are fio's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileJob {
    /// Size of the file.
    pub size: ByteSize,
    /// `direct`: around the page cache.
    pub direct: bool,
    /// A sync behind every so many writes; `None` for none.
    pub sync: Option<SyncEvery>,
}

/// How a file is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncEvery {
    /// `fsync` behind every so many writes.
    Fsync(u32),
    /// `fdatasync` behind every so many writes.
    Fdatasync(u32),
}

impl SyncEvery {
    fn every(self) -> u64 {
        match self {
            Self::Fsync(writes) | Self::Fdatasync(writes) => u64::from(writes.max(1)),
        }
    }
}

/// Why a job did not end well.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The flow.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A call.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The user interrupted it, or its progress could not be shown.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// What a file cannot do.
    #[error("{0}")]
    Unfit(String),
}

/// What a job saw, and what it cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileRun {
    /// Always [`FILE_RUN_SCHEMA`].
    pub schema: String,
    /// Always [`FILE_RUN_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The drive.
    pub device: String,
    /// The workload.
    pub workload: String,
    /// `ext4` or `xfs`.
    pub file_system: String,
    /// Memory of the page cache, bytes.
    pub memory_bytes: u64,
    /// Size of the file before the job, bytes.
    pub file_bytes: u64,
    /// Whether the job goes around the page cache.
    pub direct: bool,
    /// From the first call to the end of the last one, ns.
    pub elapsed_ns: u64,
    /// Bytes that the program read.
    pub bytes_read: u64,
    /// Bytes that the program wrote.
    pub bytes_written: u64,
    /// Reads, as the program sees them.
    pub reads: Percentiles,
    /// Writes, as the program sees them.
    pub writes: Percentiles,
    /// Syncs, as the program sees them.
    pub syncs: Percentiles,
    /// What the page cache and the file system did.
    pub kernel: KernelCounters,
    /// What reached the drive.
    pub drive: DeviceCounters,
}

impl FileRun {
    /// Calls a second, syncs not counted.
    pub fn calls_per_s(&self) -> f64 {
        (self.reads.count + self.writes.count) as f64 / (self.elapsed_ns.max(1) as f64 / 1e9)
    }
}

/// One file, and what was seen of it so far.
struct Job<'a, D> {
    kernel: &'a mut Kernel<D>,
    file: FileHandle,
    sync: Option<SyncEvery>,
    reads: LatencySummary,
    writes: LatencySummary,
    syncs: LatencySummary,
    bytes: [u64; 2],
    since_sync: u64,
}

impl<D: BlockDevice> Job<'_, D> {
    fn call(&mut self, request: &FlowRequest) -> Result<(), JobError> {
        let began = self.kernel.now();
        match request.operation {
            Operation::Read => {
                self.bytes[0] += self.kernel.pread(self.file, request.offset, request.length)?;
                self.reads.record(self.kernel.now().since(began));
            }
            Operation::Write | Operation::WriteZeroes => {
                self.bytes[1] += self.kernel.pwrite(self.file, request.offset, request.length)?;
                self.writes.record(self.kernel.now().since(began));
                self.since_sync += 1;
                if self.sync.is_some_and(|sync| self.since_sync >= sync.every()) {
                    self.sync()?;
                }
            }
            Operation::Flush => self.sync()?,
            Operation::Trim => {
                let hole = crate::Allocate::PunchHole;
                self.kernel.fallocate(self.file, request.offset, request.length, hole)?;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), JobError> {
        let began = self.kernel.now();
        match self.sync {
            Some(SyncEvery::Fdatasync(_)) => self.kernel.fdatasync(self.file)?,
            Some(SyncEvery::Fsync(_)) | None => self.kernel.fsync(self.file)?,
        }
        self.syncs.record(self.kernel.now().since(began));
        self.since_sync = 0;
        Ok(())
    }
}

/// Writes the file in order, syncs it and drops what is cached.
fn lay_out<D: BlockDevice>(kernel: &mut Kernel<D>, size: ByteSize) -> Result<(), KernelError> {
    let file = kernel.open(FILE, OpenOptions::read_write().create(true))?;
    let mut at = 0;
    while at < size.0 {
        let length = LAYOUT_WRITE.0.min(size.0 - at);
        kernel.pwrite(file, ByteSize(at), ByteSize(length))?;
        at += length;
    }
    kernel.close(file)?;
    kernel.sync()?;
    kernel.drop_caches()
}

/// Runs a flow on a file of a kernel. `base` is the folder that a trace's path is relative to.
///
/// # Errors
/// When the flow makes no sense or does not fit the file, and when a call fails.
pub fn run<D: BlockDevice>(
    kernel: &mut Kernel<D>,
    job: &FileJob,
    (workload, flow, seed): (&str, &Flow, u64),
    base: &Path,
    progress: &mut dyn Progress,
) -> Result<FileRun, JobError> {
    // Direct I/O is of whole sectors; the page cache takes any byte.
    let unit = if job.direct { kernel.device().info().logical_block } else { ByteSize(512) };
    if !job.size.0.is_multiple_of(PAGE) || job.size.0 == 0 {
        return Err(JobError::Unfit(format!("a file of {}: its size must be a multiple of 4 KiB", job.size)));
    }
    let mut requests = FlowSource::open(flow, 0, seed, job.size, unit, base)?;
    let think = match requests.pacing() {
        SourcePacing::Closed { think, .. } => Some(think),
        SourcePacing::Timed => None,
    };
    lay_out(kernel, job.size)?;
    let file = kernel.open(FILE, OpenOptions::read_write().direct(job.direct))?;
    let (began, kernel_before, drive_before) = (kernel.now(), kernel.counters(), kernel.device_counters());
    let until = flow.duration_ns.map(|duration| Nanos(began.0.saturating_add(duration)));
    let mut at_work = Job {
        kernel,
        file,
        sync: job.sync,
        reads: LatencySummary::new(),
        writes: LatencySummary::new(),
        syncs: LatencySummary::new(),
        bytes: [0; 2],
        since_sync: 0,
    };
    let mut calls = 0_u64;
    for request in requests.by_ref() {
        if until.is_some_and(|until| at_work.kernel.now() >= until) {
            break;
        }
        if calls.is_multiple_of(CALLS_BETWEEN_PROGRESS) {
            let done = flow.requests.map_or(0.0, |all| calls as f64 / all.max(1) as f64);
            progress.advance("calls", done)?;
        }
        calls += 1;
        let wait = match think {
            Some(think) if calls > 1 => think,
            Some(_) => Nanos(0),
            None => Nanos(began.0.saturating_add(request.at.0)).since(at_work.kernel.now()),
        };
        if wait.0 > 0 {
            at_work.kernel.pause(wait)?;
        }
        at_work.call(&request)?;
    }
    if let Some(failure) = requests.failure() {
        return Err(JobError::Unfit(failure.to_string()));
    }
    let Job { reads, writes, syncs, bytes, .. } = at_work;
    let elapsed = kernel.now().since(began);
    Ok(FileRun {
        schema: FILE_RUN_SCHEMA.to_owned(),
        schema_version: FILE_RUN_SCHEMA_VERSION,
        device: kernel.device().info().name.clone(),
        workload: workload.to_owned(),
        file_system: kernel.config().file_system.name().to_owned(),
        memory_bytes: kernel.config().memory.0,
        file_bytes: job.size.0,
        direct: job.direct,
        elapsed_ns: elapsed.0,
        bytes_read: bytes[0],
        bytes_written: bytes[1],
        reads: reads.percentiles(),
        writes: writes.percentiles(),
        syncs: syncs.percentiles(),
        kernel: kernel.counters().since(&kernel_before),
        drive: kernel.device_counters().since(&drive_before),
    })
}
