//! The interface between a device's bookkeeping and the engine that carries out its I/O.

use std::io;
use std::time::Instant;

/// One thing to do to the file.
#[derive(Clone, Copy, Debug)]
pub enum Job {
    /// Fill `length` bytes at `start` from the file at `offset`.
    Read {
        /// Memory that is written.
        start: *mut u8,
        /// How much.
        length: u32,
        /// Where in the file.
        offset: u64,
    },
    /// Write `length` bytes at `start` to the file at `offset`.
    Write {
        /// Memory that is read.
        start: *const u8,
        /// How much.
        length: u32,
        /// Where in the file.
        offset: u64,
        /// Done only when it is on the medium (`RWF_DSYNC`).
        durable: bool,
    },
    /// Give the bytes back to the file system; the file keeps its size.
    Punch {
        /// Where in the file.
        offset: u64,
        /// How much.
        length: u64,
    },
    /// Make completed writes durable (`fdatasync`).
    Sync,
}

// SAFETY: the pointers are only addresses handed to the kernel; `Engine::start` demands that the memory outlives the
// job, whichever thread carries it out.
unsafe impl Send for Job {}

/// A job's end.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// As given to [`Engine::start`].
    pub slot: usize,
    /// The system call's return value: bytes moved, or `-errno`.
    pub result: i32,
    /// When the host saw it.
    pub at: Instant,
}

/// How long to wait for the first job that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all.
    Now,
    /// Until this moment.
    Until(Instant),
}

/// Carries out jobs on one file. Dropping it must not wait for jobs in flight: they may never end.
pub trait Engine: Send {
    /// How many jobs it has at once, at most.
    fn depth(&self) -> usize;

    /// Accepts a job. It reaches the kernel at the next [`Engine::reap`] at the latest.
    ///
    /// # Errors
    /// When the engine cannot accept it. The job is then not in flight.
    ///
    /// # Safety
    /// The job's memory must stay valid, and for a read untouched, until [`Engine::reap`] has reported `slot` as done.
    /// At most [`Engine::depth`] jobs may be in flight, each in its own slot.
    unsafe fn start(&mut self, slot: usize, job: Job) -> io::Result<()>;

    /// Adds completed jobs to `done`, after waiting for at least one as long as `patience` allows.
    ///
    /// # Errors
    /// When the engine as a whole fails. A job's own failure is in its [`Done`].
    fn reap(&mut self, patience: Patience, done: &mut Vec<Done>) -> io::Result<()>;
}
