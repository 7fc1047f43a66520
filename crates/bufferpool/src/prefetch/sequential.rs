//! Streams: a miss on the page that was expected next.
//!
//! A table holds the pages that would continue with a stream. A miss on one of them marks a stream, and the pages
//! behind it are worth reading; the table then expects the page behind the last of those. Any other miss puts the page
//! behind it into the table, in place of the oldest one. Source: M. Li, E. Varki, S. Bhatia, A. Merchant, *TaP:
//! Table-based Prefetching for Storage Caches*, FAST 2008.
//!
//! Chosen here: a table of [`STREAMS`] pages.

use std::sync::Arc;

use crate::directory::Page;

/// Streams that are followed at the same time.
pub const STREAMS: usize = 64;

const NONE: u32 = u32::MAX;

/// See the module.
pub struct Sequential {
    /// By page: the one behind it.
    next: Arc<[u32]>,
    /// Pages that would continue with a stream.
    expected: [u32; STREAMS],
    oldest: usize,
    /// The place in the table of the stream that the last miss continued with.
    stream: Option<usize>,
}

impl Sequential {
    /// `next`: by page, the page behind it on the drive, or `u32::MAX`.
    pub fn new(next: Arc<[u32]>) -> Self {
        Self { next, expected: [NONE; STREAMS], oldest: 0, stream: None }
    }

    fn behind(&self, page: u32) -> u32 {
        self.next.get(page as usize).copied().unwrap_or(NONE)
    }

    /// A page was requested and was not there.
    pub fn missed(&mut self, page: Page) {
        self.stream = self.expected.iter().position(|&expected| expected == page.0);
        let place = self.stream.unwrap_or_else(|| {
            self.oldest = (self.oldest + 1) % STREAMS;
            self.oldest
        });
        self.expected[place] = self.behind(page.0);
    }

    /// Adds the pages behind one that has just missed and continues with a stream.
    pub fn candidates(&mut self, page: Page, most: usize, is_wanted: impl Fn(Page) -> bool, into: &mut Vec<Page>) {
        let Some(place) = self.stream else { return };
        let mut behind = self.behind(page.0);
        for _ in 0..most {
            if behind == NONE {
                break;
            }
            if is_wanted(Page(behind)) {
                into.push(Page(behind));
            }
            behind = self.behind(behind);
        }
        self.expected[place] = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(prefetcher: &mut Sequential, page: u32) -> Vec<u32> {
        let mut into = Vec::new();
        prefetcher.missed(Page(page));
        prefetcher.candidates(Page(page), 3, |_| true, &mut into);
        into.into_iter().map(|page| page.0).collect()
    }

    #[test]
    fn the_second_page_of_a_run_makes_it_a_stream_and_two_streams_do_not_disturb_each_other() {
        let next: Arc<[u32]> = (1..100).chain([NONE]).collect();
        let mut prefetcher = Sequential::new(next);
        assert_eq!(candidates(&mut prefetcher, 10), [0_u32; 0]);
        assert_eq!(candidates(&mut prefetcher, 50), [0_u32; 0]);
        assert_eq!(candidates(&mut prefetcher, 11), [12, 13, 14]);
        assert_eq!(candidates(&mut prefetcher, 51), [52, 53, 54]);
        // What was prefetched does not miss: the stream continues behind it.
        assert_eq!(candidates(&mut prefetcher, 15), [16, 17, 18]);
        assert_eq!(candidates(&mut prefetcher, 98), [0_u32; 0]);
        assert_eq!(candidates(&mut prefetcher, 99), [0_u32; 0], "the last page");
    }
}
