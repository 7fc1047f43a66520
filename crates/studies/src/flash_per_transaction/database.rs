//! What the study needs of a database system.

use std::path::Path;

use super::cases::{Case, Change, System};
use super::work::{Update, Work};
use super::{Scale, mariadb, postgres, sqlite};
use crate::StudyError;

/// What a page of the drive holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The log of the database, with the copies of pages that it holds; SQLite's write-ahead log.
    Log,
    /// The table and its indexes.
    Pages,
    /// InnoDB's doublewrite buffer.
    Copies,
    /// The rest of InnoDB's system tablespace: its undo log.
    Undo,
    /// Catalogs, the file system's own, and files that have been deleted.
    Other,
}

impl Kind {
    pub(super) const ALL: [Self; 5] = [Self::Log, Self::Pages, Self::Copies, Self::Undo, Self::Other];

    /// Whether what is of this kind belongs to a database however large it is, and is no part of an empty one.
    pub(super) fn grows(self) -> bool {
        matches!(self, Self::Log | Self::Pages | Self::Copies)
    }
}

/// A database on a drive, its table loaded.
pub(super) trait Database {
    /// One transaction, durable when this returns.
    fn update(&mut self, update: &Update) -> Result<(), StudyError>;

    /// Called after each transaction with their number so far: what the database does every so often.
    fn upkeep(&mut self, _done: u32) -> Result<(), StudyError> {
        Ok(())
    }

    /// Writes back all pages that were changed.
    fn write_back(&mut self) -> Result<(), StudyError>;

    /// What a place in one of its files holds; the path is relative to the directory of the database.
    fn kind(&self, file: &Path, offset: u64) -> Kind;
}

/// Creates a database of a case in a directory, and loads its table.
pub(super) fn create(
    case: &Case,
    scale: &Scale,
    directory: &Path,
    work: &mut Work,
) -> Result<Box<dyn Database>, StudyError> {
    Ok(match case.system {
        System::Postgres => Box::new(postgres::Postgres::create(case.change, scale, directory, work)?),
        System::Mariadb => Box::new(mariadb::Mariadb::create(case.change, scale, directory, work)?),
        System::Sqlite => Box::new(sqlite::Sqlite::create(case.change, scale, directory, work)?),
    })
}

/// Settings with one changed or added.
pub(super) fn changed(settings: &[(&str, String)], change: Change) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    if let Change::Setting(name, value) = change {
        all.retain(|(known, _)| known != name);
        all.push((name.to_owned(), value.to_owned()));
    }
    all
}
