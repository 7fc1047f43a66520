//! The requests of a trace: read line by line, checked against the drive, played as often as asked; from memory, where
//! they are few ([`super::kept`]).

use std::path::{Path, PathBuf};

use flashwise_block::{ByteSize, Nanos, Operation};

use super::ascii::{AsciiTrace, Dialect};
use super::kept::{Kept, Reading};
use super::trace_file::{self, TraceText};
use super::{Drive, FlowRequest, Limits};
use crate::csv_format::{CsvRecords, TraceError};
use crate::workload::check::FlowChecker;
use crate::workload::{ReplayPacing, TraceFormat, TraceReplay, WorkloadError};

/// A request as a trace tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) at_ns: u64,
    /// Which drive, in formats that say so.
    pub(super) device: Option<u32>,
    pub(super) operation: Operation,
    /// First byte.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) length: u64,
}

/// Reads a trace and makes requests of it.
#[derive(Debug)]
pub(super) struct Replayed {
    path: PathBuf,
    format: TraceFormat,
    sector: u64,
    device: Option<u32>,
    rules: Rules,
    reader: Reader,
    /// What is played in place of the file.
    kept: Option<Kept>,
    /// Times that the trace is still to be played from its start.
    left: u32,
    /// Added to the times of this round: the last arrival of the one before, ns.
    round_start: u64,
    /// Time of the last request, as the trace tells it.
    last_recorded: u64,
    /// Arrival of the last request, from the flow's start.
    last_arrival: u64,
}

impl Replayed {
    /// Opens a trace after reading it through once, as far as the flow will read it.
    pub(super) fn open(
        flow: &TraceReplay,
        checker: &FlowChecker<'_>,
        drive: Drive,
        base: &Path,
        limits: Limits,
    ) -> Result<Self, WorkloadError> {
        let mut once = Self::start(flow, drive, base, 1)?;
        let (mut requests, mut reading, mut ends_by_time) = (0, Reading::default(), false);
        while requests < limits.requests && !ends_by_time {
            let Some(request) = once.next()? else { break };
            ends_by_time = request.at >= limits.until;
            if !ends_by_time {
                requests += 1;
                reading.note(request);
            }
        }
        if requests == 0 {
            return Err(once.without_requests(limits));
        }
        if once.last_arrival.checked_mul(u64::from(flow.repeat)).is_none() {
            let reason = format!("so many rounds of {} ns are more than 64 bits hold", once.last_arrival);
            return Err(checker.error("trace.repeat", flow.repeat, reason));
        }
        // What ends by its time in the first round must not go on to a second one.
        once.kept = if ends_by_time { None } else { reading.keep(flow.repeat) };
        if once.kept.is_some() { Ok(once) } else { Self::start(flow, drive, base, flow.repeat) }
    }

    fn start(flow: &TraceReplay, drive: Drive, base: &Path, repeat: u32) -> Result<Self, WorkloadError> {
        let (path, format, sector) = (base.join(&flow.path), flow.format, flow.logical_block_bytes);
        let reader = Reader::open(&path, format, sector)?;
        Ok(Self {
            path,
            format,
            sector,
            device: flow.device,
            rules: Rules::new(flow, drive),
            reader,
            kept: None,
            left: repeat - 1,
            round_start: 0,
            last_recorded: 0,
            last_arrival: 0,
        })
    }

    fn without_requests(&self, limits: Limits) -> WorkloadError {
        let of = self.device.map_or_else(String::new, |device| format!(" of device {device}"));
        let within = match limits.until {
            Nanos(u64::MAX) => String::new(),
            Nanos(until) => format!(" within the flow's {until} ns"),
        };
        WorkloadError::unreadable(&self.path.display().to_string(), format!("the trace has no request{of}{within}"))
    }

    /// The next request, or `None` at the end of the last round.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<FlowRequest>, WorkloadError> {
        match &mut self.kept {
            Some(kept) => Ok(kept.next()),
            None => self.read_next(),
        }
    }

    fn read_next(&mut self) -> Result<Option<FlowRequest>, WorkloadError> {
        loop {
            match self.reader.next() {
                Ok(Some(recorded)) if self.is_wanted(&recorded) => {
                    return self.request(recorded).map(Some).map_err(|reason| self.at_line(reason));
                }
                Ok(Some(_)) => {}
                Ok(None) if self.left == 0 => return Ok(None),
                Ok(None) => self.rewind()?,
                Err(reason) => return Err(self.at_line(reason)),
            }
        }
    }

    fn is_wanted(&self, recorded: &Recorded) -> bool {
        self.device.is_none() || self.device == recorded.device
    }

    fn rewind(&mut self) -> Result<(), WorkloadError> {
        self.reader = Reader::open(&self.path, self.format, self.sector)?;
        (self.left, self.round_start, self.last_recorded) = (self.left - 1, self.last_arrival, 0);
        Ok(())
    }

    fn request(&mut self, recorded: Recorded) -> Result<FlowRequest, String> {
        let at = self.arrival(recorded.at_ns)?;
        let (offset, length) = self.rules.place(&recorded)?;
        let (operation, offset, length) = (recorded.operation, ByteSize(offset), ByteSize(length));
        Ok(FlowRequest { operation, offset, length, fua: false, at: Nanos(at) })
    }

    fn arrival(&mut self, recorded: u64) -> Result<u64, String> {
        if !self.rules.timed {
            return Ok(0);
        }
        if recorded < self.last_recorded {
            let last = self.last_recorded;
            return Err(format!("time goes back from {last} ns to {recorded} ns; sort the trace by time"));
        }
        let scaled = self.rules.scaled(recorded)?;
        let arrival =
            self.round_start.checked_add(scaled).ok_or("its time is more than 64 bits of nanoseconds hold")?;
        (self.last_recorded, self.last_arrival) = (recorded, arrival);
        Ok(arrival)
    }

    fn at_line(&self, reason: String) -> WorkloadError {
        WorkloadError::trace(&self.path.display().to_string(), self.reader.line(), reason)
    }
}

/// What a trace's requests become on this drive.
#[derive(Debug)]
struct Rules {
    drive: Drive,
    fold: bool,
    time_scale: f64,
    timed: bool,
}

impl Rules {
    fn new(flow: &TraceReplay, drive: Drive) -> Self {
        let timed = flow.pacing == ReplayPacing::Timestamps;
        Self { drive, fold: flow.fold, time_scale: flow.time_scale, timed }
    }

    /// A time of the trace, scaled.
    fn scaled(&self, time: u64) -> Result<u64, String> {
        if self.time_scale == 1.0 {
            return Ok(time);
        }
        let scaled = (time as f64 * self.time_scale).round();
        let fits = scaled < 2f64.powi(63);
        if fits { Ok(scaled as u64) } else { Err(format!("its time, scaled to {scaled} ns, is more than 292 years")) }
    }

    /// Offset and length on the drive.
    fn place(&self, recorded: &Recorded) -> Result<(u64, u64), String> {
        if recorded.operation == Operation::Flush {
            return Ok((0, 0));
        }
        let (offset, length, block) = (recorded.offset, recorded.length, self.drive.logical_block);
        if length == 0 {
            return Err("it asks for 0 bytes; a request has at least one".to_owned());
        }
        if !offset.is_multiple_of(block) || !length.is_multiple_of(block) {
            return Err(format!(
                "{length} bytes at byte {offset}: both must be multiples of the drive's logical block, {block} bytes"
            ));
        }
        self.fit(offset, length)
    }

    fn fit(&self, offset: u64, length: u64) -> Result<(u64, u64), String> {
        let capacity = self.drive.capacity;
        let last = capacity.checked_sub(length);
        match last {
            Some(last) if offset <= last => Ok((offset, length)),
            Some(last) if self.fold => Ok(((offset % capacity).min(last), length)),
            Some(_) => Err(format!(
                "{length} bytes at byte {offset}: the drive ends at byte {capacity}; fold = true wraps the trace around it"
            )),
            None => Err(format!("{length} bytes at byte {offset}: the drive has {capacity} bytes")),
        }
    }
}

/// A trace in one of the formats.
#[derive(Debug)]
enum Reader {
    Ascii(AsciiTrace),
    Csv(CsvRecords<TraceText>),
}

impl Reader {
    fn open(path: &Path, format: TraceFormat, sector: u64) -> Result<Self, WorkloadError> {
        let name = || path.display().to_string();
        let text = trace_file::open(path).map_err(|e| WorkloadError::unreadable(&name(), e))?;
        Ok(match format {
            TraceFormat::Mqsim => Self::Ascii(AsciiTrace::new(text, Dialect::Mqsim, sector)),
            TraceFormat::Disksim => Self::Ascii(AsciiTrace::new(text, Dialect::Disksim, sector)),
            TraceFormat::Csv => Self::Csv(CsvRecords::unquoted(text).map_err(|e| csv_error(&name(), e))?),
        })
    }

    fn line(&self) -> u64 {
        match self {
            Self::Ascii(trace) => trace.line(),
            Self::Csv(records) => records.line(),
        }
    }

    /// The next request, or what is wrong with its line.
    fn next(&mut self) -> Result<Option<Recorded>, String> {
        match self {
            Self::Ascii(trace) => trace.next(),
            Self::Csv(records) => match records.next() {
                None => Ok(None),
                Some(Ok(record)) => Ok(Some(Recorded {
                    at_ns: record.at.0,
                    device: None,
                    operation: record.operation,
                    offset: record.offset.0,
                    length: record.length.0,
                })),
                Some(Err(TraceError::Malformed { reason, .. })) => Err(reason),
                Some(Err(TraceError::Io(error))) => Err(error.to_string()),
            },
        }
    }
}

fn csv_error(path: &str, error: TraceError) -> WorkloadError {
    match error {
        TraceError::Malformed { line, reason } => WorkloadError::trace(path, line.max(1), reason),
        TraceError::Io(error) => WorkloadError::trace(path, 1, error.to_string()),
    }
}
