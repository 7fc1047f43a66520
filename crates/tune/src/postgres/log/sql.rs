//! What a statement of a log is: tokens of PostgreSQL's SQL, the effect on a transaction, and the text without values.
//!
//! Source: PostgreSQL's documentation, "Lexical Structure"; for the text without values the module
//! `pg_stat_statements`, which puts `$1`, `$2`, … where constants were.

use crate::servers::logged::Effect;

/// Words of a statement that its effect depends on.
const WORDS: usize = 4;

/// A token; space and comments are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A key word, or a name without quotes.
    Word(&'a str),
    /// A name in quotes, with them.
    Name(&'a str),
    /// A string or a number.
    Constant,
    /// `$1`.
    Parameter(u32),
    /// Any other character.
    Sign(&'a str),
}

/// Cuts a text into tokens.
struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Goes on behind the next place of `end`, or to the text's end.
    fn skip_to(&mut self, end: &str) {
        self.at = self.text[self.at..].find(end).map_or(self.text.len(), |found| self.at + found + end.len());
    }

    fn skip_comment(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.text.len() {
            match (self.byte(0), self.byte(1)) {
                (b'/', b'*') => (depth, self.at) = (depth + 1, self.at + 2),
                (b'*', b'/') => (depth, self.at) = (depth - 1, self.at + 2),
                _ => self.at += 1,
            }
            if depth == 0 {
                return;
            }
        }
        self.at = self.text.len();
    }

    /// Goes on behind a string or name from its quote on; a doubled quote is part of it.
    fn skip_quoted(&mut self, quote: u8, has_escapes: bool) {
        self.at += 1;
        while self.at < self.text.len() {
            match self.byte(0) {
                b'\\' if has_escapes => self.at += 2,
                byte if byte == quote && self.byte(1) == quote => self.at += 2,
                byte => {
                    self.at += 1;
                    if byte == quote {
                        return;
                    }
                }
            }
        }
        self.at = self.text.len();
    }

    fn skip_while(&mut self, is_part: impl Fn(u8) -> bool) {
        while self.at < self.text.len() && is_part(self.byte(0)) {
            self.at += 1;
        }
    }

    fn dollar(&mut self) -> Token<'a> {
        let start = self.at;
        self.at += 1;
        self.skip_while(|byte| byte.is_ascii_digit());
        if self.at > start + 1 {
            return self.text[start + 1..self.at].parse().map_or(Token::Constant, Token::Parameter);
        }
        self.skip_while(is_word);
        if self.byte(0) != b'$' {
            self.at = start + 1;
            return Token::Sign("$");
        }
        self.at += 1;
        let tag = &self.text[start..self.at];
        self.skip_to(tag);
        Token::Constant
    }

    fn number(&mut self) {
        while self.at < self.text.len() {
            let is_exponent = matches!(self.byte(0), b'e' | b'E') && matches!(self.byte(1), b'+' | b'-');
            match self.byte(0) {
                _ if is_exponent => self.at += 2,
                byte if is_word(byte) || byte == b'.' => self.at += 1,
                _ => return,
            }
        }
    }

    fn word(&mut self) -> Token<'a> {
        let start = self.at;
        self.skip_while(|byte| is_word(byte) || byte == b'$');
        let word = &self.text[start..self.at];
        let is_prefix = |prefixes: &[&str]| prefixes.iter().any(|prefix| word.eq_ignore_ascii_case(prefix));
        match (self.byte(0), self.byte(1)) {
            (b'\'', _) if is_prefix(&["e", "b", "x", "n"]) => {
                self.skip_quoted(b'\'', is_prefix(&["e"]));
                Token::Constant
            }
            (b'&', b'\'') if is_prefix(&["u"]) => {
                self.at += 1;
                self.skip_quoted(b'\'', false);
                Token::Constant
            }
            (b'&', b'"') if is_prefix(&["u"]) => {
                self.at += 1;
                self.skip_quoted(b'"', false);
                Token::Name(&self.text[start..self.at])
            }
            _ => Token::Word(word),
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            self.skip_while(|byte| byte.is_ascii_whitespace() || byte == 0x0b);
            match (self.byte(0), self.byte(1)) {
                (b'-', b'-') => self.skip_to("\n"),
                (b'/', b'*') => self.skip_comment(),
                _ => break,
            }
        }
        if self.at >= self.text.len() {
            return None;
        }
        let start = self.at;
        Some(match (self.byte(0), self.byte(1)) {
            (b'\'', _) => {
                self.skip_quoted(b'\'', false);
                Token::Constant
            }
            (b'"', _) => {
                self.skip_quoted(b'"', false);
                Token::Name(&self.text[start..self.at])
            }
            (b'$', _) => self.dollar(),
            (b'0'..=b'9', _) | (b'.', b'0'..=b'9') => {
                self.number();
                Token::Constant
            }
            (byte, _) if is_word(byte) => self.word(),
            _ => {
                self.at += 1;
                Token::Sign(&self.text[start..self.at])
            }
        })
    }
}

/// The statements of a text, cut at semicolons.
fn statements(text: &str) -> Vec<Vec<Token<'_>>> {
    let mut all = vec![Vec::new()];
    for token in Tokens::of(text) {
        match (token, all.last_mut()) {
            (Token::Sign(";"), _) => all.push(Vec::new()),
            (token, Some(statement)) => statement.push(token),
            (_, None) => {}
        }
    }
    all.retain(|statement| !statement.is_empty());
    all
}

/// The highest number of a parameter.
pub(super) fn parameters(text: &str) -> u32 {
    let number = |token| if let Token::Parameter(number) = token { number } else { 0 };
    Tokens::of(text).map(number).max().unwrap_or(0)
}

/// What each statement of a text does to the transaction.
pub(super) fn effects(text: &str) -> Vec<Effect> {
    statements(text).iter().map(|statement| effect(statement)).collect()
}

fn effect(statement: &[Token<'_>]) -> Effect {
    let words = || statement.iter().filter_map(|token| if let Token::Word(word) = token { Some(*word) } else { None });
    let has = |word: &str| words().any(|other| other.eq_ignore_ascii_case(word));
    let mut first = [""; WORDS];
    first.iter_mut().zip(words()).for_each(|(first, word)| *first = word);
    let first = first.map(str::to_ascii_uppercase);
    match first.each_ref().map(String::as_str) {
        ["COMMIT" | "ROLLBACK", "PREPARED", ..] | ["PREPARE", "TRANSACTION", ..] => {
            Effect::LeftOut("transactions in two phases")
        }
        ["BEGIN", ..] | ["START", "TRANSACTION", ..] => Effect::Begins,
        // The next transaction starts at once.
        ["COMMIT" | "END" | "ROLLBACK" | "ABORT", ..] if has("CHAIN") && !has("NO") => {
            Effect::LeftOut("ends of transactions AND CHAIN")
        }
        ["COMMIT" | "END", ..] => Effect::Commits,
        ["ROLLBACK" | "ABORT", ..] if has("TO") => Effect::ToSavepoint,
        ["ROLLBACK" | "ABORT", ..] => Effect::RollsBack,
        ["COPY", ..] if has("STDIN") => Effect::LeftOut("COPY from a client: its rows are not in a log"),
        ["COPY", ..] => Effect::LeftOut("COPY to a client, or with a file of the server"),
        ["SET" | "RESET" | "SHOW" | "PREPARE" | "DEALLOCATE" | "DISCARD" | "LISTEN" | "UNLISTEN", ..] => Effect::Sets,
        [
            "CREATE" | "ALTER" | "DROP",
            "DATABASE" | "ROLE" | "USER" | "TABLESPACE" | "SYSTEM" | "EXTENSION" | "SUBSCRIPTION" | "PUBLICATION",
            ..,
        ] => Effect::LeftOut("statements on the server and its extensions"),
        _ => Effect::Works,
    }
}

/// The text without values of each statement that works: as `pg_stat_statements` has it, in one spelling.
pub(super) fn prints(text: &str) -> Vec<String> {
    let works = |statement: &Vec<Token<'_>>| effect(statement) == Effect::Works;
    statements(text).into_iter().filter(works).map(|statement| print(&statement)).collect()
}

/// Words behind which `-1` is a number and no difference.
const BEFORE_NUMBERS: [&str; 19] = [
    "select", "return", "limit", "offset", "then", "else", "when", "and", "or", "not", "in", "between", "values",
    "set", "by", "where", "on", "having", "is",
];

fn print(statement: &[Token<'_>]) -> String {
    const VALUE: &str = "?";
    let mut parts: Vec<String> = Vec::with_capacity(statement.len());
    for token in statement {
        match token {
            Token::Word(word) => match word.to_ascii_lowercase() {
                word if ["true", "false", "null"].contains(&&*word) => parts.push(VALUE.to_owned()),
                word => parts.push(word),
            },
            Token::Name(name) => parts.push((*name).to_owned()),
            Token::Sign(sign) => parts.push((*sign).to_owned()),
            Token::Constant | Token::Parameter(_) => {
                let is_operand = |part: &String| {
                    let last = part.chars().next_back().unwrap_or(' ');
                    !BEFORE_NUMBERS.contains(&&**part)
                        && (last.is_alphanumeric() || ['_', '"', ')', ']', '?'].contains(&last))
                };
                let is_sign = parts.last().is_some_and(|part| part == "-" || part == "+");
                if is_sign && !parts.iter().rev().nth(1).is_some_and(is_operand) {
                    parts.pop();
                }
                parts.push(VALUE.to_owned());
            }
        }
        // Lists of values have any length.
        if let [.., a, comma, b] = &*parts
            && (&**a, &**comma, &**b) == (VALUE, ",", VALUE)
        {
            parts.truncate(parts.len() - 2);
        }
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use Effect::{Begins, Commits, LeftOut, RollsBack, Sets, ToSavepoint, Works};
    use proptest::prelude::*;

    #[test]
    fn statements_end_outside_of_strings_names_and_comments() {
        for (text, count) in [
            ("SELECT 1", 1),
            ("SELECT 1;;SELECT ';'; -- ;\n", 2),
            ("SELECT $$;$$, $a$;$$;$a$, E'\\';', U&'\\0061;', \"a;\"\";\" /* ; /* ; */ ; */", 1),
            ("SELECT 'it''s;', 'ä;'; SELECT e'ä\\'", 2),
            ("; -- nothing", 0),
        ] {
            assert_eq!(statements(text).len(), count, "{text}");
        }
        assert_eq!(parameters("SELECT $1, '$5', $12::int, $$ $40 $$"), 12);
        assert_eq!(parameters("SELECT a$3, \"$4\" -- $5"), 0);
    }

    #[test]
    fn effects_follow_from_the_first_words() {
        for (text, effect) in [
            ("begin;", Begins),
            ("/* app */ START TRANSACTION READ ONLY", Begins),
            ("COMMIT;", Commits),
            ("end", Commits),
            ("ROLLBACK", RollsBack),
            ("rollback to savepoint x", ToSavepoint),
            ("SET search_path = 'a'", Sets),
            ("PREPARE p AS SELECT 1", Sets),
            ("EXECUTE p(1)", Works),
            ("SAVEPOINT x", Works),
            ("COPY t (a) FROM STDIN", LeftOut("COPY from a client: its rows are not in a log")),
            ("COPY t TO PROGRAM 'x'", LeftOut("COPY to a client, or with a file of the server")),
            ("PREPARE TRANSACTION 'x'", LeftOut("transactions in two phases")),
            ("create user u", LeftOut("statements on the server and its extensions")),
        ] {
            assert_eq!(effects(text), [effect], "{text}");
        }
        assert_eq!(effects("BEGIN; UPDATE t SET a = 1; COMMIT"), [Begins, Works, Commits]);
    }

    #[test]
    fn values_do_not_matter_for_the_print() {
        for (logged, counted) in [
            (
                "UPDATE item SET stock = stock - 2 WHERE id = 978;",
                "update item\n  SET stock = stock - $1 WHERE id = $2",
            ),
            ("SELECT * FROM t WHERE a = -5 AND b > a-1", "SELECT * FROM t WHERE a = $1 AND b > a-$2"),
            ("SELECT a FROM t WHERE id IN (1, 2,3) LIMIT 5", "SELECT a FROM t WHERE id IN ($1 /*, ... */) LIMIT $2"),
            ("INSERT INTO t VALUES (1, 'it''s :-)', NULL, 1.5e-3)", "INSERT INTO t VALUES ($1, $2, $3, $4)"),
        ] {
            assert_eq!(prints(logged), prints(counted), "{logged}");
        }
        assert_ne!(prints("SELECT a FROM t"), prints("SELECT b FROM t"));
        assert_eq!(prints("BEGIN; COMMIT; SET a = 1"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn any_text_has_an_end(text in "([ -~\nä'\"$;]|\\$a\\$|/\\*|\\*/|--|E'|U&\"|\\$[0-9]{1,12})*") {
            let _ = (effects(&text), prints(&text), parameters(&text));
            prop_assert!(Tokens::of(&text).count() <= text.len());
        }
    }
}
