//! Any text of columns, by a layout that the user gives.
//!
//! ```text
//!   time=1:s,latency=2:s,op=3,device=4,offset=5:bytes,length=6:bytes,skip=1,separator=comma
//!   offset=LBA:sectors,length=NBLKS:sectors,time=ELAPSED_USECS:us,op=OP
//! ```
//!
//! | key | value |
//! |---|---|
//! | `time`, `latency` | a column, and its unit: `s`, `ms`, `us`, `ns`, `100ns`, `ps` |
//! | `offset`, `length` | a column, and its unit: `bytes`, `sectors`, `pages`, `kib` |
//! | `op`, `device`, `process`, `file` | a column |
//! | `read`, `write`, `trim`, `flush` | what the column of the operation has for it, beside the usual words: `read=0` |
//! | `skip` | lines at the start that are none of it |
//! | `separator` | `comma`, `semicolon`, `tab`, `pipe`, `space` (any white space), or the character itself |
//!
//! A column is a number, from 1, or a name of the first line that is not skipped. Only `offset` must be there: without
//! a length a request is of one page, without an operation a read, without a time request n is at n ns. Numbers may be
//! hexadecimal behind `0x`. Without `separator` it is a comma where the first line has one, else white space.

use flashwise_block::names::choices;
use flashwise_block::{ByteSize, Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::{TimeUnit, Words, decimal_time, digits, number, quoted, sized};
use super::source::{Line, LineParser, Names, RecordSource, TextSource};
use super::table::split;
use crate::input::Input;
use crate::record::TraceRecord;

/// What is given where a layout is missing.
const EXAMPLE: &str = "columns:'time=1:s,op=2,offset=3:bytes,length=4:bytes'";

/// Where the fields of a request are.
const KEYS: [&str; 8] = ["offset", "length", "time", "latency", "op", "device", "process", "file"];

#[derive(Clone, Debug, PartialEq)]
enum Place {
    /// From 0.
    Number(usize),
    Name(String),
}

/// A column and the unit of its numbers.
#[derive(Clone, Debug, PartialEq)]
struct Column {
    place: Place,
    unit: String,
}

#[derive(Clone, Debug, Default)]
struct Layout {
    /// In the order of [`KEYS`].
    columns: [Option<Column>; KEYS.len()],
    words: Vec<(String, Operation)>,
    skip: u64,
    separator: Option<Separator>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Byte(u8),
    White,
}

impl Separator {
    fn of(text: &str) -> Result<Self, String> {
        Ok(match text {
            "comma" => Self::Byte(b','),
            "semicolon" => Self::Byte(b';'),
            "tab" => Self::Byte(b'\t'),
            "pipe" => Self::Byte(b'|'),
            "space" => Self::White,
            _ => match text.as_bytes() {
                [byte] if byte.is_ascii_punctuation() => Self::Byte(*byte),
                _ => {
                    return Err(format!(
                        "separator={text}: must be comma, semicolon, tab, pipe, space or one character"
                    ));
                }
            },
        })
    }

    /// Separators that a layout has to name, with their names in it.
    const NAMED: [(Self, &str); 3] =
        [(Self::Byte(b';'), "semicolon"), (Self::Byte(b'|'), "pipe"), (Self::Byte(b'\t'), "tab")];

    /// Where the layout does not say.
    fn guess(line: &[u8]) -> Self {
        if line.contains(&b',') { Self::Byte(b',') } else { Self::White }
    }

    fn split(self, line: &[u8]) -> Vec<&[u8]> {
        match self {
            Self::Byte(byte) => split(line, byte),
            Self::White => Words(line).collect(),
        }
    }
}

impl Layout {
    fn of(text: &str) -> Result<Self, String> {
        let mut layout = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) =
                part.split_once('=').ok_or_else(|| format!("'{part}' is not key=value; an example: {EXAMPLE}"))?;
            let words = |operation| (value.to_owned(), operation);
            match (key, KEYS.iter().position(|known| *known == key)) {
                (_, Some(index)) => layout.columns[index] = Some(Column::of(key, value)?),
                ("read", _) => layout.words.push(words(Operation::Read)),
                ("write", _) => layout.words.push(words(Operation::Write)),
                ("trim", _) => layout.words.push(words(Operation::Trim)),
                ("flush", _) => layout.words.push(words(Operation::Flush)),
                ("skip", _) => {
                    layout.skip = value.parse().map_err(|_| format!("{part}: must be a number of lines"))?;
                }
                ("separator", _) => layout.separator = Some(Separator::of(value)?),
                _ => {
                    let others = ["read", "write", "trim", "flush", "skip", "separator"];
                    let keys = choices(key, KEYS.into_iter().chain(others));
                    return Err(format!("unknown key '{key}': {keys}"));
                }
            }
        }
        if layout.columns[0].is_none() {
            return Err(format!("the column of the offset is missing; an example: {EXAMPLE}"));
        }
        Ok(layout)
    }

    /// Whether a line that was cut into these fields has all columns.
    fn fits(&self, fields: &[&[u8]]) -> bool {
        self.columns.iter().flatten().all(|column| match &column.place {
            Place::Number(place) => *place < fields.len(),
            Place::Name(name) => fields.contains(&name.as_bytes()),
        })
    }

    /// What to add to the layout where a line has all columns with another separator than the guessed one.
    fn other_separator(&self, line: &[u8]) -> Option<String> {
        let line = line.strip_prefix(b"#").unwrap_or(line);
        if self.separator.is_some() || self.fits(&Separator::guess(line).split(line)) {
            return None;
        }
        let (_, name) = Separator::NAMED.iter().find(|(separator, _)| self.fits(&separator.split(line)))?;
        Some(format!("the columns of this line are separated by another character: add separator={name} to the layout"))
    }

    fn has_names(&self) -> bool {
        self.columns.iter().flatten().any(|column| matches!(column.place, Place::Name(_)))
    }
}

impl Column {
    fn of(key: &str, value: &str) -> Result<Self, String> {
        let known: &[&str] = match key {
            "time" | "latency" => &["s", "ms", "us", "ns", "100ns", "ps"],
            "offset" | "length" => &["bytes", "sectors", "pages", "kib"],
            _ => &[],
        };
        let (place, unit) = match value.rsplit_once(':') {
            Some((place, unit)) if known.contains(&unit) => (place, unit),
            None if !known.is_empty() => {
                return Err(format!(
                    "{key}={value}: the unit is missing, one of {}; for example {key}={value}:{}",
                    known.join(", "),
                    known[0]
                ));
            }
            Some((_, unit)) if !known.is_empty() => {
                return Err(format!("{key}={value}: unknown unit '{unit}': use {}", known.join(", ")));
            }
            _ => (value, ""),
        };
        let place = match place.parse::<usize>() {
            Ok(0) => return Err(format!("{key}={value}: columns count from 1")),
            Ok(number) => Place::Number(number - 1),
            Err(_) if place.is_empty() => return Err(format!("{key}={value}: the column is missing")),
            Err(_) => Place::Name(place.to_owned()),
        };
        Ok(Self { place, unit: unit.to_owned() })
    }
}

struct Parser {
    layout: Layout,
    sector: u64,
    page: u64,
    line: u64,
    /// The field of each column; found in the line of names where they are given by name.
    places: Option<[Option<usize>; KEYS.len()]>,
    /// The line of names, which files that were put together have again.
    names: Option<Vec<u8>>,
    count: u64,
    files: Names,
}

pub(super) fn recognise(_: &Head<'_>) -> Option<&'static str> {
    None
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    let layout = units.layout.ok_or_else(|| format!("columns requires a layout: --trace-format {EXAMPLE}"))?;
    let layout = Layout::of(layout).map_err(|reason| format!("layout of columns: {reason}"))?;
    let (sector, page) = (units.sector, units.page);
    let parser = Parser { layout, sector, page, line: 0, places: None, names: None, count: 0, files: Names::default() };
    Ok(Box::new(TextSource::new(input, parser)))
}

impl Parser {
    /// Finds out where the columns are, at the first line; whether that line is of names.
    fn start(&mut self, line: &[u8]) -> Result<bool, String> {
        let separator = *self.layout.separator.get_or_insert(Separator::guess(line));
        let names = separator.split(line.strip_prefix(b"#").unwrap_or(line));
        let mut places = [None; KEYS.len()];
        for (index, column) in self.layout.columns.iter().enumerate() {
            places[index] = match column.as_ref().map(|column| &column.place) {
                None => None,
                Some(Place::Number(place)) => Some(*place),
                Some(Place::Name(name)) => match names.iter().position(|field| *field == name.as_bytes()) {
                    Some(place) => Some(place),
                    None => return Err(format!("the header line has no column '{name}'")),
                },
            };
        }
        self.places = Some(places);
        Ok(self.layout.has_names())
    }

    fn unit(&self, index: usize) -> &str {
        self.layout.columns[index].as_ref().map_or("", |column| &column.unit)
    }

    fn bytes(&self, index: usize, field: &[u8]) -> Result<ByteSize, String> {
        let unit = match self.unit(index) {
            "sectors" => self.sector,
            "pages" => self.page,
            "kib" => 1024,
            _ => 1,
        };
        let hexadecimal = field.strip_prefix(b"0x").and_then(|field| std::str::from_utf8(field).ok());
        let value = match hexadecimal.map(|text| u64::from_str_radix(text, 16)) {
            Some(value) => value.map_err(|_| format!("{} is {}; it must be a number", KEYS[index], quoted(field)))?,
            None => number(KEYS[index], field)?,
        };
        sized(KEYS[index], value, unit)
    }

    fn time(&self, index: usize, field: &[u8]) -> Result<Nanos, String> {
        let unit = match self.unit(index) {
            "ps" => {
                let picos = decimal_time(KEYS[index], field, TimeUnit::new("ps", 1))?;
                return Ok(Nanos(picos.0 / 1000));
            }
            "s" => TimeUnit::new("s", 1_000_000_000),
            "ms" => TimeUnit::new("ms", 1_000_000),
            "us" => TimeUnit::new("µs", 1_000),
            "100ns" => TimeUnit::new("units of 100 ns", 100),
            _ => TimeUnit::new("ns", 1),
        };
        decimal_time(KEYS[index], field, unit)
    }

    fn operation(&self, field: &[u8]) -> Result<Operation, String> {
        let is = |words: &[&str]| words.iter().any(|word| field.eq_ignore_ascii_case(word.as_bytes()));
        let given = self.layout.words.iter().find(|(word, _)| field == word.as_bytes());
        match () {
            () if given.is_some() => Ok(given.map_or(Operation::Read, |&(_, operation)| operation)),
            () if is(&["r", "rs", "rd", "read"]) => Ok(Operation::Read),
            () if is(&["w", "ws", "wr", "write"]) => Ok(Operation::Write),
            () if is(&["d", "t", "trim", "discard", "unmap"]) => Ok(Operation::Trim),
            () if is(&["f", "flush", "sync"]) => Ok(Operation::Flush),
            () => Err(format!(
                "op is {}: define it in the layout, for example read={}",
                quoted(field),
                String::from_utf8_lossy(field)
            )),
        }
    }
}

impl LineParser for Parser {
    fn reads_names(&self) -> bool {
        self.layout.has_names()
    }

    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        self.line += 1;
        if self.line <= self.layout.skip {
            return Ok(Line::chatter("skipped lines"));
        }
        if line.trim_ascii().is_empty() {
            return Ok(Line::Silent);
        }
        if self.places.is_none() {
            if let Some(reason) = self.layout.other_separator(line) {
                return Ok(Line::Wrong(reason));
            }
            if self.start(line)? {
                self.names = Some(line.trim_ascii().to_vec());
            }
        }
        if self.names.as_deref() == Some(line.trim_ascii()) {
            return Ok(Line::Silent);
        }
        let (Some(places), Some(separator)) = (self.places, self.layout.separator) else { return Ok(Line::Silent) };
        let fields = separator.split(line);
        let mut found = [None; KEYS.len()];
        for (index, place) in places.iter().enumerate() {
            let missing = || format!("it has {} fields, and no column {}", fields.len(), KEYS[index]);
            found[index] = place.map(|place| fields.get(place).copied().ok_or_else(missing)).transpose()?;
        }
        let [offset, length, at, latency, operation, device, process, file] = found;
        let operation = operation.map_or(Ok(Operation::Read), |field| self.operation(field))?;
        let (offset, length) = match operation {
            Operation::Flush => (ByteSize(0), ByteSize(0)),
            _ => (
                self.bytes(0, offset.unwrap_or_default())?,
                length.map_or(Ok(ByteSize(self.page)), |field| self.bytes(1, field))?,
            ),
        };
        let at = at.map_or(Ok(Nanos(self.count)), |field| self.time(2, field))?;
        let known = |field: Option<&'_ [u8]>| field.filter(|field| !field.is_empty()).map(<[u8]>::to_vec);
        let latency = known(latency).map(|field| self.time(3, &field)).transpose()?;
        let by_name = |error: String| format!("{error}; use file=COLUMN for names");
        let device = known(device).map(|field| number("device", &field).map_err(by_name)).transpose()?;
        let process = known(process).and_then(|field| digits(&field)).and_then(|process| u32::try_from(process).ok());
        let file = file.and_then(|name| self.files.number(name));
        self.count += 1;
        let record = TraceRecord::new(at, operation, offset, length);
        Ok(Line::Data(TraceRecord { latency, device, process, file, ..record }))
    }

    fn files(&self) -> &[String] {
        self.files.list()
    }

    fn remarks(&self) -> Vec<String> {
        let has = |index: usize| self.layout.columns[index].is_some();
        let mut remarks: Vec<String> = Vec::new();
        if !has(4) {
            remarks.push("the layout has no operations: every request counts as a read".to_owned());
        }
        if !has(1) {
            remarks.push(format!("the layout has no lengths: every request counts as one page, {} bytes", self.page));
        }
        if !has(2) {
            remarks.push("the layout has no times: request n is at n ns".to_owned());
        }
        remarks.extend(self.files.remark());
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What reading a text by a layout ends in.
    fn end(layout: &str, text: &'static str) -> String {
        let options = crate::ReadOptions {
            format: crate::TraceFormat::Columns,
            layout: Some(layout.into()),
            ..crate::ReadOptions::default()
        };
        let mut reader = crate::TraceReader::read(text.as_bytes(), "t.txt", &options).unwrap();
        loop {
            match reader.next_record() {
                Ok(Some(_)) => {}
                Ok(None) => return "read".to_owned(),
                Err(error) => return error.to_string(),
            }
        }
    }

    #[test]
    fn another_separator_is_suggested_where_the_first_line_has_all_columns_with_it() {
        let text = "time;op;offset;length\n1;R;4096;512\n";
        for layout in ["offset=3:bytes,length=4:bytes,op=2", "offset=offset:bytes,length=length:bytes,op=op"] {
            let error = end(layout, text);
            assert!(error.contains("line 1") && error.contains("add separator=semicolon to the layout"), "{error}");
            assert_eq!(end(&format!("{layout},separator=semicolon"), text), "read");
        }
        let decimal = end("offset=3:bytes,time=1:s", "1,5;R;4096\n2,5;R;512\n");
        assert!(decimal.contains("line 1") && decimal.contains("separator=semicolon"), "{decimal}");
    }

    #[test]
    fn a_layout_that_makes_no_sense_is_told_with_its_key() {
        let refusals: Vec<String> = [
            "offset",
            "time=1:s",
            "offset=1",
            "offset=1:s",
            "offset=0:bytes",
            "offset=:bytes",
            "offset=1:bytes,skip=x",
            "offset=1:bytes,separator=two",
            "offset=1:bytes,colour=3",
        ]
        .map(|text| Layout::of(text).unwrap_err())
        .into();
        let told = [
            "'offset' is not key=value",
            "the column of the offset is missing",
            "offset=1: the unit is missing, one of bytes, sectors, pages, kib; for example offset=1:bytes",
            "offset=1:s: unknown unit 's'",
            "offset=0:bytes: columns count from 1",
            "offset=:bytes: the column is missing",
            "skip=x: must be a number of lines",
            "separator=two: must be comma",
            "unknown key 'colour': choose one of offset",
        ];
        for (refusal, told) in refusals.iter().zip(told) {
            assert!(refusal.starts_with(told), "{refusal}");
        }
        assert!(
            Layout::of("time=1:s,latency=2:s,op=3,device=4,offset=5:bytes,length=6:bytes,skip=1,separator=comma")
                .is_ok()
        );
    }
}
