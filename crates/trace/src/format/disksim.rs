//! DiskSim ASCII: `time_ms device first_sector sectors flags`, bit 0 of the hexadecimal flags set is a **read**.
//!
//! The time has decimals; sectors are 512 bytes. Source: `iotrace_ascii_get_ioreq_event` of DiskSim, which reads
//! `%lf %d %d %d %x`.

use flashwise_block::Operation;

use super::Units;
use super::detect::Head;
use super::fields::{MILLIS, bytes_of, decimal_time, number, quoted, spaced};
use super::source::{Line, LineParser, RecordSource, TextSource};
use crate::input::Input;
use crate::record::TraceRecord;

struct Parser {
    sector: u64,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let decimals =
        head.lines.iter().any(|line| line.split(|&byte| byte == b' ').next().is_some_and(|at| at.contains(&b'.')));
    (decimals && head.is_mostly(Parser { sector: 512 }))
        .then_some("five numbers, the first with decimals, the last hexadecimal; bit 0 means a read, as in DiskSim")
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, Parser { sector: units.sector })))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let [at, device, first, sectors, flags] = spaced::<5>(line, "time_ms device first_sector sectors flags")?;
        let (offset, length) =
            (bytes_of("first sector", first, self.sector)?, bytes_of("number of sectors", sectors, self.sector)?);
        let record = TraceRecord::new(decimal_time("time", at, MILLIS)?, operation(flags)?, offset, length);
        Ok(Line::Data(TraceRecord { device: Some(number("device", device)?), ..record }))
    }
}

fn operation(field: &[u8]) -> Result<Operation, String> {
    let text = std::str::from_utf8(field).unwrap_or_default();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    match u32::from_str_radix(digits, 16) {
        Ok(flags) if flags & 1 == 1 => Ok(Operation::Read),
        Ok(_) => Ok(Operation::Write),
        Err(_) => Err(format!("flags are {}; must be a hexadecimal number with bit 0 set for a read", quoted(field))),
    }
}
