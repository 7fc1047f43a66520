//! A captured trace as flashwise's own CSV, whole and in memory; [`TraceReader`] reads the same as a stream.

use std::io::{Read, Write};

use crate::{IoTrace, ReadOptions, TraceError, TraceFormat, TraceReader, TraceWriter};

/// Writes a trace.
///
/// # Errors
/// When the writer fails.
pub fn write_csv(trace: &IoTrace, out: impl Write + Send) -> Result<(), TraceError> {
    let mut writer = TraceWriter::new(TraceFormat::Csv, out, "trace")?;
    for &record in &trace.records {
        writer.write(&record.into())?;
    }
    writer.finish().map(drop)
}

/// Reads a trace.
///
/// # Errors
/// At the first line that does not parse, with its number, or when the reader fails.
pub fn read_csv(mut input: impl Read) -> Result<IoTrace, TraceError> {
    let mut text = Vec::new();
    input.read_to_end(&mut text).map_err(|e| TraceError::unreadable("trace", e))?;
    let options = ReadOptions::of(TraceFormat::Csv);
    TraceReader::read(std::io::Cursor::new(text), "trace", &options)?.into_trace()
}

#[cfg(test)]
mod tests {
    use flashwise_block::{ByteSize, Nanos, Operation};

    use super::*;
    use crate::{FileRole, IoRecord};

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
