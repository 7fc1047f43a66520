//! Files in an ordinary directory, through SQLite's own VFS.
//!
//! SQLite's default VFS ("unix") opens, locks, maps shared memory and syncs; this module records what passes, with
//! its wall-clock latency, and names the companions of shifted databases.
//!
//! **Companions.** A plain SQLite that opens a shifted database with a journal or a WAL beside it would write the
//! journal's pages to where they are in a *plain* file before it looks at the database's first bytes, and so destroy
//! it. Journal and WAL of a shifted database are therefore called `NAME-fwjournal` and `NAME-fwwal`, which plain SQLite
//! does not look for.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use flashwise_block::{ByteSize, DeviceCounters, Nanos, Operation};
use flashwise_trace::{FileRole, IoRecord};
use libsqlite3_sys as sqlite;

use crate::error::Failure;
use crate::ffi::{FileName, LONGEST, ParentFile, ParentVfs};
use crate::file::FileStore;
use crate::handle::{Cut, Handle, Mapping, Store};
use crate::layout::{Layout, cut};
use crate::ledger::Ledger;
use crate::shm::SharedMemory;

/// SQLite's suffixes and those of a shifted database.
pub(crate) const COMPANIONS: [(&str, &str); 2] = [("-journal", "-fwjournal"), ("-wal", "-fwwal")];

/// A database that this VFS has open.
#[derive(Debug, Default)]
struct OpenDatabase {
    handles: usize,
    /// `None` while the file is empty.
    shifted: Option<bool>,
}

#[derive(Debug)]
struct State {
    ledger: Ledger,
    counters: DeviceCounters,
    /// By full path.
    open: BTreeMap<Vec<u8>, OpenDatabase>,
    /// Open files of every kind.
    files: usize,
}

/// A directory as a place for databases.
pub(crate) struct Directory {
    pub parent: ParentVfs,
    layout: Layout,
    began: Instant,
    state: Mutex<State>,
}

impl Directory {
    pub(crate) fn new(parent: ParentVfs, layout: Layout, recording: bool) -> Self {
        let ledger = Ledger::new(recording);
        let state = State { ledger, counters: DeviceCounters::default(), open: BTreeMap::new(), files: 0 };
        Self { parent, layout, began: Instant::now(), state: Mutex::new(state) }
    }

    /// Every change under this lock is a single assignment or addition: what a panic leaves is sound.
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
            Some(path) => state.open.get(path).map_or(0, |open| open.handles),
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
    ) -> Result<(Handle<DirectoryStore>, c_int), Failure> {
        let is_database = flags & sqlite::SQLITE_OPEN_MAIN_DB != 0;
        let given: Vec<u8> = name.as_ref().map_or_else(Vec::new, |name| name.bytes().to_vec());
        let name = name.map(|name| match is_database {
            true => name,
            false => self.companion(name.bytes()).map_or(name, |other| FileName::owned(&other)),
        });
        let shown = String::from_utf8_lossy(name.as_ref().map_or(b"temporary file", FileName::bytes)).into_owned();
        let (parent, out_flags) = self.parent.open(name, flags)?;
        let registered = is_database.then(|| given.clone());
        let mut state = self.state();
        state.files += 1;
        if is_database {
            state.open.entry(given.clone()).or_default().handles += 1;
        }
        drop(state);
        let store = DirectoryStore { parent, directory: Arc::clone(self), role, name: shown, registered };
        if !is_database {
            return Ok((Handle::plain(store), out_flags));
        }
        let handle = Handle::database(store, self.layout)?;
        if let (Some(mapping), Some(open)) = (handle.mapping(), self.state().open.get_mut(&given)) {
            open.shifted = Some(mapping != Mapping::Plain);
        }
        Ok((handle, out_flags))
    }

    /// The name under which a journal or WAL of a shifted database is stored; `None` where the name stays.
    pub(crate) fn companion(self: &Arc<Self>, name: &[u8]) -> Option<Vec<u8>> {
        let (database, ours) = COMPANIONS
            .iter()
            .find_map(|(theirs, ours)| name.strip_suffix(theirs.as_bytes()).map(|database| (database, ours)))?;
        self.is_shifted(database).then(|| [database, ours.as_bytes()].concat())
    }

    /// Whether a database is shifted, or will be once it is written.
    fn is_shifted(self: &Arc<Self>, database: &[u8]) -> bool {
        if let Some(shifted) = self.state().open.get(database).and_then(|open| open.shifted) {
            return shifted;
        }
        let Some(mapping) = self.look(database) else { return self.layout != Layout::Plain };
        let shifted = mapping != Mapping::Plain;
        if let Some(open) = self.state().open.get_mut(database) {
            open.shifted = Some(shifted);
        }
        shifted
    }

    /// Looks at a database's first bytes, through the parent VFS: closing a descriptor of our own would drop every
    /// POSIX lock that this process holds on the file.
    fn look(self: &Arc<Self>, database: &[u8]) -> Option<Mapping> {
        let flags = sqlite::SQLITE_OPEN_READONLY | sqlite::SQLITE_OPEN_MAIN_DB;
        let (parent, _) = self.parent.open(Some(FileName::owned(database)), flags).ok()?;
        self.state().files += 1;
        let name = String::from_utf8_lossy(database).into_owned();
        let role = FileRole::Database;
        let store = DirectoryStore { parent, directory: Arc::clone(self), role, name, registered: None };
        // A damaged header is no plain file; opening it tells why.
        Handle::database(store, self.layout)
            .map_or(Some(Mapping::Shifted { chunk: 0, offset: 0 }), |handle| handle.mapping())
    }
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
}

impl DirectoryStore {
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
        if let Some(open) = state.open.get_mut(path) {
            open.handles -= 1;
            if open.handles == 0 {
                state.open.remove(path);
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
        let directory = Arc::clone(&self.directory);
        directory.timed(Operation::Read, self.role, offset, into.len() as u64, || {
            match self.parent.read(offset, into) {
                sqlite::SQLITE_IOERR_SHORT_READ => {
                    let there = self.size()?.saturating_sub(offset);
                    Ok(into.len().min(usize::try_from(there).unwrap_or(usize::MAX)))
                }
                code => self.result(code, "reading").map(|()| into.len()),
            }
        })
    }

    fn reserve(&mut self, _end: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8], how: Cut) -> Result<(), Failure> {
        let directory = Arc::clone(&self.directory);
        let mut write = |start: u64, bytes: &[u8]| {
            directory.timed(Operation::Write, self.role, start, bytes.len() as u64, || {
                let code = self.parent.write(start, bytes);
                self.result(code, "writing")
            })
        };
        match how {
            Cut::Whole => write(offset, data),
            Cut::Chunks(chunk) => {
                cut(offset, data.len() as u64, chunk, LONGEST as u64).into_iter().try_for_each(|span| {
                    let at = (span.start - offset) as usize;
                    write(span.start, &data[at..at + span.length as usize])
                })
            }
        }
    }

    fn truncate(&mut self, size: u64) -> Result<(), Failure> {
        let code = self.parent.truncate(size);
        self.result(code, "truncating")
    }

    fn sync(&mut self, flags: c_int) -> Result<(), Failure> {
        let directory = Arc::clone(&self.directory);
        directory.timed(Operation::Flush, self.role, 0, 0, || {
            let code = self.parent.sync(flags);
            self.result(code, "syncing")
        })
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
