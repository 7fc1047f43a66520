//! Which keyspaces exist: a tree of its own, with system keys.
//!
//! | key | value |
//! |---|---|
//! | `k` and a name | number (u32) and root page (u64) of the keyspace's tree, or of its table and its head page |
//! | `d` and a number (u32, big-endian) | the same, of a keyspace that is being dropped: its pages are still to be freed |
//! | `n` | the next number (u32) |

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::bytes::Cursor;
use crate::engine::Index;
use crate::error::{Result, StoreError};
use crate::keyspace::KeyspaceInner;
use crate::scan::{Scan, Span};
use crate::snapshot::SnapshotInner;
use crate::store::Shared;
use crate::tree::{CATALOG, TreeId};

/// Longest name in bytes.
pub(crate) const NAME_MAX: usize = 128;

pub(crate) const NEXT: &[u8] = b"n";

pub(crate) fn key_of(name: &str) -> Vec<u8> {
    [b"k", name.as_bytes()].concat()
}

pub(crate) fn dropped_key_of(tree: TreeId) -> Vec<u8> {
    [b"d".as_slice(), &tree.number.to_be_bytes()].concat()
}

pub(crate) fn encode(tree: TreeId) -> Vec<u8> {
    [tree.number.to_le_bytes().as_slice(), &tree.root.to_le_bytes()].concat()
}

pub(crate) fn decode(bytes: &[u8]) -> Result<TreeId> {
    let mut cursor = Cursor(bytes);
    let tree = cursor.u32().and_then(|number| Some(TreeId { number, root: cursor.u64()? }));
    tree.filter(|tree| tree.number != CATALOG.number && tree.root != CATALOG.root)
        .ok_or_else(|| StoreError::corrupt("the catalog of keyspaces", "an entry is impossible"))
}

/// Refuses a name that no keyspace can have.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_MAX {
        let why = format!("a keyspace name of {} bytes: choose 1 to {NAME_MAX}", name.len());
        return Err(StoreError::Invalid(why));
    }
    Ok(())
}

/// The catalog as a keyspace that only this crate knows.
pub(crate) fn keyspace(shared: &Shared) -> Arc<KeyspaceInner> {
    let (name, index, is_dropped) = ("(catalog)".to_owned(), Index::Tree(CATALOG), AtomicBool::new(false));
    Arc::new(KeyspaceInner { name, index, store: shared.identity(), opening: shared.opening, is_dropped })
}

/// Keyspaces of a state, by name.
pub(crate) fn list(snapshot: &Arc<SnapshotInner>) -> Result<Vec<(String, TreeId)>> {
    entries(snapshot, b"k")?.into_iter().map(|(name, tree)| Ok((text(name)?, tree))).collect()
}

/// Trees of keyspaces whose dropping has not ended.
pub(crate) fn list_dropped(snapshot: &Arc<SnapshotInner>) -> Result<Vec<TreeId>> {
    Ok(entries(snapshot, b"d")?.into_iter().map(|(_, tree)| tree).collect())
}

fn entries(snapshot: &Arc<SnapshotInner>, prefix: &[u8]) -> Result<Vec<(Vec<u8>, TreeId)>> {
    let catalog = keyspace(&snapshot.shared);
    let scan = Scan::new(Arc::clone(snapshot), catalog, Span::of_prefix(prefix));
    scan.map(|entry| {
        let (key, value) = entry?;
        Ok((key[prefix.len()..].to_vec(), decode(&value)?))
    })
    .collect()
}

fn text(name: Vec<u8>) -> Result<String> {
    String::from_utf8(name).map_err(|_| StoreError::corrupt("the catalog of keyspaces", "a name is not text"))
}
