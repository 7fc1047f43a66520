//! A server with the extension on an attached drive, and slices of work under settings that alternate.
//!
//! ```text
//!   initdb, load ─▶ restart: small pool, direct or buffered I/O ─▶ round by round: default, off, tuned, extension
//!                                       a slice: N sessions for some seconds ─▶ transactions, write time of backends
//! ```
//!
//! Timers of the server run on the machine's clock while the drive's world is slowed down: they are as much longer.

use std::path::Path;
use std::time::{Duration, Instant};

use flashwise_block::{Silent, interrupt};
use flashwise_ssd::DeviceConfig;
use flashwise_tune::postgres::PrivatePostgres;
use postgres::{Client, NoTls};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Case, Scale};
use crate::ace::AccessPattern;
use crate::attached::{Attached, Attachment, Cores};
use crate::{StudyError, StudyOptions};

const CLUSTER: &str = "data";
/// A row that fills its page but for space for its next versions, as in `postgres/bench`.
const FILL_FACTOR: u32 = 10;
const ROW_BYTES: u32 = 500;
/// Settings are in force, and statistics of sessions that ended are counted, after this.
const RELOADED: Duration = Duration::from_millis(500);
/// The server's longest timer.
const TIMER_MAX_MS: f64 = 10_000.0;

/// How the server writes dirty pages back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settings {
    /// PostgreSQL's own.
    Default,
    /// No background writer: backends write every victim, the paper's baseline.
    Off,
    /// The background writer as often, and as much, as it is allowed to.
    Tuned,
    /// The extension, and no background writer.
    Extension,
}

impl Settings {
    pub(super) const ALL: [Self; 4] = [Self::Default, Self::Off, Self::Tuned, Self::Extension];

    /// Values of `bgwriter_delay` in ms in real time, `bgwriter_lru_maxpages`, `bgwriter_lru_multiplier`, and whether
    /// the extension writes.
    const fn values(self) -> (f64, u32, u32, bool) {
        match self {
            Self::Default => (200.0, 100, 2, false),
            Self::Off => (200.0, 0, 2, false),
            Self::Tuned => (10.0, 1_000_000, 10, false),
            Self::Extension => (200.0, 0, 2, true),
        }
    }
}

/// What a slice gave.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Slice {
    /// Transactions a second of the drive's clock.
    pub(super) rate: f64,
    /// Share of the sessions' time that backends spent on writes of pages.
    pub(super) write_share: f64,
}

/// A running server.
pub(super) struct Bench<'a> {
    case: &'a Case,
    scale: &'a Scale,
    client: Client,
    // Ended before the drive, which waits for who is on it.
    server: PrivatePostgres,
    _drive: Attached,
}

impl<'a> Bench<'a> {
    pub(super) fn start(
        case: &'a Case,
        scale: &'a Scale,
        options: &StudyOptions,
        cores: &Cores,
    ) -> Result<Self, StudyError> {
        let how = Attachment { time_scale: Some(scale.time_scale), ..Attachment::default() };
        let config = DeviceConfig::preset(case.drive.preset)?;
        let drive = Attached::start(options.program.as_deref(), &config, &how, cores)?;
        let mut server = PrivatePostgres::new(options.programs.as_deref(), Some(&drive.directory()))?;
        server.create_with(CLUSTER, &["--wal-segsize=1"], &mut Silent)?;
        // Direct I/O while loading would write page by page.
        server.start(CLUSTER, &owned(&[("fsync", "off"), ("max_wal_size", "4GB")]), &mut Silent)?;
        let mut client = Client::connect(&server.dsn(), NoTls)?;
        check_extension(&mut client)?;
        client.batch_execute(&format!(
            "CREATE TABLE t (k integer PRIMARY KEY, n integer NOT NULL, v text NOT NULL)
             WITH (fillfactor = {FILL_FACTOR}, autovacuum_enabled = off);
             INSERT INTO t SELECT i, 0, repeat('x', {ROW_BYTES}) FROM generate_series(1, {}) i",
            scale.pages
        ))?;
        client.batch_execute("VACUUM (FREEZE, ANALYZE) t")?;
        drop(client);
        server.stop(&mut Silent)?;
        drive.used_bytes()?;
        server.start(CLUSTER, &settings(case, scale), &mut Silent)?;
        let client = Client::connect(&server.dsn(), NoTls)?;
        Ok(Self { case, scale, client, server, _drive: drive })
    }

    /// Runs a slice under some settings.
    pub(super) fn slice(&mut self, settings: Settings, seed: u64) -> Result<Slice, StudyError> {
        interrupt::check()?;
        let (delay_ms, most, times, has_extension) = settings.values();
        let delay_ms = (delay_ms * self.scale.time_scale).min(TIMER_MAX_MS);
        for setting in [
            format!("bgwriter_delay = {delay_ms:.0}"),
            format!("bgwriter_lru_maxpages = {most}"),
            format!("bgwriter_lru_multiplier = {times}"),
            format!("flashwise_ace.enabled = {has_extension}"),
        ] {
            self.client.batch_execute(&format!("ALTER SYSTEM SET {setting}"))?;
        }
        self.client.batch_execute("SELECT pg_reload_conf()")?;
        std::thread::sleep(RELOADED);
        let before = self.write_time_ms()?;
        let (transactions, seconds) = self.play(seed)?;
        std::thread::sleep(RELOADED);
        let write_s = (self.write_time_ms()? - before) / 1e3;
        Ok(Slice {
            rate: transactions as f64 / seconds * self.scale.time_scale,
            write_share: write_s / (seconds * f64::from(self.case.sessions)),
        })
    }

    /// Milliseconds that backends have spent on writes of pages.
    fn write_time_ms(&mut self) -> Result<f64, StudyError> {
        let sql = match self.client.query_opt("SELECT FROM pg_class WHERE relname = 'pg_stat_io'", &[])? {
            Some(_) => {
                "SELECT coalesce(sum(write_time), 0)::float8 FROM pg_stat_io \
                 WHERE backend_type = 'client backend' AND object = 'relation'"
            }
            // PostgreSQL 15.
            None => "SELECT sum(blk_write_time)::float8 FROM pg_stat_database",
        };
        Ok(self.client.query_one(sql, &[])?.get(0))
    }

    /// All sessions for the time of a slice: transactions, and how long it took, s.
    fn play(&self, seed: u64) -> Result<(u64, f64), StudyError> {
        let (dsn, began) = (self.server.dsn(), Instant::now());
        let end = began + self.scale.slice;
        let session = |number: u32| {
            let random = Pcg64Mcg::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(number.into()));
            session(&dsn, &self.case.pattern, self.scale.pages, random, end)
        };
        std::thread::scope(|scope| {
            let sessions: Vec<_> = (0..self.case.sessions).map(|number| scope.spawn(move || session(number))).collect();
            let mut transactions = 0;
            for session in sessions {
                transactions += session.join().map_err(|_| StudyError::Lost)??;
            }
            Ok((transactions, began.elapsed().as_secs_f64()))
        })
    }
}

/// Refuses a server without the extension, before anything is loaded.
fn check_extension(client: &mut Client) -> Result<(), StudyError> {
    let found = client.query_opt("SELECT FROM pg_available_extensions WHERE name = 'flashwise_ace'", &[])?;
    found.map(drop).ok_or_else(|| {
        StudyError::Missing(
            "this server has no extension flashwise_ace: install it (postgres/README.md), or name the folder of another \
             server's programs with --programs"
                .to_owned(),
        )
    })
}

/// One session until a time.
fn session(
    dsn: &str,
    pattern: &AccessPattern,
    pages: u32,
    mut random: Pcg64Mcg,
    end: Instant,
) -> Result<u64, StudyError> {
    let mut client = Client::connect(dsn, NoTls)?;
    let read = client.prepare("SELECT n FROM t WHERE k = $1")?;
    let write = client.prepare("UPDATE t SET n = n + 1 WHERE k = $1")?;
    let hot = ((f64::from(pages) * pattern.hot_pages) as u32).clamp(1, pages);
    let mut done = 0;
    while Instant::now() < end {
        let is_hot = hot == pages || random.random::<f64>() < pattern.hot_accesses;
        let page = if is_hot { random.random_range(0..hot) } else { random.random_range(hot..pages) };
        let statement = if random.random::<f64>() < pattern.writes { &write } else { &read };
        client.execute(statement, &[&(page as i32 + 1)])?;
        done += 1;
    }
    Ok(done)
}

fn owned(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn settings(case: &Case, scale: &Scale) -> Vec<(String, String)> {
    let drive = case.drive;
    let latency_us = f64::from(drive.write_us) * scale.time_scale;
    let mut all = owned(&[
        ("shared_preload_libraries", "flashwise_ace"),
        ("synchronous_commit", "off"),
        ("full_page_writes", "off"),
        ("checkpoint_timeout", "1d"),
        ("max_wal_size", "100GB"),
        ("autovacuum", "off"),
        ("track_io_timing", "on"),
    ]);
    if case.is_direct {
        all.extend(owned(&[("debug_io_direct", "data")]));
    }
    all.extend([
        ("shared_buffers".to_owned(), format!("{}", scale.buffers)),
        ("max_worker_processes".to_owned(), format!("{}", 8 + drive.k_w)),
        ("flashwise_ace.workers".to_owned(), drive.k_w.to_string()),
        ("flashwise_ace.write_latency".to_owned(), format!("{latency_us:.0}us")),
    ]);
    all
}

/// Whether a server's program is there and has direct I/O: PostgreSQL 16 and later.
pub(super) fn version(programs: Option<&Path>) -> Result<(String, bool), StudyError> {
    let version = PrivatePostgres::new(programs, None)?.version(&mut Silent)?;
    let major = version.split([' ', '.']).find_map(|word| word.parse::<u32>().ok()).unwrap_or(0);
    Ok((version, major >= 16))
}
