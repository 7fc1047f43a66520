//! Options of `trace`, and of every command that reads or writes traces.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, Command, Subcommand};
use flashwise_block::ByteSize;
use flashwise_trace::{TraceFormat, TraceWriter};
use flashwise_tune::DEFAULT_TARGET;

use super::positive_size;
use super::raw_device::{RAW_DEVICES, RawDevice};

/// A format, with the layout of its lines if the user gave one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadFormat {
    /// The format.
    pub format: TraceFormat,
    /// The part after the name: `columns:LAYOUT`, `blkparse:FORMAT`.
    pub layout: Option<Arc<str>>,
}

/// How a trace is read.
#[derive(Clone, Debug, Args)]
pub struct TraceReading {
    /// Format of the trace; `flashwise trace --help` lists the formats
    ///
    /// auto detects the format by the first bytes and the name, and prints a note with the reason. columns:LAYOUT reads
    /// any text in columns, such as columns:time=1:s,op=2,offset=3:bytes,length=4:bytes. blkparse:FORMAT reads the
    /// output of blkparse -f FORMAT.
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = read_format_parser())]
    #[arg(hide_possible_values = true)]
    pub trace_format: ReadFormat,
    /// Format given to blkparse -f; same as --trace-format blkparse:FORMAT
    #[arg(long, value_name = "FORMAT", conflicts_with = "trace_format")]
    pub blkparse_format: Option<String>,
    /// Lines that may be malformed; they are skipped
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip_bad_lines: u64,
    /// Sector size, for formats that count sectors
    #[arg(long, value_name = "SIZE", default_value = "512", value_parser = positive_size)]
    pub sector_size: ByteSize,
    /// Page size, for formats that count pages
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = positive_size)]
    pub page_size: ByteSize,
}

impl TraceReading {
    /// The requested format.
    pub fn format(&self) -> TraceFormat {
        if self.blkparse_format.is_some() { TraceFormat::Blkparse } else { self.trace_format.format }
    }
}

/// Parses the name of any format that is read, with a layout after those that take one, or auto.
#[derive(Clone, Debug)]
struct ReadFormatParser;

/// The parser of formats that are read.
pub(super) fn read_format_parser() -> impl TypedValueParser<Value = ReadFormat> {
    ReadFormatParser
}

fn read_formats() -> impl Iterator<Item = PossibleValue> {
    let names = std::iter::once(TraceFormat::Auto).chain(TraceFormat::all());
    names.map(|format| PossibleValue::new(format.name()).help(format.title()))
}

impl TypedValueParser for ReadFormatParser {
    type Value = ReadFormat;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<ReadFormat, clap::Error> {
        if let Some((format, Some(layout))) = value.to_str().and_then(TraceFormat::with_layout) {
            return Ok(ReadFormat { format, layout: Some(layout.into()) });
        }
        let name = PossibleValuesParser::new(read_formats()).parse_ref(command, argument, value)?;
        Ok(ReadFormat { format: TraceFormat::of_name(&name).unwrap_or_default(), layout: None })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(read_formats()))
    }
}

/// Parses the name of a format that is written.
pub(super) fn written_format_parser() -> impl TypedValueParser<Value = TraceFormat> {
    let values = TraceWriter::FORMATS.map(|format| PossibleValue::new(format.name()).help(format.title()));
    PossibleValuesParser::new(values).map(|name| TraceFormat::of_name(&name).unwrap_or_default())
}

/// Commands for traces.
#[derive(Debug, Subcommand)]
pub enum TraceAction {
    /// Summarise a trace: requests, bytes, addresses, lengths, times
    #[command(after_help = "\
Examples:
  flashwise trace info tpcc.trace.gz
  zcat tpcc.trace.gz | flashwise trace info - --trace-format mqsim")]
    Info {
        /// The trace; - for standard input
        trace: PathBuf,
        /// How it is read.
        #[command(flatten)]
        reading: TraceReading,
    },
    /// Convert a trace to another format
    #[command(after_help = "\
Examples:
  flashwise trace convert prxy_0.csv.gz prxy_0.parquet
  flashwise trace convert sda.blkparse.txt job.iolog --to fio-iolog")]
    Convert {
        /// The trace; - for standard input
        input: PathBuf,
        /// The trace to write, or - for standard output; must be new
        ///
        /// A file whose name ends in .gz, .bz2, .zst or .xz is compressed.
        #[arg(value_name = "OUTPUT")]
        target: PathBuf,
        /// Format of the new trace [default: by the extension of its name, .csv or .parquet]
        #[arg(long, value_name = "FORMAT", value_parser = written_format_parser())]
        to: Option<TraceFormat>,
        /// How the trace is read.
        #[command(flatten)]
        reading: TraceReading,
    },
    /// Write the requests of a workload as a trace
    #[command(after_help = "\
Examples:
  flashwise trace generate ycsb-a a.csv.zst --size 16G --requests 1000000
  flashwise trace generate mix.toml mix.mqsim --size 256G --to mqsim

Request times of a closed loop depend on the drive. In the trace, request n of
such a flow has the time n ns.")]
    Generate {
        /// The workload: a TOML file, or a name
        ///
        /// The names are ycsb-a to ycsb-f, ssdiq-uniform, ssdiq-zipf-0.2 to ssdiq-zipf-1.0, ssdiq-two-zone, ssdiq-fill
        /// and ssdiq-latency.
        workload: String,
        /// The trace to write, or - for standard output; must be new
        ///
        /// A file whose name ends in .gz, .bz2, .zst or .xz is compressed.
        #[arg(value_name = "OUTPUT")]
        target: PathBuf,
        /// Size of the drive
        #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = positive_size)]
        size: ByteSize,
        /// Most requests per flow [default for a name: 100000]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        requests: Option<u64>,
        /// Seed of all random choices [default: that of the workload]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
        seed: Option<u64>,
        /// Format of the trace [default: by the extension of its name, .csv or .parquet]
        #[arg(long, value_name = "FORMAT", value_parser = written_format_parser())]
        to: Option<TraceFormat>,
    },
    /// Run TPC-C on SQLite and write its page accesses as a trace
    ///
    /// SQLite runs the five transactions in their mix on a simulated drive. The same seed gives the same trace. With
    /// --page-cache 0 the trace has the accesses to a buffer pool; with a larger cache, the requests of a pool of that
    /// size to the drive.
    #[command(after_help = "\
Examples:
  flashwise trace tpcc tpcc.pages --to pages --page-cache 0
  flashwise trace tpcc tpcc.csv.zst --warehouses 4 --transactions 20000 \\
    --page-cache 8M")]
    Tpcc(TpccArguments),
    /// Replay a trace or a workload on a drive, and report how accurately
    ///
    /// In a directory, all requests go to a new scratch file, which is deleted afterwards. A block device is only read,
    /// unless --destructive and --confirm-device are given.
    #[command(after_help = "\
Examples:
  flashwise trace replay tpcc.csv.gz --fold
  flashwise trace replay tpcc.csv.gz /mnt/ssd --fold --iodepth 32
  flashwise trace replay ycsb-a /mnt/ssd --requests 10000")]
    Replay(Box<ReplayArguments>),
}

/// The last part of `trace --help`: the examples, and the formats.
pub(super) fn formats_page(examples: &str) -> String {
    let table = |formats: &mut dyn Iterator<Item = TraceFormat>| {
        formats.map(|format| format!("\n  {:<16} {}", format.name(), format.title())).collect::<String>()
    };
    let read = table(&mut TraceFormat::all());
    let written: Vec<_> = TraceWriter::FORMATS.iter().map(|format| format.name()).collect();
    let (most, last) = written.split_at(written.len() / 2);
    let written = format!("{},\n  {}", most.join(", "), last.join(", "));
    format!(
        "{examples}\n\nFormats that are read (--trace-format):{read}\n\nFormats that are written (--to):\n  {written}"
    )
}

/// Options of `trace replay`.
#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// A trace, or a workload of one flow: a TOML file or a name
    pub trace: PathBuf,
    /// The drive: sim:PRESET, sim:FILE.toml, a directory on a real drive, or a block device
    #[arg(default_value = DEFAULT_TARGET, value_name = "TARGET")]
    pub target: String,
    /// Replay as a closed loop with N requests in flight, without the times of the trace
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub iodepth: Option<u32>,
    /// Speed relative to the times of the trace
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, conflicts_with = "iodepth")]
    pub speed: f64,
    /// Most requests to replay
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// Size of the scratch file in a directory, or of the region to overwrite on a block device
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = positive_size)]
    pub size: ByteSize,
    /// Show what would be written and what prevents it; write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Most bytes to write to a block device
    #[arg(long, value_name = "SIZE", requires = "destructive", help_heading = RAW_DEVICES)]
    pub max_write: Option<ByteSize>,
    /// Consent to overwriting a block device.
    #[command(flatten)]
    pub raw_device: RawDevice,
    /// Map addresses beyond the end of the drive back onto it
    #[arg(long)]
    pub fold: bool,
    /// Extend requests to whole logical blocks of the drive
    #[arg(long)]
    pub widen: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How the trace is read.
    #[command(flatten)]
    pub reading: TraceReading,
}

/// Options of `trace tpcc`.
#[derive(Debug, Args)]
pub struct TpccArguments {
    /// The trace to write; must be new
    ///
    /// A file whose name ends in .gz, .bz2, .zst or .xz is compressed.
    #[arg(value_name = "OUTPUT")]
    pub output_file: PathBuf,
    /// Warehouses, each about 100 MB at full scale
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub warehouses: u32,
    /// Transactions to record
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub transactions: u64,
    /// Size of a warehouse relative to the specification: items, customers and orders; above 0, at
    /// most 1
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    pub scale: f64,
    /// Size of SQLite's page cache; 0 for its minimum, about ten pages
    #[arg(long, value_name = "SIZE", default_value = "2M")]
    pub page_cache: ByteSize,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Format of the trace [default: by the extension of its name, .csv or .parquet]
    #[arg(long, value_name = "FORMAT", value_parser = written_format_parser())]
    pub to: Option<TraceFormat>,
}
