//! The live counters of an attached drive, on a terminal.

use flashwise_attach::DeviceStat;

use super::Style;
use super::layout::Screen;
use crate::printed::Printed;
use crate::text::device_stat as say;
use crate::text::simulation::amplification_parts;

/// The live counters of an attached drive; with an earlier sample, also the rates between the two.
pub fn render_device_stat(stat: &DeviceStat, before: Option<&DeviceStat>, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading(&say::title(stat));
    screen.pairs(24, say::rows(stat, before));
    if let (Some(whole), Some(parts)) = (stat.write_amplification, &stat.write_amplification_by_cause) {
        let rows = amplification_parts(whole, parts, "host");
        screen.numbers(&["write amplification", "factor", "share"], rows);
    }
    screen.numbers(&say::LATENCY_COLUMNS, say::latency_rows(stat));
    screen.remarks(&say::remarks(stat));
    screen.finish()
}
