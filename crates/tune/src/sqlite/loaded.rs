//! The table of the built-in workload: loaded once for each page size, and copied by each run of a search.
//!
//! Inserting the rows is most of a short run's wall-clock time, and none of what it measures. Which rows are there is
//! the same for all runs; what is done with them differs by the seed of the run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flashwise_block::temporary::TemporaryFolder;
use flashwise_block::{ByteSize, Progress};
use rusqlite::Connection;

use super::knobs::PAGES;
use super::session::words_of;
use super::user::scratch;
use super::workload::{KeySource, KeyValueWorkload};
use crate::{Target, TuneError};

/// SQLite's page cache meanwhile, as its pragma counts it: as good as unlimited.
const CACHE_KIB: i64 = -(4 << 20);
/// Rows between two reports of progress.
const ROWS_BETWEEN_REPORTS: u32 = 1024;

/// Loaded tables of one workload.
#[derive(Debug)]
pub(crate) struct Loaded {
    workload: KeyValueWorkload,
    seed: u64,
    tables: Mutex<BTreeMap<u64, Arc<Table>>>,
}

/// One of them, as a plain SQLite file; it is removed with its last user.
#[derive(Debug)]
pub(crate) struct Table {
    path: PathBuf,
    keys: KeySource,
    _folder: TemporaryFolder,
}

impl Loaded {
    /// None yet, where the folder for temporary files has space for one of each page size. Runs may have fewer rounds
    /// than the workload, not more.
    pub(crate) fn new(workload: KeyValueWorkload, seed: u64) -> Option<Self> {
        let all = workload.database_bytes_max().0.checked_mul(PAGES.len() as u64)?;
        Target::Directory(std::env::temp_dir()).check_space(ByteSize(all)).ok()?;
        Some(Self { workload, seed, tables: Mutex::default() })
    }

    /// The table with pages of a size.
    ///
    /// # Errors
    /// When it cannot be made, and what `progress` returns.
    pub(crate) fn of(&self, page: ByteSize, progress: &mut dyn Progress) -> Result<Arc<Table>, TuneError> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(&page.0) {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(Table::load(&self.workload, self.seed, page, progress)?);
        tables.insert(page.0, Arc::clone(&table));
        Ok(table)
    }
}

impl Table {
    fn load(
        workload: &KeyValueWorkload,
        seed: u64,
        page: ByteSize,
        progress: &mut dyn Progress,
    ) -> Result<Self, TuneError> {
        let folder = scratch()?;
        let path = folder.path().join("loaded.db");
        let mut keys = KeySource::new(workload, seed);
        insert(&path, workload.rows, page, &mut keys, progress)?;
        Ok(Self { path, keys, _folder: folder })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The keys for a run behind the loaded ones.
    pub(crate) fn keys(&self, seed: u64) -> KeySource {
        self.keys.reseeded(seed)
    }
}

/// Creates the table and inserts the rows in random order, as one transaction without a journal.
fn insert(
    path: &Path,
    rows: u32,
    page: ByteSize,
    keys: &mut KeySource,
    progress: &mut dyn Progress,
) -> Result<(), TuneError> {
    let failed = |error| TuneError::Sql { context: format!("loading {}", path.display()), message: words_of(&error) };
    let db = Connection::open(path).map_err(failed)?;
    let create = format!(
        "PRAGMA page_size = {}; PRAGMA cache_size = {CACHE_KIB}; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         BEGIN; CREATE TABLE KV (K INTEGER PRIMARY KEY, V CHAR(100))",
        page.bytes()
    );
    db.execute_batch(&create).map_err(failed)?;
    let mut statement = db.prepare("INSERT INTO KV (K, V) VALUES (?1, ?2)").map_err(failed)?;
    for n in 0..rows {
        if n.is_multiple_of(ROWS_BETWEEN_REPORTS) {
            progress.advance("loading", f64::from(n) / f64::from(rows))?;
        }
        let key = keys.new_key();
        statement.execute((key, keys.value())).map_err(failed)?;
    }
    drop(statement);
    db.execute_batch("COMMIT").map_err(failed)
}

#[cfg(test)]
mod tests {
    use flashwise_block::Silent;

    use super::*;

    #[test]
    fn a_table_is_made_once_for_a_page_size_and_runs_differ_in_what_they_do_with_it() {
        let workload = KeyValueWorkload { rows: 2_000, ..KeyValueWorkload::QUICK };
        let loaded = Loaded::new(workload, 1).unwrap();
        let tables = [4, 4, 64].map(|kib| loaded.of(ByteSize::kib(kib), &mut Silent).unwrap());
        assert!(Arc::ptr_eq(&tables[0], &tables[1]) && !Arc::ptr_eq(&tables[0], &tables[2]));
        for (table, page) in [(&tables[0], 4096), (&tables[2], 65536)] {
            let db = Connection::open(table.path()).unwrap();
            let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
            assert_eq!((number("PRAGMA page_size"), number("SELECT count(*) FROM KV")), (page, 2_000));
        }
        let next = |seed| {
            let mut keys = tables[0].keys(seed);
            let found: Vec<u32> = (0..50).map(|_| keys.new_key()).collect();
            let db = Connection::open(tables[0].path()).unwrap();
            let known = |key: &u32| db.query_row("SELECT 1 FROM KV WHERE K = ?1", [*key], |_| Ok(())).is_ok();
            assert!(!found.iter().any(known), "each is new");
            found
        };
        assert!(next(1) == next(1) && next(1) != next(2));
        let path = tables[0].path().to_owned();
        drop((loaded, tables));
        assert!(!path.exists());
    }
}
