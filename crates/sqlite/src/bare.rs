//! Files on a bare drive: the database directly, everything else through a model of the page cache.
//!
//! ```text
//!   database          ── rounded to logical blocks ──────────────▶ volume: extents ──▶ disk: requests
//!   journal, WAL, …   ── page cache, written at sync in runs ──▶        "
//! ```

use std::collections::BTreeSet;

use flashwise_block::{BlockDevice, ByteSize, DeviceCounters, IoBuffer, Nanos, Request};
use flashwise_trace::FileRole;
use libsqlite3_sys as sqlite;

use crate::bytes::Span;
use crate::cache::{BLOCK, BlockRun, PageCache};
use crate::disk::{Disk, read_request};
use crate::error::Failure;
use crate::layout::cut;
use crate::ledger::Ledger;
use crate::locks::HandleId;
use crate::medium::{Deletion, FileRef, Medium, OpenMode};
use crate::store::Cut;
use crate::volume::{FileId, Volume, Zone};

/// Longest request of a write-back or a read into the cache, in cache blocks: 1 MiB.
const LONGEST_RUN: u64 = (1 << 20) / BLOCK;
/// Bytes of dirty blocks that are copied for one batch of requests.
const BATCH_BYTES: u64 = 8 << 20;

/// A device, the extents of its files, and the cache of those that are no database.
pub(crate) struct BareFiles {
    disk: Disk,
    volume: Volume,
    cache: PageCache,
    /// Files of which something was written to the device since the last flush.
    unflushed: BTreeSet<FileId>,
}

fn full(name: &str, info: &flashwise_block::DeviceInfo) -> Failure {
    Failure::new(sqlite::SQLITE_FULL, format!("{name}: no free extent on the drive's {}", info.capacity))
}

impl BareFiles {
    pub(crate) fn new(disk: Disk) -> Self {
        let volume = Volume::new(disk.info().capacity.0, disk.info().logical_block.0);
        Self { disk, volume, cache: PageCache::default(), unflushed: BTreeSet::new() }
    }

    fn remove(&mut self, id: FileId, role: FileRole) {
        self.unflushed.remove(&id);
        self.cache.forget(id);
        let unused = self.volume.remove(id);
        self.trim(unused, role);
    }

    /// Trims unused space. This is advice only: a failed trim loses nothing.
    fn trim(&mut self, unused: Vec<Span>, role: FileRole) {
        for span in unused {
            let _ = self.disk.run(role, vec![Request::trim(ByteSize(span.start), ByteSize(span.length))]);
        }
    }

    /// Device spans of a file's span, none longer than the device takes at once.
    fn device_spans(&self, id: FileId, span: Span) -> Vec<Span> {
        let longest = self.disk.info().max_transfer.0;
        let mut spans = Vec::new();
        for piece in self.volume.pieces(id, span) {
            let mut at = piece.start;
            while at < piece.end() {
                let length = longest.min(piece.end() - at);
                spans.push(Span { start: at, length });
                at += length;
            }
        }
        spans
    }

    /// A span grown to whole logical blocks.
    fn rounded(&self, span: Span) -> Span {
        let block = self.disk.info().logical_block.0;
        let start = span.start / block * block;
        Span { start, length: span.end().next_multiple_of(block) - start }
    }

    /// Reads a span of whole logical blocks from the device, past the cache.
    fn read_span(&mut self, id: FileId, span: Span, role: FileRole) -> Result<Vec<IoBuffer>, Failure> {
        let requests = self.device_spans(id, span).iter().map(|s| read_request(s.start, s.length)).collect();
        self.disk.read(role, requests)
    }

    /// Write requests for `bytes`, whole logical blocks, at `start` of the file.
    fn write_requests(&self, id: FileId, start: u64, bytes: &[u8]) -> Vec<Request> {
        let mut rest = bytes;
        let mut requests = Vec::new();
        for span in self.device_spans(id, Span { start, length: bytes.len() as u64 }) {
            let (piece, behind) = rest.split_at(span.length as usize);
            let request = Request::write(ByteSize(span.start), ByteSize(span.length));
            requests.push(request.with_buffer(IoBuffer::copy_of(piece)));
            rest = behind;
        }
        debug_assert!(rest.is_empty(), "room is reserved before it is written");
        requests
    }

    fn read_direct(&mut self, id: FileId, offset: u64, into: &mut [u8]) -> Result<(), Failure> {
        let span = Span { start: offset, length: into.len() as u64 };
        let whole = self.rounded(span);
        let buffers = self.read_span(id, whole, FileRole::Database)?;
        gather(&buffers, (offset - whole.start) as usize, into);
        Ok(())
    }

    /// Reads spans of a database, all of them together.
    fn read_spans(&mut self, id: FileId, spans: &[Span]) -> Result<Vec<Vec<u8>>, Failure> {
        let wholes: Vec<Span> = spans.iter().map(|&span| self.rounded(span)).collect();
        let pieces: Vec<Vec<Span>> = wholes.iter().map(|&whole| self.device_spans(id, whole)).collect();
        let requests = pieces.iter().flatten().map(|piece| read_request(piece.start, piece.length)).collect();
        let mut buffers = self.disk.read(FileRole::Database, requests)?.into_iter();
        let gathered = spans.iter().zip(&wholes).zip(&pieces).map(|((span, whole), pieces)| {
            let mut bytes = vec![0; span.length as usize];
            let own: Vec<IoBuffer> = buffers.by_ref().take(pieces.len()).collect();
            gather(&own, (span.start - whole.start) as usize, &mut bytes);
            bytes
        });
        Ok(gathered.collect())
    }

    /// Writes one span. Blocks that it covers in part are read first and written whole.
    fn direct_requests(&mut self, id: FileId, offset: u64, data: &[u8]) -> Result<Vec<Request>, Failure> {
        let span = Span { start: offset, length: data.len() as u64 };
        let whole = self.rounded(span);
        if whole == span {
            return Ok(self.write_requests(id, offset, data));
        }
        let block = self.disk.info().logical_block.0;
        let mut bytes = vec![0; whole.length as usize];
        let last = Span { start: whole.end() - block, length: block };
        let first = Span { start: whole.start, length: block };
        let partial_first = span.start != whole.start;
        let partial_last = span.end() != whole.end() && (last != first || !partial_first);
        for (partial, edge) in [(partial_first, first), (partial_last, last)] {
            // Beyond the end of the file there is nothing to read.
            if partial && edge.start < self.volume.size(id) {
                let at = (edge.start - whole.start) as usize;
                self.read_direct(id, edge.start, &mut bytes[at..at + block as usize])?;
            }
        }
        let at = (span.start - whole.start) as usize;
        bytes[at..at + data.len()].copy_from_slice(data);
        Ok(self.write_requests(id, whole.start, &bytes))
    }

    fn write_direct(&mut self, id: FileId, offset: u64, data: &[u8], how: Cut) -> Result<(), Failure> {
        let end = offset + data.len() as u64;
        match how {
            Cut::Whole => {
                for request in self.direct_requests(id, offset, data)? {
                    self.disk.run(FileRole::Database, vec![request])?;
                }
            }
            Cut::Chunks(chunks) => {
                let mut requests = Vec::new();
                for span in cut(offset, data.len() as u64, chunks, self.disk.info().max_transfer.0) {
                    let at = (span.start - offset) as usize;
                    requests.extend(self.direct_requests(id, span.start, &data[at..at + span.length as usize])?);
                }
                self.disk.run(FileRole::Database, requests)?;
            }
        }
        self.grow(id, end);
        Ok(())
    }

    /// Writes runs of a database, ascending ones, all together.
    fn write_direct_all(&mut self, id: FileId, runs: &[(u64, Vec<u8>)], how: Cut) -> Result<(), Failure> {
        let longest = self.disk.info().max_transfer.0;
        let mut requests = Vec::new();
        // A logical block shared by two runs is read and written for each, one after the other. The first one's data
        // beyond the end of the file is part of it when the second one reads the block.
        let (mut taken, mut end) = (0, 0);
        for (start, data) in runs {
            let whole = self.rounded(Span { start: *start, length: data.len() as u64 });
            if whole.start < taken {
                self.disk.run(FileRole::Database, std::mem::take(&mut requests))?;
                self.grow(id, end);
            }
            (taken, end) = (whole.end(), start + data.len() as u64);
            let spans = match how {
                Cut::Whole => vec![Span { start: *start, length: data.len() as u64 }],
                Cut::Chunks(chunks) => cut(*start, data.len() as u64, chunks, longest),
            };
            for span in spans {
                let at = (span.start - start) as usize;
                requests.extend(self.direct_requests(id, span.start, &data[at..at + span.length as usize])?);
            }
        }
        self.disk.run(FileRole::Database, requests)?;
        self.grow(id, end);
        Ok(())
    }

    /// A write has reached `end`.
    fn grow(&mut self, id: FileId, end: u64) {
        if end > self.volume.size(id) {
            self.volume.set_size(id, end);
        }
    }

    /// Cuts the database; the rest of its last logical block becomes zeros, as files have it.
    fn truncate_direct(&mut self, id: FileId, size: u64) -> Result<(), Failure> {
        let block = self.disk.info().logical_block.0;
        let tail = (size.next_multiple_of(block) - size) as usize;
        if tail > 0 {
            for request in self.direct_requests(id, size, &vec![0; tail])? {
                self.disk.run(FileRole::Database, vec![request])?;
            }
        }
        let unused = self.volume.shrink(id, size);
        self.trim(unused, FileRole::Database);
        Ok(())
    }

    /// Brings the blocks of a span into the cache.
    fn load(&mut self, id: FileId, span: Span, role: FileRole) -> Result<(), Failure> {
        let (first, last) = (span.start / BLOCK, (span.end() - 1) / BLOCK);
        for run in self.cache.missing(id, first, last, LONGEST_RUN) {
            let buffers = self.read_span(id, Span { start: run.first * BLOCK, length: run.count * BLOCK }, role)?;
            let blocks = buffers.iter().flat_map(|buffer| buffer.chunks_exact(BLOCK as usize));
            for (block, bytes) in (run.first..).zip(blocks) {
                self.cache.insert_clean(id, block, bytes);
            }
        }
        Ok(())
    }

    fn read_cached(&mut self, id: FileId, offset: u64, into: &mut [u8], role: FileRole) -> Result<(), Failure> {
        self.load(id, Span { start: offset, length: into.len() as u64 }, role)?;
        for (block, within, piece) in blocks_of(offset, into.len()) {
            if let Some(bytes) = self.cache.get(id, block) {
                into[piece.clone()].copy_from_slice(&bytes[within..within + piece.len()]);
            }
        }
        self.cache.evict();
        Ok(())
    }

    fn write_cached(&mut self, id: FileId, offset: u64, data: &[u8], role: FileRole) -> Result<(), Failure> {
        let size = self.volume.size(id);
        if offset > size {
            self.copy_to_cache(id, size, &vec![0; (offset - size) as usize], role)?;
        }
        self.copy_to_cache(id, offset, data, role)?;
        if self.cache.is_over_dirty_limit() {
            self.write_back(id, role)?;
        }
        self.cache.evict();
        Ok(())
    }

    fn copy_to_cache(&mut self, id: FileId, offset: u64, data: &[u8], role: FileRole) -> Result<(), Failure> {
        let size = self.volume.size(id);
        for (block, within, piece) in blocks_of(offset, data.len()) {
            if piece.len() < BLOCK as usize && block * BLOCK < size {
                self.load(id, Span { start: block * BLOCK, length: 1 }, role)?;
            }
            self.cache.dirty_block(id, block)[within..within + piece.len()].copy_from_slice(&data[piece]);
        }
        self.volume.set_size(id, size.max(offset + data.len() as u64));
        Ok(())
    }

    fn truncate_cached(&mut self, id: FileId, size: u64, role: FileRole) -> Result<(), Failure> {
        let within = (size % BLOCK) as usize;
        if within > 0 {
            self.load(id, Span { start: size, length: 1 }, role)?;
            self.cache.dirty_block(id, size / BLOCK)[within..].fill(0);
        }
        self.cache.cut(id, size.div_ceil(BLOCK));
        let unused = self.volume.shrink(id, size);
        self.trim(unused, role);
        Ok(())
    }

    /// Writes a file's dirty blocks, adjacent ones together. Blocks that could not be written stay dirty.
    fn write_back(&mut self, id: FileId, role: FileRole) -> Result<(), Failure> {
        let runs = self.cache.dirty_runs(id, LONGEST_RUN);
        for batch in runs.chunks((BATCH_BYTES / BLOCK / LONGEST_RUN) as usize) {
            let mut requests = Vec::new();
            for run in batch {
                let mut bytes = Vec::with_capacity((run.count * BLOCK) as usize);
                for block in run.first..run.first + run.count {
                    bytes.extend_from_slice(self.cache.get(id, block).unwrap_or(&[0; BLOCK as usize]));
                }
                requests.extend(self.write_requests(id, run.first * BLOCK, &bytes));
            }
            self.disk.run(role, requests)?;
            batch.iter().for_each(|&run: &BlockRun| self.cache.mark_clean(id, run));
            self.unflushed.insert(id);
        }
        Ok(())
    }

    fn sync_cached(&mut self, id: FileId, role: FileRole) -> Result<(), Failure> {
        self.write_back(id, role)?;
        if self.unflushed.contains(&id) {
            self.disk.flush(role)?;
            self.unflushed.remove(&id);
        }
        Ok(())
    }
}

impl Medium for BareFiles {
    fn now(&mut self) -> Nanos {
        self.disk.device().map_or(Nanos(0), |device| device.now())
    }

    fn pause(&mut self, time: Nanos) -> Result<(), Failure> {
        self.disk.pause(time)
    }

    fn counters(&self) -> DeviceCounters {
        self.disk.device().map_or_else(DeviceCounters::default, |device| device.counters())
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.disk.ledger
    }

    fn take_device(&mut self) -> Option<Box<dyn BlockDevice + Send>> {
        self.disk.take_device()
    }

    fn sector_size(&self) -> u64 {
        self.disk.info().logical_block.0
    }

    fn find(&self, name: &str) -> Option<FileId> {
        self.volume.find(name)
    }

    fn size(&mut self, id: FileId) -> u64 {
        self.volume.size(id)
    }

    fn open(&mut self, name: Option<&str>, mode: OpenMode, _handle: HandleId) -> Result<FileId, Failure> {
        let refuse = |why: &str| {
            let name = name.unwrap_or("temporary file");
            Err(Failure::new(sqlite::SQLITE_CANTOPEN, format!("{name}: {why}")))
        };
        let zone = if mode.role == FileRole::Database { Zone::Front } else { Zone::Back };
        let id = match name.and_then(|name| self.volume.find(name)) {
            Some(_) if mode.exclusive => return refuse("exists already on the drive"),
            Some(id) => id,
            None if mode.create => self.volume.create(name, zone),
            None => return refuse("no such file on the drive"),
        };
        if mode.role == FileRole::Database {
            // The file may have been written through the cache under another role.
            self.write_back(id, mode.role)?;
            self.cache.forget(id);
        }
        Ok(id)
    }

    fn close(&mut self, file: FileRef<'_>, is_last: bool) {
        debug_assert!(!file.is_database() || self.cache.dirty_runs(file.id, 1).is_empty());
        // Dirty blocks stay cached, as they do in an operating system; a later sync of the file writes them.
        if is_last && !self.volume.is_linked(file.id) {
            self.remove(file.id, FileRole::Temporary);
        }
    }

    fn delete(&mut self, name: &str, how: Deletion) -> Result<(), Failure> {
        let Some(id) = self.volume.unlink(name) else {
            return Err(Failure::new(sqlite::SQLITE_IOERR_DELETE_NOENT, format!("{name}: no such file on the drive")));
        };
        if !how.is_open {
            self.remove(id, how.role);
        }
        Ok(())
    }

    fn read(&mut self, file: FileRef<'_>, offset: u64, into: &mut [u8]) -> Result<(), Failure> {
        match file.is_database() {
            true => self.read_direct(file.id, offset, into),
            false => self.read_cached(file.id, offset, into, file.role),
        }
    }

    fn read_together(&mut self, file: FileRef<'_>, spans: &[Span]) -> Result<Vec<Vec<u8>>, Failure> {
        self.read_spans(file.id, spans)
    }

    fn reserve(&mut self, file: FileRef<'_>, end: u64) -> Result<(), Failure> {
        self.volume.reserve(file.id, end).map_err(|_| full(file.name, self.disk.info()))
    }

    fn write(&mut self, file: FileRef<'_>, offset: u64, data: &[u8], how: Cut) -> Result<(), Failure> {
        self.reserve(file, offset + data.len() as u64)?;
        match (data.len(), file.is_database()) {
            (0, _) => Ok(()),
            (_, true) => self.write_direct(file.id, offset, data, how),
            (_, false) => self.write_cached(file.id, offset, data, file.role),
        }
    }

    fn write_all(&mut self, file: FileRef<'_>, runs: &[(u64, Vec<u8>)], how: Cut) -> Result<(), Failure> {
        if !file.is_database() {
            return runs.iter().try_for_each(|(start, bytes)| self.write(file, *start, bytes, how));
        }
        for (start, bytes) in runs {
            self.reserve(file, start + bytes.len() as u64)?;
        }
        self.write_direct_all(file.id, runs, how)
    }

    fn discard(&mut self, file: FileRef<'_>, span: Span) -> Result<(), Failure> {
        let block = self.disk.info().logical_block.0;
        let whole = |piece: Span| {
            let (start, end) = (piece.start.next_multiple_of(block), piece.end() / block * block);
            (start < end).then(|| Span { start, length: end - start })
        };
        let pieces = self.volume.pieces(file.id, span).into_iter().filter_map(whole).collect();
        self.trim(pieces, file.role);
        Ok(())
    }

    fn truncate(&mut self, file: FileRef<'_>, size: u64) -> Result<(), Failure> {
        let old = self.volume.size(file.id);
        if size < old && file.is_database() {
            self.truncate_direct(file.id, size)
        } else if size < old {
            self.truncate_cached(file.id, size, file.role)
        } else if size > old {
            self.reserve(file, size)?;
            if file.is_database() {
                self.volume.set_size(file.id, size);
                return Ok(());
            }
            self.write_cached(file.id, size, &[], file.role)
        } else {
            Ok(())
        }
    }

    fn sync(&mut self, file: FileRef<'_>) -> Result<(), Failure> {
        if file.is_database() { self.disk.flush(file.role) } else { self.sync_cached(file.id, file.role) }
    }

    #[cfg(test)]
    fn power_cut(&mut self) {
        self.cache = PageCache::default();
    }
}

/// Joins the pieces of a read, without the bytes before it.
fn gather(buffers: &[IoBuffer], mut skip: usize, into: &mut [u8]) {
    let mut filled = 0;
    for buffer in buffers {
        let useful = &buffer[skip.min(buffer.len())..];
        let count = useful.len().min(into.len() - filled);
        into[filled..filled + count].copy_from_slice(&useful[..count]);
        filled += count;
        skip = skip.saturating_sub(buffer.len());
    }
    debug_assert_eq!(filled, into.len());
}

/// Cache blocks of a span: block number, first byte within the block, range within the span.
fn blocks_of(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let at = offset + done as u64;
        let within = (at % BLOCK) as usize;
        let range = done..(done + BLOCK as usize - within).min(length);
        done = range.end;
        Some((at / BLOCK, within, range))
    })
}
