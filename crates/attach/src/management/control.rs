//! The server's side of the control socket: a line of JSON is a [`Command`](crate::control::Command), and so is its
//! reply.

use std::path::Path;

use super::Listener;
use super::connection::Service;
use crate::AttachError;
use crate::command_channel::CommandSender;
use crate::control::protocol::{MAX_COMMAND, Reply, parse_command, reply_line};
use crate::socket::Socket;

pub(super) const SERVICE: Service = Service { end: b"\n", max_request: MAX_COMMAND, reply };

/// Listens at a path, for its owner only.
pub(crate) fn listen(path: &Path) -> Result<Listener, AttachError> {
    Socket::bind_private(path).map(Listener::Control)
}

fn reply(line: Option<&[u8]>, commands: &mut CommandSender) -> Vec<u8> {
    let too_long = || Err(format!("a command is a line of at most {MAX_COMMAND} bytes"));
    let reply =
        line.map_or_else(too_long, parse_command).map_or_else(Reply::Error, |command| commands.execute(command));
    reply_line(&reply)
}
