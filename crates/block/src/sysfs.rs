//! Block devices as the kernel lists them.
//!
//! Source: Linux, `Documentation/ABI/stable/sysfs-block`; sysfs(5).

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

/// The directory in sysfs of the block device that a path is, or that its file system is on: of the whole drive where
/// that is a partition.
///
/// # Errors
/// When the path cannot be examined, or the kernel lists no such device, as for a file system in memory.
pub fn whole_drive(path: &Path) -> io::Result<PathBuf> {
    let metadata = fs::metadata(path)?;
    let number = if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
    let (major, minor) = (major(number), minor(number));
    let listed = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}"));
    listed.map(whole).map_err(|error| {
        let why = format!("the kernel has no device {major}:{minor}: give the whole drive's device node");
        io::Error::new(error.kind(), why)
    })
}

/// The drive that a partition is of; a whole one stays.
pub(crate) fn whole(device: PathBuf) -> PathBuf {
    match device.parent() {
        Some(drive) if device.join("partition").exists() => drive.to_owned(),
        _ => device,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drive_of_a_partition_is_the_directory_around_it() {
        let place = tempfile::tempdir().unwrap();
        let [drive, partition] = ["sda", "sda/sda1"].map(|name| place.path().join(name));
        fs::create_dir_all(&partition).unwrap();
        fs::write(partition.join("partition"), "1\n").unwrap();
        assert_eq!(whole(partition), drive);
        assert_eq!(whole(drive.clone()), drive);
    }

    #[test]
    fn a_file_that_is_on_no_drive_has_none() {
        let error = whole_drive(Path::new("/proc/self/status")).unwrap_err().to_string();
        assert!(error.starts_with("the kernel has no device 0:"), "{error}");
        assert!(whole_drive(Path::new("/nowhere/at/all")).is_err());
    }
}
