//! Options of `tune mariadb`.

use std::path::PathBuf;

use clap::{Args, value_parser};
use flashwise_block::Nanos;

/// What is proposed, and what is done with it.
#[derive(Debug, Args)]
#[command(after_help = "A password is taken from MYSQL_PWD, where --dsn has none.")]
pub struct TuneMariadb {
    /// The drive's profile, from `flashwise learn --request-size 16k --profile`
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,
    /// Your server's Unix socket, such as /run/mysqld/mysqld.sock; it is only read, but for --apply. Without a server,
    /// the old values are the defaults of 10.11
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The user at the socket
    #[arg(long, value_name = "NAME", default_value = "root", requires = "socket")]
    pub user: String,
    /// Your server over TCP: mysql://USER@HOST:PORT
    #[arg(long, value_name = "URL", conflicts_with = "socket")]
    pub dsn: Option<String>,
    /// Leave this as it is, such as innodb_io_capacity; may be given several times
    #[arg(long, value_name = "NAME")]
    pub skip: Vec<String>,
    /// Write an option file, which acts from the next start on, into a new file
    #[arg(long, value_name = "FILE")]
    pub cnf_out: Option<PathBuf>,
    /// Do what acts at once: SET GLOBAL on the server; with --measure only if that shows a gain
    #[arg(long)]
    pub apply: bool,
    /// Run a workload on a private server with the old and the new settings in turns
    #[arg(long)]
    pub measure: bool,
    /// How it is measured.
    #[command(flatten)]
    pub measurement: MariadbMeasurement,
}

/// How settings are measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --measure")]
pub struct MariadbMeasurement {
    /// Where the private server's data goes, such as a directory on the drive [default: the one for temporary files]
    #[arg(long, value_name = "DIR", requires = "measure")]
    pub directory: Option<PathBuf>,
    /// Rows of the table
    #[arg(long, value_name = "N", default_value_t = 500_000, requires = "measure", value_parser = value_parser!(u32).range(1..))]
    pub rows: u32,
    /// Sessions at once
    #[arg(long, value_name = "N", default_value_t = 8, requires = "measure", value_parser = value_parser!(u32).range(1..))]
    pub clients: u32,
    /// Rounds with old and with new settings, at least 5
    #[arg(long, value_name = "N", default_value_t = 10, requires = "measure")]
    pub rounds: u32,
    /// Time of a round, without the server's end
    #[arg(long, value_name = "TIME", default_value = "5s", requires = "measure")]
    pub round_time: Nanos,
    /// Folder of mariadb-install-db and mariadbd [default: those in PATH, /usr/sbin and /usr/bin]
    #[arg(long, value_name = "DIR", requires = "measure")]
    pub programs: Option<PathBuf>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1, requires = "measure")]
    pub seed: u64,
}
