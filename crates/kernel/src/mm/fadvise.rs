//! Advice on how a file will be read.
//!
//! Linux 6.18, `mm/fadvise.c` `generic_fadvise`: sequential doubles the window, random reads what is asked for and
//! nothing else, will need reads a range in the background, don't need writes a range's dirty pages and drops the clean
//! ones that lie whole in it.

use flashwise_block::{BlockDevice, ByteSize, Nanos};

use crate::PAGE;
use crate::error::Result;
use crate::fs::fs_writeback::Mode;
use crate::fs::open::FileHandle;
use crate::kernel::Kernel;
use crate::mm::readahead::Window;

/// `POSIX_FADV_…`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// `NORMAL`
    Normal,
    /// `SEQUENTIAL`
    Sequential,
    /// `RANDOM`
    Random,
    /// `WILLNEED`
    WillNeed,
    /// `DONTNEED`
    DontNeed,
}

impl<D: BlockDevice> Kernel<D> {
    /// Advises on a range; a length of 0 is the rest of the file. The first three hold for the whole handle.
    ///
    /// # Errors
    /// [`crate::KernelError::BadHandle`], and when the drive is lost.
    pub fn fadvise(&mut self, file: FileHandle, offset: ByteSize, length: ByteSize, advice: Advice) -> Result<()> {
        self.enter(Nanos(0))?;
        let window = self.config.read_ahead.0 / PAGE;
        let end = if length.0 == 0 { u64::MAX } else { offset.0.saturating_add(length.0) };
        let handle = self.handle_mut(file)?;
        let ino = handle.ino;
        match advice {
            Advice::Normal => (handle.random, handle.read_ahead.max_pages) = (false, window),
            Advice::Sequential => (handle.random, handle.read_ahead.max_pages) = (false, 2 * window),
            Advice::Random => handle.random = true,
            Advice::WillNeed => {
                let last = self.inodes.get(&ino).map_or(0, |inode| inode.size.div_ceil(PAGE));
                let (mut first, end) = (offset.0 / PAGE, end.div_ceil(PAGE).min(last));
                // `force_page_cache_ra`: not more than the window or the largest request.
                let most = window.max(self.queue.limits().max_request.0 / PAGE);
                let end = end.min(first.saturating_add(most));
                while first < end {
                    let pages = (end - first).min(512);
                    self.read_window(ino, Window::exact(first, pages), None)?;
                    first += pages;
                }
            }
            Advice::DontNeed => {
                let (first, last) = (offset.0.div_ceil(PAGE), end / PAGE);
                let whole = self.inodes.get(&ino).is_some_and(|inode| end >= inode.size);
                self.write_pages(ino, offset.0 / PAGE, end.div_ceil(PAGE), u64::MAX, Mode::Background)?;
                self.cache.invalidate(ino, first, if whole { u64::MAX } else { last });
            }
        }
        Ok(())
    }
}
