//! The process that watches over a mounted drive. Its standard input are the drive's signs of life, its standard output
//! is the file that ends the kernel's connection to the drive; nothing else may be written there.

use std::io;
use std::process::{Command, ExitCode};

use flashwise_attach::{WatchdogEnd, watch};

use crate::failure::Failure;
use crate::output::note;

/// What starts it: this program once more.
pub fn command() -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("flashwise").arg("attach-watchdog");
    command
}

/// Watches.
pub fn run() -> Result<ExitCode, Failure> {
    // Whatever ends the drive's process, this one ends after it.
    let _ = ctrlc::set_handler(|| {});
    if watch(io::stdin(), io::stdout()).map_err(Failure::error)? == WatchdogEnd::Silent {
        let words =
            "the drive has shown no sign of life for too long and was taken away: what is mounted finds I/O errors";
        note(words);
    }
    Ok(ExitCode::SUCCESS)
}
