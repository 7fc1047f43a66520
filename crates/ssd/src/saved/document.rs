//! A saved drive as a document: header, parts, checksum.

use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};

use flashwise_block::{BlockDevice, Request};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use crate::config::DeviceConfig;
use crate::device::SimulatedSsd;
use crate::ftl::gc::UNSAVED_POLICY;
use crate::state::{Carrier, Layout, State, StateError};

/// What a state starts with.
const MAGIC: [u8; 16] = *b"flashwise.drive\n";
/// The form of everything around the parts.
const VERSION: u32 = 1;
/// Bytes of a header at most; that of a drive with every key has 8 KB.
const HEADER_MAX: u32 = 1 << 20;
/// Bytes of the checksum.
const CHECKSUM: u64 = 8;
/// How hard parts are compressed: tables of a large drive shall take seconds.
const LEVEL: i32 = 1;
/// No clock is later: 36 years.
const LATEST_NS: u64 = 1 << 60;
/// Differences that are told.
const TOLD: usize = 3;

/// What is before the parts, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Header {
    /// Always `flashwise.drive_state`.
    schema: String,
    schema_version: u32,
    /// The program that saved it.
    saved_by: String,
    /// Fingerprint of the types that the parts are made of, hexadecimal.
    layout: String,
    /// On the drive's clock, ns.
    at_ns: u64,
    /// What was left to chance came from this.
    seed: u64,
    /// The drive's description.
    device: Value,
    /// What who saved it keeps with it, such as what the drive's bytes are.
    note: Value,
}

/// A drive that was saved, before its parts are read.
#[derive(Debug)]
pub struct SavedDrive<R> {
    header: Header,
    from: R,
    /// Where the parts start and end.
    parts: (u64, u64),
}

impl SimulatedSsd {
    /// Brings the drive to rest, as a host does before it is switched off: flushes, and lets everything end that the
    /// flash has started. What starts only when the drive has had nothing to do for a while, such as the emptying of an
    /// SLC cache, is not waited for. The clock continues to the end of it.
    ///
    /// # Errors
    /// [`StateError::Busy`] when requests are not completed.
    pub fn shut_down(&mut self) -> Result<(), StateError> {
        if self.outstanding() > 0 {
            return Err(StateError::busy("requests"));
        }
        // A drive that takes no more writes has nothing to flush that could be.
        let flushed = self.submit(Request::flush()).and_then(|()| self.wait());
        flushed.map_err(|_| StateError::busy("the last flush"))?;
        self.come_to_rest();
        Ok(())
    }

    /// Writes the state of a drive that is [shut down](Self::shut_down). `note` is kept as it is, and given back by
    /// [`SavedDrive::note`].
    ///
    /// # Errors
    /// [`StateError::Busy`] for a drive that is not, [`StateError::Unsupported`] for one that
    /// [cannot be saved](Self::can_be_saved), [`StateError::Io`] where `into` cannot be written.
    pub fn save(&mut self, note: Value, into: &mut dyn Write) -> Result<(), StateError> {
        self.can_be_saved()?;
        let header = Header {
            schema: "flashwise.drive_state".to_owned(),
            schema_version: VERSION,
            saved_by: format!("by flashwise {}", env!("CARGO_PKG_VERSION")),
            layout: fingerprint(),
            at_ns: self.clock.now_ns,
            seed: self.seed,
            device: described(&self.config),
            note,
        };
        let header = serde_json::to_vec(&header).map_err(|error| writing(error.into()))?;
        let mut into = Summed { inner: into, sum: Xxh3::new() };
        into.write_all(&MAGIC).map_err(writing)?;
        into.write_all(&VERSION.to_le_bytes()).map_err(writing)?;
        into.write_all(&(header.len() as u32).to_le_bytes()).map_err(writing)?;
        into.write_all(&header).map_err(writing)?;
        let mut compressed = zstd::Encoder::new(&mut into, LEVEL).map_err(writing)?;
        let mut carrier = Carrier::saving(&mut compressed);
        self.carry(&mut carrier)?;
        carrier.finish()?;
        compressed.finish().map_err(writing)?;
        let sum = into.sum.digest();
        into.inner.write_all(&sum.to_le_bytes()).map_err(writing)?;
        into.inner.flush().map_err(writing)
    }

    /// Whether the drive can be saved. Bytes are not part of its state. One that compresses or deduplicates may carry
    /// them all the same: who saves it keeps them elsewhere and [brings them back](Self::bring_content).
    ///
    /// # Errors
    /// [`StateError::Unsupported`] says why not.
    pub fn can_be_saved(&self) -> Result<(), StateError> {
        if self.has_own_victim_policy() {
            return Err(StateError::Unsupported { reason: UNSAVED_POLICY });
        }
        if self.ftl.reduction.is_some() || self.flash.payload.is_empty() {
            return Ok(());
        }
        Err(StateError::Unsupported { reason: "it stores data, which is not part of the state" })
    }
}

/// A description as values that can be compared.
fn described(config: &DeviceConfig) -> Value {
    serde_json::to_value(config).unwrap_or_default()
}

/// The fingerprint of everything that a drive is made of.
fn fingerprint() -> String {
    let mut layout = Layout::default();
    SimulatedSsd::layout(&mut layout);
    format!("{:016x}", xxhash_rust::xxh3::xxh3_64(layout.text().as_bytes()))
}

impl<R: Read + Seek> SavedDrive<R> {
    /// Looks at what may be a saved drive, and checks that it is one and whole.
    ///
    /// # Errors
    /// [`StateError::Foreign`], [`StateError::Version`] or [`StateError::Damaged`] for what is none that can be gone on
    /// with.
    pub fn open(mut from: R) -> Result<Self, StateError> {
        let length = from.seek(SeekFrom::End(0)).map_err(reading)?;
        from.rewind().map_err(reading)?;
        let mut start = [0; 24];
        if length < start.len() as u64 {
            return Err(StateError::Foreign);
        }
        from.read_exact(&mut start).map_err(reading)?;
        let number = |at: usize| u32::from_le_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]]);
        if start[..16] != MAGIC {
            return Err(StateError::Foreign);
        }
        if number(16) != VERSION {
            return Err(StateError::Version { by: format!("in format version {}", number(16)) });
        }
        let header_length = number(20);
        let first = 24 + u64::from(header_length);
        let last = length.checked_sub(CHECKSUM).filter(|&last| header_length <= HEADER_MAX && first <= last);
        let last = last.ok_or_else(|| StateError::damaged("it is truncated"))?;
        check_sum(&mut from, last)?;
        from.seek(SeekFrom::Start(24)).map_err(reading)?;
        let mut header = vec![0; header_length as usize];
        from.read_exact(&mut header).map_err(reading)?;
        let header: Header = serde_json::from_slice(&header)
            .map_err(|error| StateError::damaged(format!("its header is invalid: {error}")))?;
        if header.layout != fingerprint() {
            return Err(StateError::Version { by: header.saved_by });
        }
        Ok(Self { header, from, parts: (first, last) })
    }

    /// What who saved the drive has kept with it.
    pub fn note(&self) -> &Value {
        &self.header.note
    }

    /// When it was saved, on the drive's clock, ns.
    pub fn at_ns(&self) -> u64 {
        self.header.at_ns
    }

    /// The drive, which is of this description, as it was when it was saved.
    ///
    /// # Errors
    /// [`StateError::OtherDrive`] where it is of another one; [`StateError::Damaged`] for a state that no drive can be
    /// in.
    pub fn restore(mut self, config: DeviceConfig) -> Result<SimulatedSsd, StateError> {
        let mut differences = Vec::new();
        compare("", &self.header.device, &described(&config), &mut differences);
        if !differences.is_empty() {
            let more = differences.len().saturating_sub(TOLD);
            differences.truncate(TOLD);
            if more > 0 {
                differences.push(format!("and {more} more"));
            }
            return Err(StateError::OtherDrive { differences });
        }
        let mut drive = SimulatedSsd::new(config, self.header.seed)
            .map_err(|error| StateError::damaged(format!("its description: {error}")))?;
        drive.can_be_saved()?;
        let (first, last) = self.parts;
        self.from.seek(SeekFrom::Start(first)).map_err(reading)?;
        let parts = BufReader::new(self.from.take(last - first));
        let mut plain = zstd::Decoder::with_buffer(parts).map_err(reading)?;
        let mut carrier = Carrier::restoring(&mut plain, drive.list_elements_max());
        let carried = drive.carry(&mut carrier).and_then(|()| carrier.finish());
        carried.map_err(|error| match error {
            // What the decompressor does not understand was not written by a compressor.
            StateError::Io { error, .. } => StateError::damaged(error.to_string()),
            error => error,
        })?;
        drive.check_restored().map_err(StateError::damaged)?;
        Ok(drive)
    }
}

impl SimulatedSsd {
    /// Elements that all lists of the drive's state may have together; far more than any drive needs, and far less than
    /// a machine has space for.
    fn list_elements_max(&self) -> u64 {
        let geometry = &self.ftl.pages.geometry;
        let superblocks = u64::from(geometry.units) * u64::from(geometry.superblocks);
        let controller = &self.config.controller;
        let cache_bytes = controller.write_cache.as_ref().map_or(0, |cache| cache.bytes)
            + controller.read_cache.as_ref().map_or(0, |cache| cache.bytes)
            + controller.write_buffer_bytes;
        let cached = cache_bytes / self.page.bytes();
        let entries = self.config.ftl.mapping_cache.as_ref().map_or(0, |cache| cache.capacity_entries());
        let entries = entries.min(self.config.logical_pages());
        // Stored pages that are free, that are not looked up yet, and whose fingerprints are in memory.
        let shared = self.config.deduplication().map_or(0, |_| 3 * self.config.logical_pages());
        shared + 8 * (superblocks + cached) + entries + u64::from(self.config.host.submission_queues) + (1 << 16)
    }

    /// Checks what was restored: the invariants of a drive, and that no part of it leads where there is nothing.
    fn check_restored(&self) -> Result<(), String> {
        if self.clock.now_ns > LATEST_NS
            || self.clock.events.next_time().is_some_and(|time_ns| time_ns < self.clock.now_ns)
        {
            return Err(format!("its clock is at {} ns, but an event is scheduled earlier", self.clock.now_ns));
        }
        if self.ftl.is_page_map() {
            self.check_collectors()?;
        }
        self.check_invariants()
    }

    /// Checks that what collection is about is there.
    fn check_collectors(&self) -> Result<(), String> {
        let superblocks = self.ftl.pages.geometry.superblocks;
        for (unit, collector) in (0..).zip(&self.collector.units) {
            let (victims, others) = collector.superblocks();
            match victims.iter().chain(&others).find(|&&block| block / superblocks != unit) {
                Some(block) => return Err(format!("superblock {block} is collected in unit {unit}")),
                None => self.ftl.pages.check_victims(unit, &victims)?,
            }
        }
        Ok(())
    }
}

/// Reads up to a place and compares with the checksum that stands there.
fn check_sum(from: &mut (impl Read + Seek), last: u64) -> Result<(), StateError> {
    from.rewind().map_err(reading)?;
    let mut sum = Summed { inner: io::sink(), sum: Xxh3::new() };
    io::copy(&mut from.by_ref().take(last), &mut sum).map_err(reading)?;
    let mut expected = [0; CHECKSUM as usize];
    from.read_exact(&mut expected).map_err(reading)?;
    if sum.sum.digest() == u64::from_le_bytes(expected) {
        return Ok(());
    }
    Err(StateError::damaged("its checksum is wrong"))
}

fn reading(error: io::Error) -> StateError {
    StateError::Io { context: "cannot read the state", error }
}

fn writing(error: io::Error) -> StateError {
    StateError::Io { context: "cannot write the state", error }
}

/// Sums up what goes through.
struct Summed<W> {
    inner: W,
    sum: Xxh3,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Tells where two descriptions differ, key by key.
fn compare(key: &str, saved: &Value, present: &Value, differences: &mut Vec<String>) {
    if let (Value::Object(saved), Value::Object(present)) = (saved, present) {
        let keys: std::collections::BTreeSet<&String> = saved.keys().chain(present.keys()).collect();
        for name in keys {
            let dot = if key.is_empty() { "" } else { "." };
            let of = |values: &serde_json::Map<String, Value>| values.get(name).cloned().unwrap_or_default();
            compare(&format!("{key}{dot}{name}"), &of(saved), &of(present), differences);
        }
    } else if saved != present {
        differences.push(format!("{key} = {saved} in the file, {present} here"));
    }
}
