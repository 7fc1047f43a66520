//! Options of `sweep`.

use std::path::PathBuf;

use clap::Args;
use flashwise_sim::sweep::Shard;

/// Options of `sweep`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flashwise sweep depths.toml
  flashwise sweep depths.toml --csv depths.csv --jobs 4
  flashwise sweep depths.toml --shard 3/64           # one job of an array
  flashwise sweep depths.toml --merge depths.shard-*.results.jsonl

Each finished simulation is a line of the results file. After an interruption,
the same command runs only the others. A grid, depths.toml:
  name = \"depths\"
  device = \"samsung-960-evo\"           # a preset, or a file beside the grid
  workload = \"mix.toml\"                # a file beside the grid
  precondition = \"steady\"
  seeds = [1, 2, 3]
  [vary]                               # all combinations of these values
  \"ftl.gc.policy\" = [\"greedy\", \"fifo\"]
  \"workload.flows.0.synthetic.pacing.closed.queue_depth\" = [1, 4, 16]
  [[together]]                         # the first of each, the second of each…
  \"flash.channels\" = [4, 8]
  \"flash.blocks_per_plane\" = [4096, 2048]")]
pub struct SweepArguments {
    /// The grid, a TOML file: a drive or an array, a workload, and the values to try
    pub grid: PathBuf,
    /// Results file, one line per finished simulation [default: GRID with .results.jsonl]
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// Write all rows to this Parquet file [default: GRID with .parquet]
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// Also write all rows to this CSV file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Run only this part of the simulations, such as 3/64, for batch schedulers; the default names of its files have
    /// .shard-3-of-64 in them
    #[arg(long, value_name = "N/SHARDS")]
    pub shard: Option<Shard>,
    /// Run nothing: put the finished simulations of these results files into the results file and write all rows
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["shard", "jobs"])]
    pub merge: Vec<PathBuf>,
    /// Simulations to run in parallel; 0 for one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub jobs: usize,
}
