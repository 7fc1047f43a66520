//! Why a study could not be run.

use std::path::PathBuf;

use crate::slots::DeathTimeError;
use flashwise_block::{BlockError, PlacementUnknown};
use flashwise_bufferpool::PoolError;
use flashwise_learn::LearnError;
use flashwise_sqlite::SqliteError;
use flashwise_ssd::SsdError;
use flashwise_store::StoreError;
use flashwise_tune::{DEFAULT_TARGET, TuneError};

/// Why a study could not be run.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// No study of that name.
    #[error("unknown study '{name}': {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The name that was probably meant, and all names.
        known: String,
    },
    /// A drive of the study cannot be built.
    #[error(transparent)]
    Drive(#[from] SsdError),
    /// A drive of the model of slots and blocks cannot be.
    #[error(transparent)]
    Model(#[from] DeathTimeError),
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
    /// The VFS below a database refused.
    #[error(transparent)]
    Vfs(#[from] SqliteError),
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of finished runs cannot be used.
    #[error("--resume {}: {why}", path.display())]
    Resume {
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// The program of `--peers` failed; in words.
    #[error("{0}")]
    Peers(String),
    /// SQLite refused or failed.
    #[error("SQLite: {0}")]
    Sql(#[from] rusqlite::Error),
    /// PostgreSQL refused or failed.
    #[error("PostgreSQL: {0}")]
    Postgres(#[from] postgres::Error),
    /// MariaDB refused or failed.
    #[error("MariaDB: {0}")]
    Mariadb(#[from] mysql::Error),
    /// It is not known where a file is on a drive.
    #[error(transparent)]
    PlacementUnknown(#[from] PlacementUnknown),
    /// A database is damaged, or rows of it are missing.
    #[error("a database is damaged: integrity_check says: {0}")]
    Damaged(String),
    /// A file of a database, or a program, could not be used.
    #[error("files of a database: {0}")]
    Files(#[from] std::io::Error),
    /// A drive could not be attached, or not asked; in words.
    #[error("{0}")]
    Attach(String),
    /// This machine lacks what the study needs: a program, or a right; in words.
    #[error("{0}")]
    Missing(String),
    /// The learned profile of the drive has no hot locations that are certain and other than where pages are anyway.
    #[error("the learned profile of {DEFAULT_TARGET} has no certain hot locations at which pages could be placed")]
    NoHotLocations,
    /// A thread of the study ended early.
    #[error("a part of the study ended early")]
    Lost,
}
