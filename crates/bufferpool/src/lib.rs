//! Buffer pools for SSDs: replacement policies, batched write-back and prefetching, as a simulator over traces and as a
//! pool that threads share.
//!
//! ```text
//!   trace ─▶ PageTrace (pages numbered once) ─▶ Pool: directory ⇄ policy, ACE, prefetcher ─▶ Counts ─▶ PoolReport
//!                                                      │
//!                                                      ▼
//!                                               Storage: nothing · a simulated drive in virtual time
//! ```
//!
//! - [`policy`]: one file per policy, with its source, its rule and the choices that the source leaves open.
//!   [`policies`] lists them.
//! - [`ace`]: an adapter for any policy that writes dirty pages in batches. [`mod@prefetch`]: pages that are read
//!   together with a miss.
//! - [`pool`]: the pool itself, without bytes. [`simulate`]: many pools on one trace, on all cores; [`traces`]: on many
//!   traces.
//! - [`cost`]: the cost of a run by the parametric I/O model; [`drive`]: its time on a simulated drive.
//!
//! - [`concurrent`]: a [`BufferPool`] with data, on a file or any block device, that uses the same decision code.
//!
//! **Limits.** 2^28 different pages and 2^30 accesses per trace; 4 bytes of memory per access, and 4 bytes per page and
//! pool; 12 to 100 bytes per frame, depending on the policy. Accesses do not allocate.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

pub mod ace;
pub mod concurrent;
pub mod cost;
mod directory;
pub mod drive;
mod error;
mod heap;
mod lists;
mod marked;
mod memory;
pub mod policy;
pub mod pool;
pub mod prefetch;
pub mod simulate;
mod summary;
mod sync;
mod timeline;
mod trace;
pub mod traces;

pub use ace::{Ace, AceRequest, Reach};
pub use concurrent::{BufferPool, BufferPoolOptions};
pub use directory::{Directory, Entry, Found, Page};
pub use error::PoolError;
pub use policy::{PolicyError, PolicyInfo, PolicySpec, Shape, policies};
pub use pool::{Access, AnyPool, Counts, EvictionPlan, Pool, PoolOptions, Steps, Storage};
pub use prefetch::Prefetch;
pub use trace::{PageTrace, TraceOptions, Unit};
