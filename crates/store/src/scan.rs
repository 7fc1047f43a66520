//! Iteration over one state, in the order of sort keys.
//!
//! A scan copies a leaf or bucket at a time, and lays over it what the version store has of the leaf's range. It holds
//! no latch and no reference to a page: the next one is found by where the last one ended, so splits and merges
//! meanwhile do not matter.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::error::Result;
use crate::keyspace::KeyspaceInner;
use crate::pages::Item;
use crate::snapshot::SnapshotInner;
use crate::tree::Target;
use crate::value::Value;

/// Keys from `low` (inclusive) up to `high` (exclusive; `None`: all that follow).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub low: Vec<u8>,
    pub high: Option<Vec<u8>>,
}

/// The first key behind `key`.
fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

impl Span {
    pub(crate) fn of<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> Self {
        let low = match range.start_bound() {
            Bound::Included(key) => key.as_ref().to_vec(),
            Bound::Excluded(key) => behind(key.as_ref()),
            Bound::Unbounded => Vec::new(),
        };
        let high = match range.end_bound() {
            Bound::Included(key) => Some(behind(key.as_ref())),
            Bound::Excluded(key) => Some(key.as_ref().to_vec()),
            Bound::Unbounded => None,
        };
        Self { low, high }
    }

    pub(crate) fn of_prefix(prefix: &[u8]) -> Self {
        let last = prefix.iter().rposition(|&byte| byte != u8::MAX);
        let high = last.map(|last| {
            let mut high = prefix[..=last].to_vec();
            high[last] += 1;
            high
        });
        Self { low: prefix.to_vec(), high }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.high.as_ref().is_some_and(|high| *high <= self.low)
    }

    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let high = self.high.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        (Bound::Included(&self.low), high)
    }
}

type Entry = (Vec<u8>, Value);

/// Keys and values of a range, from both ends, in one state.
///
/// After an error the scan ends.
pub struct Scan(pub(crate) SortedScan);

impl Scan {
    pub(crate) fn new(snapshot: Arc<SnapshotInner>, keyspace: Arc<KeyspaceInner>, rest: Span) -> Self {
        Self(SortedScan::new(snapshot, keyspace, rest))
    }

    fn entry(&self, found: Result<Entry>) -> Result<Entry> {
        found.map(|(key, value)| (self.0.keyspace.index.key(key), value))
    }
}

impl Iterator for Scan {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.0.next()?;
        Some(self.entry(found))
    }
}

impl DoubleEndedIterator for Scan {
    fn next_back(&mut self) -> Option<Self::Item> {
        let found = self.0.next_back()?;
        Some(self.entry(found))
    }
}

impl std::iter::FusedIterator for Scan {}

/// Sort keys and values of a span.
pub(crate) struct SortedScan {
    snapshot: Arc<SnapshotInner>,
    keyspace: Arc<KeyspaceInner>,
    /// What was not fetched yet.
    rest: Span,
    front: VecDeque<Entry>,
    back: VecDeque<Entry>,
}

impl SortedScan {
    pub(crate) fn new(snapshot: Arc<SnapshotInner>, keyspace: Arc<KeyspaceInner>, rest: Span) -> Self {
        Self { snapshot, keyspace, rest, front: VecDeque::new(), back: VecDeque::new() }
    }

    /// The entries of the first or last leaf of what was not fetched yet.
    fn fetch(&mut self, is_front: bool) -> Result<VecDeque<Entry>> {
        let (span, entries) = self.snapshot.shared.versions.settled(|| self.read(is_front))?;
        if !is_front {
            self.rest.high = Some(span.low);
        } else if span.high == self.rest.high {
            self.rest = Span { low: Vec::new(), high: Some(Vec::new()) };
        } else {
            self.rest.low = span.high.unwrap_or_default();
        }
        Ok(entries)
    }

    /// The same, and which part of the rest the leaf has.
    fn read(&self, is_front: bool) -> Result<(Span, VecDeque<Entry>)> {
        let pages = &self.snapshot.shared.pages;
        let target = match is_front {
            true => Target::At(&self.rest.low),
            false => Target::Below(self.rest.high.as_deref()),
        };
        self.keyspace.exists()?;
        let leaf = self.keyspace.index.copy(pages, target)?.ok_or_else(|| self.keyspace.missing())?;
        // What is being dropped loses its keys one by one.
        self.keyspace.exists()?;
        let mut span = self.rest.clone();
        if is_front {
            span.high = match (leaf.high, span.high) {
                (Some(fence), Some(high)) => Some(fence.min(high)),
                (fence, high) => fence.or(high),
            };
        } else {
            span.low = leaf.low.max(span.low);
        }
        let records = leaf
            .records
            .into_iter()
            .filter(|(key, _)| *key >= span.low && span.high.as_ref().is_none_or(|high| key < high));
        let entries = self.overlay(records.collect(), &span)?;
        Ok((span, entries))
    }

    /// Replaces what was changed after the snapshot.
    fn overlay(&self, records: Vec<(Vec<u8>, Item)>, span: &Span) -> Result<VecDeque<Entry>> {
        let SnapshotInner { shared, seq } = &*self.snapshot;
        let number = self.keyspace.index.number();
        let replaced = shared.versions.range(number, span.bounds(), *seq)?;
        let mut replaced: BTreeMap<Vec<u8>, Option<Value>> = replaced.into_iter().collect();
        let mut entries = Vec::with_capacity(records.len() + replaced.len());
        for (key, item) in records {
            let value = match (replaced.remove(&key), item) {
                (Some(value), _) => value,
                (None, Item::Value(value)) => Some(value),
                // Whoever replaced it after the copy put it into the version store before.
                (None, Item::Reference(_)) => self.snapshot.get(&self.keyspace, &key)?,
            };
            entries.extend(value.map(|value| (key, value)));
        }
        let deleted = replaced.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let before = entries.len();
        entries.extend(deleted);
        if entries.len() > before {
            entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        }
        Ok(entries.into())
    }

    fn end(&mut self) {
        self.rest = Span { low: Vec::new(), high: Some(Vec::new()) };
        self.front.clear();
        self.back.clear();
    }
}

impl Iterator for SortedScan {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.front.pop_front() {
                return Some(Ok(entry));
            }
            if self.rest.is_empty() {
                return self.back.pop_front().map(Ok);
            }
            match self.fetch(true) {
                Ok(entries) => self.front = entries,
                Err(error) => {
                    self.end();
                    return Some(Err(error));
                }
            }
        }
    }
}

impl DoubleEndedIterator for SortedScan {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.back.pop_back() {
                return Some(Ok(entry));
            }
            if self.rest.is_empty() {
                return self.front.pop_back().map(Ok);
            }
            match self.fetch(false) {
                Ok(entries) => self.back = entries,
                Err(error) => {
                    self.end();
                    return Some(Err(error));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_first_key_that_does_not_start_with_it() {
        assert_eq!(Span::of_prefix(b"ab"), Span { low: b"ab".to_vec(), high: Some(b"ac".to_vec()) });
        assert_eq!(Span::of_prefix(b"a\xff\xff"), Span { low: b"a\xff\xff".to_vec(), high: Some(b"b".to_vec()) });
        assert_eq!(Span::of_prefix(b"\xff"), Span { low: b"\xff".to_vec(), high: None });
        assert_eq!(Span::of_prefix(b"").high, None);
    }

    #[test]
    fn bounds_of_every_kind_become_half_open() {
        let span = |low: &[u8], high: Option<&[u8]>| Span { low: low.to_vec(), high: high.map(<[u8]>::to_vec) };
        assert_eq!(Span::of::<&str>(&("a".."b")), span(b"a", Some(b"b")));
        assert_eq!(Span::of::<&str>(&("a"..="b")), span(b"a", Some(b"b\0")));
        assert_eq!(Span::of::<&str>(&(Bound::Excluded("a"), Bound::Unbounded)), span(b"a\0", None));
        assert!(Span::of::<&str>(&("b".."a")).is_empty() && Span::of::<&str>(&("a".."a")).is_empty());
    }
}
