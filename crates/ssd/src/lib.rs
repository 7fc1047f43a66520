//! A simulated solid-state drive: a discrete-event simulation from the host's queue down to the cell.
//!
//! The folders follow the hardware. A request walks through them once, top to bottom; its completion comes back once:
//!
//! ```text
//!   Request                                                                    Completion
//!     ▼                                                                            ▲
//!   host/          submission queues, arbitration, firmware, link ─────────────────┤
//!     ▼                                                                            │
//!   controller/    hands a request from part to part; the loop of events           │
//!     ├─▶ cache/         DRAM, write cache, write buffer, read cache, read-ahead ──┤
//!     ├─▶ collector/     garbage collection under way, SLC cache, end of life      │
//!     ├─▶ translation.rs the FTL and what is beside it: reduction/, sectors, the map's cache
//!     │     ftl/         page_map/ with placement/, streams/, gc/, wear/;  blocks/;  element/;  in_place.rs
//!     ▼                                                                            │
//!   flash/         channels, chips, dies, planes: who goes first, array and transfer times, errors
//!
//!   device/        the drive: the struct of these parts, and what is seen of them from outside
//!   clock.rs       virtual time and what happens next (event.rs);  power.rs  what a power cut would leave
//!   precondition.rs   states that a drive is put into at once
//!   config/        the drive as one TOML file, a file a section;  preset.rs, error.rs, reference.rs
//!   payload.rs     bytes, by physical slot;  pages.rs  logical pages and spans of them
//!   state/, saved/ what each type keeps when a drive at rest is saved; the document around it
//!   list.rs, memory.rs, sparse.rs, recency.rs, reciprocal.rs   slots and lists, large tables, LRU, division
//! ```
//!
//! **One read.** `SimulatedSsd::enter` → `accept` → `take_command` (firmware: `HostInterface::take_command`) → the
//! event `Command` → `start` → `start_translated` → `start_read`: each page from the write cache, the write buffer, the
//! read cache or flash (`PageMap::locate`) → `Medium::prepare_read` → `issue_host_read` → the die senses, the channel
//! moves (events `Sensed`, `DataSent`) → `flash_op_finished` → `read_op_finished` → `read_ends` → `Host::send_read`
//! over the link → `complete` → `wait_until` gives the completion.
//!
//! **One write.** The same to `take_command`, which also receives the data (`HostInterface::receive`) → `start` →
//! `start_write`, which reads what partial pages lack → `write_filled` → `enqueue_write` → `admit_writes`: each page
//! takes space in the buffer (`take_page`), and the FTL places it → `finish` → `complete`. Behind the host's back,
//! `program_superpage` programs what is full (event `Programmed`) → `program_op_finished` → `superpage_saved`; where
//! free superblocks are few, garbage collection runs (`controller/collection.rs`).
//!
//! Nothing in here knows what a "chunk" or a "hot location" is. What a probe finds, such as that a read starting in
//! the middle of a chunk is served by two channels, follows from geometry ([`config::FlashConfig`]), placement
//! ([`ftl`]) and timing ([`flash`]).
//!
//! **Not here**: whole workloads and sweeps (`flashwise-sim`), RAID (`flashwise-array`), what theory says
//! (`flashwise-theory`), other simulators' files (`flashwise-import`), what a learner should find (`flashwise-truth`).
//!
//! # Order
//! A module imports those before it in this list, never one behind it; `tests/it/order.rs` holds the source to it:
//!
//! ```text
//! error preset pages reciprocal config state memory list sparse recency event clock payload flash host ftl reduction
//! translation power cache collector device controller precondition saved reference
//! ```
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
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

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
