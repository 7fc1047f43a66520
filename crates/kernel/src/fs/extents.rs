//! Where a file's blocks are.
//!
//! Linux 6.18: `fs/ext4/extents.c`, `fs/xfs/libxfs/xfs_bmap.c`. An extent is written or unwritten: an unwritten one is
//! allocated and reads as zeros until its data has reached the drive. Neighbours are merged when they lie together and
//! are of one kind, up to the longest extent that the file system can note.

use std::cell::Cell;
use std::collections::BTreeMap;

/// Blocks of a file that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// First block in the file.
    pub(crate) logical: u64,
    /// First block on the drive.
    pub(crate) physical: u64,
    pub(crate) blocks: u64,
    pub(crate) unwritten: bool,
}

impl Extent {
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.logical + self.blocks
    }
}

#[derive(Clone, Copy, Debug)]
struct Stored {
    physical: u64,
    blocks: u64,
    unwritten: bool,
}

/// All extents of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extents {
    by_logical: BTreeMap<u64, Stored>,
    blocks: u64,
    /// How often blocks came or went.
    changes: u64,
    /// The one that was found last: most calls examine the same block several times.
    recent: Cell<Option<Extent>>,
    /// Behind the last extent, where a file that grows is written.
    end: u64,
}

/// ext4 notes 15 bits of length. XFS notes 21, which no file here comes near unmerged.
const LONGEST: u64 = 32768;

impl Extents {
    /// How many extents the file system stores.
    pub(crate) fn count(&self) -> usize {
        self.by_logical.len()
    }

    /// How often blocks came or went: while this stays, every block keeps its place.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Blocks allocated.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    #[inline]
    fn make(logical: u64, stored: &Stored) -> Extent {
        let Stored { physical, blocks, unwritten } = *stored;
        Extent { logical, physical, blocks, unwritten }
    }

    /// The extent that a block is in.
    #[inline]
    pub(crate) fn at(&self, block: u64) -> Option<Extent> {
        let recent = self.recent.get().filter(|extent| (extent.logical..extent.end()).contains(&block));
        if recent.is_some() || block >= self.end {
            return recent;
        }
        let (&logical, stored) = self.by_logical.range(..=block).next_back()?;
        let found = (block < logical + stored.blocks).then(|| Self::make(logical, stored));
        self.recent.set(found);
        found
    }

    /// The last extent that begins before a block.
    pub(crate) fn before(&self, block: u64) -> Option<Extent> {
        if block >= self.end {
            return self.last();
        }
        self.by_logical.range(..block).next_back().map(|(&logical, stored)| Self::make(logical, stored))
    }

    /// The first extent that begins at or behind a block.
    pub(crate) fn from(&self, block: u64) -> Option<Extent> {
        if block >= self.end {
            return None;
        }
        self.by_logical.range(block..).next().map(|(&logical, stored)| Self::make(logical, stored))
    }

    pub(crate) fn last(&self) -> Option<Extent> {
        self.by_logical.last_key_value().map(|(&logical, stored)| Self::make(logical, stored))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Extent> + '_ {
        self.by_logical.iter().map(|(&logical, stored)| Self::make(logical, stored))
    }

    /// Blocks of a hole from `block` on, at most `most`; 0 where the block is allocated.
    pub(crate) fn hole(&self, block: u64, most: u64) -> u64 {
        match (self.at(block), self.from(block)) {
            (Some(_), _) => 0,
            (None, Some(next)) => (next.logical - block).min(most),
            (None, None) => most,
        }
    }

    fn merge_with_previous(&mut self, logical: u64) {
        self.recent.set(None);
        let Some(stored) = self.by_logical.get(&logical).copied() else { return };
        let Some((&before, left)) = self.by_logical.range_mut(..logical).next_back() else { return };
        let together = before + left.blocks == logical
            && left.physical + left.blocks == stored.physical
            && left.unwritten == stored.unwritten
            && left.blocks + stored.blocks <= LONGEST;
        if together {
            left.blocks += stored.blocks;
            self.by_logical.remove(&logical);
        }
    }

    /// Adds blocks that were a hole.
    pub(crate) fn insert(&mut self, extent: Extent) {
        debug_assert!(self.hole(extent.logical, extent.blocks) == extent.blocks, "{extent:?} is no hole");
        self.blocks += extent.blocks;
        self.changes += 1;
        let Extent { mut logical, mut physical, mut blocks, unwritten } = extent;
        while blocks > 0 {
            let piece = blocks.min(LONGEST);
            self.by_logical.insert(logical, Stored { physical, blocks: piece, unwritten });
            self.merge_with_previous(logical);
            (logical, physical, blocks) = (logical + piece, physical + piece, blocks - piece);
        }
        match logical > self.end {
            // Nothing is behind.
            true => self.end = logical,
            false => self.merge_with_previous(logical),
        }
    }

    /// Makes an extent begin at a block that one spans.
    fn split(&mut self, block: u64) {
        let Some(extent) = self.at(block) else { return };
        self.recent.set(None);
        if extent.logical < block {
            let left = block - extent.logical;
            let Extent { physical, blocks, unwritten, .. } = extent;
            self.by_logical.insert(extent.logical, Stored { physical, blocks: left, unwritten });
            let right = Stored { physical: physical + left, blocks: blocks - left, unwritten };
            self.by_logical.insert(block, right);
        }
    }

    /// Unwritten blocks of a range become written ones; whether there were any.
    pub(crate) fn convert(&mut self, first: u64, end: u64) -> bool {
        let mut from = first;
        let mut changed = false;
        while from < end {
            let Some(extent) = self.at(from).or_else(|| self.from(from)) else { break };
            if extent.logical >= end {
                break;
            }
            if extent.unwritten {
                let (start, stop) = (from.max(extent.logical), end.min(extent.end()));
                self.split(start);
                self.split(stop);
                if let Some(stored) = self.by_logical.get_mut(&start) {
                    stored.unwritten = false;
                }
                self.merge_with_previous(start);
                self.merge_with_previous(stop);
                changed = true;
            }
            from = extent.end();
        }
        changed
    }

    /// Takes the blocks of a range away: where they were on the drive, as (first, blocks).
    pub(crate) fn remove(&mut self, first: u64, end: u64) -> Vec<(u64, u64)> {
        self.split(first);
        self.split(end);
        let gone: Vec<u64> = self.by_logical.range(first..end).map(|(&logical, _)| logical).collect();
        let mut freed = Vec::with_capacity(gone.len());
        for logical in gone {
            self.recent.set(None);
            if let Some(stored) = self.by_logical.remove(&logical) {
                self.blocks -= stored.blocks;
                freed.push((stored.physical, stored.blocks));
            }
        }
        self.changes += u64::from(!freed.is_empty());
        self.end = self.last().map_or(0, |last| last.end());
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(logical: u64, physical: u64, blocks: u64, unwritten: bool) -> Extent {
        Extent { logical, physical, blocks, unwritten }
    }

    #[test]
    fn blocks_that_lie_together_are_one_extent() {
        let mut extents = Extents::default();
        extents.insert(extent(0, 100, 4, false));
        extents.insert(extent(4, 104, 4, false));
        assert_eq!(extents.count(), 1);
        extents.insert(extent(8, 108, 1, true));
        assert_eq!(extents.count(), 2);
        assert!(extents.convert(8, 9));
        assert_eq!(extents.count(), 1);
        assert_eq!(extents.at(8), Some(extent(0, 100, 9, false)));
        assert_eq!(extents.blocks(), 9);
        assert_eq!(extents.changes(), 3);
    }

    #[test]
    fn converting_the_middle_of_an_extent_makes_three() {
        let mut extents = Extents::default();
        extents.insert(extent(0, 100, 10, true));
        assert!(extents.convert(4, 6));
        assert!(!extents.convert(4, 6));
        let all: Vec<Extent> = extents.iter().collect();
        assert_eq!(all, [extent(0, 100, 4, true), extent(4, 104, 2, false), extent(6, 106, 4, true)]);
    }

    #[test]
    fn a_range_that_is_taken_away_leaves_a_hole() {
        let mut extents = Extents::default();
        extents.insert(extent(0, 100, 10, false));
        assert_eq!(extents.remove(3, 5), [(103, 2)]);
        assert_eq!(extents.hole(3, 100), 2);
        assert_eq!(extents.hole(10, 100), 100);
        assert_eq!(extents.at(5), Some(extent(5, 105, 5, false)));
        assert_eq!(extents.blocks(), 8);
        assert_eq!(extents.before(5), Some(extent(0, 100, 3, false)));
        assert_eq!(extents.changes(), 2);
        assert!(extents.remove(3, 5).is_empty() && extents.changes() == 2);
    }

    #[test]
    fn a_long_run_is_stored_in_pieces_of_the_longest_extent() {
        let mut extents = Extents::default();
        extents.insert(extent(0, 0, 100_000, false));
        assert_eq!(extents.count(), 4);
        assert_eq!(extents.blocks(), 100_000);
    }
}
