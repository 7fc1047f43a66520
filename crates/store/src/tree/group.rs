//! What a batch does to a tree: put, remove, split, merge.
//!
//! Changes of several pages are ordered for readers: a split makes the right page before it cuts the left one; a merge
//! widens the left page before it frees the right one; a value's new pages are there before its key refers to them, and
//! the old ones are freed afterwards.

use std::sync::Arc;

use super::{CATALOG, PathStep, Target, TreeId};
use crate::error::{Result, StoreError};
use crate::pages::group::Group;
use crate::pages::page::{Builder, Kind, PageRef, Shape, Stored, inline_max, separator};
use crate::pages::record::{Change, cut};
use crate::pages::{Frame, Item, PageId, Pages, Reference};
use crate::value::Value;

/// A leaf or inner page that uses less than this share of its space looks for a neighbour to merge with.
const UNDERFULL_SHARE: usize = 4;
/// Two pages merge if the result leaves at least this share of the space free: the next insert must not split it again.
const MERGED_FREE_SHARE: usize = 8;
/// Splits that one put may cause: two levels for each level of the tallest tree, and some.
const SPLITS_MAX: u32 = 600;

impl Group<'_> {
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
            true => Some(self.write_chain(tree.number, value)?.encode()),
            false => None,
        };
        let stored = reference.as_ref().map_or(Stored::Inline(value), |bytes| Stored::Overflow(bytes));
        self.put_record(tree, key, stored, path)?;
        chain.map_or(Ok(()), |chain| self.free_chain(tree.number, chain))
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
            self.free_chain(tree.number, chain)?;
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
                let value = self.pages.read_chain(tree.number, reference)?;
                let lost = || self.damaged(reference.first, "it does not have the value that a key refers to");
                Some((value.ok_or_else(lost)?, Some(reference)))
            }
        })
    }

    fn builder(&self, shape: Shape<'_>) -> Result<Builder> {
        let too_long = || StoreError::Invalid("the fences of a page do not fit into it".to_owned());
        Builder::new(self.page_bytes(), shape).ok_or_else(too_long)
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
        let pages = self.pages;
        pages.restructure(|| self.try_split(tree, path, key))
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
            let pages = self.pages;
            if pages.restructure(|| self.merge_pair(tree, parent, left, right))? {
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
            let pages = self.pages;
            pages.restructure(|| self.format(&root, &image).and_then(|()| self.free(&child)))?;
            is_lowered = true;
        }
    }
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
    /// The leaf that follows a key's, as its low fence: where a walk over all leaves goes on.
    pub(crate) fn leaf_end(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let end = self.find(tree, Target::At(key), |page| page.high().map(<[u8]>::to_vec))?;
        Ok(end.flatten())
    }
}
