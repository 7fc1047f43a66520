//! Leftovers of a killed drive: a mount that does not respond.
//!
//! It is removed if three conditions hold: the directory fails with `ENOTCONN`, it is a mount point, and the mount is a
//! FUSE file system whose source is `flashwise`. Nothing else is touched.

use std::path::Path;

use super::{SOURCE, unmount};
use crate::control::real_parent;
use crate::mounts::{Mount, mounts};

/// The type of the mount, as the kernel calls it: by root, and by `fusermount3`.
const KINDS: [&str; 2] = ["fuse", "fuse.flashwise"];
/// `ENOTCONN`.
const NOT_CONNECTED: i32 = 107;

/// Removes a dead drive at a directory.
///
/// # Errors
/// In words: the dead mount is not ours, or it cannot be removed.
pub(crate) fn clear(directory: &Path) -> Result<(), String> {
    if !is_dead(directory) {
        return Ok(());
    }
    // The real path of a dead mount cannot be read.
    let place = real_parent(directory);
    let mounts = mounts().map_err(|error| format!("mountinfo: {error}"))?;
    if !is_ours(&mounts, &place) {
        return Err("the file system mounted here does not respond, and is not flashwise's; unmount it".to_owned());
    }
    unmount(&place);
    if is_dead(directory) {
        return Err("a drive that was killed is still mounted here; unmount it".to_owned());
    }
    Ok(())
}

fn is_dead(directory: &Path) -> bool {
    std::fs::read_dir(directory).is_err_and(|error| error.raw_os_error() == Some(NOT_CONNECTED))
}

/// Whether the topmost mount at a place is one of our drives.
fn is_ours(mounts: &[Mount], place: &Path) -> bool {
    let last = mounts.iter().rfind(|mount| mount.point == place);
    last.is_some_and(|mount| KINDS.contains(&&*mount.kind) && mount.source == SOURCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::parse;

    #[test]
    fn only_a_drive_of_ours_that_is_mounted_last_is_taken_away() {
        let mounts = parse(
            "\
22 1 0:21 / / rw - ext4 /dev/vda rw
90 22 0:50 / /mnt/a rw,nosuid - fuse flashwise rw,user_id=0
91 22 0:51 / /mnt/with\\040blank rw shared:7 - fuse.flashwise flashwise rw
92 22 0:52 / /mnt/b rw - fuse.sshfs flashwise rw
93 22 0:53 / /mnt/c rw - fuse.flashwise flashwise rw
94 93 0:54 / /mnt/c rw - fuse.sshfs host:/ rw
95 22 0:55 / /mnt/d rw - fuse.flashwise somebody rw
96 22 0:56 / /mnt/e rw - ext4 flashwise rw
broken
",
        );
        let ours: Vec<_> = ["/mnt/a", "/mnt/with blank", "/mnt/b", "/mnt/c", "/mnt/d", "/mnt/e", "/mnt", "/"]
            .into_iter()
            .filter(|place| is_ours(&mounts, Path::new(place)))
            .collect();
        assert_eq!(ours, ["/mnt/a", "/mnt/with blank"]);
    }

    #[test]
    fn what_is_alive_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(clear(directory.path()), Ok(()));
        assert_eq!(clear(&directory.path().join("missing")), Ok(()));
    }
}
