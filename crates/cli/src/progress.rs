//! A progress bar on a terminal, and Ctrl-C.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flashwise_block::{BlockError, Progress};
use indicatif::{ProgressBar, ProgressStyle};

/// Ticks of a full bar.
const TICKS: u64 = 1_000;

/// The bar of a long verb.
pub struct Bar {
    bar: ProgressBar,
    stage: String,
    interrupted: Arc<AtomicBool>,
}

impl Bar {
    /// A bar on stderr if that is a terminal, and a listener to Ctrl-C.
    pub fn new() -> Self {
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&interrupted);
        // Without a handler Ctrl-C still ends the program; only the cleaning up is then left to the system.
        let _ = ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed));
        Self::interrupted_by(interrupted)
    }

    /// A bar on stderr if that is a terminal, for somebody who listens to Ctrl-C already.
    pub fn interrupted_by(interrupted: Arc<AtomicBool>) -> Self {
        Self { bar: new_bar(), stage: String::new(), interrupted }
    }
}

/// A bar that several threads advance; Ctrl-C ends the program.
pub struct SharedBar(ProgressBar);

/// A bar on stderr if that is a terminal.
pub fn shared_bar() -> SharedBar {
    SharedBar(new_bar())
}

impl SharedBar {
    /// Shows how far a stage is, 0 to 1.
    pub fn show(&self, stage: &str, fraction: f64) {
        self.0.set_message(stage.to_owned());
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
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(BlockError::Interrupted);
        }
        if self.stage != stage {
            stage.clone_into(&mut self.stage);
            self.bar.set_message(self.stage.clone());
            self.bar.reset_eta();
        }
        self.bar.set_position((fraction.clamp(0.0, 1.0) * TICKS as f64) as u64);
        Ok(())
    }
}
