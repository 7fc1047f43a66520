//! Serialisable transactions: optimistic, checked when they commit.
//!
//! A transaction reads from a snapshot, over its own changes, and notes keys and ranges that it read. Its commit holds
//! the writer's lock, checks that no batch after the snapshot has changed any of them, and commits its changes as a
//! batch. So it behaves as if it had run as a whole at the moment of its commit. A transaction that only reads behaves
//! as if it had run at its snapshot.
//!
//! Source: H. T. Kung, J. T. Robinson, *On Optimistic Methods for Concurrency Control*, TODS 1981 (backward
//! validation).

use std::fmt;
use std::iter::Peekable;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::batch::Batch;
use crate::error::Result;
use crate::keyspace::{Keyspace, KeyspaceInner};
use crate::options::Durability;
use crate::scan::{SortedScan, Span};
use crate::snapshot::{Snapshot, SnapshotInner};
use crate::store::Shared;
use crate::value::Value;

/// What a transaction has read.
#[derive(Default)]
pub(crate) struct ReadSet {
    pub seq: u64,
    spans: Vec<(u32, Span)>,
}

impl ReadSet {
    /// Whether a batch after the snapshot has changed something of it. The writer's lock is held.
    pub(crate) fn is_changed(&self, shared: &Shared) -> Result<bool> {
        for (tree, span) in &self.spans {
            if !span.is_empty() && shared.versions.is_changed(*tree, span.bounds(), self.seq)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// A transaction. Dropping it without a commit forgets its changes.
///
/// ```
/// use flashwise_store::{Durability, Store, StoreError, StoreOptions};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let store = Store::open(folder.path().join("bank"), &StoreOptions::default())?;
/// let accounts = store.keyspace("accounts")?;
/// accounts.put("alice", [10])?;
/// loop {
///     let mut transaction = store.transaction();
///     let balance = transaction.get(&accounts, "alice")?.map_or(0, |value| value[0]);
///     transaction.put(&accounts, "alice", [balance - 1]);
///     match transaction.commit(Durability::Synced) {
///         Err(StoreError::Conflict) => continue,
///         done => break done?,
///     }
/// }
/// assert_eq!(accounts.get("alice")?.as_deref(), Some([9].as_slice()));
/// # Ok(())
/// # }
/// ```
pub struct Transaction {
    snapshot: Snapshot,
    changes: Batch,
    reads: ReadSet,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("changes", &self.changes.len()).finish_non_exhaustive()
    }
}

impl Transaction {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let snapshot = Snapshot(SnapshotInner::open(shared));
        let reads = ReadSet { seq: snapshot.0.seq, spans: Vec::new() };
        Self { snapshot, changes: Batch::new(), reads }
    }

    /// A key's value: that of this transaction's own change, or of its snapshot.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn get(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = keyspace.inner.sort_key(key.as_ref()).into_owned();
        let number = keyspace.inner.index.number();
        self.reads.spans.push((number, Span::of::<&[u8]>(&(&key[..]..=&key[..]))));
        let full = (number, key);
        if let Some(own) = self.changes.operations.get(&full) {
            self.reads.spans.pop();
            return Ok(own.value.as_deref().map(Value::copy_of));
        }
        self.snapshot.0.get(&keyspace.inner, &full.1)
    }

    /// Keys and values of a range, with this transaction's own changes.
    ///
    /// # Errors
    /// As [`Snapshot::range`].
    pub fn range<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<TransactionScan<'_>> {
        keyspace.inner.ordered()?;
        self.scan(keyspace, Span::of(&range))
    }

    /// The same for the keys that start with `prefix`.
    ///
    /// # Errors
    /// As [`Snapshot::range`].
    pub fn prefix(&mut self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Result<TransactionScan<'_>> {
        keyspace.inner.ordered()?;
        self.scan(keyspace, Span::of_prefix(prefix.as_ref()))
    }

    /// The same for all keys; in no order in a store with the hash.
    ///
    /// # Errors
    /// As [`Snapshot::entries`].
    pub fn entries(&mut self, keyspace: &Keyspace) -> Result<TransactionScan<'_>> {
        self.scan(keyspace, Span::of_prefix(b""))
    }

    fn scan(&mut self, keyspace: &Keyspace, span: Span) -> Result<TransactionScan<'_>> {
        let number = keyspace.inner.index.number();
        let stored = self.snapshot.sorted(keyspace, span.clone())?.peekable();
        let own = own_changes(&self.changes, number, &span).peekable();
        self.reads.spans.push((number, span));
        Ok(TransactionScan { keyspace: Arc::clone(&keyspace.inner), stored, own })
    }

    /// Puts a value; others see it after the commit.
    pub fn put(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.changes.put(keyspace, key, value);
    }

    /// Deletes a key; others see it after the commit.
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) {
        self.changes.delete(keyspace, key);
    }

    /// Commits.
    ///
    /// # Errors
    /// [`crate::StoreError::Conflict`] if another commit has changed what this transaction read; otherwise as
    /// [`crate::Store::commit`]. Nothing of it is done then.
    pub fn commit(self, until: Durability) -> Result<()> {
        let Self { snapshot, changes, reads } = self;
        if changes.is_empty() {
            return Ok(());
        }
        snapshot.0.shared.commit(changes, until, Some(&reads))
    }
}

type Own<'a> = (&'a [u8], Option<&'a [u8]>);

fn own_changes<'a>(changes: &'a Batch, tree: u32, span: &Span) -> Box<dyn Iterator<Item = Own<'a>> + 'a> {
    let high = match &span.high {
        Some(high) => Bound::Excluded((tree, high.clone())),
        None => tree.checked_add(1).map_or(Bound::Unbounded, |next| Bound::Excluded((next, Vec::new()))),
    };
    if span.is_empty() {
        return Box::new(std::iter::empty());
    }
    let range: BTreeRange<'a> = changes.operations.range((Bound::Included((tree, span.low.clone())), high));
    Box::new(range.map(|((_, key), operation)| (key.as_slice(), operation.value.as_deref())))
}

type BTreeRange<'a> = std::collections::btree_map::Range<'a, (u32, Vec<u8>), crate::batch::Operation>;

/// A range in a transaction, in ascending order; all entries, in no order with the hash.
pub struct TransactionScan<'a> {
    keyspace: Arc<KeyspaceInner>,
    stored: Peekable<SortedScan>,
    own: Peekable<Box<dyn Iterator<Item = Own<'a>> + 'a>>,
}

impl Iterator for TransactionScan<'_> {
    type Item = Result<(Vec<u8>, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let is_own = match (self.stored.peek(), self.own.peek()) {
                (_, None) => false,
                (None | Some(Err(_)), Some(_)) => !matches!(self.stored.peek(), Some(Err(_))),
                (Some(Ok((stored, _))), Some((own, _))) => {
                    if stored.as_slice() == *own {
                        // The own change replaces what is stored.
                        self.stored.next();
                        continue;
                    }
                    *own < stored.as_slice()
                }
            };
            let entry = match is_own {
                false => self.stored.next()?,
                true => match self.own.next() {
                    Some((key, Some(value))) => Ok((key.to_vec(), Value::copy_of(value))),
                    _ => continue,
                },
            };
            return Some(entry.map(|(key, value)| (self.keyspace.index.key(key), value)));
        }
    }
}
