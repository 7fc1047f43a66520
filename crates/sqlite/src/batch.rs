//! Atomic transactions without a rollback journal: the batch log.
//!
//! If a file promises `SQLITE_IOCAP_BATCH_ATOMIC`, SQLite writes all pages of a transaction between
//! `SQLITE_FCNTL_BEGIN_ATOMIC_WRITE` and `…COMMIT_ATOMIC_WRITE`, and no journal. Such a batch goes to a log beside the
//! database first, as one durable write, and then to its places in the database, which no one waits for:
//!
//! ```text
//!   batch ──▶ NAME-fwbatch: one write, durable ──▶ database: page cache, synced when the log is restarted
//! ```
//!
//! A commit costs one flush of the drive; a rollback journal costs three or four.
//!
//! **The log** consists of a block of marks and the batches after it, each of whole blocks, numbered from 0 under a
//! generation that is drawn again whenever the log is restarted. A batch is valid if it matches its checksum, follows
//! the one before, and is of the log's generation and database. `docs/formats/sqlite-layout.md` draws it.
//!
//! **Rules**, all of them necessary:
//!
//! 1. A batch is durable before the first of its pages is written to the database, except for pages beyond the end of
//!    the file, which are not read.
//! 2. The log is restarted only when everything in the database is durable in it, and the old batches were made void,
//!    durably: a torn write may keep the first of them and destroy the next, and the first alone is an old state.
//! 3. Any other write to the database (a journalled transaction, a checkpoint) comes after the log was made void,
//!    durably: its batches would otherwise undo that write.
//! 4. Whoever opens the database while nobody else has it open replays all batches, ignoring the marks: the power may
//!    have been cut. That holds in every locking mode: with `nolock=1`, where SQLite takes no lock at which this could
//!    be done, it is done before the first byte is read.
//! 5. Whoever takes a SHARED lock checks the marks: if more batches were started than are in the database, a process
//!    has died in between, and the batches are replayed. Nobody can write then, and two that replay write the same
//!    bytes.
//! 6. A read-only connection (`mode=ro`) changes neither the log nor the database. It reads a database whose log has
//!    nothing missing from it, or that others have open and keep so, and otherwise fails with
//!    `SQLITE_READONLY_ROLLBACK`, as SQLite does beside a hot journal.
//!
//! **The content of the log is checked before it is used**, as it may come from elsewhere: no length exceeds that of a
//! batch or the file, nothing is allocated before that is known, and no run starts before the database's first page or
//! ends beyond the longest database.
//!
//! Source: SQLite's documentation of `SQLITE_IOCAP_BATCH_ATOMIC`; write-ahead redo logging as in Mohan et al., "ARIES",
//! TODS 17(1), 1992, of pages as they are after the transaction.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use libsqlite3_sys as sqlite;

use crate::batch_record::{
    BLOCK, CHECKSUM_AT, ENTRY, HEAD, LONGEST_IN_LOG, SMALLEST_PAGE, checksum, decode, encode, u64_at, zeros,
};
pub(crate) use crate::batch_record::{LONGEST_BATCH, MAGIC, Owner, Runs};
use crate::error::Failure;
use crate::store::{Cut, Store};

/// Suffix of a log's name.
pub(crate) const SUFFIX: &str = "-fwbatch";
/// Length at which the log is restarted; in unit tests after a few transactions, so that power cuts hit the restart.
const LONGEST_LOG: u64 = if cfg!(test) { 96 << 10 } else { 4 << 20 };

/// Shared data of the connections to a database. It is valid only while one of them is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub generation: u64,
    /// Batches in the log.
    pub count: u64,
    /// The place of the next batch; at most one block if there is none.
    pub end: u64,
    /// Batches started since the first connection opened the database.
    pub begun: u64,
    /// Batches of those that are in the database.
    pub applied: u64,
}

impl Marks {
    pub(crate) const BYTES: usize = 48;

    /// As they stand in the log's first block.
    pub(crate) fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        let fields = [self.generation, self.count, self.end, self.begun, self.applied];
        for (place, field) in bytes[8..].chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let field = |index: usize| u64_at(bytes, 8 * index);
        bytes.starts_with(MAGIC).then(|| Self {
            generation: field(1),
            count: field(2),
            end: field(3),
            begun: field(4),
            applied: field(5),
        })
    }
}

/// The state found by a read-only connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peeked {
    /// Others have the database open, and the marks say what is in it.
    InUse,
    /// The last writer has gone.
    Left,
}

/// The place of a log, and the other connections to its database.
pub(crate) trait BatchPlace: Send {
    /// Joins the connections to the database; returns whether there are no others. Then the next one waits until
    /// [`BatchPlace::settled`]. Fails with `SQLITE_READONLY_DIRECTORY` if there is no log and none can be created, and
    /// with `SQLITE_BUSY` if another connection is being opened or closed.
    fn join(&mut self) -> Result<bool, Failure>;
    /// Opens an existing log for reading, without joining.
    fn peek(&mut self) -> Result<Option<Peeked>, Failure>;
    /// All batches are in the database.
    fn settled(&mut self, marks: Marks) -> Result<(), Failure>;
    /// Starts to leave; returns whether there are no others. Then the next one waits until [`BatchPlace::left`].
    fn leave(&mut self) -> Result<bool, Failure>;
    /// Has left; `removes` the log.
    fn left(&mut self, removes: bool);
    fn marks(&mut self) -> Result<Marks, Failure>;
    fn set_marks(&mut self, marks: Marks) -> Result<(), Failure>;
    /// Bytes of the log.
    fn size(&mut self) -> Result<u64, Failure>;
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure>;
    /// Allocates space: a later write up to `end` cannot find the drive full.
    fn reserve(&mut self, end: u64) -> Result<(), Failure>;
    /// Writes; on return the bytes are on the medium, where they are to be `durable`.
    fn write(&mut self, offset: u64, data: &[u8], durable: bool) -> Result<(), Failure>;
}

/// A batch that is in the log and not in the database yet.
pub(crate) struct Logged(Marks);

/// The log of one open database.
pub(crate) struct BatchLog {
    place: Box<dyn BatchPlace>,
    owner: Owner,
    joined: bool,
    /// The length and the first bytes of an abandoned log whose batches are all in the database.
    found_in_database: Option<(u64, [u8; Marks::BYTES])>,
    /// As of the lock that is held now: no other connection commits a batch meanwhile.
    marks: Marks,
}

impl BatchLog {
    pub(crate) fn new(place: Box<dyn BatchPlace>, owner: Owner) -> Self {
        Self { place, owner, joined: false, found_in_database: None, marks: Marks::default() }
    }

    /// A lock is held from here on: when this returns, all batches are in the database.
    pub(crate) fn enter<S: Store>(&mut self, database: &mut S, how: Cut) -> Result<(), Failure> {
        if !self.joined {
            self.join(database, how)?;
        }
        self.marks = self.place.marks()?;
        let Marks { begun, applied, .. } = self.marks;
        if begun == applied {
            return Ok(());
        }
        let fresh = self.play_back(database, how)?;
        self.set_marks(Marks { begun, applied: begun, ..fresh })
    }

    /// The same for a read-only connection: fails if the log has batches that are not in the database.
    pub(crate) fn look<S: Store>(&mut self, database: &mut S) -> Result<(), Failure> {
        let Some(peeked) = self.place.peek()? else { return Ok(()) };
        let (size, mut first) = (self.place.size()?, [0; Marks::BYTES]);
        self.place.read(0, &mut first)?;
        if peeked == Peeked::InUse && Marks::decode(&first).is_some_and(|marks| marks.begun == marks.applied) {
            return Ok(());
        }
        let found = Some((size, first));
        if self.found_in_database == found {
            return Ok(());
        }
        if !self.is_in_database(database)? {
            let why = format!(
                "{}: its batch log contains transactions that are not yet in the database; open it once for writing",
                database.name()
            );
            return Err(Failure::new(sqlite::SQLITE_READONLY_ROLLBACK, why));
        }
        self.found_in_database = found;
        Ok(())
    }

    /// Whether playing back would change nothing.
    fn is_in_database<S: Store>(&mut self, database: &mut S) -> Result<bool, Failure> {
        let mut reader = Reader::new(self.place.as_mut(), self.owner);
        let mut runs = Runs::new();
        while let Some(batch) = reader.next()? {
            runs.extend(batch);
        }
        // Of a page that is in several batches the last one counts.
        let page = SMALLEST_PAGE as u64;
        let mut last = BTreeMap::new();
        for (number, (start, data)) in runs.iter().enumerate() {
            if !start.is_multiple_of(page) || !data.len().is_multiple_of(SMALLEST_PAGE) {
                return Ok(false);
            }
            last.extend((start / page..).take(data.len() / SMALLEST_PAGE).map(|at| (at, number)));
        }
        let mut there = [0; SMALLEST_PAGE];
        for (number, (start, data)) in runs.iter().enumerate() {
            for (at, wanted) in (start / page..).zip(data.chunks_exact(SMALLEST_PAGE)) {
                let counts = last.get(&at) == Some(&number);
                if counts && (database.read(at * page, &mut there)? < SMALLEST_PAGE || there != *wanted) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Nothing is written before the existing batches are replayed.
    fn check_joined(&self) -> Result<(), Failure> {
        match self.joined {
            true => Ok(()),
            false => Err(Failure::new(sqlite::SQLITE_IOERR, "the batch log is not open")),
        }
    }

    fn set_marks(&mut self, marks: Marks) -> Result<(), Failure> {
        debug_assert!(self.joined, "only who has joined changes the marks");
        let Marks { begun, applied, .. } = marks;
        debug_assert!(applied <= begun && begun - applied <= 1, "one batch at a time is begun and not in the database");
        self.marks = marks;
        self.place.set_marks(marks)
    }

    fn join<S: Store>(&mut self, database: &mut S, how: Cut) -> Result<(), Failure> {
        if self.place.join()? {
            let fresh = self.play_back(database, how).inspect_err(|_| self.place.left(false))?;
            self.place.settled(fresh)?;
        }
        self.joined = true;
        Ok(())
    }

    /// Brings every batch into the database, and voids the log.
    fn play_back<S: Store>(&mut self, database: &mut S, how: Cut) -> Result<Marks, Failure> {
        let mut reader = Reader::new(self.place.as_mut(), self.owner);
        let mut found = 0;
        while let Some(runs) = reader.next()? {
            database.write_all(&runs, how)?;
            found += 1;
        }
        if found > 0 {
            database.sync(sqlite::SQLITE_SYNC_NORMAL)?;
            self.void()?;
        }
        Ok(self.empty())
    }

    /// No batch of before counts any more.
    fn void(&mut self) -> Result<(), Failure> {
        self.place.write(BLOCK, &[0; BLOCK as usize], true)
    }

    /// The same while others may commit. On failure, the first batch may be lost, and then no later one is valid: the
    /// log counts as full.
    fn void_before_others(&mut self) -> Result<(), Failure> {
        self.void().inspect_err(|_| {
            let end = self.marks.end.max(LONGEST_LOG);
            let _ = self.set_marks(Marks { end, ..self.marks });
        })
    }

    fn empty(&self) -> Marks {
        // Any number that no earlier batch in the file bears.
        Marks { generation: RandomState::new().hash_one(self.owner.identity), end: BLOCK, ..Marks::default() }
    }

    /// Makes a batch durable in the log: from here on it counts. The caller writes it to the database and calls
    /// [`BatchLog::applied`]. On failure nothing has happened.
    pub(crate) fn log<S: Store>(&mut self, database: &mut S, runs: &Runs) -> Result<Logged, Failure> {
        self.check_joined()?;
        let mut marks = self.marks;
        debug_assert_eq!(marks.begun, marks.applied, "the batch before is in the database, or was taken back");
        let mut batch = encode(marks.generation, marks.count, self.owner.identity, runs);
        if marks.count == 0 || marks.end + batch.len() as u64 > LONGEST_LOG {
            // Including writes of others past the log that are not synced.
            database.sync(sqlite::SQLITE_SYNC_NORMAL)?;
            if marks.count > 0 {
                self.void_before_others()?;
            }
            marks = Marks { begun: marks.begun, applied: marks.applied, ..self.empty() };
            batch = encode(marks.generation, marks.count, self.owner.identity, runs);
        }
        debug_assert!((batch.len() as u64).is_multiple_of(BLOCK), "no later batch tears this one");
        let end = marks.end + batch.len() as u64;
        self.place.reserve(end)?;
        marks.begun += 1;
        let begun = self.set_marks(marks);
        if let Err(failure) = begun.and_then(|()| self.place.write(marks.end, &batch, true)) {
            self.take_back(marks);
            return Err(failure);
        }
        Ok(Logged(Marks { count: marks.count + 1, end, applied: marks.begun, ..marks }))
    }

    /// The batch is in the database.
    pub(crate) fn applied(&mut self, batch: Logged) -> Result<(), Failure> {
        debug_assert_eq!(batch.0.begun, self.marks.begun, "it is the batch that was logged last");
        self.set_marks(batch.0)
    }

    /// The batch that could not be written has failed for everybody.
    fn take_back(&mut self, marks: Marks) {
        // If this fails too, the batch is either complete or not valid.
        let _ = self.place.write(marks.end, &[0; HEAD], false);
        //
        // If the log was restarted with it, the medium may still have the earlier batches, which must not come back:
        // the log counts as full, so that the next operation restarts or voids it.
        let (count, end) = (marks.count.max(1), marks.end.max(LONGEST_LOG));
        let _ = self.set_marks(Marks { count, end, applied: marks.begun, ..marks });
    }

    /// Later writes go to the database past the log.
    pub(crate) fn retire<S: Store>(&mut self, database: &mut S) -> Result<(), Failure> {
        self.check_joined()?;
        let marks = self.marks;
        if marks.count > 0 {
            database.sync(sqlite::SQLITE_SYNC_NORMAL)?;
            self.void_before_others()?;
            self.set_marks(Marks { begun: marks.begun, applied: marks.applied, ..self.empty() })?;
        }
        Ok(())
    }

    /// The database is closed. The last one leaves a database that needs no log.
    pub(crate) fn leave<S: Store>(&mut self, database: &mut S) -> Result<(), Failure> {
        if !std::mem::take(&mut self.joined) {
            return Ok(());
        }
        debug_assert!(!self.joined, "it leaves once");
        let is_last = self.place.leave()?;
        let finished = match is_last {
            true => self.place.marks().and_then(|marks| finish(marks, database)),
            false => Ok(false),
        };
        self.place.left(matches!(finished, Ok(true)));
        finished.map(|_| ())
    }
}

/// Makes all batches durable in the database; `false` if one of them is not in it yet.
fn finish<S: Store>(marks: Marks, database: &mut S) -> Result<bool, Failure> {
    if marks.begun != marks.applied {
        return Ok(false);
    }
    if marks.count > 0 {
        database.sync(sqlite::SQLITE_SYNC_NORMAL)?;
    }
    Ok(true)
}

/// Reads the batches that count, one after the other.
struct Reader<'a> {
    place: &'a mut dyn BatchPlace,
    owner: Owner,
    at: u64,
    /// Generation and number of the next one, once the first is read.
    next: Option<(u64, u64)>,
}

impl<'a> Reader<'a> {
    fn new(place: &'a mut dyn BatchPlace, owner: Owner) -> Self {
        Self { place, owner, at: BLOCK, next: None }
    }

    fn next(&mut self) -> Result<Option<Runs>, Failure> {
        let rest = self.place.size()?.saturating_sub(self.at);
        let mut head = [0; HEAD];
        if rest < HEAD as u64 || self.place.read(self.at, &mut head)? < HEAD || !head.starts_with(MAGIC) {
            return Ok(None);
        }
        let [generation, number, identity, count, length] = [1, 2, 3, 4, 5].map(|field| u64_at(&head, 8 * field));
        let follows = self.next.map_or(number == 0, |next| next == (generation, number));
        if !follows || identity != self.owner.identity {
            return Ok(None);
        }
        // Space for a batch is allocated, durably, before its head is written: no power cut leaves a batch that is too
        // long.
        let table = (HEAD as u64).checked_add(count.saturating_mul(ENTRY as u64));
        if length > LONGEST_IN_LOG.min(rest) || table.is_none_or(|table| table > length) {
            let why = format!(
                "the batch log is damaged: batch {number} has a length of {length} bytes and {count} runs, but {rest} \
                 bytes are left and the limit is {LONGEST_IN_LOG}; restore the database and its -fwbatch file from a \
                 backup, or move that file away and lose its transactions"
            );
            return Err(Failure::new(sqlite::SQLITE_CORRUPT, why));
        }
        // The search for all batches keeps all of them in memory.
        if self.next.is_some() && self.at + length.next_multiple_of(BLOCK) > LONGEST_LOG {
            let why = format!("the batch log is damaged: batch {number} ends beyond {LONGEST_LOG} bytes");
            return Err(Failure::new(sqlite::SQLITE_CORRUPT, why));
        }
        let mut batch = zeros(length as usize)?;
        if self.place.read(self.at, &mut batch)? < batch.len() || checksum(&batch) != u64_at(&batch, CHECKSUM_AT) {
            return Ok(None);
        }
        let Some(runs) = decode(&batch)? else { return Ok(None) };
        if let Some((start, _)) = runs.iter().find(|(start, data)| !self.owner.has(*start, data.len())) {
            let why = format!("the batch log is damaged: batch {number} has bytes for {start}, where no page can be");
            return Err(Failure::new(sqlite::SQLITE_CORRUPT, why));
        }
        self.next = Some((generation, number + 1));
        self.at += length.next_multiple_of(BLOCK);
        Ok(Some(runs))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;

    use super::*;

    /// A log and its database in memory, for as many as like.
    #[derive(Clone, Debug, Default)]
    struct Shared(Arc<Mutex<Memory>>);

    #[derive(Clone, Debug, Default)]
    struct Memory {
        log: Vec<u8>,
        /// Writes of the log, each durable before the next.
        writes: Vec<(usize, Vec<u8>)>,
        database: Vec<u8>,
        marks: Option<Marks>,
        members: usize,
        syncs: usize,
        fails: bool,
    }

    impl Memory {
        fn put(&mut self, offset: usize, data: &[u8]) {
            let end = offset + data.len();
            self.log.resize(self.log.len().max(end), 0);
            self.log[offset..end].copy_from_slice(data);
        }
    }

    impl BatchPlace for Shared {
        fn join(&mut self) -> Result<bool, Failure> {
            let mut memory = self.0.lock().unwrap();
            memory.members += 1;
            Ok(memory.members == 1)
        }
        fn peek(&mut self) -> Result<Option<Peeked>, Failure> {
            let memory = self.0.lock().unwrap();
            let peeked = if memory.members > 0 { Peeked::InUse } else { Peeked::Left };
            Ok((!memory.log.is_empty()).then_some(peeked))
        }
        fn settled(&mut self, marks: Marks) -> Result<(), Failure> {
            self.set_marks(marks)
        }
        fn leave(&mut self) -> Result<bool, Failure> {
            Ok(self.0.lock().unwrap().members == 1)
        }
        fn left(&mut self, removes: bool) {
            let mut memory = self.0.lock().unwrap();
            memory.members -= 1;
            if removes {
                memory.log.clear();
            }
        }
        fn marks(&mut self) -> Result<Marks, Failure> {
            Ok(self.0.lock().unwrap().marks.unwrap())
        }
        fn set_marks(&mut self, marks: Marks) -> Result<(), Failure> {
            self.0.lock().unwrap().marks = Some(marks);
            Ok(())
        }
        fn size(&mut self) -> Result<u64, Failure> {
            Ok(self.0.lock().unwrap().log.len() as u64)
        }
        fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
            let memory = self.0.lock().unwrap();
            let there = memory.log.get(offset as usize..).unwrap_or(&[]);
            let length = there.len().min(into.len());
            into[..length].copy_from_slice(&there[..length]);
            Ok(length)
        }
        fn reserve(&mut self, _end: u64) -> Result<(), Failure> {
            Ok(())
        }
        fn write(&mut self, offset: u64, data: &[u8], _durable: bool) -> Result<(), Failure> {
            let mut memory = self.0.lock().unwrap();
            memory.put(offset as usize, data);
            memory.writes.push((offset as usize, data.to_vec()));
            match memory.fails && data.starts_with(MAGIC) {
                true => Err(Failure::new(sqlite::SQLITE_IOERR_WRITE, "injected fault")),
                false => Ok(()),
            }
        }
    }

    /// The database of a [`Shared`].
    struct Database(Shared);

    impl Store for Database {
        fn name(&self) -> &str {
            "memory"
        }
        fn size(&mut self) -> Result<u64, Failure> {
            Ok(self.0.0.lock().unwrap().database.len() as u64)
        }
        fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
            let memory = self.0.0.lock().unwrap();
            let there = memory.database.get(offset as usize..).unwrap_or(&[]);
            let length = there.len().min(into.len());
            into[..length].copy_from_slice(&there[..length]);
            Ok(length)
        }
        fn reserve(&mut self, _end: u64) -> Result<(), Failure> {
            Ok(())
        }
        fn write(&mut self, offset: u64, data: &[u8], _how: Cut) -> Result<(), Failure> {
            let mut memory = self.0.0.lock().unwrap();
            let end = offset as usize + data.len();
            let length = memory.database.len().max(end);
            memory.database.resize(length, 0);
            memory.database[offset as usize..end].copy_from_slice(data);
            Ok(())
        }
        fn truncate(&mut self, _size: u64) -> Result<(), Failure> {
            unreachable!("batches only write")
        }
        fn sync(&mut self, _flags: std::ffi::c_int) -> Result<(), Failure> {
            self.0.0.lock().unwrap().syncs += 1;
            Ok(())
        }
    }

    const OWNER: Owner = Owner { identity: 7, first: 0 };

    fn entered(shared: &Shared) -> (BatchLog, Database) {
        let (mut log, mut database) = (BatchLog::new(Box::new(shared.clone()), OWNER), Database(shared.clone()));
        log.enter(&mut database, Cut::Whole).unwrap();
        (log, database)
    }

    fn commit(log: &mut BatchLog, database: &mut Database, runs: &Runs) {
        let batch = log.log(database, runs).unwrap();
        database.write_all(runs, Cut::Whole).unwrap();
        log.applied(batch).unwrap();
    }

    fn page(at: u64, fill: u8) -> Runs {
        vec![(at * 4096, vec![fill; 4096])]
    }

    #[test]
    fn who_finds_a_batch_begun_and_not_in_the_database_plays_it_back() {
        let shared = Shared::default();
        let ((mut writer, mut database), (mut reader, mut other)) = (entered(&shared), entered(&shared));
        commit(&mut writer, &mut database, &page(0, 1));
        // The writer dies when the batch is in the log.
        writer.log(&mut database, &page(1, 2)).unwrap();
        assert_eq!(shared.0.lock().unwrap().database, [1; 4096]);
        reader.enter(&mut other, Cut::Whole).unwrap();
        assert_eq!(shared.0.lock().unwrap().database, [[1; 4096], [2; 4096]].concat());
        let marks = shared.0.lock().unwrap().marks.unwrap();
        assert_eq!((marks.count, marks.begun, marks.applied), (0, 2, 2), "the log begins anew");
    }

    #[test]
    fn a_batch_that_fails_is_taken_back_whatever_of_it_is_there() {
        let shared = Shared::default();
        let (mut log, mut database) = entered(&shared);
        commit(&mut log, &mut database, &page(0, 1));
        shared.0.lock().unwrap().fails = true;
        assert!(log.log(&mut database, &page(1, 2)).is_err());
        shared.0.lock().unwrap().fails = false;
        let (_, _) = entered(&shared);
        // All connections disappear at once.
        shared.0.lock().unwrap().members = 0;
        entered(&shared);
        assert_eq!(shared.0.lock().unwrap().database, [1; 4096]);
    }

    #[test]
    fn what_the_log_had_before_it_failed_to_begin_anew_does_not_come_back() {
        let shared = Shared::default();
        let (mut log, mut database) = entered(&shared);
        commit(&mut log, &mut database, &page(0, 1));
        let before = shared.0.lock().unwrap().log.clone();
        while log.marks.end + 2 * 4096 <= LONGEST_LOG {
            commit(&mut log, &mut database, &page(0, 1));
        }
        shared.0.lock().unwrap().fails = true;
        assert!(log.log(&mut database, &page(1, 2)).is_err());
        // Neither the failed write nor its undo is on the medium.
        shared.0.lock().unwrap().log[..before.len()].copy_from_slice(&before);
        shared.0.lock().unwrap().fails = false;
        log.retire(&mut database).unwrap();
        database.write(0, &[9; 4096], Cut::Whole).unwrap();
        shared.0.lock().unwrap().members = 0;
        entered(&shared);
        assert_eq!(shared.0.lock().unwrap().database, [9; 4096]);
    }

    /// A power cut lost two acknowledged transactions: of the batch that restarted the log, the medium had all but the
    /// start, and so the first of the old batches but not the next.
    #[test]
    fn a_batch_that_begins_the_log_anew_and_is_torn_leaves_nothing_of_the_old_one_to_play_back() {
        let shared = Shared::default();
        let (mut log, mut database) = entered(&shared);
        let batch = 2 * 4096;
        let mut fill = 0;
        while log.marks.end + batch <= LONGEST_LOG {
            fill += 1;
            commit(&mut log, &mut database, &page(0, fill));
        }
        let mut medium = shared.0.lock().unwrap().clone();
        assert_eq!(medium.database, [fill; 4096]);
        let long = vec![(0, vec![99; 5 * 4096])];
        log.log(&mut database, &long).unwrap();
        let mut writes = shared.0.lock().unwrap().writes.split_off(medium.writes.len());
        let (at, torn) = writes.pop().unwrap();
        writes.iter().for_each(|(at, whole)| medium.put(*at, whole));
        let lost = batch as usize;
        medium.put(at + lost, &torn[lost..]);
        medium.members = 0;
        let survivor = Shared(Arc::new(Mutex::new(medium)));
        entered(&survivor);
        assert_eq!(survivor.0.lock().unwrap().database, [fill; 4096], "as the last of them left it");
    }

    #[test]
    fn what_goes_past_the_log_is_not_undone_by_it() {
        let shared = Shared::default();
        let (mut log, mut database) = entered(&shared);
        commit(&mut log, &mut database, &page(0, 1));
        log.retire(&mut database).unwrap();
        let syncs = shared.0.lock().unwrap().syncs;
        log.retire(&mut database).unwrap();
        assert_eq!(shared.0.lock().unwrap().syncs, syncs, "once is enough");
        database.write(0, &[9; 4096], Cut::Whole).unwrap();
        shared.0.lock().unwrap().members = 0;
        entered(&shared);
        assert_eq!(shared.0.lock().unwrap().database, [9; 4096]);
    }

    /// A log with one batch as a forger writes it: fields of its head, and its checksum.
    fn forged(change: impl FnOnce(&mut Vec<u8>)) -> Shared {
        let mut batch = encode(1, 0, OWNER.identity, &page(3, 1));
        change(&mut batch);
        let whole = batch.len().min(HEAD + ENTRY + 4096);
        let checksum = checksum(&batch[..whole]);
        batch[CHECKSUM_AT..HEAD].copy_from_slice(&checksum.to_le_bytes());
        let shared = Shared::default();
        shared.0.lock().unwrap().log = [vec![0; 4096], batch].concat();
        shared
    }

    #[test]
    fn a_length_or_a_place_that_no_batch_can_have_is_refused_in_words_and_nothing_is_allocated_for_it() {
        let enter = |shared: &Shared| {
            let mut log = BatchLog::new(Box::new(shared.clone()), Owner { first: 4096, ..OWNER });
            log.enter(&mut Database(shared.clone()), Cut::Whole)
        };
        enter(&forged(|_| ())).unwrap();
        let set =
            |at: usize, value: u64| move |batch: &mut Vec<u8>| batch[at..at + 8].copy_from_slice(&value.to_le_bytes());
        let (runs_at, length_at, start_at) = (32, 40, HEAD);
        let whole = (HEAD + ENTRY + 4096) as u64;
        for (at, value) in [
            (length_at, 8 << 40),
            (length_at, u64::MAX),
            (length_at, LONGEST_IN_LOG + 1),
            // Longer than the file is.
            (length_at, whole + 8192),
            (length_at, 8),
            (runs_at, u64::MAX),
            (runs_at, whole),
            // Over our header, and beyond any database.
            (start_at, 0),
            (start_at, u64::MAX - 100),
            (start_at, 1 << 50),
        ] {
            let shared = forged(set(at, value));
            let failure = enter(&shared).unwrap_err();
            assert!(failure.code == sqlite::SQLITE_CORRUPT && failure.message.contains("damaged"), "{at} {value}");
            assert!(shared.0.lock().unwrap().database.is_empty(), "{at} {value}");
        }
    }

    #[test]
    fn a_log_longer_than_any_is_written_is_refused_before_all_of_it_is_in_memory() {
        let mut log = vec![0; 4096];
        let enter = |log: &[u8]| {
            let shared = Shared::default();
            shared.0.lock().unwrap().log = log.to_vec();
            BatchLog::new(Box::new(shared.clone()), OWNER).enter(&mut Database(shared), Cut::Whole)
        };
        let batch = |number: u64| encode(1, number, OWNER.identity, &page(3, 1));
        let mut number = 0;
        while (log.len() + batch(number).len()) as u64 <= LONGEST_LOG {
            log.extend(batch(number));
            number += 1;
        }
        enter(&log).unwrap();
        log.extend(batch(number));
        let failure = enter(&log).unwrap_err();
        assert!(
            failure.code == sqlite::SQLITE_CORRUPT && failure.message.contains("ends beyond"),
            "{}",
            failure.message
        );
    }

    #[test]
    fn who_may_only_read_changes_nothing_and_does_not_pass_over_what_is_not_in_the_database() {
        let shared = Shared::default();
        let (mut writer, mut database) = entered(&shared);
        commit(&mut writer, &mut database, &page(0, 1));
        commit(&mut writer, &mut database, &page(1, 2));
        commit(&mut writer, &mut database, &page(0, 3));
        let mut reader = BatchLog::new(Box::new(shared.clone()), OWNER);
        let mut look = || reader.look(&mut Database(shared.clone())).map_err(|failure| failure.code);
        let unchanged = || {
            let memory = shared.0.lock().unwrap();
            (memory.log.clone(), memory.marks, memory.members, memory.writes.len())
        };
        let before = unchanged();
        assert_eq!(look(), Ok(()), "others have it open");
        // They are killed: the page cache has everything.
        shared.0.lock().unwrap().members = 0;
        assert_eq!(look(), Ok(()));
        // The power is cut: it has not.
        shared.0.lock().unwrap().database.truncate(4096);
        shared.0.lock().unwrap().log[0] ^= 1;
        assert_eq!(look(), Err(sqlite::SQLITE_READONLY_ROLLBACK));
        shared.0.lock().unwrap().log[0] ^= 1;
        assert_eq!((unchanged().1, unchanged().2, unchanged().3), (before.1, 0, before.3));
    }

    #[test]
    fn marks_read_as_they_were_written() {
        let marks = Marks { generation: 1, count: 2, end: 3, begun: 4, applied: 5 };
        assert_eq!(Marks::decode(&marks.encode()), Some(marks));
        assert_eq!(Marks::decode(&[0; Marks::BYTES]), None);
    }

    fn runs() -> impl Strategy<Value = Runs> {
        prop::collection::vec((0..40_u64, 1..9_usize, any::<u8>()), 1..6)
            .prop_map(|runs| runs.into_iter().map(|(at, blocks, fill)| (at * 512, vec![fill; blocks * 512])).collect())
    }

    proptest! {
        #[test]
        fn whoever_comes_after_a_power_cut_finds_all_batches_and_nothing_else(
            batches in prop::collection::vec(runs(), 1..40),
            flipped in any::<prop::sample::Index>(),
        ) {
            let shared = Shared::default();
            let (mut log, mut database) = entered(&shared);
            // After a sync the medium has the complete database, before it the state of the last sync.
            let (mut states, mut syncs, mut medium) = (Vec::new(), 0, Vec::new());
            for runs in &batches {
                let before = shared.0.lock().unwrap().database.clone();
                commit(&mut log, &mut database, runs);
                let now = shared.0.lock().unwrap();
                if now.syncs > syncs {
                    (syncs, medium) = (now.syncs, before.clone());
                    states = vec![before];
                }
                states.push(now.database.clone());
            }
            let cut = |log: Vec<u8>| {
                let after = Shared::default();
                *after.0.lock().unwrap() = Memory { log, database: medium.clone(), ..Memory::default() };
                let mut log = BatchLog::new(Box::new(after.clone()), OWNER);
                let entered = log.enter(&mut Database(after.clone()), Cut::Whole).map_err(|failure| failure.code);
                entered.map(|()| after.0.lock().unwrap().database.clone())
            };
            let whole = shared.0.lock().unwrap().log.clone();
            prop_assert_eq!(cut(whole.clone()).ok(), states.last().cloned());
            let mut damaged = whole;
            let at = flipped.index(damaged.len());
            damaged[at] ^= 1;
            // An impossible length is refused, whatever its value.
            match cut(damaged) {
                Ok(database) => prop_assert!(states.contains(&database), "byte {} of the log", at),
                Err(code) => {
                    let is_length = (32..48).contains(&(at % BLOCK as usize));
                    prop_assert!(code == sqlite::SQLITE_CORRUPT && is_length, "byte {} of the log: {}", at, code);
                }
            }
        }

        #[test]
        fn no_bytes_are_a_batch_by_chance(bytes in prop::collection::vec(any::<u8>(), 0..9000), count in any::<u64>()) {
            let mut batch = encode(1, 0, 7, &page(0, 1));
            batch[32..40].copy_from_slice(&count.to_le_bytes());
            let checksum = checksum(&batch[..HEAD + ENTRY + 4096]);
            batch[CHECKSUM_AT..HEAD].copy_from_slice(&checksum.to_le_bytes());
            for log in [bytes.clone(), [vec![0; 4096], bytes].concat(), [vec![0; 4096], batch].concat()] {
                let shared = Shared::default();
                shared.0.lock().unwrap().log = log;
                let (mut log, mut there) = (BatchLog::new(Box::new(shared.clone()), OWNER), Database(shared.clone()));
                if let Err(failure) = log.enter(&mut there, Cut::Whole) {
                    prop_assert_eq!(failure.code, sqlite::SQLITE_CORRUPT);
                }
                let database = shared.0.lock().unwrap().database.clone();
                prop_assert!(database.is_empty() || count == 1, "{} bytes", database.len());
            }
        }
    }
}
