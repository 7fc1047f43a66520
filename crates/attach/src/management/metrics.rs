//! What a drive is doing, for Prometheus: `GET /metrics` over HTTP/1.1.
//!
//! One request a connection. Source: RFC 9112, as far as one resource without content takes it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};

use super::connection::{Service, Stream};
use super::exposition::exposition;
use super::http::{self, END_OF_HEAD, MAX_HEAD, Request, Status, response};
use super::{Accept, Listener};
use crate::AttachError;
use crate::command_channel::CommandSender;

const SERVICE: Service = Service { end: END_OF_HEAD, max_request: MAX_HEAD, reply };

/// Listens at an address; gives the address with its port.
pub(crate) fn listen(at: SocketAddr) -> Result<(Listener, SocketAddr), AttachError> {
    let bind = || -> io::Result<_> {
        let socket = TcpListener::bind(at)?;
        socket.set_nonblocking(true)?;
        let bound = socket.local_addr()?;
        Ok((Listener { socket: Box::new(socket), service: SERVICE }, bound))
    };
    bind().map_err(|error| AttachError::Place {
        path: at.to_string().into(),
        reason: format!("no metrics can be served here: {error}"),
    })
}

impl Accept for TcpListener {
    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    fn accept(&self) -> io::Result<Box<dyn Stream>> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(Box::new(stream))
    }
}

fn reply(head: Option<&[u8]>, commands: &mut CommandSender) -> Vec<u8> {
    match head.map_or(Err(Status::HeaderTooLarge), http::parse) {
        Ok(Request { with_body }) => match commands.stat() {
            Ok(stat) => response(Status::Ok, Some(&exposition(&stat)), with_body),
            Err(_) => response(Status::Unavailable, None, with_body),
        },
        Err(status) => response(status, None, true),
    }
}
