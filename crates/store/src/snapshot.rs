//! One state of the store.

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::catalog;
use crate::error::Result;
use crate::keyspace::{Keyspace, KeyspaceInner};
use crate::scan::{Scan, SortedScan, Span};
use crate::store::Shared;
use crate::value::Value;

/// A snapshot that is open while someone has it.
pub(crate) struct SnapshotInner {
    pub shared: Arc<Shared>,
    /// The last batch that it sees.
    pub seq: u64,
}

impl SnapshotInner {
    pub(crate) fn open(shared: &Arc<Shared>) -> Arc<Self> {
        let seq = shared.versions.open(|| shared.queue.visible());
        Arc::new(Self { shared: Arc::clone(shared), seq })
    }

    pub(crate) fn get(&self, keyspace: &KeyspaceInner, sort_key: &[u8]) -> Result<Option<Value>> {
        self.shared.owns(keyspace)?;
        let versions = &self.shared.versions;
        versions.settled(|| {
            keyspace.exists()?;
            let newest = keyspace.index.get(&self.shared.pages, sort_key)?;
            keyspace.exists()?;
            Ok(match versions.at(keyspace.index.number(), sort_key, self.seq)? {
                Some(replaced) => replaced,
                None => newest,
            })
        })
    }
}

impl Drop for SnapshotInner {
    fn drop(&mut self) {
        self.shared.versions.close(self.seq);
        self.shared.versions.purge(self.shared.queue.visible());
    }
}

/// One state of a store, whatever is committed meanwhile; cheap to clone.
///
/// Values that are replaced while it is open stay in memory. If they exceed [`crate::StoreOptions::snapshot_memory`],
/// the oldest snapshots fail with [`crate::StoreError::SnapshotTooOld`]. A keyspace that is dropped is gone for
/// snapshots, too.
#[derive(Clone)]
pub struct Snapshot(pub(crate) Arc<SnapshotInner>);

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Snapshot").field(&self.0.seq).finish()
    }
}

impl Snapshot {
    /// A key's value in this state.
    ///
    /// # Errors
    /// When the medium fails, a page is damaged, the keyspace was dropped or the snapshot is too old.
    pub fn get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.0.get(&keyspace.inner, &keyspace.inner.sort_key(key.as_ref()))
    }

    /// Keys and values of a range, in order.
    ///
    /// # Errors
    /// [`crate::StoreError::Unordered`] in a store with the hash; when the keyspace was dropped. The scan's items have
    /// further errors.
    pub fn range<K: AsRef<[u8]>>(&self, keyspace: &Keyspace, range: impl RangeBounds<K>) -> Result<Scan> {
        keyspace.inner.ordered()?;
        self.scan(keyspace, Span::of(&range))
    }

    /// The same for the keys that start with `prefix`.
    ///
    /// # Errors
    /// As [`Snapshot::range`].
    pub fn prefix(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Result<Scan> {
        keyspace.inner.ordered()?;
        self.scan(keyspace, Span::of_prefix(prefix.as_ref()))
    }

    /// All keys and values: in order in a store with the B⁻-tree, in none with the hash.
    ///
    /// # Errors
    /// When the keyspace was dropped. The scan's items have further errors.
    pub fn entries(&self, keyspace: &Keyspace) -> Result<Scan> {
        self.scan(keyspace, Span::of_prefix(b""))
    }

    fn scan(&self, keyspace: &Keyspace, span: Span) -> Result<Scan> {
        self.sorted(keyspace, span).map(Scan)
    }

    /// A span of sort keys.
    pub(crate) fn sorted(&self, keyspace: &Keyspace, span: Span) -> Result<SortedScan> {
        self.0.shared.owns(&keyspace.inner)?;
        keyspace.inner.exists()?;
        Ok(SortedScan::new(Arc::clone(&self.0), Arc::clone(&keyspace.inner), span))
    }

    /// Names of the keyspaces in this state, in order.
    ///
    /// # Errors
    /// When the medium fails or a page is damaged.
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        Ok(catalog::list(&self.0)?.into_iter().map(|(name, _)| name).collect())
    }
}
