//! A whole `fit` on a terminal: the result first, then what it rests on.

use flashwise_tune::{Candidate, ChangeKind, Comparison};

use super::layout::{Align, Ink, Screen, Text};
use super::{Detail, Style, finding_list, parameter_table};
use crate::printed::Printed;
use crate::text::numbers::{share, significant};
use crate::text::{connect, findings, gains, headings, parameters, runs};

/// Candidates of a short report.
const CANDIDATES_SHORT: usize = 5;
/// Findings of a short report.
const FINDINGS_SHORT: usize = 3;

/// Everything that one `fit` found out; in short, two screens of 80 columns.
pub fn render_comparison(c: &Comparison, detail: Detail, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    opening(&mut screen, c, detail);
    heading(&mut screen, headings::THREE_RUNS, detail);
    three_runs(&mut screen, c, detail);
    changes(&mut screen, c, detail);
    candidates(&mut screen, c, detail);
    heading(&mut screen, headings::AUDIT_FOUND, detail);
    audit(&mut screen, c, detail);
    how_to_open(&mut screen, c, detail);
    was_done(&mut screen, c);
    if detail == Detail::Full {
        screen.heading(headings::DRIVE_HIDES);
        parameter_table(&mut screen, &c.profile);
        screen.gap();
        screen.paragraph(&parameters::recipe_sentence(&c.profile));
        screen.paragraph(parameters::LEGEND);
    }
    let drive = (detail == Detail::Short)
        .then(|| format!("Drive: {} {}", parameters::short_sentence(&c.profile), parameters::LEGEND));
    let times = (detail == Detail::Full).then(|| c.search.times.clone());
    let notes = gains::guarantee_sentences(c).into_iter().chain(drive).chain(c.notes.iter().cloned()).chain(times);
    heading(&mut screen, headings::NOTES, detail);
    notes.for_each(|note| screen.bullet(&note));
    screen.finish()
}

fn opening(screen: &mut Screen, c: &Comparison, detail: Detail) {
    let what = c.file.as_deref().unwrap_or(&c.database);
    screen.heading(&format!("{what} on {}", c.profile.device.name));
    for (n, sentence) in gains::headline(c).iter().enumerate() {
        if n == 0 { screen.strong_paragraph(sentence) } else { screen.paragraph(sentence) }
    }
    screen.gap();
    let work = if detail == Detail::Full { gains::work_sentences(c) } else { gains::work_sentence(c) };
    screen.paragraph(&format!("{work} On {}.", c.target));
}

fn three_runs(screen: &mut Screen, c: &Comparison, detail: Detail) {
    let shown = runs::run_rows(c).into_iter().filter(|row| detail == Detail::Full || row.is_short);
    let rows = shown.map(|row| run_row(row, detail)).collect();
    let align = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right];
    let [default, checklist, best] = headings::RUNS;
    screen.table(&["", default, checklist, best, headings::BEST_TO_DEFAULT], &align, rows);
    for (name, run) in headings::RUNS.into_iter().zip(runs::runs(c)).skip(1) {
        screen.bullet(&format!("{name}: {}", run.label));
    }
    if detail == Detail::Full {
        screen.gap();
        screen.paragraph(runs::FOOTNOTE);
    }
}

/// A row, in a full report with the intervals in a second line.
fn run_row(row: runs::RunRow, detail: Detail) -> Vec<Text> {
    let two_lines = |text: String, interval: Option<String>| match interval {
        Some(interval) if detail == Detail::Full => format!("{text}\n{interval}"),
        _ => text,
    };
    let ink = match row.change.better {
        Some(true) => Ink::Good,
        Some(false) => Ink::Bad,
        None => Ink::Plain,
    };
    let mut texts = vec![Text::plain(row.name)];
    texts.extend(row.cells.into_iter().map(|cell| Text::plain(two_lines(cell.value, cell.interval))));
    texts.push(Text::new(row.change.text, ink));
    texts
}

/// The changes, grouped by what they cost.
fn changes(screen: &mut Screen, c: &Comparison, detail: Detail) {
    if c.proposals.is_empty() {
        return;
    }
    heading(screen, headings::CHANGES, detail);
    let kinds = [ChangeKind::Connection, ChangeKind::File, ChangeKind::Vfs, ChangeKind::Conversion];
    let mut number = 0;
    for kind in kinds {
        for proposal in c.proposals.iter().filter(|proposal| proposal.kind == kind) {
            number += 1;
            let what = format!(
                "{}: {} → {} ({}; {})",
                proposal.name,
                proposal.old_value,
                proposal.new_value,
                gains::group(kind),
                gains::part(proposal)
            );
            screen.item(&number.to_string(), &what);
            match detail {
                Detail::Full => screen.details(vec![
                    ("because", Text::plain(&proposal.reason)),
                    ("apply", Text::plain(&proposal.apply)),
                    ("undo", Text::plain(&proposal.undo)),
                ]),
                Detail::Short => screen.details(vec![(
                    "apply",
                    Text::plain(format!("{}; undo: {}", proposal.apply, of_connection(&proposal.undo))),
                )]),
            }
        }
    }
    for declined in &c.declined {
        let is_named = declined.new_value.starts_with(&declined.name);
        let name = if is_named { String::new() } else { format!("{} ", declined.name) };
        screen.bullet(&format!(
            "{name}{} brings ×{} and is left out: {}, it has to bring ×{}.",
            declined.new_value,
            significant(declined.gain.ratio),
            gains::group(declined.kind).split(':').next().unwrap_or_default(),
            significant(declined.price)
        ));
    }
}

/// A statement without the words before it, which the line has already.
fn of_connection(statement: &str) -> &str {
    statement.strip_prefix("in each connection: ").or(statement.strip_prefix("in the URI: ")).unwrap_or(statement)
}

fn candidates(screen: &mut Screen, c: &Comparison, detail: Detail) {
    if c.candidates.is_empty() {
        return;
    }
    heading(screen, headings::CANDIDATES, detail);
    let shown = if detail == Detail::Full { c.candidates.len() } else { CANDIDATES_SHORT };
    let has_two = c.objectives.len() > 1;
    let row = |candidate: &Candidate| {
        let interval = match (candidate.low, candidate.high) {
            (Some(low), Some(high)) => format!("{}…{}", significant(low), significant(high)),
            _ => "one run".to_owned(),
        };
        let ratio =
            |n: usize| candidate.ratios.get(n).map_or_else(|| "–".to_owned(), |r| format!("×{}", significant(*r)));
        let mut cells = vec![candidate.label.clone(), candidate.stage.clone(), ratio(0), interval];
        if has_two {
            cells.push(ratio(1));
            cells.push(if candidate.is_on_front { "front" } else { "" }.to_owned());
        }
        cells.into_iter().map(Text::plain).collect()
    };
    let mut header = vec!["configuration", "stage", "ratio", "interval"];
    let mut align = vec![Align::Left, Align::Left, Align::Right, Align::Right];
    if has_two {
        header.extend([c.objectives[1].name(), ""]);
        align.extend([Align::Right, Align::Left]);
    }
    screen.table(&header, &align, c.candidates.iter().take(shown).map(row).collect());
    if detail == Detail::Full {
        screen.gap();
    }
    screen.paragraph(&gains::search_sentence(c));
}

fn audit(screen: &mut Screen, c: &Comparison, detail: Detail) {
    let after = (!c.applied.is_empty()).then_some(c.findings_after.as_slice());
    match detail {
        Detail::Full => {
            finding_list(screen, &c.findings, after, None);
            let kept = findings::kept_by_both(&c.findings, after.unwrap_or(&c.findings));
            let unjudged = findings::unjudged_sentence(&flashwise_audit::unchecked_rules(&c.profile));
            for end in [kept, unjudged].into_iter().flatten() {
                screen.gap();
                screen.paragraph(&end);
            }
        }
        Detail::Short => {
            let broken = c.findings.iter().filter(|finding| finding.violations > 0);
            let count = broken.clone().count();
            if count == 0 {
                screen.paragraph("No rule is violated by the present settings.");
            }
            for finding in broken.take(FINDINGS_SHORT) {
                let share = share(finding.violations, finding.requests);
                screen.bullet(&format!("{} {share} do not.", findings::sentence(&finding.statement)));
            }
            if count > FINDINGS_SHORT {
                screen.paragraph(&format!("{} more with --verbose.", count - FINDINGS_SHORT));
            }
        }
    }
}

/// What a program says when it opens the database.
fn how_to_open(screen: &mut Screen, c: &Comparison, detail: Detail) {
    let snippets = connect::snippets(c);
    if snippets.is_empty() {
        return;
    }
    heading(screen, headings::OPEN, detail);
    if let (Some(uri), Detail::Short) = (&c.uri, detail) {
        screen.bullet(&format!("load libflashwise_sqlite, then open {uri}"));
        c.at_open.iter().for_each(|pragma| screen.bullet(&format!("in each connection: {pragma}")));
        screen.paragraph("In Python, Node, Go and Java: --verbose.");
        return;
    }
    screen.details(snippets.into_iter().map(|(language, text)| (language, Text::plain(text))).collect());
}

fn was_done(screen: &mut Screen, c: &Comparison) {
    let Some(changed) = &c.changed else { return };
    screen.heading(headings::WAS_DONE);
    let what = if changed.in_place { "changed" } else { "a new file; the database itself is unchanged" };
    screen.paragraph(&format!("{}: {what}.", changed.file));
    changed.steps.iter().for_each(|step| screen.bullet(step));
}

/// A heading, which a short report has no line for below it.
fn heading(screen: &mut Screen, text: &str, detail: Detail) {
    match detail {
        Detail::Full => screen.heading(text),
        Detail::Short => {
            screen.gap();
            screen.strong_paragraph(text);
        }
    }
}
