//! W-TinyLFU: a small LRU window, and a main part that a page only enters if it was requested more often than the page
//! that it would push out.
//!
//! ```text
//!   new page ─▶ window (LRU) ─▶ probation (LRU) ─hit─▶ protected (LRU) ─too long─▶ probation
//! ```
//!
//! How often a page was requested is estimated by a sketch: four rows of 4-bit counters, the smallest of which is
//! taken; all are halved after ten accesses for each frame. With the window full, its oldest page stands against the
//! oldest of probation: the one with the smaller estimate is evicted, at a tie that of the window; if it is the other
//! one, the window's page takes its place. Source: G. Einziger, R. Friedman, B. Manes, *TinyLFU: A Highly Efficient
//! Cache Admission Policy*, ACM ToS 13(4), 2017.
//!
//! Parameters: `window`, its share of the frames, default 0.01 and at least one frame; `protected`, share of the rest,
//! default 0.8.
//!
//! **Order.** Pages of the window, or what they push out of probation. A new page was requested once and pushes nothing
//! out, so nothing follows.

use super::parameters::share_of;
use super::{Parameters, Policy, PolicyError, Shape, Taker};
use crate::directory::{Directory, Entry, Page};
use crate::lists::Lists;
use crate::memory::prefetch;

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

/// See the module.
pub(crate) struct WTinyLfu {
    lists: Lists,
    /// By entry: its list.
    list: Vec<u8>,
    sketch: Sketch,
    window_frames: usize,
    protected_frames: usize,
}

impl WTinyLfu {
    fn put(&mut self, list: usize, entry: Entry) {
        self.lists.push_front(list, entry);
        self.list[entry.at()] = list as u8;
    }

    fn move_to(&mut self, list: usize, entry: Entry) {
        self.lists.remove(usize::from(self.list[entry.at()]), entry);
        self.put(list, entry);
    }

    fn oldest(&self, list: usize, pages: &Directory) -> Option<Entry> {
        self.lists.oldest(list, pages)
    }

    fn is_window_full(&self) -> bool {
        self.lists.len(WINDOW) >= self.window_frames
    }
}

impl Policy for WTinyLfu {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let window_frames = share_of(shape.frames, parameters.share("window", 0.01, 1.0)?).max(1);
        let rest = shape.frames - window_frames.min(shape.frames);
        let protected_frames = share_of(rest, parameters.share("protected", 0.8, 1.0)?);
        let entries = shape.frames + 1;
        let (lists, list) = (Lists::new(entries, 3), vec![0; entries]);
        Ok(Self { lists, list, sketch: Sketch::new(shape.frames), window_frames, protected_frames })
    }

    #[inline]
    fn hit(&mut self, entry: Entry, _: bool, pages: &Directory) {
        self.sketch.add(pages.page(entry));
        let list = usize::from(self.list[entry.at()]);
        if list != PROBATION {
            self.lists.move_to_front(list, entry);
            return;
        }
        self.move_to(PROTECTED, entry);
        if self.lists.len(PROTECTED) > self.protected_frames
            && let Some(oldest) = self.lists.back(PROTECTED)
        {
            self.move_to(PROBATION, oldest);
        }
    }

    #[inline]
    fn expect(&self, page: Page, entry: Entry) {
        self.lists.expect(entry);
        self.sketch.expect(page);
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        let main = self.oldest(PROBATION, pages).or_else(|| self.oldest(PROTECTED, pages));
        let candidate = self.oldest(WINDOW, pages);
        let (Some(main), Some(candidate)) = (main, candidate) else { return main.or(candidate) };
        let is_worth_more = || self.sketch.estimate(pages.page(candidate)) > self.sketch.estimate(pages.page(main));
        Some(if !self.is_window_full() || is_worth_more() { main } else { candidate })
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        self.lists.remove(usize::from(self.list[entry.at()]), entry);
        pages.forget(entry);
    }

    fn load(&mut self, entry: Entry, _: bool, pages: &mut Directory) {
        self.sketch.add(pages.page(entry));
        self.put(WINDOW, entry);
        // While there are empty frames, and where the window's page has won.
        if self.lists.len(WINDOW) > self.window_frames
            && let Some(oldest) = self.lists.back(WINDOW)
        {
            self.move_to(PROBATION, oldest);
        }
        // Who stand against each other next: their counters are far apart.
        for list in [WINDOW, PROBATION] {
            if let Some(oldest) = self.lists.back(list) {
                self.sketch.expect(pages.page(oldest));
            }
        }
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.lists.push_back(PROBATION, entry);
        self.list[entry.at()] = PROBATION as u8;
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        let of = |list| self.lists.iter(list).filter(|&entry| pages.is_free(entry));
        let estimate = |entry| self.sketch.estimate(pages.page(entry));
        let mut main = of(PROBATION).chain(of(PROTECTED));
        let mut window = of(WINDOW);
        if !self.is_window_full()
            && let Some(first) = main.next()
            && take(first).is_break()
        {
            return;
        }
        let mut weakest = main.next().map(|first| (first, estimate(first)));
        for candidate in window.by_ref() {
            let pushed_out = weakest.filter(|&(_, least)| estimate(candidate) > least);
            if take(pushed_out.map_or(candidate, |(first, _)| first)).is_break() {
                return;
            }
            if pushed_out.is_some() {
                weakest = main.next().map(|first| (first, estimate(first)));
            }
        }
    }
}

/// Estimates of how often pages were requested.
struct Sketch {
    /// Sixteen counters of four bits in a word.
    words: Vec<u64>,
    additions: u64,
    period: u64,
}

/// Counters that a page has.
const ROWS: u64 = 4;
const COUNTER_MOST: u64 = 15;
/// Odd constants far apart; one a row.
const SEEDS: [u64; ROWS as usize] =
    [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, 0xd6e8_feb8_6659_fd93];

impl Sketch {
    fn new(frames: usize) -> Self {
        // A word of sixteen counters a frame: four rows of four counters a page.
        let words = frames.next_power_of_two().max(8);
        Self { words: vec![0; words], additions: 0, period: 10 * frames.max(1) as u64 }
    }

    /// Word and shift of a page's counter in a row.
    #[inline]
    fn place(&self, page: Page, row: usize) -> (usize, u32) {
        let hash = (u64::from(page.0) + 1).wrapping_mul(SEEDS[row]);
        let hash = hash ^ (hash >> 32);
        let word = (hash.wrapping_mul(SEEDS[0]) >> 20) as usize & (self.words.len() - 1);
        (word, ((row as u32) << 4) + ((hash as u32 & 3) << 2))
    }

    /// Says that a page is going to be counted: its four counters are far apart.
    #[inline]
    fn expect(&self, page: Page) {
        (0..ROWS as usize).for_each(|row| prefetch(&self.words, self.place(page, row).0));
    }

    #[inline]
    fn estimate(&self, page: Page) -> u64 {
        let counter = |row| {
            let (word, shift) = self.place(page, row);
            (self.words[word] >> shift) & COUNTER_MOST
        };
        (0..ROWS as usize).map(counter).min().unwrap_or(0)
    }

    #[inline]
    fn add(&mut self, page: Page) {
        for row in 0..ROWS as usize {
            let (word, shift) = self.place(page, row);
            let word = &mut self.words[word];
            *word += u64::from((*word >> shift) & COUNTER_MOST < COUNTER_MOST) << shift;
        }
        self.additions += 1;
        if self.additions >= self.period {
            self.words.iter_mut().for_each(|word| *word = (*word >> 1) & 0x7777_7777_7777_7777);
            self.additions /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_never_below_the_count_until_they_are_halved() {
        let mut sketch = Sketch::new(1_000);
        for page in 0..900_u32 {
            (0..=page % 10).for_each(|_| sketch.add(Page(page)));
        }
        let (mut exact, halved) = (0, 900);
        for page in 0..900_u32 {
            let (estimate, count) = (sketch.estimate(Page(page)), u64::from(page % 10) + 1);
            assert!(estimate >= count, "page {page}: {estimate} for {count}");
            exact += u32::from(estimate == count);
        }
        assert!(exact > halved / 2, "{exact} exact");
        sketch.additions = sketch.period - 1;
        let before = sketch.estimate(Page(9));
        sketch.add(Page(5_000));
        assert_eq!(sketch.estimate(Page(9)), before / 2);
    }
}
