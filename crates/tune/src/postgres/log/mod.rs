//! The statements of PostgreSQL's own log: `log_statement = all`, or `log_min_duration_statement` and its samples.
//!
//! ```text
//!   stderr  ─▶ lines ─▶ entries ──┐
//!   csvlog  ─▶ records ───────────┼─▶ entry: statement and values ─▶ collector
//!   jsonlog ─▶ objects ───────────┘
//!   pg_stat_statements ─▶ calls of each statement ─▶ weights of the transactions
//! ```

mod entry;
mod sql;
mod stderr;
mod tables;
pub(super) mod weights;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flashwise_block::input::open_regular;

use crate::TuneError;
use crate::servers::logged::{Collector, Line, Lines, LoggedWorkload};
use entry::Entry;
use stderr::{Read, StderrEntries};
use tables::{CsvRecords, csv_entry, json_entry};

/// Bytes of a file by which its format is recognised.
const START_BYTES: usize = 64 << 10;

/// Reads log files, in the order in which the server wrote them.
///
/// # Errors
/// When one cannot be read, or there is no statement in them.
pub(super) fn read_logs(files: &[PathBuf]) -> Result<LoggedWorkload, TuneError> {
    let mut collector = Collector::default();
    for path in files {
        let file = open_regular(path).map_err(|e| TuneError::file(path, &e))?;
        read(BufReader::with_capacity(START_BYTES, file), &mut collector).map_err(|e| TuneError::file(path, &e))?;
    }
    let workload = collector.finish();
    match workload.count() {
        0 => Err(TuneError::File {
            path: files.first().map(PathBuf::as_path).unwrap_or(Path::new("")).to_owned(),
            message: nothing(&workload),
        }),
        _ => Ok(workload),
    }
}

fn nothing(workload: &LoggedWorkload) -> String {
    let most = workload.left_out.sorted().into_iter().next();
    let most = most.map(|most| format!(" ({} × {})", most.count, most.reason)).unwrap_or_default();
    format!(
        "no statement that can be replayed{most}; log them with log_statement = all, or with \
         log_min_duration_statement, with lc_messages = C"
    )
}

fn read(mut reader: impl BufRead, collector: &mut Collector) -> std::io::Result<()> {
    let format = Format::of(reader.fill_buf()?);
    let mut lines = Lines::new(reader);
    let mut reading = Reading { format, entries: StderrEntries::new(), records: CsvRecords::default() };
    while let Some(line) = lines.next()? {
        if collector.is_full() {
            return Ok(());
        }
        reading.line(&line, collector);
    }
    reading.finish(collector);
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Stderr,
    Csv,
    Json,
}

impl Format {
    /// The format of a file by its start.
    fn of(start: &[u8]) -> Self {
        let text = String::from_utf8_lossy(start);
        let is_csv = || {
            let ends = text.match_indices('\n').map(|(at, _)| at).take(100).chain([text.len()]);
            ends.into_iter().any(|end| csv_entry(&text[..end]).is_some())
        };
        match text.trim_start().starts_with('{') {
            true => Self::Json,
            false if is_csv() => Self::Csv,
            false => Self::Stderr,
        }
    }
}

struct Reading {
    format: Format,
    entries: StderrEntries,
    records: CsvRecords,
}

impl Reading {
    fn line(&mut self, line: &Line<'_>, collector: &mut Collector) {
        let (Line::Whole(bytes) | Line::TooLong(bytes)) = line;
        let text = String::from_utf8_lossy(bytes);
        let is_whole = matches!((line, &text), (Line::Whole(_), std::borrow::Cow::Borrowed(_)));
        if !is_whole {
            collector.leave_out("entries that are too long, or not UTF-8", "");
            self.records.clear();
            if let Some(entry) = self.entries.unreadable(bytes.starts_with(b"\t")) {
                entry.collect(collector);
            }
            return;
        }
        match self.format {
            Format::Json => take(collector, json_entry(&text).ok_or(()), &text),
            Format::Csv => self.records.line(&text).into_iter().for_each(|entry| take(collector, entry, &text)),
            Format::Stderr => match self.entries.line(&text) {
                Read::Taken(entry) => entry.into_iter().for_each(|entry| entry.collect(collector)),
                Read::Foreign => take(collector, Err(()), &text),
            },
        }
    }

    /// What is left at the end of a file.
    fn finish(mut self, collector: &mut Collector) {
        self.records.finish().into_iter().for_each(|entry| take(collector, entry, ""));
        if let Some(entry) = self.entries.finish() {
            entry.collect(collector);
        }
    }
}

fn take(collector: &mut Collector, entry: Result<Entry, ()>, line: &str) {
    match entry {
        Ok(entry) => entry.collect(collector),
        Err(()) if line.is_empty() => {}
        Err(()) => collector.leave_out("lines that are no entries of a log", line),
    }
}

#[cfg(test)]
mod tests;
