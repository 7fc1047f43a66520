//! The private directory of a mounted drive, and leftovers of killed ones.
//!
//! ```text
//!   /run/flashwise/lock            held while a directory is created, or a dead one is removed
//!   /run/flashwise/4711.0/lock     held as long as the drive lives: the kernel releases it with the process
//!                        /sockets  the drive's Unix sockets, one path per line
//!                        /loop     its loop device: name, and the number that identifies it
//!                        /fuse     where its file is mounted, `fuse/disk`
//! ```
//!
//! Only its lock shows whether a drive is dead. Its file system is never accessed: a drive that is merely stopped would
//! not respond. A dead one is removed from the top: the mounts of its loop device, the device, the file, sockets.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use flashwise_block::LockedFile;

use super::loops::LoopDevice;
use super::unmount_all;
use crate::socket::remove_stale;

/// Where the directories are.
pub(super) const BASE: &str = "/run/flashwise";

/// How long it is waited for others that sweep: some time for each drive that was killed.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
const LOCK_POLL: Duration = Duration::from_millis(10);

/// A drive's directory; removed when dropped.
#[derive(Debug)]
pub(crate) struct RuntimeDirectory {
    directory: PathBuf,
    /// Held.
    _lock: LockedFile,
}

impl RuntimeDirectory {
    /// Creates a directory, and removes leftovers of killed drives.
    ///
    /// # Errors
    /// When nothing can be created there.
    #[allow(clippy::disallowed_methods, reason = "files of a directory that one process of flashwise has for itself")]
    pub(super) fn create(base: &Path, losetup: &Path) -> io::Result<Self> {
        static DIRECTORIES: AtomicU32 = AtomicU32::new(0);
        DirBuilder::new().mode(0o700).recursive(true).create(base)?;
        let _all = lock_within(&base.join("lock"), LOCK_PATIENCE)?;
        sweep(base, losetup);
        let name = format!("{}.{}", std::process::id(), DIRECTORIES.fetch_add(1, Ordering::Relaxed));
        let directory = base.join(name);
        DirBuilder::new().mode(0o700).create(&directory)?;
        let lock = LockedFile::new(open(&directory.join("lock"))?)?;
        let home = Self { directory, _lock: lock };
        DirBuilder::new().mode(0o700).create(home.fuse())?;
        Ok(home)
    }

    /// Where the drive's file is mounted.
    pub(crate) fn fuse(&self) -> PathBuf {
        self.directory.join("fuse")
    }

    /// Notes the loop device, which is detached where the drive is killed.
    ///
    /// # Errors
    /// Where it cannot be noted.
    #[allow(clippy::disallowed_methods, reason = "files of a directory that one process of flashwise has for itself")]
    pub(super) fn note_device(&self, device: &LoopDevice) -> io::Result<()> {
        std::fs::write(self.directory.join("loop"), device.note())
    }

    /// Records a socket, which is removed if the drive is killed.
    #[allow(clippy::disallowed_methods, reason = "files of a directory that one process of flashwise has for itself")]
    pub(crate) fn note(&self, socket: &Path) {
        let path = std::path::absolute(socket).unwrap_or_else(|_| socket.to_owned());
        let line = [path.as_os_str().as_bytes(), b"\n"].concat();
        let file = OpenOptions::new().create(true).append(true).open(self.directory.join("sockets"));
        // If it cannot be recorded, it stays, and the next drive there replaces it.
        let _ = file.and_then(|mut file| file.write_all(&line));
    }
}

impl Drop for RuntimeDirectory {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

#[allow(clippy::disallowed_methods, reason = "files of a directory that one process of flashwise has for itself")]
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}

/// Waits for a lock that others hold while they sweep: a process that is stopped may hold it for ever.
fn lock_within(path: &Path, patience: Duration) -> io::Result<LockedFile> {
    let until = Instant::now() + patience;
    loop {
        match LockedFile::new(open(path)?) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if Instant::now() < until => std::thread::sleep(LOCK_POLL),
            Err(_) => {
                let what = "another flashwise has been starting an attached drive for seconds; end that process";
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
            locked => return locked,
        }
    }
}

/// Removes leftovers of killed drives.
fn sweep(base: &Path, losetup: &Path) {
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
        let directory = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_dead(&directory) {
            clear(&directory, losetup);
        }
    }
}

/// Whether its lock is free.
fn is_dead(directory: &Path) -> bool {
    match File::open(directory.join("lock")) {
        Ok(lock) => LockedFile::new(lock).is_ok(),
        // It was killed before it had one.
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn clear(directory: &Path, losetup: &Path) {
    let fuse = directory.join("fuse");
    let note = std::fs::read_to_string(directory.join("loop")).unwrap_or_default();
    for device in LoopDevice::of_dead(losetup, &fuse.join(crate::DISK), &note) {
        let held = device.open_if_same();
        if let Some(numbers) = device.numbers().filter(|_| held.is_some()) {
            unmount_all(|mount| mount.device == numbers);
        }
        device.detach();
    }
    unmount_all(|mount| mount.point == fuse);
    let sockets = std::fs::read(directory.join("sockets")).unwrap_or_default();
    for path in sockets.split(|&byte| byte == b'\n').filter(|path| !path.is_empty()) {
        // A path with a new listener, or that is not a socket, is kept.
        let _ = remove_stale(&PathBuf::from(std::ffi::OsString::from_vec(path.to_vec())));
    }
    remove(directory);
}

/// Removes a directory without mounts; never the content of a mount.
#[allow(clippy::disallowed_methods, reason = "files of a directory that one process of flashwise has for itself")]
fn remove(directory: &Path) {
    let _ = std::fs::remove_dir(directory.join("fuse"));
    let _ = std::fs::remove_file(directory.join("sockets"));
    let _ = std::fs::remove_file(directory.join("loop"));
    let _ = std::fs::remove_file(directory.join("lock"));
    let _ = std::fs::remove_dir(directory);
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn somebody_who_stands_still_while_he_sweeps_is_not_waited_for_without_end() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("lock");
        let held = lock_within(&path, Duration::ZERO).unwrap();
        let error = lock_within(&path, Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        drop(held);
        lock_within(&path, Duration::ZERO).unwrap();
    }

    #[test]
    fn only_what_a_killed_drive_has_left_is_taken_away() {
        let base = tempfile::tempdir().unwrap();
        let losetup = Path::new("/nonexistent/losetup");
        let alive = RuntimeDirectory::create(base.path(), losetup).unwrap();
        // Leftovers of a killed drive: no lock, or a free one.
        let dead = base.path().join("1.0");
        std::fs::create_dir_all(dead.join("fuse")).unwrap();
        std::fs::create_dir(base.path().join("2.0")).unwrap();
        std::fs::write(dead.join("lock"), "").unwrap();
        let at = |name: &str| base.path().join(name);
        drop(UnixListener::bind(at("dead.sock")).unwrap());
        // A program that another test starts has a copy of the descriptor until it executes.
        while UnixStream::connect(at("dead.sock")).is_ok() {
            std::thread::sleep(LOCK_POLL);
        }
        let _listening = UnixListener::bind(at("alive.sock")).unwrap();
        std::fs::write(at("file"), "mine").unwrap();
        let sockets = ["dead.sock", "alive.sock", "file", "none"].map(|name| at(name).display().to_string());
        std::fs::write(dead.join("sockets"), sockets.join("\n")).unwrap();

        let second = RuntimeDirectory::create(base.path(), losetup).unwrap();
        assert!(!dead.exists() && !at("2.0").exists() && !at("dead.sock").exists());
        assert!(at("alive.sock").exists() && at("file").exists());
        assert!(alive.fuse().is_dir() && second.fuse().is_dir());
        second.note(&at("s"));
        drop((alive, second));
        let left: Vec<_> = std::fs::read_dir(base.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 3, "the lock, alive.sock and file: {left:?}");
    }
}
