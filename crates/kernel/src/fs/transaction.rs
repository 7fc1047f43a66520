//! Changes of metadata that become durable together.
//!
//! Linux 6.18: `fs/jbd2/transaction.c` (a transaction's list of buffers), `fs/xfs/xfs_log_cil.c` (the committed item
//! list). For both it is a set of buffers; XFS logs the parts of 128 bytes that were changed, and inodes as items of
//! their own.

use std::collections::{BTreeMap, BTreeSet};

use flashwise_block::Nanos;

use crate::fs::ext4::fast_commit::Tracked;
use crate::fs::extents::Extents;
use crate::fs::inode::Ino;

/// A metadata buffer that a change touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TouchedBuffer {
    /// Its first byte on the drive.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// Bitmap of the 128-byte chunks that changed.
    pub(crate) chunks: u128,
}

/// What a change touches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched {
    /// In the order of the drive. A change touches a few, so a list takes half the time of a tree.
    pub(crate) buffers: Vec<TouchedBuffer>,
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
        match self.buffers.binary_search_by_key(&offset, |buffer| buffer.offset) {
            Ok(at) => self.buffers[at].chunks |= mask,
            Err(at) => self.buffers.insert(at, TouchedBuffer { offset, bytes, chunks: mask }),
        }
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
    /// Metadata buffers that changed: first byte → (length, bitmap of the 128-byte chunks that changed).
    pub(crate) buffers: BTreeMap<u64, (u64, u128)>,
    /// Metadata blocks that were freed.
    pub(crate) revoked: u32,
    /// Inodes that changed, with the number of their extents where these changed too.
    pub(crate) inodes: BTreeMap<Ino, Option<usize>>,
    /// Space that becomes free when it is committed: (first block, blocks).
    pub(crate) freed: Vec<(u64, u64)>,
    /// Names that appeared or went.
    pub(crate) names: BTreeMap<String, Option<Ino>>,
    /// Inodes that are gone.
    pub(crate) removed: BTreeSet<Ino>,
    /// What its next fast commit writes.
    pub(crate) fast: Tracked,
}

impl Transaction {
    pub(crate) fn new(tid: u64, started_at: Nanos) -> Self {
        Self { tid, started_at, ..Self::default() }
    }

    pub(crate) fn add(&mut self, touched: &Touched) {
        for &TouchedBuffer { offset, bytes, chunks } in &touched.buffers {
            self.buffers.entry(offset).or_insert((bytes, 0)).1 |= chunks;
        }
        self.revoked += touched.revoked;
        self.freed.extend_from_slice(&touched.freed);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffers.is_empty() && self.inodes.is_empty() && self.freed.is_empty()
    }
}
