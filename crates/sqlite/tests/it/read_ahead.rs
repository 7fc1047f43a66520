//! concurrent-read-ahead on real files and on a drive: the answers are the same, and the pages are asked for before.

use crate::support;
use std::path::Path;

use flashwise_block::{Operation, RegisteredFile};
use flashwise_sqlite::{Backend, Vfs, VfsOptions, import};
use rusqlite::Connection;
use support::{SharedControl, TestDrive, integrity, open, unique};

const ROWS: i64 = 5000;
const SCANS: [&str; 3] = [
    "SELECT k, v FROM t ORDER BY k",
    "SELECT k, v FROM t ORDER BY k DESC",
    "SELECT k, v FROM t WHERE v > 'A' ORDER BY v",
];

/// A plain database whose rows came in no order: neighbours in key order lie anywhere.
fn make(path: &Path) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(&format!(
        "CREATE TABLE t (k INTEGER PRIMARY KEY, v); CREATE INDEX tv ON t (v);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS} - 1)
         INSERT INTO t SELECT i * 1597 % {ROWS}, hex(randomblob(100)) FROM n"
    ))
    .unwrap();
}

fn rows(db: &Connection, sql: &str) -> Vec<(i64, String)> {
    let mut select = db.prepare(sql).unwrap();
    select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

fn vfs(backend: Backend, techniques: &str) -> Vfs {
    let options = VfsOptions { record: true, ..VfsOptions::from_text(techniques).unwrap() };
    Vfs::register(&unique("ahead"), backend, options).unwrap()
}

fn on_drive(host: &Path, techniques: &str) -> (Vfs, SharedControl) {
    let (drive, control) = TestDrive::new(16, 512);
    let vfs = vfs(Backend::Drive(drive), techniques);
    vfs.import_file(host, "a.db").unwrap();
    control.lock().unwrap().log.clear();
    (vfs, control)
}

#[test]
fn in_a_directory_a_scan_in_key_order_asks_for_its_pages_and_lookups_ask_for_none() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain.db");
    make(&plain);
    if RegisteredFile::open(&plain).is_err() {
        return println!("skipped: this kernel has no io_uring that opens files without a descriptor");
    }
    let own = Connection::open(&plain).unwrap();
    for layout in ["", "write-aligned-stripes=64k&"] {
        let techniques = format!("{layout}concurrent-read-ahead=8");
        let vfs = vfs(Backend::Directory, &techniques);
        let path = dir.path().join(format!("{}.db", layout.len()));
        import(&plain, &path, &VfsOptions::from_text(&techniques).unwrap()).unwrap();
        for sql in SCANS {
            let db = open(path.to_str().unwrap(), vfs.name());
            let (_, before) = (vfs.take_trace(), vfs.pages_read_ahead());
            assert_eq!(rows(&db, sql), rows(&own, sql), "{techniques}: {sql}");
            let read = vfs.take_trace().records.iter().filter(|record| record.length.0 == 4096).count() as u64;
            let asked = vfs.pages_read_ahead() - before;
            assert!(read > 100 && asked * 10 > read * 8 && asked <= read + 8, "{techniques}: {sql}: {asked} of {read}");
        }
        let db = open(path.to_str().unwrap(), vfs.name());
        let (mut select, before) = (db.prepare("SELECT v FROM t WHERE k = ?1").unwrap(), vfs.pages_read_ahead());
        for n in 0..2000 {
            let value: String = select.query_row([n * 2999 % ROWS], |row| row.get(0)).unwrap();
            assert_eq!(value.len(), 200);
        }
        assert_eq!(vfs.pages_read_ahead(), before, "{techniques}");
    }
}

#[test]
fn on_a_drive_a_scan_reads_its_pages_together() {
    let dir = tempfile::tempdir().unwrap();
    let host = dir.path().join("a.db");
    make(&host);
    let own = Connection::open(&host).unwrap();
    for layout in ["", "write-aligned-stripes=64k&"] {
        for sql in SCANS {
            let mut times = Vec::new();
            for technique in ["", "concurrent-read-ahead=16"] {
                let (vfs, control) = on_drive(&host, &format!("{layout}{technique}"));
                let db = open("a.db", vfs.name());
                let began = vfs.now();
                assert_eq!(rows(&db, sql), rows(&own, sql), "{technique}: {sql}");
                times.push(vfs.now().since(began).0);
                let seen = &control.lock().unwrap().log;
                let most = seen.iter().map(|seen| seen.in_flight).max().unwrap();
                // Two interior pages may be among them, and the one that SQLite waits for.
                assert_eq!((most > 8, most <= 18), (!technique.is_empty(), true), "{most} in flight: {sql}");
                assert_eq!(vfs.pages_read_ahead() > 50, !technique.is_empty());
            }
            assert!(times[1] * 3 < times[0], "{sql}: {times:?} ns without and with");
        }
    }
}

/// A connection has pages that it read ahead while another one writes them, to the database or to its log and back.
#[test]
fn what_was_read_ahead_is_forgotten_when_anybody_writes() {
    let dir = tempfile::tempdir().unwrap();
    let host = dir.path().join("a.db");
    make(&host);
    for journal in ["delete", "truncate", "wal"] {
        let (vfs, _) = on_drive(&host, "concurrent-read-ahead=64");
        let (reader, writer) = (open("a.db", vfs.name()), open("a.db", vfs.name()));
        writer.query_row(&format!("PRAGMA journal_mode = {journal}"), [], |_| Ok(())).unwrap();
        for round in 0..40 {
            let from = round * 117;
            let some = "SELECT k, v FROM t WHERE k >= ?1 ORDER BY k LIMIT 60";
            let mut select = reader.prepare(some).unwrap();
            assert_eq!(select.query_map([from], |_| Ok(())).unwrap().count(), 60);
            let before = vfs.pages_read_ahead();
            writer.execute("UPDATE t SET v = ?1 || substr(v, 3)", [format!("{round:02}")]).unwrap();
            writer.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
            let found = rows(&reader, "SELECT k, v FROM t ORDER BY k");
            assert_eq!(found.len() as i64, ROWS);
            assert!(found.iter().all(|(_, v)| v.starts_with(&format!("{round:02}"))), "{journal}, round {round}");
            assert!(before > 0);
        }
        assert_eq!(integrity(&reader), "ok");
    }
}

#[test]
fn a_read_ahead_that_fails_fails_no_scan() {
    let dir = tempfile::tempdir().unwrap();
    let host = dir.path().join("a.db");
    make(&host);
    let own = Connection::open(&host).unwrap();
    let (vfs, control) = on_drive(&host, "concurrent-read-ahead=8");
    let (mut failed, mut survived) = (0, 0);
    for n in 1..120 {
        let db = open("a.db", vfs.name());
        let count = |db: &Connection| db.query_row("SELECT sum(length(v)) FROM t", [], |row| row.get::<_, i64>(0));
        control.lock().unwrap().log.clear();
        control.lock().unwrap().fail_at = n;
        match count(&db) {
            Ok(found) => {
                assert_eq!(found, count(&own).unwrap());
                survived += 1;
            }
            Err(_) => failed += 1,
        }
        control.lock().unwrap().heal();
        assert_eq!(count(&db).unwrap(), count(&own).unwrap(), "request {n}");
        assert!(control.lock().unwrap().log.iter().all(|seen| seen.operation == Operation::Read));
    }
    // The reads that SQLite alone has asked for: the header, the first pages.
    assert!(survived > 100 && failed > 0, "{survived} scans came through, {failed} did not");
}
