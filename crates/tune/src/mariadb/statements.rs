//! Cuts a file of SQL into statements as the `mariadb` client does: a dump with its `DELIMITER` lines, or a script.
//!
//! A statement ends at the delimiter outside of strings, names and comments. Comments that the server runs (`/*! … */`,
//! `/*M! … */`) belong to a statement.
//!
//! Source: MariaDB's documentation of comments, string literals and the client's commands.

use std::path::Path;

use flashwise_block::input::read_text;

use crate::TuneError;

/// One statement of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) text: String,
    /// Where it starts, from one.
    pub(super) line: usize,
}

/// The statements of a file; at least one.
///
/// # Errors
/// When it cannot be read or has none.
pub(super) fn read(path: &Path) -> Result<Vec<Statement>, TuneError> {
    let text = read_text(path).map_err(|e| TuneError::file(path, &e))?;
    let statements = cut(&text);
    if statements.is_empty() {
        return Err(TuneError::File { path: path.to_owned(), message: "no SQL statement in it".to_owned() });
    }
    Ok(statements)
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

fn cut(text: &str) -> Vec<Statement> {
    const COMMAND: &str = "delimiter";
    let text = text.trim_start_matches('\u{feff}');
    let mut statements = Vec::new();
    let mut delimiter = ";";
    let (mut at, mut line) = (0, 1);
    // Where the statement starts, and its line.
    let mut open: Option<(usize, usize)> = None;
    while at < text.len() {
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
                statements.push(Statement { text: text[start..at].trim_end().to_owned(), line });
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
        statements.push(Statement { text: text[start..].trim_end().to_owned(), line });
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(text: &str) -> Vec<(String, usize)> {
        cut(text).into_iter().map(|statement| (statement.text, statement.line)).collect()
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

    proptest! {
        #[test]
        fn whatever_the_text_it_has_an_end(text in "([ -~\n;'\"`\\\\#äö]|delimiter |DELIMITER ;;\n|/\\*|\\*/|-- )*") {
            for statement in cut(&text) {
                prop_assert!(!statement.text.is_empty() && statement.line <= 1 + text.matches('\n').count());
            }
        }
    }
}
