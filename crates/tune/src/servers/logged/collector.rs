//! From statements in the order of a log to transactions of sessions.
//!
//! ```text
//!   session 1  BEGIN ─ UPDATE ─────────────── COMMIT        ─▶ transaction 0
//!   session 2            SELECT                             ─▶ transaction 1
//!   session 1                                        SELECT ─▶ transaction 2
//! ```
//!
//! A transaction has its place in the order where its first statement is. What a log leaves open is closed: a session
//! that ends rolls back, as the server does; where a new transaction starts in an open one, its end is missing, as in a
//! log of samples, and it commits.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Counts, LoggedStatement, LoggedTransaction, LoggedWorkload};

/// Statements of a log that are kept.
const STATEMENTS_MAX: usize = 4_000_000;
/// Their text and values, bytes: as much as a file of statements may have.
const TEXT_BYTES_MAX: usize = 256 << 20;
/// Databases of a log that are kept apart; the next name ends the reading. Servers have fewer.
const DATABASES_MAX: usize = 10_000;
/// Sessions that are open at once; PostgreSQL has 262,143 at most, MariaDB 100,000.
const OPEN_SESSIONS_MAX: usize = 300_000;

const BEGIN: &str = "START TRANSACTION";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";

/// Values of parameters, from the first one; `None` is NULL.
pub(crate) type Values = Box<[Option<Box<str>>]>;

/// What a statement does to the transaction of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Begins,
    Commits,
    RollsBack,
    /// Rolls back to a savepoint: the transaction goes on.
    ToSavepoint,
    /// Sets something of the session.
    Sets,
    /// `SET autocommit`.
    Autocommit(bool),
    /// Anything else.
    Works,
    /// It cannot be replayed, for a reason.
    LeftOut(&'static str),
}

/// A statement of a log.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    pub(crate) sql: &'a str,
    pub(crate) values: Option<Values>,
    /// One for each statement of the text.
    pub(crate) effects: Vec<Effect>,
    /// Whether the log has it before it ran, so that it may have failed.
    pub(crate) may_fail: bool,
}

/// A session that is open at some point of a log.
#[derive(Debug)]
struct Session {
    number: u32,
    database: u32,
    /// Its open transaction.
    open: Option<usize>,
    /// The transaction of its last statement, if that may have failed.
    last: Option<usize>,
    commits_itself: bool,
}

#[derive(Debug)]
struct Collected {
    transaction: LoggedTransaction,
    database: u32,
    /// A statement failed, so that `COMMIT` rolls back.
    is_aborted: bool,
}

/// Collects the statements of a log.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    sessions: HashMap<Box<str>, Session>,
    /// How many there have been.
    session_count: u32,
    transactions: Vec<Collected>,
    statements: usize,
    bytes: usize,
    texts: HashSet<Arc<str>>,
    /// Statements of each database.
    databases: Vec<(Option<Box<str>>, u64)>,
    left_out: Counts,
    is_full: bool,
}

impl Collector {
    /// Whether no more is kept.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Counts what is not replayed.
    pub(crate) fn leave_out(&mut self, reason: &str, example: &str) {
        self.left_out.add(reason, example);
    }

    /// A session starts, on a database if the log names one.
    pub(crate) fn start(&mut self, key: &str, database: Option<&str>) {
        self.end(key);
        self.session(key);
        self.use_database(key, database);
    }

    /// A session ends: the server rolls back.
    pub(crate) fn end(&mut self, key: &str) {
        let Some(session) = self.sessions.remove(key) else { return };
        if let Some(open) = session.open {
            self.left_out.add("transactions that their session left open: rolled back at their end", key);
            self.close(open, ROLLBACK);
        }
    }

    /// The session's further statements are on a database.
    pub(crate) fn use_database(&mut self, key: &str, database: Option<&str>) {
        let known = self.databases.iter().position(|(name, _)| name.as_deref() == database);
        if known.is_none() && self.databases.len() >= DATABASES_MAX {
            self.is_full = true;
            return;
        }
        let number = known.unwrap_or_else(|| {
            self.databases.push((database.map(Box::from), 0));
            self.databases.len() - 1
        });
        if let Some(session) = self.session(key) {
            session.database = u32::try_from(number).unwrap_or(u32::MAX);
        }
    }

    fn session(&mut self, key: &str) -> Option<&mut Session> {
        if !self.sessions.contains_key(key) {
            if self.sessions.len() >= OPEN_SESSIONS_MAX || self.session_count == u32::MAX {
                self.is_full = true;
                return None;
            }
            if self.databases.is_empty() {
                self.databases.push((None, 0));
            }
            let number = self.session_count;
            self.session_count += 1;
            let session = Session { number, database: 0, open: None, last: None, commits_itself: true };
            self.sessions.insert(key.into(), session);
        }
        self.sessions.get_mut(key)
    }

    /// A statement of a session.
    pub(crate) fn say(&mut self, key: &str, said: Said<'_>) {
        let left_out = said.effects.iter().find_map(|effect| match effect {
            Effect::LeftOut(why) => Some(*why),
            _ => None,
        });
        if let Some(why) = left_out {
            return self.leave_out(why, said.sql);
        }
        let Some(session) = self.session(key) else { return };
        let (open, commits_itself, number, database) =
            (session.open, session.commits_itself, session.number, session.database);
        session.last = None;
        let is_end = |effect: &Effect| matches!(effect, Effect::Commits | Effect::RollsBack | Effect::ToSavepoint);
        if said.effects.is_empty() || (open.is_none() && said.effects.iter().all(is_end)) {
            return self.leave_out("ends of transactions whose start is not in the log", said.sql);
        }
        if let [Effect::Autocommit(on)] = *said.effects {
            return self.set_autocommit(key, on);
        }
        if let (Some(unfinished), Effect::Begins) = (open, said.effects[0]) {
            self.leave_out("transactions whose end is not in the log: committed", said.sql);
            self.close(unfinished, COMMIT);
        }
        let open = open.filter(|_| said.effects[0] != Effect::Begins);
        let works = said.effects.contains(&Effect::Works);
        let (at, mut is_open) = match open {
            Some(at) => (at, true),
            None => {
                let at = self.transactions.len();
                let transaction = LoggedTransaction { session: number, statements: Vec::new(), works: false };
                self.transactions.push(Collected { transaction, database, is_aborted: false });
                if !commits_itself && works {
                    self.push(at, BEGIN, None);
                }
                (at, !commits_itself && works)
            }
        };
        let is_commit = said.effects == [Effect::Commits];
        match is_commit && self.transactions[at].is_aborted {
            true => self.push(at, ROLLBACK, None),
            false => self.push(at, said.sql, said.values),
        }
        let transaction = &mut self.transactions[at];
        transaction.transaction.works |= works;
        for effect in &said.effects {
            match effect {
                Effect::Begins => is_open = true,
                Effect::Commits | Effect::RollsBack => is_open = false,
                Effect::ToSavepoint => transaction.is_aborted = false,
                _ => {}
            }
        }
        if let Some(known) = self.databases.get_mut(database as usize) {
            known.1 += 1;
        }
        if let Some(session) = self.sessions.get_mut(key) {
            session.open = is_open.then_some(at);
            session.last = said.may_fail.then_some(at);
        }
    }

    /// The session's last statement failed, if it was this one.
    pub(crate) fn fail(&mut self, key: &str, sql: &str) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        let Some(at) = session.last.take() else { return };
        let is_open = session.open == Some(at);
        let collected = &mut self.transactions[at];
        let statements = &mut collected.transaction.statements;
        if statements.last().is_none_or(|last| *last.sql != *sql) {
            return;
        }
        statements.pop();
        self.statements -= 1;
        collected.is_aborted = is_open;
        self.left_out.add("statements that failed", sql);
    }

    fn set_autocommit(&mut self, key: &str, on: bool) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        session.commits_itself = on;
        // It ends a transaction that is open.
        if let Some(open) = session.open.take_if(|_| on) {
            self.close(open, COMMIT);
        }
    }

    fn close(&mut self, at: usize, with: &str) {
        let with = if self.transactions[at].is_aborted { ROLLBACK } else { with };
        self.push(at, with, None);
    }

    fn push(&mut self, at: usize, sql: &str, values: Option<Values>) {
        let of_values = values.iter().flatten().map(|value| 16 + value.as_ref().map_or(0, |text| text.len()));
        let mut bytes: usize = of_values.sum();
        let sql = match self.texts.get(sql) {
            Some(known) => Arc::clone(known),
            None => {
                bytes += sql.len();
                let sql: Arc<str> = sql.into();
                self.texts.insert(Arc::clone(&sql));
                sql
            }
        };
        self.bytes += bytes;
        self.statements += 1;
        self.is_full |= self.bytes > TEXT_BYTES_MAX || self.statements > STATEMENTS_MAX;
        self.transactions[at].transaction.statements.push(LoggedStatement { sql, values });
    }

    /// The transactions on the database that has most statements.
    pub(crate) fn finish(mut self) -> LoggedWorkload {
        if self.is_full {
            let reason = "the log's end: more statements than are kept";
            self.left_out.add(reason, &format!("{} statements", self.statements));
        }
        let keys: Vec<Box<str>> = self.sessions.keys().cloned().collect();
        let left_open = self.sessions.values().filter(|session| session.open.is_some()).count();
        for key in keys {
            let open = self.sessions.remove(&key).and_then(|session| session.open);
            if let Some(open) = open {
                self.close(open, ROLLBACK);
            }
        }
        for _ in 0..left_open {
            self.left_out.add("transactions that are open at the end of the log: rolled back there", "");
        }
        let most = (0..).zip(&self.databases).max_by_key(|(_, (_, statements))| *statements);
        let (database, name) =
            most.map_or((0, None), |(number, (name, _))| (number, name.as_deref().map(str::to_owned)));
        let mut transactions = Vec::new();
        let mut numbers = HashMap::new();
        for Collected { mut transaction, database: own, .. } in self.transactions {
            if own != database {
                let other = self.databases.get(own as usize).and_then(|(name, _)| name.as_deref());
                self.left_out.add("transactions on other databases", other.unwrap_or("without a database"));
                continue;
            }
            let is_frame = |statement: &LoggedStatement| {
                let text = statement.sql.trim_end_matches(';').trim();
                [BEGIN, COMMIT, ROLLBACK, "BEGIN"].iter().any(|word| text.eq_ignore_ascii_case(word))
            };
            if transaction.statements.iter().all(is_frame) {
                if !transaction.statements.is_empty() {
                    self.left_out.add("transactions without a statement", "");
                }
                continue;
            }
            let next = numbers.len() as u32;
            transaction.session = *numbers.entry(transaction.session).or_insert(next);
            transactions.push(transaction);
        }
        LoggedWorkload { transactions, database: name, left_out: self.left_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Effect::{Autocommit, Begins, Commits, LeftOut, RollsBack, Sets, ToSavepoint, Works};

    fn say(collector: &mut Collector, key: &str, sql: &str, effect: Effect) {
        collector.say(key, Said { sql, values: None, effects: vec![effect], may_fail: true });
    }

    fn texts(workload: &LoggedWorkload) -> Vec<(u32, String)> {
        let text = |t: &LoggedTransaction| t.statements.iter().map(|s| &*s.sql).collect::<Vec<_>>().join("; ");
        workload.transactions.iter().map(|t| (t.session, text(t))).collect()
    }

    fn reasons(workload: &LoggedWorkload) -> Vec<(String, u64)> {
        workload.left_out.sorted().into_iter().map(|counted| (counted.reason, counted.count)).collect()
    }

    #[test]
    fn a_log_of_more_databases_than_a_server_has_ends_there() {
        let mut log = Collector::default();
        (0..2 * DATABASES_MAX).for_each(|n| log.use_database("a", Some(&format!("d{n}"))));
        assert!(log.is_full() && log.databases.len() <= DATABASES_MAX);
    }

    #[test]
    fn transactions_are_in_the_order_of_their_start_and_whole() {
        let mut log = Collector::default();
        for (key, sql, effect) in [
            ("a", "BEGIN", Begins),
            ("b", "SELECT 1", Works),
            ("a", "UPDATE t", Works),
            ("b", "SET x", Sets),
            ("a", "COMMIT", Commits),
            ("a", "SELECT 2", Works),
            ("c", "BEGIN", Begins),
            ("c", "COMMIT", Commits),
        ] {
            say(&mut log, key, sql, effect);
        }
        let workload = log.finish();
        let expected = [(0, "BEGIN; UPDATE t; COMMIT"), (1, "SELECT 1"), (1, "SET x"), (0, "SELECT 2")];
        assert_eq!(texts(&workload), expected.map(|(session, text)| (session, text.to_owned())));
        assert_eq!((workload.count(), workload.statements(), workload.sessions()), (3, 6, 2));
        assert_eq!(reasons(&workload), [("transactions without a statement".to_owned(), 1)]);
    }

    #[test]
    fn what_failed_is_left_out_and_what_it_aborted_rolls_back() {
        let mut log = Collector::default();
        say(&mut log, "a", "SELECT broken", Works);
        log.fail("a", "SELECT broken");
        say(&mut log, "a", "BEGIN", Begins);
        say(&mut log, "a", "INSERT 1", Works);
        say(&mut log, "a", "SELECT 1/0", Works);
        log.fail("a", "SELECT 1/0");
        say(&mut log, "a", "COMMIT", Commits);
        say(&mut log, "a", "BEGIN", Begins);
        say(&mut log, "a", "SELECT 1/0", Works);
        log.fail("a", "SELECT 1/0");
        say(&mut log, "a", "ROLLBACK TO s", ToSavepoint);
        say(&mut log, "a", "INSERT 2", Works);
        log.fail("a", "another statement's error");
        say(&mut log, "a", "COMMIT", Commits);
        let workload = log.finish();
        let expected = ["BEGIN; INSERT 1; ROLLBACK", "BEGIN; ROLLBACK TO s; INSERT 2; COMMIT"];
        assert_eq!(texts(&workload), expected.map(|text| (0, text.to_owned())));
        assert_eq!(reasons(&workload), [("statements that failed".to_owned(), 3)]);
    }

    #[test]
    fn what_a_log_leaves_open_is_closed_and_counted() {
        let mut log = Collector::default();
        say(&mut log, "a", "COMMIT", Commits);
        say(&mut log, "a", "BEGIN", Begins);
        say(&mut log, "a", "INSERT 1", Works);
        say(&mut log, "a", "BEGIN", Begins);
        say(&mut log, "a", "INSERT 2", Works);
        log.end("a");
        say(&mut log, "a", "BEGIN", Begins);
        say(&mut log, "a", "INSERT 3", Works);
        say(&mut log, "b", "COPY t FROM STDIN", LeftOut("COPY"));
        let workload = log.finish();
        let expected =
            [(0, "BEGIN; INSERT 1; COMMIT"), (0, "BEGIN; INSERT 2; ROLLBACK"), (1, "BEGIN; INSERT 3; ROLLBACK")];
        assert_eq!(texts(&workload), expected.map(|(session, text)| (session, text.to_owned())));
        assert_eq!(workload.left_out.total(), 5, "{:?}", reasons(&workload));
    }

    #[test]
    fn without_autocommit_statements_up_to_a_commit_are_one_transaction() {
        let mut log = Collector::default();
        say(&mut log, "a", "SET autocommit=0", Autocommit(false));
        say(&mut log, "a", "SET NAMES utf8", Sets);
        say(&mut log, "a", "INSERT 1", Works);
        say(&mut log, "a", "INSERT 2", Works);
        say(&mut log, "a", "COMMIT", Commits);
        say(&mut log, "a", "INSERT 3", Works);
        say(&mut log, "a", "SET autocommit=1", Autocommit(true));
        say(&mut log, "a", "INSERT 4", Works);
        say(&mut log, "a", "ROLLBACK", RollsBack);
        let texts: Vec<String> = texts(&log.finish()).into_iter().map(|(_, text)| text).collect();
        let expected = [
            "SET NAMES utf8",
            "START TRANSACTION; INSERT 1; INSERT 2; COMMIT",
            "START TRANSACTION; INSERT 3; COMMIT",
            "INSERT 4",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn the_database_with_most_statements_is_replayed() {
        let mut log = Collector::default();
        log.start("a", Some("shop"));
        log.start("b", Some("postgres"));
        say(&mut log, "b", "SELECT 1", Works);
        say(&mut log, "a", "SELECT 2", Works);
        say(&mut log, "a", "SELECT 3", Works);
        let workload = log.finish();
        assert_eq!(workload.database.as_deref(), Some("shop"));
        assert_eq!(texts(&workload), [(0, "SELECT 2".to_owned()), (0, "SELECT 3".to_owned())]);
        assert_eq!(reasons(&workload), [("transactions on other databases".to_owned(), 1)]);
    }
}
