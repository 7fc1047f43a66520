//! Block events of the kernel as text, from tracefs, `trace-cmd report` or `perf script`.
//!
//! ```text
//!   fio-1234 [001] d..1. 1234.567890: block_rq_issue: 259,0 WS 4096 () 2048 + 8 none,0,0 [fio]
//!   fio 1234 [001] 1234.567890: block:block_rq_issue: 259,0 WS 4096 () 2048 + 8 [fio]
//!   …: block_rq_complete: 259,0 WS () 2048 + 8 none,0,0 [0]
//!   …: block_rq_requeue: 259,0 WS () 2048 + 8 none,0,0 [0]
//!   …: block_bio_queue: 259,0 WS 2048 + 8 [fio]
//! ```
//!
//! `block_rq_issue` is the request, `block_rq_complete` its completion, and `block_rq_requeue` says that the driver
//! gave it back. Where the start of a trace has no `block_rq_issue`, the request is what comes before it:
//! `block_io_start`, `block_rq_insert` or `block_bio_queue`. Other events are left out, and so are lines that are no
//! events: comments, frames of call chains, what the tools print about processors and lost events. The numbers of lost
//! events are added up. Source: `include/trace/events/block.h` of the kernel, `TP_printk` of the events; trace-cmd's
//! `trace-read.c`.

use super::Units;
use super::blkparse::drive_number;
use super::detect::Head;
use super::fields::{SECONDS, Words, decimal_time, digits};
use super::rwbs::{Extent, Rwbs};
use super::source::{Event, EventParser, EventText, Line, Paired, RecordSource};
use crate::input::Input;
use crate::record::TraceRecord;
use flashwise_block::Nanos;

/// Events that may stand for the request, the one that is nearest to the drive first, with what ends it.
const STAGES: [(&[u8], &[&[u8]]); 4] = [
    (b"block_rq_issue:", &[b"block_rq_complete:"]),
    (b"block_io_start:", &[b"block_io_done:", b"block_rq_complete:"]),
    (b"block_rq_insert:", &[b"block_rq_complete:"]),
    (b"block_bio_queue:", &[b"block_bio_complete:", b"block_rq_complete:"]),
];
const REQUEUE: &[u8] = b"block_rq_requeue:";

struct Parser {
    /// Which of [`STAGES`] is the request.
    stage: usize,
    /// Events `block_rq_issue` where another one is the request.
    issued: u64,
    lost: u64,
    /// Whether events were lost of which nobody knows how many.
    lost_more: bool,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let mut parser = Parser::of(&head.lines);
    let found = head.lines.iter().any(|line| matches!(parser.parse(line), Ok(Line::Data(_))));
    found.then_some("lines with the event block_rq_issue or block_rq_complete")
}

pub(super) fn open(input: Input, _: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    let lines: Vec<&[u8]> = input.head.split(|&byte| byte == b'\n').collect();
    let parser = Parser::of(&lines);
    Ok(Box::new(Paired::new(EventText::new(input, parser))))
}

impl Parser {
    /// With the request where the start of a trace has it.
    fn of(lines: &[&[u8]]) -> Self {
        let has = |event: &[u8]| lines.iter().any(|line| memchr::memmem::find(line, event).is_some());
        let stage = STAGES.iter().position(|(event, _)| has(event)).unwrap_or(0);
        Self { stage, issued: 0, lost: 0, lost_more: false }
    }

    /// Lines about events that the kernel lost.
    fn is_loss(&mut self, line: &[u8]) -> bool {
        // CPU:3 [LOST 17 EVENTS], CPU:1 [5 EVENTS DROPPED], CPU:1 [EVENTS DROPPED]
        let bracket = line.iter().position(|&byte| byte == b'[').map(|at| &line[at + 1..]);
        let is_of_cpu = line.trim_ascii_start().starts_with(b"CPU");
        let told = bracket.filter(|rest| is_of_cpu && memchr::memmem::find(rest, b"EVENTS").is_some());
        // … PERF_RECORD_LOST lost 17
        let record = memchr::memmem::find(line, b"PERF_RECORD_LOST").map(|at| &line[at..]);
        // # entries-in-buffer/entries-written: 140080/250280   #P:4
        let entries = memchr::memmem::find(line, b"entries-in-buffer/entries-written:").map(|at| &line[at + 34..]);
        let count = match (told, record, entries) {
            (Some(rest), ..) | (None, Some(rest), _) => {
                let mut words = rest.split(|byte| byte.is_ascii_whitespace() || matches!(byte, b']' | b':'));
                words.find_map(digits)
            }
            (None, None, Some(rest)) => {
                let mut counts = Words(rest).next().unwrap_or_default().split(|&byte| byte == b'/').map(digits);
                let (kept, written) = (counts.next().flatten(), counts.next().flatten());
                kept.zip(written).and_then(|(kept, written)| written.checked_sub(kept))
            }
            _ => return false,
        };
        match count {
            Some(count) => self.lost = self.lost.saturating_add(count),
            None => self.lost_more = true,
        }
        true
    }

    /// The event of ours that a line has: its place, its end and what it is.
    fn event(&mut self, line: &[u8]) -> Option<(usize, usize, BlockEvent)> {
        let (stage, ends) = STAGES[self.stage];
        let known = std::iter::once((stage, BlockEvent::Issue))
            .chain(ends.iter().map(|&end| (end, BlockEvent::Completion)))
            .chain(std::iter::once((REQUEUE, BlockEvent::Requeue)));
        let mut found = known.filter_map(|(event, what)| {
            let at = memchr::memmem::find(line, event)?;
            // Longer names end with ours.
            let is_whole = !line[..at].last().is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
            is_whole.then_some((at, at + event.len(), what))
        });
        let found = found.next();
        if found.is_none() && self.stage > 0 && memchr::memmem::find(line, STAGES[0].0).is_some() {
            self.issued += 1;
        }
        found
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockEvent {
    Issue,
    Completion,
    Requeue,
}

impl EventParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<Event>, String> {
        if line.first() == Some(&b'#') {
            return Ok(if self.is_loss(line) { Line::Silent } else { Line::chatter("comments") });
        }
        let Some((start, end, what)) = self.event(line) else {
            return Ok(if self.is_loss(line) { Line::Silent } else { chatter(line) });
        };
        let before = Before::of(&line[..start])?;
        let mut words = Words(&line[end..]);
        let (Some(drive), Some(flags)) = (words.next(), words.next()) else {
            return Err("after the event, the device and its flags are expected, such as 259,0 WS".to_owned());
        };
        let (device, rwbs) = (drive_number(drive)?, Rwbs::of(flags)?);
        let rest = words.rest();
        // Between the flags and the sector stand the bytes, on issue, and the bytes of a SCSI command in parentheses;
        // a bio has neither.
        let behind = rest.iter().position(|&byte| byte == b')');
        let extent = match behind {
            Some(behind) => Extent::behind(&rest[behind + 1..])?,
            None if line[..end].ends_with(b"bio_queue:") || line[..end].ends_with(b"bio_complete:") => {
                Extent::behind(rest)?
            }
            None => return Err("the ( ) before the sector is missing".to_owned()),
        };
        let kind = match rwbs {
            Rwbs::Request(kind) => kind,
            Rwbs::Other(name) if what == BlockEvent::Issue => return Ok(Line::chatter(name)),
            Rwbs::Other(_) => return Ok(Line::Silent),
        };
        let Some((operation, extent)) = kind.with(extent) else {
            return Ok(if what == BlockEvent::Issue {
                Line::chatter("commands without sectors")
            } else {
                Line::Silent
            });
        };
        let Before { at, process } = before;
        Ok(Line::Data(match what {
            BlockEvent::Completion => extent.completion(kind, at, device),
            BlockEvent::Requeue => extent.requeue(kind, at, device),
            BlockEvent::Issue => {
                let record = TraceRecord::new(at, operation, extent.offset, extent.length);
                kind.issue(TraceRecord { device: Some(device), process, fua: kind.fua, ..record })
            }
        }))
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.stage > 0 {
            let stage = String::from_utf8_lossy(STAGES[self.stage].0);
            let stage = stage.trim_end_matches(':');
            remarks.push(match self.issued {
                0 => format!("it has no block_rq_issue: requests are taken from {stage}"),
                count => format!(
                    "its start has no block_rq_issue, so requests are taken from {stage}; {count} events \
                     block_rq_issue were left out"
                ),
            });
        }
        let enlarge = "increase its buffer (buffer_size_kb, trace-cmd -b, perf record -m)";
        match (self.lost, self.lost_more) {
            (0, false) => {}
            (0, true) => remarks.push(format!("the kernel lost an unknown number of events: {enlarge}")),
            (lost, false) => remarks.push(format!("the kernel lost {lost} events: {enlarge}")),
            (lost, true) => {
                remarks.push(format!("the kernel lost {lost} events and an unknown number more: {enlarge}"))
            }
        }
        remarks
    }
}

/// A line without an event that is read here.
fn chatter(line: &[u8]) -> Line<Event> {
    let text = line.trim_ascii();
    match text {
        [] => Line::Silent,
        [b'#', ..] => Line::chatter("comments"),
        _ if is_event(text) => Line::chatter("other events"),
        [b'=', b'>', ..] => Line::chatter("frames of call chains"),
        _ if is_frame(text) => Line::chatter("frames of call chains"),
        _ => Line::chatter("lines that are not events"),
    }
}

/// Whether a line has a time and an event: `1234.567890: name:`.
fn is_event(line: &[u8]) -> bool {
    Words(line).any(|word| word.strip_suffix(b":").is_some_and(|time| decimal_time("time", time, SECONDS).is_ok()))
}

/// Whether a line is an address and a function, as perf prints call chains.
fn is_frame(line: &[u8]) -> bool {
    Words(line).next().is_some_and(|word| word.len() >= 4 && word.iter().all(u8::is_ascii_hexdigit))
}

/// The fields before the event.
struct Before {
    at: Nanos,
    process: Option<u32>,
}

impl Before {
    fn of(text: &[u8]) -> Result<Self, String> {
        // perf writes the event as block:block_rq_issue.
        let text = text.strip_suffix(b"block:").unwrap_or(text).trim_ascii_end();
        // With -F period it writes the period before the event.
        let period = text.iter().rposition(u8::is_ascii_whitespace).filter(|&at| digits(&text[at + 1..]).is_some());
        let text = period.map_or(text, |at| text[..at].trim_ascii_end());
        let text = text.strip_suffix(b":").ok_or("the time before the event is missing")?;
        let start = text.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
        let at = decimal_time("time", &text[start..], SECONDS)?;
        let bracket = text.iter().position(|&byte| byte == b'[').unwrap_or(start);
        let words: Vec<&[u8]> = Words(&text[..bracket]).collect();
        let process = words.into_iter().rev().find_map(process_number);
        Ok(Self { at, process })
    }
}

/// `name-123` of tracefs, `123` or `123/124` of perf.
fn process_number(word: &[u8]) -> Option<u32> {
    let word = word.iter().rposition(|&byte| byte == b'-').map_or(word, |at| &word[at + 1..]);
    let word = word.split(|&byte| byte == b'/').next()?;
    digits(word).and_then(|number| u32::try_from(number).ok())
}
