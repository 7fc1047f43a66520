//! Options of `tune postgres`.

use std::path::PathBuf;

use clap::{Args, value_parser};
use flashwise_block::Nanos;

/// What is proposed, and what is done with it.
#[derive(Debug, Args)]
#[command(after_help = "A password that --dsn lacks is taken from PGPASSWORD.")]
pub struct TunePostgres {
    /// The drive's profile, from `flashwise learn --request-size 128k --profile`
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,
    /// Your server, as libpq names it: 'host=/var/run/postgresql dbname=shop' or postgresql://…; it is only read, but
    /// for --apply. Without one, the old values are the defaults of --for-version
    #[arg(long, value_name = "DSN")]
    pub dsn: Option<String>,
    /// Major version whose defaults are the old values, 13 to 18
    #[arg(long, value_name = "N", default_value_t = 17, conflicts_with = "dsn")]
    pub for_version: u32,
    /// Sessions that read at once; they share the reads that the drive serves side by side
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    pub sessions: u32,
    /// Reads in flight at which random reads are compared with scans [default: k_r at 8 KiB]
    #[arg(long, alias = "depth", value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub iodepth: Option<u32>,
    /// Leave this as it is, such as commit_delay, fillfactor or 'fillfactor of public.orders'; may be given several
    /// times
    #[arg(long, value_name = "NAME")]
    pub skip: Vec<String>,
    /// Write the statements into a new file for psql
    #[arg(long, value_name = "FILE")]
    pub sql_out: Option<PathBuf>,
    /// Do it: ALTER SYSTEM and ALTER TABLE on the server of --dsn; with --measure only if that shows a gain
    #[arg(long, requires = "dsn")]
    pub apply: bool,
    /// Run a workload on a private server with the old and the new settings in turns
    #[arg(long)]
    pub measure: bool,
    /// How it is measured.
    #[command(flatten)]
    pub measurement: Measurement,
}

/// How settings are measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --measure")]
pub struct Measurement {
    /// Where the private server's data goes, such as a directory on the drive [default: the one for temporary files]
    #[arg(long, value_name = "DIR", requires = "measure")]
    pub directory: Option<PathBuf>,
    /// Your transactions, as pgbench -f takes them; like TPC-B where there are none
    #[arg(long, value_name = "FILE", requires = "measure")]
    pub sql: Option<PathBuf>,
    /// SQL that makes your tables in place of pgbench's
    #[arg(long, value_name = "FILE", requires = "measure")]
    pub load: Option<PathBuf>,
    /// Size of pgbench's tables, in 100,000 accounts
    #[arg(long, value_name = "N", default_value_t = 10, requires = "measure")]
    pub scale: u32,
    /// Sessions of pgbench
    #[arg(long, value_name = "N", default_value_t = 8, requires = "measure")]
    pub clients: u32,
    /// Rounds with old and with new settings, at least 5
    #[arg(long, value_name = "N", default_value_t = 10, requires = "measure")]
    pub rounds: u32,
    /// Time of a round in whole seconds, without its checkpoint
    #[arg(long, value_name = "TIME", default_value = "5s", requires = "measure")]
    pub round_time: Nanos,
    /// Folder of initdb, pg_ctl and postgres [default: the newest below /usr/lib/postgresql, or those in PATH]
    #[arg(long, value_name = "DIR", requires = "measure")]
    pub programs: Option<PathBuf>,
    /// Seed of pgbench's random choices
    #[arg(long, value_name = "N", default_value_t = 1, requires = "measure")]
    pub seed: u64,
}
