//! Errors for the caller of this crate and for SQLite.

use std::ffi::c_int;
use std::path::{Path, PathBuf};

use flashwise_block::{BlockError, ByteSize, Operation};
use libsqlite3_sys as sqlite;

use crate::bytes::is_page_size;

/// What to do where pages and chunk differ.
fn remedy(chunk: ByteSize) -> String {
    let without = "leave the layout out with use-hot-locations=off";
    match is_page_size(chunk.0) {
        true => format!(
            "set the page size to the drive's chunk (in a new database, PRAGMA page_size = {0} before the first table; in \
             a plain file to import, PRAGMA page_size = {0}; VACUUM), or {without}",
            chunk.0
        ),
        false => format!("SQLite has no pages of the drive's chunk, {chunk}: {without}"),
    }
}

/// Why the VFS, an import or an export could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum SqliteError {
    /// A layout that no drive can have.
    #[error("layout: {0}")]
    Layout(String),
    /// Pages that are not as long as a chunk of the drive are not at hot locations.
    #[error("{path}: pages of {page} would not be at hot locations; {}", remedy(*chunk))]
    Pages {
        /// The database.
        path: String,
        /// Its page size.
        page: ByteSize,
        /// The chunk of the drive.
        chunk: ByteSize,
    },
    /// A technique or its value, or the profile for it.
    #[error("{0}")]
    Options(String),
    /// A VFS name that SQLite cannot take.
    #[error("VFS name '{0}': use a non-empty name without NUL characters")]
    Name(String),
    /// The name is taken.
    #[error("the VFS name '{0}' is already registered: choose another name, or drop the VFS that has it")]
    NameTaken(String),
    /// SQLite's own VFS is missing.
    #[error(
        "this SQLite has no VFS '{0}' for flashwise's VFS to use: use a SQLite for Unix, or name another VFS with \
         parent=NAME"
    )]
    NoParent(&'static str),
    /// SQLite itself refused.
    #[error("SQLite refused to {what}: result code {code}")]
    Sqlite {
        /// The refused operation.
        what: &'static str,
        /// SQLite's result code.
        code: i32,
    },
    /// The drive cannot carry a volume.
    #[error("drive '{name}': {reason}")]
    Drive {
        /// The drive's own name.
        name: String,
        /// The missing property.
        reason: String,
    },
    /// A request to the drive failed.
    #[error("{context}: {message}")]
    Io {
        /// The failed operation, with the file.
        context: String,
        /// Why it failed.
        message: String,
    },
    /// The layout header of a file is damaged or unknown.
    #[error("{path}: {reason}")]
    Header {
        /// The file.
        path: String,
        /// What is wrong with the header, and what to do.
        reason: String,
    },
    /// There is nothing to export.
    #[error("{0}: already a plain SQLite file; copy it with any tool, or open it with plain SQLite")]
    AlreadyPlain(String),
    /// Not a database.
    #[error("{path}: not a SQLite database: {reason}")]
    NotADatabase {
        /// The file.
        path: String,
        /// How that shows.
        reason: String,
    },
    /// Nothing is ever overwritten.
    #[error("{0}: exists and is not overwritten; choose a new name, or remove it first")]
    Exists(String),
    /// Companions of an earlier database of that name would be replayed into a new one.
    #[error(
        "{path}: '{companion}' exists and would be read as part of the new database; remove it if its own database is \
         gone, or choose a new name"
    )]
    Leftover {
        /// The new database.
        path: String,
        /// The journal or log beside it.
        companion: String,
    },
    /// The database changes while it is copied.
    #[error("{0}: another process is writing to it; copy it when no process writes")]
    Writing(String),
    /// The file does not exist.
    #[error("{0}: no such file")]
    NotFound(String),
    /// A journal or WAL holds part of the database.
    #[error("{path}: '{companion}' contains changes that are not yet in the file; open and close the database once")]
    Unfinished {
        /// The database.
        path: String,
        /// The journal or WAL beside it.
        companion: String,
    },
    /// The file or the VFS is in use.
    #[error("{what} is in use by {handles} open file(s): close the connections first")]
    InUse {
        /// The file, or the VFS.
        what: String,
        /// How many files are open.
        handles: usize,
    },
    /// The VFS stands on a directory.
    #[error("the VFS '{0}' stores its files in a directory: it has no device to return")]
    NoDevice(String),
}

impl SqliteError {
    /// An operating-system error with the failed operation and the file.
    pub(crate) fn os(what: &str, path: &Path, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => Self::Exists(display(path)),
            std::io::ErrorKind::NotFound => Self::NotFound(display(path)),
            _ => Self::Io { context: format!("{}: {what}", path.display()), message: error.to_string() },
        }
    }
}

impl From<Failure> for SqliteError {
    fn from(failure: Failure) -> Self {
        Self::Io { context: format!("SQLite result code {}", failure.code), message: failure.message }
    }
}

/// A path for people.
pub(crate) fn display(path: &Path) -> String {
    path.display().to_string()
}

/// A path with something appended to its last component.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The failure for SQLite: a result code, and the reason for people.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// SQLite's result code.
    pub code: c_int,
    /// The failed operation, where, and why.
    pub message: String,
}

impl Failure {
    pub(crate) fn new(code: c_int, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A failed request to the drive.
    pub(crate) fn block(operation: Operation, error: &BlockError) -> Self {
        const NO_SPACE: i32 = 28;
        let code = match error {
            BlockError::NoSpace | BlockError::Os { errno: NO_SPACE, .. } => sqlite::SQLITE_FULL,
            _ => Self::code(operation),
        };
        Self::new(code, format!("drive: {error}"))
    }

    /// SQLite's result code for a failed operation.
    pub(crate) fn code(operation: Operation) -> c_int {
        match operation {
            Operation::Read => sqlite::SQLITE_IOERR_READ,
            Operation::Write | Operation::WriteZeroes => sqlite::SQLITE_IOERR_WRITE,
            Operation::Flush => sqlite::SQLITE_IOERR_FSYNC,
            Operation::Trim => sqlite::SQLITE_IOERR_TRUNCATE,
        }
    }

    /// A thread panicked while it held the lock around shared state.
    pub(crate) fn broken_lock() -> Self {
        Self::new(sqlite::SQLITE_IOERR, "an earlier panic left the VFS in an unknown state")
    }
}

/// Offsets come from C as signed numbers.
pub(crate) fn offset(value: i64) -> Result<u64, Failure> {
    u64::try_from(value).map_err(|_| Failure::new(sqlite::SQLITE_IOERR, format!("negative file offset {value}")))
}

/// `a + b`, for a file whose end could lie beyond the address space.
pub(crate) fn checked_end(start: u64, length: u64) -> Result<u64, Failure> {
    start.checked_add(length).filter(|&end| i64::try_from(end).is_ok()).ok_or_else(|| {
        Failure::new(sqlite::SQLITE_FULL, format!("{length} bytes at {start} end beyond any possible file"))
    })
}
