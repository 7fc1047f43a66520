//! What is proposed for a server, what is left alone, and what was measured: the parts of documents that databases
//! share.

use serde::{Deserialize, Serialize};

use crate::{Gain, Rate};

/// `schema` of the document of `tune postgres`.
pub const POSTGRES_TUNING_SCHEMA: &str = "flashwise.tuning-postgres";
/// `schema_version` of that document.
pub const POSTGRES_TUNING_SCHEMA_VERSION: u32 = 1;
/// `schema` of the document of `tune mariadb`.
pub const MARIADB_TUNING_SCHEMA: &str = "flashwise.tuning-mariadb";
/// `schema_version` of that document.
pub const MARIADB_TUNING_SCHEMA_VERSION: u32 = 1;

/// What one `tune` of a server found out.
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
    /// The server that was asked, without its password; `None` where the old values are the documented defaults.
    pub server: Option<String>,
    /// The drive that the profile is of.
    pub drive: String,
    /// What follows from the drive's figures.
    pub proposals: Vec<SettingProposal>,
    /// What was examined and is left unmodified.
    pub left_alone: Vec<LeftAlone>,
    /// Statements, in order, that do all proposals; for MariaDB those that act at once, until the server ends.
    pub sql: Vec<String>,
    /// Statements, in order, that take them back.
    pub undo_sql: Vec<String>,
    /// Lines of an option file, which act from the next start on; `None` for PostgreSQL, which needs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option_file: Option<Vec<String>>,
    /// Old and new settings on a private server; `None` where that was not asked for, or nothing is proposed.
    pub measured: Option<MeasuredSettings>,
    /// What was done to the server; `None` where that was not asked for.
    pub applied: Option<AppliedSettings>,
    /// What a reader should know to read the numbers right, a sentence or two each.
    pub notes: Vec<String>,
}

/// What was done to a server.
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

/// A setting that the drive asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingProposal {
    /// The setting, or `fillfactor of TABLE`; `--skip` takes it, or `fillfactor` for all tables of PostgreSQL.
    pub name: String,
    /// What it is.
    pub old_value: String,
    /// What it is to be.
    pub new_value: String,
    /// Why.
    pub reason: String,
    /// The figures that the new value follows from.
    pub evidence: Vec<EvidenceFigure>,
    /// What may be expected, with its unit of comparison in `metric`; `None` where only a measurement can tell.
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
    /// What it is: a key of the profile, what a curve of the profile shows, or a counter of the server.
    pub figure: String,
    /// The value.
    pub value: f64,
    /// Lower end of its 95 % interval; the value itself where it was counted.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What it counts.
    pub unit: String,
}

/// A setting that is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftAlone {
    /// Its name.
    pub name: String,
    /// What it is.
    pub value: String,
    /// Whether it is right for the drive (`fits`), the figures do not tell (`cannot-tell`), it was to be left
    /// (`skipped`), or is set elsewhere (`overridden`).
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
    /// What was run, in a sentence.
    pub workload: String,
    /// Rounds of each, taken in turns.
    pub rounds: u32,
    /// What was set for the rounds with new settings.
    pub settings: Vec<String>,
    /// Transactions a second with the old settings.
    pub before: Rate,
    /// And with the new ones.
    pub after: Rate,
    /// Median ratio of rounds side by side.
    pub gain: Gain,
    /// `pays`, `costs`, or `no-gain-seen` where the interval allows both.
    pub verdict: String,
}
