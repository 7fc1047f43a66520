//! The user's own database and SQL, on a copy.

use std::path::{Path, PathBuf};

use flashwise_block::{ByteSize, Nanos, Progress};
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Connection, OpenFlags, Statement};

use super::run::Rounds;
use super::session::Session;
use crate::{TuneError, WorkloadDescription};

/// Statements are split into so many rounds, for intervals.
const ROUNDS: usize = 10;

/// A database file and a file of SQL statements.
#[derive(Clone, Debug)]
pub struct UserWorkload {
    /// A plain SQLite database; it is read and never written.
    pub database: PathBuf,
    /// Statements, run once in every run, in their order.
    pub sql: PathBuf,
    /// SQLite's page cache.
    pub page_cache: ByteSize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    /// BEGIN, COMMIT, PRAGMA: time that belongs to the writes around it.
    Other,
}

impl UserWorkload {
    /// The page size that the database has now.
    ///
    /// # Errors
    /// When the file is no SQLite database.
    pub(crate) fn page_size(&self) -> Result<ByteSize, TuneError> {
        let db = open_plain(&self.database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        db.query_row("PRAGMA page_size", [], |row| row.get::<_, i64>(0))
            .and_then(|bytes| db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(bytes)))
            .map(|bytes| ByteSize(bytes.unsigned_abs()))
            .map_err(|e| plain_error(&self.database, &e))
    }

    pub(crate) fn describe(&self, seed: u64) -> WorkloadDescription {
        WorkloadDescription {
            summary: format!("{} on a copy of {}", self.sql.display(), self.database.display()),
            rows: 0,
            rounds: ROUNDS as u64,
            inserts_per_round: 0,
            selects_per_round: 0,
            inserts_per_transaction: 0,
            page_cache_bytes: self.page_cache.bytes(),
            seed,
        }
    }
}

fn open_plain(path: &Path, flags: OpenFlags) -> Result<Connection, TuneError> {
    std::fs::metadata(path).map_err(|e| TuneError::file(path, &e))?;
    Connection::open_with_flags(path, flags).map_err(|e| plain_error(path, &e))
}

fn plain_error(path: &Path, error: &rusqlite::Error) -> TuneError {
    TuneError::Sql { context: path.display().to_string(), message: error.to_string() }
}

/// Copies the database, gives the copy the page size, and brings it to the drive.
pub(crate) fn load(session: &Session, page: ByteSize, workload: &UserWorkload) -> Result<(), TuneError> {
    let scratch = tempfile::tempdir().map_err(|e| TuneError::file(std::env::temp_dir(), &e))?;
    let copy = scratch.path().join("copy.db");
    let original = open_plain(&workload.database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    original.execute("VACUUM INTO ?1", [copy.to_string_lossy()]).map_err(|e| plain_error(&workload.database, &e))?;
    let db = open_plain(&copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let set = format!("PRAGMA journal_mode = DELETE; PRAGMA page_size = {}; VACUUM", page.bytes());
    db.execute_batch(&set).map_err(|e| plain_error(&copy, &e))?;
    drop(db);
    session.import(&copy)
}

/// Runs the statements and measures each.
pub(crate) fn measure(
    session: &Session,
    db: &Connection,
    label: &str,
    workload: &UserWorkload,
    rounds: &mut Rounds,
    progress: &mut dyn Progress,
) -> Result<(), TuneError> {
    let text = std::fs::read_to_string(&workload.sql).map_err(|e| TuneError::file(&workload.sql, &e))?;
    let mut batch = Batch::new(db, &text);
    let mut done: Vec<(Kind, Nanos)> = Vec::new();
    let mut transaction = (Nanos(0), false);
    loop {
        let n = done.len();
        let fail =
            |e: rusqlite::Error| session.sql_error(&format!("{}, statement {}", workload.sql.display(), n + 1), &e);
        if n.is_multiple_of(256) {
            progress.advance(&format!("{label}: statement {n}"), 0.0)?;
        }
        let started = session.vfs().now();
        let Some(mut statement) = batch.next().map_err(fail)? else { break };
        let kind = execute(&mut statement).map_err(fail)?;
        drop(statement);
        let time = session.vfs().now().since(started);
        if kind == Kind::Read {
            rounds.select_latency.record(time);
        }
        transaction = (transaction.0 + time, transaction.1 || kind == Kind::Write);
        if db.is_autocommit() {
            if transaction.1 {
                rounds.transaction_latency.record(transaction.0);
            }
            transaction = (Nanos(0), false);
        }
        done.push((kind, time));
    }
    if done.is_empty() {
        return Err(TuneError::Options(format!("{}: no SQL statement in it", workload.sql.display())));
    }
    for round in done.chunks(done.len().div_ceil(ROUNDS)) {
        push_rates(round, rounds);
    }
    Ok(())
}

/// Steps a statement to its end.
fn execute(statement: &mut Statement<'_>) -> rusqlite::Result<Kind> {
    let kind = match (statement.readonly(), statement.column_count()) {
        (true, 0) => Kind::Other,
        (true, _) => Kind::Read,
        (false, _) => Kind::Write,
    };
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(kind)
}

fn push_rates(round: &[(Kind, Nanos)], rounds: &mut Rounds) {
    let total = |wanted: &[Kind]| {
        let times = round.iter().filter(|(kind, _)| wanted.contains(kind)).map(|&(_, time)| time);
        times.fold(Nanos(0), |sum, time| sum + time)
    };
    let count = |wanted: Kind| round.iter().filter(|&&(kind, _)| kind == wanted).count() as u64;
    if count(Kind::Read) > 0 {
        rounds.selects.push(Rounds::per_s(count(Kind::Read), total(&[Kind::Read])));
    }
    if count(Kind::Write) > 0 {
        rounds.inserts.push(Rounds::per_s(count(Kind::Write), total(&[Kind::Write, Kind::Other])));
    }
}
