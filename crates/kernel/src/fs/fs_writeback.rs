//! Writing dirty pages back: which files, when, in which order.
//!
//! Linux 6.18:
//! - `fs/fs-writeback.c` `wb_do_writeback`, `wb_check_old_data_flush`, `wb_check_background_flush`: the flusher wakes
//!   every 5 seconds and writes files whose oldest dirty page is 30 seconds old, and works in the background while more
//!   pages are dirty than the threshold; files in the order in which they became dirty, at least 4 MiB of one at a time
//!   (`MIN_WRITEBACK_PAGES`), then the next one.
//! - `fs/ext4/inode.c` `ext4_writepages`, `mpage_map_and_submit_extent`, `fs/iomap/buffered-io.c` `iomap_writepages`:
//!   dirty pages in the file's order; those that have no place yet get one for the whole run (delayed allocation),
//!   unwritten until they are written. A bio is cut where the place is not the next one, and at 256 pieces of memory
//!   (`BIO_MAX_VECS`).
//! - `fs/iomap/buffered-io.c` `iomap_writeback_folio`, `fs/ext4/inode.c` `mpage_process_page_bufs`: a range selects
//!   folios, and of each the dirty blocks are written, also those outside of the range.
//! - `mm/page-writeback.c` `folio_prepare_writeback`: a page under write-back is waited for by a sync and passed over
//!   by the flusher.
//!
//! Requests of the flusher go out while the drive's queue has free tags, so the task never waits for one on its behalf.
//! Not here: `cgroup` write-back, `dirty_bytes`, laptop mode.

use std::collections::BTreeSet;
use std::ops::Range;

use flashwise_block::{BlockDevice, BlockError, Nanos, Operation};

use crate::PAGE;
use crate::block::{Bio, Purpose};
use crate::config::{FileSystemKind, KernelConfig};
use crate::error::{KernelError, Result};
use crate::fs::extents::Extent;
use crate::fs::inode::Ino;
use crate::fs::layout::AllocationRequest;
use crate::fs::transaction::Touched;
use crate::kernel::Kernel;
use crate::mm::xarray::Mark;

/// `MIN_WRITEBACK_PAGES`: 4 MiB.
const CHUNK: u64 = 1024;
/// `BIO_MAX_VECS`
const BIO_SEGMENTS: u32 = 256;

/// Why an inode changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Its time stamps alone; `fdatasync` does not need that.
    Times,
    /// Its size.
    Size,
    /// Its extents around this block of the file.
    Extents(u64),
}

/// The flusher's thread.
#[derive(Debug)]
pub(crate) struct Flusher {
    /// Files with dirty pages, by when the oldest became dirty.
    dirty: BTreeSet<(Nanos, Ino)>,
    /// Files that are being written since they were old enough, in order.
    work: BTreeSet<(Nanos, Ino)>,
    next_wake: Nanos,
    /// The rate at which the drive takes pages.
    pub(crate) bandwidth: crate::mm::page_writeback::Bandwidth,
    interval: Nanos,
    expire: Nanos,
}

impl Flusher {
    pub(crate) fn new(now: Nanos, config: &KernelConfig) -> Self {
        let next_wake = Nanos(now.0.saturating_add(config.dirty_writeback.0));
        let (interval, expire) = (config.dirty_writeback, config.dirty_expire);
        Self {
            dirty: BTreeSet::new(),
            work: BTreeSet::new(),
            next_wake,
            bandwidth: Default::default(),
            interval,
            expire,
        }
    }

    #[inline]
    pub(crate) fn next_wake(&self) -> Nanos {
        self.next_wake
    }

    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        !self.work.is_empty()
    }

    pub(crate) fn add(&mut self, since: Nanos, ino: Ino) {
        self.dirty.insert((since, ino));
    }

    pub(crate) fn remove(&mut self, since: Nanos, ino: Ino) {
        self.dirty.remove(&(since, ino));
        self.work.remove(&(since, ino));
    }

    pub(crate) fn oldest(&self) -> Option<Ino> {
        self.dirty.first().map(|&(_, ino)| ino)
    }

    pub(crate) fn dirty_files(&self) -> Vec<Ino> {
        self.dirty.iter().map(|&(_, ino)| ino).collect()
    }
}

/// Whether someone waits for what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// `WB_SYNC_ALL`
    Wait,
    /// `WB_SYNC_NONE`, while there are free tags.
    Background,
}

impl<D: BlockDevice> Kernel<D> {
    pub(crate) fn flusher_tick(&mut self) -> Result<()> {
        let now = self.now();
        if now >= self.flusher.next_wake {
            self.flusher.next_wake = Nanos(now.0.saturating_add(self.flusher.interval.0));
            let old = now.0.checked_sub(self.flusher.expire.0).map(Nanos);
            if let Some(old) = old {
                let expired: Vec<(Nanos, Ino)> =
                    self.flusher.dirty.iter().take_while(|(since, _)| *since <= old).copied().collect();
                self.flusher.work.extend(expired);
            }
            let metadata_age = match self.config.file_system {
                FileSystemKind::Ext4 => self.flusher.expire,
                FileSystemKind::Xfs => self.config.log_interval,
            };
            if self.buffers.has_dirty()
                && let Some(until) = now.0.checked_sub(metadata_age.0)
            {
                self.write_buffers(Nanos(until), false)?;
            }
        }
        if self.over_background_threshold() && self.flusher.work.is_empty() {
            let first = self.flusher.dirty.first().copied();
            self.flusher.work.extend(first);
        }
        while self.queue.has_free_tag()
            && let Some(&(since, ino)) = self.flusher.work.first()
        {
            let from = self.inodes.get(&ino).map_or(0, |inode| inode.writeback_index);
            let (next, wrote) = self.write_pages(ino, from, u64::MAX, CHUNK, Mode::Background)?;
            if let Some(inode) = self.inodes.get_mut(&ino) {
                inode.writeback_index = next.unwrap_or(0);
            }
            let rest = self.cache.pages_of(ino).map_or(0, |pages| pages.marked(Mark::Dirty));
            if rest == 0 || (wrote == 0 && from == 0) {
                self.flusher.work.remove(&(since, ino));
            }
        }
        Ok(())
    }

    /// A page of a file becomes dirty.
    pub(crate) fn dirty_page(&mut self, ino: Ino, index: u64) {
        self.cache.mark(ino, index, Mark::Dirty, true);
        let now = self.now();
        if let Some(inode) = self.inodes.get_mut(&ino)
            && inode.dirtied_at.is_none()
        {
            inode.dirtied_at = Some(now);
            self.flusher.add(now, ino);
        }
    }

    /// Forgets that a file is dirty once it is not.
    pub(crate) fn note_clean(&mut self, ino: Ino) {
        let dirty = self.cache.pages_of(ino).map_or(0, |pages| pages.marked(Mark::Dirty));
        if dirty == 0
            && let Some(inode) = self.inodes.get_mut(&ino)
            && let Some(since) = inode.dirtied_at.take()
        {
            self.flusher.remove(since, ino);
        }
    }

    /// Submits the dirty pages of a range, at most `most` of them. Gives where to go on, and how many were submitted.
    pub(crate) fn write_pages(
        &mut self,
        ino: Ino,
        first: u64,
        end: u64,
        most: u64,
        mode: Mode,
    ) -> Result<(Option<u64>, u64)> {
        // The flusher plugs, and so does `ext4_writepages`; a sync of XFS does not.
        let plugs = mode == Mode::Background || self.config.file_system == FileSystemKind::Ext4;
        if plugs {
            self.queue.plug();
        }
        let outcome = self.submit_dirty(ino, first..end, most, mode);
        if plugs {
            self.queue.unplug()?;
        }
        self.note_clean(ino);
        outcome
    }

    /// A range up to the borders of the folios that it touches.
    fn whole_folios(&self, ino: Ino, range: &Range<u64>) -> Range<u64> {
        let folio = |index: u64| self.cache.find(ino, index).map(|id| self.cache.folio(id));
        let start = folio(range.start).map_or(range.start, |folio| folio.index);
        let last = range.end.checked_sub(1).and_then(folio);
        start..last.map_or(range.end, |folio| folio.index + (1 << folio.order))
    }

    fn submit_dirty(&mut self, ino: Ino, range: Range<u64>, most: u64, mode: Mode) -> Result<(Option<u64>, u64)> {
        let Range { start: mut at, end } = self.whole_folios(ino, &range);
        let mut wrote = 0;
        loop {
            let Some(pages) = self.cache.pages_of(ino) else { return Ok((None, wrote)) };
            let Some(index) = pages.next_marked(Mark::Dirty, at).filter(|&index| index < end) else {
                return Ok((None, wrote));
            };
            if wrote >= most || (mode == Mode::Background && !self.queue.has_free_tag()) {
                return Ok((Some(index), wrote));
            }
            if pages.is_marked(Mark::Writeback, index) {
                if mode == Mode::Background {
                    at = index + 1;
                    continue;
                }
                self.wait_until(|this| {
                    this.cache.pages_of(ino).is_none_or(|pages| !pages.is_marked(Mark::Writeback, index))
                })?;
                continue;
            }
            let longest = (most - wrote).min(end - index).min(self.layout.max_allocation());
            let ready = |index| pages.is_marked(Mark::Dirty, index) && !pages.is_marked(Mark::Writeback, index);
            let run = (index..index + longest).take_while(|&index| ready(index)).count() as u64;
            let place = match self.inodes.get(&ino).and_then(|inode| inode.extents.at(index)) {
                Some(extent) => Ok(extent),
                None => self.allocate(ino, index, run),
            };
            let extent = match place {
                Ok(extent) => extent,
                Err(error) => {
                    self.lose_pages(ino, index, run);
                    return Err(error);
                }
            };
            let count = run.min(extent.end() - index);
            self.submit_pages(ino, index, count, extent)?;
            wrote += count;
            at = index + count;
        }
    }

    /// Pages that have no place are lost, as when a drive that promised space has none (`mpage_release_unused_pages`).
    fn lose_pages(&mut self, ino: Ino, index: u64, pages: u64) {
        self.release_reserved(ino, index, index + pages);
        for index in index..index + pages {
            self.cache.mark(ino, index, Mark::Dirty, false);
        }
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.write_errors += 1;
            inode.last_error = Some(BlockError::NoSpace);
        }
    }

    /// Submits pages that have a place; they are clean and under write-back from now on.
    fn submit_pages(&mut self, ino: Ino, index: u64, count: u64, extent: Extent) -> Result<()> {
        let physical = |page: u64| (extent.physical + page - extent.logical) * PAGE;
        let mut start = index;
        while start < index + count {
            let mut data = self.config.data.then(Vec::new);
            let (mut at, mut segments, mut last) = (start, 0, None);
            while at < index + count {
                let Some(id) = self.cache.find(ino, at) else { break };
                let folio = self.cache.folio(id);
                let frame = folio.frame + (at - folio.index);
                // Pages that lie together in memory are one piece.
                if last != Some(frame.wrapping_sub(1)) {
                    if segments == BIO_SEGMENTS {
                        break;
                    }
                    segments += 1;
                }
                last = Some(frame);
                if let (Some(data), Some(bytes)) = (&mut data, &folio.data) {
                    let from = ((at - folio.index) * PAGE) as usize;
                    data.extend_from_slice(&bytes[from..from + PAGE as usize]);
                }
                self.cache.mark(ino, at, Mark::Dirty, false);
                self.cache.mark(ino, at, Mark::Writeback, true);
                at += 1;
            }
            let pages = at - start;
            if pages == 0 {
                return Err(BlockError::Protocol("a dirty page is not in the page cache").into());
            }
            self.counters.pages_written += pages;
            let purpose = Purpose::WritePages { ino, index: start, pages: pages as u32 };
            let bio = Bio { segments, data, ..Bio::new(Operation::Write, physical(start), pages * PAGE, purpose) };
            self.queue.submit(bio)?;
            start = at;
        }
        Ok(())
    }

    /// Gives blocks of a file a place, for which space was reserved. They read as zeros until they are written.
    pub(crate) fn allocate(&mut self, ino: Ino, logical: u64, blocks: u64) -> Result<Extent> {
        let inode = self.inodes.get(&ino).ok_or(KernelError::BadHandle(ino))?;
        let hole = inode.extents.hole(logical, blocks);
        let file_blocks = inode.size.div_ceil(PAGE);
        let grows = logical + hole >= file_blocks && inode.extents.from(logical).is_none();
        let more = if grows { self.layout.speculative(inode) } else { 0 };
        let before = inode.extents.before(logical);
        let left = before.filter(|before| before.end() == logical).map(|before| before.physical + before.blocks - 1);
        let request = AllocationRequest {
            ino,
            logical,
            blocks: (hole + more).min(self.layout.max_allocation()),
            file_blocks,
            left,
            next_logical: inode.extents.from(logical).map(|next| next.logical),
            preallocated: inode.preallocated,
            open_for_write: inode.open_for_write > 0,
            metadata: false,
        };
        let mut touched = Touched::default();
        let mut found = self.layout.allocate(&request, &mut touched);
        if found.is_none() {
            self.discard_preallocations();
            let request = AllocationRequest { blocks: hole, preallocated: None, ..request };
            found = self.layout.allocate(&request, &mut touched);
        }
        if found.is_none() && self.reclaim_space()? {
            let request = AllocationRequest { blocks: hole, preallocated: None, ..request };
            found = self.layout.allocate(&request, &mut touched);
        }
        let found = found.ok_or(KernelError::NoSpace)?;
        let extent = Extent { logical, physical: found.physical, blocks: found.blocks, unwritten: true };
        self.release_reserved(ino, logical, logical + found.blocks);
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.preallocated = found.preallocated;
            inode.extents.insert(extent);
        }
        self.log(&touched)?;
        self.change_inode(ino, Change::Extents(logical))?;
        self.track_range(ino, logical, extent.end());
        let inode = self.inodes.get(&ino);
        inode.and_then(|inode| inode.extents.at(logical)).ok_or(KernelError::NoSpace)
    }

    /// Gives back what is set aside for files.
    fn discard_preallocations(&mut self) {
        for inode in self.inodes.values_mut() {
            if let Some(held) = inode.preallocated.take() {
                self.layout.discard_preallocation(held);
            }
        }
    }

    /// `ext4_should_retry_alloc`: space that a commit makes free; whether there was any.
    pub(crate) fn reclaim_space(&mut self) -> Result<bool> {
        self.inactivate_all()?;
        if !self.journal.frees() && self.discards == 0 {
            return Ok(false);
        }
        self.commit_running()?;
        self.wait_until(|this| this.discards == 0)?;
        Ok(true)
    }

    /// Blocks of a range are not needed any more, or have got their place.
    pub(crate) fn release_reserved(&mut self, ino: Ino, first: u64, end: u64) {
        let Some(inode) = self.inodes.get_mut(&ino) else { return };
        while let Some(&block) = inode.delayed.range(first..end).next() {
            inode.delayed.remove(&block);
            self.delayed -= 1;
        }
    }

    /// An inode changes in the running transaction (`ext4_mark_inode_dirty`, `xfs_trans_log_inode`).
    pub(crate) fn change_inode(&mut self, ino: Ino, change: Change) -> Result<()> {
        let touched = self.inode_touches(ino, change)?;
        self.read_buffers(&touched)?;
        self.note_inode_change(ino, change, &touched);
        Ok(())
    }

    /// Blocks of the inode's tree come and go with its extents.
    fn inode_touches(&mut self, ino: Ino, change: Change) -> Result<Touched> {
        let mut touched = Touched::default();
        let extent = if let Change::Extents(logical) = change { Some(logical) } else { None };
        if extent.is_some() {
            self.fit_tree(ino, &mut touched)?;
        }
        if let Some(inode) = self.inodes.get(&ino) {
            self.layout.inode_changed(ino, inode, extent, &mut touched);
        }
        Ok(touched)
    }

    fn note_inode_change(&mut self, ino: Ino, change: Change, touched: &Touched) {
        let now = self.now();
        let Some(inode) = self.inodes.get_mut(&ino) else { return };
        let transaction = self.journal.transaction(now);
        transaction.add(touched);
        let extents = transaction.inodes.entry(ino).or_insert(None);
        if let Change::Extents(_) = change {
            *extents = Some(inode.extents.count());
        }
        if self.config.fast_commit {
            transaction.fast.inode(ino);
        }
        inode.sync_tid = transaction.tid;
        inode.is_time_dirty = false;
        if change != Change::Times {
            inode.datasync_tid = transaction.tid;
        }
    }

    fn fit_tree(&mut self, ino: Ino, touched: &mut Touched) -> Result<()> {
        loop {
            let Some(inode) = self.inodes.get(&ino) else { return Ok(()) };
            let needed = self.layout.tree_blocks(inode.extents.count());
            if inode.tree.len() < needed {
                let request = AllocationRequest {
                    ino,
                    logical: 0,
                    blocks: 1,
                    file_blocks: 0,
                    left: inode.extents.last().map(|last| last.physical),
                    next_logical: None,
                    preallocated: None,
                    open_for_write: false,
                    metadata: true,
                };
                let found = self.layout.allocate(&request, touched).ok_or(KernelError::NoSpace)?;
                touched.new_block(found.physical);
                if let Some(inode) = self.inodes.get_mut(&ino) {
                    inode.tree.push(found.physical);
                }
            } else if inode.tree.len() > needed && inode.extents.count() == 0 {
                self.free_tree(ino, touched);
            } else {
                return Ok(());
            }
        }
    }

    /// The blocks of a file's tree are free with the running transaction.
    pub(crate) fn free_tree(&mut self, ino: Ino, touched: &mut Touched) {
        let now = self.now();
        let Some(inode) = self.inodes.get_mut(&ino) else { return };
        for block in std::mem::take(&mut inode.tree) {
            self.layout.free(block, 1, touched);
            touched.revoked += 1;
            self.buffers.forget(block * PAGE);
            let transaction = self.journal.transaction(now);
            transaction.buffers.remove(&(block * PAGE));
            transaction.freed.push((block, 1));
        }
    }

    /// Pages have reached the drive, or have not: their blocks are part of the file from now on.
    pub(crate) fn end_writeback(
        &mut self,
        ino: Ino,
        index: u64,
        pages: u32,
        result: &std::result::Result<(), BlockError>,
    ) {
        let end = index + u64::from(pages);
        (index..end).for_each(|index| self.cache.mark(ino, index, Mark::Writeback, false));
        self.end_io(ino, index, end, result);
    }

    /// `ext4_end_io_end`, `xfs_end_ioend`: for write-back and direct writes.
    pub(crate) fn end_io(&mut self, ino: Ino, index: u64, end: u64, result: &std::result::Result<(), BlockError>) {
        let Some(inode) = self.inodes.get_mut(&ino) else { return };
        if let Err(error) = result {
            inode.write_errors += 1;
            inode.last_error = Some(error.clone());
            return;
        }
        let converted = inode.extents.convert(index, end);
        let size = inode.size.min(end * PAGE);
        let grown = size > inode.disk_size;
        inode.disk_size = inode.disk_size.max(size);
        let change = match (converted, grown) {
            (true, _) => Change::Extents(index),
            (false, true) => Change::Size,
            (false, false) => return,
        };
        match self.inode_touches(ino, change) {
            Ok(touched) => {
                self.hold_buffers(&touched);
                self.note_inode_change(ino, change, &touched);
                if converted {
                    self.track_range(ino, index, end);
                }
            }
            Err(_) => {
                if let Some(inode) = self.inodes.get_mut(&ino) {
                    inode.write_errors += 1;
                    inode.last_error = Some(BlockError::NoSpace);
                }
            }
        }
    }
}
