//! Block events of the kernel as text, from tracefs or from `perf script`.
//!
//! ```text
//!   fio-1234 [001] d..1. 1234.567890: block_rq_issue: 259,0 WS 4096 () 2048 + 8 none,0,0 [fio]
//!   fio 1234 [001] 1234.567890: block:block_rq_issue: 259,0 WS 4096 () 2048 + 8 [fio]
//!   …: block_rq_complete: 259,0 WS () 2048 + 8 none,0,0 [0]
//! ```
//!
//! `block_rq_issue` is the request, `block_rq_complete` its completion; other events are left out. Lines of `#` are
//! comments. Source: `include/trace/events/block.h` of the kernel, `TP_printk` of both events.

use super::Units;
use super::blkparse::{Extent, Kind, drive_number};
use super::detect::Head;
use super::fields::{SECONDS, Words, decimal_time, digits};
use super::source::{Event, EventLines, EventSource, Failure, Paired, RecordSource};
use crate::error::Place;
use crate::input::Input;
use crate::record::TraceRecord;

const ISSUE: &[u8] = b"block_rq_issue:";
const COMPLETE: &[u8] = b"block_rq_complete:";

struct Tracefs {
    lines: EventLines,
    lost: u64,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let found = head.lines.iter().any(|line| matches!(parse(line), Ok(Some(_))));
    found.then_some("lines with the event block_rq_issue or block_rq_complete")
}

pub(super) fn open(input: Input, _: &Units) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(Paired::new(Tracefs { lines: EventLines::new(input), lost: 0 })))
}

impl EventSource for Tracefs {
    fn next(&mut self) -> Result<Option<Event>, Failure> {
        let all_lost = &mut self.lost;
        let skips = |line: &[u8]| {
            let start = line.trim_ascii_start();
            if start.is_empty() || start.starts_with(b"#") {
                return true;
            }
            let lost = lost_events(line);
            *all_lost = all_lost.saturating_add(lost.unwrap_or(0));
            lost.is_some()
        };
        self.lines.next(skips, parse)
    }

    fn place(&self) -> Place {
        self.lines.place()
    }

    fn remarks(&self) -> Vec<String> {
        let others = format!("{} other events were left out", self.lines.others);
        let lost = format!("the kernel lost {} events: enlarge buffer_size_kb", self.lost);
        [(self.lines.others, others), (self.lost, lost)]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(_, told)| told)
            .collect()
    }
}

/// `CPU:3 [LOST 17 EVENTS]`.
fn lost_events(line: &[u8]) -> Option<u64> {
    let at = memchr::memmem::find(line, b"[LOST ")?;
    digits(Words(&line[at + 6..]).next()?)
}

fn parse(line: &[u8]) -> Result<Option<Event>, String> {
    let issue = memchr::memmem::find(line, ISSUE).map(|at| (at, at + ISSUE.len(), true));
    let complete = || memchr::memmem::find(line, COMPLETE).map(|at| (at, at + COMPLETE.len(), false));
    let Some((start, end, is_issue)) = issue.or_else(complete) else {
        let has_event = line.contains(&b':');
        return if has_event { Ok(None) } else { Err("it has no event, such as block_rq_issue:".to_owned()) };
    };
    let before = Before::of(&line[..start])?;
    let mut words = Words(&line[end..]);
    let (Some(drive), Some(flags)) = (words.next(), words.next()) else {
        return Err("behind the event come the device and its flags, such as 259,0 WS".to_owned());
    };
    let (device, kind) = (drive_number(drive)?, Kind::of(flags)?);
    let rest = words.rest();
    // Between the flags and the sector stand the bytes, on issue, and the bytes of a SCSI command in parentheses.
    let behind = rest.iter().position(|&byte| byte == b')').ok_or("it has no ( ) before the sector")?;
    let extent = Extent::behind(&rest[behind + 1..])?;
    let Some((kind, (operation, extent))) = kind.and_then(|kind| Some((kind, kind.with(extent)?))) else {
        return Ok(None);
    };
    Ok(Some(if is_issue {
        let record = TraceRecord::new(before.at, operation, extent.offset, extent.length);
        Event::Issued(TraceRecord { device: Some(device), process: before.process, fua: kind.fua, ..record })
    } else {
        Event::Completed { at: before.at, device, offset: extent.offset.0 }
    }))
}

/// What stands before the event.
struct Before {
    at: flashwise_block::Nanos,
    process: Option<u32>,
}

impl Before {
    fn of(text: &[u8]) -> Result<Self, String> {
        // perf writes the event as block:block_rq_issue.
        let text = text.strip_suffix(b"block:").unwrap_or(text).trim_ascii_end();
        let text = text.strip_suffix(b":").ok_or("no time stands before the event")?;
        let start = text.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
        let at = decimal_time("time", &text[start..], SECONDS)?;
        let bracket = text.iter().position(|&byte| byte == b'[').unwrap_or(start);
        let process = Words(&text[..bracket]).last().and_then(process_number);
        Ok(Self { at, process })
    }
}

/// `name-123` of tracefs, `123` or `123/124` of perf.
fn process_number(word: &[u8]) -> Option<u32> {
    let word = word.iter().rposition(|&byte| byte == b'-').map_or(word, |at| &word[at + 1..]);
    let word = word.split(|&byte| byte == b'/').next()?;
    digits(word).and_then(|number| u32::try_from(number).ok())
}
