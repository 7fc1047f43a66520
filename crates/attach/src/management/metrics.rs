//! Statistics of a drive for Prometheus: `GET /metrics` over HTTP/1.1.
//!
//! One request per connection. Source: RFC 9112, as far as needed for one resource without request content.

use std::io;
use std::net::{SocketAddr, TcpListener};

use super::Listener;
use super::connection::Service;
use super::exposition::exposition;
use super::http::{self, END_OF_HEAD, MAX_HEAD, Request, response};
use crate::AttachError;
use crate::command_channel::CommandSender;

pub(super) const SERVICE: Service = Service { end: END_OF_HEAD, max_request: MAX_HEAD, reply };

/// Listens at an address; gives the address with its port.
pub(crate) fn listen(at: SocketAddr) -> Result<(Listener, SocketAddr), AttachError> {
    let bind = || -> io::Result<_> {
        let socket = TcpListener::bind(at)?;
        socket.set_nonblocking(true)?;
        let bound = socket.local_addr()?;
        Ok((Listener::Metrics(socket), bound))
    };
    bind().map_err(|error| AttachError::Place {
        path: at.to_string().into(),
        reason: format!("metrics cannot be served here: {error}"),
    })
}

fn reply(head: Option<&[u8]>, commands: &mut CommandSender) -> Vec<u8> {
    match head.map_or(Err(http::HEADER_TOO_LARGE), http::parse) {
        Ok(Request { with_body }) => match commands.stat() {
            Ok(stat) => response(http::OK, Some(&exposition(&stat)), with_body),
            Err(_) => response(http::UNAVAILABLE, None, with_body),
        },
        Err(status) => response(status, None, true),
    }
}
