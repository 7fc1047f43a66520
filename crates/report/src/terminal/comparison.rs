//! A whole `fit` on a terminal: the result first, then what it rests on.

use flashwise_audit::Judgement;
use flashwise_tune::{Candidate, ChangeKind, Comparison};

use super::layout::{Align, Ink, Screen, Text};
use super::{Detail, Style, below_parameters, finding_list, parameter_table};
use crate::printed::Printed;
use crate::text::numbers::{share, significant};
use crate::text::{connect, findings, gains, headings, parameters, runs};

/// Candidates of a short report: what is recommended, the checklist, and what comes next.
const CANDIDATES_SHORT: usize = 3;
/// Findings of a short report.
const FINDINGS_SHORT: usize = 3;

/// Everything that one `fit` found out; in short, at most 60 lines of 80 columns: what repeats is in the full one only.
pub fn render_comparison(c: &Comparison, detail: Detail, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    opening(&mut screen, c, detail);
    heading_of_table(&mut screen, headings::THREE_RUNS, detail);
    three_runs(&mut screen, c, detail);
    changes(&mut screen, c, detail);
    candidates(&mut screen, c, detail);
    heading(&mut screen, headings::AUDIT_FOUND, detail);
    audit(&mut screen, c, detail);
    if detail == Detail::Full {
        how_to_open(&mut screen, c);
    }
    was_done(&mut screen, c, detail);
    if detail == Detail::Full {
        screen.heading(headings::DRIVE_HIDES);
        parameter_table(&mut screen, &c.profile);
        screen.gap();
        below_parameters(&mut screen, &c.profile);
        screen.paragraph(parameters::LEGEND);
    }
    let mut notes: Vec<String> = match detail {
        Detail::Full => gains::guarantee_sentences(c),
        Detail::Short => gains::weaker_sentences(c).collect(),
    };
    if detail == Detail::Short {
        notes.push(format!("Drive: {} {}", parameters::short_sentence(&c.profile), parameters::LEGEND));
    }
    notes.extend(c.notes.iter().cloned());
    if detail == Detail::Full {
        notes.push(c.search.times.clone());
    }
    heading(&mut screen, headings::NOTES, detail);
    notes.iter().for_each(|note| screen.bullet(note));
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
    if detail == Detail::Full {
        for (name, run) in headings::RUNS.into_iter().zip(runs::runs(c)).skip(1) {
            screen.bullet(&format!("{name}: {}", run.label));
        }
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

/// The changes, grouped by what they cost, and those that are left out.
fn changes(screen: &mut Screen, c: &Comparison, detail: Detail) {
    if c.proposals.is_empty() && c.declined.is_empty() {
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
                gains::part(c, proposal)
            );
            screen.item(&number.to_string(), &what);
            match detail {
                Detail::Full => screen.details(vec![
                    ("because", Text::plain(&proposal.reason)),
                    ("apply", Text::plain(&proposal.apply)),
                    ("undo", Text::plain(&proposal.undo)),
                ]),
                Detail::Short => {
                    screen.below_item(&format!("{}; undo: {}", statement(&proposal.apply), statement(&proposal.undo)));
                }
            }
        }
    }
    match detail {
        Detail::Full => c.declined.iter().for_each(|declined| screen.bullet(&gains::declined_sentence(declined))),
        Detail::Short => {
            gains::declined_line(c).into_iter().for_each(|line| screen.bullet(&line));
            open_in_short(screen, c);
        }
    }
}

/// A statement without its place, which the line above has.
fn statement(text: &str) -> &str {
    text.strip_prefix("in each connection: ").unwrap_or(text)
}

/// How a program opens the database, in the first of the languages.
fn open_in_short(screen: &mut Screen, c: &Comparison) {
    match (&c.uri, connect::snippets(c).first()) {
        (Some(uri), _) => screen
            .bullet(&format!("Open {uri} with libflashwise_sqlite loaded; in Python, Node, Go and Java: --verbose.")),
        (None, Some((language, text))) => screen.bullet(&format!("{language}: {text}; other languages: --verbose.")),
        (None, None) => {}
    }
}

fn candidates(screen: &mut Screen, c: &Comparison, detail: Detail) {
    if c.candidates.is_empty() {
        return;
    }
    heading_of_table(screen, headings::CANDIDATES, detail);
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
    screen.paragraph(&if detail == Detail::Full { gains::search_sentence(c) } else { gains::search_line(c) });
}

fn audit(screen: &mut Screen, c: &Comparison, detail: Detail) {
    let after = (!c.applied.is_empty()).then_some(c.findings_after.as_slice());
    match detail {
        Detail::Full => {
            finding_list(screen, &c.findings, after, None);
            let kept = findings::kept_by_both(&c.findings, after.unwrap_or(&c.findings));
            let unjudged = findings::unjudged_sentence(&c.unjudged);
            for end in [kept, unjudged].into_iter().flatten() {
                screen.gap();
                screen.paragraph(&end);
            }
        }
        Detail::Short => {
            let broken = c.findings.iter().filter(|finding| finding.judgement == Judgement::Violation);
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

/// How a program opens the database, by language.
fn how_to_open(screen: &mut Screen, c: &Comparison) {
    let snippets = connect::snippets(c);
    if snippets.is_empty() {
        return;
    }
    screen.heading(headings::OPEN);
    screen.details(snippets.into_iter().map(|(language, text)| (language, Text::plain(text))).collect());
}

fn was_done(screen: &mut Screen, c: &Comparison, detail: Detail) {
    let Some(changed) = &c.changed else { return };
    heading(screen, headings::WAS_DONE, detail);
    screen.paragraph(&gains::changed_sentence(changed));
    changed.steps.iter().for_each(|step| screen.bullet(step));
}

/// A heading of a table, which in a short report has the names of its columns alone.
fn heading_of_table(screen: &mut Screen, text: &str, detail: Detail) {
    match detail {
        Detail::Full => screen.heading(text),
        Detail::Short => screen.gap(),
    }
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
