//! The protocol of the control socket: one line of JSON each way.
//!
//! ```text
//!   {"version":1,"order":"stat"}                                      {"version":1,"told":{"stat":{…}}}
//!   {"version":1,"order":"cut"}                                       {"version":1,"told":{"cut":{…}}}
//!   {"version":1,"order":{"fault":{"read_only":true}}}                {"version":1,"told":{"fault":{…}}}
//!   anything else                                                     {"version":1,"told":{"error":"…"}}
//! ```

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{DeviceStat, FaultCommand, FaultState, PowerCut};

/// Version of the protocol.
pub(super) const VERSION: u32 = 1;
/// Bytes of a command line at most, with its line end.
pub(crate) const MAX_COMMAND: usize = 64 << 10;
/// Bytes of a reply at most: a drive of many planes reports how busy each was.
pub(super) const MAX_REPLY: usize = 8 << 20;

/// A command to a running drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Report the statistics.
    Stat,
    /// Cut the power.
    Cut,
    /// Inject faults, or clear them.
    Fault(FaultCommand),
}

/// The reply to a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The statistics.
    Stat(Box<DeviceStat>),
    /// What the power cut did.
    Cut(PowerCut),
    /// The faults that are active now.
    Fault(FaultState),
    /// The command failed: why.
    Error(String),
    /// The drive is shutting down and takes no more commands.
    Ending,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandLine {
    version: u32,
    #[serde(rename = "order")]
    command: Command,
}

#[derive(Serialize, Deserialize)]
struct ReplyLine {
    version: u32,
    #[serde(rename = "told")]
    reply: Reply,
}

/// The part that is the same in every version.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// A command as a line.
pub(super) fn command_line(command: &Command) -> Result<Vec<u8>, String> {
    line(&CommandLine { version: VERSION, command: command.clone() })
}

/// A reply as a line.
pub(crate) fn reply_line(reply: &Reply) -> Vec<u8> {
    let nothing = || b"{\"version\":1,\"told\":{\"error\":\"the reply is not valid JSON\"}}\n".to_vec();
    line(&ReplyLine { version: VERSION, reply: reply.clone() }).unwrap_or_else(|_| nothing())
}

fn line(value: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut line = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    line.push(b'\n');
    Ok(line)
}

/// Reads a command.
///
/// # Errors
/// In words.
pub(crate) fn parse_command(line: &[u8]) -> Result<Command, String> {
    parse(line, "command").map(|line: CommandLine| line.command)
}

/// Reads a reply.
///
/// # Errors
/// In words.
pub(super) fn parse_reply(line: &[u8]) -> Result<Reply, String> {
    parse(line, "reply").map(|line: ReplyLine| line.reply)
}

/// Reads a line of this version.
fn parse<T: DeserializeOwned>(line: &[u8], what: &str) -> Result<T, String> {
    let wrong = |error: serde_json::Error| format!("this is not a valid {what}: {error}");
    match serde_json::from_slice(line).map_err(wrong)? {
        Versioned { version: VERSION } => serde_json::from_slice(line).map_err(wrong),
        Versioned { version } => Err(format!(
            "the other side uses version {version} of the protocol, this side version {VERSION}; use the same flashwise on \
             both sides"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{LatencySpike, Range};

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let order = FaultCommand {
            clear: true,
            latency_spike: Some(LatencySpike { extra_ns: 5, for_ns: Some(7), requests: None }),
            unreadable: vec![Range { offset_bytes: 512, length_bytes: 1024 }],
            read_only: true,
        };
        for order in [Command::Stat, Command::Cut, Command::Fault(order)] {
            let line = command_line(&order).unwrap();
            assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
            assert_eq!(parse_command(&line), Ok(order));
        }
        let short = br#"{"version":1,"order":{"fault":{"read_only":true}}}"#;
        assert_eq!(
            parse_command(short),
            Ok(Command::Fault(FaultCommand { read_only: true, ..FaultCommand::default() }))
        );
    }

    #[test]
    fn what_makes_no_sense_is_told_in_words() {
        let wrong = |line: &str| parse_command(line.as_bytes()).unwrap_err();
        assert!(wrong("GET /").contains("this is not a valid command"));
        assert!(wrong(r#"{"version":2,"order":"stat"}"#).contains(
            "the other side uses version 2 of the protocol, this \
                                                                   side version 1"
        ));
        assert!(wrong(r#"{"version":1,"order":"format"}"#).contains("unknown variant `format`"));
        assert!(wrong(r#"{"version":1,"order":"stat","more":1}"#).contains("unknown field `more`"));
        assert!(wrong(r#"{"version":1,"order":{"fault":{"reed_only":true}}}"#).contains("unknown field"));
        assert!(wrong(&"[".repeat(10_000)).contains("this is not a valid command"));
        assert!(
            parse_reply(br#"{"version":1,"told":{"error":"no"}}"#).is_ok_and(|told| told == Reply::Error("no".into()))
        );
    }
}
