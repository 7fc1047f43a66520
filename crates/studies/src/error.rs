//! Why a study could not be run.

use flashwise_block::BlockError;
use flashwise_bufferpool::PoolError;
use flashwise_learn::LearnError;
use flashwise_ssd::SsdError;
use flashwise_tune::TuneError;

/// Why a study could not be run.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// No study of that name.
    #[error("no study is called '{name}'; there are {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// A drive of the study cannot be built.
    #[error(transparent)]
    Drive(#[from] SsdError),
    /// A drive failed.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A drive could not be learned.
    #[error(transparent)]
    Learn(#[from] LearnError),
    /// A buffer pool could not be run.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// A database could not be run.
    #[error(transparent)]
    Database(#[from] TuneError),
    /// A thread of the study ended early.
    #[error("a part of the study ended early")]
    Lost,
}
