//! Proposals for a server, unchanged settings, and measurements: the parts of documents that databases share.

use serde::{Deserialize, Serialize};

use crate::{Gain, Rate, Written};

/// `schema` of the document of `fit postgres`.
pub const POSTGRES_TUNING_SCHEMA: &str = "flashwise.tuning-postgres";
/// `schema_version` of that document.
pub const POSTGRES_TUNING_SCHEMA_VERSION: u32 = 1;
/// `schema` of the document of `fit mariadb`.
pub const MARIADB_TUNING_SCHEMA: &str = "flashwise.tuning-mariadb";
/// `schema_version` of that document.
pub const MARIADB_TUNING_SCHEMA_VERSION: u32 = 1;

/// The result of `fit` for a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerTuning {
    /// [`POSTGRES_TUNING_SCHEMA`] or [`MARIADB_TUNING_SCHEMA`].
    pub schema: String,
    /// The version of that schema.
    pub schema_version: u32,
    /// Version of flashwise.
    pub flashwise_version: String,
    /// The server's version, such as `PostgreSQL 15.18`.
    pub program: String,
    /// The server, without its password; `None` if the old values are the documented defaults.
    pub server: Option<String>,
    /// The drive that the profile is of.
    pub drive: String,
    /// Changes that follow from the drive's parameters.
    pub proposals: Vec<SettingProposal>,
    /// Settings that were examined and are left unmodified.
    pub left_alone: Vec<LeftAlone>,
    /// Statements, in order, that do all proposals; for MariaDB those that act at once, until the server ends.
    pub sql: Vec<String>,
    /// Statements, in order, that take them back.
    pub undo_sql: Vec<String>,
    /// Lines of an option file, which act from the next start on; `None` for PostgreSQL, which needs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option_file: Option<Vec<String>>,
    /// What writing pages before their eviction can bring; `None` where the server does not count it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction: Option<EvictionBound>,
    /// Old and new settings on a private server; `None` if that was not requested, or nothing is proposed.
    pub measured: Option<MeasuredSettings>,
    /// Changes made to the server; `None` if that was not requested.
    pub applied: Option<AppliedSettings>,
    /// Notes for interpreting the numbers, a sentence or two each.
    pub notes: Vec<String>,
}

/// What writing pages before their eviction can bring at most, by the times that a server has counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvictionBound {
    /// Share of the time of statements that backends spent on writes of pages, 0 to 1.
    pub write_share: f64,
    /// Work with all of that saved ÷ work now: 1 ÷ (1 − share), and no more than the drive has left; `None` where the
    /// share is all of the time.
    pub ratio_at_most: Option<f64>,
    /// Share of what the drive serves that the server's pages take on average, 0 to 1; through the kernel's page cache
    /// the most that it can be. `None` where the counters or the profile do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive_busy: Option<f64>,
    /// Whether pages bypass the kernel's page cache, so that a write waits for the drive.
    pub is_direct: bool,
    /// Whether that is worth a change: more than a measurement would need to be seen.
    pub is_worth_it: bool,
}

/// Changes made to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedSettings {
    /// The statements, in order.
    pub statements: Vec<String>,
    /// The statements that take them back, in order.
    pub undo: Vec<String>,
    /// Settings that wait for a restart.
    pub needs_restart: Vec<String>,
    /// Settings that only a new instance can have; `None` for PostgreSQL, which has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs_instance: Option<Vec<String>>,
}

/// A proposed setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingProposal {
    /// The setting, or `fillfactor of TABLE`; `--skip` takes it, or `fillfactor` for all tables of PostgreSQL.
    pub name: String,
    /// The current value.
    pub old_value: String,
    /// The proposed value.
    pub new_value: String,
    /// The same in the setting's own unit, which is left out: parameter groups of managed services take it so.
    pub base_value: String,
    /// Why.
    pub reason: String,
    /// The figures that the new value follows from.
    pub evidence: Vec<EvidenceFigure>,
    /// The expected gain, with its unit of comparison in `metric`; `None` if only a measurement can show it.
    pub expected: Option<Gain>,
    /// The same in words.
    pub expected_gain: String,
    /// `reload`, `restart`, `new-pages`, `at-once` or `new-instance`.
    pub takes_effect: String,
    /// The statement that does it.
    pub apply: String,
    /// The statement that takes it back.
    pub undo: String,
}

/// A figure that a proposal follows from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceFigure {
    /// Its name: a key of the profile, a quantity of a curve in the profile, or a counter of the server.
    pub figure: String,
    /// The value.
    pub value: f64,
    /// Lower end of its 95 % interval; the value itself where it was counted.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Its unit.
    pub unit: String,
}

/// A setting that is left unmodified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftAlone {
    /// Its name.
    pub name: String,
    /// The current value.
    pub value: String,
    /// Whether it is right for the drive (`fits`), the profile allows no decision (`cannot-tell`), the user excluded it
    /// (`skipped`), it is set elsewhere (`overridden`), or another value was measured without a gain (`not-confirmed`).
    pub verdict: String,
    /// Why.
    pub reason: String,
}

/// Old and new settings on the same work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredSettings {
    /// The private server's version.
    pub program: String,
    /// Where its data was.
    pub directory: String,
    /// The attached drive that this was on; `None` where the directory was named, or is the one for temporary files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<AttachedPlace>,
    /// The workload, in a sentence.
    pub workload: String,
    /// Rounds with each, interleaved.
    pub rounds: u32,
    /// Settings of the rounds with new settings.
    pub settings: Vec<String>,
    /// Transactions a second with the old settings.
    pub before: Rate,
    /// And with the new ones.
    pub after: Rate,
    /// Median ratio of rounds side by side.
    pub gain: Gain,
    /// `pays`, `costs`, or `no-gain-seen` where the interval allows both.
    pub verdict: String,
    /// The log that the workload is from; `None` where it is from a script or made up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<ReplayedLog>,
}

/// A simulated drive that was attached for a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedPlace {
    /// The file system on it.
    pub file_system: String,
    /// Seconds of the machine for one of the drive's.
    pub slower: u32,
    /// Whether this machine was too busy to answer in time.
    pub was_late: bool,
    /// What a transaction with the old settings wrote, of all rounds, with the server's start and end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Written>,
    /// And with the new ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Written>,
}

/// A server's log that was replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayedLog {
    /// Transactions of the log that do more than set up a session.
    pub transactions: u64,
    /// Statements of all transactions.
    pub statements: u64,
    /// Sessions of the log.
    pub sessions: u64,
    /// Connections that replayed them.
    pub connections: u32,
    /// Transactions that were done in all rounds.
    pub played: u64,
    /// Those that another one was in the way of.
    pub conflicts: u64,
    /// Those of which the server refused a statement.
    pub refused: u64,
    /// The most frequent reasons of that.
    pub refusals: Vec<CountedReason>,
    /// What of the log was not replayed.
    pub left_out: Vec<CountedReason>,
    /// With the counts of `pg_stat_statements`: the share of the calls whose statements the log has samples of, 0 to 1.
    pub calls_covered: Option<f64>,
}

/// A reason, and how often it was one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedReason {
    /// The reason.
    pub reason: String,
    /// How often.
    pub count: u64,
    /// The first statement or line that it was the reason for, shortened; empty where there is nothing to show.
    pub example: String,
}
