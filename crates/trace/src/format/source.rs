//! What is common to several formats: texts of one request a line, requests that a trace tells in two parts, and
//! requests that it tells in the order of their completion.
//!
//! ```text
//!   lines ─▶ Text: data, or chatter ─▶ LineParser ──▶ TextSource ──┬───────────────────────────┐
//!                                 │                                └▶ Sorted (by completion) ──┼─▶ RecordSource
//!                                 └─▶ EventParser ─▶ EventText ──┐                             │
//!   records ─▶ events: issued, completed, requeued ──────────────┴──▶ Paired ──────────────────┘
//! ```
//!
//! **Data and chatter.** A parser says of a line that it is data, or which known kind of other line it is; what is
//! neither is an error with its line. What all texts may have beside their data (empty lines, comments, a line of
//! column names, the `^C` of a terminal) is known here ([`Text`]). Chatter is skipped, counted and reported by its
//! kind.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;

use flashwise_block::{ByteSize, Nanos};

use crate::error::{Place, shown_line};
use crate::input::{Input, lines::Lines};
use crate::record::TraceRecord;

/// Requests that are held back at most, to give those before them their completion or their place.
pub(crate) const WINDOW: usize = 1 << 16;

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

    /// A record that is bad, where there is no line to show.
    pub(crate) fn bad(reason: String) -> Self {
        Self::Bad { text: String::new(), reason }
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

    /// Where the request stands that [`next`](Self::next) gave last, or what it failed at.
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

/// What a line is.
#[derive(Debug)]
pub(crate) enum Line<T> {
    /// A request, or an event of one.
    Data(T),
    /// A part of the format that asks nothing of a drive and needs no word, such as the opening of a file.
    Silent,
    /// A known kind of line that is no request, under the name that it is reported by.
    Chatter(Cow<'static, str>),
    /// A line that cannot be read, although it may look like a line of names.
    Wrong(String),
}

impl<T> Line<T> {
    /// Chatter of a kind that is known when the program is built.
    pub(crate) fn chatter(kind: &'static str) -> Self {
        Self::Chatter(Cow::Borrowed(kind))
    }
}

/// Kinds of chatter that are told apart; a damaged file must not fill the memory with more.
const MOST_KINDS: usize = 24;

/// What was skipped, by kind.
#[derive(Debug, Default)]
pub(crate) struct Chatter {
    kinds: Vec<(Cow<'static, str>, u64)>,
}

impl Chatter {
    /// Counts one of a kind.
    pub(crate) fn note(&mut self, kind: Cow<'static, str>) {
        if let Some((_, count)) = self.kinds.iter_mut().find(|(known, _)| *known == kind) {
            *count += 1;
        } else if self.kinds.len() < MOST_KINDS {
            self.kinds.push((kind, 1));
        } else if let Some((last, count)) = self.kinds.last_mut() {
            *last = Cow::Borrowed("others");
            *count += 1;
        }
    }

    /// Adds what another one counted.
    pub(crate) fn add(&mut self, other: &Self) {
        for (kind, count) in &other.kinds {
            self.note(kind.clone());
            if let Some((_, known)) = self.kinds.iter_mut().find(|(known, _)| known == kind) {
                *known += count - 1;
            }
        }
    }

    /// The kinds with their counts; `None` where there are none.
    pub(crate) fn listed(&self) -> Option<String> {
        let counted: Vec<_> = self.kinds.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
        (!counted.is_empty()).then(|| counted.join(", "))
    }

    /// What was skipped, in a sentence.
    pub(crate) fn remark(&self) -> Option<String> {
        self.listed().map(|kinds| format!("left out, as they are not requests: {kinds}"))
    }
}

/// A text: its lines, what is chatter in every text, and the count of chatter.
pub(crate) struct Text {
    lines: Lines,
    chatter: Chatter,
    common: Common,
}

impl Text {
    pub(crate) fn new(input: Input) -> Self {
        Self { lines: Lines::new(input.into_bytes()), chatter: Chatter::default(), common: Common::default() }
    }

    /// The next line that is data.
    #[inline]
    fn next<T>(&mut self, mut parse: impl FnMut(&[u8]) -> Result<Line<T>, String>) -> Result<Option<T>, Failure> {
        while let Some(line) = self.lines.next()? {
            match parse(line) {
                Ok(Line::Data(data)) => {
                    self.common.has_data = true;
                    return Ok(Some(data));
                }
                Ok(Line::Silent) => {}
                Ok(Line::Chatter(kind)) => self.chatter.note(kind),
                Ok(Line::Wrong(reason)) => return Err(Failure::Bad { text: shown_line(line), reason }),
                Err(reason) => match self.common.kind(line) {
                    Some(None) => {}
                    Some(Some(kind)) => self.chatter.note(Cow::Borrowed(kind)),
                    None => return Err(Failure::Bad { text: shown_line(line), reason }),
                },
            }
        }
        Ok(None)
    }

    fn place(&self) -> Place {
        Place::Line(self.lines.number())
    }

    fn remarks(&self, mut of_parser: Vec<String>) -> Vec<String> {
        of_parser.extend(self.chatter.remark());
        of_parser
    }
}

/// What any text may have beside its data.
#[derive(Debug, Default)]
pub(crate) struct Common {
    /// Whether a line was data: a line of names comes before.
    pub(crate) has_data: bool,
    /// The line of column names, which comes again where files were joined.
    header: Option<Vec<u8>>,
}

impl Common {
    /// The kind of a line that no parser takes: `Some(None)` for one that needs no word, `None` for one that is wrong.
    pub(crate) fn kind(&mut self, line: &[u8]) -> Option<Option<&'static str>> {
        let text = line.trim_ascii();
        match text {
            [] | b"\x1a" => return Some(None),
            [b'#', ..] => return Some(Some("comments")),
            [b'^', b'A'..=b'Z'] | [b'^', b'A'..=b'Z', b'^', ..] => return Some(Some("control keys of a terminal")),
            _ => {}
        }
        let is_header = self.header.as_deref().map_or(!self.has_data && is_header(text), |header| header == text);
        if is_header {
            self.header.get_or_insert_with(|| text.to_vec());
        }
        is_header.then_some(Some("headers"))
    }
}

/// Whether a line has names of columns only: two or more, and none starts as a number does.
fn is_header(line: &[u8]) -> bool {
    let is_between = |byte: &u8| matches!(byte, b',' | b';' | b'\t' | b'|');
    let separator = if line.iter().any(is_between) { is_between } else { |byte: &u8| byte.is_ascii_whitespace() };
    let names = line.split(separator).map(|name| name.trim_ascii().trim_ascii_start());
    let unquoted = names.map(|name| name.strip_prefix(b"\"").unwrap_or(name));
    let (mut count, mut fits) = (0, true);
    for name in unquoted.filter(|name| !name.is_empty()) {
        count += 1;
        fits &= name[0].is_ascii_alphabetic() && name.iter().all(|byte| !byte.is_ascii_control());
    }
    fits && count >= 2
}

/// One line at a time.
pub(crate) trait LineParser: Send {
    /// What a line is.
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String>;

    /// Whether the parser reads the line of column names itself, so that a wrong one is an error.
    fn reads_names(&self) -> bool {
        false
    }

    /// A further request of the line that was parsed last.
    fn further(&mut self) -> Option<TraceRecord> {
        None
    }

    /// Names of the files that records point to.
    fn files(&self) -> &[String] {
        &[]
    }

    /// What the trace holds and no record tells.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Requests of a text, a line each.
pub(crate) struct TextSource<P> {
    text: Text,
    parser: P,
}

impl<P: LineParser> TextSource<P> {
    pub(crate) fn new(input: Input, parser: P) -> Self {
        let mut text = Text::new(input);
        // A line of names behind data is none.
        text.common.has_data = parser.reads_names();
        Self { text, parser }
    }
}

impl<P: LineParser> RecordSource for TextSource<P> {
    #[inline]
    fn next(&mut self) -> Result<Option<TraceRecord>, Failure> {
        match self.parser.further() {
            Some(record) => Ok(Some(record)),
            None => self.text.next(|line| self.parser.parse(line)),
        }
    }

    fn place(&self) -> Place {
        self.text.place()
    }

    fn files(&self) -> &[String] {
        self.parser.files()
    }

    fn remarks(&self) -> Vec<String> {
        self.text.remarks(self.parser.remarks())
    }
}

/// What a parser adds to times of which some may are before the start of the recording, ns: 2^62, or 146 years.
pub(crate) const BIAS: u64 = 1 << 62;

/// Requests that a trace tells as they complete, in the order of their submission, as far as [`WINDOW`] reaches.
///
/// A recording counts from its start, and a request that was in flight then was submitted before it. With
/// [`biased`](Self::biased) the times count from the earliest submission where that is before the start.
pub(crate) struct Sorted<S> {
    source: S,
    /// Earliest first; the number keeps the trace's order among equals.
    held: BinaryHeap<Reverse<(Nanos, u64)>>,
    records: HashMap<u64, (TraceRecord, Place)>,
    number: u64,
    is_at_end: bool,
    /// What the parser added to each time.
    bias: u64,
    /// What is taken off each time: the bias, or less.
    start: Option<u64>,
    /// Where the request stands that was given last; `None` after a failure, whose place the source knows.
    last: Option<Place>,
}

impl<S: RecordSource> Sorted<S> {
    pub(crate) fn new(source: S) -> Self {
        Self {
            source,
            held: BinaryHeap::new(),
            records: HashMap::new(),
            number: 0,
            is_at_end: false,
            bias: 0,
            start: None,
            last: None,
        }
    }

    /// Of a parser that adds [`BIAS`] to its times.
    pub(crate) fn biased(source: S) -> Self {
        Self { bias: BIAS, ..Self::new(source) }
    }

    fn release(&mut self) -> Result<Option<TraceRecord>, Failure> {
        let Some(Reverse((at, number))) = self.held.pop() else { return Ok(None) };
        let Some((record, place)) = self.records.remove(&number) else { return Ok(None) };
        self.last = Some(place);
        let start = *self.start.get_or_insert(at.0.min(self.bias));
        match at.0.checked_sub(start) {
            Some(at) => Ok(Some(TraceRecord { at: Nanos(at), ..record })),
            None => Err(Failure::bad(format!(
                "it was submitted {} ns before the first request, which is more than {WINDOW} requests earlier in the \
                 file: sort the trace by time",
                start - at.0
            ))),
        }
    }
}

impl<S: RecordSource> RecordSource for Sorted<S> {
    fn next(&mut self) -> Result<Option<TraceRecord>, Failure> {
        self.last = None;
        while !self.is_at_end && self.held.len() < WINDOW {
            match self.source.next()? {
                Some(record) => {
                    self.held.push(Reverse((record.at, self.number)));
                    self.records.insert(self.number, (record, self.source.place()));
                    self.number += 1;
                }
                None => self.is_at_end = true,
            }
        }
        self.release()
    }

    fn place(&self) -> Place {
        self.last.unwrap_or_else(|| self.source.place())
    }

    fn files(&self) -> &[String] {
        self.source.files()
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = self.source.remarks();
        if let Some(early) = self.start.map(|start| self.bias - start).filter(|&early| early > 0) {
            remarks.push(format!(
                "requests were in flight when the recording started: times count from the first of them, {early} ns \
                 earlier"
            ));
        }
        remarks
    }
}

/// What a trace of the kernel tells of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// It was handed to the drive.
    Issued(TraceRecord),
    /// The request at this device and byte came back.
    Completed { at: Nanos, device: u32, offset: u64 },
    /// The driver gave it back to the kernel, which will issue it again; an append to a zone with its bytes.
    Requeued { at: Nanos, device: u32, offset: u64, append: Option<u64> },
    /// An append to a zone was handed to the drive; its place is the zone's start.
    Appended(TraceRecord),
    /// An append of so many bytes came back, and landed at this byte.
    Landed { at: Nanos, device: u32, offset: u64, length: u64 },
}

impl Event {
    /// When it happened.
    pub(crate) fn at(&self) -> Nanos {
        match self {
            Self::Issued(record) | Self::Appended(record) => record.at,
            Self::Completed { at, .. } | Self::Requeued { at, .. } | Self::Landed { at, .. } => *at,
        }
    }
}

/// A trace of events.
pub(crate) trait EventSource: Send {
    /// The next event, or `None` at the end.
    fn next(&mut self) -> Result<Option<Event>, Failure>;
    /// Where the event stands that [`next`](Self::next) gave last, or what it failed at.
    fn place(&self) -> Place;
    /// What the trace holds and no record tells.
    fn remarks(&self) -> Vec<String>;
}

/// One line of a text of events at a time.
pub(crate) trait EventParser: Send {
    /// What a line is.
    fn parse(&mut self, line: &[u8]) -> Result<Line<Event>, String>;
    /// What the trace holds and no record tells.
    fn remarks(&self) -> Vec<String>;
}

/// The lines of a trace of events as text.
pub(crate) struct EventText<P> {
    text: Text,
    parser: P,
}

impl<P: EventParser> EventText<P> {
    pub(crate) fn new(input: Input, parser: P) -> Self {
        Self { text: Text::new(input), parser }
    }
}

impl<P: EventParser> EventSource for EventText<P> {
    fn next(&mut self) -> Result<Option<Event>, Failure> {
        self.text.next(|line| self.parser.parse(line))
    }

    fn place(&self) -> Place {
        self.text.place()
    }

    fn remarks(&self) -> Vec<String> {
        self.text.remarks(self.parser.remarks())
    }
}

/// Requests with their completions, in the order in which they were issued. A request waits for its completion until
/// [`WINDOW`] others wait behind it; then it goes out without. One that the driver gives back is the request that is
/// issued in its place afterwards, and not one more.
pub(crate) struct Paired<S> {
    source: S,
    /// `None` for a request that was given back.
    waiting: VecDeque<Option<(TraceRecord, Place)>>,
    /// Number of the first that waits, from the start of the trace.
    first: u64,
    /// Numbers of the requests that have not come back.
    open: HashMap<Key, u64>,
    /// The same of appends to zones by device and bytes, in their order: where they land the drive decides.
    appends: HashMap<Key, VecDeque<u64>>,
    is_at_end: bool,
    issued: u64,
    unanswered: u64,
    requeued: u64,
    /// Completions that are earlier than their request.
    early: u64,
    /// Where the request stands that was given last; `None` after a failure, whose place the source knows.
    last: Option<Place>,
}

/// What tells requests in flight apart: device and byte.
type Key = (u32, u64);

impl<S: EventSource> Paired<S> {
    pub(crate) fn new(source: S) -> Self {
        let (waiting, open, appends) = (VecDeque::new(), HashMap::new(), HashMap::new());
        let (issued, unanswered, requeued, early) = (0, 0, 0, 0);
        let (first, is_at_end, last) = (0, false, None);
        Self { source, waiting, first, open, appends, is_at_end, issued, unanswered, requeued, early, last }
    }

    fn issue(&mut self, record: TraceRecord, place: Place) {
        let number = self.wait(record, place);
        self.open.insert(key(&record), number);
    }

    fn append(&mut self, record: TraceRecord, place: Place) {
        let number = self.wait(record, place);
        self.appends.entry((record.device.unwrap_or_default(), record.length.0)).or_default().push_back(number);
    }

    /// Puts a request behind the others; its number.
    fn wait(&mut self, record: TraceRecord, place: Place) -> u64 {
        self.issued += 1;
        self.waiting.push_back(Some((record, place)));
        self.first + self.waiting.len() as u64 - 1
    }

    /// The request in flight at a place, which is so no more.
    fn take(&mut self, key: Key) -> Option<&mut Option<(TraceRecord, Place)>> {
        let number = self.open.remove(&key)?;
        self.numbered(number)
    }

    /// The oldest append of so many bytes that is in flight, which is so no more.
    fn take_append(&mut self, device: u32, length: u64) -> Option<&mut Option<(TraceRecord, Place)>> {
        let numbers = self.appends.get_mut(&(device, length))?;
        let number = numbers.pop_front()?;
        if numbers.is_empty() {
            self.appends.remove(&(device, length));
        }
        self.numbered(number)
    }

    fn numbered(&mut self, number: u64) -> Option<&mut Option<(TraceRecord, Place)>> {
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok())?;
        self.waiting.get_mut(place)
    }

    fn complete(&mut self, at: Nanos, key: Key) {
        if let Some(Some((record, _))) = self.take(key) {
            match at.0.checked_sub(record.at.0) {
                Some(latency) => record.latency = Some(Nanos(latency)),
                None => self.early += 1,
            }
        }
    }

    fn land(&mut self, at: Nanos, device: u32, offset: u64, length: u64) {
        if let Some(Some((record, _))) = self.take_append(device, length) {
            record.offset = ByteSize(offset);
            match at.0.checked_sub(record.at.0) {
                Some(latency) => record.latency = Some(Nanos(latency)),
                None => self.early += 1,
            }
        }
    }

    fn requeue(&mut self, key: Key, append: Option<u64>) {
        let waiting = match append {
            Some(length) => self.take_append(key.0, length),
            None => self.take(key),
        };
        if let Some(waiting) = waiting
            && waiting.take().is_some()
        {
            self.requeued += 1;
            self.issued -= 1;
        }
    }

    fn release(&mut self) -> Option<TraceRecord> {
        loop {
            let number = self.first;
            let waiting = self.waiting.pop_front()?;
            self.first += 1;
            let Some((record, place)) = waiting else { continue };
            if record.latency.is_none() {
                self.unanswered += 1;
                if self.open.get(&key(&record)) == Some(&number) {
                    self.open.remove(&key(&record));
                }
                let append = (record.device.unwrap_or_default(), record.length.0);
                if self.appends.get(&append).and_then(VecDeque::front) == Some(&number) {
                    self.take_append(append.0, append.1);
                }
            }
            self.last = Some(place);
            return Some(record);
        }
    }

    fn is_ready(&self) -> bool {
        let is_done =
            |waiting: &Option<(TraceRecord, Place)>| waiting.is_some_and(|(record, _)| record.latency.is_some());
        self.waiting.front().is_some_and(is_done) || self.waiting.len() >= WINDOW
    }

    /// Requests that were given back need no place in the window.
    fn drop_requeued(&mut self) {
        while self.waiting.front().is_some_and(Option::is_none) {
            self.waiting.pop_front();
            self.first += 1;
        }
    }
}

fn key(record: &TraceRecord) -> Key {
    (record.device.unwrap_or_default(), record.offset.0)
}

impl<S: EventSource> RecordSource for Paired<S> {
    fn next(&mut self) -> Result<Option<TraceRecord>, Failure> {
        self.last = None;
        self.drop_requeued();
        while !self.is_ready() && !self.is_at_end {
            match self.source.next()? {
                Some(Event::Issued(record)) => self.issue(record, self.source.place()),
                Some(Event::Completed { at, device, offset }) => self.complete(at, (device, offset)),
                Some(Event::Appended(record)) => self.append(record, self.source.place()),
                Some(Event::Landed { at, device, offset, length }) => self.land(at, device, offset, length),
                Some(Event::Requeued { device, offset, append, .. }) => {
                    self.requeue((device, offset), append);
                    self.drop_requeued();
                }
                None => self.is_at_end = true,
            }
        }
        Ok(self.release())
    }

    fn place(&self) -> Place {
        self.last.unwrap_or_else(|| self.source.place())
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = self.source.remarks();
        if self.issued == 0 {
            remarks.push("it has no issue events: record them too (action D, block_rq_issue)".to_owned());
        } else if self.unanswered > 0 {
            remarks.push(format!(
                "{} of {} requests have no completion in it, and therefore no latency",
                self.unanswered, self.issued
            ));
        }
        let requeued = "requests were requeued by the driver and issued again: each counts once";
        let early = "completions precede their requests, which therefore have no latency: sort the trace by time";
        let counted = [(self.requeued, requeued), (self.early, early)];
        remarks.extend(counted.iter().filter(|(count, _)| *count > 0).map(|(count, told)| format!("{count} {told}")));
        remarks
    }
}

/// Names, each once, by the number of their first appearance.
#[derive(Debug, Default)]
pub(crate) struct Names {
    list: Vec<String>,
    numbers: HashMap<Vec<u8>, u32>,
    /// Of all names.
    bytes: usize,
    /// What was asked for last: most lines name the same file as the one before.
    last: Option<(Vec<u8>, u32)>,
    /// Requests whose name came after [`MAX_NAMES`] others.
    nameless: u64,
}

/// Most names of a trace: a trace of more is none of a database, and the memory must not grow with it.
const MAX_NAMES: usize = 1 << 16;
/// Most bytes of them together.
const MAX_NAME_BYTES: usize = 64 << 20;

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
            None if self.list.len() >= MAX_NAMES || self.bytes + name.len() > MAX_NAME_BYTES => {
                self.nameless += 1;
                return None;
            }
            None => {
                let number = self.list.len() as u32;
                self.list.push(crate::error::shown(name, 4096));
                self.bytes += name.len();
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

    /// What is to be said of requests without a name.
    pub(crate) fn remark(&self) -> Option<String> {
        let (count, most) = (self.nameless, self.list.len());
        (count > 0).then(|| {
            format!("{count} requests are of files beyond the first {most}; those files are not distinguished")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_block::Operation;
    use proptest::prelude::*;

    #[test]
    fn names_take_so_much_memory_and_no_more() {
        let mut names = Names::default();
        let name = |first: u8| [&[first], &vec![b'x'; MAX_NAME_BYTES / 4 - 1][..]].concat();
        let numbers = [0, 1, 2, 3, 4, 1].map(|first| names.number(&name(first)));
        assert_eq!(numbers, [Some(0), Some(1), Some(2), Some(3), None, Some(1)]);
        assert_eq!(names.number(b"a short one"), None);
        let remark = names.remark().unwrap();
        assert!(remark.starts_with("2 requests are of files beyond the first 4"), "{remark}");
        let mut names = Names::default();
        let found: Vec<_> = (0..=MAX_NAMES).map(|n| names.number(n.to_string().as_bytes())).collect();
        assert_eq!(found.iter().filter(|number| number.is_none()).count(), 1);
    }

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
