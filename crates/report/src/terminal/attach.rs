//! What an attached drive did, on a terminal.

use flashwise_attach::AttachReport;

use super::Style;
use super::layout::Screen;
use crate::printed::Printed;
use crate::text::attach as say;

/// What an attached drive did.
pub fn render_attach(report: &AttachReport, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading(&format!("What {} did", report.device));
    screen.pairs(24, say::rows(report));
    let columns = ["on the drive's clock", "requests", "median", "p99", "longest"];
    screen.numbers(&columns, say::latency_rows(report));
    screen.remarks(&say::remarks(report));
    screen.finish()
}
