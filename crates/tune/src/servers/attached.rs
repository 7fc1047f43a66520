//! The simulated drive of a server's data, attached to this machine: private servers work on it as on any disk.
//!
//! ```text
//!   --on sim:DRIVE ─▶ the caller attaches it ─▶ directory of a mounted file system ─▶ rounds (see `rounds`)
//! ```
//!
//! At its own speed, the way of a request to the drive and back (FUSE, a loop device) adds 40 to 270 µs to each, so
//! gains come out smaller than they are. Slowed down, that counts less, but so do the server's computing and timers.

use std::path::PathBuf;
use std::sync::Arc;

use super::{AttachedPlace, NamedDrive};
use crate::{AttachDrive, AttachedDrive, Host, Target, TuneError, Written};

/// The file system on the drive of a target that names none.
const FILE_SYSTEM: &str = "ext4";

/// Who attaches the drive, and how much slower than it is.
#[derive(Clone, Debug)]
pub struct AttachRequest {
    /// Attaches drives.
    pub how: Arc<dyn AttachDrive>,
    /// Seconds of the machine for one of the drive's, at least 1.
    pub slower: u32,
}

/// The drive, attached until this is dropped.
pub(crate) struct Attached {
    drive: Box<dyn AttachedDrive>,
    file_system: &'static str,
    slower: u32,
}

impl Attached {
    /// Attaches the drive that was to be learned.
    ///
    /// # Errors
    /// When it is no simulated drive, or the machine does not allow it.
    pub(crate) fn of(request: &AttachRequest, drive: &NamedDrive<'_>) -> Result<Self, TuneError> {
        let refused = |why: &str| Err(TuneError::Options(format!("--attached: {why}")));
        let NamedDrive::Unlearned(target) = drive else {
            return refused("a profile is no drive: name the drive with --on sim:DRIVE");
        };
        let (config, host) = match target.as_ref() {
            Target::Simulated { config, host, .. } => (config, host),
            Target::Volume { .. } => return refused("the target is a volume; only drives are attached"),
            _ => return refused("the target is no simulated drive: name its --directory"),
        };
        let file_system = match host {
            Host::Linux { kernel, .. } => kernel.file_system.name(),
            Host::Bare => FILE_SYSTEM,
        };
        let slower = request.slower.max(1);
        Ok(Self { drive: request.how.attach(config, slower, file_system)?, file_system, slower })
    }

    /// Where private servers go.
    pub(crate) fn directory(&self) -> PathBuf {
        self.drive.directory()
    }

    /// What was written to it until now.
    pub(crate) fn written(&self) -> Option<Written> {
        self.drive.written()
    }

    /// For the document, at the end, with what a transaction with the old and with the new settings wrote.
    pub(crate) fn place(&self, [before, after]: [Option<Written>; 2]) -> AttachedPlace {
        let (file_system, was_late) = (self.file_system.to_owned(), self.drive.was_late());
        AttachedPlace { file_system, slower: self.slower, was_late, before, after }
    }
}
