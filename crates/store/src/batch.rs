//! Changes that are committed together.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::keyspace::{Keyspace, KeyspaceInner};

/// A change of one key: the new value, or `None` for a delete.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub keyspace: Arc<KeyspaceInner>,
    pub value: Option<Vec<u8>>,
}

/// Puts and deletes in any keyspaces of one store, which are committed together: all of them or none. Of several
/// changes of one key the last one counts.
///
/// A batch is in memory until it is committed.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// By keyspace and sort key: pages are visited in order.
    pub(crate) operations: BTreeMap<(u32, Vec<u8>), Operation>,
    /// A change of one store's key has taken the place of another store's: no store takes such a batch.
    pub(crate) is_mixed: bool,
}

impl Batch {
    /// A batch without changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a value.
    pub fn put(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.set(&keyspace.inner, key.as_ref(), Some(value.as_ref().to_vec()));
    }

    /// Deletes a key; one that is absent stays so.
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) {
        self.set(&keyspace.inner, key.as_ref(), None);
    }

    pub(crate) fn set(&mut self, keyspace: &Arc<KeyspaceInner>, key: &[u8], value: Option<Vec<u8>>) {
        let operation = Operation { keyspace: Arc::clone(keyspace), value };
        let key = (keyspace.index.number(), keyspace.sort_key(key).into_owned());
        let replaced = self.operations.insert(key, operation);
        self.is_mixed |= replaced.is_some_and(|replaced| replaced.keyspace.opening != keyspace.opening);
    }

    /// How many keys it changes.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Removes all changes; the memory stays for the next ones.
    pub fn clear(&mut self) {
        self.operations.clear();
        self.is_mixed = false;
    }
}
