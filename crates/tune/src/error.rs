//! Why a database could not be fitted.

use std::path::PathBuf;

use flashwise_block::BlockError;

/// Anything that ends a fit.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The target names no drive.
    #[error("{0}")]
    Target(String),
    /// flashwise refuses for safety's sake.
    #[error("{0}")]
    Refused(String),
    /// The simulated drive cannot be.
    #[error(transparent)]
    Drive(#[from] flashwise_ssd::SsdError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] BlockError),
    /// Learning failed.
    #[error(transparent)]
    Learn(#[from] flashwise_learn::LearnError),
    /// The VFS failed.
    #[error(transparent)]
    Vfs(#[from] flashwise_sqlite::SqliteError),
    /// SQLite refused or failed; with the failed operation, SQLite's message, and the VFS's if it was involved.
    #[error("{context}: {message}")]
    Sql {
        /// The failed operation.
        context: String,
        /// SQLite's message.
        message: String,
    },
    /// The database is damaged.
    #[error("{label}: integrity_check says: {answer}")]
    Integrity {
        /// Which run.
        label: String,
        /// Its result.
        answer: String,
    },
    /// A file could not be read or written.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        message: String,
    },
    /// A program could not be run or recorded.
    #[error(transparent)]
    Capture(#[from] flashwise_trace::capture::CaptureError),
    /// A database server, or a program of its, refused or failed.
    #[error("{context}: {message}")]
    Server {
        /// The server, program or statement.
        context: String,
        /// Its own words.
        message: String,
    },
    /// A program that is needed is not installed.
    #[error("{0}")]
    Missing(String),
    /// The options contradict each other or do nothing.
    #[error("{0}")]
    Options(String),
}

impl TuneError {
    /// A file error with its path.
    pub(crate) fn file(path: impl Into<PathBuf>, error: &std::io::Error) -> Self {
        // The message ends with the error number and, for a new file, with the name of its temporary file.
        let words = error.to_string();
        let message = words.split(" (os error").next().unwrap_or_default().to_owned();
        Self::File { path: path.into(), message }
    }

    /// Whether the user interrupted.
    pub fn is_interrupt(&self) -> bool {
        matches!(
            self,
            Self::Device(BlockError::Interrupted)
                | Self::Learn(flashwise_learn::LearnError::Device(BlockError::Interrupted))
        )
    }

    /// Whether it was refused for safety's sake.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Refused(_)
                | Self::Device(BlockError::Refused(_))
                | Self::Learn(flashwise_learn::LearnError::Device(BlockError::Refused(_)))
        )
    }
}
