//! Where clients come to.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flashwise_block::output::Published;

use crate::AttachError;

/// A listening socket; removed from the file system with its server.
#[derive(Debug)]
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    made: Published,
}

impl Socket {
    /// Listens at a path. A leftover socket of an ended server is replaced; nothing else is.
    pub(crate) fn bind(path: &Path) -> Result<Self, AttachError> {
        Self::bind_as(path, listen)
    }

    /// The same, for its owner only.
    pub(crate) fn bind_private(path: &Path) -> Result<Self, AttachError> {
        Self::bind_as(path, listen_in_private)
    }

    fn bind_as(path: &Path, listen: impl Fn(&Path) -> io::Result<UnixListener>) -> Result<Self, AttachError> {
        let refused = AttachError::place(path);
        remove_stale(path).map_err(refused)?;
        let listener = listen(path).map_err(|e| refused(format!("a socket cannot be created here: {e}")))?;
        let made = Published::found(path).map_err(|e| refused(e.to_string()))?;
        let socket = Self { listener, path: path.to_owned(), made };
        socket.listener.set_nonblocking(true).map_err(|e| refused(e.to_string()))?;
        Ok(socket)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The next client that waits.
    pub(crate) fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().map(|(stream, _)| stream)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Only where the name still means the socket: somebody may have put something else there.
        let _ = self.made.remove();
    }
}

#[allow(clippy::disallowed_methods, reason = "a name that exists makes it fail")]
fn listen(path: &Path) -> io::Result<UnixListener> {
    UnixListener::bind(path)
}

/// Listens at a path that has mode 0600 from its first moment on: Linux gives a socket's path the mode of the socket.
#[allow(clippy::disallowed_methods, reason = "a name that exists makes it fail")]
fn listen_in_private(path: &Path) -> io::Result<UnixListener> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
    let made = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::fs::fchmod(&made, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    bind(&made, &SocketAddrUnix::new(path)?)?;
    listen(&made, 128)?;
    Ok(made.into())
}

/// How long it is waited for a server whose backlog is full, to know that there is one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Connects, or fails after a time if the server accepts no connection: its backlog may be full.
pub(crate) fn connect_within(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt};
    let made = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&made, sockopt::Timeout::Send, Some(timeout))?;
    connect(&made, &SocketAddrUnix::new(path)?)?;
    Ok(made.into())
}

/// Removes a socket without a listener.
#[allow(clippy::disallowed_methods, reason = "a socket that nobody listens to, or that was made here")]
pub(crate) fn remove_stale(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::FileTypeExt;
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.to_string()),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            Err("this is not a socket and is not replaced; give a path that does not exist".to_owned())
        }
        Ok(_) => match connect_within(path, CONNECT_TIMEOUT) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).map_err(|e| e.to_string())
            }
            _ => Err("another server listens here; stop it, or give another path".to_owned()),
        },
    }
}
