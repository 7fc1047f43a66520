//! The drive as one file, `disk`, in a directory: for programs that open files, and for loop devices with a file system
//! on them.
//!
//! ```text
//!   kernel ─▶ fuser's threads ─ FuseRequest: command, arrival time, reply handle ─▶ the server's thread
//!   kernel ◀──────────────────────────────────────────────── reply ◀──────────────────┘
//! ```
//!
//! | on the file | to the drive |
//! |---|---|
//! | read, write of whole logical blocks | the same; with `O_DSYNC`, the kernel makes a write and a flush of it |
//! | `fsync`, `fdatasync` | flush |
//! | `fallocate` with `PUNCH_HOLE` | trim |
//! | `fallocate` with `ZERO_RANGE` | writes of zeros |
//!
//! Three defaults of kernel and library would silently limit concurrency to one request, or sixteen, and are changed:
//! asynchronous direct I/O is required, 256 requests may wait in the kernel, and direct writes to the file run in
//! parallel (`FUSE_ASYNC_DIO`, `max_background`, `FOPEN_PARALLEL_DIRECT_WRITES`; the kernel's
//! `Documentation/filesystems/fuse` and `include/uapi/linux/fuse.h`). Whether that works is tested before the drive is
//! served ([`self_test`]). Leftovers of a killed drive at the directory are removed ([`stale_mount`]).

mod connection;
mod self_test;
mod stale_mount;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use crate::buffer_pool::BufferPool;
use crate::error::spawn;
use crate::event_fd::EventFd;
use crate::guard::watchdog::BusyThreads;
use crate::mounts::{Mount, mounts};
use crate::realtime::RealtimePriority;
use crate::{AttachError, HostCompletion, HostRequest};
use flashwise_block::{BlockError, ByteSize, DeviceInfo, Operation};
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request, Session, TimeOrNow, WriteFlags,
};

pub(crate) use connection::abort_file;
pub(crate) use stale_mount::clear as clear_stale_mount;

/// The file's name.
pub const NAME: &str = "disk";
const ROOT: INodeNo = INodeNo(1);
const DISK: INodeNo = INodeNo(2);
/// How long the kernel may cache the attributes of the file, which never change.
const ATTRIBUTE_TTL: Duration = Duration::from_secs(3600);
/// The source of the mount.
const SOURCE: &str = "flashwise";
/// Requests that wait in the kernel at most.
const MAX_BACKGROUND: u16 = 256;
/// Longest request, bytes.
const MAX_WRITE: u32 = 1 << 20;
/// Requests that are taken from the kernel and wait for the server's thread, at most; then the next ones wait in the
/// kernel.
const QUEUE_LENGTH: usize = 1024;
/// Threads that take requests from the kernel.
const THREADS: usize = 2;

/// A command of the kernel's.
pub(crate) struct FuseRequest {
    pub(crate) command: HostRequest,
    pub(crate) arrived: Instant,
    pub(crate) reply: FuseReply,
}

/// Handle of a reply.
pub(crate) enum FuseReply {
    Read(ReplyData),
    Written(ReplyWrite, u32),
    Done(ReplyEmpty),
}

impl FuseReply {
    pub(crate) fn send(self, answer: &HostCompletion) {
        let error = answer.result.as_ref().err().map(errno);
        match (self, error) {
            (Self::Read(reply), None) => reply.data(answer.payload.as_deref().unwrap_or_default()),
            (Self::Written(reply, size), None) => reply.written(size),
            (Self::Done(reply), None) => reply.ok(),
            (Self::Read(reply), Some(error)) => reply.error(error),
            (Self::Written(reply, _), Some(error)) => reply.error(error),
            (Self::Done(reply), Some(error)) => reply.error(error),
        }
    }
}

fn errno(error: &BlockError) -> Errno {
    match error {
        BlockError::InvalidRequest { .. } => Errno::EINVAL,
        BlockError::ReadOnly => Errno::EROFS,
        BlockError::Refused(_) => Errno::EPERM,
        BlockError::NoSpace => Errno::ENOSPC,
        _ => Errno::EIO,
    }
}

/// Converts the kernel's requests for the server.
pub(crate) struct KernelClient {
    /// The mark of its commands.
    pub(crate) client: u32,
    /// Where their bytes are.
    pub(crate) buffers: BufferPool,
    /// Requests must be received at once, whatever else the machine does.
    pub(crate) is_realtime: bool,
}

/// A mounted file, and the channel of its requests.
#[derive(Debug)]
pub(crate) struct Mounted {
    requests: Receiver<FuseRequest>,
    event_fd: Arc<EventFd>,
    directory: PathBuf,
    is_unmounted: bool,
    busy: Arc<BusyThreads>,
    serving: Option<JoinHandle<io::Result<()>>>,
}

impl Mounted {
    /// Mounts a directory with the file in it.
    pub(crate) fn mount(directory: &Path, info: &DeviceInfo, kernel: KernelClient) -> Result<Self, AttachError> {
        Self::with_queue(directory, info, kernel, MAX_BACKGROUND)
    }

    /// The same, with that many requests waiting in the kernel.
    fn with_queue(
        directory: &Path,
        info: &DeviceInfo,
        kernel: KernelClient,
        waiting: u16,
    ) -> Result<Self, AttachError> {
        let refused = AttachError::place(directory);
        stale_mount::clear(directory).map_err(refused)?;
        let mounted = Self::start(check(directory).map_err(refused)?, info, kernel, waiting)?;
        self_test::check_depth(&mounted).map_err(refused)?;
        Ok(mounted)
    }

    fn start(directory: PathBuf, info: &DeviceInfo, kernel: KernelClient, waiting: u16) -> Result<Self, AttachError> {
        let (sender, requests) = sync_channel(QUEUE_LENGTH);
        let event_fd = Arc::new(EventFd::new()?);
        let busy = Arc::new(BusyThreads::new());
        let disk = Disk {
            busy: Arc::clone(&busy),
            requests: sender,
            kernel,
            event_fd: Arc::clone(&event_fd),
            waiting,
            capacity: info.capacity.0,
            logical_block: info.logical_block.0,
            began: SystemTime::now(),
        };
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName(SOURCE.to_owned()), MountOption::Subtype("flashwise".to_owned())];
        config.n_threads = Some(THREADS);
        config.clone_fd = true;
        let session = Session::new(disk, &directory, &config).map_err(|e| {
            let reason = format!("it cannot be mounted: {e}; /dev/fuse and fusermount3 (package fuse3) are needed");
            AttachError::place(&directory)(reason)
        })?;
        let serving = spawn("fuse", move || session.run()).map_err(AttachError::system("a thread"))?;
        Ok(Self { requests, event_fd, directory, is_unmounted: false, busy, serving: Some(serving) })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.event_fd.as_fd()
    }

    /// Requests received since the last call.
    pub(crate) fn requests(&self) -> impl Iterator<Item = FuseRequest> {
        self.event_fd.take();
        self.requests.try_iter()
    }

    /// How long the threads that take requests have been busy with one.
    pub(crate) fn busy(&self) -> &BusyThreads {
        &self.busy
    }

    /// The file.
    pub(crate) fn file(&self) -> PathBuf {
        self.directory.join(NAME)
    }

    /// Fails, in words, where too few requests for a block device over the file come together.
    pub(crate) fn check_depth_through(&self, device: &Path) -> Result<(), String> {
        self_test::check_depth_through(self, device)
    }

    /// Time of the way of a read, there and back: of the file, or of a block device over it. `None` if that cannot be
    /// measured.
    pub(crate) fn round_trip(&self, path: &Path) -> Option<Duration> {
        self_test::round_trip(self, path)
    }

    /// Opens the file that ends the kernel's connection.
    pub(crate) fn abort_file(&self) -> io::Result<File> {
        abort_file(&self.directory)
    }

    /// Removes the file from the directory; processes that have it open keep it until they close it.
    pub(crate) fn unmount(&mut self) {
        if !std::mem::replace(&mut self.is_unmounted, true) {
            unmount(&self.directory);
        }
    }

    /// Whether no process has the file any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.serving.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // If the connection was ended from outside, the file is still mounted.
        let is_mounted = |mounts: Vec<Mount>| mounts.iter().any(|mount| mount.point == self.directory);
        if !self.has_ended() || mounts().is_ok_and(is_mounted) {
            self.unmount();
        }
    }
}

/// Detaches the mount at a directory; processes that have it open keep it.
fn unmount(directory: &Path) {
    use rustix::mount::{UnmountFlags, unmount};
    if unmount(directory, UnmountFlags::DETACH).is_err() {
        // Without root that is fusermount's part; where it fails too, the mount stays until the process ends.
        let _ = std::process::Command::new("fusermount3").args(["-u", "-z", "--"]).arg(directory).status();
    }
}

/// A directory that can be mounted: there, and empty.
pub(crate) fn check(directory: &Path) -> Result<PathBuf, String> {
    let mut entries = std::fs::read_dir(directory).map_err(|e| format!("{e}; give an empty directory"))?;
    match entries.next() {
        Some(_) => Err("it is not empty; give an empty directory".to_owned()),
        None => directory.canonicalize().map_err(|e| e.to_string()),
    }
}

/// Marks this thread for the kernel as one that serves writes. The threads are fuser's, so each is marked at its first
/// request.
fn serve_writes() {
    thread_local!(static IS_TOLD: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });
    if !IS_TOLD.replace(true) {
        // Whether this is allowed is reported when a file system is mounted.
        let _ = crate::guard::memory::serve_writes();
    }
}

/// This thread has taken a request of the kernel's; the threads are fuser's, so each is known by that.
fn raise_priority(now: Instant) {
    thread_local!(static PRIORITY_OF_THREAD: RefCell<Option<RealtimePriority>> = const { RefCell::new(None) });
    PRIORITY_OF_THREAD.with_borrow_mut(|priority| {
        priority.get_or_insert_with(|| RealtimePriority::of_this_thread(now)).called_again(now)
    });
}

/// A setting is beyond the kernel's limit, of whatever integer type.
fn beyond_limit(nearest: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("the kernel accepts {nearest} at most"))
}

/// The file system: a directory and the file.
struct Disk {
    busy: Arc<BusyThreads>,
    requests: SyncSender<FuseRequest>,
    kernel: KernelClient,
    event_fd: Arc<EventFd>,
    /// Requests that wait in the kernel at most.
    waiting: u16,
    capacity: u64,
    logical_block: u64,
    began: SystemTime,
}

impl Disk {
    fn attributes(&self, node: INodeNo) -> Option<FileAttr> {
        let is_disk = match node {
            ROOT => false,
            DISK => true,
            _ => return None,
        };
        let size = if is_disk { self.capacity } else { 0 };
        Some(FileAttr {
            ino: node,
            size,
            blocks: size / 512,
            atime: self.began,
            mtime: self.began,
            ctime: self.began,
            crtime: self.began,
            kind: if is_disk { FileType::RegularFile } else { FileType::Directory },
            perm: if is_disk { 0o600 } else { 0o700 },
            nlink: if is_disk { 1 } else { 2 },
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn command(&self, request: &Request, operation: Operation, offset: u64, length: u64) -> HostRequest {
        let (offset, length) = (ByteSize(offset), ByteSize(length));
        let process = Some(request.pid()).filter(|&pid| pid != 0);
        let (client, cookie, fua, payload) = (self.kernel.client, 0, false, None);
        HostRequest { client, cookie, process, operation, offset, length, fua, payload }
    }

    fn submit(&self, command: HostRequest, reply: FuseReply) {
        serve_writes();
        let arrived = Instant::now();
        if self.kernel.is_realtime {
            raise_priority(arrived);
        }
        self.busy.with(|| {
            // If the server has ended, the reply is dropped, and fuser reports an error to the kernel.
            if self.requests.send(FuseRequest { command, arrived, reply }).is_ok() {
                self.event_fd.notify();
            }
        });
    }

    /// The part of a range that is in the file.
    fn clamp(&self, offset: u64, length: u64) -> u64 {
        length.min(self.capacity.saturating_sub(offset))
    }
}

impl Filesystem for Disk {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let missing = |_| io::Error::other("this kernel's FUSE serves one request at a time (no FUSE_ASYNC_DIO)");
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(missing)?;
        config.set_max_background(self.waiting).map_err(beyond_limit)?;
        config.set_max_write(MAX_WRITE).map(drop).map_err(beyond_limit)
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(DISK).filter(|_| parent == ROOT && name == NAME) {
            Some(attributes) => reply.entry(&ATTRIBUTE_TTL, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(node) {
            Some(attributes) => reply.attr(&ATTRIBUTE_TTL, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changes_size = size.is_some_and(|size| size != self.capacity);
        match self.attributes(node) {
            Some(_) if changes_size || mode.is_some() || uid.is_some() || gid.is_some() => reply.error(Errno::EPERM),
            Some(attributes) => reply.attr(&ATTRIBUTE_TTL, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readdir(&self, _: &Request, node: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if node != ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries =
            [(ROOT, FileType::Directory, "."), (ROOT, FileType::Directory, ".."), (DISK, FileType::RegularFile, NAME)];
        for (n, (node, kind, name)) in (1..).zip(entries).skip(usize::try_from(offset).unwrap_or(usize::MAX)) {
            if reply.add(node, n, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match node {
            DISK => {
                let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
                reply.opened(FileHandle(0), flags);
            }
            _ => reply.error(Errno::EISDIR),
        }
    }

    fn read(
        &self,
        request: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.clamp(offset, size.into()) {
            0 => reply.data(&[]),
            length => self.submit(self.command(request, Operation::Read, offset, length), FuseReply::Read(reply)),
        }
    }

    fn write(
        &self,
        request: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let length = self.clamp(offset, data.len() as u64);
        if length == 0 {
            return if data.is_empty() { reply.written(0) } else { reply.error(Errno::ENOSPC) };
        }
        serve_writes();
        let payload = Some(self.busy.with(|| self.kernel.buffers.copy_of(&data[..length as usize])));
        let command = HostRequest { payload, ..self.command(request, Operation::Write, offset, length) };
        self.submit(command, FuseReply::Written(reply, length as u32));
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Handles `close`; it makes nothing durable.
        reply.ok();
    }

    fn fsync(&self, request: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.submit(self.command(request, Operation::Flush, 0, 0), FuseReply::Done(reply));
    }

    fn fallocate(
        &self,
        request: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        /// `FALLOC_FL_KEEP_SIZE`, `FALLOC_FL_PUNCH_HOLE`, `FALLOC_FL_ZERO_RANGE` of `linux/falloc.h`.
        const KEEP_SIZE: i32 = 1;
        const PUNCH_HOLE: i32 = 2;
        const ZERO_RANGE: i32 = 16;
        let operation = match mode & !KEEP_SIZE {
            PUNCH_HOLE => Operation::Trim,
            ZERO_RANGE => Operation::WriteZeroes,
            // All of the file is allocated from the start.
            0 => return reply.ok(),
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        match self.clamp(offset, length) {
            0 => reply.ok(),
            length => self.submit(self.command(request, operation, offset, length), FuseReply::Done(reply)),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // A loop device takes the block size for the granularity of its discards.
        let blocks = self.capacity / 4096;
        reply.statfs(blocks, 0, 0, 2, 0, self.logical_block.max(4096) as u32, 255, 4096);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_does_not_fit_16_bits_is_reported_whole() {
        let mut words = [beyond_limit(1_u16), beyond_limit(16_u32 << 20)].map(|error| error.to_string());
        words.sort();
        assert_eq!(words, ["the kernel accepts 1 at most", "the kernel accepts 16777216 at most"]);
    }
}
