//! The process that watches over a mounted drive. Its standard input are the drive's signs of life, its standard output
//! is the file that ends the kernel's connection to the drive; nothing else may be written there.

use std::io;
use std::process::{Command, ExitCode};

use flashwise_attach::{WatchdogEnd, watch};

use crate::failure::Failure;
use crate::output::note;

/// The command that starts it: this program again.
pub fn command() -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("flashwise").arg("attach-watchdog");
    command
}

/// Watches.
pub fn run() -> Result<ExitCode, Failure> {
    // This process must outlive the drive's process, however that ends.
    let _ = ctrlc::set_handler(|| {});
    if watch(io::stdin(), io::stdout()).map_err(Failure::error)? == WatchdogEnd::Silent {
        let words = "the drive made no progress for too long and was disconnected: its file system gets I/O errors";
        note(words);
    }
    Ok(ExitCode::SUCCESS)
}
