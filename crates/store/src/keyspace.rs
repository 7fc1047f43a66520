//! A named set of keys.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::batch::Batch;
use crate::engine::Index;
use crate::error::{Result, StoreError};
use crate::options::Durability;
use crate::scan::{Scan, Span};
use crate::snapshot::SnapshotInner;
use crate::store::Shared;
use crate::value::Value;

/// What handles of one keyspace share.
pub(crate) struct KeyspaceInner {
    pub name: String,
    pub index: Index,
    /// Identity of the store, which a copy of its file has, too.
    pub store: u64,
    /// Which opening of a store it belongs to: a handle of another one is refused.
    pub opening: u64,
    pub is_dropped: AtomicBool,
}

impl fmt::Debug for KeyspaceInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)
    }
}

impl KeyspaceInner {
    /// Fails for a keyspace that was dropped.
    pub(crate) fn exists(&self) -> Result<()> {
        match self.is_dropped.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(self.missing()),
        }
    }

    /// The key by which the engine sorts.
    pub(crate) fn sort_key<'a>(&self, key: &'a [u8]) -> Cow<'a, [u8]> {
        self.index.sort_key(self.store, key)
    }

    /// Fails where keys have no order.
    pub(crate) fn ordered(&self) -> Result<()> {
        self.exists()?;
        self.index.ordered(&self.name)
    }

    pub(crate) fn missing(&self) -> StoreError {
        StoreError::NoKeyspace { name: self.name.clone() }
    }
}

/// A handle of a keyspace: cheap to clone, used by many threads.
#[derive(Clone)]
pub struct Keyspace {
    pub(crate) shared: Arc<Shared>,
    pub(crate) inner: Arc<KeyspaceInner>,
}

impl fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keyspace").field(&self.inner.name).finish()
    }
}

impl Keyspace {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The newest committed value of a key.
    ///
    /// # Errors
    /// When the medium fails, a page is damaged, or the keyspace was dropped.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.shared.get(&self.inner, &self.inner.sort_key(key.as_ref()))
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.get(key).map(|value| value.is_some())
    }

    /// Puts a value; durable ([`Durability::Synced`]) when it returns. A [`Batch`] puts many at the price of one.
    ///
    /// # Errors
    /// As [`crate::Store::commit`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(self, key, value);
        self.shared.commit(batch, Durability::Synced, None)
    }

    /// Deletes a key; durable ([`Durability::Synced`]) when it returns.
    ///
    /// # Errors
    /// As [`crate::Store::commit`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete(self, key);
        self.shared.commit(batch, Durability::Synced, None)
    }

    /// Keys and values of a range, in order, in one state: that of this call.
    ///
    /// # Errors
    /// [`StoreError::Unordered`] in a store with the hash; when the keyspace was dropped. The scan's items have further
    /// errors.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Scan> {
        self.inner.ordered()?;
        self.scan(Span::of(&range))
    }

    /// The same for the keys that start with `prefix`.
    ///
    /// # Errors
    /// As [`Keyspace::range`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Scan> {
        self.inner.ordered()?;
        self.scan(Span::of_prefix(prefix.as_ref()))
    }

    /// The same for all keys.
    ///
    /// # Errors
    /// As [`Keyspace::range`].
    pub fn iter(&self) -> Result<Scan> {
        self.prefix(b"")
    }

    /// All keys and values, in one state: that of this call. In order in a store with the B⁻-tree, in none with the
    /// hash.
    ///
    /// # Errors
    /// When the keyspace was dropped. The scan's items have further errors.
    pub fn entries(&self) -> Result<Scan> {
        self.inner.exists()?;
        self.scan(Span::of_prefix(b""))
    }

    fn scan(&self, span: Span) -> Result<Scan> {
        let snapshot = SnapshotInner::open(&self.shared);
        Ok(Scan::new(snapshot, Arc::clone(&self.inner), span))
    }

    /// Whether it has no key.
    ///
    /// # Errors
    /// As [`Keyspace::entries`], and those of a scan.
    pub fn is_empty(&self) -> Result<bool> {
        self.entries()?.next().transpose().map(|first| first.is_none())
    }
}
