//! Growth and compaction: tables split buckets behind each commit; compaction merges buckets and leaves.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::commits::UNSEEN_WAITING;
use super::{Shared, Store, WriterState};
use crate::engine::Index;
use crate::error::{Result, StoreError};
use crate::hash::Table;
use crate::keyspace::KeyspaceInner;
use crate::options::Durability;
use crate::tree::TreeId;

/// Buckets that one group splits or merges, and the share of a group's records at which it ends before that.
const SPLITS_TOGETHER: u64 = 16;
pub(super) const SPLITS_LOG_SHARE: u64 = 8;
/// Splits for each that the bytes of a commit make necessary: a table that has fallen behind catches up.
const SPLITS_CATCH_UP: u64 = 2;

impl Store {
    /// Merges pages that deletes have left half empty, and gives all unused space back to the medium. Reads and commits
    /// go on meanwhile.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn compact(&self) -> Result<()> {
        self.shared.finish_dropping()?;
        for name in self.keyspaces()? {
            let Some(keyspace) = self.find_keyspace(&name)? else { continue };
            let done = match &keyspace.inner.index {
                Index::Tree(tree) => self.shared.compact(&keyspace.inner, *tree),
                Index::Table(table) => self.shared.compact_table(&keyspace.inner, table),
            };
            match done {
                // It was dropped meanwhile.
                Err(StoreError::NoKeyspace { .. }) => {}
                done => done?,
            }
        }
        self.checkpoint()
    }
}

impl Shared {
    /// How many buckets a table must have to be filled as it should.
    fn buckets_for(&self, bytes: u64) -> u64 {
        let filled = self.geometry.page_bytes * u64::from(self.geometry.bucket_fill) / 100;
        bytes.div_ceil(filled.max(1))
    }

    /// Splits as many buckets as the bytes that a commit has added make necessary, and as many again if the table has
    /// fallen behind.
    pub(super) fn grow(
        &self,
        writer: &mut WriterState,
        table: &Arc<Table>,
        added: u64,
        until: Durability,
    ) -> Result<()> {
        // Visible when they are in the log, so that they can be taken back with the commit; a buffered one cannot.
        let level = until.min(Durability::Flushed);
        let mut allowed = SPLITS_CATCH_UP * self.buckets_for(added);
        loop {
            let bytes = table.counts(&self.pages)?.bytes;
            let (buckets, wanted) = (table.buckets(), self.buckets_for(bytes));
            let together = wanted.saturating_sub(buckets).min(allowed).min(SPLITS_TOGETHER);
            if together == 0 || table.is_stuck(bytes) || self.pages.cache.reserve.is_released() {
                return Ok(());
            }
            self.make_space(writer)?;
            self.apply(writer, level, |group, _| {
                for _ in 0..together {
                    group.split_bucket(table)?;
                    let (used, most) = group.log_bytes();
                    if used > most / SPLITS_LOG_SHARE {
                        break;
                    }
                }
                Ok(())
            })?;
            allowed = allowed.saturating_sub(table.buckets() - buckets);
            if level == Durability::Flushed && self.log.waiting_bytes() > UNSEEN_WAITING {
                self.queue.write_out()?;
            }
        }
    }

    /// Merges buckets until the table is filled as it should be, and takes exceptions back into their buckets.
    fn compact_table(&self, keyspace: &KeyspaceInner, table: &Arc<Table>) -> Result<()> {
        let mut is_done = false;
        while !is_done {
            self.run_unseen(|group, _| {
                // Under the writer's lock: the keyspace is not being dropped.
                keyspace.exists()?;
                let wanted = self.buckets_for(table.counts(&self.pages)?.bytes).max(1);
                for _ in 0..SPLITS_TOGETHER {
                    let (used, most) = group.log_bytes();
                    is_done = table.buckets() <= wanted || !group.merge_bucket(table)?;
                    if is_done || used > most / SPLITS_LOG_SHARE {
                        break;
                    }
                }
                Ok(())
            })?;
        }
        table.stuck_at.store(0, Ordering::Relaxed);
        let mut from = Vec::new();
        loop {
            let exceptions = table.exceptions_from(&self.pages, &from, SPLITS_TOGETHER as usize)?;
            let Some(last) = exceptions.last() else { break };
            from = [last.as_slice(), &[0]].concat();
            self.run_unseen(|group, _| {
                keyspace.exists()?;
                exceptions.iter().try_for_each(|sort_key| group.absorb(table, sort_key).map(drop))
            })?;
        }
        self.compact(keyspace, table.side)
    }

    /// Merges neighbours all along a tree, one commit a page.
    fn compact(&self, keyspace: &KeyspaceInner, tree: TreeId) -> Result<()> {
        let mut key = Vec::new();
        loop {
            let mut is_merged = false;
            self.run_unseen(|group, _| {
                // Under the writer's lock: the keyspace is not being dropped.
                keyspace.exists()?;
                is_merged = group.compact_at(tree, &key)?;
                Ok(())
            })?;
            if is_merged {
                continue;
            }
            match self.pages.leaf_end(tree, &key)? {
                Some(end) => key = end,
                None => return self.sync(),
            }
        }
    }
}
