//! What a drive is doing, for Prometheus: `GET /metrics` over HTTP/1.1.
//!
//! ```text
//!   scraper ── head of at most 8 KiB, within a second ──▶ http.rs ──▶ an order to the drive ──▶ exposition.rs ──▶ text
//! ```
//!
//! One request a connection, one connection at a time: scrapers come every few seconds, and nobody who comes often or
//! slowly can take the drive's time. Source: RFC 9112, as far as one resource without content takes it.

mod exposition;
mod http;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use crate::AttachError;
use crate::desk::Caller;
use crate::reception::{Reception, hear, say};
use exposition::exposition;
use http::{Asked, LONGEST_HEAD, Status, response};

/// Listens at `at`, and tells who asks for it what the drive is doing; gives the address that it listens at.
pub(crate) fn listen(at: SocketAddr, caller: Caller) -> Result<(Reception, SocketAddr), AttachError> {
    let refused = |error: std::io::Error| AttachError::Place {
        path: at.to_string().into(),
        reason: format!("no metrics can be served here: {error}"),
    };
    let listener = TcpListener::bind(at).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    let reception = Reception::open("metrics", vec![listener], move |visitor| {
        let answer = match hear(visitor, http::END_OF_HEAD, LONGEST_HEAD) {
            Ok(head) => answer(&head, &caller),
            Err(error) if error.kind() == ErrorKind::InvalidData => response(Status::HeadTooLong, None, true),
            Err(_) => return,
        };
        // Who has gone does not want to know.
        let _ = say(visitor, &answer);
    })?;
    Ok((reception, bound))
}

fn answer(head: &[u8], caller: &Caller) -> Vec<u8> {
    match http::parse(head) {
        Ok(Asked::Metrics { with_body }) => match caller.stat() {
            Ok(stat) => response(Status::Done, Some(&exposition(&stat)), with_body),
            Err(_) => response(Status::Ending, None, with_body),
        },
        Err(status) => response(status, None, true),
    }
}
