//! A sweep on a terminal: a line a cell.

use flashwise_sim::sweep::{Sweep, SweepCell, SweepRow};

use super::Style;
use super::layout::{Align, Ink, Screen, Text};
use crate::printed::Printed;
use crate::table::words;
use crate::text::numbers::{grouped, significant, time, two_decimals};

/// A table with more lines than this is for the files.
const MOST_LINES: usize = 60;
const FIGURES: [&str; 5] = ["IOPS", "mean", "99 %", "99.9 %", "WA"];

/// What many simulations gave, a line each.
pub fn render_sweep(sweep: &Sweep, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading(&sweep.name);
    screen.strong_paragraph(&counts(sweep));
    screen.gap();
    let keys: Vec<&String> = sweep.cells.first().map(|cell| cell.values.keys().collect()).unwrap_or_default();
    for (number, key) in (1..).zip(&keys) {
        screen.item(&number.to_string(), key);
    }
    screen.gap();
    let numbers: Vec<String> = (1..=keys.len()).map(|number| number.to_string()).collect();
    let header: Vec<&str> = numbers.iter().map(String::as_str).chain(FIGURES).collect();
    let align = vec![Align::Right; header.len()];
    let rows = sweep.cells.iter().take(MOST_LINES).map(|cell| line(cell, &keys)).collect();
    screen.table(&header, &align, rows);
    if sweep.cells.len() > MOST_LINES {
        screen.gap();
        screen
            .paragraph(&format!("… and {} more cells, which are in the output files.", sweep.cells.len() - MOST_LINES));
    }
    for cell in sweep.cells.iter().filter(|cell| cell.error.is_some()) {
        screen.bullet(&format!("cell {}: {}", cell.index, cell.error.as_deref().unwrap_or_default()));
    }
    screen.finish()
}

fn counts(sweep: &Sweep) -> String {
    let mut text = format!("{} cells", grouped(sweep.cells.len() as u64));
    if sweep.resumed > 0 {
        text += &format!(", {} of them resumed from an earlier run", grouped(sweep.resumed));
    }
    if sweep.failed > 0 {
        text += &format!(", {} FAILED", grouped(sweep.failed));
    }
    text + "."
}

fn line(cell: &SweepCell, keys: &[&String]) -> Vec<Text> {
    let value = |key: &&String| Text::plain(cell.values.get(*key).map(words).unwrap_or_default());
    let figures = match cell.rows.first() {
        Some(row) => figures(row).map(Text::plain),
        None => ["failed", "", "", "", ""].map(|text| Text::new(text, Ink::Bad)),
    };
    keys.iter().map(value).chain(figures).collect()
}

fn figures(row: &SweepRow) -> [String; 5] {
    let ns = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), time);
    [
        significant(row.iops),
        ns(row.mean_response_ns.map(|mean| mean.round() as u64)),
        ns(row.p99_ns),
        ns(row.p99_9_ns),
        row.write_amplification.map_or_else(|| "–".to_owned(), two_decimals),
    ]
}
