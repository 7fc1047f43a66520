//! Options of `simulate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flashwise_array::FailureConfig;
use flashwise_block::{ByteSize, Nanos};
use flashwise_sim::Precondition;
use flashwise_trace::workload::{Access, Size};

use super::trace::{ReadFormat, read_format_parser};

/// What fio calls a job's `rw`.
#[allow(clippy::enum_variant_names, reason = "the names are fio's")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rw {
    /// Sequential reads
    Read,
    /// Sequential writes
    Write,
    /// Random reads
    Randread,
    /// Random writes
    Randwrite,
    /// Sequential reads and writes
    Rw,
    /// Random reads and writes
    Randrw,
}

/// How the times between requests of a fixed rate are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RateProcess {
    /// Always the same
    Linear,
    /// A Poisson process
    Poisson,
}

/// What is on the drive before the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PreconditionName {
    /// Nothing
    Empty,
    /// Every logical page, written once in order
    Fill,
    /// Filled, then overwritten at random until write amplification settles
    Steady,
    /// The same steady state, computed instead of simulated
    Analytic,
}

impl From<PreconditionName> for Precondition {
    fn from(name: PreconditionName) -> Self {
        match name {
            PreconditionName::Empty => Self::Empty,
            PreconditionName::Fill => Self::Fill,
            PreconditionName::Steady => Self::Steady,
            PreconditionName::Analytic => Self::Analytic,
        }
    }
}

/// Heading of the options that fio has too.
const FIO: &str = "A workload like fio's";

/// Options of `simulate`.
#[derive(Debug, Args)]
#[command(after_help = "\
A workload is one of three: a TOML file (docs/formats/workload.md), a trace that is replayed, or fio's options.

  flashwise simulate samsung-960-evo mix.toml
  flashwise simulate mine.toml tpcc.trace --precondition fill
  flashwise simulate samsung-960-evo --rw randread --bs 4k --iodepth 32 --runtime 1s")]
pub struct SimulateArguments {
    /// A preset, sim:PRESET, or the TOML file of a drive or of an array
    #[arg(required_unless_present = "workload_schema")]
    pub device: Option<String>,
    /// A workload (.toml), one by name (ycsb-a, ssdiq-uniform, …), or a trace in any format that `flashwise trace`
    /// reads
    #[arg(required_unless_present_any = ["workload_schema", "rw"])]
    pub workload: Option<PathBuf>,
    /// How the trace is written; by default its first bytes tell
    #[arg(long = "trace-format", alias = "format", value_name = "FORMAT", value_parser = read_format_parser())]
    #[arg(requires = "workload")]
    pub format: Option<ReadFormat>,
    /// How many lines of the trace may be bad before it is an error
    #[arg(long, value_name = "N", default_value_t = 0, requires = "workload")]
    pub skip_bad_lines: u64,
    /// Widen requests of the trace to whole logical blocks of the drive
    #[arg(long, requires = "workload")]
    pub widen: bool,
    /// Wrap a trace around a drive that is too small for it
    #[arg(long, requires = "workload")]
    pub fold: bool,
    /// As fio's option: what is read and written
    #[arg(long, value_enum, conflicts_with = "workload", help_heading = FIO)]
    pub rw: Option<Rw>,
    /// As fio's option: size of a request
    #[arg(long, value_name = "SIZE", default_value = "4k")]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = FIO)]
    pub bs: ByteSize,
    /// As fio's option: requests in flight
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = FIO)]
    pub iodepth: u32,
    /// As fio's option: bytes of the drive that are touched, from its start; without --runtime also how many are moved
    #[arg(long, value_name = "SIZE")]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = FIO)]
    pub size: Option<ByteSize>,
    /// As fio's option: percent of reads with --rw rw and randrw
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(0..=100))]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = FIO)]
    pub rwmixread: u8,
    /// As fio's option: where random requests go: random, zipf:THETA, pareto:H, zoned:ACCESSES/SIZE:…
    #[arg(long, alias = "random_distribution", value_name = "NAME", value_parser = Access::of_fio)]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = FIO)]
    pub random_distribution: Option<Access>,
    /// As fio's option: sizes with percentages in place of --bs, such as 4k/60:64k/40
    #[arg(long, value_name = "SIZE/PERCENT:…", value_parser = Size::of_fio)]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = FIO)]
    pub bssplit: Option<Size>,
    /// As fio's option: pause between a completion and the next request
    #[arg(long, value_name = "TIME", requires = "rw", conflicts_with_all = ["workload", "rate_iops"])]
    #[arg(help_heading = FIO)]
    pub thinktime: Option<Nanos>,
    /// As fio's option: requests a second, whether or not the drive keeps up; --iodepth then has no meaning
    #[arg(long, alias = "rate_iops", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = FIO)]
    pub rate_iops: Option<u32>,
    /// As fio's option: how the times between those requests are distributed
    #[arg(long, alias = "rate_process", value_enum, default_value_t = RateProcess::Linear)]
    #[arg(requires = "rate_iops", help_heading = FIO)]
    pub rate_process: RateProcess,
    /// As fio's option: percent that compression saves of what is written, on drives that compress
    #[arg(long, alias = "buffer_compress_percentage", value_name = "PERCENT")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    pub buffer_compress_percentage: Option<u8>,
    /// As fio's option: percent of the pages written that are equal to earlier ones, on drives that deduplicate
    #[arg(long, alias = "dedupe_percentage", value_name = "PERCENT")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    pub dedupe_percentage: Option<u8>,
    /// What is on the drive before, on each drive of an array
    #[arg(long, value_enum, default_value_t = PreconditionName::Empty)]
    pub precondition: PreconditionName,
    /// Of an array: a drive fails after so much time, such as 2@500ms; members count from 0. May be given again
    #[arg(long, value_name = "MEMBER@TIME", value_parser = parse_failure)]
    pub fail: Vec<FailureConfig>,
    /// Most requests of each flow
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// Longest time of each flow, on the drive's clock, such as 10s
    #[arg(long, value_name = "TIME", alias = "duration")]
    pub runtime: Option<Nanos>,
    /// Seed of every random choice; by default the workload's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Length of an interval of the time series, such as 10ms; by default 200 to 400 intervals
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Nanos>,
    /// Write a page with plots here
    #[arg(long, value_name = "FILE", conflicts_with = "report")]
    pub html: Option<PathBuf>,
    /// Where report.html and report.json go
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Write the time series as CSV, an interval a line
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the time series as Parquet, an interval a row
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// Print the JSON Schema of a workload, and nothing else
    #[arg(long, conflicts_with_all = ["device", "workload", "rw"])]
    pub workload_schema: bool,
}

/// A member and when it fails: `2@500ms`.
fn parse_failure(text: &str) -> Result<FailureConfig, String> {
    let wrong = || format!("'{text}' is no member and time, such as 2@500ms");
    let (member, at) = text.split_once('@').ok_or_else(wrong)?;
    let (member, at): (u32, Nanos) = (member.parse().map_err(|_| wrong())?, at.parse().map_err(|_| wrong())?);
    Ok(FailureConfig { member, at_ns: at.0 })
}
