//! fio's iolog, version 2 and 3: what `write_iolog` writes and `read_iolog` replays.
//!
//! ```text
//!   fio version 2 iolog                 fio version 3 iolog
//!   FILE add|open|close                 TIME FILE add|open|close
//!   FILE wait MICROSECONDS              TIME FILE read|write|trim|sync|datasync OFFSET LENGTH
//!   FILE read|write|… OFFSET LENGTH
//! ```
//!
//! Version 3's time is in µs from the start, as fio writes it (`log_io_u` in its `iolog.c`). Version 2 has no times;
//! its waits are µs after the wait before (fio's HOWTO, *Trace file format v2*), and are added up here. A file is one
//! of [`TraceReader::files`](crate::TraceReader::files); names with blanks are as impossible here as in fio. fio passes
//! over an action that it does not know, such as the `sync_file_range` that it writes itself; so does this reader, and
//! counts.

use flashwise_block::{ByteSize, Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::{MICROS, Words, bytes_of, quoted, time};
use super::source::{Line, LineParser, Names, RecordSource, TextSource};
use super::strace::role_of;
use crate::error::shown;
use crate::input::Input;
use crate::record::TraceRecord;

/// The first line of version 3.
pub(crate) const HEADER: &str = "fio version 3 iolog";
const HEADER_2: &[u8] = b"fio version 2 iolog";

struct Parser {
    is_timed: bool,
    /// Sum of the waits.
    now: Nanos,
    files: Names,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    match head.first_line() {
        HEADER_2 => Some("the header of fio's iolog, version 2"),
        line if line == HEADER.as_bytes() => Some("the header of fio's iolog, version 3"),
        _ => None,
    }
}

pub(super) fn open(input: Input, _: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    let is_timed = input.head.starts_with(HEADER.as_bytes());
    if !is_timed && !input.head.starts_with(HEADER_2) {
        return Err("line 1: must be 'fio version 2 iolog' or 'fio version 3 iolog'".to_owned());
    }
    let parser = Parser { is_timed, now: Nanos(0), files: Names::default() };
    Ok(Box::new(TextSource::new(input, parser)))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        if line.starts_with(b"fio version ") || line.trim_ascii().is_empty() {
            return Ok(Line::Silent);
        }
        if line.starts_with(b"fio: ") {
            return Ok(Line::chatter("messages of fio"));
        }
        let mut words = Words(line);
        let at = match self.is_timed {
            true => time("time", words.next().unwrap_or_default(), MICROS)?,
            false => self.now,
        };
        let (Some(file), Some(action)) = (words.next(), words.next()) else {
            return Err("file name and action are missing".to_owned());
        };
        let operation = match action {
            b"add" | b"open" | b"close" | b"unlink" => return Ok(Line::Silent),
            b"wait" if !self.is_timed => return self.wait(words.next().unwrap_or_default()),
            b"read" => Operation::Read,
            b"write" => Operation::Write,
            b"trim" => Operation::Trim,
            b"sync" | b"datasync" => Operation::Flush,
            other if other.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_') => {
                return Ok(Line::Chatter(format!("actions {}", shown(other, 40)).into()));
            }
            other => return Err(format!("action is {}; fio knows read, write, trim, sync, datasync", quoted(other))),
        };
        let number = self.files.number(file);
        let record = match operation {
            Operation::Flush => TraceRecord::new(at, operation, ByteSize(0), ByteSize(0)),
            _ => {
                let (offset, length) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                TraceRecord::new(at, operation, bytes_of("offset", offset, 1)?, bytes_of("length", length, 1)?)
            }
        };
        Ok(Line::Data(TraceRecord { file: number, role: role_of(file), ..record }))
    }

    fn files(&self) -> &[String] {
        self.files.list()
    }

    fn remarks(&self) -> Vec<String> {
        self.files.remark().into_iter().collect()
    }
}

impl Parser {
    fn wait(&mut self, field: &[u8]) -> Result<Line<TraceRecord>, String> {
        let until = self.now.0.checked_add(time("wait", field, MICROS)?.0);
        self.now = Nanos(until.ok_or("the waits exceed 584 years")?);
        Ok(Line::Silent)
    }
}
