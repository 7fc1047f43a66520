//! A SQLite VFS that is tuned for the drive below it.
//!
//! Unmodified SQLite opens its files through a [`Vfs`]. It records every request for `flashwise audit`, and it applies
//! techniques ([`TECHNIQUES`], [`VfsOptions`]): pages at the drive's *hot locations* ([`Layout::HotLocations`]), where
//! a page is read by two channels at once; aligned write-ahead logs ([`LogLayout`]); concurrent write-back of pages;
//! read-ahead along the B-tree; discard of freed pages; transactions without a rollback journal. As
//! `libflashwise_sqlite.so` it is a loadable extension (`ffi/extension.rs`).
//!
//! ```text
//!   SQLite ──▶ shim (C) ──▶ handle: layout, coalescing, poison ──▶ drive:     bare: volume, page cache ──▶ BlockDevice
//!                                                            │            or mounted: model of Linux ──▶ BlockDevice
//!                                                            └──▶ directory: SQLite's own VFS ──▶ file system
//! ```
//!
//! Three places for the files ([`Backend`]):
//!
//! - **Drive**: a [`flashwise_block::BlockDevice`], simulated or real, in its own time. The database is accessed
//!   directly, as with `O_DIRECT`; journal, WAL and temporary files go through a modelled page cache.
//! - **FileSystem**: a file system on such a device, under a model of Linux's page cache, in the device's time.
//! - **Directory**: an ordinary file system in wall-clock time. SQLite's own VFS `unix` does the work, so locks, shared
//!   memory and file controls are SQLite's. It is selected by its name, whatever the default VFS is ([`Parent`]).
//!
//! ```
//! use flashwise_sqlite::{Backend, Layout, Vfs, VfsOptions};
//! use rusqlite::{Connection, OpenFlags};
//!
//! let dir = tempfile::tempdir()?;
//! let layout = Layout::HotLocations { chunk: "64k".parse()?, offset: "32k".parse()? };
//! let vfs = Vfs::register("hot", Backend::Directory, VfsOptions { layout, record: true, ..VfsOptions::PLAIN })?;
//! let path = dir.path().join("a.db");
//! let db = Connection::open_with_flags_and_vfs(&path, OpenFlags::default(), vfs.name())?;
//! db.execute_batch("PRAGMA page_size = 65536; CREATE TABLE t (x); INSERT INTO t VALUES (1)")?;
//! drop(db);
//!
//! assert_eq!(flashwise_sqlite::info(&path)?.layout, "hot-locations");
//! assert!(vfs.take_trace().records.iter().any(|r| r.offset.0 == 32 * 1024), "page 1 is at the hot location");
//! flashwise_sqlite::export(&path, &dir.path().join("plain.db"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Data path
//!
//! *Plain databases*: each read by SQLite is one request per contiguous piece, each write likewise, one at a time
//! (queue depth 1). Requests that are not multiples of the logical block (the 100 bytes read at open, 16 bytes at
//! offset 24 at the start of a transaction) are rounded out, a write by reading the block first. Requests longer than
//! the drive accepts are split.
//!
//! *Databases at hot locations*: adjacent page writes are held back as a run of up to 2 MiB. It is written when there
//! is a write elsewhere, and at sync, truncate, unlock, end of checkpoint and close (reads see it before); cut so that
//! no write of a chunk or more is misaligned; its pieces are in flight together.
//!
//! *With concurrent write-back*: the same for plain databases too, with as many runs held back as are written
//! concurrently. On a drive all of them are in flight at once; in a directory they go to the page cache, and write-back
//! is started, except for pages spilled by a full cache: they may soon change again.
//!
//! *With concurrent read-ahead*: while SQLite visits the children of an interior page one after the other, the next
//! ones are read ahead (`read_ahead.rs`). In a directory the kernel reads them into the page cache, through an io_uring
//! beside SQLite's own descriptor; on a drive they are read together with the page that SQLite waits for, and kept
//! until something is written.
//!
//! *Logs and journals in a directory* are synced by their data alone, and write-ahead logs are extended with zeros
//! ahead of their frames, so that a commit is one flush (`log_sync.rs`, `log_extension.rs`). In a file system on a
//! drive logs are extended too. [`LogSyncs::Parent`] leaves both to SQLite's own VFS.
//!
//! *Aligned logs*: each byte of SQLite's log has its own place in the stored one (`log_layout.rs`), and is written
//! there directly.
//!
//! *Atomic batches*: all pages of a transaction are held back until SQLite completes it, written to a log of our own as
//! one durable write, and then to the database (`batch.rs`).
//!
//! *Everything else on a drive*: 4 KiB blocks in memory; a sync writes the dirty ones in runs of up to 1 MiB, all
//! together, and then flushes. If more than 64 MiB are dirty, blocks are written early. 256 MiB are cached; reads of
//! them cost nothing.
//!
//! *In a file system on a drive*: each call of SQLite's becomes the calls of its own VFS for Unix on a model of Linux
//! with ext4 or XFS (`flashwise_kernel`; `mounted.rs`), databases included. It is what a program sees whose database is
//! on a mounted drive.
//!
//! After a failed sync a file handle is poisoned: each later write and sync fails with `SQLITE_IOERR` until the file is
//! opened again. [`Vfs::last_error`] and SQLite's error log give the reason.
//!
//! # Limits
//!
//! - On a bare drive, the directory of the volume is in memory: names and sizes are lost with the VFS (the bytes are
//!   not). File-system metadata costs no I/O. Extents are 1 MiB; the smallest file takes one.
//! - On a drive, locks and the shared memory of a WAL work between the connections of this process.
//! - Logical blocks of up to 4 KiB; chunks of 4 KiB to 1 MiB. Pages are at hot locations only if the page size is the
//!   chunk: a new database with other pages is refused at its first write, and so is a change to other pages
//!   ([`SqliteError::Pages`]). SQLite's largest page is 64 KiB.
//! - Memory mapping (`PRAGMA mmap_size`) is off on a drive, and when requests are recorded: its reads would be
//!   invisible.
//! - In a directory, SQLite's own VFS accepts less than 128 KiB at once: longer runs are written in pieces of 64 KiB.
//! - In a directory, writes go through the operating system's page cache, which may merge or reorder the pieces until a
//!   sync, and the file system decides where an offset is on the drive. [`import`] uses the extents that the file
//!   system reports; a database that the VFS creates itself has none yet, and the start of the file is taken for the
//!   drive's.
//! - In a directory, journal and WAL of a shifted database are called `NAME-fwjournal` and `NAME-fwwal`: plain SQLite
//!   would replay a `NAME-journal` to the wrong places. Every process must open such a database through this VFS.
//! - A registration leaks a few hundred bytes, because connections may outlive the VFS.
//!
//! `docs/formats/sqlite-layout.md` draws the stored file and argues its safety.
//!
//! Source: Kakaraparthy, Patel, Park, Kroth, "Optimizing Databases by Learning Hidden Parameters of Solid State
//! Drives", PVLDB 13(4), 2019: use-hot-locations, and the rule that no chunk-long write is misaligned.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

mod bare;
mod batch;
mod batch_file;
mod batch_record;
mod batch_volume;
mod btree;
mod bytes;
mod cache;
mod companion;
mod convert;
mod directory;
mod discard;
mod disk;
mod drive;
mod error;
mod ffi;
mod file;
mod handle;
mod held_back;
mod layout;
mod ledger;
mod locks;
mod log;
mod log_extension;
mod log_gather;
mod log_layout;
mod log_sync;
mod medium;
mod memo;
mod mounted;
mod options;
mod owners;
mod pieces;
mod plain_page;
#[cfg(test)]
mod power_cuts;
mod read_ahead;
mod recorder;
mod shm;
mod store;
mod super_journal;
mod vfs;
mod volume;
mod write_transactions;

pub use convert::{ExportSummary, FileInfo, ImportSummary, check_target, export, import, info};
pub use error::SqliteError;
pub use ffi::return_freed_memory;
pub use layout::Layout;
pub use log_layout::LogLayout;
pub use mounted::FileSystem;
pub use options::{LogSyncs, Parent, TECHNIQUES, Technique, VfsOptions};
pub use vfs::{Backend, ProgramClock, Vfs};

/// Version of the SQLite that is linked in, such as `3.51.0`.
pub fn sqlite_version() -> &'static str {
    ffi::sqlite_version()
}

/// Whether the SQLite that is linked in was built to use `atomic-batch` (`SQLITE_ENABLE_BATCH_ATOMIC_WRITE`). Otherwise
/// it journals as ever, whatever a VFS offers.
pub fn takes_atomic_batches() -> bool {
    ffi::takes_atomic_batches()
}
