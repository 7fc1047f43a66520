//! Demand-cached mapping: the page map is on flash, and controller memory holds the part of it that is in use.
//!
//! ```text
//!   logical page ─▶ cached entry? ─▶ hit
//!                └▶ translation page being read? ─▶ wait for it
//!                └▶ in controller memory?        ─▶ entry made at once
//!                └▶ on flash?                    ─▶ read it, wait
//!                └▶ never written                ─▶ entry made at once
//!
//!   cache full ─▶ least recently used entry leaves; if it is dirty, its translation page is read, changed and written,
//!                 with every other dirty entry of that page (batch update)
//! ```
//!
//! This file decides; what it decides is done in [`crate::controller::translate`]. The translation pages themselves are
//! logical pages behind the host's and are placed, moved and erased like those.
//!
//! Source: Gupta, Kim, Urgaonkar, "DFTL: A Flash Translation Layer Employing Demand-based Selective Caching of
//! Page-level Address Mappings", ASPLOS 2009, sections 3.2 and 3.3 (cached mapping table, global translation directory,
//! lazy copying and batch updates).

use std::ops::Range;

use crate::list::NONE;
use crate::memory::prefetch;
use crate::reciprocal::Divisor;
use crate::sparse::SparseTable;

/// A cached entry of the map.
#[derive(Clone, Copy, Default)]
struct Entry {
    logical_page: u32,
    /// Neighbours in the order of use; `newer` also links free entries.
    newer: u32,
    older: u32,
}

/// What is known of a translation page.
#[derive(Clone, Copy)]
struct TranslationPage {
    /// It has been written, or the drive came with it.
    stored: bool,
    /// It stays in controller memory, waiting to be written.
    in_memory: bool,
    /// A read of it for requests is in progress.
    loading: bool,
    /// A read, or a write, that brings it up to date is in progress.
    updating: bool,
}

/// What a look-up found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// The entry is there, or needs no flash.
    Ready,
    /// The translation page is being read already.
    Loading,
    /// The translation page has to be read.
    Load,
}

/// How often the map was asked, and what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

/// What a configuration says of translation pages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// The drive comes with its translation pages on flash.
    pub(crate) stored_at_start: bool,
    /// A translation page that is written back stays in controller memory instead of being programmed.
    pub(crate) deferred_write_back: bool,
    /// Entries that a write-back makes clean count as just used.
    pub(crate) write_back_renews: bool,
}

/// Which logical pages' entries are dirty, a bit for each: those of a translation page lie side by side, and what
/// garbage collection moves makes entries dirty that are nowhere near each other in memory.
struct DirtyPages {
    words: Box<[u64]>,
}

impl DirtyPages {
    fn none(logical_pages: u32) -> Self {
        Self { words: vec![0; logical_pages.div_ceil(u64::BITS) as usize].into_boxed_slice() }
    }

    fn has(&self, logical_page: u32) -> bool {
        self.words[(logical_page / u64::BITS) as usize] >> (logical_page % u64::BITS) & 1 == 1
    }

    fn add(&mut self, logical_page: u32) {
        self.words[(logical_page / u64::BITS) as usize] |= 1 << (logical_page % u64::BITS);
    }

    /// The bits of a word that stand for pages of a range.
    fn mask(word: usize, pages: &Range<u32>) -> u64 {
        let first = word as u32 * u64::BITS;
        let from = pages.start.saturating_sub(first);
        let beyond = (first + u64::BITS - 1).saturating_sub(pages.end - 1);
        u64::MAX << from & u64::MAX >> beyond
    }

    fn words_of(pages: &Range<u32>) -> Range<usize> {
        (pages.start / u64::BITS) as usize..pages.end.div_ceil(u64::BITS) as usize
    }

    /// Takes the pages of a range out.
    fn remove(&mut self, pages: Range<u32>) {
        let words = Self::words_of(&pages);
        for (nth, word) in words.clone().zip(&mut self.words[words]) {
            *word &= !Self::mask(nth, &pages);
        }
    }

    /// The pages of a range, ascending.
    fn among(&self, pages: Range<u32>) -> impl Iterator<Item = u32> {
        let words = Self::words_of(&pages);
        words.flat_map(move |nth| {
            let mut word = self.words[nth] & Self::mask(nth, &pages);
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros())?;
                word &= word - 1;
                Some(nth as u32 * u64::BITS + bit)
            })
        })
    }
}

/// The entries of one range of logical pages, in the order of use.
#[derive(Clone, Copy)]
struct Partition {
    newest: u32,
    oldest: u32,
    entries: u32,
}

/// How the logical pages are split into partitions.
pub(crate) enum Split {
    /// Into so many partitions, of so many pages each.
    Evenly(u32, Divisor),
    /// Where each of them ends, ascending.
    At(Box<[u32]>),
}

impl Split {
    /// `logical_pages` in so many equal parts.
    pub(crate) fn evenly(logical_pages: u32, partitions: u32) -> Self {
        Self::Evenly(partitions, Divisor::new(logical_pages.div_ceil(partitions).max(1)))
    }

    fn partitions(&self) -> usize {
        match self {
            Self::Evenly(partitions, _) => *partitions as usize,
            Self::At(ends) => ends.len(),
        }
    }

    #[inline]
    fn partition_of(&self, logical_page: u32) -> usize {
        match self {
            Self::Evenly(_, by_pages) => by_pages.quotient(logical_page) as usize,
            Self::At(ends) => ends.partition_point(|&end| end <= logical_page),
        }
    }
}

/// The cached mapping table and the directory of translation pages.
pub(crate) struct MappingCache {
    /// Entry of each logical page, plus one; zero where there is none.
    entry_of: SparseTable,
    entries: Vec<Entry>,
    dirty: DirtyPages,
    /// Entries of a partition.
    capacity: u32,
    partitions: Vec<Partition>,
    split: Split,
    pages: Vec<TranslationPage>,
    logical_pages: u32,
    entries_per_page: u32,
    /// Divides by the entries of a translation page.
    by_page: Divisor,
    rules: Rules,
    pub(crate) counters: Counters,
}

impl MappingCache {
    /// An empty cache of `capacity` entries for each of some partitions of `logical_pages` pages.
    pub(crate) fn new(
        logical_pages: u32,
        entries_per_page: u32,
        (capacity, split): (u32, Split),
        rules: Rules,
    ) -> Self {
        let stored = rules.stored_at_start;
        let page = TranslationPage { stored, in_memory: false, loading: false, updating: false };
        Self {
            entry_of: SparseTable::new(logical_pages as usize),
            entries: Vec::new(),
            dirty: DirtyPages::none(logical_pages),
            capacity: capacity.min(logical_pages).max(1),
            partitions: vec![Partition { newest: NONE, oldest: NONE, entries: 0 }; split.partitions()],
            split,
            pages: vec![page; logical_pages.div_ceil(entries_per_page) as usize],
            logical_pages,
            entries_per_page,
            by_page: Divisor::new(entries_per_page),
            rules,
            counters: Counters::default(),
        }
    }

    /// Says that the place of what is known of a logical page will be asked for soon.
    #[inline]
    pub(crate) fn prefetch_place(&self, logical_page: u32) {
        self.entry_of.prefetch_place(logical_page);
    }

    /// Says that what is known of a logical page will be needed soon.
    #[inline]
    pub(crate) fn prefetch_page(&self, logical_page: u32) {
        self.entry_of.prefetch(logical_page);
        prefetch(&self.pages, self.translation_page(logical_page) as usize);
    }

    fn partition(&mut self, entry: u32) -> &mut Partition {
        let logical_page = self.entries[entry as usize].logical_page;
        &mut self.partitions[self.split.partition_of(logical_page)]
    }

    /// The drive has been filled: every translation page is on flash.
    pub(crate) fn all_stored(&mut self) {
        self.pages.iter_mut().for_each(|page| page.stored = true);
    }

    /// Translation pages of the drive.
    pub(crate) fn translation_pages(&self) -> u32 {
        self.pages.len() as u32
    }

    /// The translation page that holds a logical page's entry.
    pub(crate) fn translation_page(&self, logical_page: u32) -> u32 {
        self.by_page.quotient(logical_page)
    }

    /// Asks for a logical page's entry.
    pub(crate) fn look_up(&mut self, logical_page: u32) -> Lookup {
        if let Some(entry) = self.entry(logical_page) {
            self.counters.hits += 1;
            self.use_again(entry);
            return Lookup::Ready;
        }
        self.counters.misses += 1;
        let page = self.translation_page(logical_page);
        let state = &mut self.pages[page as usize];
        if state.loading {
            return Lookup::Loading;
        }
        if state.in_memory || !state.stored {
            return Lookup::Ready;
        }
        state.loading = true;
        Lookup::Load
    }

    /// A translation page that was read for requests has arrived.
    pub(crate) fn loaded(&mut self, page: u32) {
        self.pages[page as usize].loading = false;
    }

    /// Makes an entry, or changes it; gives the translation page that the entry which had to leave makes dirty.
    pub(crate) fn insert(&mut self, logical_page: u32, dirty: bool) -> Option<u32> {
        let mut written_back = None;
        match self.entry(logical_page) {
            Some(entry) => self.use_again(entry),
            None => {
                let partition = &mut self.partitions[self.split.partition_of(logical_page)];
                let entry = if partition.entries < self.capacity {
                    partition.entries += 1;
                    self.entries.push(Entry { logical_page, newer: NONE, older: NONE });
                    self.entries.len() as u32 - 1
                } else {
                    let oldest = partition.oldest;
                    written_back = self.evict(oldest);
                    self.entries[oldest as usize].logical_page = logical_page;
                    oldest
                };
                self.entry_of.set(logical_page, entry + 1);
                self.link_newest(entry);
            }
        }
        if dirty {
            self.dirty.add(logical_page);
        }
        written_back
    }

    /// Garbage collection has moved a page: its entry changes. Gives the translation page that has to be brought up to
    /// date on flash where the entry is not cached.
    pub(crate) fn moved(&mut self, logical_page: u32) -> Option<u32> {
        if self.entry(logical_page).is_some() {
            self.dirty.add(logical_page);
            return None;
        }
        self.update(self.translation_page(logical_page))
    }

    /// Starts to bring a translation page up to date: all its dirty entries become clean. `None` when that is in
    /// progress already and takes this change with it.
    fn update(&mut self, page: u32) -> Option<u32> {
        let first = page * self.entries_per_page;
        let pages = first..first.saturating_add(self.entries_per_page).min(self.logical_pages);
        if self.rules.write_back_renews {
            let cached = self.dirty.among(pages.clone()).filter_map(|logical_page| self.entry(logical_page));
            cached.collect::<Vec<u32>>().into_iter().for_each(|entry| self.use_again(entry));
        }
        self.dirty.remove(pages);
        let state = &mut self.pages[page as usize];
        state.in_memory |= self.rules.deferred_write_back;
        (!std::mem::replace(&mut state.updating, !self.rules.deferred_write_back)).then_some(page)
    }

    /// Whether a translation page has a version on flash that must be read before it is changed.
    pub(crate) fn is_stored(&self, page: u32) -> bool {
        self.pages[page as usize].stored
    }

    /// Whether a translation page that is written back stays in controller memory.
    pub(crate) fn is_deferred(&self) -> bool {
        self.rules.deferred_write_back
    }

    /// The new version of a translation page has its place.
    pub(crate) fn updated(&mut self, page: u32) {
        let state = &mut self.pages[page as usize];
        (state.updating, state.stored) = (false, true);
    }

    fn entry(&self, logical_page: u32) -> Option<u32> {
        self.entry_of.get(logical_page).checked_sub(1)
    }

    /// Takes an entry out; gives the translation page to write if it was dirty.
    fn evict(&mut self, entry: u32) -> Option<u32> {
        self.unlink(entry);
        let Entry { logical_page, newer, .. } = self.entries[entry as usize];
        self.expect_eviction(newer);
        self.entry_of.set(logical_page, 0);
        if self.dirty.has(logical_page) { self.update(self.translation_page(logical_page)) } else { None }
    }

    /// Says that an entry will leave next, and the one that was used after it then.
    fn expect_eviction(&self, entry: u32) {
        if let Some(&Entry { logical_page, newer, .. }) = self.entries.get(entry as usize) {
            self.entry_of.prefetch(logical_page);
            prefetch(&self.entries, newer as usize);
        }
    }

    fn use_again(&mut self, entry: u32) {
        if self.partition(entry).newest != entry {
            self.unlink(entry);
            self.link_newest(entry);
        }
    }

    fn unlink(&mut self, entry: u32) {
        let Entry { newer, older, .. } = self.entries[entry as usize];
        match newer {
            NONE => self.partition(entry).newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.partition(entry).oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, entry: u32) {
        let older = std::mem::replace(&mut self.partition(entry).newest, entry);
        let state = &mut self.entries[entry as usize];
        (state.newer, state.older) = (NONE, older);
        match older {
            NONE => self.partition(entry).oldest = entry,
            older => self.entries[older as usize].newer = entry,
        }
    }
}

crate::state::state! { Counters { saved { hits, misses } } }

crate::state::state! { Entry { saved { logical_page, newer, older } } }

crate::state::state! {
    TranslationPage {
        saved { stored, in_memory, updating }
        at_rest { loading }
    }
}

crate::state::state! { DirtyPages { saved { words } } }

crate::state::state! { Partition { saved { newest, oldest, entries } } }

crate::state::state! {
    MappingCache {
        saved { dirty, partitions, pages, counters }
        lists { entries }
        built { entry_of, capacity, split, logical_pages, entries_per_page, by_page, rules }
    }
    checked find_entries
}

impl MappingCache {
    /// Builds the index of what was restored.
    fn find_entries(&mut self) -> Result<(), String> {
        let count = self.entries.len();
        let is_entry = |entry: u32| entry == NONE || (entry as usize) < count;
        for (nth, entry) in (1..).zip(&self.entries) {
            let Entry { logical_page, newer, older } = *entry;
            let leads_on = is_entry(newer) && is_entry(older);
            if !leads_on || !self.entry_of.covers(logical_page) || self.entry_of.replace(logical_page, nth) != 0 {
                return Err(format!("the entry of logical page {logical_page} is cached twice, or does not exist"));
            }
        }
        self.check_orders()?;
        self.check_dirty()
    }

    /// Checks that the orders of use have every entry, each in its partition.
    fn check_orders(&self) -> Result<(), String> {
        let broken = || "the orders of use are not those of the cached entries".to_owned();
        let mut seen = 0;
        for (nth, partition) in (0..).zip(&self.partitions) {
            let (mut at, mut newer, mut entries) = (partition.newest, NONE, 0);
            while at != NONE {
                let entry = self.entries.get(at as usize).ok_or_else(broken)?;
                let is_here = self.split.partition_of(entry.logical_page) == nth;
                entries += 1;
                if !is_here || entry.newer != newer || entries > partition.entries {
                    return Err(broken());
                }
                (newer, at) = (at, entry.older);
            }
            if newer != partition.oldest || entries != partition.entries || entries > self.capacity {
                return Err(broken());
            }
            seen += entries as usize;
        }
        if seen == self.entries.len() { Ok(()) } else { Err(broken()) }
    }

    /// Checks that what is dirty is cached.
    fn check_dirty(&self) -> Result<(), String> {
        let is_cached = |logical_page: u32| self.entry_of.covers(logical_page) && self.entry(logical_page).is_some();
        let end = (self.dirty.words.len() as u32).saturating_mul(u64::BITS);
        match self.dirty.among(0..end).find(|&logical_page| !is_cached(logical_page)) {
            Some(page) => Err(format!("the entry of logical page {page} is dirty but not cached")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STORED: Rules = Rules { stored_at_start: true, deferred_write_back: false, write_back_renews: false };

    /// 32 logical pages, 4 entries a translation page, all of them on flash.
    fn cache(capacity: u32) -> MappingCache {
        MappingCache::new(32, 4, (capacity, Split::evenly(32, 1)), STORED)
    }

    #[test]
    fn a_miss_reads_the_translation_page_once_and_later_misses_wait_for_it() {
        let mut cache = cache(4);
        assert_eq!(
            [cache.look_up(0), cache.look_up(1), cache.look_up(4)],
            [Lookup::Load, Lookup::Loading, Lookup::Load]
        );
        cache.loaded(0);
        assert_eq!(cache.insert(0, false), None);
        assert_eq!([cache.look_up(0), cache.look_up(1)], [Lookup::Ready, Lookup::Load]);
        assert_eq!(cache.counters, Counters { hits: 1, misses: 4 });
    }

    #[test]
    fn the_least_recently_used_entry_leaves_and_takes_all_dirty_ones_of_its_page_with_it() {
        let mut cache = cache(3);
        [(0, true), (1, true), (8, false)]
            .iter()
            .for_each(|&(page, dirty)| assert_eq!(cache.insert(page, dirty), None));
        assert_eq!(cache.insert(9, false), Some(0), "page 0 was oldest and dirty");
        assert_eq!(cache.insert(10, false), None, "page 1 became clean with it");
    }

    #[test]
    fn a_moved_page_makes_its_entry_dirty_or_its_translation_page_due_once() {
        let mut cache = cache(2);
        cache.insert(0, false);
        assert_eq!(cache.moved(0), None);
        assert_eq!([cache.moved(20), cache.moved(21), cache.moved(24)], [Some(5), None, Some(6)]);
        cache.updated(5);
        assert_eq!(cache.moved(22), Some(5));
    }

    #[test]
    fn entries_that_are_written_back_beside_another_count_as_used_where_the_rules_say_so() {
        for (renews, oldest) in [(false, 1), (true, 8)] {
            let rules = Rules { write_back_renews: renews, ..STORED };
            let mut cache = MappingCache::new(32, 4, (3, Split::evenly(32, 1)), rules);
            for (page, dirty) in [(0, true), (1, true), (8, false), (9, false)] {
                cache.insert(page, dirty);
            }
            cache.insert(10, false);
            assert_eq!(cache.look_up(oldest), Lookup::Load, "it left next");
        }
    }

    #[test]
    fn partitions_do_not_take_each_others_room() {
        let mut cache = MappingCache::new(32, 4, (1, Split::evenly(32, 2)), STORED);
        [0, 16, 1].iter().for_each(|&page| assert_eq!(cache.insert(page, false), None));
        assert_eq!(
            [cache.look_up(16), cache.look_up(1), cache.look_up(0)],
            [Lookup::Ready, Lookup::Ready, Lookup::Load]
        );
    }

    #[test]
    fn what_is_written_back_later_is_found_in_memory_from_then_on() {
        let mut cache =
            MappingCache::new(32, 4, (1, Split::evenly(32, 1)), Rules { deferred_write_back: true, ..STORED });
        cache.insert(0, true);
        assert_eq!(cache.insert(8, false), Some(0));
        assert_eq!((cache.look_up(1), cache.look_up(9)), (Lookup::Ready, Lookup::Load));
    }

    proptest! {
        #[test]
        fn dirty_pages_are_those_of_a_set(
            steps in prop::collection::vec((any::<bool>(), 0_u32..200, 1_u32..130), 1..100),
        ) {
            let (mut dirty, mut set) = (DirtyPages::none(200), std::collections::BTreeSet::new());
            for (is_added, first, length) in steps {
                let pages = first..(first + length).min(200);
                match is_added {
                    true => {
                        dirty.add(first);
                        set.insert(first);
                    }
                    false => {
                        let expected: Vec<u32> = set.range(pages.clone()).copied().collect();
                        prop_assert_eq!(dirty.among(pages.clone()).collect::<Vec<_>>(), expected);
                        dirty.remove(pages.clone());
                        set.retain(|page| !pages.contains(page));
                    }
                }
                prop_assert!((0..200).all(|page| dirty.has(page) == set.contains(&page)));
            }
        }

        #[test]
        fn it_agrees_with_a_list_in_the_order_of_use(
            steps in prop::collection::vec((0_u32..32, any::<bool>()), 1..300),
            capacity in 1_u32..8,
        ) {
            let mut cache = cache(capacity);
            let mut list: Vec<(u32, bool)> = Vec::new();
            for (page, dirty) in steps {
                let mut expected = None;
                let was_dirty = match list.iter().position(|&(p, _)| p == page) {
                    Some(at) => list.remove(at).1,
                    None => {
                        if list.len() == capacity as usize {
                            let (gone, dirty) = list.remove(0);
                            if dirty {
                                expected = Some(gone / 4);
                                list.iter_mut().filter(|(p, _)| p / 4 == gone / 4).for_each(|(_, dirty)| *dirty = false);
                            }
                        }
                        false
                    }
                };
                list.push((page, was_dirty || dirty));
                let written_back = cache.insert(page, dirty);
                prop_assert_eq!(written_back, expected);
                written_back.into_iter().for_each(|page| cache.updated(page));
            }
            for &(page, _) in &list {
                prop_assert_eq!(cache.look_up(page), Lookup::Ready);
            }
        }
    }

    #[test]
    fn a_logical_page_is_in_the_partition_that_ends_behind_it() {
        let even = Split::evenly(10, 3);
        assert_eq!([0, 3, 4, 7, 8, 9].map(|page| even.partition_of(page)), [0, 0, 1, 1, 2, 2]);
        let apart = Split::At(Box::new([2, 9, 10]));
        assert_eq!([0, 1, 2, 8, 9].map(|page| apart.partition_of(page)), [0, 0, 1, 1, 2]);
        assert_eq!((even.partitions(), apart.partitions()), (3, 3));
    }
}
