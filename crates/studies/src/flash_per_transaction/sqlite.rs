//! SQLite in this process, its file on the drive: a write-ahead log, `synchronous = FULL`.

use std::path::Path;

use flashwise_tune::DirectoryGuard;
use rusqlite::{Connection, params, params_from_iter};

use super::Scale;
use super::cases::Change;
use super::database::{Database, Kind, changed};
use super::work::{FIELDS, Update, Work, columns};
use crate::StudyError;

const FILE: &str = "w.db";

/// An open database.
pub(super) struct Sqlite {
    db: Connection,
    // Deleted after the connection is closed.
    _place: DirectoryGuard,
}

/// Pragmas; the page size is set before there is a page, the others behind the load.
fn pragmas(scale: &Scale) -> Vec<(&'static str, String)> {
    [
        ("page_size", "4096".to_owned()),
        ("journal_mode", "WAL".to_owned()),
        ("synchronous", "FULL".to_owned()),
        ("wal_autocheckpoint", "1000".to_owned()),
        ("cache_size", format!("-{}", scale.cache_kib())),
    ]
    .to_vec()
}

impl Sqlite {
    pub(super) fn create(change: Change, scale: &Scale, directory: &Path, work: &mut Work) -> Result<Self, StudyError> {
        let place = DirectoryGuard::new(directory, "flashwise-sqlite")?;
        let mut db = Connection::open(place.path().join(FILE))?;
        let pragmas = changed(&pragmas(scale), change);
        let (first, rest): (Vec<_>, Vec<_>) = pragmas.into_iter().partition(|(name, _)| name == "page_size");
        let set = |db: &Connection, all: Vec<(String, String)>| {
            all.into_iter().try_for_each(|(name, value)| db.pragma_update(None, &name, &value))
        };
        set(&db, first)?;
        // A load in one transaction would leave a log as long as the table.
        db.pragma_update(None, "journal_mode", "OFF")?;
        db.execute_batch(&format!("CREATE TABLE t (id INTEGER PRIMARY KEY, {})", columns("TEXT")))?;
        let load = db.transaction()?;
        {
            let marks = ["?"; FIELDS + 1].join(", ");
            let mut insert = load.prepare(&format!("INSERT INTO t VALUES ({marks})"))?;
            for id in 1..=scale.rows {
                let fields = work.fields();
                insert.execute(params_from_iter(std::iter::once(id.to_string()).chain(fields)))?;
            }
        }
        load.commit()?;
        set(&db, rest)?;
        db.set_prepared_statement_cache_capacity(FIELDS);
        Ok(Self { db, _place: place })
    }
}

impl Database for Sqlite {
    fn update(&mut self, update: &Update) -> Result<(), StudyError> {
        let sql = format!("UPDATE t SET field{} = ?1 WHERE id = ?2", update.field);
        self.db.prepare_cached(&sql)?.execute(params![update.value, update.row])?;
        Ok(())
    }

    fn write_back(&mut self) -> Result<(), StudyError> {
        // Without a write-ahead log it does nothing.
        let is_busy: i64 = self.db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0))?;
        if is_busy == 0 { Ok(()) } else { Err(StudyError::Lost) }
    }

    fn kind(&self, file: &Path, _: u64) -> Kind {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name == FILE { Kind::Pages } else { Kind::Log }
    }
}
