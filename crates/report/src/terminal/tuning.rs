//! What to change of a database on a terminal, change by change.

use flashwise_tune::{Gain, Tuning};

use super::Style;
use super::layout::{Align, Ink, Screen, Text};
use crate::printed::Printed;
use crate::text::headings;
use crate::text::numbers::{change_interval, more_or};

/// What to change of a database.
pub fn render_tuning(t: &Tuning, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading(&format!("{} on {}", t.database, t.drive));
    screen.strong_paragraph(&headline(t));
    screen.gap();
    screen.paragraph(&format!("{} runs {}, measured on {}.", t.program, t.workload, t.target));
    proposals(&mut screen, t);
    declined(&mut screen, t);
    how_to_open(&mut screen, t);
    if let Some(applied) = &t.applied {
        screen.heading(headings::WAS_DONE);
        let what = if applied.in_place { "changed" } else { "a new file; the database itself is unchanged" };
        screen.paragraph(&format!("{}: {what}.", applied.file));
        applied.steps.iter().for_each(|step| screen.bullet(step));
    }
    screen.heading(headings::NOTES);
    t.notes.iter().for_each(|note| screen.bullet(note));
    screen.finish()
}

/// From this ratio on the drive is no longer what a statement waits for: of 5 ms, 5 µs are left, about what SQLite
/// itself takes for a point SELECT (`cpu_time_ns` of `fit sqlite`: 233 ms for 40,000 of them and 20,000 INSERTs). Drive
/// time is all that the ratio knows, so that beyond it counts what nobody would see.
const DRIVE_HARDLY_USED: f64 = 1000.0;

fn is_drive_hardly_used(gain: &Gain) -> bool {
    gain.low >= DRIVE_HARDLY_USED
}

fn headline(t: &Tuning) -> String {
    let is_one = t.proposals.len() == 1;
    match &t.gain {
        Some(gain) if is_drive_hardly_used(gain) => {
            let all = if is_one { "With this change" } else { "With these changes together" };
            format!("{all}, the statements hardly wait for the drive any more: {}.", words(gain))
        }
        Some(gain) => {
            let all = if is_one { "This change brings" } else { "These changes together bring" };
            format!("{all} {}.", words(gain))
        }
        None => "Keep the current settings: no change that was tried is a gain.".to_owned(),
    }
}

/// `29.1 % more statements a second (95 % interval +27.0…+31.2 %)`.
fn words(gain: &Gain) -> String {
    if is_drive_hardly_used(gain) {
        return "less than 0.1 % of the drive time is left; SQLite's own time is what counts now".to_owned();
    }
    let many = if gain.ratio < 2.995 { "" } else { " many" };
    let more = more_or(gain.ratio, "fewer");
    format!("{more}{many} statements a second (95 % interval {})", change_interval(gain.low, gain.high))
}

fn proposals(screen: &mut Screen, t: &Tuning) {
    if t.proposals.is_empty() {
        return;
    }
    screen.heading("Recommended changes");
    for (number, proposal) in (1..).zip(&t.proposals) {
        screen.gap_between_items();
        screen
            .item(&number.to_string(), &format!("{}: {} → {}", proposal.name, proposal.old_value, proposal.new_value));
        screen.details(vec![
            ("because", Text::plain(&proposal.reason)),
            ("gain", Text::new(words(&proposal.gain), Ink::Good)),
            ("apply", Text::plain(&proposal.apply)),
            ("undo", Text::plain(&proposal.undo)),
        ]);
    }
}

fn declined(screen: &mut Screen, t: &Tuning) {
    if t.declined.is_empty() {
        return;
    }
    screen.heading("Tried and not recommended");
    let change = |gain: &Gain| change_interval(gain.low, gain.high);
    let rows = t.declined.iter().map(|declined| {
        [&declined.name, &declined.new_value, &change(&declined.gain)].map(|text| Text::plain(text.as_str())).into()
    });
    screen.table(&["change", "to", "statements a second"], &[Align::Left, Align::Left, Align::Right], rows.collect());
}

fn how_to_open(screen: &mut Screen, t: &Tuning) {
    if t.uri.is_none() && t.at_open.is_empty() {
        return;
    }
    screen.heading("How to open the database");
    if let Some(uri) = &t.uri {
        screen.bullet(&format!("load libflashwise_sqlite, then open {uri}"));
    }
    t.at_open.iter().for_each(|pragma| screen.bullet(&format!("in each connection: {pragma}")));
}
