//! Options of `store`.

use std::path::PathBuf;

use clap::Subcommand;

/// Commands for the files of flashwise's key-value store.
#[derive(Debug, Subcommand)]
pub enum StoreAction {
    /// Show what a store is; the file is only read
    #[command(after_help = "\
Examples:
  flashwise store info app.store")]
    Info {
        /// The store
        file: PathBuf,
    },
    /// Read and compare everything in a store
    ///
    /// Damage is listed with its place, and the exit code is 1.
    #[command(after_help = "\
Examples:
  flashwise store check app.store")]
    Check {
        /// The store
        file: PathBuf,
    },
    /// Write all keys and values of a store to a dump
    #[command(after_help = "\
Examples:
  flashwise store dump app.store app.dump")]
    Dump {
        /// The store
        file: PathBuf,
        /// The dump to write; must be new
        dump: PathBuf,
    },
    /// Make a new store from a dump
    #[command(after_help = "\
Examples:
  flashwise store restore app.dump new.store
  flashwise store restore app.dump new.store --page 16k --packed-log")]
    Restore {
        /// The dump
        dump: PathBuf,
        /// The store to write; must be new
        file: PathBuf,
        /// Size of a page: 4k, 8k, 16k or 32k
        #[arg(long, value_name = "SIZE", default_value = "8k", value_parser = super::positive_size)]
        page: flashwise_block::ByteSize,
        /// Let commits share log blocks: for drives that do not compress
        #[arg(long)]
        packed_log: bool,
    },
    /// Merge half-empty pages of a store and give unused space back
    #[command(after_help = "\
Examples:
  flashwise store compact app.store")]
    Compact {
        /// The store
        file: PathBuf,
    },
    /// Try out a store: read and change it by commands from stdin
    ///
    /// A command a line: `put KEY VALUE`, `get KEY`, `delete KEY`, `scan [PREFIX]`, `use KEYSPACE`, `keyspaces`,
    /// `drop KEYSPACE`, `stats`. The store is created if it is missing. Each change is durable when its line is
    /// done.
    #[command(after_help = "\
Examples:
  flashwise store kv try.store")]
    Kv {
        /// The store
        file: PathBuf,
    },
}
