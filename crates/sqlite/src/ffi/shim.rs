//! Upwards: the VFS object and the file methods that SQLite calls.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use libsqlite3_sys as sqlite;
use rustix::time::{ClockId, clock_gettime};
use sqlite::{sqlite3_file, sqlite3_io_methods, sqlite3_vfs};

use super::{Api, FileName, ParentVfs};
use crate::SqliteError;
use crate::error::{Failure, offset};
use crate::file::SqliteFile;
use crate::memo;
use crate::vfs::{Look, Lookup, Opened, Shared};
use crate::write_transactions::ends_one;

/// The target of SQLite's `pAppData`. It is never freed (a few hundred bytes per registration), because a connection
/// keeps its pointer to the VFS object for as long as it lives, and its end is not reported.
struct Link {
    /// `None` once the VFS is dropped; opening a file then fails.
    shared: Mutex<Option<Arc<Shared>>>,
    parent: ParentVfs,
}

/// The VFS below the first of ours, for callers that have none of our objects.
static FIRST_PARENT: OnceLock<ParentVfs> = OnceLock::new();

/// A file object in SQLite's memory.
#[repr(C)]
struct ShimFile {
    base: sqlite3_file,
    open: *mut OpenFile,
}

struct OpenFile {
    file: Box<dyn SqliteFile>,
    shared: Arc<Shared>,
}

/// A VFS that SQLite knows by its name; unregistered on drop.
pub(crate) struct Registration {
    vfs: *mut sqlite3_vfs,
    link: &'static Link,
    api: Api,
}

// SAFETY: the VFS object and its link are leaked, and SQLite's registry is guarded by its own mutex.
unsafe impl Send for Registration {}
// SAFETY: as above; there is nothing to change through a shared reference.
unsafe impl Sync for Registration {}

/// Between looking whether a name is free and taking it.
static REGISTERING: Mutex<()> = Mutex::new(());

impl Registration {
    pub(crate) fn new(
        api: &Api,
        name: &CStr,
        shared: &Arc<Shared>,
        parent: ParentVfs,
        as_default: bool,
    ) -> Result<Self, SqliteError> {
        let _guard = REGISTERING.lock().unwrap_or_else(PoisonError::into_inner);
        if api.find(Some(name)).is_some() {
            return Err(SqliteError::NameTaken(name.to_string_lossy().into_owned()));
        }
        let link: &'static Link = Box::leak(Box::new(Link { shared: Mutex::new(Some(Arc::clone(shared))), parent }));
        FIRST_PARENT.get_or_init(|| parent);
        let name: &'static CStr = Box::leak(CString::from(name).into_boxed_c_str());
        let vfs: *mut sqlite3_vfs = Box::leak(Box::new(vfs_object(name, link, parent)));
        // SAFETY: the object, its name and its link live for ever.
        match unsafe { api.register(vfs, as_default) } {
            sqlite::SQLITE_OK => Ok(Self { vfs, link, api: *api }),
            code => Err(SqliteError::Sqlite { what: "register the VFS", code }),
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: the object was registered and lives for ever.
        unsafe { self.api.unregister(self.vfs) };
        *self.link.shared.lock().unwrap_or_else(PoisonError::into_inner) = None;
        memo::changed();
    }
}

/// Version of the SQLite that is linked in.
pub(crate) fn sqlite_version() -> &'static str {
    sqlite::SQLITE_VERSION.to_str().unwrap_or("unknown")
}

/// Whether the SQLite that is linked in was built with batches.
pub(crate) fn takes_atomic_batches() -> bool {
    // SAFETY: reads a table of constants; the name is a C string.
    unsafe { sqlite::sqlite3_compileoption_used(c"ENABLE_BATCH_ATOMIC_WRITE".as_ptr()) != 0 }
}

fn vfs_object(name: &'static CStr, link: &'static Link, parent: ParentVfs) -> sqlite3_vfs {
    sqlite3_vfs {
        iVersion: parent.get().iVersion.min(3),
        // A file that needs nothing of this VFS is opened by the parent in SQLite's memory directly.
        szOsFile: (size_of::<ShimFile>() as c_int).max(parent.get().szOsFile),
        mxPathname: parent.get().mxPathname,
        pNext: ptr::null_mut(),
        zName: name.as_ptr(),
        pAppData: ptr::from_ref(link).cast_mut().cast(),
        xOpen: Some(x_open),
        xDelete: Some(x_delete),
        xAccess: Some(x_access),
        xFullPathname: Some(x_full_pathname),
        xDlOpen: Some(x_dl_open),
        xDlError: Some(x_dl_error),
        xDlSym: Some(x_dl_sym),
        xDlClose: Some(x_dl_close),
        xRandomness: Some(x_randomness),
        xSleep: Some(x_sleep),
        xCurrentTime: Some(x_current_time),
        xGetLastError: Some(x_get_last_error),
        xCurrentTimeInt64: Some(x_current_time_int64),
        xSetSystemCall: Some(x_set_system_call),
        xGetSystemCall: Some(x_get_system_call),
        xNextSystemCall: Some(x_next_system_call),
    }
}

/// Methods of files without shared memory.
static METHODS: sqlite3_io_methods = methods(1);
/// Methods of files with shared memory.
static METHODS_WITH_SHM: sqlite3_io_methods = methods(3);

const fn methods(version: c_int) -> sqlite3_io_methods {
    sqlite3_io_methods {
        iVersion: version,
        xClose: Some(x_close),
        xRead: Some(x_read),
        xWrite: Some(x_write),
        xTruncate: Some(x_truncate),
        xSync: Some(x_sync),
        xFileSize: Some(x_file_size),
        xLock: Some(x_lock),
        xUnlock: Some(x_unlock),
        xCheckReservedLock: Some(x_check_reserved_lock),
        xFileControl: Some(x_file_control),
        xSectorSize: Some(x_sector_size),
        xDeviceCharacteristics: Some(x_device_characteristics),
        xShmMap: Some(x_shm_map),
        xShmLock: Some(x_shm_lock),
        xShmBarrier: Some(x_shm_barrier),
        xShmUnmap: Some(x_shm_unmap),
        xFetch: Some(x_fetch),
        xUnfetch: Some(x_unfetch),
    }
}

/// CPU time of this thread, ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Does the work of one method: counts its CPU time, reports its failure, and catches panics.
fn guarded(shared: &Shared, on_panic: c_int, work: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    let began = shared.is_observed().then(thread_cpu_ns);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    if let Some(began) = began {
        shared.add_cpu_ns(thread_cpu_ns().saturating_sub(began));
    }
    match outcome {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => {
            tell(shared, &failure);
            failure.code
        }
        Err(_) => {
            tell(shared, &Failure::new(on_panic, "internal: a panic in the VFS or the device was caught"));
            on_panic
        }
    }
}

/// Keeps a failure's text for the caller and for SQLite's error log. A busy file is no failure.
fn tell(shared: &Shared, failure: &Failure) {
    if failure.code == sqlite::SQLITE_BUSY {
        return;
    }
    shared.set_last_error(&failure.message);
    shared.api().log(failure.code, &failure.message);
}

/// Runs a method on an open file.
///
/// # Safety
/// `file` must come from SQLite: opened by [`x_open`], not yet closed, and used by one thread at a time.
unsafe fn with_file(
    file: *mut sqlite3_file,
    on_panic: c_int,
    work: impl FnOnce(&mut dyn SqliteFile) -> Result<c_int, Failure>,
) -> c_int {
    // SAFETY: `x_open` stored a pointer to a boxed `OpenFile` there, which `x_close` alone frees; SQLite serialises the
    // calls on one file by the connection's mutex.
    let open = unsafe { &mut *(*file.cast::<ShimFile>()).open };
    let OpenFile { file, shared } = open;
    let mut panicked = true;
    let code = guarded(shared, on_panic, || {
        let outcome = work(file.as_mut());
        panicked = false;
        outcome
    });
    if panicked {
        file.poison("a panic was caught");
    }
    code
}

fn done(outcome: Result<(), Failure>) -> Result<c_int, Failure> {
    outcome.map(|()| sqlite::SQLITE_OK)
}

/// The link behind a VFS object.
///
/// # Safety
/// `vfs` must be an object that [`Registration::new`] made.
unsafe fn link(vfs: *mut sqlite3_vfs) -> &'static Link {
    // SAFETY: `pAppData` of our objects points to a leaked `Link`.
    unsafe { &*(*vfs).pAppData.cast::<Link>() }
}

/// # Safety
/// As [`link`].
unsafe fn shared(vfs: *mut sqlite3_vfs) -> Option<Arc<Shared>> {
    // SAFETY: the caller's promise.
    let link = unsafe { link(vfs) };
    link.shared.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

unsafe extern "C" fn x_open(
    vfs: *mut sqlite3_vfs,
    name: sqlite::sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let shim = file.cast::<ShimFile>();
    // SAFETY: SQLite gives `szOsFile` bytes for the file object. Null methods mean that there is nothing to close.
    unsafe { shim.write(ShimFile { base: sqlite3_file { pMethods: ptr::null() }, open: ptr::null_mut() }) };
    // SAFETY: SQLite passes the VFS object that we registered.
    let (shared, parent) = unsafe { (shared(vfs), link(vfs).parent) };
    let Some(shared) = shared else { return sqlite::SQLITE_CANTOPEN };
    let given = name;
    // SAFETY: a non-null name is NUL-terminated and valid until the file is closed.
    let name = (!given.is_null()).then(|| unsafe { FileName::from_sqlite(given) });
    let named = |key: &str| {
        let key = CString::new(key).ok()?;
        // SAFETY: only a name that SQLite made of a URI, marked by this flag, has parameters after it.
        unsafe { shared.api().uri_parameter(given, &key) }
    };
    let has_parameters = flags & sqlite::SQLITE_OPEN_URI != 0 && flags & sqlite::SQLITE_OPEN_MAIN_DB != 0;
    guarded(&shared, sqlite::SQLITE_CANTOPEN, || {
        let named: Option<&Lookup> = (has_parameters && !given.is_null()).then_some(&named);
        let (mut file_of_ours, granted) = match shared.open(name, flags, named)? {
            Opened::Ours(file, granted) => (file, granted),
            Opened::AsItIs => {
                // SAFETY: SQLite's memory has space for the parent's file object, and the name is SQLite's own.
                return Ok(parent.get().xOpen.map_or(sqlite::SQLITE_CANTOPEN, |open| unsafe {
                    open(parent.as_ptr(), given, file, flags, out_flags)
                }));
            }
        };
        let with_shm = file_of_ours.shared_memory().is_some();
        let open = Box::into_raw(Box::new(OpenFile { file: file_of_ours, shared: Arc::clone(&shared) }));
        // SAFETY: as for the write above; `out_flags` is null or valid.
        unsafe {
            (*shim).open = open;
            (*shim).base.pMethods = if with_shm { &METHODS_WITH_SHM } else { &METHODS };
            if let Some(out_flags) = out_flags.as_mut() {
                *out_flags = granted;
            }
        }
        Ok(sqlite::SQLITE_OK)
    })
}

unsafe extern "C" fn x_close(file: *mut sqlite3_file) -> c_int {
    let shim = file.cast::<ShimFile>();
    // SAFETY: SQLite closes a file once; the box was made in `x_open`.
    let mut open = unsafe { Box::from_raw((*shim).open) };
    // SAFETY: the object is SQLite's memory, still valid.
    unsafe { (*shim).base.pMethods = ptr::null() };
    let shared = Arc::clone(&open.shared);
    guarded(&shared, sqlite::SQLITE_IOERR_CLOSE, move || {
        let closed = open.file.close();
        drop(open);
        done(closed)
    })
}

unsafe extern "C" fn x_read(file: *mut sqlite3_file, into: *mut c_void, amount: c_int, at: i64) -> c_int {
    // SAFETY: called by SQLite on an open file, with space for `amount` bytes, all of which the parent has filled if it
    // reports success.
    unsafe {
        let observed = (*(*file.cast::<ShimFile>()).open).shared.is_observed();
        with_file(file, sqlite::SQLITE_IOERR_READ, |file| {
            let (at, length) = (offset(at)?, usize::try_from(amount).unwrap_or(0));
            if !observed
                && let Some(stored) = file.straight(at, length)?
                && let Some(parent) = file.parent()
            {
                let code = parent.read_as_asked(stored, into, amount);
                if code == sqlite::SQLITE_OK {
                    file.went_straight(at, std::slice::from_raw_parts(into.cast::<u8>(), length));
                }
                // A short read is repeated the slow way: held-back data may be beyond the end.
                if code != sqlite::SQLITE_IOERR_SHORT_READ {
                    return Ok(code);
                }
            }
            // The buffer is zeroed first: it may be uninitialised, and a short read must leave zeros after the data.
            ptr::write_bytes(into.cast::<u8>(), 0, length);
            let there = file.read(at, std::slice::from_raw_parts_mut(into.cast::<u8>(), length))?;
            Ok(if there == length { sqlite::SQLITE_OK } else { sqlite::SQLITE_IOERR_SHORT_READ })
        })
    }
}

unsafe extern "C" fn x_write(file: *mut sqlite3_file, data: *const c_void, amount: c_int, at: i64) -> c_int {
    let amount = usize::try_from(amount).unwrap_or(0);
    // SAFETY: SQLite gives `amount` initialised bytes.
    let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), amount) };
    // SAFETY: called by SQLite on an open file.
    unsafe { with_file(file, sqlite::SQLITE_IOERR_WRITE, |file| done(file.write(offset(at)?, data))) }
}

unsafe extern "C" fn x_truncate(file: *mut sqlite3_file, size: i64) -> c_int {
    // SAFETY: called by SQLite on an open file.
    unsafe { with_file(file, sqlite::SQLITE_IOERR_TRUNCATE, |file| done(file.truncate(offset(size)?))) }
}

unsafe extern "C" fn x_sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: called by SQLite on an open file.
    unsafe { with_file(file, sqlite::SQLITE_IOERR_FSYNC, |file| done(file.sync(flags))) }
}

unsafe extern "C" fn x_file_size(file: *mut sqlite3_file, out: *mut i64) -> c_int {
    // SAFETY: called by SQLite on an open file, with a place for the result.
    unsafe {
        with_file(file, sqlite::SQLITE_IOERR_FSTAT, |file| {
            let size = file.size()?;
            *out = i64::try_from(size).unwrap_or(i64::MAX);
            Ok(sqlite::SQLITE_OK)
        })
    }
}

unsafe extern "C" fn x_lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: called by SQLite on an open file.
    unsafe { with_file(file, sqlite::SQLITE_IOERR_LOCK, |file| done(file.lock(level))) }
}

unsafe extern "C" fn x_unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: called by SQLite on an open file.
    unsafe { with_file(file, sqlite::SQLITE_IOERR_UNLOCK, |file| done(file.unlock(level))) }
}

unsafe extern "C" fn x_check_reserved_lock(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: called by SQLite on an open file, with a place for the result.
    unsafe {
        with_file(file, sqlite::SQLITE_IOERR_CHECKRESERVEDLOCK, |file| {
            *out = c_int::from(file.is_reserved()?);
            Ok(sqlite::SQLITE_OK)
        })
    }
}

unsafe extern "C" fn x_sector_size(file: *mut sqlite3_file) -> c_int {
    // SAFETY: called by SQLite on an open file.
    unsafe { with_file(file, 4096, |file| Ok(file.sector_size())) }
}

unsafe extern "C" fn x_device_characteristics(file: *mut sqlite3_file) -> c_int {
    // SAFETY: called by SQLite on an open file.
    unsafe { with_file(file, 0, |file| Ok(file.characteristics())) }
}

unsafe extern "C" fn x_file_control(file: *mut sqlite3_file, operation: c_int, argument: *mut c_void) -> c_int {
    if operation == sqlite::SQLITE_FCNTL_VFSNAME {
        // SAFETY: the file is open; for this operation the argument is a `char **` that takes memory of SQLite's.
        return unsafe {
            let shared = &(*(*file.cast::<ShimFile>()).open).shared;
            *argument.cast::<*mut c_char>() = shared.api().copy(shared.name());
            sqlite::SQLITE_OK
        };
    }
    if operation == sqlite::SQLITE_FCNTL_PRAGMA
        // SAFETY: for this operation the argument is SQLite's array of a place for a message, the name and the value.
        && let Some(refused) = unsafe { pragma(file, argument.cast()) }
    {
        return refused;
    }
    // SAFETY: called by SQLite on an open file, with the operation's argument.
    unsafe {
        let maps = !(*(*file.cast::<ShimFile>()).open).shared.is_observed();
        with_file(file, sqlite::SQLITE_IOERR, |file| control(file, operation, argument, maps))
    }
}

/// A statement `PRAGMA page_size = …`: its result code where it is refused, with a message that SQLite reports.
///
/// # Safety
/// `file` as for [`with_file`]; `words` must be SQLite's argument of `SQLITE_FCNTL_PRAGMA`.
unsafe fn pragma(file: *mut sqlite3_file, words: *mut *mut c_char) -> Option<c_int> {
    // SAFETY: three pointers; the last two are NUL-terminated texts, or null.
    let [name, value] = [1, 2].map(|at| unsafe { *words.add(at) });
    if name.is_null() || value.is_null() {
        return None;
    }
    // SAFETY: as above.
    let [name, value] = [name, value].map(|word| unsafe { CStr::from_ptr(word) });
    let bytes = value.to_str().ok().and_then(|value| value.trim().parse().ok());
    let bytes = bytes.filter(|_| name.to_bytes().eq_ignore_ascii_case(b"page_size"))?;
    // SAFETY: the caller's promise; the message is in SQLite's memory, which SQLite frees.
    unsafe {
        let mut why = None;
        let code = with_file(file, sqlite::SQLITE_ERROR, |file| {
            let requested = file.request_pages(bytes);
            why = requested.as_ref().err().map(|failure| failure.message.clone());
            done(requested)
        });
        let why = why.and_then(|why| CString::new(why).ok())?;
        *words = (*(*file.cast::<ShimFile>()).open).shared.api().copy(&why);
        Some(code)
    }
}

/// File controls: those that concern a layout, then the parent's. `maps` if files may be mapped into memory.
///
/// # Safety
/// `argument` must be what SQLite defines for `operation`.
unsafe fn control(
    file: &mut dyn SqliteFile,
    operation: c_int,
    argument: *mut c_void,
    maps: bool,
) -> Result<c_int, Failure> {
    let mut stored_hint: i64;
    let mut argument = argument;
    match operation {
        // Sent before each sync, and instead of it with `synchronous=OFF`: the transaction is complete.
        sqlite::SQLITE_FCNTL_SYNC => file.write_out()?,
        // Other connections read the checkpointed pages from now on, and the result is ignored.
        sqlite::SQLITE_FCNTL_CKPT_DONE => file.copied()?,
        sqlite::SQLITE_FCNTL_COMMIT_PHASETWO => file.committed(),
        sqlite::SQLITE_FCNTL_OVERWRITE => file.check_overwrite()?,
        // Reads from a mapping would not be recorded.
        sqlite::SQLITE_FCNTL_MMAP_SIZE if !maps => {
            // SAFETY: the argument is a `sqlite3_int64 *` that takes the limit in force: none.
            unsafe { *argument.cast::<i64>() = 0 };
            return Ok(sqlite::SQLITE_OK);
        }
        sqlite::SQLITE_FCNTL_SIZE_HINT => {
            // SAFETY: the argument is a `sqlite3_int64 *` with the expected size.
            let hint = unsafe { *argument.cast::<i64>() };
            stored_hint =
                u64::try_from(hint).map_or(hint, |hint| file.stored_size(hint).try_into().unwrap_or(i64::MAX));
            argument = ptr::from_mut(&mut stored_hint).cast();
        }
        sqlite::SQLITE_FCNTL_BEGIN_ATOMIC_WRITE if file.begin_batch()? => return Ok(sqlite::SQLITE_OK),
        sqlite::SQLITE_FCNTL_COMMIT_ATOMIC_WRITE if file.takes_batches() => return done(file.commit_batch()),
        sqlite::SQLITE_FCNTL_ROLLBACK_ATOMIC_WRITE if file.takes_batches() => {
            file.drop_batch();
            return Ok(sqlite::SQLITE_OK);
        }
        // Writes that are held back would miss the file system's own transaction.
        sqlite::SQLITE_FCNTL_BEGIN_ATOMIC_WRITE
        | sqlite::SQLITE_FCNTL_COMMIT_ATOMIC_WRITE
        | sqlite::SQLITE_FCNTL_ROLLBACK_ATOMIC_WRITE
            if file.is_mapped() =>
        {
            return Ok(sqlite::SQLITE_NOTFOUND);
        }
        _ => {}
    }
    match file.parent() {
        // SAFETY: the caller's promise; a size hint is our own variable, which outlives the call.
        Some(parent) => Ok(unsafe { parent.control(operation, argument) }),
        None => Ok(sqlite::SQLITE_NOTFOUND),
    }
}

unsafe extern "C" fn x_shm_map(
    file: *mut sqlite3_file,
    page: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: called by SQLite on an open file, with a place for the result.
    unsafe {
        with_file(file, sqlite::SQLITE_IOERR_SHMMAP, |file| {
            let Some(memory) = file.shared_memory() else { return Ok(sqlite::SQLITE_IOERR_SHMMAP) };
            let (code, start) = memory.map(page, size, extend != 0);
            *out = start;
            Ok(code)
        })
    }
}

unsafe extern "C" fn x_shm_lock(file: *mut sqlite3_file, first: c_int, count: c_int, flags: c_int) -> c_int {
    // SAFETY: called by SQLite on an open file.
    unsafe {
        with_file(file, sqlite::SQLITE_IOERR_SHMLOCK, |file| {
            if ends_one(first, flags) {
                file.end_transaction();
            }
            Ok(file.shared_memory().map_or(sqlite::SQLITE_IOERR_SHMLOCK, |memory| memory.lock(first, count, flags)))
        })
    }
}

unsafe extern "C" fn x_shm_barrier(file: *mut sqlite3_file) {
    // SAFETY: called by SQLite on an open file.
    unsafe {
        with_file(file, sqlite::SQLITE_OK, |file| {
            if let Some(memory) = file.shared_memory() {
                memory.barrier();
            }
            Ok(sqlite::SQLITE_OK)
        })
    };
}

unsafe extern "C" fn x_shm_unmap(file: *mut sqlite3_file, delete: c_int) -> c_int {
    // SAFETY: called by SQLite on an open file.
    unsafe {
        with_file(file, sqlite::SQLITE_IOERR, |file| {
            Ok(file.shared_memory().map_or(sqlite::SQLITE_OK, |memory| memory.unmap(delete != 0)))
        })
    }
}

unsafe extern "C" fn x_fetch(file: *mut sqlite3_file, at: i64, amount: c_int, out: *mut *mut c_void) -> c_int {
    // SAFETY: SQLite gives a place for the result, on an open file.
    unsafe {
        *out = ptr::null_mut();
        if (*(*file.cast::<ShimFile>()).open).shared.is_observed() {
            return sqlite::SQLITE_OK;
        }
        with_file(file, sqlite::SQLITE_IOERR, |file| {
            *out = file.fetch(offset(at)?, usize::try_from(amount).unwrap_or(usize::MAX))?;
            Ok(sqlite::SQLITE_OK)
        })
    }
}

unsafe extern "C" fn x_unfetch(file: *mut sqlite3_file, at: i64, page: *mut c_void) -> c_int {
    // SAFETY: called by SQLite on an open file, with the result of `x_fetch` for that offset, or null.
    unsafe {
        with_file(file, sqlite::SQLITE_IOERR, |file| {
            let at = file.stored_size(offset(at)?);
            Ok(file.parent().map_or(sqlite::SQLITE_OK, |parent| parent.unfetch(at, page)))
        })
    }
}

unsafe extern "C" fn x_delete(vfs: *mut sqlite3_vfs, name: *const c_char, sync_directory: c_int) -> c_int {
    // SAFETY: SQLite passes our VFS object and a NUL-terminated name.
    let (shared, name) = unsafe { (shared(vfs), CStr::from_ptr(name)) };
    let Some(shared) = shared else { return sqlite::SQLITE_IOERR_DELETE };
    guarded(&shared, sqlite::SQLITE_IOERR_DELETE, || shared.delete(name.to_bytes(), sync_directory))
}

unsafe extern "C" fn x_access(vfs: *mut sqlite3_vfs, name: *const c_char, flags: c_int, out: *mut c_int) -> c_int {
    // SAFETY: SQLite passes our VFS object and a NUL-terminated name.
    let (link, text) = unsafe { (link(vfs), CStr::from_ptr(name).to_bytes()) };
    let ask = |stored: Option<&FileName>| match link.parent.get().xAccess {
        // SAFETY: both names are NUL-terminated, and they and the place for the result outlive the call.
        Some(access) => unsafe { access(link.parent.as_ptr(), stored.map_or(name, FileName::as_ptr), flags, out) },
        None => sqlite::SQLITE_IOERR_ACCESS,
    };
    let place = ptr::from_ref(link).addr();
    if let Some(code) = memo::recall(place, text, ask) {
        return code;
    }
    let changes = memo::changes();
    // SAFETY: as above.
    let Some(shared) = (unsafe { shared(vfs) }) else { return sqlite::SQLITE_IOERR_ACCESS };
    guarded(&shared, sqlite::SQLITE_IOERR_ACCESS, || match shared.look(text)? {
        Look::Answered(there) => {
            // SAFETY: SQLite passes a place for the result.
            unsafe { *out = c_int::from(there) };
            Ok(sqlite::SQLITE_OK)
        }
        Look::Ask { stored, holds } => {
            if holds {
                memo::keep(place, text, stored.as_ref(), changes);
            }
            Ok(ask(stored.as_deref()))
        }
    })
}

unsafe extern "C" fn x_full_pathname(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    size: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite passes our VFS object and a NUL-terminated name.
    let (shared, parent, text) = unsafe { (shared(vfs), link(vfs).parent, CStr::from_ptr(name)) };
    if shared.is_some_and(|shared| shared.has_paths()) {
        return match parent.get().xFullPathname {
            // SAFETY: forwarded as SQLite passed it.
            Some(full) => unsafe { full(parent.as_ptr(), name, size, out) },
            None => sqlite::SQLITE_CANTOPEN,
        };
    }
    // Names on a drive are flat: a name is its own full path.
    let bytes = text.to_bytes_with_nul();
    if bytes.len() > usize::try_from(size).unwrap_or(0) {
        return sqlite::SQLITE_CANTOPEN;
    }
    // SAFETY: `out` has space for `size` bytes, and the name fits.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len()) };
    sqlite::SQLITE_OK
}

/// The VFS below an object. If the object is not ours, the one below our first: SQLite's own VFS does not use the
/// object to get the time or to sleep, and so other VFSs use these methods of the default one as their own.
///
/// # Safety
/// `vfs` must be an object of a VFS.
unsafe fn parent_of(vfs: *mut sqlite3_vfs) -> Option<ParentVfs> {
    // SAFETY: the caller's promise. An object that opens files as ours do is ours, or has all that ours has.
    unsafe {
        match (*vfs).xOpen.is_some_and(|open| open as usize == x_open as *const () as usize) {
            true => Some(link(vfs).parent),
            false => FIRST_PARENT.get().copied(),
        }
    }
}

/// Forwards a method of the VFS object that has nothing to do with files.
macro_rules! forward {
    ($vfs:expr, $method:ident, $missing:expr $(, $argument:expr)*) => {{
        // SAFETY: SQLite and other VFSs pass the object of a VFS.
        let parent = unsafe { parent_of($vfs) };
        match parent.and_then(|parent| Some((parent, parent.get().$method?))) {
            // SAFETY: the arguments are forwarded as SQLite passed them, with the VFS object that the method belongs
            // to.
            Some((parent, method)) => unsafe { method(parent.as_ptr() $(, $argument)*) },
            None => $missing,
        }
    }};
}

unsafe extern "C" fn x_dl_open(vfs: *mut sqlite3_vfs, name: *const c_char) -> *mut c_void {
    forward!(vfs, xDlOpen, ptr::null_mut(), name)
}

unsafe extern "C" fn x_dl_error(vfs: *mut sqlite3_vfs, size: c_int, out: *mut c_char) {
    forward!(vfs, xDlError, (), size, out);
}

type Symbol = unsafe extern "C" fn(*mut sqlite3_vfs, *mut c_void, *const c_char);

unsafe extern "C" fn x_dl_sym(vfs: *mut sqlite3_vfs, library: *mut c_void, name: *const c_char) -> Option<Symbol> {
    forward!(vfs, xDlSym, None, library, name)
}

unsafe extern "C" fn x_dl_close(vfs: *mut sqlite3_vfs, library: *mut c_void) {
    forward!(vfs, xDlClose, (), library);
}

unsafe extern "C" fn x_randomness(vfs: *mut sqlite3_vfs, size: c_int, out: *mut c_char) -> c_int {
    forward!(vfs, xRandomness, 0, size, out)
}

unsafe extern "C" fn x_sleep(vfs: *mut sqlite3_vfs, microseconds: c_int) -> c_int {
    forward!(vfs, xSleep, 0, microseconds)
}

unsafe extern "C" fn x_current_time(vfs: *mut sqlite3_vfs, out: *mut f64) -> c_int {
    forward!(vfs, xCurrentTime, sqlite::SQLITE_ERROR, out)
}

unsafe extern "C" fn x_get_last_error(vfs: *mut sqlite3_vfs, size: c_int, out: *mut c_char) -> c_int {
    forward!(vfs, xGetLastError, 0, size, out)
}

unsafe extern "C" fn x_current_time_int64(vfs: *mut sqlite3_vfs, out: *mut i64) -> c_int {
    forward!(vfs, xCurrentTimeInt64, sqlite::SQLITE_ERROR, out)
}

type SystemCall = Option<unsafe extern "C" fn()>;

unsafe extern "C" fn x_set_system_call(vfs: *mut sqlite3_vfs, name: *const c_char, call: SystemCall) -> c_int {
    forward!(vfs, xSetSystemCall, sqlite::SQLITE_NOTFOUND, name, call)
}

unsafe extern "C" fn x_get_system_call(vfs: *mut sqlite3_vfs, name: *const c_char) -> SystemCall {
    forward!(vfs, xGetSystemCall, None, name)
}

unsafe extern "C" fn x_next_system_call(vfs: *mut sqlite3_vfs, name: *const c_char) -> *const c_char {
    forward!(vfs, xNextSystemCall, ptr::null(), name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Vfs, VfsOptions};

    #[test]
    fn the_clock_and_the_sleep_of_our_object_work_for_the_objects_of_others() {
        let vfs = Vfs::install("borrowed", VfsOptions::PLAIN, false).unwrap();
        let ours = Api::linked().unwrap().find(Some(c"borrowed")).unwrap();
        // SAFETY: the object lives for ever; the other one has the fields that an in-memory VFS of SQLite's tests
        // copies from it.
        let (mut other, tell, sleep) = unsafe {
            let ours = ours.as_ref();
            let other = sqlite3_vfs { pAppData: ptr::null_mut(), xOpen: None, pNext: ptr::null_mut(), ..*ours };
            (other, ours.xCurrentTimeInt64.unwrap(), ours.xSleep.unwrap())
        };
        let mut now = 0;
        // SAFETY: a VFS object and a place for the result.
        let (code, slept) = unsafe { (tell(&raw mut other, &raw mut now), sleep(&raw mut other, 1)) };
        let in_2020 = 212_444_640_000_000;
        assert!(code == sqlite::SQLITE_OK && now > in_2020 && slept >= 1, "{code} {now} {slept}");
        drop(vfs);
    }
}
