//! SQLite's own functions that a VFS calls: those that are linked in, or those of the program that loaded the
//! extension.
//!
//! A loadable extension must not bring a SQLite of its own. The program that loads it passes a table of function
//! pointers (`sqlite3_api_routines` in `sqlite3ext.h`), which only ever grows at its end. So a function is an index
//! into that table, and the version of SQLite implies the table's length.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::NonNull;

use libsqlite3_sys as sqlite;
use sqlite::sqlite3_vfs;

use crate::SqliteError;

/// SQLite's functions. The pointers stay valid for as long as the process: a program that loads us permanently keeps
/// its SQLite.
#[derive(Clone, Copy)]
pub(crate) struct Api {
    find: unsafe extern "C" fn(*const c_char) -> *mut sqlite3_vfs,
    register: unsafe extern "C" fn(*mut sqlite3_vfs, c_int) -> c_int,
    unregister: unsafe extern "C" fn(*mut sqlite3_vfs) -> c_int,
    log: unsafe extern "C" fn(c_int, *const c_char, ...),
    malloc: unsafe extern "C" fn(c_int) -> *mut c_void,
    uri_parameter: unsafe extern "C" fn(*const c_char, *const c_char) -> *const c_char,
}

/// Places of the functions in `sqlite3_api_routines`.
mod place {
    pub(super) const LIBVERSION_NUMBER: usize = 67;
    pub(super) const MALLOC: usize = 68;
    pub(super) const VFS_FIND: usize = 141;
    pub(super) const VFS_REGISTER: usize = 142;
    pub(super) const VFS_UNREGISTER: usize = 143;
    pub(super) const LOG: usize = 167;
    pub(super) const URI_PARAMETER: usize = 189;
}

/// The first SQLite that looks up the parameters of a URI for a journal and a log too: 3.32.0.
pub(crate) const OLDEST: c_int = 3_032_000;

impl Api {
    /// The SQLite that this program is linked with.
    pub(crate) fn linked() -> Result<Self, SqliteError> {
        // SAFETY: may be called at any time, from any thread.
        match unsafe { sqlite::sqlite3_initialize() } {
            sqlite::SQLITE_OK => Ok(Self {
                find: sqlite::sqlite3_vfs_find,
                register: sqlite::sqlite3_vfs_register,
                unregister: sqlite::sqlite3_vfs_unregister,
                log: sqlite::sqlite3_log,
                malloc: sqlite::sqlite3_malloc,
                uri_parameter: sqlite::sqlite3_uri_parameter,
            }),
            code => Err(SqliteError::Sqlite { what: "initialise", code }),
        }
    }

    /// The SQLite of the program that loads us, from the table that it passes; its version where it is too old.
    ///
    /// # Safety
    /// `routines` must be the `sqlite3_api_routines` that SQLite passes to an extension.
    pub(crate) unsafe fn of_loader(routines: *const c_void) -> Result<Self, c_int> {
        /// A function pointer whose type is looked up by its place.
        type Entry = Option<unsafe extern "C" fn()>;
        // SAFETY: an array of function pointers; the place is in every version that knows VFS objects at all.
        let entry = |place: usize| unsafe { *routines.cast::<Entry>().add(place) };
        let Some(version) = entry(place::LIBVERSION_NUMBER) else { return Err(0) };
        // SAFETY: the type of `sqlite3_libversion_number`.
        let version =
            unsafe { std::mem::transmute::<unsafe extern "C" fn(), unsafe extern "C" fn() -> c_int>(version) };
        // SAFETY: SQLite's own function, without arguments.
        let version = unsafe { version() };
        if version < OLDEST {
            return Err(version);
        }
        let (Some(find), Some(register), Some(unregister), Some(log), Some(malloc), Some(uri_parameter)) = (
            entry(place::VFS_FIND),
            entry(place::VFS_REGISTER),
            entry(place::VFS_UNREGISTER),
            entry(place::LOG),
            entry(place::MALLOC),
            entry(place::URI_PARAMETER),
        ) else {
            return Err(version);
        };
        // SAFETY: the version has all of these places, each with the type that `sqlite3ext.h` gives it.
        unsafe {
            Ok(Self {
                find: std::mem::transmute::<
                    unsafe extern "C" fn(),
                    unsafe extern "C" fn(*const c_char) -> *mut sqlite3_vfs,
                >(find),
                register: std::mem::transmute::<
                    unsafe extern "C" fn(),
                    unsafe extern "C" fn(*mut sqlite3_vfs, c_int) -> c_int,
                >(register),
                unregister: std::mem::transmute::<
                    unsafe extern "C" fn(),
                    unsafe extern "C" fn(*mut sqlite3_vfs) -> c_int,
                >(unregister),
                log: std::mem::transmute::<unsafe extern "C" fn(), unsafe extern "C" fn(c_int, *const c_char, ...)>(
                    log,
                ),
                malloc: std::mem::transmute::<unsafe extern "C" fn(), unsafe extern "C" fn(c_int) -> *mut c_void>(
                    malloc,
                ),
                uri_parameter: std::mem::transmute::<
                    unsafe extern "C" fn(),
                    unsafe extern "C" fn(*const c_char, *const c_char) -> *const c_char,
                >(uri_parameter),
            })
        }
    }

    /// The VFS of that name, or the default one.
    pub(crate) fn find(&self, name: Option<&CStr>) -> Option<NonNull<sqlite3_vfs>> {
        // SAFETY: null means the default VFS; SQLite is initialised.
        NonNull::new(unsafe { (self.find)(name.map_or(std::ptr::null(), CStr::as_ptr)) })
    }

    /// Registers a VFS.
    ///
    /// # Safety
    /// The object, its name and everything it points to must live until it is unregistered and every connection is
    /// closed.
    pub(crate) unsafe fn register(&self, vfs: *mut sqlite3_vfs, as_default: bool) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { (self.register)(vfs, c_int::from(as_default)) }
    }

    /// Takes a VFS off SQLite's list.
    ///
    /// # Safety
    /// `vfs` must be a valid object.
    pub(crate) unsafe fn unregister(&self, vfs: *mut sqlite3_vfs) {
        // SAFETY: the caller's promise.
        unsafe { (self.unregister)(vfs) };
    }

    /// Writes into SQLite's error log.
    pub(crate) fn log(&self, code: c_int, message: &str) {
        let Ok(text) = CString::new(message) else { return };
        // SAFETY: the format takes one string, which is NUL-terminated and outlives the call.
        unsafe { (self.log)(code, c"flashwise: %s".as_ptr(), text.as_ptr()) };
    }

    /// A copy of a text in SQLite's memory, which SQLite frees; null if out of memory.
    pub(crate) fn copy(&self, text: &CStr) -> *mut c_char {
        let bytes = text.to_bytes_with_nul();
        let Ok(length) = c_int::try_from(bytes.len()) else { return std::ptr::null_mut() };
        // SAFETY: any length may be allocated; the copy fits the allocation.
        unsafe {
            let memory = (self.malloc)(length).cast::<c_char>();
            if !memory.is_null() {
                std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), memory, bytes.len());
            }
            memory
        }
    }

    /// A parameter of the URI that a file was opened with.
    ///
    /// # Safety
    /// `name` must be a name that SQLite passed to `xOpen`, of a database, a journal or a log, and still valid.
    pub(crate) unsafe fn uri_parameter(&self, name: *const c_char, key: &CStr) -> Option<String> {
        // SAFETY: the caller's promise; the key is NUL-terminated.
        let value = unsafe { (self.uri_parameter)(name, key.as_ptr()) };
        // SAFETY: SQLite returns null or a NUL-terminated text that lives as long as the name.
        (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned())
    }
}
