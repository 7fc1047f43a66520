//! From events to a script: statements in the order in which they started, with sessions and think times.
//!
//! Left out, and counted: statements that failed, because they would fail again; what could not be recorded whole; and
//! the settings that a fit tries itself (`PRAGMA journal_mode = …`), which would undo what is tried. A transaction that
//! is open when its connection ends is rolled back there, as SQLite does. Connections that follow one another share a
//! session. A query is run to its end, also where the program stopped reading it before.

use std::collections::HashMap;
use std::fmt::Write;

use flashwise_block::{ByteSize, Nanos, grouped};

use super::events::{Connection, Event, EventKind, Events};
use crate::sqlite::script::{SESSIONS_MAX, only_statement, tokens};

/// Settings that a fit tries itself, or reports on: in the script they would take the place of what is tried.
const SETTINGS: [&str; 5] = ["journal_mode", "page_size", "cache_size", "wal_autocheckpoint", "synchronous"];
/// A think time below it is the program's own time between two calls.
const THINK_MIN: Nanos = Nanos(1_000);
/// Names of other databases in a message.
const OTHERS_SHOWN: usize = 3;

/// What was recorded, and what is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Statements of the script.
    pub statements: u64,
    /// Its sessions.
    pub sessions: u64,
    /// Connections that the program opened.
    pub connections: u64,
    /// From the first statement to the end of the last one.
    pub duration: Nanos,
    /// Statements that failed when they were recorded, and are left out.
    pub failed: u64,
    /// Statements that could not be recorded whole, and are left out.
    pub incomplete: u64,
    /// Transactions that were open when their connection ended.
    pub rolled_back: u64,
    /// Settings that the program makes, as it last made them; they are left out.
    pub settings: Vec<(String, String)>,
    /// Connections of which the program took the trace callback: what followed was not recorded.
    pub lost: u64,
    /// Whether the recording reached its limit, or what the disk or the program's own limits allow.
    pub is_full: bool,
}

impl Recorded {
    /// The page cache that the program sets.
    pub fn page_cache(&self, page: ByteSize) -> Option<ByteSize> {
        let (_, value) = self.settings.iter().find(|(name, _)| name == "cache_size")?;
        let value: i64 = value.parse().ok().filter(|&value| value != 0)?;
        // A negative number counts KiB, a positive one pages.
        let unit = if value < 0 { 1024 } else { page.bytes() };
        value.unsigned_abs().checked_mul(unit).map(ByteSize)
    }

    /// Pages of a log at which the program has it written back; 0 where it never does.
    pub fn checkpoint_pages(&self) -> Option<u32> {
        let (_, value) = self.settings.iter().find(|(name, _)| name == "wal_autocheckpoint")?;
        let pages: i32 = value.parse().ok()?;
        Some(u32::try_from(pages).unwrap_or(0))
    }

    /// What its user should know, in sentences.
    pub fn remarks(&self) -> Vec<String> {
        let count = |n: u64, one: &str, many: &str| match n {
            1 => format!("1 {one}"),
            n => format!("{} {many}", grouped(n)),
        };
        let mut remarks = vec![format!(
            "recorded {} of {} in {}",
            count(self.statements, "statement", "statements"),
            count(self.connections, "connection", "connections"),
            self.duration
        )];
        if self.sessions < self.connections {
            remarks.push(format!(
                "connections that follow one another run as {}, whose page cache stays warm between them",
                count(self.sessions, "session", "sessions")
            ));
        }
        if self.failed > 0 {
            remarks
                .push(format!("left out: {}", count(self.failed, "statement that failed", "statements that failed")));
        }
        if self.incomplete > 0 {
            let what = count(self.incomplete, "statement", "statements");
            remarks.push(format!("left out: {what} that could not be recorded with all values"));
        }
        if self.rolled_back > 0 {
            let what = count(self.rolled_back, "transaction", "transactions");
            remarks.push(format!("rolled back, as in the program: {what} that no COMMIT ended"));
        }
        if !self.settings.is_empty() {
            let all: Vec<String> = self.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            remarks.push(format!("left out, because a fit chooses them: the program's settings {}", all.join(", ")));
        }
        let is_weaker = |(name, value): &&(String, String)| {
            name == "synchronous" && !["2", "full", "3", "extra"].contains(&value.as_str())
        };
        if let Some((_, value)) = self.settings.iter().find(is_weaker) {
            remarks.push(format!(
                "the program sets synchronous = {value}, with which a power cut may lose commits; the fit compares runs \
                 with full"
            ));
        }
        if self.lost > 0 {
            remarks.push(
                "the program sets a trace callback of its own; what follows on that connection is missing".into(),
            );
        }
        if self.is_full {
            remarks.push(
                "the recording ends early: it reached its limit of 128 MiB, the disk was full, or the program may write no \
                 longer files; what followed is missing"
                    .into(),
            );
        }
        remarks
    }
}

/// Why there is no statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Nothing {
    /// The recorder was loaded into no process.
    NotLoaded,
    /// No process called libsqlite3.
    NoLibrary,
    /// A SQLite was called that has no trace callback.
    NoTrace,
    /// Others were opened.
    OtherDatabases(Vec<String>),
    /// It was opened, and no more.
    NoStatement,
    /// More connections at once than a script has sessions.
    TooManySessions,
}

/// One statement of the program.
struct Statement<'a> {
    connection: usize,
    started: u64,
    ended: u64,
    text: &'a [u8],
    is_incomplete: bool,
    failed: Option<bool>,
}

/// One connection of the program.
#[derive(Clone, Copy)]
struct Opened {
    at: u64,
    /// A process may end without closing it.
    closed: Option<u64>,
    /// End of its last statement.
    ended: u64,
    has_statement: bool,
    in_transaction: bool,
}

impl Opened {
    /// When its session is free for another one.
    fn free_from(&self) -> u64 {
        self.rolled_back().unwrap_or(self.ended)
    }

    /// When SQLite rolled back what was open.
    fn rolled_back(&self) -> Option<u64> {
        self.in_transaction.then(|| self.closed.unwrap_or(self.ended).max(self.ended))
    }
}

/// All that was recorded.
#[derive(Default)]
struct Record<'a> {
    statements: Vec<Statement<'a>>,
    connections: Vec<Opened>,
    open: HashMap<Connection, usize>,
    /// The last execution of each prepared statement.
    running: HashMap<(usize, u64), usize>,
    /// Statements that have a value with a NUL: the text of such an execution, none before the first one.
    cut: HashMap<(usize, u64), Option<&'a [u8]>>,
    is_loaded: bool,
    is_not_traced: bool,
    others: Vec<String>,
    lost: u64,
}

impl<'a> Record<'a> {
    fn add(&mut self, event: Event<'a>) {
        let Event { kind, connection, statement, time_ns, text } = event;
        let known = self.open.get(&connection).copied();
        match (kind, known) {
            (EventKind::Loaded, _) => self.is_loaded = true,
            (EventKind::NotTraced, _) => self.is_not_traced = true,
            (EventKind::OpenedOther, _) => {
                self.open.remove(&connection);
                let name = if text.is_empty() { "a temporary database".into() } else { String::from_utf8_lossy(text) };
                self.others.push(name.into_owned());
            }
            (EventKind::Opened, _) => _ = self.opened(connection, time_ns),
            (EventKind::Started { is_incomplete }, known) => {
                // A child may go on with a connection of its parent.
                let connection = known.unwrap_or_else(|| self.opened(connection, time_ns));
                let opened = &mut self.connections[connection];
                opened.has_statement = true;
                // sqlite3_close reports the close, and then refuses it where statements are left.
                opened.closed = None;
                let is_incomplete = is_incomplete || self.is_cut_by_nul((connection, statement), text);
                self.running.insert((connection, statement), self.statements.len());
                let (started, ended, failed) = (time_ns, time_ns, None);
                self.statements.push(Statement { connection, started, ended, text, is_incomplete, failed });
                self.ended(connection, statement, time_ns);
            }
            (_, None) => {}
            (EventKind::Closed, Some(connection)) => self.connections[connection].closed = Some(time_ns),
            (EventKind::TraceLost, Some(_)) => self.lost += 1,
            (EventKind::NulBound, Some(connection)) => _ = self.cut.insert((connection, statement), None),
            (EventKind::Ended { in_transaction }, Some(connection)) => {
                self.connections[connection].in_transaction = in_transaction;
                self.ended(connection, statement, time_ns);
            }
            (EventKind::Failed { is_rolled_back }, Some(connection)) => {
                self.connections[connection].in_transaction &= !is_rolled_back;
                if let Some(statement) = self.execution(connection, statement) {
                    statement.failed = Some(is_rolled_back);
                }
            }
            (EventKind::Resumed { in_transaction }, Some(connection)) => {
                self.connections[connection].in_transaction = in_transaction;
                if let Some(statement) = self.execution(connection, statement) {
                    statement.failed = None;
                }
                self.ended(connection, statement, time_ns);
            }
        }
    }

    /// Whether the text of a statement that starts ends within a value. A value stays bound for later executions, whose
    /// text is then the same again; another text shows that other values were bound.
    fn is_cut_by_nul(&mut self, statement: (usize, u64), text: &'a [u8]) -> bool {
        let Some(known) = self.cut.get_mut(&statement) else { return false };
        let is_cut = known.is_none_or(|known| known == text);
        if is_cut {
            *known = Some(text);
        } else {
            self.cut.remove(&statement);
        }
        is_cut
    }

    /// The last execution of a prepared statement.
    fn execution(&mut self, connection: usize, statement: u64) -> Option<&mut Statement<'a>> {
        self.running.get(&(connection, statement)).map(|&n| &mut self.statements[n])
    }

    fn ended(&mut self, connection: usize, statement: u64, at: u64) {
        if let Some(statement) = self.execution(connection, statement) {
            statement.ended = statement.started.max(at);
            let ended = statement.ended;
            let opened = &mut self.connections[connection];
            opened.ended = opened.ended.max(ended);
        }
    }

    fn opened(&mut self, connection: Connection, at: u64) -> usize {
        let (closed, ended) = (None, at);
        self.connections.push(Opened { at, closed, ended, has_statement: false, in_transaction: false });
        self.open.insert(connection, self.connections.len() - 1);
        self.connections.len() - 1
    }

    /// Rolls back what was open when its connection ended; how many transactions that were.
    fn roll_back(&mut self) -> u64 {
        let mut count = 0;
        for (connection, opened) in self.connections.iter().enumerate().filter(|(_, opened)| opened.has_statement) {
            let Some(at) = opened.rolled_back() else { continue };
            let (started, ended, text) = (at, at, &b"ROLLBACK"[..]);
            self.statements.push(Statement { connection, started, ended, text, is_incomplete: false, failed: None });
            count += 1;
        }
        count
    }

    fn nothing(&self) -> Nothing {
        match (self.is_loaded, self.connections.is_empty(), self.others.is_empty()) {
            (_, false, _) => Nothing::NoStatement,
            (_, true, false) => {
                let mut others = self.others.clone();
                others.sort();
                others.dedup();
                others.truncate(OTHERS_SHOWN);
                Nothing::OtherDatabases(others)
            }
            (_, true, true) if self.is_not_traced => Nothing::NoTrace,
            (true, true, true) => Nothing::NoLibrary,
            (false, true, true) => Nothing::NotLoaded,
        }
    }

    /// The session of each connection; after its last statement, it leaves its session to a later one.
    fn sessions(&self) -> Option<(Vec<usize>, usize)> {
        let mut free_from: Vec<u64> = Vec::new();
        let mut sessions = vec![0; self.connections.len()];
        for (session, opened) in sessions.iter_mut().zip(&self.connections).filter(|(_, opened)| opened.has_statement) {
            let free = free_from.iter().position(|&free| free <= opened.at);
            if free.is_none() && free_from.len() == SESSIONS_MAX {
                return None;
            }
            *session = free.unwrap_or(free_from.len());
            match free {
                Some(free) => free_from[free] = opened.free_from(),
                None => free_from.push(opened.free_from()),
            }
        }
        Some((sessions, free_from.len()))
    }
}

/// The script of a file of events.
pub(super) fn script(events: &[u8], command: &str) -> Result<(String, Recorded), Nothing> {
    let mut record = Record::default();
    let (mut all, is_cut) = Events::of(events);
    all.by_ref().for_each(|event| record.add(event));
    let (sessions, count) = record.sessions().ok_or(Nothing::TooManySessions)?;
    let Some(origin) = record.statements.iter().map(|statement| statement.started).min() else {
        return Err(record.nothing());
    };
    let ended = record.statements.iter().map(|statement| statement.ended).max().unwrap_or(origin);
    let rolled_back = record.roll_back();
    // Events of several processes come in the order in which they were written, nearly.
    record.statements.sort_by_key(|statement| statement.started);
    let mut recorded = Recorded {
        connections: record.connections.iter().filter(|opened| opened.has_statement).count() as u64,
        sessions: count as u64,
        duration: Nanos(ended - origin),
        lost: record.lost,
        rolled_back,
        is_full: is_cut || !all.0.is_empty(),
        ..Recorded::default()
    };
    let mut writer = Writer { text: String::new(), session: None, busy_until: vec![origin; count], origin };
    for statement in &record.statements {
        writer.statement(sessions[statement.connection], statement, &mut recorded);
    }
    if recorded.statements == 0 {
        return Err(Nothing::NoStatement);
    }
    let mut text = format!("-- Recorded by flashwise: {}\n", one_line(command));
    recorded.remarks().iter().for_each(|remark| text += &format!("-- {}\n", one_line(remark)));
    if count > 1 {
        // A statement may need what one of another session did before it.
        text += "-- flashwise: order file\n";
    }
    if let Some(pages) = recorded.checkpoint_pages() {
        text += &format!("-- flashwise: wal_autocheckpoint {pages}\n");
    }
    text += &writer.text;
    Ok((text, recorded))
}

fn one_line(text: &str) -> String {
    text.split(|letter: char| letter.is_control()).collect::<Vec<_>>().join(" ")
}

struct Writer {
    text: String,
    /// The last one that was written.
    session: Option<usize>,
    /// By session, when its last statement ended.
    busy_until: Vec<u64>,
    origin: u64,
}

impl Writer {
    fn statement(&mut self, session: usize, statement: &Statement<'_>, recorded: &mut Recorded) {
        let think = Nanos(statement.started.saturating_sub(self.busy_until[session]));
        let is_left_out = match (statement.failed, statement.is_incomplete) {
            (Some(is_rolled_back), _) => {
                recorded.failed += 1;
                if is_rolled_back {
                    self.write(session, think, statement, "ROLLBACK");
                    recorded.statements += 1;
                }
                true
            }
            (None, true) => {
                recorded.incomplete += 1;
                true
            }
            (None, false) => self.whole(session, think, statement, recorded).is_none(),
        };
        // What was left out took its time all the same: it is no think time.
        if is_left_out {
            self.busy_until[session] = self.busy_until[session].saturating_add(statement.ended - statement.started);
        } else {
            self.busy_until[session] = self.busy_until[session].max(statement.ended);
        }
    }

    /// Writes a statement that was recorded whole; `None` where it is left out.
    fn whole(
        &mut self,
        session: usize,
        think: Nanos,
        statement: &Statement<'_>,
        recorded: &mut Recorded,
    ) -> Option<()> {
        let text = String::from_utf8_lossy(statement.text);
        let Some(sql) = only_statement(&text) else {
            recorded.incomplete += 1;
            return None;
        };
        if let Some((name, value)) = setting(sql) {
            match recorded.settings.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => recorded.settings.push((name, value)),
            }
            return None;
        }
        self.write(session, think, statement, sql);
        recorded.statements += 1;
        Some(())
    }

    fn write(&mut self, session: usize, think: Nanos, statement: &Statement<'_>, sql: &str) {
        if self.session != Some(session) {
            self.text += &format!("-- flashwise: session {}\n", session + 1);
            self.session = Some(session);
        }
        if think >= THINK_MIN {
            self.text += &format!("-- flashwise: think {}us\n", think.0 / 1_000);
        }
        let (at, took) = (statement.started - self.origin, statement.ended - statement.started);
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "-- at {:.6} s, {:.6} s\n{sql};", at as f64 / 1e9, took as f64 / 1e9);
    }
}

/// Name and value of a setting that a fit makes itself: `PRAGMA schema.name = value` or `PRAGMA name(value)`.
fn setting(sql: &str) -> Option<(String, String)> {
    let unquoted = |text: &str| text.trim_matches(['\'', '"', '`', '[', ']']).to_ascii_lowercase();
    let tokens: Vec<&str> = tokens(sql).collect();
    let (_, rest) = tokens.split_first().filter(|(word, _)| word.eq_ignore_ascii_case("PRAGMA"))?;
    let (name, value) = match rest {
        [_, ".", name, "=" | "(", value @ ..] | [name, "=" | "(", value @ ..] => (unquoted(name), value),
        _ => return None,
    };
    let value = value.strip_suffix(&[")"]).unwrap_or(value).concat();
    SETTINGS.contains(&name.as_str()).then(|| (name, unquoted(&value)))
}

#[cfg(test)]
mod tests {
    use super::super::events::{MARK, tests::event};
    use super::*;

    /// Events, one after the other: kind, µs, connection, statement, flags, text.
    fn recorded(events: &[(u32, u64, u64, u64, u64, &str)]) -> Result<(Vec<String>, Recorded), Nothing> {
        let events = events.iter().flat_map(|&(k, t, d, s, f, x)| event(k, t * 1000, d, s, f, x));
        let bytes: Vec<u8> = [0; MARK].into_iter().chain(events).collect();
        script(&bytes, "program\n-- flashwise: session x").map(|(text, recorded)| {
            let script = crate::sqlite::script::Script::parse("r.sql", text.clone(), "".as_ref(), None).unwrap();
            assert_eq!(script.statements() as u64, recorded.statements, "{text}");
            let lines = text.lines().filter(|line| line.starts_with("-- flashwise: ") || !line.starts_with("--"));
            (lines.map(str::to_owned).collect(), recorded)
        })
    }

    const OPEN: u32 = 2;
    const START: u32 = 4;
    const END: u32 = 5;
    const FAIL: u32 = 6;
    const CLOSE: u32 = 7;
    const RESUME: u32 = 9;
    const NOT_TRACED: u32 = 10;
    const NUL_BOUND: u32 = 11;

    #[test]
    fn statements_keep_their_order_their_sessions_and_their_think_times() {
        let (lines, recorded) = recorded(&[
            (1, 0, 0, 0, 0, ""),
            (OPEN, 1, 1, 0, 0, ""),
            (START, 10, 1, 5, 0, "-- hello\n SELECT 1 -- ;"),
            (START, 12, 1, 6, 0, "INSERT INTO t VALUES (';');"),
            (END, 15, 1, 6, 0, ""),
            (END, 20, 1, 5, 0, ""),
            (OPEN, 21, 2, 0, 0, ""),
            (START, 120, 2, 5, 0, "BEGIN"),
            (END, 121, 2, 5, 0, ""),
            (START, 130, 1, 5, 0, "SELECT 2 /* open"),
            (END, 131, 1, 5, 0, ""),
        ])
        .unwrap();
        let expected = [
            "-- flashwise: order file",
            "-- flashwise: session 1",
            "SELECT 1;",
            "INSERT INTO t VALUES (';');",
            "-- flashwise: session 2",
            "-- flashwise: think 110us",
            "BEGIN;",
            "-- flashwise: session 1",
            "-- flashwise: think 110us",
            "SELECT 2;",
        ];
        assert_eq!(lines, expected);
        let expected =
            Recorded { statements: 4, sessions: 2, connections: 2, duration: Nanos(121_000), ..recorded.clone() };
        assert_eq!(recorded, expected);
    }

    #[test]
    fn what_failed_is_left_out_and_what_it_rolled_back_is_rolled_back() {
        let (lines, recorded) = recorded(&[
            (OPEN, 1, 1, 0, 0, ""),
            (START, 10, 1, 5, 0, "BEGIN"),
            (END, 10, 1, 5, 0, ""),
            (START, 10, 1, 6, 0, "INSERT OR ROLLBACK INTO t VALUES (1)"),
            (END, 20, 1, 6, 0, ""),
            (FAIL, 20, 1, 6, 1, ""),
            (START, 20, 1, 7, 0, "COMMIT"),
            (END, 20, 1, 7, 0, ""),
            (FAIL, 20, 1, 7, 0, ""),
            (START, 20, 1, 8, 1, "SELECT ?"),
            (START, 20, 1, 9, 0, "SELECT ?1"),
            (START, 20, 1, 9, 0, "SELECT 1"),
        ])
        .unwrap();
        assert_eq!(lines, ["-- flashwise: session 1", "BEGIN;", "ROLLBACK;", "SELECT 1;"]);
        assert_eq!((recorded.failed, recorded.incomplete, recorded.statements), (2, 2, 3));
    }

    #[test]
    fn settings_that_a_fit_makes_are_left_out_and_known() {
        let (lines, recorded) = recorded(&[
            (START, 10, 1, 5, 0, "PRAGMA journal_mode=WAL"),
            (START, 10, 1, 5, 0, "pragma main.cache_size = -8000"),
            (START, 10, 1, 5, 0, "PRAGMA synchronous(NORMAL);"),
            (START, 10, 1, 5, 0, "PRAGMA synchronous('off')"),
            (START, 10, 1, 5, 0, "/* orm */ PRAGMA wal_autocheckpoint = 4000"),
            (START, 10, 1, 5, 0, "-- orm\nPRAGMA/**/\"main\" . \"journal_mode\"/**/=/**/'MEMORY'"),
            (START, 10, 1, 5, 0, "PRAGMA cache_size"),
            (START, 10, 1, 5, 0, "PRAGMA foreign_keys = ON"),
        ])
        .unwrap();
        let session = ["-- flashwise: wal_autocheckpoint 4000", "-- flashwise: session 1"];
        assert_eq!(lines, [&session[..], &["PRAGMA cache_size;", "PRAGMA foreign_keys = ON;"]].concat());
        let settings = ["journal_mode memory", "cache_size -8000", "synchronous off", "wal_autocheckpoint 4000"];
        let settings = settings.map(|setting| setting.split_once(' ').unwrap());
        assert_eq!(recorded.settings, settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(recorded.page_cache(ByteSize::kib(4)), Some(ByteSize::kib(8000)));
    }

    #[test]
    fn connections_that_follow_one_another_share_a_session() {
        let one = |n: u64| {
            let at = n * 100;
            [
                (OPEN, at, 1, 0, 0, ""),
                (START, at + 1, 1, 5, 0, "SELECT 1"),
                (END, at + 2, 1, 5, 0, ""),
                (CLOSE, at + 3, 1, 0, 0, ""),
            ]
        };
        let (lines, counts) = recorded(&(0..100).flat_map(one).collect::<Vec<_>>()).unwrap();
        assert_eq!((counts.connections, counts.sessions, lines.len()), (100, 1, 200));
        // Processes that end without closing leave their sessions all the same.
        let killed =
            |n: u64| one(n).into_iter().filter(|event| event.0 != CLOSE).map(move |e| (e.0, e.1, n, e.3, e.4, e.5));
        assert_eq!(recorded(&(1..100).flat_map(killed).collect::<Vec<_>>()).unwrap().1.sessions, 1);
        let open = |n: u64| [(OPEN, n, n, 0, 0, ""), (START, 100 + n, n, 5, 0, "SELECT 1")];
        assert_eq!(recorded(&(1..66).flat_map(open).collect::<Vec<_>>()).unwrap_err(), Nothing::TooManySessions);
    }

    #[test]
    fn a_transaction_that_is_left_open_is_rolled_back_before_its_session_goes_on() {
        let left_open = |connection: u64, at: u64| {
            [
                (OPEN, at, connection, 0, 0, ""),
                (START, at + 1, connection, 5, 0, "BEGIN"),
                (END, at + 2, connection, 5, 1, ""),
                (START, at + 3, connection, 6, 0, "DELETE FROM t"),
                (END, at + 5, connection, 6, 1, ""),
            ]
        };
        let mut events = left_open(1, 0).to_vec();
        events.push((CLOSE, 8, 1, 0, 0, ""));
        // It does not close.
        events.extend(left_open(2, 9));
        events.extend(left_open(2, 20));
        // A close that SQLite refuses.
        events.extend([(CLOSE, 26, 2, 0, 0, ""), (START, 27, 2, 5, 0, "COMMIT"), (END, 28, 2, 5, 0, "")]);
        let (lines, recorded) = recorded(&events).unwrap();
        let statements: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.starts_with("--")).collect();
        let begun = ["BEGIN;", "DELETE FROM t;"];
        assert_eq!(statements, [&begun[..], &["ROLLBACK;"], &begun, &["ROLLBACK;"], &begun, &["COMMIT;"]].concat());
        assert_eq!((recorded.rolled_back, recorded.sessions, recorded.statements), (2, 1, 9));
    }

    #[test]
    fn a_statement_that_went_on_after_it_was_busy_has_not_failed() {
        let (lines, recorded) = recorded(&[
            (START, 10, 1, 5, 0, "BEGIN IMMEDIATE"),
            (END, 20, 1, 5, 0, ""),
            (FAIL, 20, 1, 5, 0, ""),
            (RESUME, 40, 1, 5, 1, ""),
            (START, 41, 1, 6, 0, "COMMIT"),
            (END, 42, 1, 6, 0, ""),
        ])
        .unwrap();
        assert_eq!(lines, ["-- flashwise: session 1", "BEGIN IMMEDIATE;", "-- flashwise: think 1us", "COMMIT;"]);
        assert_eq!((recorded.failed, recorded.rolled_back), (0, 0));
    }

    #[test]
    fn a_recording_of_nothing_has_its_reason() {
        for (events, reason) in [
            (&[][..], Nothing::NotLoaded),
            (&[(1, 0, 0, 0, 0, "")], Nothing::NoLibrary),
            (&[(1, 0, 0, 0, 0, ""), (NOT_TRACED, 0, 0, 0, 0, "")], Nothing::NoTrace),
            (&[(1, 0, 0, 0, 0, ""), (3, 0, 1, 0, 0, "/b.db"), (3, 0, 2, 0, 0, "/a.db")], {
                Nothing::OtherDatabases(vec!["/a.db".into(), "/b.db".into()])
            }),
            (&[(1, 0, 0, 0, 0, ""), (3, 0, 1, 0, 0, "")], Nothing::OtherDatabases(vec!["a temporary database".into()])),
            (&[(OPEN, 0, 1, 0, 0, "")], Nothing::NoStatement),
            (&[(OPEN, 0, 1, 0, 0, ""), (START, 0, 1, 5, 0, "PRAGMA page_size = 512")], Nothing::NoStatement),
        ] {
            assert_eq!(recorded(events).unwrap_err(), reason);
        }
    }

    #[test]
    fn a_file_that_is_cut_is_reported() {
        let one = event(START, 10_000, 1, 5, 0, "SELECT 1");
        let events = [&one[..], &event(START, 20_000, 1, 6, 0, "SELECT 2")].concat();
        let last = (MARK + one.len()) as u64;
        for (lost, length, statements, is_full) in [
            (0, events.len(), 2, false),
            (0, events.len() - 1, 1, true),
            // Others may have written behind a part of an event.
            (last, events.len(), 1, true),
            (u64::MAX, events.len(), 2, true),
        ] {
            let file = [&u64::to_ne_bytes(lost)[..], &events[..length]].concat();
            let (text, recorded) = script(&file, "program").unwrap();
            assert_eq!((recorded.statements, recorded.is_full), (statements, is_full));
            assert_eq!(text.contains("-- the recording ends early: "), is_full, "{text}");
        }
    }

    #[test]
    fn a_statement_is_left_out_while_a_value_with_a_nul_is_bound_to_it() {
        let (lines, recorded) = recorded(&[
            (OPEN, 1, 1, 0, 0, ""),
            (NUL_BOUND, 9, 1, 5, 0, ""),
            (START, 10, 1, 5, 0, "INSERT INTO t VALUES ('a')"),
            (START, 10, 1, 6, 0, "INSERT INTO t VALUES ('a')"),
            (START, 11, 1, 5, 0, "INSERT INTO t VALUES ('a')"),
            (START, 12, 1, 5, 0, "INSERT INTO t VALUES ('b')"),
            (START, 13, 1, 5, 0, "INSERT INTO t VALUES ('a')"),
        ])
        .unwrap();
        let inserted = |letter: &str| format!("INSERT INTO t VALUES ('{letter}');");
        let statements: Vec<_> = lines.into_iter().filter(|line| !line.starts_with("--")).collect();
        assert_eq!((statements, recorded.incomplete), (["a", "b", "a"].map(inserted).to_vec(), 2));
    }

    #[test]
    fn a_text_cannot_change_the_script() {
        let (lines, _) = recorded(&[
            (START, 10, 1, 5, 0, "SELECT 'a\n-- flashwise: session x\n'"),
            (START, 10, 1, 5, 0, "-- flashwise: session x\nSELECT 1"),
            (START, 10, 1, 5, 0, "SELECT\n-- flashwise: think 1s\n1"),
            (START, 10, 1, 5, 0, "SELECT 1; SELECT 2"),
            (START, 10, 1, 5, 0, "SELECT 'open"),
        ])
        .unwrap();
        assert_eq!(lines[1..], ["SELECT 'a", "-- flashwise: session x", "';"], "the rest is left out");
    }
}
