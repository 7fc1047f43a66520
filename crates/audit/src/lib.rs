//! The rules for I/O to a solid-state drive, held against a trace.
//!
//! [`audit_trace`] takes a [`TraceReader`](flashwise_trace::TraceReader) and a [`DeviceProfile`]; [`audit`] an
//! [`IoTrace`] that is in memory. Both give an [`Audit`]: one [`Finding`] for each rule that profile and trace allow to
//! be judged, the others with the reason, and what the costs were simulated on.
//!
//! ```text
//!   trace ──────────┐                                                 ┌─▶ counts, examples, files, processes
//!                   ├──▶ auditor ──▶ rules/*.rs, request by request ──┤
//!   DeviceProfile ──┘                                                 └─▶ the window: mend ─▶ play ─▶ cost, picture
//!                └────────────── a simulated drive that answers as the profile says ──────────────┘
//! ```
//!
//! One file a rule under `rules/`; a rule is judged only where each figure that it needs is certain. A rule says which
//! requests break it, and how the window would look if none did; the difference between the two on a drive made from
//! the profile is what the violations cost.
//!
//! Offsets are those of the drive: in a trace of an ordinary file they are the file's own, and what is said about
//! alignment holds only as far as the file system keeps it.
//!
//! What it is not: a measurement. A mended window is what a remedy would ask of the drive, as far as a trace can tell;
//! what the program would do with the time it gains is not in it. What a remedy brings is measured by running the work
//! again.
//!
//! **Limits.** Counts are of the whole trace; costs and picture are of its first requests, 20,000 unless told
//! otherwise. 4,096 places and processes are counted by themselves.
//!
//! Source of the first five rules: Kakaraparthy, Patel, Park, Kroth, PVLDB 13(4), 2019; of the others, in their files.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

mod aged;
mod auditor;
mod cost;
mod finding;
mod mend;
mod partitions;
mod picture;
mod play;
mod request;
mod rules;
mod tally;

pub use auditor::{AuditOptions, Auditor, audit_trace};
pub use finding::{
    Audit, Band, Cost, Example, Finding, Mark, Picture, Place, PlaceShare, ProcessShare, Simulated, SteadyState,
    UncheckedRule,
};
pub use rules::Rule;

pub use partitions::{AlignmentFigure, Misalignment, PartitionAlignment, PartitionAudit};

use flashwise_profile::DeviceProfile;
use flashwise_trace::IoTrace;

/// Audits a trace that is in memory.
pub fn audit(trace: &IoTrace, profile: &DeviceProfile, options: &AuditOptions) -> Audit {
    let mut auditor = Auditor::new(profile, options);
    for &record in &trace.records {
        auditor.observe(&record.into(), &[]);
    }
    auditor.finish(&[])
}

/// The rules that a profile does not allow to be judged, each with the reason; a trace may hide more of them.
pub fn unchecked_rules(profile: &DeviceProfile) -> Vec<UncheckedRule> {
    let open = |&(rule, prepare): &(Rule, rules::Prepare)| {
        let reason = prepare(profile).err()?;
        Some(UncheckedRule { rule, reason })
    };
    rules::REGISTRY.iter().filter_map(open).collect()
}

#[cfg(test)]
pub(crate) mod tests;
