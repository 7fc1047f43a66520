//! VMware's vscsiStats, binary: little-endian records of 32 bytes (version 1) or 40 bytes (version 2).
//!
//! ```text
//!   version 1   sn u32 · len u32 · nSG u32 · cmd u16 · ver u16 · lbn u64 · ts u64
//!   version 2   cmd u16 · ver u16 · sn u32 · len u32 · nSG u32 · lbn u64 · ts u64 · rt u64
//! ```
//!
//! `ver >> 8` is the version, `cmd` the SCSI opcode, `len` bytes, `lbn` sectors of 512 bytes, `ts` and the response
//! time `rt` µs. Source: `vscsi.h` of libCacheSim. Opcodes: SBC-4; those that move no data are counted and left out.

use flashwise_block::{ByteSize, Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::sized;
use super::source::{Chatter, Failure, RecordSource};
use crate::error::Place;
use crate::input::{Input, records::Records};
use crate::record::TraceRecord;

struct Vscsi {
    records: Records,
    version: Version,
    sector: u64,
    chatter: Chatter,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    match version(head.bytes)? {
        Version::One => Some("binary records of 32 bytes, each marked as version 1"),
        Version::Two => Some("binary records of 40 bytes, each marked as version 2"),
    }
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    let version = version(&input.head).ok_or("its first records are marked neither as version 1 nor as version 2")?;
    Ok(Box::new(Vscsi {
        records: Records::new(input.into_bytes()),
        version,
        sector: units.sector,
        chatter: Chatter::default(),
    }))
}

/// What all of the first records say.
fn version(head: &[u8]) -> Option<Version> {
    let all = |length: usize, place: usize, version: u8| {
        let mut records = head.chunks_exact(length).take(16).peekable();
        let known = |record: &[u8]| record[place + 1] == version && operation(u16::from(record[place - 2])).is_some();
        records.peek().is_some_and(|first| known(first)) && records.all(|record| record[place + 1] == version)
    };
    match () {
        () if all(40, 2, 2) => Some(Version::Two),
        () if all(32, 14, 1) => Some(Version::One),
        () => None,
    }
}

/// What a SCSI command does; `None` where it moves no data.
pub(super) fn operation(command: u16) -> Option<Operation> {
    match command {
        0x08 | 0x28 | 0xA8 | 0x88 => Some(Operation::Read),
        // Alone, with verification, and compared before.
        0x0A | 0x2A | 0xAA | 0x8A | 0x2E | 0xAE | 0x8E | 0x89 => Some(Operation::Write),
        0x41 | 0x93 => Some(Operation::WriteZeroes),
        0x35 | 0x91 => Some(Operation::Flush),
        _ => None,
    }
}

/// What commands are called that are left out.
pub(super) const OTHERS: &str = "SCSI commands other than reads and writes";

/// The fields of both versions.
struct Fields {
    command: u16,
    length: u32,
    lbn: u64,
    at_us: u64,
    latency_us: Option<u64>,
}

impl Vscsi {
    fn fields(&mut self) -> Result<Option<Fields>, Failure> {
        Ok(match self.version {
            Version::One => self.records.next::<32>()?.map(|record| Fields {
                length: u32_at(record, 4),
                command: u16_at(record, 12),
                lbn: u64_at(record, 16),
                at_us: u64_at(record, 24),
                latency_us: None,
            }),
            Version::Two => self.records.next::<40>()?.map(|record| Fields {
                command: u16_at(record, 0),
                length: u32_at(record, 8),
                lbn: u64_at(record, 16),
                at_us: u64_at(record, 24),
                latency_us: Some(u64_at(record, 32)),
            }),
        })
    }
}

impl RecordSource for Vscsi {
    fn next(&mut self) -> Result<Option<TraceRecord>, Failure> {
        let bad = |reason: String| Failure::Bad { text: String::new(), reason };
        while let Some(fields) = self.fields()? {
            let Some(operation) = operation(fields.command) else {
                self.chatter.note(OTHERS.into());
                continue;
            };
            let micros = |count: u64| {
                let told = || bad(format!("{count} µs exceed 584 years"));
                count.checked_mul(1_000).map(Nanos).ok_or_else(told)
            };
            let offset = sized("lbn", fields.lbn, self.sector).map_err(bad)?;
            let latency = fields.latency_us.map(micros).transpose()?;
            let record = TraceRecord::new(micros(fields.at_us)?, operation, offset, ByteSize(fields.length.into()));
            return Ok(Some(TraceRecord { latency, ..record }));
        }
        Ok(None)
    }

    fn place(&self) -> Place {
        Place::Record(self.records.number())
    }

    fn remarks(&self) -> Vec<String> {
        self.chatter.remark().into_iter().collect()
    }
}

/// The little-endian number at a byte; bytes behind the end count as 0.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|part| part.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The same for 32 bits.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|part| part.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// The same for 16 bits.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|part| part.try_into().ok()).map_or(0, u16::from_le_bytes)
}
