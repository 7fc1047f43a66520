//! fjall: an LSM-tree. A commit is durable with `PersistMode::SyncAll`.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use flashwise_store::workload::Change;

use crate::{Failure, MEMTABLE, Peer};

struct Fjall {
    database: Database,
    keys: Keyspace,
}

pub fn open(directory: &Path, cache: u64) -> Result<Box<dyn Peer>, Failure> {
    let database = Database::builder(directory.join("keys.fjall")).cache_size(cache).open()?;
    let keys = database.keyspace("keys", || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE))?;
    Ok(Box::new(Fjall { database, keys }))
}

impl Peer for Fjall {
    fn commit(&mut self, changes: &[Change]) -> Result<(), Failure> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        for (key, value) in changes {
            batch.insert(&self.keys, &key[..], &value[..]);
        }
        Ok(batch.commit()?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        // Work may start between two looks: it has ended when several find none.
        let mut quiet = 0;
        while quiet < 10 {
            sleep(Duration::from_millis(50));
            let is_quiet = self.database.outstanding_flushes() == 0 && self.database.active_compactions() == 0;
            quiet = if is_quiet { quiet + 1 } else { 0 };
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.keys.get(key)?.map(|value| value.to_vec()))
    }
}
