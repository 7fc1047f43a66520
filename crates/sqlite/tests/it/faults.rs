//! A drive that fails at its n-th request, for every n. Power cuts are tried in `src/power_cuts.rs`.

use crate::configurations::techniques_for;
use crate::support;
use flashwise_block::Operation;
use flashwise_sqlite::{Backend, Vfs, VfsOptions};
use rusqlite::{Connection, OpenFlags};
use support::{SharedControl, TestDrive, integrity, open, try_dump, unique};

const HOT: &str = "use-hot-locations=64k+32k";
const ALIGNED: &str = "write-aligned-stripes=64k";
const CONTAINED: &str = "contain-write-in-flash-page=16k";
const SPARSE: &str = "sparse-log=4k";
const TOGETHER: &str = "concurrent-write-back=8";
const DISCARD: &str = "discard=on";
const BATCHES: &str = "atomic-batch=on";
const ALL: &str = "use-hot-locations=64k+32k&write-aligned-stripes=64k&concurrent-write-back=8&concurrent-read-ahead=8\
    &discard=on&atomic-batch=on";

/// A committed state, then what a transaction makes of it.
const BEFORE: &str = "CREATE TABLE t (k INTEGER PRIMARY KEY, v);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
    INSERT INTO t SELECT i, hex(zeroblob(150)) FROM n;";
const CHANGE: &str = "BEGIN; UPDATE t SET v = v || 'x' WHERE k % 3 = 0; DELETE FROM t WHERE k > 350;
    INSERT INTO t SELECT k + 1000, v FROM t; CREATE TABLE u (x); COMMIT;";

fn drive(techniques: &str, page: u32) -> (Vfs, SharedControl) {
    let (drive, control) = TestDrive::new(8, 4096);
    let options = VfsOptions::from_text(&techniques_for(techniques, Some(page))).unwrap();
    (Vfs::register(&unique("fault"), Backend::Drive(drive), options).unwrap(), control)
}

/// The log is checkpointed within the change, and pages are spilled, but where batches alone are tried: a transaction
/// that spills is none.
fn prepare(db: &Connection, (techniques, journal, page): Case) -> rusqlite::Result<()> {
    let cache = if techniques == BATCHES { 500 } else { 5 };
    db.execute_batch(&format!("PRAGMA page_size = {page}; PRAGMA cache_size = {cache};"))?;
    db.query_row(&format!("PRAGMA journal_mode = {journal}"), [], |_| Ok(()))?;
    db.execute_batch("PRAGMA wal_autocheckpoint = 30")
}

fn state(vfs: &Vfs) -> Vec<String> {
    let db = open("a.db", vfs.name());
    assert_eq!(integrity(&db), "ok");
    try_dump(&db).unwrap()
}

/// The states without any fault: before and after the change.
fn states(case: Case) -> [Vec<String>; 2] {
    let (vfs, _) = drive(case.0, case.2);
    let db = open("a.db", vfs.name());
    prepare(&db, case).unwrap();
    db.execute_batch(BEFORE).unwrap();
    let before = try_dump(&db).unwrap();
    db.execute_batch(CHANGE).unwrap();
    [before, try_dump(&db).unwrap()]
}

/// Techniques, journal mode, page size; a chunk of the hot locations is a page, and they are left out below 4 KiB.
type Case = (&'static str, &'static str, u32);

/// What `make test` tries: each technique where it does most.
const CASES: [Case; 11] = [
    ("", "wal", 4096),
    (HOT, "delete", 65536),
    (HOT, "wal", 4096),
    (ALIGNED, "wal", 4096),
    (CONTAINED, "wal", 1024),
    (SPARSE, "wal", 4096),
    (TOGETHER, "truncate", 4096),
    (DISCARD, "delete", 4096),
    (BATCHES, "delete", 4096),
    (ALL, "persist", 4096),
    (ALL, "wal", 65536),
];

const MORE_CASES: [Case; 21] = [
    ("", "delete", 4096),
    (HOT, "delete", 4096),
    (HOT, "persist", 32768),
    (HOT, "truncate", 16384),
    (HOT, "wal", 65536),
    (ALIGNED, "delete", 4096),
    (ALIGNED, "wal", 512),
    (CONTAINED, "delete", 4096),
    (CONTAINED, "wal", 4096),
    (SPARSE, "delete", 4096),
    (SPARSE, "wal", 65536),
    (TOGETHER, "truncate", 1024),
    (TOGETHER, "wal", 4096),
    (DISCARD, "persist", 1024),
    (DISCARD, "wal", 4096),
    (BATCHES, "truncate", 512),
    (BATCHES, "delete", 65536),
    (BATCHES, "persist", 1024),
    (BATCHES, "wal", 4096),
    (ALL, "delete", 65536),
    (ALL, "wal", 1024),
];

/// The state before, and then the change, once the drive was told what to do.
fn changed(vfs: &Vfs, case: Case, tell: impl FnOnce()) -> rusqlite::Result<()> {
    let db = open("a.db", vfs.name());
    prepare(&db, case).unwrap();
    db.execute_batch(BEFORE).unwrap();
    tell();
    db.execute_batch(CHANGE)
}

/// A database that is sound can also be written.
fn is_of_use(vfs: &Vfs) {
    let db = open("a.db", vfs.name());
    db.execute_batch("INSERT INTO t VALUES (9000, 1); DELETE FROM t WHERE k < 100").unwrap();
    assert_eq!(integrity(&db), "ok");
}

#[test]
fn after_an_error_at_any_request_the_database_is_sound_and_old_or_new() {
    fail_everywhere(&CASES);
}

#[test]
#[ignore = "minutes: make test-full runs it"]
fn after_an_error_at_any_request_the_database_is_sound_and_old_or_new_in_every_case() {
    fail_everywhere(&MORE_CASES);
}

/// Fails every request of the change, once and for ever.
fn fail_everywhere(cases: &[Case]) {
    for &case in cases {
        let [before, after] = states(case);
        for forever in [false, true] {
            let mut seen_errors = 0;
            for n in 1.. {
                let told = format!("{case:?}, request {n}, for ever: {forever}");
                let (vfs, control) = drive(case.0, case.2);
                let changed = changed(&vfs, case, || {
                    (control.lock().unwrap().fail_at, control.lock().unwrap().fail_forever) = (n, forever);
                });
                let reached = control.lock().unwrap().fail_at == 0;
                control.lock().unwrap().heal();
                let found = state(&vfs);
                if changed.is_ok() {
                    assert_eq!(found, after, "{told}");
                } else {
                    seen_errors += 1;
                    assert!(found == before || found == after, "{told}");
                }
                is_of_use(&vfs);
                if !reached {
                    break;
                }
            }
            println!("{case:?}, for ever: {forever}: {seen_errors} errors");
            assert!(seen_errors > 1, "{case:?}: {seen_errors}");
        }
    }
}

/// Here the new database itself is at stake: an error while the header and the first pages are written.
#[test]
fn after_an_error_at_any_request_of_its_creation_a_database_can_be_created() {
    for case in CASES {
        let (techniques, journal, page) = case;
        for n in 1.. {
            let (vfs, control) = drive(techniques, page);
            control.lock().unwrap().fail_at = n;
            let created = Connection::open_with_flags_and_vfs("a.db", OpenFlags::default(), vfs.name())
                .and_then(|db| prepare(&db, case).and_then(|()| db.execute_batch(BEFORE)));
            let reached = control.lock().unwrap().fail_at == 0;
            control.lock().unwrap().heal();
            let found = state(&vfs);
            let db = open("a.db", vfs.name());
            db.pragma_update(None, "page_size", page).unwrap();
            if journal == "wal" {
                db.execute_batch("PRAGMA locking_mode = EXCLUSIVE").unwrap();
            }
            if found.is_empty() {
                db.execute_batch("CREATE TABLE t (x)").unwrap();
            }
            assert!(created.is_err() || found.len() == 401, "{techniques}, {journal}, request {n}: {}", found.len());
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
    for techniques in ["", HOT] {
        let (vfs, control) = drive(techniques, 4096);
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
