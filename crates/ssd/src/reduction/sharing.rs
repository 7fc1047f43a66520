//! Which logical pages share what is stored: two levels of mapping, counts of references, fingerprints.
//!
//! ```text
//!   logical page ─▶ stored page ─▶ slot            the second step is the FTL's map: collection changes it alone, once
//!        …       ─┘   │  references                 for all that share the page
//!                     └─ fingerprint ◀─ fingerprints in memory, the least recently found forgotten
//! ```
//!
//! A stored page has the number of the logical page that it was written as, if that is free; so pages that nobody
//! shares lie where they would without all this. Source: Chen, Luo and Zhang, CAFTL, FAST 2011, whose LBA, VBA and PBA
//! are the three columns.

use std::collections::VecDeque;

use zerocopy::FromZeros;

use crate::config::{DeduplicationConfig, DeviceConfig};
use crate::ftl::PageMap;
use crate::memory::{Records, Touched, prefetch};
use crate::sparse::SparseTable;
use crate::state::{Carried, Carrier, Layout, State, StateError, rests};

use super::fingerprints::Fingerprints;

/// A stored page.
#[derive(Clone, Copy, FromZeros)]
struct Stored {
    fingerprint: u128,
    /// Logical pages that share it; 0 where the number is free.
    references: u32,
    /// A logical page that shares it: the only one, where there is one.
    logical_page: u32,
    /// Its entry among the fingerprints in memory plus one; 0 where it has none.
    entry: u32,
    /// It waits in the list of free numbers.
    is_listed: bool,
    /// It waits among those that were written without being looked up.
    is_unlooked: bool,
}

/// What a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// This stored page is equal.
    Stored(u32),
    /// None in memory is.
    Unknown,
}

/// The pages that a drive stores, and who shares them.
pub(crate) struct Sharing {
    pub(crate) config: DeduplicationConfig,
    /// Stored page of each logical page plus one; 0 where there is none.
    stored_of: SparseTable,
    stored: Records<Stored>,
    /// Logical pages that have a stored page.
    mapped: u64,
    /// Numbers that were given back.
    free: Vec<u32>,
    /// Numbers from here on were never examined for a free one.
    unseen: u32,
    fingerprints: Fingerprints,
    /// Stored pages that were written without being looked up.
    unlooked: VecDeque<u32>,
    /// The last page that was looked up of the request that is being written was found.
    pub(crate) sample_was_found: bool,
    /// Flash commands that the page which is looked up waits for.
    pub(crate) reads_left: u32,
    /// How often the drive has started to rest.
    rests: u32,
}

/// Up to so many pages, some 200 MB of records, all of them may come to life for those that are touched.
const DENSE_PAGES: u64 = 4 << 20;

/// Rests are counted up to here, and from the start then.
const RESTS: u32 = 1 << 24;

impl Sharing {
    pub(crate) fn new(deduplication: &DeduplicationConfig, config: &DeviceConfig) -> Self {
        let pages = config.logical_pages();
        Self {
            config: deduplication.clone(),
            stored_of: SparseTable::new(pages as usize),
            stored: Records::new(
                pages as usize,
                if pages <= DENSE_PAGES { Touched::Densely } else { Touched::Sparsely },
            ),
            mapped: 0,
            free: Vec::new(),
            unseen: 0,
            fingerprints: Fingerprints::new(deduplication.pre_hash),
            unlooked: VecDeque::new(),
            sample_was_found: false,
            reads_left: 0,
            rests: 0,
        }
    }

    /// The stored page of a logical page.
    #[inline]
    pub(crate) fn stored(&self, logical_page: u32) -> Option<u32> {
        self.stored_of.get(logical_page).checked_sub(1)
    }

    /// Says that a logical page will be written or read soon: first where its number is, then its number and the stored
    /// page that is most likely its own, then the fingerprint of that.
    #[inline]
    pub(crate) fn prefetch_place(&self, logical_page: u32) {
        self.stored_of.prefetch_place(logical_page);
    }

    /// See [`Self::prefetch_place`].
    #[inline]
    pub(crate) fn prefetch_page(&self, logical_page: u32) {
        self.stored_of.prefetch(logical_page);
        prefetch(&self.stored, logical_page as usize);
    }

    /// See [`Self::prefetch_place`].
    #[inline]
    pub(crate) fn prefetch_fingerprint(&self, logical_page: u32) {
        if let Some(entry) = self.stored.get(logical_page as usize).and_then(|stored| stored.entry.checked_sub(1)) {
            self.fingerprints.expect(entry);
        }
    }

    /// Logical pages that have a stored page.
    pub(crate) fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Logical pages that share a stored page.
    pub(crate) fn references(&self, stored: u32) -> u32 {
        self.stored[stored as usize].references
    }

    /// The fingerprint of a stored page.
    pub(crate) fn fingerprint(&self, stored: u32) -> u128 {
        self.stored[stored as usize].fingerprint
    }

    /// Whether the short hash of a page is that of a page whose fingerprint is in memory.
    pub(crate) fn knows_pre_hash(&self, fingerprint: u128) -> bool {
        self.fingerprints.knows_pre_hash(fingerprint)
    }

    /// Whether the `n`th page of a write is looked up before it is written.
    pub(crate) fn looks_up(&mut self, n: u32) -> bool {
        self.sample_was_found &= n > 0;
        self.config.in_line && (!self.config.sampling || n == 0 || self.sample_was_found)
    }

    /// The drive starts to rest; gives the number of this rest.
    pub(crate) fn begin_rest(&mut self) -> u32 {
        self.rests = (self.rests + 1) % RESTS;
        self.rests
    }

    /// Whether the drive has started no other rest since.
    pub(crate) fn is_rest(&self, rest: u32) -> bool {
        self.rests == rest
    }

    /// Looks a fingerprint up; one that is found is the most recent now.
    pub(crate) fn look_up(&mut self, fingerprint: u128) -> Lookup {
        let Some(entry) = self.fingerprints.find(fingerprint) else { return Lookup::Unknown };
        self.fingerprints.renew(entry);
        Lookup::Stored(self.fingerprints.stored(entry))
    }

    /// A logical page shares a stored page from now on. Gives the stored page that nobody shares any more, if there is
    /// one: it has to be forgotten by the FTL.
    pub(crate) fn share(&mut self, logical_page: u32, stored: u32) -> Option<u32> {
        if self.stored(logical_page) == Some(stored) {
            return None;
        }
        let released = self.release(logical_page);
        self.stored[stored as usize].references += 1;
        self.stored_of.set(logical_page, stored + 1);
        self.mapped += 1;
        released
    }

    /// The stored page that a new content of a logical page is to be written as: the one that it has, if no other
    /// shares that, or one of its own. The logical page changes only with [`Self::wrote`].
    pub(crate) fn number_for(&mut self, logical_page: u32) -> u32 {
        match self.stored(logical_page) {
            Some(stored) if self.references(stored) == 1 => stored,
            _ if self.references(logical_page) == 0 => logical_page,
            _ => self.free_number(),
        }
    }

    /// A number that no stored page has. There is one: a logical page that needs it has none, or shares one with
    /// another, so fewer pages are stored than there are logical ones.
    fn free_number(&mut self) -> u32 {
        while let Some(number) = self.free.pop() {
            self.stored[number as usize].is_listed = false;
            if self.references(number) == 0 {
                // It may be asked for again before it is used.
                self.list_free(number);
                return number;
            }
        }
        while self.references(self.unseen) > 0 {
            self.unseen += 1;
        }
        self.unseen
    }

    fn list_free(&mut self, number: u32) {
        if !std::mem::replace(&mut self.stored[number as usize].is_listed, true) {
            self.free.push(number);
        }
    }

    /// A logical page's new content was written as a stored page ([`Self::number_for`]); `is_known` says that its
    /// fingerprint was computed and goes into memory. Gives whether it left a stored page that others still share.
    pub(crate) fn wrote(&mut self, logical_page: u32, stored: u32, fingerprint: u128, is_known: bool) {
        self.forget_fingerprint(stored);
        if self.stored(logical_page) != Some(stored) {
            // Others share what it had, or it had nothing: nothing is released.
            let released = self.release(logical_page);
            debug_assert!(released.is_none());
            self.stored_of.set(logical_page, stored + 1);
            self.mapped += 1;
            self.stored[stored as usize].references = 1;
        }
        self.stored[stored as usize].fingerprint = fingerprint;
        self.stored[stored as usize].logical_page = logical_page;
        if is_known {
            self.remember(stored);
        } else if self.config.out_of_line && !std::mem::replace(&mut self.stored[stored as usize].is_unlooked, true) {
            self.unlooked.push_back(stored);
        }
    }

    /// Puts the fingerprint of a stored page into memory, unless another one has the same.
    pub(crate) fn remember(&mut self, stored: u32) {
        let fingerprint = self.fingerprint(stored);
        if self.stored[stored as usize].entry != 0 || self.fingerprints.find(fingerprint).is_some() {
            return;
        }
        if self.fingerprints.len() >= self.config.fingerprints as usize
            && let Some(oldest) = self.fingerprints.oldest()
        {
            self.forget_fingerprint(oldest);
            self.fingerprints.expect_oldest().inspect(|&next| prefetch(&self.stored, next as usize));
        }
        self.stored[stored as usize].entry = self.fingerprints.insert(fingerprint, stored) + 1;
    }

    fn forget_fingerprint(&mut self, stored: u32) {
        let Some(entry) = self.stored[stored as usize].entry.checked_sub(1) else { return };
        self.stored[stored as usize].entry = 0;
        self.fingerprints.remove(entry);
    }

    /// A logical page is forgotten; gives the stored page that nobody shares any more.
    pub(crate) fn forget(&mut self, logical_page: u32) -> Option<u32> {
        self.release(logical_page)
    }

    /// A logical page leaves its stored page; gives that if it was the last.
    fn release(&mut self, logical_page: u32) -> Option<u32> {
        let stored = self.stored(logical_page)?;
        self.stored_of.set(logical_page, 0);
        self.mapped -= 1;
        let record = &mut self.stored[stored as usize];
        record.references -= 1;
        if record.references > 0 {
            return None;
        }
        self.forget_fingerprint(stored);
        self.list_free(stored);
        Some(stored)
    }

    /// The next stored page that was not looked up before it was written, and is still there.
    pub(crate) fn next_unlooked(&mut self) -> Option<u32> {
        while let Some(stored) = self.unlooked.pop_front() {
            let record = &mut self.stored[stored as usize];
            record.is_unlooked = false;
            if record.references == 1 && record.entry == 0 {
                return Some(stored);
            }
        }
        None
    }

    /// Whether a stored page may have to be looked up.
    pub(crate) fn has_unlooked(&self) -> bool {
        !self.unlooked.is_empty()
    }

    /// The logical page of a stored page that no other shares.
    pub(crate) fn only_logical_page(&self, stored: u32) -> Option<u32> {
        let record = &self.stored[stored as usize];
        (record.references == 1 && self.stored(record.logical_page) == Some(stored)).then_some(record.logical_page)
    }

    /// Checks that the counts of references are those of the map, that the FTL has what is stored and nothing else, and
    /// that each fingerprint in memory is that of a page which is stored.
    pub(crate) fn check(&self, ftl: &PageMap) -> Result<(), String> {
        let mut references = vec![0_u32; self.stored.len()];
        let mut mapped = 0;
        for (_, entry) in self.stored_of.iter() {
            references[entry as usize - 1] += 1;
            mapped += 1;
        }
        if mapped != self.mapped {
            return Err(format!("{mapped} logical pages are mapped, and {} are counted", self.mapped));
        }
        for (stored, (record, &held)) in self.stored.iter().zip(&references).enumerate() {
            if record.references != held {
                return Err(format!("stored page {stored} counts {} references and has {held}", record.references));
            }
            if (held > 0) != ftl.slot_of(stored as u32).is_some() {
                return Err(format!("stored page {stored} has {held} references and its slot does not fit that"));
            }
        }
        for (fingerprint, entry, stored) in self.fingerprints.iter() {
            let record = &self.stored[stored as usize];
            if record.fingerprint != fingerprint || record.references == 0 || record.entry != entry + 1 {
                return Err(format!("the fingerprint in memory of stored page {stored} is not its own"));
            }
        }
        if self.fingerprints.len() > self.config.fingerprints as usize {
            return Err(format!("{} fingerprints are in memory", self.fingerprints.len()));
        }
        if self.unlooked.len() > self.stored.len() || self.free.len() > self.stored.len() {
            return Err("a stored page is twice in the look-up queue or in the free list".to_owned());
        }
        let is_lost = |number: &u32| self.references(*number) == 0 && !self.stored[*number as usize].is_listed;
        match (0..self.unseen.min(self.stored.len() as u32)).find(is_lost) {
            Some(number) => Err(format!("stored page {number} is unused, but not in the free list")),
            None => Ok(()),
        }
    }
}

/// What each logical page shares is saved, and of each stored page what nobody could find out: its fingerprint, the
/// order of those in memory, and who waits for what. Counts follow from that.
impl State for Sharing {
    fn layout(layout: &mut Layout) {
        layout.word("Sharing { stored_of stored { fingerprint logical_page } free unlooked unseen fingerprints");
        layout.word("sample_was_found rests }");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        rests(&self.reads_left, "reads_left")?;
        self.stored_of.carry(carrier).map_err(|error| error.inside("stored_of"))?;
        if carrier.is_restoring() {
            self.count_references()?;
        }
        for record in self.stored.iter_mut().filter(|record| record.references > 0) {
            record.carry(carrier).map_err(|error| error.inside("stored"))?;
        }
        carrier.list(&mut self.free).map_err(|error| error.inside("free"))?;
        carrier.list(&mut self.unlooked).map_err(|error| error.inside("unlooked"))?;
        carrier.below(&mut self.unseen, self.stored.len() as u32 + 1)?;
        let mut remembered = self.fingerprints.oldest_first().map_err(StateError::damaged)?;
        carrier.list(&mut remembered).map_err(|error| error.inside("fingerprints"))?;
        self.sample_was_found.carry(carrier)?;
        carrier.below(&mut self.rests, RESTS)?;
        if carrier.is_restoring() { self.note_lists(&remembered).map_err(StateError::damaged) } else { Ok(()) }
    }
}

impl State for Stored {
    fn layout(layout: &mut Layout) {
        layout.word("Stored");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let (mut low, mut high) = (self.fingerprint as u64, (self.fingerprint >> 64) as u64);
        carrier.number(&mut low)?;
        carrier.number(&mut high)?;
        self.fingerprint = u128::from(high) << 64 | u128::from(low);
        self.logical_page.carry(carrier)
    }
}

impl Sharing {
    /// Counts who shares what, of a map that was restored.
    fn count_references(&mut self) -> Carried {
        for (page, entry) in self.stored_of.iter() {
            let Some(record) = self.stored.get_mut(entry as usize - 1) else {
                return Err(StateError::damaged(format!("logical page {page} shares a page that is none")));
            };
            record.references += 1;
            self.mapped += 1;
        }
        Ok(())
    }

    /// Notes in the records of stored pages which lists they are in, of lists that were restored.
    fn note_lists(&mut self, remembered: &[u32]) -> Result<(), String> {
        let wrong = |number: u32, list: &str| format!("page {number} is none that is stored, or is {list} twice");
        for &number in &self.free {
            let record = self.stored.get_mut(number as usize);
            if record.is_none_or(|record| std::mem::replace(&mut record.is_listed, true)) {
                return Err(wrong(number, "free"));
            }
        }
        for &number in &self.unlooked {
            let record = self.stored.get_mut(number as usize);
            if record.is_none_or(|record| std::mem::replace(&mut record.is_unlooked, true)) {
                return Err(wrong(number, "to be looked up"));
            }
        }
        for &number in remembered {
            let record = self.stored.get(number as usize).filter(|record| record.references > 0 && record.entry == 0);
            let record = record.ok_or_else(|| wrong(number, "in memory"))?;
            if self.fingerprints.find(record.fingerprint).is_some() {
                return Err(format!("stored page {number} is in memory, and one that is equal as well"));
            }
            self.stored[number as usize].entry = self.fingerprints.insert(record.fingerprint, number) + 1;
        }
        Ok(())
    }
}
