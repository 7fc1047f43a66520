//! The log of batches of a database on a drive: a file of the volume, and marks in memory, where all connections are.

use flashwise_trace::FileRole;
use libsqlite3_sys as sqlite;

use crate::batch::{BatchPlace, Marks, Peeked, SUFFIX};
use crate::drive::{Drive, DriveStore, SharedDrive, lock};
use crate::error::Failure;
use crate::medium::OpenMode;
use crate::store::{Cut, Store};

/// The connections to a database.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Members {
    count: usize,
    /// `None` until the first of them has replayed existing batches.
    marks: Option<Marks>,
}

/// A log on a drive.
pub(crate) struct BatchVolume {
    drive: SharedDrive,
    database: String,
    store: Option<DriveStore>,
}

impl BatchVolume {
    pub(crate) fn new(drive: SharedDrive, database: &str) -> Self {
        Self { drive, database: database.to_owned(), store: None }
    }

    fn log_name(&self) -> String {
        format!("{}{SUFFIX}", self.database)
    }

    fn store(&mut self) -> Result<&mut DriveStore, Failure> {
        let closed = || Failure::new(sqlite::SQLITE_IOERR, "the batch log is not open");
        self.store.as_mut().ok_or_else(closed)
    }

    fn with_members<T>(&self, work: impl FnOnce(&mut Members) -> T) -> Result<T, Failure> {
        Ok(work(lock(&self.drive)?.members.entry(self.database.clone()).or_default()))
    }
}

impl BatchPlace for BatchVolume {
    fn join(&mut self) -> Result<bool, Failure> {
        let is_first = self.with_members(|members| match members {
            Members { count: 0, .. } => Some(true),
            Members { marks: Some(_), .. } => Some(false),
            Members { marks: None, .. } => None,
        })?;
        let Some(is_first) = is_first else {
            let why = format!("{}: another connection is replaying its batch log", self.database);
            return Err(Failure::new(sqlite::SQLITE_BUSY, why));
        };
        let mode = OpenMode { role: FileRole::Journal, create: true, exclusive: false };
        self.store = Some(DriveStore::open(&self.drive, Some(&self.log_name()), mode)?);
        self.with_members(|members| members.count += 1)?;
        Ok(is_first)
    }

    fn peek(&mut self) -> Result<Option<Peeked>, Failure> {
        if !lock(&self.drive)?.exists(&self.log_name()) {
            return Ok(None);
        }
        let mode = OpenMode { role: FileRole::Journal, create: false, exclusive: false };
        self.store = Some(DriveStore::open(&self.drive, Some(&self.log_name()), mode)?);
        let drive = lock(&self.drive)?;
        let is_in_use = drive.members.get(&self.database).is_some_and(|members| members.count > 0);
        Ok(Some(if is_in_use { Peeked::InUse } else { Peeked::Left }))
    }

    fn settled(&mut self, marks: Marks) -> Result<(), Failure> {
        self.set_marks(marks)
    }

    fn leave(&mut self) -> Result<bool, Failure> {
        self.with_members(|members| members.count == 1)
    }

    fn left(&mut self, removes: bool) {
        self.store = None;
        let Ok(mut drive) = lock(&self.drive) else { return };
        let Drive { members, .. } = &mut *drive;
        if let Some(left) = members.get_mut(&self.database) {
            left.count = left.count.saturating_sub(1);
            if left.count == 0 {
                members.remove(&self.database);
            }
        }
        if removes {
            // The batches of a leftover log are in the database: replaying them changes nothing.
            let _ = drive.delete(&self.log_name(), false);
        }
    }

    fn marks(&mut self) -> Result<Marks, Failure> {
        let unknown = || Failure::new(sqlite::SQLITE_IOERR, "the batch log has no marks");
        self.with_members(|members| members.marks)?.ok_or_else(unknown)
    }

    fn set_marks(&mut self, marks: Marks) -> Result<(), Failure> {
        self.with_members(|members| members.marks = Some(marks))
    }

    fn size(&mut self) -> Result<u64, Failure> {
        self.store()?.size()
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Failure> {
        self.store()?.read(offset, into)
    }

    fn reserve(&mut self, end: u64) -> Result<(), Failure> {
        let store = self.store()?;
        store.reserve(end)?;
        if store.size()? == 0 {
            // By its first byte the file is known to be in use.
            store.write(0, &Marks::default().encode(), Cut::Whole)?;
        }
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8], durable: bool) -> Result<(), Failure> {
        let store = self.store()?;
        store.write(offset, data, Cut::Whole)?;
        if durable { store.sync(sqlite::SQLITE_SYNC_NORMAL) } else { Ok(()) }
    }
}
