//! A progress bar on a terminal; work that reports to it stops once the user interrupts.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use flashwise_block::{BlockError, Progress, interrupt, shown};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::note;

/// Ticks of a full bar.
const TICKS: u64 = 1_000;

/// Off a terminal, the first line of progress comes after this time, so that short work says nothing.
const FIRST_LINE: Duration = Duration::from_secs(2);
/// And the others as often as this.
const LINE: Duration = Duration::from_secs(10);

/// The bar of a long verb.
pub struct Bar {
    bar: ProgressBar,
    stage: String,
    /// When the next line is due, off a terminal.
    next_line: Option<Instant>,
    started: Instant,
}

impl Bar {
    /// A bar on stderr if that is a terminal.
    pub fn new() -> Self {
        Self { bar: new_bar(), stage: String::new(), next_line: None, started: Instant::now() }
    }

    /// A bar on stderr, or lines now and then if that is no terminal.
    pub fn spoken() -> Self {
        let mut bar = Self::new();
        bar.next_line = (!std::io::stderr().is_terminal()).then(|| bar.started + FIRST_LINE);
        bar
    }

    /// Says how far the work is, if a line is due.
    fn speak(&mut self, fraction: f64) {
        let now = Instant::now();
        if self.next_line.is_some_and(|due| now >= due) {
            self.next_line = Some(now + LINE);
            let percent = (fraction.clamp(0.0, 1.0) * 100.0).round();
            note(&format!("{:.0} s, {percent} %: {}", self.started.elapsed().as_secs_f64(), self.stage));
        }
    }
}

/// A bar that several threads advance.
pub struct SharedBar(ProgressBar);

/// A bar on stderr if that is a terminal.
pub fn shared_bar() -> SharedBar {
    SharedBar(new_bar())
}

impl SharedBar {
    /// Shows how far a stage is, 0 to 1.
    pub fn show(&self, stage: &str, fraction: f64) {
        self.0.set_message(shown::line(stage).into_owned());
        self.0.set_position((fraction.clamp(0.0, 1.0) * TICKS as f64) as u64);
    }
}

impl Drop for SharedBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// One line of any terminal: what is done has the columns that the rest leaves, and is cut there. A line that wraps is
/// printed again and again.
const TEMPLATE: &str = "{elapsed_precise} [{bar:20}] {percent:>3} % ETA {eta:<4} {wide_msg}";

fn new_bar() -> ProgressBar {
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new(TICKS) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn advance(&mut self, stage: &str, fraction: f64) -> Result<(), BlockError> {
        interrupt::check()?;
        if self.stage != stage {
            stage.clone_into(&mut self.stage);
            self.bar.set_message(shown::line(&self.stage).into_owned());
            self.bar.reset_eta();
        }
        self.bar.set_position((fraction.clamp(0.0, 1.0) * TICKS as f64) as u64);
        self.speak(fraction);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    /// A terminal of 80 columns that keeps its longest line.
    #[derive(Clone, Debug, Default)]
    struct Terminal(Arc<Mutex<usize>>);

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> std::io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> std::io::Result<()> {
            let mut longest = self.0.lock().unwrap();
            *longest = text.lines().map(|line| line.chars().count()).fold(*longest, usize::max);
            Ok(())
        }
        fn clear_line(&self) -> std::io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_long_stage_does_not_wrap_at_80_columns() {
        let terminal = Terminal::default();
        let bar = ProgressBar::with_draw_target(Some(TICKS), ProgressDrawTarget::term_like(Box::new(terminal.clone())));
        bar.set_style(ProgressStyle::with_template(TEMPLATE).unwrap());
        bar.set_message("latency of writes, the second time on a drive that is full of data from end to end");
        bar.set_position(TICKS / 2);
        bar.tick();
        let longest = *terminal.0.lock().unwrap();
        assert!((60..=80).contains(&longest), "{longest} columns");
    }
}
