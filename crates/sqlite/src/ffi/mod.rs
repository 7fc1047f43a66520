//! All of the crate's `unsafe`: SQLite's C interface, upwards (the VFS that SQLite calls) and downwards (the VFS that
//! we call), and memory that connections share.
//!
//! Nothing unwinds into C: every function that SQLite calls catches panics and returns an I/O error.

mod api;
mod extension;
mod fork;
mod marks;
mod memory;
mod parent;
mod region;
mod shim;

pub(crate) use api::{Api, OLDEST};
pub(crate) use fork::{OwnFile, unlock_all};
pub(crate) use marks::MarksPage;
pub use memory::return_freed_memory;
pub(crate) use parent::{FileName, LONGEST, ParentFile, ParentVfs};
pub(crate) use region::Region;
pub(crate) use shim::{Registration, sqlite_version, takes_atomic_batches, thread_cpu_ns};
