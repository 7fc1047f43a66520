//! The control socket and the metrics page of a running drive, served by one poll loop on a thread of its own.
//!
//! ```text
//!   control socket ─┐                 ┌─ control.rs: a line of JSON ──────────────┐
//!                   ├▶ connection.rs ─┤                                            ├─▶ CommandSender ─▶ server.rs
//!   metrics port  ──┘   whole request └─ metrics.rs: HTTP ─ exposition.rs: text ──┘
//! ```
//!
//! **Why not the server's poll loop.** A completion is due to the microsecond, and with a mounted file system the
//! server's thread must not allocate memory. A snapshot keeps that thread for 2 to 5 µs: it swaps a table of times and
//! copies counters. The new table, the merging, the percentiles and the text or JSON take another 400 µs, and allocate
//! (measured after 2,000 writes, optimised build): all that is done here. Both listeners share this thread, which has
//! normal priority: their requests are few and may wait.
//!
//! **Limits of clients.** Sockets never block: a client that is slow or idle takes only one of its listener's
//! [`CONNECTIONS`], and loses that after [`connection::TIMEOUT`], or at once when one more connects: the one that has
//! been without a complete request longest is closed. So idle clients keep no other client waiting. A command does
//! block the loop until the server's thread has executed it: no other request could be served before either.

mod connection;
mod control;
mod exposition;
mod http;
mod metrics;

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use crate::AttachError;
use crate::command_channel::CommandSender;
use crate::event_fd::EventFd;
use crate::poll::poll;
use crate::socket::Socket;
use connection::Connection;
pub(crate) use control::listen as listen_for_control;
pub(crate) use metrics::listen as listen_for_metrics;

/// Clients of a listener that are served at once.
const CONNECTIONS: usize = 8;
/// How long no client is accepted where the process has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A socket that clients connect to.
pub(crate) enum Listener {
    Control(Socket),
    Metrics(TcpListener),
}

impl Listener {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Control(socket) => socket.fd(),
            Self::Metrics(socket) => socket.as_fd(),
        }
    }

    /// The next client in the backlog.
    fn accept(&self) -> io::Result<Connection> {
        match self {
            Self::Control(socket) => Connection::new(socket.accept()?, control::SERVICE),
            Self::Metrics(socket) => Connection::new(socket.accept()?.0, metrics::SERVICE),
        }
    }
}

/// The thread; dropping it ends it and closes its listeners.
pub(crate) struct Management {
    /// `None` at the end.
    listeners: Option<Sender<Listener>>,
    event_fd: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Management {
    /// Starts the thread.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(crate) fn start(commands: CommandSender) -> Result<Self, AttachError> {
        let (listeners, added) = channel();
        let event_fd = Arc::new(EventFd::new()?);
        let event = Arc::clone(&event_fd);
        let poll_loop =
            PollLoop { added, event, commands, listeners: Vec::new(), connections: Vec::new(), paused_until: None };
        let thread = crate::error::spawn("management", || poll_loop.run()).map_err(AttachError::system("a thread"))?;
        Ok(Self { listeners: Some(listeners), event_fd, thread: Some(thread) })
    }

    /// Serves one more listener.
    pub(crate) fn add(&self, listener: Listener) {
        // The thread ends before its owner only where it cannot poll.
        let _ = self.listeners.as_ref().map(|listeners| listeners.send(listener));
        self.event_fd.notify();
    }
}

impl Drop for Management {
    fn drop(&mut self) {
        self.listeners = None;
        self.event_fd.notify();
        // A panic has been reported where it happened.
        self.thread.take().map(JoinHandle::join);
    }
}

/// Closes the connection of a listener that has been open longest, where it has as many as it may; one that sends no
/// request before one that takes no reply.
fn evict_connection(connections: &mut Vec<(usize, Connection)>, listener: usize) {
    let of_listener = connections.iter().enumerate().filter(|(_, (n, _))| *n == listener);
    if of_listener.clone().count() < CONNECTIONS {
        return;
    }
    let first = of_listener.min_by_key(|(_, (_, connection))| (!connection.is_receiving(), connection.deadline()));
    first.map(|(place, _)| place).into_iter().for_each(|place| drop(connections.remove(place)));
}

struct PollLoop {
    added: Receiver<Listener>,
    /// Notified of new listeners, and of the end.
    event: Arc<EventFd>,
    commands: CommandSender,
    listeners: Vec<Listener>,
    /// Each with the index of its listener.
    connections: Vec<(usize, Connection)>,
    /// No client is accepted before.
    paused_until: Option<Instant>,
}

impl PollLoop {
    fn run(mut self) {
        while self.take_listeners() && self.poll_once().is_ok() {}
    }

    /// Takes new listeners; `false` at the end.
    fn take_listeners(&mut self) -> bool {
        self.event.take();
        loop {
            match self.added.try_recv() {
                Ok(listener) => self.listeners.push(listener),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Waits, serves the sockets that are ready, and closes the connections whose time is over.
    fn poll_once(&mut self) -> io::Result<()> {
        self.paused_until = self.paused_until.filter(|&until| until > Instant::now());
        let (accepting, timeout) = (self.accepting(), self.timeout());
        let mut fds = vec![PollFd::new(&*self.event, PollFlags::IN)];
        let fd = |&n: &usize| PollFd::from_borrowed_fd(self.listeners[n].fd(), PollFlags::IN);
        fds.extend(accepting.iter().map(fd));
        fds.extend(self.connections.iter().map(|(_, connection)| connection.poll_fd()));
        poll(&mut fds, timeout)?;
        let ready: Vec<bool> = fds[1..].iter().map(|fd| !fd.revents().is_empty()).collect();
        let (listeners_ready, connections_ready) = ready.split_at(accepting.len());
        let (commands, mut ready) = (&mut self.commands, connections_ready.iter());
        self.connections.retain_mut(|(_, connection)| {
            let is_ready = ready.next() == Some(&true);
            // Bytes that arrived in time are read even if a command has blocked this loop until later.
            (!is_ready || connection.advance(commands)) && !connection.is_late()
        });
        for (&n, _) in accepting.iter().zip(listeners_ready).filter(|&(_, &is_ready)| is_ready) {
            match self.listeners[n].accept() {
                Ok(mut connection) => {
                    // A complete request is served before a later client can evict its connection.
                    if connection.advance(&mut self.commands) {
                        evict_connection(&mut self.connections, n);
                        self.connections.push((n, connection));
                    }
                }
                // Out of file descriptors: to try again at once would only take the processor from the drive.
                Err(_) => self.paused_until = Some(Instant::now() + ACCEPT_PAUSE),
            }
        }
        Ok(())
    }

    /// Listeners whose clients are accepted.
    fn accepting(&self) -> Vec<usize> {
        (0..self.listeners.len()).filter(|_| self.paused_until.is_none()).collect()
    }

    /// Until the first deadline.
    fn timeout(&self) -> Option<Duration> {
        let deadlines = self.connections.iter().map(|(_, connection)| connection.deadline());
        let first = deadlines.chain(self.paused_until).min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }
}
