//! Why a drive cannot be attached.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use flashwise_block::BlockError;
use flashwise_trace::TraceError;

/// Errors of an attached drive as a whole. An error of one request goes to its client.
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
        /// The failed operation.
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
        "{path}: the drive's state was not saved: {reason}; the next attach continues from the earlier state, with a \
         note"
    )]
    NotSaved {
        /// The state's file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The kernel's connection to a mounted drive was ended from outside.
    #[error("{path}: the mounted drive was disconnected, by its watchdog because it made no progress, or by a user")]
    TakenAway {
        /// Where it was mounted.
        path: PathBuf,
    },
    /// The requested pace is impossible.
    #[error(
        "a time scale of {0} is not possible: give a number from 0.001 to 1000000, such as 10 for ten times slower"
    )]
    TimeScale(f64),
    /// Power cuts are not enabled for the drive.
    #[error("this drive cannot simulate power cuts; attach it with --power-cuts")]
    NoPowerCuts,
    /// The running drive refuses a command.
    #[error("{0}")]
    Refused(String),
    /// The metrics would be readable from other machines.
    #[error(
        "other machines could read the metrics at {0}; give a loopback address such as 127.0.0.1:{port}, or \
         --metrics-anywhere",
        port = .0.port()
    )]
    NotLoopback(SocketAddr),
    /// The drive has ended, or was killed.
    #[error("{path}: the drive was detached or killed")]
    Ended {
        /// Its control socket.
        path: PathBuf,
    },
    /// A running drive cannot be reached.
    #[error("{path}: {reason}")]
    Control {
        /// Its place.
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
    /// An error about a place.
    pub(crate) fn place(path: &Path) -> impl Fn(String) -> Self + Copy {
        move |reason| Self::Place { path: path.to_owned(), reason }
    }

    /// An error of the system.
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
