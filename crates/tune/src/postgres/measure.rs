//! The work on which old and new settings are compared: pgbench's, or the user's own.
//!
//! A round: start, the system's cache emptied, pgbench for a time, CHECKPOINT; transactions ÷ time of both; stop. The
//! checkpoint is counted: settings that only put writes off win nothing. [`crate::servers`] has the rounds.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flashwise_block::Progress;

use super::log::read_logs;
use super::log::weights::{Calls, StatementCounts};
use super::private::PrivatePostgres;
use super::programs::Programs;
use super::replay::{GRANTS, ReplayClient};
use super::server::Server;
use crate::TuneError;
use crate::servers::logged::{LoggedWorkload, Replay, Weighted};
use crate::servers::{
    AttachRequest, Attached, Done, MeasuredSettings, PrivatePlace, Rounds, SettingProposal, Side, Terms, check_rounds,
    check_space, compare,
};

/// Size of pgbench's tables per unit of scale, with space to grow.
const SCALE_BYTES: u64 = 20 << 20;
/// A cluster without tables.
const EMPTY_BYTES: u64 = 64 << 20;
/// The log grows to this (`max_wal_size`).
const LOG_BYTES: u64 = 1 << 30;

/// How old and new settings are measured.
#[derive(Clone, Debug)]
pub struct PostgresMeasureOptions {
    /// Folder of the server's programs; the newest that are installed where none is given.
    pub programs: Option<PathBuf>,
    /// Where the private server's data goes; the directory for temporary files where none is given.
    pub directory: Option<PathBuf>,
    /// Attaches the simulated drive of the server's data and measures there; then there is no directory.
    pub attach: Option<AttachRequest>,
    /// SQL that makes the tables in place of pgbench's own.
    pub load: Option<PathBuf>,
    /// Transactions for pgbench; its own, like TPC-B, where none are given.
    pub script: Option<PathBuf>,
    /// Files of a server's log in place of such transactions.
    pub log: Vec<PathBuf>,
    /// How often each statement of the log runs; as often as the log has it where that is not given.
    pub counts: Option<StatementCounts>,
    /// Scale of pgbench's tables: 100,000 accounts each.
    pub scale: u32,
    /// Sessions at once.
    pub clients: u32,
    /// Rounds of old and of new settings.
    pub rounds: u32,
    /// Seconds of pgbench a round.
    pub round_seconds: u32,
    /// Seed of pgbench's random choices.
    pub seed: u64,
}

impl PostgresMeasureOptions {
    /// Refuses options from which nothing can be learned, and files that are absent.
    ///
    /// # Errors
    /// With the option that is wrong.
    pub(super) fn check(&self) -> Result<(), TuneError> {
        let fail = |reason: String| Err(TuneError::Options(reason));
        check_rounds(self.rounds)?;
        if self.attach.is_some() && self.directory.is_some() {
            return fail("--attached has a directory of its own: leave out --directory".to_owned());
        }
        if self.scale == 0 || self.clients == 0 || self.round_seconds == 0 {
            return fail("--scale, --clients and --round-time must be at least 1".to_owned());
        }
        if self.load.is_some() && self.script.is_none() && self.log.is_empty() {
            return fail(
                "--load creates tables that pgbench's transactions do not use: give your transactions with --sql or \
                 --log"
                    .to_owned(),
            );
        }
        if !self.log.is_empty() && (self.load.is_none() || self.script.is_some()) {
            return fail(
                "--log replaces --sql, and needs --load with a dump of the database from before the log starts"
                    .to_owned(),
            );
        }
        if self.counts.is_some() && self.log.is_empty() {
            return fail(
                "--stat-statements says how often statements of a log run: give the log with --log".to_owned(),
            );
        }
        self.load.iter().chain(&self.script).try_for_each(|file| length_of(file).map(drop))
    }

    /// Reads the log, with its weights; asks the server for them if that is requested.
    ///
    /// # Errors
    /// When a file cannot be read or has nothing that can be replayed, or the server does not count statements.
    pub(super) fn read_log(&self, server: Option<&mut Server>) -> Result<Option<OwnLog>, TuneError> {
        if self.log.is_empty() {
            return Ok(None);
        }
        let calls = match (&self.counts, server) {
            (None, _) => None,
            (Some(StatementCounts::File(path)), _) => Some(Calls::read(path)?),
            (Some(StatementCounts::Server), Some(server)) => Some(server.statement_calls()?),
            (Some(StatementCounts::Server), None) => {
                let why = "--stat-statements server: no server is given; name it as CONNECTION, or give an export";
                return Err(TuneError::Options(why.to_owned()));
            }
        };
        let workload = read_logs(&self.log)?;
        let weighted = calls.map(|calls| calls.weigh(&workload));
        Ok(Some(OwnLog { workload, weighted }))
    }

    /// Finds the programs, and checks that the clusters fit where they are to be made.
    ///
    /// # Errors
    /// A missing server is reported first, even if space is short too.
    pub(super) fn check_place(&self) -> Result<Programs, TuneError> {
        let programs = Programs::find(self.programs.as_deref())?;
        self.check_space()?;
        Ok(programs)
    }

    fn check_space(&self) -> Result<(), TuneError> {
        let loaded = match &self.load {
            Some(file) => length_of(file)?.saturating_mul(8),
            None => u64::from(self.scale) * SCALE_BYTES,
        };
        check_space(self.directory.as_deref(), loaded.saturating_add(EMPTY_BYTES + LOG_BYTES))
    }

    fn summary(&self) -> String {
        let tables = match &self.load {
            Some(file) => format!("tables of {}", file.display()),
            None => format!("pgbench's tables, scale {}", self.scale),
        };
        let work = match self.script.as_ref().or(self.log.first()) {
            Some(file) => format!("the transactions of {}", file.display()),
            None => "pgbench's TPC-B-like transactions".to_owned(),
        };
        let up_to = if self.log.is_empty() { "" } else { "up to " };
        let (clients, seconds) = (self.clients, self.round_seconds);
        format!(
            "{work}, on {tables}, {up_to}{clients} sessions, rounds of {seconds} s and a checkpoint, starting with empty \
             caches"
        )
    }
}

fn length_of(file: &Path) -> Result<u64, TuneError> {
    Ok(std::fs::metadata(file).map_err(|e| TuneError::file(file, &e))?.len())
}

/// The user's log.
#[derive(Debug)]
pub(super) struct OwnLog {
    workload: LoggedWorkload,
    weighted: Option<Weighted>,
}

impl OwnLog {
    fn replay(&self, options: &PostgresMeasureOptions) -> Result<Replay<'_>, TuneError> {
        let round_time = Duration::from_secs(options.round_seconds.into());
        let replay = Replay::new(&self.workload, options.rounds, round_time, options.clients);
        match &self.weighted {
            Some(weighted) => replay.weighted(&weighted.weights, options.clients, options.seed),
            None => Ok(replay),
        }
    }
}

/// Measures the proposals that are settings of a server.
///
/// # Errors
/// When no server is installed, or it fails; nothing is left behind then either.
pub(super) fn measure(
    options: &PostgresMeasureOptions,
    attached: Option<&Attached>,
    own: Option<&OwnLog>,
    proposals: &[SettingProposal],
    progress: &mut dyn Progress,
) -> Result<MeasuredSettings, TuneError> {
    let programs = options.check_place()?;
    let server = PrivatePostgres::of(programs, options.directory.as_deref())?;
    let script = options.script.as_deref().map(|file| server.bring(file, "transactions.sql")).transpose()?;
    let workload = options.summary();
    let terms = Terms { rounds: options.rounds, directory: options.directory.as_deref(), attached, workload };
    let replay = own.map(|own| own.replay(options)).transpose()?;
    let mut rounds = PostgresRounds { server, options, script, replay };
    let mut measured = compare(&mut rounds, proposals, terms, progress)?;
    let weighted = own.and_then(|own| own.weighted.as_ref());
    measured.log = rounds.replay.map(|replay| replay.report(weighted));
    Ok(measured)
}

/// Rounds of pgbench, or of a log.
struct PostgresRounds<'a> {
    server: PrivatePostgres,
    options: &'a PostgresMeasureOptions,
    script: Option<PathBuf>,
    replay: Option<Replay<'a>>,
}

impl PostgresRounds<'_> {
    /// Transactions of a round of pgbench.
    fn pgbench(&self, round: u32, progress: &mut dyn Progress) -> Result<u64, TuneError> {
        let options = self.options;
        let mut command = self.server.pgbench()?;
        command.arg("-n").arg("-c").arg(options.clients.to_string());
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(options.clients as usize);
        command.arg("-j").arg(threads.to_string()).arg("-T").arg(options.round_seconds.to_string());
        // The same choices for both sides of a pair.
        command.arg(format!("--random-seed={}", options.seed.wrapping_add(round.into())));
        if let Some(script) = &self.script {
            command.arg("-f").arg(script);
        }
        transactions(&self.server.run(&mut command, progress)?)
    }
}

/// A dump without the commands of psql that `pg_dump` puts around it since 2025.
fn without_commands(dump: &str) -> String {
    let is_command = |line: &&str| line.starts_with("\\restrict ") || line.starts_with("\\unrestrict ");
    dump.split_inclusive('\n').filter(|line| !is_command(line)).collect()
}

impl Rounds for PostgresRounds<'_> {
    const PROGRAM: &'static str = "pgbench";

    fn place(&mut self) -> &mut PrivatePlace {
        &mut self.server.place
    }

    fn load(&mut self, instance: &str, copy: &str, progress: &mut dyn Progress) -> Result<String, TuneError> {
        let server = &mut self.server;
        let program = server.version(progress)?;
        server.create(instance, progress)?;
        server.place.at("loading".to_owned(), 0.0);
        server.start(instance, &[], progress)?;
        match &self.options.load {
            Some(file) => {
                let sql = flashwise_block::input::read_text(file).map_err(|e| TuneError::file(file, &e))?;
                let mut connection = Server::connect(&server.dsn())?;
                connection.execute_named(&without_commands(&sql), &file.display().to_string())?;
                if self.replay.is_some() {
                    connection.execute_named(GRANTS, "loading")?;
                }
            }
            None => {
                let mut command = server.pgbench()?;
                command.args(["-i", "-q", "-s"]).arg(self.options.scale.to_string());
                server.run(&mut command, progress)?;
            }
        }
        server.stop(progress)?;
        server.copy(instance, copy, progress)?;
        Ok(program)
    }

    /// The checkpoint is part of the time.
    fn round(&mut self, side: &Side, round: u32, progress: &mut dyn Progress) -> Result<Done, TuneError> {
        let server = &mut self.server;
        server.drop_page_cache(side.name)?;
        server.start(side.name, &side.settings, progress)?;
        let mut connection = Server::connect(&server.dsn())?;
        let started;
        let transactions = match &mut self.replay {
            Some(replay) => {
                let dsn = server.dsn();
                let connect = |_| ReplayClient::connect(&dsn);
                let connections = (0..replay.connections()).map(connect).collect::<Result<Vec<_>, _>>()?;
                started = Instant::now();
                replay.round(round, connections)?
            }
            None => {
                started = Instant::now();
                self.pgbench(round, progress)?
            }
        };
        connection.execute("CHECKPOINT")?;
        let time = started.elapsed();
        drop(connection);
        self.server.stop(progress)?;
        Ok(Done { transactions, time })
    }
}

/// Parses `number of transactions actually processed: 1234`, optionally followed by `/` and the requested number.
///
/// # Errors
/// When the line is missing.
pub(super) fn transactions(told: &str) -> Result<u64, TuneError> {
    let count = told.lines().find_map(|line| line.strip_prefix("number of transactions actually processed: "));
    let number = count.and_then(|count| count.split('/').next()?.trim().parse().ok());
    number.ok_or_else(|| TuneError::Server {
        context: "pgbench".to_owned(),
        message: "it reports no number of transactions".to_owned(),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The shortest measurement.
    pub(crate) fn shortest() -> PostgresMeasureOptions {
        PostgresMeasureOptions {
            programs: None,
            directory: None,
            attach: None,
            load: None,
            script: None,
            log: Vec::new(),
            counts: None,
            scale: 1,
            clients: 1,
            rounds: 5,
            round_seconds: 1,
            seed: 1,
        }
    }

    #[test]
    fn transactions_are_read_off_pgbench() {
        let told = "duration: 1 s\nnumber of transactions actually processed: 4711\ntps = 1 (without)\n";
        assert_eq!(transactions(told).unwrap(), 4711);
        assert_eq!(transactions("number of transactions actually processed: 10/10\n").unwrap(), 10);
        assert!(transactions("pgbench: error\n").is_err());
    }

    #[test]
    fn dumps_lose_the_commands_of_psql_only() {
        let dump = "--\n\\restrict abc\nSELECT '\n\\r';\n\\unrestrict abc\n";
        assert_eq!(without_commands(dump), "--\nSELECT '\n\\r';\n");
    }

    #[test]
    fn what_tells_nothing_is_refused() {
        let options = shortest();
        let told = |options: &PostgresMeasureOptions| options.check().unwrap_err().to_string();
        assert!(told(&PostgresMeasureOptions { rounds: 4, ..options.clone() }).contains("at least 5"));
        assert!(told(&PostgresMeasureOptions { clients: 0, ..options.clone() }).contains("--clients"));
        assert!(told(&PostgresMeasureOptions { load: Some("x".into()), ..options.clone() }).contains("--sql"));
        assert!(told(&PostgresMeasureOptions { log: vec!["x".into()], ..options.clone() }).contains("--load"));
        let counts = Some(StatementCounts::Server);
        assert!(told(&PostgresMeasureOptions { counts, ..options.clone() }).contains("--log"));
        let no_space = |options: &PostgresMeasureOptions| options.check_space().unwrap_err();
        let nowhere = PostgresMeasureOptions { directory: Some("/no/such/place".into()), ..options.clone() };
        assert!(no_space(&nowhere).to_string().contains("no such directory"));
        assert!(no_space(&PostgresMeasureOptions { scale: u32::MAX, ..options }).is_refusal());
    }
}
