//! ext4: groups of 32768 blocks, sixteen of them share their metadata.
//!
//! Linux 6.18 and e2fsprogs 1.47 as Debian 12 sets it up (`misc/mke2fs.c`, `lib/ext2fs/alloc_tables.c`,
//! `lib/ext2fs/mkjournal.c`):
//!
//! ```text
//!   block 0          superblock · group descriptors (64 a block) · 1024 blocks reserved for more of them
//!   first group of   16 block bitmaps · 16 inode bitmaps · 16 × 512 blocks of inodes (256 bytes each)
//!   each sixteen
//!   groups 1, 3ⁿ, 5ⁿ, 7ⁿ   a copy of superblock and descriptors
//!   the middle       the journal, with fast commits their area behind it; before it the block of its extents
//! ```
//!
//! What a change touches (`fs/ext4/{inode,namei,ialloc,orphan,extents}.c`): allocating or freeing a block its bitmap
//! and its group's descriptor; a change of an inode its block of the inode table, and the leaf of the extent tree where
//! the inode itself does not hold all extents (more than 4; 340 a leaf); a new file the directory's block and inode,
//! the inode bitmap and that group's descriptor; a file that goes these and the superblock (`s_last_orphan`).
//!
//! All files are in one directory, whose inode is 2. A name goes to a leaf of the directory by its hash. Not here:
//! `orphan_file` (newer defaults of `mke2fs` have it: a block of its own instead of the superblock), `bigalloc`,
//! extended attributes, quota.

pub(crate) mod fast_commit;
pub(crate) mod mballoc;
pub(crate) mod namei;

use std::collections::BTreeSet;

use crate::PAGE;
use crate::error::{KernelError, Result};
use crate::fs::ext4::mballoc::BlockAllocator;
use crate::fs::ext4::namei::Directory;
use crate::fs::inode::{Ino, Inode, Preallocation};
use crate::fs::layout::{Allocation, AllocationRequest, Layout, LogWrite};
use crate::fs::transaction::{Touched, Transaction};

/// Blocks of a group.
pub(crate) const GROUP: u64 = 32768;
/// Groups that share their metadata (`flex_bg`).
const FLEX: u64 = 16;
const INODES_PER_GROUP: u64 = 8192;
const INODE_BYTES: u64 = 256;
const TABLE_BLOCKS: u64 = INODES_PER_GROUP * INODE_BYTES / PAGE;
const DESCRIPTORS_PER_BLOCK: u64 = 64;
/// `resize_inode`
const RESERVED_DESCRIPTORS: u64 = 1024;
/// The list of files that are being removed or cut starts here.
const SUPERBLOCK: u64 = 0;
/// The directory's inode.
const ROOT: Ino = 2;
/// lost+found is 11.
const FIRST_INODE: Ino = 12;
/// Extents in the inode, and in a block of the tree.
const IN_INODE: usize = 4;
const PER_LEAF: usize = 340;
/// Tags of a descriptor block: (4096 - header 12 - tail 4 - UUID 16) / 16.
const TAGS: u64 = 254;
/// Numbers of a revoke block: (4096 - 16 - 4) / 8.
const REVOKES: u64 = 509;
/// `EXT2_JOURNAL_TO_FC_BLKS_RATIO`: blocks of the journal for one of fast commits.
const FAST_COMMIT_RATIO: u64 = 64;

/// An ext4 file system.
#[derive(Debug)]
pub(crate) struct Ext4 {
    blocks: u64,
    groups: u64,
    allocator: BlockAllocator,
    directory: Directory,
    /// Inodes below this that are free again.
    free_inodes: BTreeSet<Ino>,
    next_inode: Ino,
    /// First block and length of the journal, its superblock included.
    journal: (u64, u64),
    /// First block for fast commits and how many, where the file system has them.
    fast_commits: Option<(u64, u64)>,
    /// Next block to write in the journal, counted from its start, and how many are in use.
    head: u64,
    used: u64,
}

/// `ext2fs_default_journal_size`, blocks of 4 KiB.
fn journal_blocks(blocks: u64) -> u64 {
    match blocks {
        0..32_768 => 1024,
        32_768..262_144 => 4096,
        262_144..524_288 => 8192,
        524_288..4_194_304 => 16_384,
        4_194_304..8_388_608 => 32_768,
        8_388_608..16_777_216 => 65_536,
        16_777_216..33_554_432 => 131_072,
        _ => 262_144,
    }
}

fn is_power_of(group: u64, base: u64) -> bool {
    let mut power = base;
    while power < group {
        power *= base;
    }
    power == group
}

/// Whether a group has a copy of the superblock (`sparse_super`).
fn has_super(group: u64) -> bool {
    group <= 1 || [3, 5, 7].iter().any(|&base| is_power_of(group, base))
}

impl Ext4 {
    /// Makes one on a drive of so many bytes.
    pub(crate) fn new(capacity: u64, fast_commit: bool) -> Result<Self> {
        let mut blocks = (capacity / PAGE).min(u64::from(u32::MAX));
        let mut groups = blocks.div_ceil(GROUP);
        // A last group that could not hold its own metadata is left out.
        let in_flex = (groups - 1) % FLEX + 1;
        if blocks % GROUP != 0 && in_flex == 1 && blocks % GROUP < TABLE_BLOCKS + 2 + 50 {
            groups -= 1;
            blocks = groups * GROUP;
        }
        if blocks < 8192 {
            let text = format!("a file system needs a drive of at least 32 MiB; this one has {capacity} bytes");
            return Err(KernelError::Config(text));
        }
        let mut allocator = BlockAllocator::new(GROUP);
        allocator.free.give(0, blocks);
        let mut this = Self {
            blocks,
            groups,
            allocator,
            directory: Directory::default(),
            free_inodes: BTreeSet::new(),
            next_inode: FIRST_INODE,
            journal: (0, 0),
            fast_commits: None,
            head: 1,
            used: 0,
        };
        for group in 0..groups {
            let start = group * GROUP;
            let overhead = this.overhead(group).min(blocks - start);
            this.allocator.free.take(start, overhead);
            if group % FLEX == 0 {
                let members = FLEX.min(groups - group);
                let metadata = (2 * FLEX + members * TABLE_BLOCKS).min(blocks.saturating_sub(start + overhead));
                this.allocator.free.take(start + overhead, metadata);
            }
        }
        let middle = (groups / 2 / FLEX * FLEX + 1).min(groups - 1) * GROUP;
        let length = journal_blocks(blocks);
        let fast = if fast_commit { length / FAST_COMMIT_RATIO } else { 0 };
        let Some(start) = this.allocator.take_near(middle, length + fast) else {
            return Err(KernelError::Config(format!("a drive of {capacity} bytes has no space for a journal")));
        };
        this.journal = (start, length);
        // `jbd2_journal_initialize_fast_commit` starts one block behind the log, and `jbd2_fc_get_buf` ends there too.
        this.fast_commits = fast_commit.then(|| (start + length + 1, fast - 1));
        // The journal's own extents, which an inode does not hold.
        this.allocator.take_near(start - 1, 1).ok_or(KernelError::NoSpace)?;
        let root = this.allocator.take_near(0, 1).ok_or(KernelError::NoSpace)?;
        this.directory = Directory::new(root);
        Ok(this)
    }

    /// Blocks at a group's start that are the superblock's copy and descriptors.
    fn overhead(&self, group: u64) -> u64 {
        let descriptors = self.groups.div_ceil(DESCRIPTORS_PER_BLOCK);
        if has_super(group) { 1 + descriptors + RESERVED_DESCRIPTORS.min(self.groups * 16) } else { 0 }
    }

    fn flex_metadata(&self, group: u64) -> u64 {
        let first = group / FLEX * FLEX;
        first * GROUP + self.overhead(first)
    }

    fn touch_descriptor(&self, group: u64, touched: &mut Touched) {
        touched.block(1 + group / DESCRIPTORS_PER_BLOCK);
    }

    fn touch_block_bitmaps(&self, first: u64, blocks: u64, touched: &mut Touched) {
        for group in first / GROUP..=(first + blocks.max(1) - 1) / GROUP {
            touched.block(self.flex_metadata(group) + group % FLEX);
            self.touch_descriptor(group, touched);
        }
    }

    fn touch_inode_bitmap(&self, ino: Ino, touched: &mut Touched) {
        let group = u64::from(ino - 1) / INODES_PER_GROUP;
        touched.block(self.flex_metadata(group) + FLEX + group % FLEX);
        self.touch_descriptor(group, touched);
    }

    /// The block of the inode table that an inode is in.
    fn inode_block(&self, ino: Ino) -> u64 {
        let (group, slot) = (u64::from(ino - 1) / INODES_PER_GROUP, u64::from(ino - 1) % INODES_PER_GROUP);
        self.flex_metadata(group) + 2 * FLEX + group % FLEX * TABLE_BLOCKS + slot * INODE_BYTES / PAGE
    }

    /// `ext4_inode_to_goal_block`: where a file's data should be when nothing else says so.
    fn goal_of(&self, ino: Ino) -> u64 {
        let group = u64::from(ino - 1) / INODES_PER_GROUP / FLEX * FLEX + 1;
        group.min(self.groups - 1) * GROUP
    }
}

impl Layout for Ext4 {
    fn free_blocks(&self) -> u64 {
        // `ext4_calculate_resv_clusters`: 2 %, at most 4096, stay for metadata.
        let all = self.allocator.free_blocks();
        all.saturating_sub((self.blocks / 50).min(4096))
    }

    fn max_file(&self) -> u64 {
        (u64::from(u32::MAX)) * PAGE
    }

    fn max_allocation(&self) -> u64 {
        // `MAX_WRITEPAGES_EXTENT_LEN`
        2048
    }

    fn speculative(&self, _: &Inode) -> u64 {
        0
    }

    fn allocate(&mut self, request: &AllocationRequest, touched: &mut Touched) -> Option<Allocation> {
        let goal = self.goal_of(request.ino);
        let allocation = self.allocator.allocate(request, goal)?;
        self.touch_block_bitmaps(allocation.physical, allocation.blocks, touched);
        Some(allocation)
    }

    fn free(&mut self, first: u64, blocks: u64, touched: &mut Touched) {
        self.touch_block_bitmaps(first, blocks, touched);
    }

    fn release(&mut self, first: u64, blocks: u64) {
        self.allocator.free.give(first, blocks);
    }

    fn discard_preallocation(&mut self, preallocated: Preallocation) {
        self.allocator.discard(preallocated);
    }

    fn create(&mut self, name: &str, touched: &mut Touched) -> Option<Ino> {
        let ino = match self.free_inodes.pop_first() {
            Some(ino) => ino,
            None if u64::from(self.next_inode) <= self.groups * INODES_PER_GROUP => {
                self.next_inode += 1;
                self.next_inode - 1
            }
            None => return None,
        };
        let change = self.directory.insert(name, &mut self.allocator);
        let Some(change) = change else {
            self.free_inodes.insert(ino);
            return None;
        };
        change.blocks.iter().for_each(|&block| touched.block(block));
        for &block in &change.new_blocks {
            touched.new_block(block);
            self.touch_block_bitmaps(block, 1, touched);
        }
        touched.block(self.inode_block(ROOT));
        touched.block(self.inode_block(ino));
        self.touch_inode_bitmap(ino, touched);
        Some(ino)
    }

    fn unlink(&mut self, name: &str, ino: Ino, touched: &mut Touched) {
        touched.block(self.directory.remove(name));
        touched.block(self.inode_block(ROOT));
        touched.block(self.inode_block(ino));
        touched.block(SUPERBLOCK);
    }

    /// `ext4_rename`: both entries, the directory's inode and the file's (`i_ctime`).
    fn rename(&mut self, from: &str, to: &str, ino: Ino, replaces: bool, touched: &mut Touched) -> bool {
        if replaces {
            touched.block(self.directory.block_of(to));
        } else {
            let Some(change) = self.directory.insert(to, &mut self.allocator) else { return false };
            change.blocks.iter().for_each(|&block| touched.block(block));
            for &block in &change.new_blocks {
                touched.new_block(block);
                self.touch_block_bitmaps(block, 1, touched);
            }
        }
        touched.block(self.directory.remove(from));
        touched.block(self.inode_block(ROOT));
        touched.block(self.inode_block(ino));
        true
    }

    fn evict(&mut self, ino: Ino, touched: &mut Touched) {
        touched.block(self.inode_block(ino));
        touched.block(SUPERBLOCK);
        self.touch_inode_bitmap(ino, touched);
        self.free_inodes.insert(ino);
    }

    fn orphan(&mut self, ino: Ino, touched: &mut Touched) {
        touched.block(self.inode_block(ino));
        touched.block(SUPERBLOCK);
    }

    fn inode_changed(&mut self, ino: Ino, inode: &Inode, extent: Option<u64>, touched: &mut Touched) {
        touched.block(self.inode_block(ino));
        if let (Some(logical), Some(&last)) = (extent, inode.tree.last()) {
            // Leaves are about equally full; the one behind the last extent is the last.
            let end = inode.extents.last().map_or(1, |extent| extent.end()).max(1);
            let leaf = (u128::from(logical) * inode.tree.len() as u128 / u128::from(end)) as usize;
            touched.block(inode.tree.get(leaf).copied().unwrap_or(last));
        }
    }

    fn tree_blocks(&self, extents: usize) -> usize {
        match extents {
            0..=IN_INODE => 0,
            _ => {
                let leaves = extents.div_ceil(PER_LEAF);
                let nodes = if leaves > IN_INODE { leaves.div_ceil(PER_LEAF) } else { 0 };
                leaves + nodes
            }
        }
    }

    fn inode_buffer(&self, ino: Ino) -> (u64, u64) {
        (self.inode_block(ino) * PAGE, PAGE)
    }

    /// `jbd2_journal_commit_transaction`: revoke blocks, then for each 254 blocks a descriptor before them; the commit
    /// block goes behind a flush.
    fn log_write(&mut self, transaction: &Transaction) -> LogWrite {
        let metadata = transaction.buffers.len() as u64;
        let revoke = u64::from(transaction.revoked).div_ceil(REVOKES);
        let body = revoke + metadata.div_ceil(TAGS) + metadata;
        let (start, length) = self.journal;
        let checkpoint_first = self.used + body + 1 > (length - 1) * 3 / 4;
        let place = |at: u64| (start + 1 + at % (length - 1)) * PAGE;
        let mut pieces = Vec::new();
        let (mut at, mut rest) = (self.head, body);
        while rest > 0 {
            let piece = rest.min(length - 1 - at % (length - 1));
            pieces.push((place(at), piece * PAGE));
            (at, rest) = (at + piece, rest - piece);
        }
        self.head = (at + 1) % (length - 1);
        self.used += body + 1;
        LogWrite { body: pieces, record: (place(at), PAGE), checkpoint_first }
    }

    fn log_emptied(&mut self) {
        self.used = 0;
    }

    fn log_superblock(&self) -> Option<(u64, u64)> {
        Some((self.journal.0 * PAGE, PAGE))
    }

    fn fast_commit_area(&self) -> Option<(u64, u64)> {
        self.fast_commits.map(|(first, blocks)| (first * PAGE, blocks))
    }

    fn inode_writeback(&self, _: Ino) -> Option<(u64, u64)> {
        None
    }

    fn buffer_written(&mut self, _: u64) {}

    fn check(&self) -> std::result::Result<(), String> {
        self.allocator.free.check()
    }

    fn free_extents(&self) -> Vec<(u64, u64)> {
        self.allocator.free.extents()
    }

    fn claim(&mut self, first: u64, blocks: u64) -> bool {
        self.allocator.free.take(first, blocks)
    }

    fn claim_inode(&mut self, name: &str, ino: Ino) {
        self.directory.insert(name, &mut self.allocator);
        while self.next_inode <= ino {
            self.free_inodes.insert(self.next_inode);
            self.next_inode += 1;
        }
        self.free_inodes.remove(&ino);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places were read from a captured file system on a drive of this size.
    #[test]
    fn metadata_of_a_500_gb_drive_is_where_mke2fs_puts_it() {
        let ext4 = Ext4::new(500_107_862_016, false).unwrap();
        assert_eq!(ext4.groups, 3727);
        assert_eq!(ext4.journal, (60_850_176, 262_144));
        assert_eq!(ext4.flex_metadata(2577), 84_410_368);
        assert_eq!(ext4.goal_of(2576 * 8192 + 13), 84_443_136);
        let mut touched = Touched::default();
        ext4.touch_block_bitmaps(122_096_134, 1, &mut touched);
        let blocks: Vec<u64> = touched.buffers.iter().map(|buffer| buffer.offset / PAGE).collect();
        assert_eq!(blocks, [59, 121_634_830]);
    }

    /// `dumpe2fs -h`: 266240 blocks in total, 4096 of them for fast commits; 8320 and 128 on a drive of 1 GiB.
    #[test]
    fn fast_commits_have_a_64th_of_the_journal_behind_it() {
        let ext4 = Ext4::new(500_107_862_016, true).unwrap();
        assert_eq!(ext4.journal, (60_850_176, 262_144));
        assert_eq!(ext4.fast_commit_area(), Some(((60_850_176 + 262_145) * PAGE, 4095)));
        let small = Ext4::new(1 << 30, true).unwrap();
        assert_eq!(small.fast_commits, Some((small.journal.0 + 8193, 127)));
        assert_eq!(Ext4::new(1 << 30, false).unwrap().fast_commit_area(), None);
    }

    #[test]
    fn a_new_file_touches_six_blocks_and_a_block_for_it_two_more() {
        let mut ext4 = Ext4::new(500_107_862_016, false).unwrap();
        let mut touched = Touched::default();
        let ino = ext4.create("a", &mut touched).unwrap();
        // Directory, its inode and the new one (one block), inode bitmap, descriptor.
        assert_eq!(touched.buffers.len(), 4);
        ext4.orphan(ino, &mut touched);
        assert_eq!(touched.buffers.len(), 5);
    }

    #[test]
    fn a_drive_that_is_too_small_is_refused() {
        assert!(matches!(Ext4::new(1 << 20, false), Err(KernelError::Config(_))));
        assert!(Ext4::new(40 << 20, false).is_ok());
    }

    #[test]
    fn the_journal_goes_round_and_asks_for_a_checkpoint_before_it_is_full() {
        let mut ext4 = Ext4::new(64 << 20, false).unwrap();
        let mut transaction = Transaction::new(1, flashwise_block::Nanos(0));
        let mut touched = Touched::default();
        (0..300).for_each(|block| touched.block(block));
        transaction.add(&touched);
        let mut asked = 0;
        for _ in 0..20 {
            let write = ext4.log_write(&transaction);
            let bytes: u64 = write.body.iter().map(|(_, bytes)| bytes).sum();
            assert_eq!(bytes / PAGE, 302);
            for (first, bytes) in write.body.iter().chain([&write.record]) {
                let (first, last) = (first / PAGE, (first + bytes) / PAGE - 1);
                assert!(first > ext4.journal.0 && last < ext4.journal.0 + ext4.journal.1);
            }
            if write.checkpoint_first {
                asked += 1;
                ext4.log_emptied();
            }
        }
        assert!(asked > 3);
    }
}
