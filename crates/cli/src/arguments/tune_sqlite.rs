//! Options of `tune sqlite`.

use std::path::PathBuf;

use clap::Args;
use flashwise_block::ByteSize;

/// Options of `tune sqlite`.
#[derive(Debug, Args)]
pub struct TuneSqlite {
    /// Your database, a plain SQLite file; it is only read, but for --apply
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// The drive's profile, from `flashwise learn --profile`
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,
    /// Your SQL statements, run on copies of the database; made up where there are none
    #[arg(long, value_name = "FILE")]
    pub sql: Option<PathBuf>,
    /// Where it is measured: sim:PRESET, sim:FILE.toml, or a directory [default: the drive of the profile if that is
    /// simulated, or else the directory of DB]
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// The page cache that your program sets now
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_PAGE_CACHE)]
    pub page_cache: ByteSize,
    /// The most memory that the page cache may get
    #[arg(long, value_name = "SIZE", default_value = "64m")]
    pub page_cache_limit: ByteSize,
    /// Leave this as it is, such as page_size or use-hot-locations; may be given several times
    #[arg(long, value_name = "NAME")]
    pub skip: Vec<String>,
    /// Do what pays: in DB itself where SQLite can, in a new file beside it where its layout changes
    #[arg(long)]
    pub apply: bool,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// SQLite's own page cache (`SQLITE_DEFAULT_CACHE_SIZE`, -2000).
const DEFAULT_PAGE_CACHE: &str = "2000k";
