//! Disk events of Windows as `xperf` prints them: Microsoft's traces of its production and Exchange servers.
//!
//! ```text
//!   DiskRead,  TimeStamp,  Process Name ( PID),  ThreadID,  IrpPtr,  ByteOffset,  IOSize,  ElapsedTime,  DiskNum, …
//!   DiskRead,       8612,     xperf.exe (3984),     11844, 0xffffe2, 0x018f0b80,  0x1000,          283,        0, …
//! ```
//!
//! Columns are found by the header's line for each event, which differs between versions. `DiskRead` and `DiskWrite`
//! are requests, `DiskFlush` a flush; other events are left out. Times are µs from the start; an event is written when
//! its request completes, `ElapsedTime` after its submission, and requests are put back into that order. Source: the
//! header of the files; SNIA IOTTA trace sets 130 and 158 (Kavalanekar et al., "Characterization of Storage Workload
//! Traces from Production Windows Servers", IISWC 2008).

use std::collections::BTreeMap;

use flashwise_block::{ByteSize, Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::{MICROS, digits, number, quoted, time};
use super::source::{BIAS, Line, LineParser, RecordSource, Sorted, TextSource};
use super::table::split;
use crate::input::Input;
use crate::record::TraceRecord;

/// Columns that are used.
const COLUMNS: [&str; 6] = ["TimeStamp", "Process Name ( PID)", "ByteOffset", "IOSize", "ElapsedTime", "DiskNum"];

/// The place of each column, where an event has it.
type Places = [Option<usize>; COLUMNS.len()];

#[derive(Default)]
struct Parser {
    events: BTreeMap<&'static str, Places>,
    /// Events that Windows lost, as the header says.
    lost: u64,
}

fn operation(event: &[u8]) -> Option<(&'static str, Operation)> {
    Some(match event {
        b"DiskRead" => ("DiskRead", Operation::Read),
        b"DiskWrite" => ("DiskWrite", Operation::Write),
        b"DiskFlush" => ("DiskFlush", Operation::Flush),
        _ => return None,
    })
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let is_name = |line: &&[u8]| {
        let fields = split(line, b',');
        fields.len() > 2 && operation(fields[0]).is_some() && fields[1] == b"TimeStamp"
    };
    head.lines.iter().any(is_name).then_some("the header of xperf's events DiskRead and DiskWrite")
}

pub(super) fn open(input: Input, _: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(Sorted::biased(TextSource::new(input, Parser::default()))))
}

/// A number of base 10, or of base 16 behind `0x`.
fn any_number(what: &str, field: &[u8]) -> Result<u64, String> {
    let hexadecimal = field.strip_prefix(b"0x").and_then(|digits| std::str::from_utf8(digits).ok());
    let value = hexadecimal.map_or_else(|| digits(field), |digits| u64::from_str_radix(digits, 16).ok());
    value.ok_or_else(|| format!("{what} is {}; it must be a number", quoted(field)))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let fields = split(line, b',');
        let Some((event, operation)) = operation(fields[0]) else {
            // OS Version: 6.0.6001, Trace Size: 1024KB, Events Lost: 0, Buffers lost: 0, …
            let is_of_header = fields.len() == 1 || fields[0].starts_with(b"OS Version");
            let lost = fields.iter().find_map(|field| digits(field.strip_prefix(b"Events Lost:")?.trim_ascii()));
            self.lost = self.lost.saturating_add(lost.filter(|_| is_of_header).unwrap_or(0));
            return Ok(Line::chatter(if is_of_header { "lines of the header" } else { "other events" }));
        };
        if fields.get(1) == Some(&&b"TimeStamp"[..]) {
            let place = |name: &str| fields.iter().position(|field| *field == name.as_bytes());
            self.events.insert(event, COLUMNS.map(place));
            return Ok(Line::Silent);
        }
        let places = self.events.get(event).ok_or_else(|| format!("the header has no line for {event}"))?;
        let field = |column: usize| {
            let field = places[column].and_then(|place| fields.get(place)).copied();
            field.ok_or_else(|| format!("the field {} is missing", COLUMNS[column]))
        };
        let (end, latency) = (time("TimeStamp", field(0)?, MICROS)?, time("ElapsedTime", field(4)?, MICROS)?);
        let at = end.0.checked_add(BIAS).and_then(|end| end.checked_sub(latency.0));
        let at = Nanos(at.ok_or("its time or its ElapsedTime exceeds 146 years")?);
        let (offset, length) = match operation {
            Operation::Flush => (0, 0),
            _ => (any_number("ByteOffset", field(2)?)?, any_number("IOSize", field(3)?)?),
        };
        // System (4)
        let process = field(1).ok().and_then(|name| name.split(|&byte| byte == b'(').next_back());
        let process = process.and_then(|rest| digits(rest.strip_suffix(b")")?.trim_ascii()));
        let record = TraceRecord::new(at, operation, ByteSize(offset), ByteSize(length));
        Ok(Line::Data(TraceRecord {
            latency: Some(latency),
            device: field(5).ok().map(|disk| number("DiskNum", disk)).transpose()?,
            process: process.and_then(|process| u32::try_from(process).ok()),
            ..record
        }))
    }

    fn remarks(&self) -> Vec<String> {
        let lost = (self.lost > 0).then(|| format!("Windows lost {} events", self.lost));
        lost.into_iter().collect()
    }
}
