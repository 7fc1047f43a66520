//! The page cache as a file system's metadata sees it: blocks that were used stay until others need the space, the one
//! that was not used for longest first.

use std::collections::BTreeMap;

/// Blocks in memory, by age of use.
pub(crate) struct BlockCache {
    capacity: usize,
    /// By block: when it was used last.
    used: BTreeMap<u64, u64>,
    /// By time of use.
    order: BTreeMap<u64, u64>,
    clock: u64,
}

impl BlockCache {
    /// Room for so many blocks.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, used: BTreeMap::new(), order: BTreeMap::new(), clock: 0 }
    }

    /// Uses a block; whether it was there, and the block that has left for it. `must_stay` tells which may not.
    pub(crate) fn touch(&mut self, block: u64, must_stay: impl Fn(u64) -> bool) -> (bool, Option<u64>) {
        self.clock += 1;
        let before = self.used.insert(block, self.clock);
        if let Some(before) = before {
            self.order.remove(&before);
        }
        self.order.insert(self.clock, block);
        if self.used.len() <= self.capacity {
            return (before.is_some(), None);
        }
        let mut leavers = self.order.iter().filter(|&(_, &old)| old != block && !must_stay(old));
        let leaver = leavers.next().map(|(&at, &old)| (at, old));
        if let Some((at, old)) = leaver {
            self.order.remove(&at);
            self.used.remove(&old);
        }
        (before.is_some(), leaver.map(|(_, old)| old))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_that_was_not_used_for_longest_leaves_unless_it_must_stay() {
        let mut cache = BlockCache::new(2);
        let none = |_| false;
        assert_eq!(cache.touch(1, none), (false, None));
        assert_eq!(cache.touch(2, none), (false, None));
        assert_eq!(cache.touch(1, none), (true, None));
        assert_eq!(cache.touch(3, none), (false, Some(2)));
        assert_eq!(cache.touch(1, none), (true, None));
        assert_eq!(cache.touch(2, |block| block == 3), (false, Some(1)));
        assert_eq!(cache.touch(4, |_| true), (false, None), "all must stay: the cache grows");
        assert_eq!(cache.touch(3, none), (true, Some(2)));
    }
}
