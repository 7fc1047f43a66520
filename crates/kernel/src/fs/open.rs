//! Opening, closing, renaming, removing, cutting and preallocating files.
//!
//! Linux 6.18:
//! - `fs/ext4/namei.c` `ext4_create`, `ext4_rename`, `ext4_unlink`; `fs/ext4/inode.c` `ext4_evict_inode`: a file goes
//!   when its name and its last handle have; its blocks are free when the transaction that took them is committed;
//! - `fs/ext4/inode.c` `__ext4_iget`: a file that is read into memory counts as changed by the transaction that runs;
//! - `fs/ext4/inode.c` `ext4_setattr`, `ext4_truncate`, `ext4_block_truncate_page`: cutting a file drops its pages,
//!   zeros the rest of its last block and frees what is behind; write-back of what goes is waited for;
//! - `fs/ext4/file.c` `ext4_release_file`: closing the last handle for writing gives back what was set aside, and
//!   starts write-back of a file that was cut to nothing before (`EXT4_STATE_DA_ALLOC_CLOSE`); in XFS
//!   `xfs_free_eofblocks` frees blocks beyond the end;
//! - `fs/ext4/extents.c` `ext4_fallocate`, `ext4_punch_hole`: preallocated blocks are unwritten; a hole drops pages and
//!   blocks.

use flashwise_block::{BlockDevice, ByteSize, Nanos};

use crate::PAGE;
use crate::config::FileSystemKind;
use crate::error::{KernelError, Result};
use crate::fs::ext4::fast_commit::NameChange;
use crate::fs::fs_writeback::{Change, Mode};
use crate::fs::inode::{Ino, Inode};
use crate::fs::transaction::Touched;
use crate::kernel::Kernel;
use crate::mm::readahead::FileReadAhead;

/// An open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileHandle(pub(crate) u32);

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    read: bool,
    write: bool,
    create: bool,
    create_new: bool,
    truncate: bool,
    direct: bool,
    dsync: bool,
    sync: bool,
}

impl OpenOptions {
    /// `O_RDONLY`
    pub fn read() -> Self {
        Self { read: true, ..Self::default() }
    }

    /// `O_RDWR`
    pub fn read_write() -> Self {
        Self { read: true, write: true, ..Self::default() }
    }

    /// `O_CREAT`
    pub fn create(self, create: bool) -> Self {
        Self { create, ..self }
    }

    /// `O_CREAT | O_EXCL`
    pub fn create_new(self, create_new: bool) -> Self {
        Self { create_new, ..self }
    }

    /// `O_TRUNC`
    pub fn truncate(self, truncate: bool) -> Self {
        Self { truncate, ..self }
    }

    /// `O_DIRECT`: around the page cache. Offsets and lengths are multiples of the drive's sector.
    pub fn direct(self, direct: bool) -> Self {
        Self { direct, ..self }
    }

    /// `O_DSYNC`: each write is followed by what `fdatasync` does.
    pub fn dsync(self, dsync: bool) -> Self {
        Self { dsync, ..self }
    }

    /// `O_SYNC`: each write is followed by what `fsync` does.
    pub fn sync(self, sync: bool) -> Self {
        Self { sync, ..self }
    }
}

/// What `fallocate` does with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocate {
    /// Allocates it and makes the file as long.
    Grow,
    /// Allocates it, beyond the end too (`FALLOC_FL_KEEP_SIZE`).
    KeepSize,
    /// Makes it a hole (`FALLOC_FL_PUNCH_HOLE`).
    PunchHole,
}

/// What the kernel keeps of an open file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) ino: Ino,
    pub(crate) options: OpenOptions,
    pub(crate) read_ahead: FileReadAhead,
    /// `POSIX_FADV_RANDOM`
    pub(crate) random: bool,
    /// Failed writes that this handle knows of.
    pub(crate) seen_errors: u64,
}

impl OpenFile {
    pub(crate) fn is_direct(&self) -> bool {
        self.options.direct
    }

    /// What follows a write: nothing, or a sync of data, or of all.
    pub(crate) fn syncs(&self) -> Option<bool> {
        (self.options.sync || self.options.dsync).then_some(!self.options.sync)
    }
}

/// # Errors
/// [`KernelError::BadName`]
fn check_name(name: &str) -> Result<()> {
    match name.is_empty() || name.len() > 255 || name.contains(['/', '\0']) {
        true => Err(KernelError::BadName(name.to_owned())),
        false => Ok(()),
    }
}

impl<D: BlockDevice> Kernel<D> {
    pub(crate) fn handle(&self, file: FileHandle) -> Result<&OpenFile> {
        // Each call comes here several times: the error is made where it is needed alone.
        let Some(Some(handle)) = self.handles.get(file.0 as usize) else { return Err(KernelError::BadHandle(file.0)) };
        Ok(handle)
    }

    pub(crate) fn handle_mut(&mut self, file: FileHandle) -> Result<&mut OpenFile> {
        let handle = self.handles.get_mut(file.0 as usize);
        let Some(Some(handle)) = handle else { return Err(KernelError::BadHandle(file.0)) };
        Ok(handle)
    }

    pub(crate) fn reading(&self, file: FileHandle) -> Result<&OpenFile> {
        let handle = self.handle(file)?;
        if handle.options.read { Ok(handle) } else { Err(KernelError::NotOpenFor { handle: file.0, what: "read" }) }
    }

    pub(crate) fn writing(&self, file: FileHandle) -> Result<&OpenFile> {
        let handle = self.handle(file)?;
        if handle.options.write { Ok(handle) } else { Err(KernelError::NotOpenFor { handle: file.0, what: "write" }) }
    }

    pub(crate) fn tick_now(&self) -> u64 {
        self.now().0 / self.config.tick.0
    }

    /// Opens a file.
    ///
    /// # Errors
    /// [`KernelError::NotFound`], [`KernelError::Exists`], [`KernelError::BadName`], [`KernelError::NoInodes`],
    /// [`KernelError::NoSpace`], [`KernelError::TooManyOpen`], and when the drive or the journal fails.
    pub fn open(&mut self, name: &str, options: OpenOptions) -> Result<FileHandle> {
        self.enter(Nanos(0))?;
        check_name(name)?;
        if self.handles.len() - self.free_handles.len() >= self.config.max_open as usize {
            return Err(KernelError::TooManyOpen(self.config.max_open));
        }
        let ino = match self.names.get(name).copied() {
            Some(_) if options.create_new => return Err(KernelError::Exists(name.to_owned())),
            Some(ino) => ino,
            None if options.create || options.create_new => self.create(name)?,
            None => return Err(KernelError::NotFound(name.to_owned())),
        };
        let (offset, bytes) = self.layout.inode_buffer(ino);
        let mut touched = Touched::default();
        touched.buffer(offset, bytes, 0, 1);
        self.read_buffers(&touched)?;
        let file = match self.free_handles.pop() {
            Some(number) => number,
            None => {
                self.handles.push(None);
                (self.handles.len() - 1) as u32
            }
        };
        let mut seen_errors = 0;
        let newest_tid = self.journal.newest_tid();
        if let Some(inode) = self.inodes.get_mut(&ino) {
            // `__ext4_iget`: what is read from the drive may be part of the transaction that runs.
            if !std::mem::replace(&mut inode.is_cached, true) && self.config.file_system == FileSystemKind::Ext4 {
                (inode.sync_tid, inode.datasync_tid) = (newest_tid, newest_tid);
            }
            inode.open += 1;
            inode.open_for_write += u32::from(options.write);
            seen_errors = inode.write_errors;
        }
        let read_ahead = FileReadAhead::new(self.config.read_ahead.0 / PAGE);
        let handle = OpenFile { ino, options, read_ahead, random: false, seen_errors };
        self.handles[file as usize] = Some(handle);
        let file = FileHandle(file);
        if options.truncate && options.write {
            self.truncate(ino, 0)?;
        }
        Ok(file)
    }

    fn create(&mut self, name: &str) -> Result<Ino> {
        if let Some(error) = &self.journal.aborted {
            return Err(KernelError::ReadOnly(error.clone()));
        }
        let mut touched = Touched::default();
        let mut ino = self.layout.create(name, &mut touched);
        if ino.is_none() && self.reclaim_space()? {
            touched = Touched::default();
            ino = self.layout.create(name, &mut touched);
        }
        let ino = ino.ok_or(KernelError::NoInodes)?;
        self.inodes.insert(ino, Inode::new(self.tick_now()));
        self.names.insert(name.to_owned(), ino);
        self.log(&touched)?;
        let now = self.now();
        self.journal.note_name(now, name, Some(ino));
        self.change_inode(ino, Change::Size)?;
        self.track_name(NameChange::Create, name, ino);
        Ok(ino)
    }

    /// Closes a file. What is dirty stays so; a write that failed is not reported here.
    ///
    /// # Errors
    /// [`KernelError::BadHandle`], and when the drive is lost.
    pub fn close(&mut self, file: FileHandle) -> Result<()> {
        self.enter(Nanos(0))?;
        let handle = self.handles.get_mut(file.0 as usize).and_then(Option::take);
        let OpenFile { ino, options, .. } = handle.ok_or(KernelError::BadHandle(file.0))?;
        self.free_handles.push(file.0);
        let Some(inode) = self.inodes.get_mut(&ino) else { return Ok(()) };
        inode.open -= 1;
        inode.open_for_write -= u32::from(options.write);
        let (links, open, writers, delayed) = (inode.links, inode.open, inode.open_for_write, inode.delayed.len());
        if links == 0 && open == 0 {
            return self.evict(ino);
        }
        if options.write && writers == 0 {
            let flush = self.inodes.get_mut(&ino).is_some_and(|inode| std::mem::take(&mut inode.write_on_close));
            if flush {
                self.write_pages(ino, 0, u64::MAX, u64::MAX, Mode::Background)?;
            }
            match self.config.file_system {
                FileSystemKind::Ext4 if delayed == 0 => {
                    let held = self.inodes.get_mut(&ino).and_then(|inode| inode.preallocated.take());
                    if let Some(held) = held {
                        self.layout.discard_preallocation(held);
                    }
                }
                FileSystemKind::Ext4 => {}
                FileSystemKind::Xfs => {
                    let end = self.inodes.get(&ino).map_or(0, |inode| inode.size.div_ceil(PAGE));
                    self.free_range(ino, end, u64::MAX)?;
                }
            }
        }
        Ok(())
    }

    /// Removes a name; the file goes with its last handle.
    ///
    /// # Errors
    /// [`KernelError::NotFound`], and when the drive or the journal fails.
    pub fn unlink(&mut self, name: &str) -> Result<()> {
        self.enter_to_write(Nanos(0))?;
        let ino = self.names.remove(name).ok_or_else(|| KernelError::NotFound(name.to_owned()))?;
        let mut touched = Touched::default();
        self.layout.unlink(name, ino, &mut touched);
        self.log(&touched)?;
        let now = self.now();
        self.journal.note_name(now, name, None);
        let open = self.inodes.get_mut(&ino).map_or(0, |inode| {
            inode.links = 0;
            inode.open
        });
        self.change_inode(ino, Change::Size)?;
        self.track_name(NameChange::Unlink, name, ino);
        if open == 0 { self.evict(ino) } else { Ok(()) }
    }

    /// Gives a file another name; a file that has that name goes (`rename`).
    ///
    /// ext4 starts to write what is dirty of a file that replaces another one (`ext4_alloc_da_blocks`, the mount option
    /// `auto_da_alloc`).
    ///
    /// # Errors
    /// [`KernelError::NotFound`], [`KernelError::BadName`], [`KernelError::NoSpace`], and when the drive or the journal
    /// fails.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        self.enter_to_write(Nanos(0))?;
        check_name(to)?;
        let ino = self.names.get(from).copied().ok_or_else(|| KernelError::NotFound(from.to_owned()))?;
        let replaced = self.names.get(to).copied();
        if replaced == Some(ino) {
            return Ok(());
        }
        let replaces = replaced.is_some();
        let mut touched = Touched::default();
        let mut is_done = self.layout.rename(from, to, ino, replaces, &mut touched);
        if !is_done && self.reclaim_space()? {
            touched = Touched::default();
            is_done = self.layout.rename(from, to, ino, replaces, &mut touched);
        }
        if !is_done {
            return Err(KernelError::NoSpace);
        }
        if let Some(replaced) = replaced {
            self.layout.orphan(replaced, &mut touched);
        }
        self.names.remove(from);
        self.names.insert(to.to_owned(), ino);
        self.log(&touched)?;
        let now = self.now();
        self.journal.note_name(now, from, None);
        self.journal.note_name(now, to, Some(ino));
        self.change_inode(ino, Change::Size)?;
        if let Some(replaced) = replaced {
            self.track_name(NameChange::Unlink, to, replaced);
        }
        self.track_name(NameChange::Link, to, ino);
        self.track_name(NameChange::Unlink, from, ino);
        let Some(replaced) = replaced else { return Ok(()) };
        if self.config.file_system == FileSystemKind::Ext4 {
            self.write_pages(ino, 0, u64::MAX, u64::MAX, Mode::Background)?;
        }
        let open = self.inodes.get_mut(&replaced).map_or(0, |inode| {
            inode.links = 0;
            inode.open
        });
        self.change_inode(replaced, Change::Size)?;
        if open == 0 { self.evict(replaced) } else { Ok(()) }
    }

    /// `ext4_evict_inode`, `xfs_inode_mark_reclaimable`: the file goes, in XFS a little later.
    fn evict(&mut self, ino: Ino) -> Result<()> {
        self.drop_pages(ino, 0, u64::MAX)?;
        match self.config.file_system {
            FileSystemKind::Ext4 => self.inactivate(ino),
            FileSystemKind::Xfs => self.queue_inactivation(ino),
        }
    }

    /// `ext4_evict_inode`, `xfs_inactive`: its blocks and its inode are free with the running transaction.
    pub(crate) fn inactivate(&mut self, ino: Ino) -> Result<()> {
        self.free_range(ino, 0, u64::MAX)?;
        let mut touched = Touched::default();
        self.free_tree(ino, &mut touched);
        self.layout.evict(ino, &mut touched);
        self.log(&touched)?;
        self.note_clean(ino);
        if let Some(inode) = self.inodes.remove(&ino)
            && let Some(held) = inode.preallocated
        {
            self.layout.discard_preallocation(held);
        }
        self.cache.mappings.remove(&ino);
        let now = self.now();
        let transaction = self.journal.transaction(now);
        transaction.inodes.entry(ino).or_insert(None);
        transaction.removed.insert(ino);
        transaction.fast.forget(ino);
        Ok(())
    }

    /// `truncate_inode_pages_range`: pages that lie whole in a range are dropped, dirty or not.
    pub(crate) fn drop_pages(&mut self, ino: Ino, first: u64, end: u64) -> Result<()> {
        self.wait_for_writeback(ino, first, end)?;
        self.release_reserved(ino, first, end);
        let mut from = first;
        while let Some((index, id)) = self.cache.pages_of(ino).and_then(|pages| pages.next_folio(from)) {
            if index >= end {
                break;
            }
            self.wait_until(|this| this.cache.find(ino, index) != Some(id) || !this.is_locked(id))?;
            let folio = self.cache.folio(id);
            let (start, behind) = (folio.index, folio.index + folio.pages());
            if start >= first && behind <= end {
                self.unmap_pages(ino, start, behind);
                self.cache.remove(id, false);
            } else {
                self.split_folio(id)?;
                continue;
            }
            from = behind;
        }
        if let Some(mapping) = self.cache.mappings.get_mut(&ino) {
            mapping.pages.forget_shadows(first);
        }
        self.note_clean(ino);
        Ok(())
    }

    /// Blocks of a range are taken from the file; they are free with the running transaction.
    pub(crate) fn free_range(&mut self, ino: Ino, first: u64, end: u64) -> Result<()> {
        let Some(inode) = self.inodes.get_mut(&ino) else { return Ok(()) };
        let freed = inode.extents.remove(first, end);
        if freed.is_empty() {
            return Ok(());
        }
        let mut touched = Touched::default();
        for &(start, blocks) in &freed {
            self.layout.free(start, blocks, &mut touched);
        }
        self.layout.orphan(ino, &mut touched);
        self.log(&touched)?;
        let now = self.now();
        self.journal.transaction(now).freed.extend(freed);
        self.change_inode(ino, Change::Extents(first))?;
        self.track_range(ino, first, end);
        Ok(())
    }

    /// Makes a file shorter or longer; what is new reads as zeros.
    ///
    /// # Errors
    /// [`KernelError::BadHandle`], [`KernelError::NotOpenFor`], [`KernelError::TooLarge`], and when the drive or the
    /// journal fails.
    pub fn ftruncate(&mut self, file: FileHandle, size: ByteSize) -> Result<()> {
        self.enter_to_write(Nanos(0))?;
        let ino = self.writing(file)?.ino;
        self.check_end(size.0)?;
        self.truncate(ino, size.0)
    }

    /// # Errors
    /// [`KernelError::TooLarge`]
    pub(crate) fn check_end(&self, end: u64) -> Result<()> {
        let limit = self.layout.max_file();
        if end <= limit { Ok(()) } else { Err(KernelError::TooLarge { end, limit }) }
    }

    fn truncate(&mut self, ino: Ino, size: u64) -> Result<()> {
        let Some(inode) = self.inodes.get(&ino) else { return Ok(()) };
        let old = inode.size;
        if size < old {
            let first = size.div_ceil(PAGE);
            self.zero_tail(ino, size)?;
            self.drop_pages(ino, first, u64::MAX)?;
            if let Some(inode) = self.inodes.get_mut(&ino)
                && let Some(held) = inode.preallocated.take()
            {
                self.layout.discard_preallocation(held);
            }
            self.free_range(ino, first, u64::MAX)?;
        }
        let tick = self.tick_now();
        if let Some(inode) = self.inodes.get_mut(&ino) {
            (inode.size, inode.disk_size) = (size, size);
            inode.mtime = tick;
            inode.write_on_close |= size == 0 && old > 0;
        }
        if size < old {
            let mut touched = Touched::default();
            self.layout.orphan(ino, &mut touched);
            self.log(&touched)?;
        }
        self.change_inode(ino, Change::Size)?;
        // `ext4_setattr`: from the last block that stays on.
        match size < old {
            true => self.track_range(ino, size.saturating_sub(1) / PAGE, u64::MAX),
            false => self.track_range(ino, old.saturating_sub(1) / PAGE, size.saturating_sub(1) / PAGE + 1),
        }
        Ok(())
    }

    /// Preallocates a range, or makes it a hole.
    ///
    /// # Errors
    /// [`KernelError::NoSpace`], [`KernelError::TooLarge`], [`KernelError::Invalid`] for a length of 0, and as
    /// [`Self::ftruncate`].
    pub fn fallocate(&mut self, file: FileHandle, offset: ByteSize, length: ByteSize, how: Allocate) -> Result<()> {
        self.enter_to_write(Nanos(0))?;
        let ino = self.writing(file)?.ino;
        if length.0 == 0 {
            return Err(KernelError::Invalid("fallocate of no bytes".to_owned()));
        }
        let end = offset.0.saturating_add(length.0);
        self.check_end(end)?;
        match how {
            Allocate::PunchHole => self.punch_hole(ino, offset.0, end)?,
            Allocate::Grow | Allocate::KeepSize => {
                self.write_and_wait(ino, offset.0 / PAGE, end.div_ceil(PAGE))?;
                let (mut at, last) = (offset.0 / PAGE, end.div_ceil(PAGE));
                let missing = last - at;
                while at < last {
                    let Some(inode) = self.inodes.get(&ino) else { break };
                    if let Some(extent) = inode.extents.at(at) {
                        at = extent.end();
                        continue;
                    }
                    let hole = inode.extents.hole(at, last - at);
                    let free = self.layout.free_blocks().saturating_sub(self.delayed);
                    if free < hole.min(missing) && !self.reclaim_space()? {
                        return Err(KernelError::NoSpace);
                    }
                    let free = self.layout.free_blocks().saturating_sub(self.delayed);
                    if free < hole {
                        return Err(KernelError::NoSpace);
                    }
                    let most = self.layout.max_allocation().max(32768);
                    at = self.allocate(ino, at, hole.min(most))?.end();
                }
                if how == Allocate::Grow
                    && let Some(inode) = self.inodes.get_mut(&ino)
                    && end > inode.size
                {
                    (inode.size, inode.disk_size) = (end, end);
                }
            }
        }
        let tick = self.tick_now();
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.mtime = tick;
        }
        self.change_inode(ino, Change::Size)?;
        match self.handle(file)?.syncs() {
            Some(datasync) => self.sync_inode(ino, offset.0 / PAGE, end.div_ceil(PAGE), datasync),
            None => Ok(()),
        }
    }

    /// Makes a file that is there already: all of its bytes were written before, and none are in memory. They are what
    /// the drive has at their places. Only a drive that is filled has any.
    ///
    /// # Errors
    /// [`KernelError::Exists`], and as [`Self::open`] and [`Self::fallocate`].
    pub fn lay_out(&mut self, name: &str, size: ByteSize) -> Result<()> {
        let file = self.open(name, OpenOptions::read_write().create_new(true))?;
        self.fallocate(file, ByteSize(0), size, Allocate::Grow)?;
        let ino = self.writing(file)?.ino;
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.extents.convert(0, size.0.div_ceil(PAGE));
        }
        self.close(file)
    }

    fn punch_hole(&mut self, ino: Ino, first: u64, end: u64) -> Result<()> {
        let size = self.inodes.get(&ino).map_or(0, |inode| inode.size);
        let end = end.min(size.next_multiple_of(PAGE));
        if first >= end {
            return Ok(());
        }
        // The size must not depend on pages that are dropped: XFS writes them first (`xfs_flush_unmap_range`), ext4
        // notes the size (`ext4_update_disksize_before_punch`).
        match self.config.file_system {
            FileSystemKind::Xfs => self.write_and_wait(ino, first / PAGE, end.div_ceil(PAGE))?,
            FileSystemKind::Ext4 => {
                if let Some(inode) = self.inodes.get_mut(&ino).filter(|_| end >= size) {
                    inode.disk_size = size;
                }
            }
        }
        let (whole_first, whole_end) = (first.div_ceil(PAGE), end / PAGE);
        if whole_first > whole_end {
            return self.zero_range(ino, first, end);
        }
        self.zero_range(ino, first, whole_first * PAGE)?;
        self.zero_range(ino, whole_end * PAGE, end)?;
        if whole_first < whole_end {
            self.drop_pages(ino, whole_first, whole_end)?;
            self.free_range(ino, whole_first, whole_end)?;
        }
        Ok(())
    }
}
