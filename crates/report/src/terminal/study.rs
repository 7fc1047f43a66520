//! A study on a terminal.

use super::Style;
use super::layout::{Align, Ink, Screen, Text};
use crate::printed::Printed;
use crate::study::{StudyDocument, StudyTable, StudyVerdict};
use crate::text::headings;

/// What a study found.
pub fn render_study(study: &StudyDocument, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading(&study.title);
    screen.paragraph(&study.source);
    screen.heading(headings::CLAIMED_AND_MEASURED);
    for (n, claim) in study.claims.iter().enumerate() {
        screen.gap_between_items();
        screen.item(&(n + 1).to_string(), &claim.claim);
        let ink = match claim.verdict {
            StudyVerdict::Reproduced => Ink::Good,
            StudyVerdict::Partly => Ink::Doubtful,
            StudyVerdict::NotReproduced => Ink::Bad,
        };
        screen.details(vec![
            ("measured", Text::plain(&claim.measured)),
            ("verdict", Text::new(claim.verdict.words(), ink)),
            ("because", Text::plain(&claim.because)),
        ]);
    }
    for section in &study.sections {
        screen.heading(&section.title);
        for text in &section.text {
            screen.paragraph(text);
            screen.gap();
        }
        section.tables.iter().for_each(|table| render_table(&mut screen, table));
    }
    if !study.limits.is_empty() {
        screen.heading(headings::LIMITS);
        study.limits.iter().for_each(|limit| screen.bullet(limit));
    }
    screen.finish()
}

fn render_table(screen: &mut Screen, table: &StudyTable) {
    screen.gap();
    screen.paragraph(&table.caption);
    let header: Vec<&str> = table.columns.iter().map(String::as_str).collect();
    let mut align = vec![Align::Right; header.len()];
    align[0] = Align::Left;
    let rows = table.rows.iter().map(|row| row.iter().map(|cell| Text::plain(cell.words())).collect()).collect();
    screen.table(&header, &align, rows);
}
