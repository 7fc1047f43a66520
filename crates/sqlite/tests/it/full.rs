//! A place that runs full, at every size: SQLite is told so, the transaction is rolled back, and what was committed
//! stays and can be written on once there is space.

use crate::configurations;
use crate::support;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use configurations::{CONFIGURATIONS, Configuration, page_for};
use flashwise_sqlite::{Backend, Vfs, VfsOptions};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use support::{TestDrive, integrity, open, unique};

const JOURNALS: [&str; 2] = ["delete", "wal"];

fn connect(path: &str, vfs: &Vfs, journal: &str, page: u32) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags_and_vfs(path, OpenFlags::default(), vfs.name())?;
    db.execute_batch(&format!("PRAGMA page_size = {page}; PRAGMA cache_size = 4;"))?;
    db.query_row(&format!("PRAGMA journal_mode = {journal}"), [], |_| Ok(()))?;
    db.execute_batch("PRAGMA wal_autocheckpoint = 20")?;
    Ok(db)
}

fn options(configuration: &Configuration) -> VfsOptions {
    VfsOptions::from_text(configuration.techniques).unwrap()
}

fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// What tells one state from another.
fn content(db: &Connection) -> String {
    let sql = "SELECT count(*) || ' ' || total(k) || ' ' || total(length(v) * (k % 1009)) FROM t";
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// A transaction with changes, deletes and twice as many rows as before; a savepoint in it.
fn grow(db: &Connection, number: u32) -> rusqlite::Result<()> {
    db.execute_batch(&format!(
        "BEGIN;
         UPDATE t SET v = v || 'x' WHERE k % 5 = {number} % 5;
         SAVEPOINT s;
         INSERT INTO t SELECT k + (SELECT max(k) FROM t), v FROM t LIMIT 150 OFFSET {number};
         RELEASE s;
         DELETE FROM t WHERE k % 50 = {number} % 50;
         INSERT INTO t SELECT k + (SELECT max(k) FROM t), hex(v) FROM t LIMIT 10;
         COMMIT;"
    ))
}

const FEW_ROWS: &str = "CREATE TABLE t (k INTEGER PRIMARY KEY, v); CREATE INDEX i ON t (v, k);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
    INSERT INTO t SELECT i, hex(zeroblob(150)) FROM n;";

/// Fills the place with committed transactions until one fails, and tells how; what is there then is what was there
/// before it.
fn fill(db: &Connection, told: &str) -> Result<rusqlite::Error, rusqlite::Error> {
    db.execute_batch(FEW_ROWS)?;
    for number in 0..500 {
        let before = content(db);
        if let Err(error) = grow(db, number) {
            // As any program does: where SQLite has not rolled back everything by itself, it is asked to.
            if !db.is_autocommit() {
                db.execute_batch("ROLLBACK").unwrap();
            }
            assert_eq!(integrity(db), "ok", "{told}");
            assert_eq!(content(db), before, "{told}: not as before the transaction that failed");
            return Ok(error);
        }
    }
    panic!("{told}: never full");
}

/// There is space again: the connection that was told that there was none goes on.
fn goes_on(db: &Connection, told: &str) {
    let count = |db: &Connection| -> i64 { db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap() };
    db.execute_batch("DELETE FROM t WHERE k % 4 = 0").unwrap_or_else(|error| panic!("{told}: {error}"));
    let left = count(db);
    db.execute_batch("INSERT INTO t VALUES (NULL, 'new')").unwrap();
    assert_eq!((integrity(db), count(db)), ("ok".to_owned(), left + 1), "{told}");
}

#[test]
fn a_drive_without_a_free_extent_rolls_back_and_goes_on_when_there_is_one() {
    let (mut early, mut late) = (0, 0);
    for configuration in &CONFIGURATIONS {
        for journal in JOURNALS {
            for size in 1..=5 {
                let told = format!("{}, {journal}, a drive of {size} MiB", configuration.name);
                let vfs = Vfs::register(
                    &unique("full"),
                    Backend::Drive(TestDrive::new(size, 4096).0),
                    options(configuration),
                )
                .unwrap();
                // Something that can be deleted: a temporary table, whose file takes an extent.
                let ballast = open("ballast.db", vfs.name());
                ballast
                    .execute_batch(
                        "PRAGMA temp_store = file; PRAGMA temp.cache_size = 1; CREATE TEMP TABLE b (x);
                         INSERT INTO b VALUES (zeroblob(600000))",
                    )
                    .unwrap();
                let filled = connect("a.db", &vfs, journal, page_for(configuration.techniques, 4096))
                    .and_then(|db| fill(&db, &told).map(|error| (db, error)));
                match filled {
                    Err(error) => {
                        assert!(is_full(&error), "{told}: {error}");
                        early += 1;
                    }
                    Ok((db, error)) => {
                        assert!(is_full(&error), "{told}: {error}");
                        drop(ballast);
                        goes_on(&db, &told);
                        let seen = content(&db);
                        drop(db);
                        let db = open("a.db", vfs.name());
                        assert_eq!(integrity(&db), "ok", "{told}");
                        assert!(content(&db) == seen, "{told}: another one after it was opened again");
                        late += 1;
                    }
                }
            }
        }
    }
    println!("{early} drives had no room for a database, {late} filled up");
    assert!(early >= 14 && late >= 35, "{early} {late}");
}

/// A drive may promise more than it has. It says so when the bytes come, which for a journal or a log is at its sync.
#[test]
fn a_drive_that_has_less_than_it_says_loses_nothing() {
    for configuration in &CONFIGURATIONS {
        for journal in JOURNALS {
            let mut failed = 0;
            let grown_to = {
                let db = Connection::open_in_memory().unwrap();
                db.execute_batch(FEW_ROWS).unwrap();
                grow(&db, 3).unwrap();
                content(&db)
            };
            for n in 1.. {
                let told = format!("{}, {journal}, full at write {n}", configuration.name);
                let (drive, control) = TestDrive::new(8, 4096);
                let vfs = Vfs::register(&unique("full"), Backend::Drive(drive), options(configuration)).unwrap();
                let db = connect("a.db", &vfs, journal, page_for(configuration.techniques, 4096)).unwrap();
                db.execute_batch(FEW_ROWS).unwrap();
                let before = content(&db);
                control.lock().unwrap().full_at = n;
                let grown = grow(&db, 3);
                drop(db);
                let was_full = control.lock().unwrap().full_at == 0;
                control.lock().unwrap().heal();
                let db = open("a.db", vfs.name());
                assert_eq!(integrity(&db), "ok", "{told}");
                let after = content(&db);
                match grown {
                    Ok(()) => assert_eq!(after, grown_to, "{told}: what was acknowledged is gone"),
                    Err(error) => {
                        failed += 1;
                        assert!(is_full(&error), "{told}: {error}");
                        // A log that could not be synced may be whole all the same, once the drive took it.
                        assert!(after == before || after == grown_to, "{told}: in part");
                    }
                }
                goes_on(&db, &told);
                if !was_full {
                    break;
                }
            }
            assert!(failed > 0, "{}, {journal}: {failed}", configuration.name);
        }
    }
}

/// A file system of its own, in memory, of that size.
pub struct Mount(PathBuf);

impl Mount {
    /// `None` where this process must not mount.
    pub fn new(at: &Path, bytes: u64) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "flashwise-test"]).arg(at);
        mount.output().is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // The system may still be closing what was open.
        for _ in 0..100 {
            if Command::new("umount").arg(&self.0).output().is_ok_and(|output| output.status.success()) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let left = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(std::thread::panicking(), "{} was still in use: {left:?}", self.0.display());
    }
}

#[test]
fn a_full_file_system_rolls_back_and_goes_on_when_there_is_space() {
    let dir = tempfile::tempdir().unwrap();
    let (mut early, mut late) = (0, 0);
    for configuration in &CONFIGURATIONS {
        let vfs = Vfs::install(&unique("full"), options(configuration), false).unwrap();
        for journal in JOURNALS {
            for size in (1..=12).map(|step| step * 124 * 1024) {
                let told = format!("{}, {journal}, a file system of {size} bytes", configuration.name);
                let Some(mount) = Mount::new(&dir.path().join("mount"), size) else {
                    println!("skipped: a file system of its own takes root, and the right to mount");
                    return;
                };
                let (ballast, path) = (mount.0.join("ballast"), mount.0.join("a.db"));
                fs::write(&ballast, vec![1; size as usize / 2]).unwrap();
                let filled = connect(path.to_str().unwrap(), &vfs, journal, page_for(configuration.techniques, 4096))
                    .and_then(|db| fill(&db, &told).map(|error| (db, error)));
                match filled {
                    Err(error) => {
                        assert!(is_full(&error) || is_shared_memory(&error), "{told}: {error}");
                        early += 1;
                    }
                    Ok((db, error)) => {
                        assert!(is_full(&error), "{told}: {error} {:?}", vfs.last_error());
                        fs::remove_file(&ballast).unwrap();
                        goes_on(&db, &told);
                        let seen = content(&db);
                        drop(db);
                        let db = open(path.to_str().unwrap(), vfs.name());
                        assert_eq!(integrity(&db), "ok", "{told}");
                        assert!(content(&db) == seen, "{told}: another one after it was opened again");
                        late += 1;
                    }
                }
            }
        }
    }
    println!("{early} file systems had no room for a database, {late} filled up");
    assert!(early >= 7 && late >= 100, "{early} {late}");
}

/// SQLite's own VFS says so where the shared memory of a log finds no space.
fn is_shared_memory(error: &rusqlite::Error) -> bool {
    const SHMSIZE: i32 = 10 | 19 << 8;
    matches!(error, rusqlite::Error::SqliteFailure(failure, _) if failure.extended_code == SHMSIZE)
}
