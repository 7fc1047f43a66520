//! Recommended changes of a database, and the gain of each.

use flashwise_audit::Rule;
use serde::{Deserialize, Serialize};

use crate::{ChangeKind, Gain};

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
    /// The violated rules of `findings` whose remedies name it, and which fewer requests break with the recommended
    /// settings, the costliest first.
    #[serde(default)]
    pub findings: Vec<Rule>,
    /// What it costs its user.
    pub kind: ChangeKind,
    /// Whether memory brings its gain, and not the drive.
    pub is_memory: bool,
    /// What is lost without it, the other changes kept; `None` where time did not suffice.
    pub gain: Option<Gain>,
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
    /// What it costs its user.
    pub kind: ChangeKind,
    /// The measured gain.
    pub gain: Gain,
    /// The least ratio that would have been worth its cost.
    pub price: f64,
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
