//! ext4's block allocator.
//!
//! Linux 6.18, `fs/ext4/mballoc.c`:
//! - `ext4_mb_use_preallocated`: blocks that are set aside for the file, or for small files on this processor, go
//!   first;
//! - `ext4_mb_group_or_file`: a file of at most 16 blocks (`s_mb_stream_request`) is served from a group preallocation
//!   of 512 blocks. Linux has one a processor; the task stays on its own;
//! - `ext4_mb_normalize_request`: for larger files the request is widened to a power of two by the file's size, up to 8
//!   MiB, and what is left over is set aside for the file;
//! - `ext4_mb_find_by_goal`: behind the file's last block, if enough is free there;
//! - `ext4_mb_scan_groups`, `CR_POWER2_ALIGNED`: else out of the smallest aligned run that will do, from the goal's
//!   group on;
//! - `CR_ANY_FREE`: at last out of the largest.
//!
//! The criteria in between choose by a group's mean fragment; here they are the second one with the size rounded up.
//! All groups count as loaded: right after mounting Linux knows few and stays near the goal.

use crate::fs::free_space::FreeSpace;
use crate::fs::inode::Preallocation;
use crate::fs::layout::{Allocation, AllocationRequest};

/// `MB_DEFAULT_STREAM_THRESHOLD`, blocks.
const STREAM_REQUEST: u64 = 16;
/// `MB_DEFAULT_GROUP_PREALLOC`, blocks.
const GROUP_PREALLOCATION: u64 = 512;

/// The free space, and what is set aside.
#[derive(Debug)]
pub(crate) struct BlockAllocator {
    pub(crate) free: FreeSpace,
    /// For small files: (first block, blocks).
    locality: (u64, u64),
    /// Set aside for files.
    preallocated: u64,
}

/// `ext4_mb_normalize_request`: the blocks of the file to look for, as (first, blocks).
fn normalize(request: &AllocationRequest) -> (u64, u64) {
    const MIB: u64 = 256;
    let size = (request.logical + request.blocks).max(request.file_blocks);
    let (mut start, mut blocks) = match size {
        0..=4 => (0, 4),
        5..=8 => (0, 8),
        9..=16 => (0, 16),
        17..=32 => (0, 32),
        33..=64 => (0, 64),
        65..=128 => (0, 128),
        129..=256 => (0, 256),
        257..=1024 => (request.logical / (2 * MIB) * (2 * MIB), 2 * MIB),
        1025..=2048 => (request.logical / (4 * MIB) * (4 * MIB), 4 * MIB),
        _ if request.blocks <= 8 * MIB => (request.logical / (8 * MIB) * (8 * MIB), 8 * MIB),
        _ => (request.logical, request.blocks),
    };
    let mut end = start + blocks;
    // What the file has already is not looked for again.
    start = if request.left.is_some() || start < request.logical { request.logical } else { start };
    if let Some(next) = request.next_logical {
        end = end.min(next);
    }
    blocks = end.saturating_sub(start).max(request.blocks);
    (start, blocks)
}

impl BlockAllocator {
    pub(crate) fn new(group: u64) -> Self {
        Self { free: FreeSpace::new(group), locality: (0, 0), preallocated: 0 }
    }

    /// Free blocks, those that are set aside included.
    pub(crate) fn free_blocks(&self) -> u64 {
        self.free.total() + self.preallocated + self.locality.1
    }

    /// Blocks near a place, for what is made with the file system and for metadata.
    pub(crate) fn take_near(&mut self, goal: u64, blocks: u64) -> Option<u64> {
        let near = self.free.find_near(goal, blocks).filter(|&first| self.free.take(first, blocks));
        // A journal is longer than a group: its runs lie together across the border.
        near.or_else(|| self.take_across(goal, blocks))
    }

    fn take_across(&mut self, goal: u64, blocks: u64) -> Option<u64> {
        let candidates: Vec<u64> = self.free.extents().into_iter().map(|(start, _)| start).collect();
        let behind = candidates.iter().copied().filter(|&start| start >= goal);
        let before = candidates.iter().copied().filter(|&start| start < goal);
        behind.chain(before).find(|&start| self.free.take(start, blocks))
    }

    pub(crate) fn discard(&mut self, preallocated: Preallocation) {
        self.preallocated -= preallocated.blocks;
        if preallocated.blocks > 0 {
            self.free.give(preallocated.physical, preallocated.blocks);
        }
    }

    fn discard_locality(&mut self) {
        let (first, blocks) = std::mem::take(&mut self.locality);
        if blocks > 0 {
            self.free.give(first, blocks);
        }
    }

    pub(crate) fn allocate(&mut self, request: &AllocationRequest, goal: u64) -> Option<Allocation> {
        if request.metadata {
            let physical = self.take_near(request.left.unwrap_or(goal), 1).or_else(|| {
                self.discard_locality();
                self.take_near(goal, 1)
            })?;
            return Some(Allocation { physical, blocks: 1, preallocated: request.preallocated });
        }
        if let Some(allocation) = self.use_preallocated(request) {
            return Some(allocation);
        }
        let size = (request.logical + request.blocks).max(request.file_blocks);
        let is_closed = !request.open_for_write && request.logical + request.blocks == request.file_blocks;
        if size <= STREAM_REQUEST
            && let Some(allocation) = self.use_locality(request, goal)
        {
            return Some(allocation);
        }
        let (start, blocks) = if is_closed { (request.logical, request.blocks) } else { normalize(request) };
        self.search(request, goal, start, blocks).or_else(|| {
            self.discard_locality();
            self.search(request, goal, request.logical, request.blocks)
        })
    }

    fn use_preallocated(&mut self, request: &AllocationRequest) -> Option<Allocation> {
        let held = request.preallocated?;
        let skip = request.logical.checked_sub(held.logical).filter(|&skip| skip < held.blocks)?;
        let blocks = request.blocks.min(held.blocks - skip);
        // What is skipped is given back: nothing will be looked for there again before the whole is used up.
        if skip > 0 {
            self.free.give(held.physical, skip);
        }
        self.preallocated -= skip + blocks;
        let rest = Preallocation {
            logical: request.logical + blocks,
            physical: held.physical + skip + blocks,
            blocks: held.blocks - skip - blocks,
        };
        let preallocated = (rest.blocks > 0).then_some(rest);
        Some(Allocation { physical: held.physical + skip, blocks, preallocated })
    }

    fn use_locality(&mut self, request: &AllocationRequest, goal: u64) -> Option<Allocation> {
        if self.locality.1 < request.blocks {
            let order = GROUP_PREALLOCATION.ilog2() as u8;
            let first = self.free.find_power_of_two(order, goal)?;
            if !self.free.take(first, GROUP_PREALLOCATION) {
                return None;
            }
            let (old, left) = self.locality;
            if left > 0 {
                self.free.give(old, left);
            }
            self.locality = (first, GROUP_PREALLOCATION);
        }
        let (physical, left) = self.locality;
        self.locality = (physical + request.blocks, left - request.blocks);
        Some(Allocation { physical, blocks: request.blocks, preallocated: request.preallocated })
    }

    fn search(&mut self, request: &AllocationRequest, goal: u64, start: u64, blocks: u64) -> Option<Allocation> {
        let behind_left = request.left.map(|left| left + 1).filter(|_| start == request.logical);
        let (first, found) = match behind_left.filter(|&at| self.free.run(at) >= blocks) {
            Some(at) => (at, blocks),
            None => {
                let order = blocks.checked_next_power_of_two()?.ilog2() as u8;
                match self.free.find_power_of_two(order, behind_left.unwrap_or(goal)) {
                    Some(at) => (at, blocks),
                    None => self.free.largest().map(|(at, free)| (at, free.min(blocks)))?,
                }
            }
        };
        if !self.free.take(first, found) {
            return None;
        }
        let skip = (request.logical - start).min(found - 1);
        let blocks = request.blocks.min(found - skip);
        if let Some(old) = request.preallocated {
            self.discard(old);
        }
        if skip > 0 {
            self.free.give(first, skip);
        }
        let rest = Preallocation {
            logical: request.logical + blocks,
            physical: first + skip + blocks,
            blocks: found - skip - blocks,
        };
        self.preallocated += rest.blocks;
        Some(Allocation { physical: first + skip, blocks, preallocated: (rest.blocks > 0).then_some(rest) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocator() -> BlockAllocator {
        let mut allocator = BlockAllocator::new(32768);
        allocator.free.give(0, 32768 * 3 + 3000);
        allocator
    }

    fn request(logical: u64, blocks: u64, left: Option<u64>) -> AllocationRequest {
        AllocationRequest {
            ino: 13,
            logical,
            blocks,
            file_blocks: logical + blocks,
            left,
            next_logical: None,
            preallocated: None,
            open_for_write: true,
            metadata: false,
        }
    }

    #[test]
    fn small_files_share_a_run_in_the_smallest_group_that_will_do() {
        let mut allocator = allocator();
        let first = allocator.allocate(&request(0, 1, None), 0).unwrap();
        assert_eq!(first.physical, 32768 * 3 + 2048, "the last, partial group has a buddy of that size");
        let second = allocator.allocate(&request(0, 2, None), 0).unwrap();
        assert_eq!(second.physical, first.physical + 1);
        let grown = request(1, 1, Some(first.physical));
        assert_eq!(allocator.allocate(&grown, 0).unwrap().physical, first.physical + 3);
        assert_eq!(allocator.free_blocks(), 32768 * 3 + 3000 - 4);
    }

    #[test]
    fn a_growing_file_gets_as_much_again_and_goes_on_where_it_ended() {
        let mut allocator = allocator();
        let mut left = allocator.allocate(&request(0, 16, None), 0).unwrap().physical + 15;
        let mut held = None;
        let mut jumps = 0;
        for logical in 16..256 {
            let request = AllocationRequest { preallocated: held, ..request(logical, 1, Some(left)) };
            let got = allocator.allocate(&request, 0).unwrap();
            jumps += u32::from(got.physical != left + 1);
            (left, held) = (got.physical, got.preallocated);
        }
        assert!(jumps <= 4, "one each time its size doubles: {jumps}");
        assert_eq!(held, None);
        allocator.free.check().unwrap();
    }

    #[test]
    fn each_block_is_given_once_until_none_is_left() {
        let mut allocator = BlockAllocator::new(1024);
        allocator.free.give(0, 4096);
        let mut seen = std::collections::BTreeSet::new();
        let mut held = None;
        let mut logical = 0;
        while let Some(got) =
            allocator.allocate(&AllocationRequest { preallocated: held, ..request(logical, 7, None) }, 0)
        {
            assert!((got.physical..got.physical + got.blocks).all(|block| seen.insert(block)));
            logical += got.blocks;
            held = got.preallocated;
        }
        assert_eq!(seen.len(), 4096);
    }
}
