//! The work on which old and new settings are compared: pgbench's, or the user's own.
//!
//! A round: start, the system's cache emptied, pgbench for a time, CHECKPOINT; transactions ÷ time of both; stop. The
//! checkpoint is counted: settings that only put writes off win nothing. [`crate::servers`] has the rounds.

use std::path::{Path, PathBuf};
use std::time::Instant;

use flashwise_block::Progress;

use super::private::PrivatePostgres;
use super::programs::Programs;
use super::server::Server;
use crate::TuneError;
use crate::servers::{
    MeasuredSettings, PrivatePlace, Rounds, SettingProposal, Side, Terms, check_rounds, check_space, compare,
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
    /// SQL that makes the tables in place of pgbench's own.
    pub load: Option<PathBuf>,
    /// Transactions for pgbench; its own, like TPC-B, where none are given.
    pub script: Option<PathBuf>,
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
        if self.scale == 0 || self.clients == 0 || self.round_seconds == 0 {
            return fail("--scale, --clients and --round-time must be at least 1".to_owned());
        }
        if self.load.is_some() && self.script.is_none() {
            return fail(
                "--load creates tables that pgbench's transactions do not use: give your transactions with --sql"
                    .to_owned(),
            );
        }
        self.load.iter().chain(&self.script).try_for_each(|file| length_of(file).map(drop))
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
        let work = match &self.script {
            Some(file) => format!("the transactions of {}", file.display()),
            None => "pgbench's TPC-B-like transactions".to_owned(),
        };
        let (clients, seconds) = (self.clients, self.round_seconds);
        format!(
            "{work}, on {tables}, {clients} sessions, rounds of {seconds} s and a checkpoint, starting with empty \
             caches"
        )
    }
}

fn length_of(file: &Path) -> Result<u64, TuneError> {
    Ok(std::fs::metadata(file).map_err(|e| TuneError::file(file, &e))?.len())
}

/// Measures the proposals that are settings of a server.
///
/// # Errors
/// When no server is installed, or it fails; nothing is left behind then either.
pub(super) fn measure(
    options: &PostgresMeasureOptions,
    proposals: &[SettingProposal],
    progress: &mut dyn Progress,
) -> Result<MeasuredSettings, TuneError> {
    let programs = options.check_place()?;
    let server = PrivatePostgres::of(programs, options.directory.as_deref())?;
    let script = options.script.as_deref().map(|file| server.bring(file, "transactions.sql")).transpose()?;
    let workload = options.summary();
    let terms = Terms { rounds: options.rounds, directory: options.directory.as_deref(), workload };
    compare(&mut PgbenchRounds { server, options, script }, proposals, terms, progress)
}

/// Rounds of pgbench.
struct PgbenchRounds<'a> {
    server: PrivatePostgres,
    options: &'a PostgresMeasureOptions,
    script: Option<PathBuf>,
}

impl Rounds for PgbenchRounds<'_> {
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
                connection.execute_named(&sql, &file.display().to_string())?;
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
    fn round(&mut self, side: &Side, round: u32, progress: &mut dyn Progress) -> Result<f64, TuneError> {
        let (server, options) = (&mut self.server, self.options);
        server.drop_page_cache(side.name)?;
        server.start(side.name, &side.settings, progress)?;
        let mut connection = Server::connect(&server.dsn())?;
        let mut command = server.pgbench()?;
        command.arg("-n").arg("-c").arg(options.clients.to_string());
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(options.clients as usize);
        command.arg("-j").arg(threads.to_string()).arg("-T").arg(options.round_seconds.to_string());
        // The same choices for both sides of a pair.
        command.arg(format!("--random-seed={}", options.seed.wrapping_add(round.into())));
        if let Some(script) = &self.script {
            command.arg("-f").arg(script);
        }
        let started = Instant::now();
        let done = transactions(&server.run(&mut command, progress)?)?;
        connection.execute("CHECKPOINT")?;
        let time = started.elapsed();
        drop(connection);
        server.stop(progress)?;
        Ok(done as f64 / time.as_secs_f64())
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
            load: None,
            script: None,
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
    fn what_tells_nothing_is_refused() {
        let options = shortest();
        let told = |options: &PostgresMeasureOptions| options.check().unwrap_err().to_string();
        assert!(told(&PostgresMeasureOptions { rounds: 4, ..options.clone() }).contains("at least 5"));
        assert!(told(&PostgresMeasureOptions { clients: 0, ..options.clone() }).contains("--clients"));
        assert!(told(&PostgresMeasureOptions { load: Some("x".into()), ..options.clone() }).contains("--sql"));
        let no_space = |options: &PostgresMeasureOptions| options.check_space().unwrap_err();
        let nowhere = PostgresMeasureOptions { directory: Some("/no/such/place".into()), ..options.clone() };
        assert!(no_space(&nowhere).to_string().contains("no such directory"));
        assert!(no_space(&PostgresMeasureOptions { scale: u32::MAX, ..options }).is_refusal());
    }
}
