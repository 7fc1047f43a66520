//! Options of `sqlite`.

use std::path::PathBuf;

use clap::Subcommand;

/// Commands for database files.
#[derive(Debug, Subcommand)]
pub enum SqliteAction {
    /// Show the layout of a database file
    #[command(after_help = "\
Examples:
  flashwise sqlite info app.fw.db")]
    Info {
        /// The database file
        file: PathBuf,
    },
    /// Convert a database file of the flashwise VFS to a plain SQLite file
    #[command(after_help = "\
Examples:
  flashwise sqlite export app.fw.db app.db")]
    Export {
        /// The database file
        file: PathBuf,
        /// The plain SQLite file to write; must be new
        plain: PathBuf,
    },
    /// Convert a plain SQLite file to the layout for a drive
    #[command(after_help = "\
Examples:
  flashwise sqlite import app.db app.fw.db --profile ssd.toml
  flashwise sqlite import app.db app.fw.db \\
    --techniques 'write-aligned-stripes=64k&use-hot-locations=off'")]
    Import {
        /// The plain SQLite file
        plain: PathBuf,
        /// The database file to write; must be new
        file: PathBuf,
        /// Profile of the drive, from `flashwise learn --profile FILE`
        #[arg(long, value_name = "FILE", required_unless_present = "techniques")]
        profile: Option<PathBuf>,
        /// Techniques that override the choice by the profile, as in the URI of the VFS
        #[arg(long, value_name = "NAME=VALUE&...")]
        techniques: Option<String>,
    },
}
