//! Old and new settings on the same work: a private server, rounds in turns.
//!
//! ```text
//!   initdb ─▶ load ─▶ copy ──┬─▶ cluster with the old settings ─▶ round 1        round 4 …
//!                            └─▶ cluster with the new settings ─▶      round 2, 3         …
//!   a round: start, the system's cache emptied, pgbench for a time, CHECKPOINT; transactions ÷ time of both; stop
//! ```
//!
//! The clusters age side by side, and are the same to the byte at the start. Which one is first changes from pair to pair, so
//! that drift is no gain. The checkpoint is counted: settings that only put writes off win nothing.

use std::path::{Path, PathBuf};
use std::time::Instant;

use flashwise_block::{ByteSize, Progress};

use super::private::PrivateServer;
use super::server::Server;
use crate::rates::{gain, rate};
use crate::servers::{FEWEST_ROUNDS, MeasuredSettings, SettingProposal, verdict};
use crate::{Target, TuneError};

/// pgbench's tables take this for each unit of scale, with room to grow.
const SCALE_BYTES: u64 = 20 << 20;
/// A cluster without tables.
const EMPTY_BYTES: u64 = 64 << 20;
/// The log grows to this (`max_wal_size`).
const LOG_BYTES: u64 = 1 << 30;

/// How old and new settings are measured.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
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

impl MeasureOptions {
    /// Refuses what tells nothing or takes too much room.
    ///
    /// # Errors
    /// With the option that is wrong, or the room that is missing.
    pub(super) fn check(&self) -> Result<(), TuneError> {
        let fail = |reason: String| Err(TuneError::Options(reason));
        if self.rounds < FEWEST_ROUNDS {
            return fail(format!("--rounds {}: fewer than {FEWEST_ROUNDS} tell nothing", self.rounds));
        }
        if self.scale == 0 || self.clients == 0 || self.round_seconds == 0 {
            return fail("--scale, --clients and --round-time must be at least 1".to_owned());
        }
        if self.load.is_some() && self.script.is_none() {
            return fail(
                "--load makes tables that pgbench knows nothing of: give the transactions with --sql".to_owned(),
            );
        }
        let directory = self.directory.clone().unwrap_or_else(std::env::temp_dir);
        if !directory.is_dir() {
            return Err(TuneError::Target(format!("{}: no such directory", directory.display())));
        }
        let loaded = match &self.load {
            Some(file) => 8 * std::fs::metadata(file).map_err(|e| TuneError::file(file, &e))?.len(),
            None => u64::from(self.scale) * SCALE_BYTES,
        };
        if let Some(script) = &self.script {
            std::fs::metadata(script).map_err(|e| TuneError::file(script, &e))?;
        }
        Target::Directory(directory).check_space(ByteSize(2 * (loaded + EMPTY_BYTES + LOG_BYTES)))
    }

    fn summary(&self) -> String {
        let tables = match &self.load {
            Some(file) => format!("tables of {}", file.display()),
            None => format!("pgbench's tables, scale {}", self.scale),
        };
        let work = match &self.script {
            Some(file) => format!("the transactions of {}", file.display()),
            None => "pgbench's transactions, like TPC-B".to_owned(),
        };
        let (clients, seconds) = (self.clients, self.round_seconds);
        format!(
            "{work}, on {tables}, {clients} sessions, rounds of {seconds} s and a checkpoint, nothing cached at first"
        )
    }
}

/// One of the two.
struct Side {
    name: &'static str,
    settings: Vec<(String, String)>,
    /// Transactions a second, round by round.
    rates: Vec<f64>,
}

/// Measures the proposals that are settings of a server.
///
/// # Errors
/// When no server is installed, or it fails; nothing is left behind then either.
pub(super) fn measure(
    options: &MeasureOptions,
    proposals: &[SettingProposal],
    progress: &mut dyn Progress,
) -> Result<MeasuredSettings, TuneError> {
    let mut server = PrivateServer::new(options.programs.as_deref(), options.directory.as_deref())?;
    let program = server.version(progress)?;
    let script = options.script.as_deref().map(|file| server.bring(file, "transactions.sql")).transpose()?;
    let side = |name, value: fn(&SettingProposal) -> &String| {
        let settings = proposals.iter().map(|p| (p.name.clone(), value(p).clone())).collect();
        Side { name, settings, rates: Vec::new() }
    };
    let mut sides = [side("before", |p| &p.old_value), side("after", |p| &p.new_value)];
    load(&mut server, options, &sides, progress)?;
    for round in 0..options.rounds {
        let order = if round.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        for index in order {
            let side = &mut sides[index];
            server.at(
                format!("round {} of {}, {}", round + 1, options.rounds, side.name),
                f64::from(round) / f64::from(options.rounds),
            );
            let rate = run_round(&mut server, side, options, script.as_deref(), round, progress)?;
            side.rates.push(rate);
        }
    }
    let [before, after] = sides;
    let metric = "transactions_per_s";
    let gain = gain(metric, (before.name, &before.rates), (after.name, &after.rates));
    let gain = gain.ok_or_else(|| TuneError::Server {
        context: "pgbench".to_owned(),
        message: "no round finished a transaction; give longer ones with --round-time".to_owned(),
    })?;
    let directory = options.directory.clone().unwrap_or_else(std::env::temp_dir);
    Ok(MeasuredSettings {
        program,
        directory: directory.display().to_string(),
        workload: options.summary(),
        rounds: options.rounds,
        settings: after.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect(),
        before: rate(&before.rates),
        after: rate(&after.rates),
        verdict: verdict(&gain).to_owned(),
        gain,
    })
}

fn load(
    server: &mut PrivateServer,
    options: &MeasureOptions,
    [before, after]: &[Side; 2],
    progress: &mut dyn Progress,
) -> Result<(), TuneError> {
    server.create(before.name, progress)?;
    server.at("loading".to_owned(), 0.0);
    server.start(before.name, &[], progress)?;
    match &options.load {
        Some(file) => {
            let sql = std::fs::read_to_string(file).map_err(|e| TuneError::file(file, &e))?;
            let mut connection = Server::connect(&server.dsn())?;
            connection.execute_named(&sql, &file.display().to_string())?;
        }
        None => {
            let mut command = server.pgbench()?;
            command.args(["-i", "-q", "-s"]).arg(options.scale.to_string());
            server.run(&mut command, progress)?;
        }
    }
    server.stop(progress)?;
    server.copy(before.name, after.name, progress)
}

/// Transactions a second of one round, its checkpoint included.
fn run_round(
    server: &mut PrivateServer,
    side: &Side,
    options: &MeasureOptions,
    script: Option<&Path>,
    round: u32,
    progress: &mut dyn Progress,
) -> Result<f64, TuneError> {
    server.forget_cached(side.name)?;
    server.start(side.name, &side.settings, progress)?;
    let mut connection = Server::connect(&server.dsn())?;
    let mut command = server.pgbench()?;
    command.arg("-n").arg("-c").arg(options.clients.to_string());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(options.clients as usize);
    command.arg("-j").arg(threads.to_string()).arg("-T").arg(options.round_seconds.to_string());
    // The same choices for both sides of a pair.
    command.arg(format!("--random-seed={}", options.seed.wrapping_add(round.into())));
    if let Some(script) = script {
        command.arg("-f").arg(script);
    }
    let started = Instant::now();
    let told = server.run(&mut command, progress)?;
    connection.execute("CHECKPOINT")?;
    let time = started.elapsed();
    let done = transactions(&told).ok_or_else(|| TuneError::Server {
        context: "pgbench".to_owned(),
        message: "it tells no number of transactions".to_owned(),
    })?;
    drop(connection);
    server.stop(progress)?;
    Ok(done as f64 / time.as_secs_f64())
}

/// `number of transactions actually processed: 1234`, behind which the number that was asked for may stand.
pub(super) fn transactions(told: &str) -> Option<u64> {
    let line = told.lines().find_map(|line| line.strip_prefix("number of transactions actually processed: "))?;
    line.split('/').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_read_off_pgbench() {
        let told = "duration: 1 s\nnumber of transactions actually processed: 4711\ntps = 1 (without)\n";
        assert_eq!(transactions(told), Some(4711));
        assert_eq!(transactions("number of transactions actually processed: 10/10\n"), Some(10));
        assert_eq!(transactions("pgbench: error\n"), None);
    }

    #[test]
    fn what_tells_nothing_is_refused() {
        let options = MeasureOptions {
            programs: None,
            directory: None,
            load: None,
            script: None,
            scale: 1,
            clients: 1,
            rounds: 5,
            round_seconds: 1,
            seed: 1,
        };
        let told = |options: &MeasureOptions| options.check().unwrap_err().to_string();
        assert!(told(&MeasureOptions { rounds: 4, ..options.clone() }).contains("fewer than 5"));
        assert!(told(&MeasureOptions { clients: 0, ..options.clone() }).contains("--clients"));
        assert!(told(&MeasureOptions { load: Some("x".into()), ..options.clone() }).contains("--sql"));
        let nowhere = MeasureOptions { directory: Some("/no/such/place".into()), ..options.clone() };
        assert!(told(&nowhere).contains("no such directory"));
        assert!(MeasureOptions { scale: u32::MAX, ..options }.check().unwrap_err().is_refusal());
    }
}
