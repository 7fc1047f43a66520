//! What can go wrong.

use flashwise_trace::TraceError;

use crate::policy::parameters::PolicyError;

/// Why a pool cannot serve an access, or a simulation cannot run.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// No page can be evicted.
    #[error("all {frames} frames are pinned: unpin a page, or give the pool more frames")]
    AllPinned {
        /// Frames of the pool.
        frames: usize,
    },
    /// The page's number is beyond those that the pool was made for.
    #[error("page {page} does not exist: the pool has pages 0 to {last}")]
    NoSuchPage {
        /// The page.
        page: u32,
        /// The last one.
        last: usize,
    },
    /// Somebody lets go of a page that nobody holds.
    #[error("page {page} is not pinned: unpin a page only as often as it was pinned")]
    NotPinned {
        /// The page.
        page: u32,
    },
    /// A write-back failed; its pages are still in their frames, and dirty.
    #[error("write-back of {pages} pages failed: {reason}; they stay dirty")]
    WriteFailed {
        /// Pages of the batch.
        pages: usize,
        /// What the storage said.
        reason: String,
    },
    /// A read failed; the page is not in the pool.
    #[error("cannot read page {page}: {reason}")]
    ReadFailed {
        /// The page.
        page: u32,
        /// What the storage said.
        reason: String,
    },
    /// The store did not make durable what was written; nothing is known to be durable since.
    #[error(
        "a flush failed: {reason}; writes since the last successful flush may be lost, and the pool accepts no \
         further flush"
    )]
    FlushFailed {
        /// What the store said.
        reason: String,
    },
    /// A pool that cannot be made so large.
    #[error("a pool of {frames} frames over {pages} pages of {page_bytes} bytes is too large: {why}")]
    TooManyPages {
        /// Frames that were requested.
        frames: u64,
        /// Pages of the store.
        pages: u64,
        /// Bytes of one.
        page_bytes: usize,
        /// What the limit is.
        why: &'static str,
    },
    /// A trace names more than can be numbered or kept.
    #[error("{trace}: more than {most} {what}: use a part of the trace, or check that the trace is valid")]
    TooLarge {
        /// The trace.
        trace: String,
        /// What there is too much of.
        what: &'static str,
        /// Most of it.
        most: u64,
    },
    /// A trace without an access.
    #[error("{trace}: contains no reads or writes")]
    Empty {
        /// The trace.
        trace: String,
    },
    /// Of several files, none is a trace.
    #[error("no file is a trace{}", .0.as_ref().map_or_else(String::new, |first| format!("; {first}")))]
    NoTraces(Option<String>),
    /// A pool without frames.
    #[error("a pool needs at least one frame")]
    NoFrames,
    /// The simulated drive.
    #[error("the drive: {0}")]
    Drive(String),
    /// The trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    /// The worker threads.
    #[error("cannot create threads for the simulations: {0}")]
    Threads(String),
}
