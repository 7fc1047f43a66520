//! flashwise's own trace format: CSV with a header line, one request a line.
//!
//! `at_ns,operation,role,offset_bytes,length_bytes,latency_ns`. Sizes and times are plain numbers in the unit that the
//! column's name carries.

use std::io::{Read, Write};

use flashwise_block::{ByteSize, Nanos, Operation};
use serde::{Deserialize, Serialize};

use crate::{FileRole, IoRecord, IoTrace};

/// Why a trace could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A line does not parse.
    #[error("trace line {line}: {reason}")]
    Malformed {
        /// Line number, the header being 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// Reading or writing failed.
    #[error("trace: {0}")]
    Io(#[from] std::io::Error),
}

#[derive(Serialize, Deserialize)]
struct Row {
    at_ns: u64,
    operation: Operation,
    role: FileRole,
    offset_bytes: u64,
    length_bytes: u64,
    latency_ns: u64,
}

impl From<csv::Error> for TraceError {
    fn from(error: csv::Error) -> Self {
        let line = error.position().map_or(0, csv::Position::line);
        match error.into_kind() {
            csv::ErrorKind::Io(io) => Self::Io(io),
            csv::ErrorKind::Deserialize { err, .. } => Self::Malformed { line, reason: err.to_string() },
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                Self::Malformed { line, reason: format!("it has {len} fields, the header {expected_len}") }
            }
            csv::ErrorKind::Utf8 { err, .. } => Self::Malformed { line, reason: err.to_string() },
            other => Self::Malformed { line, reason: format!("{other:?}") },
        }
    }
}

/// Writes a trace.
///
/// # Errors
/// When the writer fails.
pub fn write_csv(trace: &IoTrace, out: impl Write) -> Result<(), TraceError> {
    let mut writer = csv::Writer::from_writer(out);
    for r in &trace.records {
        writer.serialize(Row {
            at_ns: r.at.0,
            operation: r.operation,
            role: r.role,
            offset_bytes: r.offset.0,
            length_bytes: r.length.0,
            latency_ns: r.latency.0,
        })?;
    }
    writer.flush()?;
    Ok(())
}

/// Reads a trace.
///
/// # Errors
/// At the first line that does not parse, with its number, or when the reader fails.
pub fn read_csv(input: impl Read) -> Result<IoTrace, TraceError> {
    let records = CsvRecords::new(csv::Reader::from_reader(input))?.collect::<Result<_, _>>()?;
    Ok(IoTrace { records })
}

/// The records of a trace, one line at a time.
#[derive(Debug)]
pub(crate) struct CsvRecords<R> {
    reader: csv::Reader<R>,
    header: csv::StringRecord,
    /// The line that was read last.
    row: csv::StringRecord,
}

impl<R: Read> CsvRecords<R> {
    /// Each line is a record: quotes are nothing special, so that no record is longer than a line.
    pub(crate) fn unquoted(input: R) -> Result<Self, TraceError> {
        Self::new(csv::ReaderBuilder::new().quoting(false).from_reader(input))
    }

    fn new(mut reader: csv::Reader<R>) -> Result<Self, TraceError> {
        let header = reader.headers()?.clone();
        Ok(Self { reader, header, row: csv::StringRecord::new() })
    }

    /// Number of the line that was read last, the header being 1.
    pub(crate) fn line(&self) -> u64 {
        self.row.position().map_or_else(|| self.reader.position().line(), csv::Position::line)
    }

    /// The error with the column's name and the value, where one value is to blame.
    fn named(&self, error: csv::Error) -> TraceError {
        let told = match error.kind() {
            csv::ErrorKind::Deserialize { err, .. } => err.field().and_then(|field| {
                let field = usize::try_from(field).ok()?;
                Some(format!("{} is '{}': {}", self.header.get(field)?, self.row.get(field)?, err.kind()))
            }),
            _ => None,
        };
        told.map_or_else(|| error.into(), |reason| TraceError::Malformed { line: self.line(), reason })
    }

    fn read(&mut self) -> Result<Option<IoRecord>, TraceError> {
        if !self.reader.read_record(&mut self.row)? {
            return Ok(None);
        }
        let row: Row = self.row.deserialize(Some(&self.header)).map_err(|error| self.named(error))?;
        Ok(Some(IoRecord {
            at: Nanos(row.at_ns),
            operation: row.operation,
            role: row.role,
            offset: ByteSize(row.offset_bytes),
            length: ByteSize(row.length_bytes),
            latency: Nanos(row.latency_ns),
        }))
    }
}

impl<R: Read> Iterator for CsvRecords<R> {
    type Item = Result<IoRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(operation: Operation, offset: u64) -> IoRecord {
        IoRecord {
            at: Nanos(5),
            operation,
            role: FileRole::WriteAheadLog,
            offset: ByteSize(offset),
            length: ByteSize::kib(4),
            latency: Nanos::micros(80),
        }
    }

    #[test]
    fn a_trace_survives_the_way_through_a_file() {
        let trace = IoTrace { records: vec![record(Operation::Write, 0), record(Operation::Flush, 1 << 40)] };
        let mut bytes = Vec::new();
        write_csv(&trace, &mut bytes).unwrap();
        assert!(
            bytes.starts_with(b"at_ns,operation,role,offset_bytes,length_bytes,latency_ns\n5,write,write_ahead_log")
        );
        assert_eq!(read_csv(&bytes[..]).unwrap(), trace);
    }

    #[test]
    fn a_malformed_line_is_told_with_its_number() {
        let text = "at_ns,operation,role,offset_bytes,length_bytes,latency_ns\n1,read,database,0,4096,9\n1,smell,database,0,4096,9\n";
        let error = read_csv(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains("smell"), "{error}");
    }
}
