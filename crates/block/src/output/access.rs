//! Access rights of a new file: those of the file that it replaces, and never more.
//!
//! ```text
//!   owner and group ─▶ access list (POSIX.1e), or none ─▶ mode
//! ```
//!
//! A group that cannot be set (the program does not run as root) keeps no more rights than everybody has, as with `cp
//! -p`. If the file has an access list, the group bits of the mode are its mask: without the list they would admit a
//! group that the list excludes.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::io::Errno;

/// The access list of a file, as the kernel keeps it.
const ACCESS_LIST: &str = "system.posix_acl_access";
const GROUP: u32 = 0o070;

/// Access rights of a new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// As any new file of this user's.
    Usual,
    /// As the file that it stands for or is made from.
    Of(FileAccess),
}

/// Owner, mode and access list of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAccess {
    user: u32,
    group: u32,
    mode: u32,
    /// The access list, where the file has one.
    list: Option<Vec<u8>>,
}

impl Access {
    /// The access rights of a file, following links.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        let list = access_list(|buffer| rustix::fs::getxattr(path, ACCESS_LIST, buffer))?;
        Ok(Self::Of(FileAccess { user: metadata.uid(), group: metadata.gid(), mode: metadata.mode() & 0o777, list }))
    }

    /// The mode that the file is created with: a private one while it is not complete.
    pub(super) fn initial_mode(&self) -> u32 {
        match self {
            Self::Usual => 0o666,
            Self::Of(_) => 0o600,
        }
    }

    /// Gives a file its owner, access list and mode.
    pub(super) fn apply(&self, file: &File) -> io::Result<()> {
        let Self::Of(wanted) = self else { return Ok(()) };
        let is = file.metadata()?;
        if (is.uid(), is.gid()) != (wanted.user, wanted.group) {
            let both = std::os::unix::fs::fchown(file, Some(wanted.user), Some(wanted.group));
            if both.is_err() {
                // At least its group; the mode below depends on the owner that the file then has.
                let _ = std::os::unix::fs::fchown(file, None, Some(wanted.group));
            }
        }
        let mut mode = wanted.mode;
        let narrowed = |mode: u32| mode & !GROUP | (mode & 0o007) << 3 & mode & GROUP;
        if file.metadata()?.gid() != wanted.group {
            mode = narrowed(mode);
        }
        match &wanted.list {
            Some(list) => {
                let flags = rustix::fs::XattrFlags::empty();
                if rustix::fs::fsetxattr(file, ACCESS_LIST, list, flags).is_err() {
                    mode &= !GROUP;
                }
            }
            // One that the directory handed down.
            None => match rustix::fs::fremovexattr(file, ACCESS_LIST) {
                Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
                Err(error) => return Err(error.into()),
            },
        }
        file.set_permissions(fs::Permissions::from_mode(mode))
    }
}

/// An access list; `None` if the file has none, or its file system does not support them.
fn access_list(mut get: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>) -> io::Result<Option<Vec<u8>>> {
    let mut list = vec![0; 1 << 16];
    match get(&mut list) {
        Ok(length) => {
            list.truncate(length);
            Ok(Some(list))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
