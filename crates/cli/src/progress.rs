//! A progress bar on a terminal; work that reports to it stops once the user interrupts.

use std::io::IsTerminal;

use flashwise_block::{BlockError, Progress, interrupt, shown};
use indicatif::{ProgressBar, ProgressStyle};

/// Ticks of a full bar.
const TICKS: u64 = 1_000;

/// The bar of a long verb.
pub struct Bar {
    bar: ProgressBar,
    stage: String,
}

impl Bar {
    /// A bar on stderr if that is a terminal.
    pub fn new() -> Self {
        Self { bar: new_bar(), stage: String::new() }
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

fn new_bar() -> ProgressBar {
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new(TICKS) } else { ProgressBar::hidden() };
    let template = "{elapsed_precise} [{bar:30}] {percent:>3} % {msg} (ETA {eta})";
    if let Ok(style) = ProgressStyle::with_template(template) {
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
        Ok(())
    }
}
