//! One client of the control socket or the metrics page: one request, one reply, and the end.
//!
//! ```text
//!   Receiving ── whole request, or too long ──▶ Sending ── all sent ──▶ closed
//!       └────────── TIMEOUT, or the client goes ───┴───────────────────▶ closed
//! ```

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use crate::command_channel::CommandSender;

/// How long a client may take to send its request, and again to take the reply.
pub(super) const TIMEOUT: Duration = Duration::from_secs(1);

/// A connected socket of either family.
pub(super) trait Stream: Read + Write + AsFd + Send {}

impl<T: Read + Write + AsFd + Send> Stream for T {}

/// The service of a listener.
#[derive(Clone, Copy)]
pub(super) struct Service {
    /// The last bytes of a request.
    pub(super) end: &'static [u8],
    /// Bytes of a request at most.
    pub(super) max_request: usize,
    /// The reply to a request; `None` stands for one that is too long.
    pub(super) reply: fn(Option<&[u8]>, &mut CommandSender) -> Vec<u8>,
}

/// A client.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    service: Service,
    state: State,
    deadline: Instant,
}

enum State {
    Receiving(Vec<u8>),
    Sending { reply: Vec<u8>, sent: usize },
}

impl Connection {
    /// A client that has just connected.
    pub(super) fn new(stream: impl Stream + 'static, service: Service) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&stream, true)?;
        let (state, deadline) = (State::Receiving(Vec::new()), Instant::now() + TIMEOUT);
        Ok(Self { stream: Box::new(stream), service, state, deadline })
    }

    /// The readiness that it waits for.
    pub(super) fn poll_fd(&self) -> PollFd<'_> {
        let event = if matches!(self.state, State::Receiving(_)) { PollFlags::IN } else { PollFlags::OUT };
        PollFd::from_borrowed_fd(self.stream.as_fd(), event)
    }

    /// Whether it has not sent its whole request.
    pub(super) fn is_receiving(&self) -> bool {
        matches!(self.state, State::Receiving(_))
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn is_late(&self) -> bool {
        self.deadline <= Instant::now()
    }

    /// Goes as far as the socket allows; `false` at the end.
    pub(super) fn advance(&mut self, commands: &mut CommandSender) -> bool {
        loop {
            match self.step(commands) {
                Ok(is_open) if !is_open => return false,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// One read or write; `false` where the connection is over.
    fn step(&mut self, commands: &mut CommandSender) -> io::Result<bool> {
        match &mut self.state {
            State::Receiving(request) => {
                let Service { end, max_request, reply } = self.service;
                let Some(request) = receive(&mut *self.stream, request, end, max_request)? else { return Ok(true) };
                self.state = State::Sending { reply: reply(request, commands), sent: 0 };
                self.deadline = Instant::now() + TIMEOUT;
                Ok(true)
            }
            State::Sending { reply, sent } => {
                *sent += self.stream.write(&reply[*sent..])?;
                Ok(*sent < reply.len())
            }
        }
    }
}

/// Reads once. Returns the request when it is complete, and `Some(None)` if it is too long.
fn receive<'a>(
    stream: &mut (impl Read + ?Sized),
    request: &'a mut Vec<u8>,
    end: &[u8],
    max_request: usize,
) -> io::Result<Option<Option<&'a [u8]>>> {
    let mut bytes = [0; 512];
    let room = bytes.len().min(max_request - request.len());
    let count = match stream.read(&mut bytes[..room])? {
        0 => return Err(ErrorKind::UnexpectedEof.into()),
        count => count,
    };
    let from = request.len().saturating_sub(end.len() - 1);
    request.extend(&bytes[..count]);
    if request[from..].windows(end.len()).any(|part| part == end) {
        return Ok(Some(Some(request)));
    }
    Ok((request.len() >= max_request).then_some(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The received bytes; `None` for too many.
    fn received(mut bytes: &[u8], max_request: usize) -> io::Result<Option<Vec<u8>>> {
        let mut request = Vec::new();
        loop {
            if let Some(request) = receive(&mut bytes, &mut request, b"\r\n\r\n", max_request)? {
                return Ok(request.map(<[u8]>::to_vec));
            }
        }
    }

    #[test]
    fn an_end_is_found_wherever_the_pieces_are_cut_that_it_comes_in() {
        for length in 505..516 {
            let bytes = [vec![b'a'; length], b"\r\n\r\n".to_vec()].concat();
            assert_eq!(received(&bytes, 1000).unwrap(), Some(bytes), "{length}");
        }
        assert_eq!(received(&[b'a'; 1000], 1000).unwrap(), None);
        assert_eq!(received(b"a\r\n\r", 1000).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}
