//! Buffer pools on a terminal: a line a pool.

use flashwise_bufferpool::simulate::{PoolReport, PoolResult};

use super::Style;
use super::layout::{Align, Screen, Text};
use crate::printed::Printed;
use crate::text::pool as say;

/// Buffer pools side by side.
pub fn render_pool(report: &PoolReport, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading(&format!("Buffer pools on {}", report.trace));
    screen.paragraph(&say::counts(report));
    let verdicts = say::verdicts(report);
    if !verdicts.is_empty() {
        screen.gap();
        verdicts.iter().for_each(|verdict| screen.strong_paragraph(verdict));
    }
    screen.gap();
    let columns = say::columns(report);
    let header: Vec<&str> = columns.iter().map(|column| column.title).collect();
    let align_of = |is_number| if is_number { Align::Right } else { Align::Left };
    let align: Vec<Align> = columns.iter().map(|column| align_of(column.is_number)).collect();
    let line = |result: &PoolResult| columns.iter().map(|column| Text::plain((column.cell)(result))).collect();
    screen.table(&header, &align, say::sorted(report).into_iter().map(line).collect());
    screen.gap();
    screen.paragraph(&say::explanation(report));
    screen.finish()
}
