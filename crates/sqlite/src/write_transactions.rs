//! When a connection's write transaction in a write-ahead log ends.
//!
//! SQLite does not report it to the log: after a rollback, frames that the transaction spilled are forgotten, and
//! another connection may write others in their places. Whoever holds frames back (`crate::log_gather`) must drop them
//! by then. SQLite releases a lock on the file of the *database* at the end: the write lock of the log's index, or, in
//! exclusive locking mode, EXCLUSIVE. The end is noted **before** the lock is released, so that it is never taken for
//! one of the next transaction, which another connection of this process may begin at once.
//!
//! A log and its database are matched by name. A database that SQLite's own VFS opened notes nothing, so that no log
//! under its name holds frames back.
//!
//! Source: SQLite, `sqlite3WalEndWriteTransaction` and `pager_end_transaction`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use libsqlite3_sys as sqlite;

/// `WAL_WRITE_LOCK`: the first of the locks of a log's index.
const WRITE_LOCK: c_int = 0;
/// Names of databases that SQLite's own VFS opened; with more of them, no log holds frames back.
const NAMES_MAX: usize = 4096;

/// The write transactions that have ended in one database.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteTransactions(Arc<AtomicU64>);

impl WriteTransactions {
    /// How many have ended so far.
    pub(crate) fn ended(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// One is about to end.
    pub(crate) fn end(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// Whether locks of a log's index are released of which one is the write lock.
pub(crate) fn ends_one(first: c_int, flags: c_int) -> bool {
    let releases = sqlite::SQLITE_SHM_UNLOCK | sqlite::SQLITE_SHM_EXCLUSIVE;
    first == WRITE_LOCK && flags & releases == releases
}

#[derive(Default)]
struct Names {
    ours: BTreeMap<Vec<u8>, Weak<AtomicU64>>,
    others: BTreeSet<Vec<u8>>,
}

/// The databases that a VFS has open.
#[derive(Default)]
pub(crate) struct Databases(Mutex<Names>);

impl Databases {
    /// A database of ours is opened.
    pub(crate) fn opened(&self, name: &[u8]) -> WriteTransactions {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.ours.retain(|_, counter| counter.strong_count() > 0);
        if let Some(counter) = names.ours.get(name).and_then(Weak::upgrade) {
            return WriteTransactions(counter);
        }
        let counter = WriteTransactions::default();
        names.ours.insert(name.to_vec(), Arc::downgrade(&counter.0));
        counter
    }

    /// A database is opened by SQLite's own VFS.
    pub(crate) fn opened_by_parent(&self, name: &[u8]) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.others.len() <= NAMES_MAX && !names.others.contains(name) {
            names.others.insert(name.to_vec());
        }
    }

    /// The transactions of a log, by the name of its database; `None` if not all of them are noted.
    pub(crate) fn of_log(&self, log: &[u8]) -> Option<WriteTransactions> {
        let database = log.strip_suffix(b"-wal")?;
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.others.len() > NAMES_MAX || names.others.contains(database) {
            return None;
        }
        names.ours.get(database).and_then(Weak::upgrade).map(WriteTransactions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_the_transactions_of_its_database_while_that_is_open() {
        let databases = Databases::default();
        assert!(databases.of_log(b"a.db-wal").is_none());
        let (one, other) = (databases.opened(b"a.db"), databases.opened(b"a.db"));
        let log = databases.of_log(b"a.db-wal").unwrap();
        one.end();
        other.end();
        assert_eq!(log.ended(), 2);
        assert!(databases.of_log(b"b.db-wal").is_none() && databases.of_log(b"a.db").is_none());
        drop((one, other, log));
        assert!(databases.of_log(b"a.db-wal").is_none());
    }

    #[test]
    fn none_is_known_of_a_database_that_somebody_opened_without_this_vfs() {
        let databases = Databases::default();
        let _ours = databases.opened(b"a.db");
        databases.opened_by_parent(b"a.db");
        assert!(databases.of_log(b"a.db-wal").is_none());
        let _ours = databases.opened(b"b.db");
        assert!(databases.of_log(b"b.db-wal").is_some());
        (0..=NAMES_MAX).for_each(|name| databases.opened_by_parent(&name.to_ne_bytes()));
        assert!(databases.of_log(b"b.db-wal").is_none(), "too many to remember");
    }

    #[test]
    fn only_a_release_of_the_write_lock_ends_a_transaction() {
        let (unlock, lock) = (sqlite::SQLITE_SHM_UNLOCK, sqlite::SQLITE_SHM_LOCK);
        let (shared, exclusive) = (sqlite::SQLITE_SHM_SHARED, sqlite::SQLITE_SHM_EXCLUSIVE);
        assert!(ends_one(0, unlock | exclusive));
        assert!(!ends_one(0, lock | exclusive) && !ends_one(1, unlock | exclusive) && !ends_one(0, unlock | shared));
    }
}
