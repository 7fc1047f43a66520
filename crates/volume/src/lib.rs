//! Simulated cloud volumes: what stands between a database and the drive that it rents, as a [`BlockDevice`].
//!
//! ```text
//!   Request ──▶ the volume's limits ──▶ the instance's limits ──▶ medium ──▶ network ──▶ Completion
//!               token buckets            token buckets that       a drive, a   a random
//!               limit.rs, bucket.rs      its volumes share        latency or   delay
//!                                                                 a disk       network.rs
//! ```
//!
//! **Limits.** A request passes one limit after the other, each of which takes tokens for it. A limit counts requests,
//! bytes, or a linear cost of both; reads, writes or all. A request that finds too few tokens waits in order (`queue`),
//! is put aside for a fixed time (`hold`), or all leave at a steady rate (`pace`).
//!
//! **Virtual time.** The clock moves only in [`wait`](BlockDevice::wait) and [`pause`](BlockDevice::pause); everything
//! random comes from a seed.
//!
//! **Bytes.** Requests with buffers carry data, those without take the same time.
//!
//! **Several volumes.** The volumes of an instance are one device, each with its own addresses, limits, medium and
//! network; or what the others do is a steady load, which takes its part of the instance's limits.
//!
//! **Not modelled.** Limits of trims and flushes, which pass freely; loss of volumes, snapshots and their slow first
//! reads.
//!
//! # Example
//! ```
//! use flashwise_block::{BlockDevice, ByteSize, Request};
//! use flashwise_volume::{SimulatedVolume, Volume};
//!
//! let volume = Volume::from_toml(
//!     r#"
//!     name = "1,000 requests a second"
//!     capacity_bytes = 1_073_741_824
//!     limits = [{ name = "IOPS", counts = "requests", rate_per_s = 1000, size = 10 }]
//!     medium.plain = { read_ns = 200_000, write_ns = 300_000 }
//!     "#,
//!     "example",
//! )?;
//! let mut volume = SimulatedVolume::new(volume, 1)?;
//! (0..1010).try_for_each(|i| volume.submit(Request::read(ByteSize::kib(4 * i), ByteSize::kib(4))))?;
//! while volume.wait()?.is_some() {}
//! assert_eq!(volume.now().to_string(), "1 s");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

mod bucket;
mod config;
mod device;
mod events;
mod limit;
mod medium;
mod network;
pub mod preset;

#[cfg(doc)]
use flashwise_block::BlockDevice;

pub use config::{
    AtLimit, CostConfig, Counts, DelayConfig, Direction, InstanceConfig, LimitConfig, LoadConfig, MediumConfig,
    NetworkConfig, PercentileConfig, Volume, VolumeConfig, is_of_volume,
};
pub use device::SimulatedVolume;
pub use limit::LimitActivity;
pub use medium::{DiskConfig, DiskQueue, PlainConfig};
pub use preset::PRESETS;
