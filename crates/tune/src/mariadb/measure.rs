//! The work on which old and new settings are compared: short transactions, like sysbench's OLTP, or the user's own.
//!
//! A transaction of the first kind: four rows read by their key, one updated in an indexed column and one in another,
//! one deleted and inserted again. A round: start with nothing cached, transactions for a time, stop; transactions ÷
//! time of both. Stopping writes all dirty pages back and is counted: settings that only put writes off win nothing.
//! [`crate::servers`] has the rounds.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use flashwise_block::Progress;
use mysql::prelude::Queryable;
use mysql::{Conn, TxOpts};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::log::read_logs;
use super::private::{PrivateMariadb, Programs};
use super::replay::{ReplayConnection, grants, quoted};
use super::server::{Server, failed};
use super::statements::{SqlFile, Statement};
use crate::TuneError;
use crate::servers::logged::{LoggedWorkload, Replay};
use crate::servers::{
    AttachRequest, Attached, Done, MeasuredSettings, PrivatePlace, Rounds, SettingProposal, Side, Terms, check_rounds,
    check_space, compare,
};

/// Size of a row with its index, with space to grow.
const ROW_BYTES: u64 = 400;
/// An instance without tables, its log included.
const EMPTY_BYTES: u64 = 256 << 20;
/// Bytes of tables that a byte of SQL makes at most, with indexes and space to grow.
const LOADED_PER_BYTE: u64 = 8;
/// Keeps the two seeds of a session apart.
const SECOND_SEED: u32 = 0x9e37_79b9;
/// Rows of a statement that loads.
const LOADED_AT_ONCE: u32 = 500;
/// Errors after which a transaction is restarted: a deadlock, and a lock wait timeout.
pub(super) const IN_THE_WAY: [u16; 2] = [1213, 1205];

/// How old and new settings are measured.
#[derive(Clone, Debug)]
pub struct MariadbMeasureOptions {
    /// Folder of the server's programs; those that are installed where none is given.
    pub programs: Option<PathBuf>,
    /// Where the private server's data goes; the directory for temporary files where none is given.
    pub directory: Option<PathBuf>,
    /// Attaches the simulated drive of the server's data and measures there; then there is no directory.
    pub attach: Option<AttachRequest>,
    /// SQL that makes and fills the tables in place of the test table.
    pub load: Option<PathBuf>,
    /// Statements of one transaction, which each session repeats.
    pub script: Option<PathBuf>,
    /// Files of a server's general log in place of such statements.
    pub log: Vec<PathBuf>,
    /// Rows of the table.
    pub rows: u32,
    /// Sessions at once.
    pub clients: u32,
    /// Rounds of old and of new settings.
    pub rounds: u32,
    /// Time of a round without its end.
    pub round_time: Duration,
    /// Seed of every random choice.
    pub seed: u64,
}

impl MariadbMeasureOptions {
    /// Refuses options from which nothing can be learned, and reads the user's files.
    ///
    /// # Errors
    /// With the option that is wrong, or when a file cannot be read.
    pub(super) fn check(&self) -> Result<OwnSql, TuneError> {
        check_rounds(self.rounds)?;
        if self.rows == 0 || self.clients == 0 || self.round_time.is_zero() {
            return Err(TuneError::Options("--rows, --clients and --round-time must be more than 0".to_owned()));
        }
        let fail = |message: &str| Err(TuneError::Options(message.to_owned()));
        if self.attach.is_some() && self.directory.is_some() {
            return fail("--attached has a directory of its own: leave out --directory");
        }
        if self.load.is_some() && self.script.is_none() && self.log.is_empty() {
            return fail("--load creates tables that the test transactions do not use: give yours with --sql or --log");
        }
        if !self.log.is_empty() && (self.load.is_none() || self.script.is_some()) {
            return fail(
                "--log replaces --sql, and needs --load with a dump of the database from before the log starts",
            );
        }
        let read = |file: &Option<PathBuf>| file.as_deref().map(SqlFile::read).transpose();
        let log = match &*self.log {
            [] => None,
            files => Some(read_logs(files)?),
        };
        Ok(OwnSql { load: read(&self.load)?, script: read(&self.script)?, log })
    }

    /// Finds the programs, and checks that the instances fit where they are to be made.
    ///
    /// # Errors
    /// A missing server is reported first, even if space is short too.
    pub(super) fn check_place(&self, own: &OwnSql) -> Result<Programs, TuneError> {
        let programs = Programs::find(self.programs.as_deref())?;
        self.check_space(own.load.as_ref())?;
        Ok(programs)
    }

    fn check_space(&self, load: Option<&SqlFile>) -> Result<(), TuneError> {
        let loaded = match load {
            Some(file) => file.bytes().saturating_mul(LOADED_PER_BYTE),
            None => u64::from(self.rows) * ROW_BYTES,
        };
        check_space(self.directory.as_deref(), loaded.saturating_add(EMPTY_BYTES))
    }

    fn summary(&self) -> String {
        let tables = match &self.load {
            Some(file) => format!("tables of {}", file.display()),
            None => format!("{} rows", self.rows),
        };
        let work = match (&self.script, self.log.first()) {
            (_, Some(file)) => format!("the transactions of {}", file.display()),
            (Some(file), _) => format!("the statements of {}", file.display()),
            (None, None) => "short OLTP transactions".to_owned(),
        };
        let up_to = if self.log.is_empty() { "" } else { "up to " };
        format!(
            "{work} on {tables}, {up_to}{} sessions, rounds of {:.1} s and the shutdown, starting with empty caches",
            self.clients,
            self.round_time.as_secs_f64()
        )
    }
}

/// The user's SQL.
#[derive(Debug, Default)]
pub(super) struct OwnSql {
    /// Makes and fills the tables.
    pub(super) load: Option<SqlFile>,
    /// One transaction.
    pub(super) script: Option<SqlFile>,
    /// Transactions that a server has logged.
    pub(super) log: Option<LoggedWorkload>,
}

impl OwnSql {
    /// The database of the tables: that of the log, whose statements may name it.
    fn database(&self) -> &str {
        self.log.as_ref().and_then(|log| log.database.as_deref()).unwrap_or(DATABASE)
    }
}

/// The database of the user's tables.
const DATABASE: &str = "flashwise";

/// Measures proposals that a server can be started with.
///
/// # Errors
/// When no server is installed, or it fails; nothing is left behind then either.
pub(super) fn measure(
    options: &MariadbMeasureOptions,
    attached: Option<&Attached>,
    own: &OwnSql,
    proposals: &[SettingProposal],
    progress: &mut dyn Progress,
) -> Result<MeasuredSettings, TuneError> {
    let programs = options.check_place(own)?;
    let server = PrivateMariadb::of(programs, options.directory.as_deref())?;
    let directory = options.directory.as_deref();
    let terms = Terms { rounds: options.rounds, directory, attached, workload: options.summary() };
    let replay = |log| Replay::new(log, options.rounds, options.round_time, options.clients);
    let mut rounds = OltpRounds { server, options, own, replay: own.log.as_ref().map(replay) };
    let mut measured = compare(&mut rounds, proposals, terms, progress)?;
    measured.log = rounds.replay.map(|replay| replay.report(None));
    Ok(measured)
}

/// Rounds of short transactions.
struct OltpRounds<'a> {
    server: PrivateMariadb,
    options: &'a MariadbMeasureOptions,
    own: &'a OwnSql,
    replay: Option<Replay<'a>>,
}

impl Rounds for OltpRounds<'_> {
    const PROGRAM: &'static str = "mariadbd";

    fn place(&mut self) -> &mut PrivatePlace {
        &mut self.server.place
    }

    fn load(&mut self, instance: &str, copy: &str, progress: &mut dyn Progress) -> Result<String, TuneError> {
        let server = &mut self.server;
        server.create(instance, progress)?;
        server.place.at("loading".to_owned(), 0.0);
        server.start(instance, &[], progress)?;
        let program = Server::connect(&server.place())?.facts.program;
        match &self.own.load {
            Some(file) => load(&mut server.connect()?, file, self.own.database(), progress)?,
            None => fill(&mut server.connect()?, self.options, progress)?,
        }
        if self.replay.is_some() {
            let mut connection = server.connect()?;
            let made = grants(self.own.database()).iter().try_for_each(|grant| connection.query_drop(grant));
            made.map_err(|e| failed("loading", &e))?;
        }
        server.stop(progress)?;
        server.copy(instance, copy, progress)?;
        Ok(program)
    }

    /// The server's end is part of the time.
    fn round(&mut self, side: &Side, round: u32, progress: &mut dyn Progress) -> Result<Done, TuneError> {
        let (server, options, script) = (&mut self.server, self.options, self.own.script.as_ref());
        server.drop_page_cache(side.name)?;
        server.start(side.name, &side.settings, progress)?;
        if let Some(replay) = &mut self.replay {
            let connect = |_| ReplayConnection::connect(server.options()?, self.own.database());
            let connections = (0..replay.connections()).map(connect).collect::<Result<Vec<_>, _>>()?;
            let started = Instant::now();
            let transactions = replay.round(round, connections)?;
            server.stop(progress)?;
            return Ok(Done { transactions, time: started.elapsed() });
        }
        let connections = (0..options.clients).map(|_| server.connect()).collect::<Result<Vec<_>, _>>()?;
        let started = Instant::now();
        let end = started + options.round_time;
        let transactions = thread::scope(|scope| {
            let session = |(number, connection): (u64, Conn)| {
                // The same choices for both sides of a pair.
                let seed = options.seed.wrapping_add(u64::from(round)).wrapping_mul(1_000_003).wrapping_add(number);
                scope.spawn(move || match script {
                    Some(script) => repeat(connection, script, seed, end),
                    None => play(connection, options.rows, seed, end),
                })
            };
            let sessions: Vec<_> = (0..).zip(connections).map(session).collect();
            let lost =
                || TuneError::Server { context: "measuring".to_owned(), message: "a session was lost".to_owned() };
            let ends: Vec<_> = sessions.into_iter().map(|session| session.join().map_err(|_| lost())?).collect();
            ends.into_iter().sum::<Result<u64, TuneError>>()
        })?;
        server.stop(progress)?;
        Ok(Done { transactions, time: started.elapsed() })
    }
}

/// Runs a file that makes and fills tables in a new database.
pub(super) fn load(
    connection: &mut Conn,
    file: &SqlFile,
    database: &str,
    progress: &mut dyn Progress,
) -> Result<(), TuneError> {
    let name = quoted(database);
    let made = connection.query_drop(format!("CREATE DATABASE {name}"));
    let made = made.and_then(|()| connection.query_drop(format!("USE {name}")));
    made.map_err(|e| failed("loading", &e))?;
    let statements = file.statements();
    let count = statements.len();
    for (number, statement) in statements.enumerate() {
        progress.advance("loading", number as f64 / count as f64)?;
        connection.query_drop(statement.text).map_err(|e| failed_at(file, statement, &e))?;
    }
    Ok(())
}

/// A statement of the user's failed.
fn failed_at(file: &SqlFile, statement: Statement<'_>, error: &mysql::Error) -> TuneError {
    failed(&format!("{}, line {}", file.path().display(), statement.line), error)
}

/// The user's own transaction, again and again until a moment.
pub(super) fn repeat(mut connection: Conn, script: &SqlFile, seed: u64, end: Instant) -> Result<u64, TuneError> {
    // RAND() without an argument then gives the same numbers for both sides of a pair.
    let (first, second) = (seed as u32, (seed >> 32) as u32 ^ SECOND_SEED);
    let prepared = format!("SET SESSION rand_seed1 = {first}, rand_seed2 = {second}");
    connection.query_drop("USE flashwise").map_err(|e| failed("measuring", &e))?;
    connection.query_drop(prepared).map_err(|e| failed("measuring", &e))?;
    let mut done = 0;
    while Instant::now() < end {
        match script.statements().try_for_each(|s| connection.query_drop(s.text).map_err(|e| (s, e))) {
            Ok(()) => done += 1,
            Err((_, mysql::Error::MySqlError(refusal))) if IN_THE_WAY.contains(&refusal.code) => {
                connection.query_drop("ROLLBACK").map_err(|e| failed("measuring", &e))?;
            }
            Err((statement, error)) => return Err(failed_at(script, statement, &error)),
        }
    }
    Ok(done)
}

/// Makes and fills the table.
fn fill(connection: &mut Conn, options: &MariadbMeasureOptions, progress: &mut dyn Progress) -> Result<(), TuneError> {
    let fail = |e: mysql::Error| failed("loading", &e);
    let table = "CREATE DATABASE flashwise; CREATE TABLE flashwise.t (id INT UNSIGNED PRIMARY KEY, k INT UNSIGNED NOT NULL, \
                 c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k)) ENGINE = InnoDB";
    table.split(';').try_for_each(|statement| connection.query_drop(statement)).map_err(fail)?;
    let mut random = Pcg64Mcg::seed_from_u64(options.seed);
    let mut next = 1;
    while next <= options.rows {
        let last = options.rows.min(next + LOADED_AT_ONCE - 1);
        let row = |id: u32| {
            let (k, c): (u32, u64) = (random.random_range(1..=options.rows), random.random());
            format!("({id}, {k}, '{}', '{}')", text(c, 119), text(!c, 59))
        };
        let rows = (next..=last).map(row).collect::<Vec<_>>().join(", ");
        connection.query_drop(format!("INSERT INTO flashwise.t VALUES {rows}")).map_err(fail)?;
        progress.advance("loading", f64::from(last) / f64::from(options.rows))?;
        next = last + 1;
    }
    Ok(())
}

/// Digits that do not repeat, as sysbench's.
fn text(seed: u64, length: usize) -> String {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    (0..length).map(|at| if at % 12 == 11 { '-' } else { char::from(b'0' + random.random_range(0..10_u8)) }).collect()
}

/// Transactions of one session until a moment.
fn play(mut connection: Conn, rows: u32, seed: u64, end: Instant) -> Result<u64, TuneError> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut done = 0;
    while Instant::now() < end {
        match transaction(&mut connection, rows, &mut random) {
            Ok(()) => done += 1,
            Err(mysql::Error::MySqlError(refusal)) if IN_THE_WAY.contains(&refusal.code) => {}
            Err(error) => return Err(failed("measuring", &error)),
        }
    }
    Ok(done)
}

fn transaction(connection: &mut Conn, rows: u32, random: &mut Pcg64Mcg) -> Result<(), mysql::Error> {
    let mut row = || random.random_range(1..=rows);
    let (read, updated, changed, replaced, key) = ([row(), row(), row(), row()], row(), row(), row(), row());
    let (c, pad) = (text(u64::from(key), 119), text(u64::from(updated), 59));
    let mut work = connection.start_transaction(TxOpts::default())?;
    for id in read {
        work.exec_drop("SELECT c FROM flashwise.t WHERE id = ?", (id,))?;
    }
    work.exec_drop("UPDATE flashwise.t SET k = k + 1 WHERE id = ?", (updated,))?;
    work.exec_drop("UPDATE flashwise.t SET c = ? WHERE id = ?", (&c, changed))?;
    work.exec_drop("DELETE FROM flashwise.t WHERE id = ?", (replaced,))?;
    work.exec_drop("INSERT INTO flashwise.t (id, k, c, pad) VALUES (?, ?, ?, ?)", (replaced, key, &c, &pad))?;
    work.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_nothing_is_refused() {
        let options = MariadbMeasureOptions {
            programs: None,
            directory: None,
            attach: None,
            load: None,
            script: None,
            log: Vec::new(),
            rows: 1_000,
            clients: 1,
            rounds: 5,
            round_time: Duration::from_secs(1),
            seed: 1,
        };
        let error = |options: &MariadbMeasureOptions| options.check().unwrap_err().to_string();
        assert!(error(&MariadbMeasureOptions { rounds: 4, ..options.clone() }).contains("at least 5"));
        assert!(error(&MariadbMeasureOptions { clients: 0, ..options.clone() }).contains("--clients"));
        let no_space = |options: &MariadbMeasureOptions| options.check_space(None).unwrap_err();
        let nowhere = MariadbMeasureOptions { directory: Some("/no/such/place".into()), ..options.clone() };
        assert!(no_space(&nowhere).to_string().contains("no such directory"));
        assert!(no_space(&MariadbMeasureOptions { rows: u32::MAX, ..options }).is_refusal());
    }

    #[test]
    fn rows_have_texts_of_their_own() {
        assert_eq!((text(1, 119).len(), text(1, 119) == text(1, 119)), (119, true));
        assert_ne!(text(1, 59), text(2, 59));
    }
}
