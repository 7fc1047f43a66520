//! Whether the user wants the program to stop, for work that no [`Progress`](crate::Progress) reaches: a statement
//! inside SQLite, a thread of a pool.
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

/// Lets `install` install handlers of signals, and has SIGHUP ignored afterwards where it was before: under `nohup` the
/// program goes on when its terminal is closed.
pub fn install_but_keep_nohup(install: impl FnOnce()) {
    let was_ignored = is_hangup_ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    install();
    if was_ignored {
        // SAFETY: it takes two constants and no pointer, and to ignore a signal runs no code of ours.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
}

/// Whether `/proc/PID/status` says that the first signal, SIGHUP, is ignored.
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
