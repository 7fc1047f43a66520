//! One open file as SQLite sees it, on any store: the layout, the coalescing of writes, and the behaviour after a
//! failure.
//!
//! ```text
//!   SQLite byte x ──▶ Handle ──▶ Plain:   byte x          ──▶ Store::write, unmodified
//!                            └─▶ Shifted: byte offset + x ──▶ held back ──▶ Store::write_all, cut at chunk boundaries
//! ```
//!
//! **concurrent-write-back** holds back the writes of a plain database as well, up to as many runs of adjacent pages as
//! the drive writes concurrently, and submits all of them at once. For the log, see `crate::log_gather`.
//!
//! **concurrent-read-ahead** examines the pages that are read, and reads the next pages of a scan ahead.
//!
//! **After a failed sync the handle is poisoned**: it is unknown which of the writes since the last good sync are on
//! the medium, so every later write, truncation and sync fails with `SQLITE_IOERR`. Opening the file again starts
//! afresh, and SQLite then rolls back from its journal. The same holds for held-back data that cannot be written where
//! SQLite ignores failures (unlock, end of a checkpoint). Data that fails within a call whose result SQLite checks is
//! dropped instead: SQLite then takes all pages of the transaction from its journal, or the checkpoint's from the WAL.

use std::ffi::c_int;

use libsqlite3_sys as sqlite;

use crate::batch::{BatchLog, LONGEST_BATCH, Owner, Runs};
use crate::bytes::{HEADER_BYTES, Span, is_page_size, page_size_of};
use crate::discard::{FreePages, Read};
use crate::error::{Failure, checked_end};
use crate::held_back::{HeldBack, RUN_LIMIT, split_at};
use crate::layout::{Detected, Header, Layout, MAX_CHUNK, detect};
use crate::log_layout::LogLayout;
use crate::options::VfsOptions;
use crate::read_ahead::ReadAhead;
use crate::store::{Cut, Mapping, Store};
use crate::write_transactions::WriteTransactions;

/// Most batches between two syncs whose write-back is started early: those of a long transaction. A program that does
/// not sync waits for the page cache and not for the drive.
const MOST_UNSYNCED: u32 = 256;

/// One open file.
pub(crate) struct Handle<S> {
    store: S,
    /// The options for a new database, and how many writes are gathered.
    options: VfsOptions,
    /// `None` until the file is known to be one or the other; an empty file is neither.
    mapping: Option<Mapping>,
    held: HeldBack,
    /// Where the space of freed pages is given back.
    free: Option<FreePages>,
    /// The log of batches of a database that has one, from its first lock on.
    batches: Option<BatchLog>,
    /// Whether no lock is to come at which that log would be brought into the database, and it has not been yet.
    enters_unlocked: bool,
    /// Whether the held-back data is a batch that SQLite has started and not ended.
    in_batch: bool,
    /// Whether something was written past the log of batches and not synced.
    is_unsynced: bool,
    /// Batches whose write-back was started since the last sync.
    unsynced_batches: u32,
    /// Why nothing may be written: others would not find it in the log of batches.
    read_only: Option<String>,
    /// Where pages are read ahead.
    ahead: Option<Box<ReadAhead>>,
    poisoned: Option<String>,
    /// Where the ends of write transactions in the database's log are noted.
    pub(crate) transactions: Option<WriteTransactions>,
    /// Whether SQLite holds EXCLUSIVE.
    pub(crate) is_exclusive: bool,
    /// Whether SQLite holds RESERVED or more for a transaction of its own. The rollback of one that a crash cut off
    /// holds EXCLUSIVE alone.
    pub(crate) is_writing: bool,
    /// The last `PRAGMA page_size` of the connection.
    requested_page: Option<u64>,
}

impl<S: Store> Handle<S> {
    /// A database, whose layout is in its header, or to be chosen.
    pub(crate) fn database(store: S, options: VfsOptions) -> Result<Self, Failure> {
        let free = options.discard.then(FreePages::default);
        let ahead = (options.read_ahead_depth > 1).then(|| Box::new(ReadAhead::new(options.read_ahead_depth)));
        let enters_unlocked = !store.rights().locks;
        let mut handle = Self { options, mapping: None, free, ahead, enters_unlocked, ..Self::plain(store) };
        handle.decide()?;
        Ok(handle)
    }

    /// Any other file.
    pub(crate) fn plain(store: S) -> Self {
        Self {
            store,
            options: VfsOptions::default(),
            mapping: Some(Mapping::Plain),
            held: HeldBack::default(),
            free: None,
            ahead: None,
            batches: None,
            enters_unlocked: false,
            in_batch: false,
            is_unsynced: false,
            unsynced_batches: MOST_UNSYNCED,
            read_only: None,
            poisoned: None,
            transactions: None,
            is_exclusive: false,
            is_writing: false,
            requested_page: None,
        }
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
            Some(Mapping::Shifted(header)) => header.layout(),
            _ => Layout::Plain,
        }
    }

    /// The layout that the database's log has, or will have.
    pub(crate) fn log(&self) -> LogLayout {
        match self.mapping {
            Some(Mapping::Shifted(header)) => header.log,
            Some(Mapping::Plain) => LogLayout::Plain,
            None => self.options.log,
        }
    }

    /// Whether the database is shifted, or will be once it is written.
    pub(crate) fn is_shifted(&self) -> bool {
        match self.mapping {
            Some(mapping) => mapping != Mapping::Plain,
            None => self.options.is_converting(),
        }
    }

    /// The offset of the database's bytes from their place in a plain file.
    pub(crate) fn shift(&self) -> u64 {
        match self.mapping {
            Some(Mapping::Shifted(header)) => header.offset,
            _ => 0,
        }
    }

    /// Whether writes may be held back, so that no VFS below may promise atomic writes.
    pub(crate) fn holds_back(&self) -> bool {
        self.is_shifted() || self.options.write_back_depth > 1
    }

    /// Whether anything of a span is held back.
    pub(crate) fn is_held(&self, offset: u64, length: usize) -> bool {
        self.held.overlaps(self.shift() + offset, length)
    }

    /// No later write or sync may pretend that the data is safe.
    pub(crate) fn poison(&mut self, why: &str) {
        self.held = HeldBack::default();
        self.poisoned.get_or_insert_with(|| why.to_owned());
    }

    fn check_poison(&self) -> Result<(), Failure> {
        if let Some(why) = &self.read_only {
            return Err(Failure::new(sqlite::SQLITE_READONLY_DIRECTORY, why.clone()));
        }
        match &self.poisoned {
            None => Ok(()),
            Some(why) => {
                let text = format!("{}: unusable since a sync failed ({why}); close and reopen it", self.store.name());
                Err(Failure::new(sqlite::SQLITE_IOERR, text))
            }
        }
    }

    /// Reads the first bytes of the file until it has some.
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
            Detected::Shifted(header) => Some(Mapping::Shifted(header)),
            // A power cut while the header was written can leave a file that has a size but no bytes yet. No page was
            // written before the header was durable, so such a file is a new one.
            Detected::Plain if self.options.is_converting() && self.is_blank(&head[..length], size)? => None,
            Detected::Plain => Some(Mapping::Plain),
        };
        if let Some(mapping) = self.mapping {
            self.store.decided(mapping);
        }
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
        // SQLite writes a database page by page, so the first write is as long as a page.
        let page = Some(first_write as u64).filter(|&bytes| is_page_size(bytes));
        let page = page.or(self.options.layout.shift().map(|(chunk, _)| chunk)).unwrap_or(4096).min(65536);
        self.check_pages(page)?;
        let mapping = match self.options.header(page) {
            None => Mapping::Plain,
            Some(header) => {
                // Only the companions of an empty file are leftovers for SQLite.
                let is_empty = self.store.size()? == 0;
                self.store.clear_leftovers(is_empty)?;
                self.write_header(&header)?;
                Mapping::Shifted(header)
            }
        };
        self.mapping = Some(mapping);
        self.store.decided(mapping);
        self.enter()?;
        Ok(mapping)
    }

    /// Refuses a page size under which pages would not be at hot locations: of a new database that is laid out for
    /// them, and of one whose pages are there. A database that was created with other pages is used unchanged.
    fn check_pages(&self, page_bytes: u64) -> Result<(), Failure> {
        let layout = match self.mapping {
            None => self.options.layout,
            Some(Mapping::Shifted(header)) if header.page_bytes == header.chunk => header.layout(),
            Some(_) => return Ok(()),
        };
        layout
            .check_pages(self.store.name(), page_bytes)
            .map_err(|error| Failure::new(sqlite::SQLITE_CANTOPEN, error.to_string()))
    }

    /// `PRAGMA page_size = …`: the size of a new database's pages, and of all after a `VACUUM`. Programs that set it
    /// whenever they open a database change nothing by that.
    pub(crate) fn request_pages(&mut self, page_bytes: u64) -> Result<(), Failure> {
        self.requested_page = Some(page_bytes).filter(|&bytes| is_page_size(bytes));
        match (self.requested_page, self.decide()?) {
            (Some(page), None) => self.check_pages(page),
            _ => Ok(()),
        }
    }

    /// A `VACUUM` is about to overwrite the database. Without a journal, a refusal of its first page would be too late.
    pub(crate) fn check_overwrite(&mut self) -> Result<(), Failure> {
        /// SQLite's write version in WAL mode, in which no `VACUUM` changes the page size.
        const LOG_MODE: u8 = 2;
        let head = self.stored_head()?;
        match self.requested_page {
            Some(page) if page_size_of(&head).is_some_and(|now| now != page) && head[18] != LOG_MODE => {
                self.check_pages(page)
            }
            _ => Ok(()),
        }
    }

    /// Refuses a first page that changes the page size, as `VACUUM` and SQLite's backup write it. The code is that of a
    /// failed write: after any other one within a batch, SQLite drops a journal that it keeps in memory.
    fn check_first_page(&mut self, offset: u64, data: &[u8]) -> Result<(), Failure> {
        let Some(page) = page_size_of(data).filter(|_| offset == 0 && self.is_writing) else { return Ok(()) };
        let Err(refused) = self.check_pages(page) else { return Ok(()) };
        match page_size_of(&self.stored_head()?) == Some(page) {
            true => Ok(()),
            false => Err(Failure { code: sqlite::SQLITE_IOERR_WRITE, ..refused }),
        }
    }

    /// SQLite's own header as it is stored, without what is held back; empty in an empty file.
    fn stored_head(&mut self) -> Result<Vec<u8>, Failure> {
        let mut head = vec![0; 100];
        let length = self.store.read(self.shift(), &mut head)?;
        head.truncate(length);
        Ok(head)
    }

    /// Writes the header of a new database, durably.
    pub(crate) fn write_header(&mut self, header: &Header) -> Result<(), Failure> {
        self.store.write(0, &header.block(), how_with(header))?;
        let synced = self.store.sync(sqlite::SQLITE_SYNC_NORMAL);
        self.poisoned_by(synced)?;
        self.unsynced_batches = 0;
        self.mapping = Some(Mapping::Shifted(*header));
        Ok(())
    }

    fn poisoned_by(&mut self, synced: Result<(), Failure>) -> Result<(), Failure> {
        synced.inspect_err(|failure| self.poison(&failure.message))
    }

    /// Reads; returns the number of bytes read.
    pub(crate) fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
        self.enter_unlocked()?;
        if self.decide()?.is_none() {
            return Ok(0);
        }
        let at = checked_end(self.shift(), offset)?;
        checked_end(at, into.len() as u64)?;
        self.before_read(offset, into.len());
        let there = self.store.read(at, into)?;
        let there = self.held.lay_over(at, into, there);
        if there == into.len() {
            self.after_read(offset, into);
        }
        Ok(there)
    }

    /// Hears of a read of the file that is to come.
    pub(crate) fn before_read(&mut self, offset: u64, length: usize) {
        self.held.is_spill = !self.held.is_empty();
        self.look_ahead(offset, length, |ahead, page| ahead.before(page));
    }

    /// Called with the bytes that were read.
    pub(crate) fn after_read(&mut self, offset: u64, bytes: &[u8]) {
        self.look_ahead(offset, bytes.len(), |ahead, page| ahead.after(page, bytes));
    }

    /// Reads ahead the pages that `which` returns for a read of a page.
    fn look_ahead(&mut self, offset: u64, length: usize, which: impl FnOnce(&mut ReadAhead, u32) -> &[u32]) {
        let shift = self.shift();
        let Some(ahead) = &mut self.ahead else { return };
        let Some(page) = ahead.page_of(offset, length) else { return };
        let pages = which(ahead, page);
        if !pages.is_empty() {
            let length = length as u64;
            let span = |&page: &u32| Span { start: shift + (u64::from(page) - 1) * length, length };
            self.store.ask_ahead(&pages.iter().map(span).collect::<Vec<_>>());
        }
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Failure> {
        self.check_poison()?;
        self.enter_unlocked()?;
        let mapping = match self.decide()? {
            Some(mapping) => mapping,
            None => self.create(data.len())?,
        };
        self.check_first_page(offset, data)?;
        if let Some(free) = &mut self.free {
            free.written(offset, data.len());
        }
        if let Some(ahead) = &mut self.ahead
            && let Some(page) = ahead.page_of(offset, data.len())
        {
            ahead.written(page, data);
        }
        let most = self.options.write_back_depth.max(1) as usize;
        if mapping == Mapping::Plain && most == 1 {
            return self.store.write(offset, data, Cut::Whole);
        }
        let at = checked_end(self.shift(), offset)?;
        // A full drive is reported now, not when the run is written.
        let reserved = self.store.reserve(checked_end(at, data.len() as u64)?);
        // Within a batch SQLite takes a journal instead after this code alone; the write to come then fails as full.
        reserved.map_err(|full| match self.in_batch {
            true => Failure { code: sqlite::SQLITE_IOERR_WRITE, ..full },
            false => full,
        })?;
        if self.in_batch {
            return self.add_to_batch(at, data);
        }
        if !self.held.take(at, data, most, RUN_LIMIT) {
            // Write-back of spilled pages is not started early: each time they change, the drive would have to write
            // them again.
            let batch = self.held.whole().filter(|_| most > 1 && !self.held.is_spill);
            self.write_out()?;
            if let Some(batch) = batch.filter(|_| self.unsynced_batches < MOST_UNSYNCED) {
                self.unsynced_batches += 1;
                self.store.begin(batch);
            }
            self.held.take(at, data, most, RUN_LIMIT);
        }
        Ok(())
    }

    /// Writes held-back data of a file that is written once, from its start to its end: the drive starts on it.
    pub(crate) fn hand_on(&mut self) -> Result<(), Failure> {
        let written = self.held.whole();
        self.write_out()?;
        written.into_iter().for_each(|span| self.store.begin(span));
        Ok(())
    }

    /// Writes held-back data, except a batch. On failure it is dropped: the caller reports that to SQLite.
    pub(crate) fn write_out(&mut self) -> Result<(), Failure> {
        if self.held.is_empty() || self.in_batch {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        self.check_poison()?;
        self.write_past_batches()?;
        self.store.write_all(&Vec::from_iter(held.runs), self.how())
    }

    fn how(&self) -> Cut {
        match self.mapping {
            Some(Mapping::Shifted(header)) => how_with(&header),
            _ => Cut::Whole,
        }
    }

    /// Later writes go to the database without having been in its batch log.
    fn write_past_batches(&mut self) -> Result<(), Failure> {
        if self.batches.is_none() && self.takes_batches() {
            self.enter()?;
        }
        self.is_unsynced = true;
        match &mut self.batches {
            Some(batches) => batches.retire(&mut self.store),
            None => Ok(()),
        }
    }

    /// Writes held-back data where SQLite ignores the result.
    pub(crate) fn write_out_unheard(&mut self) -> Result<(), Failure> {
        self.drop_batch();
        let written = self.write_out();
        self.poisoned_by(written)
    }

    pub(crate) fn truncate(&mut self, size: u64) -> Result<(), Failure> {
        self.check_poison()?;
        if self.in_batch {
            let why = format!("{}: a batch cannot truncate the file; SQLite uses a journal", self.store.name());
            return Err(Failure::new(sqlite::SQLITE_IOERR_TRUNCATE, why));
        }
        self.enter_unlocked()?;
        self.write_out()?;
        self.decide()?;
        self.write_past_batches()?;
        self.store.truncate(checked_end(self.shift(), size)?)?;
        if let Some(free) = &mut self.free {
            free.cut();
        }
        Ok(())
    }

    pub(crate) fn sync(&mut self, flags: c_int) -> Result<(), Failure> {
        self.check_poison()?;
        let written = self.write_out();
        let synced = match self.batches.is_some() && !self.is_unsynced {
            // Batches are durable as soon as they are committed.
            true => written,
            false => written.and_then(|()| self.store.sync(flags)),
        };
        self.poisoned_by(synced)?;
        (self.is_unsynced, self.unsynced_batches) = (false, 0);
        self.give_back(FreePages::synced);
        Ok(())
    }

    /// A lock is held from here on: the batches of the log are brought into the database.
    pub(crate) fn enter(&mut self) -> Result<(), Failure> {
        let Some(Mapping::Shifted(header)) = self.decide()? else { return Ok(()) };
        let how = self.how();
        if header.identity != 0 && self.batches.is_none() {
            let owner = Owner { identity: header.identity, first: header.offset };
            self.batches = self.store.batch_place().map(|place| BatchLog::new(place, owner));
        }
        if !self.store.rights().writes {
            return self.batches.as_mut().map_or(Ok(()), |batches| batches.look(&mut self.store));
        }
        match self.batches.as_mut().map(|batches| batches.enter(&mut self.store, how)) {
            Some(Err(failure)) if failure.code == sqlite::SQLITE_READONLY_DIRECTORY => {
                self.batches = None;
                self.read_only.get_or_insert(failure.message);
                Ok(())
            }
            entered => entered.unwrap_or(Ok(())),
        }
    }

    /// The same where SQLite takes no lock: once, before anything is read or written.
    pub(crate) fn enter_unlocked(&mut self) -> Result<(), Failure> {
        if self.enters_unlocked {
            self.enter()?;
            // An empty file becomes a database with its first write, and is entered there.
            self.enters_unlocked = false;
        }
        Ok(())
    }

    /// Whether transactions may come as batches, or will when there is a database.
    pub(crate) fn takes_batches(&self) -> bool {
        match self.mapping {
            Some(Mapping::Shifted(header)) => header.identity != 0,
            Some(Mapping::Plain) => false,
            None => self.options.atomic_batch,
        }
    }

    /// SQLite starts to write all pages of a transaction; `false` if batches are not supported. After a failure it uses
    /// a journal instead.
    pub(crate) fn begin_batch(&mut self) -> Result<bool, Failure> {
        if !self.takes_batches() {
            return Ok(false);
        }
        self.check_poison()?;
        if self.batches.is_none() {
            let why = format!("{}: has no batch log", self.store.name());
            return Err(Failure::new(sqlite::SQLITE_IOERR_BEGIN_ATOMIC, why));
        }
        self.write_out()?;
        self.in_batch = true;
        Ok(true)
    }

    /// After a failure SQLite takes a journal instead.
    fn add_to_batch(&mut self, at: u64, data: &[u8]) -> Result<(), Failure> {
        match self.held.take(at, data, usize::MAX, LONGEST_BATCH) {
            true => Ok(()),
            false => {
                let why =
                    format!("{}: the transaction does not fit a batch of {LONGEST_BATCH} bytes", self.store.name());
                Err(Failure::new(sqlite::SQLITE_IOERR_WRITE, why))
            }
        }
    }

    /// The batch is complete. Where nothing of it has happened yet, SQLite takes a journal instead after a failure.
    pub(crate) fn commit_batch(&mut self) -> Result<(), Failure> {
        let how = self.how();
        let is_open = std::mem::take(&mut self.in_batch);
        let held = std::mem::take(&mut self.held);
        let Some(batches) = self.batches.as_mut().filter(|_| is_open) else {
            let why = format!("{}: no batch was started", self.store.name());
            return Err(Failure::new(sqlite::SQLITE_IOERR_COMMIT_ATOMIC, why));
        };
        if held.is_empty() {
            return Ok(());
        }
        let runs: Runs = held.runs.into_iter().collect();
        let size = self.store.size()?;
        let (inside, behind) = split_at(&runs, size);
        // SQLite reads nothing beyond the size in the first page. If the drive is found full here, nothing has
        // happened.
        let room = self.store.write_all(&behind, how);
        let batch = room.and_then(|()| batches.log(&mut self.store, &runs)).map_err(|failure| {
            let why = format!("{} (as a batch, without a journal)", failure.message);
            Failure::new(sqlite::SQLITE_IOERR_COMMIT_ATOMIC, why)
        })?;
        // It counts by now, and SQLite would think that it does not.
        let applied = self.store.write_all(&inside, how).and_then(|()| batches.applied(batch));
        self.poisoned_by(applied)
    }

    /// The batch is not to be.
    pub(crate) fn drop_batch(&mut self) {
        if std::mem::take(&mut self.in_batch) {
            self.held = HeldBack::default();
        }
    }

    /// The file is about to be closed.
    pub(crate) fn close(&mut self) -> Result<(), Failure> {
        self.drop_batch();
        let written = self.write_out_unheard();
        let left = match &mut self.batches {
            Some(batches) => batches.leave(&mut self.store),
            None => Ok(()),
        };
        written.and(left)
    }

    /// A checkpoint has handed on its last page; SQLite does not hear of a failure.
    pub(crate) fn copied(&mut self) -> Result<(), Failure> {
        if let Some(free) = &mut self.free {
            free.copied();
        }
        self.write_out_unheard()
    }

    /// A transaction and its journal have ended.
    pub(crate) fn committed(&mut self) {
        self.give_back(FreePages::committed);
    }

    /// Trims free space. This is advice: a failure loses nothing.
    fn give_back(&mut self, which: impl FnOnce(&mut FreePages, &mut Read) -> Result<Vec<Span>, Failure>) {
        let Some(mut free) = self.free.take() else { return };
        let spans = which(&mut free, &mut |at, into| self.read(at, into));
        for span in spans.unwrap_or_default() {
            let _ = self.store.discard(Span { start: self.shift() + span.start, length: span.length });
        }
        self.free = Some(free);
    }

    /// Size of the database.
    pub(crate) fn size(&mut self) -> Result<u64, Failure> {
        self.enter_unlocked()?;
        match self.decide()? {
            None => Ok(0),
            Some(_) => Ok(self.store.size()?.max(self.held.end()).saturating_sub(self.shift())),
        }
    }
}

/// How a database with that header is written: only hot locations depend on where a write is cut.
fn how_with(header: &Header) -> Cut {
    match header.layout() {
        Layout::HotLocations { .. } => Cut::Chunks(header.chunks()),
        Layout::Headed | Layout::Plain => Cut::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Chunks;
    use flashwise_block::ByteSize;

    /// A store in memory that can fail, and remembers its writes.
    #[derive(Default)]
    struct Memory {
        bytes: Vec<u8>,
        writes: Vec<(u64, usize, Cut)>,
        begun: Vec<Span>,
        fail_code: Option<c_int>,
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
                return Err(Failure::new(self.fail_code.unwrap_or(sqlite::SQLITE_IOERR_WRITE), "injected fault"));
            }
            let end = offset as usize + data.len();
            self.bytes.resize(self.bytes.len().max(end), 0);
            self.bytes[offset as usize..end].copy_from_slice(data);
            self.writes.push((offset, data.len(), how));
            Ok(())
        }
        fn begin(&mut self, batch: Span) {
            self.begun.push(batch);
        }
        fn truncate(&mut self, size: u64) -> Result<(), Failure> {
            self.bytes.resize(size as usize, 0);
            Ok(())
        }
        fn sync(&mut self, _flags: c_int) -> Result<(), Failure> {
            self.syncs += 1;
            if self.fail_sync { Err(Failure::new(sqlite::SQLITE_IOERR_FSYNC, "injected fault")) } else { Ok(()) }
        }
    }

    const HOT: VfsOptions = VfsOptions {
        layout: Layout::HotLocations { chunk: ByteSize::kib(64), offset: ByteSize::kib(32) },
        ..VfsOptions::PLAIN
    };
    const K: u64 = 1024;
    const WHOLE_CHUNKS: Cut = Cut::Chunks(Chunks { length: 65536, first: 0 });

    fn hot() -> Handle<Memory> {
        Handle::database(Memory::default(), HOT).unwrap()
    }

    fn with_depth(write_back_depth: u32) -> Handle<Memory> {
        Handle::database(Memory::default(), VfsOptions { write_back_depth, ..VfsOptions::PLAIN }).unwrap()
    }

    #[test]
    fn a_full_drive_is_told_to_a_write_and_a_sync_and_never_to_a_read() {
        let full = || {
            let mut file = with_depth(4);
            file.write(0, &[7; 4096]).unwrap();
            (file.store.fail_write, file.store.fail_code) = (true, Some(sqlite::SQLITE_FULL));
            file
        };
        // After such a failed read, SQLite may undo the statement alone, and the pages that the transaction spilled
        // would be lost.
        let (mut file, mut page) = (full(), [0; 4096]);
        assert_eq!((file.read(0, &mut page).unwrap(), file.size().unwrap(), page), (4096, 4096, [7; 4096]));
        assert_eq!(file.sync(0).unwrap_err().code, sqlite::SQLITE_FULL);
    }

    #[test]
    fn the_drive_begins_with_batches_of_a_commit_and_not_with_pages_that_are_spilled() {
        let (mut commit, mut spill, mut one_by_one) = (with_depth(2), with_depth(2), hot());
        [&mut commit, &mut spill, &mut one_by_one].into_iter().for_each(|file| file.sync(0).unwrap());
        for page in [1, 3, 5, 7, 9] {
            commit.write(page * 4 * K, &[7; 4096]).unwrap();
            spill.write(page * 4 * K, &[7; 4096]).unwrap();
            spill.read(0, &mut [0; 100]).unwrap();
            one_by_one.write(page * 64 * K, &[7; 65536]).unwrap();
        }
        let batch = |first: u64| Span { start: first * 4 * K, length: 3 * 4 * K };
        assert_eq!(commit.store.begun, [batch(1), batch(5)]);
        assert_eq!((spill.store.begun.len(), one_by_one.store.begun.len()), (0, 0));
        commit.sync(0).unwrap();
        assert_eq!(commit.store.begun.len(), 2, "a sync writes the last one at once");
    }

    #[test]
    fn without_syncs_the_drive_begins_with_nothing() {
        for (syncs, begun) in [(false, 0), (true, MOST_UNSYNCED as usize)] {
            let mut file = with_depth(2);
            if syncs {
                file.sync(0).unwrap();
            }
            (0..4 * u64::from(MOST_UNSYNCED)).for_each(|page| file.write(page * 8 * K, &[7; 4096]).unwrap());
            assert_eq!(file.store.begun.len(), begun);
        }
    }

    #[test]
    fn a_file_that_is_written_once_is_handed_on_run_by_run() {
        let mut file = hot();
        for run in 0..3 {
            file.write(run * 2048 * K, &vec![7; RUN_LIMIT]).unwrap();
            file.hand_on().unwrap();
        }
        let runs = [32, 2080, 4128].map(|start| Span { start: start * K, length: RUN_LIMIT as u64 });
        assert_eq!(file.store.begun, runs);
    }

    #[test]
    fn only_hot_locations_need_writes_in_pieces() {
        for (layout, how) in [(Layout::Plain, Cut::Whole), (HOT.layout, WHOLE_CHUNKS)] {
            let options = VfsOptions { layout, log: LogLayout::Aligned { stripe: ByteSize::kib(64) }, ..HOT };
            let mut file = Handle::database(Memory::default(), options).unwrap();
            (0..3).for_each(|page| file.write(page * 64 * K, &[7; 65536]).unwrap());
            file.sync(0).unwrap();
            assert!(file.is_shifted() && file.store.writes.iter().all(|&(.., cut)| cut == how), "{layout:?}");
        }
    }

    #[test]
    fn a_plain_database_holds_back_as_many_runs_as_go_together() {
        let mut file = with_depth(3);
        for page in [1, 5, 6, 9] {
            file.write(page * 4 * K, &[page as u8; 4096]).unwrap();
        }
        assert!(file.store.writes.is_empty(), "three runs: 1, 5 and 6, 9");
        assert!(file.is_held(24 * K, 1) && !file.is_held(8 * K, 4096));
        file.write(12 * 4 * K, &[12; 4096]).unwrap();
        let written: Vec<_> = file.store.writes.iter().map(|&(at, length, _)| (at / K, length as u64 / K)).collect();
        assert_eq!(written, [(4, 4), (20, 8), (36, 4)]);
        let mut page = [0; 4096];
        file.read(12 * 4 * K, &mut page).unwrap();
        assert_eq!(page, [12; 4096]);
        assert_eq!(file.store.writes.len(), 3, "a read of what is held back need not write it first");
    }

    #[test]
    fn what_is_held_back_reads_as_if_it_had_been_written() {
        let mut random = 12345_u64;
        let (mut held, mut plain) = (with_depth(4), with_depth(1));
        for _ in 0..5000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (at, length) = ((random >> 33) % 60 * 512, ((random >> 20) % 6 + 1) as usize * 512);
            if random >> 63 == 0 {
                let data = vec![(random >> 50) as u8; length];
                held.write(at, &data).unwrap();
                plain.write(at, &data).unwrap();
            } else {
                let (mut a, mut b) = (vec![0; length], vec![0; length]);
                assert_eq!(held.read(at, &mut a).unwrap(), plain.read(at, &mut b).unwrap());
                assert_eq!(a, b);
                assert_eq!(held.size().unwrap(), plain.size().unwrap());
            }
        }
        held.sync(0).unwrap();
        assert_eq!(held.store.bytes, plain.store.bytes);
    }

    #[test]
    fn the_header_is_written_and_synced_before_the_first_page() {
        let mut file = hot();
        file.write(0, &[1; 65536]).unwrap();
        assert_eq!(file.store.writes, [(0, 32768, WHOLE_CHUNKS)]);
        assert_eq!(file.store.syncs, 1);
        file.sync(0).unwrap();
        assert_eq!(file.store.writes[1..], [(32768, 65536, WHOLE_CHUNKS)]);
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
        assert_eq!(file.store.writes.len(), 2, "nor has a read of the run to write it");
    }

    #[test]
    fn after_a_failed_sync_every_write_and_sync_fails() {
        for options in [VfsOptions::PLAIN, HOT] {
            let mut file = Handle::database(Memory::default(), options).unwrap();
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
            let failed = if heard { file.write_out() } else { file.write_out_unheard() };
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
    fn a_transaction_changes_no_page_size_from_the_chunk_and_a_rollback_after_a_crash_may_write_any() {
        let first = |page: u16| [b"SQLite format 3\0".as_slice(), &page.to_be_bytes(), &[0; 4096]].concat();
        let (of_64k, of_4k, of_8k) = (first(1), first(4096), first(8192));
        let mut file = hot();
        assert_eq!(file.write(0, &of_4k[..4096]).unwrap_err().code, sqlite::SQLITE_CANTOPEN);
        assert!(file.store.bytes.is_empty() && file.mapping().is_none());
        file.write(0, &[0; 65536]).unwrap();
        file.write(0, &of_64k).unwrap();
        file.write_out().unwrap();
        file.is_writing = true;
        assert_eq!(file.write(0, &of_4k).unwrap_err().code, sqlite::SQLITE_IOERR_WRITE);
        file.is_writing = false;
        file.write(0, &of_4k).unwrap();
        file.write_out().unwrap();
        file.is_writing = true;
        file.write(0, &of_4k).unwrap();
        assert_eq!(file.write(0, &of_8k).unwrap_err().code, sqlite::SQLITE_IOERR_WRITE);
        file.write(0, &of_64k).unwrap();
    }

    #[test]
    fn a_header_decides_whatever_was_wanted_and_a_damaged_one_is_refused() {
        let header =
            Header { chunk: 65536, offset: 4096, border: 0, page_bytes: 512, log: LogLayout::Plain, identity: 0 };
        let stored = Memory { bytes: header.block(), ..Memory::default() };
        let file = Handle::database(stored, VfsOptions::PLAIN).unwrap();
        assert_eq!(file.mapping(), Some(Mapping::Shifted(header)));
        let mut bytes = header.block();
        bytes[170] ^= 1;
        let refused = Handle::database(Memory { bytes, ..Memory::default() }, HOT).err().unwrap();
        assert_eq!(refused.code, sqlite::SQLITE_CORRUPT);
        assert!(refused.message.contains("checksum"), "{}", refused.message);
    }
}
