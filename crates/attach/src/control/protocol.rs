//! What is said over a control socket: one line of JSON, and one line back.
//!
//! ```text
//!   {"version":1,"order":"stat"}                                      {"version":1,"told":{"stat":{…}}}
//!   {"version":1,"order":"cut"}                                       {"version":1,"told":{"cut":{…}}}
//!   {"version":1,"order":{"fault":{"read_only":true}}}                {"version":1,"told":{"fault":{…}}}
//!   anything else                                                     {"version":1,"told":{"error":"…"}}
//! ```

use serde::{Deserialize, Serialize};

use crate::{DeviceStat, FaultOrder, FaultState, PowerCut};

/// Version of what is said.
pub(super) const VERSION: u32 = 1;
/// Longest order, bytes, with its line end.
pub(crate) const LONGEST_ORDER: usize = 64 << 10;
/// Longest answer, bytes: a drive of many planes tells how busy each was.
pub(super) const LONGEST_ANSWER: usize = 8 << 20;

/// What a drive can be told while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Tell what you are doing.
    Stat,
    /// Cut the power.
    Cut,
    /// Let things go wrong.
    Fault(FaultOrder),
}

/// What it says to that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// What it is doing.
    Stat(Box<DeviceStat>),
    /// What the power cut did.
    Cut(PowerCut),
    /// What goes wrong now.
    Fault(FaultState),
    /// Why not.
    Error(String),
    /// It is ending, and does nothing more.
    Ending,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ordered {
    version: u32,
    order: Order,
}

#[derive(Serialize, Deserialize)]
struct Answered {
    version: u32,
    told: Told,
}

/// What stays the same in every version.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// An order as a line.
pub(super) fn order_line(order: &Order) -> Result<Vec<u8>, String> {
    line(&Ordered { version: VERSION, order: order.clone() })
}

/// An answer as a line.
pub(super) fn told_line(told: &Told) -> Vec<u8> {
    let nothing = || b"{\"version\":1,\"told\":{\"error\":\"the answer is no JSON\"}}\n".to_vec();
    line(&Answered { version: VERSION, told: told.clone() }).unwrap_or_else(|_| nothing())
}

fn line(value: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut line = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    line.push(b'\n');
    Ok(line)
}

/// Reads an order.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn parse_order(line: &[u8]) -> Result<Order, String> {
    check_version(line, "order")?;
    let ordered: Ordered = serde_json::from_slice(line).map_err(|error| format!("this is no order: {error}"))?;
    Ok(ordered.order)
}

/// Reads an answer.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn parse_told(line: &[u8]) -> Result<Told, String> {
    check_version(line, "answer")?;
    let answered: Answered = serde_json::from_slice(line).map_err(|error| format!("this is no answer: {error}"))?;
    Ok(answered.told)
}

fn check_version(line: &[u8], what: &str) -> Result<(), String> {
    let Versioned { version } = serde_json::from_slice(line).map_err(|error| format!("this is no {what}: {error}"))?;
    if version == VERSION {
        return Ok(());
    }
    Err(format!("version {version} is spoken there, version {VERSION} here; use the same flashwise on both sides"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{LatencySpike, Range};

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let order = FaultOrder {
            clear: true,
            latency_spike: Some(LatencySpike { extra_ns: 5, for_ns: Some(7), requests: None }),
            unreadable: vec![Range { offset_bytes: 512, length_bytes: 1024 }],
            read_only: true,
        };
        for order in [Order::Stat, Order::Cut, Order::Fault(order)] {
            let line = order_line(&order).unwrap();
            assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
            assert_eq!(parse_order(&line), Ok(order));
        }
        let short = br#"{"version":1,"order":{"fault":{"read_only":true}}}"#;
        assert_eq!(parse_order(short), Ok(Order::Fault(FaultOrder { read_only: true, ..FaultOrder::default() })));
    }

    #[test]
    fn what_makes_no_sense_is_told_in_words() {
        let wrong = |line: &str| parse_order(line.as_bytes()).unwrap_err();
        assert!(wrong("GET /").contains("this is no order"));
        assert!(wrong(r#"{"version":2,"order":"stat"}"#).contains("version 2 is spoken there, version 1 here"));
        assert!(wrong(r#"{"version":1,"order":"format"}"#).contains("unknown variant `format`"));
        assert!(wrong(r#"{"version":1,"order":"stat","more":1}"#).contains("unknown field `more`"));
        assert!(wrong(r#"{"version":1,"order":{"fault":{"reed_only":true}}}"#).contains("unknown field"));
        assert!(wrong(&"[".repeat(10_000)).contains("this is no order"));
        assert!(
            parse_told(br#"{"version":1,"told":{"error":"no"}}"#).is_ok_and(|told| told == Told::Error("no".into()))
        );
    }
}
