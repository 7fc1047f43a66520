//! The syncs of a log in a directory: its data alone, in space that was written before.
//!
//! A commit costs one flush of the drive where its sync changes nothing of the file but bytes. `fsync` also makes the
//! time of the last change durable, and a longer log its size and its extents: either of them is a commit of the file
//! system's own journal, with a flush of its own. Therefore
//!
//! - a log is synced by `fdatasync`. SQLite's VFS does that only if it was built with `HAVE_FDATASYNC`; the builds in
//!   rusqlite, better-sqlite3, go-sqlite3 and sqlite-jdbc are not;
//! - a write-ahead log that grows is extended ahead of its frames (`log_extension.rs`).
//!
//! **The descriptor** is a second one, for reading only. SQLite's VFS locks neither logs nor journals, so that closing
//! it drops no lock; a database has no such descriptor. It is opened right behind SQLite's own, so that both report the
//! same failures to write back: one that is opened later misses what another process' sync has reported already, and a
//! checkpoint would rely on a damaged log. SQLite does not show its own descriptor, so nothing can check that both have
//! the same file. It is assumed that the name is not given to another one in between, as SQLite assumes of the names of
//! open logs and journals always (<https://sqlite.org/howtocorrupt.html>, section 2.4).
//!
//! The first sync of a handle stays with SQLite's VFS, which syncs the directory of a new file with it.
//!
//! **No force unit access.** Linux sends FUA writes instead of a flush only for direct I/O in whole blocks. A log is no
//! multiple of a block, and its readers and checkpoints find it in the page cache, which direct I/O bypasses.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use flashwise_block::is_on_ext_or_xfs;
use rustix::fs::fstatvfs;

use crate::companion::open_regular;
use crate::log_extension::{LogExtension, LogFile, size_limit};
use crate::log_layout::LogLayout;
use crate::options::LogSyncs;

/// The first descriptor that is not standard input, output or error, which a program may close or replace at any time.
const FIRST_OWN: RawFd = 3;

/// What is synced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Synced {
    /// A write-ahead log in a layout.
    Log(LogSyncs, LogLayout),
    /// A rollback journal.
    Journal,
}

/// The syncs of one open log or journal.
pub(crate) struct LogSync {
    /// The second descriptor.
    file: File,
    /// Of a log that is extended.
    extension: Option<LogExtension>,
    /// Whether SQLite's VFS has synced the file and its directory.
    is_published: bool,
}

impl LogSync {
    /// Of a file that SQLite's VFS has just opened under that name; `None` if it is to do everything, because the file
    /// cannot be opened once more.
    pub(crate) fn open(synced: Synced, path: &Path) -> Option<Self> {
        let file = above_standard(open_regular(path, false).ok()?).ok()?;
        let layout = match synced {
            Synced::Log(LogSyncs::Extend, layout) => Some(layout),
            // A file system that writes each block to a new place (btrfs, ZFS) gains nothing, and a network pays for
            // the zeros.
            Synced::Log(_, layout) => is_on_ext_or_xfs(&file).unwrap_or(false).then_some(layout),
            Synced::Journal => None,
        };
        Some(Self { file, extension: layout.map(LogExtension::new), is_published: false })
    }

    /// Of a log that is extended: when and how far, and the second descriptor.
    pub(crate) fn extension(&mut self) -> Option<(&mut LogExtension, &File)> {
        self.extension.as_mut().map(|extension| (extension, &self.file))
    }

    /// The file has another size.
    pub(crate) fn truncated(&mut self) {
        if let Some(extension) = &mut self.extension {
            extension.truncated();
        }
    }

    /// Syncs the file; `None` if SQLite's VFS is to do it.
    pub(crate) fn sync(&mut self) -> Option<io::Result<()>> {
        if let Some(extension) = &mut self.extension {
            extension.synced();
        }
        self.is_published.then(|| sync_data(&self.file))
    }

    /// SQLite's VFS has synced the file.
    pub(crate) fn published(&mut self) {
        self.is_published = true;
    }
}

/// A log in a directory: what it is by its second descriptor, while SQLite's own file writes it.
pub(crate) struct DirectoryLog<'a> {
    pub file: &'a File,
    /// Writes zeros, or cuts the file; whether that could be done.
    pub write: &'a mut dyn FnMut(LogWrite<'_>) -> bool,
}

/// A change of a log by the file that SQLite has open.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LogWrite<'a> {
    Zeros { at: u64, bytes: &'a [u8] },
    Truncate { size: u64 },
}

impl LogFile for DirectoryLog<'_> {
    fn size(&mut self) -> Option<u64> {
        self.file.metadata().ok().map(|found| found.len())
    }

    fn free_space(&mut self) -> u64 {
        fstatvfs(self.file).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn longest(&self) -> u64 {
        size_limit()
    }

    fn write(&mut self, at: u64, zeros: &[u8]) -> bool {
        (self.write)(LogWrite::Zeros { at, bytes: zeros })
    }

    fn truncate(&mut self, size: u64) {
        // A log that stays longer is as good.
        let _ = (self.write)(LogWrite::Truncate { size });
    }
}

/// Makes the bytes of a file durable, and what it takes to read them. The system call itself: a library that is loaded
/// before libc may turn its `fdatasync` into `fsync`.
fn sync_data(file: &File) -> io::Result<()> {
    Ok(rustix::io::retry_on_intr(|| rustix::fs::fdatasync(file))?)
}

/// The same file under a number that no program expects to be something else, as SQLite does it.
fn above_standard(file: File) -> io::Result<File> {
    match file.as_raw_fd() >= FIRST_OWN {
        true => Ok(file),
        false => Ok(rustix::io::fcntl_dupfd_cloexec(&file, FIRST_OWN)?.into()),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::os::unix::fs::{FileExt, MetadataExt, symlink};
    use std::path::PathBuf;

    const EXTENDED: Synced = Synced::Log(LogSyncs::Extend, LogLayout::Plain);

    /// A log of that length that was synced once, and is about to be written.
    fn log(length: usize) -> (tempfile::TempDir, PathBuf, LogSync) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db-wal");
        std::fs::write(&path, vec![1; length]).unwrap();
        let mut log = LogSync::open(EXTENDED, &path).unwrap();
        assert!(log.sync().is_none(), "the first sync makes the name durable");
        log.published();
        before_write(&mut log);
        (dir, path, log)
    }

    fn append(path: &Path, length: usize) -> u64 {
        use std::io::Write;
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(&vec![2; length]).unwrap();
        file.metadata().unwrap().len()
    }

    fn before_write(log: &mut LogSync) {
        let Some((extension, file)) = log.extension() else { return };
        extension.before_write(&mut DirectoryLog { file, write: &mut |_| false });
    }

    /// SQLite has written up to `end`; the length of the file afterwards. With `space`, zeros can be written.
    fn after_write(log: &mut LogSync, path: &Path, end: u64, space: bool) -> u64 {
        let writer = OpenOptions::new().write(true).open(path).unwrap();
        if let Some((extension, file)) = log.extension() {
            let mut write = |write: LogWrite<'_>| match write {
                LogWrite::Zeros { at, bytes } => space && writer.write_all_at(bytes, at).is_ok(),
                LogWrite::Truncate { size } => writer.set_len(size).is_ok(),
            };
            extension.after_write(end, &mut DirectoryLog { file, write: &mut write });
        }
        writer.metadata().unwrap().len()
    }

    #[test]
    fn zeros_follow_the_write_that_extends_a_log_once_a_sync() {
        let (_dir, path, mut log) = log(50_000);
        assert_eq!(after_write(&mut log, &path, 50_000, true), 50_000, "it overwrites");
        let end = append(&path, 4096);
        assert_eq!(after_write(&mut log, &path, end, true), 128 << 10);
        assert!(std::fs::read(&path).unwrap()[54_096..].iter().all(|&byte| byte == 0));
        let end = append(&path, 24);
        assert_eq!(after_write(&mut log, &path, end, true), end, "once");
        log.sync().unwrap().unwrap();
        before_write(&mut log);
        let end = append(&path, 24);
        assert!(after_write(&mut log, &path, end, true) > end);
    }

    #[test]
    fn bytes_of_another_writer_behind_the_write_are_left_alone() {
        let (_dir, path, mut log) = log(50_000);
        let end = append(&path, 4096);
        let of_other = append(&path, 4096);
        assert_eq!(after_write(&mut log, &path, end, true), of_other);
    }

    #[test]
    fn a_log_that_another_process_cut_short_is_extended_from_its_new_end() {
        let (_dir, path, mut log) = log(500_000);
        log.sync().unwrap().unwrap();
        std::fs::write(&path, vec![1; 20_000]).unwrap();
        before_write(&mut log);
        let end = append(&path, 4096);
        assert_eq!(after_write(&mut log, &path, end, true), 128 << 10);
    }

    #[test]
    fn short_logs_and_those_that_could_not_be_extended_stay_as_they_are() {
        let (_dir, path, mut short) = log(8000);
        let end = append(&path, 4096);
        assert_eq!(after_write(&mut short, &path, end, true), end);
        let (_dir, path, mut full) = log(50_000);
        let end = append(&path, 4096);
        assert_eq!(after_write(&mut full, &path, end, false), end);
        full.sync().unwrap().unwrap();
        before_write(&mut full);
        let end = append(&path, 4096);
        assert_eq!(after_write(&mut full, &path, end, true), end, "not tried again");
    }

    /// The descriptor is as old as SQLite's own: a failure to write back that another process' sync has reported since
    /// is reported by this one too, and another file under the name is not synced in the log's place.
    #[test]
    fn a_handle_that_has_not_written_has_its_descriptor_from_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db-wal");
        std::fs::write(&path, b"frames").unwrap();
        let opened = std::fs::metadata(&path).unwrap().ino();
        let mut log = LogSync::open(EXTENDED, &path).unwrap();
        std::fs::rename(&path, dir.path().join("moved")).unwrap();
        std::fs::write(&path, b"another file").unwrap();
        assert!(log.sync().is_none());
        log.published();
        log.sync().unwrap().unwrap();
        assert_eq!(log.file.metadata().unwrap().ino(), opened);
        std::fs::remove_file(&path).unwrap();
        log.sync().unwrap().unwrap();
    }

    #[test]
    fn a_journal_is_never_extended() {
        let (_dir, path, _) = log(50_000);
        let mut journal = LogSync::open(Synced::Journal, &path).unwrap();
        assert!(journal.sync().is_none());
        journal.published();
        before_write(&mut journal);
        let end = append(&path, 4096);
        assert_eq!(after_write(&mut journal, &path, end, true), end);
        journal.sync().unwrap().unwrap();
    }

    #[test]
    fn what_is_no_regular_file_is_synced_by_sqlites_vfs() {
        let (dir, path, _) = log(50_000);
        let [link, pipe, nothing] = ["link", "pipe", "nothing"].map(|name| dir.path().join(name));
        symlink(&path, &link).unwrap();
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        for path in [link, pipe, nothing] {
            assert!(LogSync::open(EXTENDED, &path).is_none(), "{}", path.display());
        }
    }
}
