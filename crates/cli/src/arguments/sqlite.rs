//! Options of `sqlite`.

use std::path::PathBuf;

use clap::Subcommand;

/// What can be done with a database file.
#[derive(Debug, Subcommand)]
pub enum SqliteAction {
    /// Tell how a database file is laid out
    Info {
        /// The database file
        file: PathBuf,
    },
    /// Write the plain SQLite file back
    Export {
        /// The database file
        file: PathBuf,
        /// The plain SQLite file to create; must be new
        plain: PathBuf,
    },
    /// Lay a plain SQLite file out for a drive
    Import {
        /// The plain SQLite file
        plain: PathBuf,
        /// The database file to create; must be new
        file: PathBuf,
        /// The drive's profile, from `flashwise learn --profile`
        #[arg(long, value_name = "FILE", required_unless_present = "techniques")]
        profile: Option<PathBuf>,
        /// Techniques beyond the profile's choice, as in a URI: write-aligned-stripes=64k&use-hot-locations=off
        #[arg(long, value_name = "NAME=VALUE&...")]
        techniques: Option<String>,
    },
}
