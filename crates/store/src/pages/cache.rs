//! The page cache: frames found by page, loaded with what the log still has of them, replaced by CLOCK.
//!
//! The buffer pool of `flashwise-bufferpool` writes a page to *its* place; here a page has two slots and two deltas,
//! may not go out before its log, and starts with records of the log that were not applied before a crash. So the cache
//! is the store's own, and takes from there how a dirty victim takes the next ones with it (ACE).
//!
//! **Latches.** A frame's latch is held for one page's search or change, never for two pages and never during I/O, with
//! one exception: who loads a page holds its latch, and whoever wants the page waits for it. Replacement and write-back
//! only *try* the latch of a frame that they do not know to be ready.
//!
//! **Recovery.** Opening a store reads the log and applies nothing: a page gets its records when it is loaded. So the
//! time of a restart depends on the log alone (*instant recovery*, Graefe et al., 2016).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLockWriteGuard};

use rustc_hash::{FxHashMap, FxHashSet};

use super::frame::{Frame, Page, State};
use super::image::{PageId, PageLayout, Valid};
use super::ledger::Ledger;
use super::page::{Kind, PageMut};
use super::record::{Change, Record};
use super::undo::GroupUndo;
use super::write_back::WriteBack;
use crate::bytes::Cursor;
use crate::commit::CommitQueue;
use crate::error::{Result, StoreError};
use crate::log::{Group, Log};
use crate::medium::Disk;
use crate::options::StoreOptions;
use crate::reserve::Reserve;
use crate::superblock::Geometry;

/// Frames of one part of the cache; each part has a lock of its own.
const PART_FRAMES: usize = 1024;
const PARTS_MAX: usize = 16;
/// Fewest frames: a path from root to leaf, its siblings and a map, twice.
const FRAMES_MIN: usize = 16;

/// Frames beyond the bound that go with each one that is replaced, after a batch of more pages than the cache has.
const SHRINK_FRAMES: usize = 8;

/// A part in which nothing could be replaced grows by this share before it is tried again.
const STUCK_SHARE: usize = 8;

/// Bits that are known of a page.
const KNOWN: u8 = 1;
const SLOT_B: u8 = 2;
const FREE: u8 = 4;
const DELTAS: u8 = 8;

#[derive(Default)]
struct Part {
    frames: Vec<Arc<Frame>>,
    index: FxHashMap<PageId, usize>,
    hand: usize,
    /// In this batch nothing could be replaced, and nothing is tried before there are so many frames.
    stuck: (u64, usize),
}

/// Records of one group for one page.
struct Redo {
    seq: u64,
    group: Arc<Group>,
    /// Where each record starts in the group.
    starts: Vec<u32>,
    /// The page's LSN before the group, where the first record has one.
    before: Option<u64>,
}

/// What was decided for pages whose frame is not there.
#[derive(Default)]
struct Known {
    /// By page: which slot is valid, whether the page is free.
    table: Vec<u8>,
}

/// The pages of a store.
pub(crate) struct Cache {
    pub disk: Arc<Disk>,
    pub layout: PageLayout,
    pub log: Arc<Log>,
    pub queue: Arc<CommitQueue<GroupUndo>>,
    pub reserve: Reserve,
    pub ledger: Mutex<Ledger>,
    /// Pages that have never been written.
    pub new_pages: Mutex<FxHashSet<PageId>>,
    pub write_back: Mutex<WriteBack>,
    pub options: StoreOptions,
    /// Batches so far: each keeps its pages until it is in the log.
    batches: AtomicU64,
    parts: Vec<Mutex<Part>>,
    part_frames: usize,
    known: Mutex<Known>,
    pending: Mutex<FxHashMap<PageId, Vec<Redo>>>,
    pub loads: AtomicU64,
}

/// What a lookup found.
enum Found {
    Frame(Arc<Frame>),
    /// A new frame, in which the caller loads the page.
    Vacant,
    /// The part is full.
    NoSpace,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cache {
    pub(crate) fn new(
        disk: Arc<Disk>,
        log: Arc<Log>,
        queue: Arc<CommitQueue<GroupUndo>>,
        geometry: &Geometry,
        options: StoreOptions,
    ) -> Self {
        let (layout, reserve) = (PageLayout::new(geometry), Reserve::open(&disk, geometry));
        let frames = (options.cache.0 as usize / layout.page_bytes).max(FRAMES_MIN);
        let parts = (frames / PART_FRAMES).clamp(1, PARTS_MAX);
        let write_back = Mutex::new(WriteBack::new(&layout, &options));
        Self {
            disk,
            layout,
            log,
            queue,
            reserve,
            ledger: Mutex::default(),
            new_pages: Mutex::default(),
            write_back,
            options,
            batches: AtomicU64::new(0),
            parts: (0..parts).map(|_| Mutex::default()).collect(),
            part_frames: frames / parts,
            known: Mutex::default(),
            pending: Mutex::default(),
            loads: AtomicU64::new(0),
        }
    }

    /// Sorts the log's records by page; returns how many map pages exist by them. No page is read.
    pub(crate) fn recover(&self, groups: Vec<Group>, maps: u64) -> Result<u64> {
        let mut pending: FxHashMap<PageId, Vec<Redo>> = FxHashMap::default();
        let (mut maps, mut free) = (maps, FxHashSet::default());
        let map_bits = super::page::map_bits(self.layout.page_bytes);
        let pages_max = self.layout.pages_in(self.disk.capacity());
        for group in groups {
            let group = Arc::new(group);
            let mut cursor = Cursor(&group.records);
            while !cursor.0.is_empty() {
                let start = (group.records.len() - cursor.0.len()) as u32;
                let damaged = || StoreError::corrupt(format!("log group {}", group.seq), "a record is impossible");
                let record = Record::decode(&mut cursor, group.seq).ok_or_else(damaged)?;
                if record.page >= pages_max {
                    return Err(damaged());
                }
                if record.change.replaces() && record.page.is_multiple_of(map_bits) {
                    maps = maps.max(record.page / map_bits + 1);
                }
                let redo = pending.entry(record.page).or_default();
                if record.change.replaces() {
                    redo.clear();
                    free.remove(&record.page);
                }
                if record.change == Change::Free {
                    free.insert(record.page);
                }
                let before = (!record.change.replaces()).then_some(record.before);
                match redo.last_mut() {
                    Some(last) if last.seq == group.seq => last.starts.push(start),
                    _ => redo.push(Redo { seq: group.seq, group: Arc::clone(&group), starts: vec![start], before }),
                }
            }
        }
        for &page in &free {
            pending.remove(&page);
            self.note_free(page, true);
            lock(&self.write_back).freed(page, 0);
        }
        let mut ledger = lock(&self.ledger);
        for (page, redo) in &pending {
            if let Some(first) = redo.first() {
                ledger.changed(*page, first.seq);
            }
        }
        *lock(&self.pending) = pending;
        Ok(maps)
    }

    fn part(&self, page: PageId) -> &Mutex<Part> {
        // Neighbours in different parts; the multiplier is that of Fibonacci hashing.
        let hash = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        &self.parts[hash as usize % self.parts.len()]
    }

    fn look_up(&self, page: PageId, new: &Arc<Frame>, is_patient: bool) -> Found {
        let mut part = lock(self.part(page));
        if let Some(&at) = part.index.get(&page) {
            let frame = Arc::clone(&part.frames[at]);
            frame.touch();
            return Found::Frame(frame);
        }
        if is_patient && part.frames.len() >= self.part_frames {
            return Found::NoSpace;
        }
        let at = part.frames.len();
        part.frames.push(Arc::clone(new));
        part.index.insert(page, at);
        Found::Vacant
    }

    /// The page's frame if it is in the cache.
    pub(crate) fn cached(&self, page: PageId) -> Option<Arc<Frame>> {
        let part = lock(self.part(page));
        part.index.get(&page).map(|&at| Arc::clone(&part.frames[at]))
    }

    /// The page, from the cache or loaded.
    pub(crate) fn get(&self, page: PageId) -> Result<Arc<Frame>> {
        if let Some(frame) = self.cached(page) {
            frame.touch();
            return Ok(frame);
        }
        let frame = Frame::new(page, State::Loading);
        // Latched before anybody can find it.
        let state = frame.latch();
        if let Some(found) = self.place(page, &frame) {
            return Ok(found);
        }
        let loaded = self.load(page);
        let failed = loaded.as_ref().err().cloned();
        self.ready(page, state, loaded);
        failed.map_or(Ok(frame), Err)
    }

    /// A frame for a page whose content does not matter; the page is all zeros.
    pub(crate) fn create(&self, page: PageId) -> Arc<Frame> {
        let ready = || State::Ready(Page::new(self.layout.page_bytes, self.layout.segments()));
        let frame = Frame::new(page, ready());
        if let Some(found) = self.place(page, &frame) {
            return found;
        }
        lock(&self.pending).remove(&page);
        frame
    }

    /// Puts a frame into the cache, or returns the one that is there for its page.
    fn place(&self, page: PageId, frame: &Arc<Frame>) -> Option<Arc<Frame>> {
        let mut is_patient = true;
        loop {
            match self.look_up(page, frame, is_patient) {
                Found::Frame(found) => return Some(found),
                Found::Vacant => return None,
                // Where nothing can be replaced the part grows: a batch that is applied keeps its pages.
                Found::NoSpace => is_patient = self.replace(page),
            }
        }
    }

    /// Takes a frame out of the cache that holds nothing.
    fn forget(&self, page: PageId) {
        let mut part = lock(self.part(page));
        if let Some(at) = part.index.get(&page).copied() {
            part.take(at);
        }
    }

    /// A batch begins.
    pub(crate) fn begin_batch(&self) {
        self.batches.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes space in the part of a page; `false` if nothing can be replaced now.
    fn replace(&self, page: PageId) -> bool {
        for _ in 0..4 {
            let victims = {
                let mut part = lock(self.part(page));
                let batch = self.batches.load(Ordering::Relaxed);
                // A batch of more pages than the cache has would look at all of them for each further one.
                if part.stuck.0 == batch && part.frames.len() < part.stuck.1 {
                    return false;
                }
                match part.sweep(self.options.write_concurrency.max(1)) {
                    Sweep::Evicted => {
                        part.shrink(self.part_frames);
                        return true;
                    }
                    Sweep::Nothing => {
                        part.stuck = (batch, part.frames.len() + part.frames.len() / STUCK_SHARE + 1);
                        return false;
                    }
                    Sweep::Dirty(victims) => victims,
                }
            };
            // Reads go on where nothing can be written, on a full medium or after a failed flush: the log's limit
            // bounds the pages that stay dirty, and the next commit reports the error.
            if self.write_pages(&victims).unwrap_or(0) == 0 {
                break;
            }
        }
        lock(self.part(page)).evict_clean()
    }

    /// After a batch of more pages than the cache has: replaces pages until the cache is within its bound again, as far
    /// as they can be written.
    pub(crate) fn shrink(&self) {
        for part in &self.parts {
            loop {
                // The part is not locked while its pages are written.
                let victims = self.shrink_part(&mut lock(part));
                if !victims.is_some_and(|victims| self.write_pages(&victims).is_ok_and(|written| written > 0)) {
                    break;
                }
            }
        }
    }

    /// Evicts clean pages; the dirty ones that have to be written before it goes on.
    fn shrink_part(&self, part: &mut Part) -> Option<Vec<Arc<Frame>>> {
        // The batch that has kept its pages is over.
        part.stuck.1 = 0;
        while part.frames.len() > self.part_frames {
            match part.sweep(self.options.write_concurrency.max(1)) {
                Sweep::Evicted => {}
                Sweep::Nothing => return None,
                Sweep::Dirty(victims) => return Some(victims),
            }
        }
        None
    }

    /// Reads a page and applies what the log has of it.
    fn load(&self, id: PageId) -> Result<Page> {
        let known = self.known(id);
        if known & FREE != 0 {
            return Ok(Page::new(self.layout.page_bytes, self.layout.segments()));
        }
        if id >= self.layout.pages_in(self.disk.capacity()) {
            return Err(self.damaged(id, "it lies beyond the end of the store"));
        }
        self.loads.fetch_add(1, Ordering::Relaxed);
        let redo = lock(&self.pending).remove(&id);
        let loaded = self.read(id, known, redo.as_deref());
        if loaded.is_err()
            && let Some(redo) = redo
        {
            lock(&self.pending).insert(id, redo);
        }
        loaded
    }

    fn read(&self, id: PageId, known: u8, redo: Option<&[Redo]>) -> Result<Page> {
        let is_replaced = redo.and_then(|redo| redo.first()).is_some_and(|first| first.before.is_none());
        let mut page = if is_replaced {
            Page::new(self.layout.page_bytes, self.layout.segments())
        } else {
            let known = valid(known);
            let span = self.layout.span(id, known);
            let bytes = self.disk.read(&[span], 1, &format!("page {id}"))?;
            self.parse(id, &bytes[0], known, redo)?
        };
        if let Some(redo) = redo {
            self.redo(id, &mut page, redo)?;
            if !page.dirty {
                lock(&self.ledger).remove(id);
            }
        }
        Ok(page)
    }

    /// The page in the bytes of its area.
    fn parse(&self, id: PageId, bytes: &[u8], known: Valid, redo: Option<&[Redo]>) -> Result<Page> {
        let loaded = self.layout.load(id, bytes, known);
        let Some(state) = loaded.state else {
            let what = match (loaded.is_blank, loaded.claimed) {
                (true, _) => "it was never written, or its bytes were lost",
                (false, Some(_)) => "neither of its slots passes its checksum",
                (false, None) => "its slots hold something else",
            };
            return Err(self.damaged(id, what));
        };
        let covered = redo.and_then(|redo| redo.last()).map_or(0, |last| last.seq);
        if loaded.claimed.is_some_and(|claimed| claimed > state.lsn.max(covered)) {
            return Err(self.damaged(id, "its newest state fails its checksum, and the log does not have it"));
        }
        if known == Valid::Unknown {
            self.note(id, state.slot, state.delta.is_some());
        }
        Ok(Page::loaded(state))
    }

    /// Applies groups that the page does not have yet.
    fn redo(&self, id: PageId, page: &mut Page, redo: &[Redo]) -> Result<()> {
        let stored = page.lsn;
        for step in redo.iter().filter(|step| step.seq > stored) {
            if step.before.is_some_and(|before| before != page.lsn) {
                return Err(self.damaged(id, "it is older than what the log goes on from"));
            }
            page.lsn = step.seq;
            for &start in &step.starts {
                let records = step.group.records.get(start as usize..).unwrap_or_default();
                let record = Record::decode(&mut Cursor(records), step.seq);
                let segment_bytes = self.layout.segment_bytes;
                let mut target =
                    PageMut { bytes: &mut page.bytes, changed: &mut page.changed, segment_bytes, undo: None };
                let applied =
                    record.ok_or("a record is impossible").and_then(|record| record.change.apply(&mut target));
                applied.map_err(|what| self.damaged(id, what))?;
            }
            // Each record may be possible by itself, and what they leave not: an inner page without a child.
            page.view().check().map_err(|what| self.damaged(id, what))?;
            // A step that starts with a whole page needs no image.
            page.dirty = page.view().kind() != Kind::Free;
        }
        if page.view().kind() == Kind::Free {
            lock(&self.ledger).remove(id);
        }
        Ok(())
    }

    /// Damage of a page, named.
    pub(crate) fn damaged(&self, id: PageId, what: &str) -> StoreError {
        let place = format!("{}: page {id} (byte {})", self.disk.name(), self.layout.area(id));
        StoreError::corrupt(place, what)
    }

    fn set_known(&self, page: PageId, bits: u8) {
        let mut known = lock(&self.known);
        let at = page as usize;
        if known.table.len() <= at {
            known.table.resize((at + 1).next_multiple_of(1024), 0);
        }
        known.table[at] = bits;
    }

    /// Which slot of a page is valid and whether it has deltas, unless the page was freed meanwhile.
    pub(crate) fn note(&self, page: PageId, slot: u8, has_deltas: bool) {
        if self.known(page) & FREE == 0 {
            let slot = if slot == 1 { SLOT_B } else { 0 };
            self.set_known(page, KNOWN | slot | if has_deltas { DELTAS } else { 0 });
        }
    }

    /// A page is free, or not: readers that still look for it learn that from here.
    pub(crate) fn note_free(&self, page: PageId, is_free: bool) {
        self.set_known(page, if is_free { FREE } else { 0 });
    }

    /// Pages in the cache, and dirty ones among them.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let all = self.frames();
        let is_dirty = |frame: &&Arc<Frame>| frame.read(|page| page.dirty).unwrap_or(false);
        (all.len(), all.iter().filter(is_dirty).count())
    }

    /// All frames.
    pub(crate) fn frames(&self) -> Vec<Arc<Frame>> {
        self.parts.iter().flat_map(|part| lock(part).frames.clone()).collect()
    }

    /// Loads pages that are not in the cache, several at once; a failure is left to whoever wants the page.
    pub(crate) fn prefetch(&self, pages: &[PageId]) {
        let depth = self.options.read_concurrency.max(1);
        for pages in pages.chunks(depth) {
            self.prefetch_together(pages);
        }
    }

    fn prefetch_together(&self, pages: &[PageId]) {
        let pages_max = self.layout.pages_in(self.disk.capacity());
        let is_wanted = |page: &&PageId| **page < pages_max && self.cached(**page).is_none();
        let mut wanted: Vec<PageId> = pages.iter().filter(is_wanted).copied().collect();
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.len() < 2 {
            return;
        }
        let new = |page: PageId| (page, Frame::new(page, State::Loading));
        let reads: Vec<_> = wanted.into_iter().filter(|page| self.has_space(*page)).map(new).collect();
        self.load_together(&reads);
    }

    /// Memory for what is known of pages.
    pub(crate) fn known_bytes(&self) -> u64 {
        lock(&self.known).table.capacity() as u64
    }

    fn known(&self, page: PageId) -> u8 {
        lock(&self.known).table.get(page as usize).copied().unwrap_or(0)
    }

    fn has_space(&self, page: PageId) -> bool {
        lock(self.part(page)).frames.len() < self.part_frames || self.replace(page)
    }

    /// Reads the pages of new frames at once. Each frame is latched from before it can be found until it is ready; what
    /// is known of its page is asked from then on, when nobody else can load it, write it and replace it.
    fn load_together(&self, reads: &[(PageId, Arc<Frame>)]) {
        let mut latched = Vec::new();
        for (page, frame) in reads {
            let state = frame.latch();
            if let Found::Vacant = self.look_up(*page, frame, false) {
                latched.push((*page, state));
            }
        }
        let is_plain = |page: PageId| self.known(page) & FREE == 0 && !lock(&self.pending).contains_key(&page);
        let (plain, others): (Vec<_>, Vec<_>) = latched.into_iter().partition(|(page, _)| is_plain(*page));
        let known: Vec<_> = plain.iter().map(|(page, _)| valid(self.known(*page))).collect();
        let spans = plain.iter().zip(&known).map(|((page, _), known)| self.layout.span(*page, *known));
        let spans: Vec<_> = spans.collect();
        let read = self.disk.read(&spans, self.options.read_concurrency, "pages");
        self.loads.fetch_add(spans.len() as u64, Ordering::Relaxed);
        for (n, (page, state)) in plain.into_iter().enumerate() {
            let loaded = match &read {
                Ok(buffers) => self.parse(page, &buffers[n], known[n], None),
                Err(error) => Err(error.clone()),
            };
            self.ready(page, state, loaded);
        }
        for (page, state) in others {
            let loaded = self.load(page);
            self.ready(page, state, loaded);
        }
    }

    /// Ends the loading of a page.
    fn ready(&self, page: PageId, mut state: RwLockWriteGuard<'_, State>, loaded: Result<Page>) {
        let failed = loaded.is_err();
        *state = loaded.map_or_else(State::Failed, State::Ready);
        drop(state);
        if failed {
            self.forget(page);
        }
    }
}

/// What the bits mean for a read.
fn valid(known: u8) -> Valid {
    let slot = u8::from(known & SLOT_B != 0);
    match (known & KNOWN != 0, known & DELTAS != 0) {
        (false, _) => Valid::Unknown,
        (true, false) => Valid::Image(slot),
        (true, true) => Valid::Deltas(slot),
    }
}

enum Sweep {
    Evicted,
    Dirty(Vec<Arc<Frame>>),
    Nothing,
}

impl Part {
    fn take(&mut self, at: usize) {
        let gone = self.frames.swap_remove(at);
        self.index.remove(&gone.id);
        if let Some(moved) = self.frames.get(at) {
            self.index.insert(moved.id, at);
        }
    }

    /// Evicts some pages of a part that a batch has made too large.
    fn shrink(&mut self, bound: usize) {
        for _ in 0..SHRINK_FRAMES {
            if self.frames.len() < bound || !matches!(self.sweep(1), Sweep::Evicted) {
                break;
            }
        }
    }

    /// Evicts a clean page, however recently it was used.
    fn evict_clean(&mut self) -> bool {
        let is_clean = |frame: &Arc<Frame>| {
            Arc::strong_count(frame) == 1
                && matches!(frame.try_share().as_deref(), Some(State::Ready(page)) if !page.dirty)
        };
        let clean = self.frames.iter().position(is_clean);
        if let Some(at) = clean {
            self.take(at);
        }
        clean.is_some()
    }

    /// Goes once or twice around. The first victim that is clean goes; a dirty one takes the next dirty ones with it.
    fn sweep(&mut self, most: usize) -> Sweep {
        let mut dirty = Vec::new();
        let mut first = None;
        for _ in 0..2 * self.frames.len() {
            if self.hand >= self.frames.len() {
                self.hand = 0;
            }
            let Some(frame) = self.frames.get(self.hand) else { break };
            // New references are made under this part's lock only, so a count of one stays one.
            // Behind the first victim only further victims are looked for; the hand has not come there yet.
            let is_recent = if dirty.is_empty() { frame.take_recent() } else { frame.is_recent() };
            let is_victim = Arc::strong_count(frame) == 1 && !is_recent;
            let is_dirty = match frame.try_share().as_deref() {
                Some(State::Ready(page)) => Some(page.dirty),
                _ => None,
            };
            match is_dirty {
                Some(false) if is_victim && dirty.is_empty() => {
                    self.take(self.hand);
                    return Sweep::Evicted;
                }
                Some(true) if is_victim => {
                    first = first.or(Some(self.hand));
                    dirty.push(Arc::clone(frame));
                    if dirty.len() >= most {
                        break;
                    }
                }
                _ => {}
            }
            self.hand += 1;
        }
        self.hand = first.unwrap_or(self.hand);
        if dirty.is_empty() { Sweep::Nothing } else { Sweep::Dirty(dirty) }
    }
}
