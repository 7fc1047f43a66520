//! A run of SQLite on a drive in virtual time: a write-ahead log, `synchronous` FULL, a table with the key as its
//! primary key and without row numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use flashwise_block::{DeviceCounters, interrupt};
use flashwise_sqlite::{Vfs, VfsOptions};
use flashwise_ssd::SimulatedSsd;
use flashwise_store::workload::Commits;
use rusqlite::{Connection, OpenFlags};

use super::Scale;
use super::case::{Case, DISTRIBUTIONS, Outcome, Phase, user_bytes};
use crate::{StudyError, StudyOptions};

/// Numbers the VFS registrations of this process.
static REGISTRATIONS: AtomicU64 = AtomicU64::new(0);

/// Commits a phase, and makes a checkpoint at its end.
fn phase(db: &Connection, commits: Commits, counters: impl Fn() -> DeviceCounters) -> Result<Phase, StudyError> {
    let (before, mut user, mut count) = (counters(), 0, 0);
    let mut put = db.prepare("INSERT OR REPLACE INTO kv VALUES (?1, ?2)")?;
    for changes in commits {
        interrupt::check()?;
        user += user_bytes(&changes);
        count += 1;
        db.execute_batch("BEGIN")?;
        for (key, value) in &changes {
            put.execute((&key[..], value))?;
        }
        db.execute_batch("COMMIT")?;
    }
    let is_busy: i64 = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(0))?;
    if is_busy != 0 {
        return Err(StudyError::Lost);
    }
    Ok(Phase::new(user, count, &before, &counters()))
}

/// Runs it.
pub(super) fn run(case: &Case, scale: &Scale, options: &StudyOptions, seed: u64) -> Result<Outcome, StudyError> {
    let workload = case.workload(scale, seed);
    let drive = SimulatedSsd::new(case.drive.config()?, seed)?;
    let name = format!("flashwise-stores-{}", REGISTRATIONS.fetch_add(1, Ordering::Relaxed));
    let vfs = Vfs::register(&name, options.host.backend(Box::new(drive)), VfsOptions::PLAIN)?;
    let db = Connection::open_with_flags_and_vfs("stores.db", OpenFlags::default(), vfs.name())?;
    let cache_kib = (case.cache(&workload).0 >> 10).max(1);
    db.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -{cache_kib};
         CREATE TABLE kv (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID"
    ))?;
    let load = phase(&db, workload.load(), || vfs.counters())?;
    let updates = case.updates(scale);
    let [uniform, zipf] = DISTRIBUTIONS
        .map(|distribution| phase(&db, workload.updates(distribution, updates, case.commit), || vfs.counters()));
    let there: i64 = db.query_row("SELECT count(*) FROM kv", [], |row| row.get(0))?;
    if there as u64 != scale.keys {
        return Err(StudyError::Damaged(format!("{case}: {there} of {} keys are left", scale.keys)));
    }
    // The drive is below the VFS: what is stored on it is not asked.
    Ok(Outcome { load, uniform: uniform?, zipf: zipf?, space: 0.0 })
}
