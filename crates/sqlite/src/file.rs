//! The interface of an open file for the C side, in safe terms.

use std::ffi::{c_int, c_void};

use libsqlite3_sys as sqlite;

use crate::drive::DriveStore;
use crate::error::{Failure, checked_end};
use crate::ffi::{LONGEST, ParentFile};
use crate::handle::Handle;
use crate::locks::Level;
use crate::shm::SharedMemory;
use crate::store::Store;
use crate::write_transactions::WriteTransactions;

/// Promises of a medium that a write reaches it whole; a page that is cut in two cannot give them.
const ATOMIC_WRITES: c_int = sqlite::SQLITE_IOCAP_ATOMIC
    | sqlite::SQLITE_IOCAP_ATOMIC512
    | sqlite::SQLITE_IOCAP_ATOMIC1K
    | sqlite::SQLITE_IOCAP_ATOMIC2K
    | sqlite::SQLITE_IOCAP_ATOMIC4K
    | sqlite::SQLITE_IOCAP_ATOMIC8K
    | sqlite::SQLITE_IOCAP_ATOMIC16K
    | sqlite::SQLITE_IOCAP_ATOMIC32K
    | sqlite::SQLITE_IOCAP_ATOMIC64K
    | sqlite::SQLITE_IOCAP_BATCH_ATOMIC;

/// Features of a store beyond bytes.
pub(crate) trait FileStore: Store + Send {
    /// Raises the lock to one of SQLite's levels.
    fn lock(&mut self, level: c_int) -> Result<(), Failure>;
    /// Lowers the lock to SHARED or NONE.
    fn unlock(&mut self, level: c_int) -> Result<(), Failure>;
    /// Whether any connection holds RESERVED or more.
    fn is_reserved(&mut self) -> Result<bool, Failure>;
    /// SQLite's sector size.
    fn sector_size(&mut self) -> c_int;
    /// SQLite's `SQLITE_IOCAP_…` flags.
    fn characteristics(&mut self) -> c_int;
    /// The file of SQLite's own VFS behind this one, if there is one.
    fn parent(&mut self) -> Option<&mut ParentFile>;
    /// The shared memory of a write-ahead log's index, where the file can have one.
    fn shared_memory(&mut self) -> Option<&mut dyn SharedMemory>;
}

/// An open file as the C side sees it; see SQLite's `sqlite3_io_methods` for each.
pub(crate) trait SqliteFile: Send {
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure>;
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Failure>;
    fn truncate(&mut self, size: u64) -> Result<(), Failure>;
    fn sync(&mut self, flags: c_int) -> Result<(), Failure>;
    fn size(&mut self) -> Result<u64, Failure>;
    fn lock(&mut self, level: c_int) -> Result<(), Failure>;
    fn unlock(&mut self, level: c_int) -> Result<(), Failure>;
    fn is_reserved(&mut self) -> Result<bool, Failure>;
    fn sector_size(&mut self) -> c_int;
    fn characteristics(&mut self) -> c_int;
    fn parent(&mut self) -> Option<&mut ParentFile>;
    fn shared_memory(&mut self) -> Option<&mut dyn SharedMemory>;
    /// Writes held-back data, with failures reported to SQLite.
    fn write_out(&mut self) -> Result<(), Failure>;
    /// Writes held-back data where SQLite ignores failures.
    fn write_out_unheard(&mut self) -> Result<(), Failure>;
    /// The file is about to be closed; SQLite does not hear of a failure.
    fn close(&mut self) -> Result<(), Failure> {
        self.write_out_unheard()
    }
    /// Whether transactions may come as batches, which are atomic.
    fn takes_batches(&self) -> bool {
        false
    }
    /// SQLite starts to write a transaction as a batch; `false` if the file does not support that.
    fn begin_batch(&mut self) -> Result<bool, Failure> {
        Ok(false)
    }
    /// The transaction is complete.
    fn commit_batch(&mut self) -> Result<(), Failure> {
        Ok(())
    }
    /// The transaction is not to be.
    fn drop_batch(&mut self) {}
    /// `PRAGMA page_size = …`.
    fn request_pages(&mut self, _page_bytes: u64) -> Result<(), Failure> {
        Ok(())
    }
    /// A `VACUUM` is about to overwrite the whole database.
    fn check_overwrite(&mut self) -> Result<(), Failure> {
        Ok(())
    }
    /// A checkpoint has handed on its last page.
    fn copied(&mut self) -> Result<(), Failure> {
        Ok(())
    }
    /// A transaction and its journal have ended.
    fn committed(&mut self) {}
    /// Where the ends of the database's write transactions are noted.
    fn note_transactions(&mut self, _transactions: WriteTransactions) {}
    /// A write transaction in the log is about to end.
    fn end_transaction(&mut self) {}
    /// Whether SQLite's bytes have other places in the stored file.
    fn is_mapped(&self) -> bool;
    /// How long the stored file is, where SQLite's is to have `size` bytes.
    fn stored_size(&self, size: u64) -> u64;
    /// Where a span is in the memory of the process, if SQLite's own VFS maps the stored file and may be used.
    fn fetch(&mut self, _offset: u64, _length: usize) -> Result<*mut c_void, Failure> {
        Ok(std::ptr::null_mut())
    }
    /// Where in the parent's file a span is, if the parent can be called directly.
    fn straight(&mut self, _offset: u64, _length: usize) -> Result<Option<u64>, Failure> {
        Ok(None)
    }
    /// Called with the bytes that the parent read from there, if the file is to see them.
    fn went_straight(&mut self, _offset: u64, _bytes: &[u8]) {}
    fn poison(&mut self, why: &str);
}

impl<S: FileStore> SqliteFile for Handle<S> {
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
        Handle::read(self, offset, into)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Failure> {
        Handle::write(self, offset, data)
    }

    fn truncate(&mut self, size: u64) -> Result<(), Failure> {
        Handle::truncate(self, size)
    }

    fn sync(&mut self, flags: c_int) -> Result<(), Failure> {
        Handle::sync(self, flags)
    }

    fn size(&mut self) -> Result<u64, Failure> {
        Handle::size(self)
    }

    fn lock(&mut self, level: c_int) -> Result<(), Failure> {
        self.store().lock(level)?;
        if level == sqlite::SQLITE_LOCK_SHARED
            && let Err(failure) = self.enter()
        {
            // The failure that made it impossible is the one to report.
            let _ = self.store().unlock(sqlite::SQLITE_LOCK_NONE);
            return Err(failure);
        }
        self.is_exclusive |= level == sqlite::SQLITE_LOCK_EXCLUSIVE;
        self.is_writing |= level == sqlite::SQLITE_LOCK_RESERVED;
        Ok(())
    }

    fn unlock(&mut self, level: c_int) -> Result<(), Failure> {
        // Other connections may read as soon as the lock is down.
        let written = self.write_out_unheard();
        if std::mem::take(&mut self.is_exclusive) {
            self.end_transaction();
        }
        self.is_writing = false;
        self.store().unlock(level)?;
        written
    }

    fn is_reserved(&mut self) -> Result<bool, Failure> {
        self.store().is_reserved()
    }

    fn sector_size(&mut self) -> c_int {
        self.store().sector_size()
    }

    fn characteristics(&mut self) -> c_int {
        let all = self.store().characteristics();
        let all = if self.holds_back() { all & !ATOMIC_WRITES } else { all };
        if self.takes_batches() { all | sqlite::SQLITE_IOCAP_BATCH_ATOMIC } else { all }
    }

    fn parent(&mut self) -> Option<&mut ParentFile> {
        self.store().parent()
    }

    fn shared_memory(&mut self) -> Option<&mut dyn SharedMemory> {
        self.store().shared_memory()
    }

    fn write_out(&mut self) -> Result<(), Failure> {
        Handle::write_out(self)
    }

    fn write_out_unheard(&mut self) -> Result<(), Failure> {
        Handle::write_out_unheard(self)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Handle::close(self)
    }

    fn takes_batches(&self) -> bool {
        Handle::takes_batches(self)
    }

    fn begin_batch(&mut self) -> Result<bool, Failure> {
        Handle::begin_batch(self)
    }

    fn commit_batch(&mut self) -> Result<(), Failure> {
        Handle::commit_batch(self)
    }

    fn drop_batch(&mut self) {
        Handle::drop_batch(self);
    }

    fn request_pages(&mut self, page_bytes: u64) -> Result<(), Failure> {
        Handle::request_pages(self, page_bytes)
    }

    fn check_overwrite(&mut self) -> Result<(), Failure> {
        Handle::check_overwrite(self)
    }

    fn copied(&mut self) -> Result<(), Failure> {
        Handle::copied(self)
    }

    fn committed(&mut self) {
        Handle::committed(self);
    }

    fn note_transactions(&mut self, transactions: WriteTransactions) {
        self.transactions = Some(transactions);
    }

    fn end_transaction(&mut self) {
        if let Some(transactions) = &self.transactions {
            transactions.end();
        }
    }

    fn is_mapped(&self) -> bool {
        self.is_shifted()
    }

    fn stored_size(&self, size: u64) -> u64 {
        size.saturating_add(self.shift())
    }

    fn fetch(&mut self, offset: u64, length: usize) -> Result<*mut c_void, Failure> {
        self.enter_unlocked()?;
        // A mapping shows the file, without held-back data.
        if self.mapping().is_none() || self.is_held(offset, length) {
            return Ok(std::ptr::null_mut());
        }
        let at = checked_end(self.shift(), offset)?;
        match self.store().parent() {
            Some(parent) => parent.fetch(at, length).map_err(|code| Failure::new(code, "a mapping of the file failed")),
            None => Ok(std::ptr::null_mut()),
        }
    }

    fn straight(&mut self, offset: u64, length: usize) -> Result<Option<u64>, Failure> {
        self.enter_unlocked()?;
        if length > LONGEST || self.mapping().is_none() || self.is_held(offset, length) {
            return Ok(None);
        }
        self.before_read(offset, length);
        checked_end(self.shift(), offset).map(Some)
    }

    fn went_straight(&mut self, offset: u64, bytes: &[u8]) {
        self.after_read(offset, bytes);
    }

    fn poison(&mut self, why: &str) {
        Handle::poison(self, why);
    }
}

fn level(code: c_int) -> Result<Level, Failure> {
    Level::from_code(code).ok_or_else(|| Failure::new(sqlite::SQLITE_MISUSE, format!("no lock has the level {code}")))
}

impl FileStore for DriveStore {
    fn lock(&mut self, code: c_int) -> Result<(), Failure> {
        self.lock_level(level(code)?)
    }

    fn unlock(&mut self, code: c_int) -> Result<(), Failure> {
        self.unlock_level(level(code)?)
    }

    fn is_reserved(&mut self) -> Result<bool, Failure> {
        DriveStore::is_reserved(self)
    }

    fn sector_size(&mut self) -> c_int {
        DriveStore::sector_size(self) as c_int
    }

    fn characteristics(&mut self) -> c_int {
        // A partly written block is written whole with its earlier content.
        sqlite::SQLITE_IOCAP_POWERSAFE_OVERWRITE
    }

    fn parent(&mut self) -> Option<&mut ParentFile> {
        None
    }

    fn shared_memory(&mut self) -> Option<&mut dyn SharedMemory> {
        self.is_database().then_some(self as &mut dyn SharedMemory)
    }
}
