//! Options of `fit mariadb`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, value_parser};
use flashwise_block::Nanos;

use super::fit::ServerDrive;

/// Options of `fit mariadb`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("server").args(["connection", "dsn", "socket"]))]
#[command(override_usage = "flashwise fit mariadb [OPTIONS] [CONNECTION]")]
#[command(after_help = "\
Examples:
  flashwise fit mariadb /run/mysqld/mysqld.sock --on /mnt/ssd
  flashwise fit mariadb --profile ssd.toml --cnf-out flashwise.cnf
  flashwise fit mariadb mysql://root@db.example:3306 --profile ssd.toml \\
    --measure --directory /mnt/ssd

The server is only read, unless --apply is given. The password comes from
CONNECTION or from MYSQL_PWD.")]
pub struct FitMariadb {
    /// Your server: mysql://USER@HOST:PORT, or the path of its Unix socket [default: no server, but the default
    /// settings of version 10.11]
    pub connection: Option<String>,
    /// Same as CONNECTION, for a Unix socket
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Same as CONNECTION, for a server over TCP
    #[arg(long, value_name = "URL")]
    pub dsn: Option<String>,
    /// User for a Unix socket [default: root]
    #[arg(long, value_name = "NAME", requires = "server")]
    pub user: Option<String>,
    /// The drive of the server's data.
    #[command(flatten)]
    pub drive: ServerDrive,
    /// Do not change this setting, such as innodb_io_capacity; can be repeated
    #[arg(long, value_name = "NAME")]
    pub skip: Vec<String>,
    /// Write the settings to this new option file, which takes effect at the next server start
    #[arg(long, value_name = "FILE")]
    pub cnf_out: Option<PathBuf>,
    /// Write the settings to this new file, as parameters of an Amazon RDS parameter group
    #[arg(long, value_name = "FILE")]
    pub rds_out: Option<PathBuf>,
    /// Apply with SET GLOBAL those settings that take effect at once; with --measure only if there
    /// is a gain
    #[arg(long)]
    pub apply: bool,
    /// Run a workload on a private server, alternating old and new settings
    #[arg(long)]
    pub measure: bool,
    /// How settings are measured.
    #[command(flatten)]
    pub measurement: MariadbMeasurement,
}

/// How settings are measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --measure")]
pub struct MariadbMeasurement {
    /// Directory for the private server's data, such as one on the drive [default: $TMPDIR or /tmp]
    #[arg(long, value_name = "DIR", requires = "measure")]
    pub directory: Option<PathBuf>,
    /// Measure on the simulated drive of --on, attached to this machine; as root
    #[arg(long, requires = "measure", conflicts_with = "directory")]
    pub attached: bool,
    /// Attach the drive so many times slower than it is
    #[arg(long, value_name = "N", default_value_t = 1, requires = "attached", value_parser = value_parser!(u32).range(1..=1000))]
    pub slower: u32,
    /// Script of your transaction, which each session repeats [default: short OLTP transactions on a test table]
    #[arg(long, value_name = "FILE", requires = "measure")]
    pub sql: Option<PathBuf>,
    /// Replay the transactions of your server's general log; repeatable
    #[arg(long, value_name = "FILE", requires = "measure", requires = "load", conflicts_with = "sql")]
    pub log: Vec<PathBuf>,
    /// SQL file that creates and fills your tables, such as a dump, instead of the test table
    #[arg(long, value_name = "FILE", requires = "measure")]
    pub load: Option<PathBuf>,
    /// Rows of the test table
    #[arg(long, value_name = "N", default_value_t = 500_000, requires = "measure", value_parser = value_parser!(u32).range(1..))]
    pub rows: u32,
    /// Concurrent sessions
    #[arg(long, value_name = "N", default_value_t = 8, requires = "measure", value_parser = value_parser!(u32).range(1..))]
    pub clients: u32,
    /// Rounds with the old settings, and as many with the new; at least 5
    #[arg(long, value_name = "N", default_value_t = 10, requires = "measure")]
    pub rounds: u32,
    /// Duration of a round, without the shutdown of the server
    #[arg(long, value_name = "TIME", default_value = "5s", requires = "measure")]
    pub round_time: Nanos,
    /// Directory of mariadb-install-db and mariadbd [default: PATH, /usr/sbin and /usr/bin]
    #[arg(long, value_name = "DIR", requires = "measure")]
    pub programs: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, requires = "measure")]
    pub seed: u64,
}
