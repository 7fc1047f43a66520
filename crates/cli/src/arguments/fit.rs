//! Options of `fit`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use flashwise_block::ByteSize;
use flashwise_tune::DEFAULT_TARGET;

/// Databases that can be fitted.
#[derive(Debug, Subcommand)]
pub enum FitDatabase {
    /// Fit SQLite to a drive, and measure the gain
    ///
    /// SQLite runs through the flashwise VFS, before on its plain layout and after on the layout for the drive. The
    /// report compares both, and SQLite with its default settings.
    #[command(after_help = "\
Examples:
  flashwise fit sqlite                          # on a simulated drive, seconds
  flashwise fit sqlite /mnt/ssd                 # on the drive of this directory
  flashwise fit sqlite --db app.db --sql queries.sql
  flashwise fit sqlite /mnt/ssd --profile ssd.toml --workload-size full

The database given with --db is copied; the original is only read.")]
    Sqlite(Box<FitSqlite>),
}

/// Size of the built-in workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkloadSize {
    /// 200,000 rows; less than a minute on a simulated drive
    Quick,
    /// 10 million rows, 100 rounds of 50,000 INSERTs and 50,000 SELECTs; hours
    Full,
}

/// Options of `fit sqlite`.
#[derive(Debug, Args)]
pub struct FitSqlite {
    /// The drive: sim:PRESET, sim:FILE.toml, or a directory on a real drive
    #[arg(default_value = DEFAULT_TARGET, value_name = "TARGET")]
    pub target: String,
    /// Same as TARGET
    #[arg(long = "target", value_name = "TARGET", conflicts_with = "target")]
    pub target_option: Option<String>,
    /// Size of the built-in workload
    #[arg(long, alias = "scale", value_enum, default_value_t = WorkloadSize::Quick, conflicts_with_all = ["db", "sql"])]
    pub workload_size: WorkloadSize,
    /// Rows to load before the rounds
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub rows: Option<u32>,
    /// Measured rounds
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub rounds: Option<u32>,
    /// INSERTs per round
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub inserts: Option<u32>,
    /// SELECTs per round
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub selects: Option<u32>,
    /// INSERTs per transaction
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub inserts_per_transaction: Option<u32>,
    /// Size of SQLite's page cache, such as 2m
    #[arg(long, value_name = "SIZE")]
    pub page_cache: Option<ByteSize>,
    /// Your database instead of the built-in workload; a copy is used
    #[arg(long, value_name = "FILE", requires = "sql")]
    pub db: Option<PathBuf>,
    /// File of SQL statements to run on the copy of --db
    #[arg(long, value_name = "FILE", requires = "db")]
    pub sql: Option<PathBuf>,
    /// Profile of the drive from `flashwise learn --profile FILE`; without, the drive is measured
    /// first
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Directory for report.html and report.json
    #[arg(long, value_name = "DIR", default_value = "flashwise-report")]
    pub report: PathBuf,
    /// Save the database of the last run here, as plain SQLite; must be new
    #[arg(long, value_name = "FILE")]
    pub save_database: Option<PathBuf>,
    /// Save the audited trace here, as CSV for `flashwise audit`; must be new
    #[arg(long, value_name = "FILE")]
    pub save_trace: Option<PathBuf>,
}
