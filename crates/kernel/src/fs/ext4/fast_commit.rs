//! ext4's fast commits: a sync writes what changed since the last commit, and not the blocks of metadata.
//!
//! Linux 6.18, `fs/ext4/fast_commit.c`, `fs/jbd2/journal.c`, on a file system of `mkfs.ext4 -O fast_commit`:
//! - `ext4_fc_commit`, which `ext4_fsync_journal` calls for `fsync` and `fdatasync` alike: what the running transaction
//!   changed is written by the task itself, and the transaction goes on running. So the metadata's blocks reach the log
//!   with the commit by timer, and a sync of a file whose transaction still runs is another fast commit, even where
//!   nothing has changed since: one block, where the log would have had to do nothing but a flush.
//! - `ext4_fc_perform_commit`: a head where it is the first since a full commit; names in the order in which they came
//!   and went (a new file's inode and blocks before its name); of each inode that changed the range of blocks that did,
//!   as extents and holes, and the inode; a tail with the transaction and a checksum.
//! - `ext4_fc_reserve_space`: nothing is cut between blocks, and a fast commit starts a block. The last block has
//!   PREFLUSH and FUA. The flush does not wait for the blocks before (`blk_insert_flush` goes around the plug), so where
//!   there are several and the drive has FUA, nothing makes these durable; here they count as durable all the same.
//! - `jbd2_fc_begin_commit`: none before the first full commit after mounting; a commit that is under way is waited
//!   for, and may make it needless.
//! - `jbd2_fc_get_buf`: when the area is full the commit is a full one; a full one starts the area over
//!   (`jbd2_journal_commit_transaction`, `ext4_fc_cleanup`). What changes while it is under way waits for the next:
//!   Linux has two queues for that (`FC_Q_MAIN`, `FC_Q_STAGING`), here each transaction has its own.
//! - `ext4_fc_del`: a file that goes takes its inode and its creation out of the queue.
//! - `fs/ext4/inode.c` `ext4_inode_datasync_dirty`: a file that has not changed since its last fast commit needs none
//!   behind a direct write with FUA.
//! - `ext4_fc_replay`: mounting applies them behind the last full commit.
//!
//! The area has a 64th of the journal's blocks, behind it (`lib/ext2fs/mkjournal.c`); one of them stays unused.
//!
//! A full commit follows instead (`ext4_fc_mark_ineligible`) where the transaction has extended attributes, inline
//! data, data in the journal, an exchange of two names, a directory that is renamed, a range that is inserted or
//! collapsed, a resize, a boot loader's inode swapped, extents moved or migrated, an encrypted name, verity or a
//! changed journal flag. No call of this kernel is among these; a sync of the directory and `sync` make full commits.
//!
//! Not here: the blocks of a fast commit that turns out too large for the area, which Linux has sent then; data that is
//! written for other files' sake (`jbd2_submit_inode_data`): with `dioread_nolock` a block is part of a file only when
//! it is written.

use std::collections::BTreeMap;
use std::ops::Range;

use flashwise_block::{BlockDevice, Operation};

use crate::PAGE;
use crate::block::{Bio, Purpose};
use crate::error::{KernelError, Result};
use crate::fs::extents::Extents;
use crate::fs::inode::Ino;
use crate::kernel::Kernel;

/// Tag and length, `EXT4_FC_TAG_BASE_LEN`.
const TAG: u64 = 4;
/// `struct ext4_fc_head`
const HEAD: u64 = 8;
/// `struct ext4_fc_tail`, without what it has for padding.
const TAIL: u64 = 8;
/// The inode's number, its 128 bytes and the 32 of `i_extra_isize`.
const INODE: u64 = 4 + 128 + 32;
/// `struct ext4_fc_add_range`
const ADD_RANGE: u64 = 16;
/// `struct ext4_fc_del_range`
const DEL_RANGE: u64 = 12;
/// `struct ext4_fc_dentry_info`, without the name.
const DENTRY: u64 = 8;
/// `EXT_MAX_BLOCKS`
const MAX_BLOCKS: u64 = u32::MAX as u64;

/// What happens to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameChange {
    /// `EXT4_FC_TAG_CREAT`
    Create,
    /// `EXT4_FC_TAG_LINK`
    Link,
    /// `EXT4_FC_TAG_UNLINK`
    Unlink,
}

/// `struct ext4_fc_dentry_update`
#[derive(Clone, Debug)]
struct Dentry {
    change: NameChange,
    name: String,
    ino: Ino,
}

/// What the next fast commit writes.
#[derive(Debug, Default)]
pub(crate) struct Tracked {
    /// With the blocks of each that changed, `i_fc_lblk_start` and `i_fc_lblk_len`.
    inodes: BTreeMap<Ino, Range<u64>>,
    names: Vec<Dentry>,
}

impl Tracked {
    /// `ext4_fc_track_inode`
    pub(crate) fn inode(&mut self, ino: Ino) {
        self.inodes.entry(ino).or_insert(0..0);
    }

    /// `ext4_fc_track_range`: one range has all that changed, and what is between.
    fn range(&mut self, ino: Ino, first: u64, end: u64) {
        let (first, end) = (first.min(MAX_BLOCKS), end.min(MAX_BLOCKS));
        let range = self.inodes.entry(ino).or_insert(0..0);
        *range = if range.is_empty() { first..end } else { range.start.min(first)..range.end.max(end) };
    }

    /// `ext4_fc_del`
    pub(crate) fn forget(&mut self, ino: Ino) {
        self.inodes.remove(&ino);
        self.names.retain(|dentry| dentry.ino != ino || dentry.change != NameChange::Create);
    }

    /// Blocks that it takes, `is_first` behind a full commit.
    fn blocks<'a>(&self, is_first: bool, extents_of: impl Fn(Ino) -> Option<&'a Extents>) -> u64 {
        let mut space = Space(0);
        if is_first {
            space.reserve(HEAD);
        }
        let mut ranges = self.inodes.clone();
        let write_ranges = |space: &mut Space, ino: Ino, range: Range<u64>| {
            let Some(extents) = extents_of(ino) else { return };
            let mut at = range.start;
            while at < range.end {
                let (value, length) = match extents.at(at) {
                    Some(extent) => (ADD_RANGE, extent.end() - at),
                    None => (DEL_RANGE, extents.hole(at, range.end - at)),
                };
                space.reserve(value);
                at += length.max(1);
            }
        };
        for Dentry { change, name, ino } in &self.names {
            if *change == NameChange::Create {
                space.reserve(INODE);
                let range = ranges.get_mut(ino).map(std::mem::take);
                write_ranges(&mut space, *ino, range.unwrap_or_default());
            }
            space.reserve(DENTRY + name.len() as u64);
        }
        for (ino, range) in ranges {
            write_ranges(&mut space, ino, range);
            space.reserve(INODE);
        }
        space.reserve(TAIL);
        space.0.div_ceil(PAGE)
    }
}

/// Bytes of a fast commit so far.
#[derive(Debug)]
struct Space(u64);

impl Space {
    /// `ext4_fc_reserve_space`: each block keeps space for the tag of its padding.
    fn reserve(&mut self, value: u64) {
        let (length, at) = (TAG + value, self.0 % PAGE);
        let is_within = length + TAG + at <= PAGE;
        self.0 += if is_within { length } else { PAGE - at + length };
    }
}

/// The area of fast commits.
#[derive(Debug, Default)]
pub(crate) struct FastCommits {
    /// First byte, blocks.
    area: Option<(u64, u64)>,
    /// `j_fc_off`: how many blocks are in use since the last full commit.
    used: u64,
}

impl FastCommits {
    pub(crate) fn new(area: Option<(u64, u64)>) -> Self {
        Self { area, used: 0 }
    }

    /// A full commit has all that is in the area.
    pub(crate) fn start_over(&mut self) {
        self.used = 0;
    }

    /// The first byte of so many free blocks.
    fn take(&mut self, blocks: u64) -> Option<u64> {
        let (first, all) = self.area?;
        let at = self.used;
        let is_free = at + blocks <= all;
        is_free.then(|| {
            self.used += blocks;
            first + at * PAGE
        })
    }
}

impl<D: BlockDevice> Kernel<D> {
    /// `ext4_fc_track_range`, for blocks that got a place, lost it or were written for the first time.
    pub(crate) fn track_range(&mut self, ino: Ino, first: u64, end: u64) {
        if self.config.fast_commit && first < end {
            let now = self.now();
            self.journal.transaction(now).fast.range(ino, first, end);
        }
    }

    /// `ext4_fc_track_create`, `ext4_fc_track_link`, `ext4_fc_track_unlink`
    pub(crate) fn track_name(&mut self, change: NameChange, name: &str, ino: Ino) {
        if self.config.fast_commit {
            let now = self.now();
            self.journal.transaction(now).fast.names.push(Dentry { change, name: name.to_owned(), ino });
        }
    }

    /// Whether an inode has changed since the last commit of any kind.
    pub(crate) fn awaits_fast_commit(&self, ino: Ino) -> bool {
        self.journal.running.as_ref().is_some_and(|running| running.fast.inodes.contains_key(&ino))
    }

    /// `ext4_fc_commit`: makes durable what a transaction has changed so far.
    pub(crate) fn fast_commit(&mut self, tid: u64) -> Result<()> {
        if let Some(error) = &self.journal.aborted {
            return Err(KernelError::ReadOnly(error.clone()));
        }
        // `jbd2_fc_begin_commit`
        if self.counters.commits == 0 {
            return self.commit_and_wait(tid);
        }
        if let Some(committing) = &self.journal.committing {
            let under_way = committing.transaction.tid;
            self.wait_until(|this| this.journal.committed >= under_way || this.journal.aborted.is_some())?;
        }
        if self.journal.committed >= tid {
            return Ok(());
        }
        // Where it fails, all of it is in the full commit that follows (`jbd2_fc_end_commit_fallback`).
        if self.perform_fast_commit() { Ok(()) } else { self.commit_and_wait(tid) }
    }

    /// `ext4_fc_perform_commit`; whether it is durable.
    fn perform_fast_commit(&mut self) -> bool {
        let Some(running) = &mut self.journal.running else { return false };
        let tracked = std::mem::take(&mut running.fast);
        let is_first = self.fast_commits.used == 0;
        let blocks = tracked.blocks(is_first, |ino| self.inodes.get(&ino).map(|inode| &inode.extents));
        let Some(first) = self.fast_commits.take(blocks) else { return false };
        let inodes = self.durable_inodes(tracked.inodes.keys());
        if self.write_fast_commit(first, blocks).is_err() {
            return false;
        }
        self.counters.fast_commits += 1;
        if let Some(durable) = &mut self.durable {
            let names = tracked.names.into_iter();
            let names = names.map(|Dentry { change, name, ino }| (name, (change != NameChange::Unlink).then_some(ino)));
            durable.apply(inodes, names);
        }
        true
    }

    /// `ext4_fc_submit_bh`, `jbd2_fc_wait_bufs`: the blocks, the last one between two flushes or with FUA.
    fn write_fast_commit(&mut self, first: u64, blocks: u64) -> Result<()> {
        let limits = *self.queue.limits();
        let ticket = self.new_ticket();
        let write = |at: u64| Bio::new(Operation::Write, first + at * PAGE, PAGE, Purpose::Ticket(ticket));
        self.queue.plug();
        for at in 0..blocks - 1 {
            self.submit_for(ticket, write(at))?;
        }
        self.queue.unplug()?;
        if limits.volatile_cache {
            self.submit_for(ticket, Bio::flush(Purpose::Ticket(ticket)))?;
            self.sleep_for(ticket)?;
        }
        let fua = limits.volatile_cache && limits.fua;
        self.submit_for(ticket, Bio { fua, ..write(blocks - 1) })?;
        if limits.volatile_cache && !fua {
            self.sleep_for(ticket)?;
            self.submit_for(ticket, Bio::flush(Purpose::Ticket(ticket)))?;
        }
        self.redeem(ticket).map(|_| ())
    }

    /// Waits for what a ticket has so far. The block layer goes on with it (`blk_flush_complete_seq`), so the task is
    /// not woken yet.
    fn sleep_for(&mut self, ticket: u64) -> Result<()> {
        while !self.is_redeemable(ticket) && self.wait_for_any()? {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::extents::Extent;

    fn blocks(tracked: &Tracked, extents: &Extents) -> u64 {
        tracked.blocks(true, |_| Some(extents))
    }

    #[test]
    fn an_empty_one_is_a_block_and_so_is_an_append() {
        let mut tracked = Tracked::default();
        let mut extents = Extents::default();
        assert_eq!(blocks(&tracked, &extents), 1);
        extents.insert(Extent { logical: 0, physical: 100, blocks: 7, unwritten: false });
        tracked.inode(12);
        tracked.range(12, 6, 7);
        assert_eq!(blocks(&tracked, &extents), 1);
    }

    /// Inode, extent, name "n1", inode again: 168 + 20 + 14 + 168 bytes for each; head and tail have 12 each, and 4
    /// stay for the tag of the padding.
    #[test]
    fn ten_new_files_fit_into_a_block() {
        let mut extents = Extents::default();
        extents.insert(Extent { logical: 0, physical: 100, blocks: 2, unwritten: false });
        let mut tracked = Tracked::default();
        for ino in 12..22 {
            tracked.names.push(Dentry { change: NameChange::Create, name: "n1".to_owned(), ino });
            tracked.range(ino, 0, 2);
        }
        assert_eq!(blocks(&tracked, &extents), 1);
        tracked.names.push(Dentry { change: NameChange::Create, name: "n1".to_owned(), ino: 22 });
        tracked.range(22, 0, 2);
        assert_eq!(blocks(&tracked, &extents), 2);
        tracked.forget(22);
        assert_eq!(blocks(&tracked, &extents), 1);
    }

    #[test]
    fn the_range_of_an_inode_has_an_entry_for_each_extent_and_hole_in_it() {
        let mut extents = Extents::default();
        for number in 0..300 {
            extents.insert(Extent { logical: number * 4, physical: number * 100, blocks: 1, unwritten: false });
        }
        let mut tracked = Tracked::default();
        // Head and tail 12 bytes each, the inode 168; 104 pairs of 36 are 3744.
        tracked.range(12, 0, 400);
        tracked.range(12, 412, 416);
        assert_eq!(blocks(&tracked, &extents), 1);
        tracked.range(12, 800, 801);
        assert_eq!(blocks(&tracked, &extents), 2);
        tracked.range(12, 801, u64::MAX);
        assert_eq!(blocks(&tracked, &extents), 3, "one hole behind the last extent");
    }

    #[test]
    fn the_area_starts_over_behind_a_full_commit() {
        let mut area = FastCommits::new(Some((PAGE, 3)));
        assert_eq!([area.take(1), area.take(2), area.take(1)], [Some(PAGE), Some(2 * PAGE), None]);
        area.start_over();
        assert_eq!([area.take(4), area.take(3)], [None, Some(PAGE)]);
        assert_eq!(FastCommits::new(None).take(1), None);
    }
}
