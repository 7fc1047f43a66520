//! One run of real SQLite on a fresh simulated drive: rows go in, transaction by transaction; what the log cost and
//! what the checkpoints cost is told apart.
//!
//! ```text
//!   keys in random order ─▶ SQLite, WAL ─▶ VFS: layout, depth ─▶ host ─▶ drive in virtual time ─▶ counters, clock
//!                                │                                                                │
//!                      commit ── or ── checkpoint, after as many frames as given            Part of each
//! ```
//!
//! SQLite's own automatic checkpoint runs within a commit. Here it is switched off and the same is done from outside,
//! with the same threshold, so that counters can be read before and after.
//!
//! Source of the set-up: Kakaraparthy et al., PVLDB 13(4), 2019: WAL, synchronous FULL, exclusive locking, a checkpoint
//! after 1024 frames, table KV.

use std::sync::atomic::{AtomicU64, Ordering};

use flashwise_block::{DeviceCounters, Nanos};
use flashwise_report::study::Measured;
use flashwise_sqlite::{LogLayout, LogSyncs, Vfs, VfsOptions};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_tune::Host;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rusqlite::{Connection, OpenFlags};

use crate::{StudyError, statistics};

/// Numbers the VFS registrations of this process.
static REGISTRATIONS: AtomicU64 = AtomicU64::new(0);
/// Frames after which a checkpoint is made.
pub(super) const CHECKPOINT_FRAMES: i64 = 1024;
/// SQLite's page cache in KiB: everything fits, so that the log gets whole transactions and nothing before.
const PAGE_CACHE_KIB: u32 = 128 << 10;
/// Bytes of a value.
const VALUE_BYTES: usize = 100;

/// What is run.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) drive: DeviceConfig,
    /// What stands between the database and the drive.
    pub(super) host: Host,
    /// Whether the drive is in the steady state of its garbage collection; otherwise nothing was ever written.
    pub(super) is_worn_in: bool,
    pub(super) page: u32,
    pub(super) log: LogLayout,
    /// Runs of pages that are written together.
    pub(super) depth: u32,
    /// Rows that are there before anything is measured.
    pub(super) rows: u32,
    pub(super) inserts: u32,
    pub(super) per_transaction: u32,
}

/// What one part of a run cost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    pub(super) seconds: f64,
    /// Bytes that the host wrote.
    pub(super) host: f64,
    /// Bytes that the flash programmed.
    pub(super) flash: f64,
    /// Of those, bytes without data.
    pub(super) padding: f64,
    /// Bytes that were replaced before they reached the flash.
    pub(super) absorbed: f64,
    /// Bytes that were read from flash.
    pub(super) sensed: f64,
    pub(super) erases: f64,
}

/// A run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    /// Commits: all that is written in them goes to the log.
    pub(super) log: Part,
    /// Checkpoints.
    pub(super) checkpoints: Part,
    /// How many.
    pub(super) checkpoint_count: f64,
    pub(super) commits: f64,
    pub(super) inserts: f64,
}

/// The same run with several seeds.
#[derive(Clone, Debug)]
pub(super) struct Runs(pub(super) Vec<Run>);

impl Part {
    fn add(&mut self, time: Nanos, counters: &DeviceCounters) {
        let flash = counters.flash.unwrap_or_default();
        self.seconds += time.0 as f64 * 1e-9;
        self.host += counters.host_bytes_written.0 as f64;
        self.flash += flash.bytes_programmed.0 as f64;
        self.padding += flash.padding_bytes.0 as f64;
        self.absorbed += flash.absorbed_bytes.0 as f64;
        self.sensed += flash.bytes_read.0 as f64;
        self.erases += flash.erases as f64;
    }
}

impl Run {
    pub(super) fn seconds(&self) -> f64 {
        self.log.seconds + self.checkpoints.seconds
    }

    pub(super) fn flash(&self) -> f64 {
        self.log.flash + self.checkpoints.flash
    }

    pub(super) fn host(&self) -> f64 {
        self.log.host + self.checkpoints.host
    }

    pub(super) fn erases(&self) -> f64 {
        self.log.erases + self.checkpoints.erases
    }
}

impl Runs {
    /// The mean of something of each run.
    pub(super) fn mean(&self, what: impl Fn(&Run) -> f64) -> Measured {
        statistics::mean(&self.0.iter().map(what).collect::<Vec<_>>())
    }

    /// By how many per cent something is more than in other runs, seed by seed.
    pub(super) fn more_than(&self, other: &Self, what: impl Fn(&Run) -> f64) -> Measured {
        let pairs = self.0.iter().zip(&other.0);
        let ratio = |(run, other): (&Run, &Run)| 100.0 * (what(run) / what(other).max(f64::MIN_POSITIVE) - 1.0);
        statistics::mean(&pairs.map(ratio).collect::<Vec<_>>())
    }
}

/// Keys in random order, and values that are letters.
struct Rows {
    keys: Vec<u32>,
    random: Pcg64Mcg,
}

impl Rows {
    fn new(count: u32, seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut keys: Vec<u32> = (0..count).collect();
        keys.shuffle(&mut random);
        Self { keys, random }
    }

    fn value(&mut self) -> String {
        (0..VALUE_BYTES).map(|_| char::from(self.random.random_range(b'a'..=b'z'))).collect()
    }

    fn insert(&mut self, db: &Connection, count: u32) -> Result<(), StudyError> {
        let mut statement = db.prepare_cached("INSERT INTO KV (K, V) VALUES (?1, ?2)")?;
        for _ in 0..count {
            let Some(key) = self.keys.pop() else { return Err(StudyError::Lost) };
            statement.execute((key, self.value()))?;
        }
        Ok(())
    }
}

/// Runs a setting on a drive of its own.
pub(super) fn run(setting: &Setting, seed: u64) -> Result<Run, StudyError> {
    let mut ssd = SimulatedSsd::new(setting.drive.clone(), seed)?;
    if setting.is_worn_in {
        flashwise_sim::enter_steady_state(&mut ssd, seed)?;
    }
    // Logs are extended ahead in every variant, so that the layout or the depth is all that differs.
    let log_syncs = LogSyncs::Extend;
    let options = VfsOptions { log: setting.log, write_back_depth: setting.depth, log_syncs, ..VfsOptions::PLAIN };
    let name = format!("flashwise-study-{}", REGISTRATIONS.fetch_add(1, Ordering::Relaxed));
    let vfs = Vfs::register(&name, setting.host.backend(Box::new(ssd)), options)?;
    let outcome = measure(&vfs, setting, seed);
    outcome.map_err(|error| match (error, vfs.last_error()) {
        // SQLite passes on a code only; the words are the VFS's.
        (StudyError::Sql(rusqlite::Error::SqliteFailure(code, _)), Some(words)) => {
            StudyError::Sql(rusqlite::Error::SqliteFailure(code, Some(words)))
        }
        (error, _) => error,
    })
}

fn measure(vfs: &Vfs, setting: &Setting, seed: u64) -> Result<Run, StudyError> {
    let db = Connection::open_with_flags_and_vfs("study.db", OpenFlags::default(), vfs.name())?;
    let mut rows = Rows::new(setting.rows + setting.inserts, seed);
    db.execute_batch(&format!(
        "PRAGMA page_size = {}; PRAGMA cache_size = -{PAGE_CACHE_KIB}; PRAGMA locking_mode = EXCLUSIVE;
         PRAGMA journal_mode = OFF; BEGIN; CREATE TABLE KV (K INTEGER PRIMARY KEY, V CHAR(100))",
        setting.page
    ))?;
    rows.insert(&db, setting.rows)?;
    db.execute_batch("COMMIT; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0")?;
    let mut run = Run::default();
    let mut left = setting.inserts;
    let reading = || (vfs.now(), vfs.counters());
    while left > 0 {
        let count = setting.per_transaction.clamp(1, left);
        let (began, before) = reading();
        db.execute_batch("BEGIN")?;
        rows.insert(&db, count)?;
        db.execute_batch("COMMIT")?;
        let (committed, between) = reading();
        run.log.add(committed.since(began), &between.since(&before));
        (run.commits, run.inserts) = (run.commits + 1.0, run.inserts + f64::from(count));
        left -= count;
        let frames: i64 = db.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1))?;
        if frames >= CHECKPOINT_FRAMES || left == 0 {
            let (began, before) = reading();
            let is_busy: i64 = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(0))?;
            if is_busy != 0 {
                return Err(StudyError::Lost);
            }
            let (ended, after) = reading();
            run.checkpoints.add(ended.since(began), &after.since(&before));
            run.checkpoint_count += 1.0;
        }
    }
    // What came out must be a database, or its cost says nothing.
    let answer: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    let there: i64 = db.query_row("SELECT count(*) FROM KV", [], |row| row.get(0))?;
    if answer != "ok" || there != i64::from(setting.rows) + i64::from(setting.inserts) {
        return Err(StudyError::Damaged(answer));
    }
    Ok(run)
}
