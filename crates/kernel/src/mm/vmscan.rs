//! The page cache's memory: folios, the active and the inactive list, reclaim and refaults.
//!
//! Linux 6.18:
//! - `mm/swap.c` `folio_mark_accessed`: a new folio goes to the inactive list; a first access marks it referenced, a
//!   second one moves it to the active list. `workingset_activation` counts that.
//! - `mm/vmscan.c` `shrink_inactive_list`, `shrink_active_list`, `inactive_is_low`, `folio_check_references`: reclaim
//!   takes from the tail of the inactive list; while that is shorter than the active list (times √(10 · GiB)), folios
//!   move from the active list's tail to its head. A batch is 32 pages (`SWAP_CLUSTER_MAX`). A folio that is dirty or
//!   under write-back is passed over. A mapped folio whose pages were used gets a second round.
//! - `mm/workingset.c` `workingset_eviction`, `workingset_refault`: an evicted folio leaves a shadow with the time of
//!   eviction, counted in evictions and activations; one that comes back sooner than the active list is long goes
//!   straight to the active list.
//!
//! - `mm/page_alloc.c`: which pages lie together in memory, and so are one segment of a request.
//!
//! Not here: the multi-generational LRU, which a distribution may switch on; swap; memory cgroups. Memory is what the
//! page cache has to itself.

use std::collections::BTreeMap;

use crate::fs::inode::Ino;
use crate::mm::xarray::{Entry, FolioId, Mark, XArray};

/// `SWAP_CLUSTER_MAX`
const BATCH: u64 = 32;
const NONE: u32 = u32::MAX;

/// The bits of a folio's `flags`.
pub(crate) mod flag {
    /// Holds the file's bytes.
    pub(crate) const UPTODATE: u8 = 1;
    /// Being read.
    pub(crate) const LOCKED: u8 = 2;
    pub(crate) const REFERENCED: u8 = 4;
    pub(crate) const ACTIVE: u8 = 8;
    /// The read-ahead marker.
    pub(crate) const READAHEAD: u8 = 16;
    /// Was active before it was evicted.
    pub(crate) const WORKINGSET: u8 = 32;
    /// Its read failed.
    pub(crate) const ERROR: u8 = 64;
}

/// Pages of one file that belong together: 1 << `order` of them.
#[derive(Debug)]
pub(crate) struct Folio {
    pub(crate) ino: Ino,
    /// First page in the file.
    pub(crate) index: u64,
    pub(crate) order: u8,
    pub(crate) flags: u8,
    /// Pages that are still being read.
    pub(crate) pending: u16,
    /// Where it is in memory: its first page.
    pub(crate) frame: u64,
    next: u32,
    previous: u32,
    /// The file's bytes, where files have any.
    pub(crate) data: Option<Box<[u8]>>,
}

impl Folio {
    #[inline]
    pub(crate) fn pages(&self) -> u64 {
        1 << self.order
    }

    #[inline]
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A list of folios, most recent first.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
    pages: u64,
}

const EMPTY: List = List { head: NONE, tail: NONE, pages: 0 };

/// What page tables say of a file's pages.
#[derive(Debug, Default)]
pub(crate) struct Mapped {
    /// By page: whether it was used since it was last looked at.
    pub(crate) young: BTreeMap<u64, bool>,
}

/// The pages of one file.
#[derive(Debug, Default)]
pub(crate) struct Mapping {
    pub(crate) pages: XArray,
    pub(crate) mapped: Mapped,
}

/// `mm/page_alloc.c`, as far as it decides which pages lie together in memory: while there is memory that was never
/// used, pages are taken one after another; then those that became free last go first, as from the lists of a
/// processor.
#[derive(Debug, Default)]
struct Frames {
    next: u64,
    free: Vec<u64>,
}

impl Frames {
    fn take(&mut self, pages: u64, capacity: u64) -> u64 {
        if pages == 1
            && self.next >= capacity
            && let Some(frame) = self.free.pop()
        {
            return frame;
        }
        // A folio of several pages comes from compacted memory.
        self.next += pages;
        self.next - pages
    }

    fn give(&mut self, frame: u64, pages: u64, left: u64) {
        if left == 0 {
            // Nothing is in use: all is together again.
            (self.next, self.free) = (0, Vec::new());
        } else {
            self.free.extend((frame..frame + pages).rev());
        }
    }
}

/// All folios, and the two lists.
#[derive(Debug)]
pub(crate) struct PageCache {
    pub(crate) folios: Vec<Folio>,
    free: Vec<FolioId>,
    frames: Frames,
    pub(crate) mappings: BTreeMap<Ino, Mapping>,
    lists: [List; 2],
    /// `nonresident_age`: evictions and activations.
    age: u32,
    /// Pages of memory.
    capacity: u64,
    pages: u64,
    dirty: u64,
    writeback: u64,
    data: bool,
    pub(crate) evicted: u64,
    pub(crate) refaults: u64,
}

impl PageCache {
    pub(crate) fn new(capacity: u64, data: bool) -> Self {
        Self {
            folios: Vec::new(),
            free: Vec::new(),
            frames: Frames::default(),
            mappings: BTreeMap::new(),
            lists: [EMPTY; 2],
            age: 0,
            capacity,
            pages: 0,
            dirty: 0,
            writeback: 0,
            data,
            evicted: 0,
            refaults: 0,
        }
    }

    #[inline]
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    #[inline]
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    #[inline]
    pub(crate) fn dirty(&self) -> u64 {
        self.dirty
    }

    #[inline]
    pub(crate) fn under_writeback(&self) -> u64 {
        self.writeback
    }

    /// Pages on the active and on the inactive list.
    #[cfg(test)]
    pub(crate) fn list_pages(&self) -> (u64, u64) {
        (self.lists[1].pages, self.lists[0].pages)
    }

    #[inline]
    pub(crate) fn pages_of(&self, ino: Ino) -> Option<&XArray> {
        self.mappings.get(&ino).map(|mapping| &mapping.pages)
    }

    #[inline]
    pub(crate) fn find(&self, ino: Ino, index: u64) -> Option<FolioId> {
        self.pages_of(ino)?.folio(index)
    }

    #[inline]
    pub(crate) fn folio(&self, id: FolioId) -> &Folio {
        &self.folios[id as usize]
    }

    #[inline]
    pub(crate) fn folio_mut(&mut self, id: FolioId) -> &mut Folio {
        &mut self.folios[id as usize]
    }

    fn unlink(&mut self, id: FolioId) {
        let Folio { next, previous, flags, order, .. } = self.folios[id as usize];
        let list = usize::from(flags & flag::ACTIVE != 0);
        match previous {
            NONE => self.lists[list].head = next,
            before => self.folios[before as usize].next = next,
        }
        match next {
            NONE => self.lists[list].tail = previous,
            behind => self.folios[behind as usize].previous = previous,
        }
        self.lists[list].pages -= 1 << order;
    }

    fn link(&mut self, id: FolioId) {
        let list = usize::from(self.folios[id as usize].has(flag::ACTIVE));
        let head = self.lists[list].head;
        let folio = &mut self.folios[id as usize];
        (folio.previous, folio.next) = (NONE, head);
        self.lists[list].pages += 1 << folio.order;
        match head {
            NONE => self.lists[list].tail = id,
            head => self.folios[head as usize].previous = id,
        }
        self.lists[list].head = id;
    }

    /// `filemap_add_folio`: memory must have been made free before.
    pub(crate) fn add(&mut self, ino: Ino, index: u64, order: u8, flags: u8) -> FolioId {
        let frame = self.frames.take(1 << order, self.capacity);
        let data = self.data.then(|| vec![0; (crate::PAGE as usize) << order].into_boxed_slice());
        let folio = Folio { ino, index, order, flags, pending: 0, frame, next: NONE, previous: NONE, data };
        let id = match self.free.pop() {
            Some(id) => {
                self.folios[id as usize] = folio;
                id
            }
            None => {
                self.folios.push(folio);
                (self.folios.len() - 1) as FolioId
            }
        };
        let pages = &mut self.mappings.entry(ino).or_default().pages;
        let mut shadow = None;
        for index in index..index + (1 << order) {
            if let Entry::Shadow(age) = pages.replace(index, Entry::Folio(id)) {
                shadow = Some(age);
            }
        }
        if let Some(evicted_at) = shadow {
            self.refaults += 1;
            let distance = u64::from(self.age.wrapping_sub(evicted_at) & (u32::MAX >> 1));
            if distance <= self.lists[1].pages {
                self.folios[id as usize].flags |= flag::ACTIVE | flag::WORKINGSET;
                self.age = self.age.wrapping_add(1 << order);
            }
        }
        self.pages += 1 << order;
        self.link(id);
        id
    }

    /// `folio_mark_accessed`
    #[inline]
    pub(crate) fn mark_accessed(&mut self, id: FolioId) {
        let folio = &mut self.folios[id as usize];
        if !folio.has(flag::REFERENCED) {
            folio.flags |= flag::REFERENCED;
        } else if !folio.has(flag::ACTIVE) {
            self.unlink(id);
            let folio = &mut self.folios[id as usize];
            folio.flags = (folio.flags | flag::ACTIVE) & !flag::REFERENCED;
            self.age = self.age.wrapping_add(1 << folio.order);
            self.link(id);
        }
    }

    /// Whether none of a folio's pages is dirty or being written.
    #[inline]
    pub(crate) fn is_clean(&self, id: FolioId) -> bool {
        let folio = self.folio(id);
        let Some(pages) = self.pages_of(folio.ino) else { return true };
        let mut range = folio.index..folio.index + folio.pages();
        range.all(|index| !pages.is_marked(Mark::Dirty, index) && !pages.is_marked(Mark::Writeback, index))
    }

    /// Sets or takes away a page's mark.
    #[inline]
    pub(crate) fn mark(&mut self, ino: Ino, index: u64, mark: Mark, on: bool) {
        let Some(mapping) = self.mappings.get_mut(&ino) else { return };
        if mapping.pages.mark(mark, index, on) {
            let count = if mark == Mark::Dirty { &mut self.dirty } else { &mut self.writeback };
            *count = if on { *count + 1 } else { *count - 1 };
        }
    }

    /// `filemap_remove_folio`; its dirty pages are lost. Pages under write-back stay marked until that has ended.
    pub(crate) fn remove(&mut self, id: FolioId, evicted: bool) {
        self.unlink(id);
        let Folio { ino, index, order, frame, .. } = self.folios[id as usize];
        self.folios[id as usize].data = None;
        self.free.push(id);
        self.pages -= 1 << order;
        self.frames.give(frame, 1 << order, self.pages);
        let entry = if evicted { Entry::Shadow(self.age & (u32::MAX >> 1)) } else { Entry::Empty };
        for index in index..index + (1 << order) {
            self.mark(ino, index, Mark::Dirty, false);
            self.mark(ino, index, Mark::Writeback, false);
            if let Some(mapping) = self.mappings.get_mut(&ino) {
                mapping.pages.set(index, entry);
                mapping.mapped.young.remove(&index);
            }
        }
        if evicted {
            self.age = self.age.wrapping_add(1 << order);
            self.evicted += 1 << order;
        }
    }

    /// `inactive_is_low`
    fn inactive_is_low(&self) -> bool {
        let gib = (self.capacity * crate::PAGE) >> 30;
        let ratio = if gib > 0 { (10 * gib).isqrt() } else { 1 };
        self.lists[0].pages * ratio < self.lists[1].pages
    }

    /// `shrink_active_list`: a batch from the tail goes to the inactive list.
    fn shrink_active(&mut self) {
        let mut moved = 0;
        while moved < BATCH {
            let id = self.lists[1].tail;
            if id == NONE {
                return;
            }
            self.unlink(id);
            let folio = &mut self.folios[id as usize];
            folio.flags = folio.flags & !flag::ACTIVE | flag::WORKINGSET;
            moved += 1 << folio.order;
            self.link(id);
        }
    }

    /// `folio_check_references`: whether page tables used it, which gives it another round.
    fn was_used(&mut self, id: FolioId) -> bool {
        let Folio { ino, index, order, flags, .. } = self.folios[id as usize];
        let Some(mapping) = self.mappings.get_mut(&ino) else { return false };
        let mut used = 0;
        for (_, young) in mapping.mapped.young.range_mut(index..index + (1 << order)) {
            used += u32::from(std::mem::take(young));
        }
        if used == 0 {
            return false;
        }
        let activate = flags & flag::REFERENCED != 0 || used > 1;
        self.unlink(id);
        let folio = &mut self.folios[id as usize];
        folio.flags |= flag::REFERENCED | if activate { flag::ACTIVE } else { 0 };
        self.link(id);
        true
    }

    /// Makes `wanted` pages free; whether there is memory for them. Dirty folios, and those being read or written,
    /// stay.
    pub(crate) fn reclaim(&mut self, wanted: u64) -> bool {
        // Each folio is looked at twice at most: once young, once not.
        let mut looks = 2 * (self.folios.len() - self.free.len()) as u64 + 2 * BATCH;
        while self.pages.saturating_add(wanted) > self.capacity {
            if self.inactive_is_low() {
                self.shrink_active();
            }
            let id = self.lists[0].tail;
            if id == NONE {
                if self.lists[1].pages == 0 {
                    return false;
                }
                self.shrink_active();
                continue;
            }
            if looks == 0 {
                return false;
            }
            looks -= 1;
            let busy = self.folio(id).has(flag::LOCKED) || !self.is_clean(id);
            if busy {
                // Rotated, so that the ones behind it are reached.
                self.unlink(id);
                self.link(id);
            } else if !self.was_used(id) {
                self.remove(id, true);
            }
        }
        true
    }

    /// `drop_caches`: every folio that is clean and not mapped.
    pub(crate) fn drop_clean(&mut self) {
        let inodes: Vec<Ino> = self.mappings.keys().copied().collect();
        inodes.into_iter().for_each(|ino| self.invalidate(ino, 0, u64::MAX));
    }

    /// `invalidate_mapping_pages`: clean folios that lie whole in a range and are not mapped.
    pub(crate) fn invalidate(&mut self, ino: Ino, first: u64, end: u64) {
        let mut from = first;
        while let Some((index, id)) = self.pages_of(ino).and_then(|pages| pages.next_folio(from)) {
            if index >= end {
                break;
            }
            let folio = self.folio(id);
            let behind = folio.index + folio.pages();
            let inside = folio.index >= first && behind <= end;
            let mapped = self
                .mappings
                .get(&ino)
                .is_some_and(|mapping| mapping.mapped.young.range(folio.index..behind).next().is_some());
            if inside && !mapped && !folio.has(flag::LOCKED) && self.is_clean(id) {
                self.remove(id, false);
            }
            from = behind;
        }
    }

    /// Checks what must always hold.
    ///
    /// # Errors
    /// What does not.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut pages = 0;
        for (&ino, mapping) in &self.mappings {
            let mut from = 0;
            while let Some((index, id)) = mapping.pages.next_folio(from) {
                let folio = self.folio(id);
                if folio.ino != ino || index != folio.index {
                    return Err(format!("folio {id} of file {ino} is at page {index}, not at {}", folio.index));
                }
                pages += folio.pages();
                from = folio.index + folio.pages();
            }
        }
        let marked = |mark| self.mappings.values().map(|mapping| mapping.pages.marked(mark)).sum::<u64>();
        let lists = self.lists[0].pages + self.lists[1].pages;
        match (pages == self.pages, lists == pages, marked(Mark::Dirty) == self.dirty) {
            (true, true, true) if marked(Mark::Writeback) == self.writeback => Ok(()),
            _ => Err(format!(
                "{pages} pages are in files, {lists} on lists, {} counted; {} dirty counted, {} marked; {} under \
                 write-back counted, {} marked",
                self.pages,
                self.dirty,
                marked(Mark::Dirty),
                self.writeback,
                marked(Mark::Writeback)
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(capacity: u64) -> PageCache {
        PageCache::new(capacity, false)
    }

    fn read(cache: &mut PageCache, index: u64) -> bool {
        if let Some(id) = cache.find(1, index) {
            cache.mark_accessed(id);
            return true;
        }
        assert!(cache.reclaim(1));
        let id = cache.add(1, index, 0, flag::UPTODATE);
        cache.mark_accessed(id);
        false
    }

    #[test]
    fn pages_used_twice_survive_a_scan_through_a_larger_file() {
        let mut cache = cache(100);
        for index in (0..20).chain(0..20) {
            read(&mut cache, index);
        }
        assert_eq!(cache.list_pages().0, 20);
        for index in 1000..2000 {
            read(&mut cache, index);
        }
        assert!((0..20).all(|index| cache.find(1, index).is_some()));
        assert!(cache.pages() <= 100);
        cache.check().unwrap();
    }

    #[test]
    fn a_page_that_comes_back_soon_becomes_active() {
        let mut cache = cache(100);
        for index in (0..60).chain(0..60) {
            read(&mut cache, index);
        }
        for index in 100..141 {
            read(&mut cache, index);
        }
        assert!(cache.find(1, 100).is_none(), "one of the scan's was evicted");
        read(&mut cache, 100);
        assert_eq!(cache.refaults, 1);
        let id = cache.find(1, 100).unwrap();
        assert!(cache.folio(id).has(flag::ACTIVE));
    }

    #[test]
    fn dirty_pages_are_never_reclaimed() {
        let mut cache = cache(4);
        for index in 0..4 {
            cache.add(1, index, 0, flag::UPTODATE);
            cache.mark(1, index, Mark::Dirty, true);
        }
        assert!(!cache.reclaim(1));
        cache.mark(1, 2, Mark::Dirty, false);
        assert!(cache.reclaim(1));
        assert!(cache.find(1, 2).is_none());
        assert_eq!(cache.dirty(), 3);
        cache.check().unwrap();
    }
}
