//! Changes of metadata that become durable together.
//!
//! Linux 6.18: `fs/jbd2/transaction.c` (a transaction's list of buffers), `fs/xfs/xfs_log_cil.c` (the committed item
//! list). For both it is a set of buffers; XFS logs the parts of 128 bytes that were changed, and inodes as items of
//! their own.

use std::collections::{BTreeMap, BTreeSet};

use flashwise_block::Nanos;

use crate::fs::extents::Extents;
use crate::fs::inode::Ino;

/// What a change touches: metadata buffers by their first byte on the drive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched {
    /// First byte → (length, bitmap of the 128-byte chunks that changed).
    pub(crate) buffers: BTreeMap<u64, (u64, u128)>,
    /// Buffers that are new: their old content is not read.
    pub(crate) fresh: BTreeSet<u64>,
    /// Metadata blocks that were freed: ext4 notes that they are not to be replayed.
    pub(crate) revoked: u32,
    /// Blocks of the file system's own that are free with the transaction.
    pub(crate) freed: Vec<(u64, u64)>,
}

impl Touched {
    /// A buffer of `bytes` at `offset` changes at its byte `at`, for `length` bytes.
    pub(crate) fn buffer(&mut self, offset: u64, bytes: u64, at: u64, length: u64) {
        let (first, last) = (at / 128, (at + length.max(1) - 1) / 128);
        let mask = (first..=last.min(127)).fold(0, |mask, chunk| mask | 1u128 << chunk);
        let entry = self.buffers.entry(offset).or_insert((bytes, 0));
        entry.1 |= mask;
    }

    /// A whole block, numbered in blocks.
    pub(crate) fn block(&mut self, block: u64) {
        self.buffer(block * crate::PAGE, crate::PAGE, 0, crate::PAGE);
    }

    /// A whole block that is used for the first time.
    pub(crate) fn new_block(&mut self, block: u64) {
        self.block(block);
        self.fresh.insert(block * crate::PAGE);
    }
}

/// What a power cut would leave of a file's metadata.
#[derive(Clone, Debug)]
pub(crate) struct DurableInode {
    pub(crate) size: u64,
    pub(crate) extents: Extents,
    pub(crate) tree: Vec<u64>,
}

/// A transaction that is running or committing.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) tid: u64,
    pub(crate) started_at: Nanos,
    pub(crate) touched: Touched,
    /// Inodes that changed, with the number of their extents where these changed too.
    pub(crate) inodes: BTreeMap<Ino, Option<usize>>,
    /// Space that becomes free when it is committed: (first block, blocks).
    pub(crate) freed: Vec<(u64, u64)>,
    /// Names that appeared or went.
    pub(crate) names: BTreeMap<String, Option<Ino>>,
    /// Inodes that are gone.
    pub(crate) removed: BTreeSet<Ino>,
}

impl Transaction {
    pub(crate) fn new(tid: u64, started_at: Nanos) -> Self {
        Self { tid, started_at, ..Self::default() }
    }

    pub(crate) fn add(&mut self, touched: &Touched) {
        for (&offset, &(bytes, mask)) in &touched.buffers {
            self.touched.buffers.entry(offset).or_insert((bytes, 0)).1 |= mask;
        }
        self.touched.revoked += touched.revoked;
        self.freed.extend_from_slice(&touched.freed);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.touched.buffers.is_empty() && self.inodes.is_empty() && self.freed.is_empty()
    }
}
