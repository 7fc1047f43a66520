//! I/O traces: what a program asked of its drive, request by request.
//!
//! An [`IoTrace`] is captured by the SQLite VFS and read by `flashwise audit`. It can be saved as CSV, one line a
//! request, and read back.
//!
//! A [`workload`] is what a simulation or a benchmark asks of a drive: synthetic requests, or a recorded trace, of
//! flashwise, MQSim or DiskSim, replayed.

mod csv_format;
pub mod workload;

pub use csv_format::{TraceError, read_csv, write_csv};

use flashwise_block::{ByteSize, Nanos, Operation};
use serde::{Deserialize, Serialize};

/// What a file is to the database that writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileRole {
    /// The database itself.
    Database,
    /// Rollback journal.
    Journal,
    /// Write-ahead log.
    WriteAheadLog,
    /// Anything temporary.
    Temporary,
    /// Not known, as in a trace of a whole drive.
    Unknown,
}

/// One request to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoRecord {
    /// When it was submitted, on the device's clock.
    pub at: Nanos,
    /// What was asked.
    pub operation: Operation,
    /// Whose bytes they are.
    pub role: FileRole,
    /// First byte on the device; on an ordinary file, first byte of the file.
    pub offset: ByteSize,
    /// How many bytes.
    pub length: ByteSize,
    /// From submission to completion.
    pub latency: Nanos,
}

/// The requests of one run in the order of their submission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoTrace {
    /// The requests.
    pub records: Vec<IoRecord>,
}
