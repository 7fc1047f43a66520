//! The table-less hash: a key's page follows from its hash by arithmetic, over an address space that is mostly empty.
//!
//! ```text
//!   key ─▶ XXH3 ─▶ bucket (linear hashing) ─▶ extent ─▶ page ─┐
//!                                                            ├─▶ record, or an exception: side tree (B⁻-tree)
//!   batch ─▶ Group: put, remove, then some splits ─▶ pages/ ──┘
//! ```
//!
//! **Where.** A keyspace is a table of `N` buckets, each a page. With `2^l <= N < 2^(l+1)`, a key of hash `h` is in
//! bucket `h mod 2^(l+1)` if there is one, otherwise in `h mod 2^l`. Buckets are in extents of neighbouring pages, the
//! first of 4, then 4, 8, … up to 8192: one number of 8 bytes for 8192 buckets is all that is kept of where they are,
//! and nothing is kept of keys.
//!
//! **Mostly empty.** A commit that changes one record writes a page. A drive that compresses stores zeros for nothing,
//! so an update costs as much flash as the records that share its page: the fuller the pages, the dearer. Tables grow
//! so that a fifth of a bucket is used (`StoreOptions::bucket_fill`). An address space of 20 times the data is the
//! price.
//!
//! **Growth.** One bucket at a time: bucket `N − 2^l` gives the half of its records whose hash has bit `l` to bucket
//! `N`. The buckets are split in turn, whichever is full, so a bucket may overflow before its turn: what does not fit
//! is an *exception*, a record in the table's side tree. The bucket counts its exceptions, so that only a key of such a
//! bucket is looked for in two places. A split takes them back. Each commit splits as many buckets as its own bytes
//! need, at most twice as many, in groups of their own behind it: there is no moment at which a table is rehashed.
//!
//! **Order.** A key's *sort key* is its hash with the bits reversed, then the key. The keys of a bucket are neighbours
//! in that order whatever `N` is, as those of a leaf are. So the version store, snapshots, transactions, reading
//! everything (from both ends) and the side tree work by sort keys, and buckets that are split or merged meanwhile do
//! not matter. It is no order that a user could want: ranges are refused.
//!
//! **Readers during writes.** A reader takes `N`, reads the bucket, and looks whether something was moved meanwhile
//! (`Pages::rested`): if so, and the key was missing, it starts again. A key that is found counts: a split makes the
//! new bucket, then names it in `N`, then takes the records out of the old one, and a record goes into the side tree
//! before the bucket counts it, and the bucket counts it before it goes from the bucket.
//!
//! **Memory.** Per bucket: one byte of what the cache knows of its page (slot, deltas). Per 8192 buckets: 8 bytes.
//!
//! Source: KallaxDB (Chen et al., DaMoN 2021) for the idea; W. Litwin, *Linear Hashing*, VLDB 1980 for the growth.
//! Recovery by page LSN, exceptions that are counted, the sort key and the low fill are ours.

mod check;
mod group;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::bytes::get_u64;
use crate::error::{Result, StoreError};
use crate::pages::group::RUN_MAX;
use crate::pages::page::Stored;
use crate::pages::table::{BucketRef, Counts, TableHead};
use crate::pages::{Item, PageId, Pages};
use crate::tree::{LeafCopy, Target, TreeId};
use crate::value::Value;

pub(crate) use self::group::Counted;

/// Bytes of a sort key in front of the key.
pub(crate) const HASH_BYTES: usize = 8;
/// A key in the side tree has one byte more, which says what it is.
const SIDE_BYTES: usize = HASH_BYTES + 1;
const EXTENT: u8 = 0;
const EXCEPTION: u8 = 1;

/// Buckets of the first extent and of the longest ones, as powers of two.
const EXTENT_FIRST: u32 = 2;
const EXTENT_MAX: u32 = RUN_MAX.ilog2();

/// Longest key of a table.
pub(crate) const fn key_max(page_bytes: usize) -> usize {
    crate::pages::key_max(page_bytes) - SIDE_BYTES
}

/// Where a key sorts: its hash, bits reversed, and the key.
pub(crate) fn sort_key(seed: u64, key: &[u8]) -> Vec<u8> {
    let hash = crate::bytes::checksum(seed, key);
    [&hash.reverse_bits().to_be_bytes(), key].concat()
}

/// The hash and the key of a sort key.
fn parts(sort_key: &[u8]) -> (u64, &[u8]) {
    let (hash, key) = sort_key.split_at(HASH_BYTES.min(sort_key.len()));
    (place(hash).reverse_bits(), key)
}

/// The first eight bytes as a number; what is missing counts as zeros.
fn place(bytes: &[u8]) -> u64 {
    let mut word = [0; HASH_BYTES];
    let length = bytes.len().min(HASH_BYTES);
    word[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(word)
}

/// The bucket of a hash in a table of `buckets`, at least one.
fn bucket_of(hash: u64, buckets: u64) -> u64 {
    let level = buckets.ilog2();
    let bucket = hash & low_bits(level + 1);
    if bucket < buckets { bucket } else { hash & low_bits(level) }
}

const fn low_bits(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// How many low bits of their hash the keys of a bucket have in common.
fn depth_of(bucket: u64, buckets: u64) -> u32 {
    let level = buckets.ilog2();
    let is_split = bucket < buckets - (1 << level) || bucket >= 1 << level;
    level + u32::from(is_split)
}

/// The sort keys of a bucket: from, and up to.
fn span_of(bucket: u64, buckets: u64) -> (Vec<u8>, Option<Vec<u8>>) {
    let (depth, first) = (depth_of(bucket, buckets), bucket.reverse_bits());
    let high = if depth == 0 { None } else { first.checked_add(1 << (64 - depth)) };
    // The span of the first bucket has no lower end.
    let low = if first == 0 { Vec::new() } else { first.to_be_bytes().to_vec() };
    (low, high.map(|high| high.to_be_bytes().to_vec()))
}

/// The extent of a bucket, and the bucket's place in it.
fn extent_of(bucket: u64) -> (usize, u64) {
    if bucket < 1 << EXTENT_FIRST {
        return (0, bucket);
    }
    let level = bucket.ilog2();
    if level < EXTENT_MAX {
        return ((level - EXTENT_FIRST + 1) as usize, bucket - (1 << level));
    }
    let behind = bucket - (1 << EXTENT_MAX);
    let before = EXTENT_MAX - EXTENT_FIRST + 1;
    (before as usize + (behind >> EXTENT_MAX) as usize, behind & low_bits(EXTENT_MAX))
}

/// Buckets of an extent.
fn extent_buckets(extent: usize) -> u64 {
    let level = (extent as u64).saturating_sub(1) + u64::from(EXTENT_FIRST);
    1 << level.min(u64::from(EXTENT_MAX))
}

/// How many extents a number of buckets takes.
fn extents_for(buckets: u64) -> usize {
    buckets.checked_sub(1).map_or(0, |last| extent_of(last).0 + 1)
}

fn extent_key(extent: usize) -> Vec<u8> {
    [&[EXTENT], (extent as u32).to_be_bytes().as_slice()].concat()
}

/// Where a record or a bound is in the side tree.
fn side_key(sort_key: &[u8]) -> Vec<u8> {
    [&[EXCEPTION], sort_key].concat()
}

/// A record as the side tree has it.
fn side_value(value: Stored<'_>) -> Vec<u8> {
    [&[u8::from(value.is_overflow())], value.bytes()].concat()
}

fn of_side_value(bytes: &[u8]) -> Option<Stored<'_>> {
    let (kind, value) = bytes.split_first()?;
    let is_overflow = *kind == 1;
    let is_right = *kind <= 1 && (!is_overflow || value.len() == crate::pages::page::REFERENCE);
    is_right.then_some(Stored::new(value, is_overflow))
}

/// A table: how many buckets it has, and where they are. The keyspace's handles share it.
pub(crate) struct Table {
    pub id: TreeId,
    pub side: TreeId,
    buckets: AtomicU64,
    /// First page of each extent.
    extents: RwLock<Arc<Vec<PageId>>>,
    /// The bytes at which growth failed for want of space.
    pub stuck_at: AtomicU64,
}

/// What a look into a bucket found.
enum Look {
    Wrong,
    Missing { exceptions: u64 },
    Found(Item),
}

/// Looks at a bucket that rests that may go wrong; then its page is wrong.
const FAILED_LOOKS_MAX: u32 = 3;

impl Table {
    /// Reads a table's head and extents.
    pub(crate) fn open(pages: &Pages, id: TreeId) -> Result<Self> {
        let head = head_of(pages, id)?;
        let side = TreeId { number: head.side.0, root: head.side.1 };
        let mut extents = Vec::new();
        let mut low = vec![EXTENT];
        'leaves: loop {
            let leaf = pages.copy_leaf(side, Target::At(&low))?;
            let leaf = leaf.ok_or_else(|| pages.cache.damaged(id.root, "its side tree does not exist"))?;
            for (key, item) in leaf.records {
                if key.first() != Some(&EXTENT) {
                    break 'leaves;
                }
                let Item::Value(value) = item else { break 'leaves };
                let is_next = key == extent_key(extents.len()) && value.len() == 8;
                let page = get_u64(&value, 0);
                if !is_next || page >= pages.cache.layout.pages_in(pages.cache.disk.capacity()) {
                    return Err(pages.cache.damaged(id.root, "an extent of its buckets is impossible"));
                }
                extents.push(page);
            }
            match leaf.high {
                Some(high) => low = high,
                None => break,
            }
        }
        if extents.len() != extents_for(head.counts.buckets) {
            return Err(pages.cache.damaged(id.root, "its buckets do not fit its extents"));
        }
        let (buckets, extents) = (AtomicU64::new(head.counts.buckets), RwLock::new(Arc::new(extents)));
        Ok(Self { id, side, buckets, extents, stuck_at: AtomicU64::new(0) })
    }

    pub(crate) fn buckets(&self) -> u64 {
        self.buckets.load(Ordering::Acquire)
    }

    /// For the writer, and for whoever takes a group back.
    pub(crate) fn set_size(&self, buckets: u64, extents: Arc<Vec<PageId>>) {
        *self.extents.write().unwrap_or_else(PoisonError::into_inner) = extents;
        self.buckets.store(buckets, Ordering::Release);
    }

    fn set_buckets(&self, buckets: u64) {
        self.buckets.store(buckets, Ordering::Release);
    }

    pub(crate) fn extents(&self) -> Arc<Vec<PageId>> {
        Arc::clone(&self.extents.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The page of a bucket, if its extent exists.
    pub(crate) fn page_of(&self, bucket: u64) -> Option<PageId> {
        let (extent, place) = extent_of(bucket);
        let extents = self.extents.read().unwrap_or_else(PoisonError::into_inner);
        extents.get(extent).map(|first| first + place)
    }

    /// The bucket and the page of a hash; `None` for a table without buckets.
    fn locate(&self, hash: u64) -> Option<(u64, PageId)> {
        let buckets = self.buckets();
        let bucket = (buckets > 0).then(|| bucket_of(hash, buckets))?;
        Some((bucket, self.page_of(bucket)?))
    }

    /// A key's value in the newest state.
    pub(crate) fn get(&self, pages: &Pages, sort_key: &[u8]) -> Result<Option<Value>> {
        let (hash, key) = parts(sort_key);
        let (mut failed, mut last) = (0, None);
        loop {
            let before = pages.structure();
            let located = self.locate(hash);
            let look = match located {
                Some((bucket, page)) => self.look(pages, bucket, page, key)?,
                None => Look::Missing { exceptions: 0 },
            };
            let is_wrong = matches!(look, Look::Wrong);
            let found = match look {
                Look::Missing { exceptions: 1.. } => self.exception(pages, sort_key)?,
                Look::Found(item) => Some(item),
                Look::Missing { .. } | Look::Wrong => None,
            };
            match found {
                Some(Item::Value(value)) => return Ok(Some(value)),
                Some(Item::Reference(reference)) => {
                    if let Some(value) = pages.read_chain(self.id.number, reference)? {
                        return Ok(Some(value));
                    }
                    // The value was replaced meanwhile, or else the same reference stays.
                    if last.replace((reference, before)) == Some((reference, before)) && pages.rested(before) {
                        let what = "it does not have the value that a key refers to";
                        return Err(pages.cache.damaged(reference.first, what));
                    }
                }
                None if pages.rested(before) => match (is_wrong, located) {
                    (true, Some((_, page))) => {
                        failed += 1;
                        if failed >= FAILED_LOOKS_MAX {
                            return Err(pages.cache.damaged(page, "it is not the bucket that it should be"));
                        }
                    }
                    _ => return Ok(None),
                },
                None => {}
            }
            std::thread::yield_now();
        }
    }

    fn look(&self, pages: &Pages, bucket: u64, page: PageId, key: &[u8]) -> Result<Look> {
        pages.cache.get(page)?.read(|page| {
            let found = BucketRef(&page.bytes);
            match found.is(self.id.number, bucket) {
                false => Look::Wrong,
                true => match found.find(key) {
                    Some(record) => Look::Found(Item::of(record.value)),
                    None => Look::Missing { exceptions: found.exceptions() },
                },
            }
        })
    }

    /// A record in the side tree.
    fn exception(&self, pages: &Pages, sort_key: &[u8]) -> Result<Option<Item>> {
        let Some(value) = pages.get(self.side, &side_key(sort_key))? else { return Ok(None) };
        let stored = of_side_value(&value).ok_or_else(|| self.damaged_side(pages))?;
        Ok(Some(Item::of(stored)))
    }

    fn damaged_side(&self, pages: &Pages) -> StoreError {
        pages.cache.damaged(self.side.root, "a record below it is impossible")
    }

    /// Copies the bucket of a sort key, with its exceptions, sorted.
    pub(crate) fn copy_bucket(&self, pages: &Pages, target: Target<'_>) -> Result<Option<LeafCopy>> {
        let hash = match target {
            Target::At(low) => place(low),
            Target::Below(None) => u64::MAX,
            Target::Below(Some(high)) if high.len() > HASH_BYTES => place(high),
            Target::Below(Some(high)) => place(high).saturating_sub(1),
        };
        let hash = hash.reverse_bits();
        let mut failed = 0;
        loop {
            let before = pages.structure();
            let buckets = self.buckets();
            let Some((bucket, page)) = self.locate(hash) else {
                if pages.rested(before) {
                    return Ok(None);
                }
                std::thread::yield_now();
                continue;
            };
            let copied = self.copy(pages, bucket, buckets, page)?;
            if pages.rested(before) {
                match copied {
                    Some(copy) => return Ok(Some(copy)),
                    None => failed += 1,
                }
                if failed >= FAILED_LOOKS_MAX {
                    return Err(pages.cache.damaged(page, "it is not the bucket that it should be"));
                }
            }
            std::thread::yield_now();
        }
    }

    fn copy(&self, pages: &Pages, bucket: u64, buckets: u64, page: PageId) -> Result<Option<LeafCopy>> {
        let seed = pages.cache.layout.seed;
        let frame = pages.cache.get(page)?;
        let copied = frame.read(|page| {
            let found = BucketRef(&page.bytes);
            found.is(self.id.number, bucket).then(|| {
                let records = found.records().map(|record| (sort_key(seed, record.key), Item::of(record.value)));
                (records.collect::<Vec<_>>(), found.exceptions())
            })
        })?;
        let Some((mut records, exceptions)) = copied else { return Ok(None) };
        let (low, high) = span_of(bucket, buckets);
        if exceptions > 0 {
            records.extend(self.exceptions(pages, &low, high.as_deref())?);
        }
        records.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(Some(LeafCopy { records, low, high }))
    }

    /// The exceptions of a span of sort keys.
    fn exceptions(&self, pages: &Pages, low: &[u8], high: Option<&[u8]>) -> Result<Vec<(Vec<u8>, Item)>> {
        let mut found = Vec::new();
        let (mut from, end) = (side_key(low), high.map_or(vec![EXCEPTION + 1], side_key));
        loop {
            let Some(leaf) = pages.copy_leaf(self.side, Target::At(&from))? else { return Ok(found) };
            for (key, item) in leaf.records.into_iter().filter(|(key, _)| *key >= from && *key < end) {
                let value = match item {
                    Item::Value(value) => Some(value),
                    Item::Reference(_) => pages.get(self.side, &key)?,
                };
                // What is gone by now is a change that the caller notices.
                let Some(value) = value else { continue };
                let stored = of_side_value(&value).ok_or_else(|| self.damaged_side(pages))?;
                found.push((key[1..].to_vec(), Item::of(stored)));
            }
            match leaf.high {
                Some(high) if high < end => from = high,
                _ => return Ok(found),
            }
        }
    }

    /// Sort keys of exceptions from one on, up to `most`.
    pub(crate) fn exceptions_from(&self, pages: &Pages, from: &[u8], most: usize) -> Result<Vec<Vec<u8>>> {
        let (mut low, mut found) = (side_key(from), Vec::new());
        while found.len() < most {
            let Some(leaf) = pages.copy_leaf(self.side, Target::At(&low))? else { break };
            let keys = leaf.records.into_iter().map(|record| record.0).filter(|key| *key >= low);
            found.extend(keys.map(|key| key[1..].to_vec()));
            match leaf.high {
                Some(high) => low = high,
                None => break,
            }
        }
        found.truncate(most);
        Ok(found)
    }

    /// Loads the buckets of sort keys, several at once. Only a hint.
    pub(crate) fn prefetch<'a>(&self, pages: &Pages, sort_keys: impl Iterator<Item = &'a [u8]>) {
        let most = pages.cache.options.cache.0 as usize / pages.cache.layout.page_bytes / 4;
        let mut missing: Vec<PageId> = Vec::new();
        for sort_key in sort_keys {
            let page = self.locate(parts(sort_key).0).map(|located| located.1);
            let is_missing = |page: &PageId| missing.last() != Some(page) && pages.cache.cached(*page).is_none();
            missing.extend(page.filter(is_missing));
            if missing.len() >= most {
                break;
            }
        }
        if missing.len() > 1 {
            pages.cache.prefetch(&missing);
        }
    }

    /// How large the table is.
    pub(crate) fn counts(&self, pages: &Pages) -> Result<Counts> {
        Ok(head_of(pages, self.id)?.counts)
    }
}

fn head_of(pages: &Pages, id: TreeId) -> Result<TableHead> {
    let frame = pages.cache.get(id.root)?;
    let head = frame.read(|page| TableHead::of(&page.bytes))?;
    head.filter(|head| head.table == id.number)
        .ok_or_else(|| pages.cache.damaged(id.root, "it is not the table that it should be"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hash_has_one_bucket_and_a_split_moves_only_to_the_new_one() {
        for buckets in 1..200 {
            for hash in (0..2000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
                let (now, then) = (bucket_of(hash, buckets), bucket_of(hash, buckets + 1));
                assert!(now < buckets);
                let split = buckets - (1 << buckets.ilog2());
                assert!(now == then || (now == split && then == buckets));
            }
        }
    }

    #[test]
    fn the_keys_of_a_bucket_are_neighbours_by_sort_key() {
        for buckets in 1..70 {
            let mut spans: Vec<_> = (0..buckets).map(|bucket| (span_of(bucket, buckets), bucket)).collect();
            spans.sort_unstable();
            assert_eq!(spans[0].0.0, Vec::<u8>::new());
            assert_eq!(spans[spans.len() - 1].0.1, None);
            assert!(spans.windows(2).all(|pair| pair[0].0.1.as_ref() == Some(&pair[1].0.0)));
            for n in 0..500u64 {
                let key = n.to_be_bytes();
                let sort_key = sort_key(7, &key);
                let (hash, rest) = parts(&sort_key);
                assert_eq!(rest, key);
                let (low, high) = span_of(bucket_of(hash, buckets), buckets);
                assert!(sort_key >= low && high.is_none_or(|high| sort_key < high));
            }
        }
    }

    #[test]
    fn extents_follow_one_another() {
        let mut expected = (0, 0);
        for bucket in 0..100_000 {
            assert_eq!(extent_of(bucket), expected);
            expected.1 += 1;
            if expected.1 == extent_buckets(expected.0) {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!((extent_buckets(0), extent_buckets(1), extent_buckets(2)), (4, 4, 8));
        assert_eq!(extent_buckets(12), 8192);
        assert_eq!((extents_for(0), extents_for(4), extents_for(5)), (0, 1, 2));
    }
}
