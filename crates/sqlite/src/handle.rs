//! One open file as SQLite sees it, whatever stores it: the layout, the coalescing of writes, and what happens after a
//! failure.
//!
//! ```text
//!   SQLite byte x ──▶ Handle ──▶ Plain:   byte x            ──▶ Store::write, as it comes
//!                            └─▶ Shifted: byte offset + x   ──▶ run buffer ──▶ Store::write, cut at chunk boundaries
//! ```
//!
//! **After a failed sync the handle is poisoned**: nobody can know which of the writes since the last good sync are
//! on the medium, so every later write, truncation and sync fails with `SQLITE_IOERR`. Opening the file again starts
//! afresh, and SQLite then rolls back from its journal. The same holds for a buffered run that cannot be written where
//! SQLite does not listen (unlock, end of a checkpoint). A run that fails within a call whose result SQLite does
//! heed is dropped instead: SQLite then takes all pages of the transaction from its journal, or the checkpoint's from
//! the WAL.

use std::ffi::c_int;

use flashwise_block::ByteSize;
use libsqlite3_sys as sqlite;

use crate::error::{Failure, checked_end};
use crate::layout::{Detected, HEADER_BYTES, Header, Layout, MAX_CHUNK, detect, is_page_size};

/// Longest run of adjacent page writes that is held back: 2 MiB.
pub(crate) const RUN_LIMIT: usize = 2 << 20;

/// How a write may reach the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// As one request, or one after another where the device takes no request as long.
    Whole,
    /// Cut at boundaries of chunks of that length, all pieces together.
    Chunks(u64),
}

/// Where bytes are kept.
pub(crate) trait Store {
    /// Name for messages.
    fn name(&self) -> &str;
    /// Bytes stored.
    fn size(&mut self) -> Result<u64, Failure>;
    /// Reads; fewer bytes than asked only at the end of the file.
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure>;
    /// Makes sure that `end` bytes fit, where that can be known.
    fn reserve(&mut self, end: u64) -> Result<(), Failure>;
    /// Writes; the file grows as needed.
    fn write(&mut self, offset: u64, data: &[u8], how: Cut) -> Result<(), Failure>;
    /// Sets the size.
    fn truncate(&mut self, size: u64) -> Result<(), Failure>;
    /// Makes all that was written durable.
    fn sync(&mut self, flags: c_int) -> Result<(), Failure>;
}

/// Where a database's bytes lie in its stored file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mapping {
    Plain,
    Shifted { chunk: u64, offset: u64 },
}

/// Adjacent writes that are held back, in bytes of the stored file.
#[derive(Debug, Default)]
struct Run {
    start: u64,
    bytes: Vec<u8>,
}

impl Run {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn overlaps(&self, start: u64, length: usize) -> bool {
        !self.bytes.is_empty() && start < self.end() && self.start < start + length as u64
    }

    /// Takes a write if it touches the run; `false` if the run must be written first.
    fn take(&mut self, start: u64, data: &[u8]) -> bool {
        if self.bytes.is_empty() {
            self.start = start;
        }
        let Some(at) = start.checked_sub(self.start).and_then(|at| usize::try_from(at).ok()) else { return false };
        let end = at.saturating_add(data.len());
        if at > self.bytes.len() || (end > RUN_LIMIT && !self.bytes.is_empty()) {
            return false;
        }
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        self.bytes[at..end].copy_from_slice(data);
        true
    }
}

/// One open file.
pub(crate) struct Handle<S> {
    store: S,
    /// The layout that a new database takes.
    wanted: Layout,
    /// `None` until the file is known to be one or the other; an empty file is neither.
    mapping: Option<Mapping>,
    run: Run,
    poisoned: Option<String>,
}

impl<S: Store> Handle<S> {
    /// A database, whose layout is in its header, or to be chosen.
    pub(crate) fn database(store: S, wanted: Layout) -> Result<Self, Failure> {
        let mut handle = Self { store, wanted, mapping: None, run: Run::default(), poisoned: None };
        handle.decide()?;
        Ok(handle)
    }

    /// Any other file.
    pub(crate) fn plain(store: S) -> Self {
        let mapping = Some(Mapping::Plain);
        Self { store, wanted: Layout::Plain, mapping, run: Run::default(), poisoned: None }
    }

    pub(crate) fn store(&mut self) -> &mut S {
        &mut self.store
    }

    pub(crate) fn mapping(&self) -> Option<Mapping> {
        self.mapping
    }

    /// The layout in force; an empty file is plain.
    pub(crate) fn layout(&self) -> Layout {
        match self.mapping {
            Some(Mapping::Shifted { chunk, offset }) => {
                Layout::HotLocations { chunk: ByteSize(chunk), offset: ByteSize(offset) }
            }
            _ => Layout::Plain,
        }
    }

    /// Whether the database is shifted, or will be once it is written.
    pub(crate) fn is_shifted(&self) -> bool {
        match self.mapping {
            Some(mapping) => mapping != Mapping::Plain,
            None => self.wanted != Layout::Plain,
        }
    }

    /// How far a byte of the database lies behind its place in a plain file.
    pub(crate) fn shift(&self) -> u64 {
        match self.mapping {
            Some(Mapping::Shifted { offset, .. }) => offset,
            _ => 0,
        }
    }

    /// No later write or sync may pretend that the data is safe.
    pub(crate) fn poison(&mut self, why: &str) {
        self.run.bytes.clear();
        self.poisoned.get_or_insert_with(|| why.to_owned());
    }

    fn check_poison(&self) -> Result<(), Failure> {
        match &self.poisoned {
            None => Ok(()),
            Some(why) => {
                let text = format!("{}: unusable since a sync failed ({why}); close and reopen it", self.store.name());
                Err(Failure::new(sqlite::SQLITE_IOERR, text))
            }
        }
    }

    /// Looks at the first bytes of the file until it has some.
    fn decide(&mut self) -> Result<Option<Mapping>, Failure> {
        if self.mapping.is_some() {
            return Ok(self.mapping);
        }
        let size = self.store.size()?;
        if size == 0 {
            return Ok(None);
        }
        let mut head = [0; HEADER_BYTES];
        let length = self.store.read(0, &mut head)?;
        let detected = detect(&head[..length])
            .map_err(|error| Failure::new(sqlite::SQLITE_CORRUPT, format!("{}: {error}", self.store.name())))?;
        self.mapping = match detected {
            Detected::Shifted(Header { chunk, offset, .. }) => Some(Mapping::Shifted { chunk, offset }),
            // A power cut while the header was written can leave a file that has a size but no bytes yet. No page was
            // written before the header was durable, so such a file is a new one.
            Detected::Plain if self.wanted != Layout::Plain && self.is_blank(&head[..length], size)? => None,
            Detected::Plain => Some(Mapping::Plain),
        };
        Ok(self.mapping)
    }

    fn is_blank(&mut self, head: &[u8], size: u64) -> Result<bool, Failure> {
        if size > MAX_CHUNK || head.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        let mut all = vec![0; size as usize];
        let length = self.store.read(0, &mut all)?;
        Ok(all[..length].iter().all(|&byte| byte == 0))
    }

    /// Chooses the layout of a new database at its first write: the header is durable before the first page comes.
    fn create(&mut self, first_write: usize) -> Result<Mapping, Failure> {
        let mapping = match self.wanted {
            Layout::Plain => Mapping::Plain,
            Layout::HotLocations { chunk, offset } => {
                // SQLite writes a database page by page, so the first write is as long as a page.
                let page_bytes = Some(first_write as u64).filter(|&bytes| is_page_size(bytes)).unwrap_or(chunk.0);
                let header = Header { chunk: chunk.0, offset: offset.0, page_bytes };
                self.write_header(&header)?;
                Mapping::Shifted { chunk: chunk.0, offset: offset.0 }
            }
        };
        self.mapping = Some(mapping);
        Ok(mapping)
    }

    /// Writes a header to an empty file and syncs it.
    pub(crate) fn write_header(&mut self, header: &Header) -> Result<(), Failure> {
        self.store.write(0, &header.block(), Cut::Chunks(header.chunk))?;
        let synced = self.store.sync(sqlite::SQLITE_SYNC_NORMAL);
        self.poisoned_by(synced)?;
        self.mapping = Some(Mapping::Shifted { chunk: header.chunk, offset: header.offset });
        Ok(())
    }

    fn poisoned_by(&mut self, synced: Result<(), Failure>) -> Result<(), Failure> {
        synced.inspect_err(|failure| self.poison(&failure.message))
    }

    /// Reads; tells how many bytes there were.
    pub(crate) fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
        match self.decide()? {
            None => Ok(0),
            Some(Mapping::Plain) => self.store.read(offset, into),
            Some(Mapping::Shifted { offset: shift, .. }) => {
                let at = checked_end(shift, offset)?;
                checked_end(at, into.len() as u64)?;
                if self.run.overlaps(at, into.len()) {
                    self.write_out()?;
                }
                self.store.read(at, into)
            }
        }
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Failure> {
        self.check_poison()?;
        let mapping = match self.decide()? {
            Some(mapping) => mapping,
            None => self.create(data.len())?,
        };
        let Mapping::Shifted { offset: shift, .. } = mapping else {
            return self.store.write(offset, data, Cut::Whole);
        };
        let at = checked_end(shift, offset)?;
        // A full drive is told now, not when the run is written.
        self.store.reserve(checked_end(at, data.len() as u64)?)?;
        if !self.run.take(at, data) {
            self.write_out()?;
            self.run.take(at, data);
        }
        Ok(())
    }

    /// Writes what is held back. On failure it is dropped: the caller tells SQLite.
    pub(crate) fn write_out(&mut self) -> Result<(), Failure> {
        let run = std::mem::take(&mut self.run);
        match self.mapping {
            Some(Mapping::Shifted { chunk, .. }) if !run.bytes.is_empty() => {
                self.check_poison()?;
                self.store.write(run.start, &run.bytes, Cut::Chunks(chunk))
            }
            _ => Ok(()),
        }
    }

    /// Writes what is held back where SQLite does not listen to the result.
    pub(crate) fn write_out_unheard(&mut self) -> Result<(), Failure> {
        let written = self.write_out();
        self.poisoned_by(written)
    }

    pub(crate) fn truncate(&mut self, size: u64) -> Result<(), Failure> {
        self.check_poison()?;
        self.write_out()?;
        self.decide()?;
        self.store.truncate(checked_end(self.shift(), size)?)
    }

    pub(crate) fn sync(&mut self, flags: c_int) -> Result<(), Failure> {
        self.check_poison()?;
        let synced = self.write_out().and_then(|()| self.store.sync(flags));
        self.poisoned_by(synced)
    }

    /// Size of the database.
    pub(crate) fn size(&mut self) -> Result<u64, Failure> {
        self.write_out()?;
        match self.decide()? {
            None => Ok(0),
            Some(_) => Ok(self.store.size()?.saturating_sub(self.shift())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store in memory that can fail, and remembers its writes.
    #[derive(Default)]
    struct Memory {
        bytes: Vec<u8>,
        writes: Vec<(u64, usize, Cut)>,
        syncs: usize,
        fail_sync: bool,
        fail_write: bool,
    }

    impl Store for Memory {
        fn name(&self) -> &str {
            "memory"
        }
        fn size(&mut self) -> Result<u64, Failure> {
            Ok(self.bytes.len() as u64)
        }
        fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
            let there = self.bytes.get(offset as usize..).unwrap_or(&[]);
            let length = there.len().min(into.len());
            into[..length].copy_from_slice(&there[..length]);
            Ok(length)
        }
        fn reserve(&mut self, _end: u64) -> Result<(), Failure> {
            Ok(())
        }
        fn write(&mut self, offset: u64, data: &[u8], how: Cut) -> Result<(), Failure> {
            if self.fail_write {
                return Err(Failure::new(sqlite::SQLITE_IOERR_WRITE, "told to fail"));
            }
            let end = offset as usize + data.len();
            self.bytes.resize(self.bytes.len().max(end), 0);
            self.bytes[offset as usize..end].copy_from_slice(data);
            self.writes.push((offset, data.len(), how));
            Ok(())
        }
        fn truncate(&mut self, size: u64) -> Result<(), Failure> {
            self.bytes.resize(size as usize, 0);
            Ok(())
        }
        fn sync(&mut self, _flags: c_int) -> Result<(), Failure> {
            self.syncs += 1;
            if self.fail_sync { Err(Failure::new(sqlite::SQLITE_IOERR_FSYNC, "told to fail")) } else { Ok(()) }
        }
    }

    const HOT: Layout = Layout::HotLocations { chunk: ByteSize::kib(64), offset: ByteSize::kib(32) };
    const K: u64 = 1024;

    fn hot() -> Handle<Memory> {
        Handle::database(Memory::default(), HOT).unwrap()
    }

    #[test]
    fn the_header_is_written_and_synced_before_the_first_page() {
        let mut file = hot();
        file.write(0, &[1; 65536]).unwrap();
        assert_eq!(file.store.writes, [(0, 32768, Cut::Chunks(65536))]);
        assert_eq!(file.store.syncs, 1);
        file.sync(0).unwrap();
        assert_eq!(file.store.writes[1..], [(32768, 65536, Cut::Chunks(65536))]);
        assert_eq!(file.size().unwrap(), 65536);
    }

    #[test]
    fn adjacent_writes_are_one_run_up_to_its_limit() {
        let mut file = hot();
        for page in 0..40 {
            file.write(page * 64 * K, &[page as u8; 65536]).unwrap();
        }
        file.sync(0).unwrap();
        let written: Vec<_> = file.store.writes[1..].iter().map(|&(at, length, _)| (at, length as u64)).collect();
        assert_eq!(written, [(32 * K, 2048 * K), (2080 * K, 512 * K)]);
    }

    #[test]
    fn a_read_of_what_is_held_back_sees_it_and_another_page_does_not_wait() {
        let mut file = hot();
        file.write(0, &[1; 65536]).unwrap();
        file.sync(0).unwrap();
        file.write(64 * K, &[2; 65536]).unwrap();
        file.write(64 * K, &[3; 4096]).unwrap();
        let mut page = [0; 16];
        file.read(0, &mut page).unwrap();
        assert_eq!(file.store.writes.len(), 2, "a read elsewhere leaves the run alone");
        file.read(68 * K - 8, &mut page).unwrap();
        assert_eq!(page, [3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(file.store.writes.len(), 3);
    }

    #[test]
    fn after_a_failed_sync_every_write_and_sync_fails() {
        for layout in [Layout::Plain, HOT] {
            let mut file = Handle::database(Memory::default(), layout).unwrap();
            file.write(0, &[1; 65536]).unwrap();
            file.store.fail_sync = true;
            assert_eq!(file.sync(0).unwrap_err().code, sqlite::SQLITE_IOERR_FSYNC);
            file.store.fail_sync = false;
            let again = file.sync(0).unwrap_err();
            assert_eq!(again.code, sqlite::SQLITE_IOERR);
            assert!(again.message.contains("reopen"), "{}", again.message);
            assert_eq!(file.write(0, &[1; 512]).unwrap_err().code, sqlite::SQLITE_IOERR);
            assert_eq!(file.truncate(0).unwrap_err().code, sqlite::SQLITE_IOERR);
            file.read(0, &mut [0; 512]).unwrap();
        }
    }

    #[test]
    fn a_run_that_fails_unheard_poisons_and_one_that_is_told_does_not() {
        for heard in [true, false] {
            let mut file = hot();
            file.write(0, &[1; 65536]).unwrap();
            file.store.fail_write = true;
            let failed = if heard { file.size().map(drop) } else { file.write_out_unheard() };
            assert!(failed.is_err());
            file.store.fail_write = false;
            assert_eq!(file.write(0, &[2; 65536]).is_ok(), heard);
        }
    }

    #[test]
    fn a_file_that_a_power_cut_left_blank_is_new_and_one_with_bytes_is_plain() {
        let blank = Memory { bytes: vec![0; 32768], ..Memory::default() };
        let mut file = Handle::database(blank, HOT).unwrap();
        assert_eq!((file.mapping(), file.size().unwrap()), (None, 0));
        file.write(0, &[1; 65536]).unwrap();
        assert!(file.is_shifted());
        let plain = Memory { bytes: b"SQLite format 3\0".to_vec(), ..Memory::default() };
        assert_eq!(Handle::database(plain, HOT).unwrap().mapping(), Some(Mapping::Plain));
    }

    #[test]
    fn a_header_decides_whatever_was_wanted_and_a_damaged_one_is_refused() {
        let header = Header { chunk: 65536, offset: 4096, page_bytes: 512 };
        let stored = Memory { bytes: header.block(), ..Memory::default() };
        let file = Handle::database(stored, Layout::Plain).unwrap();
        assert_eq!(file.mapping(), Some(Mapping::Shifted { chunk: 65536, offset: 4096 }));
        let mut bytes = header.block();
        bytes[170] ^= 1;
        let refused = Handle::database(Memory { bytes, ..Memory::default() }, HOT).err().unwrap();
        assert_eq!(refused.code, sqlite::SQLITE_CORRUPT);
        assert!(refused.message.contains("checksum"), "{}", refused.message);
    }
}
