//! What `blkparse` prints: `maj,min cpu seq seconds pid action RWBS sector + sectors [process]`.
//!
//! Of the actions, D (handed to the drive) is the request and C its completion; the others are the kernel's own.
//! Flushes have no sector. The summary behind the events is skipped. Source: blkparse(1), *Default output*.

use flashwise_block::{ByteSize, Operation};

use super::Units;
use super::detect::Head;
use super::fields::{SECONDS, Words, decimal_time, digits, number, quoted, sized};
use super::fiu::device;
use super::source::{Event, EventLines, EventSource, Failure, Paired, RecordSource};
use crate::error::Place;
use crate::input::Input;
use crate::record::TraceRecord;

/// Sectors of the kernel.
const SECTOR: u64 = 512;

struct Blkparse {
    lines: EventLines,
    is_summary: bool,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let events: Vec<_> = head.lines.iter().take_while(|line| !is_summary(line)).collect();
    let parsed = events.iter().filter(|line| parse(line).is_ok()).count();
    (parsed > 0 && 4 * parsed >= 3 * events.len())
        .then_some("lines that start with major,minor and have an action and flags such as WS")
}

pub(super) fn open(input: Input, _: &Units) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(Paired::new(Blkparse { lines: EventLines::new(input), is_summary: false })))
}

impl EventSource for Blkparse {
    fn next(&mut self) -> Result<Option<Event>, Failure> {
        let summary = &mut self.is_summary;
        let skips = |line: &[u8]| {
            *summary |= is_summary(line);
            *summary || line.trim_ascii().is_empty()
        };
        self.lines.next(skips, parse)
    }

    fn place(&self) -> Place {
        self.lines.place()
    }

    fn remarks(&self) -> Vec<String> {
        let told = format!("{} events other than issue (D) and completion (C) were left out", self.lines.others);
        if self.lines.others == 0 { Vec::new() } else { vec![told] }
    }
}

/// Whether what `blkparse` adds up at the end starts here.
fn is_summary(line: &[u8]) -> bool {
    line.starts_with(b"CPU") || line.starts_with(b"Total (") || line.starts_with(b"Throughput")
}

fn parse(line: &[u8]) -> Result<Option<Event>, String> {
    let mut words = Words(line);
    let mut next = || words.next().ok_or("it has fewer than seven fields: maj,min cpu seq seconds pid action RWBS");
    let (drive, _, _, at, pid, action, flags) = (next()?, next()?, next()?, next()?, next()?, next()?, next()?);
    let (device, at) = (drive_number(drive)?, decimal_time("time", at, SECONDS)?);
    let process = number("pid", pid)?;
    if action != b"D" && action != b"C" {
        return Ok(None);
    }
    let Some(kind) = Kind::of(flags)? else { return Ok(None) };
    let extent = Extent::behind(words.rest())?;
    let Some((operation, extent)) = kind.with(extent) else { return Ok(None) };
    Ok(Some(match action {
        b"C" => Event::Completed { at, device, offset: extent.offset.0 },
        _ => {
            let record = TraceRecord::new(at, operation, extent.offset, extent.length);
            Event::Issued(TraceRecord { device: Some(device), process: Some(process), fua: kind.fua, ..record })
        }
    }))
}

/// `259,0` as one number.
pub(super) fn drive_number(field: &[u8]) -> Result<u32, String> {
    let told = || format!("device is {}; it must be major,minor", quoted(field));
    let comma = field.iter().position(|&byte| byte == b',').ok_or_else(told)?;
    device(number("major", &field[..comma])?, number("minor", &field[comma + 1..])?)
}

/// What the letters of RWBS say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// `None` for a request that has none of R, W and D.
    operation: Option<Operation>,
    is_flush: bool,
    pub(super) fua: bool,
}

impl Kind {
    /// `None` where it is neither a request nor a flush.
    pub(super) fn of(flags: &[u8]) -> Result<Option<Self>, String> {
        if !flags.iter().all(|flag| b"RWDEFNASMVZ".contains(flag)) {
            return Err(format!("flags are {}; they are letters such as R, WS or FWFS", quoted(flags)));
        }
        let is_flush = flags.first() == Some(&b'F');
        let rest = if is_flush { &flags[1..] } else { flags };
        let operation = match rest.first() {
            Some(b'R') => Some(Operation::Read),
            Some(b'W') if rest.contains(&b'Z') => Some(Operation::WriteZeroes),
            Some(b'W') => Some(Operation::Write),
            Some(b'D' | b'E') => Some(Operation::Trim),
            _ => None,
        };
        let fua = operation == Some(Operation::Write) && rest.contains(&b'F');
        Ok((is_flush || operation.is_some()).then_some(Self { operation, is_flush, fua }))
    }

    /// The request, once it is known whether it has bytes: a flush has none.
    pub(super) fn with(self, extent: Option<Extent>) -> Option<(Operation, Extent)> {
        match (self.operation, extent.filter(|extent| extent.length.0 > 0)) {
            (Some(operation), Some(extent)) => Some((operation, extent)),
            _ if self.is_flush => Some((Operation::Flush, Extent { offset: ByteSize(0), length: ByteSize(0) })),
            _ => None,
        }
    }
}

/// A stretch of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: ByteSize,
    pub(super) length: ByteSize,
}

impl Extent {
    /// `sector + sectors`, where that is what comes next.
    pub(super) fn behind(text: &[u8]) -> Result<Option<Self>, String> {
        let mut words = Words(text);
        let (Some(first), Some(b"+"), Some(count)) = (words.next(), words.next(), words.next()) else {
            return Ok(None);
        };
        let count: u64 = number("number of sectors", count)?;
        // A flush has the sector −1.
        if count == 0 && digits(first).is_some() {
            return Ok(Some(Self { offset: ByteSize(0), length: ByteSize(0) }));
        }
        let offset = sized("sector", number("sector", first)?, SECTOR)?;
        Ok(Some(Self { offset, length: sized("number of sectors", count, SECTOR)? }))
    }
}
