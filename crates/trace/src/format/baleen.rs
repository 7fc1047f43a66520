//! Meta's Tectonic traces, as Baleen's authors published them: a header with names, then a request a line.
//!
//! ```text
//!   # block_id io_offset io_size op_time op_name user_namespace user_name
//!   8123456 0 131072 1697000000.5 getChunkData.NotInitialized 10 20
//! ```
//!
//! Columns are found by their names, between blanks or commas. `op_time` is in seconds, offset and size are bytes in a
//! block, which is one of [`TraceReader::files`](crate::TraceReader::files). `op_name` is a name that starts with `get`
//! or `put`, or its number. Where there is an `op_count`, a line stands for so many requests. Source: README of
//! Baleen-FAST24 (Wong et al., "Baleen: ML Admission & Prefetching for Flash Caches", FAST 2024), and of Meta's storage
//! traces in CacheLib.

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{SECONDS, Words, bytes_of, decimal_time, number, quoted};
use super::source::{Line, LineParser, Names, RecordSource, TextSource};
use super::table::split;
use crate::input::Input;
use crate::record::TraceRecord;

/// Columns that are used; the last may be absent.
const COLUMNS: [&str; 6] = ["block_id", "io_offset", "io_size", "op_time", "op_name", "op_count"];
const REQUIRED: usize = 5;
/// Most requests of a line.
const MOST_REQUESTS: u64 = 1 << 20;

#[derive(Default)]
struct Parser {
    header: Option<Header>,
    blocks: Names,
    /// The request of the last line, and how often it comes again.
    repeated: Option<(TraceRecord, u64)>,
    /// Further requests given so far.
    repeats: u64,
}

struct Header {
    has_commas: bool,
    places: [Option<usize>; COLUMNS.len()],
}

impl Header {
    fn of(line: &[u8]) -> Option<Self> {
        let has_commas = line.contains(&b',');
        let names = fields(line.strip_prefix(b"#").unwrap_or(line), has_commas);
        let places = COLUMNS.map(|name| names.iter().position(|field| *field == name.as_bytes()));
        places[..REQUIRED].iter().all(Option::is_some).then_some(Self { has_commas, places })
    }
}

fn fields(line: &[u8], has_commas: bool) -> Vec<&[u8]> {
    if has_commas { split(line, b',') } else { Words(line).collect() }
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    Header::of(head.first_line()).map(|_| "the header block_id io_offset io_size op_time op_name")
}

pub(super) fn open(input: Input, _: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, Parser::default())))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        if let Some(header) = Header::of(line) {
            self.header = Some(header);
            return Ok(Line::Silent);
        }
        if line.first() == Some(&b'#') {
            return Ok(Line::chatter("comments"));
        }
        let header = self.header.as_ref().ok_or("the header line is missing: # block_id io_offset …")?;
        let found = fields(line, header.has_commas);
        let field = |column: usize| header.places[column].and_then(|place| found.get(place)).copied();
        let needed = |column: usize| field(column).ok_or_else(|| format!("the field {} is missing", COLUMNS[column]));
        let (offset, length) = (bytes_of("io_offset", needed(1)?, 1)?, bytes_of("io_size", needed(2)?, 1)?);
        let (at, operation) = (decimal_time("op_time", needed(3)?, SECONDS)?, operation(needed(4)?)?);
        let count = field(5).map_or(Ok(1), |count| number("op_count", count))?;
        let file = self.blocks.number(needed(0)?);
        let record = TraceRecord { file, ..TraceRecord::new(at, operation, offset, length) };
        match count {
            0 => Ok(Line::chatter("lines that are not requests")),
            1..=MOST_REQUESTS => {
                self.repeated = (count > 1).then_some((record, count - 1));
                Ok(Line::Data(record))
            }
            _ => Err(format!("op_count is {count}; a line may represent at most {MOST_REQUESTS} requests")),
        }
    }

    fn further(&mut self) -> Option<TraceRecord> {
        let (record, left) = self.repeated.take()?;
        self.repeated = (left > 1).then_some((record, left - 1));
        self.repeats += 1;
        Some(record)
    }

    fn files(&self) -> &[String] {
        self.blocks.list()
    }

    fn remarks(&self) -> Vec<String> {
        let repeats = (self.repeats > 0).then(|| format!("{} requests were added because of op_count", self.repeats));
        repeats.into_iter().chain(self.blocks.remark()).collect()
    }
}

/// A name, or its number: 1 and 2 get, 3 and 4 put, 5 gets what is not initialised.
fn operation(name: &[u8]) -> Result<Operation, String> {
    match name {
        b"1" | b"2" | b"5" => Ok(Operation::Read),
        b"3" | b"4" => Ok(Operation::Write),
        name if name.starts_with(b"get") => Ok(Operation::Read),
        name if name.starts_with(b"put") => Ok(Operation::Write),
        other => Err(format!("op_name is {}; it starts with get or put, or is 1 to 5", quoted(other))),
    }
}
