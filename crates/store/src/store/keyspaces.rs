//! Keyspaces: handles, creation, and removal in parts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::growth::SPLITS_LOG_SHARE;
use super::{OpenKeyspaces, Shared, Store, WriterState};
use crate::catalog;
use crate::commit::Ticket;
use crate::engine::Index;
use crate::error::{Result, StoreError};
use crate::hash::Table;
use crate::keyspace::{Keyspace, KeyspaceInner};
use crate::options::{Durability, Engine};
use crate::pages::Group;
use crate::pages::cache::lock;
use crate::snapshot::SnapshotInner;
use crate::tree::{CATALOG, Target, TreeId};

/// Keys that one commit of a drop removes, and buckets.
const DROPPED_TOGETHER: usize = 256;
const BUCKETS_DROPPED_TOGETHER: usize = 16;

impl Store {
    /// The keyspace of a name; created, durably, if it is missing. Names have 1 to 128 bytes.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        match self.find_keyspace(name)? {
            Some(found) => Ok(found),
            None => self.create_keyspace(name),
        }
    }

    /// The keyspace of a name, if it exists.
    ///
    /// # Errors
    /// When the medium fails or a page is damaged.
    pub fn find_keyspace(&self, name: &str) -> Result<Option<Keyspace>> {
        catalog::check_name(name)?;
        // Locked until the handle is there: a keyspace that is dropped meanwhile must not come back with it.
        let found = self.find_inner(&mut lock(&self.shared.keyspaces), name)?;
        Ok(found.map(|inner| Keyspace { shared: Arc::clone(&self.shared), inner }))
    }

    fn find_inner(&self, open: &mut OpenKeyspaces, name: &str) -> Result<Option<Arc<KeyspaceInner>>> {
        let shared = &self.shared;
        if let Some(inner) = open.get(name) {
            return Ok(Some(Arc::clone(inner)));
        }
        let entry = shared.get(&catalog::keyspace(shared), &catalog::key_of(name))?;
        let Some(entry) = entry else { return Ok(None) };
        let index = Index::open(&shared.pages, shared.geometry.engine, catalog::decode(&entry)?)?;
        let (name, is_dropped) = (name.to_owned(), AtomicBool::new(false));
        let (store, opening) = (shared.identity(), shared.opening);
        let inner = Arc::new(KeyspaceInner { name: name.clone(), index, store, opening, is_dropped });
        open.insert(name, Arc::clone(&inner));
        Ok(Some(inner))
    }

    fn create_keyspace(&self, name: &str) -> Result<Keyspace> {
        let shared = &self.shared;
        let key = catalog::key_of(name);
        loop {
            shared.run(Durability::Synced, |group, seq| {
                if shared.pages.get(CATALOG, &key)?.is_some() {
                    return Ok(());
                }
                let next =
                    shared.pages.get(CATALOG, catalog::NEXT)?.map_or(1, |entry| crate::bytes::get_u32(&entry, 0));
                let too_many =
                    || StoreError::Invalid("the store has had all keyspaces that can be numbered".to_owned());
                let behind = next.checked_add(2).filter(|_| next > 0).ok_or_else(too_many)?;
                let (created, behind) = match shared.geometry.engine {
                    Engine::BTree => (group.create_tree(next)?, behind - 1),
                    Engine::Hash => (group.create_table(next, next + 1)?, behind),
                };
                for (key, value) in [(catalog::NEXT, behind.to_le_bytes().to_vec()), (&key, catalog::encode(created))] {
                    group.put(CATALOG, key, &value, &mut |old| shared.note_old(seq, CATALOG.number, key, old))?;
                }
                Ok(())
            })?;
            // It may be dropped again by somebody else.
            if let Some(found) = self.find_keyspace(name)? {
                return Ok(found);
            }
        }
    }

    /// Names of all keyspaces, in order.
    ///
    /// # Errors
    /// When the medium fails or a page is damaged.
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        self.snapshot().keyspaces()
    }

    /// Removes a keyspace with all its keys; whether it existed. It is gone, durably, when the name is; its pages are
    /// freed in parts, and after a crash or an error by the commits that follow. Its handles and scans fail from now
    /// on.
    ///
    /// # Errors
    /// As [`Store::commit`]; its name may be gone then.
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        catalog::check_name(name)?;
        let shared = &self.shared;
        // Locked until the handle is gone: nobody else drops it too, or finds it when the name has a new keyspace.
        let mut open = lock(&shared.keyspaces);
        let Some(inner) = self.find_inner(&mut open, name)? else { return Ok(false) };
        let (key, id) = (catalog::key_of(name), inner.index.id());
        shared.run(Durability::Synced, |group, seq| {
            let note = |key: &[u8], old| shared.note_old(seq, CATALOG.number, key, old);
            group.remove(CATALOG, &key, &mut |old| note(&key, old))?;
            let dropped = catalog::dropped_key_of(id);
            group.put(CATALOG, &dropped, &catalog::encode(id), &mut |old| note(&dropped, old))
        })?;
        inner.is_dropped.store(true, Ordering::Release);
        open.remove(name);
        drop(open);
        shared.finish_drop(&inner.index).inspect_err(|_| lock(&shared.dropping).push(inner.index.clone()))?;
        Ok(true)
    }
}

impl Shared {
    /// Notes the keyspaces whose removal had not ended when the store was closed or killed. A damaged one stays.
    pub(super) fn find_dropped(self: &Arc<Self>) -> Result<()> {
        let dropped = catalog::list_dropped(&SnapshotInner::open(self))?;
        let indexes = dropped.into_iter().filter_map(|id| Index::open(&self.pages, self.geometry.engine, id).ok());
        lock(&self.dropping).extend(indexes);
        Ok(())
    }

    /// Frees a part of a dropped keyspace, with a commit that makes space anyway: an opening must not wait until a
    /// large one is gone.
    pub(super) fn go_on_dropping(&self, writer: &mut WriterState) -> Result<()> {
        // After an error the commit meets the same one, or another commit tries again.
        match self.drop_next_part(writer) {
            Ok(Some(Some(_))) => self.make_space(writer),
            _ => Ok(()),
        }
    }

    /// Frees all pages of the keyspaces that were left behind.
    pub(super) fn finish_dropping(&self) -> Result<()> {
        loop {
            let mut writer = self.lock_writer()?;
            self.make_space(&mut writer)?;
            let Some(ticket) = self.drop_next_part(&mut writer)? else { return Ok(()) };
            drop(writer);
            self.wait_for_many(ticket)?;
        }
    }

    /// Frees a part of a keyspace that was left behind; `None` if there is none.
    fn drop_next_part(&self, writer: &mut WriterState) -> Result<Option<Option<Ticket>>> {
        let Some(index) = self.next_dropped()? else { return Ok(None) };
        let dropped = self.drop_part(writer, &index);
        // A damaged one is left to the next opening.
        if matches!(dropped, Ok((_, true)) | Err(StoreError::Corrupt { .. })) {
            lock(&self.dropping).retain(|other| other.id() != index.id());
        }
        dropped.map(|(ticket, _)| Some(ticket))
    }

    /// A keyspace that was left behind. One that is not in the catalog any more is gone: its last part was freed, and
    /// an error came after that.
    fn next_dropped(&self) -> Result<Option<Index>> {
        loop {
            let Some(index) = lock(&self.dropping).last().cloned() else { return Ok(None) };
            if self.pages.get(CATALOG, &catalog::dropped_key_of(index.id()))?.is_some() {
                return Ok(Some(index));
            }
            lock(&self.dropping).retain(|other| other.id() != index.id());
        }
    }

    /// Frees the pages of a dropped keyspace, a part at a time. Nobody else does it.
    fn finish_drop(&self, index: &Index) -> Result<()> {
        loop {
            let mut writer = self.lock_writer()?;
            self.make_space(&mut writer)?;
            let (ticket, is_gone) = self.drop_part(&mut writer, index)?;
            drop(writer);
            if is_gone {
                return self.sync();
            }
            self.wait_for_many(ticket)?;
        }
    }

    /// Frees a part of a dropped keyspace as one group; whether it was the last.
    fn drop_part(&self, writer: &mut WriterState, index: &Index) -> Result<(Option<Ticket>, bool)> {
        let mut is_gone = false;
        let keys = match index {
            Index::Tree(tree) => self.first_keys(*tree)?,
            Index::Table(_) => Vec::new(),
        };
        let ticket = self.apply(writer, Durability::Flushed, |group, seq| {
            is_gone = match index {
                Index::Tree(tree) => drop_some_of_tree(group, *tree, &keys)?,
                Index::Table(table) => drop_some_of_table(group, table)?,
            };
            if is_gone {
                let key = catalog::dropped_key_of(index.id());
                group.remove(CATALOG, &key, &mut |old| self.note_old(seq, CATALOG.number, &key, old))?;
            }
            Ok(())
        })?;
        Ok((ticket, is_gone))
    }

    /// The keys of the first leaf that has some.
    fn first_keys(&self, tree: TreeId) -> Result<Vec<Vec<u8>>> {
        let mut low = Vec::new();
        loop {
            let Some(leaf) = self.pages.copy_leaf(tree, Target::At(&low))? else { return Ok(Vec::new()) };
            match leaf.high {
                Some(high) if leaf.records.is_empty() => low = high,
                _ => return Ok(leaf.records.into_iter().map(|record| record.0).collect()),
            }
        }
    }
}

/// Whether a group has space for some more; keys may be long, and values too.
fn has_space(group: &Group<'_>) -> bool {
    let (used, most) = group.log_bytes();
    used <= most / SPLITS_LOG_SHARE
}

fn drop_some_of_tree(group: &mut Group<'_>, tree: TreeId, keys: &[Vec<u8>]) -> Result<bool> {
    for key in keys.iter().take(DROPPED_TOGETHER) {
        if !has_space(group) {
            break;
        }
        group.remove(tree, key, &mut |_| Ok(()))?;
    }
    // Leaves without keys merge, until the root is the only one.
    let is_gone = keys.is_empty() && !group.compact_at(tree, b"")?;
    if is_gone {
        group.drop_root(tree)?;
    }
    Ok(is_gone)
}

fn drop_some_of_table(group: &mut Group<'_>, table: &Arc<Table>) -> Result<bool> {
    for _ in 0..BUCKETS_DROPPED_TOGETHER {
        if !has_space(group) || !group.drop_bucket(table)? {
            break;
        }
    }
    Ok(table.buckets() == 0 && group.log_bytes().0 == 0 && group.drop_table(table)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreOptions;

    /// As after a drop whose last sync failed: everything was freed by then.
    #[test]
    fn a_noted_keyspace_of_which_nothing_is_left_is_no_damage() {
        for options in [StoreOptions::default(), StoreOptions::hash()] {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(folder.path().join("keys"), &options).unwrap();
            let keyspace = store.keyspace("gone").unwrap();
            keyspace.put("key", "value").unwrap();
            let index = keyspace.inner.index.clone();
            store.drop_keyspace("gone").unwrap();
            lock(&store.shared.dropping).push(index);
            store.compact().unwrap();
            assert!(lock(&store.shared.dropping).is_empty());
            store.keyspace("kept").unwrap().put("key", "value").unwrap();
            let check = store.check().unwrap();
            assert!(check.is_sound(), "{:?}: {:?}", options.engine, check.damage);
        }
    }
}
