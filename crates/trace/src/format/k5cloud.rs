//! Fujitsu's K5 cloud: `volume,timestamp,R or W,offset,length`.
//!
//! The time is in seconds with decimals, offset and length are bytes. Source: the SNIA IOTTA trace set of Fujitsu's K5
//! cloud service (Yamaguchi, Nakashima et al.), and the reader of caffeine's simulator.

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{SECONDS, bytes_of, decimal_time, number, quoted};
use super::source::{Line, LineParser, RecordSource, TextSource};
use super::table::Table;
use crate::input::Input;
use crate::record::TraceRecord;

struct Parser {
    table: Table<5>,
}

const PARSER: Parser =
    Parser { table: Table::new(["ID", "Timestamp", "Type", "Offset", "Length"], "ID,Timestamp,Type,Offset,Length") };

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.is_mostly(PARSER).then_some("five fields between commas, the second seconds, the third R or W")
}

pub(super) fn open(input: Input, _: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, PARSER)))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let Some([volume, at, operation, offset, length]) = self.table.fields(line)? else { return Ok(Line::Silent) };
        let operation = match operation {
            b"R" => Operation::Read,
            b"W" => Operation::Write,
            other => return Err(format!("type is {}; K5 writes R or W", quoted(other))),
        };
        let (offset, length) = (bytes_of("offset", offset, 1)?, bytes_of("length", length, 1)?);
        let record = TraceRecord::new(decimal_time("timestamp", at, SECONDS)?, operation, offset, length);
        Ok(Line::Data(TraceRecord { device: Some(number("volume", volume)?), ..record }))
    }
}
