//! Commits a second in a write-ahead log with `synchronous=FULL`, and the flushes that the drive gets for each: with
//! SQLite's own syncs and with those of the VFS, alternately.
//!
//! ```text
//! flashwise attach samsung-960-evo --mount DIR --time real -- \
//!     cargo run --release -p flashwise-sqlite --example commit_rates
//! ```
//!
//! SQLite's own are `fdatasync`, as in Debian's. With `LIBSQLITE3_FLAGS=-DSQLITE_ENABLE_BATCH_ATOMIC_WRITE` before the
//! command they are `fsync`, as in rusqlite, better-sqlite3, go-sqlite3 and sqlite-jdbc.
//!
//! The file system is that of the directory named, or `$FLASHWISE_MOUNT`; flushes are those of `$FLASHWISE_DEVICE`, by
//! the kernel's count (`/proc/diskstats`).
#![allow(clippy::print_stdout, reason = "an example prints its result")]
#![allow(clippy::disallowed_methods, reason = "the databases are its own, in a directory of its own")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use flashwise_sqlite::{Vfs, VfsOptions};
use rusqlite::{Connection, OpenFlags};

type Failure = Box<dyn std::error::Error>;

const ROWS: i64 = 50_000;
/// Fewer pages than SQLite's checkpoint at 1,000.
const GROWING: i64 = 400;
/// The log is reset once or twice.
const REUSED: i64 = 1_500;
const ROUNDS: usize = 5;

/// One measurement: commits a second, and flushes a commit.
#[derive(Clone, Copy)]
struct Rate {
    commits: f64,
    flushes: Option<f64>,
}

/// Flushes of a block device since the machine started.
fn flushes(device: Option<&Path>) -> Option<u64> {
    let name = device?.file_name()?.to_str()?;
    let counts = std::fs::read_to_string("/proc/diskstats").ok()?;
    let line = counts.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|line| line[2] == name)?;
    line.get(18)?.parse().ok()
}

fn commit(db: &Connection, count: i64, device: Option<&Path>) -> Result<Rate, Failure> {
    let mut update = db.prepare("UPDATE t SET v = randomblob(100) WHERE k = 1 + abs(random()) % ?1")?;
    let (before, began) = (flushes(device), Instant::now());
    for _ in 0..count {
        update.execute([ROWS])?;
    }
    let (after, seconds) = (flushes(device), began.elapsed().as_secs_f64());
    let flushes = before.zip(after).map(|(before, after)| (after - before) as f64 / count as f64);
    Ok(Rate { commits: count as f64 / seconds, flushes })
}

/// Commits to a log that grows, and to the same once it has been reset.
fn measure(directory: &Path, vfs: &Vfs, device: Option<&Path>) -> Result<[Rate; 2], Failure> {
    let dir = tempfile::tempdir_in(directory)?;
    let path = dir.path().join("a.db");
    let db = Connection::open_with_flags_and_vfs(path, OpenFlags::default(), vfs.name())?;
    db.execute_batch(&format!(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = FULL; CREATE TABLE t (k INTEGER PRIMARY KEY, v);
         WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
         INSERT INTO t SELECT i, randomblob(100) FROM n;
         PRAGMA wal_checkpoint(TRUNCATE)"
    ))?;
    let growing = commit(&db, GROWING, device)?;
    commit(&db, 1000, device)?;
    Ok([growing, commit(&db, REUSED, device)?])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Failure> {
    let named = std::env::args_os().nth(1).or_else(|| std::env::var_os("FLASHWISE_MOUNT"));
    let directory = PathBuf::from(named.ok_or("name a directory on the file system to be measured")?);
    let device = std::env::var_os("FLASHWISE_DEVICE").map(PathBuf::from);
    let ways = ["log-sync=parent", "log-sync=data"];
    let mut all: [[Vec<Rate>; 2]; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (way, all) in ways.into_iter().zip(&mut all) {
            let vfs = Vfs::install(way, VfsOptions::from_text(way)?, false)?;
            for (rate, all) in measure(&directory, &vfs, device.as_deref())?.into_iter().zip(all) {
                all.push(rate);
            }
        }
    }
    println!("{:<16} {:<8} {:>10} {:>17}", "log-sync", "log", "commits/s", "flushes a commit");
    for (way, all) in ways.into_iter().zip(&all) {
        for (log, rates) in ["growing", "reused"].into_iter().zip(all) {
            let commits = median(rates.iter().map(|rate| rate.commits).collect());
            let flushes: Option<Vec<f64>> = rates.iter().map(|rate| rate.flushes).collect();
            let flushes = flushes.map_or_else(|| "unknown".to_owned(), |all| format!("{:.2}", median(all)));
            println!("{:<16} {log:<8} {commits:>10.0} {flushes:>17}", &way[9..]);
        }
    }
    Ok(())
}
