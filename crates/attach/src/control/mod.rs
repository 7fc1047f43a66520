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

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::socket::connect_within;
use crate::{AttachError, DeviceStat, FaultCommand, FaultState, PowerCut, nbd};
pub(crate) use paths::real_parent;
pub use paths::{control_candidates, control_path};
pub use protocol::{Command, Reply};
use protocol::{MAX_REPLY, command_line, parse_reply};

/// Time limit of a reply, from the connection to the last byte; a power cut of a large drive takes a while.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The same for its statistics, which it has at hand.
const STAT_TIMEOUT: Duration = Duration::from_secs(5);

/// Finds a drive by the user's text: its Unix socket, with or without `unix:`, or URI; its directory or the file in it;
/// its control socket.
///
/// # Errors
/// [`AttachError::Control`] if there is no control socket.
pub fn find(place: &str) -> Result<PathBuf, AttachError> {
    let candidates = control_candidates(place);
    let is_socket = |path: &&PathBuf| path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    if let Some(found) = candidates.iter().find(is_socket) {
        return Ok(found.clone());
    }
    let expected = candidates[0].display();
    let reason = format!(
        "no drive is attached here: the control socket {expected} does not exist; give the drive's socket or \
         directory, or the path given to --control"
    );
    Err(AttachError::Control { path: place.into(), reason })
}

/// Sends a command to the control socket of a drive; returns its reply.
///
/// # Errors
/// [`AttachError::Ended`] if the drive was detached; [`AttachError::Control`] if it cannot be reached;
/// [`AttachError::Refused`] if it refuses.
pub fn send(control: &Path, command: &Command) -> Result<Reply, AttachError> {
    let failed = |reason: String| AttachError::Control { path: control.to_owned(), reason };
    let ended = || AttachError::Ended { path: control.to_owned() };
    let line = command_line(command).map_err(failed)?;
    let timeout = if *command == Command::Stat { STAT_TIMEOUT } else { TIMEOUT };
    let answer = match exchange(control, &line, timeout) {
        Err(error) if is_end(&error) => return Err(ended()),
        answer => answer.map_err(|error| failed(reason(&error, timeout)))?,
    };
    if answer.is_empty() {
        return Err(ended());
    }
    if answer.starts_with(nbd::GREETING) {
        let reason = "this is the drive's NBD socket, and its control socket is not beside it; give the path of the \
                      control socket";
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
    AttachError::Refused("the drive sent an unexpected reply".to_owned())
}

fn exchange(control: &Path, line: &[u8], timeout: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + timeout;
    let left = || {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::Error::from(ErrorKind::WouldBlock)) } else { Ok(Some(left)) }
    };
    let mut stream = connect_within(control, timeout)?;
    stream.set_write_timeout(left()?)?;
    stream.write_all(line)?;
    // Whoever sends a byte now and then has no more time than others.
    let (mut answer, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    while answer.len() < MAX_REPLY && !answer.ends_with(b"\n") {
        stream.set_read_timeout(left()?)?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => answer.extend(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let end = answer.iter().position(|&byte| byte == b'\n').map_or(answer.len(), |end| end + 1);
    answer.truncate(end);
    Ok(answer)
}

/// Whether the error means that nothing listens any more.
fn is_end(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound};
    matches!(error.kind(), ConnectionRefused | NotFound | ConnectionReset | BrokenPipe)
}

fn reason(error: &io::Error, timeout: Duration) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("the drive did not reply within {} s; it may be stopped, or very busy", timeout.as_secs())
        }
        ErrorKind::PermissionDenied => "only the user who attached the drive may send commands to it".to_owned(),
        _ => error.to_string(),
    }
}
