//! What a batch does to a table: put, remove; splits and merges of buckets.
//!
//! Changes of several pages are ordered for readers (`mod.rs`): a record is in its new place before it goes from the
//! old one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustc_hash::FxHashSet;

use super::{
    Table, extent_buckets, extent_key, extents_for, head_of, of_side_value, parts, side_key, side_value, sort_key,
    span_of,
};
use crate::error::{Result, StoreError};
use crate::faults::{Planted, is_planted};
use crate::pages::group::Group;
use crate::pages::page::{Stored, inline_max};
use crate::pages::record::Change;
use crate::pages::table::{BucketBuilder, BucketRef, Counts, TableHead, record_bytes};
use crate::pages::{Frame, Item, PageId, Reference, Step};
use crate::tree::TreeId;
use crate::value::Value;

/// Most exceptions of a bucket: its counter has 16 bits.
const EXCEPTIONS_MAX: u64 = u16::MAX as u64;

/// What a batch has added to a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub keys: i64,
    pub bytes: i64,
}

impl std::ops::AddAssign for Counted {
    fn add_assign(&mut self, other: Self) {
        self.keys += other.keys;
        self.bytes += other.bytes;
    }
}

/// A record that was taken out of its page.
struct Taken {
    key: Vec<u8>,
    value: Vec<u8>,
    is_reference: bool,
}

impl Taken {
    fn new(key: &[u8], value: Stored<'_>) -> Self {
        Self { key: key.to_vec(), value: value.bytes().to_vec(), is_reference: value.is_overflow() }
    }

    fn of(key: &[u8], item: &Item) -> Self {
        let (value, is_reference) = match item {
            Item::Value(value) => (value.to_vec(), false),
            Item::Reference(reference) => (reference.encode().to_vec(), true),
        };
        Self { key: key.to_vec(), value, is_reference }
    }

    fn stored(&self) -> Stored<'_> {
        Stored::new(&self.value, self.is_reference)
    }

    fn bytes(&self) -> usize {
        record_bytes(self.key.len(), self.value.len())
    }
}

/// Where a key's record is, if it exists.
struct Found {
    frame: Arc<Frame>,
    exceptions: u64,
    record: Option<Taken>,
    /// It is in the side tree.
    is_exception: bool,
}

/// A bucket with its exceptions.
struct Whole {
    frame: Arc<Frame>,
    records: Vec<Taken>,
    exceptions: Vec<Taken>,
}

impl Group<'_> {
    /// A new table, with one bucket.
    pub(crate) fn create_table(&mut self, number: u32, side_number: u32) -> Result<TreeId> {
        let side = self.create_tree(side_number)?;
        let table = TreeId { number, root: self.allocate()? };
        let first = self.allocate_run(extent_buckets(0))?;
        self.put_aside(side, &extent_key(0), &first.to_le_bytes())?;
        self.create_bucket(first, &BucketBuilder::new(self.page_bytes(), number, 0).finish(0))?;
        let counts = Counts { buckets: 1, keys: 0, bytes: 0 };
        let head = TableHead { table: number, counts, side: (side.number, side.root) };
        let frame = self.create(table.root)?;
        self.change(&frame, Change::Format { front: &head.content(), back: &[] })?;
        Ok(table)
    }

    /// Puts a value; `old` gets the one before, before anything changes.
    pub(crate) fn put_in_table(
        &mut self,
        table: &Table,
        sort_key: &[u8],
        value: &[u8],
        old: &mut dyn FnMut(Option<Value>) -> Result<()>,
    ) -> Result<Counted> {
        let (_, key) = parts(sort_key);
        let found = self.find(table, sort_key)?;
        let chain = self.note_old(table, found.record.as_ref(), old)?;
        let reference = match key.len() + value.len() > inline_max(self.page_bytes()) {
            true => Some(self.write_chain(table.id.number, value)?.encode()),
            false => None,
        };
        let stored = reference.as_ref().map_or(Stored::Inline(value), |bytes| Stored::Overflow(bytes));
        let before = found.record.as_ref().map_or(0, Taken::bytes);
        let counted = Counted {
            keys: i64::from(found.record.is_none()),
            bytes: record_bytes(key.len(), stored.bytes().len()) as i64 - before as i64,
        };
        self.place(table, sort_key, stored, &found)?;
        chain.map_or(Ok(()), |chain| self.free_chain(table.id.number, chain))?;
        Ok(counted)
    }

    /// Removes a key; `old` gets its value, before anything changes.
    pub(crate) fn remove_from_table(
        &mut self,
        table: &Table,
        sort_key: &[u8],
        old: &mut dyn FnMut(Option<Value>) -> Result<()>,
    ) -> Result<Counted> {
        let found = self.find(table, sort_key)?;
        let Some(record) = &found.record else { return Ok(Counted::default()) };
        let chain = self.note_old(table, Some(record), old)?;
        let counted = Counted { keys: -1, bytes: -(record.bytes() as i64) };
        if found.is_exception {
            self.remove_aside(table.side, &side_key(sort_key))?;
            self.change(&found.frame, Change::Exceptions { count: found.exceptions.saturating_sub(1) })?;
        } else {
            self.change(&found.frame, Change::Remove { key: &record.key })?;
        }
        chain.map_or(Ok(()), |chain| self.free_chain(table.id.number, chain))?;
        Ok(counted)
    }

    /// Adds what a batch has changed to the head.
    pub(crate) fn count(&mut self, table: &Table, counted: Counted) -> Result<Counts> {
        let mut counts = head_of(self.pages, table.id)?.counts;
        if counted != Counted::default() {
            counts.keys = counts.keys.saturating_add_signed(counted.keys);
            counts.bytes = counts.bytes.saturating_add_signed(counted.bytes);
            let head = self.pages.cache.get(table.id.root)?;
            self.change(&head, Change::Counts(counts))?;
        }
        Ok(counts)
    }

    fn find(&self, table: &Table, sort_key: &[u8]) -> Result<Found> {
        let (hash, key) = parts(sort_key);
        let located = table.locate(hash);
        let (bucket, page) = located.ok_or_else(|| self.damaged(table.id.root, "it has no bucket for a key"))?;
        let frame = self.bucket(table, bucket, page)?;
        let (exceptions, record) = frame.read(|page| {
            let bucket = BucketRef(&page.bytes);
            (bucket.exceptions(), bucket.find(key).map(|record| Taken::new(key, record.value)))
        })?;
        if record.is_some() || exceptions == 0 {
            return Ok(Found { frame, exceptions, record, is_exception: false });
        }
        let aside = self.pages.get(table.side, &side_key(sort_key))?;
        let record = aside.map(|value| {
            let stored = of_side_value(&value).ok_or_else(|| table.damaged_side(self.pages))?;
            Ok(Taken::new(key, stored))
        });
        let record = record.transpose()?;
        Ok(Found { frame, exceptions, is_exception: record.is_some(), record })
    }

    fn bucket(&self, table: &Table, bucket: u64, page: PageId) -> Result<Arc<Frame>> {
        let frame = self.pages.cache.get(page)?;
        match frame.read(|page| BucketRef(&page.bytes).is(table.id.number, bucket))? {
            true => Ok(frame),
            false => Err(self.damaged(page, "it is not the bucket that it should be")),
        }
    }

    fn note_old(
        &self,
        table: &Table,
        record: Option<&Taken>,
        old: &mut dyn FnMut(Option<Value>) -> Result<()>,
    ) -> Result<Option<Reference>> {
        let Some(record) = record else { return old(None).map(|()| None) };
        match Item::of(record.stored()) {
            Item::Value(value) => old(Some(value)).map(|()| None),
            Item::Reference(reference) => {
                let value = self.pages.read_chain(table.id.number, reference)?;
                let lost = || self.damaged(reference.first, "it does not have the value that a key refers to");
                old(Some(value.ok_or_else(lost)?))?;
                Ok(Some(reference))
            }
        }
    }

    /// Puts a record into the bucket if it fits, otherwise into the side tree.
    fn place(&mut self, table: &Table, sort_key: &[u8], stored: Stored<'_>, found: &Found) -> Result<()> {
        let (_, key) = parts(sort_key);
        let (pages, frame) = (self.pages, &found.frame);
        let fits = frame.read(|page| BucketRef(&page.bytes).fits(page.bytes.len(), key, stored.bytes().len()))?;
        let side_key = side_key(sort_key);
        match (fits, found.is_exception) {
            (true, false) => self.change(frame, Change::Put { key, value: stored }),
            (true, true) => pages.restructure(|| {
                self.change(frame, Change::Put { key, value: stored })?;
                self.remove_aside(table.side, &side_key)?;
                self.change(frame, Change::Exceptions { count: found.exceptions.saturating_sub(1) })
            }),
            (false, true) => self.put_aside(table.side, &side_key, &side_value(stored)),
            (false, false) if found.exceptions >= EXCEPTIONS_MAX => {
                let capacity = flashwise_block::ByteSize(pages.cache.disk.capacity());
                Err(StoreError::Full { capacity })
            }
            (false, false) => pages.restructure(|| {
                self.put_aside(table.side, &side_key, &side_value(stored))?;
                self.change(frame, Change::Exceptions { count: found.exceptions + 1 })?;
                match &found.record {
                    Some(_) => self.change(frame, Change::Remove { key }),
                    None => Ok(()),
                }
            }),
        }
    }

    fn put_aside(&mut self, side: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(side, key, value, &mut |_| Ok(()))
    }

    fn remove_aside(&mut self, side: TreeId, key: &[u8]) -> Result<()> {
        match self.remove(side, key, &mut |_| Ok(()))? {
            true => Ok(()),
            false => Err(self.damaged(side.root, "a record that a bucket counts is missing below it")),
        }
    }

    // Growth.

    /// Splits the next bucket in turn: half of its records go to a new one.
    pub(crate) fn split_bucket(&mut self, table: &Arc<Table>) -> Result<()> {
        let pages = self.pages;
        pages.restructure(|| self.try_split_bucket(table))
    }

    fn try_split_bucket(&mut self, table: &Arc<Table>) -> Result<()> {
        let buckets = table.buckets();
        let no_bucket = || self.damaged(table.id.root, "it has no bucket that could be split");
        let level = buckets.checked_ilog2().ok_or_else(no_bucket)?;
        let from = buckets - (1 << level);
        let whole = self.whole(table, from)?;
        self.keep_size(table);
        let page = self.page_for(table, buckets)?;
        let seed = self.pages.cache.layout.seed;
        let goes = |key: &[u8]| parts(&sort_key(seed, key)).0 >> level & 1 == 1;
        let Whole { frame, records, exceptions } = whole;
        let moved: Vec<Vec<u8>> = records.iter().map(|record| record.key.clone()).filter(|key| goes(key)).collect();
        let before: Vec<Vec<u8>> = exceptions.iter().map(|record| record.key.clone()).collect();
        let had_exceptions = !before.is_empty();
        let (new, old): (Vec<Taken>, Vec<Taken>) =
            records.into_iter().chain(exceptions).partition(|record| goes(&record.key));
        let (new_content, new_aside) = self.fill(table, buckets, new);
        self.create_bucket(page, &new_content)?;
        table.set_buckets(buckets + 1);
        let mut counts = head_of(self.pages, table.id)?.counts;
        counts.buckets = buckets + 1;
        if !is_planted(Planted::BucketsNotLogged) {
            let head = self.pages.cache.get(table.id.root)?;
            self.change(&head, Change::Counts(counts))?;
        }
        if !had_exceptions {
            // Removing some records is a shorter log than the whole rest.
            return moved.iter().try_for_each(|key| self.change(&frame, Change::Remove { key }));
        }
        let (old_content, old_aside) = self.fill(table, from, old);
        self.change(&frame, Change::Format { front: &old_content, back: &[] })?;
        self.settle_exceptions(table, &before, new_aside.into_iter().chain(old_aside).collect())
    }

    /// A bucket's content of as many records as fit, and those that do not.
    fn fill(&self, table: &Table, bucket: u64, records: Vec<Taken>) -> (Vec<u8>, Vec<Taken>) {
        let mut builder = BucketBuilder::new(self.page_bytes(), table.id.number, bucket);
        let does_not_fit = |record: &Taken| !builder.push(&record.key, record.stored());
        let aside: Vec<Taken> = records.into_iter().filter(does_not_fit).collect();
        (builder.finish(aside.len() as u64), aside)
    }

    /// Makes the side tree hold these exceptions, and no others of `before`.
    fn settle_exceptions(&mut self, table: &Table, before: &[Vec<u8>], now: Vec<Taken>) -> Result<()> {
        let seed = self.pages.cache.layout.seed;
        let were: FxHashSet<&[u8]> = before.iter().map(Vec::as_slice).collect();
        let are: FxHashSet<&[u8]> = now.iter().map(|record| record.key.as_slice()).collect();
        for record in now.iter().filter(|record| !were.contains(record.key.as_slice())) {
            self.put_aside(table.side, &side_key(&sort_key(seed, &record.key)), &side_value(record.stored()))?;
        }
        for key in before.iter().filter(|key| !are.contains(key.as_slice())) {
            self.remove_aside(table.side, &side_key(&sort_key(seed, key)))?;
        }
        Ok(())
    }

    /// Merges the last bucket into the one that it was split from; whether there are two.
    pub(crate) fn merge_bucket(&mut self, table: &Arc<Table>) -> Result<bool> {
        let pages = self.pages;
        pages.restructure(|| self.try_merge_bucket(table))
    }

    fn try_merge_bucket(&mut self, table: &Arc<Table>) -> Result<bool> {
        let Some(last) = table.buckets().checked_sub(1).filter(|&last| last > 0) else { return Ok(false) };
        let into = last - (1 << last.ilog2());
        let (gone, kept) = (self.whole(table, last)?, self.whole(table, into)?);
        let before: Vec<Vec<u8>> =
            gone.exceptions.iter().chain(&kept.exceptions).map(|record| record.key.clone()).collect();
        let all = kept.records.into_iter().chain(gone.records).chain(kept.exceptions).chain(gone.exceptions);
        let (content, aside) = self.fill(table, into, all.collect());
        if aside.len() as u64 > EXCEPTIONS_MAX {
            return Ok(false);
        }
        self.keep_size(table);
        self.change(&kept.frame, Change::Format { front: &content, back: &[] })?;
        self.settle_exceptions(table, &before, aside)?;
        self.shrink_to(table, last, &gone.frame)?;
        Ok(true)
    }

    /// The table has one bucket less, whose page is freed.
    fn shrink_to(&mut self, table: &Arc<Table>, buckets: u64, gone: &Arc<Frame>) -> Result<()> {
        table.set_buckets(buckets);
        let mut counts = head_of(self.pages, table.id)?.counts;
        counts.buckets = buckets;
        let head = self.pages.cache.get(table.id.root)?;
        self.change(&head, Change::Counts(counts))?;
        self.release(gone)?;
        let mut extents = table.extents();
        while extents.len() > extents_for(buckets) {
            let Some(first) = Arc::make_mut(&mut extents).pop() else { break };
            self.remove_aside(table.side, &extent_key(extents.len()))?;
            self.free_run(first, extent_buckets(extents.len()))?;
        }
        table.set_size(buckets, extents);
        Ok(())
    }

    /// Frees the last bucket with its values, for a table that is being dropped; whether there was one.
    pub(crate) fn drop_bucket(&mut self, table: &Arc<Table>) -> Result<bool> {
        let Some(last) = table.buckets().checked_sub(1) else { return Ok(false) };
        let Whole { frame, records, exceptions } = self.whole(table, last)?;
        self.keep_size(table);
        let seed = self.pages.cache.layout.seed;
        for record in &exceptions {
            self.remove_aside(table.side, &side_key(&sort_key(seed, &record.key)))?;
        }
        for record in records.iter().chain(&exceptions) {
            if let Item::Reference(chain) = Item::of(record.stored()) {
                self.free_chain(table.id.number, chain)?;
            }
        }
        self.shrink_to(table, last, &frame)?;
        Ok(true)
    }

    /// Frees the head and the side tree of a table without buckets; `false` where the side tree has to be merged first.
    pub(crate) fn drop_table(&mut self, table: &Table) -> Result<bool> {
        if self.compact_at(table.side, b"")? {
            return Ok(false);
        }
        self.drop_root(table.side)?;
        let head = self.pages.cache.get(table.id.root)?;
        self.free(&head)?;
        Ok(true)
    }

    /// Moves an exception into its bucket if it fits; whether it did.
    pub(crate) fn absorb(&mut self, table: &Table, sort_key: &[u8]) -> Result<bool> {
        let found = self.find(table, sort_key)?;
        let Some(record) = found.record.as_ref().filter(|_| found.is_exception) else { return Ok(false) };
        let length = record.value.len();
        let fits = found.frame.read(|page| BucketRef(&page.bytes).fits(page.bytes.len(), &record.key, length))?;
        if fits {
            self.place(table, sort_key, record.stored(), &found)?;
        }
        Ok(fits)
    }

    /// A bucket's records, and its exceptions.
    fn whole(&self, table: &Table, bucket: u64) -> Result<Whole> {
        let missing = || self.damaged(table.id.root, "it has no page for a bucket");
        let page = table.page_of(bucket).ok_or_else(missing)?;
        let frame = self.bucket(table, bucket, page)?;
        let (records, count) = frame.read(|page| {
            let bucket = BucketRef(&page.bytes);
            let records: Vec<Taken> = bucket.records().map(|record| Taken::new(record.key, record.value)).collect();
            (records, bucket.exceptions())
        })?;
        let mut exceptions = Vec::new();
        if count > 0 {
            let (low, high) = span_of(bucket, table.buckets());
            let found = table.exceptions(self.pages, &low, high.as_deref())?;
            exceptions.extend(found.iter().map(|(sort_key, item)| Taken::of(parts(sort_key).1, item)));
        }
        if exceptions.len() as u64 != count {
            return Err(self.damaged(page, "the side tree does not have the exceptions that it counts"));
        }
        Ok(Whole { frame, records, exceptions })
    }

    /// How the table's size in memory is taken back.
    fn keep_size(&mut self, table: &Arc<Table>) {
        let (table, buckets, extents) = (Arc::clone(table), table.buckets(), table.extents());
        self.undo.steps.push(Step::Memory(Box::new(move || table.set_size(buckets, extents))));
    }

    /// The page for a new bucket; its extent is made if it is the first of it.
    fn page_for(&mut self, table: &Arc<Table>, bucket: u64) -> Result<PageId> {
        if let Some(page) = table.page_of(bucket) {
            return Ok(page);
        }
        let mut extents = table.extents();
        let first = self.allocate_run(extent_buckets(extents.len()))?;
        self.put_aside(table.side, &extent_key(extents.len()), &first.to_le_bytes())?;
        Arc::make_mut(&mut extents).push(first);
        table.set_size(table.buckets(), extents);
        let missing = || self.damaged(table.id.root, "it has no page for a bucket");
        table.page_of(bucket).ok_or_else(missing)
    }

    fn create_bucket(&mut self, page: PageId, content: &[u8]) -> Result<()> {
        self.reclaim(page);
        let frame = self.create(page)?;
        self.change(&frame, Change::Format { front: content, back: &[] })
    }
}

/// A table that could not grow tries again when its bytes have changed by this share.
const STUCK_SHARE: u64 = 16;

impl Table {
    /// Whether growth failed, and nothing much has changed since.
    pub(crate) fn is_stuck(&self, bytes: u64) -> bool {
        let at = self.stuck_at.load(Ordering::Relaxed);
        at > 0 && bytes < at + at / STUCK_SHARE && bytes > at - at / STUCK_SHARE
    }

    pub(crate) fn stuck(&self, bytes: u64) {
        self.stuck_at.store(bytes.max(1), Ordering::Relaxed);
    }
}
