//! What an attached drive is doing, on a terminal.

use flashwise_attach::DeviceStat;

use super::Style;
use super::layout::{Align, Screen, Text};
use crate::text::device_stat as say;
use crate::text::simulation::amplification_parts;

pub(super) fn render(stat: &DeviceStat, before: Option<&DeviceStat>, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.heading(&say::title(stat));
    screen.pairs(24, say::rows(stat, before));
    if let (Some(whole), Some(parts)) = (stat.write_amplification, &stat.write_amplification_by_cause) {
        let rows = amplification_parts(whole, parts, "host");
        table(&mut screen, &["write amplification", "factor", "share"], rows.into_iter().map(Vec::from).collect());
    }
    table(&mut screen, &say::LATENCY_COLUMNS, say::latency_rows(stat).into_iter().map(Vec::from).collect());
    let told = say::remarks(stat);
    if !told.is_empty() {
        screen.gap();
    }
    told.iter().for_each(|remark| screen.bullet(remark));
    screen.finish()
}

/// A table of numbers behind a name, below an empty line; none without rows.
fn table(screen: &mut Screen, header: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    screen.gap();
    let align: Vec<_> = (0..header.len()).map(|n| if n == 0 { Align::Left } else { Align::Right }).collect();
    screen.table(header, &align, rows.into_iter().map(|row| row.into_iter().map(Text::plain).collect()).collect());
}
