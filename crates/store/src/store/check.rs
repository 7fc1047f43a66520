//! A check of all pages.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Shared;
use crate::catalog;
use crate::engine::Index;
use crate::error::{Result, StoreError};
use crate::snapshot::SnapshotInner;
use crate::superblock::Superblock;
use crate::tree::{CATALOG, Checker};

/// What [`Store::check`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Keyspaces.
    pub keyspaces: u64,
    /// Keys in them.
    pub keys: u64,
    /// Pages that are in use.
    pub pages: u64,
    /// Damage, each with its place; at most a hundred.
    pub damage: Vec<String>,
    /// Damage beyond those.
    pub unlisted: u64,
}

impl Check {
    /// Whether nothing is damaged.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

impl Shared {
    pub(super) fn check(self: &Arc<Self>) -> Result<Check> {
        let writer = self.lock_writer()?;
        self.queue.sync_to(self.log.appended_seq())?;
        let mut checker = Checker::new(&self.pages);
        for copy in Superblock::damaged_copies(&self.disk)? {
            let place = format!("{}: superblock {copy}", self.disk.name());
            let what = "it is damaged; the other copy is good, and the next opening writes both";
            checker.findings.add(StoreError::corrupt(place, what).to_string());
        }
        checker.tree(CATALOG);
        let keys_before = checker.findings.keys;
        let snapshot = SnapshotInner::open(self);
        let mut keyspaces = 0;
        let listed = catalog::list(&snapshot).and_then(|found| Ok((found, catalog::list_dropped(&snapshot)?)));
        match listed {
            Ok((found, dropped)) => {
                keyspaces = found.len() as u64;
                let found = found.into_iter().map(|found| (found.1, true));
                for (id, is_whole) in found.chain(dropped.into_iter().map(|id| (id, false))) {
                    match Index::open(&self.pages, self.geometry.engine, id) {
                        Ok(Index::Tree(tree)) => checker.tree(tree),
                        Ok(Index::Table(table)) => checker.table(&table, is_whole),
                        Err(error) => checker.findings.add(error.to_string()),
                    }
                }
                checker.maps(writer.pages.maps);
            }
            Err(error) => checker.findings.add(error.to_string()),
        }
        let findings = checker.findings;
        let (keys, pages) = (findings.keys - keys_before, findings.pages);
        Ok(Check { keyspaces, keys, pages, damage: findings.damage, unlisted: findings.unlisted })
    }
}
