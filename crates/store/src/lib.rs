//! A key-value store that fits the SSD it lies on: a B⁻-tree that writes as little flash as an LSM-tree, and a hash
//! that needs hardly any memory.
//!
//! ```text
//!   Keyspace, Batch, Snapshot, Transaction          the front: bytes in, bytes out
//!      │ put, delete               │ get, scan
//!      ▼                           ▼
//!   store.rs: the writer        versions.rs (what a snapshot sees instead)
//!      └──────────┬────────────────┘
//!              engine.rs ─▶ tree/ (descent) or hash/ (arithmetic)
//!                              │ records, changed pages
//!                              ▼
//!   pages/ (cache, redo, delta or image, late give-back) ─┐
//!   commit.rs (group commit) ─▶ log/ (sparse ring) ───────┴─▶ medium/ (file, or any block device)
//! ```
//!
//! - [`Engine::BTree`] keeps keys in order. [`Engine::Hash`] finds a key's page by arithmetic and has no order.
//! - Keys and values are bytes: keys of up to an eighth of a page, values from none to a quarter of the log.
//! - **Keyspaces** are named. **Scans** run both ways over ranges and prefixes; with the hash only over all keys.
//! - A **batch** is atomic. A **snapshot** is one state; a **transaction** is serialisable, or its commit fails with
//!   [`StoreError::Conflict`].
//! - A commit names its **durability**: [`Durability::Buffered`], [`Durability::Flushed`] or [`Durability::Synced`].
//! - Everything on the medium has a checksum. Damage is an error that names its place.
//! - [`Store::backup`] runs during reads and writes. [`Store::check`] reads and compares everything.
//! - [`Store::stats`] has the bytes written by cause, beside the user's.
//!
//! ```
//! use flashwise_store::{Batch, Durability, Store, StoreOptions};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("app.store");
//! let store = Store::open(&path, &StoreOptions::default())?;
//! let users = store.keyspace("users")?;
//! users.put("alice", "1978")?;
//! users.put("bob", "1990")?;
//! assert_eq!(users.get("alice")?.as_deref(), Some(b"1978".as_slice()));
//!
//! let mut batch = Batch::new();
//! batch.delete(&users, "alice");
//! batch.put(&users, "carol", "2001");
//! store.commit(batch, Durability::Synced)?;
//!
//! let names = users.range("a".."z")?.map(|entry| entry.map(|(name, _)| name)).collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(names, [b"bob".to_vec(), b"carol".to_vec()]);
//! # Ok(())
//! # }
//! ```
//!
//! **Not here.** A store is open in one process at a time. Pages have one size. The page area does not shrink; the
//! space of free pages goes back to the medium by discards. There is no background thread: commits pay for write-back,
//! a batch of pages at a time, and for the pages of a dropped keyspace that a crash has left.
//!
//! **Limits.** Pages of 4 to 32 KiB; keys of 496, 1008, 2032 or 4080 bytes by page size, with the hash 9 less; a batch
//! takes up to a quarter of the log (16 MiB of 64 MiB), and so does a value.
//!
//! The format on the medium: `docs/formats/store.md`. Source: Y. Qiao, X. Chen, N. Zheng, J. Li, Y. Liu, T. Zhang,
//! *Closing the B+-tree vs. LSM-tree Write Amplification Gap on Modern Storage Hardware with Built-in Transparent
//! Compression*, FAST 2022. The hash: KallaxDB (DaMoN 2021) and W. Litwin,
//! *Linear Hashing*, VLDB 1980. What they leave open, and what is different here, stands with each part.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

mod backup;
mod batch;
mod bytes;
mod catalog;
mod commit;
#[cfg(test)]
mod crash;
mod engine;
mod error;
mod faults;
mod hash;
mod info;
mod keyspace;
mod log;
mod medium;
mod options;
mod pages;
mod reserve;
mod scan;
mod snapshot;
mod stats;
mod store;
mod superblock;
mod transaction;
mod tree;
mod value;
mod versions;
#[cfg(any(test, feature = "workload"))]
pub mod workload;

pub use batch::Batch;
pub use error::{Result, StoreError};
pub use info::StoreInfo;
pub use keyspace::Keyspace;
pub use options::{BUCKET_FILL, Durability, Engine, LogForm, StoreOptions};
pub use scan::Scan;
pub use snapshot::Snapshot;
pub use stats::{IoStats, Stats};
pub use store::{Check, Store};
pub use transaction::{Transaction, TransactionScan};
pub use value::Value;
