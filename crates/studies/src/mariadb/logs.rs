//! The binary log of a real server on an attached Toshiba, one setting after the other, each in a log file of its own.
//!
//! ```text
//!   inserts, synced one by one ─▶ binary log ─▶ its bytes: transactions        ┐
//!                                    └─▶ ext4 ─▶ drive ─▶ trace, extents       ├─▶ pages written, and with padding ─▶ wear
//! ```

use std::ops::Range;

use flashwise_block::{ByteSize, ExtentMap, Silent, file_extents};
use flashwise_report::study::Measured;
use flashwise_tune::mariadb::PrivateMariadb;
use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use super::Scale;
use super::bench::{SETTINGS, settings};
use super::binlog::{Wear, Written, padded, pages, transactions, written_pages};
use super::drives;
use super::key_value::{DATABASE, letters};
use super::placement::Page;
use crate::attached::{Attached, Attachment, Cores};
use crate::statistics::mean;
use crate::{Progress, StudyError, StudyOptions};

const INSTANCE: &str = "data";
/// Each transaction is durable in the binary log before it is completed.
const LOGGING: [(&str, &str); 2] = [("log-bin", "binlog"), ("sync-binlog", "1")];
/// Batches of transactions over which the interval of what is saved is taken.
const BATCHES: usize = 10;

/// What a log file was written with.
struct Kind {
    name: &'static str,
    /// Set for the session before.
    settings: &'static [&'static str],
    per_transaction: u32,
    /// Whether the quick version has it too.
    is_quick: bool,
}

const KINDS: [Kind; 4] = [
    Kind { name: "default settings", settings: &[], per_transaction: 1, is_quick: true },
    Kind { name: "rows", settings: &["binlog_format = 'ROW'"], per_transaction: 1, is_quick: true },
    Kind {
        name: "rows without statements",
        settings: &["binlog_format = 'ROW'", "binlog_annotate_row_events = OFF"],
        per_transaction: 1,
        is_quick: true,
    },
    Kind {
        name: "rows, 10 per transaction",
        settings: &["binlog_format = 'ROW'", "binlog_annotate_row_events = OFF"],
        per_transaction: 10,
        is_quick: false,
    },
];

/// What one log file showed.
pub(super) struct LogShown {
    pub(super) name: &'static str,
    pub(super) transactions: Vec<Range<u64>>,
    /// Pages that the drive was sent for the log.
    pub(super) traced_pages: u64,
    /// By drive.
    pub(super) wear: Vec<(&'static str, Wear)>,
}

/// All logs.
pub(super) struct Logs {
    pub(super) page: u64,
    pub(super) logs: Vec<LogShown>,
    /// Whether every file starts and continues at flash pages' starts.
    pub(super) is_aligned: bool,
}

/// A log file once the server is done with it.
struct File {
    name: &'static str,
    transactions: Vec<Range<u64>>,
    place: ExtentMap,
    /// Its time, in requests of the drive's.
    requests: Range<u64>,
}

/// Runs the server, then the drives.
pub(super) fn measure(
    scale: &Scale,
    options: &StudyOptions,
    cores: &Cores,
    progress: Progress<'_>,
) -> Result<Logs, StudyError> {
    let config = drives::toshiba()?;
    let page = config.flash.page_bytes;
    progress("binary log", 0.02);
    let how = Attachment { is_captured: true, ..Attachment::default() };
    let drive = Attached::start(options.program.as_deref(), &config, &how, cores)?;
    let files = write(scale, options, &drive, progress)?;
    let trace = drive.trace()?;
    let mut logs = Logs { page, logs: Vec::new(), is_aligned: true };
    for file in files {
        progress(&format!("binary log, {}: wear", file.name), 0.15);
        let at = |number: u64| (number as usize).min(trace.len());
        let written = Written {
            transactions: &file.transactions,
            place: &file.place,
            trace: &trace[at(file.requests.start)..at(file.requests.end)],
        };
        let traced_pages = written.traced_pages(page);
        let wear = drives::toshibas()?
            .into_iter()
            .map(|(name, config)| Ok((name, written.wear(&config, options.seed)?)))
            .collect::<Result<_, StudyError>>()?;
        let at_pages = |extent: &flashwise_block::Extent| {
            extent.offset.is_multiple_of(ByteSize(page)) && extent.drive_offset.is_multiple_of(ByteSize(page))
        };
        logs.is_aligned &= file.place.extents().iter().all(at_pages);
        logs.logs.push(LogShown { name: file.name, transactions: file.transactions, traced_pages, wear });
    }
    Ok(logs)
}

fn write(
    scale: &Scale,
    options: &StudyOptions,
    drive: &Attached,
    progress: Progress<'_>,
) -> Result<Vec<File>, StudyError> {
    let page = ByteSize(Page::DEFAULT_BYTES);
    let source = PrivateMariadb::new(None, None)?;
    source.create_with(INSTANCE, &settings(page, &[]), &mut Silent)?;
    let mut server = PrivateMariadb::new(None, Some(&drive.directory()))?;
    server.copy_from(&source, INSTANCE, INSTANCE, &mut Silent)?;
    drop(source);
    server.start(INSTANCE, &settings(page, &[&SETTINGS[..], &LOGGING].concat()), &mut Silent)?;
    let mut connection = server.connect()?;
    connection.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
    connection.query_drop(format!(
        "CREATE TABLE {DATABASE}.kv (k INT UNSIGNED PRIMARY KEY, v CHAR(100) CHARACTER SET latin1 NOT NULL) ENGINE = InnoDB"
    ))?;
    let mut random = Pcg64Mcg::seed_from_u64(options.seed);
    let mut keys: Vec<u32> = (0..1 << 20).collect();
    keys.shuffle(&mut random);
    let mut files = Vec::new();
    for kind in KINDS.iter().filter(|kind| kind.is_quick || !options.quick) {
        progress(&format!("binary log, {}", kind.name), 0.04);
        kind.settings.iter().try_for_each(|set| connection.query_drop(format!("SET SESSION {set}")))?;
        connection.query_drop("FLUSH BINARY LOGS")?;
        let status: Option<Row> = connection.query_first("SHOW MASTER STATUS")?;
        let name: String = status.and_then(|row| row.get(0)).ok_or(StudyError::Lost)?;
        let before = requests(drive)?;
        insert(&mut connection, kind, scale.commits, &mut keys, &mut random)?;
        let after = requests(drive)?;
        // The file is ended, and everything of it is on the drive.
        connection.query_drop("FLUSH BINARY LOGS")?;
        let path = server.data(INSTANCE).join(name);
        let transactions = transactions(&std::fs::read(&path)?)?;
        if transactions.len() != scale.commits as usize {
            let found = transactions.len();
            return Err(StudyError::Damaged(format!(
                "the binary log has {found} transactions instead of {}",
                scale.commits
            )));
        }
        files.push(File { name: kind.name, transactions, place: file_extents(&path)?, requests: before..after });
    }
    drop(connection);
    server.stop(&mut Silent)?;
    Ok(files)
}

/// How many requests the drive has completed.
fn requests(drive: &Attached) -> Result<u64, StudyError> {
    let counters = drive.stat()?.counters;
    Ok(counters.host_reads + counters.host_writes + counters.flushes + counters.trims + counters.zero_writes)
}

fn insert(
    connection: &mut Conn,
    kind: &Kind,
    commits: u32,
    keys: &mut Vec<u32>,
    random: &mut Pcg64Mcg,
) -> Result<(), StudyError> {
    let statement = connection.prep(format!("INSERT INTO {DATABASE}.kv VALUES (?, ?)"))?;
    for _ in 0..commits {
        connection.query_drop("BEGIN")?;
        for _ in 0..kind.per_transaction {
            let key = keys.pop().ok_or(StudyError::Lost)?;
            connection.exec_drop(&statement, (key, letters(random, 100)))?;
        }
        connection.query_drop("COMMIT")?;
    }
    Ok(())
}

impl LogShown {
    /// Bytes of a transaction.
    pub(super) fn length(&self) -> Measured {
        mean(&self.transactions.iter().map(|one| (one.end - one.start) as f64).collect::<Vec<_>>())
    }

    /// Pages that are written for a transaction as it was, and padded.
    pub(super) fn pages_each(&self, page: u64) -> [f64; 2] {
        let count = self.transactions.len().max(1) as f64;
        [written_pages(&self.transactions, page), written_pages(&padded(&self.transactions, page), page)]
            .map(|pages| pages as f64 / count)
    }

    /// Pages with padding beyond those without, %; the interval is over batches of transactions.
    pub(super) fn saved(&self, page: u64) -> Measured {
        let each =
            |of: &[Range<u64>]| of.iter().map(|one| pages(one.start, one.end - one.start, page) as f64).collect();
        let (plain, padded): (Vec<f64>, Vec<f64>) = (each(&self.transactions), each(&padded(&self.transactions, page)));
        let batch = plain.len().div_ceil(BATCHES).max(1);
        let sum = |of: &[f64]| of.iter().sum::<f64>();
        let batches = plain.chunks(batch).zip(padded.chunks(batch));
        mean(&batches.map(|(plain, padded)| 100.0 * (sum(padded) / sum(plain) - 1.0)).collect::<Vec<_>>())
    }

    /// By how much the file is longer with padding, %.
    pub(super) fn longer(&self, page: u64) -> f64 {
        let span = |of: &[Range<u64>]| of.last().map_or(0, |last| last.end) - of.first().map_or(0, |first| first.start);
        100.0 * (span(&padded(&self.transactions, page)) as f64 / span(&self.transactions).max(1) as f64 - 1.0)
    }
}
