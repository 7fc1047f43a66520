//! Options of `pool`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use flashwise_block::ByteSize;
use flashwise_bufferpool::{PolicySpec, Prefetch, Unit, policies};

use super::{TraceReading, positive_size};

/// Policies of one option: by their names, or all of them.
#[derive(Clone, Debug)]
pub struct Policies(pub Vec<PolicySpec>);

impl FromStr for Policies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            let all = policies().iter().map(|policy| PolicySpec::parse(policy.name));
            return all.collect::<Result<_, _>>().map(Self).map_err(|error| error.to_string());
        }
        // A comma stands between policies and between the parameters of one; only parameters have an = and no name.
        let mut specs: Vec<String> = Vec::new();
        for part in text.split(',').map(str::trim) {
            match specs.last_mut() {
                Some(last) if part.contains('=') && !part.contains(':') => *last = format!("{last},{part}"),
                _ => specs.push(part.to_owned()),
            }
        }
        let specs = specs.iter().map(|spec| PolicySpec::parse(spec));
        specs.collect::<Result<_, _>>().map(Self).map_err(|error| error.to_string())
    }
}

/// What is prefetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrefetchName {
    /// Nothing
    None,
    /// The pages behind one that goes on with a stream
    Sequential,
    /// The pages that followed before
    History,
    /// The stream where there is one, else what followed before
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

/// What an access is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitName {
    /// A request in libCacheSim's formats, else a page
    Auto,
    /// Each page that a request covers
    Page,
    /// Each request, by its first byte
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
#[command(after_help = "\
  flashwise pool tpcc.pages --policy lru,clock-sweep,arc --frames 500,5000
  flashwise pool tpcc.pages --policy all --pool-size 64M --compare --write-back-batch 8 --alpha 3 --kr 80 --kw 8
  flashwise pool tpcc.pages --policy cflru:window=0.3,2q --frames 5000 --ace --drive sim:samsung-960-evo

Policies: lru fifo nru second-chance clock clock-sweep lfu 2q arc cflru cflru-c cflru-e dl-cflru-e lru-wsr ccf-lru s3-fifo
sieve w-tinylfu lru-k. Their rules and parameters are in docs/guide/pool.md.")]
pub struct PoolArguments {
    /// A trace in any format that `flashwise trace` reads; - for standard input
    pub trace: PathBuf,
    /// Policies, with commas between them, or all; parameters behind a colon, such as clock:bit=1
    #[arg(long, value_name = "NAME,…", default_value = "lru")]
    pub policy: Vec<Policies>,
    /// Sizes of the pool in frames, one page each, with commas between them
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(required_unless_present = "pool_size")]
    pub frames: Vec<u64>,
    /// Sizes of the pool in bytes, such as 64M
    #[arg(long, alias = "size", value_name = "SIZE,…", value_delimiter = ',', value_parser = positive_size)]
    #[arg(conflicts_with = "frames")]
    pub pool_size: Vec<ByteSize>,
    /// Write dirty pages back in batches; without, each victim alone
    #[arg(long, help_heading = ACE, conflicts_with = "compare")]
    pub ace: bool,
    /// The classic way and ACE side by side
    #[arg(long, help_heading = ACE)]
    pub compare: bool,
    /// Most pages that are written together; by default k_w, or 8 where that is not known. This and the
    /// options below imply --ace
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536), help_heading = ACE)]
    pub write_back_batch: Option<u32>,
    /// Take dirty pages only from the next N that would fall, N the batch; COW(n) in place of COW-X(n)
    #[arg(long, help_heading = ACE)]
    pub near: bool,
    /// Pages that fall when a dirty one must; by default one, or with prefetching as many as are read
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536), help_heading = ACE)]
    pub evict: Option<u32>,
    /// What is read together with a page whose frame was dirty
    #[arg(long, value_enum, default_value_t = PrefetchName::None, help_heading = ACE)]
    pub prefetch: PrefetchName,
    /// Tell costs by the parametric model: a page write takes so many times as long as a read
    #[arg(long, value_name = "RATIO", help_heading = COST, requires = "kr", requires = "kw", conflicts_with = "profile")]
    pub alpha: Option<f64>,
    /// Pages that are read at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = COST, requires = "alpha")]
    pub kr: Option<u64>,
    /// Pages that are written at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = COST, requires = "alpha")]
    pub kw: Option<u64>,
    /// Take α, k_r and k_w from a profile, from `flashwise learn --profile`
    #[arg(long, value_name = "FILE", help_heading = COST)]
    pub profile: Option<PathBuf>,
    /// Tell times on a simulated drive, full before: a preset, sim:PRESET, or a TOML file
    #[arg(long, value_name = "DEVICE", help_heading = COST)]
    pub drive: Option<String>,
    /// What an access is
    #[arg(long, value_enum, default_value_t = UnitName::Auto)]
    pub unit: UnitName,
    /// Most accesses; the rest of the trace is not read
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub accesses: Option<u64>,
    /// Pools at a time; 0 for one a core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub jobs: usize,
    /// Write a page with curves over the sizes and the table to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// How the trace is to be read
    #[command(flatten)]
    pub reading: TraceReading,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<Vec<String>, String> {
        Ok(text.parse::<Policies>()?.0.iter().map(|spec| spec.name().to_owned()).collect())
    }

    #[test]
    fn commas_stand_between_policies_and_between_parameters() {
        assert_eq!(names("lru,2q:in=0.5,out=1,arc").unwrap(), ["lru", "2q:in=0.5,out=1", "arc"]);
        assert_eq!(names("all").unwrap().len(), policies().len());
        assert!(names("lru,mru").unwrap_err().starts_with("'mru' is no policy"));
    }
}
