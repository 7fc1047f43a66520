//! I/O traces: the requests that a program sent to its drive.
//!
//! ```text
//!   file, pipe or stdin ─▶ input: unpacked ─▶ format: lines or records ─▶ TraceReader ─▶ TraceRecord, one by one
//!                                                                                            │
//!                       summary (trace info) · output: TraceWriter (trace convert) · workload (replay) · audit
//! ```
//!
//! [`TraceReader`] reads every [`TraceFormat`] as a stream: its memory does not grow with the trace. A [`TraceRecord`]
//! has `None` for each field that its format does not have. [`TraceWriter`] writes some of the formats.
//!
//! An [`IoTrace`] is captured by the SQLite VFS and read by `flashwise audit`; it is held in memory as a whole.
//!
//! A [`workload`] defines the requests of a simulation or a benchmark: synthetic requests, or a recorded trace.
//! [`replay`] runs one on any device.
//!
//! **Limits.** Lines of 64 KiB; decoders with windows of 128 MiB; 65,536 file names per trace; in traces in completion
//! order, or with submission and completion as separate events, requests are sorted within a window of 65,536.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

pub mod capture;
mod csv_format;
mod error;
mod format;
mod generate;
mod input;
mod output;
mod reader;
mod record;
pub mod replay;
mod summary;
pub mod workload;

pub use csv_format::{read_csv, write_csv};
pub use error::{Place, TraceError};
pub use format::TraceFormat;
pub use format::csv::{operation_name, role_name};
pub use format::detect::Detection;
pub use generate::{GenerateError, generate};
pub use input::Compression;
pub use output::{CompressedWriter, Conversion, Losses, TraceWriter, convert};
pub use reader::{ReadOptions, TraceReader};
pub use record::{TraceClock, TraceRecord};
pub use summary::{Extremes, Percentiles, SizeShare, TraceSummary};

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
