//! A whole `fit` on a terminal: the result first, then what it rests on.

use flashwise_audit::Judgement;
use flashwise_tune::{Candidate, ChangeKind, Comparison};

use super::layout::{Align, Ink, Screen, Text};
use super::{Detail, Style, below_parameters, finding_list, parameter_table};
use crate::printed::Printed;
use crate::text::numbers::significant;
use crate::text::{connect, findings, gains, headings, parameters, runs};

/// Lines of a short report: two windows of 80 columns, but for the two that name the report's files.
pub(super) const SHORT_LINES: usize = 58;

/// How much of each list a report has.
#[derive(Clone, Copy)]
struct Caps {
    candidates: usize,
    /// Candidates where two objectives have a front.
    front: usize,
    findings: usize,
    /// Changes that have their commands.
    commands: usize,
    declined: usize,
    notes: usize,
    /// Quantities of the three runs.
    rows: usize,
    /// Changes that the first sentence names.
    named: usize,
    /// Whether what memory brings is said apart from the changes.
    has_memory: bool,
    /// Whether the work is described.
    has_work: bool,
}

const ALL: Caps = Caps {
    candidates: usize::MAX,
    front: usize::MAX,
    findings: usize::MAX,
    commands: usize::MAX,
    declined: usize::MAX,
    notes: usize::MAX,
    rows: usize::MAX,
    named: usize::MAX,
    has_memory: true,
    has_work: true,
};
const LONG: Caps = Caps { candidates: 3, front: 6, findings: 3, ..ALL };
const SHORTER: Caps = Caps { front: 4, findings: 2, notes: 2, declined: 2, ..LONG };
const WITHOUT_NOTES: Caps = Caps { candidates: 2, front: 3, notes: 0, declined: 1, has_memory: false, ..SHORTER };
const WITHOUT_WORK: Caps = Caps { findings: 1, commands: 4, has_work: false, ..WITHOUT_NOTES };
const SHORTEST: Caps = Caps { front: 2, commands: 2, rows: 4, named: 2, ..WITHOUT_WORK };
/// The lists of a short report, each shorter than the one before: the first is taken that lets it fit.
const SHORT: [Caps; 5] = [LONG, SHORTER, WITHOUT_NOTES, WITHOUT_WORK, SHORTEST];

/// Everything that one `fit` found out; in short, what two windows hold: what repeats is in the full one only.
pub fn render_comparison(c: &Comparison, detail: Detail, style: Style) -> Printed {
    if detail == Detail::Full {
        return rendered(c, detail, style, ALL);
    }
    let fits = |printed: &Printed| printed.lines().count() <= SHORT_LINES;
    let [larger @ .., smallest] = SHORT;
    let mut fitting = larger.into_iter().map(|caps| rendered(c, detail, style, caps)).filter(fits);
    fitting.next().unwrap_or_else(|| rendered(c, detail, style, smallest))
}

fn rendered(c: &Comparison, detail: Detail, style: Style, caps: Caps) -> Printed {
    let mut screen = Screen::new(style);
    opening(&mut screen, c, detail, caps);
    changes(&mut screen, c, detail, caps);
    heading_of_table(&mut screen, headings::THREE_RUNS, detail);
    three_runs(&mut screen, c, detail, caps);
    candidates(&mut screen, c, detail, caps);
    heading(&mut screen, headings::AUDIT_FOUND, detail);
    audit(&mut screen, c, detail, caps);
    how_to(&mut screen, c, detail, caps);
    was_done(&mut screen, c, detail);
    parameters_of(&mut screen, c, detail);
    notes(&mut screen, c, detail, caps);
    screen.finish()
}

/// The drive's figures, and what their names mean.
fn parameters_of(screen: &mut Screen, c: &Comparison, detail: Detail) {
    match detail {
        Detail::Full => {
            screen.heading(headings::DRIVE_HIDES);
            parameter_table(screen, &c.profile);
            screen.gap();
            below_parameters(screen, &c.profile);
            screen.paragraph(parameters::LEGEND);
        }
        Detail::Short => {
            screen.gap();
            screen.paragraph(&format!("Drive: {} {}", parameters::short_sentence(&c.profile), parameters::LEGEND));
        }
    }
}

fn notes(screen: &mut Screen, c: &Comparison, detail: Detail, caps: Caps) {
    let mut notes: Vec<String> = c.notes.clone();
    if detail == Detail::Full {
        notes.insert(0, gains::guarantee_sentence(c));
        notes.extend([c.search.times.clone(), gains::WHERE_IT_PAYS.to_owned()]);
    }
    if notes.is_empty() {
        return;
    }
    if caps.notes == 0 {
        screen.gap();
        return screen.paragraph(&format!("Notes: {}, which --verbose shows.", notes.len()));
    }
    heading(screen, headings::NOTES, detail);
    notes.iter().take(caps.notes).for_each(|note| screen.bullet(note));
    more(screen, notes.len().saturating_sub(caps.notes));
}

/// How many of a list were left out.
fn more(screen: &mut Screen, left_out: usize) {
    if left_out > 0 {
        screen.bullet(&format!("{left_out} more: --verbose shows all."));
    }
}

fn opening(screen: &mut Screen, c: &Comparison, detail: Detail, caps: Caps) {
    screen.heading(&gains::title(c));
    for (n, sentence) in gains::headline(c, caps.named, caps.has_memory).iter().enumerate() {
        if n == 0 { screen.strong_paragraph(sentence) } else { screen.paragraph(sentence) }
    }
    screen.gap();
    let work = match (detail, caps.has_work) {
        (Detail::Full, _) => gains::work_sentences(c) + " ",
        (Detail::Short, true) => gains::work_sentence(c) + " ",
        (Detail::Short, false) => String::new(),
    };
    screen.paragraph(&format!("{work}{}", gains::place_sentence(c)));
}

fn three_runs(screen: &mut Screen, c: &Comparison, detail: Detail, caps: Caps) {
    let shown = runs::run_rows(c).into_iter().filter(|row| detail == Detail::Full || row.is_short);
    let rows = shown.take(caps.rows).map(|row| run_row(row, detail)).collect();
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
fn changes(screen: &mut Screen, c: &Comparison, detail: Detail, caps: Caps) {
    if c.proposals.is_empty() && c.declined.is_empty() && c.guarantees.weaker.is_empty() {
        return;
    }
    heading(screen, headings::CHANGES, detail);
    for (number, proposal) in gains::in_groups(c).enumerate() {
        let what = format!(
            "{}: {} → {} ({}; {})",
            proposal.name,
            proposal.old_value,
            gains::new_value(proposal),
            gains::group(proposal.kind),
            gains::part(c, proposal)
        );
        screen.item(&(number + 1).to_string(), &what);
        if detail == Detail::Full {
            let mut details = vec![("because", Text::plain(&proposal.reason))];
            details.extend(gains::findings_of(proposal).map(|rules| ("finding", Text::plain(rules))));
            details.extend([("apply", Text::plain(&proposal.apply)), ("undo", Text::plain(&proposal.undo))]);
            screen.details(details);
        }
    }
    match detail {
        Detail::Full => c.declined.iter().for_each(|declined| screen.bullet(&gains::declined_sentence(declined))),
        Detail::Short => gains::declined_line(c, caps.declined).into_iter().for_each(|line| screen.bullet(&line)),
    }
    let group = findings::sentence(gains::group(ChangeKind::Guarantee));
    let group = group.trim_end_matches('.');
    gains::weaker_sentences(c).for_each(|weaker| screen.bullet(&format!("{group}: {weaker}")));
}

/// How to make the changes and take them back, and how a program opens the database: in short, with the number of each
/// change, and in the first of the languages.
fn how_to(screen: &mut Screen, c: &Comparison, detail: Detail, caps: Caps) {
    if detail == Detail::Full {
        return how_to_open(screen, c);
    }
    if c.proposals.is_empty() {
        return;
    }
    heading(screen, headings::APPLY_AND_UNDO, detail);
    let all = gains::in_groups(c).enumerate();
    for (number, proposal) in all.take(caps.commands) {
        let text = format!("{}; undo: {}", statement(&proposal.apply), statement(&proposal.undo));
        screen.plain_item(&(number + 1).to_string(), &text);
    }
    more(screen, c.proposals.len().saturating_sub(caps.commands));
    open_in_short(screen, c);
}

/// A statement without its place, which the line above has.
fn statement(text: &str) -> &str {
    text.strip_prefix("in each connection: ").unwrap_or(text)
}

/// How a program opens the database, in the first of the languages.
fn open_in_short(screen: &mut Screen, c: &Comparison) {
    match (&c.uri, connect::snippets(c).first()) {
        (Some(uri), _) => screen.bullet(&format!("Open {uri} with libflashwise_sqlite (--verbose).")),
        (None, Some((language, text))) => screen.bullet(&format!("{language}: {text}; other languages: --verbose.")),
        (None, None) => {}
    }
}

fn candidates(screen: &mut Screen, c: &Comparison, detail: Detail, caps: Caps) {
    if c.candidates.is_empty() {
        return;
    }
    heading_of_table(screen, headings::CANDIDATES, detail);
    let has_two = c.objectives.len() > 1;
    // Beside two objectives a short report has no space for the stage.
    let has_stage = detail == Detail::Full || !has_two;
    let row = |candidate: &Candidate| {
        let interval = match (candidate.low, candidate.high) {
            (Some(low), Some(high)) => format!("{}…{}", significant(low), significant(high)),
            _ => "one run".to_owned(),
        };
        let ratio =
            |n: usize| candidate.ratios.get(n).map_or_else(|| "–".to_owned(), |r| format!("×{}", significant(*r)));
        let mut cells = vec![candidate.label.clone()];
        cells.extend(has_stage.then(|| candidate.stage.clone()));
        cells.extend([ratio(0), interval]);
        if has_two {
            cells.extend([ratio(1), gains::front_mark(candidate).to_owned()]);
        }
        cells.into_iter().map(Text::plain).collect()
    };
    let (mut header, mut align) = (vec!["configuration"], vec![Align::Left]);
    if has_stage {
        header.push("stage");
        align.push(Align::Left);
    }
    header.extend([if has_two { c.objectives[0].name() } else { "ratio" }, "interval"]);
    align.extend([Align::Right, Align::Right]);
    if has_two {
        header.extend([c.objectives[1].name(), ""]);
        align.extend([Align::Right, Align::Left]);
    }
    let (shown, left_out) = gains::shown_candidates(c, if has_two { caps.front } else { caps.candidates });
    screen.table(&header, &align, shown.into_iter().map(row).collect());
    if left_out > 0 && has_two {
        screen.paragraph(&format!("{left_out} more on the front: --verbose shows all."));
    }
    if detail == Detail::Full {
        screen.gap();
    }
    screen.paragraph(&if detail == Detail::Full { gains::search_sentence(c) } else { gains::search_line(c) });
}

fn audit(screen: &mut Screen, c: &Comparison, detail: Detail, caps: Caps) {
    let after = (!c.applied.is_empty()).then_some(c.findings_after.as_slice());
    match detail {
        Detail::Full => {
            finding_list(screen, &c.findings, after, None, &|rule| gains::changes_with_gains(c, rule));
            let kept = findings::kept_by_both(&c.findings, after.unwrap_or(&c.findings));
            let unjudged = findings::unjudged_sentence(&c.unjudged);
            for end in [kept, unjudged].into_iter().flatten() {
                screen.gap();
                screen.paragraph(&end);
            }
        }
        Detail::Short => {
            let broken: Vec<_> =
                c.findings.iter().filter(|finding| finding.judgement == Judgement::Violation).collect();
            if broken.is_empty() {
                screen.paragraph("No rule is violated by the present settings.");
            }
            for (index, finding) in broken.iter().take(caps.findings).enumerate() {
                let parts = [Some(findings::short_line(finding)), gains::changes_by_number(c, finding.rule)];
                let line: Vec<String> = parts.into_iter().flatten().collect();
                screen.plain_item(&(index + 1).to_string(), &line.join("; "));
            }
            more(screen, broken.len().saturating_sub(caps.findings));
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
