//! Options of `fit`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use flashwise_block::ByteSize;
use flashwise_tune::DEFAULT_TARGET;

/// Databases that can be fitted.
#[derive(Debug, Subcommand)]
pub enum FitDatabase {
    /// SQLite, through the flashwise VFS
    Sqlite(Box<FitSqlite>),
}

/// Size of the built-in workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkloadSize {
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
    #[arg(long, alias = "scale", value_enum, default_value_t = WorkloadSize::Quick, conflicts_with_all = ["db", "sql"])]
    pub workload_size: WorkloadSize,
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
