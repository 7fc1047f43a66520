//! Temporary folders: deleted when the work ends or is interrupted, and after a kill by the next run.
//!
//! ```text
//!   create ─▶ delete leftovers of dead processes here ─▶ mkdir 0700 ─▶ lock ─▶ … work … ─▶ drop: deleted
//!                                                                    │
//!                                              killed: the kernel releases the lock, the next run may delete it
//! ```
//!
//! The name contains the process's number, and the folder a file that is locked (`flock`) for as long as the process
//! lives. Only a folder of this user's with such a name, whose process does not exist and whose lock is free, is
//! deleted: another container that shares the folder has other process numbers, but the same locks.
//!
//! Source: `flock(2)`.

#![allow(clippy::disallowed_methods, reason = "folders that this process, or a dead one of its kind, made for itself")]

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::locked::LockedFile;
use crate::process::is_absent;

/// The file whose lock marks a folder as in use.
const LOCK: &str = ".in-use";

/// The folders of this process that are to be removed.
#[derive(Debug)]
struct Living {
    folders: Vec<PathBuf>,
    /// The program ends, and nothing new is made.
    is_closed: bool,
}

static LIVING: Mutex<Living> = Mutex::new(Living { folders: Vec::new(), is_closed: false });

fn living() -> MutexGuard<'static, Living> {
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder of this process's own, which only this user can enter; removed with all that is in it when dropped.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
    _lock: LockedFile,
}

impl TemporaryFolder {
    /// A new folder in `parent`; its name starts with `prefix`, which starts with `flashwise-` or `.flashwise-`.
    ///
    /// Leftovers of dead processes in `parent` with such names are deleted first.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create_in(parent: &Path, prefix: &str) -> io::Result<Self> {
        sweep(parent, prefix);
        loop {
            let random = RandomState::new().build_hasher().finish();
            let path = parent.join(format!("{prefix}{}-{random:016x}", std::process::id()));
            let mut living = living();
            if living.is_closed {
                return Err(ErrorKind::Interrupted.into());
            }
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            living.folders.push(path.clone());
            drop(living);
            match lock(&path.join(LOCK), true) {
                Ok(lock) => return Ok(Self { path, _lock: lock }),
                Err(error) => {
                    remove(&path);
                    // Swept, before it was locked, by a process that cannot see this one.
                    if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Where temporary files go on this machine.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(prefix: &str) -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir(), prefix)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    let _ = fs::remove_dir_all(path);
    living().folders.retain(|living| living != path);
}

/// Removes all folders of this process, for a program that ends without running its destructors; from then on none can
/// be made. Threads that still write into one are given `patience` to fail.
pub fn remove_all(patience: Duration) {
    let until = Instant::now() + patience;
    let folders = {
        let mut living = living();
        living.is_closed = true;
        living.folders.clone()
    };
    for folder in folders {
        while let Err(error) = fs::remove_dir_all(&folder) {
            if error.kind() == ErrorKind::NotFound || Instant::now() >= until {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The locked file; `is_new` makes it.
fn lock(path: &Path, is_new: bool) -> io::Result<LockedFile> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed();
    let mut options = File::options();
    options.read(true).write(true).create_new(is_new).mode(0o600).custom_flags(flags);
    let file = options.open(path)?;
    match is_new {
        // On a file system without locks leftovers are not deleted.
        true => LockedFile::where_possible(file),
        false => LockedFile::new(file),
    }
}

/// Removes the folders in `parent` that processes of this user's left which are dead.
fn sweep(parent: &Path, prefix: &str) {
    let Ok(user) = fs::metadata("/proc/self").map(|metadata| metadata.uid()) else { return };
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let Some(process) = process_of(&entry.file_name(), prefix) else { continue };
        let is_ours = entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user);
        if !is_ours || !is_absent(process) {
            continue;
        }
        let path = entry.path();
        match lock(&path.join(LOCK), false) {
            // Held while it is removed, so that two sweepers do not meet.
            Ok(_lock) => drop(fs::remove_dir_all(&path)),
            // Killed between making the folder and the lock: nothing is in it.
            Err(error) if error.kind() == ErrorKind::NotFound => drop(fs::remove_dir(&path)),
            Err(_) => {}
        }
    }
}

/// The process that a name is of: the prefix, decimal digits, `-`, 16 hexadecimal digits.
fn process_of(name: &OsStr, prefix: &str) -> Option<u32> {
    let (process, random) = name.to_str()?.strip_prefix(prefix)?.split_once('-')?;
    let all = |text: &str, test: fn(&u8) -> bool| !text.is_empty() && text.as_bytes().iter().all(test);
    let is_ours = all(process, u8::is_ascii_digit) && random.len() == 16 && all(random, u8::is_ascii_hexdigit);
    is_ours.then(|| process.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that is dead: its number was given and taken back.
    fn dead_process() -> u32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_is_gone_with_its_owner_and_with_remove_all() {
        let parent = tempfile::tempdir().unwrap();
        let dropped = TemporaryFolder::create_in(parent.path(), "flashwise-").unwrap();
        fs::write(dropped.path().join("x"), "x").unwrap();
        let mode = fs::metadata(dropped.path()).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o700);
        drop(dropped);
        assert!(names(parent.path()).is_empty());
        let forgotten = TemporaryFolder::create_in(parent.path(), "flashwise-").unwrap();
        fs::write(forgotten.path().join("x"), "x").unwrap();
        std::mem::forget(forgotten);
        // Other tests' folders are this process's too, so only this one is taken out.
        let ours = living().folders.iter().find(|path| path.starts_with(parent.path())).cloned().unwrap();
        remove(&ours);
        assert!(names(parent.path()).is_empty());
    }

    #[test]
    fn only_what_a_dead_process_left_is_swept() {
        let parent = tempfile::tempdir().unwrap();
        let dead = dead_process();
        let make = |name: &str, lock: bool| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            if lock {
                fs::write(path.join(LOCK), "").unwrap();
            }
            path
        };
        let random = "0123456789abcdef";
        let left = make(&format!("flashwise-{dead}-{random}"), true);
        fs::write(left.join("fit.db"), "of the dead").unwrap();
        make(&format!("flashwise-{dead}-1123456789abcdef"), false);
        // Kept are folders of a live process, locked ones, ones with content but no lock, ones with another name, and
        // files.
        let alive = format!("flashwise-{}-{random}", std::process::id());
        make(&alive, true);
        let held = format!("flashwise-{dead}-2123456789abcdef");
        let _held = lock(&make(&held, true).join(LOCK), false).unwrap();
        let foreign = format!("flashwise-{dead}-3123456789abcdef");
        fs::write(make(&foreign, false).join("a user's"), "x").unwrap();
        let short = format!("flashwise-{dead}-012345");
        make(&short, true);
        let file = format!("flashwise-{dead}-4123456789abcdef");
        fs::write(parent.path().join(&file), "x").unwrap();
        let made = TemporaryFolder::create_in(parent.path(), "flashwise-").unwrap();
        let own = made.path().file_name().unwrap().to_str().unwrap().to_owned();
        let mut expected = vec![alive, held, foreign, short, file, own];
        expected.sort();
        assert_eq!(names(parent.path()), expected);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error() {
        let made = TemporaryFolder::create_in(Path::new("/no/such/place"), "flashwise-");
        assert_eq!(made.unwrap_err().kind(), ErrorKind::NotFound);
    }
}
