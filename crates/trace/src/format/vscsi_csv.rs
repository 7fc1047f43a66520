//! VMware's vscsiStats as text: `version,time,op,size,lbn`, with this line as header.
//!
//! Time in whole **seconds** (the binary form has µs), `op` the hexadecimal SCSI opcode, size in bytes, address in
//! sectors of 512 bytes. Source: the sample `cloudPhysicsIO.csv` of libCacheSim; its times are those of the same
//! recording as oracleGeneral, which counts in seconds.

use super::Units;
use super::detect::Head;
use super::fields::{SECONDS, bytes_of, quoted, time};
use super::source::{Line, LineParser, RecordSource, TextSource};
use super::table::Table;
use super::vscsi;
use crate::input::Input;
use crate::record::TraceRecord;

struct Parser {
    sector: u64,
    table: Table<5>,
}

impl Parser {
    const fn new(sector: u64) -> Self {
        let names = ["version", "time", "op", "size", "lbn"];
        Self { sector, table: Table::new(names, "version,time,op,size,lbn") }
    }
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let names = Parser::new(512).table.fields(head.first_line());
    matches!(names, Ok(None)).then_some("the header version,time,op,size,lbn")
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, Parser::new(units.sector))))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let Some([_, at, opcode, size, lbn]) = self.table.fields(line)? else { return Ok(Line::Silent) };
        let command = std::str::from_utf8(opcode).ok().and_then(|text| u16::from_str_radix(text, 16).ok());
        let command = command.ok_or_else(|| format!("op is {}; it must be hexadecimal", quoted(opcode)))?;
        let Some(operation) = vscsi::operation(command) else {
            return Ok(Line::chatter(vscsi::OTHERS));
        };
        let (offset, length) = (bytes_of("lbn", lbn, self.sector)?, bytes_of("size", size, 1)?);
        Ok(Line::Data(TraceRecord::new(time("time", at, SECONDS)?, operation, offset, length)))
    }
}
