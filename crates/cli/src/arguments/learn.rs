//! Options of `learn`.

use std::path::PathBuf;

use clap::Args;
use flashwise_block::{ByteSize, Nanos};
use flashwise_tune::DEFAULT_TARGET;

use super::RawDevice;

/// Options of `learn`.
#[derive(Debug, Args)]
pub struct LearnArguments {
    /// sim:PRESET, sim:FILE.toml, a directory on a real drive, or a block device, which is only read
    #[arg(default_value = DEFAULT_TARGET, value_name = "TARGET")]
    pub target: String,
    /// The same as TARGET
    #[arg(long = "target", value_name = "TARGET", conflicts_with = "target")]
    pub target_option: Option<String>,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Few samples: at most 5 minutes and 1 % of a real drive's capacity; usual on real drives
    #[arg(long, conflicts_with = "thorough")]
    pub quick: bool,
    /// Every sample that narrows an interval; usual on simulated drives
    #[arg(long)]
    pub thorough: bool,
    /// Begin nothing that would write more than this, such as 2g; to a block device 4 GiB where nothing is said
    #[arg(long, value_name = "SIZE")]
    pub max_write: Option<ByteSize>,
    /// Begin nothing after this time on the drive's clock, such as 5m
    #[arg(long, value_name = "TIME")]
    pub time_budget: Option<Nanos>,
    /// Learn asymmetry and concurrency for requests of this size too, such as 16K; may be given several times
    #[arg(long, value_name = "SIZE")]
    pub request_size: Vec<ByteSize>,
    /// Show what would be written and what speaks against it, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// What may be overwritten
    #[command(flatten)]
    pub raw_device: RawDevice,
    /// Write the profile here as TOML, with its curves, after each probe
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Go on from a profile of this drive: probes that it has finished are left out
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// Keep every sample as CSV, one file a probe, in this directory
    #[arg(long, value_name = "DIR")]
    pub raw: Option<PathBuf>,
    /// Learn nothing; write the probes as job files into DIR, so that fio can check them
    #[arg(long, num_args = 2, value_names = ["FORMAT", "DIR"])]
    pub export: Option<Vec<String>>,
    /// Hold what was learned against what a simulated drive is built of
    #[arg(long)]
    pub score: bool,
    /// Write a page with every curve here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
