//! What a file system has to say: where things are, and which metadata each change touches.

use crate::fs::inode::{Ino, Inode, Preallocation};
use crate::fs::transaction::{Touched, Transaction};

/// Blocks that a file needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocationRequest {
    pub(crate) ino: Ino,
    /// First block in the file.
    pub(crate) logical: u64,
    pub(crate) blocks: u64,
    /// The file's size in blocks, dirty pages included.
    pub(crate) file_blocks: u64,
    /// Where the block before `logical` is on the drive.
    pub(crate) left: Option<u64>,
    /// First allocated block of the file behind `logical`.
    pub(crate) next_logical: Option<u64>,
    /// What is set aside for the file.
    pub(crate) preallocated: Option<Preallocation>,
    pub(crate) open_for_write: bool,
    /// A block of the file system's own, as of an extent tree.
    pub(crate) metadata: bool,
}

/// What it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    pub(crate) physical: u64,
    /// At most what was asked for.
    pub(crate) blocks: u64,
    /// What is set aside for the file from now on.
    pub(crate) preallocated: Option<Preallocation>,
}

/// What a commit writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogWrite {
    /// Written first: (first byte, bytes).
    pub(crate) body: Vec<(u64, u64)>,
    /// Written behind a flush, and durable when it completes.
    pub(crate) record: (u64, u64),
    /// Before all that: the log's tail has to move, so metadata must be in its place first.
    pub(crate) checkpoint_first: bool,
}

/// A file system on a drive. Blocks have 4 KiB; offsets of metadata are bytes.
pub(crate) trait Layout: std::fmt::Debug + Send {
    /// Blocks that data may still take.
    fn free_blocks(&self) -> u64;
    /// The largest file, bytes.
    fn max_file(&self) -> u64;
    /// How many blocks one call of `allocate` may be asked for.
    fn max_allocation(&self) -> u64;
    /// Whether data in unallocated space is allocated beyond the end of the file, as XFS does: how many blocks more.
    fn speculative(&self, inode: &Inode) -> u64;
    /// Finds space for data; `None` where there is none.
    fn allocate(&mut self, request: &AllocationRequest, touched: &mut Touched) -> Option<Allocation>;
    /// The metadata of freeing blocks; they are used again only after `release`.
    fn free(&mut self, first: u64, blocks: u64, touched: &mut Touched);
    /// The blocks are free.
    fn release(&mut self, first: u64, blocks: u64);
    /// Gives back what was set aside for a file.
    fn discard_preallocation(&mut self, preallocated: Preallocation);
    /// A new file with a name of `name_bytes`; `None` where there are no inodes.
    fn create(&mut self, name: &str, touched: &mut Touched) -> Option<Ino>;
    /// A name goes.
    fn unlink(&mut self, name: &str, ino: Ino, touched: &mut Touched);
    /// A name becomes another one of the same file; `replaces` where that exists already. `false` where the directory
    /// has no space for it.
    fn rename(&mut self, from: &str, to: &str, ino: Ino, replaces: bool, touched: &mut Touched) -> bool;
    /// The file itself goes; its blocks are freed beside this.
    fn evict(&mut self, ino: Ino, touched: &mut Touched);
    /// A file is cut, or grows by direct I/O: what guards that against a crash in between.
    fn orphan(&mut self, ino: Ino, touched: &mut Touched);
    /// The inode was changed; with `extents` where the list of extents was. `blocks` of its tree are in `inode.tree`.
    fn inode_changed(&mut self, ino: Ino, inode: &Inode, extent: Option<u64>, touched: &mut Touched);
    /// How many blocks of tree that many extents need beside the inode.
    fn tree_blocks(&self, extents: usize) -> usize;
    /// Metadata that must be read before a file can be used.
    fn inode_buffer(&self, ino: Ino) -> (u64, u64);
    /// What committing a transaction writes, and where.
    fn log_write(&mut self, transaction: &Transaction) -> LogWrite;
    /// All metadata of committed transactions is in its place: the log is empty.
    fn log_emptied(&mut self);
    /// Where the log's superblock is, if moving its tail writes one: (first byte, bytes).
    fn log_superblock(&self) -> Option<(u64, u64)>;
    /// Where fast commits go, if the file system was made with them: (first byte, blocks).
    fn fast_commit_area(&self) -> Option<(u64, u64)>;
    /// Whether logged inodes have to be written to their place like other metadata (XFS), with (first byte, bytes).
    fn inode_writeback(&self, ino: Ino) -> Option<(u64, u64)>;
    /// Metadata is in its place: what XFS logged of it is not logged again.
    fn buffer_written(&mut self, offset: u64);
    /// Checks the free space.
    ///
    /// # Errors
    /// What is wrong with it.
    fn check(&self) -> Result<(), String>;
    /// First blocks and lengths of what is free, in order.
    fn free_extents(&self) -> Vec<(u64, u64)>;
    /// Takes blocks that recovery found in use.
    fn claim(&mut self, first: u64, blocks: u64) -> bool;
    /// Takes an inode and a name that recovery found in use.
    fn claim_inode(&mut self, name: &str, ino: Ino);
}
