//! What Bonnie++ asks of a drive: large files, many small ones, a database's random accesses; on any [`BlockDevice`].
//!
//! ```text
//!   program ──▶ page cache: read-ahead, write-back ──▶ large requests ──┐
//!   program ──▶ file system: inodes, directories, journal ──▶ cache ────┼──▶ BlockDevice
//!   program, in many threads ──▶ requests of 8 KiB, past the cache ─────┘
//! ```
//!
//! [`stream`] is Bonnie++'s sequential write, rewrite and read of a file that is larger than memory; [`files`] its
//! create, stat and delete of many files, in the order of their names or at random; [`database`] random accesses by
//! several threads, as its seeks are, but of the size and the mix that a database has.
//!
//! It stands beside the studies and not among the workloads of `crates/trace`, because it is no list of requests: what
//! a page cache or a journal asks next depends on what has come back, and a crate that says what to submit does not
//! wait.
//!
//! Source: R. Coker's Bonnie++ (its manual's description of the tests); the kernel's part as far as each file's head
//! says.
//!
//! [`BlockDevice`]: flashwise_block::BlockDevice

pub(crate) mod cache;
pub(crate) mod database;
pub(crate) mod file_system;
pub(crate) mod files;
pub(crate) mod stream;
