//! What pages of a data file were, for as long as a power cut may bring that back.
//!
//! ```text
//!   write of page p is answered       what p was goes on top of p's versions
//!   a flush is answered               versions that are older than its submission are forgotten: the drive has promised
//!                                     what came after them
//!   a forced write, a trim            all versions of p are forgotten
//!   power cut                         p is as it is, if the drive has it on flash; else as in its oldest version
//! ```
//!
//! So a page that was not flushed is its present version or the one that was flushed last, as a whole, and one that was
//! flushed is what was flushed or newer. A version is kept once between two flushes: writes after it replace what nobody
//! was promised.

use std::collections::HashMap;

/// What a page was, before a write of so many.
#[derive(Debug)]
struct Version {
    /// The write that replaced it, counted over the drive.
    replaced_by: u64,
    /// `None` for zeros.
    bytes: Option<Box<[u8]>>,
}

/// Older versions of pages.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    of_page: HashMap<u64, Vec<Version>>,
    /// Writes that were answered.
    writes: u64,
    /// Of these, those before the flush that was submitted last.
    flushing: u64,
}

impl Versions {
    /// A flush begins; gives what [`Self::flushed`] is to be told.
    pub(crate) fn flush_begins(&mut self) -> u64 {
        self.flushing = self.writes;
        self.writes
    }

    /// A flush that began so has ended.
    pub(crate) fn flushed(&mut self, begin: u64) {
        self.of_page.retain(|_, versions| {
            versions.retain(|version| version.replaced_by > begin);
            !versions.is_empty()
        });
    }

    /// A write of pages is about to be answered.
    pub(crate) fn write(&mut self) {
        self.writes += 1;
    }

    /// Whether what a page is must be kept before [the present write](Self::write) replaces it.
    pub(crate) fn wants(&self, page: u64) -> bool {
        self.of_page
            .get(&page)
            .and_then(|versions| versions.last())
            .is_none_or(|last| last.replaced_by <= self.flushing)
    }

    /// Keeps what a page is.
    pub(crate) fn keep(&mut self, page: u64, bytes: Box<[u8]>) {
        let bytes = bytes.iter().any(|&byte| byte != 0).then_some(bytes);
        self.of_page.entry(page).or_default().push(Version { replaced_by: self.writes, bytes });
    }

    /// Pages from one up to another are durable as they are.
    pub(crate) fn forget_range(&mut self, from: u64, to: u64) {
        // A trim may name all of a large drive.
        if to.saturating_sub(from) > self.of_page.len() as u64 {
            return self.of_page.retain(|page, _| !(from..to).contains(page));
        }
        (from..to).for_each(|page| drop(self.of_page.remove(&page)));
    }

    /// Forgets pages that are durable.
    pub(crate) fn forget_durable(&mut self, is_durable: impl Fn(u64) -> bool) {
        self.of_page.retain(|&page, _| !is_durable(page));
    }

    /// Pages with older versions.
    pub(crate) fn pages(&self) -> usize {
        self.of_page.len()
    }

    /// Takes the oldest version of every page; `None` stands for zeros.
    pub(crate) fn take_oldest(&mut self) -> Vec<(u64, Option<Box<[u8]>>)> {
        let oldest = |versions: Vec<Version>| versions.into_iter().next().and_then(|version| version.bytes);
        let mut pages: Vec<_> = self.of_page.drain().map(|(page, versions)| (page, oldest(versions))).collect();
        pages.sort_unstable_by_key(|&(page, _)| page);
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(versions: &mut Versions, page: u64, before: u8) {
        versions.write();
        if versions.wants(page) {
            versions.keep(page, Box::new([before]));
        }
    }

    #[test]
    fn what_was_flushed_last_comes_back_however_often_a_page_was_written_since() {
        let mut versions = Versions::default();
        write(&mut versions, 1, 0);
        write(&mut versions, 1, 10);
        let begin = versions.flush_begins();
        write(&mut versions, 1, 11);
        write(&mut versions, 2, 0);
        versions.flushed(begin);
        write(&mut versions, 1, 12);
        assert_eq!(
            versions.take_oldest(),
            [(1, Some(vec![11].into())), (2, None)],
            "11 was there when the flush began"
        );
        assert_eq!(versions.take_oldest(), []);
    }

    #[test]
    fn until_a_flush_is_answered_it_has_promised_nothing() {
        let mut versions = Versions::default();
        write(&mut versions, 1, 9);
        versions.flush_begins();
        write(&mut versions, 1, 10);
        assert_eq!(versions.take_oldest(), [(1, Some(vec![9].into()))]);
    }

    #[test]
    fn flushes_that_end_out_of_order_forget_no_more_than_each_covers() {
        let mut versions = Versions::default();
        write(&mut versions, 1, 1);
        let first = versions.flush_begins();
        write(&mut versions, 1, 2);
        let second = versions.flush_begins();
        write(&mut versions, 1, 3);
        versions.flushed(second);
        versions.flushed(first);
        assert_eq!(versions.take_oldest(), [(1, Some(vec![3].into()))]);
    }

    #[test]
    fn what_is_durable_is_forgotten() {
        let mut versions = Versions::default();
        (0..10).for_each(|page| write(&mut versions, page, 5));
        versions.forget_range(3, 4);
        versions.forget_range(100, u64::MAX);
        versions.forget_durable(|page| page > 4);
        assert_eq!(versions.pages(), 4);
        assert_eq!(versions.take_oldest().iter().map(|&(page, _)| page).collect::<Vec<_>>(), [0, 1, 2, 4]);
    }
}
