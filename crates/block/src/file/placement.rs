//! What lies between the files of a directory and the drive.
//!
//! ```text
//!   directory ─▶ a small nameless file ─ extents (FIEMAP) ─▶ its device ─ partition, LVM, LUKS, md ─▶ drive
//! ```
//!
//! Source: `fiemap.rs` for the file, `raw/drive.rs` for what is below.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::{pwrite, retry_on_intr};

use super::scratch::open_nameless;
use super::statx::file_system;
use crate::raw::Drive;
use crate::{ByteSize, PlacementUnknown};

/// The file that is tried: small, and longer than what ext4 and btrfs store within an inode.
const TRIED: ByteSize = ByteSize::kib(64);

/// The drive below a directory, and what is between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The type of the file system, as in `/proc/mounts`.
    pub file_system: String,
    /// The drive, by the kernel's name.
    pub drive: String,
    /// Where the file system starts on it.
    pub start: ByteSize,
    /// What lies between, from the top: a mapped volume, an array, a partition.
    pub layers: Vec<String>,
}

impl Placement {
    /// Finds where files of a directory are, by one that is created, has no name, and is gone at once.
    ///
    /// # Errors
    /// [`PlacementUnknown`] with the reason where a place in a file is no fixed place on a drive, or cannot be found.
    pub fn of(directory: &Path) -> Result<Self, PlacementUnknown> {
        let failed = |error: rustix::io::Errno| {
            PlacementUnknown(format!("{}: finding its drive: {}", directory.display(), io::Error::from(error)))
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(directory, flags, Mode::empty()).map_err(failed)?;
        let file = open_nameless(opened.as_fd()).map_err(failed)?;
        let content = vec![0xa5; TRIED.0 as usize];
        let written = retry_on_intr(|| pwrite(&file, &content, 0)).map_err(failed)?;
        let file_system = file_system(&file);
        super::fiemap::extents(&file, &file_system, ByteSize(written as u64))?;
        let Drive { name, start, layers } = Drive::below(&file)?;
        Ok(Self { file_system, drive: name, start, layers })
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.file_system, self.drive)?;
        match &*self.layers {
            [] => Ok(()),
            layers => write!(f, ", from {} on, through {}", self.start, layers.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_is_said_with_where_it_starts() {
        let mut placement = Placement {
            file_system: "ext4".into(),
            drive: "sda".into(),
            start: ByteSize::mib(17),
            layers: vec!["encrypted volume home from 16 MiB on".into(), "partition sda1 from 1 MiB on".into()],
        };
        let words =
            "ext4 on sda, from 17 MiB on, through encrypted volume home from 16 MiB on, partition sda1 from 1 MiB on";
        assert_eq!(placement.to_string(), words);
        placement.layers.clear();
        assert_eq!(placement.to_string(), "ext4 on sda");
    }

    #[test]
    fn trying_a_directory_leaves_nothing_in_it() {
        let directory = tempfile::tempdir().unwrap();
        // Known or not depends on where temporary files are here.
        let _ = Placement::of(directory.path());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let missing = Placement::of(&directory.path().join("missing")).unwrap_err().to_string();
        assert!(missing.contains("missing: finding its drive: No such file"), "{missing}");
    }
}
