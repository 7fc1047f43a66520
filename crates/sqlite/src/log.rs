//! A write-ahead log in a layout, as SQLite sees it: the log that it would have written itself.
//!
//! The layout of an existing log is in its own header, that of a new one in its database's. SQLite writes its header of
//! 32 bytes first, which contains the page size; ours is written with it, in the same sector-sized piece, and so is
//! durable with SQLite's own sync before any frame is valid. Recovery is SQLite's: frames have salts and a checksum
//! that continues from frame to frame, so that a missing, old or torn one ends the log. `crate::log_layout` draws the
//! places of the bytes.

use std::borrow::Cow;
use std::ffi::c_int;

use libsqlite3_sys as sqlite;

use crate::bytes::Span;
use crate::error::{Failure, checked_end};
use crate::ffi::ParentFile;
use crate::file::{FileStore, SqliteFile};
use crate::handle::Handle;
use crate::log_gather::GatheredLog;
use crate::log_layout::{Geometry, LOG_HEADER, LogHeader, LogLayout, SQLITE_HEADER};
use crate::shm::SharedMemory;
use crate::store::Cut;

/// Opens a log. Frames in a layout are gathered, those of a plain log only if a connection `gathers` them.
pub(crate) fn open_log<S: FileStore + 'static>(
    store: S,
    wanted: LogLayout,
    gathers: bool,
) -> Result<Box<dyn SqliteFile>, Failure> {
    Ok(match wanted {
        LogLayout::Plain if !gathers => Box::new(Handle::plain(store)),
        LogLayout::Plain => Box::new(GatheredLog::new(Handle::plain(store))),
        wanted => Box::new(GatheredLog::new(Log::open(store, wanted)?)),
    })
}

/// SQLite's log starts with one of these, by the order of bytes of its checksums.
const SQLITE_MAGICS: [u32; 2] = [0x377f_0682, 0x377f_0683];

/// One open log.
pub(crate) struct Log<S> {
    store: S,
    /// The layout that a new log takes.
    wanted: LogLayout,
    /// `None` while the file is empty.
    geometry: Option<Geometry>,
    poisoned: Option<String>,
}

impl<S: FileStore> Log<S> {
    /// Opens a log; `wanted` must not be plain.
    pub(crate) fn open(store: S, wanted: LogLayout) -> Result<Self, Failure> {
        let mut log = Self { store, wanted, geometry: None, poisoned: None };
        log.decide()?;
        Ok(log)
    }

    fn failure(&self, code: c_int, why: &str) -> Failure {
        Failure::new(code, format!("{}: {why}", self.store.name()))
    }

    /// Reads the first bytes of the file until it has some.
    fn decide(&mut self) -> Result<Option<Geometry>, Failure> {
        if self.geometry.is_some() || self.store.size()? == 0 {
            return Ok(self.geometry);
        }
        let mut head = [0; LOG_HEADER];
        let length = self.store.read(0, &mut head)?;
        let header = LogHeader::decode(&head[..length]).map_err(|why| self.failure(sqlite::SQLITE_CORRUPT, &why))?;
        self.geometry = header.and_then(|header| Geometry::new(header.layout, header.page));
        Ok(self.geometry)
    }

    fn check_poison(&self) -> Result<(), Failure> {
        match &self.poisoned {
            None => Ok(()),
            Some(why) => {
                let text = format!("unusable since a sync failed ({why}); close and reopen the database");
                Err(self.failure(sqlite::SQLITE_IOERR, &text))
            }
        }
    }

    /// Starts a log: our header and SQLite's, together.
    fn begin(&mut self, header: &[u8]) -> Result<(), Failure> {
        let field = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let page = u64::from(field(8));
        let geometry = Geometry::new(self.wanted, page).filter(|_| SQLITE_MAGICS.contains(&field(0)));
        let Some(geometry) = geometry else {
            return Err(self.failure(sqlite::SQLITE_IOERR_WRITE, "the written bytes are not the header of a log"));
        };
        let ours = LogHeader { layout: self.wanted, page };
        let both = [&ours.encode()[..], header].concat();
        self.store.write(0, &both, Cut::Whole)?;
        self.geometry = Some(geometry);
        Ok(())
    }
}

/// The bytes of stored places as separate runs, in the order of the file: headers of several frames are adjacent, and
/// so are their pages.
fn runs<'a>(places: &[Span], mut data: &'a [u8]) -> Vec<(u64, Cow<'a, [u8]>)> {
    let mut pieces = Vec::with_capacity(places.len());
    for place in places {
        let (piece, rest) = data.split_at(place.length as usize);
        pieces.push((place.start, piece));
        data = rest;
    }
    pieces.sort_unstable_by_key(|&(start, _)| start);
    let mut runs: Vec<(u64, Cow<[u8]>)> = Vec::with_capacity(pieces.len());
    for (start, piece) in pieces {
        match runs.last_mut() {
            Some((run, bytes)) if *run + bytes.len() as u64 == start => bytes.to_mut().extend_from_slice(piece),
            _ => runs.push((start, Cow::Borrowed(piece))),
        }
    }
    runs
}

impl<S: FileStore> SqliteFile for Log<S> {
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
        let Some(geometry) = self.decide()? else { return Ok(0) };
        checked_end(offset, into.len() as u64)?;
        let mut done = 0;
        for place in geometry.places(Span { start: offset, length: into.len() as u64 }) {
            let length = place.length as usize;
            let there = self.store.read(place.start, &mut into[done..done + length])?;
            done += there;
            if there < length {
                break;
            }
        }
        Ok(done)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Failure> {
        self.check_poison()?;
        if offset == 0 && data.len() as u64 == SQLITE_HEADER {
            return self.begin(data);
        }
        let Some(geometry) = self.decide()? else {
            return Err(self.failure(sqlite::SQLITE_IOERR_WRITE, "a log starts with its header"));
        };
        checked_end(offset, data.len() as u64)?;
        let places = geometry.places(Span { start: offset, length: data.len() as u64 });
        if places.is_empty() && !data.is_empty() {
            return Err(self.failure(sqlite::SQLITE_FULL, "the log would be longer than any file"));
        }
        runs(&places, data).iter().try_for_each(|(start, bytes)| self.store.write(*start, bytes, Cut::Whole))
    }

    fn truncate(&mut self, size: u64) -> Result<(), Failure> {
        self.check_poison()?;
        let Some(geometry) = self.decide()? else { return Ok(()) };
        let stored = geometry.stored(size).min(self.store.size()?);
        self.store.truncate(stored)?;
        if stored == 0 {
            self.geometry = None;
        }
        Ok(())
    }

    fn sync(&mut self, flags: c_int) -> Result<(), Failure> {
        self.check_poison()?;
        let synced = self.store.sync(flags);
        synced.inspect_err(|failure| self.poison(&failure.message))
    }

    fn size(&mut self) -> Result<u64, Failure> {
        let Some(geometry) = self.decide()? else { return Ok(0) };
        Ok(geometry.length(self.store.size()?))
    }

    fn lock(&mut self, level: c_int) -> Result<(), Failure> {
        self.store.lock(level)
    }

    fn unlock(&mut self, level: c_int) -> Result<(), Failure> {
        self.store.unlock(level)
    }

    fn is_reserved(&mut self) -> Result<bool, Failure> {
        self.store.is_reserved()
    }

    fn sector_size(&mut self) -> c_int {
        self.store.sector_size()
    }

    fn characteristics(&mut self) -> c_int {
        self.store.characteristics()
    }

    fn parent(&mut self) -> Option<&mut ParentFile> {
        self.store.parent()
    }

    fn shared_memory(&mut self) -> Option<&mut dyn SharedMemory> {
        None
    }

    fn write_out(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn write_out_unheard(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn is_mapped(&self) -> bool {
        true
    }

    fn stored_size(&self, size: u64) -> u64 {
        self.geometry.map_or(size, |geometry| geometry.stored(size))
    }

    fn poison(&mut self, why: &str) {
        self.poisoned.get_or_insert_with(|| why.to_owned());
    }
}
