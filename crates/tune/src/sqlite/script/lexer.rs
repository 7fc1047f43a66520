//! Cuts SQL into statements, and finds their parameters and the directives between them.
//!
//! A statement ends at a `;` outside of strings, names and comments; that of a trigger at `;END;`, as SQLite's
//! `sqlite3_complete` has it. Nothing else of SQL is understood here: SQLite itself prepares what was cut.
//!
//! Source: SQLite's `tokenize.c`, `complete.c`, and "SQL Parameters" in lang_expr.html.

use std::collections::HashSet;
use std::ops::Range;

/// The mark of a directive, at the start of a comment.
const MARK: &str = "flashwise:";

/// A part of a script.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Statement {
        line: usize,
        text: Range<usize>,
        parameters: Vec<Parameter>,
    },
    Directive {
        line: usize,
        words: &'a str,
    },
    /// A directive inside a statement.
    Misplaced {
        line: usize,
    },
}

/// A parameter of a statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    /// SQLite's number of it, from one.
    pub(super) index: usize,
    /// Without the first letter; the number for `?`.
    pub(super) name: String,
}

/// What a word or a `;` means for the end of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Semicolon,
    Explain,
    Create,
    Temporary,
    Trigger,
    End,
    Other,
}

impl Word {
    fn of(word: &str) -> Self {
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        match word.len() {
            7 if is("EXPLAIN") => Self::Explain,
            5 if is("QUERY") => Self::Explain,
            4 if is("PLAN") => Self::Explain,
            6 if is("CREATE") => Self::Create,
            4 if is("TEMP") => Self::Temporary,
            9 if is("TEMPORARY") => Self::Temporary,
            7 if is("TRIGGER") => Self::Trigger,
            3 if is("END") => Self::End,
            _ => Self::Other,
        }
    }
}

/// The statement that is being read.
#[derive(Default)]
struct Open {
    /// Where it starts, and its line.
    start: Option<(usize, usize)>,
    /// Behind its last letter that is no comment.
    end: usize,
    parameters: Vec<Parameter>,
    /// Those that were named, with their first letter: `:a` and `@a` are two.
    named: HashSet<String>,
    /// The largest number of a parameter so far, as SQLite numbers them.
    numbered: usize,
    trigger: Trigger,
    /// The last two words.
    last: [Option<Word>; 2],
}

/// How much of `CREATE TRIGGER` was read.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Trigger {
    #[default]
    Possible,
    Created,
    Yes,
    No,
}

impl Open {
    /// Takes a word; whether the statement ends with it.
    fn word(&mut self, word: Word) -> bool {
        self.trigger = match (self.trigger, word) {
            (Trigger::Possible, Word::Explain) => Trigger::Possible,
            (Trigger::Possible, Word::Create) => Trigger::Created,
            (Trigger::Created, Word::Temporary) => Trigger::Created,
            (Trigger::Created, Word::Trigger) | (Trigger::Yes, _) => Trigger::Yes,
            _ => Trigger::No,
        };
        let ends = word == Word::Semicolon
            && (self.trigger != Trigger::Yes || self.last == [Some(Word::Semicolon), Some(Word::End)]);
        self.last = [self.last[1], Some(word)];
        ends
    }

    /// Takes a parameter; known ones have their number.
    fn parameter(&mut self, token: &str) {
        let digits = token.strip_prefix('?').map(|digits| digits.trim_start_matches('0'));
        let (index, name) = match digits {
            None => (self.numbered + 1, &token[1..]),
            Some("") => (self.numbered + 1, ""),
            Some(digits) => (digits.parse().unwrap_or(0), digits),
        };
        if !name.is_empty() && !self.named.insert(token.to_owned()) {
            return;
        }
        self.numbered = self.numbered.max(index);
        let name = if name.is_empty() { index.to_string() } else { name.to_owned() };
        self.parameters.push(Parameter { index, name });
    }
}

/// The pieces of a text.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        const BYTE_ORDER_MARK: &str = "\u{feff}";
        let at = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        Self { text, at, line: 1 }
    }

    /// Tokens that are neither white space nor comments.
    pub(super) fn tokens(mut self) -> impl Iterator<Item = &'a str> {
        let next = move || {
            let length = self.length_or_end();
            let range = Self::skip(&mut self, length);
            self.text.get(range).filter(|token| !token.is_empty())
        };
        let is_blank =
            |token: &str| token.starts_with("--") || token.starts_with("/*") || token.trim_ascii().is_empty();
        std::iter::from_fn(next).filter(move |token| !is_blank(token))
    }

    fn length_or_end(&self) -> usize {
        if self.at < self.text.len() { self.length() } else { 0 }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// Moves on, counting lines.
    fn skip(&mut self, bytes: usize) -> Range<usize> {
        let range = self.at..(self.at + bytes).min(self.text.len());
        self.line += self.text.as_bytes()[range.clone()].iter().filter(|&&byte| byte == b'\n').count();
        self.at = range.end;
        range
    }

    /// Length of the token that starts here; at least one.
    fn length(&self) -> usize {
        let rest = self.rest();
        let while_ = |from: usize, is: fn(u8) -> bool| from + rest[from..].iter().take_while(|&&byte| is(byte)).count();
        let until = |from: usize, end: &[u8]| {
            let found = rest[from.min(rest.len())..].windows(end.len()).position(|window| window == end);
            found.map_or(rest.len(), |found| from + found + end.len())
        };
        match rest {
            [b'-', b'-', ..] => until(2, b"\n"),
            [b'/', b'*', ..] => until(2, b"*/"),
            // A doubled quote ends one string and starts the next: the same for where a statement ends.
            [quote @ (b'\'' | b'"' | b'`'), ..] => until(1, &[*quote]),
            [b'[', ..] => until(1, b"]"),
            [b'?', ..] => while_(1, |byte| byte.is_ascii_digit()),
            [b'$' | b':' | b'@' | b'#', next, ..] if is_name(*next) => tcl_name(rest),
            [byte, ..] if byte.is_ascii_whitespace() => while_(1, |byte| byte.is_ascii_whitespace()),
            [byte, ..] if is_name(*byte) => while_(1, is_name),
            _ => 1,
        }
    }
}

/// A letter of a name.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// Length of a named parameter, with the suffixes that Tcl's variables have: `$a::b(c)`.
fn tcl_name(rest: &[u8]) -> usize {
    let mut length = 1;
    loop {
        length += rest[length..].iter().take_while(|&&byte| is_name(byte)).count();
        match rest[length..] {
            [b':', b':', ..] => length += 2,
            [b'(', ..] if rest[0] == b'$' => {
                let inner = rest[length..].iter().take_while(|&&byte| byte != b')' && !byte.is_ascii_whitespace());
                let end = length + inner.count();
                return if rest.get(end) == Some(&b')') { end + 1 } else { length };
            }
            _ => return length,
        }
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let mut open = Open::default();
        while self.at < self.text.len() {
            let (line, first) = (self.line, self.rest()[0]);
            let range = self.skip(self.length());
            let token = &self.text[range.clone()];
            if let Some(comment) = token.strip_prefix("--") {
                let Some(words) = comment.trim().strip_prefix(MARK) else { continue };
                return Some(match open.start {
                    None => Piece::Directive { line, words: words.trim() },
                    Some(_) => Piece::Misplaced { line },
                });
            }
            if token.starts_with("/*") || first.is_ascii_whitespace() {
                continue;
            }
            if open.start.is_none() {
                if first == b';' {
                    continue;
                }
                open.start = Some((range.start, line));
            }
            let is_parameter = first == b'?' || (matches!(first, b'$' | b':' | b'@' | b'#') && token.len() > 1);
            if is_parameter {
                open.parameter(token);
            }
            let word = match first {
                b';' => Word::Semicolon,
                _ if is_name(first) && !is_parameter => Word::of(token),
                _ => Word::Other,
            };
            if open.word(word) {
                return open.start.map(|(start, line)| open.piece(start, line));
            }
            open.end = range.end;
        }
        open.start.map(|(start, line)| open.piece(start, line))
    }
}

impl Open {
    fn piece<'a>(&mut self, start: usize, line: usize) -> Piece<'a> {
        Piece::Statement { line, text: start..self.end, parameters: std::mem::take(&mut self.parameters) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rusqlite::fallible_iterator::FallibleIterator;

    fn cut(text: &str) -> Vec<&str> {
        let statements = Lexer::new(text).filter_map(|piece| match piece {
            Piece::Statement { text: range, .. } => Some(&text[range]),
            _ => None,
        });
        statements.collect()
    }

    fn parameters(text: &str) -> Vec<(usize, String)> {
        match Lexer::new(text).next() {
            Some(Piece::Statement { parameters, .. }) => {
                parameters.into_iter().map(|parameter| (parameter.index, parameter.name)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_semicolon_ends_a_statement_unless_it_is_in_a_string_a_name_a_comment_or_a_trigger() {
        for (text, expected) in [
            ("SELECT 1;SELECT 2", &["SELECT 1", "SELECT 2"][..]),
            ("SELECT ';'';' ;; -- ;\n SELECT \";\", [;], `;` /* ; */ ;", &["SELECT ';'';'", "SELECT \";\", [;], `;`"]),
            (
                "CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN SELECT CASE 1 WHEN 1 THEN 2 END; DELETE FROM a; END; SELECT 1",
                &[
                    "CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN SELECT CASE 1 WHEN 1 THEN 2 END; DELETE FROM a; END",
                    "SELECT 1",
                ],
            ),
            (
                "BEGIN; CREATE TABLE trigger_(x); END; SELECT 1",
                &["BEGIN", "CREATE TABLE trigger_(x)", "END", "SELECT 1"],
            ),
            ("EXPLAIN QUERY PLAN SELECT 1; /* open", &["EXPLAIN QUERY PLAN SELECT 1"]),
            ("SELECT 'open ; ", &["SELECT 'open ; "]),
            ("\u{feff}SELECT 1;\r\nSELECT 2;\r\n", &["SELECT 1", "SELECT 2"]),
            ("", &[]),
        ] {
            assert_eq!(cut(text), expected, "{text}");
        }
    }

    #[test]
    fn parameters_are_numbered_as_sqlite_numbers_them() {
        for text in [
            "SELECT ?, ?, ?7, ?, :a, @b, $c, :a, ?2, ?",
            "SELECT $a::b(c), $x::y, ':no', \":no\", [?], a->>'$.x', x'00', 1e5, ?007 -- ?",
            "SELECT 'it''s :no', /* :no */ :ä, @a1$",
        ] {
            let db = rusqlite::Connection::open_in_memory().unwrap();
            let sql = text.replace("a->>'$.x'", "'{}'->>'$.x'").replace("\":no\"", "1").replace("[?]", "1");
            let statement = db.prepare(&sql).unwrap();
            let mut found = parameters(text);
            found.sort();
            found.dedup();
            let mut theirs: Vec<(usize, String)> = (1..=statement.parameter_count())
                .map(|n| match statement.parameter_name(n) {
                    Some(name) if name.starts_with('?') => (n, name[1..].trim_start_matches('0').to_owned()),
                    Some(name) => (n, name[1..].to_owned()),
                    None => (n, n.to_string()),
                })
                .collect();
            // Numbers that are skipped have parameters, too.
            theirs.retain(|(n, _)| found.iter().any(|(known, _)| known == n));
            assert_eq!(found, theirs, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_panics_whatever_the_text(text in "([ -~\n;'\"`\\[\\]?:$@ä-]|SELECT |BEGIN|END;|--|/\\*|\\*/|CREATE TRIGGER )*") {
            let mut last = 0;
            for piece in Lexer::new(&text) {
                if let Piece::Statement { text: range, line, .. } = piece {
                    prop_assert!(range.start >= last && range.end > range.start && range.end <= text.len());
                    prop_assert_eq!(line, 1 + text[..range.start].matches('\n').count());
                    last = range.end;
                }
            }
        }

        #[test]
        fn sqlite_cuts_at_the_same_places(parts in proptest::collection::vec(
            prop_oneof![
                Just("SELECT 1"), Just("SELECT 'a;''b'"), Just("SELECT \";\" AS \"x;\""), Just("-- c;\nSELECT 2"),
                Just("/* ; */ SELECT 3"), Just("BEGIN"), Just("COMMIT"), Just(""), Just("SELECT x'00', 1e5, [;] FROM (SELECT 1 AS [;])"),
                Just("CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT ';'; SELECT CASE 1 WHEN 1 THEN 2 END; END"),
            ], 0..8)) {
            let text = parts.join(";\n");
            let db = rusqlite::Connection::open_in_memory().unwrap();
            db.execute_batch("CREATE TABLE t (x)").unwrap();
            let mut batch = rusqlite::Batch::new(&db, &text);
            let mut theirs = 0;
            while let Ok(Some(_)) = batch.next() {
                theirs += 1;
            }
            prop_assert_eq!(cut(&text).len(), theirs);
        }
    }
}
