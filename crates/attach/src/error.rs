//! Why a drive cannot be attached.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use flashwise_block::BlockError;
use flashwise_trace::TraceError;

/// What goes wrong with an attached drive as a whole. What goes wrong with one request is told to its client.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Something else is where the socket or the file was to be, or nothing can be made there.
    #[error("{path}: {reason}")]
    Place {
        /// Where it was to be.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The system refused something that the server needs.
    #[error("{context}: {error}")]
    System {
        /// What was being done.
        context: &'static str,
        /// The system's own words.
        error: io::Error,
    },
    /// A drive's files cannot be used.
    #[error("{path}: {reason}")]
    Data {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The state of a drive is not saved at its end.
    #[error(
        "{path}: the drive's state is not saved: {reason}; the next attach goes on with the one before, and says so"
    )]
    NotSaved {
        /// The state's file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Somebody has ended the kernel's connection to a drive that is mounted.
    #[error(
        "{path}: the drive was taken away while it was mounted, by its watchdog because it showed no sign of life, or by hand"
    )]
    TakenAway {
        /// Where it was mounted.
        path: PathBuf,
    },
    /// The drive cannot be paced as asked.
    #[error("a time scale of {0} makes no sense: give a number from 0.001 to 1000000, such as 10 for ten times slower")]
    TimeScale(f64),
    /// The drive does not keep what a power cut would leave.
    #[error("this drive does not keep what a power cut would leave; attach it with --power-cuts")]
    NoPowerCuts,
    /// The drive cannot do what it was told to while it runs.
    #[error("{0}")]
    Refused(String),
    /// The metrics would be told to other machines.
    #[error(
        "metrics at {0} could be read from other machines; give a loopback address such as 127.0.0.1:{port}, or \
         --metrics-anywhere",
        port = .0.port()
    )]
    NotLoopback(SocketAddr),
    /// The drive has ended, or was killed.
    #[error("{path}: the drive that was here is gone")]
    Ended {
        /// Its control socket.
        path: PathBuf,
    },
    /// A drive that runs elsewhere cannot be asked.
    #[error("{path}: {reason}")]
    Control {
        /// Where it was asked.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The trace cannot be written.
    #[error("the capture ended: {0}")]
    Capture(#[from] TraceError),
    /// The simulated drive is lost as a whole.
    #[error(transparent)]
    Drive(#[from] BlockError),
}

impl AttachError {
    /// What a place is refused for.
    pub(crate) fn place(path: &Path) -> impl Fn(String) -> Self + Copy {
        move |reason| Self::Place { path: path.to_owned(), reason }
    }

    /// What the system refused.
    pub(crate) fn system<E: Into<io::Error>>(context: &'static str) -> impl Fn(E) -> Self + Copy {
        move |error| Self::System { context, error: error.into() }
    }
}

/// The system's message without its number.
pub(crate) fn os_message(error: &io::Error) -> String {
    error.to_string().split(" (os error").next().unwrap_or_default().to_owned()
}

/// Starts a thread with a name.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work)
}
