//! Downwards: SQLite's own VFS and the files that it opens, behind safe methods.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};

use libsqlite3_sys as sqlite;
use sqlite::{sqlite3_file, sqlite3_io_methods, sqlite3_vfs};

use super::Api;
use crate::SqliteError;
use crate::error::Failure;
use crate::options::Parent;
use crate::shm::SharedMemory;

/// Some SQLite builds look for URI parameters around a file name; zeros on both sides mean that there are none.
const NAME_MARGIN: usize = 4;

/// A file name that SQLite's VFS can keep a pointer to.
#[derive(Debug)]
pub(crate) struct FileName {
    /// NUL-terminated; valid for as long as this value lives.
    start: *const c_char,
    /// The bytes, where they are our own.
    _owned: Option<Box<[u8]>>,
}

// SAFETY: the name is never written to after its creation, and both kinds outlive the value from any thread.
unsafe impl Send for FileName {}
// SAFETY: as above.
unsafe impl Sync for FileName {}

impl FileName {
    /// The name that SQLite passes to `xOpen`.
    ///
    /// # Safety
    /// `start` must point to a NUL-terminated string that does not change until the file is closed, as SQLite promises
    /// of `xOpen`'s name.
    pub(crate) unsafe fn from_sqlite(start: *const c_char) -> Self {
        Self { start, _owned: None }
    }

    /// A name of our own.
    pub(crate) fn owned(name: &[u8]) -> Self {
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        let mut bytes = vec![0; length + 2 * NAME_MARGIN].into_boxed_slice();
        bytes[NAME_MARGIN..NAME_MARGIN + length].copy_from_slice(&name[..length]);
        Self { start: bytes[NAME_MARGIN..].as_ptr().cast(), _owned: Some(bytes) }
    }

    fn as_c(&self) -> &CStr {
        // SAFETY: both constructors guarantee a NUL-terminated string that lives as long as `self`.
        unsafe { CStr::from_ptr(self.start) }
    }

    /// NUL-terminated.
    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.start
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.as_c().to_bytes()
    }
}

/// One of SQLite's own VFSs.
#[derive(Clone, Copy)]
pub(crate) struct ParentVfs(NonNull<sqlite3_vfs>);

// SAFETY: SQLite's built-in VFS objects are static, and their methods may be called from any thread.
unsafe impl Send for ParentVfs {}
// SAFETY: as above.
unsafe impl Sync for ParentVfs {}

impl ParentVfs {
    /// The VFS below, by its name. The default VFS may have been set by a program or another extension, and may
    /// encrypt, or be this one.
    pub(crate) fn named(api: &Api, parent: Parent) -> Result<Self, SqliteError> {
        let name = CString::new(parent.name()).unwrap_or_default();
        api.find(Some(&name)).map(Self).ok_or(SqliteError::NoParent(parent.name()))
    }

    pub(crate) fn as_ptr(self) -> *mut sqlite3_vfs {
        self.0.as_ptr()
    }

    /// The VFS object itself.
    pub(crate) fn get(&self) -> &sqlite3_vfs {
        // SAFETY: the VFS is static; only its `pNext` link, which we do not read, ever changes.
        unsafe { self.0.as_ref() }
    }

    /// Opens a file; without a name, a temporary one.
    pub(crate) fn open(&self, name: Option<FileName>, flags: c_int) -> Result<(ParentFile, c_int), Failure> {
        let shown = name.as_ref().map_or("temporary file".into(), |name| String::from_utf8_lossy(name.bytes()));
        let shown = shown.into_owned();
        let refuse = |code: c_int| Failure::new(code, format!("{shown}: cannot be opened (SQLite result code {code})"));
        let Some(open) = self.get().xOpen else { return Err(refuse(sqlite::SQLITE_CANTOPEN)) };
        let words = usize::try_from(self.get().szOsFile).unwrap_or(0).div_ceil(8).max(1);
        let mut file = ParentFile { memory: vec![0; words].into_boxed_slice(), name };
        let start = file.name.as_ref().map_or(ptr::null(), |name| name.start);
        let mut out_flags = 0;
        // SAFETY: `memory` has the size that the VFS needs and is aligned for any of its members; the name stays valid
        // until the file is closed because `file` owns it; `out_flags` outlives the call.
        let code = unsafe { open(self.as_ptr(), start, file.as_ptr(), flags, &mut out_flags) };
        // A file that failed to open is closed by its destructor if the VFS set its methods, as SQLite does it.
        if code == sqlite::SQLITE_OK { Ok((file, out_flags)) } else { Err(refuse(code)) }
    }

    /// Deletes a file.
    pub(crate) fn delete(&self, name: &[u8], sync_directory: c_int) -> c_int {
        let (Some(delete), name) = (self.get().xDelete, FileName::owned(name)) else { return sqlite::SQLITE_IOERR };
        // SAFETY: the name is NUL-terminated and outlives the call.
        unsafe { delete(self.as_ptr(), name.start, sync_directory) }
    }

    /// Whether a file exists or can be written.
    pub(crate) fn access(&self, name: &FileName, flags: c_int) -> Result<bool, c_int> {
        let Some(access) = self.get().xAccess else { return Err(sqlite::SQLITE_IOERR) };
        let mut answer = 0;
        // SAFETY: the name is NUL-terminated; name and result outlive the call.
        match unsafe { access(self.as_ptr(), name.start, flags, &mut answer) } {
            sqlite::SQLITE_OK => Ok(answer != 0),
            code => Err(code),
        }
    }
}

/// A file that SQLite's own VFS has open.
pub(crate) struct ParentFile {
    /// The VFS's own file object; its first word points to its methods.
    memory: Box<[u64]>,
    /// SQLite's VFS keeps pointers into the name.
    name: Option<FileName>,
}

impl Drop for ParentFile {
    fn drop(&mut self) {
        if let Some(close) = self.methods().and_then(|methods| methods.xClose) {
            // SAFETY: the file is open (its methods are set), and is not used after this.
            unsafe { close(self.as_ptr()) };
        }
    }
}

/// Calls a method of the parent's file, or returns an error if it has none.
macro_rules! call {
    ($file:expr, $method:ident, $missing:expr $(, $argument:expr)*) => {
        match $file.methods().and_then(|methods| methods.$method) {
            // SAFETY: the file is open, it is borrowed exclusively, and all buffers in the arguments outlive the call
            // with the lengths that are passed beside them.
            Some(method) => unsafe { method($file.as_ptr() $(, $argument)*) },
            None => $missing,
        }
    };
}

/// An offset for C; the caller has checked that it fits.
fn signed(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

/// Longest request that is made of SQLite's VFS, its own longest page: "unix" takes lengths modulo 128 KiB.
pub(crate) const LONGEST: usize = 64 << 10;

impl ParentFile {
    fn as_ptr(&mut self) -> *mut sqlite3_file {
        self.memory.as_mut_ptr().cast()
    }

    fn methods(&self) -> Option<&sqlite3_io_methods> {
        // SAFETY: the memory starts with a `sqlite3_file`, zeroed before the VFS fills it in.
        let methods = unsafe { (*self.memory.as_ptr().cast::<sqlite3_file>()).pMethods };
        // SAFETY: a VFS sets it to null or to a static table.
        unsafe { methods.as_ref() }
    }

    pub(crate) fn read(&mut self, offset: u64, into: &mut [u8]) -> c_int {
        for (at, piece) in (offset..).step_by(LONGEST).zip(into.chunks_mut(LONGEST)) {
            let amount = piece.len() as c_int;
            let code = call!(self, xRead, sqlite::SQLITE_IOERR_READ, piece.as_mut_ptr().cast(), amount, signed(at));
            if code != sqlite::SQLITE_OK {
                return code;
            }
        }
        sqlite::SQLITE_OK
    }

    /// Reads as SQLite requested, including zeros after a short read.
    ///
    /// # Safety
    /// `into` must have space for `amount` bytes; they need not be initialised.
    pub(crate) unsafe fn read_as_asked(&mut self, offset: u64, into: *mut c_void, amount: c_int) -> c_int {
        call!(self, xRead, sqlite::SQLITE_IOERR_READ, into, amount, signed(offset))
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> c_int {
        for (at, piece) in (offset..).step_by(LONGEST).zip(data.chunks(LONGEST)) {
            let amount = piece.len() as c_int;
            let code = call!(self, xWrite, sqlite::SQLITE_IOERR_WRITE, piece.as_ptr().cast(), amount, signed(at));
            if code != sqlite::SQLITE_OK {
                return code;
            }
        }
        sqlite::SQLITE_OK
    }

    pub(crate) fn truncate(&mut self, size: u64) -> c_int {
        call!(self, xTruncate, sqlite::SQLITE_IOERR_TRUNCATE, signed(size))
    }

    pub(crate) fn sync(&mut self, flags: c_int) -> c_int {
        call!(self, xSync, sqlite::SQLITE_IOERR_FSYNC, flags)
    }

    pub(crate) fn size(&mut self) -> Result<u64, c_int> {
        let mut size = 0;
        match call!(self, xFileSize, sqlite::SQLITE_IOERR_FSTAT, &mut size) {
            sqlite::SQLITE_OK => u64::try_from(size).map_err(|_| sqlite::SQLITE_IOERR_FSTAT),
            code => Err(code),
        }
    }

    pub(crate) fn lock(&mut self, level: c_int) -> c_int {
        call!(self, xLock, sqlite::SQLITE_IOERR_LOCK, level)
    }

    pub(crate) fn unlock(&mut self, level: c_int) -> c_int {
        call!(self, xUnlock, sqlite::SQLITE_IOERR_UNLOCK, level)
    }

    pub(crate) fn is_reserved(&mut self) -> Result<bool, c_int> {
        let mut answer = 0;
        match call!(self, xCheckReservedLock, sqlite::SQLITE_IOERR_CHECKRESERVEDLOCK, &mut answer) {
            sqlite::SQLITE_OK => Ok(answer != 0),
            code => Err(code),
        }
    }

    pub(crate) fn sector_size(&mut self) -> c_int {
        call!(self, xSectorSize, 4096)
    }

    pub(crate) fn characteristics(&mut self) -> c_int {
        call!(self, xDeviceCharacteristics, 0)
    }

    /// Whether the file can share memory with other processes, as WAL needs it.
    pub(crate) fn has_shared_memory(&self) -> bool {
        self.methods().is_some_and(|methods| methods.iVersion >= 2 && methods.xShmMap.is_some())
    }

    /// Whether the name now belongs to another file than the open one, or to none; also if that is unknown.
    pub(crate) fn has_moved(&mut self) -> bool {
        let mut moved: c_int = 1;
        let argument = ptr::from_mut(&mut moved).cast();
        // SAFETY: for this operation the argument is an `int *` for the result.
        let code = unsafe { self.control(sqlite::SQLITE_FCNTL_HAS_MOVED, argument) };
        code != sqlite::SQLITE_OK || moved != 0
    }

    /// Where a span of the file is mapped; null where it is not.
    pub(crate) fn fetch(&mut self, offset: u64, length: usize) -> Result<*mut c_void, c_int> {
        let Ok(amount) = c_int::try_from(length) else { return Ok(ptr::null_mut()) };
        if self.methods().is_none_or(|methods| methods.iVersion < 3) {
            return Ok(ptr::null_mut());
        }
        let mut start = ptr::null_mut();
        match call!(self, xFetch, sqlite::SQLITE_OK, signed(offset), amount, &mut start) {
            sqlite::SQLITE_OK => Ok(start),
            code => Err(code),
        }
    }

    /// Releases a mapped span; with null, the whole mapping.
    ///
    /// # Safety
    /// `page` must be null or the result of [`ParentFile::fetch`] for that offset.
    pub(crate) unsafe fn unfetch(&mut self, offset: u64, page: *mut c_void) -> c_int {
        if self.methods().is_none_or(|methods| methods.iVersion < 3) {
            return sqlite::SQLITE_OK;
        }
        call!(self, xUnfetch, sqlite::SQLITE_OK, signed(offset), page)
    }

    /// Forwards a file control.
    ///
    /// # Safety
    /// `argument` must be what SQLite defines for `operation`.
    pub(crate) unsafe fn control(&mut self, operation: c_int, argument: *mut c_void) -> c_int {
        call!(self, xFileControl, sqlite::SQLITE_NOTFOUND, operation, argument)
    }
}

impl SharedMemory for ParentFile {
    fn map(&mut self, region: c_int, bytes: c_int, extend: bool) -> (c_int, *mut c_void) {
        let (mut out, extend) = (ptr::null_mut(), c_int::from(extend));
        let code = call!(self, xShmMap, sqlite::SQLITE_IOERR_SHMMAP, region, bytes, extend, &mut out);
        (code, out)
    }

    fn lock(&mut self, first: c_int, count: c_int, flags: c_int) -> c_int {
        call!(self, xShmLock, sqlite::SQLITE_IOERR_SHMLOCK, first, count, flags)
    }

    fn barrier(&mut self) {
        call!(self, xShmBarrier, ());
    }

    fn unmap(&mut self, delete: bool) -> c_int {
        call!(self, xShmUnmap, sqlite::SQLITE_OK, c_int::from(delete))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_sqlites_own_whatever_the_default_vfs_is() {
        let api = Api::linked().unwrap();
        let unix = api.find(Some(c"unix")).unwrap();
        // It does all that SQLite's own does, for other tests may open files meanwhile.
        // SAFETY: the object is static; the copy shares all that it points to.
        let copy = sqlite3_vfs { zName: c"a-shim".as_ptr(), pNext: ptr::null_mut(), ..unsafe { *unix.as_ptr() } };
        let shim: *mut sqlite3_vfs = Box::leak(Box::new(copy));
        // SAFETY: both objects live for ever.
        unsafe { api.register(shim, true) };
        let (default, parent) = (api.find(None).unwrap(), ParentVfs::named(&api, Parent::Unix).unwrap());
        // SAFETY: as above.
        unsafe {
            api.register(unix.as_ptr(), true);
            api.unregister(shim);
        }
        assert_eq!((default.as_ptr(), parent.as_ptr()), (shim, unix.as_ptr()));
        for (parent, name) in [(Parent::UnixExcl, c"unix-excl"), (Parent::UnixNone, c"unix-none")] {
            let found = ParentVfs::named(&api, parent).unwrap();
            assert_eq!(found.as_ptr(), api.find(Some(name)).unwrap().as_ptr());
        }
    }
}
