//! A whole `fit` on a terminal, section by section.

use flashwise_tune::Comparison;

use super::layout::{Align, Ink, Screen, Text};
use super::{Style, finding_list, parameter_table};
use crate::printed::Printed;
use crate::text::{findings, gains, headings, parameters, runs};

/// Everything that one `fit` found out.
pub fn render_comparison(c: &Comparison, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    opening(&mut screen, c);
    screen.heading(headings::DRIVE_HIDES);
    parameter_table(&mut screen, &c.profile);
    screen.gap();
    screen.paragraph(&parameters::recipe_sentence(&c.profile));
    screen.heading(headings::AUDIT_FOUND);
    audit(&mut screen, c);
    screen.heading(headings::WAS_APPLIED);
    applied(&mut screen, c);
    screen.heading(headings::BEFORE_AND_AFTER);
    before_and_after(&mut screen, c);
    list(&mut screen, "Gains", c.gains.iter().map(gains::gain_sentence));
    list(&mut screen, headings::NOTES, c.notes.iter().cloned());
    screen.finish()
}

fn opening(screen: &mut Screen, c: &Comparison) {
    screen.heading(&format!("{} on {}", c.database, c.profile.device.name));
    screen.strong_paragraph(&gains::headline(c).join(" "));
    screen.gap();
    screen.paragraph(&gains::work_sentences(c));
}

fn audit(screen: &mut Screen, c: &Comparison) {
    let after = (!c.applied.is_empty()).then_some(c.findings_after.as_slice());
    finding_list(screen, &c.findings, after, None);
    let kept = findings::kept_by_both(&c.findings, after.unwrap_or(&c.findings));
    for end in [kept, findings::unjudged_sentence(&flashwise_audit::unchecked_rules(&c.profile))].into_iter().flatten()
    {
        screen.gap();
        screen.paragraph(&end);
    }
}

fn applied(screen: &mut Screen, c: &Comparison) {
    if c.applied.is_empty() {
        screen.paragraph(headings::NOTHING);
    }
    for change in &c.applied {
        screen.gap_between_items();
        let what = format!("{}: {} → {}", change.name, change.old_value, change.new_value);
        screen.item("•", &what);
        screen.details(vec![("because", Text::plain(&change.reason)), ("undo", Text::plain(&change.undo))]);
    }
}

fn before_and_after(screen: &mut Screen, c: &Comparison) {
    for (name, run) in headings::RUNS.into_iter().zip(runs::runs(c)) {
        let techniques =
            if run.techniques.is_empty() { String::new() } else { format!(": {}", run.techniques.join(", ")) };
        screen.item("", &format!("{name:<9}{}{techniques}", run.label));
    }
    screen.gap();
    let rows = runs::run_rows(c).into_iter().map(run_row).collect();
    let align = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right];
    let [default, before, after] = headings::RUNS;
    screen.table(&["", default, before, after, headings::AFTER_TO_BEFORE], &align, rows);
    screen.gap();
    screen.paragraph(runs::FOOTNOTE);
}

/// A row with the intervals in a second line.
fn run_row(row: runs::RunRow) -> Vec<Text> {
    let two_lines = |text: String, interval: Option<String>| match interval {
        Some(interval) => format!("{text}\n{interval}"),
        None => text,
    };
    let ink = match row.change.better {
        Some(true) => Ink::Good,
        Some(false) => Ink::Bad,
        None => Ink::Plain,
    };
    let mut texts = vec![Text::plain(row.name)];
    texts.extend(row.cells.into_iter().map(|cell| Text::plain(two_lines(cell.value, cell.interval))));
    texts.push(Text::new(two_lines(row.change.text, row.change.interval), ink));
    texts
}

fn list(screen: &mut Screen, heading: &str, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_some() {
        screen.heading(heading);
    }
    lines.for_each(|line| screen.bullet(&line));
}
