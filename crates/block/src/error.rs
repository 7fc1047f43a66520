//! What can go wrong between a caller and a drive.

use crate::{ByteSize, Nanos, Operation};

/// A failed or refused piece of I/O.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The request itself makes no sense for this device.
    #[error("{operation:?} of {length} at byte {}: {reason}", offset.0)]
    InvalidRequest {
        /// What was asked.
        operation: Operation,
        /// Where.
        offset: ByteSize,
        /// How much.
        length: ByteSize,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system refused or failed.
    #[error("{context}: {message}")]
    Os {
        /// What was being done, with the path.
        context: String,
        /// The system's own words.
        message: String,
        /// `errno`, 0 where there is none.
        errno: i32,
    },
    /// The medium cannot give the data back.
    #[error("{operation:?} of {length} at byte {}: more wrong bits than the drive's error correction restores", offset.0)]
    Uncorrectable {
        /// What was asked.
        operation: Operation,
        /// Where.
        offset: ByteSize,
        /// How much.
        length: ByteSize,
    },
    /// The drive serves reads only.
    #[error("the drive is read-only: it has no spare blocks left")]
    ReadOnly,
    /// The drive offers more than it has room for, and has none for what was written.
    #[error(
        "the drive has no physical space left for what was written; trim what is not needed, or overwrite it with data \
         that takes less"
    )]
    NoSpace,
    /// More drives of an array have failed than its level survives.
    #[error(
        "{operation:?} of {length} at byte {}: more drives of the array have failed than its level survives; what lies \
         on the others can still be read",
        offset.0
    )]
    ArrayFailed {
        /// What was asked.
        operation: Operation,
        /// Where.
        offset: ByteSize,
        /// How much.
        length: ByteSize,
    },
    /// A request did not come back; the device is given up.
    #[error(
        "{device}: a request did not come back within {limit}; the drive hangs or is gone: see the kernel log (dmesg), \
         and open a new device when it answers again"
    )]
    TimedOut {
        /// The device.
        device: String,
        /// How long was waited.
        limit: Nanos,
    },
    /// flashwise refuses for safety's sake.
    #[error("{0}")]
    Refused(String),
    /// A caller or a device broke the rules of the interface.
    #[error("internal: {0}")]
    Protocol(&'static str),
    /// The user pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl BlockError {
    /// An operating-system error with what was being done.
    pub fn os(context: impl Into<String>, error: &std::io::Error) -> Self {
        Self::Os { context: context.into(), message: error.to_string(), errno: error.raw_os_error().unwrap_or(0) }
    }
}
