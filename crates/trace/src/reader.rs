//! The one reader: any format, one request after the other, whose memory does not grow with the trace.
//!
//! It opens the bytes, decides on the format or takes the one that was asked for, and hands on what the format's own
//! reader gives: a request, or what is wrong with a line. Up to [`ReadOptions::skip_bad_lines`] bad lines are counted
//! and passed over.
//!
//! Times from the trace's start count from its first request, or, after [`TraceReader::find_start`], from the earliest
//! of its first 65,536. What is earlier is an error: no time is ever clamped.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use flashwise_block::{Nanos, Operation, interrupt};

use crate::error::{Place, TraceError};
use crate::format::blktrace_files::CpuFiles;
use crate::format::detect::{Detection, Head, detect};
use crate::format::source::{Failure, Paired, RecordSource, WINDOW};
use crate::format::{TraceFormat, Units};
use crate::input::{Compression, Input};
use crate::record::{TraceClock, TraceRecord};
use crate::{IoRecord, IoTrace};

/// How a trace is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// How it is written. Default: auto.
    pub format: TraceFormat,
    /// How a line is laid out, for `columns` and for what `blkparse -f` prints. Default: the format's own.
    pub layout: Option<Arc<str>>,
    /// How many lines may be bad before it is an error. Default: 0.
    pub skip_bad_lines: u64,
    /// Bytes of a sector, for formats that count in sectors. Default: 512.
    pub sector_bytes: u64,
    /// Bytes of a page, for formats that count in pages. Default: 4096.
    pub page_bytes: u64,
    /// In formats whose requests name objects: takes an object's number for its byte, whatever its size, and tells no
    /// length. Where only the identity of objects matters, any 64 bits are a good number. Default: no.
    pub object_ids: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: TraceFormat::Auto,
            layout: None,
            skip_bad_lines: 0,
            sector_bytes: 512,
            page_bytes: 4096,
            object_ids: false,
        }
    }
}

impl ReadOptions {
    /// Everything else has its default.
    pub fn of(format: TraceFormat) -> Self {
        Self { format, ..Self::default() }
    }
}

/// Reads a trace, record by record.
///
/// ```
/// use flashwise_trace::{ReadOptions, TraceFormat, TraceReader};
///
/// let text = "128166372003061629,web,0,Read,4096,8192,1331\n";
/// let mut reader = TraceReader::read(text.as_bytes(), "web.csv", &ReadOptions::default())?;
/// assert_eq!(reader.detection().format, TraceFormat::Msr);
/// assert_eq!(reader.next_record()?.unwrap().length.bytes(), 8192);
/// assert_eq!(reader.next_record()?, None);
/// # Ok::<(), flashwise_trace::TraceError>(())
/// ```
pub struct TraceReader {
    name: String,
    source: Box<dyn RecordSource>,
    detection: Detection,
    layers: Vec<Compression>,
    allowed: u64,
    skipped: u64,
    first: Option<Nanos>,
    /// Time of the request that was given last, and how many were earlier than the one before.
    last: Nanos,
    earlier: u64,
    /// What times from the start count from, where that is not the first request.
    earliest: Option<Nanos>,
    /// What was read ahead to find the earliest request, with where it stands.
    ahead: VecDeque<(Result<TraceRecord, Failure>, Place)>,
    /// Where the request stands that was given last.
    place: Option<Place>,
    is_ended: bool,
}

/// Bytes of a request that no drive has, and no trace either unless it is damaged.
const MOST_BYTES: u64 = 1 << 40;

impl std::fmt::Debug for TraceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceReader")
            .field("name", &self.name)
            .field("detection", &self.detection)
            .finish_non_exhaustive()
    }
}

impl TraceReader {
    /// Opens a file, a named pipe, or with the name `-` standard input. One of the files that blktrace leaves for each
    /// CPU (`sda.blktrace.0`) stands for all of them, and so does their folder.
    ///
    /// # Errors
    /// When it cannot be opened, or its format cannot be told.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Self, TraceError> {
        if path == Path::new("-") {
            return Self::read(io::stdin(), "standard input", options);
        }
        let name = path.display().to_string();
        if matches!(options.format, TraceFormat::Auto | TraceFormat::Blktrace)
            && let Some(files) = CpuFiles::of(path).map_err(|e| TraceError::unreadable(&name, e))?
        {
            return Self::merged(&files, name, options);
        }
        let input = Input::open(path).map_err(|e| TraceError::unreadable(&name, e))?;
        Self::new(input, name, options)
    }

    /// Reads bytes; `name` is for messages.
    ///
    /// # Errors
    /// When nothing can be read, or the format cannot be told.
    pub fn read(bytes: impl Read + Send + 'static, name: &str, options: &ReadOptions) -> Result<Self, TraceError> {
        let input = Input::read(bytes).map_err(|e| TraceError::unreadable(name, e))?;
        Self::new(input, name.to_owned(), options)
    }

    fn merged(files: &CpuFiles, name: String, options: &ReadOptions) -> Result<Self, TraceError> {
        let merged = files.open().map_err(|reason| TraceError::unreadable(&name, reason))?;
        let reason = "blktrace files, one per CPU, merged by time";
        let detection = Detection { format: TraceFormat::Blktrace, reason };
        Ok(Self::of(Box::new(Paired::new(merged)), name, detection, Vec::new(), options))
    }

    fn new(input: Input, name: String, options: &ReadOptions) -> Result<Self, TraceError> {
        let file = input.name.clone().unwrap_or_else(|| name.clone());
        let detection = match options.format {
            TraceFormat::Auto => detect(&Head::new(&file, &input.head, input.is_whole))
                .map_err(|reason| TraceError::Unrecognised { path: name.clone(), reason })?,
            format => Detection { format, reason: "set with --trace-format" },
        };
        let layers = input.layers.clone();
        let (_, plain) = Compression::of_name(&file);
        let (sector, page) = (options.sector_bytes, options.page_bytes);
        let units =
            Units { name: plain, sector, page, object_ids: options.object_ids, layout: options.layout.as_deref() };
        let entry = detection.format.entry();
        let entry = entry.ok_or_else(|| TraceError::unreadable(&name, "unknown trace format"))?;
        let source = (entry.open)(input, &units).map_err(|reason| TraceError::unreadable(&name, reason))?;
        Ok(Self::of(source, name, detection, layers, options))
    }

    fn of(
        source: Box<dyn RecordSource>,
        name: String,
        detection: Detection,
        layers: Vec<Compression>,
        options: &ReadOptions,
    ) -> Self {
        let allowed = options.skip_bad_lines;
        Self {
            name,
            source,
            detection,
            layers,
            allowed,
            skipped: 0,
            first: None,
            last: Nanos(0),
            earlier: 0,
            earliest: None,
            ahead: VecDeque::new(),
            place: None,
            is_ended: false,
        }
    }

    /// The next request in the order of submission, or `None` at the end.
    ///
    /// # Errors
    /// At a line that is bad, when no more of them may be passed over, when the trace cannot be read on, and when the
    /// user interrupts. It then stays at its end.
    pub fn next_record(&mut self) -> Result<Option<TraceRecord>, TraceError> {
        if interrupt::is_requested() {
            self.is_ended = true;
            return Err(TraceError::Interrupted);
        }
        while !self.is_ended {
            let next = match self.ahead.pop_front() {
                Some((next, place)) => {
                    self.place = Some(place);
                    next.map(Some)
                }
                None => {
                    self.place = None;
                    self.source.next().and_then(|record| record.map(possible).transpose())
                }
            };
            match next {
                Ok(Some(record)) => {
                    self.first.get_or_insert(record.at);
                    self.earlier += u64::from(record.at < self.last);
                    self.last = record.at;
                    return Ok(Some(record));
                }
                Ok(None) => self.is_ended = true,
                Err(Failure::Bad { text, reason }) => self.bad(text, reason)?,
                Err(Failure::Fatal(reason)) => {
                    self.is_ended = true;
                    return Err(self.malformed(String::new(), reason));
                }
            }
        }
        Ok(None)
    }

    /// Reads ahead up to 65,536 requests, so that times from the start count from the earliest of them and not from the
    /// first. Before the first request, and where the trace's clock is no start.
    pub fn find_start(&mut self) {
        if self.clock() == TraceClock::Start || self.first.is_some() {
            return;
        }
        while self.ahead.len() < WINDOW {
            let next = self.source.next().and_then(|record| record.map(possible).transpose());
            let next = match next {
                Ok(None) => break,
                Ok(Some(record)) => Ok(record),
                Err(failure) => Err(failure),
            };
            if let Ok(record) = &next {
                self.earliest = Some(self.earliest.map_or(record.at, |earliest| earliest.min(record.at)));
            }
            let is_fatal = matches!(next, Err(Failure::Fatal(_)));
            self.ahead.push_back((next, self.source.place()));
            if is_fatal {
                break;
            }
        }
    }

    #[cold]
    fn bad(&mut self, text: String, reason: String) -> Result<(), TraceError> {
        if self.skipped < self.allowed {
            self.skipped += 1;
            return Ok(());
        }
        self.is_ended = true;
        Err(self.malformed(text, reason))
    }

    fn malformed(&self, text: String, reason: String) -> TraceError {
        // What fails before the first line or behind the last is still told with a line.
        let place = match self.place() {
            Place::Line(0) => Place::Line(1),
            Place::Record(0) => Place::Record(1),
            place => place,
        };
        TraceError::Malformed { path: self.name.clone(), place, text, reason }
    }

    /// The trace's name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The format, and why.
    pub fn detection(&self) -> Detection {
        self.detection
    }

    /// How the file is packed; where that is more than once, on the outside.
    pub fn compression(&self) -> Compression {
        self.layers.first().copied().unwrap_or(Compression::None)
    }

    /// How the file is packed, in words, the outermost first: none, or such as gzip, tar.
    pub fn packing(&self) -> String {
        let names: Vec<_> = self.layers.iter().map(|layer| layer.name()).collect();
        if names.is_empty() { Compression::None.name().to_owned() } else { names.join(", ") }
    }

    /// What the records' times count from.
    pub fn clock(&self) -> TraceClock {
        self.detection.format.clock()
    }

    /// A time of this trace, counted from its start: where the clock's start is that of the recording it stays as it
    /// is, elsewhere it is counted from the first request, or from the earliest after [`find_start`](Self::find_start).
    ///
    /// # Errors
    /// When it is before that.
    pub fn since_start(&self, at: Nanos) -> Result<Nanos, TraceError> {
        self.on_clock(TraceClock::Start, at)
    }

    /// A time of this trace on another clock; from the start as [`since_start`](Self::since_start) has it.
    ///
    /// # Errors
    /// When it is before the start, or the other clock does not reach it.
    pub fn on_clock(&self, to: TraceClock, at: Nanos) -> Result<Nanos, TraceError> {
        let start = self.earliest.or(self.first).unwrap_or(at);
        self.clock().convert(to, at, start).map_err(|reason| self.malformed(String::new(), reason))
    }

    /// Time of the first request.
    pub fn first(&self) -> Option<Nanos> {
        self.first
    }

    /// Lines that were passed over so far.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Where the request stands that was given last.
    pub fn place(&self) -> Place {
        self.place.unwrap_or_else(|| self.source.place())
    }

    /// Names of the files or disks that [`TraceRecord::file`] points to, as far as the trace has been read.
    pub fn files(&self) -> &[String] {
        self.source.files()
    }

    /// What the trace holds and no record tells, a sentence each; complete at the end.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = self.source.remarks();
        if self.earlier > 0 {
            let count = self.earlier;
            remarks.push(format!("{count} requests are earlier than the one before: the trace is not in time order"));
        }
        remarks
    }

    /// All requests, with times from the trace's start; a latency that is not known is 0. This holds the whole trace in
    /// memory, 48 bytes a request.
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record).
    pub fn into_trace(mut self) -> Result<IoTrace, TraceError> {
        let mut trace = IoTrace::default();
        self.find_start();
        while let Some(record) = self.next_record()? {
            let record = IoRecord { at: self.since_start(record.at)?, ..record.into() };
            trace.records.push(record);
        }
        Ok(trace)
    }
}

/// A request that a drive could be asked for.
#[inline]
fn possible(record: TraceRecord) -> Result<TraceRecord, Failure> {
    let (offset, length) = (record.offset.0, record.length.0);
    let moves_data = matches!(record.operation, Operation::Read | Operation::Write);
    match offset.checked_add(length) {
        Some(_) if length <= MOST_BYTES || !moves_data => Ok(record),
        Some(_) => Err(Failure::bad(format!("the request is {length} bytes long; at most {MOST_BYTES} are supported"))),
        None => Err(Failure::bad(format!("{length} bytes at byte {offset} exceed 2^64 bytes"))),
    }
}

impl Iterator for TraceReader {
    type Item = Result<TraceRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_record().transpose()
    }
}
