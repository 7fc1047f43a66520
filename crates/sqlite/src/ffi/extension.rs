//! The entry points of the loadable extension: `.load libflashwise_sqlite`, and then `file:app.db?vfs=flashwise`; or
//! `.load libflashwise_sqlite sqlite3_flashwisedefault_init`, and then every name.

use std::ffi::{CString, c_char, c_int, c_void};

use libsqlite3_sys as sqlite;

use super::{Api, OLDEST};
use crate::options::VfsOptions;
use crate::vfs::Vfs;

/// The name of the VFS.
const NAME: &std::ffi::CStr = c"flashwise";
/// Defaults for parameters that a URI does not name.
const ENVIRONMENT: &str = "FLASHWISE_SQLITE";
/// `SQLITE_OK_LOAD_PERMANENTLY`: the extension stays when the connection that loaded it is closed.
const OK_FOR_EVER: c_int = 256;

/// Registers the VFS `flashwise` with the SQLite that loads the extension, not as the default one.
///
/// Its techniques are named in the URI of a database, or for all databases in the environment variable
/// `FLASHWISE_SQLITE`; see [`VfsOptions`]. A second call changes nothing.
///
/// # Safety
/// SQLite calls it, with a place for an error message and with its table of functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_flashwisesqlite_init(
    _connection: *mut c_void,
    error_message: *mut *mut c_char,
    routines: *const c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { load(error_message, routines, false) }
}

/// The same as the default VFS: every database that is opened from then on goes through it, for programs that cannot
/// name a VFS. Those that are open already stay where they are.
///
/// SQLite derives an entry point from a file's name where none is given: under the name `flashwise_default.so` the
/// extension is loaded by this one.
///
/// # Safety
/// As [`sqlite3_flashwisesqlite_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_flashwisedefault_init(
    _connection: *mut c_void,
    error_message: *mut *mut c_char,
    routines: *const c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { load(error_message, routines, true) }
}

/// # Safety
/// As [`sqlite3_flashwisesqlite_init`].
unsafe fn load(error_message: *mut *mut c_char, routines: *const c_void, as_default: bool) -> c_int {
    let outcome = std::panic::catch_unwind(|| {
        // SAFETY: SQLite passes its table.
        let api = unsafe { Api::of_loader(routines) }.map_err(|version| (None, too_old(version)))?;
        match api.find(Some(NAME)) {
            Some(there) if as_default => {
                // SAFETY: an object that SQLite has on its list already, and so lives long enough.
                match unsafe { api.register(there.as_ptr(), true) } {
                    sqlite::SQLITE_OK => Ok(()),
                    code => Err((Some(api), format!("flashwise: SQLite refused the default VFS: result code {code}"))),
                }
            }
            Some(_) => Ok(()),
            None => install(&api, as_default).map_err(|why| (Some(api), why)),
        }
    });
    let (api, why) = match outcome {
        Ok(Ok(())) => return OK_FOR_EVER,
        Ok(Err((api, why))) => (api, why),
        Err(_) => (None, String::new()),
    };
    // SAFETY: SQLite passes null or a place for a message in its memory, which it frees.
    if let (Some(api), Ok(why), Some(place)) = (api, CString::new(why), unsafe { error_message.as_mut() }) {
        *place = api.copy(&why);
    }
    sqlite::SQLITE_ERROR
}

fn too_old(version: c_int) -> String {
    format!("flashwise: this SQLite has the version number {version}; {OLDEST} is the oldest supported version")
}

fn install(api: &Api, as_default: bool) -> Result<(), String> {
    let options = match std::env::var(ENVIRONMENT) {
        Ok(text) => VfsOptions::from_text(&text).map_err(|error| format!("flashwise: {ENVIRONMENT}: {error}"))?,
        Err(_) => VfsOptions::default(),
    };
    let name = NAME.to_str().unwrap_or_default();
    let vfs = Vfs::install_with(api, name, options, as_default).map_err(|error| format!("flashwise: {error}"))?;
    // The extension is never unloaded, and connections may outlive anything that could own the VFS.
    std::mem::forget(vfs);
    Ok(())
}
