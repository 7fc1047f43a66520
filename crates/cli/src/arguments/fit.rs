//! Databases that `fit` knows, and the options of `fit sqlite`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use flashwise_block::{ByteSize, Nanos};
use flashwise_tune::sqlite::Objective;

use super::cache_size;
use super::fit_mariadb::FitMariadb;
use super::fit_postgres::FitPostgres;

/// Databases that can be fitted.
#[derive(Debug, Subcommand)]
pub enum FitDatabase {
    /// Find the best settings of SQLite for a drive, and confirm the gain
    ///
    /// The settings are page size, journal mode, page cache, checkpoints, and the techniques of the flashwise VFS.
    /// Combinations are tried on copies; the best one is confirmed in fresh runs against the present settings and
    /// against the usual checklist. Guarantees of a commit are never weakened.
    #[command(after_help = EXAMPLES)]
    Sqlite(Box<FitSqlite>),
    /// Recommend settings for a PostgreSQL server
    ///
    /// The settings are planner costs, I/O concurrency, write-back, write-ahead log and fill factors. They are printed
    /// as ALTER SYSTEM and ALTER TABLE statements.
    Postgres(Box<FitPostgres>),
    /// Recommend InnoDB settings for a MariaDB server
    ///
    /// The settings are write-back, log and I/O threads. They are printed as SET GLOBAL statements and as an option
    /// file.
    Mariadb(Box<FitMariadb>),
}

/// The drive of a server's data: its profile, or where to learn it.
#[derive(Debug, Args)]
#[group(id = "drive", multiple = false)]
pub struct ServerDrive {
    /// Profile of the drive that holds the server's data, from `flashwise learn --profile FILE`
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Learn the drive of this target first: a directory on it, sim:PRESET, or sim:FILE.toml [default: where the
    /// server's data are; without CONNECTION a simulated drive]
    #[arg(long, visible_alias = "target", value_name = "TARGET")]
    pub on: Option<String>,
}

/// Examples of `fit sqlite`.
const EXAMPLES: &str = "\
Examples:
  flashwise fit sqlite                          # on a simulated drive
  flashwise fit sqlite --on /mnt/ssd            # on the drive of this directory
  flashwise fit sqlite app.db --sql queries.sql
  flashwise fit sqlite app.db --sql queries.sql --parameters values.csv
  flashwise fit sqlite --record app.db -- python3 app.py
  flashwise fit sqlite app.db --sql queries.sql --profile ssd.toml --apply
  flashwise fit sqlite --objective p99,flash-bytes

DB is only read, unless --apply is given; measurements use copies.";

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
    /// Your database, a plain SQLite file [default: a built-in workload]
    #[arg(value_name = "DB")]
    pub database: Option<PathBuf>,
    /// Same as DB
    #[arg(long = "db", value_name = "FILE", hide = true)]
    pub database_option: Option<PathBuf>,
    /// Drive for the measurements: sim:PRESET, sim:FILE.toml, or a directory [default: a simulated drive; with DB, the
    /// profile's drive if it is simulated, otherwise the directory of DB]
    #[arg(long, visible_alias = "target", value_name = "TARGET")]
    pub on: Option<String>,
    /// File system of the database on a simulated drive, for a real one in short runs: ext4, xfs, or none for the bare
    /// drive
    #[arg(long, value_name = "NAME", default_value = "ext4")]
    pub file_system: String,
    /// Memory for the operating system's page cache on a simulated drive, for a real one in short runs [default: what
    /// is free on this machine]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<ByteSize>,
    /// CPU time of SQLite itself on a simulated drive, for a real one in short runs: modelled, the same in each run, or
    /// measured on this machine
    #[arg(long, value_name = "HOW", default_value = "modelled")]
    pub program_time: String,
    /// File of your SQL statements, run on copies of DB [default: SELECTs and UPDATEs of its rows]
    #[arg(long, value_name = "FILE")]
    pub sql: Option<PathBuf>,
    /// Values for the parameters of the statements, as CSV or JSON: the file of --sql runs once for each row
    #[arg(long, value_name = "FILE", requires = "sql")]
    pub parameters: Option<PathBuf>,
    /// Record the statements that COMMAND, given after --, runs on DB; they are the workload
    #[arg(long, requires = "command", conflicts_with = "sql")]
    pub record: bool,
    /// Keep the recording as NAME.sql and the database from before it as NAME.db; both must be new
    #[arg(long, value_name = "NAME", requires = "record")]
    pub save_recording: Option<PathBuf>,
    /// Longest think time of a session that is kept, such as 10ms [default: all of it]
    #[arg(long, value_name = "TIME")]
    pub think_limit: Option<Nanos>,
    /// Profile of the drive, from `flashwise learn --profile FILE` [default: the drive is measured first]
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// What to improve: throughput, p99 or flash-bytes; two, separated by a comma, give the front
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "throughput")]
    pub objective: Vec<Objective>,
    /// Time that the search may take by the clock, such as 30s or 5m [default: about 50s; with DB 2m on a simulated
    /// drive, 10m on a real one]
    #[arg(long, value_name = "TIME")]
    pub time_budget: Option<Nanos>,
    /// Do not change this setting, such as page_size or use-hot-locations; can be repeated
    #[arg(long, value_name = "NAME")]
    pub skip: Vec<String>,
    /// Apply the settings that gain: to DB itself, or for a new layout to a new file beside it
    #[arg(long)]
    pub apply: bool,
    /// Confirm the recommendation also on the simulated drive attached to this machine, twenty times as slow: what a
    /// client sees. As root; takes twenty times as long as the workload, nine times, and is done unasked if
    /// --time-budget leaves that time
    #[arg(long)]
    pub attached: bool,
    /// Size of the page cache that your program sets now [default: SQLite's 2000k]
    #[arg(long, value_name = "SIZE", value_parser = cache_size)]
    pub page_cache: Option<ByteSize>,
    /// Largest page cache to try, the checklist's included
    #[arg(long, value_name = "SIZE", default_value = "64m", value_parser = cache_size)]
    pub page_cache_limit: ByteSize,
    /// Size of the built-in workload
    #[arg(long, alias = "scale", value_enum, default_value_t = WorkloadSize::Quick)]
    pub workload_size: WorkloadSize,
    /// Rows to load before the rounds
    #[arg(long, value_name = "N")]
    pub rows: Option<u32>,
    /// Measured rounds
    #[arg(long, value_name = "N")]
    pub rounds: Option<u32>,
    /// INSERTs per round
    #[arg(long, value_name = "N")]
    pub inserts: Option<u32>,
    /// SELECTs per round
    #[arg(long, value_name = "N")]
    pub selects: Option<u32>,
    /// INSERTs per transaction
    #[arg(long, value_name = "N")]
    pub inserts_per_transaction: Option<u32>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Directory for report.html and report.json; an existing report is replaced [default: flashwise-report, or
    /// flashwise-report-2 and so on if that exists]
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Print all candidates, findings and parameters
    #[arg(short, long)]
    pub verbose: bool,
    /// Save the database of the recommended run here, as plain SQLite; must be new
    #[arg(long, value_name = "FILE")]
    pub save_database: Option<PathBuf>,
    /// Save the audited trace here, as CSV for `flashwise audit`; must be new
    #[arg(long, value_name = "FILE")]
    pub save_trace: Option<PathBuf>,
    /// With --record: the program whose statements are recorded, and its arguments
    #[arg(last = true, value_name = "COMMAND", requires = "record")]
    pub command: Vec<OsString>,
}
