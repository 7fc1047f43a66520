//! One request as the rules see it, and facts about the trace as a whole.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flashwise_block::Operation;
use flashwise_trace::{FileRole, TraceRecord};

use crate::Place;
use crate::system::{DatabaseSystem, Shown};

/// Completions that are waited for at once, at most; deeper queues count as this deep.
const IN_FLIGHT_MAX: usize = 1 << 12;
/// Bytes of a region of a device: small enough to tell a log from a table, large enough for a list of few.
pub(crate) const REGION: u64 = 1 << 30;

/// What a file's name shows beyond its role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FileKind {
    #[default]
    Plain,
    /// InnoDB's double-write files.
    DoubleWrite,
}

impl FileKind {
    pub(crate) fn of(name: &str) -> Self {
        let file = name.rsplit('/').next().unwrap_or(name);
        match file.ends_with(".dblwr") || file.starts_with("ib_doublewrite") {
            true => Self::DoubleWrite,
            false => Self::Plain,
        }
    }
}

/// A request with what is known of it when it is submitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedRequest {
    /// Which of the trace; the first is 0.
    pub(crate) number: u64,
    pub(crate) record: TraceRecord,
    pub(crate) kind: FileKind,
    /// Requests in flight, with this one; `None` where the trace has no latencies.
    pub(crate) in_flight: Option<u32>,
    /// For an offset in a file: where the file's first byte is on the drive, modulo the drive's page, where known.
    pub(crate) file_start: Option<u64>,
}

impl ObservedRequest {
    pub(crate) fn is_write(&self) -> bool {
        self.record.operation == Operation::Write && self.record.length.0 > 0
    }

    /// A read of the database, or of an unknown file.
    pub(crate) fn is_database_read(&self) -> bool {
        self.record.operation == Operation::Read && self.record.length.0 > 0 && self.is_of_database()
    }

    pub(crate) fn is_of_database(&self) -> bool {
        let whose = matches!(self.record.role, FileRole::Database | FileRole::Unknown);
        whose && self.kind == FileKind::Plain
    }

    /// A rollback journal, a write-ahead log or a double-write area: what is written there is written again elsewhere.
    pub(crate) fn is_of_log(&self) -> bool {
        matches!(self.record.role, FileRole::Journal | FileRole::WriteAheadLog) || self.kind == FileKind::DoubleWrite
    }

    /// Where it starts on the drive, modulo a page; `None` where only the file system knows.
    pub(crate) fn on_drive(&self) -> Option<u64> {
        match self.space() {
            Space::Device(_) => Some(self.record.offset.0),
            _ => self.file_start.map(|start| self.record.offset.0.saturating_add(start)),
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.record.offset.0.saturating_add(self.record.length.0)
    }

    /// The address space that the offset counts in.
    pub(crate) fn space(&self) -> Space {
        let TraceRecord { file, role, device, .. } = self.record;
        match (file, role) {
            (Some(file), _) => Space::File(file),
            (None, FileRole::Unknown) => Space::Device(device),
            (None, role) => Space::Role(role),
        }
    }

    /// Its place, as far as the trace shows it.
    pub(crate) fn place(&self) -> Key {
        match self.space() {
            Space::Device(device) => Key::Region(device, self.record.offset.0 / REGION),
            space => Key::Space(space),
        }
    }
}

/// An address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Space {
    File(u32),
    Role(FileRole),
    Device(Option<u32>),
}

/// A [`Place`] without its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Space(Space),
    Region(Option<u32>, u64),
    Elsewhere,
}

impl Key {
    pub(crate) fn named(self, files: &[String]) -> Place {
        match self {
            Self::Space(Space::File(file)) => {
                files.get(file as usize).map_or(Place::Elsewhere, |name| Place::File(name.clone()))
            }
            Self::Space(Space::Role(role)) => Place::Role(role),
            Self::Space(Space::Device(device)) => Place::Region { device, start_bytes: 0, end_bytes: u64::MAX },
            Self::Region(device, index) => {
                let start_bytes = index.saturating_mul(REGION);
                Place::Region { device, start_bytes, end_bytes: start_bytes.saturating_add(REGION) }
            }
            Self::Elsewhere => Place::Elsewhere,
        }
    }
}

/// How many requests are in flight when one is submitted.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    completions: BinaryHeap<Reverse<u64>>,
}

impl InFlight {
    /// Of the next request, with itself; requests come in the order of submission.
    pub(crate) fn submit(&mut self, record: &TraceRecord) -> Option<u32> {
        let latency = record.latency?;
        while self.completions.peek().is_some_and(|done| done.0 <= record.at.0) {
            self.completions.pop();
        }
        if self.completions.len() < IN_FLIGHT_MAX {
            self.completions.push(Reverse(record.at.0.saturating_add(latency.0)));
        }
        Some(self.completions.len() as u32)
    }
}

/// Facts about a trace as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) requests: u64,
    pub(crate) latencies: u64,
    /// Requests of a file whose part in a database is known.
    pub(crate) roles: u64,
    /// Requests of a file.
    pub(crate) files: u64,
    pub(crate) contents: u64,
    pub(crate) flushes: u64,
    pub(crate) trims: u64,
    /// Requests whose place on the drive is unknown.
    pub(crate) unplaced: u64,
    /// The database system, as far as the requests show it.
    pub(crate) shown: Shown,
    /// Whether what is in files went through a page cache before the drive saw it.
    pub(crate) is_above_page_cache: bool,
}

impl Facts {
    pub(crate) fn note(&mut self, seen: &ObservedRequest, system: Option<DatabaseSystem>) {
        let record = &seen.record;
        self.shown.note(seen, system);
        self.requests += 1;
        self.latencies += u64::from(record.latency.is_some_and(|latency| latency.0 > 0));
        self.roles += u64::from(record.role != FileRole::Unknown || seen.kind == FileKind::DoubleWrite);
        self.files += u64::from(record.file.is_some() || record.role != FileRole::Unknown);
        self.contents += u64::from(record.content.is_some());
        self.flushes += u64::from(record.operation == Operation::Flush || record.fua);
        self.trims += u64::from(record.operation == Operation::Trim);
        self.unplaced += u64::from(seen.on_drive().is_none());
    }

    /// Why nothing can be said about queues, if so.
    pub(crate) fn hides_queues(&self) -> Option<String> {
        match () {
            () if self.is_above_page_cache => Some(
                "the trace was taken above the page cache and does not show how many requests the drive had in flight"
                    .to_owned(),
            ),
            () if self.latencies == 0 => Some("the trace has no completion times".to_owned()),
            () => None,
        }
    }
}
