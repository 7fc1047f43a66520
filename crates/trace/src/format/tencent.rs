//! Tencent's cloud block storage: `Timestamp,Offset,Size,IOType,VolumeID`.
//!
//! The time is in seconds since 1970, offset and size are sectors of 512 bytes; `IOType` 0 is a read and **1 a write**,
//! the opposite of MQSim. Source: README of the SNIA IOTTA trace set 28064 (Zhang et al., "OSCA", USENIX ATC 2020).

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{SECONDS, bytes_of, number, quoted, time};
use super::source::{Line, LineParser, RecordSource, TextSource};
use super::table::Table;
use crate::input::Input;
use crate::record::TraceRecord;

struct Parser {
    sector: u64,
    table: Table<5>,
}

impl Parser {
    const fn new(sector: u64) -> Self {
        let names = ["Timestamp", "Offset", "Size", "IOType", "VolumeID"];
        Self { sector, table: Table::new(names, "Timestamp,Offset,Size,IOType,VolumeID") }
    }
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.is_mostly(Parser::new(512))
        .then_some("five whole numbers between commas, the fourth 0 or 1; 1 means a write, as in Tencent's traces")
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, Parser::new(units.sector))))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let Some([at, offset, size, kind, volume]) = self.table.fields(line)? else { return Ok(Line::Silent) };
        let operation = match kind {
            b"0" => Operation::Read,
            b"1" => Operation::Write,
            other => return Err(format!("IOType is {}; Tencent writes 0 for a read, 1 for a write", quoted(other))),
        };
        let (offset, length) = (bytes_of("offset", offset, self.sector)?, bytes_of("size", size, self.sector)?);
        let record = TraceRecord::new(time("timestamp", at, SECONDS)?, operation, offset, length);
        Ok(Line::Data(TraceRecord { device: Some(number("volume", volume)?), ..record }))
    }
}
