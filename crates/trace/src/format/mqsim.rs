//! MQSim ASCII: `time_ns device first_sector sectors op`, op 0 a write, **1 a read**.
//!
//! Sectors are those of MQSim's configuration, 512 bytes as a rule. Source: `src/exec/…/ASCII_Trace_Definition.h` of
//! MQSim.

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{NANOS, bytes_of, number, quoted, spaced, time};
use super::source::{Line, LineParser, RecordSource, TextSource};
use crate::input::Input;
use crate::record::TraceRecord;

struct Parser {
    sector: u64,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.is_mostly(Parser { sector: 512 })
        .then_some("five whole numbers, the last 0 or 1; 1 means a read, as in MQSim. DiskSim's times have decimals")
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, Parser { sector: units.sector })))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let [at, device, first, sectors, operation] = spaced::<5>(line, "time_ns device first_sector sectors op")?;
        let (offset, length) =
            (bytes_of("first sector", first, self.sector)?, bytes_of("number of sectors", sectors, self.sector)?);
        let operation = match operation {
            b"0" => Operation::Write,
            b"1" => Operation::Read,
            other => return Err(format!("op is {}; MQSim writes 0 for a write, 1 for a read", quoted(other))),
        };
        let record = TraceRecord::new(time("time", at, NANOS)?, operation, offset, length);
        Ok(Line::Data(TraceRecord { device: Some(number("device", device)?), ..record }))
    }
}
