//! One measured run: a database in one layout, the workload, and its cost.

use std::path::Path;
use std::time::Duration;

use flashwise_block::output::{Access, OutputPath};
use flashwise_block::{BlockError, ByteSize, LatencySummary, Nanos, Progress};
use flashwise_trace::IoTrace;
use rusqlite::Connection;

use super::budget::{Elapsed, Stopwatch};
use super::check_new_database;
use super::loaded::Loaded;
use super::play;
use super::session::{Reading, Session, thread_time};
use super::settings::{DEFAULT_PAGE, Journal, Settings, Synchronous, cache_pragma, checkpoint_pragma, journal_pragma};
use super::user::{self, UserWorkload};
use super::workload::{KeySource, KeyValueWorkload};
use crate::rates::rate;
use crate::{RunMeasurement, Target, TuneError, WorkloadDescription};

/// Requests are recorded in the first rounds only, up to about as many operations.
const TRACED_OPERATIONS: u32 = 400_000;
/// A slow disk needs 10 ms for one; Ctrl-C should be heard within a second.
const SELECTS_BETWEEN_PROGRESS: u32 = 64;
/// The result of a check that was not made.
const NOT_CHECKED: &str = "not checked";
/// SQLite's page cache while rows are loaded: as good as unlimited, so that loading is one pass over the drive.
const LOADING_CACHE: ByteSize = ByteSize::gib(4);

/// The parameters of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunConfig {
    pub(crate) label: String,
    pub(crate) settings: Settings,
    pub(crate) techniques: Vec<String>,
    /// Whether SQLite checks the whole database before and after. That reads it twice, for nothing where a run only
    /// helps to choose.
    pub(crate) is_checked: bool,
}

/// The work of all runs.
#[derive(Clone, Debug)]
pub enum Workload {
    /// The seed's.
    KeyValue(KeyValueWorkload),
    /// The user's own.
    User(UserWorkload),
}

impl Workload {
    /// Refuses a workload that cannot be run.
    ///
    /// # Errors
    /// With what is wrong.
    pub fn check(&self) -> Result<(), TuneError> {
        match self {
            Self::KeyValue(workload) => workload.check(),
            Self::User(workload) => workload.check(),
        }
    }

    /// The present page size of the database.
    pub(crate) fn page_size(&self) -> Result<ByteSize, TuneError> {
        match self {
            Self::KeyValue(_) => Ok(DEFAULT_PAGE),
            Self::User(workload) => workload.page_size(),
        }
    }

    pub(crate) fn describe(&self, seed: u64) -> WorkloadDescription {
        match self {
            Self::KeyValue(workload) => workload.describe(seed),
            Self::User(workload) => workload.describe(seed),
        }
    }

    /// The settings of a plain database with pages of a size, as the workload wants them.
    pub(crate) fn settings(&self, page: ByteSize) -> Settings {
        match self {
            Self::KeyValue(workload) => Settings::plain(page, workload.page_cache),
            Self::User(workload) => workload.settings(page),
        }
    }

    /// Approximate size limit of the database and its journal.
    fn database_bytes_max(&self) -> Result<ByteSize, TuneError> {
        match self {
            Self::KeyValue(workload) => Ok(workload.database_bytes_max()),
            Self::User(workload) => workload.database_bytes_max(),
        }
    }
}

/// Rates of single rounds, for intervals, and latencies of single operations.
#[derive(Clone, Default)]
pub(crate) struct Rounds {
    pub(crate) selects: Vec<f64>,
    pub(crate) inserts: Vec<f64>,
    /// Time of each round; for a user's own statements.
    pub(crate) times: Vec<Nanos>,
    /// Statements that were run; for a user's own statements.
    pub(crate) statements: usize,
    /// Whether they are not all of them.
    pub(crate) is_cut: bool,
    /// Time of writing the log back at the end: deferred work of the rounds.
    pub(crate) write_back: Nanos,
    pub(crate) select_latency: LatencySummary,
    pub(crate) transaction_latency: LatencySummary,
}

impl Rounds {
    /// Operations a second of time; an operation that needs no drive time counts as a nanosecond.
    pub(crate) fn per_s(operations: u64, time: Nanos) -> f64 {
        operations as f64 / time.0.max(operations) as f64 * 1e9
    }

    /// Time of each round, ns, each with its share of the deferred work; at least one.
    pub(crate) fn whole_times(&self) -> Vec<f64> {
        let share = self.write_back.0 as f64 / self.times.len().max(1) as f64;
        self.times.iter().map(|time| (time.0 as f64 + share).max(1.0)).collect()
    }
}

/// A finished run.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) measurement: RunMeasurement,
    /// Time of all of it.
    pub(crate) elapsed: Elapsed,
    /// Time of what is done once, before the rounds: loading and checking the database.
    pub(crate) preparation: Elapsed,
    /// Time on a processor of what is measured.
    pub(crate) processor: Duration,
    pub(crate) rounds: Rounds,
    pub(crate) trace: IoTrace,
}

impl Run {
    /// Time of the whole work, ns, with that of writing a log back at the end.
    pub(crate) fn time_ns(&self) -> f64 {
        match self.rounds.times.is_empty() {
            true => self.measurement.drive_time_ns as f64,
            false => self.rounds.whole_times().iter().sum(),
        }
    }
}

/// Runs the workload on a fresh drive; the built-in one with a loaded table, where there is one.
pub(crate) fn run(
    target: &Target,
    config: &RunConfig,
    (workload, loaded): (&Workload, Option<&Loaded>),
    seed: u64,
    save: Option<&Path>,
    progress: &mut dyn Progress,
) -> Result<Run, TuneError> {
    target.check_space(workload.database_bytes_max()?)?;
    let stopwatch = Stopwatch::start();
    let mut session = Session::start(target, config.settings.vfs, seed, &config.label)?;
    let mut rounds = Rounds::default();
    let (db, before, preparation, on_processor);
    match workload {
        Workload::KeyValue(workload) => {
            let mut keys = match loaded {
                Some(loaded) => {
                    let table = loaded.of(config.settings.page, progress)?;
                    session.import(table.path())?;
                    table.keys(seed)
                }
                None => {
                    let mut keys = KeySource::new(workload, seed);
                    load(&session, config, workload, &mut keys, progress)?;
                    check(&session, config)?;
                    keys
                }
            };
            session.start_cold()?;
            db = connect(&session, config.settings.page_cache)?;
            set_journal(&session, &db, &config.settings)?;
            (before, preparation) = (Reading::take(session.vfs()), stopwatch.elapsed());
            on_processor = thread_time();
            measure(&session, &db, config, workload, &mut keys, &mut rounds, progress)?;
        }
        Workload::User(workload) => {
            user::load(&session, config.settings.page, workload)?;
            check(&session, config)?;
            session.start_cold()?;
            let open = || {
                let db = user::confine(connect(&session, config.settings.page_cache)?)?;
                set_journal(&session, &db, &config.settings).map(|()| db)
            };
            let script = workload.script()?;
            db = open()?;
            let others = script.sessions[1..].iter().map(|_| open()).collect::<Result<Vec<_>, _>>()?;
            (before, preparation) = (Reading::take(session.vfs()), stopwatch.elapsed());
            on_processor = thread_time();
            session.vfs().set_recording(true);
            let connections: Vec<&Connection> = std::iter::once(&db).chain(&others).collect();
            play::measure(&session, &connections, &config.label, workload, &mut rounds, progress)?;
        }
    }
    session.vfs().set_recording(false);
    rounds.write_back = write_log_back(&session, &db, &config.settings)?;
    let after = Reading::take(session.vfs());
    let processor = thread_time().saturating_sub(on_processor);
    let trace = session.vfs().take_trace();
    let measurement = summarise(&session, &db, config, &rounds, after.since(&before))?;
    drop(db);
    if let Some(path) = save {
        save_database(&session, workload, path)?;
    }
    Ok(Run { measurement, elapsed: stopwatch.elapsed(), preparation, processor, rounds, trace })
}

/// Writes the database as a new plain file. One that was made from a user's is for the same eyes.
fn save_database(session: &Session, workload: &Workload, path: &Path) -> Result<(), TuneError> {
    let failed = |e: std::io::Error| TuneError::file(path, &e);
    let access = match workload {
        Workload::User(user) => Access::of(&user.database).map_err(|e| TuneError::file(&user.database, &e))?,
        Workload::KeyValue(_) => Access::Usual,
    };
    check_new_database(path)?;
    let new = OutputPath::create(path, access).map_err(failed)?;
    session.export(&new.path())?;
    new.publish().map(drop).map_err(failed)
}

/// A connection with everything at SQLite's defaults but the size of the page cache.
fn connect(session: &Session, page_cache: ByteSize) -> Result<Connection, TuneError> {
    let db = session.connect()?;
    session.batch(&db, &cache_pragma(page_cache))?;
    Ok(db)
}

/// Checks the database through a connection of its own, whose cache goes with it.
fn check(session: &Session, config: &RunConfig) -> Result<(), TuneError> {
    if !config.is_checked {
        return Ok(());
    }
    let db = connect(session, config.settings.page_cache)?;
    session.check_integrity(&db).map(drop)
}

/// Gives the copy its journal.
fn set_journal(session: &Session, db: &Connection, settings: &Settings) -> Result<(), TuneError> {
    if settings.synchronous != Synchronous::Full {
        session.batch(db, &format!("PRAGMA synchronous = {}", settings.synchronous.name()))?;
    }
    match settings.journal {
        Journal::Log => {
            session.batch(db, &format!("PRAGMA journal_mode = wal; {}", checkpoint_pragma(settings.checkpoint_pages)))
        }
        Journal::Delete => Ok(()),
        rollback @ (Journal::Truncate | Journal::Persist) => session.batch(db, &journal_pragma(rollback)),
    }
}

/// Writes the log back, and returns the time that took: otherwise the longest log would cost the least.
fn write_log_back(session: &Session, db: &Connection, settings: &Settings) -> Result<Nanos, TuneError> {
    if settings.journal != Journal::Log || !db.is_autocommit() {
        return Ok(Nanos(0));
    }
    let started = session.vfs().now();
    session.batch(db, "PRAGMA main.wal_checkpoint(TRUNCATE)")?;
    Ok(session.vfs().now().since(started))
}

/// Creates the table and inserts the rows in random order. Not measured: no journal, one transaction.
fn load(
    session: &Session,
    config: &RunConfig,
    workload: &KeyValueWorkload,
    keys: &mut KeySource,
    progress: &mut dyn Progress,
) -> Result<(), TuneError> {
    let db = connect(session, LOADING_CACHE)?;
    let page = config.settings.page.bytes();
    session.batch(&db, &format!("PRAGMA page_size = {page}; PRAGMA journal_mode = OFF"))?;
    session.batch(&db, "BEGIN; CREATE TABLE KV (K INTEGER PRIMARY KEY, V CHAR(100))")?;
    insert(session, &db, keys, workload.rows, &mut |n| {
        progress.advance(&format!("{}: loading", config.label), f64::from(n) / f64::from(workload.rows))
    })?;
    session.batch(&db, "COMMIT")
}

/// Inserts `count` new keys, telling every 1,024th.
fn insert(
    session: &Session,
    db: &Connection,
    keys: &mut KeySource,
    count: u32,
    told: &mut dyn FnMut(u32) -> Result<(), BlockError>,
) -> Result<(), TuneError> {
    const SQL: &str = "INSERT INTO KV (K, V) VALUES (?1, ?2)";
    let mut statement = db.prepare_cached(SQL).map_err(|e| session.sql_error(SQL, &e))?;
    for n in 0..count {
        if n.is_multiple_of(1024) {
            told(n)?;
        }
        let key = keys.new_key();
        statement.execute((key, keys.value())).map_err(|e| session.sql_error(SQL, &e))?;
        session.ended(&statement);
    }
    Ok(())
}

fn measure(
    session: &Session,
    db: &Connection,
    config: &RunConfig,
    workload: &KeyValueWorkload,
    keys: &mut KeySource,
    rounds: &mut Rounds,
    progress: &mut dyn Progress,
) -> Result<(), TuneError> {
    let operations_a_round = workload.inserts_per_round.saturating_add(workload.selects_per_round).max(1);
    let traced_rounds = TRACED_OPERATIONS.div_ceil(operations_a_round);
    for round in 0..workload.rounds {
        session.vfs().set_recording(round < traced_rounds);
        let share = |part: f64| (f64::from(round) + part) / f64::from(workload.rounds);
        let stage = format!("{}: inserts", config.label);
        insert_round(session, db, workload, keys, rounds, &mut |part| progress.advance(&stage, share(0.5 * part)))?;
        let stage = format!("{}: SELECTs", config.label);
        select_round(session, db, workload, keys, rounds, &mut |part| {
            progress.advance(&stage, share(0.5 + 0.5 * part))
        })?;
    }
    Ok(())
}

fn insert_round(
    session: &Session,
    db: &Connection,
    workload: &KeyValueWorkload,
    keys: &mut KeySource,
    rounds: &mut Rounds,
    told: &mut dyn FnMut(f64) -> Result<(), BlockError>,
) -> Result<(), TuneError> {
    let total = workload.inserts_per_round;
    if total == 0 {
        return Ok(());
    }
    let (mut done, mut time) = (0, Nanos(0));
    while done < total {
        let count = workload.inserts_per_transaction.min(total - done);
        let share = |n: u32| f64::from(done + n) / f64::from(total);
        told(share(0))?;
        let transaction = session.vfs().now();
        session.batch(db, "BEGIN")?;
        insert(session, db, keys, count, &mut |n| told(share(n)))?;
        session.batch(db, "COMMIT")?;
        let latency = session.vfs().now().since(transaction);
        rounds.transaction_latency.record(latency);
        time += latency;
        done += count;
    }
    rounds.inserts.push(Rounds::per_s(total.into(), time));
    Ok(())
}

fn select_round(
    session: &Session,
    db: &Connection,
    workload: &KeyValueWorkload,
    keys: &mut KeySource,
    rounds: &mut Rounds,
    told: &mut dyn FnMut(f64) -> Result<(), BlockError>,
) -> Result<(), TuneError> {
    const SQL: &str = "SELECT V FROM KV WHERE K = ?1";
    if workload.selects_per_round == 0 {
        return Ok(());
    }
    session.batch(db, "BEGIN")?;
    let mut statement = db.prepare_cached(SQL).map_err(|e| session.sql_error(SQL, &e))?;
    let mut time = Nanos(0);
    for n in 0..workload.selects_per_round {
        if n.is_multiple_of(SELECTS_BETWEEN_PROGRESS) {
            told(f64::from(n) / f64::from(workload.selects_per_round))?;
        }
        let before = session.vfs().now();
        let value =
            statement.query_row([keys.present_key()], |row| row.get_ref(0)?.as_str().map(str::len).map_err(Into::into));
        value.map_err(|e| session.sql_error(SQL, &e))?;
        session.ended(&statement);
        let latency = session.vfs().now().since(before);
        rounds.select_latency.record(latency);
        time += latency;
    }
    rounds.selects.push(Rounds::per_s(workload.selects_per_round.into(), time));
    drop(statement);
    session.batch(db, "COMMIT")
}

fn summarise(
    session: &Session,
    db: &Connection,
    config: &RunConfig,
    rounds: &Rounds,
    (drive_time, cpu_time, counters): (Nanos, Nanos, flashwise_block::DeviceCounters),
) -> Result<RunMeasurement, TuneError> {
    let (select_rate, insert_rate) = (rate(&rounds.selects), rate(&rounds.inserts));
    Ok(RunMeasurement {
        label: config.label.clone(),
        page_bytes: config.settings.page.bytes(),
        techniques: config.techniques.clone(),
        select_per_s: select_rate.per_s,
        select_rate,
        insert_per_s: insert_rate.per_s,
        insert_rate,
        select_latency: rounds.select_latency.percentiles(),
        transaction_latency: rounds.transaction_latency.percentiles(),
        host_bytes_written: counters.host_bytes_written.bytes(),
        flash_bytes_programmed: counters.flash.map(|flash| flash.bytes_programmed.bytes()),
        write_amplification: counters.write_amplification(),
        drive_time_ns: drive_time.0,
        cpu_time_ns: cpu_time.0,
        database_bytes: session.database_bytes(db)?,
        integrity_check: if config.is_checked { session.check_integrity(db)? } else { NOT_CHECKED.to_owned() },
    })
}
