//! Options of `fit postgres`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, value_parser};
use flashwise_block::Nanos;

use super::fit::ServerDrive;

/// Options of `fit postgres`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("server").args(["connection", "dsn"]))]
#[command(override_usage = "flashwise fit postgres [OPTIONS] [CONNECTION]")]
#[command(after_help = "\
Examples:
  flashwise fit postgres dbname=shop --on /mnt/ssd
  flashwise fit postgres 'host=/var/run/postgresql dbname=shop' \\
    --profile ssd.toml --sql-out flashwise.sql
  flashwise fit postgres --profile ssd.toml --measure --directory /mnt/ssd

The server is only read, unless --apply is given. The password comes from
CONNECTION or from PGPASSWORD.")]
pub struct FitPostgres {
    /// Connection string of your server, as for libpq [default: no server, but the default settings of --for-version]
    pub connection: Option<String>,
    /// Same as CONNECTION
    #[arg(long, value_name = "DSN")]
    pub dsn: Option<String>,
    /// The drive of the server's data.
    #[command(flatten)]
    pub drive: ServerDrive,
    /// Without CONNECTION: major version of PostgreSQL, 13 to 19
    #[arg(long, value_name = "N", default_value_t = 18, conflicts_with = "server")]
    pub for_version: u32,
    /// Sessions that read concurrently; they share the concurrency of the drive
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    pub sessions: u32,
    /// Reads in flight for comparing random reads with scans [default: k_r at 8 KiB]
    #[arg(long, alias = "depth", value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub iodepth: Option<u32>,
    /// Do not change this setting, such as commit_delay, fillfactor or 'fillfactor of public.orders'; can be repeated
    #[arg(long, value_name = "NAME")]
    pub skip: Vec<String>,
    /// Write the statements to this new file, for psql
    #[arg(long, value_name = "FILE")]
    pub sql_out: Option<PathBuf>,
    /// Write the settings to this new file, as lines for postgresql.conf
    #[arg(long, value_name = "FILE")]
    pub conf_out: Option<PathBuf>,
    /// Write the settings to this new file, as parameters of an Amazon RDS parameter group
    #[arg(long, value_name = "FILE")]
    pub rds_out: Option<PathBuf>,
    /// Write the settings to this new file, as flags of Google Cloud SQL
    #[arg(long, value_name = "FILE")]
    pub cloud_sql_out: Option<PathBuf>,
    /// Apply the settings with ALTER SYSTEM and ALTER TABLE; with --measure only if there is a gain
    #[arg(long, requires = "server")]
    pub apply: bool,
    /// Run a workload on a private server, alternating old and new settings
    #[arg(long)]
    pub measure: bool,
    /// How settings are measured.
    #[command(flatten)]
    pub measurement: Measurement,
}

/// How settings are measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --measure")]
pub struct Measurement {
    /// Directory for the private server's data, such as one on the drive [default: $TMPDIR or /tmp]
    #[arg(long, value_name = "DIR", requires = "measure")]
    pub directory: Option<PathBuf>,
    /// Measure on the simulated drive of --on, attached to this machine; as root
    #[arg(long, requires = "measure", conflicts_with = "directory")]
    pub attached: bool,
    /// Attach the drive so many times slower than it is
    #[arg(long, value_name = "N", default_value_t = 1, requires = "attached", value_parser = value_parser!(u32).range(1..=1000))]
    pub slower: u32,
    /// Script of your transactions, as for pgbench -f [default: pgbench's TPC-B]
    #[arg(long, value_name = "FILE", requires = "measure")]
    pub sql: Option<PathBuf>,
    /// Replay the transactions of your server's log: stderr, csvlog or jsonlog, statements or durations; repeatable
    #[arg(long, value_name = "FILE", requires = "measure", requires = "load", conflicts_with = "sql")]
    pub log: Vec<PathBuf>,
    /// Play statements of --log as often as pg_stat_statements counts them: 'server' or an export (CSV, JSON)
    #[arg(long, value_name = "FILE", requires = "log")]
    pub stat_statements: Option<String>,
    /// SQL file that creates and fills your tables, instead of pgbench's
    #[arg(long, value_name = "FILE", requires = "measure")]
    pub load: Option<PathBuf>,
    /// Scale factor of pgbench's tables: 100,000 accounts each
    #[arg(long, value_name = "N", default_value_t = 10, requires = "measure")]
    pub scale: u32,
    /// Concurrent sessions of pgbench
    #[arg(long, value_name = "N", default_value_t = 8, requires = "measure")]
    pub clients: u32,
    /// Rounds with the old settings, and as many with the new; at least 5
    #[arg(long, value_name = "N", default_value_t = 10, requires = "measure")]
    pub rounds: u32,
    /// Duration of a round in whole seconds, without its checkpoint
    #[arg(long, value_name = "TIME", default_value = "5s", requires = "measure")]
    pub round_time: Nanos,
    /// Directory of initdb, pg_ctl and postgres [default: newest below /usr/lib/postgresql, then PATH]
    #[arg(long, value_name = "DIR", requires = "measure")]
    pub programs: Option<PathBuf>,
    /// Seed of pgbench's random choices
    #[arg(long, value_name = "N", default_value_t = 1, requires = "measure")]
    pub seed: u64,
}
