//! Translation pages that wait for room, because none of the units that may take them has any.
//!
//! Hundreds wait where a drive that is nearly full updates much of its map. Those that may go to the same units wait in
//! one line: when room becomes free, the first that finds none says the same of all behind it. One whose old version is
//! in a superpage that is still being filled could take its place without room; only where that may be is each of them
//! examined.

use std::collections::VecDeque;

/// The lines of those that wait, by the set of units that they may go to.
pub(crate) struct Unplaced {
    pub(crate) lines: Vec<Line>,
    /// How many wait.
    pub(crate) waiting: u32,
    /// The old version of one that waits may be in a superpage that is being filled.
    pub(crate) may_be_in_buffer: bool,
}

/// Translation pages in the order in which they came.
#[derive(Clone, Default)]
pub(crate) struct Line {
    pub(crate) pages: VecDeque<u32>,
}

impl Unplaced {
    /// Nobody waits for any of so many sets of units.
    pub(crate) fn new(sets: u32) -> Self {
        Self { lines: vec![Line::default(); sets as usize], waiting: 0, may_be_in_buffer: false }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Those that wait for a set of units.
    pub(crate) fn len(&self, set: u32) -> usize {
        self.lines[set as usize].pages.len()
    }

    /// A page waits behind all others for its set of units.
    pub(crate) fn push(&mut self, set: u32, page: u32) {
        self.waiting += 1;
        self.lines[set as usize].pages.push_back(page);
    }

    /// A page waits before all others.
    pub(crate) fn push_front(&mut self, set: u32, page: u32) {
        self.waiting += 1;
        self.lines[set as usize].pages.push_front(page);
    }

    /// The page that has waited longest.
    pub(crate) fn pop(&mut self, set: u32) -> Option<u32> {
        let page = self.lines[set as usize].pages.pop_front()?;
        self.waiting -= 1;
        Some(page)
    }

    /// Checks what was read, of a map with so many translation pages.
    pub(crate) fn check_restored(&self, translation_pages: u32) -> Result<(), String> {
        let pages = || self.lines.iter().flat_map(|line| &line.pages);
        if pages().any(|&page| page >= translation_pages) {
            return Err("a translation page that does not exist".to_owned());
        }
        match pages().count() == self.waiting as usize {
            true => Ok(()),
            false => Err(format!("{} translation pages wait for space, not {}", pages().count(), self.waiting)),
        }
    }
}

crate::state::state! { Line { lists { pages } } }

crate::state::state! { Unplaced { saved { lines, waiting, may_be_in_buffer } } }
