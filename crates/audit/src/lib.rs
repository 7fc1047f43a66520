//! The rules for I/O to a solid-state drive, held against a trace.
//!
//! [`audit`] takes an [`IoTrace`] and a [`DeviceProfile`] and gives one [`Finding`] for each rule that the profile
//! allows to be judged; [`unjudged`] names the other rules, each with the reason.
//!
//! ```text
//!   IoTrace ────────┐
//!                   ├──▶ rules/*.rs ──▶ Finding: how often, an example, what it costs, what helps
//!   DeviceProfile ──┘
//! ```
//!
//! One file a rule under `rules/`; a rule is judged only where each figure that it needs is certain. Trims and flushes
//! are nobody's violation. Offsets are those of the drive: in a trace of an ordinary file they are the file's own, and
//! what is said about alignment holds only as far as the file system keeps it.
//!
//! What it is not: a measurement. Costs are estimates from the drive's own curves, documented rule by rule, and err on
//! the low side; what a remedy brings is measured by running the same work again.
//!
//! Source of the rules: Kakaraparthy, Patel, Park, Kroth, PVLDB 13(4), 2019, the five recommendations.

mod curves;
mod finding;
mod rules;

pub use finding::{Cost, Example, Finding, Rule};

use flashwise_profile::DeviceProfile;
use flashwise_trace::{IoRecord, IoTrace};

use rules::Check;

/// Holds a trace against every rule that the profile allows to be judged, in the order of the rules' numbers.
pub fn audit(trace: &IoTrace, profile: &DeviceProfile) -> Vec<Finding> {
    rules::REGISTRY
        .iter()
        .filter_map(|(rule, prepare)| prepare(profile).ok().map(|check| judge(*rule, check.as_ref(), trace)))
        .collect()
}

/// The rules that the profile does not allow to be judged, each with the reason in a sentence.
pub fn unjudged(profile: &DeviceProfile) -> Vec<(Rule, String)> {
    rules::REGISTRY.iter().filter_map(|(rule, prepare)| prepare(profile).err().map(|reason| (*rule, reason))).collect()
}

fn judge(rule: Rule, check: &dyn Check, trace: &IoTrace) -> Finding {
    let (mut requests, mut violations, mut example) = (0, 0, None);
    for record in trace.records.iter().filter(|r| check.applies(r)) {
        requests += 1;
        if !check.obeys(record) {
            violations += 1;
            example.get_or_insert_with(|| example_of(record));
        }
    }
    Finding {
        rule,
        statement: check.statement(),
        violations,
        requests,
        example,
        cost: check.cost(trace),
        remedy: check.remedy(),
    }
}

fn example_of(record: &IoRecord) -> Example {
    Example {
        operation: record.operation,
        role: record.role,
        offset_bytes: record.offset.0,
        length_bytes: record.length.0,
    }
}

#[cfg(test)]
mod tests;
