//! Text for a terminal: tables that fit its width, without colours unless they are asked for.

mod attach;
mod comparison;
mod device_stat;
mod layout;
mod pool;
mod score;
mod simulation;
mod study;
mod sweep;
mod trace;
mod tuning;
mod tuning_mariadb;
mod tuning_postgres;
mod tuning_server;

use flashwise_attach::{AttachReport, DeviceStat, FaultState, PowerCut};
use flashwise_audit::{Finding, Simulated};
use flashwise_learn::score::Score;
use flashwise_profile::{DeviceProfile, Verdict};
use flashwise_ssd::simulation::Simulation;
use flashwise_ssd::sweep::Sweep;
use flashwise_tune::mariadb::MariadbTuning;
use flashwise_tune::postgres::PostgresTuning;
use flashwise_tune::{Comparison, Tuning};

use crate::audit::AuditDocument;
use crate::text::{findings, parameters};
use layout::{Align, Ink, Screen, Text};

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

/// What is known about a drive.
pub fn render_profile(profile: &DeviceProfile, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.heading(&format!("What the drive hides: {}", profile.device.name));
    parameter_table(&mut screen, profile);
    screen.gap();
    screen.paragraph(&parameters::recipe_sentence(profile));
    screen.finish()
}

/// What was learned beside what is true.
pub fn render_score(learned: &Score, style: Style) -> String {
    score::render(learned, style)
}

/// What an attached drive did.
pub fn render_attach(report: &AttachReport, style: Style) -> String {
    attach::render(report, style)
}

/// What an attached drive is doing; with an earlier look at it, also what it did between the two.
pub fn render_device_stat(stat: &DeviceStat, before: Option<&DeviceStat>, style: Style) -> String {
    device_stat::render(stat, before, style)
}

/// What a power cut on demand did.
pub fn render_power_cut(cut: &PowerCut, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.paragraph(&crate::text::device_stat::cut_sentence(cut));
    screen.finish()
}

/// What goes wrong on demand.
pub fn render_faults(faults: &FaultState, style: Style) -> String {
    let mut screen = Screen::new(style);
    let sentences = crate::text::device_stat::fault_sentences(faults);
    if sentences.is_empty() {
        screen.paragraph("Nothing goes wrong on demand.");
    }
    sentences.iter().for_each(|sentence| screen.bullet(sentence));
    screen.finish()
}

/// What an audit found.
pub fn render_audit(document: &AuditDocument, style: Style) -> String {
    let audit = &document.audit;
    let mut screen = Screen::new(style);
    screen.heading(&format!("What the audit found in {}", document.trace));
    screen.strong_paragraph(&findings::headline(audit));
    if !audit.is_partitions_only() {
        screen.gap();
        finding_list(&mut screen, &audit.findings, None, audit.simulated.as_ref());
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

/// Everything that one `fit` found out.
pub fn render_comparison(comparison: &Comparison, style: Style) -> String {
    comparison::render(comparison, style)
}

/// What to change of a database.
pub fn render_tuning(tuning: &Tuning, style: Style) -> String {
    tuning::render(tuning, style)
}

/// What to change of a PostgreSQL server.
pub fn render_postgres_tuning(tuning: &PostgresTuning, style: Style) -> String {
    tuning_postgres::render(tuning, style)
}

/// The same as statements for psql, with reasons and what takes them back.
pub fn postgres_tuning_sql(tuning: &PostgresTuning) -> String {
    tuning_postgres::sql(tuning)
}

/// What to change of a MariaDB server, as text.
pub fn render_mariadb_tuning(tuning: &MariadbTuning, style: Style) -> String {
    tuning_mariadb::render(tuning, style)
}

/// The same as an option file.
pub fn mariadb_option_file(tuning: &MariadbTuning) -> String {
    tuning_mariadb::option_file(tuning)
}

/// What may stand in a comment: a name in quotes may hold a line end.
fn comment(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// What many simulations gave, a line each.
pub fn render_sweep(sweep: &Sweep, style: Style) -> String {
    sweep::render(sweep, style)
}

/// What a workload on a simulated drive gave.
pub fn render_simulation(simulation: &Simulation, style: Style) -> String {
    simulation::render(simulation, style)
}

/// What a study found.
pub fn render_study(study: &crate::study::StudyDocument, style: Style) -> String {
    study::render(study, style)
}

/// What a trace asks for.
pub fn render_trace_info(info: &crate::trace::TraceInfo, style: Style) -> String {
    trace::render_info(info, style)
}

/// What TPC-C asked for.
pub fn render_trace_tpcc(told: &crate::trace::TraceTpcc, style: Style) -> String {
    trace::render_tpcc(told, style)
}

/// Buffer pools side by side.
pub fn render_pool(report: &flashwise_bufferpool::simulate::PoolReport, style: Style) -> String {
    pool::render(report, style)
}

/// How a replay went.
pub fn render_trace_replay(replay: &crate::trace::TraceReplayed, style: Style) -> String {
    trace::render_replay(replay, style)
}

/// What became of a trace.
pub fn render_trace_conversion(conversion: &crate::trace::TraceConversion, style: Style) -> String {
    trace::render_conversion(conversion, style)
}

/// The figures group by group, and why some are open.
fn parameter_table(screen: &mut Screen, profile: &DeviceProfile) {
    let groups = parameters::parameter_groups(profile);
    let sections = groups.iter().map(|(group, rows)| (group.title, rows.iter().map(parameter_row).collect()));
    screen.sections(&["figure", "value", "95 % interval", "verdict"], &[Align::Left; 4], sections.collect());
    for open in parameters::open_figures(&groups) {
        screen.gap_between_items();
        screen.bullet(&format!("{}. {}", findings::sentence(open.verdict).trim_end_matches('.'), open.what));
        screen.details(vec![("because", Text::plain(open.reason))]);
    }
}

fn parameter_row(row: &parameters::ParameterRow) -> Vec<Text> {
    let ink = match row.verdict {
        Verdict::Certain => Ink::Plain,
        Verdict::Inconclusive => Ink::Doubtful,
        Verdict::Absent => Ink::Faint,
    };
    let told = |text: &str| Text::new(text, ink);
    vec![Text::plain(&*row.name), told(&row.value), told(&row.interval), told(row.verdict_text)]
}

/// The findings one below the other; with those of a second run beside them where there is one. Rules that nobody broke
/// are left out.
fn finding_list(screen: &mut Screen, list: &[Finding], after: Option<&[Finding]>, simulated: Option<&Simulated>) {
    if list.is_empty() {
        screen.paragraph("No rule could be judged with this profile.");
    }
    for finding in list {
        let later = after.and_then(|a| a.iter().find(|f| f.rule == finding.rule));
        let Some(broken) = findings::broken_one(finding, later) else { continue };
        screen.gap_between_items();
        let number = format!("{}", finding.rule.number());
        screen.item(&number, &findings::sentence(&finding.statement));
        screen.details(finding_details(finding, later, broken, simulated));
    }
}

fn finding_details(
    finding: &Finding,
    later: Option<&Finding>,
    broken: &Finding,
    simulated: Option<&Simulated>,
) -> Vec<(&'static str, Text)> {
    let count = |f: &Finding| {
        let ink = if f.violations == 0 { Ink::Good } else { Ink::Bad };
        Text::new(findings::frequency(f), ink)
    };
    let first = if later.is_some() { "before" } else { "broken" };
    let mut details = vec![(first, count(finding))];
    details.extend(later.map(|f| ("after", count(f))));
    details.extend(findings::places(broken).map(|places| ("where", Text::plain(places))));
    details.extend(findings::processes(broken).map(|processes| ("process", Text::plain(processes))));
    details.push(("such as", Text::plain(findings::examples(broken))));
    details.push(("cost", Text::plain(findings::cost(&broken.cost, simulated))));
    details.push(("helps", Text::plain(&broken.remedy)));
    details
}

#[cfg(test)]
mod tests;
