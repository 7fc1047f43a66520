//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use flashwise_audit::{AuditOptions, Rule};
use flashwise_block::{ByteSize, Nanos, SignatureKind};
use flashwise_ssd::array::FailureConfig;
use flashwise_trace::workload::{Access, Size};
use flashwise_trace::{TraceFormat, TraceWriter};
use flashwise_tune::{DEFAULT_TARGET, RawOptions};

use crate::output::Format;

mod attach;
mod device_stat;
mod pool;
mod tune_mariadb;
mod tune_postgres;

pub use attach::{AttachAction, AttachArguments, Data, FaultArguments, ServeArguments, Time};
pub use device_stat::StatArguments;
pub use pool::{PoolArguments, PrefetchName};
pub use tune_mariadb::TuneMariadb;
pub use tune_postgres::TunePostgres;

/// Fit your database to the SSD it runs on
///
/// flashwise learns what a drive hides, audits a database's I/O against it, applies what follows, and measures before
/// and after. The default drive is simulated. Existing files are never written to, raw devices only with
/// --destructive and --confirm-device.
#[derive(Debug, Parser)]
#[command(name = "flashwise", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 done, 1 error, 2 usage, 3 an audit found violations, 4 inconclusive, \
                        5 refused for safety, 130 interrupted")]
pub struct Arguments {
    /// What to do
    #[command(subcommand)]
    pub verb: Verb,
    /// Form of the result on stdout
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Text, alias = "output-format", display_order = 100)]
    pub output: Format,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Learn a drive, run a database on it, audit, apply what follows, run again, report
    #[command(subcommand)]
    Fit(FitDatabase),
    /// What to change of a database of your own, what each change brings, and how to undo it
    #[command(subcommand)]
    Tune(TuneDatabase),
    /// Learn what a drive hides: write unit, stripe, chunk, page, hot locations, asymmetry, concurrency
    Learn(LearnArguments),
    /// Hold a trace of requests against what was learned about a drive
    Audit(AuditArguments),
    /// Run a workload or a trace on a simulated drive
    Simulate(Box<SimulateArguments>),
    /// A simulated drive as a disk for other programs, with its timing
    Attach(Box<AttachArguments>),
    /// The process that `attach --mount` starts to watch over itself
    #[command(hide = true)]
    AttachWatchdog,
    /// Run many simulations: every combination of a few values, on all cores
    Sweep(SweepArguments),
    /// Buffer-pool policies side by side on a trace, classic and with batched write-back
    Pool(Box<PoolArguments>),
    /// A published study: what it claims beside what is measured
    Study(StudyArguments),
    /// Database files that the flashwise VFS laid out
    #[command(subcommand)]
    Sqlite(SqliteAction),
    /// Simulated drives: presets and configurations, and what an attached one is doing
    #[command(subcommand)]
    Device(DeviceAction),
    /// I/O traces: what is in one, and in another form
    #[command(subcommand)]
    Trace(TraceAction),
    /// Man pages and shell completions
    #[command(subcommand)]
    Generate(Generated),
}

/// Databases that can be fitted.
#[derive(Debug, Subcommand)]
pub enum FitDatabase {
    /// SQLite, through the flashwise VFS
    Sqlite(Box<FitSqlite>),
}

/// Databases that can be tuned.
#[derive(Debug, Subcommand)]
pub enum TuneDatabase {
    /// SQLite: page size, journal mode, page cache, checkpoints, and the techniques of the flashwise VFS
    Sqlite(Box<TuneSqlite>),
    /// PostgreSQL: costs, concurrency, write-back, write-ahead log and fill factors, as ALTER SYSTEM and ALTER TABLE
    Postgres(Box<TunePostgres>),
    /// MariaDB: write-back, log and threads of InnoDB, as SET GLOBAL and an option file
    Mariadb(Box<TuneMariadb>),
}

/// Options of `tune sqlite`.
#[derive(Debug, Args)]
pub struct TuneSqlite {
    /// Your database, a plain SQLite file; it is only read, but for --apply
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// The drive's profile, from `flashwise learn --profile`
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,
    /// Your SQL statements, run on copies of the database; made up where there are none
    #[arg(long, value_name = "FILE")]
    pub sql: Option<PathBuf>,
    /// Where it is measured: sim:PRESET, sim:FILE.toml, or a directory [default: the drive of the profile if that is
    /// simulated, or else the directory of DB]
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// The page cache that your program sets now
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_PAGE_CACHE)]
    pub page_cache: ByteSize,
    /// The most memory that the page cache may get
    #[arg(long, value_name = "SIZE", default_value = "64m")]
    pub page_cache_limit: ByteSize,
    /// Leave this as it is, such as page_size or use-hot-locations; may be given several times
    #[arg(long, value_name = "NAME")]
    pub skip: Vec<String>,
    /// Do what pays: in DB itself where SQLite can, in a new file beside it where its layout changes
    #[arg(long)]
    pub apply: bool,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// How much of the seed's workload is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    /// 200,000 rows; less than a minute on the simulated drive
    Quick,
    /// 10 million rows, 100 rounds of 50,000 inserts and 50,000 SELECTs; hours
    Full,
}

/// Options of `fit sqlite`.
#[derive(Debug, Args)]
pub struct FitSqlite {
    /// sim:PRESET, sim:FILE.toml, or a directory on a real drive
    #[arg(default_value = DEFAULT_TARGET, value_name = "TARGET")]
    pub target: String,
    /// The same as TARGET
    #[arg(long = "target", value_name = "TARGET", conflicts_with = "target")]
    pub target_option: Option<String>,
    /// Size of the built-in workload
    #[arg(long, value_enum, default_value_t = Scale::Quick, conflicts_with_all = ["db", "sql"])]
    pub scale: Scale,
    /// Rows to load before the rounds
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub rows: Option<u32>,
    /// Measured rounds
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub rounds: Option<u32>,
    /// Inserts a round
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub inserts: Option<u32>,
    /// SELECTs a round
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub selects: Option<u32>,
    /// Inserts a transaction
    #[arg(long, value_name = "N", conflicts_with = "db")]
    pub inserts_per_transaction: Option<u32>,
    /// SQLite's page cache, such as 2m
    #[arg(long, value_name = "SIZE")]
    pub page_cache: Option<ByteSize>,
    /// Your own database, instead of the built-in workload; a copy of it is used
    #[arg(long, value_name = "FILE", requires = "sql")]
    pub db: Option<PathBuf>,
    /// SQL statements to run on the copy of your database
    #[arg(long, value_name = "FILE", requires = "db")]
    pub sql: Option<PathBuf>,
    /// A profile that was learned before; the drive is not learned again
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where report.html and report.json go
    #[arg(long, value_name = "DIR", default_value = "flashwise-report")]
    pub report: PathBuf,
    /// Leave the database of the last run here, as plain SQLite; must be new
    #[arg(long, value_name = "FILE")]
    pub save_database: Option<PathBuf>,
    /// Leave the trace that was audited here, as CSV for `flashwise audit`; must be new
    #[arg(long, value_name = "FILE")]
    pub save_trace: Option<PathBuf>,
}

/// Options of `study`.
#[derive(Debug, Args)]
pub struct StudyArguments {
    /// The study
    #[arg(value_name = "NAME", conflicts_with_all = ["all", "list"])]
    pub name: Option<String>,
    /// Every study
    #[arg(long, conflicts_with = "list")]
    pub all: bool,
    /// Names and titles of the studies
    #[arg(long)]
    pub list: bool,
    /// Fewer points and repetitions: less than a minute, but for fillfactor and mariadb, which take some
    #[arg(long)]
    pub quick: bool,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write a page with plots here
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// SQLite's own page cache (`SQLITE_DEFAULT_CACHE_SIZE`, -2000).
const DEFAULT_PAGE_CACHE: &str = "2000k";
/// Heading of the options that only block devices have.
const RAW_DEVICES: &str = "Writing to a block device";

/// Consent to writing to a block device.
#[derive(Debug, Args)]
pub struct RawDevice {
    /// Overwrite the start of the block device TARGET; needs --confirm-device
    #[arg(long, help_heading = RAW_DEVICES)]
    pub destructive: bool,
    /// Serial number of the device that is overwritten, or its name in /dev/disk/by-id
    #[arg(long, value_name = "SERIAL-OR-BY-ID", requires = "destructive", help_heading = RAW_DEVICES)]
    pub confirm_device: Option<String>,
    /// Overwrite the device although it carries this, such as ext4; may be given several times
    #[arg(long, value_name = "KIND", requires = "destructive", help_heading = RAW_DEVICES)]
    pub allow_signature: Vec<SignatureKind>,
}

impl RawDevice {
    /// What was said, with the bytes that may be written.
    pub fn options(&self, max_write: Option<ByteSize>) -> RawOptions {
        RawOptions {
            destructive: self.destructive,
            confirmation: self.confirm_device.clone(),
            allowed_signatures: self.allow_signature.clone(),
            max_write,
        }
    }
}

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

/// Options of `audit`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").args(["trace", "db", "command"])))]
pub struct AuditArguments {
    /// A trace in any format that `flashwise trace` reads; - for standard input
    pub trace: Option<PathBuf>,
    /// Run this command and audit what it asks for: through strace without root, or with --block through the kernel
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Run --sql on a copy of this SQLite database through the VFS, and audit what it asks of --target
    #[arg(long, value_name = "FILE", requires = "sql")]
    pub db: Option<PathBuf>,
    /// SQL statements to run on the copy
    #[arg(long, value_name = "FILE", requires = "db")]
    pub sql: Option<PathBuf>,
    /// SQLite's page cache for --sql
    #[arg(long, value_name = "SIZE", default_value = "2M", value_parser = positive_size, requires = "db")]
    pub page_cache: ByteSize,
    /// With --db, where the copy lies: sim:PRESET, sim:FILE.toml, or a directory on a real drive; by default
    /// sim:samsung-960-evo. Without, a block device or an image of one, whose partitions are looked at; it is only read
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// With a command: trace what this drive, or the drive that this file is on, gets from anybody; needs root
    #[arg(long, value_name = "DEVICE|FILE", requires = "command", conflicts_with_all = ["trace", "db"])]
    pub block: Option<PathBuf>,
    /// Leave what was captured here; must be new
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    pub save_trace: Option<PathBuf>,
    /// How it is to be read
    #[command(flatten)]
    pub reading: TraceReading,
    /// The drive's profile, from `flashwise learn --profile`
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,
    /// Requests from the start of the trace that are simulated to tell costs, and that the page shows; 0 for none
    #[arg(long, value_name = "N", default_value_t = AuditOptions::WINDOW, value_parser = parse_window)]
    pub window: usize,
    /// End with 3 only if this rule (by name or number, or any) costs at least so much: a time such as 5ms, flash bytes
    /// such as 10MiB, or a share of the drive time such as 5%; may be given several times
    #[arg(long, value_name = "RULE,COST")]
    pub fail_on: Vec<FailOn>,
    /// Write a page with a picture of the requests here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Most requests of a window: each is kept in memory several times over.
const WINDOW_MAX: usize = 10_000_000;

fn parse_window(text: &str) -> Result<usize, String> {
    let count = text.parse::<usize>().map_err(|_| format!("'{text}' is no number of requests"))?;
    if count > WINDOW_MAX { Err(format!("at most {WINDOW_MAX} requests are simulated")) } else { Ok(count) }
}

/// What makes an audit fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailOn {
    /// Which rule; `None` for any.
    pub rule: Option<Rule>,
    /// From which cost on.
    pub cost: LeastCost,
}

/// A cost from which on an audit fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LeastCost {
    /// Drive time.
    Time(Nanos),
    /// Flash bytes.
    Bytes(ByteSize),
    /// Percent of the window's drive time.
    Percent(f64),
}

impl std::str::FromStr for FailOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rule, cost) = text.split_once(',').ok_or("it must be RULE,COST, such as sync-less-often,5ms or any,5%")?;
        let known = || {
            let names: Vec<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
            format!("'{rule}' is no rule; there are any, {}", names.join(", "))
        };
        let rule = match rule.trim() {
            "any" => None,
            name => Some(Rule::of_name(name).ok_or_else(known)?),
        };
        Ok(Self { rule, cost: cost.trim().parse()? })
    }
}

impl std::str::FromStr for LeastCost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(percent) = text.strip_suffix('%') {
            let percent = percent.trim().parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
            return percent.map(Self::Percent).ok_or_else(|| format!("'{text}' is no share from 0% to 100%"));
        }
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        match unit {
            "ns" | "us" | "µs" | "ms" | "s" | "m" | "h" => text.parse().map(Self::Time).map_err(|e| format!("{e}")),
            _ if text == "0" => Ok(Self::Time(Nanos(0))),
            _ => text.parse().map(Self::Bytes).map_err(|_| {
                format!("'{text}' is no cost: give a time such as 5ms, bytes such as 10MiB, or a share such as 5%")
            }),
        }
    }
}

/// How a trace is to be read.
#[derive(Clone, Copy, Debug, Args)]
pub struct TraceReading {
    /// How the trace is written; auto goes by its first bytes, and says what it decided and why
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = trace_format_parser())]
    pub trace_format: TraceFormat,
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

/// Takes the name of any format that is read, or auto.
fn trace_format_parser() -> impl clap::builder::TypedValueParser<Value = TraceFormat> {
    use clap::builder::TypedValueParser;
    let names = std::iter::once(TraceFormat::Auto).chain(TraceFormat::all());
    let values = names.map(|format| PossibleValue::new(format.name()).help(format.title()));
    PossibleValuesParser::new(values).map(|name| TraceFormat::of_name(&name).unwrap_or_default())
}

/// Takes the name of a format that is written.
fn written_format_parser() -> impl clap::builder::TypedValueParser<Value = TraceFormat> {
    use clap::builder::TypedValueParser;
    let values = TraceWriter::FORMATS.map(|format| PossibleValue::new(format.name()).help(format.title()));
    PossibleValuesParser::new(values).map(|name| TraceFormat::of_name(&name).unwrap_or_default())
}

pub(crate) fn positive_size(text: &str) -> Result<ByteSize, String> {
    match text.parse::<ByteSize>() {
        Ok(ByteSize(0)) => Err("it must be at least one byte".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
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
        /// The trace to create; must be new. - is standard output. A name that ends in .gz, .zst or .xz is packed
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
        /// The trace to create; must be new. - is standard output. A name that ends in .gz, .zst or .xz is packed
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
    /// A workload (.toml), one by name (ycsb-a, ssdiq-uniform, …), or a trace in any format that `flashwise trace` reads
    #[arg(required_unless_present_any = ["workload_schema", "rw"])]
    pub workload: Option<PathBuf>,
    /// How the trace is written; by default its first bytes tell
    #[arg(long = "trace-format", alias = "format", value_name = "FORMAT", value_parser = trace_format_parser())]
    #[arg(requires = "workload")]
    pub format: Option<TraceFormat>,
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
    #[arg(long, value_enum, conflicts_with = "workload", help_heading = "A workload like fio's")]
    pub rw: Option<Rw>,
    /// As fio's option: size of a request
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "4k",
        requires = "rw",
        conflicts_with = "workload",
        help_heading = "A workload like fio's"
    )]
    pub bs: ByteSize,
    /// As fio's option: requests in flight
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "rw",
        conflicts_with = "workload",
        help_heading = "A workload like fio's"
    )]
    pub iodepth: u32,
    /// As fio's option: bytes of the drive that are touched, from its start; without --runtime also how many are moved
    #[arg(
        long,
        value_name = "SIZE",
        requires = "rw",
        conflicts_with = "workload",
        help_heading = "A workload like fio's"
    )]
    pub size: Option<ByteSize>,
    /// As fio's option: how long, on the drive's clock; the same as --duration
    #[arg(
        long,
        value_name = "TIME",
        requires = "rw",
        conflicts_with_all = ["workload", "duration"],
        help_heading = "A workload like fio's"
    )]
    pub runtime: Option<Nanos>,
    /// As fio's option: percent of reads with --rw rw and randrw
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(0..=100))]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = "A workload like fio's")]
    pub rwmixread: u8,
    /// As fio's option: where random requests go: random, zipf:THETA, pareto:H, zoned:ACCESSES/SIZE:…
    #[arg(long, alias = "random_distribution", value_name = "NAME", value_parser = Access::of_fio)]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = "A workload like fio's")]
    pub random_distribution: Option<Access>,
    /// As fio's option: sizes with percentages in place of --bs, such as 4k/60:64k/40
    #[arg(long, value_name = "SIZE/PERCENT:…", value_parser = Size::of_fio)]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = "A workload like fio's")]
    pub bssplit: Option<Size>,
    /// As fio's option: pause between a completion and the next request
    #[arg(long, value_name = "TIME", requires = "rw", conflicts_with_all = ["workload", "rate_iops"])]
    #[arg(help_heading = "A workload like fio's")]
    pub thinktime: Option<Nanos>,
    /// As fio's option: requests a second, whether or not the drive keeps up; --iodepth then has no meaning
    #[arg(long, alias = "rate_iops", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(requires = "rw", conflicts_with = "workload", help_heading = "A workload like fio's")]
    pub rate_iops: Option<u32>,
    /// As fio's option: how the times between those requests are distributed
    #[arg(long, alias = "rate_process", value_enum, default_value_t = RateProcess::Linear)]
    #[arg(requires = "rate_iops", help_heading = "A workload like fio's")]
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
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Seed of every random choice; by default the workload's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Length of an interval of the time series, such as 10ms; by default 200 to 400 intervals
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Nanos>,
    /// Write a page with plots: a directory for report.html and report.json, or a file NAME.html
    #[arg(long, value_name = "DIR|HTML")]
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

/// What can be done with a database file.
#[derive(Debug, Subcommand)]
pub enum SqliteAction {
    /// Tell how a database file is laid out
    Info {
        /// The database file
        file: PathBuf,
    },
    /// Write the plain SQLite file back
    Export {
        /// The database file
        file: PathBuf,
        /// The plain SQLite file to create; must be new
        plain: PathBuf,
    },
    /// Lay a plain SQLite file out for a drive
    Import {
        /// The plain SQLite file
        plain: PathBuf,
        /// The database file to create; must be new
        file: PathBuf,
        /// The drive's profile, from `flashwise learn --profile`
        #[arg(long, value_name = "FILE", required_unless_present = "techniques")]
        profile: Option<PathBuf>,
        /// Techniques beyond the profile's choice, as in a URI: write-aligned-stripes=64k&use-hot-locations=off
        #[arg(long, value_name = "NAME=VALUE&...")]
        techniques: Option<String>,
    },
}

/// What can be done with simulated drives.
#[derive(Debug, Subcommand)]
pub enum DeviceAction {
    /// List the presets
    List,
    /// Print a preset's configuration, with the source of each figure
    Show {
        /// Name of the preset
        preset: String,
    },
    /// Check the configuration of a drive or of an array
    Check {
        /// The TOML file
        file: PathBuf,
    },
    /// Print the JSON Schema of a configuration
    Schema,
    /// Print a random, plausible drive of 1 to 8 GiB; the same for the same seed
    Random {
        /// Which one
        #[arg(long, value_name = "N")]
        seed: u64,
    },
    /// Print what is true of a drive, figure by figure: what `learn` should find; takes seconds
    Truth {
        /// A preset, sim:PRESET, or a TOML file
        device: String,
    },
    /// Tell what an attached drive is doing: traffic, write amplification, how busy its parts are, latencies
    Stat(StatArguments),
    /// Turn the configuration of another simulator into a drive and a workload
    Import {
        /// MQSim's ssdconfig.xml and, where there is one, its workload.xml
        #[arg(long, value_name = "XML", num_args = 1..=2, required_unless_present = "disksim", conflicts_with = "disksim")]
        mqsim: Vec<PathBuf>,
        /// DiskSim's parameter file with an SSD
        #[arg(long, value_name = "PARV")]
        disksim: Option<PathBuf>,
        /// The directory that device.toml and workload.toml go to; made where there is none
        #[arg(long = "output", value_name = "DIR", alias = "dir")]
        dir: PathBuf,
        /// Form of the result on stdout
        // The global option, by its identity; only here, where --output is what is written, it has another long name.
        #[arg(short, long = "output-format", value_enum, default_value_t = Format::Text, display_order = 100)]
        output: Format,
    },
}

/// What can be generated.
#[derive(Debug, Subcommand)]
pub enum Generated {
    /// Completions for a shell, to stdout
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// A man page for each verb
    Man {
        /// The directory to put them in
        directory: PathBuf,
    },
}

/// What `trace tpcc` takes.
#[derive(Debug, Args)]
pub struct TpccArguments {
    /// The trace to create; must be new. A name that ends in .gz, .zst or .xz is packed
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
