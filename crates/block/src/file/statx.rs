//! Properties of an open file from the kernel: the type of its file system, and the alignment of direct I/O.
//!
//! Source: statx(2); proc_pid_mountinfo(5).

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Statx, StatxFlags};

/// How direct I/O must be aligned (`STATX_DIOALIGN`, Linux 6.1).
pub(super) struct DirectAlignment {
    /// In memory, in bytes; 0 where the file has no direct I/O.
    pub(super) memory: u32,
    /// In the file, in bytes; 0 where the file has no direct I/O.
    pub(super) offset: u32,
}

/// The alignment of direct I/O; `None` where the kernel or the file system does not report it.
pub(super) fn direct_alignment(file: &OwnedFd) -> Option<DirectAlignment> {
    let status = statx(file).filter(|status| status.stx_mask & StatxFlags::DIOALIGN.bits() != 0)?;
    Some(DirectAlignment { memory: status.stx_dio_mem_align, offset: status.stx_dio_offset_align })
}

fn statx(file: &OwnedFd) -> Option<Statx> {
    rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID | StatxFlags::DIOALIGN).ok()
}

/// The type of the file system that `file` is on.
pub(super) fn file_system(file: &OwnedFd) -> String {
    let mount =
        statx(file).filter(|status| status.stx_mask & StatxFlags::MNT_ID.bits() != 0).map(|status| status.stx_mnt_id);
    let mounts: io::Result<String> = fs::read_to_string("/proc/self/mountinfo");
    match (mount, &mounts) {
        (Some(mount), Ok(mounts)) => type_of_mount(mount, mounts),
        _ => None,
    }
    .unwrap_or("unknown file system")
    .to_owned()
}

/// Finds the type of mount number `mount` in the text of `/proc/self/mountinfo`.
fn type_of_mount(mount: u64, mountinfo: &str) -> Option<&str> {
    let is_it = |line: &&str| line.split(' ').next().is_some_and(|id| id.parse() == Ok(mount));
    let (_, behind_the_options) = mountinfo.lines().find(is_it)?.split_once(" - ")?;
    behind_the_options.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_is_found_by_the_number_of_its_mount() {
        let mountinfo = "21 1 252:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                         210 21 0:41 /@ /my\\040disk rw - btrfs /dev/sdb rw,subvol=/@\n";
        assert_eq!(type_of_mount(21, mountinfo), Some("ext4"));
        assert_eq!(type_of_mount(210, mountinfo), Some("btrfs"));
        assert_eq!(type_of_mount(2, mountinfo), None);
    }
}
