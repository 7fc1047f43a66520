//! The longest write that is reported as atomic: never torn by a power cut, all of it or nothing.
//!
//! ```text
//!   file ─▶ statx: what the file system passes on whole, if it has it in one place ─┐
//!   file system ─▶ its blocks: what it has in one place always ─────────────────────┼─▶ all, the smallest counts
//!   drive ─▶ its queue: AWUPF of NVMe, as it reports it ────────────────────────────┘
//! ```
//!
//! A program that requests it (`RWF_ATOMIC`) gets an error where a write is in two places. One that does not, as
//! MariaDB, gets two writes: only the file system's block is sure to be in one place.
//!
//! Nothing here is measured: the file system's figure follows from its layout, the drive's is its maker's promise,
//! which only a power cut can test.
//!
//! Source: statx(2), `STATX_WRITE_ATOMIC` (Linux 6.11); `Documentation/ABI/stable/sysfs-block`,
//! `atomic_write_unit_max_bytes`; NVM Express Base Specification, "Atomic Operation" (AWUPF, NAWUPF).

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags};

use crate::ByteSize;
use crate::sysfs::whole_drive;

/// The kernel's own number: `rustix` has no name for it.
const STATX_WRITE_ATOMIC: u32 = 0x1_0000;

/// What is reported as atomic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtomicWrites {
    /// The longest direct write to the file that its file system passes on whole, without copying; `None` where it
    /// reports nothing.
    pub file_system: Option<ByteSize>,
    /// Block of the file system.
    pub block: ByteSize,
    /// The longest write that the drive promises to do whole, also when its power fails; 0 where it promises nothing,
    /// `None` where the kernel does not say.
    pub drive: Option<ByteSize>,
}

impl AtomicWrites {
    /// Of a regular file and the drive below it.
    ///
    /// # Errors
    /// When the file cannot be examined.
    pub fn of(file: &Path) -> io::Result<Self> {
        let wanted = StatxFlags::TYPE | StatxFlags::from_bits_retain(STATX_WRITE_ATOMIC);
        let status = rustix::fs::statx(CWD, file, AtFlags::empty(), wanted)?;
        let is_reported = status.stx_mask & STATX_WRITE_ATOMIC != 0;
        // Beyond the second figure XFS writes a copy, and only where the program requests an atomic write; 0 stands for
        // the first one.
        let unit = match status.stx_atomic_write_unit_max_opt {
            0 => status.stx_atomic_write_unit_max,
            unit => unit,
        };
        Ok(Self {
            file_system: is_reported.then_some(unit.into()).and_then(some),
            block: ByteSize(rustix::fs::statvfs(file)?.f_frsize),
            drive: whole_drive(file).ok().and_then(|drive| of_drive(&drive)),
        })
    }
}

fn some(bytes: u64) -> Option<ByteSize> {
    (bytes > 0).then_some(ByteSize(bytes))
}

/// What the drive promises that a path is, or that its file system is on.
pub(crate) fn of_drive_below(path: &Path) -> Option<ByteSize> {
    let drive = whole_drive(path).ok()?;
    of_drive(&drive).filter(|unit| unit.0 > 0)
}

/// The figure of a drive's directory in sysfs.
fn of_drive(directory: &Path) -> Option<ByteSize> {
    let text = fs::read_to_string(directory.join("queue/atomic_write_unit_max_bytes")).ok()?;
    text.trim().parse().ok().map(ByteSize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_promises_nothing_differs_from_one_whose_unit_is_not_known() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(of_drive(place.path()), None);
        fs::create_dir(place.path().join("queue")).unwrap();
        for (text, unit) in [("16384\n", Some(ByteSize(16_384))), ("0\n", Some(ByteSize(0))), ("many\n", None)] {
            fs::write(place.path().join("queue/atomic_write_unit_max_bytes"), text).unwrap();
            assert_eq!(of_drive(place.path()), unit);
        }
    }

    #[test]
    fn a_file_in_memory_is_on_no_drive() {
        let found = AtomicWrites::of(Path::new("/proc/self/status")).unwrap();
        assert!(found.drive.is_none() && found.file_system.is_none() && found.block.0 > 0, "{found:?}");
        assert!(AtomicWrites::of(Path::new("/nowhere/at/all")).is_err());
    }
}
