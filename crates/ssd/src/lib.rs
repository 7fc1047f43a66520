//! A simulated solid-state drive: a discrete-event simulation from the host's queues to the flash cells.
//!
//! The folders follow the hardware. A request passes through them once, top to bottom, and its completion returns the
//! same way:
//!
//! ```text
//!   Request                                                                    Completion
//!     ▼                                                                            ▲
//!   host/          submission queues, arbitration, firmware, link ─────────────────┤
//!     ▼                                                                            │
//!   controller/    passes a request between the parts; the event loop              │
//!     ├─▶ cache/         DRAM, write cache, write buffer, read cache, read-ahead ──┤
//!     ├─▶ collector/     garbage collection in progress, SLC cache, end of life    │
//!     ├─▶ translation.rs the FTL, data reduction, partial pages, the map's cache
//!     │     ftl/         page_map/ with placement/, streams/, gc/, wear/;  blocks/;  element/;  in_place.rs
//!     ▼                                                                            │
//!   flash/         channels, chips, dies, planes: scheduling, array and transfer times, errors
//!
//!   device/        the drive: the struct of these parts, and its public interface
//!   clock.rs       virtual time and events (event.rs);  power.rs  state after a power cut
//!   precondition.rs   initial states that are computed instead of written
//!   config/        the drive's TOML file, one Rust file per section;  preset.rs, error.rs, reference.rs
//!   payload.rs     bytes, by physical slot;  pages.rs  logical pages and spans of them
//!   state/, saved/ the saved state of each type of an idle drive; the document around it
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
//! takes space in the buffer (`take_page`), and the FTL places it → `finish` → `complete`. In the background,
//! `program_superpage` programs full superpages (event `Programmed`) → `program_op_finished` → `superpage_saved`; where
//! free superblocks are few, garbage collection runs (`controller/collection.rs`).
//!
//! No code in this crate knows a "chunk" or a "hot location". The effects that a probe finds, such as a read that
//! starts in the middle of a chunk being served by two channels, follow from geometry ([`config::FlashConfig`]),
//! placement ([`ftl`]) and timing ([`flash`]).
//!
//! **Not here**: workloads and sweeps (`flashwise-sim`), RAID (`flashwise-array`), analytic models
//! (`flashwise-theory`), other simulators' files (`flashwise-import`), true values for the learner (`flashwise-truth`).
//!
//! # Order
//! A module imports only modules before it in this list; `tests/it/order.rs` checks the source:
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
pub use device::{BlockWear, RemainingLife, SimulatedSsd};
pub use error::SsdError;
pub use ftl::element::CleaningStatistics;
pub use ftl::streams::foresight::WRITES_MAX as FORETOLD_WRITES_MAX;
pub use ftl::wear::InPlaceWear;
pub use host::StageTimes;
pub use list::NONE;
pub use preset::{CARDS, Class, Evidence, PRESETS, Preset};
pub use reduction::{ContentModel, ReductionCounters, SpaceUse};
pub use reference::{device_reference, device_schema};
