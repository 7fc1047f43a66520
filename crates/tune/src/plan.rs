//! What using a target would write, reported before anything is written.

use std::fmt;
use std::path::{Path, PathBuf};

use flashwise_block::{ByteSize, RawPlan};
use serde::Serialize;

/// Name of the document.
pub const PLAN_SCHEMA: &str = "flashwise.plan";
/// Its version.
pub const PLAN_SCHEMA_VERSION: u32 = 1;

/// The plan, as a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TargetPlan {
    schema: &'static str,
    schema_version: u32,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Kind {
    Simulated { target: String },
    Scratch { target: PathBuf, scratch_bytes: ByteSize },
    Raw(Box<RawPlan>),
}

impl TargetPlan {
    fn new(kind: Kind) -> Self {
        Self { schema: PLAN_SCHEMA, schema_version: PLAN_SCHEMA_VERSION, kind }
    }

    pub(crate) fn simulated(target: &str) -> Self {
        Self::new(Kind::Simulated { target: target.to_owned() })
    }

    pub(crate) fn scratch(target: &Path, scratch_bytes: ByteSize) -> Self {
        Self::new(Kind::Scratch { target: target.to_owned(), scratch_bytes })
    }

    pub(crate) fn raw(plan: RawPlan) -> Self {
        Self::new(Kind::Raw(Box::new(plan)))
    }

    /// Why nothing must be written, in one line; `None` if there is no objection.
    pub fn refusal(&self) -> Option<String> {
        match &self.kind {
            Kind::Raw(plan) => plan.refusal(),
            _ => None,
        }
    }

    /// What is about to be overwritten on a raw device, in one line; `None` if nothing existing is.
    pub fn warning(&self) -> Option<String> {
        let Kind::Raw(plan) = &self.kind else { return None };
        plan.destructive.then(|| {
            format!(
                "{}: overwriting its first {} ({:.2} % of it), writing at most {} in all",
                plan.path.display(),
                plan.region,
                plan.share() * 100.0,
                plan.max_write
            )
        })
    }
}

impl fmt::Display for TargetPlan {
    /// Lines for a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Simulated { target } => {
                writeln!(f, "target       {target}\nwrites       nothing; the drive is simulated")
            }
            Kind::Scratch { target, scratch_bytes } => writeln!(
                f,
                "target       {}\nwrites       to a new scratch file of {scratch_bytes}, which is deleted at the end",
                target.display()
            ),
            Kind::Raw(plan) => write!(f, "{plan}"),
        }
    }
}
