//! What is to be changed of a database server, on a terminal: the parts that all servers have.

use flashwise_block::grouped;
use flashwise_tune::{
    AttachedPlace, CountedReason, LeftAlone, MeasuredSettings, Rate, ReplayedLog, ServerTuning, SettingProposal,
    Written,
};

use super::layout::{Align, Ink, Screen, Text};
use crate::text::headings;
use crate::text::numbers::{bytes, change_interval, more_or, significant};

/// Reasons of a kind that are shown; the document has more.
const REASONS_SHOWN: usize = 8;

/// All but statements and notes, which are each server's own.
pub(super) fn render(screen: &mut Screen, t: &ServerTuning) {
    let server = t.server.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
    screen.heading(&format!("{}{server} on {}", t.program, t.drive));
    screen.strong_paragraph(&headline(t));
    proposals(screen, &t.proposals);
    t.measured.iter().for_each(|measured| before_and_after(screen, measured));
    left_alone(screen, &t.left_alone);
}

/// Notes at the end.
pub(super) fn notes(screen: &mut Screen, notes: &[String]) {
    screen.heading(headings::NOTES);
    notes.iter().for_each(|note| screen.bullet(note));
}

fn headline(t: &ServerTuning) -> String {
    if let Some(measured) = t.measured.as_ref().filter(|measured| measured.verdict != "pays") {
        let rest = match t.proposals.len() {
            0 => "Keep the current settings",
            _ => "Keep the current settings of the server",
        };
        return format!("{rest}: the ones that this drive's figures suggest brought no gain. {}", verdict(measured));
    }
    let count = match t.proposals.len() {
        0 => return "Keep the current settings: this drive's figures suggest no change.".to_owned(),
        1 => "Change one setting".to_owned(),
        n => format!("Change {n} settings"),
    };
    let count = format!("{count} to suit this drive");
    match &t.measured {
        None => format!("{count}. Their gain was not measured: use --measure."),
        Some(measured) => format!("{count}. {}", verdict(measured)),
    }
}

fn verdict(measured: &MeasuredSettings) -> String {
    let gain = &measured.gain;
    let interval = format!("95 % interval {}", change_interval(gain.low, gain.high));
    let many = if gain.ratio < 2.995 { "" } else { " many" };
    match measured.verdict.as_str() {
        "no-gain-seen" => format!("No gain was measured ({interval})."),
        _ => format!("Measured: {}{many} transactions a second ({interval}).", more_or(gain.ratio, "fewer")),
    }
}

fn proposals(screen: &mut Screen, proposals: &[SettingProposal]) {
    if proposals.is_empty() {
        return;
    }
    screen.heading("Recommended settings");
    for (number, proposal) in (1..).zip(proposals) {
        screen.gap_between_items();
        screen
            .item(&number.to_string(), &format!("{}: {} → {}", proposal.name, proposal.old_value, proposal.new_value));
        screen.details(vec![
            ("because", Text::plain(&proposal.reason)),
            ("gain", Text::plain(&proposal.expected_gain)),
            ("effect", Text::plain(acts(proposal))),
            ("apply", Text::plain(&proposal.apply)),
            ("undo", Text::plain(&proposal.undo)),
        ]);
    }
}

fn acts(proposal: &SettingProposal) -> &'static str {
    match proposal.takes_effect.as_str() {
        "restart" => "after a restart of the server",
        "at-once" => "at once, until the server restarts",
        "new-instance" => "in a newly initialised instance",
        "new-pages" => "on new pages; on all pages after VACUUM FULL",
        _ => "after the server reloads its configuration",
    }
}

fn before_and_after(screen: &mut Screen, measured: &MeasuredSettings) {
    screen.heading(headings::BEFORE_AND_AFTER);
    screen.paragraph(&format!(
        "{} {}: {}. {} rounds of each, alternating.",
        measured.program,
        place_of(measured),
        measured.workload,
        measured.rounds
    ));
    screen.gap();
    let written = measured.attached.as_ref().and_then(|place| place.before.zip(place.after));
    let row = |name: &str, rate: &Rate, written: Option<Written>, ink| {
        let interval = format!("{}…{}", significant(rate.low), significant(rate.high));
        let mut row = vec![Text::plain(name), Text::new(significant(rate.per_s), ink), Text::plain(interval)];
        let each = written.into_iter().flat_map(|each| [each.host_bytes, each.flash_bytes]);
        row.extend(each.map(|each| Text::plain(bytes(each.bytes()))));
        row
    };
    let ink = match measured.verdict.as_str() {
        "pays" => Ink::Good,
        "costs" => Ink::Bad,
        _ => Ink::Plain,
    };
    let rows = vec![
        row("old", &measured.before, written.map(|(before, _)| before), Ink::Plain),
        row("new", &measured.after, written.map(|(_, after)| after), ink),
    ];
    let columns = ["settings", "transactions/s", "95 % interval", "host/transaction", "flash/transaction"];
    let shown = if written.is_some() { columns.len() } else { 3 };
    let aligned = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right];
    screen.table(&columns[..shown], &aligned[..shown], rows);
    measured.log.iter().for_each(|log| replayed(screen, log));
}

/// Where the data was. The directory of an attached drive is gone with it.
fn place_of(measured: &MeasuredSettings) -> String {
    match &measured.attached {
        None => format!("in {}", measured.directory),
        Some(AttachedPlace { file_system, slower: 1, .. }) => format!("on the attached drive ({file_system})"),
        Some(AttachedPlace { file_system, slower, .. }) => {
            format!("on the attached drive ({file_system}, {slower} times as slow)")
        }
    }
}

/// What of a log was replayed, and what not.
fn replayed(screen: &mut Screen, log: &ReplayedLog) {
    screen.heading("From the log");
    screen.paragraph(&format!(
        "{} transactions of {} statements and {} sessions, on {} connections. {} were done in all rounds, {} met a lock or \
         a conflict, of {} the server refused a statement.",
        grouped(log.transactions),
        grouped(log.statements),
        grouped(log.sessions),
        log.connections,
        grouped(log.played),
        grouped(log.conflicts),
        grouped(log.refused),
    ));
    if let Some(covered) = log.calls_covered {
        screen.paragraph(&format!(
            "The log has samples of the statements that are {:.1} % of the counted calls.",
            covered * 100.0
        ));
    }
    reasons(screen, "refused", &log.refusals);
    reasons(screen, "left out", &log.left_out);
}

fn reasons(screen: &mut Screen, what: &str, counted: &[CountedReason]) {
    for CountedReason { reason, count, example } in counted.iter().take(REASONS_SHOWN) {
        let example = if example.is_empty() { String::new() } else { format!(" ({example})") };
        screen.bullet(&format!("{what}: {} × {reason}{example}", grouped(*count)));
    }
}

fn left_alone(screen: &mut Screen, left_alone: &[LeftAlone]) {
    if left_alone.is_empty() {
        return;
    }
    screen.heading("Settings left unchanged");
    for left in left_alone {
        let verdict = match left.verdict.as_str() {
            "cannot-tell" => "inconclusive: ",
            "not-confirmed" => "not confirmed: ",
            _ => "",
        };
        let value = if left.value.is_empty() { "''" } else { &left.value };
        screen.bullet(&format!("{} = {value}: {verdict}{}", left.name, left.reason));
    }
}
