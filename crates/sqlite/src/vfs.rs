//! The VFS itself: the place of its files, its recording, and its registration.

use std::ffi::{CStr, CString, c_int};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashwise_block::output::Access;
use flashwise_block::{BlockDevice, DeviceCounters, Nanos};
use flashwise_trace::{FileRole, IoTrace};
use libsqlite3_sys as sqlite;

use crate::SqliteError;
use crate::bare::BareFiles;
use crate::batch;
use crate::convert::{self, ExportSummary, ImportSummary, PlainFile};
use crate::directory::Directory;
use crate::disk::Disk;
use crate::drive::{DatabaseLog, Drive, DriveStore, SharedDrive, lock, role_of_name};
use crate::error::Failure;
use crate::ffi::{Api, FileName, ParentVfs, Registration};
use crate::file::SqliteFile;
use crate::handle::Handle;
use crate::layout::Layout;
use crate::ledger::Ledger;
use crate::log::open_log;
use crate::medium::{Medium, OpenMode};
use crate::mounted::{FileSystem, MountedFiles};
use crate::options::VfsOptions;
use crate::store::Rights;
use crate::write_transactions::Databases;

/// Where the files of a VFS are kept.
pub enum Backend {
    /// On a drive of their own, in its time. The drive must store every byte.
    Drive(Box<dyn BlockDevice + Send>),
    /// In a file system on a drive, under Linux's page cache, in the drive's time.
    FileSystem(Box<FileSystem>),
    /// In ordinary directories, through SQLite's own VFS, in wall-clock time. Database names are ordinary paths.
    Directory,
}

/// Looks a parameter of a URI up by its name.
pub(crate) type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A file that was opened.
pub(crate) enum Opened {
    /// By us, with the flags that were granted.
    Ours(Box<dyn SqliteFile>, c_int),
    /// It needs nothing of us: SQLite's own VFS is to open it under the name that SQLite gave.
    AsItIs,
}

enum Place {
    Drive(SharedDrive),
    Directory(Arc<Directory>),
}

impl Place {
    fn on_drive(medium: Box<dyn Medium>) -> Self {
        Self::Drive(Arc::new(Mutex::new(Drive::new(medium))))
    }
}

/// Data shared by the VFS and its open files.
pub(crate) struct Shared {
    name: CString,
    api: Api,
    options: VfsOptions,
    /// Whether requests are counted and timed; off in a VFS that is to be fast.
    observed: bool,
    place: Place,
    /// Whose write transactions are noted.
    databases: Databases,
    cpu_ns: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Shared {
    pub(crate) fn name(&self) -> &CStr {
        &self.name
    }

    pub(crate) fn api(&self) -> &Api {
        &self.api
    }

    pub(crate) fn is_observed(&self) -> bool {
        self.observed
    }

    pub(crate) fn add_cpu_ns(&self, ns: u64) {
        self.cpu_ns.fetch_add(ns, Ordering::Relaxed);
    }

    pub(crate) fn set_last_error(&self, message: &str) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(message.to_owned());
    }

    /// Whether names are paths of a file system.
    pub(crate) fn has_paths(&self) -> bool {
        matches!(self.place, Place::Directory(_))
    }

    /// Opens a file for SQLite. `named` looks up parameters in the URI of a database.
    pub(crate) fn open(
        &self,
        name: Option<FileName>,
        flags: c_int,
        named: Option<&Lookup<'_>>,
    ) -> Result<Opened, Failure> {
        let role = role_of_flags(flags);
        let known = name.as_ref().filter(|_| matches!(role, FileRole::Database | FileRole::WriteAheadLog));
        let known = known.map(|name| name.bytes().to_vec());
        let mut opened = self.open_file(name, role, flags, named)?;
        match (role, known, &mut opened) {
            (FileRole::Database, Some(name), Opened::Ours(file, _)) => {
                file.note_transactions(self.databases.opened(&name));
            }
            (FileRole::Database, Some(name), Opened::AsItIs) => self.databases.opened_by_parent(&name),
            (FileRole::WriteAheadLog, Some(name), Opened::Ours(file, _)) => {
                if let Some(transactions) = self.databases.of_log(&name) {
                    file.note_transactions(transactions);
                }
            }
            _ => {}
        }
        Ok(opened)
    }

    fn open_file(
        &self,
        name: Option<FileName>,
        role: FileRole,
        flags: c_int,
        named: Option<&Lookup<'_>>,
    ) -> Result<Opened, Failure> {
        let options = self.options_of(named)?;
        let rights = rights_of(flags, named);
        match &self.place {
            Place::Directory(directory) => directory.open(name, role, flags, options, rights),
            Place::Drive(drive) => {
                let name = name.as_ref().map(|name| utf8(name.bytes())).transpose()?;
                let create = name.is_none() || flags & sqlite::SQLITE_OPEN_CREATE != 0;
                let mode = OpenMode { role, create, exclusive: flags & sqlite::SQLITE_OPEN_EXCLUSIVE != 0 };
                let mut store = DriveStore::open(drive, name, mode)?;
                store.set_rights(rights);
                if flags & sqlite::SQLITE_OPEN_DELETEONCLOSE != 0
                    && let Some(name) = name
                {
                    // As on Unix: the name goes now, the space when the file is closed.
                    lock(drive)?.delete(name, false)?;
                }
                let file: Box<dyn SqliteFile> = match (role, name.map(|name| log_of(drive, name))) {
                    (FileRole::Database, _) => {
                        let handle = Handle::database(store, options)?;
                        let log = DatabaseLog { layout: handle.log(), extends: options.extends_logs() };
                        lock(drive)?.note_log(name, log);
                        Box::new(handle)
                    }
                    (FileRole::WriteAheadLog, Some(log)) => {
                        if log.extends {
                            store.extend_ahead(log.layout)?;
                        }
                        open_log(store, log.layout, self.options.gathers_log())?
                    }
                    _ => Box::new(Handle::plain(store)),
                };
                Ok(Opened::Ours(file, flags))
            }
        }
    }

    /// The options of a URI, or else those of the registration.
    fn options_of(&self, named: Option<&Lookup<'_>>) -> Result<VfsOptions, Failure> {
        if let Some(parent) = named.and_then(|named| named("parent"))
            && parent != self.options.parent.name()
        {
            let why =
                format!("parent={parent}: a database cannot set it; set it in FLASHWISE_SQLITE, for all databases");
            return Err(Failure::new(sqlite::SQLITE_CANTOPEN, why));
        }
        let Some(named) = named.filter(|named| VfsOptions::is_named_by(named)) else { return Ok(self.options) };
        let options = VfsOptions::from_parameters(named);
        let options = options.map_err(|error| Failure::new(sqlite::SQLITE_CANTOPEN, error.to_string()))?;
        Ok(VfsOptions { record: self.options.record, parent: self.options.parent, ..options })
    }

    /// Deletes a file for SQLite.
    pub(crate) fn delete(&self, name: &[u8], sync_directory: c_int) -> Result<c_int, Failure> {
        match &self.place {
            Place::Directory(directory) => {
                let other = directory.companion(name)?;
                Ok(directory.parent.delete(other.as_ref().map_or(name, |other| other.name.bytes()), sync_directory))
            }
            Place::Drive(drive) => {
                let mut drive = lock(drive)?;
                let name = utf8(name)?;
                if !drive.exists(name) {
                    // SQLite checks for files that may not exist; that is not a failure to report.
                    return Ok(sqlite::SQLITE_IOERR_DELETE_NOENT);
                }
                drive.delete(name, sync_directory != 0).map(|()| sqlite::SQLITE_OK)
            }
        }
    }

    /// Whether a file exists, or the name to pass to SQLite's own VFS.
    pub(crate) fn look(&self, name: &[u8]) -> Result<Look, Failure> {
        let directory = match &self.place {
            Place::Directory(directory) => directory,
            Place::Drive(drive) => return Ok(Look::Answered(lock(drive)?.exists(utf8(name)?))),
        };
        let known = directory.known_companion(name);
        let holds = known.is_some() && !self.observed;
        let companion = known.map_or_else(|| directory.companion(name), Ok)?;
        Ok(Look::Ask { stored: companion.map(|companion| companion.name), holds })
    }
}

/// What to do when SQLite checks for a file.
pub(crate) enum Look {
    Answered(bool),
    /// Call SQLite's own VFS, with the `stored` name if there is one; `holds` if that may be kept.
    Ask {
        stored: Option<Arc<FileName>>,
        holds: bool,
    },
}

/// Companions of a database on a drive: all names are SQLite's there, except that of a batch log.
fn companions_on_drive(name: &str) -> impl Iterator<Item = String> {
    ["-journal", "-wal", batch::SUFFIX].into_iter().map(move |suffix| format!("{name}{suffix}"))
}

/// How the log of that name is written, from its database.
fn log_of(drive: &SharedDrive, name: &str) -> DatabaseLog {
    let Some(database) = name.strip_suffix("-wal") else { return DatabaseLog::default() };
    lock(drive).map_or_else(|_| DatabaseLog::default(), |drive| drive.log_of(database))
}

fn utf8(name: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(name)
        .map_err(|_| Failure::new(sqlite::SQLITE_CANTOPEN, "file names on a drive must be valid UTF-8"))
}

/// The rights and options of a connection, from the flags and parameters of its opening.
fn rights_of(flags: c_int, named: Option<&Lookup<'_>>) -> Rights {
    let is_on = |key: &str| named.and_then(|named| named(key)).is_some_and(|value| is_true(&value));
    let is_immutable = is_on("immutable");
    let writes = flags & sqlite::SQLITE_OPEN_READONLY == 0 && !is_immutable;
    Rights { locks: !is_immutable && !is_on("nolock"), writes }
}

/// SQLite's rule for true in a URI: `sqlite3_uri_boolean` without a default.
fn is_true(value: &str) -> bool {
    let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
    match digits.is_empty() {
        // It keeps the last byte of a number.
        false => digits.parse::<u32>().is_ok_and(|number| number & 0xff != 0),
        true => ["on", "yes", "true"].iter().any(|word| word.eq_ignore_ascii_case(value)),
    }
}

/// The kind of a file, from SQLite's flags.
fn role_of_flags(flags: c_int) -> FileRole {
    let is = |flag: c_int| flags & flag != 0;
    match () {
        () if is(sqlite::SQLITE_OPEN_MAIN_DB) => FileRole::Database,
        () if is(sqlite::SQLITE_OPEN_MAIN_JOURNAL | sqlite::SQLITE_OPEN_SUPER_JOURNAL) => FileRole::Journal,
        () if is(sqlite::SQLITE_OPEN_WAL) => FileRole::WriteAheadLog,
        () => FileRole::Temporary,
    }
}

/// A SQLite VFS, registered under its name until it is dropped.
///
/// Close every connection that uses it before dropping it: files that are open stay usable, but no further file (a
/// journal, say) can be opened through it.
pub struct Vfs {
    // Declared first: unregistered before anything else goes.
    registration: Registration,
    shared: Arc<Shared>,
}

impl Vfs {
    /// Registers a VFS, not as the default one.
    ///
    /// # Errors
    /// When the name is taken or cannot be one, the layout is impossible, the drive cannot carry a volume, or SQLite
    /// refuses.
    pub fn register(name: &str, backend: Backend, options: VfsOptions) -> Result<Self, SqliteError> {
        Self::make(&Api::linked()?, name, backend, options, true, false)
    }

    /// Registers a VFS for ordinary directories that counts and records nothing, and that leaves files to SQLite's own
    /// VFS where no technique is to be applied, except logs and journals ([`VfsOptions::log_syncs`]): for programs that
    /// want the techniques and no figures.
    ///
    /// ```
    /// use flashwise_sqlite::{Vfs, VfsOptions};
    /// use rusqlite::{Connection, OpenFlags};
    ///
    /// let dir = tempfile::tempdir()?;
    /// let options = VfsOptions::from_text("write-aligned-stripes=64k&concurrent-write-back=8")?;
    /// let vfs = Vfs::install("fitted", options, false)?;
    /// let path = dir.path().join("a.db");
    /// let db = Connection::open_with_flags_and_vfs(&path, OpenFlags::default(), vfs.name())?;
    /// db.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (x); INSERT INTO t VALUES (1)")?;
    /// drop(db);
    /// assert_eq!(flashwise_sqlite::info(&path)?.log, "aligned");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Vfs::register`].
    pub fn install(name: &str, options: VfsOptions, as_default: bool) -> Result<Self, SqliteError> {
        Self::install_with(&Api::linked()?, name, options, as_default)
    }

    pub(crate) fn install_with(
        api: &Api,
        name: &str,
        options: VfsOptions,
        as_default: bool,
    ) -> Result<Self, SqliteError> {
        Self::make(api, name, Backend::Directory, VfsOptions { record: false, ..options }, false, as_default)
    }

    fn make(
        api: &Api,
        name: &str,
        backend: Backend,
        options: VfsOptions,
        observed: bool,
        as_default: bool,
    ) -> Result<Self, SqliteError> {
        options.check()?;
        let c_name = CString::new(name).ok().filter(|name| !name.is_empty());
        let c_name = c_name.ok_or_else(|| SqliteError::Name(name.escape_default().to_string()))?;
        let parent = ParentVfs::named(api, options.parent)?;
        let place = match backend {
            Backend::Drive(device) => Place::on_drive(Box::new(BareFiles::new(Disk::new(device, options.record)?))),
            Backend::FileSystem(mounted) => Place::on_drive(Box::new(MountedFiles::new(*mounted, options.record)?)),
            Backend::Directory => Place::Directory(Arc::new(Directory::new(parent, options, observed))),
        };
        let shared = Arc::new(Shared {
            name: c_name,
            api: *api,
            options,
            observed,
            place,
            databases: Databases::default(),
            cpu_ns: AtomicU64::new(0),
            last_error: Mutex::new(None),
        });
        let registration = Registration::new(api, &shared.name, &shared, parent, as_default)?;
        Ok(Self { registration, shared })
    }

    /// The name for `open_with_flags_and_vfs`, or `vfs=NAME` in a URI.
    pub fn name(&self) -> &str {
        self.shared.name.to_str().unwrap_or_default()
    }

    /// The layout that new databases take.
    pub fn layout(&self) -> Layout {
        self.shared.options.layout
    }

    /// The drive's clock, or nanoseconds since the VFS was registered.
    pub fn now(&self) -> Nanos {
        match &self.shared.place {
            Place::Drive(drive) => observed(drive).medium.now(),
            Place::Directory(directory) => directory.now(),
        }
    }

    /// Lets time pass while no connection of the VFS is at work; the drive, and Linux's model above it, go on with what
    /// they do in the background. In a directory the thread sleeps.
    ///
    /// # Errors
    /// When the drive is lost.
    pub fn pause(&self, time: Nanos) -> Result<(), SqliteError> {
        match &self.shared.place {
            Place::Drive(drive) => Ok(lock(drive)?.medium.pause(time)?),
            Place::Directory(_) => {
                std::thread::sleep(std::time::Duration::from_nanos(time.0));
                Ok(())
            }
        }
    }

    /// For a program that says what it computes.
    pub fn program_clock(&self) -> ProgramClock {
        match &self.shared.place {
            Place::Drive(drive) => ProgramClock { drive: Some(Arc::clone(drive)) },
            Place::Directory(_) => ProgramClock { drive: None },
        }
    }

    /// The drive's own counters; for a directory, the requests that went through the VFS.
    pub fn counters(&self) -> DeviceCounters {
        match &self.shared.place {
            Place::Drive(drive) => observed(drive).medium.counters(),
            Place::Directory(directory) => directory.counters(),
        }
    }

    /// Pages that a scan was found to read next (concurrent-read-ahead): in a directory also those that the page cache
    /// turned out to have.
    pub fn pages_read_ahead(&self) -> u64 {
        match &self.shared.place {
            Place::Drive(drive) => observed(drive).read_ahead,
            Place::Directory(directory) => directory.asked_ahead.load(Ordering::Relaxed),
        }
    }

    /// The requests recorded since the last call.
    pub fn take_trace(&self) -> IoTrace {
        self.with_ledger(Ledger::take)
    }

    /// Switches recording on or off.
    pub fn set_recording(&self, on: bool) {
        self.with_ledger(|ledger| ledger.recording = on);
    }

    /// Time spent waiting for the drive, on its clock.
    pub fn io_time(&self) -> Nanos {
        self.with_ledger(|ledger| ledger.io_time())
    }

    /// CPU time that threads spent inside the VFS and, below it, in the device: on a simulated drive the simulation, in
    /// a directory the system calls. A thread's CPU time less this is SQLite's own.
    pub fn host_cpu_time(&self) -> Nanos {
        Nanos(self.shared.cpu_ns.load(Ordering::Relaxed))
    }

    /// The last failure; SQLite itself passes on only a result code.
    pub fn last_error(&self) -> Option<String> {
        self.shared.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes back what the operating system holds in memory and drops it, so that the next read reaches the drive.
    /// Only in a file system on a drive; elsewhere nothing happens.
    ///
    /// # Errors
    /// When the drive fails.
    pub fn drop_caches(&self) -> Result<(), SqliteError> {
        match &self.shared.place {
            Place::Drive(drive) => Ok(lock(drive)?.medium.drop_caches()?),
            Place::Directory(_) => Ok(()),
        }
    }

    /// Writes another file first, as on a file system that is in use: what a file system writes behind the flush of a
    /// sync is in the drive's write buffer when the next file comes, whose pages then do not start where the flash's
    /// write units do. Only in a file system on a drive; elsewhere nothing happens.
    ///
    /// # Errors
    /// When the drive fails.
    pub fn write_earlier_file(&self) -> Result<(), SqliteError> {
        match &self.shared.place {
            Place::Drive(drive) => Ok(lock(drive)?.medium.write_earlier_file()?),
            Place::Directory(_) => Ok(()),
        }
    }

    /// Copies a plain SQLite file to this VFS's files, in its layout, in writes of 2 MiB. `name` must be new.
    ///
    /// # Errors
    /// When the file is not a plain SQLite database or has a hot journal or a WAL, when the name exists or a journal or
    /// log of it, or I/O fails; the incomplete copy is deleted.
    pub fn import_file(&self, host: &Path, name: &str) -> Result<ImportSummary, SqliteError> {
        match &self.shared.place {
            Place::Directory(_) => convert::import(host, Path::new(name), &self.shared.options),
            Place::Drive(drive) => {
                let plain = convert::open_plain(host, &self.shared.options)?;
                if lock(drive)?.exists(name) {
                    return Err(SqliteError::Exists(name.to_owned()));
                }
                for companion in companions_on_drive(name) {
                    if lock(drive)?.exists(&companion) {
                        return Err(SqliteError::Leftover { path: name.to_owned(), companion });
                    }
                }
                let mode = OpenMode { role: FileRole::Database, create: true, exclusive: true };
                let copied = self.fill(DriveStore::open(drive, Some(name), mode)?, plain);
                if copied.is_err()
                    && let Ok(mut drive) = lock(drive)
                {
                    // The copy's failure is the one to report.
                    let _ = drive.delete(name, false);
                }
                copied
            }
        }
    }

    /// Copies a plain file into a new one of this drive, and closes it.
    fn fill(&self, mut store: DriveStore, plain: PlainFile<'_>) -> Result<ImportSummary, SqliteError> {
        let options = &self.shared.options;
        convert::write_placed_header(&plain, &mut store, options)?;
        convert::copy_in(plain, &mut Handle::database(store, *options)?, options)
    }

    /// Writes a database as a plain SQLite file; `host` must be new.
    ///
    /// # Errors
    /// When the database is open, has a hot journal or a WAL, does not exist, or is damaged; when `host` exists or I/O
    /// fails. A half-written output is removed.
    pub fn export_file(&self, name: &str, host: &Path) -> Result<ExportSummary, SqliteError> {
        let in_use = |handles: usize| match handles {
            0 => Ok(()),
            handles => Err(SqliteError::InUse { what: name.to_owned(), handles }),
        };
        match &self.shared.place {
            Place::Directory(directory) => {
                let path = Path::new(name);
                let full = path.canonicalize().map_err(|error| SqliteError::os("finding it", path, &error))?;
                in_use(directory.handles(Some(full.as_os_str().as_encoded_bytes())))?;
                convert::export_any(&full, host)
            }
            Place::Drive(drive) => {
                if !lock(drive)?.exists(name) {
                    return Err(SqliteError::NotFound(name.to_owned()));
                }
                in_use(lock(drive)?.handles(Some(name)))?;
                self.check_companions(drive, name)?;
                let mode = OpenMode { role: FileRole::Database, create: false, exclusive: false };
                let mut handle = Handle::database(DriveStore::open(drive, Some(name), mode)?, self.shared.options)?;
                convert::copy_out(&mut handle, name, host, Access::Usual, || Ok(()))
            }
        }
    }

    /// A journal that is hot, or a WAL, holds part of the database.
    fn check_companions(&self, drive: &SharedDrive, name: &str) -> Result<(), SqliteError> {
        for companion in companions_on_drive(name) {
            if lock(drive)?.size_of(&companion).is_none_or(|size| size == 0) {
                continue;
            }
            let mode = OpenMode { role: role_of_name(&companion), create: false, exclusive: false };
            let mut handle = Handle::plain(DriveStore::open(drive, Some(&companion), mode)?);
            let mut first = [0];
            handle.read(0, &mut first)?;
            if first != [0] {
                return Err(SqliteError::Unfinished { path: name.to_owned(), companion });
            }
        }
        Ok(())
    }

    /// Unregisters the VFS and gives the drive back; the volume on it is forgotten.
    ///
    /// # Errors
    /// When files are still open, or the VFS stands on a directory.
    pub fn into_device(self) -> Result<Box<dyn BlockDevice + Send>, SqliteError> {
        let Self { registration, shared } = self;
        drop(registration);
        let name = || shared.name.to_string_lossy().into_owned();
        let Place::Drive(drive) = &shared.place else { return Err(SqliteError::NoDevice(name())) };
        let mut drive = observed(drive);
        match drive.handles(None) {
            0 => drive.medium.take_device().ok_or_else(|| SqliteError::NoDevice(name())),
            handles => Err(SqliteError::InUse { what: format!("VFS '{}'", name()), handles }),
        }
    }

    /// The machine's memory is lost.
    #[cfg(test)]
    pub(crate) fn drive_power_cut(&self) {
        if let Place::Drive(drive) = &self.shared.place {
            observed(drive).power_cut();
        }
    }

    fn with_ledger<T>(&self, work: impl FnOnce(&mut Ledger) -> T) -> T {
        match &self.shared.place {
            Place::Drive(drive) => work(observed(drive).medium.ledger()),
            Place::Directory(directory) => directory.with_ledger(work),
        }
    }
}

/// Moves the clock of files in a file system on a drive by what their program computes; on a bare drive and in a
/// directory it does nothing.
#[derive(Clone)]
pub struct ProgramClock {
    drive: Option<SharedDrive>,
}

impl ProgramClock {
    /// The program has computed for so long since its last call.
    pub fn advance(&self, time: Nanos) {
        if let Some(drive) = &self.drive {
            observed(drive).medium.compute(time);
        }
    }
}

/// The drive, for reading its counters, which are sound after a panic; its data must not be used then (see
/// `drive::lock`).
fn observed(drive: &SharedDrive) -> MutexGuard<'_, Drive> {
    drive.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "../tests/it/support/mod.rs"]
pub(crate) mod support;

#[cfg(test)]
mod tests {
    use super::support::{TestDrive, open, unique};
    use super::*;

    #[test]
    fn a_panic_in_the_device_is_an_error_to_sqlite_and_stays_one() {
        struct Broken(Box<TestDrive>);
        impl BlockDevice for Broken {
            flashwise_block::forward!(0: info now wait outstanding pause counters);

            fn submit(&mut self, _: flashwise_block::Request) -> Result<(), flashwise_block::BlockError> {
                panic!("told to panic")
            }
        }
        let device = Box::new(Broken(TestDrive::new(8, 512).0));
        let vfs = Vfs::register(&unique("broken"), Backend::Drive(device), VfsOptions::default()).unwrap();
        let db = open("a.db", vfs.name());
        for _ in 0..2 {
            let failed = db.execute_batch("CREATE TABLE t (x)").unwrap_err();
            assert_eq!(failed.sqlite_error_code(), Some(rusqlite::ErrorCode::SystemIoFailure), "{failed}");
        }
        assert!(vfs.last_error().unwrap().contains("panic"));
        assert_eq!(vfs.counters(), DeviceCounters::default());
    }

    #[test]
    fn drives_that_cannot_carry_a_volume_are_refused() {
        for (capacity, block) in [(0, 512), (8, 8192), (8, 768)] {
            let (device, _) = TestDrive::new(capacity, block);
            let refused = Vfs::register(&unique("bad"), Backend::Drive(device), VfsOptions::default()).err().unwrap();
            assert!(matches!(refused, SqliteError::Drive { .. }), "{refused}");
        }
    }
}
