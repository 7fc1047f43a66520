//! VMware's vscsiStats as text: `version,time,op,size,lbn`, with this line as header.
//!
//! Time in whole **seconds** (the binary form has µs), `op` the hexadecimal SCSI opcode, size in bytes, address in
//! sectors of 512 bytes. Source: the sample `cloudPhysicsIO.csv` of libCacheSim; its times are those of the same
//! recording as oracleGeneral, which counts in seconds.

use super::Units;
use super::detect::Head;
use super::fields::{SECONDS, bytes_of, quoted, separated, time};
use super::source::{LineParser, RecordSource, TextSource};
use super::vscsi;
use crate::input::{Input, lines::Lines};
use crate::record::TraceRecord;

const HEADER: &[u8] = b"version,time,op,size,lbn";

struct Parser {
    sector: u64,
    others: u64,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    (head.first_line() == HEADER).then_some("the header version,time,op,size,lbn")
}

pub(super) fn open(input: Input, units: &Units) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(Lines::new(input.into_bytes()), Parser { sector: units.sector, others: 0 })))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRecord>, String> {
        if line.trim_ascii() == HEADER {
            return Ok(None);
        }
        let [_, at, opcode, size, lbn] = separated::<5>(line, b',', "version,time,op,size,lbn")?;
        let command = std::str::from_utf8(opcode).ok().and_then(|text| u16::from_str_radix(text, 16).ok());
        let command = command.ok_or_else(|| format!("op is {}; it must be hexadecimal", quoted(opcode)))?;
        let Some(operation) = vscsi::operation(command) else {
            self.others += 1;
            return Ok(None);
        };
        let (offset, length) = (bytes_of("lbn", lbn, self.sector)?, bytes_of("size", size, 1)?);
        Ok(Some(TraceRecord::new(time("time", at, SECONDS)?, operation, offset, length)))
    }

    fn remarks(&self) -> Vec<String> {
        vscsi::remark(self.others)
    }
}
