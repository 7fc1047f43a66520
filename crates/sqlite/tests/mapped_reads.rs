//! memory-mapped-reads on real files: answers are the same while the file grows and shrinks, and who maps it is told apart.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::path::Path;

use flashwise_sqlite::{Vfs, VfsOptions, import};
use rusqlite::Connection;
use support::{integrity, open, unique};

const MIB: u64 = 1 << 20;

fn vfs(techniques: &str) -> Vfs {
    Vfs::install(&unique("mapped"), VfsOptions::from_text(techniques).unwrap(), false).unwrap()
}

fn insert(db: &Connection, rows: u32) {
    db.execute_batch(&format!(
        "CREATE TABLE IF NOT EXISTS t (k INTEGER PRIMARY KEY, v);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO t (v) SELECT hex(randomblob(400)) FROM n"
    ))
    .unwrap();
}

/// Everything, read from the file once more.
fn sum(db: &Connection) -> (i64, i64) {
    db.execute_batch("PRAGMA cache_size = 10").unwrap();
    db.query_row("SELECT count(*), sum(length(v)) + sum(unicode(substr(v, 7, 1)) * k) FROM t", [], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
    .unwrap()
}

/// How many bytes of a file this process has mapped.
fn mapped(path: &Path) -> u64 {
    let path = path.canonicalize().unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let of_file = maps.lines().filter(|line| line.ends_with(path.to_str().unwrap()));
    let length = |line: &str| {
        let (start, end) = line.split_whitespace().next()?.split_once('-')?;
        Some(u64::from_str_radix(end, 16).ok()? - u64::from_str_radix(start, 16).ok()?)
    };
    of_file.filter_map(length).sum()
}

#[test]
fn a_mapping_follows_a_file_that_another_connection_makes_longer_and_shorter() {
    let dir = tempfile::tempdir().unwrap();
    for journal in ["delete", "wal"] {
        for layout in ["", "use-hot-locations=64k+32k&", "write-aligned-stripes=64k&"] {
            let techniques = format!("{layout}memory-mapped-reads=on");
            let (ours, without) = (vfs(&techniques), vfs(layout.trim_end_matches('&')));
            let path = dir.path().join(format!("{journal}{}.db", layout.len()));
            let name = path.to_str().unwrap();
            let writer = open(name, without.name());
            writer.execute_batch(&format!("PRAGMA auto_vacuum = full; PRAGMA journal_mode = {journal}")).unwrap();
            insert(&writer, 3000);
            let reader = open(name, ours.name());
            let what = format!("{techniques}, {journal}");
            let agree = |when: &str| {
                writer.execute_batch("PRAGMA wal_checkpoint(truncate)").unwrap();
                assert_eq!(sum(&reader), sum(&writer), "{what}: {when}");
            };
            agree("as it was");
            assert!(mapped(&path) > MIB, "{what}: {} bytes are mapped", mapped(&path));
            insert(&writer, 12_000);
            agree("longer");
            agree("longer, once more");
            assert!(mapped(&path) > 9 * MIB, "{what}: {} bytes are mapped", mapped(&path));
            writer.execute_batch("DELETE FROM t WHERE k > 500").unwrap();
            agree("shorter");
            insert(&writer, 6000);
            agree("longer again");
            writer.execute_batch("DELETE FROM t; VACUUM").unwrap();
            insert(&writer, 1);
            agree("nearly empty");
            // With a log the lock is kept, and the end of the file is where nobody reads.
            assert!(journal == "wal" || mapped(&path) < MIB, "{what}: {} bytes are mapped", mapped(&path));
            assert_eq!((integrity(&reader), integrity(&writer)), ("ok".to_owned(), "ok".to_owned()), "{what}");
        }
    }
}

#[test]
fn what_a_connection_writes_itself_it_reads_from_its_mapping() {
    let dir = tempfile::tempdir().unwrap();
    for techniques in [
        "memory-mapped-reads=on",
        "memory-mapped-reads=on&concurrent-write-back=8",
        "memory-mapped-reads=on&atomic-batch=on&discard=on",
    ] {
        let ours = vfs(techniques);
        let path = dir.path().join(format!("{}.db", techniques.len()));
        let db = open(path.to_str().unwrap(), ours.name());
        db.execute_batch("PRAGMA cache_size = 10; PRAGMA auto_vacuum = full").unwrap();
        insert(&db, 3000);
        let before = sum(&db);
        db.execute_batch("BEGIN; UPDATE t SET v = hex(randomblob(700)); DELETE FROM t WHERE k % 3 = 0").unwrap();
        assert_eq!(sum(&db).0, 2000, "{techniques}");
        db.execute_batch("ROLLBACK").unwrap();
        assert_eq!(sum(&db), before, "{techniques}");
        db.execute_batch("DELETE FROM t WHERE k > 10").unwrap();
        insert(&db, 3000);
        assert_eq!(sum(&db).0, 3010, "{techniques}");
        assert_eq!(integrity(&db), "ok", "{techniques}");
        assert!(mapped(&path) > MIB, "{techniques}");
    }
}

#[test]
fn a_limit_holds_and_a_program_that_maps_the_file_itself_has_its_own_way() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain.db");
    insert(&Connection::open(&plain).unwrap(), 6000);
    let limited = vfs("memory-mapped-reads=1m");
    let db = open(plain.to_str().unwrap(), limited.name());
    assert_eq!(sum(&db).0, 6000);
    assert_eq!(mapped(&plain), MIB);
    let limit = |db: &Connection| db.query_row("PRAGMA mmap_size", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(limit(&db), 0, "SQLite itself maps nothing");
    db.execute_batch("PRAGMA mmap_size = 2097152").unwrap();
    assert_eq!(limit(&db), 2 << 20);
    let expected = sum(&Connection::open(&plain).unwrap());
    assert_eq!(sum(&db), expected);
    assert_eq!(mapped(&plain), 2 * MIB);
    db.execute_batch("PRAGMA mmap_size = 0").unwrap();
    assert_eq!((sum(&db), mapped(&plain)), (expected, 0));
}

#[test]
fn a_laid_out_database_is_mapped_as_it_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let (plain, fitted) = (dir.path().join("plain.db"), dir.path().join("fitted.db"));
    insert(&Connection::open(&plain).unwrap(), 3000);
    let techniques = "use-hot-locations=64k+32k&memory-mapped-reads=on&concurrent-read-ahead=8";
    import(&plain, &fitted, &VfsOptions::from_text(techniques).unwrap()).unwrap();
    let ours = vfs(techniques);
    let db = open(fitted.to_str().unwrap(), ours.name());
    assert_eq!(sum(&db), sum(&Connection::open(&plain).unwrap()));
    assert!(mapped(&fitted) > MIB);
}
