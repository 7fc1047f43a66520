//! Which files are flashwise's own, and so may be replaced by a newer one of their kind.
//!
//! | kind | its mark, which is parsed |
//! |---|---|
//! | profile | `schema = "flashwise.profile"` at the top level of a TOML document |
//! | document | `"schema": "flashwise.…"` at the top level of a JSON document |
//! | page | `<meta name="generator" content="flashwise …">` in the head of an HTML document |
//! | table, Parquet | key `flashwise.table` in the metadata of its footer |
//! | table, CSV | its header: the columns that such a table has, whole and in order |
//!
//! A word somewhere in a file is no mark, and neither is a mark of another kind: a trace in Parquet is no time series.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde::Deserialize;

use crate::table::{SWEEP_FIRST, SWEEP_LAST, TABLE_KEY, TIME_SERIES};

/// A kind of file that flashwise writes for its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnFile {
    /// A profile, TOML.
    Profile,
    /// A JSON document.
    Document,
    /// An HTML page.
    Page,
    /// The time series of a simulation, Parquet.
    TimeSeries,
    /// The same as CSV.
    TimeSeriesCsv,
    /// The rows of a sweep, Parquet.
    Sweep,
    /// The same as CSV.
    SweepCsv,
}

/// The longest profile, and the longest line of a header, that are read.
const LONGEST: u64 = 64 << 20;
/// The mark of a page is at its start.
const HEAD: u64 = 64 << 10;

impl OwnFile {
    /// What it is, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Document => "document",
            Self::Page => "page",
            Self::TimeSeries | Self::TimeSeriesCsv => "table of a simulation",
            Self::Sweep | Self::SweepCsv => "table of a sweep",
        }
    }

    /// Whether a file is one of this kind.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn recognises(self, file: File) -> io::Result<bool> {
        Ok(match self {
            Self::Profile => is_profile(&text(file, LONGEST)?),
            Self::Document => is_document(file),
            Self::Page => is_page(&text(file, HEAD)?),
            Self::TimeSeries => table_kind(file).is_some_and(|kind| kind == "time-series"),
            Self::Sweep => table_kind(file).is_some_and(|kind| kind == "sweep"),
            Self::TimeSeriesCsv => header(file)?.is_some_and(|header| header == TIME_SERIES),
            Self::SweepCsv => header(file)?.is_some_and(|header| is_sweep(&header)),
        })
    }
}

/// What a file holds as text; where it is none, what is none is left out.
fn text(file: File, longest: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(longest).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[derive(Deserialize)]
struct Marked {
    schema: String,
}

fn is_profile(text: &str) -> bool {
    toml::from_str::<Marked>(text).is_ok_and(|marked| marked.schema == flashwise_profile::SCHEMA)
}

fn is_document(file: File) -> bool {
    let marked: Result<Marked, _> = serde_json::from_reader(BufReader::new(file));
    marked.is_ok_and(|marked| marked.schema.starts_with("flashwise."))
}

fn is_page(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("<!DOCTYPE html>") else { return false };
    let head = rest.split("</head>").next().unwrap_or_default();
    let head = head.split("<title>").next().unwrap_or_default();
    head.split('<').any(|element| element.starts_with("meta name=\"generator\" content=\"flashwise "))
}

fn table_kind(file: File) -> Option<String> {
    let reader = SerializedFileReader::new(file).ok()?;
    let metadata = reader.metadata().file_metadata();
    let pair = metadata.key_value_metadata()?.iter().find(|pair| pair.key == TABLE_KEY)?;
    pair.value.clone()
}

/// The names of the columns of a table as CSV.
fn header(file: File) -> io::Result<Option<Vec<String>>> {
    let mut line = Vec::new();
    BufReader::new(file.take(LONGEST)).read_until(b'\n', &mut line)?;
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&*line);
    let record = reader.records().next().and_then(Result::ok);
    Ok(record.map(|record| record.iter().map(str::to_owned).collect()))
}

fn is_sweep(header: &[String]) -> bool {
    let starts = header.iter().zip(SWEEP_FIRST).all(|(name, wanted)| *name == wanted);
    let ends = header.iter().rev().zip(SWEEP_LAST.iter().rev()).all(|(name, wanted)| name == wanted);
    starts && ends && header.len() >= SWEEP_FIRST.len() + SWEEP_LAST.len()
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;
    use crate::table::{Table, sweep_table, time_series_table};
    use crate::{profile_page, sample, sample_simulation, to_json};

    fn file(bytes: impl AsRef<[u8]>) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes.as_ref()).unwrap();
        file.rewind().unwrap();
        file
    }

    const ALL: [OwnFile; 7] = [
        OwnFile::Profile,
        OwnFile::Document,
        OwnFile::Page,
        OwnFile::TimeSeries,
        OwnFile::TimeSeriesCsv,
        OwnFile::Sweep,
        OwnFile::SweepCsv,
    ];

    /// The kinds that bytes are recognised as.
    fn kinds(bytes: impl AsRef<[u8]>) -> Vec<OwnFile> {
        ALL.into_iter().filter(|kind| kind.recognises(file(&bytes)).unwrap()).collect()
    }

    fn sweep() -> Table {
        use flashwise_sim::sweep::{Sweep, SweepCell};
        let values = [("flash.read_ns".to_owned(), 50_000.into())].into();
        let cell = SweepCell { index: 0, key: "a".into(), values, rows: Vec::new(), error: Some("no".into()) };
        let (schema, version) = ("flashwise.sweep".to_owned(), "0.1.0".to_owned());
        let sweep = Sweep {
            schema,
            schema_version: 1,
            flashwise_version: version,
            name: "grid".into(),
            resumed: 0,
            failed: 1,
            cells: vec![cell],
        };
        sweep_table(&sweep)
    }

    #[test]
    fn what_flashwise_writes_is_recognised_as_its_own_kind_and_as_no_other() {
        let comparison = sample::samsung();
        let simulation = sample_simulation::simulation();
        let series = time_series_table(&simulation);
        for (bytes, kind) in [
            (comparison.profile.to_toml().unwrap().into_bytes(), OwnFile::Profile),
            (to_json(&comparison).unwrap().into_bytes(), OwnFile::Document),
            (profile_page(&comparison.profile).into_bytes(), OwnFile::Page),
            (series.to_parquet().unwrap(), OwnFile::TimeSeries),
            (series.to_csv().unwrap().into_bytes(), OwnFile::TimeSeriesCsv),
            (sweep().to_parquet().unwrap(), OwnFile::Sweep),
            (sweep().to_csv().unwrap().into_bytes(), OwnFile::SweepCsv),
        ] {
            assert_eq!(kinds(bytes), [kind]);
        }
    }

    #[test]
    fn words_of_flashwise_in_a_foreign_file_are_no_mark() {
        let page = "<!DOCTYPE html><html><head><title>a</title></head><body>";
        for foreign in [
            "# a flashwise README\n".to_owned(),
            "# schema = \"flashwise.profile\"\n[a]\nb = 1\n".to_owned(),
            "[notes]\nschema = \"flashwise.profile\"\n".to_owned(),
            "{\"a\": {\"schema\": \"flashwise.x\"}}".to_owned(),
            "Written by flashwise 0.1.0.".to_owned(),
            format!("{page}<footer><p>Written by flashwise 0.1.0.</p></footer>"),
            format!("{page}<meta name=\"generator\" content=\"flashwise 0.1.0\">"),
            "start_ns,requests\n0,1\n".to_owned(),
            "start_ns,requests,mine\n0,1,2\n".to_owned(),
            "cell,flow,mine\n".to_owned(),
            "PAR1flashwisePAR1".to_owned(),
            String::new(),
        ] {
            assert_eq!(kinds(&foreign), [], "{foreign}");
        }
    }

    #[test]
    fn a_trace_of_flashwise_s_own_is_no_table_of_results() {
        let mut bytes = Vec::new();
        let writer = flashwise_trace::TraceWriter::new(flashwise_trace::TraceFormat::Parquet, &mut bytes, "a").unwrap();
        writer.finish().unwrap();
        assert_eq!(kinds(bytes), []);
    }
}
