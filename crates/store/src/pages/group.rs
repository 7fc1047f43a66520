//! A batch that is being applied: every change of a page is a log record and the same change in memory, and can be
//! taken back. What a batch does to a tree or a table is with them; here is what both do: change, allocate and free
//! pages, write and free long values.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use flashwise_block::ByteSize;

use super::Pages;
use super::cache::lock;
use super::frame::{Frame, Page};
use super::image::PageId;
use super::overflow::Reference;
use super::page::{Chunk, Kind, PageMut, PageRef, empty_content, map_bits, overflow_space};
use super::record::{Change, Record};
use super::undo::{GroupUndo, Step};
use crate::error::{Result, StoreError};

/// Pages of the longest run: less than the smallest map page has bits.
pub(crate) const RUN_MAX: u64 = 1 << 13;

/// What the writer knows of the pages in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Writer {
    /// Map pages.
    pub maps: u64,
    /// No page below this one is free.
    pub hint: PageId,
    /// No map page below this one has a run of `RUN_MAX` free pages.
    pub run_hint: u64,
    /// Pages in use.
    pub pages: u64,
}

/// A batch that is being applied. Dropping it without [`Group::finish`] takes it back.
pub(crate) struct Group<'a> {
    pub pages: &'a Pages,
    pub writer: &'a mut Writer,
    pub seq: u64,
    records: Vec<u8>,
    records_max: u64,
    pub undo: GroupUndo,
    is_finished: bool,
}

impl<'a> Group<'a> {
    pub(crate) fn new(pages: &'a Pages, writer: &'a mut Writer, seq: u64) -> Self {
        pages.cache.begin_batch();
        let undo = GroupUndo { seq, steps: Vec::new(), pages: writer.pages, maps: writer.maps };
        let records_max = pages.cache.log.group_max() - crate::log::GROUP_HEADER as u64;
        Self { pages, writer, seq, records: Vec::new(), records_max, undo, is_finished: false }
    }

    /// Bytes of its records, and how many they may be.
    pub(crate) fn log_bytes(&self) -> (u64, u64) {
        (self.records.len() as u64, self.records_max)
    }

    /// The records for the log, and how the group is taken back.
    pub(crate) fn finish(mut self) -> (Vec<u8>, GroupUndo) {
        self.is_finished = true;
        (std::mem::take(&mut self.records), std::mem::take(&mut self.undo))
    }

    pub(crate) fn page_bytes(&self) -> usize {
        self.pages.cache.layout.page_bytes
    }

    pub(crate) fn damaged(&self, page: PageId, what: &str) -> StoreError {
        self.pages.cache.damaged(page, what)
    }

    /// Changes a page: in the log, and in memory.
    pub(crate) fn change(&mut self, frame: &Arc<Frame>, change: Change<'_>) -> Result<()> {
        let (seq, segment_bytes) = (self.seq, self.pages.cache.layout.segment_bytes);
        let (records, steps) = (&mut self.records, &mut self.undo.steps);
        let ledger = &self.pages.cache.ledger;
        let applied = frame.write(|page| {
            Record { page: frame.id, before: page.lsn, change }.encode(seq, records);
            if page.lsn != seq {
                steps.push(Step::First { frame: Arc::clone(frame), lsn: page.lsn, dirty: page.dirty });
            }
            let mut old = Vec::new();
            let Page { bytes, changed, .. } = page;
            let applied = change.apply(&mut PageMut { bytes, changed, segment_bytes, undo: Some(&mut old) });
            steps.push(Step::Segments { frame: Arc::clone(frame), old });
            page.lsn = seq;
            if !page.dirty && change != Change::Free {
                page.dirty = true;
                lock(ledger).changed(frame.id, seq);
            }
            applied
        })?;
        applied.map_err(|what| self.damaged(frame.id, what))?;
        if self.records.len() as u64 > self.records_max {
            let (length, max) = (ByteSize(self.records.len() as u64), ByteSize(self.records_max));
            return Err(StoreError::BatchTooLarge { length, max });
        }
        Ok(())
    }

    pub(crate) fn format(&mut self, frame: &Arc<Frame>, image: &[u8]) -> Result<()> {
        let (front, back) = PageRef(image).content();
        self.change(frame, Change::Format { front, back })
    }

    /// Adds a map page; it is the first of the pages that it describes.
    pub(crate) fn add_map(&mut self) -> Result<()> {
        let id = self.writer.maps * map_bits(self.page_bytes());
        self.reach(id)?;
        let frame = self.create(id)?;
        self.change(&frame, Change::Format { front: &empty_content(Kind::Map), back: &[] })?;
        self.change(&frame, Change::Bit { bit: 0, value: true })?;
        self.writer.maps += 1;
        self.writer.pages += 1;
        Ok(())
    }

    /// Makes the medium long enough for a page.
    fn reach(&self, id: PageId) -> Result<()> {
        let cache = &self.pages.cache;
        let capacity = cache.disk.capacity();
        if id >= cache.layout.pages_in(capacity) {
            return Err(StoreError::Full { capacity: ByteSize(capacity) });
        }
        cache.disk.ensure(cache.layout.area(id + 1))
    }

    /// A page that was free; its bit is set.
    pub(crate) fn allocate(&mut self) -> Result<PageId> {
        let bits = map_bits(self.page_bytes());
        let mut map = self.writer.hint / bits;
        loop {
            if map >= self.writer.maps {
                self.add_map()?;
            }
            let frame = self.pages.cache.get(map * bits)?;
            let from = self.writer.hint.saturating_sub(map * bits) as usize;
            let found = frame.read(|page| match page.view().kind() {
                Kind::Map => Ok(page.view().clear_bit(from)),
                _ => Err("it is not the map that it should be"),
            })?;
            let found = found.map_err(|what| self.damaged(map * bits, what))?;
            if let Some(bit) = found.filter(|&bit| (bit as u64) < bits) {
                let id = map * bits + bit as u64;
                self.reach(id)?;
                self.change(&frame, Change::Bit { bit: bit as u64, value: true })?;
                self.writer.hint = id + 1;
                self.writer.pages += 1;
                self.reclaim(id);
                return Ok(id);
            }
            map += 1;
        }
    }

    /// The frame of a page that was just allocated, with nothing in it.
    pub(crate) fn create(&mut self, id: PageId) -> Result<Arc<Frame>> {
        let cache = &self.pages.cache;
        let new = || Page::new(cache.layout.page_bytes, cache.layout.segments());
        loop {
            let frame = cache.create(id);
            // A reader that still looked for the page may have failed to load it, and takes it out of the cache.
            if let Ok(old) = frame.write(|page| std::mem::replace(page, new())) {
                lock(&cache.new_pages).insert(id);
                let old = Box::new(Page { dirty: false, ..old });
                self.undo.steps.push(Step::Created { frame: Arc::clone(&frame), old });
                return Ok(frame);
            }
            std::thread::yield_now();
        }
    }

    /// A page whose bit is set is about to be created.
    pub(crate) fn reclaim(&mut self, id: PageId) {
        self.undo.steps.push(Step::Allocated(id));
        lock(&self.pages.cache.write_back).not_freed(id);
        self.pages.cache.note_free(id, false);
    }

    /// Nothing is in a page any more; its bit stays set.
    pub(crate) fn release(&mut self, frame: &Arc<Frame>) -> Result<()> {
        let id = frame.id;
        self.change(frame, Change::Free)?;
        frame.write(|page| page.dirty = false)?;
        self.pages.cache.note_free(id, true);
        lock(&self.pages.cache.write_back).freed(id, self.seq);
        self.undo.steps.push(Step::Freed(id));
        Ok(())
    }

    /// Frees a page.
    pub(crate) fn free(&mut self, frame: &Arc<Frame>) -> Result<()> {
        let (id, bits) = (frame.id, map_bits(self.page_bytes()));
        self.release(frame)?;
        let map = self.pages.cache.get(id / bits * bits)?;
        self.change(&map, Change::Bit { bit: id % bits, value: false })?;
        self.writer.hint = self.writer.hint.min(id);
        self.writer.pages = self.writer.pages.saturating_sub(1);
        Ok(())
    }

    /// Neighbouring pages that were free, up to `RUN_MAX` of them; their bits are set.
    pub(crate) fn allocate_run(&mut self, count: u64) -> Result<PageId> {
        let bits = map_bits(self.page_bytes());
        let mut map = if count == RUN_MAX { self.writer.run_hint } else { 0 };
        loop {
            if map >= self.writer.maps {
                self.add_map()?;
            }
            let frame = self.pages.cache.get(map * bits)?;
            let found = frame.read(|page| match page.view().kind() {
                Kind::Map => Ok(page.view().clear_run(count as usize)),
                _ => Err("it is not the map that it should be"),
            })?;
            let found = found.map_err(|what| self.damaged(map * bits, what))?;
            if let Some(from) = found {
                let (from, first) = (from as u64, map * bits + from as u64);
                self.reach(first + count - 1)?;
                self.change(&frame, Change::Run { from, count, value: true })?;
                self.writer.pages += count;
                if count == RUN_MAX {
                    self.writer.run_hint = map;
                }
                return Ok(first);
            }
            map += 1;
        }
    }

    /// Clears the bits of a run, whose pages were released or never used.
    pub(crate) fn free_run(&mut self, first: PageId, count: u64) -> Result<()> {
        let bits = map_bits(self.page_bytes());
        let map = self.pages.cache.get(first / bits * bits)?;
        self.change(&map, Change::Run { from: first % bits, count, value: false })?;
        self.writer.hint = self.writer.hint.min(first);
        self.writer.run_hint = self.writer.run_hint.min(first / bits);
        self.writer.pages = self.writer.pages.saturating_sub(count);
        Ok(())
    }

    pub(crate) fn write_chain(&mut self, owner: u32, value: &[u8]) -> Result<Reference> {
        let space = overflow_space(self.page_bytes());
        if value.len() as u64 > self.records_max {
            let (length, max) = (ByteSize(value.len() as u64), ByteSize(self.records_max));
            return Err(StoreError::BatchTooLarge { length, max });
        }
        let stamp = self.pages.stamp.fetch_add(1, Ordering::Relaxed);
        let ids = value.chunks(space).map(|_| self.allocate()).collect::<Result<Vec<_>>>()?;
        for (index, data) in value.chunks(space).enumerate() {
            let next = ids.get(index + 1).copied().unwrap_or(0);
            let content = Chunk { tree: owner, next, stamp, index: index as u32, data }.content();
            let frame = self.create(ids[index])?;
            self.change(&frame, Change::Format { front: &content, back: &[] })?;
        }
        Ok(Reference { length: value.len() as u64, first: ids.first().copied().unwrap_or(0), stamp })
    }

    pub(crate) fn free_chain(&mut self, owner: u32, chain: Reference) -> Result<()> {
        let mut frames = Vec::new();
        let is_whole = self.pages.walk_chain(owner, chain, |frame, _| frames.push(Arc::clone(frame)))?;
        if !is_whole {
            return Err(self.damaged(chain.first, "it does not have the value that a key refers to"));
        }
        frames.iter().try_for_each(|frame| self.free(frame))
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            take_back(self.pages, self.writer, std::mem::take(&mut self.undo));
        }
    }
}

/// Takes a group back. The writer's lock is held, and newer groups were taken back before.
pub(crate) fn take_back(pages: &Pages, writer: &mut Writer, undo: GroupUndo) {
    *writer = Writer { pages: undo.pages, maps: undo.maps, hint: 0, run_hint: 0 };
    pages.restructure(|| undo.take_back(&pages.cache));
}
