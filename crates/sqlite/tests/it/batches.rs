//! Transactions as atomic batches: no journal, whole after a death, one file after the last close.
use std::path::{Path, PathBuf};

use flashwise_sqlite::{SqliteError, Vfs, VfsOptions, export, info};
use rusqlite::Connection;

use crate::support;
use support::{open, unique};

const BATCHES: &str = "atomic-batch=on";

fn vfs(techniques: &str) -> Vfs {
    Vfs::install(&unique("batches"), VfsOptions::from_text(techniques).unwrap(), false).unwrap()
}

fn beside(database: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", database.display()))
}

fn count(db: &Connection) -> i64 {
    db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_transaction_takes_no_journal_and_a_closed_database_is_one_file() {
    let (dir, vfs) = (tempfile::tempdir().unwrap(), vfs(BATCHES));
    let path = dir.path().join("a.db");
    let db = open(path.to_str().unwrap(), vfs.name());
    db.execute_batch("CREATE TABLE t (x)").unwrap();
    for x in 0..50 {
        db.execute_batch("BEGIN").unwrap();
        db.execute("INSERT INTO t VALUES (?1)", [x]).unwrap();
        assert!(!beside(&path, "-fwjournal").exists() && !beside(&path, "-journal").exists());
        db.execute_batch("COMMIT").unwrap();
        assert!(!beside(&path, "-fwjournal").exists() && !beside(&path, "-journal").exists());
    }
    assert!(beside(&path, "-fwbatch").metadata().unwrap().len() > 50 * 4096, "fifty batches");
    assert_eq!(count(&open(path.to_str().unwrap(), vfs.name())), 50);
    assert!(beside(&path, "-fwbatch").exists(), "the other connection is still there");
    drop(db);
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["a.db"]);

    let told = info(&path).unwrap();
    assert!(told.atomic_batches && told.version == Some(1), "{told:?}");
    let plain = dir.path().join("plain.db");
    export(&path, &plain).unwrap();
    assert_eq!(count(&Connection::open(&plain).unwrap()), 50);
    let refused = Connection::open(&path).unwrap().execute_batch("SELECT * FROM sqlite_schema").unwrap_err();
    assert!(refused.to_string().contains("open it with vfs=flashwise"), "{refused}");
}

#[test]
fn the_log_begins_anew_again_and_again_and_loses_nothing() {
    let (dir, vfs) = (tempfile::tempdir().unwrap(), vfs(BATCHES));
    let path = dir.path().join("a.db");
    let connections = [0, 1].map(|_| open(path.to_str().unwrap(), vfs.name()));
    connections[0].execute_batch("CREATE TABLE t (x)").unwrap();
    // Some 10 MiB of batches, one in ten past the log, one in fifty too long for a cache of eight pages.
    for x in 0..300_usize {
        let db = &connections[x % 2];
        let journal = if x % 10 == 9 { "OFF" } else { "FULL" };
        let rows = if x % 50 == 49 { 40 } else { 1 };
        db.execute_batch(&format!("PRAGMA synchronous = {journal}; PRAGMA cache_size = 8; BEGIN")).unwrap();
        for _ in 0..rows {
            db.execute("INSERT INTO t VALUES (zeroblob(20000))", []).unwrap();
        }
        db.execute_batch("COMMIT").unwrap();
    }
    let rows = 294 + 6 * 40;
    assert_eq!([count(&connections[0]), count(&connections[1])], [rows, rows]);
    assert!(beside(&path, "-fwbatch").metadata().unwrap().len() <= 5 << 20, "it does not grow for ever");
    drop(connections);
    let db = open(path.to_str().unwrap(), vfs.name());
    assert_eq!(count(&db), rows);
    assert_eq!(support::integrity(&db), "ok");
}

#[test]
fn a_transaction_that_no_batch_can_take_is_journalled() {
    let (dir, vfs) = (tempfile::tempdir().unwrap(), vfs(BATCHES));
    let path = dir.path().join("a.db");
    open(path.to_str().unwrap(), vfs.name())
        .execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(20000))")
        .unwrap();
    // Longer than SQLite left it: a transaction that makes it longer by less cuts it.
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() + (1 << 20)).unwrap();
    let db = open(path.to_str().unwrap(), vfs.name());
    for _ in 0..5 {
        db.execute("INSERT INTO t VALUES (zeroblob(20000))", []).unwrap();
    }
    assert_eq!((count(&db), support::integrity(&db)), (6, "ok".to_owned()));
    // More than a batch may have, in a cache that has room for it.
    db.execute_batch("PRAGMA cache_size = -65536; BEGIN").unwrap();
    for _ in 0..50 {
        db.execute("INSERT INTO t VALUES (zeroblob(1000000))", []).unwrap();
    }
    db.execute_batch("COMMIT").unwrap();
    assert_eq!((count(&db), support::integrity(&db)), (56, "ok".to_owned()));
    assert!(beside(&path, "-fwbatch").metadata().unwrap().len() < 5 << 20);
}

/// Six rows, changed forty times: more than a mebibyte of batches.
fn change_six_rows(db: &Connection) {
    db.execute_batch("CREATE TABLE IF NOT EXISTS t (x); DELETE FROM t").unwrap();
    (0..6).for_each(|x| _ = db.execute("INSERT INTO t VALUES (?1 || zeroblob(3000))", [x]).unwrap());
    (0..40).for_each(|_| _ = db.execute("UPDATE t SET x = x || 'x'", []).unwrap());
}

/// The process whose files are limited: the log is soon full, and a transaction takes a journal then.
fn write_below_the_limit(expected: u64) {
    let vfs = vfs(BATCHES);
    let db = open(std::env::current_dir().unwrap().join("a.db").to_str().unwrap(), vfs.name());
    change_six_rows(&db);
    let batches = beside(Path::new("a.db"), "-fwbatch").metadata().unwrap().len();
    assert_eq!((count(&db), batches), (6, expected));
}

/// Between one and two steps of the log, in blocks of 512 bytes.
const LIMIT: u64 = 200 * 512;

#[test]
fn a_batch_log_stays_below_the_limit_for_the_size_of_a_file() {
    const TEST: &str = "batches::a_batch_log_stays_below_the_limit_for_the_size_of_a_file";
    const WRITER: &str = "FLASHWISE_TEST_BATCH_LIMIT";
    if let Ok(expected) = std::env::var(WRITER) {
        return write_below_the_limit(expected.parse().unwrap());
    }
    let (plain, batching) = (vfs(""), vfs(BATCHES));
    for is_long_already in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        // A process without a limit has made the log longer than the other one may write.
        let unlimited = is_long_already.then(|| open(path.to_str().unwrap(), batching.name()));
        unlimited.iter().for_each(change_six_rows);
        let length = beside(&path, "-fwbatch").metadata().map_or(LIMIT, |found| found.len());
        assert!(!is_long_already || length > 5 * LIMIT, "{length}");
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(format!("ulimit -f {}; exec \"$0\" --exact {TEST} --test-threads 1", LIMIT / 512));
        shell.arg(std::env::current_exe().unwrap()).env(WRITER, length.to_string()).current_dir(dir.path());
        let written = shell.output().unwrap();
        assert!(written.status.success(), "{}: {}", written.status, String::from_utf8_lossy(&written.stdout));
        let db = open(path.to_str().unwrap(), plain.name());
        assert_eq!((count(&db), support::integrity(&db)), (6, "ok".to_owned()));
    }
}

#[test]
fn connections_that_come_and_go_lose_nothing_of_each_other() {
    let (dir, vfs) = (tempfile::tempdir().unwrap(), vfs(BATCHES));
    let path = dir.path().join("a.db");
    open(path.to_str().unwrap(), vfs.name()).execute_batch("CREATE TABLE t (x)").unwrap();
    let come_and_go = |thread: u64| {
        for round in 0..25 {
            let db = open(path.to_str().unwrap(), vfs.name());
            db.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
            db.execute("INSERT INTO t VALUES (?1)", [(thread * 100 + round) as i64]).unwrap();
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|thread| _ = scope.spawn(move || come_and_go(thread))));
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["a.db"]);
    let db = open(path.to_str().unwrap(), vfs.name());
    assert_eq!((count(&db), support::integrity(&db)), (100, "ok".to_owned()));
}

/// Copies the files as a crash would leave them.
fn crashed(from: &Path, to: &Path) {
    for suffix in ["", "-fwbatch", "-fwjournal"] {
        if beside(from, suffix).exists() {
            std::fs::copy(beside(from, suffix), beside(to, suffix)).unwrap();
        }
    }
}

#[test]
fn what_only_the_log_has_is_brought_into_the_database_by_who_opens_it_first() {
    let (dir, vfs) = (tempfile::tempdir().unwrap(), vfs(BATCHES));
    let (path, late) = (dir.path().join("a.db"), dir.path().join("late.db"));
    let db = open(path.to_str().unwrap(), vfs.name());
    db.execute_batch("CREATE TABLE t (x)").unwrap();
    std::fs::copy(&path, &late).unwrap();
    for x in 0..20 {
        db.execute("INSERT INTO t VALUES (?1)", [x]).unwrap();
    }
    // A database that no write since the first reached, as after a power cut.
    std::fs::copy(beside(&path, "-fwbatch"), beside(&late, "-fwbatch")).unwrap();
    let refused = export(&late, &dir.path().join("x.db")).unwrap_err();
    assert!(matches!(refused, SqliteError::Unfinished { .. }), "{refused}");
    {
        let late = open(late.to_str().unwrap(), vfs.name());
        assert_eq!((count(&late), support::integrity(&late)), (20, "ok".to_owned()));
    }
    assert!(!beside(&late, "-fwbatch").exists());
    assert_eq!(count(&db), 20);
}

#[test]
fn the_log_of_another_database_and_a_damaged_one_are_left_out() {
    let (dir, vfs) = (tempfile::tempdir().unwrap(), vfs(BATCHES));
    let [path, other, torn] = ["a.db", "other.db", "torn.db"].map(|name| dir.path().join(name));
    let [db, another] = [&path, &other].map(|path| {
        let db = open(path.to_str().unwrap(), vfs.name());
        db.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
        db
    });
    drop(another);
    std::fs::copy(&path, &torn).unwrap();
    for x in 0..3 {
        db.execute("INSERT INTO t VALUES (?1)", [x]).unwrap();
    }
    std::fs::copy(beside(&path, "-fwbatch"), beside(&other, "-fwbatch")).unwrap();
    assert_eq!(count(&open(other.to_str().unwrap(), vfs.name())), 1, "the log bears another identity");

    // A bit of the second page of every batch: none counts whose checksum is wrong, and none behind it.
    crashed(&path, &dir.path().join("good.db"));
    let mut log = std::fs::read(beside(&path, "-fwbatch")).unwrap();
    let last = log.chunks(4096).rposition(|block| block.starts_with(b"fwbatch1")).unwrap();
    log[last * 4096 + 2000] ^= 1;
    std::fs::write(beside(&torn, "-fwbatch"), &log).unwrap();
    assert_eq!(count(&open(torn.to_str().unwrap(), vfs.name())), 3, "all but the last one");
    assert_eq!(count(&open(dir.path().join("good.db").to_str().unwrap(), vfs.name())), 4);
}

#[test]
fn a_database_that_may_only_be_read_is_read_and_a_log_is_not_passed_over() {
    let (dir, vfs) = (tempfile::tempdir().unwrap(), vfs(BATCHES));
    let path = dir.path().join("a.db");
    open(path.to_str().unwrap(), vfs.name())
        .execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
        .unwrap();
    let read_only = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let db = Connection::open_with_flags_and_vfs(&path, read_only, vfs.name()).unwrap();
    assert_eq!(count(&db), 2);
    assert!(db.execute_batch("INSERT INTO t VALUES (3)").is_err());
    drop(db);

    let (writer, late) = (open(path.to_str().unwrap(), vfs.name()), dir.path().join("late.db"));
    std::fs::copy(&path, &late).unwrap();
    writer.execute_batch("INSERT INTO t VALUES (3)").unwrap();
    std::fs::copy(beside(&path, "-fwbatch"), beside(&late, "-fwbatch")).unwrap();
    let db = Connection::open_with_flags_and_vfs(&late, read_only, vfs.name()).unwrap();
    let told = db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
    assert!(told.is_err(), "two rows are not what was committed: {told:?}");
    drop(db);
    assert_eq!(count(&open(late.to_str().unwrap(), vfs.name())), 3, "the log is still there");
}
