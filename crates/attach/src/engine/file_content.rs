//! The content of a drive in a file ([`crate::data`]): bytes are moved when the drive has done a command, just before
//! its completion is sent.
//!
//! An error of the file is the command's error for the client, and is reported to the user once per kind: the drive has
//! done the command then, and the bytes are unchanged.

use std::collections::BTreeSet;
use std::io;

use flashwise_block::{BlockError, ByteSize, Operation};
use flashwise_ssd::SimulatedSsd;

use super::{Active, Engine, HostRequest};
use crate::AttachError;
use crate::buffer_pool::BufferPool;
use crate::data::{DataFile, Versions};
use crate::error::os_message;

/// Pages whose older versions are kept before it is looked which of them are durable.
const PAGES: usize = 4096;
/// `ENOSPC`.
const NO_SPACE: i32 = 28;

/// The content of a drive in a file.
#[derive(Debug)]
pub(super) struct FileContent {
    file: DataFile,
    page_bytes: u64,
    /// Contents that a power cut may bring back, if power cuts are enabled and the drive loses data in one.
    versions: Option<Versions>,
    /// The content of one page, before it is kept.
    before: Box<[u8]>,
    /// At this number of pages, those that are durable are dropped.
    look_at: usize,
    /// The error number of the first failed sync: the content of the medium is unknown from then on.
    lost_sync: Option<i32>,
    /// Errors that were reported, and one that was not.
    reported: BTreeSet<i32>,
    unreported: Option<String>,
}

impl Engine {
    /// Stores the drive's bytes in a file from now on. The drive has none, and no request in flight.
    pub fn store_content_in(&mut self, file: DataFile, has_power_cuts: bool) {
        // The bytes of a volume are in the volume.
        let Some(drive) = self.drive.drive() else { return };
        let config = drive.config();
        let page_bytes = config.ftl.logical_page_bytes;
        let cached = config.controller.write_cache.as_ref().map_or(0, |cache| cache.bytes);
        // Volatile data fits the drive's memory: after a check, at most that many pages are left.
        let look_at = PAGES + 2 * ((config.controller.write_buffer_bytes + cached) / page_bytes) as usize;
        let has_versions = has_power_cuts && drive.has_volatile_memory();
        let versions = has_versions.then(|| Versions::new(page_bytes as usize, look_at));
        let before = vec![0; page_bytes as usize].into_boxed_slice();
        let (reported, unreported) = (BTreeSet::new(), None);
        self.bytes =
            Some(FileContent { file, page_bytes, versions, before, look_at, lost_sync: None, reported, unreported });
    }

    /// Whether the drive has never been written to, as far as is known.
    pub(crate) fn is_blank(&self) -> Result<bool, AttachError> {
        self.bytes.as_ref().map_or(Ok(true), |bytes| bytes.file.is_blank())
    }

    /// An error of the file that was not reported yet.
    pub(crate) fn take_data_error(&mut self) -> Option<String> {
        self.bytes.as_mut().and_then(|bytes| bytes.unreported.take())
    }

    /// A command goes to the drive: gives the number of the flush that it is.
    pub(super) fn prepare_transfer(&mut self, command: &HostRequest) -> u64 {
        let Some(bytes) = &mut self.bytes else { return 0 };
        bytes.file.is_used();
        match (command.operation, &mut bytes.versions) {
            (Operation::Flush, Some(versions)) => return versions.flush_begins(),
            (Operation::Read, _) => bytes.file.image.expect(command.offset.0, command.length.0),
            _ => {}
        }
        0
    }

    /// Moves the bytes of a command that the drive has done.
    pub(super) fn transfer(&mut self, active: &mut Active) -> Result<(), BlockError> {
        let Some(bytes) = &mut self.bytes else { return Ok(()) };
        let Some(drive) = self.drive.drive() else { return Ok(()) };
        let moved = bytes.transfer_for(active, drive, &self.buffers);
        moved.map_err(|error| bytes.failed(&error))
    }

    /// The power is about to be cut: pages that are not durable are as they were.
    pub(super) fn revert_content(&mut self) -> Result<(), AttachError> {
        let (Some(bytes), Some(drive)) = (&mut self.bytes, self.drive.drive()) else { return Ok(()) };
        let page_bytes = bytes.page_bytes;
        let Some(versions) = &mut bytes.versions else { return Ok(()) };
        versions.forget_durable(|page| drive.is_durable(ByteSize(page * page_bytes)));
        let image = &bytes.file.image;
        let reverted = versions.take_oldest(|page, before| match before {
            Some(before) => image.write(page * page_bytes, before),
            None => image.clear(page * page_bytes, page_bytes),
        });
        reverted.map_err(AttachError::system("the data file, at a power cut"))
    }

    /// Shuts the drive down and saves its state, if its bytes are in a file. Requests in flight are completed.
    ///
    /// # Errors
    /// [`AttachError::Data`] on failure: then the earlier state is kept, and the next attach reports it.
    pub fn detach(&mut self) -> Result<(), AttachError> {
        if self.bytes.is_none() {
            return Ok(());
        }
        let now = std::time::Instant::now();
        let mut answers = Vec::new();
        self.catch_up(now)?;
        self.poll_all(now, &mut answers)?;
        let (Some(bytes), Some(drive)) = (&mut self.bytes, self.drive.drive_mut()) else { return Ok(()) };
        bytes.file.is_used();
        bytes.file.detach(drive)
    }
}

impl FileContent {
    /// The length of the hole or data at `at`, up to `end`, and which it is.
    pub(super) fn part_at(&self, at: u64, end: u64) -> Result<(u64, bool), AttachError> {
        let data = self.file.image.next_data(at).map_err(AttachError::system("the data file"))?;
        Ok(match data {
            Some(range) if range.start <= at => (range.end.min(end), false),
            Some(range) => (range.start.min(end), true),
            None => (end, true),
        })
    }

    fn transfer_for(&mut self, active: &mut Active, drive: &SimulatedSsd, buffers: &BufferPool) -> io::Result<()> {
        let HostRequest { operation, offset, length, fua, ref payload, .. } = active.command;
        match (operation, payload) {
            (Operation::Read, _) => {
                let read = active.read.insert(buffers.take(length));
                self.file.image.read(offset.0, read)?;
            }
            (Operation::Write, Some(payload)) => {
                self.keep_versions(offset.0, length.0, |_| true)?;
                self.file.image.write(offset.0, payload)?;
                if fua {
                    self.pages_are_durable(offset.0 / self.page_bytes, (offset.0 + length.0).div_ceil(self.page_bytes));
                }
            }
            (Operation::Trim | Operation::WriteZeroes, _) => {
                // The drive trims whole pages at once and durably; it keeps the incomplete ones at the ends.
                let page = self.page_bytes;
                let whole = offset.0.div_ceil(page)..(offset.0 + length.0) / page;
                self.keep_versions(offset.0, length.0, |number| !whole.contains(&number))?;
                self.file.image.clear(offset.0, length.0)?;
                self.pages_are_durable(whole.start, whole.end);
            }
            (Operation::Flush, _) => {
                if let Some(versions) = &mut self.versions {
                    versions.flushed(active.flush);
                }
            }
            (Operation::Write, None) => {}
        }
        if self.file.syncs && (fua || operation == Operation::Flush) {
            self.sync()?;
        }
        if let Some(versions) = self.versions.as_mut().filter(|versions| versions.pages() > self.look_at) {
            versions.forget_durable(|page| drive.is_durable(ByteSize(page * self.page_bytes)));
            self.look_at = self.look_at.max(2 * versions.pages());
        }
        Ok(())
    }

    /// Syncs the file. The system drops data that a sync could not write: no later sync repairs that.
    fn sync(&mut self) -> io::Result<()> {
        if let Some(errno) = self.lost_sync {
            return Err(io::Error::from_raw_os_error(errno));
        }
        self.file.image.sync_bytes().inspect_err(|error| self.lost_sync = Some(error.raw_os_error().unwrap_or(5)))
    }

    /// Keeps the content of pages that is about to be replaced.
    fn keep_versions(&mut self, offset: u64, length: u64, is_meant: impl Fn(u64) -> bool) -> io::Result<()> {
        let Some(versions) = &mut self.versions else { return Ok(()) };
        versions.write();
        let pages = offset / self.page_bytes..(offset + length).div_ceil(self.page_bytes);
        for page in pages.filter(|&page| is_meant(page)) {
            if versions.wants(page) {
                self.file.image.read(page * self.page_bytes, &mut self.before)?;
                versions.keep(page, &self.before);
            }
        }
        Ok(())
    }

    fn pages_are_durable(&mut self, from: u64, to: u64) {
        if let Some(versions) = &mut self.versions {
            versions.forget_range(from, to);
        }
    }

    /// The error that the client gets.
    fn failed(&mut self, error: &io::Error) -> BlockError {
        let errno = error.raw_os_error().unwrap_or(0);
        if self.reported.insert(errno) {
            let (path, message) = (self.file.path().display(), os_message(error));
            self.unreported = Some(format!("{path}: {message}: requests fail"));
        }
        match errno {
            NO_SPACE => BlockError::NoSpace,
            _ => BlockError::os("the data file", error),
        }
    }
}
