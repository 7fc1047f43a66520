//! flashwise's own CSV, written: the six columns of a captured trace, and four more once a record has them.
//!
//! The header is written with the first record. A trace whose first record has no device, process, content or FUA has the
//! six columns alone, and what later records have beyond them could not be told; so the first records, up to 4,096, are
//! held back until it is known.

use std::io::Write;

use super::RecordWriter;
use crate::format::csv::{operation_name, role_name};
use crate::record::TraceRecord;

const HEADER: &str = "at_ns,operation,role,offset_bytes,length_bytes,latency_ns";
const MORE: &str = ",device,process,fua,content";
/// Records that are looked at before the header is written.
const HELD: usize = 4096;

pub(super) struct Csv<W> {
    out: W,
    held: Vec<TraceRecord>,
    /// Whether the four columns are written; `None` before the header.
    has_more: Option<bool>,
}

impl<W: Write> Csv<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, held: Vec::new(), has_more: None }
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
        let told = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let (operation, role, latency) = (operation_name(operation), role_name(role), told(latency.map(|l| l.0)));
        let mut write = || {
            write!(self.out, "{},{operation},{role},{},{},{latency}", at.0, offset.0, length.0)?;
            if has_more {
                let content = content.map_or_else(String::new, |content| format!("{content:016x}"));
                write!(self.out, ",{},{},{fua},{content}", told(device.map(u64::from)), told(process.map(u64::from)))?;
            }
            writeln!(self.out)
        };
        write().map_err(|e| e.to_string())
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
