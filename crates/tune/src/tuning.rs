//! What to change of a user's database, and what each change brought.

use serde::{Deserialize, Serialize};

use crate::{Gain, RunMeasurement};

/// `schema` of a tuning document.
pub const TUNING_SCHEMA: &str = "flashwise.tuning";
/// `schema_version` of a tuning document.
pub const TUNING_SCHEMA_VERSION: u32 = 1;

/// What one `tune` found out.
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
    /// What was run, in a sentence.
    pub workload: String,
    /// What pays, in the order in which it was measured; each one's gain is on top of those before it.
    pub proposals: Vec<Proposal>,
    /// What was measured as well and does not pay.
    pub declined: Vec<Declined>,
    /// The database as it is.
    pub before: RunMeasurement,
    /// With every proposal.
    pub after: RunMeasurement,
    /// Statements a second, from before to after; `None` where nothing is proposed.
    pub gain: Option<Gain>,
    /// How the database is to be opened where a proposal needs the VFS.
    pub uri: Option<String>,
    /// What each connection is to be told.
    pub at_open: Vec<String>,
    /// What was done to files; `None` where that was not asked for.
    pub applied: Option<AppliedTuning>,
    /// What a reader should know to read the numbers right, a sentence or two each.
    pub notes: Vec<String>,
}

/// A change that pays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// Its name, as `--skip` takes it.
    pub name: String,
    /// What it was.
    pub old_value: String,
    /// What it is to be.
    pub new_value: String,
    /// The figure of the drive or of the database that it follows from.
    pub reason: String,
    /// What it brought, measured with those before it.
    pub gain: Gain,
    /// How to do it by hand.
    pub apply: String,
    /// How to take it back.
    pub undo: String,
}

/// A change that does not pay, or cannot be told to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Declined {
    /// Its name.
    pub name: String,
    /// What it would have been.
    pub new_value: String,
    /// What it brought.
    pub gain: Gain,
}

/// What was done to files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedTuning {
    /// The file that has it now: the database itself, or a new one beside it where its layout changed.
    pub file: String,
    /// Whether the database itself was changed.
    pub in_place: bool,
    /// What was done, in order.
    pub steps: Vec<String>,
}
