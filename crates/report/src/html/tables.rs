//! The tables of a page.

use flashwise_audit::{Finding, Judgement, Rule, Simulated};
use flashwise_profile::{DeviceProfile, Verdict};
use flashwise_tune::{Candidate, ChangeKind, Comparison, Proposal};
use maud::{Markup, html};

use crate::text::groups::Group;
use crate::text::numbers::significant;
use crate::text::parameters::ParameterRow;
use crate::text::words::kept_together;
use crate::text::{findings, gains, headings, parameters, runs};

/// The drive's hidden parameters.
pub(super) fn parameters(profile: &DeviceProfile) -> Markup {
    let groups = parameters::parameter_groups(profile);
    html! {
        section {
            h2 { (headings::DRIVE_HIDES) }
            p { (parameters::verdict_counts(&groups)) }
            div.scroll {
                table.figures {
                    thead { tr { @for name in headings::FIGURE_COLUMNS { th { (name) } } } }
                    @for (group, rows) in &groups {
                        tbody {
                            tr.group { th colspan="4" scope="rowgroup" { (group.title) } }
                            @for row in rows { (parameter_row(row)) }
                        }
                    }
                }
            }
            p.small { (kept_together(parameters::LEGEND)) }
            (open_figures(&groups))
            @if let Some(sentence) = parameters::promise_sentence(profile) { p { (kept_together(&sentence)) } }
            p.small { (kept_together(&parameters::recipe_sentence(profile))) }
        }
    }
}

fn parameter_row(row: &ParameterRow) -> Markup {
    html! {
        tr class=(verdict_class(row.verdict)) {
            th scope="row" { (row.name) }
            td { (row.value) }
            td { (row.interval) }
            td.verdict { (row.verdict_text) }
        }
    }
}

fn open_figures(groups: &[(&Group, Vec<ParameterRow>)]) -> Markup {
    html! {
        @for open in parameters::open_figures(groups) {
            p.small {
                b { (findings::sentence(open.verdict)) } " " (open.what) " "
                (kept_together(&findings::sentence(&open.reason)))
            }
        }
    }
}

/// A table of numbers behind a name; none without rows.
pub(super) fn numbers<const N: usize>(columns: &[&str; N], rows: &[[String; N]]) -> Markup {
    html! {
        @if !rows.is_empty() {
            div.scroll { table.numbers {
                thead { tr { @for name in columns { th { (name) } } } }
                tbody { @for row in rows {
                    tr { @for (n, cell) in row.iter().enumerate() {
                        @if n == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                    } }
                } }
            } }
        }
    }
}

/// Class of a verdict.
pub(super) fn verdict_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Certain => "certain",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Absent => "absent",
    }
}

/// The audit's findings, before and after.
pub(super) fn audit(c: &Comparison) -> Markup {
    let changed = !c.applied.is_empty();
    let after = changed.then_some(c.findings_after.as_slice());
    html! {
        section {
            h2 { (headings::AUDIT_FOUND) }
            (finding_list(&c.findings, after, None, &|rule| gains::changes_with_gains(c, rule)))
            @if let Some(kept) = findings::kept_by_both(&c.findings, after.unwrap_or(&c.findings)) { p.small { (kept) } }
            @if let Some(open) = findings::unjudged_sentence(&c.unjudged) { p.small { (open) } }
        }
    }
}

/// Every rule that was broken, with the recommended change for it.
pub(super) fn finding_list(
    list: &[Finding],
    after: Option<&[Finding]>,
    simulated: Option<&Simulated>,
    change: &dyn Fn(Rule) -> Option<String>,
) -> Markup {
    let violations = findings::broken_rules(list, after, Judgement::Violation);
    html! {
        @for (index, broken) in violations.iter().enumerate() {
            (one_finding(index + 1, broken, simulated, change(broken.finding.rule)))
        }
        @for (judgement, introduction) in findings::NO_VIOLATIONS {
            @let broken = findings::broken_rules(list, after, judgement);
            @if !broken.is_empty() {
                p.small { (introduction) }
                ul.small { @for broken in &broken { li { (kept_together(&findings::left_line(broken.shown, simulated))) } } }
            }
        }
    }
}

fn one_finding(
    number: usize,
    &findings::BrokenRule { finding, later, shown: broken }: &findings::BrokenRule<'_>,
    simulated: Option<&Simulated>,
    change: Option<String>,
) -> Markup {
    html! {
        article.finding {
            h3 { span.number { (number) } (kept_together(&findings::sentence(&finding.statement))) }
            dl {
                dt { "rule" }
                dd { (finding.rule.name()) }
                dt { @if later.is_some() { "before" } @else { "found" } }
                dd class=(count_class(finding)) { (findings::frequency(finding)) }
                @if let Some(later) = later {
                    dt { "after" }
                    dd class=(count_class(later)) { (findings::frequency(later)) }
                }
                @if let Some(places) = findings::places(broken) { dt { "where" } dd { (places) } }
                @if let Some(processes) = findings::processes(broken) { dt { "process" } dd { (processes) } }
                dt { "examples" }
                dd { @for example in &broken.examples { div { (kept_together(&findings::example(example))) } } }
                dt { "cost" }
                dd { (kept_together(&findings::cost(&broken.cost, simulated))) }
                dt { "remedy" }
                dd { (kept_together(&broken.remedy)) }
                @if let Some(changes) = change { dt { "change" } dd { (kept_together(&changes)) } }
            }
        }
    }
}

fn count_class(finding: &Finding) -> &'static str {
    if finding.violations == 0 { "good" } else { "bad" }
}

/// What is to be changed, why, what it costs and brings, and how to do and undo it.
pub(super) fn changes(c: &Comparison) -> Markup {
    html! {
        @if !c.proposals.is_empty() || !c.declined.is_empty() || !c.guarantees.weaker.is_empty() {
            section {
                h2 { (headings::CHANGES) }
                (proposals(c))
                @if !c.declined.is_empty() {
                    ul { @for declined in &c.declined { li { (kept_together(&gains::declined_sentence(declined))) } } }
                }
            }
        }
    }
}

/// Columns of the changes.
const CHANGE_COLUMNS: [&str; 7] = ["change", "from", "to", "brings", "because", "apply", "undo"];

/// The changes in groups of what they cost, the cheapest first; last what would change a guarantee.
fn proposals(c: &Comparison) -> Markup {
    let of = |kind: ChangeKind| c.proposals.iter().filter(move |change| change.kind == kind);
    html! {
        @if !c.proposals.is_empty() || !c.guarantees.weaker.is_empty() {
            div.scroll {
                table {
                    thead { tr { @for name in CHANGE_COLUMNS { th { (name) } } } }
                    @for kind in gains::GROUPS {
                        @if of(kind).next().is_some() {
                            tbody {
                                (group_row(kind))
                                @for change in of(kind) { (proposal(c, change)) }
                            }
                        }
                    }
                    @if !c.guarantees.weaker.is_empty() {
                        tbody {
                            (group_row(ChangeKind::Guarantee))
                            @for sentence in gains::weaker_sentences(c) {
                                tr { td.words colspan=(CHANGE_COLUMNS.len()) { (kept_together(&sentence)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn group_row(kind: ChangeKind) -> Markup {
    let title = findings::sentence(gains::group(kind));
    html! { tr.group { th colspan=(CHANGE_COLUMNS.len()) scope="rowgroup" { (title.trim_end_matches('.')) } } }
}

fn proposal(c: &Comparison, change: &Proposal) -> Markup {
    html! {
        tr {
            th scope="row" { (change.name) }
            td { (change.old_value) }
            td { (change.new_value) }
            td.words { (kept_together(&gains::part(c, change))) }
            td.words {
                (kept_together(&change.reason))
                @if let Some(rules) = gains::findings_of(change) { "; finding: " (rules) }
            }
            td.words { code { (change.apply) } }
            td.words { code { (change.undo) } }
        }
    }
}

/// Every configuration that was tried.
pub(super) fn candidates(c: &Comparison) -> Markup {
    let interval = |candidate: &Candidate| match (candidate.low, candidate.high) {
        (Some(low), Some(high)) => format!("{}…{}", significant(low), significant(high)),
        _ => "one run".to_owned(),
    };
    html! {
        @if !c.candidates.is_empty() {
            section {
                h2 { (headings::CANDIDATES) }
                p { (kept_together(&gains::search_sentence(c))) }
                div.scroll {
                    table.numbers {
                        thead { tr {
                            th { "configuration" } th { "stage" }
                            @for objective in &c.objectives { th { (objective.name()) } }
                            th { "interval" }
                            @if c.objectives.len() > 1 { th {} }
                        } }
                        tbody {
                            @for candidate in &c.candidates {
                                tr {
                                    th scope="row" { (candidate.label) }
                                    td { (candidate.stage) }
                                    @for ratio in &candidate.ratios { td { "×" (significant(*ratio)) } }
                                    td { (interval(candidate)) }
                                    @if c.objectives.len() > 1 { td { (gains::front_mark(candidate)) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Every quantity of the three runs.
pub(super) fn three_runs(c: &Comparison) -> Markup {
    html! {
        div.scroll {
            table.numbers {
                thead {
                    tr {
                        th {}
                        @for (name, run) in headings::RUNS.iter().zip(runs::runs(c)) {
                            th { (name) span.under { (run.label) } }
                        }
                        th { (headings::BEST_TO_DEFAULT) }
                    }
                }
                tbody {
                    @for row in runs::run_rows(c) {
                        tr {
                            th scope="row" { (row.name) }
                            @for cell in &row.cells { td { (with_interval(&cell.value, cell.interval.as_deref())) } }
                            td class=(better_class(row.change.better)) { (row.change.text) }
                        }
                    }
                }
            }
        }
        p.small { (runs::FOOTNOTE) }
    }
}

fn with_interval(value: &str, interval: Option<&str>) -> Markup {
    html! { (value) @if let Some(interval) = interval { span.under { (interval) } } }
}

/// Class of a change for better or worse.
pub(super) fn better_class(better: Option<bool>) -> &'static str {
    match better {
        Some(true) => "good",
        Some(false) => "bad",
        None => "",
    }
}
