//! What `blkparse` prints: `maj,min cpu seq seconds pid action RWBS sector + sectors [process]`.
//!
//! Of the actions, D (handed to the drive) is the request, C its completion, and R says that the driver gave the
//! request back; the others are the kernel's own. Where the start of a trace has no D, requests are taken where they
//! are there already: I (in the scheduler's queue), or Q (queued), as traces of drives without a request queue have
//! them. What blkparse prints beside the events (names of its input files, sums at the end) is skipped. Source:
//! blkparse(1), *Default output*.
//!
//! A trace that was printed with `blkparse -f FORMAT` is read with the same format: `blkparse:FORMAT`.

use super::Units;
use super::blkparse_layout::Layout;
use super::detect::Head;
use super::fields::{SECONDS, Words, decimal_time, digits, number, quoted};
use super::fiu::device;
use super::rwbs::{Extent, Rwbs};
use super::source::{Event, EventParser, EventText, Line, Paired, RecordSource};
use crate::input::Input;
use crate::record::TraceRecord;
use flashwise_block::Nanos;

/// Actions that may stand for the request, the one that is nearest to the drive first.
const STAGES: [u8; 3] = [b'D', b'I', b'Q'];

struct Parser {
    /// How a line is laid out, where it is not in blkparse's default.
    layout: Option<Layout>,
    /// The action that is the request.
    stage: u8,
    /// Actions D where another one is the request.
    issued: u64,
    /// Events that blkparse missed, as its sums at the end say.
    skipped: u64,
    /// Events that blktrace lost, as it says itself.
    dropped: u64,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    head.is_mostly_events(Parser::of(&head.lines, None))
        .then_some("lines that start with major,minor and have an action and flags such as WS")
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    let lines: Vec<&[u8]> = input.head.split(|&byte| byte == b'\n').collect();
    let layout = units.layout.map(Layout::of).transpose();
    let layout = layout.map_err(|reason| format!("format of blkparse -f: {reason}"))?;
    let parser = Parser::of(&lines, layout);
    Ok(Box::new(Paired::new(EventText::new(input, parser))))
}

impl Parser {
    /// With the request where the start of a trace has it.
    fn of(lines: &[&[u8]], layout: Option<Layout>) -> Self {
        let actions: Vec<u8> = match &layout {
            None => lines.iter().filter_map(|line| action(line)).collect(),
            Some(layout) => {
                lines.iter().filter_map(|line| layout.event(line).ok()?.action.letter.first().copied()).collect()
            }
        };
        let stage = STAGES.into_iter().find(|stage| actions.contains(stage)).unwrap_or(STAGES[0]);
        Self { layout, stage, issued: 0, skipped: 0, dropped: 0 }
    }
}

/// The action of an event.
fn action(line: &[u8]) -> Option<u8> {
    let mut words = Words(line);
    drive_number(words.next()?).ok()?;
    match words.nth(4)? {
        [action] => Some(*action),
        _ => None,
    }
}

impl EventParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<Event>, String> {
        if let Some(layout) = &self.layout {
            let event = match layout.event(line) {
                Ok(event) => event,
                // With a format of one's own events may start with anything.
                Err(error) => return self.chatter(line).ok_or(error),
            };
            if !event.action.is_used(self.stage) {
                return Ok(self.left_out(event.action.letter));
            }
            return event.action.with(self.stage, event.flags, || event.extent);
        }
        if let Some(told) = self.chatter(line) {
            return Ok(told);
        }
        let mut words = Words(line);
        let mut next = || words.next().ok_or("it has fewer than seven fields: maj,min cpu seq seconds pid action RWBS");
        let (drive, _, _, at, pid, action, flags) = (next()?, next()?, next()?, next()?, next()?, next()?, next()?);
        let (device, at) = (drive_number(drive)?, decimal_time("time", at, SECONDS)?);
        let process = number("pid", pid)?;
        let event = Action { letter: action, device, at, process };
        if !event.is_used(self.stage) {
            return Ok(self.left_out(action));
        }
        event.with(self.stage, flags, || Extent::behind(words.rest()))
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.stage != STAGES[0] {
            let stage = char::from(self.stage);
            remarks.push(match self.issued {
                0 => format!("it has no issue events (D): requests are taken from the queue events ({stage})"),
                count => format!(
                    "its start has no issue events (D), so requests are taken from the queue events ({stage}); \
                     {count} issue events were left out"
                ),
            });
        }
        let skipped = format!("according to its summary, blkparse missed {} events", self.skipped);
        let dropped = format!("blktrace lost {} events: increase its buffers (-b, -n)", self.dropped);
        let counted = [(self.skipped, skipped), (self.dropped, dropped)];
        remarks.extend(counted.into_iter().filter(|(count, _)| *count > 0).map(|(_, told)| told));
        remarks
    }
}

impl Parser {
    /// What blkparse and blktrace print beside events: names of input files, sums, and what blktrace says at its end.
    fn chatter(&mut self, line: &[u8]) -> Option<Line<Event>> {
        let text = line.trim_ascii();
        // Events start with a number.
        if text.first().is_none_or(u8::is_ascii_digit) {
            return None;
        }
        let is = |start: &[u8]| text.starts_with(start);
        if let Some(rest) = text.strip_prefix(b"Skips:") {
            // Skips: 2 forward (17 -   0.1%)
            let entries = rest.split(|&byte| byte == b'(').nth(1).and_then(|rest| Words(rest).next()).and_then(digits);
            self.skipped = self.skipped.saturating_add(entries.unwrap_or(0));
        }
        if let Some(at) = memchr::memmem::find(text, b"(dropped ") {
            // Of the total only: no CPU has such a count of its own.
            let count = text[at + 9..].split(|&byte| byte == b')').next().and_then(|count| digits(count.trim_ascii()));
            self.dropped = self.dropped.saturating_add(count.unwrap_or(0));
        }
        let has_sum = || text.contains(&b':') || (text.ends_with(b")") && text.contains(&b'('));
        Some(match () {
            () if is(b"Input file ") => Line::chatter("names of blkparse's input files"),
            () if is(b"#") => Line::chatter("comments"),
            () if is(b"^") => return None,
            () if is(b"===") || is(b"blktrace") || is(b"blkparse") => {
                Line::chatter("messages of blktrace and blkparse")
            }
            // Reads Queued: 5, 20KiB; fio (123)
            () if has_sum() => Line::chatter("lines of blkparse's summary"),
            () => Line::chatter("lines that are not events"),
        })
    }

    fn left_out(&mut self, action: &[u8]) -> Line<Event> {
        self.issued += u64::from(action == [STAGES[0]]);
        match self.stage == STAGES[0] {
            true => Line::chatter("events other than issue (D) and completion (C)"),
            false => Line::chatter("events other than the first and the completion (C)"),
        }
    }
}

/// An event of which action, time, device and process are known.
pub(super) struct Action<'a> {
    pub(super) letter: &'a [u8],
    pub(super) device: u32,
    pub(super) at: Nanos,
    pub(super) process: u32,
}

impl Action<'_> {
    /// Whether it is of a request, where a stage stands for it.
    fn is_used(&self, stage: u8) -> bool {
        self.letter == [stage] || matches!(self.letter, b"C" | b"R")
    }

    /// The event, with what its flags and its extent say.
    fn with(
        &self,
        stage: u8,
        flags: &[u8],
        extent: impl FnOnce() -> Result<Option<Extent>, String>,
    ) -> Result<Line<Event>, String> {
        let is_request = self.letter == [stage];
        let kind = match Rwbs::of(flags)? {
            Rwbs::Request(kind) => kind,
            Rwbs::Other(what) if is_request => return Ok(Line::chatter(what)),
            Rwbs::Other(_) => return Ok(Line::Silent),
        };
        let Some((operation, extent)) = kind.with(extent()?) else {
            return Ok(if is_request { Line::chatter("commands without sectors") } else { Line::Silent });
        };
        let (at, device, process) = (self.at, self.device, Some(self.process));
        Ok(Line::Data(match self.letter {
            b"C" => extent.completion(kind, at, device),
            b"R" => extent.requeue(kind, at, device),
            _ => {
                let record = TraceRecord::new(at, operation, extent.offset, extent.length);
                kind.issue(TraceRecord { device: Some(device), process, fua: kind.fua, ..record })
            }
        }))
    }
}

/// `259,0` as one number.
pub(super) fn drive_number(field: &[u8]) -> Result<u32, String> {
    let told = || format!("device is {}; it must be major,minor", quoted(field));
    let comma = field.iter().position(|&byte| byte == b',').ok_or_else(told)?;
    device(number("major", &field[..comma])?, number("minor", &field[comma + 1..])?)
}
