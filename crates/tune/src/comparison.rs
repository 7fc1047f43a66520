//! SQLite with its defaults, with what everybody recommends, and with what was found, on the same work.

use flashwise_audit::{Finding, UncheckedRule};
use flashwise_block::Percentiles;
use flashwise_profile::DeviceProfile;
use serde::{Deserialize, Serialize};

use crate::search::{HARDLY_ANY_LEFT, is_usable};
use crate::sqlite::Objective;
use crate::{AppliedTuning, Declined, Proposal};

/// `schema` of a comparison document.
pub const COMPARISON_SCHEMA: &str = "flashwise.comparison";
/// `schema_version` of a comparison document.
pub const COMPARISON_SCHEMA_VERSION: u32 = 1;

/// Everything that one `fit` found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Always [`COMPARISON_SCHEMA`].
    pub schema: String,
    /// Always [`COMPARISON_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of flashwise.
    pub flashwise_version: String,
    /// The target as the user named it.
    pub target: String,
    /// The database program with its version, such as `SQLite 3.51.0`.
    pub database: String,
    /// The user's database; `None` for the built-in workload.
    pub file: Option<String>,
    /// The workload.
    pub workload: WorkloadDescription,
    /// The profile of the drive.
    pub profile: DeviceProfile,
    /// The audit of the workload with the settings `default`.
    pub findings: Vec<Finding>,
    /// The rules that this audit did not check.
    #[serde(default)]
    pub unjudged: Vec<UncheckedRule>,
    /// The audit of the run `best`.
    pub findings_after: Vec<Finding>,
    /// `proposals` without what they cost and bring, for programs that read earlier documents.
    pub applied: Vec<Applied>,
    /// SQLite with its defaults; a user's database with its own settings.
    pub default: RunMeasurement,
    /// What everybody's checklist says: a write-ahead log and a cache of 64 MiB, the guarantees kept.
    pub checklist: RunMeasurement,
    /// What is recommended; the same as `default` if nothing is.
    pub best: RunMeasurement,
    /// Same as `default`, for programs that read earlier documents.
    pub default_page_size: RunMeasurement,
    /// Same as `default`, for programs that read earlier documents.
    pub before: RunMeasurement,
    /// Same as `best`, for programs that read earlier documents.
    pub after: RunMeasurement,
    /// The objectives, the deciding one first.
    pub objectives: Vec<Objective>,
    /// Confirmed ratios between `default`, `checklist` and `best`, by objective, with intervals at `search.confidence`.
    /// Where the configuration that was confirmed is not recommended, it is the `candidate`.
    pub gains: Vec<Gain>,
    /// The confirmed gain of `best` over `default`, in the first objective that it gains in; `None` where nothing is
    /// recommended.
    pub gain: Option<Gain>,
    /// What was seen of the gains on the attached drive; `None` if that was not requested, or nothing is recommended.
    pub seen: Option<Seen>,
    /// The largest gain over `default` that the confirmation does not exclude, as a ratio; `None` where no other
    /// configuration could be tried.
    pub resolution: Option<f64>,
    /// The recommendation in a sentence, for programs that read earlier documents; `gain` and `proposals` say the same.
    pub recommendation: Recommendation,
    /// The changes, each with its gain, its cost and its undo.
    pub proposals: Vec<Proposal>,
    /// Changes that were measured with the best configuration and do not bring their price.
    pub declined: Vec<Declined>,
    /// Every configuration that was tried, the best first.
    pub candidates: Vec<Candidate>,
    /// Whether a commit survives a crash.
    pub guarantees: Guarantees,
    /// How the search went.
    pub search: SearchSummary,
    /// How the database is to be opened where a proposal needs the VFS.
    pub uri: Option<String>,
    /// Statements for each connection.
    pub at_open: Vec<String>,
    /// Changes made to files; `None` if that was not requested.
    pub changed: Option<AppliedTuning>,
    /// Notes for interpreting the numbers, a sentence or two each.
    pub notes: Vec<String>,
}

/// The recommendation measured again on the simulated drive, attached to this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The file system that was mounted.
    pub file_system: String,
    /// How many times as slow the drive was. Times are those of a machine whose drive is as fast as the original.
    pub slower: u32,
    /// Runs of each configuration.
    pub runs: usize,
    /// The ratios between `default`, `checklist` and `best`, with intervals at 99 %.
    pub gains: Vec<Gain>,
    /// Whether this machine was too busy to answer in time.
    pub was_late: bool,
}

impl Seen {
    /// Whether the best configuration gains there too.
    pub fn confirms(&self) -> bool {
        self.gains.iter().any(|gain| gain.from == "default" && gain.to == "best" && gain.low > 1.0)
    }
}

/// What a change costs its user, the cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// A statement in each connection.
    Connection,
    /// A setting that is kept in the file.
    File,
    /// The library with flashwise's VFS, loaded by each program.
    Vfs,
    /// A file that plain SQLite cannot open.
    Conversion,
    /// The last commits before a power cut may be lost.
    Guarantee,
}

/// A configuration that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// What it changes, in a few words.
    pub label: String,
    /// `screened` in a run or a few, `raced` in full runs, or `confirmed` in fresh ones.
    pub stage: String,
    /// The costliest of its changes; `None` if it changes nothing.
    pub kind: Option<ChangeKind>,
    /// SQLite's page size.
    pub page_bytes: u64,
    /// SQLite's page cache.
    pub page_cache_bytes: u64,
    /// `delete` or `wal`.
    pub journal_mode: String,
    /// Pages of a log at which it is written back.
    pub wal_autocheckpoint: u32,
    /// The techniques of the VFS.
    pub techniques: Vec<String>,
    /// How much better than `default` it was in each objective; for orientation, except where it was confirmed.
    pub ratios: Vec<f64>,
    /// The interval of the first ratio; `None` for a single run.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Whether no other one is better in both objectives.
    pub is_on_front: bool,
}

/// What becomes of a commit at a crash and at a power cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guarantees {
    /// With `best`, in a sentence; never less than with `default`.
    pub statement: String,
    /// With `default`; empty in earlier documents.
    #[serde(default)]
    pub of_default: String,
    /// `full`, for all of them.
    pub synchronous: String,
    /// What weaker guarantees would bring; never part of a recommendation.
    pub weaker: Vec<WeakerGuarantee>,
}

/// A change of a guarantee, measured for information.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeakerGuarantee {
    /// The setting, such as `synchronous=normal`.
    pub name: String,
    /// The configuration that it was added to, in a few words.
    pub with: String,
    /// How much better the first objective was, over `with`.
    pub ratio: f64,
    /// The lower end of its interval at 80 %; `None` if it is not known.
    #[serde(default)]
    pub low: Option<f64>,
    /// The upper end.
    #[serde(default)]
    pub high: Option<f64>,
    /// What may be lost.
    pub loses: String,
}

/// How a search went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchSummary {
    /// The time that it may take, ns: of the clock where the user named it and in a directory, otherwise on an idle
    /// machine.
    pub time_budget_ns: u64,
    /// The time that it took, learning included.
    pub time_ns: u64,
    /// Configurations that were screened: in short runs, or in full ones where a real drive has the time.
    pub screened: usize,
    /// Where that was.
    pub screened_on: String,
    /// Configurations in full runs.
    pub raced: usize,
    /// Runs of each configuration that was confirmed.
    pub confirmation_runs: usize,
    /// Confidence of the confirmed intervals: 0.99, or 0.995 with two objectives.
    pub confidence: f64,
    /// Statements of a full run.
    pub statements: u64,
    /// Whether the workload has more of them than the budget allows for a run.
    pub workload_is_cut: bool,
    /// Whether the budget ended the search before all was tried.
    pub is_cut_short: bool,
    /// The least ratio that a conversion has to bring.
    pub conversion_threshold: f64,
    /// The file system and the page cache in front of a simulated drive, such as `ext4 under a page cache of 4 GiB`;
    /// `None` for a bare drive and for a real one.
    #[serde(default)]
    pub machine: Option<String>,
    /// What the times are of, in sentences.
    pub times: String,
}

/// Which of the measured runs to take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recommendation {
    /// `after` or `default_page_size`.
    pub run: String,
    /// Why, in a sentence with the figures.
    pub reason: String,
}

/// The work that every run did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadDescription {
    /// In a sentence.
    pub summary: String,
    /// Rows loaded before the rounds; 0 for a user's own database.
    pub rows: u64,
    /// Measured rounds.
    pub rounds: u64,
    /// Inserts a round.
    pub inserts_per_round: u64,
    /// Point SELECTs a round.
    pub selects_per_round: u64,
    /// Inserts a transaction.
    pub inserts_per_transaction: u64,
    /// SQLite's page cache, bytes.
    pub page_cache_bytes: u64,
    /// Seed of all random choices.
    pub seed: u64,
}

/// One technique or setting that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Name of the technique or setting, such as `use-hot-locations` or `page_size`.
    pub name: String,
    /// Value before.
    pub old_value: String,
    /// Value after.
    pub new_value: String,
    /// Why, with the drive's figure that it follows from.
    pub reason: String,
    /// How to undo it.
    pub undo: String,
}

/// Operations a second over the rounds, with the 95 % interval of the median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Median over the rounds.
    pub per_s: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

/// The measurements of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMeasurement {
    /// Name for tables, such as `4 KiB pages, plain`.
    pub label: String,
    /// SQLite's page size.
    pub page_bytes: u64,
    /// Names of the techniques in force.
    pub techniques: Vec<String>,
    /// SELECTs a second of drive time (read-only statements for a user's own SQL).
    pub select_per_s: f64,
    /// The same with its interval.
    pub select_rate: Rate,
    /// INSERTs a second of drive time, commits included (writing statements for a user's own SQL).
    pub insert_per_s: f64,
    /// The same with its interval.
    pub insert_rate: Rate,
    /// Latency of one SELECT on the drive's clock.
    pub select_latency: Percentiles,
    /// Latency of one inserting transaction, its commit included, on the drive's clock.
    pub transaction_latency: Percentiles,
    /// Bytes that the host wrote in the measured rounds.
    pub host_bytes_written: u64,
    /// Flash bytes programmed for them; `None` if the drive does not report it.
    pub flash_bytes_programmed: Option<u64>,
    /// Flash bytes programmed ÷ host bytes written.
    pub write_amplification: Option<f64>,
    /// Time on the drive's clock, ns.
    pub drive_time_ns: u64,
    /// SQLite's own CPU time over the same rounds, ns; not part of the rates on a simulated drive.
    pub cpu_time_ns: u64,
    /// Size of the database at the end.
    pub database_bytes: u64,
    /// Result of `PRAGMA integrity_check` at the end.
    pub integrity_check: String,
}

/// A ratio between two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The compared quantity, such as `select_per_s`.
    pub metric: String,
    /// The run compared against, such as `default`.
    pub from: String,
    /// The other one, such as `best`.
    pub to: String,
    /// The ratio; 1.29 is 29 % better.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

impl Gain {
    /// Whether its interval is narrow enough to plan with; a gain that is not is never recommended.
    pub fn is_usable(&self) -> bool {
        is_usable(self.low, self.high)
    }

    /// Whether less than 0.1 % of the cost is left.
    pub fn leaves_hardly_any(&self) -> bool {
        self.low >= HARDLY_ANY_LEFT
    }
}
