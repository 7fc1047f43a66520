//! Checks a trace against the rules for I/O to a solid-state drive.
//!
//! [`audit_trace`] takes a [`TraceReader`](flashwise_trace::TraceReader) and a [`DeviceProfile`]; [`audit`] an
//! [`IoTrace`] that is in memory. Both give an [`Audit`]: one [`Finding`] for each rule that profile and trace allow to
//! be checked, the others with the reason, and how the costs were simulated.
//!
//! ```text
//!   trace ──────────┐                                                 ┌─▶ counts, examples, files, processes
//!                   ├──▶ auditor ──▶ rules/*.rs, request by request ──┤
//!   DeviceProfile ──┘                                                 └─▶ the window: fix ─▶ play ──▶ cost, picture
//!                └────────────── a simulated drive that behaves as the profile says ──────────────┘
//! ```
//!
//! One file per rule under `rules/`; a rule is checked only if each figure that it needs is certain. A rule defines
//! which requests violate it, and the window without violations; the difference between the two on a drive made from
//! the profile is the cost of the violations.
//!
//! Offsets are those of the drive. In a trace of an ordinary file they are file offsets, and findings about alignment
//! hold only if the file system preserves it.
//!
//! A request that breaks a rule is no fault yet: where the fixed window costs as much as the unmodified one, or more,
//! the finding says to leave it ([`Judgement::LeaveIt`]), and the rule does not count as violated.
//!
//! The costs are not measurements. A fixed window contains the requests that a remedy would lead to, as far as a trace
//! shows; what the program would do with the time gained is not in it. To measure the gain of a remedy, run the work
//! again.
//!
//! **Limits.** Counts are of the whole trace; costs and picture are of its first requests, 20,000 by default. 4,096
//! places and processes have counters of their own.
//!
//! Source of the first five rules: Kakaraparthy, Patel, Park, Kroth, PVLDB 13(4), 2019; of the others, in their files.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

mod aged;
mod auditor;
mod calls;
mod cost;
mod finding;
mod fix;
mod partitions;
mod picture;
mod play;
pub mod provision;
mod request;
mod rules;
mod system;
mod tally;

pub use auditor::{AuditOptions, Auditor, audit_trace};
pub use finding::{
    Audit, Band, Cost, Example, Finding, Judgement, Machine, Mark, Picture, Place, PlaceShare, ProcessShare, Simulated,
    SteadyState, UncheckedRule,
};
pub use rules::Rule;
pub use system::{DatabaseSystem, JournalMode, SqliteSettings, Technique};

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

/// The rules that cannot be checked with a profile, each with the reason; a trace may exclude more of them.
pub fn unchecked_rules(profile: &DeviceProfile) -> Vec<UncheckedRule> {
    let open = |&(rule, prepare): &(Rule, rules::Prepare)| {
        let reason = prepare(profile).err()?;
        Some(UncheckedRule { rule, reason })
    };
    rules::REGISTRY.iter().filter_map(open).collect()
}

#[cfg(test)]
pub(crate) mod tests;
