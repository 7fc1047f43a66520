//! The directory's blocks.
//!
//! Linux 6.18, `fs/ext4/namei.c` `ext4_add_entry`, `make_indexed_dir`, `do_split`: entries of 8 bytes and the name,
//! rounded to 4. A directory of one block is searched; a larger one has leaves by ranges of the name's hash, and a full
//! leaf is split in two. Half of the entries are taken to go to each; which names they are is not kept here.

use std::collections::BTreeMap;

use crate::PAGE;
use crate::fs::ext4::mballoc::BlockAllocator;

/// A leaf without its checksum.
const LEAF: u64 = PAGE - 12;

#[derive(Clone, Copy, Debug)]
struct Leaf {
    block: u64,
    used: u64,
}

/// Leaves by the first hash of their range; block 0 is the index once there are two.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    root: u64,
    leaves: BTreeMap<u32, Leaf>,
}

/// What a new name changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) blocks: Vec<u64>,
    pub(crate) new_blocks: Vec<u64>,
}

/// Where a name goes. The real hash is half MD4 with a seed of the file system's; this one is as even.
fn hash(name: &str) -> u32 {
    let folded = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    (folded ^ folded >> 32) as u32
}

fn entry_bytes(name: &str) -> u64 {
    (8 + name.len() as u64).next_multiple_of(4)
}

impl Directory {
    /// An empty one: "." and "..", and lost+found.
    pub(crate) fn new(block: u64) -> Self {
        Self { root: block, leaves: BTreeMap::from([(0, Leaf { block, used: 12 + 12 + 20 })]) }
    }

    fn leaf(&self, hash: u32) -> Option<(u32, Leaf)> {
        self.leaves.range(..=hash).next_back().map(|(&start, &leaf)| (start, leaf))
    }

    /// The leaf that a name is in.
    pub(crate) fn block_of(&self, name: &str) -> u64 {
        self.leaf(hash(name)).map_or(self.root, |(_, leaf)| leaf.block)
    }

    /// Adds a name; `None` where there is no block for it.
    pub(crate) fn insert(&mut self, name: &str, allocator: &mut BlockAllocator) -> Option<Change> {
        let mut change = Change::default();
        let bytes = entry_bytes(name);
        let hash = hash(name);
        let (mut start, mut leaf) = self.leaf(hash)?;
        if leaf.used + bytes > LEAF {
            let end = self.leaves.range(start.checked_add(1)?..).next().map_or(1 << 32, |(&end, _)| u64::from(end));
            let middle = ((u64::from(start) + end) / 2) as u32;
            if middle == start {
                return None;
            }
            let near = leaf.block;
            if self.leaves.len() == 1 {
                // The first block becomes the index.
                leaf.block = allocator.take_near(near, 1)?;
                change.new_blocks.push(leaf.block);
            }
            let Some(block) = allocator.take_near(near, 1) else {
                change.new_blocks.iter().for_each(|&block| allocator.free.give(block, 1));
                return None;
            };
            let other = Leaf { block, used: leaf.used / 2 };
            change.new_blocks.push(other.block);
            change.blocks.push(self.root);
            change.blocks.push(leaf.block);
            leaf.used -= other.used;
            self.leaves.insert(start, leaf);
            self.leaves.insert(middle, other);
            (start, leaf) = self.leaf(hash)?;
        }
        leaf.used += bytes;
        self.leaves.insert(start, leaf);
        change.blocks.push(leaf.block);
        Some(change)
    }

    /// Takes a name away: which block that changes.
    pub(crate) fn remove(&mut self, name: &str) -> u64 {
        let Some((start, mut leaf)) = self.leaf(hash(name)) else { return self.root };
        leaf.used = leaf.used.saturating_sub(entry_bytes(name));
        self.leaves.insert(start, leaf);
        leaf.block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_split_when_they_are_full() {
        let mut allocator = BlockAllocator::new(32768);
        allocator.free.give(0, 32768);
        let mut directory = Directory::new(5);
        let mut blocks = 0;
        for number in 0..10_000 {
            let change = directory.insert(&format!("file{number}"), &mut allocator).unwrap();
            blocks += change.new_blocks.len();
        }
        // 16 to 20 bytes each: 10,000 need at least 40 leaves, and splits leave them half full.
        assert!((40..100).contains(&blocks), "{blocks}");
        (0..10_000).for_each(|number| {
            directory.remove(&format!("file{number}"));
        });
    }
}
