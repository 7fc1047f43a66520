//! The B⁻-tree: a B+-tree whose pages have two fixed slots and two delta blocks each, with a redo log.
//!
//! ```text
//!   get, scan ─▶ descent (one latch at a time, fences) ─▶ pages/: Cache ─▶ frame
//!   batch ─▶ path ─▶ pages/: Group: change(page)
//! ```
//!
//! `mod.rs` has descent and reads, `group.rs` a batch's changes (put, remove, split, merge), `check.rs` reads and
//! compares everything. Pages, their cache and their way to the medium are in `pages/`.
//!
//! **Readers during writes.** There is one writer at a time. It changes one page at a time under that page's latch, so
//! a reader sees each page whole. It may come to a page by a reference that is out of date. A page that belongs to the
//! tree and whose fences contain the key is the right one however it was reached: the writer makes a new page before it
//! cuts the old one, and it copies a page's keys to a neighbour before it frees the page. A page that does not serve
//! the key sends the reader back to the root. Freed pages are known as such in memory, so no old image of one is read.
//! Levels fall on the way down, so no cycle of references can trap a reader.
//!
//! What a reader may see is decided above, by sequence numbers: a batch's old values are in the version store before
//! the first page changes.

mod check;
mod group;

use std::sync::Arc;

use crate::error::Result;
use crate::pages::page::{Kind, PageRef, Stored};
use crate::pages::{Frame, Item, PageId, Pages};
use crate::value::Value;

pub(crate) use self::check::Checker;

/// A tree: its number, which its pages have, and its root, which never moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TreeId {
    pub number: u32,
    pub root: PageId,
}

/// The tree of keyspaces.
pub(crate) const CATALOG: TreeId = TreeId { number: 0, root: 1 };

/// Which leaf is looked for.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    /// That of a key.
    At(&'a [u8]),
    /// That of the keys just below a bound, or of the last keys.
    Below(Option<&'a [u8]>),
}

impl Target<'_> {
    fn is_served(self, page: PageRef<'_>, tree: u32) -> bool {
        match self {
            Self::At(key) => page.serves(tree, key),
            Self::Below(bound) => page.serves_below(tree, bound),
        }
    }

    fn child(self, page: PageRef<'_>) -> usize {
        match self {
            Self::At(key) => page.child_index(key),
            Self::Below(bound) => page.child_index_below(bound),
        }
    }
}

/// Where a descent ended.
enum Step<R> {
    Wrong,
    Down(PageId, u8),
    Here(R),
}

/// A leaf's records, copied.
pub(crate) struct LeafCopy {
    pub records: Vec<(Vec<u8>, Item)>,
    pub low: Vec<u8>,
    pub high: Option<Vec<u8>>,
}

/// Descents of one lookup that may fail although the structure rests: then a page's references are wrong.
const FAILED_DESCENTS_MAX: u32 = 3;

impl Pages {
    /// Finds a leaf and reads it; `None` if the tree does not exist any more.
    fn find<R>(&self, tree: TreeId, target: Target<'_>, read: impl Fn(PageRef<'_>) -> R) -> Result<Option<R>> {
        let mut failed = 0;
        loop {
            let before = self.structure();
            match self.descend(tree, target, &read)? {
                Ok(found) => return Ok(Some(found)),
                Err(page) => {
                    let rests = self.rested(before);
                    if page == tree.root {
                        return Ok(None);
                    }
                    failed = if rests { failed + 1 } else { 0 };
                    if failed >= FAILED_DESCENTS_MAX {
                        return Err(self.cache.damaged(page, "another page refers to it wrongly"));
                    }
                    std::thread::yield_now();
                }
            }
        }
    }

    /// One descent; the page that does not serve the key, if there is one.
    fn descend<R>(
        &self,
        tree: TreeId,
        target: Target<'_>,
        read: &impl Fn(PageRef<'_>) -> R,
    ) -> Result<Result<R, PageId>> {
        let (mut id, mut level) = (tree.root, None);
        loop {
            let frame = self.cache.get(id)?;
            let step = frame.read(|page| {
                let page = page.view();
                if !target.is_served(page, tree.number) || level.is_some_and(|level| page.level() != level) {
                    return Step::Wrong;
                }
                match page.kind() {
                    Kind::Leaf => Step::Here(read(page)),
                    // It serves the key, so that it is an inner page.
                    _ => Step::Down(page.child(target.child(page)), page.level() - 1),
                }
            })?;
            match step {
                Step::Here(found) => return Ok(Ok(found)),
                Step::Wrong => return Ok(Err(id)),
                Step::Down(child, below) => (id, level) = (child, Some(below)),
            }
        }
    }

    /// A key's value in the newest state.
    pub(crate) fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Value>> {
        let mut last = None;
        loop {
            let structure = self.structure();
            let found = self.find(tree, Target::At(key), |page| {
                let index = page.find(key).ok()?;
                Some(Item::of(page.value(index)))
            })?;
            match found.flatten() {
                None => return Ok(None),
                Some(Item::Value(value)) => return Ok(Some(value)),
                Some(Item::Reference(reference)) => {
                    if let Some(value) = self.read_chain(tree.number, reference)? {
                        return Ok(Some(value));
                    }
                    // The value was replaced meanwhile, or else the same reference stays: one that was put back changes
                    // the structure.
                    if last.replace((reference, structure)) == Some((reference, structure)) {
                        return Err(self
                            .cache
                            .damaged(reference.first, "it does not have the value that a key refers to"));
                    }
                }
            }
        }
    }

    /// Copies a leaf; `None` if the tree does not exist any more.
    pub(crate) fn copy_leaf(&self, tree: TreeId, target: Target<'_>) -> Result<Option<LeafCopy>> {
        self.find(tree, target, |page| {
            let bytes: Arc<[u8]> = page.0.into();
            let item = |index: usize| match page.value(index) {
                Stored::Inline(_) => Item::Value(Value::part(Arc::clone(&bytes), page.value_range(index))),
                stored => Item::of(stored),
            };
            let records = (0..page.count()).map(|index| (page.key(index), item(index))).collect();
            LeafCopy { records, low: page.low().to_vec(), high: page.high().map(<[u8]>::to_vec) }
        })
    }

    /// Loads the leaves of keys, several at once, so that a batch does not wait for one after the other. Only a hint.
    pub(crate) fn prefetch<'a>(&self, keys: impl Iterator<Item = (TreeId, &'a [u8])>) {
        let most = self.cache.options.cache.0 as usize / self.cache.layout.page_bytes / 4;
        let mut missing: Vec<PageId> = Vec::new();
        for (tree, key) in keys {
            if let Some(page) = self.missing_leaf(tree, key)
                && missing.last() != Some(&page)
            {
                missing.push(page);
            }
            if missing.len() >= most {
                break;
            }
        }
        if missing.len() > 1 {
            self.cache.prefetch(&missing);
        }
    }

    /// The leaf of a key, if it is not in the cache while its parent is.
    fn missing_leaf(&self, tree: TreeId, key: &[u8]) -> Option<PageId> {
        let mut id = tree.root;
        loop {
            let Some(frame) = self.cache.cached(id) else { return Some(id) };
            let child = frame.read(|page| {
                let page = page.view();
                (page.kind() == Kind::Inner && page.serves(tree.number, key)).then(|| page.child(page.child_index(key)))
            });
            id = child.ok().flatten()?;
        }
    }
}

/// A frame and the index of the child that the path goes through.
type PathStep = (Arc<Frame>, usize);
