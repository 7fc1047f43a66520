//! Which changes answer what the audit of the unmodified workload found.
//!
//! ```text
//!   Audit ──▶ Answers ──▶ the order of candidates (knobs.rs)
//!   findings before and after ──▶ answered_by ──▶ the findings that a recommended change answers (fit.rs)
//! ```
//!
//! A change answers a rule if it is what the rule's remedy names for SQLite. The audit only says where to start, which
//! counts where time is short. It excludes nothing: a cost is simulated for one remedy at a time, and another page size
//! or journal makes other requests.

use flashwise_audit::{Audit, Finding, Judgement, Rule};

use super::knobs::HOT_LOCATIONS;

/// The settings and techniques that a rule's remedy names, as far as the search changes them in that direction, by
/// their names as knobs.
fn answers(rule: Rule) -> &'static [&'static str] {
    match rule {
        Rule::ReadChunksAtHotLocations => &[HOT_LOCATIONS, "page_size"],
        Rule::KeepHotLocations => &[HOT_LOCATIONS],
        Rule::StartWritesOnStripes => &["write-aligned-stripes"],
        Rule::TouchFewPages => &["contain-write-in-flash-page"],
        Rule::AppendInFreshPages => &["sparse-log"],
        Rule::WriteBackInParallel => &["concurrent-write-back"],
        Rule::ReadInParallel => &["concurrent-read-ahead"],
        Rule::PagesOfWriteUnit | Rule::FillRequestUnits => &["page_size"],
        Rule::WriteOnce | Rule::KeepUnitsOpen => &["journal_mode", "wal_autocheckpoint"],
        Rule::SyncLessOften | Rule::CommitToOneFile | Rule::KeepBurstCredits => &["journal_mode"],
        // A smaller `wal_autocheckpoint` keeps it; the search tries larger ones.
        Rule::PaceCheckpoints => &[],
        Rule::WriteWholeUnits
        | Rule::TrimDeadData
        | Rule::AlignPartition
        | Rule::SeparateHotAndCold
        | Rule::SpareFirstUnit => &[],
    }
}

/// The rules that the unmodified workload violates, the costliest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    violated: Vec<Rule>,
}

impl Answers {
    /// Of an audit.
    pub(crate) fn of(audit: &Audit) -> Self {
        let violated = audit.findings.iter().filter(|found| found.judgement == Judgement::Violation);
        Self { violated: violated.map(|found| found.rule).collect() }
    }

    /// How early changes are tried: by the costliest violation that one of them answers, [`Self::last`] if none does.
    pub(crate) fn rank<'a>(&self, names: impl Iterator<Item = &'a str>) -> usize {
        let of = |name: &str| self.violated.iter().position(|rule| answers(*rule).contains(&name));
        names.filter_map(of).min().unwrap_or(self.last())
    }

    /// The rank of what answers no violation.
    pub(crate) fn last(&self) -> usize {
        self.violated.len()
    }
}

/// The violated rules that a change answers, the costliest first: its remedies name the change, and fewer requests
/// break them with the recommended settings.
pub(super) fn answered_by(name: &str, before: &[Finding], after: &[Finding]) -> Vec<Rule> {
    let is_better = |found: &Finding| {
        let later = after.iter().find(|later| later.rule == found.rule);
        later.is_some_and(|later| later.violations < found.violations)
    };
    let violated = before.iter().filter(|found| found.judgement == Judgement::Violation);
    violated.filter(|found| answers(found.rule).contains(&name) && is_better(found)).map(|found| found.rule).collect()
}

#[cfg(test)]
impl Answers {
    /// Of violations, the costliest first.
    pub(crate) fn found(violated: &[Rule]) -> Self {
        Self { violated: violated.to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::knobs::check_names;
    use flashwise_audit::Cost;

    fn finding(rule: Rule, judgement: Judgement, violations: u64) -> Finding {
        Finding {
            rule,
            judgement,
            statement: String::new(),
            violations,
            requests: 100,
            bytes: 0,
            examples: Vec::new(),
            places: Vec::new(),
            processes: Vec::new(),
            cost: Cost::default(),
            remedy: String::new(),
        }
    }

    #[test]
    fn a_change_is_as_early_as_the_costliest_finding_that_it_answers() {
        let found = Answers::found(&[Rule::StartWritesOnStripes, Rule::SyncLessOften]);
        let rank = |names: &[&str]| found.rank(names.iter().copied());
        assert_eq!([rank(&["write-aligned-stripes"]), rank(&["journal_mode"]), rank(&["discard"])], [0, 1, 2]);
        assert_eq!([rank(&["discard", "journal_mode"]), rank(&[]), found.last()], [1, 2, 2]);
    }

    #[test]
    fn only_violations_say_where_to_start() {
        let findings = [
            finding(Rule::WriteOnce, Judgement::Violation, 9),
            finding(Rule::SyncLessOften, Judgement::Observation, 9),
            finding(Rule::ReadInParallel, Judgement::LeaveIt, 9),
        ];
        let mut audit = flashwise_audit::audit(
            &flashwise_trace::IoTrace::default(),
            &crate::sqlite::knobs::tests::profile(),
            &flashwise_audit::AuditOptions::default(),
        );
        audit.findings = findings.to_vec();
        assert_eq!(Answers::of(&audit), Answers::found(&[Rule::WriteOnce]));
    }

    #[test]
    fn a_change_answers_a_finding_that_fewer_requests_break_with_it() {
        let before = [
            finding(Rule::SyncLessOften, Judgement::Violation, 90),
            finding(Rule::WriteOnce, Judgement::Violation, 50),
            finding(Rule::CommitToOneFile, Judgement::LeaveIt, 50),
        ];
        let after = [
            finding(Rule::SyncLessOften, Judgement::Violation, 90),
            finding(Rule::WriteOnce, Judgement::Violation, 20),
            finding(Rule::CommitToOneFile, Judgement::Kept, 0),
        ];
        assert_eq!(answered_by("journal_mode", &before, &after), [Rule::WriteOnce]);
        assert_eq!(answered_by("wal_autocheckpoint", &before, &after), [Rule::WriteOnce]);
        assert_eq!(answered_by("page_size", &before, &after), []);
        assert_eq!(answered_by("journal_mode", &before, &[]), [], "not judged any more");
    }

    #[test]
    fn every_answer_is_a_setting_that_the_search_can_change() {
        for rule in Rule::ALL {
            let names: Vec<String> = answers(rule).iter().map(|&name| name.to_owned()).collect();
            check_names(&names).unwrap();
        }
    }
}
