//! What a store has done since it was opened.

use flashwise_block::{ByteSize, DeviceCounters};
use serde::{Deserialize, Serialize};

/// I/O by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoStats {
    /// Log blocks.
    pub log_bytes: ByteSize,
    /// Whole pages.
    pub image_bytes: ByteSize,
    /// Delta blocks.
    pub delta_bytes: ByteSize,
    /// Superblocks.
    pub superblock_bytes: ByteSize,
    /// Space given back to the medium.
    pub given_back_bytes: ByteSize,
    /// In how many requests.
    pub give_backs: u64,
    /// Flushes of the medium.
    pub flushes: u64,
    /// Requests that read.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: ByteSize,
}

/// A store's counters since it was opened, and its present size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Keys and values of committed puts, and keys of committed deletes.
    pub user_bytes: ByteSize,
    /// Batches committed.
    pub commits: u64,
    /// Transactions that failed with a conflict.
    pub conflicts: u64,
    /// What went to the medium and came from it.
    pub io: IoStats,
    /// Pages that were written as deltas, and as whole images.
    pub delta_writes: u64,
    /// Pages that were written whole.
    pub image_writes: u64,
    /// The present threshold T: a page whose changed segments exceed it is written whole.
    pub delta_threshold: ByteSize,
    /// Pages in use, maps included, and pages set aside for the next buckets of a table.
    pub pages: u64,
    /// Size of a page.
    pub page_bytes: ByteSize,
    /// Pages in the cache, and those of them that are dirty.
    pub cached_pages: u64,
    /// Dirty pages in the cache.
    pub dirty_pages: u64,
    /// Memory for where pages are, besides the cache: what is known of each page's slots, and the extents of tables.
    pub index_memory: ByteSize,
    /// Bytes of the log that a restart would read.
    pub log_used: ByteSize,
    /// Memory for values that open snapshots need.
    pub snapshot_bytes: ByteSize,
    /// Counters of the device, if the store lies on one that has some; since the device came up.
    pub device: Option<DeviceCounters>,
}

impl Stats {
    /// Bytes written to the medium per user byte; `None` before the first commit.
    pub fn host_write_amplification(&self) -> Option<f64> {
        let IoStats { log_bytes, image_bytes, delta_bytes, superblock_bytes, .. } = self.io;
        let written = log_bytes + image_bytes + delta_bytes + superblock_bytes;
        (self.user_bytes.0 > 0).then(|| written.0 as f64 / self.user_bytes.0 as f64)
    }
}
