//! The format `stderr`: a prefix as `log_line_prefix` has it, the severity, the message; further lines start with a
//! tab.
//!
//! The prefix is the user's own. A session is known by its identifier (`%c`) or its process (`%p`, in brackets as
//! by default, or as a number alone); the database by `user@database` (`%u@%d`) or `db=`.
//!
//! Source: PostgreSQL's `send_message_to_server_log` (`elog.c`) and its documentation of `log_line_prefix`.

use super::entry::Entry;

/// Severities of messages, and the names of their further parts.
const MESSAGES: [&str; 12] =
    ["LOG", "ERROR", "FATAL", "PANIC", "WARNING", "NOTICE", "INFO", "DEBUG1", "DEBUG2", "DEBUG3", "DEBUG4", "DEBUG5"];
const PARTS: [&str; 7] = ["DETAIL", "STATEMENT", "HINT", "CONTEXT", "QUERY", "LOCATION", "BACKTRACE"];
/// The longest entry that is kept, bytes.
const ENTRY_BYTES_MAX: usize = 16 << 20;
/// Bytes of a line in which the severity is looked for: no prefix is longer.
const PREFIX_MAX: usize = 1_000;

/// Which part of an entry the next line may go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Message,
    Detail,
    Statement,
    Other,
}

/// Puts lines together to entries.
#[derive(Debug)]
pub(super) struct StderrEntries {
    entry: Option<Entry>,
    part: Part,
}

/// What a line was.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// A part of the entry that is being read; or the start of a new one, with the one before.
    Taken(Option<Entry>),
    /// No part of any entry.
    Foreign,
}

impl StderrEntries {
    pub(super) fn new() -> Self {
        Self { entry: None, part: Part::Other }
    }

    /// Reads a line.
    pub(super) fn line(&mut self, line: &str) -> Read {
        if let Some(more) = line.strip_prefix('\t') {
            return self.more(more);
        }
        let Some((prefix, label, text)) = cut(line) else {
            self.part = Part::Other;
            return Read::Foreign;
        };
        self.part = match label {
            "DETAIL" => Part::Detail,
            "STATEMENT" => Part::Statement,
            label if PARTS.contains(&label) => Part::Other,
            _ => Part::Message,
        };
        let session = session(prefix);
        if self.part == Part::Message {
            let (session, database) = (session.unwrap_or_default().to_owned(), database(prefix).map(str::to_owned));
            let (severity, message) = (label.to_owned(), text.to_owned());
            let entry = Entry { session, database, severity, message, ..Entry::default() };
            return Read::Taken(self.entry.replace(entry));
        }
        let own = self.entry.as_mut().filter(|entry| entry.session == session.unwrap_or_default());
        match (own, self.part) {
            (Some(entry), Part::Detail) => text.clone_into(&mut entry.detail),
            (Some(entry), Part::Statement) => text.clone_into(&mut entry.statement),
            (None, _) => self.part = Part::Other,
            _ => {}
        }
        Read::Taken(None)
    }

    fn more(&mut self, more: &str) -> Read {
        let text = match (self.entry.as_mut(), self.part) {
            (None, _) | (_, Part::Other) => return Read::Taken(None),
            (Some(entry), Part::Message) => &mut entry.message,
            (Some(entry), Part::Detail) => &mut entry.detail,
            (Some(entry), Part::Statement) => &mut entry.statement,
        };
        if text.len() + more.len() >= ENTRY_BYTES_MAX {
            self.unreadable(true);
            return Read::Foreign;
        }
        text.push('\n');
        text.push_str(more);
        Read::Taken(None)
    }

    /// A line cannot be read. If the entry goes on with it, none of that is kept; otherwise the entry is complete.
    pub(super) fn unreadable(&mut self, goes_on: bool) -> Option<Entry> {
        self.part = Part::Other;
        self.entry.take().filter(|_| !goes_on)
    }

    /// The last entry.
    pub(super) fn finish(self) -> Option<Entry> {
        self.entry
    }
}

/// Prefix, severity or part, and text of a line.
fn cut(line: &str) -> Option<(&str, &str, &str)> {
    let end = line.len().min(PREFIX_MAX);
    let ends = line.as_bytes()[..end].windows(3).enumerate().filter(|(_, window)| window == b":  ");
    for (at, _) in ends {
        let before = &line[..at];
        let label = before.rfind(|letter: char| !letter.is_ascii_alphanumeric()).map_or(before, |end| {
            let letter = before[end..].chars().next().map_or(1, char::len_utf8);
            &before[end + letter..]
        });
        if MESSAGES.contains(&label) || PARTS.contains(&label) {
            return Some((&before[..before.len() - label.len()], label, &line[at + 3..]));
        }
    }
    None
}

/// The session's identifier, `6b0c4b18.2dc1`; else the process: a number in brackets, or alone.
fn session(prefix: &str) -> Option<&str> {
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_identifier = |word: &&str| {
        word.split_once('.').is_some_and(|(start, process)| start.len() == 8 && is_hex(start) && is_hex(process))
    };
    let is_number = |word: &&str| (1..=10).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
    let words =
        || prefix.split(|letter: char| !letter.is_ascii_alphanumeric() && !['.', ':', '-', '/', '@'].contains(&letter));
    let in_brackets = || {
        let inner = prefix.split('[').skip(1).filter_map(|rest| rest.split([']', '-']).next());
        inner.filter(|word| is_number(word)).last()
    };
    words().find(is_identifier).or_else(in_brackets).or_else(|| words().find(is_number))
}

fn database(prefix: &str) -> Option<&str> {
    let behind = |mark: &str| prefix.split_once(mark).map(|(_, rest)| rest);
    let rest = behind("db=").or_else(|| behind("database=")).or_else(|| behind("@"))?;
    let name = rest.split([' ', ',', ':', ']', '[', ')', '\t']).next().unwrap_or_default();
    (!name.is_empty() && name != "unknown").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_many_kinds_name_session_and_database() {
        for (prefix, own, on) in [
            ("2026-11-29 15:56:08.451 UTC [11713] postgres@shop ", Some("11713"), Some("shop")),
            ("2026-11-29 15:56:08.451 UTC [11713] ", Some("11713"), None),
            ("2026-11-29 15:56:08 UTC:10.0.0.1(5432):app@shop:[11713]:", Some("11713"), Some("shop")),
            ("2026-11-29 15:56:08.451 UTC [11713-3] db=shop,user=app ", Some("11713"), Some("shop")),
            ("1764431768.323 6b0c4b18.2dc1 app@shop ", Some("6b0c4b18.2dc1"), Some("shop")),
            ("11713 ", Some("11713"), None),
            ("pid=11713 ", Some("11713"), None),
            ("2026-11-29 15:56:08.451 UTC ", None, None),
            ("", None, None),
        ] {
            assert_eq!((session(prefix), database(prefix)), (own, on), "{prefix}");
        }
    }

    #[test]
    fn lines_are_put_together_to_entries() {
        let mut entries = StderrEntries::new();
        let lines = [
            "x [1] a@b LOG:  execute <unnamed>: SELECT 1",
            "\tFROM t WHERE a = 'ERROR:  no' AND b = $1",
            "x [1] a@b DETAIL:  parameters: $1 = 'a",
            "\tb'",
            "nobody's line",
            "\tits second",
            "x [2] a@b ERROR:  no",
            "x [3] a@b STATEMENT:  not of 2",
            "x [2] a@b STATEMENT:  SELECT 2",
        ];
        let mut all = Vec::new();
        for line in lines {
            match entries.line(line) {
                Read::Taken(entry) => all.extend(entry),
                Read::Foreign => assert_eq!(line, "nobody's line"),
            }
        }
        all.extend(entries.finish());
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].message, "execute <unnamed>: SELECT 1\nFROM t WHERE a = 'ERROR:  no' AND b = $1");
        assert_eq!((&*all[0].detail, &*all[0].severity), ("parameters: $1 = 'a\nb'", "LOG"));
        assert_eq!((&*all[1].statement, &*all[1].severity, &*all[1].session), ("SELECT 2", "ERROR", "2"));
    }
}
