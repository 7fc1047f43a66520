//! A file that is open without a file descriptor.
//!
//! A process that holds POSIX locks on a file loses all of them when it closes *any* descriptor of that file. So a
//! library that opens a database a second time beside its owner would drop the owner's locks when it closes the file. A
//! file that io_uring opens directly into a slot of the ring has no descriptor, and nothing done with it affects a
//! lock.
//!
//! It is used for work that the owner's library does not do: starting write-back of the page cache, reading ahead into
//! it, and punching holes.
//!
//! **Reading ahead** reads into memory that is not used: afterwards the page cache has the bytes. The kernel submits
//! such a read to the drive at once, whereas it hands advice (`IORING_OP_FADVISE`) to a thread of its own.
//!
//! Source: fcntl(2), "Advisory record locking"; io_uring_prep_openat_direct(3); sync_file_range(2).

use std::ffi::CString;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use io_uring::types::{DestinationSlot, Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, opcode, squeue};

use crate::{BlockError, ByteSize};

/// Most reads ahead in flight.
const MOST_AHEAD: u32 = 64;
/// Most write-backs of single spans that are being started: as many as an SSD of a PC takes to be busy, and few enough
/// that a sync waits for 8 MiB of pieces of 256 KiB at most.
const MOST_PIECES: u32 = 32;
/// Of other requests, one is in flight at a time, besides one gathered write-back. The queue of completions is twice as
/// long, so that it never overflows.
const DEPTH: u32 = MOST_AHEAD + MOST_PIECES + 2;
const SLOT: u32 = 0;
/// User data of the completion of a read ahead, and of write-backs; other completions have 0.
const AHEAD: u64 = 1;
const WRITE_BACK: u64 = 2;
const PIECE: u64 = 3;
/// Longest read ahead.
const LONGEST_AHEAD: usize = 64 << 10;
/// How long the end waits for requests in flight.
const LAST_WAIT: Duration = Duration::from_secs(1);
/// How long a completion of a write-back is waited for: 32 spans of 256 KiB take 8 s on a drive of 1 MB/s.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A file open beside whoever else has it open.
///
/// ```no_run
/// use flashwise_block::{ByteSize, RegisteredFile};
/// # fn main() -> Result<(), flashwise_block::BlockError> {
/// let mut file = RegisteredFile::open("app.db".as_ref())?;
/// file.start_write_back(ByteSize(0), ByteSize::mib(1))?;
/// file.punch(ByteSize(8192), ByteSize(4096))?;
/// # Ok(())
/// # }
/// ```
pub struct RegisteredFile {
    ring: IoUring,
    name: String,
    /// The process that opened it. A forked child shares the ring's memory, and would take its completions.
    process: u32,
    /// Set when the ring itself has failed: then the requests in flight are unknown.
    broken: bool,
    /// Reads ahead in flight.
    ahead: u32,
    /// Whether a write-back is being started, and the spans that still need one.
    is_writing_back: bool,
    to_write_back: Option<Range<u64>>,
    /// Write-backs of single spans that are being started.
    pieces: u32,
    longest_wait: Duration,
    /// Where all of them read to, once there was one. The kernel alone touches it.
    unseen: Vec<u8>,
}

impl RegisteredFile {
    /// Opens an existing file.
    ///
    /// # Errors
    /// [`BlockError::Os`] if the file does not exist, or io_uring cannot open a file without a descriptor (before Linux
    /// 5.15).
    pub fn open(path: &Path) -> Result<Self, BlockError> {
        let name = path.display().to_string();
        let failed = |error: io::Error| BlockError::os(format!("{name}: open once more"), &error);
        // Completions of reads ahead need not interrupt the program.
        let quiet = IoUring::builder().setup_coop_taskrun().build(DEPTH);
        let ring = quiet.or_else(|_| IoUring::new(DEPTH)).map_err(failed)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe).map_err(failed)?;
        let needed = [opcode::OpenAt::CODE, opcode::SyncFileRange::CODE, opcode::Fallocate::CODE, opcode::Read::CODE];
        if needed.iter().any(|&code| !probe.is_supported(code)) {
            return Err(failed(io::Error::from_raw_os_error(libc::EOPNOTSUPP)));
        }
        ring.submitter().register_files_sparse(SLOT + 1).map_err(failed)?;
        let mut file = Self {
            ring,
            name,
            process: std::process::id(),
            broken: false,
            ahead: 0,
            is_writing_back: false,
            to_write_back: None,
            pieces: 0,
            longest_wait: LONGEST_WAIT,
            unseen: Vec::new(),
        };
        // A read-only file can be read ahead.
        file.enter(path, libc::O_RDWR).or_else(|_| file.enter(path, libc::O_RDONLY))?;
        Ok(file)
    }

    /// Puts the file into its place in the ring.
    fn enter(&mut self, path: &Path, mode: i32) -> Result<(), BlockError> {
        let failed = |error: io::Error| BlockError::os(format!("{}: open once more", path.display()), &error);
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?;
        let slot = DestinationSlot::try_from_slot_target(SLOT);
        let slot = slot.map_err(|_| failed(io::Error::from_raw_os_error(libc::EINVAL)))?;
        let entry = opcode::OpenAt::new(Fd(libc::AT_FDCWD), name.as_ptr()).flags(mode).file_index(Some(slot)).build();
        // SAFETY: the name outlives the call; where that returns an error, nothing is known of the request, and the
        // name is kept for ever.
        match unsafe { self.run(&entry) } {
            Ok(result) if result < 0 => Err(failed(io::Error::from_raw_os_error(-result))),
            Ok(_) => Ok(()),
            Err(error) => {
                std::mem::forget(name);
                Err(error)
            }
        }
    }

    /// Starts write-back of a span of the page cache, all of it together, without waiting for it. That makes nothing
    /// durable, but a later sync has less to do.
    ///
    /// The kernel starts write-back on a thread of its own. Meanwhile spans are gathered, and the next call starts
    /// write-back from the first to the last of them: if submitting takes longer than writing, it is done rarely.
    ///
    /// # Errors
    /// [`BlockError::Os`] if the kernel does not accept a request. The result of an accepted request is ignored.
    pub fn start_write_back(&mut self, offset: ByteSize, length: ByteSize) -> Result<(), BlockError> {
        self.check()?;
        let span = offset.bytes()..offset.bytes().saturating_add(length.bytes());
        let all = match self.to_write_back.take() {
            Some(gathered) => gathered.start.min(span.start)..gathered.end.max(span.end),
            None => span,
        };
        self.reap();
        if self.is_writing_back {
            self.to_write_back = Some(all);
            return Ok(());
        }
        self.queue_write_back(all, WRITE_BACK)?;
        self.is_writing_back = true;
        self.submit()
    }

    fn queue_write_back(&mut self, span: Range<u64>, user_data: u64) -> Result<(), BlockError> {
        // Write-back of a longer span is started in part; the length is a 32-bit number.
        let length = u32::try_from(span.end - span.start).unwrap_or(u32::MAX);
        let entry = opcode::SyncFileRange::new(Fixed(SLOT), length)
            .offset(span.start)
            .flags(libc::SYNC_FILE_RANGE_WRITE)
            .build();
        // SAFETY: the request points to no memory.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(user_data)) };
        pushed.map_err(|_| self.failed("queue a request", libc::EBUSY))
    }

    /// Starts write-back of spans of the page cache, each by itself, without waiting for it: the kernel, which joins
    /// adjacent dirty pages, makes no request of two spans, unless they share a folio, which it writes as a whole. At
    /// most 32 are being started at a time; beyond them it waits.
    ///
    /// # Errors
    /// [`BlockError::Os`] if the kernel does not accept a request. The result of an accepted request is ignored.
    pub fn start_write_back_pieces(&mut self, spans: &[(ByteSize, ByteSize)]) -> Result<(), BlockError> {
        for &(offset, length) in spans {
            self.await_pieces(MOST_PIECES - 1)?;
            let start = offset.bytes();
            self.queue_write_back(start..start.saturating_add(length.bytes()), PIECE)?;
            self.pieces += 1;
        }
        self.submit()
    }

    /// Waits until the kernel has started every write-back of a single span, so that a sync finds none of them dirty.
    ///
    /// # Errors
    /// [`BlockError::Os`] if the kernel accepts no requests any more.
    pub fn await_write_back_pieces(&mut self) -> Result<(), BlockError> {
        self.await_pieces(0)
    }

    /// Waits until at most so many are being started.
    fn await_pieces(&mut self, most: u32) -> Result<(), BlockError> {
        self.check()?;
        self.reap();
        let limit = Timespec::from(self.longest_wait);
        while self.pieces > most {
            let args = SubmitArgs::new().timespec(&limit);
            let waited = self.ring.submitter().submit_with_args(1, &args);
            match waited.map_err(|error| error.raw_os_error()) {
                Ok(_) | Err(Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
                // With `ETIME`, the completion is lost or the drive stands still.
                Err(error) => {
                    self.broken = true;
                    return Err(self.failed("wait for the kernel", error.unwrap_or(libc::EIO)));
                }
            }
            self.reap();
        }
        Ok(())
    }

    /// Gathered spans need no write-back any more: they were synced.
    pub fn cancel_write_back(&mut self) {
        self.to_write_back = None;
    }

    /// Lets the kernel read spans into the page cache, all of them together, without waiting; returns how many it
    /// submitted: at most 64 are in flight, each at most 64 KiB.
    ///
    /// # Errors
    /// [`BlockError::Os`].
    pub fn start_read(&mut self, spans: &[(ByteSize, ByteSize)]) -> Result<usize, BlockError> {
        self.check()?;
        self.unseen.resize(LONGEST_AHEAD, 0);
        self.reap();
        let mut asked = 0;
        for &(offset, length) in spans.iter().take((MOST_AHEAD - self.ahead) as usize) {
            let length = length.bytes().min(LONGEST_AHEAD as u64) as u32;
            let entry = opcode::Read::new(Fixed(SLOT), self.unseen.as_mut_ptr(), length).offset(offset.bytes()).build();
            // SAFETY: the memory has that length, and is freed with the file only when no read into it is in flight.
            let pushed = unsafe { self.ring.submission().push(&entry.user_data(AHEAD)) };
            pushed.map_err(|_| self.failed("queue a request", libc::EBUSY))?;
            self.ahead += 1;
            asked += 1;
        }
        self.submit().map(|()| asked)
    }

    /// Submits queued requests to the kernel. Those that it does not accept at once stay queued for the next call.
    fn submit(&mut self) -> Result<(), BlockError> {
        match self.ring.submit().map_err(|error| error.raw_os_error()) {
            Ok(_) | Err(Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => Ok(()),
            Err(error) => {
                self.broken = true;
                Err(self.failed("hand requests to the kernel", error.unwrap_or(libc::EIO)))
            }
        }
    }

    /// How many reads ahead the kernel has not completed. Right after [`RegisteredFile::start_read`] it is none where
    /// the page cache had all of it.
    pub fn reads_in_flight(&mut self) -> usize {
        // Other requests are awaited by their caller, or their result is ignored.
        self.reap();
        self.ahead as usize
    }

    /// Takes completions; returns the result of a request that is neither a read ahead nor a write-back. Failures of
    /// those are ignored.
    fn reap(&mut self) -> Option<i32> {
        let mut result = None;
        for entry in self.ring.completion() {
            match entry.user_data() {
                AHEAD => self.ahead = self.ahead.saturating_sub(1),
                WRITE_BACK => self.is_writing_back = false,
                PIECE => self.pieces = self.pieces.saturating_sub(1),
                _ => result = Some(entry.result()),
            }
        }
        result
    }

    /// Gives the space of a span back; it reads as zeros from then on.
    ///
    /// # Errors
    /// [`BlockError::Os`], as where the file system cannot do that.
    pub fn punch(&mut self, offset: ByteSize, length: ByteSize) -> Result<(), BlockError> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let entry = opcode::Fallocate::new(Fixed(SLOT), length.bytes()).offset(offset.bytes()).mode(mode).build();
        // SAFETY: the request points to no memory.
        match unsafe { self.run(&entry)? } {
            result if result < 0 => Err(self.failed("punch a hole", -result)),
            _ => Ok(()),
        }
    }

    /// Submits a request and waits for it; returns its result.
    ///
    /// # Safety
    /// The memory of the entry must stay valid until the call returns, and for ever if it returns an error.
    unsafe fn run(&mut self, entry: &squeue::Entry) -> Result<i32, BlockError> {
        self.check()?;
        self.broken = true;
        // SAFETY: the caller's promise.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.map_err(|_| self.failed("queue a request", libc::EBUSY))?;
        loop {
            match self.ring.submit_and_wait(1).map_err(|error| error.raw_os_error()) {
                Ok(_) | Err(Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
                Err(error) => return Err(self.failed("wait for the kernel", error.unwrap_or(libc::EIO))),
            }
            if let Some(result) = self.reap() {
                self.broken = false;
                return Ok(result);
            }
        }
    }

    /// Whether requests can be made.
    fn check(&self) -> Result<(), BlockError> {
        match self.broken || !self.is_own() {
            true => Err(self.failed("use its ring again", libc::EIO)),
            false => Ok(()),
        }
    }

    /// Whether this is the process that opened it.
    fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    fn failed(&self, what: &str, errno: i32) -> BlockError {
        BlockError::os(format!("{}: {what}", self.name), &io::Error::from_raw_os_error(errno))
    }
}

impl Drop for RegisteredFile {
    fn drop(&mut self) {
        if !self.is_own() {
            return;
        }
        let limit = Timespec::from(LAST_WAIT);
        self.reap();
        while self.ahead > 0 {
            let args = SubmitArgs::new().timespec(&limit);
            let waited = self.ring.submitter().submit_with_args(self.ahead as usize, &args);
            self.reap();
            if waited.is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
                break;
            }
        }
        if self.ahead > 0 {
            // The kernel may write there for as long as it likes.
            std::mem::forget(std::mem::take(&mut self.unseen));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn write_back_is_begun_and_holes_are_punched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, vec![1; 64 * 4096]).unwrap();
        let mut file = RegisteredFile::open(&path).unwrap();
        file.start_write_back(ByteSize(0), ByteSize(64 * 4096)).unwrap();
        file.start_write_back(ByteSize(0), ByteSize::gib(20)).unwrap();
        file.punch(ByteSize(4096), ByteSize(4096)).unwrap();
        let found = fs::read(&path).unwrap();
        assert_eq!(found.len(), 64 * 4096);
        assert!(found.iter().enumerate().all(|(at, &byte)| byte == u8::from(!(4096..8192).contains(&at))));
        // A failed write-back does not stop later ones.
        file.start_write_back(ByteSize(u64::MAX), ByteSize(1)).unwrap();
        assert!(file.punch(ByteSize(0), ByteSize(0)).is_err());
        file.punch(ByteSize(0), ByteSize(4096)).unwrap();
    }

    #[test]
    fn what_comes_while_a_write_back_is_begun_is_gathered() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, vec![1; 64 * 4096]).unwrap();
        let mut file = RegisteredFile::open(&path).unwrap();
        let page = |number: u64| ByteSize(number * 4096);
        file.is_writing_back = true;
        for number in [9, 3, 20] {
            file.start_write_back(page(number), ByteSize(4096)).unwrap();
        }
        assert_eq!(file.to_write_back, Some(3 * 4096..21 * 4096));
        file.is_writing_back = false;
        file.start_write_back(page(5), ByteSize(4096)).unwrap();
        assert_eq!(file.to_write_back, None, "all of it was handed on");
        file.to_write_back = Some(0..4096);
        file.cancel_write_back();
        assert_eq!(file.to_write_back, None);
    }

    #[test]
    fn spans_are_written_back_one_by_one_however_many_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, vec![1; 200 * 4096]).unwrap();
        let mut file = RegisteredFile::open(&path).unwrap();
        let spans: Vec<_> = (0..200).map(|page| (ByteSize(page * 4096), ByteSize(4096))).collect();
        file.start_write_back_pieces(&spans).unwrap();
        assert!(file.pieces <= MOST_PIECES, "{}", file.pieces);
        file.await_write_back_pieces().unwrap();
        assert_eq!(file.pieces, 0);
        // A failed one is no error, and others follow it.
        file.start_write_back_pieces(&[(ByteSize(u64::MAX), ByteSize(1)), (ByteSize(0), ByteSize(4096))]).unwrap();
        file.await_write_back_pieces().unwrap();
        file.punch(ByteSize(0), ByteSize(4096)).unwrap();
        assert_eq!(fs::read(&path).unwrap()[4095..4097], [0, 1]);
    }

    /// A child of a fork drops its copy, and the parent's completions stay the parent's.
    #[test]
    fn a_forked_child_takes_no_completion() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, vec![1; 64 * 4096]).unwrap();
        let mut file = RegisteredFile::open(&path).unwrap();
        let spans: Vec<_> = (0..8).map(|page| (ByteSize(page * 4096), ByteSize(4096))).collect();
        file.start_write_back_pieces(&spans).unwrap();
        // SAFETY: the child calls nothing but what is tested, which takes no lock of another thread, and `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let refused = file.await_write_back_pieces().is_err();
            drop(file);
            // SAFETY: it ends the child, without the parent's handlers.
            unsafe { libc::_exit(i32::from(!refused)) };
        }
        let mut status = 0;
        // SAFETY: the status is this function's.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child is refused");
        let began = std::time::Instant::now();
        file.await_write_back_pieces().unwrap();
        assert!(file.pieces == 0 && began.elapsed() < LONGEST_WAIT, "{}", file.pieces);
    }

    #[test]
    fn a_lost_completion_is_not_waited_for_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, vec![1; 4096]).unwrap();
        let mut file = RegisteredFile::open(&path).unwrap();
        (file.pieces, file.longest_wait) = (1, Duration::from_millis(10));
        file.await_write_back_pieces().unwrap_err();
        assert!(file.broken);
    }

    /// How many bytes of a file the page cache has.
    fn cached(file: &fs::File, bytes: usize) -> usize {
        use std::os::fd::AsRawFd;
        let mut resident = vec![0_u8; bytes / 4096];
        // SAFETY: a mapping of a file of that length; the result has one byte for each page.
        unsafe {
            let start = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
            assert_ne!(start, libc::MAP_FAILED);
            assert_eq!(libc::mincore(start, bytes, resident.as_mut_ptr()), 0);
            libc::munmap(start, bytes);
        }
        resident.iter().filter(|&&page| page & 1 == 1).count() * 4096
    }

    #[test]
    fn what_is_read_ahead_is_in_the_page_cache_and_in_no_way_of_other_requests() {
        const BYTES: usize = 256 * 4096;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, vec![1; BYTES]).unwrap();
        let seen = fs::File::open(&path).unwrap();
        seen.sync_all().unwrap();
        let mut file = RegisteredFile::open(&path).unwrap();
        rustix::fs::fadvise(&seen, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let before = cached(&seen, BYTES);
        let spans: Vec<_> = (0..256).step_by(4).map(|page| (ByteSize(page * 4096), ByteSize(4096))).collect();
        assert!(file.start_read(&spans[..8]).unwrap() == 8);
        file.start_write_back(ByteSize(0), ByteSize(4096)).unwrap();
        assert!(file.start_read(&spans).unwrap() >= 56, "64 under way");
        assert!(file.start_read(&[(ByteSize(u64::MAX), ByteSize(4096)), (ByteSize::gib(4), ByteSize::mib(1))]).is_ok());
        drop(file);
        let after = cached(&seen, BYTES);
        assert!(before > BYTES / 2 || after >= before + 56 * 4096, "{before} bytes before, {after} after");
    }

    #[test]
    fn what_may_only_be_read_is_read_ahead() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, vec![1; 8192]).unwrap();
        let mut file = RegisteredFile::open(&path).unwrap();
        assert_eq!(file.start_read(&[(ByteSize(0), ByteSize(8192))]).unwrap(), 1);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
        let mut file = RegisteredFile::open(&path).unwrap();
        assert_eq!(file.start_read(&[(ByteSize(0), ByteSize(8192))]).unwrap(), 1);
    }

    #[test]
    fn opening_and_leaving_touches_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, vec![1; 4096]).unwrap();
        let owner = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        rustix::fs::fcntl_lock(&owner, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        let inode = format!(":{} ", rustix::fs::fstat(&owner).unwrap().st_ino);
        let is_locked = || fs::read_to_string("/proc/locks").unwrap().contains(&inode);
        assert!(is_locked());
        let mut file = RegisteredFile::open(&path).unwrap();
        file.punch(ByteSize(0), ByteSize(4096)).unwrap();
        drop(file);
        assert!(is_locked(), "the lock is gone");
        drop(fs::File::open(&path).unwrap());
        assert!(!is_locked(), "an ordinary descriptor takes the lock with it: otherwise this test would show nothing");
    }

    #[test]
    fn what_is_not_there_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nothing");
        assert!(RegisteredFile::open(&path).is_err() && !path.exists());
    }
}
