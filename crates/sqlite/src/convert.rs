//! Between layouts: import, export, and what is in a file.

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use flashwise_block::ByteSize;
use libsqlite3_sys as sqlite;
use serde::Serialize;

use crate::SqliteError;
use crate::directory::COMPANIONS;
use crate::error::{Failure, display, with_suffix};
use crate::handle::{Cut, Handle, RUN_LIMIT, Store};
use crate::layout::{Detected, HEADER_BYTES, Header, HeaderError, Layout, Span, cut, detect, page_size_of};
use crate::log_layout::LogLayout;
use crate::options::VfsOptions;

/// What an export wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportSummary {
    /// Layout that the database had.
    pub layout: Layout,
    /// Bytes of the plain file.
    pub bytes: ByteSize,
    /// SQLite's page size; `None` for an empty database.
    pub page_size: Option<ByteSize>,
    /// Pages of the plain file.
    pub pages: u64,
}

/// What an import wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportSummary {
    /// Layout of the copy.
    pub layout: Layout,
    /// Layout of its write-ahead log.
    pub log: LogLayout,
    /// Bytes of the plain file.
    pub bytes: ByteSize,
    /// SQLite's page size.
    pub page_size: ByteSize,
    /// Pages of the plain file.
    pub pages: u64,
    /// Whether every page starts at a hot location: the layout has them, and a page is one chunk long.
    pub pages_are_hot: bool,
}

/// What a database file is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileInfo {
    /// `plain`, `headed` or `hot-locations`.
    pub layout: String,
    /// Layout of the write-ahead log: `plain`, `aligned`, `contained` or `sparse`.
    pub log: String,
    /// The stripe or flash page that the log goes by.
    #[serde(rename = "log_unit_bytes")]
    pub log_unit: Option<ByteSize>,
    /// Version of the header; `None` in a plain file.
    pub version: Option<u32>,
    /// Chunk, from the header.
    #[serde(rename = "chunk_bytes")]
    pub chunk: Option<ByteSize>,
    /// Hot location within a chunk, from the header.
    #[serde(rename = "offset_bytes")]
    pub offset: Option<ByteSize>,
    /// Page size that the header was written for.
    #[serde(rename = "layout_page_size_bytes")]
    pub layout_page_size: Option<ByteSize>,
    /// Whether the header matches its checksum; `None` in a plain file.
    pub header_checksum_ok: Option<bool>,
    /// Page size that SQLite's own header tells; `None` in an empty or damaged database.
    #[serde(rename = "page_size_bytes")]
    pub page_size: Option<ByteSize>,
    /// Pages that the file holds.
    pub pages: Option<u64>,
    /// Bytes of the database without flashwise's header.
    pub database_bytes: ByteSize,
    /// Bytes of the file.
    pub stored_bytes: ByteSize,
}

/// An ordinary file.
struct HostStore {
    file: File,
    name: String,
}

impl HostStore {
    fn failed(&self, code: c_int, what: &str, error: &std::io::Error) -> Failure {
        Failure::new(code, format!("{}: {what}: {error}", self.name))
    }
}

impl Store for HostStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&mut self) -> Result<u64, Failure> {
        let metadata = self.file.metadata().map_err(|e| self.failed(sqlite::SQLITE_IOERR_FSTAT, "file size", &e))?;
        Ok(metadata.len())
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
        let mut done = 0;
        while done < into.len() {
            match self.file.read_at(&mut into[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(sqlite::SQLITE_IOERR_READ, "reading", &error)),
            }
        }
        Ok(done)
    }

    fn reserve(&mut self, _end: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8], how: Cut) -> Result<(), Failure> {
        let spans = match how {
            Cut::Whole => vec![Span { start: offset, length: data.len() as u64 }],
            Cut::Chunks(chunk) => cut(offset, data.len() as u64, chunk, u64::MAX),
        };
        for span in spans {
            let at = (span.start - offset) as usize;
            let piece = &data[at..at + span.length as usize];
            self.file
                .write_all_at(piece, span.start)
                .map_err(|error| self.failed(sqlite::SQLITE_IOERR_WRITE, "writing", &error))?;
        }
        Ok(())
    }

    fn truncate(&mut self, size: u64) -> Result<(), Failure> {
        self.file.set_len(size).map_err(|error| self.failed(sqlite::SQLITE_IOERR_TRUNCATE, "truncating", &error))
    }

    fn sync(&mut self, _flags: c_int) -> Result<(), Failure> {
        self.file.sync_all().map_err(|error| self.failed(sqlite::SQLITE_IOERR_FSYNC, "syncing", &error))
    }
}

/// A plain SQLite file that is ready to be copied.
pub(crate) struct PlainFile {
    file: File,
    page_bytes: u64,
    path: String,
}

fn open_read(path: &Path) -> Result<File, SqliteError> {
    let file = File::open(path).map_err(|error| SqliteError::os("opening", path, &error))?;
    let metadata = file.metadata().map_err(|error| SqliteError::os("looking at it", path, &error))?;
    if !metadata.is_file() {
        return Err(not_a_database(path, "it is no ordinary file"));
    }
    Ok(file)
}

fn not_a_database(path: &Path, reason: &str) -> SqliteError {
    SqliteError::NotADatabase { path: display(path), reason: reason.to_owned() }
}

fn read_head(file: &File, path: &Path) -> Result<Vec<u8>, SqliteError> {
    let mut head = Vec::with_capacity(HEADER_BYTES);
    let read = file.take(HEADER_BYTES as u64).read_to_end(&mut head);
    read.map_err(|error| SqliteError::os("reading", path, &error))?;
    Ok(head)
}

/// Opens a plain SQLite file for an import.
pub(crate) fn open_plain(path: &Path) -> Result<PlainFile, SqliteError> {
    let file = open_read(path)?;
    let head = read_head(&file, path)?;
    match detect(&head) {
        Ok(Detected::Plain) => {}
        _ => return Err(not_a_database(path, "it has a flashwise layout already; export it first")),
    }
    let Some(page_bytes) = page_size_of(&head) else {
        return Err(not_a_database(path, "it does not start with SQLite's header"));
    };
    check_companions(path)?;
    Ok(PlainFile { file, page_bytes, path: display(path) })
}

/// A journal that is hot, or a WAL, holds part of the database.
fn check_companions(path: &Path) -> Result<(), SqliteError> {
    for suffix in COMPANIONS.iter().flat_map(|&(theirs, ours)| [theirs, ours]) {
        let companion = with_suffix(path, suffix);
        let mut first = [0];
        let begins = File::open(&companion).and_then(|mut file| file.read(&mut first)).unwrap_or(0);
        // SQLite overwrites a journal's first bytes with zeros when it is done with it.
        if begins == 1 && first != [0] {
            return Err(SqliteError::Unfinished { path: display(path), companion: display(&companion) });
        }
    }
    Ok(())
}

/// Copies a plain file into a new, empty database, in runs of 2 MiB.
pub(crate) fn copy_in<S: Store>(
    plain: PlainFile,
    into: &mut Handle<S>,
    options: &VfsOptions,
) -> Result<ImportSummary, SqliteError> {
    let header = Header::new(options.layout, options.log, plain.page_bytes);
    if let Some(header) = &header {
        into.write_header(header)?;
    }
    let layout = header.map_or(Layout::Plain, |header| header.layout());
    let mut from = Handle::plain(HostStore { file: plain.file, name: plain.path });
    let bytes = copy(&mut from, into)?;
    into.sync(sqlite::SQLITE_SYNC_NORMAL)?;
    let pages_are_hot = matches!(layout, Layout::HotLocations { chunk, .. } if chunk.0 == plain.page_bytes);
    let page_size = ByteSize(plain.page_bytes);
    let pages = bytes / plain.page_bytes;
    Ok(ImportSummary { layout, log: options.log, bytes: ByteSize(bytes), page_size, pages, pages_are_hot })
}

fn copy<A: Store, B: Store>(from: &mut Handle<A>, to: &mut Handle<B>) -> Result<u64, Failure> {
    let mut buffer = vec![0; RUN_LIMIT];
    let mut at = 0;
    loop {
        let count = from.read(at, &mut buffer)?;
        if count == 0 {
            return Ok(at);
        }
        to.write(at, &buffer[..count])?;
        at += count as u64;
    }
}

/// Creates a file that must not exist, lets `write` fill it, and removes it if that fails.
fn create_new<T>(path: &Path, write: impl FnOnce(HostStore) -> Result<T, SqliteError>) -> Result<T, SqliteError> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(path);
    let file = file.map_err(|error| SqliteError::os("creating", path, &error))?;
    let written = write(HostStore { file, name: display(path) });
    if written.is_err() {
        // The failure itself is what the caller must hear of.
        let _ = std::fs::remove_file(path);
    }
    written
}

/// Writes what a database holds as a plain file.
pub(crate) fn copy_out<S: Store>(from: &mut Handle<S>, name: &str, host: &Path) -> Result<ExportSummary, SqliteError> {
    let mut head = [0; HEADER_BYTES];
    let length = from.read(0, &mut head)?;
    let page_bytes = page_size_of(&head[..length]);
    if length > 0 && page_bytes.is_none() {
        let reason = "the bytes behind flashwise's header do not start with SQLite's".to_owned();
        return Err(SqliteError::NotADatabase { path: name.to_owned(), reason });
    }
    let layout = from.layout();
    let bytes = create_new(host, |store| {
        let mut to = Handle::plain(store);
        let bytes = copy(from, &mut to)?;
        to.sync(sqlite::SQLITE_SYNC_NORMAL)?;
        Ok(bytes)
    })?;
    let pages = page_bytes.map_or(0, |page| bytes / page);
    Ok(ExportSummary { layout, bytes: ByteSize(bytes), page_size: page_bytes.map(ByteSize), pages })
}

/// Writes a database that has a flashwise layout as a plain SQLite file. `plain` must be new.
///
/// No connection of this process may have the database open: closing a file drops the locks that the process holds on
/// it, by the rules of POSIX.
///
/// # Errors
/// When the file is plain already, its header is damaged, a journal or a WAL holds part of it, `plain` exists, or I/O
/// fails; a half-written output is removed.
pub fn export(stored: &Path, plain: &Path) -> Result<ExportSummary, SqliteError> {
    let head = read_head(&open_read(stored)?, stored)?;
    match detect(&head).map_err(|error| header_error(stored, &error))? {
        Detected::Shifted(_) => export_any(stored, plain),
        Detected::Plain if page_size_of(&head).is_some() => Err(SqliteError::AlreadyPlain(display(stored))),
        Detected::Plain => Err(not_a_database(stored, "it starts with neither SQLite's header nor flashwise's")),
    }
}

/// Writes a database of any layout as a plain SQLite file.
pub(crate) fn export_any(stored: &Path, plain: &Path) -> Result<ExportSummary, SqliteError> {
    let file = open_read(stored)?;
    let head = read_head(&file, stored)?;
    detect(&head).map_err(|error| header_error(stored, &error))?;
    check_companions(stored)?;
    let store = HostStore { file, name: display(stored) };
    let mut from = Handle::database(store, VfsOptions::PLAIN)?;
    copy_out(&mut from, &display(stored), plain)
}

fn header_error(path: &Path, error: &HeaderError) -> SqliteError {
    SqliteError::Header { path: display(path), reason: error.to_string() }
}

/// Copies a plain SQLite file into a layout. `stored` must be new.
///
/// # Errors
/// When the file is no plain SQLite database or has a hot journal or a WAL, `stored` exists, the layout is impossible,
/// or I/O fails; a half-written output is removed.
pub fn import(plain: &Path, stored: &Path, options: &VfsOptions) -> Result<ImportSummary, SqliteError> {
    options.check()?;
    let from = open_plain(plain)?;
    create_new(stored, |store| copy_in(from, &mut Handle::database(store, *options)?, options))
}

/// Tells what a database file is; changes nothing.
///
/// # Errors
/// When the file cannot be read, is no database of either kind, or has a header that cannot be read at all. A header
/// whose checksum alone is wrong is told in [`FileInfo::header_checksum_ok`].
pub fn info(path: &Path) -> Result<FileInfo, SqliteError> {
    let file = open_read(path)?;
    let head = read_head(&file, path)?;
    let stored_bytes = file.metadata().map_err(|error| SqliteError::os("looking at it", path, &error))?.len();
    let (header, checksum_ok) = match detect(&head) {
        Ok(Detected::Shifted(header)) => (Some(header), Some(true)),
        Ok(Detected::Plain) => (None, None),
        Err(error @ HeaderError::Checksum { .. }) => {
            let header = Header::decode_unchecked(&head).ok_or_else(|| header_error(path, &error))?;
            (Some(header), Some(false))
        }
        Err(error) => return Err(header_error(path, &error)),
    };
    let shift = header.map_or(0, |header| header.offset);
    let log = header.map_or(LogLayout::Plain, |header| header.log);
    let mut first = vec![0; 100];
    let mut store = HostStore { file, name: display(path) };
    let length = store.read(shift, &mut first)?;
    let page_bytes = page_size_of(&first[..length]);
    if header.is_none() && page_bytes.is_none() && stored_bytes > 0 {
        return Err(not_a_database(path, "it starts with neither SQLite's header nor flashwise's"));
    }
    let database_bytes = stored_bytes.saturating_sub(shift);
    Ok(FileInfo {
        layout: header.map_or(Layout::Plain, |header| header.layout()).name().to_owned(),
        log: log.name().to_owned(),
        log_unit: Some(ByteSize(log.unit())).filter(|unit| unit.0 > 0),
        version: header.map(|header| header.version()),
        chunk: header.map(|header| ByteSize(header.chunk)),
        offset: header.map(|header| ByteSize(header.offset)),
        layout_page_size: header.map(|header| ByteSize(header.page_bytes)),
        header_checksum_ok: checksum_ok,
        page_size: page_bytes.map(ByteSize),
        pages: page_bytes.map(|page| database_bytes / page),
        database_bytes: ByteSize(database_bytes),
        stored_bytes: ByteSize(stored_bytes),
    })
}
