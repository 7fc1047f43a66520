//! The requests of a trace: read line by line, checked against the drive, played as often as asked; from memory, where
//! they are few ([`super::kept`]).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashwise_block::{ByteSize, Nanos, Operation};

use super::kept::{Kept, Reading};
use super::{Drive, FlowRequest, Limits};
use crate::workload::check::FlowChecker;
use crate::workload::{ReplayPacing, TraceReplay, WorkloadError};
use crate::{ReadOptions, TraceFormat, TraceReader, TraceRecord};

/// Reads a trace and makes requests of it.
#[derive(Debug)]
pub(super) struct Replayed {
    path: PathBuf,
    options: ReadOptions,
    device: Option<u32>,
    rules: Rules,
    reader: TraceReader,
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
    /// Devices and files whose requests are played.
    volumes: BTreeSet<(Option<u32>, Option<u32>)>,
    /// What the trace holds and no request tells: what was lost, left out or not seen.
    remarks: Vec<String>,
}

/// Devices and files that are told apart.
const MOST_VOLUMES: usize = 1 << 16;

impl Replayed {
    /// Opens a trace after reading it through once, as far as the flow will read it.
    pub(super) fn open(
        flow: &TraceReplay,
        checker: &FlowChecker<'_>,
        drive: Drive,
        base: &Path,
        limits: Limits,
    ) -> Result<Self, WorkloadError> {
        let region = region(flow, checker, drive)?;
        let mut once = Self::start(flow, region, base, 1)?;
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
            let reason = format!("so many rounds of {} ns exceed 64 bits", once.last_arrival);
            return Err(checker.error("trace.repeat", flow.repeat, reason));
        }
        once.remarks = once.reader.remarks();
        // What ends by its time in the first round must not continue to a second one.
        once.kept = if ends_by_time { None } else { reading.keep(flow.repeat) };
        if once.kept.is_some() {
            return Ok(once);
        }
        Ok(Self { volumes: once.volumes, remarks: once.remarks, ..Self::start(flow, region, base, flow.repeat)? })
    }

    /// What whoever runs the flow should know of its trace, a sentence each.
    pub(super) fn notes(&self) -> Vec<String> {
        let several = |what: &str, count: usize, way_out: &str| {
            let more = if self.volumes.len() < MOST_VOLUMES { "" } else { " or more" };
            (count > 1)
                .then(|| format!("{count}{more} {what} of the trace are replayed on the same addresses{way_out}"))
        };
        let devices: BTreeSet<_> = self.volumes.iter().filter_map(|(device, _)| *device).collect();
        let files: BTreeSet<_> = self.volumes.iter().filter_map(|(_, file)| *file).collect();
        let first = devices.first().copied().unwrap_or_default();
        let way_out = format!("; device = N in a workload's [flows.trace] selects one, such as {first}");
        let volumes = [several("devices", devices.len(), &way_out), several("files", files.len(), "")];
        volumes.into_iter().flatten().chain(self.remarks.iter().cloned()).collect()
    }

    fn start(flow: &TraceReplay, region: Region, base: &Path, repeat: u32) -> Result<Self, WorkloadError> {
        let path = base.join(&flow.path);
        let options = ReadOptions {
            format: flow.format,
            layout: flow.layout.as_deref().map(Arc::from),
            skip_bad_lines: flow.skip_bad_lines,
            sector_bytes: flow.logical_block_bytes,
            ..ReadOptions::default()
        };
        let reader = open(&path, &options)?;
        Ok(Self {
            path,
            options,
            device: flow.device,
            rules: Rules::new(flow, region),
            reader,
            kept: None,
            left: repeat - 1,
            round_start: 0,
            last_recorded: 0,
            last_arrival: 0,
            volumes: BTreeSet::new(),
            remarks: Vec::new(),
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
            match self.reader.next_record()? {
                Some(record) if self.is_wanted(&record) => {
                    // Where the trace's times are not used it may be in any order.
                    let recorded = if self.rules.timed { self.reader.since_start(record.at)? } else { Nanos(0) };
                    if record.operation != Operation::Flush && self.volumes.len() < MOST_VOLUMES {
                        self.volumes.insert((record.device, record.file));
                    }
                    return self.request(&record, recorded.0).map(Some).map_err(|reason| self.at_line(reason));
                }
                Some(_) => {}
                None if self.left == 0 => return Ok(None),
                None => self.rewind()?,
            }
        }
    }

    fn is_wanted(&self, record: &TraceRecord) -> bool {
        self.device.is_none() || self.device == record.device
    }

    fn rewind(&mut self) -> Result<(), WorkloadError> {
        self.reader = open(&self.path, &self.options)?;
        (self.left, self.round_start, self.last_recorded) = (self.left - 1, self.last_arrival, 0);
        Ok(())
    }

    fn request(&mut self, record: &TraceRecord, recorded: u64) -> Result<FlowRequest, String> {
        let at = self.arrival(recorded)?;
        let (offset, length) = self.rules.place(record)?;
        let (operation, offset, length) = (record.operation, ByteSize(offset), ByteSize(length));
        Ok(FlowRequest { operation, offset, length, fua: record.fua, at: Nanos(at) })
    }

    fn arrival(&mut self, recorded: u64) -> Result<u64, String> {
        if !self.rules.timed {
            return Ok(0);
        }
        if recorded < self.last_recorded {
            let last = self.last_recorded;
            return Err(format!("time goes back from {last} ns to {recorded} ns: sort the trace by time"));
        }
        let scaled = self.rules.scaled(recorded)?;
        let arrival = self.round_start.checked_add(scaled).ok_or("its time exceeds 64 bits of nanoseconds")?;
        (self.last_recorded, self.last_arrival) = (recorded, arrival);
        Ok(arrival)
    }

    fn at_line(&self, reason: String) -> WorkloadError {
        WorkloadError::trace(&self.path.display().to_string(), self.reader.place(), reason)
    }
}

/// A trace is read at least twice, so it must be a file, or a folder of what blktrace leaves.
fn open(path: &Path, options: &ReadOptions) -> Result<TraceReader, WorkloadError> {
    let unreadable = |reason: String| WorkloadError::unreadable(&path.display().to_string(), reason);
    let metadata = std::fs::metadata(path).map_err(|e| unreadable(e.to_string()))?;
    let a_folder_of_blktrace = metadata.is_dir() && matches!(options.format, TraceFormat::Auto | TraceFormat::Blktrace);
    if !metadata.is_file() && !a_folder_of_blktrace {
        return Err(unreadable("not a regular file".to_owned()));
    }
    Ok(TraceReader::open(path, options)?)
}

/// Where on the drive a trace is.
#[derive(Clone, Copy, Debug)]
struct Region {
    start: u64,
    bytes: u64,
    /// Smallest addressable unit, bytes.
    logical_block: u64,
}

/// The region that a flow names, on a drive that has it.
fn region(flow: &TraceReplay, checker: &FlowChecker<'_>, drive: Drive) -> Result<Region, WorkloadError> {
    let start = flow.region_start_bytes;
    let reason = format!("the drive ends at byte {}", drive.capacity);
    checker.require("trace.region_start_bytes", start, start < drive.capacity, &reason)?;
    drive.whole_blocks(checker, "trace.region_start_bytes", start)?;
    let rest = drive.capacity - start;
    let bytes = flow.region_bytes.unwrap_or(rest);
    let reason = format!("the drive has only {rest} bytes from byte {start} on");
    checker.require("trace.region_bytes", bytes, (1..=rest).contains(&bytes), &reason)?;
    drive.whole_blocks(checker, "trace.region_bytes", bytes)?;
    Ok(Region { start, bytes, logical_block: drive.logical_block })
}

/// What a trace's requests become on this drive.
#[derive(Debug)]
struct Rules {
    region: Region,
    fold: bool,
    widen: bool,
    time_scale: f64,
    timed: bool,
}

impl Rules {
    fn new(flow: &TraceReplay, region: Region) -> Self {
        let timed = flow.pacing == ReplayPacing::Timestamps;
        Self { region, fold: flow.fold, widen: flow.widen, time_scale: flow.time_scale, timed }
    }

    /// A time of the trace, scaled.
    fn scaled(&self, time: u64) -> Result<u64, String> {
        if self.time_scale == 1.0 {
            return Ok(time);
        }
        let scaled = (time as f64 * self.time_scale).round();
        let fits = scaled < 2f64.powi(63);
        if fits { Ok(scaled as u64) } else { Err(format!("its time, scaled to {scaled} ns, exceeds 292 years")) }
    }

    /// Offset and length on the drive.
    fn place(&self, record: &TraceRecord) -> Result<(u64, u64), String> {
        if record.operation == Operation::Flush {
            return Ok((0, 0));
        }
        let (offset, length) = (record.offset.0, record.length.0);
        if length == 0 {
            return Err("its length is 0; it must be at least 1 byte".to_owned());
        }
        let (offset, length) = self.whole_blocks(offset, length)?;
        self.fit(offset, length)
    }

    fn whole_blocks(&self, offset: u64, length: u64) -> Result<(u64, u64), String> {
        let block = self.region.logical_block;
        if offset.is_multiple_of(block) && length.is_multiple_of(block) {
            return Ok((offset, length));
        }
        let end = offset.checked_add(length).and_then(|end| end.checked_next_multiple_of(block));
        match end {
            Some(end) if self.widen => Ok((offset - offset % block, end - (offset - offset % block))),
            _ => Err(format!(
                "{length} bytes at byte {offset}: both must be multiples of the drive's logical block, {block} bytes; \
                 widen = true (--widen) widens requests to whole blocks"
            )),
        }
    }

    fn fit(&self, offset: u64, length: u64) -> Result<(u64, u64), String> {
        let Region { start, bytes, .. } = self.region;
        let what = if start == 0 { "drive" } else { "region" };
        match bytes.checked_sub(length) {
            Some(last) if offset <= last => Ok((start + offset, length)),
            Some(last) if self.fold => Ok((start + (offset % bytes).min(last), length)),
            Some(_) => Err(format!(
                "{length} bytes at byte {offset}: the {what} ends at byte {bytes}; fold = true (--fold) wraps \
                 addresses around"
            )),
            None => Err(format!("{length} bytes at byte {offset}: the {what} has only {bytes} bytes")),
        }
    }
}
