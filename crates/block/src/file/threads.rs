//! The engine for machines that forbid io_uring: threads that make the system calls, one job a thread.
//!
//! Its latencies contain two wake-ups (of the thread and of the waiter's); each completion is stamped by its thread,
//! so the second one does not count.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rustix::fs::{FallocateFlags, fallocate, fdatasync};
use rustix::io::{ReadWriteFlags, pread, pwritev2, retry_on_intr};

use super::engine::{Done, Engine, Job, Patience};

/// Jobs at once, and threads at most; a thread is started when all others are busy.
const DEPTH: usize = 64;

/// Threads and the two queues around them.
pub struct Threads {
    inbox: Arc<Inbox>,
    outbox: (Sender<Done>, Receiver<Done>),
    file: Arc<OwnedFd>,
    workers: Vec<JoinHandle<()>>,
    under_way: usize,
}

/// Jobs that no thread has taken yet; `None` ends one thread.
#[derive(Default)]
struct Inbox {
    jobs: Mutex<VecDeque<Option<(usize, Job)>>>,
    filled: Condvar,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Option<(usize, Job)>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: Option<(usize, Job)>) {
        self.lock().push_back(job);
        self.filled.notify_one();
    }

    fn pop(&self) -> Option<(usize, Job)> {
        let mut jobs = self.lock();
        loop {
            match jobs.pop_front() {
                Some(job) => return job,
                None => jobs = self.filled.wait(jobs).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Threads {
    /// An engine for jobs on `file`, without threads so far.
    pub fn new(file: Arc<OwnedFd>) -> Self {
        Self { inbox: Arc::default(), outbox: mpsc::channel(), file, workers: Vec::new(), under_way: 0 }
    }

    fn hire(&mut self) -> io::Result<()> {
        let (inbox, outbox, file) = (Arc::clone(&self.inbox), self.outbox.0.clone(), Arc::clone(&self.file));
        let work = move || {
            while let Some((slot, job)) = inbox.pop() {
                // SAFETY: whoever gave the job to `start` keeps its memory valid until the result is out.
                let result = unsafe { perform(&file, job) };
                if outbox.send(Done { slot, result, at: Instant::now() }).is_err() {
                    return;
                }
            }
        };
        self.workers.push(thread::Builder::new().name("flashwise-io".into()).spawn(work)?);
        Ok(())
    }
}

/// Makes the job's system call; returns bytes transferred, or `-errno`.
///
/// # Safety
/// The job's memory must be valid, and for a read not used by others.
unsafe fn perform(file: &OwnedFd, job: Job) -> i32 {
    let result = retry_on_intr(|| match job {
        Job::Read { start, length, offset } => {
            // SAFETY: promised by the caller.
            let memory = unsafe { std::slice::from_raw_parts_mut(start, length as usize) };
            pread(file, memory, offset)
        }
        Job::Write { start, length, offset, durable } => {
            // SAFETY: promised by the caller.
            let memory = unsafe { std::slice::from_raw_parts(start, length as usize) };
            let flags = if durable { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
            pwritev2(file, &[IoSlice::new(memory)], offset, flags)
        }
        Job::Punch { offset, length } => {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(file, hole, offset, length).map(|()| 0)
        }
        Job::Sync => fdatasync(file).map(|()| 0),
    });
    match result {
        Ok(bytes) => bytes as i32,
        Err(errno) => -errno.raw_os_error(),
    }
}

impl Engine for Threads {
    fn depth(&self) -> usize {
        DEPTH
    }

    unsafe fn start(&mut self, slot: usize, job: Job) -> io::Result<()> {
        if self.under_way >= self.workers.len() && self.workers.len() < DEPTH {
            match self.hire() {
                Err(error) if self.workers.is_empty() => return Err(error),
                // Fewer threads than wanted still get everything done.
                _ => {}
            }
        }
        self.under_way += 1;
        self.inbox.push(Some((slot, job)));
        Ok(())
    }

    fn reap(&mut self, patience: Patience, done: &mut Vec<Done>) -> io::Result<()> {
        let before = done.len();
        let outbox = &self.outbox.1;
        done.extend(outbox.try_iter());
        if done.is_empty() {
            let first = match patience {
                Patience::Now => Err(RecvTimeoutError::Timeout),
                Patience::Until(until) => outbox.recv_timeout(until.saturating_duration_since(Instant::now())),
            };
            match first {
                Ok(first) => done.push(first),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("every I/O thread has ended")),
            }
        }
        self.under_way -= done.len() - before;
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.workers.iter().for_each(|_| self.inbox.push(None));
        if self.under_way > 0 {
            // A system call that does not return would hold up whoever joins its thread. It ends by itself afterwards.
            return;
        }
        for worker in self.workers.drain(..) {
            // A thread that panicked has no result.
            let _ = worker.join();
        }
    }
}
