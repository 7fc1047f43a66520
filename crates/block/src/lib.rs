//! The vocabulary of flashwise: requests, completions, block devices, clocks and units.
//!
//! A [`BlockDevice`] has a submission side and a completion side, like NVMe and io_uring. The trait hides whether the
//! device is simulated (virtual time) or real (wall-clock time): a probe, a buffer pool or a VFS submits [`Request`]s,
//! waits for [`Completion`]s and reads the device's own clock.
//!
//! ```text
//!   probe · VFS · pool ── Request ──▶ BlockDevice::submit
//!                      ◀─ Completion ─ BlockDevice::wait        clock: BlockDevice::now
//! ```
//!
//! It is not a block layer: it has no merging, no scheduler and no cache. The drive sees exactly the submitted
//! requests.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

mod atomic;
mod buffer;
mod conditions;
mod device;
mod error;
mod extents;
mod faulty;
mod file;
mod forward;
mod governor;
pub mod input;
pub mod interrupt;
mod latency;
mod locked;
pub mod names;
pub mod nvme;
pub mod output;
mod partitions;
pub mod process;
mod progress;
mod raw;
mod request;
mod results;
pub mod shown;
mod sysfs;
pub mod temporary;
mod units;

pub use atomic::AtomicWrites;
pub use buffer::IoBuffer;
pub use conditions::DiskConditions;
pub use device::{BlockDevice, Clock, DeviceCounters, DeviceInfo, FlashCounters, POLL_INTERVAL, execute};
pub use error::BlockError;
pub use extents::{Alignment, Extent, ExtentMap, PlacementUnknown};
pub use faulty::{Fault, FaultyDevice};
pub use file::{
    DirectFile, FileDevice, FileTitle, Placement, RegisteredFile, ScratchFile, file_extents, is_on_ext_or_xfs,
    start_write_back,
};
pub use governor::{Budget, Cost, Governor, RateLimits, TokenBuckets};
pub use latency::{LatencySummary, Percentiles};
pub use locked::LockedFile;
pub use partitions::{Partition, PartitionTable, TableKind, partition_table, read_partitions};
pub use progress::{Progress, Silent};
pub use raw::{RawPlan, Refusal, Signature, SignatureKind, WriteConsent};
pub use request::{Completion, Operation, Request};
pub use results::ResultsFile;
pub use sysfs::whole_drive;
pub use units::{ByteSize, Nanos, ParseUnitError, grouped};
