//! SQLite in a file system on a drive, under the model of Linux's page cache.

use flashwise_block::{ByteSize, Nanos, Operation};
use flashwise_kernel::{FileSystemKind, KernelConfig, QueueLimits};
use flashwise_sqlite::{Backend, FileSystem, SqliteError, Vfs, VfsOptions};
use flashwise_trace::FileRole;
use rusqlite::Connection;

use crate::sql::{CASES, HOT, HOT_4K, check, layouts};
use crate::support::{SharedControl, TestDrive, integrity, open, unique};

const BOTH: [FileSystemKind; 2] = [FileSystemKind::Ext4, FileSystemKind::Xfs];

fn config(file_system: FileSystemKind, memory: ByteSize) -> KernelConfig {
    KernelConfig { file_system, memory, ..KernelConfig::default() }
}

fn mounted(kernel: KernelConfig, options: VfsOptions, mib: u64) -> (Vfs, SharedControl) {
    let (device, control) = TestDrive::new(mib, 512);
    let backend = Backend::FileSystem(Box::new(FileSystem { device, kernel, measures_program: false }));
    (Vfs::register(&unique("mounted"), backend, options).unwrap(), control)
}

fn seen(control: &SharedControl, operation: Operation) -> usize {
    control.lock().unwrap().log.iter().filter(|seen| seen.operation == operation).count()
}

#[test]
fn sql_gives_the_same_as_in_memory() {
    for (n, (page, journal)) in CASES.into_iter().enumerate() {
        for layout in layouts(page) {
            // A page cache of 16 pages has to write back and evict all the time.
            let memory = if n % 3 == 0 { ByteSize::kib(64) } else { ByteSize::mib(64) };
            let options = VfsOptions { layout, record: true, ..VfsOptions::PLAIN };
            let (vfs, _) = mounted(config(BOTH[n % 2], memory), options, 400);
            check("a.db", &vfs, page, journal);
            let counters = vfs.counters();
            assert!(counters.host_writes > 0 && counters.flushes > 0 && vfs.now() >= vfs.io_time());
            let trace = vfs.take_trace();
            assert!(trace.records.iter().any(|record| record.role == FileRole::Database));
            assert!(trace.records.iter().any(|record| record.role == FileRole::Unknown), "the file system's own");
            vfs.into_device().unwrap();
        }
    }
}

/// 200 rows of 100 bytes, in a log that was checkpointed once, so that the next commits overwrite it.
fn reused_log(vfs: &Vfs) -> Connection {
    let db = open("a.db", vfs.name());
    db.execute_batch(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA wal_autocheckpoint = 0;
         CREATE TABLE t (k INTEGER PRIMARY KEY, v);
         WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < 200)
         INSERT INTO t SELECT k, randomblob(100) FROM n;",
    )
    .unwrap();
    (0..50).for_each(|_| update(&db));
    db.execute_batch("PRAGMA wal_checkpoint(RESTART)").unwrap();
    update(&db);
    db
}

fn update(db: &Connection) {
    db.execute("UPDATE t SET v = randomblob(100) WHERE k = abs(random()) % 200 + 1", []).unwrap();
}

#[test]
fn a_commit_to_a_log_that_was_written_before_is_one_flush() {
    for file_system in BOTH {
        let (vfs, control) = mounted(config(file_system, ByteSize::mib(64)), VfsOptions::PLAIN, 400);
        let db = reused_log(&vfs);
        let before = [Operation::Write, Operation::Flush].map(|operation| seen(&control, operation));
        (0..20).for_each(|_| update(&db));
        let after = [Operation::Write, Operation::Flush].map(|operation| seen(&control, operation));
        assert_eq!(after[1] - before[1], 20, "{file_system:?}");
        // A frame of 4,120 bytes may lie across two extents.
        let writes = after[0] - before[0];
        assert!((20..40).contains(&writes), "{file_system:?}: {writes} writes");
    }
}

/// Flushes a commit, as `examples/commit_rates.rs` counts them on a real ext4 or XFS: of 400 commits to a log that
/// grows, and of 1,500 after 1,000 more.
fn flushes_a_commit(file_system: FileSystemKind, parameters: &str) -> [f64; 2] {
    const ROWS: i64 = 50_000;
    let options = VfsOptions::from_text(parameters).unwrap();
    // An attached drive is behind a loop device, which has no FUA: each commit of the file system is two flushes.
    let kernel = KernelConfig { queue: QueueLimits::loop_device(), ..config(file_system, ByteSize::mib(64)) };
    let (vfs, control) = mounted(kernel, options, 400);
    let db = open("a.db", vfs.name());
    db.execute_batch(&format!(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = FULL; CREATE TABLE t (k INTEGER PRIMARY KEY, v);
         WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
         INSERT INTO t SELECT i, randomblob(100) FROM n;
         PRAGMA wal_checkpoint(TRUNCATE)"
    ))
    .unwrap();
    let mut update = db.prepare("UPDATE t SET v = randomblob(100) WHERE k = 1 + abs(random()) % ?1").unwrap();
    let mut flushes = |commits: u32| {
        let before = seen(&control, Operation::Flush);
        (0..commits).for_each(|_| _ = update.execute([ROWS]).unwrap());
        (seen(&control, Operation::Flush) - before) as f64 / f64::from(commits)
    };
    let growing = flushes(400);
    flushes(1000);
    [growing, flushes(1500)]
}

/// `docs/guide/sqlite.md`, "One flush a commit", has the figures of the real kernel.
#[test]
fn a_commit_through_this_vfs_is_one_flush_as_on_a_real_file_system() {
    const REAL: [f64; 2] = [1.02, 1.00];
    // SQLite's own VFS in the model is that of a build with `fdatasync`: only a log that grows takes two.
    const OF_SQLITE: [f64; 2] = [2.00, 1.00];
    let cases = [
        ("log-sync=extend", REAL),
        ("concurrent-write-back=8", REAL),
        ("write-aligned-stripes=64k", REAL),
        ("", REAL),
        ("log-sync=data", REAL),
        ("log-sync=parent", OF_SQLITE),
        ("concurrent-write-back=8&log-sync=parent", OF_SQLITE),
    ];
    for (file_system, (parameters, real)) in BOTH.into_iter().flat_map(|kind| cases.map(|case| (kind, case))) {
        let modelled = flushes_a_commit(file_system, parameters);
        println!("{file_system:?}, '{parameters}': {:.3} {:.3}", modelled[0], modelled[1]);
        let is_near = [0, 1].into_iter().all(|log| (modelled[log] - real[log]).abs() < 0.02);
        assert!(is_near, "{file_system:?}, '{parameters}': {modelled:?}, not {real:?}");
    }
}

#[test]
fn what_is_cached_is_read_without_a_request_until_the_cache_is_dropped() {
    let (vfs, control) = mounted(config(FileSystemKind::Ext4, ByteSize::mib(64)), VfsOptions::PLAIN, 64);
    let db = reused_log(&vfs);
    let sum = |db: &Connection| db.query_row("SELECT sum(length(v)) FROM t", [], |row| row.get::<_, i64>(0)).unwrap();
    let reads = seen(&control, Operation::Read);
    db.execute_batch("PRAGMA shrink_memory").unwrap();
    assert_eq!(sum(&db), 20_000);
    assert_eq!(seen(&control, Operation::Read), reads);
    vfs.drop_caches().unwrap();
    db.execute_batch("PRAGMA shrink_memory").unwrap();
    assert_eq!(sum(&db), 20_000);
    assert!(seen(&control, Operation::Read) > reads);
}

#[test]
fn a_full_file_system_is_an_error_and_the_database_stays_sound() {
    for file_system in BOTH {
        let mib = if file_system == FileSystemKind::Ext4 { 32 } else { 304 };
        let (vfs, _) = mounted(config(file_system, ByteSize::mib(16)), VfsOptions::PLAIN, mib);
        let db = open("a.db", vfs.name());
        db.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (v)").unwrap();
        let fill = || db.execute("INSERT INTO t VALUES (zeroblob(4000000))", []);
        let failed = std::iter::repeat_with(fill).take(200).find_map(Result::err).unwrap();
        assert_eq!(failed.sqlite_error_code(), Some(rusqlite::ErrorCode::DiskFull), "{failed}");
        assert_eq!(integrity(&db), "ok", "{file_system:?}");
        drop(db);
        assert_eq!(integrity(&open("a.db", vfs.name())), "ok", "{file_system:?}");
    }
}

#[test]
fn an_imported_database_has_its_pages_at_hot_locations_of_the_drive() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain.db");
    let db = Connection::open(&plain).unwrap();
    db.execute_batch(
        "PRAGMA page_size = 65536; CREATE TABLE t (k INTEGER PRIMARY KEY, v);
         WITH RECURSIVE n(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM n WHERE k < 100)
         INSERT INTO t SELECT k, randomblob(60000) FROM n;",
    )
    .unwrap();
    drop(db);
    // With little memory the flusher starts before the import ends.
    for (file_system, memory) in BOTH.into_iter().flat_map(|kind| [64, 24].map(|mib| (kind, ByteSize::mib(mib)))) {
        let options = VfsOptions { layout: HOT, ..VfsOptions::PLAIN };
        let (vfs, control) = mounted(config(file_system, memory), options, 400);
        vfs.import_file(&plain, "a.db").unwrap();
        vfs.drop_caches().unwrap();
        control.lock().unwrap().log.clear();
        let db = open("a.db", vfs.name());
        for k in (0..100).map(|n| n * 37 % 101) {
            db.query_row("SELECT v FROM t WHERE k = ?1", [k], |row| row.get::<_, Vec<u8>>(0)).unwrap();
        }
        let log = &control.lock().unwrap().log;
        let reads = || log.iter().filter(|seen| seen.operation == Operation::Read && seen.length >= 65536);
        assert!(reads().count() > 80, "{file_system:?}, {memory}: {}", reads().count());
        // Where the page before is cached, read-ahead takes a page for a part of a stream.
        let hot = reads().filter(|seen| seen.offset % 65536 == 32768).count();
        assert!(hot * 10 > reads().count() * 9, "{file_system:?}, {memory}: {hot} of {}", reads().count());
    }
}

#[test]
fn a_run_is_the_same_each_time_where_the_program_takes_no_time() {
    let time = || {
        let (vfs, _) = mounted(config(FileSystemKind::Ext4, ByteSize::mib(1)), VfsOptions::PLAIN, 64);
        check("a.db", &vfs, 4096, "wal");
        vfs.now()
    };
    assert_eq!(time(), time());
}

#[test]
fn the_time_that_a_program_computes_passes_on_the_drives_clock() {
    let (device, _) = TestDrive::new(64, 512);
    let kernel = config(FileSystemKind::Ext4, ByteSize::mib(1));
    let backend = Backend::FileSystem(Box::new(FileSystem { device, kernel, measures_program: true }));
    let vfs = Vfs::register(&unique("mounted"), backend, VfsOptions::PLAIN).unwrap();
    let db = open("a.db", vfs.name());
    db.execute_batch("CREATE TABLE t (v)").unwrap();
    let began = vfs.now();
    let count =
        "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < 300000) SELECT count(*) FROM n";
    db.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap();
    // 300,000 steps of a recursive query: far more than 100 ns and less than a minute.
    let took = vfs.now().since(began);
    assert!(took > Nanos::millis(1) && took < Nanos::secs(60), "{took}");
}

#[test]
fn an_import_that_fails_anywhere_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain.db");
    Connection::open(&plain)
        .unwrap()
        .execute_batch("CREATE TABLE t (v); INSERT INTO t VALUES (randomblob(9000))")
        .unwrap();
    let options = VfsOptions { layout: HOT_4K, ..VfsOptions::PLAIN };
    for file_system in BOTH {
        let mut failures = 0;
        for nth in 1..200 {
            let (vfs, control) = mounted(config(file_system, ByteSize::mib(64)), options, 400);
            // What was in memory of the file system has to be read again.
            drop(reused_log(&vfs));
            vfs.drop_caches().unwrap();
            control.lock().unwrap().fail_at = nth;
            let imported = vfs.import_file(&plain, "b.db");
            control.lock().unwrap().heal();
            if imported.is_ok() {
                break;
            }
            failures += 1;
            let place = format!("{file_system:?}, request {nth}: {}", imported.unwrap_err());
            let exported = vfs.export_file("b.db", &dir.path().join("exported.db"));
            assert!(matches!(exported, Err(SqliteError::NotFound(_))), "{place}");
        }
        assert!(failures > 2, "{file_system:?}: {failures}");
    }
}

/// Of discards too, which come when the file is gone.
#[test]
fn requests_are_recorded_with_the_file_whose_bytes_they_are() {
    for file_system in BOTH {
        let kernel = KernelConfig { discard: true, ..config(file_system, ByteSize::mib(64)) };
        let (vfs, _) = mounted(kernel, VfsOptions { record: true, ..VfsOptions::PLAIN }, 400);
        let db = open("a.db", vfs.name());
        db.execute_batch(
            "PRAGMA journal_mode = persist; CREATE TABLE t (v); INSERT INTO t VALUES (zeroblob(1000000)); UPDATE t SET v = 1;
             PRAGMA journal_mode = delete",
        )
        .unwrap();
        // XFS frees the blocks of a file that is gone a little later.
        vfs.program_clock().advance(Nanos::secs(1));
        db.execute_batch("INSERT INTO t VALUES (2)").unwrap();
        drop(db);
        vfs.drop_caches().unwrap();
        let records = vfs.take_trace().records;
        let bytes = |operation: Operation, role: FileRole| -> u64 {
            let wanted = records.iter().filter(|record| (record.operation, record.role) == (operation, role));
            wanted.map(|record| record.length.0).sum()
        };
        assert!(bytes(Operation::Write, FileRole::Database) >= 1_000_000, "{file_system:?}");
        assert!(bytes(Operation::Write, FileRole::Journal) >= 4096, "{file_system:?}");
        assert!(bytes(Operation::Trim, FileRole::Journal) >= 4096, "{file_system:?}: the journal is gone");
        assert_eq!(bytes(Operation::Trim, FileRole::Unknown), 0, "{file_system:?}");
    }
}

#[test]
fn files_of_the_vfs_own_take_no_name_of_a_users() {
    let (vfs, _) = mounted(config(FileSystemKind::Ext4, ByteSize::mib(1)), VfsOptions::PLAIN, 64);
    let names: Vec<String> = (0..30).map(|n| format!("temporary-{n}")).chain(["a.db-shm".to_owned()]).collect();
    for name in &names {
        open(name, vfs.name()).execute_batch("CREATE TABLE t (v); INSERT INTO t VALUES (4)").unwrap();
    }
    let db = open("a.db", vfs.name());
    // A log's index; a sorter and an index that do not fit into memory.
    db.execute_batch(
        "PRAGMA journal_mode = wal; PRAGMA temp_store = file; PRAGMA cache_size = 5; PRAGMA temp.cache_size = 5;
         CREATE TABLE t (v); CREATE TEMP TABLE u (v);
         WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < 2000)
         INSERT INTO t SELECT hex(randomblob(100)) FROM n;
         INSERT INTO u SELECT v FROM t ORDER BY v; CREATE INDEX i ON u (v);",
    )
    .unwrap();
    drop(db);
    for name in &names {
        let value = open(name, vfs.name()).query_row("SELECT v FROM t", [], |row| row.get::<_, i64>(0));
        assert_eq!(value, Ok(4), "{name}");
    }
    let reserved = Connection::open_with_flags_and_vfs(".flashwise-shm-1", Default::default(), vfs.name());
    assert!(reserved.and_then(|db| db.execute_batch("CREATE TABLE t (v)")).is_err());
    assert!(vfs.last_error().unwrap().contains("reserved"), "{:?}", vfs.last_error());
}

/// A page at a hot location reaches the drive in two requests, one up to the chunk's end and one from there, although
/// both halves are in the page cache; otherwise the location would not be hot any more.
#[test]
fn pages_at_hot_locations_reach_the_drive_in_the_pieces_that_keep_them_hot() {
    const CHUNK: u64 = 65536;
    for file_system in BOTH {
        let options = VfsOptions { layout: HOT, ..VfsOptions::PLAIN };
        let (vfs, control) = mounted(config(file_system, ByteSize::mib(256)), options, 400);
        let db = open("a.db", vfs.name());
        db.execute_batch(
            "PRAGMA page_size = 65536; PRAGMA synchronous = full;
             CREATE TABLE t (k INTEGER PRIMARY KEY, v);
             WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < 5000)
             INSERT INTO t SELECT k, randomblob(1000) FROM n;",
        )
        .unwrap();
        control.lock().unwrap().log.clear();
        db.execute_batch("UPDATE t SET v = randomblob(1000) WHERE k % 500 = 0").unwrap();
        let log = &control.lock().unwrap().log;
        let long = log.iter().filter(|seen| seen.operation == Operation::Write && seen.length >= CHUNK / 2);
        // Ten leaves and the page of the change counter, two pieces each; the journal's copies are not at places of
        // chunks, and end where they end.
        let halves = long.filter(|seen| seen.length == CHUNK / 2).count();
        assert!((20..=22).contains(&halves), "{file_system:?}: {halves} halves in {log:#?}");
    }
}
