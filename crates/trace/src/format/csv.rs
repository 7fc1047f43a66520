//! flashwise's own CSV: a header line, one request a line.
//!
//! `at_ns,operation,role,offset_bytes,length_bytes,latency_ns`, and where it is known `device,process,fua,content`.
//! Columns are found by their names, in any order; of these six the role and the latency may be absent, other columns
//! are left out, and an empty field is a value that is not known. `content` is hexadecimal. It is written without
//! quotes, and read with them too, and with semicolons or tabs: as a spreadsheet saves it.

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{NANOS, bytes_of, number, quoted, time};
use super::source::{Line, LineParser, RecordSource, TextSource};
use super::table::split;
use crate::FileRole;
use crate::input::Input;
use crate::record::TraceRecord;

/// The columns by name. The first four must be there.
pub(crate) const COLUMNS: [&str; 10] =
    ["at_ns", "operation", "offset_bytes", "length_bytes", "role", "latency_ns", "device", "process", "fua", "content"];
const REQUIRED: usize = 4;
/// Most fields of a line.
const MAX_FIELDS: usize = 64;

/// Which field of a line each column is.
struct Parser {
    columns: Option<Columns>,
}

struct Columns {
    /// The line of names.
    header: Vec<u8>,
    separator: u8,
    /// The column of each field, or `COLUMNS.len()` for one that is not known.
    of_field: Vec<usize>,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    Columns::new(head.first_line()).is_ok().then_some("the header at_ns,operation,…,offset_bytes,length_bytes")
}

pub(super) fn open(input: Input, _: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, Parser { columns: None })))
}

impl Columns {
    fn new(header: &[u8]) -> Result<Self, String> {
        let header = header.trim_ascii();
        let separator = [b',', b';', b'\t'].into_iter().find(|separator| header.contains(separator)).unwrap_or(b',');
        let names = split(header, separator);
        if names.len() > MAX_FIELDS {
            return Err(format!("the header has {} columns; at most {MAX_FIELDS} are read", names.len()));
        }
        for required in &COLUMNS[..REQUIRED] {
            if !names.contains(&required.as_bytes()) {
                return Err(format!("the header has no {required}; required are {}", COLUMNS[..REQUIRED].join(", ")));
            }
        }
        let column =
            |name: &&[u8]| COLUMNS.iter().position(|column| column.as_bytes() == *name).unwrap_or(COLUMNS.len());
        Ok(Self { header: header.to_vec(), separator, of_field: names.iter().map(column).collect() })
    }

    fn fields<'a>(&self, line: &'a [u8]) -> Result<[&'a [u8]; COLUMNS.len()], String> {
        let mut found = [&line[..0]; COLUMNS.len()];
        let mut count = 0;
        let mut note = |field: &'a [u8]| {
            if let Some(place) = self.of_field.get(count).and_then(|&column| found.get_mut(column)) {
                *place = field.trim_ascii();
            }
            count += 1;
        };
        match line.contains(&b'"') {
            true => split(line, self.separator).into_iter().for_each(note),
            false => line.split(|&byte| byte == self.separator).for_each(&mut note),
        }
        let expected = self.of_field.len();
        if count == expected { Ok(found) } else { Err(format!("it has {count} fields, but the header {expected}")) }
    }
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let Some(columns) = &self.columns else {
            self.columns = Some(Columns::new(line)?);
            return Ok(Line::Silent);
        };
        if line.trim_ascii() == columns.header {
            return Ok(Line::Silent);
        }
        let [at, operation, offset, length, role, latency, device, process, fua, content] = columns.fields(line)?;
        let (offset, length) = (bytes_of("offset_bytes", offset, 1)?, bytes_of("length_bytes", length, 1)?);
        let record = TraceRecord::new(time("at_ns", at, NANOS)?, self::operation(operation)?, offset, length);
        Ok(Line::Data(TraceRecord {
            role: known(role).map_or(Ok(FileRole::Unknown), self::role)?,
            latency: known(latency).map(|latency| time("latency_ns", latency, NANOS)).transpose()?,
            device: known(device).map(|device| number("device", device)).transpose()?,
            process: known(process).map(|process| number("process", process)).transpose()?,
            fua: known(fua).map_or(Ok(false), self::fua)?,
            content: known(content).map(self::content).transpose()?,
            ..record
        }))
    }

    fn reads_names(&self) -> bool {
        true
    }
}

fn known(field: &[u8]) -> Option<&[u8]> {
    (!field.is_empty()).then_some(field)
}

/// Names of operations.
pub(crate) const OPERATIONS: [(&str, Operation); 5] = [
    ("read", Operation::Read),
    ("write", Operation::Write),
    ("trim", Operation::Trim),
    ("write_zeroes", Operation::WriteZeroes),
    ("flush", Operation::Flush),
];

/// Names of roles.
pub(crate) const ROLES: [(&str, FileRole); 5] = [
    ("database", FileRole::Database),
    ("journal", FileRole::Journal),
    ("write_ahead_log", FileRole::WriteAheadLog),
    ("temporary", FileRole::Temporary),
    ("unknown", FileRole::Unknown),
];

fn one_of<T: Copy>(what: &str, field: &[u8], names: &[(&str, T)]) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| name.as_bytes() == field);
    found.map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|&(name, _)| name).collect();
        format!("{what} is {}; it must be one of {}", quoted(field), names.join(", "))
    })
}

pub(crate) fn operation(field: &[u8]) -> Result<Operation, String> {
    one_of("operation", field, &OPERATIONS)
}

pub(crate) fn role(field: &[u8]) -> Result<FileRole, String> {
    one_of("role", field, &ROLES)
}

/// The name of an operation in traces, CSV and Parquet.
pub fn operation_name(operation: Operation) -> &'static str {
    OPERATIONS.iter().find(|&&(_, other)| other == operation).map_or("", |&(name, _)| name)
}

/// The name of a role in traces, CSV and Parquet.
pub fn role_name(role: FileRole) -> &'static str {
    ROLES.iter().find(|&&(_, other)| other == role).map_or("", |&(name, _)| name)
}

fn fua(field: &[u8]) -> Result<bool, String> {
    one_of("fua", field, &[("false", false), ("true", true)])
}

fn content(field: &[u8]) -> Result<u64, String> {
    let text = std::str::from_utf8(field).ok().filter(|text| !text.starts_with('+'));
    text.and_then(|text| u64::from_str_radix(text, 16).ok())
        .ok_or_else(|| format!("content is {}; it must be hexadecimal, of at most 16 digits", quoted(field)))
}
