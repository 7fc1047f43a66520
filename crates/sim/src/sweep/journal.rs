//! The results file of a sweep: a line of JSON for the file itself, then one for each finished cell.
//!
//! A line is written in one piece and made durable before the next cell is counted as finished. A last line without its
//! end is what an interruption left; it is cut off.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flashwise_block::input::{Links, open_regular_as};
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

/// Finished cells by their keys, in memory and on disk.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    rows: BTreeMap<String, Vec<SweepRow>>,
}

impl Journal {
    /// Opens a results file, or starts one. While it is open no other sweep adds to it.
    #[allow(clippy::disallowed_methods, reason = "a file of results that was parsed, or is new; lines are added to it")]
    pub(super) fn open(path: &Path) -> Result<Self, SweepError> {
        let failed = |e: io::Error| SweepError::file(path, &e);
        // The file that was read is the one that is written, whatever has its name meanwhile.
        let mut file = match open_regular_as(path, Links::Follow, true) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                File::options().read(true).write(true).create_new(true).open(path).map_err(failed)?
            }
            opened => opened.map_err(failed)?,
        };
        // Other errors are those of a file system without locks.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(failed(io::Error::other("another sweep is adding to it")));
        }
        let mut text = String::new();
        match file.read_to_string(&mut text) {
            Err(e) if e.kind() == ErrorKind::InvalidData => return Err(not_results(path)),
            read => read.map_err(failed)?,
        };
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut lines = text[..whole].lines();
        let mut rows = BTreeMap::new();
        match lines.next() {
            None if text.is_empty() => {}
            Some(header) if is_header(header) => {
                for line in lines {
                    let line: Line = serde_json::from_str(line).map_err(|_| not_results(path))?;
                    rows.insert(line.key, line.rows);
                }
            }
            _ => return Err(not_results(path)),
        }
        file.set_len(whole as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(failed)?;
        let mut journal = Self { path: path.to_owned(), file, rows };
        if whole == 0 {
            journal.write(&Header { schema: SCHEMA.to_owned(), schema_version: 1 })?;
        }
        Ok(journal)
    }

    /// Whether a cell is finished.
    pub(super) fn has(&self, key: &str) -> bool {
        self.rows.contains_key(key)
    }

    /// The rows of a finished cell; of another one, none.
    pub(super) fn rows(&self, key: &str) -> Vec<SweepRow> {
        self.rows.get(key).cloned().unwrap_or_default()
    }

    /// A cell is finished.
    pub(super) fn add(&mut self, key: &str, rows: Vec<SweepRow>) -> Result<(), SweepError> {
        let line = Line { key: key.to_owned(), rows };
        self.write(&line)?;
        self.rows.insert(line.key, line.rows);
        Ok(())
    }

    fn write(&mut self, value: &impl Serialize) -> Result<(), SweepError> {
        let failed = |e: io::Error| SweepError::file(&self.path, &e);
        let line = serde_json::to_string(value).map_err(|e| failed(e.into()))? + "\n";
        self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data()).map_err(failed)
    }
}

fn is_header(line: &str) -> bool {
    serde_json::from_str::<Header>(line).is_ok_and(|header| header.schema == SCHEMA && header.schema_version == 1)
}

fn not_results(path: &Path) -> SweepError {
    SweepError::NotResults(path.display().to_string())
}
