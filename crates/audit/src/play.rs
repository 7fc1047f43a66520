//! A window of a trace as it can be played on a drive: requests with the number that may be in flight with them.
//!
//! **What a step keeps of the trace**: what was asked, in which order, and how many requests were in flight when it was
//! submitted. It does not keep the time between requests: that is the program's own. Where the trace has no latencies
//! one request at a time is played; a flush waits for everything before it, as programs do that call `fsync`.
//!
//! **Where a step goes.** Files lie one behind the other on the drive, each at a multiple of 1 MiB; of a device only
//! those MiB are laid out that somebody touched, in the order of their addresses. So a window needs a drive as large as
//! what it touches, and what is aligned up to 1 MiB stays aligned.

use std::collections::BTreeMap;

use flashwise_block::{BlockDevice, BlockError, ByteSize, DeviceCounters, Nanos, Operation, Request};
use flashwise_kernel::KernelError;
use flashwise_ssd::{DeviceConfig, SimulatedSsd, SsdError};
use flashwise_trace::FileRole;

use crate::request::{ObservedRequest, Space};

/// What is laid out at once.
pub(crate) const AREA: u64 = 1 << 20;
/// Sector of every drive that is made here.
const SECTOR: u64 = 512;
/// Longest request of a simulated drive that is made here; longer ones are cut.
const TRANSFER_MAX: u64 = 2 << 20;
/// What is told apart as written once or again.
const PAGE: u64 = 4096;
/// Longest request that is played; a trace may name lengths that no drive has.
const LENGTH_MAX: u64 = 16 << 20;

/// One request to be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// When it was submitted; of a rule about a volume's budget, the only one for which time counts.
    pub(crate) at: Nanos,
    pub(crate) operation: Operation,
    pub(crate) space: Space,
    /// Whether it was given a new place by a fix; such places are apart from those of the trace.
    pub(crate) is_moved: bool,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) fua: bool,
    /// Requests in flight, with this one, when it is submitted.
    pub(crate) depth: u32,
    pub(crate) role: FileRole,
    /// The stream that its data belongs to; 0 is none.
    pub(crate) stream: u16,
    /// Whether its data is long-lived, as far as the window shows.
    pub(crate) stays: bool,
    /// Whether its request violates the rule that is being fixed.
    pub(crate) is_broken: bool,
}

impl Step {
    pub(crate) fn of(seen: &ObservedRequest) -> Self {
        let record = &seen.record;
        let offset = record.offset.0.min(u64::MAX / 4);
        Self {
            at: record.at,
            operation: record.operation,
            space: seen.space(),
            is_moved: false,
            offset,
            length: record.length.0.min(LENGTH_MAX),
            fua: record.fua,
            depth: seen.in_flight.unwrap_or(1).max(1),
            role: record.role,
            stream: 0,
            stays: false,
            is_broken: false,
        }
    }

    pub(crate) fn is_write(&self) -> bool {
        self.operation == Operation::Write && self.length > 0
    }

    pub(crate) fn is_flush(&self) -> bool {
        self.operation == Operation::Flush
    }

    pub(crate) fn is_of_database(&self) -> bool {
        matches!(self.role, FileRole::Database | FileRole::Unknown)
    }

    pub(crate) fn end(&self) -> u64 {
        self.offset + self.length
    }

    /// First and last area that it touches.
    pub(crate) fn areas(&self) -> std::ops::RangeInclusive<u64> {
        self.offset / AREA..=(self.end().max(self.offset + 1) - 1) / AREA
    }
}

/// Where the areas of a window are on the drive.
#[derive(Debug, Default)]
pub(crate) struct Map {
    areas: BTreeMap<(bool, Space, u64), u64>,
}

impl Map {
    pub(crate) fn of(steps: &[Step]) -> Self {
        let mut map = Self::default();
        for step in steps.iter().filter(|step| !step.is_flush()) {
            step.areas().for_each(|area| _ = map.areas.insert((step.is_moved, step.space, area), 0));
        }
        map.areas.values_mut().enumerate().for_each(|(index, place)| *place = index as u64);
        map
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.areas.len() as u64 * AREA
    }

    /// Address of a byte on the drive.
    pub(crate) fn place(&self, step: &Step, offset: u64) -> u64 {
        let index = self.areas.get(&(step.is_moved, step.space, offset / AREA)).copied().unwrap_or(0);
        index * AREA + offset % AREA
    }

    /// Every space, apart by whether a fix made it, with its first area's number and the number behind its last.
    pub(crate) fn spaces(&self) -> Vec<((bool, Space), u64, u64)> {
        let mut spaces: Vec<((bool, Space), u64, u64)> = Vec::new();
        for (&(is_moved, space, _), &place) in &self.areas {
            match spaces.last_mut() {
                Some((last, _, end)) if *last == (is_moved, space) => *end = place + 1,
                _ => spaces.push(((is_moved, space), place, place + 1)),
            }
        }
        spaces
    }

    /// The requests to the drive that a step is.
    fn requests(&self, step: &Step) -> Vec<Request> {
        requests(step, |at| self.place(step, at))
    }
}

/// The requests to the drive that a step is, whose bytes are at `place`: whole sectors, cut where areas part and at the
/// longest transfer.
pub(crate) fn requests(step: &Step, place: impl Fn(u64) -> u64) -> Vec<Request> {
    if step.is_flush() {
        return vec![Request::flush()];
    }
    let (mut at, end) = (step.offset / SECTOR * SECTOR, step.end().div_ceil(SECTOR) * SECTOR);
    let mut requests: Vec<Request> = Vec::new();
    while at < end {
        let piece = (AREA - at % AREA).min(end - at);
        let place = place(at);
        at += piece;
        match requests.last_mut() {
            Some(last) if last.offset.0 + last.length.0 == place && last.length.0 + piece <= TRANSFER_MAX => {
                last.length.0 += piece;
            }
            _ => requests.push(Request {
                operation: step.operation,
                offset: ByteSize(place),
                length: ByteSize(piece),
                fua: step.fua && step.operation.writes(),
                stream: step.stream,
                ..Request::flush()
            }),
        }
    }
    requests
}

/// Marks the writes all of whose pages the steps write only once: what they write stays, unless it is a journal, a log
/// or a temporary file, which die as a whole.
pub(crate) fn mark_what_stays(steps: &mut [Step]) {
    let pages = |step: &Step| {
        let space = step.space;
        (step.offset / PAGE..step.end().div_ceil(PAGE)).map(move |page| (space, page))
    };
    let mut is_written_again: BTreeMap<(Space, u64), bool> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.is_write()) {
        for page in pages(step) {
            is_written_again.entry(page).and_modify(|again| *again = true).or_insert(false);
        }
    }
    for step in steps.iter_mut().filter(|step| step.is_write() && step.is_of_database()) {
        step.stays = pages(step).all(|page| is_written_again.get(&page) == Some(&false));
    }
}

/// What playing a window comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Played {
    pub(crate) time_ns: u64,
    pub(crate) flash_bytes: u64,
    pub(crate) host_bytes: u64,
}

/// Why a window could not be played.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlayError {
    #[error(transparent)]
    Drive(#[from] SsdError),
    #[error(transparent)]
    Request(#[from] BlockError),
    #[error(transparent)]
    Call(#[from] KernelError),
}

/// Plays a window on a drive that was written in order.
pub(crate) fn play(steps: &[Step], map: &Map, config: &DeviceConfig) -> Result<Played, PlayError> {
    let mut drive = SimulatedSsd::new(config.clone(), 1)?;
    drive.fill_at_once()?;
    let (before, start) = (drive.counters(), drive.now());
    play_round(&mut drive, steps, |step| map.requests(step))?;
    let time_ns = drive.now().since(start).0;
    // What is still in the buffer is flash bytes of this work too, but not its time.
    drive.submit(Request::flush())?;
    while drive.wait()?.is_some() {}
    let counters = drive.counters().since(&before);
    Ok(Played { time_ns, flash_bytes: programmed(&counters), host_bytes: counters.host_bytes_written.0 })
}

/// Plays a window once, to its last completion.
pub(crate) fn play_round(
    drive: &mut SimulatedSsd,
    steps: &[Step],
    requests: impl Fn(&Step) -> Vec<Request>,
) -> Result<(), PlayError> {
    for step in steps {
        let room = if step.is_flush() { 0 } else { step.depth as usize - 1 };
        while drive.outstanding() > room {
            drive.wait()?;
        }
        for request in requests(step) {
            drive.submit(request)?;
        }
    }
    while drive.wait()?.is_some() {}
    Ok(())
}

/// Flash bytes that were programmed.
pub(crate) fn programmed(counters: &DeviceCounters) -> u64 {
    counters.flash.map_or(0, |flash| flash.bytes_programmed.0)
}
