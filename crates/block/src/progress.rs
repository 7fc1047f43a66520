//! How long work reports its progress, and learns that it should stop.

use crate::{BlockError, interrupt};

/// A listener to long work.
///
/// Work that takes longer than a moment calls [`Progress::advance`] a few times a second and returns its error.
pub trait Progress {
    /// Called with `stage` and the fraction of it that is done, 0 to 1.
    ///
    /// # Errors
    /// [`BlockError::Interrupted`] when the user wants the work to stop.
    fn advance(&mut self, stage: &str, fraction: f64) -> Result<(), BlockError>;
}

/// A listener that shows nothing. The work still ends when the user interrupts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn advance(&mut self, _stage: &str, _fraction: f64) -> Result<(), BlockError> {
        interrupt::check()
    }
}
