//! One drive with a database a fill factor on it: loaded, then run alternately, each round the same transactions.
//!
//! ```text
//!   for each fill factor:  initdb ─▶ space in use ─▶ load, checkpoint ─▶ space in use
//!   round by round, the fill factors alternately:  nothing cached ─▶ server in its memory cgroup ─▶ N transactions, CHECKPOINT
//! ```
//!
//! The databases age side by side, so that a round of one stands beside the round of another at the same age. The
//! checkpoint is counted: pages that were changed have to be written some time. Transactions a second are those of the
//! drive's clock.

use std::time::{Duration, Instant};

use flashwise_attach::{Cgroup, DeviceStat};
use flashwise_block::Silent;
use flashwise_tune::TuneError;
use flashwise_tune::postgres::{Pgbench, PostgresTpcc, PrivatePostgres, SessionOptions, TransactionStats};
use postgres::{Client, NoTls};

use super::drives::Drive;
use crate::attached::{Attached, Attachment, Cores, bound_memory, processor_seconds};
use crate::{Progress, StudyError};

/// What is loaded and run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// TPC-C as sysbench-tpcc has it; the fill factor is that of the database.
    Tpcc(PostgresTpcc),
    /// pgbench's own, like TPC-B, with so many branches.
    Pgbench { scale: u32 },
}

impl Work {
    fn load(self, fill_factor: u32, server: &PrivatePostgres, seed: u64) -> Result<(), TuneError> {
        match self {
            Self::Tpcc(tables) => PostgresTpcc { fill_factor, ..tables }.load(&server.dsn(), seed),
            Self::Pgbench { scale } => Pgbench { scale, fill_factor }.load(server),
        }
    }

    fn play(
        self,
        fill_factor: u32,
        server: &PrivatePostgres,
        how: &SessionOptions,
    ) -> Result<TransactionStats, TuneError> {
        match self {
            Self::Tpcc(tables) => PostgresTpcc { fill_factor, ..tables }.play(&server.dsn(), how),
            Self::Pgbench { scale } => Pgbench { scale, fill_factor }.play(server, how),
        }
    }
}

/// What is run, and under which conditions.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    pub(super) drive: Drive,
    /// Fill factors, 100 first.
    pub(super) fills: Vec<u32>,
    pub(super) work: Work,
    pub(super) sessions: u32,
    /// Transactions of a round.
    pub(super) transactions: u64,
    pub(super) rounds: u32,
    /// Seconds of the machine for one of the drive's.
    pub(super) time_scale: f64,
    /// Of the server with its page cache; without a bound where there is none.
    pub(super) memory_bytes: Option<u64>,
    /// Settings of the server beside [`SETTINGS`].
    pub(super) settings: Vec<(&'static str, &'static str)>,
    pub(super) seed: u64,
}

/// A database of one fill factor.
#[derive(Clone, Debug)]
pub(super) struct Filled {
    pub(super) fill: u32,
    /// After it was loaded, bytes of the file system.
    pub(super) logical_bytes: f64,
    /// And of the drive.
    pub(super) physical_bytes: f64,
    /// Of its tables alone, without indexes.
    pub(super) table_bytes: f64,
    pub(super) rounds: Vec<Round>,
}

/// What the transactions of a round took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// A second of the drive's clock.
    pub(super) rate: f64,
    /// All for each transaction: bytes of the log,
    pub(super) log_bytes: f64,
    /// requests for reading and bytes written that reached the drive,
    pub(super) reads: f64,
    pub(super) written_bytes: f64,
    /// bytes programmed into flash,
    pub(super) flash_bytes: f64,
    /// and the server's time on a processor, s.
    pub(super) processor_s: f64,
    /// Updates of rows, and those that stayed on their page and left the indexes alone.
    pub(super) updates: f64,
    pub(super) hot_updates: f64,
    /// Transactions started again for each that was done, because another session was in the way.
    pub(super) again: f64,
}

/// What one drive showed.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) fills: Vec<Filled>,
    /// How late the drive's answers were, and how long its requests took.
    pub(super) stat: DeviceStat,
    pub(super) version: String,
    /// Why the server's memory was not bounded.
    pub(super) unbounded: Option<String>,
    /// Why its requests waited behind flushes.
    pub(super) not_apart: Option<String>,
}

/// How often it is looked whether sessions have ended, and how long that may take.
const LOOK: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(60);
/// The load is not logged; what else is set is so for the rounds too.
const LOADING: [(&str, &str); 4] =
    [("wal_level", "minimal"), ("max_wal_senders", "0"), ("max_wal_size", "1GB"), ("maintenance_work_mem", "128MB")];
/// Beside the defaults: a page cache that is the memory cgroup's rather than the server's, and no surprises in the
/// midst of a round; its checkpoint is asked for.
const SETTINGS: [(&str, &str); 6] = [
    ("shared_buffers", "16MB"),
    ("max_wal_size", "1GB"),
    ("min_wal_size", "32MB"),
    ("checkpoint_timeout", "1h"),
    ("autovacuum", "off"),
    ("max_connections", "80"),
];

/// Timers of the server's, ms, which run on the machine's clock: they are as much longer as the drive's world is slowed
/// down, or as long as the server lets them be.
const TIMERS: [(&str, f64); 2] = [("bgwriter_delay", 200.0), ("wal_writer_delay", 200.0)];
const LONGEST_MS: f64 = 10_000.0;

/// Runs it.
///
/// # Errors
/// Where the drive cannot be attached, no server is installed, or it fails.
pub(super) fn run(
    conditions: &Conditions,
    program: Option<&std::path::Path>,
    progress: Progress<'_>,
    (done, share): (f64, f64),
) -> Result<Outcome, StudyError> {
    let cores = Cores::share()?;
    let how = Attachment { time_scale: Some(conditions.time_scale), ..Attachment::default() };
    let drive = Attached::start(program, &conditions.drive.config()?, &how, &cores)?;
    // Ended before the drive, which waits for who is on it.
    let server = PrivatePostgres::new(None, Some(&drive.directory()))?;
    let mut bench = Bench { conditions, drive: &drive, server, unbounded: None, not_apart: None };
    let steps = f64::from(conditions.rounds + 2) * conditions.fills.len() as f64;
    let mut step = 0.0;
    let mut tell = |what: String, steps_done: f64| {
        progress(&format!("{} drive, {what}", conditions.drive.name()), done + share * step / steps);
        step += steps_done;
    };
    let mut fills = Vec::new();
    for &fill in &conditions.fills {
        tell(format!("loading with fill factor {fill}"), 2.0);
        fills.push(bench.load(fill)?);
    }
    for round in 0..conditions.rounds {
        let count = conditions.fills.len();
        for turn in 0..count {
            // Another one is first in each round: drift is no gain.
            let at = (turn + round as usize) % count;
            let fill = conditions.fills[at];
            tell(format!("fill factor {fill}, round {} of {}", round + 1, conditions.rounds), 1.0);
            fills[at].rounds.push(bench.round(fill, round)?);
        }
    }
    let version = bench.server.version(&mut Silent)?;
    let Bench { unbounded, not_apart, server, .. } = bench;
    drop(server);
    Ok(Outcome { fills, stat: drive.stat()?, version, unbounded, not_apart })
}

struct Bench<'a> {
    conditions: &'a Conditions,
    drive: &'a Attached,
    server: PrivatePostgres,
    unbounded: Option<String>,
    not_apart: Option<String>,
}

/// Counters before a round.
struct Before {
    stat: DeviceStat,
    processor_s: f64,
    log: i64,
    updates: (i64, i64),
}

impl Bench<'_> {
    fn settings(&self, more: &[(&str, &str)]) -> Vec<(String, String)> {
        let all = SETTINGS.iter().chain(more).chain(&self.conditions.settings);
        let fixed = all.map(|&(name, value)| (name.to_owned(), value.to_owned()));
        fixed.chain(timers(self.conditions.time_scale)).collect()
    }

    fn load(&mut self, fill: u32) -> Result<Filled, StudyError> {
        let name = format!("fill{fill}");
        self.server.create(&name, &mut Silent)?;
        self.server.start(&name, &self.settings(&LOADING), &mut Silent)?;
        let mut client = self.connect()?;
        client.batch_execute("CHECKPOINT")?;
        let before = self.space()?;
        self.conditions.work.load(fill, &self.server, self.conditions.seed)?;
        client.batch_execute("CHECKPOINT")?;
        let after = self.space()?;
        let sql = "SELECT sum(pg_table_size(oid))::bigint FROM pg_class \
                   WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
        let tables: i64 = client.query_one(sql, &[])?.get(0);
        drop(client);
        self.server.stop(&mut Silent)?;
        Ok(Filled {
            fill,
            logical_bytes: after.0.saturating_sub(before.0) as f64,
            physical_bytes: after.1.saturating_sub(before.1) as f64,
            table_bytes: tables as f64,
            rounds: Vec::new(),
        })
    }

    /// Bytes in use, of the file system and of the drive. One that stores what it is given uses the same.
    fn space(&self) -> Result<(u64, u64), StudyError> {
        let used = self.drive.used_bytes()?;
        Ok((used, self.drive.stat()?.space.map_or(used, |space| space.physical_bytes)))
    }

    fn connect(&self) -> Result<Client, StudyError> {
        Ok(Client::connect(&self.server.dsn(), NoTls)?)
    }

    fn round(&mut self, fill: u32, round: u32) -> Result<Round, StudyError> {
        let name = format!("fill{fill}");
        self.server.stop(&mut Silent)?;
        self.server.drop_page_cache(&name)?;
        self.server.start(&name, &self.settings(&[]), &mut Silent)?;
        let server = self.server.process()?.ok_or(StudyError::Lost)?;
        // Held until the server has stopped.
        let bound = self.bound(server)?;
        self.not_apart = self.drive.keep_apart(server)?;
        let mut client = self.connect()?;
        let before = self.counters(&mut client, server)?;
        let how = SessionOptions {
            sessions: self.conditions.sessions,
            transactions: self.conditions.transactions,
            seed: self.conditions.seed.wrapping_add(u64::from(round) + 1),
        };
        let started = Instant::now();
        let played = self.conditions.work.play(fill, &self.server, &how)?;
        client.batch_execute("CHECKPOINT")?;
        let seconds = started.elapsed().as_secs_f64();
        let after = self.counters(&mut client, server)?;
        drop(client);
        self.server.stop(&mut Silent)?;
        drop(bound);
        let transactions = played.transactions.max(1) as f64;
        let flash = |stat: &DeviceStat| stat.counters.flash.map_or(0, |flash| flash.bytes_programmed.0);
        let counted = |of: fn(&DeviceStat) -> u64| (of(&after.stat) - of(&before.stat)) as f64 / transactions;
        Ok(Round {
            rate: transactions / seconds * self.conditions.time_scale,
            log_bytes: (after.log - before.log) as f64 / transactions,
            reads: counted(|stat| stat.counters.host_reads),
            written_bytes: counted(|stat| stat.counters.host_bytes_written.0),
            flash_bytes: flash(&after.stat).saturating_sub(flash(&before.stat)) as f64 / transactions,
            processor_s: (after.processor_s - before.processor_s).max(0.0) / transactions,
            updates: (after.updates.0 - before.updates.0) as f64,
            hot_updates: (after.updates.1 - before.updates.1) as f64,
            again: played.retries as f64 / transactions,
        })
    }

    /// The server's memory, with a bound where there can be one.
    fn bound(&mut self, server: u32) -> Result<Option<Cgroup>, StudyError> {
        let Some(bytes) = self.conditions.memory_bytes else { return Ok(None) };
        let bound = bound_memory(server, bytes)?;
        self.unbounded = bound.as_ref().err().cloned().or(self.unbounded.take());
        Ok(bound.ok())
    }

    fn counters(&self, client: &mut Client, server: u32) -> Result<Before, StudyError> {
        let log = client.query_one("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint", &[])?.get(0);
        let updates = settled_updates(client)?;
        Ok(Before { stat: self.drive.stat()?, processor_s: processor_seconds(server), log, updates })
    }
}

/// The server's timers in a world that is slowed down.
fn timers(time_scale: f64) -> impl Iterator<Item = (String, String)> {
    TIMERS.iter().map(move |&(name, ms)| (name.to_owned(), format!("{:.0}ms", (ms * time_scale).min(LONGEST_MS))))
}

/// Updates of rows, once every session that has ended has told its own.
fn settled_updates(client: &mut Client) -> Result<(i64, i64), StudyError> {
    let others =
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let began = Instant::now();
    while client.query_one(others, &[])?.get::<_, i64>(0) > 0 {
        if began.elapsed() > PATIENCE {
            return Err(StudyError::Lost);
        }
        std::thread::sleep(LOOK);
    }
    let sql =
        "SELECT coalesce(sum(n_tup_upd), 0)::bigint, coalesce(sum(n_tup_hot_upd), 0)::bigint FROM pg_stat_user_tables";
    let row = client.query_one(sql, &[])?;
    Ok((row.get(0), row.get(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_slowed_down_with_the_drive_as_far_as_the_server_takes_it() {
        let of = |time_scale| timers(time_scale).next().map(|(name, value)| format!("{name} {value}"));
        assert_eq!(of(1.0).as_deref(), Some("bgwriter_delay 200ms"));
        assert_eq!(of(32.0).as_deref(), Some("bgwriter_delay 6400ms"));
        assert_eq!(of(64.0).as_deref(), Some("bgwriter_delay 10000ms"));
    }
}
