//! A store in a file of its own: direct I/O where the file system has it, io_uring for what is in flight together.
//!
//! The file is sparse. Its end moves in steps, so that few commits change its size; blocks that were never written, and
//! those that were given back, are holes.

use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use flashwise_block::{
    BlockError, ByteSize, DeviceCounters, DirectFile, FileDevice, IoBuffer, LockedFile, Operation, Request,
};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::{Medium, drive};
use crate::error::{Result, StoreError};

/// The file's end moves by an eighth of its size, within these bounds.
const GROWTH_MIN: u64 = 1 << 20;
const GROWTH_MAX: u64 = 256 << 20;

/// Longest request of one system call.
const MAX_TRANSFER: u64 = 1 << 20;

/// Devices that are kept for later calls. Each has an io_uring of its own.
const SPARE_DEVICES: usize = 8;

/// Largest file: ext4's limit with blocks of 4 KiB.
const CAPACITY: u64 = 16 << 40;

/// An open file, locked against other processes.
pub(crate) struct FileMedium {
    file: LockedFile,
    path: PathBuf,
    size: AtomicU64,
    is_direct: bool,
    /// Idle devices, and the file's size when they were opened.
    spare: Mutex<Vec<(u64, FileDevice)>>,
}

impl FileMedium {
    /// Opens an existing file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let io = |what: &str, error: std::io::Error| {
            let source = BlockError::os(path.display().to_string(), &error);
            StoreError::Io { what: what.to_owned(), source }
        };
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true);
        let direct = options.clone().custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32).open(path);
        let (file, is_direct) = match direct {
            Ok(file) => (file, true),
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                (options.open(path).map_err(|error| io("opening the store", error))?, false)
            }
            Err(error) => return Err(io("opening the store", error)),
        };
        let told = file.metadata().map_err(|error| io("opening the store", error))?;
        if !told.is_file() {
            let why = "it is not a regular file; a block device is opened with Store::open_device".to_owned();
            return Err(StoreError::NotAStore { place: path.display().to_string(), why });
        }
        let file = LockedFile::new(file).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => StoreError::InUse { place: path.display().to_string() },
            _ => io("locking the store", error),
        })?;
        let (path, size) = (path.to_owned(), AtomicU64::new(told.len()));
        Ok(Self { file, path, size, is_direct, spare: Mutex::new(Vec::new()) })
    }

    fn failed(&self, request: &Request, error: &std::io::Error) -> BlockError {
        let Request { operation, offset, length, .. } = request;
        BlockError::os(format!("{}: {operation:?} of {length} at byte {}", self.path.display(), offset.0), error)
    }

    /// One request by one system call.
    fn execute(&self, request: Request) -> Result<Option<IoBuffer>, BlockError> {
        let (offset, length) = (request.offset.0, request.length.0);
        let done = match request.operation {
            Operation::Read => return self.read(request).map(Some),
            Operation::Write => match &request.buffer {
                Some(buffer) => self.file.write_all_at(buffer, offset),
                None => return Err(BlockError::Protocol("a write without data")),
            },
            Operation::Trim | Operation::WriteZeroes => {
                let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                rustix::io::retry_on_intr(|| rustix::fs::fallocate(&*self.file, mode, offset, length))
                    .map_err(Into::into)
            }
            Operation::Flush => self.file.sync_data(),
        };
        done.map_err(|error| self.failed(&request, &error)).map(|()| request.buffer)
    }

    /// Bytes beyond the end of the file are zeros: after a crash the file may end within a page's area.
    fn read(&self, mut request: Request) -> Result<IoBuffer, BlockError> {
        let length = request.length.0 as usize;
        let mut buffer = request.buffer.take().unwrap_or_else(|| IoBuffer::zeroed(length));
        let mut done = 0;
        while done < length {
            match self.file.read_at(&mut buffer[done..], request.offset.0 + done as u64) {
                Ok(0) => {
                    buffer[done..].fill(0);
                    break;
                }
                Ok(read) => done += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(&request, &error)),
            }
        }
        Ok(buffer)
    }

    /// A device that sees the file with its present size.
    fn device(&self) -> Result<(u64, FileDevice), BlockError> {
        let size = self.size.load(Ordering::Acquire);
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.retain(|(seen, _)| *seen == size);
        if let Some(device) = spare.pop() {
            return Ok(device);
        }
        drop(spare);
        // By its descriptor: the file may have another name by now, and its name another file.
        let own = PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        let file = DirectFile::open(&own).and_then(|file| FileDevice::on_direct_file(&file));
        Ok((size, file.map_err(|error| self.named(error))?))
    }

    /// An error of a device, with the name that the file was opened by.
    fn named(&self, error: BlockError) -> BlockError {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let rename = |text: String| text.replace(&own, &self.path.display().to_string());
        match error {
            BlockError::Os { context, message, errno } => {
                BlockError::Os { context: rename(context), message: rename(message), errno }
            }
            BlockError::Refused(why) => BlockError::Refused(rename(why)),
            other => other,
        }
    }
}

impl Medium for FileMedium {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn capacity(&self) -> u64 {
        CAPACITY
    }

    fn max_transfer(&self) -> u64 {
        MAX_TRANSFER
    }

    #[allow(clippy::disallowed_methods, reason = "the store's own file; it grows")]
    fn ensure(&self, end: u64) -> Result<(), BlockError> {
        let size = self.size.load(Ordering::Acquire);
        if end <= size {
            return Ok(());
        }
        let step = (size / 8).clamp(GROWTH_MIN, GROWTH_MAX);
        let grown = (size + step).max(end).next_multiple_of(GROWTH_MIN);
        let request = Request::write_zeroes(ByteSize(size), ByteSize(grown - size));
        self.file.set_len(grown).map_err(|error| self.failed(&request, &error))?;
        self.size.store(grown, Ordering::Release);
        Ok(())
    }

    fn run(&self, mut requests: Vec<Request>, depth: usize) -> Result<Vec<Option<IoBuffer>>, BlockError> {
        let size = self.size.load(Ordering::Acquire);
        let is_inside = |request: &Request| request.end().is_some_and(|end| end.0 <= size);
        if requests.len() < 2 || !self.is_direct || depth < 2 || !requests.iter().all(is_inside) {
            return requests.drain(..).map(|request| self.execute(request)).collect();
        }
        let (seen, mut device) = self.device()?;
        let done = drive(&mut device, &mut 0, requests, depth);
        // A device that failed may have requests in flight; it waits for them when it is dropped.
        if done.is_ok() {
            let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < SPARE_DEVICES {
                spare.push((seen, device));
            }
        }
        done.map_err(|error| self.named(error))
    }

    fn counters(&self) -> Option<DeviceCounters> {
        None
    }
}
