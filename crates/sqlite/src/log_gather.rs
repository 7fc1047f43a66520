//! A write-ahead log whose frames are gathered: concurrent-write-back for the log.
//!
//! SQLite writes a frame in two pieces, 24 bytes of header and the page after it, so a transaction of twenty pages is
//! forty calls. They follow each other, and are not read before the last one, whose header marks the transaction as
//! complete:
//!
//! ```text
//!   header page header page … header* page    * commits: together the one write that reaches the file
//!   └───────── held back ──────────┘ ▲
//!                                    everything is written here, before the write of the page returns
//! ```
//!
//! **No committed data is held back.** SQLite announces new frames to others by shared memory, with a barrier that
//! cannot report a failure; at that time the frames must be in the file, even without syncs (`synchronous = NORMAL`).
//! So only frames of an incomplete transaction are held back, while it lasts, and of these only those that follow the
//! write before:
//! SQLite goes back in the log to change an earlier page, or to rewrite headers, and those writes go through. Held-back
//! frames that are never written were never committed.
//!
//! **Nothing outlives its transaction.** A rollback forgets frames that were spilled, and SQLite calls nothing of the
//! log for it; then another connection may write its own in their places. So held-back data is dropped if a write
//! transaction has ended since ([`WriteTransactions`]); where that cannot be known, nothing is held back.
//!
//! A read sees held-back data laid over the file, and never writes it: after a failed read SQLite may undo a statement
//! alone, and frames that the transaction spilled would be lost.
//!
//! Source: SQLite, "Database File Format", section 4.1: bytes 4 to 7 of a frame's header are 0 except for a commit.

use std::ffi::{c_int, c_void};

use crate::error::{Failure, checked_end};
use crate::ffi::ParentFile;
use crate::file::SqliteFile;
use crate::log_layout::{FRAME_HEADER, SQLITE_HEADER};
use crate::shm::SharedMemory;
use crate::write_transactions::WriteTransactions;

/// Most bytes that are held back. More would be copied longer than the calls that they save take.
const LIMIT: usize = 256 << 10;

/// The next write, if it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// A frame's header.
    Header,
    /// The page of a frame, which completes a transaction or does not.
    Page { commits: bool },
}

/// One open log.
pub(crate) struct GatheredLog<F> {
    file: F,
    /// The held-back data, and its place in SQLite's log.
    held: Vec<u8>,
    start: u64,
    /// Where the last write ended.
    next: u64,
    expected: Expected,
    /// The write transactions of the database, if all of them are noted, and how many had ended at the last write.
    transactions: Option<WriteTransactions>,
    ended: u64,
}

impl<F: SqliteFile> GatheredLog<F> {
    pub(crate) fn new(file: F) -> Self {
        let (held, expected) = (Vec::new(), Expected::Header);
        Self { file, held, start: 0, next: u64::MAX, expected, transactions: None, ended: 0 }
    }

    /// Drops what the transaction before has left.
    fn drop_ended(&mut self) {
        let ended = self.transactions.as_ref().map_or(0, WriteTransactions::ended);
        if ended != self.ended {
            self.held.clear();
            (self.next, self.expected, self.ended) = (u64::MAX, Expected::Header, ended);
        }
    }

    fn held_end(&self) -> u64 {
        if self.held.is_empty() { 0 } else { self.start + self.held.len() as u64 }
    }

    fn overlaps(&self, offset: u64, length: usize) -> bool {
        offset < self.held_end() && self.start < offset.saturating_add(length as u64)
    }

    /// The kind of a write; whether it may wait for the next one.
    fn may_wait(&mut self, offset: u64, data: &[u8]) -> bool {
        let expected = std::mem::replace(&mut self.expected, Expected::Header);
        match expected {
            Expected::Header if data.len() as u64 == FRAME_HEADER && offset >= SQLITE_HEADER => {
                self.expected = Expected::Page { commits: data[4..8] != [0; 4] };
                true
            }
            Expected::Page { commits } => !commits,
            Expected::Header => false,
        }
    }

    /// Writes held-back data. On failure it is dropped: the caller reports that to SQLite, which rolls the transaction
    /// back.
    fn hand_on(&mut self) -> Result<(), Failure> {
        if self.held.is_empty() {
            return Ok(());
        }
        let written = self.file.write(self.start, &self.held);
        self.held.clear();
        if written.is_err() {
            self.next = u64::MAX;
        }
        written
    }
}

impl<F: SqliteFile> SqliteFile for GatheredLog<F> {
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
        self.drop_ended();
        let there = self.file.read(offset, into)?;
        if !self.overlaps(offset, into.len()) {
            return Ok(there);
        }
        let (end, length) = (self.held_end(), into.len() as u64);
        let (from, to) = (self.start.max(offset), end.min(offset + length));
        let place = (from - offset) as usize..(to - offset) as usize;
        if place.start > there {
            // Nothing was written between the end of the file and the held-back data.
            into[there..place.start].fill(0);
        }
        let first = (from - self.start) as usize;
        into[place.clone()].copy_from_slice(&self.held[first..first + place.len()]);
        Ok(there.max(place.end))
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Failure> {
        let end = checked_end(offset, data.len() as u64)?;
        self.drop_ended();
        let follows = offset == self.next;
        if !follows {
            self.expected = Expected::Header;
        }
        if !follows || self.held.len() + data.len() > LIMIT {
            self.hand_on()?;
        }
        let waits = self.may_wait(offset, data) && self.transactions.is_some();
        // A write that does not follow goes through, but its page may follow.
        if !follows || (!waits && self.held.is_empty()) {
            self.next = u64::MAX;
            self.file.write(offset, data)?;
            self.next = end;
            return Ok(());
        }
        if self.held.is_empty() {
            self.start = offset;
        }
        self.held.extend_from_slice(data);
        self.next = end;
        if waits { Ok(()) } else { self.hand_on() }
    }

    fn truncate(&mut self, size: u64) -> Result<(), Failure> {
        self.drop_ended();
        self.hand_on()?;
        self.next = u64::MAX;
        self.file.truncate(size)
    }

    fn sync(&mut self, flags: c_int) -> Result<(), Failure> {
        self.drop_ended();
        self.hand_on()?;
        self.file.sync(flags)
    }

    fn size(&mut self) -> Result<u64, Failure> {
        self.drop_ended();
        Ok(self.file.size()?.max(self.held_end()))
    }

    fn lock(&mut self, level: c_int) -> Result<(), Failure> {
        self.file.lock(level)
    }

    fn unlock(&mut self, level: c_int) -> Result<(), Failure> {
        self.file.unlock(level)
    }

    fn is_reserved(&mut self) -> Result<bool, Failure> {
        self.file.is_reserved()
    }

    fn sector_size(&mut self) -> c_int {
        self.file.sector_size()
    }

    fn characteristics(&mut self) -> c_int {
        self.file.characteristics()
    }

    fn parent(&mut self) -> Option<&mut ParentFile> {
        self.file.parent()
    }

    fn shared_memory(&mut self) -> Option<&mut dyn SharedMemory> {
        self.file.shared_memory()
    }

    fn write_out(&mut self) -> Result<(), Failure> {
        self.drop_ended();
        self.hand_on()?;
        self.file.write_out()
    }

    fn write_out_unheard(&mut self) -> Result<(), Failure> {
        self.drop_ended();
        self.hand_on()?;
        self.file.write_out_unheard()
    }

    fn close(&mut self) -> Result<(), Failure> {
        // Frames of a transaction that is not to be.
        self.held.clear();
        self.file.close()
    }

    fn note_transactions(&mut self, transactions: WriteTransactions) {
        self.ended = transactions.ended();
        self.transactions = Some(transactions);
    }

    fn is_mapped(&self) -> bool {
        self.file.is_mapped()
    }

    fn stored_size(&self, size: u64) -> u64 {
        self.file.stored_size(size)
    }

    fn fetch(&mut self, _offset: u64, _length: usize) -> Result<*mut c_void, Failure> {
        Ok(std::ptr::null_mut())
    }

    fn straight(&mut self, offset: u64, length: usize) -> Result<Option<u64>, Failure> {
        self.drop_ended();
        if self.overlaps(offset, length) {
            return Ok(None);
        }
        self.file.straight(offset, length)
    }

    fn went_straight(&mut self, offset: u64, bytes: &[u8]) {
        self.file.went_straight(offset, bytes);
    }

    fn poison(&mut self, why: &str) {
        self.held.clear();
        self.file.poison(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Failure;
    use libsqlite3_sys as sqlite;

    const PAGE: usize = 512;
    const FRAME: u64 = FRAME_HEADER + PAGE as u64;

    /// A file in memory that counts its writes, and can fail them.
    #[derive(Default)]
    struct Memory {
        bytes: Vec<u8>,
        writes: Vec<(u64, usize)>,
        syncs: usize,
        fails: bool,
    }

    impl SqliteFile for Memory {
        fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
            let there = self.bytes.get(offset as usize..).unwrap_or(&[]);
            let length = there.len().min(into.len());
            into[..length].copy_from_slice(&there[..length]);
            Ok(length)
        }
        fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Failure> {
            if self.fails {
                return Err(Failure::new(sqlite::SQLITE_IOERR_WRITE, "injected fault"));
            }
            let end = offset as usize + data.len();
            self.bytes.resize(self.bytes.len().max(end), 0);
            self.bytes[offset as usize..end].copy_from_slice(data);
            self.writes.push((offset, data.len()));
            Ok(())
        }
        fn truncate(&mut self, size: u64) -> Result<(), Failure> {
            self.bytes.truncate(size as usize);
            Ok(())
        }
        fn sync(&mut self, _: c_int) -> Result<(), Failure> {
            self.syncs += 1;
            Ok(())
        }
        fn size(&mut self) -> Result<u64, Failure> {
            Ok(self.bytes.len() as u64)
        }
        fn lock(&mut self, _: c_int) -> Result<(), Failure> {
            Ok(())
        }
        fn unlock(&mut self, _: c_int) -> Result<(), Failure> {
            Ok(())
        }
        fn is_reserved(&mut self) -> Result<bool, Failure> {
            Ok(false)
        }
        fn sector_size(&mut self) -> c_int {
            512
        }
        fn characteristics(&mut self) -> c_int {
            0
        }
        fn parent(&mut self) -> Option<&mut ParentFile> {
            None
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
            false
        }
        fn stored_size(&self, size: u64) -> u64 {
            size
        }
        fn poison(&mut self, _: &str) {}
    }

    /// A log whose header is written.
    fn begun() -> GatheredLog<Memory> {
        let mut log = GatheredLog::new(Memory::default());
        log.note_transactions(WriteTransactions::default());
        log.write(0, &[9; SQLITE_HEADER as usize]).unwrap();
        log
    }

    fn at(frame: u64) -> u64 {
        SQLITE_HEADER + frame * FRAME
    }

    /// Writes a frame as SQLite does, in two pieces.
    fn frame(log: &mut dyn SqliteFile, frame: u64, commits: bool) -> Result<(), Failure> {
        let byte = (frame % 251) as u8 + 1;
        let mut header = [byte; FRAME_HEADER as usize];
        header[4..8].copy_from_slice(&u32::from(commits).to_be_bytes());
        log.write(at(frame), &header)?;
        log.write(at(frame) + FRAME_HEADER, &[byte; PAGE])
    }

    #[test]
    fn a_transaction_is_one_write_and_it_is_there_when_its_last_page_was_taken() {
        let mut log = begun();
        for number in 0..5 {
            frame(&mut log, number, number == 4).unwrap();
        }
        assert_eq!(log.file.writes, [(0, 32), (32, 5 * FRAME as usize)]);
        assert_eq!(log.file.syncs, 0, "nobody had to sync for it");
        frame(&mut log, 5, true).unwrap();
        assert_eq!(log.file.writes[2..], [(at(5), FRAME as usize)]);
    }

    #[test]
    fn what_does_not_follow_goes_through_at_once() {
        let mut log = begun();
        frame(&mut log, 0, false).unwrap();
        // A page that the transaction changes once more, then rewritten headers.
        log.write(at(0) + FRAME_HEADER, &[7; PAGE]).unwrap();
        frame(&mut log, 1, true).unwrap();
        for number in [0, 1] {
            log.write(at(number), &[number as u8; FRAME_HEADER as usize]).unwrap();
            let mut header = [9; FRAME_HEADER as usize];
            log.file.read(at(number), &mut header).unwrap();
            assert_eq!(header, [number as u8; FRAME_HEADER as usize]);
        }
        // Another process continued in between; its header is in the file before the page comes.
        log.write(at(9), &[0; FRAME_HEADER as usize]).unwrap();
        assert_eq!(log.file.bytes.len() as u64, at(9) + FRAME_HEADER);
    }

    #[test]
    fn a_sync_has_everything_and_a_close_drops_what_was_never_committed() {
        let (mut synced, mut closed) = (begun(), begun());
        frame(&mut synced, 0, false).unwrap();
        frame(&mut closed, 0, false).unwrap();
        synced.sync(0).unwrap();
        closed.close().unwrap();
        assert_eq!((synced.file.bytes.len() as u64, synced.file.syncs), (at(1), 1));
        assert_eq!(closed.file.bytes.len() as u64, SQLITE_HEADER);
    }

    #[test]
    fn a_failure_is_told_to_the_write_that_completes_and_never_to_a_read() {
        let mut log = begun();
        frame(&mut log, 0, false).unwrap();
        log.file.fails = true;
        let mut page = [0; PAGE];
        assert_eq!(log.read(at(0) + FRAME_HEADER, &mut page).unwrap(), PAGE);
        assert_eq!((page, log.size().unwrap()), ([1; PAGE], at(1)));
        assert_eq!(frame(&mut log, 1, true).unwrap_err().code, sqlite::SQLITE_IOERR_WRITE);
        log.file.fails = false;
        // Lost frames leave no hole that later ones hide: SQLite writes the transaction again from its start.
        frame(&mut log, 0, true).unwrap();
        assert_eq!(log.file.bytes.len() as u64, at(1));
    }

    #[test]
    fn frames_of_a_transaction_that_has_ended_are_neither_read_nor_written() {
        let (mut log, transactions) = (begun(), WriteTransactions::default());
        log.note_transactions(transactions.clone());
        frame(&mut log, 0, false).unwrap();
        frame(&mut log, 1, false).unwrap();
        transactions.end();
        // Another connection commits in their places.
        log.file.write(at(0), &[9; FRAME as usize]).unwrap();
        let mut header = [0; FRAME_HEADER as usize];
        log.read(at(0), &mut header).unwrap();
        assert_eq!((header, log.size().unwrap()), ([9; FRAME_HEADER as usize], at(1)));
        frame(&mut log, 1, true).unwrap();
        assert_eq!(log.file.writes.last(), Some(&(at(1) + FRAME_HEADER, PAGE)));
        assert_eq!(log.file.bytes[at(0) as usize..at(1) as usize], [9; FRAME as usize]);
    }

    #[test]
    fn nothing_is_held_back_where_transactions_are_not_noted() {
        let mut log = GatheredLog::new(Memory::default());
        log.write(0, &[9; SQLITE_HEADER as usize]).unwrap();
        frame(&mut log, 0, false).unwrap();
        assert!(log.held.is_empty() && log.file.bytes.len() as u64 == at(1));
    }

    #[test]
    fn long_transactions_are_handed_on_in_pieces() {
        let (mut log, frames) = (begun(), 3 * (LIMIT as u64 / FRAME));
        for number in 0..frames {
            frame(&mut log, number, number + 1 == frames).unwrap();
            assert!(log.held.len() <= LIMIT);
        }
        assert_eq!(log.file.writes.len(), 1 + 3, "{:?}", log.file.writes);
        assert_eq!(log.file.bytes.len() as u64, at(frames));
    }

    #[test]
    fn it_reads_as_if_every_write_had_gone_through() {
        let mut random = 99_u64;
        let mut draw = |most: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % most
        };
        let (mut log, mut plain, mut end) = (begun(), Memory::default(), 0);
        plain.write(0, &[9; SQLITE_HEADER as usize]).unwrap();
        for _ in 0..20_000 {
            match draw(8) {
                0 => {
                    // Back in the log, as after a rollback, or a page once more.
                    end = draw(end + 1);
                    let (offset, bytes) = (at(end) + FRAME_HEADER * draw(2), vec![draw(256) as u8; PAGE]);
                    log.write(offset, &bytes).unwrap();
                    plain.write(offset, &bytes).unwrap();
                }
                1 => {
                    let (offset, length) = (draw(at(end) + FRAME), 1 + draw(2 * FRAME) as usize);
                    let (mut one, mut other) = (vec![3; length], vec![3; length]);
                    assert_eq!(log.read(offset, &mut one).unwrap(), plain.read(offset, &mut other).unwrap());
                    assert_eq!(one, other);
                }
                2 if end > 200 => {
                    log.truncate(at(3)).unwrap();
                    plain.truncate(at(3)).unwrap();
                    end = 3;
                }
                _ => {
                    let commits = draw(4) == 0;
                    frame(&mut log, end, commits).unwrap();
                    frame(&mut plain, end, commits).unwrap();
                    end += 1;
                    if commits {
                        assert_eq!(log.file.bytes, plain.bytes, "what counts is in the file");
                    }
                }
            }
            assert_eq!(log.size().unwrap(), plain.size().unwrap());
        }
        log.sync(0).unwrap();
        assert_eq!(log.file.bytes, plain.bytes);
    }
}
