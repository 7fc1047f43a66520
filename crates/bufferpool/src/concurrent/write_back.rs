//! Images of dirty pages on their way to the store, what becomes of their pages, and checkpoints.

use flashwise_block::{BlockError, IoBuffer};

use super::store::{Exchanged, PageImage, PageRead, PageStore};
use super::word::Hold;
use super::{BufferPool, Core};
use crate::directory::Page;
use crate::error::PoolError;

/// A page and its frame.
pub(super) type Placed = (Page, u32);

/// Pages that are written together.
#[derive(Debug, Default)]
pub(super) struct Write {
    /// What [`Core::begin_write`] gave for it.
    pub(super) tickets: Vec<u64>,
    /// Pages that have been evicted: nobody reaches them until they are written.
    pub(super) out: Vec<Placed>,
    /// Pages that stay in their frames; each has a shared latch until its image is copied.
    pub(super) staying: Vec<Placed>,
}

impl Write {
    /// Several as one; none of none.
    pub(super) fn joined(writes: Vec<Self>) -> Option<Self> {
        writes.into_iter().reduce(|mut all, more| {
            all.tickets.extend(more.tickets);
            all.out.extend(more.out);
            all.staying.extend(more.staying);
            all
        })
    }

    fn pages(&self) -> usize {
        self.out.len() + self.staying.len()
    }
}

impl Core {
    /// Notes that a write starts; a checkpoint waits for those before it.
    pub(super) fn begin_write(&mut self) -> Vec<u64> {
        self.writes_begun += 1;
        self.under_way.push(self.writes_begun);
        vec![self.writes_begun]
    }

    /// A free frame for a page.
    pub(super) fn take_frame(&mut self, page: Page) -> Result<u32, PoolError> {
        let frames = self.frame_pages.len();
        let frame = self.free.pop().ok_or(PoolError::AllPinned { frames })?;
        self.frame_pages[frame as usize] = page;
        Ok(frame)
    }
}

impl<S: PageStore> BufferPool<S> {
    /// Copies what is written, and lets go of the pages that stay.
    pub(super) fn images(&self, write: &Write) -> Vec<PageImage> {
        let image = |&(page, frame): &Placed| {
            // SAFETY: the page was taken out for writing or is latched shared, by this thread: nobody writes its frame.
            let bytes = IoBuffer::copy_of(unsafe { self.frames.bytes(frame) });
            PageImage { page, bytes }
        };
        let out: Vec<PageImage> = write.out.iter().map(image).collect();
        let staying = write.staying.iter().map(|placed| {
            let image = image(placed);
            self.words[placed.0.0 as usize].release(Hold::Shared, &self.waiters);
            image
        });
        out.into_iter().chain(staying).collect()
    }

    /// Asks whether pages may be written now.
    pub(super) fn may_write(&self, images: &[PageImage]) -> Result<(), BlockError> {
        match &self.options.before_write {
            Some(before_write) if !images.is_empty() => before_write(images).map_err(BlockError::Refused),
            _ => Ok(()),
        }
    }

    /// Reads pages into their frames and writes images.
    pub(super) fn transfer(&self, images: Vec<PageImage>, reads: &[Placed]) -> Exchanged {
        let into = |&(page, frame): &Placed| {
            // SAFETY: the page was taken for loading by this thread: nobody else touches its frame.
            PageRead { page, into: unsafe { self.frames.bytes_mut(frame) } }
        };
        let mut reads: Vec<PageRead<'_>> = reads.iter().map(into).collect();
        self.store.exchange(images, &mut reads)
    }

    /// A write has ended: its pages are clean or gone, or, if it failed, dirty as before.
    pub(super) fn end_write(&self, write: Option<Write>, written: Result<(), BlockError>) -> Result<(), PoolError> {
        let Some(write) = write else { return Ok(()) };
        let has_failed = written.is_err();
        let mut core = self.lock();
        for &(page, frame) in &write.out {
            let word = &self.words[page.0 as usize];
            if has_failed {
                core.orphans.push(page);
                word.out_failed(&self.waiters);
            } else {
                core.free.push(frame);
                word.out_written(&self.waiters);
            }
        }
        for &(page, _) in &write.staying {
            if has_failed {
                core.policy.set_dirty(page, true);
            }
            self.words[page.0 as usize].end_write(has_failed, &self.waiters);
        }
        core.under_way.retain(|ticket| !write.tickets.contains(ticket));
        core.failed_writes += u64::from(has_failed);
        self.changed.notify_all();
        written.map_err(|error| PoolError::WriteFailed { pages: write.pages(), reason: error.to_string() })
    }

    /// Lets go of frames whose pages are written by now and unknown to the policy.
    pub(super) fn sweep_orphans(&self, core: &mut Core) {
        let Core { orphans, free, .. } = core;
        orphans.retain(|page| {
            let word = &self.words[page.0 as usize];
            let frame = if word.view().is_orphan { word.evict(&self.waiters) } else { return false };
            free.extend(frame);
            frame.is_none()
        });
    }

    /// Tries again to write the dirty pages that have been evicted.
    pub(super) fn rescue_orphans(&self) -> Result<(), PoolError> {
        let mut core = self.lock();
        let begun = |page: &Page| self.words[page.0 as usize].begin_write().map(|frame| (*page, frame));
        let staying: Vec<Placed> = core.orphans.iter().filter_map(begun).collect();
        if staying.is_empty() {
            return Err(PoolError::AllPinned { frames: core.frame_pages.len() });
        }
        let write = Write { tickets: core.begin_write(), out: Vec::new(), staying };
        drop(core);
        self.carry_out(write)
    }

    /// Writes pages, and nothing is read meanwhile.
    fn carry_out(&self, write: Write) -> Result<(), PoolError> {
        let images = self.images(&write);
        let written = self.may_write(&images).and_then(|()| self.transfer(images, &[]).written);
        self.end_write(Some(write), written)
    }

    /// Makes every change durable whose guard was dropped before: writes all dirty pages, n_w of them at once and in
    /// the order of their numbers, and flushes the store. Other threads continue meanwhile.
    ///
    /// # Errors
    /// When a write fails (its pages stay dirty), or a flush has failed, now or before.
    pub fn checkpoint(&self) -> Result<(), PoolError> {
        self.check_flushes()?;
        self.wait_for_writes();
        loop {
            let failures = self.lock().failed_writes;
            for batch in self.dirty_pages().chunks(self.options.ace.write_back_batch.max(1)) {
                self.write_pages(batch)?;
            }
            self.wait_for_writes();
            // What others could not write meanwhile is dirty again.
            if self.lock().failed_writes == failures {
                break;
            }
        }
        self.sweep_orphans(&mut self.lock());
        self.flush()
    }

    /// Waits for the writes that have started.
    fn wait_for_writes(&self) {
        let mut core = self.lock();
        let last = core.writes_begun;
        while core.under_way.iter().any(|&ticket| ticket <= last) {
            core = self.changed.wait(core).unwrap_or_else(|broken| broken.into_inner());
        }
    }

    /// Pages that are dirty now, in the order of their numbers.
    fn dirty_pages(&self) -> Vec<Page> {
        let mut pages = self.lock().frame_pages.clone();
        pages.retain(|page| {
            let view = self.words[page.0 as usize].view();
            view.is_resident && view.is_dirty
        });
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// Writes those of these pages that are still dirty.
    fn write_pages(&self, batch: &[Page]) -> Result<(), PoolError> {
        let (mut staying, mut busy) = (Vec::with_capacity(batch.len()), Vec::new());
        let mut core = self.lock();
        for &page in batch {
            match self.words[page.0 as usize].begin_write() {
                Some(frame) => {
                    core.policy.set_dirty(page, false);
                    staying.push((page, frame));
                }
                None => busy.push(page),
            }
        }
        core.checkpoint_pages += staying.len() as u64;
        let write = Write { tickets: core.begin_write(), out: Vec::new(), staying };
        drop(core);
        self.carry_out(write)?;
        for page in busy {
            self.write_busy_page(page)?;
        }
        Ok(())
    }

    /// Writes a page that somebody changes or writes, when he has done so.
    fn write_busy_page(&self, page: Page) -> Result<(), PoolError> {
        let word = &self.words[page.0 as usize];
        loop {
            word.wait_until_quiet(&self.waiters);
            let mut core = self.lock();
            if let Some(frame) = word.begin_write() {
                core.policy.set_dirty(page, false);
                core.checkpoint_pages += 1;
                let write = Write { tickets: core.begin_write(), out: Vec::new(), staying: vec![(page, frame)] };
                drop(core);
                return self.carry_out(write);
            }
            if !word.view().is_dirty {
                return Ok(());
            }
        }
    }

    fn flush(&self) -> Result<(), PoolError> {
        let mut failed = self.failed_flush.lock().unwrap_or_else(|broken| broken.into_inner());
        let flushed = self.store.flush().map_err(|error| error.to_string());
        flushed.map_err(|reason| PoolError::FlushFailed { reason: failed.insert(reason).clone() })
    }

    fn check_flushes(&self) -> Result<(), PoolError> {
        let failed = self.failed_flush.lock().unwrap_or_else(|broken| broken.into_inner());
        failed.clone().map_or(Ok(()), |reason| Err(PoolError::FlushFailed { reason }))
    }
}
