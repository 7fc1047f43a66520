//! Alibaba's block traces of 2020: `device_id,opcode,offset,length,timestamp`.
//!
//! `opcode` is `R` or `W`, offset and length are bytes, the time is in µs since 1970. Source: the trace set's own
//! README (Li et al., "An In-Depth Analysis of Cloud Block Storage Workloads in Large-Scale Production", IISWC 2020).

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{MICROS, bytes_of, number, quoted, separated, time};
use super::source::{LineParser, RecordSource, TextSource};
use crate::input::{Input, lines::Lines};
use crate::record::TraceRecord;

struct Parser;

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.is_mostly(Parser).then_some("five fields between commas, the second R or W")
}

pub(super) fn open(input: Input, _: &Units) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(Lines::new(input.into_bytes()), Parser)))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRecord>, String> {
        let [device, operation, offset, length, at] =
            separated::<5>(line, b',', "device_id,opcode,offset,length,timestamp")?;
        let operation = match operation {
            b"R" => Operation::Read,
            b"W" => Operation::Write,
            other => return Err(format!("opcode is {}; Alibaba writes R or W", quoted(other))),
        };
        let (offset, length) = (bytes_of("offset", offset, 1)?, bytes_of("length", length, 1)?);
        let record = TraceRecord::new(time("timestamp", at, MICROS)?, operation, offset, length);
        Ok(Some(TraceRecord { device: Some(number("device_id", device)?), ..record }))
    }
}
