//! Options of `audit`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use flashwise_audit::{AuditOptions, Rule};
use flashwise_block::{ByteSize, Nanos};

use super::{TraceReading, positive_size};

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
