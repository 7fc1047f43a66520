//! flashwise's own stores in a file, beside their runs on the bare drive.

use std::path::Path;

use flashwise_block::ByteSize;
use flashwise_store::workload::Change;
use flashwise_store::{Batch, Durability, Keyspace, Store, StoreOptions};

use crate::{Failure, Peer};

struct Ours {
    keys: Keyspace,
    store: Store,
}

fn open(directory: &Path, options: &StoreOptions) -> Result<Box<dyn Peer>, Failure> {
    let store = Store::open(directory.join("keys.store"), options)?;
    Ok(Box::new(Ours { keys: store.keyspace("keys")?, store }))
}

pub fn open_tree(directory: &Path, cache: u64) -> Result<Box<dyn Peer>, Failure> {
    open(directory, &StoreOptions { cache: ByteSize(cache), ..StoreOptions::default() })
}

pub fn open_hash(directory: &Path, cache: u64) -> Result<Box<dyn Peer>, Failure> {
    open(directory, &StoreOptions { cache: ByteSize(cache), ..StoreOptions::hash() })
}

impl Peer for Ours {
    fn commit(&mut self, changes: &[Change]) -> Result<(), Failure> {
        let mut batch = Batch::new();
        changes.iter().for_each(|(key, value)| batch.put(&self.keys, key, value.as_slice()));
        Ok(self.store.commit(batch, Durability::Synced)?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.store.checkpoint()?)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.keys.get(key)?.map(|value| value.to_vec()))
    }
}
