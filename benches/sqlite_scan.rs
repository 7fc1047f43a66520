//! Scans in key order of a database whose rows came in random order: SQLite's own VFS beside concurrent-read-ahead, in
//! pairs.
//!
//! ```console
//! $ cargo bench -p flashwise-benches --bench sqlite_scan [-- DIRECTORY] [--pairs N] [--mib N]
//! ```
//!
//! The file's pages are dropped from the page cache before each run (cold) or read before it (warm), so that the drive
//! is in the way or is not. For each way the median over the pairs of its time ÷ that of SQLite's own VFS, run just
//! before or just after it, with the 95 % bootstrap interval of the median. Point SELECTs go by random keys.

#![allow(clippy::disallowed_methods, reason = "it measures on files of its own")]

mod pairs;

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use flashwise_sqlite::{Vfs, VfsOptions};
use pairs::{Arguments, Compared, compare};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{Advice, fadvise};

const WAYS: [&str; 4] =
    ["concurrent-read-ahead=8", "concurrent-read-ahead=16", "concurrent-read-ahead=32", "concurrent-read-ahead=64"];

/// What is asked of the database, and whether its file is in the page cache.
const WORKS: [(&str, Work, bool); 5] = [
    ("table scan, cold", Work::Sql("SELECT sum(length(v)) FROM t"), false),
    ("descending, cold", Work::Sql("SELECT sum(n) FROM (SELECT length(v) AS n FROM t ORDER BY k DESC)"), false),
    ("index scan, cold", Work::Sql("SELECT sum(length(i)) FROM t INDEXED BY ti WHERE i > ''"), false),
    ("table scan, warm", Work::Sql("SELECT sum(length(v)) FROM t"), true),
    ("point SELECTs, warm", Work::Lookups, true),
];

#[derive(Clone, Copy)]
enum Work {
    Sql(&'static str),
    Lookups,
}

const ROW: u32 = 500;
const LOOKUPS: u32 = 100_000;

/// A table whose rows came in random order, with an index in another one.
fn fill(path: &Path, rows: u32) -> Result<(), Box<dyn Error>> {
    let _ = std::fs::remove_file(path);
    let mut db = Connection::open(path)?;
    db.execute_batch(
        "PRAGMA journal_mode = off; PRAGMA synchronous = off; PRAGMA cache_size = -1000000;
         CREATE TABLE t (k INTEGER PRIMARY KEY, i, v); CREATE INDEX ti ON t (i)",
    )?;
    let (mut random, mut keys) = (Pcg64Mcg::seed_from_u64(7), Vec::from_iter(0..rows));
    for last in (1..keys.len()).rev() {
        keys.swap(last, random.next_u64() as usize % (last + 1));
    }
    let transaction = db.transaction()?;
    let mut insert = transaction.prepare("INSERT INTO t VALUES (?1, hex(randomblob(32)), zeroblob(?2))")?;
    for key in keys {
        insert.execute([key, ROW - 64])?;
    }
    drop(insert);
    transaction.commit()?;
    Ok(())
}

/// Drops the file's pages from the page cache, or brings them there.
fn prepare(path: &Path, warm: bool) -> Result<(), Box<dyn Error>> {
    let mut file = File::open(path)?;
    if warm {
        std::io::copy(&mut file, &mut std::io::sink())?;
        return Ok(());
    }
    file.sync_data()?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

fn run(path: &Path, vfs: Option<&Vfs>, work: Work, warm: bool, rows: u32) -> Result<Duration, Box<dyn Error>> {
    prepare(path, warm)?;
    let db = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, OpenFlags::SQLITE_OPEN_READ_ONLY, vfs.name())?,
        None => Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
    };
    let started = Instant::now();
    match work {
        Work::Sql(sql) => _ = db.query_row(sql, [], |row| row.get::<_, i64>(0))?,
        Work::Lookups => {
            let mut random = Pcg64Mcg::seed_from_u64(9);
            let mut select = db.prepare("SELECT i FROM t WHERE k = ?1")?;
            for _ in 0..LOOKUPS {
                select.query_row([random.next_u32() % rows], |_| Ok(()))?;
            }
        }
    }
    Ok(started.elapsed())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse(11, "--mib", 150)?;
    let rows = arguments.amount * ((1 << 20) / ROW);
    let path = arguments.directory.join("sqlite-scan.db");
    fill(&path, rows)?;
    let mib = std::fs::metadata(&path)?.len() >> 20;
    println!("{} rows in {mib} MiB, {} pairs, in {}", rows, arguments.pairs, arguments.directory.display());
    let install = |way: &&'static str| Vfs::install(way, VfsOptions::from_text(way)?, false);
    let installed: Vec<Vfs> = WAYS.iter().map(install).collect::<Result<_, _>>()?;
    for (what, work, warm) in WORKS {
        for vfs in &installed {
            let time = |vfs: Option<&Vfs>| run(&path, vfs, work, warm, rows);
            let Compared { ratio, low, high, second } = compare(arguments.pairs, || time(Some(vfs)), || time(None))?;
            let name = vfs.name();
            println!("{what:<20} {name:<25} {ratio:.3} of SQLite's own ({low:.3}…{high:.3}); that one {second:.2} s");
        }
    }
    std::fs::remove_file(&path)?;
    Ok(())
}
