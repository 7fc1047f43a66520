//! A database on an attached drive, and what a piece of work costs it.
//!
//! ```text
//!   source: one instance a page size, loaded on the machine's own disk
//!      └─ cp ─▶ ext4 on the attached drive ─▶ [written again] ─▶ extents examined ─▶ private server, small buffer pool
//!   a piece of work: counters, drive's clock, processor before and after; reads by their numbers in the trace
//! ```
//!
//! Databases of one comparison are attached at the same time and take turns, piece by piece. The trace of each is read
//! when all is done; it tells how long the client waited for the drive whatever the machine did meanwhile.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use flashwise_attach::DeviceStat;
use flashwise_block::{ByteSize, Operation, Silent, file_extents};
use flashwise_ssd::DeviceConfig;
use flashwise_tune::mariadb::PrivateMariadb;
use mysql::Conn;
use mysql::prelude::Queryable;

use super::drives::Hidden;
use super::key_value::{DATABASE, FILE, KeyValue};
use super::placement::{self, Page, Placed, Variant, Writes};
use super::waits::waited;
use super::ycsb::Client;
use crate::StudyError;
use crate::attached::{Attached, Attachment, Cores, processor_seconds};

/// The instance of a source, and of each drive.
const INSTANCE: &str = "data";
/// For loading alone: all is in memory until the server ends.
const LOADING: [(&str, &str); 4] = [
    ("innodb-buffer-pool-size", "768M"),
    ("innodb-log-file-size", "256M"),
    ("innodb-flush-log-at-trx-commit", "0"),
    ("innodb-doublewrite", "OFF"),
];
/// Beside the defaults: a buffer pool that holds a part of the data, as small as MariaDB has it with pages of 64 KiB,
/// and nothing that works by itself in the midst of a piece of work.
pub(super) const SETTINGS: [(&str, &str); 8] = [
    ("innodb-buffer-pool-size", "24M"),
    ("innodb-lru-scan-depth", "100"),
    ("innodb-log-file-size", "16M"),
    ("innodb-io-capacity", "2000"),
    ("innodb-io-capacity-max", "20000"),
    ("innodb-stats-auto-recalc", "OFF"),
    ("innodb-buffer-pool-dump-at-shutdown", "OFF"),
    ("innodb-buffer-pool-load-at-startup", "OFF"),
];
/// How often it is looked whether pages are written back, and how long that may take.
const LOOK: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(120);

/// Settings as a server takes them.
pub(super) fn settings(page: ByteSize, more: &[(&str, &str)]) -> Vec<(String, String)> {
    let page = ("innodb-page-size".to_owned(), page.0.to_string());
    let more = more.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
    std::iter::once(page).chain(more).collect()
}

/// Instances that were loaded, to be copied.
pub(super) struct Source {
    server: PrivateMariadb,
    page: ByteSize,
}

impl Source {
    /// Loads the tables; keys and rows follow from the seed.
    pub(super) fn load(page: ByteSize, work: &KeyValue, client: &mut Client, seed: u64) -> Result<Self, StudyError> {
        let mut server = PrivateMariadb::new(None, None)?;
        server.create_with(INSTANCE, &settings(page, &[]), &mut Silent)?;
        server.start(INSTANCE, &settings(page, &LOADING), &mut Silent)?;
        let mut connection = server.connect()?;
        connection.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
        work.load(&mut connection, seed)?;
        client.load(&mut connection)?;
        drop(connection);
        server.stop(&mut Silent)?;
        // The log becomes as long as it is on the drives.
        server.start(INSTANCE, &settings(page, &SETTINGS), &mut Silent)?;
        server.stop(&mut Silent)?;
        Ok(Self { server, page })
    }
}

/// A database on a drive of its own.
pub(super) struct Database {
    pub(super) variant: Variant,
    pub(super) placed: Placed,
    pub(super) version: String,
    // Ended before the drive, which waits for who is on it.
    server: PrivateMariadb,
    pub(super) connection: Conn,
    drive: Attached,
    time_scale: f64,
    /// Why the server's requests waited behind flushes.
    pub(super) not_apart: Option<String>,
}

/// What a piece of work took.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// Of the drive's clock, as the client saw it.
    pub(super) seconds: f64,
    /// The server's on a processor.
    pub(super) processor_s: f64,
    /// Requests for reading, by their numbers among the drive's.
    reads: Range<u64>,
    /// Bytes that the host wrote, and that were programmed into flash.
    pub(super) written_bytes: f64,
    pub(super) flash_bytes: f64,
}

/// What a drive showed from its start to its end.
pub(super) struct Ended {
    pub(super) stat: DeviceStat,
    reads: Vec<flashwise_trace::TraceRecord>,
}

/// Where and how a drive is attached.
#[derive(Clone, Copy)]
pub(super) struct Stage<'a> {
    pub(super) program: Option<&'a Path>,
    pub(super) config: &'a DeviceConfig,
    pub(super) hidden: Hidden,
    pub(super) time_scale: f64,
    pub(super) cores: &'a Cores,
}

impl Database {
    /// Copies a source to a new drive, and starts a server on it.
    pub(super) fn start(stage: Stage<'_>, variant: Variant, source: &Source) -> Result<Self, StudyError> {
        let Hidden { chunk_bytes, hot } = stage.hidden;
        let offset = ByteSize(if variant.is_placed { hot.offset_bytes } else { 0 });
        let how = Attachment { time_scale: Some(stage.time_scale), offset, is_captured: true, ..Attachment::default() };
        let drive = Attached::start(stage.program, stage.config, &how, stage.cores)?;
        let half = ByteSize(chunk_bytes / 2);
        if variant.writes == Writes::Halved {
            drive.cut_requests(half)?;
        }
        let mut server = PrivateMariadb::new(None, Some(&drive.directory()))?;
        server.copy_from(&source.server, INSTANCE, INSTANCE, &mut Silent)?;
        server.drop_page_cache(INSTANCE)?;
        let table = server.data(INSTANCE).join(FILE);
        let extents = file_extents(&table)?;
        let page = variant.page.bytes(ByteSize(chunk_bytes));
        let placed = placement::placed(extents.extents(), offset, page, hot);
        if variant.writes == Writes::Bulk {
            placement::write_anew(&table, half)?;
        }
        server.start(INSTANCE, &settings(source.page, &SETTINGS), &mut Silent)?;
        let not_apart = drive.keep_apart(server.process().ok_or(StudyError::Lost)?)?;
        let mut connection = server.connect()?;
        let version: Option<String> = connection.query_first("SELECT VERSION()")?;
        let version = version.unwrap_or_default();
        Ok(Self { variant, placed, version, server, connection, drive, time_scale: stage.time_scale, not_apart })
    }

    /// Does a piece of work.
    pub(super) fn piece(
        &mut self,
        work: impl FnOnce(&mut Conn) -> Result<(), StudyError>,
    ) -> Result<Piece, StudyError> {
        let server = self.server.process().ok_or(StudyError::Lost)?;
        let (before, processor) = (self.drive.stat()?, processor_seconds(server));
        let began = Instant::now();
        work(&mut self.connection)?;
        let seconds = began.elapsed().as_secs_f64() / self.time_scale;
        let processor_s = (processor_seconds(server) - processor).max(0.0);
        let after = self.drive.stat()?;
        let counted = after.counters.since(&before.counters);
        Ok(Piece {
            seconds,
            processor_s,
            reads: before.counters.host_reads..after.counters.host_reads,
            written_bytes: counted.host_bytes_written.0 as f64,
            flash_bytes: counted.flash.map_or(0.0, |flash| flash.bytes_programmed.0 as f64),
        })
    }

    /// Lets the server write back all pages that were changed.
    pub(super) fn settle(&mut self) -> Result<(), StudyError> {
        let connection = &mut self.connection;
        let bound: Option<f64> = connection.query_first("SELECT @@GLOBAL.innodb_max_dirty_pages_pct")?;
        let low: Option<f64> = connection.query_first("SELECT @@GLOBAL.innodb_max_dirty_pages_pct_lwm")?;
        let (bound, low) = bound.zip(low).ok_or(StudyError::Lost)?;
        connection.query_drop("SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0")?;
        connection.query_drop("SET GLOBAL innodb_max_dirty_pages_pct = 0")?;
        let began = Instant::now();
        let dirty = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                     WHERE VARIABLE_NAME = 'INNODB_BUFFER_POOL_PAGES_DIRTY'";
        while connection.query_first::<u64, _>(dirty)?.unwrap_or_default() > 0 {
            if began.elapsed() > PATIENCE {
                return Err(StudyError::Attach("the server does not write back its dirty pages".to_owned()));
            }
            std::thread::sleep(LOOK);
        }
        connection.query_drop(format!("SET GLOBAL innodb_max_dirty_pages_pct = {bound}"))?;
        Ok(connection.query_drop(format!("SET GLOBAL innodb_max_dirty_pages_pct_lwm = {low}"))?)
    }

    /// Ends server and drive.
    pub(super) fn end(self) -> Result<Ended, StudyError> {
        let Self { mut server, connection, drive, .. } = self;
        drop(connection);
        let stat = drive.stat()?;
        server.stop(&mut Silent)?;
        drop(server);
        let mut reads = drive.trace()?;
        reads.retain(|request| request.operation == Operation::Read);
        Ok(Ended { stat, reads })
    }
}

impl Ended {
    /// The reads of a piece of work.
    fn reads(&self, piece: &Piece) -> &[flashwise_trace::TraceRecord] {
        let at = |number: u64| (number as usize).min(self.reads.len());
        &self.reads[at(piece.reads.start)..at(piece.reads.end)]
    }

    /// How long the client waited for reads, s.
    pub(super) fn waited_s(&self, piece: &Piece) -> f64 {
        waited(self.reads(piece).iter()).0 as f64 * 1e-9
    }

    /// Bytes that were read.
    pub(super) fn read_bytes(&self, piece: &Piece) -> f64 {
        self.reads(piece).iter().map(|read| read.length.0 as f64).sum()
    }
}

/// The page sizes that variants have, each once.
pub(super) fn page_sizes(variants: &[Variant]) -> Vec<Page> {
    let mut pages: Vec<Page> = Vec::new();
    variants.iter().for_each(|variant| {
        if !pages.contains(&variant.page) {
            pages.push(variant.page);
        }
    });
    pages
}
