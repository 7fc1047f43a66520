//! A file system in the manner of ext4, as far as creating, looking up and deleting files goes.
//!
//! ```text
//!   journal │ group 0: bitmap of blocks · bitmap of inodes · inode table · data │ group 1: … │ …
//! ```
//!
//! **Where things are.** Groups of 128 MiB, each with 8,192 inodes of 256 bytes. A file's inode is the first free one
//! of its directory's group, then of the next ones. A directory is a tree of blocks by the hash of the name: what an
//! entry is found in is drawn from the hash, over as many leaves as its entries fill to three quarters.
//!
//! **What an operation touches.** Creating and deleting: the bitmap of inodes, the group's descriptor, the inode's
//! block of the table, the leaf of the directory, the directory's own inode. Deleting frees data blocks too. Looking
//! up: the leaf and the inode's block. A block that is not in the cache is read, 4 KiB, while the program waits.
//!
//! **Journal.** Blocks that change gather in a transaction. It commits when it is 5 s old, holds a quarter of the
//! journal, or is asked to be durable: data first (ordered mode), then a descriptor and the blocks in the journal one
//! after the other, a flush, and the commit block with force unit access. Their places on the drive are written when
//! the journal needs the space, sorted and with neighbours as one request, or when a block leaves memory.
//!
//! Source: Mathur et al., *The new ext4 filesystem*, Ottawa Linux Symposium 2007, sections 2 and 3; the kernel's
//! documentation of ext4's disk layout.
//!
//! **Simplified.** The program waits for a commit, where the kernel lets it continue with the next transaction.
//! Superblock, time stamps in lookups, inode lists of orphans and delayed allocation are left out; a leaf that is split
//! is counted by the number of leaves alone.

use std::collections::{BTreeMap, BTreeSet};

use flashwise_block::{BlockDevice, BlockError, ByteSize, Nanos, Request, interrupt};

use super::cache::BlockCache;

const BLOCK: u64 = 4096;
const BLOCKS_PER_GROUP: u64 = 32_768;
const INODES_PER_GROUP: u64 = 8_192;
const INODES_PER_BLOCK: u64 = BLOCK / 256;
/// Age at which a transaction commits.
const COMMIT_AFTER: Nanos = Nanos::secs(5);
/// Blocks that one descriptor of the journal lists: 16 bytes each.
const BLOCKS_PER_DESCRIPTOR: u64 = 250;
/// Bytes of a directory entry with Bonnie++'s names of about a dozen characters.
const ENTRY_BYTES: u64 = 24;
/// Where a group has the leaves of its directory.
const FIRST_LEAF: u64 = 1_024;

/// How the file system is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    /// Bytes of memory for its metadata.
    pub(crate) memory_bytes: u64,
    pub(crate) journal_bytes: u64,
    /// Bytes of data in each file.
    pub(crate) file_bytes: u64,
    /// Largest request.
    pub(crate) request_bytes: u64,
}

impl Default for Made {
    /// 1 GiB of memory for metadata, mke2fs's journal of 128 MiB, empty files as Bonnie++ makes them.
    fn default() -> Self {
        Self { memory_bytes: 1 << 30, journal_bytes: 128 << 20, file_bytes: 0, request_bytes: 512 << 10 }
    }
}

/// One directory with many files on a device.
pub(crate) struct FileSystem<'a> {
    device: &'a mut dyn BlockDevice,
    made: Made,
    cache: BlockCache,
    /// Blocks that the running transaction has changed.
    transaction: BTreeSet<u64>,
    /// Data that must be on the drive before the transaction: first block, number of blocks.
    ordered: Vec<(u64, u64)>,
    begun: Nanos,
    /// Blocks that are in the journal and not in their place, and the space that they take there.
    to_check_point: BTreeSet<u64>,
    journal_used: u64,
    journal_head: u64,
    /// Inode and first data block, by file.
    files: BTreeMap<u64, (u64, u64)>,
    /// Leaves of the directory; they are never given back.
    leaves: u64,
    free_inodes: BTreeSet<u64>,
    next_inode: u64,
    next_data: u64,
}

impl<'a> FileSystem<'a> {
    /// A new one, without files; what making it writes is not counted.
    pub(crate) fn new(device: &'a mut dyn BlockDevice, made: Made) -> Self {
        let begun = device.now();
        Self {
            device,
            cache: BlockCache::new((made.memory_bytes / BLOCK) as usize),
            made,
            transaction: BTreeSet::new(),
            ordered: Vec::new(),
            begun,
            to_check_point: BTreeSet::new(),
            journal_used: 0,
            journal_head: 0,
            files: BTreeMap::new(),
            leaves: 0,
            free_inodes: BTreeSet::new(),
            next_inode: 1,
            next_data: 0,
        }
    }

    /// The device's clock.
    pub(crate) fn now(&self) -> Nanos {
        self.device.now()
    }

    /// Lets the program think.
    pub(crate) fn think(&mut self, time: Nanos) -> Result<(), BlockError> {
        self.device.pause(time)
    }

    fn journal_blocks(&self) -> u64 {
        self.made.journal_bytes / BLOCK
    }

    /// First block of a group, behind the journal.
    fn group(&self, inode: u64) -> u64 {
        let groups = (self.device.info().capacity.bytes() / BLOCK - self.journal_blocks()) / BLOCKS_PER_GROUP;
        self.journal_blocks() + inode / INODES_PER_GROUP % groups.max(1) * BLOCKS_PER_GROUP
    }

    fn inode_bitmap(&self, inode: u64) -> u64 {
        self.group(inode) + 1
    }

    fn descriptor(&self, inode: u64) -> u64 {
        // 64 descriptors share a block; they are at the start of the first group's data.
        self.group(0) + 600 + inode / INODES_PER_GROUP / 64
    }

    fn inode_block(&self, inode: u64) -> u64 {
        self.group(inode) + 2 + inode % INODES_PER_GROUP / INODES_PER_BLOCK
    }

    /// The directory's leaf with a file's entry.
    fn leaf(&self, file: u64) -> u64 {
        // Fibonacci hashing stands for the hash of the name: neighbouring numbers come to places far apart.
        let hash = file.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.group(0) + FIRST_LEAF + hash * self.leaves / (1 << 32)
    }

    /// Makes a file, with its data in memory.
    pub(crate) fn create(&mut self, file: u64) -> Result<(), BlockError> {
        let inode = self.free_inodes.pop_first().unwrap_or_else(|| {
            self.next_inode += 1;
            self.next_inode - 1
        });
        let data = self.next_data;
        self.files.insert(file, (inode, data));
        self.split_leaves()?;
        let blocks = self.made.file_bytes.div_ceil(BLOCK);
        if blocks > 0 {
            let first = self.data_block(data);
            self.next_data += blocks;
            self.ordered.push((first, blocks));
            self.change(self.group(inode))?;
        }
        self.change_entry(file, inode)
    }

    /// Adds the leaves that the entries need: new blocks, which nobody reads before.
    fn split_leaves(&mut self) -> Result<(), BlockError> {
        while self.leaves < (self.files.len() as u64 * ENTRY_BYTES).div_ceil(BLOCK * 3 / 4) {
            let leaf = self.group(0) + FIRST_LEAF + self.leaves;
            self.leaves += 1;
            self.make_room(leaf)?;
            self.note_change(leaf);
        }
        Ok(())
    }

    /// Looks a file up.
    pub(crate) fn stat(&mut self, file: u64) -> Result<(), BlockError> {
        let Some(&(inode, _)) = self.files.get(&file) else { return Ok(()) };
        self.bring(self.leaf(file))?;
        self.bring(self.inode_block(inode))
    }

    /// Deletes a file.
    pub(crate) fn delete(&mut self, file: u64) -> Result<(), BlockError> {
        let Some(&(inode, _)) = self.files.get(&file) else { return Ok(()) };
        if self.made.file_bytes > 0 {
            self.change(self.group(inode))?;
        }
        self.change_entry(file, inode)?;
        self.files.remove(&file);
        self.free_inodes.insert(inode);
        Ok(())
    }

    fn change_entry(&mut self, file: u64, inode: u64) -> Result<(), BlockError> {
        let directory = self.inode_block(0);
        let blocks =
            [self.inode_bitmap(inode), self.descriptor(inode), self.inode_block(inode), self.leaf(file), directory];
        blocks.into_iter().try_for_each(|block| self.change(block))?;
        let quarter = self.journal_blocks() / 4;
        let is_old = self.device.now().since(self.begun) >= COMMIT_AFTER;
        if is_old || self.transaction.len() as u64 >= quarter { self.commit() } else { Ok(()) }
    }

    fn data_block(&self, number: u64) -> u64 {
        // Data is behind the tables and the directory of each group.
        let per_group = BLOCKS_PER_GROUP - 4_096;
        self.group(number / per_group * INODES_PER_GROUP) + 4_096 + number % per_group
    }

    /// Gives a block its place in memory; whether it was there.
    fn make_room(&mut self, block: u64) -> Result<bool, BlockError> {
        let (was_there, left) = self.cache.touch(block, |block| self.transaction.contains(&block));
        // What is in the journal alone is written to its place before it leaves memory.
        if let Some(left) = left.filter(|left| self.to_check_point.remove(left)) {
            flashwise_block::execute(self.device, Request::write(ByteSize(left * BLOCK), ByteSize(BLOCK)))?;
        }
        Ok(was_there)
    }

    /// Brings a block into memory.
    fn bring(&mut self, block: u64) -> Result<(), BlockError> {
        if !self.make_room(block)? {
            flashwise_block::execute(self.device, Request::read(ByteSize(block * BLOCK), ByteSize(BLOCK)))?;
        }
        Ok(())
    }

    /// Changes a block in memory.
    fn change(&mut self, block: u64) -> Result<(), BlockError> {
        self.bring(block)?;
        self.note_change(block);
        Ok(())
    }

    fn note_change(&mut self, block: u64) {
        if self.transaction.is_empty() {
            self.begun = self.device.now();
        }
        self.transaction.insert(block);
    }

    /// Makes everything durable that was done.
    pub(crate) fn commit(&mut self) -> Result<(), BlockError> {
        if self.transaction.is_empty() {
            return Ok(());
        }
        let ordered = std::mem::take(&mut self.ordered);
        self.write_runs(ordered)?;
        let blocks = self.transaction.len() as u64;
        let in_journal = blocks + blocks.div_ceil(BLOCKS_PER_DESCRIPTOR) + 1;
        if self.journal_used + in_journal > self.journal_blocks() {
            self.check_point()?;
        }
        let (size, head) = (self.journal_blocks(), self.journal_head);
        let first = (in_journal - 1).min(size - head);
        self.write_runs(vec![(head, first), (0, in_journal - 1 - first)])?;
        flashwise_block::execute(self.device, Request::flush())?;
        let commit = (head + in_journal - 1) % size;
        flashwise_block::execute(self.device, Request::write(ByteSize(commit * BLOCK), ByteSize(BLOCK)).with_fua())?;
        self.journal_head = (head + in_journal) % size;
        self.journal_used += in_journal;
        self.to_check_point.append(&mut self.transaction);
        self.begun = self.device.now();
        Ok(())
    }

    /// Writes what is in the journal to its places.
    fn check_point(&mut self) -> Result<(), BlockError> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for block in std::mem::take(&mut self.to_check_point) {
            match runs.last_mut() {
                Some((first, length)) if *first + *length == block => *length += 1,
                _ => runs.push((block, 1)),
            }
        }
        self.write_runs(runs)?;
        flashwise_block::execute(self.device, Request::flush())?;
        self.journal_used = 0;
        Ok(())
    }

    /// Writes runs of blocks, as many at once as the device takes, and waits for all.
    fn write_runs(&mut self, runs: Vec<(u64, u64)>) -> Result<(), BlockError> {
        let step = self.made.request_bytes.min(self.device.info().max_transfer.bytes()) / BLOCK;
        for (first, length) in runs {
            for from in (0..length).step_by(step as usize) {
                let bytes = step.min(length - from) * BLOCK;
                self.device.submit(Request::write(ByteSize((first + from) * BLOCK), ByteSize(bytes)))?;
                if self.device.outstanding() >= self.device.info().queue_depth as usize {
                    self.wait()?;
                }
            }
        }
        while self.device.outstanding() > 0 {
            self.wait()?;
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), BlockError> {
        interrupt::check()?;
        self.device.wait()?.ok_or(BlockError::Protocol("the device lost a request"))?.result
    }
}
