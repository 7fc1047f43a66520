//! The user's own database and SQL, on a copy.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flashwise_block::input::{check_regular, open_regular, read_text};
use flashwise_block::interrupt;
use flashwise_block::temporary::TemporaryFolder;
use flashwise_block::{BlockError, ByteSize, Nanos};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use super::budget::{Measure, Stopwatch};
use super::made;
use super::play::ROUNDS;
use super::run::Workload;
use super::script::{Script, folder_of};
use super::session::{Session, words_of};
use super::settings::{Journal, Settings, journal_pragma};
use super::workload::check_page_cache;
use crate::{TuneError, WorkloadDescription};

/// Pages that are copied between two checks for an interrupt.
const PAGES_AT_ONCE: c_int = 4096;

/// A database file and a file of SQL statements.
#[derive(Clone, Debug)]
pub struct UserWorkload {
    /// A plain SQLite database; it is read and never written.
    pub database: PathBuf,
    /// Statements, run once in every run, in their order.
    pub sql: Statements,
    /// SQLite's page cache.
    pub page_cache: ByteSize,
    /// Values for the parameters of the statements: the script runs once for each row.
    pub parameters: Option<PathBuf>,
    /// The longest think time that is kept.
    pub think_limit: Option<Nanos>,
    /// The database as it was before the statements were run on it, where they were.
    pub before: Option<Arc<DatabaseBefore>>,
    /// How much of the statements a run does.
    pub(crate) extent: Extent,
    /// Copies of the database by page size, made once for all runs.
    copies: Arc<Copies>,
    /// The statements, read once for all runs.
    script: Arc<Mutex<Option<Arc<Script>>>>,
    /// Transactions that were rolled back and run again, because another session wrote meanwhile.
    pub(crate) restarts: Arc<AtomicU64>,
}

/// A copy of a database from before its program changed it.
#[derive(Debug)]
pub struct DatabaseBefore {
    path: PathBuf,
    folder: TemporaryFolder,
}

impl DatabaseBefore {
    /// Copies a database, with what is only in its log. The copy has none: each reading of a database in WAL mode that
    /// nobody has open needs another copy.
    ///
    /// # Errors
    /// When it is no database, is locked, or does not fit.
    pub fn copy(database: &Path) -> Result<Self, TuneError> {
        let before = match Source::open(database)? {
            Source { db, copy: Some(folder) } => {
                db.close().map_err(|(_, e)| plain_error(database, &e))?;
                Self { path: folder.path().join(COPIED_SOURCE), folder }
            }
            Source { db, copy: None } => {
                let folder = scratch()?;
                let path = folder.path().join("before.db");
                let mut copy = Connection::open(&path).map_err(|e| plain_error(&path, &e))?;
                copy_pages(database, &db, &mut copy)?;
                copy.close().map_err(|(_, e)| plain_error(&path, &e))?;
                Self { path, folder }
            }
        };
        before.set_journal(Journal::Delete)?;
        Ok(before)
    }

    /// Keeps a journal mode in the header of the copy.
    pub(crate) fn set_journal(&self, journal: Journal) -> Result<(), TuneError> {
        let db = open_plain(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let set = db.execute_batch(&journal_pragma(journal));
        set.and_then(|()| db.close().map_err(|(_, e)| e)).map_err(|e| plain_error(&self.path, &e))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Copies all pages of a database.
fn copy_pages(database: &Path, from: &Connection, to: &mut Connection) -> Result<(), TuneError> {
    let failed = |e| plain_error(database, &e);
    let backup = Backup::new(from, to).map_err(failed)?;
    loop {
        match backup.step(PAGES_AT_ONCE).map_err(failed)? {
            StepResult::Done => return Ok(()),
            StepResult::More => interrupt::check()?,
            // Busy or locked, after the time that SQLite waits for a lock: what was copied is rolled back.
            _ => {
                let message = "another program holds it locked; let that end its transaction, and try again".to_owned();
                return Err(TuneError::Sql { context: database.display().to_string(), message });
            }
        }
    }
}

/// How much of the statements a run does: never less than to the end of a transaction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    /// At most as many statements.
    pub(crate) statements: Option<usize>,
    /// None after that much time of statements, by one of the clocks.
    pub(crate) time: Option<(Measure, Duration)>,
}

impl Extent {
    /// Whether the time of statements is over.
    pub(crate) fn is_over(&self, statements: &Stopwatch) -> bool {
        self.time.is_some_and(|(measure, time)| measure.of(statements.elapsed()) >= time)
    }
}

/// Where the statements are.
#[derive(Clone, Debug)]
pub enum Statements {
    /// In a file of the user's.
    File(PathBuf),
    /// Made up.
    Made(String),
    /// Those of a program that was recorded.
    Recorded {
        /// The script.
        text: Arc<str>,
        /// The program with its arguments.
        command: String,
    },
}

impl Statements {
    fn read(&self) -> Result<Cow<'_, str>, TuneError> {
        match self {
            Self::File(path) => check_regular(path)
                .and_then(|()| read_text(path))
                .map(Cow::Owned)
                .map_err(|e| TuneError::file(path, &e)),
            Self::Made(text) => Ok(Cow::Borrowed(text)),
            Self::Recorded { text, .. } => Ok(Cow::Borrowed(text)),
        }
    }
}

impl fmt::Display for Statements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Made(_) => f.write_str("generated statements"),
            Self::Recorded { command, .. } => write!(f, "the recorded statements of `{command}`"),
        }
    }
}

impl UserWorkload {
    /// Statements on a copy of a database, all of them.
    pub fn new(database: PathBuf, sql: Statements, page_cache: ByteSize) -> Self {
        Self {
            database,
            sql,
            page_cache,
            parameters: None,
            think_limit: None,
            before: None,
            extent: Extent::default(),
            copies: Arc::default(),
            script: Arc::default(),
            restarts: Arc::default(),
        }
    }

    /// Refuses what cannot be run, as far as that is known without running it.
    ///
    /// # Errors
    /// When the file is not a database, or the SQL file cannot be read or contains no statement.
    pub fn check(&self) -> Result<(), TuneError> {
        check_page_cache(self.page_cache)?;
        self.script()?;
        self.page_size().map(drop)
    }

    /// The statements, with their sessions and values.
    ///
    /// # Errors
    /// When a file cannot be read, or with the line that is wrong.
    pub(crate) fn script(&self) -> Result<Arc<Script>, TuneError> {
        let mut known = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(script) = &*known {
            return Ok(Arc::clone(script));
        }
        let text = self.sql.read()?.into_owned();
        let folder = match &self.sql {
            Statements::File(path) => folder_of(path),
            Statements::Made(_) | Statements::Recorded { .. } => PathBuf::new(),
        };
        let script = Script::parse(&self.sql.to_string(), text, &folder, self.parameters.as_deref())?;
        Ok(Arc::clone(known.insert(Arc::new(script))))
    }

    /// The file that runs start from.
    fn source(&self) -> &Path {
        self.before.as_ref().map_or(&self.database, |before| before.path())
    }

    /// The settings of `default`: the database's own, and the program's.
    pub(crate) fn settings(&self, page: ByteSize) -> Settings {
        let plain = Settings::plain(page, self.page_cache);
        let own = self.script().ok().and_then(|script| script.checkpoint_pages);
        Settings { journal: self.journal_mode(), checkpoint_pages: own.unwrap_or(plain.checkpoint_pages), ..plain }
    }

    /// The page size that the database has now.
    ///
    /// # Errors
    /// When the file is no SQLite database.
    pub(crate) fn page_size(&self) -> Result<ByteSize, TuneError> {
        if let Some(size) = page_size_in_log_mode(self.source())? {
            return Ok(size);
        }
        let source = Source::open(self.source())?;
        let bytes = source.db.query_row("PRAGMA page_size", [], |row| row.get::<_, i64>(0));
        bytes.map(|bytes| ByteSize(bytes.unsigned_abs())).map_err(|e| plain_error(self.source(), &e))
    }

    /// Bytes of the copy and its journal at most, unless the statements make it grow.
    pub(crate) fn database_bytes_max(&self) -> Result<ByteSize, TuneError> {
        let metadata = std::fs::metadata(self.source()).map_err(|e| TuneError::file(self.source(), &e))?;
        Ok(ByteSize(ByteSize::mib(2).0.saturating_add(metadata.len().saturating_mul(2))))
    }

    /// Makes the copy with pages of a size that the runs start from, if there is none yet.
    ///
    /// # Errors
    /// When the database cannot be read, or the copy not be written.
    pub(crate) fn copy(&self, page: ByteSize) -> Result<(), TuneError> {
        self.copies.of(self.source(), page).map(drop)
    }

    /// Generates statements for a database without statements of the user.
    ///
    /// # Errors
    /// When the file is not a SQLite database, or has no rows.
    pub fn made_up(database: &Path, seed: u64) -> Result<String, TuneError> {
        let source = Source::open(database)?;
        let text = made::statements(&source.db, seed).map_err(|e| plain_error(database, &e))?;
        if text.is_empty() {
            let message = "no table in it has rows to select; give your statements with --sql".into();
            return Err(TuneError::Sql { context: database.display().to_string(), message });
        }
        Ok(text)
    }

    /// The workload, in a clause.
    pub(crate) fn summary(&self) -> String {
        let shape = self.script().map(|script| script.shape()).unwrap_or_default();
        let sql = match &self.sql {
            // A sentence that starts with a file name would capitalise it.
            Statements::File(path) => format!("the statements of {}", path.display()),
            other => other.to_string(),
        };
        format!("{sql} on a copy of {}{}{shape}", self.database.display(), self.journal())
    }

    pub(crate) fn describe(&self, seed: u64) -> WorkloadDescription {
        WorkloadDescription {
            summary: self.summary(),
            rows: 0,
            rounds: ROUNDS as u64,
            inserts_per_round: 0,
            selects_per_round: 0,
            inserts_per_transaction: 0,
            page_cache_bytes: self.page_cache.bytes(),
            seed,
        }
    }

    /// The journal mode for the summary, if it is not SQLite's default.
    fn journal(&self) -> &'static str {
        if self.journal_mode() == Journal::Log { ", with a write-ahead log" } else { "" }
    }

    /// How the original makes transactions atomic, according to its file: as a recorded program has set it, too.
    pub(crate) fn journal_mode(&self) -> Journal {
        journal_mode(&self.database)
    }
}

/// The journal mode that a database keeps in its file.
pub(crate) fn journal_mode(database: &Path) -> Journal {
    let is_log = FileHeader::read(database).is_ok_and(|header| header.is_some_and(|header| header.is_in_log_mode()));
    if is_log { Journal::Log } else { Journal::Delete }
}

/// The start of a database file (SQLite file format, section 1.3).
struct FileHeader([u8; 20]);

impl FileHeader {
    /// `None` where the file has none.
    fn read(path: &Path) -> std::io::Result<Option<Self>> {
        use std::os::unix::fs::FileExt;
        let mut bytes = [0; 20];
        let read = open_regular(path)?.read_exact_at(&mut bytes, 0);
        let is_short = read.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::UnexpectedEof);
        if is_short || !bytes.starts_with(b"SQLite format 3\0") {
            return Ok(None);
        }
        read.map(|()| Some(Self(bytes)))
    }

    fn page_size(&self) -> ByteSize {
        match u16::from_be_bytes([self.0[16], self.0[17]]) {
            1 => ByteSize::kib(64),
            bytes => ByteSize(bytes.into()),
        }
    }

    /// Read and write version are 2.
    fn is_in_log_mode(&self) -> bool {
        self.0[18..20] == [2, 2]
    }
}

/// The page size of a database in WAL mode that nobody has open: SQLite could read it only in a copy.
fn page_size_in_log_mode(path: &Path) -> Result<Option<ByteSize>, TuneError> {
    let failed = |e: std::io::Error| TuneError::file(path, &e);
    let real = path.canonicalize().map_err(failed)?;
    check_regular(&real).map_err(failed)?;
    if !has_own_wal(&real).map_err(failed)? {
        return Ok(None);
    }
    Ok(FileHeader::read(&real).map_err(failed)?.filter(FileHeader::is_in_log_mode).map(|header| header.page_size()))
}

/// A connection that reads all of a database and changes nothing, neither in it nor beside it.
///
/// SQLite cannot read a database in WAL mode, nor one whose journal must be rolled back first, without writing. Those
/// are copied with their companion files, unless another program has the WAL open and its files exist anyway.
struct Source {
    // Closed before the copy goes.
    db: Connection,
    copy: Option<TemporaryFolder>,
}

/// Name of the copy of a source.
const COPIED_SOURCE: &str = "source.db";

impl Source {
    fn open(path: &Path) -> Result<Self, TuneError> {
        let failed = |e| plain_error(path, &e);
        // The WAL or journal is beside the file itself, not beside a link to it.
        let path = &path.canonicalize().map_err(|e| TuneError::file(path, &e))?;
        check_regular(path).map_err(|e| TuneError::file(path, &e))?;
        if has_own_wal(path).map_err(|e| TuneError::file(path, &e))? {
            return Self::copy(path);
        }
        let db = open_plain(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        match count_schema(&db) {
            Err(e) if e.sqlite_error().is_some_and(|e| e.extended_code == ffi::SQLITE_READONLY_ROLLBACK) => {
                Self::copy(path)
            }
            other => other.map(|()| Self { db, copy: None }).map_err(failed),
        }
    }

    #[allow(clippy::disallowed_methods, reason = "a copy in a directory of the run's own")]
    fn copy(path: &Path) -> Result<Self, TuneError> {
        let directory = scratch()?;
        let copy = directory.path().join(COPIED_SOURCE);
        for suffix in ["", "-wal", "-journal"] {
            let (from, to) = (with_suffix(path, suffix), with_suffix(&copy, suffix));
            if suffix.is_empty() || from.exists() {
                check_regular(&from).map_err(|e| TuneError::file(&from, &e))?;
                std::fs::copy(&from, to).map_err(|e| TuneError::file(from, &e))?;
            }
        }
        let failed = |e| plain_error(path, &e);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(&copy, flags).and_then(interruptible).map_err(failed)?;
        count_schema(&db).map_err(failed)?;
        Ok(Self { db, copy: Some(directory) })
    }
}

/// Whether a database is in WAL mode or has a WAL, and no other process has it open.
fn has_own_wal(path: &Path) -> std::io::Result<bool> {
    let header = FileHeader::read(path)?;
    let is_wal = header.is_some_and(|header| header.0[18] == 2) || with_suffix(path, "-wal").exists();
    Ok(is_wal && !with_suffix(path, "-shm").exists())
}

/// Makes SQLite read the file.
fn count_schema(db: &Connection) -> rusqlite::Result<()> {
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(crate) fn scratch() -> Result<TemporaryFolder, TuneError> {
    TemporaryFolder::create("flashwise-").map_err(|e| TuneError::file(std::env::temp_dir(), &e))
}

/// Instructions of SQLite's virtual machine between two checks for an interruption: well below a millisecond.
const INSTRUCTIONS_BETWEEN_CHECKS: c_int = 1000;

/// A connection whose statements end within a moment when the user interrupts, however long one of them takes.
pub(crate) fn interruptible(mut db: Connection) -> rusqlite::Result<Connection> {
    db.progress_handler(INSTRUCTIONS_BETWEEN_CHECKS, Some(interrupt::is_requested))?;
    Ok(db)
}

/// Memory of a run, beside the simulated drive's own: the database, and a page cache for each connection.
pub(crate) fn memory_of_run(workload: &Workload, database: ByteSize, page_cache: ByteSize) -> ByteSize {
    let connections = match workload {
        Workload::KeyValue(_) => 1,
        Workload::User(workload) => workload.script().map_or(1, |script| script.sessions.len() as u64),
    };
    ByteSize(database.0.saturating_add(page_cache.min(database).0.saturating_mul(connections)))
}

/// Whether a statement ended because the user wanted it to.
pub(crate) fn is_interrupt(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) && interrupt::is_requested()
}

pub(crate) fn open_plain(path: &Path, flags: OpenFlags) -> Result<Connection, TuneError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    check_regular(path).map_err(|e| TuneError::file(path, &e))?;
    Connection::open_with_flags(path, flags).and_then(interruptible).map_err(|e| plain_error(path, &e))
}

pub(crate) fn plain_error(path: &Path, error: &rusqlite::Error) -> TuneError {
    if is_interrupt(error) {
        return BlockError::Interrupted.into();
    }
    let is_laid_out = || flashwise_sqlite::info(path).is_ok_and(|info| info.version.is_some());
    let message = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) if is_laid_out() => {
            "has a flashwise layout, which plain SQLite cannot read; convert it with `flashwise sqlite export` first"
                .to_owned()
        }
        _ => words_of(error),
    };
    TuneError::Sql { context: path.display().to_string(), message }
}

/// Brings a copy of the database with pages of a size to the drive, where another file is already.
pub(crate) fn load(session: &Session, page: ByteSize, workload: &UserWorkload) -> Result<(), TuneError> {
    session.vfs().write_earlier_file()?;
    session.import(&workload.copies.of(workload.source(), page)?.path)
}

/// Copies of one database, by page size, made once for all runs.
#[derive(Debug, Default)]
struct Copies(Mutex<BTreeMap<u64, Arc<CopiedDatabase>>>);

/// A copy, which is removed when its last user is done.
#[derive(Debug)]
struct CopiedDatabase {
    path: PathBuf,
    _directory: TemporaryFolder,
}

/// Copies are kept where the file system has free space for as many of them: one for each page size, and as much again
/// for VACUUM and for others.
const FREE_COPIES: u64 = 16;

impl Copies {
    /// The copy with pages of a size.
    fn of(&self, database: &Path, page: ByteSize) -> Result<Arc<CopiedDatabase>, TuneError> {
        let mut copies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(copy) = copies.get(&page.0) {
            return Ok(Arc::clone(copy));
        }
        let directory = scratch()?;
        let bytes = std::fs::metadata(database).map_err(|e| TuneError::file(database, &e))?.len();
        let space = rustix::fs::statvfs(directory.path()).map_err(|e| TuneError::file(directory.path(), &e.into()))?;
        if space.f_bavail.saturating_mul(space.f_frsize) / FREE_COPIES < bytes {
            copies.clear();
        }
        let path = directory.path().join("copy.db");
        copy_with_pages(database, page, &path)?;
        let copy = Arc::new(CopiedDatabase { path, _directory: directory });
        copies.insert(page.0, Arc::clone(&copy));
        Ok(copy)
    }
}

/// Copies a database into a new plain file without a log, with pages of a size.
pub(crate) fn copy_with_pages(database: &Path, page: ByteSize, copy: &Path) -> Result<(), TuneError> {
    let failed = |e| plain_error(database, &e);
    let source = Source::open(database)?;
    source.db.execute("VACUUM INTO ?1", [copy.to_string_lossy()]).map_err(failed)?;
    drop(source);
    let db = open_plain(copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.execute_batch(&format!("PRAGMA journal_mode = DELETE; PRAGMA page_size = {}; VACUUM", page.bytes()))
        .map_err(failed)
}

/// Keeps the user's statements to the copy: an attached file would be the user's own.
pub(crate) fn confine(mut db: Connection) -> Result<Connection, TuneError> {
    const ATTACH: c_int = ffi::SQLITE_ATTACH;
    let judge = |context: AuthContext<'_>| match context.action {
        // Temporary and in-memory databases; VACUUM attaches one, too.
        AuthAction::Attach { filename: "" | ":memory:" } => Authorization::Allow,
        AuthAction::Attach { .. } | AuthAction::Unknown { code: ATTACH, .. } => Authorization::Deny,
        _ => Authorization::Allow,
    };
    let message =
        |e: rusqlite::Error| TuneError::Sql { context: "setting an authorizer".into(), message: e.to_string() };
    db.authorizer(Some(judge)).map_err(message)?;
    Ok(db)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_meets_a_lock_is_no_copy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let other = Connection::open(&path).unwrap();
        other.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(100000))").unwrap();
        let source = Connection::open(&path).unwrap();
        source.busy_timeout(Duration::ZERO).unwrap();
        count_schema(&source).unwrap();
        let mut copy = Connection::open(folder.path().join("copy.db")).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let error = copy_pages(&path, &source, &mut copy).unwrap_err().to_string();
        assert!(error.contains("app.db: another program holds it locked"), "{error}");
        other.execute_batch("COMMIT").unwrap();
        copy_pages(&path, &source, &mut copy).unwrap();
        assert_eq!(copy.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    }

    #[test]
    fn the_copy_of_a_database_in_wal_mode_has_no_log_and_can_be_given_one() {
        let folder = tempfile::tempdir().unwrap();
        let [path, alone] = ["app.db", "alone.db"].map(|name| folder.path().join(name));
        let db = Connection::open(&path).unwrap();
        db.execute_batch("PRAGMA page_size = 65536; PRAGMA journal_mode = wal; CREATE TABLE t (x)").unwrap();
        db.execute_batch("INSERT INTO t VALUES ('only in the log')").unwrap();
        // Another process has it open; and one that ended without closing it.
        for suffix in ["", "-wal"] {
            std::fs::copy(with_suffix(&path, suffix), with_suffix(&alone, suffix)).unwrap();
        }
        for path in [path, alone] {
            let workload = |database: &Path| {
                UserWorkload::new(database.to_owned(), Statements::Made("SELECT 1".into()), ByteSize::mib(1))
            };
            assert_eq!(workload(&path).page_size().unwrap(), ByteSize::kib(64));
            assert_eq!(journal_mode(&path), Journal::Log);
            let before = DatabaseBefore::copy(&path).unwrap();
            assert_eq!(journal_mode(before.path()), Journal::Delete);
            assert!(Source::open(before.path()).unwrap().copy.is_none(), "it is read in place");
            before.set_journal(Journal::Log).unwrap();
            assert_eq!(journal_mode(before.path()), Journal::Log);
            assert!(!with_suffix(before.path(), "-wal").exists());
            before.set_journal(Journal::Delete).unwrap();
            let db = Connection::open(before.path()).unwrap();
            let found: String = db.query_row("SELECT x FROM t", [], |row| row.get(0)).unwrap();
            assert_eq!(found, "only in the log");
            assert_eq!(workload(before.path()).page_size().unwrap(), ByteSize::kib(64));
        }
    }
}
