//! blktrace, binary: events of 48 bytes, each with a payload behind it, in the byte order of the machine that recorded.
//!
//! ```text
//!   0 magic u32 (0x65617400 | version 7) · 4 sequence u32 · 8 time u64, ns · 16 sector u64 · 24 bytes u32 · 28 action u32
//!   32 pid u32 · 36 device u32 (major << 20 | minor) · 40 cpu u32 · 44 error u16 · 46 length of the payload u16
//! ```
//!
//! The low half of the action says what happened, of which *issue* (7) and *complete* (8) are used; the high half has
//! the categories. Flushes carry no bytes. Payloads are passed over. A file of one CPU is in order of time; those of
//! several are merged ([`super::blktrace_files`]). Source: `blktrace_api.h` of the kernel.

use flashwise_block::{ByteSize, Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::sized;
use super::source::{Event, EventSource, Failure, Paired, RecordSource};
use crate::error::Place;
use crate::input::{Input, records::Records};
use crate::record::TraceRecord;

const EVENT: usize = 48;
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;
/// Sectors of the kernel.
const SECTOR: u64 = 512;

mod category {
    pub(super) const WRITE: u32 = 1 << 17;
    pub(super) const FLUSH: u32 = 1 << 18;
    /// A command of SCSI's own.
    pub(super) const PC: u32 = 1 << 25;
    pub(super) const NOTIFY: u32 = 1 << 26;
    pub(super) const DISCARD: u32 = 1 << 29;
    pub(super) const FUA: u32 = 1 << 31;
}

/// The events of one file.
pub(super) struct Blktrace {
    records: Records,
    is_big_endian: bool,
    others: u64,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    is_big_endian(head.bytes).map(|_| "blktrace's magic number, 0x65617407")
}

fn is_big_endian(head: &[u8]) -> Option<bool> {
    let magic: [u8; 4] = head.get(..4)?.try_into().ok()?;
    let known = |value: u32| value == MAGIC | VERSION;
    (known(u32::from_le_bytes(magic)) || known(u32::from_be_bytes(magic))).then(|| known(u32::from_be_bytes(magic)))
}

pub(super) fn open(input: Input, _: &Units) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(Paired::new(Blktrace::new(input)?)))
}

impl Blktrace {
    pub(super) fn new(input: Input) -> Result<Self, String> {
        let is_big_endian =
            is_big_endian(&input.head).ok_or("it does not start with blktrace's magic number, version 7")?;
        Ok(Self { records: Records::new(input.into_bytes()), is_big_endian, others: 0 })
    }

    /// Events that are of no request, so far.
    pub(super) fn others(&self) -> u64 {
        self.others
    }
}

/// What is to be said of events that are of no request.
pub(super) fn left_out(others: u64) -> Option<String> {
    (others > 0).then(|| format!("{others} events other than issue and completion were left out"))
}

/// An event without its payload.
struct Raw {
    magic: u32,
    at: Nanos,
    sector: u64,
    bytes: u32,
    action: u32,
    process: u32,
    device: u32,
    payload: u16,
}

impl Raw {
    fn new(event: &[u8; EVENT], is_big_endian: bool) -> Self {
        let wide = |at: usize, bytes: usize| {
            let part = &event[at..at + bytes];
            let digit = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
            if is_big_endian { part.iter().fold(0, digit) } else { part.iter().rev().fold(0, digit) }
        };
        let word = |at| wide(at, 4) as u32;
        Self {
            magic: word(0),
            at: Nanos(wide(8, 8)),
            sector: wide(16, 8),
            bytes: word(24),
            action: word(28),
            process: word(32),
            device: word(36),
            payload: wide(46, 2) as u16,
        }
    }

    fn operation(&self) -> Operation {
        match self.action {
            action if action & category::DISCARD != 0 => Operation::Trim,
            action if self.bytes == 0 && action & category::FLUSH != 0 => Operation::Flush,
            action if action & category::WRITE != 0 => Operation::Write,
            _ => Operation::Read,
        }
    }

    fn event(&self) -> Result<Option<Event>, String> {
        let is_none = self.bytes == 0 && self.operation() != Operation::Flush;
        if self.action & (category::NOTIFY | category::PC) != 0 || is_none {
            return Ok(None);
        }
        let is_flush = self.operation() == Operation::Flush;
        let offset = if is_flush { ByteSize(0) } else { sized("sector", self.sector, SECTOR)? };
        Ok(match self.action & 0xFFFF {
            ISSUE => {
                let record = TraceRecord::new(self.at, self.operation(), offset, ByteSize(self.bytes.into()));
                let fua = record.operation == Operation::Write && self.action & category::FUA != 0;
                let (device, process) = (Some(self.device), Some(self.process));
                Some(Event::Issued(TraceRecord { device, process, fua, ..record }))
            }
            COMPLETE => Some(Event::Completed { at: self.at, device: self.device, offset: offset.0 }),
            _ => None,
        })
    }
}

impl EventSource for Blktrace {
    fn next(&mut self) -> Result<Option<Event>, Failure> {
        while let Some(bytes) = self.records.next::<EVENT>()? {
            let raw = Raw::new(bytes, self.is_big_endian);
            if raw.magic != MAGIC | VERSION {
                return Err(Failure::Fatal(format!("magic number is {:#010x} in place of 0x65617407", raw.magic)));
            }
            self.records.skip(raw.payload.into())?;
            match raw.event().map_err(|reason| Failure::Bad { text: String::new(), reason })? {
                Some(event) => return Ok(Some(event)),
                None => self.others += 1,
            }
        }
        Ok(None)
    }

    fn place(&self) -> Place {
        Place::Record(self.records.number())
    }

    fn remarks(&self) -> Vec<String> {
        left_out(self.others).into_iter().collect()
    }
}
