//! Tencent's cloud block storage: `Timestamp,Offset,Size,IOType,VolumeID`.
//!
//! The time is in seconds since 1970, offset and size are sectors of 512 bytes; `IOType` 0 is a read and **1 a write**,
//! the opposite of MQSim. Source: README of the SNIA IOTTA trace set 28064 (Zhang et al., "OSCA", USENIX ATC 2020).

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{SECONDS, bytes_of, number, quoted, separated, time};
use super::source::{LineParser, RecordSource, TextSource};
use crate::input::{Input, lines::Lines};
use crate::record::TraceRecord;

struct Parser {
    sector: u64,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.is_mostly(Parser { sector: 512 })
        .then_some("five whole numbers between commas, the fourth 0 or 1; 1 is taken for a write, as Tencent writes it")
}

pub(super) fn open(input: Input, units: &Units) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(Lines::new(input.into_bytes()), Parser { sector: units.sector })))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRecord>, String> {
        let [at, offset, size, kind, volume] = separated::<5>(line, b',', "Timestamp,Offset,Size,IOType,VolumeID")?;
        let operation = match kind {
            b"0" => Operation::Read,
            b"1" => Operation::Write,
            other => return Err(format!("IOType is {}; Tencent writes 0 for a read, 1 for a write", quoted(other))),
        };
        let (offset, length) = (bytes_of("offset", offset, self.sector)?, bytes_of("size", size, self.sector)?);
        let record = TraceRecord::new(time("timestamp", at, SECONDS)?, operation, offset, length);
        Ok(Some(TraceRecord { device: Some(number("volume", volume)?), ..record }))
    }
}
