//! Direct I/O, and what calls read into and write from.
//!
//! Linux 6.18, `fs/iomap/direct-io.c` `iomap_dio_rw`, `fs/ext4/file.c` `ext4_dio_write_iter`: dirty pages of the range
//! are written first and cached ones dropped; requests go to where the file lies, in bios of at most 256 pages, and are
//! waited for. Blocks without a place get one, unwritten, before, and are written when the data is there. A write to
//! blocks that are written already, with `O_DSYNC`, uses FUA where the drive has it and needs no flush then.

use flashwise_block::{BlockDevice, ByteSize, Operation};

use crate::PAGE;
use crate::block::{Bio, Purpose};
use crate::error::{KernelError, Result};
use crate::fs::inode::{Ino, Inode};
use crate::fs::transaction::Touched;
use crate::kernel::Kernel;

/// Where a read puts what it reads.
#[derive(Debug)]
pub enum ReadInto<'a> {
    /// Into these bytes. A kernel without data fills them with zeros.
    Bytes(&'a mut [u8]),
    /// Nowhere: as many bytes are read and none is given.
    Nothing(ByteSize),
}

/// What a write writes.
#[derive(Clone, Copy, Debug)]
pub enum WriteFrom<'a> {
    /// These bytes. A kernel without data takes their number alone.
    Bytes(&'a [u8]),
    /// As many zeros.
    Nothing(ByteSize),
}

impl<'a> From<&'a mut [u8]> for ReadInto<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<ByteSize> for ReadInto<'_> {
    fn from(bytes: ByteSize) -> Self {
        Self::Nothing(bytes)
    }
}

impl<'a> From<&'a [u8]> for WriteFrom<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<ByteSize> for WriteFrom<'_> {
    fn from(bytes: ByteSize) -> Self {
        Self::Nothing(bytes)
    }
}

impl ReadInto<'_> {
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Nothing(bytes) => bytes.0,
        }
    }

    /// Puts bytes, or zeros, at a place.
    #[inline]
    pub(crate) fn fill(&mut self, at: usize, length: usize, source: Option<&[u8]>) {
        let Self::Bytes(bytes) = self else { return };
        let Some(target) = bytes.get_mut(at..at + length) else { return };
        match source {
            Some(source) => target.copy_from_slice(source),
            None => target.fill(0),
        }
    }
}

impl WriteFrom<'_> {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Nothing(bytes) => bytes.0,
        }
    }

    /// Copies the bytes from a place on.
    #[inline]
    pub(crate) fn copy(&self, at: usize, target: &mut [u8]) {
        match self {
            Self::Bytes(bytes) => target.copy_from_slice(&bytes[at..at + target.len()]),
            Self::Nothing(_) => target.fill(0),
        }
    }
}

impl<D: BlockDevice> Kernel<D> {
    fn check_alignment(&self, offset: u64, end: u64) -> Result<()> {
        let sector = self.queue.device().info().logical_block.0.max(1);
        match offset.is_multiple_of(sector) && end.is_multiple_of(sector) {
            true => Ok(()),
            false => Err(KernelError::Invalid(format!(
                "direct I/O of bytes {offset} to {end}; offset and length must be multiples of {sector}"
            ))),
        }
    }

    pub(crate) fn direct_read(
        &mut self,
        ino: Ino,
        offset: u64,
        end: u64,
        size: u64,
        mut into: ReadInto<'_>,
    ) -> Result<u64> {
        self.check_alignment(offset, end)?;
        let last = end.min(size);
        if offset >= last {
            return Ok(0);
        }
        let ticket = self.start_direct_read(ino, offset, last)?;
        let ticket = self.redeem(ticket)?;
        ticket.fill((last - offset) as usize, &mut into);
        Ok(last - offset)
    }

    /// Submits the reads of a range that the file has; a ticket is to be redeemed for them.
    pub(crate) fn start_direct_read(&mut self, ino: Ino, offset: u64, last: u64) -> Result<u64> {
        self.write_and_wait(ino, offset / PAGE, last.div_ceil(PAGE))?;
        let ticket = self.new_ticket();
        self.queue.plug();
        let submitted = self.submit_reads(ino, offset, last, ticket);
        self.unplug_for(ticket, submitted)
    }

    fn submit_reads(&mut self, ino: Ino, offset: u64, last: u64, ticket: u64) -> Result<()> {
        let sector = self.queue.device().info().logical_block.0.max(1);
        let mut at = offset;
        while at < last {
            let Some(inode) = self.inodes.get(&ino) else { break };
            let block = at / PAGE;
            let place = inode.extents.at(block);
            let stop = match place {
                Some(extent) => extent.end().saturating_mul(PAGE),
                None => (block + inode.extents.hole(block, last.div_ceil(PAGE) - block)).saturating_mul(PAGE),
            };
            let stop = stop.min(last);
            if let Some(extent) = place.filter(|extent| !extent.unwritten) {
                let from = extent.physical * PAGE + (at - extent.logical * PAGE);
                let bytes = (stop - at).next_multiple_of(sector);
                let purpose = Purpose::Direct { ticket, at: at - offset };
                let bio = Bio::new(Operation::Read, from, bytes, purpose);
                self.submit_for(ticket, Bio { segments: bytes.div_ceil(PAGE) as u32, ..bio })?;
            }
            at = stop;
        }
        Ok(())
    }

    /// Whether a range has been written before, all of it: then its blocks need no change (`ext4_overwrite_io`).
    pub(crate) fn overwrites(&self, ino: Ino, offset: u64, end: u64) -> bool {
        let (first, last) = (offset / PAGE, end.div_ceil(PAGE));
        self.inodes.get(&ino).is_some_and(|inode| {
            end <= inode.size
                && inode.extents.hole(first, 1) == 0
                && (first..last).all(|block| inode.extents.at(block).is_some_and(|extent| !extent.unwritten))
        })
    }

    /// Whether a write of a range is durable once the drive has completed it, with FUA where the drive has a volatile
    /// cache: it changes no block's place or state, and no such change of the file waits for its commit.
    pub(crate) fn is_durable_by_fua(&self, ino: Ino, offset: u64, end: u64) -> bool {
        let limits = self.queue.limits();
        let drive_keeps_it = limits.fua || !limits.volatile_cache;
        drive_keeps_it && self.overwrites(ino, offset, end) && self.is_committed(ino)
    }

    /// `ext4_inode_datasync_dirty`: whether all that `fdatasync` needs of a file's inode is in the journal or in a
    /// fast commit.
    fn is_committed(&self, ino: Ino) -> bool {
        let in_log = |inode: &Inode| inode.datasync_tid <= self.journal.committed;
        self.inodes.get(&ino).is_none_or(in_log) || (self.config.fast_commit && !self.awaits_fast_commit(ino))
    }

    pub(crate) fn direct_write(
        &mut self,
        ino: Ino,
        offset: u64,
        end: u64,
        from: &WriteFrom<'_>,
        syncs: Option<bool>,
    ) -> Result<()> {
        self.check_alignment(offset, end)?;
        let (first, last) = (offset / PAGE, end.div_ceil(PAGE));
        let is_whole = offset.is_multiple_of(PAGE) && end.is_multiple_of(PAGE);
        let overwrites = self.overwrites(ino, offset, end);
        if !is_whole && !overwrites {
            // Linux falls back to the page cache for blocks that are written in part for the first time.
            self.buffered_write(ino, offset, end, from)?;
            self.write_and_wait(ino, first, last)?;
            self.cache.invalidate(ino, first, last);
            return match syncs {
                Some(datasync) => self.sync_inode(ino, first, last, datasync),
                None => Ok(()),
            };
        }
        let limits = *self.queue.limits();
        let fua = overwrites && syncs == Some(true) && limits.fua && limits.volatile_cache;
        let ticket = self.start_direct_write(ino, offset, end, from, fua)?;
        self.redeem(ticket)?;
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.size = inode.size.max(end);
        }
        self.end_io(ino, first, last, &Ok(()));
        match syncs {
            // What the drive has taken with FUA is durable; only a change of the inode may still be needed.
            Some(true) if fua && self.is_committed(ino) => Ok(()),
            Some(datasync) => self.sync_inode(ino, first, last, datasync),
            None => Ok(()),
        }
    }

    /// Submits the writes of a range; a ticket is to be redeemed for them, then [`Self::end_io`] is to be called. Where
    /// only a part could be submitted, that part is waited for.
    pub(crate) fn start_direct_write(
        &mut self,
        ino: Ino,
        offset: u64,
        end: u64,
        from: &WriteFrom<'_>,
        fua: bool,
    ) -> Result<u64> {
        let (first, last) = (offset / PAGE, end.div_ceil(PAGE));
        self.write_and_wait(ino, first, last)?;
        self.drop_pages(ino, first, last)?;
        let grows = self.inodes.get(&ino).is_some_and(|inode| end > inode.size);
        if grows {
            let mut touched = Touched::default();
            self.layout.orphan(ino, &mut touched);
            self.log(&touched)?;
        }
        let ticket = self.new_ticket();
        self.queue.plug();
        let submitted = self.submit_direct(ino, offset, end, from, ticket, fua);
        self.unplug_for(ticket, submitted)
    }

    /// Sends what was plugged for a ticket. If a part of it could not be submitted, the rest completes before anybody
    /// uses its place or its memory for something else.
    fn unplug_for(&mut self, ticket: u64, submitted: Result<()>) -> Result<u64> {
        let unplugged = self.queue.unplug();
        match submitted.and(unplugged.map_err(KernelError::from)) {
            Ok(()) => Ok(ticket),
            Err(error) => {
                // The first failure is the one to report.
                let _ = self.redeem(ticket);
                Err(error)
            }
        }
    }

    fn submit_direct(
        &mut self,
        ino: Ino,
        offset: u64,
        end: u64,
        from: &WriteFrom<'_>,
        ticket: u64,
        fua: bool,
    ) -> Result<()> {
        let mut at = offset;
        while at < end {
            let block = at / PAGE;
            let known = self.inodes.get(&ino).and_then(|inode| inode.extents.at(block));
            let extent = match known {
                Some(extent) => extent,
                None => {
                    let free = self.layout.free_blocks().saturating_sub(self.delayed);
                    if free == 0 && !self.reclaim_space()? {
                        return Err(KernelError::NoSpace);
                    }
                    let wanted = (end.div_ceil(PAGE) - block).min(self.layout.max_allocation());
                    let free = self.layout.free_blocks().saturating_sub(self.delayed);
                    if free == 0 {
                        return Err(KernelError::NoSpace);
                    }
                    self.allocate(ino, block, wanted.min(free))?
                }
            };
            let stop = end.min(extent.end().saturating_mul(PAGE));
            // A bio has 256 pages at most.
            let stop = stop.min(at + 256 * PAGE);
            let mut data = self.config.data.then(|| vec![0; (stop - at) as usize]);
            if let Some(data) = &mut data {
                from.copy((at - offset) as usize, data);
            }
            let place = extent.physical * PAGE + (at - extent.logical * PAGE);
            let purpose = Purpose::Direct { ticket, at: at - offset };
            let bio = Bio::new(Operation::Write, place, stop - at, purpose);
            let segments = (stop - at).div_ceil(PAGE) as u32;
            self.submit_for(ticket, Bio { segments, data, fua, ..bio })?;
            at = stop;
        }
        Ok(())
    }
}
