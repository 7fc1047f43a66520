//! What bcc's `biosnoop` prints: `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)`.
//!
//! The time is that of the completion, from the first one on; `LAT(ms)` is from issue to completion, so that the
//! request was issued that much earlier. Requests are put back into that order. The disk is one of
//! [`TraceReader::files`](crate::TraceReader::files). Source: `biosnoop(8)` of bcc 0.26; those of libbpf-tools, whose
//! column T has letters as blkparse's RWBS, are read as well.

use flashwise_block::{ByteSize, Nanos};

use super::Units;
use super::blkparse::{Extent, Kind};
use super::detect::Head;
use super::fields::{MILLIS, SECONDS, Words, bytes_of, decimal_time, digits, number};
use super::source::{LineParser, Names, RecordSource, Sorted, TextSource};
use crate::input::{Input, lines::Lines};
use crate::record::TraceRecord;

/// Sectors of the kernel.
const SECTOR: u64 = 512;
/// Fields behind the name of the process, which may have blanks.
const BEHIND: usize = 6;

#[derive(Default)]
struct Parser {
    has_queue_time: bool,
    disks: Names,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let has_header = head.first_line().starts_with(b"TIME(s)");
    (has_header && head.is_mostly(Parser::default()))
        .then_some("the header TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)")
}

pub(super) fn open(input: Input, _: &Units) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(Sorted::new(TextSource::new(Lines::new(input.into_bytes()), Parser::default()))))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRecord>, String> {
        let words: Vec<&[u8]> = Words(line).collect();
        if words.first().is_some_and(|first| first.starts_with(b"TIME")) {
            self.has_queue_time = words.iter().any(|word| word.starts_with(b"QUE"));
            return Ok(None);
        }
        let behind = BEHIND + usize::from(self.has_queue_time);
        let Some(start) = words.len().checked_sub(behind).filter(|&start| start >= 1) else {
            return Err("it lacks fields: TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)".to_owned());
        };
        let [pid, disk, kind, sector, bytes] = [0, 1, 2, 3, 4].map(|place| words[start + place]);
        let (end, latency) = (decimal_time("time", words[0], SECONDS)?, words[words.len() - 1]);
        let latency = decimal_time("latency", latency, MILLIS)?;
        let bytes = bytes_of("bytes", bytes, 1)?;
        // A flush has the sector −1.
        let offset =
            if bytes.0 == 0 && digits(sector).is_some() { ByteSize(0) } else { bytes_of("sector", sector, SECTOR)? };
        let kind = Kind::of(kind)?;
        let Some((operation, extent)) = kind.and_then(|kind| kind.with(Some(Extent { offset, length: bytes }))) else {
            return Ok(None);
        };
        let at = Nanos(end.0.saturating_sub(latency.0));
        let record = TraceRecord::new(at, operation, extent.offset, extent.length);
        let (process, file) = (Some(number("pid", pid)?), self.disks.number(disk));
        Ok(Some(TraceRecord { latency: Some(latency), process, file, ..record }))
    }

    fn files(&self) -> &[String] {
        self.disks.list()
    }
}
