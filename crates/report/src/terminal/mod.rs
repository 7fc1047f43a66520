//! Text for a terminal: tables that fit its width, in colour only on request.

mod attach;
mod comparison;
mod counters;
mod device_stat;
mod drift;
mod file_run;
mod layout;
mod pool;
mod pool_traces;
mod provision;
mod score;
mod settings_files;
mod simulation;
mod study;
mod sweep;
mod trace;
mod tuning_mariadb;
mod tuning_postgres;
mod tuning_server;

pub use attach::render_attach;
pub use comparison::render_comparison;
pub use counters::render_counters;
pub use device_stat::render_device_stat;
pub use drift::render_drift;
pub use file_run::render_file_run;
pub use pool::render_pool;
pub use pool_traces::render_pool_traces;
pub use provision::render_provision;
pub use score::render_score;
pub use settings_files::{cloud_sql_flags, parameter_group, postgres_conf};
pub use simulation::render_simulation;
pub use study::render_study;
pub use sweep::render_sweep;
pub use trace::{render_trace_conversion, render_trace_info, render_trace_replay, render_trace_tpcc};
pub use tuning_mariadb::{mariadb_option_file, render_mariadb_tuning};
pub use tuning_postgres::{postgres_tuning_sql, render_postgres_tuning};

use flashwise_attach::{FaultState, PowerCut};
use flashwise_audit::{Finding, Judgement, Rule, Simulated};
use flashwise_profile::{DeviceProfile, Verdict};

use crate::audit::AuditDocument;
use crate::printed::Printed;
use crate::text::limits::limits_sentence;
use crate::text::{findings, headings, parameters};
use layout::{Align, Ink, Screen, Text};

/// How much to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What a user acts on.
    Short,
    /// Everything.
    Full,
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// With ANSI colours.
    pub color: bool,
    /// Columns of the terminal; nothing gets wider.
    pub width: u16,
}

impl Default for Style {
    /// No colours, 80 columns.
    fn default() -> Self {
        Self { color: false, width: 80 }
    }
}

/// A drive's hidden parameters.
pub fn render_profile(profile: &DeviceProfile, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    match limits_sentence(&profile.limits) {
        Some(sentence) => {
            screen.heading(&format!("{}: {}", headings::VOLUME_GRANTS, profile.device.name));
            screen.strong_paragraph(&sentence);
            screen.gap();
        }
        None => screen.heading(&format!("{}: {}", headings::DRIVE_HIDES, profile.device.name)),
    }
    parameter_table(&mut screen, profile);
    screen.gap();
    below_parameters(&mut screen, profile);
    screen.finish()
}

/// What the drive promises, and how the figures were measured.
fn below_parameters(screen: &mut Screen, profile: &DeviceProfile) {
    parameters::promise_sentence(profile).iter().for_each(|sentence| screen.paragraph(sentence));
    screen.paragraph(&parameters::recipe_sentence(profile));
}

/// The effect of an injected power cut.
pub fn render_power_cut(cut: &PowerCut, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.paragraph(&crate::text::device_stat::cut_sentence(cut));
    screen.finish()
}

/// The faults that are injected.
pub fn render_faults(faults: &FaultState, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    let sentences = crate::text::device_stat::fault_sentences(faults);
    if sentences.is_empty() {
        screen.paragraph("No fault is injected.");
    }
    sentences.iter().for_each(|sentence| screen.bullet(sentence));
    screen.finish()
}

/// What an audit found.
pub fn render_audit(document: &AuditDocument, style: Style) -> Printed {
    let audit = &document.audit;
    let mut screen = Screen::new(style);
    screen.heading(&format!("{} in {}", headings::AUDIT_FOUND, document.trace));
    screen.strong_paragraph(&findings::headline(audit));
    if !audit.is_partitions_only() {
        screen.gap();
        finding_list(&mut screen, &audit.findings, None, audit.simulated.as_ref(), &|_| None);
    }
    let ends = [
        findings::kept_sentence(&audit.findings),
        findings::unjudged_sentence(&audit.unjudged),
        findings::simulated_sentence(audit),
    ];
    if let Some(partitions) = &audit.partitions {
        screen.gap();
        findings::partition_sentences(partitions).iter().for_each(|sentence| screen.paragraph(sentence));
    }
    for paragraph in ends.into_iter().flatten().chain(document.remarks.iter().map(|remark| findings::sentence(remark)))
    {
        screen.gap();
        screen.paragraph(&paragraph);
    }
    screen.finish()
}

/// Text for a comment: a quoted name may contain a line end.
fn comment(text: &str) -> String {
    flashwise_block::shown::line(&text.replace(['\n', '\r'], " ")).into_owned()
}

/// The figures group by group, and why some are inconclusive.
fn parameter_table(screen: &mut Screen, profile: &DeviceProfile) {
    let groups = parameters::parameter_groups(profile);
    let sections = groups.iter().map(|(group, rows)| (group.title, rows.iter().map(parameter_row).collect()));
    screen.sections(&headings::FIGURE_COLUMNS, &[Align::Left; 4], sections.collect());
    for open in parameters::open_figures(&groups) {
        screen.gap_between_items();
        screen.bullet(&format!("{}. {}", findings::sentence(open.verdict).trim_end_matches('.'), open.what));
        screen.details(vec![("because", Text::plain(open.reason))]);
    }
}

fn parameter_row(row: &parameters::ParameterRow) -> Vec<Text> {
    let ink = match row.verdict {
        Verdict::Inconclusive if row.verdict_text == parameters::NOT_TRIED => Ink::Faint,
        Verdict::Certain => Ink::Plain,
        Verdict::Inconclusive => Ink::Doubtful,
        Verdict::Absent => Ink::Faint,
    };
    let told = |text: &str| Text::new(text, ink);
    vec![Text::plain(&*row.name), told(&row.value), told(&row.interval), told(row.verdict_text)]
}

/// The violations one below the other, numbered in the order of their cost, with those of a second run beside them if
/// given, and the change for each; then a line for each rule that is better left broken. Rules that no request
/// breaks are left out.
fn finding_list(
    screen: &mut Screen,
    list: &[Finding],
    after: Option<&[Finding]>,
    simulated: Option<&Simulated>,
    change: &dyn Fn(Rule) -> Option<String>,
) {
    if list.is_empty() {
        screen.paragraph("No rule could be checked with this profile.");
    }
    let violations = findings::broken_rules(list, after, Judgement::Violation);
    for (index, broken) in violations.iter().enumerate() {
        screen.gap_between_items();
        screen.item(&(index + 1).to_string(), &findings::sentence(&broken.finding.statement));
        let mut details = finding_details(broken, simulated);
        details.extend(change(broken.finding.rule).map(|changes| ("change", Text::plain(changes))));
        screen.details(details);
    }
    for (judgement, introduction) in findings::NO_VIOLATIONS {
        let broken = findings::broken_rules(list, after, judgement);
        if !broken.is_empty() {
            screen.gap();
            screen.paragraph(introduction);
            broken.iter().for_each(|broken| screen.bullet(&findings::left_line(broken.shown, simulated)));
        }
    }
}

fn finding_details(
    &findings::BrokenRule { finding, later, shown: broken }: &findings::BrokenRule<'_>,
    simulated: Option<&Simulated>,
) -> Vec<(&'static str, Text)> {
    let count = |f: &Finding| {
        let ink = if f.violations == 0 { Ink::Good } else { Ink::Bad };
        Text::new(findings::frequency(f), ink)
    };
    let first = if later.is_some() { "before" } else { "found" };
    let mut details = vec![("rule", Text::plain(finding.rule.name())), (first, count(finding))];
    details.extend(later.map(|f| ("after", count(f))));
    details.extend(findings::places(broken).map(|places| ("where", Text::plain(places))));
    details.extend(findings::processes(broken).map(|processes| ("process", Text::plain(processes))));
    details.push(("example", Text::plain(findings::examples(broken))));
    details.push(("cost", Text::plain(findings::cost(&broken.cost, simulated))));
    details.push(("remedy", Text::plain(&broken.remedy)));
    details
}

#[cfg(test)]
mod tests;
