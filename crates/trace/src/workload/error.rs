//! What can be wrong with a workload.

use std::fmt::Display;

use flashwise_block::names::with_suggestion;

use crate::{Place, TraceError};

/// The file that a message names where the workload came from no file.
const NO_FILE: &str = "workload";

/// A workload that cannot be read, makes no sense, or does not fit the drive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A file cannot be opened or read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// The workload or the trace.
        path: String,
        /// The system's own words, or ours.
        reason: String,
    },
    /// The text is not TOML, lacks a key or has one too many.
    #[error("{path}: {reason}")]
    Syntax {
        /// The workload.
        path: String,
        /// The parser's words, with the line.
        reason: String,
    },
    /// A value makes no sense, alone, beside the others, or for this drive.
    #[error("{path}: {key} = {value}: {reason}")]
    Impossible {
        /// The workload.
        path: String,
        /// The key, with its flow and table.
        key: String,
        /// Its value.
        value: String,
        /// What would be right.
        reason: String,
    },
    /// A part is missing or one too many.
    #[error("{path}: {place}: {reason}")]
    Incomplete {
        /// The workload.
        path: String,
        /// The flow or the table.
        place: String,
        /// What would be right.
        reason: String,
    },
    /// A line of a trace cannot be read, or the drive cannot serve it.
    #[error("{path}: {place}: {reason}")]
    Trace {
        /// The trace.
        path: String,
        /// Its line or record.
        place: Place,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    /// The workload cannot be written as TOML.
    #[error("cannot write workload '{name}': {reason}")]
    Unwritable {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
}

/// What the parser says of `access = "zipf"`, where `zipf` has keys of its own, and what that means.
const NAME_ALONE: &str = "invalid type: unit variant, expected struct variant";
const NAME_ALONE_MEANS: &str = "this choice requires its keys, such as zipf.theta = 0.99 or fixed.bytes = 4096";

impl WorkloadError {
    pub(super) fn unreadable(path: &str, reason: impl Display) -> Self {
        Self::Unreadable { path: path.to_owned(), reason: reason.to_string() }
    }

    /// The parser's message in one line, with the line number.
    pub(super) fn syntax(path: &str, text: &str, error: &toml::de::Error) -> Self {
        let message = with_suggestion(error.message().trim().replace('\n', " ")).replace(NAME_ALONE, NAME_ALONE_MEANS);
        let line = error.span().and_then(|span| text.get(..span.start)).map(|before| 1 + before.matches('\n').count());
        let reason = line.map_or_else(|| message.clone(), |line| format!("line {line}: {message}"));
        Self::Syntax { path: path.to_owned(), reason }
    }

    pub(super) fn impossible(key: impl Into<String>, value: impl Display, reason: impl Into<String>) -> Self {
        let (path, value) = (NO_FILE.to_owned(), value.to_string());
        Self::Impossible { path, key: key.into(), value, reason: reason.into() }
    }

    pub(super) fn incomplete(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Incomplete { path: NO_FILE.to_owned(), place: place.into(), reason: reason.into() }
    }

    pub(super) fn trace(path: &str, place: Place, reason: impl Into<String>) -> Self {
        Self::Trace { path: path.to_owned(), place, reason: reason.into() }
    }

    /// The same error, said of the file that the workload came from: [`FlowSource::open`](super::FlowSource::open) does
    /// not know it. Errors of a trace name the trace already and stay as they are.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> Self {
        if let Self::Impossible { path, .. } | Self::Incomplete { path, .. } = &mut self {
            file.clone_into(path);
        }
        self
    }
}

impl From<TraceError> for WorkloadError {
    fn from(error: TraceError) -> Self {
        match error {
            TraceError::Malformed { path, place, text, reason } if text.is_empty() => {
                Self::Trace { path, place, reason }
            }
            TraceError::Malformed { path, place, text, reason } => {
                Self::Trace { path, place, reason: format!("{reason}; it reads '{text}'") }
            }
            TraceError::Unreadable { path, reason }
            | TraceError::Unrecognised { path, reason }
            | TraceError::Unwritable { path, reason } => Self::Unreadable { path, reason },
            TraceError::Interrupted => Self::Interrupted,
        }
    }
}
