//! XFS: four allocation groups, inodes in chunks of 64, a log in the third group.
//!
//! Linux 6.18 and xfsprogs 6.1 (`mkfs/xfs_mkfs.c`; `reflink` and `finobt` on, `rmapbt` off):
//!
//! ```text
//!   each group   sector 0 superblock · 1 AGF · 2 AGI · 3 AGFL · blocks 1 to 5 roots of the B-trees: free space by place
//!                and by size, inodes, free inodes, reference counts · 6 to 9 free list
//!   group 0      blocks 16 to 23: the first 64 inodes
//!   group 2      behind the headers the log: a 2048th of the drive, 64 MiB to 2 GiB
//! ```
//!
//! What a change touches (`fs/xfs/libxfs/xfs_{alloc,ialloc,bmap,dir2}.c`): allocating or freeing blocks the AGF and the
//! roots of both free-space trees; a new file the AGI, the roots of both inode trees and the directory; each 64th file
//! a new chunk. Inodes are logged as items of their own (`log.rs`) and written to their place in clusters of 16 KiB.
//!
//! The B-trees of free space are taken to have one block that changes: their depth is not kept here.

pub(crate) mod inodegc;
pub(crate) mod log;

use std::collections::BTreeSet;

use crate::PAGE;
use crate::error::{KernelError, Result};
use crate::fs::free_space::FreeSpace;
use crate::fs::inode::{Ino, Inode, Preallocation};
use crate::fs::layout::{Allocation, AllocationRequest, Layout, LogWrite};
use crate::fs::transaction::{Touched, Transaction};

const GROUPS: u64 = 4;
const SECTOR: u64 = 512;
const INODE_BYTES: u64 = 512;
const CHUNK_INODES: u64 = 64;
const CHUNK_BLOCKS: u64 = CHUNK_INODES * INODE_BYTES / PAGE;
/// `mp->m_inode_cluster_size` of a file system with checksums.
const CLUSTER: u64 = 16 << 10;
/// The directory, and the two inodes of the realtime device.
const FIRST_FILE: Ino = 5;
const ROOT: Ino = 2;
/// Extents in the inode: its 512 bytes less 176 of core, 16 each; and in a block of the tree.
const IN_INODE: usize = 21;
const PER_LEAF: usize = 251;
/// Entries of a directory that are kept in its inode, bytes.
const SHORT_FORM: u64 = 336 - 6;
/// Space for entries in a directory of one block: its header of 64 bytes, its tail of 8, "." and ".." with their hashes
/// taken off.
const BLOCK_FORM: u64 = PAGE - 64 - 8 - 2 * 24;
/// `m_allocsize_blocks`: files below this get no more than they need.
const ALLOCATION_SIZE: u64 = 16;

/// An XFS file system.
#[derive(Debug)]
pub(crate) struct Xfs {
    /// Blocks of a group.
    group: u64,
    blocks: u64,
    free: FreeSpace,
    /// First blocks of chunks of inodes.
    chunks: Vec<u64>,
    free_inodes: BTreeSet<Ino>,
    next_inode: Ino,
    directory: Directory,
    pub(crate) log: log::Log,
}

/// The directory: in its inode, then in blocks.
#[derive(Debug, Default)]
struct Directory {
    entries: u64,
    /// Bytes of the entries as an inode holds them, and as blocks do.
    short_bytes: u64,
    block_bytes: u64,
    blocks: Vec<u64>,
    /// Hashes of the names while one block holds them, in order.
    hashes: Vec<u32>,
}

/// `xfs_da_hashname`
fn hash(name: &str) -> u32 {
    name.bytes().fold(0u32, |hash, byte| hash.rotate_left(7) ^ u32::from(byte))
}

impl Xfs {
    /// Makes one on a drive of so many bytes.
    pub(crate) fn new(capacity: u64) -> Result<Self> {
        let blocks = (capacity / PAGE).min(1 << 40);
        let log_blocks = (blocks / 2048).clamp(16_384, 524_288);
        let group = blocks.div_ceil(GROUPS);
        if group < log_blocks + 1024 {
            return Err(KernelError::Config(format!(
                "XFS needs a drive of at least 300 MiB; this one has {capacity} bytes"
            )));
        }
        let mut free = FreeSpace::new(group);
        free.give(0, blocks);
        for number in 0..GROUPS {
            free.take(number * group, 10);
        }
        free.take(16, CHUNK_BLOCKS);
        let log_first = 2 * group + 6;
        // The group's free list lies behind the log there.
        free.give(2 * group + 6, 4);
        free.take(log_first, log_blocks);
        free.take(log_first + log_blocks, 4);
        Ok(Self {
            group,
            blocks,
            free,
            chunks: vec![16],
            free_inodes: BTreeSet::new(),
            next_inode: FIRST_FILE,
            directory: Directory::default(),
            log: log::Log::new(log_first * PAGE, log_blocks * PAGE),
        })
    }

    fn header(&self, block: u64) -> u64 {
        block / self.group * self.group * PAGE
    }

    /// Free space changed: AGF and the two trees.
    fn touch_free_space(&self, block: u64, touched: &mut Touched) {
        let base = self.header(block);
        touched.buffer(base + SECTOR, SECTOR, 0, 100);
        // Records are spread over the block: where depends on how many there are.
        touched.buffer(base + PAGE, PAGE, 56, 8);
        touched.buffer(base + 2 * PAGE, PAGE, 56, 8);
    }

    fn touch_inode_trees(&self, ino: Ino, touched: &mut Touched) {
        let base = self.header(self.chunk_of(ino));
        touched.buffer(base + 2 * SECTOR, SECTOR, 0, 100);
        touched.buffer(base + 3 * PAGE, PAGE, 56 + self.slot(ino) / CHUNK_INODES % 250 * 16, 16);
        touched.buffer(base + 4 * PAGE, PAGE, 56, 16);
    }

    fn slot(&self, ino: Ino) -> u64 {
        u64::from(ino.saturating_sub(ROOT))
    }

    fn chunk_of(&self, ino: Ino) -> u64 {
        let number = (self.slot(ino) / CHUNK_INODES) as usize;
        self.chunks.get(number).copied().unwrap_or(16)
    }

    fn goal_of(&self, ino: Ino) -> u64 {
        self.chunk_of(ino) + CHUNK_BLOCKS
    }

    /// `xfs_alloc_vextent_near_bno`
    fn take_near(&mut self, goal: u64, blocks: u64) -> Option<(u64, u64)> {
        let found = match self.free.run(goal) {
            run if run >= blocks => Some((goal, blocks)),
            _ => self.free.find_near(goal, blocks).map(|at| (at, blocks)),
        };
        let (first, blocks) = found.or_else(|| self.free.largest().map(|(at, free)| (at, free.min(blocks))))?;
        self.free.take(first, blocks).then_some((first, blocks))
    }

    /// `xfs_dir2_block_addname`, `xfs_dir2_leaf_addname`, and the same for removing: the entry, the block's header and
    /// tail, and the array of hashes. In one block that grows downwards, so all smaller hashes move and are logged; in
    /// a leaf of its own half of it is.
    fn touch_directory(&mut self, name: &str, adds: bool, touched: &mut Touched) {
        let hash = hash(name);
        let Directory { blocks, hashes, entries, block_bytes, .. } = &mut self.directory;
        let rank = hashes.partition_point(|&other| other < hash);
        if adds && blocks.len() < 2 {
            hashes.insert(rank, hash);
        } else if hashes.get(rank) == Some(&hash) {
            hashes.remove(rank);
        }
        match blocks.as_slice() {
            [] => {}
            &[block] => {
                let array = PAGE - 8 - 8 * (hashes.len() as u64).min(500);
                touched.buffer(block * PAGE, PAGE, 0, 64);
                let entry = 96 + hashes.len() as u64 * 16;
                touched.buffer(block * PAGE, PAGE, entry.min(array), 32);
                touched.buffer(block * PAGE, PAGE, PAGE - 8, 8);
                let (first, length) = if adds { (array, 8 * (rank as u64 + 1)) } else { (array + 8 * rank as u64, 8) };
                touched.buffer(block * PAGE, PAGE, first.min(PAGE - 8), length.min(PAGE - first.min(PAGE - 8)));
            }
            [data @ .., leaf] => {
                // Names come behind one another; in the leaf of hashes larger ones move up.
                let used = *block_bytes;
                let at = if adds { data.last() } else { data.get((u64::from(hash) % data.len() as u64) as usize) };
                let at = at.copied().unwrap_or(*leaf);
                touched.buffer(at * PAGE, PAGE, 0, 64);
                touched.buffer(at * PAGE, PAGE, 64 + used % (PAGE - 128), 24);
                let in_leaf = 8 * (*entries % 500);
                let length = if adds { in_leaf.max(8) } else { 8 };
                touched.buffer(leaf * PAGE, PAGE, 64, length);
            }
        }
    }

    /// Blocks that the directory needs: none, one with entries and hashes, or several with a leaf of hashes.
    fn directory_blocks(&self) -> usize {
        let Directory { entries, short_bytes, block_bytes, .. } = self.directory;
        if short_bytes <= SHORT_FORM {
            0
        } else if block_bytes + 8 * entries <= BLOCK_FORM {
            1
        } else {
            (block_bytes.div_ceil(PAGE - 64) + entries.div_ceil(500)) as usize
        }
    }

    /// `xfs_dir2_sf_to_block`, `xfs_dir2_block_to_leaf` and back.
    fn fit_directory(&mut self, touched: &mut Touched) -> bool {
        let wanted = self.directory_blocks();
        while self.directory.blocks.len() < wanted {
            let Some((block, _)) = self.take_near(self.goal_of(ROOT), 1) else { return false };
            self.directory.blocks.push(block);
            touched.fresh.insert(block * PAGE);
            self.touch_free_space(block, touched);
        }
        // A larger directory keeps its blocks until it fits into one again.
        while wanted < 2 && self.directory.blocks.len() > wanted {
            let Some(block) = self.directory.blocks.pop() else { break };
            touched.freed.push((block, 1));
            self.touch_free_space(block, touched);
        }
        if wanted != 1 {
            self.directory.hashes = Vec::new();
        }
        true
    }

    fn add_name(&mut self, name: &str, touched: &mut Touched) -> bool {
        let length = name.len() as u64;
        let Directory { entries, short_bytes, block_bytes, .. } = self.directory;
        self.directory.entries += 1;
        self.directory.short_bytes += length + 8;
        self.directory.block_bytes += (length + 12).next_multiple_of(8);
        if !self.fit_directory(touched) {
            let directory = &mut self.directory;
            (directory.entries, directory.short_bytes, directory.block_bytes) = (entries, short_bytes, block_bytes);
            return false;
        }
        self.touch_directory(name, true, touched);
        true
    }

    fn remove_name(&mut self, name: &str, touched: &mut Touched) {
        let length = name.len() as u64;
        let directory = &mut self.directory;
        directory.entries = directory.entries.saturating_sub(1);
        directory.short_bytes = directory.short_bytes.saturating_sub(length + 8);
        directory.block_bytes = directory.block_bytes.saturating_sub((length + 12).next_multiple_of(8));
        self.touch_directory(name, false, touched);
        self.fit_directory(touched);
    }
}

impl Xfs {
    /// An inode that was never used; each 64th needs a chunk.
    fn new_inode(&mut self, touched: &mut Touched) -> Option<Ino> {
        let next = self.next_inode.checked_add(1)?;
        if self.slot(self.next_inode) / CHUNK_INODES >= self.chunks.len() as u64 {
            let goal = self.goal_of(ROOT);
            let near = self.free.find_near(goal, 2 * CHUNK_BLOCKS).map(|at| at.next_multiple_of(CHUNK_BLOCKS));
            let first = near.filter(|&at| self.free.take(at, CHUNK_BLOCKS)).or_else(|| {
                let at = self.free.find_power_of_two(CHUNK_BLOCKS.ilog2() as u8, goal)?;
                self.free.take(at, CHUNK_BLOCKS).then_some(at)
            })?;
            self.chunks.push(first);
            self.touch_free_space(first, touched);
            for cluster in 0..CHUNK_BLOCKS * PAGE / CLUSTER {
                // The buffer is not logged: an item says that it is new.
                touched.fresh.insert(first * PAGE + cluster * CLUSTER);
            }
        }
        Some(std::mem::replace(&mut self.next_inode, next))
    }
}

impl Layout for Xfs {
    fn free_blocks(&self) -> u64 {
        // `xfs_default_resblks`: 5 %, at most 8192.
        self.free.total().saturating_sub((self.blocks / 20).min(8192))
    }

    fn max_file(&self) -> u64 {
        (1 << 63) - 1
    }

    fn max_allocation(&self) -> u64 {
        // `XFS_MAX_BMBT_EXTLEN`
        (1 << 21) - 1
    }

    /// `xfs_iomap_prealloc_size`: twice the extent before, when a file that is not small grows.
    fn speculative(&self, inode: &Inode) -> u64 {
        if inode.size / PAGE < ALLOCATION_SIZE {
            return 0;
        }
        let last = inode.extents.last().map_or(0, |extent| extent.blocks);
        let wanted = (2 * last).clamp(ALLOCATION_SIZE, 1 << 20);
        wanted.min(self.free_blocks() / 32)
    }

    fn allocate(&mut self, request: &AllocationRequest, touched: &mut Touched) -> Option<Allocation> {
        let goal = request.left.map_or_else(|| self.goal_of(request.ino), |left| left + 1);
        let (physical, blocks) = self.take_near(goal, request.blocks)?;
        self.touch_free_space(physical, touched);
        Some(Allocation { physical, blocks, preallocated: None })
    }

    fn free(&mut self, first: u64, _: u64, touched: &mut Touched) {
        self.touch_free_space(first, touched);
    }

    fn release(&mut self, first: u64, blocks: u64) {
        self.free.give(first, blocks);
    }

    fn discard_preallocation(&mut self, _: Preallocation) {}

    fn create(&mut self, name: &str, touched: &mut Touched) -> Option<Ino> {
        let ino = match self.free_inodes.pop_first() {
            Some(ino) => ino,
            None => self.new_inode(touched)?,
        };
        if !self.add_name(name, touched) {
            self.free_inodes.insert(ino);
            return None;
        }
        self.touch_inode_trees(ino, touched);
        Some(ino)
    }

    fn unlink(&mut self, name: &str, ino: Ino, touched: &mut Touched) {
        self.remove_name(name, touched);
        self.orphan(ino, touched);
    }

    /// `xfs_dir_rename_children`: an entry that is replaced keeps its place, and its hash.
    fn rename(&mut self, from: &str, to: &str, _: Ino, replaces: bool, touched: &mut Touched) -> bool {
        if replaces {
            if let Some(&block) = self.directory.blocks.first() {
                touched.buffer(block * PAGE, PAGE, 96, 16);
            }
        } else if !self.add_name(to, touched) {
            return false;
        }
        self.remove_name(from, touched);
        true
    }

    fn evict(&mut self, ino: Ino, touched: &mut Touched) {
        self.touch_inode_trees(ino, touched);
        self.orphan(ino, touched);
        self.free_inodes.insert(ino);
    }

    /// `xfs_iunlink`: the head of one of 64 lists in the AGI.
    fn orphan(&mut self, ino: Ino, touched: &mut Touched) {
        let base = self.header(self.chunk_of(ino));
        touched.buffer(base + 2 * SECTOR, SECTOR, 40 + u64::from(ino % 64) * 4, 4);
    }

    fn inode_changed(&mut self, _: Ino, inode: &Inode, extent: Option<u64>, touched: &mut Touched) {
        if let (Some(logical), Some(&last)) = (extent, inode.tree.last()) {
            let end = inode.extents.last().map_or(1, |extent| extent.end()).max(1);
            let leaf = (u128::from(logical) * inode.tree.len() as u128 / u128::from(end)) as usize;
            let block = inode.tree.get(leaf).copied().unwrap_or(last);
            touched.buffer(block * PAGE, PAGE, 72 + logical % 200 * 16, 32);
        }
    }

    fn tree_blocks(&self, extents: usize) -> usize {
        if extents <= IN_INODE { 0 } else { extents.div_ceil(PER_LEAF) }
    }

    fn inode_buffer(&self, ino: Ino) -> (u64, u64) {
        let at = self.chunk_of(ino) * PAGE + self.slot(ino) % CHUNK_INODES * INODE_BYTES;
        (at / CLUSTER * CLUSTER, CLUSTER)
    }

    fn log_write(&mut self, transaction: &Transaction) -> LogWrite {
        let short_form = if self.directory.blocks.is_empty() { self.directory.short_bytes } else { 0 };
        let cluster = |ino| self.inode_buffer(ino).0;
        let clusters = transaction.inodes.keys().map(|&ino| (ino, cluster(ino))).collect();
        self.log.write(transaction, short_form, &clusters)
    }

    fn log_emptied(&mut self) {
        self.log.emptied();
    }

    /// The tail is in each record of the log.
    fn log_superblock(&self) -> Option<(u64, u64)> {
        None
    }

    fn fast_commit_area(&self) -> Option<(u64, u64)> {
        None
    }

    fn inode_writeback(&self, ino: Ino) -> Option<(u64, u64)> {
        Some(self.inode_buffer(ino))
    }

    fn buffer_written(&mut self, offset: u64) {
        self.log.written(offset);
    }

    fn check(&self) -> std::result::Result<(), String> {
        self.free.check()
    }

    fn free_extents(&self) -> Vec<(u64, u64)> {
        self.free.extents()
    }

    fn claim(&mut self, first: u64, blocks: u64) -> bool {
        self.free.take(first, blocks)
    }

    fn claim_inode(&mut self, name: &str, ino: Ino) {
        while self.next_inode <= ino {
            match self.new_inode(&mut Touched::default()) {
                Some(new) => self.free_inodes.insert(new),
                None => break,
            };
        }
        self.free_inodes.remove(&ino);
        self.add_name(name, &mut Touched::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places were read from a captured file system on a drive of this size.
    #[test]
    fn the_log_of_a_500_gb_drive_is_where_mkfs_puts_it() {
        let xfs = Xfs::new(500_107_862_016).unwrap();
        assert_eq!(xfs.group, 30_524_162);
        assert_eq!(xfs.log.first() / PAGE, 61_048_330);
        assert_eq!(xfs.inode_buffer(ROOT), (16 * PAGE, CLUSTER));
        assert_eq!(xfs.goal_of(FIRST_FILE), 24);
    }

    #[test]
    fn each_64th_file_needs_a_chunk() {
        let mut xfs = Xfs::new(1 << 30).unwrap();
        for number in 0..200 {
            xfs.create(&format!("f{number}"), &mut Touched::default()).unwrap();
        }
        assert_eq!(xfs.chunks.len(), 4);
        assert!(xfs.directory.blocks.len() > 1);
        xfs.free.check().unwrap();
    }

    #[test]
    fn a_drive_that_is_too_small_is_refused() {
        assert!(matches!(Xfs::new(100 << 20), Err(KernelError::Config(_))));
    }
}
