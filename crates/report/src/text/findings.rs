//! Audit findings in words.

use flashwise_audit::{
    Audit, Cost, Example, Finding, Judgement, Machine, Misalignment, PartitionAlignment, PartitionAudit, Place, Rule,
    Simulated, UncheckedRule,
};
use flashwise_block::{Operation, TableKind};
use flashwise_trace::FileRole;

use super::numbers::{bytes, grouped, share, time};

/// Places and processes that are named in a line.
const NAMED: usize = 3;

/// The text as a sentence of its own. A name at its start keeps its letters: of a file, a setting or an option.
pub(crate) fn sentence(text: &str) -> String {
    let first_word = text.split_whitespace().next().unwrap_or_default().trim_end_matches(['.', ',', ':', ';']);
    let is_name = first_word.contains(|c: char| "./_=<".contains(c) || c.is_ascii_digit());
    let mut chars = text.chars();
    let first: String = match is_name {
        true => chars.next().into_iter().collect(),
        false => chars.next().into_iter().flat_map(char::to_uppercase).collect(),
    };
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

/// `1,234 of 5,678 (21.7 %), 4 MiB`.
pub(crate) fn frequency(finding: &Finding) -> String {
    let Finding { violations, requests, bytes: size, .. } = finding;
    let size = if *size > 0 { format!(", {}", bytes(*size)) } else { String::new() };
    match requests {
        0 => "no request that the rule applies to".to_owned(),
        _ => format!("{} of {} ({}){size}", grouped(*violations), grouped(*requests), share(*violations, *requests)),
    }
}

/// The finding whose examples and cost are shown: that of the run before, or of the run after if only that one violates
/// the rule.
fn broken_one<'a>(before: &'a Finding, after: Option<&'a Finding>) -> Option<&'a Finding> {
    [Some(before), after].into_iter().flatten().find(|finding| finding.violations > 0)
}

/// A file's part in a database.
fn role(role: FileRole) -> &'static str {
    match role {
        FileRole::Database => "database",
        FileRole::Journal => "rollback journal",
        FileRole::WriteAheadLog => "write-ahead log",
        FileRole::Temporary => "temporary files",
        FileRole::Unknown => "other files",
    }
}

/// `read 64 KiB at byte 1,245,184 of the database`.
pub(crate) fn example(example: &Example) -> String {
    let operation = match example.operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Trim => "trim",
        Operation::WriteZeroes => "write of zeros,",
        Operation::Flush => "flush",
    };
    let whose = match (&example.file, example.role) {
        (Some(file), _) => format!(" of {file}"),
        (None, FileRole::Unknown) => String::new(),
        (None, FileRole::Temporary) => " of a temporary file".to_owned(),
        (None, known) => format!(" of the {}", role(known)),
    };
    match example.operation {
        Operation::Flush => format!("flush{whose}"),
        _ => format!("{operation} {} at byte {}{whose}", bytes(example.length_bytes), grouped(example.offset_bytes)),
    }
}

/// All examples, a line each.
pub(crate) fn examples(finding: &Finding) -> String {
    finding.examples.iter().map(example).collect::<Vec<_>>().join("\n")
}

/// A place by its name.
pub(crate) fn place(place: &Place) -> String {
    match place {
        Place::File(name) => name.clone(),
        Place::Role(known) => role(*known).to_owned(),
        Place::Region { device: Some(device), end_bytes: u64::MAX, .. } => {
            format!("device {}:{}", device >> 20, device & 0xF_FFFF)
        }
        Place::Region { device: None, end_bytes: u64::MAX, .. } => "the device".to_owned(),
        Place::Region { device, start_bytes, end_bytes } => {
            let device = device.map_or_else(String::new, |device| format!("{}:{} ", device >> 20, device & 0xF_FFFF));
            format!("{device}{} to {}", bytes(*start_bytes), bytes(*end_bytes))
        }
        Place::Elsewhere => "elsewhere".to_owned(),
    }
}

fn named(shares: impl ExactSizeIterator<Item = (String, u64)>) -> Option<String> {
    let others = shares.len().saturating_sub(NAMED);
    let told: Vec<_> = shares.take(NAMED).map(|(name, count)| format!("{name}: {}", grouped(count))).collect();
    let more = if others > 0 { "; …" } else { "" };
    (!told.is_empty()).then(|| format!("{}{more}", told.join("; ")))
}

/// By file or region.
pub(crate) fn places(finding: &Finding) -> Option<String> {
    named(finding.places.iter().map(|share| (place(&share.place), share.violations)))
}

/// By process.
pub(crate) fn processes(finding: &Finding) -> Option<String> {
    named(finding.processes.iter().map(|share| (share.process.to_string(), share.violations)))
}

/// Whose time a cost is: the volume's budget, a card's merges, the drive's, or with a machine between program and drive
/// what the program waits for.
fn whose_time(cost: &Cost, simulated: Option<&Simulated>) -> &'static str {
    if cost.is_of_budget {
        return "the volume's budget";
    }
    if cost.is_of_merges {
        return "merges on the card";
    }
    // Earlier documents say so only of the whole audit.
    let is_of_calls = simulated.is_some_and(|simulated| simulated.machine.is_some()) && !cost.is_in_steady_state;
    if cost.is_of_calls || is_of_calls { "waiting time" } else { "drive time" }
}

/// The cost of a rule's violations, or that it was not simulated.
pub(crate) fn cost(cost: &Cost, simulated: Option<&Simulated>) -> String {
    let of = |part: u64, whole: Option<u64>| match whole.filter(|&whole| whole > 0) {
        Some(whole) => format!(" ({})", share(part.min(whole), whole)),
        None => String::new(),
    };
    let one = |value: i64, words: &dyn Fn(u64) -> String, what: &str, whole: Option<u64>| match value {
        0 => format!("no {what}"),
        lost if lost > 0 => {
            format!("{} of {what}{}", words(lost.unsigned_abs()), of(lost.unsigned_abs(), whole))
        }
        gained => format!("none in {what}: fixed, it takes {} more", words(gained.unsigned_abs())),
    };
    let whose = whose_time(cost, simulated);
    // The window's totals are those of a drive.
    let simulated = simulated.filter(|_| !cost.is_computed());
    let told = [
        cost.time_ns.map(|ns| one(ns, &time, whose, simulated.map(|s| s.window_totals(cost).0))),
        cost.flash_bytes.map(|b| one(b, &bytes, "flash bytes", simulated.map(|s| s.window_totals(cost).1))),
    ];
    let told: Vec<_> = told.into_iter().flatten().collect();
    let state = if cost.is_in_steady_state { " (in the steady state)" } else { "" };
    if told.is_empty() { "not simulated".to_owned() } else { format!("{}{state}", told.join("; ")) }
}

/// A rule that requests break: its finding, that of a second run if there is one, and the one of the two whose examples
/// and cost are shown.
pub(crate) struct BrokenRule<'a> {
    pub(crate) finding: &'a Finding,
    pub(crate) later: Option<&'a Finding>,
    pub(crate) shown: &'a Finding,
}

/// The rules of a judgement that requests break, costliest first.
pub(crate) fn broken_rules<'a>(
    list: &'a [Finding],
    after: Option<&'a [Finding]>,
    judgement: Judgement,
) -> Vec<BrokenRule<'a>> {
    let of_both = |finding: &'a Finding| {
        let later = after.and_then(|after| after.iter().find(|f| f.rule == finding.rule));
        Some(BrokenRule { finding, later, shown: broken_one(finding, later)? })
    };
    list.iter().filter_map(of_both).filter(|broken| broken.shown.judgement == judgement).collect()
}

/// The lists of rules that are broken and no violations, with what introduces each.
pub(crate) const NO_VIOLATIONS: [(Judgement, &str); 2] = [
    (Judgement::Observation, "Observed: no setting of this database system changes these."),
    (Judgement::LeaveIt, "Measured: leave it. In simulation the remedy costs at least as much as it saves:"),
];

/// A rule that is better left broken, in a line.
pub(crate) fn left_line(finding: &Finding, simulated: Option<&Simulated>) -> String {
    let effect = effect_of_remedy(&finding.cost, whose_time(&finding.cost, simulated));
    format!("{}: {}; {effect}", finding.rule.name(), frequency(finding))
}

/// A violation in a line: its rule, how often, and its cost.
pub(crate) fn short_line(finding: &Finding) -> String {
    let Finding { violations, requests, .. } = finding;
    let (name, share) = (finding.rule.name(), share(*violations, *requests));
    let cost = cost(&finding.cost, None).replace("; no flash bytes", "");
    format!("{name}: {share} of {} requests; {cost}", grouped(*requests))
}

/// What a remedy that does not pay would cost and save: `fixed, they take 9.1 µs of drive time more and 4 KiB of flash
/// bytes less`.
fn effect_of_remedy(cost: &Cost, whose: &str) -> String {
    let one = |saved: Option<i64>, words: &dyn Fn(u64) -> String, what: &str| {
        let saved = saved.filter(|&saved| saved != 0)?;
        let direction = if saved < 0 { "more" } else { "less" };
        Some(format!("{} of {what} {direction}", words(saved.unsigned_abs())))
    };
    let parts = [one(cost.time_ns, &time, whose), one(cost.flash_bytes, &bytes, "flash bytes")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => "fixed, they take the same".to_owned(),
        false => format!("fixed, they take {}", parts.join(" and ")),
    }
}

/// The rules without a violation, in a sentence.
pub(crate) fn kept_sentence(findings: &[Finding]) -> Option<String> {
    let kept: Vec<_> = findings.iter().filter(|f| f.violations == 0).map(|f| f.rule.name()).collect();
    (!kept.is_empty()).then(|| format!("Rules without a violation: {}.", kept.join(", ")))
}

/// The rules without a violation in both runs, in a sentence.
pub(crate) fn kept_by_both(before: &[Finding], after: &[Finding]) -> Option<String> {
    let is_kept = |finding: &&Finding| after.iter().all(|f| f.rule != finding.rule || f.violations == 0);
    kept_sentence(&before.iter().filter(is_kept).cloned().collect::<Vec<_>>())
}

/// The rules that were not checked, in a sentence; `None` if all were.
pub(crate) fn unjudged_sentence(unjudged: &[UncheckedRule]) -> Option<String> {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for open in unjudged {
        let name = open.rule.name();
        match by_reason.iter_mut().find(|(reason, _)| *reason == open.reason) {
            Some((_, names)) => names.push(name),
            None => by_reason.push((&open.reason, vec![name])),
        }
    }
    let in_words = |(reason, names): &(&str, Vec<&str>)| format!("{} ({reason})", names.join(", "));
    let open: Vec<_> = by_reason.iter().map(in_words).collect();
    (!open.is_empty()).then(|| format!("Not checked: {}.", open.join("; ")))
}

/// How the costs were simulated, or why they were not.
pub(crate) fn simulated_sentence(audit: &Audit) -> Option<String> {
    let Some(simulated) = &audit.simulated else {
        let is_clean = !audit.is_violated();
        return audit
            .not_simulated
            .as_ref()
            .filter(|_| !is_clean)
            .map(|why| format!("Costs were not simulated: {why}."));
    };
    let Simulated { window_requests, trace_requests, machine, time_ns, flash_bytes, .. } = simulated;
    let through = machine.as_ref().map_or_else(String::new, |Machine { file_system, memory_bytes }| {
        format!(
            " Each replay makes the calls one after another on {file_system} on that drive, under a page cache of {} \
             that is empty at first. Waiting time is the time of these calls.",
            bytes(*memory_bytes)
        )
    });
    let window = match window_requests == trace_requests {
        true => format!("all {} requests", grouped(*trace_requests)),
        false => format!("the first {} of {} requests", grouped(*window_requests), grouped(*trace_requests)),
    };
    let near = |c: &flashwise_truth::learned::Calibrated| {
        format!("{} {} (profile: {})", c.what, time(c.drive_ns), time(c.profile_ns))
    };
    let near: Vec<_> = simulated.calibrated.iter().map(near).collect();
    let steady = simulated.steady_state.map_or_else(String::new, |state| {
        format!(
            " In the steady state, with garbage collection running, they take {} and program {}.",
            time(state.time_ns),
            bytes(state.flash_bytes)
        )
    });
    Some(format!(
        "A rule's cost is the difference between two replays of {window} on a simulated drive made from the profile: \
         unmodified ({}, {} programmed) and with that rule's violations fixed.{through} The simulated drive \
         against the profile: {}.{steady}",
        time(*time_ns),
        bytes(*flash_bytes),
        near.join(", ")
    ))
}

/// The alignment of a drive's partitions, a sentence each.
pub(crate) fn partition_sentences(audit: &PartitionAudit) -> Vec<String> {
    let kind = match audit.table {
        TableKind::Gpt => "GPT",
        TableKind::Mbr => "MBR",
    };
    let figures: Vec<_> =
        audit.figures.iter().map(|held| format!("{} {}", held.figure, bytes(held.figure_bytes))).collect();
    let against = match figures.as_slice() {
        [] => {
            "not checked: the profile has neither a flash page nor a write unit nor a stripe that is certain".to_owned()
        }
        figures => format!("checked against {}", figures.join(", ")),
    };
    let head = format!("Partitions of {} ({kind}), {against}.", audit.drive);
    let place = |partition: &PartitionAlignment| {
        let off = |m: &Misalignment| format!("{} past a multiple of the {}", bytes(m.remainder_bytes), m.figure);
        let off: Vec<_> = partition.misplaced.iter().map(off).collect();
        let how = match off.as_slice() {
            [] if audit.figures.is_empty() => String::new(),
            [] => ": aligned".to_owned(),
            off => format!(": {}", off.join(", ")),
        };
        let (number, start) = (partition.number, grouped(partition.start_bytes));
        format!("Partition {number}, {}, starts at byte {start}{how}.", bytes(partition.length_bytes))
    };
    let remedy = audit.is_violated().then(|| format!("{}: {}", Rule::AlignPartition.name(), sentence(&audit.remedy)));
    std::iter::once(head).chain(audit.partitions.iter().map(place)).chain(remedy).collect()
}

/// The result in a sentence.
pub(crate) fn headline(audit: &Audit) -> String {
    if let Some(partitions) = audit.partitions.as_ref().filter(|_| audit.is_partitions_only()) {
        let off = partitions.partitions.iter().filter(|partition| !partition.misplaced.is_empty()).count();
        return format!("{} of {} partitions are misaligned.", off, partitions.partitions.len());
    }
    let count = |judgement| audit.findings.iter().filter(|finding| finding.judgement == judgement).count();
    let judged = audit.findings.len();
    let violated = match count(Judgement::Violation) {
        0 => format!("No violation found of the {judged} rules that could be checked."),
        1 => format!("1 of the {judged} rules that could be checked is violated."),
        broken => format!("{broken} of the {judged} rules that could be checked are violated, costliest first."),
    };
    let observed = match count(Judgement::Observation) {
        0 => String::new(),
        observed => format!(" For {observed} more, this database system has no setting."),
    };
    let left = match count(Judgement::LeaveIt) {
        0 => String::new(),
        left => format!(" For {left} more, the remedy costs as much as it saves, or more."),
    };
    format!("{violated}{observed}{left}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effect_of_a_remedy_that_does_not_pay_is_reported() {
        let of = |time_ns, flash_bytes| {
            let cost = Cost { time_ns: Some(time_ns), flash_bytes: Some(flash_bytes), ..Cost::default() };
            effect_of_remedy(&cost, "drive time")
        };
        assert_eq!(of(-9_100, 4096), "fixed, they take 9.1 µs of drive time more and 4 KiB of flash bytes less");
        assert_eq!(of(0, 0), "fixed, they take the same");
    }

    #[test]
    fn a_sentence_starts_with_a_capital_unless_a_name_is_there() {
        assert_eq!(sentence("commit several transactions"), "Commit several transactions.");
        assert_eq!(sentence("queries.sql has no writes."), "queries.sql has no writes.");
        assert_eq!(sentence("innodb_doublewrite=OFF saves a write"), "innodb_doublewrite=OFF saves a write.");
        assert_eq!(sentence("nothing"), "Nothing.");
    }
}
