//! Four fields a line, as users of SimpleSSD write them: `milliseconds first_sector sectors R or W`.
//!
//! SimpleSSD takes any text by a regular expression and has no format of its own; this one is what its users exchange.
//! Other units and other orders are read with a layout of columns ([`super::columns`]).

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{MILLIS, bytes_of, decimal_time, quoted, spaced};
use super::source::{Line, LineParser, RecordSource, TextSource};
use crate::input::Input;
use crate::record::TraceRecord;

struct Parser {
    sector: u64,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.is_mostly(Parser { sector: 512 }).then_some(
        "three numbers and R or W: read as milliseconds, first sector and sectors; use --trace-format columns:… for \
         others",
    )
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, Parser { sector: units.sector })))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let [at, first, sectors, operation] = spaced::<4>(line, "milliseconds first_sector sectors operation")?;
        let operation = match operation {
            b"R" | b"r" => Operation::Read,
            b"W" | b"w" => Operation::Write,
            other => return Err(format!("operation is {}; it must be R or W", quoted(other))),
        };
        let (offset, length) =
            (bytes_of("first sector", first, self.sector)?, bytes_of("number of sectors", sectors, self.sector)?);
        Ok(Line::Data(TraceRecord::new(decimal_time("time", at, MILLIS)?, operation, offset, length)))
    }
}
