//! The user's statements as a script: sessions, think times, and values for parameters.
//!
//! ```text
//!   work.sql ── lexer.rs ──▶ statements, directives ──▶ sessions ─┐
//!   values.csv ── values.rs ──▶ rows ─────────────────────────────┴─▶ Script ── play.rs ──▶ one run
//! ```
//!
//! A directive is a comment between two statements:
//!
//! ```sql
//! -- flashwise: session NAME       what follows is run by a connection of its own
//! -- flashwise: think 5ms          the session waits before its next statement
//! -- flashwise: parameters FILE    the next statement takes its values from the rows of FILE
//! -- flashwise: order file         statements run in the order of the file, whatever their session
//! -- flashwise: wal_autocheckpoint 4000
//!                                  what the program sets: `default` has it
//! ```
//!
//! The script runs as many times as its longest file of values has rows; a shorter one starts again from its first row.

mod lexer;
mod values;

use std::ops::Range;
use std::path::{Path, PathBuf};

use flashwise_block::names::choices;
use flashwise_block::{Nanos, grouped};
use rusqlite::types::Value;

use crate::TuneError;
use lexer::{Lexer, Parameter, Piece};
pub(crate) use values::Values;

/// The session of statements before the first directive.
const FIRST_SESSION: &str = "main";
/// Connections of a script: SQLite's own programs have a few, and each one has a page cache.
pub(super) const SESSIONS_MAX: usize = 64;
/// Statements of a script: three times what a recording can hold, which has at least 100 bytes for each. They take
/// 350 MB beside their text.
const STATEMENTS_MAX: usize = 4_000_000;
const DIRECTIVES: [&str; 5] = ["session", "think", "parameters", "order", "wal_autocheckpoint"];

/// One statement of a session.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Its text.
    text: Range<usize>,
    /// Which one it is in the file, and where; from one.
    pub(crate) number: usize,
    pub(crate) line: usize,
    /// What the session waits before it.
    pub(crate) think: Nanos,
    /// The file of its values.
    values: Option<usize>,
    /// By parameter, the column of its values.
    columns: Vec<(usize, usize)>,
}

impl Step {
    pub(crate) fn has_parameters(&self) -> bool {
        !self.columns.is_empty()
    }

    /// The largest number of a parameter.
    pub(crate) fn parameters(&self) -> usize {
        self.columns.iter().map(|&(index, _)| index).max().unwrap_or(0)
    }
}

/// Statements of one connection.
#[derive(Clone, Debug)]
pub(crate) struct SessionScript {
    name: String,
    pub(crate) steps: Vec<Step>,
}

/// What is run.
#[derive(Debug)]
pub(crate) struct Script {
    /// As the user calls it.
    name: String,
    text: String,
    pub(crate) sessions: Vec<SessionScript>,
    values: Vec<Values>,
    /// How often every session runs its statements.
    pub(crate) passes: usize,
    /// Which session is next.
    pub(crate) order: Order,
    /// The program's own setting.
    pub(crate) checkpoint_pages: Option<u32>,
}

/// Which session runs its next statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// The one that has been ready for longest.
    #[default]
    Ready,
    /// The one whose next statement comes first in the file.
    File,
}

impl Script {
    /// Reads a script and the files of its values.
    ///
    /// # Errors
    /// With the line that is wrong: an unknown directive, a parameter without a value, a column that nothing uses.
    pub(crate) fn parse(name: &str, text: String, folder: &Path, parameters: Option<&Path>) -> Result<Self, TuneError> {
        let mut builder = Builder::new(name, folder, parameters)?;
        for piece in Lexer::new(&text) {
            match piece {
                Piece::Directive { line, words } => builder.directive(line, words)?,
                Piece::Misplaced { line } => {
                    return Err(builder.error(line, "a directive inside a statement; end the statement with ';'"));
                }
                Piece::Statement { line, text: range, .. }
                    if tokens(&text[range.clone()]).next().is_some_and(|first| first.starts_with('.')) =>
                {
                    return Err(builder.error(line, "a command of the sqlite3 shell; remove it: only SQL is run"));
                }
                Piece::Statement { line, text, parameters } => builder.statement(line, text, &parameters)?,
            }
        }
        let Builder { sessions, values, order, checkpoint_pages, .. } = builder.finish()?;
        let passes = values.iter().map(Values::rows).max().unwrap_or(1);
        Ok(Self { name: name.to_owned(), text, sessions, values, passes, order, checkpoint_pages })
    }

    /// Statements of one pass.
    pub(crate) fn statements(&self) -> usize {
        self.sessions.iter().map(|session| session.steps.len()).sum()
    }

    /// Statements that a session runs where all together run at most so many.
    ///
    /// In the order of the file they are the first ones, because later ones may need what these do. Otherwise each
    /// session does the same share, so that runs do the same work whatever their speed.
    pub(crate) fn share(&self, session: &SessionScript, most: usize) -> usize {
        let (all, total) = (session.steps.len() * self.passes, self.statements());
        let share = match self.order {
            Order::Ready => (all as u128 * most as u128).div_ceil((total * self.passes) as u128) as usize,
            Order::File => {
                let (whole_passes, rest) = (most / total, most % total);
                whole_passes * session.steps.len() + session.steps.partition_point(|step| step.number <= rest)
            }
        };
        share.min(all)
    }

    pub(crate) fn sql(&self, step: &Step) -> &str {
        &self.text[step.text.clone()]
    }

    /// A place, for messages.
    pub(crate) fn place(&self, step: &Step) -> String {
        format!("{}, statement {}, line {}", self.name, step.number, step.line)
    }

    /// The values of a statement's parameters in a pass, with the numbers of these.
    pub(crate) fn values(&self, step: &Step, pass: usize) -> impl Iterator<Item = (usize, &Value)> {
        let row = step.values.map(|values| self.values[values].row(pass)).unwrap_or_default();
        step.columns.iter().map(|&(index, column)| (index, &row[column]))
    }

    /// Whether statements are repeated, so that preparing them once pays.
    pub(crate) fn repeats(&self) -> bool {
        self.passes > 1
    }

    /// What a summary adds: sessions, passes.
    pub(crate) fn shape(&self) -> String {
        let mut shape = String::new();
        if self.sessions.len() > 1 {
            shape += &format!(", {} sessions", self.sessions.len());
        }
        if self.passes > 1 {
            shape += &format!(", once for each of {} rows of values", grouped(self.passes as u64));
        }
        shape
    }
}

/// A script while it is read.
struct Builder<'a> {
    name: &'a str,
    folder: &'a Path,
    sessions: Vec<SessionScript>,
    current: usize,
    values: Vec<Values>,
    /// Whether there is a file for statements that name none: the first one.
    has_usual: bool,
    /// For the next statement.
    think: Nanos,
    own_values: Option<(usize, usize)>,
    statements: usize,
    order: Order,
    checkpoint_pages: Option<u32>,
}

impl<'a> Builder<'a> {
    fn new(name: &'a str, folder: &'a Path, parameters: Option<&Path>) -> Result<Self, TuneError> {
        let values = parameters.map(Values::read).transpose()?;
        let has_usual = values.is_some();
        let values = values.into_iter().collect();
        Ok(Self {
            name,
            folder,
            sessions: Vec::new(),
            current: 0,
            values,
            has_usual,
            think: Nanos(0),
            own_values: None,
            statements: 0,
            order: Order::Ready,
            checkpoint_pages: None,
        })
    }

    fn error(&self, line: usize, message: impl Into<String>) -> TuneError {
        TuneError::Sql { context: format!("{}, line {line}", self.name), message: message.into() }
    }

    fn directive(&mut self, line: usize, words: &str) -> Result<(), TuneError> {
        let (name, argument) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let argument = argument.trim();
        if !DIRECTIVES.contains(&name) {
            let message = format!("-- flashwise: {name}: unknown directive; {}", choices(name, DIRECTIVES));
            return Err(self.error(line, message));
        }
        if argument.is_empty() {
            let example = match name {
                "session" => "session reader",
                "think" => "think 5ms",
                "order" => "order file",
                "wal_autocheckpoint" => "wal_autocheckpoint 4000",
                _ => "parameters values.csv",
            };
            return Err(self.error(line, format!("-- flashwise: {name}: it needs a value, such as {example}")));
        }
        match name {
            "session" => self.session(line, argument),
            "order" if argument == "file" => {
                self.order = Order::File;
                Ok(())
            }
            "order" => Err(self.error(line, format!("-- flashwise: order {argument}: unknown order; write file"))),
            "wal_autocheckpoint" => {
                let pages = argument.parse().map_err(|e| self.error(line, format!("-- flashwise: {name}: {e}")))?;
                self.checkpoint_pages = Some(pages);
                Ok(())
            }
            "think" => {
                let think: Nanos =
                    argument.parse().map_err(|e| self.error(line, format!("-- flashwise: think: {e}")))?;
                self.think = Nanos(self.think.0.saturating_add(think.0));
                Ok(())
            }
            _ => {
                let path = self.folder.join(argument);
                let known = self.values.iter().position(|values| values.path() == path);
                let place = match known {
                    Some(place) => place,
                    None => {
                        self.values.push(Values::read(&path)?);
                        self.values.len() - 1
                    }
                };
                self.own_values = Some((place, line));
                Ok(())
            }
        }
    }

    fn session(&mut self, line: usize, name: &str) -> Result<(), TuneError> {
        if self.think.0 > 0 || self.own_values.is_some() {
            return Err(self.error(line, "a think time or parameters without a statement before the session changes"));
        }
        let known = self.sessions.iter().position(|session| session.name == name);
        self.current = match known {
            Some(place) => place,
            None if self.sessions.len() == SESSIONS_MAX => {
                return Err(self.error(line, format!("more than {SESSIONS_MAX} sessions")));
            }
            None => {
                self.sessions.push(SessionScript { name: name.to_owned(), steps: Vec::new() });
                self.sessions.len() - 1
            }
        };
        Ok(())
    }

    fn statement(&mut self, line: usize, text: Range<usize>, parameters: &[Parameter]) -> Result<(), TuneError> {
        if self.statements == STATEMENTS_MAX {
            return Err(self.error(line, format!("more than {} statements", grouped(STATEMENTS_MAX as u64))));
        }
        if self.sessions.is_empty() {
            self.sessions.push(SessionScript { name: FIRST_SESSION.to_owned(), steps: Vec::new() });
        }
        self.statements += 1;
        let own = self.own_values.take();
        if let Some((_, at)) = own.filter(|_| parameters.is_empty()) {
            return Err(self.error(at, format!("parameters for the statement in line {line}, which has none")));
        }
        let values = own.map(|(place, _)| place).or(self.has_usual.then_some(0)).filter(|_| !parameters.is_empty());
        let mut columns = Vec::with_capacity(parameters.len());
        for Parameter { index, name } in parameters {
            let Some(place) = values else {
                let message =
                    format!("no value for the parameter {}; give a file of values with --parameters FILE", shown(name));
                return Err(self.error(line, message));
            };
            let Some(column) = self.values[place].mark_used(name) else {
                let known = self.values[place].columns().join(", ");
                let path = self.values[place].path().display();
                let message = format!("no value for the parameter {}: {path} has the columns {known}", shown(name));
                return Err(self.error(line, message));
            };
            columns.push((*index, column));
        }
        let step =
            Step { text, number: self.statements, line, think: std::mem::take(&mut self.think), values, columns };
        self.sessions[self.current].steps.push(step);
        Ok(())
    }

    fn finish(mut self) -> Result<Self, TuneError> {
        self.sessions.retain(|session| !session.steps.is_empty());
        for values in &self.values {
            if let Some((place, column)) = values.unused() {
                let message = format!("no statement of {} has such a parameter; remove the column", self.name);
                let context = format!("{}, line 1, column {} ({column})", values.path().display(), place + 1);
                return Err(TuneError::Sql { context, message });
            }
        }
        if self.statements == 0 {
            return Err(TuneError::Sql { context: self.name.to_owned(), message: "no SQL statement in it".into() });
        }
        Ok(self)
    }
}

/// The statement of a text, without comments around it, if it is just one: whole, without parameters and directives.
pub(super) fn only_statement(text: &str) -> Option<&str> {
    // What is open at the end would take in what is written behind it; SQLite closes a comment there by itself.
    ["\n;SELECT", "*/\n;SELECT"].into_iter().find_map(|behind| {
        let closed = format!("{text}{behind}");
        let mut pieces = Lexer::new(&closed);
        let (Some(first), Some(second), None) = (pieces.next(), pieces.next(), pieces.next()) else { return None };
        let (Piece::Statement { text: range, parameters, .. }, Piece::Statement { text: last, .. }) = (first, second)
        else {
            return None;
        };
        let is_whole = parameters.is_empty() && range.end <= text.len() && last.end == closed.len();
        if is_whole { text.get(range) } else { None }
    })
}

/// The tokens of a statement, without comments.
pub(super) fn tokens(sql: &str) -> impl Iterator<Item = &str> {
    Lexer::new(sql).tokens()
}

/// A parameter as the user wrote it, nearly.
fn shown(name: &str) -> String {
    if name.bytes().all(|byte| byte.is_ascii_digit()) { format!("?{name}") } else { format!(":{name}") }
}

/// The folder that files in directives are relative to.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Script, String> {
        Script::parse("w.sql", text.to_owned(), Path::new("/nowhere"), None).map_err(|e| e.to_string())
    }

    #[test]
    fn sessions_have_their_own_statements_in_their_own_order() {
        let script = parse(
            "SELECT 1;\n-- flashwise: session writer\n-- flashwise: think 2ms\n--flashwise: think 500 us\nINSERT x;\n\
             -- flashwise: session main\nSELECT 2;\n-- a comment: flashwise: think 9s\nSELECT 3",
        )
        .unwrap();
        let of = |n: usize| -> Vec<(&str, u64)> {
            script.sessions[n].steps.iter().map(|step| (script.sql(step), step.think.0)).collect()
        };
        assert_eq!(of(0), [("SELECT 1", 0), ("SELECT 2", 0), ("SELECT 3", 0)]);
        assert_eq!(of(1), [("INSERT x", 2_500_000)]);
        assert_eq!((script.statements(), script.passes), (4, 1));
        assert_eq!(script.place(&script.sessions[0].steps[1]), "w.sql, statement 3, line 7");
        assert_eq!(script.shape(), ", 2 sessions");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, words) in [
            (
                "\n-- flashwise: thnk 1s\nSELECT 1",
                "w.sql, line 2: -- flashwise: thnk: unknown directive; did you mean 'think'",
            ),
            ("-- flashwise: think soon\nSELECT 1", "w.sql, line 1: -- flashwise: think: "),
            (
                "-- flashwise: think\nSELECT 1",
                "w.sql, line 1: -- flashwise: think: it needs a value, such as think 5ms",
            ),
            ("SELECT\n-- flashwise: think 1s\n1", "w.sql, line 2: a directive inside a statement"),
            ("SELECT 1;\nSELECT :id", "w.sql, line 2: no value for the parameter :id; give"),
            ("SELECT ?", "w.sql, line 1: no value for the parameter ?1; give"),
            ("-- nothing;", "w.sql: no SQL statement in it"),
            ("SELECT 1;\n.mode csv\nSELECT 2;", "w.sql, line 2: a command of the sqlite3 shell; remove it"),
            ("-- flashwise: parameters v.csv\nSELECT ?", "/nowhere/v.csv: No such file"),
            ("-- flashwise: think 1s\n-- flashwise: session b\nSELECT 1", "w.sql, line 2: a think time"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(words), "{text}: {error}");
        }
    }

    #[test]
    fn values_are_taken_in_turn_and_every_column_has_a_use() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("v.csv"), "id,name\n1,a\n2,b\n3,c\n").unwrap();
        std::fs::write(folder.path().join("w.csv"), "1\n7\n8\n").unwrap();
        let parse = |text: &str| {
            let usual = folder.path().join("v.csv");
            Script::parse("w.sql", text.to_owned(), folder.path(), Some(&usual)).map_err(|e| e.to_string())
        };
        let script = parse("SELECT :id, @name; SELECT 1;\n-- flashwise: parameters w.csv\nSELECT ?").unwrap();
        assert_eq!(script.passes, 3);
        let steps = &script.sessions[0].steps;
        let values = |step: usize, pass| script.values(&steps[step], pass).collect::<Vec<_>>();
        let integers = [1, 2, 3, 7, 8].map(Value::Integer);
        let texts = ["a", "b", "c"].map(|text| Value::Text(text.into()));
        for pass in 0..3 {
            assert_eq!(values(0, pass), [(1, &integers[pass]), (2, &texts[pass])]);
            assert_eq!(values(2, pass), [(1, &integers[3 + pass % 2])]);
        }
        assert!(values(1, 0).is_empty());

        let unused = parse("SELECT :id").unwrap_err();
        assert!(
            unused.ends_with(
                "v.csv, line 1, column 2 (name): no statement of w.sql has such a parameter; remove the column"
            ),
            "{unused}"
        );
        let missing = parse("SELECT :id, :name;\nSELECT $other").unwrap_err();
        assert!(missing.starts_with("w.sql, line 2: no value for the parameter :other: "), "{missing}");
        assert!(missing.ends_with("v.csv has the columns id, name"), "{missing}");
        let none = parse("SELECT :id, :name;\n-- flashwise: parameters w.csv\nSELECT 1").unwrap_err();
        assert_eq!(none, "w.sql, line 2: parameters for the statement in line 3, which has none");
    }
}
