//! What an audit found, in words.

use flashwise_audit::{Cost, Example, Finding, Rule};
use flashwise_block::Operation;
use flashwise_profile::DeviceProfile;
use flashwise_trace::FileRole;

use super::numbers::{bytes, grouped, share, time};

/// The rule's sentence as one that stands alone.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

/// `1,234 of 5,678 (21.7 %)`.
pub(crate) fn frequency(finding: &Finding) -> String {
    let Finding { violations, requests, .. } = finding;
    match requests {
        0 => "no request that the rule speaks about".to_owned(),
        _ => format!("{} of {} ({})", grouped(*violations), grouped(*requests), share(*violations, *requests)),
    }
}

/// The finding whose example and cost are shown: that of the run before, or of the run after where only that one
/// broke the rule.
pub(crate) fn broken_one<'a>(before: &'a Finding, after: Option<&'a Finding>) -> Option<(&'a Finding, &'a Example)> {
    [Some(before), after].into_iter().flatten().find_map(|f| f.example.as_ref().map(|example| (f, example)))
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
    let whose = match example.role {
        FileRole::Database => " of the database",
        FileRole::Journal => " of the rollback journal",
        FileRole::WriteAheadLog => " of the write-ahead log",
        FileRole::Temporary => " of a temporary file",
        FileRole::Unknown => "",
    };
    format!("{operation} {} at byte {}{whose}", bytes(example.length_bytes), grouped(example.offset_bytes))
}

/// What a rule's violations cost, or that nothing tells.
pub(crate) fn cost(cost: &Cost) -> String {
    let told = [
        cost.time_ns.map(|ns| match ns {
            0 => "no drive time".to_owned(),
            ns => format!("{} of drive time", time(ns)),
        }),
        cost.flash_bytes.map(|b| match b {
            0 => "no flash bytes".to_owned(),
            b => format!("{} of flash", bytes(b)),
        }),
        cost.stripes.map(|s| match s {
            0 => "no stripe touched in vain".to_owned(),
            1 => "1 stripe touched in vain".to_owned(),
            s => format!("{} stripes touched in vain", grouped(s)),
        }),
    ];
    let told: Vec<_> = told.into_iter().flatten().collect();
    if told.is_empty() { "the drive's curves do not tell".to_owned() } else { told.join(", ") }
}

/// The rules that the profile leaves open, in a sentence; `None` where there is none.
pub(crate) fn unjudged_sentence(profile: &DeviceProfile) -> Option<String> {
    let open: Vec<_> = flashwise_audit::unjudged(profile).iter().map(|(r, why)| named(*r, why)).collect();
    (!open.is_empty()).then(|| format!("Not judged: {}.", open.join("; ")))
}

fn named(rule: Rule, reason: &str) -> String {
    format!("rule {} ({reason})", rule.number())
}
