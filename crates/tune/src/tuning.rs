//! Recommended changes of a user's database, and the gain of each.

use serde::{Deserialize, Serialize};

use crate::{Gain, RunMeasurement};

/// `schema` of a tuning document.
pub const TUNING_SCHEMA: &str = "flashwise.tuning";
/// `schema_version` of a tuning document.
pub const TUNING_SCHEMA_VERSION: u32 = 1;

/// The result of `tune` for a database file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// Always [`TUNING_SCHEMA`].
    pub schema: String,
    /// Always [`TUNING_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of flashwise.
    pub flashwise_version: String,
    /// The database that is tuned.
    pub database: String,
    /// The database program with its version, such as `SQLite 3.51.0`.
    pub program: String,
    /// The drive that the profile is of.
    pub drive: String,
    /// Where it was measured.
    pub target: String,
    /// The workload, in a sentence.
    pub workload: String,
    /// Changes with a gain, in the order of measurement; each gain is on top of the earlier ones.
    pub proposals: Vec<Proposal>,
    /// Changes that were measured and have no gain.
    pub declined: Vec<Declined>,
    /// The unmodified database.
    pub before: RunMeasurement,
    /// With every proposal.
    pub after: RunMeasurement,
    /// Statements a second, from before to after; `None` where nothing is proposed.
    pub gain: Option<Gain>,
    /// How the database is to be opened where a proposal needs the VFS.
    pub uri: Option<String>,
    /// Statements for each connection.
    pub at_open: Vec<String>,
    /// Changes made to files; `None` if that was not requested.
    pub applied: Option<AppliedTuning>,
    /// Notes for interpreting the numbers, a sentence or two each.
    pub notes: Vec<String>,
}

/// A change that pays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// Its name, as `--skip` takes it.
    pub name: String,
    /// The old value.
    pub old_value: String,
    /// The new value.
    pub new_value: String,
    /// The figure of the drive or of the database that it follows from.
    pub reason: String,
    /// Its gain, measured on top of the earlier ones.
    pub gain: Gain,
    /// How to do it by hand.
    pub apply: String,
    /// How to take it back.
    pub undo: String,
}

/// A change without a certain gain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Declined {
    /// Its name.
    pub name: String,
    /// The new value.
    pub new_value: String,
    /// The measured gain.
    pub gain: Gain,
}

/// Changes made to files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedTuning {
    /// The file that has it now: the database itself, or a new one beside it where its layout changed.
    pub file: String,
    /// Whether the database itself was changed.
    pub in_place: bool,
    /// The steps, in order.
    pub steps: Vec<String>,
}
