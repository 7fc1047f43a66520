//! Properties of a file's file system.
//!
//! Source: statfs(2).

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{FsWord, fstatfs};

/// ext2, ext3 and ext4.
const EXT_SUPER_MAGIC: FsWord = 0xef53;
const XFS_SUPER_MAGIC: FsWord = 0x5846_5342;

/// Whether a file is on ext2, ext3, ext4 or XFS: on a drive, and overwritten in place, so that bytes that were written
/// once need no more allocation.
///
/// # Errors
/// When the file system does not say what it is.
pub fn is_on_ext_or_xfs(file: impl AsFd) -> io::Result<bool> {
    Ok(matches!(fstatfs(file)?.f_type, EXT_SUPER_MAGIC | XFS_SUPER_MAGIC))
}
