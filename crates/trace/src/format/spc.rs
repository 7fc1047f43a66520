//! SPC: `ASU,LBA,Size,Opcode,Timestamp`.
//!
//! The application storage unit counts as the device; LBA in blocks of 512 bytes, size in bytes, opcode `r` or `w` in
//! either case, time in seconds with decimals. Fields behind the fifth are allowed by the format and left out. Source:
//! Storage Performance Council, *SPC Trace File Format Specification*, 1.0.1, section 3; files of the UMass repository.

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{SECONDS, bytes_of, decimal_time, number, quoted};
use super::source::{LineParser, RecordSource, TextSource};
use crate::input::{Input, lines::Lines};
use crate::record::TraceRecord;

struct Parser {
    sector: u64,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.is_mostly(Parser { sector: 512 })
        .then_some("five fields between commas, the fourth r or w, the fifth seconds with decimals")
}

pub(super) fn open(input: Input, units: &Units) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(Lines::new(input.into_bytes()), Parser { sector: units.sector })))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRecord>, String> {
        let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let (Some(unit), Some(lba), Some(size), Some(opcode), Some(at)) =
            (fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err("it has fewer than five fields: ASU,LBA,Size,Opcode,Timestamp".to_owned());
        };
        let operation = match opcode {
            b"r" | b"R" => Operation::Read,
            b"w" | b"W" => Operation::Write,
            other => return Err(format!("opcode is {}; SPC writes r or w", quoted(other))),
        };
        let (offset, length) = (bytes_of("LBA", lba, self.sector)?, bytes_of("size", size, 1)?);
        let record = TraceRecord::new(decimal_time("timestamp", at, SECONDS)?, operation, offset, length);
        Ok(Some(TraceRecord { device: Some(number("ASU", unit)?), ..record }))
    }
}
