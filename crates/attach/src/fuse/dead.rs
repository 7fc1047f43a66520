//! What a drive that was killed leaves behind: a mount that answers nothing any more.
//!
//! It is taken away where three things are so: the directory answers `ENOTCONN`, it is a mount point, and what is mounted
//! there is a FUSE file system whose source is `flashwise`. Nothing else is touched.
//!
//! Source of the form of `/proc/self/mountinfo`: `proc_pid_mountinfo(5)`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::{SOURCE, unmount};
use crate::control::real;

/// What is mounted, as the kernel calls it: by root, and by `fusermount3`.
const KINDS: [&str; 2] = ["fuse", "fuse.flashwise"];
/// `ENOTCONN`.
const NOT_CONNECTED: i32 = 107;

/// Takes a dead drive away that was at a directory.
///
/// # Errors
/// In words: what is dead there is not ours, or it cannot be taken away.
pub(super) fn clear(directory: &Path) -> Result<(), String> {
    if !is_dead(directory) {
        return Ok(());
    }
    // What is dead itself cannot be asked for its name.
    let place = real(directory);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").map_err(|error| format!("mountinfo: {error}"))?;
    if !is_ours(&mounts, &place) {
        return Err("what is mounted here answers nothing, and is not flashwise's; unmount it".to_owned());
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

/// Whether what is mounted last at a place is a drive of ours.
fn is_ours(mounts: &str, place: &Path) -> bool {
    let at_place = |line: &&str| line.split(' ').nth(4).is_some_and(|point| unescaped(point) == place);
    let last = mounts.lines().rfind(at_place);
    let kind = last.and_then(|line| line.split_once(" - ")).map(|(_, kind)| kind.split(' ').collect::<Vec<_>>());
    kind.is_some_and(|kind| kind.len() >= 2 && KINDS.contains(&kind[0]) && kind[1] == SOURCE)
}

/// A path without the escapes of blanks (`\040`) and the like.
fn unescaped(text: &str) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            rest = &behind[3..];
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_drive_of_ours_that_is_mounted_last_is_taken_away() {
        let mounts = "\
22 1 0:21 / / rw - ext4 /dev/vda rw
90 22 0:50 / /mnt/a rw,nosuid - fuse flashwise rw,user_id=0
91 22 0:51 / /mnt/with\\040blank rw shared:7 - fuse.flashwise flashwise rw
92 22 0:52 / /mnt/b rw - fuse.sshfs flashwise rw
93 22 0:53 / /mnt/c rw - fuse.flashwise flashwise rw
94 93 0:54 / /mnt/c rw - fuse.sshfs host:/ rw
95 22 0:55 / /mnt/d rw - fuse.flashwise somebody rw
96 22 0:56 / /mnt/e rw - ext4 flashwise rw
broken
";
        let ours: Vec<_> = ["/mnt/a", "/mnt/with blank", "/mnt/b", "/mnt/c", "/mnt/d", "/mnt/e", "/mnt", "/"]
            .into_iter()
            .filter(|place| is_ours(mounts, Path::new(place)))
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
