//! Earlier contents of pages of a data file, for as long as a power cut may bring them back.
//!
//! ```text
//!   write of page p completes         the earlier content of p is pushed onto p's versions
//!   a flush completes                 versions older than its submission are dropped: the drive has promised
//!                                     the later ones
//!   a forced write, a trim            all versions of p are dropped
//!   power cut                         p is unchanged if the drive has it on flash; otherwise its oldest version
//! ```
//!
//! So a page that was not flushed has its present content or the one flushed last, as a whole, and a flushed page has
//! the flushed content or a newer one. At most one version is kept between two flushes: later writes replace content
//! that was not promised to anybody.
//!
//! ```text
//!   page ─▶ chain ─▶ version (oldest) ─▶ version ─▶ version (newest)
//!                    └ in reusable slots: a drive that has been busy once allocates no more memory
//! ```

use std::collections::HashMap;

/// The end of a chain.
const NONE: u32 = u32::MAX;
/// Most memory of slots allocated in advance. More are allocated when needed, and kept.
const PREPARED_BYTES: usize = 64 << 20;

/// The content of a page before the write with this number.
#[derive(Debug)]
struct Version {
    /// The write that replaced it, counted over the drive.
    replaced_by: u64,
    /// The next newer version of the page.
    newer: u32,
    /// Whether it was zeros, and the bytes below are another page's.
    is_zeros: bool,
    bytes: Box<[u8]>,
}

impl Version {
    fn empty(page_bytes: usize) -> Self {
        Self { replaced_by: 0, newer: NONE, is_zeros: true, bytes: vec![0; page_bytes].into() }
    }
}

/// The versions of one page.
#[derive(Clone, Copy, Debug)]
struct Chain {
    oldest: u32,
    newest: u32,
}

/// Slots of versions, those that are free among them.
#[derive(Debug, Default)]
struct Slots {
    versions: Vec<Version>,
    free: Vec<u32>,
}

impl Slots {
    fn prepare(&mut self, count: usize, page_bytes: usize) {
        self.versions.resize_with(count, || Version::empty(page_bytes));
        self.free.extend((0..count as u32).rev());
    }

    fn take(&mut self, page_bytes: usize) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.versions.push(Version::empty(page_bytes));
            // Capacity for all of them to be free at once.
            self.free.reserve(self.versions.len());
            self.versions.len() as u32 - 1
        })
    }

    fn of(&self, slot: u32) -> &Version {
        &self.versions[slot as usize]
    }

    /// Frees the versions of a chain from its oldest on, while they may be dropped; returns the rest.
    fn forget(&mut self, chain: Chain, mut is_forgotten: impl FnMut(&Version) -> bool) -> Option<Chain> {
        let mut oldest = chain.oldest;
        while oldest != NONE && is_forgotten(self.of(oldest)) {
            self.free.push(oldest);
            oldest = self.of(oldest).newer;
        }
        (oldest != NONE).then_some(Chain { oldest, ..chain })
    }
}

/// Older versions of pages.
#[derive(Debug)]
pub(crate) struct Versions {
    of_page: HashMap<u64, Chain>,
    slots: Slots,
    page_bytes: usize,
    /// Completed writes.
    writes: u64,
    /// Of these, those before the flush that was submitted last.
    flushing: u64,
}

impl Versions {
    /// No versions, with capacity for two of each of `pages` pages of a length, up to the limit.
    pub(crate) fn new(page_bytes: usize, pages: usize) -> Self {
        let mut slots = Slots::default();
        slots.prepare((2 * pages).min(PREPARED_BYTES / page_bytes.max(1)), page_bytes);
        // Twice as many, so that the table need not grow while entries are removed and added.
        Self { of_page: HashMap::with_capacity(2 * pages), slots, page_bytes, writes: 0, flushing: 0 }
    }

    /// A flush starts; returns the argument for [`Self::flushed`].
    pub(crate) fn flush_begins(&mut self) -> u64 {
        self.flushing = self.writes;
        self.writes
    }

    /// The flush that started with this value has completed.
    pub(crate) fn flushed(&mut self, begin: u64) {
        let slots = &mut self.slots;
        self.of_page.retain(|_, chain| match slots.forget(*chain, |version| version.replaced_by <= begin) {
            Some(left) => {
                *chain = left;
                true
            }
            None => false,
        });
    }

    /// A write of pages is about to complete.
    pub(crate) fn write(&mut self) {
        self.writes += 1;
    }

    /// Whether the content of a page must be kept before [the present write](Self::write) replaces it.
    pub(crate) fn wants(&self, page: u64) -> bool {
        let last = self.of_page.get(&page).map(|chain| self.slots.of(chain.newest));
        last.is_none_or(|last| last.replaced_by <= self.flushing)
    }

    /// Keeps the content of a page.
    pub(crate) fn keep(&mut self, page: u64, bytes: &[u8]) {
        let slot = self.slots.take(self.page_bytes);
        let version = &mut self.slots.versions[slot as usize];
        (version.replaced_by, version.newer) = (self.writes, NONE);
        version.is_zeros = bytes.iter().all(|&byte| byte == 0);
        if !version.is_zeros {
            version.bytes.copy_from_slice(bytes);
        }
        let chain = self.of_page.entry(page).or_insert(Chain { oldest: slot, newest: slot });
        if chain.newest != slot {
            self.slots.versions[chain.newest as usize].newer = slot;
            chain.newest = slot;
        }
    }

    /// Pages from one up to another are durable as they are.
    pub(crate) fn forget_range(&mut self, from: u64, to: u64) {
        // A trim may name all of a large drive.
        if to.saturating_sub(from) > self.of_page.len() as u64 {
            return self.forget_durable(|page| (from..to).contains(&page));
        }
        for page in from..to {
            if let Some(chain) = self.of_page.remove(&page) {
                self.slots.forget(chain, |_| true);
            }
        }
    }

    /// Forgets pages that are durable.
    pub(crate) fn forget_durable(&mut self, is_durable: impl Fn(u64) -> bool) {
        let slots = &mut self.slots;
        self.of_page.retain(|&page, chain| {
            let is_kept = !is_durable(page);
            if !is_kept {
                slots.forget(*chain, |_| true);
            }
            is_kept
        });
    }

    /// Pages with older versions.
    pub(crate) fn pages(&self) -> usize {
        self.of_page.len()
    }

    /// Gives the oldest version of every page, the pages ascending, and forgets them all, also where that fails; `None`
    /// stands for zeros.
    pub(crate) fn take_oldest<E>(
        &mut self,
        mut take: impl FnMut(u64, Option<&[u8]>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut pages: Vec<(u64, u32)> = self.of_page.iter().map(|(&page, chain)| (page, chain.oldest)).collect();
        pages.sort_unstable();
        let taken = pages.into_iter().try_for_each(|(page, oldest)| {
            let Version { is_zeros, bytes, .. } = self.slots.of(oldest);
            take(page, (!is_zeros).then_some(bytes))
        });
        self.forget_durable(|_| true);
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    fn none() -> Versions {
        Versions::new(1, 2)
    }

    fn write(versions: &mut Versions, page: u64, before: u8) {
        versions.write();
        if versions.wants(page) {
            versions.keep(page, &[before]);
        }
    }

    /// The oldest versions of all pages, 0 for zeros; every slot is free afterwards.
    fn oldest(versions: &mut Versions) -> Vec<(u64, u8)> {
        let mut all = Vec::new();
        let taken = versions.take_oldest(|page, bytes| {
            all.push((page, bytes.map_or(0, |bytes| bytes[0])));
            Ok::<_, ()>(())
        });
        assert_eq!((taken, versions.pages()), (Ok(()), 0));
        let mut free = versions.slots.free.clone();
        free.sort_unstable();
        assert_eq!(free, Vec::from_iter(0..versions.slots.versions.len() as u32), "each slot is free, and once");
        all
    }

    #[test]
    fn what_was_flushed_last_comes_back_however_often_a_page_was_written_since() {
        let mut versions = none();
        write(&mut versions, 1, 0);
        write(&mut versions, 1, 10);
        let begin = versions.flush_begins();
        write(&mut versions, 1, 11);
        write(&mut versions, 2, 0);
        versions.flushed(begin);
        write(&mut versions, 1, 12);
        assert_eq!(oldest(&mut versions), [(1, 11), (2, 0)], "11 was there when the flush began");
        assert_eq!(oldest(&mut versions), []);
    }

    #[test]
    fn until_a_flush_is_answered_it_has_promised_nothing() {
        let mut versions = none();
        write(&mut versions, 1, 9);
        versions.flush_begins();
        write(&mut versions, 1, 10);
        assert_eq!(oldest(&mut versions), [(1, 9)]);
    }

    #[test]
    fn flushes_that_end_out_of_order_forget_no_more_than_each_covers() {
        let mut versions = none();
        write(&mut versions, 1, 1);
        let first = versions.flush_begins();
        write(&mut versions, 1, 2);
        let second = versions.flush_begins();
        write(&mut versions, 1, 3);
        versions.flushed(second);
        versions.flushed(first);
        assert_eq!(oldest(&mut versions), [(1, 3)]);
    }

    #[test]
    fn what_is_durable_is_forgotten() {
        let mut versions = none();
        (0..10).for_each(|page| write(&mut versions, page, 5));
        versions.forget_range(3, 4);
        versions.forget_range(100, u64::MAX);
        versions.forget_durable(|page| page > 4);
        assert_eq!(versions.pages(), 4);
        assert_eq!(oldest(&mut versions), [0, 1, 2, 4].map(|page| (page, 5)));
    }

    proptest! {
        #[test]
        fn they_are_those_of_a_list_for_each_page(
            steps in prop::collection::vec((0..6_u8, 0..4_u64, any::<u8>()), 1..200),
        ) {
            let mut versions = none();
            let mut lists: BTreeMap<u64, Vec<(u64, u8)>> = BTreeMap::new();
            let (mut writes, mut flushes) = (0, Vec::new());
            let mut flushing = 0;
            for (step, page, byte) in steps {
                match step {
                    0 => {
                        flushes.push((versions.flush_begins(), writes));
                        flushing = writes;
                    }
                    1 => {
                        let Some((begin, before)) = flushes.pop() else { continue };
                        versions.flushed(begin);
                        lists.values_mut().for_each(|list| list.retain(|&(replaced_by, _)| replaced_by > before));
                    }
                    2 => {
                        versions.forget_range(page, page + 2);
                        lists.retain(|&other, _| !(page..page + 2).contains(&other));
                    }
                    _ => {
                        write(&mut versions, page, byte);
                        writes += 1;
                        let list = lists.entry(page).or_default();
                        if list.last().is_none_or(|&(replaced_by, _)| replaced_by <= flushing) {
                            list.push((writes, byte));
                        }
                    }
                }
                lists.retain(|_, list| !list.is_empty());
                prop_assert_eq!(versions.pages(), lists.len());
            }
            let expected: Vec<(u64, u8)> = lists.iter().map(|(&page, list)| (page, list[0].1)).collect();
            prop_assert_eq!(oldest(&mut versions), expected);
        }
    }
}
