//! MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Time and response time are in units of 100 ns, the time since 1601; `Type` is `Read` or `Write`; offset and size are
//! bytes. Times are those of submission. A response time of 0 is taken as unknown: no drive responds within 100 ns, and
//! programs that write this format without having one write 0. Disks are numbered on each host anew. Source: README of
//! the SNIA IOTTA trace set 387 (Narayanan et al., "Write Off-Loading", FAST 2008).

use flashwise_block::{Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::{TimeUnit, bytes_of, number, quoted, time};
use super::source::{Line, LineParser, Names, RecordSource, TextSource};
use super::table::Table;
use crate::input::Input;
use crate::record::TraceRecord;

/// A tick of Windows's filetime.
pub(crate) const TICK: TimeUnit = TimeUnit::new("units of 100 ns", 100);
const LAYOUT: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
const NAMES: [&str; 7] = ["Timestamp", "Hostname", "DiskNumber", "Type", "Offset", "Size", "ResponseTime"];
/// Bits of a device's number that are the disk's; those above are the host's.
const DISK_BITS: u32 = 16;

#[derive(Default)]
struct Parser {
    table: Table<7>,
    /// In the order of their appearance.
    hosts: Names,
}

impl Default for Table<7> {
    fn default() -> Self {
        Self::new(NAMES, LAYOUT)
    }
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.is_mostly(Parser::default()).then_some("seven fields between commas, the fourth Read or Write")
}

pub(super) fn open(input: Input, _: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, Parser::default())))
}

impl LineParser for Parser {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let Some([at, host, disk, operation, offset, size, response]) = self.table.fields(line)? else {
            return Ok(Line::Silent);
        };
        let (offset, length) = (bytes_of("offset", offset, 1)?, bytes_of("size", size, 1)?);
        let record = TraceRecord::new(time("time", at, TICK)?, self::operation(operation)?, offset, length);
        let latency = match response {
            b"" => None,
            response => Some(time("response time", response, TICK)?).filter(|&response| response > Nanos(0)),
        };
        let device = self.device(host, number("disk number", disk)?)?;
        Ok(Line::Data(TraceRecord { device: Some(device), latency, ..record }))
    }

    fn remarks(&self) -> Vec<String> {
        match self.hosts.list() {
            [] | [_] => Vec::new(),
            hosts => vec![format!(
                "it has {} hosts: a device number is 65,536 × the host's number + the disk; host 0 is {}, the last \
                 one {}",
                hosts.len(),
                hosts[0],
                hosts[hosts.len() - 1]
            )],
        }
    }
}

impl Parser {
    /// Disks of one number on two hosts are two devices.
    fn device(&mut self, host: &[u8], disk: u32) -> Result<u32, String> {
        match self.hosts.number(host) {
            Some(0) => Ok(disk),
            Some(host) if host < 1 << DISK_BITS && disk < 1 << DISK_BITS => Ok(host << DISK_BITS | disk),
            _ => Err(format!("too many hosts or disks: host {}, disk {disk}", quoted(host))),
        }
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
