//! LMDB through heed: a copy-on-write B+-tree in a mapped file. Commits are durable by default.

use std::path::Path;

use flashwise_store::workload::Change;
use heed::types::Bytes;
use heed::{Database, Env, EnvOpenOptions};

use crate::{Failure, Peer};

/// Address space of the map, bytes: more than any run needs.
const MAP: usize = 8 << 30;

struct Lmdb {
    env: Env,
    keys: Database<Bytes, Bytes>,
}

pub fn open(directory: &Path, _cache: u64) -> Result<Box<dyn Peer>, Failure> {
    // SAFETY: the directory is new, and no other process has the map.
    let env = unsafe { EnvOpenOptions::new().map_size(MAP).open(directory) }?;
    let mut write = env.write_txn()?;
    let keys = env.create_database(&mut write, None)?;
    write.commit()?;
    Ok(Box::new(Lmdb { env, keys }))
}

impl Peer for Lmdb {
    fn commit(&mut self, changes: &[Change]) -> Result<(), Failure> {
        let mut write = self.env.write_txn()?;
        for (key, value) in changes {
            self.keys.put(&mut write, key, value)?;
        }
        Ok(write.commit()?)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let read = self.env.read_txn()?;
        Ok(self.keys.get(&read, key)?.map(<[u8]>::to_vec))
    }
}
