//! What the kernel and the file system are configured with; the defaults are those of Linux 6.18 and of Debian 12.

use flashwise_block::{ByteSize, Nanos};

use crate::costs::ProcessorCosts;
use crate::error::{KernelError, Result};

/// Bytes of a page, of a file system's block and of a block of the page cache.
pub const PAGE: u64 = 4096;

/// Which file system is on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystemKind {
    /// ext4 with `data=ordered`, as `mkfs.ext4` of e2fsprogs 1.47 makes it.
    Ext4,
    /// XFS, as `mkfs.xfs` of xfsprogs 6.1 makes it.
    Xfs,
}

impl FileSystemKind {
    /// Every one, with its name.
    pub const ALL: [(&str, Self); 2] = [("ext4", Self::Ext4), ("xfs", Self::Xfs)];

    /// The one of that name.
    ///
    /// # Errors
    /// The names that there are, with the one that was probably meant.
    pub fn named(name: &str) -> std::result::Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name).map(|&(_, kind)| kind);
        found.ok_or_else(|| {
            let known = flashwise_block::names::choices(name, Self::ALL.iter().map(|&(known, _)| known));
            format!("'{name}' is an unknown file system; {known}")
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }
}

/// The limits of the drive's queue, `/sys/block/DISK/queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// `max_sectors_kb`: the largest request. What the drive itself takes may be less.
    pub max_request: ByteSize,
    /// `max_segments`: the most pieces of memory in one request; a folio is one piece.
    pub max_segments: u32,
    /// `nr_requests`: how many requests may be on their way; the next submitter sleeps.
    pub nr_requests: u32,
    /// `fua`: whether the drive takes the FUA flag. Where it does not, a write with FUA is a write and a flush.
    pub fua: bool,
    /// `write_cache` is "write back": flushes reach the drive. With "write through" they do not.
    pub volatile_cache: bool,
}

impl Default for QueueLimits {
    /// An NVMe drive's as Linux sets them: requests of up to 1280 KiB, 127 segments, 1023 tags, FUA, a volatile cache.
    fn default() -> Self {
        Self { max_request: ByteSize::kib(1280), max_segments: 127, nr_requests: 1023, fua: true, volatile_cache: true }
    }
}

impl QueueLimits {
    /// A loop device's as `flashwise attach` sets it up: requests of up to 1 MiB, 128 segments, 128 tags, no FUA.
    pub fn loop_device() -> Self {
        Self { max_request: ByteSize::mib(1), max_segments: 128, nr_requests: 128, fua: false, ..Self::default() }
    }
}

/// Everything that can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelConfig {
    /// The file system.
    pub file_system: FileSystemKind,
    /// Memory that the page cache may fill. At least one page.
    pub memory: ByteSize,
    /// `read_ahead_kb`; 0 for no read-ahead.
    pub read_ahead: ByteSize,
    /// `vm.dirty_background_ratio`, per cent of the memory.
    pub dirty_background_ratio: u32,
    /// `vm.dirty_ratio`, per cent of the memory.
    pub dirty_ratio: u32,
    /// `vm.dirty_writeback_centisecs`: how often the flusher wakes.
    pub dirty_writeback: Nanos,
    /// `vm.dirty_expire_centisecs`: after so long dirty data is written.
    pub dirty_expire: Nanos,
    /// ext4's `commit=`: after so long a running transaction is committed.
    pub commit_interval: Nanos,
    /// XFS's `fs.xfs.xfssyncd_centisecs`: after so long the log is forced.
    pub log_interval: Nanos,
    /// ext4 made with `mkfs.ext4 -O fast_commit`: most syncs write what changed, in a block of an area of its own,
    /// where a commit writes all blocks of metadata that changed. XFS has nothing like it.
    pub fast_commit: bool,
    /// `discard`: blocks that are freed are trimmed on the drive.
    pub discard: bool,
    /// `lazytime`: a time stamp alone does not change the inode; another change of it and `sync` write it. `fsync` does
    /// not, so an overwrite with `fsync` is mostly one write and one flush, as with `fdatasync`.
    pub lazytime: bool,
    /// The clock's tick, 1 / `CONFIG_HZ`: time stamps of files have this resolution.
    pub tick: Nanos,
    /// Limits of the drive's queue.
    pub queue: QueueLimits,
    /// Whether files have bytes. Without, the same requests are made and no byte is stored.
    pub data: bool,
    /// Whether what a power cut would leave is kept, for [`crate::Kernel::remount_after_power_cut`].
    pub power_cuts: bool,
    /// What the processor's work costs.
    pub costs: ProcessorCosts,
    /// How many files may be open.
    pub max_open: u32,
}

impl Default for KernelConfig {
    fn default() -> Self {
        Self {
            file_system: FileSystemKind::Ext4,
            memory: ByteSize::gib(4),
            read_ahead: ByteSize::kib(128),
            dirty_background_ratio: 10,
            dirty_ratio: 20,
            dirty_writeback: Nanos::secs(5),
            dirty_expire: Nanos::secs(30),
            commit_interval: Nanos::secs(5),
            log_interval: Nanos::secs(30),
            fast_commit: false,
            discard: false,
            lazytime: false,
            tick: Nanos::millis(4),
            queue: QueueLimits::default(),
            data: false,
            power_cuts: false,
            costs: ProcessorCosts::default(),
            max_open: 1 << 20,
        }
    }
}

impl KernelConfig {
    /// # Errors
    /// [`KernelError::Config`] with the key and what it may be.
    pub(crate) fn check(&self) -> Result<()> {
        let fail = |text: &str| Err(KernelError::Config(text.to_owned()));
        if self.memory.0 < PAGE {
            return fail("memory: the page cache needs at least one page of 4 KiB");
        }
        if self.memory.0 / PAGE > u64::from(u32::MAX >> 2) {
            return fail("memory: at most 4 TiB");
        }
        if self.fast_commit && self.file_system != FileSystemKind::Ext4 {
            return fail("fast_commit: ext4 has fast commits, XFS has none");
        }
        if !self.read_ahead.0.is_multiple_of(PAGE) || self.read_ahead.0 > 64 << 20 {
            return fail("read_ahead: a multiple of 4 KiB, at most 64 MiB");
        }
        if self.dirty_ratio > 100 || self.dirty_background_ratio > 100 {
            return fail("dirty_ratio, dirty_background_ratio: 0 to 100 per cent");
        }
        if self.tick.0 == 0 || self.dirty_writeback.0 == 0 || self.commit_interval.0 == 0 || self.log_interval.0 == 0 {
            return fail("tick, dirty_writeback, commit_interval, log_interval: longer than zero");
        }
        if self.queue.max_request.0 < PAGE || self.queue.max_segments == 0 || self.queue.nr_requests == 0 {
            return fail("queue: requests of at least 4 KiB, one segment, one request at a time");
        }
        Ok(())
    }
}
