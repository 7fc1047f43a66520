//! Files in a file system on a drive, under Linux's page cache, in virtual time: what a program sees whose database is
//! on a mounted drive.
//!
//! Each call of SQLite's becomes the calls that its own VFS for Unix makes (SQLite's `os_unix.c`): `pread` and `pwrite`
//! of a page, `fdatasync` for a sync, a sync of the directory behind the first sync of a journal or log that it
//! created, `fcntl` for locks, a file for the index of a log. The techniques make the calls that they make
//! in a directory: `sync_file_range` to start write-back, reads in the background to read ahead, `fallocate` to punch
//! holes.
//!
//! With [`crate::LogSyncs::Parent`] alone a VFS stands for SQLite's own: nothing of ours is between a program and its
//! files. Otherwise an application opens its databases through this VFS, which extends their logs ahead as it does on a
//! real ext4 or XFS (`log_extension.rs`), so that a commit takes as many flushes.
//!
//! **The processor.** The kernel's own work is in [`flashwise_kernel::ProcessorCosts`]. What the program itself
//! computes between two calls moves the drive's clock: so read-ahead and write-back go on beside it as they do on a
//! machine. Whoever runs the program says how much that is ([`crate::ProgramClock`]), or it is measured by the thread's
//! CPU clock ([`FileSystem::measures_program`]); then a run is not the same to the bit each time.
//!
//! What is not here: `mmap` of databases; memory that a log's index takes from the page cache.

use std::collections::BTreeMap;
use std::thread::ThreadId;

use flashwise_block::{BlockDevice, ByteSize, DeviceCounters, Nanos, Operation};
use flashwise_kernel::{
    Advice, Allocate, FileHandle, Kernel, KernelConfig, KernelError, OpenOptions, SyncRange, WriteFrom,
};
use flashwise_trace::{FileRole, IoRecord};
use libsqlite3_sys as sqlite;

use crate::SqliteError;
use crate::bytes::Span;
use crate::convert::border;
use crate::error::Failure;
use crate::ffi::thread_cpu_ns;
use crate::ledger::Ledger;
use crate::locks::HandleId;
use crate::medium::{Deletion, FileRef, Medium, OpenMode};
use crate::owners::Owners;
use crate::pieces::{Pieces, writes};
use crate::recorder::Recorder;
use crate::store::Cut;
use crate::volume::FileId;

/// A file system on a drive, and the kernel that has it mounted.
pub struct FileSystem {
    /// The drive. It must store every byte.
    pub device: Box<dyn BlockDevice + Send>,
    /// The file system, the memory of the page cache, and all else that can be set. Files have bytes, whatever
    /// [`KernelConfig::data`] says.
    pub kernel: KernelConfig,
    /// Whether the time that the program computes between its calls is measured, and passes on the drive's clock too.
    pub measures_program: bool,
}

/// Bytes of a page of the shared memory's file, of which SQLite writes one each.
const SHARED_PAGE: u64 = 4096;

/// Starts the names of files that are none of the user's: temporary ones and indexes of logs. No other file can have
/// such a name.
const OWN_PREFIX: &str = ".flashwise-";
/// The file of [`Medium::write_earlier_file`].
const EARLIER: &str = ".flashwise-earlier";

struct MountedFile {
    /// Its name in the file system.
    name: String,
    is_linked: bool,
    role: FileRole,
    /// Its changes of extents when `Owners` was last brought up to date with it.
    owned: Option<u64>,
    handles: BTreeMap<HandleId, FileHandle>,
    /// SQLite syncs the directory once it has synced a journal that it created.
    directory_sync_due: bool,
    /// The index of its log, and how long that file is.
    shared_memory: Option<(FileHandle, u64)>,
    pieces: Pieces,
}

/// Starts write-back of a span.
fn start_write_back(kernel: &mut Kernel<Recorder>, file: FileHandle, span: Span) -> flashwise_kernel::Result<()> {
    let how = SyncRange { write: true, ..SyncRange::default() };
    kernel.sync_file_range(file, ByteSize(span.start), ByteSize(span.length), how)
}

/// The processor's time that the program takes.
struct Program {
    /// Where the clock stood when the last call returned.
    left: Option<(ThreadId, u64)>,
    /// What it takes to read the clock, ns.
    clock_cost: u64,
}

impl Program {
    fn new() -> Self {
        /// The shortest of so many is taken.
        const TRIES: u32 = 64;
        let cost = |_| {
            let began = thread_cpu_ns();
            thread_cpu_ns().saturating_sub(began)
        };
        Self { left: None, clock_cost: (0..TRIES).map(cost).min().unwrap_or(0) }
    }

    /// Time since the last call returned, in the same thread. The VFS around a call reads the clock twice more.
    fn since_last_call(&self) -> Nanos {
        match self.left {
            Some((thread, then)) if thread == std::thread::current().id() => {
                Nanos(thread_cpu_ns().saturating_sub(then).saturating_sub(3 * self.clock_cost))
            }
            _ => Nanos(0),
        }
    }

    fn leave(&mut self) {
        self.left = Some((std::thread::current().id(), thread_cpu_ns()));
    }
}

/// The files of a file system.
pub(crate) struct MountedFiles {
    /// `None` once the drive was given back.
    kernel: Option<Kernel<Recorder>>,
    ledger: Ledger,
    files: BTreeMap<FileId, MountedFile>,
    names: BTreeMap<String, FileId>,
    owners: Owners,
    next_id: u64,
    program: Option<Program>,
}

impl MountedFiles {
    pub(crate) fn new(mounted: FileSystem, recording: bool) -> Result<Self, SqliteError> {
        let name = mounted.device.info().name.clone();
        let config = KernelConfig { data: true, ..mounted.kernel };
        let kernel = Kernel::new(Recorder::new(mounted.device), config);
        let kernel = kernel.map_err(|error| SqliteError::Drive { name, reason: error.to_string() })?;
        Ok(Self {
            kernel: Some(kernel),
            ledger: Ledger::new(recording),
            files: BTreeMap::new(),
            names: BTreeMap::new(),
            owners: Owners::default(),
            next_id: 0,
            program: mounted.measures_program.then(Program::new),
        })
    }

    /// Starts write-back of spans of a file, each by itself.
    fn start_spans(&mut self, file: FileRef<'_>, spans: &[Span]) {
        let Ok(handle) = self.handle(file) else { return };
        // It makes nothing durable, so a failure loses nothing: the sync writes the rest.
        let _ = self.call(Operation::Write, file.role, |kernel| {
            spans.iter().try_for_each(|&span| start_write_back(kernel, handle, span))
        });
    }

    /// Makes calls of the kernel, whose time is time that the caller waits for the drive.
    fn call<T>(
        &mut self,
        operation: Operation,
        role: FileRole,
        work: impl FnOnce(&mut Kernel<Recorder>) -> Result<T, KernelError>,
    ) -> Result<T, Failure> {
        let Some((outcome, took)) = self.enter(role, work) else {
            return Err(Failure::new(sqlite::SQLITE_IOERR, "the device was given back to its owner"));
        };
        self.ledger.spend(took);
        outcome.map_err(|error| failure(operation, &error))
    }

    /// Runs the kernel: what the program computed before comes first, what reached the drive is recorded, and the
    /// processor's time that the model itself takes is not the program's. Returns how long it took on the drive's
    /// clock, too; `None` once the drive was given back.
    fn enter<T>(&mut self, role: FileRole, work: impl FnOnce(&mut Kernel<Recorder>) -> T) -> Option<(T, Nanos)> {
        let kernel = self.kernel.as_mut()?;
        if let Some(program) = &self.program {
            kernel.compute(program.since_last_call());
        }
        kernel.device_mut().recording = self.ledger.recording;
        let began = kernel.now();
        let outcome = work(kernel);
        let took = kernel.now().since(began);
        let records = kernel.device_mut().take();
        self.note(records, role);
        if let Some(program) = &mut self.program {
            program.leave();
        }
        Some((outcome, took))
    }

    /// Records requests with the file that they belong to; those of no file are the file system's own.
    fn note(&mut self, mut records: Vec<IoRecord>, caller: FileRole) {
        let Some(kernel) = &self.kernel else { return };
        if records.is_empty() {
            return;
        }
        // Before files claim their blocks: one may have taken blocks that were trimmed in the same call.
        for record in &mut records {
            record.role = self.owners.role_at(record.offset.0).unwrap_or(FileRole::Unknown);
            if record.operation == Operation::Trim {
                self.owners.release(record.offset.0, record.offset.0 + record.length.0);
            }
        }
        for file in self.files.values_mut().filter(|file| file.is_linked) {
            let changes = kernel.extent_changes(&file.name);
            if changes == file.owned {
                continue;
            }
            let Ok(status) = kernel.status(&file.name) else { continue };
            for (_, at, length) in status.extents {
                self.owners.claim(at.0, at.0 + length.0, file.role);
            }
            file.owned = changes;
        }
        for record in &mut records {
            record.role = match record.operation {
                Operation::Flush => caller,
                Operation::Trim => record.role,
                _ => self.owners.role_at(record.offset.0).unwrap_or(record.role),
            };
        }
        self.ledger.record(records);
    }

    fn handle(&self, file: FileRef<'_>) -> Result<FileHandle, Failure> {
        let handle = self.files.get(&file.id).and_then(|found| found.handles.get(&file.handle).copied());
        handle.ok_or_else(|| Failure::new(sqlite::SQLITE_IOERR, format!("{}: not open", file.name)))
    }

    /// Forgets a file that nothing refers to.
    fn forget(&mut self, id: FileId) {
        if self.files.get(&id).is_some_and(|file| !file.is_linked && file.handles.is_empty()) {
            self.files.remove(&id);
        }
    }
}

fn failure(operation: Operation, error: &KernelError) -> Failure {
    let code = match error {
        KernelError::Io(error) => return Failure::block(operation, error),
        KernelError::NoSpace | KernelError::NoInodes => sqlite::SQLITE_FULL,
        KernelError::ReadOnly(_) => sqlite::SQLITE_READONLY,
        _ => Failure::code(operation),
    };
    Failure::new(code, format!("file system: {error}"))
}

impl Medium for MountedFiles {
    fn now(&mut self) -> Nanos {
        let Some(kernel) = &mut self.kernel else { return Nanos(0) };
        if let Some(program) = &mut self.program {
            kernel.compute(program.since_last_call());
            program.leave();
        }
        kernel.now()
    }

    fn counters(&self) -> DeviceCounters {
        self.kernel.as_ref().map_or_else(DeviceCounters::default, Kernel::device_counters)
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    fn take_device(&mut self) -> Option<Box<dyn BlockDevice + Send>> {
        self.kernel.take().map(|kernel| kernel.into_device().into_device())
    }

    fn sector_size(&self) -> u64 {
        // `unixSectorSize`: SQLITE_DEFAULT_SECTOR_SIZE
        4096
    }

    fn find(&self, name: &str) -> Option<FileId> {
        self.names.get(name).copied()
    }

    fn size(&mut self, id: FileId) -> u64 {
        let (Some(kernel), Some(file)) = (&self.kernel, self.files.get(&id)) else { return 0 };
        let size = match file.handles.values().next() {
            Some(&handle) => kernel.size(handle).ok(),
            None => kernel.size_of(&file.name),
        };
        size.map_or(0, |size| size.0)
    }

    fn open(&mut self, name: Option<&str>, mode: OpenMode, handle: HandleId) -> Result<FileId, Failure> {
        let shown = name.unwrap_or("temporary file");
        let refuse = |why: &str| Err(Failure::new(sqlite::SQLITE_CANTOPEN, format!("{shown}: {why}")));
        let found = name.and_then(|name| self.find(name));
        match found {
            _ if name.is_some_and(|name| name.starts_with(OWN_PREFIX)) => {
                return refuse("names that start with .flashwise- are reserved; use another one");
            }
            Some(_) if mode.exclusive => return refuse("exists already in the file system"),
            None if !mode.create => return refuse("no such file in the file system"),
            _ => {}
        }
        let path = match name {
            Some(name) => name.to_owned(),
            None => format!("{OWN_PREFIX}temporary-{}", self.next_id),
        };
        let options = OpenOptions::read_write().create(true);
        let opened = self.call(Operation::Write, mode.role, |kernel| {
            let opened = kernel.open(&path, options)?;
            if name.is_none() {
                kernel.unlink(&path)?;
            }
            Ok(opened)
        });
        let opened =
            opened.map_err(|why| Failure::new(sqlite::SQLITE_CANTOPEN, format!("{shown}: {}", why.message)))?;
        let id = found.unwrap_or(FileId(self.next_id));
        if found.is_none() {
            self.next_id += 1;
            self.names.extend(name.map(|name| (name.to_owned(), id)));
        }
        let file = self.files.entry(id).or_insert_with(|| MountedFile {
            name: path,
            is_linked: name.is_some(),
            role: mode.role,
            owned: None,
            handles: BTreeMap::new(),
            directory_sync_due: matches!(mode.role, FileRole::Journal | FileRole::WriteAheadLog),
            shared_memory: None,
            pieces: Pieces::default(),
        });
        if file.role != mode.role {
            (file.role, file.owned) = (mode.role, None);
        }
        file.handles.insert(handle, opened);
        Ok(id)
    }

    fn close(&mut self, file: FileRef<'_>, is_last: bool) {
        if is_last {
            self.share_memory(file, 0);
        }
        let handle = self.files.get_mut(&file.id).and_then(|found| found.handles.remove(&file.handle));
        if let Some(handle) = handle {
            // SQLite does not hear of a failure; what was to be durable was synced.
            let _ = self.call(Operation::Write, file.role, |kernel| kernel.close(handle));
        }
        self.forget(file.id);
    }

    fn delete(&mut self, name: &str, how: Deletion) -> Result<(), Failure> {
        let Some(id) = self.find(name) else {
            let why = format!("{name}: no such file in the file system");
            return Err(Failure::new(sqlite::SQLITE_IOERR_DELETE_NOENT, why));
        };
        let mut deleted = self.call(Operation::Write, how.role, |kernel| kernel.unlink(name));
        // A failed unlink leaves the name, or has taken it and failed later.
        if self.kernel.as_ref().is_some_and(|kernel| kernel.size_of(name).is_none()) {
            self.names.remove(name);
            if let Some(file) = self.files.get_mut(&id) {
                file.is_linked = false;
            }
            self.forget(id);
        }
        if deleted.is_ok() && how.is_durable {
            deleted = self.call(Operation::Write, how.role, Kernel::sync_directory);
        }
        deleted.map_err(|why| Failure::new(sqlite::SQLITE_IOERR_DELETE, format!("{name}: {}", why.message)))
    }

    fn read(&mut self, file: FileRef<'_>, offset: u64, into: &mut [u8]) -> Result<(), Failure> {
        let handle = self.handle(file)?;
        let wanted = into.len() as u64;
        let read = self.call(Operation::Read, file.role, |kernel| kernel.pread(handle, ByteSize(offset), into))?;
        match read == wanted {
            true => Ok(()),
            false => Err(Failure::new(sqlite::SQLITE_IOERR_READ, format!("{}: it became shorter", file.name))),
        }
    }

    fn read_together(&mut self, file: FileRef<'_>, spans: &[Span]) -> Result<Vec<Vec<u8>>, Failure> {
        let read = |span: &Span| {
            let mut bytes = vec![0; span.length as usize];
            self.read(file, span.start, &mut bytes).map(|()| bytes)
        };
        spans.iter().map(read).collect()
    }

    fn prefetch(&mut self, file: FileRef<'_>, spans: &[Span]) -> bool {
        let Ok(handle) = self.handle(file) else { return true };
        // A hint: SQLite reads every page itself.
        let _ = self.call(Operation::Read, file.role, |kernel| {
            spans.iter().try_for_each(|span| {
                kernel.fadvise(handle, ByteSize(span.start), ByteSize(span.length), Advice::WillNeed)
            })
        });
        true
    }

    fn reserve(&mut self, _file: FileRef<'_>, _end: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn write(&mut self, file: FileRef<'_>, offset: u64, data: &[u8], how: Cut) -> Result<(), Failure> {
        if data.is_empty() {
            return Ok(());
        }
        let handle = self.handle(file)?;
        self.call(Operation::Write, file.role, |kernel| {
            writes(offset, data, how).try_for_each(|(at, bytes)| kernel.pwrite(handle, ByteSize(at), bytes).map(drop))
        })?;
        if let Some(found) = self.files.get_mut(&file.id) {
            found.pieces.note(offset, data.len() as u64, how);
        }
        Ok(())
    }

    fn write_all(&mut self, file: FileRef<'_>, runs: &[(u64, Vec<u8>)], how: Cut) -> Result<(), Failure> {
        runs.iter().try_for_each(|(start, bytes)| self.write(file, *start, bytes, how))
    }

    fn start_write_back(&mut self, file: FileRef<'_>, batch: Span) {
        let Some(found) = self.files.get_mut(&file.id) else { return };
        let pieces = found.pieces.take_of(batch);
        self.start_spans(file, if pieces.is_empty() { std::slice::from_ref(&batch) } else { &pieces });
    }

    fn discard(&mut self, file: FileRef<'_>, span: Span) -> Result<(), Failure> {
        let handle = self.handle(file)?;
        self.call(Operation::Trim, file.role, |kernel| {
            kernel.fallocate(handle, ByteSize(span.start), ByteSize(span.length), Allocate::PunchHole)
        })
    }

    fn truncate(&mut self, file: FileRef<'_>, size: u64) -> Result<(), Failure> {
        let handle = self.handle(file)?;
        self.call(Operation::Write, file.role, |kernel| kernel.ftruncate(handle, ByteSize(size)))
    }

    fn sync(&mut self, file: FileRef<'_>) -> Result<(), Failure> {
        let handle = self.handle(file)?;
        let Some(found) = self.files.get_mut(&file.id) else { return Ok(()) };
        let (pieces, syncs_directory) = (found.pieces.take(), found.directory_sync_due);
        if !pieces.is_empty() {
            self.start_spans(file, &pieces);
        }
        self.call(Operation::Flush, file.role, |kernel| {
            kernel.fdatasync(handle)?;
            if syncs_directory { kernel.sync_directory() } else { Ok(()) }
        })?;
        // After a failure it is still due.
        if let Some(found) = self.files.get_mut(&file.id) {
            found.directory_sync_due = false;
        }
        Ok(())
    }

    fn place(&mut self, file: FileRef<'_>, length: u64, chunk: u64) -> Option<u64> {
        let handle = self.handle(file).ok()?;
        let space = ByteSize(length.saturating_add(2 * chunk));
        // Space that is allocated at once has few extents. With too little space, writing fails later.
        let allocated = self
            .call(Operation::Write, file.role, |kernel| kernel.fallocate(handle, ByteSize(0), space, Allocate::Grow));
        allocated.ok()?;
        let name = &self.files.get(&file.id)?.name;
        let kernel = self.kernel.as_ref()?;
        let map = kernel.status(name).ok()?.map(&kernel.device().info().name).ok()?;
        Some(border(&map, chunk))
    }

    fn free_space(&self) -> Option<u64> {
        self.kernel.as_ref().map(|kernel| kernel.free_space().0)
    }

    fn share_memory(&mut self, file: FileRef<'_>, bytes: u64) {
        let Some(found) = self.files.get(&file.id) else { return };
        let (name, now) = (format!("{OWN_PREFIX}shm-{}", file.id.0), found.shared_memory);
        let role = FileRole::Temporary;
        // A model of what it costs; the memory itself is not in this file.
        let changed = match (now, bytes) {
            (None, 0) => Ok(None),
            (Some((handle, _)), 0) => self.call(Operation::Write, role, |kernel| {
                kernel.close(handle)?;
                kernel.unlink(&name).map(|()| None)
            }),
            (now, bytes) => self.call(Operation::Write, role, |kernel| {
                let (handle, from) = match now {
                    Some(now) => now,
                    None => (kernel.open(&name, OpenOptions::read_write().create(true))?, 0),
                };
                for page in from / SHARED_PAGE..bytes / SHARED_PAGE {
                    kernel.pwrite(handle, ByteSize((page + 1) * SHARED_PAGE - 1), ByteSize(1))?;
                }
                Ok(Some((handle, bytes)))
            }),
        };
        if let (Ok(changed), Some(found)) = (changed, self.files.get_mut(&file.id)) {
            found.shared_memory = changed;
        }
    }

    fn compute(&mut self, time: Nanos) {
        if let Some(kernel) = &mut self.kernel {
            kernel.compute(time);
        }
    }

    fn pause(&mut self, time: Nanos) -> Result<(), Failure> {
        match self.enter(FileRole::Unknown, |kernel| kernel.pause(time)) {
            Some((outcome, _)) => outcome.map_err(|error| failure(Operation::Flush, &error)),
            None => Ok(()),
        }
    }

    fn spend_calls(&mut self, calls: u32) {
        let Some(kernel) = &mut self.kernel else { return };
        let each = kernel.config().costs.system_call;
        kernel.compute(Nanos(each.0.saturating_mul(calls.into())));
    }

    #[cfg(test)]
    fn power_cut(&mut self) {
        let kernel = self.kernel.take().map(|kernel| kernel.power_cut().unwrap());
        (self.files, self.names) = (BTreeMap::new(), BTreeMap::new());
        self.owners = Owners::default();
        for name in kernel.iter().flat_map(Kernel::list).filter(|name| !name.starts_with(OWN_PREFIX)) {
            let id = FileId(self.next_id);
            self.next_id += 1;
            self.names.insert(name.to_owned(), id);
            let found = MountedFile {
                name: name.to_owned(),
                is_linked: true,
                role: FileRole::Unknown,
                owned: None,
                handles: BTreeMap::new(),
                directory_sync_due: false,
                shared_memory: None,
                pieces: Pieces::default(),
            };
            self.files.insert(id, found);
        }
        self.kernel = kernel;
    }

    fn drop_caches(&mut self) -> Result<(), Failure> {
        self.call(Operation::Flush, FileRole::Unknown, |kernel| {
            kernel.sync()?;
            kernel.drop_caches()
        })
    }

    fn write_earlier_file(&mut self) -> Result<(), Failure> {
        /// Larger than that it changes little: reads of 32 KiB are 14 % slower behind 23 MB, 15 % behind 225 MB.
        const BYTES: u64 = 16 << 20;
        /// Share of the drive that it may take.
        const SHARE: u64 = 64;
        const WRITE: u64 = 1 << 20;
        self.call(Operation::Write, FileRole::Unknown, |kernel| {
            let bytes = BYTES.min(kernel.device().info().capacity.0 / SHARE).next_multiple_of(WRITE);
            let file = kernel.open(EARLIER, OpenOptions::read_write().create(true))?;
            for offset in (0..bytes).step_by(WRITE as usize) {
                kernel.pwrite(file, ByteSize(offset), WriteFrom::Nothing(ByteSize(WRITE)))?;
            }
            kernel.close(file)?;
            kernel.sync()?;
            kernel.drop_caches()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::support::{SharedControl, TestDrive};

    const NAME: &str = "a.db-journal";
    const MODE: OpenMode = OpenMode { role: FileRole::Journal, create: true, exclusive: false };

    fn mounted() -> (MountedFiles, SharedControl) {
        let (device, control) = TestDrive::new(32, 512);
        let mounted = FileSystem { device, kernel: KernelConfig::default(), measures_program: false };
        (MountedFiles::new(mounted, false).unwrap(), control)
    }

    fn file(id: FileId, handle: u64) -> FileRef<'static> {
        FileRef { id, handle: HandleId(handle), role: FileRole::Journal, name: NAME }
    }

    #[test]
    fn a_file_that_could_not_be_deleted_is_still_there_with_its_bytes() {
        let (mut files, control) = mounted();
        let id = files.open(Some(NAME), MODE, HandleId(1)).unwrap();
        files.write(file(id, 1), 0, &[7; 5000], Cut::Whole).unwrap();
        files.sync(file(id, 1)).unwrap();
        files.close(file(id, 1), true);
        // The file system's own journal fails: nothing can be changed from now on.
        (control.lock().unwrap().fail_at, control.lock().unwrap().fail_forever) = (1, true);
        let other = files.open(Some("b"), MODE, HandleId(2)).unwrap();
        files.sync(file(other, 2)).unwrap_err();
        control.lock().unwrap().heal();
        for is_durable in [true, false] {
            let how = Deletion { role: FileRole::Journal, is_open: false, is_durable };
            assert_eq!(files.delete(NAME, how).unwrap_err().code, sqlite::SQLITE_IOERR_DELETE);
            assert_eq!((files.find(NAME), files.size(id)), (Some(id), 5000));
        }
        let again = files.open(Some(NAME), OpenMode { create: false, ..MODE }, HandleId(3)).unwrap();
        let mut bytes = [0; 5000];
        files.read(file(again, 3), 0, &mut bytes).unwrap();
        assert!(again == id && bytes == [7; 5000]);
    }

    #[test]
    fn a_pause_is_recorded_and_the_model_s_own_time_is_not_the_programs() {
        let (device, _) = TestDrive::new(32, 512);
        let mounted = FileSystem { device, kernel: KernelConfig::default(), measures_program: true };
        let mut files = MountedFiles::new(mounted, true).unwrap();
        let id = files.open(Some(NAME), MODE, HandleId(1)).unwrap();
        files.write(file(id, 1), 0, &vec![7; 1 << 20], Cut::Whole).unwrap();
        files.ledger().take();
        let (began, waited) = (thread_cpu_ns(), files.ledger.io_time());
        // The flusher writes what is older than 30 s.
        files.pause(Nanos(60_000_000_000)).unwrap();
        let written = files.ledger().take().records;
        assert!(written.iter().any(|record| record.role == FileRole::Journal), "{written:?}");
        assert_eq!(files.ledger.io_time(), waited, "nobody waits");
        let (_, left) = files.program.as_ref().and_then(|program| program.left).unwrap();
        assert!(left > began, "the program's time starts behind the pause");
    }

    #[test]
    fn a_directory_sync_stays_due_until_one_has_succeeded() {
        for (fails, is_due) in [(true, true), (false, false)] {
            let (mut files, control) = mounted();
            let id = files.open(Some(NAME), MODE, HandleId(1)).unwrap();
            files.write(file(id, 1), 0, &[7; 5000], Cut::Whole).unwrap();
            control.lock().unwrap().fail_at = u64::from(fails);
            assert_eq!(files.sync(file(id, 1)).is_err(), fails);
            assert_eq!(files.files[&id].directory_sync_due, is_due);
        }
    }

    #[test]
    fn blocks_that_another_file_takes_in_the_call_that_trims_them_are_the_other_files() {
        let (mut files, _) = mounted();
        let id = files.open(Some("b.db"), OpenMode { role: FileRole::Database, ..MODE }, HandleId(1)).unwrap();
        files.write(file(id, 1), 0, &[7; 8192], Cut::Whole).unwrap();
        files.sync(file(id, 1)).unwrap();
        let (_, at, length) = files.kernel.as_ref().unwrap().status("b.db").unwrap().extents[0];
        // As if the blocks had been a journal's until now.
        files.owners.claim(at.0, at.0 + length.0, FileRole::Journal);
        files.files.get_mut(&id).unwrap().owned = None;
        files.ledger.recording = true;
        let record = |operation| IoRecord {
            at: Nanos(0),
            operation,
            role: FileRole::Unknown,
            offset: at,
            length,
            latency: Nanos(1),
        };
        files.note([Operation::Trim, Operation::Write].map(record).to_vec(), FileRole::Database);
        files.note(vec![record(Operation::Write)], FileRole::Database);
        let roles: Vec<FileRole> = files.ledger.take().records.iter().map(|record| record.role).collect();
        assert_eq!(roles, [FileRole::Journal, FileRole::Database, FileRole::Database]);
    }

    #[test]
    fn a_file_is_as_long_as_what_was_written_to_it() {
        let (mut files, _) = mounted();
        let id = files.open(Some(NAME), MODE, HandleId(1)).unwrap();
        assert_eq!(files.place(file(id, 1), 1 << 30, 65536), None, "there is no such space");
        assert_eq!(files.size(id), 0);
        files.write(file(id, 1), 0, &vec![7; 40 << 20], Cut::Whole).unwrap_err();
        let size = files.size(id);
        assert!(size > 1 << 20, "{size}");
        let mut bytes = vec![0; size as usize];
        files.read(file(id, 1), 0, &mut bytes).unwrap();
        assert!(bytes.iter().all(|&byte| byte == 7));
        files.truncate(file(id, 1), 3).unwrap();
        assert_eq!(files.size(id), 3);
        files.close(file(id, 1), true);
        assert_eq!(files.size(id), 3, "without a handle");
    }
}
