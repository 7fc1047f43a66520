//! Which engine has a keyspace's keys: the arrows from the front to the trees and the tables.
//!
//! Both engines keep keys in the order of their *sort keys*. In a tree that is the key itself; in a table it is the
//! key's hash and the key. The front works by sort keys throughout, and turns them into keys at its edge.

use std::borrow::Cow;
use std::sync::Arc;

use crate::error::{Result, StoreError};
use crate::hash::{Counted, HASH_BYTES, Table};
use crate::options::Engine;
use crate::pages::{Group, Pages};
use crate::tree::{LeafCopy, Target, TreeId};
use crate::value::Value;

/// A keyspace's keys.
#[derive(Clone)]
pub(crate) enum Index {
    Tree(TreeId),
    Table(Arc<Table>),
}

impl Index {
    /// The keys that the catalog has by number and root.
    pub(crate) fn open(pages: &Pages, engine: Engine, id: TreeId) -> Result<Self> {
        Ok(match engine {
            Engine::BTree => Self::Tree(id),
            Engine::Hash => Self::Table(Arc::new(Table::open(pages, id)?)),
        })
    }

    pub(crate) fn id(&self) -> TreeId {
        match self {
            Self::Tree(id) => *id,
            Self::Table(table) => table.id,
        }
    }

    /// The number by which the version store and batches know the keyspace.
    pub(crate) fn number(&self) -> u32 {
        self.id().number
    }

    /// Bytes of a sort key in front of the key.
    pub(crate) fn prefix_bytes(&self) -> usize {
        match self {
            Self::Tree(_) => 0,
            Self::Table(_) => HASH_BYTES,
        }
    }

    pub(crate) fn sort_key<'a>(&self, seed: u64, key: &'a [u8]) -> Cow<'a, [u8]> {
        match self {
            Self::Tree(_) => Cow::Borrowed(key),
            Self::Table(_) => Cow::Owned(crate::hash::sort_key(seed, key)),
        }
    }

    /// The key of a sort key.
    pub(crate) fn key(&self, mut sort_key: Vec<u8>) -> Vec<u8> {
        sort_key.drain(..self.prefix_bytes().min(sort_key.len()));
        sort_key
    }

    pub(crate) fn key_max(&self, page_bytes: usize) -> usize {
        match self {
            Self::Tree(_) => crate::pages::key_max(page_bytes),
            Self::Table(_) => crate::hash::key_max(page_bytes),
        }
    }

    /// Bytes of memory for where its pages are.
    pub(crate) fn memory(&self) -> u64 {
        match self {
            Self::Tree(_) => 0,
            Self::Table(table) => (table.extents().len() * size_of::<u64>()) as u64,
        }
    }

    /// Refuses what needs an order of keys, where there is none.
    pub(crate) fn ordered(&self, name: &str) -> Result<()> {
        match self {
            Self::Tree(_) => Ok(()),
            Self::Table(_) => Err(StoreError::Unordered { name: name.to_owned(), engine: Engine::Hash }),
        }
    }

    /// A value in the newest state.
    pub(crate) fn get(&self, pages: &Pages, sort_key: &[u8]) -> Result<Option<Value>> {
        match self {
            Self::Tree(id) => pages.get(*id, sort_key),
            Self::Table(table) => table.get(pages, sort_key),
        }
    }

    /// The records of a leaf or bucket; `None` if the keyspace does not exist any more.
    pub(crate) fn copy(&self, pages: &Pages, target: Target<'_>) -> Result<Option<LeafCopy>> {
        match self {
            Self::Tree(id) => pages.copy_leaf(*id, target),
            Self::Table(table) => table.copy_bucket(pages, target),
        }
    }

    /// Loads the pages of sort keys, several at once. Only a hint.
    pub(crate) fn prefetch<'a>(&self, pages: &Pages, sort_keys: impl Iterator<Item = &'a [u8]>) {
        match self {
            Self::Tree(id) => pages.prefetch(sort_keys.map(|key| (*id, key))),
            Self::Table(table) => table.prefetch(pages, sort_keys),
        }
    }

    /// Puts a value, or removes one; `old` gets the one before, before anything changes.
    pub(crate) fn change(
        &self,
        group: &mut Group<'_>,
        sort_key: &[u8],
        value: Option<&[u8]>,
        old: &mut dyn FnMut(Option<Value>) -> Result<()>,
    ) -> Result<Counted> {
        match (self, value) {
            (Self::Tree(id), Some(value)) => group.put(*id, sort_key, value, old).map(|()| Counted::default()),
            (Self::Tree(id), None) => group.remove(*id, sort_key, old).map(|_| Counted::default()),
            (Self::Table(table), Some(value)) => group.put_in_table(table, sort_key, value, old),
            (Self::Table(table), None) => group.remove_from_table(table, sort_key, old),
        }
    }
}
