//! The final counters of an attached drive, on a terminal.

use flashwise_attach::AttachReport;

use super::Style;
use super::layout::Screen;
use crate::printed::Printed;
use crate::text::attach as say;

/// The final counters of an attached drive.
pub fn render_attach(report: &AttachReport, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading(&format!("Activity of {}", report.device));
    screen.pairs(24, say::rows(report));
    let columns = ["latency (simulated time)", "requests", "median", "p99", "max"];
    screen.numbers(&columns, say::latency_rows(report));
    screen.remarks(&say::remarks(report));
    screen.finish()
}
