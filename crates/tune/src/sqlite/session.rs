//! One database on one fresh drive, with the clocks that a run is measured by.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flashwise_block::temporary::TemporaryFolder;
use flashwise_block::{BlockError, ByteSize, DeviceCounters, Nanos};
use flashwise_sqlite::{Backend, Vfs, VfsOptions, return_freed_memory};
use rusqlite::{Connection, OpenFlags, Statement};

use super::program::Program;
use super::user::{interruptible, is_interrupt};
use crate::{Host, Target, TuneError};

/// Numbers the VFS registrations of this process.
static SESSIONS: AtomicU64 = AtomicU64::new(0);
/// Name of the database on a simulated drive.
const DATABASE: &str = "fit.db";
/// Unused: a simulated drive has its own capacity.
const NO_SCRATCH: ByteSize = ByteSize(0);

/// A name under which no other VFS of this process is registered.
pub(super) fn vfs_name() -> String {
    format!("flashwise-fit-{}", SESSIONS.fetch_add(1, Ordering::Relaxed))
}

/// A VFS over a fresh drive or a fresh directory.
pub(crate) struct Session {
    vfs: Vfs,
    name: PathBuf,
    /// The database file on a real file system, open as long as SQLite's locks on it.
    kept_open: Option<std::fs::File>,
    /// Removed, with everything in it, when the session ends.
    directory: Option<TemporaryFolder>,
    label: String,
    /// Where the machine is simulated with the time of the program.
    program: Option<Program>,
}

impl Session {
    /// Opens the target again, as new.
    pub(crate) fn start(target: &Target, options: VfsOptions, seed: u64, label: &str) -> Result<Self, TuneError> {
        let (backend, directory) = match target {
            Target::Simulated { host, .. } | Target::Volume { host, .. } => {
                (host.backend(target.open(seed, NO_SCRATCH)?), None)
            }
            Target::Directory(path) => {
                let scratch = TemporaryFolder::create_in(path, "flashwise-");
                (Backend::Directory, Some(scratch.map_err(|e| TuneError::file(path, &e))?))
            }
            Target::Raw(raw) => {
                let path = raw.path().display();
                return Err(TuneError::Refused(format!("{path}: a database needs a directory, not a raw device")));
            }
        };
        let vfs = Vfs::register(&vfs_name(), backend, options)?;
        let name = directory.as_ref().map_or_else(|| PathBuf::from(DATABASE), |d| d.path().join(DATABASE));
        let is_modelled = target.host().is_some_and(Host::models_program);
        let program = is_modelled.then(|| Program::new(vfs.program_clock()));
        Ok(Self { vfs, name, kept_open: None, directory, label: label.to_owned(), program })
    }

    pub(crate) fn vfs(&self) -> &Vfs {
        &self.vfs
    }

    /// A connection to the database.
    pub(crate) fn connect(&self) -> Result<Connection, TuneError> {
        Connection::open_with_flags_and_vfs(&self.name, OpenFlags::default(), self.vfs.name())
            .and_then(|db| match &self.program {
                Some(program) => program.attach(db),
                None => interruptible(db),
            })
            .map_err(|e| self.sql_error("opening the database", &e))
    }

    /// A statement has ended; the time that SQLite's own code took for it passes.
    pub(crate) fn ended(&self, statement: &Statement<'_>) {
        if let Some(program) = &self.program {
            program.ended(statement);
        }
    }

    /// Copies a plain SQLite file to the drive, in the session's layout.
    pub(crate) fn import(&self, plain: &Path) -> Result<(), TuneError> {
        self.vfs.import_file(plain, &self.name.to_string_lossy())?;
        Ok(())
    }

    /// Writes the database as a plain SQLite file.
    pub(crate) fn export(&self, plain: &Path) -> Result<(), TuneError> {
        self.vfs.export_file(&self.name.to_string_lossy(), plain)?;
        Ok(())
    }

    /// Runs SQL that is part of the set-up.
    pub(crate) fn batch(&self, db: &Connection, sql: &str) -> Result<(), TuneError> {
        db.execute_batch(sql).map_err(|e| self.sql_error(sql, &e))
    }

    /// SQLite's error with the failed operation and, if the VFS was involved, its message.
    pub(crate) fn sql_error(&self, context: &str, error: &rusqlite::Error) -> TuneError {
        if is_interrupt(error) {
            return BlockError::Interrupted.into();
        }
        use rusqlite::ErrorCode::{CannotOpen, DatabaseCorrupt, DiskFull, NotADatabase, SystemIoFailure};
        let codes = [CannotOpen, DatabaseCorrupt, DiskFull, NotADatabase, SystemIoFailure];
        let is_below = error.sqlite_error_code().is_some_and(|code| codes.contains(&code));
        let words = self.vfs.last_error().filter(|_| is_below);
        let below = words.map(|words| format!(" ({words})")).unwrap_or_default();
        TuneError::Sql { context: format!("{}: {context}", self.label), message: format!("{}{below}", words_of(error)) }
    }

    /// Starts with nothing of the database in the page cache, simulated or the system's own. From then on that serves
    /// what it holds, as it does for any client. In a directory, SQLite's own cache is of memory that it has to get
    /// first, like that of a client's process.
    ///
    /// Closing the file would release SQLite's own locks on it (POSIX locks belong to the process), so it stays open
    /// until the session ends.
    pub(crate) fn start_cold(&mut self) -> Result<(), TuneError> {
        if self.directory.is_some() {
            let failed = |e: std::io::Error| TuneError::file(&self.name, &e);
            let file = std::fs::File::open(&self.name).map_err(failed)?;
            // What is not yet written stays in memory.
            file.sync_all().map_err(failed)?;
            // Only advice: where it is not taken, the first reads are served from memory.
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
            self.kept_open = Some(file);
            return_freed_memory();
        }
        Ok(self.vfs.drop_caches()?)
    }

    /// Runs `PRAGMA integrity_check`; any result but `ok` is an error.
    pub(crate) fn check_integrity(&self, db: &Connection) -> Result<String, TuneError> {
        let answer: String = db
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .map_err(|e| self.sql_error("PRAGMA integrity_check", &e))?;
        if answer == "ok" { Ok(answer) } else { Err(TuneError::Integrity { label: self.label.clone(), answer }) }
    }

    /// Bytes that the database has.
    pub(crate) fn database_bytes(&self, db: &Connection) -> Result<u64, TuneError> {
        let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        db.query_row(sql, [], |row| row.get::<_, i64>(0))
            .map(i64::unsigned_abs)
            .map_err(|e| self.sql_error("PRAGMA page_count", &e))
    }
}

/// SQLite's own message, without the statement that rusqlite adds.
pub(crate) fn words_of(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

/// The clocks and counters at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    drive: Nanos,
    cpu: Nanos,
    counters: DeviceCounters,
}

impl Reading {
    pub(crate) fn take(vfs: &Vfs) -> Self {
        Self { drive: vfs.now(), cpu: sqlite_cpu_time(vfs), counters: vfs.counters() }
    }

    /// Drive time, SQLite's own CPU time and traffic since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> (Nanos, Nanos, DeviceCounters) {
        (self.drive.since(earlier.drive), self.cpu.since(earlier.cpu), self.counters.since(&earlier.counters))
    }
}

/// CPU time of this thread without that of the VFS and the drive below it.
fn sqlite_cpu_time(vfs: &Vfs) -> Nanos {
    let thread = Nanos(u64::try_from(thread_time().as_nanos()).unwrap_or(u64::MAX));
    thread.since(vfs.host_cpu_time())
}

/// CPU time of this thread.
pub(super) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
