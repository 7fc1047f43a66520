//! Whatever stores its files, SQLite gives the same answers.

use crate::configurations;
use crate::support;
use configurations::{CONFIGURATIONS, techniques_for};
use flashwise_block::ByteSize;
use flashwise_sqlite::{Backend, Layout, Vfs, VfsOptions, info};
use rusqlite::{Connection, OpenFlags};
use support::{Random, TestDrive, dump, integrity, open, unique};

pub const HOT: Layout = Layout::HotLocations { chunk: ByteSize::kib(64), offset: ByteSize::kib(32) };
/// For SQLite's default pages.
pub const HOT_4K: Layout = Layout::HotLocations { chunk: ByteSize::kib(4), offset: ByteSize::kib(2) };

/// The layouts of a database with such pages: no chunk is shorter than 4 KiB.
pub fn layouts(page: u32) -> impl Iterator<Item = Layout> {
    let chunk = u64::from(page);
    let hot = Layout::HotLocations { chunk: ByteSize(chunk), offset: ByteSize(chunk / 2) };
    std::iter::once(Layout::Plain).chain((page >= 4096).then_some(hot))
}

/// SQL of every kind, with what is not deterministic left out.
fn work(db: &Connection) {
    let mut random = Random(7);
    db.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT, b BLOB); CREATE INDEX tv ON t (v);").unwrap();
    for _ in 0..6 {
        db.execute_batch("BEGIN").unwrap();
        for _ in 0..60 {
            let key = (random.next() % 5000) as i64;
            let blob = vec![key as u8; (random.next() % 3000) as usize];
            let sql = "INSERT OR REPLACE INTO t VALUES (?1, ?2, ?3)";
            db.execute(sql, rusqlite::params![key, format!("value {}", random.next()), blob]).unwrap();
        }
        db.execute_batch("COMMIT").unwrap();
    }
    db.execute_batch(
        "UPDATE t SET v = v || ' changed' WHERE k % 3 = 0;
         DELETE FROM t WHERE k % 4 = 1;
         BEGIN; DELETE FROM t; CREATE TABLE gone (x); ROLLBACK;
         BEGIN; UPDATE t SET b = zeroblob(200000) WHERE k = (SELECT min(k) FROM t); COMMIT;
         BEGIN; INSERT INTO t SELECT k + 100000, v, b FROM t; SAVEPOINT s; DELETE FROM t WHERE k > 50; ROLLBACK TO s; COMMIT;
         VACUUM;
         DELETE FROM t WHERE k > 101000;
         PRAGMA incremental_vacuum;
         INSERT INTO t SELECT k + 200000, v, b FROM t WHERE k < 500;",
    )
    .unwrap();
}

fn expected(page: u32) -> Vec<String> {
    let db = Connection::open_in_memory().unwrap();
    db.pragma_update(None, "page_size", page).unwrap();
    work(&db);
    dump(&db)
}

fn prepare(db: &Connection, page: u32, journal: &str) {
    db.pragma_update(None, "page_size", page).unwrap();
    // A small cache makes SQLite spill pages in the middle of transactions.
    db.execute_batch("PRAGMA cache_size = 10;").unwrap();
    let set: String = db.query_row(&format!("PRAGMA journal_mode = {journal}"), [], |row| row.get(0)).unwrap();
    assert_eq!(set, journal);
}

pub fn check(path: &str, vfs: &Vfs, page: u32, journal: &str) {
    let case = format!("{:?}, pages of {page}, journal mode {journal}", vfs.layout());
    let db = open(path, vfs.name());
    prepare(&db, page, journal);
    work(&db);
    let expected = expected(page);
    assert_eq!(dump(&db), expected, "{case}");
    assert_eq!(integrity(&db), "ok", "{case}");
    drop(db);
    let db = open(path, vfs.name());
    assert_eq!(dump(&db), expected, "{case}, opened again");
    assert_eq!(integrity(&db), "ok", "{case}, opened again");
    assert_eq!(db.query_row("PRAGMA page_size", [], |row| row.get::<_, u32>(0)).unwrap(), page);
}

pub const CASES: [(u32, &str); 8] = [
    (512, "delete"),
    (4096, "delete"),
    (65536, "delete"),
    (4096, "truncate"),
    (65536, "persist"),
    (4096, "memory"),
    (4096, "wal"),
    (65536, "wal"),
];

#[test]
fn on_a_drive_sql_gives_the_same_as_in_memory() {
    for (n, (page, journal)) in CASES.into_iter().enumerate() {
        for layout in layouts(page) {
            let (drive, _) = TestDrive::new(64, if n % 2 == 0 { 512 } else { 4096 });
            let options = VfsOptions { layout, record: true, ..VfsOptions::PLAIN };
            let vfs = Vfs::register(&unique("drive"), Backend::Drive(drive), options).unwrap();
            check("a.db", &vfs, page, journal);
            assert!(vfs.now().0 > 0 && vfs.io_time() == vfs.now() && vfs.host_cpu_time().0 > 0);
            let counters = vfs.counters();
            assert!(counters.host_reads > 0 && counters.host_writes > 0 && counters.flushes > 0);
            let trace = vfs.take_trace();
            assert_eq!(
                trace.records.len() as u64,
                counters.host_reads + counters.host_writes + counters.flushes + counters.trims
            );
            assert!(vfs.take_trace().records.is_empty());
            vfs.into_device().unwrap();
        }
    }
}

/// Two writes that go together then share a block, behind the end of the file too.
#[test]
fn pages_shorter_than_a_logical_block_are_kept_under_every_technique() {
    for configuration in &CONFIGURATIONS {
        for (page, journal) in [(512, "delete"), (1024, "truncate"), (2048, "persist"), (1024, "wal")] {
            let (drive, _) = TestDrive::new(64, 4096);
            let techniques = techniques_for(configuration.techniques, Some(page));
            let options = VfsOptions::from_text(&techniques).unwrap();
            let vfs = Vfs::register(&unique("drive"), Backend::Drive(drive), options).unwrap();
            check("a.db", &vfs, page, journal);
        }
    }
}

#[test]
fn in_a_directory_sql_gives_the_same_as_in_memory() {
    let works = |layout: Layout, page: u32, journal: &str| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let options = VfsOptions { layout, record: true, ..VfsOptions::PLAIN };
        let vfs = Vfs::register(&unique("directory"), Backend::Directory, options).unwrap();
        check(path.to_str().unwrap(), &vfs, page, journal);
        let counters = vfs.counters();
        let trace = vfs.take_trace();
        assert_eq!(trace.records.len() as u64, counters.host_reads + counters.host_writes + counters.flushes);
        assert_eq!(info(&path).unwrap().layout, layout.name());
    };
    // Side by side, since they wait for the disk.
    std::thread::scope(|scope| {
        for (page, journal) in CASES {
            scope.spawn(move || layouts(page).for_each(|layout| works(layout, page, journal)));
        }
    });
}

#[test]
fn temporary_files_of_large_sorts_go_through_the_vfs_and_leave_no_space_behind() {
    let (drive, control) = TestDrive::new(64, 4096);
    let vfs = Vfs::register(&unique("sort"), Backend::Drive(drive), VfsOptions::default()).unwrap();
    let db = open("a.db", vfs.name());
    db.execute_batch(
        "PRAGMA cache_size = 10; PRAGMA temp_store = FILE; CREATE TABLE t (x);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         INSERT INTO t SELECT (i * 7919) % 20011 || hex(zeroblob(50)) FROM n;",
    )
    .unwrap();
    for _ in 0..20 {
        let sorted: i64 = db
            .query_row("SELECT count(*) FROM (SELECT x FROM t ORDER BY x DESC LIMIT 19000)", [], |row| row.get(0))
            .unwrap();
        assert_eq!(sorted, 19000);
        db.execute_batch("CREATE TEMP TABLE u AS SELECT * FROM t; DROP TABLE u;").unwrap();
    }
    assert!(control.lock().unwrap().log.len() > 100);
}

#[test]
fn two_connections_lock_each_other_out_on_a_drive() {
    let (drive, _) = TestDrive::new(16, 4096);
    let vfs = Vfs::register(&unique("locks"), Backend::Drive(drive), VfsOptions::default()).unwrap();
    let (a, b) = (open("a.db", vfs.name()), open("a.db", vfs.name()));
    a.busy_timeout(std::time::Duration::ZERO).unwrap();
    b.busy_timeout(std::time::Duration::ZERO).unwrap();
    a.execute_batch("CREATE TABLE t (x); BEGIN IMMEDIATE; INSERT INTO t VALUES (1);").unwrap();
    let busy = |result: rusqlite::Result<()>| {
        assert_eq!(result.unwrap_err().sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy));
    };
    busy(b.execute_batch("BEGIN IMMEDIATE"));
    let count = |db: &Connection| db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
    assert_eq!(count(&b).unwrap(), 0, "readers go on beside a reserved lock");
    // A reader in the middle of a statement keeps the writer from committing.
    let mut reading = b.prepare("SELECT * FROM sqlite_schema").unwrap();
    let mut rows = reading.query([]).unwrap();
    assert!(rows.next().unwrap().is_some());
    busy(a.execute_batch("COMMIT"));
    let c = open("a.db", vfs.name());
    c.busy_timeout(std::time::Duration::ZERO).unwrap();
    busy(count(&c).map(drop));
    drop(rows);
    drop(reading);
    a.execute_batch("COMMIT").unwrap();
    assert_eq!((count(&b).unwrap(), count(&c).unwrap()), (1, 1));
    b.execute_batch("INSERT INTO t VALUES (2)").unwrap();
    assert_eq!(count(&a).unwrap(), 2);
}

#[test]
fn readers_of_a_write_ahead_log_on_a_drive_keep_what_they_saw_while_others_write_and_checkpoint() {
    for layout in [Layout::Plain, HOT_4K] {
        let (drive, _) = TestDrive::new(16, 4096);
        let vfs = Vfs::register(
            &unique("readers"),
            Backend::Drive(drive),
            VfsOptions { layout, record: false, ..VfsOptions::PLAIN },
        )
        .unwrap();
        let (writer, reader) = (open("a.db", vfs.name()), open("a.db", vfs.name()));
        writer.busy_timeout(std::time::Duration::ZERO).unwrap();
        reader.busy_timeout(std::time::Duration::ZERO).unwrap();
        let mode: String = writer.query_row("PRAGMA journal_mode = wal", [], |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
        writer.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1);").unwrap();
        let count = |db: &Connection| db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap();
        let busy = |sql: &str| writer.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        assert_eq!(count(&reader), 1);
        writer.execute_batch("INSERT INTO t VALUES (2)").unwrap();
        assert_eq!((count(&reader), count(&writer)), (1, 2));
        assert_eq!(busy("PRAGMA wal_checkpoint(TRUNCATE)"), 1, "the reader still needs the log");
        assert_eq!(count(&reader), 1);
        let other = reader.execute_batch("INSERT INTO t VALUES (3)").unwrap_err();
        assert_eq!(other.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy), "its snapshot is old");
        reader.execute_batch("COMMIT").unwrap();
        assert_eq!(count(&reader), 2);
        assert_eq!(busy("PRAGMA wal_checkpoint(TRUNCATE)"), 0);
        drop(writer);
        // The log goes with the last connection.
        drop(reader);
        let db = open("a.db", vfs.name());
        assert_eq!((count(&db), integrity(&db).as_str()), (2, "ok"));
    }
}

#[test]
fn threads_that_write_the_same_database_lose_nothing() {
    for layout in [Layout::Plain, HOT_4K] {
        for (directory, journal) in [(false, "delete"), (false, "wal"), (true, "wal")] {
            let dir = tempfile::tempdir().unwrap();
            let backend = if directory { Backend::Directory } else { Backend::Drive(TestDrive::new(64, 512).0) };
            let vfs =
                Vfs::register(&unique("threads"), backend, VfsOptions { layout, record: false, ..VfsOptions::PLAIN })
                    .unwrap();
            let path = dir.path().join("a.db").to_str().unwrap().to_owned();
            let setup = open(&path, vfs.name());
            setup.query_row(&format!("PRAGMA journal_mode = {journal}"), [], |_| Ok(())).unwrap();
            setup.execute_batch("CREATE TABLE t (thread, n)").unwrap();
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let (path, name) = (&path, vfs.name());
                    scope.spawn(move || {
                        let db = open(path, name);
                        db.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
                        db.pragma_update(None, "synchronous", "OFF").unwrap();
                        for n in 0..25 {
                            db.execute("INSERT INTO t VALUES (?1, ?2)", [thread, n]).unwrap();
                        }
                    });
                }
            });
            let count: i64 = setup.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
            assert_eq!((count, integrity(&setup).as_str()), (100, "ok"), "{layout:?}, {directory}, {journal}");
        }
    }
}

#[test]
fn attached_databases_commit_together() {
    for layout in [Layout::Plain, HOT_4K] {
        let dir = tempfile::tempdir().unwrap();
        let vfs = Vfs::register(
            &unique("attach"),
            Backend::Directory,
            VfsOptions { layout, record: false, ..VfsOptions::PLAIN },
        )
        .unwrap();
        let db = open(dir.path().join("a.db").to_str().unwrap(), vfs.name());
        let other = dir.path().join("b.db");
        db.execute("ATTACH ?1 AS b", [other.to_str().unwrap()]).unwrap();
        db.execute_batch(
            "CREATE TABLE t (x); CREATE TABLE b.u (x); BEGIN; INSERT INTO t VALUES (1); INSERT INTO u VALUES (2); COMMIT;",
        )
        .unwrap();
        drop(db);
        assert_eq!(info(&other).unwrap().layout, layout.name());
        let db = open(other.to_str().unwrap(), vfs.name());
        assert_eq!(db.query_row("SELECT x FROM u", [], |row| row.get::<_, i64>(0)).unwrap(), 2);
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "journals are gone: {left:?}");
    }
}

#[test]
fn a_name_is_registered_once_and_free_after_the_drop() {
    let name = unique("name");
    let register = || Vfs::register(&name, Backend::Directory, VfsOptions::default());
    let vfs = register().unwrap();
    assert!(register().err().unwrap().to_string().contains("already registered"));
    drop(vfs);
    register().unwrap();
    assert!(Vfs::register("", Backend::Directory, VfsOptions::default()).is_err());
    assert!(Vfs::register("a\0b", Backend::Directory, VfsOptions::default()).is_err());
}

#[test]
fn a_connection_that_outlives_its_vfs_fails_softly() {
    let (drive, _) = TestDrive::new(16, 512);
    let vfs = Vfs::register(&unique("outlived"), Backend::Drive(drive), VfsOptions::default()).unwrap();
    let db = open("a.db", vfs.name());
    db.execute_batch("CREATE TABLE t (x)").unwrap();
    let name = vfs.name().to_owned();
    drop(vfs);
    assert!(db.execute_batch("INSERT INTO t VALUES (1)").is_err(), "no journal can be opened");
    drop(db);
    assert!(Connection::open_with_flags_and_vfs("a.db", OpenFlags::default(), name.as_str()).is_err());
}

#[test]
fn a_device_in_use_is_not_given_back() {
    let (drive, _) = TestDrive::new(16, 512);
    let vfs = Vfs::register(&unique("in-use"), Backend::Drive(drive), VfsOptions::default()).unwrap();
    let _db = open("a.db", vfs.name());
    let refused = vfs.into_device().err().unwrap().to_string();
    assert!(refused.contains("close the connections first"), "{refused}");
}

#[test]
fn a_full_volume_is_told_as_a_full_disk_and_loses_nothing() {
    for layout in [Layout::Plain, HOT] {
        let (drive, _) = TestDrive::new(4, 512);
        let vfs = Vfs::register(
            &unique("full"),
            Backend::Drive(drive),
            VfsOptions { layout, record: false, ..VfsOptions::PLAIN },
        )
        .unwrap();
        let db = open("a.db", vfs.name());
        db.execute_batch("PRAGMA page_size = 65536; CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
        let full = db.execute_batch("INSERT INTO t VALUES (zeroblob(8000000))").unwrap_err();
        assert_eq!(full.sqlite_error_code(), Some(rusqlite::ErrorCode::DiskFull), "{full}");
        db.execute_batch("INSERT INTO t VALUES (2)").unwrap();
        assert_eq!(db.query_row("SELECT sum(x) FROM t", [], |row| row.get::<_, i64>(0)).unwrap(), 3);
        assert_eq!(integrity(&db), "ok");
    }
}
