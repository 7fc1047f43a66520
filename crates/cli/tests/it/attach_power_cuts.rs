//! SQLite on a file system on an attached drive, whose power is cut again and again at any moment.
//!
//! ```text
//!   two tables, a row of each a transaction ─▶ SQLite ─▶ ext4, xfs ─▶ loop device ─▶ the drive
//!   no write is taken any more ─▶ attach cut ─▶ unmounted, mounted: its log is replayed ─▶ is what was acknowledged there?
//! ```
//!
//! A power cut takes the memory of the machine too. So the drive refuses writes before it is cut, until the file system
//! is unmounted, and nothing that only the page cache has ever reaches it. What was on its way then, or only in its
//! volatile buffer, the drive loses as its contract allows. To shut the file system down first (`XFS_IOC_GOINGDOWN`,
//! which ext4 knows too) will not do: about one time in thirty ext4 then acknowledges a last `fsync` of which nothing
//! is on the drive, also where no power is cut (Linux 6.18).
//!
//! A log is written alternately by SQLite as it is and with the VFS of `flashwise-sqlite`, which extends it with zeros
//! and syncs it by `fdatasync`; it is always recovered by SQLite as it is.
//!
//! `FLASHWISE_MOUNTED_POWER_CUTS` asks for more than a few cuts.

use crate::mounted;
use crate::support;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use flashwise_sqlite::{Vfs, VfsOptions};
use mounted::{Drive, Power, assert_nothing_left, place, power_fails, small_drive, turn};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rusqlite::{Connection, OpenFlags};
use rustix::process::Signal;
use support::Place;

/// Cuts of each configuration.
fn cuts() -> u64 {
    std::env::var("FLASHWISE_MOUNTED_POWER_CUTS").ok().map_or(8, |text| text.parse::<u64>().unwrap().div_ceil(4))
}

/// With `FULL`, SQLite does not sync the directory that it has removed the rollback journal from, and a transaction
/// that was acknowledged may be rolled back: this test finds that, too.
fn open(database: &Path, journal: &str, vfs: &str) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags_and_vfs(database, OpenFlags::default(), vfs)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = {journal}; PRAGMA synchronous = EXTRA; PRAGMA wal_autocheckpoint = 20;
         CREATE TABLE IF NOT EXISTS a (n INTEGER PRIMARY KEY, v BLOB);
         CREATE TABLE IF NOT EXISTS b (n INTEGER PRIMARY KEY, v BLOB)"
    ))?;
    Ok(connection)
}

/// SQLite's own VFS, or that of `flashwise-sqlite` for every other log.
fn vfs_for(journal: &str, seed: u64) -> &'static str {
    static OURS: OnceLock<Vfs> = OnceLock::new();
    match journal == "wal" && seed.is_multiple_of(2) {
        true => OURS.get_or_init(|| Vfs::install("power-cuts", VfsOptions::default(), false).unwrap()).name(),
        false => "unix",
    }
}

/// Commits one transaction after the other until the power fails or an error comes; what was acknowledged last is
/// in `acknowledged`.
fn write(database: &Path, journal: &str, acknowledged: &AtomicI64, power: &Power, seed: u64) -> rusqlite::Result<()> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut connection = open(database, journal, vfs_for(journal, seed))?;
    loop {
        let n = acknowledged.load(Ordering::Relaxed) + 1;
        let transaction = connection.transaction()?;
        for table in ["a", "b"] {
            let length = random.random_range(1..20_000);
            transaction.execute(&format!("INSERT INTO {table} VALUES (?, zeroblob(?))"), (n, length))?;
        }
        transaction.commit()?;
        if !power.is_on() {
            return Ok(());
        }
        acknowledged.store(n, Ordering::Relaxed);
    }
}

/// What the database holds: sound, each transaction whole, and none missing between others. Gives the last.
fn last_transaction(database: &Path, journal: &str) -> i64 {
    let connection = open(database, journal, "unix").unwrap();
    let told: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(told, "ok");
    let of = |table: &str| -> (i64, i64) {
        let sql = format!("SELECT count(*), coalesce(max(n), 0) FROM {table}");
        connection.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    let (a, b) = (of("a"), of("b"));
    assert_eq!(a, b, "half of a transaction");
    assert_eq!(a.0, a.1, "one is missing between others");
    a.1
}

/// Cuts the power in the middle of work, mounts the drive again, and looks; gives whether something was under way.
fn cut(
    place: &Place,
    device: &str,
    database: &Path,
    journal: &'static str,
    acknowledged: &Arc<AtomicI64>,
    seed: u64,
) -> bool {
    let power = Arc::new(Power::default());
    let writing = {
        let (database, acknowledged, power) = (database.to_owned(), Arc::clone(acknowledged), Arc::clone(&power));
        std::thread::spawn(move || write(&database, journal, &acknowledged, &power, seed))
    };
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    std::thread::sleep(Duration::from_micros(random.random_range(0..400_000)));
    let (lost_requests, ended) = power_fails(place, device, &power, || writing.join().unwrap());
    let (before, after) = (acknowledged.load(Ordering::Relaxed), last_transaction(database, journal));
    assert!(after >= before, "{} of {before} transactions that were acknowledged are lost ({ended:?})", before - after);
    // One more may be there: it was on its way to be acknowledged.
    assert!(after <= before + 1, "{after} of {before}");
    acknowledged.store(after, Ordering::Relaxed);
    lost_requests > 0
}

#[test]
fn no_transaction_that_was_acknowledged_is_lost_to_a_power_cut() {
    let Some(_turn) = turn(&["mkfs.ext4", "mkfs.xfs", "blockdev"]) else { return };
    for (kind, journal, seed) in [("ext4", "delete", 1), ("ext4", "wal", 2), ("xfs", "delete", 3), ("xfs", "wal", 4)] {
        let place = place();
        small_drive(&place);
        // Slow enough for requests to be under way when the power goes.
        let more = ["--fs", kind, "--power-cuts", "--precondition", "steady", "--time-scale", "4"];
        let drive = Drive::of(&place, &[&["attach", "drive.toml", "--mount", "on"], &more[..]].concat());
        let device = drive.device();
        let (database, acknowledged) = (place.path("on/test.db"), Arc::new(AtomicI64::new(0)));
        let under_way = (0..cuts())
            .filter(|n| cut(&place, &device, &database, journal, &acknowledged, seed * 1_000_000 + n))
            .count();
        let transactions = acknowledged.load(Ordering::Relaxed);
        eprintln!(
            "{kind}, {journal}: {} cuts, {under_way} in the middle of requests; {transactions} transactions",
            cuts()
        );
        assert!(transactions.cast_unsigned() > cuts(), "it was at work: {transactions}");
        let process = drive.number();
        drive.signal(Signal::INT);
        drive.ended().expect(0);
        assert_nothing_left(&place, process);
    }
}
