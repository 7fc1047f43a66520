//! The log of batches of a database in a directory: a file beside it.
//!
//! Two bytes of it are locked, for an open file and not for a process, so that connections of one process count as well
//! (`F_OFD_SETLK`, fcntl(2)): byte 0 shared by all who have the database open; byte 1 by the one who is coming or
//! going. They lie behind the end of any log. The last one removes the file, so that a database that is closed is one
//! file.

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, IoSlice};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use libsqlite3_sys as sqlite;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use crate::batch::{BatchPlace, Marks, SUFFIX};
use crate::error::{Failure, display, with_suffix};
use crate::ffi::MarksPage;

/// The log grows by as much as it has, from the first to the second of these, so that most commits change nothing of
/// the file but its bytes.
const STEPS: std::ops::RangeInclusive<u64> = 64 << 10..=1 << 20;
/// Where the bytes that are locked begin; SQLite's own lie in the database at 1 GiB.
const LOCKS_AT: i64 = 1 << 40;

#[derive(Clone, Copy)]
enum Lock {
    /// Held by all who have the database open.
    Member = 0,
    /// Held by the one who is coming or going.
    Turn = 1,
}

/// A log in a directory.
pub(crate) struct BatchFile {
    database: PathBuf,
    path: PathBuf,
    shown: String,
    file: Option<File>,
    /// The file's first bytes, where it can be mapped.
    shared: Option<MarksPage>,
    /// Bytes that are known to be there.
    room: u64,
    /// Whether the file's name is durable, as far as this connection is concerned.
    is_published: bool,
}

impl BatchFile {
    pub(crate) fn new(database: &Path) -> Self {
        let path = with_suffix(database, SUFFIX);
        let shown = display(&path);
        Self { database: database.to_owned(), path, shown, file: None, shared: None, room: 0, is_published: false }
    }

    fn failed(&self, code: c_int, what: &str, error: impl Into<std::io::Error>) -> Failure {
        let error = error.into();
        let code = if error.kind() == ErrorKind::StorageFull { sqlite::SQLITE_FULL } else { code };
        Failure::new(code, format!("{}: {what}: {error}", self.shown))
    }

    fn file(&self) -> Result<&File, Failure> {
        self.file.as_ref().ok_or_else(|| Failure::new(sqlite::SQLITE_IOERR, format!("{}: not open", self.shown)))
    }

    /// Opens the file, or makes it as accessible as the database is.
    fn open(&self) -> Result<File, Failure> {
        let failed = |error| self.failed(sqlite::SQLITE_CANTOPEN, "opening it", error);
        let database = std::fs::metadata(&self.database).map_err(failed)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let made = options.clone().create_new(true).mode(database.permissions().mode() & 0o777).open(&self.path);
        match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => options.open(&self.path).map_err(failed),
            Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
                Err(self.failed(sqlite::SQLITE_READONLY_DIRECTORY, "it cannot be made", error))
            }
            Err(error) => Err(failed(error)),
            Ok(file) => {
                // As SQLite does for its journals, where it may.
                let _ = fchown(&file, Some(database.uid()), Some(database.gid()));
                Ok(file)
            }
        }
    }

    /// Takes a lock of the open file; `false` if it is another's, and this one does not wait.
    fn lock(&self, file: &File, lock: Lock, kind: c_int, waits: bool) -> Result<bool, Failure> {
        let range = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: LOCKS_AT + lock as i64,
            l_len: 1,
            l_pid: 0,
        };
        loop {
            let how = if waits { FcntlArg::F_OFD_SETLKW(&range) } else { FcntlArg::F_OFD_SETLK(&range) };
            match fcntl(file, how) {
                Ok(_) => return Ok(true),
                Err(nix::Error::EINTR) => {}
                Err(nix::Error::EAGAIN | nix::Error::EACCES) if !waits => return Ok(false),
                Err(error) => return Err(self.failed(sqlite::SQLITE_IOERR_LOCK, "locking it", error)),
            }
        }
    }

    /// Takes the turn of the one who is coming or going; `false` if the file was removed meanwhile.
    fn take_turn(&self, file: &File) -> Result<bool, Failure> {
        self.lock(file, Lock::Turn, libc::F_WRLCK, true)?;
        let there = file.metadata().map_err(|error| self.failed(sqlite::SQLITE_IOERR_FSTAT, "looking at it", error))?;
        Ok(there.nlink() > 0)
    }

    /// Makes the file's name durable.
    fn publish(&mut self) -> Result<(), Failure> {
        if self.is_published {
            return Ok(());
        }
        let directory = self.path.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| self.failed(sqlite::SQLITE_IOERR_DIR_FSYNC, "syncing its directory", error))?;
        self.is_published = true;
        Ok(())
    }

    /// From here on the marks are looked at in memory, where the file can be mapped.
    fn share(&mut self) {
        self.shared = self.file.as_ref().and_then(|file| MarksPage::map(file).ok());
    }

    /// Whether the name still belongs to the open file.
    fn has_its_name(&self) -> bool {
        let named = std::fs::metadata(&self.path);
        let open = self.file.as_ref().map(File::metadata);
        matches!((named, open), (Ok(named), Some(Ok(open))) if (named.dev(), named.ino()) == (open.dev(), open.ino()))
    }
}

impl BatchPlace for BatchFile {
    fn join(&mut self) -> Result<bool, Failure> {
        let file = loop {
            let file = self.open()?;
            if self.take_turn(&file)? {
                break file;
            }
        };
        let is_first = self.lock(&file, Lock::Member, libc::F_WRLCK, false)?;
        if !is_first {
            self.lock(&file, Lock::Member, libc::F_RDLCK, true)?;
            self.lock(&file, Lock::Turn, libc::F_UNLCK, false)?;
        }
        (self.file, self.shared, self.room) = (Some(file), None, 0);
        if !is_first {
            self.share();
        }
        Ok(is_first)
    }

    fn settled(&mut self, marks: Marks) -> Result<(), Failure> {
        self.set_marks(marks)?;
        self.share();
        let file = self.file()?;
        self.lock(file, Lock::Member, libc::F_RDLCK, false)?;
        self.lock(file, Lock::Turn, libc::F_UNLCK, false)?;
        Ok(())
    }

    fn leave(&mut self) -> Result<bool, Failure> {
        let file = self.file()?;
        self.take_turn(file)?;
        self.lock(file, Lock::Member, libc::F_WRLCK, false)
    }

    fn left(&mut self, removes: bool) {
        if removes && self.has_its_name() {
            // What is left behind is a log whose batches are in the database: playing them back changes nothing.
            let _ = std::fs::remove_file(&self.path);
        }
        // With the file go its locks.
        (self.file, self.shared) = (None, None);
    }

    fn marks(&mut self) -> Result<Marks, Failure> {
        let mut bytes = [0; Marks::BYTES];
        match &self.shared {
            Some(shared) => bytes.copy_from_slice(shared.load().map(u64::to_ne_bytes).as_flattened()),
            None => {
                let read = self.file()?.read_exact_at(&mut bytes, 0);
                read.map_err(|error| self.failed(sqlite::SQLITE_IOERR_READ, "reading its marks", error))?;
            }
        }
        let damaged = || Failure::new(sqlite::SQLITE_IOERR, format!("{}: its marks are damaged", self.shown));
        Marks::decode(&bytes).ok_or_else(damaged)
    }

    fn set_marks(&mut self, marks: Marks) -> Result<(), Failure> {
        let written = self.file()?.write_all_at(&marks.encode(), 0);
        written.map_err(|error| self.failed(sqlite::SQLITE_IOERR_WRITE, "writing its marks", error))
    }

    fn size(&mut self) -> Result<u64, Failure> {
        let metadata = self.file()?.metadata();
        let metadata = metadata.map_err(|error| self.failed(sqlite::SQLITE_IOERR_FSTAT, "its size", error))?;
        Ok(metadata.len())
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
        let mut done = 0;
        while done < into.len() {
            match self.file()?.read_at(&mut into[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(sqlite::SQLITE_IOERR_READ, "reading", error)),
            }
        }
        Ok(done)
    }

    fn reserve(&mut self, end: u64) -> Result<(), Failure> {
        if end > self.room {
            self.room = self.size()?;
        }
        if end > self.room {
            let step = self.room.clamp(*STEPS.start(), *STEPS.end());
            let grown = end.max(self.room + step).next_multiple_of(*STEPS.start());
            let zeros = vec![0; (grown - self.room) as usize];
            let file = self.file()?;
            let written = file.write_all_at(&zeros, self.room).and_then(|()| file.sync_all());
            written.map_err(|error| self.failed(sqlite::SQLITE_IOERR_WRITE, "making room", error))?;
            self.room = grown;
        }
        self.publish()
    }

    fn write(&mut self, offset: u64, data: &[u8], durable: bool) -> Result<(), Failure> {
        let failed = |error| self.failed(sqlite::SQLITE_IOERR_WRITE, "writing", error);
        let file = self.file()?;
        if !durable {
            return file.write_all_at(data, offset).map_err(failed);
        }
        write_durably(file, offset, data).map_err(failed)
    }
}

/// Writes and syncs that alone: the marks need no medium.
fn write_durably(file: &File, offset: u64, data: &[u8]) -> std::io::Result<()> {
    let mut done = 0;
    while done < data.len() {
        match pwritev2(file, &[IoSlice::new(&data[done..])], offset + done as u64, ReadWriteFlags::DSYNC) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                file.write_all_at(&data[done..], offset + done as u64)?;
                return file.sync_data();
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
