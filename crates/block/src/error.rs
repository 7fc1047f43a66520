//! Errors between a caller and a drive.

use crate::{ByteSize, Nanos, Operation};

/// A failed or refused piece of I/O.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The request itself makes no sense for this device.
    #[error("{operation:?} of {length} at byte {}: {reason}", offset.0)]
    InvalidRequest {
        /// The operation.
        operation: Operation,
        /// Where.
        offset: ByteSize,
        /// How much.
        length: ByteSize,
        /// The violated rule.
        reason: String,
    },
    /// The operating system refused or failed.
    #[error("{context}: {message}")]
    Os {
        /// The failed operation, with the path.
        context: String,
        /// The system's own words.
        message: String,
        /// `errno`, or 0 if unknown.
        errno: i32,
    },
    /// The medium cannot give the data back.
    #[error("{operation:?} of {length} at byte {}: more bit errors than the drive's error correction can correct", offset.0)]
    Uncorrectable {
        /// The operation.
        operation: Operation,
        /// Where.
        offset: ByteSize,
        /// How much.
        length: ByteSize,
    },
    /// The drive serves reads only.
    #[error("the drive is read-only: it has no spare blocks left")]
    ReadOnly,
    /// A drive that compresses or deduplicates has no physical space left for the written data.
    #[error(
        "the drive has no physical space left for the written data; trim unused data, or overwrite it with data that \
         needs less space"
    )]
    NoSpace,
    /// More drives of an array have failed than its level survives.
    #[error(
        "{operation:?} of {length} at byte {}: more drives of the array have failed than its level survives; data on \
         the other drives can still be read",
        offset.0
    )]
    ArrayFailed {
        /// The operation.
        operation: Operation,
        /// Where.
        offset: ByteSize,
        /// How much.
        length: ByteSize,
    },
    /// A request did not come back; the device is given up.
    #[error(
        "{device}: a request did not complete within {limit}; the drive hangs or is gone: see the kernel log (dmesg), \
         and open the device again when the drive responds"
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
    /// An error of the operating system, with the failed operation.
    pub fn os(context: impl Into<String>, error: &std::io::Error) -> Self {
        Self::Os { context: context.into(), message: error.to_string(), errno: error.raw_os_error().unwrap_or(0) }
    }
}
