//! A trace on a terminal.

use super::Style;
use super::layout::{Align, Screen, Text};
use crate::text::trace as say;
use crate::trace::{TraceConversion, TraceInfo, TraceReplayed, TraceTpcc};

pub(super) fn render_info(info: &TraceInfo, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.heading(&info.origin.trace);
    screen.paragraph(&say::origin_sentence(&info.origin));
    screen.gap();
    screen.pairs(24, say::rows(&info.summary));
    if !info.summary.lengths.is_empty() {
        screen.gap();
        let rows = say::length_rows(&info.summary).into_iter().map(|row| row.map(Text::plain).into()).collect();
        screen.table(&["most frequent lengths", "share"], &[Align::Left, Align::Right], rows);
    }
    if !info.files.is_empty() {
        screen.gap();
        screen.paragraph(&say::files_sentence(&info.files));
    }
    remarks(&mut screen, &say::remarks(&info.origin));
    screen.finish()
}

pub(super) fn render_conversion(conversion: &TraceConversion, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.strong_paragraph(&say::conversion_sentence(conversion));
    if let Some(origin) = &conversion.origin {
        screen.paragraph(&say::origin_sentence(origin));
    }
    let mut told = say::losses(conversion);
    told.extend(conversion.origin.iter().flat_map(say::remarks));
    remarks(&mut screen, &told);
    screen.finish()
}

pub(super) fn render_tpcc(told: &TraceTpcc, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.strong_paragraph(&say::conversion_sentence(&told.conversion));
    screen.paragraph(&say::tpcc_sentence(told));
    screen.gap();
    let rows = say::tpcc_rows(told).into_iter().map(|row| row.map(Text::plain).into()).collect();
    let right = Align::Right;
    screen.table(&["table or index", "pages", "reads", "writes"], &[Align::Left, right, right, right], rows);
    remarks(&mut screen, &say::losses(&told.conversion));
    screen.finish()
}

pub(super) fn render_replay(replay: &TraceReplayed, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.heading(&format!("{} on {}", replay.trace, replay.target));
    screen.strong_paragraph(&say::fidelity_sentence(replay));
    screen.gap();
    screen.pairs(24, say::replay_rows(replay));
    screen.finish()
}

fn remarks(screen: &mut Screen, remarks: &[String]) {
    if !remarks.is_empty() {
        screen.gap();
    }
    remarks.iter().for_each(|remark| screen.bullet(remark));
}
