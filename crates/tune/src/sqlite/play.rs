//! Runs a script and measures each statement.
//!
//! Sessions are interleaved by their think times: the session that has been ready for longest runs its next statement
//! to its end, and the clock moves on to the next one that is ready. A recording runs in the order in which it was
//! recorded instead, because a statement may need what one of another session did before it; think times only move the
//! clock. Statements do not overlap in time, but transactions of different sessions do, with SQLite's own locks between
//! them: a statement that finds the database locked waits until another session's transaction has ended, and others
//! run meanwhile. Where SQLite can only refuse (another session wrote since the transaction read, or two wait for each
//! other), the transaction is rolled back and starts again, as its program would have to; the time of the failed
//! attempt counts.
//!
//! Think times pass on the clock of drive and kernel. What is counted is the time of the statements.

use std::sync::atomic::Ordering;

use flashwise_block::{Nanos, Progress};
use rusqlite::{Connection, ErrorCode, Statement, ffi};

use super::budget::Stopwatch;
use super::run::Rounds;
use super::script::{Order, Script, SessionScript, Step};
use super::session::Session;
use super::user::UserWorkload;
use crate::TuneError;

/// Rounds that the statements are split into, for intervals.
pub(super) const ROUNDS: usize = 10;
/// Rows of one statement between two reports of progress.
const ROWS_BETWEEN_PROGRESS: u64 = 4096;
/// Statements between two changes of what the progress shows.
const STATEMENTS_SHOWN: usize = 256;
/// Statements that a connection keeps prepared at most.
const PREPARED_MAX: usize = 1024;
/// How often one transaction is started again before the run is given up.
const RESTARTS_MAX: u32 = 100;
/// The longest pause between two checks for an interrupt.
const PAUSE_MAX: Nanos = Nanos(100_000_000);

/// A statement by what it is measured as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    /// BEGIN, COMMIT, PRAGMA: time that belongs to the writes around it.
    Other,
}

/// A session under way.
struct Turn<'a> {
    db: &'a Connection,
    script: &'a SessionScript,
    /// The next statement, counted over all passes, and where to stop once no transaction is open.
    next: usize,
    limit: usize,
    /// When it is ready for that.
    ready: Nanos,
    /// Whether it waits for another session's transaction to end, and since when its statement has been waiting.
    is_blocked: bool,
    waiting_since: Option<Nanos>,
    is_finished: bool,
    transaction: Transaction,
}

/// What a session has done since it last committed.
#[derive(Default)]
struct Transaction {
    first: usize,
    done: Vec<(Kind, Nanos)>,
    /// Time of attempts that were rolled back.
    lost: Nanos,
    /// Time that it waited for locks.
    waited: Nanos,
    restarts: u32,
}

impl Turn<'_> {
    fn all(&self, passes: usize) -> usize {
        self.script.steps.len() * passes
    }

    fn step(&self) -> (&Step, usize) {
        let steps = &self.script.steps;
        (&steps[self.next % steps.len()], self.next / steps.len())
    }

    /// The session with the lowest one runs next.
    fn rank(&self, order: Order) -> (u64, usize) {
        match (order, self.step()) {
            (Order::Ready, _) => (self.ready.0, 0),
            (Order::File, (step, pass)) => (pass as u64, step.number),
        }
    }
}

/// How a statement ended.
enum Ending {
    Done(Kind),
    /// Another session holds a lock; whether waiting cannot help.
    Locked {
        for_good: bool,
    },
}

struct Player<'a> {
    session: &'a Session,
    workload: &'a UserWorkload,
    script: &'a Script,
    turns: Vec<Turn<'a>>,
    label: &'a str,
    rounds: &'a mut Rounds,
    progress: &'a mut dyn Progress,
    /// Runs since the statements started.
    stopwatch: Stopwatch,
    /// Statements in the order in which their transactions ended.
    done: Vec<(Kind, Nanos)>,
    /// All of them so far, those of open transactions too.
    count: usize,
}

/// Runs the statements, one connection for each session, and measures each.
pub(crate) fn measure(
    session: &Session,
    connections: &[&Connection],
    label: &str,
    workload: &UserWorkload,
    rounds: &mut Rounds,
    progress: &mut dyn Progress,
) -> Result<(), TuneError> {
    let script = workload.script()?;
    let turns = connections.iter().zip(&script.sessions).map(|(&db, own)| Turn {
        db,
        script: own,
        next: 0,
        limit: script.share(own, workload.extent.statements.unwrap_or(usize::MAX)),
        ready: Nanos(0),
        is_blocked: false,
        waiting_since: None,
        is_finished: false,
        transaction: Transaction::default(),
    });
    let turns: Vec<Turn<'_>> = turns.collect();
    for turn in &turns {
        if script.repeats() {
            turn.db.set_prepared_statement_cache_capacity(turn.script.steps.len().min(PREPARED_MAX));
        }
        if turns.len() > 1 {
            // The other sessions are run by this very thread.
            turn.db.busy_timeout(std::time::Duration::ZERO).map_err(|e| session.sql_error("busy_timeout", &e))?;
        }
    }
    let (stopwatch, done, count) = (Stopwatch::start(), Vec::new(), 0);
    let script = &script;
    let mut player = Player { session, workload, script, turns, label, rounds, progress, stopwatch, done, count };
    player.start();
    while let Some(n) = player.choose()? {
        player.take_turn(n)?;
    }
    player.finish();
    Ok(())
}

impl Player<'_> {
    fn start(&mut self) {
        let now = self.session.vfs().now();
        for n in 0..self.turns.len() {
            self.set_ready(n, now);
        }
    }

    /// The session is ready for its next statement once it has thought.
    fn set_ready(&mut self, n: usize, now: Nanos) {
        let turn = &mut self.turns[n];
        if turn.next < turn.all(self.script.passes) {
            let think = turn.step().0.think;
            let think = self.workload.think_limit.map_or(think, |limit| think.min(limit));
            turn.ready = Nanos(now.0.saturating_add(think.0));
        }
    }

    /// The session whose turn it is; the clock stands where it is ready.
    fn choose(&mut self) -> Result<Option<usize>, TuneError> {
        loop {
            self.retire();
            let free = (0..self.turns.len()).filter(|&n| !self.turns[n].is_finished && !self.turns[n].is_blocked);
            let Some(next) = free.min_by_key(|&n| self.turns[n].rank(self.script.order)) else {
                if self.turns.iter().all(|turn| turn.is_finished) {
                    return Ok(None);
                }
                self.break_deadlock()?;
                continue;
            };
            if self.pause_until(self.turns[next].ready)? {
                return Ok(Some(next));
            }
        }
    }

    /// Ends the sessions that have done their share, never within a transaction.
    fn retire(&mut self) {
        let is_over = self.is_over();
        for n in 0..self.turns.len() {
            let turn = &self.turns[n];
            if turn.is_finished {
                continue;
            }
            let all = turn.all(self.script.passes);
            let is_used_up = (turn.next >= turn.limit || is_over) && turn.db.is_autocommit();
            if turn.next >= all || is_used_up {
                self.rounds.is_cut |= turn.next < all;
                self.turns[n].is_finished = true;
                self.end_transaction(n);
                if self.turns.len() > 1 && !self.turns[n].db.is_autocommit() {
                    // Others would wait for it for good. What fails here fails at the close of the connection, too.
                    let _ = self.turns[n].db.execute_batch("ROLLBACK");
                }
                self.unblock();
            }
        }
    }

    /// Lets time pass. `false` when the time for the run is over before.
    fn pause_until(&mut self, ready: Nanos) -> Result<bool, TuneError> {
        loop {
            let left = ready.since(self.session.vfs().now());
            if left.0 == 0 {
                return Ok(true);
            }
            if self.is_over() {
                return Ok(self.turns.iter().any(|turn| !turn.is_finished && !turn.db.is_autocommit()));
            }
            self.progress.advance(&self.stage(), 0.0)?;
            self.session.vfs().pause(left.min(PAUSE_MAX))?;
        }
    }

    /// Whether the time of the run is over; a statement is run in any case.
    fn is_over(&self) -> bool {
        self.count > 0 && self.workload.extent.is_over(&self.stopwatch)
    }

    fn stage(&self) -> String {
        format!("{}: statement {}", self.label, self.count - self.count % STATEMENTS_SHOWN)
    }

    /// Runs one statement of a session.
    fn take_turn(&mut self, n: usize) -> Result<(), TuneError> {
        let stage = self.stage();
        self.progress.advance(&stage, 0.0)?;
        let started = self.session.vfs().now();
        let ending = self.run_statement(n, &stage)?;
        let now = self.session.vfs().now();
        let time = now.since(started);
        match ending {
            Ending::Done(kind) => self.done(n, kind, started, time),
            Ending::Locked { for_good: true } => {
                self.turns[n].transaction.lost += time;
                self.restart(n)?;
            }
            Ending::Locked { for_good: false } => {
                let turn = &mut self.turns[n];
                turn.transaction.lost += time;
                turn.is_blocked = true;
                turn.waiting_since.get_or_insert(now);
            }
        }
        Ok(())
    }

    fn run_statement(&mut self, n: usize, stage: &str) -> Result<Ending, TuneError> {
        let (script, session, is_alone) = (self.script, self.session, self.turns.len() == 1);
        let turn = &self.turns[n];
        let (step, pass) = turn.step();
        let sql = script.sql(step);
        let run = |statement: &mut Statement<'_>, progress: &mut dyn Progress| {
            bind(script, step, pass, statement)?;
            let kind = execute(statement, step.has_parameters(), &mut || progress.advance(stage, 0.0))?;
            session.ended(statement);
            Ok(kind)
        };
        let ran = match script.repeats() {
            true => turn.db.prepare_cached(sql).map_err(Broken::from).and_then(|mut s| run(&mut s, self.progress)),
            false => turn.db.prepare(sql).map_err(Broken::from).and_then(|mut s| run(&mut s, self.progress)),
        };
        match ran {
            Ok(kind) => Ok(Ending::Done(kind)),
            Err(Broken::Sqlite(error)) => match locked(&error).filter(|_| !is_alone) {
                Some(for_good) => Ok(Ending::Locked { for_good }),
                None => Err(self.error(step, &error)),
            },
            Err(Broken::NoValue(name)) => {
                Err(TuneError::Sql { context: script.place(step), message: format!("no value for {name}") })
            }
            Err(Broken::Interrupted(error)) => Err(error.into()),
        }
    }

    fn error(&self, step: &Step, error: &rusqlite::Error) -> TuneError {
        let context = self.script.place(step);
        match error.sqlite_error_code() {
            Some(ErrorCode::AuthorizationForStatementDenied) => TuneError::Sql {
                context,
                message: "ATTACH and VACUUM INTO would write outside the copy of your database, and are not run".into(),
            },
            _ => self.session.sql_error(&context, error),
        }
    }

    /// A statement has ended: it is counted with its transaction.
    fn done(&mut self, n: usize, kind: Kind, started: Nanos, time: Nanos) {
        let now = self.session.vfs().now();
        let turn = &mut self.turns[n];
        if turn.transaction.done.is_empty() {
            turn.transaction.first = turn.next;
        }
        let waited = turn.waiting_since.take().map_or(Nanos(0), |since| started.since(since));
        let time = time + std::mem::take(&mut turn.transaction.lost);
        if kind == Kind::Read {
            self.rounds.select_latency.record(time + waited);
        }
        turn.transaction.waited += waited;
        turn.transaction.done.push((kind, time));
        turn.next += 1;
        self.count += 1;
        if turn.db.is_autocommit() {
            self.end_transaction(n);
            self.unblock();
        }
        self.set_ready(n, now);
    }

    fn end_transaction(&mut self, n: usize) {
        let turn = &mut self.turns[n];
        let ended = std::mem::take(&mut turn.transaction);
        if turn.db.is_autocommit() && ended.done.iter().any(|&(kind, _)| kind == Kind::Write) {
            let time = ended.done.iter().fold(ended.waited, |sum, &(_, time)| sum + time);
            self.rounds.transaction_latency.record(time);
        }
        self.done.extend(ended.done);
    }

    /// Locks were released.
    fn unblock(&mut self) {
        self.turns.iter_mut().for_each(|turn| turn.is_blocked = false);
    }

    /// Every session waits for another one: the one that came last gives way.
    fn break_deadlock(&mut self) -> Result<(), TuneError> {
        let mut waiting = (0..self.turns.len()).filter(|&n| self.turns[n].is_blocked);
        let holding = waiting.clone().filter(|&n| !self.turns[n].db.is_autocommit());
        match holding.max_by_key(|&n| self.turns[n].waiting_since) {
            Some(last) => {
                self.restart(last)?;
                // Until another session has ended its transaction: it would get into its way again.
                self.turns[last].is_blocked = true;
                Ok(())
            }
            None => {
                let place = waiting.next_back().map(|n| self.script.place(self.turns[n].step().0)).unwrap_or_default();
                let message = "the database is locked, and no session has a transaction".into();
                Err(TuneError::Sql { context: place, message })
            }
        }
    }

    /// Rolls a transaction back, which starts again from its first statement.
    fn restart(&mut self, n: usize) -> Result<(), TuneError> {
        let started = self.session.vfs().now();
        let (step, _) = self.turns[n].step();
        if !self.turns[n].db.is_autocommit() {
            self.turns[n].db.execute_batch("ROLLBACK").map_err(|e| self.error(step, &e))?;
        }
        let now = self.session.vfs().now();
        let turn = &mut self.turns[n];
        turn.transaction.restarts += 1;
        if turn.transaction.restarts > RESTARTS_MAX {
            let message = format!(
                "its transaction was rolled back {RESTARTS_MAX} times, because other sessions write meanwhile; start it \
                 with BEGIN IMMEDIATE"
            );
            return Err(TuneError::Sql { context: self.script.place(turn.step().0), message });
        }
        self.workload.restarts.fetch_add(1, Ordering::Relaxed);
        let transaction = &mut turn.transaction;
        let undone = std::mem::take(&mut transaction.done);
        transaction.lost += undone.iter().fold(now.since(started), |sum, &(_, time)| sum + time);
        if !undone.is_empty() {
            turn.next = transaction.first;
        }
        self.count -= undone.len();
        turn.ready = now;
        turn.waiting_since = None;
        self.unblock();
        Ok(())
    }

    fn finish(&mut self) {
        self.rounds.statements = self.done.len();
        for round in self.done.chunks(self.done.len().div_ceil(ROUNDS).max(1)) {
            push_rates(round, self.rounds);
        }
    }
}

/// Why a statement has no result.
enum Broken {
    Sqlite(rusqlite::Error),
    NoValue(String),
    Interrupted(flashwise_block::BlockError),
}

impl From<rusqlite::Error> for Broken {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Whether a statement failed because of another connection's lock; then, whether waiting cannot help.
fn locked(error: &rusqlite::Error) -> Option<bool> {
    let code = error.sqlite_error()?.extended_code;
    match code & 0xff {
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => Some(code == ffi::SQLITE_BUSY_SNAPSHOT),
        _ => None,
    }
}

fn bind(script: &Script, step: &Step, pass: usize, statement: &mut Statement<'_>) -> Result<(), Broken> {
    if statement.parameter_count() > step.parameters() {
        let index = statement.parameter_count();
        return Err(Broken::NoValue(statement.parameter_name(index).map_or(format!("?{index}"), str::to_owned)));
    }
    // A number that the statement skips stays NULL, as SQLite has it.
    for (index, value) in script.values(step, pass) {
        statement.raw_bind_parameter(index, value)?;
    }
    Ok(())
}

/// Steps a statement to its end.
fn execute(
    statement: &mut Statement<'_>,
    has_parameters: bool,
    report: &mut dyn FnMut() -> Result<(), flashwise_block::BlockError>,
) -> Result<Kind, Broken> {
    let kind = match (statement.readonly(), statement.column_count()) {
        (true, 0) => Kind::Other,
        (true, _) => Kind::Read,
        (false, _) => Kind::Write,
    };
    let mut rows = if has_parameters { statement.raw_query() } else { statement.query([])? };
    let mut count = 0_u64;
    while rows.next()?.is_some() {
        count += 1;
        if count.is_multiple_of(ROWS_BETWEEN_PROGRESS) {
            report().map_err(Broken::Interrupted)?;
        }
    }
    Ok(kind)
}

fn push_rates(round: &[(Kind, Nanos)], rounds: &mut Rounds) {
    rounds.times.push(round.iter().fold(Nanos(0), |sum, &(_, time)| sum + time));
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
