//! Output files for the user: complete or absent, and never replacing a file of another kind.
//!
//! ```text
//!   OutputFile::create ─▶ no name, or a name of its own ─▶ write ─▶ owner and mode ─▶ fsync
//!                                                    ┌─ publish ─▶ link: only if the name is free
//!                                                    └─ replace ─▶ exchange: only a file that was recognised as ours
//!                                                                  └─▶ fsync of the directory
//! ```
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | [`OutputFile`], written through a handle, and [`OutputPath`], for programs that need a name |
//! | `access.rs` | owner, mode and access list of a file that replaces another one |
//! | `replace.rs` | [`Replaceable`], the one file that a new one may replace |
//! | `folder.rs` | [`OutputFolder`], a set of files with a list of its members |
//!
//! # Rules
//!
//! - A file has no name until it is complete and on the medium. A process that is killed before leaves nothing
//!   (`O_TMPFILE`), or, if the file system does not support files without a name, `.flashwise-` and random letters.
//! - An existing file is replaced only if the caller has recognised it by parsing it, and only while it is still that
//!   very file: the kernel exchanges the two names, and the old file is compared by device and inode.
//! - A file made from a user's file has that file's owner, mode and access list, and never more rights.
//! - All other crates are kept from `std::fs`'s own functions by `disallowed-methods` in `clippy.toml`.
//!
//! Source: `open(2)` on `O_TMPFILE`, `linkat(2)`, `renameat2(2)`, `acl(5)`.

mod access;
mod folder;
mod replace;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use tempfile::NamedTempFile;

use crate::temporary::TemporaryFolder;

pub use access::Access;
pub use folder::OutputFolder;
pub use replace::Replaceable;

/// Prefix of temporary names.
pub const TEMPORARY_PREFIX: &str = ".flashwise-";

/// A new file, written through a handle; it gets its name when it is complete. Dropped before, it leaves nothing.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    /// Where the file system cannot have a file without a name.
    named: Option<tempfile::TempPath>,
    target: PathBuf,
    access: Access,
}

impl OutputFile {
    /// A new file that will become `target`, which is not touched yet.
    ///
    /// # Errors
    /// When no file can be created in the directory of `target`.
    pub fn create(target: &Path, access: Access) -> io::Result<Self> {
        let directory = directory_of(target);
        let (file, named) = match nameless(directory, access.initial_mode()) {
            Ok(file) => (file, None),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let (file, named) = temporary(directory, access.initial_mode())?.into_parts();
                (file, Some(named))
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { file, named, target: target.to_owned(), access })
    }

    /// The file, to be written to.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the file its name, if that is free.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the name exists; otherwise the system's error.
    pub fn publish(self) -> io::Result<Published> {
        self.complete()?;
        match self.named {
            None => link(&self.file, &self.target)?,
            Some(named) => named.persist_noclobber(&self.target).map_err(|error| error.error)?,
        }
        Published::of(&self.file, &self.target)
    }

    /// Replaces a file that was recognised as ours, or takes its name if it was deleted.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the name now belongs to another file; otherwise the system's error. The name
    /// then keeps its earlier meaning.
    pub fn replace(self, old: &Replaceable) -> io::Result<Published> {
        self.exchange(old).map(|(published, _)| published)
    }

    /// The same; returns the old file, which is deleted when it is dropped.
    fn exchange(self, old: &Replaceable) -> io::Result<(Published, Option<tempfile::TempPath>)> {
        self.complete()?;
        let named = match self.named {
            Some(named) => named,
            None => {
                let made = builder().make_in(directory_of(&self.target), |path| link(&self.file, path))?;
                made.into_temp_path()
            }
        };
        let old = old.exchange_with(named, &self.target)?;
        let published = Published::named(&self.file, &self.target)?;
        match sync_directory_of(&self.target) {
            Ok(()) => Ok((published, old)),
            Err(error) => {
                let _ = published.undo(old);
                Err(error)
            }
        }
    }

    /// Everything on the medium, with the access that the finished file has.
    fn complete(&self) -> io::Result<()> {
        self.access.apply(&self.file)?;
        self.file.sync_all()
    }
}

/// A new file for a program that writes by name and puts files of its own beside it, as SQLite does: it is written in
/// a directory of its own, which only its owner can enter.
#[derive(Debug)]
pub struct OutputPath {
    directory: TemporaryFolder,
    target: PathBuf,
    access: Access,
}

impl OutputPath {
    /// A temporary directory for a file that will become `target`. It is empty.
    ///
    /// # Errors
    /// When no directory can be created beside `target`.
    pub fn create(target: &Path, access: Access) -> io::Result<Self> {
        let directory = TemporaryFolder::create_in(directory_of(target), TEMPORARY_PREFIX)?;
        Ok(Self { directory, target: target.to_owned(), access })
    }

    /// Where the file is to be written.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("new")
    }

    /// The directory, which is deleted afterwards.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Gives the file its name, if that is free.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the name exists; otherwise the system's error.
    pub fn publish(self) -> io::Result<Published> {
        let written = self.path();
        let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(&written)?;
        self.access.apply(&file)?;
        file.sync_all()?;
        tempfile::TempPath::try_from_path(written)?.persist_noclobber(&self.target).map_err(|error| error.error)?;
        Published::of(&file, &self.target)
    }
}

/// A file that has its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Published {
    /// Syncs the directory of a file that has just got its name; on an error the name is removed again.
    fn of(file: &File, path: &Path) -> io::Result<Self> {
        let published = Self::named(file, path)?;
        match sync_directory_of(path) {
            Ok(()) => Ok(published),
            Err(error) => {
                let _ = published.remove();
                Err(error)
            }
        }
    }

    fn named(file: &File, path: &Path) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { path: path.to_owned(), device: metadata.dev(), inode: metadata.ino() })
    }

    /// A file that was just made under a name.
    ///
    /// # Errors
    /// When nothing has the name.
    pub fn found(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self { path: path.to_owned(), device: metadata.dev(), inode: metadata.ino() })
    }

    /// The file as one that a later one may replace.
    pub fn replaceable(&self) -> Replaceable {
        Replaceable::new(self.device, self.inode)
    }

    /// Takes the file away again, where the name still means it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn remove(&self) -> io::Result<()> {
        match fs::symlink_metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (self.device, self.inode) => remove_file(&self.path),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Gives several files their names, all of them or none: where one cannot have it, the others are as they were before.
///
/// # Errors
/// The first failure, with the path of the file.
pub fn publish_all(files: Vec<(OutputFile, Option<Replaceable>)>) -> Result<(), (PathBuf, io::Error)> {
    let mut done: Vec<(Published, Option<tempfile::TempPath>)> = Vec::new();
    for (file, old) in files {
        let target = file.target.clone();
        let placed = match old {
            Some(old) => file.exchange(&old),
            None => file.publish().map(|published| (published, None)),
        };
        match placed {
            Ok(placed) => done.push(placed),
            Err(error) => {
                for (published, old) in done.into_iter().rev() {
                    // Where that fails too, the new file stays: it is whole.
                    let _ = published.undo(old);
                }
                return Err((target, error));
            }
        }
    }
    Ok(())
}

/// Writes a new file as a whole.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if the name exists; otherwise the system's error.
pub fn write_new(path: &Path, content: &[u8]) -> io::Result<Published> {
    let mut new = OutputFile::create(path, Access::Usual)?;
    io::Write::write_all(new.file(), content)?;
    new.publish()
}

/// Creates a new file that grows under its own name, such as a capture, which is kept if the program is interrupted.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if the name exists; otherwise the system's error.
#[allow(clippy::disallowed_methods, reason = "what other crates call instead")]
pub fn create_growing(path: &Path) -> io::Result<File> {
    let file = File::create_new(path)?;
    Published::of(&file, path)?;
    Ok(file)
}

/// Creates a directory and its missing parents; returns the created ones, outermost first.
///
/// # Errors
/// When one of them cannot be created, or is not a directory.
#[allow(clippy::disallowed_methods, reason = "what other crates call instead")]
pub fn create_directories(path: &Path) -> io::Result<Vec<PathBuf>> {
    let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let mut wanted: Vec<PathBuf> = path.ancestors().take_while(missing).map(Path::to_owned).collect();
    wanted.reverse();
    let mut made: Vec<PathBuf> = Vec::new();
    for directory in wanted {
        if let Err(error) = fs::create_dir(&directory) {
            remove_directories(&made);
            return Err(error);
        }
        made.push(directory);
    }
    if !path.as_os_str().is_empty() && !path.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(made)
}

/// Removes directories that [`create_directories`] created; one that is no longer empty is kept.
#[allow(clippy::disallowed_methods, reason = "an empty directory that was made here")]
pub fn remove_directories(made: &[PathBuf]) {
    made.iter().rev().for_each(|path| _ = fs::remove_dir(path));
}

/// Brings the names in the directory of a file to the medium.
///
/// # Errors
/// When the directory cannot be opened or synced; one that cannot be synced by its kind, or that this user may write to
/// and not read, is left to the kernel.
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = match File::open(directory_of(path)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        opened => opened?,
    };
    match directory.sync_all() {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        done => done,
    }
}

impl Published {
    /// Takes the file away again, and gives its name back to the one that had it before, if any.
    fn undo(&self, old: Option<tempfile::TempPath>) -> io::Result<()> {
        match old {
            Some(old) => self.give_back(old),
            None => self.remove(),
        }
    }

    /// Gives the name back to the file that had it before.
    #[allow(clippy::disallowed_methods, reason = "over a file that was made here and is compared by device and inode")]
    fn give_back(&self, old: tempfile::TempPath) -> io::Result<()> {
        let found = fs::symlink_metadata(&self.path)?;
        if (found.dev(), found.ino()) != (self.device, self.inode) {
            return Ok(());
        }
        old.persist(&self.path).map_err(|error| error.error)
    }
}

#[allow(clippy::disallowed_methods, reason = "a file that was made here and compared by device and inode")]
fn remove_file(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

/// The directory that a file is in.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY_PREFIX);
    builder
}

/// A file with a name of its own.
fn temporary(directory: &Path, mode: u32) -> io::Result<NamedTempFile> {
    builder().permissions(fs::Permissions::from_mode(mode)).tempfile_in(directory)
}

/// A file without a name in `directory`, which can get one later.
fn nameless(directory: &Path, mode: u32) -> Result<File, Errno> {
    // It gets its name through /proc; without that, it would never get one.
    if !Path::new("/proc/self/fd").is_dir() {
        return Err(Errno::OPNOTSUPP);
    }
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(directory, flags, Mode::from_raw_mode(mode)).map(File::from)
}

/// Gives a file without a name one that nothing has.
#[allow(clippy::disallowed_methods, reason = "what the helpers above are made of")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let from = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(CWD, from, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(test)]
mod tests;
