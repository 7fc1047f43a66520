//! What a database at hot locations looks like on the drive, and the ways in and out of it.

use crate::support;
use std::path::Path;

use flashwise_block::{ByteSize, Operation};
use flashwise_sqlite::{Backend, Layout, SqliteError, Vfs, VfsOptions, export, import, info};
use flashwise_trace::{FileRole, IoRecord};
use proptest::prelude::*;
use rusqlite::Connection;
use support::{SharedControl, TestDrive, dump, integrity, open, unique};

const K: u64 = 1024;
const CHUNK: u64 = 64 * K;
const HOT: Layout = Layout::HotLocations { chunk: ByteSize::kib(64), offset: ByteSize::kib(32) };

fn hot_drive() -> (Vfs, SharedControl) {
    let (drive, control) = TestDrive::new(128, 4096);
    let vfs = Vfs::register(
        &unique("hot"),
        Backend::Drive(drive),
        VfsOptions { layout: HOT, record: true, ..VfsOptions::PLAIN },
    )
    .unwrap();
    (vfs, control)
}

fn hot_database(vfs: &Vfs, path: &str) -> Connection {
    let db = open(path, vfs.name());
    db.execute_batch("PRAGMA page_size = 65536; CREATE TABLE t (k INTEGER PRIMARY KEY, v);").unwrap();
    db
}

fn writes(records: &[IoRecord]) -> Vec<(u64, u64)> {
    let database = |r: &&IoRecord| r.role == FileRole::Database && r.operation == Operation::Write;
    records.iter().filter(database).map(|r| (r.offset.0, r.length.0)).collect()
}

fn fill(db: &Connection, rows: i64) {
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
               INSERT INTO t (v) SELECT hex(zeroblob(1000)) || i FROM n";
    db.execute(sql, [rows]).unwrap();
}

#[test]
fn every_page_is_at_its_hot_location_and_no_write_breaks_the_pattern() {
    let (vfs, _) = hot_drive();
    let db = hot_database(&vfs, "a.db");
    for _ in 0..10 {
        fill(&db, 200);
        db.execute_batch("UPDATE t SET v = v || 'x' WHERE k % 37 = 0; DELETE FROM t WHERE k % 11 = 0").unwrap();
    }
    db.execute_batch("VACUUM").unwrap();
    let trace = vfs.take_trace();
    assert!(trace.records.len() > 100);
    for (offset, length) in writes(&trace.records) {
        assert!(length < CHUNK || offset % CHUNK == 0, "a write of {length} at {offset}");
        assert!(offset % (32 * K) == 0 && length % (32 * K) == 0);
    }
    let page_reads: Vec<_> = trace
        .records
        .iter()
        .filter(|r| r.role == FileRole::Database && r.operation == Operation::Read && r.length.0 == CHUNK)
        .collect();
    assert!(page_reads.len() > 10);
    assert!(page_reads.iter().all(|r| r.offset.0 % CHUNK == 32 * K), "{page_reads:?}");
}

#[test]
fn a_single_page_is_written_as_two_halves_that_are_in_flight_together() {
    let (vfs, control) = hot_drive();
    let db = hot_database(&vfs, "a.db");
    fill(&db, 500);
    db.execute_batch("SELECT count(*) FROM t").unwrap();
    vfs.take_trace();
    control.lock().unwrap().log.clear();
    db.execute_batch("UPDATE t SET v = 'y' || substr(v, 2) WHERE k = 250").unwrap();
    let written = writes(&vfs.take_trace().records);
    // The row's page and page 1 with its change counter; each is two halves of one page.
    assert_eq!(written.len(), 4, "{written:?}");
    assert_eq!(written[..2], [(32 * K, 32 * K), (64 * K, 32 * K)], "page 1");
    let (at, length) = written[2];
    assert_eq!((at % CHUNK, length, written[3]), (32 * K, 32 * K, (at + 32 * K, 32 * K)));
    let log = &control.lock().unwrap().log;
    let halves: Vec<_> = log.iter().filter(|s| s.operation == Operation::Write && s.length == 32 * K).collect();
    assert_eq!(halves.iter().map(|s| s.in_flight).collect::<Vec<_>>(), [0, 1, 0, 1]);
}

#[test]
fn adjacent_pages_are_written_as_one_run() {
    let (vfs, _) = hot_drive();
    let db = hot_database(&vfs, "a.db");
    vfs.take_trace();
    fill(&db, 300);
    let written = writes(&vfs.take_trace().records);
    let (first, last) = (written[0], written[written.len() - 1]);
    assert_eq!(first, (32 * K, 32 * K), "up to the next chunk");
    assert_eq!(last.1, 32 * K, "the tail");
    assert_eq!(last.0 % CHUNK, 0);
    let middle = &written[1..written.len() - 1];
    assert!(middle.iter().all(|&(at, length)| at % CHUNK == 0 && length % CHUNK == 0));
    assert!(middle.iter().any(|&(_, length)| length == 256 * K), "as long as the drive takes: {written:?}");
    let sum: u64 = written.iter().map(|&(_, length)| length).sum();
    assert_eq!(sum, last.0 + last.1 - first.0, "nothing twice, no gaps");
}

#[test]
fn everything_is_written_before_the_flush_of_a_sync_and_nothing_is_in_flight_beside_it() {
    for layout in [Layout::Plain, HOT] {
        let (drive, control) = TestDrive::new(64, 4096);
        let vfs = Vfs::register(
            &unique("sync"),
            Backend::Drive(drive),
            VfsOptions { layout, record: true, ..VfsOptions::PLAIN },
        )
        .unwrap();
        let db = hot_database(&vfs, "a.db");
        vfs.take_trace();
        control.lock().unwrap().log.clear();
        for _ in 0..5 {
            fill(&db, 100);
            let log = std::mem::take(&mut control.lock().unwrap().log);
            assert!(log.iter().filter(|s| s.operation == Operation::Flush).all(|s| s.in_flight == 0));
            // After a commit nothing but trims and reads may follow the last flush.
            let behind = log.iter().rev().take_while(|s| s.operation != Operation::Flush);
            assert!(behind.clone().all(|s| s.operation != Operation::Write), "{:?}", behind.collect::<Vec<_>>());
        }
        let records = vfs.take_trace().records;
        // The journal is durable before the first page of each transaction is written.
        let mut journal_flushed = false;
        for record in &records {
            match (record.role, record.operation) {
                (FileRole::Journal, Operation::Flush) => journal_flushed = true,
                (FileRole::Database, Operation::Flush) => journal_flushed = false,
                (FileRole::Database, Operation::Write) => assert!(journal_flushed, "{record:?}"),
                _ => {}
            }
        }
    }
}

#[test]
fn in_the_plain_layout_each_write_is_one_request_at_a_time() {
    let (drive, control) = TestDrive::new(64, 4096);
    let vfs = Vfs::register(&unique("plain"), Backend::Drive(drive), VfsOptions::default()).unwrap();
    let db = hot_database(&vfs, "a.db");
    control.lock().unwrap().log.clear();
    fill(&db, 100);
    let log = &control.lock().unwrap().log;
    let pages: Vec<_> = log.iter().filter(|s| s.operation == Operation::Write && s.length == CHUNK).collect();
    assert!(pages.len() >= 3 && pages.iter().all(|s| s.in_flight == 0 && s.offset % CHUNK == 0), "{pages:?}");
}

/// On a drive that merges units, each unit is then opened once. SQLite sorts the pages of a checkpoint and of a commit,
/// and what is held back is written in that order.
#[test]
fn a_checkpoint_and_a_commit_write_pages_in_the_order_of_the_file() {
    for (layout, write_back_depth, journal) in [Layout::Plain, HOT]
        .into_iter()
        .flat_map(|layout| [(layout, 0, "wal"), (layout, 4, "wal"), (layout, 4, "delete")])
    {
        let (drive, _) = TestDrive::new(128, 4096);
        let options = VfsOptions { layout, write_back_depth, record: true, ..VfsOptions::PLAIN };
        let vfs = Vfs::register(&unique("order"), Backend::Drive(drive), options).unwrap();
        let db = hot_database(&vfs, "a.db");
        fill(&db, 2000);
        db.execute_batch(&format!("PRAGMA cache_size = -32000; PRAGMA journal_mode = {journal}")).unwrap();
        db.execute_batch("PRAGMA wal_autocheckpoint = 0; BEGIN").unwrap();
        vfs.take_trace();
        for n in 0..500 {
            // Each page several times, in an order that is none of the file's.
            db.execute("UPDATE t SET v = v || 'x' WHERE k = ?1", [n * 1237 % 2000]).unwrap();
        }
        db.execute_batch("COMMIT; PRAGMA wal_checkpoint").unwrap();
        let written = writes(&vfs.take_trace().records);
        assert!(written.len() >= 10 && written.is_sorted(), "{layout:?}, {write_back_depth}, {journal}: {written:?}");
    }
}

#[test]
fn plain_sqlite_refuses_a_database_at_hot_locations_and_an_export_is_plain() {
    let dir = tempfile::tempdir().unwrap();
    let (stored, plain) = (dir.path().join("a.db"), dir.path().join("plain.db"));
    let vfs = Vfs::register(
        &unique("dir"),
        Backend::Directory,
        VfsOptions { layout: HOT, record: false, ..VfsOptions::PLAIN },
    )
    .unwrap();
    let db = hot_database(&vfs, stored.to_str().unwrap());
    fill(&db, 300);
    let expected = dump(&db);
    let in_use = vfs.export_file(stored.to_str().unwrap(), &plain).unwrap_err();
    assert!(matches!(in_use, SqliteError::InUse { handles: 1, .. }), "{in_use}");
    drop(db);

    let refused = Connection::open(&stored).unwrap().query_row("SELECT * FROM t", [], |_| Ok(())).unwrap_err();
    assert!(refused.to_string().contains("open it with vfs=flashwise"), "{refused}");

    let told = info(&stored).unwrap();
    assert_eq!((told.layout.as_str(), told.version, told.header_checksum_ok), ("hot-locations", Some(1), Some(true)));
    assert_eq!((told.chunk, told.offset), (Some(ByteSize(CHUNK)), Some(ByteSize::kib(32))));
    assert_eq!((told.page_size, told.layout_page_size), (Some(ByteSize(CHUNK)), Some(ByteSize(CHUNK))));
    assert_eq!(told.pages.unwrap() * CHUNK, told.stored_bytes.0 - 32 * K);

    let summary = export(&stored, &plain).unwrap();
    assert_eq!((summary.pages, summary.layout), (told.pages.unwrap(), HOT));
    assert_eq!(std::fs::read(&plain).unwrap(), std::fs::read(&stored).unwrap()[32768..]);
    let db = Connection::open(&plain).unwrap();
    assert_eq!((integrity(&db), dump(&db)), ("ok".into(), expected));
    assert_eq!(info(&plain).unwrap().layout, "plain");

    assert!(matches!(export(&stored, &plain), Err(SqliteError::Exists(_))), "is not overwritten");
    let again = dir.path().join("again.db");
    assert!(matches!(export(&plain, &again), Err(SqliteError::AlreadyPlain(_))));
    assert!(matches!(export(&dir.path().join("none"), &again), Err(SqliteError::NotFound(_))));
    assert!(!again.exists());
}

#[test]
fn a_header_wins_over_the_option_and_a_plain_database_stays_plain() {
    let dir = tempfile::tempdir().unwrap();
    let (hot, plain) = (dir.path().join("hot.db"), dir.path().join("plain.db"));
    let register = |layout| {
        Vfs::register(&unique("wins"), Backend::Directory, VfsOptions { layout, record: false, ..VfsOptions::PLAIN })
            .unwrap()
    };
    let (as_hot, as_plain) = (register(HOT), register(Layout::Plain));
    fill(&hot_database(&as_hot, hot.to_str().unwrap()), 10);
    fill(&hot_database(&as_plain, plain.to_str().unwrap()), 10);
    for path in [&hot, &plain] {
        let other = if path == &hot { &as_plain } else { &as_hot };
        fill(&open(path.to_str().unwrap(), other.name()), 10);
        let db = open(path.to_str().unwrap(), as_plain.name());
        assert_eq!(db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap(), 20);
    }
    assert_eq!((info(&hot).unwrap().layout, info(&plain).unwrap().layout), ("hot-locations".into(), "plain".into()));
}

#[test]
fn an_import_whose_pages_would_not_be_hot_names_the_page_size_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (path, hot) = (dir.path().join("a.db"), dir.path().join("hot.db"));
    plain_database(&path, 4096, 20);
    let refused = |layout| import(&path, &hot, &VfsOptions { layout, ..VfsOptions::PLAIN }).unwrap_err().to_string();
    let why = refused(HOT);
    assert!(why.contains("pages of 4 KiB would not be at hot locations"), "{why}");
    assert!(why.contains("PRAGMA page_size = 65536; VACUUM"), "{why}");
    let why = refused(Layout::HotLocations { chunk: ByteSize::kib(128), offset: ByteSize::kib(64) });
    assert!(why.contains("SQLite has no pages of the drive's chunk, 128 KiB"), "{why}");
    assert!(!hot.exists());
}

/// A directory whose syncs cost nothing, where there is such a place: no power is cut.
fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

const JOURNALS: [&str; 6] = ["delete", "truncate", "persist", "memory", "off", "wal"];

#[test]
fn a_new_database_whose_pages_would_not_be_hot_is_refused_and_stays_empty() {
    let spilling = "PRAGMA cache_size = 1; BEGIN; CREATE TABLE t (x);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
        INSERT INTO t SELECT zeroblob(3000) FROM n; COMMIT";
    let why = "a.db: pages of 4 KiB would not be at hot locations; set the page size to the drive's chunk (in a new \
               database, PRAGMA page_size = 65536 before the first table;";
    for others in ["", "&atomic-batch=on&write-aligned-stripes=64k&concurrent-write-back=8"] {
        let options = VfsOptions::from_text(&format!("use-hot-locations=64k+32k{others}")).unwrap();
        for journal in JOURNALS {
            let dir = in_memory();
            let path = dir.path().join("a.db");
            let vfs = Vfs::install(&unique("new"), options, false).unwrap();
            let db = open(path.to_str().unwrap(), vfs.name());
            // That of a log is in the first page, and is refused as well.
            let _ = db.query_row(&format!("PRAGMA journal_mode = {journal}"), [], |_| Ok(()));
            for sql in ["CREATE TABLE t (x)", "PRAGMA user_version = 1", spilling] {
                let refused = db.execute_batch(sql).unwrap_err();
                let _ = db.execute_batch("ROLLBACK");
                let is_named = refused.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen) || journal == "off";
                assert!(is_named && vfs.last_error().unwrap().contains(why), "{journal}: {refused}");
                assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "{others}, {journal}, {sql}");
            }
            let refused = db.execute_batch("PRAGMA page_size = 32768").unwrap_err().to_string();
            assert!(refused.contains("pages of 32 KiB would not be at hot locations"), "{refused}");
            drop(db);
            let plain = Connection::open(&path).unwrap();
            plain.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
            assert_eq!(integrity(&plain), "ok", "{others}, {journal}: plain SQLite");
            drop(plain);
            let db = open(path.to_str().unwrap(), vfs.name());
            assert_eq!(db.query_row("SELECT x FROM t", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
            assert_eq!(info(&path).unwrap().layout, "plain");
        }
    }
}

#[test]
fn after_a_refusal_the_pages_of_a_chunk_make_the_database() {
    for page in [4096_u32, 16384, 32768, 65536] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db").to_str().unwrap().to_owned();
        let options = VfsOptions::from_text(&format!("use-hot-locations={page}+{}", page / 2)).unwrap();
        let wrong = if page == 4096 { 8192 } else { 4096 };
        let on_drive = (Backend::Drive(TestDrive::new(16, 512).0), "a.db");
        for (backend, path) in [on_drive, (Backend::Directory, path.as_str())] {
            let vfs = Vfs::register(&unique("again"), backend, options).unwrap();
            let db = open(path, vfs.name());
            assert!(db.execute_batch(&format!("PRAGMA page_size = {wrong}")).is_err());
            if page != 4096 {
                assert!(db.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, v)").is_err());
            }
            drop(db);
            let db = open(path, vfs.name());
            db.execute_batch(&format!("PRAGMA page_size = {page}; CREATE TABLE t (k INTEGER PRIMARY KEY, v)")).unwrap();
            fill(&db, 100);
            assert_eq!((integrity(&db).as_str(), dump(&db).len()), ("ok", 101));
        }
        assert_eq!(info(Path::new(&path)).unwrap().layout, "hot-locations");
    }
}

#[test]
fn a_change_to_pages_that_would_not_be_hot_is_refused_and_loses_nothing() {
    for others in ["", "&atomic-batch=on"] {
        let options = VfsOptions::from_text(&format!("use-hot-locations=64k+32k{others}")).unwrap();
        for journal in JOURNALS {
            let dir = in_memory();
            let (path, other) = (dir.path().join("a.db"), dir.path().join("plain.db"));
            plain_database(&other, 4096, 10);
            let vfs = Vfs::install(&unique("vacuum"), options, false).unwrap();
            let db = hot_database(&vfs, path.to_str().unwrap());
            fill(&db, 600);
            let expected = dump(&db);
            let as_before = |db: &Connection, told: &str| {
                assert_eq!((integrity(db).as_str(), dump(db) == expected), ("ok", true), "{others}, {journal}, {told}");
                assert_eq!(db.query_row("PRAGMA page_size", [], |row| row.get::<_, i64>(0)).unwrap(), 65536);
            };
            // So few pages that most are spilled in the middle of a transaction.
            db.query_row(&format!("PRAGMA journal_mode = {journal}"), [], |_| Ok(())).unwrap();
            db.execute_batch("PRAGMA cache_size = 2; PRAGMA page_size = 4096").unwrap();
            as_before(&db, "programs set the page size of what exists, too");
            let vacuum = db.execute_batch("VACUUM");
            assert_eq!(vacuum.is_ok(), journal == "wal", "a log keeps the page size: {vacuum:?}");
            as_before(&db, "VACUUM");
            // The size is set through another database, which says nothing to this one. Without a journal no failure of
            // a write can be undone.
            if journal != "off" {
                db.execute("ATTACH ?1 AS x", [other.to_str().unwrap()]).unwrap();
                let vacuum = db.execute_batch("PRAGMA page_size = 65536; PRAGMA x.page_size = 8192; VACUUM main");
                assert_eq!(vacuum.is_ok(), journal == "wal", "{vacuum:?}");
                as_before(&db, "VACUUM by another's page size");
            }
            if journal != "wal" {
                assert!(
                    vfs.last_error().unwrap().contains("KiB would not be at hot locations"),
                    "{:?}",
                    vfs.last_error()
                );
            }
            drop(db);
            let db = open(path.to_str().unwrap(), vfs.name());
            as_before(&db, "opened again");
            db.execute_batch("PRAGMA page_size = 65536; VACUUM").unwrap();
            as_before(&db, "VACUUM with the same pages");
        }
    }
}

/// A crash in the middle of a commit leaves a hot journal. Plain SQLite, opening the database all the same, would play
/// the journal back to where the pages are in a plain file; under another name it does not find it.
#[test]
fn plain_sqlite_does_not_touch_a_crashed_database_at_hot_locations() {
    for journal in ["delete", "wal"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let vfs = Vfs::register(
            &unique("crash"),
            Backend::Directory,
            VfsOptions { layout: HOT, record: false, ..VfsOptions::PLAIN },
        )
        .unwrap();
        let db = hot_database(&vfs, path.to_str().unwrap());
        db.query_row(&format!("PRAGMA journal_mode = {journal}"), [], |_| Ok(())).unwrap();
        fill(&db, 2000);
        // A cache of a few pages spills: pages of the open transaction are in the file, the journal is hot.
        db.execute_batch("PRAGMA cache_size = 2; BEGIN; UPDATE t SET v = v || v").unwrap();
        let crashed = dir.path().join("crashed");
        std::fs::create_dir(&crashed).unwrap();
        for entry in std::fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() && !entry.file_name().to_str().unwrap().ends_with("-shm") {
                std::fs::copy(entry.path(), crashed.join(entry.file_name())).unwrap();
            }
        }
        let path = crashed.join("a.db");
        let before = std::fs::read(&path).unwrap();
        assert!(crashed.join(if journal == "wal" { "a.db-fwwal" } else { "a.db-fwjournal" }).exists());
        assert!(matches!(export(&path, &crashed.join("x")), Err(SqliteError::Unfinished { .. })));
        assert!(Connection::open(&path).unwrap().query_row("SELECT * FROM t", [], |_| Ok(())).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), before);
        let db = open(path.to_str().unwrap(), vfs.name());
        let sum: i64 = db.query_row("SELECT sum(length(v)) FROM t WHERE k <= 9", [], |row| row.get(0)).unwrap();
        assert_eq!((sum, integrity(&db).as_str()), (9 * 2001, "ok"), "rolled back");
    }
}

#[test]
fn a_damaged_header_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let vfs = Vfs::register(
        &unique("bad"),
        Backend::Directory,
        VfsOptions { layout: HOT, record: false, ..VfsOptions::PLAIN },
    )
    .unwrap();
    fill(&hot_database(&vfs, path.to_str().unwrap()), 10);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[300] = 1;
    std::fs::write(&path, &bytes).unwrap();
    let opened = Connection::open_with_flags_and_vfs(&path, rusqlite::OpenFlags::default(), vfs.name());
    assert_eq!(opened.unwrap_err().sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseCorrupt));
    let why = vfs.last_error().unwrap();
    assert!(why.contains("a.db") && why.contains("checksum") && why.contains("backup"), "{why}");
    let refused = export(&path, &dir.path().join("x")).unwrap_err();
    assert!(matches!(refused, SqliteError::Header { .. }) && !dir.path().join("x").exists(), "{refused}");
    assert_eq!(info(&path).unwrap().header_checksum_ok, Some(false));
    std::fs::write(&path, &bytes[..200]).unwrap();
    assert!(info(&path).is_err());
    std::fs::write(&path, b"something else entirely").unwrap();
    assert!(matches!(info(&path), Err(SqliteError::NotADatabase { .. })));
}

fn plain_database(path: &Path, page: u64, rows: i64) -> Vec<String> {
    let db = Connection::open(path).unwrap();
    db.execute_batch(&format!("PRAGMA page_size = {page}; CREATE TABLE t (k INTEGER PRIMARY KEY, v);")).unwrap();
    fill(&db, rows);
    dump(&db)
}

#[test]
fn a_drive_takes_a_database_in_large_writes_and_gives_it_back_to_the_byte() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain.db");
    let expected = plain_database(&plain, CHUNK, 8000);
    for layout in [Layout::Plain, HOT] {
        let (drive, _) = TestDrive::new(64, 4096);
        let vfs = Vfs::register(
            &unique("import"),
            Backend::Drive(drive),
            VfsOptions { layout, record: true, ..VfsOptions::PLAIN },
        )
        .unwrap();
        let summary = vfs.import_file(&plain, "a.db").unwrap();
        assert_eq!((summary.pages_are_hot, summary.page_size.0), (layout == HOT, CHUNK));
        assert!(matches!(vfs.import_file(&plain, "a.db"), Err(SqliteError::Exists(_))));
        let written = writes(&vfs.take_trace().records);
        if layout == HOT {
            assert!(written.iter().all(|&(at, length)| length < CHUNK || at % CHUNK == 0));
        }
        assert_eq!(written.iter().map(|&(_, length)| length).max(), Some(256 * K), "the drive's longest");
        let back = dir.path().join(layout.name());
        vfs.export_file("a.db", &back).unwrap();
        assert_eq!(std::fs::read(&back).unwrap(), std::fs::read(&plain).unwrap());
        let db = open("a.db", vfs.name());
        assert_eq!((dump(&db), integrity(&db)), (expected.clone(), "ok".into()));
        assert!(matches!(vfs.export_file("a.db", &dir.path().join("y")), Err(SqliteError::InUse { .. })));
        assert!(matches!(vfs.export_file("b.db", &dir.path().join("y")), Err(SqliteError::NotFound(_))));
    }
}

#[test]
fn an_import_that_does_not_fit_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain.db");
    plain_database(&plain, 4096, 4000);
    let (drive, _) = TestDrive::new(4, 4096);
    let vfs = Vfs::register(
        &unique("small"),
        Backend::Drive(drive),
        VfsOptions { layout: HOT, record: false, ..VfsOptions::PLAIN },
    )
    .unwrap();
    assert!(vfs.import_file(&plain, "a.db").is_err());
    assert!(matches!(vfs.export_file("a.db", &dir.path().join("x")), Err(SqliteError::NotFound(_))));
    plain_database(&dir.path().join("small.db"), CHUNK, 5);
    vfs.import_file(&dir.path().join("small.db"), "a.db").unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn import_and_export_are_each_others_inverse(
        page in 9u32..=16, rows in 0i64..3000, other in 12u32..=20, eighth in 1u64..8
    ) {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        plain_database(&file("plain.db"), 1 << page, rows);
        let hot = |chunk: u32| {
            let chunk = 1u64 << chunk;
            Layout::HotLocations { chunk: ByteSize(chunk), offset: ByteSize(chunk / 8 * eighth) }
        };
        let stored = |layout| import(&file("plain.db"), &file("stored.db"), &VfsOptions { layout, ..VfsOptions::PLAIN });
        if other != page {
            let refused = stored(hot(other)).unwrap_err();
            prop_assert!(matches!(refused, SqliteError::Pages { .. }) && !file("stored.db").exists(), "{}", refused);
        }
        // No chunk is shorter than 4 KiB.
        let layout = if page < 12 { Layout::Headed } else { hot(page) };
        let summary = stored(layout).unwrap();
        prop_assert_eq!((summary.pages_are_hot, summary.layout), (page >= 12, layout));
        export(&file("stored.db"), &file("back.db")).unwrap();
        prop_assert_eq!(std::fs::read(file("plain.db")).unwrap(), std::fs::read(file("back.db")).unwrap());
        let vfs = Vfs::register(&unique("p"), Backend::Directory, VfsOptions::default()).unwrap();
        let db = open(file("stored.db").to_str().unwrap(), vfs.name());
        prop_assert_eq!(integrity(&db), "ok");
    }
}

#[test]
fn an_import_puts_pages_where_the_drive_is_hot_by_the_extents_of_the_file() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (plain, stored, again) = (dir.path().join("plain.db"), dir.path().join("hot.db"), dir.path().join("again.db"));
    let rows = "PRAGMA page_size = 65536; CREATE TABLE t (k INTEGER PRIMARY KEY, v);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80) INSERT INTO t SELECT i, zeroblob(60000) FROM n";
    Connection::open(&plain).unwrap().execute_batch(rows).unwrap();
    let options = VfsOptions { layout: HOT, ..VfsOptions::PLAIN };
    let summary = flashwise_sqlite::import(&plain, &stored, &options).unwrap();
    let info = flashwise_sqlite::info(&stored).unwrap();
    assert_eq!((summary.hot_pages, info.pages), (info.hot_pages, Some(summary.pages)));
    flashwise_sqlite::export(&stored, &again).unwrap();
    assert!(std::fs::read(&plain).unwrap() == std::fs::read(&again).unwrap());
    let shift = info.shift.unwrap().0;
    assert_eq!(std::fs::metadata(&stored).unwrap().len(), shift + info.database_bytes.0, "no room is left behind it");

    let extents = match flashwise_block::file_extents(&stored) {
        Ok(extents) => extents,
        Err(why) => {
            assert_eq!(info.hot_pages, None);
            return println!("skipped in part: {why}");
        }
    };
    let places = (0..summary.pages).map(|page| extents.to_drive(ByteSize(shift + page * 65536)).unwrap().0 % 65536);
    assert_eq!(places.filter(|&place| place == 32768).count() as u64, info.hot_pages.unwrap());
    // Room that is made at once lies in few pieces, and most of it decides.
    assert!(info.hot_pages.unwrap() * 2 > summary.pages, "{} of {}", info.hot_pages.unwrap(), summary.pages);
}
