//! Options of `store`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use flashwise_store::Engine;

/// How a store finds keys.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum StoreEngine {
    /// A B⁻-tree: keys in order, scans
    BTree,
    /// A table-less hash: keys in no order, hardly any memory; for drives that compress
    Hash,
}

impl From<StoreEngine> for Engine {
    fn from(engine: StoreEngine) -> Self {
        match engine {
            StoreEngine::BTree => Self::BTree,
            StoreEngine::Hash => Self::Hash,
        }
    }
}

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
  flashwise store restore app.dump new.store --page 16k --packed-log
  flashwise store restore app.dump new.store --engine hash")]
    Restore {
        /// The dump
        dump: PathBuf,
        /// The store to write; must be new
        file: PathBuf,
        /// How the new store finds keys
        #[arg(long, value_enum, default_value_t = StoreEngine::BTree)]
        engine: StoreEngine,
        /// Size of a page: 4k, 8k, 16k or 32k; 8k by default, 4k with the hash
        #[arg(long, value_name = "SIZE", value_parser = super::positive_size)]
        page: Option<flashwise_block::ByteSize>,
        /// How many percent of the hash's buckets are used, 5 to 90
        #[arg(long, value_name = "PERCENT", default_value_t = flashwise_store::BUCKET_FILL)]
        bucket_fill: u32,
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
    /// done. A store with the hash has no order: `scan` takes no prefix there.
    #[command(after_help = "\
Examples:
  flashwise store kv try.store
  flashwise store kv try.store --engine hash")]
    Kv {
        /// The store
        file: PathBuf,
        /// How a new store finds keys; b-tree by default
        #[arg(long, value_enum)]
        engine: Option<StoreEngine>,
    },
}
