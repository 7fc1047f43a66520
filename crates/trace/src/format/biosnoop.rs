//! What `biosnoop` prints: `TIME(s) COMM PID DISK T SECTOR BYTES [P] [QUE(ms)] LAT(ms)`.
//!
//! Columns are found by the line of their names, which differ between versions and options: bcc's `-Q` adds the time in
//! the queue and `-P` a pattern, libbpf-tools' `-t` prints times of day (`TIMESTAMP`) and letters as blkparse's RWBS.
//! The name of a process may have blanks, and that of a disk may be absent.
//!
//! The time is that of the completion, from the first one on; `LAT(ms)` is from issue to completion, so that the
//! request was issued that much earlier. Requests are put back into that order. The disk is one of
//! [`TraceReader::files`](crate::TraceReader::files). Source: `biosnoop(8)` of bcc 0.26, `biosnoop.py` and
//! `libbpf-tools/biosnoop.c` of bcc.

use flashwise_block::{ByteSize, Nanos};

use super::Units;
use super::detect::Head;
use super::fields::{DayTime, MILLIS, SECONDS, Words, bytes_of, decimal_time, digits, number};
use super::rwbs::{Extent, Rwbs, SECTOR};
use super::source::{BIAS, Line, LineParser, Names, RecordSource, Sorted, TextSource};
use crate::input::Input;
use crate::record::TraceRecord;

#[derive(Default)]
struct Parser {
    columns: Option<Columns>,
    disks: Names,
    day: DayTime,
    lost: u64,
}

/// What is where in a line, as the line of names says.
#[derive(Clone, Debug)]
struct Columns {
    /// Columns behind the name of the process, which may have blanks; their places are counted from the end.
    behind: Vec<Column>,
    /// Columns before it.
    before: usize,
    /// Place of the time, from the start.
    time: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Pid,
    Disk,
    Kind,
    Sector,
    Bytes,
    Latency,
    Other,
}

impl Columns {
    /// Of a line of names; `None` where it is none.
    fn of(line: &[u8]) -> Option<Self> {
        let names: Vec<&[u8]> = Words(line).collect();
        let place = |name: &[u8]| names.iter().position(|other| *other == name);
        let time = names.iter().position(|name| name.starts_with(b"TIME"))?;
        let comm = place(b"COMM")?;
        place(b"SECTOR").and(place(b"BYTES"))?;
        let column = |name: &&[u8]| match *name {
            b"PID" | b"TID" => Column::Pid,
            b"DISK" => Column::Disk,
            b"T" => Column::Kind,
            b"SECTOR" => Column::Sector,
            b"BYTES" => Column::Bytes,
            name if name.starts_with(b"LAT") => Column::Latency,
            _ => Column::Other,
        };
        let behind: Vec<Column> = names[comm + 1..].iter().map(column).collect();
        let needed = [Column::Kind, Column::Sector, Column::Bytes, Column::Latency];
        let fits = time < comm && needed.iter().all(|column| behind.contains(column));
        fits.then_some(Self { behind, before: comm, time })
    }

    /// The fields of a line, by column.
    fn fields<'a>(&self, words: &[&'a [u8]]) -> Option<Fields<'a>> {
        let mut fields = Fields { at: words.get(self.time).copied()?, ..Fields::default() };
        let mut end = words.len();
        for (index, column) in self.behind.iter().enumerate().rev() {
            let word = *words.get(end.checked_sub(1)?)?;
            // Where no disk is known its column is empty: the number of the process, or nothing, is in its place.
            let is_pid = |word: &[u8]| digits(word).is_some();
            if *column == Column::Disk && self.behind[..index].contains(&Column::Pid) && is_pid(word) {
                continue;
            }
            let place = match column {
                Column::Pid => &mut fields.pid,
                Column::Disk => &mut fields.disk,
                Column::Kind => &mut fields.kind,
                Column::Sector => &mut fields.sector,
                Column::Bytes => &mut fields.bytes,
                Column::Latency => &mut fields.latency,
                Column::Other => &mut fields.other,
            };
            *place = word;
            end -= 1;
        }
        (end >= self.before).then_some(fields)
    }
}

#[derive(Default)]
struct Fields<'a> {
    at: &'a [u8],
    pid: &'a [u8],
    disk: &'a [u8],
    kind: &'a [u8],
    sector: &'a [u8],
    bytes: &'a [u8],
    latency: &'a [u8],
    other: &'a [u8],
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let has_header = head.lines.iter().any(|line| Columns::of(line).is_some());
    (has_header && head.is_mostly(Parser::default()))
        .then_some("the header TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)")
}

pub(super) fn open(input: Input, _: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(Sorted::biased(TextSource::new(input, Parser::default()))))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        if let Some(columns) = Columns::of(line) {
            self.columns = Some(columns);
            return Ok(Line::Silent);
        }
        let words: Vec<&[u8]> = Words(line).collect();
        if let Some(told) = self.chatter(&words) {
            return Ok(told);
        }
        let Some(columns) = &self.columns else {
            return Err("the header line is missing: TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)".to_owned());
        };
        let Some(fields) = columns.fields(&words) else {
            return Err("fields are missing: TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)".to_owned());
        };
        let Fields { at, pid, disk, kind, sector, bytes, latency, .. } = fields;
        let end = match self.day.of(at) {
            Some(end) => end,
            None => decimal_time("time", at, SECONDS)?,
        };
        let latency = decimal_time("latency", latency, MILLIS)?;
        let bytes = bytes_of("bytes", bytes, 1)?;
        // A flush has the sector −1.
        let offset =
            if bytes.0 == 0 && digits(sector).is_some() { ByteSize(0) } else { bytes_of("sector", sector, SECTOR)? };
        let kind = match Rwbs::of(kind)? {
            Rwbs::Request(kind) => kind,
            Rwbs::Other(what) => return Ok(Line::chatter(what)),
        };
        let Some((operation, extent)) = kind.with(Some(Extent { offset, length: bytes })) else {
            return Ok(Line::chatter("commands without bytes"));
        };
        let at = end.0.checked_add(BIAS).and_then(|end| end.checked_sub(latency.0));
        let at = at.ok_or_else(|| format!("its latency, {} ns, exceeds 146 years", latency.0))?;
        let process = match pid {
            b"?" | b"" => None,
            pid => Some(number("pid", pid).map_err(|error| format!("{error}, or ? if unknown"))?),
        };
        let file = if disk.is_empty() { None } else { self.disks.number(disk) };
        let record = TraceRecord::new(Nanos(at), operation, extent.offset, extent.length);
        Ok(Line::Data(TraceRecord { latency: Some(latency), process, file, fua: kind.fua, ..record }))
    }

    fn files(&self) -> &[String] {
        self.disks.list()
    }

    fn remarks(&self) -> Vec<String> {
        let lost = (self.lost > 0).then(|| format!("biosnoop lost {} events", self.lost));
        lost.into_iter().chain(self.disks.remark()).collect()
    }
}

impl Parser {
    /// What the tool prints beside its table.
    fn chatter(&mut self, words: &[&[u8]]) -> Option<Line<TraceRecord>> {
        let count = words.iter().find_map(|word| digits(word)).unwrap_or(1);
        match words {
            [b"Tracing" | b"Attaching" | b"Attached" | b"Detaching...", ..] => Some(Line::chatter("banners")),
            // Possibly lost 17 samples; lost 17 events on CPU #3
            [b"Possibly", b"lost", ..] | [b"lost" | b"Lost", _, b"events", ..] => {
                self.lost = self.lost.saturating_add(count);
                Some(Line::Silent)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_where_the_line_of_names_says() {
        let columns = Columns::of(b"TIME(s)  COMM  PID  DISK  T SECTOR BYTES  P QUE(ms) LAT(ms)").unwrap();
        let line: Vec<&[u8]> = Words(b"1.5 two words 17 sda W 8 512 S 0.5 2.5").collect();
        let fields = columns.fields(&line).unwrap();
        assert_eq!([fields.at, fields.pid, fields.disk, fields.kind], [&b"1.5"[..], b"17", b"sda", b"W"]);
        assert_eq!([fields.sector, fields.bytes, fields.latency], [&b"8"[..], b"512", b"2.5"]);
        let line: Vec<&[u8]> = Words(b"1.5 ? 0 R 0 8 S 0.5 2.5").collect();
        let fields = columns.fields(&line).unwrap();
        assert_eq!([fields.pid, fields.disk, fields.kind], [&b"0"[..], b"", b"R"]);
        assert!(columns.fields(&line[..5]).is_none());
        assert!(Columns::of(b"TIME(ms) DISK COMM PID LAT(ms)").is_none(), "no sectors");
    }
}
