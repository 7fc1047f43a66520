//! SYSTOR '17: `Timestamp,Response,IOType,LUN,Offset,Size`.
//!
//! The time is in seconds since 1970 with nine decimals, the response time in seconds and absent for some requests;
//! `IOType` is `R` or `W`, offset and size are bytes. Source: README of the SNIA IOTTA trace set 4928 (Lee et al.,
//! "Understanding Storage Traffic Characteristics on Enterprise Virtual Desktop Infrastructure", SYSTOR 2017).

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{SECONDS, bytes_of, decimal_time, number, quoted};
use super::source::{Line, LineParser, RecordSource, TextSource};
use super::table::Table;
use crate::input::Input;
use crate::record::TraceRecord;

struct Parser {
    table: Table<6>,
}

const PARSER: Parser = Parser {
    table: Table::new(
        ["Timestamp", "Response", "IOType", "LUN", "Offset", "Size"],
        "Timestamp,Response,IOType,LUN,Offset,Size",
    ),
};

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.is_mostly(PARSER).then_some("six fields between commas, the first seconds with decimals, the third R or W")
}

pub(super) fn open(input: Input, _: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, PARSER)))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let Some([at, response, operation, lun, offset, size]) = self.table.fields(line)? else {
            return Ok(Line::Silent);
        };
        let operation = match operation {
            b"R" => Operation::Read,
            b"W" => Operation::Write,
            other => return Err(format!("IOType is {}; SYSTOR writes R or W", quoted(other))),
        };
        let (offset, length) = (bytes_of("offset", offset, 1)?, bytes_of("size", size, 1)?);
        let record = TraceRecord::new(decimal_time("timestamp", at, SECONDS)?, operation, offset, length);
        let latency = match response {
            b"" => None,
            response => Some(decimal_time("response time", response, SECONDS)?),
        };
        Ok(Line::Data(TraceRecord { device: Some(number("LUN", lun)?), latency, ..record }))
    }
}
