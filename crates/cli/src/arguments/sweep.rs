//! Options of `sweep`.

use std::path::PathBuf;

use clap::Args;

/// Options of `sweep`.
#[derive(Debug, Args)]
#[command(after_help = "\
A finished cell is a line in the results file; started again, the sweep runs only the others.

  name = \"depths\"
  device = \"samsung-960-evo\"        # a preset, or a file beside the grid
  workload = \"mix.toml\"             # beside the grid
  precondition = \"steady\"
  seeds = [1, 2, 3]
  [vary]                             # every value with every other one
  \"ftl.gc.policy\" = [\"greedy\", \"fifo\"]
  \"workload.flows.0.synthetic.pacing.closed.queue_depth\" = [1, 4, 16]
  [[together]]                       # the first values, then the second ones, …
  \"flash.channels\" = [4, 8]
  \"flash.blocks_per_plane\" = [4096, 2048]")]
pub struct SweepArguments {
    /// The grid: a drive or an array, a workload, and the values to try
    pub grid: PathBuf,
    /// Finished cells; by default NAME.results.jsonl, NAME that of the grid's file
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// All rows as Parquet; by default NAME.parquet
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// All rows as CSV too
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Simulations at a time; 0 for one a core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub jobs: usize,
}
