//! What the kernel knows of a file.

use std::collections::BTreeSet;

use flashwise_block::Nanos;

use crate::fs::extents::Extents;

/// A file's number; 2 is the directory.
pub(crate) type Ino = u32;

/// A file, open or not.
#[derive(Debug)]
pub(crate) struct Inode {
    /// Its names: 1, or 0 once it is unlinked.
    pub(crate) links: u32,
    pub(crate) open: u32,
    /// Of these, for writing.
    pub(crate) open_for_write: u32,
    /// `i_size`, bytes.
    pub(crate) size: u64,
    /// `i_disksize` (XFS: `di_size`): the size in the file system's metadata. It follows `size` when data is written.
    pub(crate) disk_size: u64,
    pub(crate) extents: Extents,
    /// Blocks of its extent tree beside the inode.
    pub(crate) tree: Vec<u64>,
    /// Blocks that are reserved for pages without a place (delayed allocation; `fs/ext4/extents_status.c`, delayed
    /// extents of `fs/xfs/libxfs/xfs_bmap.c`). A page that is prepared for a write has its block here before it is
    /// dirty; the block leaves when it gets a place, whoever that place was meant for.
    pub(crate) delayed: BTreeSet<u64>,
    /// Tick of its time stamp.
    pub(crate) mtime: u64,
    /// `I_DIRTY_TIME`: the time stamp is newer than the inode in the running transaction.
    pub(crate) is_time_dirty: bool,
    /// Whether it is in memory: it was used since caches were dropped.
    pub(crate) is_cached: bool,
    /// The last transaction that changed it, and the last one that `fdatasync` needs.
    pub(crate) sync_tid: u64,
    pub(crate) datasync_tid: u64,
    /// When the oldest of its dirty pages became dirty.
    pub(crate) dirtied_at: Option<Nanos>,
    /// Where the flusher goes on.
    pub(crate) writeback_index: u64,
    /// A failed write that no sync has reported yet: how many so far.
    pub(crate) write_errors: u64,
    pub(crate) last_error: Option<flashwise_block::BlockError>,
    /// It was cut to nothing: closing it starts to write what came then.
    pub(crate) write_on_close: bool,
    /// ext4: blocks reserved for it behind its last ones, by logical block.
    pub(crate) preallocated: Option<Preallocation>,
}

/// Blocks that are set aside for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preallocation {
    pub(crate) logical: u64,
    pub(crate) physical: u64,
    pub(crate) blocks: u64,
}

impl Inode {
    pub(crate) fn new(tick: u64) -> Self {
        Self {
            links: 1,
            open: 0,
            open_for_write: 0,
            size: 0,
            disk_size: 0,
            extents: Extents::default(),
            tree: Vec::new(),
            delayed: BTreeSet::new(),
            mtime: tick,
            is_time_dirty: false,
            is_cached: true,
            sync_tid: 0,
            datasync_tid: 0,
            dirtied_at: None,
            writeback_index: 0,
            write_errors: 0,
            last_error: None,
            write_on_close: false,
            preallocated: None,
        }
    }
}
