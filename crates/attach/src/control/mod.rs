//! The client's side of a running drive's control socket: statistics, power cuts, faults; one line of JSON each way.
//!
//! ```text
//!   flashwise device stat ── protocol.rs: a command ──▶ management/ ──▶ the thread that owns the drive
//!                         ◀───────────── a reply ───────────────────────┘
//! ```
//!
//! The socket is beside the drive ([`control_path`]) and for its owner alone (mode 0600). One command a connection, of
//! at most 64 KiB within a second.

mod paths;
pub(crate) mod protocol;

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{AttachError, DeviceStat, FaultCommand, FaultState, PowerCut, nbd};
pub(crate) use paths::real_parent;
pub use paths::{control_candidates, control_path};
pub use protocol::{Command, Reply};
use protocol::{MAX_REPLY, command_line, parse_reply};

/// How long a drive may take to answer; a power cut of a large drive takes a while.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Finds a drive by what a user says of where it is: its Unix socket, with or without `unix:`, or URI; its directory or
/// the file in it; its control socket.
///
/// # Errors
/// [`AttachError::Control`] where no control socket is.
pub fn find(place: &str) -> Result<PathBuf, AttachError> {
    let candidates = control_candidates(place);
    let is_socket = |path: &&PathBuf| path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    if let Some(found) = candidates.iter().find(is_socket) {
        return Ok(found.clone());
    }
    let expected = candidates[0].display();
    let reason = format!(
        "no drive is attached here, as there is no control socket {expected}; give the drive's socket or directory, or the \
         path that it was attached with as --control"
    );
    Err(AttachError::Control { path: place.into(), reason })
}

/// Sends a command to the control socket of a drive; its reply.
///
/// # Errors
/// [`AttachError::Ended`] where the drive is gone; [`AttachError::Control`] where it cannot be asked;
/// [`AttachError::Refused`] where it refuses.
pub fn send(control: &Path, command: &Command) -> Result<Reply, AttachError> {
    let failed = |reason: String| AttachError::Control { path: control.to_owned(), reason };
    let ended = || AttachError::Ended { path: control.to_owned() };
    let line = command_line(command).map_err(failed)?;
    let answer = match exchange(control, &line) {
        Err(error) if is_end(&error) => return Err(ended()),
        answer => answer.map_err(|error| failed(reason(&error)))?,
    };
    if answer.is_empty() {
        return Err(ended());
    }
    if answer.starts_with(nbd::GREETING) {
        let reason = "this is the drive's own socket, and its control socket is not beside it; give the path of that";
        return Err(failed(reason.to_owned()));
    }
    match parse_reply(&answer).map_err(failed)? {
        Reply::Error(error) => Err(AttachError::Refused(error)),
        Reply::Ending => Err(ended()),
        told => Ok(told),
    }
}

/// The statistics of a drive.
///
/// # Errors
/// As for [`send`].
pub fn stat(control: &Path) -> Result<DeviceStat, AttachError> {
    let Reply::Stat(stat) = send(control, &Command::Stat)? else { return Err(unexpected()) };
    Ok(*stat)
}

/// Cuts a drive's power.
///
/// # Errors
/// As for [`send`].
pub fn cut(control: &Path) -> Result<PowerCut, AttachError> {
    let Reply::Cut(cut) = send(control, &Command::Cut)? else { return Err(unexpected()) };
    Ok(cut)
}

/// Injects faults into a drive, or clears them; the faults that are active then.
///
/// # Errors
/// As for [`send`].
pub fn fault(control: &Path, command: FaultCommand) -> Result<FaultState, AttachError> {
    let Reply::Fault(faults) = send(control, &Command::Fault(command))? else { return Err(unexpected()) };
    Ok(faults)
}

fn unexpected() -> AttachError {
    AttachError::Refused("the drive answered something else".to_owned())
}

fn exchange(control: &Path, line: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(control)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(line)?;
    let mut answer = Vec::new();
    BufReader::new(stream.take(MAX_REPLY as u64)).read_until(b'\n', &mut answer)?;
    Ok(answer)
}

/// Whether nobody listens any more.
fn is_end(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound};
    matches!(error.kind(), ConnectionRefused | NotFound | ConnectionReset | BrokenPipe)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock => format!("the drive did not answer within {} s", TIMEOUT.as_secs()),
        ErrorKind::PermissionDenied => "only the user who attached the drive may ask it".to_owned(),
        _ => error.to_string(),
    }
}
