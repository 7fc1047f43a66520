//! The buffer cache: metadata blocks in memory, and those that have to go to their place.
//!
//! Linux 6.18, `fs/buffer.c`: a metadata block is read before it is changed, and stays cached. Blocks of a committed
//! transaction are dirty (jbd2's checkpoint list, XFS's AIL) and are written by the flusher when they are old, by
//! `sync`, or when the log needs the space (`fs/jbd2/checkpoint.c`, `fs/xfs/xfs_trans_ail.c`).
//!
//! A block that was never changed before is taken to be known: bitmaps of untouched groups are flagged so in ext4 and
//! made on the spot. The cache takes no memory from the pages.

use std::collections::{BTreeMap, BTreeSet};

use flashwise_block::{BlockDevice, Nanos, Operation};

use crate::block::{Bio, Purpose};
use crate::error::Result;
use crate::fs::transaction::{Touched, TouchedBuffer};
use crate::kernel::Kernel;

/// Which metadata is in memory, by its first byte on the drive.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// Changed at some time.
    known: BTreeSet<u64>,
    /// Known, and not in memory.
    dropped: BTreeSet<u64>,
    /// Committed and not in their place: bytes, and since when.
    dirty: BTreeMap<u64, (u64, Nanos)>,
}

impl Buffers {
    /// A buffer is changed; whether it has to be read first.
    fn get(&mut self, offset: u64, fresh: bool) -> bool {
        self.known.insert(offset);
        self.dropped.remove(&offset) && !fresh
    }

    pub(crate) fn mark_dirty(&mut self, offset: u64, bytes: u64, now: Nanos) {
        self.dirty.entry(offset).or_insert((bytes, now));
    }

    /// Freed metadata is not written any more.
    pub(crate) fn forget(&mut self, offset: u64) {
        self.dirty.remove(&offset);
        self.known.remove(&offset);
        self.dropped.remove(&offset);
    }

    pub(crate) fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Takes those that became dirty at or before `until`, in the order of the drive.
    fn take_dirty(&mut self, until: Nanos) -> Vec<(u64, u64)> {
        let old: Vec<(u64, u64)> =
            self.dirty.iter().filter(|(_, (_, since))| *since <= until).map(|(&at, &(bytes, _))| (at, bytes)).collect();
        old.iter().for_each(|(at, _)| {
            self.dirty.remove(at);
        });
        old
    }

    /// `drop_caches`: what is neither dirty nor in a transaction.
    pub(crate) fn drop_clean(&mut self, busy: impl Fn(u64) -> bool) {
        let clean = self.known.iter().copied().filter(|at| !self.dirty.contains_key(at) && !busy(*at));
        self.dropped = clean.collect();
    }
}

impl<D: BlockDevice> Kernel<D> {
    /// Buffers are about to change, or needed: those that are not in memory are read, one after another.
    pub(crate) fn read_buffers(&mut self, touched: &Touched) -> Result<()> {
        for &TouchedBuffer { offset, bytes, .. } in &touched.buffers {
            if self.buffers.get(offset, touched.fresh.contains(&offset)) {
                self.counters.buffers_read += 1;
                let ticket = self.new_ticket();
                self.submit_for(ticket, Bio::new(Operation::Read, offset, bytes, Purpose::Ticket(ticket)))?;
                self.redeem(ticket)?;
            }
        }
        Ok(())
    }

    /// As [`Self::read_buffers`] where nothing may be waited for: their owners are in memory, so they are too.
    pub(crate) fn hold_buffers(&mut self, touched: &Touched) {
        for buffer in &touched.buffers {
            self.buffers.get(buffer.offset, true);
        }
    }

    /// Writes metadata that has been dirty since `until` to its place. With `wait`, until it is there.
    pub(crate) fn write_buffers(&mut self, until: Nanos, wait: bool) -> Result<()> {
        let old = self.buffers.take_dirty(until);
        if old.is_empty() {
            return Ok(());
        }
        let ticket = wait.then(|| self.new_ticket());
        self.queue.plug();
        for (offset, bytes) in old {
            self.layout.buffer_written(offset);
            let purpose = ticket.map_or(Purpose::Nothing, Purpose::Ticket);
            let mut bio = Bio::new(Operation::Write, offset, bytes, purpose);
            bio.segments = bytes.div_ceil(crate::PAGE) as u32;
            match ticket {
                Some(ticket) => self.submit_for(ticket, bio)?,
                None => self.queue.submit(bio)?,
            }
        }
        self.queue.unplug()?;
        match ticket {
            Some(ticket) => self.redeem(ticket).map(|_| ()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_read_again_only_after_it_was_dropped() {
        let mut buffers = Buffers::default();
        assert!(!buffers.get(4096, false), "never changed before");
        buffers.get(8192, false);
        buffers.mark_dirty(8192, 4096, Nanos(5));
        buffers.drop_clean(|_| false);
        assert!(buffers.get(4096, false));
        assert!(!buffers.get(4096, false));
        assert!(!buffers.get(8192, false), "dirty ones stay");
        assert!(buffers.take_dirty(Nanos(4)).is_empty());
        assert_eq!(buffers.take_dirty(Nanos(5)), [(8192, 4096)]);
        assert!(!buffers.has_dirty());
    }
}
