//! Commits to a real file: SQLite's own VFS beside techniques, in pairs, by journal mode and rows a transaction.
//!
//! ```console
//! $ cargo bench -p flashwise-benches --bench sqlite_commits [-- DIRECTORY] [--pairs N] [--commits N]
//! ```
//!
//! Each run updates random rows of a database of its own, `synchronous = FULL`, a transaction at a time. For each mode
//! the median over the pairs of its time ÷ that of SQLite's own VFS, run just before or just after it, with the 95 %
//! bootstrap interval of the median. Batches need no journal: they stand beside each kind of journal, and beside a
//! write-ahead log.

mod pairs;

use std::error::Error;
use std::time::{Duration, Instant};

use flashwise_sqlite::{Vfs, VfsOptions};
use pairs::{Arguments, Compared, compare};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rusqlite::{Connection, OpenFlags};

const ROWS: u32 = 20_000;
/// Journal mode of SQLite's own VFS, that of ours, and the technique.
const WAYS: [(&str, &str, &str); 6] = [
    ("delete", "delete", "atomic-batch=on"),
    ("truncate", "truncate", "atomic-batch=on"),
    ("persist", "persist", "atomic-batch=on"),
    ("wal", "delete", "atomic-batch=on"),
    ("wal", "wal", "concurrent-write-back=8"),
    ("wal", "wal", "write-aligned-stripes=64k"),
];
const ROWS_A_COMMIT: [u32; 2] = [1, 20];

fn run(arguments: &Arguments, vfs: Option<&Vfs>, journal: &str, rows: u32) -> Result<Duration, Box<dyn Error>> {
    let directory = tempfile::tempdir_in(&arguments.directory)?;
    let path = directory.path().join("commits.db");
    let db = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(&path, OpenFlags::default(), vfs.name())?,
        None => Connection::open(&path)?,
    };
    db.execute_batch(&format!(
        "CREATE TABLE t (k INTEGER PRIMARY KEY, v);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
         INSERT INTO t SELECT i, randomblob(200) FROM n;
         PRAGMA journal_mode = {journal}; PRAGMA synchronous = full"
    ))?;
    let mut random = Pcg64Mcg::seed_from_u64(3);
    let mut update = db.prepare("UPDATE t SET v = randomblob(200) WHERE k = ?1")?;
    let started = Instant::now();
    for _ in 0..arguments.amount {
        db.execute_batch("BEGIN")?;
        for _ in 0..rows {
            update.execute([random.next_u32() % ROWS])?;
        }
        db.execute_batch("COMMIT")?;
    }
    Ok(started.elapsed())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse(11, "--commits", 100)?;
    println!("{} commits, {} pairs, in {}", arguments.amount, arguments.pairs, arguments.directory.display());
    for rows in ROWS_A_COMMIT {
        for (n, (theirs, own, technique)) in WAYS.into_iter().enumerate() {
            let ours = Vfs::install(&format!("{rows}-{n}"), VfsOptions::from_text(technique)?, false)?;
            let time = |vfs: Option<&Vfs>, journal| run(&arguments, vfs, journal, rows);
            let Compared { ratio, low, high, second } =
                compare(arguments.pairs, || time(Some(&ours), own), || time(None, theirs))?;
            let commits = f64::from(arguments.amount) / second;
            println!(
                "{rows:>2} rows  {theirs:<8}  {technique:<25} {ratio:.3} of SQLite's own ({low:.3}…{high:.3}); \
                 that one {commits:.0} commits/s"
            );
        }
    }
    Ok(())
}
