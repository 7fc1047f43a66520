//! Old values, for readers that must not see a batch yet: by key and by the batch that replaced them.
//!
//! A batch puts the old value of each of its keys here *before* it changes the first page. A reader of the state after
//! batch S looks into the tree first, and here afterwards: if a batch after S has replaced the key's value, the oldest
//! such entry has what the reader must see. If the tree's value was new, the entry was there before; if it was old, an
//! entry says the same.
//!
//! A batch that fails puts its pages back first, and its entries go afterwards. Whoever read a page in between must not
//! take its value for a committed one because the entry is gone: readers compare how many batches were taken back
//! before and after, and read again.
//!
//! Entries go when the batch is visible and no snapshot before it is open. Transactions use the same entries: a key
//! that a batch after their snapshot has replaced is a conflict.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flashwise_block::ByteSize;

use crate::error::{Result, StoreError};
use crate::value::Value;

/// A tree's number and a key in it.
pub(crate) type FullKey = (u32, Vec<u8>);

/// Bytes of an entry besides key and value.
const ENTRY_OVERHEAD: usize = 96;

#[derive(Default)]
struct State {
    /// By key: the batches that replaced its value, ascending, with the value before.
    replaced: BTreeMap<FullKey, Replaced>,
    /// Entries in the order of their batches.
    order: VecDeque<(u64, FullKey)>,
    bytes: usize,
    /// Open snapshots, by the last batch that they see.
    snapshots: BTreeMap<u64, usize>,
    /// Snapshots below this one have lost entries.
    floor: u64,
}

/// The version store.
pub(crate) struct Versions {
    state: Mutex<State>,
    entries: AtomicUsize,
    /// Batches that were taken back.
    taken_back: AtomicU64,
    limit: ByteSize,
}

/// The entries of one key. The oldest go first, the newest come last, and readers search by batch: a key that is
/// changed all the time while a snapshot is open has very many.
type Replaced = VecDeque<(u64, Option<Value>)>;

/// The oldest entry that a reader of the state after batch `seq` must see.
fn seen_at(replaced: &Replaced, seq: u64) -> Option<&Option<Value>> {
    replaced.get(replaced.partition_point(|entry| entry.0 <= seq)).map(|entry| &entry.1)
}

fn cost(key: &FullKey, value: Option<&Value>) -> usize {
    key.1.len() + value.map_or(0, |value| value.len()) + ENTRY_OVERHEAD
}

impl State {
    /// What a reader of the state after batch `seq` must see instead of the tree's value.
    fn at(&self, key: &FullKey, seq: u64) -> Option<&Option<Value>> {
        seen_at(self.replaced.get(key)?, seq)
    }

    fn remove_from(&mut self, seq: u64, key: &FullKey) {
        let Some(replaced) = self.replaced.get_mut(key) else { return };
        // Where it is: at one of the ends, where removal costs nothing.
        let at = replaced.partition_point(|entry| entry.0 < seq);
        if let Some((_, value)) = replaced.get(at).filter(|entry| entry.0 == seq) {
            self.bytes -= cost(key, value.as_ref());
            replaced.remove(at);
        }
        if replaced.is_empty() {
            self.replaced.remove(key);
        }
    }

    /// Removes the entries that no reader of a state after `least` or later needs.
    fn drop_up_to(&mut self, least: u64) {
        while self.order.front().is_some_and(|entry| entry.0 <= least) {
            if let Some((seq, key)) = self.order.pop_front() {
                self.remove_from(seq, &key);
            }
        }
    }
}

impl Versions {
    pub(crate) fn new(limit: ByteSize) -> Self {
        Self { state: Mutex::default(), entries: AtomicUsize::new(0), taken_back: AtomicU64::new(0), limit }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, state: &State) {
        self.entries.store(state.order.len(), Ordering::Release);
    }

    /// Batch `seq` is about to replace a value.
    pub(crate) fn replace(&self, seq: u64, key: FullKey, old: Option<Value>) {
        let mut state = self.state();
        state.bytes += cost(&key, old.as_ref());
        state.order.push_back((seq, key.clone()));
        state.replaced.entry(key).or_default().push_back((seq, old));
        self.count(&state);
    }

    /// Batch `seq`, the newest, was taken back: its pages are as before.
    pub(crate) fn take_back(&self, seq: u64) {
        let mut state = self.state();
        self.taken_back.fetch_add(1, Ordering::AcqRel);
        while state.order.back().is_some_and(|entry| entry.0 == seq) {
            if let Some((seq, key)) = state.order.pop_back() {
                state.remove_from(seq, &key);
            }
        }
        self.count(&state);
    }

    /// Batches up to `visible` are visible: entries that no snapshot needs go, and the oldest snapshots lose theirs
    /// where memory is short.
    pub(crate) fn purge(&self, visible: u64) {
        if self.entries.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut state = self.state();
        let first = state.snapshots.keys().next().copied().unwrap_or(visible);
        state.drop_up_to(first.min(visible));
        let old: Vec<u64> = state.snapshots.keys().copied().collect();
        for next in old.into_iter().skip(1).chain([visible]) {
            if state.bytes as u64 <= self.limit.0 {
                break;
            }
            state.floor = state.floor.max(next);
            state.drop_up_to(next.min(visible));
        }
        self.count(&state);
    }

    /// Opens a snapshot of the newest visible state, which `visible` returns.
    pub(crate) fn open(&self, visible: impl Fn() -> u64) -> u64 {
        let mut state = self.state();
        let seq = visible();
        *state.snapshots.entry(seq).or_default() += 1;
        seq
    }

    /// Closes a snapshot.
    pub(crate) fn close(&self, seq: u64) {
        let mut state = self.state();
        if let Some(count) = state.snapshots.get_mut(&seq) {
            *count -= 1;
            if *count == 0 {
                state.snapshots.remove(&seq);
            }
        }
    }

    /// Reads pages, and then what the version store has instead, so that no change of a batch that is taken back
    /// meanwhile is seen.
    pub(crate) fn settled<R>(&self, read: impl Fn() -> Result<R>) -> Result<R> {
        loop {
            let before = self.taken_back.load(Ordering::Acquire);
            let done = read();
            if self.taken_back.load(Ordering::Acquire) == before {
                return done;
            }
        }
    }

    fn is_kept(&self, state: &State, seq: u64) -> Result<()> {
        if seq >= state.floor { Ok(()) } else { Err(StoreError::SnapshotTooOld { limit: self.limit }) }
    }

    /// What a snapshot sees of a key, if not the tree's value.
    pub(crate) fn at(&self, tree: u32, key: &[u8], seq: u64) -> Result<Option<Option<Value>>> {
        let state = self.state();
        self.is_kept(&state, seq)?;
        Ok(state.at(&(tree, key.to_vec()), seq).cloned())
    }

    /// The same for a reader without a snapshot, who wants the newest visible state. `None`: the tree's value.
    pub(crate) fn newest(&self, tree: u32, key: &[u8], visible: impl Fn() -> u64) -> Option<Option<Value>> {
        if self.entries.load(Ordering::Acquire) == 0 {
            return None;
        }
        let state = self.state();
        let seq = visible();
        state.at(&(tree, key.to_vec()), seq).cloned()
    }

    /// What a snapshot sees of a range, where it differs from the tree.
    pub(crate) fn range(
        &self,
        tree: u32,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        seq: u64,
    ) -> Result<Vec<(Vec<u8>, Option<Value>)>> {
        let state = self.state();
        self.is_kept(&state, seq)?;
        let entries = entries(&state, tree, range);
        let seen = entries.filter_map(|(key, replaced)| Some((key.1.clone(), seen_at(replaced, seq)?.clone())));
        Ok(seen.collect())
    }

    /// Whether a batch after `seq` has changed a key, or a key in a range.
    pub(crate) fn is_changed(&self, tree: u32, range: (Bound<&[u8]>, Bound<&[u8]>), seq: u64) -> Result<bool> {
        let state = self.state();
        self.is_kept(&state, seq)?;
        Ok(entries(&state, tree, range).any(|(_, replaced)| replaced.back().is_some_and(|entry| entry.0 > seq)))
    }

    /// Memory that the entries take.
    pub(crate) fn bytes(&self) -> ByteSize {
        ByteSize(self.state().bytes as u64)
    }
}

fn entries<'a>(
    state: &'a State,
    tree: u32,
    (low, high): (Bound<&[u8]>, Bound<&[u8]>),
) -> impl Iterator<Item = (&'a FullKey, &'a Replaced)> {
    let full = |key: &[u8]| (tree, key.to_vec());
    let low = match low {
        Bound::Included(key) => Bound::Included(full(key)),
        Bound::Excluded(key) => Bound::Excluded(full(key)),
        Bound::Unbounded => Bound::Included(full(b"")),
    };
    let high = match high {
        Bound::Included(key) => Bound::Included(full(key)),
        Bound::Excluded(key) => Bound::Excluded(full(key)),
        Bound::Unbounded => match tree.checked_add(1) {
            Some(next) => Bound::Excluded((next, Vec::new())),
            None => Bound::Unbounded,
        },
    };
    // A range that ends before it starts has nothing; `BTreeMap::range` would panic.
    let is_empty = match (&low, &high) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Excluded(high) | Bound::Included(high)) => low >= high,
        _ => false,
    };
    let range = (!is_empty).then(|| state.replaced.range((low, high)));
    range.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

    fn key(byte: u8) -> FullKey {
        (1, vec![byte])
    }

    fn value(text: &str) -> Option<Value> {
        Some(Value::copy_of(text.as_bytes()))
    }

    #[test]
    fn a_snapshot_sees_what_was_there_when_it_was_opened() {
        let versions = Versions::new(ByteSize::mib(1));
        assert_eq!(versions.open(|| 5), 5);
        versions.replace(6, key(1), value("five"));
        versions.replace(7, key(1), value("six"));
        versions.replace(7, key(2), None);
        versions.purge(7);
        assert_eq!(versions.at(1, &[1], 5).unwrap(), Some(value("five")));
        assert_eq!(versions.at(1, &[1], 6).unwrap(), Some(value("six")));
        assert_eq!(versions.at(1, &[1], 7).unwrap(), None);
        assert_eq!(versions.range(1, ALL, 6).unwrap(), [(vec![1], value("six")), (vec![2], None)]);
        assert!(versions.is_changed(1, ALL, 6).unwrap() && !versions.is_changed(1, ALL, 7).unwrap());
        assert!(!versions.is_changed(2, ALL, 0).unwrap());
        versions.close(5);
        versions.purge(7);
        assert_eq!(versions.bytes(), ByteSize(0));
    }

    #[test]
    fn a_batch_that_is_taken_back_leaves_nothing() {
        let versions = Versions::new(ByteSize::mib(1));
        versions.replace(1, key(1), value("a"));
        versions.replace(2, key(1), value("b"));
        versions.take_back(2);
        assert_eq!(versions.newest(1, &[1], || 0), Some(value("a")));
        assert_eq!(versions.newest(1, &[1], || 1), None);
    }

    /// A batch fails between a reader's look at the page and its look at the versions.
    #[test]
    fn a_value_of_a_batch_that_is_taken_back_meanwhile_is_not_read() {
        let versions = Versions::new(ByteSize::mib(1));
        let page = std::cell::Cell::new("old");
        let read = |versions: &Versions, meanwhile: &dyn Fn()| {
            versions.settled(|| {
                let stored = value(page.get());
                meanwhile();
                Ok(versions.newest(1, &[1], || 0).unwrap_or(stored))
            })
        };
        versions.replace(1, key(1), value("old"));
        page.set("never committed");
        let take_back = || {
            if page.replace("old") != "old" {
                versions.take_back(1);
            }
        };
        assert_eq!(read(&versions, &take_back), Ok(value("old")));
        assert_eq!(read(&versions, &|| ()), Ok(value("old")));
    }

    #[test]
    fn the_oldest_snapshot_gives_way_when_memory_is_short_and_says_so() {
        let versions = Versions::new(ByteSize(1000));
        versions.open(|| 0);
        (1..=20).for_each(|seq| versions.replace(seq, key(seq as u8), value("0123456789")));
        versions.open(|| 18);
        versions.purge(20);
        assert_eq!(versions.at(1, &[1], 0), Err(StoreError::SnapshotTooOld { limit: ByteSize(1000) }));
        assert_eq!(versions.at(1, &[20], 18).unwrap(), Some(value("0123456789")));
        assert!(versions.bytes().0 <= 1000);
    }

    /// A counter that is incremented while a snapshot is open must not make the snapshot's end, or a read, go through
    /// all of its values for each of them: that takes minutes.
    #[test]
    fn a_key_with_very_many_versions_is_read_and_forgotten_quickly() {
        const CHANGES: u64 = 400_000;
        let started = std::time::Instant::now();
        let versions = Versions::new(ByteSize::gib(1));
        versions.open(|| 0);
        (1..=CHANGES).for_each(|seq| versions.replace(seq, key(1), None));
        for seq in CHANGES - 20_000..CHANGES {
            assert_eq!(versions.at(1, &[1], seq).unwrap(), Some(None));
        }
        versions.close(0);
        versions.purge(CHANGES);
        assert_eq!(versions.bytes(), ByteSize(0));
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    }

    #[test]
    fn a_range_that_ends_before_it_starts_is_empty() {
        let versions = Versions::new(ByteSize(1000));
        versions.replace(1, key(5), None);
        let range = |low: Bound<&'static [u8]>, high: Bound<&'static [u8]>| versions.range(1, (low, high), 0).unwrap();
        assert!(range(Bound::Included(b"z"), Bound::Excluded(b"a")).is_empty());
        assert!(range(Bound::Excluded(&[5]), Bound::Excluded(&[5])).is_empty());
        assert_eq!(range(Bound::Included(&[5]), Bound::Included(&[5])).len(), 1);
    }
}
