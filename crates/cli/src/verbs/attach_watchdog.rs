//! The process that watches over a mounted drive. Its standard input are the drive's signs of life, its standard output
//! is the file that ends the kernel's connection to the drive; nothing else may be written there. It is no command of
//! the command line: nobody else starts it, and it has neither help nor a man page.

use std::io;
use std::process::{Command, ExitCode};

use flashwise_attach::{WatchdogEnd, watch};

use crate::failure::Failure;
use crate::output::note;

/// The only argument of such a process.
const ARGUMENT: &str = "attach-watchdog";

/// Whether this process was started as one.
pub fn is_requested() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    arguments.next().is_some_and(|first| first == ARGUMENT) && arguments.next().is_none()
}

/// The command that starts it: this program again.
pub fn command() -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("flashwise").arg(ARGUMENT);
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
