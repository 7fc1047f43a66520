//! Reading and writing files.
//!
//! Linux 6.18: `fs/read_write.c`; `mm/filemap.c` `generic_perform_write`; `fs/ext4/inode.c` `ext4_da_write_begin`,
//! `ext4_da_write_end`; `fs/iomap/buffered-io.c` `iomap_write_begin`; `fs/inode.c` `file_update_time`:
//! - a part of a page that is not cached is read first, unless nothing is there;
//! - a block without a place is reserved, and gets its place when it is written back;
//! - pages that a write covers whole are entered as folios as large as the write, aligned to their size;
//! - the time stamp changes once a tick, and that changes the inode;
//! - in ext4 the size on the drive follows at once where the last block has a place already, else when it is written.

use flashwise_block::{BlockDevice, ByteSize, Nanos};

use crate::PAGE;
use crate::config::FileSystemKind;
use crate::error::{KernelError, Result};
use crate::fs::direct_io::{ReadInto, WriteFrom};
use crate::fs::fs_writeback::Change;
use crate::fs::inode::Ino;
use crate::fs::open::FileHandle;
use crate::kernel::Kernel;
use crate::mm::vmscan::flag;
use crate::mm::xarray::FolioId;

/// Largest folio of a write.
const MAX_ORDER: u32 = 6;
/// Linux reads and writes at most this much in one call (`MAX_RW_COUNT`).
const MOST: u64 = 0x7fff_f000;

impl<D: BlockDevice> Kernel<D> {
    /// Reads from a file; gives how many bytes there were, which is less than asked for at its end.
    ///
    /// # Errors
    /// [`KernelError::BadHandle`], [`KernelError::NotOpenFor`], [`KernelError::Invalid`] where direct I/O is not
    /// aligned, [`KernelError::Io`].
    pub fn pread<'a>(&mut self, file: FileHandle, offset: ByteSize, into: impl Into<ReadInto<'a>>) -> Result<u64> {
        let mut into = into.into();
        let pages = into.len().div_ceil(PAGE);
        let costs = self.config.costs;
        self.enter(Nanos(costs.read.0.saturating_add(costs.read_page.0.saturating_mul(pages.min(MOST / PAGE)))))?;
        let handle = self.reading(file)?;
        let (ino, direct) = (handle.ino, handle.is_direct());
        let size = self.inodes.get(&ino).map_or(0, |inode| inode.size);
        let end = offset.0.saturating_add(into.len().min(MOST));
        if direct {
            return self.direct_read(ino, offset.0, end, size, into);
        }
        let end = end.min(size);
        let mut at = offset.0;
        // The page that the previous read ended in is not accessed again.
        let previous = self.handle(file)?.read_ahead.previous.filter(|_| !offset.0.is_multiple_of(PAGE));
        let last_page = end.div_ceil(PAGE);
        let mut marked = None;
        while at < end {
            let index = at / PAGE;
            let stop = end.min((index + 1) * PAGE);
            let id = self.get_page(ino, index, last_page - index, Some(file))?;
            if previous != Some(index) && marked != Some(id) {
                self.cache.mark_accessed(id);
            }
            marked = Some(id);
            let folio = self.cache.folio(id);
            let from = (at - folio.index * PAGE) as usize;
            let bytes = (stop - at) as usize;
            into.fill((at - offset.0) as usize, bytes, folio.data.as_deref().map(|data| &data[from..from + bytes]));
            at = stop;
        }
        if end > offset.0 {
            self.handle_mut(file)?.read_ahead.previous = Some(end / PAGE);
        }
        Ok(end.saturating_sub(offset.0))
    }

    /// Writes to a file, all of it; the file grows where that reaches beyond its end.
    ///
    /// # Errors
    /// [`KernelError::NoSpace`], [`KernelError::TooLarge`], [`KernelError::BadHandle`], [`KernelError::NotOpenFor`],
    /// [`KernelError::Invalid`], [`KernelError::ReadOnly`]; [`KernelError::Io`] where a part of a page had to be read,
    /// or the handle syncs. What was written before an error stays written.
    pub fn pwrite<'a>(&mut self, file: FileHandle, offset: ByteSize, from: impl Into<WriteFrom<'a>>) -> Result<u64> {
        let from = from.into();
        let costs = self.config.costs;
        let pages = from.len().div_ceil(PAGE);
        self.enter_to_write(Nanos(
            costs.write.0.saturating_add(costs.write_page.0.saturating_mul(pages.min(MOST / PAGE))),
        ))?;
        let handle = self.writing(file)?;
        let (ino, direct, syncs) = (handle.ino, handle.is_direct(), handle.syncs());
        if from.len() > MOST {
            return Err(KernelError::Invalid(format!("a write of more than {MOST} bytes; make several")));
        }
        let end = offset.0.saturating_add(from.len());
        self.check_end(end)?;
        if from.len() == 0 {
            return Ok(0);
        }
        self.update_time(ino)?;
        if direct {
            self.direct_write(ino, offset.0, end, &from, syncs)?;
            return Ok(from.len());
        }
        self.buffered_write(ino, offset.0, end, &from)?;
        if let Some(datasync) = syncs {
            let outcome = self.sync_inode(ino, offset.0 / PAGE, end.div_ceil(PAGE), datasync);
            self.report_write_errors(file)?;
            outcome?;
        }
        Ok(from.len())
    }

    /// `file_update_time`: the time stamp changes once a tick. With `lazytime` the inode does not
    /// (`fs/inode.c` `inode_update_time`, `I_DIRTY_TIME`), until `sync` or another change writes it.
    pub(crate) fn update_time(&mut self, ino: Ino) -> Result<()> {
        let tick = self.tick_now();
        let Some(inode) = self.inodes.get_mut(&ino).filter(|inode| inode.mtime != tick) else { return Ok(()) };
        inode.mtime = tick;
        if self.config.lazytime {
            inode.is_time_dirty = true;
            return Ok(());
        }
        self.change_inode(ino, Change::Times)
    }

    pub(crate) fn buffered_write(&mut self, ino: Ino, offset: u64, end: u64, from: &WriteFrom<'_>) -> Result<()> {
        let mut at = offset;
        while at < end {
            let index = at / PAGE;
            let stop = self.write_step(ino, at, end)?;
            let id = match self.cache.find(ino, index) {
                Some(id) => id,
                None => return Err(KernelError::Invalid("the page cache lost a page that is written".to_owned())),
            };
            let folio = self.cache.folio_mut(id);
            let (start, bytes) = ((at - folio.index * PAGE) as usize, (stop - at) as usize);
            if let Some(data) = &mut folio.data {
                from.copy((at - offset) as usize, &mut data[start..start + bytes]);
            }
            (index..stop.div_ceil(PAGE)).for_each(|index| self.dirty_page(ino, index));
            self.grow_to(ino, stop)?;
            let pages = stop.div_ceil(PAGE) - index;
            at = stop;
            self.balance_dirty_pages(pages)?;
        }
        Ok(())
    }

    /// Prepares the next folio that a write from `at` to `end` covers; gives where it ends.
    fn write_step(&mut self, ino: Ino, at: u64, end: u64) -> Result<u64> {
        let index = at / PAGE;
        if let Some(id) = self.cache.find(ino, index) {
            let locked = self.is_locked(id);
            if locked {
                self.wait_until(|this| this.cache.find(ino, index) != Some(id) || !this.is_locked(id))?;
            }
            let is_usable = self.cache.find(ino, index) == Some(id) && self.cache.folio(id).has(flag::UPTODATE);
            if is_usable {
                self.reserve(ino, index, 1)?;
                return Ok(end.min((index + 1) * PAGE));
            }
            if self.cache.find(ino, index) == Some(id) {
                self.cache.remove(id, false);
            }
        }
        let whole = at.is_multiple_of(PAGE) && end - at >= PAGE;
        if whole {
            let pages = (end - at) / PAGE;
            let mut order = pages.ilog2().min(MAX_ORDER).min(index.trailing_zeros());
            let free = |this: &Self, order: u32| {
                this.cache
                    .pages_of(ino)
                    .is_none_or(|all| all.next_folio(index).is_none_or(|(at, _)| at >= index + (1 << order)))
            };
            while order > 0 && !(free(self, order) && self.cache.reclaim(1 << order)) {
                order -= 1;
            }
            self.reserve(ino, index, 1 << order)?;
            if order == 0 {
                self.add_page(ino, index, flag::UPTODATE)?;
            } else {
                self.queue.charge(Nanos(self.config.costs.new_page.0 << order));
                self.cache.add(ino, index, order as u8, flag::UPTODATE);
            }
            return Ok(at + (PAGE << order));
        }
        self.reserve(ino, index, 1)?;
        let inode = self.inodes.get(&ino);
        let has_bytes = inode.is_some_and(|inode| {
            index * PAGE < inode.size && inode.extents.at(index).is_some_and(|extent| !extent.unwritten)
        });
        if has_bytes {
            let outcome = self.get_page(ino, index, 1, None);
            if outcome.is_err() {
                self.release_reserved(ino, index, index + 1);
            }
            outcome?;
        } else {
            self.add_page(ino, index, flag::UPTODATE)?;
        }
        Ok(end.min((index + 1) * PAGE))
    }

    /// Reserves blocks for those pages of a range that have neither a place nor a reservation.
    pub(crate) fn reserve(&mut self, ino: Ino, index: u64, pages: u64) -> Result<()> {
        let missing = |this: &Self| -> Vec<u64> {
            let Some(inode) = this.inodes.get(&ino) else { return Vec::new() };
            let needs = |index: &u64| inode.extents.at(*index).is_none() && !inode.delayed.contains(index);
            (index..index + pages).filter(needs).collect()
        };
        let is_short = |this: &Self, wanted: &[u64]| {
            !wanted.is_empty() && this.layout.free_blocks() < this.delayed + wanted.len() as u64
        };
        let mut wanted = missing(self);
        if is_short(self, &wanted) {
            if self.reclaim_space()? {
                wanted = missing(self);
            }
            if is_short(self, &wanted) {
                return Err(KernelError::NoSpace);
            }
        }
        if let Some(inode) = self.inodes.get_mut(&ino) {
            self.delayed += wanted.len() as u64;
            inode.delayed.extend(wanted);
        }
        Ok(())
    }

    fn grow_to(&mut self, ino: Ino, end: u64) -> Result<()> {
        let kind = self.config.file_system;
        let Some(inode) = self.inodes.get_mut(&ino) else { return Ok(()) };
        inode.size = inode.size.max(end);
        let last = inode.extents.at((end - 1) / PAGE);
        let has_place = last.is_some_and(|extent| !extent.unwritten);
        if kind == FileSystemKind::Ext4 && has_place && end > inode.disk_size {
            inode.disk_size = end;
            return self.change_inode(ino, Change::Size);
        }
        Ok(())
    }

    /// Bytes of a range within one page become zeros, through the page cache.
    pub(crate) fn zero_range(&mut self, ino: Ino, first: u64, end: u64) -> Result<()> {
        if first >= end {
            return Ok(());
        }
        let index = first / PAGE;
        let cached = self.cache.find(ino, index).is_some();
        let has_bytes =
            self.inodes.get(&ino).is_some_and(|inode| inode.extents.at(index).is_some_and(|extent| !extent.unwritten));
        if !cached && !has_bytes {
            return Ok(());
        }
        let id: FolioId = self.get_page(ino, index, 1, None)?;
        let folio = self.cache.folio_mut(id);
        let from = (first - folio.index * PAGE) as usize;
        if let Some(data) = &mut folio.data {
            data[from..from + (end - first) as usize].fill(0);
        }
        self.reserve(ino, index, 1)?;
        self.dirty_page(ino, index);
        Ok(())
    }

    /// `ext4_block_truncate_page`: what is behind the new end in its block reads as zeros from now on.
    pub(crate) fn zero_tail(&mut self, ino: Ino, size: u64) -> Result<()> {
        if size.is_multiple_of(PAGE) { Ok(()) } else { self.zero_range(ino, size, size.next_multiple_of(PAGE)) }
    }
}
