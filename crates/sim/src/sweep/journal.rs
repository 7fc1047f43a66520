//! The results file of a sweep: a line of JSON for the file itself, then one for each finished cell, which is on the
//! medium before the cell is counted as finished.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use flashwise_block::ResultsFile;
use serde::{Deserialize, Serialize};

use super::grid::SweepError;
use super::row::SweepRow;

const SCHEMA: &str = "flashwise.sweep-results";

#[derive(Serialize, Deserialize)]
struct Header {
    schema: String,
    schema_version: u32,
}

#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    rows: Vec<SweepRow>,
}

/// Finished cells by their keys, in memory and, where there is a file, on disk.
pub struct Journal {
    path: PathBuf,
    file: Option<ResultsFile>,
    rows: BTreeMap<String, Vec<SweepRow>>,
}

/// Why a file is not read.
enum Refused {
    File(io::Error),
    NotResults,
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::InvalidData { Self::NotResults } else { Self::File(error) }
    }
}

impl Journal {
    /// One that is in no file.
    pub fn in_memory() -> Self {
        Self { path: PathBuf::new(), file: None, rows: BTreeMap::new() }
    }

    /// Opens a results file that another run has written.
    ///
    /// # Errors
    /// When it is absent, somebody else's, or another run is adding to it.
    pub fn open_existing(path: &Path) -> Result<Self, SweepError> {
        std::fs::metadata(path).map_err(|error| SweepError::file(path, &error))?;
        Self::open(path)
    }

    /// Opens a results file, or starts one. While it is open no other sweep adds to it.
    ///
    /// # Errors
    /// When it is somebody else's, cannot be written, or another run is adding to it.
    pub fn open(path: &Path) -> Result<Self, SweepError> {
        let (mut rows, mut has_header) = (BTreeMap::new(), false);
        let opened = ResultsFile::open(path, |line| {
            if has_header {
                let line: Line = serde_json::from_str(line).map_err(|_| Refused::NotResults)?;
                rows.insert(line.key, line.rows);
            }
            has_header = has_header || is_header(line);
            if has_header { Ok(()) } else { Err(Refused::NotResults) }
        });
        let file = opened.map_err(|refused| match refused {
            Refused::File(error) => SweepError::file(path, &error),
            Refused::NotResults => not_results(path),
        })?;
        if !has_header && !file.is_empty() {
            return Err(not_results(path));
        }
        let mut journal = Self { path: path.to_owned(), file: Some(file), rows };
        if !has_header {
            journal.write(&Header { schema: SCHEMA.to_owned(), schema_version: 1 })?;
        }
        Ok(journal)
    }

    /// Whether a cell is finished.
    pub fn has(&self, key: &str) -> bool {
        self.rows.contains_key(key)
    }

    /// The rows of a finished cell; of another one, none.
    pub fn rows(&self, key: &str) -> Vec<SweepRow> {
        self.rows.get(key).cloned().unwrap_or_default()
    }

    /// A cell is finished.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&mut self, key: &str, rows: Vec<SweepRow>) -> Result<(), SweepError> {
        let line = Line { key: key.to_owned(), rows };
        self.write(&line)?;
        self.rows.insert(line.key, line.rows);
        Ok(())
    }

    fn write(&mut self, value: &impl Serialize) -> Result<(), SweepError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let line = serde_json::to_string(value).map_err(io::Error::from);
        line.and_then(|line| file.add(&line)).map_err(|error| SweepError::file(&self.path, &error))
    }
}

fn is_header(line: &str) -> bool {
    serde_json::from_str::<Header>(line).is_ok_and(|header| header.schema == SCHEMA && header.schema_version == 1)
}

fn not_results(path: &Path) -> SweepError {
    SweepError::NotResults(path.display().to_string())
}
