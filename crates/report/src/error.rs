//! Why a report could not be made.

use std::path::{Path, PathBuf};

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file or a directory could not be written.
    #[error("{}: cannot write the report: {}", path.display(), words(reason))]
    Write {
        /// The file or the directory.
        path: PathBuf,
        /// What the operating system says.
        reason: std::io::Error,
    },
    /// A file of the report's name is none of flashwise's.
    #[error("{}: exists and is not a flashwise {kind}, so it is not replaced: choose another path", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it would be.
        kind: &'static str,
    },
    /// A table has no form in CSV or Parquet.
    #[error("cannot write the table: {0}")]
    Table(String),
    /// A value has no form in JSON.
    #[error("cannot write the report as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl ReportError {
    /// For `map_err`: a failure at `path`.
    pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |reason| Self::Write { path, reason }
    }
}

/// The system's message without the error number and the name of the temporary file.
fn words(reason: &std::io::Error) -> String {
    reason.to_string().split(" (os error").next().unwrap_or_default().to_owned()
}
