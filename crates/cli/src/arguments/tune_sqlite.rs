//! Options of `tune sqlite`.

use std::path::PathBuf;

use clap::Args;
use flashwise_block::ByteSize;

/// Options of `tune sqlite`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flashwise tune sqlite app.db --profile ssd.toml
  flashwise tune sqlite app.db --profile ssd.toml --sql queries.sql
  flashwise tune sqlite app.db --profile ssd.toml --skip page_size --apply

The database is only read, unless --apply is given; measurements use copies.")]
pub struct TuneSqlite {
    /// Your database, a plain SQLite file
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Profile of the drive, from `flashwise learn --profile FILE`
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,
    /// File of your SQL statements, run on copies [default: SELECTs and UPDATEs of its rows]
    #[arg(long, value_name = "FILE")]
    pub sql: Option<PathBuf>,
    /// Drive for the measurements: sim:PRESET, sim:FILE.toml, or a directory [default: the profile's drive if it is
    /// simulated, otherwise the directory of DB]
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// File system of the database on a simulated drive: ext4, xfs, or none for the bare drive
    #[arg(long, value_name = "NAME", default_value = "ext4")]
    pub file_system: String,
    /// Memory for the operating system's page cache on a simulated drive [default: what is free on this machine]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<ByteSize>,
    /// CPU time of SQLite itself on a simulated drive: modelled, the same in each run, or measured on this machine
    #[arg(long, value_name = "HOW", default_value = "modelled")]
    pub program_time: String,
    /// Size of the page cache that your program sets now
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_PAGE_CACHE)]
    pub page_cache: ByteSize,
    /// Largest page cache to try
    #[arg(long, value_name = "SIZE", default_value = "64m")]
    pub page_cache_limit: ByteSize,
    /// Do not change this setting, such as page_size or use-hot-locations; can be repeated
    #[arg(long, value_name = "NAME")]
    pub skip: Vec<String>,
    /// Apply the settings that gain: to DB itself, or for a new layout to a new file beside it
    #[arg(long)]
    pub apply: bool,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Default page cache of SQLite (`SQLITE_DEFAULT_CACHE_SIZE`, -2000).
const DEFAULT_PAGE_CACHE: &str = "2000k";
