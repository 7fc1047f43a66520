//! The I/O of a program as it runs, captured into a file that [`TraceReader`](crate::TraceReader) reads.
//!
//! ```text
//!   COMMAND ── strace -f ──▶ file-level calls            no root; above page cache and file system
//!   COMMAND ── the kernel's block events ──▶ tracefs     root; what the drive gets, of every process
//! ```
//!
//! Both leave text in the form of their own tool, so that it can be kept and read again.
//!
//! # Adding a way to capture
//!
//! A file here; a row in `docs/guide/audit.md` with what it misses and what it costs.

pub mod block;
mod ending;
pub mod strace;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ending::Started;

/// Why nothing was captured.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// No command was named.
    #[error("no command to trace: give it after --, such as -- sqlite3 shop.db '.read q.sql'")]
    NoCommand,
    /// The program that traces others is not there.
    #[error(
        "strace is not installed: install it (apt-get install strace), or trace the drive as root (--block DEVICE)"
    )]
    NoStrace,
    /// The command or the tracer cannot be started.
    #[error("{program}: cannot be started: {error}")]
    Start {
        /// Which program.
        program: String,
        /// Why not.
        error: io::Error,
    },
    /// strace ended without tracing anything.
    #[error("strace could not trace {command}: {said}")]
    Refused {
        /// Which program.
        command: String,
        /// What strace said.
        said: String,
    },
    /// There are no block events.
    #[error(
        "{path}: the kernel's block events are not available ({error}): mount tracefs as root (mount -t tracefs \
         tracefs /sys/kernel/tracing), or omit --block to trace files without root"
    )]
    NoEvents {
        /// Where they were looked for.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// What is to be traced is no drive.
    #[error("{path}: neither a block device nor a file on one: {reason}")]
    NoDrive {
        /// What was named.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file for the trace cannot be written.
    #[error("{path}: cannot write the trace: {error}")]
    Output {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

/// A command and where its output goes.
#[derive(Clone, Debug)]
pub struct TracedCommand {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Whether the command's standard output goes to standard error, because standard output holds a document.
    pub output_to_stderr: bool,
    /// Set from elsewhere when the user wants the command to end; what was captured until then is there all the same.
    pub interrupted: Arc<AtomicBool>,
}

impl TracedCommand {
    /// Runs the command itself, with variables added to its environment, and waits for its end.
    ///
    /// # Errors
    /// When there is none, or it cannot be started.
    pub fn run_alone(&self, environment: &[(&str, OsString)]) -> Result<ExitStatus, CaptureError> {
        let program = self.command.first().ok_or(CaptureError::NoCommand)?;
        let mut command = Command::new(program);
        command.args(&self.command[1..]).envs(environment.iter().map(|(name, value)| (name, value)));
        self.run(command, Started::Command)
    }

    fn program(&self) -> Result<String, CaptureError> {
        let first = self.command.first().ok_or(CaptureError::NoCommand)?;
        Ok(first.to_string_lossy().into_owned())
    }

    /// Where the command's standard output goes.
    fn stdout(&self) -> Stdio {
        use std::os::fd::AsFd;
        if !self.output_to_stderr {
            return Stdio::inherit();
        }
        io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from)
    }

    /// Whether the user wants no more of it.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn run(&self, mut command: Command, started: Started) -> Result<ExitStatus, CaptureError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let ended = command
            .stdout(self.stdout())
            .spawn()
            .and_then(|mut child| ending::wait(&mut child, started, &self.interrupted));
        ended.map_err(|error| CaptureError::Start { program, error })
    }
}
