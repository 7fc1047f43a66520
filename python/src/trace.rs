//! Traces: what they ask for, and their requests as a table.

use std::sync::Arc;

use flashwise_report::trace::TraceInfo;
use flashwise_trace::{TraceReader, TraceRecord, TraceSummary, operation_name, role_name};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arrow::{Batch, Batches, Column, Fields, capsule};
use crate::document::{Content, Document};
use crate::failure::Failure;
use crate::input::TraceInput;
use crate::running;

/// Requests of a batch: some megabytes.
const ROWS: usize = 1 << 16;

fn read(trace: &TraceInput) -> Result<TraceReader, Failure> {
    Ok(TraceReader::open(&trace.path, &trace.reading()?)?)
}

fn input(py: Python<'_>, trace: &str) -> PyResult<TraceInput> {
    serde_json::from_str(trace).map_err(|error| Failure::from(error).raise(py))
}

/// The format of a trace, and why it is taken for that.
#[pyfunction]
pub(crate) fn trace_format(py: Python<'_>, trace: &str) -> PyResult<(String, String)> {
    let trace = input(py, trace)?;
    running::run(py, None, move |_| {
        let detection = read(&trace)?.detection();
        Ok((detection.format.name().to_owned(), detection.reason.to_owned()))
    })
}

/// A trace in numbers.
#[pyfunction]
pub(crate) fn trace_info(py: Python<'_>, trace: &str) -> PyResult<Document> {
    let trace = input(py, trace)?;
    running::run(py, None, move |_| {
        let mut reader = read(&trace)?;
        let summary = TraceSummary::of(&mut reader)?;
        Ok(Document(Content::Trace(Box::new(TraceInfo::new(&reader, summary)))))
    })
}

/// The requests of a trace, as a table that is read while it is consumed.
#[pyfunction]
pub(crate) fn trace_stream<'py>(py: Python<'py>, trace: &str) -> PyResult<Bound<'py, PyCapsule>> {
    let trace = input(py, trace)?;
    let reader = running::run(py, None, move |_| read(&trace))?;
    capsule(py, Box::new(Requests { reader, fields: fields() }))
}

/// The columns, named as in a trace's Parquet file.
fn fields() -> Fields {
    [
        (c"at_ns", c"L"),
        (c"operation", c"u"),
        (c"offset_bytes", c"L"),
        (c"length_bytes", c"L"),
        (c"role", c"u"),
        (c"latency_ns", c"L"),
        (c"device", c"I"),
        (c"process", c"I"),
        (c"fua", c"b"),
        (c"content", c"L"),
    ]
    .map(|(name, format)| (name.to_owned(), format))
    .into()
}

struct Requests {
    reader: TraceReader,
    fields: Fields,
}

impl Batches for Requests {
    fn fields(&self) -> &Fields {
        &self.fields
    }

    fn next(&mut self) -> Result<Option<Arc<Batch>>, String> {
        let mut records = Vec::with_capacity(ROWS);
        while records.len() < ROWS
            && let Some(record) = self.reader.next_record().map_err(|error| error.to_string())?
        {
            records.push(record);
        }
        Ok((!records.is_empty()).then(|| Arc::new(batch(&records))))
    }
}

fn batch(records: &[TraceRecord]) -> Batch {
    let u64s = |value: fn(&TraceRecord) -> Option<u64>| Column::u64(&records.iter().map(value).collect::<Vec<_>>());
    let u32s = |value: fn(&TraceRecord) -> Option<u32>| Column::u32(&records.iter().map(value).collect::<Vec<_>>());
    let texts = |value: fn(&TraceRecord) -> &'static str| {
        Column::text(&records.iter().map(|record| Some(value(record))).collect::<Vec<_>>())
    };
    let columns = vec![
        u64s(|record| Some(record.at.0)),
        texts(|record| operation_name(record.operation)),
        u64s(|record| Some(record.offset.0)),
        u64s(|record| Some(record.length.0)),
        texts(|record| role_name(record.role)),
        u64s(|record| record.latency.map(|latency| latency.0)),
        u32s(|record| record.device),
        u32s(|record| record.process),
        Column::bool(&records.iter().map(|record| Some(record.fua)).collect::<Vec<_>>()),
        u64s(|record| record.content),
    ];
    Batch { rows: records.len(), columns }
}
