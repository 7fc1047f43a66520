//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use flashwise_block::ByteSize;
use flashwise_tune::DEFAULT_TARGET;

use crate::output::Format;

/// Fit your database to the SSD it runs on
///
/// flashwise learns what a drive hides, audits a database's I/O against it, applies what follows, and measures before
/// and after. The default drive is simulated. Existing files and raw devices are never written to.
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
    /// Learn what a drive hides: write unit, stripe, chunk, page, hot locations, asymmetry, concurrency
    Learn(LearnArguments),
    /// Hold a trace of requests against what was learned about a drive
    Audit(AuditArguments),
    /// Database files that the flashwise VFS laid out
    #[command(subcommand)]
    Sqlite(SqliteAction),
    /// Simulated drives: presets and configurations
    #[command(subcommand)]
    Device(DeviceAction),
    /// Man pages and shell completions
    #[command(subcommand)]
    Generate(Generated),
}

/// Databases that can be fitted.
#[derive(Debug, Subcommand)]
pub enum FitDatabase {
    /// SQLite, through the flashwise VFS
    Sqlite(Box<FitSqlite>),
}

/// How much of the seed's workload is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    /// 200,000 rows; less than a minute on the simulated drive
    Quick,
    /// 10 million rows, 100 rounds of 50,000 inserts and 50,000 SELECTs; hours
    Full,
}

/// Options of `fit sqlite`.
#[derive(Debug, Args)]
pub struct FitSqlite {
    /// sim:PRESET, sim:FILE.toml, or a directory on a real drive
    #[arg(default_value = DEFAULT_TARGET, value_name = "TARGET")]
    pub target: String,
    /// The same as TARGET
    #[arg(long = "target", value_name = "TARGET", conflicts_with = "target")]
    pub target_option: Option<String>,
    /// Size of the built-in workload
    #[arg(long, value_enum, default_value_t = Scale::Quick, conflicts_with_all = ["db", "sql"])]
    pub scale: Scale,
    /// Rows to load before the rounds
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub rows: Option<u32>,
    /// Measured rounds
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub rounds: Option<u32>,
    /// Inserts a round
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub inserts: Option<u32>,
    /// SELECTs a round
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub selects: Option<u32>,
    /// Inserts a transaction
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub inserts_per_transaction: Option<u32>,
    /// SQLite's page cache, such as 2m
    #[arg(long, value_name = "SIZE")]
    pub page_cache: Option<ByteSize>,
    /// Your own database, instead of the built-in workload; a copy of it is used
    #[arg(long, value_name = "FILE", requires = "sql")]
    pub db: Option<PathBuf>,
    /// SQL statements to run on the copy of your database
    #[arg(long, value_name = "FILE", requires = "db")]
    pub sql: Option<PathBuf>,
    /// A profile that was learned before; the drive is not learned again
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where report.html and report.json go
    #[arg(long, value_name = "DIR", default_value = "flashwise-report")]
    pub report: PathBuf,
    /// Leave the database of the last run here, as plain SQLite; must be new
    #[arg(long, value_name = "FILE")]
    pub save_database: Option<PathBuf>,
    /// Leave the trace that was audited here, as CSV for `flashwise audit`; must be new
    #[arg(long, value_name = "FILE")]
    pub save_trace: Option<PathBuf>,
}

/// Options of `learn`.
#[derive(Debug, Args)]
pub struct LearnArguments {
    /// sim:PRESET, sim:FILE.toml, or a directory on a real drive
    #[arg(default_value = DEFAULT_TARGET, value_name = "TARGET")]
    pub target: String,
    /// The same as TARGET
    #[arg(long = "target", value_name = "TARGET", conflicts_with = "target")]
    pub target_option: Option<String>,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Stop before more than this is written, such as 2g
    #[arg(long, value_name = "SIZE")]
    pub max_write: Option<ByteSize>,
    /// Write the profile here as TOML, with its curves
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Write a page with every curve here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Options of `audit`.
#[derive(Debug, Args)]
pub struct AuditArguments {
    /// A trace in flashwise's CSV form
    pub trace: PathBuf,
    /// The drive's profile, from `flashwise learn --profile`
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,
}

/// What can be done with a database file.
#[derive(Debug, Subcommand)]
pub enum SqliteAction {
    /// Tell how a database file is laid out
    Info {
        /// The database file
        file: PathBuf,
    },
    /// Write the plain SQLite file back
    Export {
        /// The database file
        file: PathBuf,
        /// The plain SQLite file to create; must be new
        plain: PathBuf,
    },
    /// Lay a plain SQLite file out for a drive
    Import {
        /// The plain SQLite file
        plain: PathBuf,
        /// The database file to create; must be new
        file: PathBuf,
        /// The drive's profile, from `flashwise learn --profile`
        #[arg(long, value_name = "FILE")]
        profile: PathBuf,
    },
}

/// What can be done with simulated drives.
#[derive(Debug, Subcommand)]
pub enum DeviceAction {
    /// List the presets
    List,
    /// Print a preset's configuration, with the source of each figure
    Show {
        /// Name of the preset
        preset: String,
    },
    /// Check a configuration
    Check {
        /// The TOML file
        file: PathBuf,
    },
}

/// What can be generated.
#[derive(Debug, Subcommand)]
pub enum Generated {
    /// Completions for a shell, to stdout
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// A man page for each verb
    Man {
        /// The directory to put them in
        directory: PathBuf,
    },
}
