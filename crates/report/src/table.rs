//! Tables for other programs: CSV for everybody, Parquet for what reads columns.
//!
//! A [`Table`] is a list of named columns of one type each. Both forms are written whole, in memory: the largest table,
//! a sweep of 100,000 cells, is some tens of megabytes. The Parquet file has one row group, Snappy compression, and
//! `OPTIONAL` columns of `INT64`, `DOUBLE`, `BOOLEAN` or `BYTE_ARRAY (STRING)`; a missing value is null, in CSV empty.

use std::sync::Arc;

use flashwise_ssd::simulation::{Interval, Simulation};
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::ReportError;

/// Named columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, with its unit.
    pub name: String,
    /// What stands in it, from top to bottom.
    pub values: Values,
}

/// The values of a column; `None` where there is none.
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

    /// Whether there is none.
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
    /// When columns differ in length or a name stands twice.
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

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    fn table() -> Table {
        let texts = ["a", "b, \"c\""].map(|text| Some(text.to_owned())).into_iter().chain([None]);
        let booleans = Values::Booleans(vec![Some(true), None, Some(false)]);
        Table {
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
        let table = Table { columns: vec![Column::numbers("a", [None]), Column::numbers("b", [])] };
        assert!(table.to_csv().is_err() && table.to_parquet().is_err());
    }
}
