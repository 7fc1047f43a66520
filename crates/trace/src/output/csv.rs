//! flashwise's own CSV, written: the six columns of a captured trace, and four more once a record has them.
//!
//! The header is written with the first record. A trace whose first record has no device, process, content or FUA has
//! the six columns alone, and what later records have beyond them could not be told; so the first records, up to 4,096,
//! are held back until it is known.

use std::io::Write;

use super::RecordWriter;
use crate::format::csv::{operation_name, role_name};
use crate::record::TraceRecord;

const HEADER: &str = "at_ns,operation,role,offset_bytes,length_bytes,latency_ns";
const MORE: &str = ",device,process,fua,content";
/// Records that are examined before the header is written.
const HELD: usize = 4096;

pub(super) struct Csv<W> {
    out: W,
    held: Vec<TraceRecord>,
    line: Vec<u8>,
    /// Whether the four columns are written; `None` before the header.
    has_more: Option<bool>,
}

impl<W: Write> Csv<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, held: Vec::new(), line: Vec::new(), has_more: None }
    }

    fn start(&mut self) -> Result<(), String> {
        let more = |record: &TraceRecord| {
            record.device.is_some() || record.process.is_some() || record.fua || record.content.is_some()
        };
        let has_more = self.held.iter().any(more);
        self.has_more = Some(has_more);
        writeln!(self.out, "{HEADER}{}", if has_more { MORE } else { "" }).map_err(|e| e.to_string())?;
        std::mem::take(&mut self.held).iter().try_for_each(|record| self.line(record, has_more))
    }

    fn line(&mut self, record: &TraceRecord, has_more: bool) -> Result<(), String> {
        let TraceRecord { at, operation, role, offset, length, latency, device, process, fua, content, .. } = *record;
        self.line.clear();
        let mut line = Line(&mut self.line);
        line.number(at.0);
        line.text(operation_name(operation));
        line.text(role_name(role));
        line.number(offset.0);
        line.number(length.0);
        line.told(latency.map(|latency| latency.0));
        if has_more {
            line.told(device.map(u64::from));
            line.told(process.map(u64::from));
            line.text(if fua { "true" } else { "false" });
            line.hash(content);
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line).map_err(|e| e.to_string())
    }
}

/// A line that grows by fields. A capture of a busy drive writes three hundred thousand a second beside it, and the
/// standard library's formatting takes a tenth of a microsecond more for each.
struct Line<'a>(&'a mut Vec<u8>);

impl Line<'_> {
    fn text(&mut self, field: &str) {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        self.0.extend_from_slice(field.as_bytes());
    }

    fn number(&mut self, value: u64) {
        self.text(itoa::Buffer::new().format(value));
    }

    fn told(&mut self, value: Option<u64>) {
        match value {
            Some(value) => self.number(value),
            None => self.text(""),
        }
    }

    /// Sixteen digits of base 16.
    fn hash(&mut self, value: Option<u64>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.text("");
        let digits = value.map(|value| (0..16).rev().map(move |digit| DIGITS[(value >> (4 * digit) & 15) as usize]));
        self.0.extend(digits.into_iter().flatten());
    }
}

impl<W: Write> RecordWriter for Csv<W> {
    fn write(&mut self, record: &TraceRecord) -> Result<(), String> {
        match self.has_more {
            Some(has_more) => self.line(record, has_more),
            None => {
                self.held.push(*record);
                if self.held.len() < HELD { Ok(()) } else { self.start() }
            }
        }
    }

    fn finish(&mut self) -> Result<(), String> {
        if self.has_more.is_none() {
            self.start()?;
        }
        self.out.flush().map_err(|e| e.to_string())
    }
}
