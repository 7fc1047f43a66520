//! What an attached drive did, on a terminal.

use flashwise_attach::AttachReport;

use super::Style;
use super::layout::{Align, Screen, Text};
use crate::text::attach as say;

pub(super) fn render(report: &AttachReport, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.heading(&format!("What {} did", report.device));
    screen.pairs(24, say::rows(report));
    let rows = say::latency_rows(report);
    if !rows.is_empty() {
        screen.gap();
        let right = Align::Right;
        let rows = rows.into_iter().map(|row| row.map(Text::plain).into()).collect();
        screen.table(
            &["on the drive's clock", "requests", "median", "p99", "longest"],
            &[Align::Left, right, right, right, right],
            rows,
        );
    }
    let told = say::remarks(report);
    if !told.is_empty() {
        screen.gap();
    }
    told.iter().for_each(|remark| screen.bullet(remark));
    screen.finish()
}
