//! Tables for other programs: CSV for everybody, Parquet for what reads columns.
//!
//! A [`Table`] is a list of named columns of one type each. Both forms are written whole, in memory: the largest table,
//! a sweep of 100,000 cells, is some tens of megabytes. The Parquet file has one row group, Snappy compression, and
//! `OPTIONAL` columns of `INT64`, `DOUBLE`, `BOOLEAN` or `BYTE_ARRAY (STRING)`; a missing value is null, in CSV empty.

use std::sync::Arc;

use flashwise_sim::sweep::{Sweep, SweepCell, SweepRow};
use flashwise_sim::{Interval, Simulation};
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::ReportError;

/// The key under which a Parquet file of ours has its kind.
pub(crate) const TABLE_KEY: &str = "flashwise.table";

/// The columns of a time series.
pub(crate) const TIME_SERIES: [&str; 6] =
    ["start_ns", "requests", "iops", "bytes_per_s", "mean_response_ns", "write_amplification"];

/// The first columns of a sweep's rows; the swept keys follow.
pub(crate) const SWEEP_FIRST: [&str; 2] = ["cell", "flow"];

/// The columns behind the swept keys.
pub(crate) const SWEEP_LAST: [&str; 25] = [
    "requests",
    "iops",
    "bytes_per_s",
    "mean_response_ns",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "p99_9_ns",
    "p99_99_ns",
    "max_response_ns",
    "elapsed_ns",
    "write_amplification",
    "write_amplification_gc",
    "gc_executions",
    "gc_pages_moved",
    "flash_pages_read",
    "flash_pages_programmed",
    "flash_blocks_erased",
    "channel_utilisation",
    "die_utilisation",
    "plane_utilisation",
    "erase_count_mean",
    "erase_count_max",
    "unwritten_pages_read",
    "error",
];

/// Named columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What it is a table of, noted in a Parquet file.
    pub kind: &'static str,
    /// The columns, from left to right.
    pub columns: Vec<Column>,
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, with its unit.
    pub name: String,
    /// Its values, from top to bottom.
    pub values: Values,
}

/// The values of a column; `None` if missing.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Integers(Vec<Option<i64>>),
    /// Numbers.
    Numbers(Vec<Option<f64>>),
    /// Yes or no.
    Booleans(Vec<Option<bool>>),
    /// Words.
    Texts(Vec<Option<String>>),
}

impl Column {
    /// A column of whole numbers; what does not fit 63 bits is missing.
    pub fn integers(name: &str, values: impl IntoIterator<Item = Option<u64>>) -> Self {
        let values = values.into_iter().map(|value| value.and_then(|value| i64::try_from(value).ok()));
        Self { name: name.to_owned(), values: Values::Integers(values.collect()) }
    }

    /// A column of numbers.
    pub fn numbers(name: &str, values: impl IntoIterator<Item = Option<f64>>) -> Self {
        Self { name: name.to_owned(), values: Values::Numbers(values.into_iter().collect()) }
    }

    /// A column of words.
    pub fn texts(name: &str, values: impl IntoIterator<Item = Option<String>>) -> Self {
        Self { name: name.to_owned(), values: Values::Texts(values.into_iter().collect()) }
    }
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Numbers(values) => values.len(),
            Self::Booleans(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// Whether the column is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn text(&self, row: usize) -> String {
        match self {
            Self::Integers(values) => values[row].map(|value| value.to_string()),
            Self::Numbers(values) => values[row].map(|value| value.to_string()),
            Self::Booleans(values) => values[row].map(|value| value.to_string()),
            Self::Texts(values) => values[row].clone(),
        }
        .unwrap_or_default()
    }

    fn physical(&self) -> PhysicalType {
        match self {
            Self::Integers(_) => PhysicalType::INT64,
            Self::Numbers(_) => PhysicalType::DOUBLE,
            Self::Booleans(_) => PhysicalType::BOOLEAN,
            Self::Texts(_) => PhysicalType::BYTE_ARRAY,
        }
    }
}

impl Table {
    /// Rows of the table.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// The table as CSV, with a header.
    ///
    /// # Errors
    /// When columns differ in length.
    pub fn to_csv(&self) -> Result<String, ReportError> {
        let failed = |e: &dyn std::fmt::Display| ReportError::Table(e.to_string());
        let mut writer = csv::Writer::from_writer(Vec::new());
        self.check()?;
        writer.write_record(self.columns.iter().map(|column| &column.name)).map_err(|e| failed(&e))?;
        for row in 0..self.rows() {
            let record = self.columns.iter().map(|column| column.values.text(row));
            writer.write_record(record).map_err(|e| failed(&e))?;
        }
        let bytes = writer.into_inner().map_err(|e| failed(&e))?;
        String::from_utf8(bytes).map_err(|e| failed(&e))
    }

    /// The table as a Parquet file.
    ///
    /// # Errors
    /// When columns differ in length or a name occurs twice.
    pub fn to_parquet(&self) -> Result<Vec<u8>, ReportError> {
        self.check()?;
        self.parquet_file().map_err(|e| ReportError::Table(e.to_string()))
    }

    fn check(&self) -> Result<(), ReportError> {
        match self.columns.iter().find(|column| column.values.len() != self.rows()) {
            Some(column) => Err(ReportError::Table(format!("column {} has another length", column.name))),
            None => Ok(()),
        }
    }

    fn parquet_file(&self) -> Result<Vec<u8>, ParquetError> {
        let fields = self.columns.iter().map(parquet_field).collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("flashwise").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("flashwise {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(vec![KeyValue::new(TABLE_KEY.to_owned(), self.kind.to_owned())]))
            .build();
        let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        for column in &self.columns {
            match &column.values {
                Values::Integers(values) => write_column::<Int64Type>(&mut group, values)?,
                Values::Numbers(values) => write_column::<DoubleType>(&mut group, values)?,
                Values::Booleans(values) => write_column::<BoolType>(&mut group, values)?,
                Values::Texts(values) => {
                    let bytes: Vec<_> =
                        values.iter().map(|text| text.as_ref().map(|text| ByteArray::from(text.as_str()))).collect();
                    write_column::<ByteArrayType>(&mut group, &bytes)?;
                }
            }
        }
        group.close()?;
        file.into_inner()
    }
}

fn parquet_field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let physical = column.values.physical();
    let logical = (physical == PhysicalType::BYTE_ARRAY).then_some(LogicalType::String);
    Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
        .map(Arc::new)
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[Option<T::T>],
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("a column is missing in the schema".to_owned()));
    };
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let present: Vec<T::T> = values.iter().flatten().cloned().collect();
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    column.close()
}

/// The intervals of a simulation, one a row.
pub fn time_series_table(simulation: &Simulation) -> Table {
    let intervals = &simulation.time_series.intervals;
    let integers = |name, value: fn(&Interval) -> u64| Column::integers(name, intervals.iter().map(|i| Some(value(i))));
    let numbers = |name, value: fn(&Interval) -> Option<f64>| Column::numbers(name, intervals.iter().map(value));
    Table {
        kind: "time-series",
        columns: vec![
            integers("start_ns", |i| i.start_ns),
            integers("requests", |i| i.requests),
            numbers("iops", |i| Some(i.iops)),
            numbers("bytes_per_s", |i| Some(i.bytes_per_s)),
            numbers("mean_response_ns", |i| i.mean_response_ns),
            numbers("write_amplification", |i| i.write_amplification),
        ],
    }
}

/// The cells of a sweep, a row for each and, where it has several flows, one for each flow of each.
///
/// First come the cell's place and the flow, then the values that make the cell, then the figures. A cell that failed
/// has a row with its error.
pub fn sweep_table(sweep: &Sweep) -> Table {
    let rows: Vec<(&SweepCell, Option<&SweepRow>)> = sweep.cells.iter().flat_map(rows_of_cell).collect();
    let mut columns = vec![
        Column::integers("cell", rows.iter().map(|(cell, _)| Some(cell.index))),
        Column::texts("flow", rows.iter().map(|(_, row)| row.map(|row| row.flow.clone()))),
    ];
    let keys = sweep.cells.first().map(|cell| cell.values.keys()).into_iter().flatten();
    columns.extend(keys.map(|key| value_column(key, rows.iter().map(|(cell, _)| cell.values.get(key)))));
    let integers = |name, value: fn(&SweepRow) -> Option<u64>| {
        Column::integers(name, rows.iter().map(|(_, row)| row.and_then(value)))
    };
    let numbers = |name, value: fn(&SweepRow) -> Option<f64>| {
        Column::numbers(name, rows.iter().map(|(_, row)| row.and_then(value)))
    };
    columns.extend([
        integers("requests", |row| Some(row.requests)),
        numbers("iops", |row| Some(row.iops)),
        numbers("bytes_per_s", |row| Some(row.bytes_per_s)),
        numbers("mean_response_ns", |row| row.mean_response_ns),
        integers("p50_ns", |row| row.p50_ns),
        integers("p95_ns", |row| row.p95_ns),
        integers("p99_ns", |row| row.p99_ns),
        integers("p99_9_ns", |row| row.p99_9_ns),
        integers("p99_99_ns", |row| row.p99_99_ns),
        integers("max_response_ns", |row| row.max_response_ns),
        integers("elapsed_ns", |row| Some(row.elapsed_ns)),
        numbers("write_amplification", |row| row.write_amplification),
        numbers("write_amplification_gc", |row| row.write_amplification_gc),
        integers("gc_executions", |row| Some(row.gc_executions)),
        integers("gc_pages_moved", |row| Some(row.gc_pages_moved)),
        integers("flash_pages_read", |row| Some(row.flash_pages_read)),
        integers("flash_pages_programmed", |row| Some(row.flash_pages_programmed)),
        integers("flash_blocks_erased", |row| Some(row.flash_blocks_erased)),
        numbers("channel_utilisation", |row| Some(row.channel_utilisation)),
        numbers("die_utilisation", |row| Some(row.die_utilisation)),
        numbers("plane_utilisation", |row| row.plane_utilisation),
        numbers("erase_count_mean", |row| row.erase_count_mean),
        integers("erase_count_max", |row| row.erase_count_max.map(u64::from)),
        integers("unwritten_pages_read", |row| Some(row.unwritten_pages_read)),
    ]);
    columns.push(Column::texts("error", rows.iter().map(|(cell, _)| cell.error.clone())));
    Table { kind: "sweep", columns }
}

fn rows_of_cell(cell: &SweepCell) -> Vec<(&SweepCell, Option<&SweepRow>)> {
    match cell.rows.is_empty() {
        true => vec![(cell, None)],
        false => cell.rows.iter().map(|row| (cell, Some(row))).collect(),
    }
}

/// A varied value's column: of numbers where all of them are, else of words.
fn value_column<'a>(key: &str, values: impl Iterator<Item = Option<&'a toml::Value>>) -> Column {
    let values: Vec<_> = values.collect();
    let present = || values.iter().flatten();
    let values_of = if present().all(|value| value.is_integer()) {
        Values::Integers(values.iter().map(|value| value.and_then(|value| value.as_integer())).collect())
    } else if present().all(|value| value.is_integer() || value.is_float()) {
        let number = |value: &toml::Value| value.as_float().or(value.as_integer().map(|integer| integer as f64));
        Values::Numbers(values.iter().map(|value| value.and_then(number)).collect())
    } else if present().all(|value| value.is_bool()) {
        Values::Booleans(values.iter().map(|value| value.and_then(|value| value.as_bool())).collect())
    } else {
        Values::Texts(values.iter().map(|value| value.map(words)).collect())
    };
    Column { name: key.to_owned(), values: values_of }
}

/// A value as it is written, a text without its quotes.
pub(crate) fn words(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    fn table() -> Table {
        let texts = ["a", "b, \"c\""].map(|text| Some(text.to_owned())).into_iter().chain([None]);
        let booleans = Values::Booleans(vec![Some(true), None, Some(false)]);
        Table {
            kind: "test",
            columns: vec![
                Column::integers("requests", [Some(1), None, Some(1 << 40)]),
                Column::numbers("iops", [Some(0.5), None, Some(1e9)]),
                Column { name: "settled".to_owned(), values: booleans },
                Column::texts("flow", texts),
            ],
        }
    }

    #[test]
    fn a_table_is_csv_with_a_header_and_empty_cells_where_nothing_is_known() {
        let csv = "requests,iops,settled,flow\n1,0.5,true,a\n,,,\"b, \"\"c\"\"\"\n1099511627776,1000000000,false,\n";
        assert_eq!(table().to_csv().unwrap(), csv);
    }

    #[test]
    fn a_table_is_read_back_from_parquet_as_it_was() {
        let bytes = table().to_parquet().unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 3);
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        assert_eq!(rows[0], "{requests: 1, iops: 0.5, settled: true, flow: \"a\"}");
        assert_eq!(rows[1], "{requests: null, iops: null, settled: null, flow: \"b, \"c\"\"}");
    }

    #[test]
    fn columns_of_unequal_length_are_refused() {
        let table = Table { kind: "test", columns: vec![Column::numbers("a", [None]), Column::numbers("b", [])] };
        assert!(table.to_csv().is_err() && table.to_parquet().is_err());
    }
}
