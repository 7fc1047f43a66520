//! Power cuts, at every request of a workload, under every technique.
//!
//! Data that was not flushed is present or lost, whole or torn at any sector, in any order, at random; the page cache
//! is lost. Afterwards the database must open, be sound, and contain exactly the acknowledged transactions, or those
//! and the one whose commit was in flight.
//!
//! `make test` makes some thousand cuts, at requests drawn at random for each case. With a number in
//! `FLASHWISE_POWER_CUTS`, every request has its cut, repeated with other random choices until there are that many.

use flashwise_block::ByteSize;
use flashwise_kernel::{FileSystemKind, KernelConfig};
use rusqlite::{Connection, params};

use crate::mounted::FileSystem;
use crate::options::VfsOptions;
use crate::vfs::support::{Random, SharedControl, TestDrive, integrity, open, unique};
use crate::vfs::{Backend, Vfs};

/// Rows of the one table.
type Rows = Vec<(i64, i64, Vec<u8>)>;

/// Logical blocks of the drive: shorter than every page, and longer than some.
const BLOCKS: [u64; 2] = [512, 4096];
const TRANSACTIONS: u64 = 9;
const ROWS: u64 = 120;

fn rows(db: &Connection) -> rusqlite::Result<Rows> {
    let mut select = db.prepare("SELECT k, n, v FROM t ORDER BY k")?;
    select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}

/// One transaction: inserts, updates and deletes that its number decides.
fn transaction(db: &Connection, number: u64) -> rusqlite::Result<()> {
    let mut random = Random(number * 77);
    let mut key = move || (random.next() % ROWS) as i64;
    db.execute_batch("BEGIN")?;
    for _ in 0..12 {
        let value = vec![number as u8; 150 + 40 * (number as usize % 3)];
        db.execute("INSERT OR REPLACE INTO t VALUES (?1, ?2, ?3)", params![key(), number as i64, value])?;
        db.execute("UPDATE t SET n = n + 1 WHERE k BETWEEN ?1 AND ?1 + 3", [key()])?;
        db.execute("DELETE FROM t WHERE k = ?1", [key()])?;
    }
    if number.is_multiple_of(4) {
        db.execute("DELETE FROM t WHERE k > ?1", [ROWS as i64 / 2])?;
    }
    db.execute_batch("COMMIT")
}

/// Statements that change no row: VACUUM and checkpoints, in between.
fn upkeep(db: &Connection, number: u64) -> rusqlite::Result<()> {
    match number % 5 {
        2 => db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"),
        3 => db.execute_batch("PRAGMA wal_checkpoint(PASSIVE)"),
        4 => db.execute_batch("VACUUM"),
        _ => Ok(()),
    }
}

/// Runs the workload until something fails; returns the number of acknowledged transactions. Two connections alternate
/// if the journal allows it.
fn run(connections: &[Connection], setup: &str) -> u64 {
    let begun = connections
        .iter()
        .try_for_each(|db| db.execute_batch(setup))
        .and_then(|()| connections[0].execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, n INTEGER, v)"));
    if begun.is_err() {
        return 0;
    }
    for number in 1..=TRANSACTIONS {
        let db = &connections[number as usize % connections.len()];
        if transaction(db, number).is_err() {
            return number - 1;
        }
        if upkeep(db, number).is_err() {
            return number;
        }
    }
    TRANSACTIONS
}

/// The content of the table after each transaction.
fn expected() -> Vec<Rows> {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, n INTEGER, v)").unwrap();
    let mut states = vec![Rows::new()];
    for number in 1..=TRANSACTIONS {
        transaction(&db, number).unwrap();
        states.push(rows(&db).unwrap());
    }
    states
}

/// Where the files are.
#[derive(Clone, Copy, Debug)]
enum On {
    Drive,
    FileSystem(FileSystemKind),
}

impl On {
    /// A new drive, and the place of the files on it.
    fn start(self, block: u64) -> (Backend, SharedControl) {
        match self {
            Self::Drive => {
                let (device, control) = TestDrive::new(8, block);
                (Backend::Drive(device), control)
            }
            Self::FileSystem(file_system) => {
                // XFS needs 300 MiB.
                let size = if file_system == FileSystemKind::Ext4 { 32 } else { 304 };
                let (device, control) = TestDrive::new(size, 512);
                let kernel =
                    KernelConfig { file_system, memory: ByteSize::mib(8), power_cuts: true, ..KernelConfig::default() };
                (Backend::FileSystem(Box::new(FileSystem { device, kernel, measures_program: false })), control)
            }
        }
    }
}

struct Case {
    techniques: String,
    setup: String,
    reopen: &'static str,
    connections: usize,
}

/// Cuts the power at request `cut_at`, and looks; `false` if the workload ended before.
fn cut(case: &Case, on: On, options: VfsOptions, states: &[Rows], block: u64, cut_at: u64, chance: u64) -> bool {
    let case_in_words = format!(
        "{} | {} | {on:?} | blocks of {block} | cut at request {cut_at}, chance {chance}",
        case.techniques, case.setup
    );
    let (backend, control) = on.start(block);
    let vfs = Vfs::register(&unique("power"), backend, options).unwrap();
    let connections: Vec<_> = (0..case.connections).map(|_| open("a.db", vfs.name())).collect();
    (control.lock().unwrap().fail_at, control.lock().unwrap().fail_forever) = (cut_at, true);
    let acknowledged = run(&connections, &case.setup) as usize;
    drop(connections);
    let reached = control.lock().unwrap().fail_at == 0;
    control.lock().unwrap().power_cut(chance);
    vfs.drive_power_cut();

    let db = open("a.db", vfs.name());
    db.execute_batch(case.reopen).unwrap();
    assert_eq!(integrity(&db), "ok", "{case_in_words}");
    let is_there: bool =
        db.query_row("SELECT count(*) > 0 FROM sqlite_schema WHERE name = 't'", [], |row| row.get(0)).unwrap();
    assert!(is_there || acknowledged == 0, "{case_in_words}: {acknowledged} transactions are gone");
    if is_there {
        let found = rows(&db).unwrap();
        let next = states.get(acknowledged + 1);
        assert!(
            found == states[acknowledged] || Some(&found) == next,
            "{case_in_words}: neither the {acknowledged} acknowledged transactions nor one more"
        );
        transaction(&db, 1).unwrap();
    }
    reached
}

/// Most requests between two cuts, if only some are tried: a prime, so that it coincides with no period of a workload.
const LONGEST_STEP: u64 = 13;

fn cut_everywhere(cases: &[Case]) {
    let on = cases.iter().flat_map(|case| BLOCKS.map(|block| (case, On::Drive, block)));
    cut_each(&on.collect::<Vec<_>>(), LONGEST_STEP);
}

/// Some requests of every case; or every request, again with another chance until there were `FLASHWISE_POWER_CUTS`
/// cuts a test.
fn cut_each(cases: &[(&Case, On, u64)], longest_step: u64) {
    let wanted: u64 = std::env::var("FLASHWISE_POWER_CUTS").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
    let states = expected();
    let mut random = Random(cases.len() as u64 + 1);
    let mut step = move || if wanted > 0 { 1 } else { 1 + random.next() % longest_step };
    let mut cuts = 0;
    for round in 0.. {
        for &(case, on, block) in cases {
            let options = VfsOptions::from_text(&case.techniques).unwrap();
            let mut cut_at = step();
            loop {
                cuts += 1;
                if !cut(case, on, options, &states, block, cut_at, cut_at * 1009 + round) {
                    break;
                }
                cut_at += step();
            }
        }
        if cuts >= wanted {
            break;
        }
    }
    assert!(cuts >= 100, "the workload is too short for a test: {cuts} cuts");
    println!("{cuts} power cuts");
}

const ROLLBACK: &str = "PRAGMA page_size = 4096; PRAGMA cache_size = 4;";
/// A cache that holds every transaction but VACUUM: none is spilled, and so none needs a journal.
const BATCHES: &str = "PRAGMA page_size = 4096;";
const EXCLUSIVE_BATCHES: &str = "PRAGMA page_size = 1024; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = 8;";
const TRUNCATE: &str = "PRAGMA page_size = 1024; PRAGMA cache_size = 4; PRAGMA journal_mode = truncate;";
const PERSIST: &str = "PRAGMA page_size = 8192; PRAGMA journal_mode = persist; PRAGMA synchronous = EXTRA;";
const INCREMENTAL: &str = "PRAGMA page_size = 512; PRAGMA auto_vacuum = full; PRAGMA cache_size = 4;";
const LOG: &str = "PRAGMA page_size = 4096; PRAGMA cache_size = 4; PRAGMA journal_mode = wal;
                   PRAGMA wal_autocheckpoint = 8; PRAGMA synchronous = FULL;";
const SMALL_LOG: &str = "PRAGMA page_size = 512; PRAGMA cache_size = 4; PRAGMA journal_mode = wal;
                         PRAGMA wal_autocheckpoint = 30; PRAGMA synchronous = FULL;";
const EXCLUSIVE_LOG: &str = "PRAGMA page_size = 1024; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = wal;
                             PRAGMA wal_autocheckpoint = 10; PRAGMA synchronous = FULL;";

/// Page sizes that `fit` proposes.
const MIDDLE: &str = "PRAGMA page_size = 16384; PRAGMA cache_size = 4; PRAGMA journal_mode = persist;";
const MIDDLE_LOG: &str = "PRAGMA page_size = 16384; PRAGMA cache_size = 4; PRAGMA journal_mode = wal;
                          PRAGMA wal_autocheckpoint = 4; PRAGMA synchronous = FULL;";
const LARGE: &str = "PRAGMA page_size = 32768; PRAGMA cache_size = 2;";
const LARGE_LOG: &str = "PRAGMA page_size = 32768; PRAGMA cache_size = 2; PRAGMA journal_mode = wal;
                         PRAGMA wal_autocheckpoint = 3; PRAGMA synchronous = FULL;";

fn case(techniques: &str, setup: &str) -> Case {
    let connections = if setup.contains("EXCLUSIVE") { 1 } else { 2 };
    let reopen = if setup.contains("EXCLUSIVE") { "PRAGMA locking_mode = EXCLUSIVE" } else { "" };
    Case { techniques: techniques.to_owned(), setup: setup.to_owned(), reopen, connections }
}

fn cases(techniques: &str, setups: &[&str]) -> Vec<Case> {
    setups.iter().map(|setup| case(techniques, setup)).collect()
}

/// The same with hot locations, whose chunk is a page of the setup; where that is shorter than any chunk, once at hot
/// locations with pages of 4 KiB, and once as it is without them.
fn cases_at_hot_locations(techniques: &str, setups: &[&str]) -> Vec<Case> {
    let mut cases = Vec::new();
    for setup in setups {
        let page = setup.split_once("page_size = ").and_then(|(_, page)| page.split(';').next()).unwrap();
        let chunk = page.parse::<u64>().unwrap().max(4096);
        let longer = setup.replacen(page, &chunk.to_string(), 1);
        if longer != **setup {
            cases.push(case(techniques, setup));
        }
        cases.push(case(&format!("use-hot-locations={chunk}+{}&{techniques}", chunk / 2), &longer));
    }
    cases
}

#[test]
fn a_power_cut_loses_nothing_without_techniques() {
    cut_everywhere(&cases("", &[ROLLBACK, LOG]));
}

#[test]
fn a_power_cut_loses_nothing_at_hot_locations() {
    let cases = [
        cases("use-hot-locations=4k+2k", &[ROLLBACK, LOG]),
        cases("use-hot-locations=8k+4k", &[PERSIST]),
        cases("use-hot-locations=32k+16k", &[LARGE, LARGE_LOG]),
    ];
    cut_everywhere(&cases.into_iter().flatten().collect::<Vec<_>>());
}

#[test]
fn a_power_cut_loses_nothing_of_large_pages() {
    cut_everywhere(&cases("", &[MIDDLE, MIDDLE_LOG, LARGE, LARGE_LOG]));
}

#[test]
fn a_power_cut_loses_nothing_of_a_log_on_stripes() {
    cut_everywhere(&cases("write-aligned-stripes=8k", &[LOG, SMALL_LOG, EXCLUSIVE_LOG, ROLLBACK]));
}

#[test]
fn a_power_cut_loses_nothing_of_a_log_in_flash_pages() {
    cut_everywhere(&cases("contain-write-in-flash-page=16k", &[LOG, SMALL_LOG, EXCLUSIVE_LOG]));
}

#[test]
fn a_power_cut_loses_nothing_of_a_sparse_log() {
    cut_everywhere(&cases("sparse-log=4k", &[LOG, SMALL_LOG, EXCLUSIVE_LOG]));
}

#[test]
fn a_power_cut_loses_nothing_that_is_written_back_together() {
    cut_everywhere(&cases("concurrent-write-back=8", &[ROLLBACK, TRUNCATE, INCREMENTAL, LOG, SMALL_LOG]));
}

#[test]
fn a_power_cut_loses_nothing_where_freed_pages_are_discarded() {
    cut_everywhere(&cases("discard=on", &[ROLLBACK, TRUNCATE, PERSIST, INCREMENTAL, LOG, SMALL_LOG]));
}

#[test]
fn a_power_cut_loses_nothing_where_pages_are_read_ahead() {
    cut_everywhere(&cases("concurrent-read-ahead=8", &[ROLLBACK, INCREMENTAL, LOG]));
}

#[test]
fn a_power_cut_loses_nothing_of_atomic_batches() {
    let setups = [BATCHES, ROLLBACK, TRUNCATE, INCREMENTAL, LOG, EXCLUSIVE_BATCHES];
    cut_everywhere(&cases("atomic-batch=on", &setups));
}

#[test]
fn a_power_cut_loses_nothing_under_all_techniques_together() {
    let all = "write-aligned-stripes=64k&concurrent-write-back=4&concurrent-read-ahead=4&discard=on&atomic-batch=on";
    cut_everywhere(&cases_at_hot_locations(
        all,
        &[BATCHES, ROLLBACK, TRUNCATE, PERSIST, INCREMENTAL, LOG, SMALL_LOG, EXCLUSIVE_LOG],
    ));
}

/// Where a file's name survives a power cut by itself, only EXTRA makes the end of a transaction durable that deletes
/// its journal (<https://sqlite.org/pragma.html#pragma_synchronous>).
const DELETED: &str = "PRAGMA page_size = 4096; PRAGMA cache_size = 4; PRAGMA synchronous = EXTRA;";

#[test]
fn a_power_cut_loses_nothing_in_a_file_system() {
    /// As above, for cases that take as long as ten.
    const LONGEST_STEP: u64 = 61;
    let plain = cases("", &[DELETED, TRUNCATE, PERSIST, LOG, SMALL_LOG]);
    let all = cases_at_hot_locations(
        "write-aligned-stripes=64k&concurrent-write-back=4&discard=on&atomic-batch=on",
        &[DELETED, TRUNCATE, LOG, SMALL_LOG],
    );
    let extended = cases("log-sync=extend", &[LOG, SMALL_LOG, EXCLUSIVE_LOG]);
    let on = [FileSystemKind::Ext4, FileSystemKind::Xfs].map(On::FileSystem);
    let each = plain.iter().chain(&all).chain(&extended).flat_map(|case| on.map(|on| (case, on, 512)));
    cut_each(&each.collect::<Vec<_>>(), LONGEST_STEP);
}

/// What `fit` applies in place: a page size by `VACUUM`, and a journal mode. Neither changes a row.
const APPLIED: [(&str, &str, i64); 3] = [
    (DELETED, "PRAGMA page_size = 16384; VACUUM; PRAGMA journal_mode = wal", 16384),
    (PERSIST, "PRAGMA page_size = 32768; VACUUM", 32768),
    (LOG, "PRAGMA journal_mode = delete; PRAGMA page_size = 65536; VACUUM; PRAGMA journal_mode = wal", 65536),
];

/// Cuts the power at request `cut_at` of a change, and checks that every row is there; `false` if the change ended
/// before.
fn cut_change((setup, change, page): (&str, &str, i64), on: On, rows_before: &Rows, cut_at: u64) -> bool {
    let in_words = format!("{change} | {on:?} | cut at request {cut_at}");
    let (backend, control) = on.start(512);
    let vfs = Vfs::register(&unique("applied"), backend, VfsOptions::PLAIN).unwrap();
    let db = open("a.db", vfs.name());
    assert_eq!(run(std::slice::from_ref(&db), setup), TRANSACTIONS, "{in_words}");
    drop(db);
    let db = open("a.db", vfs.name());
    let page_before: i64 = db.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    (control.lock().unwrap().fail_at, control.lock().unwrap().fail_forever) = (cut_at, true);
    let changed = db.execute_batch(change);
    drop(db);
    let reached = control.lock().unwrap().fail_at == 0;
    control.lock().unwrap().power_cut(cut_at * 1013);
    vfs.drive_power_cut();

    let db = open("a.db", vfs.name());
    assert_eq!(integrity(&db), "ok", "{in_words}");
    assert!(rows(&db).unwrap() == *rows_before, "{in_words}: rows differ");
    let found: i64 = db.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    assert!(found == page_before || found == page, "{in_words}: pages of {found}");
    // In a file system the deletion of the journal may be undone, and then the change as a whole (see `DELETED`).
    let is_kept = found == page || matches!(on, On::FileSystem(_));
    assert!(reached || (changed.is_ok() && is_kept), "{in_words}: {changed:?}, pages of {found}");
    reached
}

#[test]
fn a_power_cut_while_page_size_and_journal_are_changed_leaves_every_row() {
    /// Most requests between two cuts.
    const LONGEST_STEP: u64 = 7;
    let states = expected();
    let mut random = Random(5);
    let mut cuts = 0;
    for applied in APPLIED {
        for on in [On::Drive, On::FileSystem(FileSystemKind::Ext4), On::FileSystem(FileSystemKind::Xfs)] {
            let mut cut_at = 1;
            while cut_change(applied, on, &states[TRANSACTIONS as usize], cut_at) {
                cuts += 1;
                cut_at += 1 + random.next() % LONGEST_STEP;
            }
        }
    }
    assert!(cuts >= 50, "{cuts} cuts");
    println!("{cuts} power cuts");
}
