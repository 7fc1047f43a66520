//! Why the program ends, in a line and an exit code.

use flashwise_block::{BlockError, interrupt};
use flashwise_sim::SimulationError;
use flashwise_sqlite::SqliteError;
use flashwise_tune::TuneError;

/// Exit code: error.
pub const ERROR: u8 = 1;
/// Exit code: the command line makes no sense.
pub const USAGE: u8 = 2;
/// Exit code: an audit found violations, or a drive has changed.
pub const VIOLATIONS: u8 = 3;
/// Exit code: a parameter is inconclusive, or a cost is unknown.
pub const INCONCLUSIVE: u8 = 4;
/// Exit code: refused for safety.
pub const REFUSED: u8 = 5;
/// Exit code: Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// A failure with its exit code.
#[derive(Debug)]
pub struct Failure {
    /// One line: what is wrong, where, and what to do.
    pub message: String,
    /// The exit code.
    pub code: u8,
}

impl Failure {
    /// A command line that makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: USAGE }
    }

    /// Something that could lose data.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: REFUSED }
    }

    /// What was learned does not suffice.
    pub fn inconclusive(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: INCONCLUSIVE }
    }

    /// Anything else that went wrong.
    pub fn error(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: ERROR }
    }

    /// A file that could not be read or written.
    pub fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        // The message ends with the error number and, for a new file, with the name of its temporary file.
        let words = error.to_string();
        let words = words.split(" (os error").next().unwrap_or_default();
        Self::error(format!("{}: {words}", path.display()))
    }
}

impl From<TuneError> for Failure {
    fn from(error: TuneError) -> Self {
        let code = match &error {
            error if error.is_interrupt() => INTERRUPTED,
            error if error.is_refusal() => REFUSED,
            TuneError::Options(_) | TuneError::Target(_) => USAGE,
            TuneError::Drive(flashwise_ssd::SsdError::UnknownPreset { .. }) => USAGE,
            _ => ERROR,
        };
        Self { message: error.to_string(), code }
    }
}

impl From<BlockError> for Failure {
    fn from(error: BlockError) -> Self {
        TuneError::from(error).into()
    }
}

impl From<SimulationError> for Failure {
    fn from(error: SimulationError) -> Self {
        let code = match &error {
            error if error.is_interrupt() => INTERRUPTED,
            SimulationError::Interval { .. } | SimulationError::Precondition(_) => USAGE,
            _ => ERROR,
        };
        Self { message: error.to_string(), code }
    }
}

impl From<flashwise_studies::StudyError> for Failure {
    fn from(error: flashwise_studies::StudyError) -> Self {
        let code = match error {
            flashwise_studies::StudyError::Unknown { .. } => USAGE,
            // Whatever part of a study the interruption met: its error is not the reason.
            _ if interrupt::is_requested() => {
                return Self { message: "interrupted".to_owned(), code: INTERRUPTED };
            }
            _ => ERROR,
        };
        Self { message: error.to_string(), code }
    }
}

impl From<SqliteError> for Failure {
    fn from(error: SqliteError) -> Self {
        match error {
            SqliteError::Exists(_) | SqliteError::Leftover { .. } => Self::refused(error.to_string()),
            _ => Self::error(error),
        }
    }
}

impl From<flashwise_store::StoreError> for Failure {
    fn from(error: flashwise_store::StoreError) -> Self {
        Self::error(error)
    }
}

impl From<flashwise_report::ReportError> for Failure {
    fn from(error: flashwise_report::ReportError) -> Self {
        match error {
            flashwise_report::ReportError::Foreign { .. } => Self::refused(error.to_string()),
            error => Self::error(error),
        }
    }
}
