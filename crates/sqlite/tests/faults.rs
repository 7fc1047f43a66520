//! A drive that fails at its n-th request, for every n. Power cuts are tried in `src/vfs.rs`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use flashwise_block::{ByteSize, Operation};
use flashwise_sqlite::{Backend, Layout, Vfs, VfsOptions};
use rusqlite::{Connection, OpenFlags};
use support::{SharedControl, TestDrive, integrity, open, try_dump, unique};

const HOT: Layout = Layout::HotLocations { chunk: ByteSize::kib(64), offset: ByteSize::kib(32) };

/// A committed state, then what a transaction makes of it.
const BEFORE: &str = "CREATE TABLE t (k INTEGER PRIMARY KEY, v);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
    INSERT INTO t SELECT i, hex(zeroblob(150)) FROM n;";
const CHANGE: &str = "BEGIN; UPDATE t SET v = v || 'x' WHERE k % 3 = 0; DELETE FROM t WHERE k > 350;
    INSERT INTO t SELECT k + 1000, v FROM t; CREATE TABLE u (x); COMMIT;";

fn drive(layout: Layout) -> (Vfs, SharedControl) {
    let (drive, control) = TestDrive::new(16, 4096);
    let vfs = Vfs::register(
        &unique("fault"),
        Backend::Drive(drive),
        VfsOptions { layout, record: false, ..VfsOptions::PLAIN },
    )
    .unwrap();
    (vfs, control)
}

fn prepare(db: &Connection, journal: &str, page: u32) -> rusqlite::Result<()> {
    db.execute_batch(&format!("PRAGMA page_size = {page}; PRAGMA cache_size = 5;"))?;
    db.query_row(&format!("PRAGMA journal_mode = {journal}"), [], |_| Ok(()))
}

fn state(vfs: &Vfs) -> Vec<String> {
    let db = open("a.db", vfs.name());
    assert_eq!(integrity(&db), "ok");
    try_dump(&db).unwrap()
}

/// The states without any fault: before and after the change.
fn states(layout: Layout, journal: &str, page: u32) -> [Vec<String>; 2] {
    let (vfs, _) = drive(layout);
    let db = open("a.db", vfs.name());
    prepare(&db, journal, page).unwrap();
    db.execute_batch(BEFORE).unwrap();
    let before = try_dump(&db).unwrap();
    db.execute_batch(CHANGE).unwrap();
    [before, try_dump(&db).unwrap()]
}

const CASES: [(Layout, &str, u32); 8] = [
    (Layout::Plain, "delete", 4096),
    (Layout::Plain, "wal", 4096),
    (HOT, "delete", 4096),
    (HOT, "delete", 65536),
    (HOT, "persist", 65536),
    (HOT, "truncate", 1024),
    (HOT, "wal", 65536),
    (HOT, "wal", 4096),
];

#[test]
fn after_an_error_at_any_request_the_database_is_sound_and_old_or_new() {
    for (layout, journal, page) in CASES {
        let [before, after] = states(layout, journal, page);
        for forever in [false, true] {
            let mut seen_errors = 0;
            for n in 1.. {
                let case = format!("{layout:?}, {journal}, pages of {page}, request {n}, for ever: {forever}");
                let (vfs, control) = drive(layout);
                let db = open("a.db", vfs.name());
                prepare(&db, journal, page).unwrap();
                db.execute_batch(BEFORE).unwrap();
                (control.lock().unwrap().fail_at, control.lock().unwrap().fail_forever) = (n, forever);
                let changed = db.execute_batch(CHANGE);
                drop(db);
                let reached = control.lock().unwrap().fail_at == 0;
                control.lock().unwrap().heal();
                let found = state(&vfs);
                if changed.is_ok() {
                    assert_eq!(found, after, "{case}");
                } else {
                    seen_errors += 1;
                    assert!(found == before || found == after, "{case}");
                }
                if !reached {
                    break;
                }
            }
            assert!(seen_errors > 1, "{layout:?}, {journal}: {seen_errors}");
        }
    }
}

/// Here the new database itself is at stake: an error while the header and the first pages are written.
#[test]
fn after_an_error_at_any_request_of_its_creation_a_database_can_be_created() {
    for (layout, journal, page) in CASES {
        for n in 1.. {
            let (vfs, control) = drive(layout);
            control.lock().unwrap().fail_at = n;
            let created = Connection::open_with_flags_and_vfs("a.db", OpenFlags::default(), vfs.name())
                .and_then(|db| prepare(&db, journal, page).and_then(|()| db.execute_batch(BEFORE)));
            let reached = control.lock().unwrap().fail_at == 0;
            control.lock().unwrap().heal();
            let found = state(&vfs);
            let db = open("a.db", vfs.name());
            if journal == "wal" {
                db.execute_batch("PRAGMA locking_mode = EXCLUSIVE").unwrap();
            }
            if found.is_empty() {
                db.execute_batch("CREATE TABLE t (x)").unwrap();
            }
            assert!(created.is_err() || found.len() == 401, "{layout:?}, {journal}, request {n}: {}", found.len());
            db.execute_batch("INSERT INTO t VALUES (NULL)").ok();
            assert_eq!(integrity(&db), "ok");
            if !reached {
                break;
            }
        }
    }
}

#[test]
fn a_connection_whose_sync_failed_writes_no_more_until_it_is_reopened() {
    for layout in [Layout::Plain, HOT] {
        let (vfs, control) = drive(layout);
        let db = open("a.db", vfs.name());
        db.execute_batch(BEFORE).unwrap();
        // The third flush of a commit is the database's own; the first two are the journal's.
        let (_, flush) = {
            control.lock().unwrap().log.clear();
            db.execute_batch("INSERT INTO t VALUES (5000, 1)").unwrap();
            let log = &control.lock().unwrap().log;
            let flush = log.iter().rposition(|seen| seen.operation == Operation::Flush).unwrap();
            (log.len(), flush as u64 + 1)
        };
        control.lock().unwrap().fail_at = flush;
        let failed = db.execute_batch("INSERT INTO t VALUES (6000, 1)").unwrap_err();
        assert_eq!(failed.sqlite_error_code(), Some(rusqlite::ErrorCode::SystemIoFailure), "{failed}");
        assert!(db.execute_batch("INSERT INTO t VALUES (7000, 1)").is_err(), "poisoned");
        assert!(vfs.last_error().unwrap().contains("reopen"), "{:?}", vfs.last_error());
        drop(db);
        let db = open("a.db", vfs.name());
        db.execute_batch("INSERT INTO t VALUES (7000, 1)").unwrap();
        assert_eq!(integrity(&db), "ok");
        let keys: i64 = db.query_row("SELECT count(*) FROM t WHERE k >= 5000", [], |row| row.get(0)).unwrap();
        assert_eq!(keys, 2, "the failed one was rolled back");
    }
}
