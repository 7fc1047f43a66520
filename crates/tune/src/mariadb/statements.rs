//! Cuts a file of SQL into statements as the `mariadb` client does: a dump with its `DELIMITER` lines, or a script.
//!
//! A statement ends at the delimiter outside of strings, names and comments. Comments that the server runs (`/*! … */`,
//! `/*M! … */`) belong to a statement.
//!
//! Source: MariaDB's documentation of comments, string literals and the client's commands.

use std::ops::Range;
use std::path::{Path, PathBuf};

use flashwise_block::grouped;
use flashwise_block::input::read_text;

use crate::TuneError;

/// Statements of a file: more than a dump of the longest text has with one row in each. They take 100 MB.
const STATEMENTS_MAX: usize = 4_000_000;

/// A file of SQL, read once: it may be a pipe.
#[derive(Debug)]
pub(super) struct SqlFile {
    path: PathBuf,
    text: String,
    statements: Vec<Place>,
}

/// Where a statement is in its file, and its line, from one.
#[derive(Clone, Debug)]
struct Place {
    text: Range<usize>,
    line: usize,
}

/// One statement of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Statement<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
}

impl SqlFile {
    /// Reads a file with at least one statement.
    ///
    /// # Errors
    /// When it cannot be read, or has none or too many.
    pub(super) fn read(path: &Path) -> Result<Self, TuneError> {
        let text = read_text(path).map_err(|e| TuneError::file(path, &e))?;
        let statements = cut(&text);
        let fail = |message: String| Err(TuneError::File { path: path.to_owned(), message });
        match statements.len() {
            0 => fail("no SQL statement in it".to_owned()),
            1..=STATEMENTS_MAX => Ok(Self { path: path.to_owned(), text, statements }),
            _ => fail(format!("more than {} statements", grouped(STATEMENTS_MAX as u64))),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bytes(&self) -> u64 {
        self.text.len() as u64
    }

    pub(super) fn statements(&self) -> impl ExactSizeIterator<Item = Statement<'_>> {
        self.statements.iter().map(|place| Statement { text: &self.text[place.text.clone()], line: place.line })
    }
}

/// The statements of a text that was sent to a server; a routine is one, whatever is in it.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let is_routine = first_words(text, 1).any(|word| ["CREATE", "ALTER"].iter().any(|w| word.eq_ignore_ascii_case(w)));
    let whole = is_routine.then_some(text.trim());
    let cut = if is_routine { Vec::new() } else { cut(text) };
    whole.into_iter().chain(cut.into_iter().map(|place| &text[place.text]))
}

/// The first words of a statement, behind comments.
pub(super) fn first_words(text: &str, count: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let next = move || loop {
        rest = rest.trim_start();
        let length = quoted(rest.as_bytes());
        if length > 0 && rest.get(..length).is_some_and(is_comment) {
            rest = &rest[length..];
            continue;
        }
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        if end == 0 {
            return None;
        }
        let (word, behind) = rest.split_at(end);
        rest = behind;
        return Some(word);
    };
    std::iter::from_fn(next).take(count)
}

/// Bytes of a token from here that no delimiter can end; 0 for any other byte.
fn quoted(rest: &[u8]) -> usize {
    let until = |from: usize, end: &[u8]| {
        let found = rest[from..].windows(end.len()).position(|window| window == end);
        found.map_or(rest.len(), |found| from + found + end.len())
    };
    match *rest {
        [b'`', ..] => until(1, b"`"),
        [quote @ (b'\'' | b'"'), ..] => {
            let mut at = 1;
            while at < rest.len() && rest[at] != quote {
                at += if rest[at] == b'\\' { 2 } else { 1 };
            }
            (at + 1).min(rest.len())
        }
        [b'/', b'*', ..] => until(2, b"*/"),
        [b'#', ..] | [b'-', b'-'] => until(1, b"\n"),
        [b'-', b'-', next, ..] if next.is_ascii_whitespace() || next.is_ascii_control() => until(2, b"\n"),
        _ => 0,
    }
}

/// Whether a token is a comment that the server does not see as anything else.
fn is_comment(token: &str) -> bool {
    token.starts_with(['#', '-'])
        || (token.starts_with("/*") && !token.starts_with("/*!") && !token.starts_with("/*M!"))
}

/// The statements of a text, up to one more than a file may have.
fn cut(text: &str) -> Vec<Place> {
    const COMMAND: &str = "delimiter";
    let mut statements = Vec::new();
    let mut delimiter = ";";
    let (mut at, mut line) = (text.len() - text.trim_start_matches('\u{feff}').len(), 1);
    let place = |start: usize, end: usize, line: usize| {
        let text = start..start + text[start..end].trim_end().len();
        Place { text, line }
    };
    // Where the statement starts, and its line.
    let mut open: Option<(usize, usize)> = None;
    while at < text.len() && statements.len() <= STATEMENTS_MAX {
        let rest = &text[at..];
        let is_command = |rest: &str| {
            let (word, behind) = rest.split_at_checked(COMMAND.len()).unwrap_or_default();
            word.eq_ignore_ascii_case(COMMAND) && behind.starts_with([' ', '\t'])
        };
        let length = if open.is_none() && is_command(rest) {
            let command = rest.lines().next().unwrap_or_default();
            delimiter = command[COMMAND.len()..].trim();
            if delimiter.is_empty() {
                delimiter = ";";
            }
            command.len()
        } else if rest.starts_with(delimiter) {
            if let Some((start, line)) = open.take() {
                statements.push(place(start, at, line));
            }
            delimiter.len()
        } else {
            let letter = rest.chars().next().map_or(1, char::len_utf8);
            let token = match quoted(rest.as_bytes()) {
                0 => &rest[..letter],
                // A backslash before a letter of several bytes ends within it.
                length => &rest[..(length..=rest.len()).find(|&end| rest.is_char_boundary(end)).unwrap_or(rest.len())],
            };
            if open.is_none() && !is_comment(token) && !token.starts_with(char::is_whitespace) {
                open = Some((at, line));
            }
            token.len()
        };
        line += text[at..at + length].matches('\n').count();
        at += length;
    }
    if let Some((start, line)) = open {
        statements.push(place(start, text.len(), line));
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(text: &str) -> Vec<(String, usize)> {
        cut(text).into_iter().map(|place| (text[place.text].to_owned(), place.line)).collect()
    }

    #[test]
    fn statements_end_at_the_delimiter_outside_of_strings_names_and_comments() {
        for (text, expected) in [
            ("SELECT 1; SELECT 2", &[("SELECT 1", 1), ("SELECT 2", 1)][..]),
            (
                "-- a; b\n# c;\n/* d; */;;\nSELECT 'it''s; \\'x;', \"\\\\\", `a;`;",
                &[("SELECT 'it''s; \\'x;', \"\\\\\", `a;`", 4)],
            ),
            ("SELECT 5--1; SELECT 2 -- ;\n;", &[("SELECT 5--1", 1), ("SELECT 2 -- ;", 1)]),
            (
                "/*!40101 SET NAMES utf8 */;\n/*M!100616 SET @x = 1 */;",
                &[("/*!40101 SET NAMES utf8 */", 1), ("/*M!100616 SET @x = 1 */", 2)],
            ),
            (
                "DELIMITER ;;\nCREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW BEGIN SET @a = 1; END ;;\nDELIMITER ;\nSELECT 1;",
                &[("CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW BEGIN SET @a = 1; END", 2), ("SELECT 1", 4)],
            ),
            ("\u{feff}SELECT 'ä\\ö;'", &[("SELECT 'ä\\ö;'", 1)]),
            ("SELECT 'open;", &[("SELECT 'open;", 1)]),
            (" \n-- nothing", &[]),
        ] {
            let expected: Vec<(String, usize)> = expected.iter().map(|&(text, line)| (text.to_owned(), line)).collect();
            assert_eq!(texts(text), expected, "{text}");
        }
    }

    #[test]
    fn words_are_found_behind_comments_and_routines_are_whole() {
        let words = |text: &str| first_words(text, 3).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words("/* app */ -- x\n SELECT a.b, c"), ["SELECT", "a"]);
        assert_eq!(words("/* ä"), Vec::<String>::new());
        assert_eq!(words("(SELECT 1)"), Vec::<String>::new());
        assert_eq!(pieces("SELECT 1; SELECT ';'").collect::<Vec<_>>(), ["SELECT 1", "SELECT ';'"]);
        let routine = "CREATE PROCEDURE p() BEGIN SET @a = 1; END";
        assert_eq!(pieces(routine).collect::<Vec<_>>(), [routine]);
    }

    proptest! {
        #[test]
        fn whatever_the_text_it_has_an_end(text in "([ -~\n;'\"`\\\\#äö]|delimiter |DELIMITER ;;\n|/\\*|\\*/|-- )*") {
            for statement in cut(&text) {
                prop_assert!(!statement.text.is_empty() && statement.line <= 1 + text.matches('\n').count());
            }
        }
    }
}
