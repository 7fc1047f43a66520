//! The batch log of a database in a directory: a file beside it.
//!
//! Two bytes of it are locked, for an open file and not for a process, so that connections of one process count as well
//! (`F_OFD_SETLK`, fcntl(2)): byte 0, shared, by all connections to the database; byte 1 by the one that is being
//! opened or closed. They are beyond the end of any log. The last connection deletes the file, so that a closed
//! database is one file.
//!
//! **No wait is unbounded.** A connection that opens tries for 10 ms, then returns `SQLITE_BUSY`, so that SQLite
//! retries with its own `busy_timeout`; one that closes leaves the log to the next. No lock outlives its holder in a
//! forked child ([`OwnFile`]).
//!
//! **A read-only connection** (`mode=ro`, a file without write permission) changes nothing: it takes no lock, and
//! checks whether others hold one.
//!
//! **`nolock=1`** takes no lock either: the user guarantees that there is no other connection.
//!
//! The file may have come from anywhere; it is checked before it is opened (`crate::companion`), and a file that does
//! not start like a log is not written to.

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, IoSlice};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use libsqlite3_sys as sqlite;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use crate::batch::{BatchPlace, MAGIC, Marks, Peeked, SUFFIX};
use crate::companion;
use crate::error::{Failure, display, with_suffix};
use crate::ffi::{MarksPage, OwnFile};
use crate::log_extension::size_limit;

/// The log grows by as much as it has, from the first to the second of these, so that most commits change nothing of
/// the file but its bytes.
const STEPS: std::ops::RangeInclusive<u64> = 64 << 10..=1 << 20;
/// The first locked byte; SQLite's own are in the database at 1 GiB.
const LOCKS_AT: i64 = 1 << 40;

/// How often the file may be deleted by another process between two steps of opening it.
const REMOVALS: u32 = 100;
/// How long opening waits for another connection that is being opened or closed: SQLite retries.
const COMING: Duration = Duration::from_millis(10);
/// The same for closing, which is not retried.
const GOING: Duration = Duration::from_millis(100);

#[derive(Clone, Copy)]
enum Lock {
    /// Held by all connections to the database.
    Member = 0,
    /// Held by the connection that is being opened or closed.
    Turn = 1,
}

/// A log in a directory.
pub(crate) struct BatchFile {
    database: PathBuf,
    path: PathBuf,
    shown: String,
    /// Whether there may be other connections, as locks show.
    locks: bool,
    file: Option<OwnFile>,
    /// The file's first bytes, where it can be mapped.
    shared: Option<MarksPage>,
    /// Bytes that are known to be there.
    allocated: u64,
    /// Whether the file's name is durable, as far as this connection is concerned.
    is_published: bool,
}

impl BatchFile {
    /// The log of a database; without `locks` there is no other connection.
    pub(crate) fn new(database: &Path, locks: bool) -> Self {
        let path = with_suffix(database, SUFFIX);
        let (database, shown) = (database.to_owned(), display(&path));
        Self { database, path, shown, locks, file: None, shared: None, allocated: 0, is_published: false }
    }

    fn failed(&self, code: c_int, what: &str, error: impl Into<std::io::Error>) -> Failure {
        let error = error.into();
        let code = if error.kind() == ErrorKind::StorageFull { sqlite::SQLITE_FULL } else { code };
        Failure::new(code, format!("{}: {what}: {error}", self.shown))
    }

    fn busy(&self) -> Failure {
        Failure::new(sqlite::SQLITE_BUSY, format!("{}: another connection is being opened or closed", self.shown))
    }

    fn file(&self) -> Result<&File, Failure> {
        let file = self.file.as_deref();
        file.ok_or_else(|| Failure::new(sqlite::SQLITE_IOERR, format!("{}: not open", self.shown)))
    }

    /// Opens the file, or makes it as accessible as the database is.
    #[allow(clippy::disallowed_methods, reason = "the log of batches is the database's own, and opened as such")]
    fn open(&self) -> Result<File, Failure> {
        let failed = |error| self.failed(sqlite::SQLITE_CANTOPEN, "opening it", error);
        let database = std::fs::metadata(&self.database).map_err(failed)?;
        let mode = database.permissions().mode() & 0o777;
        // It may be deleted and created again in between: both are quick.
        for _ in 0..REMOVALS {
            if let Some(file) = companion::open(&self.path, &self.database, true)? {
                return Ok(file);
            }
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(mode).custom_flags(libc::O_NOFOLLOW);
            match options.open(&self.path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
                    return Err(self.failed(sqlite::SQLITE_READONLY_DIRECTORY, "it cannot be created", error));
                }
                Err(error) => return Err(failed(error)),
                Ok(file) => {
                    let made = file.metadata().map_err(failed)?;
                    // As SQLite does for its journals, where it may.
                    if (made.uid(), made.gid()) != (database.uid(), database.gid()) {
                        let _ = fchown(&file, Some(database.uid()), Some(database.gid()));
                    }
                    // What the umask took.
                    if made.permissions().mode() & 0o777 != mode {
                        file.set_permissions(PermissionsExt::from_mode(mode)).map_err(failed)?;
                    }
                    return Ok(file);
                }
            }
        }
        Err(self.busy())
    }

    /// Takes a lock of the open file; `false` if it is another's.
    fn lock(&self, file: &File, lock: Lock, kind: c_int) -> Result<bool, Failure> {
        let range = range(lock, kind);
        loop {
            match fcntl(file, FcntlArg::F_OFD_SETLK(&range)) {
                Ok(_) => return Ok(true),
                Err(nix::Error::EINTR) => {}
                Err(nix::Error::EAGAIN | nix::Error::EACCES) => return Ok(false),
                Err(error) => return Err(self.failed(sqlite::SQLITE_IOERR_LOCK, "locking it", error)),
            }
        }
    }

    /// Whether another open file has a lock that this one could not take.
    fn is_others(&self, file: &File, lock: Lock) -> Result<bool, Failure> {
        let mut range = range(lock, libc::F_WRLCK);
        let asked = fcntl(file, FcntlArg::F_OFD_GETLK(&mut range));
        asked.map_err(|error| self.failed(sqlite::SQLITE_IOERR_LOCK, "examining its locks", error))?;
        Ok(range.l_type != libc::F_UNLCK as libc::c_short)
    }

    /// Takes the lock for opening or closing; `false` if another connection has it for longer than `wait`.
    fn take_turn(&self, file: &File, wait: Duration) -> Result<bool, Failure> {
        let began = Instant::now();
        while !self.lock(file, Lock::Turn, libc::F_WRLCK)? {
            if began.elapsed() >= wait {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(true)
    }

    /// Opens the file and takes its turn; somebody else may remove it in between.
    fn come(&self, mut open: impl FnMut() -> Result<File, Failure>) -> Result<OwnFile, Failure> {
        for _ in 0..REMOVALS {
            let file = OwnFile::open(&mut open)?;
            if self.locks && !self.take_turn(&file, COMING)? {
                break;
            }
            if !self.is_removed(&file)? {
                return Ok(file);
            }
        }
        Err(self.busy())
    }

    fn is_removed(&self, file: &File) -> Result<bool, Failure> {
        let there = file.metadata().map_err(|error| self.failed(sqlite::SQLITE_IOERR_FSTAT, "examining it", error))?;
        Ok(there.nlink() == 0)
    }

    /// A file that starts otherwise than a log belongs to somebody else. The marks themselves need not survive a power
    /// cut.
    fn check_begin(&self, file: &File) -> Result<(), Failure> {
        let mut first = [0; MAGIC.len()];
        let read = file.read_at(&mut first, 0);
        let read = read.map_err(|error| self.failed(sqlite::SQLITE_IOERR_READ, "reading it", error))?;
        if read == 0 || first == [0; MAGIC.len()] || first == *MAGIC {
            return Ok(());
        }
        let why = format!("{}: not a batch log; move it away if it is not there on purpose", self.shown);
        Err(Failure::new(sqlite::SQLITE_CORRUPT, why))
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

    /// Extends the log by zeros, durably.
    fn extend(&mut self, end: u64) -> std::io::Result<()> {
        let Some(file) = self.file.as_deref() else { return Err(ErrorKind::NotConnected.into()) };
        let zeros = vec![0; end.saturating_sub(self.allocated) as usize];
        file.write_all_at(&zeros, self.allocated)?;
        file.sync_data()?;
        self.allocated = end;
        Ok(())
    }

    /// From here on the marks are read in memory, if the file can be mapped.
    fn share(&mut self) {
        // A mapping keeps its open file, and a forked child keeps the mapping: it is of one without locks.
        let again = self.file.as_ref().and_then(|file| File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok());
        self.shared = again.and_then(|file| MarksPage::map(&file).ok());
    }

    /// Whether the name still belongs to the open file.
    fn has_its_name(&self) -> bool {
        let named = std::fs::symlink_metadata(&self.path);
        let open = self.file.as_ref().map(|file| file.metadata());
        matches!((named, open), (Ok(named), Some(Ok(open))) if (named.dev(), named.ino()) == (open.dev(), open.ino()))
    }
}

impl BatchPlace for BatchFile {
    fn join(&mut self) -> Result<bool, Failure> {
        let file = self.come(|| self.open())?;
        let is_first = !self.locks || self.lock(&file, Lock::Member, libc::F_WRLCK)?;
        if is_first {
            self.check_begin(&file)?;
        } else {
            if !self.lock(&file, Lock::Member, libc::F_RDLCK)? {
                return Err(self.busy());
            }
            self.lock(&file, Lock::Turn, libc::F_UNLCK)?;
        }
        (self.file, self.shared, self.allocated) = (Some(file), None, 0);
        if !is_first {
            self.share();
        }
        Ok(is_first)
    }

    fn peek(&mut self) -> Result<Option<Peeked>, Failure> {
        let is_stale = match &self.file {
            Some(file) => self.is_removed(file)?,
            None => true,
        };
        if is_stale {
            self.file = None;
            let opened = OwnFile::open(|| match companion::open(&self.path, &self.database, false) {
                Ok(Some(file)) => Ok(file),
                Ok(None) => Err(None),
                Err(failure) => Err(Some(failure)),
            });
            self.file = match opened {
                Ok(file) => Some(file),
                Err(None) => return Ok(None),
                Err(Some(failure)) => return Err(failure),
            };
        }
        let file = self.file()?;
        if self.locks && self.is_others(file, Lock::Turn)? {
            return Err(self.busy());
        }
        self.check_begin(file)?;
        Ok(Some(match self.locks && self.is_others(file, Lock::Member)? {
            true => Peeked::InUse,
            false => Peeked::Left,
        }))
    }

    fn settled(&mut self, marks: Marks) -> Result<(), Failure> {
        self.set_marks(marks)?;
        self.share();
        if self.locks {
            let file = self.file()?;
            self.lock(file, Lock::Member, libc::F_RDLCK)?;
            self.lock(file, Lock::Turn, libc::F_UNLCK)?;
        }
        Ok(())
    }

    fn leave(&mut self) -> Result<bool, Failure> {
        let file = self.file()?;
        match self.locks {
            // A connection that is stopped while closing leaves the log to the next one.
            true if !self.take_turn(file, GOING)? => Ok(false),
            true => self.lock(file, Lock::Member, libc::F_WRLCK),
            // Connections with locks need the log as long as they are open; without locks, it stays.
            false => Ok(self.is_others(file, Lock::Member).is_ok_and(|others| !others)),
        }
    }

    #[allow(clippy::disallowed_methods, reason = "the log of batches is the database's own, and opened as such")]
    fn left(&mut self, removes: bool) {
        if removes && self.has_its_name() {
            // The batches of a leftover log are in the database: replaying them changes nothing.
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
        let limit = size_limit();
        if end > limit {
            // The write would raise SIGXFSZ, also where another process has made the file longer. With this failure,
            // SQLite writes a rollback journal instead.
            let why = std::io::Error::from(ErrorKind::FileTooLarge);
            return Err(self.failed(sqlite::SQLITE_IOERR_WRITE, "allocating space", why));
        }
        if end > self.allocated {
            self.allocated = self.size()?;
        }
        if end > self.allocated {
            let step = self.allocated.clamp(*STEPS.start(), *STEPS.end());
            let enough = end.next_multiple_of(*STEPS.start()).min(limit);
            let grown = end.max(self.allocated + step).next_multiple_of(*STEPS.start()).min(limit);
            let extended = match self.extend(grown) {
                // A step that does not fit must not fail a batch that does.
                Err(error) if is_full(&error) => self.extend(enough),
                extended => extended,
            };
            extended.map_err(|error| self.failed(sqlite::SQLITE_IOERR_WRITE, "allocating space", error))?;
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

/// Whether a file could not be made longer.
fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

/// A byte to be locked.
fn range(lock: Lock, kind: c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: LOCKS_AT + lock as i64,
        l_len: 1,
        l_pid: 0,
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

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

    use super::*;

    #[test]
    fn a_log_that_somebody_removes_again_and_again_costs_busy() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("a.db");
        std::fs::write(&database, b"a database").unwrap();
        let log = BatchFile::new(&database, true);
        let mut opened = 0;
        let come = log.come(|| {
            opened += 1;
            let file = log.open()?;
            std::fs::remove_file(&log.path).unwrap();
            Ok(file)
        });
        assert_eq!((come.unwrap_err().code, opened), (sqlite::SQLITE_BUSY, REMOVALS));
        assert!(log.come(|| log.open()).is_ok());
    }

    #[test]
    fn a_log_is_as_accessible_as_its_database_from_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let mode_of = |file: &File| file.metadata().unwrap().permissions().mode() & 0o777;
        let umask_leaves = mode_of(&File::create(dir.path().join("probe")).unwrap());
        for mode in [0o600, 0o640, 0o644, 0o666] {
            let database = dir.path().join(format!("{mode:o}.db"));
            std::fs::write(&database, b"a database").unwrap();
            std::fs::set_permissions(&database, PermissionsExt::from_mode(mode)).unwrap();
            let watched = inotify::init(CreateFlags::NONBLOCK).unwrap();
            inotify::add_watch(&watched, dir.path(), WatchFlags::CREATE | WatchFlags::ATTRIB).unwrap();
            let file = BatchFile::new(&database, true).open().unwrap();
            assert_eq!(mode_of(&file), mode);
            let mut space = [MaybeUninit::uninit(); 4096];
            let mut events = inotify::Reader::new(&watched, &mut space);
            let mut changes = 0;
            while let Ok(event) = events.next() {
                changes += u32::from(event.events().contains(ReadFlags::ATTRIB));
            }
            let umask_takes = mode & !umask_leaves != 0;
            assert_eq!(changes, u32::from(umask_takes), "mode {mode:o}");
        }
    }
}
