//! The one file that a new one may replace: a regular file that was recognised, by device and inode.
//!
//! Hours may pass between recognition and replacement. `renameat2` exchanges the two names, then the old file is
//! compared with the recognised one: if it is another file, the names are exchanged back. If the file system does not
//! support the exchange, the file is compared just before the rename.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use tempfile::TempPath;

/// A file that may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaceable {
    device: u64,
    inode: u64,
}

impl Replaceable {
    /// Examines an existing file: `None` if the name is free. `is_ours` parses the file.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if it is not a regular file, or not ours; any error of `is_ours`.
    pub fn recognise(path: &Path, is_ours: impl FnOnce(File) -> io::Result<bool>) -> io::Result<Option<Self>> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let found = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        // Checked before it is opened: opening a special file may block or have effects.
        if !found.is_file() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        let known = Self { device: metadata.dev(), inode: metadata.ino() };
        if metadata.is_file() && is_ours(file)? { Ok(Some(known)) } else { Err(io::ErrorKind::AlreadyExists.into()) }
    }

    /// The file of a device and inode number.
    pub(super) fn new(device: u64, inode: u64) -> Self {
        Self { device, inode }
    }

    fn is(&self, path: &Path) -> io::Result<bool> {
        let found = fs::symlink_metadata(path)?;
        Ok((found.dev(), found.ino()) == (self.device, self.inode))
    }

    /// Replaces this file, which is at `target`, with `new`. Returns the old file under the name that `new` had, if it
    /// still exists; it is deleted when dropped.
    pub(super) fn exchange_with(&self, new: TempPath, target: &Path) -> io::Result<Option<TempPath>> {
        match exchange(&new, target) {
            Ok(()) if self.is(&new).unwrap_or(false) => Ok(Some(new)),
            Ok(()) => {
                if let Err(error) = exchange(&new, target) {
                    // Not removed with the name that it has now.
                    let kept = new.keep().map_err(|error| error.error)?;
                    let why = format!("the earlier file {} is now {}: {error}", target.display(), kept.display());
                    return Err(io::Error::other(why));
                }
                Err(io::ErrorKind::AlreadyExists.into())
            }
            // The old file was deleted meanwhile.
            Err(Errno::NOENT) => new.persist_noclobber(target).map_err(|error| error.error).map(|()| None),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.rename_over(new, target),
            Err(error) => Err(error.into()),
        }
    }

    #[allow(clippy::disallowed_methods, reason = "over a file that is compared by device and inode just before")]
    fn rename_over(&self, new: TempPath, target: &Path) -> io::Result<Option<TempPath>> {
        if !self.is(target)? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        // The old one under one more name, so that it can come back; not every file system has that.
        let aside = super::builder().make_in(super::directory_of(target), |path| fs::hard_link(target, path));
        let aside = aside.ok().map(tempfile::NamedTempFile::into_temp_path);
        new.persist(target).map_err(|error| error.error)?;
        Ok(aside)
    }
}

#[allow(clippy::disallowed_methods, reason = "both names keep a file; the caller compares which")]
fn exchange(one: &Path, other: &Path) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_names_cannot_be_exchanged_only_the_recognised_file_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let [target, kept] = ["target", "kept"].map(|name| directory.path().join(name));
        let new = || {
            let new = tempfile::NamedTempFile::new_in(directory.path()).unwrap();
            fs::write(new.path(), "new").unwrap();
            new.into_temp_path()
        };
        fs::write(&target, "ours").unwrap();
        let known = Replaceable::recognise(&target, |_| Ok(true)).unwrap().unwrap();
        fs::rename(&target, &kept).unwrap();
        fs::write(&target, "another").unwrap();
        assert_eq!(known.rename_over(new(), &target).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&target).unwrap(), "another");
        fs::rename(&kept, &target).unwrap();
        drop(known.rename_over(new(), &target).unwrap());
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
