//! The fingerprints that a drive has in memory: which stored page each is of, and in which order they were found last.
//!
//! ```text
//!   fingerprint ─▶ bucket ─▶ entry ─▶ entry ─▶ …      a chain through the entries, mostly of one or two
//!                              └─ newer, older        the order in which they were found
//! ```
//!
//! Millions of them fit no cache of the processor, and each page that is written looks one up, puts one in, and forgets
//! another. What is forgotten is known beforehand: it is the oldest, and the next oldest is named to the processor one
//! write ahead ([`Fingerprints::expect_oldest`]). A table that finds places by itself would not tell which these are.

use rustc_hash::FxHashMap;

use crate::list::{NONE, Slab};
use crate::memory::prefetch;
use crate::recency::{Links, Ranked, Recency};

/// A fingerprint in memory.
struct Entry {
    fingerprint: u128,
    stored: u32,
    /// The next one of its bucket, or [`NONE`].
    next: u32,
    links: Links,
}

impl Default for Entry {
    fn default() -> Self {
        Self { fingerprint: 0, stored: 0, next: NONE, links: Links::default() }
    }
}

impl Ranked for Entry {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// Fingerprints in memory, each by the number of its entry.
pub(super) struct Fingerprints {
    entries: Slab<Entry>,
    count: usize,
    recency: Recency,
    /// The first entry of each bucket, or [`NONE`]; a power of two of them.
    buckets: Vec<u32>,
    /// How many fingerprints have each short hash; where short hashes are examined.
    pre_hashes: Option<FxHashMap<u32, u32>>,
}

/// Buckets of an empty table.
const FIRST: usize = 64;

/// The short hash of a page, which is a part of its fingerprint as any other hash of its content would be.
fn pre_hash(fingerprint: u128) -> u32 {
    (fingerprint >> 96) as u32 ^ (fingerprint as u32).wrapping_mul(0x9e37_79b1)
}

impl Fingerprints {
    /// None; `has_pre_hashes` tells whether [`Self::knows_pre_hash`] is ever asked.
    pub(super) fn new(has_pre_hashes: bool) -> Self {
        Self {
            entries: Slab::default(),
            count: 0,
            recency: Recency::default(),
            buckets: vec![NONE; FIRST],
            pre_hashes: has_pre_hashes.then(FxHashMap::default),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    fn bucket(&self, fingerprint: u128) -> usize {
        let mixed = (fingerprint as u64 ^ (fingerprint >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (u64::BITS - self.buckets.len().trailing_zeros())) as usize
    }

    /// The entry of a fingerprint.
    pub(super) fn find(&self, fingerprint: u128) -> Option<u32> {
        let mut entry = self.buckets[self.bucket(fingerprint)];
        while entry != NONE && self.entries[entry].fingerprint != fingerprint {
            entry = self.entries[entry].next;
        }
        (entry != NONE).then_some(entry)
    }

    /// Whether the short hash of a page is that of one of them.
    pub(super) fn knows_pre_hash(&self, fingerprint: u128) -> bool {
        self.pre_hashes.as_ref().is_none_or(|known| known.contains_key(&pre_hash(fingerprint)))
    }

    /// The stored page whose fingerprint an entry is.
    pub(super) fn stored(&self, entry: u32) -> u32 {
        self.entries[entry].stored
    }

    /// One was found: it is the newest now.
    pub(super) fn renew(&mut self, entry: u32) {
        self.recency.remove(&mut self.entries, entry);
        self.recency.push(&mut self.entries, entry);
    }

    /// Puts in the fingerprint of a stored page, which is not there yet; gives its entry.
    pub(super) fn insert(&mut self, fingerprint: u128, stored: u32) -> u32 {
        debug_assert!(self.find(fingerprint).is_none(), "it is there already");
        if self.count == self.buckets.len() {
            self.grow();
        }
        let (entry, bucket) = (self.entries.take(), self.bucket(fingerprint));
        let next = std::mem::replace(&mut self.buckets[bucket], entry);
        self.entries[entry] = Entry { fingerprint, stored, next, links: Links::default() };
        self.recency.push(&mut self.entries, entry);
        self.count += 1;
        if let Some(known) = &mut self.pre_hashes {
            *known.entry(pre_hash(fingerprint)).or_default() += 1;
        }
        entry
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, entry: u32) {
        let Entry { fingerprint, next, .. } = self.entries[entry];
        let bucket = self.bucket(fingerprint);
        if self.buckets[bucket] == entry {
            self.buckets[bucket] = next;
        } else {
            let mut before = self.buckets[bucket];
            while self.entries[before].next != entry {
                before = self.entries[before].next;
            }
            self.entries[before].next = next;
        }
        self.recency.remove(&mut self.entries, entry);
        self.entries.give_back(entry);
        self.count -= 1;
        if let Some(known) = &mut self.pre_hashes {
            let short = pre_hash(fingerprint);
            let count = known.entry(short).or_default();
            *count = count.saturating_sub(1);
            if *count == 0 {
                known.remove(&short);
            }
        }
    }

    /// The stored pages of all of them, in the order in which they were found last.
    ///
    /// # Errors
    /// When their order is none.
    pub(super) fn oldest_first(&mut self) -> Result<Vec<u32>, String> {
        let entries = self.recency.members(&mut self.entries)?;
        Ok(entries.into_iter().rev().map(|entry| self.stored(entry)).collect())
    }

    /// The stored page whose fingerprint was found longest ago.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.recency.oldest().map(|entry| self.stored(entry))
    }

    /// Says that the oldest will be taken out soon, and after it the next oldest; gives the stored page of the former.
    pub(super) fn expect_oldest(&self) -> Option<u32> {
        let entry = self.recency.oldest()?;
        let Entry { fingerprint, stored, links, .. } = &self.entries[entry];
        prefetch(&self.buckets, self.bucket(*fingerprint));
        self.entries.prefetch(links.newer());
        Some(*stored)
    }

    /// Says that an entry will be needed soon.
    pub(super) fn expect(&self, entry: u32) {
        self.entries.prefetch(entry);
    }

    /// All of them: fingerprint, entry, stored page.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u128, u32, u32)> {
        let chain = move |&first: &u32| {
            let existing = |entry: u32| (entry != NONE).then_some(entry);
            std::iter::successors(existing(first), move |&entry| existing(self.entries[entry].next))
        };
        let entries = self.buckets.iter().flat_map(chain);
        entries.map(|entry| (self.entries[entry].fingerprint, entry, self.entries[entry].stored))
    }

    /// Twice as many buckets.
    #[cold]
    fn grow(&mut self) {
        let entries: Vec<u32> = self.iter().map(|(_, entry, _)| entry).collect();
        self.buckets = vec![NONE; 2 * self.buckets.len()];
        for entry in entries {
            let bucket = self.bucket(self.entries[entry].fingerprint);
            self.entries[entry].next = std::mem::replace(&mut self.buckets[bucket], entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_agree_with_a_list(steps in prop::collection::vec((0_u32..300, 0_u32..3), 1..600)) {
            let mut fingerprints = Fingerprints::new(true);
            // The newest last.
            let mut list: Vec<(u128, u32)> = Vec::new();
            for (step, (number, action)) in (0..).zip(steps) {
                // Some share a short hash.
                let fingerprint = u128::from(number / 2) | u128::from(number % 2) << 64;
                let at = list.iter().position(|&(known, _)| known == fingerprint);
                let entry = fingerprints.find(fingerprint);
                prop_assert_eq!(entry.map(|entry| fingerprints.stored(entry)), at.map(|at| list[at].1));
                match (entry.zip(at), action) {
                    (None, _) => {
                        fingerprints.insert(fingerprint, step);
                        list.push((fingerprint, step));
                    }
                    (Some((entry, at)), 0) => {
                        fingerprints.remove(entry);
                        list.remove(at);
                    }
                    (Some((entry, at)), _) => {
                        fingerprints.renew(entry);
                        let renewed = list.remove(at);
                        list.push(renewed);
                    }
                }
                prop_assert_eq!(fingerprints.len(), list.len());
                prop_assert_eq!(fingerprints.oldest(), list.first().map(|&(_, stored)| stored));
                prop_assert_eq!(fingerprints.expect_oldest(), fingerprints.oldest());
                let is_known = list.iter().any(|&(known, _)| pre_hash(known) == pre_hash(fingerprint));
                prop_assert_eq!(fingerprints.knows_pre_hash(fingerprint), is_known);
            }
            let mut all: Vec<_> = fingerprints.iter().map(|(fingerprint, _, stored)| (fingerprint, stored)).collect();
            all.sort_unstable();
            list.sort_unstable();
            prop_assert_eq!(all, list);
        }
    }
}
