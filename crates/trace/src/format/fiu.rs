//! FIU: `time pid process lba sectors W|R major minor md5`.
//!
//! The time is in ns since an unknown start; address and size are sectors of 512 bytes. The hash is that of the content
//! (the MD5 of each 4096 bytes; in the *home* set of each 512), which is what a drive that deduplicates would find. Its
//! first eight bytes become [`TraceRecord::content`]. Source: README of the SNIA IOTTA trace set 411 (Koller,
//! Rangaswami, "I/O Deduplication", FAST 2010).

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
    head.is_mostly(Parser { sector: 512 }).then_some("nine fields, the sixth W or R, the last the hash of the content")
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(TextSource::new(input, Parser { sector: units.sector })))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let [at, pid, _, lba, sectors, operation, major, minor, hash] =
            spaced::<9>(line, "time pid process lba sectors operation major minor md5")?;
        let operation = match operation {
            b"R" => Operation::Read,
            b"W" => Operation::Write,
            other => return Err(format!("operation is {}; FIU writes W or R", quoted(other))),
        };
        let (offset, length) = (bytes_of("lba", lba, self.sector)?, bytes_of("sectors", sectors, self.sector)?);
        let record = TraceRecord::new(time("time", at, NANOS)?, operation, offset, length);
        Ok(Line::Data(TraceRecord {
            process: Some(number("pid", pid)?),
            device: Some(device(number("major", major)?, number("minor", minor)?)?),
            content: Some(content(hash)?),
            ..record
        }))
    }
}

/// A device of the kernel as one number.
pub(crate) fn device(major: u32, minor: u32) -> Result<u32, String> {
    if major < 1 << 12 && minor < 1 << 20 {
        return Ok(major << 20 | minor);
    }
    Err(format!("device {major},{minor} does not exist; major numbers end at 4095, minor ones at 1048575"))
}

fn content(hash: &[u8]) -> Result<u64, String> {
    let text = hash.get(..16).and_then(|start| std::str::from_utf8(start).ok());
    let is_hash = hash.len() >= 16 && hash.iter().all(u8::is_ascii_hexdigit);
    text.filter(|_| is_hash)
        .and_then(|text| u64::from_str_radix(text, 16).ok())
        .ok_or_else(|| format!("hash is {}; it must be hexadecimal, of 16 digits or more", quoted(hash)))
}
