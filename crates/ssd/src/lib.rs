//! A simulated solid-state drive: a discrete-event simulation from the host's queue down to the cell.
//!
//! The folders follow the hardware, and a request walks through them once, top to bottom:
//!
//! ```text
//!   host        queues, firmware cost of a command, link           host/
//!     ▼
//!   controller  caches, write buffer, dispatch of flash commands   controller/
//!     ▼
//!   ftl         placement, page mapping, superblocks, GC           ftl/
//!     ▼
//!   flash       channels, dies, planes: array and transfer times   flash/
//! ```
//!
//! Nothing in here knows what a "chunk" or a "hot location" is. What a probe finds, such as that a read starting in
//! the middle of a chunk is served by two channels, follows from geometry ([`config::FlashConfig`]), placement
//! ([`ftl`]) and timing ([`flash`]).
//!
//! # Limits
//! - at most 2³⁰ logical pages, 4 TiB of pages of 4 KiB.
//!
//! # Example
//! ```
//! use flashwise_block::{BlockDevice, ByteSize, Request, execute};
//! use flashwise_ssd::{DeviceConfig, SimulatedSsd};
//!
//! let config = DeviceConfig::preset("samsung-960-evo")?;
//! let mut drive = SimulatedSsd::new(config, 1)?;
//! let write = execute(&mut drive, Request::write(ByteSize(0), ByteSize::kib(64)).with_fua())?;
//! let read = execute(&mut drive, Request::read(ByteSize(0), ByteSize::kib(64)))?;
//! assert!(read.latency() < write.latency());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]

mod cache;
mod clock;
mod collector;
pub mod config;
mod controller;
mod device;
mod error;
mod event;
pub mod flash;
pub mod ftl;
pub mod host;
mod list;
mod memory;
mod pages;
mod payload;
mod power;
mod precondition;
mod preset;
mod recency;
mod reciprocal;
pub mod reduction;
mod reference;
pub mod saved;
mod sparse;
mod state;
mod translation;

pub use cache::{ReadCacheCounters, WriteCacheCounters};
pub use collector::{EndOfLife, SlcCacheCounters, SlcCacheUse};
pub use config::DeviceConfig;
pub use device::{RemainingLife, SimulatedSsd};
pub use error::SsdError;
pub use ftl::element::CleaningStatistics;
pub use ftl::streams::foresight::WRITES_MAX as FORETOLD_WRITES_MAX;
pub use ftl::wear::InPlaceWear;
pub use host::StageTimes;
pub use list::NONE;
pub use preset::{PRESETS, Preset};
pub use reduction::{ContentModel, ReductionCounters, SpaceUse};
pub use reference::{device_reference, device_schema};
