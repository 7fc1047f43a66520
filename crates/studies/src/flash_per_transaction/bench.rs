//! A database on an attached drive: what its transactions write, request by request.
//!
//! ```text
//!   load, write back ─▶ N transactions, write back ─▶ extents of all files ─▶ end ─▶ trace of the drive
//!        steps of the load ┘        steps of the work ┘                   └─▶ the kind of each page
//! ```
//!
//! Pages of the drive are numbered in the order in which they are first written, so that a drive on which the trace is
//! replayed may be as small as what is stored.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use flashwise_block::{Operation, file_extents, interrupt};
use flashwise_trace::TraceRecord;

use super::Scale;
use super::cases::Case;
use super::database::{self, Database, Kind};
use super::drives::{self, PAGE};
use super::work::Work;
use crate::attached::{Attached, Attachment, Cores};
use crate::{StudyError, StudyOptions};

/// Consecutive pages of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) operation: Operation,
    pub(super) first: u32,
    pub(super) pages: u32,
    pub(super) fua: bool,
    pub(super) kind: Kind,
}

/// What a database wrote.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) load: Vec<Step>,
    pub(super) work: Vec<Step>,
    /// Pages that have a number.
    pub(super) numbered: u32,
    /// Pages that hold something at the end.
    pub(super) used: u32,
    /// What is left of a written byte by compression; `None` where the drive did not compress.
    pub(super) stored_share: Option<f64>,
}

impl Recording {
    /// Bytes that the transactions wrote, by kind.
    pub(super) fn written(&self) -> [u64; Kind::ALL.len()] {
        Kind::ALL.map(|kind| {
            let of_kind = self.work.iter().filter(|step| step.operation == Operation::Write && step.kind == kind);
            of_kind.map(|step| u64::from(step.pages) * PAGE).sum()
        })
    }
}

/// Runs a case; with compression where the drive is to show what it stores.
pub(super) fn record(
    case: &Case,
    scale: &Scale,
    options: &StudyOptions,
    seed: u64,
    cores: &Cores,
) -> Result<Recording, StudyError> {
    let compresses = case.is_default();
    let how = Attachment { time_scale: None, is_captured: true, ..Attachment::default() };
    let drive = Attached::start(options.program.as_deref(), &drives::attached(compresses)?, &how, cores)?;
    let mut work = Work::new(scale.rows, seed);
    let mut database = database::create(case, scale, &drive.directory(), &mut work)?;
    let loaded = counted(&drive, database.as_mut())?;
    for done in 1..=scale.transactions {
        interrupt::check()?;
        database.update(&work.update())?;
        database.upkeep(done)?;
    }
    let worked = counted(&drive, database.as_mut())?;
    let kinds = kinds(&drive.directory(), database.as_ref())?;
    drop(database);
    let trace = drive.trace()?;
    let mut recording = recording(&trace, loaded.writes, worked.writes, &kinds);
    if compresses {
        recording.stored_share = Some((worked.stored - loaded.stored) / (worked.host - loaded.host).max(1.0));
    }
    Ok(recording)
}

/// The drive's counters.
struct Counted {
    /// Write requests.
    writes: u64,
    /// Bytes written, and what was stored of them: programmed, or replaced in the buffer before.
    host: f64,
    stored: f64,
}

/// Once everything is on the drive.
fn counted(drive: &Attached, database: &mut dyn Database) -> Result<Counted, StudyError> {
    database.write_back()?;
    drive.used_bytes()?;
    let counters = drive.stat()?.counters;
    let flash = counters.flash.unwrap_or_default();
    Ok(Counted {
        writes: counters.host_writes,
        host: counters.host_bytes_written.0 as f64,
        stored: (flash.bytes_programmed.0 + flash.absorbed_bytes.0) as f64,
    })
}

/// The kind of each page of the drive that is part of a file.
fn kinds(directory: &Path, database: &dyn Database) -> Result<HashMap<u64, Kind>, StudyError> {
    let mut kinds = HashMap::new();
    for file in files(directory)? {
        let relative = file.strip_prefix(directory).unwrap_or(&file);
        // What has no place of its own, such as a file with holes, counts as the file system's.
        let Ok(map) = file_extents(&file) else { continue };
        for extent in map.extents() {
            for offset in (0..extent.length.0).step_by(PAGE as usize) {
                let kind = database.kind(relative, extent.offset.0 + offset);
                kinds.insert((extent.drive_offset.0 + offset) / PAGE, kind);
            }
        }
    }
    Ok(kinds)
}

/// All files below a directory.
fn files(directory: &Path) -> Result<Vec<PathBuf>, StudyError> {
    let (mut files, mut left) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                left.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    Ok(files)
}

/// A trace as steps; the first `loaded` writes are the load's, those up to `worked` the transactions'.
///
/// A page that the transactions do not write and that an empty database has too is left out: in a large one these are
/// next to nothing, here they would be a third of all.
fn recording(trace: &[TraceRecord], loaded: u64, worked: u64, kinds: &HashMap<u64, Kind>) -> Recording {
    let writes = trace.iter().filter(|request| request.operation == Operation::Write);
    let of_work = writes.skip(loaded as usize).take(worked.saturating_sub(loaded) as usize);
    let mut kept: HashSet<u64> = of_work.flat_map(pages).collect();
    kept.extend(kinds.iter().filter(|(_, kind)| kind.grows()).map(|(page, _)| page));
    let (mut recording, mut numbers, mut writes) = (Recording::default(), Numbers::of(kept), 0);
    for request in trace {
        if request.operation == Operation::Read {
            continue;
        }
        writes += u64::from(request.operation == Operation::Write);
        let steps = match writes {
            number if number <= loaded => &mut recording.load,
            number if number <= worked => &mut recording.work,
            _ => break,
        };
        numbers.add(request, kinds, steps);
    }
    recording.numbered = numbers.by_page.len() as u32;
    recording.used = numbers.in_use.iter().filter(|&&is_used| is_used).count() as u32;
    recording
}

/// The pages of a request.
fn pages(request: &TraceRecord) -> std::ops::Range<u64> {
    request.offset.0 / PAGE..(request.offset.0 + request.length.0).div_ceil(PAGE)
}

/// Numbers of pages.
struct Numbers {
    /// Those that get one.
    kept: HashSet<u64>,
    by_page: HashMap<u64, u32>,
    /// By number.
    in_use: Vec<bool>,
}

impl Numbers {
    fn of(kept: HashSet<u64>) -> Self {
        Self { kept, by_page: HashMap::new(), in_use: Vec::new() }
    }

    fn add(&mut self, request: &TraceRecord, kinds: &HashMap<u64, Kind>, steps: &mut Vec<Step>) {
        let step = Step { operation: request.operation, first: 0, pages: 0, fua: request.fua, kind: Kind::Other };
        if request.operation == Operation::Flush {
            return steps.push(step);
        }
        let is_write = request.operation == Operation::Write;
        // Zeros take no more than a trimmed page.
        let operation = if is_write { Operation::Write } else { Operation::Trim };
        let mut last: Option<Step> = None;
        for page in pages(request) {
            let Some(number) = self.number(page, is_write) else { continue };
            let kind = kinds.get(&page).copied().unwrap_or(Kind::Other);
            match &mut last {
                Some(step) if step.first + step.pages == number && step.kind == kind => step.pages += 1,
                _ => steps.extend(last.replace(Step { operation, first: number, pages: 1, kind, ..step })),
            }
        }
        steps.extend(last);
    }

    /// The number of a page that is written, or trimmed after it was written.
    fn number(&mut self, page: u64, is_write: bool) -> Option<u32> {
        let next = self.by_page.len() as u32;
        let number = match is_write {
            true if !self.kept.contains(&page) => return None,
            true => *self.by_page.entry(page).or_insert(next),
            false => *self.by_page.get(&page)?,
        };
        if number == next {
            self.in_use.push(true);
        }
        self.in_use[number as usize] = is_write;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use flashwise_block::{ByteSize, Nanos};

    use super::*;

    fn request(operation: Operation, page: u64, pages: u64) -> TraceRecord {
        TraceRecord::new(Nanos(0), operation, ByteSize(page * PAGE), ByteSize(pages * PAGE))
    }

    #[test]
    fn pages_are_numbered_as_they_are_written_and_requests_split_by_kind() {
        use Operation::{Flush, Read, Trim, Write};
        let trace = [
            request(Trim, 0, 1000),
            request(Write, 498, 4),
            request(Read, 7, 1),
            request(Write, 100, 3),
            request(Flush, 0, 0),
            request(Write, 499, 2),
            request(Trim, 101, 1),
            request(Write, 9, 1),
        ];
        let kinds = [(100, Kind::Log), (101, Kind::Pages), (102, Kind::Pages), (501, Kind::Pages)].into();
        let recorded = recording(&trace, 1, 3, &kinds);
        let step = |operation, first, pages, kind| Step { operation, first, pages, fua: false, kind };
        // Page 498 is not written again, and is of no file.
        assert_eq!(recorded.load, [step(Write, 0, 2, Kind::Other), step(Write, 2, 1, Kind::Pages)]);
        let expected = [
            step(Write, 3, 1, Kind::Log),
            step(Write, 4, 2, Kind::Pages),
            step(Flush, 0, 0, Kind::Other),
            step(Write, 0, 2, Kind::Other),
            step(Trim, 4, 1, Kind::Pages),
        ];
        assert_eq!(recorded.work, expected);
        assert_eq!((recorded.numbered, recorded.used), (6, 5));
        assert_eq!(recorded.written(), [PAGE, 2 * PAGE, 0, 0, 2 * PAGE]);
    }
}
