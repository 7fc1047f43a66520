//! Files on a drive, as SQLite has them open: handles, locks, the index of a log, and what was read ahead. Where their
//! bytes are is the [`Medium`]'s.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard};

use flashwise_trace::FileRole;
use libsqlite3_sys as sqlite;

use crate::batch::{self, BatchPlace};
use crate::batch_volume::{BatchVolume, Members};
use crate::bytes::Span;
use crate::error::{Failure, checked_end};
use crate::locks::{Busy, HandleId, Level, Locks};
use crate::log_extension::{LogExtension, LogFile};
use crate::log_layout::LogLayout;
use crate::medium::{Deletion, FileRef, Medium, OpenMode};
use crate::shm::{SharedMemory, WalIndex};
use crate::store::{Cut, Rights, Store};
use crate::volume::FileId;

struct OpenFile {
    role: FileRole,
    handles: usize,
    locks: Locks,
    wal_index: WalIndex,
    /// Counts possible changes of the file's bytes, through any handle.
    changes: u64,
}

/// How the log of a database is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DatabaseLog {
    pub layout: LogLayout,
    /// Whether it is extended ahead of its frames, where that saves a commit of the file system.
    pub extends: bool,
}

/// One device, its files and their locks.
pub(crate) struct Drive {
    pub medium: Box<dyn Medium>,
    open: BTreeMap<FileId, OpenFile>,
    /// The logs of databases that were opened, where they are not SQLite's own.
    logs: BTreeMap<String, DatabaseLog>,
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

impl Drive {
    pub(crate) fn new(medium: Box<dyn Medium>) -> Self {
        Self {
            medium,
            open: BTreeMap::new(),
            logs: BTreeMap::new(),
            members: BTreeMap::new(),
            next_handle: 0,
            read_ahead: 0,
        }
    }

    /// Notes how the log of a database is written.
    pub(crate) fn note_log(&mut self, database: Option<&str>, log: DatabaseLog) {
        let Some(database) = database else { return };
        match log == DatabaseLog::default() {
            true => _ = self.logs.remove(database),
            false => _ = self.logs.insert(database.to_owned(), log),
        }
    }

    /// How the log of a database is written.
    pub(crate) fn log_of(&self, database: &str) -> DatabaseLog {
        self.logs.get(database).copied().unwrap_or_default()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.medium.find(name).is_some()
    }

    /// Handles that are open on the file of that name, or on all files.
    pub(crate) fn handles(&self, name: Option<&str>) -> usize {
        match name {
            Some(name) => self.medium.find(name).and_then(|id| self.open.get(&id)).map_or(0, |file| file.handles),
            None => self.open.values().map(|file| file.handles).sum(),
        }
    }

    /// Size of the file of that name.
    pub(crate) fn size_of(&mut self, name: &str) -> Option<u64> {
        self.medium.find(name).map(|id| self.medium.size(id))
    }

    fn open(&mut self, name: Option<&str>, mode: OpenMode) -> Result<(FileId, HandleId), Failure> {
        self.next_handle += 1;
        let handle = HandleId(self.next_handle);
        let id = self.medium.open(name, mode, handle)?;
        let file = self.open.entry(id).or_insert_with(|| OpenFile {
            role: mode.role,
            handles: 0,
            locks: Locks::default(),
            wal_index: WalIndex::default(),
            changes: 0,
        });
        file.role = mode.role;
        file.handles += 1;
        file.changes += 1;
        Ok((id, handle))
    }

    fn close(&mut self, closing: FileRef<'_>) {
        let Some(file) = self.open.get_mut(&closing.id) else { return };
        file.locks.unlock(closing.handle, Level::None);
        file.wal_index.unmap(closing.handle);
        file.handles -= 1;
        let is_last = file.handles == 0;
        if is_last {
            self.open.remove(&closing.id);
        }
        self.medium.close(closing, is_last);
    }

    /// Removes a file's name and, when no handle has it open, its space.
    pub(crate) fn delete(&mut self, name: &str, is_durable: bool) -> Result<(), Failure> {
        let open = self.medium.find(name).and_then(|id| self.open.get(&id));
        let role = open.map_or(role_of_name(name), |file| file.role);
        let is_open = open.is_some();
        self.medium.delete(name, Deletion { role, is_open, is_durable })
    }

    /// Reads of a database, together with wanted pages ahead, unless they were read already.
    fn read_with(&mut self, file: FileRef<'_>, offset: u64, into: &mut [u8], ahead: &mut Ahead) -> Result<(), Failure> {
        let span = Span { start: offset, length: into.len() as u64 };
        let changes = self.open.get(&file.id).map_or(0, |file| file.changes);
        if let Some(bytes) = ahead.take(span, changes) {
            into.copy_from_slice(&bytes);
            return Ok(());
        }
        let (size, mut spans) = (self.medium.size(file.id), vec![span]);
        spans.extend(ahead.wanted.drain(..).filter(|wanted| wanted.end() <= size && *wanted != span));
        if spans.len() > 1
            && let Ok(mut pages) = self.medium.read_together(file, &spans)
        {
            self.read_ahead += spans.len() as u64 - 1;
            into.copy_from_slice(&pages.remove(0));
            ahead.keep(&spans[1..], pages, changes);
            return Ok(());
        }
        // A failure of the other reads is not a failure of this one.
        self.medium.read(file, offset, into)
    }

    /// Pages that were read ahead may be outdated.
    fn note_change(&mut self, id: FileId) {
        if let Some(file) = self.open.get_mut(&id) {
            file.changes += 1;
        }
    }

    /// The machine's memory is lost, with unwritten data; the directory is unchanged.
    #[cfg(test)]
    pub(crate) fn power_cut(&mut self) {
        self.medium.power_cut();
        self.members.clear();
    }
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
    /// Of a log that is extended.
    extension: Option<LogExtension>,
}

/// The file of a log on a drive, with the calls that it takes to get its size.
struct DriveLog<'a> {
    medium: &'a mut dyn Medium,
    file: FileRef<'a>,
}

impl LogFile for DriveLog<'_> {
    fn size(&mut self) -> Option<u64> {
        self.medium.spend_calls(1);
        Some(self.medium.size(self.file.id))
    }

    fn free_space(&mut self) -> u64 {
        self.medium.spend_calls(1);
        self.medium.free_space().unwrap_or(0)
    }

    fn longest(&self) -> u64 {
        u64::MAX
    }

    fn write(&mut self, at: u64, zeros: &[u8]) -> bool {
        self.medium.write(self.file, at, zeros, Cut::Whole).is_ok()
    }

    fn truncate(&mut self, size: u64) {
        // A log that stays longer is as good.
        let _ = self.medium.truncate(self.file, size);
    }
}

impl DriveStore {
    pub(crate) fn open(drive: &SharedDrive, name: Option<&str>, mode: OpenMode) -> Result<Self, Failure> {
        let (id, handle) = lock(drive)?.open(name, mode)?;
        let shown = name.unwrap_or("temporary file").to_owned();
        let (drive, role, ahead, rights) = (Arc::clone(drive), mode.role, Ahead::default(), Rights::USUAL);
        Ok(Self { drive, id, handle, role, name: shown, ahead, rights, extension: None })
    }

    /// Extends the file, a log in that layout, ahead of its frames, where that saves a commit of the file system.
    pub(crate) fn extend_ahead(&mut self, layout: LogLayout) -> Result<(), Failure> {
        let saves = lock(&self.drive)?.medium.free_space().is_some();
        self.extension = saves.then(|| LogExtension::new(layout));
        Ok(())
    }

    /// Writes; a log gets the zeros that are due behind it.
    fn write_and_extend(
        &mut self,
        end: u64,
        write: impl FnOnce(&mut dyn Medium, FileRef<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Self { drive, id, handle, role, name, extension, .. } = self;
        let file = FileRef { id: *id, handle: *handle, role: *role, name };
        let mut drive = lock(drive)?;
        drive.note_change(file.id);
        let medium = &mut *drive.medium;
        let Some(extension) = extension else { return write(medium, file) };
        let mut log = DriveLog { medium, file };
        extension.before_write(&mut log);
        write(&mut *log.medium, file)?;
        extension.after_write(end, &mut log);
        Ok(())
    }

    pub(crate) fn set_rights(&mut self, rights: Rights) {
        self.rights = rights;
    }

    pub(crate) fn is_database(&self) -> bool {
        self.role == FileRole::Database
    }

    pub(crate) fn lock_level(&self, wanted: Level) -> Result<(), Failure> {
        let mut drive = lock(&self.drive)?;
        drive.medium.spend_calls(wanted.calls());
        let Some(file) = drive.open.get_mut(&self.id) else { return Ok(()) };
        file.locks
            .lock(self.handle, wanted)
            .map_err(|Busy| Failure::new(sqlite::SQLITE_BUSY, format!("{}: locked by another connection", self.name)))
    }

    pub(crate) fn unlock_level(&self, to: Level) -> Result<(), Failure> {
        let mut drive = lock(&self.drive)?;
        drive.medium.spend_calls(1);
        if let Some(file) = drive.open.get_mut(&self.id) {
            file.locks.unlock(self.handle, to);
        }
        Ok(())
    }

    pub(crate) fn is_reserved(&self) -> Result<bool, Failure> {
        Ok(lock(&self.drive)?.open.get(&self.id).is_some_and(|file| file.locks.is_reserved()))
    }

    pub(crate) fn sector_size(&self) -> u64 {
        lock(&self.drive).map_or(512, |drive| drive.medium.sector_size())
    }

    /// The open file, with the drive that has it and what was read ahead of it.
    fn parts(&mut self) -> Result<(MutexGuard<'_, Drive>, FileRef<'_>, &mut Ahead), Failure> {
        let Self { drive, id, handle, role, name, ahead, .. } = self;
        Ok((lock(drive)?, FileRef { id: *id, handle: *handle, role: *role, name }, ahead))
    }

    /// Allocates space for `length` bytes; returns where in the file the drive's chunks start, modulo the chunk.
    pub(crate) fn place(&mut self, length: u64, chunk: u64) -> Result<Option<u64>, Failure> {
        let (mut drive, file, _) = self.parts()?;
        Ok(drive.medium.place(file, length, chunk))
    }
}

impl SharedMemory for DriveStore {
    fn map(&mut self, region: c_int, bytes: c_int, extend: bool) -> (c_int, *mut c_void) {
        let failed = |code: c_int| (code, std::ptr::null_mut());
        let Ok((mut drive, file, _)) = self.parts() else { return failed(sqlite::SQLITE_IOERR_SHMMAP) };
        let Drive { open, medium, .. } = &mut *drive;
        let Some(found) = open.get_mut(&file.id) else { return failed(sqlite::SQLITE_IOERR_SHMMAP) };
        let before = found.wal_index.bytes();
        let mapped = found.wal_index.map(file.handle, region, bytes, extend);
        let after = found.wal_index.bytes();
        if after > before {
            medium.share_memory(file, after);
        }
        mapped.map_or_else(failed, |start| (sqlite::SQLITE_OK, start))
    }

    fn lock(&mut self, first: c_int, count: c_int, flags: c_int) -> c_int {
        let Ok((mut drive, file, _)) = self.parts() else { return sqlite::SQLITE_IOERR_SHMLOCK };
        drive.medium.spend_calls(1);
        let Some(found) = drive.open.get_mut(&file.id) else { return sqlite::SQLITE_IOERR_SHMLOCK };
        match found.wal_index.lock(file.handle, first, count, flags) {
            Ok(()) => sqlite::SQLITE_OK,
            Err(Busy) => sqlite::SQLITE_BUSY,
        }
    }

    fn barrier(&mut self) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    fn unmap(&mut self, _delete: bool) -> c_int {
        // With the last connection it is deleted anyway.
        if let Ok((mut drive, file, _)) = self.parts() {
            let Drive { open, medium, .. } = &mut *drive;
            if let Some(found) = open.get_mut(&file.id) {
                found.wal_index.unmap(file.handle);
                if found.wal_index.bytes() == 0 {
                    medium.share_memory(file, 0);
                }
            }
        }
        sqlite::SQLITE_OK
    }
}

impl Drop for DriveStore {
    fn drop(&mut self) {
        if let Ok((mut drive, file, _)) = self.parts() {
            drive.close(file);
        }
    }
}

impl Store for DriveStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&mut self) -> Result<u64, Failure> {
        let mut drive = lock(&self.drive)?;
        drive.medium.spend_calls(1);
        Ok(drive.medium.size(self.id))
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
        let (mut drive, file, ahead) = self.parts()?;
        let there = drive.medium.size(file.id).saturating_sub(offset);
        let length = into.len().min(usize::try_from(there).unwrap_or(usize::MAX));
        let into = &mut into[..length];
        match (length, file.is_database()) {
            (0, _) => {}
            (_, true) => drive.read_with(file, offset, into, ahead)?,
            (_, false) => drive.medium.read(file, offset, into)?,
        }
        Ok(length)
    }

    fn ask_ahead(&mut self, spans: &[Span]) {
        let Ok((mut drive, file, ahead)) = self.parts() else { return };
        if drive.medium.prefetch(file, spans) {
            drive.read_ahead += spans.len() as u64;
            return;
        }
        ahead.wanted.extend(spans);
        ahead.wanted.drain(..ahead.wanted.len().saturating_sub(Ahead::MOST));
    }

    fn reserve(&mut self, end: u64) -> Result<(), Failure> {
        let (mut drive, file, _) = self.parts()?;
        drive.medium.reserve(file, end)
    }

    fn write(&mut self, offset: u64, data: &[u8], how: Cut) -> Result<(), Failure> {
        let end = checked_end(offset, data.len() as u64)?;
        self.write_and_extend(end, |medium, file| medium.write(file, offset, data, how))
    }

    fn begin(&mut self, batch: Span) {
        if let Ok((mut drive, file, _)) = self.parts() {
            drive.medium.start_write_back(file, batch);
        }
    }

    fn discard(&mut self, span: Span) -> Result<(), Failure> {
        let (mut drive, file, _) = self.parts()?;
        drive.note_change(file.id);
        drive.medium.discard(file, span)
    }

    fn write_all(&mut self, runs: &[(u64, Vec<u8>)], how: Cut) -> Result<(), Failure> {
        let mut ends = runs.iter().map(|(start, bytes)| checked_end(*start, bytes.len() as u64));
        let end = ends.try_fold(0, |last, end| end.map(|end| last.max(end)))?;
        self.write_and_extend(end, |medium, file| medium.write_all(file, runs, how))
    }

    fn truncate(&mut self, size: u64) -> Result<(), Failure> {
        if let Some(extension) = &mut self.extension {
            extension.truncated();
        }
        let (mut drive, file, _) = self.parts()?;
        drive.note_change(file.id);
        drive.medium.truncate(file, size)
    }

    fn sync(&mut self, _flags: c_int) -> Result<(), Failure> {
        if let Some(extension) = &mut self.extension {
            extension.synced();
        }
        let (mut drive, file, _) = self.parts()?;
        drive.medium.sync(file)
    }

    fn rights(&self) -> Rights {
        self.rights
    }

    fn batch_place(&self) -> Option<Box<dyn BatchPlace>> {
        Some(Box::new(BatchVolume::new(Arc::clone(&self.drive), &self.name)))
    }
}
