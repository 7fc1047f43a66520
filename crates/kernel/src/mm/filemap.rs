//! Reading through the page cache.
//!
//! Linux 6.18, `mm/filemap.c` `filemap_read`, `filemap_get_pages`, `filemap_update_page`: page after page; one that is
//! missing starts read-ahead for the rest of the request, a marked one the next window; then the page is waited for,
//! copied and marked accessed, but for a read that goes on in the page where the previous one ended. `mm/readahead.c`
//! `read_pages`, `fs/mpage.c` `mpage_readahead`, `fs/iomap/buffered-io.c` `iomap_readahead`: pages of a window become
//! bios where they lie together on the drive; holes and unwritten extents are zeros without a request.

use flashwise_block::{BlockDevice, BlockError, Operation};

use crate::PAGE;
use crate::block::{Bio, Purpose};
use crate::error::{KernelError, Result};
use crate::fs::fs_writeback::Mode;
use crate::fs::inode::Ino;
use crate::fs::open::FileHandle;
use crate::kernel::Kernel;
use crate::mm::readahead::Window;
use crate::mm::vmscan::flag;
use crate::mm::xarray::FolioId;

impl<D: BlockDevice> Kernel<D> {
    pub(crate) fn is_locked(&self, id: FolioId) -> bool {
        self.cache.folio(id).has(flag::LOCKED)
    }

    /// Makes a page free, whatever that takes: eviction, then waiting, then writing back. `false` where all memory is
    /// in use by what cannot go; then the cache is a little larger than its memory.
    fn wait_for_memory(&mut self) -> Result<bool> {
        loop {
            if self.cache.reclaim(1) {
                return Ok(true);
            }
            if self.queue.outstanding() > 0 {
                if !self.wait_for_any()? {
                    return Ok(false);
                }
                continue;
            }
            let Some(ino) = self.flusher.oldest() else { return Ok(false) };
            let (_, wrote) = self.write_pages(ino, 0, u64::MAX, 32, Mode::Wait)?;
            if wrote == 0 {
                return Ok(false);
            }
        }
    }

    /// Enters a page that is about to be read or written.
    pub(crate) fn add_page(&mut self, ino: Ino, index: u64, flags: u8) -> Result<FolioId> {
        self.wait_for_memory()?;
        self.queue.charge(self.config.costs.new_page);
        Ok(self.cache.add(ino, index, 0, flags))
    }

    /// Reads those pages of a window that are not cached. Memory for `needed` is made, for the others taken as it is.
    pub(crate) fn read_window(&mut self, ino: Ino, window: Window, needed: Option<u64>) -> Result<()> {
        let Some(inode) = self.inodes.get(&ino) else { return Ok(()) };
        let limit = inode.size.div_ceil(PAGE);
        if window.pages == 1 && needed == Some(window.start) && window.start < limit {
            return self.read_page(ino, window.start, window.marker == needed);
        }
        let mut end = window.start.saturating_add(window.pages).min(limit);
        let mut order = window.order;
        let mut index = window.start;
        self.queue.plug();
        // A batch of pages that are to be read together: where it begins.
        let mut batch = index;
        let mut pinned = None;
        while index < end {
            if self.cache.find(ino, index).is_some() {
                self.read_batch(ino, batch, index)?;
                // Something is cached: the rest is read page by page.
                order = 0;
                index += 1;
                batch = index;
                continue;
            }
            let mut own = order.min(index.trailing_zeros().min(63) as u8);
            while index + (1 << own) > end || (own > 0 && self.any_cached(ino, index, 1 << own)) {
                own -= 1;
            }
            if needed == Some(index) {
                own = 0;
                if !self.cache.reclaim(1) {
                    self.read_batch(ino, batch, index)?;
                    batch = index;
                    self.wait_for_memory()?;
                }
            } else {
                while own > 0 && !self.cache.reclaim(1 << own) {
                    own -= 1;
                }
                if own == 0 && !self.cache.reclaim(1) {
                    // Memory is short: of what is left, only the page that is needed.
                    self.read_batch(ino, batch, index)?;
                    match needed.filter(|&needed| needed > index) {
                        Some(needed) => index = needed,
                        None => end = index,
                    }
                    batch = index;
                    continue;
                }
            }
            let marked = window.marker.is_some_and(|marker| marker >> own << own == index);
            let flags = flag::LOCKED | if marked { flag::READAHEAD } else { 0 };
            let id = self.cache.add(ino, index, own, flags);
            if needed == Some(index) {
                // It stays until the whole window is submitted, so that the pages behind it do not take its memory.
                self.cache.folio_mut(id).pending = 1;
                pinned = Some((index, id));
            }
            index += 1 << own;
        }
        self.read_batch(ino, batch, index)?;
        if let Some((index, id)) = pinned.filter(|&(index, id)| self.cache.find(ino, index) == Some(id)) {
            self.end_read(ino, index, 1, &Ok(()), None);
            debug_assert!(self.cache.find(ino, index) == Some(id));
        }
        self.queue.unplug()?;
        Ok(())
    }

    /// Reads one page that is not cached and is needed: what a window of one page comes to, which most of a random
    /// reader's are.
    fn read_page(&mut self, ino: Ino, index: u64, marked: bool) -> Result<()> {
        if !self.cache.reclaim(1) {
            self.wait_for_memory()?;
        }
        let marker = if marked { flag::READAHEAD } else { 0 };
        let extent = self.inodes.get(&ino).and_then(|inode| inode.extents.at(index)).filter(|extent| !extent.unwritten);
        let Some(extent) = extent else {
            self.cache.add(ino, index, 0, flag::UPTODATE | marker);
            return Ok(());
        };
        let id = self.cache.add(ino, index, 0, flag::LOCKED | marker);
        self.cache.folio_mut(id).pending = 1;
        self.counters.pages_read += 1;
        let offset = (extent.physical + index - extent.logical) * PAGE;
        let purpose = Purpose::ReadPages { ino, index, pages: 1 };
        Ok(self.queue.submit(Bio::new(Operation::Read, offset, PAGE, purpose))?)
    }

    fn any_cached(&self, ino: Ino, index: u64, pages: u64) -> bool {
        self.cache.pages_of(ino).is_some_and(|all| all.next_folio(index).is_some_and(|(at, _)| at < index + pages))
    }

    /// Submits the reads of pages that were entered for it.
    fn read_batch(&mut self, ino: Ino, first: u64, end: u64) -> Result<()> {
        let mut at = first;
        while at < end {
            let Some(inode) = self.inodes.get(&ino) else { return Ok(()) };
            let place = inode.extents.at(at);
            let next = match place {
                Some(extent) => extent.end(),
                None => at + inode.extents.hole(at, end - at),
            };
            let next = next.min(end);
            match place.filter(|extent| !extent.unwritten) {
                Some(extent) => {
                    let mut segments = 0;
                    let mut last = None;
                    for index in at..next {
                        let Some(id) = self.cache.find(ino, index) else { continue };
                        let folio = self.cache.folio_mut(id);
                        folio.pending += 1;
                        let frame = folio.frame + (index - folio.index);
                        segments += u32::from(last.replace(frame) != Some(frame.wrapping_sub(1)));
                    }
                    self.counters.pages_read += next - at;
                    let (offset, bytes) = ((extent.physical + at - extent.logical) * PAGE, (next - at) * PAGE);
                    let purpose = Purpose::ReadPages { ino, index: at, pages: (next - at) as u32 };
                    let bio = Bio { segments, ..Bio::new(Operation::Read, offset, bytes, purpose) };
                    self.queue.submit(bio)?;
                }
                None => {
                    for index in at..next {
                        let Some(id) = self.cache.find(ino, index) else { continue };
                        let folio = self.cache.folio_mut(id);
                        // Its other pages may have to be read.
                        let is_last = folio.pending == 0 && index + 1 == folio.index + folio.pages();
                        if is_last {
                            folio.flags = folio.flags & !flag::LOCKED | flag::UPTODATE;
                        }
                    }
                }
            }
            at = next;
        }
        Ok(())
    }

    /// A page's folio, up to date. `request` pages from there on are wanted; `file` has the state of read-ahead,
    /// without it the page is read alone.
    pub(crate) fn get_page(&mut self, ino: Ino, index: u64, request: u64, file: Option<FileHandle>) -> Result<FolioId> {
        let mut failed = false;
        // A page may be evicted between being read and being used only if memory is one page; so few rounds do.
        for _ in 0..16 {
            let Some(id) = self.cache.find(ino, index) else {
                self.counters.misses += 1;
                let io_pages = self.queue.limits().max_request.0 / PAGE;
                let pages = self.cache.mappings.get(&ino).map(|mapping| &mapping.pages);
                let handle = file.filter(|_| !failed).and_then(|file| self.handles.get_mut(file.0 as usize)?.as_mut());
                let window = match handle {
                    Some(handle) => handle.read_ahead.on_miss(pages, index, request, io_pages, handle.random),
                    None => Window::exact(index, 1),
                };
                self.read_window(ino, window, Some(index))?;
                continue;
            };
            let folio = self.cache.folio(id);
            if folio.has(flag::READAHEAD)
                && let Some(file) = file
            {
                self.readahead_marker(ino, index, id, request, file)?;
                if self.cache.find(ino, index) != Some(id) {
                    continue;
                }
            }
            let waits = self.is_locked(id);
            if waits {
                self.wait_until(|this| this.cache.find(ino, index) != Some(id) || !this.is_locked(id))?;
                if self.cache.find(ino, index) != Some(id) {
                    continue;
                }
            }
            if !self.cache.folio(id).has(flag::UPTODATE) {
                // `filemap_read_folio`: what could not be read is read once more, alone.
                self.cache.remove(id, false);
                if std::mem::replace(&mut failed, true) {
                    let message = "the drive reported an error for it twice".to_owned();
                    let context = format!("reading page {index} of a file");
                    return Err(BlockError::Os { context, message, errno: 5 }.into());
                }
                continue;
            }
            self.counters.hits += u64::from(!waits);
            return Ok(id);
        }
        Err(KernelError::Invalid("the page cache is too small for this request; give it more memory".to_owned()))
    }

    /// `page_cache_async_ra`: the marked folio is used.
    pub(crate) fn readahead_marker(
        &mut self,
        ino: Ino,
        index: u64,
        id: FolioId,
        request: u64,
        file: FileHandle,
    ) -> Result<()> {
        let folio = self.cache.folio_mut(id);
        folio.flags &= !flag::READAHEAD;
        let (first, pages) = (folio.index, folio.pages());
        let request = request + index - first;
        let io_pages = self.queue.limits().max_request.0 / PAGE;
        let cached = self.cache.mappings.get(&ino).map(|mapping| &mapping.pages);
        let handle = self.handles.get_mut(file.0 as usize).and_then(Option::as_mut);
        let window = handle.and_then(|handle| handle.read_ahead.on_marker(cached, first, pages, request, io_pages));
        match window {
            Some(window) => self.read_window(ino, window, None),
            None => Ok(()),
        }
    }

    /// A folio of several pages becomes one of each, as far as it has to be.
    pub(crate) fn split_folio(&mut self, id: FolioId) -> Result<()> {
        use crate::mm::xarray::Mark;
        let folio = self.cache.folio(id);
        let (ino, index, pages, flags) = (folio.ino, folio.index, folio.pages(), folio.flags);
        let marks: Vec<(bool, bool)> = (index..index + pages)
            .map(|index| {
                let all = self.cache.pages_of(ino);
                let has = |mark| all.is_some_and(|all| all.is_marked(mark, index));
                (has(Mark::Dirty), has(Mark::Writeback))
            })
            .collect();
        let data = self.cache.folio_mut(id).data.take();
        let young = self.cache.mappings.get(&ino).map(|mapping| mapping.mapped.young.clone());
        self.cache.remove(id, false);
        for (number, (dirty, writeback)) in marks.into_iter().enumerate() {
            let at = index + number as u64;
            let new = self.cache.add(ino, at, 0, flags & !(flag::READAHEAD | flag::LOCKED));
            let from = number * PAGE as usize;
            if let (Some(target), Some(source)) = (&mut self.cache.folio_mut(new).data, &data) {
                target.copy_from_slice(&source[from..from + PAGE as usize]);
            }
            self.cache.mark(ino, at, Mark::Dirty, dirty);
            self.cache.mark(ino, at, Mark::Writeback, writeback);
        }
        if let (Some(young), Some(mapping)) = (young, self.cache.mappings.get_mut(&ino)) {
            mapping.mapped.young = young;
        }
        Ok(())
    }
}
