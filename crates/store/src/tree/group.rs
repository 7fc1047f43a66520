//! What a batch does to the pages: every change is a log record and the same change in memory, and can be taken back.
//!
//! Changes of several pages are ordered for readers: a split makes the right page before it cuts the left one; a merge
//! widens the left page before it frees the right one; a value's new pages are there before its key refers to them, and
//! the old ones are freed afterwards.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use flashwise_block::ByteSize;

use super::cache::lock;
use super::frame::{Frame, Page};
use super::image::PageId;
use super::overflow::Reference;
use super::page::{
    Builder, Chunk, Kind, PageMut, PageRef, Shape, Stored, empty_content, inline_max, map_bits, overflow_space,
    separator,
};
use super::record::{Change, Record, cut};
use super::undo::{GroupUndo, Step};
use super::{CATALOG, Item, Pages, PathStep, Target, TreeId};
use crate::error::{Result, StoreError};
use crate::value::Value;

/// A leaf or inner page that uses less than this share of its space looks for a neighbour to merge with.
const UNDERFULL_SHARE: usize = 4;
/// Two pages merge if the result leaves at least this share of the space free: the next insert must not split it again.
const MERGED_FREE_SHARE: usize = 8;
/// Splits that one put may cause: two levels for each level of the tallest tree, and some.
const SPLITS_MAX: u32 = 600;

/// What the writer knows of the pages in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Writer {
    /// Map pages.
    pub maps: u64,
    /// No page below this one is free.
    pub hint: PageId,
    /// Pages in use.
    pub pages: u64,
}

/// A batch that is being applied. Dropping it without [`Group::finish`] takes it back.
pub(crate) struct Group<'a> {
    pages: &'a Pages,
    writer: &'a mut Writer,
    seq: u64,
    records: Vec<u8>,
    records_max: u64,
    undo: GroupUndo,
    is_finished: bool,
}

impl<'a> Group<'a> {
    pub(crate) fn new(pages: &'a Pages, writer: &'a mut Writer, seq: u64) -> Self {
        let undo = GroupUndo { seq, steps: Vec::new(), pages: writer.pages, maps: writer.maps };
        let records_max = pages.cache.log.group_max() - crate::log::GROUP_HEADER as u64;
        Self { pages, writer, seq, records: Vec::new(), records_max, undo, is_finished: false }
    }

    /// The records for the log, and how the group is taken back.
    pub(crate) fn finish(mut self) -> (Vec<u8>, GroupUndo) {
        self.is_finished = true;
        (std::mem::take(&mut self.records), std::mem::take(&mut self.undo))
    }

    /// Pages 0 and 1 of a new store.
    pub(crate) fn create_store(&mut self) -> Result<()> {
        self.add_map()?;
        let root = self.allocate()?;
        debug_assert_eq!(root, CATALOG.root);
        self.format_root(CATALOG)
    }

    /// A new tree.
    pub(crate) fn create_tree(&mut self, number: u32) -> Result<TreeId> {
        let tree = TreeId { number, root: self.allocate()? };
        self.format_root(tree)?;
        Ok(tree)
    }

    fn format_root(&mut self, tree: TreeId) -> Result<()> {
        let shape = Shape { kind: Kind::Leaf, level: 0, tree: tree.number, low: b"", high: None };
        let image = self.builder(shape)?.finish();
        let frame = self.create(tree.root)?;
        self.format(&frame, &image)
    }

    /// Frees the root of a tree without keys.
    pub(crate) fn drop_root(&mut self, tree: TreeId) -> Result<()> {
        let frame = self.pages.cache.get(tree.root)?;
        let is_empty = frame.read(|page| page.view().kind() == Kind::Leaf && page.view().count() == 0)?;
        if !is_empty {
            return Err(self.damaged(tree.root, "it has keys, and no leaf has them"));
        }
        self.free(&frame)
    }

    /// Puts a value; `old` gets the one before, before anything changes.
    pub(crate) fn put(
        &mut self,
        tree: TreeId,
        key: &[u8],
        value: &[u8],
        old: &mut dyn FnMut(Option<Value>) -> Result<()>,
    ) -> Result<()> {
        let path = self.path(tree, key)?;
        let before = self.old_value(tree, &path, key)?;
        let chain = before.as_ref().and_then(|(_, reference)| *reference);
        old(before.map(|(value, _)| value))?;
        let reference = match key.len() + value.len() > inline_max(self.page_bytes()) {
            true => Some(self.write_chain(tree, value)?.encode()),
            false => None,
        };
        let stored = reference.as_ref().map_or(Stored::Inline(value), |bytes| Stored::Overflow(bytes));
        self.put_record(tree, key, stored, path)?;
        chain.map_or(Ok(()), |chain| self.free_chain(tree, chain))
    }

    /// Removes a key; `old` gets its value, before anything changes.
    pub(crate) fn remove(
        &mut self,
        tree: TreeId,
        key: &[u8],
        old: &mut dyn FnMut(Option<Value>) -> Result<()>,
    ) -> Result<bool> {
        let path = self.path(tree, key)?;
        let Some((value, chain)) = self.old_value(tree, &path, key)? else { return Ok(false) };
        old(Some(value))?;
        let leaf = Arc::clone(&path[path.len() - 1].0);
        self.change(&leaf, Change::Remove { key })?;
        if let Some(chain) = chain {
            self.free_chain(tree, chain)?;
        }
        self.merge(tree, &path)?;
        Ok(true)
    }

    /// Merges the leaf of a key, and underfull pages above it, with neighbours, as far as the result is not too full;
    /// whether anything was merged.
    pub(crate) fn compact_at(&mut self, tree: TreeId, key: &[u8]) -> Result<bool> {
        let path = self.path(tree, key)?;
        if self.merge_with_neighbour(tree, &path)? {
            return Ok(true);
        }
        self.merge(tree, &path)
    }

    fn page_bytes(&self) -> usize {
        self.pages.cache.layout.page_bytes
    }

    fn damaged(&self, page: PageId, what: &str) -> StoreError {
        self.pages.cache.damaged(page, what)
    }

    /// The frames from the root to the leaf of a key. Nobody else changes the structure, so no step can be wrong.
    fn path(&self, tree: TreeId, key: &[u8]) -> Result<Vec<PathStep>> {
        let mut path: Vec<PathStep> = Vec::new();
        let (mut id, mut level) = (tree.root, None);
        loop {
            let frame = self.pages.cache.get(id)?;
            let step = frame.read(|page| {
                let page = page.view();
                if !page.serves(tree.number, key) || level.is_some_and(|level| page.level() != level) {
                    return None;
                }
                let index = if page.kind() == Kind::Inner { page.child_index(key) } else { 0 };
                let child = (page.kind() == Kind::Inner).then(|| page.child(index));
                Some((index, child, page.level()))
            })?;
            let Some((index, child, own)) = step else {
                return Err(self.damaged(id, "another page refers to it wrongly"));
            };
            path.push((frame, index));
            match child {
                None => return Ok(path),
                Some(child) => (id, level) = (child, Some(own.wrapping_sub(1))),
            }
        }
    }

    /// A key's value before, and its chain.
    fn old_value(&self, tree: TreeId, path: &[PathStep], key: &[u8]) -> Result<Option<(Value, Option<Reference>)>> {
        let (leaf, _) = &path[path.len() - 1];
        let found = leaf.read(|page| {
            let page = page.view();
            page.find(key).ok().map(|index| Item::of(page.value(index)))
        })?;
        Ok(match found {
            None => None,
            Some(Item::Value(value)) => Some((value, None)),
            Some(Item::Reference(reference)) => {
                let value = self.pages.read_chain(tree, reference)?;
                let lost = || self.damaged(reference.first, "it does not have the value that a key refers to");
                Some((value.ok_or_else(lost)?, Some(reference)))
            }
        })
    }

    /// Changes a page: in the log, and in memory.
    fn change(&mut self, frame: &Arc<Frame>, change: Change<'_>) -> Result<()> {
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

    fn format(&mut self, frame: &Arc<Frame>, image: &[u8]) -> Result<()> {
        let (front, back) = PageRef(image).content();
        self.change(frame, Change::Format { front, back })
    }

    fn builder(&self, shape: Shape<'_>) -> Result<Builder> {
        let too_long = || StoreError::Invalid("the fences of a page do not fit into it".to_owned());
        Builder::new(self.page_bytes(), shape).ok_or_else(too_long)
    }

    // Allocation.

    /// Adds a map page; it is the first of the pages that it describes.
    fn add_map(&mut self) -> Result<()> {
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
    fn allocate(&mut self) -> Result<PageId> {
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
                self.undo.steps.push(Step::Allocated(id));
                lock(&self.pages.cache.write_back).not_freed(id);
                self.pages.cache.note_free(id, false);
                return Ok(id);
            }
            map += 1;
        }
    }

    /// The frame of a page that was just allocated, with nothing in it.
    fn create(&mut self, id: PageId) -> Result<Arc<Frame>> {
        let cache = &self.pages.cache;
        let new = || Page::new(cache.layout.page_bytes, cache.layout.segments());
        loop {
            let frame = cache.create(id)?;
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

    /// Frees a page.
    fn free(&mut self, frame: &Arc<Frame>) -> Result<()> {
        let (id, bits) = (frame.id, map_bits(self.page_bytes()));
        self.change(frame, Change::Free)?;
        frame.write(|page| page.dirty = false)?;
        let map = self.pages.cache.get(id / bits * bits)?;
        self.change(&map, Change::Bit { bit: id % bits, value: false })?;
        self.writer.hint = self.writer.hint.min(id);
        self.writer.pages = self.writer.pages.saturating_sub(1);
        self.pages.cache.note_free(id, true);
        lock(&self.pages.cache.write_back).freed(id, self.seq);
        self.undo.steps.push(Step::Freed(id));
        Ok(())
    }

    // Long values.

    fn write_chain(&mut self, tree: TreeId, value: &[u8]) -> Result<Reference> {
        let space = overflow_space(self.page_bytes());
        if value.len() as u64 > self.records_max {
            let (length, max) = (ByteSize(value.len() as u64), ByteSize(self.records_max));
            return Err(StoreError::BatchTooLarge { length, max });
        }
        let stamp = self.pages.stamp.fetch_add(1, Ordering::Relaxed);
        let ids = value.chunks(space).map(|_| self.allocate()).collect::<Result<Vec<_>>>()?;
        for (index, data) in value.chunks(space).enumerate() {
            let next = ids.get(index + 1).copied().unwrap_or(0);
            let content = Chunk { tree: tree.number, next, stamp, index: index as u32, data }.content();
            let frame = self.create(ids[index])?;
            self.change(&frame, Change::Format { front: &content, back: &[] })?;
        }
        Ok(Reference { length: value.len() as u64, first: ids.first().copied().unwrap_or(0), stamp })
    }

    fn free_chain(&mut self, tree: TreeId, chain: Reference) -> Result<()> {
        let mut frames = Vec::new();
        let is_whole = self.pages.walk_chain(tree, chain, |frame, _| frames.push(Arc::clone(frame)))?;
        if !is_whole {
            return Err(self.damaged(chain.first, "it does not have the value that a key refers to"));
        }
        frames.iter().try_for_each(|frame| self.free(frame))
    }

    // Inserts and splits.

    fn put_record(&mut self, tree: TreeId, key: &[u8], value: Stored<'_>, mut path: Vec<PathStep>) -> Result<()> {
        for _ in 0..SPLITS_MAX {
            let leaf = Arc::clone(&path[path.len() - 1].0);
            if leaf.read(|page| page.view().fits(key, value.bytes().len()))? {
                return self.change(&leaf, Change::Put { key, value });
            }
            self.split(tree, &path, key)?;
            path = self.path(tree, key)?;
        }
        Err(self.damaged(path[path.len() - 1].0.id, "splitting it makes no space"))
    }

    /// Splits the last page of a path, or the lowest page above it that must be split first. `key` is what comes next.
    fn split(&mut self, tree: TreeId, path: &[PathStep], key: &[u8]) -> Result<()> {
        self.pages.restructure();
        let done = self.try_split(tree, path, key);
        self.pages.restructure();
        done
    }

    fn try_split(&mut self, tree: TreeId, path: &[PathStep], key: &[u8]) -> Result<()> {
        let Some(((frame, _), above)) = path.split_last() else { return Ok(()) };
        let image = frame.read(|page| page.bytes.to_vec())?;
        let page = PageRef(&image);
        let mut halves = split_keys(page, key).into_iter().filter_map(|split_key| {
            let (left, right) = (cut(page, &split_key)?, right_of(page, &split_key)?);
            Some((split_key, left, right))
        });
        let cannot = || self.damaged(frame.id, "it cannot be split");
        let (split_key, left, right) = halves.next().ok_or_else(cannot)?;
        let Some((parent, _)) = above.last() else {
            return self.split_root(tree, frame, page, [(page.low(), left), (&split_key, right)]);
        };
        if !parent.read(|page| page.view().fits(&split_key, 8))? {
            return self.try_split(tree, above, key);
        }
        let id = self.allocate()?;
        let created = self.create(id)?;
        self.format(&created, &right)?;
        self.change(frame, Change::Cut { high: &split_key })?;
        self.change(parent, Change::Put { key: &split_key, value: Stored::Inline(&id.to_le_bytes()) })
    }

    /// The root stays where it is: its records move to two new pages below it.
    fn split_root(
        &mut self,
        tree: TreeId,
        root: &Arc<Frame>,
        page: PageRef<'_>,
        halves: [(&[u8], Vec<u8>); 2],
    ) -> Result<()> {
        let cannot = || self.damaged(root.id, "it cannot be split");
        let level = page.level().checked_add(1).ok_or_else(cannot)?;
        let shape = Shape { kind: Kind::Inner, level, tree: tree.number, low: page.low(), high: page.high() };
        let mut top = self.builder(shape)?;
        for (low, image) in halves {
            let id = self.allocate()?;
            let frame = self.create(id)?;
            self.format(&frame, &image)?;
            let pushed = top.push(low, Stored::Inline(&id.to_le_bytes()));
            pushed.ok_or_else(|| self.damaged(root.id, "it cannot be split"))?;
        }
        self.format(root, &top.finish())
    }

    // Merges.

    /// Merges pages from the leaf upwards while they are underfull; whether any was merged.
    fn merge(&mut self, tree: TreeId, path: &[PathStep]) -> Result<bool> {
        let mut is_merged = false;
        for depth in (1..path.len()).rev() {
            let is_underfull = path[depth].0.read(|page| {
                let page = page.view();
                page.used() < page.space() / UNDERFULL_SHARE
            })?;
            if !is_underfull {
                break;
            }
            // A page without neighbours below its parent gets some when the parent merges.
            is_merged |= self.merge_with_neighbour(tree, &path[..=depth])?;
        }
        Ok(self.lower_root(tree)? || is_merged)
    }

    /// Merges the last page of a path with its right or left neighbour below the same parent.
    fn merge_with_neighbour(&mut self, tree: TreeId, path: &[PathStep]) -> Result<bool> {
        let [.., (parent, _), (frame, _)] = path else { return Ok(false) };
        let own = frame.id;
        let neighbours = parent.read(|page| {
            let page = page.view();
            let children: Vec<PageId> = (0..page.count()).map(|index| page.child(index)).collect();
            let at = children.iter().position(|&child| child == own)?;
            let left = at.checked_sub(1).map(|left| (children[left], own));
            Some([children.get(at + 1).map(|&right| (own, right)), left])
        })?;
        let neighbours = neighbours.ok_or_else(|| self.damaged(own, "its parent does not refer to it"))?;
        for (left, right) in neighbours.into_iter().flatten() {
            self.pages.restructure();
            let merged = self.merge_pair(tree, parent, left, right);
            self.pages.restructure();
            if merged? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn merge_pair(&mut self, tree: TreeId, parent: &Arc<Frame>, left: PageId, right: PageId) -> Result<bool> {
        let (left, right) = (self.pages.cache.get(left)?, self.pages.cache.get(right)?);
        let (left_image, right_image) =
            (left.read(|page| page.bytes.to_vec())?, right.read(|page| page.bytes.to_vec())?);
        let (first, second) = (PageRef(&left_image), PageRef(&right_image));
        let belongs = |page: PageRef<'_>| page.tree() == tree.number && page.level() == first.level();
        let are_neighbours = first.high() == Some(second.low()) && first.kind() == second.kind();
        if !are_neighbours || !matches!(first.kind(), Kind::Leaf | Kind::Inner) || !belongs(first) || !belongs(second) {
            return Err(self.damaged(right.id, "its fences do not follow those of its neighbour"));
        }
        let shape = Shape {
            kind: first.kind(),
            level: first.level(),
            tree: first.tree(),
            low: first.low(),
            high: second.high(),
        };
        let Some(merged) = join(self.page_bytes(), shape, [first, second]) else { return Ok(false) };
        let separator = second.low().to_vec();
        self.format(&left, &merged)?;
        self.change(parent, Change::Remove { key: &separator })?;
        self.free(&right)?;
        Ok(true)
    }

    /// While the root has a single child, it takes the child's place; whether it had.
    fn lower_root(&mut self, tree: TreeId) -> Result<bool> {
        let mut is_lowered = false;
        loop {
            let root = self.pages.cache.get(tree.root)?;
            let only = root.read(|page| {
                let page = page.view();
                (page.kind() == Kind::Inner && page.count() == 1).then(|| page.child(0))
            })?;
            let Some(child) = only else { return Ok(is_lowered) };
            let child = self.pages.cache.get(child)?;
            let image = child.read(|page| page.bytes.to_vec())?;
            let page = PageRef(&image);
            let is_whole_range = page.low().is_empty() && page.high().is_none() && page.tree() == tree.number;
            if !is_whole_range || !matches!(page.kind(), Kind::Leaf | Kind::Inner) {
                return Err(self.damaged(child.id, "the root refers to it wrongly"));
            }
            self.pages.restructure();
            let lowered = self.format(&root, &image).and_then(|()| self.free(&child));
            self.pages.restructure();
            lowered?;
            is_lowered = true;
        }
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
    (writer.pages, writer.maps, writer.hint) = (undo.pages, undo.maps, 0);
    pages.restructure();
    undo.take_back(&pages.cache);
    pages.restructure();
}

/// Where a page may be split, best first: at the end where keys come in ascending order, then near the middle by bytes,
/// then anywhere. The first is not always possible: each half has one fence more.
fn split_keys(page: PageRef<'_>, key: &[u8]) -> Vec<Vec<u8>> {
    let count = page.count();
    let is_leaf = page.kind() == Kind::Leaf;
    let mut keys = Vec::new();
    if page.high().is_none() && count > 0 {
        let last = page.key(count - 1);
        match is_leaf {
            true if key > last.as_slice() => keys.push(separator(&last, key).to_vec()),
            false if key > last.as_slice() && count > 2 => keys.push(last),
            _ => {}
        }
    }
    let length = |index: usize| page.rest(index).len() + page.value(index).bytes().len() + 6;
    let total: usize = (0..count).map(length).sum();
    let mut before = 0;
    let mut places: Vec<(usize, usize)> = Vec::new();
    for index in 1..count {
        before += length(index - 1);
        places.push((total.abs_diff(2 * before), index));
    }
    places.sort_unstable();
    keys.extend(places.into_iter().map(|(_, index)| {
        let right = page.key(index);
        if is_leaf { separator(&page.key(index - 1), &right).to_vec() } else { right }
    }));
    keys
}

/// The page with the records from `low` on; `None` where they do not fit.
fn right_of(page: PageRef<'_>, low: &[u8]) -> Option<Vec<u8>> {
    let shape = Shape { kind: page.kind(), level: page.level(), tree: page.tree(), low, high: page.high() };
    let mut builder = Builder::new(page.0.len(), shape)?;
    for index in 0..page.count() {
        let key = page.key(index);
        if key.as_slice() >= low {
            builder.push(&key, page.value(index))?;
        }
    }
    let image = builder.finish();
    PageRef(&image).check().ok().map(|()| image)
}

/// One page of the records of two; `None` where it would be too full.
fn join(page_bytes: usize, shape: Shape<'_>, pages: [PageRef<'_>; 2]) -> Option<Vec<u8>> {
    let mut builder = Builder::new(page_bytes, shape)?;
    for page in pages {
        for index in 0..page.count() {
            builder.push(&page.key(index), page.value(index))?;
        }
    }
    let image = builder.finish();
    let merged = PageRef(&image);
    // An empty page always goes.
    let has_empty = pages.iter().any(|page| page.count() == 0);
    (has_empty || merged.free() >= merged.space() / MERGED_FREE_SHARE).then_some(image)
}

impl Pages {
    /// Counts the pages in use.
    pub(crate) fn count_pages(&self, maps: u64) -> Result<u64> {
        let bits = map_bits(self.cache.layout.page_bytes);
        let ids: Vec<PageId> = (0..maps).map(|map| map * bits).collect();
        self.cache.prefetch(&ids);
        let mut pages = 0;
        for id in ids {
            pages += self.cache.get(id)?.read(|page| page.view().set_bits())?;
        }
        Ok(pages)
    }

    /// The leaf that follows a key's, as its low fence: where a walk over all leaves goes on.
    pub(crate) fn leaf_end(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let end = self.find(tree, Target::At(key), |page| page.high().map(<[u8]>::to_vec))?;
        Ok(end.flatten())
    }
}
