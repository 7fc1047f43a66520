//! Whether the user wants the program to stop, for work that no [`Progress`](crate::Progress) reaches: a statement inside
//! SQLite, a thread of a pool.
//!
//! The program sets it (Ctrl-C, SIGTERM), long work asks for it. A library that nobody interrupts never sees it set.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::BlockError;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on, work is to stop.
pub fn request() {
    REQUESTED.store(true, Ordering::Release);
}

/// Whether work is to stop.
pub fn is_requested() -> bool {
    REQUESTED.load(Ordering::Acquire)
}

/// Goes on unless work is to stop.
///
/// # Errors
/// [`BlockError::Interrupted`].
pub fn check() -> Result<(), BlockError> {
    if is_requested() { Err(BlockError::Interrupted) } else { Ok(()) }
}
