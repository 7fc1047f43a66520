//! blktrace, binary: events with a payload behind each, in the byte order of the machine that recorded.
//!
//! ```text
//!   version 7, 48 bytes
//!   0 magic u32 (0x65617400 | version) · 4 sequence u32 · 8 time u64, ns · 16 sector u64 · 24 bytes u32 · 28 action u32
//!   32 pid u32 · 36 device u32 (major << 20 | minor) · 40 cpu u32 · 44 error u16 · 46 length of the payload u16
//!   version 8, 64 bytes
//!   0 to 27 the same · 28 pid u32 · 32 action u64 · 40 device u32 · 44 cpu u32 · 48 error u16 · 50 length u16 · 52 none
//! ```
//!
//! The low half of the action says what happened, of which *issue* (7), *complete* (8) and *requeue* (6) are used; a
//! bit of it (8) says that a cgroup's number is in the payload. What is above are the categories. Where the start of a
//! trace has no *issue*, requests are taken where they were inserted (12) or queued (1), as traces of drives without a
//! request queue have them. Flushes carry no bytes. Payloads are passed over. Each CPU numbers its events, so that
//! those that were lost are known. A file of one CPU is in order of time; those of several are merged
//! ([`super::blktrace_files`]). Source: `blktrace_api.h` of the kernel; version 8 is its `struct blk_io_trace2`.

use std::collections::HashMap;

use flashwise_block::{ByteSize, Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::sized;
use super::source::{Chatter, Event, EventSource, Failure, Paired, RecordSource};
use crate::error::Place;
use crate::input::{Input, records::Records};
use crate::record::TraceRecord;

const MAGIC: u32 = 0x6561_7400;
const REQUEUE: u8 = 6;
const COMPLETE: u8 = 8;
/// Actions that may stand for the request, the one that is nearest to the drive first: issue, insert, queue.
const STAGES: [u8; 3] = [7, 12, 1];
/// Sectors of the kernel.
const SECTOR: u64 = 512;
/// CPUs and devices whose numbers of events are followed.
const MOST_SEQUENCES: usize = 1 << 16;

mod category {
    pub(super) const WRITE: u64 = 1 << 17;
    pub(super) const FLUSH: u64 = 1 << 18;
    pub(super) const COMPLETE: u64 = 1 << 23;
    /// A command of SCSI's own.
    pub(super) const PC: u64 = 1 << 25;
    pub(super) const NOTIFY: u64 = 1 << 26;
    pub(super) const DISCARD: u64 = 1 << 29;
    pub(super) const FUA: u64 = 1 << 31;
    /// Those of version 8 start here: an append to a zone, which is a write.
    pub(super) const ZONE_APPEND: u64 = 1 << 32;
    pub(super) const WRITE_ZEROES: u64 = 1 << 38;
    /// Commands to zones, under the names that they are reported by.
    pub(super) const ZONE_COMMANDS: [(u64, &str); 5] = [
        (1 << 33, "zone resets (ZR)"),
        (1 << 34, "resets of all zones (ZRA)"),
        (1 << 35, "zone finishes (ZF)"),
        (1 << 36, "zone opens (ZO)"),
        (1 << 37, "zone closes (ZC)"),
    ];
}

/// How the events of a file are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    is_big_endian: bool,
    version: u8,
}

/// The events of one file.
pub(super) struct Blktrace {
    records: Records,
    layout: Layout,
    /// The action that is the request.
    stage: u8,
    counts: Counts,
    /// Number of the last event, by device and CPU.
    sequences: HashMap<(u32, u32), u32>,
}

/// What a file holds beside requests.
#[derive(Debug, Default)]
pub(super) struct Counts {
    chatter: Chatter,
    lost: u64,
    /// Whether requests were taken where they were queued.
    is_early: bool,
}

impl Counts {
    /// Adds those of another file.
    pub(super) fn add(&mut self, other: &Self) {
        self.chatter.add(&other.chatter);
        self.lost = self.lost.saturating_add(other.lost);
        self.is_early |= other.is_early;
    }

    /// What is to be said of them.
    pub(super) fn remarks(&self) -> Vec<String> {
        let early = "it has no issue events: requests are taken from the queue events";
        let lost =
            (self.lost > 0).then(|| format!("blktrace lost {} events: increase its buffers (-b, -n)", self.lost));
        self.is_early.then(|| early.to_owned()).into_iter().chain(self.chatter.remark()).chain(lost).collect()
    }
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    Some(match Layout::of(head.bytes)?.version {
        7 => "blktrace's magic number, 0x65617407",
        _ => "blktrace's magic number, 0x65617408",
    })
}

pub(super) fn open(input: Input, _: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    let stage = stage([&input.head[..]]);
    Ok(Box::new(Paired::new(Blktrace::new(input, stage)?)))
}

/// The action that is the request, by the starts of the files of a recording.
pub(super) fn stage<'a>(heads: impl IntoIterator<Item = &'a [u8]>) -> u8 {
    let mut found = [false; STAGES.len()];
    for head in heads {
        let Some(layout) = Layout::of(head) else { continue };
        let mut rest = head;
        while let Some(event) = rest.get(..layout.event()) {
            let raw = Raw::new(event, layout);
            let is_of_request = raw.action & (category::NOTIFY | category::PC) == 0;
            let place = STAGES.iter().position(|&stage| is_of_request && stage == raw.act());
            place.into_iter().for_each(|place| found[place] = true);
            rest = rest.get(layout.event() + usize::from(raw.payload)..).unwrap_or_default();
        }
    }
    STAGES.into_iter().zip(found).find_map(|(stage, found)| found.then_some(stage)).unwrap_or(STAGES[0])
}

impl Layout {
    fn of(head: &[u8]) -> Option<Self> {
        let magic: [u8; 4] = head.get(..4)?.try_into().ok()?;
        let orders = [(u32::from_le_bytes(magic), false), (u32::from_be_bytes(magic), true)];
        orders.into_iter().find_map(|(value, is_big_endian)| {
            let version = (value & 0xFF) as u8;
            let is_known = value & !0xFF == MAGIC && matches!(version, 7 | 8);
            is_known.then_some(Self { is_big_endian, version })
        })
    }

    /// Bytes of an event.
    fn event(self) -> usize {
        if self.version == 7 { 48 } else { 64 }
    }
}

impl Blktrace {
    /// `stage` is what stands for the request ([`stage`]).
    pub(super) fn new(input: Input, stage: u8) -> Result<Self, String> {
        let layout = Layout::of(&input.head).ok_or("it does not start with blktrace's magic number, version 7 or 8")?;
        let counts = Counts { is_early: stage != STAGES[0], ..Counts::default() };
        let (records, sequences) = (Records::new(input.into_bytes()), HashMap::new());
        Ok(Self { records, layout, stage, counts, sequences })
    }

    /// What it holds beside requests, so far.
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Counts what was lost before an event.
    fn follow(&mut self, raw: &Raw) {
        // Messages have no number.
        if raw.action & category::NOTIFY != 0 {
            return;
        }
        let cpu = (raw.device, raw.cpu);
        if let Some(last) = self.sequences.get_mut(&cpu) {
            // A recording that starts anew counts from 1.
            self.counts.lost += u64::from(raw.sequence.saturating_sub(*last).saturating_sub(1));
            *last = raw.sequence;
        } else if self.sequences.len() < MOST_SEQUENCES {
            self.sequences.insert(cpu, raw.sequence);
        }
    }
}

/// An event without its payload.
struct Raw {
    magic: u32,
    sequence: u32,
    at: Nanos,
    sector: u64,
    bytes: u32,
    action: u64,
    process: u32,
    device: u32,
    cpu: u32,
    payload: u16,
}

impl Raw {
    fn new(event: &[u8], layout: Layout) -> Self {
        let wide = |at: usize, bytes: usize| {
            let part = &event[at..at + bytes];
            let digit = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
            if layout.is_big_endian { part.iter().fold(0, digit) } else { part.iter().rev().fold(0, digit) }
        };
        let word = |at| wide(at, 4) as u32;
        let (process, action, device, cpu, payload) = match layout.version {
            7 => (word(32), wide(28, 4), word(36), word(40), wide(46, 2)),
            _ => (word(28), wide(32, 8), word(40), word(44), wide(50, 2)),
        };
        Self {
            magic: word(0),
            sequence: word(4),
            at: Nanos(wide(8, 8)),
            sector: wide(16, 8),
            bytes: word(24),
            action,
            process,
            device,
            cpu,
            payload: payload as u16,
        }
    }

    /// What happened. The bits above are flags, of which kernels have added one.
    fn act(&self) -> u8 {
        (self.action & 0xFF) as u8
    }

    fn operation(&self) -> Operation {
        let has = |category: u64| self.action & category != 0;
        match () {
            () if has(category::DISCARD) => Operation::Trim,
            () if has(category::WRITE_ZEROES) => Operation::WriteZeroes,
            () if self.bytes == 0 && has(category::FLUSH) => Operation::Flush,
            () if has(category::WRITE | category::ZONE_APPEND) => Operation::Write,
            () => Operation::Read,
        }
    }

    /// What it is called where it is no request.
    fn other(&self, stage: u8) -> Option<&'static str> {
        let has = |category: u64| self.action & category != 0;
        let zone = category::ZONE_COMMANDS.iter().find(|(category, _)| self.action & category != 0);
        let is_none = self.bytes == 0 && self.operation() != Operation::Flush;
        match () {
            () if self.action & category::NOTIFY != 0 => Some("messages"),
            () if self.act() != stage && !matches!(self.act(), COMPLETE | REQUEUE) => {
                Some("events other than issue and completion")
            }
            () if self.action & category::PC != 0 => Some("SCSI commands of programs"),
            // Where an append landed is told once more, before its completion.
            () if self.act() == COMPLETE && has(category::ZONE_APPEND) && !has(category::COMPLETE) => {
                Some("addresses of zone appends")
            }
            () => zone.map(|&(_, name)| name).or(is_none.then_some("commands without bytes")),
        }
    }

    fn event(&self) -> Result<Event, String> {
        let is_flush = self.operation() == Operation::Flush;
        let offset = if is_flush { ByteSize(0) } else { sized("sector", self.sector, SECTOR)? };
        let (at, device, offset_bytes) = (self.at, self.device, offset.0);
        let append = (self.action & category::ZONE_APPEND != 0).then_some(u64::from(self.bytes));
        Ok(match (self.act(), append) {
            (COMPLETE, Some(length)) => Event::Landed { at, device, offset: offset_bytes, length },
            (COMPLETE, None) => Event::Completed { at, device, offset: offset_bytes },
            (REQUEUE, append) => Event::Requeued { at, device, offset: offset_bytes, append },
            _ => {
                let record = TraceRecord::new(self.at, self.operation(), offset, ByteSize(self.bytes.into()));
                let fua = record.operation == Operation::Write && self.action & category::FUA != 0;
                let (device, process) = (Some(self.device), Some(self.process));
                let record = TraceRecord { device, process, fua, ..record };
                if append.is_some() { Event::Appended(record) } else { Event::Issued(record) }
            }
        })
    }
}

impl EventSource for Blktrace {
    fn next(&mut self) -> Result<Option<Event>, Failure> {
        while let Some(bytes) = self.records.next_of(self.layout.event())? {
            let raw = Raw::new(bytes, self.layout);
            let expected = MAGIC | u32::from(self.layout.version);
            if raw.magic != expected {
                return Err(Failure::Fatal(format!("magic number is {:#010x}, expected {expected:#010x}", raw.magic)));
            }
            self.records.skip(raw.payload.into())?;
            self.follow(&raw);
            match raw.other(self.stage) {
                // The completion of what was left out needs no word.
                Some(_) if matches!(raw.act(), COMPLETE | REQUEUE) => {}
                Some(kind) => self.counts.chatter.note(kind.into()),
                None => return raw.event().map(Some).map_err(Failure::bad),
            }
        }
        Ok(None)
    }

    fn place(&self) -> Place {
        Place::Record(self.records.number())
    }

    fn remarks(&self) -> Vec<String> {
        self.counts.remarks()
    }
}
