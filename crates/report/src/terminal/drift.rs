//! What has changed about a drive, on a terminal.

use flashwise_learn::drift::{Changed, Drift};

use super::Style;
use super::layout::{Align, Screen, Text};
use crate::printed::Printed;
use crate::text::groups::{GROUPS, Group};
use crate::text::parameters::interval_in_words;

/// The figures that have changed, before and now; the first line says how many.
pub fn render_drift(drift: &Drift, since: &str, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading("Changes of the drive");
    screen.paragraph(&headline(drift, since));
    if !drift.changed.is_empty() {
        let section = |group: &'static Group| {
            let members = group.sort_out(&drift.changed, |changed| changed.figure);
            let lines = members.into_iter().filter_map(|changed| Some(line(group.name_of(changed.figure)?, changed)));
            (group.title, lines.collect::<Vec<_>>())
        };
        let sections = GROUPS.iter().map(section).filter(|(_, lines)| !lines.is_empty()).collect();
        screen.gap();
        screen.sections(&["figure", "before", "now"], &[Align::Left, Align::Left, Align::Left], sections);
    }
    screen.finish()
}

fn headline(drift: &Drift, since: &str) -> String {
    let compared = drift.compared;
    let first = match drift.changed.len() {
        0 => format!("None of {compared} parameters has changed since {since} beyond its interval."),
        1 => format!("1 of {compared} parameters has changed since {since} beyond its interval."),
        many => format!("{many} of {compared} parameters have changed since {since} beyond their intervals."),
    };
    match drift.not_compared.len() {
        0 => first,
        1 => format!("{first} 1 more was or is inconclusive."),
        many => format!("{first} {many} more were or are inconclusive."),
    }
}

fn line(name: &str, changed: &Changed) -> Vec<Text> {
    let (before, now) = &changed.figures;
    [name, &interval_in_words(before), &interval_in_words(now)].into_iter().map(Text::plain).collect()
}
