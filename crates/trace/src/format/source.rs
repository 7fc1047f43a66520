//! What a format has to offer, and what is common to several: texts of one request a line, requests that a trace tells
//! in two parts, and requests that it tells in the order of their completion.
//!
//! ```text
//!   lines ─▶ LineParser ─▶ TextSource ───────────────────────────────┐
//!   lines ─▶ LineParser ─▶ TextSource ─▶ Sorted (by completion) ─────┼─▶ RecordSource ─▶ TraceReader
//!   lines or records ─▶ events: issued, completed ─▶ Paired ─────────┘
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;

use flashwise_block::Nanos;

use crate::error::{Place, shown_line};
use crate::input::{Input, lines::Lines};
use crate::record::TraceRecord;

/// Requests that are held back at most, to give those before them their completion or their place.
const WINDOW: usize = 1 << 16;

/// Why there is no next record.
#[derive(Debug)]
pub(crate) enum Failure {
    /// This line or record is no request; the next one may be.
    Bad {
        /// The line, for the message; empty for binary records.
        text: String,
        /// What is wrong.
        reason: String,
    },
    /// Nothing more can be read.
    Fatal(String),
}

impl Failure {
    /// The same, told of one file of several.
    pub(crate) fn within(self, file: &str) -> Self {
        match self {
            Self::Bad { text, reason } => Self::Bad { text, reason: format!("{file}: {reason}") },
            Self::Fatal(reason) => Self::Fatal(format!("{file}: {reason}")),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Fatal(error.to_string())
    }
}

/// The requests of a trace, one after the other.
pub(crate) trait RecordSource: Send {
    /// The next request, or `None` at the end.
    fn next(&mut self) -> Result<Option<TraceRecord>, Failure>;

    /// What was read last.
    fn place(&self) -> Place;

    /// Names of the files that records point to.
    fn files(&self) -> &[String] {
        &[]
    }

    /// What the trace holds and no record tells, a sentence each; complete after the last record.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// One line at a time.
pub(crate) trait LineParser: Send {
    /// The request on a line; `None` where the line is none and need not be one.
    fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRecord>, String>;

    /// Names of the files that records point to.
    fn files(&self) -> &[String] {
        &[]
    }

    /// What the trace holds and no record tells.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Requests of a text, a line each. Empty lines are skipped.
pub(crate) struct TextSource<P> {
    lines: Lines,
    parser: P,
}

impl<P: LineParser> TextSource<P> {
    pub(crate) fn new(lines: Lines, parser: P) -> Self {
        Self { lines, parser }
    }
}

impl<P: LineParser> RecordSource for TextSource<P> {
    #[inline]
    fn next(&mut self) -> Result<Option<TraceRecord>, Failure> {
        while let Some(line) = self.lines.next()? {
            match self.parser.parse(line) {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => {}
                Err(_) if line.trim_ascii().is_empty() => {}
                Err(reason) => return Err(Failure::Bad { text: shown_line(line), reason }),
            }
        }
        Ok(None)
    }

    fn place(&self) -> Place {
        Place::Line(self.lines.number())
    }

    fn files(&self) -> &[String] {
        self.parser.files()
    }

    fn remarks(&self) -> Vec<String> {
        self.parser.remarks()
    }
}

/// Requests that a trace tells as they complete, in the order of their submission, as far as [`WINDOW`] reaches.
pub(crate) struct Sorted<S> {
    source: S,
    /// Earliest first; the number keeps the trace's order among equals.
    held: BinaryHeap<Reverse<(Nanos, u64)>>,
    records: HashMap<u64, TraceRecord>,
    number: u64,
    is_at_end: bool,
}

impl<S: RecordSource> Sorted<S> {
    pub(crate) fn new(source: S) -> Self {
        Self { source, held: BinaryHeap::new(), records: HashMap::new(), number: 0, is_at_end: false }
    }

    fn release(&mut self) -> Option<TraceRecord> {
        let Reverse((_, number)) = self.held.pop()?;
        self.records.remove(&number)
    }
}

impl<S: RecordSource> RecordSource for Sorted<S> {
    fn next(&mut self) -> Result<Option<TraceRecord>, Failure> {
        while !self.is_at_end && self.held.len() < WINDOW {
            match self.source.next()? {
                Some(record) => {
                    self.held.push(Reverse((record.at, self.number)));
                    self.records.insert(self.number, record);
                    self.number += 1;
                }
                None => self.is_at_end = true,
            }
        }
        Ok(self.release())
    }

    fn place(&self) -> Place {
        self.source.place()
    }

    fn files(&self) -> &[String] {
        self.source.files()
    }

    fn remarks(&self) -> Vec<String> {
        self.source.remarks()
    }
}

/// What a trace of the kernel tells of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// It was handed to the drive.
    Issued(TraceRecord),
    /// The request at this device and byte came back.
    Completed { at: Nanos, device: u32, offset: u64 },
}

impl Event {
    /// When it happened.
    pub(crate) fn at(&self) -> Nanos {
        match self {
            Self::Issued(record) => record.at,
            Self::Completed { at, .. } => *at,
        }
    }
}

/// A trace of events.
pub(crate) trait EventSource: Send {
    /// The next event, or `None` at the end.
    fn next(&mut self) -> Result<Option<Event>, Failure>;
    /// What was read last.
    fn place(&self) -> Place;
    /// What the trace holds and no record tells.
    fn remarks(&self) -> Vec<String>;
}

/// The lines of a trace of events as text.
pub(crate) struct EventLines {
    lines: Lines,
    /// Events that are of no request.
    pub(crate) others: u64,
}

impl EventLines {
    pub(crate) fn new(input: Input) -> Self {
        Self { lines: Lines::new(input.into_bytes()), others: 0 }
    }

    /// The next event that is of a request, but for the lines that are to be skipped.
    pub(crate) fn next(
        &mut self,
        mut skips: impl FnMut(&[u8]) -> bool,
        parse: impl Fn(&[u8]) -> Result<Option<Event>, String>,
    ) -> Result<Option<Event>, Failure> {
        while let Some(line) = self.lines.next()? {
            if skips(line) {
                continue;
            }
            match parse(line) {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => self.others += 1,
                Err(reason) => return Err(Failure::Bad { text: shown_line(line), reason }),
            }
        }
        Ok(None)
    }

    /// The line read last.
    pub(crate) fn place(&self) -> Place {
        Place::Line(self.lines.number())
    }
}

/// Requests with their completions, in the order in which they were issued. A request waits for its completion until
/// [`WINDOW`] others wait behind it; then it goes out without.
pub(crate) struct Paired<S> {
    source: S,
    waiting: VecDeque<TraceRecord>,
    /// Number of the first that waits, from the start of the trace.
    first: u64,
    /// Numbers of the requests that have not come back, by device and byte.
    open: HashMap<(u32, u64), u64>,
    is_at_end: bool,
    issued: u64,
    unanswered: u64,
}

impl<S: EventSource> Paired<S> {
    pub(crate) fn new(source: S) -> Self {
        let (waiting, open) = (VecDeque::new(), HashMap::new());
        Self { source, waiting, first: 0, open, is_at_end: false, issued: 0, unanswered: 0 }
    }

    fn issue(&mut self, record: TraceRecord) {
        self.issued += 1;
        let number = self.first + self.waiting.len() as u64;
        self.open.insert(key(&record), number);
        self.waiting.push_back(record);
    }

    fn complete(&mut self, at: Nanos, device: u32, offset: u64) {
        let Some(number) = self.open.remove(&(device, offset)) else { return };
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        if let Some(record) = place.and_then(|place| self.waiting.get_mut(place)) {
            record.latency = Some(at.since(record.at));
        }
    }

    fn release(&mut self) -> Option<TraceRecord> {
        let record = self.waiting.pop_front()?;
        if record.latency.is_none() {
            self.unanswered += 1;
            if self.open.get(&key(&record)) == Some(&self.first) {
                self.open.remove(&key(&record));
            }
        }
        self.first += 1;
        Some(record)
    }

    fn is_ready(&self) -> bool {
        self.waiting.front().is_some_and(|record| record.latency.is_some()) || self.waiting.len() >= WINDOW
    }
}

fn key(record: &TraceRecord) -> (u32, u64) {
    (record.device.unwrap_or_default(), record.offset.0)
}

impl<S: EventSource> RecordSource for Paired<S> {
    fn next(&mut self) -> Result<Option<TraceRecord>, Failure> {
        while !self.is_ready() && !self.is_at_end {
            match self.source.next()? {
                Some(Event::Issued(record)) => self.issue(record),
                Some(Event::Completed { at, device, offset }) => self.complete(at, device, offset),
                None => self.is_at_end = true,
            }
        }
        Ok(self.release())
    }

    fn place(&self) -> Place {
        self.source.place()
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = self.source.remarks();
        if self.issued == 0 {
            remarks
                .push("no request was issued in it: record the issue events too (action D, block_rq_issue)".to_owned());
        } else if self.unanswered > 0 {
            remarks.push(format!(
                "{} of {} requests have no completion in it, so no latency",
                self.unanswered, self.issued
            ));
        }
        remarks
    }
}

/// Names, each once, by the number of their first appearance.
#[derive(Debug, Default)]
pub(crate) struct Names {
    list: Vec<String>,
    numbers: HashMap<Vec<u8>, u32>,
    /// What was asked for last: most lines name the same file as the one before.
    last: Option<(Vec<u8>, u32)>,
}

/// Most names of a trace: a trace of more is none of a database, and the memory must not grow with it.
const MAX_NAMES: usize = 1 << 16;

impl Names {
    /// The number of a name; `None` where there are too many.
    pub(crate) fn number(&mut self, name: &[u8]) -> Option<u32> {
        if let Some((last, number)) = &self.last
            && last == name
        {
            return Some(*number);
        }
        let number = match self.numbers.get(name) {
            Some(&number) => number,
            None if self.list.len() >= MAX_NAMES => return None,
            None => {
                let number = self.list.len() as u32;
                self.list.push(crate::error::shown(name, 4096));
                self.numbers.insert(name.to_vec(), number);
                number
            }
        };
        self.last = Some((name.to_vec(), number));
        Some(number)
    }

    pub(crate) fn list(&self) -> &[String] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_block::{ByteSize, Operation};
    use proptest::prelude::*;

    struct Listed<T>(VecDeque<T>);

    impl RecordSource for Listed<TraceRecord> {
        fn next(&mut self) -> Result<Option<TraceRecord>, Failure> {
            Ok(self.0.pop_front())
        }

        fn place(&self) -> Place {
            Place::Record(0)
        }
    }

    impl EventSource for Listed<Event> {
        fn next(&mut self) -> Result<Option<Event>, Failure> {
            Ok(self.0.pop_front())
        }

        fn place(&self) -> Place {
            Place::Record(0)
        }

        fn remarks(&self) -> Vec<String> {
            Vec::new()
        }
    }

    fn record(at: u64, block: u64) -> TraceRecord {
        let record = TraceRecord::new(Nanos(at), Operation::Write, ByteSize(block * 512), ByteSize(512));
        TraceRecord { device: Some(1), ..record }
    }

    fn all(mut source: impl RecordSource) -> Vec<TraceRecord> {
        std::iter::from_fn(|| source.next().unwrap()).collect()
    }

    /// What [`Paired`] should give: each request with the first completion at its place before the next request there.
    fn naive(events: &[Event]) -> Vec<TraceRecord> {
        let mut found = Vec::new();
        for (index, event) in events.iter().enumerate() {
            let Event::Issued(issued) = *event else { continue };
            let mut latency = None;
            for later in &events[index + 1..] {
                match *later {
                    Event::Issued(other) if other.offset == issued.offset => break,
                    Event::Completed { at, offset, .. } if offset == issued.offset.0 => {
                        latency = Some(at.since(issued.at));
                        break;
                    }
                    _ => {}
                }
            }
            found.push(TraceRecord { latency, ..issued });
        }
        found
    }

    proptest! {
        #[test]
        fn requests_get_their_completions_in_the_order_of_issue(steps in prop::collection::vec((any::<bool>(), 0_u64..6), 0..60)) {
            let event = |(at, (issue, block)): (u64, &(bool, u64))| match issue {
                true => Event::Issued(record(at, *block)),
                false => Event::Completed { at: Nanos(at), device: 1, offset: *block * 512 },
            };
            let events: Vec<Event> = (0..).zip(&steps).map(event).collect();
            prop_assert_eq!(all(Paired::new(Listed(events.clone().into()))), naive(&events));
        }

        #[test]
        fn requests_are_sorted_by_submission_and_equals_keep_their_order(times in prop::collection::vec(0_u64..9, 0..60)) {
            let mut records: Vec<_> = times.iter().zip(0..).map(|(&at, block)| record(at, block)).collect();
            let sorted = all(Sorted::new(Listed(records.clone().into())));
            records.sort_by_key(|record| record.at);
            prop_assert_eq!(sorted, records);
        }
    }

    #[test]
    fn a_request_without_completion_holds_back_no_more_than_the_window() {
        let count = 2 * WINDOW as u64;
        let events = (0..count).flat_map(|at| {
            let completed = Event::Completed { at: Nanos(at), device: 1, offset: at * 512 };
            // The first one never comes back.
            [Some(Event::Issued(record(at, at))), (at > 0).then_some(completed)].into_iter().flatten()
        });
        let mut paired = Paired::new(Listed(events.collect()));
        let first = paired.next().unwrap().unwrap();
        assert_eq!((first.offset.0, first.latency, paired.waiting.len()), (0, None, WINDOW - 1));
        assert_eq!(all(paired).len() as u64, count - 1);
    }
}
