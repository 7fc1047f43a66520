//! What can be wrong with a trace.

use std::fmt;

/// Where in a trace something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a text; the first is 1.
    Line(u64),
    /// A record of a binary file or a row of a table; the first is 1.
    Record(u64),
    /// A record of the file that was written on a CPU, where there is one for each; the first is 1.
    CpuRecord {
        /// The CPU.
        cpu: u32,
        /// The record in its file.
        number: u64,
    },
}

impl Place {
    /// The number alone.
    pub const fn number(self) -> u64 {
        match self {
            Self::Line(number) | Self::Record(number) | Self::CpuRecord { number, .. } => number,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Record(number) => write!(f, "record {number}"),
            Self::CpuRecord { cpu, number } => write!(f, "record {number} of CPU {cpu}"),
        }
    }
}

/// Why a trace could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A line or a record does not parse.
    #[error("{path}: {place}: {reason}{}", shown_text(text))]
    Malformed {
        /// The trace.
        path: String,
        /// Where in it.
        place: Place,
        /// The line, shortened; empty where there is nothing to show.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The trace cannot be opened or read on.
    #[error("{path}: {reason}")]
    Unreadable {
        /// The trace.
        path: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// Nothing, or more than one thing, speaks for a format.
    #[error("{path}: {reason}")]
    Unrecognised {
        /// The trace.
        path: String,
        /// What was looked for, and what to do.
        reason: String,
    },
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    /// A request cannot be written in this form, or the output fails.
    #[error("{path}: {reason}")]
    Unwritable {
        /// What was to be written.
        path: String,
        /// What is wrong, and what to do.
        reason: String,
    },
}

fn shown_text(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("; it reads '{text}'") }
}

/// Most bytes of a line that a message shows.
const SHOWN: usize = 120;

/// Bytes for a message: printable, and not too long.
pub(crate) fn shown(bytes: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).escape_debug().to_string();
    if bytes.len() > most { format!("{text}…") } else { text }
}

/// A line for a message.
pub(crate) fn shown_line(line: &[u8]) -> String {
    shown(line.trim_ascii_end(), SHOWN)
}

impl TraceError {
    pub(crate) fn unreadable(path: &str, reason: impl fmt::Display) -> Self {
        // The system's words without its number.
        let reason = reason.to_string();
        let words = reason.split(" (os error").next().unwrap_or_default();
        Self::Unreadable { path: path.to_owned(), reason: words.to_owned() }
    }

    pub(crate) fn unwritable(path: &str, reason: impl fmt::Display) -> Self {
        Self::Unwritable { path: path.to_owned(), reason: reason.to_string() }
    }
}
