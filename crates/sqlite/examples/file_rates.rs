//! How fast SQLite is on a real file: its own VFS beside flashwise, with and without techniques, in turn.
//!
//! ```console
//! $ cargo run --release -p flashwise-sqlite --example file_rates DIRECTORY [ROUNDS]
//! ```
//!
//! For each work and each way the median rate of the rounds, and the median of its ratio to that of SQLite's own VFS in
//! the same round, with the interval that leaves out the highest and the lowest round.

#![allow(clippy::disallowed_methods, reason = "it measures on files of its own")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use flashwise_sqlite::{Vfs, VfsOptions};
use rusqlite::{Connection, OpenFlags};

/// A name for people, and what is asked of the VFS; `None` for SQLite's own.
const WAYS: [(&str, Option<&str>); 7] = [
    ("SQLite's own VFS", None),
    ("no technique", Some("")),
    ("concurrent-write-back=8", Some("concurrent-write-back=8")),
    ("write-aligned-stripes=64k", Some("write-aligned-stripes=64k")),
    ("concurrent-read-ahead=16", Some("concurrent-read-ahead=16")),
    ("atomic-batch", Some("atomic-batch=on")),
    ("stripes, write-back, discard", Some("write-aligned-stripes=64k&concurrent-write-back=8&discard=on")),
];

type Work = fn(&Connection) -> rusqlite::Result<u64>;

/// What is done, after what preparation; each tells how many operations it did.
const WORKS: [(&str, &str, Work); 5] = [
    ("commits to the log", "PRAGMA journal_mode = wal; PRAGMA synchronous = full", commits),
    ("commits to the journal", "PRAGMA journal_mode = truncate; PRAGMA synchronous = full", commits),
    ("updates and checkpoints", "PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0", updates),
    ("large transactions, journal", "PRAGMA journal_mode = truncate; PRAGMA cache_size = 200", updates),
    ("point SELECTs", "PRAGMA cache_size = 200", selects),
];

const ROWS: u64 = 60_000;

/// A linear congruential generator.
fn keys() -> impl FnMut() -> i64 {
    let mut state = 1_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % ROWS) as i64
    }
}

fn commits(db: &Connection) -> rusqlite::Result<u64> {
    let (mut update, mut key) = (db.prepare("UPDATE t SET v = randomblob(200) WHERE k = ?1")?, keys());
    for _ in 0..400 {
        update.execute([key()])?;
    }
    Ok(400)
}

fn updates(db: &Connection) -> rusqlite::Result<u64> {
    let (mut update, mut key) = (db.prepare("UPDATE t SET v = randomblob(200) WHERE k = ?1")?, keys());
    for _ in 0..4 {
        db.execute_batch("BEGIN")?;
        for _ in 0..2000 {
            update.execute([key()])?;
        }
        db.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
    }
    Ok(8000)
}

fn selects(db: &Connection) -> rusqlite::Result<u64> {
    let (mut select, mut key) = (db.prepare("SELECT v FROM t WHERE k = ?1")?, keys());
    for _ in 0..60_000 {
        select.query_row([key()], |_| Ok(()))?;
    }
    Ok(60_000)
}

/// Operations a second on a new database.
fn rate(path: &Path, vfs: Option<&str>, setup: &str, work: Work) -> rusqlite::Result<f64> {
    for suffix in ["", "-wal", "-shm", "-journal", "-fwwal", "-fwjournal", "-fwbatch"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        // Most of them are not there.
        let _ = std::fs::remove_file(name);
    }
    let db = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, OpenFlags::default(), vfs)?,
        None => Connection::open(path)?,
    };
    db.execute_batch(
        "CREATE TABLE t (k INTEGER PRIMARY KEY, v);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 59999)
         INSERT INTO t SELECT i, randomblob(200) FROM n",
    )?;
    db.execute_batch(setup)?;
    let began = Instant::now();
    let done = work(&db)?;
    Ok(done as f64 / began.elapsed().as_secs_f64())
}

fn median(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = usize::from(sorted.len() > 4);
    (sorted[sorted.len() / 2], sorted[cut], sorted[sorted.len() - 1 - cut])
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("which directory? file_rates DIRECTORY [ROUNDS]")?;
    let rounds: usize = arguments.next().map_or(Ok(7), |rounds| rounds.parse())?;
    let directory = tempfile::tempdir_in(directory)?;
    let path = directory.path().join("rates.db");
    let mut installed = Vec::new();
    for (n, (_, techniques)) in WAYS.iter().enumerate() {
        let install = |text: &str| Vfs::install(&format!("way-{n}"), VfsOptions::from_text(text)?, false);
        installed.push(techniques.map(install).transpose()?);
    }
    for (what, setup, work) in WORKS {
        let mut rates = vec![Vec::new(); WAYS.len()];
        for round in 0..rounds.max(1) {
            // Another one first each time: what a drive does in its own time falls to whoever comes next.
            for step in 0..WAYS.len() {
                let way = (round + step) % WAYS.len();
                rates[way].push(rate(&path, installed[way].as_ref().map(Vfs::name), setup, work)?);
            }
        }
        println!("{what}");
        for ((name, _), own) in WAYS.iter().zip(&rates) {
            let ratios: Vec<f64> = own.iter().zip(&rates[0]).map(|(rate, first)| rate / first).collect();
            let ((rate, ..), (ratio, low, high)) = (median(own), median(&ratios));
            println!("  {name:<28} {rate:>9.0}/s   {ratio:.2}  {low:.2}…{high:.2}");
        }
    }
    Ok(())
}
