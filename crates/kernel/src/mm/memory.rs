//! Files in memory: maps and their faults.
//!
//! Linux 6.18:
//! - `mm/memory.c` `do_read_fault`, `mm/filemap.c` `filemap_map_pages`: a fault maps the cached pages of the aligned 64
//!   KiB around it (`fault_around_bytes`), but for folios with the read-ahead marker; each of them takes one off the
//!   count of misses;
//! - `mm/filemap.c` `filemap_fault`, `do_sync_mmap_readahead`, `do_async_mmap_readahead`: a page that is not cached is
//!   read with half a window before and half a window behind it, until far more faults missed than hit; one with the
//!   marker starts the next window;
//! - `mm/memory.c` `do_page_mkwrite`: the first write to a clean page is a fault that makes it dirty and reserves its
//!   block; writing a page back makes the next write one again.
//!
//! Not here: private maps, huge pages, `madvise`.

use flashwise_block::{BlockDevice, ByteSize};

use crate::PAGE;
use crate::error::{KernelError, Result};
use crate::fs::direct_io::{ReadInto, WriteFrom};
use crate::fs::inode::Ino;
use crate::fs::open::FileHandle;
use crate::kernel::Kernel;
use crate::mm::readahead::Window;
use crate::mm::vmscan::flag;
use crate::mm::xarray::Mark;

/// `fault_around_bytes`, pages.
const FAULT_AROUND: u64 = 16;

/// A file that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MapHandle(u32);

/// What the kernel keeps of a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map {
    file: FileHandle,
    ino: Ino,
    /// Bytes from the file's start.
    length: u64,
}

fn not_mapped(map: MapHandle) -> KernelError {
    KernelError::Invalid(format!("map {} is not mapped", map.0))
}

impl<D: BlockDevice> Kernel<D> {
    /// Maps the first `length` bytes of an open file, shared. The handle must stay open as long.
    ///
    /// # Errors
    /// [`KernelError::BadHandle`], [`KernelError::NotOpenFor`], [`KernelError::Invalid`] for a length of 0.
    pub fn mmap(&mut self, file: FileHandle, length: ByteSize) -> Result<MapHandle> {
        self.enter(flashwise_block::Nanos(0))?;
        let ino = self.reading(file)?.ino;
        if length.0 == 0 {
            return Err(KernelError::Invalid("a map of no bytes".to_owned()));
        }
        let map = Some(Map { file, ino, length: length.0 });
        let number = match self.maps.iter().position(Option::is_none) {
            Some(free) => {
                self.maps[free] = map;
                free
            }
            None => {
                self.maps.push(map);
                self.maps.len() - 1
            }
        };
        Ok(MapHandle(number as u32))
    }

    /// Takes a map away. Dirty pages stay dirty.
    ///
    /// # Errors
    /// [`KernelError::Invalid`] where it is none.
    pub fn munmap(&mut self, map: MapHandle) -> Result<()> {
        self.enter(flashwise_block::Nanos(0))?;
        let gone = self.maps.get_mut(map.0 as usize).and_then(Option::take);
        let gone = gone.ok_or_else(|| not_mapped(map))?;
        if !self.maps.iter().flatten().any(|other| other.ino == gone.ino) {
            self.unmap_pages(gone.ino, 0, u64::MAX);
        }
        Ok(())
    }

    /// Page tables forget pages of a file.
    pub(crate) fn unmap_pages(&mut self, ino: Ino, first: u64, end: u64) {
        let Some(mapping) = self.cache.mappings.get_mut(&ino) else { return };
        let young = &mut mapping.mapped.young;
        match (first, end) {
            (0, u64::MAX) => young.clear(),
            _ => {
                let gone: Vec<u64> = young.range(first..end).map(|(&index, _)| index).collect();
                gone.iter().for_each(|index| {
                    young.remove(index);
                });
            }
        }
    }

    fn map(&self, map: MapHandle, offset: u64, length: u64) -> Result<Map> {
        let found = self.maps.get(map.0 as usize).copied().flatten();
        let found = found.ok_or_else(|| not_mapped(map))?;
        let end = offset.saturating_add(length);
        let size = self.inodes.get(&found.ino).map_or(0, |inode| inode.size.next_multiple_of(PAGE));
        if end > found.length || end > size {
            return Err(KernelError::Invalid(format!(
                "SIGBUS: bytes {offset} to {end} of a map of {} bytes over a file of {size}",
                found.length
            )));
        }
        Ok(found)
    }

    /// Loads from mapped memory. Pages that are mapped cost nothing.
    ///
    /// # Errors
    /// [`KernelError::Invalid`] where Linux sends `SIGBUS` or `SIGSEGV`; [`KernelError::Io`].
    pub fn map_read<'a>(&mut self, map: MapHandle, offset: ByteSize, into: impl Into<ReadInto<'a>>) -> Result<()> {
        let mut into = into.into();
        let found = self.map(map, offset.0, into.len())?;
        let end = offset.0 + into.len();
        let mut at = offset.0;
        while at < end {
            let index = at / PAGE;
            let stop = end.min((index + 1) * PAGE);
            let id = self.touch(&found, index, false)?;
            let folio = self.cache.folio(id);
            let (from, bytes) = ((at - folio.index * PAGE) as usize, (stop - at) as usize);
            into.fill((at - offset.0) as usize, bytes, folio.data.as_deref().map(|data| &data[from..from + bytes]));
            at = stop;
        }
        Ok(())
    }

    /// Stores to mapped memory. The file must be open for writing.
    ///
    /// # Errors
    /// As [`Self::map_read`]; [`KernelError::NotOpenFor`], [`KernelError::NoSpace`].
    pub fn map_write<'a>(&mut self, map: MapHandle, offset: ByteSize, from: impl Into<WriteFrom<'a>>) -> Result<()> {
        let from = from.into();
        let found = self.map(map, offset.0, from.len())?;
        self.writing(found.file)?;
        let end = offset.0 + from.len();
        let mut at = offset.0;
        while at < end {
            let index = at / PAGE;
            let stop = end.min((index + 1) * PAGE);
            let id = self.touch(&found, index, true)?;
            let dirty = self.cache.pages_of(found.ino).is_some_and(|pages| pages.is_marked(Mark::Dirty, index));
            if !dirty {
                self.make_writable(found.ino, index)?;
                if self.cache.find(found.ino, index) != Some(id) {
                    continue;
                }
                self.dirty_page(found.ino, index);
            }
            let folio = self.cache.folio_mut(id);
            let (start, bytes) = ((at - folio.index * PAGE) as usize, (stop - at) as usize);
            if let Some(data) = &mut folio.data {
                from.copy((at - offset.0) as usize, &mut data[start..start + bytes]);
            }
            if !dirty {
                self.balance_dirty_pages(1)?;
            }
            at = stop;
        }
        Ok(())
    }

    /// Makes a range of a map durable, as `msync(MS_SYNC)` does: `mm/msync.c` calls `vfs_fsync_range` with
    /// `datasync`, so what `fdatasync` does follows, for the pages of the range.
    ///
    /// # Errors
    /// [`KernelError::Invalid`] where the range is not mapped; as [`Self::fdatasync`].
    pub fn msync(&mut self, map: MapHandle, offset: ByteSize, length: ByteSize) -> Result<()> {
        self.enter(flashwise_block::Nanos(0))?;
        let Map { file, ino, length: mapped } =
            self.maps.get(map.0 as usize).copied().flatten().ok_or_else(|| not_mapped(map))?;
        let end = offset.0.saturating_add(length.0);
        if end > mapped.next_multiple_of(PAGE) || !offset.0.is_multiple_of(PAGE) {
            return Err(KernelError::Invalid(format!(
                "msync of bytes {} to {end} of a map of {mapped}; start at a multiple of {PAGE}",
                offset.0
            )));
        }
        let outcome = self.sync_inode(ino, offset.0 / PAGE, end.div_ceil(PAGE), true);
        self.report_write_errors(file)?;
        outcome
    }

    /// `ext4_page_mkwrite`
    fn make_writable(&mut self, ino: Ino, index: u64) -> Result<()> {
        self.enter_to_write(self.config.costs.fault)?;
        self.update_time(ino)?;
        self.reserve(ino, index, 1)
    }

    /// A page is used through a map: found in the page tables, or by a fault. One for a write maps its page alone
    /// (`do_shared_fault`), one for a read those around it first (`do_read_fault`).
    fn touch(&mut self, map: &Map, index: u64, writes: bool) -> Result<u32> {
        let Map { file, ino, length } = *map;
        if let Some(mapping) = self.cache.mappings.get_mut(&ino)
            && let Some(young) = mapping.mapped.young.get_mut(&index)
            && let Some(id) = mapping.pages.folio(index)
        {
            *young = true;
            return Ok(id);
        }
        self.enter(self.config.costs.fault)?;
        let mut is_first = true;
        for _ in 0..16 {
            if !writes {
                self.fault_around(file, ino, index, length);
            }
            let Some(id) = self.cache.find(ino, index) else {
                self.fault_miss(file, ino, index)?;
                is_first = false;
                continue;
            };
            if writes && is_first && !self.is_locked(id) {
                // `do_async_mmap_readahead`, which a fault that is tried again does not reach.
                let state = &mut self.handle_mut(file)?.read_ahead;
                state.mmap_miss = state.mmap_miss.saturating_sub(1);
            }
            if self.cache.folio(id).has(flag::READAHEAD) {
                let request = self.handle(file)?.read_ahead.max_pages;
                self.readahead_marker(ino, index, id, request, file)?;
            }
            let id = self.get_page(ino, index, 1, None)?;
            self.cache.mark_accessed(id);
            if let Some(mapping) = self.cache.mappings.get_mut(&ino) {
                mapping.mapped.young.insert(index, true);
            }
            return Ok(id);
        }
        Err(KernelError::Invalid("the page cache is too small for this map; give it more memory".to_owned()))
    }

    /// `do_sync_mmap_readahead`
    fn fault_miss(&mut self, file: FileHandle, ino: Ino, index: u64) -> Result<()> {
        self.counters.misses += 1;
        let handle = self.handle_mut(file)?;
        let window = if handle.random { None } else { handle.read_ahead.on_fault(index) };
        self.read_window(ino, window.unwrap_or(Window::exact(index, 1)), Some(index))?;
        // The fault waits for its page, and is tried again.
        if let Some(id) = self.cache.find(ino, index) {
            self.wait_until(|this| this.cache.find(ino, index) != Some(id) || !this.is_locked(id))?;
        }
        Ok(())
    }

    /// `filemap_map_pages`
    fn fault_around(&mut self, file: FileHandle, ino: Ino, index: u64, length: u64) {
        let first = index / FAULT_AROUND * FAULT_AROUND;
        let end = (first + FAULT_AROUND).min(length.div_ceil(PAGE));
        let mut mapped = 0;
        for at in first..end {
            let Some(id) = self.cache.find(ino, at) else { continue };
            let folio = self.cache.folio(id);
            if folio.has(flag::LOCKED) || folio.has(flag::READAHEAD) || !folio.has(flag::UPTODATE) {
                continue;
            }
            let counts = !folio.has(flag::WORKINGSET);
            let Some(mapping) = self.cache.mappings.get_mut(&ino) else { return };
            if let std::collections::btree_map::Entry::Vacant(entry) = mapping.mapped.young.entry(at) {
                entry.insert(at == index);
                mapped += u64::from(counts);
            }
        }
        if let Some(handle) = self.handles.get_mut(file.0 as usize).and_then(Option::as_mut) {
            handle.read_ahead.mmap_miss = handle.read_ahead.mmap_miss.saturating_sub(mapped);
        }
    }
}
