//! DiskSim's parameter files: `type name { key = value, … }`, values being numbers, words, lists and blocks.

use std::collections::BTreeSet;

use super::ImportError;
use super::figure::floor;
use super::notes::Notes;
use flashwise_block::names::{edit_distance, nearest};

/// One block with its entries.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) entries: Vec<Entry>,
}

/// One `key = value`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: u32,
    pub(super) value: Value,
}

/// What is behind the `=`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A number or a word.
    Word(String),
    /// `[ …, … ]`.
    List(Vec<Value>),
    /// A block without a name of its own.
    Block(Block),
}

impl Block {
    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// A number, or a default where the key is not there.
    pub(super) fn number(&self, file: &str, key: &str, default: f64) -> Result<f64, ImportError> {
        let Some(entry) = self.get(key) else { return Ok(default) };
        let number = match &entry.value {
            Value::Word(word) => word.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0),
            _ => None,
        };
        number.ok_or_else(|| syntax(file, entry.line, format!("'{key}' should be a number from 0 on")))
    }

    /// A whole number, or a default.
    pub(super) fn count(&self, file: &str, key: &str, default: u64) -> Result<u64, ImportError> {
        let number = self.number(file, key, default as f64)?;
        let line = self.get(key).map_or(self.line, |entry| entry.line);
        // Every whole number below 2^53 has a form of its own as a number with a fraction.
        let whole = floor(number).filter(|_| number.fract() == 0.0 && number < 2f64.powi(53));
        whole.ok_or_else(|| syntax(file, line, format!("'{key}' should be a whole number below 2^53")))
    }

    /// The line of a key, or of the block where it is absent.
    pub(super) fn line_of(&self, key: &str) -> u32 {
        self.get(key).map_or(self.line, |entry| entry.line)
    }

    /// Notes the keys that are not in a list, and refuses keys that are in the block twice. A key that must be a
    /// misspelling, of one that the block lacks, is refused: DiskSim would miss that one too.
    pub(super) fn note_unknown(&self, file: &str, known: &[&str], notes: &mut Notes) -> Result<(), ImportError> {
        /// Letters by which a misspelling differs.
        const LETTERS: usize = 2;
        let mut seen = BTreeSet::new();
        for entry in &self.entries {
            let key = entry.key.as_str();
            if !seen.insert(key) {
                return Err(syntax(file, entry.line, format!("'{key}' is repeated")));
            }
            if known.contains(&key) {
                continue;
            }
            let absent = known.iter().copied().filter(|known| self.get(known).is_none());
            if let Some(near) = nearest(key, absent).filter(|near| edit_distance(key, near) <= LETTERS) {
                let reason = format!("'{key}' is unknown in {}; did you mean '{near}'?", self.kind);
                return Err(syntax(file, entry.line, reason));
            }
            notes.add(format!("{file}: line {}: '{key}' is unknown in {} and has no effect", entry.line, self.kind));
        }
        Ok(())
    }
}

pub(super) fn syntax(file: &str, line: u32, reason: impl Into<String>) -> ImportError {
    ImportError::Syntax { file: file.to_owned(), line, reason: reason.into() }
}

/// Most blocks within blocks; a parameter file has two or three.
const MOST_NESTED: usize = 32;
/// Most keys of a block; DiskSim's have some forty.
const ENTRIES_MAX: usize = 4096;

/// Reads the blocks of a file; what is no block, such as `instantiate` and `topology`, is passed over.
pub(super) fn parse(text: &str, file: &str) -> Result<Vec<Block>, ImportError> {
    let mut parser = Parser { file, tokens: tokens(text), at: 0, depth: 0 };
    let mut blocks = Vec::new();
    while let Some(token) = parser.peek() {
        let words = parser.words();
        match (words.as_slice(), parser.peek().map(|t| t.text)) {
            ([kind, name], Some("{")) => {
                let block = parser.block(kind.clone(), name.clone(), token.line)?;
                blocks.push(block);
            }
            ([], _) => parser.at = parser.at.saturating_add(1),
            _ => {}
        }
    }
    Ok(blocks)
}

#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    line: u32,
}

/// Words and marks; `#` starts a comment.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_mark = |c: char| "{}[]=,".contains(c);
            let end = match is_mark(first) {
                true => first.len_utf8(),
                false => rest.find(|c: char| is_mark(c) || c.is_whitespace()).unwrap_or(rest.len()),
            };
            tokens.push(Token { text: &rest[..end], line: number });
            rest = rest[end..].trim_start();
        }
    }
    tokens
}

struct Parser<'a> {
    file: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn line(&self) -> u32 {
        self.peek().or(self.tokens.last().copied()).map_or(1, |token| token.line)
    }

    fn wrong<T>(&self, reason: &str) -> Result<T, ImportError> {
        Err(syntax(self.file, self.line(), reason))
    }

    /// The words up to the next mark.
    fn words(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        while let Some(token) = self.peek().filter(|token| !"{}[]=,".contains(token.text)) {
            words.push(token.text.to_owned());
            self.at = self.at.saturating_add(1);
        }
        words
    }

    /// Goes past a mark, if it is there.
    fn take(&mut self, mark: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.text == mark);
        self.at = self.at.saturating_add(usize::from(found));
        found
    }

    fn block(&mut self, kind: String, name: String, line: u32) -> Result<Block, ImportError> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > MOST_NESTED {
            return self.wrong("too many nested blocks");
        }
        self.take("{");
        let mut entries = Vec::new();
        while !self.take("}") {
            let (line, key) = (self.line(), self.words().join(" "));
            if key.is_empty() || !self.take("=") {
                return self.wrong("expected a key and '=', or the block's '}'");
            }
            entries.push(Entry { key, line, value: self.value()? });
            if entries.len() > ENTRIES_MAX {
                return self.wrong("not a DiskSim block: too many keys");
            }
            self.take(",");
        }
        self.depth = self.depth.saturating_sub(1);
        Ok(Block { kind, name, line, entries })
    }

    fn value(&mut self) -> Result<Value, ImportError> {
        let line = self.line();
        if self.take("[") {
            return self.list();
        }
        let words = self.words().join(" ");
        if self.peek().is_some_and(|token| token.text == "{") {
            return self.block(words, String::new(), line).map(Value::Block);
        }
        if words.is_empty() { self.wrong("a value is missing after '='") } else { Ok(Value::Word(words)) }
    }

    fn list(&mut self) -> Result<Value, ImportError> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > MOST_NESTED {
            return self.wrong("too many nested lists");
        }
        let mut values = Vec::new();
        while !self.take("]") {
            values.push(self.value()?);
            self.take(",");
        }
        self.depth = self.depth.saturating_sub(1);
        Ok(Value::List(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lists_comments_and_keys_of_several_words_are_read() {
        let text = "type_a A {\n  Page size = 8, # sectors\n  Scheduler = queue { Policy = 1 },\n  list = [ x, y 2 ]\n}\ninstantiate [ s ] as A\n";
        let blocks = parse(text, "f").unwrap();
        assert_eq!(blocks.len(), 1);
        assert_eq!((blocks[0].kind.as_str(), blocks[0].name.as_str()), ("type_a", "A"));
        assert_eq!(blocks[0].count("f", "Page size", 0), Ok(8));
        assert_eq!(blocks[0].get("Page size").unwrap().line, 2);
        assert!(matches!(&blocks[0].get("list").unwrap().value, Value::List(values) if values.len() == 2));
        let Value::Block(inner) = &blocks[0].get("Scheduler").unwrap().value else { panic!() };
        assert_eq!(inner.count("f", "Policy", 0), Ok(1));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, words) in [
            ("a b {\n x 3\n}", "line 3: expected a key and '='"),
            ("a b {\n x =\n}", "line 3: a value is missing"),
            ("a b { x = 1", "line 1: expected a key and '='"),
        ] {
            let error = parse(text, "f").unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        for text in ["a b { x = ".repeat(100), format!("a b {{ {} }}", "x = 1,".repeat(100_000)), "[".repeat(1 << 20)] {
            let _ = parse(&text, "f");
        }
        assert!(parse(&"a b { x = ".repeat(100), "f").is_err());
        let block = &parse("a b {\n x = y,\n Z = 1.5, Z = 2 }", "f").unwrap()[0];
        assert!(block.number("f", "x", 0.0).unwrap_err().to_string().contains("line 2"));
        assert!(block.count("f", "Z", 0).unwrap_err().to_string().contains("whole number"));
        let mut notes = Notes::default();
        assert!(block.note_unknown("f", &["x", "Z"], &mut notes).unwrap_err().to_string().contains("is repeated"));
        assert!(block.note_unknown("f", &["X"], &mut notes).unwrap_err().to_string().contains("did you mean 'X'?"));
    }
}
