//! The extents of a file, from its file system (`FS_IOC_FIEMAP`).
//!
//! Only file systems that overwrite in place on a single block device are supported, so that the result stays valid as
//! long as the file exists: ext2 to ext4, XFS, and the like. Not supported are file systems that write elsewhere
//! (btrfs, f2fs, nilfs2, bcachefs, ZFS), have addresses of their own (btrfs), or have no device (tmpfs, overlayfs,
//! network file systems). What lies between the file system and the drive (partition, LVM, LUKS, md) is found by
//! `raw/drive.rs`.
//!
//! Source: Linux, `Documentation/filesystems/fiemap.rst`, `include/uapi/linux/fiemap.h`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use crate::raw::Drive;
use crate::{ByteSize, Extent, ExtentMap, PlacementUnknown};

/// Extents requested per call.
const AT_ONCE: usize = 128;

/// `_IOWR('f', 11, struct fiemap)`; the size in it is that of the structure without its extents, 32 bytes.
const FS_IOC_FIEMAP: u32 = 0xc020_660b;

/// Write back first, so that there are no extents without a place.
const FLAG_SYNC: u32 = 1;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap`, followed by space for extents.
#[repr(C)]
struct RawMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; AT_ONCE],
}

/// Flags that make an extent's place unusable, with their meanings.
const UNUSABLE: [(u32, &str); 7] = [
    (0x0002, "not placed yet"),
    (0x0004, "not yet allocated"),
    (0x0008, "compressed or otherwise encoded"),
    (0x0100, "not aligned to blocks"),
    (0x0200, "stored within metadata"),
    (0x0400, "packed together with other data"),
    (0x2000, "shared with another file, so that a write goes elsewhere"),
];

/// It is the last one.
const LAST: u32 = 0x0001;

/// File systems that move data when it is overwritten, or whose addresses are not the device's.
const MOVING: [&str; 6] = ["btrfs", "f2fs", "nilfs2", "bcachefs", "zfs", "overlay"];

/// Where an existing file is on the drive below its file system. It is opened for reading, and its dirty pages in the
/// page cache are written back.
///
/// # Errors
/// [`PlacementUnknown`] with the reason if it cannot be read, is not a regular file, or its file system does not report
/// extents.
pub fn file_extents(path: &Path) -> Result<ExtentMap, PlacementUnknown> {
    let failed = |error: io::Error| PlacementUnknown(format!("{}: {error}", path.display()));
    // O_NONBLOCK: a pipe of that name is not waited for.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
    let status = rustix::fs::fstat(&file).map_err(|error| failed(error.into()))?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(PlacementUnknown(format!("{}: it is not a regular file", path.display())));
    }
    let size = ByteSize(u64::try_from(status.st_size).unwrap_or(0));
    extents(&file, &super::statx::file_system(&file), size)
}

/// Where the first `size` bytes of a file are on the drive below its file system.
pub(super) fn extents(file: &OwnedFd, file_system: &str, size: ByteSize) -> Result<ExtentMap, PlacementUnknown> {
    if MOVING.contains(&file_system) {
        return Err(PlacementUnknown(format!("{file_system} does not keep a file at a fixed place on the drive")));
    }
    let drive = Drive::below(file)?;
    let told =
        ask(file, size).map_err(|error| PlacementUnknown(format!("{file_system} does not report extents: {error}")))?;
    let mut extents: Vec<Extent> = Vec::new();
    for raw in told {
        if let Some((_, what)) = UNUSABLE.iter().find(|(flag, _)| raw.flags & flag != 0) {
            return Err(PlacementUnknown(format!("the extent at byte {} is {what}", raw.logical)));
        }
        let out_of_range = || PlacementUnknown(format!("the extent at byte {} has no place on the drive", raw.logical));
        let drive_offset = ByteSize(raw.physical.checked_add(drive.start.0).ok_or_else(out_of_range)?);
        join(&mut extents, Extent { offset: ByteSize(raw.logical), drive_offset, length: ByteSize(raw.length) });
    }
    ExtentMap::new(drive.name, extents, size)
}

/// Adds an extent, to the last one where it continues that on file and drive.
fn join(extents: &mut Vec<Extent>, next: Extent) {
    if let Some(last) = extents.last_mut() {
        let end = |start: ByteSize, length: ByteSize| start.0.checked_add(length.0);
        let continues = end(last.offset, last.length) == Some(next.offset.0)
            && end(last.drive_offset, last.length) == Some(next.drive_offset.0);
        if let (true, Some(length)) = (continues, last.length.0.checked_add(next.length.0)) {
            last.length = ByteSize(length);
            return;
        }
    }
    extents.push(next);
}

/// Requests all extents, as many per call as fit.
fn ask(file: &OwnedFd, size: ByteSize) -> io::Result<Vec<RawExtent>> {
    let mut found: Vec<RawExtent> = Vec::new();
    let mut start = 0;
    while start < size.0 {
        let part = ask_from(file, start, size.0 - start)?;
        let Some(last) = part.last().copied() else { break };
        let end = last.logical.checked_add(last.length).ok_or(io::ErrorKind::InvalidData)?;
        found.extend(part);
        if last.flags & LAST != 0 || end <= start {
            break;
        }
        start = end;
    }
    Ok(found)
}

fn ask_from(file: &OwnedFd, start: u64, length: u64) -> io::Result<Vec<RawExtent>> {
    let mut map = Box::new(RawMap {
        start,
        length,
        flags: FLAG_SYNC,
        mapped_extents: 0,
        extent_count: AT_ONCE as u32,
        reserved: 0,
        extents: [RawExtent::default(); AT_ONCE],
    });
    // SAFETY: the request takes a pointer to a `struct fiemap` followed by `extent_count` of `struct fiemap_extent`.
    // `RawMap` has the kernel's layout (`repr(C)`, only integers, sizes checked by a test), lives until the call
    // returns, is borrowed exclusively, and any bytes that the kernel writes are valid integers.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut *map) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(map.extents[..(map.mapped_extents as usize).min(AT_ONCE)].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_have_the_kernels_sizes() {
        assert_eq!(size_of::<RawExtent>(), 56);
        assert_eq!(std::mem::offset_of!(RawMap, extents), 32);
        assert_eq!(std::mem::offset_of!(RawExtent, flags), 40);
    }

    #[test]
    fn extents_that_continue_each_other_become_one() {
        let extent = |offset, drive_offset, length| Extent {
            offset: ByteSize(offset),
            drive_offset: ByteSize(drive_offset),
            length: ByteSize(length),
        };
        let mut extents = Vec::new();
        for next in [extent(0, 100, 10), extent(10, 110, 5), extent(15, 200, 5), extent(20, 205, 1)] {
            join(&mut extents, next);
        }
        assert_eq!(extents, [extent(0, 100, 15), extent(15, 200, 6)]);
    }
}
