//! Databases beyond 4 GiB: pages behind that border are written, read, given back and recovered under every technique.
//!
//! A database is made long by a hole: its header tells so many pages, and the file ends behind the last of them. What
//! comes next is stored behind the hole.

use crate::configurations;
use crate::support;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use configurations::{CONFIGURATIONS, techniques_for};
use flashwise_sqlite::{Vfs, VfsOptions, info};
use rusqlite::{Connection, OpenFlags};
use support::unique;

const GIB: u64 = 1 << 30;
const LONG: u64 = 5 * GIB;

fn connect(path: &Path, vfs: &Vfs, journal: &str) -> Connection {
    let db = Connection::open_with_flags_and_vfs(path, OpenFlags::default(), vfs.name()).unwrap();
    db.query_row(&format!("PRAGMA journal_mode = {journal}"), [], |_| Ok(())).unwrap();
    // A small page cache, so that pages are spilled and read again.
    db.execute_batch("PRAGMA cache_size = 10").unwrap();
    db
}

/// Makes a closed database as long as `LONG`.
fn lengthen(path: &Path, page: u64) {
    let shift = info(path).unwrap().shift.map_or(0, |shift| shift.bytes());
    let file = File::options().read(true).write(true).open(path).unwrap();
    file.set_len(shift + LONG).unwrap();
    let pages = u32::try_from(LONG / page).unwrap();
    file.write_all_at(&pages.to_be_bytes(), shift + 28).unwrap();
    // The number of pages holds where the file was last changed by who knows it.
    let mut changes = [0; 4];
    file.read_exact_at(&mut changes, shift + 24).unwrap();
    file.write_all_at(&changes, shift + 92).unwrap();
}

fn sums(db: &Connection) -> (i64, i64, i64) {
    let sql = "SELECT count(*), total(k), total(length(v) * (k % 1009)) FROM t";
    db.query_row(sql, [], |row| Ok((row.get(0)?, row.get::<_, f64>(1)? as i64, row.get::<_, f64>(2)? as i64))).unwrap()
}

#[test]
fn what_lies_behind_4_gib_is_there_again() {
    for configuration in &CONFIGURATIONS {
        for (journal, page) in [("delete", 4096), ("delete", 65_536), ("wal", 4096), ("wal", 65_536)] {
            let told = format!("{}, {journal}, pages of {page}", configuration.name);
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("long.db");
            let techniques = techniques_for(configuration.techniques, Some(page as u32));
            let options = VfsOptions::from_text(&techniques).unwrap();
            let vfs = Vfs::install(&unique("long"), options, false).unwrap();
            let new = Connection::open_with_flags_and_vfs(&path, OpenFlags::default(), vfs.name()).unwrap();
            new.execute_batch(&format!("PRAGMA page_size = {page}; CREATE TABLE t (k INTEGER PRIMARY KEY, v)"))
                .unwrap();
            drop(new);
            lengthen(&path, page);

            let db = connect(&path, &vfs, journal);
            let add = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
                       INSERT INTO t (v) SELECT randomblob(1000 + i * 7) FROM n";
            db.execute_batch(add).unwrap();
            db.execute_batch("BEGIN; UPDATE t SET v = v || 'gone'; ROLLBACK").unwrap();
            db.execute_batch("UPDATE t SET v = v || 'x' WHERE k % 3 = 0; DELETE FROM t WHERE k BETWEEN 100 AND 150")
                .unwrap();
            let expected = sums(&db);
            assert_eq!(expected.0, 249, "{told}");
            drop(db);

            let stored = std::fs::metadata(&path).unwrap();
            assert!(stored.len() > LONG && stored.blocks() * 512 < GIB / 4, "{told}: {} bytes", stored.len());
            let db = connect(&path, &vfs, journal);
            assert_eq!(sums(&db), expected, "{told}");
            let sql = "SELECT max(pageno) FROM dbstat WHERE name = 't'";
            let last: i64 = db.query_row(sql, [], |row| row.get(0)).unwrap();
            assert!(last as u64 * page > 4 * GIB, "{told}: page {last}");
            drop(db);
            let told_of = info(&path).unwrap();
            assert!(told_of.database_bytes.bytes() > LONG && told_of.header_checksum_ok != Some(false), "{told}");
        }
    }
}
