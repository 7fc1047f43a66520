//! Before and after, on the same work.

use flashwise_audit::Finding;
use flashwise_block::Percentiles;
use flashwise_profile::DeviceProfile;
use serde::{Deserialize, Serialize};

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
    /// The workload.
    pub workload: WorkloadDescription,
    /// The profile of the drive.
    pub profile: DeviceProfile,
    /// The audit of the run `before`.
    pub findings: Vec<Finding>,
    /// The audit of the run `after`.
    pub findings_after: Vec<Finding>,
    /// The changes from `before` to `after`; empty if the drive offers no gain.
    pub applied: Vec<Applied>,
    /// SQLite with default settings: default page size, no technique.
    pub default_page_size: RunMeasurement,
    /// The page size of `after`, no technique: the difference to `after` is the techniques' own.
    pub before: RunMeasurement,
    /// With all that was applied.
    pub after: RunMeasurement,
    /// Ratios between the runs, with intervals.
    pub gains: Vec<Gain>,
    /// The recommendation for this database on this drive.
    pub recommendation: Recommendation,
    /// Notes for interpreting the numbers, a sentence or two each.
    pub notes: Vec<String>,
}

/// Which of the measured runs to take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recommendation {
    /// `default_page_size`, `after`, or `none` if the parameters of the drive are inconclusive.
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
    /// The run compared against: `default_page_size` or `before`.
    pub from: String,
    /// `after` (or `before`, when compared against `default_page_size`).
    pub to: String,
    /// Median ratio over paired rounds; 1.29 is 29 % more.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end of its 95 % interval.
    pub high: f64,
}
