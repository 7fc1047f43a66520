//! What to change of a PostgreSQL server, on a terminal and as statements for psql.

use flashwise_tune::Rate;
use flashwise_tune::postgres::{MeasuredSettings, PostgresTuning, SettingProposal};

use super::Style;
use super::layout::{Align, Ink, Screen, Text};
use crate::text::numbers::{change_interval, more_or, significant};

pub(super) fn render(t: &PostgresTuning, style: Style) -> String {
    let mut screen = Screen::new(style);
    let server = t.server.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
    screen.heading(&format!("{}{server} on {}", t.program, t.drive));
    screen.strong_paragraph(&headline(t));
    proposals(&mut screen, t);
    t.measured.iter().for_each(|measured| before_and_after(&mut screen, measured));
    left_alone(&mut screen, t);
    statements(&mut screen, t);
    screen.heading("Notes");
    t.notes.iter().for_each(|note| screen.bullet(note));
    screen.finish()
}

fn headline(t: &PostgresTuning) -> String {
    let count = match t.proposals.len() {
        0 => return "Keep it as it is: no setting follows from the figures of this drive.".to_owned(),
        1 => "One setting follows".to_owned(),
        n => format!("{n} settings follow"),
    };
    let count = format!("{count} from the figures of this drive");
    match &t.measured {
        None => format!("{count}. What they bring is not measured; --measure does."),
        Some(measured) => format!("{count}. {}", verdict(measured)),
    }
}

fn verdict(measured: &MeasuredSettings) -> String {
    let gain = &measured.gain;
    let interval = format!("95 % interval {}", change_interval(gain.low, gain.high));
    let many = if gain.ratio < 2.995 { "" } else { " many" };
    match measured.verdict.as_str() {
        "no-gain-seen" => format!("No gain was seen ({interval})."),
        _ => format!("Measured: {}{many} transactions a second ({interval}).", more_or(gain.ratio, "fewer")),
    }
}

fn proposals(screen: &mut Screen, t: &PostgresTuning) {
    if t.proposals.is_empty() {
        return;
    }
    screen.heading("What follows from the drive");
    for (number, proposal) in (1..).zip(&t.proposals) {
        screen.gap_between_items();
        screen
            .item(&number.to_string(), &format!("{}: {} → {}", proposal.name, proposal.old_value, proposal.new_value));
        screen.details(vec![
            ("because", Text::plain(&proposal.reason)),
            ("brings", Text::plain(&proposal.expected_gain)),
            ("acts", Text::plain(acts(proposal))),
            ("do", Text::plain(&proposal.apply)),
            ("undo", Text::plain(&proposal.undo)),
        ]);
    }
}

fn acts(proposal: &SettingProposal) -> &'static str {
    match proposal.takes_effect.as_str() {
        "restart" => "once the server was started again",
        "new-pages" => "on new pages; on all of them after VACUUM FULL",
        _ => "once the server has read its configuration again",
    }
}

fn before_and_after(screen: &mut Screen, measured: &MeasuredSettings) {
    screen.heading("Before and after");
    screen.paragraph(&format!(
        "{} in {}: {}. {} rounds of each, in turns.",
        measured.program, measured.directory, measured.workload, measured.rounds
    ));
    screen.gap();
    let row = |name: &str, rate: &Rate, ink| {
        let interval = format!("{}…{}", significant(rate.low), significant(rate.high));
        vec![Text::plain(name), Text::new(significant(rate.per_s), ink), Text::plain(interval)]
    };
    let ink = match measured.verdict.as_str() {
        "pays" => Ink::Good,
        "costs" => Ink::Bad,
        _ => Ink::Plain,
    };
    let rows = vec![row("old", &measured.before, Ink::Plain), row("new", &measured.after, ink)];
    screen.table(&["settings", "transactions/s", "95 % interval"], &[Align::Left, Align::Right, Align::Right], rows);
}

fn left_alone(screen: &mut Screen, t: &PostgresTuning) {
    if t.left_alone.is_empty() {
        return;
    }
    screen.heading("What is left as it is");
    for left in &t.left_alone {
        let verdict = match left.verdict.as_str() {
            "cannot-tell" => "cannot tell: ",
            _ => "",
        };
        screen.bullet(&format!("{} = {}: {verdict}{}", left.name, left.value, left.reason));
    }
}

fn statements(screen: &mut Screen, t: &PostgresTuning) {
    if let Some(applied) = &t.applied {
        screen.heading("What was done");
        applied.statements.iter().for_each(|statement| screen.paragraph(statement));
        screen.gap();
        match applied.needs_restart.as_slice() {
            [] => screen.paragraph("All of it acts now; the values were read back. To take it back:"),
            names => screen.paragraph(&format!("A restart is needed for {}. To take it back:", names.join(", "))),
        }
        screen.gap();
        applied.undo.iter().for_each(|statement| screen.paragraph(statement));
    } else if !t.sql.is_empty() {
        screen.heading("For psql");
        t.sql.iter().for_each(|statement| screen.paragraph(statement));
    }
}

/// The proposals as a file for psql, with reasons and, as comments, what takes them back.
pub(super) fn sql(t: &PostgresTuning) -> String {
    let mut text = format!("-- flashwise {}: {} on {}\n", t.flashwise_version, t.program, comment(&t.drive));
    for proposal in &t.proposals {
        let SettingProposal { name, old_value, reason, apply, .. } = proposal;
        text += &format!("\n-- {} is {}: {}\n{apply}\n", comment(name), comment(old_value), comment(reason));
    }
    // The last one makes the server read its configuration again.
    let [.., reload] = t.sql.as_slice() else {
        return text + "-- Nothing is to be changed.\n";
    };
    text += &format!("\n{reload}\n\n-- To take it back:\n");
    t.undo_sql.iter().for_each(|statement| text += &format!("-- {}\n", comment(statement)));
    text
}

/// What may stand in a comment: a name in quotes may hold a line end.
fn comment(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
