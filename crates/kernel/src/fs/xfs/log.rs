//! XFS's log: how long a checkpoint is, and where it goes.
//!
//! Linux 6.18, `fs/xfs/xfs_log_cil.c` (a checkpoint), `xfs_log.c` `xlog_sync` (a record), `xfs_inode_item.c`,
//! `xfs_buf_item.c` (an item), `libxfs/xfs_log_format.h` (sizes):
//!
//! ```text
//!   record      header of 512 bytes · at most 32256 bytes of regions, all rounded up to 512 bytes
//!   checkpoint  start · transaction header of 16 bytes · items · commit; each region has a header of 12 bytes
//!   inode       format of 56 bytes · core of 176 bytes · where they changed, its extents, 16 bytes each
//!   buffer      format of 24 bytes and its bitmap · the chunks of 128 bytes that changed
//! ```
//!
//! An item that is logged again before it has gone to its place is logged with all that was logged of it since
//! (`Documentation/filesystems/xfs/xfs-delayed-logging-design.rst`, relogging): its chunks add up.
//!
//! The last record is written behind a flush and is durable when it completes.

use std::collections::BTreeMap;

use crate::fs::inode::Ino;
use crate::fs::layout::LogWrite;
use crate::fs::transaction::Transaction;

const REGION: u64 = 12;
const RECORD_HEADER: u64 = 512;
/// `logbsize`, less the header.
const RECORD: u64 = (32 << 10) - RECORD_HEADER;
const SECTOR: u64 = 512;

/// The log's place, and where it goes on.
#[derive(Debug)]
pub(crate) struct Log {
    first: u64,
    bytes: u64,
    head: u64,
    used: u64,
    /// What was logged of buffers that are not in their place.
    chunks: BTreeMap<u64, u128>,
    /// Inodes whose extents were logged, by their cluster, with how many those were.
    extents: BTreeMap<u64, BTreeMap<Ino, usize>>,
}

/// Bytes of a checkpoint without record headers. `short_form` is what the directory keeps in its inode.
fn checkpoint_bytes<'a>(
    inodes: impl Iterator<Item = Option<usize>>,
    buffers: impl Iterator<Item = &'a (u64, u128)>,
    has_names: bool,
    short_form: u64,
) -> u64 {
    let region = |bytes: u64| REGION + bytes;
    let mut bytes = region(0) + region(16) + region(0);
    for extents in inodes {
        bytes += region(56) + region(176);
        // More than 21 extents are in a tree; its root is logged.
        bytes += match extents {
            Some(count @ 1..=21) => region(16 * count as u64),
            Some(22..) => region(24),
            _ => 0,
        };
    }
    if has_names {
        bytes += region(56) + region(176) + if short_form > 0 { region(short_form) } else { 0 };
    }
    for &(length, mask) in buffers {
        let words = (length / 128).div_ceil(32).max(1);
        let runs = u64::from((mask & !(mask << 1)).count_ones());
        bytes += region(24 + 4 * words) + runs * REGION + 128 * u64::from(mask.count_ones());
    }
    bytes
}

impl Log {
    pub(crate) fn new(first: u64, bytes: u64) -> Self {
        Self { first, bytes, head: 0, used: 0, chunks: BTreeMap::new(), extents: BTreeMap::new() }
    }

    #[cfg(test)]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    pub(crate) fn emptied(&mut self) {
        self.used = 0;
    }

    /// A piece of the log; a record does not go round the end here, where it would be two requests.
    fn place(&mut self, bytes: u64) -> (u64, u64) {
        if self.head + bytes > self.bytes {
            self.used += self.bytes - self.head;
            self.head = 0;
        }
        let at = self.first + self.head;
        self.head += bytes;
        self.used += bytes;
        (at, bytes)
    }

    /// A buffer, or a cluster of inodes, is in its place.
    pub(crate) fn written(&mut self, offset: u64) {
        self.chunks.remove(&offset);
        self.extents.remove(&offset);
    }

    /// `clusters` says where each inode of the transaction is.
    pub(crate) fn write(
        &mut self,
        transaction: &Transaction,
        short_form: u64,
        clusters: &BTreeMap<Ino, u64>,
    ) -> LogWrite {
        let mut buffers = transaction.buffers.clone();
        for (offset, (_, mask)) in &mut buffers {
            let all = self.chunks.entry(*offset).or_insert(0);
            *all |= *mask;
            *mask = *all;
        }
        let mut inodes = transaction.inodes.clone();
        for (ino, extents) in &mut inodes {
            let known = self.extents.entry(clusters.get(ino).copied().unwrap_or(0)).or_default();
            match extents {
                Some(count) => {
                    known.insert(*ino, *count);
                }
                None => *extents = known.get(ino).copied(),
            }
        }
        let has_names = !transaction.names.is_empty();
        let mut rest = checkpoint_bytes(inodes.values().copied(), buffers.values(), has_names, short_form);
        let whole = rest + rest.div_ceil(RECORD) * 2 * SECTOR;
        let checkpoint_first = self.used + whole > self.bytes / 4 * 3;
        let mut write = LogWrite { checkpoint_first, ..LogWrite::default() };
        while rest > RECORD {
            let place = self.place(RECORD + RECORD_HEADER);
            write.body.push(place);
            rest -= RECORD;
        }
        write.record = self.place((rest + RECORD_HEADER).next_multiple_of(SECTOR));
        write
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::transaction::Touched;
    use flashwise_block::Nanos;

    /// Lengths that were captured: an overwrite with `fsync` logs two sectors, an append that allocates three.
    #[test]
    fn records_are_as_long_as_the_kernels() {
        let mut log = Log::new(0, 64 << 20);
        let mut transaction = Transaction::new(1, Nanos(0));
        transaction.inodes.insert(5, None);
        assert_eq!(log.write(&transaction, 0, &BTreeMap::new()).record, (0, 2 * 512));
        transaction.inodes.insert(5, Some(2));
        let mut touched = Touched::default();
        for (offset, bytes) in [(512, 512), (4096, 4096), (8192, 4096)] {
            touched.buffer(offset, bytes, 56, 8);
        }
        transaction.add(&touched);
        assert_eq!(log.write(&transaction, 0, &BTreeMap::new()).record, (1024, 3 * 512));
    }

    #[test]
    fn a_long_checkpoint_takes_several_records() {
        let mut log = Log::new(0, 64 << 20);
        let mut transaction = Transaction::new(1, Nanos(0));
        (0..1000).for_each(|ino| {
            transaction.inodes.insert(ino, None);
        });
        let write = log.write(&transaction, 0, &BTreeMap::new());
        assert_eq!(write.body.len(), 7);
        assert!(write.body.iter().all(|&(_, bytes)| bytes == 32 << 10));
    }

    #[test]
    fn the_log_goes_round_and_asks_for_a_checkpoint() {
        let mut log = Log::new(0, 1 << 20);
        let mut transaction = Transaction::new(1, Nanos(0));
        (0..1000).for_each(|ino| {
            transaction.inodes.insert(ino, None);
        });
        let mut asked = 0;
        for _ in 0..20 {
            let write = log.write(&transaction, 0, &BTreeMap::new());
            assert!(write.record.0 + write.record.1 <= 1 << 20);
            if write.checkpoint_first {
                asked += 1;
                log.emptied();
            }
        }
        assert!(asked > 2);
    }
}
