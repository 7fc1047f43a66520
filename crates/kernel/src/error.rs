//! What a call of the file interface can fail with.

use flashwise_block::BlockError;

/// A failed call. Each variant is one `errno` of Linux's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// `ENOENT`
    #[error("{0}: no such file; create it with OpenOptions::create")]
    NotFound(String),
    /// `EEXIST`
    #[error("{0}: the file exists already; open it without create_new, or remove it first")]
    Exists(String),
    /// `ENAMETOOLONG`, and names that are empty or hold a slash: there is one directory.
    #[error("'{0}' is no file name: it needs 1 to 255 bytes without '/'")]
    BadName(String),
    /// `EBADF`
    #[error("file handle {0} is not open")]
    BadHandle(u32),
    /// `EBADF`: the handle was opened for something else.
    #[error("file handle {handle} is not open for {what}; open the file with OpenOptions::{what}")]
    NotOpenFor {
        /// The handle.
        handle: u32,
        /// `read` or `write`.
        what: &'static str,
    },
    /// `EFBIG`
    #[error("byte {end} is beyond the largest file of {limit} bytes")]
    TooLarge {
        /// First byte behind the request; `u64::MAX` where it overflows.
        end: u64,
        /// Bytes of the largest file.
        limit: u64,
    },
    /// `EINVAL`
    #[error("invalid argument: {0}")]
    Invalid(String),
    /// `ENOSPC`
    #[error("the file system has no space left; remove files, or give it a larger drive")]
    NoSpace,
    /// `ENOSPC`: the inodes are used up.
    #[error("the file system has no inodes left; remove files, or give it a larger drive")]
    NoInodes,
    /// `EMFILE`
    #[error("{0} files are open, the most that are allowed; close some")]
    TooManyOpen(u32),
    /// `EROFS`: the journal could not be written, so nothing may be changed any more.
    #[error("the file system is read-only since its journal could not be written: {0}")]
    ReadOnly(BlockError),
    /// `EIO`
    #[error("the drive failed: {0}")]
    Io(#[from] BlockError),
    /// The drive or the configuration does not make a file system.
    #[error("{0}")]
    Config(String),
}

/// What the crate's functions return.
pub type Result<T> = std::result::Result<T, KernelError>;
