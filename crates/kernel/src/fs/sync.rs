//! Making files durable.
//!
//! Linux 6.18:
//! - `fs/sync.c`, `mm/filemap.c` `file_write_and_wait_range`: dirty pages are written and waited for;
//! - `fs/ext4/fsync.c` `ext4_fsync_journal`: then the transaction that changed the inode is committed, for `fdatasync`
//!   only the one that changed more than its time stamps; the commit's own flush makes the data durable. Where that is
//!   in the log already a flush is sent instead; with fast commits (`fs/ext4/fast_commit.rs`) one of these takes the
//!   commit's place;
//! - `fs/xfs/xfs_file.c` `xfs_file_fsync`: the same with a force of the log;
//! - `sync_file_range` starts write-back or waits for it, and makes nothing durable;
//! - `mm/filemap.c` `errseq_check_and_advance`: a write that failed in the background is reported once to each open
//!   handle.

use flashwise_block::{BlockDevice, ByteSize, Nanos};

use crate::PAGE;
use crate::config::FileSystemKind;
use crate::error::{KernelError, Result};
use crate::fs::fs_writeback::{Change, Mode};
use crate::fs::inode::Ino;
use crate::fs::open::FileHandle;
use crate::kernel::Kernel;
use crate::mm::xarray::Mark;

/// The flags of `sync_file_range`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncRange {
    /// Wait for pages that are being written, before.
    pub wait_before: bool,
    /// Start to write dirty pages.
    pub write: bool,
    /// Wait for pages that are being written, behind.
    pub wait_after: bool,
}

impl<D: BlockDevice> Kernel<D> {
    /// Makes a file's data and metadata durable.
    ///
    /// # Errors
    /// [`KernelError::Io`] where a write has failed since the last sync of this handle; the pages are clean all the
    /// same, as in Linux, so what they held must be written again. [`KernelError::ReadOnly`] where the journal could
    /// not be written.
    pub fn fsync(&mut self, file: FileHandle) -> Result<()> {
        self.sync_handle(file, false)
    }

    /// Makes a file's data durable, and as much metadata as reading it needs.
    ///
    /// # Errors
    /// As [`Self::fsync`].
    pub fn fdatasync(&mut self, file: FileHandle) -> Result<()> {
        self.sync_handle(file, true)
    }

    fn sync_handle(&mut self, file: FileHandle, datasync: bool) -> Result<()> {
        self.enter(Nanos(0))?;
        let ino = self.handle(file)?.ino;
        let outcome = self.sync_inode(ino, 0, u64::MAX, datasync);
        self.report_write_errors(file)?;
        outcome
    }

    /// A write that failed is reported once.
    pub(crate) fn report_write_errors(&mut self, file: FileHandle) -> Result<()> {
        let ino = self.handle(file)?.ino;
        let Some(inode) = self.inodes.get(&ino) else { return Ok(()) };
        let (errors, last) = (inode.write_errors, inode.last_error.clone());
        let handle = self.handle_mut(file)?;
        let is_new = errors > handle.seen_errors;
        handle.seen_errors = errors;
        match last.filter(|_| is_new) {
            Some(error) => Err(KernelError::Io(error)),
            None => Ok(()),
        }
    }

    /// Writes a range of pages and makes them durable.
    pub(crate) fn sync_inode(&mut self, ino: Ino, first: u64, end: u64, datasync: bool) -> Result<()> {
        self.write_and_wait(ino, first, end)?;
        let Some(inode) = self.inodes.get(&ino) else { return Ok(()) };
        let tid = if datasync { inode.datasync_tid } else { inode.sync_tid };
        match tid > self.journal.committed {
            true if self.config.fast_commit => self.fast_commit(tid),
            true => self.commit_and_wait(tid),
            false => self.flush_drive(),
        }
    }

    /// `file_write_and_wait_range`
    pub(crate) fn write_and_wait(&mut self, ino: Ino, first: u64, end: u64) -> Result<()> {
        self.write_pages(ino, first, end, u64::MAX, Mode::Wait)?;
        self.wait_for_writeback(ino, first, end)
    }

    pub(crate) fn wait_for_writeback(&mut self, ino: Ino, first: u64, end: u64) -> Result<()> {
        self.wait_until(|this| {
            let next = this.cache.pages_of(ino).and_then(|pages| pages.next_marked(Mark::Writeback, first));
            next.is_none_or(|index| index >= end)
        })
    }

    /// Starts or awaits write-back of a range; nothing is durable by that. A length of 0 is the rest of the file.
    ///
    /// # Errors
    /// As [`Self::fsync`].
    pub fn sync_file_range(
        &mut self,
        file: FileHandle,
        offset: ByteSize,
        length: ByteSize,
        how: SyncRange,
    ) -> Result<()> {
        self.enter(Nanos(0))?;
        let ino = self.handle(file)?.ino;
        let end = if length.0 == 0 { u64::MAX } else { offset.0.saturating_add(length.0).div_ceil(PAGE) };
        let first = offset.0 / PAGE;
        if how.wait_before {
            self.wait_for_writeback(ino, first, end)?;
        }
        if how.write {
            self.write_pages(ino, first, end, u64::MAX, Mode::Wait)?;
        }
        if how.wait_after {
            self.wait_for_writeback(ino, first, end)?;
        }
        if how.wait_before || how.wait_after { self.report_write_errors(file) } else { Ok(()) }
    }

    /// `fsync` or `fdatasync` of the directory: ext4 commits all that runs, and sends nothing where there is nothing
    /// (`ext4_force_commit`); XFS forces the log as far as the directory was changed (`xfs_dir_fsync`).
    ///
    /// # Errors
    /// When the drive or the journal fails.
    pub fn sync_directory(&mut self) -> Result<()> {
        self.enter(Nanos(0))?;
        match self.config.file_system {
            FileSystemKind::Ext4 => self.commit_running().map(|_| ()),
            FileSystemKind::Xfs if self.journal.directory_tid > self.journal.committed => {
                self.commit_and_wait(self.journal.directory_tid)
            }
            FileSystemKind::Xfs => Ok(()),
        }
    }

    /// Everything durable, as `sync` does: data, then the log, then a flush where no commit sent one. On ext4 metadata
    /// goes to its place then (`sync_bdevs`); XFS leaves that to its own pace (`xfsaild`).
    ///
    /// # Errors
    /// When the drive or the journal fails; failed writes of files are left for their handles.
    pub fn sync(&mut self) -> Result<()> {
        self.enter(Nanos(0))?;
        // The flusher writes all files in one plug (`writeback_sb_inodes`).
        self.queue.plug();
        let written = self
            .flusher
            .dirty_files()
            .into_iter()
            .try_for_each(|ino| self.write_pages(ino, 0, u64::MAX, u64::MAX, Mode::Wait).map(|_| ()));
        self.queue.unplug()?;
        written?;
        self.wait_until(|this| this.cache.under_writeback() == 0)?;
        if self.config.lazytime {
            let late = self.inodes.iter().filter(|(_, inode)| inode.is_time_dirty).map(|(&ino, _)| ino);
            for ino in late.collect::<Vec<_>>() {
                self.change_inode(ino, Change::Times)?;
            }
        }
        if !self.commit_running()? {
            self.flush_drive()?;
        }
        self.wait_until(|this| this.discards == 0)?;
        match self.config.file_system {
            FileSystemKind::Ext4 => self.write_buffers(Nanos(u64::MAX), true),
            FileSystemKind::Xfs => Ok(()),
        }
    }

    /// Drops what is clean from memory, as `echo 3 > /proc/sys/vm/drop_caches` does.
    ///
    /// # Errors
    /// When the drive is lost.
    pub fn drop_caches(&mut self) -> Result<()> {
        self.enter(Nanos(0))?;
        if self.config.file_system == FileSystemKind::Xfs {
            // `xfs_reclaim_inodes_nr` pushes the AIL. Linux does not wait for that.
            self.write_buffers(Nanos(u64::MAX), true)?;
        }
        self.cache.drop_clean();
        let journal = &self.journal;
        self.buffers.drop_clean(|offset| journal.holds(offset));
        for inode in self.inodes.values_mut().filter(|inode| inode.open == 0 && inode.dirtied_at.is_none()) {
            inode.is_cached = false;
        }
        Ok(())
    }
}
