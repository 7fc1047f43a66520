//! A drive's own counters, on a terminal.

use super::Style;
use super::layout::Screen;
use crate::counters::CountersDocument;
use crate::printed::Printed;
use crate::text::counters as say;

/// A drive's own counters, and what follows from them.
pub fn render_counters(document: &CountersDocument, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading(&format!("Counters of {}", document.source));
    if let Some(headline) = say::headline(document) {
        screen.strong_paragraph(&headline);
        screen.gap();
    }
    screen.pairs(24, say::figure_rows(document));
    screen.gap();
    screen.pairs(24, say::counter_rows(&document.counters));
    screen.remarks(&say::remarks(document));
    screen.finish()
}
