//! Processes by their numbers: of whom something was left over.
//!
//! Source: `kill(2)` on signal 0.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Whether no process has a number, so that what a name says to be its own is a leftover. The kernel is asked, not
/// `/proc`: that may be missing, hide other users' processes (`hidepid`), or be that of other process numbers.
pub fn is_absent(process: u32) -> bool {
    if process == std::process::id() {
        return false;
    }
    // No process has a number that the kernel's type does not hold, or 0.
    let number = i32::try_from(process).ok().and_then(Pid::from_raw);
    number.is_none_or(|number| test_kill_process(number) == Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_number_without_a_process_is_absent() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let number = child.id();
        assert!(!is_absent(number) && !is_absent(std::process::id()));
        // Of another user, unless this is root.
        assert!(!is_absent(1));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_absent(number) && is_absent(0) && is_absent(u32::MAX));
    }
}
