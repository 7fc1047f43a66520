//! fio's latency log: `time, latency, direction, size, offset, priority[, issued]`, written with `log_offset=1`.
//!
//! The time is that of the completion, in whole ms from the start; the latency is in ns; the direction is 0 for a read,
//! 1 for a write, 2 for a trim. Where the seventh field is there (`log_issue_time=1`) it is the time of submission in
//! ns; elsewhere that is the completion minus the latency, and only as exact as a millisecond. Requests are put back
//! into the order of their submission. Source: fio's HOWTO, *Log File Formats*.

use flashwise_block::{Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::{MILLIS, NANOS, bytes_of, quoted, time};
use super::source::{LineParser, RecordSource, Sorted, TextSource};
use crate::input::{Input, lines::Lines};
use crate::record::TraceRecord;

struct Parser;

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let is_one = |line: &&&[u8]| {
        let fields: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
        let rest_is_spaced = fields[1..].iter().all(|field| field.starts_with(b" "));
        let is_number = |field: &&[u8]| field.trim_ascii().iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'x');
        (5..=7).contains(&fields.len()) && rest_is_spaced && fields.iter().all(is_number)
    };
    let is_all = !head.lines.is_empty() && head.lines.iter().filter(is_one).count() * 4 >= head.lines.len() * 3;
    is_all.then_some(
        "five to seven numbers a line, a comma and a blank between them: fio's log, taken for one of latencies",
    )
}

pub(super) fn open(input: Input, _: &Units) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(Sorted::new(TextSource::new(Lines::new(input.into_bytes()), Parser))))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRecord>, String> {
        let mut fields = [&line[..0]; 7];
        let mut count = 0;
        for field in line.split(|&byte| byte == b',') {
            if let Some(place) = fields.get_mut(count) {
                *place = field.trim_ascii();
            }
            count += 1;
        }
        let [end, latency, direction, size, offset, _, issued] = fields;
        match count {
            6 | 7 => {}
            4 | 5 => return Err("it has no offset; let fio write the log with log_offset=1".to_owned()),
            _ => {
                return Err(format!(
                    "it has {count} fields; fio writes time, latency, direction, size, offset, priority"
                ));
            }
        }
        let operation = match direction {
            b"0" => Operation::Read,
            b"1" => Operation::Write,
            b"2" => Operation::Trim,
            other => {
                return Err(format!("direction is {}; fio writes 0 for a read, 1 a write, 2 a trim", quoted(other)));
            }
        };
        let (end, latency) = (time("time", end, MILLIS)?, time("latency", latency, NANOS)?);
        let at = if count == 7 { time("issue time", issued, NANOS)? } else { Nanos(end.0.saturating_sub(latency.0)) };
        let record = TraceRecord::new(at, operation, bytes_of("offset", offset, 1)?, bytes_of("size", size, 1)?);
        Ok(Some(TraceRecord { latency: Some(latency), ..record }))
    }
}
