//! Options of `simulate`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use flashwise_array::FailureConfig;
use flashwise_block::{ByteSize, Nanos};
use flashwise_sim::Precondition;
use flashwise_trace::workload::{Access, Rw, Size};

use super::trace::{ReadFormat, read_format_parser};

/// Parses fio's `rw`.
fn rw_parser() -> impl TypedValueParser<Value = Rw> {
    let values = Rw::ALL.map(|rw| PossibleValue::new(rw.name()).help(rw.title()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Rw>())
}

/// Distribution of the times between requests at a fixed rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RateProcess {
    /// Constant
    Linear,
    /// A Poisson process
    Poisson,
}

/// Content of the drive before the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PreconditionName {
    /// Nothing
    Empty,
    /// Every logical page written once, in order
    Fill,
    /// Filled, then overwritten at random until write amplification is steady
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

/// Heading of the options that are named as in fio.
const FIO: &str = "Workload in fio's terms";
/// Heading of the options of a workload on a file.
const FILE: &str = "On a file";

/// Options of `simulate`.
#[derive(Debug, Args)]
#[command(override_usage = "flashwise simulate [OPTIONS] <DEVICE> <WORKLOAD>\n       \
                            flashwise simulate [OPTIONS] <DEVICE> --rw <RW>")]
#[command(after_help = "\
Examples:
  flashwise simulate samsung-960-evo ycsb-a
  flashwise simulate samsung-960-evo mix.toml --html result.html
  flashwise simulate mine.toml tpcc.csv --precondition fill
  flashwise simulate samsung-960-evo --rw randread --bs 4k --iodepth 32 \\
    --runtime 1s
  flashwise simulate samsung-960-evo --rw randwrite --size 64m --requests 1000 \\
    --file-system ext4 --fdatasync 1

docs/formats/workload.md describes the TOML file of a workload.")]
pub struct SimulateArguments {
    /// The drive: a preset (`flashwise device list`), sim:PRESET, or the TOML file of a drive or an
    /// array
    #[arg(required_unless_present = "workload_schema")]
    pub device: Option<String>,
    /// The workload: a TOML file, a name such as ycsb-a, or a trace
    ///
    /// `flashwise trace generate --help` lists the names, `flashwise trace --help` the trace formats.
    #[arg(required_unless_present_any = ["workload_schema", "rw"])]
    pub workload: Option<PathBuf>,
    /// Format of the trace [default: by its first bytes]
    #[arg(long = "trace-format", alias = "format", value_name = "FORMAT", value_parser = read_format_parser(), hide_possible_values = true)]
    #[arg(requires = "workload")]
    pub format: Option<ReadFormat>,
    /// Lines of the trace that may be malformed; they are skipped
    #[arg(long, value_name = "N", default_value_t = 0, requires = "workload")]
    pub skip_bad_lines: u64,
    /// Extend requests of the trace to whole logical blocks of the drive
    #[arg(long, requires = "workload")]
    pub widen: bool,
    /// Map addresses beyond the end of the drive back onto it
    #[arg(long, requires = "workload")]
    pub fold: bool,
    /// Access pattern
    #[arg(long, value_parser = rw_parser(), conflicts_with = "workload", help_heading = FIO)]
    pub rw: Option<Rw>,
    /// Request size
    #[arg(long, value_name = "SIZE", default_value = "4k")]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = FIO)]
    pub bs: ByteSize,
    /// Requests in flight
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = FIO)]
    pub iodepth: u32,
    /// Size of the accessed region, from the start of the drive; without --runtime, also the bytes
    /// to transfer
    #[arg(long, value_name = "SIZE")]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = FIO)]
    pub size: Option<ByteSize>,
    /// Percentage of reads with --rw rw and randrw
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(0..=100))]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = FIO)]
    pub rwmixread: u8,
    /// Distribution of random requests: random, zipf:THETA, pareto:H, zoned:ACCESSES/SIZE:…
    #[arg(long, alias = "random_distribution", value_name = "NAME", value_parser = Access::of_fio)]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = FIO)]
    pub random_distribution: Option<Access>,
    /// Request sizes with percentages, instead of --bs, such as 4k/60:64k/40
    #[arg(long, value_name = "SIZE/PERCENT:…", value_parser = Size::of_fio)]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = FIO)]
    pub bssplit: Option<Size>,
    /// Pause between a completion and the next request
    #[arg(long, value_name = "TIME", requires = "rw", conflicts_with_all = ["workload", "rate_iops"])]
    #[arg(help_heading = FIO)]
    pub thinktime: Option<Nanos>,
    /// Requests per second, submitted whether or not the drive keeps up; --iodepth is ignored
    #[arg(long, alias = "rate_iops", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = FIO)]
    pub rate_iops: Option<u32>,
    /// Distribution of the times between requests of --rate-iops
    #[arg(long, alias = "rate_process", value_enum, default_value_t = RateProcess::Linear)]
    #[arg(requires = "rate_iops", help_heading = FIO)]
    pub rate_process: RateProcess,
    /// Percentage that compression saves, on drives that compress
    #[arg(long, alias = "buffer_compress_percentage", value_name = "PERCENT")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    pub buffer_compress_percentage: Option<u8>,
    /// Percentage of written pages equal to earlier ones, on drives that deduplicate
    #[arg(long, alias = "dedupe_percentage", value_name = "PERCENT")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    pub dedupe_percentage: Option<u8>,
    /// Content of each drive before the workload
    #[arg(long, value_enum, default_value_t = PreconditionName::Empty)]
    pub precondition: PreconditionName,
    /// Run the workload on a file of this file system, ext4 or xfs, under the operating system's page cache, one call
    /// at a time
    #[arg(long, value_name = "NAME", help_heading = FILE, conflicts_with_all = ["fail", "interval", "html", "report", "csv", "parquet"])]
    pub file_system: Option<String>,
    /// ext4 with fast commits, as mkfs.ext4 -O fast_commit creates it
    #[arg(long, requires = "file_system", help_heading = FILE)]
    pub fast_commit: bool,
    /// Memory of the page cache [default: what is free on this machine]
    #[arg(long, value_name = "SIZE", requires = "file_system", help_heading = FILE)]
    pub memory: Option<ByteSize>,
    /// Size of the file [default: --size]
    #[arg(long, alias = "filesize", value_name = "SIZE", requires = "file_system", help_heading = FILE)]
    pub file_size: Option<ByteSize>,
    /// Read and write around the page cache (O_DIRECT)
    #[arg(long, requires = "file_system", help_heading = FILE)]
    pub direct: bool,
    /// fsync after every so many writes
    #[arg(long, value_name = "N", requires = "file_system", conflicts_with = "fdatasync", help_heading = FILE)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub fsync: Option<u32>,
    /// fdatasync after every so many writes
    #[arg(long, value_name = "N", requires = "file_system", help_heading = FILE)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub fdatasync: Option<u32>,
    /// Fail a drive of the array at this time, such as 2@500ms; members count from 0; can be
    /// repeated
    #[arg(long, value_name = "MEMBER@TIME", value_parser = parse_failure)]
    pub fail: Vec<FailureConfig>,
    /// Most requests per flow
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// Most time per flow on the drive's clock, such as 10s
    #[arg(long, value_name = "TIME", alias = "duration")]
    pub runtime: Option<Nanos>,
    /// Seed of all random choices [default: that of the workload]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Interval of the time series, such as 10ms [default: 200 to 400 intervals]
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Nanos>,
    /// Write a page with plots to this HTML file
    #[arg(long, value_name = "FILE", conflicts_with = "report")]
    pub html: Option<PathBuf>,
    /// Directory for report.html and report.json
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Write the time series to this CSV file, one line per interval
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the time series to this Parquet file, one row per interval
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// Only print the JSON Schema of a workload
    #[arg(long, conflicts_with_all = ["device", "workload", "rw"])]
    pub workload_schema: bool,
}

/// A member and when it fails: `2@500ms`.
fn parse_failure(text: &str) -> Result<FailureConfig, String> {
    let wrong = || format!("'{text}' is not MEMBER@TIME, such as 2@500ms");
    let (member, at) = text.split_once('@').ok_or_else(wrong)?;
    let (member, at): (u32, Nanos) = (member.parse().map_err(|_| wrong())?, at.parse().map_err(|_| wrong())?);
    Ok(FailureConfig { member, at_ns: at.0 })
}
