//! Which pages the log is still needed for.
//!
//! A page's entry has the first group whose change of it may not be durable in its slots or deltas. It stays until a
//! *flush* after the page's write, not only until the write; the lowest entry is where a restart has to start.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::image::PageId;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The first group whose change is not durable in the page.
    since: u64,
    /// The page was copied for a write that is not durable yet.
    is_written: bool,
    /// The first group that changed the page after the copy.
    again: Option<u64>,
}

/// Pages with changes that are not durable in the page.
#[derive(Default)]
pub(crate) struct Ledger {
    entries: FxHashMap<PageId, Entry>,
    by_age: BTreeSet<(u64, PageId)>,
}

impl Ledger {
    /// Group `seq` made a clean page dirty.
    pub(crate) fn changed(&mut self, page: PageId, seq: u64) {
        match self.entries.get_mut(&page) {
            Some(entry) if entry.is_written => entry.again = entry.again.or(Some(seq)),
            Some(_) => {}
            None => {
                self.entries.insert(page, Entry { since: seq, is_written: false, again: None });
                self.by_age.insert((seq, page));
            }
        }
    }

    /// The page is copied for a write.
    pub(crate) fn copied(&mut self, page: PageId) {
        if let Some(entry) = self.entries.get_mut(&page) {
            (entry.is_written, entry.again) = (true, None);
        }
    }

    /// The write failed: the older changes are needed still.
    pub(crate) fn failed(&mut self, page: PageId) {
        if let Some(entry) = self.entries.get_mut(&page) {
            (entry.is_written, entry.again) = (false, None);
        }
    }

    /// The write is durable.
    pub(crate) fn durable(&mut self, page: PageId) {
        let Some(entry) = self.entries.get(&page).copied().filter(|entry| entry.is_written) else { return };
        self.remove(page);
        if let Some(seq) = entry.again {
            self.changed(page, seq);
        }
    }

    /// Nothing of the page is needed any more.
    pub(crate) fn remove(&mut self, page: PageId) {
        if let Some(entry) = self.entries.remove(&page) {
            self.by_age.remove(&(entry.since, page));
        }
    }

    /// The lowest group that is needed.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.by_age.first().map(|entry| entry.0)
    }

    /// Pages with changes up to `seq` that are not on their way, oldest first.
    pub(crate) fn older_than(&self, seq: u64, most: usize) -> Vec<PageId> {
        let old = self.by_age.iter().take_while(|entry| entry.0 <= seq);
        let is_waiting = |page: &PageId| self.entries.get(page).is_some_and(|entry| !entry.is_written);
        old.map(|entry| entry.1).filter(is_waiting).take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_needed_from_its_first_change_until_its_write_is_durable() {
        let mut ledger = Ledger::default();
        ledger.changed(1, 5);
        ledger.changed(1, 6);
        ledger.changed(2, 7);
        assert_eq!((ledger.oldest(), ledger.older_than(6, 9)), (Some(5), vec![1]));
        ledger.copied(1);
        ledger.changed(1, 9);
        ledger.changed(1, 10);
        assert_eq!((ledger.oldest(), ledger.older_than(6, 9)), (Some(5), vec![]));
        ledger.durable(1);
        assert_eq!(ledger.oldest(), Some(7));
        ledger.copied(2);
        ledger.failed(2);
        ledger.durable(2);
        assert_eq!(ledger.oldest(), Some(7), "a write that failed is not durable");
        ledger.remove(2);
        assert_eq!((ledger.oldest(), ledger.entries.len()), (Some(9), 1));
    }
}
