//! Apache Parquet, written: flashwise's columns, Snappy, a row group each 65,536 requests.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::RecordWriter;
use crate::format::csv::{operation_name, role_name};
use crate::record::TraceRecord;

/// Requests a row group: what is held in memory.
const GROUP: usize = 1 << 16;

pub(super) struct Parquet<W: Write + Send> {
    /// `None` once it is finished.
    writer: Option<SerializedFileWriter<W>>,
    rows: Vec<TraceRecord>,
}

impl<W: Write + Send> Parquet<W> {
    pub(super) fn new(out: W) -> Result<Self, String> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = schema().and_then(|schema| SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties)));
        Ok(Self { writer: Some(writer.map_err(|e| e.to_string())?), rows: Vec::new() })
    }

    fn group(&mut self) -> Result<(), ParquetError> {
        let rows = std::mem::take(&mut self.rows);
        let Some(writer) = self.writer.as_mut().filter(|_| !rows.is_empty()) else { return Ok(()) };
        let mut group = writer.next_row_group()?;
        let number = |value: fn(&TraceRecord) -> Option<u64>| {
            rows.iter().map(move |row| value(row).map(|value| value as i64)).collect::<Vec<_>>()
        };
        let text = |value: fn(&TraceRecord) -> &'static str| {
            rows.iter().map(move |row| Some(ByteArray::from(value(row)))).collect::<Vec<_>>()
        };
        column::<Int64Type, _>(&mut group, &number(|row| Some(row.at.0)))?;
        column::<ByteArrayType, _>(&mut group, &text(|row| operation_name(row.operation)))?;
        column::<Int64Type, _>(&mut group, &number(|row| Some(row.offset.0)))?;
        column::<Int64Type, _>(&mut group, &number(|row| Some(row.length.0)))?;
        column::<ByteArrayType, _>(&mut group, &text(|row| role_name(row.role)))?;
        column::<Int64Type, _>(&mut group, &number(|row| row.latency.map(|latency| latency.0)))?;
        column::<Int64Type, _>(&mut group, &number(|row| row.device.map(u64::from)))?;
        column::<Int64Type, _>(&mut group, &number(|row| row.process.map(u64::from)))?;
        column::<BoolType, _>(&mut group, &rows.iter().map(|row| Some(row.fua)).collect::<Vec<_>>())?;
        column::<Int64Type, _>(&mut group, &number(|row| row.content))?;
        group.close().map(drop)
    }
}

fn schema() -> Result<Type, ParquetError> {
    let field = |name: &str, physical, repetition| {
        let is_text = physical == PhysicalType::BYTE_ARRAY;
        Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_logical_type(is_text.then_some(LogicalType::String))
            .build()
            .map(Arc::new)
    };
    use PhysicalType::{BOOLEAN, BYTE_ARRAY, INT64};
    let fields = [
        field("at_ns", INT64, Repetition::REQUIRED),
        field("operation", BYTE_ARRAY, Repetition::REQUIRED),
        field("offset_bytes", INT64, Repetition::REQUIRED),
        field("length_bytes", INT64, Repetition::REQUIRED),
        field("role", BYTE_ARRAY, Repetition::REQUIRED),
        field("latency_ns", INT64, Repetition::OPTIONAL),
        field("device", INT64, Repetition::OPTIONAL),
        field("process", INT64, Repetition::OPTIONAL),
        field("fua", BOOLEAN, Repetition::REQUIRED),
        field("content", INT64, Repetition::OPTIONAL),
    ];
    Type::group_type_builder("flashwise_trace").with_fields(fields.into_iter().collect::<Result<_, _>>()?).build()
}

/// Writes the next column.
fn column<T: DataType<T = V>, V: Clone>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[Option<V>],
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let there: Vec<V> = values.iter().flatten().cloned().collect();
    let mut column = group.next_column()?.ok_or_else(|| ParquetError::General("a column is missing".to_owned()))?;
    column.typed::<T>().write_batch(&there, Some(&levels), None)?;
    column.close()
}

impl<W: Write + Send> RecordWriter for Parquet<W> {
    fn write(&mut self, record: &TraceRecord) -> Result<(), String> {
        let most = i64::MAX as u64;
        if record.at.0 > most || record.offset.0 > most || record.length.0 > most {
            return Err("a number exceeds the 63 bits of a column".to_owned());
        }
        self.rows.push(*record);
        if self.rows.len() < GROUP { Ok(()) } else { self.group().map_err(|e| e.to_string()) }
    }

    fn finish(&mut self) -> Result<(), String> {
        self.group().map_err(|e| e.to_string())?;
        match self.writer.take() {
            Some(writer) => writer.close().map(drop).map_err(|e| e.to_string()),
            None => Ok(()),
        }
    }
}
