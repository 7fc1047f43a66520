//! The command line: one file a verb, with the options that several verbs share in `raw_device.rs` and `trace.rs`.
//!
//! # Adding a verb
//!
//! A variant below, a file here for its options, a file in `verbs/` that calls a crate; no logic there.

use std::ffi::OsString;

use clap::{Parser, Subcommand, ValueEnum};
use flashwise_block::ByteSize;

use crate::output::Format;

mod attach;
mod audit;
mod device;
mod device_stat;
mod fit;
mod generate;
mod learn;
mod pool;
mod raw_device;
mod simulate;
mod sqlite;
mod study;
mod sweep;
mod trace;
mod tune_mariadb;
mod tune_postgres;
mod tune_sqlite;

pub use attach::{AttachAction, AttachArguments, Data, FaultArguments, ServeArguments, Time};
pub use audit::{AuditArguments, FailOn, LeastCost};
pub use device::DeviceAction;
pub use device_stat::StatArguments;
pub use fit::{FitDatabase, FitSqlite, WorkloadSize};
pub use generate::Generated;
pub use learn::LearnArguments;
pub use pool::{PoolArguments, PrefetchName};
pub use raw_device::RawDevice;
pub use simulate::{PreconditionName, RateProcess, Rw, SimulateArguments};
pub use sqlite::SqliteAction;
pub use study::StudyArguments;
pub use sweep::SweepArguments;
pub use trace::{ReplayArguments, TpccArguments, TraceAction, TraceReading};
pub use tune_mariadb::TuneMariadb;
pub use tune_postgres::TunePostgres;
pub use tune_sqlite::TuneSqlite;

/// Fit your database to the SSD it runs on
///
/// flashwise learns what a drive hides, audits a database's I/O against it, applies what follows, and measures before
/// and after. The default drive is simulated. Existing files are never written to, raw devices only with
/// --destructive and --confirm-device.
#[derive(Debug, Parser)]
#[command(name = "flashwise", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 done, 1 error, 2 usage, 3 an audit found violations, 4 inconclusive, \
                        5 refused for safety, 130 interrupted")]
pub struct Arguments {
    /// What to do
    #[command(subcommand)]
    pub verb: Verb,
    /// Form of the result on stdout
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Text, alias = "output-format", display_order = 100)]
    pub output: Format,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Learn a drive, run a database on it, audit, apply what follows, run again, report
    #[command(subcommand)]
    Fit(FitDatabase),
    /// What to change of a database of your own, what each change brings, and how to undo it
    #[command(subcommand)]
    Tune(TuneDatabase),
    /// Learn what a drive hides: write unit, stripe, chunk, page, hot locations, asymmetry, concurrency
    Learn(LearnArguments),
    /// Hold a trace of requests against what was learned about a drive
    Audit(AuditArguments),
    /// Run a workload or a trace on a simulated drive
    Simulate(Box<SimulateArguments>),
    /// A simulated drive as a disk for other programs, with its timing
    Attach(Box<AttachArguments>),
    /// The process that `attach --mount` starts to watch over itself
    #[command(hide = true)]
    AttachWatchdog,
    /// Run many simulations: every combination of a few values, on all cores
    Sweep(SweepArguments),
    /// Buffer-pool policies side by side on a trace, classic and with batched write-back
    Pool(Box<PoolArguments>),
    /// A published study: what it claims beside what is measured
    Study(StudyArguments),
    /// Database files that the flashwise VFS laid out
    #[command(subcommand)]
    Sqlite(SqliteAction),
    /// Simulated drives: presets and configurations, and what an attached one is doing
    #[command(subcommand)]
    Device(DeviceAction),
    /// I/O traces: what is in one, and in another form
    #[command(subcommand)]
    Trace(TraceAction),
    /// Man pages and shell completions
    #[command(subcommand)]
    Generate(Generated),
}

/// Databases that can be tuned.
#[derive(Debug, Subcommand)]
pub enum TuneDatabase {
    /// SQLite: page size, journal mode, page cache, checkpoints, and the techniques of the flashwise VFS
    Sqlite(Box<TuneSqlite>),
    /// PostgreSQL: costs, concurrency, write-back, write-ahead log and fill factors, as ALTER SYSTEM and ALTER TABLE
    Postgres(Box<TunePostgres>),
    /// MariaDB: write-back, log and threads of InnoDB, as SET GLOBAL and an option file
    Mariadb(Box<TuneMariadb>),
}

/// The arguments of this process, as [`Arguments`] takes them.
pub fn command_line() -> Vec<OsString> {
    with_directory(std::env::args_os().collect())
}

/// `device import --output DIR` is `--directory DIR`: unlike other verbs, it writes several files, and `--output` is
/// where many programs take the directory for them. A form of the result and a second directory are left to clap.
fn with_directory(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let word = |n: usize| arguments.get(n).and_then(|argument| argument.to_str()).unwrap_or_default();
    let has_directory = |n: usize| ["--directory", "--dir"].contains(&word(n).split('=').next().unwrap_or_default());
    if (word(1), word(2)) != ("device", "import") || (3..arguments.len()).any(has_directory) {
        return arguments;
    }
    let is_directory = |value: &str| !value.starts_with('-') && Format::from_str(value, false).is_err();
    let named = (3..arguments.len()).find_map(|n| match word(n).strip_prefix("--output") {
        Some("") if n + 1 < arguments.len() && is_directory(word(n + 1)) => Some((n, "--directory".to_owned())),
        Some(rest) => {
            rest.strip_prefix('=').filter(|value| is_directory(value)).map(|dir| (n, format!("--directory={dir}")))
        }
        None => None,
    });
    if let Some((place, option)) = named {
        arguments[place] = option.into();
    }
    arguments
}

/// A size of at least one byte.
fn positive_size(text: &str) -> Result<ByteSize, String> {
    match text.parse::<ByteSize>() {
        Ok(ByteSize(0)) => Err("it must be at least one byte".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::{Command, CommandFactory};

    use super::*;

    /// Each option of a command and of those below it, with what it takes.
    fn options(command: &Command, found: &mut BTreeMap<String, Vec<String>>) {
        for option in command.get_arguments().filter(|option| !option.is_positional()) {
            let names = option.get_value_names().filter(|_| option.get_action().takes_values()).unwrap_or_default();
            let takes = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let known = found.entry(option.get_long().unwrap_or_default().to_owned()).or_default();
            if !known.contains(&takes) {
                known.push(takes);
            }
        }
        command.get_subcommands().for_each(|verb| options(verb, found));
    }

    #[test]
    fn the_output_of_an_import_that_is_no_form_is_its_directory() {
        let taken = |line: &str| {
            let line = with_directory(line.split(' ').map(Into::into).collect());
            line.join(" ".as_ref()).into_string().unwrap()
        };
        let import = "flashwise device import --mqsim a.xml";
        assert_eq!(taken(&format!("{import} --output out")), format!("{import} --directory out"));
        assert_eq!(taken(&format!("{import} --output=out -o json")), format!("{import} --directory=out -o json"));
        assert_eq!(
            taken(&format!("{import} --output json --output out")),
            format!("{import} --output json --directory out")
        );
        for same in ["--output text", "--output=json", "--output", "--directory a --output b", "--dir=a --output b"] {
            assert_eq!(taken(&format!("{import} {same}")), format!("{import} {same}"));
        }
        assert_eq!(taken("flashwise device list --output out"), "flashwise device list --output out");
    }

    #[test]
    fn an_option_takes_the_same_wherever_it_stands() {
        let mut found = BTreeMap::new();
        options(&Arguments::command(), &mut found);
        found.retain(|_, takes| takes.len() > 1);
        // The seed of each verb, libpq's and MariaDB's names of a server, and the scales of two benchmarks.
        let known = ["dsn", "scale", "seed"];
        assert!(found.keys().all(|name| known.contains(&name.as_str())), "{found:?}");
    }
}
