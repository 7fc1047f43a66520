//! Dirty pages on their way to the medium: as a delta or whole, many at once, durable with the next flush.
//!
//! ```text
//!   dirty ─▶ log durable up to its LSN ─▶ copied ─▶ written ─▶ (any flush) ─▶ durable: the ledger forgets it
//!                                                                              └─▶ unused slots ─▶ given back, many at once
//! ```
//!
//! **No flush of its own.** A written page waits for a flush that somebody needs anyway, a commit's. Until then its
//! page is not written again: there would be no whole version left of the one before.
//!
//! **The threshold T.** With `s` bytes of segments changed per write, a page of `F` bytes is written whole after `T /
//! s` deltas of `T / 2` bytes on average. The cost of a write is `T / 2 + F · s / T`, least at `T = √(2 · F · s)`. Both
//! are averages of what the store has written; deltas and images compress alike.
//!
//! Source: Qiao et al., FAST 2022, localised modification logging; the formula and the adaptation are ours.

use std::sync::Arc;

use flashwise_block::{ByteSize, IoBuffer};
use rustc_hash::FxHashMap;

use super::cache::{Cache, lock};
use super::frame::{Frame, Page, State};
use super::image::{PageId, PageLayout};
use super::page::{Kind, Segments};
use crate::error::Result;
use crate::faults::{Planted, is_planted};
use crate::medium::Cause;
use crate::options::StoreOptions;
use crate::superblock::NEW_PAGES_MAX;

/// The threshold of a store that has not seen any update: the middle of the model's optimum, 1 to 1.5 KiB.
const THRESHOLD_START: f64 = 1024.0;
/// How much one write moves the averages.
const AVERAGE: f64 = 1.0 / 256.0;
/// Give-backs in flight.
const GIVE_BACK_DEPTH: usize = 16;

/// A page that was written and is not durable yet.
struct Unflushed {
    page: PageId,
    batch: u64,
    /// What is out of use once the write is durable.
    unused: Option<(u64, u64)>,
}

/// State of the write-back; its lock makes batches follow one another.
pub(crate) struct WriteBack {
    unflushed: FxHashMap<PageId, Unflushed>,
    give_back: FxHashMap<PageId, (u64, u64)>,
    /// Pages that are free, and the group that freed them.
    freed: FxHashMap<PageId, u64>,
    threshold: Threshold,
    /// No deltas: the medium has no space, and a whole image gives more back than it takes.
    writes_whole: bool,
    pub delta_writes: u64,
    pub image_writes: u64,
}

/// The adaptive threshold.
#[derive(Clone, Copy, Debug)]
struct Threshold {
    fixed: Option<f64>,
    /// Averages: bytes of segments that a write has more than the one before, and used bytes of a page.
    growth: f64,
    used: f64,
    bounds: (f64, f64),
}

impl Threshold {
    fn new(layout: &PageLayout, fixed: Option<ByteSize>) -> Self {
        let segment = layout.segment_bytes as f64;
        let most = (layout.delta_segments_max() * layout.segment_bytes) as f64;
        let used = layout.page_bytes as f64 * 0.7;
        // Averages that give the starting threshold.
        let growth = THRESHOLD_START * THRESHOLD_START / (2.0 * used);
        Self { fixed: fixed.map(|bytes| bytes.0 as f64), growth, used, bounds: (4.0 * segment, most) }
    }

    fn note(&mut self, growth: usize, used: usize) {
        self.growth += (growth as f64 - self.growth) * AVERAGE;
        self.used += (used as f64 - self.used) * AVERAGE;
    }

    fn bytes(&self) -> f64 {
        let adapted = (2.0 * self.used * self.growth).sqrt().clamp(self.bounds.0, self.bounds.1);
        self.fixed.unwrap_or(adapted).min(self.bounds.1)
    }
}

/// A page's copy for the medium, and how the page was before.
struct Copied {
    frame: Arc<Frame>,
    write: (u64, IoBuffer, Cause),
    kind: CopyKind,
}

enum CopyKind {
    Delta(u8),
    Image { slot: u8, old: (Option<u8>, u64, Option<u8>) },
}

impl WriteBack {
    pub(crate) fn new(layout: &PageLayout, options: &StoreOptions) -> Self {
        Self {
            unflushed: FxHashMap::default(),
            give_back: FxHashMap::default(),
            freed: FxHashMap::default(),
            threshold: Threshold::new(layout, options.delta_threshold),
            writes_whole: false,
            delta_writes: 0,
            image_writes: 0,
        }
    }

    /// Group `seq` freed a page.
    pub(crate) fn freed(&mut self, page: PageId, seq: u64) {
        self.freed.insert(page, seq);
    }

    /// The page is in use again.
    pub(crate) fn not_freed(&mut self, page: PageId) {
        self.freed.remove(&page);
    }

    pub(crate) fn threshold(&self) -> ByteSize {
        ByteSize(self.threshold.bytes() as u64)
    }
}

impl Cache {
    /// Writes pages that are dirty and whose log is complete; returns how many. They are durable with the next flush.
    pub(crate) fn write_pages(&self, frames: &[Arc<Frame>]) -> Result<usize> {
        self.disk.healthy()?;
        let lsns = frames.iter().filter_map(|frame| frame.read(|page| (page.dirty, page.lsn)).ok());
        let complete = self.log.appended_seq();
        let needed = lsns.filter(|(dirty, lsn)| *dirty && *lsn <= complete).map(|(_, lsn)| lsn).max();
        let Some(needed) = needed else { return Ok(0) };
        if needed > self.log.synced_seq() {
            self.queue.sync_to(needed)?;
        }
        let mut back = lock(&self.write_back);
        self.settle(&mut back);
        // Another thread may have written them meanwhile: for those no flush is needed.
        let is_dirty = |frame: &&Arc<Frame>| frame.read(|page| page.dirty).unwrap_or(false);
        let frames: Vec<Arc<Frame>> = frames.iter().filter(is_dirty).cloned().collect();
        if frames.iter().any(|frame| back.unflushed.contains_key(&frame.id)) {
            self.disk.flush()?;
            self.settle(&mut back);
        }
        if frames.iter().any(|frame| back.give_back.contains_key(&frame.id)) {
            // Space that cannot be given back now is not asked for again, so that the page may be written.
            let _ = self.give_back(&mut back);
        }
        if self.reserve.is_released() {
            return self.write_in_turn(&mut back, &frames);
        }
        match self.write_together(&mut back, &frames) {
            Err(error) if error.is_full() => {
                self.reserve.release();
                self.write_in_turn(&mut back, &frames)
            }
            done => done,
        }
    }

    fn write_together(&self, back: &mut WriteBack, frames: &[Arc<Frame>]) -> Result<usize> {
        let synced = self.log.synced_seq();
        let mut copied = Vec::new();
        for frame in frames {
            copied.extend(self.copy(back, frame, synced));
        }
        self.write_copied(back, copied)
    }

    /// On a medium without space: one page after the other, whole, and its old slot and deltas are given back before
    /// the next. The reserve, which was given back, has the space for the first. It fails if not one page can be
    /// written.
    fn write_in_turn(&self, back: &mut WriteBack, frames: &[Arc<Frame>]) -> Result<usize> {
        self.give_back_durable(back)?;
        let (mut written, mut failed) = (0, None);
        for frame in frames {
            back.writes_whole = true;
            let done = self.write_together(back, std::slice::from_ref(frame));
            back.writes_whole = false;
            match done {
                Ok(pages) => written += pages,
                Err(other) if other.is_full() => failed = Some(other),
                Err(other) => return Err(other),
            }
            self.give_back_durable(back)?;
        }
        match failed {
            Some(error) if written == 0 => Err(error),
            _ => Ok(written),
        }
    }

    fn give_back_durable(&self, back: &mut WriteBack) -> Result<()> {
        self.disk.flush()?;
        self.settle(back);
        let _ = self.give_back(back);
        Ok(())
    }

    /// Copies a page, if it may be written.
    fn copy(&self, back: &mut WriteBack, frame: &Arc<Frame>, synced: u64) -> Option<Copied> {
        let mut state = frame.latch();
        let State::Ready(page) = &mut *state else { return None };
        if !page.dirty || page.lsn > synced || page.view().kind() == Kind::Free {
            return None;
        }
        let layout = &self.layout;
        let segments = page.changed.count();
        let bytes = segments * layout.segment_bytes;
        let growth = segments.saturating_sub(page.written) * layout.segment_bytes;
        let used = page.view().content();
        back.threshold.note(growth, used.0.len() + used.1.len());
        let is_short = segments <= layout.delta_segments_max() && bytes as f64 <= back.threshold.bytes();
        let fits = is_short && !back.writes_whole;
        let (write, kind) = match page.slot {
            Some(_) if fits => {
                let target = match page.delta {
                    Some(last) if !is_planted(Planted::OneDelta) => 1 - last,
                    _ => 0,
                };
                let block = layout.delta(frame.id, page.lsn, page.base, &page.changed, &page.bytes);
                page.written = segments;
                ((layout.delta_offset(frame.id, target), block, Cause::Delta), CopyKind::Delta(target))
            }
            _ => self.copy_image(frame.id, page),
        };
        page.dirty = false;
        lock(&self.ledger).copied(frame.id);
        drop(state);
        Some(Copied { frame: Arc::clone(frame), write, kind })
    }

    fn copy_image(&self, id: PageId, page: &mut Page) -> ((u64, IoBuffer, Cause), CopyKind) {
        let slot = page.slot.map_or(0, |slot| 1 - slot);
        let base = self.layout.seal(id, page.lsn, &mut page.bytes);
        let image = IoBuffer::copy_of(&page.bytes);
        let old = (page.slot, page.base, page.delta);
        (page.slot, page.base, page.delta) = (Some(slot), base, None);
        (page.changed, page.written) = (Segments::default(), 0);
        ((self.layout.slot_offset(id, slot), image, Cause::Image), CopyKind::Image { slot, old })
    }

    fn write_copied(&self, back: &mut WriteBack, copied: Vec<Copied>) -> Result<usize> {
        let mut writes = Vec::with_capacity(copied.len());
        let mut pages = Vec::with_capacity(copied.len());
        for Copied { frame, write, kind } in copied {
            writes.push(write);
            pages.push((frame, kind));
        }
        if writes.is_empty() {
            return Ok(0);
        }
        let written = self.disk.write(writes, self.options.write_concurrency, "pages");
        if let Err(error) = written {
            pages.iter().for_each(|(frame, kind)| self.copy_failed(frame, kind));
            return Err(error);
        }
        let batch = self.disk.completed_batch();
        for (frame, kind) in &pages {
            let unused = match kind {
                CopyKind::Delta(target) => {
                    let slot = frame.write(|page| {
                        page.delta = Some(*target);
                        page.slot
                    });
                    if let Ok(Some(slot)) = slot {
                        self.note(frame.id, slot, true);
                    }
                    back.delta_writes += 1;
                    None
                }
                CopyKind::Image { slot, .. } => {
                    self.note(frame.id, *slot, false);
                    lock(&self.new_pages).remove(&frame.id);
                    back.image_writes += 1;
                    Some(self.layout.unused(frame.id, *slot))
                }
            };
            if let Some(unused) = unused.filter(|_| is_planted(Planted::GivenBackEarly)) {
                self.disk.trim(&[unused], 1)?;
            }
            back.unflushed.insert(frame.id, Unflushed { page: frame.id, batch, unused });
        }
        Ok(pages.len())
    }

    /// The page stays dirty, and the medium has what it had, but for the block that was being written: that one holds
    /// no version that counts.
    fn copy_failed(&self, frame: &Frame, kind: &CopyKind) {
        let _ = frame.write(|page| {
            page.dirty = true;
            if let CopyKind::Image { old, .. } = kind {
                (page.slot, page.base, page.delta) = *old;
                page.changed = Segments::all(self.layout.segments());
            }
        });
        lock(&self.ledger).failed(frame.id);
    }

    /// Forgets pages whose writes a flush has made durable; gives their unused slots back when they are many.
    pub(crate) fn settle(&self, back: &mut WriteBack) {
        let durable = self.disk.durable_batches();
        let settled: Vec<PageId> =
            back.unflushed.values().filter(|written| written.batch <= durable).map(|written| written.page).collect();
        for page in settled {
            lock(&self.ledger).durable(page);
            if let Some(Unflushed { unused: Some(unused), .. }) = back.unflushed.remove(&page) {
                back.give_back.insert(page, unused);
            }
        }
        let synced = self.log.synced_seq();
        let freed: Vec<PageId> = back.freed.iter().filter(|freed| *freed.1 <= synced).map(|freed| *freed.0).collect();
        for page in freed {
            // A page that is being written is freed after its write.
            if back.unflushed.contains_key(&page) {
                continue;
            }
            back.freed.remove(&page);
            lock(&self.ledger).remove(page);
            back.give_back.insert(page, (self.layout.area(page), self.layout.area_bytes()));
        }
        if back.give_back.len() >= self.options.give_back_pages.max(1) {
            // Space that cannot be given back now is given back with the page's next whole image.
            let _ = self.give_back(back);
        }
    }

    /// Gives all unused slots back.
    pub(crate) fn give_back(&self, back: &mut WriteBack) -> Result<()> {
        let mut spans: Vec<(u64, u64)> = std::mem::take(&mut back.give_back).into_values().collect();
        spans.sort_unstable();
        if spans.is_empty() {
            return Ok(());
        }
        self.disk.trim(&spans, GIVE_BACK_DEPTH)
    }

    /// Writes new pages when many of them wait for their first write: a medium that has no space when they are written
    /// must not be left with more of them than the reserve holds.
    pub(crate) fn write_new_pages(&self) -> Result<()> {
        let waiting: Vec<PageId> = {
            let new = lock(&self.new_pages);
            if new.len() as u64 <= NEW_PAGES_MAX {
                return Ok(());
            }
            let mut waiting: Vec<PageId> = new.iter().copied().collect();
            waiting.sort_unstable();
            waiting
        };
        for pages in waiting.chunks(self.options.write_concurrency.max(1)) {
            let mut frames = Vec::with_capacity(pages.len());
            for &page in pages {
                let frame = self.get(page)?;
                // A page that was freed, or written and replaced, waits for nothing.
                if !frame.read(|page| page.dirty && page.slot.is_none() && page.view().kind() != Kind::Free)? {
                    lock(&self.new_pages).remove(&page);
                }
                frames.push(frame);
            }
            self.write_pages(&frames)?;
        }
        Ok(())
    }

    /// Writes every page that has changes up to `seq`, and flushes: afterwards the log is not needed up to there.
    pub(crate) fn write_older_than(&self, seq: u64) -> Result<()> {
        loop {
            if self.write_some_older_than(seq)? == 0 {
                break;
            }
        }
        self.disk.flush()?;
        self.settle(&mut lock(&self.write_back));
        Ok(())
    }

    /// The same for one batch, without the flush; returns how many pages were written.
    pub(crate) fn write_some_older_than(&self, seq: u64) -> Result<usize> {
        self.settle(&mut lock(&self.write_back));
        let pages = lock(&self.ledger).older_than(seq, self.options.write_concurrency.max(1));
        let mut frames = Vec::with_capacity(pages.len());
        self.prefetch(&pages);
        for page in pages {
            frames.push(self.get(page)?);
        }
        self.write_pages(&frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::superblock::Geometry;

    #[test]
    fn the_threshold_starts_at_a_kibibyte_and_follows_what_is_written() {
        let geometry = Geometry::new(1, &StoreOptions { log: ByteSize::mib(1), ..StoreOptions::default() }).unwrap();
        let layout = PageLayout::new(&geometry);
        let mut threshold = Threshold::new(&layout, None);
        assert!((threshold.bytes() - THRESHOLD_START).abs() < 1.0);
        (0..5000).for_each(|_| threshold.note(192, 5600));
        assert!((threshold.bytes() - 1466.0).abs() < 5.0, "√(2 · 5600 · 192)");
        (0..5000).for_each(|_| threshold.note(8192, 8192));
        assert_eq!(threshold.bytes(), (layout.delta_segments_max() * 64) as f64);
        assert_eq!(Threshold::new(&layout, Some(ByteSize(0))).bytes(), 0.0);
    }
}
