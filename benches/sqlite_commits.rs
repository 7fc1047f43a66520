//! Commits to a real file: SQLite's own VFS beside atomic-batch, in pairs, by journal mode and rows a transaction.
//!
//! ```console
//! $ cargo bench -p flashwise-benches --bench sqlite_commits [-- DIRECTORY] [--pairs N] [--commits N]
//! ```
//!
//! Each run updates random rows of a database of its own, `synchronous = FULL`, a transaction at a time. For each mode the
//! median over the pairs of its time ÷ that of SQLite's own VFS, run just before or just after it, with the 95 % bootstrap
//! interval of the median. In the last lines SQLite's own VFS keeps a write-ahead log, and ours still takes batches.

mod pairs;

use std::error::Error;
use std::time::{Duration, Instant};

use flashwise_sqlite::{Vfs, VfsOptions};
use pairs::{Arguments, Compared, compare};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rusqlite::{Connection, OpenFlags};

const TECHNIQUE: &str = "atomic-batch=on";
const ROWS: u32 = 20_000;
/// Journal mode of SQLite's own VFS, and of ours.
const MODES: [(&str, &str); 4] =
    [("delete", "delete"), ("truncate", "truncate"), ("persist", "persist"), ("wal", "delete")];
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
    let ours = Vfs::install("batches", VfsOptions::from_text(TECHNIQUE)?, false)?;
    for rows in ROWS_A_COMMIT {
        for (theirs, own) in MODES {
            let time = |vfs: Option<&Vfs>, journal| run(&arguments, vfs, journal, rows);
            let Compared { ratio, low, high, second } =
                compare(arguments.pairs, || time(Some(&ours), own), || time(None, theirs))?;
            println!(
                "{rows:>2} rows  {theirs:<9} {ratio:.3} of SQLite's own ({low:.3}…{high:.3}); that one {:.0} commits/s",
                f64::from(arguments.amount) / second
            );
        }
    }
    Ok(())
}
