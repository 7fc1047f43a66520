//! MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Time and response time are in units of 100 ns, the time since 1601; `Type` is `Read` or `Write`; offset and size are
//! bytes. Times are those of submission. Source: README of the SNIA IOTTA trace set 387 (Narayanan et al., "Write
//! Off-Loading", FAST 2008).

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{TimeUnit, bytes_of, number, quoted, separated, time};
use super::source::{LineParser, RecordSource, TextSource};
use crate::input::{Input, lines::Lines};
use crate::record::TraceRecord;

/// A tick of Windows's filetime.
pub(crate) const TICK: TimeUnit = TimeUnit::new("units of 100 ns", 100);
const LAYOUT: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

struct Parser;

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.is_mostly(Parser).then_some("seven fields between commas, the fourth Read or Write")
}

pub(super) fn open(input: Input, _: &Units) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(Lines::new(input.into_bytes()), Parser)))
}

impl LineParser for Parser {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRecord>, String> {
        let [at, _, disk, operation, offset, size, response] = separated::<7>(line, b',', LAYOUT)?;
        let (offset, length) = (bytes_of("offset", offset, 1)?, bytes_of("size", size, 1)?);
        let record = TraceRecord::new(time("time", at, TICK)?, self::operation(operation)?, offset, length);
        let latency = Some(time("response time", response, TICK)?);
        Ok(Some(TraceRecord { device: Some(number("disk number", disk)?), latency, ..record }))
    }
}

#[inline]
fn operation(field: &[u8]) -> Result<Operation, String> {
    match field {
        b"Read" => Ok(Operation::Read),
        b"Write" => Ok(Operation::Write),
        other if other.eq_ignore_ascii_case(b"read") => Ok(Operation::Read),
        other if other.eq_ignore_ascii_case(b"write") => Ok(Operation::Write),
        other => Err(format!("type is {}; MSR writes Read or Write", quoted(other))),
    }
}
