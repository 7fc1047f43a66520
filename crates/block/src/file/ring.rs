//! The engine on io_uring: jobs go to the kernel as they are, and nothing of ours runs between them and the drive.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, opcode};

use super::engine::{Done, Engine, Job, Patience};

/// Jobs at once. The completion queue is twice as long, so it never overflows.
const DEPTH: u32 = 256;

/// How long a kernel that is short of memory may refuse submissions before the device counts as lost.
const STARVED: Duration = Duration::from_secs(10);

/// Between two attempts while the kernel is short of memory.
const NAP: Duration = Duration::from_micros(100);

/// An io_uring with the file that its jobs go to.
pub struct Ring {
    ring: IoUring,
    file: Arc<OwnedFd>,
}

impl Ring {
    /// A ring for jobs on `file`.
    ///
    /// # Errors
    /// Where the kernel has no io_uring, forbids it (seccomp, `kernel.io_uring_disabled`), or is older than 5.11:
    /// before that it could not wait with a time limit.
    pub fn new(file: Arc<OwnedFd>) -> io::Result<Self> {
        let ring = IoUring::new(DEPTH)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let needed = [opcode::Read::CODE, opcode::Write::CODE, opcode::Fsync::CODE, opcode::Fallocate::CODE];
        if needed.iter().any(|&code| !probe.is_supported(code)) || !ring.params().is_feature_ext_arg() {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        Ok(Self { ring, file })
    }

    /// Hands every queued entry to the kernel.
    fn submit_queued(&mut self) -> io::Result<()> {
        let mut starved_since = None;
        while !self.ring.submission().is_empty() {
            match self.ring.submit() {
                Ok(submitted) if submitted > 0 => starved_since = None,
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) => return Err(error),
                starved => {
                    if starved_since.get_or_insert_with(Instant::now).elapsed() > STARVED {
                        return Err(starved.err().unwrap_or_else(|| io::ErrorKind::OutOfMemory.into()));
                    }
                    thread::sleep(NAP);
                }
            }
        }
        Ok(())
    }

    /// Blocks until there is a completion, or `patience` has passed; may return early.
    fn wait_for_one(&mut self, patience: Patience) -> io::Result<()> {
        let Patience::Until(until) = patience else { return Ok(()) };
        let limit = Timespec::from(until.saturating_duration_since(Instant::now()));
        let waited = self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit));
        match waited.map_err(|error| (error.raw_os_error(), error)) {
            Ok(_) | Err((Some(libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY), _)) => Ok(()),
            Err((_, error)) => Err(error),
        }
    }

    /// Moves the kernel's completions to `done`.
    fn drain(&mut self, done: &mut Vec<Done>) {
        let mut completed = self.ring.completion().peekable();
        if completed.peek().is_some() {
            let at = Instant::now();
            done.extend(completed.map(|entry| Done { slot: entry.user_data() as usize, result: entry.result(), at }));
        }
    }
}

impl Engine for Ring {
    fn depth(&self) -> usize {
        DEPTH as usize
    }

    unsafe fn start(&mut self, slot: usize, job: Job) -> io::Result<()> {
        let file = Fd(self.file.as_raw_fd());
        let entry = match job {
            Job::Read { start, length, offset } => opcode::Read::new(file, start, length).offset(offset).build(),
            Job::Write { start, length, offset, durable } => {
                let flags = if durable { libc::RWF_DSYNC } else { 0 };
                opcode::Write::new(file, start, length).offset(offset).rw_flags(flags).build()
            }
            Job::Punch { offset, length } => {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                opcode::Fallocate::new(file, length).offset(offset).mode(mode).build()
            }
            Job::Sync => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        };
        // SAFETY: the caller keeps the memory valid until the slot is done, and `self.file` keeps the descriptor open
        // for as long as the ring takes submissions (the kernel holds it itself from then on).
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) };
        pushed.map_err(|_| io::Error::other("the submission queue is full"))
    }

    fn reap(&mut self, patience: Patience, done: &mut Vec<Done>) -> io::Result<()> {
        self.submit_queued()?;
        self.drain(done);
        while done.is_empty() {
            self.wait_for_one(patience)?;
            self.drain(done);
            match patience {
                Patience::Until(until) if Instant::now() < until => {}
                _ => break,
            }
        }
        Ok(())
    }
}
