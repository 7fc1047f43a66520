//! Options of `trace`, and of every verb that reads or writes traces.

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

/// A format, and how a line of it is laid out where the user says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadFormat {
    /// The format.
    pub format: TraceFormat,
    /// What stands behind its name: `columns:LAYOUT`, `blkparse:FORMAT`.
    pub layout: Option<Arc<str>>,
}

/// How a trace is to be read.
#[derive(Clone, Debug, Args)]
pub struct TraceReading {
    /// How the trace is written; auto goes by its first bytes and its name, and says what it decided and why.
    /// columns:LAYOUT reads any text of columns, such as columns:time=1:s,op=2,offset=3:bytes,length=4:bytes;
    /// blkparse:FORMAT what blkparse -f FORMAT printed
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = read_format_parser())]
    pub trace_format: ReadFormat,
    /// The trace was printed with blkparse -f FORMAT; the same as --trace-format blkparse:FORMAT
    #[arg(long, value_name = "FORMAT", conflicts_with = "trace_format")]
    pub blkparse_format: Option<String>,
    /// How many lines may be bad before it is an error
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip_bad_lines: u64,
    /// Bytes of a sector, in formats that count in sectors
    #[arg(long, value_name = "SIZE", default_value = "512", value_parser = positive_size)]
    pub sector_size: ByteSize,
    /// Bytes of a page, in formats that count in pages
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = positive_size)]
    pub page_size: ByteSize,
}

impl TraceReading {
    /// The format that was asked for.
    pub fn format(&self) -> TraceFormat {
        if self.blkparse_format.is_some() { TraceFormat::Blkparse } else { self.trace_format.format }
    }
}

/// Takes the name of any format that is read, with a layout behind those that have one, or auto.
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

/// Takes the name of a format that is written.
pub(super) fn written_format_parser() -> impl TypedValueParser<Value = TraceFormat> {
    let values = TraceWriter::FORMATS.map(|format| PossibleValue::new(format.name()).help(format.title()));
    PossibleValuesParser::new(values).map(|name| TraceFormat::of_name(&name).unwrap_or_default())
}

/// What can be done with traces.
#[derive(Debug, Subcommand)]
pub enum TraceAction {
    /// Tell what a trace asks for: requests, bytes, places, lengths, times
    #[command(after_help = "\
  flashwise trace info tpcc.trace.gz
  zcat tpcc.trace.gz | flashwise trace info - --trace-format mqsim")]
    Info {
        /// The trace; - for standard input
        trace: PathBuf,
        /// How it is to be read
        #[command(flatten)]
        reading: TraceReading,
    },
    /// Write a trace in another form
    #[command(after_help = "\
  flashwise trace convert prxy_0.csv.gz prxy_0.parquet
  flashwise trace convert sda.blkparse.txt job.iolog --to fio-iolog")]
    Convert {
        /// The trace; - for standard input
        input: PathBuf,
        /// The trace to create; must be new. - is standard output. A name that ends in .gz, .bz2, .zst or .xz is packed
        #[arg(value_name = "OUTPUT")]
        target: PathBuf,
        /// Form of the new trace; by default its name tells (.csv, .parquet)
        #[arg(long, value_name = "FORMAT", value_parser = written_format_parser())]
        to: Option<TraceFormat>,
        /// How the trace is to be read
        #[command(flatten)]
        reading: TraceReading,
    },
    /// Write the requests of a workload as a trace
    #[command(after_help = "\
  flashwise trace generate ycsb-a a.csv.zst --size 16G --requests 1000000
  flashwise trace generate mix.toml mix.mqsim --size 256G --to mqsim

A closed loop has no times before a drive answers: its request n is told as at n ns.")]
    Generate {
        /// A workload (.toml), or one by name: ycsb-a to ycsb-f, ssdiq-uniform, ssdiq-zipf-0.2 to ssdiq-zipf-1.0,
        /// ssdiq-two-zone, ssdiq-fill, ssdiq-latency
        workload: String,
        /// The trace to create; must be new. - is standard output. A name that ends in .gz, .bz2, .zst or .xz is packed
        #[arg(value_name = "OUTPUT")]
        target: PathBuf,
        /// Size of the drive that it is for
        #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = positive_size)]
        size: ByteSize,
        /// Most requests of each flow; for a workload by name how many, by default 100000
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        requests: Option<u64>,
        /// Seed of every random choice; by default the workload's
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
        seed: Option<u64>,
        /// Form of the trace; by default its name tells (.csv, .parquet)
        #[arg(long, value_name = "FORMAT", value_parser = written_format_parser())]
        to: Option<TraceFormat>,
    },
    /// Run TPC-C on SQLite on a simulated drive, and write the pages that it asks for as a trace
    #[command(after_help = "\
  flashwise trace tpcc tpcc.pages --to pages --page-cache 0
  flashwise trace tpcc tpcc.csv.zst --warehouses 4 --transactions 20000 --page-cache 8M

The five transactions in their mix, for real; the same seed gives the same trace. With --page-cache 0 the trace is what a
buffer pool is asked for; with a larger one, what a drive is asked for by a pool of that size.")]
    Tpcc(TpccArguments),
    /// Replay a trace or a workload on a drive, and tell how faithfully
    #[command(after_help = "\
  flashwise trace replay tpcc.trace.gz --fold
  flashwise trace replay tpcc.trace.gz /mnt/scratch --fold --iodepth 32

On a directory the requests go to a new scratch file in it, which is gone afterwards. A block device is only read, unless
it is named twice: with --destructive and --confirm-device.")]
    Replay(Box<ReplayArguments>),
}

/// Options of `trace replay`.
#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// A trace, a workload (.toml) of one flow, or one by name
    pub trace: PathBuf,
    /// sim:PRESET, sim:FILE.toml, a directory on a real drive, or a block device, which is only read
    #[arg(default_value = DEFAULT_TARGET, value_name = "TARGET")]
    pub target: String,
    /// Closed loop: requests in flight, the trace's times unused; by default each request comes at its time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub iodepth: Option<u32>,
    /// So many times as fast as the trace's times
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, conflicts_with = "iodepth")]
    pub speed: f64,
    /// Most requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// Size of the scratch file, on a directory; of the start that is overwritten, on a block device
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = positive_size)]
    pub size: ByteSize,
    /// Show what would be written and what speaks against it, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write at most this to a block device
    #[arg(long, value_name = "SIZE", requires = "destructive", help_heading = RAW_DEVICES)]
    pub max_write: Option<ByteSize>,
    /// What may be overwritten
    #[command(flatten)]
    pub raw_device: RawDevice,
    /// Wrap the trace around a drive that is too small for it
    #[arg(long)]
    pub fold: bool,
    /// Widen requests to whole logical blocks of the drive
    #[arg(long)]
    pub widen: bool,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How the trace is to be read
    #[command(flatten)]
    pub reading: TraceReading,
}

/// What `trace tpcc` takes.
#[derive(Debug, Args)]
pub struct TpccArguments {
    /// The trace to create; must be new. A name that ends in .gz, .bz2, .zst or .xz is packed
    #[arg(value_name = "OUTPUT")]
    pub output_file: PathBuf,
    /// Warehouses, each of some 100 MB at full scale
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub warehouses: u32,
    /// Transactions that are recorded
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub transactions: u64,
    /// Items, customers and orders of a warehouse against the specification's, above 0 and at most 1
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    pub scale: f64,
    /// SQLite's page cache; 0 for the smallest that it has, about ten pages
    #[arg(long, value_name = "SIZE", default_value = "2M")]
    pub page_cache: ByteSize,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Form of the trace; by default its name tells (.csv, .parquet)
    #[arg(long, value_name = "FORMAT", value_parser = written_format_parser())]
    pub to: Option<TraceFormat>,
}
