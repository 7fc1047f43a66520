//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use flashwise_block::{ByteSize, Nanos, SignatureKind};
use flashwise_tune::DEFAULT_TARGET;

use crate::output::Format;

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
    /// Learn what a drive hides: write unit, stripe, chunk, page, hot locations, asymmetry, concurrency
    Learn(LearnArguments),
    /// Hold a trace of requests against what was learned about a drive
    Audit(AuditArguments),
    /// Run a workload or a trace on a simulated drive
    Simulate(Box<SimulateArguments>),
    /// Run many simulations: every combination of a few values, on all cores
    Sweep(SweepArguments),
    /// A published study: what it claims beside what is measured
    Study(StudyArguments),
    /// Database files that the flashwise VFS laid out
    #[command(subcommand)]
    Sqlite(SqliteAction),
    /// Simulated drives: presets and configurations
    #[command(subcommand)]
    Device(DeviceAction),
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
    /// Fewer points and repetitions: less than a minute
    #[arg(long)]
    pub quick: bool,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write a page with plots here
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// Heading of the options that only block devices have.
const RAW_DEVICES: &str = "Writing to a block device";

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
    /// Show what would be written and what speaks against it, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Overwrite the start of the block device TARGET; needs --confirm-device
    #[arg(long, help_heading = RAW_DEVICES)]
    pub destructive: bool,
    /// Serial number of the device that is overwritten, or its name in /dev/disk/by-id
    #[arg(long, value_name = "SERIAL-OR-BY-ID", requires = "destructive", help_heading = RAW_DEVICES)]
    pub confirm_device: Option<String>,
    /// Overwrite the device although it carries this, such as ext4; may be given several times
    #[arg(long, value_name = "KIND", requires = "destructive", help_heading = RAW_DEVICES)]
    pub allow_signature: Vec<SignatureKind>,
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
pub struct AuditArguments {
    /// A trace in flashwise's CSV form
    pub trace: PathBuf,
    /// The drive's profile, from `flashwise learn --profile`
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,
}

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceForm {
    /// MQSim ASCII: time in ns, device, sector, sectors, 1 for a read
    Mqsim,
    /// DiskSim ASCII: time in ms, device, sector, sectors, flags
    Disksim,
    /// flashwise's own CSV
    Csv,
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
    /// A preset, sim:PRESET, or a TOML file
    #[arg(required_unless_present = "workload_schema")]
    pub device: Option<String>,
    /// A workload (.toml) or a trace (MQSim .trace, DiskSim, flashwise .csv; gzip or not)
    #[arg(required_unless_present_any = ["workload_schema", "rw"])]
    pub workload: Option<PathBuf>,
    /// How the trace is written; by default its name tells (.trace, .csv)
    #[arg(long, value_enum, requires = "workload")]
    pub format: Option<TraceForm>,
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
    /// What is on the drive before
    #[arg(long, value_enum, default_value_t = PreconditionName::Empty)]
    pub precondition: PreconditionName,
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
    /// The grid: a drive, a workload, and the values to try
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
        #[arg(long, value_name = "FILE")]
        profile: PathBuf,
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
    /// Check a configuration
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
