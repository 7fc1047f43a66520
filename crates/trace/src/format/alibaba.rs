//! Alibaba's block traces of 2020: `device_id,opcode,offset,length,timestamp`.
//!
//! `opcode` is `R` or `W`, offset and length are bytes, the time is in µs since 1970. Source: the trace set's own
//! README (Li et al., "An In-Depth Analysis of Cloud Block Storage Workloads in Large-Scale Production", IISWC 2020).

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{MICROS, bytes_of, number, quoted, time};
use super::source::{Line, LineParser, RecordSource, TextSource};
use super::table::Table;
use crate::input::Input;
use crate::record::TraceRecord;

struct Parser {
    table: Table<5>,
}

const PARSER: Parser = Parser {
    table: Table::new(
        ["device_id", "opcode", "offset", "length", "timestamp"],
        "device_id,opcode,offset,length,timestamp",
    ),
};

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.is_mostly(PARSER).then_some("five fields between commas, the second R or W")
}

pub(super) fn open(input: Input, _: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, PARSER)))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let Some([device, operation, offset, length, at]) = self.table.fields(line)? else { return Ok(Line::Silent) };
        let operation = match operation {
            b"R" => Operation::Read,
            b"W" => Operation::Write,
            other => return Err(format!("opcode is {}; Alibaba writes R or W", quoted(other))),
        };
        let (offset, length) = (bytes_of("offset", offset, 1)?, bytes_of("length", length, 1)?);
        let record = TraceRecord::new(time("timestamp", at, MICROS)?, operation, offset, length);
        Ok(Line::Data(TraceRecord { device: Some(number("device_id", device)?), ..record }))
    }
}
