//! A simulated SSD as a disk for unmodified programs.
//!
//! ```text
//!   fio, qemu, nbdcopy, …            an unmodified program
//!        │  requests, data
//!        ▼
//!   nbd/  fuse/     front ends: bytes of a protocol, or the kernel's requests for a file, become [`HostRequest`]s,
//!        │          and [`HostCompletion`]s become replies
//!        ▼
//!   volume/         a file system on the file, through a loop device
//!   guard/          a mounted drive must not hang the machine
//!   server.rs       one thread: waits for clients and deadlines at once
//!        ▼
//!   engine.rs       all timing: when a command arrived, when its completion is due  ──▶ capture.rs: a trace for the audit
//!        ▼
//!   flashwise-ssd   the drive in simulated time, with every byte; or data/: the bytes in a file, with its state beside
//!
//!   control/        the client's side of the control socket: commands to the running drive
//!        ▼
//!   management/     control socket and metrics, in a poll loop of their own ─▶ command_channel.rs ─▶ server.rs
//! ```
//!
//! Front ends do not depend on time, and the engine does not depend on front ends.
//!
//! **Time.** A request is submitted to the drive at the time of its arrival, and completes when the drive has done it,
//! both on the machine's clock ([`Pace::Scaled`]). The time of the way to the client and back is subtracted. If the
//! machine cannot keep up, or the drive is faster than any way to it, completions are late, and [`Pacing`] says by how
//! much; [`KernelTimes`], how long programs on a mounted drive waited. [`Pace::Free`] completes requests at once and
//! counts simulated time only.
//!
//! **Memory.** A request that waits for memory may wait for the very drive that serves it. So no request allocates: its
//! bytes are in reused buffers (`buffer_pool.rs`), the drive's content in reused pages (`flashwise-ssd`), and lists are
//! allocated at the start. `tests/allocations.rs` counts allocations.
//!
//! **Limits.** The drive's content is in memory and lost at the end, or in a file of a file system with sparse files.
//! Requests of up to 32 MiB.
//!
//! # Adding to it
//!
//! - *A front end*: a folder beside `fuse/` that makes [`HostRequest`]s and takes [`HostCompletion`]s; a line in
//!   [`Server`]; a row in `docs/guide/attach.md`.
//! - *A file system for `--mount`*: a variant of `FileSystem` in `volume/mod.rs` with its maker, package and options;
//!   its name in `crates/cli/src/arguments/attach.rs`; a line in `scripts/test-tools`.
//! - *A figure of a running drive*: a field of [`DeviceStat`] (`stat.rs`), read from the engine without making it wait;
//!   its row in `crates/report/src/text/device_stat.rs`, its name in `metrics/exposition.rs`, its line in
//!   `docs/guide/json.md`.
//! - *A command to a running drive*: a variant of `Command` and of `Reply` (`control/protocol.rs`); its effect in
//!   `engine/` or `fault.rs`; an action in `crates/cli/src/arguments/attach.rs`.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]
#![forbid(unsafe_code)]

mod attached;
mod buffer_pool;
mod capture;
mod cgroup;
mod command_channel;
pub mod control;
mod data;
mod engine;
mod error;
mod event_fd;
mod fault;
mod fuse;
mod guard;
mod kernel_times;
mod log_pages;
mod management;
mod mounts;
pub mod nbd;
mod pace;
mod poll;
mod realtime;
mod report;
mod server;
mod slab;
mod socket;
mod stat;
mod volume;

pub use attached::Attached;
pub use capture::{Capture, Captured};
pub use cgroup::Cgroup;
pub use data::{Continuation, DataFile};
pub use engine::{Engine, HostCompletion, HostRequest, KindLatencies, KindLatency, PowerCut, Wake};
pub use error::AttachError;
pub use fault::{FaultCommand, FaultState, LatencySpike, Range};
pub use fuse::NAME as DISK;
pub use guard::memory::available as available_memory;
pub use guard::watchdog::{WatchdogEnd, watch};
pub use kernel_times::KernelTimes;
pub use log_pages::LifeCounters;
pub use pace::{Pace, Pacing};
pub use report::{AttachReport, RequestTimes};
pub use server::{MountedAt, Server, Stop};
pub use stat::{DEVICE_STAT_SCHEMA, DEVICE_STAT_SCHEMA_VERSION, DeviceStat, DriveState, ReadOnlyCause};
pub use volume::FileSystem;
