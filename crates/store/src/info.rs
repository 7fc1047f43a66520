//! What a store is, read from its superblock without opening it.

use std::io::Read;
use std::path::Path;

use flashwise_block::{BlockError, ByteSize};
use serde::{Deserialize, Serialize};

use crate::error::{Result, StoreError};
use crate::medium::BLOCK;
use crate::options::Engine;
use crate::superblock::{Superblock, VERSION};

/// A store's properties. Reading them changes nothing, and needs no lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreInfo {
    /// Version of the format.
    pub version: u32,
    /// How it finds keys.
    pub engine: Engine,
    /// How many percent of its buckets are used, for the hash.
    pub bucket_fill: Option<u32>,
    /// Size of a page.
    pub page: ByteSize,
    /// Size of a segment.
    pub segment: ByteSize,
    /// Size of the log.
    pub log: ByteSize,
    /// Whether commits share log blocks.
    pub is_packed: bool,
    /// How often the store was opened for writing.
    pub openings: u64,
    /// Number of the last batch that the superblock knows; later ones are in the log.
    pub last_commit: u64,
    /// Copies of the superblock that are damaged.
    pub damaged_copies: u64,
}

impl StoreInfo {
    /// Reads the superblock of a file.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`]; when the file cannot be read or both copies are damaged.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let place = path.display().to_string();
        let mut copies = Vec::new();
        let file = std::fs::File::open(path).and_then(|file| file.take(2 * BLOCK).read_to_end(&mut copies));
        file.map_err(|error| StoreError::Io {
            what: "reading the superblock".to_owned(),
            source: BlockError::os(place.clone(), &error),
        })?;
        copies.resize(2 * BLOCK as usize, 0);
        let (first, second) = copies.split_at(BLOCK as usize);
        let (superblock, _) = Superblock::newer([first, second], &place)?;
        let geometry = superblock.geometry;
        let damaged = |copy: &&&[u8]| !Superblock::is_good(copy);
        Ok(Self {
            version: VERSION,
            engine: geometry.engine,
            bucket_fill: (geometry.engine == Engine::Hash).then_some(geometry.bucket_fill),
            page: ByteSize(geometry.page_bytes),
            segment: ByteSize(geometry.segment_bytes),
            log: ByteSize(geometry.ring_blocks * BLOCK),
            is_packed: geometry.is_packed,
            openings: superblock.epoch - 1,
            last_commit: superblock.last_seq,
            damaged_copies: [first, second].iter().filter(damaged).count() as u64,
        })
    }
}
