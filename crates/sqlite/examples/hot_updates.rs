//! Pages at hot locations in a file system: transactions a second that change rows of such pages, and how long a row of
//! a changed page takes to read that is not in memory. Plain pages of the same size are measured beside them.
//!
//! The rows are changed in two ways: while their pages are in memory as they were written, and after a scan, whose
//! read-ahead puts them into large folios, which the kernel writes back as a whole.
//!
//! ```text
//! flashwise attach samsung-960-evo --mount on --fs ext4 --time real --time-scale 10 -- \
//!     cargo run --release -p flashwise-sqlite --example hot_updates
//! ```
//!
//! The file system is that of the directory named, or `$FLASHWISE_MOUNT`, on a drive with chunks of 64 KiB whose hot
//! location is at 32 KiB. Root alone can drop the page cache, as this does.
#![allow(clippy::print_stdout, reason = "an example prints its result")]
#![allow(clippy::disallowed_methods, reason = "the databases are its own, in a directory of its own")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use flashwise_sqlite::{Vfs, VfsOptions};
use rusqlite::{Connection, OpenFlags};

type Failure = Box<dyn std::error::Error>;

/// About 20 MB in pages of 64 KiB.
const ROWS: i64 = 150_000;
/// Rows that a transaction changes, each in a page of its own.
const CHANGED: i64 = 10;
const TRANSACTIONS: i64 = 60;
/// Rows between two that are changed at once and read: a page has about 600, so their pages are not adjacent.
const APART: i64 = 2400;
const READS: i64 = 200;
const ROUNDS: usize = 3;

/// Drops the page cache, so that the next read reaches the drive.
fn drop_caches() -> Result<(), Failure> {
    rustix::fs::sync();
    Ok(std::fs::write("/proc/sys/vm/drop_caches", "3")?)
}

/// A database whose pages are at hot locations of the drive, or a plain one.
fn create(directory: &Path, vfs: &Vfs, options: &VfsOptions) -> Result<Connection, Failure> {
    let [plain, laid_out] = ["plain.db", "laid-out.db"].map(|name| directory.join(name));
    Connection::open(&plain)?.execute_batch(&format!(
        "PRAGMA page_size = 65536; CREATE TABLE t (k INTEGER PRIMARY KEY, v);
         WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
         INSERT INTO t SELECT i, randomblob(100) FROM n"
    ))?;
    flashwise_sqlite::import(&plain, &laid_out, options)?;
    let db = Connection::open_with_flags_and_vfs(laid_out, OpenFlags::default(), vfs.name())?;
    // A cache of a few pages: what is read comes from the kernel.
    db.execute_batch("PRAGMA cache_size = -1000; PRAGMA synchronous = FULL")?;
    Ok(db)
}

/// Transactions a second.
fn change(db: &mut Connection) -> Result<f64, Failure> {
    let began = Instant::now();
    for _ in 0..TRANSACTIONS {
        let transaction = db.transaction()?;
        for _ in 0..CHANGED {
            transaction.execute("UPDATE t SET v = randomblob(100) WHERE k = 1 + abs(random()) % ?1", [ROWS])?;
        }
        transaction.commit()?;
    }
    Ok(TRANSACTIONS as f64 / began.elapsed().as_secs_f64())
}

/// Changes a row in some pages; milliseconds of a read of one of them afterwards.
fn read_changed(db: &Connection) -> Result<f64, Failure> {
    db.execute("UPDATE t SET v = randomblob(100) WHERE k % ?1 = 0", [APART])?;
    let mut select = db.prepare("SELECT v FROM t WHERE k = ?1 * (1 + abs(random()) % ?2)")?;
    let mut seconds = 0.0;
    for read in 0..READS {
        // Before the pages that were read are so many that others are among them.
        if read % 10 == 0 {
            drop_caches()?;
        }
        let began = Instant::now();
        select.query_row([APART, ROWS / APART], |_| Ok(()))?;
        seconds += began.elapsed().as_secs_f64();
    }
    Ok(seconds / READS as f64 * 1000.0)
}

/// Transactions a second; milliseconds of a read where the changed pages were in memory as written, and after a scan.
fn measure(directory: &Path, vfs: &Vfs, options: &VfsOptions) -> Result<[f64; 3], Failure> {
    let dir = tempfile::tempdir_in(directory)?;
    let mut db = create(dir.path(), vfs, options)?;
    let rate = change(&mut db)?;
    let written = read_changed(&db)?;
    drop_caches()?;
    db.query_row("SELECT sum(length(v)) FROM t", [], |_| Ok(()))?;
    Ok([rate, written, read_changed(&db)?])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Failure> {
    let named = std::env::args_os().nth(1).or_else(|| std::env::var_os("FLASHWISE_MOUNT"));
    let directory = PathBuf::from(named.ok_or("name a directory on the file system to be measured")?);
    let ways = [("plain", "log-sync=data"), ("hot", "use-hot-locations=64k+32k")];
    let mut all: [Vec<[f64; 3]>; 2] = Default::default();
    for _ in 0..ROUNDS {
        for ((name, techniques), all) in ways.into_iter().zip(&mut all) {
            let options = VfsOptions::from_text(techniques)?;
            let vfs = Vfs::install(name, options, false)?;
            all.push(measure(&directory, &vfs, &options)?);
        }
    }
    println!("{:<6} {:>14} {:>12} {:>22}", "pages", "transactions/s", "read, ms", "read after a scan, ms");
    for ((name, _), all) in ways.into_iter().zip(&all) {
        let [rate, written, scanned] = [0, 1, 2].map(|at| median(all.iter().map(|one| one[at]).collect()));
        println!("{name:<6} {rate:>14.1} {written:>12.2} {scanned:>22.2}");
    }
    Ok(())
}
