//! Traces written: a file a format, behind one small trait.
//!
//! What a format cannot tell is lost, and counted in [`Losses`]: operations that it does not know are left out, and
//! where it counts in sectors a request is widened to the whole sectors that it touches. A file of a trace of files is
//! written as a device of its own; where a format knows no devices, several are laid over one another, which is told.
//! Times become as coarse as the format's; page numbers have none.

mod csv;
mod oracle_general;
mod packed;
mod parquet;
mod texts;

pub use packed::CompressedWriter;

use std::collections::BTreeSet;
use std::io::Write;

use flashwise_block::{ByteSize, Operation};

use crate::error::TraceError;
use crate::format::TraceFormat;
use crate::reader::TraceReader;
use crate::record::{TraceClock, TraceRecord};

/// Sectors of the formats that count in them, bytes.
const SECTOR: u64 = 512;

/// What did not fit the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Losses {
    /// Trims and writes of zeros that were left out.
    pub trims_left_out: u64,
    /// Flushes that were left out.
    pub flushes_left_out: u64,
    /// Requests that were widened to whole sectors.
    pub widened: u64,
    /// Requests of 0 bytes that were left out.
    pub empty_left_out: u64,
    /// Files that were written as devices, each as its number; 65,536 or more where it is that many.
    pub files_as_devices: u64,
    /// Devices and files that are laid over one another, where the format has none and there are several.
    pub merged: u64,
}

/// Writes the requests of one format.
trait RecordWriter {
    /// Writes a request that the format can tell.
    fn write(&mut self, record: &TraceRecord) -> Result<(), String>;
    /// Writes what is still held back.
    fn finish(&mut self) -> Result<(), String>;
}

/// What a format can tell.
#[derive(Clone, Copy)]
struct Ability {
    /// Whether it counts in sectors.
    in_sectors: bool,
    trims: bool,
    zeroes: bool,
    flushes: bool,
    /// Whether a length of 0 bytes is a request.
    empty: bool,
    /// Whether it tells devices apart.
    devices: bool,
}

const READS_AND_WRITES: Ability =
    Ability { in_sectors: false, trims: false, zeroes: false, flushes: false, empty: true, devices: true };

/// Devices and files that are told apart.
const MOST_VOLUMES: usize = 1 << 16;

/// Writes a trace, request by request.
pub struct TraceWriter<'a> {
    name: String,
    format: TraceFormat,
    writer: Box<dyn RecordWriter + 'a>,
    ability: Ability,
    losses: Losses,
    written: u64,
    /// Devices and files that were written.
    volumes: BTreeSet<(Option<u32>, Option<u32>)>,
}

impl std::fmt::Debug for TraceWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceWriter").field("name", &self.name).field("format", &self.format).finish_non_exhaustive()
    }
}

impl<'a> TraceWriter<'a> {
    /// The formats that can be written.
    pub const FORMATS: [TraceFormat; 9] = [
        TraceFormat::Csv,
        TraceFormat::Parquet,
        TraceFormat::Msr,
        TraceFormat::Disksim,
        TraceFormat::Mqsim,
        TraceFormat::FioIolog,
        TraceFormat::Blkparse,
        TraceFormat::OracleGeneral,
        TraceFormat::Pages,
    ];

    /// Starts a trace; `name` is for messages.
    ///
    /// # Errors
    /// When the format is one that is only read, or the output fails.
    pub fn new(format: TraceFormat, out: impl Write + Send + 'a, name: &str) -> Result<Self, TraceError> {
        let failed = |reason: String| TraceError::unwritable(name, reason);
        let sectors = Ability { in_sectors: true, empty: false, ..READS_AND_WRITES };
        let all = Ability { trims: true, zeroes: true, flushes: true, ..READS_AND_WRITES };
        let (writer, ability): (Box<dyn RecordWriter + 'a>, Ability) = match format {
            TraceFormat::Csv => (Box::new(csv::Csv::new(out)), all),
            TraceFormat::Parquet => (Box::new(parquet::Parquet::new(out).map_err(failed)?), all),
            TraceFormat::Msr => (Box::new(texts::Msr(out)), READS_AND_WRITES),
            TraceFormat::Disksim => (Box::new(texts::Disksim(out)), sectors),
            TraceFormat::Mqsim => (Box::new(texts::Mqsim(out)), sectors),
            TraceFormat::FioIolog => {
                (Box::new(texts::FioIolog::new(out).map_err(failed)?), Ability { zeroes: false, devices: false, ..all })
            }
            TraceFormat::Blkparse => {
                (Box::new(texts::Blkparse::new(out)), Ability { in_sectors: true, empty: false, ..all })
            }
            TraceFormat::OracleGeneral => (
                Box::new(oracle_general::OracleGeneral::new(out).map_err(failed)?),
                Ability { devices: false, ..sectors },
            ),
            TraceFormat::Pages => {
                (Box::new(texts::Pages(out)), Ability { empty: false, devices: false, ..READS_AND_WRITES })
            }
            other => {
                let names: Vec<_> = Self::FORMATS.iter().map(|format| format.name()).collect();
                return Err(failed(format!("{} cannot be written: use one of {}", other.name(), names.join(", "))));
            }
        };
        Ok(Self {
            name: name.to_owned(),
            format,
            writer,
            ability,
            losses: Losses::default(),
            written: 0,
            volumes: BTreeSet::new(),
        })
    }

    /// What the times that it is given count from.
    pub fn clock(&self) -> TraceClock {
        self.format.clock()
    }

    /// Writes one request, or counts what is lost.
    ///
    /// # Errors
    /// When a number is too large for the format, or the output fails.
    pub fn write(&mut self, record: &TraceRecord) -> Result<(), TraceError> {
        let Some(record) = self.fitted(record) else { return Ok(()) };
        self.written += 1;
        self.writer
            .write(&record)
            .map_err(|reason| TraceError::unwritable(&self.name, format!("request {}: {reason}", self.written)))
    }

    /// The request as the format can tell it.
    fn fitted(&mut self, record: &TraceRecord) -> Option<TraceRecord> {
        let Ability { in_sectors, trims, zeroes, flushes, empty, .. } = self.ability;
        let lost = match record.operation {
            Operation::Trim if !trims => Some(&mut self.losses.trims_left_out),
            Operation::WriteZeroes if !zeroes => Some(&mut self.losses.trims_left_out),
            Operation::Flush if !flushes => Some(&mut self.losses.flushes_left_out),
            Operation::Flush => None,
            _ if record.length.0 == 0 && !empty => Some(&mut self.losses.empty_left_out),
            _ => None,
        };
        if let Some(lost) = lost {
            *lost += 1;
            return None;
        }
        if self.volumes.len() < MOST_VOLUMES && record.operation != Operation::Flush {
            self.volumes.insert((record.device, record.file));
        }
        // Offsets in two files are two places.
        let record = TraceRecord { device: record.device.or(record.file), ..*record };
        if !in_sectors || record.operation == Operation::Flush {
            return Some(record);
        }
        let (offset, length) = whole_sectors(record.offset, record.length);
        self.losses.widened += u64::from((offset, length) != (record.offset, record.length));
        Some(TraceRecord { offset, length, ..record })
    }

    /// What became of devices and files.
    fn count_volumes(&mut self) {
        let count = self.volumes.len() as u64;
        let files = self.volumes.iter().filter(|(device, file)| device.is_none() && file.is_some()).count() as u64;
        match self.ability.devices {
            true => self.losses.files_as_devices = files,
            false => self.losses.merged = if count > 1 { count } else { 0 },
        }
    }

    /// Ends the trace: how many requests it has, and what was lost.
    ///
    /// # Errors
    /// When the output fails.
    pub fn finish(mut self) -> Result<(u64, Losses), TraceError> {
        self.writer.finish().map_err(|reason| TraceError::unwritable(&self.name, reason))?;
        self.count_volumes();
        Ok((self.written, self.losses))
    }
}

/// The whole sectors that a request touches. The last sector of 2^64 bytes ends one sector early.
fn whole_sectors(offset: ByteSize, length: ByteSize) -> (ByteSize, ByteSize) {
    let start = offset.0 - offset.0 % SECTOR;
    let end = offset.0.saturating_add(length.0);
    let end = end.checked_next_multiple_of(SECTOR).unwrap_or(u64::MAX - u64::MAX % SECTOR);
    (ByteSize(start), ByteSize(end.saturating_sub(start)))
}

/// What became of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Requests that were written.
    pub written: u64,
    /// What the format cannot tell.
    pub losses: Losses,
    /// Requests whose time is before that of the first one: times count from the earliest.
    pub early: u64,
}

/// Writes all requests of a trace in another form.
///
/// # Errors
/// When reading or writing fails.
pub fn convert(reader: &mut TraceReader, mut writer: TraceWriter<'_>) -> Result<Conversion, TraceError> {
    let (from, to) = (reader.clock(), writer.clock());
    let counts_from_start = from != to && to == TraceClock::Start;
    if counts_from_start {
        reader.find_start();
    }
    let mut early = 0;
    while let Some(record) = reader.next_record()? {
        early += u64::from(counts_from_start && reader.first().is_some_and(|first| record.at < first));
        let at = reader.on_clock(to, record.at)?;
        writer.write(&TraceRecord { at, ..record })?;
    }
    let (written, losses) = writer.finish()?;
    Ok(Conversion { written, losses, early })
}
