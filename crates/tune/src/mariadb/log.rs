//! The statements of MariaDB's own log: the general log, as a file.
//!
//! ```text
//!   260101 10:00:00       3 Connect     app@localhost on shop using Socket
//!                         3 Query       UPDATE item SET stock = stock - 1 WHERE id = 7
//!   a statement of several lines goes on up to the next line that starts an entry
//! ```
//!
//! Statements of the binary protocol are logged twice, when they are prepared and with their values when they are
//! executed; the latter are replayed. The same holds for `PREPARE` and `EXECUTE` of SQL.
//!
//! Source: MariaDB's documentation, "General Query Log"; `MYSQL_QUERY_LOG::write` (`log.cc`). MySQL writes the time in
//! another form, which is read too.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flashwise_block::input::open_regular;

use super::statements::{first_words, pieces};
use crate::TuneError;
use crate::servers::logged::{Collector, Effect, Line, Lines, LoggedWorkload, Said};

/// The longest statement that is kept, bytes: the default of `max_allowed_packet`.
const STATEMENT_BYTES_MAX: usize = 16 << 20;
/// Words of a statement that its effect depends on.
const WORDS: usize = 3;
/// Bytes read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Reads log files, in the order in which the server wrote them.
///
/// # Errors
/// When one cannot be read, or there is no statement in them.
pub(super) fn read_logs(files: &[PathBuf]) -> Result<LoggedWorkload, TuneError> {
    let mut collector = Collector::default();
    for path in files {
        let file = open_regular(path).map_err(|e| TuneError::file(path, &e))?;
        let reader = BufReader::with_capacity(BUFFER_BYTES, file);
        read(reader, &mut collector).map_err(|e| TuneError::file(path, &e))?;
    }
    let workload = collector.finish();
    match workload.count() {
        0 => {
            let path = files.first().map_or(Path::new(""), PathBuf::as_path).to_owned();
            let message = "no statement that can be replayed; log them with SET GLOBAL general_log = 1, to a file \
                           (log_output = FILE)";
            Err(TuneError::File { path, message: message.to_owned() })
        }
        _ => Ok(workload),
    }
}

fn read(reader: impl BufRead, collector: &mut Collector) -> std::io::Result<()> {
    let mut lines = Lines::new(reader);
    let mut entry: Option<Entry> = None;
    while let Some(line) = lines.next()? {
        if collector.is_full() {
            return Ok(());
        }
        let (bytes, is_whole) = match line {
            Line::Whole(bytes) => (bytes, true),
            Line::TooLong(bytes) => (bytes, false),
        };
        match (start(bytes), &mut entry) {
            (Some((session, command, argument)), entry) => {
                let next = Entry { session, command, argument: argument.to_vec(), is_whole };
                if let Some(entry) = entry.replace(next) {
                    entry.collect(collector);
                }
            }
            (None, Some(entry)) if entry.command.has_text() => entry.more(bytes, is_whole),
            // The server's header, after each of its starts.
            (None, _) if bytes.is_empty() => {}
            (None, _) => collector.leave_out("lines that are no entries of a log", &String::from_utf8_lossy(bytes)),
        }
    }
    if let Some(entry) = entry {
        entry.collect(collector);
    }
    Ok(())
}

/// What a session did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Connect,
    InitDb,
    Query,
    Execute,
    Quit,
    /// Counted under these words.
    Other(&'static str),
}

impl Command {
    /// Whether a statement follows, which may have several lines.
    fn has_text(self) -> bool {
        matches!(self, Self::Query | Self::Execute | Self::Other(PREPARE))
    }
}

const PREPARE: &str = "statements when they are prepared: they are replayed when they are executed";
const OTHERS: &str = "other commands of clients";
/// By their names in a log.
const COMMANDS: [(&str, Command); 28] = [
    ("Connect", Command::Connect),
    ("Init DB", Command::InitDb),
    ("Query", Command::Query),
    ("Execute", Command::Execute),
    ("Quit", Command::Quit),
    ("Prepare", Command::Other(PREPARE)),
    ("Close stmt", Command::Other(OTHERS)),
    ("Reset stmt", Command::Other(OTHERS)),
    ("Long Data", Command::Other(OTHERS)),
    ("Fetch", Command::Other(OTHERS)),
    ("Bulk_execute", Command::Other("bulk executions: their values are not in a log")),
    ("Field List", Command::Other(OTHERS)),
    ("Change user", Command::Other("changes of a session's user")),
    ("Reset connection", Command::Other(OTHERS)),
    ("Set option", Command::Other(OTHERS)),
    ("Statistics", Command::Other(OTHERS)),
    ("Ping", Command::Other(OTHERS)),
    ("Processlist", Command::Other(OTHERS)),
    ("Kill", Command::Other(OTHERS)),
    ("Debug", Command::Other(OTHERS)),
    ("Refresh", Command::Other(OTHERS)),
    ("Shutdown", Command::Other(OTHERS)),
    ("Sleep", Command::Other(OTHERS)),
    ("Daemon", Command::Other(OTHERS)),
    ("Binlog Dump", Command::Other(OTHERS)),
    ("Register Slave", Command::Other(OTHERS)),
    ("Create DB", Command::Other(OTHERS)),
    ("Drop DB", Command::Other(OTHERS)),
];

/// Session, command and argument of a line that starts an entry.
fn start(line: &[u8]) -> Option<(u64, Command, &[u8])> {
    let rest = match line.strip_prefix(b"\t\t") {
        Some(rest) => rest,
        None => {
            let tab = line.iter().take(40).position(|&byte| byte == b'\t')?;
            is_time(&line[..tab]).then_some(&line[tab + 1..])?
        }
    };
    let spaces = rest.iter().take_while(|&&byte| byte == b' ').count();
    let digits = rest[spaces..].iter().take(20).take_while(|byte| byte.is_ascii_digit()).count();
    let session = std::str::from_utf8(&rest[spaces..spaces + digits]).ok()?.parse().ok()?;
    let rest = rest[spaces + digits..].strip_prefix(b" ")?;
    let tab = rest.iter().take(40).position(|&byte| byte == b'\t').unwrap_or(rest.len());
    let name = std::str::from_utf8(rest.get(..tab)?).ok()?;
    let (_, command) = COMMANDS.iter().find(|(known, _)| *known == name)?;
    Some((session, *command, rest.get(tab + 1..).unwrap_or_default()))
}

/// `260101 10:00:00`, or `2026-01-01T10:00:00.000000Z`.
fn is_time(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b" :-.TZ+".contains(byte);
    text.len() >= 14 && text.first().is_some_and(u8::is_ascii_digit) && text.iter().all(is_part)
}

struct Entry {
    session: u64,
    command: Command,
    argument: Vec<u8>,
    is_whole: bool,
}

impl Entry {
    fn more(&mut self, line: &[u8], is_whole: bool) {
        self.is_whole &= is_whole && self.argument.len() + line.len() < STATEMENT_BYTES_MAX;
        if self.is_whole {
            self.argument.push(b'\n');
            self.argument.extend_from_slice(line);
        }
    }

    fn collect(self, collector: &mut Collector) {
        const UNREADABLE: &str = "statements that are too long, or not UTF-8";
        let key = self.session.to_string();
        let text = String::from_utf8(self.argument);
        let text = match (text, self.is_whole) {
            (Ok(text), true) => text,
            _ => return collector.leave_out(UNREADABLE, ""),
        };
        match self.command {
            // `app@localhost on shop using Socket`, or `Access denied for user …`.
            Command::Connect => {
                let database = text.split_once(" on ").and_then(|(_, rest)| rest.split(' ').next());
                collector.start(&key, database.filter(|name| !name.is_empty()));
                collector.leave_out("connections and disconnections", &text);
            }
            Command::InitDb => collector.use_database(&key, Some(&text)),
            Command::Quit => {
                collector.end(&key);
                collector.leave_out("connections and disconnections", "");
            }
            Command::Other(why) => collector.leave_out(why, &text),
            Command::Query | Command::Execute => say(collector, &key, &text),
        }
    }
}

fn say(collector: &mut Collector, key: &str, text: &str) {
    // Of several statements sent at once, each has an entry of its own, with those behind it.
    let Some(sql) = pieces(text).next() else { return collector.leave_out("statements without a text", text) };
    match effect(sql) {
        Ok(effect) => collector.say(key, Said { sql, values: None, effects: vec![effect], may_fail: false }),
        Err(database) => collector.use_database(key, Some(&database)),
    }
}

/// What a statement does; for `USE`, the database.
fn effect(sql: &str) -> Result<Effect, String> {
    let words: Vec<String> = first_words(sql, WORDS).map(str::to_ascii_uppercase).collect();
    let word = |number: usize| words.get(number).map_or("", String::as_str);
    Ok(match (word(0), word(1)) {
        ("BEGIN", "NOT") => Effect::LeftOut("compound statements"),
        ("BEGIN", _) | ("START", "TRANSACTION") => Effect::Begins,
        ("COMMIT" | "ROLLBACK", _) if sql.to_ascii_uppercase().contains("CHAIN") => {
            Effect::LeftOut("ends of transactions AND CHAIN")
        }
        ("COMMIT", _) => Effect::Commits,
        ("ROLLBACK", "TO") => Effect::ToSavepoint,
        ("ROLLBACK", _) if word(2) == "TO" => Effect::ToSavepoint,
        ("ROLLBACK", _) => Effect::RollsBack,
        ("XA", _) => Effect::LeftOut("transactions in two phases"),
        ("USE", _) => {
            let at = sql.to_ascii_uppercase().find("USE").map_or(sql.len(), |at| at + "USE".len());
            return Err(sql[at..].trim().trim_matches('`').to_owned());
        }
        ("SET", _) => autocommit(sql).map_or(Effect::Sets, Effect::Autocommit),
        ("SHOW" | "DESC" | "DESCRIBE" | "EXPLAIN", _) => Effect::Sets,
        ("PREPARE" | "EXECUTE" | "DEALLOCATE", _) => {
            Effect::LeftOut("PREPARE and EXECUTE of SQL: they are replayed with their values")
        }
        ("LOAD", "DATA" | "XML") => Effect::LeftOut("LOAD DATA: its rows are not in a log"),
        ("KILL" | "SHUTDOWN" | "FLUSH" | "INSTALL" | "UNINSTALL" | "GRANT" | "REVOKE" | "CHANGE" | "PURGE", _)
        | ("CREATE" | "ALTER" | "DROP", "DATABASE" | "SCHEMA" | "USER" | "ROLE" | "SERVER") => {
            Effect::LeftOut("statements on the server and its users")
        }
        _ => Effect::Works,
    })
}

/// The value of `SET autocommit`.
fn autocommit(sql: &str) -> Option<bool> {
    let sql = sql.to_ascii_lowercase();
    let (_, rest) = sql.split_once("autocommit")?;
    let value = rest.trim_start().trim_start_matches(':').strip_prefix('=')?.trim_start();
    let word: String = value.chars().take_while(|letter| letter.is_ascii_alphanumeric()).collect();
    match &*word {
        "0" | "off" | "false" => Some(false),
        "1" | "on" | "true" | "default" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_text(text: &[u8]) -> LoggedWorkload {
        let mut collector = Collector::default();
        read(text, &mut collector).unwrap();
        collector.finish()
    }

    fn texts(workload: &LoggedWorkload) -> Vec<String> {
        let text = |t: &crate::servers::logged::LoggedTransaction| {
            t.statements.iter().map(|s| s.sql.to_string()).collect::<Vec<_>>().join("; ")
        };
        workload.transactions.iter().map(text).collect()
    }

    #[test]
    fn a_log_of_a_server_gives_its_transactions_in_order() {
        let log = include_bytes!("../../tests/data/general.log");
        let workload = read_text(log);
        assert_eq!(workload.database.as_deref(), Some("shop"));
        let texts = texts(&workload);
        for (number, expected) in [
            "BEGIN; UPDATE item SET stock = stock - 1 WHERE id = 2; INSERT INTO sale (item, count, note) VALUES (2, 1, \
             'it\\'s\ntwo lines -- ; x'); COMMIT",
            "BEGIN; UPDATE item SET stock = stock - 1 WHERE id = 3; INSERT INTO sale (item, count, note) VALUES (3, 1, \
             'it\\'s\ntwo lines -- ; x'); COMMIT",
            "SELECT name,\n  stock FROM item WHERE id = 21",
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(texts[number], expected);
        }
        assert!(texts.contains(&"SELECT name FROM item WHERE id = 3".to_owned()), "{texts:?}");
        let manual = "START TRANSACTION; UPDATE item SET stock = stock + 1 WHERE id = 3; INSERT INTO sale (item, count) \
                      VALUES (3, 2); COMMIT";
        assert!(texts.contains(&manual.to_owned()), "{texts:?}");
        let left = |reason: &str| {
            let all = workload.left_out.sorted();
            all.iter().find(|counted| counted.reason.starts_with(reason)).map_or(0, |counted| counted.count)
        };
        assert_eq!((left("PREPARE and EXECUTE"), left("statements when"), left("LOAD DATA")), (6, 3, 1));
        assert_eq!((left("lines that are no entries"), left("transactions on other")), (3, 1));
    }

    #[test]
    fn times_of_both_kinds_start_an_entry_and_statements_may_look_like_others() {
        let log = b"261129 15:57:14\t     7 Query\tSELECT 1\n\
            2026-11-29T15:57:14.123456Z\t    7 Query\tSELECT 2,\n\t\tb\n\t 8 Query\tno\n\
            \t\t   18446744073709551616 Query\tno such session\n";
        assert_eq!(
            texts(&read_text(log)),
            ["SELECT 1", "SELECT 2,\n\t\tb\n\t 8 Query\tno\n\t\t   18446744073709551616 Query\tno such session"]
        );
    }

    #[test]
    fn autocommit_has_many_spellings() {
        for (sql, value) in [
            ("SET autocommit=0", Some(false)),
            ("set @@session.autocommit := OFF", Some(false)),
            ("SET SESSION autocommit = 1, sql_mode = ''", Some(true)),
            ("SET NAMES utf8", None),
            ("SET autocommit = @x", None),
        ] {
            assert_eq!(autocommit(sql), value, "{sql}");
        }
    }

    proptest! {
        #[test]
        fn any_log_has_an_end(
            lines in prop::collection::vec(
                "(\t\t|261129 15:57:14\t)? *[0-9]{0,3} ?(Query|Execute|Connect|Quit|Init DB|Sleep)?\t?[ -~ä'`\"/*#-]*",
                0..20,
            ),
            end in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut log = lines.join("\n").into_bytes();
            log.extend(end);
            let workload = read_text(&log);
            prop_assert!(workload.statements() <= 3 * log.len() as u64);
        }
    }
}
