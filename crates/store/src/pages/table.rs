//! The pages of a table in memory: its buckets, and its head.
//!
//! ```text
//!  0      32           56                                    end                 len − 16   len
//!  ┌──────┬────────────┬─────────────────────────────────────┬───────────────────┬──────────┐
//!  │ head │ page head  │ records, one behind the other       │ zeros             │ foot     │
//!  └──────┴────────────┴─────────────────────────────────────┴───────────────────┴──────────┘
//! ```
//!
//! A bucket is mostly empty, so its records are searched one by one, and nothing is sorted: a new record goes behind
//! the others, a value of the same length is replaced in its place. What follows the last record is zeros, which a
//! drive that compresses stores for nothing.
//!
//! Source: the page of KallaxDB (Chen et al., *KallaxDB: A Table-less Hash-based Key-Value Store on Storage Hardware
//! with Built-in Transparent Compression*, DaMoN 2021); counting exceptions in the page is ours.

use std::ops::Range;

use super::page::{BODY, FOOT, HEAD, Kind, OVERFLOW, PageFull, PageMut, REFERENCE, Stored};
use crate::bytes::{get_u16, get_u32, get_u64, put};

const COUNT: usize = HEAD + 2;
const TREE: usize = HEAD + 4;
const END: usize = HEAD + 8;
const EXCEPTIONS: usize = HEAD + 10;
const BUCKET: usize = HEAD + 16;
/// Length of the key and of the value (u16 each).
const RECORD_HEADER: usize = 4;

/// Bytes of a record.
pub(crate) const fn record_bytes(key: usize, value: usize) -> usize {
    RECORD_HEADER + key + value
}

/// The content of a bucket without records.
pub(crate) fn empty_bucket(table: u32, bucket: u64) -> Vec<u8> {
    let mut content = vec![0; BODY - HEAD];
    content[0] = Kind::Bucket as u8;
    put(&mut content, TREE - HEAD, &table.to_le_bytes());
    put(&mut content, END - HEAD, &(BODY as u16).to_le_bytes());
    put(&mut content, BUCKET - HEAD, &bucket.to_le_bytes());
    content
}

/// A bucket that is read.
#[derive(Clone, Copy)]
pub(crate) struct BucketRef<'a>(pub &'a [u8]);

/// A record of a bucket.
#[derive(Clone, Debug)]
pub(crate) struct BucketRecord<'a> {
    pub key: &'a [u8],
    pub value: Stored<'a>,
    /// Where it is in the page.
    place: Range<usize>,
}

impl<'a> BucketRef<'a> {
    /// Whether this is a certain bucket of a table.
    pub(crate) fn is(self, table: u32, bucket: u64) -> bool {
        self.0[HEAD] == Kind::Bucket as u8 && get_u32(self.0, TREE) == table && get_u64(self.0, BUCKET) == bucket
    }

    pub(crate) fn count(self) -> usize {
        usize::from(get_u16(self.0, COUNT))
    }

    /// Where the records end.
    pub(crate) fn end(self) -> usize {
        usize::from(get_u16(self.0, END))
    }

    /// Records of this bucket that are in the side tree.
    pub(crate) fn exceptions(self) -> u64 {
        u64::from(get_u16(self.0, EXCEPTIONS))
    }

    fn record(self, at: usize) -> Option<BucketRecord<'a>> {
        let key = usize::from(get_u16(self.0, at));
        let word = get_u16(self.0, at + 2);
        let value_at = at + RECORD_HEADER + key;
        let end = value_at + usize::from(word & !OVERFLOW);
        let value = Stored::new(self.0.get(value_at..end)?, word & OVERFLOW != 0);
        (end <= self.end()).then(|| BucketRecord { key: &self.0[at + RECORD_HEADER..value_at], value, place: at..end })
    }

    pub(crate) fn records(self) -> impl Iterator<Item = BucketRecord<'a>> {
        let mut at = BODY;
        std::iter::from_fn(move || {
            let record = (at < self.end()).then(|| self.record(at)).flatten()?;
            at = record.place.end;
            Some(record)
        })
    }

    pub(crate) fn find(self, key: &[u8]) -> Option<BucketRecord<'a>> {
        self.records().find(|record| record.key == key)
    }

    /// Whether a record has space, after its old value is gone.
    pub(crate) fn fits(self, page_bytes: usize, key: &[u8], value: usize) -> bool {
        let old = self.find(key).map_or(0, |old| old.place.len());
        self.end() - old + record_bytes(key.len(), value) <= page_bytes - FOOT
    }

    /// Whether the bucket is well-formed.
    pub(crate) fn check(self) -> Result<(), &'static str> {
        if !(BODY..=self.0.len() - FOOT).contains(&self.end()) {
            return Err("its records are out of bounds");
        }
        let (mut count, mut end) = (0, BODY);
        let mut keys = rustc_hash::FxHashSet::default();
        for record in self.records() {
            (count, end) = (count + 1, record.place.end);
            if record.value.is_overflow() && record.value.bytes().len() != REFERENCE {
                return Err("a reference is impossible");
            }
            if !keys.insert(record.key) {
                return Err("a key is there twice");
            }
        }
        if count != self.count() || end != self.end() {
            return Err("its records are impossible");
        }
        Ok(())
    }

    /// The content for a log record.
    pub(crate) fn content(self) -> &'a [u8] {
        &self.0[HEAD..self.end()]
    }
}

fn encode_record(key: &[u8], value: Stored<'_>) -> Vec<u8> {
    let mut record = Vec::with_capacity(record_bytes(key.len(), value.bytes().len()));
    let word = value.bytes().len() as u16 | if value.is_overflow() { OVERFLOW } else { 0 };
    record.extend_from_slice(&(key.len() as u16).to_le_bytes());
    record.extend_from_slice(&word.to_le_bytes());
    record.extend_from_slice(key);
    record.extend_from_slice(value.bytes());
    record
}

impl PageMut<'_> {
    fn set_bucket_word(&mut self, at: usize, value: usize) {
        self.set(at, &(value as u16).to_le_bytes());
    }

    /// Puts a record into a bucket.
    pub(crate) fn put_in_bucket(&mut self, key: &[u8], value: Stored<'_>) -> Result<(), PageFull> {
        let bucket = BucketRef(self.bytes);
        if !bucket.fits(self.bytes.len(), key, value.bytes().len()) {
            return Err(PageFull);
        }
        let record = encode_record(key, value);
        if let Some(old) = bucket.find(key).map(|old| old.place) {
            if old.len() == record.len() {
                self.set(old.start, &record);
                return Ok(());
            }
            self.remove_from_bucket(key);
        }
        let (end, count) = (BucketRef(self.bytes).end(), BucketRef(self.bytes).count());
        self.set(end, &record);
        self.set_bucket_word(COUNT, count + 1);
        self.set_bucket_word(END, end + record.len());
        Ok(())
    }

    /// Removes a record from a bucket; whether there was one. Those behind it move up.
    pub(crate) fn remove_from_bucket(&mut self, key: &[u8]) -> bool {
        let bucket = BucketRef(self.bytes);
        let (end, count) = (bucket.end(), bucket.count());
        let Some(place) = bucket.find(key).map(|record| record.place) else { return false };
        let mut rest = self.bytes[place.end..end].to_vec();
        rest.resize(end - place.start, 0);
        self.set(place.start, &rest);
        self.set_bucket_word(COUNT, count - 1);
        self.set_bucket_word(END, end - place.len());
        true
    }

    pub(crate) fn set_exceptions(&mut self, exceptions: u64) {
        self.set_bucket_word(EXCEPTIONS, exceptions as usize);
    }
}

/// Builds a bucket's content.
pub(crate) struct BucketBuilder {
    content: Vec<u8>,
    page_bytes: usize,
    count: u16,
}

impl BucketBuilder {
    pub(crate) fn new(page_bytes: usize, table: u32, bucket: u64) -> Self {
        Self { content: empty_bucket(table, bucket), page_bytes, count: 0 }
    }

    /// Adds a record; `false` where it does not fit.
    pub(crate) fn push(&mut self, key: &[u8], value: Stored<'_>) -> bool {
        let record = encode_record(key, value);
        let fits = HEAD + self.content.len() + record.len() <= self.page_bytes - FOOT;
        if fits {
            self.content.extend_from_slice(&record);
            self.count += 1;
        }
        fits
    }

    pub(crate) fn finish(mut self, exceptions: u64) -> Vec<u8> {
        let end = (HEAD + self.content.len()) as u16;
        put(&mut self.content, COUNT - HEAD, &self.count.to_le_bytes());
        put(&mut self.content, END - HEAD, &end.to_le_bytes());
        put(&mut self.content, EXCEPTIONS - HEAD, &(exceptions as u16).to_le_bytes());
        self.content
    }
}

/// How large a table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub buckets: u64,
    pub keys: u64,
    /// Bytes of all records, those in the side tree included.
    pub bytes: u64,
}

const BUCKETS: usize = BODY;
const SIDE_NUMBER: usize = BODY + 24;
const SIDE_ROOT: usize = BODY + 32;
pub(crate) const TABLE_END: usize = BODY + 40;

/// The head of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableHead {
    pub table: u32,
    pub counts: Counts,
    /// Number and root of the side tree.
    pub side: (u32, u64),
}

impl TableHead {
    pub(crate) fn of(page: &[u8]) -> Option<Self> {
        (page[HEAD] == Kind::Table as u8).then(|| Self {
            table: get_u32(page, TREE),
            counts: Counts {
                buckets: get_u64(page, BUCKETS),
                keys: get_u64(page, BUCKETS + 8),
                bytes: get_u64(page, BUCKETS + 16),
            },
            side: (get_u32(page, SIDE_NUMBER), get_u64(page, SIDE_ROOT)),
        })
    }

    pub(crate) fn content(&self) -> Vec<u8> {
        let mut content = vec![0; TABLE_END - HEAD];
        content[0] = Kind::Table as u8;
        put(&mut content, TREE - HEAD, &self.table.to_le_bytes());
        let Counts { buckets, keys, bytes } = self.counts;
        for (n, count) in [buckets, keys, bytes].into_iter().enumerate() {
            put(&mut content, BUCKETS + 8 * n - HEAD, &count.to_le_bytes());
        }
        put(&mut content, SIDE_NUMBER - HEAD, &self.side.0.to_le_bytes());
        put(&mut content, SIDE_ROOT - HEAD, &self.side.1.to_le_bytes());
        content
    }
}

impl PageMut<'_> {
    pub(crate) fn set_counts(&mut self, counts: Counts) {
        for (n, count) in [counts.buckets, counts.keys, counts.bytes].into_iter().enumerate() {
            self.set(BUCKETS + 8 * n, &count.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::pages::page::{PageRef, Segments};

    fn empty() -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        put(&mut bytes, HEAD, &empty_bucket(3, 77));
        bytes
    }

    #[test]
    fn a_bucket_knows_whose_it_is() {
        let bytes = empty();
        assert!(BucketRef(&bytes).is(3, 77) && !BucketRef(&bytes).is(3, 78) && !BucketRef(&bytes).is(4, 77));
        assert_eq!(PageRef(&bytes).check(), Ok(()));
    }

    #[test]
    fn a_head_is_read_back() {
        let counts = Counts { buckets: 9, keys: 1 << 40, bytes: 5 };
        let head = TableHead { table: 8, counts, side: (9, 1234) };
        let mut page = vec![0; 4096];
        put(&mut page, HEAD, &head.content());
        assert_eq!(TableHead::of(&page), Some(head));
        assert_eq!(TableHead::of(&empty()), None);
    }

    proptest! {
        /// A bucket is a map with little space, packed, with zeros behind; the changed segments are what differs.
        #[test]
        fn a_bucket_is_a_map_whose_free_space_is_zeros(
            operations in prop::collection::vec((0..40u8, 0..200usize, 0..4u8), 1..200),
        ) {
            let mut bytes = empty();
            let mut changed = Segments::default();
            let mut model = BTreeMap::new();
            for (n, (key, length, kind)) in operations.into_iter().enumerate() {
                let key = [b"k".as_slice(), &[key], &vec![7; usize::from(key) % 5]].concat();
                let value = vec![n as u8; length];
                let mut page = PageMut { bytes: &mut bytes, changed: &mut changed, segment_bytes: 64, undo: None };
                if kind == 0 {
                    prop_assert_eq!(page.remove_from_bucket(&key), model.remove(&key).is_some());
                } else if page.put_in_bucket(&key, Stored::Inline(&value)).is_ok() {
                    model.insert(key, value);
                } else {
                    let used: usize = model.iter().map(|(key, value)| record_bytes(key.len(), value.len())).sum();
                    prop_assert!(used + 4 + 7 + length > 4096 - FOOT - BODY);
                }
                let bucket = BucketRef(&bytes);
                prop_assert_eq!(bucket.check(), Ok(()));
                prop_assert!(bytes[bucket.end()..].iter().all(|&byte| byte == 0));
                let found: BTreeMap<_, _> =
                    bucket.records().map(|record| (record.key.to_vec(), record.value.bytes().to_vec())).collect();
                prop_assert_eq!(&found, &model);
            }
            let original = empty();
            for segment in 0..64 {
                let range = segment * 64..(segment + 1) * 64;
                prop_assert!(changed.contains(segment) || bytes[range.clone()] == original[range]);
            }
            let mut builder = BucketBuilder::new(4096, 3, 77);
            let all = BucketRef(&bytes).records().all(|record| builder.push(record.key, record.value));
            let mut built = vec![0; 4096];
            put(&mut built, HEAD, &builder.finish(0));
            prop_assert!(all && built == bytes);
        }

        /// No content makes a checked bucket go out of bounds.
        #[test]
        fn a_bucket_that_passes_its_check_can_be_read_whatever_it_holds(
            noise in prop::collection::vec((32..4096usize, any::<u8>()), 0..12), key in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let mut bytes = empty();
            let mut changed = Segments::default();
            let mut page = PageMut { bytes: &mut bytes, changed: &mut changed, segment_bytes: 64, undo: None };
            for n in 0..20u8 {
                let _ = page.put_in_bucket(&[b'a', n], Stored::Inline(&[n; 33]));
            }
            for (at, byte) in noise {
                bytes[at] = byte;
            }
            if PageRef(&bytes).kind() == Kind::Bucket && PageRef(&bytes).check().is_ok() {
                let bucket = BucketRef(&bytes);
                let _ = (bucket.find(&key).is_some(), bucket.fits(4096, &key, 100), bucket.content());
                let mut page = PageMut { bytes: &mut bytes, changed: &mut changed, segment_bytes: 64, undo: None };
                let _ = page.put_in_bucket(&key, Stored::Inline(b"x"));
                page.remove_from_bucket(&key);
            }
        }
    }
}
