//! Options of `generate`.

use std::path::PathBuf;

use clap::Subcommand;

/// Files that can be generated.
#[derive(Debug, Subcommand)]
pub enum Generated {
    /// Print completions for a shell
    #[command(after_help = "\
Examples:
  flashwise generate completions bash > /etc/bash_completion.d/flashwise
  flashwise generate completions zsh > ~/.zfunc/_flashwise")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write a man page for each command
    #[command(after_help = "\
Examples:
  flashwise generate man ~/.local/share/man/man1
  man flashwise-fit-sqlite")]
    Man {
        /// Directory for the man pages; is created if needed
        directory: PathBuf,
    },
}
