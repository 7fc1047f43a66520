//! SPC: `ASU,LBA,Size,Opcode,Timestamp`.
//!
//! The application storage unit counts as the device; LBA in blocks of 512 bytes, size in bytes, opcode `r` or `w` in
//! either case, time in seconds with decimals. Fields behind the fifth are allowed by the format and left out. Source:
//! Storage Performance Council, *SPC Trace File Format Specification*, 1.0.1, section 3; files of the UMass repository.

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{SECONDS, bytes_of, decimal_time, number, quoted};
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
        let names = ["ASU", "LBA", "Size", "Opcode", "Timestamp"];
        Self { sector, table: Table::new(names, "ASU,LBA,Size,Opcode,Timestamp").with_rest() }
    }
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.is_mostly(Parser::new(512))
        .then_some("five fields between commas, the fourth r or w, the fifth seconds with decimals")
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, Parser::new(units.sector))))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let Some([unit, lba, size, opcode, at]) = self.table.fields(line)? else { return Ok(Line::Silent) };
        let operation = match opcode {
            b"r" | b"R" => Operation::Read,
            b"w" | b"W" => Operation::Write,
            other => return Err(format!("opcode is {}; SPC writes r or w", quoted(other))),
        };
        let (offset, length) = (bytes_of("LBA", lba, self.sector)?, bytes_of("size", size, 1)?);
        let record = TraceRecord::new(decimal_time("timestamp", at, SECONDS)?, operation, offset, length);
        Ok(Line::Data(TraceRecord { device: Some(number("ASU", unit)?), ..record }))
    }
}
