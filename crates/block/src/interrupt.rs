//! Whether the user wants the program to stop, for work without a [`Progress`](crate::Progress): a statement inside
//! SQLite, a thread of a pool.
//!
//! The program sets the flag (Ctrl-C, SIGTERM), long work checks it. A program that goes on afterwards, such as an
//! interpreter, clears it once the work has ended. In a library that is not interrupted it is never set.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::BlockError;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on, work is to stop.
pub fn request() {
    REQUESTED.store(true, Ordering::Release);
}

/// Work that starts from now on may run.
pub fn clear() {
    REQUESTED.store(false, Ordering::Release);
}

/// Whether work is to stop.
pub fn is_requested() -> bool {
    REQUESTED.load(Ordering::Acquire)
}

/// Fails if work is to stop.
///
/// # Errors
/// [`BlockError::Interrupted`].
pub fn check() -> Result<(), BlockError> {
    if is_requested() { Err(BlockError::Interrupted) } else { Ok(()) }
}

/// Lets `install` install signal handlers, and then ignores SIGHUP if it was ignored before: under `nohup` the program
/// continues when its terminal is closed.
pub fn install_but_keep_nohup(install: impl FnOnce()) {
    let was_ignored = is_hangup_ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    install();
    if was_ignored {
        // SAFETY: it takes two constants and no pointer, and to ignore a signal runs no code of ours.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
}

/// Whether `/proc/PID/status` shows the first signal, SIGHUP, as ignored.
fn is_hangup_ignored(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_says_whether_a_hangup_is() {
        assert!(is_hangup_ignored("Name:\tx\nSigIgn:\t0000000000001001\n"));
        assert!(!is_hangup_ignored("SigIgn:\t0000000000001000\n") && !is_hangup_ignored(""));
    }
}
