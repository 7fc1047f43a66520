//! Options of `pool`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use flashwise_block::ByteSize;
use flashwise_bufferpool::{PolicySpec, Prefetch, Unit};

use super::{TraceReading, positive_size};

/// Policies of one option: by name, or all.
#[derive(Clone, Debug)]
pub struct Policies(pub Vec<PolicySpec>);

impl FromStr for Policies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        PolicySpec::parse_all(text).map(Self).map_err(|error| error.to_string())
    }
}

/// Pages to prefetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrefetchName {
    /// Nothing
    None,
    /// The next pages of a sequential stream
    Sequential,
    /// The pages that followed the last time
    History,
    /// sequential within a stream, otherwise history
    Both,
}

impl From<PrefetchName> for Prefetch {
    fn from(name: PrefetchName) -> Self {
        match name {
            PrefetchName::None => Self::None,
            PrefetchName::Sequential => Self::Sequential,
            PrefetchName::History => Self::History,
            PrefetchName::Both => Self::Both,
        }
    }
}

/// Unit of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitName {
    /// request in libCacheSim's formats, otherwise page
    Auto,
    /// Each page of a request is an access
    Page,
    /// Each request is an access to its first byte
    Request,
}

impl From<UnitName> for Unit {
    fn from(name: UnitName) -> Self {
        match name {
            UnitName::Auto => Self::Auto,
            UnitName::Page => Self::Page,
            UnitName::Request => Self::Request,
        }
    }
}

const ACE: &str = "Batched write-back (ACE)";
const COST: &str = "Cost";

/// Options of `pool`.
#[derive(Debug, Args)]
#[command(override_usage = "flashwise pool [OPTIONS] --frames <N,…> <TRACE>\n       \
                            flashwise pool [OPTIONS] --pool-size <SIZE,…> <TRACE>\n       \
                            flashwise pool [OPTIONS] --pool-share <SHARE,…> --traces <DIR>")]
#[command(after_help = "\
Examples:
  flashwise pool tpcc.pages --policy lru,clock-sweep,arc --frames 500,5000
  flashwise pool tpcc.pages --policy all --pool-size 64M --compare \\
    --write-back-batch 8 --alpha 3 --kr 80 --kw 8
  flashwise pool tpcc.pages --policy cflru:window=0.3,2q --frames 5000 --ace \\
    --drive sim:samsung-960-evo
  flashwise pool --traces traces --policy all --pool-share 1%,10%

Policies: lru fifo nru second-chance clock clock-sweep lfu 2q arc cflru cflru-c
cflru-e dl-cflru-e lru-wsr ccf-lru s3-fifo sieve w-tinylfu lru-k. Their rules
and parameters are in docs/guide/pool.md. `flashwise trace tpcc` makes a trace.")]
pub struct PoolArguments {
    /// A trace, in any format listed by `flashwise trace --help`; - for standard input
    #[arg(required_unless_present = "traces")]
    pub trace: Option<PathBuf>,
    /// All traces of this directory instead of one, and what they have in common
    #[arg(long, value_name = "DIR", conflicts_with_all = ["trace", "html"])]
    pub traces: Option<PathBuf>,
    /// Policies, separated by commas, or all; parameters after a colon, such as clock:bit=1
    #[arg(long, value_name = "NAME,…", default_value = "lru")]
    pub policy: Vec<Policies>,
    /// Sizes of the pool in frames (pages), separated by commas
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(required_unless_present_any = ["pool_size", "pool_share"])]
    pub frames: Vec<u64>,
    /// Sizes of the pool in bytes, separated by commas, such as 64M
    #[arg(long, alias = "size", value_name = "SIZE,…", value_delimiter = ',', value_parser = positive_size)]
    #[arg(conflicts_with = "frames")]
    pub pool_size: Vec<ByteSize>,
    /// Sizes of the pool as shares of the trace's pages, separated by commas, such as 1%,10%
    #[arg(long, value_name = "SHARE,…", value_delimiter = ',', value_parser = share)]
    #[arg(conflicts_with_all = ["frames", "pool_size"])]
    pub pool_share: Vec<f64>,
    /// Write dirty pages back in batches; without, one victim at a time
    #[arg(long, help_heading = ACE, conflicts_with = "compare")]
    pub ace: bool,
    /// Run each policy twice: without and with ACE
    #[arg(long, help_heading = ACE)]
    pub compare: bool,
    /// Most pages written in one batch [default: k_w if known, otherwise 8]; implies --ace
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536), help_heading = ACE)]
    pub write_back_batch: Option<u32>,
    /// Write back only dirty pages among the next N victims, N the batch size (COW(n) instead of
    /// COW-X(n)); implies --ace
    #[arg(long, help_heading = ACE)]
    pub near: bool,
    /// Pages to evict when the victim is dirty [default: 1, or with --prefetch as many as are
    /// read]; implies --ace
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536), help_heading = ACE)]
    pub evict: Option<u32>,
    /// Pages to read together with a page whose frame was dirty; implies --ace
    #[arg(long, value_enum, default_value_t = PrefetchName::None, help_heading = ACE)]
    pub prefetch: PrefetchName,
    /// Compute costs with the parametric model, with this asymmetry (page write time / page read
    /// time)
    #[arg(long, value_name = "RATIO", help_heading = COST, requires = "kr", requires = "kw", conflicts_with = "profile")]
    pub alpha: Option<f64>,
    /// Pages that the drive reads at once, k_r
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = COST, requires = "alpha")]
    pub kr: Option<u64>,
    /// Pages that the drive writes at once, k_w
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = COST, requires = "alpha")]
    pub kw: Option<u64>,
    /// Take α, k_r and k_w from this profile, from `flashwise learn --profile FILE`
    #[arg(long, value_name = "FILE", help_heading = COST)]
    pub profile: Option<PathBuf>,
    /// Measure times on a simulated drive, filled before: a preset, sim:PRESET, or a TOML file
    #[arg(long, value_name = "DEVICE", help_heading = COST)]
    pub drive: Option<String>,
    /// Unit of access
    #[arg(long, value_enum, default_value_t = UnitName::Auto)]
    pub unit: UnitName,
    /// Most accesses to read from the trace
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub accesses: Option<u64>,
    /// Pools to simulate in parallel; 0 for one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub jobs: usize,
    /// Write a page with curves and the table to this HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// How the trace is read.
    #[command(flatten)]
    pub reading: TraceReading,
}

/// `1%` as 0.01.
fn share(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
    let percent = percent.filter(|&percent| percent > 0.0 && percent <= 100.0);
    percent.map(|percent| percent / 100.0).ok_or_else(|| format!("'{text}' is not a share above 0% and up to 100%"))
}
