//! Free blocks, by place and by size.
//!
//! The form of ext4's buddies (Linux 6.18 `fs/ext4/mballoc.c`, `s_mb_largest_free_orders`) and of XFS's two B-trees of
//! free extents (`fs/xfs/libxfs/xfs_alloc.c`): extents by their first block, never across a border of groups, and the
//! same by the largest aligned power of two that lies in them.

use std::collections::{BTreeMap, BTreeSet};

/// What is free on the drive.
#[derive(Debug)]
pub(crate) struct FreeSpace {
    by_start: BTreeMap<u64, u64>,
    /// (order, first block of the extent)
    by_order: BTreeSet<(u8, u64)>,
    /// Blocks of a group (ext4's block group, XFS's allocation group).
    group: u64,
    total: u64,
}

/// The largest k for which 2^k blocks, aligned to 2^k from the group's start, lie in an extent.
fn order_of(start_in_group: u64, blocks: u64) -> u8 {
    let end = start_in_group + blocks;
    let most = blocks.max(1).ilog2();
    (0..=most).rev().find(|&k| start_in_group.next_multiple_of(1 << k) + (1 << k) <= end).unwrap_or(0) as u8
}

impl FreeSpace {
    /// Nothing is free.
    pub(crate) fn new(group: u64) -> Self {
        Self { by_start: BTreeMap::new(), by_order: BTreeSet::new(), group, total: 0 }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    fn order(&self, start: u64, blocks: u64) -> u8 {
        order_of(start % self.group, blocks)
    }

    fn put(&mut self, start: u64, blocks: u64) {
        self.by_start.insert(start, blocks);
        self.by_order.insert((self.order(start, blocks), start));
        self.total += blocks;
    }

    fn cut(&mut self, start: u64) -> Option<u64> {
        let blocks = self.by_start.remove(&start)?;
        self.by_order.remove(&(self.order(start, blocks), start));
        self.total -= blocks;
        Some(blocks)
    }

    /// Makes blocks free that are not.
    pub(crate) fn give(&mut self, first: u64, blocks: u64) {
        let (mut first, mut rest) = (first, blocks);
        while rest > 0 {
            let in_group = rest.min(self.group - first % self.group);
            debug_assert!(!self.overlaps(first, in_group), "blocks from {first} on are free already");
            let (mut start, mut length) = (first, in_group);
            if let Some((&before, &blocks)) = self.by_start.range(..start).next_back()
                && before + blocks == start
                && !start.is_multiple_of(self.group)
            {
                self.cut(before);
                (start, length) = (before, length + blocks);
            }
            let end = start + length;
            if !end.is_multiple_of(self.group)
                && let Some(blocks) = self.cut(end)
            {
                length += blocks;
            }
            self.put(start, length);
            (first, rest) = (first + in_group, rest - in_group);
        }
    }

    /// Whether any of these blocks is free.
    pub(crate) fn overlaps(&self, first: u64, blocks: u64) -> bool {
        let before = self.by_start.range(..first + blocks).next_back();
        before.is_some_and(|(&start, &length)| start + length > first)
    }

    /// Free blocks from `first` on.
    pub(crate) fn run(&self, first: u64) -> u64 {
        match self.by_start.range(..=first).next_back() {
            Some((&start, &length)) if start + length > first => start + length - first,
            _ => 0,
        }
    }

    /// Takes these blocks; `false`, and nothing is taken, where one of them is not free.
    pub(crate) fn take(&mut self, first: u64, blocks: u64) -> bool {
        let (mut at, end) = (first, first + blocks);
        while at < end {
            match self.run(at) {
                0 => return false,
                run => at += run,
            }
        }
        at = first;
        while at < end {
            let Some((&start, _)) = self.by_start.range(..=at).next_back() else { return false };
            let Some(length) = self.cut(start) else { return false };
            let stop = (start + length).min(end);
            if start < at {
                self.put(start, at - start);
            }
            if stop < start + length {
                self.put(stop, start + length - stop);
            }
            at = stop;
        }
        true
    }

    /// An aligned run of 2^`order` blocks: out of the smallest that will do, of those in the first group from `goal`
    /// on, round the end.
    pub(crate) fn find_power_of_two(&self, order: u8, goal: u64) -> Option<u64> {
        let goal = goal / self.group * self.group;
        let wanted = order;
        for order in order..=63 {
            let behind = self.by_order.range((order, goal)..(order + 1, 0)).next();
            let found = behind.or_else(|| self.by_order.range((order, 0)..(order, goal)).next());
            if let Some(&(_, start)) = found {
                return Some(self.buddy(start, wanted));
            }
        }
        None
    }

    /// The smallest buddy of an extent that will do, of these the first.
    fn buddy(&self, start: u64, order: u8) -> u64 {
        let base = start / self.group * self.group;
        let (mut at, end) = (start - base, start - base + self.by_start.get(&start).copied().unwrap_or(0));
        let mut best: Option<(u32, u64)> = None;
        while at < end {
            let own = at.trailing_zeros().min((end - at).ilog2());
            if own >= u32::from(order) && best.is_none_or(|(smallest, _)| own < smallest) {
                best = Some((own, at));
            }
            at += 1 << own;
        }
        base + best.map_or(start - base, |(_, at)| at)
    }

    /// The largest free extent, about: one of the highest order.
    pub(crate) fn largest(&self) -> Option<(u64, u64)> {
        let &(order, _) = self.by_order.iter().next_back()?;
        let candidates = self.by_order.range((order, 0)..).take(64);
        let extents = candidates.filter_map(|&(_, start)| self.by_start.get(&start).map(|&blocks| (start, blocks)));
        extents.max_by_key(|&(start, blocks)| (blocks, u64::MAX - start))
    }

    /// `xfs_alloc_ag_vextent_near`: `blocks` free blocks as near to `goal` as there are, in the goal's group if
    /// possible.
    pub(crate) fn find_near(&self, goal: u64, blocks: u64) -> Option<u64> {
        const LOOKS: usize = 256;
        let fits = |&(_, &length): &(&u64, &u64)| length >= blocks;
        let place = |(&start, &length): (&u64, &u64)| goal.clamp(start, start + length - blocks);
        let behind = self.by_start.range(goal..).take(LOOKS).find(fits).map(place);
        let before = self.by_start.range(..goal).rev().take(LOOKS).find(fits).map(place);
        let distance = |at: u64| (at / self.group != goal / self.group, at.abs_diff(goal));
        let near = behind.into_iter().chain(before).min_by_key(|&at| distance(at));
        near.or_else(|| {
            let order = blocks.next_power_of_two().ilog2() as u8;
            self.find_power_of_two(order, goal)
        })
    }

    pub(crate) fn extents(&self) -> Vec<(u64, u64)> {
        self.by_start.iter().map(|(&start, &blocks)| (start, blocks)).collect()
    }

    /// # Errors
    /// What is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut behind = 0;
        for (&start, &blocks) in &self.by_start {
            if start < behind || blocks == 0 {
                return Err(format!("free extents overlap at block {start}"));
            }
            behind = start + blocks;
        }
        let total: u64 = self.by_start.values().sum();
        match total == self.total && self.by_order.len() == self.by_start.len() {
            true => Ok(()),
            false => Err(format!("{total} blocks are free, {} counted", self.total)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_merges_within_its_group() {
        let mut free = FreeSpace::new(1024);
        free.give(0, 4096);
        assert_eq!(free.extents().len(), 4);
        assert!(free.take(100, 8));
        assert!(!free.take(90, 30), "part of it is taken");
        assert_eq!(free.total(), 4088);
        free.give(100, 8);
        assert_eq!(free.extents()[0], (0, 1024));
        assert!(free.take(1000, 100), "across the border of two groups");
        free.give(1000, 100);
        assert_eq!(free.extents().len(), 4);
        free.check().unwrap();
    }

    #[test]
    fn the_smallest_run_that_will_do_is_taken_first() {
        let mut free = FreeSpace::new(32768);
        free.give(0, 65536);
        assert!(free.take(40000, 25536));
        // The second group has buddies of 4096, 2048, 1024 and 64 blocks.
        assert_eq!(free.find_power_of_two(9, 0), Some(32768 + 4096 + 2048));
        assert_eq!(free.find_power_of_two(13, 40000), Some(0));
        assert_eq!(free.find_power_of_two(16, 0), None);
    }

    #[test]
    fn the_nearest_run_is_found_on_either_side() {
        let mut free = FreeSpace::new(1 << 20);
        free.give(100, 10);
        free.give(200, 50);
        assert_eq!(free.find_near(120, 8), Some(102));
        assert_eq!(free.find_near(120, 20), Some(200));
        assert_eq!(free.find_near(220, 20), Some(220));
        assert_eq!(free.find_near(220, 60), None);
    }
}
