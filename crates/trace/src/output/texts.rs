//! Text formats, written: each as the module of its reader describes it.

use std::collections::BinaryHeap;
use std::io::Write;

use flashwise_block::Operation;

use super::{RecordWriter, SECTOR};
use crate::format::fio_iolog;
use crate::record::TraceRecord;

fn told(error: std::io::Error) -> String {
    error.to_string()
}

/// MSR Cambridge CSV. The host is called `flashwise`; a latency that is not known is 0.
pub(super) struct Msr<W>(pub(super) W);

impl<W: Write> RecordWriter for Msr<W> {
    fn write(&mut self, record: &TraceRecord) -> Result<(), String> {
        let kind = if record.operation == Operation::Read { "Read" } else { "Write" };
        let (ticks, response) = (record.at.0 / 100, record.latency.unwrap_or_default().0 / 100);
        let (disk, offset, size) = (record.device.unwrap_or(0), record.offset.0, record.length.0);
        writeln!(self.0, "{ticks},flashwise,{disk},{kind},{offset},{size},{response}").map_err(told)
    }

    fn finish(&mut self) -> Result<(), String> {
        self.0.flush().map_err(told)
    }
}

/// MQSim ASCII.
pub(super) struct Mqsim<W>(pub(super) W);

impl<W: Write> RecordWriter for Mqsim<W> {
    fn write(&mut self, record: &TraceRecord) -> Result<(), String> {
        let (at, device, op) = (record.at.0, record.device.unwrap_or(0), u8::from(record.operation == Operation::Read));
        writeln!(self.0, "{at} {device} {} {} {op}", record.offset.0 / SECTOR, record.length.0 / SECTOR).map_err(told)
    }

    fn finish(&mut self) -> Result<(), String> {
        self.0.flush().map_err(told)
    }
}

/// DiskSim ASCII, with six decimals: whole nanoseconds.
pub(super) struct Disksim<W>(pub(super) W);

impl<W: Write> RecordWriter for Disksim<W> {
    fn write(&mut self, record: &TraceRecord) -> Result<(), String> {
        let (at, device, flags) =
            (record.at.0, record.device.unwrap_or(0), u8::from(record.operation == Operation::Read));
        let (first, sectors) = (record.offset.0 / SECTOR, record.length.0 / SECTOR);
        writeln!(self.0, "{}.{:06} {device} {first} {sectors} {flags:x}", at / 1_000_000, at % 1_000_000).map_err(told)
    }

    fn finish(&mut self) -> Result<(), String> {
        self.0.flush().map_err(told)
    }
}

/// fio's iolog, version 3: one file, called `trace`. fio replays it on another with `replay_redirect`.
pub(super) struct FioIolog<W> {
    out: W,
    last: u64,
}

impl<W: Write> FioIolog<W> {
    pub(super) fn new(mut out: W) -> Result<Self, String> {
        writeln!(out, "{}\n0 trace add\n0 trace open", fio_iolog::HEADER).map_err(told)?;
        Ok(Self { out, last: 0 })
    }
}

impl<W: Write> RecordWriter for FioIolog<W> {
    fn write(&mut self, record: &TraceRecord) -> Result<(), String> {
        self.last = record.at.0 / 1_000;
        let (action, offset, length) = match record.operation {
            Operation::Read => ("read", record.offset.0, record.length.0),
            Operation::Trim => ("trim", record.offset.0, record.length.0),
            Operation::Flush => ("sync", 0, 0),
            Operation::Write | Operation::WriteZeroes => ("write", record.offset.0, record.length.0),
        };
        writeln!(self.out, "{} trace {action} {offset} {length}", self.last).map_err(told)
    }

    fn finish(&mut self) -> Result<(), String> {
        writeln!(self.out, "{} trace close", self.last).and_then(|()| self.out.flush()).map_err(told)
    }
}

/// Page numbers behind R or W, a line for each page of [`PAGE`] bytes that a request touches.
pub(super) struct Pages<W>(pub(super) W);

/// Bytes of a page.
const PAGE: u64 = 4096;

impl<W: Write> RecordWriter for Pages<W> {
    fn write(&mut self, record: &TraceRecord) -> Result<(), String> {
        let kind = if record.operation == Operation::Read { 'R' } else { 'W' };
        let end = record.offset.0.saturating_add(record.length.0);
        let mut pages = record.offset.0 / PAGE..end.div_ceil(PAGE);
        pages.try_for_each(|page| writeln!(self.0, "{kind} {page}")).map_err(told)
    }

    fn finish(&mut self) -> Result<(), String> {
        self.0.flush().map_err(told)
    }
}

/// What `blkparse` would print: D for each request, and C where the latency is known, in the order of their times.
pub(super) struct Blkparse<W> {
    out: W,
    sequence: u64,
    /// Completions that are behind the last request, earliest first.
    open: BinaryHeap<std::cmp::Reverse<(u64, u64, String)>>,
}

/// Completions held back at most; a trace with more of them in flight has them out of order.
const MOST_OPEN: usize = 1 << 16;

impl<W: Write> Blkparse<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, sequence: 0, open: BinaryHeap::new() }
    }

    fn line(&mut self, device: &str, at: u64, pid: u32, what: &str) -> Result<(), String> {
        self.sequence += 1;
        let (seconds, nanos, sequence) = (at / 1_000_000_000, at % 1_000_000_000, self.sequence);
        writeln!(self.out, "{device} 0 {sequence} {seconds}.{nanos:09} {pid} {what}").map_err(told)
    }

    /// Writes completions up to a time.
    fn complete(&mut self, until: u64, most: usize) -> Result<(), String> {
        while self.open.len() > most || self.open.peek().is_some_and(|next| next.0.0 <= until) {
            let Some(std::cmp::Reverse((at, _, what))) = self.open.pop() else { break };
            let (device, what) = what.split_once(' ').unwrap_or_default();
            self.line(device, at, 0, what)?;
        }
        Ok(())
    }
}

impl<W: Write> RecordWriter for Blkparse<W> {
    fn write(&mut self, record: &TraceRecord) -> Result<(), String> {
        self.complete(record.at.0, MOST_OPEN)?;
        let number = record.device.unwrap_or(0);
        let device = format!("{},{}", number >> 20, number & 0xF_FFFF);
        let (first, sectors) = (record.offset.0 / SECTOR, record.length.0 / SECTOR);
        let flags = match record.operation {
            Operation::Read => "R",
            Operation::Write if record.fua => "WF",
            Operation::Write => "W",
            Operation::WriteZeroes => "WZ",
            Operation::Trim => "D",
            Operation::Flush => "F",
        };
        let extent = if record.operation == Operation::Flush { String::new() } else { format!(" {first} + {sectors}") };
        self.line(&device, record.at.0, record.process.unwrap_or(0), &format!("D {flags}{extent} [flashwise]"))?;
        if let Some(latency) = record.latency {
            let end = record.at.0.saturating_add(latency.0);
            self.open.push(std::cmp::Reverse((end, self.sequence, format!("{device} C {flags}{extent} [0]"))));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        self.complete(u64::MAX, 0)?;
        self.out.flush().map_err(told)
    }
}
