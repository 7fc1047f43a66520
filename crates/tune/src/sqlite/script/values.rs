//! Rows of values for the parameters of statements, from CSV or JSON.
//!
//! The columns of a CSV file are named after the parameters: `id` for `:id`, `@id` and `$id`, `1` for `?1` and for the
//! first `?`. CSV has no types. A column may name one: `id:integer`, `price:real`, `note:text`, `photo:blob`. Otherwise
//! each cell is what it looks like: a whole number, a decimal number, a blob if it is written as in SQL (`x'01ff'`),
//! NULL if it is empty, or text. `007` is text: a number would lose its zeros.
//!
//! JSON is an array of objects, or one object after the other; `{"blob": "01ff"}` is a blob.
//!
//! Source: RFC 4180; RFC 8259.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use flashwise_block::input::{check_regular, read_text};
use flashwise_block::names::choices;
use rusqlite::types::Value;
use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::{Deserializer, Map, Value as Json};

use crate::TuneError;

/// The longest file of values, bytes. A cell has two at least, and takes 32 in memory and as many for a text: 2 GiB.
const FILE_MAX: usize = 64 << 20;
/// As many parameters as SQLite takes in a statement (`SQLITE_MAX_VARIABLE_NUMBER`).
const COLUMNS_MAX: usize = 32_766;
const TYPES: [&str; 4] = ["integer", "real", "text", "blob"];

/// A table of values.
#[derive(Debug)]
pub(crate) struct Values {
    path: PathBuf,
    columns: Vec<String>,
    places: HashMap<String, usize>,
    used: Vec<bool>,
    /// Row by row.
    cells: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Integer,
    Real,
    Text,
    Blob,
    /// What the cell looks like.
    Any,
}

impl Values {
    /// Reads a file.
    ///
    /// # Errors
    /// With line and column of what is wrong.
    pub(crate) fn read(path: &Path) -> Result<Self, TuneError> {
        let text = check_regular(path).and_then(|()| read_text(path)).map_err(|e| TuneError::file(path, &e))?;
        let fail = |message: String| TuneError::File { path: path.to_owned(), message };
        if text.len() > FILE_MAX {
            return Err(fail(format!(
                "it is longer than {} MiB, the limit for values; give fewer rows",
                FILE_MAX >> 20
            )));
        }
        let text = text.trim_start_matches('\u{feff}');
        let is_json = match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => false,
            Some("json" | "jsonl" | "ndjson") => true,
            _ => text.trim_start().starts_with(['[', '{']),
        };
        let (columns, cells) = if is_json { from_json(path, text)? } else { from_csv(path, text)? };
        if cells.is_empty() {
            return Err(fail("no row of values in it".into()));
        }
        let used = vec![false; columns.len()];
        Ok(Self { path: path.to_owned(), places: places(&columns), columns, used, cells })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    pub(crate) fn rows(&self) -> usize {
        self.cells.len() / self.columns.len()
    }

    fn place(&self, name: &str) -> Option<usize> {
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
        let name = if is_number { name.trim_start_matches('0') } else { name };
        self.places.get(name).copied()
    }

    /// The row of a pass, by column; after the last one comes the first one again.
    pub(crate) fn row(&self, pass: usize) -> &[Value] {
        let first = pass % self.rows() * self.columns.len();
        &self.cells[first..first + self.columns.len()]
    }

    /// A statement has a parameter of that name; the column of its values.
    pub(super) fn mark_used(&mut self, name: &str) -> Option<usize> {
        let place = self.place(name);
        place.into_iter().for_each(|place| self.used[place] = true);
        place
    }

    /// A column that no statement uses.
    pub(super) fn unused(&self) -> Option<(usize, &str)> {
        self.used.iter().position(|used| !used).map(|place| (place, self.columns[place].as_str()))
    }
}

fn error(path: &Path, at: &str, message: impl Into<String>) -> TuneError {
    TuneError::Sql { context: format!("{}, {at}", path.display()), message: message.into() }
}

type Table = (Vec<String>, Vec<Value>);

fn places(columns: &[String]) -> HashMap<String, usize> {
    columns.iter().enumerate().map(|(place, name)| (name.clone(), place)).collect()
}

fn check_columns(path: &Path, columns: usize) -> Result<(), TuneError> {
    match columns > COLUMNS_MAX {
        true => Err(TuneError::File { path: path.to_owned(), message: format!("more than {COLUMNS_MAX} columns") }),
        false => Ok(()),
    }
}

fn from_csv(path: &Path, text: &str) -> Result<Table, TuneError> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let broken = |e: csv::Error| match (e.kind(), e.position()) {
        (csv::ErrorKind::UnequalLengths { expected_len, len, .. }, Some(position)) => {
            let message = format!("{len} values for {expected_len} columns");
            error(path, &format!("line {}", position.line()), message)
        }
        _ => TuneError::File { path: path.to_owned(), message: e.to_string() },
    };
    let headers = reader.headers().map_err(broken)?;
    check_columns(path, headers.len())?;
    let mut columns: Vec<(String, Type)> = Vec::new();
    let mut names = HashSet::new();
    for (place, header) in headers.iter().enumerate() {
        let column = column(header).map_err(|e| error(path, &format!("line 1, column {}", place + 1), e))?;
        if !names.insert(column.0.clone()) {
            return Err(error(path, &format!("line 1, column {} ({})", place + 1, column.0), "named twice"));
        }
        columns.push(column);
    }
    let mut cells = Vec::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(0, csv::Position::line);
        for (place, (text, (name, kind))) in record.iter().zip(&columns).enumerate() {
            let at = || format!("line {line}, column {} ({name})", place + 1);
            cells.push(cell(text, *kind).map_err(|e| error(path, &at(), e))?);
        }
    }
    Ok((columns.into_iter().map(|(name, _)| name).collect(), cells))
}

/// Name and type of a column.
fn column(header: &str) -> Result<(String, Type), String> {
    let (name, kind) = header.split_once(':').map_or((header, None), |(name, kind)| (name, Some(kind.trim())));
    let kind = match kind {
        None => Type::Any,
        Some("integer") => Type::Integer,
        Some("real") => Type::Real,
        Some("text") => Type::Text,
        Some("blob") => Type::Blob,
        Some(other) => return Err(format!("'{other}': unknown type; {}", choices(other, TYPES))),
    };
    match name.trim() {
        "" => Err("a column without a name; name it after its parameter".into()),
        name => Ok((name.to_owned(), kind)),
    }
}

/// A cell of a CSV file.
fn cell(text: &str, kind: Type) -> Result<Value, String> {
    let shown = || text.chars().take(40).collect::<String>().escape_debug().to_string();
    match kind {
        Type::Text => Ok(Value::Text(text.to_owned())),
        _ if text.is_empty() => Ok(Value::Null),
        Type::Integer => text.trim().parse().map(Value::Integer).map_err(|_| format!("'{}' is no integer", shown())),
        Type::Real => real(text.trim()).map(Value::Real).ok_or_else(|| format!("'{}' is no number", shown())),
        Type::Blob => {
            let digits = quoted_blob(text).unwrap_or(text);
            bytes(digits)
                .map(Value::Blob)
                .ok_or_else(|| format!("'{}' is no blob; write its bytes in hexadecimal", shown()))
        }
        Type::Any => Ok(looks_like(text)),
    }
}

fn looks_like(text: &str) -> Value {
    if let Some(blob) = quoted_blob(text).and_then(bytes) {
        return Value::Blob(blob);
    }
    if let Ok(number) = text.parse::<i64>()
        && number.to_string() == text
    {
        return Value::Integer(number);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let keeps_its_zeros = digits.starts_with('0') && !digits.starts_with("0.");
    let is_decimal = digits.starts_with(|first: char| first.is_ascii_digit()) && text.contains(['.', 'e', 'E']);
    match real(text) {
        Some(number) if is_decimal && !keeps_its_zeros => Value::Real(number),
        _ => Value::Text(text.to_owned()),
    }
}

fn real(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The digits of a blob as SQL writes it.
fn quoted_blob(text: &str) -> Option<&str> {
    text.strip_prefix(['x', 'X'])?.strip_prefix('\'')?.strip_suffix('\'')
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let byte = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    if digits.len().is_multiple_of(2) { digits.chunks_exact(2).map(byte).collect() } else { None }
}

fn from_json(path: &Path, text: &str) -> Result<Table, TuneError> {
    let wrong = |e: &serde_json::Error| {
        let message = e.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        error(path, &format!("line {}, column {}", e.line(), e.column()), message)
    };
    let mut table = JsonTable { path, columns: Vec::new(), places: HashMap::new(), cells: Vec::new(), rows: 0 };
    let mut deserializer = Deserializer::from_str(text);
    if text.trim_start().starts_with('[') {
        let mut failed = None;
        let rows = Rows { table: &mut table, failed: &mut failed };
        let read = deserializer.deserialize_seq(rows).and_then(|()| deserializer.end());
        failed.map_or(Ok(()), Err)?;
        read.map_err(|e| wrong(&e))?;
    } else {
        for object in deserializer.into_iter() {
            table.row(object.map_err(|e| wrong(&e))?)?;
        }
    }
    Ok((table.columns, table.cells))
}

/// The rows of a JSON file. Each one is taken as it is read: as an object it takes many times the memory of its cells.
struct JsonTable<'a> {
    path: &'a Path,
    columns: Vec<String>,
    places: HashMap<String, usize>,
    cells: Vec<Value>,
    rows: usize,
}

impl JsonTable<'_> {
    fn row(&mut self, object: Map<String, Json>) -> Result<(), TuneError> {
        if self.rows == 0 {
            check_columns(self.path, object.len())?;
            self.columns = object.keys().cloned().collect();
            self.places = places(&self.columns);
        }
        self.rows += 1;
        let fail = |name: &str, message: &str| error(self.path, &format!("row {}, {name:?}", self.rows), message);
        if let Some(extra) = object.keys().find(|key| !self.places.contains_key(*key)) {
            return Err(fail(extra, "the first row has no such value"));
        }
        for name in &self.columns {
            let value = object.get(name).ok_or_else(|| fail(name, "no value; write null for NULL"))?;
            self.cells.push(json(value).map_err(|e| fail(name, e))?);
        }
        Ok(())
    }
}

/// The rows of an array.
struct Rows<'a, 'b> {
    table: &'a mut JsonTable<'b>,
    /// Why a row was refused: serde's own errors know its place only.
    failed: &'a mut Option<TuneError>,
}

impl<'de> Visitor<'de> for Rows<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        while let Some(object) = rows.next_element::<Map<String, Json>>()? {
            if let Err(error) = self.table.row(object) {
                *self.failed = Some(error);
                return Err(A::Error::custom("a row was refused"));
            }
        }
        Ok(())
    }
}

fn json(value: &Json) -> Result<Value, &'static str> {
    const BLOB: &str = "neither null, number, text nor {\"blob\": \"HEX\"}";
    match value {
        Json::Null => Ok(Value::Null),
        Json::Bool(truth) => Ok(Value::Integer((*truth).into())),
        Json::String(text) => Ok(Value::Text(text.clone())),
        Json::Number(number) => match (number.as_i64(), number.is_u64(), number.as_f64()) {
            (Some(number), ..) => Ok(Value::Integer(number)),
            (None, true, _) => Err("an integer of more than 64 bits"),
            (None, false, Some(number)) => Ok(Value::Real(number)),
            _ => Err("not a number that SQLite can keep"),
        },
        Json::Object(object) if object.len() == 1 => {
            let digits = object.get("blob").and_then(Json::as_str).ok_or(BLOB)?;
            bytes(digits).map(Value::Blob).ok_or("no blob; write its bytes in hexadecimal")
        }
        _ => Err(BLOB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<Values, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let shortened = format!("{}/", folder.path().display());
        Values::read(&path).map_err(|e| e.to_string().replace(&shortened, ""))
    }

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn cells_are_what_they_look_like_unless_a_type_is_named() {
        let file = "\u{feff}a,b:text,c:real,d:blob\r\n1,1,1,00ff\r\n-2.5,,,\r\n007,\"x, \"\"y\"\"\n\",1e3,x'01'\r\n\
                    x'aB',0,-1,\r\n,-,2.0,\r\n1e3,a,1,\r\n9223372036854775808,b,1,\r\n1.2.3,c,1,\r\ninf,d,1,\r\n";
        let values = read("v.csv", file).unwrap();
        assert_eq!(values.rows(), 9);
        let place = |name: &str| values.place(name).unwrap();
        let of = |name: &str| (0..9).map(|row| values.row(row)[place(name)].clone()).collect::<Vec<_>>();
        let a = [
            Value::Integer(1),
            Value::Real(-2.5),
            text("007"),
            Value::Blob(vec![0xab]),
            Value::Null,
            Value::Real(1000.0),
            text("9223372036854775808"),
            text("1.2.3"),
            text("inf"),
        ];
        assert_eq!(of("a"), a);
        assert_eq!(of("b")[..3], [text("1"), text(""), text("x, \"y\"\n")]);
        assert_eq!(of("c")[..3], [Value::Real(1.0), Value::Null, Value::Real(1000.0)]);
        assert_eq!(of("d")[..3], [Value::Blob(vec![0, 0xff]), Value::Null, Value::Blob(vec![1])]);
    }

    #[test]
    fn json_keeps_its_types() {
        let array =
            r#"[{"a": 1, "b": null, "c": "x", "d": {"blob": "00FF"}}, {"b": 1.5, "a": true, "d": -1, "c": ""}]"#;
        let lines = array.trim_matches(['[', ']']).replace("}, {", "}\n{");
        for (name, file) in [("v.json", array), ("v.jsonl", &lines), ("v", array)] {
            let values = read(name, file).unwrap();
            let row = |row| ["a", "b", "c", "d"].map(|name| values.row(row)[values.place(name).unwrap()].clone());
            assert_eq!(row(0), [Value::Integer(1), Value::Null, text("x"), Value::Blob(vec![0, 0xff])], "{name}");
            assert_eq!(row(1), [Value::Integer(1), Value::Real(1.5), text(""), Value::Integer(-1)]);
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_line_and_column() {
        for (name, file, words) in [
            ("v.csv", "a,b\n1,2\n3\n", "v.csv, line 3: 1 values for 2 columns"),
            ("v.csv", "a,b:int\n1,2\n", "v.csv, line 1, column 2: 'int': unknown type; did you mean 'integer'?"),
            ("v.csv", "a,b:integer\n1,2\n1,2.5\n", "v.csv, line 3, column 2 (b): '2.5' is no integer"),
            ("v.csv", "a:blob\n0\n", "v.csv, line 2, column 1 (a): '0' is no blob"),
            ("v.csv", "a:real\nnan\n", "v.csv, line 2, column 1 (a): 'nan' is no number"),
            ("v.csv", "a,a\n0,1\n", "v.csv, line 1, column 2 (a): named twice"),
            ("v.csv", "a,,b\n0,1,2\n", "v.csv, line 1, column 2: a column without a name"),
            ("v.csv", "a,b\n", "v.csv: no row of values in it"),
            ("v.csv", "", "v.csv: no row of values in it"),
            ("v.json", "[{\"a\": 1},\n {\"a\" 2}]", "v.json, line 2, column 7: expected `:`"),
            ("v.json", "[1]", "v.json, line 1, column 2: invalid type"),
            ("v.json", "[{\"a\": 1}, {\"b\": 2}]", "v.json, row 2, \"b\": the first row has no such value"),
            ("v.json", "[{\"a\": 1, \"b\": 2}, {\"b\": 2}]", "v.json, row 2, \"a\": no value; write null"),
            ("v.json", "[{\"a\": [1]}]", "v.json, row 1, \"a\": neither null"),
            ("v.json", "[{\"a\": 18446744073709551615}]", "v.json, row 1, \"a\": an integer of more than 64 bits"),
            ("v.json", "[]", "v.json: no row of values in it"),
            ("v.json", "[{}]", "v.json: no row of values in it"),
        ] {
            let error = read(name, file).map(|_| ()).unwrap_err();
            assert!(error.starts_with(words), "{file}: {error}");
        }
        let columns: Vec<String> = (0..=COLUMNS_MAX).map(|n| format!("c{n}")).collect();
        let object = format!("{{{}}}", columns.iter().map(|c| format!("\"{c}\":1")).collect::<Vec<_>>().join(","));
        for (name, file) in [("v.csv", columns.join(",")), ("v.json", format!("[{object}]")), ("v.jsonl", object)] {
            assert_eq!(read(name, &file).map(|_| ()).unwrap_err(), format!("{name}: more than 32766 columns"));
        }
        let long = format!("a\n{}", "1\n".repeat(FILE_MAX / 2));
        assert!(read("v.csv", &long).map(|_| ()).unwrap_err().contains("longer than 64 MiB"));
    }
}
