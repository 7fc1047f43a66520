//! A model of the operating system's page cache, for all files except the database.
//!
//! Journals, WAL and temporary files are written through the page cache on every operating system: a write costs
//! nothing until a sync, and written data is read back from memory. Here too, data is in blocks of 4 KiB; clean blocks
//! are evicted in the order of their arrival when there are more than [`CAPACITY_BLOCKS`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::volume::FileId;

/// Size of a cached block.
pub(crate) const BLOCK: u64 = 4096;
/// Clean and dirty blocks of all files, 256 MiB.
const CAPACITY_BLOCKS: usize = 65_536;
/// Most dirty blocks of all files, 64 MiB; further ones are written before a sync.
pub(crate) const DIRTY_LIMIT_BLOCKS: usize = 16_384;

type Block = Box<[u8; BLOCK as usize]>;

#[derive(Debug, Default)]
struct FileCache {
    blocks: BTreeMap<u64, Block>,
    dirty: BTreeSet<u64>,
}

/// The cached blocks of all files.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    files: BTreeMap<FileId, FileCache>,
    /// In the order in which blocks came; may name blocks that have left.
    arrivals: VecDeque<(FileId, u64)>,
    blocks: usize,
    dirty: usize,
}

/// A run of adjacent blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRun {
    pub first: u64,
    pub count: u64,
}

impl PageCache {
    pub(crate) fn get(&self, id: FileId, block: u64) -> Option<&[u8]> {
        self.files.get(&id)?.blocks.get(&block).map(|bytes| &bytes[..])
    }

    /// A block for writing; zeros where it was not cached.
    pub(crate) fn dirty_block(&mut self, id: FileId, block: u64) -> &mut [u8] {
        if self.files.entry(id).or_default().dirty.insert(block) {
            self.dirty += 1;
        }
        self.block(id, block)
    }

    /// Takes a block that was read from the device.
    pub(crate) fn insert_clean(&mut self, id: FileId, block: u64, bytes: &[u8]) {
        self.block(id, block).copy_from_slice(bytes);
    }

    fn block(&mut self, id: FileId, block: u64) -> &mut [u8] {
        let (count, arrivals) = (&mut self.blocks, &mut self.arrivals);
        let entry = self.files.entry(id).or_default().blocks.entry(block);
        &mut entry.or_insert_with(|| {
            *count += 1;
            arrivals.push_back((id, block));
            Box::new([0; BLOCK as usize])
        })[..]
    }

    /// Runs of adjacent blocks within `first..=last` that are not cached.
    pub(crate) fn missing(&self, id: FileId, first: u64, last: u64, longest: u64) -> Vec<BlockRun> {
        runs((first..=last).filter(|&block| self.get(id, block).is_none()), longest)
    }

    /// Runs of adjacent dirty blocks.
    pub(crate) fn dirty_runs(&self, id: FileId, longest: u64) -> Vec<BlockRun> {
        self.files.get(&id).map_or_else(Vec::new, |file| runs(file.dirty.iter().copied(), longest))
    }

    pub(crate) fn is_over_dirty_limit(&self) -> bool {
        self.dirty > DIRTY_LIMIT_BLOCKS
    }

    /// A run was written to the device.
    pub(crate) fn mark_clean(&mut self, id: FileId, run: BlockRun) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let cleaned = (run.first..run.first + run.count).filter(|block| file.dirty.remove(block)).count();
        self.dirty -= cleaned;
    }

    /// Drops all blocks from `first` on.
    pub(crate) fn cut(&mut self, id: FileId, first: u64) {
        let Some(file) = self.files.get_mut(&id) else { return };
        self.blocks -= file.blocks.split_off(&first).len();
        self.dirty -= file.dirty.split_off(&first).len();
    }

    /// Drops a file.
    pub(crate) fn forget(&mut self, id: FileId) {
        self.cut(id, 0);
        self.files.remove(&id);
    }

    /// Lets clean blocks go while there are too many.
    pub(crate) fn evict(&mut self) {
        let mut looked_at = 0;
        while self.blocks > CAPACITY_BLOCKS && looked_at < self.arrivals.len() {
            let Some((id, block)) = self.arrivals.pop_front() else { break };
            let Some(file) = self.files.get_mut(&id) else { continue };
            if file.dirty.contains(&block) {
                self.arrivals.push_back((id, block));
                looked_at += 1;
            } else if file.blocks.remove(&block).is_some() {
                self.blocks -= 1;
            }
        }
        // Journals come and go; without this the queue of arrivals would only ever grow.
        if self.arrivals.len() > 2 * self.blocks + 1024 {
            let files = &self.files;
            let mut seen = BTreeSet::new();
            self.arrivals.retain(|&(id, block)| {
                files.get(&id).is_some_and(|file| file.blocks.contains_key(&block)) && seen.insert((id, block))
            });
        }
    }
}

fn runs(blocks: impl Iterator<Item = u64>, longest: u64) -> Vec<BlockRun> {
    let mut runs: Vec<BlockRun> = Vec::new();
    for block in blocks {
        match runs.last_mut() {
            Some(run) if run.first + run.count == block && run.count < longest => run.count += 1,
            _ => runs.push(BlockRun { first: block, count: 1 }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::{Volume, Zone};

    #[test]
    fn dirty_blocks_are_told_in_runs_and_counted_once() {
        let id = Volume::new(1 << 20, 512).create(None, Zone::Back);
        let mut cache = PageCache::default();
        for block in [3, 1, 2, 2, 9] {
            cache.dirty_block(id, block)[0] = 7;
        }
        let run = |first, count| BlockRun { first, count };
        assert_eq!(cache.dirty_runs(id, 2), [run(1, 2), run(3, 1), run(9, 1)]);
        assert_eq!((cache.dirty, cache.blocks), (4, 4));
        cache.mark_clean(id, run(1, 2));
        assert_eq!(cache.dirty_runs(id, 9), [run(3, 1), run(9, 1)]);
        assert_eq!(cache.missing(id, 0, 4, 9), [run(0, 1), run(4, 1)]);
        cache.cut(id, 3);
        assert_eq!((cache.dirty, cache.blocks), (0, 2));
        assert_eq!(cache.get(id, 1).map(|bytes| bytes[0]), Some(7));
    }

    #[test]
    fn clean_blocks_leave_when_the_cache_is_full_and_dirty_ones_stay() {
        let id = Volume::new(1 << 20, 512).create(None, Zone::Back);
        let mut cache = PageCache::default();
        cache.dirty_block(id, 0);
        for block in 1..CAPACITY_BLOCKS as u64 + 10 {
            cache.insert_clean(id, block, &[0; BLOCK as usize]);
        }
        cache.evict();
        assert_eq!(cache.blocks, CAPACITY_BLOCKS);
        assert!(cache.get(id, 0).is_some() && cache.get(id, 1).is_none());
    }
}
