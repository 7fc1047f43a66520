//! File systems: one file a mechanism, named as in Linux's `fs/`.
//!
//! # Adding a file system
//!
//! A folder with a type behind [`layout::Layout`] (where things are, and which metadata each change touches), a variant
//! of [`crate::FileSystemKind`], and a line in `Kernel::new`. Commits, extents and writing back are shared.

pub(crate) mod buffer;
pub(crate) mod commit;
pub(crate) mod direct_io;
pub(crate) mod ext4;
pub(crate) mod extents;
pub(crate) mod free_space;
pub(crate) mod fs_writeback;
pub(crate) mod inode;
pub(crate) mod layout;
pub(crate) mod open;
pub(crate) mod read_write;
pub(crate) mod sync;
pub(crate) mod transaction;
pub(crate) mod xfs;
