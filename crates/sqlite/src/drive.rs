//! Files on a drive: the database directly, everything else through the modelled page cache.
//!
//! ```text
//!   database          ── rounded to logical blocks ──────────────▶ volume: extents ──▶ disk: requests
//!   journal, WAL, …   ── page cache, written at sync in runs ──▶        "
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard};

use flashwise_block::{ByteSize, IoBuffer, Request};
use flashwise_trace::FileRole;
use libsqlite3_sys as sqlite;

use crate::batch::{self, BatchPlace};
use crate::batch_volume::{BatchVolume, Members};
use crate::bytes::Span;
use crate::cache::{BLOCK, BlockRun, PageCache};
use crate::disk::{Disk, read_request};
use crate::error::{Failure, checked_end};
use crate::layout::cut;
use crate::locks::{Busy, HandleId, Level, Locks};
use crate::log_layout::LogLayout;
use crate::shm::{SharedMemory, WalIndex};
use crate::store::{Cut, Rights, Store};
use crate::volume::{FileId, Volume, Zone};

/// Longest request of a write-back or a read into the cache, in cache blocks: 1 MiB.
const LONGEST_RUN: u64 = (1 << 20) / BLOCK;
/// Bytes of dirty blocks that are copied for one batch of requests.
const BATCH_BYTES: u64 = 8 << 20;

struct OpenFile {
    role: FileRole,
    handles: usize,
    locks: Locks,
    wal_index: WalIndex,
    /// Something was written to the device since the last flush.
    unflushed: bool,
    /// Counts possible changes of the file's bytes, through any handle.
    changes: u64,
}

/// How a file is to be opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenMode {
    pub role: FileRole,
    pub create: bool,
    pub exclusive: bool,
}

/// One device, its files, their cache and their locks.
pub(crate) struct Drive {
    pub disk: Disk,
    volume: Volume,
    cache: PageCache,
    open: BTreeMap<FileId, OpenFile>,
    /// Layouts of the logs of databases that were opened, where they are not plain.
    logs: BTreeMap<String, LogLayout>,
    /// Connections to databases with batch logs, by the database's name.
    pub members: BTreeMap<String, Members>,
    next_handle: u64,
    /// Pages that were read ahead.
    pub read_ahead: u64,
}

/// A drive that several files share.
pub(crate) type SharedDrive = Arc<Mutex<Drive>>;

/// The drive for one call; fails after a panic under the lock.
pub(crate) fn lock(drive: &SharedDrive) -> Result<MutexGuard<'_, Drive>, Failure> {
    drive.lock().map_err(|_| Failure::broken_lock())
}

fn full(name: &str, info: &flashwise_block::DeviceInfo) -> Failure {
    Failure::new(sqlite::SQLITE_FULL, format!("{name}: no free extent on the drive's {}", info.capacity))
}

impl Drive {
    pub(crate) fn new(disk: Disk) -> Self {
        let volume = Volume::new(disk.info().capacity.0, disk.info().logical_block.0);
        Self {
            disk,
            volume,
            cache: PageCache::default(),
            open: BTreeMap::new(),
            logs: BTreeMap::new(),
            members: BTreeMap::new(),
            next_handle: 0,
            read_ahead: 0,
        }
    }

    /// Notes how the log of a database is laid out.
    pub(crate) fn note_log(&mut self, database: Option<&str>, log: LogLayout) {
        let Some(database) = database else { return };
        match log {
            LogLayout::Plain => _ = self.logs.remove(database),
            log => _ = self.logs.insert(database.to_owned(), log),
        }
    }

    /// How the log of a database is laid out.
    pub(crate) fn log_of(&self, database: &str) -> LogLayout {
        self.logs.get(database).copied().unwrap_or_default()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.volume.find(name).is_some()
    }

    /// Handles that are open on the file of that name, or on all files.
    pub(crate) fn handles(&self, name: Option<&str>) -> usize {
        match name {
            Some(name) => self.volume.find(name).and_then(|id| self.open.get(&id)).map_or(0, |file| file.handles),
            None => self.open.values().map(|file| file.handles).sum(),
        }
    }

    /// Size of the file of that name.
    pub(crate) fn size_of(&self, name: &str) -> Option<u64> {
        self.volume.find(name).map(|id| self.volume.size(id))
    }

    fn open(&mut self, name: Option<&str>, mode: OpenMode) -> Result<(FileId, HandleId), Failure> {
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
        let file = self.open.entry(id).or_insert_with(|| OpenFile {
            role: mode.role,
            handles: 0,
            locks: Locks::default(),
            wal_index: WalIndex::default(),
            unflushed: false,
            changes: 0,
        });
        file.role = mode.role;
        file.handles += 1;
        file.changes += 1;
        self.next_handle += 1;
        Ok((id, HandleId(self.next_handle)))
    }

    fn close(&mut self, id: FileId, handle: HandleId) {
        let Some(file) = self.open.get_mut(&id) else { return };
        file.locks.unlock(handle, Level::None);
        file.wal_index.unmap(handle);
        file.handles -= 1;
        if file.handles > 0 {
            return;
        }
        if self.volume.is_linked(id) {
            // Dirty blocks stay cached, as they do in an operating system; a later sync of the file writes them.
            let (role, unflushed) = (file.role, file.unflushed);
            if !unflushed && self.cache.dirty_runs(id, LONGEST_RUN).is_empty() {
                self.open.remove(&id);
            }
            debug_assert!(role != FileRole::Database || self.cache.dirty_runs(id, 1).is_empty());
        } else {
            self.open.remove(&id);
            self.remove(id, FileRole::Temporary);
        }
    }

    /// Removes a file's name and, when no handle has it open, its space.
    pub(crate) fn delete(&mut self, name: &str) -> Result<(), Failure> {
        let Some(id) = self.volume.unlink(name) else {
            return Err(Failure::new(sqlite::SQLITE_IOERR_DELETE_NOENT, format!("{name}: no such file on the drive")));
        };
        let role = self.open.get(&id).map_or(role_of_name(name), |file| file.role);
        if self.open.get(&id).is_none_or(|file| file.handles == 0) {
            self.open.remove(&id);
            self.remove(id, role);
        }
        Ok(())
    }

    fn remove(&mut self, id: FileId, role: FileRole) {
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

    fn reserve(&mut self, id: FileId, end: u64, name: &str) -> Result<(), Failure> {
        self.volume.reserve(id, end).map_err(|_| full(name, self.disk.info()))
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
    fn read_together(&mut self, id: FileId, spans: &[Span]) -> Result<Vec<Vec<u8>>, Failure> {
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

    /// Reads of a database, together with wanted pages ahead, unless they were read already.
    fn read_with(&mut self, id: FileId, offset: u64, into: &mut [u8], ahead: &mut Ahead) -> Result<(), Failure> {
        let span = Span { start: offset, length: into.len() as u64 };
        let changes = self.open.get(&id).map_or(0, |file| file.changes);
        if let Some(bytes) = ahead.take(span, changes) {
            into.copy_from_slice(&bytes);
            return Ok(());
        }
        let (size, mut spans) = (self.volume.size(id), vec![span]);
        spans.extend(ahead.wanted.drain(..).filter(|wanted| wanted.end() <= size && *wanted != span));
        if spans.len() > 1
            && let Ok(mut pages) = self.read_together(id, &spans)
        {
            self.read_ahead += spans.len() as u64 - 1;
            into.copy_from_slice(&pages.remove(0));
            ahead.keep(&spans[1..], pages, changes);
            return Ok(());
        }
        // A failure of the other reads is not a failure of this one.
        self.read_direct(id, offset, into)
    }

    /// Pages that were read ahead may be outdated.
    fn note_change(&mut self, id: FileId) {
        if let Some(file) = self.open.get_mut(&id) {
            file.changes += 1;
        }
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
            if let Some(file) = self.open.get_mut(&id) {
                file.unflushed = true;
            }
        }
        Ok(())
    }

    /// The machine's memory is lost, with unwritten data; the directory is unchanged.
    #[cfg(test)]
    pub(crate) fn power_cut(&mut self) {
        self.cache = PageCache::default();
        self.members.clear();
    }

    fn sync_cached(&mut self, id: FileId, role: FileRole) -> Result<(), Failure> {
        self.write_back(id, role)?;
        if self.open.get(&id).is_some_and(|file| file.unflushed) {
            self.disk.flush(role)?;
            if let Some(file) = self.open.get_mut(&id) {
                file.unflushed = false;
            }
        }
        Ok(())
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

/// The kind of a file by its name, if no handle has it open.
pub(crate) fn role_of_name(name: &str) -> FileRole {
    match name {
        _ if name.ends_with("-wal") => FileRole::WriteAheadLog,
        _ if name.ends_with("-journal") || name.ends_with(batch::SUFFIX) => FileRole::Journal,
        _ => FileRole::Database,
    }
}

/// Pages that a scan is likely to read next. They are read together with the next page that has to be waited for.
#[derive(Default)]
struct Ahead {
    wanted: Vec<Span>,
    read: VecDeque<(Span, Vec<u8>)>,
    /// The file's count of changes when they were read: with any later one, through whichever handle, they are nothing.
    changes: u64,
}

impl Ahead {
    /// Most pages that are kept; callers request no more.
    const MOST: usize = 64;

    fn take(&mut self, span: Span, changes: u64) -> Option<Vec<u8>> {
        if self.changes != changes {
            self.read.clear();
            return None;
        }
        let at = self.read.iter().position(|(read, _)| *read == span)?;
        self.read.remove(at).map(|(_, bytes)| bytes)
    }

    fn keep(&mut self, spans: &[Span], pages: Vec<Vec<u8>>, changes: u64) {
        self.changes = changes;
        self.read.extend(spans.iter().copied().zip(pages));
        self.read.drain(..self.read.len().saturating_sub(Self::MOST));
    }
}

/// One open file on a drive.
pub(crate) struct DriveStore {
    drive: SharedDrive,
    id: FileId,
    handle: HandleId,
    role: FileRole,
    name: String,
    ahead: Ahead,
    rights: Rights,
}

impl DriveStore {
    pub(crate) fn open(drive: &SharedDrive, name: Option<&str>, mode: OpenMode) -> Result<Self, Failure> {
        let (id, handle) = lock(drive)?.open(name, mode)?;
        let shown = name.unwrap_or("temporary file").to_owned();
        let (drive, role, ahead, rights) = (Arc::clone(drive), mode.role, Ahead::default(), Rights::USUAL);
        Ok(Self { drive, id, handle, role, name: shown, ahead, rights })
    }

    pub(crate) fn set_rights(&mut self, rights: Rights) {
        self.rights = rights;
    }

    pub(crate) fn is_database(&self) -> bool {
        self.role == FileRole::Database
    }

    /// Runs an operation on the index of the database's log; on a broken drive the result is an error.
    fn with_wal_index<T>(&self, work: impl FnOnce(&mut WalIndex) -> T) -> Option<T> {
        let mut drive = lock(&self.drive).ok()?;
        drive.open.get_mut(&self.id).map(|file| work(&mut file.wal_index))
    }

    pub(crate) fn lock_level(&self, wanted: Level) -> Result<(), Failure> {
        let mut drive = lock(&self.drive)?;
        let Some(file) = drive.open.get_mut(&self.id) else { return Ok(()) };
        file.locks
            .lock(self.handle, wanted)
            .map_err(|Busy| Failure::new(sqlite::SQLITE_BUSY, format!("{}: locked by another connection", self.name)))
    }

    pub(crate) fn unlock_level(&self, to: Level) -> Result<(), Failure> {
        let mut drive = lock(&self.drive)?;
        if let Some(file) = drive.open.get_mut(&self.id) {
            file.locks.unlock(self.handle, to);
        }
        Ok(())
    }

    pub(crate) fn is_reserved(&self) -> Result<bool, Failure> {
        Ok(lock(&self.drive)?.open.get(&self.id).is_some_and(|file| file.locks.is_reserved()))
    }

    pub(crate) fn sector_size(&self) -> u64 {
        lock(&self.drive).map_or(512, |drive| drive.disk.info().logical_block.0)
    }
}

impl SharedMemory for DriveStore {
    fn map(&mut self, region: c_int, bytes: c_int, extend: bool) -> (c_int, *mut c_void) {
        let mapped = self.with_wal_index(|index| index.map(self.handle, region, bytes, extend));
        match mapped.unwrap_or(Err(sqlite::SQLITE_IOERR_SHMMAP)) {
            Ok(start) => (sqlite::SQLITE_OK, start),
            Err(code) => (code, std::ptr::null_mut()),
        }
    }

    fn lock(&mut self, first: c_int, count: c_int, flags: c_int) -> c_int {
        match self.with_wal_index(|index| index.lock(self.handle, first, count, flags)) {
            Some(Ok(())) => sqlite::SQLITE_OK,
            Some(Err(Busy)) => sqlite::SQLITE_BUSY,
            None => sqlite::SQLITE_IOERR_SHMLOCK,
        }
    }

    fn barrier(&mut self) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    fn unmap(&mut self, _delete: bool) -> c_int {
        // With the last connection it is deleted anyway.
        _ = self.with_wal_index(|index| index.unmap(self.handle));
        sqlite::SQLITE_OK
    }
}

impl Drop for DriveStore {
    fn drop(&mut self) {
        if let Ok(mut drive) = lock(&self.drive) {
            drive.close(self.id, self.handle);
        }
    }
}

impl Store for DriveStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&mut self) -> Result<u64, Failure> {
        Ok(lock(&self.drive)?.volume.size(self.id))
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
        let mut drive = lock(&self.drive)?;
        let there = drive.volume.size(self.id).saturating_sub(offset);
        let length = into.len().min(usize::try_from(there).unwrap_or(usize::MAX));
        let into = &mut into[..length];
        match (length, self.role == FileRole::Database) {
            (0, _) => {}
            (_, true) => drive.read_with(self.id, offset, into, &mut self.ahead)?,
            (_, false) => drive.read_cached(self.id, offset, into, self.role)?,
        }
        Ok(length)
    }

    fn ask_ahead(&mut self, spans: &[Span]) {
        self.ahead.wanted.extend(spans);
        self.ahead.wanted.drain(..self.ahead.wanted.len().saturating_sub(Ahead::MOST));
    }

    fn reserve(&mut self, end: u64) -> Result<(), Failure> {
        lock(&self.drive)?.reserve(self.id, end, &self.name)
    }

    fn write(&mut self, offset: u64, data: &[u8], how: Cut) -> Result<(), Failure> {
        let mut drive = lock(&self.drive)?;
        drive.reserve(self.id, checked_end(offset, data.len() as u64)?, &self.name)?;
        drive.note_change(self.id);
        match (data.len(), self.is_database()) {
            (0, _) => Ok(()),
            (_, true) => drive.write_direct(self.id, offset, data, how),
            (_, false) => drive.write_cached(self.id, offset, data, self.role),
        }
    }

    fn discard(&mut self, span: Span) -> Result<(), Failure> {
        let mut drive = lock(&self.drive)?;
        drive.note_change(self.id);
        let block = drive.disk.info().logical_block.0;
        let whole = |piece: Span| {
            let (start, end) = (piece.start.next_multiple_of(block), piece.end() / block * block);
            (start < end).then(|| Span { start, length: end - start })
        };
        let pieces = drive.volume.pieces(self.id, span).into_iter().filter_map(whole).collect();
        drive.trim(pieces, self.role);
        Ok(())
    }

    fn write_all(&mut self, runs: &[(u64, Vec<u8>)], how: Cut) -> Result<(), Failure> {
        if !self.is_database() {
            return runs.iter().try_for_each(|(start, bytes)| self.write(*start, bytes, how));
        }
        let mut drive = lock(&self.drive)?;
        for (start, bytes) in runs {
            drive.reserve(self.id, checked_end(*start, bytes.len() as u64)?, &self.name)?;
        }
        drive.note_change(self.id);
        drive.write_direct_all(self.id, runs, how)
    }

    fn truncate(&mut self, size: u64) -> Result<(), Failure> {
        let mut drive = lock(&self.drive)?;
        drive.note_change(self.id);
        let old = drive.volume.size(self.id);
        if size < old && self.is_database() {
            drive.truncate_direct(self.id, size)
        } else if size < old {
            drive.truncate_cached(self.id, size, self.role)
        } else if size > old {
            drive.reserve(self.id, size, &self.name)?;
            if self.is_database() {
                drive.volume.set_size(self.id, size);
                return Ok(());
            }
            drive.write_cached(self.id, size, &[], self.role)
        } else {
            Ok(())
        }
    }

    fn sync(&mut self, _flags: c_int) -> Result<(), Failure> {
        let mut drive = lock(&self.drive)?;
        if self.is_database() { drive.disk.flush(self.role) } else { drive.sync_cached(self.id, self.role) }
    }

    fn rights(&self) -> Rights {
        self.rights
    }

    fn batch_place(&self) -> Option<Box<dyn BatchPlace>> {
        Some(Box::new(BatchVolume::new(Arc::clone(&self.drive), &self.name)))
    }
}
