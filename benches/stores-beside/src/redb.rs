//! redb: a copy-on-write B+-tree in one file. Commits are durable by default.

use std::path::Path;

use flashwise_store::workload::Change;
use redb::{Database, ReadableDatabase, TableDefinition};

use crate::{Failure, Peer};

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("keys");

struct Redb(Database);

pub fn open(directory: &Path, cache: u64) -> Result<Box<dyn Peer>, Failure> {
    let database = Database::builder().set_cache_size(cache as usize).create(directory.join("keys.redb"))?;
    Ok(Box::new(Redb(database)))
}

impl Peer for Redb {
    fn commit(&mut self, changes: &[Change]) -> Result<(), Failure> {
        let write = self.0.begin_write()?;
        {
            let mut table = write.open_table(TABLE)?;
            for (key, value) in changes {
                table.insert(&key[..], &value[..])?;
            }
        }
        Ok(write.commit()?)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let table = self.0.begin_read()?.open_table(TABLE)?;
        Ok(table.get(key)?.map(|value| value.value().to_vec()))
    }
}
