//! Files in an ordinary directory, through SQLite's own VFS.
//!
//! SQLite's default VFS ("unix") opens, locks, maps shared memory and syncs; this module records the requests with
//! their wall-clock latencies, and names the companions of shifted databases.
//!
//! **Companions.** A plain SQLite that opens a shifted database with a journal or a WAL beside it would write the
//! journal's pages to their places in a *plain* file before it reads the database's first bytes, and so destroy it.
//! Journal and WAL of a shifted database are therefore called `NAME-fwjournal` and `NAME-fwwal`, which plain SQLite
//! does not look for.

use std::collections::BTreeMap;
use std::ffi::{OsStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use flashwise_block::{ByteSize, DeviceCounters, Nanos, Operation, RegisteredFile};
use flashwise_trace::{FileRole, IoRecord};
use libsqlite3_sys as sqlite;

use crate::batch::BatchPlace;
use crate::batch_file::BatchFile;
use crate::bytes::Span;
use crate::companion;
use crate::error::Failure;
use crate::ffi::{FileName, ParentFile, ParentVfs};
use crate::file::FileStore;
use crate::handle::Handle;
use crate::ledger::Ledger;
use crate::log::open_log;
use crate::log_extension::LogExtension;
use crate::log_layout::LogLayout;
use crate::log_sync::{DirectoryLog, LogSync, LogWrite, Synced};
use crate::memo;
use crate::options::{LogSyncs, VfsOptions};
use crate::pieces::{Pieces, writes};
use crate::shm::SharedMemory;
use crate::store::{Cut, Mapping, Rights, Store};
use crate::super_journal::{self, Renamed};
use crate::vfs::Opened;

/// SQLite's suffixes and those of a shifted database.
pub(crate) const COMPANIONS: [(&str, &str); 2] = [("-journal", "-fwjournal"), (LOG_SUFFIX, "-fwwal")];
/// Suffix of a log's name.
const LOG_SUFFIX: &str = "-wal";

/// Facts about an opened database.
#[derive(Debug, Default)]
struct KnownDatabase {
    /// Files of ours that are open on it.
    handles: usize,
    /// Its layout if it is new.
    options: VfsOptions,
    /// Whether another process may turn it into a plain one unnoticed.
    left_alone: bool,
    /// `None` while the file is empty.
    found: Option<Found>,
    /// Stored names of its journal and its log, once they were needed.
    companions: [Option<Arc<FileName>>; COMPANIONS.len()],
}

/// The form of a database, from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    shifted: bool,
    log: LogLayout,
}

impl Found {
    fn of(mapping: Mapping) -> Self {
        match mapping {
            Mapping::Plain => Self { shifted: false, log: LogLayout::Plain },
            Mapping::Shifted(header) => Self { shifted: true, log: header.log },
        }
    }

    /// The future form of an empty database.
    fn wanted(options: &VfsOptions) -> Self {
        Self { shifted: options.is_converting(), log: options.log }
    }
}

/// Databases that are remembered after they were closed.
const REMEMBERED: usize = 4096;

#[derive(Debug)]
struct State {
    ledger: Ledger,
    counters: DeviceCounters,
    /// By full path.
    known: BTreeMap<Vec<u8>, KnownDatabase>,
    /// Open files of every kind.
    files: usize,
}

/// A directory as a place for databases.
pub(crate) struct Directory {
    pub parent: ParentVfs,
    options: VfsOptions,
    /// Whether requests are counted and timed.
    observed: bool,
    began: Instant,
    /// Pages read ahead by the kernel.
    pub asked_ahead: AtomicU64,
    state: Mutex<State>,
}

impl Directory {
    pub(crate) fn new(parent: ParentVfs, options: VfsOptions, observed: bool) -> Self {
        let ledger = Ledger::new(options.record);
        let state = State { ledger, counters: DeviceCounters::default(), known: BTreeMap::new(), files: 0 };
        let (began, asked_ahead) = (Instant::now(), AtomicU64::new(0));
        Self { parent, options, observed, began, asked_ahead, state: Mutex::new(state) }
    }

    /// Every change under this lock is a single assignment or addition: the state is sound after a panic.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn with_ledger<T>(&self, work: impl FnOnce(&mut Ledger) -> T) -> T {
        work(&mut self.state().ledger)
    }

    pub(crate) fn counters(&self) -> DeviceCounters {
        self.state().counters
    }

    /// Handles that are open on a database, or all open files.
    pub(crate) fn handles(&self, path: Option<&[u8]>) -> usize {
        let state = self.state();
        match path {
            Some(path) => state.known.get(path).map_or(0, |known| known.handles),
            None => state.files,
        }
    }

    /// Nanoseconds since the VFS was registered.
    pub(crate) fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Does one request and records it.
    fn timed<T>(
        &self,
        operation: Operation,
        role: FileRole,
        offset: u64,
        length: u64,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if !self.observed {
            return work();
        }
        let at = self.now();
        let done = work();
        let latency = self.now().since(at);
        let mut state = self.state();
        state.ledger.spend(latency);
        let (offset, length) = (ByteSize(offset), ByteSize(length));
        state.ledger.record([IoRecord { at, operation, role, offset, length, latency }]);
        if done.is_ok() {
            count(&mut state.counters, operation, length);
        }
        done
    }

    /// Opens a file, a database with its layout.
    pub(crate) fn open(
        self: &Arc<Self>,
        name: Option<FileName>,
        role: FileRole,
        flags: c_int,
        options: VfsOptions,
        rights: Rights,
    ) -> Result<Opened, Failure> {
        match role {
            FileRole::Database => self.open_database(name, flags, options, rights),
            _ => self.open_other(name, role, flags),
        }
    }

    fn open_database(
        self: &Arc<Self>,
        name: Option<FileName>,
        flags: c_int,
        options: VfsOptions,
        rights: Rights,
    ) -> Result<Opened, Failure> {
        let path: Vec<u8> = name.as_ref().map_or_else(Vec::new, |name| name.bytes().to_vec());
        // A file that cannot be examined is opened, and fails there with SQLite's own reason.
        let found = self.look(&path, options).unwrap_or(None);
        if !self.observed && options.is_plain() && found.is_none_or(|found| !found.shifted) {
            self.remember(path, options, found, 0);
            return Ok(Opened::AsItIs);
        }
        let (parent, granted) = self.parent.open(name, flags)?;
        let options = self.remember(path.clone(), options, found, 1);
        let shown = String::from_utf8_lossy(&path).into_owned();
        let role = FileRole::Database;
        let mut store = self.store(parent, role, shown, Some(path));
        // SQLite's VFS opens a file for reading that may not be written.
        store.rights = Rights { writes: rights.writes && granted & sqlite::SQLITE_OPEN_READONLY == 0, ..rights };
        Ok(Opened::Ours(Box::new(Handle::database(store, options)?), granted))
    }

    fn open_other(self: &Arc<Self>, name: Option<FileName>, role: FileRole, flags: c_int) -> Result<Opened, Failure> {
        let companion = name.as_ref().map(|name| self.companion(name.bytes())).transpose()?.flatten();
        let log = companion.as_ref().map_or(LogLayout::Plain, |companion| companion.log);
        let syncs = name.as_ref().and_then(|name| self.log_syncs(role, name, log, flags));
        let gathers = role == FileRole::WriteAheadLog && name.as_ref().is_some_and(|name| self.gathers(name.bytes()));
        if !self.observed && companion.is_none() && !gathers && syncs.is_none() {
            return Ok(Opened::AsItIs);
        }
        let renamed = match (&name, &companion) {
            (Some(name), Some(companion)) => {
                let database = companion_of(name.bytes()).map_or(name.bytes(), |(_, database)| database);
                companion::examine(as_path(companion.name.bytes()), as_path(database))?;
                let (listed, stored) = (name.bytes().to_vec(), companion.name.bytes().to_vec());
                (role == FileRole::Journal).then_some(Renamed { listed, stored })
            }
            _ => None,
        };
        let name = companion.map_or(name, |companion| Some(FileName::owned(companion.name.bytes())));
        let shown = String::from_utf8_lossy(name.as_ref().map_or(b"temporary file", FileName::bytes)).into_owned();
        let stored = name.as_ref().map(|name| as_path(name.bytes()).to_owned());
        let (parent, granted) = self.parent.open(name, flags)?;
        let syncs = syncs.filter(|_| granted & sqlite::SQLITE_OPEN_READONLY == 0).zip(stored);
        let syncs = syncs.and_then(|(synced, stored)| LogSync::open(synced, &stored));
        let mut store = self.store(parent, role, shown, None);
        (store.renamed, store.syncs) = (renamed, syncs);
        let file = match role {
            FileRole::WriteAheadLog => open_log(store, log, gathers)?,
            _ => Box::new(Handle::plain(store)),
        };
        Ok(Opened::Ours(file, granted))
    }

    /// Whether a connection to the log's database wants its frames gathered.
    fn gathers(&self, log: &[u8]) -> bool {
        let database = log.strip_suffix(LOG_SUFFIX.as_bytes());
        let state = self.state();
        let known = database.and_then(|database| state.known.get(database));
        known.is_some_and(|known| known.handles > 0 && known.options.gathers_log())
    }

    /// How the log or journal of a database is synced; `None` if that is left to SQLite's VFS.
    fn log_syncs(&self, role: FileRole, name: &FileName, layout: LogLayout, flags: c_int) -> Option<Synced> {
        let (_, database) = companion_of(name.bytes())?;
        let syncs = {
            let state = self.state();
            state.known.get(database).map_or(self.options.log_syncs, |known| known.options.log_syncs)
        };
        match role {
            _ if syncs == LogSyncs::Parent => None,
            FileRole::WriteAheadLog => Some(Synced::Log(syncs, layout)),
            // A super-journal is synced once.
            _ => (flags & sqlite::SQLITE_OPEN_MAIN_JOURNAL != 0).then_some(Synced::Journal),
        }
    }

    /// An open file of ours, counted until it is dropped.
    fn store(
        self: &Arc<Self>,
        parent: ParentFile,
        role: FileRole,
        name: String,
        registered: Option<Vec<u8>>,
    ) -> DirectoryStore {
        self.state().files += 1;
        let (directory, direct, pause) = (Arc::clone(self), Direct::Unused, Pause::default());
        DirectoryStore {
            parent,
            directory,
            role,
            name,
            registered,
            rights: Rights::USUAL,
            renamed: None,
            syncs: None,
            direct,
            pieces: Pieces::default(),
            pause,
        }
    }

    /// Records the form of a database; returns the options that apply to it, which for a new database are those of the
    /// connections that have it open.
    fn remember(&self, path: Vec<u8>, options: VfsOptions, found: Option<Found>, handles: usize) -> VfsOptions {
        let mut state = self.state();
        if state.known.len() >= REMEMBERED {
            state.known.retain(|_, known| known.handles > 0);
        }
        let known = state.known.entry(path).or_default();
        let is_new = found.is_none();
        let options = match is_new && (known.handles > 0 || known.left_alone) {
            true => {
                let VfsOptions { layout, log, atomic_batch, .. } = known.options;
                VfsOptions { layout, log, atomic_batch, ..options }
            }
            false => options,
        };
        let left_alone = is_new && (known.left_alone || handles == 0);
        (known.handles, known.options) = (known.handles + handles, options);
        (known.left_alone, known.found) = (left_alone, found);
        drop(state);
        memo::changed();
        options
    }

    /// The stored name of a journal or WAL of a shifted database; `None` if the name is unchanged.
    pub(crate) fn companion(self: &Arc<Self>, name: &[u8]) -> Result<Option<Companion>, Failure> {
        if let Some(known) = self.known_companion(name) {
            return Ok(known);
        }
        let Some((kind, database)) = companion_of(name) else { return Ok(None) };
        let found = self.find(database)?;
        if !found.shifted {
            return Ok(None);
        }
        let name = Arc::new(FileName::owned(&[database, COMPANIONS[kind].1.as_bytes()].concat()));
        if let Some(known) = self.state().known.get_mut(database) {
            known.companions[kind] = Some(Arc::clone(&name));
        }
        Ok(Some(Companion { name, log: found.log }))
    }

    /// The same as far as it is known, valid until [`memo::changed`]; `None` if the file must be examined.
    pub(crate) fn known_companion(&self, name: &[u8]) -> Option<Option<Companion>> {
        let (kind, database) = companion_of(name)?;
        let state = self.state();
        let KnownDatabase { found: Some(found), companions, .. } = state.known.get(database)? else { return None };
        match &companions[kind] {
            _ if !found.shifted => Some(None),
            Some(name) => Some(Some(Companion { name: Arc::clone(name), log: found.log })),
            // The name is made once.
            None => None,
        }
    }

    /// The form of a database, now or after its first write.
    fn find(self: &Arc<Self>, database: &[u8]) -> Result<Found, Failure> {
        let options = match self.state().known.get(database) {
            Some(KnownDatabase { found: Some(found), .. }) => return Ok(*found),
            Some(known) => known.options,
            None => self.options,
        };
        let Some(found) = self.look(database, options)? else { return Ok(Found::wanted(&options)) };
        self.note(database, found);
        Ok(found)
    }

    fn note(&self, database: &[u8], found: Found) {
        if let Some(known) = self.state().known.get_mut(database) {
            known.found = Some(found);
        }
        memo::changed();
    }

    /// Reads a database's first bytes, through the parent VFS: closing a descriptor of our own would drop every POSIX
    /// lock that this process holds on the file. `None` if there is no file, or an empty one.
    fn look(self: &Arc<Self>, database: &[u8], options: VfsOptions) -> Result<Option<Found>, Failure> {
        let shown = String::from_utf8_lossy(database).into_owned();
        let there = self.parent.access(&FileName::owned(database), sqlite::SQLITE_ACCESS_EXISTS);
        if !there.map_err(|code| Failure::new(code, format!("{shown}: access")))? {
            return Ok(None);
        }
        let flags = sqlite::SQLITE_OPEN_READONLY | sqlite::SQLITE_OPEN_MAIN_DB;
        let (parent, _) = self.parent.open(Some(FileName::owned(database)), flags)?;
        let role = FileRole::Database;
        let store = self.store(parent, role, shown, None);
        match Handle::database(store, options) {
            Ok(handle) => Ok(handle.mapping().map(Found::of)),
            // A damaged header does not make a file plain; opening it reports why.
            Err(failure) if failure.code == sqlite::SQLITE_CORRUPT => {
                Ok(Some(Found { shifted: true, log: LogLayout::Plain }))
            }
            Err(failure) => Err(failure),
        }
    }
}

fn as_path(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

/// The kind of a companion, by SQLite's name, and its database.
fn companion_of(name: &[u8]) -> Option<(usize, &[u8])> {
    (0..).zip(COMPANIONS).find_map(|(kind, (theirs, _))| Some((kind, name.strip_suffix(theirs.as_bytes())?)))
}

/// A journal or a log under the name that it is stored by.
pub(crate) struct Companion {
    pub name: Arc<FileName>,
    log: LogLayout,
}

fn count(counters: &mut DeviceCounters, operation: Operation, length: ByteSize) {
    match operation {
        Operation::Read => {
            counters.host_reads += 1;
            counters.host_bytes_read += length;
        }
        Operation::Write => {
            counters.host_writes += 1;
            counters.host_bytes_written += length;
        }
        Operation::Flush => counters.flushes += 1,
        Operation::Trim => counters.trims += 1,
        Operation::WriteZeroes => {
            counters.zero_writes += 1;
            counters.bytes_zeroed += length;
        }
    }
}

/// One open file in a directory.
pub(crate) struct DirectoryStore {
    parent: ParentFile,
    directory: Arc<Directory>,
    role: FileRole,
    name: String,
    /// Full path of a database, for the count of its handles.
    registered: Option<Vec<u8>>,
    rights: Rights,
    /// Of a journal under a name of ours.
    renamed: Option<Renamed>,
    /// Of a log or journal that is not synced by SQLite's VFS alone.
    syncs: Option<LogSync>,
    direct: Direct,
    pieces: Pieces,
    pause: Pause,
}

/// A second handle to the database's file, for operations that SQLite's own VFS lacks: starting write-back, reading
/// ahead, and punching holes.
enum Direct {
    /// Not needed yet.
    Unused,
    Open(Box<RegisteredFile>),
    /// The kernel, the file system or the file's name does not allow it.
    Impossible,
}

/// How long reading ahead is suspended. If the page cache has everything, it would cost as much as reading.
#[derive(Default)]
struct Pause {
    length: usize,
    left: usize,
}

impl Pause {
    /// Pages of the first pause, and of the longest.
    const PAGES: [usize; 2] = [64, 1024];

    /// Whether that many pages may be read ahead.
    fn is_over(&mut self, pages: usize) -> bool {
        let is_over = self.left == 0;
        self.left = self.left.saturating_sub(pages);
        is_over
    }

    /// Each batch that was in the cache makes the next pause longer; one that was not ends them.
    fn note(&mut self, was_cached: bool) {
        let [first, longest] = Self::PAGES;
        self.length = if was_cached { (self.length * 2).clamp(first, longest) } else { 0 };
        self.left = self.length;
    }
}

impl DirectoryStore {
    /// The file once more, where it can be had.
    fn direct(&mut self) -> Option<&mut RegisteredFile> {
        if matches!(self.direct, Direct::Unused) {
            let path = self.registered.as_deref().map(|path| Path::new(OsStr::from_bytes(path)));
            let file = path.and_then(|path| RegisteredFile::open(path).ok());
            // The name may belong to another file by now.
            self.direct = match file.filter(|_| !self.parent.has_moved()) {
                Some(file) => Direct::Open(Box::new(file)),
                None => Direct::Impossible,
            };
        }
        match &mut self.direct {
            Direct::Open(file) => Some(file),
            Direct::Unused | Direct::Impossible => None,
        }
    }

    /// Starts write-back of pieces, each by itself.
    fn start_pieces(&mut self, pieces: &[Span]) {
        let pieces: Vec<_> = pieces.iter().map(|piece| (ByteSize(piece.start), ByteSize(piece.length))).collect();
        if !pieces.is_empty()
            && let Some(file) = self.direct()
        {
            // It makes nothing durable, so a failure loses nothing: the sync writes the rest.
            let _ = file.start_write_back_pieces(&pieces);
        }
    }

    /// Starts write-back of all that must reach the drive in pieces, and waits until the kernel has taken it, with what
    /// was started before: a sync would join the pieces that are still dirty.
    fn write_back_pieces(&mut self) {
        let pieces = self.pieces.take();
        self.start_pieces(&pieces);
        if let Direct::Open(file) = &mut self.direct {
            let _ = file.await_write_back_pieces();
        }
    }

    /// How much of a span the file has.
    fn there(&mut self, offset: u64, length: usize) -> Result<usize, Failure> {
        let there = self.size()?.saturating_sub(offset);
        Ok(length.min(usize::try_from(there).unwrap_or(usize::MAX)))
    }

    /// A journal that is about to name a super-journal is listed there under the name that it is stored by.
    fn list_in_super_journal(&mut self, offset: u64, data: &[u8]) -> Result<(), Failure> {
        let Some(renamed) = self.renamed.clone().filter(|_| data == super_journal::MAGIC) else { return Ok(()) };
        match super_journal::name_before(offset, |at, into| self.read(at, into))? {
            Some(name) => super_journal::list(&name, &renamed),
            None => Ok(()),
        }
    }

    /// A log that SQLite has written up to `end` gets the zeros that are due.
    fn extend_log(&mut self, end: u64) {
        self.with_extension(|extension, log| extension.after_write(end, log));
    }

    /// Works on a log that is extended.
    fn with_extension(&mut self, work: impl FnOnce(&mut LogExtension, &mut DirectoryLog<'_>)) {
        let Self { parent, directory, role, syncs, .. } = self;
        let Some((extension, file)) = syncs.as_mut().and_then(LogSync::extension) else { return };
        let mut write = |write: LogWrite<'_>| match write {
            LogWrite::Zeros { at, bytes } => {
                let written = directory.timed(Operation::Write, *role, at, bytes.len() as u64, || {
                    match parent.write(at, bytes) {
                        sqlite::SQLITE_OK => Ok(()),
                        code => Err(Failure::new(code, "no space for zeros")),
                    }
                });
                written.is_ok()
            }
            LogWrite::Truncate { size } => parent.truncate(size) == sqlite::SQLITE_OK,
        };
        work(extension, &mut DirectoryLog { file, write: &mut write });
    }

    /// Syncs the file, a log by its data alone where that can be done.
    fn sync_file(&mut self, flags: c_int) -> Result<(), Failure> {
        match self.syncs.as_mut().and_then(LogSync::sync) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => {
                Err(Failure::new(sqlite::SQLITE_IOERR_FSYNC, format!("{}: syncing failed: {error}", self.name)))
            }
            None => {
                let code = self.parent.sync(flags);
                self.result(code, "syncing")?;
                if let Some(syncs) = &mut self.syncs {
                    syncs.published();
                }
                Ok(())
            }
        }
    }

    fn result(&self, code: c_int, what: &str) -> Result<(), Failure> {
        match code {
            sqlite::SQLITE_OK => Ok(()),
            code => Err(Failure::new(code, format!("{}: {what} failed with SQLite result code {code}", self.name))),
        }
    }
}

impl Drop for DirectoryStore {
    fn drop(&mut self) {
        let mut state = self.directory.state();
        state.files = state.files.saturating_sub(1);
        let Some(path) = &self.registered else { return };
        if let Some(known) = state.known.get_mut(path) {
            known.handles = known.handles.saturating_sub(1);
            if known.handles == 0 {
                state.known.remove(path);
                memo::changed();
            }
        }
    }
}

impl Store for DirectoryStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&mut self) -> Result<u64, Failure> {
        let size = self.parent.size();
        size.map_err(|code| Failure::new(code, format!("{}: no file size (SQLite result code {code})", self.name)))
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
        if !self.directory.observed {
            return match self.parent.read(offset, into) {
                sqlite::SQLITE_OK => Ok(into.len()),
                sqlite::SQLITE_IOERR_SHORT_READ => self.there(offset, into.len()),
                code => self.result(code, "reading").map(|()| into.len()),
            };
        }
        let directory = Arc::clone(&self.directory);
        directory.timed(Operation::Read, self.role, offset, into.len() as u64, || {
            match self.parent.read(offset, into) {
                sqlite::SQLITE_IOERR_SHORT_READ => self.there(offset, into.len()),
                code => self.result(code, "reading").map(|()| into.len()),
            }
        })
    }

    fn decided(&mut self, mapping: Mapping) {
        if let Some(path) = &self.registered {
            self.directory.note(path, Found::of(mapping));
        }
    }

    /// SQLite itself deletes the journal and the log of an empty database, as leftovers of an earlier one, but here it
    /// uses our names for them. If they stayed, SQLite without this VFS would replay a hot journal over the new
    /// database. The exclusive lock is held: there is no other transaction.
    fn clear_leftovers(&mut self, is_empty: bool) -> Result<(), Failure> {
        let Some(database) = self.registered.as_deref() else { return Ok(()) };
        let parent = &self.directory.parent;
        for (theirs, _) in COMPANIONS {
            let path = [database, theirs.as_bytes()].concat();
            if !is_empty {
                let exists = parent.access(&FileName::owned(&path), sqlite::SQLITE_ACCESS_EXISTS);
                if exists.map_err(|code| Failure::new(code, format!("{}{theirs}: access", self.name)))? {
                    let why = format!(
                        "{}{theirs}: may contain the pages of this database, which are blank; open the database once \
                         without flashwise, or move that file away",
                        self.name
                    );
                    return Err(Failure::new(sqlite::SQLITE_CANTOPEN, why));
                }
                continue;
            }
            match parent.delete(&path, 1) {
                sqlite::SQLITE_OK | sqlite::SQLITE_IOERR_DELETE_NOENT => {}
                code => {
                    let why = format!("{}{theirs}: left by an earlier database, and cannot be deleted", self.name);
                    return Err(Failure::new(code, why));
                }
            }
        }
        Ok(())
    }

    fn reserve(&mut self, _end: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8], how: Cut) -> Result<(), Failure> {
        self.list_in_super_journal(offset, data)?;
        self.with_extension(|extension, log| extension.before_write(log));
        let directory = Arc::clone(&self.directory);
        directory.timed(Operation::Write, self.role, offset, data.len() as u64, || {
            writes(offset, data, how).try_for_each(|(at, bytes)| {
                let code = self.parent.write(at, bytes);
                self.result(code, "writing")
            })
        })?;
        self.pieces.note(offset, data.len() as u64, how);
        self.extend_log(offset + data.len() as u64);
        Ok(())
    }

    fn begin(&mut self, batch: Span) {
        let pieces = self.pieces.take_of(batch);
        if !pieces.is_empty() {
            return self.start_pieces(&pieces);
        }
        if let Some(file) = self.direct() {
            // It makes nothing durable, so a failure loses nothing: the sync writes the rest.
            let _ = file.start_write_back(ByteSize(batch.start), ByteSize(batch.length));
        }
    }

    fn ask_ahead(&mut self, spans: &[Span]) {
        if self.direct().is_none() {
            return;
        }
        self.directory.asked_ahead.fetch_add(spans.len() as u64, Ordering::Relaxed);
        if !self.pause.is_over(spans.len()) {
            return;
        }
        let spans: Vec<_> = spans.iter().map(|span| (ByteSize(span.start), ByteSize(span.length))).collect();
        let Some(file) = self.direct() else { return };
        // A hint: SQLite reads every page itself.
        let was_cached = file.start_read(&spans).is_ok() && file.reads_in_flight() == 0;
        self.pause.note(was_cached);
    }

    fn discard(&mut self, span: Span) -> Result<(), Failure> {
        let directory = Arc::clone(&self.directory);
        let (role, name) = (self.role, self.name.clone());
        let Some(file) = self.direct() else { return Ok(()) };
        directory.timed(Operation::Trim, role, span.start, span.length, || {
            let punched = file.punch(ByteSize(span.start), ByteSize(span.length));
            punched.map_err(|error| Failure::new(sqlite::SQLITE_IOERR_TRUNCATE, format!("{name}: {error}")))
        })
    }

    fn truncate(&mut self, size: u64) -> Result<(), Failure> {
        if let Some(syncs) = &mut self.syncs {
            syncs.truncated();
        }
        let code = self.parent.truncate(size);
        self.result(code, "truncating")
    }

    fn sync(&mut self, flags: c_int) -> Result<(), Failure> {
        let directory = Arc::clone(&self.directory);
        if let Direct::Open(file) = &mut self.direct {
            file.cancel_write_back();
        }
        directory.timed(Operation::Flush, self.role, 0, 0, || {
            self.write_back_pieces();
            self.sync_file(flags)
        })
    }

    fn rights(&self) -> Rights {
        self.rights
    }

    fn batch_place(&self) -> Option<Box<dyn BatchPlace>> {
        let path = self.registered.as_deref()?;
        Some(Box::new(BatchFile::new(as_path(path), self.rights.locks)))
    }
}

impl FileStore for DirectoryStore {
    fn lock(&mut self, level: c_int) -> Result<(), Failure> {
        let code = self.parent.lock(level);
        self.result(code, "locking")
    }

    fn unlock(&mut self, level: c_int) -> Result<(), Failure> {
        let code = self.parent.unlock(level);
        self.result(code, "unlocking")
    }

    fn is_reserved(&mut self) -> Result<bool, Failure> {
        let reserved = self.parent.is_reserved();
        reserved.map_err(|code| Failure::new(code, format!("{}: no lock state (result code {code})", self.name)))
    }

    fn sector_size(&mut self) -> c_int {
        self.parent.sector_size()
    }

    fn characteristics(&mut self) -> c_int {
        self.parent.characteristics()
    }

    fn parent(&mut self) -> Option<&mut ParentFile> {
        Some(&mut self.parent)
    }

    fn shared_memory(&mut self) -> Option<&mut dyn SharedMemory> {
        match self.parent.has_shared_memory() {
            true => Some(&mut self.parent),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_the_cache_has_all_and_end_when_it_has_not() {
        let mut pause = Pause::default();
        let mut asked = |cached: bool, batches: usize| {
            let mut asked = 0;
            for _ in 0..batches {
                if pause.is_over(16) {
                    pause.note(cached);
                    asked += 1;
                }
            }
            asked
        };
        assert_eq!(asked(false, 10), 10);
        assert_eq!(asked(true, 1 + 4 + 1 + 8 + 1 + 16), 3);
        assert_eq!(asked(true, 10_000) * 65 / 10_000, 1, "a batch of 16 in 1024 pages");
        assert!(asked(false, 165) >= 100, "after the last pause each batch");
    }
}
