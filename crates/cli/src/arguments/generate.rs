//! Options of `generate`.

use std::path::PathBuf;

use clap::Subcommand;

/// What can be generated.
#[derive(Debug, Subcommand)]
pub enum Generated {
    /// Completions for a shell, to stdout
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// A man page for each verb
    Man {
        /// The directory to put them in
        directory: PathBuf,
    },
}
