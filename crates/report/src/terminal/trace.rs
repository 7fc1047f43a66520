//! A trace on a terminal.

use super::Style;
use super::layout::Screen;
use crate::printed::Printed;
use crate::text::trace as say;
use crate::trace::{TraceConversion, TraceInfo, TraceReplayed, TraceTpcc};

/// The requests of a trace in numbers.
pub fn render_trace_info(info: &TraceInfo, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading(&info.origin.trace);
    screen.paragraph(&say::origin_sentence(&info.origin));
    screen.gap();
    screen.pairs(24, say::rows(&info.summary));
    screen.numbers(&["most frequent lengths", "share"], say::length_rows(&info.summary));
    if !info.files.is_empty() {
        screen.gap();
        screen.paragraph(&say::files_sentence(&info.files));
    }
    screen.remarks(&say::remarks(&info.origin));
    screen.finish()
}

/// The result of a conversion.
pub fn render_trace_conversion(conversion: &TraceConversion, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.strong_paragraph(&say::conversion_sentence(conversion));
    if let Some(origin) = &conversion.origin {
        screen.paragraph(&say::origin_sentence(origin));
    }
    let mut told = say::losses(conversion);
    told.extend(conversion.origin.iter().flat_map(say::remarks));
    screen.remarks(&told);
    screen.finish()
}

/// The requests of a TPC-C run.
pub fn render_trace_tpcc(told: &TraceTpcc, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.strong_paragraph(&say::conversion_sentence(&told.conversion));
    screen.paragraph(&say::tpcc_sentence(told));
    screen.numbers(&["table or index", "pages", "reads", "writes"], say::tpcc_rows(told));
    screen.remarks(&say::losses(&told.conversion));
    screen.finish()
}

/// How a replay went.
pub fn render_trace_replay(replay: &TraceReplayed, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading(&format!("{} on {}", replay.trace, replay.target));
    screen.strong_paragraph(&say::fidelity_sentence(replay));
    screen.gap();
    screen.pairs(24, say::replay_rows(replay));
    screen.finish()
}
