//! Options of `audit`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use flashwise_audit::provision::{PRODUCTS, Product};
use flashwise_audit::{AuditOptions, Rule};
use flashwise_block::names::choices;
use flashwise_block::{ByteSize, Nanos};

use super::{TraceReading, cache_size};

/// Options of `audit`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flashwise audit app.csv --profile ssd.toml --html audit.html
  flashwise audit --profile ssd.toml -- sqlite3 app.db .dump
  flashwise audit --profile ssd.toml --block /dev/nvme0n1 -- pgbench -T 60
  flashwise audit --db app.db --sql queries.sql --profile ssd.toml
  flashwise audit app.csv --profile ssd.toml --fail-on any,5%    # in CI
  flashwise audit app.csv --provision gp3 --within 2ms           # what to buy

Exit code: 3 if a rule is violated, otherwise 0. With --fail-on: 3 if a
violation costs at least that much, 4 if its cost is unknown, otherwise 0.")]
#[command(group(clap::ArgGroup::new("what").args(["trace", "db", "command"])))]
pub struct AuditArguments {
    /// A trace, in any format listed by `flashwise trace --help`; - for standard input
    pub trace: Option<PathBuf>,
    /// Run this command and audit its I/O: its system calls, or with --block the block requests
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Run --sql on a copy of this SQLite database and audit its requests to --target
    #[arg(long, value_name = "FILE", requires = "sql")]
    pub db: Option<PathBuf>,
    /// SQL statements to run on the copy
    #[arg(long, value_name = "FILE", requires = "db")]
    pub sql: Option<PathBuf>,
    /// Values for the parameters of --sql, as CSV or JSON: the file runs once for each row
    #[arg(long, value_name = "FILE", requires = "sql")]
    pub parameters: Option<PathBuf>,
    /// Size of SQLite's page cache for --sql
    #[arg(long, value_name = "SIZE", default_value = "2M", value_parser = cache_size, requires = "db")]
    pub page_cache: ByteSize,
    /// With --db, the drive for the copy; without, a drive whose partitions are audited
    ///
    /// With --db: sim:PRESET, sim:FILE.toml, or a directory on a real drive [default: sim:samsung-960-evo]. Without:
    /// a block device or an image of one. The alignment of its partitions is checked; it is only read.
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// With a command: trace all block requests to this drive, or to the drive that this file is on;
    /// needs root
    #[arg(long, value_name = "DEVICE|FILE", requires = "command", conflicts_with_all = ["trace", "db"])]
    pub block: Option<PathBuf>,
    /// Save the captured trace here; must be new
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    pub save_trace: Option<PathBuf>,
    /// How the trace is read.
    #[command(flatten)]
    pub reading: TraceReading,
    /// Profile of the drive, from `flashwise learn --profile FILE`
    #[arg(long, value_name = "FILE", required_unless_present = "provision")]
    pub profile: Option<PathBuf>,
    /// Instead of an audit: the smallest IOPS and bandwidth of this cloud volume (gp3 or
    /// azure-premium-ssd-v2) that the trace needs
    ///
    /// The trace's requests are replayed at their times on the simulated volume. The answer is what to buy so that
    /// --percentile of the requests complete within --within, the wait for the volume's limits included.
    #[arg(long, value_name = "VOLUME", requires = "trace", conflicts_with_all = ["profile", "html", "fail_on", "target"],
        value_parser = parse_product)]
    pub provision: Option<Product>,
    /// With --provision, the latency to meet
    #[arg(long, value_name = "TIME", default_value = "2ms", requires = "provision")]
    pub within: Nanos,
    /// With --provision, the share of requests that meet it, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 99.0, requires = "provision", value_parser = parse_percentile)]
    pub percentile: f64,
    /// Requests from the start of the trace to simulate, for the costs and the plot; 0 for none
    #[arg(long, value_name = "N", default_value_t = AuditOptions::WINDOW, value_parser = parse_window)]
    pub window: usize,
    /// Exit with 3 only if violations of RULE cost at least COST; can be repeated
    ///
    /// RULE is a name, a number, or any. COST is a time such as 5ms, flash bytes such as 10MiB, or a share of the
    /// time such as 5%.
    #[arg(long, value_name = "RULE,COST")]
    pub fail_on: Vec<FailOn>,
    /// Write a page with a plot of the requests to this HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Limit of --window: each request is held in memory several times.
const WINDOW_MAX: usize = 10_000_000;

fn parse_product(text: &str) -> Result<Product, String> {
    let found = PRODUCTS.into_iter().find(|product| product.name == text);
    found.ok_or_else(|| format!("unknown volume '{text}': {}", choices(text, PRODUCTS.map(|product| product.name))))
}

fn parse_percentile(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').trim().parse::<f64>().ok();
    percent.filter(|percent| (0.0..100.0).contains(percent)).ok_or_else(|| format!("'{text}' is not below 100"))
}

fn parse_window(text: &str) -> Result<usize, String> {
    let count = text.parse::<usize>().map_err(|_| format!("'{text}' is not a number of requests"))?;
    if count > WINDOW_MAX { Err(format!("at most {WINDOW_MAX} requests can be simulated")) } else { Ok(count) }
}

/// Condition on which an audit fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailOn {
    /// Which rule; `None` for any.
    pub rule: Option<Rule>,
    /// The lowest cost that fails.
    pub cost: LeastCost,
}

/// The lowest cost with which an audit fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LeastCost {
    /// Drive time.
    Time(Nanos),
    /// Flash bytes.
    Bytes(ByteSize),
    /// Percent of the window's time.
    Percent(f64),
}

impl std::str::FromStr for FailOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rule, cost) = text.split_once(',').ok_or("give RULE,COST, such as sync-less-often,5ms or any,5%")?;
        let known = || {
            let names = std::iter::once("any").chain(Rule::ALL.iter().map(|rule| rule.name()));
            format!("unknown rule '{rule}': {}", choices(rule, names))
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
            return percent.map(Self::Percent).ok_or_else(|| format!("'{text}' is not a share from 0% to 100%"));
        }
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        match unit {
            "ns" | "us" | "µs" | "ms" | "s" | "m" | "h" => text.parse().map(Self::Time).map_err(|e| format!("{e}")),
            _ if text == "0" => Ok(Self::Time(Nanos(0))),
            _ => text.parse().map(Self::Bytes).map_err(|_| {
                format!("'{text}' is not a cost: give a time such as 5ms, bytes such as 10MiB, or a share such as 5%")
            }),
        }
    }
}
