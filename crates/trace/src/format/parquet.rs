//! Apache Parquet with flashwise's columns: those of its [CSV](super::csv), found by name.
//!
//! Numbers are INT64 (or INT32), `operation` and `role` strings, `fua` a BOOLEAN; a null is a value that is not known,
//! and `content` is an INT64 with the bits of the number. Pages are read as they are needed, so that the memory is that
//! of one page a column. The directory of a Parquet file is at its end: a pipe, or a compressed file around it, cannot
//! be read. Source: the Apache Parquet format specification; what is compressed inside may be Snappy or Zstandard.

use std::panic::{AssertUnwindSafe, catch_unwind};

use flashwise_block::{ByteSize, Nanos};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::Units;
use super::csv::{COLUMNS, operation, role};
use super::detect::Head;
use super::source::{Failure, RecordSource};
use crate::FileRole;
use crate::error::Place;
use crate::input::Input;
use crate::record::TraceRecord;

/// Rows that are read at a time.
const BATCH: usize = 4096;

struct Table {
    file: SerializedFileReader<std::fs::File>,
    /// The place of each of [`COLUMNS`] in the file.
    places: [Option<usize>; COLUMNS.len()],
    groups: usize,
    group: usize,
    columns: Vec<Option<(ColumnReader, i16)>>,
    batch: Batch,
    row: usize,
    number: u64,
}

/// Some rows, column by column.
#[derive(Default)]
struct Batch {
    columns: Vec<Values>,
    rows: usize,
}

enum Values {
    Absent,
    Numbers(Vec<Option<i64>>),
    Texts(Vec<Option<Vec<u8>>>),
    Booleans(Vec<Option<bool>>),
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.bytes.starts_with(b"PAR1").then_some("the magic number PAR1 of a Parquet file")
}

pub(super) fn open(input: Input, _: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    let file = input.file.ok_or("a Parquet file is read from its end: it must be an uncompressed file, not a pipe")?;
    let file = guarded(|| SerializedFileReader::new(file))?;
    let schema = file.metadata().file_metadata().schema_descr();
    let place = |name: &str| schema.columns().iter().position(|column| column.path().string() == name);
    let places = COLUMNS.map(place);
    for (name, place) in COLUMNS[..4].iter().zip(places) {
        place.ok_or_else(|| format!("the column {name} is missing; required are {}", COLUMNS[..4].join(", ")))?;
    }
    let groups = file.num_row_groups();
    let (columns, batch) = (Vec::new(), Batch::default());
    Ok(Box::new(Table { file, places, groups, group: 0, columns, batch, row: 0, number: 0 }))
}

/// The parser of hostile files may panic; that must not end the program.
fn guarded<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(_) => Err("the file is damaged: its Parquet structure is invalid".to_owned()),
    }
}

impl Table {
    /// The next rows, or `false` at the end.
    fn fill(&mut self) -> Result<bool, String> {
        loop {
            if !self.columns.is_empty() {
                let columns = &mut self.columns;
                self.batch = guarded(|| Batch::read(columns))?;
                self.row = 0;
                if self.batch.rows > 0 {
                    return Ok(true);
                }
            }
            if self.group == self.groups {
                return Ok(false);
            }
            self.columns = self.readers(self.group)?;
            self.group += 1;
        }
    }

    fn readers(&self, group: usize) -> Result<Vec<Option<(ColumnReader, i16)>>, String> {
        guarded(|| {
            let group = self.file.get_row_group(group)?;
            let reader = |place: usize| {
                let level = group.metadata().column(place).column_descr().max_def_level();
                Ok((group.get_column_reader(place)?, level))
            };
            self.places.iter().map(|place| place.map(reader).transpose()).collect()
        })
    }

    fn record(&self) -> Result<TraceRecord, String> {
        let needed = |column: usize| {
            let value = self.batch.number(column, self.row)?;
            value.ok_or_else(|| format!("{} must not be null", COLUMNS[column]))
        };
        let text = self.batch.text(1, self.row)?.ok_or("operation must not be null")?;
        let (at, offset, length) = (needed(0)?, needed(2)?, needed(3)?);
        let small = |column: usize| {
            let value = self.batch.number(column, self.row)?;
            value
                .map(|value| u32::try_from(value).map_err(|_| format!("{} {value} exceeds 32 bits", COLUMNS[column])))
                .transpose()
        };
        Ok(TraceRecord {
            role: self.batch.text(4, self.row)?.map_or(Ok(FileRole::Unknown), role)?,
            latency: self.batch.number(5, self.row)?.map(Nanos),
            device: small(6)?,
            process: small(7)?,
            fua: self.batch.boolean(8, self.row)?.unwrap_or(false),
            content: self.batch.number(9, self.row)?,
            ..TraceRecord::new(Nanos(at), operation(text)?, ByteSize(offset), ByteSize(length))
        })
    }
}

impl RecordSource for Table {
    fn next(&mut self) -> Result<Option<TraceRecord>, Failure> {
        if self.row >= self.batch.rows && !self.fill().map_err(Failure::Fatal)? {
            return Ok(None);
        }
        let record = self.record();
        (self.row, self.number) = (self.row + 1, self.number + 1);
        record.map(Some).map_err(|reason| Failure::Bad { text: String::new(), reason })
    }

    fn place(&self) -> Place {
        Place::Record(self.number)
    }
}

impl Batch {
    fn read(columns: &mut [Option<(ColumnReader, i16)>]) -> Result<Self, ParquetError> {
        let mut batch = Self { columns: Vec::new(), rows: usize::MAX };
        for column in columns {
            let values = match column {
                None => Values::Absent,
                Some((reader, level)) => Values::read(reader, *level)?,
            };
            batch.rows = batch.rows.min(values.len());
            batch.columns.push(values);
        }
        let uneven = batch.columns.iter().any(|values| !matches!(values, Values::Absent) && values.len() != batch.rows);
        if uneven { Err(ParquetError::General("its columns differ in length".to_owned())) } else { Ok(batch) }
    }

    fn number(&self, column: usize, row: usize) -> Result<Option<u64>, String> {
        match &self.columns[column] {
            Values::Absent => Ok(None),
            Values::Numbers(values) => match values[row] {
                // The content is any 64 bits, all others are quantities.
                Some(value) if value < 0 && COLUMNS[column] != "content" => {
                    Err(format!("{} is {value}; it must be 0 or above", COLUMNS[column]))
                }
                value => Ok(value.map(|value| value as u64)),
            },
            _ => Err(format!("{} is not a column of whole numbers", COLUMNS[column])),
        }
    }

    fn text(&self, column: usize, row: usize) -> Result<Option<&[u8]>, String> {
        match &self.columns[column] {
            Values::Absent => Ok(None),
            Values::Texts(values) => Ok(values[row].as_deref()),
            _ => Err(format!("{} is not a column of strings", COLUMNS[column])),
        }
    }

    fn boolean(&self, column: usize, row: usize) -> Result<Option<bool>, String> {
        match &self.columns[column] {
            Values::Absent => Ok(None),
            Values::Booleans(values) => Ok(values[row]),
            _ => Err(format!("{} is not a column of booleans", COLUMNS[column])),
        }
    }
}

impl Values {
    fn read(reader: &mut ColumnReader, level: i16) -> Result<Self, ParquetError> {
        Ok(match reader {
            ColumnReader::Int64ColumnReader(reader) => Self::Numbers(optional(reader, level, |value| value)?),
            ColumnReader::Int32ColumnReader(reader) => Self::Numbers(optional(reader, level, i64::from)?),
            ColumnReader::BoolColumnReader(reader) => Self::Booleans(optional(reader, level, |value| value)?),
            ColumnReader::ByteArrayColumnReader(reader) => {
                Self::Texts(optional(reader, level, |value: parquet::data_type::ByteArray| value.data().to_vec())?)
            }
            _ => return Err(ParquetError::General("a column has a type that traces do not use".to_owned())),
        })
    }

    fn len(&self) -> usize {
        match self {
            Self::Absent => usize::MAX,
            Self::Numbers(values) => values.len(),
            Self::Texts(values) => values.len(),
            Self::Booleans(values) => values.len(),
        }
    }
}

/// The next rows of a column; `level` is the definition level of a value that is there.
fn optional<T: DataType, V>(
    reader: &mut ColumnReaderImpl<T>,
    level: i16,
    convert: impl Fn(T::T) -> V,
) -> Result<Vec<Option<V>>, ParquetError> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (rows, ..) = reader.read_records(BATCH, Some(&mut levels), None, &mut values)?;
    let mut values = values.into_iter().map(convert);
    if level == 0 {
        return Ok(values.map(Some).collect());
    }
    Ok(levels.iter().take(rows).map(|&told| if told == level { values.next() } else { None }).collect())
}
