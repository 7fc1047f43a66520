//! What stands between a database and its drive: Linux's page cache, read-ahead, write-back, a file system with its
//! journal, and the block layer, in virtual time.
//!
//! ```text
//!   open pread pwrite fsync fdatasync sync_file_range fallocate ftruncate unlink fadvise mmap        kernel.rs, fs/, mm/
//!        │ cached                             │ not cached, dirty, synced
//!   mm/filemap.rs  pages                 mm/readahead.rs          fs/fs_writeback.rs, mm/page_writeback.rs
//!   mm/vmscan.rs   lists, reclaim             │                        │
//!        │                               fs/ext4/, fs/xfs/: where blocks are    fs/commit.rs: jbd2, XFS's log
//!        ▼                                    ▼                        ▼
//!                                        block/: plug, merge, split, flush, FUA
//!                                             ▼
//!                                        a BlockDevice and its clock
//! ```
//!
//! Each mechanism is in a file that is named as in Linux; its first page says which version and function it follows and
//! what it leaves out. `docs/kernel.md` compares what reaches the drive with what Linux 6.18 sends.
//!
//! **What it is.** A [`Kernel`] over any [`flashwise_block::BlockDevice`], driven by one task: each call returns when
//! Linux's would, on the drive's clock, to which [`ProcessorCosts`] are added. Read-ahead, write-back, commits by timer
//! and discards go on beside the task as far as the drive lets them. It is deterministic.
//!
//! **What it is not.** A file system that can be mounted: its metadata takes its place and its time on the drive, but
//! has no bytes. Files have bytes where [`KernelConfig::data`] is set; what a power cut leaves of their metadata is
//! kept in memory ([`Kernel::remount_after_power_cut`]). There is one directory, no permissions, no links, no locks,
//! one task.
//!
//! **Limits.** Files of at most 16 TiB (ext4); names of 1 to 255 bytes; a page cache of at least one page; drives of at
//! least 32 MiB for ext4 and 300 MiB for XFS. Memory grows with the number of files, of extents and of cached pages.
//!
//! # Example
//! ```
//! use flashwise_block::ByteSize;
//! use flashwise_kernel::{Kernel, KernelConfig, OpenOptions};
//! use flashwise_ssd::{DeviceConfig, SimulatedSsd};
//!
//! let drive = SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo")?, 1)?;
//! let mut kernel = Kernel::new(drive, KernelConfig::default())?;
//! let file = kernel.open("log", OpenOptions::read_write().create(true))?;
//! let before = kernel.now();
//! kernel.pwrite(file, ByteSize(0), ByteSize::kib(4))?;
//! kernel.fdatasync(file)?;
//! assert!(kernel.now() > before);
//! // The data, the journal's blocks and its commit block; one flush before that, and FUA.
//! assert_eq!(kernel.device_counters().host_writes, 3);
//! assert_eq!(kernel.device_counters().flushes, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]

mod block;
pub mod calibrate;
mod config;
mod costs;
mod error;
mod file_device;
mod fs;
pub mod job;
mod kernel;
mod mm;

pub use config::{FileSystemKind, KernelConfig, PAGE, QueueLimits};
pub use costs::ProcessorCosts;
pub use error::{KernelError, Result};
pub use file_device::KernelFile;
pub use fs::direct_io::{ReadInto, WriteFrom};
pub use fs::open::{Allocate, FileHandle, OpenOptions};
pub use fs::sync::SyncRange;
pub use kernel::{FileStatus, Kernel, KernelCounters};
pub use mm::fadvise::Advice;
pub use mm::memory::MapHandle;
