//! A state of a store as one stream: for backups, for copies in another geometry.
//!
//! | bytes | what |
//! |---|---|
//! | 0..16 | `flashwise-dump 1` |
//! | 1, length (varint), name | a keyspace; the entries behind it are its own |
//! | 2, length (varint), key, length (varint), value | an entry; keys ascend, but in a store with the hash |
//! | 0, number of entries (u64), XXH3-64 of all bytes before it (u64) | the end |

use std::io::{Read, Write};

use flashwise_block::ByteSize;
use xxhash_rust::xxh3::Xxh3;

use crate::batch::Batch;
use crate::bytes::put_bytes;
use crate::catalog;
use crate::error::{Result, StoreError};
use crate::keyspace::Keyspace;
use crate::options::Durability;
use crate::scan::{Scan, Span};
use crate::snapshot::Snapshot;
use crate::store::Store;

const MAGIC: &[u8; 16] = b"flashwise-dump 1";
const END: u8 = 0;
const KEYSPACE: u8 = 1;
const ENTRY: u8 = 2;

/// Bytes that a restore commits together, if the log allows.
const RESTORED_TOGETHER: usize = 1 << 20;
/// Bytes of an entry in the log, and in the pages that it makes split, besides key and value.
const RECORD_OVERHEAD: usize = 32;

struct Sink<'a> {
    to: &'a mut dyn Write,
    sum: Xxh3,
}

fn failed(what: &str, error: &std::io::Error) -> StoreError {
    StoreError::Io { what: what.to_owned(), source: flashwise_block::BlockError::os("the dump", error) }
}

impl Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.sum.update(bytes);
        self.to.write_all(bytes).map_err(|error| failed("writing", &error))
    }
}

struct Source<'a> {
    from: &'a mut dyn Read,
    sum: Xxh3,
    /// Longest key or value: a file with a hole may claim one of any length, and the store could not take it.
    part_max: u64,
}

impl Source<'_> {
    fn read(&mut self, length: usize) -> Result<Vec<u8>> {
        // What is not there is not allocated.
        let mut bytes = Vec::new();
        let read = self.from.take(length as u64).read_to_end(&mut bytes).map_err(|error| failed("reading", &error))?;
        if read < length {
            return Err(StoreError::corrupt("the dump", "it ends too early"));
        }
        self.sum.update(&bytes);
        Ok(bytes)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.read(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(StoreError::corrupt("the dump", "a length is impossible"))
    }

    fn part(&mut self) -> Result<Vec<u8>> {
        let length = self.varint()?;
        if length > self.part_max {
            return Err(StoreError::BatchTooLarge { length: ByteSize(length), max: ByteSize(self.part_max) });
        }
        self.read(length as usize)
    }
}

impl Snapshot {
    /// Writes this state as a dump; returns the number of entries.
    ///
    /// # Errors
    /// When the store or `to` fails, or the snapshot becomes too old.
    pub fn dump(&self, to: &mut dyn Write) -> Result<u64> {
        let mut sink = Sink { to, sum: Xxh3::new() };
        sink.write(MAGIC)?;
        let mut entries: u64 = 0;
        for (name, tree) in catalog::list(&self.0)? {
            let mut record = vec![KEYSPACE];
            put_bytes(&mut record, name.as_bytes());
            sink.write(&record)?;
            let store = Store { shared: std::sync::Arc::clone(&self.0.shared) };
            let Some(keyspace) = store.find_keyspace(&name)?.filter(|found| found.inner.index.id() == tree) else {
                let why = format!("keyspace '{name}' was dropped while the dump was written; write it again");
                return Err(StoreError::Invalid(why));
            };
            for entry in Scan::new(self.0.clone(), keyspace.inner, Span::of_prefix(b"")) {
                let (key, value) = entry?;
                record.clear();
                record.push(ENTRY);
                put_bytes(&mut record, &key);
                put_bytes(&mut record, &value);
                sink.write(&record)?;
                entries += 1;
            }
        }
        let mut end = vec![END];
        end.extend_from_slice(&entries.to_le_bytes());
        sink.write(&end)?;
        let sum = sink.sum.digest();
        sink.write(&sum.to_le_bytes())?;
        sink.to.flush().map_err(|error| failed("writing", &error))?;
        Ok(entries)
    }
}

impl Store {
    /// Writes the newest state as a dump while reads and commits go on; returns the number of entries.
    ///
    /// ```
    /// use flashwise_store::{Store, StoreOptions};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let store = Store::open(folder.path().join("one"), &StoreOptions::default())?;
    /// store.keyspace("colours")?.put("sky", "blue")?;
    /// let mut dump = Vec::new();
    /// store.backup(&mut dump)?;
    ///
    /// let copy = Store::open(folder.path().join("two"), &StoreOptions::default())?;
    /// assert_eq!(copy.restore(&mut dump.as_slice())?, 1);
    /// assert_eq!(copy.keyspace("colours")?.get("sky")?.as_deref(), Some(b"blue".as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::dump`].
    pub fn backup(&self, to: &mut dyn Write) -> Result<u64> {
        self.snapshot().dump(to)
    }

    /// Puts all entries of a dump into this store, which keeps what it has besides; returns their number. It is durable
    /// when it returns. After an error some of the entries are there.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the dump is damaged; otherwise as [`Store::commit`].
    pub fn restore(&self, from: &mut dyn Read) -> Result<u64> {
        let mut source = Source { from, sum: Xxh3::new(), part_max: self.shared.batch_max() };
        if source.read(MAGIC.len())? != MAGIC {
            return Err(StoreError::corrupt("the dump", "it is no dump of a flashwise store"));
        }
        let (mut keyspace, mut batch, mut waiting, mut entries): (Option<Keyspace>, _, _, u64) =
            (None, Batch::new(), 0, 0);
        loop {
            match source.read(1)?[0] {
                KEYSPACE => {
                    let name = String::from_utf8(source.part()?);
                    let name = name.map_err(|_| StoreError::corrupt("the dump", "a keyspace's name is not text"))?;
                    keyspace = Some(self.keyspace(&name)?);
                }
                ENTRY => {
                    let (key, value) = (source.part()?, source.part()?);
                    let unnamed = || StoreError::corrupt("the dump", "an entry belongs to no keyspace");
                    let keyspace = keyspace.as_ref().ok_or_else(unnamed)?;
                    waiting += key.len() + value.len() + RECORD_OVERHEAD;
                    batch.put(keyspace, key, value);
                    entries += 1;
                }
                END => break,
                _ => return Err(StoreError::corrupt("the dump", "a record is unknown")),
            }
            if waiting >= self.restored_together() {
                // Written at once: a medium that is full is an error of this call, and the store goes on.
                self.commit(std::mem::take(&mut batch), Durability::Flushed)?;
                waiting = 0;
            }
        }
        let counted = source.read(8)?;
        let sum = source.sum.digest();
        let (counted, written) = (crate::bytes::get_u64(&counted, 0), crate::bytes::get_u64(&source.read(8)?, 0));
        if sum != written || counted != entries {
            return Err(StoreError::corrupt("the dump", "its checksum does not match"));
        }
        self.commit(batch, Durability::Synced)?;
        Ok(entries)
    }

    fn restored_together(&self) -> usize {
        RESTORED_TOGETHER.min(self.shared.batch_max() as usize / 8)
    }
}
