//! Prefetchers: which pages are worth reading together with the one that missed.
//!
//! They are asked only when a dirty page is evicted: its batch of write-backs pays for the evictions, and the drive
//! reads as many pages at once as it has space for. [`sequential`] follows streams, [`history`] what followed before;
//! both together take the stream where there is one.

pub mod history;
pub mod sequential;

use std::sync::Arc;

use serde::Serialize;

use crate::directory::Page;
use history::History;
use sequential::Sequential;

/// What is prefetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prefetch {
    /// Nothing.
    #[default]
    None,
    /// The pages behind one that continues a stream.
    Sequential,
    /// The pages that followed before.
    History,
    /// The stream where there is one, else what followed before.
    Both,
}

impl Prefetch {
    /// Each of them by its name.
    pub const NAMES: [(&str, Self); 4] =
        [("none", Self::None), ("sequential", Self::Sequential), ("history", Self::History), ("both", Self::Both)];

    /// Whether it needs to know which page is behind which.
    pub fn follows_streams(self) -> bool {
        matches!(self, Self::Sequential | Self::Both)
    }
}

/// The prefetchers of a pool.
pub(crate) struct Prefetcher {
    sequential: Option<Sequential>,
    history: Option<History>,
}

impl Prefetcher {
    /// `None` where nothing is to be prefetched.
    pub(crate) fn new(prefetch: Prefetch, pages: usize, next_pages: &Arc<[u32]>) -> Option<Self> {
        let sequential = prefetch.follows_streams().then(|| Sequential::new(Arc::clone(next_pages)));
        let history = matches!(prefetch, Prefetch::History | Prefetch::Both).then(|| History::new(pages));
        (prefetch != Prefetch::None).then_some(Self { sequential, history })
    }

    /// A page was requested.
    pub(crate) fn saw(&mut self, page: Page) {
        if let Some(history) = &mut self.history {
            history.saw(page);
        }
    }

    /// A page was requested and had no frame.
    pub(crate) fn missed(&mut self, page: Page) {
        if let Some(sequential) = &mut self.sequential {
            sequential.missed(page);
        }
    }

    /// Adds up to `most` pages that may be requested after `page` and are wanted.
    pub(crate) fn candidates(
        &mut self,
        page: Page,
        most: usize,
        is_wanted: impl Fn(Page) -> bool,
        into: &mut Vec<Page>,
    ) {
        let before = into.len();
        if let Some(sequential) = &mut self.sequential {
            sequential.candidates(page, most, &is_wanted, into);
        }
        if let Some(history) = self.history.as_ref().filter(|_| into.len() == before) {
            history.candidates(page, most, &is_wanted, into);
        }
    }
}
