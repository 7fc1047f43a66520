//! LFU: evicts the page that was requested least often since it was loaded; of several, the one that came first to its
//! count.
//!
//! A list for each count, the counts in a chain, so that every step takes a constant time.
//! Source of the structure: K. Shah, A. Mitra, D. Matani, *An O(1) algorithm for implementing the LFU cache eviction
//! scheme*, 2010. Counts are forgotten with the page (libCacheSim's LFU).
//!
//! **Order.** A new page has the count 1 and is evicted before every page that has more. So only pages of the lowest
//! count would be evicted: the lowest that is left once the victim is gone, which need not be the victim's. With
//! `order=counts` all of them are taken by their counts, which writes pages that stay.

use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry, Page};
use crate::lists::Lists;

/// The pages of one count; its number is that of its list.
#[derive(Clone, Copy)]
struct Bucket {
    count: u64,
    lower: u32,
    higher: u32,
}

/// End of the chain: a bucket of its own, between the highest and the lowest.
const ENDS: usize = 0;

/// See the module.
pub(crate) struct Lfu {
    lists: Lists,
    buckets: Vec<Bucket>,
    unused: Vec<u32>,
    /// By entry: its bucket.
    bucket: Vec<u32>,
    by_counts: bool,
}

impl Lfu {
    fn lowest(&self) -> usize {
        self.buckets[ENDS].higher as usize
    }

    /// From the lowest count on.
    fn chain(&self) -> impl Iterator<Item = usize> + '_ {
        let higher = |&bucket: &usize| Some(self.buckets[bucket].higher as usize).filter(|&bucket| bucket != ENDS);
        std::iter::successors(Some(self.lowest()).filter(|&bucket| bucket != ENDS), higher)
    }

    /// The bucket of a count, which comes right after `lower`.
    fn bucket_after(&mut self, lower: usize, count: u64) -> usize {
        let higher = self.buckets[lower].higher as usize;
        if higher != ENDS && self.buckets[higher].count == count {
            return higher;
        }
        let new = self.unused.pop().unwrap_or_default() as usize;
        self.buckets[new] = Bucket { count, lower: lower as u32, higher: higher as u32 };
        self.buckets[lower].higher = new as u32;
        self.buckets[higher].lower = new as u32;
        new
    }

    fn leave(&mut self, entry: Entry) {
        let bucket = self.bucket[entry.at()] as usize;
        self.lists.remove(bucket, entry);
        if self.lists.len(bucket) == 0 {
            let Bucket { lower, higher, .. } = self.buckets[bucket];
            self.buckets[lower as usize].higher = higher;
            self.buckets[higher as usize].lower = lower;
            self.unused.push(bucket as u32);
        }
    }
}

impl Policy for Lfu {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let by_counts = parameters.choice("order", &["miss", "counts"])? == 1;
        // A page in each bucket, the ends, and one for a page on its way from one to the next.
        let (entries, buckets) = (shape.frames + 1, shape.frames + 3);
        Ok(Self {
            lists: Lists::new(entries, buckets),
            buckets: vec![Bucket { count: 0, lower: 0, higher: 0 }; buckets],
            unused: (1..buckets as u32).rev().collect(),
            bucket: vec![0; entries],
            by_counts,
        })
    }

    fn hit(&mut self, entry: Entry, _: bool, _: &Directory) {
        let bucket = self.bucket[entry.at()] as usize;
        let to = self.bucket_after(bucket, self.buckets[bucket].count + 1);
        self.leave(entry);
        self.lists.push_front(to, entry);
        self.bucket[entry.at()] = to as u32;
    }

    #[inline]
    fn expect(&self, _: Page, entry: Entry) {
        self.lists.expect(entry);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        self.chain().find_map(|bucket| self.lists.oldest(bucket, pages))
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.leave(entry);
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, _: bool, _: &mut Directory) {
        let to = self.bucket_after(ENDS, 1);
        self.lists.push_front(to, entry);
        self.bucket[entry.at()] = to as u32;
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        let to = self.bucket_after(ENDS, 1);
        self.lists.push_back(to, entry);
        self.bucket[entry.at()] = to as u32;
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        let free = |bucket| self.lists.iter(bucket).filter(|&entry| pages.is_free(entry));
        let mut counts = self.chain().filter(|&bucket| free(bucket).next().is_some()).peekable();
        let victim_is_alone = counts.peek().is_some_and(|&bucket| free(bucket).nth(1).is_none());
        let most = match (self.by_counts, victim_is_alone) {
            (true, _) => usize::MAX,
            (false, true) => 2,
            (false, false) => 1,
        };
        let _ = hand_out(counts.take(most).flat_map(|bucket| self.lists.iter(bucket)), pages, take);
    }
}
