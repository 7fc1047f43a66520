//! Why a state cannot be saved or gone on with.

use std::fmt::Display;

/// A state of a drive that cannot be saved, or from which no drive can continue.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Reading or writing failed.
    #[error("{context}: {error}")]
    Io {
        /// What was being done.
        context: &'static str,
        /// The system's error.
        error: std::io::Error,
    },
    /// The bytes are something else.
    #[error("not a saved drive state")]
    Foreign,
    /// The state has a form that this program does not know.
    #[error("the state was saved {by}, in a format that this version cannot read: use the version that saved it")]
    Version {
        /// What saved it.
        by: String,
    },
    /// The state is not what was saved.
    #[error("the state is damaged{}: {reason}", .place.as_ref().map_or(String::new(), |place| format!(" at {place}")))]
    Damaged {
        /// The part of the drive.
        place: Option<String>,
        /// What is wrong there.
        reason: String,
    },
    /// The state is that of another drive.
    #[error("the state is of a different drive: {}", .differences.join("; "))]
    OtherDrive {
        /// The keys of the description that differ, with both values.
        differences: Vec<String>,
    },
    /// The drive has something to do.
    #[error("the drive is not at rest ({part}): complete all requests and shut it down before saving its state")]
    Busy {
        /// What is not at rest.
        part: String,
    },
    /// A drive of this kind has no state that could be saved.
    #[error("cannot save the state of this drive: {reason}")]
    Unsupported {
        /// Why not.
        reason: &'static str,
    },
}

impl StateError {
    /// Something read makes no sense.
    pub(crate) fn damaged(reason: impl Into<String>) -> Self {
        Self::Damaged { place: None, reason: reason.into() }
    }

    /// A part is not at rest.
    pub(crate) fn busy(part: impl Into<String>) -> Self {
        Self::Busy { part: part.into() }
    }

    /// Adds where in the drive it is.
    pub(crate) fn inside(self, part: impl Display) -> Self {
        let join = |inner: String| {
            let dot = if inner.starts_with('[') { "" } else { "." };
            format!("{part}{dot}{inner}")
        };
        match self {
            Self::Damaged { place, reason } => {
                Self::Damaged { place: Some(place.map_or_else(|| part.to_string(), join)), reason }
            }
            Self::Busy { part: inner } => Self::Busy { part: join(inner) },
            other => other,
        }
    }
}
