//! The probes, a file each.
//!
//! | file | what it holds |
//! |---|---|
//! | `throughput.rs`, `latency.rs` | reads and writes: α, k_r, k_w, what durability costs |
//! | `location.rs`, `chunk.rs`, `channels.rs`, `turns.rs`, `sweep.rs` | how the place of a read matters: chunk, hot locations |
//! | `page.rs` | flash page |
//! | `small_writes.rs` | what small writes waste on a fresh drive |
//! | `buffer.rs` | write buffer |
//! | `request_size.rs` | write unit, stripe |
//! | `cache.rs` | read cache, read-ahead |
//! | `units.rs` | parallel units |
//! | `volumes.rs`, `far.rs` | internal volumes, in the region and beyond |
//! | `content.rs` | compression, deduplication |
//! | `collection/` | what needs the whole drive |
//! | `limits/` | what a cloud grants: rates, bursts, budgets |
//! | `card/` | in which units a memory card works, and how many stay open |
//! | `windows.rs` | windows of writes, by the clock and the drive's counters |
//!
//! # To add a probe
//! 1. A file here: its [`Step`](crate::step::Step) (name, figures, when it may run), its `fn probe(prober, evidence of
//!    earlier probes, draft, progress) -> Result<Evidence, LearnError>` with the type of evidence that later probes
//!    take (`()` if none does), and the table of [doubts](crate::verdict) that makes the verdict.
//! 2. A `mod` line here.
//! 3. A call in `plan.rs`, behind the probes whose evidence it takes.
//!
//! Each new figure of it is a line in `parameters!` of `crates/profile/src/parameters.rs`, and its group and short name
//! one in `crates/report/src/text/groups.rs`.
//!
//! # Why a figure may be inconclusive
//! Its estimate differs on resampled data, or a doubt applies: `grep -rn DOUBTS` lists the tables. What was found may
//! also fail Holm's correction for the number of features that all probes report (`draft.rs`).

pub(crate) mod buffer;
pub(crate) mod cache;
pub(crate) mod card;
mod channels;
mod chunk;
pub(crate) mod collection;
pub(crate) mod content;
mod far;
pub(crate) mod latency;
pub(crate) mod limits;
pub(crate) mod location;
pub(crate) mod page;
pub(crate) mod request_size;
pub(crate) mod small_writes;
mod sweep;
pub(crate) mod throughput;
mod turns;
pub(crate) mod units;
pub(crate) mod volumes;
mod windows;
