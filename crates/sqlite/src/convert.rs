//! Conversion between layouts: import, export, and information about a file.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use flashwise_block::input::open_regular;
use flashwise_block::output::{Access, OutputFile};
use flashwise_block::{ByteSize, Extent, ExtentMap, file_extents, start_write_back};
use libsqlite3_sys as sqlite;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use serde::Serialize;

use crate::SqliteError;
use crate::batch;
use crate::bytes::{HEADER_BYTES, Span, page_size_of};
use crate::companion;
use crate::directory::COMPANIONS;
use crate::drive::DriveStore;
use crate::error::{Failure, checked_end, display, with_suffix};
use crate::ffi::unlock_all;
use crate::handle::Handle;
use crate::held_back::RUN_LIMIT;
use crate::layout::{Detected, Header, HeaderError, Layout, VERSION, detect};
use crate::log_layout::LogLayout;
use crate::options::VfsOptions;
use crate::pieces::{Pieces, writes};
use crate::store::{Cut, Store};

/// Result of an export.
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

/// Result of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportSummary {
    /// Layout of the copy.
    pub layout: Layout,
    /// Layout of its write-ahead log.
    pub log: LogLayout,
    /// Whether it takes transactions as atomic batches.
    pub atomic_batches: bool,
    /// Bytes of the plain file.
    pub bytes: ByteSize,
    /// SQLite's page size.
    pub page_size: ByteSize,
    /// Pages of the plain file.
    pub pages: u64,
    /// Whether every page starts at a hot location: the layout has them, and a page is one chunk long.
    pub pages_are_hot: bool,
    /// Pages that start at hot locations of the drive, from the extents of the file; `None` if its file system does not
    /// report them, and for other layouts.
    pub hot_pages: Option<u64>,
}

/// Properties of a database file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileInfo {
    /// `plain`, `headed` or `hot-locations`.
    pub layout: String,
    /// Layout of the write-ahead log: `plain`, `aligned`, `contained` or `sparse`.
    pub log: String,
    /// The stripe or flash page that the log goes by.
    #[serde(rename = "log_unit_bytes")]
    pub log_unit: Option<ByteSize>,
    /// Whether transactions are taken as atomic batches.
    pub atomic_batches: bool,
    /// Version of the header; `None` in a plain file.
    pub version: Option<u32>,
    /// Chunk, from the header.
    #[serde(rename = "chunk_bytes")]
    pub chunk: Option<ByteSize>,
    /// Hot location within a chunk, from the header.
    #[serde(rename = "offset_bytes")]
    pub offset: Option<ByteSize>,
    /// Bytes of the file before the database; the hot location, unless the file does not start at a chunk of the drive.
    #[serde(rename = "shift_bytes")]
    pub shift: Option<ByteSize>,
    /// Pages that start at hot locations of the drive, from the extents of the file; `None` if its file system does not
    /// report them, and for other layouts.
    pub hot_pages: Option<u64>,
    /// Page size that the header was written for.
    #[serde(rename = "layout_page_size_bytes")]
    pub layout_page_size: Option<ByteSize>,
    /// Whether the header matches its checksum; `None` in a plain file.
    pub header_checksum_ok: Option<bool>,
    /// Page size in SQLite's own header; `None` in an empty or damaged database.
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
    pieces: Pieces,
}

impl HostStore {
    fn new(file: File, path: &Path) -> Self {
        Self { file, name: display(path), pieces: Pieces::default() }
    }

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
        let written = writes(offset, data, how).try_for_each(|(at, bytes)| self.file.write_all_at(bytes, at));
        written.map_err(|error| self.failed(sqlite::SQLITE_IOERR_WRITE, "writing", &error))?;
        self.pieces.note(offset, data.len() as u64, how);
        Ok(())
    }

    fn begin(&mut self, batch: Span) {
        let pieces = self.pieces.take_of(batch);
        for span in if pieces.is_empty() { std::slice::from_ref(&batch) } else { &pieces } {
            // It makes nothing durable, so a failure loses nothing: the sync writes the rest.
            let _ = start_write_back(&self.file, ByteSize(span.start), ByteSize(span.length));
        }
    }

    #[allow(clippy::disallowed_methods, reason = "a file that was made for the copy")]
    fn truncate(&mut self, size: u64) -> Result<(), Failure> {
        self.file.set_len(size).map_err(|error| self.failed(sqlite::SQLITE_IOERR_TRUNCATE, "truncating", &error))
    }

    fn sync(&mut self, _flags: c_int) -> Result<(), Failure> {
        self.file.sync_all().map_err(|error| self.failed(sqlite::SQLITE_IOERR_FSYNC, "syncing", &error))
    }
}

/// A plain SQLite file that is ready to be copied.
pub(crate) struct PlainFile<'a> {
    file: File,
    page_bytes: u64,
    quiet: Quiet<'a>,
}

fn open_read(path: &Path) -> Result<File, SqliteError> {
    open_regular(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => not_a_database(path, &error.to_string()),
        _ => SqliteError::os("opening", path, &error),
    })
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

/// Opens a plain SQLite file for an import with these options.
pub(crate) fn open_plain<'a>(path: &'a Path, options: &VfsOptions) -> Result<PlainFile<'a>, SqliteError> {
    let file = open_read(path)?;
    let head = read_head(&file, path)?;
    match detect(&head) {
        Ok(Detected::Plain) => {}
        _ => return Err(not_a_database(path, "it already has a flashwise layout; export it first")),
    }
    let Some(page_bytes) = page_size_of(&head) else {
        return Err(not_a_database(path, "it does not start with SQLite's header"));
    };
    options.layout.check_pages(&display(path), page_bytes)?;
    let quiet = Quiet::begin(&file, path)?;
    Ok(PlainFile { file, page_bytes, quiet })
}

/// Companions of a database, by SQLite's names and by ours.
fn companions(path: &Path) -> impl Iterator<Item = PathBuf> {
    let suffixes = COMPANIONS.iter().flat_map(|&(theirs, ours)| [theirs, ours]).chain([batch::SUFFIX]);
    suffixes.map(|suffix| with_suffix(path, suffix))
}

/// An existing file, without following links; `None` if there is none. A file that cannot be examined may be anything.
fn examine(path: &Path) -> Result<Option<Metadata>, SqliteError> {
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SqliteError::os("examining it", path, &error)),
    }
}

/// Checks that a new database can have a name: a journal, a log or a log of batches of an earlier one would be played
/// into it at its first open. For callers that write it under another name first.
///
/// # Errors
/// [`SqliteError::Exists`], or [`SqliteError::Leftover`] with the file that is beside it.
pub fn check_target(path: &Path) -> Result<(), SqliteError> {
    if examine(path)?.is_some() {
        return Err(SqliteError::Exists(display(path)));
    }
    for companion in companions(path) {
        if examine(&companion)?.is_some() {
            return Err(SqliteError::Leftover { path: display(path), companion: display(&companion) });
        }
    }
    Ok(())
}

/// A journal that is hot, a WAL, or a log of batches holds part of the database.
fn check_companions(path: &Path) -> Result<(), SqliteError> {
    let log_of_batches = with_suffix(path, batch::SUFFIX);
    for companion in companions(path) {
        let Some(found) = examine(&companion)? else { continue };
        let failed = |error| SqliteError::os("reading it", &companion, &error);
        let is_needed = match found.is_file() {
            // Whatever it is, SQLite would read it.
            false => true,
            // Its first block is not made durable.
            true if companion == log_of_batches => found.len() > 0,
            // SQLite overwrites a journal's first bytes with zeros when it is done with it.
            true => {
                let mut first = [0];
                let opened = companion::open_regular(&companion, false);
                let length = opened.and_then(|mut file| file.read(&mut first)).map_err(failed)?;
                length == 1 && first != [0]
            }
        };
        if is_needed {
            return Err(SqliteError::Unfinished { path: display(path), companion: display(&companion) });
        }
    }
    Ok(())
}

/// A database to copy, while nobody may write to it.
struct Quiet<'a> {
    path: &'a Path,
    /// The locked file.
    file: File,
    before: Metadata,
}

impl<'a> Quiet<'a> {
    /// Takes SQLite's SHARED lock, until this is dropped, and looks whether everything is in the file.
    fn begin(file: &File, path: &'a Path) -> Result<Self, SqliteError> {
        /// SQLite's bytes for it, at 1 GiB.
        const SHARED_FIRST: i64 = 0x4000_0002;
        const SHARED_BYTES: i64 = 510;
        let range = libc::flock {
            l_type: libc::F_RDLCK as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: SHARED_FIRST,
            l_len: SHARED_BYTES,
            l_pid: 0,
        };
        // Where a file system has no locks, SQLite's writers have none either, and the look afterwards must do.
        if let Err(nix::Error::EAGAIN | nix::Error::EACCES) = fcntl(file, FcntlArg::F_OFD_SETLK(&range)) {
            return Err(SqliteError::Writing(display(path)));
        }
        let before = file.metadata().map_err(|error| SqliteError::os("examining it", path, &error))?;
        let file = file.try_clone().map_err(|error| SqliteError::os("examining it", path, &error))?;
        let quiet = Self { path, file, before };
        check_companions(path)?;
        Ok(quiet)
    }

    /// Checks whether it was written anyway: a database with a write-ahead log is written without that lock.
    fn end(&self) -> Result<(), SqliteError> {
        let now = std::fs::metadata(self.path).map_err(|error| SqliteError::os("examining it", self.path, &error))?;
        let state = |file: &Metadata| {
            (file.dev(), file.ino(), file.len(), file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec())
        };
        if state(&now) != state(&self.before) {
            return Err(SqliteError::Writing(display(self.path)));
        }
        check_companions(self.path)
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        let _ = unlock_all(&self.file);
    }
}

/// Copies a plain file into a new, empty database, in runs of 2 MiB.
pub(crate) fn copy_in<S: Store>(
    plain: PlainFile<'_>,
    into: &mut Handle<S>,
    options: &VfsOptions,
) -> Result<ImportSummary, SqliteError> {
    if into.mapping().is_none()
        && let Some(header) = options.header(plain.page_bytes)
    {
        into.write_header(&header)?;
    }
    let layout = into.layout();
    let mut from = Handle::plain(HostStore::new(plain.file, plain.quiet.path));
    let bytes = copy(&mut from, into)?;
    plain.quiet.end()?;
    into.sync(sqlite::SQLITE_SYNC_NORMAL)?;
    let pages_are_hot = matches!(layout, Layout::HotLocations { chunk, .. } if chunk.0 == plain.page_bytes);
    let page_size = ByteSize(plain.page_bytes);
    let pages = bytes / plain.page_bytes;
    Ok(ImportSummary {
        layout,
        log: options.log,
        atomic_batches: options.atomic_batch,
        bytes: ByteSize(bytes),
        page_size,
        pages,
        pages_are_hot,
        hot_pages: None,
    })
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
        to.hand_on()?;
        at += count as u64;
    }
}

/// Creates a file that must not exist, lets `write` fill it, and gives it its name when it is complete; on any failure
/// nothing is left.
fn create_new<T>(
    path: &Path,
    access: Access,
    write: impl FnOnce(HostStore) -> Result<T, SqliteError>,
) -> Result<T, SqliteError> {
    let failed = |error| SqliteError::os("creating", path, &error);
    check_target(path)?;
    let mut new = OutputFile::create(path, access).map_err(failed)?;
    let file = new.file().try_clone().map_err(failed)?;
    let written = write(HostStore::new(file, path))?;
    new.publish().map_err(failed)?;
    Ok(written)
}

/// The access of a new file that is made from another one.
fn access_of(path: &Path) -> Result<Access, SqliteError> {
    Access::of(path).map_err(|error| SqliteError::os("examining it", path, &error))
}

/// Writes the content of a database as a plain file, with the access rights of the stored file, if there is one.
pub(crate) fn copy_out<S: Store>(
    from: &mut Handle<S>,
    name: &str,
    host: &Path,
    access: Access,
    is_complete: impl FnOnce() -> Result<(), SqliteError>,
) -> Result<ExportSummary, SqliteError> {
    let mut head = [0; HEADER_BYTES];
    let length = from.read(0, &mut head)?;
    let page_bytes = page_size_of(&head[..length]);
    if length > 0 && page_bytes.is_none() {
        let reason = "flashwise's header is not followed by SQLite's".to_owned();
        return Err(SqliteError::NotADatabase { path: name.to_owned(), reason });
    }
    let layout = from.layout();
    let write = |store| {
        let mut to = Handle::plain(store);
        let bytes = copy(from, &mut to)?;
        is_complete()?;
        Ok(bytes)
    };
    let bytes = create_new(host, access, write)?;
    let pages = page_bytes.map_or(0, |page| bytes / page);
    Ok(ExportSummary { layout, bytes: ByteSize(bytes), page_size: page_bytes.map(ByteSize), pages })
}

/// Converts a database with a flashwise layout to a plain SQLite file. `plain` must be new; it gets the owner and mode
/// of the stored file.
///
/// No connection of this process may have the database open: closing a file drops the locks that the process holds on
/// it, by the rules of POSIX.
///
/// # Errors
/// When the file is plain already, its header is damaged, a journal or a WAL has part of its content, or another
/// process writes to it; when `plain` exists, or a journal or a log of its name; when I/O fails. Then nothing is left.
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
    let quiet = Quiet::begin(&file, stored)?;
    let store = HostStore::new(file, stored);
    let mut from = Handle::database(store, VfsOptions::PLAIN)?;
    copy_out(&mut from, &display(stored), plain, access_of(stored)?, || quiet.end())
}

fn header_error(path: &Path, error: &HeaderError) -> SqliteError {
    SqliteError::Header { path: display(path), reason: error.to_string() }
}

/// Converts a plain SQLite file to a layout. `stored` must be new; it gets the owner and mode of the plain file.
///
/// # Errors
/// When the file is not a plain SQLite database, has a hot journal or a WAL, or another process writes to it; when
/// `stored` exists, or a journal or a log of its name; when the layout is impossible, or is for hot locations and pages
/// are not as long as a chunk; when I/O fails. Then nothing is left.
pub fn import(plain: &Path, stored: &Path, options: &VfsOptions) -> Result<ImportSummary, SqliteError> {
    options.check()?;
    let from = open_plain(plain, options)?;
    let summary = create_new(stored, access_of(plain)?, |mut store| {
        if let Some(header) = options.header(from.page_bytes) {
            let length = from.file.metadata().map_err(|error| SqliteError::os("examining it", plain, &error))?.len();
            let header = header.placed(place(&store.file, length, header.chunk));
            // Unused space after the database is freed.
            store.truncate(checked_end(header.offset, length)?)?;
            store.write(0, &header.block(), Cut::Whole)?;
        }
        copy_in(from, &mut Handle::database(store, *options)?, options)
    })?;
    Ok(ImportSummary { hot_pages: info(stored)?.hot_pages, ..summary })
}

/// Allocates a database on a drive and writes its header, where the file may lie elsewhere than the drive's chunks.
pub(crate) fn write_placed_header(
    plain: &PlainFile<'_>,
    store: &mut DriveStore,
    options: &VfsOptions,
) -> Result<(), SqliteError> {
    let Some(header) = options.header(plain.page_bytes) else { return Ok(()) };
    let path = plain.quiet.path;
    let length = plain.file.metadata().map_err(|error| SqliteError::os("examining it", path, &error))?.len();
    if let Some(border) = store.place(length, header.chunk)? {
        let header = header.placed(border);
        store.truncate(checked_end(header.offset, length)?)?;
        store.write(0, &header.block(), Cut::Whole)?;
    }
    Ok(())
}

/// Allocates space for a database of `length` bytes after a header; returns where in the file the drive's chunks start
/// for most of it. 0, as if the file were the drive, if that is unknown.
fn place(file: &File, length: u64, chunk: u64) -> u64 {
    let room = length.saturating_add(2 * chunk);
    // Space that is allocated at once has few extents. Without such a call, or with too little space, writing fails
    // later.
    if rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, room).is_err() {
        return 0;
    }
    // It has no name yet.
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    file_extents(&path).map_or(0, |extents| border(&extents, chunk))
}

/// Where the drive's chunks start in most of a file's bytes, modulo the chunk.
pub(crate) fn border(extents: &ExtentMap, chunk: u64) -> u64 {
    let mut bytes_of: BTreeMap<u64, u64> = BTreeMap::new();
    for Extent { offset, drive_offset, length } in extents.extents() {
        let border = (offset.0 % chunk + chunk - drive_offset.0 % chunk) % chunk;
        *bytes_of.entry(border).or_default() += length.0;
    }
    // Of two equally common ones the smaller one: a file that starts at a chunk is preferred.
    bytes_of
        .into_iter()
        .max_by_key(|&(border, bytes)| (bytes, std::cmp::Reverse(border)))
        .map_or(0, |(border, _)| border)
}

/// The pages of a database that start at hot locations of the drive.
fn hot_pages(extents: &ExtentMap, header: &Header, page: u64, pages: u64) -> Option<u64> {
    let Layout::HotLocations { chunk, offset } = header.layout() else { return None };
    let is_hot = |page_start: u64| {
        let place = extents.to_drive(ByteSize(page_start));
        place.is_some_and(|place| place.0 % chunk.0 == offset.0)
    };
    Some((0..pages).filter(|number| is_hot(header.offset + number * page)).count() as u64)
}

/// Examines a database file; changes nothing.
///
/// # Errors
/// When the file cannot be read, is not a database of either kind, or has an unreadable header. A header with only a
/// wrong checksum is reported in [`FileInfo::header_checksum_ok`].
pub fn info(path: &Path) -> Result<FileInfo, SqliteError> {
    let file = open_read(path)?;
    let head = read_head(&file, path)?;
    let stored_bytes = file.metadata().map_err(|error| SqliteError::os("examining it", path, &error))?.len();
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
    let mut store = HostStore::new(file, path);
    let length = store.read(shift, &mut first)?;
    let page_bytes = page_size_of(&first[..length]);
    if header.is_none() && page_bytes.is_none() && stored_bytes > 0 {
        return Err(not_a_database(path, "it starts with neither SQLite's header nor flashwise's"));
    }
    let database_bytes = stored_bytes.saturating_sub(shift);
    let pages = page_bytes.map(|page| database_bytes / page);
    let hot_pages = header
        .zip(page_bytes)
        .zip(pages)
        .and_then(|((header, page), pages)| hot_pages(&file_extents(path).ok()?, &header, page, pages));
    Ok(FileInfo {
        layout: header.map_or(Layout::Plain, |header| header.layout()).name().to_owned(),
        log: log.name().to_owned(),
        log_unit: Some(ByteSize(log.unit())).filter(|unit| unit.0 > 0),
        atomic_batches: header.is_some_and(|header| header.identity != 0),
        version: header.map(|_| VERSION),
        chunk: header.map(|header| ByteSize(header.chunk)),
        offset: header.map(|header| match header.layout() {
            Layout::HotLocations { offset, .. } => offset,
            _ => ByteSize(header.offset),
        }),
        shift: header.map(|header| ByteSize(header.offset)),
        hot_pages,
        layout_page_size: header.map(|header| ByteSize(header.page_bytes)),
        header_checksum_ok: checksum_ok,
        page_size: page_bytes.map(ByteSize),
        pages,
        database_bytes: ByteSize(database_bytes),
        stored_bytes: ByteSize(stored_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u64 = 65536;

    fn map(extents: &[(u64, u64)]) -> ExtentMap {
        let mut offset = 0;
        let extents = extents.iter().map(|&(drive_offset, length)| {
            let extent =
                Extent { offset: ByteSize(offset), drive_offset: ByteSize(drive_offset), length: ByteSize(length) };
            offset += length;
            extent
        });
        let extents: Vec<Extent> = extents.collect();
        let capacity = ByteSize(extents.iter().map(|extent| extent.length.0).sum());
        ExtentMap::new("disk", extents, capacity).unwrap()
    }

    fn header(border: u64) -> Header {
        let layout = Layout::HotLocations { chunk: ByteSize(CHUNK), offset: ByteSize(32768) };
        Header::new(layout, LogLayout::Plain, false, CHUNK).unwrap().placed(border)
    }

    #[test]
    fn chunks_begin_where_they_do_in_most_of_the_file() {
        assert_eq!(border(&map(&[(7 * CHUNK, 10 * CHUNK)]), CHUNK), 0);
        assert_eq!(border(&map(&[(7 * CHUNK + 4096, 10 * CHUNK)]), CHUNK), CHUNK - 4096);
        let two = map(&[(4096, 3 * CHUNK), (90 * CHUNK + 8192, 4 * CHUNK)]);
        assert_eq!(border(&two, CHUNK), CHUNK - 8192, "the longer of two");
    }

    #[test]
    fn every_page_of_a_file_in_one_piece_is_at_a_hot_location_wherever_it_begins() {
        for begin in (0..CHUNK).step_by(4096) {
            let extents = map(&[(9 * CHUNK + begin, 20 * CHUNK)]);
            let header = header(border(&extents, CHUNK));
            assert_eq!(hot_pages(&extents, &header, CHUNK, 18), Some(18), "begin {begin}");
        }
    }

    #[test]
    fn a_database_works_wherever_chunks_begin_in_its_file() {
        use crate::{Backend, Vfs};
        use rusqlite::{Connection, OpenFlags};
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain.db");
        let rows = "PRAGMA page_size = 65536; CREATE TABLE t (k INTEGER PRIMARY KEY, v);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60) INSERT INTO t SELECT i, zeroblob(9000) FROM n";
        Connection::open(&plain).unwrap().execute_batch(rows).unwrap();
        let bytes = std::fs::read(&plain).unwrap();
        for at in [4096, 32768, 36864, 65024] {
            let (stored, again) = (dir.path().join(format!("{at}.db")), dir.path().join(format!("{at}-again.db")));
            std::fs::write(&stored, [header(at).block(), bytes.clone()].concat()).unwrap();
            export(&stored, &again).unwrap();
            assert!(std::fs::read(&again).unwrap() == bytes, "chunks from {at} on: exported as it was");

            let vfs = Vfs::register(&format!("border-{at}"), Backend::Directory, VfsOptions::PLAIN).unwrap();
            let db = Connection::open_with_flags_and_vfs(&stored, OpenFlags::default(), vfs.name()).unwrap();
            db.execute_batch("UPDATE t SET v = zeroblob(20000) WHERE k % 3 = 0; DELETE FROM t WHERE k > 50").unwrap();
            let asked =
                "SELECT count(*) || ' ' || sum(length(v)) || ' ' || integrity_check FROM t, pragma_integrity_check";
            assert_eq!(db.query_row(asked, [], |row| row.get::<_, String>(0)).unwrap(), "50 626000 ok");
            let info = info(&stored).unwrap();
            assert_eq!((info.offset, info.shift.unwrap().0), (Some(ByteSize(32768)), header(at).offset));
        }
    }

    /// Earlier versions created such databases, and let a `VACUUM` make them.
    #[test]
    fn a_database_whose_pages_are_no_chunks_opens_and_is_written_as_before() {
        use crate::{Backend, Vfs};
        use rusqlite::{Connection, OpenFlags};
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain.db");
        let rows = "CREATE TABLE t (k INTEGER PRIMARY KEY, v);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60) INSERT INTO t SELECT i, zeroblob(9000) FROM n";
        Connection::open(&plain).unwrap().execute_batch(&format!("PRAGMA page_size = 4096; {rows}")).unwrap();
        let bytes = std::fs::read(&plain).unwrap();
        let asked = "SELECT count(*) || ' ' || sum(length(v)) || ' ' || integrity_check FROM t, pragma_integrity_check";
        // The page size of the header, and the one that a VACUUM is allowed.
        for (created, vacuum) in [(4096, 8192), (CHUNK, CHUNK)] {
            for (number, techniques) in ["", "use-hot-locations=64k+32k"].into_iter().enumerate() {
                let name = |what: &str| dir.path().join(format!("{created}-{number}-{what}.db"));
                let (stored, again) = (name("stored"), name("again"));
                let header = Header { page_bytes: created, ..header(0) };
                std::fs::write(&stored, [header.block(), bytes.clone()].concat()).unwrap();
                assert_eq!(info(&stored).unwrap().page_size, Some(ByteSize(4096)));
                export(&stored, &again).unwrap();
                assert!(std::fs::read(&again).unwrap() == bytes, "{created}, {techniques}: exported as it was");

                let options = VfsOptions::from_text(techniques).unwrap();
                let vfs = Vfs::register(&format!("as-before-{created}-{number}"), Backend::Directory, options).unwrap();
                let db = Connection::open_with_flags_and_vfs(&stored, OpenFlags::default(), vfs.name()).unwrap();
                db.execute_batch(
                    "PRAGMA cache_size = 3; PRAGMA page_size = 1024; BEGIN; UPDATE t SET v = 0; ROLLBACK;
                     UPDATE t SET v = zeroblob(20000) WHERE k % 3 = 0; DELETE FROM t WHERE k > 50",
                )
                .unwrap();
                assert_eq!(db.query_row(asked, [], |row| row.get::<_, String>(0)).unwrap(), "50 626000 ok");
                db.execute_batch(&format!("PRAGMA page_size = 4096; VACUUM; PRAGMA page_size = {vacuum}; VACUUM"))
                    .unwrap();
                drop(db);
                let db = Connection::open_with_flags_and_vfs(&stored, OpenFlags::default(), vfs.name()).unwrap();
                assert_eq!(db.query_row(asked, [], |row| row.get::<_, String>(0)).unwrap(), "50 626000 ok");
                assert_eq!(
                    db.query_row("PRAGMA page_size", [], |row| row.get::<_, i64>(0)).unwrap().unsigned_abs(),
                    vacuum
                );
            }
        }
    }

    #[test]
    fn pages_in_a_piece_that_lies_otherwise_are_not_counted() {
        let extents = map(&[(0, 4 * CHUNK), (90 * CHUNK + 4096, 2 * CHUNK)]);
        let header = header(border(&extents, CHUNK));
        assert_eq!(
            hot_pages(&extents, &header, CHUNK, 5),
            Some(4),
            "the fourth lies in both pieces and begins in the first"
        );
    }
}
