//! fio's latency log: `time, latency, direction, size, offset, priority[, issued]`, written with `log_offset=1`.
//!
//! The time is that of the completion, in whole ms from the start; the latency is in ns; the direction is 0 for a read,
//! 1 for a write, 2 for a trim. Where the seventh field is there (`log_issue_time=1`) it is the time of submission in
//! ns; elsewhere that is the completion minus the latency, and only as exact as a millisecond. Requests are put back
//! into the order of their submission. Source: fio's HOWTO, *Log File Formats*.
//!
//! fio's other logs look alike and hold no requests: rates (`_iops`, `_bw`), times that are not those of a request
//! (`_slat`), histograms (`_clat_hist`), and averages (`log_avg_msec`), whose sizes are all 0. They are refused by
//! name, by the rate of 1 that an `_iops` log has in each line, and by sizes of 0.

use flashwise_block::{Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::{MILLIS, NANOS, bytes_of, quoted, time};
use super::source::{BIAS, Line, LineParser, RecordSource, Sorted, TextSource};
use crate::error::shown;
use crate::input::Input;
use crate::record::TraceRecord;

struct Parser;

/// Logs of fio's that hold no requests: what their names have, and what they are.
const OTHER_LOGS: [(&str, &str); 6] = [
    ("_iops", "a log of rates (write_iops_log)"),
    ("_bw", "a log of bandwidths (write_bw_log)"),
    ("_slat", "a log of the times until requests were submitted"),
    ("_clat_hist", "a log of histograms (write_hist_log)"),
    ("_slat_hist", "a log of histograms (write_hist_log)"),
    ("_lat_hist", "a log of histograms (write_hist_log)"),
];
/// What to do in place of that.
const NEEDED: &str =
    "requests are in the log of write_lat_log with log_offset=1 and without log_avg_msec (NAME_clat.1.log)";

/// What another log of fio's is by its name: `run_iops.1.log`.
fn other_log(name: &str) -> Option<&'static str> {
    let name = name.rsplit('/').next().unwrap_or(name).strip_suffix(".log")?;
    let name = name
        .rsplit_once('.')
        .filter(|(_, job)| job.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(name, |(name, _)| name);
    OTHER_LOGS.iter().find(|(end, _)| name.ends_with(end)).map(|&(_, what)| what)
}

/// The fields of a line that has as many as fio's logs have.
fn fields(line: &[u8]) -> Option<Vec<&[u8]>> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
    let rest_is_spaced = fields[1..].iter().all(|field| field.starts_with(b" "));
    let is_number = |field: &&[u8]| field.trim_ascii().iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'x');
    let fits = (4..=7).contains(&fields.len()) && rest_is_spaced && fields.iter().all(is_number);
    fits.then(|| fields.iter().map(|field| field.trim_ascii()).collect())
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let count = head.lines.iter().filter(|line| fields(line).is_some()).count();
    let is_all = !head.lines.is_empty() && count * 4 >= head.lines.len() * 3;
    let is_digits = |line: &&&[u8]| line.first().is_some_and(u8::is_ascii_digit);
    match other_log(head.name) {
        Some(_) if head.lines.iter().all(|line| is_digits(&line)) => Some("the name of one of fio's logs"),
        _ => is_all.then_some(
            "five to seven numbers per line, separated by a comma and a blank: a fio log, read as a latency log",
        ),
    }
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    if let Some(what) = other_log(units.name) {
        return Err(format!("it is {what} of fio and contains no requests; {NEEDED}"));
    }
    let lines: Vec<Vec<&[u8]>> = input.head.split(|&byte| byte == b'\n').filter_map(fields).collect();
    let all_are = |place: usize, value: &[u8]| {
        let mut values = lines.iter().filter_map(|fields| fields.get(place)).peekable();
        values.peek().is_some() && values.all(|field| *field == value)
    };
    if all_are(3, b"0") {
        return Err(format!("all of its sizes are 0: it contains averages (log_avg_msec) and no requests; {NEEDED}"));
    }
    if lines.len() > 1 && all_are(1, b"1") {
        return Err(format!(
            "all of its values are 1, as in {} of fio: it contains no requests; {NEEDED}",
            OTHER_LOGS[0].1
        ));
    }
    Ok(Box::new(Sorted::biased(TextSource::new(input, Parser))))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
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
            4 | 5 => return Err("it has no offset: run fio with log_offset=1".to_owned()),
            _ => {
                return Err(format!(
                    "it has {count} fields; expected are time, latency, direction, size, offset, priority"
                ));
            }
        }
        let operation = match direction {
            b"0" => Operation::Read,
            b"1" => Operation::Write,
            b"2" => Operation::Trim,
            // A version to come may log more.
            other if !other.is_empty() && other.iter().all(u8::is_ascii_digit) => {
                return Ok(Line::Chatter(format!("entries of direction {}", shown(other, 8)).into()));
            }
            other => {
                return Err(format!("direction is {}; fio writes 0 for a read, 1 a write, 2 a trim", quoted(other)));
            }
        };
        let (end, latency) = (time("time", end, MILLIS)?, time("latency", latency, NANOS)?);
        let at = match count {
            7 => time("issue time", issued, NANOS)?.0.checked_add(BIAS),
            _ => end.0.checked_add(BIAS).and_then(|end| end.checked_sub(latency.0)),
        };
        let at = Nanos(at.ok_or("its time or its latency exceeds 146 years")?);
        let (offset, size) = (bytes_of("offset", offset, 1)?, bytes_of("size", size, 1)?);
        if size.0 == 0 {
            return Err(format!("its size is 0: it is an average (log_avg_msec), not a request; {NEEDED}"));
        }
        let record = TraceRecord::new(at, operation, offset, size);
        Ok(Line::Data(TraceRecord { latency: Some(latency), ..record }))
    }
}
